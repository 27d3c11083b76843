/* Batches of files: declarations shared by their modules. batch.c validates a batch, chooses the
 * backend and runs items on CPU threads. engine/batch/device.c runs items on devices.
 * engine/batch/items.c distributes the items, runs one from file to file, and reports it. */
#ifndef GF_BATCH_H
#define GF_BATCH_H

#include <pthread.h>
#include <string.h>

#include "core/machine.h"
#include "engine/engine.h"
#include "engine/run/task.h"
#include "io/png/png.h"

#define GF_BATCH_MAX_THREADS GF_MAX_THREADS

/* Outcome of one item. */
typedef struct gf_batch_outcome {
    bool pending; /* in the window of gf_file_batch: finished, but not yet reported because an
                   * earlier item is not */
    gf_status status;
    gf_error error;
    gf_made made;
} gf_batch_outcome;

/* State of a batch, shared by its threads. */
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

    pthread_mutex_t lock;
    pthread_cond_t changed; /* with lock: a field below or a queue of images changed */
    uint64_t begun;         /* items started; in their order unless the batch is shared */
    uint64_t reported;      /* items reported; modified under both locks */
    bool taking;            /* a thread is calling source.take */
    bool exhausted;         /* source.take has no more items */
    bool stop;              /* start no more items */
    gf_error error;         /* why the batch ended early, if its status is not GF_OK */

    pthread_mutex_t reporting;                   /* serializes reports; acquired before `lock` */
    char reason[sizeof((gf_report *)0)->reason]; /* reason of auto, or failure of a device */
    bool device_failed;
    gf_batch_outcome *window; /* options.in_order: item i is at index i % ahead; otherwise NULL */
    uint64_t ahead;           /* options.in_order: items in the window */
} gf_file_batch;

/* Devices that run a batch, with one or more engines per device. */
typedef struct gf_batch_devices {
    uint32_t count;
    char names[GF_MAX_DEVICES][12]; /* "": chosen by the backend */
} gf_batch_devices;

/* Return whether the batch may choose its backend. */
static inline bool gf_batch_is_auto(const gf_file_batch *batch) {
    const char *name = batch->options.engine.backend;
    return !name || strcmp(name, "auto") == 0;
}

/* Return whether other processes run items of the same list. */
static inline bool gf_batch_is_shared(const gf_file_batch *batch) {
    return batch->source.take != NULL;
}

/* ---- engine/batch/items.c
 * --------------------------------------------------------------------------- */

/* Return the number of items that this batch may run: all, unless it is shared. */
uint64_t gf_batch_expected(const gf_file_batch *batch);
/* Return whether an item may be started now. Called with the lock held. */
bool gf_batch_may_begin(const gf_file_batch *batch);
/* Start an item, after gf_batch_may_begin. Return false if there is none. Called with the lock
 * held; releases it during source.take, which may block. */
bool gf_batch_begin(gf_file_batch *batch, uint64_t *item);
/* Return whether all work is done. Called with the lock held. */
bool gf_batch_finished(const gf_file_batch *batch);
/* End the batch early. The first error is kept. */
void gf_batch_abort(gf_file_batch *batch, const gf_error *error);
/* Mark all later reports: the engine's device has failed. */
void gf_batch_note_device_failure(gf_file_batch *batch, const gf_engine *engine);
/* Report a finished item. Take ownership of its result. */
void gf_batch_report(gf_file_batch *batch, uint64_t item, gf_batch_outcome *outcome);
/* Return the chain of an item. */
gf_chain gf_batch_chain(const gf_file_batch *batch, uint64_t item);
/* Open the input of an item and create its plan. chain: receives that of the item; it must outlive
 * the task. Always call gf_task_end, also after a failure. */
gf_status gf_batch_open_image(const gf_file_batch *batch, uint64_t item, gf_chain *chain,
                              gf_task *task, gf_error *error);
/* Return whether the engine's device failed and only another device may do its work. */
bool gf_batch_device_failed(const gf_engine *engine);
/* Run an item through an engine, from file to file, and report it. Return false if `again` is set
 * and another engine must run the item: the device has failed or, with engine->may_defer, it could
 * not start the item. Then nothing is reported and the files are unchanged. */
bool gf_batch_run_item(gf_file_batch *batch, gf_engine *engine, uint64_t item, bool again);

/* ---- engine/batch/device.c
 * -------------------------------------------------------------------------- */

/* Return the bytes of an image, input and output together. The output may have width 0. */
uint64_t gf_batch_image_bytes(const gf_format *in, const gf_format *out);
/* Images above this size are not held in memory: devices run them from file to file. */
#define GF_BATCH_SMALL (UINT64_C(64) << 20)
/* Return the maximum number of engines per device, used to overlap large images. */
uint32_t gf_batch_engines(const gf_file_batch *batch, uint32_t devices);
/* Run all items. The calling thread and others decode and encode, and with batch->with_cpu run
 * whole items. One driver thread per device runs an engine; if auto's device does not start, that
 * engine uses the cpu backend. More drivers run additional engines of the device while there are
 * large images or many PNG files. */
void gf_batch_run_on_devices(gf_file_batch *batch, const gf_batch_devices *devices);

/* ---- engine/batch/png.c
 * ----------------------------------------------------------------------------- */

/* A PNG file that a device decodes, filters and encodes. */
typedef struct gf_batch_png {
    /* Set by the caller: memory of an engine, of gf_batch_png_bytes bytes, and its backend. It
     * holds the input image, afterwards the output file; the output image; and the data of the
     * file. */
    unsigned char *memory;
    const gf_backend *device;
    void *state;
    gf_device_file file; /* file.scan: set by the caller */
    size_t *places;      /* memory of file.places; the caller frees it */
    bool decoded;        /* set by gf_batch_png_decode; false: only the CPU can decode it */
    gf_buffer encoded;   /* output file, set by gf_batch_png_compute if there is an output image */
    uint64_t largest;    /* samples of the output with the maximum value, alpha excluded */
} gf_batch_png;

/* Memory that grows. */
typedef struct gf_byte_buffer {
    unsigned char *data;
    size_t size;
} gf_byte_buffer;

/* Return whether a device may run an open item: PNG to PNG, or to measurements. */
bool gf_batch_png_is_candidate(const gf_file_batch *batch, const gf_task *task);
/* Read the file of a task: to host if it is large enough, otherwise to a buffer. Return where it
 * is; NULL if a device cannot decode it. */
unsigned char *gf_batch_png_read(const gf_task *task, const gf_buffer *host, gf_byte_buffer *buffer,
                                 gf_png_scan *scan);
/* Return the device memory for an image, without its filtered rows. */
uint64_t gf_batch_png_bytes(const gf_task *task);
/* Upload the data of a file that was read, which is overwritten. Close the file of the task, and
 * add the metadata after its pixels to the task. *intact: the CRCs are correct. */
gf_status gf_batch_png_upload(gf_task *task, unsigned char *file, const gf_buffer *host,
                              gf_batch_png *png, bool *intact, gf_error *error);
/* Decode files in memory of one engine, with the input format of a plan. stream: of the engine. */
gf_status gf_batch_png_decode(const gf_file_batch *batch, const gf_plan *plan, size_t count,
                              gf_batch_png *const *list, gf_batch_outcome *const *outcomes,
                              void *stream, gf_error *error);
/* Filter and encode the images that are decoded. */
gf_status gf_batch_png_compute(const gf_file_batch *batch, gf_engine *engine, const gf_plan *plan,
                               size_t count, gf_batch_png *const *list,
                               gf_batch_outcome *const *outcomes, void *stream, gf_error *error);
/* Run one image of undefined contents: loads the kernels, which could later wait for those of other
 * engines, and allocates memory. png: its memory, device and state. */
gf_status gf_batch_png_warm_up(const gf_file_batch *batch, gf_engine *engine,
                               const gf_format *format, gf_batch_png *png, void *stream,
                               gf_error *error);
/* Download an output and write it to a sink. context: a gf_batch_png. A gf_fill_sink. */
gf_status gf_batch_png_fill(void *context, gf_sink *sink, gf_error *error);

/* ---- batch.c --------------------------------------------------------------------------------- */

/* Set batch->threads, at_once and threads_per_file. A file in progress uses two of open_files. */
void gf_batch_share_threads(gf_file_batch *batch, uint32_t threads, uint64_t open_files);
/* Return auto's estimate for all items, assuming that they resemble this one. */
gf_forecast gf_batch_expect(const gf_file_batch *batch, const gf_plan *plan,
                            const gf_codec_costs *codec);
/* Run gf_run_batch on the given devices, regardless of auto and of the backend's type, for tests
 * without a device. devices NULL: no difference. */
gf_status gf_run_batch_on(const gf_batch_devices *devices, const gf_job *job,
                          const gf_batch_item *items, uint64_t count,
                          const gf_batch_options *options, gf_error *error);

#endif
