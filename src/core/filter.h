/* Interface between a filter and the rest of the program. Read this first.
 *
 * A filter is a descriptor (struct gf_filter): its name, its parameters, a function that resolves
 * settings into a plan, and one function per backend that computes a strip. A strip is a group of
 * consecutive image rows that are processed together. Command-line parsing, help, golden digests
 * and equality tests use the descriptor. The golden function is mandatory. Without a CPU function,
 * the cpu backend runs the golden function; without CUDA functions, the cuda backend does not
 * support the filter. To add a filter, add a directory to filters/, one to cuda/ and a line to
 * filters/registry.def.
 *
 * A filter computes from each strip any combination of:
 *   rows     one output image row, one record (values measured in that row), or both, per row
 *   state    plan->state_bytes of values accumulated over the image; states merge exactly
 *   payload  a variable number of bytes per strip (extracted samples), in image order
 *
 * All implementations of a filter produce the same bits. The golden function defines them. */
#ifndef GF_FILTER_H
#define GF_FILTER_H

#include "core/image.h"
#include "core/machine.h"
#include "core/settings.h"

struct gf_result;        /* result.h */
struct gf_sample_layout; /* io/sample_sink.h */
struct gf_sample_sink;

/* Parameters of a filter, resolved once on the host for one image format. A filter's own plan
 * starts with this struct. All backends read the same plan. */
typedef struct gf_plan {
    gf_format in;
    gf_format out;        /* format of the output image; width 0: none */
    uint32_t inputs;      /* number of input images, stored side by side: see gf_strip_input */
    uint32_t record;      /* size of a row's record in bytes, a multiple of 8. It follows the output
                           * image row, or the previous record if no image is produced */
    uint64_t state_bytes; /* size of a state; 0: none */
    /* The parts of a strip, as the CPU function divides it, update disjoint regions of the state:
     * all threads share one state. */
    bool disjoint;
    /* true: one state passes through the strips in image order. false: there may be several states,
     * merged at the end. An ordered state is divided into independent shares for the columns of
     * pixels, so ranges of columns may be measured as separate images. */
    bool ordered;
    bool has_payload;
    bool golden_only;        /* there is no CPU function: the cpu backend runs golden */
    uint64_t halo;           /* rows read above and below an output row, clipped at the edge */
    uint64_t golden_bytes;   /* maximum memory of the golden function, in bytes */
    uint64_t result_bytes;   /* host memory of the measure, in bytes */
    double cost;             /* estimated nanoseconds per input sample on one CPU core */
    double brightness;       /* factor applied to a flat area; 0: the filter has none */
    const char *advice;      /* option that avoids clipping by that factor; NULL: none */
    double download;         /* expected payload bytes per input sample */
    const gf_filter *before; /* filter that measures the whole image first; NULL: none */
    const char *before_case; /* its settings, as in gf_filter_info.cases */
    /* Only for GF_NODATA_APART, and without the nodata value of f32: its samples are NaN. */
    gf_nodata nodata;
} gf_plan;

/* A strip as passed to a backend's function, in the memory of that backend. */
typedef struct gf_strip {
    gf_rows in;    /* input rows: those of the output and the halo above and below */
    gf_rows out;   /* output rows to compute: image row and record */
    void *state;   /* state to update; plan->state_bytes */
    void *payload; /* payload to write, header first; unused without has_payload */
    /* For images in device memory only. refined: what gf_filter_cuda.refine stored, or NULL.
     * records: of all rows, without gaps; NULL: each one follows its image row. */
    const void *refined;
    unsigned char *records;
    /* Images in device memory: the inputs of each one in order, and the outputs. All have the
     * strides of the first one, which is also in `in` and `out`. Their number is at most
     * GF_STRIP_IMAGES, and 0 or 1 without gf_filter_cuda.lists. in_list NULL: one image, whose
     * inputs are side by side. */
    const gf_pixels *in_list;
    const gf_out_pixels *out_list;
    uint32_t images;
} gf_strip;

#define GF_STRIP_IMAGES 64

/* Return the rows of input i. Images side by side have equal shares of the stride. */
static inline gf_rows gf_strip_input(const gf_strip *strip, uint32_t inputs, uint32_t i) {
    gf_rows rows = strip->in;
    if (strip->in_list)
        rows.data = (unsigned char *)strip->in_list[i].data;
    else
        rows.data += i * (rows.stride / inputs);
    return rows;
}

/* Return the offset in bytes of a row's record from the start of its output row. */
static inline size_t gf_record_offset(const gf_plan *plan) {
    return plan->out.width ? (gf_row_bytes(&plan->out) + 7) & ~(size_t)7 : 0;
}

/* Return the records of a strip as rows. */
static inline gf_rows gf_strip_records(const gf_plan *plan, const gf_strip *strip) {
    gf_rows rows = strip->out;
    rows.data += gf_record_offset(plan);
    if (strip->records) {
        rows.data = strip->records;
        rows.stride = plan->record;
    }
    return rows;
}

static inline void *gf_record(const gf_plan *plan, const gf_rows *out, uint64_t y) {
    return gf_row(out, y) + gf_record_offset(plan);
}

/* Return the size in bytes of an output row: image row and record. */
static inline size_t gf_out_bytes(const gf_plan *plan) {
    return plan->record      ? gf_record_offset(plan) + plan->record
           : plan->out.width ? gf_row_bytes(&plan->out)
                             : 0;
}

/* Compute part `part` of `parts` of strip->out on a CPU. Several threads share a strip; the
 * function decides whether to divide it by rows or by columns. Each thread has its own state,
 * except that all parts share one state if the plan is ordered or disjoint. Each part has its own
 * payload: in ascending order of parts, the payloads are in image order. No part has more than
 * 1/parts of the rows, rounded up. */
typedef void gf_cpu_function(const gf_plan *plan, const gf_strip *strip, uint32_t part,
                             uint32_t parts, void *scratch);

/* Fast CPU implementation. Without it, the cpu backend runs golden on the parts of a strip. */
typedef struct gf_filter_cpu {
    /* Return the bytes of scratch memory per thread. NULL: none. */
    size_t (*scratch_bytes)(const gf_plan *plan);
    gf_cpu_function *run[GF_ISA_COUNT]; /* one function per SIMD level: all set, or all NULL */
} gf_filter_cpu;

/* A cudaStream_t. */
typedef struct CUstream_st *gf_cuda_stream;

/* Operations on a CUDA stream. The first one that fails sets status and error, and those after it
 * do nothing. cuda/queue.cuh declares the operations. */
typedef struct gf_queue {
    gf_cuda_stream stream;
    gf_error *error;  /* NULL: without a message */
    const char *name; /* for messages: what the kernels belong to, for example a filter */
    gf_status status;
    struct gf_sequence *sequence; /* records the launches; NULL: they are executed */
} gf_queue;

/* CUDA implementation: the same computation on device memory, queued on a stream. */
typedef struct gf_filter_cuda {
    /* Return the bytes of device scratch memory for a strip of up to in_rows input rows, on the
     * current device. NULL: none. */
    size_t (*scratch_bytes)(const gf_plan *plan, uint64_t in_rows);
    /* Queue the kernels, on a stream of the current device. Unless the plan is ordered, other
     * strips may update the same state concurrently. */
    void (*launch)(const gf_plan *plan, const gf_strip *strip, void *scratch, gf_queue *queue);
    /* Queue the kernel that completes the plan on the device, as gf_filter.refine does on the host:
     * from the records of the filter `before`, one per row of the image, to refined_bytes bytes for
     * gf_strip.refined. NULL without such a filter. */
    void (*refine)(const gf_plan *plan, const gf_rows *records, void *refined, gf_queue *queue);
    size_t refined_bytes;
    bool lists; /* launch computes a list of images if their rows are independent */
} gf_filter_cuda;

/* Options for gf_measure.open: destinations of extracted samples. */
typedef struct gf_measure_options {
    struct gf_sample_sink *samples; /* open file that receives the samples; NULL: none */
    bool all;                       /* keep all samples for the result */
    uint64_t max_memory;            /* maximum bytes for the samples kept */
    const gf_left_out *left_out;    /* complete after the last row; NULL: no sample is left out */
    const char *name;               /* name of the image, for messages */
} gf_measure_options;

/* Payloads of consecutive rows in image order, `stride` bytes apart. */
typedef struct gf_payloads {
    unsigned char *data;
    size_t stride;
    uint32_t count;
} gf_payloads;

/* Format of the payload. Most filters have none. */
typedef struct gf_payload_format {
    /* Return the maximum size in bytes of a payload for a number of rows. For 0 rows, return the
     * size of its header, which holds the actual size. */
    size_t (*bytes)(const gf_plan *plan, uint64_t rows);
    /* Return the actual size in bytes of a payload, from its header. */
    size_t (*used)(const gf_plan *plan, const void *head);
    /* Compare the payloads of some rows with those of golden. Both may be divided into different
     * pieces. Return true if they differ, and describe the first difference in `where`. `got` is
     * untrusted: validate every value in it. */
    bool (*differ)(const gf_plan *plan, uint64_t rows, const gf_payloads *golden,
                   const gf_payloads *got, char *where, size_t size);
    /* Describe the extracted samples for their file. */
    void (*layout)(const gf_plan *plan, struct gf_sample_layout *layout);
} gf_payload_format;

/* Conversion of states, records and payloads into a result. Runs on the host, in one thread. */
typedef struct gf_measure {
    /* Merge another state into *state, exactly, in any order. Zero bytes are an empty state. NULL
     * if the filter has no state. */
    void (*merge)(const gf_plan *plan, void *state, const void *other);
    /* Allocate the measure's data for one image. Store NULL in *data on failure. */
    gf_status (*open)(const gf_plan *plan, const gf_measure_options *options, void **data,
                      gf_error *error);
    /* Process the records of a strip, then its payloads, in image order. NULL if there are none. */
    gf_status (*rows)(const gf_plan *plan, void *data, const gf_rows *out, gf_error *error);
    gf_status (*payload)(const gf_plan *plan, void *data, const void *payload, gf_error *error);
    /* Process the merged state (NULL without states), after the last strip. */
    gf_status (*finish)(const gf_plan *plan, void *data, const void *state, gf_error *error);
    /* Describe the tables of the result. `cell` is called later, while plan and data exist. */
    void (*describe)(const gf_plan *plan, const void *data, struct gf_result *result);
    /* Return a cell of a table. */
    gf_value (*cell)(const gf_plan *plan, const void *data, size_t table, uint64_t row,
                     size_t column);
    void (*close)(void *data); /* free the data */
} gf_measure;

struct gf_filter {
    gf_filter_info info;
    size_t plan_bytes;
    /* Fill in a plan of plan_bytes. plan->in and plan->inputs are already set. plan->out equals
     * plan->in for a filter that produces an image, and is empty for one that measures. Return
     * GF_USAGE for conflicting settings. */
    gf_status (*plan)(const gf_settings *settings, gf_plan *plan, gf_error *error);
    /* Set the parameters without a default to the values derived in the plan. NULL: there are none,
     * or they stay unset. */
    gf_status (*effective)(const gf_plan *plan, gf_settings *settings, gf_error *error);
    /* Output pixels are computed from several input pixels: weights by alpha have a meaning. */
    bool mixes_pixels;
    gf_nodata_use nodata;
    /* Complete the plan from the data of the measure of plan->before. Pointers must not change. */
    gf_status (*refine)(gf_plan *plan, const gf_plan *before_plan, const void *before_data,
                        gf_error *error);
    /* Reference implementation: scalar, one thread. The golden backend passes it the whole image;
     * --verify passes it strips with plan->halo rows above and below. */
    gf_status (*golden)(const gf_plan *plan, const gf_strip *strip, gf_error *error);
    gf_filter_cpu cpu;
    const gf_measure *measure;        /* NULL for a filter without a result */
    const gf_payload_format *payload; /* NULL for a filter without payloads */
};

/* Return the CUDA kernels of a filter; NULL if CUDA is not built in. Defined by the registry. */
const gf_filter_cuda *gf_filter_kernels(const gf_filter *filter);

static inline size_t gf_cpu_scratch_bytes(const gf_filter *filter, const gf_plan *plan) {
    return filter->cpu.scratch_bytes ? filter->cpu.scratch_bytes(plan) : 0;
}

/* Return whether each output row depends on the same input row only. A backend may then process
 * rows of several images together, as one tall image. */
static inline bool gf_rows_independent(const gf_plan *plan) {
    return !plan->halo && !plan->state_bytes && !plan->has_payload && !plan->before;
}

/* Declare the implementations of a filter: NAME_golden, and NAME_cpu for GF_LEVELS. */
#define GF_DECLARE_BACKENDS(name)                                                                  \
    gf_status name##_golden(const gf_plan *plan, const gf_strip *strip, gf_error *error);          \
    gf_cpu_function name##_cpu_portable, name##_cpu_avx2, name##_cpu_avx512

/* ---- plans (plan.c) -------------------------------------------------------------------------- */

/* Reject NULL arguments and settings of another filter. */
gf_status gf_check_use(const gf_filter *filter, const gf_settings *settings, gf_error *error);

/* Create the plan of plan->before for the same images, or store NULL without it. The caller
 * releases it with free(). */
gf_status gf_plan_before(const gf_plan *plan, gf_plan **before, gf_error *error);

/* Create the plan for images of this format and validate it. The caller releases it with free(). */
gf_status gf_plan_new(const gf_filter *filter, const gf_settings *settings, const gf_format *format,
                      gf_plan **plan, gf_error *error);

#endif
