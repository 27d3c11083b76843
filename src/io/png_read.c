/* PNG in. libpng reads the header, the metadata, and the rows of interlaced images and of those
 * that inflate.c does not take; the others are inflated there and unfiltered by our own loops.
 * Samples are expanded by our own code, too, and metadata is carried as bytes, unparsed.
 * "Differences from libpng" in docs/design-files.md lists the files that libpng reads otherwise. */
#include <inttypes.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "io/bytes.h"
#include "io/formats.h"
#include "io/inflate.h"
#include "io/png_filter.h"

typedef struct png_layout {
    uint64_t width;
    uint32_t channels;             /* stored: 1 for a palette */
    uint32_t depth;                /* bits a stored sample: 1, 2, 4, 8 or 16 */
    bool indexed;                  /* samples are indices into palette */
    bool has_alpha;                /* indexed: the palette has alpha */
    bool has_key;                  /* else: pixels equal to key are transparent */
    uint32_t factor;               /* of grey of fewer than 8 bits, to the full range; else 1 */
    unsigned char key[6];          /* samples that were brought to the full range */
    unsigned char palette[256][4]; /* RGBA; every entry is filled */
} png_layout;

typedef struct png_source {
    gf_source base;
    gf_input input;
    gf_limits limits;
    png_layout layout;
    uint64_t y; /* of the next row */
    bool interlaced;
    unsigned char *raw; /* interlaced: the stored rows of the whole image, once read */
    /* Rows that are not read by libpng; else NULL. */
    gf_png_inflate *inflate;
    const gf_png_simd *simd;
    unsigned char *above; /* the last row that was read, as it is stored */
    /* libpng's side. */
    png_structp png;
    png_infop info;
    unsigned char header[GF_PNG_CHUNK_HEADER]; /* of the chunk that libpng came to last */
    unsigned char ahead[GF_PNG_CHUNK_HEADER];  /* was read by others: libpng gets it first */
    size_t ahead_bytes;
    bool pixels_done;        /* what comes is behind the pixels */
    bool rows_by_others;     /* not by libpng */
    uint64_t metadata_bytes; /* carried so far */
    char bad_chunk[4];       /* name of the ancillary chunk that libpng last warned of */
    gf_error cause;          /* the first failure; set before every longjmp */
} png_source;

/* ---- expanding: from the samples that PNG stores (1 to 16 bits, palettes, a transparent key) - */

/* Every step works from the last pixel to the first, because it makes the row longer: that way one
 * row can be expanded where it lies. */

/* Set channels and type of the expanded image: palettes become RGB or RGBA, a key adds an alpha
 * channel, 16 bits stay, less becomes u8. */
static void layout_set_format(const png_layout *layout, gf_format *format) {
    format->channels =
        layout->indexed ? 3u + layout->has_alpha : layout->channels + layout->has_key;
    format->type = layout->depth == 16 ? GF_U16 : GF_U8;
    format->width = layout->width;
}

/* Bytes of a stored row. Never more than those of the expanded one. */
static size_t layout_bytes(const png_layout *layout) {
    return (size_t)((layout->width * layout->channels * layout->depth + 7) / 8);
}

/* Spread eight samples of `depth` bits, the first in the highest ones, to bytes in memory order. */
static uint64_t expand_spread(uint64_t samples, uint32_t depth) {
    const uint32_t gap = 8 - depth;
    const uint64_t four = (1u << 4 * depth) - 1, two = (1u << 2 * depth) - 1,
                   one = (1u << depth) - 1;
    uint64_t v = samples;
    v = (v | v << 4 * gap) & four * UINT64_C(0x0000000100000001);
    v = (v | v << 2 * gap) & two * UINT64_C(0x0001000100010001);
    v = (v | v << gap) & one * UINT64_C(0x0101010101010101);
    return gf_host_is_little() ? __builtin_bswap64(v) : v;
}

/* Unpack samples of fewer than 8 bits to a byte each, times a factor. The first sample of a byte is
 * in its high bits. Only grey and palettes are packed, so a sample is a pixel. */
static void expand_unpack(const unsigned char *raw, unsigned char *out, uint64_t width,
                          uint32_t depth, uint32_t factor) {
    const uint32_t per_byte = 8 / depth, mask = (1u << depth) - 1;
    uint64_t x = width;
    for (; x % 8 != 0; x--) {
        const uint32_t shift = (per_byte - 1 - (uint32_t)((x - 1) % per_byte)) * depth;
        out[x - 1] = (unsigned char)(((uint32_t)raw[(x - 1) / per_byte] >> shift & mask) * factor);
    }
    for (; x != 0; x -= 8) {
        const unsigned char *packed = raw + (x / 8 - 1) * depth;
        uint64_t samples = 0;
        for (uint32_t i = 0; i < depth; i++)
            samples = samples << 8 | packed[i];
        samples = expand_spread(samples, depth) * factor; /* at most 255 in each byte */
        memcpy(out + x - 8, &samples, 8);
    }
}

static void expand_palette(const png_layout *layout, unsigned char *row) {
    size_t channels = layout->has_alpha ? 4 : 3;
    for (uint64_t x = layout->width; x-- > 0;)
        memcpy(row + x * channels, layout->palette[row[x]], channels);
}

/* Inlined with the bytes of a pixel and of a sample known. */
GF_INLINE void expand_alpha(const png_layout *layout, unsigned char *row, size_t pixel,
                            size_t sample) {
    uint64_t key = 0, opaque = 0;
    memcpy(&key, layout->key, pixel);
    memset((unsigned char *)&opaque + pixel, 255, sample);
    for (uint64_t x = layout->width; x-- > 0;) {
        uint64_t out = 0;
        memcpy(&out, row + x * pixel, pixel);
        out |= out == key ? 0 : opaque;
        memcpy(row + x * (pixel + sample), &out, pixel + sample);
    }
}

/* raw == out is allowed; neither need be aligned. */
static void expand_row(const png_source *source, const unsigned char *raw, unsigned char *out) {
    const png_layout *layout = &source->layout;
    const bool grey = layout->channels == 1;
    if (layout->depth == 16)
        source->simd->swap16(out, raw, (size_t)(layout->width * layout->channels));
    else if (layout->depth < 8)
        expand_unpack(raw, out, layout->width, layout->depth, layout->factor);
    else if (out != raw)
        memcpy(out, raw, layout_bytes(layout));
    if (layout->indexed)
        expand_palette(layout, out);
    else if (layout->has_key && layout->depth == 16)
        grey ? expand_alpha(layout, out, 2, 2) : expand_alpha(layout, out, 6, 2);
    else if (layout->has_key)
        grey ? expand_alpha(layout, out, 1, 1) : expand_alpha(layout, out, 3, 1);
}

/* ---- called by libpng ------------------------------------------------------------------------ */

/* Leaves libpng for the setjmp of the wrapper that called it. */
static _Noreturn void reader_leave(png_structp png) {
    png_longjmp(png, 1);
}

/* libpng tells its failures apart only in words. The second comes only after the first was passed:
 * malloc failed. */
#define TOO_LARGE "chunk data is too large"
#define NO_CAPACITY "exceeds memory limits"

static void PNGCBAPI reader_on_error(png_structp png, png_const_charp message) {
    png_source *source = png_get_error_ptr(png);
    const char *name = source->input.name;
    if (source->cause.status)
        reader_leave(png);
    if (strstr(message, TOO_LARGE)) {
        gf_fail(&source->cause, GF_FAILED,
                "%s: its %.4s chunk is over the limit of %" PRIu64
                " bytes; raise it with --max-chunk",
                name, message, source->limits.max_chunk);
    } else if (strstr(message, NO_CAPACITY) || strstr(message, "ut of memory")) {
        gf_fail(&source->cause, GF_FAILED, "%s: out of memory", name);
    } else {
        gf_png_fail_damaged(&source->cause, name, message);
    }
    reader_leave(png);
}

/* True for a warning about tRNS after which the pixels are right. A tRNS has no meaning in an
 * image with an alpha channel. The low bits of a key with too many bits count. A duplicate, and a
 * tRNS in front of PLTE or behind the pixels, is intact, and decoders ignore it. */
static bool trns_is_harmless(const char *message) {
    return strstr(message, "with alpha") || strstr(message, "out-of-range") ||
           strstr(message, "duplicate") || strstr(message, "out of place");
}

/* libpng goes on without an ancillary chunk that is damaged or too large. For metadata the first is
 * right, but a damaged tRNS loses pixels, and a limit must not be met in silence. */
static void PNGCBAPI reader_on_warning(png_structp png, png_const_charp message) {
    png_source *source = png_get_error_ptr(png);
    bool idat = strncmp(message, "IDAT", 4) == 0;
    bool trns = strncmp(message, "tRNS", 4) == 0;
    if (trns && !trns_is_harmless(message))
        reader_on_error(png, message);
    if (strstr(message, "CRC error")) {
        memcpy(source->bad_chunk, message, 4);
    } else if (!idat && (strstr(message, TOO_LARGE) || strstr(message, NO_CAPACITY))) {
        reader_on_error(png, message);
    }
}

static void reader_read_input(png_structp png, unsigned char *data, size_t size) {
    png_source *source = png_get_io_ptr(png);
    size_t ahead = source->ahead_bytes < size ? source->ahead_bytes : size;
    size_t got;
    if (ahead != 0) {
        memcpy(data, source->ahead, ahead);
        source->ahead_bytes -= ahead;
        memmove(source->ahead, source->ahead + ahead, source->ahead_bytes);
    }
    if (gf_input_read(&source->input, data + ahead, size - ahead, &got, &source->cause))
        reader_leave(png);
    if (got < size - ahead) {
        gf_png_fail_short(&source->cause, source->input.name);
        reader_leave(png);
    }
}

/* libpng passes over IDAT chunks after the pixels, but not if it did not read the pixels. */
static void reader_skip_idat(png_structp png, unsigned char header[GF_PNG_CHUNK_HEADER]) {
    png_source *source = png_get_io_ptr(png);
    unsigned char data[4096];
    gf_png_idat idat;
    size_t got;
    gf_png_idat_start(&idat, &source->input, header);
    do {
        if (gf_png_idat_read(&idat, data, sizeof data, &got, &source->cause))
            reader_leave(png);
    } while (got != 0);
    memcpy(header, idat.header, GF_PNG_CHUNK_HEADER);
}

static void PNGCBAPI reader_on_read(png_structp png, png_bytep data, size_t size) {
    png_source *source = png_get_io_ptr(png);
    reader_read_input(png, data, size);
    if (size != GF_PNG_CHUNK_HEADER ||
        (png_get_io_state(png) & PNG_IO_MASK_LOC) != PNG_IO_CHUNK_HDR)
        return;
    if (source->rows_by_others && source->pixels_done && gf_png_idat_is(data))
        reader_skip_idat(png, data);
    memcpy(source->header, data, GF_PNG_CHUNK_HEADER);
}

/* What describes the colours stays right when samples change; other chunks are carried if their
 * name says that this is safe (PNG's safe-to-copy bit). Chunks about the old representation (bKGD,
 * hIST, sBIT, sPLT, APNG's frames) are not safe to copy. */
static bool reader_carries(const png_byte name[5]) {
    static const char *const listed[] = {"iCCP", "sRGB", "gAMA", "cHRM",
                                         "cICP", "mDCV", "cLLI", "tIME"};
    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++)
        if (memcmp(name, listed[i], 4) == 0)
            return true;
    return (name[0] & 0x20) != 0 && (name[2] & 0x20) == 0 && (name[3] & 0x20) != 0;
}

/* Chunks of few bytes take more memory than room in a file: all of them may not be too many. */
static gf_status reader_check_metadata(png_source *source) {
    const uint64_t free_of_charge = 1 << 20, bytes = source->metadata_bytes;
    const char *name = source->input.name;
    if (bytes > free_of_charge && (bytes - free_of_charge) / 2 > source->limits.max_chunk)
        return gf_fail(&source->cause, GF_FAILED,
                       "%s: all of its metadata are over twice the limit of %" PRIu64
                       " bytes for a chunk; raise it with --max-chunk",
                       name, source->limits.max_chunk);
    return gf_check_memory(bytes, source->limits.max_memory, name, "metadata", &source->cause);
}

/* Returns 1 if the chunk is done with, 0 to leave it to libpng (which refuses critical ones). */
static int PNGCBAPI reader_on_chunk(png_structp png, png_unknown_chunkp chunk) {
    png_source *source = png_get_user_chunk_ptr(png);
    const char *name = source->input.name;
    bool damaged = memcmp(source->bad_chunk, chunk->name, 4) == 0;
    memset(source->bad_chunk, 0, 4);
    if ((chunk->name[0] & 0x20) == 0)
        return 0;
    if ((chunk->location & PNG_HAVE_IHDR) == 0) {
        gf_fail(&source->cause, GF_FAILED,
                "%s: the PNG is damaged (%.4s: missing IHDR); get an intact copy", name,
                (const char *)chunk->name);
        reader_leave(png);
    }
    if (!reader_carries(chunk->name))
        return 1;
    if (damaged) {
        memcpy(source->base.metadata.damaged, chunk->name, 4);
        return 1;
    }
    /* Its own block of memory has a head, and the array may have twice the room. */
    source->metadata_bytes += chunk->size + 2 * sizeof(gf_chunk) + 2 * sizeof(void *);
    if (reader_check_metadata(source) ||
        gf_metadata_append(&source->base.metadata, (const char *)chunk->name, source->pixels_done,
                           chunk->data, chunk->size, name, &source->cause))
        reader_leave(png);
    return 1;
}

/* ---- calls to libpng: one setjmp each, no locals that change after it ------------------------ */

static gf_status reader_report(const png_source *source, gf_error *error) {
    if (error)
        *error = source->cause;
    return source->cause.status;
}

static gf_status reader_read_header(png_source *source, gf_error *error) {
    /* libpng parses some metadata unless told that it does not know it. */
    static const png_byte carried[] =
        "iCCP\0sRGB\0gAMA\0cHRM\0pHYs\0eXIf\0tEXt\0zTXt\0iTXt\0tIME\0"
        "cICP\0mDCV\0cLLI\0oFFs\0bKGD\0hIST\0sBIT\0sPLT\0pCAL\0sCAL";
    png_structp png = source->png;
    if (setjmp(png_jmpbuf(png)) != 0)
        return reader_report(source, error);
    png_set_user_limits(png, 0x7fffffff, 0x7fffffff);
    png_set_chunk_malloc_max(png, (png_alloc_size_t)source->limits.max_chunk);
    /* The number of chunks is bounded by their bytes, in on_chunk. */
    png_set_chunk_cache_max(png, 0);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_ALWAYS, carried, (int)(sizeof carried / 5));
    png_set_read_user_chunk_fn(png, source, reader_on_chunk);
    png_set_read_fn(png, source, reader_on_read);
    png_read_info(png, source->info);
    return GF_OK;
}

/* Hand bytes that were read from the input back to libpng; at most GF_PNG_CHUNK_HEADER. */
static void reader_give_back(png_source *source, const unsigned char *bytes, size_t count) {
    memcpy(source->ahead, bytes, count);
    source->ahead_bytes = count;
}

/* Let libpng read the rows. It allocates two of them. */
static gf_status reader_start_rows(png_source *source, bool interlaced, gf_error *error) {
    if (setjmp(png_jmpbuf(source->png)) != 0)
        return reader_report(source, error);
    if (interlaced)
        (void)png_set_interlace_handling(source->png);
    png_start_read_image(source->png);
    return GF_OK;
}

static void reader_read_rows(png_structp png, unsigned char *rows, size_t stride, uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        png_read_row(png, rows + i * stride, NULL);
}

/* Read the next stored rows, or of an interlaced image the next ones of this pass. */
static gf_status reader_rows(png_source *source, unsigned char *rows, size_t stride, uint64_t count,
                             gf_error *error) {
    if (setjmp(png_jmpbuf(source->png)) != 0)
        return reader_report(source, error);
    reader_read_rows(source->png, rows, stride, count);
    return GF_OK;
}

/* Read what follows the pixels. If others read the rows, the input must be behind the last IDAT
 * chunk, but for what was given back. */
static gf_status reader_end(png_source *source, bool by_others, gf_error *error) {
    source->pixels_done = true;
    source->rows_by_others = by_others;
    if (setjmp(png_jmpbuf(source->png)) != 0)
        return reader_report(source, error);
    /* libpng would go on inflating IDAT chunks, if it knew them. */
    if (by_others)
        png_set_keep_unknown_chunks(source->png, PNG_HANDLE_CHUNK_NEVER, (png_const_bytep) "IDAT",
                                    1);
    png_read_end(source->png, source->info); /* NULL would skip late chunks */
    return GF_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Later passes fill in between the pixels of earlier ones, so all rows are held. */
static gf_status png_read_interlaced(png_source *source, gf_error *error) {
    size_t row_bytes = layout_bytes(&source->layout);
    uint64_t height = source->base.format.height;
    gf_status status = GF_OK;
    /* Zeroed, because libpng keeps the unused bits at the end of a row as they are. */
    source->raw = gf_hold(row_bytes * height, source->limits.max_memory, source->input.name,
                          "an interlaced image", error);
    if (!source->raw)
        return GF_FAILED;
    for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES && !status; pass++)
        status = reader_rows(source, source->raw, row_bytes, height, error);
    return status;
}

static gf_status png_read_inflated(png_source *source, unsigned char *out, size_t stride,
                                   uint64_t rows, gf_error *error) {
    const png_layout *layout = &source->layout;
    const size_t row_bytes = layout_bytes(layout);
    const uint32_t bits = layout->channels * layout->depth;
    const uint32_t unit = bits < 8 ? 1 : bits / 8;
    const bool plain = layout->depth == 8 && !layout->indexed && !layout->has_key;
    const unsigned char *above = source->above, *filtered;
    for (uint64_t i = 0; i < rows; i++, out += stride) {
        gf_status status = gf_png_inflate_row(source->inflate, &filtered, error);
        if (status)
            return status;
        if (*filtered >= GF_PNG_FILTERS)
            return gf_png_fail_damaged(error, source->input.name, "bad adaptive filter value");
        source->simd->unfilter(out, filtered + 1, above, row_bytes, unit, *filtered);
        if (plain)
            above = out;
        /* The caller's rows are its own again when this returns. */
        if (!plain || i == rows - 1)
            memcpy(source->above, out, row_bytes);
        if (!plain)
            expand_row(source, out, out);
    }
    return GF_OK;
}

static gf_status png_read_by_libpng(png_source *source, unsigned char *out, size_t stride,
                                    uint64_t rows, gf_error *error) {
    size_t row_bytes = layout_bytes(&source->layout);
    gf_status status = GF_OK;
    if (!source->interlaced)
        status = reader_rows(source, out, stride, rows, error);
    else if (!source->raw)
        status = png_read_interlaced(source, error);
    for (uint64_t i = 0; i < rows && !status; i++, source->y++) {
        unsigned char *row = out + i * stride;
        expand_row(source, source->interlaced ? source->raw + source->y * row_bytes : row, row);
    }
    return status;
}

/* ---- the source ------------------------------------------------------------------------------ */

static gf_status png_source_read(gf_source *base, void *dst, size_t stride, uint64_t rows,
                                 gf_error *error) {
    png_source *source = (png_source *)base;
    return source->inflate ? png_read_inflated(source, dst, stride, rows, error)
                           : png_read_by_libpng(source, dst, stride, rows, error);
}

static gf_status png_source_finish(gf_source *base, gf_error *error) {
    png_source *source = (png_source *)base;
    unsigned char header[GF_PNG_CHUNK_HEADER];
    if (source->inflate) {
        gf_status status = gf_png_inflate_finish(source->inflate, header, error);
        if (status)
            return status;
        reader_give_back(source, header, sizeof header);
    }
    gf_status status = reader_end(source, source->inflate, error);
    base->bytes = source->input.offset;
    return status;
}

static void png_source_close(gf_source *base) {
    png_source *source = (png_source *)base;
    gf_input_close(&source->input);
    png_destroy_read_struct(&source->png, &source->info, NULL);
    gf_png_inflate_close(source->inflate);
    gf_metadata_clear(&source->base.metadata);
    free(source->raw);
    free(source->above);
    free(source);
}

/* Only the bits of the depth count. */
static void layout_set_key(png_layout *layout, size_t channel, uint16_t sample) {
    const uint16_t value = (uint16_t)((sample & ((1u << layout->depth) - 1)) * layout->factor);
    if (layout->depth == 16)
        memcpy(layout->key + 2 * channel, &value, sizeof value);
    else
        layout->key[channel] = (unsigned char)value;
}

/* Fills the layout from the chunks that say what the samples mean. */
static void png_read_layout(png_source *source) {
    png_layout *layout = &source->layout;
    png_structp png = source->png;
    png_infop info = source->info;
    png_bytep alpha = NULL;
    int alpha_count = 0;
    png_color_16p key = NULL;
    layout->width = png_get_image_width(png, info);
    layout->channels = png_get_channels(png, info);
    layout->depth = png_get_bit_depth(png, info);
    layout->indexed = png_get_color_type(png, info) == PNG_COLOR_TYPE_PALETTE;
    layout->factor = layout->depth < 8 && !layout->indexed ? 255 / ((1u << layout->depth) - 1) : 1;
    /* libpng drops a tRNS that precedes PLTE: its count is then 0. */
    bool transparent = png_get_tRNS(png, info, &alpha, &alpha_count, &key) != 0 && alpha_count != 0;
    if (layout->indexed) {
        png_colorp colors = NULL;
        int count = 0;
        (void)png_get_PLTE(png, info, &colors, &count);
        layout->has_alpha = transparent;
        for (int i = 0; i < 256; i++) {
            /* Past the end: opaque black, as browsers show it. */
            png_color color = i < count ? colors[i] : (png_color){0, 0, 0};
            layout->palette[i][0] = color.red;
            layout->palette[i][1] = color.green;
            layout->palette[i][2] = color.blue;
            layout->palette[i][3] = transparent && i < alpha_count ? alpha[i] : 255;
        }
    } else if (transparent && key) {
        const bool grey = layout->channels == 1;
        const uint16_t samples[] = {grey ? key->gray : key->red, key->green, key->blue};
        layout->has_key = true;
        for (size_t i = 0; i < 3; i++)
            layout_set_key(layout, i, samples[i]);
    }
}

static void png_describe(png_source *source) {
    static const char *const colors[] = {"", "grey", "grey and alpha", "RGB", "RGB and alpha"};
    const png_layout *layout = &source->layout;
    const char *color = layout->indexed ? "palette" : colors[layout->channels];
    const char *transparent = layout->has_alpha ? " with alpha"
                              : layout->has_key ? " with a transparent colour"
                                                : "";
    snprintf(source->base.stored, sizeof source->base.stored, "%u-bit %s%s%s", layout->depth, color,
             transparent, source->interlaced ? ", interlaced" : "");
}

/* Deflate makes at most 1032 bytes of one. A file that cannot hold the rows it tells of is refused
 * before any is read: a small one would keep us busy for long. */
static gf_status png_check_size(const png_source *source, gf_error *error) {
    const gf_input *input = &source->input;
    const uint64_t rows = source->base.format.height * layout_bytes(&source->layout);
    /* Rows of interlaced images are cut into pieces, which are no shorter together. */
    if (input->regular && input->size >= input->offset && rows / 1032 > input->size - input->offset)
        return gf_png_fail_short(error, input->name);
    return GF_OK;
}

/* Reads the first bytes of the image's data to see whether it is to be inflated here. If not, all
 * is made ready for libpng. Pixels over the limit were refused before rows are allocated. */
static gf_status png_start_pixels(png_source *source, gf_error *error) {
    const size_t row_bytes = layout_bytes(&source->layout);
    unsigned char head[2];
    gf_png_idat idat;
    size_t got;
    gf_status status;
    gf_png_idat_start(&idat, &source->input, source->header);
    /* Not if these bytes are in several chunks, which nobody writes. */
    if (source->interlaced || idat.left <= sizeof head)
        return reader_start_rows(source, source->interlaced, error);
    if ((status = gf_png_idat_read(&idat, head, sizeof head, &got, error)))
        return status;
    if (!gf_png_inflate_can(head)) {
        reader_give_back(source, head, got);
        return reader_start_rows(source, false, error);
    }
    source->above = calloc(1, row_bytes);
    if (!source->above)
        return gf_fail_memory(error, source->input.name, row_bytes, "a row");
    return gf_png_inflate_open(&idat, row_bytes, &source->inflate, error);
}

static gf_status png_open_image(png_source *source, gf_error *error) {
    const gf_limits *limits = &source->limits;
    gf_format *format = &source->base.format;
    const char *name = source->input.name;
    source->png =
        png_create_read_struct(PNG_LIBPNG_VER_STRING, source, reader_on_error, reader_on_warning);
    if (source->png)
        source->info = png_create_info_struct(source->png);
    if (!source->info)
        return gf_fail(error, GF_FAILED, "%s: out of memory", name);
    gf_status status = reader_read_header(source, error);
    if (status)
        return status;
    png_read_layout(source);
    layout_set_format(&source->layout, format);
    format->height = png_get_image_height(source->png, source->info);
    source->interlaced = png_get_interlace_type(source->png, source->info) != PNG_INTERLACE_NONE;
    png_describe(source);
    if ((status = gf_check_pixels(format, limits, name, error)) ||
        /* This row and the one above. */
        (status = gf_check_memory(2 * (uint64_t)gf_row_bytes(format), limits->max_memory, name,
                                  "two rows", error)) ||
        (status = png_check_size(source, error)))
        return status;
    return png_start_pixels(source, error);
}

gf_status gf_png_source_open(const gf_input *input, const gf_limits *limits, gf_source **opened,
                             gf_error *error) {
    static const gf_source_ops ops = {png_source_read, png_source_finish, png_source_close, NULL};
    png_source *source = gf_source_new(sizeof *source, &ops, input->name, error);
    if (!source)
        return GF_FAILED;
    source->base.cost = GF_PNG_DECODE_COST;
    source->input = *input;
    source->limits = *limits;
    source->simd = gf_png_simd_of(gf_isa_best());
    gf_status status = png_open_image(source, error);
    if (status) {
        source->input = (gf_input){0}; /* it stays the caller's */
        png_source_close(&source->base);
        return status;
    }
    *opened = &source->base;
    return GF_OK;
}
