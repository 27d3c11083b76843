/* The sRGB transfer function. Every entry of the tables is rounded from the exact value, so that it
 * does not depend on the C library: pow only selects the candidates, and integers decide between
 * them. docs/numerics.md has the definition. */
#include "core/convert.h"

#include <math.h>
#include <pthread.h>

/* ---- exact comparison ------------------------------------------------------------------------ */

enum { LIMBS = 16 }; /* 512 bits; 470 are needed */

/* Unsigned integer, the lowest limb first. */
typedef struct srgb_integer {
    uint32_t limbs[LIMBS];
} srgb_integer;

static void srgb_multiply(srgb_integer *product, uint32_t factor, int times) {
    for (int t = 0; t < times; t++) {
        uint64_t carry = 0;
        for (int i = 0; i < LIMBS; i++) {
            carry += (uint64_t)product->limbs[i] * factor;
            product->limbs[i] = (uint32_t)carry;
            carry >>= 32;
        }
    }
}

/* Return whether p / q is in the linear segment: at most 0.04045. */
static bool srgb_is_low(uint32_t p, uint32_t q) {
    return (uint64_t)p * 100000 <= (uint64_t)q * 4045;
}

/* Compare the transfer function of p / q with m: return the sign of E(p / q) - m. m has at most 26
 * significant bits, and is between 2^-32 and 1; p and q are below 2^17.
 *
 * Linear segment: E = (p / q) / 12.92 = 25 p / (323 q). Otherwise E = x^(12/5) with x = (p / q +
 * 0.055) / 1.055 = (200 p + 11 q) / (211 q), and the fifth powers are compared: x^12 and m^5. */
static int srgb_compare(uint32_t p, uint32_t q, double m) {
    enum { BITS = 26 };
    int exponent;
    const uint32_t mantissa = (uint32_t)ldexp(frexp(m, &exponent), BITS);
    srgb_integer light = {.limbs = {1}}, other = {.limbs = {1}};
    const bool low = srgb_is_low(p, q);
    const int power = low ? 1 : 5;
    if (low) {
        srgb_multiply(&light, 25 * p, 1);
        srgb_multiply(&other, 323 * q, 1);
    } else {
        srgb_multiply(&light, 200 * p + 11 * q, 12);
        srgb_multiply(&other, 211 * q, 12);
    }
    srgb_multiply(&other, mantissa, power);
    srgb_multiply(&light, 2, power * (BITS - exponent)); /* m = mantissa / 2^(BITS - exponent) */
    for (int i = LIMBS - 1; i >= 0; i--)
        if (light.limbs[i] != other.limbs[i])
            return light.limbs[i] < other.limbs[i] ? -1 : 1;
    return 0;
}

/* ---- rounding -------------------------------------------------------------------------------- */

/* Relative error of the approximation. It is at most 2^-49 where pow has an error of 2^-50; the
 * margin costs 4 exact comparisons in 2^16. */
#define SRGB_ERROR 0x1p-40

static double srgb_approximate(uint32_t p, uint32_t q) {
    return srgb_is_low(p, q) ? 25.0 * p / (323.0 * q)
                             : pow((200.0 * p + 11.0 * q) / (211.0 * q), 2.4);
}

/* Return the binary32 number that is nearest to E(p / q); of two, the even one. */
static float srgb_round(uint32_t p, uint32_t q) {
    const double y = srgb_approximate(p, q);
    const float low = (float)(y * (1 - SRGB_ERROR)), high = (float)(y * (1 + SRGB_ERROR));
    if (low == high)
        return low;
    const int sign = srgb_compare(p, q, ((double)low + (double)high) / 2);
    return sign < 0 || (sign == 0 && gf_float_bits(low) % 2 == 0) ? low : high;
}

/* Return the least binary32 number that is not below a positive y. */
static float srgb_ceil(double y) {
    const float nearest = (float)y;
    return (double)nearest < y ? nextafterf(nearest, 2.0f) : nearest;
}

/* Return the least binary32 number that is not below E(p / q). */
static float srgb_round_up(uint32_t p, uint32_t q) {
    const double y = srgb_approximate(p, q);
    const float low = srgb_ceil(y * (1 - SRGB_ERROR)), high = srgb_ceil(y * (1 + SRGB_ERROR));
    return low == high || srgb_compare(p, q, (double)low) <= 0 ? low : high;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Bits of the mantissa that select a bucket. Thresholds are nearest to each other, in relation to
 * their size, below 1: 2^-15.6 for u16. */
enum { U8_BITS = 7, U16_BITS = 15, MANTISSA_BITS = 23 };
/* From the powers of two below the first thresholds, 2^-13 and 2^-21, to 1. */
enum { U8_BUCKETS = (13 << U8_BITS) + 1, U16_BUCKETS = (21 << U16_BITS) + 1 };

/* Fill the tables of a type. thresholds: that of code k is at k. */
static gf_srgb srgb_fill(uint32_t max, float *linear, float *thresholds, uint16_t *starts,
                         uint32_t bits) {
    for (uint32_t v = 1; v <= max; v++) {
        linear[v] = srgb_round(2 * v, 2 * max);
        thresholds[v] = srgb_round_up(2 * v - 1, 2 * max);
    }
    thresholds[max + 1] = INFINITY;
    const uint32_t shift = MANTISSA_BITS - bits;
    const uint32_t low = gf_float_bits(thresholds[1]) >> MANTISSA_BITS << MANTISSA_BITS;
    uint32_t k = 0;
    for (uint32_t b = low >> shift; b <= gf_float_bits(1.0f) >> shift; b++) {
        const float least = gf_float_of_bits(b << shift);
        while (least >= thresholds[k + 1])
            k++;
        starts[b - (low >> shift)] = (uint16_t)k;
    }
    const uint32_t buckets = (gf_float_bits(1.0f) >> shift) - (low >> shift) + 1;
    return (gf_srgb){.linear = linear,
                     .thresholds = thresholds,
                     .starts = starts,
                     .linear_bytes = (max + 1) * sizeof *linear,
                     .code_bytes =
                         (max + 2) * sizeof *thresholds + (buckets + buckets % 2) * sizeof *starts,
                     .low = gf_float_of_bits(low),
                     .shift = shift,
                     .base = low >> shift};
}

static gf_srgb srgb_tables[2]; /* by gf_type */

static void srgb_fill_u8(void) {
    static float linear[256];
    static struct {
        float thresholds[257];
        uint16_t starts[U8_BUCKETS];
    } codes;
    srgb_tables[GF_U8] = srgb_fill(255, linear, codes.thresholds, codes.starts, U8_BITS);
}

static void srgb_fill_u16(void) {
    static float linear[65536];
    static struct {
        float thresholds[65537];
        uint16_t starts[U16_BUCKETS];
    } codes;
    srgb_tables[GF_U16] = srgb_fill(65535, linear, codes.thresholds, codes.starts, U16_BITS);
}

const gf_srgb *gf_srgb_of(gf_type type) {
    static pthread_once_t u8 = PTHREAD_ONCE_INIT, u16 = PTHREAD_ONCE_INIT;
    (void)pthread_once(type == GF_U8 ? &u8 : &u16, type == GF_U8 ? srgb_fill_u8 : srgb_fill_u16);
    return &srgb_tables[type];
}
