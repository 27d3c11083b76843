// CUDA devices: memory, selection, initialization, checks of the caller's memory and streams.
#ifndef GF_DEVICES_CUH
#define GF_DEVICES_CUH

#include "cuda/device.cuh"

#include <cuda.h>

extern "C" {
#include "backend/backend.h"
}

// ---- memory (memory.cu) -------------------------------------------------------------------------

// Memory of devices, and of the host for copies to and from them. It grows, and is kept from image
// to image, because to allocate it is slow.
enum gf_memory_kind {
    // By cudaMalloc, which takes a tenth of the time of cudaMallocAsync. cudaFree waits for all
    // kernels: for memory that seldom grows.
    GF_MEMORY_DEVICE,
    // The same, cleared: the padding of rows is read and copied back. It must not expose memory of
    // another process.
    GF_MEMORY_CLEARED,
    // By cudaMallocAsync, which does not wait for the work of other streams.
    GF_MEMORY_STREAM,
    // Page-locked host memory that all devices access directly. If no more memory can be locked, it
    // is pageable: the driver then copies through its own buffer.
    GF_MEMORY_HOST,
    GF_MEMORY_PAGEABLE, // chosen by gf_memory_grow
};

// Zero: no memory.
struct gf_storage {
    unsigned char *data;
    size_t size;
    gf_memory_kind kind;
};

// Grow memory to at least `size` bytes. The contents are lost. The queue uses the memory.
void gf_memory_grow(gf_storage *memory, size_t size, gf_memory_kind kind, gf_queue *queue);
// Grow host memory by a quarter more than necessary, and keep its first `used` bytes.
void gf_memory_extend(gf_storage *memory, size_t size, size_t used, gf_queue *queue);
void gf_memory_free(gf_storage *memory);

// Divides memory among arrays.
struct gf_division {
    unsigned char *base;
    size_t used; // bytes
    template <typename T> void take(T **array, size_t count) {
        *array = reinterpret_cast<T *>(base + used);
        used += gf_align(count * sizeof(T));
    }
};

// Return the scratch bytes of a plan's kernels, on the current device.
static inline size_t gf_scratch_bytes(const gf_plan *plan, uint64_t in_rows) {
    const gf_filter_cuda *kernels = gf_filter_kernels(plan->filter);
    return kernels->scratch_bytes ? kernels->scratch_bytes(plan, in_rows) : 0;
}

// ---- devices (devices.cu) -----------------------------------------------------------------------

// Functions of the driver without a counterpart in the runtime.
struct gf_driver {
    CUresult (*pointer_attributes)(unsigned, CUpointer_attribute *, void **, CUdeviceptr);
    CUresult (*stream_context)(CUstream, CUcontext *);
    CUresult (*get_context)(CUcontext *);
    CUresult (*set_context)(CUcontext);
};

// First member of the state of the cuda backend.
struct gf_cuda_devices {
    gf_device_list own;
    char names[160]; // for example "device 0: NVIDIA H200 (sm_90)"
    gf_driver driver;
    CUcontext context; // of the first device
    // On the first device; NULL until needed.
    struct gf_png_encoder *encoder;
    struct gf_png_decoder *decoder;
    cudaStream_t stream; // of workspace.cu
    gf_storage memory;
};

// Restores the caller's context at the end of the scope, and with it the current device. Allows
// calls that allocate or wait while another thread captures a stream.
class gf_caller_scope {
    const gf_driver driver; // a copy: the end of the scope may follow that of the devices
    CUcontext caller = nullptr;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;

  public:
    explicit gf_caller_scope(const gf_driver &functions) : driver(functions) {
        driver.get_context(&caller);
        cudaThreadExchangeStreamCaptureMode(&mode);
    }
    // Make the first device current, too. After a failure the queue does nothing.
    gf_caller_scope(const gf_cuda_devices *devices, gf_queue *queue)
        : gf_caller_scope(devices->driver) {
        if (caller != devices->context && driver.set_context(devices->context) != CUDA_SUCCESS)
            gf_queue_fail(queue, GF_NO_BACKEND, "cuda: cannot use device %d; use --backend cpu",
                          devices->own.list[0]);
    }
    ~gf_caller_scope() {
        CUcontext current = caller;
        cudaThreadExchangeStreamCaptureMode(&mode);
        if (driver.get_context(&current) == CUDA_SUCCESS && current != caller)
            driver.set_context(caller);
    }
    gf_caller_scope(const gf_caller_scope &) = delete;
};

// List devices (gf_devices in gpufilter.h).
gf_status gf_cuda_list(gf_device *devices, size_t capacity, size_t *count, gf_error *error);
// Initialize the devices that options name, or device 0. With several processes on one machine,
// each process uses its share of the devices. devices: zero-initialized by the caller. Returns
// GF_USAGE for an invalid list, and GF_NO_BACKEND with the reason for other failures.
gf_status gf_cuda_start(const gf_engine_options *options, gf_cuda_devices *devices,
                        gf_error *error);

// ---- memory and streams of the caller -----------------------------------------------------------

// An address range of memory that the device can access.
struct gf_memory_range {
    CUdeviceptr begin, end;
    unsigned bounded; // 1: ends with its block of memory; 0: a virtual mapping may have several
};

// These checks fail with GF_USAGE. The name of the queue starts the message.
//
// Check that `bytes` bytes are in memory of the first device. what: for the message. known: the
// range of the last block that was checked, or zero; receives that of this one.
void gf_cuda_check_memory(const gf_cuda_devices *devices, const char *what, const void *data,
                          size_t bytes, gf_memory_range *known, gf_queue *queue);
// Check that the stream of the queue belongs to the first device.
void gf_cuda_check_stream(const gf_cuda_devices *devices, gf_queue *queue);
// Check that the stream of the queue is not captured into a graph. what: the message.
void gf_cuda_check_capture(const char *what, gf_queue *queue);

// ---- images in device memory: see backend/backend.h ---------------------------------------------

extern const gf_job_functions gf_cuda_jobs;      // job.cu
extern const gf_memory_functions gf_cuda_memory; // workspace.cu
extern const gf_png_functions gf_cuda_png;       // png/decode.cu

gf_status gf_cuda_encode_png(void *state, const gf_device_encoding *call, gf_error *error);
uint64_t gf_cuda_free_bytes(void *state);
// Open an encoder or a decoder, if there is none. threads: of the CPU.
void gf_png_encoder_open(gf_cuda_devices *devices, gf_queue *queue);
void gf_png_decoder_open(gf_cuda_devices *devices, uint32_t threads, gf_queue *queue);
// Free it if there is one. The first device is current.
void gf_png_encoder_free(gf_png_encoder *encoder);
void gf_png_decoder_free(gf_png_decoder *decoder);
void gf_cuda_workspace_free(gf_cuda_devices *devices);

#endif
