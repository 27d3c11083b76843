// Timing copies on a device, to it and from it.
#include "speed.cuh"

#include <string.h>

extern "C" {
#include "clock.h"
}

namespace {

struct Copies {
    uint64_t bytes;
    cudaStream_t up, down;
    void *host[2], *device[GF_SPEED_COPIES];
    int ways; // pieces of memory that copies on the device take turns on
};

gf_status open_copies(Copies *copies, gf_error *error) {
    const size_t bytes = static_cast<size_t>(copies->bytes);
    gf_status status = gf_cuda_check(cudaStreamCreateWithFlags(&copies->up, cudaStreamNonBlocking),
                                     "cudaStreamCreate", error);
    if (!status)
        status = gf_cuda_check(cudaStreamCreateWithFlags(&copies->down, cudaStreamNonBlocking),
                               "cudaStreamCreate", error);
    for (int i = 0; i < 2 && !status; i++) {
        status = gf_cuda_check(cudaHostAlloc(&copies->host[i], bytes, cudaHostAllocDefault),
                               "pinned memory", error);
        if (!status)
            memset(copies->host[i], 1, bytes);
    }
    const int wanted = gf_speed_copies(bytes);
    const int ways = wanted > 4 ? wanted : 4;
    for (; copies->ways < ways && !status; copies->ways++) {
        status = gf_speed_alloc(&copies->device[copies->ways], bytes, error);
        if (!status)
            status = gf_cuda_check(cudaMemset(copies->device[copies->ways], 1, bytes),
                                   "device memory", error);
    }
    return status ? status : gf_cuda_check(cudaDeviceSynchronize(), "device memory", error);
}

void close_copies(Copies *copies) {
    for (void *host : copies->host)
        cudaFreeHost(host);
    for (void *device : copies->device)
        cudaFree(device);
    if (copies->up)
        cudaStreamDestroy(copies->up);
    if (copies->down)
        cudaStreamDestroy(copies->down);
    cudaGetLastError();
}

gf_status copy_within(const Copies *copies, int i, gf_error *error) {
    return gf_cuda_check(
        cudaMemcpyAsync(copies->device[(i + 1) % copies->ways], copies->device[i % copies->ways],
                        static_cast<size_t>(copies->bytes), cudaMemcpyDeviceToDevice, copies->up),
        "copy", error);
}

gf_status copy_up(const Copies *copies, int i, gf_error *error) {
    return gf_cuda_check(cudaMemcpyAsync(copies->device[i % 2], copies->host[0],
                                         static_cast<size_t>(copies->bytes), cudaMemcpyHostToDevice,
                                         copies->up),
                         "upload", error);
}

gf_status copy_down(const Copies *copies, int i, gf_error *error) {
    return gf_cuda_check(cudaMemcpyAsync(copies->host[1], copies->device[2 + i % 2],
                                         static_cast<size_t>(copies->bytes), cudaMemcpyDeviceToHost,
                                         copies->down),
                         "download", error);
}

gf_status copy_both(const Copies *copies, int i, gf_error *error) {
    const gf_status status = copy_up(copies, i, error);
    return status ? status : copy_down(copies, i, error);
}

// Bytes a second, by the host's clock: ten queued copies take far longer than asking for them. A
// lap is their mean, so that the laps' budget is a tenth of what they may take.
gf_status time_copies(const Copies *copies, gf_status (*copy)(const Copies *, int, gf_error *),
                      uint64_t moved, double budget, double *speed, gf_error *error) {
    const int at_a_time = 10;
    gf_laps laps = {};
    gf_status status = GF_OK;
    int turn = 0;
    while (!status && !gf_laps_enough(&laps, budget / at_a_time)) {
        const double began = gf_now();
        for (int i = 0; i < at_a_time && !status; i++)
            status = copy(copies, turn++, error);
        if (!status)
            status = gf_cuda_check(cudaStreamSynchronize(copies->up), "copy", error);
        if (!status)
            status = gf_cuda_check(cudaStreamSynchronize(copies->down), "copy", error);
        if (turn > at_a_time) // the first ones warm up
            gf_laps_add(&laps, (gf_now() - began) / at_a_time);
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
