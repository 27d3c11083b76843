/* Loops of order statistics, compiled once per SIMD level. */
#include "core/vec.h"
#include "percentile/networks.h"
#include "percentile/percentile_cpu.h"

typedef uint8_t key_u8;
typedef uint16_t key_u16;
typedef int32_t key_f32;

#define key_of_u8(x) (x)
#define key_of_u16(x) (x)
#define sample_of_u8(x) (x)
#define sample_of_u16(x) (x)
#define sample_of_f32 gf_percentile_order
#define key_unsigned_u8(x) (x)
#define key_unsigned_u16(x) (x)
#define key_signed_u8(x) (x)
#define key_signed_u16(x) (x)

static inline int32_t key_of_f32(int32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x == x ? gf_percentile_order(bits) : 0x7fc00000;
}

/* Convert to an unsigned integer of the same order, and back. */
static inline uint32_t key_unsigned_f32(int32_t key) {
    return (uint32_t)key ^ 0x80000000;
}

static inline int32_t key_signed_f32(uint32_t key) {
    return (int32_t)(key ^ 0x80000000);
}

/* ---- SELECT ---------------------------------------------------------------------------------- */

/* Sort items by a byte of their keys; items with the same byte keep their order. */
static void select_pass(gf_percentile_item *restrict to, const gf_percentile_item *restrict from,
                        uint32_t n, uint32_t shift) {
    uint32_t starts[256] = {0}, sum = 0;
    for (uint32_t i = 0; i < n; i++)
        starts[from[i].key >> shift & 255]++;
    for (uint32_t i = 0; i < 256; i++) {
        const uint32_t count = starts[i];
        starts[i] = sum;
        sum += count;
    }
    for (uint32_t i = 0; i < n; i++)
        to[starts[from[i].key >> shift & 255]++] = from[i];
}

typedef uint8_t select_bytes __attribute__((vector_size(16)));
typedef uint16_t select_words __attribute__((vector_size(32)));
typedef int16_t select_signed __attribute__((vector_size(32)));

GF_INLINE select_bytes select_load(const uint8_t *counts) {
    select_bytes x;
    memcpy(&x, counts, sizeof x);
    return x;
}

/* Add a sample to 16 sums, from position `from` on, and subtract one from position `to` on. */
GF_INLINE void select_move(uint8_t *sums, select_bytes from, select_bytes to) {
    const select_bytes x = select_load(sums) + from - to;
    memcpy(sums, &x, sizeof x);
}

/* Count the samples of row y in their columns, instead of those that leave them. */
static void select_slide(const gf_percentile_tile *tile, uint32_t y, uint32_t height) {
    const uint8_t *in = tile->group + y * tile->width;
    gf_percentile_column *column = tile->columns;
    select_bytes steps[16] = {{0}};
    const select_bytes none = {0};
    for (int from = 0; from < 16; from++)
        for (int i = from; i < 16; i++)
            steps[from][i] = 1;
    for (uint32_t x = 0; x < tile->width; x++, column++) {
        const uint32_t add = in[x];
        if (y < height) {
            select_move(column->classes, steps[add / 16], none);
            select_move(column->groups[add / 16], steps[add % 16], none);
            continue;
        }
        const uint32_t subtract = in[(ptrdiff_t)x - (ptrdiff_t)(height * tile->width)];
        select_move(column->classes, steps[add / 16], steps[subtract / 16]);
        select_move(column->groups[add / 16], steps[add % 16], none);
        select_move(column->groups[subtract / 16], none, steps[subtract % 16]);
    }
}

/* Return the number of sums that are at most n. They ascend. */
GF_INLINE uint32_t select_below(const select_words *sums, uint32_t n) {
    const select_signed above = (select_signed)*sums > (int16_t)n;
#if VEC_FLOATS >= 8
    return 16 - (uint32_t)_mm_popcnt_u32((uint32_t)_mm256_movemask_epi8((__m256i)above)) / 2;
#else
    int count = 16;
    for (int i = 0; i < 16; i++)
        count += above[i];
    return (uint32_t)count;
#endif
}

/* Sums of a window at one position: of the samples in the first classes, and in the first groups of
 * each class. Those of a class are updated when a result is in it. */
typedef struct select_sums {
    select_words classes, groups[16];
    uint32_t valid[16]; /* position of groups[i], from 1; 0: none yet */
} select_sums;

/* Add the sums of a column (sign 1), or subtract them (-1). */
GF_INLINE void select_add(select_words *sums, const uint8_t *column, const int sign) {
#if VEC_FLOATS >= 8 /* the conversion below would take four instructions */
    const select_words wide = (select_words)_mm256_cvtepu8_epi16((__m128i)select_load(column));
#else
    const select_words wide = __builtin_convertvector(select_load(column), select_words);
#endif
    *sums = sign > 0 ? *sums + wide : *sums - wide;
}

/* Update the sums of a class for the window of `width` columns that begins at `left`. */
GF_INLINE void select_update(select_sums *sums, uint32_t class, const gf_percentile_column *columns,
                             uint32_t left, uint32_t width) {
    select_words groups = sums->groups[class];
    uint32_t at = sums->valid[class];
    if (at == 0 || left + 1 - at >= width) {
        groups = (select_words){0};
        for (uint32_t x = left; x < left + width; x++)
            select_add(&groups, columns[x].groups[class], 1);
    } else {
        for (at--; at < left; at++) {
            select_add(&groups, columns[at + width].groups[class], 1);
            select_add(&groups, columns[at].groups[class], -1);
        }
    }
    sums->groups[class] = groups;
    sums->valid[class] = left + 1;
}

/* Return sum i - 1; 0 for i = 0. */
GF_INLINE uint32_t select_before(const select_words *sums, uint32_t i) {
    return i ? ((const uint16_t *)sums)[i - 1] : 0;
}

/* Return the group of a result, and set *n to its index among the samples of this group. */
GF_INLINE uint32_t select_group(const gf_percentile_tile *tile, select_sums *sums, uint32_t left,
                                uint32_t width, uint32_t *n) {
    *n = tile->index;
    const uint32_t class = select_below(&sums->classes, *n);
    *n -= select_before(&sums->classes, class);
    select_update(sums, class, tile->columns, left, width);
    const uint32_t group = select_below(&sums->groups[class], *n);
    *n -= select_before(&sums->groups[class], group);
    return 16 * class + group;
}

/* A window: its first sample, and its size - 1. */
typedef struct select_window {
    uint32_t left, top, width, height;
} select_window;

/* Return the mask of the samples from `rank` on, at most 64, that are in a window. */
GF_INLINE uint64_t select_inside(const gf_percentile_tile *tile, uint32_t rank,
                                 const select_window *window) {
    const uint8_t *x = tile->x + rank, *y = tile->y + rank;
    uint64_t mask = 0;
#if VEC_FLOATS >= 8
    const vec_bits left = VEC_OP(set1_epi8)((char)window->left);
    const vec_bits top = VEC_OP(set1_epi8)((char)window->top);
    const vec_bits width = VEC_OP(set1_epi8)((char)window->width);
    const vec_bits height = VEC_OP(set1_epi8)((char)window->height);
#endif
#if VEC_FLOATS == 16
    const __m512i dx = _mm512_sub_epi8(vec_load_bits(x), left);
    const __m512i dy = _mm512_sub_epi8(vec_load_bits(y), top);
    mask = _mm512_mask_cmple_epu8_mask(_mm512_cmple_epu8_mask(dx, width), dy, height);
#elif VEC_FLOATS == 8
    for (int i = 0; i < GF_PERCENTILE_PAD; i += 32) {
        const __m256i dx = _mm256_sub_epi8(vec_load_bits(x + i), left);
        const __m256i dy = _mm256_sub_epi8(vec_load_bits(y + i), top);
        const __m256i inside = _mm256_and_si256(_mm256_cmpeq_epi8(dx, _mm256_min_epu8(dx, width)),
                                                _mm256_cmpeq_epi8(dy, _mm256_min_epu8(dy, height)));
        mask |= (uint64_t)(uint32_t)_mm256_movemask_epi8(inside) << i;
    }
#elif defined(GF_NEON)
    uint8x16_t inside[4];
    for (int i = 0; i < 4; i++)
        inside[i] =
            vandq_u8(vcleq_u8(vsubq_u8(vld1q_u8(x + 16 * i), vdupq_n_u8((uint8_t)window->left)),
                              vdupq_n_u8((uint8_t)window->width)),
                     vcleq_u8(vsubq_u8(vld1q_u8(y + 16 * i), vdupq_n_u8((uint8_t)window->top)),
                              vdupq_n_u8((uint8_t)window->height)));
    mask = vec_mask64(inside);
#else
    uint8_t inside[GF_PERCENTILE_PAD];
    for (int i = 0; i < GF_PERCENTILE_PAD; i++)
        inside[i] = (uint8_t)(x[i] - window->left) <= window->width &&
                    (uint8_t)(y[i] - window->top) <= window->height;
    for (int i = 0; i < GF_PERCENTILE_PAD; i += 8) {
        uint64_t bytes;
        memcpy(&bytes, inside + i, sizeof bytes);
        bytes = gf_host_is_little() ? bytes : __builtin_bswap64(bytes);
        mask |= (bytes * UINT64_C(0x0102040810204080) >> 56) << i; /* gathers the lowest bits */
    }
#endif
    return mask;
}

/* Return the position of bit n, from 0, of those that are set. */
GF_INLINE uint32_t select_bit(uint64_t mask, uint32_t n) {
#if VEC_FLOATS >= 8
    return (uint32_t)__builtin_ctzll(_pdep_u64(UINT64_C(1) << n, mask));
#else
    for (; n > 0; n--)
        mask &= mask - 1;
    return (uint32_t)__builtin_ctzll(mask);
#endif
}

/* Return the rank of sample n of a group in a window. */
GF_INLINE uint32_t select_rank(const gf_percentile_tile *tile, uint32_t group, uint32_t n,
                               const select_window *window) {
    for (uint32_t rank = group * tile->size;; rank += GF_PERCENTILE_PAD) {
        const uint64_t mask = select_inside(tile, rank, window);
        const uint32_t found = (uint32_t)__builtin_popcountll(mask);
        if (n < found)
            return rank + select_bit(mask, n);
        n -= found;
    }
}

#define TYPE u8
#include "percentile/percentile_tmpl.h"
#define TYPE u16
#include "percentile/percentile_tmpl.h"
#define TYPE f32
#include "percentile/percentile_tmpl.h"

static const gf_percentile_loops level[] = {
    {load_u8, store_u8, columns_u8, medians_u8, extremes_u8, extremes_4_u8, pick_u8, place_u8,
     select_u8},
    {load_u16, store_u16, columns_u16, medians_u16, extremes_u16, extremes_4_u16, pick_u16,
     place_u16, select_u16},
    {load_f32, store_f32, columns_f32, medians_f32, extremes_f32, extremes_4_f32, pick_f32,
     place_f32, select_f32},
};

void GF_SIMD_NAME(gf_percentile_cpu)(const gf_plan *plan, const gf_strip *strip, uint32_t part,
                                     uint32_t parts, void *scratch) {
    gf_percentile_compute(level, plan, strip, part, parts, scratch);
}
