/* convolve: weighted sums of the samples around each pixel, with any weights up to 15 x 15.
 *
 * The kernel has W x H elements k[j][i], a scale and an offset. Sample (x, y) of a channel becomes
 * the sum of k[j][i] * v(x + i - W / 2, y + j - H / 2) (the halves are rounded down), divided by
 * the scale, plus the offset. This is a correlation: the kernel is not turned. --edge defines v
 * outside the image. Alpha is copied.
 *
 *   integers  u8 and u16, if all elements, the scale and the offset are integers of absolute value
 *             below 2^31. Exact: N = sum of k * v + offset * scale; the result is N / scale,
 *             rounded to nearest even, and clamped to [0, max].
 *   reals     Otherwise. Binary32: elements, scale and offset are rounded to binary32. Elements of
 *             value 0 are left out. The sum starts as s = fl(k * v) of the first element; then
 *             s = fma(k, v, s), row by row from left to right. Without elements s = 0. Then
 *             s = fl(s / scale), unless scale is 1; then s = fl(s + offset), unless offset is 0.
 *             Then the store of all filters. */
#ifndef GF_CONVOLVE_H
#define GF_CONVOLVE_H

#include "core/filter.h"
#include "window/edge.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GF_CONVOLVE_SIDE 15 /* maximum width and height of a kernel */
#define GF_CONVOLVE_TAPS (GF_CONVOLVE_SIDE * GF_CONVOLVE_SIDE)

/* How a plan is computed. REAL is the definition for reals. The others are exact and are chosen by
 * the bound B of |N|: the sum of |k| * max, plus |offset * scale|. SINGLE and DOUBLE compute N, and
 * q = fl(N / scale) in binary32 or binary64, with p = 24 or 53 bits. If B < 2^(p-1), q rounds to
 * the same integer as N / scale. Proof: an integer or a midpoint m between two integers is
 * representable. If N / scale is one, q equals it. Otherwise q is on the same side of each m as
 * N / scale, or equals m. If it equals m, then |N / scale - m| <= |m| * 2^-p, and therefore
 * |2 N - 2 m scale| <= 2 |m scale| 2^-p < 1. But these are two different integers. */
typedef enum gf_convolve_form {
    GF_CONVOLVE_REAL,
    GF_CONVOLVE_SINGLE, /* B and |scale| < 2^23 */
    GF_CONVOLVE_DOUBLE, /* B < 2^52 */
    GF_CONVOLVE_WIDE    /* int64_t: B < 225 * 2^31 * 2^16 + 2^62 < 2^63 */
} gf_convolve_form;

/* An element that is not 0. */
typedef struct gf_convolve_tap {
    double weight; /* REAL: of binary32 */
    int32_t x, y;  /* position relative to the output pixel */
} gf_convolve_tap;

typedef struct gf_convolve_plan {
    gf_plan head; /* head.constants: the taps */
    gf_convolve_form form;
    gf_edge edge;
    uint32_t width, height;                 /* of the kernel */
    uint32_t count;                         /* number of taps */
    double scale, offset;                   /* REAL: of binary32 */
    gf_convolve_tap taps[GF_CONVOLVE_TAPS]; /* row by row from left to right */
} gf_convolve_plan;

/* Return n / d, rounded to nearest even. */
GF_BOTH int64_t gf_convolve_divide(int64_t n, int64_t d) {
    if (d < 0) {
        n = -n;
        d = -d;
    }
    const int64_t below = n / d - (n % d < 0), rest = n - below * d;
    return below + (2 * rest > d || (2 * rest == d && below % 2 != 0));
}

GF_DECLARE_BACKENDS(gf_convolve);

/* Scratch memory of a CPU thread: rows of a tile of columns, one for each row of the kernel. */
#define GF_CONVOLVE_TILE 2048 /* samples: three rows fit in an L1 cache of 32 KB */
#define GF_CONVOLVE_MARGIN 64 /* samples, for vectors that pass the end */
#define GF_CONVOLVE_ROW (GF_CONVOLVE_TILE + GF_MAX_CHANNELS * GF_CONVOLVE_SIDE + GF_CONVOLVE_MARGIN)

static inline size_t gf_convolve_row_bytes(const gf_convolve_plan *plan) {
    return GF_CONVOLVE_ROW * (plan->form == GF_CONVOLVE_DOUBLE ? sizeof(double) : sizeof(float));
}

#ifdef __cplusplus
}
#endif

#endif
