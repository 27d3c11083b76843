/* The record of outputs that a batch leaves in --out-dir, for --resume.
 *
 * A file of lines: first what it is and its version, then one for each output, written just before
 * it gets its name: CHECK SETTINGS INPUT SIZE TIME NAME. CHECK is of the rest of the line, so that
 * a torn one is none; SETTINGS and INPUT are digests; SIZE and TIME (the last change, in
 * nanoseconds) are the output's, and a renaming keeps both; NAME is its path below --out-dir.
 *
 * So a file is ours if some line has its name, size and time, whatever happened after that line was
 * written: lines of what never got its name, or was replaced since, fit no file and do no harm. A
 * line is one write at the end of the file, so that two runs at once do not tear each other's. */
#ifndef GF_CLI_JOURNAL_H
#define GF_CLI_JOURNAL_H

#include "gpufilter.h"

#define GF_CLI_JOURNAL ".gpufilter-done"

typedef struct gf_cli_made {
    uint64_t settings; /* all that decides what is made of an input */
    uint64_t input;    /* which one it was, and in which state */
    uint64_t size;
    int64_t time;
    const char *name;
} gf_cli_made;

typedef struct gf_cli_journal gf_cli_journal;

/* The one in a folder, if there is one; it is made with its first line. GF_FAILED for a file that
 * is something else, or of another version. */
gf_status gf_cli_journal_open(const char *folder, gf_cli_journal **journal, gf_error *error);
/* Reads the lines that were not there the last time, also those of other runs. */
gf_status gf_cli_journal_read(gf_cli_journal *journal, gf_error *error);
/* The last line read of an output that looks like this; NULL if there is none. */
const gf_cli_made *gf_cli_journal_find(gf_cli_journal *journal, const char *name, uint64_t size,
                                       int64_t time);
/* Adds a line, if it can be written. From any thread. */
void gf_cli_journal_add(gf_cli_journal *journal, const gf_cli_made *made);
/* Why it cannot be written, in words for people, once; false if it can be. */
bool gf_cli_journal_trouble(gf_cli_journal *journal, gf_error *error);
void gf_cli_journal_close(gf_cli_journal *journal);

#endif
