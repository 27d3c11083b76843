#include "picture.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

struct picture {
    const char *path;
    FILE *file;
    size_t row_bytes;
    png_structp png; /* NULL for PPM and PGM */
    png_infop info;
    bool failed; /* and said so */
};

bool picture_complain(const char *path, const char *what) {
    fprintf(stderr, "draw: %s: %s\n", path, what ? what : strerror(errno));
    return false;
}

/* Only the first failure is reported: the later ones follow from it. */
static bool fail(picture *p, const char *what) {
    if (!p->failed)
        picture_complain(p->path, what);
    p->failed = true;
    return false;
}

static void on_png_error(png_structp png, png_const_charp message) {
    fail(png_get_error_ptr(png), message);
    png_longjmp(png, 1);
}

/* Warnings are about odd input; there is no input. */
static void on_png_warning(png_structp png, png_const_charp message) {
    (void)png;
    (void)message;
}

/* libpng's own writer says only "Write Error"; errno knows more. */
static void on_png_write(png_structp png, png_bytep data, size_t bytes) {
    picture *p = png_get_io_ptr(png);
    if (fwrite(data, 1, bytes, p->file) != bytes) {
        fail(p, NULL);
        png_longjmp(png, 1);
    }
}

static void on_png_flush(png_structp png) {
    (void)png;
}

static bool start_png(picture *p, uint32_t width, uint32_t height, int channels, int bits,
                      picture_effort effort) {
    static const int colours[5] = {0, PNG_COLOR_TYPE_GRAY, 0, PNG_COLOR_TYPE_RGB,
                                   PNG_COLOR_TYPE_RGB_ALPHA};
    p->png = png_create_write_struct(PNG_LIBPNG_VER_STRING, p, on_png_error, on_png_warning);
    if (!p->png)
        return fail(p, "out of memory");
    p->info = png_create_info_struct(p->png);
    if (!p->info)
        return fail(p, "out of memory");
    if (setjmp(png_jmpbuf(p->png)))
        return false;
    png_set_write_fn(p->png, p, on_png_write, on_png_flush);
    png_set_IHDR(p->png, p->info, width, height, bits, colours[channels], PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (effort == PICTURE_FAST) {
        png_set_compression_level(p->png, 1);
        png_set_filter(p->png, PNG_FILTER_TYPE_BASE, PNG_FILTER_SUB);
    } else {
        png_set_compression_level(p->png, 9);
        png_set_filter(p->png, PNG_FILTER_TYPE_BASE, PNG_ALL_FILTERS);
    }
    png_write_info(p->png, p->info);
    return true;
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool start(picture *p, uint32_t width, uint32_t height, int channels, int bits,
                  picture_effort effort) {
    bool png = ends_with(p->path, ".png");
    bool raw = ends_with(p->path, channels == 1 ? ".pgm" : ".ppm") && bits == 8 && channels != 4;
    if (!png && !raw)
        return fail(p, bits != 8       ? "the name must end in .png"
                       : channels == 1 ? "the name must end in .png or .pgm"
                                       : "the name must end in .png or .ppm");
    p->row_bytes = (size_t)width * (size_t)channels * (size_t)bits / 8;
    p->file = fopen(p->path, "wb");
    if (!p->file)
        return fail(p, NULL);
    if (png)
        return start_png(p, width, height, channels, bits, effort);
    int printed = fprintf(p->file, "P%c\n%" PRIu32 " %" PRIu32 "\n255\n", channels == 1 ? '5' : '6',
                          width, height);
    return printed > 0 || fail(p, NULL);
}

picture *picture_open(const char *path, uint32_t width, uint32_t height, int channels, int bits,
                      picture_effort effort) {
    picture *p = calloc(1, sizeof *p);
    if (!p) {
        picture_complain(path, "out of memory");
        return NULL;
    }
    p->path = path;
    if (start(p, width, height, channels, bits, effort))
        return p;
    picture_close(p);
    return NULL;
}

bool picture_row(picture *p, const uint8_t *row) {
    if (p->failed)
        return false;
    if (!p->png)
        return fwrite(row, 1, p->row_bytes, p->file) == p->row_bytes || fail(p, NULL);
    if (setjmp(png_jmpbuf(p->png)))
        return false;
    png_write_row(p->png, row);
    return true;
}

static bool end_png(picture *p) {
    if (setjmp(png_jmpbuf(p->png)))
        return false;
    png_write_end(p->png, p->info);
    return true;
}

bool picture_close(picture *p) {
    if (p->png && !p->failed)
        end_png(p);
    if (p->png)
        png_destroy_write_struct(&p->png, &p->info);
    if (p->file && fclose(p->file) != 0) /* the last bytes reach the disk only here */
        fail(p, NULL);
    bool ok = !p->failed;
    free(p);
    return ok;
}

uint8_t picture_encode(double light) {
    double clamped = light < 0 ? 0 : light > 1 ? 1 : light;
    return (uint8_t)(sqrt(clamped) * 255.0 + 0.5);
}
