/* gpufilter info: what files hold. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "gather.h"
#include "json.h"
#include "report.h"

/* "1.2 MB" */
static void print_bytes(double bytes) {
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
    size_t unit = 0;
    while (bytes >= 999.5 && unit + 1 < sizeof units / sizeof units[0]) {
        bytes /= 1000;
        unit++;
    }
    printf(unit && bytes < 9.95 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

static double pixel_bytes(const gf_format *format) {
    static const double sample_bytes[] = {1, 2, 4};
    return (double)format->width * (double)format->height * format->channels *
           sample_bytes[format->type];
}

static void print_text(const char *path, const gf_file_info *info) {
    char format[64];
    gf_cli_format_text(&info->format, format, sizeof format);
    gf_cli_print_name(stdout, path, "standard input");
    printf(": ");
    for (const char *c = info->kind; *c; c++)
        putchar(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    printf(", %s (%s), ", format, info->stored);
    print_bytes(pixel_bytes(&info->format));
    printf(" of pixels%s%s\n", info->metadata[0] ? ", metadata: " : "", info->metadata);
}

static void print_json(const char *path, const gf_file_info *info) {
    printf("{\"schema\": \"gpufilter-info\", \"version\": 1, ");
    gf_json_name(stdout, "file", path);
    printf(", \"kind\": \"%s\", \"image\": ", info->kind);
    gf_json_format(stdout, &info->format);
    printf(", \"stored\": ");
    gf_json_text(stdout, info->stored);
    printf(", \"metadata\": [");
    for (const char *name = info->metadata; *name;) {
        char one[sizeof info->metadata];
        const size_t length = strcspn(name, " ");
        snprintf(one, sizeof one, "%.*s", (int)length, name);
        gf_json_text(stdout, one);
        name += length + strspn(name + length, " ");
        printf("%s", *name ? ", " : "");
    }
    printf("]}\n");
}

static gf_status run(const gf_cli_line *line, gf_error *error) {
    const bool json = gf_settings_flag(line->filter, "json");
    char skipped[160];
    const gf_file_options options = gf_command_file_options(line);
    gf_cli_inputs inputs = {0};
    gf_status status = gf_cli_check_common(&gf_info_command.info, line, error);
    if (!status)
        status = gf_cli_gather(gf_info_command.info.name, line, NULL, &inputs, error);
    if (status) {
        gf_cli_inputs_free(&inputs);
        return status;
    }
    gf_status worst = inputs.failed ? GF_FAILED : GF_OK;
    for (size_t i = 0; i < inputs.count; i++) {
        const char *path = inputs.list[i].path;
        gf_file_info info;
        gf_error one;
        status = gf_inspect_file(path, &options, &info, &one);
        if (status) {
            gf_cli_complain(&one);
            worst = status;
        } else if (json) {
            print_json(path, &info);
        } else {
            print_text(path, &info);
        }
    }
    gf_cli_skipped_text(&inputs, skipped, sizeof skipped);
    if (*skipped)
        fprintf(stderr, "%s\n", skipped);
    gf_cli_inputs_free(&inputs);
    return worst;
}

static const char *const shared[] = {
    "files-from",  "null",       "recursive", "raw",  "max-memory", "max-pixels", "max-chunk",
    "max-seconds", "no-sandbox", "color",     "help", "version",    NULL};

static const gf_param params[] = {
    {.name = "json", .type = GF_PARAM_FLAG, .help = "print a line of JSON for each file"},
};

const gf_command gf_info_command = {
    .info = {.name = "info",
             .summary = "tell what image files hold",
             .operands = "FILE...",
             .details =
                 "A line for each file: its kind, size, channels and type of samples as filters\n"
                 "get them, how the file holds them, and the names of the metadata chunks before\n"
                 "the pixels. Of most files only the beginning is read. A file that cannot be\n"
                 "read does not stop the others; the exit code is then 1.\n",
             .examples = "gpufilter info *.png\n"
                         "gpufilter info --json - <scan.png\n",
             .inputs = 1,
             .params = params,
             .param_count = sizeof params / sizeof params[0]},
    .shared = shared,
    .most = SIZE_MAX,
    .run = run,
};
