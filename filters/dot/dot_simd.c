/* Fast CPU implementation of dot. Threads share the rows. The loops over a row compute the sums of
 * all channels of n samples of two rows, in the layout of a record. n is a multiple of channels. */
#include "core/vec.h"
#include "dot/dot.h"
#include "samples.h"

#define PERIOD 48 /* samples: a multiple of every channel count and of every vector of sums */

typedef uint32_t sum_u8;
typedef uint64_t sum_u16;

#define TYPE u8
#include "dot/dot_tmpl.h"
#define TYPE u16
#include "dot/dot_tmpl.h"

/* ---- u8 -------------------------------------------------------------------------------------- */

#if VEC_FLOATS >= 8

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

/* Vectors before a flush. Each adds four products to a 32-bit lane: 2^32 / (4 * 255^2) > 16384. */
#define FLUSH_VECTORS 16384

#define PREFETCH_BYTES 3072 /* the hardware prefetcher reacts too late to the start of each row */

/* Add the products of whole vectors to sums. Returns the number of samples processed.
 *
 * Rearrange each 128 bits in the same way: the four samples in each 32 bits then belong to one
 * channel. Samples at even and at odd indices are multiplied and added in pairs. With three
 * channels, 128 bits hold four pixels and the last 32 bits are unused. */
GF_INLINE size_t dot_vectors_u8(const uint8_t *a, const uint8_t *b, size_t n,
                                const uint32_t channels, uint64_t *sums) {
    const __m128i shuffles[] = {
        _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
        _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15),
        _mm_setr_epi8(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, -1, -1, -1, -1),
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)};
    const vec_bits shuffle = vec_broadcast(shuffles[channels - 1]);
    const vec_bits low = VEC_OP(set1_epi16)(255);
    const size_t step = sizeof(vec_bits) / 4 * (channels == 3 ? 3 : 4);
    size_t i = 0;
    while (n - i >= sizeof(vec_bits)) {
        vec_bits partial[GF_DOT_SSD] = {{0}};
        for (size_t k = 0; k < FLUSH_VECTORS && n - i >= sizeof(vec_bits); k++, i += step) {
            __builtin_prefetch(a + i + PREFETCH_BYTES);
            __builtin_prefetch(b + i + PREFETCH_BYTES);
            const vec_bits x = dot_load_u8(a + i, channels, shuffle);
            const vec_bits y = dot_load_u8(b + i, channels, shuffle);
            const vec_bits xe = x & low, xo = VEC_OP(srli_epi16)(x, 8);
            const vec_bits ye = y & low, yo = VEC_OP(srli_epi16)(y, 8);
            partial[GF_DOT_AB] = dot_add_products(partial[GF_DOT_AB], xe, xo, ye, yo);
            partial[GF_DOT_AA] = dot_add_products(partial[GF_DOT_AA], xe, xo, xe, xo);
            partial[GF_DOT_BB] = dot_add_products(partial[GF_DOT_BB], ye, yo, ye, yo);
        }
        for (size_t s = 0; s < GF_DOT_SSD; s++) {
            uint32_t lanes[VEC_FLOATS];
            memcpy(lanes, &partial[s], sizeof lanes);
            for (size_t j = 0; j < VEC_FLOATS; j++) {
                const size_t c = channels == 3 ? j % 4 : j % channels;
                if (c < channels) /* other lanes are unused */
                    sums[c * GF_DOT_SSD + s] += lanes[j];
            }
        }
    }
    return i;
}

#endif

static void dot_u8(const uint8_t *a, const uint8_t *b, size_t n, uint32_t channels,
                   uint64_t *sums) {
    uint64_t vectors[GF_MAX_CHANNELS * GF_DOT_SSD] = {0};
    size_t done = 0;
#if VEC_FLOATS >= 8
    done = channels == 1   ? dot_vectors_u8(a, b, n, 1, vectors)
           : channels == 2 ? dot_vectors_u8(a, b, n, 2, vectors)
           : channels == 3 ? dot_vectors_u8(a, b, n, 3, vectors)
                           : dot_vectors_u8(a, b, n, 4, vectors);
#endif
    dot_row_u8(a + done, b + done, n - done, channels, sums);
    for (uint32_t i = 0; i < channels * GF_DOT_SSD; i++)
        sums[i] += vectors[i];
}

/* ---- f32 ------------------------------------------------------------------------------------- */

/* Add the products of up to one period of samples to the lanes, `periods` times. Each lane adds its
 * products in order. */
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

#define UNROLL 2
#define LINE 16 /* samples per cache line */

static void dot_f32(const float *a, const float *b, size_t n, uint32_t channels, double *sums,
                    double *lanes) {
    const size_t period = (size_t)GF_LANES * channels;
    memset(lanes, 0, GF_DOT_SUMS * period * sizeof *lanes);
    size_t i = 0;
    /* Prefetch: the hardware prefetcher reacts too late to short runs at many addresses. A prefetch
     * past the end of the row is harmless. */
    for (; n - i >= UNROLL * period; i += UNROLL * period)
        for (size_t j = 0; j < period; j += LINE) {
            for (size_t k = UNROLL; k < 2 * UNROLL; k++) {
                __builtin_prefetch(a + i + k * period + j);
                __builtin_prefetch(b + i + k * period + j);
            }
            dot_add_f32(a + i + j, b + i + j, LINE, UNROLL, period, lanes + j);
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

/* ---- one part of a strip --------------------------------------------------------------------- */

void GF_SIMD_NAME(gf_dot_cpu)(const gf_plan *plan, const gf_strip *strip, uint32_t part,
                              uint32_t parts, void *scratch) {
    const size_t n = (size_t)gf_row_samples(&plan->in);
    const uint32_t channels = plan->in.channels;
    const uint64_t y0 = strip->out.y0, end = y0 + gf_share(strip->out.rows, part + 1, parts);
    for (uint64_t y = y0 + gf_share(strip->out.rows, part, parts); y < end; y++) {
        /* All channels; measured channels come first. */
        union {
            uint64_t integer[GF_MAX_CHANNELS * GF_DOT_SSD];
            double real[GF_MAX_CHANNELS * GF_DOT_SUMS];
        } sums;
        const void *a = gf_row(&strip->in[0], y), *b = gf_row(&strip->in[1], y);
        if (plan->in.type == GF_U8)
            dot_u8(a, b, n, channels, sums.integer);
        else if (plan->in.type == GF_U16)
            dot_row_u16(a, b, n, channels, sums.integer);
        else
            dot_f32(a, b, n, channels, sums.real, scratch);
        memcpy(gf_record(plan, strip, y), &sums, plan->record);
    }
}
