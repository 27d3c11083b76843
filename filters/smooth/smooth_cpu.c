/* Fast CPU implementation of smooth: divides a strip into parts and pieces, selects integer
 * arithmetic (smooth_u8.c) where possible, and runs the chain in vectors of binary32 elsewhere.
 *
 * The chain treats rows and columns alike: a signal consists of positions of `lanes` floats each.
 * Along rows, a position is a pixel and its lanes are the channels. Down columns, a position is a
 * row and its lanes are neighbouring samples. Position p + 1 of a row is `lanes` floats after
 * position p: one loop covers positions x lanes. Rows of a column are kept in a ring. Alpha is
 * filtered with the other channels and then restored. */
#include "smooth/smooth_cpu.h"

/* State of one part of a strip: scratch memory and loops of a thread. */
typedef struct gf_smooth_part {
    const gf_smooth_plan *plan;
    const gf_smooth_simd *simd;
    const gf_rows *in, *out;
    float *loaded, *blurred; /* segment of a row: enhanced samples and means */
    float *ring;             /* for columns */
    bool use_integers;
    gf_smooth_u8 u8;
    bool has_alpha;
    uint8_t alpha[64]; /* 0xff for the alpha bytes of a row, from a pixel boundary on */
} gf_smooth_part;

static size_t smooth_pixel_bytes(const gf_smooth_plan *plan) {
    return plan->head.in.channels * gf_type_bytes(plan->head.in.type);
}

/* Return the brightness factor of a position. first, last: it is the first, the last of its
 * tile. */
static float smooth_factor(const gf_smooth_plan *plan, bool first, bool last) {
    return first && last ? 1 : first || last ? plan->end_factor : plan->inner_factor;
}

/* ---- chain along rows ------------------------------------------------------------------------ */

#define ROW_SEGMENT_SAMPLES 1536 /* outputs per segment of a row: its two buffers fit in L1 */

/* Max u8 samples that smooth_row_ends processes at once, halo included. */
#define ENDS_SAMPLES 1536

_Static_assert(ROW_SEGMENT_SAMPLES >= ENDS_SAMPLES, "ends must fit into a segment of a row");

/* Positions of the enhanced and the blurred signal that outputs [s, e) of the tile [a, b) need. */
typedef struct gf_smooth_span {
    uint64_t a, b;           /* tile */
    uint64_t s, e;           /* outputs */
    uint64_t blur_s, blur_e; /* blurred */
    uint64_t load_s, load_e; /* enhanced */
} gf_smooth_span;

static gf_smooth_span smooth_span(const gf_smooth_plan *plan, uint64_t length, uint64_t s,
                                  uint64_t e) {
    gf_smooth_span span = {.s = s};
    gf_smooth_tile(plan->tile, s, length, &span.a, &span.b);
    span.e = gf_min(e, span.b);
    const uint64_t side = plan->smooth; /* positions that the smooth stage reads on each side */
    span.blur_s = s - span.a < side ? span.a : s - side;
    span.blur_e = span.b - span.e < side ? span.b : span.e + side;
    span.load_s = span.blur_s - span.a < plan->radius ? span.a : span.blur_s - plan->radius;
    span.load_e = span.b - span.blur_e < plan->radius ? span.b : span.blur_e + plan->radius;
    return span;
}

/* Compute outputs [s, e) from enhanced positions. dst: consecutive samples of `type`. */
static void smooth_chain_span(const gf_smooth_part *part, const gf_smooth_span *span, size_t lanes,
                              unsigned char *dst, gf_type type, gf_smooth_prefetch prefetch) {
    const gf_smooth_plan *plan = part->plan;
    const float *blurred = plan->radius > 0 ? part->blurred : part->loaded;
    const uint64_t r = plan->radius;
    /* The means [blur_s, blur_e). */
    for (uint64_t p = span->blur_s, count; r > 0 && p < span->blur_e; p += count) {
        const uint64_t lo = p - span->a < r ? span->a : p - r;
        const uint64_t hi = span->b - 1 - p < r ? span->b - 1 : p + r;
        /* One call covers all positions whose whole window is inside the tile. */
        count = hi - lo == 2 * r ? gf_min(span->blur_e, span->b - r) - p : 1;
        part->simd->blur(part->blurred + (p - span->blur_s) * lanes,
                         part->loaded + (lo - span->load_s) * lanes, lanes, (unsigned)(hi - lo + 1),
                         (size_t)count * lanes, prefetch);
    }
    for (uint64_t p = span->s, count; p < span->e; p += count) {
        const bool first = p == span->a, last = p == span->b - 1;
        count = first || last ? 1 : gf_min(span->e, span->b - 1) - p;
        const float *mid = blurred + (p - span->blur_s) * lanes;
        const gf_smooth_chain chain = {plan->smooth && !first ? mid - lanes : NULL, mid,
                                       plan->smooth && !last ? mid + lanes : NULL, plan->weight,
                                       smooth_factor(plan, first, last)};
        part->simd->finish(type, dst + (p - span->s) * lanes * gf_type_bytes(type), &chain,
                           (size_t)count * lanes);
    }
}

/* Compute outputs [s, e) of a row, tiles included. dst: the output at s, of `type`. */
static void smooth_chain_row(const gf_smooth_part *part, const unsigned char *row, uint64_t s,
                             uint64_t e, unsigned char *dst, gf_type type) {
    const gf_format *format = &part->plan->head.in;
    const size_t lanes = format->channels, pixel = smooth_pixel_bytes(part->plan);
    gf_smooth_span span;
    for (uint64_t p = s; p < e; p = span.e) {
        span =
            smooth_span(part->plan, format->width, p, gf_min(e, p + ROW_SEGMENT_SAMPLES / lanes));
        part->simd->load(format->type, part->loaded, row + span.load_s * pixel,
                         (size_t)(span.load_e - span.load_s) * lanes, part->plan->gain);
        unsigned char *to = dst + (p - s) * lanes * gf_type_bytes(type);
        /* Prefetch the next segment for reading and this one for writing. */
        gf_smooth_prefetch prefetch = {0};
        if (type == format->type)
            prefetch = (gf_smooth_prefetch){row + span.e * pixel, to, gf_type_bytes(type)};
        smooth_chain_span(part, &span, lanes, to, type, prefetch);
    }
}

/* Copy n positions. Steps are in samples. */
static void smooth_copy_column(const uint8_t *from, size_t from_step, uint8_t *to, size_t to_step,
                               uint64_t n, size_t channels) {
    for (uint64_t p = 0; p < n; p++, from += from_step, to += to_step)
        for (size_t c = 0; c < channels; c++)
            to[c] = from[c];
}

/* Compute u8 outputs [s, e) of `rows` rows from y on. With the halo, there are at most
 * ENDS_SAMPLES. The rows become lanes, as for columns: a few samples of many rows cost little
 * more than those of one row. Both axes: the results are short signals down the rows. */
static void smooth_row_ends(const gf_smooth_part *part, uint64_t y, uint64_t rows, uint64_t s,
                            uint64_t e) {
    const gf_smooth_plan *plan = part->plan;
    const gf_format *format = &plan->head.in;
    const size_t channels = format->channels;
    const gf_smooth_span span = smooth_span(plan, format->width, s, e);
    gf_smooth_span down = {.load_s = y, .load_e = y + rows};
    if (plan->axis == GF_SMOOTH_XY)
        down = smooth_span(plan, format->height, y, y + rows);
    const size_t lanes = (size_t)(down.load_e - down.load_s) * channels;
    uint8_t samples[ENDS_SAMPLES] = {0};
    for (uint64_t i = 0; i < down.load_e - down.load_s; i++)
        smooth_copy_column(gf_row(part->in, down.load_s + i) + span.load_s * channels, channels,
                           samples + i * channels, lanes, span.load_e - span.load_s, channels);
    part->simd->load(GF_U8, part->loaded, samples, (size_t)(span.load_e - span.load_s) * lanes,
                     plan->gain);
    if (plan->axis == GF_SMOOTH_XY) {
        float along[ENDS_SAMPLES];
        smooth_chain_span(part, &span, lanes, (unsigned char *)along, GF_F32,
                          (gf_smooth_prefetch){0});
        for (uint64_t p = 0; p < e - s; p++) {
            part->simd->load(GF_F32, part->loaded, along + p * lanes, lanes, plan->gain);
            smooth_chain_span(part, &down, channels, samples + p * rows * channels, GF_U8,
                              (gf_smooth_prefetch){0});
        }
    } else {
        smooth_chain_span(part, &span, lanes, samples, GF_U8, (gf_smooth_prefetch){0});
    }
    for (uint64_t i = 0; i < rows; i++) {
        uint8_t *dst = gf_row(part->out, y + i) + s * channels;
        smooth_copy_column(samples + i * channels, (size_t)rows * channels, dst, channels, e - s,
                           channels);
        if (part->has_alpha)
            part->simd->blend(dst, gf_row(part->in, y + i) + s * channels,
                              (size_t)(e - s) * channels, part->alpha);
    }
}

/* ---- chain down columns ---------------------------------------------------------------------- */

/* Every row is enhanced once and averaged once; a ring holds both until the last row that needs
 * them. Y: enhanced rows and means take 32 KiB, about L1. XY: 128 KiB, because the overhead of the
 * pass along rows grows as its pieces get shorter. */
#define RING_FLOATS_Y 8192
#define RING_FLOATS_XY 32768
#define LANES_MIN 64 /* fewer would waste cache lines */
#define LANES_MAX 1024
#define MEAN_ROWS 4 /* rows of means: three are needed; 4 is cheap to divide by */

/* Round up a buffer size so that the next buffer starts at a cache line. */
static size_t smooth_align_floats(size_t floats) {
    return (floats + 15) / 16 * 16;
}

/* Return the number of enhanced rows in the ring. Without blur they also serve as the means. */
static uint64_t smooth_ring_rows(const gf_smooth_plan *plan) {
    return plan->radius < 2 ? MEAN_ROWS : 2 * plan->radius + 1;
}

/* Return the samples of a row that are processed at once. */
static size_t smooth_lanes(const gf_smooth_plan *plan) {
    const uint64_t ring = plan->axis == GF_SMOOTH_Y ? RING_FLOATS_Y : RING_FLOATS_XY;
    const uint64_t lanes = ring / (smooth_ring_rows(plan) + MEAN_ROWS);
    return (size_t)(lanes < LANES_MIN ? LANES_MIN : gf_min(lanes, LANES_MAX));
}

static size_t smooth_ring_stride(const gf_smooth_plan *plan) {
    return smooth_align_floats(smooth_lanes(plan) + GF_SMOOTH_PAD);
}

/* One pass down columns: rows [s, e) of the tile [a, b), samples [x, x + lanes). */
typedef struct gf_smooth_pass {
    const gf_smooth_part *part;
    uint64_t x, pixels;
    size_t lanes, x_bytes;
    uint64_t a, b, s, e;
    /* The enhanced rows of the ring, twice: the rows after any entry are consecutive. */
    const float *rows[2 * (2 * GF_SMOOTH_MAX_RADIUS + 1)];
} gf_smooth_pass;

/* Return row i of the ring: enhanced rows, then means, then one output of the pass along rows. */
static float *smooth_ring_row(const gf_smooth_part *part, uint64_t i) {
    return part->ring + (size_t)i * smooth_ring_stride(part->plan);
}

static float *smooth_enhanced(const gf_smooth_part *part, uint64_t y) {
    return smooth_ring_row(part, y % smooth_ring_rows(part->plan));
}

static float *smooth_means(const gf_smooth_part *part, uint64_t y) {
    return part->plan->radius == 0
               ? smooth_enhanced(part, y)
               : smooth_ring_row(part, smooth_ring_rows(part->plan) + y % MEAN_ROWS);
}

/* Compute the means of row y. First, enhance the rows that they need into the ring. XY: after the
 * pass along these rows. *loaded: the next row to enhance. */
static void smooth_blur_row(const gf_smooth_pass *pass, uint64_t y, uint64_t *loaded) {
    const gf_smooth_part *part = pass->part;
    const gf_smooth_plan *plan = part->plan;
    const uint64_t r = plan->radius;
    const uint64_t lo = y - pass->a < r ? pass->a : y - r;
    const uint64_t hi = pass->b - 1 - y < r ? pass->b - 1 : y + r;
    for (; *loaded <= hi; ++*loaded) {
        const unsigned char *row = gf_row(part->in, *loaded);
        const void *from = row + pass->x_bytes;
        gf_type type = plan->head.in.type;
        if (plan->axis == GF_SMOOTH_XY) {
            float *along = smooth_ring_row(part, smooth_ring_rows(plan) + MEAN_ROWS);
            smooth_chain_row(part, row, pass->x, pass->x + pass->pixels, (unsigned char *)along,
                             GF_F32);
            from = along;
            type = GF_F32;
        }
        part->simd->load(type, smooth_enhanced(part, *loaded), from, pass->lanes, plan->gain);
    }
    if (r == 0)
        return;
    gf_smooth_prefetch prefetch = {0};
    if (y > pass->s && *loaded < part->in->y0 + part->in->rows)
        prefetch = (gf_smooth_prefetch){gf_row(part->in, *loaded) + pass->x_bytes,
                                        gf_row(part->out, y - 1) + pass->x_bytes,
                                        gf_type_bytes(plan->head.in.type)};
    part->simd->blur_rows(smooth_means(part, y), pass->rows + lo % smooth_ring_rows(plan),
                          (unsigned)(hi - lo + 1), pass->lanes, prefetch);
}

static void smooth_finish_row(const gf_smooth_pass *pass, uint64_t y) {
    const gf_smooth_part *part = pass->part;
    const gf_smooth_plan *plan = part->plan;
    const bool first = y == pass->a, last = y == pass->b - 1;
    const gf_type type = plan->head.in.type;
    unsigned char *dst = gf_row(part->out, y) + pass->x_bytes;
    const gf_smooth_chain chain = {plan->smooth && !first ? smooth_means(part, y - 1) : NULL,
                                   smooth_means(part, y),
                                   plan->smooth && !last ? smooth_means(part, y + 1) : NULL,
                                   plan->weight, smooth_factor(plan, first, last)};
    part->simd->finish(type, dst, &chain, pass->lanes);
    if (part->has_alpha)
        part->simd->blend(dst, gf_row(part->in, y) + pass->x_bytes,
                          pass->lanes * gf_type_bytes(type), part->alpha);
}

static void smooth_run_pass(const gf_smooth_pass *pass) {
    const gf_smooth_plan *plan = pass->part->plan;
    const uint64_t side = plan->smooth, r = plan->radius;
    const uint64_t begin = pass->s - pass->a < side ? pass->a : pass->s - side;
    const uint64_t end = pass->b - pass->e < side ? pass->b : pass->e + side;
    uint64_t loaded = begin - pass->a < r ? pass->a : begin - r;
    for (uint64_t y = begin; y < end; y++) {
        smooth_blur_row(pass, y, &loaded);
        if (side && y > pass->s)
            smooth_finish_row(pass, y - 1);
        if (!side || (y == pass->b - 1 && y < pass->e))
            smooth_finish_row(pass, y);
    }
}

/* Compute rows [s, e) of out, pixels [x0, x0 + pixels), for axis y or xy. */
static void smooth_chain_columns(const gf_smooth_part *part, uint64_t x0, uint64_t pixels,
                                 uint64_t s, uint64_t e) {
    const gf_smooth_plan *plan = part->plan;
    const uint64_t segment = smooth_lanes(plan) / plan->head.in.channels;
    gf_smooth_pass pass = {.part = part};
    for (uint64_t i = 0; i < 2 * smooth_ring_rows(plan); i++)
        pass.rows[i] = smooth_enhanced(part, i);
    for (uint64_t x = x0; x < x0 + pixels; x += segment) {
        pass.x = x;
        pass.pixels = gf_min(segment, x0 + pixels - x);
        pass.lanes = (size_t)pass.pixels * plan->head.in.channels;
        pass.x_bytes = (size_t)x * smooth_pixel_bytes(plan);
        for (pass.s = s; pass.s < e; pass.s = pass.e) {
            gf_smooth_tile(plan->tile, pass.s, plan->head.in.height, &pass.a, &pass.b);
            pass.e = gf_min(e, pass.b);
            smooth_run_pass(&pass);
        }
    }
}

/* ---- rows by integers or the chain ----------------------------------------------------------- */

#define MIN_RUN GF_SMOOTH_U8_MIN /* samples: shorter runs use the chain */
#define ALPHA_PIECE 768          /* pixels: alpha is restored while they are in L1 */
#define MIN_CUT 4096             /* min pixels per part of a row */

/* Set [*in_s, *in_e) to the positions of [s, e) whose windows are inside the tile of s. Returns the
 * smaller of e and the end of that tile. */
static uint64_t smooth_inside(const gf_smooth_plan *plan, uint64_t length, uint64_t s, uint64_t e,
                              uint64_t *in_s, uint64_t *in_e) {
    const uint64_t reach = plan->integer.reach;
    uint64_t a, b;
    gf_smooth_tile(plan->tile, s, length, &a, &b);
    const uint64_t end = gf_min(e, b);
    *in_e = gf_min(e, gf_max(b, reach) - reach);
    *in_s = gf_max(s, a + reach);
    if (*in_s >= *in_e)
        *in_s = *in_e = end;
    return end;
}

/* Compute pixels [s, e) of a row by the chain. */
static void smooth_row_by_chain(const gf_smooth_part *part, const unsigned char *in,
                                unsigned char *out, uint64_t s, uint64_t e) {
    smooth_chain_row(part, in, s, e, out + s * smooth_pixel_bytes(part->plan),
                     part->plan->head.in.type);
}

static void smooth_row_by_integers(const gf_smooth_part *part, const unsigned char *in,
                                   unsigned char *out, uint64_t s, uint64_t e) {
    const size_t channels = part->plan->head.in.channels;
    const uint64_t segment = GF_SMOOTH_U8_MAX / channels / 64 * 64;
    if ((e - s) * channels < MIN_RUN) {
        smooth_row_by_chain(part, in, out, s, e);
        return;
    }
    for (uint64_t x = s, end; x < e; x = end) {
        end = gf_min(e, x + segment);
        if (end < e && e - end < MIN_RUN)
            end -= MIN_RUN; /* make the last segment long enough */
        /* Start the following segments at a cache line if a pixel starts there. */
        for (int i = 0; i < 64 && end < e && (uintptr_t)(out + end * channels) % 64 != 0; i++)
            end--;
        if (!gf_smooth_u8_row(&part->u8, in + x * channels, out + x * channels,
                              (size_t)(end - x) * channels))
            smooth_row_by_chain(part, in, out, x, end);
    }
}

/* Compute pixels [s, e) of row y in pieces, alpha included. only_inside: only pixels whose windows
 * are inside the tile. */
static void smooth_row_pieces(const gf_smooth_part *part, uint64_t y, uint64_t s, uint64_t e,
                              bool only_inside) {
    const gf_format *format = &part->plan->head.in;
    const size_t pixel = smooth_pixel_bytes(part->plan);
    const unsigned char *in = gf_row(part->in, y);
    unsigned char *out = gf_row(part->out, y);
    const uint64_t piece = part->has_alpha ? ALPHA_PIECE : e - s;
    for (uint64_t first = s, last; first < e; first = last) {
        last = gf_min(e, first + piece);
        if (!part->use_integers)
            smooth_row_by_chain(part, in, out, first, last);
        for (uint64_t x = first, in_s, in_e, end; part->use_integers && x < last; x = end) {
            end = smooth_inside(part->plan, format->width, x, last, &in_s, &in_e);
            if ((in_e - in_s) * format->channels < MIN_RUN && !only_inside)
                in_s = in_e = end;
            if (!only_inside)
                smooth_row_by_chain(part, in, out, x, in_s);
            smooth_row_by_integers(part, in, out, in_s, in_e);
            if (!only_inside)
                smooth_row_by_chain(part, in, out, in_e, end);
        }
        if (part->has_alpha)
            part->simd->blend(out + first * pixel, in + first * pixel,
                              (size_t)(last - first) * pixel, part->alpha);
    }
}

#define ENDS_ROWS 8 /* rows per call of smooth_row_ends */

_Static_assert(ENDS_ROWS * 3 * GF_SMOOTH_INTEGER_REACH * GF_MAX_CHANNELS <= ENDS_SAMPLES,
               "ends of rows must fit");

/* Distribute rows over the parts. If there are few rows per part, cut the rows. In whole rows,
 * integers compute the inside, and the chain computes the ends of several rows at a time. */
static void smooth_rows(const gf_smooth_part *part, uint32_t index, uint32_t parts) {
    const gf_smooth_plan *plan = part->plan;
    const uint64_t width = plan->head.in.width, y0 = part->out->y0, rows = part->out->rows;
    const uint64_t min_rows = 4 * (uint64_t)parts, reach = plan->integer.reach;
    if (rows >= min_rows && part->use_integers && !plan->tile && width > 3 * reach) {
        const uint64_t end = y0 + gf_share(rows, index + 1, parts);
        for (uint64_t y = y0 + gf_share(rows, index, parts), next; y < end; y = next) {
            next = gf_min(end, y + ENDS_ROWS);
            if (reach > 0) {
                smooth_row_ends(part, y, next - y, 0, reach);
                smooth_row_ends(part, y, next - y, width - reach, width);
            }
            for (uint64_t i = y; i < next; i++)
                smooth_row_pieces(part, i, 0, width, true);
        }
        return;
    }
    const uint64_t max = (width - 1) / MIN_CUT + 1;
    const uint32_t cuts = rows < min_rows ? (uint32_t)gf_min(min_rows / rows + 1, max) : 1;
    const uint64_t last = gf_share(rows * cuts, index + 1, parts);
    for (uint64_t piece = gf_share(rows * cuts, index, parts); piece < last; piece++) {
        const uint32_t cut = (uint32_t)(piece % cuts);
        smooth_row_pieces(part, y0 + piece / cuts, gf_share(width, cut, cuts),
                          gf_share(width, cut + 1, cuts), false);
    }
}

/* ---- columns by integers or the chain -------------------------------------------------------- */

#define FALLBACK_ROWS 64 /* rows by the chain after a row with too many near-ties */

#define SEGMENT_SAMPLES 2048

/* Both axes: with more rows per segment of columns, they exceed the TLB. */
#define XY_ROWS 256
#define XY_ENDS_ROWS 32 /* rows per call of smooth_row_ends */

_Static_assert((XY_ENDS_ROWS + 2 * 3) * 3 * 3 * GF_MAX_CHANNELS <= ENDS_SAMPLES,
               "ends of rows must fit");

/* Compute rows [s, e) of pixels [left, right), which are inside the rows with integers along both
 * axes. */
static void smooth_column_range(const gf_smooth_part *part, uint64_t left, uint64_t right,
                                uint64_t s, uint64_t e) {
    const gf_format *format = &part->plan->head.in;
    const bool both = part->plan->axis == GF_SMOOTH_XY && part->use_integers;
    const uint64_t segment = (both ? GF_SMOOTH_XY_MAX : SEGMENT_SAMPLES) / format->channels;
    for (uint64_t x = left; x < right; x += segment) {
        const uint64_t pixels = gf_min(segment, right - x), n = pixels * format->channels;
        const bool integers = part->use_integers && n >= MIN_RUN;
        if (!integers)
            smooth_chain_columns(part, x, pixels, s, e);
        for (uint64_t y = s, in_s, in_e, end; integers && y < e; y = end) {
            end = smooth_inside(part->plan, format->height, y, e, &in_s, &in_e);
            smooth_chain_columns(part, x, pixels, y, in_s);
            while (in_s < in_e) {
                in_s = gf_smooth_u8_columns(&part->u8, part->in, part->out,
                                            (size_t)x * format->channels, (size_t)n, in_s, in_e);
                const uint64_t fallback = gf_min(in_e, in_s + FALLBACK_ROWS);
                smooth_chain_columns(part, x, pixels, in_s, fallback);
                in_s = fallback;
            }
            smooth_chain_columns(part, x, pixels, in_e, end);
        }
    }
}

/* Compute rows [s, e) of pixels [left, right) along both axes by integers, and by the chain where
 * windows are not inside the rows. */
static void smooth_both_axes(const gf_smooth_part *part, uint64_t left, uint64_t right, uint64_t s,
                             uint64_t e) {
    const uint64_t reach = part->plan->integer.reach, width = part->plan->head.in.width;
    const uint64_t first = gf_min(right, gf_max(left, reach));
    const uint64_t last = gf_max(first, gf_min(right, width - reach));
    for (uint64_t y = s, next; y < e; y = next) {
        next = gf_min(e, y + XY_ROWS);
        smooth_column_range(part, first, last, y, next);
        for (uint64_t i = y; i < next; i += XY_ENDS_ROWS) {
            const uint64_t rows = gf_min(XY_ENDS_ROWS, next - i);
            if (left < first)
                smooth_row_ends(part, i, rows, left, first);
            if (last < right)
                smooth_row_ends(part, i, rows, last, right);
        }
    }
}

/* Distribute columns over the parts: parts then share no halo rows. */
static void smooth_columns(const gf_smooth_part *part, uint32_t index, uint32_t parts) {
    const gf_smooth_plan *plan = part->plan;
    const uint64_t s = part->out->y0, width = plan->head.in.width;
    const bool both = plan->axis == GF_SMOOTH_XY && part->use_integers;
    (both ? smooth_both_axes : smooth_column_range)(part, gf_share(width, index, parts),
                                                    gf_share(width, index + 1, parts), s,
                                                    s + part->out->rows);
}

/* ---- one part of a strip --------------------------------------------------------------------- */

/* Return the floats in each of the two buffers of a row segment. */
static size_t smooth_segment_floats(const gf_smooth_plan *plan) {
    const size_t window = 2 * (plan->radius + plan->smooth) + 1;
    return smooth_align_floats(ROW_SEGMENT_SAMPLES + window * GF_MAX_CHANNELS + GF_SMOOTH_PAD);
}

/* Scratch layout: integer data, the two segment buffers, the ring. */
size_t gf_smooth_cpu_scratch(const gf_plan *head) {
    const gf_smooth_plan *plan = (const gf_smooth_plan *)head;
    size_t floats = 2 * smooth_segment_floats(plan);
    if (plan->axis != GF_SMOOTH_X)
        floats += (size_t)(smooth_ring_rows(plan) + MEAN_ROWS + 1) * smooth_ring_stride(plan);
    return gf_smooth_u8_bytes(plan) + floats * sizeof(float);
}

void gf_smooth_compute(const gf_smooth_simd *simd, const gf_plan *head, const gf_strip *strip,
                       uint32_t index, uint32_t parts, void *scratch) {
    const gf_smooth_plan *plan = (const gf_smooth_plan *)head;
    float *floats = (float *)(void *)((unsigned char *)scratch + gf_smooth_u8_bytes(plan));
    gf_smooth_part part = {.plan = plan,
                           .simd = simd,
                           .in = &strip->in[0],
                           .out = &strip->out,
                           .loaded = floats,
                           .blurred = floats + smooth_segment_floats(plan),
                           .ring = floats + 2 * smooth_segment_floats(plan),
                           .has_alpha = gf_has_alpha(&head->in)};
    /* Without blur the chain has no division and is as fast as integers. */
    part.use_integers = plan->radius > 0 && gf_smooth_u8_init(&part.u8, plan, simd, scratch) &&
                        (plan->axis != GF_SMOOTH_XY || head->in.width > 3 * plan->integer.reach);
    const size_t sample = gf_type_bytes(head->in.type), pixel = smooth_pixel_bytes(plan);
    for (size_t i = 0; i < sizeof part.alpha; i++)
        part.alpha[i] = i % pixel >= pixel - sample ? 0xff : 0;
    part.u8.alpha = part.has_alpha ? part.alpha : NULL;
    if (plan->axis == GF_SMOOTH_X)
        smooth_rows(&part, index, parts);
    else
        smooth_columns(&part, index, parts);
}
