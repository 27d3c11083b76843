/* Interfaces of a backend for images in device memory: jobs, memory, and PNG files. `state` is that
 * of the backend (gf_backend.open). Each function that takes a stream checks it first. */
#ifndef GF_BACKEND_DEVICE_H
#define GF_BACKEND_DEVICE_H

#include "core/filter.h"
#include "io/png/png.h"

/* ---- jobs ------------------------------------------------------------------------------------ */

/* Images of a run. */
typedef struct gf_job_images {
    uint64_t count; /* more than 1 only if rows are independent or the filter has no measure */
    uint64_t rows;  /* of each one: the height of the plan, or a multiple for images without a gap
                     * whose rows are independent */
    const gf_pixels *in;      /* inputs of all images in order */
    const gf_out_pixels *out; /* NULL: the filter makes no image */
} gf_job_images;

/* Measurements of a run, in host memory. */
typedef struct gf_device_part {
    gf_rows records; /* one per row, without image rows; data NULL: none */
    void *state;     /* NULL: none */
    void *payload;   /* NULL: none */
} gf_device_part;

/* A job is one filter and one plan (gf_device_job in gpufilter.h), used by one thread at a time. */
typedef struct gf_job_functions {
    /* Create a job. The plan must outlive it. */
    gf_status (*open)(void *state, const gf_filter *filter, const gf_plan *plan, void **job,
                      gf_error *error);
    /* Check the pointers, and queue images. part: receives the measurements of all rows to pass to
     * the functions below, if the filter has a measure. */
    gf_status (*run)(void *job, const gf_job_images *images, gf_cuda_stream stream,
                     gf_device_part **part, gf_error *error);
    /* Queue the copy of measurements to host memory. */
    gf_status (*fetch)(void *job, gf_device_part *part, gf_error *error);
    /* Wait until the measurements are in host memory. Called after fetch. */
    gf_status (*wait)(void *job, gf_device_part *part, gf_error *error);
    /* Return the memory of measurements to the job. Waits if they are not complete. */
    void (*release)(void *job, gf_device_part *part);
    void (*close)(void *job); /* waits for all work */
    /* Wait for a stream. */
    gf_status (*wait_stream)(void *state, gf_cuda_stream stream, gf_error *error);
} gf_job_functions;

/* ---- memory ---------------------------------------------------------------------------------- */

/* Receiver of bytes. */
typedef struct gf_byte_taker {
    gf_status (*take)(void *context, const void *data, size_t size, gf_error *error);
    void *context;
} gf_byte_taker;

/* After `workspace`, several threads may call the functions below it at once. */
typedef struct gf_memory_functions {
    /* Return the bytes of device memory that are free. */
    uint64_t (*free_bytes)(void *state);
    /* Return device memory of at least `size` bytes and a stream, which the engine keeps for one
     * caller. The contents of the memory are lost when it grows. */
    gf_status (*workspace)(void *state, size_t size, void **memory, void **stream, gf_error *error);
    /* Take host memory that devices copy quickly, and give it back. */
    gf_status (*take_host)(void *state, gf_buffer *host, gf_error *error);
    void (*return_host)(void *state, const gf_buffer *host);
    /* Upload bytes through that host memory, and wait. from: host->data or other memory. */
    gf_status (*upload)(void *state, void *to, const void *from, size_t bytes,
                        const gf_buffer *host, gf_error *error);
    /* Download bytes to that host memory, in pieces, and pass them on. */
    gf_status (*download)(void *state, const void *from, size_t bytes, const gf_buffer *host,
                          const gf_byte_taker *taker, gf_error *error);
} gf_memory_functions;

/* ---- PNG ------------------------------------------------------------------------------------- */

/* Images to encode (gf_encode_png_device). */
typedef struct gf_device_encoding {
    const gf_format *format; /* of all images */
    uint64_t count;
    const gf_pixels *in;
    gf_buffer *out;
    uint64_t *largest; /* receives, for each image, the number of samples with the maximum value,
                        * alpha excluded; NULL: not counted */
    uint32_t threads;  /* of the CPU, for parts with LZ77 matches */
    gf_cuda_stream stream;
} gf_device_encoding;

/* The IDAT data of a PNG file in device memory. */
typedef struct gf_device_file {
    gf_png_scan scan;
    const void *data; /* aligned to 4 bytes; at least gf_png_scan_bytes */
    /* Offsets of the parts in data, then their sizes: those of gf_png_scan_copy. */
    const size_t *places;
} gf_device_file;

/* Files to decode, in host memory (gf_decode_png_device) or in device memory. */
typedef struct gf_device_decoding {
    uint64_t count;
    const gf_out_pixels *out;
    gf_cuda_stream stream;
    /* Files in host memory. Those that the device does not decode are left to the CPU. */
    const gf_buffer *files;
    const gf_format *formats; /* of the files */
    gf_error *errors;         /* one per file, with status GF_OK */
    uint32_t threads;         /* of the CPU */
    bool always;              /* use the device even if the CPU is expected to be faster */
    /* Files in device memory; NULL: in host memory. The call waits for them. */
    const gf_device_file *uploaded;
    bool *decoded; /* receives, for each one, whether the device found no error. For the others,
                    * the CPU reports it */
} gf_device_decoding;

/* Both functions check the pointers of host calls first. */
typedef struct gf_png_functions {
    gf_status (*encode)(void *state, const gf_device_encoding *call, gf_error *error);
    gf_status (*decode)(void *state, const gf_device_decoding *call, gf_error *error);
} gf_png_functions;

#endif
