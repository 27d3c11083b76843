/* smooth: enhance -> blur -> smooth along rows, columns or both. docs/numerics.md defines it. */
#ifndef GF_SMOOTH_H
#define GF_SMOOTH_H

#include "core/filter.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sums of 2 * 127 + 1 samples of up to 65535 are below 2^24: exact in binary32, so that with
 * --keep-brightness a flat image stays flat at any radius. */
#define GF_SMOOTH_MAX_RADIUS 127

typedef enum gf_smooth_axis { GF_SMOOTH_X, GF_SMOOTH_Y, GF_SMOOTH_XY } gf_smooth_axis;

/* ---- integers -------------------------------------------------------------------------------- */

/* u8 samples inside a signal, by integers: where the whole window lies inside the signal, the chain
 * of binary32 operations is, but for its roundings, a weighted sum of whole numbers, which integer
 * instructions do faster:
 *
 *   TAPS  value = scale * T,  T = sum of tap[k] * I[i - reach + k] for k = 0 .. 2*reach
 *   SUMS  value = near * (S[i-1] + S[i]) + next * S[i+1],
 *         S[i] = sum of I[i - radius .. i + radius]
 *
 * That value, computed in binary32 or better, and the chain's own result differ by less than
 * `doubt`: what each may be away from the real number adds up to that. So both round to the same
 * integer, unless the value is less than `doubt` away from the middle between two integers: there,
 * only the chain itself decides. Above 255.5 + doubt both are stored as 255. */
#define GF_SMOOTH_INTEGER_REACH 9 /* up to radius 8 with the smooth stage */

typedef enum gf_smooth_integer_form {
    GF_SMOOTH_CHAIN_ONLY, /* nothing is known but the chain */
    GF_SMOOTH_TAPS,
    GF_SMOOTH_SUMS
} gf_smooth_integer_form;

typedef struct gf_smooth_integer {
    gf_smooth_integer_form form;
    uint32_t reach;  /* samples on each side that a value depends on */
    uint32_t radius; /* of the sums S */
    /* TAPS. 255 times the sum of all taps is below 2^23. */
    uint8_t tap[2 * GF_SMOOTH_INTEGER_REACH + 1];
    float scale;
    float near, next; /* SUMS */
    float tie_margin;
} gf_smooth_integer;

/* TAPS in fixed point, 8 bits before and 24 behind it: the highest byte of
 * min(T, most) * factor + half is the value rounded, and 255 where it is larger. Where the byte
 * after that is 0, the value may lie in the middle between two integers, and only the chain
 * decides. */
typedef struct gf_smooth_fixed {
    uint32_t max, factor, half;
} gf_smooth_fixed;

/* ---- plan ------------------------------------------------------------------------------------ */

typedef struct gf_smooth_plan {
    gf_plan head;
    gf_smooth_axis axis;
    bool smooth;          /* does the smooth stage run, */
    bool keep_brightness; /* and the factor after it? */
    /* Another stage that does not run has the parameter that makes it do nothing: x * 1 and x / 1
     * are x. */
    float gain;         /* 1 without enhance */
    uint32_t radius;    /* 0 without blur */
    float weight;       /* of the smooth stage */
    float inner_factor; /* 1 unless keep_brightness */
    float end_factor;   /* the same at the two ends of a signal; unused where they are one sample */
    uint64_t tile;      /* samples a tile; 0: the whole signal is one */
    gf_smooth_integer integer; /* how u8 samples inside a signal may be had faster */
} gf_smooth_plan;

/* Choose the form that a plan of u8 samples allows, from its resolved stages and constants. */
gf_smooth_integer gf_smooth_integer_of(const gf_smooth_plan *plan);

/* False if the form is another one, or its values are too coarse or too many for that. */
bool gf_smooth_fixed_of(const gf_smooth_integer *by, gf_smooth_fixed *fixed);

/* Bounds [*begin, *end) of the tile that holds position i of a signal of `length` samples. */
static inline void gf_smooth_tile(const gf_smooth_plan *plan, uint64_t i, uint64_t length,
                                  uint64_t *begin, uint64_t *end) {
    *begin = plan->tile ? i - i % plan->tile : 0;
    *end = plan->tile && plan->tile < length - *begin ? *begin + plan->tile : length;
}

/* The golden stages, each on one signal of n samples. in and out do not overlap. */
void gf_smooth_golden_enhance(const float *in, float *out, uint64_t n, float gain);
void gf_smooth_golden_blur(const float *in, float *out, uint64_t n, uint32_t radius);
void gf_smooth_golden_smooth(const float *in, float *out, uint64_t n, float weight);
void gf_smooth_golden_keep(const float *in, float *out, uint64_t n, float inner_factor,
                           float end_factor);
/* The chain of a plan on n samples of one signal of `whole`, from `first` on, tiles and all; work
 * holds n floats. Result in signal. Where the piece ends within the signal, what is nearer to that
 * end than plan->halo is not what it would be in the whole. */
void gf_smooth_golden_chain(const gf_smooth_plan *plan, float *signal, float *work, uint64_t first,
                            uint64_t n, uint64_t whole);
gf_status gf_smooth_golden(const gf_plan *plan, const gf_strip *strip, gf_error *error);

size_t gf_smooth_cpu_scratch(const gf_plan *plan);
GF_DECLARE_LEVELS(gf_smooth_cpu);

extern const gf_filter_cuda gf_smooth_cuda;

#ifdef __cplusplus
}
#endif

#endif
