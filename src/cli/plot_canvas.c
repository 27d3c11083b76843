/* The page, drawn by cairo. The library is looked for when a plot is asked for: the program neither
 * needs it nor starts more slowly because of it. */
#include "plot_canvas.h"

#include <cairo-svg.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libcairo.so.2"
#define PNG_SCALE 2 /* pixels a point */

#define FUNCTIONS(X)                                                                               \
    X(cairo_create)                                                                                \
    X(cairo_destroy)                                                                               \
    X(cairo_fill)                                                                                  \
    X(cairo_fill_preserve)                                                                         \
    X(cairo_image_surface_create)                                                                  \
    X(cairo_line_to)                                                                               \
    X(cairo_move_to)                                                                               \
    X(cairo_paint)                                                                                 \
    X(cairo_rectangle)                                                                             \
    X(cairo_restore)                                                                               \
    X(cairo_rotate)                                                                                \
    X(cairo_save)                                                                                  \
    X(cairo_scale)                                                                                 \
    X(cairo_select_font_face)                                                                      \
    X(cairo_set_font_size)                                                                         \
    X(cairo_set_line_cap)                                                                          \
    X(cairo_set_line_join)                                                                         \
    X(cairo_set_line_width)                                                                        \
    X(cairo_set_source_rgba)                                                                       \
    X(cairo_show_text)                                                                             \
    X(cairo_status)                                                                                \
    X(cairo_status_to_string)                                                                      \
    X(cairo_stroke)                                                                                \
    X(cairo_surface_destroy)                                                                       \
    X(cairo_surface_finish)                                                                        \
    X(cairo_surface_status)                                                                        \
    X(cairo_surface_write_to_png_stream)                                                           \
    X(cairo_svg_surface_create_for_stream)                                                         \
    X(cairo_text_extents)

/* cairo's functions, as its own header declares them. */
static struct {
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
} cairo;

#ifdef __has_feature
#if __has_feature(address_sanitizer) /* clang's way to tell */
#define GF_ADDRESS_SANITIZER
#endif
#elif defined __SANITIZE_ADDRESS__
#define GF_ADDRESS_SANITIZER
#endif

#ifdef GF_ADDRESS_SANITIZER
/* Fontconfig keeps what it reads until the process ends. */
GF_API const char *__lsan_default_suppressions(void);
GF_API const char *__lsan_default_options(void);

const char *__lsan_default_suppressions(void) {
    return "leak:libfontconfig";
}

const char *__lsan_default_options(void) {
    return "print_suppressions=0";
}
#endif

struct gf_canvas {
    cairo_surface_t *surface;
    cairo_t *context;
    bool svg;
    unsigned char *data;
    size_t size, capacity;
};

static gf_status load(gf_error *error) {
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return gf_set_error(error, GF_FAILED,
                            "--plot: needs " LIBRARY " (%s); install the package libcairo2",
                            dlerror());
    void *function = NULL;
    /* ISO C has no cast from data to functions; POSIX says that the bytes are the same. */
#define LOAD(name)                                                                                 \
    function = dlsym(library, #name);                                                              \
    if (!function)                                                                                 \
        return gf_set_error(error, GF_FAILED, "--plot: " LIBRARY " is without " #name);            \
    memcpy(&cairo.name, &function, sizeof function);
    FUNCTIONS(LOAD)
    return GF_OK; /* the library stays: fonts that it loaded may not be unloaded */
}

static cairo_status_t append(void *closure, const unsigned char *data, unsigned int size) {
    gf_canvas *canvas = closure;
    if (size > canvas->capacity - canvas->size) {
        const size_t capacity = 2 * canvas->capacity + size;
        unsigned char *bigger = realloc(canvas->data, capacity);
        if (!bigger)
            return CAIRO_STATUS_NO_MEMORY;
        canvas->data = bigger;
        canvas->capacity = capacity;
    }
    memcpy(canvas->data + canvas->size, data, size);
    canvas->size += size;
    return CAIRO_STATUS_SUCCESS;
}

static gf_status fail_cairo(cairo_status_t status, gf_error *error) {
    return gf_set_error(error, GF_FAILED, "--plot: cairo: %s",
                        cairo.cairo_status_to_string(status));
}

gf_status gf_canvas_open(bool svg, double width, double height, gf_canvas **out, gf_error *error) {
    *out = NULL;
    gf_status status = load(error);
    if (status)
        return status;
    gf_canvas *canvas = calloc(1, sizeof *canvas);
    if (!canvas)
        return gf_set_error(error, GF_FAILED, "--plot: out of memory");
    canvas->svg = svg;
    canvas->surface =
        svg ? cairo.cairo_svg_surface_create_for_stream(append, canvas, width, height)
            : cairo.cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)width * PNG_SCALE,
                                               (int)height * PNG_SCALE);
    cairo_t *context = canvas->context = cairo.cairo_create(canvas->surface);
    if (!svg)
        cairo.cairo_scale(context, PNG_SCALE, PNG_SCALE);
    cairo.cairo_set_source_rgba(context, 1, 1, 1, 1);
    cairo.cairo_paint(context);
    cairo.cairo_set_line_cap(context, CAIRO_LINE_CAP_ROUND);
    cairo.cairo_set_line_join(context, CAIRO_LINE_JOIN_ROUND);
    cairo.cairo_select_font_face(context, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                                 CAIRO_FONT_WEIGHT_NORMAL);
    if (cairo.cairo_status(context)) {
        status = fail_cairo(cairo.cairo_status(context), error);
        gf_canvas_close(canvas);
        return status;
    }
    *out = canvas;
    return GF_OK;
}

void gf_canvas_move(gf_canvas *canvas, double x, double y) {
    cairo.cairo_move_to(canvas->context, x, y);
}

void gf_canvas_line(gf_canvas *canvas, double x, double y) {
    cairo.cairo_line_to(canvas->context, x, y);
}

void gf_canvas_box(gf_canvas *canvas, double x0, double y0, double x1, double y1) {
    cairo.cairo_rectangle(canvas->context, x0, y0, x1 - x0, y1 - y0);
}

void gf_canvas_stroke(gf_canvas *canvas, gf_colour colour, double width) {
    cairo.cairo_set_source_rgba(canvas->context, colour.r, colour.g, colour.b, 1);
    cairo.cairo_set_line_width(canvas->context, width);
    cairo.cairo_stroke(canvas->context);
}

void gf_canvas_fill(gf_canvas *canvas, gf_colour colour, double opacity, bool keep_path) {
    cairo.cairo_set_source_rgba(canvas->context, colour.r, colour.g, colour.b, opacity);
    if (keep_path)
        cairo.cairo_fill_preserve(canvas->context);
    else
        cairo.cairo_fill(canvas->context);
}

double gf_canvas_text_width(gf_canvas *canvas, double size, const char *text) {
    cairo_text_extents_t extents;
    cairo.cairo_set_font_size(canvas->context, size);
    cairo.cairo_text_extents(canvas->context, text, &extents);
    return extents.x_advance;
}

void gf_canvas_text(gf_canvas *canvas, double x, double y, double size, double share, bool upwards,
                    const char *text) {
    const double width = share * gf_canvas_text_width(canvas, size, text);
    cairo.cairo_save(canvas->context);
    cairo.cairo_set_source_rgba(canvas->context, 0, 0, 0, 1);
    cairo.cairo_move_to(canvas->context, upwards ? x : x - width, upwards ? y + width : y);
    if (upwards)
        cairo.cairo_rotate(canvas->context, -1.5707963267948966);
    cairo.cairo_show_text(canvas->context, text);
    cairo.cairo_restore(canvas->context);
}

gf_status gf_canvas_finish(gf_canvas *canvas, const void **data, size_t *size, gf_error *error) {
    cairo_status_t status = cairo.cairo_status(canvas->context);
    if (!status && !canvas->svg)
        status = cairo.cairo_surface_write_to_png_stream(canvas->surface, append, canvas);
    cairo.cairo_surface_finish(canvas->surface);
    if (!status)
        status = cairo.cairo_surface_status(canvas->surface);
    *data = canvas->data;
    *size = canvas->size;
    return status ? fail_cairo(status, error) : GF_OK;
}

void gf_canvas_close(gf_canvas *canvas) {
    if (!canvas)
        return;
    cairo.cairo_destroy(canvas->context);
    cairo.cairo_surface_destroy(canvas->surface);
    free(canvas->data);
    free(canvas);
}
