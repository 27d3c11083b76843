/* What is drawn between the axes: bars, lines, and the legend above them. */
#include "plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "plot_axes.h"
#include "report.h"

#define WIDTH 640
#define HEIGHT 400
#define COLUMN 0.5 /* points: a pixel of a PNG; what is closer is drawn as one */
#define CROWDED 2  /* outlines of bars narrower than this would hide each other ... */
#define ROOM 3     /* ... so they are drawn in columns of this width */
#define LEGEND_SIZE 11.0

struct gf_cli_plot {
    const char *path;
    bool log;
    gf_output_file *file;
    gf_canvas *canvas;
    const gf_result *result;
    const gf_table *table;
    size_t index;    /* of the table */
    size_t from, to; /* columns along x */
    gf_axis x, y;
};

static bool ends_with(const char *path, const char *ending) {
    const size_t n = strlen(path), m = strlen(ending);
    return n >= m && strcasecmp(path + n - m, ending) == 0;
}

const bool gf_cli_has_plots = true;

gf_status gf_cli_plot_open(const gf_cli_line *line, gf_cli_plot **out, gf_error *error) {
    const gf_settings *options = line->common;
    const gf_file_options files = gf_cli_file_options(line);
    *out = NULL;
    const char *path = gf_settings_text(options, "plot");
    const char *format = gf_settings_text(options, "plot-format");
    const bool standard = strcmp(path, "-") == 0;
    const bool svg = format ? strcmp(format, "svg") == 0 : ends_with(path, ".svg");
    if (!format && !standard && !svg && !ends_with(path, ".png"))
        return gf_set_error(error, GF_USAGE,
                            "--plot '%s': must name a .png or .svg file; or add --plot-format",
                            path);
    gf_cli_plot *plot = calloc(1, sizeof *plot);
    if (!plot)
        return gf_set_error(error, GF_FAILED, "--plot: out of memory");
    plot->path = standard ? "standard output" : path;
    plot->log = gf_settings_flag(options, "log");
    gf_status status = gf_canvas_open(svg, WIDTH, HEIGHT, &plot->canvas, error);
    if (!status)
        status = gf_output_file_open(path, &files, &plot->file, error);
    if (status) {
        gf_cli_plot_close(plot);
        return status;
    }
    *out = plot;
    return GF_OK;
}

gf_output_file *gf_cli_plot_file(const gf_cli_plot *plot) {
    return plot->file;
}

void gf_cli_plot_close(gf_cli_plot *plot) {
    if (!plot)
        return;
    gf_canvas_close(plot->canvas);
    gf_output_file_close(plot->file);
    free(plot);
}

/* ---- the data -------------------------------------------------------------------------------- */

static double number(const gf_cli_plot *plot, uint64_t row, size_t column) {
    const gf_value value = gf_result_cell(plot->result, plot->index, row, column);
    return gf_cli_number(&value);
}

/* Is everything in these columns a whole number? */
static bool is_whole(const gf_table *table, size_t first, size_t last) {
    bool whole = true;
    for (size_t c = first; c <= last; c++)
        whole = whole && table->columns[c].type == GF_VALUE_UINT;
    return whole;
}

/* Where the bin of a row ends: integers take the place up to the next one. */
static double end_of(const gf_cli_plot *plot, uint64_t row) {
    const bool bars = plot->table->chart == GF_CHART_BARS;
    return number(plot, row, plot->to) + (bars && is_whole(plot->table, plot->to, plot->to));
}

/* Of a curve: what is too large to round the axis up counts as infinite, too small as zero. */
static double height(const gf_cli_plot *plot, uint64_t row, size_t column) {
    const double value = number(plot, row, column), size = fabs(value);
    return size > 1e300 ? (double)INFINITY : size < 1e-300 ? 0 : value;
}

static bool find_chart(gf_cli_plot *plot) {
    while (plot->index < gf_result_table_count(plot->result)) {
        plot->table = gf_result_table(plot->result, plot->index);
        if (plot->table->chart != GF_CHART_NONE && plot->table->row_count > 0)
            break;
        plot->index++;
    }
    if (plot->index == gf_result_table_count(plot->result))
        return false;
    for (size_t c = 0; c < plot->table->curves; c++) {
        if (plot->table->chart == GF_CHART_BARS &&
            strcmp(plot->table->columns[c].name, "from") == 0)
            plot->from = c;
        if (plot->table->chart == GF_CHART_BARS && strcmp(plot->table->columns[c].name, "to") == 0)
            plot->to = c;
    }
    return true;
}

typedef struct gf_extent {
    double lo, hi, least; /* least: the smallest above zero */
} gf_extent;

static void extend(gf_extent *extent, double value) {
    if (!isfinite(value))
        return;
    extent->lo = value < extent->lo ? value : extent->lo;
    extent->hi = value > extent->hi ? value : extent->hi;
    extent->least = value > 0 && value < extent->least ? value : extent->least;
}

static gf_status choose_ranges(gf_cli_plot *plot, gf_error *error) {
    const gf_table *table = plot->table;
    const bool bars = table->chart == GF_CHART_BARS;
    const size_t last = table->column_count - 1;
    gf_extent x = {INFINITY, -INFINITY, INFINITY}, y = x;
    for (uint64_t row = 0; row < table->row_count; row++) {
        extend(&x, number(plot, row, plot->from));
        extend(&x, end_of(plot, row));
        for (size_t c = table->curves; c <= last; c++)
            extend(&y, height(plot, row, c));
    }
    if (!(x.lo < x.hi)) { /* a single place, or none */
        x.lo = isfinite(x.lo) ? x.lo - 0.5 : 0;
        x.hi = x.lo + 1;
    }
    /* Zero belongs to bars, and to lines that come near it. */
    if (y.lo > 0 && (bars || y.lo < y.hi / 2 || y.lo == y.hi))
        y.lo = 0;
    if (y.hi < 0 && (bars || y.hi > y.lo / 2 || y.lo == y.hi))
        y.hi = 0;
    if (!(y.lo < y.hi)) {
        y.lo = 0;
        y.hi = 1;
    }
    plot->x.label = table->x_label;
    plot->y.label = table->y_label;
    gf_axis_linear(&plot->x, x.lo, x.hi, 8, is_whole(table, plot->from, plot->to), false);
    if (plot->log && !isfinite(y.least))
        return gf_set_error(
            error, GF_FAILED,
            "%s: nothing is above zero, where a logarithmic axis begins; leave --log "
            "out",
            plot->path);
    if (plot->log)
        gf_axis_log(&plot->y, y.least, y.hi, bars);
    else
        gf_axis_linear(&plot->y, y.lo, y.hi, 6, is_whole(table, table->curves, last), true);
    return GF_OK;
}

static gf_colour colour_of(const gf_cli_plot *plot, size_t column) {
    static const struct {
        const char *name;
        gf_colour colour;
    } channels[] = {{"r", {0.80, 0.15, 0.15}},
                    {"g", {0.10, 0.55, 0.20}},
                    {"b", {0.12, 0.35, 0.80}},
                    {"a", {0.50, 0.20, 0.65}},
                    {"", {0.36, 0.39, 0.43}}};
    size_t i = 0;
    while (channels[i].name[0] && strcmp(plot->table->columns[column].name, channels[i].name) != 0)
        i++;
    return channels[i].colour;
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* The bars of a curve as one outline of steps, or apart where there is room between them. */
static void draw_bars(gf_cli_plot *plot, size_t column, bool alone) {
    const uint64_t rows = plot->table->row_count;
    const gf_colour colour = colour_of(plot, column);
    const double base = plot->y.log ? plot->y.begin : gf_axis_at(&plot->y, 0);
    const double bar = (plot->x.end - plot->x.begin) / (double)rows;
    const double gap = alone && bar > 4 ? 0.5 : 0, least = alone || bar >= CROWDED ? COLUMN : ROOM;
    double end = plot->x.begin;
    for (uint64_t row = 0; row < rows; row++) {
        const double begin = gf_axis_at(&plot->x, number(plot, row, plot->from));
        const bool first = row == 0;
        double most = 0;
        for (;; row++) {
            const double value = height(plot, row, column);
            most = isfinite(value) && fabs(value) > fabs(most) ? value : most;
            end = gf_axis_at(&plot->x, end_of(plot, row));
            if (end - begin >= least || row + 1 == rows)
                break;
        }
        const double top = gf_axis_at(&plot->y, most);
        if (gap > 0) {
            gf_canvas_box(plot->canvas, begin + gap, base, end - gap, top);
            continue;
        }
        gf_canvas_line(plot->canvas, begin, first ? base : top);
        gf_canvas_line(plot->canvas, begin, top);
        gf_canvas_line(plot->canvas, end, top);
    }
    if (gap == 0)
        gf_canvas_line(plot->canvas, end, base);
    gf_canvas_fill(plot->canvas, colour, alone ? 1 : 0.15, !alone);
    if (!alone)
        gf_canvas_stroke(plot->canvas, colour, 1);
}

/* The points of a line that fall into one column of pixels: nothing between them gets lost. */
typedef struct gf_pixel_column {
    double x, first, low, high, last;
    bool begins; /* a line; it does not come from the left */
} gf_pixel_column;

static void draw_column(gf_canvas *canvas, const gf_pixel_column *column, bool ends) {
    if (column->begins)
        gf_canvas_move(canvas, column->x, column->first);
    gf_canvas_line(canvas, column->x, column->first);
    if (column->low < column->high) {
        gf_canvas_line(canvas, column->x, column->low);
        gf_canvas_line(canvas, column->x, column->high);
        gf_canvas_line(canvas, column->x, column->last);
    } else if (column->begins && ends) { /* a point all alone */
        gf_canvas_box(canvas, column->x - 1, column->first - 1, column->x + 1, column->first + 1);
    }
}

static void draw_lines(gf_cli_plot *plot, size_t column) {
    gf_pixel_column now = {0};
    bool open = false;
    for (uint64_t row = 0; row < plot->table->row_count; row++) {
        const double value = height(plot, row, column);
        if (!isfinite(value) || (plot->y.log && value <= 0)) {
            if (open)
                draw_column(plot->canvas, &now, true);
            open = false;
            continue;
        }
        const double x = gf_axis_at(&plot->x, number(plot, row, plot->from));
        const double y = gf_axis_at(&plot->y, value);
        if (open && x - now.x < COLUMN) {
            now.low = y < now.low ? y : now.low;
            now.high = y > now.high ? y : now.high;
            now.last = y;
            continue;
        }
        if (open)
            draw_column(plot->canvas, &now, false);
        now =
            (gf_pixel_column){.x = x, .first = y, .low = y, .high = y, .last = y, .begins = !open};
        open = true;
    }
    if (open)
        draw_column(plot->canvas, &now, true);
    gf_canvas_stroke(plot->canvas, colour_of(plot, column), 1.1);
}

static void draw_legend(gf_cli_plot *plot) {
    const double baseline = plot->y.end - 10;
    double x = plot->x.end;
    for (size_t c = plot->table->column_count; c-- > plot->table->curves;) {
        const char *name = plot->table->columns[c].name;
        gf_canvas_text(plot->canvas, x, baseline, LEGEND_SIZE, 1, false, name);
        x -= gf_canvas_text_width(plot->canvas, LEGEND_SIZE, name) + 5;
        gf_canvas_move(plot->canvas, x - 16, baseline - 4);
        gf_canvas_line(plot->canvas, x, baseline - 4);
        gf_canvas_stroke(plot->canvas, colour_of(plot, c), 3);
        x -= 16 + 14;
    }
}

gf_status gf_cli_plot_draw(gf_cli_plot *plot, const gf_result *result, gf_error *error) {
    plot->result = result;
    if (!find_chart(plot))
        return gf_set_error(error, GF_FAILED, "%s: there is nothing to draw", plot->path);
    gf_status status = choose_ranges(plot, error);
    if (status)
        return status;
    const size_t curves = plot->table->column_count - plot->table->curves;
    gf_axes_place(plot->canvas, &plot->x, &plot->y, WIDTH, HEIGHT, curves > 1);
    for (size_t c = plot->table->curves; c < plot->table->column_count; c++) {
        if (plot->table->chart == GF_CHART_BARS)
            draw_bars(plot, c, curves == 1);
        else
            draw_lines(plot, c);
    }
    gf_axes_draw(plot->canvas, &plot->x, &plot->y);
    if (curves > 1)
        draw_legend(plot);
    const void *data;
    size_t size;
    status = gf_canvas_finish(plot->canvas, &data, &size, error);
    return status ? status : gf_output_file_write(plot->file, data, size, error);
}
