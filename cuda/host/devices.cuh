// Selection and initialization of CUDA devices.
#ifndef GF_DEVICES_CUH
#define GF_DEVICES_CUH

#include "cuda/device.cuh"

#include <cuda.h>

extern "C" {
#include "backend/backend.h"
}

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
    CUcontext context;                   // of the first device
    struct gf_png_encoder *encoder;      // on the first device; NULL until needed
    struct gf_png_decoder *decoder;      // the same
    struct gf_cuda_workspace *workspace; // the same
};

// Restores the caller's context at the end of the scope, and with it the current device. Allows
// calls that allocate or wait while another thread captures a stream.
class gf_caller_scope {
    const gf_driver &driver;
    CUcontext caller = nullptr;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;

  public:
    explicit gf_caller_scope(const gf_driver &functions) : driver(functions) {
        driver.get_context(&caller);
        cudaThreadExchangeStreamCaptureMode(&mode);
    }
    // Make the first device current.
    gf_status enter(const gf_cuda_devices *devices, gf_error *error) {
        if (caller == devices->context || driver.set_context(devices->context) == CUDA_SUCCESS)
            return GF_OK;
        return gf_fail(error, GF_NO_BACKEND, "cuda: cannot use device %d; use --backend cpu",
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
// GF_USAGE for an invalid device list, and GF_NO_BACKEND with the reason if a device cannot be
// initialized.
gf_status gf_cuda_start(const gf_engine_options *options, gf_cuda_devices *devices,
                        gf_error *error);

// ---- memory and streams of the caller -----------------------------------------------------------

// An address range of memory that the device can access.
struct gf_memory_range {
    CUdeviceptr begin, end;
    unsigned bounded; // 1: ends with its block of memory; 0: a virtual mapping may have several
};

// Check that `bytes` bytes are in memory of the first device. known: the range of the last block
// that was checked, or zero; receives that of this one. name and what start the message.
gf_status gf_cuda_check_memory(const gf_cuda_devices *devices, const char *name, const char *what,
                               const void *data, size_t bytes, gf_memory_range *known,
                               gf_error *error);
// Check that a stream belongs to the first device. captured: as in gf_cuda_check_capture; NULL: the
// stream may be captured.
gf_status gf_cuda_check_stream(const gf_cuda_devices *devices, const char *name,
                               cudaStream_t stream, const char *captured, gf_error *error);
// Return GF_USAGE, with the message `what`, if a stream is being captured into a graph.
gf_status gf_cuda_check_capture(const char *name, cudaStream_t stream, const char *what,
                                gf_error *error);

// Create an event, unless it exists. flags: of cudaEventCreateWithFlags.
gf_status gf_event_create(cudaEvent_t *event, unsigned flags, gf_error *error);

// Memory that grows. The contents are lost.
struct gf_device_memory {
    unsigned char *data;
    size_t size;
};

// stream: uses the memory. Does not wait for the work of other streams.
gf_status gf_device_grow(gf_device_memory *memory, size_t size, cudaStream_t stream,
                         gf_error *error);
// For memory that seldom grows: cudaMalloc takes a tenth of the time of cudaMallocAsync, but
// cudaFree waits for all kernels. pinned: host memory.
gf_status gf_memory_grow(gf_device_memory *memory, size_t size, bool pinned, gf_error *error);
// The same for device memory, cleared: kernels read the padding of rows, and rows are copied back
// with it. It must not expose memory of another process.
gf_status gf_memory_grow_cleared(gf_device_memory *memory, size_t size, cudaStream_t stream,
                                 gf_error *error);
uint64_t gf_cuda_free_memory(void *state); // see gf_device_functions

// Memory, a stream and copies (workspace.cu): see gf_device_functions.
gf_status gf_cuda_get_workspace(void *state, size_t size, void **memory, void **stream,
                                gf_error *error);
gf_status gf_cuda_take_host(void *state, gf_buffer *host, gf_error *error);
void gf_cuda_return_host(void *state, const gf_buffer *host);
gf_status gf_cuda_upload(void *state, void *to, const void *from, size_t bytes,
                         const gf_buffer *host, gf_error *error);
gf_status gf_cuda_download(void *state, const void *from, size_t bytes, const gf_buffer *host,
                           gf_take_bytes *take, void *context, gf_error *error);
// NULL is allowed.
struct gf_cuda_workspace;
void gf_cuda_workspace_free(gf_cuda_workspace *workspace);

// ---- PNG ----------------------------------------------------------------------------------------

// Encode and decode: see gf_device_functions.
gf_status gf_cuda_encode_png(void *state, const gf_format *format, uint64_t count,
                             const gf_pixels *in, gf_buffer *out, uint64_t *largest,
                             uint32_t threads, cudaStream_t stream, gf_error *error);
gf_status gf_cuda_decode_png(void *state, uint64_t count, const gf_buffer *files,
                             const gf_format *formats, const gf_out_pixels *out, uint32_t threads,
                             bool always, cudaStream_t stream, gf_error *errors, gf_error *error);
gf_status gf_cuda_decode_uploaded(void *state, uint64_t count, const gf_device_file *files,
                                  const gf_out_pixels *out, cudaStream_t stream, bool *decoded,
                                  gf_error *error);
// Open an encoder or a decoder, if there is none. threads: of the CPU.
gf_status gf_png_encoder_open(gf_cuda_devices *devices, gf_error *error);
gf_status gf_png_decoder_open(gf_cuda_devices *devices, uint32_t threads, gf_error *error);
// Free an encoder or a decoder. NULL is allowed.
struct gf_png_encoder;
struct gf_png_decoder;
void gf_png_encoder_free(gf_png_encoder *encoder);
void gf_png_decoder_free(gf_png_decoder *decoder);

// Jobs on images in device memory (job.cu).
extern const gf_device_functions gf_cuda_jobs;

#endif
