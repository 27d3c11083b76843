/* Where the time went: how much of it each part of the pipeline was at work. */
#include "report.h"

/* What is at work less than that is not what the others wait for. */
#define BOTTLENECK 0.5
/* Every stage is told; starting, which most runs hardly have, only from there on. */
#define WORTH_TELLING 0.05

static double share(const gf_report *report, int stage) {
    const gf_busy *busy = &report->busy[stage];
    return busy->workers && report->total_seconds > 0
               ? busy->seconds / (busy->workers * report->total_seconds)
               : 0;
}

void gf_cli_report_busy(FILE *file, const gf_report *report) {
    const double start =
        report->total_seconds > 0 ? report->start_seconds / report->total_seconds : 0;
    const char *slowest = "starting", *gap = "";
    double most = start;
    fputs("  busy: ", file);
    if (start >= WORTH_TELLING) {
        fprintf(file, "starting %.0f %%", 100 * start);
        gap = ", ";
    }
    for (int i = 0; i < GF_STAGE_COUNT; i++) {
        if (!report->busy[i].workers)
            continue;
        fprintf(file, "%s%s %.0f %%", gap, gf_stage_name((gf_stage)i), 100 * share(report, i));
        gap = ", ";
        if (share(report, i) > most) {
            most = share(report, i);
            slowest = gf_stage_name((gf_stage)i);
        }
    }
    fprintf(file, " of %.3f s", report->total_seconds);
    if (most >= BOTTLENECK)
        fprintf(file, ": %s is the bottleneck", slowest);
    putc('\n', file);
}

void gf_cli_report_busy_json(FILE *file, const gf_report *report) {
    fprintf(file, "\"busy_seconds\": {\"starting\": %.6f", report->start_seconds);
    for (int i = 0; i < GF_STAGE_COUNT; i++)
        if (report->busy[i].workers)
            fprintf(file, ", \"%s\": %.6f", gf_stage_name((gf_stage)i), report->busy[i].seconds);
    fputs("}, \"workers\": {\"starting\": 1", file);
    for (int i = 0; i < GF_STAGE_COUNT; i++)
        if (report->busy[i].workers)
            fprintf(file, ", \"%s\": %u", gf_stage_name((gf_stage)i), report->busy[i].workers);
    putc('}', file);
}
