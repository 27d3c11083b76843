/* TIFF decoder. libtiff parses the directory and decompresses strips and tiles. This file reads
 * their bytes, so that threads share one input, and arranges the decoded samples in rows.
 *
 * The image is divided into *groups* of rows: a row of tiles, or some strips. Groups are decoded
 * ahead of the row that is read, each by all threads. */
#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/machine.h"
#include "core/thread.h"
#include "io/bytes.h"
#include "io/tiff_directory.h"
#include "io/tiff_layout.h"

enum {
    GROUP_BYTES = 1 << 20, /* min bytes of a group, if strips are shorter */
    GROUP_TASKS = 16,      /* max tasks of such a group: each decodes at least 64 KiB */
    TASKS_PER_THREAD = 2,  /* tasks in progress */
    MEMORY_SHARE = 8,      /* the memory of more than one group, as part of --max-memory */
    RAW_RATIO = 10,        /* max compressed bytes of a strip or tile, per decoded byte */
    RAW_MARGIN = 4096,     /* and in addition, as in libtiff */
    NO_TASK = -1
};

/* Place of a unit in the file. */
typedef struct tiff_unit {
    uint64_t offset, bytes;
} tiff_unit;

typedef struct tiff_group {
    struct tiff_source *source;
    gf_work work;
    uint64_t number;
    uint64_t first, rows;
    unsigned char *data; /* rows without padding */
    tiff_unit *units;    /* of each piece, from left to right; planes of a unit are consecutive */
    int64_t failed;      /* first task that failed, or NO_TASK; `lock` protects it and `error` */
    gf_error error;
} tiff_group;

/* Buffers of one thread. */
typedef struct tiff_worker {
    gf_tiff_handle handle;
    unsigned char *raw;
    uint64_t raw_bytes; /* allocated */
    unsigned char *decoded;
    unsigned char *unpacked; /* samples of a row of a unit, as bytes, if they have fewer bits */
} tiff_worker;

typedef struct tiff_source {
    gf_source base;
    gf_tiff_file file;
    gf_tiff_layout layout;
    gf_tiff_handle handle; /* of the caller: locates units */
    uint64_t y;            /* next row */
    /* Groups. */
    uint32_t threads, slots;
    uint64_t per_task;  /* units of one plane */
    uint64_t head, end; /* groups in the ring */
    tiff_group *groups; /* `slots` of them; NULL before the first row */
    tiff_worker *workers;
    gf_pool *pool; /* NULL: one thread */
    pthread_mutex_t lock;
    atomic_bool stop;
    double seconds; /* of the caller, without waiting */
} tiff_source;

/* ---- rows of units --------------------------------------------------------------------------- */

static size_t pixel_bytes(const gf_format *format) {
    return format->channels * gf_type_bytes(format->type);
}

/* Unpack samples of 1, 2 or 4 bits, the first one in the high bits, times `factor`. */
static void unpack_bits(unsigned char *out, const unsigned char *in, uint64_t count, uint32_t bits,
                        uint32_t factor) {
    const uint32_t mask = (1u << bits) - 1;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t bit = i * bits;
        out[i] = (unsigned char)((in[bit / 8] >> (8 - bits - bit % 8) & mask) * factor);
    }
}

/* Replace the first of `step` samples of each pixel by its distance from white. */
static void invert_samples(unsigned char *row, uint64_t pixels, uint32_t step, gf_type type) {
    for (uint64_t i = 0; i < pixels; i++, row += step * gf_type_bytes(type)) {
        row[0] = (unsigned char)~row[0];
        if (type == GF_U16)
            row[1] = (unsigned char)~row[1];
    }
}

GF_INLINE void place_plane(unsigned char *row, const unsigned char *samples, uint64_t count,
                           size_t pixel, size_t sample) {
    for (uint64_t i = 0; i < count; i++)
        memcpy(row + i * pixel, samples + i * sample, sample);
}

/* Place the first pixels of a decoded row of a unit. plane: the channel, if there are planes.
 * unpacked: memory for as many bytes as the unit is wide. */
static void place_row(const tiff_source *source, unsigned char *row, const unsigned char *stored,
                      uint64_t pixels, uint32_t plane, unsigned char *unpacked) {
    const gf_tiff_layout *layout = &source->layout;
    const gf_type type = source->base.format.type;
    const size_t sample = gf_type_bytes(type), pixel = pixel_bytes(&source->base.format);
    if (layout->bits < 8) {
        const uint32_t factor = layout->palette ? 1 : 255 / ((1u << layout->bits) - 1);
        unpack_bits(unpacked, stored, pixels, layout->bits, factor);
        stored = unpacked;
    }
    if (layout->palette) {
        for (uint64_t i = 0; i < pixels; i++)
            memcpy(row + i * pixel, layout->colors[stored[i]], pixel);
        return;
    }
    if (layout->planes == 1)
        memcpy(row, stored, (size_t)(pixels * pixel));
    else if (type == GF_U8)
        place_plane(row + plane, stored, pixels, pixel, 1);
    else if (type == GF_U16)
        place_plane(row + plane * sample, stored, pixels, pixel, 2);
    else
        place_plane(row + plane * sample, stored, pixels, pixel, 4);
    if (layout->inverted && plane == 0)
        invert_samples(row, pixels, layout->samples, type);
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* A piece: rows of one unit row. */
typedef struct tiff_piece {
    uint64_t unit_row;
    uint64_t skipped; /* rows of the unit before the piece */
    uint64_t first, rows;
} tiff_piece;

static tiff_piece piece_at(const tiff_source *source, uint64_t number) {
    const gf_tiff_layout *layout = &source->layout;
    tiff_piece piece = {.unit_row = number / layout->pieces,
                        .skipped = number % layout->pieces * layout->piece_rows};
    piece.first = piece.unit_row * layout->unit_rows + piece.skipped;
    piece.rows = layout->unit_rows - piece.skipped;
    if (piece.rows > layout->piece_rows)
        piece.rows = layout->piece_rows;
    if (piece.rows > source->base.format.height - piece.first)
        piece.rows = source->base.format.height - piece.first;
    return piece;
}

/* Return the number of the piece with a row. */
static uint64_t piece_of(const tiff_source *source, uint64_t y) {
    const gf_tiff_layout *layout = &source->layout;
    return y / layout->unit_rows * layout->pieces + y % layout->unit_rows / layout->piece_rows;
}

static gf_status piece_fail(const tiff_source *source, const tiff_piece *piece, const char *what,
                            gf_error *error) {
    return gf_fail(error, GF_FAILED,
                   "%s: rows %" PRIu64 " to %" PRIu64 " are damaged (%s); get an intact copy",
                   source->file.input.name, piece->first + 1, piece->first + piece->rows, what);
}

/* Read bytes of a unit. */
static gf_status piece_read(tiff_source *source, const tiff_piece *piece, void *data, uint64_t size,
                            uint64_t offset, gf_error *error) {
    gf_error cause = {0};
    const uint64_t end = source->file.size;
    if (offset > end || size > end - offset)
        return piece_fail(source, piece, "the file ends too early", error);
    if (!gf_tiff_read_at(&source->file, data, (size_t)size, offset, &cause))
        return GF_OK;
    if (error)
        *error = cause;
    return cause.status;
}

/* Read the rows of an uncompressed unit and convert them to native byte order. */
static gf_status piece_copy(tiff_source *source, tiff_worker *worker, const tiff_unit *unit,
                            const tiff_piece *piece, uint64_t rows, unsigned char *to,
                            gf_error *error) {
    const gf_tiff_layout *layout = &source->layout;
    const uint64_t start = piece->skipped * layout->unit_row_bytes;
    const uint64_t bytes = rows * layout->unit_row_bytes;
    (void)worker;
    if (unit->bytes < start || unit->bytes - start < bytes)
        return piece_fail(source, piece, "too few bytes", error);
    if (unit->offset > UINT64_MAX - start)
        return piece_fail(source, piece, "invalid offset", error);
    const gf_status status = piece_read(source, piece, to, bytes, unit->offset + start, error);
    if (status)
        return status;
    if (layout->reversed)
        source->file.libtiff->TIFFReverseBits(to, (tmsize_t)bytes);
    if (layout->bits == 16)
        gf_copy_order16(to, to, bytes / 2, layout->little);
    else if (layout->bits == 32)
        gf_copy_order32(to, to, bytes / 4, layout->little);
    return GF_OK;
}

/* Read and decompress the rows of a unit. */
static gf_status piece_decompress(tiff_source *source, tiff_worker *worker, const tiff_unit *unit,
                                  uint32_t number, const tiff_piece *piece, uint64_t rows,
                                  unsigned char *to, gf_error *error) {
    const gf_tiff_layout *layout = &source->layout;
    const uint64_t bytes = rows * layout->unit_row_bytes;
    const uint64_t max = RAW_RATIO * layout->unit_rows * layout->unit_row_bytes + RAW_MARGIN;
    const uint64_t size = unit->bytes < max ? unit->bytes : max;
    gf_status status;
    if (size > worker->raw_bytes) {
        free(worker->raw);
        worker->raw_bytes = 0;
        worker->raw = gf_alloc_limited(size, source->file.max_memory, source->file.input.name,
                                       "a compressed strip or tile", error);
        if (!worker->raw)
            return GF_FAILED;
        worker->raw_bytes = size;
    }
    if ((status = piece_read(source, piece, worker->raw, size, unit->offset, error)))
        return status;
    if (!worker->handle.tiff &&
        (status = gf_tiff_handle_open(&source->file, &worker->handle, error)))
        return status;
    gf_tiff_handle_clear(&worker->handle);
    memset(to, 0, (size_t)bytes); /* codecs such as fax accept data that ends early */
    if (source->file.libtiff->TIFFReadFromUserBuffer(worker->handle.tiff, number, worker->raw,
                                                     (tmsize_t)size, to, (tmsize_t)bytes))
        return GF_OK;
    return piece_fail(source, piece,
                      worker->handle.message[0] ? worker->handle.message : "libtiff cannot decode",
                      error);
}

/* Decode rows of a unit. Without offset and size, it is not stored, and its samples are 0: GDAL
 * writes sparse files. */
static gf_status piece_decode(tiff_source *source, tiff_worker *worker, const tiff_unit *unit,
                              uint32_t number, const tiff_piece *piece, unsigned char *to,
                              gf_error *error) {
    const gf_tiff_layout *layout = &source->layout;
    /* A tile has all its rows, a strip only those of the image. */
    const uint64_t rows = layout->tiled ? layout->piece_rows : piece->rows;
    if (unit->offset == 0 && unit->bytes == 0) {
        memset(to, 0, (size_t)(rows * layout->unit_row_bytes));
        return GF_OK;
    }
    if (unit->offset == 0 || unit->bytes == 0)
        return piece_fail(source, piece, "a strip or tile without data", error);
    return layout->compression == COMPRESSION_NONE
               ? piece_copy(source, worker, unit, piece, rows, to, error)
               : piece_decompress(source, worker, unit, number, piece, rows, to, error);
}

/* Return true if decoded rows of a unit are rows of the image. */
static bool piece_is_direct(const tiff_source *source) {
    const gf_tiff_layout *layout = &source->layout;
    return !layout->tiled && layout->planes == 1 && layout->bits >= 8 && !layout->palette;
}

/* Decode all planes of one unit of a group to its place. position: the number of the unit in a
 * plane of the group. */
static gf_status group_decode(tiff_group *group, tiff_worker *worker, uint64_t position,
                              gf_error *error) {
    tiff_source *source = group->source;
    const gf_tiff_layout *layout = &source->layout;
    const gf_format *format = &source->base.format;
    const size_t row_bytes = gf_row_bytes(format), pixel = pixel_bytes(format);
    const tiff_piece piece =
        piece_at(source, group->number * layout->group_pieces + position / layout->across);
    const uint64_t column = position % layout->across, x = column * layout->unit_width;
    const uint64_t width =
        format->width - x < layout->unit_width ? format->width - x : layout->unit_width;
    unsigned char *rows = group->data + (piece.first - group->first) * row_bytes;
    const bool direct = piece_is_direct(source);
    gf_status status = GF_OK;
    for (uint32_t plane = 0; plane < layout->planes && !status; plane++) {
        const uint64_t number = (plane * layout->down + piece.unit_row) * layout->across + column;
        unsigned char *decoded = direct ? rows : worker->decoded;
        status = piece_decode(source, worker, &group->units[position * layout->planes + plane],
                              (uint32_t)number, &piece, decoded, error);
        for (uint64_t i = 0; i < piece.rows && !status; i++) {
            unsigned char *row = rows + i * row_bytes + x * pixel;
            if (!direct)
                place_row(source, row, decoded + i * layout->unit_row_bytes, width, plane,
                          worker->unpacked);
            else if (layout->inverted)
                invert_samples(row, width, layout->samples, format->type);
        }
    }
    return status;
}

/* Return the units of one plane of a group. */
static uint64_t group_units(const tiff_source *source) {
    return source->layout.group_pieces * source->layout.across;
}

/* Return the units of one plane that the group has; the last group has fewer. */
static uint64_t group_used(const tiff_group *group) {
    const tiff_source *source = group->source;
    const uint64_t last = piece_of(source, group->first + group->rows - 1);
    return (last + 1 - group->number * source->layout.group_pieces) * source->layout.across;
}

/* Decode some units. */
static void group_run(void *context, uint32_t task, uint32_t thread) {
    tiff_group *group = context;
    tiff_source *source = group->source;
    const uint64_t used = group_used(group);
    gf_error error = {0};
    for (uint64_t i = task * source->per_task; i < (task + 1) * source->per_task && i < used; i++) {
        if (atomic_load_explicit(&source->stop, memory_order_relaxed))
            return;
        if (!group_decode(group, &source->workers[thread], i, &error))
            continue;
        pthread_mutex_lock(&source->lock);
        if (group->failed == NO_TASK || task < group->failed) {
            group->failed = task;
            group->error = error;
        }
        pthread_mutex_unlock(&source->lock);
        return;
    }
}

/* Find the units of a group in the file. */
static gf_status group_locate(tiff_group *group, gf_error *error) {
    tiff_source *source = group->source;
    const gf_tiff_layout *layout = &source->layout;
    const gf_tiff_library *library = source->file.libtiff;
    TIFF *tiff = source->handle.tiff;
    const uint64_t used = group_used(group);
    gf_tiff_handle_clear(&source->handle);
    for (uint64_t i = 0; i < used; i++) {
        const uint64_t piece = group->number * layout->group_pieces + i / layout->across;
        for (uint32_t plane = 0; plane < layout->planes; plane++) {
            const uint64_t number =
                (plane * layout->down + piece / layout->pieces) * layout->across +
                i % layout->across;
            tiff_unit *unit = &group->units[i * layout->planes + plane];
            int failed = 0, failed_bytes = 0;
            unit->offset = library->TIFFGetStrileOffsetWithErr(tiff, (uint32_t)number, &failed);
            unit->bytes =
                library->TIFFGetStrileByteCountWithErr(tiff, (uint32_t)number, &failed_bytes);
            if (failed || failed_bytes)
                return gf_tiff_handle_fail(&source->handle, error);
        }
    }
    return GF_OK;
}

/* ---- the ring of groups ---------------------------------------------------------------------- */

static tiff_group *ring_group(tiff_source *source, uint64_t number) {
    return &source->groups[number % source->slots];
}

static uint64_t ring_groups(const tiff_source *source) {
    assert(source->layout.group_pieces != 0);
    return piece_of(source, source->base.format.height - 1) / source->layout.group_pieces + 1;
}

/* Start to decode the next group. A failure is stored in the group. */
static void ring_submit(tiff_source *source) {
    tiff_group *group = ring_group(source, source->end);
    const gf_tiff_layout *layout = &source->layout;
    group->number = source->end++;
    group->first = piece_at(source, group->number * layout->group_pieces).first;
    const uint64_t next = (group->number + 1) * layout->group_pieces;
    group->rows = (group->number + 1 == ring_groups(source) ? source->base.format.height
                                                            : piece_at(source, next).first) -
                  group->first;
    group->failed = NO_TASK;
    group->work = (gf_work){.run = group_run, .context = group};
    if (group_locate(group, &group->error))
        group->failed = 0;
    else
        group->work.count = (uint32_t)gf_ceil_div(group_used(group), source->per_task);
    if (source->pool)
        gf_pool_submit(source->pool, &group->work);
    for (uint32_t i = 0; !source->pool && i < group->work.count && group->failed == NO_TASK; i++)
        group_run(group, i, 0);
}

static void ring_wait(tiff_source *source, const tiff_group *group) {
    if (source->pool && group->work.count != 0)
        gf_pool_wait(source->pool, &ring_group(source, group->number)->work);
}

/* Wait until no group is being decoded, and empty the ring. */
static void ring_clear(tiff_source *source) {
    for (; source->head < source->end; source->head++)
        ring_wait(source, ring_group(source, source->head));
}

/* Return the group with the next row, and keep the ring full. Return NULL on failure. */
static tiff_group *ring_await(tiff_source *source, gf_error *error) {
    const uint64_t groups = ring_groups(source);
    const uint64_t wanted = piece_of(source, source->y) / source->layout.group_pieces;
    if (wanted < source->head || wanted >= source->end) {
        ring_clear(source);
        source->head = source->end = wanted;
    }
    for (; source->head < wanted; source->head++)
        ring_wait(source, ring_group(source, source->head));
    while (source->end < groups && source->end < source->head + source->slots)
        ring_submit(source);
    tiff_group *group = ring_group(source, wanted);
    const double began = gf_now();
    ring_wait(source, group);
    source->seconds -= source->pool ? gf_now() - began : 0;
    if (group->failed == NO_TASK)
        return group;
    if (error)
        *error = group->error;
    return NULL;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Return the bytes of the rows of a group. */
static uint64_t memory_rows(const tiff_source *source) {
    const gf_format *format = &source->base.format;
    const uint64_t rows = source->layout.group_pieces * source->layout.piece_rows;
    return (rows < format->height ? rows : format->height) * gf_row_bytes(format);
}

static uint64_t memory_group(const tiff_source *source) {
    return memory_rows(source) + group_units(source) * source->layout.planes * sizeof(tiff_unit);
}

/* Return the bytes of a decoded unit, or of a piece if it is not compressed. */
static uint64_t memory_decoded(const tiff_source *source) {
    return source->layout.piece_rows * source->layout.unit_row_bytes;
}

/* Return the bytes of the buffers of a thread: decoded, unpacked and compressed. */
static uint64_t memory_worker(const tiff_source *source) {
    return 2 * memory_decoded(source) + source->layout.unit_width + sizeof(tiff_worker);
}

/* Allocate what the threads need. */
static gf_status memory_allocate(tiff_source *source, gf_error *error) {
    const char *name = source->file.input.name;
    const size_t group = (size_t)memory_rows(source);
    const size_t units = (size_t)(group_units(source) * source->layout.planes);
    const size_t decoded = piece_is_direct(source) ? 1 : (size_t)memory_decoded(source);
    source->groups = calloc(source->slots, sizeof *source->groups);
    source->workers = calloc(source->threads, sizeof *source->workers);
    bool complete = source->groups && source->workers;
    for (uint32_t i = 0; complete && i < source->slots; i++) {
        source->groups[i].source = source;
        source->groups[i].data = malloc(group);
        source->groups[i].units = malloc(units * sizeof(tiff_unit));
        complete = source->groups[i].data && source->groups[i].units;
    }
    for (uint32_t i = 0; complete && i < source->threads; i++) {
        source->workers[i].decoded = malloc(decoded);
        source->workers[i].unpacked = malloc((size_t)source->layout.unit_width);
        complete = source->workers[i].unpacked && source->workers[i].decoded;
    }
    if (!complete)
        return gf_fail_memory(error, name, memory_group(source), "strips or tiles");
    return source->threads > 1 ? gf_pool_open(source->threads, &source->pool, error) : GF_OK;
}

/* Divide the image into groups, and choose the number of groups and threads. */
static gf_status memory_plan(tiff_source *source, const gf_limits *limits, gf_error *error) {
    gf_tiff_layout *layout = &source->layout;
    const size_t target = limits->segment ? limits->segment : GROUP_BYTES;
    const size_t row = gf_row_bytes(&source->base.format);
    layout->piece_rows = layout->unit_rows;
    layout->pieces = layout->group_pieces = 1;
    if (layout->compression == COMPRESSION_NONE && !layout->tiled) {
        layout->piece_rows = target / row + 1;
        if (layout->piece_rows > layout->unit_rows)
            layout->piece_rows = layout->unit_rows;
        layout->pieces = gf_ceil_div(layout->unit_rows, layout->piece_rows);
    }
    if (layout->pieces == 1)
        layout->group_pieces = target / row / layout->piece_rows + 1;
    if (layout->group_pieces > layout->down)
        layout->group_pieces = layout->down;
    const uint64_t group = memory_group(source), worker = memory_worker(source);
    const uint64_t share = limits->max_memory / MEMORY_SHARE;
    const gf_status status =
        gf_check_memory(group + worker, limits->max_memory, source->file.input.name,
                        layout->tiled ? "a row of tiles" : "a strip", error);
    if (status)
        return status;
    source->per_task = target / GROUP_TASKS / (memory_decoded(source) * layout->planes) + 1;
    const uint64_t tasks = gf_ceil_div(group_units(source), source->per_task);
    const uint64_t all = tasks * ring_groups(source);
    source->threads = limits->threads < all ? limits->threads : (uint32_t)all;
    source->slots = 1;
    while (source->threads > 1 && group + source->threads * worker > share)
        source->threads--;
    if (source->threads == 1)
        return GF_OK;
    /* One group is read while others are decoded. */
    uint64_t slots = gf_ceil_div((uint64_t)TASKS_PER_THREAD * source->threads, tasks) + 1;
    while (slots > 1 && (slots - 1) * group + source->threads * worker > share)
        slots--;
    source->slots = (uint32_t)slots;
    source->base.threads = source->threads;
    source->base.memory = (slots - 1) * group + (source->threads - 1) * worker;
    return GF_OK;
}

/* ---- the source ------------------------------------------------------------------------------ */

static gf_status tiff_source_read(gf_source *base, void *dst, size_t stride, uint64_t rows,
                                  gf_error *error) {
    tiff_source *source = (tiff_source *)base;
    const size_t row = gf_row_bytes(&base->format);
    const double began = gf_now();
    unsigned char *out = dst;
    gf_status status = source->workers ? GF_OK : memory_allocate(source, error);
    while (rows != 0 && !status) {
        tiff_group *group = ring_await(source, error);
        if (!group)
            return GF_FAILED;
        for (; rows != 0 && source->y < group->first + group->rows; rows--, out += stride)
            memcpy(out, group->data + (source->y++ - group->first) * row, row);
    }
    source->seconds += gf_now() - began;
    return status;
}

static gf_status tiff_source_finish(gf_source *base, gf_error *error) {
    tiff_source *source = (tiff_source *)base;
    (void)error;
    ring_clear(source);
    if (!source->file.data)
        gf_input_skip_to(&source->file.input, source->file.size);
    base->bytes = source->file.size;
    if (source->pool)
        base->busy_seconds = gf_pool_busy(source->pool) + source->seconds;
    return GF_OK;
}

static void tiff_source_close(gf_source *base) {
    tiff_source *source = (tiff_source *)base;
    atomic_store_explicit(&source->stop, true, memory_order_relaxed);
    gf_pool_close(source->pool); /* before the buffers */
    for (uint32_t i = 0; source->groups && i < source->slots; i++) {
        free(source->groups[i].data);
        free(source->groups[i].units);
    }
    for (uint32_t i = 0; source->workers && i < source->threads; i++) {
        gf_tiff_handle_close(&source->workers[i].handle);
        free(source->workers[i].raw);
        free(source->workers[i].decoded);
        free(source->workers[i].unpacked);
    }
    gf_tiff_handle_close(&source->handle);
    free(source->groups);
    free(source->workers);
    free(source->file.data);
    gf_input_close(&source->file.input);
    gf_metadata_clear(&base->metadata);
    pthread_mutex_destroy(&source->lock);
    free(source);
}

static void tiff_source_seek(gf_source *base, uint64_t y) {
    ((tiff_source *)base)->y = y;
}

static void tiff_source_shrink(gf_source *base) {
    tiff_source *source = (tiff_source *)base;
    source->threads = source->slots = 1;
    base->threads = 0;
    base->memory = 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Return true if all rows are stored one after the other, as they are used. Set the offset of the
 * first one. */
static bool tiff_is_plain(const tiff_source *source, uint64_t *start) {
    enum { MAX_STRIPS = 1 << 20 }; /* their offsets are read here */
    const gf_tiff_layout *layout = &source->layout;
    const gf_tiff_library *library = source->file.libtiff;
    TIFF *tiff = source->handle.tiff;
    uint64_t next = 0, left = source->base.format.height;
    if (layout->compression != COMPRESSION_NONE || layout->reversed || layout->inverted ||
        !piece_is_direct(source) || source->file.data || layout->down > MAX_STRIPS)
        return false;
    for (uint64_t i = 0; i < layout->down; i++) {
        const uint64_t rows = left < layout->unit_rows ? left : layout->unit_rows;
        const uint64_t bytes = rows * layout->unit_row_bytes;
        int failed = 0, failed_bytes = 0;
        const uint64_t offset = library->TIFFGetStrileOffsetWithErr(tiff, (uint32_t)i, &failed);
        const uint64_t stored =
            library->TIFFGetStrileByteCountWithErr(tiff, (uint32_t)i, &failed_bytes);
        if (failed || failed_bytes || offset == 0 || stored < bytes || (i != 0 && offset != next) ||
            offset > INT64_MAX - bytes)
            return false;
        if (i == 0)
            *start = offset;
        next = offset + bytes;
        left -= rows;
    }
    return true;
}

/* Open the page. *start is set if the rows are plain, otherwise 0. */
static gf_status tiff_open(tiff_source *source, const gf_limits *limits, uint64_t *start,
                           gf_error *error) {
    gf_tiff_file *file = &source->file;
    gf_tiff_layout *layout = &source->layout;
    const uint64_t page = limits->page ? limits->page : 1;
    uint64_t pages;
    gf_exif_file bytes = {gf_tiff_read_at, file, 0};
    gf_status status = gf_tiff_load(&file->libtiff, file->input.name, error);
    *start = 0;
    if (!status && file->input.regular && file->input.size != 0)
        file->size = file->input.size;
    else if (!status)
        status = gf_tiff_load_pipe(file, error);
    bytes.size = file->size;
    if (status || (status = gf_tiff_find_page(file, page, limits->place, &pages, error)) ||
        (status = gf_tiff_handle_open(file, &source->handle, error)) ||
        (status =
             gf_tiff_layout_read(&source->handle, limits, layout, &source->base.format, error)) ||
        (status = gf_exif_read_tiff(&bytes, file->directory, &source->base.metadata, limits,
                                    file->input.name, error)))
        return status;
    source->base.pages = (uint32_t)pages;
    source->base.metadata.associated_alpha = layout->associated;
    gf_tiff_layout_describe(file, layout, page, pages, source->base.stored,
                            sizeof source->base.stored);
    if (tiff_is_plain(source, start))
        return GF_OK;
    source->base.cost =
        layout->compression == COMPRESSION_NONE ? GF_PLAIN_COST : GF_TIFF_DECODE_COST;
    return memory_plan(source, limits, error);
}

/* Pass plain rows to the source of plain files. */
static gf_status tiff_open_plain(tiff_source *source, uint64_t start, const gf_limits *limits,
                                 gf_source **opened, gf_error *error) {
    const gf_row_order order = {
        .format = source->base.format, .start = start, .little = source->layout.little};
    const gf_status status =
        gf_rows_source_open(&source->file.input, &order, limits, opened, error);
    if (status)
        return status;
    gf_source *plain = *opened;
    plain->metadata = source->base.metadata;
    plain->pages = source->base.pages;
    memcpy(plain->stored, source->base.stored, sizeof plain->stored);
    gf_metadata_init(&source->base.metadata);
    return GF_OK;
}

gf_status gf_tiff_source_open(const gf_input *input, const gf_limits *limits, gf_source **opened,
                              gf_error *error) {
    static const gf_source_ops ops = {.read = tiff_source_read,
                                      .finish = tiff_source_finish,
                                      .close = tiff_source_close,
                                      .seek = tiff_source_seek,
                                      .shrink = tiff_source_shrink};
    tiff_source *source = gf_source_new(sizeof *source, &ops, input->name, error);
    uint64_t start;
    if (!source)
        return GF_FAILED;
    source->file.input = *input;
    source->file.max_memory = limits->max_memory;
    pthread_mutex_init(&source->lock, NULL);
    gf_status status = tiff_open(source, limits, &start, error);
    if (!status && start == 0) {
        *opened = &source->base;
        return GF_OK;
    }
    if (!status)
        status = tiff_open_plain(source, start, limits, opened, error);
    source->file.input = (gf_input){0}; /* owned by the caller or the plain source */
    tiff_source_close(&source->base);
    return status;
}
