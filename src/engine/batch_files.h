/* Many files, each by itself: what the ways of running them share. */
#ifndef GF_BATCH_FILES_H
#define GF_BATCH_FILES_H

#include <pthread.h>

#include "gpufilter.h"

/* What became of an item, kept until those before it are told of. */
typedef struct gf_told {
    bool there;
    gf_status status;
    gf_error error;
    gf_report report;
    gf_result *result;
} gf_told;

typedef struct gf_files {
    const gf_filter *filter;
    const gf_settings *settings;
    const gf_batch_item *items;
    uint64_t count;
    gf_batch_options options; /* engine: as each engine of the batch is opened */
    uint32_t threads;
    uint32_t at_once; /* files that are read and written at a time, */
    uint32_t each;    /* by so many threads each; 1 is the file's own: it starts none */
    char reason[sizeof((gf_report *)0)->reason]; /* of auto, or why a device ... */
    bool device_failed;                          /* ... is not used any more */

    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint64_t next; /* the first item that nobody has begun; nothing with `take` */
    uint64_t busy; /* items begun that are not over, and threads in gf_files_take */
    bool stop;     /* begin no others */
    bool taken;    /* with `take`: there are no more */
    gf_status status;
    gf_error error; /* why none can be run, or none any more */
    uint64_t over;  /* items that were told */

    pthread_mutex_t taking;  /* taken before lock: one call of `take` at a time */
    pthread_mutex_t telling; /* taken before lock */
    uint64_t told;           /* in order: how many; under both locks */
    uint64_t ahead;          /* in order: how far an item may be begun before these are told */
    gf_told *window;         /* in order: item i in i % ahead */
} gf_files;

/* Makes ready what is below the lock; `threads` must be known. To be cleared whatever it returns.
 */
gf_status gf_files_init(gf_files *files, gf_error *error);
/* Frees it, with the results that nobody was told of. */
void gf_files_clear(gf_files *files);

/* How many items this batch may come to run: all, unless others take from them, too. */
uint64_t gf_files_expected(const gf_files *files);
/* Are there items that nobody has begun, and may one be, now or later? Under the lock. */
bool gf_files_has_more(const gf_files *files);
/* May the next item be begun? Under the lock. */
bool gf_files_may_begin(const gf_files *files);
/* Begins it; false if there is none after all. Called and left under the lock, which is open while
 * `take` is asked: that may wait. */
bool gf_files_begin(gf_files *files, uint64_t *item);
/* Is there nothing left to do? Under the lock. */
bool gf_files_over(const gf_files *files);
/* An item is over. Takes the result. */
void gf_files_tell(gf_files *files, uint64_t item, gf_status status, const gf_error *error,
                   gf_report *report, gf_result *result);
/* None can be run; the first cause counts. */
void gf_files_give_up(gf_files *files, gf_status status, const gf_error *error);
/* How an item is written. */
gf_file_options gf_files_options(const gf_files *files, uint64_t item);
/* What an engine may leave to another. */
typedef enum gf_leave {
    GF_LEAVE_NOTHING,
    GF_LEAVE_LOST,    /* an item for which its device failed */
    GF_LEAVE_UNBEGUN, /* that, and one that it could not begin */
} gf_leave;

/* Runs one item through an engine, from its file to its file, and tells. False if the engine leaves
 * it to another: then nothing is told, and its files are as before. */
bool gf_files_run_one(gf_files *files, gf_engine *engine, uint64_t item, gf_leave leave);
/* From now on reports say that a device failed. */
void gf_files_note_loss(gf_files *files, const gf_error *error);

#endif
