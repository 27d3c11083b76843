// The CUDA devices that a backend runs on.
#ifndef GF_DEVICES_CUH
#define GF_DEVICES_CUH

#include "device.cuh"

#define GF_CUDA_MAX_DEVICES 16

struct gf_cuda_devices {
    int list[GF_CUDA_MAX_DEVICES];
    int count;
    char names[160]; // "device 0: NVIDIA H200 (sm_90)"
};

// Starts the devices that options name, or the first one; of several processes, this one's share of
// them. devices is all zero before. GF_USAGE for a list that is none, GF_NO_BACKEND with the reason
// where a device cannot be had.
gf_status gf_cuda_start(const gf_engine_options *options, gf_cuda_devices *devices,
                        gf_error *error);

#endif
