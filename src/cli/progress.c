#include "progress.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define REDRAW_SECONDS 0.1
#define FIRST_SECONDS 0.2 /* what ends sooner needs no bar */
#define LINE_SECONDS 10.0
#define MOST_WIDTH 400
#define MOST_BAR 40
#define LEAST_BAR 5

#define ERASE "\r\033[K"

/* Is the line on the screen? Process-wide, for the signal handler, as the screen is. */
static volatile sig_atomic_t shown;

double gf_cli_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool can_draw(void) {
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

void gf_cli_progress_begin(gf_cli_progress *progress, bool wanted, bool lines) {
    progress->on = wanted && can_draw();
    progress->lines = wanted && lines && !progress->on;
    progress->began = gf_cli_now();
    progress->drawn = progress->began;
    if (progress->on)
        progress->drawn += FIRST_SECONDS - REDRAW_SECONDS;
}

/* 0:12 or 1:02:03 */
static void put_time(double seconds, char *text, size_t size) {
    const uint64_t all = seconds < 3.6e8 ? (uint64_t)(seconds + 0.5) : UINT64_C(360000000);
    const uint64_t hours = all / 3600, minutes = all / 60 % 60;
    if (hours)
        snprintf(text, size, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, hours, minutes, all % 60);
    else
        snprintf(text, size, "%" PRIu64 ":%02" PRIu64, minutes, all % 60);
}

static size_t screen_width(void) {
    struct winsize size;
    const size_t width =
        ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
    return width < MOST_WIDTH ? width : MOST_WIDTH;
}

/* What remains, if it goes on like that. */
static void put_left(const gf_cli_progress *progress, double seconds, char *text, size_t size) {
    if (progress->bytes)
        put_time(seconds * ((double)progress->total_bytes / (double)progress->bytes - 1), text,
                 size);
    else
        snprintf(text, size, "-:--");
}

static void print_line(const gf_cli_progress *progress, double seconds) {
    char left[32], failed[40] = "";
    const double rate = progress->pixels * 1e-6 / seconds;
    put_left(progress, seconds, left, sizeof left);
    if (progress->failed)
        snprintf(failed, sizeof failed, "%" PRIu64 " failed, ", progress->failed);
    fflush(stdout);
    fprintf(stderr, "gpufilter: %" PRIu64 " of %" PRIu64 " files, %s%.*f MP/s, %s left\n",
            progress->ended, progress->total, failed, rate < 9.95 ? 1 : 0, rate, left);
}

/* What stands right of the bar. */
static void put_numbers(const gf_cli_progress *progress, double seconds, char *text, size_t size) {
    char left[32], failed[40] = "";
    put_left(progress, seconds, left, sizeof left);
    if (progress->failed)
        snprintf(failed, sizeof failed, "  %" PRIu64 " failed", progress->failed);
    const double rate = progress->pixels * 1e-6 / seconds;
    char total[24];
    const int digits = snprintf(total, sizeof total, "%" PRIu64, progress->total);
    snprintf(text, size, "%*" PRIu64 "/%s  %.*f MP/s  %s left%s", digits, progress->ended, total,
             rate < 9.95 ? 1 : 0, rate, left, failed);
}

void gf_cli_progress_draw(gf_cli_progress *progress) {
    const double now = gf_cli_now();
    if (progress->lines && now - progress->drawn >= LINE_SECONDS) {
        progress->drawn = now;
        print_line(progress, now - progress->began);
    }
    if (!progress->on || now - progress->drawn < REDRAW_SECONDS)
        return;
    progress->drawn = now;
    char line[MOST_WIDTH + 16] = ERASE, numbers[160], bar[MOST_BAR + 4] = "";
    put_numbers(progress, now - progress->began, numbers, sizeof numbers);
    /* The last column stays free: some terminals go to the next line when it is filled. */
    const size_t width = screen_width() - 1, taken = strlen(numbers) + strlen("[] ");
    size_t cells = width > taken ? width - taken : 0;
    cells = cells < MOST_BAR ? cells : MOST_BAR;
    if (cells >= LEAST_BAR) {
        const double part =
            progress->total_bytes ? (double)progress->bytes / (double)progress->total_bytes : 0;
        bar[0] = '[';
        for (size_t i = 0; i < cells; i++)
            bar[1 + i] = (double)i < part * (double)cells ? '#' : '-';
        memcpy(bar + 1 + cells, "] ", 3);
    }
    snprintf(line + strlen(ERASE), width + 1, "%s%s", bar, numbers);
    shown = 1;
    (void)!write(STDERR_FILENO, line, strlen(line));
}

void gf_cli_progress_hide(void) {
    if (shown)
        (void)!write(STDERR_FILENO, ERASE, strlen(ERASE));
    shown = 0;
}
