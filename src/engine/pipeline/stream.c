/* Stream of strips from a source through a backend to a consumer. A reader thread decodes rows into
 * free slots of the ring and submits the slots. The calling thread waits for each strip in order,
 * passes it to the consumer and releases its slot. The backend computes in between.
 *
 * Strip k computes rows [k*B, (k+1)*B) and reads the rows that these need. Consecutive strips share
 * input rows, also in the ring: after the reader, each strip is a contiguous part of the ring.
 * Shared rows are copied only when the ring wraps around.
 *
 * In unthreaded mode, one thread alternates between both sides. If many images are processed at
 * once, one per core, there is nothing to overlap with. */
#include "engine/pipeline/pipeline.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

typedef struct gf_stream {
    const gf_stream_job *job;
    gf_inputs *inputs;
    gf_cut geometry;
    uint64_t strips;
    gf_slot *slots;
    void *run;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t submitted; /* strips submitted to the backend */
    uint64_t released;  /* strips passed to the consumer */
    uint64_t announced; /* strips whose memory the inputs know; only the reader uses it */
    gf_status status;   /* first failure of either side; stops both */
    bool by_backend;    /* the backend caused it */
    gf_error *error;
    gf_error device_error; /* failure of the device, if any, also if the file failed first */
} gf_stream;

/* ---- the two sides --------------------------------------------------------------------------- */

/* Wait until *counter reaches `value`. Return false if either side failed. */
static bool stream_await(gf_stream *stream, const uint64_t *counter, uint64_t value) {
    pthread_mutex_lock(&stream->lock);
    while (*counter < value && !stream->status)
        pthread_cond_wait(&stream->changed, &stream->lock);
    bool running = !stream->status;
    pthread_mutex_unlock(&stream->lock);
    return running;
}

static void stream_advance(gf_stream *stream, uint64_t *counter) {
    pthread_mutex_lock(&stream->lock);
    ++*counter;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

/* Record the end of a step. A failure stops both sides. If device and file both fail, report the
 * file: another device would not help. Return whether the step has succeeded. */
static bool stream_check(gf_stream *stream, gf_status status, bool by_backend,
                         const gf_error *error) {
    if (!status)
        return true;
    pthread_mutex_lock(&stream->lock);
    if (by_backend && status == GF_NO_BACKEND)
        stream->device_error = *error;
    if (!stream->status || (stream->by_backend && !by_backend)) {
        stream->status = status;
        stream->by_backend = by_backend;
        if (stream->error)
            *stream->error = *error;
    }
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    return false;
}

/* Fill a slot. Rows shared with the previous strip are reused or copied; the others are read. */
static gf_status stream_fill_strip(gf_stream *stream, uint64_t k, gf_slot *slot, gf_error *error) {
    const gf_cut *geometry = &stream->geometry;
    gf_locate_strip(geometry, k, slot);
    if (geometry->in[0].data)
        return GF_OK;
    gf_range rows = {slot->in[0].y0, slot->in[0].y0 + slot->in[0].rows};
    gf_slot previous = *slot;
    if (k > 0)
        gf_locate_strip(geometry, k - 1, &previous);
    const uint64_t read = k > 0 ? previous.in[0].y0 + previous.in[0].rows : rows.first;
    for (uint32_t i = 0; i < geometry->plan->inputs && rows.first < read; i++) {
        const unsigned char *shared = gf_row(&previous.in[i], rows.first);
        /* Wrap-around. In a ring of less than two strips, source and destination overlap. */
        if (shared != slot->in[i].data)
            memmove(slot->in[i].data, shared, (size_t)(read - rows.first) * slot->in[i].stride);
    }
    rows.first = read;
    return rows.first < rows.end ? gf_inputs_read(stream->inputs, slot->in, rows, error) : GF_OK;
}

/* Read strip k into its slot and submit it. */
static bool stream_submit_strip(gf_stream *stream, uint64_t k) {
    assert(stream->geometry.slots > 0);
    gf_slot *slot = &stream->slots[k % stream->geometry.slots];
    gf_consumer *consumer = stream->job->consumer;
    gf_error error = {0};
    if (!stream_check(stream, stream_fill_strip(stream, k, slot, &error), false, &error))
        return false;
    if (consumer->filled)
        consumer->filled(consumer, slot);
    const gf_status status = stream->job->on.backend->submit(stream->run, slot, &error);
    return stream_check(stream, status, true, &error);
}

/* Announce the memory of free slots from strip k on to the inputs. Strips that share rows are left
 * out: their position depends on the strip before. */
static bool stream_announce(gf_stream *stream, uint64_t k) {
    const gf_cut *geometry = &stream->geometry;
    gf_status status = GF_OK;
    gf_error error = {0};
    if (!gf_map_one_to_one(geometry->plan))
        return true;
    pthread_mutex_lock(&stream->lock);
    const uint64_t released = stream->released;
    pthread_mutex_unlock(&stream->lock);
    for (uint64_t j = stream->announced; !status && j < stream->strips && j < k + GF_SOURCE_AHEAD &&
                                         gf_strips_before(geometry, j) <= released;
         j = ++stream->announced) {
        gf_slot slot = stream->slots[j % geometry->slots];
        gf_locate_strip(geometry, j, &slot);
        status = gf_inputs_announce(stream->inputs, slot.in, &error);
    }
    return stream_check(stream, status, false, &error);
}

static bool stream_finish_inputs(gf_stream *stream) {
    gf_error error = {0};
    return stream_check(stream, gf_inputs_finish(stream->inputs, &error), false, &error);
}

static void *stream_read_strips(void *argument) {
    gf_stream *stream = argument;
    for (uint64_t k = 0; k < stream->strips; k++) {
        if (!stream_await(stream, &stream->released, gf_strips_before(&stream->geometry, k)) ||
            !stream_announce(stream, k) || !stream_submit_strip(stream, k))
            return NULL;
        stream_advance(stream, &stream->submitted);
    }
    stream_finish_inputs(stream);
    return NULL;
}

/* Wait for strip k and pass it to the consumer. */
static bool stream_take_strip(gf_stream *stream, uint64_t k) {
    gf_slot *slot = &stream->slots[k % stream->geometry.slots];
    gf_consumer *consumer = stream->job->consumer;
    gf_error error = {0};
    const gf_status status = stream->job->on.backend->wait(stream->run, slot, &error);
    return stream_check(stream, status, true, &error) &&
           stream_check(stream, consumer->strip(consumer, slot, &error), false, &error);
}

/* Pass the merged state of the backend to the consumer, after the last strip. */
static void stream_finish_state(gf_stream *stream) {
    const gf_stream_job *job = stream->job;
    const size_t bytes = (size_t)job->plan->state_bytes;
    gf_error error = {0};
    void *state = gf_aligned_alloc(1, bytes);
    gf_status status = state ? GF_OK : gf_fail_memory(&error, job->name, bytes, "the measurement");
    if (state)
        memset(state, 0, bytes);
    if (state && bytes)
        status = job->on.backend->collect(stream->run, state, &error);
    if (stream_check(stream, status, state != NULL, &error))
        stream_check(stream, job->consumer->state(job->consumer, state, &error), false, &error);
    free(state);
}

/* ---- the whole stream ------------------------------------------------------------------------ */

/* Run each side in its own thread, overlapped. This one consumes. */
static void stream_run_threads(gf_stream *stream) {
    gf_error error = {0};
    pthread_t reader;
    const int failed = gf_thread_start(&reader, stream_read_strips, stream);
    if (failed) {
        (void)gf_fail(&error, GF_FAILED, "%s: cannot start a thread: %s", stream->job->name,
                      strerror(failed));
        stream_check(stream, GF_FAILED, false, &error);
        return;
    }
    for (uint64_t k = 0; k < stream->strips; k++) {
        if (!stream_await(stream, &stream->submitted, k + 1) || !stream_take_strip(stream, k))
            break;
        stream_advance(stream, &stream->released);
    }
    pthread_join(reader, NULL);
}

/* Run both sides alternately in the calling thread. The source is finished before the last strip is
 * consumed: if it turns out to be damaged, that strip is not written. */
static void stream_run_unthreaded(gf_stream *stream) {
    for (uint64_t k = 0; k < stream->strips; k++) {
        const bool last = k + 1 == stream->strips;
        if (!stream_submit_strip(stream, k) || (last && !stream_finish_inputs(stream)) ||
            !stream_take_strip(stream, k))
            return;
        stream->released++;
    }
}

/* Prepare consumer and backend for a geometry. */
static gf_status stream_begin(gf_stream *stream, gf_error *error) {
    const gf_stream_job *job = stream->job;
    gf_consumer *consumer = job->consumer;
    const gf_cut *geometry = &stream->geometry;
    gf_slot *slots = calloc(geometry->slots, sizeof *slots);
    if (!slots)
        return gf_fail_memory(error, job->name, geometry->slots * sizeof *slots, "the ring");
    for (uint32_t i = 0; i < geometry->slots; i++)
        slots[i].index = i;
    stream->slots = slots;
    gf_status status = consumer->begin ? consumer->begin(consumer, geometry, error) : GF_OK;
    if (!status) {
        status = job->on.backend->begin(job->on.state, geometry, slots, &stream->run, error);
        if (status && consumer->end)
            consumer->end(consumer);
    }
    if (status)
        free(slots);
    return status;
}

gf_status gf_stream_run(const gf_stream_job *job, gf_inputs *inputs, gf_report *report,
                        gf_stream_stop *stop, gf_error *error) {
    gf_stream stream = {.job = job, .inputs = inputs, .error = error};
    /* Start with the highest and most numerous strips that memory allows. */
    gf_status status = gf_choose_geometry(job, &stream.geometry, error);
    const bool chosen = !status;
    if (chosen)
        do {
            status = stream_begin(&stream, error);
        } while (status == GF_FAILED && gf_shrink_geometry(job, &stream.geometry));
    if (status) {
        if (stop)
            *stop = (gf_stream_stop){.by_backend = chosen, .done = job->first};
        return status;
    }
    const gf_cut *geometry = &stream.geometry;
    const uint64_t strips_before = report->strips;
    stream.strips = gf_count_strips(geometry);
    report->rows_per_strip = geometry->out_rows;
    report->strips += stream.strips;
    /* A single strip has nothing to overlap with: the reader thread would only cost its start. */
    const bool unthreaded = job->unthreaded || stream.strips == 1;
    pthread_mutex_init(&stream.lock, NULL);
    pthread_cond_init(&stream.changed, NULL);
    (unthreaded ? stream_run_unthreaded : stream_run_threads)(&stream);
    if (stream.status && stream.announced != 0)
        gf_inputs_cancel(inputs);
    if (!stream.status && job->plan->filter->measure)
        stream_finish_state(&stream);
    pthread_cond_destroy(&stream.changed);
    pthread_mutex_destroy(&stream.lock);
    status = stream.status;
    const uint64_t done = geometry->first + stream.released * geometry->out_rows;
    if (status && stop)
        *stop = (gf_stream_stop){.by_backend = stream.by_backend,
                                 .begun = true,
                                 .done = gf_min(done, gf_cut_output(geometry).end),
                                 .device_error = stream.device_error};
    if (status && stream.by_backend)
        report->strips = strips_before + stream.released;
    /* The consumer reports encoding. A failure leaves the time of sources with threads unknown. */
    for (uint32_t i = 0; i < inputs->count && (!status || stream.by_backend); i++)
        if (!status || !inputs->sources[i]->threads)
            gf_busy_add(&report->busy[GF_DECODING],
                        gf_source_busy(inputs->sources[i], inputs->seconds[i]));
    if (!status)
        job->on.backend->busy(stream.run, report->busy);
    if (job->consumer->end)
        job->consumer->end(job->consumer);
    job->on.backend->end(stream.run, stream.slots);
    free(stream.slots);
    return status;
}
