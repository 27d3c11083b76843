/* The fast CPU implementation of dot: rows go to threads whole. The loops over a row make all sums
 * of each channel, as in a record, of n samples of two rows; n is a multiple of channels. */
#include "core/vec.h"
#include "dot/dot.h"
#include "samples.h"

#define PERIOD 48 /* samples: a multiple of every channel count and of every vector of sums */

/* Written for the compiler to vectorise: sums lie side by side, a whole number of pixels and of
 * vectors apart. */
#define ROW_DOT(NAME, TYPE, PRODUCT, SOME, FLUSH)                                                  \
    static void NAME(const void *a_row, const void *b_row, size_t n, uint32_t channels,            \
                     void *record, double *scratch) {                                              \
        const TYPE *a = a_row, *b = b_row;                                                         \
        uint64_t *sums = record;                                                                   \
        uint64_t all[GF_DOT_SSD][PERIOD] = {{0}};                                                  \
        size_t i = 0;                                                                              \
        (void)scratch;                                                                             \
        while (n - i >= PERIOD) {                                                                  \
            SOME some[GF_DOT_SSD][PERIOD] = {{0}};                                                 \
            for (size_t k = 0; k < (FLUSH) && n - i >= PERIOD; k++, i += PERIOD)                   \
                for (size_t j = 0; j < PERIOD; j++) {                                              \
                    const PRODUCT p = a[i + j], q = b[i + j];                                      \
                    some[GF_DOT_AB][j] += (PRODUCT)(p * q);                                        \
                    some[GF_DOT_AA][j] += (PRODUCT)(p * p);                                        \
                    some[GF_DOT_BB][j] += (PRODUCT)(q * q);                                        \
                }                                                                                  \
            for (size_t s = 0; s < GF_DOT_SSD; s++)                                                \
                for (size_t j = 0; j < PERIOD; j++)                                                \
                    all[s][j] += some[s][j];                                                       \
        }                                                                                          \
        for (size_t j = 0; j < n - i; j++) {                                                       \
            const uint64_t p = a[i + j], q = b[i + j];                                             \
            all[GF_DOT_AB][j] += p * q;                                                            \
            all[GF_DOT_AA][j] += p * p;                                                            \
            all[GF_DOT_BB][j] += q * q;                                                            \
        }                                                                                          \
        for (uint32_t c = 0; c < channels; c++)                                                    \
            for (uint32_t s = 0; s < GF_DOT_SSD; s++) {                                            \
                uint64_t sum = 0;                                                                  \
                for (uint32_t j = c; j < PERIOD; j += channels)                                    \
                    sum += all[s][j];                                                              \
                sums[c * GF_DOT_SSD + s] = sum;                                                    \
            }                                                                                      \
    }

/* A product of u8 fits in 16 bits and 2^16 of them in 32; of u16 in 32 bits and in a row in 64. */
#if VEC_FLOATS < 8
ROW_DOT(dot_u8, uint8_t, uint16_t, uint32_t, 1u << 16)
#else
ROW_DOT(dot_rest_u8, uint8_t, uint16_t, uint32_t, 1u << 16)
#endif
ROW_DOT(dot_u16, uint16_t, uint32_t, uint64_t, SIZE_MAX)

/* ---- u8 -------------------------------------------------------------------------------------- */

#if VEC_FLOATS >= 8

/* The four samples in each 32 bits are brought to be of one channel, in each 128 bits alike: those
 * at even and those at odd places are then multiplied and added in pairs. Of three channels 128
 * bits hold four pixels, and the last 32 bits nothing. */
#define SHUFFLES                                                                                   \
    const __m128i shuffles[] = {                                                                   \
        _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),                       \
        _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15),                       \
        _mm_setr_epi8(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, -1, -1, -1, -1),                       \
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)}

static inline vec_bits dot_load_u8(const uint8_t *p, uint32_t channels, vec_bits shuffle) {
    vec_bits x = vec_load_bits(p);
#if VEC_FLOATS == 16
    if (channels == 3)
        x = _mm512_permutexvar_epi32(
            _mm512_setr_epi32(0, 1, 2, 0, 3, 4, 5, 0, 6, 7, 8, 0, 9, 10, 11, 0), x);
#else
    if (channels == 3)
        x = _mm256_permutevar8x32_epi32(x, _mm256_setr_epi32(0, 1, 2, 0, 3, 4, 5, 0));
#endif
    return channels == 1 ? x : VEC_OP(shuffle_epi8)(x, shuffle);
}

static inline vec_bits dot_add_products(vec_bits sum, vec_bits even, vec_bits odd, vec_bits even2,
                                        vec_bits odd2) {
    return VEC_OP(add_epi32)(
        sum, VEC_OP(add_epi32)(VEC_OP(madd_epi16)(even, even2), VEC_OP(madd_epi16)(odd, odd2)));
}

/* Four products at a time go to a lane of 32 bits: 2^32 / (4 * 255^2) > 16384. */
#define TURNS 16384

#define AHEAD 3072 /* rows begin anew, and the processor fetches ahead too late */

/* Adds the products of whole vectors to sums, and returns the samples that it has taken. */
GF_INLINE size_t dot_vectors_u8(const uint8_t *a, const uint8_t *b, size_t n,
                                const uint32_t channels, uint64_t *sums) {
    SHUFFLES;
    const vec_bits shuffle = vec_broadcast(shuffles[channels - 1]);
    const vec_bits low = VEC_OP(set1_epi16)(255);
    const size_t step = sizeof(vec_bits) / 4 * (channels == 3 ? 3 : 4);
    size_t i = 0;
    while (n - i >= sizeof(vec_bits)) {
        vec_bits some[GF_DOT_SSD] = {{0}};
        for (size_t k = 0; k < TURNS && n - i >= sizeof(vec_bits); k++, i += step) {
            __builtin_prefetch(a + i + AHEAD);
            __builtin_prefetch(b + i + AHEAD);
            const vec_bits x = dot_load_u8(a + i, channels, shuffle);
            const vec_bits y = dot_load_u8(b + i, channels, shuffle);
            const vec_bits xe = x & low, xo = VEC_OP(srli_epi16)(x, 8);
            const vec_bits ye = y & low, yo = VEC_OP(srli_epi16)(y, 8);
            some[GF_DOT_AB] = dot_add_products(some[GF_DOT_AB], xe, xo, ye, yo);
            some[GF_DOT_AA] = dot_add_products(some[GF_DOT_AA], xe, xo, xe, xo);
            some[GF_DOT_BB] = dot_add_products(some[GF_DOT_BB], ye, yo, ye, yo);
        }
        for (size_t s = 0; s < GF_DOT_SSD; s++) {
            uint32_t lanes[VEC_FLOATS];
            memcpy(lanes, &some[s], sizeof lanes);
            for (size_t j = 0; j < VEC_FLOATS; j++) {
                const size_t c = channels == 3 ? j % 4 : j % channels;
                if (c < channels) /* otherwise it is nothing */
                    sums[c * GF_DOT_SSD + s] += lanes[j];
            }
        }
    }
    return i;
}

static void dot_u8(const void *a_row, const void *b_row, size_t n, uint32_t channels, void *record,
                   double *scratch) {
    const uint8_t *a = a_row, *b = b_row;
    uint64_t vectors[GF_MAX_CHANNELS * GF_DOT_SSD] = {0}, *sums = record;
    size_t taken;
    if (channels == 1)
        taken = dot_vectors_u8(a, b, n, 1, vectors);
    else if (channels == 2)
        taken = dot_vectors_u8(a, b, n, 2, vectors);
    else if (channels == 3)
        taken = dot_vectors_u8(a, b, n, 3, vectors);
    else
        taken = dot_vectors_u8(a, b, n, 4, vectors);
    dot_rest_u8(a + taken, b + taken, n - taken, channels, sums, scratch);
    for (uint32_t i = 0; i < channels * GF_DOT_SSD; i++)
        sums[i] += vectors[i];
}

#endif

/* ---- f32 ------------------------------------------------------------------------------------- */

/* Adds the products of up to a period of samples to the lanes, `periods` times: each lane takes
 * them one after the other. */
GF_INLINE void dot_add_f32(const float *restrict a, const float *restrict b, size_t n,
                           const size_t periods, size_t period, double *restrict lanes) {
    double *ab = lanes, *aa = ab + period, *bb = aa + period, *ssd = bb + period;
    for (size_t j = 0; j < n; j++) {
        double sum_ab = ab[j], sum_aa = aa[j], sum_bb = bb[j], sum_ssd = ssd[j];
        for (size_t k = 0; k < periods; k++) {
            const double p = (double)a[k * period + j], q = (double)b[k * period + j], d = p - q;
            sum_ab += p * q;
            sum_aa += p * p;
            sum_bb += q * q;
            sum_ssd += d * d;
        }
        ab[j] = sum_ab;
        aa[j] = sum_aa;
        bb[j] = sum_bb;
        ssd[j] = sum_ssd;
    }
}

#define AT_ONCE 2
#define LINE 16 /* samples of a cache line */

static void dot_f32(const void *a_row, const void *b_row, size_t n, uint32_t channels, void *record,
                    double *lanes) {
    const float *a = a_row, *b = b_row;
    double *sums = record;
    const size_t period = (size_t)GF_LANES * channels;
    memset(lanes, 0, GF_DOT_SUMS * period * sizeof *lanes);
    size_t i = 0;
    /* Short runs from many places: the processor fetches ahead too late, so the loop asks for what
     * comes next. It may lie beyond the row, where asking does no harm. */
    for (; n - i >= AT_ONCE * period; i += AT_ONCE * period)
        for (size_t j = 0; j < period; j += LINE) {
            for (size_t k = AT_ONCE; k < 2 * AT_ONCE; k++) {
                __builtin_prefetch(a + i + k * period + j);
                __builtin_prefetch(b + i + k * period + j);
            }
            dot_add_f32(a + i + j, b + i + j, LINE, AT_ONCE, period, lanes + j);
        }
    for (; n - i >= period; i += period)
        dot_add_f32(a + i, b + i, period, 1, period, lanes);
    dot_add_f32(a + i, b + i, n - i, 1, period, lanes);
    for (size_t s = 0; s < GF_DOT_SUMS; s++, lanes += period) {
        for (size_t stride = period / 2; stride >= channels; stride /= 2)
            for (size_t j = 0; j < stride; j++)
                lanes[j] += lanes[j + stride];
        for (uint32_t c = 0; c < channels; c++)
            sums[c * GF_DOT_SUMS + s] = gf_canonical_double(lanes[c]);
    }
}

/* ---- a part of a strip ------------------------------------------------------------------------
 */

static void (*const dot_row[])(const void *a, const void *b, size_t n, uint32_t channels,
                               void *record, double *lanes) = {
    [GF_U8] = dot_u8, [GF_U16] = dot_u16, [GF_F32] = dot_f32};

void GF_SIMD_NAME(gf_dot_cpu)(const gf_plan *plan, const gf_strip *strip, uint32_t part,
                              uint32_t parts, void *scratch) {
    const gf_format *format = &plan->in;
    const gf_rows a = gf_strip_input(strip, plan->inputs, 0);
    const gf_rows b = gf_strip_input(strip, plan->inputs, 1);
    const uint64_t y0 = strip->out.y0, end = y0 + gf_share(strip->out.rows, part + 1, parts);
    for (uint64_t y = y0 + gf_share(strip->out.rows, part, parts); y < end; y++) {
        /* Of all channels; those that are measured are the first. */
        union {
            uint64_t integer[GF_MAX_CHANNELS * GF_DOT_SSD];
            double real[GF_MAX_CHANNELS * GF_DOT_SUMS];
        } sums;
        dot_row[format->type](gf_row(&a, y), gf_row(&b, y), (size_t)gf_row_samples(format),
                              format->channels, &sums, scratch);
        memcpy(gf_record(plan, &strip->out, y), &sums, plan->record);
    }
}
