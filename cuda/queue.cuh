// Operations on a stream: launches, copies, events, and sequences of launches that are repeated as
// a graph. All take a gf_queue (core/filter.h), which keeps the first error.
#ifndef GF_QUEUE_CUH
#define GF_QUEUE_CUH

#include <cuda_runtime.h>
#include <stdlib.h>

extern "C" {
#include "core/error.h"
#include "core/filter.h"
}

// Return a queue for a stream. name: for messages, what its kernels belong to.
static inline gf_queue gf_queue_on(cudaStream_t stream, const char *name, gf_error *error) {
    return {stream, error, name, GF_OK, nullptr};
}

// Note the result of an operation. The message contains CUDA's own text; what: the operation.
// Clears the error, because the next, unrelated call would return it again. Out of memory is
// GF_FAILED: the device still works for a smaller job or at a later time. Every other error is
// GF_NO_BACKEND: most CUDA errors are sticky, and every later call in the process returns them.
static inline void gf_queue_check(gf_queue *queue, cudaError_t result, const char *what) {
    if (result == cudaSuccess)
        return;
    cudaGetLastError();
    if (!queue->status)
        queue->status =
            gf_fail(queue->error, result == cudaErrorMemoryAllocation ? GF_FAILED : GF_NO_BACKEND,
                    "cuda: %s: %s; use --backend cpu", what, cudaGetErrorString(result));
}

// Call a function of the CUDA runtime and note its result, unless an operation has failed.
#define gf_queue_call(queue, what, call)                                                           \
    ((queue)->status ? (void)0 : gf_queue_check(queue, call, what))

// Note the failure of an operation, as gf_fail and gf_fail_memory.
#define gf_queue_fail(queue, ...) ((queue)->status = gf_fail((queue)->error, __VA_ARGS__))
#define gf_queue_fail_memory(queue, bytes, what)                                                   \
    ((queue)->status = gf_fail_memory((queue)->error, (queue)->name, bytes, what))

// Return a zeroed object; NULL after a failure. what: for the message.
template <typename T> static T *gf_queue_new(gf_queue *queue, const char *what) {
    T *object = queue->status ? nullptr : static_cast<T *>(calloc(1, sizeof(T)));
    if (!queue->status && !object)
        gf_queue_fail_memory(queue, sizeof(T), what);
    return object;
}

// Make a device current, and continue on a stream of it. The current device is a property of the
// thread, and the calling thread may be new.
static inline void gf_queue_move(gf_queue *queue, int device, cudaStream_t stream) {
    queue->stream = stream;
    gf_queue_call(queue, "cudaSetDevice", cudaSetDevice(device));
}

// Create a stream or an event on the current device, unless it exists. flags: of the event.
static inline void gf_stream_create(cudaStream_t *stream, gf_queue *queue) {
    if (!*stream)
        gf_queue_call(queue, "cudaStreamCreate",
                      cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
}

static inline void gf_event_create(cudaEvent_t *event, unsigned flags, gf_queue *queue) {
    if (!*event)
        gf_queue_call(queue, "cudaEventCreate", cudaEventCreateWithFlags(event, flags));
}

// Copy bytes. what: for the message.
static inline void gf_queue_copy(gf_queue *queue, void *to, const void *from, size_t bytes,
                                 const char *what, cudaMemcpyKind kind = cudaMemcpyDefault) {
    if (bytes)
        gf_queue_call(queue, what, cudaMemcpyAsync(to, from, bytes, kind, queue->stream));
}

static inline void gf_queue_upload(gf_queue *queue, void *to, const void *from, size_t bytes) {
    gf_queue_copy(queue, to, from, bytes, "upload", cudaMemcpyHostToDevice);
}

static inline void gf_queue_download(gf_queue *queue, void *to, const void *from, size_t bytes) {
    gf_queue_copy(queue, to, from, bytes, "download", cudaMemcpyDeviceToHost);
}

static inline void gf_queue_clear(gf_queue *queue, void *memory, size_t bytes) {
    if (bytes)
        gf_queue_call(queue, "cudaMemset", cudaMemsetAsync(memory, 0, bytes, queue->stream));
}

static inline void gf_queue_record(gf_queue *queue, cudaEvent_t event) {
    gf_queue_call(queue, "cudaEventRecord", cudaEventRecord(event, queue->stream));
}

// Let the operations after this one wait for an event.
static inline void gf_queue_follow(gf_queue *queue, cudaEvent_t event) {
    gf_queue_call(queue, "cudaStreamWaitEvent", cudaStreamWaitEvent(queue->stream, event, 0));
}

// Wait for all operations. what: for the message. The thread sleeps if the backend has made the
// context, and spins in a context of the caller.
static inline void gf_queue_synchronize(gf_queue *queue, const char *what) {
    gf_queue_call(queue, what, cudaStreamSynchronize(queue->stream));
}

// The same for a long wait, also after a failure: it leaves the core to other threads.
void gf_queue_wait(gf_queue *queue, const char *what);

// Clear the first `words` 8-byte words of each row by a kernel.
void gf_clear_rows(const gf_rows &rows, uint32_t words, gf_queue *queue);

// Return the __CUDA_ARCH__ / 10 of a kernel's code on the current device; 0: unknown. All kernels
// are compiled for the same architectures, therefore any kernel represents the others.
uint32_t gf_code_version(const void *kernel);

// A launch of any kernel.
struct gf_launch {
    const void *kernel;
    dim3 grid;
    unsigned block;
    size_t shared; // bytes
    void *const *arguments;
    const size_t *sizes; // of the arguments, in bytes
    size_t count;        // number of arguments
};

// Launch a kernel, or record it (host/queue.cu).
void gf_launch_any(const gf_launch &launch, gf_queue *queue);

// Launch a kernel whose blocks may start before the previous kernel of the stream has completed:
// when its last blocks have finished, but their writes may not be visible yet. The blocks are then
// ready when the memory is, which saves most of the gap between two short kernels. In the kernel,
// each thread must call gf_wait_for_stream before its first access to global memory.
template <typename... Parameters, typename... Arguments>
static void gf_launch_kernel(void (*kernel)(Parameters...), dim3 grid, unsigned block,
                             size_t shared, gf_queue *queue, const Arguments &...arguments) {
    [&](Parameters... values) {
        void *const pointers[] = {&values...};
        const size_t sizes[] = {sizeof values...};
        gf_launch_any({reinterpret_cast<const void *>(kernel), grid, block, shared, pointers, sizes,
                       sizeof...(values)},
                      queue);
    }(arguments...);
}

// Sequence of kernel launches that is repeated as a CUDA graph: the launch of a graph takes less
// host time than that of two kernels. Between gf_sequence_begin and gf_sequence_launch, the kernels
// of a queue are recorded and not launched. The first recording creates the graph. Each later one
// updates the kernels whose arguments have changed.
struct gf_sequence;

// Start to record. NULL: creates the sequence. Returns false after a failure.
bool gf_sequence_begin(gf_sequence **sequence, gf_queue *queue);
// Return whether the queue is recorded, and if so, let the recording fail. To be called before
// any launch by other means than gf_launch_kernel, for example by a library; if true, the caller
// launches nothing.
bool gf_sequence_refuse(gf_queue *queue);
// Stop recording, and launch the graph on the stream of the queue if it is complete: at least two
// kernels, the same ones in every recording. Returns false if nothing was launched.
bool gf_sequence_launch(gf_queue *queue);
void gf_sequence_free(gf_sequence *sequence);

#endif
