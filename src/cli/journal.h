/* The record of finished outputs that a batch leaves in --out-dir, for --resume.
 *
 * A file of lines: first what it is and its version, then one for each output, written when it has
 * its name: CHECK SETTINGS INPUT SIZE TIME NAME. CHECK is of the rest of the line, so that a torn
 * one is none; SETTINGS and INPUT are digests; SIZE and TIME (the last change, in nanoseconds) are
 * the output's; NAME is its path below --out-dir. Of several for one name the last counts. A line
 * is one write at the end of the file, so that two runs at once do not tear each other's. */
#ifndef GF_CLI_JOURNAL_H
#define GF_CLI_JOURNAL_H

#include "gpufilter.h"

#define GF_CLI_JOURNAL ".gpufilter-done"

typedef enum gf_cli_made_kind {
    GF_CLI_BEGUN = 'b', /* what has this name by now was made by us */
    GF_CLI_DONE = 'd',  /* it was finished, and looked like this */
    GF_CLI_FAILED = 'f' /* it was not made */
} gf_cli_made_kind;

typedef struct gf_cli_made {
    gf_cli_made_kind kind;
    uint64_t settings; /* all that decides what is made of an input */
    uint64_t input;    /* which one it was, and in which state */
    uint64_t size;
    int64_t time;
    const char *name;
} gf_cli_made;

typedef struct gf_cli_journal gf_cli_journal;

/* Opens the one in a folder, which must be there; reads it where that is wanted. One that cannot be
 * written is told once, unless quiet, and does without. GF_FAILED for a file that is something
 * else, or of another version. */
gf_status gf_cli_journal_open(const char *folder, bool read, bool quiet, gf_cli_journal **journal,
                              gf_error *error);
/* What was noted of an output; NULL if nothing. */
const gf_cli_made *gf_cli_journal_find(gf_cli_journal *journal, const char *name);
/* Those that are begun are noted together, with the next of another kind or by
 * gf_cli_journal_flush.
 */
void gf_cli_journal_add(gf_cli_journal *journal, const gf_cli_made *made);
void gf_cli_journal_flush(gf_cli_journal *journal);
void gf_cli_journal_close(gf_cli_journal *journal);

#endif
