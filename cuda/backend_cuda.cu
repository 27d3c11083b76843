// The cuda backend: one or more devices, a stream and pinned buffers for each slot of the ring, so
// that uploads, kernels and downloads of different bands overlap. Slots go round the devices in
// turn.
#include "places.cuh"
#include "speed.cuh"

#include <stdio.h>
#include <stdlib.h>

#define BAND_BYTES (UINT64_C(4) << 20)
#define MOST_BAND_BYTES (UINT64_C(16) << 20)   // of an image that has many of them
#define PAYLOAD_BAND_BYTES (UINT64_C(1) << 20) // where what comes out may be many times that
#define HALO_BYTES (UINT64_C(1) << 30)         // of a device's bands, for the sake of high halos

namespace {

struct Run {
    gf_cuda *cuda;
    gf_job job;
    size_t sizes[GF_CUDA_DEVICE_BUFFERS]; // of a slot's buffers
    size_t head_bytes;                    // of a payload
    const gf_cuda_place *before;          // where the last band went; NULL before the first
};

gf_status cuda_open(const gf_engine_options *options, void **state, gf_error *error) {
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

void cuda_describe(const void *state, char *text, size_t size) {
    snprintf(text, size, "%s", static_cast<const gf_cuda *>(state)->devices.names);
}

uint64_t within(uint64_t value, uint64_t least, uint64_t most) {
    return value < least ? least : value > most ? most : value;
}

gf_band_wish cuda_wish(const void *state, const gf_plan *plan) {
    const uint64_t image = plan->in.height * gf_row_bytes(&plan->in);
    const uint32_t devices =
        static_cast<uint32_t>(static_cast<const gf_cuda *>(state)->devices.count);
    gf_band_wish wish = {};
    wish.bytes =
        plan->has_payload ? PAYLOAD_BAND_BYTES : within(image / 64, BAND_BYTES, MOST_BAND_BYTES);
    // Pinned memory takes time to make: no more of it than the image is worth.
    wish.halos = 8;
    wish.most = within(image / 16, HALO_BYTES / 16, HALO_BYTES * devices);
    wish.pieces = 1;
    // A band that shares rows with the next keeps its place until that one is through as well.
    wish.slots = (plan->halo ? 5 : 4) * devices;
    return wish;
}

// ---- one image ----------------------------------------------------------------------------------

gf_status cuda_begin(void *state, const gf_job *job, gf_slot *slots, void **out, gf_error *error) {
    gf_cuda *cuda = static_cast<gf_cuda *>(state);
    Run *run = static_cast<Run *>(calloc(1, sizeof *run));
    if (!run)
        return gf_fail_memory(error, "cuda", sizeof *run, "a run");
    run->cuda = cuda;
    run->job = *job;
    run->sizes[GF_CUDA_IN] = static_cast<size_t>(job->in_rows) * job->in_stride;
    run->sizes[GF_CUDA_OUT] = static_cast<size_t>(job->out_rows) * job->out_stride;
    if (job->plan->has_payload) {
        run->sizes[GF_CUDA_PAYLOAD] = job->filter->payload->bytes(job->plan, job->out_rows);
        run->head_bytes = job->filter->payload->bytes(job->plan, 0);
    }
    gf_status status = gf_cuda_start_states(cuda, job, error);
    if (!status)
        status = gf_cuda_check(cudaSetDevice(cuda->devices.list[0]), "cudaSetDevice", error);
    if (!status)
        status = gf_pinned_grow(&cuda->ring,
                                static_cast<size_t>(gf_ring_rows(job)) * job->in_stride, error);
    for (uint32_t i = 0; i < job->slots && !status; i++) {
        gf_cuda_place *place = &cuda->places[i];
        status = gf_cuda_prepare_place(place, cuda->devices.list[i % cuda->devices.count], job,
                                       run->sizes, error);
        slots[i].ring = static_cast<unsigned char *>(cuda->ring.data);
        slots[i].out_buffer = static_cast<unsigned char *>(place->host[GF_CUDA_OUT].data);
        slots[i].payload_buffer = static_cast<unsigned char *>(place->host[GF_CUDA_PAYLOAD].data);
        slots[i].payload_pieces = job->plan->has_payload ? 1 : 0;
    }
    if (!status)
        status = gf_cuda_start_timelines(cuda, job, error);
    if (status) {
        gf_cuda_free_device(cuda);
        free(run);
        return status;
    }
    *out = run;
    return GF_OK;
}

// Makes a band wait for the one before it, and brings the state along if that was elsewhere.
gf_status follow(const Run *run, const gf_cuda_place *place, gf_error *error) {
    const gf_cuda_place *before = run->before;
    if (!run->job.plan->ordered || !before)
        return GF_OK;
    gf_status status =
        gf_cuda_check(cudaStreamWaitEvent(place->stream, before->moments.at[GF_CUDA_COMPUTED], 0),
                      "cudaStreamWaitEvent", error);
    if (!status && before->device != place->device) {
        const gf_cuda *cuda = run->cuda;
        status = gf_cuda_check(
            cudaMemcpyPeerAsync(cuda->states[gf_cuda_device_index(cuda, place)], place->device,
                                cuda->states[gf_cuda_device_index(cuda, before)], before->device,
                                static_cast<size_t>(run->job.plan->state_bytes), place->stream),
            "passing on what was measured", error);
    }
    return status;
}

gf_status download(const gf_cuda_place *place, void *host, const void *device, size_t bytes,
                   gf_error *error) {
    return bytes ? gf_cuda_check(
                       cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, place->stream),
                       "download", error)
                 : GF_OK;
}

gf_status mark(const gf_cuda_place *place, gf_cuda_moment moment, gf_error *error) {
    return gf_cuda_check(cudaEventRecord(place->moments.at[moment], place->stream),
                         "cudaEventRecord", error);
}

gf_status cuda_submit(void *state, gf_slot *slot, gf_error *error) {
    Run *run = static_cast<Run *>(state);
    const gf_cuda_place *place = &run->cuda->places[slot->index];
    gf_band band = {};
    band.in = slot->in;
    band.in.data = static_cast<unsigned char *>(place->memory[GF_CUDA_IN]);
    band.out = slot->out;
    band.out.data = static_cast<unsigned char *>(place->memory[GF_CUDA_OUT]);
    band.state = run->cuda->states[gf_cuda_device_index(run->cuda, place)];
    band.payload = place->memory[GF_CUDA_PAYLOAD];
    // The current device is a thread's own: the caller may be a thread that never set it.
    gf_status status = gf_cuda_check(cudaSetDevice(place->device), "cudaSetDevice", error);
    if (!status)
        status = mark(place, GF_CUDA_SENT, error);
    if (!status)
        status = gf_cuda_check(cudaMemcpyAsync(band.in.data, slot->in.data,
                                               static_cast<size_t>(band.in.rows) * band.in.stride,
                                               cudaMemcpyHostToDevice, place->stream),
                               "upload", error);
    if (!status)
        status = mark(place, GF_CUDA_UPLOADED, error);
    if (!status)
        status = follow(run, place, error);
    if (!status)
        status = mark(place, GF_CUDA_FREE, error);
    if (!status)
        status = run->job.filter->cuda->launch(run->job.plan, &band, place->memory[GF_CUDA_SCRATCH],
                                               place->stream, error);
    if (!status)
        status = mark(place, GF_CUDA_COMPUTED, error);
    run->before = place;
    if (!status)
        status = download(place, slot->out.data, band.out.data,
                          static_cast<size_t>(band.out.rows) * band.out.stride, error);
    if (!status)
        status = download(place, slot->payload_buffer, band.payload, run->head_bytes, error);
    if (!status)
        status = mark(place, GF_CUDA_DOWNLOADED, error);
    return status;
}

// Only when the head of a payload is here is it known how much follows.
gf_status wait_payload(const Run *run, const gf_cuda_place *place, const gf_slot *slot,
                       gf_error *error) {
    const size_t used = run->job.filter->payload->used(run->job.plan, slot->payload_buffer);
    // Believed, a wrong number would write over other memory.
    if (used < run->head_bytes || used > run->sizes[GF_CUDA_PAYLOAD])
        return gf_fail(error, GF_NO_BACKEND,
                       "cuda: the device found more samples than there are; use --backend cpu");
    gf_status status = mark(place, GF_CUDA_SENT, error);
    if (!status)
        status =
            download(place, slot->payload_buffer + run->head_bytes,
                     static_cast<unsigned char *>(place->memory[GF_CUDA_PAYLOAD]) + run->head_bytes,
                     used - run->head_bytes, error);
    if (!status)
        status = mark(place, GF_CUDA_DOWNLOADED, error);
    if (!status)
        status = gf_cuda_check(cudaStreamSynchronize(place->stream), "download", error);
    return status ? status
                  : gf_cuda_count(&run->cuda->timelines[gf_cuda_device_index(run->cuda, place)],
                                  GF_DOWNLOADING, place->moments.at[GF_CUDA_SENT],
                                  place->moments.at[GF_CUDA_DOWNLOADED], error);
}

gf_status cuda_wait(void *state, gf_slot *slot, gf_error *error) {
    Run *run = static_cast<Run *>(state);
    const gf_cuda_place *place = &run->cuda->places[slot->index];
    gf_status status = gf_cuda_check(cudaSetDevice(place->device), "cudaSetDevice", error);
    if (!status)
        status = gf_cuda_check(cudaStreamSynchronize(place->stream), "the kernels", error);
    if (!status)
        status = gf_cuda_count_band(&run->cuda->timelines[gf_cuda_device_index(run->cuda, place)],
                                    &place->moments, error);
    return status || !run->head_bytes ? status : wait_payload(run, place, slot, error);
}

void cuda_busy(void *state, gf_busy busy[GF_STAGE_COUNT]) {
    const Run *run = static_cast<const Run *>(state);
    const uint32_t count = static_cast<uint32_t>(run->cuda->devices.count);
    const uint32_t devices = count < run->job.slots ? count : run->job.slots;
    for (int stage = GF_UPLOADING; stage <= GF_DOWNLOADING; stage++) {
        gf_busy all = {0, devices};
        for (uint32_t i = 0; i < devices; i++)
            all.seconds += run->cuda->timelines[i].busy[stage];
        gf_busy_add(&busy[stage], all);
    }
}

gf_status cuda_collect(void *state, void *total, gf_error *error) {
    const Run *run = static_cast<const Run *>(state);
    const gf_cuda *cuda = run->cuda;
    const gf_plan *plan = run->job.plan;
    const size_t bytes = static_cast<size_t>(plan->state_bytes);
    if (plan->ordered) {
        const gf_status set =
            gf_cuda_check(cudaSetDevice(run->before->device), "cudaSetDevice", error);
        if (set)
            return set;
        return gf_cuda_check(cudaMemcpy(total,
                                        cuda->states[gf_cuda_device_index(cuda, run->before)],
                                        bytes, cudaMemcpyDeviceToHost),
                             "download", error);
    }
    void *part = malloc(bytes);
    if (!part)
        return gf_fail_memory(error, "cuda", bytes, "what is measured");
    gf_status status = GF_OK;
    for (int i = 0; i < cuda->devices.count && !status; i++) {
        status = gf_cuda_check(cudaSetDevice(cuda->devices.list[i]), "cudaSetDevice", error);
        if (!status)
            status = gf_cuda_check(cudaMemcpy(part, cuda->states[i], bytes, cudaMemcpyDeviceToHost),
                                   "download", error);
        if (!status)
            run->job.filter->measure->merge(plan, total, part);
    }
    free(part);
    return status;
}

void cuda_end(void *state, gf_slot *slots) {
    Run *run = static_cast<Run *>(state);
    for (uint32_t i = 0; i < run->job.slots; i++) {
        cudaSetDevice(run->cuda->places[i].device);
        cudaStreamSynchronize(run->cuda->places[i].stream);
        slots[i].ring = slots[i].out_buffer = slots[i].payload_buffer = nullptr;
    }
    cudaGetLastError(); // an error here was reported by the band that met it
    free(run);
}

// ---- speed --------------------------------------------------------------------------------------

gf_status cuda_time(void *state, gf_trial *trial, gf_error *error) {
    return gf_cuda_time(static_cast<const gf_cuda *>(state)->devices.list[0], trial, error);
}

gf_status cuda_copy(void *state, uint64_t bytes, double budget, gf_memory_speed *speed,
                    gf_error *error) {
    return gf_cuda_copy(static_cast<const gf_cuda *>(state)->devices.list[0], bytes, budget, speed,
                        error);
}

} // namespace

extern "C" const gf_backend gf_backend_cuda = {
    "cuda",    cuda_open, gf_cuda_close, cuda_describe, cuda_wish, cuda_begin, cuda_submit,
    cuda_wait, cuda_busy, cuda_collect,  cuda_end,      cuda_time, cuda_copy,
};
