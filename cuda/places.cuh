// What the cuda backend keeps from image to image: its devices, and for each slot of the ring a
// place on one of them.
#ifndef GF_PLACES_CUH
#define GF_PLACES_CUH

#include "devices.cuh"
#include "moments.cuh"
#include "pinned.cuh"

extern "C" {
#include "engine/backend.h"
}

#define GF_CUDA_MAX_SLOTS (5 * GF_CUDA_MAX_DEVICES)

// The buffers of a slot, on the device and on the host; the ring on the host is all slots'.
enum {
    GF_CUDA_OUT,
    GF_CUDA_PAYLOAD,
    GF_CUDA_HOST_BUFFERS,
    GF_CUDA_IN = GF_CUDA_HOST_BUFFERS,
    GF_CUDA_SCRATCH,
    GF_CUDA_DEVICE_BUFFERS
};

// What a slot keeps from image to image: making pinned memory is slow.
struct gf_cuda_place {
    int device;
    cudaStream_t stream;
    gf_cuda_moments moments; // of its last band
    gf_pinned host[GF_CUDA_HOST_BUFFERS];
    void *memory[GF_CUDA_DEVICE_BUFFERS];
    size_t memory_size[GF_CUDA_DEVICE_BUFFERS];
};

struct gf_cuda {
    gf_cuda_devices devices;
    gf_cuda_place places[GF_CUDA_MAX_SLOTS];
    gf_cuda_timeline timelines[GF_CUDA_MAX_DEVICES]; // of this image
    void *states[GF_CUDA_MAX_DEVICES];               // what accumulates, on each device
    size_t state_size[GF_CUDA_MAX_DEVICES];
    gf_pinned ring;
};

// Called by the backend's interface with a gf_cuda.
void gf_cuda_close(void *state);

// Which of its devices a place is on.
int gf_cuda_device_index(const gf_cuda *cuda, const gf_cuda_place *place);

// Before an image: what a slot of it needs on a device; how large its scratch is, is found out
// here.
gf_status gf_cuda_prepare_place(gf_cuda_place *place, int device, const gf_job *job,
                                size_t sizes[GF_CUDA_DEVICE_BUFFERS], gf_error *error);
// An empty state on every device.
gf_status gf_cuda_start_states(gf_cuda *cuda, const gf_job *job, gf_error *error);
// Place i is the first of device i, and so gets its first band.
gf_status gf_cuda_start_timelines(gf_cuda *cuda, const gf_job *job, gf_error *error);
// What was got for an image that cannot begin: for a smaller one, or another process. Host memory
// stays: making it is slow.
void gf_cuda_free_device(gf_cuda *cuda);

#endif
