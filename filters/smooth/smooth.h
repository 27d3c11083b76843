/* smooth: enhance -> blur -> smooth along rows, columns or both. Defined in docs/numerics.md. */
#ifndef GF_SMOOTH_H
#define GF_SMOOTH_H

#include "core/filter.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sums of 2 * 127 + 1 samples up to 65535 are below 2^24 and exact in binary32. A flat image
 * therefore stays flat with --keep-brightness at every radius. */
#define GF_SMOOTH_MAX_RADIUS 127

typedef enum gf_smooth_axis { GF_SMOOTH_X, GF_SMOOTH_Y, GF_SMOOTH_XY } gf_smooth_axis;

/* Integer form of the chain, for u8 outputs whose whole window is inside the signal. Apart from
 * rounding, the chain of binary32 operations is a weighted sum of integers, which integer
 * instructions compute faster:
 *
 *   TAPS  value = scale * T,  T = sum of tap[k] * I[i - reach + k] for k = 0 .. 2*reach
 *   SUMS  value = near * (S[i-1] + S[i]) + next * S[i+1],
 *         S[i] = sum of I[i - radius .. i + radius]
 *
 * The value, computed in binary32 or better, differs from the result of the chain by less than
 * tie_margin, which bounds the rounding errors of both. Both therefore round to the same integer,
 * unless the value is a near-tie: less than tie_margin away from the midpoint of two integers. The
 * exact path evaluates the chain for near-ties. Both are stored as 255 above 255.5 + tie_margin.
 *
 * The same holds for both axes together (--axis xy), inside both signals:
 *
 *   TAPS  value = xy_scale * T,  T = sum of tap[j] * S[j] for j = 0 .. 2*reach, where S[j] is the
 *         sum along x above, in row y - reach + j. S < 2^16, T < 2^24 */
#define GF_SMOOTH_INTEGER_REACH 9 /* up to radius 8 with the smooth stage */

typedef enum gf_smooth_integer_form {
    GF_SMOOTH_CHAIN_ONLY, /* no integer form */
    GF_SMOOTH_TAPS,
    GF_SMOOTH_SUMS
} gf_smooth_integer_form;

typedef struct gf_smooth_integer {
    gf_smooth_integer_form form;
    uint32_t reach;  /* input samples on each side of an output */
    uint32_t radius; /* of the sums S */
    /* TAPS: 255 times the sum of all taps is below 2^23. */
    uint8_t tap[2 * GF_SMOOTH_INTEGER_REACH + 1];
    float scale;
    float near, next; /* of the sums, also for TAPS; without the smooth stage, near counts twice */
    float tie_margin;
    float xy_scale; /* 0: no form for both axes */
    float xy_tie_margin;
} gf_smooth_integer;

/* TAPS in fixed point with 8 integer and 24 fraction bits: x = min(T, max) * factor + half. The
 * highest byte of x is the rounded value, or 255 for larger values. If the next byte is 0, the
 * value may be a near-tie and needs the exact path. */
typedef struct gf_smooth_fixed {
    uint32_t max, factor, half;
} gf_smooth_fixed;

typedef struct gf_smooth_plan {
    gf_plan head;
    gf_smooth_axis axis;
    bool smooth;          /* whether the smooth stage runs */
    bool keep_brightness; /* whether the brightness factor follows the smooth stage */
    /* A disabled enhance or blur has the identity as its parameter: x * 1 and x / 1 are x. */
    float gain;         /* 1 without enhance */
    uint32_t radius;    /* 0 without blur */
    float weight;       /* of the smooth stage */
    float inner_factor; /* 1 unless keep_brightness */
    float end_factor; /* inner_factor for the two ends of a signal; unused for one-sample signals */
    uint64_t tile;    /* samples per tile; 0: no tiles */
    gf_smooth_integer integer; /* for u8 samples inside a signal */
} gf_smooth_plan;

/* Return the integer form of a plan, from its resolved stages and constants. */
gf_smooth_integer gf_smooth_integer_of(const gf_smooth_plan *plan);

/* Compute the fixed-point form of TAPS. Returns false for another form, for too small a scale, and
 * for values beyond its precision or range. */
bool gf_smooth_fixed_of(const gf_smooth_integer *integer, gf_smooth_fixed *fixed);

/* Return the bounds [*begin, *end) of the tile that contains position i of a signal of `length`
 * samples. tile: gf_smooth_plan.tile. */
GF_BOTH void gf_smooth_tile(uint64_t tile, uint64_t i, uint64_t length, uint64_t *begin,
                            uint64_t *end) {
    *begin = tile ? i - i % tile : 0;
    *end = tile && tile < length - *begin ? *begin + tile : length;
}

/* The golden stages, each on one signal of n samples. in and out must not overlap. */
void gf_smooth_golden_enhance(const float *in, float *out, uint64_t n, float gain);
void gf_smooth_golden_blur(const float *in, float *out, uint64_t n, uint32_t radius);
void gf_smooth_golden_smooth(const float *in, float *out, uint64_t n, float weight);
void gf_smooth_golden_keep(const float *in, float *out, uint64_t n, float inner_factor,
                           float end_factor);
/* Run the chain of a plan on n samples, starting at `first`, of a signal of `whole` samples, tiles
 * included. work holds n floats. The result replaces signal. Where the piece ends inside the
 * signal, results closer to that end than head.after differ from those of the whole signal. */
void gf_smooth_golden_chain(const gf_smooth_plan *plan, float *signal, float *work, uint64_t first,
                            uint64_t n, uint64_t whole);

GF_DECLARE_BACKENDS(gf_smooth);
size_t gf_smooth_cpu_scratch(const gf_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
