/* Progress bar, lines and events of one image or a batch. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report.h"

#define REDRAW_SECONDS 0.1
#define FIRST_SECONDS 0.2 /* before the first bar of a batch */
#define FIRST_ALONE 1.0   /* before the first bar of one image */
#define LINE_SECONDS 10.0
#define EVENT_SECONDS 1.0
#define MAX_WIDTH 400
#define MAX_BAR 40
#define MIN_BAR 5

/* The running batch, for the signal handler. */
static struct {
    _Atomic uint64_t done, total; /* files */
    const char *_Atomic message;  /* printed after the numbers; NULL: no batch */
} interrupted;

/* Return the completed fraction of the work, from 0 to 1. */
static double progress_fraction(const gf_cli_progress *progress) {
    const double done = progress->done + progress->running;
    return progress->work <= 0 || done <= 0 ? 0 : done < progress->work ? done / progress->work : 1;
}

/* Return megapixels per second. */
static double progress_rate(const gf_cli_progress *progress, double seconds) {
    return (progress->pixels + progress->pixels_running) * 1e-6 / seconds;
}

/* Estimate the remaining seconds; below 0: unknown. */
static double progress_left(const gf_cli_progress *progress, double seconds) {
    const double fraction = progress_fraction(progress);
    return fraction > 0 ? seconds * (1 / fraction - 1) : -1;
}

/* Write "3 of 9 files, 1 failed, 12.3 MP/s, 0:07 left", or "45 %, ..." for one image. */
static void progress_put_numbers(const gf_cli_progress *progress, double seconds, char *text,
                                 size_t size) {
    char count[64], failed[40] = "", left[32] = "-:--";
    const double rate = progress_rate(progress, seconds), rest = progress_left(progress, seconds);
    if (progress->total)
        snprintf(count, sizeof count, "%" PRIu64 " of %" PRIu64 " files", progress->ended,
                 progress->total);
    else
        snprintf(count, sizeof count, "%.0f %%", 100 * progress_fraction(progress));
    if (progress->failed)
        snprintf(failed, sizeof failed, ", %" PRIu64 " failed", progress->failed);
    const unsigned whole = rest < 3.6e8 ? (unsigned)(rest + 0.5) : 360000000;
    if (rest >= 3599.5)
        snprintf(left, sizeof left, "%u:%02u:%02u", whole / 3600, whole / 60 % 60, whole % 60);
    else if (rest >= 0)
        snprintf(left, sizeof left, "%u:%02u", whole / 60, whole % 60);
    snprintf(text, size, "%s%s, %.*f MP/s, %s left", count, failed, rate < 9.95 ? 1 : 0, rate,
             left);
}

static void progress_draw_bar(const gf_cli_progress *progress, const char *numbers) {
    char line[MAX_WIDTH + 16] = GF_CLI_ERASE, bar[MAX_BAR + 4] = "";
    const int screen = gf_cli_screen_of(stderr).width;
    /* Leave the last column free: some terminals wrap when it is filled. */
    const size_t width = (size_t)(screen < MAX_WIDTH ? screen : MAX_WIDTH) - 1,
                 taken = strlen(numbers) + strlen("[] ");
    size_t cells = width > taken ? width - taken : 0;
    cells = cells < MAX_BAR ? cells : MAX_BAR;
    if (cells >= MIN_BAR) {
        const double fraction = progress_fraction(progress);
        bar[0] = '[';
        for (size_t i = 0; i < cells; i++)
            bar[1 + i] = (double)i < fraction * (double)cells ? '#' : '-';
        memcpy(bar + 1 + cells, "] ", 3);
    }
    snprintf(line + strlen(GF_CLI_ERASE), width + 1, "%s%s", bar, numbers);
    gf_cli_bar_draw(line);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void progress_begin_event(const gf_cli_progress *progress, const char *event) {
    fflush(stdout);
    fprintf(stderr,
            "{\"schema\": \"gpufilter-event\", \"schema_version\": 2, \"event\": \"%s\", "
            "\"seconds\": %.3f",
            event, gf_now() - progress->began);
}

void gf_cli_progress_begin(gf_cli_progress *progress, const char *command, const char *mode,
                           bool quiet, bool lines) {
    if (strcmp(mode, "json") == 0)
        progress->show = GF_CLI_SHOW_EVENTS; /* for programs, so also with --quiet */
    else if (quiet || strcmp(mode, "none") == 0)
        progress->show = GF_CLI_SHOW_NOTHING;
    else if (strcmp(mode, "auto") == 0 && gf_cli_is_terminal(stderr))
        progress->show = GF_CLI_SHOW_BAR;
    else if (lines || strcmp(mode, "lines") == 0)
        progress->show = GF_CLI_SHOW_LINES;
    progress->began = gf_now();
    progress->drawn = progress->began;
    interrupted.done = progress->ended - progress->failed;
    interrupted.total = progress->total;
    interrupted.message = progress->remedy;
    if (progress->show == GF_CLI_SHOW_BAR)
        progress->drawn += (progress->total ? FIRST_SECONDS : FIRST_ALONE) - REDRAW_SECONDS;
    if (progress->show != GF_CLI_SHOW_EVENTS)
        return;
    progress_begin_event(progress, "begin");
    gf_json_string(stderr, "command", command);
    fprintf(stderr, ", \"files\": %" PRIu64 "}\n", progress->total ? progress->total : 1);
}

void gf_cli_event_failed(const gf_cli_progress *progress, const char *file, const char *error) {
    if (progress->show != GF_CLI_SHOW_EVENTS)
        return;
    progress_begin_event(progress, "failed");
    gf_json_name(stderr, "file", file);
    gf_json_string(stderr, "error", error);
    fputs("}\n", stderr);
}

void gf_cli_event_end(const gf_cli_progress *progress, uint64_t done, uint64_t failed,
                      uint64_t skipped) {
    if (progress->show != GF_CLI_SHOW_EVENTS)
        return;
    progress_begin_event(progress, "end");
    fprintf(stderr, ", \"done\": %" PRIu64 ", \"failed\": %" PRIu64 ", \"skipped\": %" PRIu64 "}\n",
            done, failed, skipped);
}

static void progress_print_event(const gf_cli_progress *progress, double seconds) {
    const double left = progress_left(progress, seconds);
    progress_begin_event(progress, "progress");
    fprintf(stderr, ", \"fraction\": %.4f, \"megapixels_per_second\": %.3f, \"seconds_left\": ",
            progress_fraction(progress), progress_rate(progress, seconds));
    fprintf(stderr, left >= 0 ? "%.3f" : "null", left);
    if (progress->total)
        fprintf(stderr, ", \"files\": %" PRIu64 ", \"finished\": %" PRIu64 ", \"failed\": %" PRIu64,
                progress->total, progress->ended, progress->failed);
    fputs("}\n", stderr);
}

void gf_cli_progress_draw(gf_cli_progress *progress) {
    static const double intervals[] = {[GF_CLI_SHOW_BAR] = REDRAW_SECONDS,
                                       [GF_CLI_SHOW_LINES] = LINE_SECONDS,
                                       [GF_CLI_SHOW_EVENTS] = EVENT_SECONDS};
    char numbers[200];
    interrupted.done = progress->ended - progress->failed;
    if (progress->show == GF_CLI_SHOW_NOTHING)
        return;
    const double now = gf_now(), seconds = now - progress->began;
    if (now - progress->drawn < intervals[progress->show])
        return;
    progress->drawn = now;
    progress_put_numbers(progress, seconds, numbers, sizeof numbers);
    if (progress->show == GF_CLI_SHOW_EVENTS) {
        progress_print_event(progress, seconds);
    } else if (progress->show == GF_CLI_SHOW_BAR) {
        progress_draw_bar(progress, numbers);
    } else {
        fflush(stdout);
        fprintf(stderr, "gpufilter: %s\n", numbers);
    }
}

void gf_cli_progress_end(void) {
    interrupted.message = NULL;
    gf_cli_bar_hide();
}

/* ---- signal handler -------------------------------------------------------------------------- */

/* Write text so that it ends before `at`. Return its beginning. */
static char *progress_prepend(char *at, const char *text) {
    for (size_t i = strlen(text); i > 0;)
        *--at = text[--i];
    return at;
}

/* Write a number in the same way. */
static char *progress_prepend_number(char *at, uint64_t number) {
    do
        *--at = (char)('0' + number % 10);
    while (number /= 10);
    return at;
}

void gf_cli_progress_interrupted(void) {
    char line[160], *const end = line + sizeof line;
    const char *message = interrupted.message;
    if (!message)
        return;
    char *at = progress_prepend(progress_prepend(end, "\n"), message);
    at = progress_prepend_number(progress_prepend(at, " done"), interrupted.total);
    at = progress_prepend_number(progress_prepend(at, " of "), interrupted.done);
    at = progress_prepend(at, "gpufilter: interrupted: ");
    (void)!write(STDERR_FILENO, at, (size_t)(end - at));
}
