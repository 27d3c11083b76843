/* Order statistics of windows: median, percentile, erode and dilate share this engine.
 *
 * A result is sample `index`, from 0, of the sorted samples of a window of 2 R + 1 by 2 RY + 1
 * pixels. Samples outside the image are those of --edge. The order of f32 is -inf < ... < -0 < +0 <
 * ... < +inf < NaN; all NaN are equal, and stored as 0x7fc00000. Nothing is rounded. */
#ifndef GF_PERCENTILE_H
#define GF_PERCENTILE_H

#include "core/filter.h"
#include "window/edge.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GF_PERCENTILE_MAX_RADIUS 63   /* 127 * 127 samples: counts fit in 16 bits */
#define GF_PERCENTILE_MAX_EXTREME 511 /* radius of erode and dilate */
#define GF_PERCENTILE_MAX_NETWORK 3   /* radius of sorting networks */

#define GF_PERCENTILE_GOLDEN_BYTES 36 /* memory of golden per pixel of a channel */

/* Methods of the fast implementations. */
typedef enum gf_percentile_form {
    GF_PERCENTILE_MINIMUM, /* index 0: separable, minima along x of minima along y */
    GF_PERCENTILE_MAXIMUM,
    GF_PERCENTILE_NETWORK, /* median of 3 x 3, 5 x 5 or 7 x 7 pixels: a sorting network */
    GF_PERCENTILE_SELECT   /* all others: counts of samples below thresholds */
} gf_percentile_form;

typedef struct gf_percentile_plan {
    gf_plan head;
    gf_percentile_form form;
    gf_edge edge;
    uint32_t radius[2]; /* of x and y */
    uint32_t count;     /* samples of a window */
    uint32_t index;     /* of the result */
} gf_percentile_plan;

/* Complete a plan of any of the filters. percent: 0 to 100. */
gf_status gf_percentile_set(gf_plan *head, const gf_settings *settings, double percent,
                            gf_error *error);

/* Convert the bits of an f32 that is no NaN, or 0x7fc00000, to an integer of the same order. The
 * same function converts it back. */
GF_BOTH int32_t gf_percentile_order(int32_t bits) {
    /* cppcheck-suppress shiftTooManyBitsSigned ; a condition would not become a shift in vectors */
    return bits ^ (bits >> 31 & INT32_MAX);
}

GF_DECLARE_BACKENDS(gf_percentile);
size_t gf_percentile_cpu_scratch(const gf_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
