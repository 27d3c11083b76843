/* The chain down columns: every row is enhanced once and its means are made once; both wait in a
 * ring for the rows that need them. */
#include "smooth/smooth_columns.h"

/* Enhanced rows and means: 32 KiB, about L1. For xy 128 KiB, because the pass along a row does more
 * in vain the shorter its pieces are. */
#define RING_FLOATS_Y 8192
#define RING_FLOATS_XY 32768
#define LANES_MIN 64 /* below, cache lines are wasted */
#define LANES_MAX 1024
#define MEANS 4 /* rows of means: three that are needed, and a number that divides well */

static uint64_t min(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Enhanced rows that are needed at once; without a blur they stand for the means. */
static uint64_t enhanced_rows(const gf_smooth_plan *plan) {
    return plan->radius < 2 ? MEANS : 2 * plan->radius + 1;
}

/* Samples of a row that are worked on at once. */
static size_t lanes_of(const gf_smooth_plan *plan) {
    const uint64_t ring = plan->axis == GF_SMOOTH_Y ? RING_FLOATS_Y : RING_FLOATS_XY;
    const uint64_t lanes = ring / (enhanced_rows(plan) + MEANS);
    return (size_t)(lanes < LANES_MIN ? LANES_MIN : min(lanes, LANES_MAX));
}

static size_t row_floats(const gf_smooth_plan *plan) {
    return gf_smooth_on_a_line(lanes_of(plan) + GF_SMOOTH_PAD);
}

/* Behind the ring lies what the pass along a row makes of one row. */
size_t gf_smooth_ring_floats(const gf_smooth_plan *plan) {
    if (plan->axis == GF_SMOOTH_X)
        return 0;
    return (size_t)(enhanced_rows(plan) + MEANS + 1) * row_floats(plan);
}

/* Rows [s, e) of the tile [a, b), samples [x, x + lanes): what one pass down works on. */
typedef struct gf_pass {
    const gf_smooth_chain *chain;
    const gf_rows *in, *out;
    uint64_t x, pixels;
    size_t lanes, x_bytes;
    uint64_t a, b, s, e;
    /* The ring's enhanced rows, twice: wherever one begins, the others follow. */
    const float *rows[2 * (2 * GF_SMOOTH_MAX_RADIUS + 1)];
} gf_pass;

static float *enhanced(const gf_pass *pass, uint64_t y) {
    const gf_smooth_plan *plan = pass->chain->plan;
    return pass->chain->ring + (size_t)(y % enhanced_rows(plan)) * row_floats(plan);
}

static float *means(const gf_pass *pass, uint64_t y) {
    const gf_smooth_plan *plan = pass->chain->plan;
    if (plan->radius == 0)
        return enhanced(pass, y);
    return pass->chain->ring + (size_t)(enhanced_rows(plan) + y % MEANS) * row_floats(plan);
}

/* Row y enhanced; for xy after the pass along it. */
static void load_row(const gf_pass *pass, uint64_t y) {
    const gf_smooth_plan *plan = pass->chain->plan;
    const gf_smooth_simd *simd = pass->chain->simd;
    const gf_type type = plan->head.in.type;
    const unsigned char *row = gf_row(pass->in, y);
    if (plan->axis == GF_SMOOTH_Y) {
        simd->load[type](enhanced(pass, y), row + pass->x_bytes, pass->lanes, plan->gain);
        return;
    }
    float *along = pass->chain->ring + (size_t)(enhanced_rows(plan) + MEANS) * row_floats(plan);
    gf_smooth_chain_row(pass->chain, row, pass->x, pass->x + pass->pixels, (unsigned char *)along,
                        GF_F32);
    simd->load[GF_F32](enhanced(pass, y), along, pass->lanes, plan->gain);
}

/* The means of row y; *loaded is the next row to be enhanced. */
static void blur_row(const gf_pass *pass, uint64_t y, uint64_t *loaded) {
    const gf_smooth_plan *plan = pass->chain->plan;
    const uint64_t r = plan->radius;
    const uint64_t lo = y - pass->a < r ? pass->a : y - r;
    const uint64_t hi = pass->b - 1 - y < r ? pass->b - 1 : y + r;
    for (; *loaded <= hi; ++*loaded)
        load_row(pass, *loaded);
    if (r == 0)
        return;
    gf_smooth_soon soon = {0};
    if (y > pass->s && *loaded < pass->in->y0 + pass->in->rows)
        soon = (gf_smooth_soon){gf_row(pass->in, *loaded) + pass->x_bytes,
                                gf_row(pass->out, y - 1) + pass->x_bytes,
                                gf_type_bytes(plan->head.in.type)};
    pass->chain->simd->blur_rows(means(pass, y), pass->rows + lo % enhanced_rows(plan),
                                 (unsigned)(hi - lo + 1), pass->lanes, soon);
}

static void finish_row(const gf_pass *pass, uint64_t y) {
    const gf_smooth_plan *plan = pass->chain->plan;
    const bool first = y == pass->a, last = y == pass->b - 1;
    const float *prev = plan->smooth && !first ? means(pass, y - 1) : NULL;
    const float *next = plan->smooth && !last ? means(pass, y + 1) : NULL;
    const float factor = first && last ? 1 : first || last ? plan->end_factor : plan->inner_factor;
    const gf_type type = plan->head.in.type;
    unsigned char *dst = gf_row(pass->out, y) + pass->x_bytes;
    pass->chain->simd->finish[type](dst, prev, means(pass, y), next, pass->lanes, plan->weight,
                                    factor);
    if (pass->chain->alpha)
        pass->chain->simd->blend(dst, gf_row(pass->in, y) + pass->x_bytes,
                                 pass->lanes * gf_type_bytes(type), pass->chain->alpha);
}

static void run_pass(const gf_pass *pass) {
    const gf_smooth_plan *plan = pass->chain->plan;
    const uint64_t side = plan->smooth ? 1 : 0, r = plan->radius;
    const uint64_t begin = pass->s - pass->a < side ? pass->a : pass->s - side;
    const uint64_t end = pass->b - pass->e < side ? pass->b : pass->e + side;
    uint64_t loaded = begin - pass->a < r ? pass->a : begin - r;
    for (uint64_t y = begin; y < end; y++) {
        blur_row(pass, y, &loaded);
        if (side && y > pass->s)
            finish_row(pass, y - 1);
        if (!side || (y == pass->b - 1 && y < pass->e))
            finish_row(pass, y);
    }
}

void gf_smooth_chain_columns(const gf_smooth_chain *chain, const gf_rows *in, const gf_rows *out,
                             uint64_t x0, uint64_t pixels, uint64_t s, uint64_t e) {
    const gf_format *format = &chain->plan->head.in;
    const size_t channels = format->channels;
    const uint64_t strip = lanes_of(chain->plan) / channels;
    gf_pass pass = {.chain = chain, .in = in, .out = out};
    for (uint64_t i = 0; i < 2 * enhanced_rows(chain->plan); i++)
        pass.rows[i] = enhanced(&pass, i);
    for (uint64_t x = x0; x < x0 + pixels; x += strip) {
        pass.x = x;
        pass.pixels = min(strip, x0 + pixels - x);
        pass.lanes = (size_t)pass.pixels * channels;
        pass.x_bytes = (size_t)x * channels * gf_type_bytes(format->type);
        for (pass.s = s; pass.s < e; pass.s = pass.e) {
            gf_smooth_tile(chain->plan, pass.s, format->height, &pass.a, &pass.b);
            pass.e = min(e, pass.b);
            run_pass(&pass);
        }
    }
}
