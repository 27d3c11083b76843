// The devices of the cuda backend.
#ifndef GF_DEVICES_CUH
#define GF_DEVICES_CUH

#include "device.cuh"

extern "C" {
#include "core/machine.h"
}

struct gf_cuda_devices {
    gf_device_list own;
    char names[160]; // "device 0: NVIDIA H200 (sm_90)"
};

// Starts the devices that options name, or the first one; of several processes, this one's share of
// them. devices is all zero before. GF_USAGE for a list that is none, GF_NO_BACKEND with the reason
// where a device cannot be started.
gf_status gf_cuda_start(const gf_engine_options *options, gf_cuda_devices *devices,
                        gf_error *error);

#endif
