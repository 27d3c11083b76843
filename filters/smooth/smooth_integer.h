/* u8 samples inside a signal, by integers.
 *
 * Where the whole window lies inside the signal, the chain of binary32 operations is, but for its
 * roundings, a weighted sum of whole numbers, which integer instructions do faster:
 *
 *   TAPS  value = scale * T,  T = sum of tap[k] * I[i - reach + k] for k = 0 .. 2*reach
 *   SUMS  value = near * (S[i-1] + S[i]) + next * S[i+1],
 *         S[i] = sum of I[i - radius .. i + radius]
 *
 * That value, computed in binary32 or better, and the chain's own result differ by less than
 * `doubt`: what each may be away from the real number adds up to that. So both round to the same
 * integer, unless the value is less than `doubt` away from the middle between two integers: there,
 * only the chain itself decides. Above 255.5 + doubt both are stored as 255. */
#ifndef GF_SMOOTH_INTEGER_H
#define GF_SMOOTH_INTEGER_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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
    float doubt;
} gf_smooth_integer;

/* TAPS in fixed point, 8 bits before and 24 behind it: the highest byte of
 * min(T, most) * factor + half is the value rounded, and 255 where it is larger. Where the byte
 * after that is 0, the value may lie in the middle between two integers, and only the chain
 * decides. */
typedef struct gf_smooth_fixed {
    uint32_t most, factor, half;
} gf_smooth_fixed;

struct gf_smooth_plan;

/* Which form a plan of u8 samples allows; reads its resolved stages and constants. */
gf_smooth_integer gf_smooth_integer_of(const struct gf_smooth_plan *plan);

/* False if the form is another one, or its values are too coarse or too many for that. */
bool gf_smooth_fixed_of(const gf_smooth_integer *by, gf_smooth_fixed *fixed);

#ifdef __cplusplus
}
#endif

#endif
