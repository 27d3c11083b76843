// CUDA devices: listing them, choosing those that options name, starting them.
#include "backend_cuda.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIN_COMPUTE_CAPABILITY 75

static gf_status devices_fail(gf_error *error, const char *what, cudaError_t result) {
    cudaGetLastError();
    return gf_fail(error, GF_NO_BACKEND, "cuda: %s: %s; use --backend auto or cpu", what,
                   cudaGetErrorString(result));
}

// "0", "0,2" or "all" into the list.
static gf_status devices_parse(gf_cuda_devices *devices, const char *list, int present,
                               gf_error *error) {
    if (strcmp(list, "all") == 0) {
        devices->count = present < GF_CUDA_MAX_DEVICES ? present : GF_CUDA_MAX_DEVICES;
        for (int i = 0; i < devices->count; i++)
            devices->list[i] = i;
        return GF_OK;
    }
    for (const char *p = list;; p++) {
        char *end;
        const long n = strtol(p, &end, 10);
        if (*p < '0' || *p > '9' || (*end != 0 && *end != ',') ||
            devices->count == GF_CUDA_MAX_DEVICES)
            return gf_fail(error, GF_USAGE,
                           "--device '%s': must be device numbers such as 0 or 0,2, or all", list);
        if (n >= present)
            return gf_fail(error, GF_NO_BACKEND,
                           "cuda: no device %ld: there are %d; see nvidia-smi, or use --device all",
                           n, present);
        for (int i = 0; i < devices->count; i++)
            if (devices->list[i] == n)
                return gf_fail(error, GF_USAGE, "--device '%s': names device %ld twice", list, n);
        devices->list[devices->count++] = static_cast<int>(n);
        p = end;
        if (*p == 0)
            return GF_OK;
    }
}

static void devices_keep_own(gf_cuda_devices *devices) {
    const uint32_t count = static_cast<uint32_t>(devices->count);
    devices->count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (gf_turn_has(i, count))
            devices->list[devices->count++] = devices->list[i];
}

static gf_status devices_start_one(gf_cuda_devices *devices, int device, gf_error *error) {
    cudaDeviceProp properties;
    cudaError_t result = cudaGetDeviceProperties(&properties, device);
    if (result != cudaSuccess)
        return devices_fail(error, "cannot ask the device", result);
    const int capability = properties.major * 10 + properties.minor;
    if (capability < MIN_COMPUTE_CAPABILITY)
        return gf_fail(error, GF_NO_BACKEND,
                       "cuda: device %d (%s, compute capability %d.%d) is older than 7.5; use "
                       "--backend cpu",
                       device, properties.name, properties.major, properties.minor);
    result = cudaSetDevice(device);
    // A waiting thread must sleep: the decoder and the encoder need the processor.
    if (result == cudaSuccess)
        result = cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync);
    if (result == cudaSuccess)
        result = cudaFree(nullptr); // makes the context
    if (result != cudaSuccess)
        return devices_fail(error, "cannot start the device", result);
    const size_t used = strlen(devices->names);
    snprintf(devices->names + used, sizeof devices->names - used, "%sdevice %d: %s (sm_%d)",
             used ? ", " : "", device, properties.name, capability);
    return GF_OK;
}

static gf_status devices_count(int *present, gf_error *error) {
    const cudaError_t result = cudaGetDeviceCount(present);
    if (result != cudaSuccess)
        return devices_fail(error, "no usable NVIDIA driver or device", result);
    return *present > 0 ? GF_OK : devices_fail(error, "no device", cudaErrorNoDevice);
}

gf_status gf_cuda_start(const gf_engine_options *options, gf_cuda_devices *devices,
                        gf_error *error) {
    int present = 0;
    gf_status status = devices_count(&present, error);
    if (!status && options->devices)
        status = devices_parse(devices, options->devices, present, error);
    else if (!status)
        devices->list[devices->count++] =
            static_cast<int>(gf_process_turn().turn % static_cast<unsigned>(present));
    if (!status && options->devices)
        devices_keep_own(devices);
    for (int i = 0; i < devices->count && !status; i++)
        status = devices_start_one(devices, devices->list[i], error);
    return status;
}

// ---- listing ------------------------------------------------------------------------------------

static gf_status devices_describe(int index, gf_device *device, gf_error *error) {
    cudaDeviceProp properties;
    cudaError_t result = cudaGetDeviceProperties(&properties, index);
    if (result != cudaSuccess)
        return devices_fail(error, "cannot ask the device", result);
    *device = {};
    device->index = static_cast<uint32_t>(index);
    snprintf(device->name, sizeof device->name, "%.127s", properties.name);
    snprintf(device->bus, sizeof device->bus, "%04x:%02x:%02x.0", properties.pciDomainID,
             properties.pciBusID, properties.pciDeviceID);
    device->capability = static_cast<uint32_t>(properties.major * 10 + properties.minor);
    device->processors = static_cast<uint32_t>(properties.multiProcessorCount);
    device->memory_bytes = properties.totalGlobalMem;
    if (device->capability < MIN_COMPUTE_CAPABILITY)
        return GF_OK;
    // Only a device that can be started can say what is free: another program may have it alone.
    size_t free_bytes = 0, total = 0;
    result = cudaSetDevice(index);
    if (result == cudaSuccess)
        result = cudaMemGetInfo(&free_bytes, &total);
    cudaGetLastError();
    device->usable = result == cudaSuccess;
    device->free_bytes = device->usable ? free_bytes : 0;
    return GF_OK;
}

extern "C" gf_status gf_devices(gf_device *devices, size_t capacity, size_t *count,
                                gf_error *error) {
    int present = 0;
    *count = 0;
    gf_status status = devices_count(&present, error);
    for (int i = 0; i < present && static_cast<size_t>(i) < capacity && !status; i++)
        status = devices_describe(i, &devices[i], error);
    if (!status)
        *count = static_cast<size_t>(present);
    return status;
}
