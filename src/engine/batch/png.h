/* PNG files that a device decodes, filters and encodes: reading, one group, writing. */
#ifndef GF_BATCH_PNG_H
#define GF_BATCH_PNG_H

#include "engine/batch/batch.h"
#include "engine/batch/schedule.h"

/* Memory that grows. */
typedef struct gf_byte_buffer {
    unsigned char *data;
    size_t size;
} gf_byte_buffer;

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
     * afterwards the output file; the output image; and the data of the file. */
    unsigned char *memory;
    const gf_backend *device;
    void *state;
    gf_device_file file; /* file.scan: set by gf_batch_png_read */
    size_t *places;      /* memory of file.places; the caller frees it */
    gf_buffer encoded;   /* output file, set by gf_batch_png_compute if there is an output image */
    uint64_t largest;    /* samples of the output with the maximum value, alpha excluded */
} gf_batch_image;

/* Return whether a device may run an open item: PNG to PNG, or to measurements. */
bool gf_batch_png_is_candidate(const gf_file_batch *batch, const gf_task *task);
/* Read the file of a task: to host if it is large enough, otherwise to a buffer. Return where it
 * is; NULL if a device cannot decode it. */
unsigned char *gf_batch_png_read(const gf_task *task, const gf_buffer *host, gf_byte_buffer *buffer,
                                 gf_png_scan *scan);
/* Return the device memory for an image, without its filtered rows. */
uint64_t gf_batch_png_bytes(const gf_task *task);
/* Upload the data of a file that was read, which is overwritten. Close the file of the task, and
 * add the metadata after its pixels to the task. Fail if its CRCs are not correct. */
gf_status gf_batch_png_upload(gf_batch_image *image, unsigned char *file, const gf_buffer *host);
/* Decode a group in memory of one engine: set base.computed of each file, false if only the CPU can
 * decode it. stream: of the engine. */
gf_status gf_batch_png_decode(const gf_file_batch *batch, size_t count, gf_batch_image *group,
                              void *stream, gf_error *error);
/* Filter and encode the images that are decoded. */
gf_status gf_batch_png_compute(const gf_file_batch *batch, gf_engine *engine, size_t count,
                               gf_batch_image *first, void *stream, gf_error *error);
/* Run one image of undefined contents: loads the kernels, which could later wait for those of other
 * engines, and allocates memory. image: its memory, device and state. */
gf_status gf_batch_png_warm_up(const gf_file_batch *batch, gf_engine *engine,
                               const gf_format *format, gf_batch_image *image, void *stream);
/* Download an output and write it to a sink. context: a gf_batch_image. A gf_fill_sink. */
gf_status gf_batch_png_fill(void *context, gf_sink *sink, gf_error *error);

#endif
