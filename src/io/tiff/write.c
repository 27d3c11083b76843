/* TIFF and BigTIFF encoder. The strips of all pages follow the header, and the directories follow
 * the strips: at the end it is known whether the file is a BigTIFF. Each page has its own sink,
 * which receives the state of the file from the one before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "io/bytes.h"
#include "io/strip/encoder.h"
#include "io/tiff/layout.h"

/* ---- compressions ---------------------------------------------------------------------------- */

/* In the order of gf_tiff_compressions(). */
typedef enum tiff_codec {
    CODEC_DEFLATE, /* the encoder of PNG */
    CODEC_NONE,
    CODEC_LZW, /* this and the following: through libtiff */
    CODEC_ZSTD,
    CODECS
} tiff_codec;

const char *const *gf_tiff_compressions(void) {
    static const char *const names[CODECS + 1] = {"deflate", "none", "lzw", "zstd", NULL};
    return names;
}

/* Values of the tag Compression. */
static const uint16_t codec_tags[CODECS] = {COMPRESSION_ADOBE_DEFLATE, COMPRESSION_NONE,
                                            COMPRESSION_LZW, COMPRESSION_ZSTD};

/* ---- the sink -------------------------------------------------------------------------------- */

enum {
    HEADER_BYTES = 16, /* of BigTIFF; a classic TIFF leaves the second half unused */
    ZLIB_HEAD = 2,
    ZLIB_TAIL = 4,  /* Adler-32 */
    ZSTD_LEVEL = 3, /* of 1 to 22; higher levels take 2 to 4 times as long and save 5 % */
    /* Memory of libtiff for the states of its encoders, and its header and directory. */
    LIBRARY_BYTES = 4 << 20,
    LIBRARY_FILE_BYTES = 4096
};

typedef struct tiff_file {
    uint64_t classic_max; /* maximum bytes of a file that is not a BigTIFF */
    uint64_t at;          /* bytes written */
    /* The whole file, if the output is not seekable: the header depends on the strips. */
    bool hold;
    unsigned char *held;
    uint64_t capacity;
    gf_tiff_list *lists; /* tags of the finished pages */
    size_t pages;
    uint64_t list_bytes;
} tiff_file;

typedef struct tiff_sink {
    gf_encoder encoder;
    tiff_codec codec;
    uint64_t max_memory;
    uint64_t *offsets, *sizes; /* of the strips in the file; one array */
    gf_tiff_list list;         /* tags of the page */
    bool associated;           /* colours are multiplied by alpha */
    tiff_file file;
} tiff_sink;

static const char *tiff_name(const tiff_sink *sink) {
    return gf_output_name(sink->encoder.base.output);
}

static gf_status tiff_put(tiff_sink *sink, const void *data, uint64_t size, gf_error *error) {
    tiff_file *file = &sink->file;
    const uint64_t end = file->at + size;
    if (file->hold && end > file->capacity) {
        const uint64_t held = sink->encoder.held_bytes; /* checked against the limit */
        const uint64_t more = end + end / 2 < held ? end + end / 2 : held;
        const uint64_t capacity = more > end ? more : end;
        unsigned char *grown = realloc(file->held, capacity);
        if (!grown)
            return gf_fail_memory(error, tiff_name(sink), capacity, "the file");
        file->held = grown;
        file->capacity = capacity;
    }
    if (file->hold)
        memcpy(file->held + file->at, data, size);
    file->at = end;
    return file->hold ? GF_OK : gf_output_write(sink->encoder.base.output, data, size, error);
}

/* ---- strips ---------------------------------------------------------------------------------- */

static bool tiff_encode_deflate(gf_encoder_slot *s, gf_png_scratch *scratch) {
    static const unsigned char head[ZLIB_HEAD] = {0x78, 0x01}; /* window of 32 KiB; fastest level */
    memcpy(s->out, head, ZLIB_HEAD);
    s->strip.out = s->out + ZLIB_HEAD;
    s->strip.last = true;
    if (!gf_png_strip_encode(scratch, &s->strip))
        return false;
    gf_put_big32(s->strip.out + s->strip.size, s->strip.adler);
    s->strip.size += ZLIB_HEAD + ZLIB_TAIL;
    return true;
}

static uint64_t xxh_rotate(uint64_t value, int bits) {
    return value << bits | value >> (64 - bits);
}

/* Return the lower half of XXH64 with seed 0: the checksum of Zstandard frames. */
static uint32_t xxh64(const unsigned char *p, size_t size) {
    static const uint64_t p1 = 0x9e3779b185ebca87, p2 = 0xc2b2ae3d27d4eb4f, p3 = 0x165667b19e3779f9,
                          p4 = 0x85ebca77c2b2ae63, p5 = 0x27d4eb2f165667c5;
    static const int turns[] = {1, 7, 12, 18};
    uint64_t lanes[] = {p1 + p2, p2, 0, -p1}, hash = size < 32 ? p5 : 0;
    const unsigned char *const end = p + size;
    for (; end - p >= 32; p += 32)
        for (int k = 0; k < 4; k++)
            lanes[k] = xxh_rotate(lanes[k] + gf_little64(p + 8 * k) * p2, 31) * p1;
    for (int k = 0; k < 4 && size >= 32; k++)
        hash += xxh_rotate(lanes[k], turns[k]);
    for (int k = 0; k < 4 && size >= 32; k++)
        hash = (hash ^ xxh_rotate(lanes[k] * p2, 31) * p1) * p1 + p4;
    hash += size;
    for (; end - p >= 8; p += 8)
        hash = xxh_rotate(hash ^ xxh_rotate(gf_little64(p) * p2, 31) * p1, 27) * p1 + p4;
    for (; end - p >= 4; p += 4)
        hash = xxh_rotate(hash ^ gf_little32(p) * p1, 23) * p2 + p3;
    for (; p < end; p++)
        hash = xxh_rotate(hash ^ *p * p5, 11) * p1;
    hash = (hash ^ hash >> 33) * p2;
    hash = (hash ^ hash >> 29) * p3;
    return (uint32_t)(hash ^ hash >> 32);
}

/* Let libtiff write a file of one strip, whose samples are the predicted ones, and take its bytes.
 */
static bool tiff_encode_library(gf_encoder_slot *s, gf_png_scratch *scratch) {
    enum { DESCRIPTOR = 4, FRAME_HEADER = 6, SIZE_OF_8_BYTES = 3 << 6, CHECKSUM = 1 << 2 };
    const tiff_sink *sink = (const tiff_sink *)s->encoder;
    const gf_format *format = &s->encoder->format;
    unsigned char *predicted = gf_png_strip_predict(scratch, &s->strip);
    gf_tiff_file file = {.input.name = "",
                         .data = s->out,
                         .capacity = s->encoder->out_bytes,
                         .max_memory = UINT64_MAX};
    uint64_t *offsets = NULL, *sizes = NULL;
    gf_tiff_handle handle;
    s->failure[0] = '\0';
    if (gf_tiff_handle_start(&file, "w8", &handle))
        return false;
    TIFF *tiff = handle.tiff;
    gf_tiff_handle_clear(&handle);
    const bool done =
        gf_libtiff.TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, (uint32_t)format->width) &&
        gf_libtiff.TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, (uint32_t)s->strip.count) &&
        gf_libtiff.TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, (uint32_t)s->strip.count) &&
        gf_libtiff.TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, (int)format->channels) &&
        gf_libtiff.TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE,
                                (int)gf_type_bytes(format->type) * 8) &&
        gf_libtiff.TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) &&
        gf_libtiff.TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK) &&
        gf_libtiff.TIFFSetField(tiff, TIFFTAG_COMPRESSION, (int)codec_tags[sink->codec]) &&
        (sink->codec != CODEC_ZSTD ||
         gf_libtiff.TIFFSetField(tiff, TIFFTAG_ZSTD_LEVEL, (int)ZSTD_LEVEL)) &&
        gf_libtiff.TIFFWriteEncodedStrip(tiff, 0, predicted, (tmsize_t)s->strip.filtered) >= 0 &&
        gf_libtiff.TIFFGetField(tiff, TIFFTAG_STRIPOFFSETS, &offsets) &&
        gf_libtiff.TIFFGetField(tiff, TIFFTAG_STRIPBYTECOUNTS, &sizes);
    if (done) {
        s->strip.size = (size_t)*sizes;
        memmove(s->out, s->out + *offsets, s->strip.size);
        /* Add the size and the checksum of its content to a Zstandard frame: libtiff cannot. */
        if (sink->codec == CODEC_ZSTD && s->out[DESCRIPTOR] == 0) {
            s->out[DESCRIPTOR] = SIZE_OF_8_BYTES | CHECKSUM;
            memmove(s->out + FRAME_HEADER + 8, s->out + FRAME_HEADER, s->strip.size - FRAME_HEADER);
            gf_put_little64(s->out + FRAME_HEADER, s->strip.filtered);
            gf_put_little32(s->out + s->strip.size + 8, xxh64(predicted, s->strip.filtered));
            s->strip.size += 8 + 4;
        }
        file.size = file.capacity = 0; /* libtiff now appends a directory, which is not used */
    } else if (handle.message[0]) {
        snprintf(s->failure, sizeof s->failure,
                 "libtiff cannot compress it (%s); use --tiff-compression deflate or none",
                 handle.message);
    }
    gf_tiff_handle_close(&handle);
    return done;
}

/* Write an encoded strip, or its rows, which precede it in memory. */
static gf_status tiff_write_strip(gf_encoder *encoder, gf_encoder_slot *s, gf_error *error) {
    tiff_sink *sink = (tiff_sink *)encoder;
    const gf_png_strips *strips = &encoder->strips;
    const gf_format *format = &encoder->format;
    const uint64_t k = encoder->written - 1, start = sink->file.at;
    const bool plain = sink->codec == CODEC_NONE, hold = sink->file.hold;
    unsigned char *rows = s->memory + (gf_png_row(strips, &s->strip, 0) - s->memory);
    gf_status status = plain ? GF_OK : tiff_put(sink, s->out, s->strip.size, error);
    for (uint64_t r = 0; plain && r < s->strip.count && !status; r++) {
        unsigned char *row = rows + r * strips->row_stride;
        gf_copy_order(row, row, gf_row_samples(format), gf_type_bytes(format->type), true);
        status = hold ? tiff_put(sink, row, strips->row_bytes, error) : GF_OK;
    }
    if (plain && !hold) {
        sink->file.at += s->strip.count * strips->row_bytes;
        status = gf_output_write_rows(encoder->base.output, rows, strips->row_stride,
                                      strips->row_bytes, s->strip.count, error);
    }
    sink->offsets[k] = start;
    sink->sizes[k] = sink->file.at - start;
    return status;
}

/* ---- tags ------------------------------------------------------------------------------------ */

/* Express a number as a fraction with a power of ten as denominator. Return false if it does not
 * fit. */
static bool tiff_fraction(double number, uint32_t fraction[2]) {
    enum { DENOMINATOR_MAX = 1000000000 };
    if (!(number > 0 && number <= UINT32_MAX))
        return false;
    for (uint32_t d = 1; d <= DENOMINATOR_MAX && number * d < UINT32_MAX + 0.5; d *= 10) {
        fraction[0] = (uint32_t)(number * d + 0.5);
        fraction[1] = d;
        if ((double)fraction[0] / d == number || d == DENOMINATOR_MAX)
            break;
    }
    return fraction[0] != 0;
}

static gf_status tiff_add_tags(tiff_sink *sink, const gf_tiff_entry *tags, size_t count,
                               gf_error *error) {
    gf_status status = GF_OK;
    for (size_t i = 0; i < count && !status; i++)
        if (tags[i].count)
            status = gf_tiff_list_add(&sink->list, &tags[i], error);
    return status;
}

static gf_status tiff_set_metadata(tiff_sink *sink, const gf_metadata *metadata, gf_error *error) {
    gf_metadata items = {0};
    gf_tiff_list_clear(&sink->list);
    gf_status status = gf_metadata_to_items(metadata, &items, tiff_name(sink), error);
    for (size_t i = 0; i < items.count && !status; i++) {
        const gf_chunk *item = &items.chunks[i];
        const gf_item_kind *kind = gf_item_kind_of(item);
        const gf_tiff_entry tag = {GF_TIFF_OTHER, kind->tag, kind->type, item->size, item->data};
        const uint32_t groups = kind->dropped == GF_DROPPED_EXIF       ? GF_TIFF_DESCRIPTION
                                : strcmp(kind->name, GF_ITEM_GEO) == 0 ? 1 << GF_TIFF_GEO
                                                                       : 0;
        if (kind->type)
            status = gf_tiff_list_add(&sink->list, &tag, error);
        else if (groups)
            status = gf_tiff_list_read(&sink->list, item->data, item->size, groups, error);
    }
    uint32_t x[2] = {0}, y[2] = {0};
    gf_resolution resolution;
    if (!status && gf_metadata_resolution(&items, &resolution) && tiff_fraction(resolution.x, x) &&
        tiff_fraction(resolution.y, y)) {
        const uint16_t unit = (uint16_t)resolution.unit;
        const gf_tiff_entry tags[] = {
            {GF_TIFF_RESOLUTION, TIFFTAG_XRESOLUTION, TIFF_RATIONAL, 1, x},
            {GF_TIFF_RESOLUTION, TIFFTAG_YRESOLUTION, TIFF_RATIONAL, 1, y},
            {GF_TIFF_RESOLUTION, TIFFTAG_RESOLUTIONUNIT, TIFF_SHORT, 1, &unit}};
        status = tiff_add_tags(sink, tags, sizeof tags / sizeof *tags, error);
    }
    gf_metadata_clear(&items);
    return status;
}

static gf_status tiff_add_pixels(tiff_sink *sink, gf_error *error) {
    enum { MAX_CHANNELS = 4 };
    const gf_format *format = &sink->encoder.format;
    const uint16_t bits = (uint16_t)(8 * gf_type_bytes(format->type));
    const uint16_t kind = format->type == GF_F32 ? SAMPLEFORMAT_IEEEFP : SAMPLEFORMAT_UINT;
    const uint16_t all_bits[MAX_CHANNELS] = {bits, bits, bits, bits};
    const uint16_t kinds[MAX_CHANNELS] = {kind, kind, kind, kind};
    const uint16_t photometric = format->channels >= 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK;
    const uint16_t compression = codec_tags[sink->codec], planar = PLANARCONFIG_CONTIG;
    const uint16_t predictor =
        format->type == GF_F32 ? PREDICTOR_FLOATINGPOINT : PREDICTOR_HORIZONTAL;
    const uint16_t extra = !gf_has_alpha(format) ? EXTRASAMPLE_UNSPECIFIED
                           : sink->associated    ? EXTRASAMPLE_ASSOCALPHA
                                                 : EXTRASAMPLE_UNASSALPHA;
    const uint16_t channels = (uint16_t)format->channels;
    const uint64_t strips = sink->encoder.written;
    const uint32_t width = (uint32_t)format->width, height = (uint32_t)format->height,
                   rows = (uint32_t)sink->encoder.strips.rows;
    const gf_tiff_entry tags[] = {
        {GF_TIFF_OTHER, TIFFTAG_IMAGEWIDTH, TIFF_LONG, 1, &width},
        {GF_TIFF_OTHER, TIFFTAG_IMAGELENGTH, TIFF_LONG, 1, &height},
        {GF_TIFF_OTHER, TIFFTAG_BITSPERSAMPLE, TIFF_SHORT, channels, all_bits},
        {GF_TIFF_OTHER, TIFFTAG_COMPRESSION, TIFF_SHORT, 1, &compression},
        {GF_TIFF_OTHER, TIFFTAG_PHOTOMETRIC, TIFF_SHORT, 1, &photometric},
        {GF_TIFF_OTHER, TIFFTAG_STRIPOFFSETS, TIFF_LONG8, strips, sink->offsets},
        {GF_TIFF_OTHER, TIFFTAG_SAMPLESPERPIXEL, TIFF_SHORT, 1, &channels},
        {GF_TIFF_OTHER, TIFFTAG_ROWSPERSTRIP, TIFF_LONG, 1, &rows},
        {GF_TIFF_OTHER, TIFFTAG_STRIPBYTECOUNTS, TIFF_LONG8, strips, sink->sizes},
        {GF_TIFF_OTHER, TIFFTAG_PLANARCONFIG, TIFF_SHORT, 1, &planar},
        {GF_TIFF_OTHER, TIFFTAG_PREDICTOR, TIFF_SHORT, sink->codec != CODEC_NONE, &predictor},
        {GF_TIFF_OTHER, TIFFTAG_EXTRASAMPLES, TIFF_SHORT, channels % 2 == 0, &extra},
        {GF_TIFF_OTHER, TIFFTAG_SAMPLEFORMAT, TIFF_SHORT, channels, kinds},
    };
    return tiff_add_tags(sink, tags, sizeof tags / sizeof *tags, error);
}

/* ---- the file -------------------------------------------------------------------------------- */

static gf_status tiff_end_page(gf_sink *base, const gf_metadata *metadata, gf_error *error) {
    tiff_sink *sink = (tiff_sink *)base;
    tiff_file *file = &sink->file;
    gf_encoder_end(&sink->encoder);
    gf_status status = metadata ? tiff_set_metadata(sink, metadata, error) : GF_OK;
    if (!status)
        status = tiff_add_pixels(sink, error);
    if (status)
        return status;
    file->list_bytes += gf_tiff_list_bytes(&sink->list);
    /* They are held twice: as lists, and as they are written. */
    status = gf_check_memory(2 * file->list_bytes, sink->max_memory, tiff_name(sink),
                             "the directories of the pages", error);
    if (status)
        return status;
    const size_t bytes = (file->pages + 1) * sizeof *file->lists;
    gf_tiff_list *grown = realloc(file->lists, bytes);
    if (!grown)
        return gf_fail_memory(error, tiff_name(sink), bytes, "the list of pages");
    file->lists = grown;
    file->lists[file->pages++] = sink->list;
    sink->list = (gf_tiff_list){.name = tiff_name(sink)};
    return GF_OK;
}

/* Write the directories, as those of a BigTIFF if the file is too large for a classic one, and the
 * header. */
static gf_status tiff_finish(gf_sink *base, const gf_metadata *metadata, gf_error *error) {
    tiff_sink *sink = (tiff_sink *)base;
    tiff_file *file = &sink->file;
    unsigned char header[HEADER_BYTES] = "II*";
    gf_tiff_bytes bytes;
    gf_status status = tiff_end_page(base, metadata, error);
    if (!status && file->at & 1)
        status = tiff_put(sink, "", 1, error);
    if (status)
        return status;
    const uint64_t offset = file->at;
    gf_put_little32(header + 4, (uint32_t)offset);
    for (bool big = false;; big = true) {
        bytes = (gf_tiff_bytes){0};
        for (size_t i = 0; i < file->pages && !status; i++)
            status = gf_tiff_list_write(&file->lists[i], GF_TIFF_ALL, offset, big, &bytes, error);
        if (status || big || offset + bytes.size <= file->classic_max)
            break;
        free(bytes.data);
        memcpy(header, "II+\0\10\0\0", 8);
        gf_put_little64(header + 8, offset);
    }
    if (!status)
        status = tiff_put(sink, bytes.data, bytes.size, error);
    free(bytes.data);
    if (!status && file->hold) {
        memcpy(file->held, header, HEADER_BYTES);
        status = gf_output_write(base->output, file->held, file->at, error);
    } else if (!status && !(status = gf_output_seek(base->output, 0, error))) {
        status = gf_output_write(base->output, header, HEADER_BYTES, error);
    }
    return status ? status : gf_output_prepare(base->output, error);
}

static void tiff_close(gf_sink *base) {
    tiff_sink *sink = (tiff_sink *)base;
    gf_encoder_close(&sink->encoder);
    gf_tiff_list_clear(&sink->list);
    for (size_t i = 0; i < sink->file.pages; i++)
        gf_tiff_list_clear(&sink->file.lists[i]);
    free(sink->offsets);
    free(sink->file.lists);
    free(sink->file.held);
    free(sink);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Allocate the offsets and sizes of the strips, check the memory for a file that is held, and open
 * the encoder. */
static gf_status tiff_open_encoder(tiff_sink *sink, const gf_sink_setup *setup, gf_error *error) {
    gf_encoder *encoder = &sink->encoder;
    const size_t bound = gf_png_strip_bound(&encoder->strips);
    const uint64_t strips = (setup->format->height - 1) / encoder->strips.rows + 1;
    const uint64_t bytes = 2 * strips * sizeof *sink->offsets;
    sink->offsets = calloc(1, bytes);
    if (!sink->offsets)
        return gf_fail_memory(error, tiff_name(sink), bytes, "the table of strips");
    sink->sizes = sink->offsets + strips;
    sink->file.hold = !gf_output_seekable(setup->output);
    encoder->held_bytes = sink->file.hold ? sink->file.at + strips * bound + bytes : 0;
    if (gf_check_memory(encoder->held_bytes, setup->max_memory, tiff_name(sink),
                        "the file, which is held until its end,", error))
        return GF_FAILED;
    encoder->write = tiff_write_strip;
    encoder->out_bytes = 1;
    if (sink->codec == CODEC_DEFLATE) {
        encoder->encode = tiff_encode_deflate;
        encoder->scratch_bytes = gf_png_scratch_bytes(&encoder->strips);
        encoder->out_bytes = ZLIB_HEAD + bound + ZLIB_TAIL;
    } else if (sink->codec != CODEC_NONE) {
        /* LZW has codes of up to 12 bits. libtiff has a buffer for the strip, too. */
        encoder->encode = tiff_encode_library;
        encoder->out_bytes = bound + bound / 2 + LIBRARY_FILE_BYTES;
        encoder->scratch_bytes =
            gf_png_scratch_bytes(&encoder->strips) + encoder->out_bytes + LIBRARY_BYTES;
    }
    return gf_encoder_open(encoder, setup, error);
}

/* Match the version, of TIFF or BigTIFF in both byte orders. */
static bool tiff_match(const gf_input *input) {
    const bool big = input->head[0] == 'M';
    const unsigned char version = input->head[big ? 3 : 2];
    return input->head_size >= 8 && input->head[big ? 2 : 3] == 0 &&
           (version == '*' || version == '+');
}

static gf_status tiff_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    static const gf_sink_ops ops = {gf_encoder_write, tiff_finish, tiff_close};
    static const unsigned char header[HEADER_BYTES];
    tiff_sink *sink = gf_sink_new(sizeof *sink, &ops, setup->output, error);
    tiff_sink *before = (tiff_sink *)setup->before;
    if (!sink)
        return GF_FAILED;
    *opened = &sink->encoder.base;
    sink->file.classic_max = setup->classic_max ? setup->classic_max : UINT32_MAX;
    sink->list.name = tiff_name(sink);
    if (before) {
        sink->file = before->file;
        before->file = (tiff_file){0};
    }
    sink->max_memory = setup->max_memory;
    sink->encoder.base.end_page = tiff_end_page;
    sink->associated = setup->metadata->associated_alpha;
    gf_tiff_strips_init(setup->format, gf_isa_best(), &sink->encoder.strips);
    sink->codec = (tiff_codec)gf_codec_effort(&gf_tiff_codec, setup->compression);
    gf_status status = GF_OK;
    if (sink->codec == CODECS)
        status = gf_fail(error, GF_USAGE,
                         "%s: unknown TIFF compression '%s'; use none, lzw, deflate or zstd",
                         tiff_name(sink), setup->compression);
    else if (sink->codec >= CODEC_LZW && !(status = gf_tiff_load(tiff_name(sink), error)) &&
             !gf_libtiff.TIFFIsCODECConfigured(codec_tags[sink->codec]))
        status = gf_fail(error, GF_USAGE,
                         "%s: the installed libtiff cannot write %s; use --tiff-compression "
                         "deflate or none",
                         tiff_name(sink), setup->compression);
    if (!status && !(status = tiff_set_metadata(sink, setup->metadata, error)) &&
        !(status = tiff_open_encoder(sink, setup, error)) && sink->file.at == 0)
        status = tiff_put(sink, header, HEADER_BYTES, error);
    return status;
}

const gf_codec gf_tiff_codec = {
    .label = "TIFF",
    .extensions = {"tif", "tiff"},
    .notes =
        "Grey or RGB with or without alpha, 8 or 16 bits or binary32; also reads palettes and "
        "fewer bits; BigTIFF.",
    .magics = {"II", "MM"},
    .match = tiff_match,
    .open_source = gf_tiff_source_open,
    .decode_cost = 2.0, /* Deflate: 1.8, LZW: 2.5, JPEG: 1.3 */
    .open_sink = tiff_sink_open,
    .types = GF_STORES_INTEGERS | GF_STORES_F32,
    .channels = GF_STORES_ANY | GF_STORES_DATA,
    .associated_alpha = true,
    .max_columns = UINT32_MAX,
    .exact = true,
    .form = GF_FORM_TIFF,
    .option = GF_OPTION_TIFF_COMPRESSION,
    .compressions = gf_tiff_compressions,
    .encode_cost = {[CODEC_DEFLATE] = 2.0,
                    [CODEC_NONE] = GF_PLAIN_COST,
                    [CODEC_LZW] = 10.0,
                    [CODEC_ZSTD] = 7.0},
    .threads = true,
};
