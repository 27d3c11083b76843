/* resize: weighted sums of the samples around each output pixel, along one axis, then the other.
 * docs/numerics.md defines the results. */
#ifndef GF_RESIZE_H
#define GF_RESIZE_H

#include "core/filter.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Arithmetic of a stage. v[k] and t[k] are the samples of a window and their taps, in ascending
 * order. Integers are rounded after each stage.
 *
 *   COPY    the side does not change
 *   FIXED   u8: t are int32_t in units of 2^-22. Their sum is 2^22 or so close to it that a flat
 *           image stays flat, and the sum of |t| * 255 is below 2^31 - 2^21.
 *             result = (sum of t[k] v[k] + 2^21) >> 22, clamped
 *   WIDE    u16, and u8 otherwise: t are integers in units of 2^-35, as double. Their sum is 2^35.
 *             result = floor((sum of t[k] v[k] + 2^34) / 2^35), clamped
 *           All sums are exact in binary64, in any order: the sum of |t| is at most 2^37.
 *   SINGLE  f32: t are float. s = t[0] * v[0]; then s = fma(t[k], v[k], s) */
typedef enum gf_resize_form {
    GF_RESIZE_COPY,
    GF_RESIZE_FIXED,
    GF_RESIZE_WIDE,
    GF_RESIZE_SINGLE
} gf_resize_form;

enum { GF_RESIZE_FIXED_BITS = 22, GF_RESIZE_WIDE_BITS = 35 };

/* Samples in the scratch memory of a CPU thread. */
enum { GF_RESIZE_SCRATCH = 36 << 10 };

/* The samples that an output sample reads. Neither end decreases from one output sample to the next
 * in the form FIXED. */
typedef struct gf_resize_span {
    uint64_t first, count; /* count is at least 1 */
    uint64_t taps;         /* index of the first tap */
} gf_resize_span;

typedef struct gf_resize_plan {
    /* head.constants: a span for each output column or row, then the taps; COPY: none. */
    gf_plan head;
    gf_resize_form form;
    bool down; /* sums along y */
    uint64_t spans;
    uint32_t joined[2]; /* of a plan that also computes the one before it (gf_filter_cuda.join),
                         * with constants of its own: the most columns along x, and blocks of rows
                         * along y, that a group of outputs reads; otherwise 0 */
} gf_resize_plan;

static inline size_t gf_resize_tap_bytes(gf_resize_form form) {
    return form == GF_RESIZE_WIDE ? sizeof(double) : sizeof(float);
}

/* Return the taps that follow the spans in constants. */
GF_BOTH const void *gf_resize_taps(const gf_resize_plan *plan, const void *constants) {
    return (const gf_resize_span *)constants + plan->spans;
}

/* ---- tables (resize_table.c) ----------------------------------------------------------------- */

typedef enum gf_resize_kernel {
    GF_RESIZE_BOX,
    GF_RESIZE_BILINEAR,
    GF_RESIZE_HAMMING,
    GF_RESIZE_BICUBIC,
    GF_RESIZE_LANCZOS3
} gf_resize_kernel;

/* One side of an image with `in` samples: `length` of them, from `from` on, become `out`. */
typedef struct gf_resize_side {
    uint64_t in, out;
    double from, length;
    gf_resize_kernel kernel;
    bool antialias;
} gf_resize_side;

/* Return sin(x), or cos(x), for 0 <= x < 10 with an error below 0.6 units in the last place. */
double gf_resize_sin(double x, bool cosine);
/* Return the samples that output sample i reads. weights: receives their weights, with the sum 1;
 * NULL: only the window. */
gf_range gf_resize_window(const gf_resize_side *side, uint64_t i, double *weights);
/* Return a weight in units of 2^-22, rounded to nearest. */
int32_t gf_resize_fixed(double weight);
/* Set the form, the tables and, along y, the row map of a plan. */
gf_status gf_resize_set_tables(gf_resize_plan *plan, const gf_resize_side *side, gf_error *error);

GF_DECLARE_BACKENDS(gf_resize);

#ifdef __cplusplus
}
#endif

#endif
