// Memory and a stream that an engine keeps for a caller, and copies through pinned memory.
#include "cuda/host/devices.cuh"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define HOST_BYTES (size_t{4} << 20) // holds most files: one copy is faster than several

struct gf_cuda_workspace {
    const gf_cuda_devices *devices;
    gf_device_memory memory;
    cudaStream_t stream;
};

// Blocks of pinned memory that are not taken. All workspaces share them, because pinned memory is
// slow to allocate. A block begins with the address of the next one.
static struct {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    unsigned workspaces;
    void *unused;
} host_memory;

static gf_status workspace_open(gf_cuda_devices *devices, gf_error *error) {
    gf_cuda_workspace *workspace = static_cast<gf_cuda_workspace *>(calloc(1, sizeof *workspace));
    if (!workspace)
        return gf_fail_memory(error, "cuda", sizeof *workspace, "a workspace");
    workspace->devices = devices;
    devices->workspace = workspace;
    pthread_mutex_lock(&host_memory.lock);
    host_memory.workspaces++;
    pthread_mutex_unlock(&host_memory.lock);
    gf_status status =
        gf_cuda_check(cudaStreamCreateWithFlags(&workspace->stream, cudaStreamNonBlocking),
                      "cudaStreamCreate", error);
    // Both allocate pinned memory, which takes milliseconds: not when the first files wait for it.
    if (!status)
        status = gf_png_decoder_open(devices, 1, error);
    return status ? status : gf_png_encoder_open(devices, error);
}

// Take a block from the list; NULL if there is none. Called with the lock held.
static void *workspace_pop_host() {
    void *block = host_memory.unused;
    if (block)
        memcpy(&host_memory.unused, block, sizeof block);
    return block;
}

void gf_cuda_workspace_free(gf_cuda_workspace *workspace) {
    if (!workspace)
        return;
    gf_caller_scope scope(workspace->devices->driver);
    scope.enter(workspace->devices, nullptr);
    cudaFree(workspace->memory.data);
    if (workspace->stream)
        cudaStreamDestroy(workspace->stream);
    free(workspace);
    pthread_mutex_lock(&host_memory.lock);
    if (--host_memory.workspaces == 0)
        while (void *block = workspace_pop_host())
            cudaFreeHost(block);
    pthread_mutex_unlock(&host_memory.lock);
}

gf_status gf_cuda_get_workspace(void *state, size_t size, void **memory, void **stream,
                                gf_error *error) {
    gf_cuda_devices *devices = static_cast<gf_cuda_devices *>(state);
    gf_caller_scope scope(devices->driver);
    gf_status status = scope.enter(devices, error);
    if (!status && !devices->workspace)
        status = workspace_open(devices, error);
    if (!status)
        status = gf_memory_grow(&devices->workspace->memory, size, false, error);
    if (status)
        return status;
    *memory = devices->workspace->memory.data;
    *stream = devices->workspace->stream;
    return GF_OK;
}

// ---- copies -------------------------------------------------------------------------------------

gf_status gf_cuda_take_host(void *state, gf_buffer *host, gf_error *error) {
    const gf_cuda_devices *devices = static_cast<const gf_cuda_devices *>(state);
    gf_caller_scope scope(devices->driver);
    gf_status status = scope.enter(devices, error);
    if (status)
        return status;
    pthread_mutex_lock(&host_memory.lock);
    host->data = workspace_pop_host();
    pthread_mutex_unlock(&host_memory.lock);
    host->size = HOST_BYTES;
    if (!host->data)
        status = gf_cuda_check(cudaHostAlloc(&host->data, HOST_BYTES, cudaHostAllocPortable),
                               "pinned memory", error);
    return status;
}

void gf_cuda_return_host(void *, const gf_buffer *host) {
    pthread_mutex_lock(&host_memory.lock);
    memcpy(host->data, &host_memory.unused, sizeof host_memory.unused);
    host_memory.unused = host->data;
    pthread_mutex_unlock(&host_memory.lock);
}

gf_status gf_cuda_upload(void *state, void *to, const void *from, size_t bytes,
                         const gf_buffer *host, gf_error *error) {
    const gf_cuda_devices *devices = static_cast<const gf_cuda_devices *>(state);
    gf_caller_scope scope(devices->driver);
    gf_queue queue = {cudaStreamPerThread, error, "cuda", scope.enter(devices, error), nullptr};
    for (size_t at = 0; at < bytes && !queue.status; at += host->size) {
        const size_t size = bytes - at < host->size ? bytes - at : host->size;
        if (from != host->data)
            memcpy(host->data, static_cast<const unsigned char *>(from) + at, size);
        gf_queue_copy(&queue, static_cast<unsigned char *>(to) + at, host->data, size, "copy");
        gf_queue_synchronize(&queue, "copy");
    }
    return queue.status;
}

gf_status gf_cuda_download(void *state, const void *from, size_t bytes, const gf_buffer *host,
                           gf_take_bytes *take, void *context, gf_error *error) {
    const gf_cuda_devices *devices = static_cast<const gf_cuda_devices *>(state);
    gf_caller_scope scope(devices->driver);
    gf_queue queue = {cudaStreamPerThread, error, "cuda", scope.enter(devices, error), nullptr};
    for (size_t at = 0; at < bytes && !queue.status; at += host->size) {
        const size_t size = bytes - at < host->size ? bytes - at : host->size;
        gf_queue_copy(&queue, host->data, static_cast<const unsigned char *>(from) + at, size,
                      "copy");
        gf_queue_synchronize(&queue, "copy");
        if (!queue.status)
            queue.status = take(context, host->data, size, error);
    }
    return queue.status;
}
