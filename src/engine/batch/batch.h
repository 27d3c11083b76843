/* A batch of files: what its items share, its threads and devices, and PNG files on devices. */
#ifndef GF_BATCH_H
#define GF_BATCH_H

#include "engine/batch/schedule.h"
#include "engine/run/task.h"

/* Constant while the batch runs. */
typedef struct gf_file_batch {
    gf_chain chain; /* of an item: see gf_batch_chain */
    const gf_batch_item *items;
    uint64_t count;
    gf_batch_options options; /* options.engine: options of the batch's engines */
    gf_work_source source;    /* source.take returns items; NULL: run the list in order */
    uint32_t threads;
    uint32_t at_once;             /* files read and written at the same time */
    uint32_t threads_per_file;    /* threads per file; 1: no additional threads */
    bool with_cpu;                /* on devices: CPU threads run items of the same list, too */
    uint32_t parts;               /* with_cpu: expected deflate streams of a PNG file */
    char reason[GF_REASON_BYTES]; /* reason of auto */
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
/* Run a checked batch on devices, or without them on CPU threads. Return why items did not run. */
gf_status gf_batch_run(const gf_file_batch *batch, const gf_batch_devices *devices,
                       gf_error *error);
/* Return auto's estimate for all items, assuming that they resemble this one. */
gf_forecast gf_batch_expect(const gf_file_batch *batch, const gf_nodes *nodes,
                            const gf_codec_costs *codec);
/* Run gf_run_batch on the given devices, regardless of auto and of the backend's type, for tests
 * without a device. devices NULL: no difference. */
gf_status gf_run_batch_on(const gf_batch_devices *devices, const gf_job *job,
                          const gf_batch_item *items, uint64_t count,
                          const gf_batch_options *options, gf_error *error);

/* ---- PNG files on devices (png.c) ------------------------------------------------------------ */

/* An item of a batch in progress. */
typedef struct gf_batch_image {
    gf_schedule_item base; /* first. base.next lists the images of a group, which have one format */
    double began;
    gf_chain chain;
    gf_task task; /* open until the image is written; reads the file, then memory */
    gf_status status;
    gf_error error;
    gf_made made;
    /* Memory of an engine, of gf_batch_png_bytes bytes, and its backend. It holds the input image,
     * afterwards the output files; the output images; and the data of the file. */
    unsigned char *memory;
    gf_started on;
    gf_device_file file; /* file.scan: set by gf_batch_png_read */
    size_t *places;      /* memory of file.places; the caller frees it */
    /* File of each writer, and its number of samples with the maximum value, alpha excluded, set by
     * gf_batch_png_compute. */
    gf_buffer encoded[GF_MAX_STEPS];
    uint64_t largest[GF_MAX_STEPS];
} gf_batch_image;

/* Return whether a device may run an open item: PNG to PNG, or to measurements. */
bool gf_batch_png_is_candidate(const gf_file_batch *batch, const gf_task *task);
/* Read the file of a task: to host if it is large enough, otherwise to a buffer that grows. Return
 * where it is; NULL if a device cannot decode it. */
unsigned char *gf_batch_png_read(const gf_task *task, const gf_buffer *host, gf_buffer *buffer,
                                 gf_png_scan *scan);
/* Return the device memory for an image, without its filtered rows. */
uint64_t gf_batch_png_bytes(const gf_task *task);
/* Upload the data of a file that was read, which is overwritten. Close the file of the task, and
 * add the metadata after its pixels to the task. Fail if its CRCs are not correct. */
gf_status gf_batch_png_upload(gf_batch_image *image, unsigned char *file, const gf_buffer *host);
/* Decode a group in the memory and on the stream of an engine. Set base.computed of each file;
 * false: only the CPU can decode it. */
gf_status gf_batch_png_decode(const gf_file_batch *batch, size_t count, gf_batch_image *group,
                              void *stream, gf_error *error);
/* Filter and encode the images that are decoded. */
gf_status gf_batch_png_compute(const gf_file_batch *batch, gf_engine *engine, size_t count,
                               gf_batch_image *first, void *stream, gf_error *error);
/* Run one image of undefined contents: loads the kernels, which could later wait for those of other
 * engines, and allocates memory. image: its memory, device and state. */
gf_status gf_batch_png_warm_up(const gf_file_batch *batch, gf_engine *engine,
                               const gf_format *format, gf_batch_image *image, void *stream);
/* Download and write the outputs, then call options->ready and rename them. The results of the
 * image are freed on failure. */
gf_status gf_batch_png_write(gf_batch_image *image, gf_error *error);

#endif
