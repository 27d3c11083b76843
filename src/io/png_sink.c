/* PNG out, through libpng's row interface. */

#include <inttypes.h>
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>

#include "error.h"
#include "io/bytes.h"
#include "io/costs.h"
#include "io/kinds.h"

/* Level 1 costs little more time than copying and keeps most of what higher levels save. */
enum { DEFAULT_LEVEL = 1, IDAT_BYTES = 1 << 16 };

typedef struct png_sink {
    gf_sink base;
    gf_output *output;
    png_structp png;
    png_infop info;
    gf_format format;
    int level;
    gf_error cause; /* the first failure; set before every longjmp */
} png_sink;

/* ---- called by libpng ------------------------------------------------------------------------ */

static _Noreturn void leave(png_structp png) {
    png_longjmp(png, 1);
}

static void PNGCBAPI on_error(png_structp png, png_const_charp message) {
    png_sink *sink = png_get_error_ptr(png);

    if (sink->cause.status == GF_OK)
        gf_fail(&sink->cause, GF_FAILED, "%s: cannot make a PNG: %s", gf_output_name(sink->output),
                message);
    leave(png);
}

static void PNGCBAPI on_warning(png_structp png, png_const_charp message) {
    (void)png;
    (void)message;
}

static void PNGCBAPI on_write(png_structp png, png_bytep data, size_t size) {
    png_sink *sink = png_get_io_ptr(png);

    if (gf_output_write(sink->output, data, size, &sink->cause) != GF_OK)
        leave(png);
}

/* Without it libpng would flush its io pointer as a FILE. */
static void PNGCBAPI on_flush(png_structp png) {
    (void)png;
}

/* ---- calls to libpng: one setjmp each, no locals that change after it -------------------------
 */

static gf_status report(const png_sink *sink, gf_error *error) {
    if (error != NULL)
        *error = sink->cause;
    return sink->cause.status;
}

static void write_chunks(png_sink *sink, const gf_metadata *metadata, gf_chunk_place place) {
    for (size_t i = 0; i < metadata->count; i++) {
        const gf_chunk *chunk = &metadata->chunks[i];
        if (chunk->place == place)
            png_write_chunk(sink->png, (png_const_bytep)chunk->name, chunk->data, chunk->size);
    }
}

static int filters_for(int level) {
    if (level == 0)
        return PNG_FILTER_NONE;
    /* Trying all filters a row costs more than a fast deflate does. */
    return level <= 2 ? PNG_FILTER_SUB : PNG_ALL_FILTERS;
}

static gf_status write_header(png_sink *sink, const gf_metadata *metadata, gf_error *error) {
    static const int color_types[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                      PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
    png_structp png = sink->png;

    if (setjmp(png_jmpbuf(png)) != 0)
        return report(sink, error);
    png_set_write_fn(png, sink, on_write, on_flush);
    png_set_user_limits(png, 0x7fffffff, 0x7fffffff);
    png_set_compression_buffer_size(png, IDAT_BYTES);
    png_set_compression_level(png, sink->level);
    png_set_filter(png, PNG_FILTER_TYPE_BASE, filters_for(sink->level));
    png_set_IHDR(png, sink->info, (png_uint_32)sink->format.width, (png_uint_32)sink->format.height,
                 sink->format.type == GF_U16 ? 16 : 8, color_types[sink->format.channels],
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info_before_PLTE(png, sink->info);
    /* The output has no PLTE: its two sides are one place. */
    write_chunks(sink, metadata, GF_BEFORE_PLTE);
    write_chunks(sink, metadata, GF_BEFORE_IDAT);
    png_write_info(png, sink->info);
    if (sink->format.type == GF_U16 && gf_host_is_little())
        png_set_swap(png);
    return GF_OK;
}

static gf_status write_row(png_sink *sink, const unsigned char *row, gf_error *error) {
    if (setjmp(png_jmpbuf(sink->png)) != 0)
        return report(sink, error);
    png_write_row(sink->png, row);
    return GF_OK;
}

static gf_status write_end(png_sink *sink, const gf_metadata *metadata, gf_error *error) {
    if (setjmp(png_jmpbuf(sink->png)) != 0)
        return report(sink, error);
    if (metadata != NULL)
        write_chunks(sink, metadata, GF_AFTER_IDAT);
    png_write_end(sink->png, NULL);
    return GF_OK;
}

/* ---- the sink -------------------------------------------------------------------------------- */

static gf_status png_write(gf_sink *base, const void *src, size_t stride, uint64_t rows,
                           gf_error *error) {
    png_sink *sink = (png_sink *)base;
    const unsigned char *in = src;
    gf_status status = GF_OK;

    for (uint64_t i = 0; i < rows && status == GF_OK; i++)
        status = write_row(sink, in + i * stride, error);
    return status;
}

static gf_status png_finish(gf_sink *base, const gf_metadata *metadata, gf_error *error) {
    png_sink *sink = (png_sink *)base;
    gf_status status = write_end(sink, metadata, error);

    return status == GF_OK ? gf_output_prepare(sink->output, error) : status;
}

static gf_status png_place(gf_sink *base, gf_error *error) {
    return gf_output_place(((png_sink *)base)->output, error);
}

static void png_close(gf_sink *base) {
    png_sink *sink = (png_sink *)base;

    png_destroy_write_struct(&sink->png, &sink->info);
    gf_output_close(sink->output);
    free(sink);
}

gf_status gf_png_sink_check(const gf_format *format, const char *name, gf_error *error) {
    if (format->type == GF_F32) {
        return gf_fail(error, GF_FAILED,
                       "%s: PNG holds no f32 samples and this image has them; write .pfm", name);
    }
    if (format->width > PNG_UINT_31_MAX || format->height > PNG_UINT_31_MAX) {
        return gf_fail(error, GF_FAILED,
                       "%s: PNG holds at most 2147483647 columns and rows and this image is "
                       "%" PRIu64 "x%" PRIu64 "; write .pam",
                       name, format->width, format->height);
    }
    return GF_OK;
}

gf_status gf_png_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    static const gf_sink_ops ops = {png_write, png_finish, png_place, png_close};
    const char *name = gf_output_name(setup->output);
    png_sink *sink = calloc(1, sizeof *sink);
    gf_status status;

    if (sink == NULL)
        return gf_fail_memory(error, name, sizeof *sink, "a sink");
    sink->base.ops = &ops;
    sink->output = setup->output;
    sink->format = *setup->format;
    sink->level = setup->compression == 0 ? DEFAULT_LEVEL : setup->compression - 1;
    sink->base.cost = sink->level <= 2 ? GF_PNG_ENCODE_COST_FAST : GF_PNG_ENCODE_COST_SLOW;
    sink->png = png_create_write_struct(PNG_LIBPNG_VER_STRING, sink, on_error, on_warning);
    if (sink->png != NULL)
        sink->info = png_create_info_struct(sink->png);
    if (sink->info == NULL) {
        status = gf_fail(error, GF_FAILED, "%s: out of memory", name);
    } else {
        status = write_header(sink, setup->metadata, error);
    }
    if (status != GF_OK) {
        png_destroy_write_struct(&sink->png, &sink->info);
        free(sink);
        return status;
    }
    *opened = &sink->base;
    return GF_OK;
}
