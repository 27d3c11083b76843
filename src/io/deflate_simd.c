#include "engine/vec.h"
#include "io/deflate.h"

/* ---- counting -------------------------------------------------------------------------------- */

/* Several tables, so that equal neighbours need not wait for each other. */
static void count(const unsigned char *src, size_t n, uint32_t counts[256]) {
    uint32_t table[8][256] = {{0}};
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t v;
        memcpy(&v, src + i, sizeof v);
        for (int k = 0; k < 8; k++)
            table[k][v >> 8 * k & 255]++;
    }
    for (; i < n; i++)
        table[0][src[i]]++;
    for (int b = 0; b < 256; b++)
        for (int k = 0; k < 8; k++)
            counts[b] += table[k][b];
}

/* ---- runs ------------------------------------------------------------------------------------ */

#if VEC_FLOATS == 16
#define WIDE 64
static inline uint64_t repeats(const unsigned char *p) {
    return _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(p), _mm512_loadu_si512(p - 1));
}
#elif VEC_FLOATS == 8
#define WIDE 64
static inline uint64_t repeats_32(const unsigned char *p) {
    const __m256i a = _mm256_loadu_si256((const __m256i *)p);
    const __m256i b = _mm256_loadu_si256((const __m256i *)(p - 1));
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(a, b));
}
static inline uint64_t repeats(const unsigned char *p) {
    return repeats_32(p) | repeats_32(p + 32) << 32;
}
#endif

static size_t find_run(const unsigned char *src, size_t from, size_t n) {
    size_t i = from;
#ifdef WIDE
    /* Bit k: src[i+k] repeats the byte before it. Windows overlap by what a run may lack. */
    for (; i + WIDE <= n; i += WIDE - 5) {
        uint64_t runs = repeats(src + i);
        runs &= runs >> 1;
        runs &= runs >> 2;
        runs &= runs >> 2;
        if (runs)
            return i + (size_t)__builtin_ctzll(runs);
    }
#endif
    for (size_t same = 0; i < n; i++) {
        same = src[i] == src[i - 1] ? same + 1 : 0;
        if (same == 6)
            return i - 5;
    }
    return n;
}

/* ---- literals -------------------------------------------------------------------------------- */

/* No code is longer than 14 bits: two fill up 28, four 56. */
static void put(gf_bit_writer *out, const gf_deflate_word *words, const unsigned char *src,
                size_t n) {
    gf_bit_writer to = *out;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const gf_deflate_word a = words[src[i]], b = words[src[i + 1]], c = words[src[i + 2]],
                              d = words[src[i + 3]];
        const unsigned a_bits = a >> 16, c_bits = c >> 16;
        const unsigned ab_bits = a_bits + (b >> 16), cd_bits = c_bits + (d >> 16);
        const uint64_t ab = (a & 0xffff) | (uint64_t)(b & 0xffff) << a_bits;
        const uint64_t cd = (c & 0xffff) | (uint64_t)(d & 0xffff) << c_bits;
        gf_put_bits(&to, ab | cd << ab_bits, ab_bits + cd_bits);
    }
    for (; i < n; i++)
        gf_put_word(&to, words[src[i]]);
    *out = to;
}

const gf_deflate_simd GF_SIMD_NAME(gf_deflate_simd) = {count, find_run, put};
