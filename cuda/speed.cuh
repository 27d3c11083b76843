// Timing on a device: a filter on an image in its memory, and copies.
#ifndef GF_SPEED_CUH
#define GF_SPEED_CUH

#include "device.cuh"

extern "C" {
#include "engine/trial.h"
}

// What gf_backend.time and gf_backend.copy say, on one started device.
gf_status gf_cuda_time(int device, gf_trial *trial, gf_error *error);
gf_status gf_cuda_copy(int device, uint64_t bytes, double budget, gf_memory_speed *speed,
                       gf_error *error);

#endif
