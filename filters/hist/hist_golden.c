/* hist as docs/numerics.md says it. */
#include <string.h>

#include "hist/hist.h"

/* A sample with its type; only one of the two is used. */
typedef struct gf_golden_sample {
    uint32_t integer;
    float real;
} gf_golden_sample;

static gf_golden_sample load(const gf_format *format, const unsigned char *row, uint64_t i) {
    if (format->type == GF_U8)
        return (gf_golden_sample){.integer = row[i]};
    if (format->type == GF_U16)
        return (gf_golden_sample){.integer = ((const uint16_t *)(const void *)row)[i]};
    return (gf_golden_sample){.real = ((const float *)(const void *)row)[i]};
}

/* Measured channel s of pixel x. */
static gf_golden_sample sample_at(const gf_hist_plan *plan, const unsigned char *row, uint64_t x,
                                  uint32_t s) {
    const gf_format *format = &plan->head.in;
    const uint64_t pixel = x * format->channels;
    if (!plan->luma)
        return load(format, row, pixel + plan->first + s);
    gf_golden_sample r = load(format, row, pixel);
    gf_golden_sample g = load(format, row, pixel + 1);
    gf_golden_sample b = load(format, row, pixel + 2);
    return (gf_golden_sample){
        .integer = (13933 * r.integer + 46871 * g.integer + 4732 * b.integer + 32768) >> 16,
        .real = 0.2126f * r.real + 0.7152f * g.real + 0.0722f * b.real};
}

/* The bin of a sample, or the counter behind the bins that it belongs to. */
static uint32_t bin_of(const gf_hist_plan *plan, gf_golden_sample sample) {
    const bool integer = plan->head.in.type != GF_F32;
    const double bins = plan->bins;
    if (integer && !plan->ranged) {
        uint64_t bin = (uint64_t)sample.integer * plan->bins / gf_hist_max(plan);
        return bin < plan->bins ? (uint32_t)bin : plan->bins - 1;
    }
    double v = integer ? (double)sample.integer : (double)sample.real;
    if (v != v)
        return plan->bins + GF_HIST_AT_NAN;
    if (plan->ranged && v < plan->lo)
        return plan->bins + GF_HIST_AT_BELOW;
    if (plan->ranged && v > plan->hi)
        return plan->bins + GF_HIST_AT_ABOVE;
    if (plan->ranged)
        v = (v - plan->lo) / (plan->hi - plan->lo);
    if (v * bins < 0)
        return 0;
    if (v * bins >= bins)
        return plan->bins - 1;
    return (uint32_t)(v * bins);
}

static uint32_t bin_at(const gf_hist_plan *plan, const unsigned char *row, uint64_t x, uint32_t s) {
    return bin_of(plan, sample_at(plan, row, x, s));
}

static void count_row(const gf_hist_plan *plan, const unsigned char *row, uint64_t *counts) {
    for (uint64_t x = 0; x < plan->head.in.width; x++)
        for (uint32_t s = 0; s < plan->measured; s++)
            counts[(uint64_t)s * plan->counters + bin_at(plan, row, x, s)]++;
}

/* Which extracted bin has this number: its index, or plan->extracts if none has. */
static uint32_t rank_of(const gf_hist_plan *plan, uint32_t bin) {
    if (plan->extract_all)
        return bin < plan->bins ? bin : plan->extracts;
    uint32_t i = 0;
    while (i < plan->extracts && plan->listed[i] != bin)
        i++;
    return i;
}

/* ---- mask ------------------------------------------------------------------------------------ */

static bool selected(const gf_hist_plan *plan, const unsigned char *row, uint64_t x) {
    for (uint32_t s = 0; s < plan->measured; s++)
        if (rank_of(plan, bin_at(plan, row, x, s)) < plan->extracts)
            return true;
    return false;
}

static void mask_row(const gf_hist_plan *plan, const unsigned char *row, unsigned char *out) {
    const size_t bytes = gf_type_bytes(plan->head.in.type);
    const size_t in_pixel = plan->head.in.channels * bytes;
    const size_t out_pixel = plan->head.out.channels * bytes;
    for (uint64_t x = 0; x < plan->head.in.width; x++) {
        unsigned char *pixel = out + x * out_pixel;
        memset(pixel, 0, out_pixel);
        if (!selected(plan, row, x))
            continue;
        memset(pixel, 0xff, out_pixel); /* alpha, if it is new: opaque */
        memcpy(pixel, row + x * in_pixel, in_pixel);
    }
}

/* ---- extraction ------------------------------------------------------------------------------ */

/* A stable partition by bin: count, then put every sample in its place. */
static void extract(const gf_hist_plan *plan, const gf_band *band) {
    const gf_format *format = &plan->head.in;
    const size_t bytes = gf_type_bytes(format->type);
    const uint64_t begin = band->out.y0, end = begin + band->out.rows;
    uint64_t *offsets = band->payload;
    memset(offsets, 0, gf_hist_head_bytes(plan));
    for (uint64_t y = begin; y < end; y++)
        for (uint64_t x = 0; x < format->width; x++)
            for (uint32_t s = 0; s < plan->measured; s++) {
                uint32_t rank = rank_of(plan, bin_at(plan, gf_row(&band->in, y), x, s));
                if (rank < plan->extracts)
                    offsets[rank + 1]++;
            }
    for (uint32_t i = 0; i < plan->extracts; i++)
        offsets[i + 1] += offsets[i];
    const uint64_t count = offsets[plan->extracts];
    uint64_t *positions = offsets + plan->extracts + 1;
    unsigned char *values = (unsigned char *)(positions + count);
    for (uint64_t y = begin; y < end; y++)
        for (uint64_t x = 0; x < format->width; x++)
            for (uint32_t s = 0; s < plan->measured; s++) {
                gf_golden_sample sample = sample_at(plan, gf_row(&band->in, y), x, s);
                uint32_t rank = rank_of(plan, bin_of(plan, sample));
                if (rank == plan->extracts)
                    continue;
                uint64_t place = offsets[rank]++;
                positions[place] = (y * format->width + x) * plan->measured + s;
                unsigned char u8 = (unsigned char)sample.integer;
                uint16_t u16 = (uint16_t)sample.integer;
                const void *value = format->type == GF_U8    ? (const void *)&u8
                                    : format->type == GF_U16 ? (const void *)&u16
                                                             : (const void *)&sample.real;
                memcpy(values + place * bytes, value, bytes);
            }
    /* Every bin has moved on to where the next one begins. */
    memmove(offsets + 1, offsets, gf_hist_head_bytes(plan) - sizeof *offsets);
    offsets[0] = 0;
}

gf_status gf_hist_golden(const gf_plan *head, const gf_band *band, gf_error *error) {
    (void)error;
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    for (uint64_t y = band->out.y0; y < band->out.y0 + band->out.rows; y++) {
        const unsigned char *row = gf_row(&band->in, y);
        uint64_t *counts = band->state;
        if (plan->per_row) {
            counts = gf_record(head, &band->out, y);
            memset(counts, 0, head->record);
        }
        count_row(plan, row, counts);
        if (plan->mask)
            mask_row(plan, row, gf_row(&band->out, y));
    }
    if (plan->extracts)
        extract(plan, band);
    return GF_OK;
}
