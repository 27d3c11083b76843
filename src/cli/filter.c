/* Running a filter command. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static const char *channel_names[] = {"", "grey", "grey+alpha", "RGB", "RGBA"};
static const char *type_names[] = {"u8", "u16", "f32"};

static void print_report(const char *out, const gf_report *report, bool verbose) {
    const gf_format *format = &report->in;
    double megapixels = (double)format->width * (double)format->height * 1e-6;
    fprintf(stderr, "%s: %" PRIu64 "x%" PRIu64 " %s %s by %s (%s) in %.3f s, %.0f MP/s\n",
            strcmp(out, "-") == 0 ? "standard output" : out, format->width, format->height,
            channel_names[format->channels], type_names[format->type], report->backend,
            report->device, report->total_seconds, megapixels / report->total_seconds);
    if (!verbose)
        return;
    if (report->reason[0])
        fprintf(stderr, "  auto: %s\n", report->reason);
    fprintf(stderr,
            "  %" PRIu64 " band%s of %" PRIu64
            " rows; starting %.3f s, decoding %.3f s, encoding %.3f s, waiting for the backend "
            "%.3f s\n",
            report->bands, report->bands == 1 ? "" : "s", report->band_rows, report->start_seconds,
            report->decode_seconds, report->encode_seconds, report->compute_seconds);
}

static gf_status run(const gf_filter *filter, const gf_cli_line *line, gf_error *error) {
    const gf_settings *common = line->common;
    const gf_filter_info *info = gf_filter_describe(filter);
    const char *out = info->makes_image ? line->operands[info->inputs] : line->operands[0];
    const gf_engine_options engine_options = {
        .backend = gf_settings_text(common, "backend"),
        .devices = gf_settings_text(common, "device"),
        .simd = gf_settings_text(common, "simd"),
        .threads = (uint32_t)gf_settings_int(common, "threads"),
        .band_rows = (uint64_t)gf_settings_int(common, "band-rows"),
        .max_memory = gf_settings_size(common, "max-memory"),
    };
    const gf_file_options file_options = {
        .format = gf_settings_text(common, "format"),
        .force = gf_settings_flag(common, "force"),
        .strip = gf_settings_flag(common, "strip"),
        .compression = 1 + (int)gf_settings_int(common, "compression"),
        .max_pixels = gf_settings_size(common, "max-pixels"),
        .max_memory = gf_settings_size(common, "max-memory"),
        .max_chunk = gf_settings_size(common, "max-chunk"),
    };
    gf_engine *engine = NULL;
    gf_report report;
    gf_result *result = NULL;
    gf_status status = gf_engine_open(&engine_options, &engine, error);
    if (!status)
        status =
            gf_run_file(engine, filter, line->filter, line->operands,
                        info->makes_image ? out : NULL, &file_options, &result, &report, error);
    gf_engine_close(engine);
    bool verbose = gf_settings_flag(common, "verbose");
    bool quiet = gf_settings_flag(common, "quiet") || (!verbose && !isatty(STDERR_FILENO));
    if (!status && !quiet)
        print_report(out, &report, verbose);
    gf_result_free(result);
    return status;
}

gf_status gf_cli_filter(const gf_filter *filter, int argc, char **argv, gf_error *error) {
    const gf_filter_info *info = gf_filter_describe(filter);
    gf_cli_line line;
    gf_status status = gf_cli_parse(argc, argv, info, &line, error);
    if (status)
        goto done;
    if (gf_settings_flag(line.common, "help")) {
        gf_cli_help_filter(info);
    } else if (gf_settings_flag(line.common, "version")) {
        printf("gpufilter %s\n", gf_version());
    } else if (line.operand_count != info->inputs + (info->makes_image ? 1u : 0u)) {
        status = gf_cli_fail(
            error, GF_USAGE, "%s: takes %s, got %zu file%s; see 'gpufilter %s --help'", info->name,
            info->operands, line.operand_count, line.operand_count == 1 ? "" : "s", info->name);
    } else {
        status = run(filter, &line, error);
    }
done:
    gf_cli_line_free(&line);
    return status;
}
