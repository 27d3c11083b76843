/* smooth: enhance -> blur -> smooth along rows, columns or both. docs/numerics.md defines it. */
#ifndef GF_SMOOTH_H
#define GF_SMOOTH_H

#include "filter.h"
#include "smooth/smooth_integer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sums of 2 * 127 + 1 samples of up to 65535 are below 2^24: exact in binary32, so that with
 * --keep-brightness a flat image stays flat at any radius. */
#define GF_SMOOTH_MAX_RADIUS 127

typedef enum gf_smooth_axis { GF_SMOOTH_X, GF_SMOOTH_Y, GF_SMOOTH_XY } gf_smooth_axis;

typedef struct gf_smooth_plan {
    gf_plan head;
    gf_smooth_axis axis;
    bool enhance, blur, smooth; /* which stages run */
    bool keep_brightness;       /* and does the factor after the smooth stage */
    /* A stage that does not run has the parameter that makes it do nothing (x * 1 and x / 1 are x),
     * so that a fast implementation need not ask. */
    float gain;         /* 1 without enhance */
    uint32_t radius;    /* 0 without blur */
    float weight;       /* of the smooth stage */
    float inner_factor; /* 1 unless keep_brightness */
    float end_factor;   /* the same at the two ends of a signal; unused where they are one sample */
    uint64_t tile;      /* samples a tile; 0: the whole signal is one */
    gf_smooth_integer integer; /* how u8 samples inside a signal may be had faster */
} gf_smooth_plan;

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
gf_status gf_smooth_golden(const gf_plan *plan, const gf_band *band, gf_error *error);

size_t gf_smooth_cpu_scratch(const gf_plan *plan);
void gf_smooth_cpu(const gf_plan *plan, const gf_band *band, uint32_t part, uint32_t parts,
                   void *scratch, gf_isa isa);

extern const gf_filter_cuda gf_smooth_cuda;

#ifdef __cplusplus
}
#endif

#endif
