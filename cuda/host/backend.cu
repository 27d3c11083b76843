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

// Events of a strip. COMPUTED: the stream has finished waiting for the previous strip; COMPUTED +
// i: i nodes have been computed.
enum gf_cuda_event {
    GF_CUDA_STARTED,
    GF_CUDA_UPLOADED,
    GF_CUDA_DOWNLOADED,
    GF_CUDA_COMPUTED,
    GF_CUDA_EVENTS = GF_CUDA_COMPUTED + GF_MAX_NODES + 1
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

// Stream context of a slot on one device.
struct gf_cuda_slot {
    int index;  // index of the device in the device list
    int device; // CUDA device ordinal
    cudaStream_t stream;
    cudaEvent_t events[GF_CUDA_EVENTS]; // of the last strip
    gf_storage host, memory, scratch;   // all slots share one ring on the host
};

struct gf_cuda {
    gf_cuda_devices devices; // first member
    gf_cuda_slot contexts[gf_strip_policy::halo_slots * GF_MAX_DEVICES];
    gf_cuda_timeline timelines[GF_MAX_DEVICES]; // of the current image
    gf_storage states[GF_MAX_DEVICES];          // states and constants of the filters
    gf_storage ring;
};

// Free device memory, for a smaller image or another process, or everything. Host memory is
// otherwise kept, because pinning memory is slow.
static void cuda_free(gf_cuda *cuda, bool everything) {
    for (gf_cuda_slot &context : cuda->contexts) {
        if (!context.stream)
            continue;
        cudaSetDevice(context.device);
        gf_memory_free(&context.memory);
        gf_memory_free(&context.scratch);
        if (!everything)
            continue;
        gf_memory_free(&context.host);
        for (cudaEvent_t event : context.events)
            if (event)
                cudaEventDestroy(event);
        cudaStreamDestroy(context.stream);
    }
    for (int i = 0; i < cuda->devices.own.count; i++) {
        cudaSetDevice(cuda->devices.own.list[i]);
        gf_memory_free(&cuda->states[i]);
        if (everything && cuda->timelines[i].origin)
            cudaEventDestroy(cuda->timelines[i].origin);
    }
    cudaGetLastError(); // clear the error of a failed device, or that was reported before
}

static void cuda_close(void *state) {
    gf_cuda *cuda = static_cast<gf_cuda *>(state);
    const gf_caller_scope scope(cuda->devices.driver);
    cuda_free(cuda, true);
    cudaSetDevice(cuda->devices.own.list[0]);
    gf_memory_free(&cuda->ring);
    gf_png_encoder_free(cuda->devices.encoder);
    gf_png_decoder_free(cuda->devices.decoder);
    gf_cuda_workspace_free(&cuda->devices);
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
    const gf_format *in = &nodes->node[0].plan->in;
    const uint64_t image = in->height * gf_row_bytes(in);
    const uint32_t devices =
        static_cast<uint32_t>(static_cast<const gf_cuda *>(state)->devices.own.count);
    bool has_payload = false, overlaps = false;
    for (uint32_t i = 0; i < nodes->count; i++) {
        has_payload = has_payload || nodes->node[i].plan->has_payload;
        overlaps = overlaps || !gf_map_one_to_one(nodes->node[i].plan);
    }
    gf_strip_request request = {};
    request.bytes =
        has_payload ? gf_strip_policy::payload_bytes
                    : std::clamp(image / 64, gf_strip_policy::bytes, gf_strip_policy::max_bytes);
    // Pinning memory is slow: limit it by the size of the image.
    request.halos = 8;
    request.max = std::clamp(image / 16, gf_strip_policy::halo_bytes / 16,
                             gf_strip_policy::halo_bytes * devices);
    request.pieces = 1;
    request.apart = true;
    request.slots = (overlaps ? gf_strip_policy::halo_slots : gf_strip_policy::slots) * devices;
    return request;
}

// ---- one image ----------------------------------------------------------------------------------

// Positions of a node's memory in the buffers of a slot, and on each device.
struct gf_cuda_node {
    const gf_plan *plan;
    size_t edge, second; // rows of the edge that it makes, and of its second image
    size_t records, payload;
    size_t host_rows, host_records, host_payload;
    size_t head, capacity;   // bytes of a payload: least and most; 0: the filter has none
    size_t state, constants; // in states
    double seconds;          // of computing, summed over strips
};

struct gf_cuda_run {
    gf_cuda *cuda;
    gf_cut cut;
    size_t host_bytes, memory_bytes, scratch_bytes; // of a slot
    size_t state_bytes;                             // of the states and constants of all nodes
    const gf_cuda_slot *previous; // of the last submitted strip; NULL before the first
    gf_cuda_node nodes[];
};

// Return the most rows of an edge in a strip.
static size_t cuda_rows(const gf_cuda_run *run, uint32_t edge) {
    return static_cast<size_t>(run->cut.edge[edge].keep + run->cut.edge[edge].max_rows);
}

// Reserve aligned bytes of a buffer, and return their position.
static size_t cuda_reserve(size_t *size, size_t bytes) {
    const size_t at = *size;
    *size += gf_align(bytes);
    return at;
}

static void cuda_lay_out(gf_cuda_run *run) {
    const gf_nodes *nodes = run->cut.nodes;
    size_t *memory = &run->memory_bytes, *host = &run->host_bytes;
    cuda_reserve(memory, cuda_rows(run, 0) * run->cut.edge[0].stride);
    for (uint32_t i = 0; i < nodes->count; i++) {
        gf_cuda_node *node = &run->nodes[i];
        const gf_plan *plan = node->plan = nodes->node[i].plan;
        const gf_edge_cut *edge = &run->cut.edge[i + 1];
        const size_t rows = static_cast<size_t>(edge->max_rows), records = rows * plan->record;
        const bool written = nodes->written >> (i + 1) & 1;
        const uint32_t from = nodes->node[i].from;
        if (gf_node_has_second(&nodes->node[i]))
            node->second = cuda_reserve(memory, cuda_rows(run, from) * run->cut.edge[from].stride);
        node->edge = cuda_reserve(memory, cuda_rows(run, i + 1) * edge->stride);
        node->records = cuda_reserve(memory, records);
        node->host_rows = cuda_reserve(host, written ? rows * edge->stride : 0);
        node->host_records = cuda_reserve(host, records);
        if (plan->has_payload) {
            node->head = plan->filter->payload->bytes(plan, 0);
            node->capacity = plan->filter->payload->bytes(plan, edge->max_rows);
        }
        node->payload = cuda_reserve(memory, node->capacity);
        node->host_payload = cuda_reserve(host, node->capacity);
        node->state = cuda_reserve(&run->state_bytes, static_cast<size_t>(plan->state_bytes));
        node->constants = cuda_reserve(&run->state_bytes, plan->constant_bytes);
    }
}

// Return the number of devices that have a slot.
static uint32_t cuda_used_devices(const gf_cuda_run *run) {
    return std::min(static_cast<uint32_t>(run->cuda->devices.own.count), run->cut.slots);
}

// Clear the states of the filters and upload the constants of the plans on all devices.
static void cuda_prepare_states(gf_cuda_run *run, gf_queue *queue) {
    gf_cuda *cuda = run->cuda;
    for (int i = 0; i < cuda->devices.own.count && run->state_bytes; i++) {
        gf_queue_move(queue, cuda->devices.own.list[i], cudaStreamPerThread);
        gf_memory_grow(&cuda->states[i], run->state_bytes, GF_MEMORY_DEVICE, queue);
        gf_queue_clear(queue, cuda->states[i].data, run->state_bytes);
        for (uint32_t n = 0; n < run->cut.nodes->count; n++)
            gf_queue_upload(queue, cuda->states[i].data + run->nodes[n].constants,
                            run->nodes[n].plan->constants, run->nodes[n].plan->constant_bytes);
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
    context->index = static_cast<int>(number) % cuda->devices.own.count;
    context->device = cuda->devices.own.list[context->index];
    gf_queue_move(queue, context->device, context->stream);
    gf_stream_create(&context->stream, queue);
    queue->stream = context->stream;
    for (uint32_t i = 0; i < run->cut.nodes->count && !queue->status; i++)
        run->scratch_bytes = std::max(
            run->scratch_bytes,
            gf_scratch_bytes(run->nodes[i].plan, cuda_rows(run, run->cut.nodes->node[i].from)));
    for (uint32_t i = 0; i <= GF_CUDA_COMPUTED + run->cut.nodes->count; i++)
        gf_event_create(&context->events[i], cudaEventDefault, queue);
    gf_memory_grow(&context->host, run->host_bytes, GF_MEMORY_HOST, queue);
    gf_memory_grow(&context->memory, run->memory_bytes, GF_MEMORY_CLEARED, queue);
    gf_memory_grow(&context->scratch, run->scratch_bytes, GF_MEMORY_CLEARED, queue);
    for (uint32_t i = 0; i < run->cut.nodes->count; i++) {
        unsigned char *out = context->host.data;
        slot->out[i].rows = {out + run->nodes[i].host_rows, run->cut.edge[i + 1].stride, 0, 0};
        slot->out[i].records = out + run->nodes[i].host_records;
        slot->out[i].payloads = out + run->nodes[i].host_payload;
    }
}

static gf_status cuda_begin(void *state, const gf_cut *cut, gf_slot *slots, unsigned char **ring,
                            void **out, gf_error *error) {
    const size_t size = sizeof(gf_cuda_run) + cut->nodes->count * sizeof(gf_cuda_node);
    gf_cuda_run *run = static_cast<gf_cuda_run *>(calloc(1, size));
    if (!run)
        return gf_fail_memory(error, "cuda", size, "a run");
    gf_cuda *cuda = run->cuda = static_cast<gf_cuda *>(state);
    run->cut = *cut;
    cuda_lay_out(run);
    gf_queue queue = gf_queue_on(nullptr, "cuda", error);
    cuda_prepare_states(run, &queue);
    gf_queue_move(&queue, cuda->devices.own.list[0], nullptr);
    size_t second[GF_MAX_NODES];
    gf_memory_grow(&cuda->ring, gf_cut_ring_bytes(cut, second), GF_MEMORY_HOST, &queue);
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
static gf_queue cuda_queue_of(const gf_cuda_slot *context, gf_error *error) {
    gf_queue queue = gf_queue_on(nullptr, "cuda", error);
    gf_queue_move(&queue, context->device, context->stream);
    return queue;
}

// Wait for the previous strip. If it was computed on another device, copy the states.
static void cuda_follow(const gf_cuda_run *run, const gf_cuda_slot *context, gf_queue *queue) {
    const gf_cuda_slot *previous = run->previous;
    const uint32_t count = run->cut.nodes->count;
    for (uint32_t i = 0; i < count && previous; i++) {
        const gf_cuda_node *node = &run->nodes[i];
        if (!node->plan->ordered)
            continue;
        gf_queue_follow(queue, previous->events[GF_CUDA_COMPUTED + count]);
        if (previous->device != context->device)
            gf_queue_call(queue, "cudaMemcpyPeerAsync",
                          cudaMemcpyPeerAsync(
                              run->cuda->states[context->index].data + node->state, context->device,
                              run->cuda->states[previous->index].data + node->state,
                              previous->device, static_cast<size_t>(node->plan->state_bytes),
                              context->stream));
    }
}

static gf_status cuda_submit(void *state, gf_slot *slot, gf_error *error) {
    gf_cuda_run *run = static_cast<gf_cuda_run *>(state);
    gf_cuda *cuda = run->cuda;
    const gf_cuda_slot *context = &cuda->contexts[slot->index];
    const uint32_t count = run->cut.nodes->count;
    unsigned char *memory = context->memory.data, *states = cuda->states[context->index].data;
    gf_range needs[GF_MAX_EDGES];
    gf_rows rows[GF_MAX_EDGES]; // of each edge on the device
    gf_cut_alone(&run->cut, slot->strip, needs);
    for (uint32_t e = 0; e <= count; e++)
        rows[e] = {memory + (e ? run->nodes[e - 1].edge : 0), run->cut.edge[e].stride,
                   needs[e].first, needs[e].end - needs[e].first};
    for (uint32_t i = 0; i < count; i++) {
        const gf_range out = gf_cut_rows(&run->cut, i + 1, slot->strip);
        slot->out[i].rows.y0 = out.first;
        slot->out[i].rows.rows = out.end - out.first;
        slot->out[i].payload_pieces = run->nodes[i].head && out.first < out.end ? 1 : 0;
    }
    if (rows[0].rows == 0)
        return GF_OK;
    gf_queue queue = cuda_queue_of(context, error);
    gf_queue_record(&queue, context->events[GF_CUDA_STARTED]);
    gf_queue_upload(&queue, memory, gf_row(&slot->in, rows[0].y0),
                    static_cast<size_t>(rows[0].rows) * rows[0].stride);
    for (uint32_t i = 0; i < count; i++)
        if (slot->out[i].second.data)
            gf_queue_upload(&queue, memory + run->nodes[i].second, slot->out[i].second.data,
                            slot->out[i].second.rows * slot->out[i].second.stride);
    gf_queue_record(&queue, context->events[GF_CUDA_UPLOADED]);
    cuda_follow(run, context, &queue);
    for (uint32_t i = 0; i < count; i++) {
        const gf_cuda_node *node = &run->nodes[i];
        gf_strip strip = {};
        gf_queue_record(&queue, context->events[GF_CUDA_COMPUTED + i]);
        if (rows[i + 1].rows == 0)
            continue;
        strip.in[0] = rows[run->cut.nodes->node[i].from];
        strip.in[1] = slot->out[i].second;
        strip.in[1].data = memory + node->second;
        strip.out = rows[i + 1];
        strip.records = memory + node->records;
        strip.state = states + node->state;
        strip.payload = memory + node->payload;
        strip.constants = states + node->constants;
        queue.name = node->plan->filter->info.name;
        gf_filter_kernels(node->plan->filter)
            ->launch(node->plan, &strip, context->scratch.data, &queue);
    }
    gf_queue_record(&queue, context->events[GF_CUDA_COMPUTED + count]);
    run->previous = context;
    for (uint32_t i = 0; i < count; i++) {
        const gf_cuda_node *node = &run->nodes[i];
        const gf_node_rows *out = &slot->out[i];
        if (out->rows.rows == 0 || rows[i + 1].rows == 0)
            continue;
        if (run->cut.nodes->written >> (i + 1) & 1)
            gf_queue_download(&queue, out->rows.data, gf_row(&rows[i + 1], out->rows.y0),
                              out->rows.rows * out->rows.stride);
        gf_queue_download(&queue, out->records, memory + node->records,
                          out->rows.rows * node->plan->record);
        gf_queue_download(&queue, out->payloads, memory + node->payload, node->head);
    }
    gf_queue_record(&queue, context->events[GF_CUDA_DOWNLOADED]);
    return queue.status;
}

// Download the rest of the payloads. Check their sizes: a wrong one would overwrite other memory.
static gf_status cuda_wait_payloads(gf_cuda_run *run, const gf_slot *slot, gf_queue *queue) {
    const gf_cuda_slot *context = &run->cuda->contexts[slot->index];
    const cudaEvent_t *events = context->events;
    bool any = false;
    gf_queue_record(queue, events[GF_CUDA_STARTED]);
    for (uint32_t i = 0; i < run->cut.nodes->count; i++) {
        const gf_cuda_node *node = &run->nodes[i];
        unsigned char *payload = slot->out[i].payloads;
        if (!slot->out[i].payload_pieces)
            continue;
        const size_t used = node->plan->filter->payload->used(node->plan, payload);
        if (used < node->head || used > node->capacity)
            return gf_fail(queue->error, GF_NO_BACKEND,
                           "cuda: the device returned an invalid sample count; use --backend cpu");
        gf_queue_download(queue, payload + node->head,
                          context->memory.data + node->payload + node->head, used - node->head);
        any = true;
    }
    if (!any)
        return queue->status;
    gf_queue_record(queue, events[GF_CUDA_DOWNLOADED]);
    gf_queue_synchronize(queue, "download");
    timeline_add(&run->cuda->timelines[context->index], GF_DOWNLOADING, events[GF_CUDA_STARTED],
                 events[GF_CUDA_DOWNLOADED], queue);
    return queue->status;
}

static gf_status cuda_wait(void *state, gf_slot *slot, gf_error *error) {
    gf_cuda_run *run = static_cast<gf_cuda_run *>(state);
    const gf_cuda_slot *context = &run->cuda->contexts[slot->index];
    gf_cuda_timeline *timeline = &run->cuda->timelines[context->index];
    gf_range needs[GF_MAX_EDGES];
    gf_cut_alone(&run->cut, slot->strip, needs);
    if (needs[0].first == needs[0].end)
        return GF_OK;
    gf_queue queue = cuda_queue_of(context, error);
    gf_queue_synchronize(&queue, "kernel execution");
    const cudaEvent_t *events = context->events, *computed = events + GF_CUDA_COMPUTED;
    const uint32_t count = run->cut.nodes->count;
    timeline_add(timeline, GF_UPLOADING, events[GF_CUDA_STARTED], events[GF_CUDA_UPLOADED], &queue);
    timeline_add(timeline, GF_COMPUTING, computed[0], computed[count], &queue);
    timeline_add(timeline, GF_DOWNLOADING, computed[count], events[GF_CUDA_DOWNLOADED], &queue);
    for (uint32_t i = 0; i < count; i++) {
        float ms = 0;
        gf_queue_call(&queue, "cudaEventElapsedTime",
                      cudaEventElapsedTime(&ms, computed[i], computed[i + 1]));
        run->nodes[i].seconds += static_cast<double>(ms) * 1e-3;
    }
    return queue.status ? queue.status : cuda_wait_payloads(run, slot, &queue);
}

static void cuda_busy(void *state, gf_busy busy[GF_STAGE_COUNT], double *nodes) {
    const gf_cuda_run *run = static_cast<const gf_cuda_run *>(state);
    for (uint32_t i = 0; i < run->cut.nodes->count; i++)
        nodes[i] += run->nodes[i].seconds;
    for (int stage = GF_UPLOADING; stage <= GF_DOWNLOADING; stage++) {
        gf_busy all = {0, cuda_used_devices(run)};
        for (uint32_t i = 0; i < all.workers; i++)
            all.seconds += run->cuda->timelines[i].busy[stage];
        gf_busy_add(&busy[stage], all);
    }
}

static gf_status cuda_collect(void *state, uint32_t index, void *total, gf_error *error) {
    const gf_cuda_run *run = static_cast<const gf_cuda_run *>(state);
    const gf_cuda_node *node = &run->nodes[index];
    const gf_plan *plan = node->plan;
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
        gf_queue_download(&queue, part, run->cuda->states[i].data + node->state, bytes);
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
