/* The fast CPU implementation of smooth: how a band is cut into parts and pieces, and which pieces
 * are made by integers. */
#include "smooth/smooth.h"

#include "smooth/smooth_chain.h"
#include "smooth/smooth_columns.h"
#include "smooth/smooth_u8.h"

/* Shorter runs of samples are not worth the integers' while. */
#define LEAST_RUN 32
/* Pixels after which alpha is put back, while they are in L1. */
#define ALPHA_PIECE 768
/* Pixels of a row that are worth a part of their own. */
#define LEAST_CUT 4096

typedef struct gf_worker {
    const gf_smooth_plan *plan;
    gf_smooth_chain chain;
    bool by_integers;
    gf_smooth_u8 u8;
    uint8_t alpha[64]; /* 0xff where bytes of a row, from a pixel on, are alpha's */
} gf_worker;

static uint64_t min(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t max(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static size_t pixel_bytes(const gf_smooth_plan *plan) {
    return plan->head.in.channels * gf_type_bytes(plan->head.in.type);
}

size_t gf_smooth_cpu_scratch(const gf_plan *head) {
    const gf_smooth_plan *plan = (const gf_smooth_plan *)head;
    const size_t floats = gf_smooth_chain_floats(plan) + gf_smooth_ring_floats(plan);
    return gf_smooth_u8_bytes(plan) + floats * sizeof(float);
}

static void worker_on(gf_worker *worker, const gf_smooth_plan *plan, gf_isa isa, void *scratch) {
    worker->plan = plan;
    float *floats = (float *)(void *)((unsigned char *)scratch + gf_smooth_u8_bytes(plan));
    worker->chain = gf_smooth_chain_on(plan, isa, floats);
    worker->chain.ring = floats + gf_smooth_chain_floats(plan);
    /* Without a blur the chain has no division, and is as fast. */
    worker->by_integers = plan->axis != GF_SMOOTH_XY && plan->radius > 0 &&
                          gf_smooth_u8_on(&worker->u8, &worker->chain, isa, scratch);
    const size_t sample = gf_type_bytes(plan->head.in.type), pixel = pixel_bytes(plan);
    for (size_t i = 0; i < sizeof worker->alpha; i++)
        worker->alpha[i] = i % pixel >= pixel - sample ? 0xff : 0;
    if (gf_has_alpha(plan->head.in.channels))
        worker->chain.alpha = worker->alpha;
}

static void restore_alpha(const gf_worker *worker, const unsigned char *in, unsigned char *out,
                          uint64_t pixels) {
    if (worker->chain.alpha)
        worker->chain.simd->blend(out, in, (size_t)pixels * pixel_bytes(worker->plan),
                                  worker->alpha);
}

/* Positions of [s, e) in the tile of s whose windows lie in that tile, [*in_s, *in_e); returns
 * where the tile or e ends. */
static uint64_t inside(const gf_smooth_plan *plan, uint64_t length, uint64_t s, uint64_t e,
                       uint64_t *in_s, uint64_t *in_e) {
    const uint64_t reach = plan->integer.reach;
    uint64_t a, b;
    gf_smooth_tile(plan, s, length, &a, &b);
    const uint64_t end = min(e, b);
    *in_s = *in_e = end;
    if (b - a > 2 * reach && max(s, a + reach) < min(e, b - reach)) {
        *in_s = max(s, a + reach);
        *in_e = min(e, b - reach);
    }
    return end;
}

/* ---- along rows ------------------------------------------------------------------------------ */

/* Pixels [s, e) of a row. */
static void chain_row(const gf_worker *worker, const unsigned char *in, unsigned char *out,
                      uint64_t s, uint64_t e) {
    if (s < e)
        gf_smooth_chain_row(&worker->chain, in, s, e, out + s * pixel_bytes(worker->plan),
                            worker->plan->head.in.type);
}

static void integer_row(const gf_worker *worker, const unsigned char *in, unsigned char *out,
                        uint64_t s, uint64_t e) {
    const size_t channels = worker->plan->head.in.channels;
    const uint64_t strip = GF_SMOOTH_U8_MOST / channels / 64 * 64;
    for (uint64_t x = s, end; x < e; x = end) {
        end = min(e, x + strip);
        /* The strips after the first begin on cache lines, where pixels do. */
        for (int i = 0; i < 64 && end < e && (uintptr_t)(out + end * channels) % 64 != 0; i++)
            end--;
        if (!gf_smooth_u8_row(&worker->u8, in + x * channels, out + x * channels,
                              (size_t)(end - x) * channels))
            chain_row(worker, in, out, x, end);
    }
}

/* Pixels [s, e) of a row; with only_inside those alone whose windows lie inside. */
static void filter_row(const gf_worker *worker, const unsigned char *in, unsigned char *out,
                       uint64_t s, uint64_t e, bool only_inside) {
    const gf_format *format = &worker->plan->head.in;
    if (!worker->by_integers) {
        chain_row(worker, in, out, s, e);
        return;
    }
    uint64_t in_s, in_e, end;
    for (uint64_t x = s; x < e; x = end) {
        end = inside(worker->plan, format->width, x, e, &in_s, &in_e);
        if ((in_e - in_s) * format->channels < LEAST_RUN && !only_inside)
            in_s = in_e = end;
        if (!only_inside)
            chain_row(worker, in, out, x, in_s);
        integer_row(worker, in, out, in_s, in_e);
        if (!only_inside)
            chain_row(worker, in, out, in_e, end);
    }
}

/* Pixels [s, e) of row y, alpha and all, in pieces. */
static void finish_row(const gf_worker *worker, const gf_band *band, uint64_t y, uint64_t s,
                       uint64_t e, bool only_inside) {
    const size_t pixel = pixel_bytes(worker->plan);
    const unsigned char *in = gf_row(&band->in, y);
    unsigned char *out = gf_row(&band->out, y);
    const uint64_t piece = gf_has_alpha(worker->plan->head.in.channels) ? ALPHA_PIECE : e - s;
    for (uint64_t x = s; x < e; x += piece) {
        const uint64_t pixels = min(piece, e - x);
        filter_row(worker, in, out, x, x + pixels, only_inside);
        restore_alpha(worker, in + x * pixel, out + x * pixel, pixels);
    }
}

#define ENDS_ROWS 8 /* whose ends are made together */

_Static_assert(ENDS_ROWS * 3 * GF_SMOOTH_INTEGER_REACH * GF_MAX_CHANNELS <= GF_SMOOTH_ENDS,
               "ends of rows must fit");

/* Whole rows [y, last): integers for what is inside, and the few samples at the ends of several
 * rows at a time. */
static void filter_whole_rows(const gf_worker *worker, const gf_band *band, uint64_t y,
                              uint64_t last) {
    const uint64_t width = worker->plan->head.in.width, reach = worker->plan->integer.reach;
    for (uint64_t next; y < last; y = next) {
        next = min(last, y + ENDS_ROWS);
        if (reach > 0) {
            gf_smooth_chain_ends(&worker->chain, &band->in, &band->out, y, next - y, 0, reach);
            gf_smooth_chain_ends(&worker->chain, &band->in, &band->out, y, next - y, width - reach,
                                 width);
        }
        for (uint64_t i = y; i < next; i++)
            finish_row(worker, band, i, 0, width, true);
    }
}

/* Rows are shared out; where there are few of them for so many parts, in cuts. */
static void filter_rows(const gf_worker *worker, const gf_band *band, uint32_t part,
                        uint32_t parts) {
    const gf_smooth_plan *plan = worker->plan;
    const uint64_t width = plan->head.in.width, rows = band->out.rows;
    const uint64_t many = 4 * (uint64_t)parts;
    if (rows >= many && worker->by_integers && !plan->tile && width > 3 * plan->integer.reach) {
        filter_whole_rows(worker, band, band->out.y0 + gf_share(rows, part, parts),
                          band->out.y0 + gf_share(rows, part + 1, parts));
        return;
    }
    const uint64_t most = (width - 1) / LEAST_CUT + 1;
    const uint32_t cuts = rows < many ? (uint32_t)min(many / rows + 1, most) : 1;
    const uint64_t last = gf_share(rows * cuts, part + 1, parts);
    for (uint64_t piece = gf_share(rows * cuts, part, parts); piece < last; piece++) {
        const uint32_t cut = (uint32_t)(piece % cuts);
        finish_row(worker, band, band->out.y0 + piece / cuts, gf_share(width, cut, cuts),
                   gf_share(width, cut + 1, cuts), false);
    }
}

/* ---- down columns ---------------------------------------------------------------------------- */

#define SETBACK_ROWS 64 /* by the chain, where a row had too many samples in doubt */

/* Rows [s, e), pixels [x, x + pixels). */
static void filter_strip(const gf_worker *worker, const gf_band *band, uint64_t x, uint64_t pixels,
                         uint64_t s, uint64_t e) {
    const gf_format *format = &worker->plan->head.in;
    const gf_rows *in = &band->in, *out = &band->out;
    if (!worker->by_integers || pixels * format->channels < LEAST_RUN) {
        gf_smooth_chain_columns(&worker->chain, in, out, x, pixels, s, e);
        return;
    }
    uint64_t in_s, in_e, end;
    for (uint64_t y = s; y < e; y = end) {
        end = inside(worker->plan, format->height, y, e, &in_s, &in_e);
        gf_smooth_chain_columns(&worker->chain, in, out, x, pixels, y, in_s);
        while (in_s < in_e) {
            in_s = gf_smooth_u8_columns(&worker->u8, in, out, (size_t)x * format->channels,
                                        (size_t)pixels * format->channels, in_s, in_e);
            const uint64_t setback = min(in_e, in_s + SETBACK_ROWS);
            gf_smooth_chain_columns(&worker->chain, in, out, x, pixels, in_s, setback);
            in_s = setback;
        }
        gf_smooth_chain_columns(&worker->chain, in, out, x, pixels, in_e, end);
    }
}

#define STRIP_SAMPLES 2048

/* Columns are shared out, so that no part loads a halo that another one has. */
static void filter_columns(const gf_worker *worker, const gf_band *band, uint32_t part,
                           uint32_t parts) {
    const gf_format *format = &worker->plan->head.in;
    const uint64_t strip = STRIP_SAMPLES / format->channels;
    const uint64_t end = gf_share(format->width, part + 1, parts);
    for (uint64_t x = gf_share(format->width, part, parts); x < end; x += strip) {
        const uint64_t pixels = min(strip, end - x);
        filter_strip(worker, band, x, pixels, band->out.y0, band->out.y0 + band->out.rows);
    }
}

void gf_smooth_cpu(const gf_plan *head, const gf_band *band, uint32_t part, uint32_t parts,
                   void *scratch, gf_isa isa) {
    const gf_smooth_plan *plan = (const gf_smooth_plan *)head;
    gf_worker worker;
    worker_on(&worker, plan, isa, scratch);
    if (plan->axis == GF_SMOOTH_X)
        filter_rows(&worker, band, part, parts);
    else
        filter_columns(&worker, band, part, parts);
}
