/* Progress output of one image or a batch, on standard error: a bar, lines, or events. */
#ifndef GF_CLI_PROGRESS_H
#define GF_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* The choices of --progress, NULL-terminated. */
extern const char *const gf_cli_progress_modes[];

typedef enum gf_cli_show {
    GF_CLI_SHOW_NOTHING,
    GF_CLI_SHOW_BAR,
    GF_CLI_SHOW_LINES,
    GF_CLI_SHOW_EVENTS /* JSON, one object per line */
} gf_cli_show;

typedef struct gf_cli_progress {
    gf_cli_show show;
    double began, drawn;           /* seconds; drawn: the last time, or when it began */
    uint64_t total, ended, failed; /* files; total 0: one image */
    double of, done, under_way;    /* work: all, that of ended files, and what is done of others;
                                    * bytes of files, or rows of the one image */
    double pixels, pixels_under_way;
    const char *go_on; /* follows the line of an interrupted batch; NULL: no line */
} gf_cli_progress;

/* Seconds since some fixed moment. */
double gf_cli_now(void);

/* Choose how to show progress, by a choice of --progress and by --quiet. A bar is only for a
 * terminal that can move its cursor; lines: print lines elsewhere. */
gf_cli_show gf_cli_progress_choose(const char *way, bool quiet, bool lines);
void gf_cli_progress_begin(gf_cli_progress *progress, gf_cli_show show);
/* Draw or print, if the last time is long enough ago. */
void gf_cli_progress_draw(gf_cli_progress *progress);
void gf_cli_progress_end(void);
/* Print that a batch was interrupted, if one is under way. Async-signal-safe. */
void gf_cli_progress_interrupted(void);
/* Erase the bar, before something else is printed. Async-signal-safe. */
void gf_cli_progress_hide(void);

/* Print other events, where events are shown. */
void gf_cli_event_begin(const gf_cli_progress *progress, const char *command);
void gf_cli_event_failed(const gf_cli_progress *progress, const char *file, const char *why);
void gf_cli_event_end(const gf_cli_progress *progress, uint64_t good, uint64_t failed,
                      uint64_t skipped);

#endif
