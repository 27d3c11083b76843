/* PNG in, through libpng's row interface. libpng undoes compression, filters and interlacing and
 * checks the checksums; what the samples mean is ours (png_expand.c), and metadata is carried as
 * bytes that nobody parses. */

#include <inttypes.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "io/costs.h"
#include "io/kinds.h"
#include "io/limits.h"
#include "io/metadata.h"
#include "io/png_expand.h"

typedef struct png_source {
    gf_source base;
    gf_input input;
    gf_limits limits;
    png_structp png;
    png_infop info;
    gf_png_layout layout;
    unsigned char *raw;      /* interlaced: the stored rows of the whole image, once read */
    uint64_t y;              /* of the next row */
    uint64_t metadata_bytes; /* carried so far */
    bool interlaced;
    char bad_chunk[4]; /* name of the ancillary chunk that libpng last warned of */
    gf_error cause;    /* the first failure; set before every longjmp */
} png_source;

/* ---- called by libpng ------------------------------------------------------------------------ */

/* Leaves libpng for the setjmp of the wrapper that called it. */
static _Noreturn void leave(png_structp png) {
    png_longjmp(png, 1);
}

/* libpng tells its failures apart only in words. The second comes only after the first was passed:
 * malloc failed. */
#define TOO_LARGE "chunk data is too large"
#define NO_ROOM "exceeds memory limits"

static void PNGCBAPI on_error(png_structp png, png_const_charp message) {
    png_source *source = png_get_error_ptr(png);
    const char *name = source->input.name;

    if (source->cause.status != GF_OK)
        leave(png);
    if (strstr(message, TOO_LARGE) != NULL) {
        gf_fail(&source->cause, GF_FAILED,
                "%s: its %.4s chunk is over the limit of %" PRIu64
                " bytes; raise it with --max-chunk",
                name, message, source->limits.max_chunk);
    } else if (strstr(message, NO_ROOM) != NULL || strstr(message, "ut of memory") != NULL) {
        gf_fail(&source->cause, GF_FAILED, "%s: out of memory", name);
    } else {
        gf_fail(&source->cause, GF_FAILED, "%s: the PNG is damaged (%s); get an intact copy", name,
                message);
    }
    leave(png);
}

/* libpng goes on without an ancillary chunk that is damaged or too large. For metadata the first is
 * right, but tRNS is pixels, and a limit must not be met in silence. */
static void PNGCBAPI on_warning(png_structp png, png_const_charp message) {
    png_source *source = png_get_error_ptr(png);
    bool idat = strncmp(message, "IDAT", 4) == 0;
    bool trns = strncmp(message, "tRNS", 4) == 0;

    /* Where the image has an alpha channel of its own, a tRNS beside it says nothing; of a key with
     * too many bits the low ones count. */
    if (trns && strstr(message, "with alpha") == NULL && strstr(message, "out-of-range") == NULL)
        on_error(png, message);
    if (strstr(message, "CRC error") != NULL) {
        memcpy(source->bad_chunk, message, 4);
    } else if (!idat && (strstr(message, TOO_LARGE) != NULL || strstr(message, NO_ROOM) != NULL)) {
        on_error(png, message);
    }
}

static void PNGCBAPI on_read(png_structp png, png_bytep data, size_t size) {
    png_source *source = png_get_io_ptr(png);
    size_t got;

    if (gf_input_read(&source->input, data, size, &got, &source->cause) != GF_OK)
        leave(png);
    if (got < size) {
        gf_fail(&source->cause, GF_FAILED, "%s: the PNG ends too early; get a complete copy",
                source->input.name);
        leave(png);
    }
}

/* What describes the colours stays right when samples change; other chunks are carried if their
 * name says that this is safe (PNG's safe-to-copy bit). Chunks about the old representation (bKGD,
 * hIST, sBIT, sPLT, APNG's frames) are not safe to copy. */
static bool is_carried(const png_byte name[5]) {
    static const char *const listed[] = {"iCCP", "sRGB", "gAMA", "cHRM",
                                         "cICP", "mDCV", "cLLI", "tIME"};

    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++) {
        if (memcmp(name, listed[i], 4) == 0)
            return true;
    }
    return (name[0] & 0x20) != 0 && (name[2] & 0x20) == 0 && (name[3] & 0x20) != 0;
}

/* Returns 1 if the chunk is done with, 0 to leave it to libpng (which refuses critical ones). */
static int PNGCBAPI on_chunk(png_structp png, png_unknown_chunkp chunk) {
    png_source *source = png_get_user_chunk_ptr(png);
    const char *name = source->input.name;
    bool damaged = memcmp(source->bad_chunk, chunk->name, 4) == 0;
    gf_chunk_place place = GF_BEFORE_PLTE;

    memset(source->bad_chunk, 0, 4);
    if ((chunk->name[0] & 0x20) == 0)
        return 0;
    if (!is_carried(chunk->name))
        return 1;
    if (damaged) {
        memcpy(source->base.metadata.damaged, chunk->name, 4);
        return 1;
    }
    if ((chunk->location & PNG_AFTER_IDAT) != 0) {
        place = GF_AFTER_IDAT;
    } else if ((chunk->location & PNG_HAVE_PLTE) != 0) {
        place = GF_BEFORE_IDAT;
    }
    source->metadata_bytes += chunk->size + sizeof(gf_chunk);
    if (gf_check_memory(source->metadata_bytes, source->limits.max_memory, name, "metadata",
                        &source->cause) != GF_OK ||
        gf_metadata_append(&source->base.metadata, (const char *)chunk->name, place, chunk->data,
                           chunk->size, name, &source->cause) != GF_OK) {
        leave(png);
    }
    return 1;
}

/* ---- calls to libpng: one setjmp each, no locals that change after it -------------------------
 */

static gf_status report(const png_source *source, gf_error *error) {
    if (error != NULL)
        *error = source->cause;
    return source->cause.status;
}

static gf_status read_header(png_source *source, gf_error *error) {
    /* libpng parses some metadata unless told that it does not know it. */
    static const png_byte carried[] =
        "iCCP\0sRGB\0gAMA\0cHRM\0pHYs\0eXIf\0tEXt\0zTXt\0iTXt\0tIME\0"
        "cICP\0mDCV\0cLLI\0oFFs\0bKGD\0hIST\0sBIT\0sPLT\0pCAL\0sCAL";
    png_structp png = source->png;

    if (setjmp(png_jmpbuf(png)) != 0)
        return report(source, error);
    png_set_user_limits(png, 0x7fffffff, 0x7fffffff);
    png_set_chunk_malloc_max(png, (png_alloc_size_t)source->limits.max_chunk);
    /* The number of chunks is bounded by their bytes, in on_chunk. */
    png_set_chunk_cache_max(png, 0);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_ALWAYS, carried, (int)(sizeof carried / 5));
    png_set_read_user_chunk_fn(png, source, on_chunk);
    png_set_read_fn(png, source, on_read);
    png_read_info(png, source->info);
    return GF_OK;
}

/* Pixels over the limit are refused before libpng allocates rows. */
static gf_status start_rows(png_source *source, gf_error *error) {
    png_structp png = source->png;

    if (setjmp(png_jmpbuf(png)) != 0)
        return report(source, error);
    if (source->interlaced)
        (void)png_set_interlace_handling(png);
    png_start_read_image(png);
    return GF_OK;
}

static gf_status read_row(png_source *source, unsigned char *row, gf_error *error) {
    if (setjmp(png_jmpbuf(source->png)) != 0)
        return report(source, error);
    png_read_row(source->png, row, NULL);
    return GF_OK;
}

static gf_status read_end(png_source *source, gf_error *error) {
    if (setjmp(png_jmpbuf(source->png)) != 0)
        return report(source, error);
    png_read_end(source->png, source->info); /* NULL would skip late chunks */
    return GF_OK;
}

/* ---- the source ------------------------------------------------------------------------------ */

/* Later passes fill in between the pixels of earlier ones, so all rows are held. */
static gf_status read_interlaced(png_source *source, gf_error *error) {
    size_t row_bytes = gf_png_layout_bytes(&source->layout);
    uint64_t height = source->base.format.height;
    uint64_t bytes = row_bytes * height;
    gf_status status = gf_check_memory(bytes, source->limits.max_memory, source->input.name,
                                       "an interlaced image", error);

    if (status != GF_OK)
        return status;
    /* Zeroed, because libpng keeps the unused bits at the end of a row as they are. */
    source->raw = calloc(1, (size_t)bytes);
    if (source->raw == NULL)
        return gf_fail_memory(error, source->input.name, bytes, "an interlaced image");
    for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; pass++) {
        for (uint64_t y = 0; y < height; y++) {
            status = read_row(source, source->raw + y * row_bytes, error);
            if (status != GF_OK)
                return status;
        }
    }
    return GF_OK;
}

static gf_status png_read(gf_source *base, void *dst, size_t stride, uint64_t rows,
                          gf_error *error) {
    png_source *source = (png_source *)base;
    size_t row_bytes = gf_png_layout_bytes(&source->layout);
    unsigned char *out = dst;
    gf_status status = GF_OK;

    if (source->interlaced && source->raw == NULL)
        status = read_interlaced(source, error);
    for (uint64_t i = 0; i < rows && status == GF_OK; i++, source->y++) {
        unsigned char *row = out + i * stride;
        if (source->interlaced) {
            gf_png_expand_row(&source->layout, source->raw + source->y * row_bytes, row);
        } else {
            status = read_row(source, row, error);
            if (status == GF_OK)
                gf_png_expand_row(&source->layout, row, row);
        }
    }
    return status;
}

static gf_status png_finish(gf_source *base, gf_error *error) {
    return read_end((png_source *)base, error);
}

static void png_close(gf_source *base) {
    png_source *source = (png_source *)base;

    png_destroy_read_struct(&source->png, &source->info, NULL);
    gf_metadata_clear(&base->metadata);
    gf_input_close(&source->input);
    free(source->raw);
    free(source);
}

/* Fills the layout from the chunks that say what the samples mean. */
static void read_layout(png_source *source) {
    gf_png_layout *layout = &source->layout;
    png_structp png = source->png;
    png_bytep alpha = NULL;
    int alpha_count = 0;
    png_color_16p key = NULL;

    layout->width = png_get_image_width(png, source->info);
    layout->channels = png_get_channels(png, source->info);
    layout->depth = png_get_bit_depth(png, source->info);
    layout->indexed = png_get_color_type(png, source->info) == PNG_COLOR_TYPE_PALETTE;
    bool transparent = png_get_tRNS(png, source->info, &alpha, &alpha_count, &key) != 0;

    if (layout->indexed) {
        png_colorp colors = NULL;
        int count = 0;
        (void)png_get_PLTE(png, source->info, &colors, &count);
        layout->has_alpha = transparent;
        for (int i = 0; i < 256; i++) {
            /* Past the end: opaque black, as browsers show it. */
            png_color color = i < count ? colors[i] : (png_color){0, 0, 0};
            layout->palette[i][0] = color.red;
            layout->palette[i][1] = color.green;
            layout->palette[i][2] = color.blue;
            layout->palette[i][3] = transparent && i < alpha_count ? alpha[i] : 255;
        }
    } else if (transparent && key != NULL) {
        unsigned mask = (1u << layout->depth) - 1;
        bool grey = layout->channels == 1;
        layout->has_key = true;
        layout->key[0] = (uint16_t)((grey ? key->gray : key->red) & mask);
        layout->key[1] = (uint16_t)(key->green & mask);
        layout->key[2] = (uint16_t)(key->blue & mask);
    }
}

static void describe(png_source *source) {
    static const char *const colors[] = {"", "grey", "grey and alpha", "RGB", "RGB and alpha"};
    const gf_png_layout *layout = &source->layout;
    const char *color = layout->indexed ? "palette" : colors[layout->channels];
    const char *transparent = layout->has_alpha ? " with alpha"
                              : layout->has_key ? " with a transparent colour"
                                                : "";

    (void)snprintf(source->base.stored, sizeof source->base.stored, "%u-bit %s%s%s", layout->depth,
                   color, transparent, source->interlaced ? ", interlaced" : "");
}

static gf_status open_image(png_source *source, gf_error *error) {
    const char *name = source->input.name;
    gf_format *format = &source->base.format;
    gf_status status;

    source->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, source, on_error, on_warning);
    if (source->png != NULL)
        source->info = png_create_info_struct(source->png);
    if (source->info == NULL)
        return gf_fail(error, GF_FAILED, "%s: out of memory", name);
    if ((status = read_header(source, error)) != GF_OK)
        return status;
    read_layout(source);
    gf_png_layout_format(&source->layout, format);
    format->height = png_get_image_height(source->png, source->info);
    source->interlaced = png_get_interlace_type(source->png, source->info) != PNG_INTERLACE_NONE;
    describe(source);
    if ((status = gf_check_pixels(format->width, format->height, &source->limits, name, error)) !=
            GF_OK ||
        (status = gf_format_check(format, name, error)) != GF_OK ||
        /* libpng holds this row and the one above. */
        (status = gf_check_memory(2 * (uint64_t)gf_row_bytes(format), source->limits.max_memory,
                                  name, "two rows", error)) != GF_OK) {
        return status;
    }
    return start_rows(source, error);
}

gf_status gf_png_source_open(const gf_input *input, const gf_limits *limits, gf_source **opened,
                             gf_error *error) {
    static const gf_source_ops ops = {png_read, png_finish, png_close};
    png_source *source = calloc(1, sizeof *source);

    if (source == NULL)
        return gf_fail_memory(error, input->name, sizeof *source, "a source");
    source->base.ops = &ops;
    source->base.cost = GF_PNG_DECODE_COST;
    gf_metadata_init(&source->base.metadata);
    source->input = *input;
    source->limits = *limits;
    gf_status status = open_image(source, error);
    if (status != GF_OK) {
        png_destroy_read_struct(&source->png, &source->info, NULL);
        gf_metadata_clear(&source->base.metadata);
        free(source);
        return status;
    }
    *opened = &source->base;
    return GF_OK;
}
