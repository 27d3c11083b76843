// Memory and a stream that an engine keeps for a caller, and copies through page-locked memory.
#include "cuda/host/devices.cuh"

#include <pthread.h>

// Holds most files: one copy is faster than several.
static constexpr size_t host_bytes = size_t{4} << 20;

// The end of a block of host memory, after its host_bytes.
struct workspace_block {
    gf_storage memory;
    workspace_block *next; // in the list of unused blocks
};

// Unused blocks of all workspaces: page-locked memory is slow to allocate.
static struct {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    unsigned workspaces;
    workspace_block *unused;
} host_memory;

static workspace_block *workspace_block_of(const void *data) {
    return reinterpret_cast<workspace_block *>(
        static_cast<unsigned char *>(const_cast<void *>(data)) + host_bytes);
}

// Take a block from the list; NULL if there is none. Called with the lock held.
static workspace_block *workspace_pop_block() {
    workspace_block *block = host_memory.unused;
    if (block)
        host_memory.unused = block->next;
    return block;
}

void gf_cuda_workspace_free(gf_cuda_devices *devices) {
    if (!devices->stream)
        return;
    gf_memory_free(&devices->memory);
    cudaStreamDestroy(devices->stream);
    pthread_mutex_lock(&host_memory.lock);
    if (--host_memory.workspaces == 0)
        while (workspace_block *block = workspace_pop_block()) {
            gf_storage memory = block->memory;
            gf_memory_free(&memory);
        }
    pthread_mutex_unlock(&host_memory.lock);
}

static gf_status workspace_get(void *state, size_t size, void **memory, void **stream,
                               gf_error *error) {
    gf_cuda_devices *devices = static_cast<gf_cuda_devices *>(state);
    gf_queue queue = gf_queue_on(nullptr, "cuda", error);
    const gf_caller_scope scope(devices, &queue);
    if (!devices->stream) {
        gf_stream_create(&devices->stream, &queue);
        pthread_mutex_lock(&host_memory.lock);
        host_memory.workspaces += devices->stream ? 1 : 0;
        pthread_mutex_unlock(&host_memory.lock);
        // Both allocate page-locked memory, which takes ms: not when the first files wait.
        gf_png_decoder_open(devices, 1, &queue);
        gf_png_encoder_open(devices, &queue);
    }
    gf_memory_grow(&devices->memory, size, GF_MEMORY_DEVICE, &queue);
    *memory = devices->memory.data;
    *stream = devices->stream;
    return queue.status;
}

static gf_status workspace_take_host(void *state, gf_buffer *host, gf_error *error) {
    gf_queue queue = gf_queue_on(nullptr, "cuda", error);
    const gf_caller_scope scope(static_cast<const gf_cuda_devices *>(state), &queue);
    pthread_mutex_lock(&host_memory.lock);
    workspace_block *block = queue.status ? nullptr : workspace_pop_block();
    pthread_mutex_unlock(&host_memory.lock);
    gf_storage memory = block ? block->memory : gf_storage{};
    gf_memory_grow(&memory, host_bytes + sizeof *block, GF_MEMORY_HOST, &queue);
    if (queue.status)
        return queue.status;
    workspace_block_of(memory.data)->memory = memory;
    *host = {memory.data, host_bytes};
    return GF_OK;
}

static void workspace_return_host(void *, const gf_buffer *host) {
    workspace_block *block = workspace_block_of(host->data);
    pthread_mutex_lock(&host_memory.lock);
    block->next = host_memory.unused;
    host_memory.unused = block;
    pthread_mutex_unlock(&host_memory.lock);
}

static gf_status workspace_upload(void *state, void *to, const void *from, size_t bytes,
                                  const gf_buffer *host, gf_error *error) {
    gf_queue queue = gf_queue_on(cudaStreamPerThread, "cuda", error);
    const gf_caller_scope scope(static_cast<const gf_cuda_devices *>(state), &queue);
    for (size_t at = 0; at < bytes && !queue.status; at += host->size) {
        const size_t size = bytes - at < host->size ? bytes - at : host->size;
        if (from != host->data)
            memcpy(host->data, static_cast<const unsigned char *>(from) + at, size);
        gf_queue_copy(&queue, static_cast<unsigned char *>(to) + at, host->data, size, "copy");
        gf_queue_synchronize(&queue, "copy");
    }
    return queue.status;
}

static gf_status workspace_download(void *state, const void *from, size_t bytes,
                                    const gf_buffer *host, gf_sink *sink, gf_error *error) {
    gf_queue queue = gf_queue_on(cudaStreamPerThread, "cuda", error);
    const gf_caller_scope scope(static_cast<const gf_cuda_devices *>(state), &queue);
    for (size_t at = 0; at < bytes && !queue.status; at += host->size) {
        const size_t size = bytes - at < host->size ? bytes - at : host->size;
        gf_queue_copy(&queue, host->data, static_cast<const unsigned char *>(from) + at, size,
                      "copy");
        gf_queue_synchronize(&queue, "copy");
        if (!queue.status)
            queue.status = gf_output_write(sink->output, host->data, size, error);
    }
    return queue.status;
}

const gf_memory_functions gf_cuda_memory = {
    gf_cuda_free_bytes,    workspace_get,    workspace_take_host,
    workspace_return_host, workspace_upload, workspace_download,
};
