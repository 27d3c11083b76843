/* Charts of results as PNG or SVG: bars or lines, axes and a legend, drawn by cairo. The library is
 * loaded by --plot, so that the program runs without it and starts faster. Without its header at
 * build time, this file is not compiled, and --plot fails. */
#include <cairo-svg.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "report.h"

#define LIBRARY "libcairo.so.2"
#define PNG_SCALE 2 /* pixels per point */
#define WIDTH 640   /* points */
#define HEIGHT 400

#define TICK 5
#define NUMBER_SIZE 11.0
#define LABEL_SIZE 12.5
#define RAISED_SIZE 8.0
#define LEGEND_SIZE 11.0
#define MARGIN 14.0
#define MINUS "\u2212"

#define MAX_TICKS 24
#define MAX_DECIMALS 15

/* Widths in points. */
#define COLUMN 0.5  /* a pixel of a PNG: rows in one column are merged */
#define MIN_STEP 2  /* minimum width of bars drawn as an outline */
#define WIDE_STEP 3 /* column width for bars that are narrower: their outlines would overlap */

typedef struct gf_colour {
    double r, g, b;
} gf_colour;

static const gf_colour ink = {0.15, 0.15, 0.15}, faint = {0.9, 0.9, 0.9};

typedef struct gf_axis {
    double lo, hi;     /* range of the data, then of the axis */
    double min;        /* smallest value above zero */
    double begin, end; /* page coordinates of lo and hi */
    bool log;
    double ticks[MAX_TICKS]; /* major ticks, with a number */
    size_t tick_count;
    int power;    /* numbers are in units of 10^power, unless log */
    int decimals; /* of the numbers; -1: no fixed number */
} gf_axis;

struct gf_cli_plot {
    const char *path;
    gf_output_file *file;
    /* The page. Coordinates are points from the top left corner. */
    cairo_surface_t *surface;
    cairo_t *page;
    bool svg;
    FILE *encoder; /* collects the bytes of the file in memory */
    char *data;
    size_t size;
    /* The data. */
    const gf_result *result;
    const gf_table *table;
    size_t index;    /* of the table */
    size_t from, to; /* columns along x */
    bool bars;       /* not lines */
    gf_axis x, y;
};

/* ---- the page -------------------------------------------------------------------------------- */

/* Functions of cairo, declared as in its header. */
static struct {
#define GF_CAIRO(name) __typeof__(name) *name;
#include "cairo.def"
#undef GF_CAIRO
} cairo;

static const char *const cairo_names[] = {
#define GF_CAIRO(name) #name,
#include "cairo.def"
#undef GF_CAIRO
};

_Static_assert(sizeof cairo == sizeof cairo_names, "the struct is an array of pointers");

static gf_status check_cairo(cairo_status_t status, gf_error *error) {
    return status ? gf_set_error(error, GF_FAILED, "--plot: cairo: %s",
                                 cairo.cairo_status_to_string(status))
                  : GF_OK;
}

static cairo_status_t on_bytes(void *closure, const unsigned char *data, unsigned int size) {
    return fwrite(data, 1, size, closure) == size ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_NO_MEMORY;
}

/* Load cairo and create a white page. */
static gf_status open_page(gf_cli_plot *plot, gf_error *error) {
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return gf_set_error(error, GF_FAILED,
                            "--plot: cannot load " LIBRARY ": %s; install the package libcairo2",
                            dlerror());
    /* Never unload it: cairo does not support unloading its font libraries. */
    for (size_t i = 0; i < sizeof cairo_names / sizeof *cairo_names; i++) {
        void *function = dlsym(library, cairo_names[i]);
        if (!function)
            return gf_set_error(error, GF_FAILED, "--plot: " LIBRARY " has no function %s",
                                cairo_names[i]);
        /* ISO C has no cast from object to function pointers. POSIX has equal representations. */
        memcpy((void **)(void *)&cairo + i, &function, sizeof function);
    }
    plot->encoder = open_memstream(&plot->data, &plot->size);
    if (!plot->encoder)
        return gf_set_error(error, GF_FAILED, "--plot: out of memory");
    plot->surface =
        plot->svg
            ? cairo.cairo_svg_surface_create_for_stream(on_bytes, plot->encoder, WIDTH, HEIGHT)
            : cairo.cairo_image_surface_create(CAIRO_FORMAT_RGB24, WIDTH * PNG_SCALE,
                                               HEIGHT * PNG_SCALE);
    cairo_t *page = plot->page = cairo.cairo_create(plot->surface);
    if (!plot->svg)
        cairo.cairo_scale(page, PNG_SCALE, PNG_SCALE);
    cairo.cairo_set_source_rgba(page, 1, 1, 1, 1);
    cairo.cairo_paint(page);
    cairo.cairo_set_line_cap(page, CAIRO_LINE_CAP_ROUND);
    cairo.cairo_set_line_join(page, CAIRO_LINE_JOIN_ROUND);
    cairo.cairo_select_font_face(page, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                                 CAIRO_FONT_WEIGHT_NORMAL);
    return check_cairo(cairo.cairo_status(page), error);
}

static void page_line(gf_cli_plot *plot, double x0, double y0, double x1, double y1) {
    cairo.cairo_move_to(plot->page, x0, y0);
    cairo.cairo_line_to(plot->page, x1, y1);
}

static void page_box(gf_cli_plot *plot, double x0, double y0, double x1, double y1) {
    cairo.cairo_rectangle(plot->page, x0, y0, x1 - x0, y1 - y0);
}

static void stroke_path(gf_cli_plot *plot, gf_colour colour, double width) {
    cairo.cairo_set_source_rgba(plot->page, colour.r, colour.g, colour.b, 1);
    cairo.cairo_set_line_width(plot->page, width);
    cairo.cairo_stroke(plot->page);
}

static double page_text_width(gf_cli_plot *plot, double size, const char *text) {
    cairo_text_extents_t extents;
    cairo.cairo_set_font_size(plot->page, size);
    cairo.cairo_text_extents(plot->page, text, &extents);
    return extents.x_advance;
}

/* Draw text with its baseline at y; upwards: turned by 90 degrees. share: position of x in it. */
static void page_text(gf_cli_plot *plot, double x, double y, double size, double share,
                      bool upwards, const char *text) {
    const double width = share * page_text_width(plot, size, text);
    cairo.cairo_save(plot->page);
    cairo.cairo_set_source_rgba(plot->page, 0, 0, 0, 1);
    cairo.cairo_move_to(plot->page, upwards ? x : x - width, upwards ? y + width : y);
    if (upwards)
        cairo.cairo_rotate(plot->page, -1.5707963267948966);
    cairo.cairo_show_text(plot->page, text);
    cairo.cairo_restore(plot->page);
}

/* ---- ranges and ticks ------------------------------------------------------------------------ */

/* Round a value up or down to 1, 2 or 5 times a power of ten. */
static double next_round(double value, bool up) {
    static const double factors[] = {1, 2, 5, 10};
    const double power = pow(10, floor(log10(value)));
    size_t i = 0;
    while (i < 3 && factors[i] * power < value)
        i++;
    if (!up && i > 0 && factors[i] * power > value)
        i--;
    return factors[i] * power;
}

/* Choose about `wanted` ticks in steps of 1, 2 or 5 times a power of ten. whole: at integers only.
 * grow: extend the axis to ticks at both ends. */
static void axis_linear(gf_axis *axis, int wanted, bool whole, bool grow) {
    double lo = axis->lo, hi = axis->hi, step = next_round((hi - lo) / wanted, true);
    if (!(step > 1e-300)) /* avoids underflow below */
        step = hi - lo;
    if (whole && step < 1)
        step = 1;
    if (grow) {
        axis->lo = lo = floor(lo / step) * step;
        axis->hi = hi = ceil(hi / step) * step;
    }
    const double first = ceil(lo / step - 1e-6);
    for (int i = 0; i < MAX_TICKS && (first + i) * step <= hi + 1e-6 * step; i++)
        axis->ticks[axis->tick_count++] = (first + i) * step;
    const double max = fmax(fabs(lo), fabs(hi));
    if ((max >= 1e5 || max < 1e-2) && max > 1e-300) {
        const int power = (int)floor(log10(max));
        const bool multiple = power >= -9 && power < 15; /* use multiples of 3 in this range */
        axis->power = multiple ? 3 * (int)floor(power / 3.0) : power;
    }
    const double decimals = axis->power - floor(log10(step) + 1e-6);
    axis->decimals = decimals > MAX_DECIMALS ? -1 : decimals > 0 ? (int)decimals : 0;
}

/* Choose the range and ticks of a logarithmic axis. below: extend it below the lowest value, which
 * would have no height otherwise. */
static void axis_log(gf_axis *axis, bool below) {
    axis->lo = next_round(axis->min, false);
    if (below || axis->lo == axis->min) /* keeps the lowest value off the x axis */
        axis->lo *= 0.5;
    axis->hi = next_round(axis->hi, true);
    if (!(axis->hi > 2 * axis->lo))
        axis->hi = 4 * axis->lo;
    const int first = (int)floor(log10(axis->lo)), last = (int)ceil(log10(axis->hi));
    const int stride = 1 + (last - first - 1) / 8;
    /* Ticks at powers of ten; if they are less than 3, at 1, 2 and 5 times powers of ten. */
    for (int max = 1; max <= 5 && axis->tick_count < 3; max += 4) {
        axis->tick_count = 0;
        for (int i = first; i <= last; i += stride)
            for (int factor = 1; factor <= max; factor += factor == 1 ? 1 : 3) {
                const double tick = factor * pow(10, i);
                if (tick >= axis->lo * (1 - 1e-9) && tick <= axis->hi * (1 + 1e-9) &&
                    axis->tick_count < MAX_TICKS)
                    axis->ticks[axis->tick_count++] = tick;
            }
    }
}

/* Convert a value to a page coordinate. */
static double axis_at(const gf_axis *axis, double value) {
    double share = 0;
    if (!axis->log)
        share = (value - axis->lo) / (axis->hi - axis->lo);
    else if (value > axis->lo)
        share = log10(value / axis->lo) / log10(axis->hi / axis->lo);
    return axis->begin + share * (axis->end - axis->begin);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* A number as text and superscript: "2·10" and "4". */
typedef struct gf_number {
    char text[64], raised[16];
} gf_number;

static gf_number power_number(const char *before, int power) {
    gf_number number;
    snprintf(number.text, sizeof number.text, "%s10", before);
    snprintf(number.raised, sizeof number.raised, "%s%d", power < 0 ? MINUS : "", abs(power));
    return number;
}

static gf_number axis_number(const gf_axis *axis, double value) {
    gf_number number = {0};
    if (axis->log && axis->lo >= 0.01 && axis->hi <= 1000) {
        snprintf(number.text, sizeof number.text, "%g", value);
    } else if (axis->log) {
        const double power = floor(log10(value) + 1e-6), factor = value / pow(10, power);
        char before[16] = "";
        if (factor > 1.5)
            snprintf(before, sizeof before, "%.0f\u00b7", factor);
        return power_number(before, (int)power);
    } else {
        const double shown = value / pow(10, axis->power);
        snprintf(number.text, sizeof number.text, axis->decimals < 0 ? "%s%.*g" : "%s%.*f",
                 shown < 0 ? MINUS : "", axis->decimals < 0 ? 17 : axis->decimals, fabs(shown));
    }
    return number;
}

static double number_width(gf_cli_plot *plot, const gf_number *number) {
    return page_text_width(plot, NUMBER_SIZE, number->text) +
           page_text_width(plot, RAISED_SIZE, number->raised);
}

/* Draw a number with its baseline at y. share: position of x in the number, 0 left to 1 right. */
static void draw_number(gf_cli_plot *plot, gf_number number, double x, double y, double share) {
    x -= share * number_width(plot, &number);
    page_text(plot, x, y, NUMBER_SIZE, 0, false, number.text);
    x += page_text_width(plot, NUMBER_SIZE, number.text);
    if (number.raised[0])
        page_text(plot, x, y - NUMBER_SIZE * 0.4, RAISED_SIZE, 0, false, number.raised);
}

static double widest_number(gf_cli_plot *plot, const gf_axis *axis) {
    double widest = 0;
    for (size_t i = 0; i < axis->tick_count; i++) {
        const gf_number number = axis_number(axis, axis->ticks[i]);
        widest = fmax(widest, number_width(plot, &number));
    }
    return widest;
}

/* ---- axes ------------------------------------------------------------------------------------ */

static void draw_axes(gf_cli_plot *plot) {
    const gf_axis *x = &plot->x, *y = &plot->y;
    page_line(plot, x->begin, y->end, x->begin, y->begin);
    cairo.cairo_line_to(plot->page, x->end, y->begin);
    for (size_t i = 0; i < x->tick_count; i++) {
        const double at = axis_at(x, x->ticks[i]);
        page_line(plot, at, y->begin, at, y->begin + TICK);
    }
    for (size_t i = 0; i < y->tick_count; i++) {
        const double at = axis_at(y, y->ticks[i]);
        page_line(plot, x->begin, at, x->begin - TICK, at);
    }
    stroke_path(plot, ink, 1);
    /* Minor ticks at 2 to 9 times each power of ten, unless they would overlap. */
    const bool minor = y->log && y->hi / y->lo <= 1e9;
    for (int power = minor ? (int)floor(log10(y->lo)) : 0; minor && power <= log10(y->hi); power++)
        for (int i = 2; i < 10; i++) {
            const double value = i * pow(10, power), at = axis_at(y, value);
            if (value >= y->lo * (1 + 1e-9) && value <= y->hi * (1 + 1e-9))
                page_line(plot, x->begin, at, x->begin - TICK * 0.5, at);
        }
    stroke_path(plot, ink, 0.75);
    const double numbers = y->begin + TICK + 3 + NUMBER_SIZE * 0.8;
    for (size_t i = 0; i < x->tick_count; i++)
        draw_number(plot, axis_number(x, x->ticks[i]), axis_at(x, x->ticks[i]), numbers, 0.5);
    for (size_t i = 0; i < y->tick_count; i++)
        draw_number(plot, axis_number(y, y->ticks[i]), x->begin - TICK - 3,
                    axis_at(y, y->ticks[i]) + NUMBER_SIZE * 0.36, 1);
    const double labels = numbers + 8 + LABEL_SIZE;
    page_text(plot, (x->begin + x->end) / 2, labels, LABEL_SIZE, 0.5, false, plot->table->x_label);
    page_text(plot, MARGIN + LABEL_SIZE * 0.6, (y->begin + y->end) / 2, LABEL_SIZE, 0.5, true,
              plot->table->y_label);
    if (x->power)
        draw_number(plot, power_number("\u00d7 ", x->power), x->end, labels, 1);
    if (y->power)
        draw_number(plot, power_number("\u00d7 ", y->power), x->begin, y->end - 9, 0);
}

/* ---- the data -------------------------------------------------------------------------------- */

static double cell_number(const gf_cli_plot *plot, uint64_t row, size_t column) {
    return gf_cli_number(gf_result_cell(plot->result, plot->index, row, column));
}

/* Return whether all these columns contain integers. */
static bool plot_is_whole(const gf_table *table, size_t first, size_t last) {
    bool whole = true;
    for (size_t c = first; c <= last; c++)
        whole = whole && table->columns[c].type == GF_VALUE_UINT;
    return whole;
}

/* Return the upper edge of the bin of a row. An integer bin ends at the next integer. */
static double bin_end(const gf_cli_plot *plot, uint64_t row) {
    return cell_number(plot, row, plot->to) +
           (plot->bars && plot_is_whole(plot->table, plot->to, plot->to));
}

/* Return a value of a curve: infinity above 1e300, where axes overflow, and 0 below 1e-300. */
static double curve_height(const gf_cli_plot *plot, uint64_t row, size_t column) {
    const double value = cell_number(plot, row, column), size = fabs(value);
    return size > 1e300 ? (double)INFINITY : size < 1e-300 ? 0 : value;
}

static void axis_extend(gf_axis *axis, double value) {
    if (!isfinite(value))
        return;
    axis->lo = fmin(axis->lo, value);
    axis->hi = fmax(axis->hi, value);
    axis->min = value > 0 ? fmin(axis->min, value) : axis->min;
}

/* Choose the ranges and ticks of both axes and their positions on the page, and draw grid lines. */
static gf_status prepare_axes(gf_cli_plot *plot, gf_error *error) {
    const gf_table *table = plot->table;
    const size_t last = table->column_count - 1;
    gf_axis *x = &plot->x, *y = &plot->y;
    x->lo = y->lo = y->min = INFINITY;
    x->hi = y->hi = -INFINITY;
    for (uint64_t row = 0; row < table->row_count; row++) {
        axis_extend(x, cell_number(plot, row, plot->from));
        axis_extend(x, bin_end(plot, row));
        for (size_t c = table->curves; c <= last; c++)
            axis_extend(y, curve_height(plot, row, c));
    }
    if (!(x->lo < x->hi)) { /* one position, or none */
        x->lo = isfinite(x->lo) ? x->lo - 0.5 : 0;
        x->hi = x->lo + 1;
    }
    axis_linear(x, 8, plot_is_whole(table, plot->from, plot->from), false);
    if (y->log && !isfinite(y->min))
        return gf_set_error(error, GF_FAILED,
                            "%s: no value above zero for a logarithmic axis; omit --log-scale",
                            plot->path);
    if (y->log) {
        axis_log(y, plot->bars);
    } else {
        /* Include zero for bars, and for lines that come close to it. */
        if (y->lo > 0 && (plot->bars || y->lo < y->hi / 2 || y->lo == y->hi))
            y->lo = 0;
        if (y->hi < 0 && (plot->bars || y->hi > y->lo / 2 || y->lo == y->hi))
            y->hi = 0;
        if (!(y->lo < y->hi)) {
            y->lo = 0;
            y->hi = 1;
        }
        axis_linear(y, 6, plot_is_whole(table, table->curves, last), true);
    }
    /* Leave margins for labels and legend. The data is drawn above the grid lines at the ticks of
     * y, and the axes above the data. */
    x->begin = MARGIN + LABEL_SIZE + 8 + widest_number(plot, y) + TICK + 3;
    x->end = WIDTH - MARGIN - widest_number(plot, x) / 2;
    y->begin = HEIGHT - MARGIN - LABEL_SIZE - 8 - NUMBER_SIZE - TICK - 3;
    y->end = MARGIN + (last > table->curves || y->power ? 20 : 0);
    for (size_t i = 0; i < y->tick_count; i++) {
        const double at = axis_at(y, y->ticks[i]);
        page_line(plot, x->begin, at, x->end, at);
    }
    stroke_path(plot, faint, 0.75);
    return GF_OK;
}

static gf_colour curve_colour(const gf_cli_plot *plot, size_t column) {
    static const gf_colour colours[] = {{0.80, 0.15, 0.15},
                                        {0.10, 0.55, 0.20},
                                        {0.12, 0.35, 0.80},
                                        {0.50, 0.20, 0.65},
                                        {0.36, 0.39, 0.43}}; /* other curves */
    return colours[gf_cli_channel(plot->table->columns[column].name)];
}

/* ---- curves ---------------------------------------------------------------------------------- */

/* The rows of a curve in one column of the page, merged: x range, and heights of the first, lowest,
 * highest and last point. low > high: no points. */
typedef struct gf_span {
    double begin, end, first, low, high, last;
} gf_span;

/* Return whether a row has a finite point, above zero on a logarithmic axis. */
static bool has_point(const gf_cli_plot *plot, uint64_t row, size_t column) {
    const double value = row < plot->table->row_count ? curve_height(plot, row, column) : INFINITY;
    return isfinite(value) && !(plot->y.log && value <= 0);
}

/* Merge rows from *row on, at least one. Stop at the first row that begins `min` points or more to
 * the right, and where a line starts or breaks. */
static gf_span next_span(const gf_cli_plot *plot, uint64_t *row, size_t column, double min) {
    gf_span span = {.low = INFINITY, .high = -INFINITY};
    span.begin = axis_at(&plot->x, cell_number(plot, *row, plot->from));
    do {
        if (has_point(plot, *row, column)) {
            span.last = axis_at(&plot->y, curve_height(plot, *row, column));
            span.first = span.low > span.high ? span.last : span.first;
            span.low = fmin(span.low, span.last);
            span.high = fmax(span.high, span.last);
        }
        span.end = axis_at(&plot->x, bin_end(plot, *row));
        ++*row;
    } while (*row < plot->table->row_count &&
             axis_at(&plot->x, cell_number(plot, *row, plot->from)) - span.begin < min &&
             (plot->bars || has_point(plot, *row, column) == (span.low <= span.high)));
    return span;
}

/* Draw the bars of a curve: separate bars if they are wide enough, else one outline of steps. */
static void draw_bars(gf_cli_plot *plot, size_t column, bool alone) {
    const uint64_t rows = plot->table->row_count;
    const gf_colour colour = curve_colour(plot, column);
    const double base = plot->y.log ? plot->y.begin : axis_at(&plot->y, 0);
    const double bar = (plot->x.end - plot->x.begin) / (double)rows;
    const double gap = alone && bar > 4 ? 0.5 : 0,
                 min = alone || bar >= MIN_STEP ? COLUMN : WIDE_STEP;
    if (gap == 0)
        cairo.cairo_line_to(plot->page, plot->x.begin, base);
    for (uint64_t row = 0; row < rows;) {
        const gf_span span = next_span(plot, &row, column, min);
        const double low = fmin(span.low, base), high = fmax(span.high, base);
        const double top = base - low > high - base ? low : high;
        if (gap > 0) {
            page_box(plot, span.begin + gap, base, span.end - gap, top);
        } else {
            cairo.cairo_line_to(plot->page, span.begin, top);
            cairo.cairo_line_to(plot->page, span.end, top);
        }
    }
    if (gap == 0)
        cairo.cairo_line_to(plot->page, plot->x.end, base);
    cairo.cairo_set_source_rgba(plot->page, colour.r, colour.g, colour.b, alone ? 1 : 0.15);
    if (alone) {
        cairo.cairo_fill(plot->page);
    } else {
        cairo.cairo_fill_preserve(plot->page);
        stroke_path(plot, colour, 1);
    }
}

static void draw_line(gf_cli_plot *plot, size_t column) {
    bool open = false;
    for (uint64_t row = 0; row < plot->table->row_count;) {
        const gf_span span = next_span(plot, &row, column, COLUMN);
        const bool begins = !open;
        open = span.low <= span.high;
        if (!open)
            continue;
        if (begins)
            cairo.cairo_move_to(plot->page, span.begin, span.first);
        cairo.cairo_line_to(plot->page, span.begin, span.first);
        if (span.low < span.high) {
            cairo.cairo_line_to(plot->page, span.begin, span.low);
            cairo.cairo_line_to(plot->page, span.begin, span.high);
            cairo.cairo_line_to(plot->page, span.begin, span.last);
        } else if (begins && !has_point(plot, row, column)) { /* an isolated point */
            page_box(plot, span.begin - 1, span.first - 1, span.begin + 1, span.first + 1);
        }
    }
    stroke_path(plot, curve_colour(plot, column), 1.1);
}

static void draw_legend(gf_cli_plot *plot) {
    const double baseline = plot->y.end - 10;
    double x = plot->x.end;
    for (size_t c = plot->table->column_count; c-- > plot->table->curves;) {
        const char *name = plot->table->columns[c].name;
        page_text(plot, x, baseline, LEGEND_SIZE, 1, false, name);
        x -= page_text_width(plot, LEGEND_SIZE, name) + 5;
        page_line(plot, x - 16, baseline - 4, x, baseline - 4);
        stroke_path(plot, curve_colour(plot, c), 3);
        x -= 16 + 14;
    }
}

/* ---- plots ----------------------------------------------------------------------------------- */

gf_status gf_cli_plot_open(const gf_cli_options *options, gf_cli_plot **out, gf_error *error) {
    const char *path = options->plot, *format = options->plot_format;
    const char *extension = gf_cli_extension(path);
    const bool standard = strcmp(path, "-") == 0;
    const bool svg = format ? strcmp(format, "svg") == 0 : strcasecmp(extension, ".svg") == 0;
    if (!format && !standard && !svg && strcasecmp(extension, ".png") != 0)
        return gf_set_error(error, GF_USAGE,
                            "--plot '%s': extension must be .png or .svg; or use --plot-format",
                            path);
    gf_cli_plot *plot = *out = calloc(1, sizeof *plot);
    if (!plot)
        return gf_set_error(error, GF_FAILED, "--plot: out of memory");
    plot->path = standard ? "standard output" : path;
    plot->svg = svg;
    plot->y.log = options->log;
    const gf_status status = open_page(plot, error);
    return status ? status : gf_output_file_open(path, &options->files, &plot->file, error);
}

gf_status gf_cli_plot_draw(gf_cli_plot *plot, const gf_ready *ready, gf_error *error) {
    plot->result = ready->outcome->results[0];
    gf_ready_add(ready, plot->file);
    /* The first table with a chart. */
    while ((plot->table = gf_result_table(plot->result, plot->index)) &&
           (plot->table->chart == GF_CHART_NONE || !plot->table->row_count))
        plot->index++;
    if (!plot->table)
        return gf_set_error(error, GF_FAILED, "%s: no data to plot", plot->path);
    plot->bars = plot->table->chart == GF_CHART_BARS;
    for (size_t c = 0; plot->bars && c < plot->table->curves; c++) {
        const char *name = plot->table->columns[c].name;
        plot->from = strcmp(name, "from") == 0 ? c : plot->from;
        plot->to = strcmp(name, "to") == 0 ? c : plot->to;
    }
    gf_status status = prepare_axes(plot, error);
    if (status)
        return status;
    const size_t curves = plot->table->column_count - plot->table->curves;
    for (size_t c = plot->table->curves; c < plot->table->column_count; c++)
        if (plot->bars)
            draw_bars(plot, c, curves == 1);
        else
            draw_line(plot, c);
    draw_axes(plot);
    if (curves > 1)
        draw_legend(plot);
    cairo_status_t drawn = cairo.cairo_status(plot->page);
    if (!drawn && !plot->svg)
        drawn = cairo.cairo_surface_write_to_png_stream(plot->surface, on_bytes, plot->encoder);
    cairo.cairo_surface_finish(plot->surface);
    if (!drawn)
        drawn = cairo.cairo_surface_status(plot->surface);
    if (!drawn && fflush(plot->encoder) != 0)
        drawn = CAIRO_STATUS_NO_MEMORY;
    status = check_cairo(drawn, error);
    return status ? status : gf_output_file_write(plot->file, plot->data, plot->size, error);
}

void gf_cli_plot_close(gf_cli_plot *plot) {
    if (plot->page) {
        cairo.cairo_destroy(plot->page);
        cairo.cairo_surface_destroy(plot->surface);
    }
    if (plot->encoder)
        fclose(plot->encoder);
    free(plot->data);
    gf_output_file_close(plot->file);
    free(plot);
}
