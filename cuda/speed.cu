// Timing on a device. Events on a full queue time what the device does, not how fast it is asked:
// several passes are queued before the first is waited for. Passes take turns on copies of the
// image that together are several times the cache.
#include "speed_even.cuh"

#include <stdlib.h>

extern "C" {
#include "engine/backend.h"
}

namespace {

const uint32_t QUEUE = 25; // passes at a time

// Where there is a payload, which may be many times the image, bands are no larger than this.
const uint64_t PAYLOAD_BAND_BYTES = UINT64_C(64) << 20;

struct Bench {
    gf_trial *trial;
    cudaStream_t stream;
    cudaEvent_t begin[QUEUE], end[QUEUE];
    int copies; // one after the other
    void *in, *out;
    size_t in_bytes, out_bytes; // from copy to copy
    void *state, *scratch, *payload;
    void *host_payload;
    int next; // copy
    gf_job job;
};

unsigned char *in_copy(const Bench *bench, int i) {
    return static_cast<unsigned char *>(bench->in) + static_cast<size_t>(i) * bench->in_bytes;
}

unsigned char *out_copy(const Bench *bench, int i) {
    return static_cast<unsigned char *>(bench->out) + static_cast<size_t>(i) * bench->out_bytes;
}

// One band, or a few with a payload each.
void choose_bands(gf_job *job) {
    const uint64_t height = job->plan->in.height, most = PAYLOAD_BAND_BYTES / job->in_stride + 1;
    job->out_rows = job->plan->has_payload && most < height ? most : height;
    job->in_rows = job->out_rows + 2 * job->plan->halo;
    if (job->in_rows > height)
        job->in_rows = height;
}

// All copies of the image, and empty room for what becomes of each.
gf_status open_copies(Bench *bench, gf_error *error) {
    const gf_trial *trial = bench->trial;
    const size_t in = static_cast<size_t>(trial->in.rows) * trial->in.stride;
    const size_t out = static_cast<size_t>(trial->out.rows) * trial->out.stride;
    bench->in_bytes = gf_speed_padded(in);
    bench->out_bytes = gf_speed_padded(out);
    bench->copies = gf_speed_turns(bench->in_bytes + bench->out_bytes);
    const size_t copies = static_cast<size_t>(bench->copies);
    gf_status status = gf_speed_alloc(&bench->in, copies * bench->in_bytes, error);
    if (!status)
        status = gf_speed_alloc(&bench->out, copies * bench->out_bytes, error);
    if (!status)
        status = gf_cuda_check(cudaMemset(bench->out, 0, copies * bench->out_bytes),
                               "device memory", error);
    if (!status)
        status = gf_cuda_check(cudaMemcpy(bench->in, trial->in.data, in, cudaMemcpyHostToDevice),
                               "upload", error);
    // What is there is doubled: there may be many.
    for (int i = 1; i < bench->copies && !status; i *= 2) {
        const int more = bench->copies - i < i ? bench->copies - i : i;
        status = gf_cuda_check(cudaMemcpy(in_copy(bench, i), bench->in,
                                          static_cast<size_t>(more) * bench->in_bytes,
                                          cudaMemcpyDeviceToDevice),
                               "copy", error);
    }
    return status;
}

gf_status open_bench(Bench *bench, gf_error *error) {
    gf_trial *trial = bench->trial;
    const gf_plan *plan = trial->job.plan;
    const gf_filter *filter = trial->job.filter;
    bench->job = trial->job;
    choose_bands(&bench->job);
    gf_status status =
        gf_cuda_check(cudaStreamCreateWithFlags(&bench->stream, cudaStreamNonBlocking),
                      "cudaStreamCreate", error);
    for (uint32_t i = 0; i < QUEUE && !status; i++) {
        status = gf_cuda_check(cudaEventCreate(&bench->begin[i]), "cudaEventCreate", error);
        if (!status)
            status = gf_cuda_check(cudaEventCreate(&bench->end[i]), "cudaEventCreate", error);
    }
    if (!status)
        status = open_copies(bench, error);
    if (!status)
        status = gf_speed_alloc(&bench->state, static_cast<size_t>(plan->state_bytes), error);
    if (!status && filter->cuda->scratch_bytes)
        status = gf_speed_alloc(&bench->scratch,
                                filter->cuda->scratch_bytes(plan, bench->job.in_rows), error);
    if (!status && plan->has_payload) {
        const size_t bytes = filter->payload->bytes(plan, bench->job.out_rows);
        status = gf_speed_alloc(&bench->payload, bytes, error);
        bench->host_payload = malloc(bytes);
        if (!status && !bench->host_payload)
            status = gf_fail_memory(error, "cuda", bytes, "what is extracted");
    }
    // What was done on the other stream is done.
    return status ? status : gf_cuda_check(cudaDeviceSynchronize(), "upload", error);
}

void close_bench(Bench *bench) {
    if (bench->stream)
        cudaStreamSynchronize(bench->stream);
    cudaFree(bench->in);
    cudaFree(bench->out);
    cudaFree(bench->state);
    cudaFree(bench->scratch);
    cudaFree(bench->payload);
    free(bench->host_payload);
    for (uint32_t i = 0; i < QUEUE; i++) {
        if (bench->begin[i])
            cudaEventDestroy(bench->begin[i]);
        if (bench->end[i])
            cudaEventDestroy(bench->end[i]);
    }
    if (bench->stream)
        cudaStreamDestroy(bench->stream);
    cudaGetLastError(); // what failed was reported where it did
}

// Waits for a band's payload and hands it on.
gf_status take_payload(const Bench *bench, gf_error *error) {
    const gf_plan *plan = bench->job.plan;
    const gf_filter *filter = bench->job.filter;
    const size_t head = filter->payload->bytes(plan, 0);
    gf_status status = gf_cuda_check(cudaStreamSynchronize(bench->stream), "the kernels", error);
    if (!status)
        status = gf_cuda_check(
            cudaMemcpy(bench->host_payload, bench->payload, head, cudaMemcpyDeviceToHost),
            "download", error);
    if (status)
        return status;
    status = gf_cuda_check(cudaMemcpy(bench->host_payload, bench->payload,
                                      filter->payload->used(plan, bench->host_payload),
                                      cudaMemcpyDeviceToHost),
                           "download", error);
    return status ? status
                  : filter->measure->payload(plan, bench->trial->data, bench->host_payload, error);
}

// The kernels of all bands.
gf_status queue_bands(Bench *bench, bool first, gf_error *error) {
    const gf_job *job = &bench->job;
    const gf_trial *trial = bench->trial;
    const uint64_t bands = gf_count_bands(job);
    gf_status status = GF_OK;
    for (uint64_t k = 0; k < bands && !status; k++) {
        gf_slot slot = {};
        gf_cut_band(job, k, &slot);
        gf_band band = {};
        band.in = slot.in;
        band.in.data =
            in_copy(bench, bench->next) + static_cast<size_t>(slot.in.y0) * trial->in.stride;
        band.out = slot.out;
        band.out.data =
            out_copy(bench, bench->next) + static_cast<size_t>(slot.out.y0) * trial->out.stride;
        band.state = bench->state;
        band.payload = bench->payload;
        status = job->filter->cuda->launch(job->plan, &band, bench->scratch, bench->stream, error);
        if (!status && first && job->plan->has_payload)
            status = take_payload(bench, error);
    }
    return status;
}

// Emptying the state is part of a pass: every result begins with that.
gf_status queue_pass(Bench *bench, uint32_t i, bool first, gf_error *error) {
    const size_t state = static_cast<size_t>(bench->job.plan->state_bytes);
    bench->next = (bench->next + 1) % bench->copies;
    gf_status status =
        gf_cuda_check(cudaEventRecord(bench->begin[i], bench->stream), "cudaEventRecord", error);
    if (!status && state)
        status = gf_cuda_check(cudaMemsetAsync(bench->state, 0, state, bench->stream), "cudaMemset",
                               error);
    if (!status)
        status = queue_bands(bench, first, error);
    if (!status)
        status =
            gf_cuda_check(cudaEventRecord(bench->end[i], bench->stream), "cudaEventRecord", error);
    return status;
}

// How many passes to queue next: one, to see how long they take, and then what fills the budget.
uint32_t count_passes(const gf_laps *laps, double budget) {
    if (laps->count == 0)
        return 1;
    const double mean = laps->spent / laps->count;
    const double wanted = mean > 0 ? (budget - laps->spent) / mean : QUEUE;
    const uint32_t least = laps->count < GF_LEAST_LAPS ? GF_LEAST_LAPS - laps->count : 1;
    const uint32_t room = GF_MAX_LAPS - laps->count;
    const uint32_t most = room < QUEUE ? room : QUEUE;
    const uint32_t passes = wanted < most ? static_cast<uint32_t>(wanted < 0 ? 0 : wanted) : most;
    return passes > least ? passes : least;
}

// Passes until they took as long as they may.
gf_status run_passes(Bench *bench, gf_error *error) {
    gf_laps *laps = &bench->trial->passes;
    gf_status status = queue_pass(bench, 0, true, error);
    if (!status)
        status = gf_cuda_check(cudaStreamSynchronize(bench->stream), "the kernels", error);
    while (!status && !gf_laps_enough(laps, bench->trial->budget)) {
        const uint32_t passes = count_passes(laps, bench->trial->budget);
        status = gf_speed_hold(passes, bench->stream, error);
        for (uint32_t i = 0; i < passes && !status; i++)
            status = queue_pass(bench, i, false, error);
        if (!status)
            status = gf_cuda_check(cudaStreamSynchronize(bench->stream), "the kernels", error);
        for (uint32_t i = 0; i < passes && !status; i++) {
            float milliseconds = 0;
            status =
                gf_cuda_check(cudaEventElapsedTime(&milliseconds, bench->begin[i], bench->end[i]),
                              "cudaEventElapsedTime", error);
            if (!status)
                gf_laps_add(laps, 1e-3 * static_cast<double>(milliseconds));
        }
    }
    return status;
}

// Rows and state of the last pass.
gf_status bring_back(const Bench *bench, gf_error *error) {
    const gf_trial *trial = bench->trial;
    const size_t out = static_cast<size_t>(trial->out.rows) * trial->out.stride;
    gf_status status = gf_cuda_check(
        cudaMemcpy(trial->out.data, out_copy(bench, bench->next), out, cudaMemcpyDeviceToHost),
        "download", error);
    const size_t state = static_cast<size_t>(bench->job.plan->state_bytes);
    if (!status && state)
        status =
            gf_cuda_check(cudaMemcpy(trial->state, bench->state, state, cudaMemcpyDeviceToHost),
                          "download", error);
    return status;
}

} // namespace

gf_status gf_cuda_time(int device, gf_trial *trial, gf_error *error) {
    Bench bench = {};
    bench.trial = trial;
    gf_status status = gf_cuda_check(cudaSetDevice(device), "cudaSetDevice", error);
    if (!status)
        status = open_bench(&bench, error);
    if (!status)
        status = run_passes(&bench, error);
    if (!status)
        status = bring_back(&bench, error);
    close_bench(&bench);
    return status;
}
