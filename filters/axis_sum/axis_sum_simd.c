/* Fast CPU implementation of axis-sum. Threads share the rows, or the columns in tiles whose sums
 * stay in the cache.
 * Corresponding lanes are a whole number of pixels and of vectors apart. */
#include "axis_sum/axis_sum.h"
#include "core/vec.h"
#include "samples.h"

/* A multiple of the bytes of a pixel and of a vector, for every format and SIMD level. */
#define PERIOD_BYTES 192
#define PERIOD_VECTORS (PERIOD_BYTES / (4 * VEC_FLOATS))

/* Samples per tile of columns; of f32, 64-bit sums and several rows share the cache. */
enum { TILE = 4096, TILE_F32 = 1024 };

/* Lanes with equal indices modulo this value belong to one channel, for every channel count. */
#define FOLDED 48

static void sum_lanes(const uint32_t *lanes, size_t n, uint32_t channels, uint64_t *sums) {
    uint64_t folded[FOLDED] = {0};
    for (size_t i = 0; i < n; i += FOLDED)
        for (size_t j = 0; j < FOLDED; j++)
            folded[j] += lanes[i + j];
    for (uint32_t c = 0; c < channels; c++)
        for (size_t j = c; j < FOLDED; j += channels)
            sums[c] += folded[j];
}

/* The loops prefetch: the hardware prefetcher reacts too late to short runs at many addresses and
 * to the start of each row. A prefetch past the last row is harmless. */
#define LINE_BYTES 64
#define PREFETCH_BYTES 3072

#define TYPE u8
#include "axis_sum/axis_sum_tmpl.h"
#define TYPE u16
#include "axis_sum/axis_sum_tmpl.h"

/* ---- rows of f32 ----------------------------------------------------------------------------- */

/* Periods added in one pass over the lanes. Each lane still adds its samples in order. */
#define UNROLL 4

#define LINE (LINE_BYTES / sizeof(float))

static void sum_row_f32(const float *restrict row, size_t n, uint32_t channels, double *sums,
                        double *restrict lanes) {
    const size_t period = (size_t)GF_LANES * channels;
    for (size_t j = 0; j < period; j++)
        lanes[j] = 0;
    for (; n >= UNROLL * period; row += UNROLL * period, n -= UNROLL * period)
        for (size_t j = 0; j < period; j += LINE) {
            for (size_t k = UNROLL; k < 2 * UNROLL; k++)
                __builtin_prefetch(row + k * period + j);
            for (size_t l = j; l < j + LINE; l++)
                for (size_t k = 0; k < UNROLL; k++)
                    lanes[l] += (double)row[k * period + l];
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

/* Add eight rows at a time, and of these one cache line of each at a time. */
static void sum_down_f32(double *sums, const unsigned char *rows, size_t stride, uint64_t count,
                         size_t n) {
    for (; count >= 8; count -= 8, rows += 8 * stride) {
        size_t i = 0;
        for (; n - i >= LINE; i += LINE) {
            for (size_t r = 8; r < 16; r++)
                __builtin_prefetch(rows + r * stride + i * sizeof(float));
            sum_down_rows_f32(sums + i, rows + i * sizeof(float), stride, 8, LINE);
        }
        sum_down_rows_f32(sums + i, rows + i * sizeof(float), stride, 8, n - i);
    }
    for (; count > 0; count--, rows += stride)
        sum_down_rows_f32(sums, rows, stride, 1, n);
}

/* ---- one part of a strip --------------------------------------------------------------------- */

void GF_SIMD_NAME(gf_axis_sum_cpu)(const gf_plan *head, const gf_strip *strip, uint32_t part,
                                   uint32_t parts, void *scratch) {
    const bool columns = ((const gf_axis_sum_plan *)head)->columns;
    const gf_type type = head->in.type;
    const uint64_t y0 = strip->out.y0, rows = strip->out.rows, n = gf_row_samples(&head->in);
    const uint32_t channels = head->in.channels;
    const size_t stride = strip->in[0].stride;
    /* Columns: add all rows in ascending order, tile by tile. */
    const uint64_t last = gf_share(n, part + 1, parts), tile = type == GF_F32 ? TILE_F32 : TILE;
    for (uint64_t i = gf_share(n, part, parts); columns && i < last; i += tile) {
        const unsigned char *first = gf_row(&strip->in[0], y0) + i * gf_type_bytes(type);
        const size_t count = (size_t)(last - i < tile ? last - i : tile);
        uint64_t *sums = (uint64_t *)strip->state + i; /* double for f32 */
        if (type == GF_U8)
            sum_down_u8(sums, first, stride, rows, count);
        else if (type == GF_U16)
            sum_down_u16(sums, first, stride, rows, count);
        else
            sum_down_f32((double *)strip->state + i, first, stride, rows, count);
    }
    const uint64_t end = y0 + gf_share(rows, part + 1, parts);
    for (uint64_t y = y0 + gf_share(rows, part, parts); !columns && y < end; y++) {
        union {
            uint64_t integer[GF_MAX_CHANNELS];
            double real[GF_MAX_CHANNELS];
        } sums; /* of all channels; measured channels come first */
        const void *row = gf_row(&strip->in[0], y);
        if (type == GF_U8)
            sum_row_u8(row, (size_t)n, channels, sums.integer);
        else if (type == GF_U16)
            sum_row_u16(row, (size_t)n, channels, sums.integer);
        else
            sum_row_f32(row, (size_t)n, channels, sums.real, scratch);
        memcpy(gf_record(head, strip, y), &sums, head->record);
    }
}
