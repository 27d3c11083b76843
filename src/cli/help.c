/* Help, made from the same tables that the parser reads. */
#include <stdio.h>
#include <string.h>

#include "about.h"
#include "colour.h"
#include "commands.h"
#include "plot.h"
#include "ranks.h"

#define NAME_COLUMN 26 /* where the descriptions begin */
#define LINE_WIDTH 79

/* Text from NAME_COLUMN on, wrapped; `used` columns of the first line are taken. */
static void print_wrapped(int used, const char *text) {
    if (used >= NAME_COLUMN) {
        putchar('\n');
        used = 0;
    }
    printf("%*s", NAME_COLUMN - used, "");
    int column = NAME_COLUMN;
    while (*text) {
        int word = (int)strcspn(text, " ");
        if (column > NAME_COLUMN && column + 1 + word > LINE_WIDTH) {
            printf("\n%*s", NAME_COLUMN, "");
            column = NAME_COLUMN;
        } else if (column > NAME_COLUMN) {
            putchar(' ');
            column++;
        }
        printf("%.*s", word, text);
        column += word;
        text += word;
        text += strspn(text, " ");
    }
    putchar('\n');
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
    print_wrapped(used + 1 > NAME_COLUMN ? NAME_COLUMN : used, help);
}

static void print_heading(const char *text) {
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
            print_heading(common[i].group);
        }
        print_param(&common[i]);
    }
}

static void print_examples(const gf_filter_info *info) {
    putchar('\n');
    print_heading("Examples");
    for (const char *line = info->examples; *line; line += strcspn(line, "\n") + 1)
        printf("  %.*s\n", (int)strcspn(line, "\n"), line);
}

/* Fits on a screen of 24 lines, with the prompt that follows. */
void gf_cli_help(void) {
    char reads[128], writes[128];
    gf_about_list_formats(false, reads, sizeof reads);
    gf_about_list_formats(true, writes, sizeof writes);
    printf(
        "gpufilter %s: %s\n"
        "Usage: gpufilter FILTER [OPTION]... IN [OUT]\n"
        "       gpufilter FILTER [OPTION]... --out-dir DIR IN...\n"
        "       gpufilter COMMAND [OPTION]... [FILE]...\n"
        "       gpufilter help FILTER\n\n",
        gf_version(), gf_about_summary);
    print_heading("Filters");
    for (size_t i = 0; i < gf_filter_count(); i++) {
        const gf_filter_info *info = gf_filter_describe(gf_filter_at(i));
        printf("  %-12s %s\n", info->name, info->summary);
    }
    putchar('\n');
    print_heading("Commands");
    for (size_t i = 0; gf_command_at(i); i++) {
        const gf_filter_info *info = &gf_command_at(i)->info;
        printf("  %-12s %s\n", info->name, info->summary);
    }
    printf("\nReads  %s\nWrites %s\n", reads, writes);
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
        print_heading("What it computes");
    for (size_t i = 0; i < info->param_count; i++)
        print_param(&info->params[i]);
    print_common(info);
    printf("\nA file named - is standard input or output.\n");
    if (many)
        printf("Of many inputs one that fails does not stop the others; the exit code is 1.\n%s",
               info->makes_image
                   ? "What is finished is noted in DIR/.gpufilter-done*, for --resume.\n"
                   : "Each is measured by itself; a CSV table has the file in a first column.\n");
    gf_about_print_exits(LINE_WIDTH);
    print_examples(info);
}

void gf_cli_help_command(const gf_filter_info *info, const gf_param *shared, size_t count) {
    printf("Usage: gpufilter %s [OPTION]...%s%s\n", info->name, info->operands[0] ? " " : "",
           info->operands);
    printf("%s: %s.\n\n%s\n", info->name, info->summary, info->details);
    print_heading("Options");
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
           gf_cli_has_ranks ? "" : "no ", strrchr(processor, ' ') + 1);
}
