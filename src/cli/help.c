/* Help, made from the same tables that the parser reads. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "inputs.h"
#include "ranks.h"
#include "report.h"

#define NAME_COLUMN 26 /* where the descriptions begin */
#define LINE_WIDTH 79

const char gf_about_summary[] = "image filters with the same bits on CPU and GPU";

const gf_about_exit gf_about_exits[] = {
    {"0", "good", "All that was asked for was done.", "The images are the same."},
    {"1", "a file failed or images differ",
     "A file, an image, memory or the system failed. A line on standard error says which, why, and "
     "what to do.",
     "The images differ."},
    {"2", "usage (or compare could not compare)", "An option or an operand is not acceptable.",
     "The images could not be compared, or an option or an operand is not acceptable."},
    {"3", "no such backend or device", "The backend or device that was asked for is not there.",
     "The backend or device that was asked for is not there."},
    {"128 + n", "on signal n", "Signal n ended the program, as a shell tells it.",
     "Signal n ended the program, as a shell tells it."},
    {0}};

/* Print words from column `indent` on, wrapped. */
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

/* What a value may be, and the default: " (0 to 127; default 2)". */
static void describe_values(const gf_param *param, char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    if (param->type == GF_PARAM_INT)
        used = (size_t)snprintf(text, size, "%.0f to %.0f", param->min, param->max);
    else if (param->type == GF_PARAM_FLOAT)
        used = (size_t)snprintf(text, size, "%.10g to %.10g", param->min, param->max);
    for (size_t i = 0; param->choices && param->choices[i] && used < size; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", param->choices[i]);
    if (param->fallback && used < size)
        snprintf(text + used, size - used, "%sdefault %s", used ? "; " : "", param->fallback);
}

static void print_param(const gf_param *param) {
    char values[256], help[512];
    describe_values(param, values, sizeof values);
    snprintf(help, sizeof help, values[0] ? "%s (%s)" : "%s", param->help, values);
    int used = param->letter ? printf("  -%c, ", param->letter) : printf("      ");
    used += printf("--%s", param->name);
    if (param->metavar)
        used += printf(" %s", param->metavar);
    if (used >= NAME_COLUMN) {
        putchar('\n');
        used = 0;
    }
    printf("%*s", NAME_COLUMN - used, "");
    print_wrapped(NAME_COLUMN, help);
    putchar('\n');
}

static void help_heading(const char *text) {
    const bool colour = gf_cli_colour_on(stdout);
    printf("%s%s:%s\n", gf_cli_paint_text(colour, GF_PAINT_STRONG), text,
           gf_cli_paint_text(colour, GF_PAINT_OFF));
}

static void print_common(const gf_filter_info *info) {
    gf_param common[GF_CLI_MAX_COMMON];
    const size_t count = gf_cli_common(info, common);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || common[i].group != common[i - 1].group) {
            putchar('\n');
            help_heading(common[i].group);
        }
        print_param(&common[i]);
    }
}

static void print_examples(const gf_filter_info *info) {
    putchar('\n');
    help_heading("Examples");
    for (const char *line = info->examples; *line; line += strcspn(line, "\n") + 1)
        printf("  %.*s\n", (int)strcspn(line, "\n"), line);
}

/* "Reads  PNG, PGM and PPM" */
static void print_formats(const char *verb, bool written) {
    const char *last = NULL, *gap = " ";
    for (const gf_about_format *format = gf_about_formats; format->name; format++)
        if (written ? format->written : format->read)
            last = format->name;
    printf("%-6s", verb);
    for (const gf_about_format *format = gf_about_formats; format->name; format++)
        if (written ? format->written : format->read) {
            printf("%s%s", format->name == last ? " and " : gap, format->name);
            gap = ", ";
        }
    putchar('\n');
}

static void print_exits(void) {
    char text[512] = "";
    size_t used = 0;
    for (const gf_about_exit *row = gf_about_exits; row->code && used < sizeof text; row++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %s",
                                 used ? ", " : "Exit codes: ", row->code, row->brief);
    print_wrapped(0, text);
    printf(".\n");
}

/* Fits on a screen of 24 lines, with the prompt that follows. */
void gf_cli_help(void) {
    printf(
        "gpufilter %s: %s\n"
        "Usage: gpufilter FILTER [OPTION]... IN [OUT]\n"
        "       gpufilter FILTER [OPTION]... --out-dir DIR IN...\n"
        "       gpufilter COMMAND [OPTION]... [FILE]...\n"
        "       gpufilter help FILTER\n\n",
        gf_version(), gf_about_summary);
    help_heading("Filters");
    for (size_t i = 0; i < gf_filter_count(); i++) {
        const gf_filter_info *info = gf_filter_describe(gf_filter_at(i));
        printf("  %-12s %s\n", info->name, info->summary);
    }
    putchar('\n');
    help_heading("Commands");
    for (size_t i = 0; gf_command_at(i); i++) {
        const gf_filter_info *info = &gf_command_at(i)->info;
        printf("  %-12s %s\n", info->name, info->summary);
    }
    putchar('\n');
    print_formats("Reads", false);
    print_formats("Writes", true);
}

void gf_cli_help_filter(const gf_filter_info *info) {
    const bool many = info->inputs == 1 && !info->is_test;
    printf("Usage: gpufilter %s [OPTION]... %s\n", info->name, info->operands);
    if (many)
        printf("       gpufilter %s [OPTION]... %sIN...\n", info->name,
               info->makes_image ? "--out-dir DIR " : "");
    printf("%s: %s.\n\n%s%s", info->name, info->summary, info->details,
           info->param_count > 0 ? "\n" : "");
    if (info->param_count > 0)
        help_heading("What it computes");
    for (size_t i = 0; i < info->param_count; i++)
        print_param(&info->params[i]);
    print_common(info);
    printf("\nA file named - is standard input or output.\n");
    if (many)
        printf("Of many inputs one that fails does not stop the others; the exit code is 1.\n%s",
               info->makes_image
                   ? ""
                   : "Each is measured by itself; a CSV table has the file in a first column.\n");
    print_exits();
    print_examples(info);
}

void gf_cli_help_command(const gf_command *command) {
    const gf_filter_info *info = &command->info;
    gf_param shared[GF_CLI_MAX_COMMON];
    const size_t count = gf_command_shared(command, shared);
    printf("Usage: gpufilter %s [OPTION]...%s%s\n", info->name, info->operands[0] ? " " : "",
           info->operands);
    printf("%s: %s.\n\n%s\n", info->name, info->summary, info->details);
    help_heading("Options");
    for (size_t i = 0; i < info->param_count; i++)
        print_param(&info->params[i]);
    for (size_t i = 0; i < count; i++)
        print_param(&shared[i]);
    print_examples(info);
}

void gf_cli_version(void) {
    char processor[64];
    gf_processor(processor, sizeof processor);
    printf("gpufilter %s\n", gf_version());
    if (gf_has_cuda())
        printf("CUDA for sm %s, ", gf_cuda_architectures());
    else
        printf("no CUDA, ");
    printf("%scairo, %sMPI; SIMD here: %s\n", gf_cli_has_plots ? "" : "no ",
           gf_mpi_peers ? "" : "no ", strrchr(processor, ' ') + 1);
}
