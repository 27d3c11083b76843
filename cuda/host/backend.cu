// The cuda backend: one or more devices. Each slot of the ring has its own stream, pinned host
// buffers and device buffers, therefore uploads, kernels and downloads of different strips overlap.
// Slots are assigned to the devices round-robin.
#include "cuda/host/devices.cuh"

#include <stdio.h>
#include <stdlib.h>

#include <algorithm>

struct gf_strip_policy {
    static constexpr uint64_t bytes = uint64_t{4} << 20;
    static constexpr uint64_t max_bytes = uint64_t{16} << 20;    // limit for large images
    static constexpr uint64_t payload_bytes = uint64_t{1} << 20; // payloads may be much larger
    static constexpr uint64_t halo_bytes = uint64_t{1} << 30; // maximum per device, for large halos
    // Strips in flight per device. A strip that shares rows with the next one keeps its slot.
    static constexpr uint32_t slots = 4, halo_slots = 5;
};

// Events of a strip. READY: the stream has finished waiting for the previous strip.
enum gf_cuda_event {
    GF_CUDA_STARTED,
    GF_CUDA_UPLOADED,
    GF_CUDA_READY,
    GF_CUDA_COMPUTED,
    GF_CUDA_DOWNLOADED,
    GF_CUDA_EVENTS
};

// Busy times of a device for one image, in seconds.
struct gf_cuda_timeline {
    cudaEvent_t origin;           // time zero
    double until[GF_STAGE_COUNT]; // end of the time counted for each stage
    double busy[GF_STAGE_COUNT];
};

// Add the time between two completed events, except the part already counted: strips overlap, and a
// strip may have waited for the copy of the previous one. Call it in strip order.
static void timeline_add(gf_cuda_timeline *timeline, gf_stage stage, cudaEvent_t from,
                         cudaEvent_t to, gf_queue *queue) {
    float start = 0, end = 0; // ms
    double *until = &timeline->until[stage];
    gf_queue_call(queue, "cudaEventElapsedTime",
                  cudaEventElapsedTime(&start, timeline->origin, from));
    gf_queue_call(queue, "cudaEventElapsedTime", cudaEventElapsedTime(&end, timeline->origin, to));
    if (queue->status || end * 1e-3 <= *until)
        return;
    timeline->busy[stage] += end * 1e-3 - std::max(start * 1e-3, *until);
    *until = end * 1e-3;
}

// ---- devices and stream contexts ----------------------------------------------------------------

// Buffers of a slot, on the device and on the host. All slots share one ring on the host.
enum {
    GF_CUDA_OUT,
    GF_CUDA_PAYLOAD,
    GF_CUDA_HOST_BUFFERS,
    GF_CUDA_IN = GF_CUDA_HOST_BUFFERS,
    GF_CUDA_SCRATCH,
    GF_CUDA_DEVICE_BUFFERS
};

// Stream context of a slot on one device.
struct gf_cuda_slot {
    int index;  // index of the device in the device list
    int device; // CUDA device ordinal
    cudaStream_t stream;
    cudaEvent_t events[GF_CUDA_EVENTS]; // of the last strip
    gf_storage host[GF_CUDA_HOST_BUFFERS];
    gf_storage memory[GF_CUDA_DEVICE_BUFFERS];
};

struct gf_cuda {
    gf_cuda_devices devices; // first member
    gf_cuda_slot contexts[gf_strip_policy::halo_slots * GF_MAX_DEVICES];
    gf_cuda_timeline timelines[GF_MAX_DEVICES]; // of the current image
    // The filter's state and its constants, on each device.
    gf_storage states[GF_MAX_DEVICES], constants[GF_MAX_DEVICES];
    gf_storage ring;
};

// Free device memory, for a smaller image or another process, or everything. Host memory is
// otherwise kept, because pinning memory is slow.
static void cuda_free(gf_cuda *cuda, bool everything) {
    for (gf_cuda_slot &context : cuda->contexts) {
        if (!context.stream)
            continue;
        cudaSetDevice(context.device);
        for (gf_storage &memory : context.memory)
            gf_memory_free(&memory);
        if (!everything)
            continue;
        for (gf_storage &host : context.host)
            gf_memory_free(&host);
        for (cudaEvent_t event : context.events)
            if (event)
                cudaEventDestroy(event);
        cudaStreamDestroy(context.stream);
    }
    for (int i = 0; i < cuda->devices.own.count; i++) {
        cudaSetDevice(cuda->devices.own.list[i]);
        gf_memory_free(&cuda->states[i]);
        gf_memory_free(&cuda->constants[i]);
        if (everything && cuda->timelines[i].origin)
            cudaEventDestroy(cuda->timelines[i].origin);
    }
    cudaGetLastError(); // clear the error of a failed device, or that was reported before
}

static void cuda_close(void *state) {
    gf_cuda *cuda = static_cast<gf_cuda *>(state);
    const gf_caller_scope scope(cuda->devices.driver);
    cuda_free(cuda, true);
    gf_memory_free(&cuda->ring);
    gf_png_encoder_free(cuda->devices.encoder);
    gf_png_decoder_free(cuda->devices.decoder);
    gf_cuda_workspace_free(cuda->devices.workspace);
    cudaGetLastError();
    free(cuda);
}

// ---- the backend --------------------------------------------------------------------------------

static gf_status cuda_open(const gf_engine_options *options, void **state, gf_error *error) {
    gf_cuda *cuda = static_cast<gf_cuda *>(calloc(1, sizeof *cuda));
    if (!cuda)
        return gf_fail_memory(error, "cuda", sizeof *cuda, "the backend");
    const gf_status status = gf_cuda_start(options, &cuda->devices, error);
    if (status)
        free(cuda);
    else
        *state = cuda;
    return status;
}

static void cuda_describe(const void *state, char *text, size_t size) {
    snprintf(text, size, "%s", static_cast<const gf_cuda *>(state)->devices.names);
}

static gf_strip_request cuda_request(const void *state, const gf_nodes *nodes) {
    const gf_plan *plan = nodes->node[0].plan;
    const uint64_t image = plan->in.height * gf_row_bytes(&plan->in);
    const uint32_t devices =
        static_cast<uint32_t>(static_cast<const gf_cuda *>(state)->devices.own.count);
    gf_strip_request request = {};
    request.bytes = plan->has_payload ? gf_strip_policy::payload_bytes
                                      : std::clamp(image / 64, gf_strip_policy::bytes,
                                                   gf_strip_policy::max_bytes);
    // Pinning memory is slow: limit it by the size of the image.
    request.halos = 8;
    request.max = std::clamp(image / 16, gf_strip_policy::halo_bytes / 16,
                             gf_strip_policy::halo_bytes * devices);
    request.pieces = 1;
    request.slots =
        (gf_map_one_to_one(plan) ? gf_strip_policy::slots : gf_strip_policy::halo_slots) * devices;
    return request;
}

// ---- one image ----------------------------------------------------------------------------------

struct gf_cuda_run {
    gf_cuda *cuda;
    const gf_plan *plan;
    gf_cut cut;
    size_t sizes[GF_CUDA_DEVICE_BUFFERS]; // of the buffers of a slot
    size_t head_bytes;                    // of a payload; 0: the filter has no payload
    const gf_cuda_slot *previous;         // of the last submitted strip; NULL before the first
};

// Return the most input rows of a strip.
static uint64_t cuda_in_rows(const gf_cuda_run *run) {
    return run->cut.edge[0].keep + run->cut.edge[0].max_rows;
}

// Return the number of devices that have a slot.
static uint32_t cuda_used_devices(const gf_cuda_run *run) {
    return std::min(static_cast<uint32_t>(run->cuda->devices.own.count), run->cut.slots);
}

// Clear the state of the filter and upload the constants of the plan on all devices.
static void cuda_prepare_states(gf_cuda_run *run, gf_queue *queue) {
    gf_cuda *cuda = run->cuda;
    const gf_plan *plan = run->plan;
    const size_t bytes = static_cast<size_t>(plan->state_bytes);
    for (int i = 0; i < cuda->devices.own.count && (bytes || plan->constant_bytes); i++) {
        gf_queue_move(queue, cuda->devices.own.list[i], cudaStreamPerThread);
        gf_memory_grow(&cuda->states[i], bytes, GF_MEMORY_DEVICE, queue);
        gf_memory_grow(&cuda->constants[i], plan->constant_bytes, GF_MEMORY_DEVICE, queue);
        gf_queue_clear(queue, cuda->states[i].data, bytes);
        gf_queue_upload(queue, cuda->constants[i].data, plan->constants, plan->constant_bytes);
        // The slots' streams do not wait for this one. Waiting for the device fails during a
        // capture.
        gf_queue_synchronize(queue, "cudaMemset");
    }
}

// Allocate the stream context of a slot. The scratch size is computed here, because the size that a
// library requires may depend on the device.
static void cuda_prepare_slot(gf_cuda_run *run, gf_slot *slot, uint32_t number, gf_queue *queue) {
    gf_cuda *cuda = run->cuda;
    gf_cuda_slot *context = &cuda->contexts[number];
    const gf_filter_cuda *kernels = gf_filter_kernels(run->plan->filter);
    context->index = static_cast<int>(number) % cuda->devices.own.count;
    context->device = cuda->devices.own.list[context->index];
    gf_queue_move(queue, context->device, context->stream);
    gf_stream_create(&context->stream, queue);
    queue->stream = context->stream;
    if (!queue->status && kernels->scratch_bytes)
        run->sizes[GF_CUDA_SCRATCH] = kernels->scratch_bytes(run->plan, cuda_in_rows(run));
    for (cudaEvent_t &event : context->events)
        gf_event_create(&event, cudaEventDefault, queue);
    for (int i = 0; i < GF_CUDA_HOST_BUFFERS; i++)
        gf_memory_grow(&context->host[i], run->sizes[i], GF_MEMORY_HOST, queue);
    for (int i = 0; i < GF_CUDA_DEVICE_BUFFERS; i++)
        gf_memory_grow(&context->memory[i], run->sizes[i], GF_MEMORY_CLEARED, queue);
    const gf_edge_cut *to = &run->cut.edge[1];
    slot->out->rows = {context->host[GF_CUDA_OUT].data, to->stride, 0, 0};
    slot->out->records = context->host[GF_CUDA_OUT].data + to->max_rows * to->stride;
    slot->out->payloads = context->host[GF_CUDA_PAYLOAD].data;
}

static gf_status cuda_begin(void *state, const gf_cut *cut, gf_slot *slots, unsigned char **ring,
                            void **out, gf_error *error) {
    gf_cuda_run *run = static_cast<gf_cuda_run *>(calloc(1, sizeof *run));
    if (!run)
        return gf_fail_memory(error, "cuda", sizeof *run, "a run");
    run->cuda = static_cast<gf_cuda *>(state);
    const gf_plan *plan = run->plan = cut->nodes->node[0].plan;
    const gf_edge_cut *from = &cut->edge[0], *to = &cut->edge[1];
    run->cut = *cut;
    run->sizes[GF_CUDA_IN] = plan->inputs * static_cast<size_t>(cuda_in_rows(run)) * from->stride;
    run->sizes[GF_CUDA_OUT] = static_cast<size_t>(to->max_rows) * (to->stride + plan->record);
    if (plan->has_payload) {
        run->sizes[GF_CUDA_PAYLOAD] = plan->filter->payload->bytes(plan, to->max_rows);
        run->head_bytes = plan->filter->payload->bytes(plan, 0);
    }
    gf_cuda *cuda = run->cuda;
    gf_queue queue = gf_queue_on(nullptr, "cuda", error);
    cuda_prepare_states(run, &queue);
    gf_queue_move(&queue, cuda->devices.own.list[0], nullptr);
    gf_memory_grow(&cuda->ring, plan->inputs * static_cast<size_t>(from->ring_rows) * from->stride,
                   GF_MEMORY_HOST, &queue);
    for (uint32_t i = 0; i < cut->slots; i++)
        cuda_prepare_slot(run, &slots[i], i, &queue);
    // Start the timelines. Slot i < devices computes the first strip of device i.
    for (uint32_t i = 0; i < cuda_used_devices(run); i++) {
        gf_queue_move(&queue, cuda->contexts[i].device, cuda->contexts[i].stream);
        cuda->timelines[i] = gf_cuda_timeline{cuda->timelines[i].origin, {}, {}};
        gf_event_create(&cuda->timelines[i].origin, cudaEventDefault, &queue);
        gf_queue_record(&queue, cuda->timelines[i].origin);
    }
    if (queue.status) {
        cuda_free(cuda, false);
        free(run);
        return queue.status;
    }
    *ring = cuda->ring.data;
    *out = run;
    return GF_OK;
}

// Return the queue of a slot, with its device current.
static gf_queue cuda_queue_of(const gf_cuda_run *run, const gf_cuda_slot *context,
                              gf_error *error) {
    gf_queue queue = gf_queue_on(nullptr, run->plan->filter->info.name, error);
    gf_queue_move(&queue, context->device, context->stream);
    return queue;
}

static gf_status cuda_submit(void *state, gf_slot *slot, gf_error *error) {
    gf_cuda_run *run = static_cast<gf_cuda_run *>(state);
    const gf_cuda_slot *context = &run->cuda->contexts[slot->index];
    const gf_plan *plan = run->plan;
    const gf_range rows = gf_cut_rows(&run->cut, 1, slot->strip);
    gf_node_rows *out = slot->out;
    out->rows.y0 = rows.first;
    out->rows.rows = rows.end - rows.first;
    out->payload_pieces = plan->has_payload && out->rows.rows ? 1 : 0;
    if (out->rows.rows == 0)
        return GF_OK;
    gf_strip strip = gf_slot_strip(plan, slot->in, out);
    const size_t image_bytes = static_cast<size_t>(cuda_in_rows(run)) * run->cut.edge[0].stride;
    for (uint32_t i = 0; i < plan->inputs; i++)
        strip.in[i].data = context->memory[GF_CUDA_IN].data + i * image_bytes;
    strip.out.data = context->memory[GF_CUDA_OUT].data;
    strip.records = strip.out.data + (out->records - out->rows.data);
    strip.state = run->cuda->states[context->index].data;
    strip.payload = context->memory[GF_CUDA_PAYLOAD].data;
    strip.constants = run->cuda->constants[context->index].data;
    gf_queue queue = cuda_queue_of(run, context, error);
    gf_queue_record(&queue, context->events[GF_CUDA_STARTED]);
    for (uint32_t i = 0; i < plan->inputs; i++)
        gf_queue_upload(&queue, strip.in[i].data, slot->in[i].data,
                        static_cast<size_t>(strip.in[i].rows) * strip.in[i].stride);
    gf_queue_record(&queue, context->events[GF_CUDA_UPLOADED]);
    // Wait for the previous strip. If it was computed on another device, copy the state.
    if (plan->ordered && run->previous) {
        const gf_cuda_slot *previous = run->previous;
        gf_queue_follow(&queue, previous->events[GF_CUDA_COMPUTED]);
        if (previous->device != context->device)
            gf_queue_call(
                &queue, "cudaMemcpyPeerAsync",
                cudaMemcpyPeerAsync(strip.state, context->device,
                                    run->cuda->states[previous->index].data, previous->device,
                                    static_cast<size_t>(plan->state_bytes), context->stream));
    }
    gf_queue_record(&queue, context->events[GF_CUDA_READY]);
    gf_filter_kernels(plan->filter)
        ->launch(plan, &strip, context->memory[GF_CUDA_SCRATCH].data, &queue);
    gf_queue_record(&queue, context->events[GF_CUDA_COMPUTED]);
    run->previous = context;
    gf_queue_download(&queue, out->rows.data, strip.out.data, strip.out.rows * strip.out.stride);
    gf_queue_download(&queue, out->records, strip.records, strip.out.rows * plan->record);
    gf_queue_download(&queue, out->payloads, strip.payload, run->head_bytes);
    gf_queue_record(&queue, context->events[GF_CUDA_DOWNLOADED]);
    return queue.status;
}

static gf_status cuda_wait(void *state, gf_slot *slot, gf_error *error) {
    static const struct {
        gf_stage stage;
        gf_cuda_event from, to;
    } intervals[] = {{GF_UPLOADING, GF_CUDA_STARTED, GF_CUDA_UPLOADED},
                     {GF_COMPUTING, GF_CUDA_READY, GF_CUDA_COMPUTED},
                     {GF_DOWNLOADING, GF_CUDA_COMPUTED, GF_CUDA_DOWNLOADED}};
    gf_cuda_run *run = static_cast<gf_cuda_run *>(state);
    const gf_cuda_slot *context = &run->cuda->contexts[slot->index];
    gf_cuda_timeline *timeline = &run->cuda->timelines[context->index];
    const cudaEvent_t *events = context->events;
    unsigned char *payload = slot->out->payloads;
    if (slot->out->rows.rows == 0)
        return GF_OK;
    gf_queue queue = cuda_queue_of(run, context, error);
    gf_queue_synchronize(&queue, "kernel execution");
    for (const auto &interval : intervals)
        timeline_add(timeline, interval.stage, events[interval.from], events[interval.to], &queue);
    const size_t head = run->head_bytes;
    if (queue.status || !head)
        return queue.status;
    // Download the rest of the payload. Check its size: a wrong one would overwrite other memory.
    const size_t used = run->plan->filter->payload->used(run->plan, payload);
    if (used < head || used > run->sizes[GF_CUDA_PAYLOAD])
        return gf_fail(error, GF_NO_BACKEND,
                       "cuda: the device returned an invalid sample count; use --backend cpu");
    gf_queue_record(&queue, events[GF_CUDA_STARTED]);
    gf_queue_download(&queue, payload + head, context->memory[GF_CUDA_PAYLOAD].data + head,
                      used - head);
    gf_queue_record(&queue, events[GF_CUDA_DOWNLOADED]);
    gf_queue_synchronize(&queue, "download");
    timeline_add(timeline, GF_DOWNLOADING, events[GF_CUDA_STARTED], events[GF_CUDA_DOWNLOADED],
                 &queue);
    return queue.status;
}

static void cuda_busy(void *state, gf_busy busy[GF_STAGE_COUNT]) {
    const gf_cuda_run *run = static_cast<const gf_cuda_run *>(state);
    for (int stage = GF_UPLOADING; stage <= GF_DOWNLOADING; stage++) {
        gf_busy all = {0, cuda_used_devices(run)};
        for (uint32_t i = 0; i < all.workers; i++)
            all.seconds += run->cuda->timelines[i].busy[stage];
        gf_busy_add(&busy[stage], all);
    }
}

static gf_status cuda_collect(void *state, uint32_t, void *total, gf_error *error) {
    const gf_cuda_run *run = static_cast<const gf_cuda_run *>(state);
    const gf_plan *plan = run->plan;
    const size_t bytes = static_cast<size_t>(plan->state_bytes);
    const gf_cuda_devices *devices = &run->cuda->devices;
    gf_queue queue = gf_queue_on(nullptr, "cuda", error);
    // An ordered state has passed through all strips.
    void *part = plan->ordered ? total : malloc(bytes);
    if (!part)
        return gf_fail_memory(error, "cuda", bytes, "the state");
    for (int i = 0; i < devices->own.count && !queue.status; i++) {
        if (plan->ordered && i != run->previous->index)
            continue;
        gf_queue_move(&queue, devices->own.list[i], cudaStreamPerThread);
        gf_queue_download(&queue, part, run->cuda->states[i].data, bytes);
        gf_queue_synchronize(&queue, "download");
        if (!queue.status && !plan->ordered)
            plan->filter->measure->merge(plan, total, part);
    }
    if (!plan->ordered)
        free(part);
    return queue.status;
}

static void cuda_end(void *state) {
    gf_cuda_run *run = static_cast<gf_cuda_run *>(state);
    for (uint32_t i = 0; i < run->cut.slots; i++) {
        cudaSetDevice(run->cuda->contexts[i].device);
        cudaStreamSynchronize(run->cuda->contexts[i].stream);
    }
    cudaGetLastError(); // errors were reported when the strip was awaited
    free(run);
}

extern "C" const gf_backend gf_backend_cuda = {
    "cuda",     cuda_open,     cuda_close,      cuda_describe, cuda_request,
    cuda_begin, cuda_submit,   cuda_wait,       cuda_busy,     cuda_collect,
    cuda_end,   &gf_cuda_jobs, &gf_cuda_memory, &gf_cuda_png,  gf_cuda_list,
};
