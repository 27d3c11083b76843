/* A batch of files: what all its items share, its threads and devices. */
#ifndef GF_BATCH_H
#define GF_BATCH_H

#include "engine/engine.h"
#include "engine/run/task.h"

/* Constant while the batch runs. */
typedef struct gf_file_batch {
    gf_chain chain; /* of an item: see gf_batch_chain */
    const gf_batch_item *items;
    uint64_t count;
    gf_batch_options options; /* options.engine: options of the batch's engines */
    gf_work_source source;    /* source.take returns items; NULL: run the list in order */
    uint32_t threads;
    uint32_t at_once;          /* files read and written at the same time */
    uint32_t threads_per_file; /* threads per file; 1: no additional threads */
    bool with_cpu;             /* on devices: CPU threads run items of the same list, too */
    uint32_t parts;            /* with_cpu: expected deflate streams of a PNG file */
    char reason[sizeof((gf_report *)0)->reason]; /* reason of auto */
} gf_file_batch;

/* Devices that run a batch, with one or more engines per device. */
typedef struct gf_batch_devices {
    uint32_t count;
    char names[GF_MAX_DEVICES][12]; /* "": chosen by the backend */
} gf_batch_devices;

/* Return whether the batch may choose its backend. */
bool gf_batch_is_auto(const gf_file_batch *batch);
/* Return the number of items that this batch may run: all, unless it is shared. */
uint64_t gf_batch_expected(const gf_file_batch *batch);
/* Set batch->threads, at_once and threads_per_file. A file in progress uses two of open_files. */
void gf_batch_share_threads(gf_file_batch *batch, uint32_t threads, uint64_t open_files);
/* Return the maximum number of engines per device, used to overlap items that run on their own. */
uint32_t gf_batch_engines(const gf_file_batch *batch, uint32_t devices);
gf_chain gf_batch_chain(const gf_file_batch *batch, uint64_t item);
/* Open the input of an item and create its plan. chain: receives that of the item; it must outlive
 * the task. Always call gf_task_end, also after a failure. */
gf_status gf_batch_open_image(const gf_file_batch *batch, uint64_t item, gf_chain *chain,
                              gf_task *task, gf_error *error);
/* Run the items of a checked batch on devices, or without them on CPU threads. Return why some
 * could not be run. */
gf_status gf_batch_run(const gf_file_batch *batch, const gf_batch_devices *devices,
                       gf_error *error);
/* Return auto's estimate for all items, assuming that they resemble this one. */
gf_forecast gf_batch_expect(const gf_file_batch *batch, const gf_plan *plan,
                            const gf_codec_costs *codec);
/* Run gf_run_batch on the given devices, regardless of auto and of the backend's type, for tests
 * without a device. devices NULL: no difference. */
gf_status gf_run_batch_on(const gf_batch_devices *devices, const gf_job *job,
                          const gf_batch_item *items, uint64_t count,
                          const gf_batch_options *options, gf_error *error);

#endif
