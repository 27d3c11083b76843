/* Progress bar, lines and events of one image or a batch. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
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

/* For the signal handler: the message of the running batch, or NULL. Two texts take turns, so that
 * the handler, which may run in another thread, does not read the one being written. */
static char interrupted_texts[2][160];
static const char *_Atomic interrupted;

static void progress_store_message(const gf_cli_progress *progress) {
    char *text = interrupted_texts[interrupted == interrupted_texts[0]];
    if (!progress->remedy)
        return;
    snprintf(text, sizeof interrupted_texts[0],
             "gpufilter: interrupted: %" PRIu64 " of %" PRIu64 " done%s\n",
             progress->ended - progress->failed, progress->total, progress->remedy);
    interrupted = text;
}

static void progress_draw_bar(double fraction, const char *numbers) {
    char line[MAX_WIDTH + 16] = GF_CLI_ERASE, bar[MAX_BAR + 4] = "";
    const int screen = gf_cli_screen_of(stderr).width;
    /* Leave the last column free: some terminals wrap when it is filled. */
    const size_t width = (size_t)(screen < MAX_WIDTH ? screen : MAX_WIDTH) - 1,
                 taken = strlen(numbers) + strlen("[] ");
    size_t cells = width > taken ? width - taken : 0;
    cells = cells < MAX_BAR ? cells : MAX_BAR;
    if (cells >= MIN_BAR) {
        bar[0] = '[';
        for (size_t i = 0; i < cells; i++)
            bar[1 + i] = (double)i < fraction * (double)cells ? '#' : '-';
        memcpy(bar + 1 + cells, "] ", 3);
    }
    snprintf(line + strlen(GF_CLI_ERASE), width + 1, "%s%s", bar, numbers);
    gf_cli_bar_draw(line);
}

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
    progress->began = progress->drawn = gf_now();
    progress_store_message(progress);
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

void gf_cli_progress_draw(gf_cli_progress *progress) {
    static const double intervals[] = {[GF_CLI_SHOW_BAR] = REDRAW_SECONDS,
                                       [GF_CLI_SHOW_LINES] = LINE_SECONDS,
                                       [GF_CLI_SHOW_EVENTS] = EVENT_SECONDS};
    char count[64], failed[40] = "", left[32] = "-:--", numbers[200];
    progress_store_message(progress);
    if (progress->show == GF_CLI_SHOW_NOTHING)
        return;
    const double now = gf_now(), seconds = now - progress->began;
    if (now - progress->drawn < intervals[progress->show])
        return;
    progress->drawn = now;
    const double done = progress->done + progress->running;
    double fraction = progress->work > 0 && done > 0 ? done / progress->work : 0;
    fraction = fraction > 1 ? 1 : fraction;
    const double rate = (progress->pixels + progress->pixels_running) * 1e-6 / seconds;
    const double rest = fraction > 0 ? seconds * (1 / fraction - 1) : -1; /* below 0: unknown */
    if (progress->show == GF_CLI_SHOW_EVENTS) {
        progress_begin_event(progress, "progress");
        fprintf(stderr, ", \"fraction\": %.4f, \"megapixels_per_second\": %.3f, \"seconds_left\": ",
                fraction, rate);
        fprintf(stderr, rest >= 0 ? "%.3f" : "null", rest);
        if (progress->total)
            fprintf(stderr,
                    ", \"files\": %" PRIu64 ", \"finished\": %" PRIu64 ", \"failed\": %" PRIu64,
                    progress->total, progress->ended, progress->failed);
        fputs("}\n", stderr);
        return;
    }
    /* "3 of 9 files, 1 failed, 12.3 MP/s, 0:07 left", or "45 %, ..." for one image */
    if (progress->total)
        snprintf(count, sizeof count, "%" PRIu64 " of %" PRIu64 " files", progress->ended,
                 progress->total);
    else
        snprintf(count, sizeof count, "%.0f %%", 100 * fraction);
    if (progress->failed)
        snprintf(failed, sizeof failed, ", %" PRIu64 " failed", progress->failed);
    const unsigned whole = rest < 3.6e8 ? (unsigned)(rest + 0.5) : 360000000;
    if (rest >= 3599.5)
        snprintf(left, sizeof left, "%u:%02u:%02u", whole / 3600, whole / 60 % 60, whole % 60);
    else if (rest >= 0)
        snprintf(left, sizeof left, "%u:%02u", whole / 60, whole % 60);
    snprintf(numbers, sizeof numbers, "%s%s, %.*f MP/s, %s left", count, failed,
             rate < 9.95 ? 1 : 0, rate, left);
    if (progress->show == GF_CLI_SHOW_BAR) {
        progress_draw_bar(fraction, numbers);
    } else {
        fflush(stdout);
        fprintf(stderr, "gpufilter: %s\n", numbers);
    }
}

void gf_cli_progress_end(void) {
    interrupted = NULL;
    gf_cli_bar_hide();
}

void gf_cli_progress_interrupted(void) {
    const char *message = interrupted;
    if (message)
        (void)!write(STDERR_FILENO, message, strlen(message));
}
