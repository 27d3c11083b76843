/* A finished run, told on standard error: what, by which backend, how fast. */
#include <inttypes.h>
#include <string.h>

#include "report.h"

void gf_cli_report_failure(const gf_cli_run *run) {
    static bool told;
    if (told || !run->report->device_failed)
        return;
    told = true;
    fflush(stdout);
    fputs("gpufilter: ", stderr);
    gf_cli_print_name(stderr, run->inputs[0], "standard input");
    fputs(": ", stderr);
    gf_cli_print_text(stderr, run->report->reason);
    putc('\n', stderr);
}

/* "999 bytes", "1.2 kB", "123 MB" */
static void print_bytes(uint64_t bytes) {
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    if (bytes < 1000) {
        fprintf(stderr, "%" PRIu64 " byte%s", bytes, bytes == 1 ? "" : "s");
        return;
    }
    double value = (double)bytes / 1000;
    int unit = 0;
    for (; value >= 999.5; unit++)
        value /= 1000;
    fprintf(stderr, "%.*f %s", value < 9.95 ? 1 : 0, value, units[unit]);
}

void gf_cli_report_bytes(uint64_t in, uint64_t out) {
    fputs(", ", stderr);
    print_bytes(in);
    fputs(" in", stderr);
    if (!out)
        return;
    fputs(", ", stderr);
    print_bytes(out);
    fputs(" out", stderr);
}

void gf_cli_report_dropped(const char *name, uint64_t files, uint32_t dropped) {
    static const char *const names[] = {"ICC profile", "EXIF data", "orientation"};
    const char *gap = ": ";
    if (!dropped)
        return;
    fputs("gpufilter: ", stderr);
    if (files == 1)
        gf_cli_print_name(stderr, name, "standard input");
    else
        fprintf(stderr, "%" PRIu64 " files", files);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!(dropped >> i & 1))
            continue;
        fprintf(stderr, "%s%s", gap, names[i]);
        gap = ", ";
    }
    fputs(" dropped: metadata of JPEG is not carried yet; --strip accepts that\n", stderr);
}

void gf_cli_brightness_add(gf_cli_brightness *brightness, const gf_report *report) {
    const gf_format *out = &report->out;
    if (report->brightness > brightness->factor) {
        brightness->factor = report->brightness;
        memcpy(brightness->advice, report->advice, sizeof brightness->advice);
    }
    if (!report->counts_clipped) {
        brightness->uncounted |= out->type != GF_F32;
        return;
    }
    brightness->clipped += report->clipped;
    brightness->samples += out->width * out->height * (out->channels - (out->channels % 2 == 0));
}

/* "48.9 %"; what is neither none nor all is not printed as such. */
static void print_share(uint64_t part, uint64_t all) {
    const double percent = 100 * (double)part / (double)all;
    if (percent < 0.05)
        fprintf(stderr, "less than 0.1 %%");
    else
        fprintf(stderr, "%.1f %%", part < all && percent > 99.9 ? 99.9 : percent);
}

void gf_cli_report_brightness(const gf_cli_brightness *brightness) {
    char factor[32];
    snprintf(factor, sizeof factor, "%.4g", brightness->factor);
    if (brightness->factor <= 0 || strcmp(factor, "1") == 0)
        return;
    fprintf(stderr, "  brightness x%s", factor);
    if (brightness->factor > 1 && brightness->clipped) {
        fputs(", ", stderr);
        print_share(brightness->clipped, brightness->samples);
        fprintf(stderr, " of samples clipped%s; %s",
                brightness->uncounted ? " (not counted in all images)" : "", brightness->advice);
    } else if (brightness->factor > 1 && brightness->uncounted) {
        fprintf(stderr, ", clipped samples not counted; %s", brightness->advice);
    }
    putc('\n', stderr);
}

void gf_cli_report_run(const gf_cli_run *run, bool verbose) {
    const gf_report *report = run->report;
    gf_cli_brightness brightness = {0};
    const gf_format *in = &report->in;
    double megapixels = (double)in->width * (double)in->height * 1e-6;
    char format[64];
    if (run->output)
        gf_cli_print_name(stderr, run->output, "standard output");
    else
        gf_cli_print_name(stderr, run->inputs[0], "standard input");
    fprintf(stderr, ": %.3f s, %.0f MP/s by %s (%s)", report->total_seconds,
            megapixels / report->total_seconds, report->backend, report->device);
    if (report->ranks)
        fprintf(stderr, " on %u ranks", report->ranks);
    if (run->ranks > 1)
        fprintf(stderr, " of rank %" PRIu32, run->rank);
    gf_cli_report_bytes(report->in_bytes, report->out_bytes);
    putc('\n', stderr);
    gf_cli_brightness_add(&brightness, report);
    gf_cli_report_brightness(&brightness);
    if (!verbose)
        return;
    gf_cli_format_text(in, format, sizeof format);
    fprintf(stderr, "  %s in %" PRIu64 " band%s of %" PRIu64 " rows\n", format, report->bands,
            report->bands == 1 ? "" : "s", report->band_rows);
    if (report->reason[0]) {
        fputs("  auto: ", stderr);
        gf_cli_print_text(stderr, report->reason);
        putc('\n', stderr);
    }
    if (report->verified)
        fprintf(stderr, "  verified: golden computed the same\n");
    gf_cli_report_busy(stderr, report);
}
