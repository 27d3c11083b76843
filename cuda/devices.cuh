// Selection and initialization of CUDA devices.
#ifndef GF_DEVICES_CUH
#define GF_DEVICES_CUH

#include "device.cuh"

extern "C" {
#include "core/machine.h"
}

// First member of the state of the cuda backend.
struct gf_cuda_devices {
    gf_device_list own;
    char names[160]; // for example "device 0: NVIDIA H200 (sm_90)"
};

// Initialize the devices that options name, or device 0. With several processes on one machine,
// each process uses its share of the devices. devices: zero-initialized by the caller. Returns
// GF_USAGE for an invalid device list, and GF_NO_BACKEND with the reason if a device cannot be
// initialized.
gf_status gf_cuda_start(const gf_engine_options *options, gf_cuda_devices *devices,
                        gf_error *error);

// Find a function of the driver that the runtime does not offer.
cudaError_t gf_driver_find(const char *name, void **function);

// Jobs on images in device memory (job.cu).
struct gf_device_functions;
extern const gf_device_functions gf_cuda_jobs;

#endif
