/* A result for people: aligned tables and bars. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "colour.h"
#include "report.h"

#define GAP 2       /* blanks between columns */
#define MAX_BAR 60  /* cells */
#define MIN_BAR 10  /* a line may rather be too long */
#define SHARE 7     /* "100.00%" */
#define NO_WIDTH 80 /* of what is no terminal */

void gf_cli_format_text(const gf_format *format, char *text, size_t size) {
    static const char *const channels[] = {"", "grey", "grey+alpha", "RGB", "RGBA"};
    static const char *const types[] = {"u8", "u16", "f32"};
    snprintf(text, size, "%" PRIu64 "x%" PRIu64 " %s %s", format->width, format->height,
             channels[format->channels], types[format->type]);
}

/* A cell as text, in `number` or where the result keeps it. */
static const char *cell_text(const gf_value *value, char number[40]) {
    if (value->type == GF_VALUE_TEXT)
        return value->text;
    gf_value_format(value, number, 40);
    return number;
}

static int text_width(const char *text) {
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80; /* UTF-8: one a character */
    return width;
}

/* The widest cell of a column. */
static int column_width(const gf_result *result, size_t index, size_t column) {
    int width = 0;
    for (uint64_t row = 0; row < gf_result_table(result, index)->row_count; row++) {
        gf_value value = gf_result_cell(result, index, row, column);
        char number[40];
        int n = text_width(cell_text(&value, number));
        width = n > width ? n : width;
    }
    return width;
}

static void print_padded(FILE *file, const char *text, int width, bool right, bool last) {
    int blanks = width - text_width(text);
    blanks = blanks > 0 ? blanks : 0;
    fprintf(file, "%*s%s", right ? blanks : 0, "", text);
    fprintf(file, "%*s", last ? 0 : GAP + (right ? 0 : blanks), "");
}

static void print_cell(FILE *file, const gf_value *value, int width, bool last) {
    char number[40];
    print_padded(file, cell_text(value, number), width, value->type != GF_VALUE_TEXT, last);
}

static void print_single(FILE *file, const gf_result *result, size_t index) {
    const gf_table *table = gf_result_table(result, index);
    int names = 0;
    for (size_t c = 0; c < table->column_count; c++) {
        int n = text_width(table->columns[c].name);
        names = n > names ? n : names;
    }
    for (size_t c = 0; c < table->column_count; c++) {
        gf_value value = gf_result_cell(result, index, 0, c);
        print_padded(file, table->columns[c].name, names, false, false);
        print_cell(file, &value, 0, true);
        putc('\n', file);
    }
}

/* Print a column's name, as wide as its cells; returns how much of the line it takes. */
static int print_name(FILE *file, const gf_column *column, int *width, bool last) {
    const int name = text_width(column->name);
    *width = name > *width ? name : *width;
    print_padded(file, column->name, *width, column->type != GF_VALUE_TEXT, last);
    return *width + GAP;
}

/* Get the end of the columns from `first` on that fit into a line with column 0; at least one
 * does. */
static size_t fitting(const gf_table *table, const int *widths, size_t first, int line) {
    int used = widths[0];
    size_t end = first;
    while (end < table->column_count && (end == first || used + GAP + widths[end] <= line))
        used += GAP + widths[end++];
    return end;
}

/* Columns that a line has no room for follow in another table, which repeats the first column. */
static void print_table(FILE *file, const gf_result *result, size_t index, int line) {
    const gf_table *table = gf_result_table(result, index);
    int widths[GF_MAX_COLUMNS] = {0};
    for (size_t c = 0; c < table->column_count; c++) {
        const int name = text_width(table->columns[c].name);
        widths[c] = column_width(result, index, c);
        widths[c] = name > widths[c] ? name : widths[c];
    }
    size_t end = 1;
    do {
        const size_t first = end;
        end = fitting(table, widths, first, line);
        fputs(first > 1 ? "\n" : "", file);
        print_name(file, &table->columns[0], &widths[0], false);
        for (size_t c = first; c < end; c++)
            print_name(file, &table->columns[c], &widths[c], c + 1 == end);
        putc('\n', file);
        for (uint64_t row = 0; row < table->row_count; row++) {
            gf_value value = gf_result_cell(result, index, row, 0);
            print_cell(file, &value, widths[0], false);
            for (size_t c = first; c < end; c++) {
                value = gf_result_cell(result, index, row, c);
                print_cell(file, &value, widths[c], c + 1 == end);
            }
            putc('\n', file);
        }
    } while (end < table->column_count);
}

/* ---- bars ------------------------------------------------------------------------------------ */

static bool is_utf8(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (!value || !*value)
            continue;
        const char *charset = strchr(value, '.');
        return charset &&
               (strncasecmp(charset, ".utf-8", 6) == 0 || strncasecmp(charset, ".utf8", 5) == 0);
    }
    return false;
}

gf_cli_screen gf_cli_screen_of(FILE *file) {
    struct winsize size;
    const bool known = ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return (gf_cli_screen){.width = known ? size.ws_col : NO_WIDTH,
                           .utf8 = is_utf8(),
                           .terminal = isatty(fileno(file)),
                           .colour = gf_cli_colour_on(file)};
}

/* A channel has its own; what is no channel, or has none, the terminal's. */
static gf_cli_paint paint_of(const char *curve) {
    return strcmp(curve, "r") == 0   ? GF_PAINT_RED
           : strcmp(curve, "g") == 0 ? GF_PAINT_GREEN
           : strcmp(curve, "b") == 0 ? GF_PAINT_BLUE
                                     : GF_PAINT_OFF;
}

/* Whatever is there shows, be it ever so small. */
static void print_bar(FILE *file, double part, int cells, bool utf8) {
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int units = utf8 ? 8 : 1;
    int length = (int)(part * cells * units + 0.5);
    if (length == 0 && part > 0)
        length = 1;
    for (int i = 0; i < length / units; i++)
        fputs(utf8 ? "█" : "#", file);
    if (utf8)
        fputs(eighths[length % 8], file);
}

/* A table of bins as it is drawn: several of them on one line where it would be too long. */
typedef struct gf_bars {
    const gf_result *result;
    size_t index;
    const gf_table *table;
    uint64_t step, lines; /* rows on a line */
    char range[64];       /* "8-15" */
} gf_bars;

static gf_value sum_of(const gf_bars *bars, uint64_t row, uint64_t end, size_t column) {
    gf_value sum = {.type = GF_VALUE_UINT};
    for (; row < end; row++) {
        const gf_value value = gf_result_cell(bars->result, bars->index, row, column);
        sum.high += value.high + (sum.low > UINT64_MAX - value.low);
        sum.low += value.low;
    }
    return sum;
}

/* A cell of a line: which rows it has, from where to where they reach, the sum of a curve. */
static gf_value bars_cell(gf_bars *bars, uint64_t line, size_t column) {
    const gf_table *table = bars->table;
    const uint64_t row = line * bars->step;
    const uint64_t end = row + bars->step < table->row_count ? row + bars->step : table->row_count;
    if (column >= table->curves)
        return sum_of(bars, row, end, column);
    const gf_value first = gf_result_cell(bars->result, bars->index, row, column);
    const gf_value last = gf_result_cell(bars->result, bars->index, end - 1, column);
    if (column > 0 || bars->step == 1)
        return strcmp(table->columns[column].name, "to") == 0 ? last : first;
    char from[24], to[24];
    gf_value_format(&first, from, sizeof from);
    gf_value_format(&last, to, sizeof to);
    snprintf(bars->range, sizeof bars->range, "%s-%s", from, to);
    return (gf_value){.type = GF_VALUE_TEXT, .text = bars->range};
}

static int bars_width(gf_bars *bars, size_t column) {
    int width = 0;
    for (uint64_t line = 0; line < bars->lines; line++) {
        char number[40];
        const gf_value value = bars_cell(bars, line, column);
        const int n = text_width(cell_text(&value, number));
        width = n > width ? n : width;
    }
    return width;
}

/* One line for the bins of a line and a curve: which bins, the value, its share of the curve, a
 * bar. */
static void print_bars(FILE *file, const gf_result *result, size_t index,
                       const gf_cli_screen *screen) {
    const gf_table *table = gf_result_table(result, index);
    gf_bars bars = {.result = result, .index = index, .table = table, .step = 1};
    if (screen->terminal && table->brief)
        bars.step = (table->row_count + table->brief - 1) / table->brief;
    bars.lines = (table->row_count + bars.step - 1) / bars.step;
    const bool several = table->column_count - table->curves > 1;
    double sums[GF_MAX_COLUMNS] = {0}, most = 0;
    int names = 0, values = several ? 0 : text_width(table->columns[table->curves].name);
    for (size_t c = table->curves; c < table->column_count; c++) {
        int name = text_width(table->columns[c].name), width = bars_width(&bars, c);
        names = several && name > names ? name : names;
        values = width > values ? width : values;
        for (uint64_t line = 0; line < bars.lines; line++) {
            gf_value value = bars_cell(&bars, line, c);
            double x = gf_cli_number(&value);
            sums[c] += x;
            most = x > most ? x : most;
        }
    }
    int widths[GF_MAX_COLUMNS], used = (several ? names + GAP : 0) + values + GAP + SHARE + GAP;
    for (size_t c = 0; c < table->curves; c++) {
        widths[c] = bars_width(&bars, c);
        used += print_name(file, &table->columns[c], &widths[c], false);
    }
    if (several)
        print_padded(file, "", names, false, false);
    print_padded(file, several ? "" : table->columns[table->curves].name, values, true, false);
    print_padded(file, "share", SHARE, true, true);
    putc('\n', file);

    int cells = screen->width - used;
    cells = cells < MIN_BAR ? MIN_BAR : cells > MAX_BAR ? MAX_BAR : cells;
    for (uint64_t line = 0; line < bars.lines; line++) {
        for (size_t c = table->curves; c < table->column_count; c++) {
            for (size_t i = 0; i < table->curves; i++) {
                char number[40];
                gf_value value = bars_cell(&bars, line, i);
                print_padded(file, c == table->curves ? cell_text(&value, number) : "", widths[i],
                             true, false);
            }
            gf_value value = bars_cell(&bars, line, c);
            double x = gf_cli_number(&value);
            if (several)
                print_padded(file, table->columns[c].name, names, false, false);
            print_cell(file, &value, values, false);
            fprintf(file, "%*.2f%%", SHARE - 1, sums[c] > 0 ? 100 * x / sums[c] : 0.0);
            if (x > 0) {
                const gf_cli_paint paint = paint_of(table->columns[c].name);
                const bool colour = screen->colour && paint != GF_PAINT_OFF;
                fprintf(file, "%*s%s", GAP, "", gf_cli_paint_text(colour, paint));
                print_bar(file, x / most, cells, screen->utf8);
                fputs(gf_cli_paint_text(colour, GF_PAINT_OFF), file);
            }
            putc('\n', file);
        }
    }
    if (bars.step > 1)
        fprintf(file, "(%" PRIu64 " %s, %" PRIu64 " a line; --%s %" PRIu64 " shows each)\n",
                table->row_count, table->name, bars.step, table->name, table->row_count);
}

void gf_cli_report_text(FILE *file, const gf_cli_run *run) {
    char format[64];
    const gf_cli_screen screen = run->screen ? *run->screen : gf_cli_screen_of(file);
    gf_cli_format_text(&run->report->in, format, sizeof format);
    fputs(gf_cli_paint_text(screen.colour, GF_PAINT_STRONG), file);
    for (uint32_t i = 0; i < run->info->inputs; i++) {
        fputs(i ? ", " : "", file);
        gf_cli_print_name(file, run->inputs[i], "standard input");
    }
    fprintf(file, ": %s, by %s%s\n", format, run->report->backend,
            gf_cli_paint_text(screen.colour, GF_PAINT_OFF));
    for (size_t t = 0; t < gf_result_table_count(run->result); t++) {
        const gf_table *table = gf_result_table(run->result, t);
        if (!table->for_people || table->row_count == 0)
            continue;
        putc('\n', file);
        if (table->single)
            print_single(file, run->result, t);
        else if (table->chart == GF_CHART_BARS)
            print_bars(file, run->result, t, &screen);
        else
            print_table(file, run->result, t, screen.width);
    }
    const char *text = gf_result_text(run->result);
    if (!*text)
        return;
    const bool colour = screen.colour && run->info->is_test;
    const gf_cli_paint paint = gf_result_passed(run->result) ? GF_PAINT_GOOD : GF_PAINT_BAD;
    fprintf(file, "\n%s%.*s%s\n", gf_cli_paint_text(colour, paint), (int)strlen(text) - 1, text,
            gf_cli_paint_text(colour, GF_PAINT_OFF));
}
