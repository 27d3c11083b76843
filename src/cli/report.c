/* Text reports: results as aligned tables, bar charts and CSV, and the summary of a run. */
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define GAP 2       /* blanks between columns */
#define MAX_BAR 60  /* cells */
#define MIN_BAR 10  /* cells, even if the line becomes longer than the screen */
#define SHARE 7     /* width of "100.00%" */
#define NO_WIDTH 80 /* columns of a file that is not a terminal */

/* ---- values ---------------------------------------------------------------------------------- */

double gf_cli_number(gf_value value) {
    return value.type == GF_VALUE_UINT ? (double)value.high * 0x1p64 + (double)value.low
                                       : value.real;
}

size_t gf_cli_channel(const char *curve) {
    return strlen(curve) == 1 ? strcspn("rgba", curve) : 4;
}

void gf_cli_print_bytes(FILE *file, uint64_t bytes, const char *what) {
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes / 1000;
    int unit = 0;
    for (; value >= 999.5; unit++)
        value /= 1000;
    if (bytes < 1000)
        fprintf(file, ", %" PRIu64 " byte%s%s", bytes, bytes == 1 ? "" : "s", what);
    else
        fprintf(file, ", %.*f %s%s", value < 9.95 ? 1 : 0, value, units[unit], what);
}

const char *gf_cli_cell_text(gf_value value, char number[40]) {
    if (value.type == GF_VALUE_TEXT)
        return value.text;
    gf_value_format(&value, number, 40);
    return number;
}

gf_cli_screen gf_cli_screen_of(FILE *file) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *locale = NULL;
    for (size_t i = 0; i < 3 && !(locale && *locale); i++)
        locale = getenv(names[i]);
    const char *charset = locale ? strchr(locale, '.') : NULL;
    struct winsize size;
    const bool known = ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return (gf_cli_screen){.width = known ? size.ws_col : NO_WIDTH,
                           .utf8 = charset && (strncasecmp(charset, ".utf-8", 6) == 0 ||
                                               strncasecmp(charset, ".utf8", 5) == 0),
                           .terminal = isatty(fileno(file)),
                           .colour = gf_cli_colour_on(file)};
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* A printed table. A long table of bins is shortened: one line shows several rows. */
typedef struct gf_view {
    FILE *file;
    const gf_result *result;
    size_t index;
    const gf_table *table;
    uint64_t step, lines; /* rows per line; lines below the heading, which is line 0 */
} gf_view;

/* Return a cell of a line. If the line shows several rows, return the sum of a curve, the value of
 * the last row for the column "to", and that of the first row for other columns. */
static gf_value view_cell(const gf_view *view, uint64_t line, size_t column) {
    const gf_table *table = view->table;
    const uint64_t row = (line - 1) * view->step, left = table->row_count - row;
    const uint64_t rows = left < view->step ? left : view->step;
    const bool ends = strcmp(table->columns[column].name, "to") == 0;
    gf_value cell = gf_result_cell(view->result, view->index, ends ? row + rows - 1 : row, column);
    if (cell.type == GF_VALUE_DOUBLE && column < table->curves) /* edges: bin, from, to */
        cell.real =
            gf_round_edge(cell.real, gf_result_cell(view->result, view->index, row, 2).real -
                                         gf_result_cell(view->result, view->index, row, 1).real);
    for (uint64_t i = 1; column >= table->curves && i < rows; i++) {
        const gf_value value = gf_result_cell(view->result, view->index, row + i, column);
        cell.high += value.high + (cell.low > UINT64_MAX - value.low);
        cell.low += value.low;
    }
    return cell;
}

/* Return a cell as text. The first column of a line with several rows is their range: "8-15". */
static const char *view_text(const gf_view *view, uint64_t line, size_t column, char text[64]) {
    if (line == 0)
        return view->table->columns[column].name;
    const gf_value value = view_cell(view, line, column);
    if (column > 0 || view->step == 1)
        return gf_cli_cell_text(value, text);
    const uint64_t next = line * view->step, rows = view->table->row_count;
    const gf_value last =
        gf_result_cell(view->result, view->index, (next < rows ? next : rows) - 1, 0);
    char from[24], to[24];
    gf_value_format(&value, from, sizeof from);
    gf_value_format(&last, to, sizeof to);
    snprintf(text, 64, "%s-%s", from, to);
    return text;
}

static int max_int(int a, int b) {
    return a > b ? a : b;
}

static int report_text_width(const char *text) {
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80; /* UTF-8: one lead byte per character */
    return width;
}

/* Return the width of the widest cell of a column, from this line on. */
static int view_width(const gf_view *view, size_t column, uint64_t line) {
    int width = 0;
    for (char text[64]; line <= view->lines; line++)
        width = max_int(width, report_text_width(view_text(view, line, column, text)));
    return width;
}

static void print_padded(FILE *file, const char *text, int width, bool right, bool last) {
    const int blanks = max_int(0, width - report_text_width(text));
    fprintf(file, "%*s%s", right ? blanks : 0, "", text);
    fprintf(file, "%*s", last ? 0 : GAP + (right ? 0 : blanks), "");
}

static void print_cell(const gf_view *view, uint64_t line, size_t column, int width, bool last) {
    const bool right = view->table->columns[column].type != GF_VALUE_TEXT;
    char text[64];
    print_padded(view->file, view_text(view, line, column, text), width, right, last);
}

static void print_single(const gf_view *view) {
    const gf_table *table = view->table;
    int names = 0;
    for (size_t c = 0; c < table->column_count; c++)
        names = max_int(names, report_text_width(table->columns[c].name));
    for (size_t c = 0; c < table->column_count; c++) {
        print_padded(view->file, table->columns[c].name, names, false, false);
        print_cell(view, 1, c, 0, true);
        putc('\n', view->file);
    }
}

/* Columns that do not fit on the screen follow in further tables, which repeat the first column. */
static void print_columns(const gf_view *view, int screen_width) {
    const size_t count = view->table->column_count;
    int widths[GF_MAX_COLUMNS] = {0};
    for (size_t c = 0; c < count; c++)
        widths[c] = view_width(view, c, 0);
    size_t end = 1;
    do {
        const size_t first = end;
        int used = widths[0];
        while (end < count && (end == first || used + GAP + widths[end] <= screen_width))
            used += GAP + widths[end++];
        fputs(first > 1 ? "\n" : "", view->file);
        for (uint64_t line = 0; line <= view->lines; line++) {
            print_cell(view, line, 0, widths[0], false);
            for (size_t c = first; c < end; c++)
                print_cell(view, line, c, widths[c], c + 1 == end);
            putc('\n', view->file);
        }
    } while (end < count);
}

/* ---- bars ------------------------------------------------------------------------------------ */

/* Print a bar. Any value above zero is visible. */
static void print_bar(FILE *file, double part, int cells, bool utf8) {
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const int units = utf8 ? 8 : 1;
    int length = (int)(part * cells * units + 0.5);
    if (length == 0 && part > 0)
        length = 1;
    for (int i = 0; i < length / units; i++)
        fputs(utf8 ? "█" : "#", file);
    if (utf8)
        fputs(eighths[length % 8], file);
}

/* Print the heading, then one line per curve for each line of the table: the bin, the name of the
 * curve if there are several, the value, its share of the curve, and a bar. */
static void print_bars(const gf_view *view, const gf_cli_screen *screen) {
    static const char *const paints[] = {GF_PAINT_RED, GF_PAINT_GREEN, GF_PAINT_BLUE};
    const gf_table *table = view->table;
    const size_t first = table->curves, end = table->column_count;
    const bool several = end - first > 1;
    FILE *file = view->file;
    int widths[GF_MAX_COLUMNS], names = 0, values = 0, used = GAP + SHARE + GAP;
    double sums[GF_MAX_COLUMNS] = {0}, max = 0;
    char text[64];
    for (size_t c = 0; c < first; c++) {
        widths[c] = view_width(view, c, 0);
        used += widths[c] + GAP;
    }
    for (size_t c = first; c < end; c++) {
        names = max_int(names, report_text_width(table->columns[c].name));
        values = max_int(values, view_width(view, c, several ? 1 : 0));
        for (uint64_t line = 1; line <= view->lines; line++) {
            const double x = gf_cli_number(view_cell(view, line, c));
            sums[c] += x;
            max = x > max ? x : max;
        }
    }
    used += values + (several ? names + GAP : 0);
    const int wide = max_int(screen->width - used, MIN_BAR),
              cells = wide > MAX_BAR ? MAX_BAR : wide;
    for (uint64_t line = 0; line <= view->lines; line++)
        for (size_t c = first; c < (line ? end : first + 1); c++) {
            for (size_t i = 0; i < first; i++)
                print_padded(file, c == first ? view_text(view, line, i, text) : "", widths[i],
                             true, false);
            if (several)
                print_padded(file, line ? table->columns[c].name : "", names, false, false);
            print_padded(file, line || !several ? view_text(view, line, c, text) : "", values, true,
                         false);
            const double x = line ? gf_cli_number(view_cell(view, line, c)) : 0;
            if (line)
                fprintf(file, "%*.2f%%", SHARE - 1, sums[c] > 0 ? 100 * x / sums[c] : 0.0);
            else
                print_padded(file, "share", SHARE, true, true);
            if (x > 0) {
                const size_t channel = gf_cli_channel(table->columns[c].name);
                const bool colour = screen->colour && channel < 3;
                fprintf(file, "%*s%s", GAP, "", colour ? paints[channel % 3] : "");
                print_bar(file, x / max, cells, screen->utf8);
                fputs(colour ? GF_PAINT_OFF : "", file);
            }
            putc('\n', file);
        }
    if (view->step > 1)
        fprintf(file, "(%" PRIu64 " %s, %" PRIu64 " per line; --%s %" PRIu64 " shows each)\n",
                table->row_count, table->name, view->step, table->name, table->row_count);
}

/* Print the tables, bar charts as wide as the screen, and the text of the result of a step. */
static void report_result(FILE *file, const gf_filter_info *info, const gf_result *result,
                          const gf_cli_screen *screen) {
    const gf_table *table;
    for (size_t t = 0; (table = gf_result_table(result, t)); t++) {
        if (!table->in_text || table->row_count == 0)
            continue;
        const bool bars = table->chart == GF_CHART_BARS && !table->single;
        const uint64_t rows = table->row_count, max = bars && screen->terminal ? table->brief : 0;
        const uint64_t step = max ? (rows + max - 1) / max : 1;
        const gf_view view = {file, result, t, table, step, (rows + step - 1) / step};
        putc('\n', file);
        if (table->single)
            print_single(&view);
        else if (bars)
            print_bars(&view, screen);
        else
            print_columns(&view, screen->width);
    }
    const char *text = gf_result_text(result);
    if (!*text)
        return;
    const bool colour = screen->colour && info->is_test;
    const char *paint = gf_result_passed(result) ? GF_PAINT_GREEN : GF_PAINT_ERROR;
    fprintf(file, "\n%s%.*s%s\n", colour ? paint : "", (int)strlen(text) - 1, text,
            colour ? GF_PAINT_OFF : "");
}

/* Return the first step from `i` on that measured; step_count: none. */
static uint32_t report_next_result(const gf_cli_run *run, uint32_t i) {
    const gf_step *steps = run->work->steps;
    while (i < run->work->step_count &&
           (!run->outcome->results[i] || gf_filter_describe(steps[i].filter)->makes_image))
        i++;
    return i;
}

/* Print a heading and the results. In `run`, a heading before each one names its step. */
static void report_text(FILE *file, const gf_cli_run *run) {
    char format[64];
    const gf_cli_work *work = run->work;
    const gf_cli_screen screen = run->screen ? *run->screen : gf_cli_screen_of(file);
    const char *strong = screen.colour ? GF_PAINT_STRONG : "";
    const char *off = screen.colour ? GF_PAINT_OFF : "";
    gf_format_text(&run->outcome->report.in, format, sizeof format);
    fprintf(file, "%s%s", run->later ? "\n" : "", strong);
    for (uint32_t i = 0; i < work->info->inputs; i++) {
        fputs(i ? ", " : "", file);
        gf_cli_print_name(file, run->inputs[i], "standard input");
    }
    if (run->page)
        fprintf(file, ", page %s", run->page);
    fprintf(file, ": %s, by %s%s\n", format, run->outcome->report.backend, off);
    for (uint32_t i = 0; (i = report_next_result(run, i)) < work->step_count; i++) {
        const gf_filter_info *info = gf_filter_describe(work->steps[i].filter);
        gf_format_text(&run->outcome->steps[i].in, format, sizeof format);
        if (!work->filter)
            fprintf(file, "\n%sstep %" PRIu32 ", %s: %s%s\n", strong, i + 1, info->name, format,
                    off);
        report_result(file, info, run->outcome->results[i], &screen);
    }
}

/* ---- CSV ------------------------------------------------------------------------------------- */

static void print_field(FILE *file, const char *gap, const char *text, bool shown) {
    const bool quoted = text[strcspn(text, ",\"\r\n")];
    fprintf(file, "%s%s", gap, quoted ? "\"" : "");
    for (size_t size; *text; text += size) {
        const size_t printable = gf_printable(text);
        size = printable ? printable : 1;
        if (*text == '"')
            putc('"', file);
        if (shown && !printable)
            putc('?', file);
        else
            fwrite(text, 1, size, file);
    }
    if (quoted)
        putc('"', file);
}

/* Print a header line and the first table as CSV (RFC 4180, lines end with LF). On a terminal,
 * unprintable bytes of a file name become '?'. */
static void report_csv(FILE *file, const gf_cli_run *run) {
    const gf_result *result = run->outcome->results[report_next_result(run, 0)];
    const gf_table *table = gf_result_table(result, 0);
    const bool shown = run->screen && run->screen->terminal;
    const char *key = run->batch ? run->inputs[0] : run->page; /* the first column; NULL: none */
    for (uint64_t line = run->later; line <= table->row_count; line++) { /* 0: the header */
        if (key)
            print_field(file, "", line ? key : run->batch ? "file" : "page", line && shown);
        for (size_t c = 0; c < table->column_count; c++) {
            char number[40];
            print_field(file, c || key ? "," : "",
                        line ? gf_cli_cell_text(gf_result_cell(result, 0, line - 1, c), number)
                             : table->columns[c].name,
                        false);
        }
        putc('\n', file);
    }
}

gf_status gf_cli_report(FILE *file, const gf_cli_run *run, const gf_cli_options *options,
                        gf_error *error) {
    if (options->json)
        return gf_cli_report_json(file, run, error);
    if (options->csv)
        report_csv(file, run);
    else if (report_next_result(run, 0) < run->work->step_count && !options->quiet)
        report_text(file, run);
    return GF_OK;
}

/* ---- the summary of a run, on standard error ------------------------------------------------- */

/* Print the name of an input and a text about it, without a newline. */
static void report_about(const char *name, const char *before, const char *text) {
    gf_cli_bar_hide();
    fputs("gpufilter: ", stderr);
    gf_cli_print_name(stderr, name, "standard input");
    fputs(before, stderr);
    gf_cli_print_text(stderr, text);
}

void gf_cli_report_failure(const char *name, const gf_report *report) {
    static bool reported;
    if (reported || !report->device_failed)
        return;
    reported = true;
    fflush(stdout);
    report_about(name, ": ", report->reason);
    putc('\n', stderr);
}

void gf_cli_report_bytes(uint64_t in, uint64_t out) {
    gf_cli_print_bytes(stderr, in, " in");
    if (out)
        gf_cli_print_bytes(stderr, out, " out");
}

void gf_cli_report_damage(const char *name, const gf_remarks *remarks) {
    if (!remarks->damage[0])
        return;
    report_about(name, ": warning: ", remarks->damage);
    fputs("; --strict fails instead\n", stderr);
}

static void summary_note(gf_cli_summary *summary, gf_cli_note kind, const char *name,
                         const char *text) {
    summary->notes[kind].count++;
    summary->notes[kind].last = name;
    snprintf(summary->notes[kind].text, sizeof summary->notes[kind].text, "%s", text);
}

void gf_cli_summary_add(gf_cli_summary *summary, const char *name, const gf_cli_run *run,
                        bool first_page) {
    const gf_report *report = &run->outcome->report;
    const gf_step_report made = gf_cli_outputs_of(run);
    char text[512] = "";
    summary->dropped |= made.dropped;
    for (size_t i = 0, used = 0; i < GF_CLI_DROPPED; i++)
        if (summary->dropped >> i & 1)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "",
                                     gf_cli_dropped_kinds[i].text);
    if (made.dropped)
        summary_note(summary, GF_NOTE_DROPPED, name, text);
    snprintf(text, sizeof text, "%" PRIu32, report->pages);
    if (first_page && report->pages > 1)
        summary_note(summary, GF_NOTE_PAGES, name, text);
    if (report->remarks.notes[0])
        summary_note(summary, GF_NOTE_OTHER, name, report->remarks.notes);
    if (made.brightness > summary->factor) {
        summary->factor = made.brightness;
        memcpy(summary->advice, made.advice, sizeof summary->advice);
    }
    summary->uncounted |= !made.counted && made.out.type != GF_F32;
    summary->clipped += made.clipped;
    summary->samples += made.counted;
}

void gf_cli_report_notes(const gf_cli_summary *summary) {
    static const char *const ends[] = {
        " dropped: the output does not store this; --strip suppresses this warning",
        "; --page selects another", ""};
    for (int kind = 0; kind < GF_NOTES; kind++) {
        const uint64_t count = summary->notes[kind].count;
        char text[sizeof summary->notes[kind].text], *rest = NULL;
        memcpy(text, summary->notes[kind].text, sizeof text);
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
            if (count > 1 && kind == GF_NOTE_DROPPED)
                fprintf(stderr, "gpufilter: %" PRIu64 " files: %s", count, line);
            else if (count > 1 && kind == GF_NOTE_PAGES)
                fprintf(stderr, "gpufilter: first images of %" PRIu64 " files with several", count);
            else
                report_about(summary->notes[kind].last,
                             kind == GF_NOTE_PAGES ? ": image 1 of " : ": ", line);
            fputs(ends[kind], stderr);
            if (count > 1 && kind == GF_NOTE_OTHER)
                fprintf(stderr, " (there are notes about %" PRIu64 " files; --json lists them)",
                        count);
            putc('\n', stderr);
        }
    }
}

void gf_cli_report_brightness(const gf_cli_summary *summary, const char *name) {
    char factor[32];
    const bool brighter = summary->factor > 1;
    snprintf(factor, sizeof factor, "%.4g", summary->factor);
    if (summary->factor <= 0 || strcmp(factor, "1") == 0 ||
        (name && !(brighter && (summary->clipped || summary->uncounted))))
        return;
    if (name)
        report_about(name, ":", "");
    fprintf(stderr, "%s brightness x%s", name ? "" : " ", factor);
    if (brighter && summary->clipped) {
        const double percent = 100 * (double)summary->clipped / (double)summary->samples;
        const bool all = summary->clipped == summary->samples;
        /* Print 0 % only for no clipped samples, and 100 % only for all. */
        if (percent < 0.05)
            fprintf(stderr, ", less than 0.1 %%");
        else
            fprintf(stderr, ", %.1f %%", !all && percent > 99.9 ? 99.9 : percent);
        fprintf(stderr, " of samples clipped%s; %s",
                summary->uncounted ? " (not counted in all images)" : "", summary->advice);
    } else if (brighter && summary->uncounted) {
        fprintf(stderr, ", clipped samples not counted; %s", summary->advice);
    }
    putc('\n', stderr);
}

/* Print the busy time of each stage as a share of the run time, and name the bottleneck. */
static void report_busy(const gf_report *report) {
    const double min_starting = 0.05; /* share for which start-up is printed; most runs are below */
    const double total = report->total_seconds;
    const char *slowest = NULL, *gap = "";
    double max = 0.5; /* minimum share of a bottleneck */
    fputs("  busy: ", stderr);
    for (int i = -1; i < GF_STAGE_COUNT; i++) {
        const bool starting = i < 0;
        const gf_busy busy = starting ? (gf_busy){report->start_seconds, 1} : report->busy[i];
        const char *name = starting ? "starting" : gf_names(GF_NAMES_STAGE)[i];
        const double share = total > 0 && busy.workers ? busy.seconds / (busy.workers * total) : 0;
        if (!busy.workers || (starting && share < min_starting))
            continue;
        fprintf(stderr, "%s%s %.0f %%", gap, name, 100 * share);
        gap = ", ";
        if (share > max) {
            max = share;
            slowest = name;
        }
    }
    fprintf(stderr, " of %.3f s", total);
    if (slowest)
        fprintf(stderr, ": %s is the bottleneck", slowest);
    putc('\n', stderr);
}

void gf_cli_print_settings(FILE *file, const gf_filter_info *info, const gf_settings *settings) {
    for (const gf_param *param = info->params; param < info->params + info->param_count; param++) {
        const bool flag = param->type == GF_PARAM_FLAG;
        const char *text = gf_settings_text(settings, param->name);
        if (flag ? !gf_settings_flag(settings, param->name) : !text)
            continue;
        fprintf(file, " %s%s", param->name, flag ? "" : "=");
        if (!flag)
            gf_cli_print_text(file, text);
    }
}

/* Print the number, name and file or settings of a step: "  step 1, gaussian: sigma=2". */
static void report_step(FILE *file, const gf_cli_run *run, uint32_t i, const gf_step_info *info) {
    const char *const *outputs = run->outputs;
    for (uint32_t j = 0; j < i; j++)
        outputs += !run->work->steps[j].filter;
    const gf_step *step = &run->work->steps[i];
    const char *path = step->filter ? step->in_path : *outputs;
    fprintf(file, "  step %" PRIu32 ", %s:", i + 1, gf_step_name(step));
    if (path) {
        putc(' ', file);
        gf_cli_print_name(file, path, step->filter ? "standard input" : "standard output");
    }
    const char *name = gf_step_name(step);
    if (strcmp(name, "depth") == 0)
        fprintf(file, " %s", gf_settings_text(step->settings, "depth"));
    else if (step->filter && strcmp(name, "linear") != 0)
        gf_cli_print_settings(file, gf_filter_describe(step->filter), info->effective);
    if (step->from == GF_FROM_INPUT)
        fputs(" (reads the input)", file);
}

gf_status gf_cli_report_plan(const gf_cli_run *run, gf_error *error) {
    const gf_report *report = &run->outcome->report;
    gf_step_info steps[GF_CLI_MAX_STEPS];
    char format[64];
    const gf_status status = gf_cli_inspect_steps(run, steps, error);
    if (status)
        return status;
    gf_cli_print_name(stdout, run->inputs[0], "standard input");
    gf_format_text(&report->in, format, sizeof format);
    printf(": %s\n", format);
    for (uint32_t i = 0; i < run->work->step_count; i++) {
        const gf_step_info *step = &steps[i];
        report_step(stdout, run, i, step);
        gf_format_text(step->out.width ? &step->out : &step->in, format, sizeof format);
        printf("\n    %s %s", run->work->steps[i].filter && step->out.width ? "to" : "of", format);
        if (step->before || step->after)
            printf(", rows above and below: %" PRIu64 ", %" PRIu64, step->before, step->after);
        if (step->measures_first)
            printf(", after %s", gf_filter_describe(step->measures_first)->name);
        if (!step->out.width && step->result_bytes)
            gf_cli_print_bytes(stdout, step->result_bytes, " for its result");
        putchar('\n');
    }
    printf("  backend: %s (%s)%s%s\n", report->backend, report->device,
           report->reason[0] ? ", " : "", report->reason);
    printf("  strips: %" PRIu64 " of %" PRIu64 " rows", report->strips, report->rows_per_strip);
    gf_cli_print_bytes(stdout, report->strip_bytes, " in memory\n");
    gf_cli_free_steps(steps);
    return GF_OK;
}

/* Print the parameters of a filter, or a line per step of `run`, with the values used, derived ones
 * included: "gain=1.1 axis=x". */
static void report_steps(const gf_cli_run *run) {
    gf_step_info steps[GF_CLI_MAX_STEPS];
    if (gf_cli_inspect_steps(run, steps, NULL))
        return;
    if (run->work->filter) {
        fputs("  parameters:", stderr);
        gf_cli_print_settings(stderr, run->work->info, steps[0].effective);
        putc('\n', stderr);
    }
    for (uint32_t i = 0; !run->work->filter && i < run->work->step_count; i++) {
        const double seconds = run->outcome->steps[i].seconds;
        report_step(stderr, run, i, &steps[i]);
        if (seconds > 0)
            fprintf(stderr, ", %.3f s", seconds);
        putc('\n', stderr);
    }
    gf_cli_free_steps(steps);
}

void gf_cli_report_run(const gf_cli_run *run, bool verbose) {
    const gf_report *report = &run->outcome->report;
    const gf_format *in = &report->in;
    const char *output = gf_cli_run_output(run);
    gf_cli_summary summary = {0};
    char format[64];
    gf_cli_print_name(stderr, output ? output : run->inputs[0],
                      output ? "standard output" : "standard input");
    fprintf(stderr, ": %.3f s, %.0f MP/s by %s (%s)", report->total_seconds,
            (double)report->pixels * 1e-6 / report->total_seconds, report->backend, report->device);
    if (report->processes)
        fprintf(stderr, " on %u ranks", report->processes);
    if (run->ranks > 1)
        fprintf(stderr, " of rank %" PRIu32, run->rank);
    gf_cli_report_bytes(report->in_bytes, gf_cli_outputs_of(run).out_bytes);
    putc('\n', stderr);
    gf_cli_summary_add(&summary, run->inputs[0], run, false);
    gf_cli_report_brightness(&summary, NULL);
    if (!verbose)
        return;
    report_steps(run);
    gf_format_text(in, format, sizeof format);
    fprintf(stderr, "  %s", format);
    if (report->pixels > in->width * in->height)
        fprintf(stderr, " and %" PRIu32 " more page%s", report->pages - 1,
                report->pages == 2 ? "" : "s");
    fprintf(stderr, " in %" PRIu64 " strip%s of %" PRIu64 " rows\n", report->strips,
            report->strips == 1 ? "" : "s", report->rows_per_strip);
    if (report->reason[0]) {
        fputs("  auto: ", stderr);
        gf_cli_print_text(stderr, report->reason);
        putc('\n', stderr);
    }
    if (report->verified)
        fprintf(stderr, "  verified: identical to golden\n");
    report_busy(report);
}
