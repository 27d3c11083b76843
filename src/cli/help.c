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
    if (param->type == GF_PARAM_INT || param->type == GF_PARAM_FLOAT)
        used = (size_t)snprintf(text, size, "%.15g to %.15g", param->min, param->max);
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

static void print_names(const char *heading, bool filters) {
    gf_command command;
    help_heading(heading);
    for (size_t i = 0; (command = gf_command_at(i)).info.name; i++)
        if ((command.filter != NULL) == filters)
            printf("  %-12s %s\n", command.info.name, command.info.summary);
    putchar('\n');
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
    print_names("Filters", true);
    print_names("Commands", false);
    print_formats("Reads", false);
    print_formats("Writes", true);
}

/* Print what holds for files of a filter; many: of which it takes any number. */
static void print_files(const gf_filter_info *info, bool many) {
    printf("\nA file named - is standard input or output.\n");
    if (many)
        printf("Of many inputs one that fails does not stop the others; the exit code is 1.\n%s",
               info->makes_image
                   ? ""
                   : "Each is measured by itself; a CSV table has the file in a first column.\n");
    printf(
        "Exit codes: 0 good, 1 a file failed or images differ, 2 usage (or compare could\n"
        "not compare), 3 no such backend or device, 128 + n on signal n.\n");
}

void gf_cli_help_command(const gf_command *command) {
    const gf_filter_info *info = &command->info;
    const bool many = command->filter && info->inputs == 1 && !info->is_test;
    gf_param params[GF_CLI_MAX_PARAMS];
    const size_t count = gf_command_params(command, params);
    printf("Usage: gpufilter %s [OPTION]...%s%s\n", info->name, info->operands[0] ? " " : "",
           info->operands);
    if (many)
        printf("       gpufilter %s [OPTION]... %sIN...\n", info->name,
               info->makes_image ? "--out-dir DIR " : "");
    printf("%s: %s.\n\n%s", info->name, info->summary, info->details);
    for (size_t i = 0; i < count; i++) {
        const char *group = params[i].group;
        if (i == 0 || (command->filter && group != params[i - 1].group)) {
            putchar('\n');
            help_heading(!command->filter ? "Options" : group ? group : "What it computes");
        }
        print_param(&params[i]);
    }
    if (command->filter)
        print_files(info, many);
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
    printf("%scairo, %sMPI; SIMD here: %s\n", gf_cli_plot_open ? "" : "no ",
           gf_mpi_peers ? "" : "no ", strrchr(processor, ' ') + 1);
}
