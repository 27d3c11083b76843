/* PNG encoder: chunks. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/checksum.h"
#include "core/error.h"
#include "io/bytes.h"
#include "io/png/png.h"
#include "io/strip/encoder.h"

const char *const *gf_compressions(void) {
    static const char *const names[] = {[GF_PNG_FAST] = "fast",
                                        [GF_PNG_BALANCED] = "balanced",
                                        [GF_PNG_SMALL] = "small",
                                        [GF_PNG_STORED] = "none",
                                        NULL};
    return names;
}

static const unsigned char idat_name[4] = {'I', 'D', 'A', 'T'};

static gf_status chunk_write(gf_output *output, const char *name, const void *data, size_t size,
                             gf_error *error) {
    unsigned char head[8], tail[4];
    gf_put_big32(head, (uint32_t)size);
    memcpy(head + 4, name, 4);
    const uint32_t crc = gf_crc32(0, head + 4, 4);
    gf_put_big32(tail, size ? gf_crc32(crc, data, size) : crc);
    gf_status status = gf_output_write(output, head, sizeof head, error);
    if (!status)
        status = gf_output_write(output, data, size, error);
    return status ? status : gf_output_write(output, tail, sizeof tail, error);
}

/* Write the metadata chunks before the pixels, or those after them (late). */
static gf_status chunk_write_metadata(gf_output *output, const gf_metadata *metadata, bool late,
                                      gf_error *error) {
    gf_metadata chunks = {0};
    gf_status status = gf_metadata_to_png(metadata, &chunks, gf_output_name(output), error);
    for (size_t i = 0; i < chunks.count && !status; i++) {
        const gf_chunk *chunk = &chunks.chunks[i];
        if (chunk->late == late)
            status = chunk_write(output, chunk->name, chunk->data, chunk->size, error);
    }
    gf_metadata_clear(&chunks);
    return status;
}

void gf_png_head(const gf_format *format, unsigned char head[GF_PNG_HEAD]) {
    static const unsigned char color_types[] = {[1] = 0, [2] = 4, [3] = 2, [4] = 6};
    enum { DATA_BYTES = 13, DATA = 16 };
    memset(head, 0, GF_PNG_HEAD); /* deflate, adaptive filtering, not interlaced */
    memcpy(head, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", DATA);
    gf_put_big32(head + DATA, (uint32_t)format->width);
    gf_put_big32(head + DATA + 4, (uint32_t)format->height);
    head[DATA + 8] = format->type == GF_U16 ? 16 : 8;
    head[DATA + 9] = color_types[format->channels];
    gf_put_big32(head + DATA + DATA_BYTES, gf_crc32(0, head + DATA - 4, 4 + DATA_BYTES));
}

/* Write an IDAT chunk over 8 bytes before its data and 4 after it. crc: of type and data. */
static gf_status idat_write(gf_output *output, unsigned char *data, size_t size, uint32_t crc,
                            gf_error *error) {
    gf_put_big32(data - 8, (uint32_t)size);
    memcpy(data - 4, idat_name, 4);
    gf_put_big32(data + size, crc);
    return gf_output_write(output, data - 8, size + 12, error);
}

/* Save and restore the next bytes, which the CRC of a chunk overwrites. */
gf_status gf_png_idat_write_parts(gf_output *output, unsigned char *data, size_t size, size_t max,
                                  gf_error *error) {
    gf_status status = GF_OK;
    while (size && !status) {
        const size_t part = size < max ? size : max;
        unsigned char saved[4];
        memcpy(data - 4, idat_name, 4);
        memcpy(saved, data + part, 4);
        status = idat_write(output, data, part, gf_crc32(0, data - 4, part + 4), error);
        memcpy(data + part, saved, 4);
        data += part;
        size -= part;
    }
    return status;
}

enum {
    HEAD_BYTES = 2 + GF_PNG_IDAT_HEAD, /* with the zlib header of the first strip */
    TAIL_BYTES = 4 + GF_PNG_IDAT_TAIL  /* with the Adler-32 of the last strip */
};

typedef struct png_sink {
    gf_encoder encoder;
    uint32_t adler; /* of all strips written */
} png_sink;

/* Return the data of the IDAT chunk of a strip. The first one begins with the zlib header. */
static unsigned char *strip_chunk_data(const gf_encoder_slot *s) {
    return s->strip.out - (s->first ? 2 : 0);
}

static bool strip_encode(gf_encoder_slot *s, gf_png_scratch *scratch) {
    static const unsigned char zlib_head[2] = {0x78, 0x01}; /* window of 32 KiB; fastest level */
    s->strip.out = s->out + HEAD_BYTES;
    const bool encoded = gf_png_strip_encode(scratch, &s->strip);
    unsigned char *const data = strip_chunk_data(s);
    const size_t size = (size_t)(s->strip.out - data) + s->strip.size;
    if (s->first)
        memcpy(data, zlib_head, sizeof zlib_head);
    memcpy(data - 4, idat_name, 4);
    if (encoded && size <= GF_PNG_IDAT_MAX)
        s->crc = gf_crc32(0, data - 4, 4 + size);
    return encoded;
}

static gf_status strip_write(gf_encoder *encoder, gf_encoder_slot *s, gf_error *error) {
    png_sink *sink = (png_sink *)encoder;
    unsigned char *data = strip_chunk_data(s);
    size_t size = (size_t)(s->strip.out - data) + s->strip.size;
    const bool single = size <= GF_PNG_IDAT_MAX;
    sink->adler =
        (uint32_t)adler32_combine(sink->adler, s->strip.adler, (z_off_t)s->strip.filtered);
    if (s->strip.last) {
        gf_put_big32(data + size, sink->adler);
        s->crc = single ? gf_crc32(s->crc, data + size, 4) : 0;
        size += 4;
    }
    return single
               ? idat_write(encoder->base.output, data, size, s->crc, error)
               : gf_png_idat_write_parts(encoder->base.output, data, size, GF_PNG_IDAT_MAX, error);
}

size_t gf_png_bound(const gf_format *format) {
    enum { END_BYTES = 4 + 12 }; /* Adler-32 and the IEND chunk */
    gf_png_strips strips;
    if (gf_format_check(format, "png", NULL) || format->type == GF_F32)
        return 0;
    gf_png_strips_init(format, GF_PNG_FAST, gf_isa_best(), &strips);
    const uint64_t count = (format->height - 1) / strips.rows + 1;
    return GF_PNG_HEAD + 2 + END_BYTES +
           (size_t)count * (gf_png_strip_bound(&strips) + GF_PNG_IDAT_HEAD + GF_PNG_IDAT_TAIL);
}

static gf_status png_finish(gf_sink *base, const gf_metadata *metadata, gf_error *error) {
    gf_status status = GF_OK;
    gf_encoder_end((gf_encoder *)base);
    if (metadata)
        status = chunk_write_metadata(base->output, metadata, true, error);
    if (!status)
        status = chunk_write(base->output, "IEND", "", 0, error);
    return status ? status : gf_output_prepare(base->output, error);
}

static void png_close(gf_sink *base) {
    gf_encoder_close((gf_encoder *)base);
    free(base);
}

gf_status gf_png_sink_open_for(gf_isa isa, const gf_sink_setup *setup, gf_sink **opened,
                               gf_error *error) {
    static const gf_sink_ops ops = {gf_encoder_write, png_finish, png_close};
    png_sink *sink = gf_sink_new(sizeof *sink, &ops, setup->output, error);
    if (!sink)
        return GF_FAILED;
    gf_encoder *encoder = &sink->encoder;
    *opened = &encoder->base;
    sink->adler = 1;
    const size_t effort = gf_codec_effort(&gf_png_codec, setup->compression);
    unsigned char head[GF_PNG_HEAD];
    gf_status status = GF_OK;
    gf_png_head(setup->format, head);
    gf_png_strips_init(setup->format, (gf_png_effort)effort, isa, &encoder->strips);
    encoder->out_bytes = HEAD_BYTES + gf_png_strip_bound(&encoder->strips) + TAIL_BYTES;
    encoder->scratch_bytes = gf_png_scratch_bytes(&encoder->strips);
    encoder->swap = setup->format->type == GF_U16;
    encoder->encode = strip_encode;
    encoder->write = strip_write;
    if (!gf_compressions()[effort])
        status = gf_fail(error, GF_USAGE,
                         "%s: unknown compression '%s'; use none, fast, balanced or small",
                         gf_output_name(setup->output), setup->compression);
    if (!status && !(status = gf_encoder_open(encoder, setup, error)) &&
        !(status = gf_output_write(setup->output, head, sizeof head, error)))
        status = chunk_write_metadata(setup->output, setup->metadata, false, error);
    return status;
}

static gf_status png_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    return gf_png_sink_open_for(gf_isa_best(), setup, opened, error);
}

const gf_codec gf_png_codec = {
    .label = "PNG",
    .extensions = {"png"},
    .notes = "All colour types and depths, interlaced or not; 16-bit samples stay 16-bit.",
    .magics = {"\x89PNG\r\n\x1a\n"},
    .open_source = gf_png_source_open,
    .decode_cost = 3.0,
    .on_devices = true,
    .open_sink = png_sink_open,
    .types = GF_STORES_INTEGERS,
    .channels = GF_STORES_ANY,
    .max_columns = INT32_MAX,
    .exact = true,
    .form = GF_FORM_PNG,
    .option = GF_OPTION_COMPRESSION,
    .compressions = gf_compressions,
    .encode_cost = {[GF_PNG_FAST] = 2.0,
                    [GF_PNG_BALANCED] = 50.0, /* with zlib; approximate */
                    [GF_PNG_SMALL] = 50.0,
                    [GF_PNG_STORED] = 0.6},
    .threads = true,
};
