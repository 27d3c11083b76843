/* From states, records and payloads of hist to its tables. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "hist/hist_samples.h"
#include "io/sample_sink.h"
#include "result.h"

enum { COLUMN_BIN, COLUMN_FROM, COLUMN_TO, COLUMN_FIRST, COLUMN_LAST };

typedef struct gf_hist_data {
    gf_hist_samples *samples; /* NULL: none are extracted */
    uint64_t *counts;         /* as in a state */
    uint64_t *rows;           /* as in a record, of each row; NULL without --per-row */
} gf_hist_data;

/* The tables in their order; ROWS only with --per-row. */
enum { ROWS, BINS, TOTALS, EXTRACTED, SAMPLES };

static void merge(const gf_plan *plan, void *state, const void *other) {
    uint64_t *to = state;
    const uint64_t *from = other;
    for (uint64_t i = 0; i < gf_hist_counters((const gf_hist_plan *)plan); i++)
        to[i] += from[i];
}

static size_t payload_bytes(const gf_plan *head, uint64_t rows) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    return gf_hist_head_bytes(plan) +
           gf_hist_sample_bytes(plan, rows * head->in.width * plan->measured);
}

static size_t payload_used(const gf_plan *head, const void *payload) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    const uint64_t *offsets = payload;
    return gf_hist_head_bytes(plan) + gf_hist_sample_bytes(plan, offsets[plan->extracts]);
}

static void layout(const gf_plan *head, gf_sample_layout *out) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    *out = (gf_sample_layout){.type = head->in.type,
                              .width = head->in.width,
                              .channels = plan->measured,
                              .with_bin = plan->extracts > 1};
    for (uint32_t s = 0; s < plan->measured; s++)
        out->names[s] = gf_hist_channel_name(plan, s);
}

static void close_data(void *data) {
    gf_hist_data *hist = data;
    if (!hist)
        return;
    gf_hist_samples_close(hist->samples);
    free(hist->counts);
    free(hist->rows);
    free(hist);
}

static gf_status open_data(const gf_plan *head, const gf_keep *keep, void **out, gf_error *error) {
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
        close_data(hist);
        hist = NULL;
    }
    *out = hist;
    return status;
}

static gf_status take_rows(const gf_plan *head, void *data, const gf_rows *out, gf_error *error) {
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

static gf_status take_payload(const gf_plan *head, void *data, const void *payload,
                              gf_error *error) {
    (void)head;
    return gf_hist_samples_take(((gf_hist_data *)data)->samples, payload, error);
}

static gf_status finish(const gf_plan *head, void *data, const void *state, gf_error *error) {
    gf_hist_data *hist = data;
    if (head->state_bytes)
        memcpy(hist->counts, state, (size_t)head->state_bytes);
    return hist->samples ? gf_hist_samples_finish(hist->samples, error) : GF_OK;
}

/* ---- what a bin is --------------------------------------------------------------------------- */

static double edge(const gf_hist_plan *plan, uint32_t bin) {
    const double share = (double)bin / plan->bins;
    if (!plan->ranged)
        return share;
    return bin == plan->bins ? plan->hi : plan->lo + share * (plan->hi - plan->lo);
}

/* Does each bin hold certain sample values, at least one? */
static bool has_values(const gf_hist_plan *plan) {
    return plan->head.in.type != GF_F32 && !plan->ranged && plan->bins <= gf_hist_max(plan) + 1;
}

/* The least value v in a bin: v * bins / max >= bin, in integers. */
static uint64_t first_value(const gf_hist_plan *plan, uint32_t bin) {
    return ((uint64_t)bin * gf_hist_max(plan) + plan->bins - 1) / plan->bins;
}

static uint64_t last_value(const gf_hist_plan *plan, uint32_t bin) {
    return bin == plan->bins - 1 ? gf_hist_max(plan) : first_value(plan, bin + 1) - 1;
}

static uint32_t bin_of_rank(const gf_hist_plan *plan, uint64_t rank) {
    return plan->extract_all ? (uint32_t)rank : plan->listed[rank];
}

/* ---- tables ---------------------------------------------------------------------------------- */

static gf_table *add_table(gf_result *result, const char *name, uint64_t rows) {
    gf_table *table = gf_result_add_table(result, name);
    table->row_count = rows;
    return table;
}

static void add_bins(const gf_hist_plan *plan, gf_table *table) {
    table->for_people = true;
    table->chart = GF_CHART_BARS;
    table->x_label = plan->ranged || plan->head.in.type == GF_F32 ? "sample value"
                                                                  : "sample value / largest value";
    table->y_label = "samples";
    gf_table_add_column(table, "bin", GF_VALUE_UINT);
    gf_table_add_column(table, "from", GF_VALUE_DOUBLE);
    gf_table_add_column(table, "to", GF_VALUE_DOUBLE);
    if (has_values(plan)) {
        gf_table_add_column(table, "first", GF_VALUE_UINT);
        gf_table_add_column(table, "last", GF_VALUE_UINT);
    }
    table->curves = table->column_count;
    for (uint32_t s = 0; s < plan->measured; s++)
        gf_table_add_column(table, gf_hist_channel_name(plan, s), GF_VALUE_UINT);
}

/* "Bin 3 [0.375, 0.5) count: 1234", and the first values on a line of their own. */
static void say_bin(const gf_hist_plan *plan, const gf_hist_data *hist, uint32_t rank,
                    gf_result *result) {
    const uint32_t bin = bin_of_rank(plan, rank);
    char from[48], to[48], values[GF_HIST_SHOWN * 24] = "";
    gf_value value = gf_value_double(edge(plan, bin));
    gf_value_format(&value, from, sizeof from);
    value = gf_value_double(edge(plan, bin + 1));
    gf_value_format(&value, to, sizeof to);
    const uint64_t count = gf_hist_samples_count(hist->samples, rank);
    gf_result_say(result, "Bin %u [%s, %s%c count: %" PRIu64 "\n", bin, from, to,
                  bin == plan->bins - 1 ? ']' : ')', count);
    const uint64_t begin = gf_hist_samples_begin(hist->samples, rank);
    uint64_t end = gf_hist_samples_begin(hist->samples, rank + 1);
    if (end - begin > GF_HIST_SHOWN)
        end = begin + GF_HIST_SHOWN;
    size_t used = 0;
    for (uint64_t i = begin; i < end; i++) {
        gf_hist_sample sample = gf_hist_samples_at(hist->samples, i);
        char text[48];
        gf_value_format(&sample.value, text, sizeof text);
        used += (size_t)snprintf(values + used, sizeof values - used, " %s", text);
    }
    if (end > begin)
        gf_result_say(result, "  values:%s%s\n", values, end - begin < count ? " ..." : "");
}

static void describe_samples(const gf_hist_plan *plan, const gf_hist_data *hist,
                             gf_result *result) {
    gf_table *table = add_table(result, "extracted", plan->extracts);
    gf_table_add_column(table, "bin", GF_VALUE_UINT);
    gf_table_add_column(table, "from", GF_VALUE_DOUBLE);
    gf_table_add_column(table, "to", GF_VALUE_DOUBLE);
    gf_table_add_column(table, "count", GF_VALUE_UINT);
    table = add_table(result, "samples", gf_hist_samples_shown(hist->samples));
    gf_table_add_column(table, "bin", GF_VALUE_UINT);
    gf_table_add_column(table, "x", GF_VALUE_UINT);
    gf_table_add_column(table, "y", GF_VALUE_UINT);
    gf_table_add_column(table, "channel", GF_VALUE_TEXT);
    gf_table_add_column(table, "value",
                        plan->head.in.type == GF_F32 ? GF_VALUE_FLOAT : GF_VALUE_UINT);
    for (uint32_t rank = 0; rank < plan->extracts && plan->extracts <= GF_HIST_SHOWN_BINS; rank++)
        say_bin(plan, hist, rank, result);
}

static uint64_t nans(const gf_hist_plan *plan, const gf_hist_data *hist, uint64_t s) {
    return hist->counts[s * (plan->bins + 1) + plan->bins];
}

static void describe(const gf_plan *head, const void *data, gf_result *result) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    const gf_hist_data *hist = data;
    if (plan->per_row) {
        gf_table *table = add_table(result, "rows", head->in.height * plan->measured * plan->bins);
        table->for_people = true;
        gf_table_add_column(table, "y", GF_VALUE_UINT);
        gf_table_add_column(table, "channel", GF_VALUE_TEXT);
        gf_table_add_column(table, "bin", GF_VALUE_UINT);
        gf_table_add_column(table, "count", GF_VALUE_UINT);
    }
    add_bins(plan, add_table(result, "bins", plan->bins));
    gf_table *table = add_table(result, "totals", plan->measured);
    gf_table_add_column(table, "channel", GF_VALUE_TEXT);
    gf_table_add_column(table, "samples", GF_VALUE_UINT);
    gf_table_add_column(table, "nan", GF_VALUE_UINT);
    for (uint32_t s = 0; s < plan->measured; s++)
        if (nans(plan, hist, s))
            gf_result_say(result, "NaN in %s: %" PRIu64 "\n", gf_hist_channel_name(plan, s),
                          nans(plan, hist, s));
    if (plan->extracts)
        describe_samples(plan, hist, result);
}

static gf_value bins_cell(const gf_hist_plan *plan, const gf_hist_data *hist, uint32_t bin,
                          size_t column) {
    const size_t values = has_values(plan) ? 2 : 0;
    if (column == COLUMN_BIN)
        return gf_value_uint(bin);
    if (column <= COLUMN_TO)
        return gf_value_double(edge(plan, column == COLUMN_FROM ? bin : bin + 1));
    if (column < COLUMN_FIRST + values)
        return gf_value_uint(column == COLUMN_FIRST ? first_value(plan, bin)
                                                    : last_value(plan, bin));
    return gf_value_uint(hist->counts[(column - COLUMN_FIRST - values) * (plan->bins + 1) + bin]);
}

static gf_value rows_cell(const gf_hist_plan *plan, const gf_hist_data *hist, uint64_t row,
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
        return gf_value_uint(hist->rows[(y * plan->measured + s) * (plan->bins + 1) + bin]);
    }
}

static gf_value extracted_cell(const gf_hist_plan *plan, const gf_hist_data *hist, uint32_t rank,
                               size_t column) {
    const uint32_t bin = bin_of_rank(plan, rank);
    return column <= COLUMN_TO ? bins_cell(plan, hist, bin, column)
                               : gf_value_uint(gf_hist_samples_count(hist->samples, rank));
}

static gf_value samples_cell(const gf_hist_plan *plan, const gf_hist_data *hist, uint64_t i,
                             size_t column) {
    gf_hist_sample sample = gf_hist_samples_at(hist->samples, i);
    const uint64_t pixel = sample.position / plan->measured;
    uint32_t low = 0, high = plan->extracts; /* the bin whose samples begin at or before i */
    switch (column) {
    case 0:
        while (high - low > 1) {
            uint32_t middle = low + (high - low) / 2;
            if (gf_hist_samples_begin(hist->samples, middle) <= i)
                low = middle;
            else
                high = middle;
        }
        return gf_value_uint(bin_of_rank(plan, low));
    case 1:
        return gf_value_uint(pixel % plan->head.in.width);
    case 2:
        return gf_value_uint(pixel / plan->head.in.width);
    case 3:
        return gf_value_text(
            gf_hist_channel_name(plan, (uint32_t)(sample.position % plan->measured)));
    default:
        return sample.value;
    }
}

static gf_value cell(const gf_plan *head, const void *data, size_t table, uint64_t row,
                     size_t column) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    const gf_hist_data *hist = data;
    switch (table + (plan->per_row ? ROWS : BINS)) {
    case ROWS:
        return rows_cell(plan, hist, row, column);
    case BINS:
        return bins_cell(plan, hist, (uint32_t)row, column);
    case EXTRACTED:
        return extracted_cell(plan, hist, (uint32_t)row, column);
    case SAMPLES:
        return samples_cell(plan, hist, row, column);
    default:
        if (column == 0)
            return gf_value_text(gf_hist_channel_name(plan, (uint32_t)row));
        return gf_value_uint(column == 1 ? plan->head.in.width * plan->head.in.height
                                         : nans(plan, hist, row));
    }
}

const gf_measure gf_hist_measure = {
    .merge = merge,
    .payload_bytes = payload_bytes,
    .payload_used = payload_used,
    .layout = layout,
    .open = open_data,
    .rows = take_rows,
    .payload = take_payload,
    .finish = finish,
    .describe = describe,
    .cell = cell,
    .close = close_data,
};
