// Timing on a device: the stages of an image, a filter's passes over an image in its memory, and
// copies.
//
// Events on a full queue time what the device does, not how fast the host asks: several passes are
// queued before the first is waited for. Passes take turns on copies of the image that together are
// several times the cache, so that none is met in the cache again.
#include "backend_cuda.cuh"

#include <stdlib.h>

extern "C" {
#include "engine/backend.h"
}

// ---- stages of an image -------------------------------------------------------------------------

gf_status gf_cuda_timeline_start(gf_cuda_timeline *timeline, cudaStream_t stream, gf_error *error) {
    const cudaEvent_t began = timeline->began;
    *timeline = gf_cuda_timeline{};
    timeline->began = began;
    gf_status status = GF_OK;
    if (!began)
        status = gf_cuda_check(cudaEventCreate(&timeline->began), "cudaEventCreate", error);
    return status
               ? status
               : gf_cuda_check(cudaEventRecord(timeline->began, stream), "cudaEventRecord", error);
}

gf_status gf_cuda_count(gf_cuda_timeline *timeline, gf_stage stage, cudaEvent_t from,
                        cudaEvent_t to, gf_error *error) {
    float start = 0, end = 0; // ms
    gf_status status =
        gf_cuda_check(cudaEventElapsedTime(&start, timeline->began, from), "events", error);
    if (!status)
        status = gf_cuda_check(cudaEventElapsedTime(&end, timeline->began, to), "events", error);
    double *until = &timeline->until[stage];
    if (status || end * 1e-3 <= *until)
        return status;
    timeline->busy[stage] += end * 1e-3 - (start * 1e-3 > *until ? start * 1e-3 : *until);
    *until = end * 1e-3;
    return GF_OK;
}

// ---- memory and queue ---------------------------------------------------------------------------

struct gf_speed_policy {
    static const uint32_t queue = 25;        // passes at a time
    static const int copies_at_once = 10;    // queued before one is waited for
    static const int most_copies = 64;       // pieces of memory to take turns on ..
    static const uint64_t caches = 4;        // .. so many times the cache, if there is memory
    static const uint64_t align = 512;       // bytes
    static const uint64_t piece = 16u << 20; // small images share pieces of this size: 64 of
                                             // them alone would all be in the cache
    static const uint32_t queueing = 20000;  // ns that queueing one thing may take
    static const uint64_t payload_band = 64u << 20; // bytes of a band at most where it has a
                                                    // payload, which may be many times the image
};

static gf_status speed_set_device(const void *state, gf_error *error) {
    return gf_set_device(static_cast<const gf_cuda_devices *>(state)->own.list[0], error);
}

static gf_status speed_alloc(void **memory, size_t bytes, gf_error *error) {
    return gf_cuda_check(cudaMalloc(memory, bytes ? bytes : 1), "device memory", error);
}

static size_t speed_padded(uint64_t bytes) {
    return static_cast<size_t>(gf_divide_up(bytes, gf_speed_policy::align) *
                               gf_speed_policy::align);
}

// Turns that together are several times the cache, for a turn of so many bytes, and not too much
// for the memory there is.
static int speed_turns(uint64_t bytes) {
    const uint64_t piece = bytes > gf_speed_policy::piece ? bytes : gf_speed_policy::piece;
    const uint64_t cache = gf_attribute(cudaDevAttrL2CacheSize);
    size_t free_bytes = 0, total = 0;
    cudaMemGetInfo(&free_bytes, &total);
    const uint64_t wanted = gf_speed_policy::caches * cache / piece + 1;
    const uint64_t room = free_bytes / 2 / piece;
    const uint64_t most = wanted < room ? wanted : room;
    const int pieces = most < 1                              ? 1
                       : most > gf_speed_policy::most_copies ? gf_speed_policy::most_copies
                                                             : static_cast<int>(most);
    return pieces * static_cast<int>(bytes ? piece / bytes : 1);
}

static __global__ void speed_wait(unsigned nanoseconds) {
    uint64_t start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < nanoseconds);
}

// Keeps the stream busy until so many things are queued after this.
static gf_status speed_hold(unsigned things, cudaStream_t stream, gf_error *error) {
    speed_wait<<<1, 1, 0, stream>>>(things * gf_speed_policy::queueing);
    return gf_cuda_check(cudaGetLastError(), "the kernels", error);
}

static gf_status speed_record(cudaEvent_t event, cudaStream_t stream, gf_error *error) {
    return gf_cuda_check(cudaEventRecord(event, stream), "cudaEventRecord", error);
}

static gf_status speed_synchronize(cudaStream_t stream, const char *what, gf_error *error) {
    return gf_cuda_check(cudaStreamSynchronize(stream), what, error);
}

static gf_status speed_new_stream(cudaStream_t *stream, gf_error *error) {
    return gf_cuda_check(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking),
                         "cudaStreamCreate", error);
}

static gf_status speed_new_event(cudaEvent_t *event, gf_error *error) {
    return gf_cuda_check(cudaEventCreate(event), "cudaEventCreate", error);
}

// Adds the time between two events, of each of n things, to laps.
static gf_status speed_add_lap(gf_laps *laps, cudaEvent_t begin, cudaEvent_t end, int n,
                               gf_error *error) {
    float milliseconds = 0;
    const gf_status status = gf_cuda_check(cudaEventElapsedTime(&milliseconds, begin, end),
                                           "cudaEventElapsedTime", error);
    if (!status)
        gf_laps_add(laps, 1e-3 * static_cast<double>(milliseconds) / n);
    return status;
}

// Destroys what there is of streams and events.
static void speed_close(cudaStream_t *streams, int n, cudaEvent_t *events, uint32_t m) {
    for (uint32_t i = 0; i < m; i++)
        if (events[i])
            cudaEventDestroy(events[i]);
    for (int i = 0; i < n; i++)
        if (streams[i])
            cudaStreamDestroy(streams[i]);
    cudaGetLastError(); // what failed was reported where it did
}

// ---- passes of a filter -------------------------------------------------------------------------

struct gf_passes {
    gf_trial *trial;
    cudaStream_t stream;
    cudaEvent_t event[2 * gf_speed_policy::queue]; // begin and end of each
    int copies;                                    // one after the other
    unsigned char *in, *out;
    size_t in_bytes, out_bytes; // from copy to copy
    void *state, *scratch, *payload;
    void *host_payload;
    int next; // copy
    gf_job job;
};

static unsigned char *passes_in(const gf_passes *passes, int i) {
    return passes->in + static_cast<size_t>(i) * passes->in_bytes;
}

static unsigned char *passes_out(const gf_passes *passes, int i) {
    return passes->out + static_cast<size_t>(i) * passes->out_bytes;
}

// One band, or a few with a payload each.
static void passes_choose_bands(gf_job *job) {
    const uint64_t height = job->plan->in.height;
    const uint64_t most = gf_speed_policy::payload_band / job->in_stride + 1;
    job->out_rows = job->plan->has_payload && most < height ? most : height;
    job->in_rows = job->out_rows + 2 * job->plan->halo;
    if (job->in_rows > height)
        job->in_rows = height;
}

// All copies of the image, and empty memory for each one's output.
static gf_status passes_open_copies(gf_passes *passes, gf_error *error) {
    const gf_trial *trial = passes->trial;
    const size_t in = static_cast<size_t>(trial->in.rows) * trial->in.stride;
    passes->in_bytes = speed_padded(in);
    passes->out_bytes = speed_padded(trial->out.rows * trial->out.stride);
    passes->copies = speed_turns(passes->in_bytes + passes->out_bytes);
    const size_t copies = static_cast<size_t>(passes->copies);
    gf_status status =
        speed_alloc(reinterpret_cast<void **>(&passes->in), copies * passes->in_bytes, error);
    if (!status)
        status =
            speed_alloc(reinterpret_cast<void **>(&passes->out), copies * passes->out_bytes, error);
    if (!status)
        status = gf_cuda_check(cudaMemset(passes->out, 0, copies * passes->out_bytes),
                               "device memory", error);
    if (!status)
        status = gf_cuda_check(cudaMemcpy(passes->in, trial->in.data, in, cudaMemcpyHostToDevice),
                               "upload", error);
    // What is there is doubled: there may be many.
    for (int i = 1; i < passes->copies && !status; i *= 2) {
        const int more = passes->copies - i < i ? passes->copies - i : i;
        status = gf_cuda_check(cudaMemcpy(passes_in(passes, i), passes->in,
                                          static_cast<size_t>(more) * passes->in_bytes,
                                          cudaMemcpyDeviceToDevice),
                               "copy", error);
    }
    return status;
}

static gf_status passes_open(gf_passes *passes, gf_error *error) {
    const gf_plan *plan = passes->trial->job.plan;
    const gf_filter *filter = passes->trial->job.filter;
    passes->job = passes->trial->job;
    passes_choose_bands(&passes->job);
    gf_status status = speed_new_stream(&passes->stream, error);
    for (cudaEvent_t &event : passes->event)
        if (!status)
            status = speed_new_event(&event, error);
    if (!status)
        status = passes_open_copies(passes, error);
    if (!status)
        status = speed_alloc(&passes->state, static_cast<size_t>(plan->state_bytes), error);
    if (!status && filter->cuda->scratch_bytes)
        status = speed_alloc(&passes->scratch,
                             filter->cuda->scratch_bytes(plan, passes->job.in_rows), error);
    if (!status && plan->has_payload) {
        const size_t bytes = filter->payload->bytes(plan, passes->job.out_rows);
        status = speed_alloc(&passes->payload, bytes, error);
        passes->host_payload = malloc(bytes);
        if (!status && !passes->host_payload)
            status = gf_fail_memory(error, "cuda", bytes, "what is extracted");
    }
    // What was queued on the other stream is done.
    return status ? status : gf_cuda_check(cudaDeviceSynchronize(), "upload", error);
}

static void passes_close(gf_passes *passes) {
    if (passes->stream)
        cudaStreamSynchronize(passes->stream);
    for (void *memory : {static_cast<void *>(passes->in), static_cast<void *>(passes->out),
                         passes->state, passes->scratch, passes->payload})
        cudaFree(memory);
    free(passes->host_payload);
    speed_close(&passes->stream, 1, passes->event, 2 * gf_speed_policy::queue);
}

// Waits for a band's payload and passes it to the measure.
static gf_status passes_take_payload(const gf_passes *passes, gf_error *error) {
    const gf_plan *plan = passes->job.plan;
    const gf_filter *filter = passes->job.filter;
    const auto download = [&](size_t bytes) {
        return gf_cuda_check(
            cudaMemcpy(passes->host_payload, passes->payload, bytes, cudaMemcpyDeviceToHost),
            "download", error);
    };
    gf_status status = speed_synchronize(passes->stream, "the kernels", error);
    if (!status)
        status = download(filter->payload->bytes(plan, 0)); // the head, which says how much follows
    if (!status)
        status = download(filter->payload->used(plan, passes->host_payload));
    return status
               ? status
               : filter->measure->payload(plan, passes->trial->data, passes->host_payload, error);
}

// The kernels of all bands.
static gf_status passes_queue_bands(gf_passes *passes, bool first, gf_error *error) {
    const gf_job *job = &passes->job;
    const gf_trial *trial = passes->trial;
    const uint64_t bands = gf_count_bands(job);
    gf_status status = GF_OK;
    for (uint64_t k = 0; k < bands && !status; k++) {
        gf_slot slot = {};
        gf_cut_band(job, k, &slot);
        gf_band band = {};
        band.in = slot.in;
        band.in.data =
            passes_in(passes, passes->next) + static_cast<size_t>(slot.in.y0) * trial->in.stride;
        band.out = slot.out;
        band.out.data =
            passes_out(passes, passes->next) + static_cast<size_t>(slot.out.y0) * trial->out.stride;
        band.state = passes->state;
        band.payload = passes->payload;
        status =
            job->filter->cuda->launch(job->plan, &band, passes->scratch, passes->stream, error);
        if (!status && first && job->plan->has_payload)
            status = passes_take_payload(passes, error);
    }
    return status;
}

// Emptying the state is part of a pass: every result begins with that.
static gf_status passes_queue(gf_passes *passes, uint32_t i, bool first, gf_error *error) {
    const size_t state = static_cast<size_t>(passes->job.plan->state_bytes);
    passes->next = (passes->next + 1) % passes->copies;
    gf_status status = speed_record(passes->event[2 * i], passes->stream, error);
    if (!status && state)
        status = gf_cuda_check(cudaMemsetAsync(passes->state, 0, state, passes->stream),
                               "cudaMemset", error);
    if (!status)
        status = passes_queue_bands(passes, first, error);
    return status ? status : speed_record(passes->event[2 * i + 1], passes->stream, error);
}

// How many passes to queue next: one, to see how long they take, and then what fills the budget.
static uint32_t passes_count(const gf_laps *laps, double budget) {
    const uint32_t queue = gf_speed_policy::queue;
    if (laps->count == 0)
        return 1;
    const double mean = laps->spent / laps->count;
    const double wanted = mean > 0 ? (budget - laps->spent) / mean : queue;
    const uint32_t least = laps->count < GF_LEAST_LAPS ? GF_LEAST_LAPS - laps->count : 1;
    const uint32_t room = GF_MAX_LAPS - laps->count;
    const uint32_t most = room < queue ? room : queue;
    const uint32_t passes = wanted < most ? static_cast<uint32_t>(wanted < 0 ? 0 : wanted) : most;
    return passes > least ? passes : least;
}

// Passes until they took as long as they may.
static gf_status passes_run(gf_passes *passes, gf_error *error) {
    gf_laps *laps = &passes->trial->passes;
    gf_status status = passes_queue(passes, 0, true, error);
    if (!status)
        status = speed_synchronize(passes->stream, "the kernels", error);
    while (!status && !gf_laps_enough(laps, passes->trial->budget)) {
        const uint32_t count = passes_count(laps, passes->trial->budget);
        status = speed_hold(count, passes->stream, error);
        for (uint32_t i = 0; i < count && !status; i++)
            status = passes_queue(passes, i, false, error);
        if (!status)
            status = speed_synchronize(passes->stream, "the kernels", error);
        for (uint32_t i = 0; i < count && !status; i++)
            status = speed_add_lap(laps, passes->event[2 * i], passes->event[2 * i + 1], 1, error);
    }
    return status;
}

// Downloads rows and state of the last pass.
static gf_status passes_bring_back(const gf_passes *passes, gf_error *error) {
    const gf_trial *trial = passes->trial;
    const size_t out = static_cast<size_t>(trial->out.rows) * trial->out.stride;
    const size_t state = static_cast<size_t>(passes->job.plan->state_bytes);
    const gf_status status = gf_cuda_check(
        cudaMemcpy(trial->out.data, passes_out(passes, passes->next), out, cudaMemcpyDeviceToHost),
        "download", error);
    return status || !state ? status
                            : gf_cuda_check(cudaMemcpy(trial->state, passes->state, state,
                                                       cudaMemcpyDeviceToHost),
                                            "download", error);
}

gf_status gf_cuda_time(void *state, gf_trial *trial, gf_error *error) {
    gf_passes passes = {};
    passes.trial = trial;
    gf_status status = speed_set_device(state, error);
    if (!status)
        status = passes_open(&passes, error);
    if (!status)
        status = passes_run(&passes, error);
    if (!status)
        status = passes_bring_back(&passes, error);
    passes_close(&passes);
    return status;
}

// ---- copies -------------------------------------------------------------------------------------

enum { COPIES_UP, COPIES_DOWN, COPIES_STREAMS };
enum { COPIES_BEGIN, COPIES_MIDDLE, COPIES_END, COPIES_EVENTS };

struct gf_copies {
    size_t bytes;
    cudaStream_t stream[COPIES_STREAMS];
    cudaEvent_t event[COPIES_EVENTS];
    void *host[2];
    unsigned char *from, *to; // on the device, so many images each
    int turns;
    size_t stride; // from image to image there
};

static gf_status copies_open(gf_copies *copies, gf_error *error) {
    gf_status status = GF_OK;
    for (cudaStream_t &stream : copies->stream)
        if (!status)
            status = speed_new_stream(&stream, error);
    for (cudaEvent_t &event : copies->event)
        if (!status)
            status = speed_new_event(&event, error);
    for (void *&host : copies->host) {
        if (status)
            break;
        status = gf_cuda_check(cudaHostAlloc(&host, copies->bytes, cudaHostAllocDefault),
                               "pinned memory", error);
        if (!status)
            memset(host, 1, copies->bytes);
    }
    copies->stride = speed_padded(copies->bytes);
    copies->turns = speed_turns(2 * copies->stride);
    const size_t all = static_cast<size_t>(copies->turns) * copies->stride;
    for (unsigned char **memory : {&copies->from, &copies->to}) {
        if (!status)
            status = speed_alloc(reinterpret_cast<void **>(memory), all, error);
        if (!status)
            status = gf_cuda_check(cudaMemset(*memory, 1, all), "device memory", error);
    }
    return status ? status : gf_cuda_check(cudaDeviceSynchronize(), "device memory", error);
}

static void copies_close(gf_copies *copies) {
    for (void *host : copies->host)
        cudaFreeHost(host);
    cudaFree(copies->from);
    cudaFree(copies->to);
    speed_close(copies->stream, COPIES_STREAMS, copies->event, COPIES_EVENTS);
}

enum gf_copies_kind { COPY_WITHIN, COPY_UP, COPY_DOWN, COPY_BOTH };

// Queues copy i. What is read was never written by a copy, and what was read or written lately is
// several times the cache.
static gf_status copies_queue_one(const gf_copies *copies, gf_copies_kind kind, int i,
                                  gf_error *error) {
    const size_t bytes = copies->bytes,
                 at = static_cast<size_t>(i % copies->turns) * copies->stride;
    unsigned char *from = copies->from + at, *to = copies->to + at;
    const cudaStream_t up = copies->stream[COPIES_UP];
    gf_status status = GF_OK;
    if (kind == COPY_WITHIN)
        status = gf_cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, up),
                               "copy", error);
    if (kind == COPY_UP || kind == COPY_BOTH)
        status =
            gf_cuda_check(cudaMemcpyAsync(to, copies->host[0], bytes, cudaMemcpyHostToDevice, up),
                          "upload", error);
    if (!status && (kind == COPY_DOWN || kind == COPY_BOTH))
        status = gf_cuda_check(cudaMemcpyAsync(copies->host[1], from, bytes, cudaMemcpyDeviceToHost,
                                               copies->stream[COPIES_DOWN]),
                               "download", error);
    return status;
}

// Queues copies between two events, and waits: both streams begin with the first, and the second
// waits for both.
static gf_status copies_queue(const gf_copies *copies, gf_copies_kind kind, int first,
                              gf_error *error) {
    const int many = gf_speed_policy::copies_at_once;
    const cudaStream_t up = copies->stream[COPIES_UP], down = copies->stream[COPIES_DOWN];
    const cudaEvent_t *event = copies->event;
    const auto follow = [&](cudaStream_t stream, cudaEvent_t after) {
        return gf_cuda_check(cudaStreamWaitEvent(stream, after, 0), "cudaStreamWaitEvent", error);
    };
    gf_status status = speed_hold(many, up, error);
    if (!status)
        status = speed_record(event[COPIES_BEGIN], up, error);
    if (!status)
        status = follow(down, event[COPIES_BEGIN]);
    for (int i = 0; i < many && !status; i++)
        status = copies_queue_one(copies, kind, first + i, error);
    if (!status)
        status = speed_record(event[COPIES_MIDDLE], down, error);
    if (!status)
        status = follow(up, event[COPIES_MIDDLE]);
    if (!status)
        status = speed_record(event[COPIES_END], up, error);
    return status ? status : speed_synchronize(up, "copy", error);
}

// Times copies, in bytes a second. A lap is the mean of some copies, so that its budget is their
// part of it.
static gf_status copies_time(const gf_copies *copies, gf_copies_kind kind, double budget,
                             double *speed, gf_error *error) {
    const int many = gf_speed_policy::copies_at_once;
    const size_t moved =
        kind == COPY_WITHIN || kind == COPY_BOTH ? 2 * copies->bytes : copies->bytes;
    gf_laps laps = {};
    gf_status status = GF_OK;
    for (int first = 0; !status && !gf_laps_enough(&laps, budget / many); first += many) {
        status = copies_queue(copies, kind, first, error);
        if (!status && first > 0) // the first ones warm up
            status = speed_add_lap(&laps, copies->event[COPIES_BEGIN], copies->event[COPIES_END],
                                   many, error);
    }
    if (!status)
        *speed = static_cast<double>(moved) / gf_laps_median(&laps);
    return status;
}

gf_status gf_cuda_copy(void *state, uint64_t bytes, double budget, gf_memory_speed *speed,
                       gf_error *error) {
    gf_copies copies = {};
    copies.bytes = static_cast<size_t>(bytes);
    *speed = {};
    gf_status status = speed_set_device(state, error);
    if (!status)
        status = copies_open(&copies, error);
    if (!status)
        status = copies_time(&copies, COPY_WITHIN, budget, &speed->copy, error);
    if (!status)
        status = copies_time(&copies, COPY_UP, budget, &speed->upload, error);
    if (!status)
        status = copies_time(&copies, COPY_DOWN, budget, &speed->download, error);
    if (!status)
        status = copies_time(&copies, COPY_BOTH, budget, &speed->both, error);
    copies_close(&copies);
    return status;
}
