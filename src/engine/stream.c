/* A reader thread decodes into free slots of the ring and submits them; the calling thread waits
 * for each band in order, gives it to the consumer and frees its slot. The backend works in
 * between.
 *
 * Band k computes rows [k*B, (k+1)*B) and holds `halo` rows more on each side. Consecutive bands
 * share 2*halo rows, in the ring too: a band is a contiguous piece of it to everyone after the
 * reader, and only where the ring begins again are the shared rows copied.
 *
 * Unthreaded, one thread does both in turn: where many images are under way at once, each on a core
 * of its own, there is nothing to overlap with. */
#include "engine/pipeline.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/thread.h"
#include "io/io.h"

typedef struct gf_stream {
    const gf_stream_job *job;
    gf_source *source;
    gf_report *report;
    gf_job geometry;
    uint64_t bands;
    gf_slot *slots;
    void *run;

    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint64_t submitted; /* bands given to the backend */
    uint64_t released;  /* bands taken by the sink */
    uint64_t filled;    /* bands read; until it has ended, this and the next two are the reader's */
    bool ended;         /* the source was finished */
    double decode_seconds;
    double encode_seconds;
    gf_status status; /* the first failure of either side stops both */
    bool by_backend;  /* and it was the backend's */
    gf_error *error;
} gf_stream;

/* ---- the two sides --------------------------------------------------------------------------- */

/* Waits until *counter reaches `value`; false if the other side failed. */
static bool await(gf_stream *stream, const uint64_t *counter, uint64_t value) {
    pthread_mutex_lock(&stream->lock);
    while (*counter < value && !stream->status)
        pthread_cond_wait(&stream->moved, &stream->lock);
    bool good = !stream->status;
    pthread_mutex_unlock(&stream->lock);
    return good;
}

static void advance(gf_stream *stream, uint64_t *counter) {
    pthread_mutex_lock(&stream->lock);
    ++*counter;
    pthread_cond_broadcast(&stream->moved);
    pthread_mutex_unlock(&stream->lock);
}

/* Of a device and a file that both fail, the file is told of: no other device would mend it. */
static void fail(gf_stream *stream, gf_status status, bool by_backend, const gf_error *error) {
    pthread_mutex_lock(&stream->lock);
    if (!stream->status || (stream->by_backend && !by_backend)) {
        stream->status = status;
        stream->by_backend = by_backend;
        if (stream->error)
            *stream->error = *error;
    }
    pthread_cond_broadcast(&stream->moved);
    pthread_mutex_unlock(&stream->lock);
}

/* Fills a slot: rows shared with the slot before are there or copied from it, the rest is read. */
static gf_status fill_band(gf_stream *stream, uint64_t k, gf_slot *slot, gf_error *error) {
    gf_place_band(&stream->geometry, k, slot);
    uint64_t read_from = slot->in.y0;
    if (k > 0) {
        gf_slot before = {.ring = slot->ring, .out_buffer = slot->out_buffer};
        gf_place_band(&stream->geometry, k - 1, &before);
        const uint64_t had = before.in.y0 + before.in.rows;
        if (had > slot->in.y0) {
            const unsigned char *shared = gf_row(&before.in, slot->in.y0);
            if (shared != slot->in.data) /* a ring that is short of two bands begins within them */
                memmove(slot->in.data, shared, (size_t)(had - slot->in.y0) * slot->in.stride);
            read_from = had;
        }
    }
    uint64_t end = slot->in.y0 + slot->in.rows;
    if (read_from == end)
        return GF_OK;
    return stream->source->ops->read(stream->source, gf_row(&slot->in, read_from), slot->in.stride,
                                     end - read_from, error);
}

/* Reads band k into its slot and lets the backend begin. */
static gf_status send_band(gf_stream *stream, uint64_t k, bool *by_backend, gf_error *error) {
    assert(stream->geometry.slots > 0);
    const double start = gf_now();
    gf_slot *slot = &stream->slots[k % stream->geometry.slots];
    const gf_status status = fill_band(stream, k, slot, error);
    stream->decode_seconds += gf_now() - start;
    *by_backend = !status;
    if (status)
        return status;
    stream->filled++;
    if (stream->job->consumer->filled)
        stream->job->consumer->filled(stream->job->consumer, slot);
    return stream->job->backend->submit(stream->run, slot, error);
}

static gf_status finish_source(gf_stream *stream, gf_error *error) {
    const double start = gf_now();
    const gf_status status = stream->source->ops->finish(stream->source, error);
    stream->decode_seconds += gf_now() - start;
    stream->ended = !status;
    return status;
}

static void *read_bands(void *argument) {
    gf_stream *stream = argument;
    gf_error error = {0};
    gf_status status = GF_OK;
    bool by_backend = false;
    for (uint64_t k = 0; k < stream->bands && !status; k++) {
        if (!await(stream, &stream->released, gf_bands_before(&stream->geometry, k)))
            return NULL;
        status = send_band(stream, k, &by_backend, &error);
        if (!status)
            advance(stream, &stream->submitted);
    }
    if (!status) {
        by_backend = false;
        status = finish_source(stream, &error);
    }
    if (status)
        fail(stream, status, by_backend, &error);
    return NULL;
}

/* Waits for band k, and gives it to the consumer. */
static gf_status take_band(gf_stream *stream, uint64_t k, bool *by_backend, gf_error *error) {
    gf_slot *slot = &stream->slots[k % stream->geometry.slots];
    gf_status status = stream->job->backend->wait(stream->run, slot, error);
    *by_backend = status != GF_OK;
    if (status)
        return status;
    const double start = gf_now();
    status = stream->job->consumer->band(stream->job->consumer, slot, error);
    stream->encode_seconds += gf_now() - start;
    return status;
}

/* After the last band: gives the consumer one state of all that the backend has. */
static gf_status finish_state(gf_stream *stream, gf_error *error) {
    const gf_stream_job *job = stream->job;
    const size_t bytes = (size_t)job->plan->state_bytes;
    void *state = gf_aligned_alloc(1, bytes);
    if (!state)
        return gf_fail_memory(error, job->name, bytes, "what is measured");
    memset(state, 0, bytes);
    gf_status status = bytes ? job->backend->collect(stream->run, state, error) : GF_OK;
    stream->by_backend = status != GF_OK;
    if (!status)
        status = job->consumer->state(job->consumer, state, error);
    free(state);
    return status;
}

static void consume_bands(gf_stream *stream) {
    for (uint64_t k = 0; k < stream->bands; k++) {
        gf_error error = {0};
        bool by_backend;
        if (!await(stream, &stream->submitted, k + 1))
            return;
        gf_status status = take_band(stream, k, &by_backend, &error);
        if (status) {
            fail(stream, status, by_backend, &error);
            return;
        }
        advance(stream, &stream->released);
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Each side in a thread of its own, overlapped. */
static gf_status run_sides(gf_stream *stream, gf_error *error) {
    pthread_t reader;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->moved, NULL);
    const int failed = gf_thread_start(&reader, read_bands, stream);
    if (failed) {
        gf_fail(error, GF_FAILED, "%s: cannot start a thread: %s", stream->job->name,
                strerror(failed));
        stream->status = GF_FAILED;
    } else {
        consume_bands(stream);
        pthread_join(reader, NULL);
    }
    pthread_cond_destroy(&stream->moved);
    pthread_mutex_destroy(&stream->lock);
    return stream->status;
}

/* Both sides in this thread, in turn. The source ends before the last band goes on: what turns out
 * to be damaged there is not written. */
static gf_status run_alone(gf_stream *stream, gf_error *error) {
    gf_status status = GF_OK;
    for (uint64_t k = 0; k < stream->bands && !status; k++) {
        status = send_band(stream, k, &stream->by_backend, error);
        if (!status && k + 1 == stream->bands) {
            stream->by_backend = false;
            status = finish_source(stream, error);
        }
        if (!status)
            status = take_band(stream, k, &stream->by_backend, error);
        stream->released += !status;
    }
    return status;
}

/* ---- what a failed stream leaves ------------------------------------------------------------- */

typedef struct rest_source {
    gf_source base;
    gf_source *further;
    bool ended; /* it was finished before */
    uint32_t inputs;
    gf_rows held;
    uint64_t given; /* of them */
} rest_source;

static gf_status rest_read(gf_source *base, void *dst, size_t stride, uint64_t rows,
                           gf_error *error) {
    rest_source *rest = (rest_source *)base;
    unsigned char *out = dst;
    const size_t row_bytes = gf_row_bytes(&base->format);
    for (; rows > 0 && rest->given < rest->held.rows; rows--, rest->given++, out += stride)
        for (uint32_t i = 0; i < rest->inputs; i++)
            memcpy(out + i * (stride / rest->inputs),
                   gf_row(&rest->held, rest->held.y0 + rest->given) +
                       i * (rest->held.stride / rest->inputs),
                   row_bytes);
    return rows > 0 ? rest->further->ops->read(rest->further, out, stride, rows, error) : GF_OK;
}

static gf_status rest_finish(gf_source *base, gf_error *error) {
    rest_source *rest = (rest_source *)base;
    const gf_status status = rest->ended ? GF_OK : rest->further->ops->finish(rest->further, error);
    base->threads = rest->further->threads;
    base->busy_seconds = rest->further->busy_seconds;
    return status;
}

static void rest_close(gf_source *base) {
    rest_source *rest = (rest_source *)base;
    free(rest->held.data);
    free(rest);
}

/* The rows of band k that are not held yet. */
static void rest_copy_band(const gf_stream *stream, uint64_t k, gf_rows *held) {
    const gf_slot *slot = &stream->slots[k % stream->geometry.slots];
    gf_slot band = {.ring = slot->ring, .out_buffer = slot->out_buffer};
    gf_place_band(&stream->geometry, k, &band);
    const uint64_t end = band.in.y0 + band.in.rows;
    for (uint64_t y = held->y0 + held->rows; y < end; y++, held->rows++)
        memcpy(gf_row(held, y), gf_row(&band.in, y), held->stride);
}

/* All rows from the first that the first of these bands holds to the last of the last one. */
static gf_rows rest_rows(const gf_stream *stream) {
    gf_slot first = {.ring = NULL}, last = first;
    gf_cut_band(&stream->geometry, stream->released, &first);
    gf_cut_band(&stream->geometry, stream->filled - 1, &last);
    return (gf_rows){.stride = stream->geometry.in_stride,
                     .y0 = first.in.y0,
                     .rows = last.in.y0 + last.in.rows - first.in.y0};
}

/* Makes a source of what the bands from `released` on read: first the rows of those that were
 * filled, copied from the ring, of which *bytes are held, then those that the stream's source has
 * not given yet. That one must live as long. NULL if there are none in the ring, or no memory for
 * them. */
static gf_source *rest_open(const gf_stream *stream, uint64_t *bytes) {
    static const gf_source_ops ops = {rest_read, rest_finish, rest_close, NULL};
    *bytes = 0;
    if (stream->filled <= stream->released)
        return NULL;
    gf_rows held = rest_rows(stream);
    const size_t size = (size_t)held.rows * held.stride;
    rest_source *rest = calloc(1, sizeof *rest);
    held.data = malloc(size); /* NOLINT: a band has at least one row */
    if (!rest || !held.data) {
        free(held.data);
        free(rest);
        return NULL;
    }
    held.rows = 0;
    for (uint64_t k = stream->released; k < stream->filled; k++)
        rest_copy_band(stream, k, &held);
    /* The source may be an image of which the plan takes a strip. */
    *rest = (rest_source){.base = {.ops = &ops, .format = stream->geometry.plan->in},
                          .further = stream->source,
                          .ended = stream->ended,
                          .inputs = stream->geometry.plan->inputs,
                          .held = held};
    gf_metadata_init(&rest->base.metadata);
    *bytes = size;
    return &rest->base;
}

static void report_codec(const gf_stream *stream) {
    gf_report *report = stream->report;
    gf_busy_add(&report->busy[GF_DECODING], gf_source_busy(stream->source, stream->decode_seconds));
    gf_busy_add(&report->busy[GF_ENCODING], (gf_busy){stream->encode_seconds, 1});
}

/* What the backend leaves to another: the ring still holds what was read and did not go on. */
static gf_stream_rest leave_rest(const gf_stream *stream) {
    const gf_job *geometry = &stream->geometry;
    const uint64_t done = geometry->first + stream->released * geometry->out_rows;
    const uint64_t end = gf_job_end(geometry);
    gf_stream_rest rest = {.by_backend = stream->by_backend,
                           .begun = true,
                           .done = done < end ? done : end,
                           .band_rows = geometry->out_rows};
    if (rest.by_backend)
        rest.source = rest_open(stream, &rest.bytes);
    return rest;
}

/* Lets consumer and backend prepare for the bands of the geometry. */
static gf_status begin_with_geometry(gf_stream *stream, gf_error *error) {
    const gf_stream_job *job = stream->job;
    gf_consumer *consumer = job->consumer;
    const uint32_t slots = stream->geometry.slots;
    stream->slots = calloc(slots, sizeof *stream->slots);
    if (!stream->slots)
        return gf_fail_memory(error, job->name, slots * sizeof *stream->slots, "the ring");
    for (uint32_t i = 0; i < slots; i++)
        stream->slots[i].index = i;
    gf_status status =
        consumer->begin ? consumer->begin(consumer, &stream->geometry, error) : GF_OK;
    if (!status) {
        status =
            job->backend->begin(job->state, &stream->geometry, stream->slots, &stream->run, error);
        if (status && consumer->end)
            consumer->end(consumer);
    }
    if (status)
        free(stream->slots);
    return status;
}

/* Begins with bands as high, and as many, as there is memory for. */
static gf_status begin(gf_stream *stream, gf_error *error) {
    gf_status status = gf_choose_geometry(stream->job, &stream->geometry, error);
    if (status)
        return status;
    do {
        status = begin_with_geometry(stream, error);
        stream->by_backend = status != GF_OK;
    } while (status == GF_FAILED && gf_shrink_geometry(stream->job, &stream->geometry));
    return status;
}

gf_status gf_stream_run(const gf_stream_job *job, gf_source *source, gf_report *report,
                        gf_stream_rest *rest, gf_error *error) {
    gf_stream stream = {.job = job, .source = source, .report = report, .error = error};
    gf_status status = begin(&stream, error);
    if (status) {
        if (rest)
            *rest = (gf_stream_rest){.by_backend = stream.by_backend, .done = job->first};
        return status;
    }
    const uint64_t bands_before = report->bands;
    stream.bands = gf_count_bands(&stream.geometry);
    report->band_rows = stream.geometry.out_rows;
    report->bands += stream.bands;
    /* With a single band there is nothing to overlap: a thread would only cost its start. */
    const bool alone = job->unthreaded || stream.bands == 1;
    status = alone ? run_alone(&stream, error) : run_sides(&stream, error);
    if (!status && job->filter->measure)
        status = finish_state(&stream, error);
    if (status && rest)
        *rest = leave_rest(&stream);
    if (status && stream.by_backend)
        report->bands = bands_before + stream.released;
    /* A source with threads of its own reports all of its time when it has ended. */
    if (!status || (stream.by_backend && !source->threads))
        report_codec(&stream);
    if (!status)
        job->backend->busy(stream.run, report->busy);
    if (job->consumer->end)
        job->consumer->end(job->consumer);
    job->backend->end(stream.run, stream.slots);
    free(stream.slots);
    return status;
}
