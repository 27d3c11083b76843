// The memory, streams and events of the cuda backend, and when they are made and given back.
#include "places.cuh"

#include <stdlib.h>

void gf_cuda_close(void *state) {
    gf_cuda *cuda = static_cast<gf_cuda *>(state);
    for (int i = 0; i < GF_CUDA_MAX_SLOTS; i++) {
        gf_cuda_place *place = &cuda->places[i];
        if (!place->stream)
            continue;
        cudaSetDevice(place->device);
        for (gf_pinned &host : place->host)
            gf_pinned_free(&host);
        for (void *memory : place->memory)
            cudaFree(memory);
        gf_cuda_moments_close(&place->moments);
        cudaStreamDestroy(place->stream);
    }
    for (int i = 0; i < cuda->devices.count; i++) {
        cudaSetDevice(cuda->devices.list[i]);
        cudaFree(cuda->states[i]);
        gf_cuda_timeline_close(&cuda->timelines[i]);
    }
    gf_pinned_free(&cuda->ring);
    cudaGetLastError(); // a device that failed says so again
    free(cuda);
}

int gf_cuda_device_index(const gf_cuda *cuda, const gf_cuda_place *place) {
    int i = 0;
    while (cuda->devices.list[i] != place->device)
        i++;
    return i;
}

static gf_status grow_device(void **memory, size_t *have, size_t want, cudaStream_t stream,
                             gf_error *error) {
    if (want <= *have)
        return GF_OK;
    cudaFree(*memory);
    *memory = nullptr;
    *have = 0;
    gf_status status = gf_cuda_check(cudaMalloc(memory, want), "device memory", error);
    // Rows are copied back with the padding between them, which must not be another program's
    // memory.
    if (!status)
        status = gf_cuda_check(cudaMemsetAsync(*memory, 0, want, stream), "device memory", error);
    *have = status ? 0 : want;
    return status;
}

void gf_cuda_free_device(gf_cuda *cuda) {
    for (gf_cuda_place &place : cuda->places) {
        if (!place.stream)
            continue;
        cudaSetDevice(place.device);
        for (int i = 0; i < GF_CUDA_DEVICE_BUFFERS; i++) {
            cudaFree(place.memory[i]);
            place.memory[i] = nullptr;
            place.memory_size[i] = 0;
        }
    }
    for (int i = 0; i < cuda->devices.count; i++) {
        cudaSetDevice(cuda->devices.list[i]);
        cudaFree(cuda->states[i]);
        cuda->states[i] = nullptr;
        cuda->state_size[i] = 0;
    }
    cudaGetLastError(); // of what began it all, which was reported
}

gf_status gf_cuda_prepare_place(gf_cuda_place *place, int device, const gf_job *job,
                                size_t sizes[GF_CUDA_DEVICE_BUFFERS], gf_error *error) {
    gf_status status = gf_cuda_check(cudaSetDevice(device), "cudaSetDevice", error);
    // What a library asks for may depend on the device.
    if (!status && job->filter->cuda->scratch_bytes)
        sizes[GF_CUDA_SCRATCH] = job->filter->cuda->scratch_bytes(job->plan, job->in_rows);
    if (!status && !place->stream) {
        place->device = device;
        status = gf_cuda_check(cudaStreamCreateWithFlags(&place->stream, cudaStreamNonBlocking),
                               "cudaStreamCreate", error);
    }
    if (!status)
        status = gf_cuda_moments_open(&place->moments, error);
    for (int i = 0; i < GF_CUDA_HOST_BUFFERS && !status; i++)
        status = gf_pinned_grow(&place->host[i], sizes[i], error);
    for (int i = 0; i < GF_CUDA_DEVICE_BUFFERS && !status; i++)
        status =
            grow_device(&place->memory[i], &place->memory_size[i], sizes[i], place->stream, error);
    return status;
}

gf_status gf_cuda_start_states(gf_cuda *cuda, const gf_job *job, gf_error *error) {
    const size_t bytes = static_cast<size_t>(job->plan->state_bytes);
    if (bytes == 0)
        return GF_OK;
    gf_status status = GF_OK;
    for (int i = 0; i < cuda->devices.count && !status; i++) {
        status = gf_cuda_check(cudaSetDevice(cuda->devices.list[i]), "cudaSetDevice", error);
        if (!status)
            status = grow_device(&cuda->states[i], &cuda->state_size[i], bytes, nullptr, error);
        if (!status)
            status = gf_cuda_check(cudaMemset(cuda->states[i], 0, bytes), "cudaMemset", error);
        // The slots' streams do not wait for the one that this was done on.
        if (!status)
            status = gf_cuda_check(cudaDeviceSynchronize(), "cudaMemset", error);
    }
    return status;
}

gf_status gf_cuda_start_timelines(gf_cuda *cuda, const gf_job *job, gf_error *error) {
    gf_status status = GF_OK;
    for (int i = 0; i < cuda->devices.count && i < static_cast<int>(job->slots) && !status; i++) {
        status = gf_cuda_check(cudaSetDevice(cuda->devices.list[i]), "cudaSetDevice", error);
        if (!status)
            status = gf_cuda_timeline_start(&cuda->timelines[i], cuda->places[i].stream, error);
    }
    return status;
}
