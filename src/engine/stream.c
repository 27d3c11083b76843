/* A reader thread decodes into free slots of the ring and submits them; the calling thread waits
 * for each strip in order, gives it to the consumer and frees its slot. The backend works in
 * between.
 *
 * Strip k computes rows [k*B, (k+1)*B) and holds `halo` rows more on each side. Consecutive strips
 * share 2*halo rows, in the ring too: a strip is a contiguous piece of it to everyone after the
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
    uint64_t strips;
    gf_slot *slots;
    void *run;

    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint64_t submitted;    /* strips given to the backend */
    uint64_t released;     /* strips taken by the sink */
    double decode_seconds; /* the reader's */
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
static gf_status fill_strip(gf_stream *stream, uint64_t k, gf_slot *slot, gf_error *error) {
    gf_locate_strip(&stream->geometry, k, slot);
    uint64_t read_from = slot->in.y0;
    if (k > 0) {
        gf_slot before = {.ring = slot->ring, .out_buffer = slot->out_buffer};
        gf_locate_strip(&stream->geometry, k - 1, &before);
        const uint64_t had = before.in.y0 + before.in.rows;
        if (had > slot->in.y0) {
            const unsigned char *shared = gf_row(&before.in, slot->in.y0);
            if (shared != slot->in.data) /* a ring that is short of two strips begins within them */
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

/* Reads strip k into its slot and lets the backend begin. */
static gf_status send_strip(gf_stream *stream, uint64_t k, bool *by_backend, gf_error *error) {
    assert(stream->geometry.slots > 0);
    const double start = gf_now();
    gf_slot *slot = &stream->slots[k % stream->geometry.slots];
    const gf_status status = fill_strip(stream, k, slot, error);
    stream->decode_seconds += gf_now() - start;
    *by_backend = !status;
    if (status)
        return status;
    if (stream->job->consumer->filled)
        stream->job->consumer->filled(stream->job->consumer, slot);
    return stream->job->backend->submit(stream->run, slot, error);
}

static gf_status finish_source(gf_stream *stream, gf_error *error) {
    const double start = gf_now();
    const gf_status status = stream->source->ops->finish(stream->source, error);
    stream->decode_seconds += gf_now() - start;
    return status;
}

static void *read_strips(void *argument) {
    gf_stream *stream = argument;
    gf_error error = {0};
    gf_status status = GF_OK;
    bool by_backend = false;
    for (uint64_t k = 0; k < stream->strips && !status; k++) {
        if (!await(stream, &stream->released, gf_strips_before(&stream->geometry, k)))
            return NULL;
        status = send_strip(stream, k, &by_backend, &error);
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

/* Waits for strip k, and gives it to the consumer. */
static gf_status take_strip(gf_stream *stream, uint64_t k, bool *by_backend, gf_error *error) {
    gf_slot *slot = &stream->slots[k % stream->geometry.slots];
    gf_status status = stream->job->backend->wait(stream->run, slot, error);
    *by_backend = status != GF_OK;
    if (status)
        return status;
    const double start = gf_now();
    status = stream->job->consumer->strip(stream->job->consumer, slot, error);
    stream->encode_seconds += gf_now() - start;
    return status;
}

/* After the last strip: gives the consumer one state of all that the backend has. */
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

static void consume_strips(gf_stream *stream) {
    for (uint64_t k = 0; k < stream->strips; k++) {
        gf_error error = {0};
        bool by_backend;
        if (!await(stream, &stream->submitted, k + 1))
            return;
        gf_status status = take_strip(stream, k, &by_backend, &error);
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
    const int failed = gf_thread_start(&reader, read_strips, stream);
    if (failed) {
        gf_fail(error, GF_FAILED, "%s: cannot start a thread: %s", stream->job->name,
                strerror(failed));
        stream->status = GF_FAILED;
    } else {
        consume_strips(stream);
        pthread_join(reader, NULL);
    }
    pthread_cond_destroy(&stream->moved);
    pthread_mutex_destroy(&stream->lock);
    return stream->status;
}

/* Both sides in this thread, in turn. The source ends before the last strip goes on: what turns out
 * to be damaged there is not written. */
static gf_status run_alone(gf_stream *stream, gf_error *error) {
    gf_status status = GF_OK;
    for (uint64_t k = 0; k < stream->strips && !status; k++) {
        status = send_strip(stream, k, &stream->by_backend, error);
        if (!status && k + 1 == stream->strips) {
            stream->by_backend = false;
            status = finish_source(stream, error);
        }
        if (!status)
            status = take_strip(stream, k, &stream->by_backend, error);
        stream->released += !status;
    }
    return status;
}

static void report_codec(const gf_stream *stream) {
    gf_report *report = stream->report;
    gf_busy_add(&report->busy[GF_DECODING], gf_source_busy(stream->source, stream->decode_seconds));
    gf_busy_add(&report->busy[GF_ENCODING], (gf_busy){stream->encode_seconds, 1});
}

/* Says how far the consumer got. */
static gf_stream_rest leave_rest(const gf_stream *stream) {
    const gf_job *geometry = &stream->geometry;
    const uint64_t done = geometry->first + stream->released * geometry->out_rows;
    const uint64_t end = gf_job_end(geometry);
    return (gf_stream_rest){.by_backend = stream->by_backend,
                            .begun = true,
                            .done = done < end ? done : end,
                            .rows_per_strip = geometry->out_rows};
}

/* Lets consumer and backend prepare for the strips of the geometry. */
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

/* Begins with strips as high, and as many, as there is memory for. */
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
    const uint64_t strips_before = report->strips;
    stream.strips = gf_count_strips(&stream.geometry);
    report->rows_per_strip = stream.geometry.out_rows;
    report->strips += stream.strips;
    /* With a single strip there is nothing to overlap: a thread would only cost its start. */
    const bool alone = job->unthreaded || stream.strips == 1;
    status = alone ? run_alone(&stream, error) : run_sides(&stream, error);
    if (!status && job->filter->measure)
        status = finish_state(&stream, error);
    if (status && rest)
        *rest = leave_rest(&stream);
    if (status && stream.by_backend)
        report->strips = strips_before + stream.released;
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
