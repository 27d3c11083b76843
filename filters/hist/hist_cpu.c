/* The fast CPU implementation of hist: a part's pixels in pieces that stay in the cache, each of
 * them counted, drawn and extracted. */
#include <string.h>

#include "hist/hist_count.h"
#include "hist/hist_extract.h"

static const gf_hist_simd *const simd_levels[GF_ISA_COUNT] = {
    [GF_ISA_PORTABLE] = &gf_hist_simd_portable,
#ifdef GF_X86_64
    [GF_ISA_AVX2] = &gf_hist_simd_avx2,
    [GF_ISA_AVX512] = &gf_hist_simd_avx512,
#endif
};

/* A thread's scratch. */
typedef struct gf_hist_scratch {
    unsigned char values[GF_HIST_PIECE_BYTES];
    uint32_t bins[GF_HIST_PIECE_BINS];
    uint8_t ranks[GF_HIST_MAX_BINS + 8];
    uint64_t counters[]; /* a state, if counts of the part alone are needed; and tables */
} gf_hist_scratch;

typedef struct gf_hist_work {
    const gf_hist_plan *plan;
    const gf_hist_simd *simd;
    const gf_band *band;
    gf_hist_scratch *scratch;
    size_t sample;   /* bytes */
    uint64_t pixels; /* of a piece, at most */
    bool bins;       /* somebody needs them, besides the extractor */
} gf_hist_work;

/* Counts of the part say where its samples go, if they are of several bins. */
static bool needs_counts(const gf_hist_plan *plan) {
    return plan->extracts > 0 && !gf_hist_extracts_at_once(plan) && !plan->per_row;
}

static uint64_t own_counters(const gf_hist_plan *plan) {
    return needs_counts(plan) ? gf_hist_counters(plan) : 0;
}

size_t gf_hist_cpu_scratch(const gf_plan *head) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    return sizeof(gf_hist_scratch) + (size_t)own_counters(plan) * sizeof(uint64_t) +
           gf_hist_table_bytes(plan);
}

/* Pixels [x, x + n) of row y. */
static gf_hist_piece load_piece(const gf_hist_work *work, uint64_t y, uint64_t x, size_t n,
                                bool bins) {
    const gf_hist_plan *plan = work->plan;
    const gf_format *format = &plan->head.in;
    const unsigned char *pixels = gf_row(&work->band->in, y) + x * format->channels * work->sample;
    gf_hist_piece piece = {.values = pixels,
                           .samples = n * plan->measured,
                           .position = (y * format->width + x) * plan->measured};
    const size_t pixel = format->channels * work->sample;
    piece.ahead_bytes = pixel / plan->measured;
    /* Nobody reads from memory while a copy or bins are counted. */
    if (bins || plan->luma || plan->measured < format->channels)
        piece.ahead = pixels + n * pixel;
    if (plan->luma || plan->measured < format->channels) {
        work->simd->gather(plan, pixels, n, work->scratch->values);
        piece.values = work->scratch->values;
    }
    if (bins) {
        work->simd->bins(plan, piece.values, piece.samples, work->scratch->bins);
        piece.bins = work->scratch->bins;
    }
    return piece;
}

static uint64_t piece_pixels(const gf_hist_work *work, bool bins) {
    const uint64_t samples = GF_HIST_PIECE_BYTES / work->sample;
    return (bins && samples > GF_HIST_PIECE_BINS ? GF_HIST_PIECE_BINS : samples) /
           work->plan->measured;
}

/* ---- a part ---------------------------------------------------------------------------------- */

/* Where the counts of row y go; of its record what was there before is cleared. */
static uint64_t *counts_of_row(const gf_hist_work *work, uint64_t y) {
    const gf_plan *head = &work->plan->head;
    uint64_t *record = gf_record(head, &work->band->out, y);
    memset(record, 0, head->record);
    return record;
}

/* One piece, for all that is asked for. */
static void visit_piece(const gf_hist_work *work, uint64_t y, uint64_t x, size_t n,
                        gf_hist_counter *counter, gf_hist_extractor *extractor) {
    const gf_hist_plan *plan = work->plan;
    const gf_plan *head = &plan->head;
    const gf_hist_piece piece = load_piece(work, y, x, n, work->bins);
    gf_hist_counter_add(counter, &piece);
    if (plan->mask)
        gf_hist_mask(plan, work->scratch->ranks, &piece,
                     gf_row(&work->band->in, y) + x * head->in.channels * work->sample,
                     gf_row(&work->band->out, y) + x * head->out.channels * work->sample);
    if (gf_hist_extracts_at_once(plan))
        gf_hist_extractor_take(extractor, &piece);
}

/* Pixels [from, to) of the band, counted through its rows. */
static void visit_pixels(const gf_hist_work *work, uint64_t from, uint64_t to, uint64_t *counts,
                         gf_hist_counter *counter, gf_hist_extractor *extractor) {
    const bool per_row = work->plan->per_row;
    const bool again = work->plan->extracts > 0 && !gf_hist_extracts_at_once(work->plan);
    const uint64_t width = work->plan->head.in.width;
    if (!per_row)
        gf_hist_counter_begin(counter, counts);
    while (from < to) {
        const uint64_t y = work->band->out.y0 + from / width, x = from % width;
        uint64_t n = width - x < work->pixels ? width - x : work->pixels;
        if (n > to - from)
            n = to - from;
        if (per_row && x == 0) {
            counts = counts_of_row(work, y);
            gf_hist_counter_begin(counter, counts);
        }
        visit_piece(work, y, x, (size_t)n, counter, extractor);
        from += n;
        if (per_row && x + n == width) {
            gf_hist_counter_end(counter);
            if (again)
                gf_hist_extractor_count(extractor, counts);
        }
    }
    if (!per_row)
        gf_hist_counter_end(counter);
}

/* All of these rows again, for extraction. */
static void place_rows(const gf_hist_work *work, uint64_t begin, uint64_t end,
                       gf_hist_extractor *extractor) {
    const uint64_t width = work->plan->head.in.width;
    gf_hist_extractor_counted(extractor);
    for (uint64_t y = begin; y < end; y++)
        for (uint64_t x = 0; x < width; x += work->pixels) {
            const uint64_t n = width - x < work->pixels ? width - x : work->pixels;
            const gf_hist_piece piece = load_piece(work, y, x, (size_t)n, true);
            gf_hist_extractor_place(extractor, &piece);
        }
}

void gf_hist_cpu(const gf_plan *head, const gf_band *band, uint32_t part, uint32_t parts,
                 void *memory, gf_isa isa) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    gf_hist_scratch *scratch = memory;
    const uint64_t width = head->in.width;
    const uint64_t begin = gf_share(band->out.rows, part, parts);
    const uint64_t end = gf_share(band->out.rows, part + 1, parts);
    uint64_t from = begin * width, to = end * width;
    /* Where rows must stay whole they do; otherwise wide rows are shared by many threads. */
    if (!plan->per_row && !plan->extracts) {
        from = gf_share(band->out.rows * width, part, parts);
        to = gf_share(band->out.rows * width, part + 1, parts);
    }
    gf_hist_work work = {.plan = plan,
                         .simd = simd_levels[isa],
                         .band = band,
                         .scratch = scratch,
                         .sample = gf_type_bytes(head->in.type)};
    uint64_t *own = scratch->counters, *state = band->state;
    gf_hist_counter counter = gf_hist_counter_new(
        plan, work.simd, plan->per_row ? width : to - from, (uint32_t *)(own + own_counters(plan)));
    work.bins = gf_hist_counts_bins(&counter) || plan->mask;
    work.pixels = piece_pixels(&work, work.bins);
    gf_hist_extractor extractor = {0};
    if (plan->extracts) {
        gf_hist_ranks(plan, scratch->ranks);
        extractor = gf_hist_extractor_new(plan, work.simd, scratch->ranks, band->payload,
                                          (to - from) * plan->measured);
    }
    memset(own, 0, (size_t)own_counters(plan) * sizeof *own);
    visit_pixels(&work, from, to, own_counters(plan) ? own : state, &counter, &extractor);
    if (own_counters(plan)) {
        gf_hist_extractor_count(&extractor, own);
        for (uint64_t i = 0; i < own_counters(plan); i++)
            state[i] += own[i];
    }
    if (plan->extracts && !gf_hist_extracts_at_once(plan)) {
        work.pixels = piece_pixels(&work, true);
        place_rows(&work, band->out.y0 + begin, band->out.y0 + end, &extractor);
    }
    if (plan->extracts)
        gf_hist_extractor_end(&extractor);
}
