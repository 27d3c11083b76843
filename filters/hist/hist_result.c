/* What hist keeps on the host, and its tables. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/result.h"
#include "hist/hist_samples.h"

typedef struct gf_hist_data {
    gf_hist_samples *samples; /* NULL: none are extracted */
    uint64_t *counts;         /* as in a state */
    uint64_t *rows;           /* as in a record, of each row; NULL without --per-row */
} gf_hist_data;

static void hist_merge(const gf_plan *plan, void *state, const void *other) {
    uint64_t *to = state;
    const uint64_t *from = other;
    for (uint64_t i = 0; i < gf_hist_counters((const gf_hist_plan *)plan); i++)
        to[i] += from[i];
}

static void hist_close_data(void *data) {
    gf_hist_data *hist = data;
    if (!hist)
        return;
    gf_hist_samples_close(hist->samples);
    free(hist->counts);
    free(hist->rows);
    free(hist);
}

static gf_status hist_open_data(const gf_plan *head, const gf_keep *keep, void **out,
                                gf_error *error) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    const uint64_t counters = gf_hist_counters(plan);
    gf_hist_data *hist = calloc(1, sizeof *hist);
    gf_status status = GF_OK;
    if (hist)
        hist->counts = calloc((size_t)counters, sizeof *hist->counts);
    if (hist && plan->per_row)
        hist->rows = calloc((size_t)(counters * head->in.height), sizeof *hist->rows);
    if (!hist || !hist->counts || (plan->per_row && !hist->rows))
        status = gf_fail_memory(error, keep->name, head->result_bytes, "the counts");
    else if (plan->extracts)
        status = gf_hist_samples_open(plan, keep, &hist->samples, error);
    if (status) {
        hist_close_data(hist);
        hist = NULL;
    }
    *out = hist;
    return status;
}

static gf_status hist_take_rows(const gf_plan *head, void *data, const gf_rows *out,
                                gf_error *error) {
    (void)error;
    gf_hist_data *hist = data;
    const uint64_t counters = gf_hist_counters((const gf_hist_plan *)head);
    for (uint64_t y = out->y0; y < out->y0 + out->rows; y++) {
        const uint64_t *record = gf_record(head, out, y);
        memcpy(hist->rows + y * counters, record, head->record);
        for (uint64_t i = 0; i < counters; i++)
            hist->counts[i] += record[i];
    }
    return GF_OK;
}

static gf_status hist_take_payload(const gf_plan *head, void *data, const void *payload,
                                   gf_error *error) {
    (void)head;
    return gf_hist_samples_take(((gf_hist_data *)data)->samples, payload, error);
}

static gf_status hist_finish(const gf_plan *head, void *data, const void *state, gf_error *error) {
    gf_hist_data *hist = data;
    if (head->state_bytes)
        memcpy(hist->counts, state, (size_t)head->state_bytes);
    return hist->samples ? gf_hist_samples_finish(hist->samples, error) : GF_OK;
}

enum { COLUMN_BIN, COLUMN_FROM, COLUMN_TO, COLUMN_COUNTS };
enum { COLUMN_CHANNEL, COLUMN_SAMPLES, COLUMN_NAN, COLUMN_BELOW, COLUMN_ABOVE };

/* The tables in their order; ROWS only with --per-row. */
enum { ROWS, BINS, TOTALS, EXTRACTED, SAMPLES };

#define TERMINAL_LINES 32 /* of bars: more do not fit below a heading */

/* ---- what a bin is --------------------------------------------------------------------------- */

/* The lower edge of a bin, in sample values; bin plan->bins: the upper edge of the last one. */
static double hist_edge(const gf_hist_plan *plan, uint32_t bin) {
    if (plan->ranged && bin == plan->bins)
        return plan->hi;
    if (plan->ranged)
        return plan->lo + bin * (plan->hi - plan->lo) / plan->bins;
    const double most = plan->head.in.type == GF_F32 ? 1 : gf_hist_max(plan);
    return bin * most / plan->bins;
}

/* Is each bin some integer values, at least one? Its edges are then the first and the last. */
static bool hist_has_values(const gf_hist_plan *plan) {
    return plan->head.in.type != GF_F32 && !plan->ranged && plan->bins <= gf_hist_max(plan) + 1;
}

/* The least value v in a bin: v * bins / max >= bin, in integers. */
static uint64_t hist_first_value(const gf_hist_plan *plan, uint32_t bin) {
    return ((uint64_t)bin * gf_hist_max(plan) + plan->bins - 1) / plan->bins;
}

static uint64_t hist_last_value(const gf_hist_plan *plan, uint32_t bin) {
    return bin == plan->bins - 1 ? gf_hist_max(plan) : hist_first_value(plan, bin + 1) - 1;
}

/* Get the cell in column FROM or TO of a bin. */
static gf_value hist_edge_value(const gf_hist_plan *plan, uint32_t bin, size_t column) {
    if (hist_has_values(plan))
        return gf_value_uint(column == COLUMN_FROM ? hist_first_value(plan, bin)
                                                   : hist_last_value(plan, bin));
    return gf_value_double(hist_edge(plan, column == COLUMN_FROM ? bin : bin + 1));
}

/* Get the value of a sample that is shown. */
static gf_value hist_sample_value(const gf_hist_plan *plan, const gf_hist_data *hist, uint64_t i) {
    const float value = gf_get_sample(plan->head.in.type, hist->samples->values, i);
    return plan->head.in.type == GF_F32 ? gf_value_float(value) : gf_value_uint((uint64_t)value);
}

static void hist_add_edges(const gf_hist_plan *plan, gf_table *table) {
    const gf_value_type type = hist_has_values(plan) ? GF_VALUE_UINT : GF_VALUE_DOUBLE;
    gf_table_add_column(table, "bin", GF_VALUE_UINT);
    gf_table_add_column(table, "from", type);
    gf_table_add_column(table, "to", type);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static gf_table *hist_add_table(gf_result *result, const char *name, uint64_t rows) {
    gf_table *table = gf_result_add_table(result, name);
    table->row_count = rows;
    return table;
}

static void hist_add_bins(const gf_hist_plan *plan, gf_table *table) {
    table->for_people = true;
    table->chart = GF_CHART_BARS;
    table->brief = plan->brief ? TERMINAL_LINES : 0;
    table->x_label = "sample value";
    table->y_label = "samples";
    hist_add_edges(plan, table);
    table->curves = table->column_count;
    for (uint32_t s = 0; s < plan->measured; s++)
        gf_table_add_column(table, gf_hist_channel_name(plan, s), GF_VALUE_UINT);
}

/* "Bin 3 [96, 127] count: 1234", and the first values on a line of their own. */
static void hist_say_bin(const gf_hist_plan *plan, const gf_hist_data *hist, uint32_t rank,
                         gf_result *result) {
    const uint32_t bin = gf_hist_bin_of_rank(plan, rank);
    char from[48], to[48], values[GF_HIST_SHOWN * 24] = "";
    gf_value value = hist_edge_value(plan, bin, COLUMN_FROM);
    gf_value_format(&value, from, sizeof from);
    value = hist_edge_value(plan, bin, COLUMN_TO);
    gf_value_format(&value, to, sizeof to);
    const uint64_t count = hist->samples->counts[rank];
    gf_result_say(result, "Bin %u [%s, %s%c count: %" PRIu64 "\n", bin, from, to,
                  hist_has_values(plan) || bin == plan->bins - 1 ? ']' : ')', count);
    const uint64_t begin = hist->samples->begins[rank];
    uint64_t end = hist->samples->begins[rank + 1];
    if (end - begin > GF_HIST_SHOWN)
        end = begin + GF_HIST_SHOWN;
    size_t used = 0;
    for (uint64_t i = begin; i < end; i++) {
        char text[48];
        value = hist_sample_value(plan, hist, i);
        gf_value_format(&value, text, sizeof text);
        used += (size_t)snprintf(values + used, sizeof values - used, " %s", text);
    }
    if (end > begin)
        gf_result_say(result, "  values:%s%s\n", values, end - begin < count ? " ..." : "");
}

static void hist_describe_samples(const gf_hist_plan *plan, const gf_hist_data *hist,
                                  gf_result *result) {
    gf_table *table = hist_add_table(result, "extracted", plan->extracts);
    hist_add_edges(plan, table);
    gf_table_add_column(table, "count", GF_VALUE_UINT);
    table = hist_add_table(result, "samples", hist->samples->begins[plan->extracts]);
    gf_table_add_column(table, "bin", GF_VALUE_UINT);
    gf_table_add_column(table, "x", GF_VALUE_UINT);
    gf_table_add_column(table, "y", GF_VALUE_UINT);
    gf_table_add_column(table, "channel", GF_VALUE_TEXT);
    gf_table_add_column(table, "value",
                        plan->head.in.type == GF_F32 ? GF_VALUE_FLOAT : GF_VALUE_UINT);
    for (uint32_t rank = 0; rank < plan->extracts && plan->extracts <= GF_HIST_SHOWN_BINS; rank++)
        hist_say_bin(plan, hist, rank, result);
}

/* Get how many samples are in no bin, from one of the counters behind those of the bins. */
static uint64_t hist_outside(const gf_hist_plan *plan, const gf_hist_data *hist, uint64_t s,
                             uint32_t counter) {
    return hist->counts[s * plan->counters + plan->bins + counter];
}

/* "NaN in luma: 3", "outside the range in luma: 12 below 0.25, 7 above 0.75". */
static void hist_say_outside(const gf_hist_plan *plan, const gf_hist_data *hist, uint32_t s,
                             gf_result *result) {
    const char *name = gf_hist_channel_name(plan, s);
    const uint64_t nan = hist_outside(plan, hist, s, GF_HIST_AT_NAN);
    if (nan)
        gf_result_say(result, "NaN in %s: %" PRIu64 "\n", name, nan);
    if (!plan->ranged)
        return;
    const uint64_t below = hist_outside(plan, hist, s, GF_HIST_AT_BELOW);
    const uint64_t above = hist_outside(plan, hist, s, GF_HIST_AT_ABOVE);
    char lo[48], hi[48];
    gf_value value = gf_value_double(plan->lo);
    gf_value_format(&value, lo, sizeof lo);
    value = gf_value_double(plan->hi);
    gf_value_format(&value, hi, sizeof hi);
    if (below || above)
        gf_result_say(result,
                      "Outside the range in %s: %" PRIu64 " below %s, %" PRIu64 " above %s\n", name,
                      below, lo, above, hi);
}

static void hist_describe(const gf_plan *head, const void *data, gf_result *result) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    const gf_hist_data *hist = data;
    if (plan->per_row) {
        gf_table *table =
            hist_add_table(result, "rows", head->in.height * plan->measured * plan->bins);
        table->for_people = true;
        gf_table_add_column(table, "y", GF_VALUE_UINT);
        gf_table_add_column(table, "channel", GF_VALUE_TEXT);
        gf_table_add_column(table, "bin", GF_VALUE_UINT);
        gf_table_add_column(table, "count", GF_VALUE_UINT);
    }
    hist_add_bins(plan, hist_add_table(result, "bins", plan->bins));
    gf_table *table = hist_add_table(result, "totals", plan->measured);
    gf_table_add_column(table, "channel", GF_VALUE_TEXT);
    gf_table_add_column(table, "samples", GF_VALUE_UINT);
    gf_table_add_column(table, "nan", GF_VALUE_UINT);
    if (plan->ranged) {
        gf_table_add_column(table, "below", GF_VALUE_UINT);
        gf_table_add_column(table, "above", GF_VALUE_UINT);
    }
    for (uint32_t s = 0; s < plan->measured; s++)
        hist_say_outside(plan, hist, s, result);
    if (plan->extracts)
        hist_describe_samples(plan, hist, result);
}

static gf_value hist_bins_cell(const gf_hist_plan *plan, const gf_hist_data *hist, uint32_t bin,
                               size_t column) {
    if (column == COLUMN_BIN)
        return gf_value_uint(bin);
    if (column <= COLUMN_TO)
        return hist_edge_value(plan, bin, column);
    return gf_value_uint(hist->counts[(column - COLUMN_COUNTS) * plan->counters + bin]);
}

static gf_value hist_rows_cell(const gf_hist_plan *plan, const gf_hist_data *hist, uint64_t row,
                               size_t column) {
    const uint32_t bin = (uint32_t)(row % plan->bins);
    const uint32_t s = (uint32_t)(row / plan->bins % plan->measured);
    const uint64_t y = row / plan->bins / plan->measured;
    switch (column) {
    case 0:
        return gf_value_uint(y);
    case 1:
        return gf_value_text(gf_hist_channel_name(plan, s));
    case 2:
        return gf_value_uint(bin);
    default:
        return gf_value_uint(hist->rows[(y * plan->measured + s) * plan->counters + bin]);
    }
}

static gf_value hist_extracted_cell(const gf_hist_plan *plan, const gf_hist_data *hist,
                                    uint32_t rank, size_t column) {
    const uint32_t bin = gf_hist_bin_of_rank(plan, rank);
    return column <= COLUMN_TO ? hist_bins_cell(plan, hist, bin, column)
                               : gf_value_uint(hist->samples->counts[rank]);
}

static gf_value hist_samples_cell(const gf_hist_plan *plan, const gf_hist_data *hist, uint64_t i,
                                  size_t column) {
    const uint64_t position = hist->samples->positions[i], pixel = position / plan->measured;
    uint32_t low = 0, high = plan->extracts; /* the bin whose samples begin at or before i */
    switch (column) {
    case 0:
        while (high - low > 1) {
            uint32_t middle = low + (high - low) / 2;
            if (hist->samples->begins[middle] <= i)
                low = middle;
            else
                high = middle;
        }
        return gf_value_uint(gf_hist_bin_of_rank(plan, low));
    case 1:
        return gf_value_uint(pixel % plan->head.in.width);
    case 2:
        return gf_value_uint(pixel / plan->head.in.width);
    case 3:
        return gf_value_text(gf_hist_channel_name(plan, (uint32_t)(position % plan->measured)));
    default:
        return hist_sample_value(plan, hist, i);
    }
}

static gf_value hist_totals_cell(const gf_hist_plan *plan, const gf_hist_data *hist, uint64_t s,
                                 size_t column) {
    if (column == COLUMN_CHANNEL)
        return gf_value_text(gf_hist_channel_name(plan, (uint32_t)s));
    if (column == COLUMN_SAMPLES)
        return gf_value_uint(plan->head.in.width * plan->head.in.height);
    return gf_value_uint(hist_outside(plan, hist, s, (uint32_t)(column - COLUMN_NAN)));
}

_Static_assert(COLUMN_BELOW - COLUMN_NAN == GF_HIST_AT_BELOW &&
                   COLUMN_ABOVE - COLUMN_NAN == GF_HIST_AT_ABOVE,
               "columns are in the order of the counters");

static gf_value hist_cell(const gf_plan *head, const void *data, size_t table, uint64_t row,
                          size_t column) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    const gf_hist_data *hist = data;
    switch (table + (plan->per_row ? ROWS : BINS)) {
    case ROWS:
        return hist_rows_cell(plan, hist, row, column);
    case BINS:
        return hist_bins_cell(plan, hist, (uint32_t)row, column);
    case EXTRACTED:
        return hist_extracted_cell(plan, hist, (uint32_t)row, column);
    case SAMPLES:
        return hist_samples_cell(plan, hist, row, column);
    default:
        return hist_totals_cell(plan, hist, row, column);
    }
}

const gf_measure gf_hist_measure = {
    .merge = hist_merge,
    .open = hist_open_data,
    .rows = hist_take_rows,
    .payload = hist_take_payload,
    .finish = hist_finish,
    .describe = hist_describe,
    .cell = hist_cell,
    .close = hist_close_data,
};
