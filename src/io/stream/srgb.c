/* The sRGB transfer function. Every entry of the tables is rounded from the exact value, so that it
 * does not depend on the C library: pow only selects the candidates, and integers decide between
 * them. docs/numerics.md has the definition. */
#define _GNU_SOURCE /* memmem */

#include "io/stream/convert.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "core/error.h"
#include "io/bytes.h"

/* ---- exact comparison ------------------------------------------------------------------------ */

enum { LIMBS = 16 }; /* 512 bits; 470 are needed */

/* Unsigned integer, the lowest limb first. */
typedef struct srgb_integer {
    uint32_t limbs[LIMBS];
} srgb_integer;

/* Multiply by a factor, `times` times. */
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
    return (gf_srgb){linear, thresholds, starts, gf_float_of_bits(low), shift, low >> shift};
}

static gf_srgb srgb_tables[2]; /* by gf_type */

static void srgb_fill_u8(void) {
    static float linear[256], thresholds[257];
    static uint16_t starts[U8_BUCKETS];
    srgb_tables[GF_U8] = srgb_fill(255, linear, thresholds, starts, U8_BITS);
}

static void srgb_fill_u16(void) {
    static float linear[65536], thresholds[65537];
    static uint16_t starts[U16_BUCKETS];
    srgb_tables[GF_U16] = srgb_fill(65535, linear, thresholds, starts, U16_BITS);
}

const gf_srgb *gf_srgb_of(gf_type type) {
    static pthread_once_t u8 = PTHREAD_ONCE_INIT, u16 = PTHREAD_ONCE_INIT;
    (void)pthread_once(type == GF_U8 ? &u8 : &u16, type == GF_U8 ? srgb_fill_u8 : srgb_fill_u16);
    return &srgb_tables[type];
}

/* ---- metadata -------------------------------------------------------------------------------- */

/* Return whether a text names sRGB and not linear light. wide: the characters have 2 bytes. */
static bool icc_says_srgb(const unsigned char *data, size_t size, bool wide) {
    return wide
               ? memmem(data, size, "\0s\0R\0G\0B", 8) && !memmem(data, size, "\0i\0n\0e\0a\0r", 10)
               : memmem(data, size, "sRGB", 4) && !memmem(data, size, "inear", 5);
}

/* Return whether a description tag names sRGB: a textDescriptionType or a
 * multiLocalizedUnicodeType. */
static bool icc_describes_srgb(const unsigned char *tag, size_t size) {
    enum { HEAD = 12, MLUC_HEAD = 16, RECORD = 12 };
    if (size < MLUC_HEAD)
        return false;
    if (memcmp(tag, "desc", 4) == 0) {
        const size_t length = gf_big32(tag + 8), rest = size - HEAD;
        return icc_says_srgb(tag + HEAD, length < rest ? length : rest, false);
    }
    if (memcmp(tag, "mluc", 4) != 0 || gf_big32(tag + 12) != RECORD)
        return false;
    const size_t records = gf_big32(tag + 8), fit = (size - MLUC_HEAD) / RECORD;
    for (size_t i = 0; i < records && i < fit; i++) {
        const unsigned char *record = tag + MLUC_HEAD + i * RECORD;
        const size_t length = gf_big32(record + 4), offset = gf_big32(record + 8);
        if (offset <= size && length <= size - offset && icc_says_srgb(tag + offset, length, true))
            return true;
    }
    return false;
}

/* Return a tag of a profile and its size; NULL if it is missing or not inside the profile. */
static const unsigned char *icc_find(const unsigned char *icc, size_t size, const char *name,
                                     size_t *length) {
    enum { HEAD = 128, ENTRY = 12 };
    if (size < HEAD + 4)
        return NULL;
    const size_t count = gf_big32(icc + HEAD), fit = (size - HEAD - 4) / ENTRY;
    for (size_t i = 0; i < count && i < fit; i++) {
        const unsigned char *entry = icc + HEAD + 4 + i * ENTRY;
        const size_t offset = gf_big32(entry + 4);
        *length = gf_big32(entry + 8);
        if (memcmp(entry, name, 4) == 0)
            return offset <= size && *length <= size - offset ? icc + offset : NULL;
    }
    return NULL;
}

/* Evaluate a curve at 0.5. Return NaN if it is damaged, or of another type. */
static double icc_curve_at_half(const unsigned char *curve, size_t size) {
    enum { HEAD = 12, FUNCTIONS = 5, MAX_NUMBERS = 7 };
    static const size_t numbers[FUNCTIONS] = {1, 3, 4, 5, 7};
    double p[MAX_NUMBERS] = {0, 1}; /* g, a, b, c, d, e, f */
    if (size < HEAD)
        return NAN;
    const uint32_t head = gf_big32(curve + 8), function = head >> 16;
    const unsigned char *data = curve + HEAD;
    if (memcmp(curve, "curv", 4) == 0) { /* identity, power or table */
        if (head == 0 || head > (size - HEAD) / 2)
            return head ? NAN : 0.5;
        const size_t low = (head - 1) / 2, high = head / 2;
        return head == 1 ? pow(0.5, gf_big16(data) / 256.0)
                         : (gf_big16(data + 2 * low) + gf_big16(data + 2 * high)) / 2.0 / 65535;
    }
    if (memcmp(curve, "para", 4) != 0 || function >= FUNCTIONS ||
        (size - HEAD) / 4 < numbers[function])
        return NAN;
    for (size_t i = 0; i < numbers[function]; i++)
        p[i] = (int32_t)gf_big32(data + 4 * i) / 65536.0;
    /* d is the end of the linear segment. */
    return p[4] > 0.5 ? NAN : pow(p[1] / 2 + p[2], p[0]) + (function == 2 ? p[3] : p[5]);
}

/* Return whether the description of a profile names sRGB, and its curves may be those of sRGB or
 * the power 2.2. Some profiles with sRGB in their description have another one: linear
 * (sRGB-elle-V2-g10.icc), L*, Rec. 709. */
static bool icc_is_srgb(const unsigned char *icc, size_t size) {
    static const char *const curves[] = {"rTRC", "kTRC"};
    const double half = 0.2140,
                 tolerance = 0.01; /* power 2.2: 0.2176; L*: 0.184; Rec. 709: 0.260 */
    size_t length;
    const unsigned char *tag = icc_find(icc, size, "desc", &length);
    bool is_srgb = tag && icc_describes_srgb(tag, length);
    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++)
        if ((tag = icc_find(icc, size, curves[i], &length)))
            is_srgb &= fabs(icc_curve_at_half(tag, length) - half) <= tolerance;
    return is_srgb;
}

/* In the order in which PNG readers use them. */
gf_status gf_srgb_check(const gf_metadata *metadata, const char *name, gf_error *error) {
    static const unsigned char srgb[4] = {1, 13, 0, 1}; /* primaries, transfer, matrix, range */
    enum { GAMMA = 45455, TOLERANCE = 5 };              /* 1 / 2.2 */
    if (metadata->associated_alpha)
        return gf_fail(
            error, GF_FAILED,
            "%s: --linear does not support associated (premultiplied) alpha; convert the "
            "image first, e.g. with vips unpremultiply in.tif out.tif",
            name);
    const gf_chunk *cicp = gf_metadata_find(metadata, "cICP");
    const gf_chunk *gama = gf_metadata_find(metadata, "gAMA");
    const uint32_t gamma = gama && gama->size == 4 ? gf_big32(gama->data) : 0;
    const char *other = NULL; /* what is not sRGB */
    gf_metadata items = {0};
    if (cicp && cicp->size == sizeof srgb && memcmp(cicp->data, srgb, sizeof srgb) == 0)
        return GF_OK;
    gf_status status = gf_metadata_to_items(metadata, &items, name, error);
    const gf_chunk *icc = gf_metadata_find(&items, GF_ITEM_ICC);
    if (cicp)
        other = "cICP chunk";
    else if (icc)
        other = icc_is_srgb(icc->data, icc->size) ? NULL : "ICC profile";
    else if (gama && !gf_metadata_find(metadata, "sRGB") &&
             (gamma < GAMMA - TOLERANCE || gamma > GAMMA + TOLERANCE))
        other = "gamma";
    gf_metadata_clear(&items);
    if (status || !other)
        return status;
    return gf_fail(error, GF_FAILED,
                   "%s: its %s is not sRGB; convert it to sRGB first or remove --linear", name,
                   other);
}
