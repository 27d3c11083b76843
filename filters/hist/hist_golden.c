/* Golden implementation of hist: docs/numerics.md defines it. */
#include <math.h>
#include <string.h>

#include "hist/hist.h"

/* Return the sample of measured channel s at pixel x. Integers are exact in binary32. */
static float golden_measured(const gf_hist_plan *plan, const unsigned char *row, uint64_t x,
                             uint32_t s) {
    const gf_type type = plan->head.in.type;
    const uint64_t pixel = x * plan->head.in.channels;
    return plan->luma ? gf_golden_luma(type, row, pixel)
                      : gf_get_sample(type, row, pixel + plan->first + s);
}

/* Return whether an integer is left out. f32 are NaN. */
static bool golden_is_nodata(const gf_hist_plan *plan, float sample) {
    return plan->head.nodata.declared && sample == plan->head.nodata.value;
}

/* Return the bin of a sample, or the index of one of the counters after the bins. */
static uint32_t golden_bin_of(const gf_hist_plan *plan, float sample) {
    if (golden_is_nodata(plan, sample))
        return plan->bins + GF_HIST_AT_NAN;
    if (!plan->outside) {
        const uint64_t bin = (uint64_t)sample * plan->bins / gf_type_max(plan->head.in.type);
        return bin < plan->bins ? (uint32_t)bin : plan->bins - 1;
    }
    const double v = (double)sample;
    if (v != v)
        return plan->bins + GF_HIST_AT_NAN;
    if (v < plan->lo)
        return plan->bins + GF_HIST_AT_BELOW;
    if (v > plan->hi)
        return plan->bins + GF_HIST_AT_ABOVE;
    if (plan->lo == plan->hi)
        return plan->bins - 1;
    const double bin = (v - plan->lo) * plan->bins / (plan->hi - plan->lo);
    return bin < plan->bins ? (uint32_t)bin : plan->bins - 1;
}

static uint32_t golden_bin_at(const gf_hist_plan *plan, const unsigned char *row, uint64_t x,
                              uint32_t s) {
    return golden_bin_of(plan, golden_measured(plan, row, x, s));
}

/* Count the values of a row: integers, or the upper halves of the keys of f32. */
static void golden_count_values(const gf_hist_plan *plan, const unsigned char *row,
                                uint64_t *counts) {
    for (uint64_t x = 0; x < plan->head.in.width; x++)
        for (uint32_t s = 0; s < plan->measured; s++) {
            const float v = golden_measured(plan, row, x, s);
            uint32_t value = plan->values - 1;
            if (plan->head.in.type != GF_F32 && !golden_is_nodata(plan, v))
                value = (uint32_t)v;
            else if (plan->head.in.type == GF_F32 && v == v)
                value = gf_hist_key(gf_sample_bits(GF_F32, &v, 0)) >> 16;
            counts[(uint64_t)s * plan->values + value]++;
        }
}

static void golden_sum_row(const gf_hist_plan *plan, const unsigned char *row,
                           gf_hist_row_sums *sums) {
    for (uint32_t s = 0; s < plan->measured; s++) {
        double sum[GF_LANES] = {0}, squares[GF_LANES] = {0};
        uint32_t min = UINT32_MAX, max = 0;
        for (uint64_t x = 0; x < plan->head.in.width; x++) {
            const float v = golden_measured(plan, row, x, s);
            if (v != v)
                continue;
            sum[x % GF_LANES] += (double)v;
            squares[x % GF_LANES] += (double)v * (double)v;
            if (!isfinite(v))
                continue;
            const uint32_t key = gf_hist_key(gf_sample_bits(GF_F32, &v, 0));
            min = key < min ? key : min;
            max = key > max ? key : max;
        }
        sums[s] = (gf_hist_row_sums){gf_golden_tree(sum), gf_golden_tree(squares), min, max};
    }
}

/* Return the index of the bin of a counter among the extracted bins, or plan->extracts if it is not
 * extracted. */
static uint32_t golden_nth_of(const gf_hist_plan *plan, uint32_t counter) {
    const uint32_t bin = gf_hist_clamp(counter, plan->bins, plan->ranged);
    if (plan->extract_all)
        return bin < plan->bins ? bin : plan->extracts;
    uint32_t i = 0;
    while (i < plan->extracts && plan->listed[i] != bin)
        i++;
    return i;
}

static void golden_mask_row(const gf_hist_plan *plan, const unsigned char *row,
                            unsigned char *out) {
    const size_t bytes = gf_type_bytes(plan->head.in.type);
    const size_t in_pixel = plan->head.in.channels * bytes;
    const size_t out_pixel = plan->head.out.channels * bytes;
    for (uint64_t x = 0; x < plan->head.in.width; x++) {
        unsigned char *pixel = out + x * out_pixel;
        bool drawn = false;
        for (uint32_t s = 0; s < plan->measured; s++)
            drawn |= golden_nth_of(plan, golden_bin_at(plan, row, x, s)) < plan->extracts;
        memset(pixel, drawn ? 0xff : 0, out_pixel); /* including an added alpha channel */
        if (drawn)
            memcpy(pixel, row + x * in_pixel, in_pixel);
    }
}

/* Partition the samples by bin, stably: count them, then write each to the offset of its bin. */
static void golden_extract(const gf_hist_plan *plan, const gf_strip *strip) {
    const uint64_t begin = strip->out.y0, end = begin + strip->out.rows;
    const uint32_t measured = plan->measured;
    const uint64_t samples = plan->head.in.width * measured;
    uint64_t *offsets = strip->payload;
    memset(offsets, 0, gf_hist_head_bytes(plan));
    for (uint64_t y = begin; y < end; y++)
        for (uint64_t i = 0; i < samples; i++) {
            const unsigned char *row = gf_row(&strip->in[0], y);
            const uint32_t bin = golden_bin_at(plan, row, i / measured, (uint32_t)(i % measured));
            const uint32_t nth = golden_nth_of(plan, bin);
            if (nth < plan->extracts)
                offsets[nth + 1]++;
        }
    for (uint32_t i = 0; i < plan->extracts; i++)
        offsets[i + 1] += offsets[i];
    const uint64_t count = offsets[plan->extracts];
    uint64_t *positions = offsets + plan->extracts + 1;
    unsigned char *values = (unsigned char *)(positions + count);
    for (uint64_t y = begin; y < end; y++)
        for (uint64_t i = 0; i < samples; i++) {
            const unsigned char *row = gf_row(&strip->in[0], y);
            const float sample = golden_measured(plan, row, i / measured, (uint32_t)(i % measured));
            const uint32_t nth = golden_nth_of(plan, golden_bin_of(plan, sample));
            if (nth == plan->extracts)
                continue;
            positions[offsets[nth]] = y * samples + i;
            gf_put_sample(plan->head.in.type, values, offsets[nth]++, sample);
        }
    /* offsets[i] is now the start of bin i + 1: shift the array. */
    memmove(offsets + 1, offsets, gf_hist_head_bytes(plan) - sizeof *offsets);
    offsets[0] = 0;
}

gf_status gf_hist_golden(const gf_plan *head, const gf_strip *strip, gf_error *error) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    for (uint64_t y = strip->out.y0; y < strip->out.y0 + strip->out.rows; y++) {
        const unsigned char *row = gf_row(&strip->in[0], y);
        uint64_t *counts = strip->state;
        if (plan->per_row) {
            counts = gf_record(head, strip, y);
            memset(counts, 0, head->record);
        }
        for (uint64_t x = 0; x < head->in.width && !plan->folded; x++)
            for (uint32_t s = 0; s < plan->measured; s++)
                counts[(uint64_t)s * plan->counters + golden_bin_at(plan, row, x, s)]++;
        if (plan->values)
            golden_count_values(plan, row, (uint64_t *)strip->state + gf_hist_state_counters(plan));
        if (plan->row_sums)
            golden_sum_row(plan, row, gf_hist_sums_of(plan, gf_record(head, strip, y)));
        if (plan->mask)
            golden_mask_row(plan, row, gf_row(&strip->out, y));
    }
    if (plan->extracts)
        golden_extract(plan, strip);
    return GF_OK;
}
