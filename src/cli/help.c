/* Help and version texts, from the tables that the parser and the manual pages read. -h prints at
 * most BRIEF_LINES lines of LINE_WIDTH columns; --help prints everything. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "ranks.h"
#include "report.h"

#define NAME_COLUMN 26 /* column of the descriptions in --help */
#define LINE_WIDTH 79
#define BRIEF_LINES 24 /* a terminal of 80x24 */

const char gf_help_summary[] = "image filters with the same bits on CPU and GPU";

const gf_help_code gf_help_codes[] = {
    {"0", "success", "the images are equal"},
    {"1", "an input, an output, memory or the system failed", "the images differ"},
    {"2", "invalid option or operand",
     "invalid option or operand, or the images could not be compared"},
    {"3", "the requested backend or device is not available", NULL},
    {"128 + n", "terminated by signal n", NULL},
    {0}};

/* ---- text ------------------------------------------------------------------------------------ */

/* Print words from column `indent` on, wrapped at LINE_WIDTH. */
static void print_wrapped(int indent, const char *text) {
    int column = indent;
    while (*text) {
        const int word = (int)strcspn(text, " ");
        if (column > indent && column + 1 + word > LINE_WIDTH) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        column += printf("%.*s", word, text);
        text += word;
        text += strspn(text, " ");
    }
}

void gf_help_sentence(FILE *file, const char *phrase) {
    const bool name = phrase[strcspn(phrase, " ") - 1] == ':' || !isalpha((unsigned char)phrase[1]);
    const bool raised = !name && *phrase >= 'a' && *phrase <= 'z';
    const char *end = phrase + strlen(phrase);
    fprintf(file, "%c%s%s\n", raised ? *phrase - 'a' + 'A' : *phrase, phrase + 1,
            end - phrase > 3 && strcmp(end - 3, "...") == 0 ? "" : ".");
}

static void help_heading(const char *text) {
    printf(gf_cli_colour_on(stdout) ? GF_PAINT_STRONG "%s:" GF_PAINT_OFF "\n" : "%s:\n", text);
}

/* ---- options --------------------------------------------------------------------------------- */

/* Write the range or the choices, and the default: "range: 0..127; default: 2". */
static void describe_values(const gf_param *param, char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    if (param->type == GF_PARAM_INT || param->type == GF_PARAM_FLOAT ||
        param->type == GF_PARAM_PAIR || param->type == GF_PARAM_INT_PAIR)
        used = (size_t)snprintf(text, size, "range: %.15g..%.15g", param->min, param->max);
    for (size_t i = 0; param->choices && param->choices[i] && used < size; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", param->choices[i]);
    if (param->fallback && used < size)
        snprintf(text + used, size - used, "%sdefault: %s", used ? "; " : "", param->fallback);
}

/* Write "  -r, --radius R". Return its width. */
static int describe_name(const gf_param *param, char *text, size_t size) {
    const char letter[] = {'-', param->letter, ',', 0};
    return snprintf(text, size, "  %-3s --%s%s%s", param->letter ? letter : "", param->name,
                    param->metavar ? " " : "", param->metavar ? param->metavar : "");
}

static void print_param(const gf_param *param) {
    char name[64], values[256], help[512];
    describe_values(param, values, sizeof values);
    snprintf(help, sizeof help, values[0] ? "%s (%s)" : "%s", param->help, values);
    const int used = describe_name(param, name, sizeof name);
    printf(used >= NAME_COLUMN ? "%s\n%*s" : "%s%*s", name,
           used >= NAME_COLUMN ? NAME_COLUMN : NAME_COLUMN - used, "");
    print_wrapped(NAME_COLUMN, help);
    putchar('\n');
}

/* Print an option on one line: its help up to the first "; ", cut at a word if it is too long, and
 * values and default, or the default alone, if they fit. */
static void print_param_brief(const gf_param *param, int column) {
    char name[64], text[96], values[256];
    const char *help = param->help, *end = strstr(help, "; ");
    const int width = LINE_WIDTH - column;
    int length = (int)(end ? (size_t)(end - help) : strlen(help));
    const bool cut = length > width;
    if (cut)
        for (length = width - 3; length > 0 && help[length] != ' '; length--)
            ;
    describe_name(param, name, sizeof name);
    int used = snprintf(text, sizeof text, "%.*s%s", length, help, cut ? "..." : "");
    describe_values(param, values, sizeof values);
    if (used + (int)strlen(values) + 3 > width)
        snprintf(values, sizeof values, "%s%s", param->fallback ? "default: " : "",
                 param->fallback ? param->fallback : "");
    if (values[0] && used + (int)strlen(values) + 3 <= width)
        snprintf(text + used, sizeof text - (size_t)used, " (%s)", values);
    printf("%-*s%s\n", column, name, text);
}

/* Print a filter's own options and the most used shared ones, or all options if they fit into `max`
 * lines. Separate the groups by an empty line if it fits. */
static void print_params_brief(const gf_command *command, const gf_param *params, size_t count,
                               size_t max) {
    const size_t own = command->info.param_count;
    const gf_param *shown[BRIEF_LINES];
    size_t shown_count = 0;
    char name[64];
    int column = 0;
    for (size_t i = 0; i < count && shown_count < max; i++) {
        if (count > max && i >= own && !gf_cli_in_brief_help(&params[i]))
            continue;
        const int width = describe_name(&params[i], name, sizeof name) + 2;
        column = width > column ? width : column;
        shown[shown_count++] = &params[i];
    }
    for (size_t i = 0; i < shown_count; i++) {
        if (i > 0 && shown[i] >= params + own && shown[i - 1] < params + own && shown_count < max)
            putchar('\n');
        print_param_brief(shown[i], column);
    }
}

/* ---- formats, names and exit codes ----------------------------------------------------------- */

/* Append the names of the formats that are read, written or both: "reads PNG, PGM and PPM". */
static void add_formats(char *text, size_t size, const char *verb, bool read, bool written) {
    gf_codec_info format;
    size_t left = 0;
    for (size_t i = 0; gf_codec_describe(i, &format); i++)
        left += format.read == read && format.written == written;
    const size_t all = left;
    for (size_t i = 0; gf_codec_describe(i, &format); i++)
        if (format.read == read && format.written == written) {
            const size_t used = strlen(text);
            const char *gap = left == all ? " " : left == 1 ? " and " : ", ";
            snprintf(text + used, size - used, "%s%s%s", left-- == all ? verb : "", gap,
                     format.label);
        }
}

static void print_names(const char *heading, bool filters) {
    gf_command command;
    help_heading(heading);
    for (size_t i = 0; (command = gf_command_at(i)).info.name; i++)
        if ((command.filter != NULL) == filters)
            printf("  %-12s %s\n", command.info.name, command.info.summary);
    putchar('\n');
}

static void print_codes(bool test) {
    putchar('\n');
    help_heading("Exit status");
    for (const gf_help_code *row = gf_help_codes; row->code; row++)
        printf("  %-8s %s\n", row->code, test && row->test ? row->test : row->meaning);
}

/* ---- whole texts ----------------------------------------------------------------------------- */

/* Print options below the headings of their groups. own: heading of options without a group. */
static void print_groups(const gf_param *params, size_t count, const char *own) {
    for (size_t i = 0; i < count; i++) {
        const char *group = params[i].group;
        if (i == 0 || group != params[i - 1].group) {
            putchar('\n');
            help_heading(group ? group : own);
        }
        print_param(&params[i]);
    }
}

void gf_cli_help(bool all) {
    char formats[512] = "";
    printf(
        "Usage: gpufilter FILTER [OPTION]... IN [OUT]\n"
        "  or:  gpufilter FILTER [OPTION]... --out-dir DIR IN...\n"
        "  or:  gpufilter COMMAND [OPTION]... [FILE]...\n");
    gf_help_sentence(stdout, gf_help_summary);
    putchar('\n');
    print_names("Filters", true);
    print_names("Commands", false);
    if (all) {
        add_formats(formats, sizeof formats, "Reads and writes", true, true);
        add_formats(formats, sizeof formats, "; reads", true, false);
        add_formats(formats, sizeof formats, "; writes", false, true);
        print_wrapped(0, formats);
        putchar('\n');
        gf_param params[GF_CLI_MAX_COMMON];
        const size_t count = gf_cli_common(NULL, params);
        print_groups(params, count, "");
        print_codes(false);
        putchar('\n');
    }
    printf("Run 'gpufilter NAME -h' for the main options, or --help for all options.\n");
}

void gf_cli_help_command(const gf_command *command, bool all) {
    const gf_filter_info *info = &command->info;
    const bool many = command->filter && info->inputs == 1 && !info->is_test;
    gf_param params[GF_CLI_MAX_PARAMS];
    const size_t count = gf_command_params(command, params);
    printf("Usage: gpufilter %s [OPTION]...%s%s\n", info->name, info->operands[0] ? " " : "",
           info->operands);
    if (many)
        printf("  or:  gpufilter %s [OPTION]... %sIN...\n", info->name,
               info->makes_image ? "--out-dir DIR " : "");
    gf_help_sentence(stdout, info->summary);
    putchar('\n');
    if (!all) {
        /* Usage, summary, two blank lines and the last line are printed as well. */
        print_params_brief(command, params, count, BRIEF_LINES - (many ? 6 : 5));
        printf("\nRun 'gpufilter %s --help' for %s and examples.\n", info->name,
               command->shared ? "details" : "all options");
        return;
    }
    printf("%s", info->details);
    if (!command->shared) {
        print_groups(params, count, command->filter ? "Filter options" : "Options");
        printf("\nThe file name - means standard input or standard output.\n");
        if (many)
            printf("In a batch, a failed input does not stop the others; the exit status is 1.\n%s",
                   info->makes_image ? ""
                                     : "A CSV table of a batch has the file name in its first "
                                       "column.\n");
    } else {
        putchar('\n');
        help_heading("Options");
        for (size_t i = 0; i < count; i++)
            print_param(&params[i]);
    }
    print_codes(info->is_test);
    putchar('\n');
    help_heading("Examples");
    for (const char *line = info->examples; *line; line += strcspn(line, "\n") + 1)
        printf("  %.*s\n", (int)strcspn(line, "\n"), line);
}

void gf_cli_version(void) {
    char processor[64];
    gf_processor(processor, sizeof processor);
    printf("gpufilter %s\n", gf_version());
    if (gf_has_cuda())
        printf("CUDA for sm %s, ", gf_cuda_architectures());
    else
        printf("no CUDA, ");
    printf("%scairo, %sMPI; SIMD: %s\n", gf_cli_plot_open ? "" : "no ", gf_mpi_peers ? "" : "no ",
           strrchr(processor, ' ') + 1);
    printf("Copyright (c) 2026 The gpufilter authors; MIT License\n");
}
