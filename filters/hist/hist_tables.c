/* The tables of hist. */
#include <inttypes.h>
#include <stdio.h>

#include "hist/hist_result.h"
#include "result.h"

enum { COLUMN_BIN, COLUMN_FROM, COLUMN_TO, COLUMN_FIRST, COLUMN_LAST };

/* The tables in their order; ROWS only with --per-row. */
enum { ROWS, BINS, TOTALS, EXTRACTED, SAMPLES };

/* ---- names
 * --------------------------------------------------------------------------------------- */

const char *gf_hist_channel_name(const gf_hist_plan *plan, uint32_t s) {
    return plan->luma ? "luma" : gf_channel_name(plan->head.in.channels, plan->first + s);
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

void gf_hist_describe(const gf_plan *head, const void *data, gf_result *result) {
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

gf_value gf_hist_cell(const gf_plan *head, const void *data, size_t table, uint64_t row,
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
