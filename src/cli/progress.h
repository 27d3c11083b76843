/* How far one image or a batch has come: a bar on a terminal that is drawn anew, or lines. */
#ifndef GF_CLI_PROGRESS_H
#define GF_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* The choices of --progress, NULL-terminated. */
extern const char *const gf_cli_progress_ways[];

typedef enum gf_cli_show {
    GF_CLI_SHOW_NOTHING,
    GF_CLI_SHOW_BAR,
    GF_CLI_SHOW_LINES,
    GF_CLI_SHOW_EVENTS /* JSON, a line each */
} gf_cli_show;

typedef struct gf_cli_progress {
    gf_cli_show show;
    double began, drawn;           /* seconds; drawn: the last time, or when it began */
    uint64_t total, ended, failed; /* files; total 0: one image */
    double of, done, under_way;    /* work: of all, of those that ended, and what is done of the
                                    * others; bytes of files, or rows of the one image */
    double pixels, pixels_under_way;
    const char
        *go_on; /* a batch that is interrupted says how far it came, and this; NULL: neither */
} gf_cli_progress;

/* Seconds since some fixed moment. */
double gf_cli_now(void);

/* How it is to be shown: by a choice of --progress, and whether anything is for people at all. A
 * bar only where standard error is a terminal that can move its cursor; elsewhere lines, if that is
 * said here. */
gf_cli_show gf_cli_progress_choose(const char *way, bool quiet, bool lines);
void gf_cli_progress_begin(gf_cli_progress *progress, gf_cli_show show);
/* Draws or prints the line, if the last time is long enough ago. */
void gf_cli_progress_draw(gf_cli_progress *progress);
/* No more of it. */
void gf_cli_progress_end(void);
/* Says that a batch was interrupted, if one is under way. Async-signal-safe. */
void gf_cli_progress_interrupted(void);
/* Takes the bar away, before something else is printed and in the end. Async-signal-safe. */
void gf_cli_progress_hide(void);

/* What is remarkable besides, where events are shown: a line on standard error each. */
void gf_cli_event_begin(const gf_cli_progress *progress, const char *command);
void gf_cli_event_failed(const gf_cli_progress *progress, const char *file, const char *why);
void gf_cli_event_end(const gf_cli_progress *progress, uint64_t good, uint64_t failed,
                      uint64_t skipped);

#endif
