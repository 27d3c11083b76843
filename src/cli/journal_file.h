/* A file of the record of outputs: what it is called, how it begins, and reading on in it. */
#ifndef GF_CLI_JOURNAL_FILE_H
#define GF_CLI_JOURNAL_FILE_H

#include <sys/types.h>

#include "journal.h"

#define GF_CLI_JOURNAL_TITLE "gpufilter-done "
#define GF_CLI_JOURNAL_HEADER GF_CLI_JOURNAL_TITLE "2\n"

/* It is open only while it is read: there may be as many as there were shards. */
typedef struct gf_cli_journal_file {
    char *path;
    off_t known; /* so many bytes of it have been read */
    bool begun;  /* its first line among them */
} gf_cli_journal_file;

/* What is done with a line; false: out of memory. */
typedef bool (*gf_cli_journal_keep)(void *context, const gf_cli_made *made);

/* FOLDER/NAME of what a shard, or a run of all inputs (0 of 0), writes; NULL if out of memory. */
char *gf_cli_journal_path(const char *folder, uint32_t shard, uint32_t shards);
/* Looks at its first line, if it can be read. GF_FAILED if the file is something else. */
gf_status gf_cli_journal_file_check(const char *path, gf_error *error);
/* Reads the lines that were not there the last time. A file that is no more has none. */
gf_status gf_cli_journal_file_read(gf_cli_journal_file *file, gf_cli_journal_keep keep,
                                   void *context, gf_error *error);

#endif
