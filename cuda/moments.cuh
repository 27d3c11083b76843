// When bands were uploaded, computed and downloaded: events on their streams, and what they add up
// to.
#ifndef GF_MOMENTS_CUH
#define GF_MOMENTS_CUH

#include "device.cuh"

extern "C" {
#include "stage.h"
}

// Moments of a band on its way. FREE: what its kernels had to wait for is there.
enum gf_cuda_moment {
    GF_CUDA_SENT,
    GF_CUDA_UPLOADED,
    GF_CUDA_FREE,
    GF_CUDA_COMPUTED,
    GF_CUDA_DOWNLOADED,
    GF_CUDA_MOMENTS
};

struct gf_cuda_moments {
    cudaEvent_t at[GF_CUDA_MOMENTS];
};

// Makes the events that are not there yet, on the current device.
static inline gf_status gf_cuda_moments_open(gf_cuda_moments *moments, gf_error *error) {
    gf_status status = GF_OK;
    for (int i = 0; i < GF_CUDA_MOMENTS && !status; i++)
        if (!moments->at[i])
            status = gf_cuda_check(cudaEventCreate(&moments->at[i]), "cudaEventCreate", error);
    return status;
}

static inline void gf_cuda_moments_close(gf_cuda_moments *moments) {
    for (cudaEvent_t moment : moments->at)
        if (moment)
            cudaEventDestroy(moment);
}

// What a device did for one image, in seconds.
struct gf_cuda_timeline {
    cudaEvent_t began;            // what moments are measured from
    double until[GF_STAGE_COUNT]; // how far each stage's time is counted, since then
    double busy[GF_STAGE_COUNT];
};

// Begins at zero, on a stream of the current device that gets the first band.
static inline gf_status gf_cuda_timeline_start(gf_cuda_timeline *timeline, cudaStream_t stream,
                                               gf_error *error) {
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

static inline void gf_cuda_timeline_close(gf_cuda_timeline *timeline) {
    if (timeline->began)
        cudaEventDestroy(timeline->began);
}

// Adds the time between two moments that are past, but for what was counted already: bands overlap,
// and each may have waited for the copy of the one before it. To be called in the bands' order.
static inline gf_status gf_cuda_count(gf_cuda_timeline *timeline, gf_stage stage, cudaEvent_t from,
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

static inline gf_status gf_cuda_count_band(gf_cuda_timeline *timeline,
                                           const gf_cuda_moments *moments, gf_error *error) {
    const cudaEvent_t *at = moments->at;
    gf_status status =
        gf_cuda_count(timeline, GF_UPLOADING, at[GF_CUDA_SENT], at[GF_CUDA_UPLOADED], error);
    if (!status)
        status =
            gf_cuda_count(timeline, GF_COMPUTING, at[GF_CUDA_FREE], at[GF_CUDA_COMPUTED], error);
    return status ? status
                  : gf_cuda_count(timeline, GF_DOWNLOADING, at[GF_CUDA_COMPUTED],
                                  at[GF_CUDA_DOWNLOADED], error);
}

#endif
