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
 *   rows     one output image row, one record (values measured in that row), or both, per row;
 *            images and records are apart
 *   state    plan->state_bytes of values accumulated over the image; states merge exactly
 *   payload  a variable number of bytes per strip (extracted samples), in image order
 *
 * All implementations of a filter produce the same bits. The golden function defines them. */
#ifndef GF_FILTER_H
#define GF_FILTER_H

#include "core/image.h"
#include "core/machine.h"
#include "core/settings.h"

typedef struct gf_plan gf_plan;
struct gf_result;        /* result.h */
struct gf_sample_layout; /* io/sample_sink.h */
struct gf_sample_sink;

/* Rows [first, end) of an image. */
typedef struct gf_range {
    uint64_t first, end;
} gf_range;

/* Parameters of a filter, resolved once on the host for one image format. A filter's own plan
 * starts with this struct. All backends read the same plan. */
struct gf_plan {
    const gf_filter *filter;
    gf_format in;
    gf_format out;    /* format of the output image; width 0: none */
    uint32_t inputs;  /* number of input images, of one format */
    uint32_t stage;   /* below gf_filter_stages(filter): the image of each one is the input of the
                       * next */
    gf_format source; /* input of the first stage */
    gf_scaled scaled; /* how that image was made, if its decoder has scaled it */
    /* Row map. Output row y reads input rows y - before to y + after, clipped at the edges, or, for
     * a plan with an image of another height, rows[y]. Neither bound decreases from row to row,
     * and each range has rows; rows of the input may be in none. Without an output image, rows are
     * those of the input. Only the gf_map functions and the check in plan.c read it. */
    uint64_t before, after;
    const gf_range *rows;
    uint32_t record;      /* size of a row's record in bytes, a multiple of 8 */
    uint64_t state_bytes; /* size of a state; 0: none */
    /* The parts of a strip on the CPU update disjoint regions of a state that all threads share. */
    bool disjoint;
    /* true: one state passes through the strips in image order. false: there may be several states,
     * merged at the end. An ordered state is divided into independent shares for the columns of
     * pixels, so ranges of columns may be measured as separate images. */
    bool ordered;
    bool has_payload;
    bool golden_only; /* the filter has no CPU function for it: the cpu backend runs golden */
    bool copies;      /* the output is the input; of the stages of a filter, chains leave it out */
    /* Numbers that each backend passes in its own memory, as gf_strip.constants: taps, tables,
     * means. In the plan or in `owned`; NULL: none. */
    void *constants;
    size_t constant_bytes;
    void *owned;            /* all tables of the plan, in one block that gf_plan_free frees */
    gf_plan *measure_first; /* of the filter that measures the whole image first; NULL: none */
    uint64_t golden_bytes;  /* maximum memory of the golden function, in bytes */
    uint64_t result_bytes;  /* host memory of the measure, in bytes */
    double cost;            /* estimated nanoseconds per input sample on one CPU core */
    double brightness;      /* factor applied to a flat area; 0: the filter has none */
    const char *advice;     /* option that avoids clipping by that factor; NULL: none */
    double download;        /* expected payload bytes per input sample */
    /* Only for GF_NODATA_APART, and without the nodata value of f32: its samples are NaN. */
    gf_nodata nodata;
};

/* A strip as passed to a backend's function, in the memory of that backend. */
typedef struct gf_strip {
    gf_rows in[2];          /* input rows that the output rows need (gf_map_needs), or more; of two
                             * inputs the same rows, with one stride */
    gf_rows out;            /* output rows to compute; data is NULL without an output image */
    unsigned char *records; /* of the output rows, plan->record bytes apart */
    void *state;            /* state to update; plan->state_bytes */
    void *payload;          /* payload to write, header first; unused without has_payload */
    const void *constants;  /* those of the plan */
    /* Images in device memory: the inputs of each one in order, and the outputs. All have the
     * strides of the first one, which is also in `in` and `out`. Their number is at most
     * GF_STRIP_IMAGES, and 0 or 1 without gf_filter_cuda.lists. in_list NULL: one image. */
    const gf_pixels *in_list;
    const gf_out_pixels *out_list;
    uint32_t images;
} gf_strip;

#define GF_STRIP_IMAGES 64

static inline gf_rows gf_strip_records(const gf_plan *plan, const gf_strip *strip) {
    return (gf_rows){strip->records, plan->record, strip->out.y0, strip->out.rows};
}

/* Return the record of an output row: in a strip, and among those that a measure receives. */
static inline void *gf_record_of(const gf_rows *records, uint64_t y) {
    return gf_row(records, y);
}

static inline void *gf_record(const gf_plan *plan, const gf_strip *strip, uint64_t y) {
    return strip->records + (size_t)(y - strip->out.y0) * plan->record;
}

/* Compute part `part` of `parts` of strip->out on a CPU. Several threads share a strip; the
 * function decides whether to divide it by rows or by columns. Each thread has its own state,
 * except that all parts share one state if the plan is ordered or disjoint. Each part has its own
 * payload, in image order. No part has more than 1/parts of the rows, rounded up. */
typedef void gf_cpu_function(const gf_plan *plan, const gf_strip *strip, uint32_t part,
                             uint32_t parts, void *scratch);

/* Fast CPU implementation. Without it, the cpu backend runs golden on the parts of a strip. */
typedef struct gf_filter_cpu {
    /* Return the bytes of scratch memory per thread. NULL: none. */
    size_t (*scratch_bytes)(const gf_plan *plan);
    gf_cpu_function *run[GF_ISA_COUNT]; /* one function per SIMD level of the build, or all NULL */
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
    /* Return the scratch bytes on the current device for up to in_rows input rows. NULL: none. */
    size_t (*scratch_bytes)(const gf_plan *plan, uint64_t in_rows);
    /* Queue the kernels, on a stream of the current device. Unless the plan is ordered, other
     * strips may update the same state concurrently. */
    void (*launch)(const gf_plan *plan, const gf_strip *strip, void *scratch, gf_queue *queue);
    /* Queue the kernel that computes the constants on the device, as gf_filter.refine does on the
     * host: from the records of plan->measure_first, one per row of the image. NULL without it. */
    void (*refine)(const gf_plan *plan, const gf_rows *records, void *constants, gf_queue *queue);
    bool lists; /* launch computes a list of images if rows are independent or have a table */
    /* launch stores single samples: output rows need no other alignment. */
    bool any_output GF_DEFAULT(false);
    /* Let a plan compute what the one before it does, too: it then reads the input of that one,
     * which maps rows one to one. Both are of the filter. Returns false, without changes, if no
     * kernel of the current device does. For whole images in device memory. NULL: never. */
    bool (*join)(const gf_plan *before, gf_plan *plan) GF_DEFAULT(NULL);
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
     * pieces. Return true and describe the first difference in `where`. `got` is untrusted. */
    bool (*differ)(const gf_plan *plan, uint64_t rows, const gf_payloads *golden,
                   const gf_payloads *got, char *where, size_t size);
    /* Describe the extracted samples for their file. */
    void (*layout)(const gf_plan *plan, struct gf_sample_layout *layout);
} gf_payload_format;

/* Conversion of states, records and payloads into a result. Runs on the host, in one thread. */
typedef struct gf_measure {
    /* Merge another state into *state, exactly, in any order. Zero bytes: empty. NULL: no state. */
    void (*merge)(const gf_plan *plan, void *state, const void *other);
    /* Allocate the measure's data for one image. Store NULL in *data on failure. */
    gf_status (*open)(const gf_plan *plan, const gf_measure_options *options, void **data,
                      gf_error *error);
    /* Process the records of a strip, then its payloads, in image order. NULL if there are none. */
    gf_status (*rows)(const gf_plan *plan, void *data, const gf_rows *records, gf_error *error);
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
    uint32_t stages; /* plans that compute the image one after the other; 0: one */
    /* Fill in a plan of plan_bytes. plan->filter, in, inputs, stage and source are already set.
     * plan->out equals plan->in for a filter that produces an image, and is empty for one that
     * measures. Return GF_USAGE for conflicting settings. */
    gf_status (*plan)(const gf_settings *settings, gf_plan *plan, gf_error *error);
    /* Set the parameters without a default to the values derived in the plan. NULL: none is set. */
    gf_status (*effective)(const gf_plan *plan, gf_settings *settings, gf_error *error);
    /* Output pixels are computed from several input pixels: weights by alpha have a meaning. */
    bool mixes_pixels;
    /* Return the scale, in 1/8, at which a decoder may read an image; 8: no other. NULL: none. */
    uint32_t (*eighths)(const gf_settings *settings, const gf_format *image);
    bool premultiplies; /* GF_PREMULTIPLY_AUTO weighs colours by alpha for this filter */
    gf_nodata_use nodata;
    /* Complete the plan, usually its constants, from the data of the measure of
     * plan->measure_first. Pointers must not change. NULL: no plan of the filter has it. */
    gf_status (*refine)(gf_plan *plan, const void *data, gf_error *error);
    /* Scalar reference, in one thread, of whole images (golden) or of strips (--verify). */
    gf_status (*golden)(const gf_plan *plan, const gf_strip *strip, gf_error *error);
    gf_filter_cpu cpu;
    const gf_measure *measure;        /* NULL for a filter without a result */
    const gf_payload_format *payload; /* NULL for a filter without payloads */
};

/* Return the filter that converts samples between the other filters of a job. gf_filter_at does not
 * list it. Defined by the registry. */
const gf_filter *gf_filter_convert(void);
/* Return the CUDA kernels of a filter; NULL if CUDA is not built in. Defined by the registry. */
const gf_filter_cuda *gf_filter_kernels(const gf_filter *filter);

static inline size_t gf_cpu_scratch_bytes(const gf_plan *plan) {
    return plan->filter->cpu.scratch_bytes ? plan->filter->cpu.scratch_bytes(plan) : 0;
}

/* ---- row maps (plan.c) ----------------------------------------------------------------------- */

/* Return whether each output row reads the same input row only. */
static inline bool gf_map_one_to_one(const gf_plan *plan) {
    return !plan->before && !plan->after && !plan->rows;
}

/* Return the input rows that a range of output rows reads; an empty range reads none. */
gf_range gf_map_needs(const gf_plan *plan, gf_range out);
/* Return how many output rows can be computed from input rows [0, end). `end` may exceed
 * the height of the input: both images then count as higher, so that a halo delays the last rows,
 * too. */
uint64_t gf_map_ready(const gf_plan *plan, uint64_t end);
/* Return the least number of input rows from which output rows [0, end) can be computed, in the
 * same sense. */
uint64_t gf_map_due(const gf_plan *plan, uint64_t end);

/* Return whether a plan measures anything: its filter may also make an image. */
static inline bool gf_plan_measures(const gf_plan *plan) {
    return plan->record || plan->state_bytes || plan->has_payload;
}

/* Return the number of rows that a plan computes: those of the image, or of the records. */
static inline uint64_t gf_plan_rows(const gf_plan *plan) {
    return plan->out.width ? plan->out.height : plan->in.height;
}

/* Return whether each output row depends on the same input row only. A backend may then process
 * rows of several images together, as one tall image. */
static inline bool gf_rows_independent(const gf_plan *plan) {
    return gf_map_one_to_one(plan) && !plan->state_bytes && !plan->has_payload &&
           !plan->measure_first;
}

/* Members of the info of a filter that makes an image from one image. Both arguments are arrays. */
#define GF_IMAGE_FILTER(its_params, its_cases)                                                     \
    .operands = "IN OUT", .params = its_params,                                                    \
    .param_count = sizeof its_params / sizeof its_params[0], .inputs = 1, .makes_image = true,     \
    .cases = its_cases

/* Declare the implementations of a filter: NAME_golden, and NAME_cpu for GF_LEVELS. */
#define GF_DECLARE_BACKENDS(name)                                                                  \
    gf_status name##_golden(const gf_plan *plan, const gf_strip *strip, gf_error *error);          \
    gf_cpu_function GF_LEVEL_NAMES(name##_cpu)

/* ---- plans (plan.c) -------------------------------------------------------------------------- */

static inline uint32_t gf_filter_stages(const gf_filter *filter) {
    return filter->stages ? filter->stages : 1;
}

/* Create the plan of the first stage for images of this format and validate it. settings: of this
 * filter. */
gf_status gf_plan_new(const gf_filter *filter, const gf_settings *settings, const gf_format *format,
                      gf_plan **plan, gf_error *error);
/* The same for an image that its decoder has scaled to this format. */
gf_status gf_plan_new_scaled(const gf_filter *filter, const gf_settings *settings,
                             const gf_format *format, const gf_scaled *scaled, gf_plan **plan,
                             gf_error *error);
/* Create the plan of the next stage, which reads the image of `before`. */
gf_status gf_plan_next(const gf_plan *before, const gf_settings *settings, gf_plan **plan,
                       gf_error *error);
/* Free a plan with all that it owns; NULL is allowed. */
void gf_plan_free(gf_plan *plan);

/* Called by gf_filter.plan: let another filter measure the whole image first, for gf_filter.refine.
 * text: its settings, as in gf_filter_info.cases. */
gf_status gf_plan_measure_first(gf_plan *plan, const gf_filter *filter, const char *text,
                                gf_error *error);
void gf_plan_set_nodata(gf_plan *plan, gf_nodata nodata);

#endif
