/* The fast CPU implementation of hist. Rows are taken in pieces that stay in the cache: the
 * measured samples are gathered, their bins computed, and then counted, drawn, extracted. */
#include <string.h>

#include "hist/hist.h"
#include "hist/hist_simd.h"

static const gf_hist_simd *const simd_levels[GF_ISA_COUNT] = {
    [GF_ISA_PORTABLE] = &gf_hist_simd_portable,
#ifdef GF_X86_64
    [GF_ISA_AVX2] = &gf_hist_simd_avx2,
    [GF_ISA_AVX512] = &gf_hist_simd_avx512,
#endif
};

#define PIECE_PIXELS 2048
#define PIECE_SAMPLES (PIECE_PIXELS * GF_MAX_CHANNELS)

/* A thread's scratch: a piece of a row. */
typedef struct gf_piece {
    float values[PIECE_SAMPLES]; /* of any type */
    uint32_t bins[PIECE_SAMPLES];
} gf_piece;

typedef struct gf_work_part {
    const gf_hist_plan *plan;
    const gf_hist_simd *simd;
    const gf_band *band;
    gf_piece *piece;
    size_t sample; /* bytes */
} gf_work_part;

size_t gf_hist_cpu_scratch(const gf_plan *plan) {
    (void)plan;
    return sizeof(gf_piece);
}

/* Loads pixels [x, x + n) of row y into the piece; returns its samples. */
static size_t load_piece(const gf_work_part *work, uint64_t y, uint64_t x, size_t n) {
    const gf_plan *head = &work->plan->head;
    const size_t samples = n * work->plan->measured;
    const unsigned char *row = gf_row(&work->band->in, y);
    work->simd->gather(work->plan, row + x * head->in.channels * work->sample, n,
                       work->piece->values);
    work->simd->bins(work->plan, work->piece->values, samples, work->piece->bins);
    return samples;
}

/* ---- counting -------------------------------------------------------------------------------- */

static void count_piece(const gf_work_part *work, size_t samples, uint64_t *counts) {
    const uint32_t *bins = work->piece->bins;
    const uint64_t channel = work->plan->bins + 1;
    switch (work->plan->measured) {
    case 1:
        for (size_t i = 0; i < samples; i++)
            counts[bins[i]]++;
        break;
    default:
        for (size_t i = 0; i < samples; i += work->plan->measured)
            for (uint32_t s = 0; s < work->plan->measured; s++)
                counts[s * channel + bins[i + s]]++;
        break;
    }
}

/* ---- mask ------------------------------------------------------------------------------------ */

static void mask_piece(const gf_work_part *work, uint64_t y, uint64_t x, size_t n) {
    const gf_plan *head = &work->plan->head;
    const uint32_t measured = work->plan->measured, extracts = work->plan->extracts;
    const size_t from_pixel = head->in.channels * work->sample;
    const size_t to_pixel = head->out.channels * work->sample;
    const unsigned char *from = gf_row(&work->band->in, y) + x * from_pixel;
    unsigned char *to = gf_row(&work->band->out, y) + x * to_pixel;
    memset(to, 0, n * to_pixel);
    for (size_t i = 0; i < n; i++, from += from_pixel, to += to_pixel) {
        uint32_t s = 0;
        while (s < measured &&
               gf_hist_rank(work->plan, work->piece->bins[i * measured + s]) == extracts)
            s++;
        if (s == measured)
            continue;
        memcpy(to, from, from_pixel);
        memset(to + from_pixel, 0xff, to_pixel - from_pixel);
    }
}

/* ---- extraction ------------------------------------------------------------------------------ */

/* Two passes over the part's rows: how many samples each bin has, then each to its place.
 * offsets[i] counts bin i - 1 in the first pass, and is where bin i goes on in the second. */
static void extract_count(const gf_work_part *work, size_t samples, uint64_t *offsets) {
    for (size_t i = 0; i < samples; i++) {
        uint32_t rank = gf_hist_rank(work->plan, work->piece->bins[i]);
        if (rank < work->plan->extracts)
            offsets[rank + 1]++;
    }
}

static void extract_place(const gf_work_part *work, size_t samples, uint64_t position,
                          uint64_t *offsets, uint64_t *positions, unsigned char *values) {
    const unsigned char *from = (const unsigned char *)work->piece->values;
    for (size_t i = 0; i < samples; i++) {
        uint32_t rank = gf_hist_rank(work->plan, work->piece->bins[i]);
        if (rank == work->plan->extracts)
            continue;
        uint64_t place = offsets[rank]++;
        positions[place] = position + i;
        memcpy(values + place * work->sample, from + i * work->sample, work->sample);
    }
}

static void extract(const gf_work_part *work, uint64_t begin, uint64_t end) {
    const gf_hist_plan *plan = work->plan;
    const uint64_t width = plan->head.in.width;
    uint64_t *offsets = work->band->payload;
    uint64_t *positions = offsets + plan->extracts + 1;
    unsigned char *values = NULL;
    memset(offsets, 0, gf_hist_head_bytes(plan));
    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t y = begin; y < end; y++)
            for (uint64_t x = 0; x < width; x += PIECE_PIXELS) {
                const size_t n = (size_t)(width - x < PIECE_PIXELS ? width - x : PIECE_PIXELS);
                const size_t samples = load_piece(work, y, x, n);
                if (pass == 0)
                    extract_count(work, samples, offsets);
                else
                    extract_place(work, samples, (y * width + x) * plan->measured, offsets,
                                  positions, values);
            }
        if (pass == 0)
            for (uint32_t i = 0; i < plan->extracts; i++)
                offsets[i + 1] += offsets[i];
        if (pass == 0)
            values = (unsigned char *)(positions + offsets[plan->extracts]);
    }
    /* Every bin has moved on to where the next one begins. */
    memmove(offsets + 1, offsets, gf_hist_head_bytes(plan) - sizeof *offsets);
    offsets[0] = 0;
}

/* ---- a part ---------------------------------------------------------------------------------- */

/* Pixels [from, to) of the band, counted through its rows. */
static void count_pixels(const gf_work_part *work, uint64_t from, uint64_t to) {
    const gf_hist_plan *plan = work->plan;
    const uint64_t width = plan->head.in.width;
    while (from < to) {
        const uint64_t y = work->band->out.y0 + from / width, x = from % width;
        uint64_t n = width - x < PIECE_PIXELS ? width - x : PIECE_PIXELS;
        if (n > to - from)
            n = to - from;
        const size_t samples = load_piece(work, y, x, (size_t)n);
        uint64_t *counts = work->band->state;
        if (plan->per_row) {
            counts = gf_record(&plan->head, &work->band->out, y);
            if (x == 0)
                memset(counts, 0, plan->head.record);
        }
        count_piece(work, samples, counts);
        if (plan->mask)
            mask_piece(work, y, x, (size_t)n);
        from += n;
    }
}

void gf_hist_cpu(const gf_plan *head, const gf_band *band, uint32_t part, uint32_t parts,
                 void *scratch, gf_isa isa) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    const gf_work_part work = {plan, simd_levels[isa], band, scratch, gf_type_bytes(head->in.type)};
    const uint64_t rows = band->out.rows, width = head->in.width;
    const uint64_t begin = gf_share(rows, part, parts), end = gf_share(rows, part + 1, parts);
    /* Where rows must stay whole they do; otherwise wide rows are shared by many threads. */
    if (plan->per_row || plan->extracts)
        count_pixels(&work, begin * width, end * width);
    else
        count_pixels(&work, gf_share(rows * width, part, parts),
                     gf_share(rows * width, part + 1, parts));
    if (plan->extracts)
        extract(&work, band->out.y0 + begin, band->out.y0 + end);
}
