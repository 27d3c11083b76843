/* TIFF decoder: divides the image among threads and returns its rows.
 *
 * The image is divided into *groups* of rows: a row of tiles, or some strips. Groups are decoded
 * ahead of the row that is read, each by all threads: where the caller wants its rows, or in memory
 * of its own. */
#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/machine.h"
#include "core/thread.h"
#include "io/bytes.h"
#include "io/plain/rows.h"
#include "io/stream/announced.h"
#include "io/tiff/layout.h"

enum {
    GROUP_BYTES = 1 << 20, /* min bytes of a group, if strips are shorter */
    GROUP_TASKS = 16,      /* max tasks of such a group: each decodes at least 64 KiB */
    TASKS_PER_THREAD = 2,  /* tasks in progress */
    MEMORY_SHARE = 8,      /* the memory of more than one group, as part of --max-memory */
    NO_TASK = -1
};

typedef struct tiff_group {
    struct tiff_source *source;
    gf_work work;
    uint64_t first, rows;
    uint64_t units;      /* of one plane, from left to right; planes of a unit are consecutive */
    unsigned char *own;  /* memory for rows of this or another group; NULL: not needed yet */
    unsigned char *data; /* the rows */
    size_t stride;
    int64_t failed; /* first task that failed, or NO_TASK; `lock` protects it and `error` */
    gf_error error;
    _Atomic uint64_t damaged; /* rows of CCITT data */
} tiff_group;

typedef struct tiff_source {
    gf_source base;
    gf_tiff_file file;
    gf_tiff_layout layout;
    gf_tiff_handle handle; /* locates units; `lock` protects it */
    uint64_t y;            /* next row */
    gf_announcements announced;
    /* Groups. */
    uint32_t threads;
    uint32_t slots;     /* groups in progress, ... */
    uint32_t own_slots; /* if some need memory of their own */
    uint64_t per_task;  /* units of one plane */
    uint64_t group_count;
    uint64_t group_rows; /* of all groups but the last, and those at the end of a strip */
    uint64_t head, end;  /* groups in the ring */
    tiff_group *groups;  /* `slots` of them; NULL before the first row */
    gf_tiff_worker *workers;
    gf_pool *pool; /* NULL: one thread */
    pthread_mutex_t lock;
    atomic_bool stop;
    double seconds;             /* of the caller, without waiting */
    uint64_t max_seconds;       /* CPU time of decoding, ... */
    _Atomic uint64_t decode_ns; /* ... and what it has taken */
    bool strict;
    uint64_t damaged; /* rows of CCITT data that was read ... */
    uint64_t counted; /* in groups before this one */
} tiff_source;

/* ---- decoding -------------------------------------------------------------------------------- */

/* Return the first row of a piece, which has rows of one row of units; after the last piece, the
 * height. */
static uint64_t piece_first(const tiff_source *source, uint64_t number) {
    const gf_tiff_layout *layout = &source->layout;
    const uint64_t first =
        number / layout->pieces * layout->unit_rows + number % layout->pieces * layout->piece_rows;
    return first < source->base.format.height ? first : source->base.format.height;
}

static uint64_t piece_of(const tiff_source *source, uint64_t y) {
    const gf_tiff_layout *layout = &source->layout;
    return y / layout->unit_rows * layout->pieces + y % layout->unit_rows / layout->piece_rows;
}

/* Find a unit in the file. Return false if its place cannot be read. */
static bool source_find_unit(const tiff_source *source, gf_tiff_unit *unit) {
    TIFF *tiff = source->handle.tiff;
    int failed = 0, failed_bytes = 0;
    unit->offset = gf_libtiff.TIFFGetStrileOffsetWithErr(tiff, unit->number, &failed);
    unit->bytes = gf_libtiff.TIFFGetStrileByteCountWithErr(tiff, unit->number, &failed_bytes);
    return !failed && !failed_bytes;
}

/* Describe unit `index` of a group: planes of a unit are consecutive. */
static gf_status group_unit(const tiff_group *group, uint64_t index, gf_tiff_unit *unit,
                            gf_error *error) {
    tiff_source *source = group->source;
    const gf_tiff_layout *layout = &source->layout;
    const gf_format *format = &source->base.format;
    const size_t pixel = gf_row_bytes(format) / (size_t)format->width;
    const uint64_t position = index / layout->planes, plane = index % layout->planes;
    const uint64_t column = position % layout->across, x = column * layout->unit_width;
    const uint64_t piece = piece_of(source, group->first) + position / layout->across;
    const uint64_t first = piece_first(source, piece);
    const uint64_t row = plane * layout->down + first / layout->unit_rows;
    gf_status status = GF_OK;
    unit->number = (uint32_t)(row * layout->across + column);
    unit->plane = (uint32_t)plane;
    unit->first = first;
    unit->rows = piece_first(source, piece + 1) - first;
    unit->skipped = first % layout->unit_rows;
    unit->width = format->width - x < layout->unit_width ? format->width - x : layout->unit_width;
    unit->to = group->data + (first - group->first) * group->stride + x * pixel;
    unit->stride = group->stride;
    pthread_mutex_lock(&source->lock);
    gf_tiff_handle_clear(&source->handle);
    if (!source_find_unit(source, unit))
        status = gf_tiff_handle_fail(&source->handle, error);
    pthread_mutex_unlock(&source->lock);
    return status;
}

static void group_run(void *context, uint32_t task, uint32_t thread) {
    tiff_group *group = context;
    tiff_source *source = group->source;
    gf_tiff_worker *worker = &source->workers[thread];
    const uint64_t planes = source->layout.planes, units = group->units * planes;
    const uint64_t first = task * source->per_task * planes, left = units - first;
    const uint64_t end =
        left < source->per_task * planes ? units : first + source->per_task * planes;
    const uint64_t began = gf_thread_ns();
    gf_error error = {0};
    gf_status status = GF_OK;
    worker->damaged = 0;
    if (source->decode_ns / 1000000000 > source->max_seconds)
        status = gf_fail(&error, GF_FAILED,
                         "%s: decoding exceeds the limit of %" PRIu64
                         " seconds for its size; raise it with --max-seconds",
                         source->file.input.name, source->max_seconds);
    for (uint64_t i = first; i < end && !status;) {
        uint32_t count = 0;
        if (atomic_load_explicit(&source->stop, memory_order_relaxed))
            return;
        for (; count < 1u + source->layout.inflates && i < end && !status; i++)
            status = group_unit(group, i, &worker->units[count++], &error);
        if (!status)
            status = gf_tiff_units_decode(worker, count, &error);
    }
    source->decode_ns += gf_thread_ns() - began;
    group->damaged += worker->damaged;
    if (!status)
        return;
    pthread_mutex_lock(&source->lock);
    if (group->failed == NO_TASK || task < group->failed) {
        group->failed = task;
        group->error = error;
    }
    pthread_mutex_unlock(&source->lock);
}

/* ---- the ring of groups ---------------------------------------------------------------------- */

static tiff_group *ring_group(tiff_source *source, uint64_t number) {
    return &source->groups[number % source->slots];
}

/* Start to decode the next group, in announced memory if it contains all rows. A failure is stored
 * in the group. Return false if the ring is full, or if a group after `wanted` waits for memory. */
static bool ring_submit(tiff_source *source, uint64_t wanted) {
    const uint64_t number = source->end;
    if (number == source->group_count)
        return false;
    tiff_group *group = ring_group(source, number);
    unsigned char **own = &source->groups[number % source->own_slots].own;
    const gf_tiff_layout *layout = &source->layout;
    const uint64_t first = piece_first(source, number * layout->group_pieces);
    const uint64_t rows = piece_first(source, (number + 1) * layout->group_pieces) - first;
    const gf_announced *last = gf_announced_last(&source->announced);
    const gf_announced place =
        gf_announced_rows(&source->announced, source->announced.released, first);
    const size_t row = gf_row_bytes(&source->base.format);
    const bool announced = place.end >= first + rows && (place.stride == row || !layout->direct);
    /* Memory that will be announced is waited for: rows of other memory would be copied. */
    const bool waits =
        last && (last->end - last->first) % source->group_rows == 0 && first >= last->end;
    if (number >= source->head + (announced ? source->slots : source->own_slots) ||
        (number > wanted && waits))
        return false;
    if (!announced && !*own)
        *own = gf_alloc_pages((size_t)source->group_rows * row);
    source->end++;
    group->first = first;
    group->rows = rows;
    group->units =
        (piece_of(source, first + rows - 1) + 1 - number * layout->group_pieces) * layout->across;
    group->data = announced ? place.to : *own;
    group->stride = announced ? place.stride : row;
    group->damaged = 0;
    /* Look up all units in order: libtiff keeps their places, and which one fails, with what
     * message, does not depend on the threads, which look them up again. */
    gf_tiff_unit unit;
    gf_status status = GF_OK;
    if (!group->data)
        status = gf_fail_memory(&group->error, source->file.input.name, source->group_rows * row,
                                "strips or tiles");
    for (uint64_t i = 0; i < group->units * layout->planes && !status; i++)
        status = group_unit(group, i, &unit, &group->error);
    group->failed = status ? 0 : NO_TASK;
    group->work = (gf_work){.run = group_run, .context = group};
    if (!status)
        group->work.count = (uint32_t)gf_ceil_div(group->units, source->per_task);
    if (source->pool)
        gf_pool_submit(source->pool, &group->work);
    for (uint32_t i = 0; !source->pool && i < group->work.count && group->failed == NO_TASK; i++)
        group_run(group, i, 0);
    return true;
}

/* Wait until the groups before one are decoded, and remove them. */
static void ring_advance(tiff_source *source, uint64_t number) {
    for (; source->head < number; source->head++)
        if (source->pool)
            gf_pool_wait(source->pool, &ring_group(source, source->head)->work);
}

/* Return the group with the next row, and keep the ring full. Return NULL on failure. */
static tiff_group *ring_await(tiff_source *source, gf_error *error) {
    const uint64_t wanted = piece_of(source, source->y) / source->layout.group_pieces;
    if (wanted < source->head || wanted >= source->end) {
        ring_advance(source, source->end);
        source->head = source->end = wanted;
    }
    ring_advance(source, wanted);
    while (ring_submit(source, wanted))
        continue;
    tiff_group *group = ring_group(source, wanted);
    if (source->pool) {
        const double began = gf_now();
        gf_pool_wait(source->pool, &group->work);
        source->seconds -= gf_now() - began;
    }
    if (wanted >= source->counted) {
        source->damaged += group->damaged;
        source->counted = wanted + 1;
    }
    return group->failed != NO_TASK && gf_return_error(&group->error, error) ? NULL : group;
}

/* Divide the image into groups, and choose the number of groups and threads. */
static gf_status memory_plan(tiff_source *source, const gf_limits *limits, gf_error *error) {
    gf_tiff_layout *layout = &source->layout;
    const size_t target = limits->segment ? limits->segment : GROUP_BYTES;
    const size_t row = gf_row_bytes(&source->base.format);
    const bool cut = layout->compression == COMPRESSION_NONE && !layout->tiled;
    layout->piece_rows =
        cut && target / row < layout->unit_rows ? target / row + 1 : layout->unit_rows;
    layout->pieces = gf_ceil_div(layout->unit_rows, layout->piece_rows);
    const uint64_t wanted = layout->pieces == 1 ? target / row / layout->piece_rows + 1 : 1;
    layout->group_pieces = wanted < layout->down ? wanted : layout->down;
    assert(layout->group_pieces != 0);
    const uint64_t height = source->base.format.height,
                   rows = layout->group_pieces * layout->piece_rows;
    source->group_rows = rows < height ? rows : height;
    source->group_count = piece_of(source, height - 1) / layout->group_pieces + 1;
    const uint64_t units = layout->group_pieces * layout->across, group = source->group_rows * row,
                   worker = source->file.tags.bytes + gf_tiff_worker_bytes(layout);
    const uint64_t share = limits->max_memory / MEMORY_SHARE;
    const gf_status status =
        gf_check_memory(group + worker, limits->max_memory, source->file.input.name,
                        layout->tiled ? "a row of tiles" : "a strip", error);
    if (status)
        return status;
    const uint64_t unit = layout->piece_rows * layout->unit_row_bytes * layout->planes;
    source->per_task = target / GROUP_TASKS / unit + 1;
    /* Units that are decoded together are in one task, unless threads would have nothing to do. */
    if (source->per_task == 1 && layout->planes == 1 &&
        units * source->group_count >= 4 * (uint64_t)limits->threads)
        source->per_task = 1 + layout->inflates;
    const uint64_t tasks = gf_ceil_div(units, source->per_task);
    const uint64_t all = tasks * source->group_count;
    source->threads = limits->threads < all ? limits->threads : (uint32_t)all;
    source->slots = source->own_slots = 1;
    if (layout->pieces == 1 && !layout->direct)
        source->base.rows_together = source->group_rows;
    source->base.groups = 1;
    while (source->threads > 1 && group + source->threads * worker > share)
        source->threads--;
    if (source->threads == 1)
        return GF_OK;
    /* One group is read while others are decoded. */
    uint64_t slots = gf_ceil_div((uint64_t)TASKS_PER_THREAD * source->threads, tasks) + 1;
    while (slots > 1 && (slots - 1) * group + source->threads * worker > share)
        slots--;
    source->slots = (uint32_t)slots;
    source->own_slots = tasks >= source->threads && slots > 2 ? 2 : (uint32_t)slots;
    source->base.groups = source->slots;
    source->base.threads = source->threads;
    source->base.memory = (source->own_slots - 1) * group + (source->threads - 1) * worker;
    return GF_OK;
}

/* ---- the source ------------------------------------------------------------------------------ */

static gf_status tiff_source_read(gf_source *base, void *dst, size_t stride, uint64_t rows,
                                  gf_error *error) {
    tiff_source *source = (tiff_source *)base;
    const size_t row = gf_row_bytes(&base->format);
    const double began = gf_now();
    unsigned char *out = dst;
    gf_status status = GF_OK;
    if (!source->workers) {
        source->groups = calloc(source->slots, sizeof *source->groups);
        source->workers = calloc(source->threads, sizeof *source->workers);
        bool complete = source->groups && source->workers;
        for (uint32_t i = 0; complete && i < source->slots; i++)
            source->groups[i].source = source;
        for (uint32_t i = 0; complete && i < source->threads; i++)
            complete = gf_tiff_worker_open(&source->workers[i], &source->file, &source->layout,
                                           &base->format);
        if (!complete)
            return gf_fail_memory(error, source->file.input.name, source->group_rows * row,
                                  "strips or tiles");
        if (source->threads > 1)
            status = gf_pool_open(source->threads, &source->pool, error);
    }
    while (rows != 0 && !status) {
        tiff_group *group = ring_await(source, error);
        if (!group)
            return GF_FAILED;
        const uint64_t skipped = source->y - group->first, left = group->rows - skipped;
        const uint64_t count = rows < left ? rows : left;
        gf_announced_copy(out, stride, group->data + skipped * group->stride, group->stride, row,
                          count);
        source->y += count;
        rows -= count;
        out += count * stride;
    }
    gf_announced_release(&source->announced, source->y);
    source->seconds += gf_now() - began;
    return status;
}

static gf_status tiff_source_announce(gf_source *base, void *dst, size_t stride, uint64_t rows,
                                      gf_error *error) {
    tiff_source *source = (tiff_source *)base;
    (void)error;
    gf_announced_add(&source->announced, source->y, dst, stride, rows);
    return GF_OK;
}

static gf_status tiff_source_finish(gf_source *base, gf_error *error) {
    tiff_source *source = (tiff_source *)base;
    const char *name = source->file.input.name;
    const uint64_t damaged = source->damaged, rows = base->format.height;
    ring_advance(source, source->end);
    if (!source->file.data)
        gf_input_seek(&source->file.input, source->file.size);
    base->bytes = source->file.size;
    if (source->pool)
        base->busy_seconds = gf_pool_busy(source->pool) + source->seconds;
    if (gf_tiff_is_lost(damaged, rows)) /* strips of one row were not refused on their own */
        return gf_fail(error, GF_FAILED,
                       "%s: %" PRIu64 " of %" PRIu64
                       " rows of the fax are damaged; get an intact copy",
                       name, damaged, rows);
    return damaged ? gf_damage(&base->metadata.remarks, source->strict, name, error,
                               "%" PRIu64 " of %" PRIu64
                               " rows of the fax are damaged; missing ones are blank",
                               damaged, rows)
                   : GF_OK;
}

static void tiff_source_cancel(gf_source *base) {
    tiff_source *source = (tiff_source *)base;
    atomic_store_explicit(&source->stop, true, memory_order_relaxed);
    ring_advance(source, source->end);
    base->bytes = source->file.size;
}

static void tiff_source_close(gf_source *base) {
    tiff_source *source = (tiff_source *)base;
    atomic_store_explicit(&source->stop, true, memory_order_relaxed);
    gf_pool_close(source->pool); /* before the buffers */
    for (uint32_t i = 0; source->groups && i < source->slots; i++)
        free(source->groups[i].own);
    for (uint32_t i = 0; source->workers && i < source->threads; i++)
        gf_tiff_worker_close(&source->workers[i]);
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
    tiff_source *source = (tiff_source *)base;
    ring_advance(source, source->end); /* groups may be in memory of the caller */
    source->announced = (gf_announcements){.count = 0};
    source->y = y;
}

static void tiff_source_shrink(gf_source *base) {
    tiff_source *source = (tiff_source *)base;
    source->threads = source->slots = source->own_slots = 1;
    base->groups = 1;
    base->threads = 0;
    base->memory = 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Read a whole pipe into file->data, at most max_memory bytes. */
static gf_status tiff_load_pipe(gf_tiff_file *file, gf_error *error) {
    static const char what[] = "a TIFF from a pipe";
    gf_status status = GF_OK;
    while (file->size == file->capacity && !status) {
        const uint64_t capacity = file->capacity ? 2 * file->capacity : 1 << 16;
        const bool crossed = capacity > file->max_memory && file->size < file->max_memory;
        size_t got = 0;
        file->capacity = crossed ? file->max_memory : capacity;
        if (gf_check_memory(file->capacity, file->max_memory, file->input.name, what, error))
            return GF_FAILED;
        unsigned char *data = realloc(file->data, file->capacity);
        if (!data)
            return gf_fail_memory(error, file->input.name, file->capacity, what);
        file->data = data;
        status = gf_input_read(&file->input, data + file->size, file->capacity - file->size, &got,
                               error);
        file->size += got;
    }
    return status;
}

/* Return true if all rows are stored one after the other, as they are used. Set the offset of the
 * first one. */
static bool tiff_is_plain(const tiff_source *source, uint64_t *start) {
    enum { MAX_STRIPS = 1 << 20 }; /* their offsets are read here */
    const gf_tiff_layout *layout = &source->layout;
    uint64_t first = 0, next = 0, left = source->base.format.height;
    if (layout->compression != COMPRESSION_NONE || layout->reversed || layout->inverted ||
        !layout->direct || source->file.data || layout->down > MAX_STRIPS)
        return false;
    for (uint64_t i = 0; i < layout->down; i++) {
        const uint64_t rows = left < layout->unit_rows ? left : layout->unit_rows;
        const uint64_t bytes = rows * layout->unit_row_bytes;
        gf_tiff_unit unit = {.number = (uint32_t)i};
        if (!source_find_unit(source, &unit) || unit.offset == 0 || unit.bytes < bytes ||
            (i != 0 && unit.offset != next) || unit.offset > INT64_MAX - bytes)
            return false;
        first = i ? first : unit.offset;
        next = unit.offset + bytes;
        left -= rows;
    }
    *start = first;
    return true;
}

/* Return the number of images of one directory: ImageJ, and tifffile on request, store a stack as
 * rows that follow those of the first image, and describe it in a text. */
static uint64_t tiff_count_stack(const tiff_source *source) {
    const gf_format *format = &source->base.format;
    const uint64_t samples = format->width * format->height * source->layout.samples;
    static const char images[] = "\nimages=", shape[] = "{\"shape\": [";
    uint64_t count = 1, size = 0;
    const char *text = NULL;
    if (!gf_libtiff.TIFFGetField(source->handle.tiff, TIFFTAG_IMAGEDESCRIPTION, &text))
        return 1;
    const char *at = strncmp(text, "ImageJ=", 7) == 0 ? strstr(text, images) : NULL;
    if (at)
        at += sizeof images - 1;
    if (at && gf_parse_digits(&at, &count) && count)
        return count;
    if (strncmp(text, shape, sizeof shape - 1) != 0 || !strstr(text, "\"truncated\": true"))
        return 1;
    at = text + sizeof shape - 1;
    for (; gf_parse_digits(&at, &size); at += strspn(at, ", "))
        if (__builtin_mul_overflow(count, size, &count))
            return 1;
    return count % samples == 0 ? count / samples : 1;
}

/* Move to an image of a stack, from 1, if there is one; the rows are plain if *start is not 0. */
static gf_status tiff_choose_slice(tiff_source *source, uint64_t slice, uint64_t *start,
                                   gf_error *error) {
    const gf_tiff_file *file = &source->file;
    const uint64_t bytes = source->base.format.height * gf_row_bytes(&source->base.format);
    const uint64_t described = tiff_count_stack(source);
    const bool whole = *start && *start < file->size && described < UINT32_MAX &&
                       described <= (file->size - *start) / bytes;
    const uint64_t count = whole && described ? described : 1;
    if (slice > count)
        return gf_fail_page(file->input.name, slice, count, error);
    if (count != described)
        gf_note(&source->base.metadata.remarks,
                "a stack of %" PRIu64 " images; only the first can be read", described);
    source->base.pages = (uint32_t)count;
    *start += (slice - 1) * bytes;
    return GF_OK;
}

/* Return the value of the samples that are read for a stored nodata value. */
static gf_nodata tiff_nodata(gf_nodata nodata, const gf_tiff_layout *layout) {
    const uint32_t bits = layout->bits, top = bits < 16 ? (1u << bits) - 1 : 65535;
    if (layout->raw || layout->kind == 'f')
        return nodata;
    nodata.declared &= !layout->palette && nodata.value >= 0 && nodata.value <= (float)top;
    if (!nodata.declared)
        return nodata;
    uint32_t v = (uint32_t)nodata.value;
    nodata.declared = (float)v == nodata.value;
    v = layout->inverted ? top - v : v;
    if (bits < 8)
        v *= 255 / top;
    else if (bits > 8 && bits < 16 && layout->scaled)
        v = (v * 65535 + top / 2) / top;
    nodata.value = (float)v;
    return nodata;
}

/* Open the page. *start is set if the rows are plain, otherwise 0. */
static gf_status tiff_open(tiff_source *source, const gf_limits *limits, uint64_t *start,
                           gf_error *error) {
    gf_tiff_file *file = &source->file;
    gf_tiff_layout *layout = &source->layout;
    const uint64_t page = limits->page ? limits->page : 1;
    uint64_t pages = 0;
    gf_status status;
    *start = 0;
    file->size = file->input.regular ? file->input.size : 0;
    if ((status = gf_tiff_load(file->input.name, error)) ||
        (file->size == 0 && (status = tiff_load_pipe(file, error))))
        return status;
    const gf_ifd_file bytes = {gf_tiff_read_at, file, file->size, file->input.name, NULL};
    /* A page that is not a directory may be an image of a stack. */
    status = gf_tiff_find_page(&bytes, page, limits->place, &file->directory, &pages, error);
    const bool stacked = status && pages == 1;
    if (stacked)
        status = gf_tiff_find_page(&bytes, 1, NULL, &file->directory, &pages, error);
    if (status ||
        (status = gf_tiff_read_metadata(&bytes, file->directory, &source->base.metadata,
                                        &file->tags, limits, error)) ||
        (status = gf_tiff_handle_open(file, &source->handle, error)) ||
        (status =
             gf_tiff_layout_read(&source->handle, limits, layout, &source->base.format, error)))
        return stacked ? gf_fail_page(file->input.name, page, 1, error) : status;
    source->base.pages = (uint32_t)pages;
    source->base.dropped = file->tags.dropped;
    source->base.metadata.associated_alpha = layout->associated;
    source->base.nodata = tiff_nodata(file->tags.nodata, layout);
    if (layout->raw)
        source->base.samples = (gf_samples){.kind = layout->kind,
                                            .bytes = layout->bytes,
                                            .little = gf_host_is_little(),
                                            .several = layout->several,
                                            .count = layout->samples,
                                            .width = source->base.format.width,
                                            .step = layout->samples,
                                            .plane = 1};
    const bool plain = tiff_is_plain(source, start);
    if (pages == 1)
        status = tiff_choose_slice(source, stacked ? page : 1, start, error);
    gf_tiff_layout_describe(layout, page, source->base.pages, source->base.stored,
                            sizeof source->base.stored);
    source->max_seconds = gf_limit_seconds(limits, &source->base.format);
    if (plain || status)
        return status;
    if (layout->compression == COMPRESSION_NONE)
        source->base.cost = GF_PLAIN_COST;
    return memory_plan(source, limits, error);
}

gf_status gf_tiff_source_open(const gf_input *input, const gf_limits *limits, gf_source **opened,
                              gf_error *error) {
    static const gf_source_ops ops = {.read = tiff_source_read,
                                      .finish = tiff_source_finish,
                                      .close = tiff_source_close,
                                      .seek = tiff_source_seek,
                                      .announce = tiff_source_announce,
                                      .cancel = tiff_source_cancel,
                                      .shrink = tiff_source_shrink};
    tiff_source *source = gf_source_new(sizeof *source, &ops, input->name, error);
    uint64_t start;
    if (!source)
        return GF_FAILED;
    source->file.input = *input;
    source->file.max_memory = limits->max_memory;
    source->strict = limits->strict;
    pthread_mutex_init(&source->lock, NULL);
    gf_status status = tiff_open(source, limits, &start, error);
    if (!status && start == 0) {
        *opened = &source->base;
        return GF_OK;
    }
    /* Pass plain rows to the source of plain files. */
    const gf_row_order order = {
        .format = source->base.format, .start = start, .little = source->layout.little};
    if (!status)
        status = gf_plain_open(&source->file.input, NULL, &order, limits, opened, error);
    if (!status) {
        gf_source *plain = *opened, *base = &source->base;
        plain->metadata = base->metadata;
        plain->pages = base->pages;
        plain->samples = base->samples;
        plain->nodata = base->nodata;
        plain->samples.little = order.little;
        plain->dropped = base->dropped;
        memcpy(plain->stored, base->stored, sizeof plain->stored);
        base->metadata = (gf_metadata){0};
    }
    source->file.input = (gf_input){0}; /* owned by the caller or the plain source */
    tiff_source_close(&source->base);
    return status;
}
