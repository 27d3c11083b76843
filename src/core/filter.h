/* The contract between one filter and everything else: read this first.
 *
 * A filter is a descriptor (struct gf_filter): what it is called, which parameters it takes, how
 * they become a plan, and a function for each backend that carries the plan out on a strip of rows.
 * The parser, the help, the golden digests and the equality tests are all made from it. A filter
 * needs a golden function; without a CPU function it runs golden, without a CUDA function it has no
 * cuda backend. To add one: a folder in filters/, a .cu in cuda/, a line in filters/registry.def.
 *
 * A filter makes of a strip any of:
 *   rows     an image row, a record (numbers measured in this row), or both, one for each row
 *   state    what accumulates over the image in a block of plan->state_bytes; states merge exactly
 *   payload  as many bytes as the strip gives rise to (extracted samples), in image order
 *
 * All implementations of one filter give the same bits. The golden one says which bits. */
#ifndef GF_FILTER_H
#define GF_FILTER_H

#include "core/image.h"
#include "core/machine.h"
#include "core/settings.h"

struct gf_result;        /* result.h */
struct gf_sample_layout; /* io/sample_sink.h */
struct gf_sample_sink;

/* Parameters resolved once, on the host, for one image format. Every filter's own plan begins with
 * this head; every backend reads the same plan. */
typedef struct gf_plan {
    gf_format in;
    gf_format out;   /* of the image it makes; width 0: it makes none */
    uint32_t inputs; /* images whose rows lie side by side in a strip; see gf_strip_input */
    uint32_t record; /* bytes of a row's record, a multiple of 8; it follows the image's row, or,
                      * where there is none, the record of the row before */
    uint64_t state_bytes;
    /* Parts of a strip, as the CPU function cuts it, write different places of the state: one state
     * serves all threads. */
    bool disjoint;
    bool ordered; /* the one state passes through the strips in image order; otherwise there
                   * may be several, which are merged in the end. Such a state has a share for
                   * each column of pixels, side by side, and ranges of columns may be measured
                   * as images of their own */
    bool has_payload;
    bool golden_only; /* the filter has no CPU function: golden runs on the cpu backend, too */
    uint64_t
        halo; /* rows above and below an output row that the filter reads, clipped to the image */
    uint64_t golden_bytes; /* memory that the golden function takes, at most */
    uint64_t result_bytes; /* memory that the measure keeps on the host */
    double cost;           /* estimated nanoseconds an input sample takes one CPU core */
    double brightness;     /* factor of a flat area's samples; 0: the filter has none */
    const char *advice;    /* how to avoid clipping by that factor; NULL: none */
    double download;       /* bytes of payload expected for an input sample */
} gf_plan;

/* A strip on its way through a backend's function, in that backend's memory. */
typedef struct gf_strip {
    gf_rows in;  /* rows held, halo included */
    gf_rows out; /* rows to compute: image row and record */
    void *state;
    void *payload;
} gf_strip;

/* Rows of input i: a row of each image lies in its share of the stride. */
static inline gf_rows gf_strip_input(const gf_strip *strip, uint32_t inputs, uint32_t i) {
    gf_rows rows = strip->in;
    rows.data += i * (rows.stride / inputs);
    return rows;
}

/* Where a row's record lies behind the start of its image row. */
static inline size_t gf_record_offset(const gf_plan *plan) {
    return plan->out.width ? (gf_row_bytes(&plan->out) + 7) & ~(size_t)7 : 0;
}

static inline void *gf_record(const gf_plan *plan, const gf_rows *out, uint64_t y) {
    return gf_row(out, y) + gf_record_offset(plan);
}

/* Bytes of an output row: image row and record. */
static inline size_t gf_out_bytes(const gf_plan *plan) {
    return plan->record      ? gf_record_offset(plan) + plan->record
           : plan->out.width ? gf_row_bytes(&plan->out)
                             : 0;
}

/* Compute part `part` of `parts` of the rows of strip->out on a CPU; all parts together are all of
 * it. Many threads share a strip: the function cuts it as it likes, by rows or by columns. The
 * state is the thread's own, or, if ordered or disjoint, shared by all parts. The payload is the
 * part's own: parts in ascending order are in image order, and none has more than 1/parts of the
 * rows, rounded up. */
typedef void gf_cpu_function(const gf_plan *plan, const gf_strip *strip, uint32_t part,
                             uint32_t parts, void *scratch);

/* The fast CPU implementation. Without one the cpu backend runs golden on parts of a strip. */
typedef struct gf_filter_cpu {
    /* Bytes of scratch that one thread needs; NULL for none. */
    size_t (*scratch_bytes)(const gf_plan *plan);
    gf_cpu_function *run[GF_ISA_COUNT]; /* by SIMD level: all, or none */
} gf_filter_cpu;

/* The declarations of a CPU function for GF_LEVELS. */
#define GF_DECLARE_LEVELS(function)                                                                \
    gf_cpu_function function##_portable, function##_avx2, function##_avx512

/* The CUDA implementation: the same on device memory, queued on a stream. */
typedef struct gf_filter_cuda {
    /* Bytes of device scratch that one strip of at most in_rows input rows needs on the current
     * device; NULL for none. */
    size_t (*scratch_bytes)(const gf_plan *plan, uint64_t in_rows);
    /* Queues the kernels; stream is a cudaStream_t of the current device. Other strips may add to
     * the same state at the same time, unless it is ordered. */
    gf_status (*launch)(const gf_plan *plan, const gf_strip *strip, void *scratch, void *stream,
                        gf_error *error);
} gf_filter_cuda;

/* How extracted samples leave. */
typedef struct gf_keep {
    struct gf_sample_sink *samples; /* where they go, open; NULL: into no file */
    bool all;                       /* keep all of them for the result */
    uint64_t max_memory;            /* for what is kept */
    const char *name;               /* of the image, for messages */
} gf_keep;

/* What a backend extracted from some rows: pieces, a stride apart, in image order. */
typedef struct gf_payloads {
    unsigned char *data;
    size_t stride;
    uint32_t count;
} gf_payloads;

/* What payloads are. Most filters have none. */
typedef struct gf_payload_format {
    /* Bytes of a payload at most for so many rows; for 0 rows the head that tells its size. */
    size_t (*bytes)(const gf_plan *plan, uint64_t rows);
    /* Bytes that a payload has, from its head. */
    size_t (*used)(const gf_plan *plan, const void *head);
    /* Is what was extracted from so many rows not what golden extracted from them, however each is
     * cut into pieces? Then `where` says what differs first. Believes nothing of what it got. */
    bool (*differ)(const gf_plan *plan, uint64_t rows, const gf_payloads *golden,
                   const gf_payloads *got, char *where, size_t size);
    /* What the extracted samples are, for their file. */
    void (*layout)(const gf_plan *plan, struct gf_sample_layout *layout);
} gf_payload_format;

/* What turns states, records and payloads into a result: on the host, in one thread. */
typedef struct gf_measure {
    /* Adds another state, exactly, in any order; zero bytes are an empty one. NULL where there are
     * no states. */
    void (*merge)(const gf_plan *plan, void *state, const void *other);
    /* What is kept for the image. On failure *data is NULL. */
    gf_status (*open)(const gf_plan *plan, const gf_keep *keep, void **data, gf_error *error);
    /* Takes the records of a strip, and then its payloads, in image order. NULL where there are
     * none. */
    gf_status (*rows)(const gf_plan *plan, void *data, const gf_rows *out, gf_error *error);
    gf_status (*payload)(const gf_plan *plan, void *data, const void *payload, gf_error *error);
    /* After the last strip: all states merged into one (NULL without states). */
    gf_status (*finish)(const gf_plan *plan, void *data, const void *state, gf_error *error);
    /* Fills in the tables, whose cells are asked for later, while plan and data live. */
    void (*describe)(const gf_plan *plan, const void *data, struct gf_result *result);
    gf_value (*cell)(const gf_plan *plan, const void *data, size_t table, uint64_t row,
                     size_t column);
    void (*close)(void *data);
} gf_measure;

struct gf_filter {
    gf_filter_info info;
    size_t plan_bytes;
    /* Fills a plan of plan_bytes; plan->in and plan->inputs are set already, plan->out is plan->in
     * for a filter that makes an image and empty for one that measures. GF_USAGE for settings that
     * contradict each other. */
    gf_status (*plan)(const gf_settings *settings, gf_plan *plan, gf_error *error);
    /* Sets the parameters that have no default to what the plan has made of them. NULL: there are
     * no such parameters, or they stay without a value. */
    gf_status (*effective)(const gf_plan *plan, gf_settings *settings, gf_error *error);
    /* A filter that measures the whole image first, with its default settings, and what is learned
     * from it; NULL for none. */
    const gf_filter *before;
    /* What it changes in the plan are plain bytes: no pointers. */
    void (*learn)(gf_plan *plan, const gf_plan *before_plan, const void *before_data);
    /* The definition: scalar, one thread. The golden backend gives it the whole image at once;
     * --verify, strips with the rows around them that plan->halo says. */
    gf_status (*golden)(const gf_plan *plan, const gf_strip *strip, gf_error *error);
    gf_filter_cpu cpu;
    const gf_filter_cuda *cuda;       /* NULL where CUDA is not built in */
    const gf_measure *measure;        /* NULL for a filter without a result */
    const gf_payload_format *payload; /* NULL for a filter without payloads */
};

static inline size_t gf_cpu_scratch_bytes(const gf_filter *filter, const gf_plan *plan) {
    return filter->cpu.scratch_bytes ? filter->cpu.scratch_bytes(plan) : 0;
}

/* Does each output row follow from the same input row alone, whatever stands above and below? Rows
 * of several images may then go through a backend together, as if they were one tall image. */
static inline bool gf_rows_stand_alone(const gf_filter *filter, const gf_plan *plan) {
    return !plan->halo && !plan->state_bytes && !plan->has_payload && !filter->before;
}

/* Declares what a .cu defines as extern "C". */
#ifdef __cplusplus
#define GF_EXTERN_C extern "C"
#else
#define GF_EXTERN_C extern
#endif

#ifdef GF_WITH_CUDA
#define GF_IF_CUDA(pointer) (pointer)
#else
#define GF_IF_CUDA(pointer) NULL
#endif

/* ---- plans (plan.c) -------------------------------------------------------------------------- */

/* Callers make mistakes: a filter that was not found, another filter's settings. */
gf_status gf_check_use(const gf_filter *filter, const gf_settings *settings, gf_error *error);

/* A plan for images of this format, checked; free() it. */
gf_status gf_plan_new(const gf_filter *filter, const gf_settings *settings, const gf_format *format,
                      gf_plan **plan, gf_error *error);

#endif
