/* JPEG input and output through libjpeg-turbo, row by row, with metadata.
 *
 * The decoder runs in this process: rows from a sandboxed child cost 12 to 22 % more CPU time, and
 * the decoder of libjpeg-turbo has a good record (docs/security.md). Every error and every sign of
 * damaged pixels fails the file. libjpeg reports errors with longjmp, which does not leave this
 * file. */
#include <stdio.h>
/* After stdio.h, which jpeglib.h requires. */
#include <inttypes.h>
#include <jpeglib.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

/* After jpeglib.h, whose version decides which messages there are, and so their numbers. */
#include <jerror.h>

#include "core/error.h"
#include "core/thread.h"
#include "io/bytes.h"
#include "io/codec.h"
#include "io/strip/row_filter.h"

/* Bytes read and written at once. */
enum { BUFFER_BYTES = 1 << 16 };

/* Rows per call of libjpeg: at least those of a row of MCUs. */
enum { CALL_ROWS = 16 };

/* Max bytes of data in a marker segment, and memory that a segment takes besides its data. */
enum { SEGMENT_BYTES = 65533, SEGMENT_COST = 64 };

static const char mpo_tag[] = "MPF";
/* Bytes before the data of a piece of an ICC profile, with its number and the number of pieces; max
 * number of them. */
enum { ICC_HEAD = sizeof "ICC_PROFILE" + 2, ICC_PIECES = 255 };

/* ---- errors ---------------------------------------------------------------------------------- */

/* Errors of libjpeg: its first member is the manager that libjpeg uses. */
typedef struct jpeg_errors {
    struct jpeg_error_mgr manager;
    jmp_buf jump;
    const char *name; /* of the file */
    bool at_end;      /* the file has ended */
    gf_error cause;   /* set before each jump */
} jpeg_errors;

static _Noreturn void jpeg_jump(j_common_ptr jpeg) {
    longjmp(((jpeg_errors *)jpeg->err)->jump, 1);
}

static void jpeg_on_error(j_common_ptr jpeg) {
    jpeg_errors *errors = (jpeg_errors *)jpeg->err;
    gf_error *cause = &errors->cause;
    const char *name = errors->name;
    char text[JMSG_LENGTH_MAX];
    const int code = errors->manager.msg_code;
    errors->manager.format_message(jpeg, text);
    if (code == JERR_OUT_OF_MEMORY)
        gf_fail(cause, GF_FAILED, "%s: out of memory", name);
    else if (code == JERR_BAD_PRECISION)
        gf_fail(cause, GF_FAILED,
                "%s: JPEG with %d bits per sample is not supported; convert it to PNG or TIFF",
                name, errors->manager.msg_parm.i[0]);
    else if (code == JERR_SOF_UNSUPPORTED)
        gf_fail(cause, GF_FAILED,
                "%s: lossless and hierarchical JPEG are not supported; convert it to PNG or TIFF",
                name);
    else if (errors->at_end)
        gf_fail_short(name, cause);
    else
        gf_fail(cause, GF_FAILED, "%s: the JPEG is damaged (%s); get an intact copy", name, text);
    jpeg_jump(jpeg);
}

/* Fail for a warning, unless it leaves the pixels correct: bytes between segments (before a restart
 * marker, they are pixels), an unknown version or colour transform, irrelevant parameters of a
 * sequential scan, a missing end marker. */
static void jpeg_on_message(j_common_ptr jpeg, int level) {
    const int code = jpeg->err->msg_code, marker = jpeg->err->msg_parm.i[1];
    const bool between = code == JWRN_EXTRANEOUS_DATA && (marker & ~7) != JPEG_RST0;
    if (level < 0 && !between && code != JWRN_JFIF_MAJOR && code != JWRN_ADOBE_XFORM &&
        code != JWRN_NOT_SEQUENTIAL && code != JWRN_JPEG_EOF)
        jpeg_on_error(jpeg);
}

static struct jpeg_error_mgr *jpeg_errors_init(jpeg_errors *errors, const char *name) {
    jpeg_std_error(&errors->manager);
    errors->manager.error_exit = jpeg_on_error;
    errors->manager.emit_message = jpeg_on_message;
    errors->name = name;
    return &errors->manager;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Data from the header of an image. */
typedef struct jpeg_header {
    /* Data of all segments with Photoshop resources, joined; then the pieces of the ICC profile by
     * their numbers. They come in any order. */
    gf_chunk parts[1 + ICC_PIECES];
    unsigned pieces;         /* their number */
    bool damaged;            /* the pieces */
    bool done;               /* the pixels follow: segments are skipped */
    uint64_t metadata_bytes; /* of all segments, with their cost */
} jpeg_header;

typedef struct jpeg_source {
    gf_source base;
    gf_input input;
    gf_limits limits;
    struct jpeg_decompress_struct jpeg;
    struct jpeg_source_mgr reader;
    struct jpeg_progress_mgr progress;
    uint64_t start; /* CPU time of the thread when decoding began, in ns */
    jpeg_errors errors;
    jpeg_header header;
    uint64_t page_offset; /* of the image to read, unless it is the first */
    unsigned char segment[SEGMENT_BYTES];
    unsigned char buffer[BUFFER_BYTES];
} jpeg_source;

static void source_init(j_decompress_ptr jpeg) {
    (void)jpeg;
}

/* Read more bytes. A file that ends without its end marker receives one: if pixels are missing, the
 * decoder then warns, which is an error here. With arithmetic codes it does not: their last bytes
 * may be missing if they are 0. */
static boolean source_fill(j_decompress_ptr jpeg) {
    jpeg_source *source = jpeg->client_data;
    size_t got;
    if (gf_input_read(&source->input, source->buffer, BUFFER_BYTES, &got, &source->errors.cause))
        jpeg_jump((j_common_ptr)jpeg);
    if (got == 0) {
        /* The last of several scans may be missing. */
        if (!source->header.done || jpeg_has_multiple_scans(jpeg) || jpeg->arith_code ||
            source->errors.at_end) {
            gf_fail_short(source->input.name, &source->errors.cause);
            jpeg_jump((j_common_ptr)jpeg);
        }
        source->errors.at_end = true;
        memcpy(source->buffer, (const unsigned char[2]){0xff, JPEG_EOI}, 2);
        got = 2;
    }
    source->reader.next_input_byte = source->buffer;
    source->reader.bytes_in_buffer = got;
    return TRUE;
}

/* Copy the next bytes of the file, or skip them if `to` is NULL. */
static void source_copy(j_decompress_ptr jpeg, unsigned char *to, size_t size) {
    struct jpeg_source_mgr *reader = jpeg->src;
    while (size) {
        if (reader->bytes_in_buffer == 0)
            (void)source_fill(jpeg);
        const size_t part = reader->bytes_in_buffer < size ? reader->bytes_in_buffer : size;
        if (to) {
            memcpy(to, reader->next_input_byte, part);
            to += part;
        }
        reader->next_input_byte += part;
        reader->bytes_in_buffer -= part;
        size -= part;
    }
}

static void source_skip(j_decompress_ptr jpeg, long size) {
    source_copy(jpeg, NULL, size > 0 ? (size_t)size : 0);
}

/* Limit the CPU time of reading several scans. A file with one scan needs time in proportion to its
 * pixels, which are limited. */
static void source_on_progress(j_common_ptr jpeg) {
    jpeg_source *source = jpeg->client_data;
    if ((gf_thread_ns() - source->start) / 1000000000 > source->limits.max_seconds) {
        gf_fail(&source->errors.cause, GF_FAILED,
                "%s: decoding exceeds the limit of %" PRIu32
                " seconds; raise it with --max-seconds",
                source->input.name, source->limits.max_seconds);
        jpeg_jump(jpeg);
    }
}

/* ---- segments with metadata ------------------------------------------------------------------ */

static bool segment_has_tag(const jpeg_source *source, size_t size, const char *tag, size_t bytes) {
    return size >= bytes && memcmp(source->segment, tag, bytes) == 0;
}

static void part_join(jpeg_source *source, gf_chunk *part, const void *data, size_t size) {
    unsigned char *joined = realloc(part->data, part->size + size + 1);
    if (!joined) {
        source->base.metadata.missing = part->size + size;
        return;
    }
    memcpy(joined + part->size, data, size);
    part->data = joined;
    part->size += size;
}

static void segment_keep_piece(jpeg_source *source, size_t size) {
    jpeg_header *header = &source->header;
    const unsigned number = size >= ICC_HEAD ? source->segment[ICC_HEAD - 2] : 0,
                   count = size >= ICC_HEAD ? source->segment[ICC_HEAD - 1] : 0;
    header->damaged |= number == 0 || number > count || header->parts[number].data ||
                       (header->pieces && count != header->pieces);
    header->pieces = count;
    if (!header->damaged)
        part_join(source, &header->parts[number], source->segment + ICC_HEAD, size - ICC_HEAD);
}

/* Read the index of an MPO, a JPEG file that is followed by others, from the segment at this offset
 * in the file. Offsets in the index are relative to it. Previews of the first image are not pages.
 */
static void segment_read_index(jpeg_source *source, size_t size, uint64_t at) {
    enum { PREVIEWS = 1, HEAD = sizeof mpo_tag };
    const gf_chunk index = {.data = source->segment + HEAD, .size = size - HEAD};
    uint32_t kind, offset;
    for (uint32_t i = 0; gf_exif_image(&index, i, &kind, &offset); i++) {
        if (i && (kind >> 16 & 255) == PREVIEWS)
            continue;
        source->base.pages++;
        if (i && source->base.pages == source->limits.page)
            source->page_offset = at + HEAD + offset;
    }
}

/* Keep the data of a segment in source->segment, or record that it is not copied. `at` is its
 * offset in the file. */
static void segment_keep(jpeg_source *source, int marker, size_t size, uint64_t at) {
    gf_metadata *metadata = &source->base.metadata;
    for (const gf_item_kind *kind = gf_item_kinds; kind < gf_item_kinds + GF_ITEM_KINDS; kind++) {
        const size_t head = kind->head_bytes;
        const unsigned char *data = source->segment + head;
        if (marker != kind->marker || !segment_has_tag(source, size, kind->head, head))
            continue;
        if (kind->dropped == GF_DROPPED_ICC)
            segment_keep_piece(source, size);
        else if (kind->dropped == GF_DROPPED_IPTC)
            part_join(source, &source->header.parts[0], data, size - head);
        else if (head && gf_metadata_find(metadata, kind->name))
            continue; /* only the first segment of a kind is an item */
        else
            gf_metadata_add(metadata, kind->name, false, data, size - head);
        return;
    }
    if (!segment_has_tag(source, size, "Ducky", 5)) { /* the encoder's quality */
        source->base.dropped |= GF_DROPPED_OTHER;
        if (segment_has_tag(source, size, mpo_tag, sizeof mpo_tag) && !source->base.pages)
            segment_read_index(source, size, at);
    }
}

static boolean segment_on_marker(j_decompress_ptr jpeg) {
    jpeg_source *source = jpeg->client_data;
    const int marker = jpeg->unread_marker;
    unsigned char head[2];
    source_copy(jpeg, head, sizeof head);
    const uint64_t at = source->input.offset - source->reader.bytes_in_buffer;
    const size_t bytes = gf_big16(head), size = bytes < 2 ? 0 : bytes - 2;
    source->header.metadata_bytes += size + SEGMENT_COST;
    if (source->header.metadata_bytes > source->limits.max_chunk && !source->header.done) {
        gf_fail(&source->errors.cause, GF_FAILED,
                "%s: the metadata is over the limit of %" PRIu64
                " bytes; raise it with --max-chunk",
                source->input.name, source->limits.max_chunk);
        jpeg_jump((j_common_ptr)jpeg);
    }
    source_copy(jpeg, source->header.done ? NULL : source->segment, size);
    if (!source->header.done)
        segment_keep(source, marker, size, at);
    jpeg->unread_marker = 0;
    return TRUE;
}

/* Append the Photoshop resources, the ICC profile, and the resolution of the JFIF header, or else
 * that of the EXIF data. */
static gf_status source_add_parts(jpeg_source *source, gf_error *error) {
    const struct jpeg_decompress_struct *jpeg = &source->jpeg;
    gf_metadata *metadata = &source->base.metadata;
    gf_chunk *parts = source->header.parts;
    bool damaged = source->header.damaged;
    for (unsigned i = 1; i <= source->header.pieces && !damaged; i++) {
        damaged = !parts[i].data;
        if (i > 1 && !damaged)
            part_join(source, &parts[1], parts[i].data, parts[i].size);
    }
    if (damaged)
        memcpy(metadata->damaged, GF_ITEM_ICC, sizeof metadata->damaged);
    else if (parts[1].size)
        gf_metadata_add(metadata, GF_ITEM_ICC, false, parts[1].data, parts[1].size);
    if (parts[0].size)
        gf_metadata_add(metadata, GF_ITEM_8BIM, false, parts[0].data, parts[0].size);
    gf_resolution r = {jpeg->X_density, jpeg->Y_density,
                       jpeg->density_unit == 1   ? GF_PER_INCH
                       : jpeg->density_unit == 2 ? GF_PER_CM
                                                 : GF_PER_NONE};
    const bool stored = jpeg->saw_JFIF_marker && r.x > 0 && r.y > 0 &&
                        (r.unit != GF_PER_NONE || jpeg->X_density != jpeg->Y_density);
    if (stored || gf_metadata_resolution(metadata, &r))
        gf_metadata_add(metadata, GF_ITEM_RESOLUTION, false, &r, sizeof r);
    return gf_metadata_check(metadata, source->input.name, error);
}

/* ---- the source ------------------------------------------------------------------------------ */

static gf_status source_read_header(jpeg_source *source, gf_error *error) {
    struct jpeg_decompress_struct *jpeg = &source->jpeg;
    if (setjmp(source->errors.jump) != 0)
        return gf_return_error(&source->errors.cause, error);
    jpeg_create_decompress(jpeg);
    jpeg->client_data = source;
    source->reader.init_source = source->reader.term_source = source_init;
    source->reader.fill_input_buffer = source_fill;
    source->reader.skip_input_data = source_skip;
    source->reader.resync_to_restart = jpeg_resync_to_restart;
    jpeg->src = &source->reader;
    /* libjpeg reads APP0 (JFIF) and APP14 (Adobe) itself. */
    jpeg_set_marker_processor(jpeg, JPEG_COM, segment_on_marker);
    for (int i = 1; i < 16; i++)
        if (i != 14)
            jpeg_set_marker_processor(jpeg, JPEG_APP0 + i, segment_on_marker);
    (void)jpeg_read_header(jpeg, TRUE);
    source->header.done = true;
    return GF_OK;
}

static gf_status source_start(jpeg_source *source, gf_error *error) {
    struct jpeg_decompress_struct *jpeg = &source->jpeg;
    if (setjmp(source->errors.jump) != 0)
        return gf_return_error(&source->errors.cause, error);
    if (jpeg_has_multiple_scans(jpeg)) {
        source->start = gf_thread_ns();
        source->progress.progress_monitor = source_on_progress;
        jpeg->progress = &source->progress;
    }
    (void)jpeg_start_decompress(jpeg);
    /* All scans have been read. Between the following calls this thread may do other work. */
    jpeg->progress = NULL;
    /* Each component must have had a scan, and with it its quantization table: libjpeg decodes one
     * without as 0, and warns only about missing data within a scan. */
    for (int c = 0; c < jpeg->num_components; c++)
        if (!jpeg->comp_info[c].quant_table)
            return gf_fail(error, GF_FAILED,
                           "%s: the JPEG is damaged (component %d has no scan); get an intact copy",
                           source->input.name, c + 1);
    return GF_OK;
}

static gf_status source_read(gf_source *base, void *dst, size_t stride, uint64_t rows,
                             gf_error *error) {
    jpeg_source *source = (jpeg_source *)base;
    struct jpeg_decompress_struct *jpeg = &source->jpeg;
    unsigned char *to = dst;
    if (setjmp(source->errors.jump) != 0)
        return gf_return_error(&source->errors.cause, error);
    for (uint64_t y = 0; y < rows;) {
        JSAMPROW lines[CALL_ROWS];
        const uint64_t max = rows - y < CALL_ROWS ? rows - y : CALL_ROWS;
        for (uint64_t i = 0; i < max; i++)
            lines[i] = to + (y + i) * stride;
        y += jpeg_read_scanlines(jpeg, lines, (JDIMENSION)max);
    }
    return GF_OK;
}

static gf_status source_finish(gf_source *base, gf_error *error) {
    jpeg_source *source = (jpeg_source *)base;
    if (setjmp(source->errors.jump) != 0)
        return gf_return_error(&source->errors.cause, error);
    (void)jpeg_finish_decompress(&source->jpeg);
    base->bytes = source->input.offset - source->reader.bytes_in_buffer;
    return GF_OK;
}

/* Free what has been read from the header. */
static void source_clear(jpeg_source *source) {
    jpeg_destroy_decompress(&source->jpeg);
    for (size_t i = 0; i <= ICC_PIECES; i++)
        free(source->header.parts[i].data);
    source->header = (jpeg_header){0};
    gf_metadata_clear(&source->base.metadata);
}

static void source_close(gf_source *base) {
    jpeg_source *source = (jpeg_source *)base;
    source_clear(source);
    gf_input_close(&source->input);
    free(source);
}

/* Skip to another image of an MPO, and read its header. */
static gf_status source_open_page(jpeg_source *source, gf_error *error) {
    const uint64_t at = source->input.offset - source->reader.bytes_in_buffer;
    if (source->page_offset < at)
        return gf_fail_page(source->input.name, source->limits.page, source->base.pages, error);
    if (setjmp(source->errors.jump) != 0)
        return gf_return_error(&source->errors.cause, error);
    source->header.done = false;
    source_copy(&source->jpeg, NULL, (size_t)(source->page_offset - at));
    source_clear(source);
    source->base.dropped = 0;
    return source_read_header(source, error);
}

/* Let the decoder scale its blocks, as far as the caller allows. */
static void source_scale(jpeg_source *source) {
    gf_source *base = &source->base;
    const gf_limits *limits = &source->limits;
    gf_format *format = &base->format, upright = *format;
    if (limits->autorotate && gf_metadata_orientation(&base->metadata) >= 5) {
        upright.width = format->height;
        upright.height = format->width;
    }
    const uint32_t eighths =
        limits->eighths && !limits->crop ? limits->eighths(limits->chain, &upright) : 8;
    if (eighths == 8)
        return;
    base->scaled = (gf_scaled){upright.width, upright.height, eighths};
    source->jpeg.scale_num = eighths;
    source->jpeg.scale_denom = 8;
    format->width = (format->width * eighths + 7) / 8;
    format->height = (format->height * eighths + 7) / 8;
    gf_note(&base->metadata.remarks, "--fast: %ux%u pixels decoded at a scale of %" PRIu32 "/8",
            source->jpeg.image_width, source->jpeg.image_height, eighths);
}

/* Set the format, and check the colour space and the memory. */
static gf_status source_set_format(jpeg_source *source, gf_error *error) {
    struct jpeg_decompress_struct *jpeg = &source->jpeg;
    uint64_t bytes = 0;
    gf_format *format = &source->base.format;
    const char *name = source->input.name;
    if (jpeg->num_components == 4)
        return gf_fail(error, GF_FAILED,
                       "%s: CMYK JPEG is not supported, because its colours depend on a profile; "
                       "convert it to RGB, e.g. with vips icc_transform in.jpg out.jpg srgb",
                       name);
    if (jpeg->num_components != 1 && jpeg->num_components != 3)
        return gf_fail(error, GF_FAILED,
                       "%s: JPEG with %d components is not supported; convert it to PNG", name,
                       jpeg->num_components);
    *format = (gf_format){.width = jpeg->image_width,
                          .height = jpeg->image_height,
                          .channels = (uint32_t)jpeg->num_components,
                          .type = GF_U8};
    for (int i = 0; i < jpeg->num_components; i++)
        bytes += (uint64_t)jpeg->comp_info[i].width_in_blocks *
                 jpeg->comp_info[i].height_in_blocks * sizeof(JBLOCK);
    const gf_status status = gf_check_pixels(format, &source->limits, name, error);
    if (!status)
        source_scale(source);
    /* The coefficients of a file with several scans are held together. */
    return status || !jpeg_has_multiple_scans(jpeg)
               ? status
               : gf_check_memory(bytes, source->limits.max_memory, name,
                                 "the coefficients of a progressive JPEG", error);
}

static gf_status jpeg_source_open(const gf_input *input, const gf_limits *limits,
                                  gf_source **opened, gf_error *error) {
    static const gf_source_ops ops = {
        .read = source_read, .finish = source_finish, .close = source_close};
    jpeg_source *source = gf_source_new(sizeof *source, &ops, input->name, error);
    if (!source)
        return GF_FAILED;
    source->input = *input;
    source->limits = *limits;
    struct jpeg_decompress_struct *jpeg = &source->jpeg;
    jpeg->err = jpeg_errors_init(&source->errors, input->name);
    gf_status status = source_read_header(source, error);
    if (!status && source->base.pages && source->limits.page > 1)
        status = source_open_page(source, error);
    if (status || (status = source_set_format(source, error)) ||
        (status = source_add_parts(source, error)) || (status = source_start(source, error))) {
        source->input = (gf_input){0}; /* still owned by the caller */
        source_close(&source->base);
        return status;
    }
    const jpeg_component_info *luma = jpeg->comp_info, *chroma = luma + 1;
    char sampling[32] = "", pages[40] = "";
    if (source->base.pages > 1)
        snprintf(pages, sizeof pages, ", image %" PRIu32 " of %" PRIu32,
                 limits->page ? limits->page : 1, source->base.pages);
    if (jpeg->num_components == 3 && chroma->h_samp_factor > 0)
        snprintf(sampling, sizeof sampling, ", chroma 1/%dx1/%d",
                 luma->h_samp_factor / chroma->h_samp_factor,
                 luma->v_samp_factor / chroma->v_samp_factor);
    snprintf(source->base.stored, sizeof source->base.stored, "8-bit %s%s%s, lossy%s",
             jpeg->num_components == 1             ? "grey"
             : jpeg->jpeg_color_space == JCS_YCbCr ? "YCbCr"
                                                   : "RGB",
             sampling, jpeg->progressive_mode ? ", progressive" : "", pages);
    *opened = &source->base;
    return GF_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct jpeg_sink {
    gf_sink base;
    gf_format format;
    struct jpeg_compress_struct jpeg;
    struct jpeg_destination_mgr writer;
    jpeg_errors errors;
    unsigned char buffer[BUFFER_BYTES];
} jpeg_sink;

static void sink_init(j_compress_ptr jpeg) {
    jpeg_sink *sink = jpeg->client_data;
    sink->writer.next_output_byte = sink->buffer;
    sink->writer.free_in_buffer = BUFFER_BYTES;
}

static void sink_term(j_compress_ptr jpeg) {
    jpeg_sink *sink = jpeg->client_data;
    const size_t size = BUFFER_BYTES - sink->writer.free_in_buffer;
    if (gf_output_write(sink->base.output, sink->buffer, size, &sink->errors.cause))
        jpeg_jump((j_common_ptr)jpeg);
    sink_init(jpeg);
}

/* Write the whole buffer. libjpeg has not counted its last bytes. */
static boolean sink_empty(j_compress_ptr jpeg) {
    jpeg->dest->free_in_buffer = 0;
    sink_term(jpeg);
    return TRUE;
}

/* Write an item but the resolution, which libjpeg writes. Resources continue in the next segment;
 * other items that are too large are dropped. */
static void sink_write_item(jpeg_sink *sink, const gf_chunk *item) {
    const gf_item_kind *kind = gf_item_kind_of(item);
    const bool joined = kind->dropped == GF_DROPPED_IPTC, icc = kind->dropped == GF_DROPPED_ICC;
    const size_t max = SEGMENT_BYTES - kind->head_bytes;
    if (icc && item->size <= (size_t)ICC_PIECES * (SEGMENT_BYTES - ICC_HEAD)) {
        if (item->size)
            jpeg_write_icc_profile(&sink->jpeg, item->data, (unsigned)item->size);
    } else if (!joined && item->size > max) { /* libjpeg does not check the number of pieces */
        sink->base.dropped |= kind->dropped;
        if (kind->dropped == GF_DROPPED_EXIF && gf_exif_orientation(item) > 1)
            sink->base.dropped |= GF_DROPPED_ORIENTATION;
    } else if (kind->marker && kind->dropped != GF_DROPPED_RESOLUTION) {
        for (size_t at = 0; at < item->size || (at == 0 && !joined); at += max) {
            const size_t size = item->size - at < max ? item->size - at : max;
            jpeg_write_m_header(&sink->jpeg, kind->marker, (unsigned)(kind->head_bytes + size));
            for (size_t i = 0; i < kind->head_bytes; i++)
                jpeg_write_m_byte(&sink->jpeg, (unsigned char)kind->head[i]);
            for (size_t i = 0; i < size; i++)
                jpeg_write_m_byte(&sink->jpeg, item->data[at + i]);
        }
    }
}

/* Round a resolution to 1..65535. */
static UINT16 sink_density(double value) {
    return value >= UINT16_MAX ? UINT16_MAX : value >= 1 ? (UINT16)lround(value) : 1;
}

/* Return the larger relative error of the rounded numbers. */
static double density_error(const gf_resolution *r) {
    return fmax(fabs(sink_density(r->x) / r->x - 1), fabs(sink_density(r->y) / r->y - 1));
}

static gf_status sink_start(jpeg_sink *sink, const gf_metadata *items, int quality,
                            gf_error *error) {
    struct jpeg_compress_struct *jpeg = &sink->jpeg;
    gf_resolution r;
    if (setjmp(sink->errors.jump) != 0)
        return gf_return_error(&sink->errors.cause, error);
    jpeg_create_compress(jpeg);
    jpeg->client_data = sink;
    sink->writer = (struct jpeg_destination_mgr){.init_destination = sink_init,
                                                 .empty_output_buffer = sink_empty,
                                                 .term_destination = sink_term};
    jpeg->dest = &sink->writer;
    jpeg->image_width = (JDIMENSION)sink->format.width;
    jpeg->image_height = (JDIMENSION)sink->format.height;
    jpeg->input_components = (int)sink->format.channels;
    jpeg->in_color_space = sink->format.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(jpeg);
    jpeg_set_quality(jpeg, quality, TRUE);
    for (int i = 0; i < jpeg->num_components; i++) /* 4:4:4 */
        jpeg->comp_info[i].h_samp_factor = jpeg->comp_info[i].v_samp_factor = 1;
    if (gf_metadata_resolution(items, &r)) {
        /* Store it in the unit in which rounding changes it less. */
        const bool metric = r.unit == GF_PER_CM;
        const double factor = metric ? 2.54 : 1 / 2.54;
        const gf_resolution other = {r.x * factor, r.y * factor, metric ? GF_PER_INCH : GF_PER_CM};
        if (r.unit != GF_PER_NONE && density_error(&other) < density_error(&r))
            r = other;
        jpeg->density_unit = (UINT8)(r.unit - GF_PER_NONE); /* 0: none, 1: inch, 2: centimetre */
        jpeg->X_density = sink_density(r.x);
        jpeg->Y_density = sink_density(r.y);
    }
    jpeg_start_compress(jpeg, TRUE);
    for (size_t i = 0; i < items->count; i++)
        sink_write_item(sink, &items->chunks[i]);
    return GF_OK;
}

static gf_status sink_write(gf_sink *base, const void *src, size_t stride, uint64_t rows,
                            gf_error *error) {
    jpeg_sink *sink = (jpeg_sink *)base;
    const gf_png_simd *simd = gf_png_simd_of(gf_isa_best());
    const unsigned char *from = src;
    if (setjmp(sink->errors.jump) != 0)
        return gf_return_error(&sink->errors.cause, error);
    for (uint64_t y = 0; y < rows; y++) {
        JSAMPROW line = (JSAMPROW)(from + y * stride); /* only read */
        base->clipped += simd->count_largest(&sink->format, line);
        (void)jpeg_write_scanlines(&sink->jpeg, &line, 1);
    }
    return GF_OK;
}

static gf_status sink_finish(gf_sink *base, const gf_metadata *metadata, gf_error *error) {
    jpeg_sink *sink = (jpeg_sink *)base;
    (void)metadata; /* late items are not stored */
    if (setjmp(sink->errors.jump) != 0)
        return gf_return_error(&sink->errors.cause, error);
    jpeg_finish_compress(&sink->jpeg);
    return gf_output_prepare(base->output, error);
}

static void sink_close(gf_sink *base) {
    jpeg_sink *sink = (jpeg_sink *)base;
    jpeg_destroy_compress(&sink->jpeg);
    gf_output_close(base->output);
    free(sink);
}

static gf_status jpeg_sink_open(const gf_sink_setup *setup, gf_sink **opened, gf_error *error) {
    static const gf_sink_ops ops = {sink_write, sink_finish, sink_close};
    const char *name = gf_output_name(setup->output);
    gf_metadata items = {0};
    jpeg_sink *sink = gf_sink_new(sizeof *sink, &ops, setup->output, error);
    if (!sink)
        return GF_FAILED;
    *opened = &sink->base;
    sink->base.counts_clipped = true;
    sink->format = *setup->format;
    sink->jpeg.err = jpeg_errors_init(&sink->errors, name);
    gf_status status = gf_metadata_to_items(setup->metadata, &items, name, error);
    if (!status)
        status = sink_start(sink, &items, (int)setup->quality, error);
    gf_metadata_clear(&items);
    return status;
}

const gf_codec gf_jpeg_codec = {
    .label = "JPEG",
    .extensions = {"jpg", "jpeg"},
    .notes = "Grey or RGB, 8 bits; baseline and progressive; lossy.",
    .magics = {"\xff\xd8\xff"},
    .open_source = jpeg_source_open,
    .decode_cost = 1.2,
    .open_sink = jpeg_sink_open,
    .types = GF_STORES_U8,
    .channels = GF_STORES_GREY | GF_STORES_RGB,
    .max_columns = JPEG_MAX_DIMENSION,
    .form = GF_FORM_JPEG,
    .option = GF_OPTION_QUALITY,
    .encode_cost = {2.0},
};
