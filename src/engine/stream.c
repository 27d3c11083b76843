/* A reader thread decodes into free slots of the ring and submits them; the calling thread waits
 * for each band in order, encodes it and frees its slot. The backend works in between.
 *
 * Band k computes rows [k*B, (k+1)*B) and holds `halo` rows more on each side. Consecutive bands
 * share 2*halo rows, in the ring too: a band is a contiguous piece of it to everyone after the
 * reader, and only where the ring begins again are the shared rows copied.
 *
 * Unthreaded, one thread does both in turn: where many images are under way at once, each on a core
 * of its own, there is nothing to overlap with. */
#include "engine/stream.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "digest.h"
#include "engine/geometry.h"
#include "engine/rest.h"
#include "error.h"
#include "thread.h"

typedef struct gf_stream {
    const gf_stream_job *job;
    gf_source *source;
    gf_sink *sink;
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

/* A band's rows, less those that went on before. */
static gf_rows new_rows(const gf_stream_job *job, const gf_slot *slot) {
    gf_rows rows = slot->out;
    const uint64_t end = rows.y0 + rows.rows;
    const uint64_t from = job->handed < rows.y0 ? rows.y0 : job->handed < end ? job->handed : end;
    rows.data += (size_t)(from - rows.y0) * rows.stride;
    rows.y0 = from;
    rows.rows = end - from;
    return rows;
}

/* Hands a computed band on: its image to the sink, what was measured in it to the measure. */
static gf_status hand_on(const gf_stream *stream, const gf_slot *slot, gf_error *error) {
    const gf_stream_job *job = stream->job;
    const gf_measure *measure = job->filter->measure;
    const gf_rows rows = new_rows(job, slot);
    gf_status status = GF_OK;
    if (rows.rows == 0)
        return GF_OK;
    assert(!job->plan->has_payload || rows.rows == slot->out.rows);
    if (stream->sink)
        status = stream->sink->ops->write(stream->sink, rows.data, rows.stride, rows.rows, error);
    if (!status && stream->sink && job->digest)
        *job->digest = gf_digest_rows(*job->digest, &rows, gf_row_bytes(&job->plan->out));
    if (!status && job->plan->record)
        status = measure->rows(job->plan, job->data, &rows, error);
    for (uint32_t i = 0; i < slot->payload_pieces && !status; i++)
        status = measure->payload(job->plan, job->data,
                                  slot->payload_buffer + i * slot->payload_stride, error);
    return status;
}

static void tell(const gf_stream *stream, const gf_slot *slot) {
    const gf_stream_job *job = stream->job;
    const gf_listener *listener = job->listener;
    if (!listener || !listener->tell)
        return;
    const uint64_t done = slot->out.y0 + slot->out.rows - listener->first;
    listener->tell(listener->context, &(gf_progress){.in = job->plan->in,
                                                     .done = listener->pass * listener->rows + done,
                                                     .of = listener->passes * listener->rows});
}

/* Waits for band k, and hands it on. */
static gf_status take_band(gf_stream *stream, uint64_t k, bool *by_backend, gf_error *error) {
    gf_slot *slot = &stream->slots[k % stream->geometry.slots];
    gf_status status = stream->job->backend->wait(stream->run, slot, error);
    *by_backend = status != GF_OK;
    if (status)
        return status;
    const double start = gf_now();
    status = hand_on(stream, slot, error);
    stream->encode_seconds += gf_now() - start;
    if (!status)
        tell(stream, slot);
    return status;
}

/* After the last band: one state from all that the backend has, and the measure is complete. */
static gf_status finish_measure(gf_stream *stream, gf_error *error) {
    const gf_stream_job *job = stream->job;
    const gf_plan *plan = job->plan;
    if (!job->filter->measure)
        return GF_OK;
    void *state = gf_aligned_alloc(1, (size_t)plan->state_bytes);
    if (!state)
        return gf_fail_memory(error, job->name, plan->state_bytes, "what is measured");
    memset(state, 0, (size_t)plan->state_bytes);
    gf_status status = plan->state_bytes ? job->backend->collect(stream->run, state, error) : GF_OK;
    stream->by_backend = status != GF_OK;
    if (!status)
        status = job->filter->measure->finish(plan, job->data, state, error);
    free(state);
    return status;
}

static void write_bands(gf_stream *stream) {
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
        write_bands(stream);
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
        rest.source = gf_rest_source(&(gf_left){.geometry = geometry,
                                                .slots = stream->slots,
                                                .released = stream->released,
                                                .filled = stream->filled,
                                                .source = stream->source,
                                                .ended = stream->ended},
                                     &rest.bytes);
    return rest;
}

/* Bands as high, and as many, as the backend has memory for. */
static gf_status begin(gf_stream *stream, gf_error *error) {
    const gf_stream_job *job = stream->job;
    gf_status status = gf_choose_geometry(job, &stream->geometry, error);
    if (status)
        return status;
    do {
        const uint32_t slots = stream->geometry.slots;
        free(stream->slots);
        stream->slots = calloc(slots, sizeof *stream->slots);
        if (!stream->slots)
            return gf_fail_memory(error, job->name, slots * sizeof *stream->slots, "the ring");
        for (uint32_t i = 0; i < slots; i++)
            stream->slots[i].index = i;
        status =
            job->backend->begin(job->state, &stream->geometry, stream->slots, &stream->run, error);
        stream->by_backend = status != GF_OK;
    } while (status == GF_FAILED && gf_shrink_geometry(job, &stream->geometry));
    return status;
}

gf_status gf_stream_run(const gf_stream_job *job, gf_source *source, gf_sink *sink,
                        gf_report *report, gf_stream_rest *rest, gf_error *error) {
    gf_stream stream = {
        .job = job, .source = source, .sink = sink, .report = report, .error = error};
    gf_status status = begin(&stream, error);
    if (status) {
        if (rest)
            *rest = (gf_stream_rest){.by_backend = stream.by_backend, .done = job->first};
        free(stream.slots);
        return status;
    }
    const uint64_t bands_before = report->bands;
    stream.bands = gf_count_bands(&stream.geometry);
    report->band_rows = stream.geometry.out_rows;
    report->bands += stream.bands;
    /* With a single band there is nothing to overlap: a thread would only cost its start. */
    const bool alone = job->unthreaded || stream.bands == 1;
    status = alone ? run_alone(&stream, error) : run_sides(&stream, error);
    if (!status)
        status = finish_measure(&stream, error);
    if (status && rest)
        *rest = leave_rest(&stream);
    if (status && stream.by_backend)
        report->bands = bands_before + stream.released;
    /* A source with threads of its own tells of all its time when it has ended. */
    if (!status || (stream.by_backend && !source->threads))
        report_codec(&stream);
    if (!status)
        job->backend->busy(stream.run, report->busy);
    job->backend->end(stream.run, stream.slots);
    free(stream.slots);
    return status;
}
