#include "smooth/smooth_chain.h"

static const gf_smooth_simd *const simd_levels[GF_ISA_COUNT] = {
    [GF_ISA_PORTABLE] = &gf_smooth_simd_portable,
#ifdef GF_X86_64
    [GF_ISA_AVX2] = &gf_smooth_simd_avx2,
    [GF_ISA_AVX512] = &gf_smooth_simd_avx512,
#endif
};

#define ROW_STRIP_SAMPLES 1536 /* outputs of one strip of a row: its two buffers fit in L1 */

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
static void blur_span(const gf_smooth_chain *chain, const gf_span *span, size_t lanes,
                      gf_smooth_soon soon) {
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
        chain->simd->blur(chain->blurred + (p - span->blur_s) * lanes,
                          chain->loaded + (lo - span->load_s) * lanes, lanes,
                          (unsigned)(hi - lo + 1), (size_t)count * lanes, soon);
        p += count;
    }
}

/* Positions [s, e), without gaps, from blurred positions [blur_s, blur_e). */
static void finish_span(const gf_smooth_chain *chain, const gf_span *span, const float *blurred,
                        size_t lanes, unsigned char *dst, gf_type type) {
    const gf_smooth_plan *plan = chain->plan;
    for (uint64_t p = span->s; p < span->e;) {
        const bool first = p == span->a, last = p == span->b - 1;
        const uint64_t count = first || last ? 1 : min(span->e, span->b - 1) - p;
        const float *mid = blurred + (p - span->blur_s) * lanes;
        const float *prev = plan->smooth && !first ? mid - lanes : NULL;
        const float *next = plan->smooth && !last ? mid + lanes : NULL;
        const float factor = first && last   ? 1
                             : first || last ? plan->end_factor
                                             : plan->inner_factor;
        chain->simd->finish[type](dst + (p - span->s) * lanes * gf_type_bytes(type), prev, mid,
                                  next, (size_t)count * lanes, plan->weight, factor);
        p += count;
    }
}

/* The chain on a strip of enhanced positions. */
static void chain_span(const gf_smooth_chain *chain, const gf_span *span, size_t lanes,
                       unsigned char *dst, gf_type type, gf_smooth_soon soon) {
    if (chain->plan->radius > 0)
        blur_span(chain, span, lanes, soon);
    finish_span(chain, span, chain->plan->radius > 0 ? chain->blurred : chain->loaded, lanes, dst,
                type);
}

/* ---- buffers --------------------------------------------------------------------------------- */

_Static_assert(ROW_STRIP_SAMPLES >= GF_SMOOTH_ENDS, "ends must fit into a strip of a row");

static size_t row_floats(const gf_smooth_plan *plan) {
    return ROW_STRIP_SAMPLES + (size_t)(2 * reach(plan) + 1) * GF_MAX_CHANNELS + GF_SMOOTH_PAD;
}

size_t gf_smooth_chain_floats(const gf_smooth_plan *plan) {
    return 2 * gf_smooth_on_a_line(row_floats(plan));
}

gf_smooth_chain gf_smooth_chain_on(const gf_smooth_plan *plan, gf_isa isa, float *scratch) {
    const size_t strip = gf_smooth_on_a_line(row_floats(plan));
    return (gf_smooth_chain){
        .plan = plan, .simd = simd_levels[isa], .loaded = scratch, .blurred = scratch + strip};
}

/* ---- along rows ------------------------------------------------------------------------------ */

void gf_smooth_chain_row(const gf_smooth_chain *chain, const unsigned char *row, uint64_t s,
                         uint64_t e, unsigned char *dst, gf_type type) {
    const gf_format *format = &chain->plan->head.in;
    const size_t lanes = format->channels;
    const size_t pixel_bytes = lanes * gf_type_bytes(format->type);
    const size_t out_bytes = lanes * gf_type_bytes(type);
    gf_span span;
    for (uint64_t p = s; p < e; p = span.e) {
        span = span_of(chain->plan, format->width, p, min(e, p + ROW_STRIP_SAMPLES / lanes));
        chain->simd->load[format->type](chain->loaded, row + span.load_s * pixel_bytes,
                                        (size_t)(span.load_e - span.load_s) * lanes,
                                        chain->plan->gain);
        unsigned char *to = dst + (p - s) * out_bytes;
        /* The next strip is read, this one is written. */
        const gf_smooth_soon soon = {row + span.e * pixel_bytes, to, gf_type_bytes(type)};
        chain_span(chain, &span, lanes, to, type,
                   type == format->type ? soon : (gf_smooth_soon){0});
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
    chain->simd->load[GF_U8](chain->loaded, samples, (size_t)(span.load_e - span.load_s) * lanes,
                             chain->plan->gain);
    chain_span(chain, &span, lanes, samples, GF_U8, (gf_smooth_soon){0});
    for (uint64_t i = 0; i < rows; i++) {
        unsigned char *to = gf_row(out, y + i) + s * channels;
        const uint8_t *from = samples + i * channels;
        for (uint64_t p = s; p < e; p++, from += lanes, to += channels)
            for (size_t c = 0; c < channels; c++)
                to[c] = from[c];
    }
}
