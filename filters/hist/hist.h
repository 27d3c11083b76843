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

/* The bin of a number on the scale of 0 to 1; `bins` for NaN. Without a branch, and with a
 * conversion that every processor has. */
static inline uint32_t gf_hist_bin_real(double v, uint32_t bins) {
    const double count = bins;
    double scaled = v * count;
    const bool number = scaled == scaled; /* NOLINT(misc-redundant-expression) */
    scaled = scaled > 0 ? scaled : 0;
    scaled = scaled < count ? scaled : count - 1;
    const int32_t bin = (int32_t)scaled;
    return number ? (uint32_t)bin : bins;
}

/* The counter of a number with --range, likewise; span is hi - lo, rounded. */
static inline uint32_t gf_hist_bin_ranged(double v, double lo, double hi, double span,
                                          uint32_t bins) {
    const double count = bins;
    double bin = (v - lo) / span * count;
    const bool number = v == v; /* NOLINT(misc-redundant-expression) */
    bin = bin > 0 ? bin : 0;
    bin = bin < count ? bin : count - 1;
    bin = v < lo ? count + GF_HIST_AT_BELOW : bin;
    bin = v > hi ? count + GF_HIST_AT_ABOVE : bin;
    return (uint32_t)(int32_t)(number ? bin : count + GF_HIST_AT_NAN);
}

/* ---- the values of a bin --------------------------------------------------------------------- */

/* The values of a bin are an interval: classes (below the range, the bins, above it; without
 * --range the bins) never descend where values ascend. Each operation that makes one of the other
 * is monotone, and so is its rounding. Values in ascending order have ascending keys: integers are
 * their own; of f32 they go from -infinity to infinity. */

/* The key behind the last one. */
static inline uint32_t gf_hist_end_key(const gf_hist_plan *plan) {
    return (plan->head.in.type == GF_F32 ? 0xff800000u : gf_type_max(plan->head.in.type)) + 1;
}

/* The value with a key. */
static inline float gf_hist_value(const gf_hist_plan *plan, uint32_t key) {
    const uint32_t f32 = key & 0x80000000u ? key ^ 0x80000000u : ~key;
    return gf_sample_number(plan->head.in.type, plan->head.in.type == GF_F32 ? f32 : key);
}

static inline uint32_t gf_hist_class(const gf_hist_plan *plan, uint32_t key) {
    const double v = (double)gf_hist_value(plan, key);
    if (!plan->ranged)
        return plan->head.in.type == GF_F32
                   ? gf_hist_bin_real(v, plan->bins)
                   : gf_hist_bin_integer(key, plan->bins, gf_type_max(plan->head.in.type));
    const uint32_t bin = gf_hist_bin_ranged(v, plan->lo, plan->hi, plan->hi - plan->lo, plan->bins);
    return bin == plan->bins + GF_HIST_AT_BELOW   ? 0
           : bin == plan->bins + GF_HIST_AT_ABOVE ? plan->bins + 1
                                                  : bin + 1;
}

/* Find the key of the least value that is in a class or in one above it; the end key if there is
 * none. */
static inline uint32_t gf_hist_edge(const gf_hist_plan *plan, uint32_t class_wanted) {
    uint32_t first = plan->head.in.type == GF_F32 ? 0x007fffffu : 0, end = gf_hist_end_key(plan);
    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        if (gf_hist_class(plan, middle) < class_wanted)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* The class of the bin that is extracted, where that is one. */
static inline uint32_t gf_hist_extracted_class(const gf_hist_plan *plan) {
    return gf_hist_nth_bin(plan, 0) + plan->ranged;
}

gf_status gf_hist_golden(const gf_plan *plan, const gf_strip *strip, gf_error *error);

size_t gf_hist_cpu_scratch(const gf_plan *plan);
GF_DECLARE_LEVELS(gf_hist_cpu);

extern const gf_measure gf_hist_measure;
extern const gf_payload_format gf_hist_payload;
GF_EXTERN_C const gf_filter_cuda gf_hist_cuda;

#endif
