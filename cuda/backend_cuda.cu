// The cuda backend: one or more devices, a stream and pinned buffers for each slot of the ring, so
// that uploads, kernels and downloads of different strips overlap. Slots go round the devices in
// turn.
#include "devices.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern "C" {
#include "core/clock.h"
#include "engine/backend.h"
}

#define STRIP_BYTES (UINT64_C(4) << 20)
#define MAX_STRIP_BYTES (UINT64_C(16) << 20)    // of an image that has many of them
#define PAYLOAD_STRIP_BYTES (UINT64_C(1) << 20) // where what comes out may be many times that
#define HALO_BYTES (UINT64_C(1) << 30)          // of a device's strips, for the sake of high halos

// ---- pinned memory ------------------------------------------------------------------------------

#define LARGE_PAGE (size_t{2} << 20)

// Host memory that devices read and write themselves, or, where there is no more of that, ordinary
// memory: the driver then copies in between.
struct gf_pinned {
    void *data; // NULL: nothing
    size_t size;
    size_t mapped; // bytes from the system, data's pages; 0: the driver's own
    bool ordinary;
};

// Memory from the system, in large pages if it has them. NULL if there is none.
static void *pinned_map(size_t bytes) {
    // As many bytes more as leave room to begin with a large page.
    void *pages = mmap(nullptr, bytes + LARGE_PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return nullptr;
    unsigned char *begin = static_cast<unsigned char *>(pages);
    const size_t before =
        (LARGE_PAGE - reinterpret_cast<uintptr_t>(pages) % LARGE_PAGE) % LARGE_PAGE;
    if (before)
        munmap(begin, before);
    if (before < LARGE_PAGE)
        munmap(begin + before + bytes, LARGE_PAGE - before);
    begin += before;
    (void)madvise(begin, bytes, MADV_HUGEPAGE); // small pages do as well
    // After a fork the process that writes to a page first gets another one: it must not be this
    // process, whose pages the device knows.
    (void)madvise(begin, bytes, MADV_DONTFORK);
    return begin;
}

// Takes large pages, where there are some: that is less than half the time that the driver takes
// for its own. False where the driver does not take them.
static bool pinned_pages(gf_pinned *pinned, size_t size) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = gf_divide_up(size, page) * page;
    void *pages = pinned_map(bytes);
    if (!pages)
        return false;
    if (cudaHostRegister(pages, bytes, cudaHostRegisterPortable) != cudaSuccess) {
        cudaGetLastError();
        munmap(pages, bytes);
        return false;
    }
    *pinned = gf_pinned{pages, size, bytes, false};
    return true;
}

static void pinned_free(gf_pinned *pinned) {
    if (pinned->mapped) {
        cudaHostUnregister(pinned->data);
        munmap(pinned->data, pinned->mapped);
    } else if (pinned->ordinary) {
        free(pinned->data);
    } else {
        cudaFreeHost(pinned->data);
    }
    *pinned = gf_pinned{};
}

// Grows it to at least so many bytes, for all devices; what it held is lost.
static gf_status pinned_grow(gf_pinned *pinned, size_t size, gf_error *error) {
    if (size <= pinned->size)
        return GF_OK;
    pinned_free(pinned);
    if (size >= LARGE_PAGE && pinned_pages(pinned, size))
        return GF_OK;
    if (cudaHostAlloc(&pinned->data, size, cudaHostAllocPortable) != cudaSuccess) {
        // A limit on locked memory, or a device that failed: the next call reports that.
        cudaGetLastError();
        pinned->ordinary = true;
        pinned->data = aligned_alloc(GF_ROW_ALIGN, gf_align(size));
    }
    if (!pinned->data) {
        *pinned = gf_pinned{};
        return gf_fail_memory(error, "cuda", size, "strips");
    }
    pinned->size = size;
    return GF_OK;
}

// ---- times of stages ---------------------------------------------------------------------------

// A strip's events. FREE: its kernels have what they had to wait for.
enum gf_cuda_event {
    GF_CUDA_SENT,
    GF_CUDA_UPLOADED,
    GF_CUDA_FREE,
    GF_CUDA_COMPUTED,
    GF_CUDA_DOWNLOADED,
    GF_CUDA_EVENTS
};

// What a device did for one image, in seconds.
struct gf_cuda_timeline {
    cudaEvent_t began;            // the origin of its times
    double until[GF_STAGE_COUNT]; // how far each stage's time is counted
    double busy[GF_STAGE_COUNT];
};

// Begins at zero, on a stream of the current device that gets the first strip.
static gf_status timeline_start(gf_cuda_timeline *timeline, cudaStream_t stream, gf_error *error) {
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

// Adds the time between two events that are past, but for what was counted already: strips overlap,
// and each may have waited for the copy of the one before it. To be called in the strips' order.
static gf_status timeline_add(gf_cuda_timeline *timeline, gf_stage stage, cudaEvent_t from,
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

// ---- devices and places -------------------------------------------------------------------------

#define GF_CUDA_MAX_SLOTS (5 * GF_MAX_DEVICES)

// The buffers of a slot, on the device and on the host; all slots share the ring on the host.
enum {
    GF_CUDA_OUT,
    GF_CUDA_PAYLOAD,
    GF_CUDA_HOST_BUFFERS,
    GF_CUDA_IN = GF_CUDA_HOST_BUFFERS,
    GF_CUDA_SCRATCH,
    GF_CUDA_DEVICE_BUFFERS
};

struct gf_memory {
    void *data;
    size_t size;
};

// A slot's resources on one device, reused across images because pinning memory is slow.
struct gf_cuda_slot {
    int index;  // of its device in the list
    int device; // and in CUDA
    cudaStream_t stream;
    cudaEvent_t events[GF_CUDA_EVENTS]; // of its last strip
    gf_pinned host[GF_CUDA_HOST_BUFFERS];
    gf_memory memory[GF_CUDA_DEVICE_BUFFERS];
};

struct gf_cuda {
    gf_cuda_devices devices;
    gf_cuda_slot places[GF_CUDA_MAX_SLOTS];
    gf_cuda_timeline timelines[GF_MAX_DEVICES]; // of this image
    gf_memory states[GF_MAX_DEVICES];           // what accumulates, on each device
    gf_pinned ring;
};

// Frees device memory, for a smaller image or another process. Host memory stays: making it is
// slow.
static void cuda_free_device(gf_cuda *cuda) {
    for (gf_cuda_slot &place : cuda->places) {
        if (!place.stream)
            continue;
        cudaSetDevice(place.device);
        for (gf_memory &memory : place.memory) {
            cudaFree(memory.data);
            memory = gf_memory{};
        }
    }
    for (int i = 0; i < cuda->devices.own.count; i++) {
        cudaSetDevice(cuda->devices.own.list[i]);
        cudaFree(cuda->states[i].data);
        cuda->states[i] = gf_memory{};
    }
    cudaGetLastError(); // of the failure that was reported before
}

static void cuda_close(void *state) {
    gf_cuda *cuda = static_cast<gf_cuda *>(state);
    cuda_free_device(cuda);
    for (gf_cuda_slot &place : cuda->places) {
        if (!place.stream)
            continue;
        cudaSetDevice(place.device);
        for (gf_pinned &host : place.host)
            pinned_free(&host);
        for (cudaEvent_t event : place.events)
            if (event)
                cudaEventDestroy(event);
        cudaStreamDestroy(place.stream);
    }
    for (int i = 0; i < cuda->devices.own.count; i++) {
        cudaSetDevice(cuda->devices.own.list[i]);
        if (cuda->timelines[i].began)
            cudaEventDestroy(cuda->timelines[i].began);
    }
    pinned_free(&cuda->ring);
    cudaGetLastError(); // a device that failed reports that again
    free(cuda);
}

static gf_status cuda_grow(gf_memory *memory, size_t size, cudaStream_t stream, gf_error *error) {
    if (size <= memory->size)
        return GF_OK;
    cudaFree(memory->data);
    *memory = gf_memory{};
    gf_status status = gf_cuda_check(cudaMalloc(&memory->data, size), "device memory", error);
    // Rows are copied back with the padding between them, which must not be another program's
    // memory.
    if (!status)
        status =
            gf_cuda_check(cudaMemsetAsync(memory->data, 0, size, stream), "device memory", error);
    memory->size = status ? 0 : size;
    return status;
}

// Gets what a slot of an image needs. The size of its scratch is computed here: what a library asks
// for may depend on the device.
static gf_status cuda_prepare_place(gf_cuda *cuda, uint32_t slot, const gf_job *job,
                                    size_t sizes[GF_CUDA_DEVICE_BUFFERS], gf_error *error) {
    gf_cuda_slot *place = &cuda->places[slot];
    const int index = static_cast<int>(slot) % cuda->devices.own.count;
    gf_status status = gf_set_device(cuda->devices.own.list[index], error);
    if (!status && job->filter->cuda->scratch_bytes)
        sizes[GF_CUDA_SCRATCH] = job->filter->cuda->scratch_bytes(job->plan, job->in_rows);
    if (!status && !place->stream) {
        place->index = index;
        place->device = cuda->devices.own.list[index];
        status = gf_cuda_check(cudaStreamCreateWithFlags(&place->stream, cudaStreamNonBlocking),
                               "cudaStreamCreate", error);
    }
    for (cudaEvent_t &event : place->events)
        if (!status && !event)
            status = gf_cuda_check(cudaEventCreate(&event), "cudaEventCreate", error);
    for (int i = 0; i < GF_CUDA_HOST_BUFFERS && !status; i++)
        status = pinned_grow(&place->host[i], sizes[i], error);
    for (int i = 0; i < GF_CUDA_DEVICE_BUFFERS && !status; i++)
        status = cuda_grow(&place->memory[i], sizes[i], place->stream, error);
    return status;
}

// Prepares an empty state on a device.
static gf_status cuda_start_state(gf_cuda *cuda, int index, size_t bytes, gf_error *error) {
    gf_memory *state = &cuda->states[index];
    gf_status status = gf_set_device(cuda->devices.own.list[index], error);
    if (!status)
        status = cuda_grow(state, bytes, nullptr, error);
    if (!status)
        status = gf_cuda_check(cudaMemset(state->data, 0, bytes), "cudaMemset", error);
    // The slots' streams do not wait for the one that this was done on.
    return status ? status : gf_cuda_check(cudaDeviceSynchronize(), "cudaMemset", error);
}

// ---- the backend --------------------------------------------------------------------------------

static gf_status cuda_open(const gf_engine_options *options, void **state, gf_error *error) {
    gf_cuda *cuda = static_cast<gf_cuda *>(calloc(1, sizeof *cuda));
    if (!cuda)
        return gf_fail_memory(error, "cuda", sizeof *cuda, "the backend");
    gf_status status = gf_cuda_start(options, &cuda->devices, error);
    if (status) {
        free(cuda);
        return status;
    }
    *state = cuda;
    return GF_OK;
}

static void cuda_describe(const void *state, char *text, size_t size) {
    snprintf(text, size, "%s", static_cast<const gf_cuda *>(state)->devices.names);
}

static uint64_t cuda_within(uint64_t value, uint64_t min, uint64_t max) {
    return value < min ? min : value > max ? max : value;
}

static gf_strip_request cuda_request(const void *state, const gf_plan *plan) {
    const uint64_t image = plan->in.height * gf_row_bytes(&plan->in);
    const uint32_t devices =
        static_cast<uint32_t>(static_cast<const gf_cuda *>(state)->devices.own.count);
    gf_strip_request request = {};
    request.bytes = plan->has_payload ? PAYLOAD_STRIP_BYTES
                                      : cuda_within(image / 64, STRIP_BYTES, MAX_STRIP_BYTES);
    // Pinned memory takes time to make: no more of it than the image is worth.
    request.halos = 8;
    request.max = cuda_within(image / 16, HALO_BYTES / 16, HALO_BYTES * devices);
    request.pieces = 1;
    // A strip that shares rows with the next keeps its place until that one is through as well.
    request.slots = (plan->halo ? 5 : 4) * devices;
    return request;
}

// ---- one image ----------------------------------------------------------------------------------

struct gf_cuda_run {
    gf_cuda *cuda;
    gf_job job;
    size_t sizes[GF_CUDA_DEVICE_BUFFERS]; // of a slot's buffers
    size_t head_bytes;                    // of a payload
    const gf_cuda_slot *before;           // where the last strip went; NULL before the first
};

// Devices that have a slot.
static uint32_t cuda_devices_of(const gf_cuda_run *run) {
    const uint32_t count = static_cast<uint32_t>(run->cuda->devices.own.count);
    return count < run->job.slots ? count : run->job.slots;
}

static gf_status cuda_prepare(gf_cuda_run *run, gf_slot *slots, gf_error *error) {
    gf_cuda *cuda = run->cuda;
    const gf_job *job = &run->job;
    const size_t state_bytes = static_cast<size_t>(job->plan->state_bytes);
    gf_status status = GF_OK;
    for (int i = 0; i < cuda->devices.own.count && state_bytes && !status; i++)
        status = cuda_start_state(cuda, i, state_bytes, error);
    if (!status)
        status = gf_set_device(cuda->devices.own.list[0], error);
    if (!status)
        status = pinned_grow(&cuda->ring, static_cast<size_t>(gf_ring_rows(job)) * job->in_stride,
                             error);
    for (uint32_t i = 0; i < job->slots && !status; i++) {
        const gf_cuda_slot *place = &cuda->places[i];
        status = cuda_prepare_place(cuda, i, job, run->sizes, error);
        slots[i].ring = static_cast<unsigned char *>(cuda->ring.data);
        slots[i].out_buffer = static_cast<unsigned char *>(place->host[GF_CUDA_OUT].data);
        slots[i].payload_buffer = static_cast<unsigned char *>(place->host[GF_CUDA_PAYLOAD].data);
        slots[i].payload_pieces = job->plan->has_payload ? 1 : 0;
    }
    // Place i is the first of device i, and so gets its first strip.
    for (uint32_t i = 0; i < cuda_devices_of(run) && !status; i++) {
        status = gf_set_device(cuda->devices.own.list[i], error);
        if (!status)
            status = timeline_start(&cuda->timelines[i], cuda->places[i].stream, error);
    }
    return status;
}

static gf_status cuda_begin(void *state, const gf_job *job, gf_slot *slots, void **out,
                            gf_error *error) {
    gf_cuda_run *run = static_cast<gf_cuda_run *>(calloc(1, sizeof *run));
    if (!run)
        return gf_fail_memory(error, "cuda", sizeof *run, "a run");
    run->cuda = static_cast<gf_cuda *>(state);
    run->job = *job;
    run->sizes[GF_CUDA_IN] = static_cast<size_t>(job->in_rows) * job->in_stride;
    run->sizes[GF_CUDA_OUT] = static_cast<size_t>(job->out_rows) * job->out_stride;
    if (job->plan->has_payload) {
        run->sizes[GF_CUDA_PAYLOAD] = job->filter->payload->bytes(job->plan, job->out_rows);
        run->head_bytes = job->filter->payload->bytes(job->plan, 0);
    }
    const gf_status status = cuda_prepare(run, slots, error);
    if (status) {
        cuda_free_device(run->cuda);
        free(run);
        return status;
    }
    *out = run;
    return GF_OK;
}

// Makes a strip wait for the one before it, and brings the state along if that was elsewhere.
static gf_status cuda_follow(const gf_cuda_run *run, const gf_cuda_slot *place, gf_error *error) {
    const gf_cuda_slot *before = run->before;
    if (!run->job.plan->ordered || !before)
        return GF_OK;
    const gf_status status =
        gf_cuda_check(cudaStreamWaitEvent(place->stream, before->events[GF_CUDA_COMPUTED], 0),
                      "cudaStreamWaitEvent", error);
    if (status || before->device == place->device)
        return status;
    return gf_cuda_check(cudaMemcpyPeerAsync(run->cuda->states[place->index].data, place->device,
                                             run->cuda->states[before->index].data, before->device,
                                             static_cast<size_t>(run->job.plan->state_bytes),
                                             place->stream),
                         "passing on what was measured", error);
}

static gf_status cuda_download(const gf_cuda_slot *place, void *host, const void *device,
                               size_t bytes, gf_error *error) {
    return bytes ? gf_cuda_check(
                       cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, place->stream),
                       "download", error)
                 : GF_OK;
}

static gf_status cuda_mark(const gf_cuda_slot *place, gf_cuda_event event, gf_error *error) {
    return gf_cuda_check(cudaEventRecord(place->events[event], place->stream), "cudaEventRecord",
                         error);
}

static gf_status cuda_submit(void *state, gf_slot *slot, gf_error *error) {
    gf_cuda_run *run = static_cast<gf_cuda_run *>(state);
    const gf_cuda_slot *place = &run->cuda->places[slot->index];
    gf_strip strip = {};
    strip.in = slot->in;
    strip.in.data = static_cast<unsigned char *>(place->memory[GF_CUDA_IN].data);
    strip.out = slot->out;
    strip.out.data = static_cast<unsigned char *>(place->memory[GF_CUDA_OUT].data);
    strip.state = run->cuda->states[place->index].data;
    strip.payload = place->memory[GF_CUDA_PAYLOAD].data;
    const size_t in_bytes = static_cast<size_t>(strip.in.rows) * strip.in.stride;
    // The current device is a thread's own: the caller may be a thread that never set it.
    gf_status status = gf_set_device(place->device, error);
    if (!status)
        status = cuda_mark(place, GF_CUDA_SENT, error);
    if (!status)
        status = gf_cuda_check(cudaMemcpyAsync(strip.in.data, slot->in.data, in_bytes,
                                               cudaMemcpyHostToDevice, place->stream),
                               "upload", error);
    if (!status)
        status = cuda_mark(place, GF_CUDA_UPLOADED, error);
    if (!status)
        status = cuda_follow(run, place, error);
    if (!status)
        status = cuda_mark(place, GF_CUDA_FREE, error);
    if (!status)
        status = run->job.filter->cuda->launch(
            run->job.plan, &strip, place->memory[GF_CUDA_SCRATCH].data, place->stream, error);
    if (!status)
        status = cuda_mark(place, GF_CUDA_COMPUTED, error);
    run->before = place;
    if (!status)
        status = cuda_download(place, slot->out.data, strip.out.data,
                               static_cast<size_t>(strip.out.rows) * strip.out.stride, error);
    if (!status)
        status = cuda_download(place, slot->payload_buffer, strip.payload, run->head_bytes, error);
    return status ? status : cuda_mark(place, GF_CUDA_DOWNLOADED, error);
}

// The head of a payload says how much follows.
static gf_status cuda_wait_payload(const gf_cuda_run *run, const gf_cuda_slot *place,
                                   const gf_slot *slot, gf_error *error) {
    const size_t head = run->head_bytes;
    const size_t used = run->job.filter->payload->used(run->job.plan, slot->payload_buffer);
    // Believed, a wrong number would write over other memory.
    if (used < head || used > run->sizes[GF_CUDA_PAYLOAD])
        return gf_fail(error, GF_NO_BACKEND,
                       "cuda: the device found more samples than there are; use --backend cpu");
    const unsigned char *from =
        static_cast<const unsigned char *>(place->memory[GF_CUDA_PAYLOAD].data) + head;
    gf_status status = cuda_mark(place, GF_CUDA_SENT, error);
    if (!status)
        status = cuda_download(place, slot->payload_buffer + head, from, used - head, error);
    if (!status)
        status = cuda_mark(place, GF_CUDA_DOWNLOADED, error);
    if (!status)
        status = gf_cuda_check(cudaStreamSynchronize(place->stream), "download", error);
    return status ? status
                  : timeline_add(&run->cuda->timelines[place->index], GF_DOWNLOADING,
                                 place->events[GF_CUDA_SENT], place->events[GF_CUDA_DOWNLOADED],
                                 error);
}

static gf_status cuda_wait(void *state, gf_slot *slot, gf_error *error) {
    static const struct {
        gf_stage stage;
        gf_cuda_event from, to;
    } parts[] = {{GF_UPLOADING, GF_CUDA_SENT, GF_CUDA_UPLOADED},
                 {GF_COMPUTING, GF_CUDA_FREE, GF_CUDA_COMPUTED},
                 {GF_DOWNLOADING, GF_CUDA_COMPUTED, GF_CUDA_DOWNLOADED}};
    gf_cuda_run *run = static_cast<gf_cuda_run *>(state);
    const gf_cuda_slot *place = &run->cuda->places[slot->index];
    gf_status status = gf_set_device(place->device, error);
    if (!status)
        status = gf_cuda_check(cudaStreamSynchronize(place->stream), "the kernels", error);
    for (const auto &part : parts)
        if (!status)
            status = timeline_add(&run->cuda->timelines[place->index], part.stage,
                                  place->events[part.from], place->events[part.to], error);
    return status || !run->head_bytes ? status : cuda_wait_payload(run, place, slot, error);
}

static void cuda_busy(void *state, gf_busy busy[GF_STAGE_COUNT]) {
    const gf_cuda_run *run = static_cast<const gf_cuda_run *>(state);
    for (int stage = GF_UPLOADING; stage <= GF_DOWNLOADING; stage++) {
        gf_busy all = {0, cuda_devices_of(run)};
        for (uint32_t i = 0; i < all.workers; i++)
            all.seconds += run->cuda->timelines[i].busy[stage];
        gf_busy_add(&busy[stage], all);
    }
}

static gf_status cuda_collect_one(const gf_cuda *cuda, int index, void *total, size_t bytes,
                                  gf_error *error) {
    const gf_status status = gf_set_device(cuda->devices.own.list[index], error);
    return status ? status
                  : gf_cuda_check(
                        cudaMemcpy(total, cuda->states[index].data, bytes, cudaMemcpyDeviceToHost),
                        "download", error);
}

static gf_status cuda_collect(void *state, void *total, gf_error *error) {
    const gf_cuda_run *run = static_cast<const gf_cuda_run *>(state);
    const gf_plan *plan = run->job.plan;
    const size_t bytes = static_cast<size_t>(plan->state_bytes);
    if (plan->ordered)
        return cuda_collect_one(run->cuda, run->before->index, total, bytes, error);
    void *part = malloc(bytes);
    if (!part)
        return gf_fail_memory(error, "cuda", bytes, "what is measured");
    gf_status status = GF_OK;
    for (int i = 0; i < run->cuda->devices.own.count && !status; i++) {
        status = cuda_collect_one(run->cuda, i, part, bytes, error);
        if (!status)
            run->job.filter->measure->merge(plan, total, part);
    }
    free(part);
    return status;
}

static void cuda_end(void *state, gf_slot *slots) {
    gf_cuda_run *run = static_cast<gf_cuda_run *>(state);
    for (uint32_t i = 0; i < run->job.slots; i++) {
        cudaSetDevice(run->cuda->places[i].device);
        cudaStreamSynchronize(run->cuda->places[i].stream);
        slots[i].ring = slots[i].out_buffer = slots[i].payload_buffer = nullptr;
    }
    cudaGetLastError(); // an error here was reported by the strip that met it
    free(run);
}

extern "C" const gf_backend gf_backend_cuda = {
    "cuda",      cuda_open, cuda_close, cuda_describe, cuda_request, cuda_begin,
    cuda_submit, cuda_wait, cuda_busy,  cuda_collect,  cuda_end,
};
