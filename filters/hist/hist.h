/* hist: counts of samples in equal bins, and the samples of some bins in order. docs/numerics.md
 * defines it. */
#ifndef GF_HIST_H
#define GF_HIST_H

#include "core/filter.h"
#include "samples.h"

#define GF_HIST_MAX_BINS 65536
#define GF_HIST_MAX_LISTED 64 /* bins that --extract names one by one */

/* Counters behind those of the bins: bins + GF_HIST_AT_NAN and so on. */
enum { GF_HIST_AT_NAN, GF_HIST_AT_BELOW, GF_HIST_AT_ABOVE };

/* A state, and with --per-row each record, holds measured * counters uint64_t: of each measured
 * channel the counts of the bins, then of NaN, and with --range of samples below it and above it. A
 * payload begins with extracts + 1 uint64_t: where each extracted bin begins among its samples, and
 * how many these are; then positions (uint64_t) and then values (samples) of all of them, bin by
 * bin, in image order within a bin. */
typedef struct gf_hist_plan {
    gf_plan head;
    uint32_t bins;
    bool brief;        /* bins has its default: a terminal shows fewer */
    uint32_t counters; /* of a channel: bins + 1, with --range bins + 3 */
    bool ranged;       /* lo and hi count */
    double lo, hi;
    bool luma;      /* what is measured is the luma of a pixel; otherwise its channels first .. */
    uint32_t first; /* .. first + measured - 1 */
    uint32_t measured;
    bool per_row;
    bool mask;
    bool extract_all;
    uint32_t extracts;                   /* bins that are extracted */
    uint32_t listed[GF_HIST_MAX_LISTED]; /* which, ascending, unless all */
} gf_hist_plan;

static inline uint32_t gf_hist_max(const gf_hist_plan *plan) {
    return plan->head.in.type == GF_U8 ? 255 : 65535;
}

/* "luma", "grey", "r", ...: the name of measured channel s. */
static inline const char *gf_hist_channel_name(const gf_hist_plan *plan, uint32_t s) {
    return plan->luma ? "luma" : gf_channel_name(plan->head.in.channels, plan->first + s);
}

/* Counters of a state. */
static inline uint64_t gf_hist_counters(const gf_hist_plan *plan) {
    return (uint64_t)plan->measured * plan->counters;
}

/* The bin that is extracted in place `nth` of a payload. */
static inline uint32_t gf_hist_nth_bin(const gf_hist_plan *plan, uint32_t nth) {
    return plan->extract_all ? nth : plan->listed[nth];
}

/* Bytes of a payload's head, and of `count` samples after it. */
static inline size_t gf_hist_head_bytes(const gf_hist_plan *plan) {
    return ((size_t)plan->extracts + 1) * sizeof(uint64_t);
}

static inline size_t gf_hist_sample_bytes(const gf_hist_plan *plan, uint64_t count) {
    return (size_t)count * (sizeof(uint64_t) + gf_type_bytes(plan->head.in.type));
}

/* ---- bins, as the fast implementations compute them on the CPU and on the GPU --------------- */

/* v * bins fits 32 bits: 65535 * 65536 < 2^32. max is a constant where this is called: the division
 * is a multiplication. */
GF_BOTH uint32_t gf_hist_bin_integer(uint32_t v, uint32_t bins, uint32_t max) {
    uint32_t bin = v * bins / max;
    return bin < bins ? bin : bins - 1;
}

/* The bin of a number on the scale of 0 to 1; `bins` for NaN. */
GF_BOTH uint32_t gf_hist_bin_real(double v, uint32_t bins) {
    double scaled = v * (double)bins;
    if (!(scaled == scaled))
        return bins;
    scaled = scaled > 0 ? scaled : 0;
    return scaled < (double)bins ? (uint32_t)scaled : bins - 1;
}

/* The counter of a number with --range; span is hi - lo, rounded. */
GF_BOTH uint32_t gf_hist_bin_ranged(double v, double lo, double hi, double span, uint32_t bins) {
    if (v < lo)
        return bins + GF_HIST_AT_BELOW;
    return v > hi ? bins + GF_HIST_AT_ABOVE : gf_hist_bin_real((v - lo) / span, bins);
}

gf_status gf_hist_golden(const gf_plan *plan, const gf_band *band, gf_error *error);

size_t gf_hist_cpu_scratch(const gf_plan *plan);
GF_DECLARE_LEVELS(gf_hist_cpu);

extern const gf_measure gf_hist_measure;
extern const gf_payload_format gf_hist_payload;
GF_EXTERN_C const gf_filter_cuda gf_hist_cuda;

#endif
