/* Batches of files: what their modules share. batch.c checks a batch, chooses the backend and runs
 * items on CPU threads; batch_device.c runs them on devices; batch_items.c hands out items, runs
 * one from file to file, and reports them. */
#ifndef GF_BATCH_H
#define GF_BATCH_H

#include <pthread.h>
#include <string.h>

#include "engine/engine.h"
#include "engine/task.h"

#define GF_BATCH_MAX_THREADS 1024u

/* How an item ended. */
typedef struct gf_batch_outcome {
    bool there; /* in the window of gf_file_batch: it waits for the items before it */
    gf_status status;
    gf_error error;
    gf_report report;
    gf_result *result;
} gf_batch_outcome;

typedef struct gf_file_batch {
    const gf_filter *filter;
    const gf_settings *settings;
    const gf_batch_item *items;
    uint64_t count;
    gf_batch_options options; /* options.engine: how the engines of the batch are opened */
    gf_work_source source;    /* source.take: who hands out the items; NULL: the batch */
    uint32_t threads;
    uint32_t at_once; /* files that are read and written at the same time */
    uint32_t each;    /* threads for each of them; 1: it starts none of its own */

    pthread_mutex_t lock;
    pthread_cond_t moved; /* with lock: something below, or in a queue of images, has changed */
    uint64_t begun;       /* items; all in their order, unless the batch is shared */
    uint64_t reported;    /* items; changes under both locks */
    bool asking;          /* a thread is in source.take */
    bool taken;           /* source.take has no more items */
    bool stop;            /* begin no more items */
    gf_error error;       /* why the batch ended early, if its status is not GF_OK */

    pthread_mutex_t reporting;                   /* one item at a time; locked before `lock` */
    char reason[sizeof((gf_report *)0)->reason]; /* of auto, or why a device is not used any more */
    bool device_failed;
    gf_batch_outcome *window; /* options.in_order: item i is at i % ahead; otherwise NULL */
    uint64_t ahead;           /* options.in_order: how far items may be begun before the reported */
} gf_file_batch;

/* The devices that run a batch, an engine each at least. */
typedef struct gf_batch_devices {
    uint32_t count;
    char names[GF_MAX_DEVICES][12]; /* "": the backend's own choice */
} gf_batch_devices;

/* May the batch choose its backend? */
static inline bool gf_batch_is_auto(const gf_file_batch *batch) {
    const char *name = batch->options.engine.backend;
    return !name || strcmp(name, "auto") == 0;
}

/* Do other processes take items of the same list? */
static inline bool gf_batch_is_shared(const gf_file_batch *batch) {
    return batch->source.take != NULL;
}

/* ---- batch_items.c --------------------------------------------------------------------------- */

/* How many items this batch may come to run: all, unless it is shared. */
uint64_t gf_batch_expected(const gf_file_batch *batch);
/* Under the lock: may an item be begun now? */
bool gf_batch_may_begin(const gf_file_batch *batch);
/* Begins an item that may be begun. False if there is none after all. Called and left under the
 * lock, which is open during source.take: that may wait. */
bool gf_batch_begin(gf_file_batch *batch, uint64_t *item);
/* Under the lock: is there nothing left to do? */
bool gf_batch_finished(const gf_file_batch *batch);
/* Ends the batch early. The first cause counts. */
void gf_batch_give_up(gf_file_batch *batch, const gf_error *error);
/* From now on reports say that the engine's device failed. */
void gf_batch_note_loss(gf_file_batch *batch, const gf_engine *engine);
/* Reports an item that is over. Takes its result. */
void gf_batch_report(gf_file_batch *batch, uint64_t item, gf_batch_outcome *extension);
/* How an item is read and written. */
gf_file_options gf_batch_file_options(const gf_file_batch *batch, uint64_t item);
/* Opens an item's input and makes its plan. To be ended whatever it returns. */
gf_status gf_batch_open_image(const gf_file_batch *batch, uint64_t item, gf_task *task,
                              gf_error *error);
/* Did the engine's device fail, so that only another device may do its work? */
bool gf_batch_is_lost(const gf_engine *engine);
/* Runs an item through an engine, from file to file, and reports it. False if it is left to another
 * engine, which `again` allows: nothing is reported then, and its files are as before. An engine
 * leaves items for which its device fails and, with engine->leaves, those it cannot begin. */
bool gf_batch_run_item(gf_file_batch *batch, gf_engine *engine, uint64_t item, bool again);

/* ---- batch_device.c -------------------------------------------------------------------------- */

/* Bytes of an image, in and out together; out may be of no width. */
uint64_t gf_batch_image_bytes(const gf_format *in, const gf_format *out);
/* Images of more bytes are not held in memory: devices run them from file to file. */
#define GF_BATCH_SMALL (UINT64_C(64) << 20)
/* How many engines a device has at most, for large images that are under way at once. */
uint32_t gf_batch_engines(const gf_file_batch *batch, uint32_t devices);
/* Runs all items. The calling thread and others decode and encode; one for each device drives an
 * engine, of the cpu backend where auto's device does not start; and others drive more engines of
 * the device while there are large images for them. */
void gf_batch_run_on_devices(gf_file_batch *batch, const gf_batch_devices *devices);

/* ---- batch.c --------------------------------------------------------------------------------- */

/* Fills in batch->threads, at_once and each. Each file under way is two of the open_files that the
 * process may have. */
void gf_batch_share_threads(gf_file_batch *batch, uint32_t threads, uint64_t open_files);
/* What auto expects of all items, if they are like this one. */
gf_forecast gf_batch_expect(const gf_file_batch *batch, const gf_plan *plan,
                            const gf_codec_costs *codec);
/* gf_run_batch, but on devices with this backend, whatever auto or the backend's kind say: for
 * tests without a device. NULL: no difference. */
gf_status gf_run_batch_on(const gf_batch_devices *devices, const gf_filter *filter,
                          const gf_settings *settings, const gf_batch_item *items, uint64_t count,
                          const gf_batch_options *options, const gf_work_source *source,
                          gf_error *error);

#endif
