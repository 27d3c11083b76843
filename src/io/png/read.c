/* PNG decoder. libpng reads the header and the metadata. It also reads the rows of interlaced
 * images and of streams that io/png/inflate.c does not support; all other rows are decompressed
 * there and unfiltered by io/strip/row_filter_simd.c. Samples are expanded in this file. Metadata
 * is copied as bytes. "Differences from libpng" in docs/design-files.md lists other results. */
#include <inttypes.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/checksum.h"
#include "core/error.h"
#include "io/bytes.h"
#include "io/png/inflate.h"
#include "io/png/png.h"
#include "io/stream/announced.h"
#include "io/strip/row_filter.h"

/* The buffers of several threads take at most this share of the memory of an image. */
enum { MEMORY_SHARE = 8 };

typedef struct png_layout {
    uint64_t width;
    uint32_t channels;    /* stored channels: 1 for a palette */
    uint32_t depth;       /* bits per stored sample: 1, 2, 4, 8 or 16 */
    size_t row_bytes;     /* of stored samples; an expanded row is never shorter */
    uint32_t unit;        /* bytes from a byte to the one on which its prediction depends */
    bool indexed;         /* samples are indices into palette */
    bool has_alpha;       /* indexed: the palette has alpha */
    bool has_key;         /* not indexed: pixels equal to key are transparent */
    uint32_t factor;      /* scales grey below 8 bits to 0..255; else 1 */
    unsigned char key[6]; /* samples of the transparent colour, scaled */
    unsigned char palette[256][4]; /* RGBA; every entry is initialised */
} png_layout;

typedef struct png_source {
    gf_source base;
    gf_input input;
    gf_limits limits;
    png_layout layout;
    uint64_t y; /* next row */
    bool interlaced;
    unsigned char *raw; /* interlaced: stored rows of the whole image, once read */
    /* Decoder of rows that libpng does not read; else NULL. */
    gf_png_inflate *inflate;
    const gf_png_simd *simd;
    unsigned char *above; /* previous row, unfiltered and not expanded */
    double called;        /* seconds in calls of read */
    /* State of libpng. */
    png_structp png;
    png_infop info;
    unsigned char header[GF_PNG_CHUNK_HEADER]; /* of the chunk that libpng read last */
    bool pixels_done;                          /* all pixels are read; the next chunks are late */
    bool idat_ended;                           /* by reader_end_idat */
    uint64_t metadata_bytes;                   /* memory for the preserved chunks */
    char crc_error_chunk[4];                   /* ancillary chunk of the last CRC warning */
    gf_error cause;                            /* first error; set before each longjmp */
} png_source;

/* ---- expansion of stored samples ------------------------------------------------------------- */

/* Rows become longer. In-place expansion is possible: each step starts at the last pixel. */

/* Unpack samples of fewer than 8 bits to bytes and multiply them by a factor. The first sample of a
 * byte is in its high bits. Only grey and palette samples are packed: one sample per pixel. */
static void expand_unpack(const unsigned char *raw, unsigned char *out, uint64_t width,
                          uint32_t depth, uint32_t factor) {
    const uint32_t per_byte = 8 / depth, gap = 8 - depth, mask = (1u << depth) - 1;
    const uint64_t four = (1u << 4 * depth) - 1, two = (1u << 2 * depth) - 1;
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
        /* Spread them to one byte each, at most 255 after multiplication. */
        samples = (samples | samples << 4 * gap) & four * UINT64_C(0x0000000100000001);
        samples = (samples | samples << 2 * gap) & two * UINT64_C(0x0001000100010001);
        samples = (samples | samples << gap) & mask * UINT64_C(0x0101010101010101);
        samples = (gf_host_is_little() ? __builtin_bswap64(samples) : samples) * factor;
        memcpy(out + x - 8, &samples, 8);
    }
}

/* Inlined with constant sizes of a pixel and a sample, in bytes. */
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

/* Expand a row. raw == out is allowed. No alignment is required. */
static void expand_row(const png_source *source, const unsigned char *raw, unsigned char *out) {
    const png_layout *layout = &source->layout;
    const bool grey = layout->channels == 1;
    const size_t colors = layout->has_alpha ? 4 : 3;
    if (layout->depth == 16)
        source->simd->swap16(out, raw, (size_t)(layout->width * layout->channels));
    else if (layout->depth < 8)
        expand_unpack(raw, out, layout->width, layout->depth, layout->factor);
    else if (out != raw)
        memcpy(out, raw, layout->row_bytes);
    if (layout->indexed)
        for (uint64_t x = layout->width; x-- > 0;)
            memcpy(out + x * colors, layout->palette[out[x]], colors);
    else if (layout->has_key && layout->depth == 16)
        grey ? expand_alpha(layout, out, 2, 2) : expand_alpha(layout, out, 6, 2);
    else if (layout->has_key)
        grey ? expand_alpha(layout, out, 1, 1) : expand_alpha(layout, out, 3, 1);
}

/* ---- callbacks of libpng --------------------------------------------------------------------- */

/* libpng distinguishes errors only by their text. The second one means that malloc failed or, from
 * 1.6.47 on, that a chunk is over the limit. */
#define OVER_LIMIT "chunk data is too large"
#define OUT_OF_MEMORY "exceeds memory limits"

static bool reader_is_over_limit(const png_source *source, const char *message) {
    return strstr(message, OVER_LIMIT) ||
           (strstr(message, OUT_OF_MEMORY) && gf_big32(source->header) > source->limits.max_chunk);
}

static void PNGCBAPI reader_on_error(png_structp png, png_const_charp message) {
    png_source *source = png_get_error_ptr(png);
    const char *name = source->input.name;
    if (source->cause.status)
        png_longjmp(png, 1);
    if (reader_is_over_limit(source, message)) {
        gf_fail(&source->cause, GF_FAILED,
                "%s: the %.4s chunk is over the limit of %" PRIu64
                " bytes; raise it with --max-chunk",
                name, message, source->limits.max_chunk);
    } else if (strstr(message, OUT_OF_MEMORY) || strstr(message, "ut of memory")) {
        gf_fail(&source->cause, GF_FAILED, "%s: out of memory", name);
    } else {
        gf_png_fail_damaged(&source->cause, name, message);
    }
    png_longjmp(png, 1);
}

/* libpng skips a damaged or oversized ancillary chunk. Damaged metadata is skipped here, too. A
 * damaged tRNS would corrupt pixels, and an exceeded limit must be reported: both are errors. */
static void PNGCBAPI reader_on_warning(png_structp png, png_const_charp message) {
    png_source *source = png_get_error_ptr(png);
    const bool idat = strncmp(message, "IDAT", 4) == 0;
    /* The pixels are correct: an image with an alpha channel ignores tRNS, and only the low bits of
     * an out-of-range key count. Decoders ignore a duplicate, and tRNS before PLTE or too late. */
    const bool harmless = strstr(message, "with alpha") || strstr(message, "out-of-range") ||
                          strstr(message, "duplicate") || strstr(message, "out of place");
    const bool damaged = strstr(message, "CRC error");
    if ((strncmp(message, "tRNS", 4) == 0 && !harmless) ||
        (strncmp(message, "IEND", 4) == 0 && damaged))
        reader_on_error(png, message);
    if (damaged)
        memcpy(source->crc_error_chunk, message, 4);
    else if (!idat && (strstr(message, OVER_LIMIT) || strstr(message, OUT_OF_MEMORY)))
        reader_on_error(png, message);
}

/* Give libpng an invalid end of the IDAT chunks, whose pixels it did not read. It inflates that end
 * before it reads the chunks behind: from 1.6.47 on, an IEND is an error without. The first byte is
 * invalid, and libpng only warns. If the first IDAT is empty, its end precedes that byte. */
static void reader_end_idat(png_source *source, png_bytep data, size_t size) {
    static const unsigned char header[GF_PNG_CHUNK_HEADER] = {0, 0, 0, 1, 'I', 'D', 'A', 'T'};
    const png_uint_32 part = png_get_io_state(source->png) & PNG_IO_MASK_LOC;
    memset(data, 0, size);
    if (part == PNG_IO_CHUNK_CRC)
        gf_put_big32(data, gf_crc32(0, header + 4, 4));
    else if (part == PNG_IO_CHUNK_HDR)
        memcpy(data, header, sizeof header);
    else
        source->idat_ended = true;
}

static void PNGCBAPI reader_on_read(png_structp png, png_bytep data, size_t size) {
    png_source *source = png_get_io_ptr(png);
    size_t got;
    if (source->inflate && source->pixels_done && !source->idat_ended) {
        reader_end_idat(source, data, size);
        return;
    }
    if (gf_input_read(&source->input, data, size, &got, &source->cause))
        png_longjmp(png, 1);
    if (got < size) {
        gf_png_fail_short(&source->cause, source->input.name);
        png_longjmp(png, 1);
    }
    if (size != GF_PNG_CHUNK_HEADER ||
        (png_get_io_state(png) & PNG_IO_MASK_LOC) != PNG_IO_CHUNK_HDR)
        return;
    /* Skip IDAT chunks after the pixels. libpng does so only if it read the pixels itself. */
    if (source->inflate && source->pixels_done && gf_png_idat_is(data)) {
        unsigned char skipped[4096];
        gf_png_idat idat;
        gf_png_idat_start(&idat, &source->input, data);
        do {
            if (gf_png_idat_read(&idat, skipped, sizeof skipped, &got, &source->cause))
                png_longjmp(png, 1);
        } while (got != 0);
        memcpy(data, idat.header, GF_PNG_CHUNK_HEADER);
    }
    memcpy(source->header, data, GF_PNG_CHUNK_HEADER);
}

/* Return 1 for a processed chunk, 0 for a critical one: libpng rejects unknown critical chunks. */
static int PNGCBAPI reader_on_chunk(png_structp png, png_unknown_chunkp chunk) {
    png_source *source = png_get_user_chunk_ptr(png);
    const char *name = source->input.name;
    const uint64_t allowance = 1 << 20;
    const bool damaged = memcmp(source->crc_error_chunk, chunk->name, 4) == 0;
    memset(source->crc_error_chunk, 0, 4);
    if ((chunk->name[0] & 0x20) == 0)
        return 0;
    if ((chunk->location & PNG_HAVE_IHDR) == 0) {
        gf_fail(&source->cause, GF_FAILED,
                "%s: the PNG is damaged (%.4s: missing IHDR); get an intact copy", name,
                (const char *)chunk->name);
        png_longjmp(png, 1);
    }
    if (memcmp(chunk->name, "acTL", 4) == 0 && chunk->size == 8 && !damaged)
        gf_note(&source->base.metadata.remarks,
                "an animation of %" PRIu32 " frames; only the default image is read",
                gf_big32(chunk->data));
    if (damaged && gf_png_preserves(chunk->name)) {
        memcpy(source->base.metadata.damaged, chunk->name, 4);
        return 1;
    }
    /* Bound the memory of all chunks: a small chunk takes more memory than file space. Include the
     * allocation overhead and an array of twice the size. */
    if (gf_png_preserves(chunk->name))
        source->metadata_bytes += chunk->size + 2 * sizeof(gf_chunk) + 2 * sizeof(void *);
    if (source->metadata_bytes > allowance &&
        (source->metadata_bytes - allowance) / 2 > source->limits.max_chunk) {
        gf_fail(&source->cause, GF_FAILED,
                "%s: the metadata is over twice the limit of %" PRIu64
                " bytes per chunk; raise it with --max-chunk",
                name, source->limits.max_chunk);
        png_longjmp(png, 1);
    }
    gf_chunk copied = {.late = source->pixels_done, .size = chunk->size, .data = chunk->data};
    memcpy(copied.name, chunk->name, 4);
    if (gf_check_memory(source->metadata_bytes, source->limits.max_memory, name, "metadata",
                        &source->cause) ||
        gf_metadata_append_chunk(&source->base.metadata, &copied, &source->base.dropped, name,
                                 &source->cause))
        png_longjmp(png, 1);
    return 1;
}

/* ---- calls to libpng: one setjmp each, no locals that change after it ------------------------ */

static gf_status reader_read_header(png_source *source, gf_error *error) {
    /* libpng parses these chunks unless it is set to treat them as unknown. */
    static const png_byte preserved[] =
        "iCCP\0sRGB\0gAMA\0cHRM\0pHYs\0eXIf\0tEXt\0zTXt\0iTXt\0tIME\0"
        "cICP\0mDCV\0cLLI\0acTL\0oFFs\0bKGD\0hIST\0sBIT\0sPLT\0pCAL\0sCAL";
    png_structp png = source->png;
    if (setjmp(png_jmpbuf(png)) != 0)
        return gf_return_error(&source->cause, error);
    png_set_user_limits(png, 0x7fffffff, 0x7fffffff);
    png_set_chunk_malloc_max(png, (png_alloc_size_t)source->limits.max_chunk);
    /* reader_on_chunk limits the bytes of all chunks and with them their number. */
    png_set_chunk_cache_max(png, 0);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_ALWAYS, preserved,
                                (int)(sizeof preserved / 5));
    png_set_read_user_chunk_fn(png, source, reader_on_chunk);
    png_set_read_fn(png, source, reader_on_read);
    png_read_info(png, source->info);
    return GF_OK;
}

/* Let libpng read the rows. It allocates two rows. */
static gf_status reader_start_rows(png_source *source, gf_error *error) {
    if (setjmp(png_jmpbuf(source->png)) != 0)
        return gf_return_error(&source->cause, error);
    if (source->interlaced)
        (void)png_set_interlace_handling(source->png);
    png_start_read_image(source->png);
    return GF_OK;
}

/* Read the next stored rows; for an interlaced image, those of the current pass. */
static gf_status reader_rows(png_source *source, unsigned char *rows, size_t stride, uint64_t count,
                             gf_error *error) {
    if (setjmp(png_jmpbuf(source->png)) != 0)
        return gf_return_error(&source->cause, error);
    for (uint64_t i = 0; i < count; i++)
        png_read_row(source->png, rows + i * stride, NULL);
    return GF_OK;
}

/* Read the chunks after the pixels. */
static gf_status reader_end(png_source *source, gf_error *error) {
    source->pixels_done = true;
    if (setjmp(png_jmpbuf(source->png)) != 0)
        return gf_return_error(&source->cause, error);
    png_read_end(source->png, source->info); /* NULL would skip late chunks */
    return GF_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Return whether stored rows are expanded rows. */
static bool layout_is_plain(const png_layout *layout) {
    return layout->depth == 8 && !layout->indexed && !layout->has_key;
}

static gf_status png_read_inflated(png_source *source, unsigned char *out, size_t stride,
                                   uint64_t rows, gf_error *error) {
    const png_layout *layout = &source->layout;
    const bool plain = layout_is_plain(layout);
    const unsigned char *above = source->above;
    gf_png_rows decoded;
    for (uint64_t i = 0; i < rows; i += decoded.count, out += decoded.count * stride) {
        const gf_status status = gf_png_inflate_rows(source->inflate, rows - i, &decoded, error);
        if (status)
            return status;
        for (uint64_t k = 0; k < decoded.count && decoded.filtered; k++)
            if (decoded.first[k * decoded.stride] >= GF_PNG_FILTERS)
                return gf_png_inflate_fail(source->inflate, "bad adaptive filter value", error);
        if (decoded.filtered)
            source->simd->unfilter_rows(out, stride, decoded.first, decoded.stride, above, 0,
                                        layout->row_bytes, layout->unit, decoded.count);
        else
            gf_announced_copy(out, stride, decoded.first, decoded.stride, layout->row_bytes,
                              decoded.count);
        above = out + (decoded.count - 1) * stride;
        /* The caller may overwrite its rows after this call: copy the last one. */
        if (!plain || i + decoded.count == rows) {
            memcpy(source->above, above, layout->row_bytes);
            above = source->above;
        }
        for (uint64_t k = 0; k < decoded.count && !plain; k++)
            expand_row(source, out + k * stride, out + k * stride);
    }
    return GF_OK;
}

static gf_status png_read_by_libpng(png_source *source, unsigned char *out, size_t stride,
                                    uint64_t rows, gf_error *error) {
    const size_t row_bytes = source->layout.row_bytes;
    const uint64_t height = source->base.format.height;
    gf_status status = GF_OK;
    if (!source->interlaced)
        status = reader_rows(source, out, stride, rows, error);
    if (source->interlaced && !source->raw) {
        /* Later passes add pixels between those of earlier passes: all rows are kept in memory.
         * Zeroed: libpng does not write the unused bits at the end of a row. */
        source->raw = gf_alloc_limited(row_bytes * height, source->limits.max_memory,
                                       source->input.name, "an interlaced image", error);
        if (!source->raw)
            return GF_FAILED;
        for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES && !status; pass++)
            status = reader_rows(source, source->raw, row_bytes, height, error);
    }
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
    const double start = gf_now();
    const gf_status status = source->inflate ? png_read_inflated(source, dst, stride, rows, error)
                                             : png_read_by_libpng(source, dst, stride, rows, error);
    source->called += gf_now() - start;
    return status;
}

static gf_status png_source_announce(gf_source *base, void *dst, size_t stride, uint64_t rows,
                                     gf_error *error) {
    png_source *source = (png_source *)base;
    return source->inflate && layout_is_plain(&source->layout)
               ? gf_png_inflate_announce(source->inflate, dst, stride, rows, error)
               : GF_OK;
}

static void png_source_cancel(gf_source *base) {
    png_source *source = (png_source *)base;
    if (source->inflate)
        gf_png_parallel_stop(source->inflate->parallel);
    base->bytes = source->input.offset;
}

static void png_source_shrink(gf_source *base) {
    png_source *source = (png_source *)base;
    if (source->inflate)
        source->inflate->image.threads = 1;
    base->threads = 0;
    base->memory = 0;
}

static gf_status png_source_finish(gf_source *base, gf_error *error) {
    png_source *source = (png_source *)base;
    gf_status status = GF_OK;
    if (source->inflate) {
        const double start = gf_now();
        if ((status = gf_png_inflate_finish(source->inflate, error)))
            return status;
        base->busy_seconds = source->inflate->stream.busy + source->called + gf_now() - start;
    }
    status = reader_end(source, error);
    base->bytes = source->input.offset;
    for (size_t i = 0; i < base->metadata.count && source->limits.autorotate && !status; i++) {
        const gf_chunk *chunk = &base->metadata.chunks[i];
        if (strcmp(chunk->name, "eXIf") == 0 && chunk->late && gf_exif_orientation(chunk) > 1)
            status = gf_fail(error, GF_FAILED,
                             "%s: the EXIF orientation follows the pixels; convert the file to "
                             "TIFF first, or remove --autorotate",
                             source->input.name);
    }
    return status;
}

static void png_source_close(gf_source *base) {
    png_source *source = (png_source *)base;
    gf_png_inflate_close(source->inflate); /* before the input, which its threads read */
    gf_input_close(&source->input);
    png_destroy_read_struct(&source->png, &source->info, NULL);
    gf_metadata_clear(&source->base.metadata);
    free(source->raw);
    free(source->above);
    free(source);
}

/* Set the layout from IHDR, PLTE and tRNS. */
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
    const uint32_t bits = layout->channels * layout->depth;
    layout->row_bytes = (size_t)((layout->width * bits + 7) / 8);
    layout->unit = bits < 8 ? 1 : bits / 8;
    layout->indexed = png_get_color_type(png, info) == PNG_COLOR_TYPE_PALETTE;
    layout->factor = layout->depth < 8 && !layout->indexed ? 255 / ((1u << layout->depth) - 1) : 1;
    /* libpng ignores a tRNS before PLTE: its count is then 0. */
    bool transparent = png_get_tRNS(png, info, &alpha, &alpha_count, &key) != 0 && alpha_count != 0;
    if (layout->indexed) {
        png_colorp colors = NULL;
        int count = 0;
        (void)png_get_PLTE(png, info, &colors, &count);
        layout->has_alpha = transparent;
        for (int i = 0; i < 256; i++) {
            /* Indices beyond the palette: opaque black, as in browsers. */
            const png_color color = i < count ? colors[i] : (png_color){0, 0, 0};
            const unsigned char rgba[4] = {color.red, color.green, color.blue,
                                           transparent && i < alpha_count ? alpha[i] : 255};
            memcpy(layout->palette[i], rgba, sizeof rgba);
        }
    } else if (transparent && key) {
        const bool grey = layout->channels == 1;
        const uint16_t samples[] = {grey ? key->gray : key->red, key->green, key->blue};
        layout->has_key = true;
        for (size_t i = 0; i < 3; i++) {
            /* Only the low `depth` bits count. */
            const uint16_t value =
                (uint16_t)((samples[i] & ((1u << layout->depth) - 1)) * layout->factor);
            if (layout->depth == 16)
                memcpy(layout->key + 2 * i, &value, sizeof value);
            else
                layout->key[i] = (unsigned char)value;
        }
    }
}

/* Choose the decoder by the zlib header, and initialise it. The limit on pixels was checked. */
static gf_status png_start_pixels(png_source *source, gf_error *error) {
    const size_t row_bytes = source->layout.row_bytes;
    unsigned char head[2];
    gf_png_idat idat;
    size_t got;
    gf_status status;
    gf_png_idat_start(&idat, &source->input, source->header);
    /* A first IDAT chunk of at most 2 bytes is left to libpng. No known encoder writes one. */
    if (source->interlaced || idat.remaining <= sizeof head)
        return reader_start_rows(source, error);
    if ((status = gf_png_idat_read(&idat, head, sizeof head, &got, error)))
        return status;
    if (!gf_png_inflate_supports(head)) {
        gf_input_unread(&source->input, head, got);
        return reader_start_rows(source, error);
    }
    source->above = calloc(1, row_bytes);
    if (!source->above)
        return gf_fail_memory(error, source->input.name, row_bytes, "a row");
    const gf_input *input = &source->input;
    const bool known = input->regular && input->size > input->offset;
    gf_png_image image = {.row_bytes = row_bytes,
                          .file_bytes = known ? input->size - input->offset : 0,
                          .height = source->base.format.height,
                          .unit = source->layout.unit,
                          .threads = source->limits.threads,
                          .shared = source->limits.shared,
                          .max_memory = source->limits.max_memory / MEMORY_SHARE,
                          .segment = source->limits.segment};
    image.threads = gf_png_parallel_threads(&image, &source->base.memory);
    source->base.threads = image.threads > 1 ? image.threads : 0;
    source->inflate = gf_png_inflate_open(&idat, &image, error);
    return source->inflate ? GF_OK : GF_FAILED;
}

static gf_status png_open_image(png_source *source, gf_error *error) {
    static const char *const colors[] = {"", "grey", "grey and alpha", "RGB", "RGB and alpha"};
    const gf_limits *limits = &source->limits;
    const gf_input *input = &source->input;
    const png_layout *layout = &source->layout;
    gf_format *format = &source->base.format;
    source->png =
        png_create_read_struct(PNG_LIBPNG_VER_STRING, source, reader_on_error, reader_on_warning);
    if (source->png)
        source->info = png_create_info_struct(source->png);
    if (!source->info)
        return gf_fail(error, GF_FAILED, "%s: out of memory", input->name);
    gf_status status = reader_read_header(source, error);
    if (status)
        return status;
    png_read_layout(source);
    /* Palettes become RGB or RGBA, a transparent colour adds alpha, samples become u8 or u16. */
    *format = (gf_format){.width = layout->width,
                          .height = png_get_image_height(source->png, source->info),
                          .channels = layout->indexed ? 3u + layout->has_alpha
                                                      : layout->channels + layout->has_key,
                          .type = layout->depth == 16 ? GF_U16 : GF_U8};
    format->alpha = format->channels % 2 == 0;
    source->interlaced = png_get_interlace_type(source->png, source->info) != PNG_INTERLACE_NONE;
    snprintf(source->base.stored, sizeof source->base.stored, "%u-bit %s%s%s", layout->depth,
             layout->indexed ? "palette" : colors[layout->channels],
             layout->has_alpha ? " with alpha"
             : layout->has_key ? " with a transparent colour"
                               : "",
             source->interlaced ? ", interlaced" : "");
    if ((status = gf_check_pixels(format, limits, input->name, error)) ||
        /* This row and the one above. */
        (status = gf_check_memory(2 * (uint64_t)gf_row_bytes(format), limits->max_memory,
                                  input->name, "two rows", error)))
        return status;
    /* A deflate stream expands at most 1032 times. Reject a file that is too short for the rows in
     * its header before rows are read: a small file could otherwise take much time. The passes of
     * an interlaced image are in total no shorter than its rows. */
    if (input->regular && input->size >= input->offset &&
        format->height * layout->row_bytes / 1032 > input->size - input->offset)
        return gf_png_fail_short(error, input->name);
    return png_start_pixels(source, error);
}

gf_status gf_png_source_open(const gf_input *input, const gf_limits *limits, gf_source **opened,
                             gf_error *error) {
    static const gf_source_ops ops = {.read = png_source_read,
                                      .finish = png_source_finish,
                                      .close = png_source_close,
                                      .announce = png_source_announce,
                                      .cancel = png_source_cancel,
                                      .shrink = png_source_shrink};
    png_source *source = gf_source_new(sizeof *source, &ops, input->name, error);
    if (!source)
        return GF_FAILED;
    source->input = *input;
    source->limits = *limits;
    source->simd = gf_png_simd_of(gf_isa_best());
    gf_status status = png_open_image(source, error);
    if (status) {
        source->input = (gf_input){0}; /* still owned by the caller */
        png_source_close(&source->base);
        return status;
    }
    *opened = &source->base;
    return GF_OK;
}
