// What the files of the cuda backend share: its devices, and times on them.
#ifndef GF_BACKEND_CUDA_CUH
#define GF_BACKEND_CUDA_CUH

#include "device.cuh"

extern "C" {
#include "core/clock.h"
#include "core/machine.h"
#include "engine/backend.h"
#include "engine/trial.h"
}

// ---- devices.cu ---------------------------------------------------------------------------------

struct gf_cuda_devices {
    gf_device_list own;
    int count;
    char names[160]; // "device 0: NVIDIA H200 (sm_90)"
};

// Starts the devices that options name, or the first one; of several processes, this one's share of
// them. devices is all zero before. GF_USAGE for a list that is none, GF_NO_BACKEND with the reason
// where a device cannot be started.
gf_status gf_cuda_start(const gf_engine_options *options, gf_cuda_devices *devices,
                        gf_error *error);

// ---- speed.cu -----------------------------------------------------------------------------------

// A band's events. FREE: its kernels have what they had to wait for.
enum gf_cuda_moment {
    GF_CUDA_SENT,
    GF_CUDA_UPLOADED,
    GF_CUDA_FREE,
    GF_CUDA_COMPUTED,
    GF_CUDA_DOWNLOADED,
    GF_CUDA_MOMENTS
};

// What a device did for one image, in seconds.
struct gf_cuda_timeline {
    cudaEvent_t began;            // the origin of its times
    double until[GF_STAGE_COUNT]; // how far each stage's time is counted
    double busy[GF_STAGE_COUNT];
};

// Begins at zero, on a stream of the current device that gets the first band.
gf_status gf_cuda_timeline_start(gf_cuda_timeline *timeline, cudaStream_t stream, gf_error *error);

// Adds the time between two events that are past, but for what was counted already: bands overlap,
// and each may have waited for the copy of the one before it. To be called in the bands' order.
gf_status gf_cuda_count(gf_cuda_timeline *timeline, gf_stage stage, cudaEvent_t from,
                        cudaEvent_t to, gf_error *error);

// gf_backend.time and gf_backend.copy, on the first device. state begins with a gf_cuda_devices.
gf_status gf_cuda_time(void *state, gf_trial *trial, gf_error *error);
gf_status gf_cuda_copy(void *state, uint64_t bytes, double budget, gf_memory_speed *speed,
                       gf_error *error);

#endif
