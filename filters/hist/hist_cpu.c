/* The fast CPU implementation of hist: the pixels of a part in pieces that stay in the cache, each
 * of them counted, drawn and extracted.
 *
 * The samples of one bin are those from one value to another: they are extracted in one pass, to
 * the far end of the payload, because the number of positions, which come before the values, is
 * known only at the end. Samples of several bins are counted first, and then placed. */
#include <string.h>

#include "hist/hist_simd.h"

/* Rows are taken in pieces that stay in the cache: this much of what is measured, and as many
 * samples where their bins are needed. */
#define PIECE_BYTES (24u << 10)
#define PIECE_BINS 4096u

_Static_assert(PIECE_BYTES <= GF_HIST_ABOVE_MAX, "a piece must fit the loops");

/* The ways to count, the best first; each suits some types, numbers of bins and of samples. */
typedef enum gf_hist_way {
    WAY_ABOVE,  /* few bins: samples that reach each edge between them, without a table */
    WAY_VALUES, /* u8: how often each value comes, its bin afterwards */
    WAY_BINS,   /* bins in several small tables, so that equal neighbours need not wait */
    WAY_DIRECT  /* bins, straight to the counts */
} gf_hist_way;

/* Edges that WAY_ABOVE goes up to, whatever a SIMD level would like. */
#define MAX_EDGES 64

/* nth_of a bin that is not extracted. */
#define NOT_EXTRACTED 0xff

/* A thread's scratch. */
typedef struct gf_hist_scratch {
    unsigned char values[PIECE_BYTES];
    uint32_t bins[PIECE_BINS];
    /* Of each bin, and of the counters behind them: which of the extracted bins it is. 0 for all
     * bins with --extract all. */
    uint8_t nth_of[GF_HIST_MAX_BINS + 8];
    uint64_t counters[]; /* a state, if counts of the part alone are needed; and tables */
} gf_hist_scratch;

/* Some measured samples. */
typedef struct gf_hist_piece {
    const void *values;
    const uint32_t *bins; /* set where they are needed */
    size_t samples;
    uint64_t position; /* of the first one in the image */
    /* What will be read next, to be prefetched while this piece is counted: so many bytes for each
     * sample of it. It may lie beyond the image, where prefetching does no harm. NULL: the
     * processor itself foresees it. */
    const unsigned char *ahead;
    size_t ahead_bytes;
} gf_hist_piece;

/* A part of a strip on its way. */
typedef struct gf_hist_part {
    const gf_hist_plan *plan;
    const gf_hist_simd *simd;
    const gf_strip *strip;
    gf_hist_scratch *scratch;
    size_t sample_bytes;

    gf_hist_way way;
    uint64_t *counts; /* a state or a record */
    uint32_t *tables; /* counters that have not been added to the counts */
    uint64_t pixels;  /* counted there */
    uint32_t edge_count;
    /* Samples of the image's type. */
    _Alignas(float) unsigned char edges[MAX_EDGES * sizeof(float)];

    uint64_t *offsets, *positions; /* of the payload */
    unsigned char *values;
    /* Of the one bin: how many samples were taken, and from which value to which. */
    uint64_t taken;
    _Alignas(float) unsigned char range[2 * sizeof(float)];
} gf_hist_part;

/* Counts of the part say where its samples go, if they are of several bins. */
static uint64_t hist_own_counters(const gf_hist_plan *plan) {
    return plan->extracts > 1 && !plan->per_row ? gf_hist_counters(plan) : 0;
}

/* ---- which way to count ---------------------------------------------------------------------- */

/* Copies of a table for 1 to 4 measured channels: as many counters are touched before the same
 * value or bin may meet the same counter again. */
static const uint32_t copies_of[] = {0, 8, 4, 4, 2};

/* Counters from one table to the next: not a power of 2, so that they do not share cache sets, nor
 * a load wait for the store to another one. */
#define CELLS_SMALL 272
#define CELLS_LARGE 1040

static const uint32_t period_of[] = {GF_HIST_PERIOD_U8, GF_HIST_PERIOD_U16, GF_HIST_PERIOD_F32};

/* Count the edges between classes. The first class of f32 has one, too: NaN does not reach it. */
static uint32_t hist_edges(const gf_hist_plan *plan) {
    return plan->bins + (plan->ranged ? 2 : 0) - (plan->head.in.type != GF_F32);
}

static size_t hist_bin_cells(const gf_hist_plan *plan) {
    return plan->counters <= CELLS_SMALL ? CELLS_SMALL : CELLS_LARGE;
}

/* Counters in the tables of a way; SIZE_MAX if it does not suit the plan. */
static size_t hist_cells(const gf_hist_plan *plan, gf_hist_way way) {
    const size_t tables = (size_t)plan->measured * copies_of[plan->measured];
    const gf_type type = plan->head.in.type;
    switch (way) {
    case WAY_ABOVE:
        return hist_edges(plan) <= MAX_EDGES ? (size_t)hist_edges(plan) * period_of[type]
                                             : SIZE_MAX;
    case WAY_VALUES:
        return type == GF_U8 ? tables * CELLS_SMALL : SIZE_MAX;
    case WAY_BINS:
        return plan->counters <= CELLS_LARGE ? tables * hist_bin_cells(plan) : SIZE_MAX;
    default:
        return 0;
    }
}

size_t gf_hist_cpu_scratch(const gf_plan *head) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    size_t max = 0;
    for (gf_hist_way way = WAY_ABOVE; way < WAY_DIRECT; way++) {
        const size_t cells = hist_cells(plan, way);
        max = cells != SIZE_MAX && cells > max ? cells : max;
    }
    return sizeof(gf_hist_scratch) + (size_t)hist_own_counters(plan) * sizeof(uint64_t) +
           max * sizeof(uint32_t);
}

/* Choose the way to count so many pixels at a time. */
static void hist_choose_way(gf_hist_part *part, uint64_t pixels) {
    const gf_hist_plan *plan = part->plan;
    const gf_type type = plan->head.in.type;
    const bool few =
        hist_edges(plan) <= part->simd->max_edges[type] &&
        plan->head.in.width * plan->measured >= (uint64_t)part->simd->min_periods * period_of[type];
    part->way = few ? WAY_ABOVE : WAY_VALUES;
    /* Clearing and adding up the counters must not cost more than it saves. */
    while (hist_cells(plan, part->way) > pixels * plan->measured)
        part->way++;
    for (uint32_t e = 0; part->way == WAY_ABOVE && e < hist_edges(plan); e++) {
        const uint32_t key = gf_hist_edge(plan, e + (type != GF_F32));
        if (key == gf_hist_end_key(plan))
            break; /* no value reaches this edge, nor those above it */
        gf_put_sample(type, part->edges, e, gf_hist_value(plan, key));
        part->edge_count++;
    }
}

/* ---- counting -------------------------------------------------------------------------------- */

/* Counters of 32 bits: no more pixels than this go into them. */
#define FLUSH_PIXELS (UINT64_C(1) << 31)

#define LINE_BYTES 64 /* of the cache */

/* Sample i of an iteration has table i: channel i % measured, copy i / measured. */
#define COUNT(NAME, TYPE)                                                                          \
    GF_INLINE void NAME##_by(const gf_hist_piece *piece, const TYPE *values, const bool ask,       \
                             const uint32_t step, const uint32_t stride,                           \
                             uint32_t *restrict tables) {                                          \
        const unsigned char *ahead = piece->ahead;                                                 \
        const size_t n = piece->samples, bytes = step * piece->ahead_bytes;                        \
        size_t i = 0;                                                                              \
        for (; n - i >= step; i += step) {                                                         \
            if (ask) {                                                                             \
                __builtin_prefetch(ahead, 0, 2);                                                   \
                if (bytes > LINE_BYTES)                                                            \
                    __builtin_prefetch(ahead + LINE_BYTES, 0, 2);                                  \
                ahead += bytes;                                                                    \
            }                                                                                      \
            _Pragma("GCC unroll 12") for (uint32_t j = 0; j < step; j++)                           \
                tables[j * stride + values[i + j]]++;                                              \
        }                                                                                          \
        for (uint32_t j = 0; j < n - i; j++)                                                       \
            tables[j * stride + values[i + j]]++;                                                  \
    }                                                                                              \
    GF_INLINE void NAME(const gf_hist_piece *piece, const TYPE *values, uint32_t step,             \
                        const uint32_t stride, uint32_t *tables) {                                 \
        if (step == 8 && piece->ahead)                                                             \
            NAME##_by(piece, values, true, 8, stride, tables);                                     \
        else if (step == 8)                                                                        \
            NAME##_by(piece, values, false, 8, stride, tables);                                    \
        else if (piece->ahead)                                                                     \
            NAME##_by(piece, values, true, 12, stride, tables);                                    \
        else                                                                                       \
            NAME##_by(piece, values, false, 12, stride, tables);                                   \
    }

COUNT(hist_count_values, uint8_t)
COUNT(hist_count_bins, uint32_t)

static void hist_count_direct(const gf_hist_part *part, const gf_hist_piece *piece) {
    const uint32_t *bins = piece->bins, measured = part->plan->measured;
    const uint64_t channel = part->plan->counters;
    uint64_t *counts = part->counts;
    if (measured == 1) {
        for (size_t i = 0; i < piece->samples; i++)
            counts[bins[i]]++;
        return;
    }
    for (size_t i = 0; i < piece->samples; i += measured)
        for (uint32_t s = 0; s < measured; s++)
            counts[s * channel + bins[i + s]]++;
}

/* Counts go to a state or a record, which has been cleared. */
static void hist_begin_counts(gf_hist_part *part, uint64_t *counts) {
    part->counts = counts;
    part->pixels = 0;
    memset(part->tables, 0, hist_cells(part->plan, part->way) * sizeof(uint32_t));
}

/* The counter of the class below edge e, or behind the last. */
static uint32_t hist_counter_below(const gf_hist_plan *plan, uint32_t e) {
    if (plan->head.in.type == GF_F32 && e-- == 0)
        return plan->bins + GF_HIST_AT_NAN;
    if (!plan->ranged)
        return e;
    return e == 0            ? plan->bins + GF_HIST_AT_BELOW
           : e <= plan->bins ? e - 1
                             : plan->bins + GF_HIST_AT_ABOVE;
}

static void hist_add_above(const gf_hist_part *part, uint32_t s, uint64_t *counts) {
    const gf_hist_plan *plan = part->plan;
    const uint32_t period = period_of[plan->head.in.type], edges = hist_edges(plan);
    uint64_t below = part->pixels; /* that reach the edge below */
    for (uint32_t e = 0; e < edges; e++) {
        uint64_t above = 0;
        for (uint32_t j = s; e < part->edge_count && j < period; j += plan->measured)
            above += part->tables[(size_t)e * period + j];
        counts[hist_counter_below(plan, e)] += below - above;
        below = above;
    }
    counts[hist_counter_below(plan, edges)] += below;
}

/* bins: of each value; NULL where the tables are of bins. */
static void hist_add_tables(const gf_hist_part *part, uint32_t s, const uint32_t *bins, uint32_t n,
                            size_t stride, uint64_t *counts) {
    const uint32_t measured = part->plan->measured;
    for (uint32_t v = 0; v < n; v++) {
        uint64_t sum = 0;
        for (uint32_t j = s; j < measured * copies_of[measured]; j += measured)
            sum += part->tables[j * stride + v];
        counts[bins ? bins[v] : v] += sum;
    }
}

static void hist_end_counts(const gf_hist_part *part) {
    const gf_hist_plan *plan = part->plan;
    uint32_t bins[256];
    if (part->way == WAY_VALUES) {
        uint8_t values[256];
        for (int v = 0; v < 256; v++)
            values[v] = (uint8_t)v;
        part->simd->bins[GF_U8](plan, values, 256, bins);
    }
    for (uint32_t s = 0; s < plan->measured; s++) {
        uint64_t *counts = part->counts + (size_t)s * plan->counters;
        if (part->way == WAY_ABOVE)
            hist_add_above(part, s, counts);
        else if (part->way == WAY_VALUES)
            hist_add_tables(part, s, bins, 256, CELLS_SMALL, counts);
        else if (part->way == WAY_BINS)
            hist_add_tables(part, s, NULL, plan->counters, hist_bin_cells(plan), counts);
    }
}

static void hist_count(gf_hist_part *part, const gf_hist_piece *piece) {
    const gf_hist_plan *plan = part->plan;
    const uint32_t step = plan->measured * copies_of[plan->measured];
    switch (part->way) {
    case WAY_ABOVE:
        part->simd->above[plan->head.in.type](piece->values, piece->samples, part->edges,
                                              part->edge_count, part->tables);
        break;
    case WAY_VALUES:
        hist_count_values(piece, piece->values, step, CELLS_SMALL, part->tables);
        break;
    case WAY_BINS:
        if (hist_bin_cells(plan) == CELLS_SMALL)
            hist_count_bins(piece, piece->bins, step, CELLS_SMALL, part->tables);
        else
            hist_count_bins(piece, piece->bins, step, CELLS_LARGE, part->tables);
        break;
    default:
        hist_count_direct(part, piece);
        break;
    }
    part->pixels += piece->samples / plan->measured;
    if (part->pixels >= FLUSH_PIXELS) {
        hist_end_counts(part);
        hist_begin_counts(part, part->counts);
    }
}

/* ---- extraction ------------------------------------------------------------------------------ */

static void hist_number_bins(const gf_hist_plan *plan, uint8_t *nth_of) {
    memset(nth_of, NOT_EXTRACTED, plan->counters);
    if (plan->extract_all)
        memset(nth_of, 0, plan->bins);
    for (uint32_t i = 0; i < plan->extracts && !plan->extract_all; i++)
        nth_of[plan->listed[i]] = (uint8_t)i;
}

/* most: samples of the part. */
static void hist_begin_extraction(gf_hist_part *part, uint64_t max) {
    const gf_hist_plan *plan = part->plan;
    const gf_type type = plan->head.in.type;
    hist_number_bins(plan, part->scratch->nth_of);
    part->positions = part->offsets + plan->extracts + 1;
    memset(part->offsets, 0, gf_hist_head_bytes(plan));
    if (plan->extracts > 1)
        return;
    part->values = (unsigned char *)(part->positions + max);
    const uint32_t first = gf_hist_edge(plan, gf_hist_extracted_class(plan));
    const uint32_t end = gf_hist_edge(plan, gf_hist_extracted_class(plan) + 1);
    /* An empty range is that from 1 to 0. */
    gf_put_sample(type, part->range, 0, first < end ? gf_hist_value(plan, first) : 1);
    gf_put_sample(type, part->range, 1, first < end ? gf_hist_value(plan, end - 1) : 0);
}

/* Extract the samples of the one bin. */
static void hist_take(gf_hist_part *part, const gf_hist_piece *piece) {
    part->taken += part->simd->select[part->plan->head.in.type](
        piece->values, piece->samples, part->range, piece->position, part->positions + part->taken,
        part->values + part->taken * part->sample_bytes);
}

/* Several bins: add counts of the part, a state or some records. offsets[i] counts bin i - 1, and
 * later is where bin i goes on. */
static void hist_add_offsets(const gf_hist_part *part, const uint64_t *counts) {
    const gf_hist_plan *plan = part->plan;
    for (uint32_t s = 0; s < plan->measured; s++, counts += plan->counters)
        for (uint32_t i = 0; i < plan->extracts; i++)
            part->offsets[i + 1] += counts[plan->extract_all ? i : plan->listed[i]];
}

/* Find which samples are extracted, without a branch to guess; returns how many. */
static size_t hist_find(const uint8_t *nth_of, const gf_hist_piece *piece, uint32_t *found) {
    size_t n = 0;
    for (uint32_t i = 0; i < piece->samples; i++) {
        found[n] = i;
        n += nth_of[piece->bins[i]] != NOT_EXTRACTED;
    }
    return n;
}

/* Place n samples of `bytes` bytes each. */
GF_INLINE void hist_place_by(const gf_hist_part *part, const gf_hist_piece *piece,
                             const uint32_t *found, size_t n, const size_t bytes) {
    const bool all = part->plan->extract_all;
    const uint8_t *nth_of = part->scratch->nth_of;
    const unsigned char *from = piece->values;
    unsigned char *to = part->values;
    uint64_t *offsets = part->offsets, *positions = part->positions;
    for (size_t k = 0; k < n; k++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): hist_find() has written n */
        const uint32_t i = found[k], bin = piece->bins[i];
        const uint64_t place = offsets[all ? bin : nth_of[bin]]++;
        positions[place] = piece->position + i;
        memcpy(to + place * bytes, from + i * bytes, bytes);
    }
}

static void hist_place(const gf_hist_part *part, const gf_hist_piece *piece, const uint32_t *found,
                       size_t n) {
    if (part->sample_bytes == 1)
        hist_place_by(part, piece, found, n, 1);
    else if (part->sample_bytes == 2)
        hist_place_by(part, piece, found, n, 2);
    else
        hist_place_by(part, piece, found, n, 4);
}

static void hist_end_extraction(const gf_hist_part *part) {
    if (part->plan->extracts == 1) {
        part->offsets[1] = part->taken;
        memmove(part->positions + part->taken, part->values, part->taken * part->sample_bytes);
        return;
    }
    /* Every bin has moved on to where the next one begins. */
    memmove(part->offsets + 1, part->offsets, gf_hist_head_bytes(part->plan) - sizeof(uint64_t));
    part->offsets[0] = 0;
}

/* ---- mask ------------------------------------------------------------------------------------ */

/* Is any of a pixel's samples in an extracted bin? 1 or 0 for each pixel. */
static void hist_find_pixels(const uint8_t *nth_of, const gf_hist_piece *piece, uint32_t measured,
                             uint8_t *drawn) {
    const uint32_t *bins = piece->bins;
    for (size_t i = 0; i < piece->samples; i += measured) {
        uint32_t any = 0;
        for (uint32_t s = 0; s < measured; s++)
            any |= nth_of[bins[i + s]] != NOT_EXTRACTED;
        *drawn++ = (uint8_t)any;
    }
}

/* All of a pixel or nothing, again without a branch; alpha, if it is new, is all ones or nothing.
 * in, out: bytes of a pixel. */
GF_INLINE void hist_draw_by(const unsigned char *from, unsigned char *to, const uint8_t *drawn,
                            size_t n, const size_t in, const size_t out) {
    for (size_t i = 0; i < n; i++, from += in, to += out) {
        /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): n are drawn */
        const uint8_t bits = (uint8_t)(0 - drawn[i]);
        _Pragma("GCC unroll 12") for (size_t b = 0; b < out; b++) to[b] =
            b < in ? from[b] & bits : bits;
    }
}

static void hist_draw(const unsigned char *from, unsigned char *to, const uint8_t *drawn, size_t n,
                      size_t in, size_t out) {
    if (in == 3 && out == 4)
        hist_draw_by(from, to, drawn, n, 3, 4);
    else if (in == 4 && out == 4)
        hist_draw_by(from, to, drawn, n, 4, 4);
    else if (in == 6 && out == 8)
        hist_draw_by(from, to, drawn, n, 6, 8);
    else if (in == 12 && out == 12)
        hist_draw_by(from, to, drawn, n, 12, 12);
    else
        hist_draw_by(from, to, drawn, n, in, out);
}

/* ---- a part of a strip ------------------------------------------------------------------------
 */

/* Pixels [x, x + n) of row y. */
static gf_hist_piece hist_load(const gf_hist_part *part, uint64_t y, uint64_t x, size_t n,
                               bool bins) {
    const gf_hist_plan *plan = part->plan;
    const gf_format *format = &plan->head.in;
    const size_t pixel = format->channels * part->sample_bytes;
    const unsigned char *pixels = gf_row(&part->strip->in, y) + x * pixel;
    const bool gathers = plan->luma || plan->measured < format->channels;
    gf_hist_piece piece = {.values = pixels,
                           .bins = part->scratch->bins,
                           .samples = n * plan->measured,
                           .position = (y * format->width + x) * plan->measured,
                           .ahead_bytes = pixel / plan->measured};
    if (bins || gathers)
        piece.ahead = pixels + n * pixel; /* a copy or bins are counted: memory is idle then */
    if (gathers) {
        part->simd->gather[format->type](plan, pixels, n, part->scratch->values);
        piece.values = part->scratch->values;
    }
    if (bins)
        part->simd->bins[format->type](plan, piece.values, piece.samples, part->scratch->bins);
    return piece;
}

static uint64_t hist_piece_pixels(const gf_hist_part *part, bool bins) {
    const uint64_t samples = PIECE_BYTES / part->sample_bytes;
    return (bins && samples > PIECE_BINS ? PIECE_BINS : samples) / part->plan->measured;
}

/* Count, draw and extract one piece. */
static void hist_visit(gf_hist_part *part, uint64_t y, uint64_t x, size_t n, bool bins) {
    const gf_hist_plan *plan = part->plan;
    const size_t in = plan->head.in.channels * part->sample_bytes;
    const size_t out = plan->head.out.channels * part->sample_bytes;
    const gf_hist_piece piece = hist_load(part, y, x, n, bins);
    hist_count(part, &piece);
    if (bins && plan->mask) {
        uint8_t drawn[PIECE_BINS];
        hist_find_pixels(part->scratch->nth_of, &piece, plan->measured, drawn);
        hist_draw(gf_row(&part->strip->in, y) + x * in, gf_row(&part->strip->out, y) + x * out,
                  drawn, n, in, out);
    }
    if (plan->extracts == 1)
        hist_take(part, &piece);
}

/* Pixels [from, to) of the strip, counted through its rows. With --per-row, counts are those of the
 * row, and rows are whole. */
static void hist_visit_pixels(gf_hist_part *part, uint64_t from, uint64_t to, uint64_t *counts) {
    const gf_hist_plan *plan = part->plan;
    const uint64_t width = plan->head.in.width;
    const bool bins = part->way >= WAY_BINS || plan->mask;
    const uint64_t max = hist_piece_pixels(part, bins);
    if (!plan->per_row)
        hist_begin_counts(part, counts);
    while (from < to) {
        const uint64_t y = part->strip->out.y0 + from / width, x = from % width;
        uint64_t n = width - x < max ? width - x : max;
        if (n > to - from)
            n = to - from;
        if (plan->per_row && x == 0) {
            counts = gf_record(&plan->head, &part->strip->out, y);
            memset(counts, 0, plan->head.record);
            hist_begin_counts(part, counts);
        }
        hist_visit(part, y, x, (size_t)n, bins);
        from += n;
        if (plan->per_row && x + n == width) {
            hist_end_counts(part);
            if (plan->extracts > 1)
                hist_add_offsets(part, counts);
        }
    }
    if (!plan->per_row)
        hist_end_counts(part);
}

/* Rows [begin, end) again: place the samples of several bins, which have been counted. */
static void hist_place_rows(gf_hist_part *part, uint64_t begin, uint64_t end) {
    const gf_hist_plan *plan = part->plan;
    const uint64_t width = plan->head.in.width, max = hist_piece_pixels(part, true);
    uint32_t found[PIECE_BINS];
    for (uint32_t i = 0; i < plan->extracts; i++)
        part->offsets[i + 1] += part->offsets[i];
    part->values = (unsigned char *)(part->positions + part->offsets[plan->extracts]);
    for (uint64_t y = begin; y < end; y++)
        for (uint64_t x = 0; x < width; x += max) {
            const uint64_t n = width - x < max ? width - x : max;
            const gf_hist_piece piece = hist_load(part, y, x, (size_t)n, true);
            hist_place(part, &piece, found, hist_find(part->scratch->nth_of, &piece, found));
        }
}

void gf_hist_compute(const gf_hist_simd *simd, const gf_plan *head, const gf_strip *strip,
                     uint32_t index, uint32_t parts, void *memory) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    gf_hist_scratch *scratch = memory;
    const uint64_t width = head->in.width, rows = strip->out.rows;
    const uint64_t begin = gf_share(rows, index, parts), end = gf_share(rows, index + 1, parts);
    uint64_t from = begin * width, to = end * width;
    /* Where rows must stay whole they do; otherwise wide rows are shared by many threads. */
    if (!plan->per_row && !plan->extracts) {
        from = gf_share(rows * width, index, parts);
        to = gf_share(rows * width, index + 1, parts);
    }
    const uint64_t own_counters = hist_own_counters(plan);
    uint64_t *own = scratch->counters, *state = strip->state;
    gf_hist_part part = {.plan = plan,
                         .simd = simd,
                         .strip = strip,
                         .scratch = scratch,
                         .sample_bytes = gf_type_bytes(head->in.type),
                         .tables = (uint32_t *)(own + own_counters),
                         .offsets = strip->payload};
    const uint32_t extracts = plan->extracts;
    hist_choose_way(&part, plan->per_row ? width : to - from);
    if (extracts > 0)
        hist_begin_extraction(&part, (to - from) * plan->measured);
    memset(own, 0, (size_t)own_counters * sizeof *own);
    hist_visit_pixels(&part, from, to, own_counters ? own : state);
    if (own_counters)
        hist_add_offsets(&part, own);
    for (uint64_t i = 0; i < own_counters; i++)
        state[i] += own[i];
    if (extracts > 1)
        hist_place_rows(&part, strip->out.y0 + begin, strip->out.y0 + end);
    if (extracts > 0)
        hist_end_extraction(&part);
}
