/* hist: counts of samples in equal bins, and the samples of some bins in order. Defined in
 * docs/numerics.md. */
#ifndef GF_HIST_H
#define GF_HIST_H

#include "core/filter.h"
#include "samples.h"

#define GF_HIST_MAX_BINS 65536
#define GF_HIST_MAX_LISTED 64 /* max bins in the list of --extract */

/* Counters after those of the bins: bins + GF_HIST_AT_NAN and so on. The first one counts NaN and,
 * of integers, samples with the nodata value. */
enum { GF_HIST_AT_NAN, GF_HIST_AT_BELOW, GF_HIST_AT_ABOVE };

/* The bins are measured * counters uint64_t. For each measured channel: the counts of the bins, the
 * count of NaN and, with `outside`, those of the samples below lo and above hi. The values are
 * measured * values uint64_t: the bins of gf_hist_value_plan.
 *
 * A state holds the bins, unless per_row or folded, and then the values. With --per-row, a record
 * begins with the bins of its row. With row_sums, it ends with one gf_hist_row_sums per measured
 * channel.
 *
 * A payload begins with extracts + 1 uint64_t: the offset of each extracted bin among the samples,
 * and the number of samples. The positions (uint64_t) and then the values of all samples follow,
 * bin by bin, in image order within a bin. */
typedef struct gf_hist_plan {
    gf_plan head;
    uint32_t bins;
    bool brief;        /* bins has its default: the terminal shows fewer */
    uint32_t counters; /* per channel: bins + 1, with `outside` bins + 3 */
    bool ranged;       /* with --range: samples outside of lo..hi are in no bin */
    bool clamps;       /* f32 without --range: they are in the first and the last bin, too */
    bool outside;      /* ranged or clamps */
    double lo, hi;     /* of the bins; default: 0 and the largest value; data: by gf_hist_refine */
    bool luma;         /* measure the luma instead of channels */
    uint32_t first;    /* first measured channel */
    uint32_t measured; /* number of measured channels; 1 for luma */
    bool per_row;
    bool mask;
    bool extract_all;
    uint32_t extracts;                   /* number of extracted bins */
    uint32_t listed[GF_HIST_MAX_LISTED]; /* the extracted bins, ascending, unless extract_all */

    bool statistics; /* report statistics */
    bool requested;  /* with --statistics: they are the first table */
    bool alone;      /* .. and without options of bins: the text leaves out the bins */
    uint32_t values; /* counters of values per channel; 0: the bins suffice for statistics */
    bool folded;     /* the bins are not counted, but computed from the values at the end */
    bool row_sums;   /* records hold sums: f32 with --statistics */
    bool keys;       /* f32: the bin of a sample is the upper half of its key */
} gf_hist_plan;

/* Sums and extremes of one channel of a row. Sums exclude NaN, and are in the order of samples.h.
 * Extremes are those of finite samples; without any, min is UINT32_MAX and max is 0. */
typedef struct gf_hist_row_sums {
    double sum, squares;
    uint32_t min, max; /* keys */
} gf_hist_row_sums;

/* Return the name of measured channel s: "luma", "grey", "r", ... */
static inline const char *gf_hist_channel_name(const gf_hist_plan *plan, uint32_t s) {
    return plan->luma ? "luma" : gf_channel_name(&plan->head.in, plan->first + s);
}

static inline uint64_t gf_hist_counters(const gf_hist_plan *plan) {
    return (uint64_t)plan->measured * plan->counters;
}

static inline uint64_t gf_hist_state_counters(const gf_hist_plan *plan) {
    return plan->per_row || plan->folded ? 0 : gf_hist_counters(plan);
}

static inline gf_hist_row_sums *gf_hist_sums_of(const gf_hist_plan *plan, void *record) {
    uint64_t *bins = (uint64_t *)record;
    return (gf_hist_row_sums *)(void *)(bins + (plan->per_row ? gf_hist_counters(plan) : 0));
}

/* Return a plan that counts values, for plans with values. Integers: one bin per value. f32: the
 * upper 16 bits of the key. The last counter counts NaN. */
static inline gf_hist_plan gf_hist_value_plan(const gf_hist_plan *plan) {
    gf_hist_plan values = *plan;
    values.bins = plan->values - 1;
    values.counters = plan->values;
    values.ranged = values.clamps = values.outside = false;
    values.keys = plan->head.in.type == GF_F32;
    values.per_row = false;
    values.extracts = 0;
    values.extract_all = false;
    return values;
}

/* Return the bin that is extracted at index `nth` of a payload. */
static inline uint32_t gf_hist_nth_bin(const gf_hist_plan *plan, uint32_t nth) {
    return plan->extract_all ? nth : plan->listed[nth];
}

/* Return the bytes of a payload's head. gf_hist_sample_bytes: the bytes of `count` samples. */
static inline size_t gf_hist_head_bytes(const gf_hist_plan *plan) {
    return ((size_t)plan->extracts + 1) * sizeof(uint64_t);
}

static inline size_t gf_hist_sample_bytes(const gf_hist_plan *plan, uint64_t count) {
    return (size_t)count * (sizeof(uint64_t) + gf_type_bytes(plan->head.in.type));
}

/* ---- bins, for the CPU and CUDA implementations ---------------------------------------------- */

/* Compute the bin of an integer. v * bins fits in 32 bits: 65535 * 65536 < 2^32. max is a constant
 * at every call: the compiler replaces the division by a multiplication. */
GF_BOTH uint32_t gf_hist_bin_integer(uint32_t v, uint32_t bins, uint32_t max) {
    uint32_t bin = v * bins / max;
    return bin < bins ? bin : bins - 1;
}

/* Compute the counter of a number. span is hi - lo, rounded; if it is 0, lo is in the last bin.
 * Branch-free, with a conversion that every processor supports. */
static inline uint32_t gf_hist_bin_ranged(double v, double lo, double hi, double span,
                                          uint32_t bins) {
    const double count = bins;
    double bin = (v - lo) * count / span;
    const bool number = v == v; /* NOLINT(misc-redundant-expression) */
    bin = bin < count ? bin : count - 1;
    bin = bin > 0 ? bin : 0;
    bin = v < lo ? count + GF_HIST_AT_BELOW : bin;
    bin = v > hi ? count + GF_HIST_AT_ABOVE : bin;
    return (uint32_t)(int32_t)(number ? bin : count + GF_HIST_AT_NAN);
}

/* Return the nodata value of integers; UINT32_MAX: none. */
static inline uint32_t gf_hist_nodata(const gf_hist_plan *plan) {
    const gf_nodata *nodata = &plan->head.nodata;
    return nodata->declared && plan->head.in.type != GF_F32 ? (uint32_t)nodata->value : UINT32_MAX;
}

/* Return the bin of a counter: without --range, that of samples outside is the first or last one.
 */
GF_BOTH uint32_t gf_hist_clamp(uint32_t counter, uint32_t bins, bool ranged) {
    if (ranged || counter < bins + GF_HIST_AT_BELOW)
        return counter;
    return counter == bins + GF_HIST_AT_BELOW ? 0 : bins - 1;
}

/* Return the count of a bin, including the samples that are clamped to it. */
static inline uint64_t gf_hist_count(const gf_hist_plan *plan, const uint64_t *counts,
                                     uint32_t bin) {
    return counts[bin] + (plan->clamps && bin == 0 ? counts[plan->bins + GF_HIST_AT_BELOW] : 0) +
           (plan->clamps && bin == plan->bins - 1 ? counts[plan->bins + GF_HIST_AT_ABOVE] : 0);
}

/* ---- keys of f32 ----------------------------------------------------------------------------- */

/* Keys order the values of f32, from -infinity to infinity; -0 precedes +0. */
GF_BOTH uint32_t gf_hist_key(uint32_t bits) {
    return bits ^ ((0 - (bits >> 31)) | 0x80000000u);
}

#define GF_HIST_KEYS 65536 /* bins of keys */

/* ---- interval of values of a bin ------------------------------------------------------------- */

/* The values of a bin form an interval. Classes are the bins and, with `outside`, the values below
 * and above them. The class never decreases as the value increases: every operation between
 * the two is monotonic, and so is its rounding. Keys order the values: an integer is its own key;
 * the keys of f32 ascend from -infinity to infinity. */

static inline uint32_t gf_hist_end_key(const gf_hist_plan *plan) {
    return (plan->head.in.type == GF_F32 ? 0xff800000u : gf_type_max(plan->head.in.type)) + 1;
}

static inline float gf_hist_value(const gf_hist_plan *plan, uint32_t key) {
    const uint32_t bits = key & 0x80000000u ? key ^ 0x80000000u : ~key;
    return gf_sample_number(plan->head.in.type, plan->head.in.type == GF_F32 ? bits : key);
}

static inline uint32_t gf_hist_counter_of(const gf_hist_plan *plan, uint32_t key) {
    return plan->outside ? gf_hist_bin_ranged((double)gf_hist_value(plan, key), plan->lo, plan->hi,
                                              plan->hi - plan->lo, plan->bins)
                         : gf_hist_bin_integer(key, plan->bins, gf_type_max(plan->head.in.type));
}

/* Find the smallest key whose class is `target` or above. Returns the end key if there is none. */
static inline uint32_t gf_hist_edge(const gf_hist_plan *plan, uint32_t target) {
    uint32_t first = plan->head.in.type == GF_F32 ? 0x007fffffu : 0, end = gf_hist_end_key(plan);
    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        const uint32_t counter = gf_hist_counter_of(plan, middle);
        const uint32_t found = !plan->outside                             ? counter
                               : counter == plan->bins + GF_HIST_AT_BELOW ? 0
                               : counter == plan->bins + GF_HIST_AT_ABOVE ? plan->bins + 1
                                                                          : counter + 1;
        if (found < target)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* Find the interval of keys of the extracted bin, for plans that extract one bin. */
static inline void gf_hist_extracted_keys(const gf_hist_plan *plan, uint32_t *first,
                                          uint32_t *end) {
    const uint32_t bin = gf_hist_nth_bin(plan, 0), target = bin + plan->outside;
    *first = gf_hist_edge(plan, target - (plan->clamps && bin == 0));
    *end = gf_hist_edge(plan, target + 1 + (plan->clamps && bin == plan->bins - 1));
}

/* Set the range of --range data from the measurement of the first pass. */
gf_status gf_hist_refine(gf_plan *plan, const void *data, gf_error *error);

GF_DECLARE_BACKENDS(gf_hist);
size_t gf_hist_cpu_scratch(const gf_plan *plan);

extern const gf_filter gf_hist_filter;
extern const gf_measure gf_hist_measure;
extern const gf_payload_format gf_hist_payload;

#endif
