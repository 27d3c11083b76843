/* Fast CPU implementation of hist. Each part of a strip is counted, masked and extracted in pieces
 * that stay in the cache.
 *
 * The values of one bin form an interval, and its samples are extracted in one pass. Their values
 * are written to the end of the payload, because the positions come first and their number is known
 * only at the end. Samples of several bins are counted first and then scattered.
 *
 * Statistics need counts of values. They replace the counts of bins if the plan is folded, and are
 * counted from the same piece otherwise. */
#include <string.h>

#include "hist/hist_simd.h"

/* Size of a piece: bytes of measured samples; samples where bins are computed. */
#define PIECE_BYTES (24u << 10)
#define PIECE_BINS 4096u

_Static_assert(PIECE_BYTES <= GF_HIST_ABOVE_MAX, "a piece must fit the loops");

/* Counting methods, fastest first. Each supports some types and numbers of bins and samples. */
typedef enum gf_hist_method {
    METHOD_EDGES,  /* few bins: count the samples at or above each edge, without a table */
    METHOD_VALUES, /* u8: count values, then map them to bins */
    METHOD_BINS,   /* several small tables of bins: equal neighbours increment different tables */
    METHOD_DIRECT  /* increment the counts directly */
} gf_hist_method;

/* Max edges of METHOD_EDGES at every SIMD level. */
#define MAX_EDGES 64

/* Entry of nth_of for a bin that is not extracted. */
#define NOT_EXTRACTED 0xff

/* Scratch memory of one thread. */
typedef struct gf_hist_scratch {
    unsigned char values[PIECE_BYTES];
    uint32_t bins[PIECE_BINS];
    /* Index of each counter among the extracted bins; 0 for all bins with --extract all. */
    uint8_t nth_of[GF_HIST_MAX_BINS + 8];
    uint64_t counters[]; /* local counts of the part, if needed; lanes; tables of both counters */
} gf_hist_scratch;

/* A run of measured samples. */
typedef struct gf_hist_piece {
    const void *values;
    uint32_t *bins; /* valid if the caller requested bins; otherwise memory for them */
    size_t samples;
    uint64_t position; /* of the first sample in the image */
    /* Memory to prefetch while this piece is counted: prefetch_bytes per sample of the piece. May
     * extend past the image, where prefetching is harmless. NULL: left to the hardware
     * prefetcher. */
    const unsigned char *prefetch;
    size_t prefetch_bytes;
} gf_hist_piece;

/* Counting of bins or values. */
typedef struct gf_hist_counter {
    const gf_hist_plan *plan; /* may be a gf_hist_value_plan */
    const gf_hist_simd *simd;
    gf_hist_method method;
    uint64_t *counts; /* of a state or a record */
    uint32_t *tables; /* counters not yet added to counts */
    uint64_t pixels;  /* number of pixels counted in tables */
    uint64_t inside;  /* .. of them in pieces without samples outside */
    uint32_t edge_count;
    /* samples of the image's type */
    _Alignas(float) unsigned char edges[MAX_EDGES * sizeof(float)];
} gf_hist_counter;

/* State of one part of a strip. */
typedef struct gf_hist_part {
    const gf_hist_plan *plan;
    const gf_hist_simd *simd;
    const gf_strip *strip;
    gf_hist_scratch *scratch;
    size_t sample_bytes;
    gf_hist_counter counter; /* counts bins, or values if the plan is folded */
    gf_hist_counter further; /* counts values in addition; plan NULL: unused */
    gf_hist_lanes lanes;     /* sums of the current row */

    uint64_t *offsets, *positions; /* in the payload */
    unsigned char *values;
    /* Extraction of one bin: number of samples so far, and the first and last value of the bin. */
    uint64_t extracted;
    _Alignas(float) unsigned char range[2 * sizeof(float)];
} gf_hist_part;

/* Return the number of local counters. Extraction of several bins needs the counts of the part. */
static uint64_t hist_local_counters(const gf_hist_plan *plan) {
    return plan->extracts > 1 && !plan->per_row ? gf_hist_counters(plan) : 0;
}

/* ---- choice of the counting method ----------------------------------------------------------- */

/* Copies of a table, for 1 to 4 measured channels. Equal neighbouring values increment different
 * copies. */
static const uint32_t copies_of[] = {0, 8, 4, 4, 2};

/* Counters per table. Not powers of 2: tables then share no cache sets, and a load does not wait
 * for a store to another table. */
#define CELLS_SMALL 272
#define CELLS_LARGE 1040

/* Edges of f32 below all bins: -infinity, which excludes NaN, and lo. */
#define EDGES_BELOW 2

/* Count the edges between classes. f32 has one more, to exclude NaN. */
static uint32_t hist_edges(const gf_hist_plan *plan) {
    return plan->outside ? plan->bins + 1 + (plan->head.in.type == GF_F32) : plan->bins - 1;
}

/* Count the edges between bins, which suffice for pieces without samples outside. */
static uint32_t hist_inner_edges(const gf_hist_plan *plan) {
    return plan->clamps ? plan->bins - 1 : hist_edges(plan);
}

static size_t hist_bin_cells(const gf_hist_plan *plan) {
    return plan->counters <= CELLS_SMALL ? CELLS_SMALL : CELLS_LARGE;
}

/* Return the number of table counters of a method, or SIZE_MAX if it does not support the plan. */
static size_t hist_cells(const gf_hist_plan *plan, gf_hist_method method) {
    const size_t tables = (size_t)plan->measured * copies_of[plan->measured];
    const gf_type type = plan->head.in.type;
    switch (method) {
    case METHOD_EDGES:
        return hist_edges(plan) <= MAX_EDGES ? hist_edges(plan) * gf_hist_period(type) : SIZE_MAX;
    case METHOD_VALUES:
        return type == GF_U8 ? tables * CELLS_SMALL : SIZE_MAX;
    case METHOD_BINS:
        return plan->counters <= CELLS_LARGE ? tables * hist_bin_cells(plan) : SIZE_MAX;
    default:
        return 0;
    }
}

/* Return the max number of table counters of all methods. */
static size_t hist_max_cells(const gf_hist_plan *plan) {
    size_t max = 0;
    for (gf_hist_method method = METHOD_EDGES; method < METHOD_DIRECT; method++) {
        const size_t cells = hist_cells(plan, method);
        max = cells != SIZE_MAX && cells > max ? cells : max;
    }
    return max;
}

static size_t hist_lane_count(const gf_hist_plan *plan) {
    return plan->row_sums ? (size_t)GF_LANES * plan->measured : 0;
}

size_t gf_hist_cpu_scratch(const gf_plan *head) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    const gf_hist_plan values = gf_hist_value_plan(plan);
    return sizeof(gf_hist_scratch) + (size_t)hist_local_counters(plan) * sizeof(uint64_t) +
           hist_lane_count(plan) * GF_HIST_LANE_BYTES +
           (hist_max_cells(plan) + (plan->values ? hist_max_cells(&values) : 0)) * sizeof(uint32_t);
}

/* Choose the method for counting `pixels` pixels between two flushes. */
static void hist_choose_method(gf_hist_counter *counter, uint64_t pixels) {
    const gf_hist_plan *plan = counter->plan;
    const gf_type type = plan->head.in.type;
    const bool few =
        gf_hist_nodata(plan) == UINT32_MAX &&
        hist_inner_edges(plan) <= counter->simd->max_edges[type] &&
        plan->head.in.width * plan->measured >= counter->simd->min_periods * gf_hist_period(type);
    counter->method = few ? METHOD_EDGES : METHOD_VALUES;
    /* Clearing and adding up the counters must not cost more than it saves. */
    while (hist_cells(plan, counter->method) > pixels * plan->measured)
        counter->method++;
    for (uint32_t e = 0; counter->method == METHOD_EDGES && e < hist_edges(plan); e++) {
        const uint32_t key = gf_hist_edge(plan, e + (type != GF_F32));
        if (key == gf_hist_end_key(plan))
            break; /* no value reaches this edge or those above it */
        gf_put_sample(type, counter->edges, e, gf_hist_value(plan, key));
        counter->edge_count++;
    }
}

/* ---- counting -------------------------------------------------------------------------------- */

/* Pixels between two flushes: table counters have 32 bits. */
#define FLUSH_PIXELS (UINT64_C(1) << 31)

#define LINE_BYTES 64 /* cache line */

/* Count the bins of a piece, or its u8 values. Sample i of an iteration uses table i: channel
 * i % measured, copy i / measured. */
GF_INLINE void hist_count_n(const gf_hist_piece *piece, const bool bins, const bool prefetching,
                            const uint32_t step, const uint32_t stride, uint32_t *restrict tables) {
    const unsigned char *prefetch = piece->prefetch;
    const uint8_t *values = piece->values;
    const uint32_t *wide = piece->bins;
    const size_t n = piece->samples, bytes = step * piece->prefetch_bytes;
    size_t i = 0;
    for (; n - i >= step; i += step) {
        if (prefetching) {
            __builtin_prefetch(prefetch, 0, 2);
            if (bytes > LINE_BYTES)
                __builtin_prefetch(prefetch + LINE_BYTES, 0, 2);
            prefetch += bytes;
        }
        _Pragma("GCC unroll 12") for (uint32_t j = 0; j < step; j++)
            tables[j * stride + (bins ? wide[i + j] : values[i + j])]++;
    }
    for (uint32_t j = 0; j < n - i; j++)
        tables[j * stride + (bins ? wide[i + j] : values[i + j])]++;
}

GF_INLINE void hist_count_tables(const gf_hist_piece *piece, const bool bins, uint32_t step,
                                 const uint32_t stride, uint32_t *tables) {
    if (step == 8 && piece->prefetch)
        hist_count_n(piece, bins, true, 8, stride, tables);
    else if (step == 8)
        hist_count_n(piece, bins, false, 8, stride, tables);
    else if (piece->prefetch)
        hist_count_n(piece, bins, true, 12, stride, tables);
    else
        hist_count_n(piece, bins, false, 12, stride, tables);
}

static void hist_find_bins(const gf_hist_simd *simd, const gf_hist_plan *plan, const void *values,
                           size_t n, uint32_t *bins) {
    const uint32_t nodata = gf_hist_nodata(plan);
    simd->bins(plan, values, n, bins);
    for (size_t i = 0; nodata != UINT32_MAX && i < n; i++)
        if (gf_sample_bits(plan->head.in.type, values, i) == nodata)
            bins[i] = plan->bins + GF_HIST_AT_NAN;
}

static void hist_count_direct(const gf_hist_counter *counter, const gf_hist_piece *piece) {
    const uint32_t *bins = piece->bins, measured = counter->plan->measured;
    const uint64_t channel = counter->plan->counters;
    const size_t n = piece->samples;
    uint64_t *counts = counter->counts;
    if (measured == 1) {
        for (size_t i = 0; i < n; i++)
            counts[bins[i]]++;
        return;
    }
    for (size_t i = 0; i < n; i += measured)
        for (uint32_t s = 0; s < measured; s++)
            counts[s * channel + bins[i + s]]++;
}

/* Start counting into a state or a record. The caller has cleared it. */
static void hist_begin_counts(gf_hist_counter *counter, uint64_t *counts) {
    counter->counts = counts;
    counter->pixels = counter->inside = 0;
    memset(counter->tables, 0, hist_cells(counter->plan, counter->method) * sizeof(uint32_t));
}

/* Return the counter of the class below edge e, or of the last class if e is the number of
 * edges. */
static uint32_t hist_counter_below(const gf_hist_plan *plan, uint32_t e) {
    if (!plan->outside)
        return e;
    if (plan->head.in.type == GF_F32 && e-- == 0)
        return plan->bins + GF_HIST_AT_NAN;
    return e == 0            ? plan->bins + GF_HIST_AT_BELOW
           : e <= plan->bins ? e - 1
                             : plan->bins + GF_HIST_AT_ABOVE;
}

static void hist_add_above(const gf_hist_counter *counter, uint32_t s, uint64_t *counts) {
    const gf_hist_plan *plan = counter->plan;
    const size_t period = gf_hist_period(plan->head.in.type);
    const uint32_t edges = hist_edges(plan);
    uint64_t below = counter->pixels; /* samples at or above the edge below */
    for (uint32_t e = 0; e < edges; e++) {
        uint64_t above = e < EDGES_BELOW ? counter->inside : 0;
        for (size_t j = s; e < counter->edge_count && j < period; j += plan->measured)
            above += counter->tables[e * period + j];
        counts[hist_counter_below(plan, e)] += below - above;
        below = above;
    }
    counts[hist_counter_below(plan, edges)] += below;
}

/* Add the tables of channel s to counts. bins: bin of each value; NULL for tables of bins. */
static void hist_add_tables(const gf_hist_counter *counter, uint32_t s, const uint32_t *bins,
                            uint32_t n, size_t stride, uint64_t *counts) {
    const uint32_t measured = counter->plan->measured;
    for (uint32_t v = 0; v < n; v++) {
        uint64_t sum = 0;
        for (uint32_t j = s; j < measured * copies_of[measured]; j += measured)
            sum += counter->tables[j * stride + v];
        counts[bins ? bins[v] : v] += sum;
    }
}

static void hist_end_counts(const gf_hist_counter *counter) {
    const gf_hist_plan *plan = counter->plan;
    uint32_t bins[256];
    if (counter->method == METHOD_VALUES) {
        uint8_t values[256];
        for (int v = 0; v < 256; v++)
            values[v] = (uint8_t)v;
        hist_find_bins(counter->simd, plan, values, sizeof values, bins);
    }
    for (uint32_t s = 0; s < plan->measured; s++) {
        uint64_t *counts = counter->counts + (size_t)s * plan->counters;
        if (counter->method == METHOD_EDGES)
            hist_add_above(counter, s, counts);
        else if (counter->method == METHOD_VALUES)
            hist_add_tables(counter, s, bins, 256, CELLS_SMALL, counts);
        else if (counter->method == METHOD_BINS)
            hist_add_tables(counter, s, NULL, plan->counters, hist_bin_cells(plan), counts);
    }
}

static void hist_count(gf_hist_counter *counter, const gf_hist_piece *piece) {
    const gf_hist_plan *plan = counter->plan;
    const gf_type type = plan->head.in.type;
    const uint32_t step = plan->measured * copies_of[plan->measured];
    switch (counter->method) {
    case METHOD_EDGES: {
        const bool inside = plan->clamps && counter->simd->inside(piece->values, piece->samples);
        const size_t below = inside ? EDGES_BELOW : 0;
        counter->inside += inside ? piece->samples / plan->measured : 0;
        counter->simd->above[type](piece->values, piece->samples,
                                   counter->edges + below * gf_type_bytes(type),
                                   inside ? hist_inner_edges(plan) : counter->edge_count,
                                   counter->tables + below * gf_hist_period(type));
        break;
    }
    case METHOD_VALUES:
        hist_count_tables(piece, false, step, CELLS_SMALL, counter->tables);
        break;
    case METHOD_BINS:
        if (hist_bin_cells(plan) == CELLS_SMALL)
            hist_count_tables(piece, true, step, CELLS_SMALL, counter->tables);
        else
            hist_count_tables(piece, true, step, CELLS_LARGE, counter->tables);
        break;
    default:
        hist_count_direct(counter, piece);
        break;
    }
    counter->pixels += piece->samples / plan->measured;
    if (counter->pixels >= FLUSH_PIXELS) {
        hist_end_counts(counter);
        hist_begin_counts(counter, counter->counts);
    }
}

/* ---- extraction ------------------------------------------------------------------------------ */

/* Prepare the payload. max: number of samples in the part. */
static void hist_begin_extraction(gf_hist_part *part, uint64_t max) {
    const gf_hist_plan *plan = part->plan;
    const gf_type type = plan->head.in.type;
    uint8_t *nth_of = part->scratch->nth_of;
    memset(nth_of, NOT_EXTRACTED, plan->counters);
    if (plan->extract_all)
        memset(nth_of, 0, plan->bins);
    for (uint32_t i = 0; i < plan->extracts && !plan->extract_all; i++)
        nth_of[plan->listed[i]] = (uint8_t)i;
    for (uint32_t i = plan->bins; i < plan->counters; i++)
        nth_of[i] = nth_of[gf_hist_clamp(i, plan->bins, plan->ranged)];
    part->positions = part->offsets + plan->extracts + 1;
    memset(part->offsets, 0, gf_hist_head_bytes(plan));
    if (plan->extracts > 1)
        return;
    part->values = (unsigned char *)(part->positions + max);
    uint32_t first, end;
    gf_hist_extracted_keys(plan, &first, &end);
    /* Encode an empty interval as 1..0. */
    gf_put_sample(type, part->range, 0, first < end ? gf_hist_value(plan, first) : 1);
    gf_put_sample(type, part->range, 1, first < end ? gf_hist_value(plan, end - 1) : 0);
}

/* Extract the samples of a single bin from one piece, without those that have the nodata value. */
static void hist_extract_piece(gf_hist_part *part, const gf_hist_piece *piece) {
    const size_t bytes = part->sample_bytes;
    const uint32_t nodata = gf_hist_nodata(part->plan);
    const gf_type type = part->plan->head.in.type;
    uint64_t *positions = part->positions + part->extracted, kept = 0;
    unsigned char *values = part->values + part->extracted * bytes;
    const gf_hist_selection selection = {part->range, piece->position, positions, values};
    const uint64_t n = part->simd->select(type, piece->values, piece->samples, &selection);
    for (uint64_t i = 0; nodata != UINT32_MAX && i < n; i++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): set if bins are extracted */
        positions[kept] = positions[i];
        memmove(values + kept * bytes, values + i * bytes, bytes);
        kept += gf_sample_bits(type, values, i) != nodata;
    }
    part->extracted += nodata == UINT32_MAX ? n : kept;
}

/* Several bins: add the counts of the part, from a state or from records. offsets[i + 1] holds the
 * count of bin i here, and later the end of its samples. */
static void hist_add_offsets(const gf_hist_part *part, const uint64_t *counts) {
    const gf_hist_plan *plan = part->plan;
    for (uint32_t s = 0; s < plan->measured; s++, counts += plan->counters)
        for (uint32_t i = 0; i < plan->extracts; i++)
            part->offsets[i + 1] += gf_hist_count(plan, counts, gf_hist_nth_bin(plan, i));
}

/* Write the extracted samples of a piece to the offsets of their bins. Their indices are found
 * first, branch-free. */
GF_INLINE void hist_scatter(const gf_type type, const gf_hist_part *part,
                            const gf_hist_piece *piece) {
    const gf_hist_plan *plan = part->plan;
    const size_t bytes = gf_type_bytes(type);
    const bool all = plan->extract_all;
    const uint8_t *nth_of = part->scratch->nth_of;
    const unsigned char *from = piece->values;
    unsigned char *to = part->values;
    uint64_t *offsets = part->offsets, *positions = part->positions;
    uint32_t found[PIECE_BINS];
    size_t n = 0;
    for (uint32_t i = 0; i < piece->samples; i++) {
        found[n] = i;
        n += nth_of[piece->bins[i]] != NOT_EXTRACTED;
    }
    for (size_t k = 0; k < n; k++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): the loop above wrote n */
        const uint32_t i = found[k], bin = gf_hist_clamp(piece->bins[i], plan->bins, plan->ranged);
        const uint64_t index = offsets[all ? bin : nth_of[bin]]++;
        positions[index] = piece->position + i;
        memcpy(to + index * bytes, from + i * bytes, bytes);
    }
}

/* ---- row sums -------------------------------------------------------------------------------- */

/* Add a piece that begins at pixel x of its row. */
static void hist_add_sums(const gf_hist_part *part, const gf_hist_piece *piece, uint64_t x) {
    const size_t count = hist_lane_count(part->plan), measured = part->plan->measured;
    const float *values = piece->values;
    if (x == 0) { /* all lanes are in one block */
        memset(part->lanes.sums, 0, count * GF_HIST_LANE_BYTES);
        memset(part->lanes.min, 0xff, count * sizeof *part->lanes.min);
    }
    size_t lane = (size_t)(x % GF_LANES) * measured;
    for (size_t i = 0, n; i < piece->samples; i += n, lane = 0) {
        n = piece->samples - i < count - lane ? piece->samples - i : count - lane;
        part->simd->add_lanes(values + i, n, &part->lanes, lane);
    }
}

static void hist_end_sums(const gf_hist_part *part, gf_hist_row_sums *record) {
    const size_t measured = part->plan->measured;
    const gf_hist_lanes *lanes = &part->lanes;
    for (size_t half = GF_LANES / 2 * measured; half >= measured; half /= 2)
        part->simd->halve_lanes(lanes, half);
    for (size_t s = 0; s < measured; s++)
        record[s] = (gf_hist_row_sums){gf_canonical_double(lanes->sums[s]),
                                       gf_canonical_double(lanes->squares[s]), lanes->min[s],
                                       lanes->max[s]};
}

/* ---- mask ------------------------------------------------------------------------------------ */

/* Copy selected pixels and clear all others, branch-free. An added alpha channel is all ones or all
 * zeros. in, out: bytes per pixel. */
GF_INLINE void hist_draw_n(const unsigned char *from, unsigned char *to, const uint8_t *drawn,
                           size_t n, const size_t in, const size_t out) {
    for (size_t i = 0; i < n; i++, from += in, to += out) {
        /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): n are drawn */
        const uint8_t bits = (uint8_t)(0 - drawn[i]);
        _Pragma("GCC unroll 12") for (size_t b = 0; b < out; b++) to[b] =
            b < in ? from[b] & bits : bits;
    }
}

/* Draw the pixels of a piece that have a sample in an extracted bin. */
static void hist_draw(const gf_hist_part *part, const gf_hist_piece *piece, uint64_t y,
                      uint64_t x) {
    const gf_hist_plan *plan = part->plan;
    const uint8_t *nth_of = part->scratch->nth_of;
    const size_t measured = plan->measured, n = piece->samples / measured;
    const size_t in = plan->head.in.channels * part->sample_bytes;
    const size_t out = plan->head.out.channels * part->sample_bytes;
    const unsigned char *from = gf_row(&part->strip->in[0], y) + x * in;
    unsigned char *to = gf_row(&part->strip->out, y) + x * out;
    uint8_t drawn[PIECE_BINS]; /* 1 or 0 for each pixel */
    for (size_t i = 0; i < n; i++) {
        uint32_t any = 0;
        for (size_t s = 0; s < measured; s++)
            any |= nth_of[piece->bins[i * measured + s]] != NOT_EXTRACTED;
        drawn[i] = (uint8_t)any;
    }
    if (in == 3 && out == 4)
        hist_draw_n(from, to, drawn, n, 3, 4);
    else if (in == 4 && out == 4)
        hist_draw_n(from, to, drawn, n, 4, 4);
    else if (in == 6 && out == 8)
        hist_draw_n(from, to, drawn, n, 6, 8);
    else if (in == 12 && out == 12)
        hist_draw_n(from, to, drawn, n, 12, 12);
    else
        hist_draw_n(from, to, drawn, n, in, out);
}

/* ---- one part of a strip --------------------------------------------------------------------- */

/* Load pixels [x, x + n) of row y. bins: compute the bins of the samples. */
static gf_hist_piece hist_load(const gf_hist_part *part, uint64_t y, uint64_t x, size_t n,
                               bool bins) {
    const gf_hist_plan *plan = part->plan;
    const gf_format *format = &plan->head.in;
    const size_t pixel = format->channels * part->sample_bytes;
    const unsigned char *pixels = gf_row(&part->strip->in[0], y) + x * pixel;
    const bool gathers = plan->luma || plan->measured < format->channels;
    gf_hist_piece piece = {.values = pixels,
                           .bins = part->scratch->bins,
                           .samples = n * plan->measured,
                           .position = (y * format->width + x) * plan->measured,
                           .prefetch_bytes = pixel / plan->measured};
    if (bins || gathers) /* counting reads a copy or bins and leaves memory idle */
        piece.prefetch = pixels + n * pixel;
    if (gathers) {
        part->simd->gather(plan, pixels, n, part->scratch->values);
        piece.values = part->scratch->values;
    }
    if (bins)
        hist_find_bins(part->simd, part->counter.plan, piece.values, piece.samples,
                       part->scratch->bins);
    return piece;
}

static uint64_t hist_piece_pixels(const gf_hist_part *part, bool bins) {
    const uint64_t samples = PIECE_BYTES / part->sample_bytes;
    return (bins && samples > PIECE_BINS ? PIECE_BINS : samples) / part->plan->measured;
}

/* Count, mask and extract pixels [from, to) of the strip, numbered across its rows. With --per-row,
 * the counts go to the records and all rows are whole. */
static void hist_process_pixels(gf_hist_part *part, uint64_t from, uint64_t to, uint64_t *counts) {
    const gf_hist_plan *plan = part->plan;
    const uint64_t width = plan->head.in.width;
    const bool bins = part->counter.method >= METHOD_BINS || plan->mask;
    const bool more_bins = part->further.plan && part->further.method >= METHOD_BINS;
    const uint64_t max = hist_piece_pixels(part, bins || more_bins);
    if (!plan->per_row)
        hist_begin_counts(&part->counter, counts);
    if (part->further.plan)
        hist_begin_counts(&part->further,
                          (uint64_t *)part->strip->state + gf_hist_state_counters(plan));
    while (from < to) {
        const uint64_t y = part->strip->out.y0 + from / width, x = from % width;
        const uint64_t left = width - x < to - from ? width - x : to - from;
        const uint64_t n = left < max ? left : max;
        if (plan->per_row && x == 0) {
            counts = gf_record(&plan->head, part->strip, y);
            memset(counts, 0, plan->head.record);
            hist_begin_counts(&part->counter, counts);
        }
        const gf_hist_piece piece = hist_load(part, y, x, (size_t)n, bins);
        hist_count(&part->counter, &piece);
        if (plan->mask)
            hist_draw(part, &piece, y, x);
        if (plan->extracts == 1)
            hist_extract_piece(part, &piece);
        /* Count the values for statistics, and add up the samples. */
        if (more_bins)
            hist_find_bins(part->simd, part->further.plan, piece.values, piece.samples, piece.bins);
        if (part->further.plan)
            hist_count(&part->further, &piece);
        if (plan->row_sums)
            hist_add_sums(part, &piece, x);
        from += n;
        if (plan->per_row && x + n == width) {
            hist_end_counts(&part->counter);
            if (plan->extracts > 1)
                hist_add_offsets(part, counts);
        }
        if (plan->row_sums && x + n == width)
            hist_end_sums(part, gf_hist_sums_of(plan, gf_record(&plan->head, part->strip, y)));
    }
    if (!plan->per_row)
        hist_end_counts(&part->counter);
    if (part->further.plan)
        hist_end_counts(&part->further);
}

/* Second pass over rows [begin, end): scatter the samples of several bins. */
static void hist_scatter_rows(gf_hist_part *part, uint64_t begin, uint64_t end) {
    const gf_hist_plan *plan = part->plan;
    const uint64_t width = plan->head.in.width, max = hist_piece_pixels(part, true);
    for (uint32_t i = 0; i < plan->extracts; i++)
        part->offsets[i + 1] += part->offsets[i];
    part->values = (unsigned char *)(part->positions + part->offsets[plan->extracts]);
    for (uint64_t y = begin; y < end; y++)
        for (uint64_t x = 0; x < width; x += max) {
            const uint64_t n = width - x < max ? width - x : max;
            const gf_hist_piece piece = hist_load(part, y, x, (size_t)n, true);
            GF_BY_TYPE(plan->head.in.type, hist_scatter, part, &piece);
        }
    /* offsets[i] is now the start of bin i + 1: shift the array. */
    memmove(part->offsets + 1, part->offsets, gf_hist_head_bytes(plan) - sizeof(uint64_t));
    part->offsets[0] = 0;
}

void gf_hist_compute(const gf_hist_simd *simd, const gf_plan *head, const gf_strip *strip,
                     uint32_t index, uint32_t parts, void *memory) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    gf_hist_scratch *scratch = memory;
    const uint64_t width = head->in.width, rows = strip->out.rows;
    const uint64_t begin = gf_share(rows, index, parts), end = gf_share(rows, index + 1, parts);
    uint64_t from = begin * width, to = end * width;
    /* Parts are whole rows only if records or payloads require it; otherwise threads share wide
     * rows. */
    if (!head->record && !plan->extracts) {
        from = gf_share(rows * width, index, parts);
        to = gf_share(rows * width, index + 1, parts);
    }
    const uint64_t local_counters = hist_local_counters(plan);
    const size_t lanes = hist_lane_count(plan);
    const gf_hist_plan values = gf_hist_value_plan(plan);
    uint64_t *local = scratch->counters, *state = strip->state;
    gf_hist_part part = {
        .plan = plan,
        .simd = simd,
        .strip = strip,
        .scratch = scratch,
        .sample_bytes = gf_type_bytes(head->in.type),
        .counter = {.plan = plan->folded ? &values : plan, .simd = simd},
        .further = {.plan = plan->values && !plan->folded ? &values : NULL, .simd = simd},
        .offsets = strip->payload};
    const uint32_t extracts = plan->extracts;
    void *at = local + local_counters;
    part.lanes.sums = at;
    part.lanes.squares = part.lanes.sums + lanes;
    at = part.lanes.squares + lanes;
    part.lanes.min = at;
    part.lanes.max = part.lanes.min + lanes;
    part.counter.tables = part.lanes.max + lanes;
    part.further.tables = part.counter.tables + hist_max_cells(part.counter.plan);
    hist_choose_method(&part.counter, plan->per_row ? width : to - from);
    if (part.further.plan)
        hist_choose_method(&part.further, to - from);
    if (extracts > 0)
        hist_begin_extraction(&part, (to - from) * plan->measured);
    memset(local, 0, (size_t)local_counters * sizeof *local);
    hist_process_pixels(&part, from, to, local_counters ? local : state);
    if (local_counters)
        hist_add_offsets(&part, local);
    for (uint64_t i = 0; i < local_counters; i++)
        state[i] += local[i];
    if (extracts > 1)
        hist_scatter_rows(&part, strip->out.y0 + begin, strip->out.y0 + end);
    if (extracts == 1) {
        part.offsets[1] = part.extracted;
        memmove(part.positions + part.extracted, part.values, part.extracted * part.sample_bytes);
    }
}
