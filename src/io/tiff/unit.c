/* Decoder of strips and tiles. Deflate is decoded here, two units at a time: faster than libtiff,
 * which also accepts damaged data that is too long without its checksum. libtiff decodes other
 * compressions. */
#include "io/tiff/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/checksum.h"
#include "core/error.h"
#include "core/machine.h"
#include "io/bytes.h"
#include "io/strip/row_filter.h"

enum {
    RAW_RATIO = 10,    /* max compressed bytes of a unit, per decoded byte */
    RAW_MARGIN = 4096, /* and in addition, as in libtiff */
    /* Zeros after the data, as part of the input: in its last bytes the decoder is slow. */
    RAW_PADDING = GF_INFLATE_LOOKAHEAD + sizeof(uint64_t),
    MAX_EXCESS = 1 << 16, /* max bytes after the rows of the image in Deflate data */
    ZLIB_HEAD = 2,
    ZLIB_TAIL = 4
};

/* Return the bytes of a decoded unit, or of a piece if it is not compressed. */
static uint64_t unit_bytes(const gf_tiff_layout *layout) {
    return layout->piece_rows * layout->unit_row_bytes;
}

static gf_status unit_fail(const gf_tiff_unit *unit, const char *what, gf_error *error) {
    return gf_fail(error, GF_FAILED,
                   "%s: rows %" PRIu64 " to %" PRIu64 " are damaged (%s); get an intact copy",
                   unit->worker->file->input.name, unit->first + 1, unit->first + unit->rows, what);
}

/* ---- placement ------------------------------------------------------------------------------- */

/* Unpack samples of 9 to 15 bits, the first one in the high bits, as u16, and invert every
 * `inverted`-th one; 0: none. Scale them to 0..65535 if the layout says so, rounded to nearest:
 * there are no ties, because the divisor is odd. */
static void unpack_words(unsigned char *out, const unsigned char *in, uint64_t count,
                         const gf_tiff_layout *layout, uint32_t inverted) {
    const uint32_t bits = layout->bits, top = (1u << bits) - 1;
    uint32_t window = 0, used = 0;
    for (uint64_t i = 0; i < count; i++, used -= bits) {
        for (; used < bits; used += 8)
            window = window << 8 | *in++;
        const uint32_t stored = window >> (used - bits) & top;
        const uint32_t v = inverted && i % inverted == 0 ? top - stored : stored;
        const uint16_t sample = (uint16_t)(layout->scaled ? (v * 65535 + top / 2) / top : v);
        memcpy(out + 2 * i, &sample, sizeof sample);
    }
}

GF_INLINE void place_plane(unsigned char *row, const unsigned char *samples, uint64_t count,
                           size_t pixel, size_t sample) {
    for (uint64_t i = 0; i < count; i++)
        memcpy(row + i * pixel, samples + i * sample, sample);
}

/* Place the pixels of a row of a unit in the row of the image. samples may be the place. */
static void place_row(const gf_tiff_unit *unit, unsigned char *row, const unsigned char *samples) {
    const gf_tiff_layout *layout = unit->worker->layout;
    const gf_format *format = unit->worker->format;
    const size_t sample = layout->bytes, pixel = format->channels * gf_type_bytes(format->type);
    const uint64_t pixels = unit->width;
    const bool packed = layout->bits > 8 && layout->bits < 16, wide = format->type == GF_U16;
    const bool inverted = layout->inverted && unit->plane == 0;
    unsigned char *unpacked = unit->worker->row, *to = row + unit->plane * sample;
    if (layout->bits < 8) {
        const uint32_t bits = layout->bits, mask = (1u << bits) - 1;
        const uint32_t factor = layout->palette ? 1 : 255 / mask;
        for (uint64_t i = 0; i < pixels; i++) {
            const uint64_t bit = i * bits;
            unpacked[i] =
                (unsigned char)((samples[bit / 8] >> (8 - bits - bit % 8) & mask) * factor);
        }
    } else if (packed) {
        unpack_words(unpacked, samples, pixels * layout->step, layout, inverted ? layout->step : 0);
    }
    if (layout->bits < 8 || packed)
        samples = unpacked;
    if (layout->palette) {
        for (uint64_t i = 0; i < pixels; i++)
            memcpy(row + i * pixel, layout->colors[samples[i]], pixel);
        return;
    }
    if (layout->planes == 1) {
        if (samples != row)
            memcpy(row, samples, (size_t)(pixels * pixel));
    } else if (sample <= 2) {
        sample == 1 ? place_plane(to, samples, pixels, pixel, 1)
                    : place_plane(to, samples, pixels, pixel, 2);
    } else {
        sample == 4 ? place_plane(to, samples, pixels, pixel, 4)
                    : place_plane(to, samples, pixels, pixel, 8);
    }
    /* Replace the first sample of each pixel by its distance from white. */
    for (uint64_t i = 0; i < pixels && inverted && !packed; i++, row += pixel) {
        row[0] = (unsigned char)~row[0];
        if (wide)
            row[1] = (unsigned char)~row[1];
    }
}

/* ---- predictors ------------------------------------------------------------------------------ */

/* Add to each of n samples of 2 or 4 bytes the one of the pixel before, and convert it to native
 * byte order. */
GF_INLINE void sum_samples(unsigned char *to, const unsigned char *from, uint64_t n, uint32_t step,
                           uint32_t bytes, bool little) {
    uint32_t sums[GF_MAX_CHANNELS] = {0};
    for (uint64_t i = 0; i < n; i += step) {
        for (uint32_t k = 0; k < step; k++, from += bytes, to += bytes) {
            const uint32_t v = bytes == 2 ? gf_little16(from) : gf_little32(from);
            sums[k] += little ? v : __builtin_bswap32(v) >> (32 - 8 * bytes);
            const uint16_t sum = (uint16_t)sums[k];
            memcpy(to, bytes == 2 ? (const void *)&sum : &sums[k], bytes);
        }
    }
}

static void sum16(unsigned char *to, const unsigned char *from, uint64_t n, uint32_t step,
                  bool little) {
    if (step == 3)
        little ? sum_samples(to, from, n, 3, 2, true) : sum_samples(to, from, n, 3, 2, false);
    else if (step == 1)
        little ? sum_samples(to, from, n, 1, 2, true) : sum_samples(to, from, n, 1, 2, false);
    else
        sum_samples(to, from, n, step, 2, little);
}

/* Restore n samples from their bytes: the highest ones of all samples come first. */
static void join_bytes(unsigned char *restrict to, const unsigned char *restrict bytes,
                       uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)bytes[i] << 24 | (uint32_t)bytes[n + i] << 16 |
                              (uint32_t)bytes[2 * n + i] << 8 | bytes[3 * n + i];
        memcpy(to + 4 * i, &bits, 4);
    }
}

/* Undo the predictor of an inflated row of a unit, and convert it to native byte order. Return the
 * samples: at `row` if they can be written there, otherwise where they are or in worker->row. */
static const unsigned char *restore_row(const gf_tiff_unit *unit, unsigned char *row,
                                        const unsigned char *stored) {
    const gf_tiff_layout *layout = unit->worker->layout;
    const bool whole = layout->bits % 8 == 0;
    const bool swapped = whole && layout->bits > 8 && layout->little != gf_host_is_little();
    const bool placed = layout->planes == 1 && whole && !layout->palette;
    /* The bytes of floats are those of a whole row of the unit. */
    const bool floats = layout->predictor == PREDICTOR_FLOATINGPOINT;
    const uint64_t pixels = floats ? layout->unit_width : unit->width, n = pixels * layout->step;
    const gf_png_simd *simd = unit->worker->simd;
    unsigned char *spare = unit->worker->row, *to = placed && pixels == unit->width ? row : spare;
    if (layout->predictor == PREDICTOR_NONE && !swapped)
        return stored;
    if (layout->predictor == PREDICTOR_NONE) {
        gf_copy_order(to, stored, n, layout->bytes, layout->little);
    } else if (floats) {
        spare += layout->unit_row_bytes;
        simd->unfilter(spare, stored, stored, 0, 4 * n, layout->step, GF_PNG_SUB);
        join_bytes(to, spare, n);
    } else if (layout->bits == 8) {
        simd->unfilter(to, stored, stored, 0, n, layout->step, GF_PNG_SUB);
    } else if (layout->bits == 16) {
        sum16(to, stored, n, layout->step, layout->little);
    } else {
        sum_samples(to, stored, n, layout->step, 4, layout->little);
    }
    return to;
}

/* ---- reading --------------------------------------------------------------------------------- */

static gf_status unit_read(const gf_tiff_unit *unit, void *data, uint64_t size, uint64_t offset,
                           gf_error *error) {
    const uint64_t end = unit->worker->file->size;
    if (offset > end || size > end - offset)
        return unit_fail(unit, "the file ends too early", error);
    return gf_tiff_read_at(unit->worker->file, data, (size_t)size, offset, error);
}

/* Return true for a unit that is not stored: its samples are 0. GDAL writes such sparse files. */
static bool unit_is_sparse(const gf_tiff_unit *unit) {
    return unit->offset == 0 && unit->bytes == 0;
}

static gf_status unit_read_raw(gf_tiff_unit *unit, gf_error *error) {
    const gf_tiff_file *file = unit->worker->file;
    const gf_tiff_layout *layout = unit->worker->layout;
    const uint64_t max = RAW_RATIO * layout->unit_rows * layout->unit_row_bytes + RAW_MARGIN;
    const uint64_t size = unit->bytes < max ? unit->bytes : max;
    if (unit->offset == 0 || unit->bytes == 0)
        return unit_fail(unit, "a strip or tile without data", error);
    if (!unit->raw || size > unit->raw_bytes) {
        free(unit->raw);
        unit->raw_bytes = size;
        unit->raw = gf_alloc_limited(size + RAW_PADDING, file->max_memory, file->input.name,
                                     "a compressed strip or tile", error);
        if (!unit->raw)
            return GF_FAILED;
    }
    unit->raw_size = size;
    memset(unit->raw + size, 0, RAW_PADDING);
    return unit_read(unit, unit->raw, size, unit->offset, error);
}

/* Read the rows of an uncompressed unit and convert them to native byte order. */
static gf_status unit_copy(const gf_tiff_unit *unit, unsigned char *to, gf_error *error) {
    const gf_tiff_layout *layout = unit->worker->layout;
    const uint64_t start = unit->skipped * layout->unit_row_bytes;
    const uint64_t bytes = unit->rows * layout->unit_row_bytes;
    const char *damage = unit->offset == 0 || unit->bytes == 0 ? "a strip or tile without data"
                         : unit->bytes < start || unit->bytes - start < bytes ? "too few bytes"
                         : unit->offset > UINT64_MAX - start                  ? "invalid offset"
                                                                              : NULL;
    const gf_status status = damage ? unit_fail(unit, damage, error)
                                    : unit_read(unit, to, bytes, unit->offset + start, error);
    if (status)
        return status;
    if (layout->reversed)
        gf_libtiff.TIFFReverseBits(to, (tmsize_t)bytes);
    if (layout->bits % 8 == 0)
        gf_copy_order(to, to, bytes / layout->bytes, layout->bytes, layout->little);
    return GF_OK;
}

/* ---- libtiff --------------------------------------------------------------------------------- */

static bool unit_run_codec(const gf_tiff_unit *unit, unsigned char *to, uint64_t bytes) {
    memset(to, 0, (size_t)bytes); /* codecs accept data that ends early */
    return gf_libtiff.TIFFReadFromUserBuffer(unit->worker->handle.tiff, unit->number, unit->raw,
                                             (tmsize_t)unit->raw_size, to, (tmsize_t)bytes);
}

/* Function of libtiff that writes a row of CCITT data, and the number of its calls. */
typedef void fax_function(unsigned char *row, uint32_t *runs, uint32_t *end, uint32_t width);
static _Thread_local fax_function *fax_fill;
static _Thread_local uint64_t fax_rows;

static void fax_count_row(unsigned char *row, uint32_t *runs, uint32_t *end, uint32_t width) {
    fax_rows++;
    fax_fill(row, runs, end, width);
}

/* Decode CCITT data. Return the number of damaged rows; missing ones are blank. */
static uint64_t fax_decode(const gf_tiff_unit *unit, uint16_t compression) {
    const uint64_t rows = unit->rows, row_bytes = unit->worker->layout->unit_row_bytes;
    gf_tiff_handle *handle = &unit->worker->handle;
    TIFF *tiff = handle->tiff;
    uint32_t options = 0;
    gf_tiff_handle_clear(handle);
    /* Start the decoder again: it keeps the mode that it has found in the unit before, and the
     * rows, which a damaged unit can refer to. */
    (void)gf_libtiff.TIFFGetField(tiff, TIFFTAG_GROUP3OPTIONS, &options);
    (void)gf_libtiff.TIFFSetField(tiff, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
    (void)gf_libtiff.TIFFSetField(tiff, TIFFTAG_COMPRESSION, compression);
    if (options)
        (void)gf_libtiff.TIFFSetField(tiff, TIFFTAG_GROUP3OPTIONS, options);
    if (compression != unit->worker->layout->compression)
        (void)gf_libtiff.TIFFSetField(tiff, TIFFTAG_FAXMODE, FAXMODE_NORTC | FAXMODE_NOEOL);
    (void)gf_libtiff.TIFFGetField(tiff, TIFFTAG_FAXFILLFUNC, &fax_fill);
    (void)gf_libtiff.TIFFSetField(tiff, TIFFTAG_FAXFILLFUNC, fax_count_row);
    fax_rows = 0;
    /* When its data ends, libtiff writes the current row, and no other one. One row more than there
     * are is read, so that it is not one of the image. */
    (void)unit_run_codec(unit, unit->decoded, (rows + 1) * row_bytes);
    const uint64_t written = fax_rows <= handle->end_row ? fax_rows : handle->end_row + 1;
    const uint64_t found = written > rows ? rows : written ? written - 1 : 0;
    uint64_t repaired = handle->rows - (handle->rows && handle->last_row >= found);
    /* Group 4: each row refers to the one before, so that no row after a damaged one is certain. */
    if (compression == COMPRESSION_CCITTFAX4 && repaired)
        repaired = found - handle->first_row;
    memset(unit->decoded + found * row_bytes, 0, (size_t)((rows - found) * row_bytes));
    return repaired + rows - found;
}

/* Decompress a unit with libtiff. Some codecs cannot omit the rows of a tile that are not those of
 * the image. */
static gf_status unit_decompress(gf_tiff_unit *unit, unsigned char *to, gf_error *error) {
    const gf_tiff_layout *layout = unit->worker->layout;
    const bool whole = layout->tiled && layout->compression >= COMPRESSION_LERC;
    const uint64_t rows = whole ? layout->unit_rows : unit->rows;
    gf_tiff_handle *handle = &unit->worker->handle;
    const char *damage = NULL;
    uint32_t options = 0;
    char text[64];
    gf_status status = unit_read_raw(unit, error);
    if (!status && !handle->tiff)
        status = gf_tiff_handle_open(unit->worker->file, handle, error);
    if (status)
        return status;
    if (layout->fax) {
        /* Data of Group 3 with one dimension may lack the codes of ends of lines, which libtiff
         * before 4.7.1 requires: it is decoded as the same codes without them. */
        uint64_t damaged = fax_decode(unit, layout->compression);
        (void)gf_libtiff.TIFFGetField(handle->tiff, TIFFTAG_GROUP3OPTIONS, &options);
        if (!handle->without_memory && gf_tiff_is_lost(damaged, unit->rows) &&
            layout->compression == COMPRESSION_CCITTFAX3 && !(options & GROUP3OPT_2DENCODING))
            damaged = fax_decode(unit, COMPRESSION_CCITTRLE);
        unit->worker->damaged += damaged;
        snprintf(text, sizeof text, "%" PRIu64 " rows of the fax are not readable", damaged);
        damage = gf_tiff_is_lost(damaged, unit->rows) ? text : NULL;
    } else {
        gf_tiff_handle_clear(handle);
        /* libtiff also returns success for a codec that has failed with -1 and a message. */
        if (!unit_run_codec(unit, to, rows * layout->unit_row_bytes) || handle->message[0])
            damage = handle->message[0] ? handle->message : "libtiff cannot decode";
    }
    if (handle->without_memory && (damage || layout->fax))
        return gf_tiff_handle_fail(handle, error);
    return damage ? unit_fail(unit, damage, error) : GF_OK;
}

/* ---- Deflate --------------------------------------------------------------------------------- */

/* Check the end of the data. The checksum is also that of the rows of a tile that are not those of
 * the image. The last strip may contain rows after those of the image. */
static gf_status deflate_check(const gf_tiff_unit *unit, gf_inflate_result result,
                               const gf_inflate_out *out, gf_error *error) {
    static const char *const damages[] = {
        [GF_INFLATE_TRUNCATED] = "the Deflate data ends too early",
        [GF_INFLATE_INVALID] = "invalid block of Deflate data",
        [GF_INFLATE_INVALID_CODE] = "invalid code in Deflate data",
        [GF_INFLATE_INVALID_DISTANCE] = "invalid distance in Deflate data",
        [GF_INFLATE_NEEDS_INPUT] = "the Deflate data ends too early",
        [GF_INFLATE_NEEDS_OUTPUT] = "the Deflate data is too long",
    };
    const gf_tiff_layout *layout = unit->worker->layout;
    const uint64_t rows = layout->tiled ? layout->unit_rows : unit->rows;
    const size_t size = (size_t)(out->next - unit->decoded);
    const char *damage = damages[result];
    unsigned bit;
    const unsigned char *at = gf_inflate_position(unit->inflate, &bit);
    at += bit != 0;
    if (!damage && size < rows * layout->unit_row_bytes)
        damage = "too few bytes";
    else if (!damage && unit->raw + unit->raw_size - at < ZLIB_TAIL)
        damage = damages[GF_INFLATE_TRUNCATED];
    else if (!damage && gf_big32(at) != gf_adler32(1, unit->decoded, size))
        damage = "wrong checksum of the Deflate data";
    return damage ? unit_fail(unit, damage, error) : GF_OK;
}

/* Decode those units that are stored. */
static gf_status units_inflate(gf_tiff_worker *worker, uint32_t count, gf_error *error) {
    const uint64_t bytes = unit_bytes(worker->layout) + MAX_EXCESS;
    const gf_tiff_unit *units[2];
    gf_inflate *inflate[2];
    gf_inflate_out outs[2], *out[2] = {&outs[0], &outs[1]};
    gf_inflate_result results[2];
    uint32_t used = 0;
    gf_error later = {0}; /* reported unless a unit before fails, too */
    gf_status status = GF_OK;
    for (uint32_t i = 0; i < count && !later.status; i++) {
        gf_tiff_unit *unit = &worker->units[i];
        if (unit_is_sparse(unit) || unit_read_raw(unit, &later))
            continue;
        const unsigned char *raw = unit->raw, *end = raw + unit->raw_size;
        if (worker->layout->reversed)
            gf_libtiff.TIFFReverseBits(unit->raw, (tmsize_t)unit->raw_size);
        /* Method 8, a window of at most 32 KiB, no dictionary, and a multiple of 31. */
        if (unit->raw_size < ZLIB_HEAD || (raw[0] & 15) != 8 || raw[0] >> 4 > 7 ||
            (raw[1] & 32) != 0 || (raw[0] << 8 | raw[1]) % 31 != 0) {
            (void)unit_fail(unit, "invalid header of the Deflate data", &later);
            continue;
        }
        gf_inflate_start(unit->inflate, gf_isa_best());
        gf_inflate_set_input(unit->inflate, raw + ZLIB_HEAD, 0, end + GF_INFLATE_LOOKAHEAD, true);
        inflate[used] = unit->inflate;
        outs[used] = (gf_inflate_out){unit->decoded, unit->decoded + bytes, unit->decoded, false};
        units[used++] = unit;
    }
    if (used)
        gf_inflate_run_streams(used, inflate, out, results);
    for (uint32_t k = 0; k < used && !status; k++)
        status = deflate_check(units[k], results[k], &outs[k], error);
    return status ? status : gf_return_error(&later, error);
}

gf_status gf_tiff_units_decode(gf_tiff_worker *worker, uint32_t count, gf_error *error) {
    const gf_tiff_layout *layout = worker->layout;
    gf_status status = layout->inflates ? units_inflate(worker, count, error) : GF_OK;
    for (gf_tiff_unit *unit = worker->units; unit < worker->units + count && !status; unit++) {
        const bool sparse = unit_is_sparse(unit), inflated = layout->inflates && !sparse;
        unsigned char *decoded = layout->direct ? unit->to : unit->decoded;
        if (sparse)
            memset(decoded, 0, (size_t)(unit->rows * layout->unit_row_bytes));
        else if (layout->compression == COMPRESSION_NONE)
            status = unit_copy(unit, decoded, error);
        else if (!inflated)
            status = unit_decompress(unit, decoded, error);
        for (uint64_t y = 0; y < unit->rows && !status; y++) {
            unsigned char *row = unit->to + y * unit->stride;
            const unsigned char *stored = decoded + y * layout->unit_row_bytes;
            place_row(unit, row, inflated ? restore_row(unit, row, stored) : stored);
        }
    }
    return status;
}

/* ---- workers --------------------------------------------------------------------------------- */

uint64_t gf_tiff_worker_bytes(const gf_tiff_layout *layout) {
    const uint64_t more = layout->inflates ? MAX_EXCESS + sizeof(gf_inflate) : 0;
    return (1 + layout->inflates) * (2 * unit_bytes(layout) + more) + 2 * layout->unit_row_bytes +
           layout->unit_width + sizeof(gf_tiff_worker);
}

bool gf_tiff_worker_open(gf_tiff_worker *worker, gf_tiff_file *file, const gf_tiff_layout *layout,
                         const gf_format *format) {
    /* CCITT data is decoded with one more row than there are. */
    const uint64_t more = MAX_EXCESS + layout->fax * layout->unit_row_bytes;
    const uint64_t decoded = layout->direct ? 1 : unit_bytes(layout) + more;
    *worker = (gf_tiff_worker){
        .file = file, .layout = layout, .format = format, .simd = gf_png_simd_of(gf_isa_best())};
    worker->row = malloc((size_t)(2 * layout->unit_row_bytes + layout->unit_width));
    bool complete = worker->row;
    for (uint32_t i = 0; i < 1u + layout->inflates; i++) {
        worker->units[i].worker = worker;
        worker->units[i].decoded = malloc((size_t)decoded);
        worker->units[i].inflate = layout->inflates ? malloc(sizeof(gf_inflate)) : NULL;
        complete &= worker->units[i].decoded && (!layout->inflates || worker->units[i].inflate);
    }
    return complete;
}

void gf_tiff_worker_close(gf_tiff_worker *worker) {
    gf_tiff_handle_close(&worker->handle);
    for (uint32_t i = 0; i < 2; i++) {
        free(worker->units[i].raw);
        free(worker->units[i].decoded);
        free(worker->units[i].inflate);
    }
    free(worker->row);
}
