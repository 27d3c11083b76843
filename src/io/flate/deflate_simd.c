#include "core/vec.h"
#include "io/flate/deflate.h"

#if VEC_FLOATS >= 8 || defined(GF_NEON)
#define SPAN 64
/* Bit k of the result: p[k] == q[k]. */
#if VEC_FLOATS == 16
static inline uint64_t equal_mask64(const unsigned char *p, const unsigned char *q) {
    return _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(p), _mm512_loadu_si512(q));
}
#elif defined(GF_NEON)
static inline uint64_t equal_mask64(const unsigned char *p, const unsigned char *q) {
    uint8x16_t equal[4];
    for (int i = 0; i < 4; i++)
        equal[i] = vceqq_u8(vld1q_u8(p + 16 * i), vld1q_u8(q + 16 * i));
    return vec_mask64(equal);
}
#else
static inline uint64_t equal_mask32(const unsigned char *p, const unsigned char *q) {
    const __m256i a = _mm256_loadu_si256((const __m256i *)p);
    const __m256i b = _mm256_loadu_si256((const __m256i *)q);
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(a, b));
}
static inline uint64_t equal_mask64(const unsigned char *p, const unsigned char *q) {
    return equal_mask32(p, q) | equal_mask32(p + 32, q + 32) << 32;
}
#endif
#endif

static void count_each(const unsigned char *src, size_t n, gf_byte_counts *counts) {
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

static void count(const unsigned char *src, size_t n, gf_byte_counts *counts) {
    size_t i = 0;
#ifdef SPAN
    /* Most bytes of a smooth image are near 0. Vector comparisons count them in a fifth of the
     * time: increments of the same counter wait for each other. */
    enum { NEAR = 3, VALUES = 2 * NEAR + 1, MANY = SPAN / 6, PART = 32 * SPAN };
    unsigned char value[VALUES][SPAN];
    uint32_t found[VALUES] = {0};
    for (int k = 0; k < VALUES; k++)
        memset(value[k], k - NEAR, SPAN);
    while (i + SPAN <= n) {
        uint64_t others = UINT64_MAX;
        for (int k = 0; k < VALUES; k++) {
            const uint64_t equal = equal_mask64(src + i, value[k]);
            found[k] += (uint32_t)__builtin_popcountll(equal);
            others &= ~equal;
        }
        const bool many = __builtin_popcountll(others) > MANY;
        for (; others; others &= others - 1) {
            const size_t k = (size_t)__builtin_ctzll(others);
            counts->table[k & 7][src[i + k]]++;
        }
        i += SPAN;
        if (many) {
            const size_t part = n - i < PART ? n - i : PART;
            count_each(src + i, part, counts);
            i += part;
        }
    }
    for (int k = 0; k < VALUES; k++)
        counts->table[0][(k - NEAR) & 255] += found[k];
#endif
    count_each(src + i, n - i, counts);
}

static size_t find_run(const unsigned char *src, size_t from, size_t n) {
    size_t i = from;
    _Static_assert(GF_DEFLATE_RUN == 24, "find_run combines 24 bits in five shifts");
#ifdef SPAN
    /* Bit k: src[i+k] == src[i+k-1]. Vectors overlap by the length of a run, less one. */
    for (; i + SPAN <= n; i += SPAN - (GF_DEFLATE_RUN - 1)) {
        uint64_t runs = equal_mask64(src + i, src + i - 1);
        runs &= runs >> 1;
        runs &= runs >> 2;
        runs &= runs >> 4;
        runs &= runs >> 8;
        runs &= runs >> 8;
        if (runs)
            return i + (size_t)__builtin_ctzll(runs);
    }
#endif
    /* A run of 23 repeats contains eight repeats at a multiple of 16 from i. */
    for (size_t k = i; k + 8 <= n; k += 16) {
        if (memcmp(src + k, src + k - 1, 8) != 0)
            continue;
        size_t start = k, end = k + 8;
        while (start > i && src[start - 1] == src[start - 2])
            start--;
        while (end < n && end - start < GF_DEFLATE_RUN && src[end] == src[end - 1])
            end++;
        if (end - start >= GF_DEFLATE_RUN)
            return start;
    }
    return n;
}

static bool find_pattern(const unsigned char pattern[GF_DEFLATE_PATTERN], const unsigned char *src,
                         size_t n) {
    size_t i = 0;
#ifdef SPAN
    enum { STRIDE = 9, PROBED = (GF_DEFLATE_PATTERN + STRIDE - 1) / STRIDE };
    unsigned char expected[PROBED][SPAN]; /* each filled with one byte of the pattern */
    for (unsigned k = 0; k < PROBED; k++)
        memset(expected[k], pattern[k * STRIDE], SPAN);
    for (; i + SPAN <= n; i += SPAN) {
        uint64_t equal = UINT64_MAX;
        for (unsigned k = 0; k < PROBED; k++)
            equal &= equal_mask64(src + i + k * STRIDE, expected[k]);
        for (; equal; equal &= equal - 1)
            if (memcmp(src + i + __builtin_ctzll(equal), pattern, GF_DEFLATE_PATTERN) == 0)
                return true;
    }
#endif
    for (; i < n; i++)
        if (memcmp(src + i, pattern, GF_DEFLATE_PATTERN) == 0)
            return true;
    return false;
}

/* Concatenated codewords, the first bit lowest. */
typedef struct bit_string {
    uint64_t bits;
    unsigned count;
} bit_string;

static inline bit_string join(bit_string a, bit_string b) {
    return (bit_string){a.bits | b.bits << a.count, a.count + b.count};
}

static inline bit_string look_up(const gf_deflate_codeword *codewords, uint64_t byte) {
    const gf_deflate_codeword codeword = codewords[byte & 255];
    return (bit_string){codeword & 0xffff, codeword >> 16};
}

static inline bit_string join4(const gf_deflate_codeword *codewords, uint64_t v) {
    return join(join(look_up(codewords, v), look_up(codewords, v >> 8)),
                join(look_up(codewords, v >> 16), look_up(codewords, v >> 24)));
}

/* Codewords have at most 14 bits: four always fit into 56 bits, and eight usually do. */
static inline void put_two(gf_bit_writer *to, bit_string a, bit_string b) {
    if (a.count + b.count <= 56) {
        gf_put_bits(to, a.bits | b.bits << a.count, a.count + b.count);
    } else {
        gf_put_bits(to, a.bits, a.count);
        gf_put_bits(to, b.bits, b.count);
    }
}

#if VEC_FLOATS == 16

enum { MIN_VECTOR_LITERALS = 16 }; /* faster from this number of literals on */

/* Lookup table of 256 16-bit entries. */
typedef struct table {
    __m512i part[8];
} table;

static inline table load_table(const uint16_t *entries) {
    table t;
    for (int k = 0; k < 8; k++)
        t.part[k] = _mm512_loadu_si512(entries + 32 * k);
    return t;
}

/* Look up 32 bytes, one per 16-bit lane. near: all are from -32 to 31, as most are in smooth
 * images: one lookup instead of four. */
static inline __m512i look_up_32(const table *t, __m512i bytes, bool near, __mmask32 bit6,
                                 __mmask32 bit7) {
    __m512i quarter[4];
    if (near)
        return _mm512_permutex2var_epi16(t->part[0], bytes, t->part[7]);
    for (int k = 0; k < 4; k++)
        quarter[k] = _mm512_permutex2var_epi16(t->part[2 * k], bytes, t->part[2 * k + 1]);
    return _mm512_mask_blend_epi16(bit7, _mm512_mask_blend_epi16(bit6, quarter[0], quarter[1]),
                                   _mm512_mask_blend_epi16(bit6, quarter[2], quarter[3]));
}

/* Write 32 literals per iteration. Vector operations concatenate groups of four, and scalar
 * operations concatenate the eight groups. */
static void put_vectors(gf_bit_writer *to, const gf_deflate_codes *codes, const unsigned char *src,
                        size_t n) {
    const table code = load_table(codes->byte_code), length = load_table(codes->byte_bits);
    const __m512i low16 = _mm512_set1_epi32(0xffff), low32 = _mm512_set1_epi64(0xffffffff);
    gf_bit_writer out = *to;
    for (size_t i = 0; i < n; i += 32) {
        const size_t rest = n - i < 32 ? n - i : 32;
        const __mmask32 valid = 0xffffffffu >> (32 - rest);
        const __m512i bytes =
            _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(valid, (const __m256i *)(src + i)));
        const __mmask32 bit6 = _mm512_test_epi16_mask(bytes, _mm512_set1_epi16(64));
        const __mmask32 bit7 = _mm512_test_epi16_mask(bytes, _mm512_set1_epi16(128));
        const __m512i shifted = _mm512_add_epi16(bytes, _mm512_set1_epi16(32));
        const bool near = !_mm512_test_epi16_mask(shifted, _mm512_set1_epi16(128 | 64));
        const __m512i c = _mm512_maskz_mov_epi16(valid, look_up_32(&code, bytes, near, bit6, bit7));
        const __m512i l =
            _mm512_maskz_mov_epi16(valid, look_up_32(&length, bytes, near, bit6, bit7));
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
            put_two(&out, (bit_string){bits[k], (unsigned)count[k]},
                    (bit_string){bits[k + 1], (unsigned)count[k + 1]});
    }
    *to = out;
}

#endif

static void deflate_put(gf_bit_writer *out, const gf_deflate_codes *codes, const unsigned char *src,
                        size_t n) {
#if VEC_FLOATS == 16
    if (n >= MIN_VECTOR_LITERALS) {
        put_vectors(out, codes, src, n);
        return;
    }
#endif
    const gf_deflate_codeword *codewords = codes->literal;
    gf_bit_writer to = *out;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const uint64_t v = gf_little64(src + i);
        put_two(&to, join4(codewords, v), join4(codewords, v >> 32));
    }
    for (; i < n; i++)
        gf_put_codeword(&to, codewords[src[i]]);
    *out = to;
}

const gf_deflate_simd GF_SIMD_NAME(gf_deflate_simd) = {count, find_run, find_pattern, deflate_put};
