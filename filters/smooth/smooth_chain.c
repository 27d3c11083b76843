#include "smooth/smooth_chain.h"

static const gf_smooth_simd *const simd_levels[GF_ISA_COUNT] = {
    [GF_ISA_PORTABLE] = &gf_smooth_simd_portable,
#ifdef GF_X86_64
    [GF_ISA_AVX2] = &gf_smooth_simd_avx2,
    [GF_ISA_AVX512] = &gf_smooth_simd_avx512,
#endif
};

#define ROW_STRIP_SAMPLES 1536    /* outputs of one strip of a row: its two buffers fit in L1 */
#define COLUMN_STRIP_FLOATS 32768 /* inputs of one strip of columns: 128 KiB, within L2 */
#define COLUMN_STRIP_MIN 64       /* samples; below, cache lines are wasted */
#define COLUMN_STRIP_MAX 1024
#define COLUMN_ROWS_MIN 64
#define LINE_FLOATS 16

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
static void blur_span(const gf_smooth_chain *chain, const gf_span *span,
                      const struct gf_smooth_buffers *buffers, size_t lanes, gf_smooth_soon soon) {
    const uint64_t r = chain->plan->radius;
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
        chain->simd->blur(buffers->blurred + (p - span->blur_s) * lanes,
                          buffers->loaded + (lo - span->load_s) * lanes, lanes,
                          (unsigned)(hi - lo + 1), (size_t)count * lanes, soon);
        p += count;
    }
}

static const gf_smooth_soon nothing = {0};

/* Where the outputs of a strip go: position s and those after it. */
typedef struct gf_target {
    unsigned char *dst;
    size_t step; /* bytes from one position to the next */
    gf_type type;
} gf_target;

/* Positions [s, e) from blurred positions [blur_s, blur_e). */
static void finish_span(const gf_smooth_chain *chain, const gf_span *span, const float *blurred,
                        size_t lanes, gf_target to) {
    const gf_smooth_plan *plan = chain->plan;
    const bool gapless = to.step == lanes * gf_type_bytes(to.type);
    for (uint64_t p = span->s; p < span->e;) {
        const bool first = p == span->a, last = p == span->b - 1;
        uint64_t count = 1;
        if (gapless && !first && !last)
            count = min(span->e, span->b - 1) - p;
        const float *mid = blurred + (p - span->blur_s) * lanes;
        const float *prev = plan->smooth && !first ? mid - lanes : NULL;
        const float *next = plan->smooth && !last ? mid + lanes : NULL;
        const float factor = first && last   ? 1
                             : first || last ? plan->end_factor
                                             : plan->inner_factor;
        chain->simd->finish[to.type](to.dst + (p - span->s) * to.step, prev, mid, next,
                                     (size_t)count * lanes, plan->weight, factor);
        p += count;
    }
}

/* The chain on a strip of enhanced positions. */
static void chain_span(const gf_smooth_chain *chain, const gf_span *span,
                       const struct gf_smooth_buffers *buffers, size_t lanes, gf_target to,
                       gf_smooth_soon soon) {
    if (chain->plan->radius > 0)
        blur_span(chain, span, buffers, lanes, soon);
    finish_span(chain, span, chain->plan->radius > 0 ? buffers->blurred : buffers->loaded, lanes,
                to);
}

/* ---- buffers --------------------------------------------------------------------------------- */

_Static_assert(ROW_STRIP_SAMPLES >= GF_SMOOTH_ENDS, "ends must fit into a strip of a row");

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
    return lanes / plan->head.in.channels;
}

static size_t column_floats(const gf_smooth_plan *plan) {
    uint64_t rows = column_rows(plan) + 2 * reach(plan);
    return (size_t)(rows * column_pixels(plan) * plan->head.in.channels) + GF_SMOOTH_PAD;
}

static size_t on_a_line(size_t floats) {
    return (floats + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
}

size_t gf_smooth_chain_floats(const gf_smooth_plan *plan) {
    size_t floats = 2 * on_a_line(row_floats(plan));
    if (plan->axis != GF_SMOOTH_X)
        floats += 2 * on_a_line(column_floats(plan)) + on_a_line(row_floats(plan));
    return floats;
}

static float *take(float **scratch, size_t floats) {
    float *taken = *scratch;
    *scratch += on_a_line(floats);
    return taken;
}

gf_smooth_chain gf_smooth_chain_on(const gf_smooth_plan *plan, gf_isa isa, float *scratch) {
    gf_smooth_chain chain = {.plan = plan, .simd = simd_levels[isa]};
    chain.row.loaded = take(&scratch, row_floats(plan));
    chain.row.blurred = take(&scratch, row_floats(plan));
    if (plan->axis != GF_SMOOTH_X) {
        chain.column.loaded = take(&scratch, column_floats(plan));
        chain.column.blurred = take(&scratch, column_floats(plan));
        chain.along = take(&scratch, row_floats(plan));
    }
    return chain;
}

/* ---- along rows ------------------------------------------------------------------------------ */

void gf_smooth_chain_row(const gf_smooth_chain *chain, const unsigned char *row, uint64_t s,
                         uint64_t e, unsigned char *dst, gf_type type) {
    const gf_format *format = &chain->plan->head.in;
    const size_t lanes = format->channels;
    const size_t pixel_bytes = lanes * gf_type_bytes(format->type);
    const gf_target to = {dst, lanes * gf_type_bytes(type), type};
    gf_span span;
    for (uint64_t p = s; p < e; p = span.e) {
        span = span_of(chain->plan, format->width, p, min(e, p + ROW_STRIP_SAMPLES / lanes));
        chain->simd->load[format->type](chain->row.loaded, row + span.load_s * pixel_bytes,
                                        (size_t)(span.load_e - span.load_s) * lanes,
                                        chain->plan->gain);
        /* The next strip is read, this one is written. */
        const gf_smooth_soon soon = {row + span.e * pixel_bytes, to.dst + (p - s) * to.step,
                                     gf_type_bytes(type)};
        chain_span(chain, &span, &chain->row, lanes,
                   (gf_target){to.dst + (p - s) * to.step, to.step, type},
                   type == format->type ? soon : nothing);
    }
}

/* The rows lie side by side, like the lanes of columns. */
void gf_smooth_chain_ends(const gf_smooth_chain *chain, const gf_rows *in, const gf_rows *out,
                          uint64_t y, uint64_t rows, uint64_t s, uint64_t e) {
    const gf_format *format = &chain->plan->head.in;
    const size_t channels = format->channels, lanes = (size_t)rows * channels;
    const gf_span span = span_of(chain->plan, format->width, s, e);
    uint8_t samples[GF_SMOOTH_ENDS] = {0};
    for (uint64_t i = 0; i < rows; i++) {
        const unsigned char *from = gf_row(in, y + i) + span.load_s * channels;
        uint8_t *to = samples + i * channels;
        for (uint64_t p = span.load_s; p < span.load_e; p++, to += lanes, from += channels)
            for (size_t c = 0; c < channels; c++)
                to[c] = from[c];
    }
    chain->simd->load[GF_U8](chain->row.loaded, samples,
                             (size_t)(span.load_e - span.load_s) * lanes, chain->plan->gain);
    chain_span(chain, &span, &chain->row, lanes, (gf_target){samples, lanes, GF_U8}, nothing);
    for (uint64_t i = 0; i < rows; i++) {
        unsigned char *to = gf_row(out, y + i) + s * channels;
        const uint8_t *from = samples + i * channels;
        for (uint64_t p = s; p < e; p++, from += lanes, to += channels)
            for (size_t c = 0; c < channels; c++)
                to[c] = from[c];
    }
}

/* ---- down columns ---------------------------------------------------------------------------- */

/* One row of a strip of columns, pixels [x0, x0 + pixels): enhanced, for xy after the x pass. */
static void load_strip_row(const gf_smooth_chain *chain, const gf_rows *in, uint64_t y, uint64_t x0,
                           uint64_t pixels, float *loaded) {
    const gf_smooth_plan *plan = chain->plan;
    const gf_format *format = &plan->head.in;
    const size_t samples = (size_t)pixels * format->channels;
    const unsigned char *row = gf_row(in, y);
    if (plan->axis == GF_SMOOTH_Y) {
        chain->simd->load[format->type](
            loaded, row + x0 * format->channels * gf_type_bytes(format->type), samples, plan->gain);
        return;
    }
    gf_smooth_chain_row(chain, row, x0, x0 + pixels, (unsigned char *)chain->along, GF_F32);
    chain->simd->load[GF_F32](loaded, chain->along, samples, plan->gain);
}

/* Pixels of one strip: at most column_pixels. */
static void strip_of_columns(const gf_smooth_chain *chain, const gf_rows *in, const gf_rows *out,
                             uint64_t x0, uint64_t pixels, uint64_t s, uint64_t e) {
    const gf_format *format = &chain->plan->head.in;
    const size_t lanes = (size_t)pixels * format->channels;
    const size_t x_bytes = x0 * format->channels * gf_type_bytes(format->type);
    gf_span span;
    for (uint64_t p = s; p < e; p = span.e) {
        span = span_of(chain->plan, format->height, p, min(e, p + column_rows(chain->plan)));
        for (uint64_t y = span.load_s; y < span.load_e; y++)
            load_strip_row(chain, in, y, x0, pixels,
                           chain->column.loaded + (y - span.load_s) * lanes);
        chain_span(chain, &span, &chain->column, lanes,
                   (gf_target){gf_row(out, p) + x_bytes, out->stride, format->type}, nothing);
    }
}

void gf_smooth_chain_columns(const gf_smooth_chain *chain, const gf_rows *in, const gf_rows *out,
                             uint64_t x0, uint64_t pixels, uint64_t s, uint64_t e) {
    const uint64_t strip = column_pixels(chain->plan);
    for (uint64_t x = x0; x < x0 + pixels; x += strip)
        strip_of_columns(chain, in, out, x, min(strip, x0 + pixels - x), s, e);
}
