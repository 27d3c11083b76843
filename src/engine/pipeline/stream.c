/* Stream of strips from a source through a backend to a consumer. A reader thread decodes rows into
 * free slots of the ring and submits the slots. The calling thread waits for each strip in order,
 * passes it to the consumer and releases its slot. The backend computes in between.
 *
 * Consecutive strips share input rows, also in the ring: after the reader, each strip is a
 * contiguous part of the ring. Shared rows are copied only when the ring turns.
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
    gf_cut cut;
    gf_slot *slots;
    gf_node_rows *outs;          /* of all slots */
    gf_ring ring;                /* of the source; its memory, the backend's, has all rings */
    size_t second[GF_MAX_NODES]; /* position of the second images of each node there */
    uint64_t placed, known;      /* strips with a place in the ring, and announced; of the reader */
    void *run;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t submitted; /* strips submitted to the backend */
    uint64_t released;  /* strips passed to the consumer */
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

/* Return the rows of the second image of a node for strip k, of input `input`. */
static gf_rows stream_second(const gf_stream *stream, uint32_t node, uint32_t input, uint64_t k) {
    const gf_cut *cut = &stream->cut;
    const uint32_t from = cut->nodes->node[node].from;
    const gf_edge_cut *edge = &cut->edge[from];
    const gf_range rows = gf_cut_rows(cut, from, k);
    const uint64_t count = rows.end - rows.first;
    if (cut->in)
        return gf_rows_part(&cut->in[input], rows.first, count);
    unsigned char *memory =
        stream->ring.memory + stream->second[node] + k % cut->slots * edge->max_rows * edge->stride;
    return (gf_rows){memory, edge->stride, rows.first, count};
}

/* Set the input rows of the next strip without a place; the strips before k are read. Return false
 * while the ring has no room. */
static bool stream_place(gf_stream *stream, uint64_t k, uint64_t released) {
    const gf_cut *cut = &stream->cut;
    const uint64_t next = stream->placed;
    gf_slot *slot = &stream->slots[next % cut->slots];
    const gf_range needs = gf_cut_needs(cut, 0, next);
    if (next - released >= cut->slots)
        return false;
    if (cut->in)
        slot->in = gf_rows_part(&cut->in[0], needs.first, needs.end - needs.first);
    else if (!gf_ring_take(&stream->ring, cut, next, released, next <= k, &slot->in))
        return false;
    for (uint32_t i = 0, input = 1; i < cut->nodes->count; i++)
        if (gf_node_has_second(&cut->nodes->node[i]))
            slot->out[i].second = stream_second(stream, i, input++, next);
    slot->strip = next;
    stream->placed++;
    return true;
}

/* Store the new rows of strip k of each input. Return whether there are any. */
static bool stream_new_rows(const gf_stream *stream, uint64_t k, gf_rows to[GF_MAX_INPUTS]) {
    const gf_cut *cut = &stream->cut;
    const gf_slot *slot = &stream->slots[k % cut->slots];
    const gf_range rows = gf_cut_rows(cut, 0, k);
    uint32_t count = 0;
    bool any = rows.first < rows.end;
    to[count++] = gf_rows_part(&slot->in, rows.first, rows.end - rows.first);
    for (uint32_t i = 0; i < cut->nodes->count; i++)
        if (gf_node_has_second(&cut->nodes->node[i])) {
            any = any || slot->out[i].second.rows;
            to[count++] = slot->out[i].second;
        }
    return any;
}

/* Read strip k into its slot and submit it. */
static bool stream_submit_strip(gf_stream *stream, uint64_t k) {
    assert(stream->placed > k);
    gf_slot *slot = &stream->slots[k % stream->cut.slots];
    gf_consumer *consumer = stream->job->consumer;
    gf_rows to[GF_MAX_INPUTS];
    gf_status status = GF_OK;
    gf_error error = {0};
    if (!stream->cut.in && stream_new_rows(stream, k, to))
        status = gf_inputs_read(stream->inputs, to, &error);
    if (!stream_check(stream, status, false, &error))
        return false;
    if (consumer->filled)
        consumer->filled(consumer, slot);
    status = stream->job->on.backend->submit(stream->run, slot, &error);
    return stream_check(stream, status, true, &error);
}

/* Find places for the strips from k on. Announce the memory of their new rows to the inputs, which
 * may write there ahead. */
static bool stream_look_ahead(gf_stream *stream, uint64_t k) {
    const gf_cut *cut = &stream->cut;
    gf_status status = GF_OK;
    gf_error error = {0};
    pthread_mutex_lock(&stream->lock);
    while (!stream->status && stream->placed <= k && !stream_place(stream, k, stream->released))
        pthread_cond_wait(&stream->changed, &stream->lock);
    const uint64_t released = stream->released;
    const bool running = !stream->status;
    pthread_mutex_unlock(&stream->lock);
    while (running && stream->placed < cut->strips && stream->placed < k + GF_SOURCE_AHEAD)
        if (!stream_place(stream, k, released))
            break;
    for (; running && !status && stream->known < stream->placed; stream->known++) {
        gf_rows to[GF_MAX_INPUTS];
        if (stream_new_rows(stream, stream->known, to))
            status = gf_inputs_announce(stream->inputs, to, &error);
    }
    return running && stream_check(stream, status, false, &error);
}

static bool stream_finish_inputs(gf_stream *stream) {
    gf_error error = {0};
    return stream_check(stream, gf_inputs_finish(stream->inputs, &error), false, &error);
}

static void *stream_read_strips(void *argument) {
    gf_stream *stream = argument;
    for (uint64_t k = 0; k < stream->cut.strips; k++) {
        if (!stream_look_ahead(stream, k) || !stream_submit_strip(stream, k))
            return NULL;
        stream_advance(stream, &stream->submitted);
    }
    stream_finish_inputs(stream);
    return NULL;
}

/* Wait for strip k and pass it to the consumer. */
static bool stream_take_strip(gf_stream *stream, uint64_t k) {
    gf_slot *slot = &stream->slots[k % stream->cut.slots];
    gf_consumer *consumer = stream->job->consumer;
    gf_error error = {0};
    const gf_status status = stream->job->on.backend->wait(stream->run, slot, &error);
    return stream_check(stream, status, true, &error) &&
           stream_check(stream, consumer->strip(consumer, slot, &error), false, &error);
}

/* Pass the merged state of each node that measures to the consumer, after the last strip. */
static void stream_finish_states(gf_stream *stream) {
    const gf_stream_job *job = stream->job;
    bool running = true;
    for (uint32_t i = 0; i < job->nodes->count && running; i++) {
        const gf_plan *plan = job->nodes->node[i].plan;
        const size_t bytes = (size_t)plan->state_bytes;
        gf_error error = {0};
        if (!plan->filter->measure)
            continue;
        void *state = gf_aligned_alloc(1, bytes);
        gf_status status =
            state ? GF_OK : gf_fail_memory(&error, job->name, bytes, "the measurement");
        if (state)
            memset(state, 0, bytes);
        if (state && bytes)
            status = job->on.backend->collect(stream->run, i, state, &error);
        running = stream_check(stream, status, state != NULL, &error) &&
                  stream_check(stream, job->consumer->state(job->consumer, i, state, &error), false,
                               &error);
        free(state);
    }
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
    for (uint64_t k = 0; k < stream->cut.strips; k++) {
        if (!stream_await(stream, &stream->submitted, k + 1) || !stream_take_strip(stream, k))
            break;
        stream_advance(stream, &stream->released);
    }
    pthread_join(reader, NULL);
}

/* Run both sides alternately in the calling thread. The source is finished before the last strip is
 * consumed: if it turns out to be damaged, that strip is not written. */
static void stream_run_unthreaded(gf_stream *stream) {
    for (uint64_t k = 0; k < stream->cut.strips; k++) {
        const bool last = k + 1 == stream->cut.strips;
        (void)stream_place(stream, k, k); /* no strip is in flight */
        if (!stream_submit_strip(stream, k) || (last && !stream_finish_inputs(stream)) ||
            !stream_take_strip(stream, k))
            return;
        stream->released++;
    }
}

/* Prepare consumer and backend for a cut. */
static gf_status stream_begin(gf_stream *stream, gf_error *error) {
    const gf_stream_job *job = stream->job;
    gf_consumer *consumer = job->consumer;
    const gf_cut *cut = &stream->cut;
    const uint32_t nodes = cut->nodes->count;
    stream->slots = calloc(cut->slots, sizeof *stream->slots);
    stream->outs = calloc((size_t)cut->slots * nodes, sizeof *stream->outs);
    gf_status status =
        stream->slots && stream->outs
            ? GF_OK
            : gf_fail_memory(error, job->name, (uint64_t)cut->slots * sizeof *stream->slots,
                             "the ring");
    for (uint32_t i = 0; !status && i < cut->slots; i++) {
        stream->slots[i].index = i;
        stream->slots[i].out = &stream->outs[(size_t)i * nodes];
    }
    stream->ring = (gf_ring){.rows = cut->edge[0].ring_rows};
    (void)gf_cut_ring_bytes(cut, stream->second);
    if (!status && consumer->begin)
        status = consumer->begin(consumer, cut, error);
    if (!status) {
        status = job->on.backend->begin(job->on.state, cut, stream->slots, &stream->ring.memory,
                                        &stream->run, error);
        if (status && consumer->end)
            consumer->end(consumer);
    }
    if (status) {
        free(stream->slots);
        free(stream->outs);
    }
    return status;
}

gf_status gf_stream_run(const gf_stream_job *job, gf_inputs *inputs, gf_report *report,
                        gf_stream_stop *stop, gf_error *error) {
    gf_stream stream = {.job = job, .inputs = inputs, .error = error};
    /* Start with the highest and most numerous strips that memory allows. */
    gf_status status = gf_choose_geometry(job, &stream.cut, error);
    const bool chosen = !status;
    if (chosen)
        do {
            status = stream_begin(&stream, error);
        } while (status == GF_FAILED && gf_shrink_geometry(job, &stream.cut));
    if (status) {
        if (stop)
            *stop = (gf_stream_stop){.by_backend = chosen};
        return status;
    }
    const gf_cut *cut = &stream.cut;
    const uint64_t strips_before = report->strips;
    report->rows_per_strip = cut->height;
    report->strip_bytes = cut->bytes;
    report->strips += cut->strips;
    /* A single strip has nothing to overlap with: the reader thread would only cost its start. */
    const bool unthreaded = job->unthreaded || cut->strips == 1;
    pthread_mutex_init(&stream.lock, NULL);
    pthread_cond_init(&stream.changed, NULL);
    (unthreaded ? stream_run_unthreaded : stream_run_threads)(&stream);
    if (stream.status && stream.known)
        gf_inputs_cancel(inputs);
    if (!stream.status)
        stream_finish_states(&stream);
    pthread_cond_destroy(&stream.changed);
    pthread_mutex_destroy(&stream.lock);
    status = stream.status;
    const uint32_t last = cut->nodes->count;
    const uint64_t done = gf_cut_rows(cut, last, stream.released).first;
    if (status && stop)
        *stop = (gf_stream_stop){.by_backend = stream.by_backend,
                                 .begun = true,
                                 .done = done > cut->edge[last].start ? done : 0,
                                 .device_error = stream.device_error};
    if (status && stream.by_backend)
        report->strips = strips_before + stream.released;
    /* The consumer reports encoding. A failure leaves the time of sources with threads unknown. */
    for (uint32_t i = 0; i < gf_inputs_reading(inputs) && (!status || stream.by_backend); i++)
        if (!status || !inputs->sources[i]->threads)
            gf_busy_add(&report->busy[GF_DECODING],
                        gf_source_busy(inputs->sources[i], inputs->seconds[i]));
    double unread[GF_MAX_NODES] = {0};
    if (!status)
        job->on.backend->busy(stream.run, report->busy, job->seconds ? job->seconds : unread);
    if (job->consumer->end)
        job->consumer->end(job->consumer);
    job->on.backend->end(stream.run);
    free(stream.slots);
    free(stream.outs);
    return status;
}
