// CUDA devices: enumeration, selection by options, initialization.
#include "cuda/host/devices.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static constexpr int min_capability = 75;

static gf_status devices_fail(gf_error *error, const char *what, cudaError_t result) {
    cudaGetLastError();
    return gf_fail(error, GF_NO_BACKEND, "cuda: %s: %s; use --backend auto or cpu", what,
                   cudaGetErrorString(result));
}

static cudaError_t driver_find(const char *name, void **function) {
#if CUDART_VERSION >= 12050
    return cudaGetDriverEntryPointByVersion(name, function, 11040, cudaEnableDefault, nullptr);
#else
    return cudaGetDriverEntryPoint(name, function, cudaEnableDefault);
#endif
}

static gf_status devices_start_one(gf_cuda_devices *devices, int device, gf_error *error) {
    cudaDeviceProp properties;
    cudaError_t result = cudaGetDeviceProperties(&properties, device);
    if (result != cudaSuccess)
        return devices_fail(error, "cannot query the device", result);
    const int capability = properties.major * 10 + properties.minor;
    if (capability < min_capability)
        return gf_fail(
            error, GF_NO_BACKEND,
            "cuda: device %d (%s) has compute capability %d.%d, 7.5 or later is required; "
            "use --backend cpu",
            device, properties.name, properties.major, properties.minor);
    // A waiting thread must sleep, because the decoder and the encoder need the CPU core. Leave the
    // context of a caller, which the runtime shares, as it is.
    CUresult (*get_state)(CUdevice, unsigned *, int *) = nullptr;
    unsigned flags;
    int active = 0;
    if (driver_find("cuDevicePrimaryCtxGetState", reinterpret_cast<void **>(&get_state)) ==
        cudaSuccess)
        get_state(device, &flags, &active);
    cudaGetLastError(); // clear the error of a driver without this function
    result = cudaSetDevice(device);
    if (result == cudaSuccess && !active)
        result = cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync);
    if (result == cudaSuccess)
        result = cudaFree(nullptr); // creates the context
    if (result != cudaSuccess)
        return devices_fail(error, "cannot initialize the device", result);
    const size_t used = strlen(devices->names);
    snprintf(devices->names + used, sizeof devices->names - used, "%sdevice %d: %s (sm_%d)",
             used ? ", " : "", device, properties.name, capability);
    return GF_OK;
}

// Count the devices, and find the functions of the driver.
static gf_status devices_find(int *present, gf_driver *driver, gf_error *error) {
    const struct {
        const char *name;
        void **function;
    } functions[] = {
        {"cuPointerGetAttributes", reinterpret_cast<void **>(&driver->pointer_attributes)},
        {"cuStreamGetCtx", reinterpret_cast<void **>(&driver->stream_context)},
        {"cuCtxGetCurrent", reinterpret_cast<void **>(&driver->get_context)},
        {"cuCtxSetCurrent", reinterpret_cast<void **>(&driver->set_context)},
    };
    cudaError_t result = cudaGetDeviceCount(present);
    if (result != cudaSuccess)
        return devices_fail(error, "no usable NVIDIA driver or device", result);
    if (*present <= 0)
        return devices_fail(error, "no device", cudaErrorNoDevice);
    for (const auto &each : functions)
        if (result == cudaSuccess)
            result = driver_find(each.name, each.function);
    return result == cudaSuccess ? GF_OK : devices_fail(error, "driver", result);
}

gf_status gf_cuda_start(const gf_engine_options *options, gf_cuda_devices *devices,
                        gf_error *error) {
    int present = 0;
    gf_status status = devices_find(&present, &devices->driver, error);
    if (!status)
        status = gf_device_list_read(options->devices, present, &devices->own, error);
    if (status)
        return status;
    const gf_caller_scope scope(devices->driver);
    for (int i = 0; i < devices->own.count && !status; i++) {
        status = devices_start_one(devices, devices->own.list[i], error);
        if (!status && i == 0)
            devices->driver.get_context(&devices->context);
    }
    return status;
}

gf_status gf_cuda_list(gf_device *devices, size_t capacity, size_t *count, gf_error *error) {
    int present = 0;
    gf_driver driver;
    *count = 0;
    const gf_status status = devices_find(&present, &driver, error);
    if (status)
        return status;
    const gf_caller_scope scope(driver);
    for (int i = 0; i < present && static_cast<size_t>(i) < capacity; i++) {
        cudaDeviceProp properties;
        cudaError_t result = cudaGetDeviceProperties(&properties, i);
        if (result != cudaSuccess)
            return devices_fail(error, "cannot query the device", result);
        gf_device *device = &devices[i];
        *device = {};
        device->index = static_cast<uint32_t>(i);
        snprintf(device->name, sizeof device->name, "%.127s", properties.name);
        snprintf(device->bus, sizeof device->bus, "%04x:%02x:%02x.0", properties.pciDomainID,
                 properties.pciBusID, properties.pciDeviceID);
        device->capability = static_cast<uint32_t>(properties.major * 10 + properties.minor);
        device->multiprocessors = static_cast<uint32_t>(properties.multiProcessorCount);
        device->memory_bytes = properties.totalGlobalMem;
        if (device->capability < min_capability)
            continue;
        // Only a device with a context returns it: another process may hold the device exclusively.
        size_t free_bytes = 0, total = 0;
        device->usable =
            cudaSetDevice(i) == cudaSuccess && cudaMemGetInfo(&free_bytes, &total) == cudaSuccess;
        device->free_bytes = device->usable ? free_bytes : 0;
        cudaGetLastError();
    }
    *count = static_cast<size_t>(present);
    return GF_OK;
}

// ---- memory and streams of the caller -----------------------------------------------------------

void gf_cuda_check_memory(const gf_cuda_devices *devices, const char *what, const void *data,
                          size_t bytes, gf_memory_range *known, gf_queue *queue) {
    const CUdeviceptr at = reinterpret_cast<CUdeviceptr>(data);
    if (queue->status)
        return;
    if (!known->bounded || at < known->begin || at >= known->end) {
        unsigned type = 0, managed = 0;
        const int own = devices->own.list[0];
        int device = own;
        size_t size = 0;
        *known = {};
        CUpointer_attribute attributes[] = {
            CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
            CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
            CU_POINTER_ATTRIBUTE_RANGE_SIZE,     CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE};
        void *values[] = {&type, &managed, &device, &known->begin, &size, &known->bounded};
        const CUresult result = devices->driver.pointer_attributes(
            sizeof attributes / sizeof attributes[0], attributes, values, at);
        known->end = known->begin + size;
        if (result != CUDA_SUCCESS || (type != CU_MEMORYTYPE_DEVICE && !managed))
            gf_queue_fail(
                queue, GF_USAGE,
                "%s: the %s is in host memory; copy it to the device, or use gf_run_memory",
                queue->name, what);
        else if (!managed && device != own)
            gf_queue_fail(queue, GF_USAGE,
                          "%s: the %s is in memory of device %d; this engine uses device %d",
                          queue->name, what, device, own);
    }
    if (!queue->status && known->bounded && at + bytes > known->end)
        gf_queue_fail(queue, GF_USAGE,
                      "%s: the %s has %llu bytes, but its memory ends after %llu bytes",
                      queue->name, what, static_cast<unsigned long long>(bytes),
                      static_cast<unsigned long long>(known->end - at));
}

void gf_cuda_check_capture(const char *what, gf_queue *queue) {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    if (queue->status)
        return;
    const cudaError_t result = cudaStreamIsCapturing(queue->stream, &capture);
    if (result != cudaSuccess && result != cudaErrorStreamCaptureImplicit) {
        gf_queue_check(queue, result, "cudaStreamIsCapturing");
    } else if (result != cudaSuccess || capture != cudaStreamCaptureStatusNone) {
        cudaGetLastError();
        gf_queue_fail(queue, GF_USAGE, "%s: %s", queue->name, what);
    }
}

void gf_cuda_check_stream(const gf_cuda_devices *devices, gf_queue *queue) {
    const cudaStream_t stream = queue->stream;
    CUcontext context = devices->context;
    if (queue->status)
        return;
    if (stream && stream != cudaStreamLegacy && stream != cudaStreamPerThread &&
        devices->driver.stream_context(stream, &context) != CUDA_SUCCESS)
        gf_queue_fail(queue, GF_USAGE, "%s: the stream is invalid", queue->name);
    else if (context != devices->context)
        gf_queue_fail(queue, GF_USAGE, "%s: the stream belongs to another device than device %d",
                      queue->name, devices->own.list[0]);
}

uint64_t gf_cuda_free_bytes(void *state) {
    gf_queue queue = gf_queue_on(nullptr, "cuda", nullptr);
    const gf_caller_scope scope(static_cast<const gf_cuda_devices *>(state), &queue);
    size_t free_bytes = 0, total = 0;
    if (queue.status || cudaMemGetInfo(&free_bytes, &total) != cudaSuccess)
        cudaGetLastError();
    return free_bytes;
}
