/* Separable filters: symmetric weighted sums along x, then along y. gaussian, box and sharpen share
 * this engine. docs/numerics.md defines the results. */
#ifndef GF_SEPARABLE_H
#define GF_SEPARABLE_H

#include "core/filter.h"
#include "window/edge.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GF_SEPARABLE_MAX_RADIUS 511

/* Up to this radius on both axes, u8 is computed in fixed point and u16 in binary32. Both results
 * are then within 0.6 of the real one: tests/unit/filters/test_separable_golden.c. */
#define GF_SEPARABLE_NARROW 20

/* Arithmetic of a plan. t[0] to t[radius] are the taps of an axis, and v[k] is the sample at
 * distance k from the output. The sums along x of rows outside the image are those of rows with
 * samples of the value V of --edge constant:V.
 *
 *   FIXED   u8: taps are integers, t[0] + 2 (t[1] + ... + t[radius]) = 2^16. t[0] is even, and 2^16
 *           only if all other taps are 0. All sums are exact:
 *             x  I = (sum of t[k] v[k] + 2^7) >> 8, less than 2^16
 *             y  result = (sum of t[k] I[k] + 2^23) >> 24
 *   SUMS    u8 and u16: all taps are 1; the sum S of the window is an exact integer,
 *             result = (S + count / 2) / count, rounded down
 *   SINGLE  binary32, for both axes: s = t[r] * (v[-r] + v[r]); then for k = r - 1 to 1:
 *             s = fma(t[k], v[-k] + v[k], s); then s = fma(t[0], v[0], s).
 *           With radius 0: s = t[0] * v[0]. Then s / count, unless count is 1.
 *   DOUBLE  the same in binary64 */
typedef enum gf_separable_form {
    GF_SEPARABLE_FIXED,
    GF_SEPARABLE_SUMS,
    GF_SEPARABLE_SINGLE,
    GF_SEPARABLE_DOUBLE
} gf_separable_form;

typedef struct gf_separable_plan {
    /* head.constants: the taps t[0..radius] of x, then those of y: uint32_t for FIXED and SUMS,
     * float for SINGLE, double for DOUBLE. */
    gf_plan head;
    gf_separable_form form;
    gf_edge edge;
    uint32_t radius[2]; /* of x and y */
    uint32_t count;     /* divisor: the samples of a window of box; 1 for other filters */
    /* sharpen: G is the result s of SINGLE or DOUBLE, d = v - G, and the result fma(amount, d, v),
     * or v if |d| < threshold. */
    bool sharpen;
    float amount, threshold;
} gf_separable_plan;

GF_BOTH size_t gf_separable_tap_bytes(gf_separable_form form) {
    return form == GF_SEPARABLE_DOUBLE ? sizeof(double) : sizeof(float);
}

/* Complete a plan of gaussian or sharpen, whose radius is truncate times sigma, or of box (truncate
 * 0). Filter-specific members are set. Return GF_USAGE for a bad setting. */
gf_status gf_separable_set(gf_plan *head, const gf_settings *settings, double truncate,
                           gf_error *error);

/* Compute the taps t[0..radius] of a Gaussian in binary64, with a sum of 1 over the whole window.
 */
void gf_separable_gaussian(double sigma, uint32_t radius, double *t);
/* Round such taps to integers whose sum over the window is 2^16. Each is rounded up or down; those
 * with the largest fractions are rounded up. */
void gf_separable_fixed(const double *t, uint32_t radius, uint32_t *fixed);

GF_DECLARE_BACKENDS(gf_separable);
size_t gf_separable_cpu_scratch(const gf_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
