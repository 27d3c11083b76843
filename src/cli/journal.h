/* The record of outputs that a batch leaves in --out-dir, for --resume.
 *
 * A file of lines: first what it is and its version, then one for each output, written just before
 * it gets its name: CHECK SETTINGS INPUT SIZE TIME NAME. CHECK is of the rest of the line, so that
 * a torn one is none; SETTINGS and INPUT are digests; SIZE and TIME (the last change, in
 * nanoseconds) are the output's, and a renaming keeps both; NAME is its path below --out-dir.
 *
 * So a file is ours if some line has its name and time, whatever happened after that line was
 * written: lines of what never got its name, or was replaced since, fit no file and do no harm. It
 * is complete if it has the size, too. A line is one write at the end of the file, so that two runs
 * at once do not tear each other's.
 *
 * That holds on one machine. Shards of a job run on several, whose writes to one file of a network
 * file system may be lost: each writes one of its own, .gpufilter-done.K-of-N, and all are read. */
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

/* Is that what one of its files is called, or is where names in capitals are the same? */
bool gf_cli_journal_is_name(const char *name);

/* The one in a folder, which a shard (0 of 0: a run of all inputs) adds to. sync: each line is on
 * the disk when it has been added. GF_FAILED if the file that it would write is something else, or
 * of another version. */
gf_status gf_cli_journal_open(const char *folder, uint32_t shard, uint32_t shards, bool sync,
                              gf_cli_journal **journal, gf_error *error);
/* Reads the lines that were not there the last time, of all files that are there now. GF_FAILED if
 * one is no record. */
gf_status gf_cli_journal_read(gf_cli_journal *journal, gf_error *error);
/* The same of the files that were there the last time: does not list the folder. */
gf_status gf_cli_journal_read_on(gf_cli_journal *journal, gf_error *error);
/* What was read of an output of this name and time of last change; NULL if nothing was. It may have
 * another size: what a power failure has left is shorter. *sure: it is known which settings and
 * input that was made with: those of the last line, and no other file says otherwise. */
const gf_cli_made *gf_cli_journal_find(gf_cli_journal *journal, const char *name, int64_t time,
                                       bool *sure);
/* Adds a line, if it can be written. From any thread. */
void gf_cli_journal_add(gf_cli_journal *journal, const gf_cli_made *made);
/* Why a line could not be written, in words for people, once; false if all could be. */
bool gf_cli_journal_trouble(gf_cli_journal *journal, gf_error *error);
void gf_cli_journal_close(gf_cli_journal *journal);

#endif
