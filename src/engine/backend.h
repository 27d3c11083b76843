/* What the stream asks of a backend: take a strip, give it back filtered. */
#ifndef GF_BACKEND_H
#define GF_BACKEND_H

#include "core/clock.h"
#include "core/filter.h"

/* One place in the ring: a strip on its way through. */
typedef struct gf_slot {
    uint32_t index;
    gf_rows in;  /* rows held, halo included: a piece of the ring */
    gf_rows out; /* rows to compute */
    /* Allocated by the backend, rows a stride apart: gf_ring_rows rows that all slots share, and
     * the slot's own for what comes out. */
    unsigned char *ring, *out_buffer;
    unsigned char *payload_buffer; /* pieces in image order, a stride apart */
    size_t payload_stride;
    uint32_t payload_pieces; /* 0: this filter has no payload */
} gf_slot;

/* One image's way through a backend. */
typedef struct gf_job {
    const gf_filter *filter;
    const gf_plan *plan;
    uint64_t first, end;          /* rows of the image to compute; end 0: all */
    uint64_t in_rows, out_rows;   /* at most, of one strip */
    size_t in_stride, out_stride; /* bytes; image rows are multiples of GF_ROW_ALIGN apart */
    uint32_t slots;
} gf_job;

#define GF_ROW_ALIGN 64u

/* How a backend wants its strips. */
typedef struct gf_strip_request {
    bool whole_image; /* one strip: the whole image */
    uint64_t bytes;   /* of input a strip, about */
    uint32_t halos;   /* with a halo: height of a strip at least, in halos, ... */
    uint64_t max;     /* ... as long as all strips together keep to so many bytes; 1 then */
    uint64_t extra;   /* bytes it takes beside the strips */
    uint32_t slots;   /* strips in flight */
    uint32_t pieces;  /* payloads of a strip at most, as gf_payload_pieces limits them */
    uint32_t checks;  /* parts of a strip that golden computes at the same time; 0: it does not */
} gf_strip_request;

/* How many payloads a strip has, if a backend would like so many: no more than it has rows, nor so
 * many that their heads outweigh what they hold. */
uint32_t gf_payload_pieces(const gf_job *job, uint32_t wanted);

typedef struct gf_backend {
    const char *name;
    /* Starts threads or devices. GF_NO_BACKEND with the reason where that cannot be. */
    gf_status (*open)(const gf_engine_options *options, void **state, gf_error *error);
    void (*close)(void *state);
    /* "2 threads, avx2". */
    void (*describe)(const void *state, char *text, size_t size);
    gf_strip_request (*request)(const void *state, const gf_plan *plan);
    /* Prepares one image: sets the buffers of all slots. */
    gf_status (*begin)(void *state, const gf_job *job, gf_slot *slots, void **run, gf_error *error);
    /* Starts work on a filled slot; may return before it is done. Slots come in image order. */
    gf_status (*submit)(void *run, gf_slot *slot, gf_error *error);
    /* Returns when the slot's output is there. May be called from another thread than submit. */
    gf_status (*wait)(void *run, gf_slot *slot, gf_error *error);
    /* After the last wait: adds how long uploading, computing and downloading were busy. */
    void (*busy)(void *run, gf_busy busy[GF_STAGE_COUNT]);
    /* After the last wait: the states of this image, merged into an empty one. */
    gf_status (*collect)(void *run, void *state, gf_error *error);
    /* Waits for whatever was submitted, then frees the run and the slots' buffers, or keeps these
     * for the next image. */
    void (*end)(void *run, gf_slot *slots);
} gf_backend;

extern const gf_backend gf_backend_golden;
extern const gf_backend gf_backend_cpu;
extern const gf_backend gf_backend_cuda;

/* Bytes up to the next multiple of GF_ROW_ALIGN. */
static inline size_t gf_align(size_t bytes) {
    return (bytes + GF_ROW_ALIGN - 1) & ~(size_t)(GF_ROW_ALIGN - 1);
}

/* Bytes from one output row to the next. Image rows are aligned; records alone lie side by side, so
 * that a device writes whole lines of them and copies nothing else back. */
static inline size_t gf_out_stride(const gf_plan *plan) {
    return plan->out.width ? gf_align(gf_out_bytes(plan)) : plan->record;
}

/* Where the rows to compute end. */
static inline uint64_t gf_job_end(const gf_job *job) {
    return job->end ? job->end : job->plan->in.height;
}

/* Rows that are read for those from `first` to before `end`: theirs, and their halo in the image.
 * Returns where they begin. */
static inline uint64_t gf_held_rows(const gf_plan *plan, uint64_t first, uint64_t end,
                                    uint64_t *rows) {
    const uint64_t height = plan->in.height, halo = plan->halo;
    const uint64_t from = first < halo ? 0 : first - halo;
    *rows = (height - end < halo ? height : end + halo) - from;
    return from;
}

/* Part `part` of `parts` of the rows of a strip, as a strip of its own: with the rows around it
 * that the filter reads, and with the same state and payload. */
gf_strip gf_strip_part(const gf_plan *plan, const gf_strip *strip, uint32_t part, uint32_t parts);

/* Compute a part of a strip by the filter's CPU function, or, if it has none, by golden. */
gf_status gf_compute_part(const gf_filter *filter, const gf_plan *plan, const gf_strip *strip,
                          uint32_t part, uint32_t parts, void *scratch, gf_isa isa,
                          gf_error *error);

/* Rows of the ring. Strips share the rows of their halos, and lie in it as they do in the image. */
static inline uint64_t gf_ring_rows(const gf_job *job) {
    uint64_t held;
    const uint64_t rows = job->slots * job->out_rows + 2 * job->plan->halo;
    gf_held_rows(job->plan, job->first, gf_job_end(job), &held);
    return rows < held ? rows : held;
}

uint64_t gf_count_strips(const gf_job *job);

/* Finds which rows strip k computes and holds, without saying where they lie. */
void gf_cut_strip(const gf_job *job, uint64_t k, gf_slot *slot);
/* The same, with the rows in the slot's buffers: those that it shares with strip k-1 lie where that
 * one has them, except that the ring begins again when k is a multiple of the slots (and does not
 * hold the whole image). */
void gf_locate_strip(const gf_job *job, uint64_t k, gf_slot *slot);
/* Returns how many strips must be done with before the rows of strip k may be put into the ring. */
uint64_t gf_strips_before(const gf_job *job, uint64_t k);

/* Memory for n times so many bytes, aligned, also where that is none; NULL if there is not so much.
 */
void *gf_aligned_alloc(size_t n, size_t bytes);

/* Bytes of one of a slot's payloads, if a strip has so many, of an equal share of its rows each; 0
 * for a filter without. */
size_t gf_payload_stride(const gf_job *job, uint32_t pieces);

/* Ordinary host memory for the slots of a job, with room for payload_pieces payloads. */
gf_status gf_slots_alloc(const gf_job *job, uint32_t payload_pieces, gf_slot *slots,
                         gf_error *error);
void gf_slots_free(gf_slot *slots, uint32_t count);

#endif
