/* Interface between the stream and a backend: submit a strip, wait for its output.
 *
 * A strip is a group of consecutive output rows that are processed together, and the input rows
 * that they need (gf_map_needs). The ring is one buffer for the input rows of all strips in flight;
 * consecutive strips share rows in it. A slot is the context of one strip in flight: its part
 * of the ring and its output buffers. The number of slots limits the strips in flight. */
#ifndef GF_BACKEND_H
#define GF_BACKEND_H

#include "core/filter.h"
#include "core/thread.h"
#include "io/png/png.h"

/* Context of one strip in flight. */
typedef struct gf_slot {
    uint32_t index;
    gf_rows in[2]; /* input rows of each input; a contiguous part of its ring */
    gf_rows out;   /* output rows to compute */
    /* Allocated by the backend. ring: gf_cut.ring_rows rows of each input, shared by all slots.
     * out_buffer, records: output rows of this slot, a stride apart, and their records. */
    unsigned char *ring, *out_buffer, *records;
    unsigned char *payload_buffer; /* payloads in image order, payload_stride bytes apart */
    size_t payload_stride;
    uint32_t payload_pieces; /* number of payloads; 0: the filter has none */
} gf_slot;

/* One image, or a range of its rows, processed by a backend. */
typedef struct gf_cut {
    const gf_plan *plan;
    uint64_t first, end;          /* rows [first, end) to compute; end 0: to the last */
    uint64_t in_rows, out_rows;   /* maximum rows of one strip */
    size_t in_stride, out_stride; /* bytes, multiples of GF_ROW_ALIGN; 0 without an output image */
    uint32_t slots;
    /* Images in memory that contain the input and output rows of strips; data NULL: they are in the
     * ring and in the slots. The ring of such inputs is empty. */
    gf_rows in[2], out;
    uint64_t ring_rows; /* most rows that `slots` strips, from a multiple of that number, need */
} gf_cut;

#define GF_ROW_ALIGN 64u

/* Strip geometry requested by a backend. */
typedef struct gf_strip_request {
    bool whole_image; /* the whole image is one strip */
    uint64_t bytes;   /* approximate input bytes per strip */
    uint32_t halos;   /* minimum input rows in halos; halved down to 1 while strips exceed max */
    uint64_t max;     /* maximum bytes of all strips when raised */
    uint64_t extra;   /* bytes allocated in addition to the strips */
    uint32_t slots;   /* number of slots */
    bool in_memory;   /* strips may be parts of images in memory: no alignment is needed */
    bool fits_source; /* fit the strips to the rows that the source decodes together */
    uint32_t pieces;  /* maximum payloads per strip, before gf_payload_pieces limits them */
    uint32_t golden_parts; /* parts of a strip that golden computes concurrently; 0: none */
} gf_strip_request;

/* Return the number of payloads per strip: at most `wanted`, at most one per row, and few enough
 * that their headers stay small compared with their contents. */
uint32_t gf_payload_pieces(const gf_cut *job, uint32_t wanted);

/* Interfaces for images in device memory: jobs, memory, and PNG files. `state` is that of the
 * backend (gf_backend.open). Each function that takes a stream checks it first. */

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
    /* Download an encoded image to that host memory, in pieces, and write them to a sink. */
    gf_status (*download)(void *state, const void *from, size_t bytes, const gf_buffer *host,
                          gf_sink *sink, gf_error *error);
} gf_memory_functions;

/* Images to encode (gf_encode_png_device). */
typedef struct gf_device_encoding {
    const gf_format *format; /* of all images */
    uint64_t count;
    const gf_pixels *in;
    gf_buffer *out;
    uint64_t *largest; /* receives counts of maximum samples, alpha excluded; NULL: not counted */
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
    bool *decoded; /* receives which ones have no error; the CPU reports those of the others */
} gf_device_decoding;

/* Both functions check the pointers of host calls first. */
typedef struct gf_png_functions {
    gf_status (*encode)(void *state, const gf_device_encoding *call, gf_error *error);
    gf_status (*decode)(void *state, const gf_device_decoding *call, gf_error *error);
} gf_png_functions;

/* Functions of a backend. `state` belongs to an engine, `run` to one image. */
typedef struct gf_backend {
    const char *name; /* "cpu" */
    /* Start threads or devices. Return GF_NO_BACKEND with the reason if that fails. */
    gf_status (*open)(const gf_engine_options *options, void **state, gf_error *error);
    void (*close)(void *state);
    /* Describe the backend: "2 threads, avx2". */
    void (*describe)(const void *state, char *text, size_t size);
    /* Return the strip geometry that suits the backend for images of this plan. */
    gf_strip_request (*request)(const void *state, const gf_plan *plan);
    /* Prepare one image and allocate the buffers of all slots. */
    gf_status (*begin)(void *state, const gf_cut *job, gf_slot *slots, void **run, gf_error *error);
    /* Start to compute a filled slot, in image order; may return before the output is complete. */
    gf_status (*submit)(void *run, gf_slot *slot, gf_error *error);
    /* Wait until the slot's output is complete. submit may run concurrently in another thread. */
    gf_status (*wait)(void *run, gf_slot *slot, gf_error *error);
    /* Add the busy times of uploading, computing and downloading. Called after the last wait. */
    void (*busy)(void *run, gf_busy busy[GF_STAGE_COUNT]);
    /* Merge all states of this image into *state, which is empty. Called after the last wait. */
    gf_status (*collect)(void *run, void *state, gf_error *error);
    /* Wait for submitted work. Free the run and the buffers, or keep these for the next image. */
    void (*end)(void *run, gf_slot *slots);
    /* For images in device memory. NULL: images must be in host memory. */
    const gf_job_functions *jobs;
    const gf_memory_functions *memory;
    const gf_png_functions *png;
    /* List devices, as gf_devices. NULL: the backend has none. */
    gf_status (*devices)(gf_device *devices, size_t capacity, size_t *count, gf_error *error);
} gf_backend;

/* A started backend. */
typedef struct gf_started {
    const gf_backend *backend;
    void *state; /* of the backend */
} gf_started;

extern const gf_backend gf_backend_golden, gf_backend_cpu, gf_backend_cuda;

typedef enum gf_backend_index { GF_GOLDEN, GF_CPU, GF_CUDA, GF_BACKEND_COUNT } gf_backend_index;

/* Return a backend; NULL if it is not built in. Defined by the registry. */
const gf_backend *gf_backend_at(int index);

/* Round bytes up to a multiple of GF_ROW_ALIGN. */
static inline size_t gf_align(size_t bytes) {
    return (bytes + GF_ROW_ALIGN - 1) & ~(size_t)(GF_ROW_ALIGN - 1);
}

/* Return the rows to compute. */
static inline gf_range gf_cut_output(const gf_cut *job) {
    return (gf_range){job->first, job->end ? job->end : gf_plan_rows(job->plan)};
}

/* Return a part of the rows of a strip as a strip with their inputs and the same state. */
gf_strip gf_strip_part(const gf_plan *plan, const gf_strip *strip, uint32_t part, uint32_t parts);

/* Compute a part of a strip with the filter's CPU function, or with golden if there is none. */
gf_status gf_compute_part(const gf_plan *plan, const gf_strip *strip, uint32_t part, uint32_t parts,
                          void *scratch, gf_isa isa, gf_error *error);

/* Return the bytes of the output of a strip: image rows, then records. */
static inline size_t gf_cut_out_bytes(const gf_cut *job) {
    return (size_t)job->out_rows * (job->out_stride + job->plan->record);
}

/* Return the strip of a slot, without a state and with its first payload. */
gf_strip gf_slot_strip(const gf_plan *plan, const gf_slot *slot);

uint64_t gf_count_strips(const gf_cut *job);

/* Set the row ranges and buffer addresses of strip k. Rows shared with strip k-1 have the same
 * address, except after a wrap-around: the ring restarts when k is a multiple of the number of
 * slots, unless it holds the whole image. */
void gf_locate_strip(const gf_cut *job, uint64_t k, gf_slot *slot);
/* Return how many strips must be released before the ring has memory for the rows of strip k. */
uint64_t gf_strips_before(const gf_cut *job, uint64_t k);

/* Allocate n aligned blocks of `bytes` bytes; 0 bytes are valid. Return NULL if out of memory. */
void *gf_aligned_alloc(size_t n, size_t bytes);

/* Return the bytes of one of `pieces` equal payloads of a strip; 0: the filter has none. */
size_t gf_payload_stride(const gf_cut *job, uint32_t pieces);

/* Allocate host memory for the slots of a job, with payload_pieces payloads per slot. */
gf_status gf_slots_alloc(const gf_cut *job, uint32_t payload_pieces, gf_slot *slots,
                         gf_error *error);
void gf_slots_free(gf_slot *slots, uint32_t count);

#endif
