/* The end of a file of the record, where lines are added. */
#ifndef GF_CLI_JOURNAL_END_H
#define GF_CLI_JOURNAL_END_H

#include <pthread.h>

#include "journal.h"

typedef struct gf_cli_journal_end {
    char *path;
    pthread_mutex_t lock; /* of what is below */
    int fd;               /* -1: it is not open */
    bool torn;            /* the last line may not be whole */
    int cause;            /* why a line could not be written, an errno */
    bool told;
    bool sync; /* each line is to be on the disk */
} gf_cli_journal_end;

/* Takes the path. The file is made with its first line. */
void gf_cli_journal_end_init(gf_cli_journal_end *end, char *path, bool sync);
/* Adds a line, if it can be written. From any thread. */
void gf_cli_journal_end_add(gf_cli_journal_end *end, const gf_cli_made *made);
/* Why a line could not be written, in words for people, once; false if all could be. */
bool gf_cli_journal_end_trouble(gf_cli_journal_end *end, gf_error *error);
void gf_cli_journal_end_close(gf_cli_journal_end *end);

#endif
