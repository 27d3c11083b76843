/* The tables of hist. */
#include <inttypes.h>
#include <stdio.h>

#include "hist/hist_result.h"
#include "result.h"

enum { COLUMN_BIN, COLUMN_FROM, COLUMN_TO, COLUMN_COUNTS };
enum { COLUMN_CHANNEL, COLUMN_SAMPLES, COLUMN_NAN, COLUMN_BELOW, COLUMN_ABOVE };

/* The tables in their order; ROWS only with --per-row. */
enum { ROWS, BINS, TOTALS, EXTRACTED, SAMPLES };

#define TERMINAL_LINES 32 /* of bars: more do not fit below a heading */

/* ---- names ----------------------------------------------------------------------------------- */

const char *gf_hist_channel_name(const gf_hist_plan *plan, uint32_t s) {
    return plan->luma ? "luma" : gf_channel_name(plan->head.in.channels, plan->first + s);
}

/* ---- what a bin is --------------------------------------------------------------------------- */

/* The lower edge of a bin, in sample values; bin plan->bins: the upper edge of the last one. */
static double edge(const gf_hist_plan *plan, uint32_t bin) {
    if (plan->ranged && bin == plan->bins)
        return plan->hi;
    if (plan->ranged)
        return plan->lo + bin * (plan->hi - plan->lo) / plan->bins;
    const double most = plan->head.in.type == GF_F32 ? 1 : gf_hist_max(plan);
    return bin * most / plan->bins;
}

/* Is each bin some integer values, at least one? Its edges are then the first and the last. */
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

/* Get the cell in column FROM or TO of a bin. */
static gf_value edge_value(const gf_hist_plan *plan, uint32_t bin, size_t column) {
    if (has_values(plan))
        return gf_value_uint(column == COLUMN_FROM ? first_value(plan, bin)
                                                   : last_value(plan, bin));
    return gf_value_double(edge(plan, column == COLUMN_FROM ? bin : bin + 1));
}

static void add_edges(const gf_hist_plan *plan, gf_table *table) {
    const gf_value_type type = has_values(plan) ? GF_VALUE_UINT : GF_VALUE_DOUBLE;
    gf_table_add_column(table, "bin", GF_VALUE_UINT);
    gf_table_add_column(table, "from", type);
    gf_table_add_column(table, "to", type);
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
    table->brief = plan->brief ? TERMINAL_LINES : 0;
    table->x_label = "sample value";
    table->y_label = "samples";
    add_edges(plan, table);
    table->curves = table->column_count;
    for (uint32_t s = 0; s < plan->measured; s++)
        gf_table_add_column(table, gf_hist_channel_name(plan, s), GF_VALUE_UINT);
}

/* "Bin 3 [96, 127] count: 1234", and the first values on a line of their own. */
static void say_bin(const gf_hist_plan *plan, const gf_hist_data *hist, uint32_t rank,
                    gf_result *result) {
    const uint32_t bin = bin_of_rank(plan, rank);
    char from[48], to[48], values[GF_HIST_SHOWN * 24] = "";
    gf_value value = edge_value(plan, bin, COLUMN_FROM);
    gf_value_format(&value, from, sizeof from);
    value = edge_value(plan, bin, COLUMN_TO);
    gf_value_format(&value, to, sizeof to);
    const uint64_t count = gf_hist_samples_count(hist->samples, rank);
    gf_result_say(result, "Bin %u [%s, %s%c count: %" PRIu64 "\n", bin, from, to,
                  has_values(plan) || bin == plan->bins - 1 ? ']' : ')', count);
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
    add_edges(plan, table);
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

/* Get how many samples are in no bin, from one of the counters behind those of the bins. */
static uint64_t outside(const gf_hist_plan *plan, const gf_hist_data *hist, uint64_t s,
                        uint32_t counter) {
    return hist->counts[s * plan->counters + plan->bins + counter];
}

/* "NaN in luma: 3", "outside the range in luma: 12 below 0.25, 7 above 0.75". */
static void say_outside(const gf_hist_plan *plan, const gf_hist_data *hist, uint32_t s,
                        gf_result *result) {
    const char *name = gf_hist_channel_name(plan, s);
    const uint64_t nan = outside(plan, hist, s, GF_HIST_AT_NAN);
    if (nan)
        gf_result_say(result, "NaN in %s: %" PRIu64 "\n", name, nan);
    if (!plan->ranged)
        return;
    const uint64_t below = outside(plan, hist, s, GF_HIST_AT_BELOW);
    const uint64_t above = outside(plan, hist, s, GF_HIST_AT_ABOVE);
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
    if (plan->ranged) {
        gf_table_add_column(table, "below", GF_VALUE_UINT);
        gf_table_add_column(table, "above", GF_VALUE_UINT);
    }
    for (uint32_t s = 0; s < plan->measured; s++)
        say_outside(plan, hist, s, result);
    if (plan->extracts)
        describe_samples(plan, hist, result);
}

static gf_value bins_cell(const gf_hist_plan *plan, const gf_hist_data *hist, uint32_t bin,
                          size_t column) {
    if (column == COLUMN_BIN)
        return gf_value_uint(bin);
    if (column <= COLUMN_TO)
        return edge_value(plan, bin, column);
    return gf_value_uint(hist->counts[(column - COLUMN_COUNTS) * plan->counters + bin]);
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
        return gf_value_uint(hist->rows[(y * plan->measured + s) * plan->counters + bin]);
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

static gf_value totals_cell(const gf_hist_plan *plan, const gf_hist_data *hist, uint64_t s,
                            size_t column) {
    if (column == COLUMN_CHANNEL)
        return gf_value_text(gf_hist_channel_name(plan, (uint32_t)s));
    if (column == COLUMN_SAMPLES)
        return gf_value_uint(plan->head.in.width * plan->head.in.height);
    return gf_value_uint(outside(plan, hist, s, (uint32_t)(column - COLUMN_NAN)));
}

_Static_assert(COLUMN_BELOW - COLUMN_NAN == GF_HIST_AT_BELOW &&
                   COLUMN_ABOVE - COLUMN_NAN == GF_HIST_AT_ABOVE,
               "columns are in the order of the counters");

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
        return totals_cell(plan, hist, row, column);
    }
}
