/* Fast CPU implementation of axis-sum. Threads share the rows, or the columns in tiles whose sums
 * stay in the cache.
 *
 * Integer samples are added in lanes of twice their width. A mask and a shift separate samples at
 * even and odd indices. Before a lane can overflow, the lanes are added to wider sums.
 * Corresponding lanes are a whole number of pixels and of vectors apart. */
#include "axis_sum/axis_sum.h"
#include "core/vec.h"
#include "samples.h"

typedef uint32_t vec_longs __attribute__((vector_size(4 * VEC_FLOATS)));

/* A multiple of the bytes of a pixel and of a vector, for every format and SIMD level. */
#define PERIOD_BYTES 192
#define PERIOD_VECTORS (PERIOD_BYTES / (4 * VEC_FLOATS))

#define TILE 4096 /* samples per tile of columns */

/* Lanes with equal indices modulo this value belong to one channel, for every channel count. */
#define FOLDED 48

static inline vec_longs sum_load_longs(const void *p) {
    vec_longs x;
    memcpy(&x, p, sizeof x);
    return x;
}

static void sum_lanes(const uint32_t *lanes, size_t n, uint32_t channels, uint64_t *sums) {
    uint64_t folded[FOLDED] = {0};
    for (size_t i = 0; i < n; i += FOLDED)
        for (size_t j = 0; j < FOLDED; j++)
            folded[j] += lanes[i + j];
    for (uint32_t c = 0; c < channels; c++)
        for (size_t j = c; j < FOLDED; j += channels)
            sums[c] += folded[j];
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* sum_row_TYPE: sum each channel of n interleaved samples. n is a multiple of channels. */

/* The loops prefetch: the hardware prefetcher reacts too late to short runs at many addresses and
 * to the start of each row. A prefetch past the last row is harmless. */
#define LINE_BYTES 64
#define PREFETCH_BYTES 3072

/* Add `periods` periods to their lanes. The sums must fit in WIDE. */
#define ADD_PERIODS(NAME, TYPE, WIDE, VEC, LOAD, BITS)                                             \
    static inline void NAME(const TYPE *row, size_t periods, uint32_t *lanes) {                    \
        VEC even[PERIOD_VECTORS] = {{0}}, odd[PERIOD_VECTORS] = {{0}};                             \
        for (size_t t = 0; t < periods; t++, row += PERIOD_BYTES / sizeof(TYPE)) {                 \
            for (size_t l = 0; l < PERIOD_BYTES; l += LINE_BYTES)                                  \
                __builtin_prefetch((const unsigned char *)row + PREFETCH_BYTES + l);               \
            _Pragma("GCC unroll 12") for (size_t v = 0; v < PERIOD_VECTORS; v++) {                 \
                const VEC x = LOAD((const unsigned char *)row + v * sizeof(VEC));                  \
                even[v] += x & (WIDE)(((WIDE)1 << (BITS)) - 1);                                    \
                odd[v] += x >> (BITS);                                                             \
            }                                                                                      \
        }                                                                                          \
        WIDE all[2][PERIOD_BYTES / sizeof(WIDE)];                                                  \
        memcpy(all[0], even, sizeof even);                                                         \
        memcpy(all[1], odd, sizeof odd);                                                           \
        for (size_t j = 0; j < PERIOD_BYTES / sizeof(WIDE); j++) {                                 \
            lanes[2 * j] += all[0][j];                                                             \
            lanes[2 * j + 1] += all[1][j];                                                         \
        }                                                                                          \
    }

ADD_PERIODS(sum_periods_u8, uint8_t, uint16_t, vec_words, vec_load_words, 8)
ADD_PERIODS(sum_periods_u16, uint16_t, uint32_t, vec_longs, sum_load_longs, 16)

/* The sums of PERIODS periods fit in the wide lanes: 257 * 255 = 65535. FLUSH times PERIODS periods
 * plus a partial period fit in the 32-bit lanes: 65537 * 65535 = 2^32 - 1. */
#define ROW_SUM(NAME, TYPE, ADD, PERIODS, FLUSH)                                                   \
    static void NAME(const void *samples, size_t n, uint32_t channels, void *record,               \
                     double *scratch) {                                                            \
        const size_t period = PERIOD_BYTES / sizeof(TYPE);                                         \
        const TYPE *row = samples;                                                                 \
        uint64_t *sums = record;                                                                   \
        (void)scratch;                                                                             \
        memset(sums, 0, channels * sizeof *sums);                                                  \
        do {                                                                                       \
            uint32_t lanes[PERIOD_BYTES / sizeof(TYPE)] = {0};                                     \
            for (size_t k = 0; k < (FLUSH) && n >= period; k++) {                                  \
                const size_t periods = n / period < (PERIODS) ? n / period : (PERIODS);            \
                ADD(row, periods, lanes);                                                          \
                row += periods * period;                                                           \
                n -= periods * period;                                                             \
            }                                                                                      \
            if (n < period) {                                                                      \
                for (size_t j = 0; j < n; j++)                                                     \
                    lanes[j] += row[j];                                                            \
                n = 0;                                                                             \
            }                                                                                      \
            sum_lanes(lanes, period, channels, sums);                                              \
        } while (n > 0);                                                                           \
    }

ROW_SUM(sum_row_u8, uint8_t, sum_periods_u8, 257, 65536)
ROW_SUM(sum_row_u16, uint16_t, sum_periods_u16, 65536, 1)

/* Periods added in one pass over the lanes. Each lane still adds its samples in order. */
#define UNROLL 4

#define LINE (LINE_BYTES / sizeof(float))

static inline void sum_line(const float *restrict row, size_t period, double *restrict lanes) {
    for (size_t j = 0; j < LINE; j++) {
        double lane = lanes[j];
        for (size_t k = 0; k < UNROLL; k++)
            lane += (double)row[k * period + j];
        lanes[j] = lane;
    }
}

static void sum_row_f32(const void *samples, size_t n, uint32_t channels, void *record,
                        double *lanes) {
    const float *row = samples;
    double *sums = record;
    const size_t period = (size_t)GF_LANES * channels;
    for (size_t j = 0; j < period; j++)
        lanes[j] = 0;
    for (; n >= UNROLL * period; row += UNROLL * period, n -= UNROLL * period)
        for (size_t j = 0; j < period; j += LINE) {
            for (size_t k = UNROLL; k < 2 * UNROLL; k++)
                __builtin_prefetch(row + k * period + j);
            sum_line(row + j, period, lanes + j);
        }
    for (; n >= period; row += period, n -= period)
        for (size_t j = 0; j < period; j++)
            lanes[j] += (double)row[j];
    for (size_t j = 0; j < n; j++)
        lanes[j] += (double)row[j];
    for (size_t stride = GF_LANES / 2; stride > 0; stride /= 2)
        for (size_t j = 0; j < stride * channels; j++)
            lanes[j] += lanes[j + stride * channels];
    for (uint32_t c = 0; c < channels; c++)
        sums[c] = gf_canonical_double(lanes[c]);
}

/* ---- columns --------------------------------------------------------------------------------- */

/* Add `count` rows to `vectors` wide lanes. count is a compile-time constant. */
#define ADD_ROWS(NAME, WIDE, VEC, LOAD, BITS)                                                      \
    GF_INLINE void NAME(const unsigned char *rows, size_t stride, const size_t count,              \
                        size_t vectors, VEC *even, VEC *odd) {                                     \
        for (size_t v = 0; v < vectors; v++) {                                                     \
            VEC low = even[v], high = odd[v];                                                      \
            for (size_t r = 0; r < count; r++) {                                                   \
                if (v * sizeof(VEC) % LINE_BYTES == 0)                                             \
                    __builtin_prefetch(rows + (count + r) * stride + v * sizeof(VEC));             \
                const VEC x = LOAD(rows + r * stride + v * sizeof(VEC));                           \
                low += x & (WIDE)(((WIDE)1 << (BITS)) - 1);                                        \
                high += x >> (BITS);                                                               \
            }                                                                                      \
            even[v] = low;                                                                         \
            odd[v] = high;                                                                         \
        }                                                                                          \
    }

ADD_ROWS(sum_down_rows_u8, uint16_t, vec_words, vec_load_words, 8)
ADD_ROWS(sum_down_rows_u16, uint32_t, vec_longs, sum_load_longs, 16)

/* Add rows to the wide lanes until these could overflow, then add the lanes to the sums. Samples
 * after the last whole vector are added to the sums directly. */
#define ADD(NAME, TYPE, WIDE, VEC, ROWS, MAX)                                                      \
    static void NAME(void *to, const unsigned char *rows, size_t stride, uint64_t count,           \
                     size_t n) {                                                                   \
        uint64_t *sums = to;                                                                       \
        const size_t vectors = n * sizeof(TYPE) / sizeof(VEC);                                     \
        const size_t whole = vectors * sizeof(VEC) / sizeof(TYPE);                                 \
        for (uint64_t r = 0; r < count && whole < n; r++)                                          \
            for (size_t i = whole; i < n; i++) {                                                   \
                TYPE x;                                                                            \
                memcpy(&x, rows + r * stride + i * sizeof x, sizeof x);                            \
                sums[i] += x;                                                                      \
            }                                                                                      \
        while (count > 0 && vectors > 0) {                                                         \
            VEC even[TILE * sizeof(TYPE) / sizeof(VEC)];                                           \
            VEC odd[TILE * sizeof(TYPE) / sizeof(VEC)];                                            \
            memset(even, 0, vectors * sizeof *even);                                               \
            memset(odd, 0, vectors * sizeof *odd);                                                 \
            const uint64_t chunk = count < (MAX) ? count : (MAX);                                  \
            uint64_t r = 0;                                                                        \
            for (; chunk - r >= 4; r += 4)                                                         \
                ROWS(rows + r * stride, stride, 4, vectors, even, odd);                            \
            for (; r < chunk; r++)                                                                 \
                ROWS(rows + r * stride, stride, 1, vectors, even, odd);                            \
            const WIDE *evens = (const WIDE *)even, *odds = (const WIDE *)odd;                     \
            for (size_t i = 0; i < whole / 2; i++) {                                               \
                sums[2 * i] += evens[i];                                                           \
                sums[2 * i + 1] += odds[i];                                                        \
            }                                                                                      \
            rows += chunk * stride;                                                                \
            count -= chunk;                                                                        \
        }                                                                                          \
    }

ADD(sum_down_u8, uint8_t, uint16_t, vec_words, sum_down_rows_u8, 257u)
ADD(sum_down_u16, uint16_t, uint32_t, vec_longs, sum_down_rows_u16, 65537u)

/* NaN propagates through the additions: one canonicalisation at the end is enough. */
GF_INLINE void sum_down_rows_f32(double *restrict sums, const unsigned char *rows, size_t stride,
                                 const size_t count, size_t n) {
    const float *row[8];
    for (size_t r = 0; r < count; r++)
        row[r] = (const float *)(const void *)(rows + r * stride);
    for (size_t i = 0; i < n; i++) {
        double sum = sums[i];
        for (size_t r = 0; r < count; r++)
            sum += (double)row[r][i];
        sums[i] = gf_canonical_double(sum);
    }
}

/* Add eight rows, one cache line of each at a time. */
static void sum_down_eight_f32(double *sums, const unsigned char *rows, size_t stride, size_t n) {
    size_t i = 0;
    for (; n - i >= LINE; i += LINE) {
        for (size_t r = 8; r < 16; r++)
            __builtin_prefetch(rows + r * stride + i * sizeof(float));
        sum_down_rows_f32(sums + i, rows + i * sizeof(float), stride, 8, LINE);
    }
    sum_down_rows_f32(sums + i, rows + i * sizeof(float), stride, 8, n - i);
}

/* Samples per tile of f32 columns: 64-bit sums and several rows share the cache. */
#define TILE_F32 1024

static void sum_down_f32(void *to, const unsigned char *rows, size_t stride, uint64_t count,
                         size_t n) {
    for (size_t i = 0; i < n; i += TILE_F32) {
        double *sums = (double *)to + i;
        const unsigned char *first = rows + i * sizeof(float);
        const size_t chunk = n - i < TILE_F32 ? n - i : TILE_F32;
        uint64_t r = 0;
        for (; count - r >= 8; r += 8)
            sum_down_eight_f32(sums, first + r * stride, stride, chunk);
        for (; r < count; r++)
            sum_down_rows_f32(sums, first + r * stride, stride, 1, chunk);
    }
}

static void (*const axis_sum_row[])(const void *row, size_t n, uint32_t channels, void *sums,
                                    double *lanes) = {
    [GF_U8] = sum_row_u8, [GF_U16] = sum_row_u16, [GF_F32] = sum_row_f32};

/* Add sample i < n of each row to sums[i], rows in ascending order and `stride` bytes apart. Sums
 * are uint64_t for integer samples and double for f32. */
static void (*const axis_sum_down[])(void *sums, const unsigned char *rows, size_t stride,
                                     uint64_t count, size_t n) = {
    [GF_U8] = sum_down_u8, [GF_U16] = sum_down_u16, [GF_F32] = sum_down_f32};

/* ---- one part of a strip --------------------------------------------------------------------- */

/* Add samples [begin, end) of all rows of the strip to the column sums. */
static void axis_sum_columns(const gf_axis_sum_plan *plan, const gf_strip *strip, uint64_t begin,
                             uint64_t end) {
    const gf_type type = plan->head.in.type;
    const unsigned char *rows = gf_row(&strip->in, strip->out.y0);
    for (uint64_t i = begin; i < end; i += TILE)
        axis_sum_down[type]((uint64_t *)strip->state + i, rows + i * gf_type_bytes(type),
                            strip->in.stride, strip->out.rows,
                            (size_t)(end - i < TILE ? end - i : TILE));
}

void GF_SIMD_NAME(gf_axis_sum_cpu)(const gf_plan *head, const gf_strip *strip, uint32_t part,
                                   uint32_t parts, void *scratch) {
    const gf_axis_sum_plan *plan = (const gf_axis_sum_plan *)head;
    const uint64_t y0 = strip->out.y0, rows = strip->out.rows, n = gf_row_samples(&head->in);
    if (plan->columns) {
        axis_sum_columns(plan, strip, gf_share(n, part, parts), gf_share(n, part + 1, parts));
        return;
    }
    const uint64_t end = y0 + gf_share(rows, part + 1, parts);
    for (uint64_t y = y0 + gf_share(rows, part, parts); y < end; y++) {
        union {
            uint64_t integer[GF_MAX_CHANNELS];
            double real[GF_MAX_CHANNELS];
        } sums; /* of all channels; measured channels come first */
        axis_sum_row[head->in.type](gf_row(&strip->in, y), (size_t)n, head->in.channels, &sums,
                                    scratch);
        memcpy(gf_record(head, &strip->out, y), &sums, head->record);
    }
}
