/* CPU implementation of resize. The lanes of vectors are columns; along x, they are rows, which are
 * transposed. Along x, parts of a strip are rows; along y, they are columns. */
#include "core/convert.h"
#include "core/vec.h"
#include "resize/resize.h"
#include "samples.h"

enum {
    LANES = 16,                          /* rows that are computed together */
    MAX_LANES = LANES * GF_MAX_CHANNELS, /* and columns, along y */
    /* Input samples per row in scratch memory; output samples, and a vector, follow. */
    MAX_SAMPLES = GF_RESIZE_SCRATCH / LANES - LANES - MAX_LANES - 1
};

/* A strip, its tables, and the rows or columns of a part. */
typedef struct resize_work {
    const gf_resize_plan *plan;
    const gf_rows *in, *out;
    const gf_resize_span *spans;
    const void *taps;
    gf_range part;
    void *scratch; /* GF_RESIZE_SCRATCH samples */
} resize_work;

/* Vectors of sums. On narrow vectors, the compiler vectorizes loops over single sums better. */
#if VEC_FLOATS == 4
typedef int32_t vec_sum_u8;
typedef double vec_sum_u16;
typedef float vec_sum_f32;
#else
typedef vec_i32 vec_sum_u8;
typedef double vec_sum_u16 __attribute__((vector_size(4 * VEC_FLOATS)));
typedef vec vec_sum_f32;
#endif

/* Add a tap times the samples at v. */
static inline vec_sum_u8 resize_add_u8(vec_sum_u8 sum, int32_t tap, const uint8_t *v) {
#if VEC_FLOATS == 4
    return sum + tap * *v;
#elif VEC_FLOATS == 8
    return sum + tap * (vec_i32)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)v));
#else
    return sum + tap * (vec_i32)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)v));
#endif
}

static inline vec_sum_u16 resize_add_u16(vec_sum_u16 sum, double tap, const uint16_t *v) {
#if VEC_FLOATS == 4
    return sum + tap * *v;
#elif VEC_FLOATS == 8
    return sum + tap * _mm256_cvtepi32_pd(_mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)v)));
#else
    return sum +
           tap * _mm512_cvtepi32_pd(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)v)));
#endif
}

static inline vec_sum_f32 resize_add_f32(vec_sum_f32 sum, float tap, const float *v) {
#if VEC_FLOATS == 4
    return fmaf(tap, *v, sum);
#else
    return vec_fma(vec_set(tap), vec_load(v), sum);
#endif
}

/* Convert a sum to a sample: see gf_resize_form. */
static inline int32_t resize_round_u8(int32_t sum) {
    const int32_t v = (sum + (1 << (GF_RESIZE_FIXED_BITS - 1))) >> GF_RESIZE_FIXED_BITS;
    return v < 0 ? 0 : v < 255 ? v : 255;
}

static inline int32_t resize_round_u16(double sum) {
    const double v = sum * (1.0 / (double)(UINT64_C(1) << GF_RESIZE_WIDE_BITS)) + 0.5;
    return (int32_t)(v < 0 ? 0 : v < 65535 ? v : 65535);
}

static inline float resize_round_f32(float sum) {
    return sum == sum ? sum : gf_float_of_bits(0x7fc00000);
}

/* Copy n samples of up to LANES. */
GF_INLINE void resize_copy(void *to, const void *from, size_t n, const size_t bytes) {
    if (n >= LANES) /* a constant */
        memcpy(to, from, LANES * bytes);
    else
        memcpy(to, from, n * bytes);
}

typedef int32_t sum_u8;
#define TYPE u8
#include "resize/resize_tmpl.h"
typedef double sum_u16;
#define TYPE u16
#include "resize/resize_tmpl.h"
typedef float sum_f32;
#define TYPE f32
#include "resize/resize_tmpl.h"

/* Return the first row or column of a part, of `count`. A part has none, or at least `unit`. */
static uint64_t resize_share(uint64_t count, uint64_t unit, uint32_t part, uint32_t parts) {
    const uint64_t units = gf_max(count / unit, 1), before = gf_share(units, part, parts);
    return before < units ? before * unit : count;
}

void GF_SIMD_NAME(gf_resize_cpu)(const gf_plan *head, const gf_strip *strip, uint32_t part,
                                 uint32_t parts, void *scratch) {
    static void (*const functions[][2])(const resize_work *) = {
        {resize_along_u8, resize_down_u8},
        {resize_along_u16, resize_down_u16},
        {resize_along_f32, resize_down_f32}};
    const gf_resize_plan *plan = (const gf_resize_plan *)head;
    const gf_rows *out = &strip->out;
    const uint64_t first = plan->down ? 0 : out->y0;
    const uint64_t count = plan->down ? gf_row_samples(&head->out) : out->rows;
    const uint64_t unit = plan->down ? MAX_LANES : LANES;
    const gf_range share = {first + resize_share(count, unit, part, parts),
                            first + resize_share(count, unit, part + 1, parts)};
    if (plan->down && count < MAX_LANES) { /* too narrow: one part has all columns */
        if (share.first < share.end)
            (void)gf_resize_golden(head, strip, NULL);
        return;
    }
    functions[head->in.type][plan->down](&(resize_work){plan, &strip->in[0], out, strip->constants,
                                                        gf_resize_taps(plan, strip->constants),
                                                        share, scratch});
}
