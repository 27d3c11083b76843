/* What bench found, for people and as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "bench.h"
#include "json.h"
#include "report.h"

static double pixels(const gf_format *format) {
    return (double)format->width * (double)format->height;
}

/* ---- for people ------------------------------------------------------------------------------ */

void gf_bench_tell_start(const gf_bench *bench) {
    char format[64];
    gf_cli_format_text(&bench->format, format, sizeof format);
    gf_machine_text(&bench->machine);
    printf("picture: %s, generated; every result is compared with golden's\n\n", format);
    printf("%-34s %10s %10s %10s %10s\n", "memory, GB/s", "copy", "upload", "download", "both");
    fflush(stdout);
}

void gf_bench_tell_memory(const gf_bench_target *target) {
    const gf_memory_speed *speed = &target->memory;
    printf("%-34s %10.1f", target->name, speed->copy * 1e-9);
    if (speed->upload > 0)
        printf(" %10.1f %10.1f %10.1f", speed->upload * 1e-9, speed->download * 1e-9,
               speed->both * 1e-9);
    putchar('\n');
    fflush(stdout);
}

void gf_bench_tell_rows(const gf_bench *bench) {
    printf("\n%-*s %-17s %10s %10s %10s %10s\n", bench->name_width, "filter", "where", "ms", "MP/s",
           "GB/s", "of copy");
}

void gf_bench_tell_row(const gf_bench *bench, const gf_bench_row *row) {
    const gf_speed *speed = &row->speed;
    printf("%-*s %-17s", bench->name_width, row->item->name,
           row->target ? row->target->name : "golden");
    if (row->differs) {
        printf(" differs from golden\n");
    } else {
        printf(" %10.3f %10.0f", speed->seconds * 1e3,
               pixels(&bench->format) / speed->seconds * 1e-6);
        if (row->target)
            printf(" %10.1f %10.3f", (double)speed->bytes / speed->seconds * 1e-9,
                   (double)speed->bytes / speed->seconds / row->target->memory.copy);
        putchar('\n');
    }
    fflush(stdout);
}

static void tell_codec(const gf_bench *bench, const char *what, double seconds) {
    const double count = pixels(&bench->codec_format);
    printf("%-3s %-30s %10.3f %10.0f %10.2f\n", bench->codec_files, what, seconds * 1e3,
           count / seconds * 1e-6, seconds * 1e9 / (count * bench->codec_format.channels));
}

void gf_bench_tell_codec(const gf_bench *bench) {
    char format[64], what[96];
    gf_cli_format_text(&bench->codec_format, format, sizeof format);
    printf("\n%-34s %10s %10s %10s\n", "files, 1 thread", "ms", "MP/s", "ns/sample");
    snprintf(what, sizeof what, "read %s", format);
    tell_codec(bench, what, bench->codec.decode_seconds);
    snprintf(what, sizeof what, "write %s", format);
    tell_codec(bench, what, bench->codec.encode_seconds);
    fflush(stdout);
}

/* Decimals of a number of seconds: none is wider than 12.34 until they are days. */
static int places(double seconds) {
    return seconds < 99.995 ? 2 : seconds < 999.95 ? 1 : 0;
}

/* A line for each filter and format of files, with all sizes. */
void gf_bench_tell_forecasts(const gf_bench *bench) {
    if (bench->forecast_count == 0)
        return;
    printf(
        "\nWhom --backend auto would take, and the seconds it expects on cpu / on cuda,\n"
        "%.2f s of these to start the GPU, which it does only where that is to win.\n",
        bench->forecasts[0].forecast.start_seconds);
    printf("%-*s %-5s", bench->name_width, "filter", "files");
    for (size_t i = 0; i < GF_BENCH_SIZES && i < bench->forecast_count; i++) {
        char size[32];
        snprintf(size, sizeof size, "%.0f MP", pixels(&bench->forecasts[i].format) * 1e-6);
        printf(" %18s", size);
    }
    for (size_t i = 0; i < bench->forecast_count; i++) {
        const gf_bench_forecast *row = &bench->forecasts[i];
        char cell[64];
        if (i % GF_BENCH_SIZES == 0)
            printf("\n%-*s %-5s", bench->name_width, row->item->name, row->files);
        snprintf(cell, sizeof cell, "%s %.*f / %.*f", row->cuda ? "cuda" : "cpu",
                 places(row->forecast.cpu_seconds), row->forecast.cpu_seconds,
                 places(row->forecast.cuda_seconds), row->forecast.cuda_seconds);
        printf(" %18s", cell);
    }
    putchar('\n');
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void print_number(const char *name, double number, bool there) {
    printf(", \"%s\": ", name);
    printf(there ? "%.6g" : "null", number);
}

static void print_text(const char *name, const char *text) {
    printf(", \"%s\": ", name);
    gf_json_text(stdout, text);
}

static void print_memory(const gf_bench *bench) {
    printf(", \"memory\": [");
    for (size_t i = 0; i < bench->target_count; i++) {
        const gf_bench_target *target = &bench->targets[i];
        const gf_memory_speed *speed = &target->memory;
        const bool device = speed->upload > 0;
        printf("%s{\"where\": \"%s\"", i ? ", " : "", target->name);
        print_number("copy", speed->copy, true);
        print_number("upload", speed->upload, device);
        print_number("download", speed->download, device);
        print_number("both", speed->both, device);
        putchar('}');
    }
    putchar(']');
}

static void print_item(const gf_bench_item *item, const char *gap) {
    printf("%s{\"filter\": \"%s\"", gap, gf_filter_describe(item->filter)->name);
    print_text("settings", item->text);
}

static void print_rows(const gf_bench *bench) {
    printf(", \"filters\": [");
    for (size_t i = 0; i < bench->row_count; i++) {
        const gf_bench_row *row = &bench->rows[i];
        const gf_speed *speed = &row->speed;
        print_item(row->item, i ? ", " : "");
        print_text("where", row->target ? row->target->name : "golden");
        print_text("backend", speed->backend);
        print_text("device", speed->device);
        print_number("seconds", speed->seconds, !row->differs);
        printf(", \"passes\": %" PRIu64 ", \"bytes\": %" PRIu64, speed->passes, speed->bytes);
        print_number("of_copy",
                     row->target ? (double)speed->bytes / speed->seconds / row->target->memory.copy
                                 : 0,
                     row->target && !row->differs);
        printf(", \"same\": %s}", row->differs ? "false" : "true");
    }
    putchar(']');
}

static void print_codec(const gf_bench *bench) {
    printf(", \"codec\": ");
    if (!bench->codec_files) {
        printf("null");
        return;
    }
    printf("{\"files\": \"%s\", \"image\": ", bench->codec_files);
    gf_json_format(stdout, &bench->codec_format);
    print_number("decode_seconds", bench->codec.decode_seconds, true);
    print_number("encode_seconds", bench->codec.encode_seconds, true);
    printf(", \"file_bytes\": %" PRIu64 "}", bench->codec.file_bytes);
}

static void print_forecasts(const gf_bench *bench) {
    printf(", \"auto\": [");
    for (size_t i = 0; i < bench->forecast_count; i++) {
        const gf_bench_forecast *row = &bench->forecasts[i];
        print_item(row->item, i ? ", " : "");
        print_text("files", row->files);
        printf(", \"image\": ");
        gf_json_format(stdout, &row->format);
        print_text("takes", row->cuda ? "cuda" : "cpu");
        print_number("cpu_seconds", row->forecast.cpu_seconds, true);
        print_number("cuda_seconds", row->forecast.cuda_seconds, true);
        print_number("start_seconds", row->forecast.start_seconds, true);
        print_text("reason", row->forecast.reason);
        putchar('}');
    }
    putchar(']');
}

void gf_bench_json(const gf_bench *bench) {
    printf("{\"schema\": \"gpufilter-bench\", \"version\": 1, \"program\": \"%s\", ", gf_version());
    gf_machine_json(&bench->machine);
    printf(", \"image\": ");
    gf_json_format(stdout, &bench->format);
    print_memory(bench);
    print_rows(bench);
    print_codec(bench);
    print_forecasts(bench);
    printf("}\n");
}
