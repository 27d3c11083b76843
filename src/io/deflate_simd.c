#include "core/vec.h"
#include "io/bytes.h"
#include "io/deflate.h"

/* ---- counting -------------------------------------------------------------------------------- */

static void count(const unsigned char *src, size_t n, gf_byte_counts *counts) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t v;
        memcpy(&v, src + i, sizeof v);
        for (int k = 0; k < 8; k++)
            counts->table[k][v >> 8 * k & 255]++;
    }
    for (; i < n; i++)
        counts->table[i & 7][src[i]]++;
}

/* ---- runs ------------------------------------------------------------------------------------ */

#if VEC_FLOATS >= 8
#define WIDE 64
/* Bit k: p[k] is q[k]. */
#if VEC_FLOATS == 16
static inline uint64_t alike_64(const unsigned char *p, const unsigned char *q) {
    return _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(p), _mm512_loadu_si512(q));
}
#else
static inline uint64_t alike_32(const unsigned char *p, const unsigned char *q) {
    const __m256i a = _mm256_loadu_si256((const __m256i *)p);
    const __m256i b = _mm256_loadu_si256((const __m256i *)q);
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(a, b));
}
static inline uint64_t alike_64(const unsigned char *p, const unsigned char *q) {
    return alike_32(p, q) | alike_32(p + 32, q + 32) << 32;
}
#endif
#endif

static size_t find_run(const unsigned char *src, size_t from, size_t n) {
    size_t i = from;
    _Static_assert(GF_DEFLATE_RUN == 12, "four shifts make it");
#ifdef WIDE
    /* Bit k: src[i+k] repeats the byte before it. Windows overlap by what a run may lack. */
    for (; i + WIDE <= n; i += WIDE - (GF_DEFLATE_RUN - 1)) {
        uint64_t runs = alike_64(src + i, src + i - 1);
        runs &= runs >> 1;
        runs &= runs >> 2;
        runs &= runs >> 4;
        runs &= runs >> 4;
        if (runs)
            return i + (size_t)__builtin_ctzll(runs);
    }
#endif
    /* In eight that repeat there are four that begin at every fourth byte from here. */
    for (size_t k = i; k + 4 <= n; k += 4) {
        if (memcmp(src + k, src + k - 1, 4) != 0)
            continue;
        size_t start = k, end = k + 4;
        while (start > i && src[start - 1] == src[start - 2])
            start--;
        while (end < n && end - start < GF_DEFLATE_RUN && src[end] == src[end - 1])
            end++;
        if (end - start >= GF_DEFLATE_RUN)
            return start;
    }
    return n;
}

/* ---- words ----------------------------------------------------------------------------------- */

static bool find_word(const unsigned char word[GF_DEFLATE_WORD], const unsigned char *src,
                      size_t n) {
    size_t i = 0;
#ifdef WIDE
    enum { APART = 9, LOOKED_AT = (GF_DEFLATE_WORD + APART - 1) / APART };
    unsigned char wanted[LOOKED_AT][WIDE]; /* a byte of the word each */
    for (unsigned k = 0; k < LOOKED_AT; k++)
        memset(wanted[k], word[k * APART], WIDE);
    for (; i + WIDE <= n; i += WIDE) {
        uint64_t alike = UINT64_MAX;
        for (unsigned k = 0; k < LOOKED_AT; k++)
            alike &= alike_64(src + i + k * APART, wanted[k]);
        for (; alike; alike &= alike - 1)
            if (memcmp(src + i + __builtin_ctzll(alike), word, GF_DEFLATE_WORD) == 0)
                return true;
    }
#endif
    for (; i < n; i++)
        if (memcmp(src + i, word, GF_DEFLATE_WORD) == 0)
            return true;
    return false;
}

/* ---- literals -------------------------------------------------------------------------------- */

/* Two codes, or twice as many, as one: bits and how many. */
typedef struct joined {
    uint64_t bits;
    unsigned count;
} joined;

static inline joined join(joined a, joined b) {
    return (joined){a.bits | b.bits << a.count, a.count + b.count};
}

static inline joined look_up(const gf_deflate_word *words, uint64_t byte) {
    const gf_deflate_word word = words[byte & 255];
    return (joined){word & 0xffff, word >> 16};
}

static inline joined join4(const gf_deflate_word *words, uint64_t v) {
    return join(join(look_up(words, v), look_up(words, v >> 8)),
                join(look_up(words, v >> 16), look_up(words, v >> 24)));
}

/* No code is longer than 14 bits: four fill up 56. Most often eight do not. */
static inline void put_two(gf_bit_writer *to, joined a, joined b) {
    if (a.count + b.count <= 56) {
        gf_put_bits(to, a.bits | b.bits << a.count, a.count + b.count);
    } else {
        gf_put_bits(to, a.bits, a.count);
        gf_put_bits(to, b.bits, b.count);
    }
}

static void put_each(gf_bit_writer *out, const gf_deflate_codes *codes, const unsigned char *src,
                     size_t n) {
    const gf_deflate_word *words = codes->literal;
    gf_bit_writer to = *out;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const uint64_t v = gf_little64(src + i);
        put_two(&to, join4(words, v), join4(words, v >> 32));
    }
    for (; i < n; i++)
        gf_put_word(&to, words[src[i]]);
    *out = to;
}

#if VEC_FLOATS == 16

enum { VECTORS_PAY = 16 }; /* from so many literals on */

/* 256 words of 16 bits. */
typedef struct table {
    __m512i part[8];
} table;

static inline table load_table(const uint16_t *words) {
    table t;
    for (int k = 0; k < 8; k++)
        t.part[k] = _mm512_loadu_si512(words + 32 * k);
    return t;
}

/* The words that 32 bytes, each in a 16-bit lane, stand for. */
static inline __m512i look_up_32(const table *t, __m512i bytes, __mmask32 bit6, __mmask32 bit7) {
    __m512i quarter[4];
    for (int k = 0; k < 4; k++)
        quarter[k] = _mm512_permutex2var_epi16(t->part[2 * k], bytes, t->part[2 * k + 1]);
    return _mm512_mask_blend_epi16(bit7, _mm512_mask_blend_epi16(bit6, quarter[0], quarter[1]),
                                   _mm512_mask_blend_epi16(bit6, quarter[2], quarter[3]));
}

/* 32 literals at once up to eight times four; those are joined one after the other. */
static void put_many(gf_bit_writer *to, const gf_deflate_codes *codes, const unsigned char *src,
                     size_t n) {
    const table code = load_table(codes->byte_code), length = load_table(codes->byte_bits);
    const __m512i low16 = _mm512_set1_epi32(0xffff), low32 = _mm512_set1_epi64(0xffffffff);
    gf_bit_writer out = *to;
    for (size_t i = 0; i < n; i += 32) {
        const size_t rest = n - i < 32 ? n - i : 32;
        const __mmask32 there = 0xffffffffu >> (32 - rest);
        const __m512i bytes =
            _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(there, (const __m256i *)(src + i)));
        const __mmask32 bit6 = _mm512_test_epi16_mask(bytes, _mm512_set1_epi16(64));
        const __mmask32 bit7 = _mm512_test_epi16_mask(bytes, _mm512_set1_epi16(128));
        const __m512i c = _mm512_maskz_mov_epi16(there, look_up_32(&code, bytes, bit6, bit7));
        const __m512i l = _mm512_maskz_mov_epi16(there, look_up_32(&length, bytes, bit6, bit7));
        const __m512i l_even = _mm512_and_si512(l, low16);
        const __m512i c2 = _mm512_or_si512(_mm512_and_si512(c, low16),
                                           _mm512_sllv_epi32(_mm512_srli_epi32(c, 16), l_even));
        const __m512i l2 = _mm512_add_epi32(l_even, _mm512_srli_epi32(l, 16));
        const __m512i l2_even = _mm512_and_si512(l2, low32);
        const __m512i c4 = _mm512_or_si512(_mm512_and_si512(c2, low32),
                                           _mm512_sllv_epi64(_mm512_srli_epi64(c2, 32), l2_even));
        const __m512i l4 = _mm512_add_epi64(l2_even, _mm512_srli_epi64(l2, 32));
        uint64_t bits[8], count[8];
        _mm512_storeu_si512(bits, c4);
        _mm512_storeu_si512(count, l4);
        for (size_t k = 0; 4 * k < rest; k += 2)
            put_two(&out, (joined){bits[k], (unsigned)count[k]},
                    (joined){bits[k + 1], (unsigned)count[k + 1]});
    }
    *to = out;
}

#endif

static void put(gf_bit_writer *out, const gf_deflate_codes *codes, const unsigned char *src,
                size_t n) {
#if VEC_FLOATS == 16
    if (n >= VECTORS_PAY) {
        put_many(out, codes, src, n);
        return;
    }
#endif
    put_each(out, codes, src, n);
}

const gf_deflate_simd GF_SIMD_NAME(gf_deflate_simd) = {count, find_run, find_word, put};
