/* How far a batch has come: a line on a terminal that is drawn anew, or lines now and then. */
#ifndef GF_CLI_PROGRESS_H
#define GF_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct gf_cli_progress {
    bool on;                       /* there is a terminal */
    bool lines;                    /* there is none, and lines are wanted */
    double began, drawn;           /* seconds; drawn: the last time, or when it began */
    uint64_t total, ended, failed; /* files */
    uint64_t total_bytes, bytes;   /* of inputs that are to be read, and of those that ended */
    double pixels;
} gf_cli_progress;

/* Seconds since some fixed moment. */
double gf_cli_now(void);

/* wanted: but only where standard error is a terminal that can move its cursor. Elsewhere lines, if
 * these are wanted. */
void gf_cli_progress_begin(gf_cli_progress *progress, bool wanted, bool lines);
/* Draws or prints the line, if the last time is long enough ago. */
void gf_cli_progress_draw(gf_cli_progress *progress);
/* Takes the line away, before something else is printed and in the end. Async-signal-safe. */
void gf_cli_progress_hide(void);

#endif
