/* PNG out: libpng writes the header and the metadata, our own encoder the pixels. */

#include <inttypes.h>
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>

#include "error.h"
#include "io/costs.h"
#include "io/kinds.h"
#include "io/png_encoder.h"

typedef struct png_sink {
    gf_sink base;
    gf_output *output;
    png_structp png;
    png_infop info;
    gf_png_encoder *encoder;
    gf_format format;
    gf_png_effort effort;
    uint64_t max_memory;
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

static gf_status write_header(png_sink *sink, const gf_format *format, const gf_metadata *metadata,
                              gf_error *error) {
    static const int color_types[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                      PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
    png_structp png = sink->png;

    if (setjmp(png_jmpbuf(png)) != 0)
        return report(sink, error);
    png_set_write_fn(png, sink, on_write, on_flush);
    png_set_user_limits(png, 0x7fffffff, 0x7fffffff);
    png_set_IHDR(png, sink->info, (png_uint_32)format->width, (png_uint_32)format->height,
                 format->type == GF_U16 ? 16 : 8, color_types[format->channels], PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info_before_PLTE(png, sink->info);
    /* The output has no PLTE: its two sides are one place. */
    write_chunks(sink, metadata, GF_BEFORE_PLTE);
    write_chunks(sink, metadata, GF_BEFORE_IDAT);
    png_write_info(png, sink->info);
    return GF_OK;
}

static gf_status write_end(png_sink *sink, const gf_metadata *metadata, gf_error *error) {
    if (setjmp(png_jmpbuf(sink->png)) != 0)
        return report(sink, error);
    if (metadata != NULL)
        write_chunks(sink, metadata, GF_AFTER_IDAT);
    /* png_write_end would miss the pixels. */
    png_write_chunk(sink->png, (png_const_bytep) "IEND", NULL, 0);
    return GF_OK;
}

/* ---- the sink -------------------------------------------------------------------------------- */

static gf_status png_write(gf_sink *base, const void *src, size_t stride, uint64_t rows,
                           gf_error *error) {
    return gf_png_encoder_write(((png_sink *)base)->encoder, src, stride, rows, error);
}

static gf_status png_finish(gf_sink *base, const gf_metadata *metadata, gf_error *error) {
    png_sink *sink = (png_sink *)base;
    gf_status status = write_end(sink, metadata, error);

    sink->base.busy_seconds = gf_png_encoder_busy(sink->encoder);
    sink->base.clipped = gf_png_encoder_clipped(sink->encoder);
    return status == GF_OK ? gf_output_prepare(sink->output, error) : status;
}

static gf_status png_place(gf_sink *base, gf_error *error) {
    return gf_output_place(((png_sink *)base)->output, error);
}

static void png_close(gf_sink *base) {
    png_sink *sink = (png_sink *)base;

    gf_png_encoder_close(sink->encoder);
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

static gf_status open_encoder(png_sink *sink, uint32_t threads, gf_error *error) {
    const gf_status status =
        gf_png_encoder_open(&sink->format, sink->effort, gf_isa_best(), threads, sink->max_memory,
                            sink->output, &sink->encoder, error);

    if (status != GF_OK)
        return status;
    sink->base.memory = gf_png_encoder_memory(sink->encoder);
    sink->base.threads = gf_png_encoder_threads(sink->encoder);
    return GF_OK;
}

static gf_status png_spare(gf_sink *base, gf_error *error) {
    png_sink *sink = (png_sink *)base;

    gf_png_encoder_close(sink->encoder);
    sink->encoder = NULL;
    base->spare = NULL;
    return open_encoder(sink, 1, error);
}

static gf_status open_parts(png_sink *sink, const gf_sink_setup *setup, gf_error *error) {
    const char *name = gf_output_name(setup->output);

    if (!gf_png_effort_of(setup->compression, &sink->effort))
        return gf_fail(error, GF_USAGE,
                       "%s: there is no compression '%s'; take fast, balanced, "
                       "small or a level from 0 to 9",
                       name, setup->compression);
    sink->png = png_create_write_struct(PNG_LIBPNG_VER_STRING, sink, on_error, on_warning);
    if (sink->png != NULL)
        sink->info = png_create_info_struct(sink->png);
    if (sink->info == NULL)
        return gf_fail(error, GF_FAILED, "%s: out of memory", name);
    sink->format = *setup->format;
    sink->max_memory = setup->max_memory;
    sink->base.cost = gf_png_encode_cost(setup->compression);
    sink->base.exact = true;
    sink->base.counts_clipped = true;
    sink->base.spare = png_spare;
    gf_status status = open_encoder(sink, setup->threads, error);
    return status == GF_OK ? write_header(sink, setup->format, setup->metadata, error) : status;
}

gf_status gf_png_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    static const gf_sink_ops ops = {png_write, png_finish, png_place, png_close};
    png_sink *sink = calloc(1, sizeof *sink);

    if (sink == NULL)
        return gf_fail_memory(error, gf_output_name(setup->output), sizeof *sink, "a sink");
    sink->base.ops = &ops;
    sink->output = setup->output;
    gf_status status = open_parts(sink, setup, error);
    if (status != GF_OK) {
        gf_png_encoder_close(sink->encoder);
        png_destroy_write_struct(&sink->png, &sink->info);
        free(sink);
        return status;
    }
    *opened = &sink->base;
    return GF_OK;
}
