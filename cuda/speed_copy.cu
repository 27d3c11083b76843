// Timing copies on a device, to it and from it.
#include "speed_even.cuh"

#include <string.h>

namespace {

const int AT_A_TIME = 10; // copies that are queued before one is waited for

struct Copies {
    uint64_t bytes;
    cudaStream_t up, down;
    cudaEvent_t begin, middle, end;
    void *host[2], *from, *to; // on the device so many images each
    int turns;
    size_t stride; // from image to image there
};

void *image(void *first, const Copies *copies, int i) {
    return static_cast<unsigned char *>(first) +
           static_cast<size_t>(i % copies->turns) * copies->stride;
}

gf_status open_copies(Copies *copies, gf_error *error) {
    const size_t bytes = static_cast<size_t>(copies->bytes);
    gf_status status = gf_cuda_check(cudaStreamCreateWithFlags(&copies->up, cudaStreamNonBlocking),
                                     "cudaStreamCreate", error);
    if (!status)
        status = gf_cuda_check(cudaStreamCreateWithFlags(&copies->down, cudaStreamNonBlocking),
                               "cudaStreamCreate", error);
    for (cudaEvent_t *event : {&copies->begin, &copies->middle, &copies->end})
        if (!status)
            status = gf_cuda_check(cudaEventCreate(event), "cudaEventCreate", error);
    for (int i = 0; i < 2 && !status; i++) {
        status = gf_cuda_check(cudaHostAlloc(&copies->host[i], bytes, cudaHostAllocDefault),
                               "pinned memory", error);
        if (!status)
            memset(copies->host[i], 1, bytes);
    }
    copies->stride = gf_speed_padded(bytes);
    copies->turns = gf_speed_turns(2 * copies->stride);
    const size_t all = static_cast<size_t>(copies->turns) * copies->stride;
    for (void **memory : {&copies->from, &copies->to}) {
        if (!status)
            status = gf_speed_alloc(memory, all, error);
        if (!status)
            status = gf_cuda_check(cudaMemset(*memory, 1, all), "device memory", error);
    }
    return status ? status : gf_cuda_check(cudaDeviceSynchronize(), "device memory", error);
}

void close_copies(Copies *copies) {
    for (void *host : copies->host)
        cudaFreeHost(host);
    cudaFree(copies->from);
    cudaFree(copies->to);
    for (cudaEvent_t event : {copies->begin, copies->middle, copies->end})
        if (event)
            cudaEventDestroy(event);
    if (copies->up)
        cudaStreamDestroy(copies->up);
    if (copies->down)
        cudaStreamDestroy(copies->down);
    cudaGetLastError();
}

// What is read was never written by a copy, and what was read or written lately is several times
// the cache.
gf_status copy_within(const Copies *copies, int i, gf_error *error) {
    return gf_cuda_check(
        cudaMemcpyAsync(image(copies->to, copies, i), image(copies->from, copies, i),
                        static_cast<size_t>(copies->bytes), cudaMemcpyDeviceToDevice, copies->up),
        "copy", error);
}

gf_status copy_up(const Copies *copies, int i, gf_error *error) {
    return gf_cuda_check(cudaMemcpyAsync(image(copies->to, copies, i), copies->host[0],
                                         static_cast<size_t>(copies->bytes), cudaMemcpyHostToDevice,
                                         copies->up),
                         "upload", error);
}

gf_status copy_down(const Copies *copies, int i, gf_error *error) {
    return gf_cuda_check(cudaMemcpyAsync(copies->host[1], image(copies->from, copies, i),
                                         static_cast<size_t>(copies->bytes), cudaMemcpyDeviceToHost,
                                         copies->down),
                         "download", error);
}

gf_status copy_both(const Copies *copies, int i, gf_error *error) {
    const gf_status status = copy_up(copies, i, error);
    return status ? status : copy_down(copies, i, error);
}

// Queues copies between two events: both streams begin with the first, and the second waits for
// both.
gf_status queue_copies(const Copies *copies, gf_status (*copy)(const Copies *, int, gf_error *),
                       int first, gf_error *error) {
    gf_status status = gf_speed_hold(AT_A_TIME, copies->up, error);
    if (!status)
        status =
            gf_cuda_check(cudaEventRecord(copies->begin, copies->up), "cudaEventRecord", error);
    if (!status)
        status = gf_cuda_check(cudaStreamWaitEvent(copies->down, copies->begin, 0),
                               "cudaStreamWaitEvent", error);
    for (int i = 0; i < AT_A_TIME && !status; i++)
        status = copy(copies, first + i, error);
    if (!status)
        status =
            gf_cuda_check(cudaEventRecord(copies->middle, copies->down), "cudaEventRecord", error);
    if (!status)
        status = gf_cuda_check(cudaStreamWaitEvent(copies->up, copies->middle, 0),
                               "cudaStreamWaitEvent", error);
    if (!status)
        status = gf_cuda_check(cudaEventRecord(copies->end, copies->up), "cudaEventRecord", error);
    return status ? status : gf_cuda_check(cudaStreamSynchronize(copies->up), "copy", error);
}

// Bytes a second. A lap is the mean of some copies, so that its budget is their part of it.
gf_status time_copies(const Copies *copies, gf_status (*copy)(const Copies *, int, gf_error *),
                      uint64_t moved, double budget, double *speed, gf_error *error) {
    gf_laps laps = {};
    gf_status status = GF_OK;
    for (int turn = 0; !status && !gf_laps_enough(&laps, budget / AT_A_TIME); turn += AT_A_TIME) {
        float milliseconds = 0;
        status = queue_copies(copies, copy, turn, error);
        if (!status)
            status = gf_cuda_check(cudaEventElapsedTime(&milliseconds, copies->begin, copies->end),
                                   "cudaEventElapsedTime", error);
        if (!status && turn > 0) // the first ones warm up
            gf_laps_add(&laps, 1e-3 * static_cast<double>(milliseconds) / AT_A_TIME);
    }
    if (!status)
        *speed = static_cast<double>(moved) / gf_laps_median(&laps);
    return status;
}

} // namespace

gf_status gf_cuda_copy(int device, uint64_t bytes, double budget, gf_memory_speed *speed,
                       gf_error *error) {
    Copies copies = {};
    copies.bytes = bytes;
    *speed = {};
    gf_status status = gf_cuda_check(cudaSetDevice(device), "cudaSetDevice", error);
    if (!status)
        status = open_copies(&copies, error);
    if (!status)
        status = time_copies(&copies, copy_within, 2 * bytes, budget, &speed->copy, error);
    if (!status)
        status = time_copies(&copies, copy_up, bytes, budget, &speed->upload, error);
    if (!status)
        status = time_copies(&copies, copy_down, bytes, budget, &speed->download, error);
    if (!status)
        status = time_copies(&copies, copy_both, 2 * bytes, budget, &speed->both, error);
    close_copies(&copies);
    return status;
}
