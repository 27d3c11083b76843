/* Result of hist on the host: counts, extracted samples, and the tables of both. Samples of one bin
 * are written to their file strip by strip. Samples of several bins are written bin by bin: they
 * are kept in memory until the last strip, within max_memory. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/result.h"
#include "hist/hist.h"
#include "io/sample_sink.h"

/* Samples shown per bin, and the max number of extracted bins for which any are shown. */
#define SHOWN 10
#define SHOWN_BINS 64

/* Samples of one extracted bin, in image order. */
typedef struct gf_hist_bin_samples {
    uint64_t count;
    const uint64_t *positions;
    const unsigned char *values;
} gf_hist_bin_samples;

/* Samples kept of one extracted bin: the first ones, or all. */
typedef struct gf_hist_kept {
    uint64_t extracted; /* number of samples, kept or not */
    uint64_t count, capacity;
    uint64_t before; /* samples shown of all bins before this one; set by hist_finish */
    uint64_t *positions;
    unsigned char *values;
} gf_hist_kept;

/* The statistics in the order of their table. All but MEAN and STD are exact in binary32. */
enum { MIN, MAX, MEAN, STD, MEDIAN, P1, P99, STATISTIC_COUNT };

/* Statistics of one channel. */
typedef struct gf_hist_statistics {
    uint64_t count; /* samples without NaN; 0: the other fields are undefined */
    bool has_std;
    double values[STATISTIC_COUNT];
} gf_hist_statistics;

typedef struct gf_hist_data {
    const gf_hist_plan *plan;
    uint64_t *counts; /* of the bins; values and rows follow in the same memory */
    uint64_t *values; /* counts of values, if the plan has them */
    uint64_t *rows;   /* counts of the bins of each row, with --per-row */
    gf_hist_row_sums sums[GF_MAX_CHANNELS]; /* of the rows so far */
    gf_hist_statistics statistics[GF_MAX_CHANNELS];
    gf_measure_options keep;
    bool buffered;       /* samples are kept and written at the end */
    uint64_t shown;      /* max samples per bin in the result */
    uint64_t bytes;      /* allocated for samples */
    gf_hist_kept bins[]; /* the extracted bins, and one more entry */
} gf_hist_data;

static void hist_close_data(void *data) {
    gf_hist_data *hist = data;
    for (uint32_t nth = 0; nth < hist->plan->extracts; nth++) {
        free(hist->bins[nth].positions);
        free(hist->bins[nth].values);
    }
    free(hist->counts);
    free(hist);
}

static gf_status hist_open_data(const gf_plan *head, const gf_measure_options *keep, void **out,
                                gf_error *error) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    gf_hist_data *hist = calloc(1, sizeof *hist + (plan->extracts + 1) * sizeof *hist->bins);
    uint64_t *counts = calloc(1, (size_t)head->result_bytes);
    *out = hist && counts ? hist : NULL;
    if (!*out) {
        free(hist);
        free(counts);
        return gf_fail_memory(error, keep->name, head->result_bytes, "the counts");
    }
    hist->plan = plan;
    hist->keep = *keep;
    hist->buffered =
        keep->samples && (plan->extracts > 1 || gf_sample_sink_wants_count(keep->samples));
    hist->shown = keep->all ? UINT64_MAX : plan->extracts <= SHOWN_BINS ? SHOWN : 0;
    hist->counts = counts;
    hist->values = counts + gf_hist_counters(plan);
    hist->rows = hist->values + (size_t)plan->measured * plan->values;
    for (uint32_t s = 0; s < plan->measured; s++)
        hist->sums[s].min = UINT32_MAX;
    return GF_OK;
}

static gf_status hist_take_rows(const gf_plan *head, void *data, const gf_rows *records,
                                gf_error *error) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    gf_hist_data *hist = data;
    const uint64_t counters = gf_hist_counters(plan);
    for (uint64_t y = records->y0; y < records->y0 + records->rows; y++) {
        uint64_t *record = gf_record_of(records, y);
        const gf_hist_row_sums *row = gf_hist_sums_of(plan, record);
        for (uint64_t i = 0; i < counters && plan->per_row; i++)
            hist->counts[i] += hist->rows[y * counters + i] = record[i];
        for (uint32_t s = 0; s < plan->measured && plan->row_sums; s++, row++) {
            gf_hist_row_sums *sums = &hist->sums[s];
            sums->sum += row->sum;
            sums->squares += row->squares;
            sums->min = row->min < sums->min ? row->min : sums->min;
            sums->max = row->max > sums->max ? row->max : sums->max;
        }
    }
    return GF_OK;
}

/* ---- payloads -------------------------------------------------------------------------------- */

/* Return the samples of one bin in a payload. */
static gf_hist_bin_samples hist_piece(const gf_hist_plan *plan, const uint64_t *payload,
                                      uint32_t nth) {
    const uint64_t *positions = payload + plan->extracts + 1;
    const unsigned char *values = (const unsigned char *)(positions + payload[plan->extracts]);
    const uint64_t begin = payload[nth];
    return (gf_hist_bin_samples){payload[nth + 1] - begin, positions + begin,
                                 values + begin * gf_type_bytes(plan->head.in.type)};
}

static void hist_layout(const gf_plan *head, gf_sample_layout *out) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    *out = (gf_sample_layout){.type = head->in.type,
                              .width = head->in.width,
                              .channels = plan->measured,
                              .with_bin = plan->extracts > 1};
    for (uint32_t s = 0; s < plan->measured; s++) {
        out->names[s] = gf_hist_channel_name(plan, s);
        out->indices[s] = plan->luma ? GF_SAMPLE_LUMA : (uint8_t)(plan->first + s);
    }
}

static size_t hist_payload_bytes(const gf_plan *head, uint64_t rows) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    return gf_hist_head_bytes(plan) +
           gf_hist_sample_bytes(plan, rows * head->in.width * plan->measured);
}

static size_t hist_payload_used(const gf_plan *head, const void *payload) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    const uint64_t *offsets = payload;
    return gf_hist_head_bytes(plan) + gf_hist_sample_bytes(plan, offsets[plan->extracts]);
}

/* Grow the buffers of a bin to at least `count` samples. If max_memory permits, grow by a quarter
 * to limit copying. */
static gf_status hist_grow(gf_hist_data *hist, gf_hist_kept *bin, uint64_t count, gf_error *error) {
    const uint64_t max = hist->keep.max_memory, size = gf_hist_sample_bytes(hist->plan, 1);
    uint64_t capacity = bin->capacity + bin->capacity / 4;
    if (capacity < count || hist->bytes + (capacity - bin->capacity) * size > max)
        capacity = count;
    hist->bytes += (capacity - bin->capacity) * size;
    if (hist->bytes > max && (hist->buffered || hist->keep.all))
        return gf_fail(
            error, GF_FAILED,
            "%s: extracted samples of several bins, and .npy to a pipe, are kept in memory "
            "until the end and need more than %" PRIu64
            " bytes; raise --max-memory, or extract one bin to a file",
            hist->keep.name, max);
    uint64_t *positions = realloc(bin->positions, (size_t)capacity * sizeof *positions);
    if (positions)
        bin->positions = positions;
    unsigned char *values =
        realloc(bin->values, (size_t)capacity * gf_type_bytes(hist->plan->head.in.type));
    if (values)
        bin->values = values;
    if (!positions || !values)
        return gf_fail_memory(error, hist->keep.name, capacity * size, "extracted samples");
    bin->capacity = capacity;
    return GF_OK;
}

static gf_status hist_take_payload(const gf_plan *head, void *data, const void *payload,
                                   gf_error *error) {
    gf_hist_data *hist = data;
    const size_t value = gf_type_bytes(head->in.type);
    gf_status status = GF_OK;
    for (uint32_t nth = 0; nth < hist->plan->extracts && !status; nth++) {
        const gf_hist_bin_samples piece = hist_piece(hist->plan, payload, nth);
        gf_hist_kept *bin = &hist->bins[nth];
        bin->extracted += piece.count;
        /* Keep the first samples, up to the number that the result needs. */
        const uint64_t left = hist->buffered ? UINT64_MAX : hist->shown - bin->count;
        const uint64_t count = piece.count < left ? piece.count : left;
        if (bin->count + count > bin->capacity)
            status = hist_grow(hist, bin, bin->count + count, error);
        if (!status && count > 0) {
            memcpy(bin->positions + bin->count, piece.positions, (size_t)count * sizeof(uint64_t));
            memcpy(bin->values + bin->count * value, piece.values, (size_t)count * value);
            bin->count += count;
        }
        if (!status && hist->keep.samples && !hist->buffered)
            status = gf_sample_sink_write(hist->keep.samples, gf_hist_nth_bin(hist->plan, nth),
                                          piece.positions, piece.values, piece.count, error);
    }
    return status;
}

/* ---- statistics ------------------------------------------------------------------------------ */

/* Return the index of the smallest counter such that it and those before it contain at least
 * `percent` percent of `count` samples. */
static uint32_t hist_find_percentile(const uint64_t *counts, uint64_t count, uint32_t percent) {
    const gf_u128 wanted = (gf_u128)count * percent;
    uint32_t i = 0;
    gf_u128 below = counts[0];
    while (below * 100 < wanted)
        below += counts[++i];
    return i;
}

static const uint32_t percents[] = {[MEDIAN] = 50, [P1] = 1, [P99] = 99};

/* Integers: exact sums, then one rounding for each of quotient, conversion and square root. The
 * variance times count^2 is an integer, count * squares - sum^2, which fits in 128 bits for up to
 * 2^48 samples. */
static void hist_compute_integers(const gf_hist_plan *plan, const uint64_t *counts,
                                  gf_hist_statistics *out) {
    const uint32_t max = gf_type_max(plan->head.in.type);
    gf_u128 sum = 0, squares = 0;
    for (uint32_t v = 0; v <= max; v++) {
        if (counts[v] == 0)
            continue;
        if (out->count == 0)
            out->values[MIN] = v;
        out->values[MAX] = v;
        out->count += counts[v];
        sum += (gf_u128)counts[v] * v;
        squares += (gf_u128)counts[v] * v * v;
    }
    if (out->count == 0)
        return;
    for (int p = MEDIAN; p <= P99; p++)
        out->values[p] = hist_find_percentile(counts, out->count, percents[p]);
    out->values[MEAN] = gf_quotient(sum, out->count);
    out->has_std = out->count <= UINT64_C(1) << 48;
    out->values[STD] = sqrt((double)(out->count * squares - sum * sum)) / (double)out->count;
}

/* f32: counts are those of the upper halves of keys. A percentile is the end of its interval that
 * is closer to zero, but not outside of min and max. */
static void hist_compute_reals(const gf_hist_plan *plan, const uint64_t *counts,
                               const gf_hist_row_sums *sums, gf_hist_statistics *out) {
    for (uint32_t k = 0; k < GF_HIST_KEYS; k++)
        out->count += counts[k];
    if (out->count == 0)
        return;
    const uint32_t lowest = 0x007fffff,
                   highest = 0xff800000; /* of the infinities, alone in a bin */
    const uint32_t min = counts[lowest >> 16] ? lowest : sums->min < highest ? sums->min : highest;
    const uint32_t max = counts[highest >> 16] ? highest : sums->max > lowest ? sums->max : lowest;
    out->values[MIN] = (double)gf_hist_value(plan, min);
    out->values[MAX] = (double)gf_hist_value(plan, max);
    for (int p = MEDIAN; p <= P99; p++) {
        const uint32_t half = hist_find_percentile(counts, out->count, percents[p]);
        uint32_t key = half << 16 | (half < GF_HIST_KEYS / 2 ? 0xffff : 0);
        key = key > min ? key : min;
        key = key < max ? key : max;
        out->values[p] = (double)gf_hist_value(plan, key);
    }
    const double count = (double)out->count, mean = sums->sum / count;
    const double variance = (sums->squares - sums->sum * mean) / count;
    out->values[MEAN] = gf_canonical_double(mean);
    out->has_std = true;
    out->values[STD] = variance < 0 ? 0 : gf_canonical_double(sqrt(variance));
}

/* Compute what one channel reports from its counts: of values, if there are some, or of bins. */
static void hist_complete_channel(gf_hist_data *hist, uint32_t s) {
    const gf_hist_plan *plan = hist->plan;
    const gf_type type = plan->head.in.type;
    uint64_t *bins = hist->counts + (size_t)s * plan->counters;
    const uint64_t *values = plan->values ? hist->values + (size_t)s * plan->values : bins;
    for (uint32_t v = 0; plan->folded && v <= gf_type_max(type); v++)
        bins[gf_hist_counter_of(plan, v)] += values[v];
    if (plan->folded)
        bins[plan->bins + GF_HIST_AT_NAN] = values[gf_type_max(type) + 1]; /* nodata */
    if (plan->statistics && type == GF_F32)
        hist_compute_reals(plan, values, &hist->sums[s], &hist->statistics[s]);
    else if (plan->statistics)
        hist_compute_integers(plan, values, &hist->statistics[s]);
}

gf_status gf_hist_refine(gf_plan *head, const void *data, gf_error *error) {
    gf_hist_plan *plan = (gf_hist_plan *)head;
    const gf_hist_data *hist = data;
    uint32_t min = UINT32_MAX, max = 0; /* keys */
    for (uint32_t s = 0; s < plan->measured; s++) {
        const gf_hist_statistics *found = &hist->statistics[s];
        gf_hist_row_sums sums = hist->sums[s];
        if (head->in.type != GF_F32 && found->count > 0)
            sums = (gf_hist_row_sums){.min = (uint32_t)found->values[MIN],
                                      .max = (uint32_t)found->values[MAX]};
        min = sums.min < min ? sums.min : min;
        max = sums.max > max ? sums.max : max;
    }
    if (min > max)
        return gf_fail(error, GF_FAILED,
                       "%s: --range data: there is no finite sample; give --range LO,HI",
                       hist->keep.name);
    plan->lo = (double)gf_hist_value(plan, min) + 0.0; /* 0 for -0 */
    plan->hi = (double)gf_hist_value(plan, max) + 0.0;
    return GF_OK;
}

static gf_status hist_finish(const gf_plan *head, void *data, const void *state, gf_error *error) {
    gf_hist_data *hist = data;
    const uint32_t extracts = hist->plan->extracts;
    gf_hist_kept *bins = hist->bins;
    gf_status status = GF_OK;
    if (head->state_bytes)
        memcpy(gf_hist_state_counters(hist->plan) ? hist->counts : hist->values, state,
               (size_t)head->state_bytes);
    for (uint32_t s = 0; s < hist->plan->measured; s++)
        hist_complete_channel(hist, s);
    uint64_t all = 0;
    for (uint32_t nth = 0; nth < extracts; nth++) {
        const uint64_t count = bins[nth].count;
        bins[nth + 1].before = bins[nth].before + (count < hist->shown ? count : hist->shown);
        all += count;
    }
    if (hist->buffered && gf_sample_sink_wants_count(hist->keep.samples))
        status = gf_sample_sink_count(hist->keep.samples, all, error);
    for (uint32_t nth = 0; nth < extracts && hist->buffered && !status; nth++)
        status =
            gf_sample_sink_write(hist->keep.samples, gf_hist_nth_bin(hist->plan, nth),
                                 bins[nth].positions, bins[nth].values, bins[nth].count, error);
    return status;
}

/* ---- comparison of payloads with the golden backend ------------------------------------------ */

/* Iterator over the samples of one extracted bin in a sequence of pieces. */
typedef struct gf_hist_cursor {
    const gf_payloads *payloads;
    uint32_t piece;
    uint64_t next;     /* index of the next sample of this bin in the piece */
    uint64_t position; /* of the current sample */
    uint32_t bits;
} gf_hist_cursor;

static const uint64_t *hist_payload(const gf_payloads *payloads, uint32_t piece) {
    return (const uint64_t *)(const void *)(payloads->data + piece * payloads->stride);
}

/* Check that the offsets of every head ascend, that each of several payloads ends before the next
 * one, and that all together hold no more samples than the rows have. */
static bool hist_is_valid(const gf_hist_plan *plan, uint64_t rows, const gf_payloads *payloads) {
    uint64_t left = rows * plan->head.in.width * plan->measured;
    for (uint32_t p = 0; p < payloads->count; p++) {
        const uint64_t *offsets = hist_payload(payloads, p), count = offsets[plan->extracts];
        if (offsets[0] != 0 || count > left ||
            (payloads->count > 1 &&
             gf_hist_head_bytes(plan) + gf_hist_sample_bytes(plan, count) > payloads->stride))
            return false;
        for (uint32_t r = 0; r < plan->extracts; r++)
            if (offsets[r] > offsets[r + 1])
                return false;
        left -= count;
    }
    return true;
}

/* Advance to the next sample of an extracted bin. Returns false after the last one. */
static bool hist_next(const gf_hist_plan *plan, uint32_t nth, gf_hist_cursor *cursor) {
    for (; cursor->piece < cursor->payloads->count; cursor->piece++, cursor->next = 0) {
        const gf_hist_bin_samples piece =
            hist_piece(plan, hist_payload(cursor->payloads, cursor->piece), nth);
        if (cursor->next == piece.count)
            continue;
        cursor->position = piece.positions[cursor->next];
        cursor->bits = gf_sample_bits(plan->head.in.type, piece.values, cursor->next++);
        return true;
    }
    return false;
}

/* Compare the samples of each bin in image order. */
static bool hist_payload_differ(const gf_plan *head, uint64_t rows, const gf_payloads *golden,
                                const gf_payloads *got, char *where, size_t size) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    if (!hist_is_valid(plan, rows, got)) {
        snprintf(where, size, "the offsets of the extracted samples are inconsistent");
        return true;
    }
    for (uint32_t nth = 0; nth < plan->extracts; nth++) {
        const uint32_t bin = gf_hist_nth_bin(plan, nth);
        gf_hist_cursor a = {.payloads = golden}, b = {.payloads = got};
        bool expected, present;
        do {
            expected = hist_next(plan, nth, &a);
            present = hist_next(plan, nth, &b);
        } while (expected && present && a.position == b.position && a.bits == b.bits);
        if (expected != present)
            snprintf(where, size, "bin %" PRIu32 " has too %s samples", bin,
                     present ? "many" : "few");
        else if (expected)
            snprintf(where, size,
                     "bin %" PRIu32 " has sample 0x%" PRIx32 " at position %" PRIu64
                     ", expected 0x%" PRIx32 " at position %" PRIu64,
                     bin, b.bits, b.position, a.bits, a.position);
        if (expected || present)
            return true;
    }
    return false;
}

enum { COLUMN_BIN, COLUMN_FROM, COLUMN_TO, COLUMN_COUNTS };
enum { COLUMN_CHANNEL, COLUMN_SAMPLES, COLUMN_OUTSIDE }; /* and the counters after those of bins */
_Static_assert(GF_HIST_AT_NAN == 0 && GF_HIST_AT_BELOW == 1 && GF_HIST_AT_ABOVE == 2,
               "columns are in the order of the counters");

/* Tables in order. ROWS exists only with --per-row, FIRST only with --statistics, STATISTICS only
 * with statistics that were not requested, EXTRACTED and SAMPLES only with --extract. */
enum { FIRST, ROWS, BINS, TOTALS, STATISTICS, EXTRACTED, SAMPLES };

static bool hist_has_table(const gf_hist_plan *plan, int table) {
    return table == FIRST        ? plan->requested
           : table == ROWS       ? plan->per_row
           : table == STATISTICS ? plan->statistics && !plan->requested
                                 : table < STATISTICS || plan->extracts > 0;
}

#define TERMINAL_LINES 32 /* max bars: leaves lines for the heading */

/* ---- values and edges of a bin --------------------------------------------------------------- */

/* Does every bin contain an integer value? Its edges are then its first and last value. */
static bool hist_has_values(const gf_hist_plan *plan) {
    return plan->head.in.type != GF_F32 && !plan->ranged &&
           plan->bins <= gf_type_max(plan->head.in.type) + 1;
}

/* Return the cell in column FROM or TO of a bin. brief: as in text. */
static gf_value hist_edge_value(const gf_hist_plan *plan, uint32_t bin, size_t column, bool brief) {
    const uint32_t at = column == COLUMN_FROM ? bin : bin + 1;
    const uint64_t max = gf_type_max(plan->head.in.type);
    const double span = plan->hi - plan->lo;
    const double edge = at == plan->bins ? plan->hi : plan->lo + at * span / plan->bins;
    if (!hist_has_values(plan))
        return gf_value_double(brief ? gf_round_edge(edge, span / plan->bins) : edge);
    /* The smallest value v of a bin: v * bins / max >= bin, in integers. */
    const uint64_t first = (at * max + plan->bins - 1) / plan->bins;
    return gf_value_uint(column == COLUMN_FROM ? first : at == plan->bins ? max : first - 1);
}

static gf_value hist_sample_value(const gf_hist_plan *plan, const gf_hist_kept *bin, uint64_t i) {
    const gf_type type = plan->head.in.type;
    return gf_value_sample(type, gf_get_sample(type, bin->values, i));
}

#define TEXT_BYTES 48 /* max length of a formatted value */

static const char *hist_text(gf_value value, char text[TEXT_BYTES]) {
    gf_value_format(&value, text, TEXT_BYTES);
    return text;
}

static void hist_add_edges(const gf_hist_plan *plan, gf_table *table) {
    const gf_value_type type = hist_has_values(plan) ? GF_VALUE_UINT : GF_VALUE_DOUBLE;
    gf_table_add_columns(table, GF_VALUE_UINT, "bin", NULL);
    gf_table_add_columns(table, type, "from", "to", NULL);
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Print "Bin 3 [96, 127] count: 1234", and the first values on the next line. */
static void hist_print_bin(const gf_hist_plan *plan, const gf_hist_data *hist, uint32_t nth,
                           gf_result *result) {
    const uint32_t bin = gf_hist_nth_bin(plan, nth);
    const gf_hist_kept *kept = &hist->bins[nth];
    const uint64_t count = kept->extracted, shown = count < SHOWN ? count : SHOWN;
    char from[TEXT_BYTES], to[TEXT_BYTES], values[SHOWN * 24] = "";
    gf_result_add_text(result, "Bin %u [%s, %s%c count: %" PRIu64 "\n", bin,
                       hist_text(hist_edge_value(plan, bin, COLUMN_FROM, true), from),
                       hist_text(hist_edge_value(plan, bin, COLUMN_TO, true), to),
                       hist_has_values(plan) || bin == plan->bins - 1 ? ']' : ')', count);
    size_t used = 0;
    for (uint64_t i = 0; i < shown; i++)
        used += (size_t)snprintf(values + used, sizeof values - used, " %s",
                                 hist_text(hist_sample_value(plan, kept, i), from));
    if (shown > 0)
        gf_result_add_text(result, "  values:%s%s\n", values, shown < count ? " ..." : "");
}

/* Print "NaN in luma: 3", or "Nodata", and "Outside the range in luma: 12 below 0.25, 7 above
 * 0.75". */
static void hist_print_outside(const gf_hist_plan *plan, const gf_hist_data *hist, uint32_t s,
                               gf_result *result) {
    const char *name = gf_hist_channel_name(plan, s);
    const uint64_t *outside = hist->counts + (size_t)s * plan->counters + plan->bins;
    char lo[TEXT_BYTES], hi[TEXT_BYTES];
    if (outside[GF_HIST_AT_NAN])
        gf_result_add_text(result, "%s in %s: %" PRIu64 "\n",
                           !plan->head.nodata.declared    ? "NaN"
                           : plan->head.in.type == GF_F32 ? "NaN and nodata"
                                                          : "Nodata",
                           name, outside[GF_HIST_AT_NAN]);
    if (plan->outside && !plan->alone && (outside[GF_HIST_AT_BELOW] || outside[GF_HIST_AT_ABOVE]))
        gf_result_add_text(
            result, "Outside the range in %s: %" PRIu64 " below %s, %" PRIu64 " above %s%s\n", name,
            outside[GF_HIST_AT_BELOW], hist_text(gf_value_double(plan->lo), lo),
            outside[GF_HIST_AT_ABOVE], hist_text(gf_value_double(plan->hi), hi),
            plan->ranged ? "" : ", counted in the first and the last bin");
}

/* Print "luma: 393216 samples, min 0, p1 29, median 148, p99 226, max 255, mean 141.2, std 46.1".
 */
static void hist_print_statistics(const gf_hist_plan *plan, const gf_hist_data *hist, uint32_t s,
                                  gf_result *result) {
    const gf_hist_statistics *found = &hist->statistics[s];
    char text[STATISTIC_COUNT][TEXT_BYTES];
    if (found->count == 0)
        return;
    for (int i = 0; i < STATISTIC_COUNT; i++)
        hist_text(gf_value_float((float)found->values[i]), text[i]); /* rounded to binary32 */
    gf_result_add_text(result,
                       "%s: %" PRIu64
                       " samples, min %s, p1 %s, median %s, p99 %s, max %s, mean "
                       "%s, std %s\n",
                       gf_hist_channel_name(plan, s), found->count, text[MIN], text[P1],
                       text[MEDIAN], text[P99], text[MAX], text[MEAN],
                       found->has_std ? text[STD] : "unknown");
}

static void hist_add_statistics(const gf_hist_plan *plan, gf_result *result) {
    const gf_value_type type = gf_sample_value_type(plan->head.in.type);
    gf_table *table = gf_result_add_table(result, "statistics", plan->measured);
    gf_table_add_columns(table, GF_VALUE_TEXT, "channel", NULL);
    gf_table_add_columns(table, GF_VALUE_UINT, "count", NULL);
    gf_table_add_columns(table, type, "min", "max", NULL);
    gf_table_add_columns(table, GF_VALUE_DOUBLE, "mean", "std", NULL);
    gf_table_add_columns(table, type, "median", "p1", "p99", NULL);
}

static void hist_describe(const gf_plan *head, const void *data, gf_result *result) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    const gf_hist_data *hist = data;
    char lo[TEXT_BYTES], hi[TEXT_BYTES];
    if (hist_has_table(plan, FIRST))
        hist_add_statistics(plan, result);
    if (plan->per_row) {
        const uint64_t rows = head->in.height * plan->measured * plan->bins;
        gf_table *table = gf_result_add_table(result, "rows", rows);
        table->in_text = true;
        gf_table_add_columns(table, GF_VALUE_UINT, "y", NULL);
        gf_table_add_columns(table, GF_VALUE_TEXT, "channel", NULL);
        gf_table_add_columns(table, GF_VALUE_UINT, "bin", "count", NULL);
    }
    gf_table *table = gf_result_add_table(result, "bins", plan->bins);
    table->in_text = !plan->alone;
    table->chart = GF_CHART_BARS;
    table->brief = plan->brief ? TERMINAL_LINES : 0;
    table->x_label = "sample value";
    table->y_label = "samples";
    hist_add_edges(plan, table);
    table->curves = table->column_count;
    for (uint32_t s = 0; s < plan->measured; s++)
        gf_table_add_columns(table, GF_VALUE_UINT, gf_hist_channel_name(plan, s), NULL);
    table = gf_result_add_table(result, "totals", plan->measured);
    gf_table_add_columns(table, GF_VALUE_TEXT, "channel", NULL);
    gf_table_add_columns(table, GF_VALUE_UINT, "samples", "nan", NULL);
    if (plan->outside)
        gf_table_add_columns(table, GF_VALUE_UINT, "below", "above", NULL);
    if (head->measure_first)
        gf_result_add_text(result, "Range of the data: %s to %s\n",
                           hist_text(gf_value_float((float)plan->lo), lo),
                           hist_text(gf_value_float((float)plan->hi), hi));
    if (hist_has_table(plan, STATISTICS))
        hist_add_statistics(plan, result);
    for (uint32_t s = 0; s < plan->measured && plan->statistics; s++)
        hist_print_statistics(plan, hist, s, result);
    for (uint32_t s = 0; s < plan->measured; s++)
        hist_print_outside(plan, hist, s, result);
    if (!plan->extracts)
        return;
    table = gf_result_add_table(result, "extracted", plan->extracts);
    hist_add_edges(plan, table);
    gf_table_add_columns(table, GF_VALUE_UINT, "count", NULL);
    table = gf_result_add_table(result, "samples", hist->bins[plan->extracts].before);
    gf_table_add_columns(table, GF_VALUE_UINT, "bin", "x", "y", NULL);
    gf_table_add_columns(table, GF_VALUE_TEXT, "channel", NULL);
    gf_table_add_columns(table, gf_sample_value_type(head->in.type), "value", NULL);
    for (uint32_t nth = 0; nth < plan->extracts && plan->extracts <= SHOWN_BINS; nth++)
        hist_print_bin(plan, hist, nth, result);
}

static gf_value hist_bins_cell(const gf_hist_plan *plan, const gf_hist_data *hist, uint64_t row,
                               size_t column) {
    const uint32_t bin = (uint32_t)row;
    if (column <= COLUMN_TO)
        return column == COLUMN_BIN ? gf_value_uint(bin)
                                    : hist_edge_value(plan, bin, column, false);
    return gf_value_uint(
        gf_hist_count(plan, hist->counts + (column - COLUMN_COUNTS) * plan->counters, bin));
}

static gf_value hist_rows_cell(const gf_hist_plan *plan, const gf_hist_data *hist, uint64_t row,
                               size_t column) {
    const uint32_t bin = (uint32_t)(row % plan->bins);
    const uint32_t s = (uint32_t)(row / plan->bins % plan->measured);
    return column == 0   ? gf_value_uint(row / plan->bins / plan->measured)
           : column == 1 ? gf_value_text(gf_hist_channel_name(plan, s))
           : column == 2 ? gf_value_uint(bin)
                         : gf_value_uint(gf_hist_count(
                               plan, hist->rows + row / plan->bins * plan->counters, bin));
}

static gf_value hist_samples_cell(const gf_hist_plan *plan, const gf_hist_data *hist, uint64_t i,
                                  size_t column) {
    uint32_t low = 0, high = plan->extracts; /* the last bin whose samples begin at or before i */
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (hist->bins[middle].before <= i)
            low = middle;
        else
            high = middle;
    }
    const gf_hist_kept *bin = &hist->bins[low];
    const uint64_t position = bin->positions[i - bin->before], pixel = position / plan->measured;
    return column == 0   ? gf_value_uint(gf_hist_nth_bin(plan, low))
           : column == 1 ? gf_value_uint(pixel % plan->head.in.width)
           : column == 2 ? gf_value_uint(pixel / plan->head.in.width)
           : column == 3
               ? gf_value_text(gf_hist_channel_name(plan, (uint32_t)(position % plan->measured)))
               : hist_sample_value(plan, bin, i - bin->before);
}

static gf_value hist_totals_cell(const gf_hist_plan *plan, const gf_hist_data *hist, uint64_t s,
                                 size_t column) {
    const uint64_t *outside = hist->counts + s * plan->counters + plan->bins;
    return column == COLUMN_CHANNEL
               ? gf_value_text(gf_hist_channel_name(plan, (uint32_t)s))
               : gf_value_uint(column == COLUMN_SAMPLES ? plan->head.in.width * plan->head.in.height
                                                        : outside[column - COLUMN_OUTSIDE]);
}

static gf_value hist_statistics_cell(const gf_hist_plan *plan, const gf_hist_data *hist, uint64_t s,
                                     size_t column) {
    const gf_hist_statistics *found = &hist->statistics[s];
    if (column == 0)
        return gf_value_text(gf_hist_channel_name(plan, (uint32_t)s));
    if (column == 1)
        return gf_value_uint(found->count);
    const size_t statistic = column - 2;
    const double value = found->values[statistic];
    if (found->count == 0 || (statistic == STD && !found->has_std))
        return gf_value_none();
    return statistic == MEAN || statistic == STD
               ? gf_value_double(value)
               : gf_value_sample(plan->head.in.type, (float)value);
}

static gf_value hist_extracted_cell(const gf_hist_plan *plan, const gf_hist_data *hist,
                                    uint64_t nth, size_t column) {
    return column <= COLUMN_TO
               ? hist_bins_cell(plan, hist, gf_hist_nth_bin(plan, (uint32_t)nth), column)
               : gf_value_uint(hist->bins[nth].extracted);
}

static gf_value hist_cell(const gf_plan *head, const void *data, size_t table, uint64_t row,
                          size_t column) {
    static gf_value (*const cells[])(const gf_hist_plan *, const gf_hist_data *, uint64_t,
                                     size_t) = {[FIRST] = hist_statistics_cell,
                                                [ROWS] = hist_rows_cell,
                                                [BINS] = hist_bins_cell,
                                                [TOTALS] = hist_totals_cell,
                                                [STATISTICS] = hist_statistics_cell,
                                                [EXTRACTED] = hist_extracted_cell,
                                                [SAMPLES] = hist_samples_cell};
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    int kind = 0;
    while (!hist_has_table(plan, kind) || table-- > 0)
        kind++;
    return cells[kind](plan, data, row, column);
}

const gf_measure gf_hist_measure = {
    .merge = gf_merge_sums,
    .open = hist_open_data,
    .rows = hist_take_rows,
    .payload = hist_take_payload,
    .finish = hist_finish,
    .describe = hist_describe,
    .cell = hist_cell,
    .close = hist_close_data,
};

const gf_payload_format gf_hist_payload = {
    .bytes = hist_payload_bytes,
    .used = hist_payload_used,
    .differ = hist_payload_differ,
    .layout = hist_layout,
};
