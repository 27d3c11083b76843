/* A line on a terminal that shows how far a batch has come. */
#ifndef GF_CLI_PROGRESS_H
#define GF_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct gf_cli_progress {
    bool on;
    double began, drawn;           /* seconds; drawn: the last time, or when it began */
    uint64_t total, ended, failed; /* files */
    uint64_t total_bytes, bytes;   /* of inputs that are to be read, and of those that ended */
    double pixels;
} gf_cli_progress;

/* Seconds since some fixed moment. */
double gf_cli_now(void);

/* wanted: but only where standard error is a terminal that can move its cursor. */
void gf_cli_progress_begin(gf_cli_progress *progress, bool wanted);
/* Draws the line, if the last time is long enough ago. */
void gf_cli_progress_draw(gf_cli_progress *progress);
/* Takes the line away, before something else is printed and in the end. Async-signal-safe. */
void gf_cli_progress_hide(void);

#endif
