/* The fast CPU implementation of smooth: bands in strips that stay in the cache.
 *
 * Rows and columns are the same work seen from two sides. A strip is a run of positions along the
 * signal, `lanes` floats each: for rows a position is a pixel and the lanes are its channels; for
 * columns a position is a row and the lanes are some neighbouring samples of it. Position p + 1
 * lies `lanes` floats after position p, so one loop over positions x lanes serves both axes and
 * every channel count. Alpha is computed along and then put back. */
#include "smooth/smooth.h"

#include "smooth/smooth_simd.h"

static const gf_smooth_simd *const simd_levels[GF_ISA_COUNT] = {
    [GF_ISA_PORTABLE] = &gf_smooth_simd_portable,
#ifdef GF_X86_64
    [GF_ISA_AVX2] = &gf_smooth_simd_avx2,
    [GF_ISA_AVX512] = &gf_smooth_simd_avx512,
#endif
};

#define ROW_STRIP_SAMPLES 2048    /* outputs of one strip of a row: its three buffers fit in L1 */
#define COLUMN_STRIP_FLOATS 32768 /* inputs of one strip of columns: 128 KiB, within L2 */
#define COLUMN_STRIP_MIN 64       /* samples; below, cache lines are wasted */
#define COLUMN_STRIP_MAX 1024
#define COLUMN_ROWS_MIN 64

static uint64_t reach(const gf_smooth_plan *plan) {
    return plan->radius + (plan->smooth ? 1 : 0);
}

static uint64_t min(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Outputs [s, e) of the tile [a, b): which positions of the enhanced and the blurred signal they
 * need. */
typedef struct gf_span {
    uint64_t a, b;           /* the tile */
    uint64_t s, e;           /* outputs */
    uint64_t blur_s, blur_e; /* blurred */
    uint64_t load_s, load_e; /* enhanced */
} gf_span;

static gf_span span_of(const gf_smooth_plan *plan, uint64_t length, uint64_t s, uint64_t e) {
    gf_span span = {.s = s};
    gf_smooth_tile(plan, s, length, &span.a, &span.b);
    span.e = min(e, span.b);
    uint64_t side = plan->smooth ? 1 : 0;
    span.blur_s = s - span.a < side ? span.a : s - side;
    span.blur_e = span.b - span.e < side ? span.b : span.e + side;
    span.load_s = span.blur_s - span.a < plan->radius ? span.a : span.blur_s - plan->radius;
    span.load_e = span.b - span.blur_e < plan->radius ? span.b : span.blur_e + plan->radius;
    return span;
}

/* blurred: positions [blur_s, blur_e) from enhanced positions [load_s, load_e). */
static void blur_span(const gf_smooth_plan *plan, const gf_smooth_simd *simd, const gf_span *span,
                      const float *loaded, float *blurred, size_t lanes) {
    const uint64_t r = plan->radius;
    /* Positions whose whole window lies in the tile go in one call. */
    uint64_t inner_s = span->blur_s, inner_e = span->blur_e;
    if (span->b - span->a > 2 * r) {
        if (inner_s < span->a + r)
            inner_s = min(span->a + r, span->blur_e);
        if (inner_e > span->b - r)
            inner_e = span->b - r > inner_s ? span->b - r : inner_s;
    } else {
        inner_s = inner_e = span->blur_e;
    }
    for (uint64_t p = span->blur_s; p < span->blur_e;) {
        uint64_t lo = p - span->a < r ? span->a : p - r;
        uint64_t count = p == inner_s && inner_e > inner_s ? inner_e - inner_s : 1;
        uint64_t hi = span->b - 1 - p < r ? span->b - 1 : p + r;
        simd->blur(blurred + (p - span->blur_s) * lanes, loaded + (lo - span->load_s) * lanes,
                   lanes, (unsigned)(hi - lo + 1), (size_t)count * lanes);
        p += count;
    }
}

/* smoothed: positions [s, e) from blurred positions [blur_s, blur_e). */
static void smooth_span(const gf_smooth_plan *plan, const gf_smooth_simd *simd, const gf_span *span,
                        const float *blurred, float *smoothed, size_t lanes) {
    for (uint64_t p = span->s; p < span->e;) {
        bool first = p == span->a, last = p == span->b - 1;
        uint64_t count = 1;
        if (!first && !last)
            count = min(span->e, span->b - 1) - p;
        const float *mid = blurred + (p - span->blur_s) * lanes;
        float factor = first && last ? 1 : first || last ? plan->end_factor : plan->inner_factor;
        simd->smooth(smoothed + (p - span->s) * lanes, first ? NULL : mid - lanes, mid,
                     last ? NULL : mid + lanes, (size_t)count * lanes, plan->weight, factor);
        p += count;
    }
}

/* The chain on a strip of enhanced positions; returns where positions [s, e) of the result are.
 * Both buffers hold the strip's positions and padding. */
static const float *chain(const gf_smooth_plan *plan, const gf_smooth_simd *simd,
                          const gf_span *span, const float *loaded, float *blurred, float *smoothed,
                          size_t lanes) {
    const float *result = loaded;
    if (plan->radius > 0) {
        blur_span(plan, simd, span, loaded, blurred, lanes);
        result = blurred;
    }
    if (plan->smooth) {
        smooth_span(plan, simd, span, result, smoothed, lanes);
        result = smoothed;
    }
    return result;
}

/* ---- buffers --------------------------------------------------------------------------------- */

typedef struct gf_buffers {
    float *loaded, *blurred, *smoothed;
} gf_buffers;

static size_t row_floats(const gf_smooth_plan *plan) {
    return ROW_STRIP_SAMPLES + (size_t)(2 * reach(plan) + 1) * GF_MAX_CHANNELS + GF_SMOOTH_PAD;
}

/* Rows of a strip of columns that are computed at a time: enough not to load mostly halo. */
static uint64_t column_rows(const gf_smooth_plan *plan) {
    uint64_t rows = 2 * reach(plan);
    return rows > COLUMN_ROWS_MIN ? rows : COLUMN_ROWS_MIN;
}

/* Pixels in a strip of columns. */
static uint64_t column_pixels(const gf_smooth_plan *plan) {
    uint64_t lanes = COLUMN_STRIP_FLOATS / (column_rows(plan) + 2 * reach(plan));
    if (lanes < COLUMN_STRIP_MIN)
        lanes = COLUMN_STRIP_MIN;
    if (lanes > COLUMN_STRIP_MAX)
        lanes = COLUMN_STRIP_MAX;
    return lanes / GF_MAX_CHANNELS;
}

static size_t column_floats(const gf_smooth_plan *plan) {
    uint64_t rows = column_rows(plan) + 2 * reach(plan);
    return (size_t)(rows * column_pixels(plan) * GF_MAX_CHANNELS) + GF_SMOOTH_PAD;
}

static float *take(float **scratch, size_t floats) {
    float *taken = *scratch;
    *scratch += (floats + 15) & ~(size_t)15; /* every buffer on a cache line */
    return taken;
}

static gf_buffers take_buffers(float **scratch, size_t floats) {
    gf_buffers buffers;
    buffers.loaded = take(scratch, floats);
    buffers.blurred = take(scratch, floats);
    buffers.smoothed = take(scratch, floats);
    return buffers;
}

size_t gf_smooth_cpu_scratch(const gf_plan *head) {
    const gf_smooth_plan *plan = (const gf_smooth_plan *)head;
    size_t floats = 3 * (row_floats(plan) + 15);
    if (plan->axis != GF_SMOOTH_X)
        floats += 3 * (column_floats(plan) + 15);
    return floats * sizeof(float);
}

/* ---- along rows ------------------------------------------------------------------------------ */

/* Outputs [s, span->e) of one row: as much as is in one tile and one strip. */
static const float *row_strip(const gf_smooth_plan *plan, const gf_smooth_simd *simd,
                              const unsigned char *row, uint64_t s, uint64_t e,
                              const gf_buffers *buffers, gf_span *span) {
    const gf_format *format = &plan->head.in;
    const size_t lanes = format->channels;
    *span = span_of(plan, format->width, s, min(e, s + ROW_STRIP_SAMPLES / lanes));
    simd->load[format->type](buffers->loaded,
                             row + span->load_s * lanes * gf_type_bytes(format->type),
                             (size_t)(span->load_e - span->load_s) * lanes, plan->gain);
    return chain(plan, simd, span, buffers->loaded, buffers->blurred, buffers->smoothed, lanes);
}

static void filter_rows(const gf_smooth_plan *plan, const gf_smooth_simd *simd, const gf_rows *in,
                        const gf_rows *out, uint32_t part, uint32_t parts, float *scratch) {
    const gf_format *format = &plan->head.in;
    const size_t pixel_bytes = format->channels * gf_type_bytes(format->type);
    gf_buffers buffers = take_buffers(&scratch, row_floats(plan));
    const uint64_t first = out->y0 + out->rows * part / parts;
    const uint64_t last = out->y0 + out->rows * (part + 1) / parts;
    for (uint64_t y = first; y < last; y++) {
        const unsigned char *src = gf_row(in, y);
        unsigned char *dst = gf_row(out, y);
        gf_span span;
        for (uint64_t s = 0; s < format->width; s = span.e) {
            const float *result = row_strip(plan, simd, src, s, format->width, &buffers, &span);
            simd->store[format->type](dst + s * pixel_bytes, result,
                                      (size_t)(span.e - s) * format->channels);
        }
        gf_restore_alpha(format, src, dst, format->width);
    }
}

/* ---- down columns ---------------------------------------------------------------------------- */

/* One row of a strip of columns, pixels [x0, x0 + pixels): enhanced, for xy after the x pass. */
static void load_strip_row(const gf_smooth_plan *plan, const gf_smooth_simd *simd,
                           const unsigned char *row, uint64_t x0, uint64_t pixels,
                           const gf_buffers *row_buffers, float *loaded) {
    const gf_format *format = &plan->head.in;
    const size_t channels = format->channels;
    if (plan->axis == GF_SMOOTH_Y) {
        simd->load[format->type](loaded, row + x0 * channels * gf_type_bytes(format->type),
                                 (size_t)pixels * channels, plan->gain);
        return;
    }
    gf_span span;
    for (uint64_t s = x0; s < x0 + pixels; s = span.e) {
        const float *result = row_strip(plan, simd, row, s, x0 + pixels, row_buffers, &span);
        simd->load[GF_F32](loaded + (s - x0) * channels, result, (size_t)(span.e - s) * channels,
                           plan->gain);
    }
}

static void filter_columns(const gf_smooth_plan *plan, const gf_smooth_simd *simd,
                           const gf_rows *in, const gf_rows *out, uint32_t part, uint32_t parts,
                           float *scratch) {
    const gf_format *format = &plan->head.in;
    const size_t channels = format->channels;
    const size_t pixel_bytes = channels * gf_type_bytes(format->type);
    const uint64_t strip = min(column_pixels(plan), (format->width - 1) / parts + 1);
    const uint64_t end = out->y0 + out->rows;
    gf_buffers row_buffers = take_buffers(&scratch, row_floats(plan));
    gf_buffers buffers = take_buffers(&scratch, column_floats(plan));
    for (uint64_t x0 = part * strip; x0 < format->width; x0 += parts * strip) {
        const uint64_t pixels = min(strip, format->width - x0);
        const size_t lanes = (size_t)pixels * channels;
        gf_span span;
        for (uint64_t s = out->y0; s < end; s = span.e) {
            span = span_of(plan, format->height, s, min(end, s + column_rows(plan)));
            for (uint64_t y = span.load_s; y < span.load_e; y++)
                load_strip_row(plan, simd, gf_row(in, y), x0, pixels, &row_buffers,
                               buffers.loaded + (y - span.load_s) * lanes);
            const float *result =
                chain(plan, simd, &span, buffers.loaded, buffers.blurred, buffers.smoothed, lanes);
            for (uint64_t y = s; y < span.e; y++) {
                unsigned char *dst = gf_row(out, y) + x0 * pixel_bytes;
                simd->store[format->type](dst, result + (y - s) * lanes, lanes);
                gf_restore_alpha(format, gf_row(in, y) + x0 * pixel_bytes, dst, pixels);
            }
        }
    }
}

void gf_smooth_cpu(const gf_plan *head, const gf_band *band, uint32_t part, uint32_t parts,
                   void *scratch, gf_isa isa) {
    const gf_smooth_plan *plan = (const gf_smooth_plan *)head;
    const gf_rows *in = &band->in, *out = &band->out;
    if (plan->axis == GF_SMOOTH_X)
        filter_rows(plan, simd_levels[isa], in, out, part, parts, scratch);
    else
        filter_columns(plan, simd_levels[isa], in, out, part, parts, scratch);
}
