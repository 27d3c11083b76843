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
    double began, drawn;           /* times of the start and of the last drawing, in seconds */
    uint64_t total, ended, failed; /* files; total 0: one image */
    /* Work in bytes of files, or in rows of the one image: all work, that of finished files, and
     * the completed part of running files. */
    double work, done, running;
    double pixels, pixels_running; /* in finished files; completed in running files */
    const char *remedy; /* appended to the message of an interrupted batch; NULL: no message */
} gf_cli_progress;

/* Start the clock of progress, whose other members are set, and choose its form by --progress and
 * --quiet. lines: print lines where the cursor cannot be moved. */
void gf_cli_progress_begin(gf_cli_progress *progress, const char *command, const char *mode,
                           bool quiet, bool lines);
/* Draw or print, if the interval since the last time has passed. */
void gf_cli_progress_draw(gf_cli_progress *progress);
/* End a batch: erase the bar and clear the message of gf_cli_progress_interrupted. */
void gf_cli_progress_end(void);
/* Print that the running batch was interrupted, if there is one. Async-signal-safe. */
void gf_cli_progress_interrupted(void);

/* Print an event; only for GF_CLI_SHOW_EVENTS. */
void gf_cli_event_failed(const gf_cli_progress *progress, const char *file, const char *error);
void gf_cli_event_end(const gf_cli_progress *progress, uint64_t done, uint64_t failed,
                      uint64_t skipped);

#endif
