// Memory and a stream that an engine keeps for a caller, and copies in pieces of pinned memory.
#include "devices.cuh"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "engine/backend.h"
}

#define PIECE_BYTES (size_t{1} << 19) // stays in the cache of a core until it is consumed
#define PIECES 16

struct gf_cuda_workspace {
    const gf_cuda_devices *devices;
    gf_device_memory memory;
    cudaStream_t stream;
    unsigned char *pinned; // the pieces
    pthread_mutex_t lock;
    unsigned char *unused[PIECES];
    int unused_count;
};

static gf_status workspace_open(gf_cuda_devices *devices, gf_error *error) {
    gf_cuda_workspace *workspace = static_cast<gf_cuda_workspace *>(calloc(1, sizeof *workspace));
    if (!workspace)
        return gf_fail_memory(error, "cuda", sizeof *workspace, "a workspace");
    workspace->devices = devices;
    gf_status status =
        gf_cuda_check(cudaStreamCreateWithFlags(&workspace->stream, cudaStreamNonBlocking),
                      "cudaStreamCreate", error);
    if (!status)
        status = gf_cuda_check(cudaMallocHost(&workspace->pinned, PIECES * PIECE_BYTES),
                               "pinned memory", error);
    pthread_mutex_init(&workspace->lock, nullptr);
    for (; !status && workspace->unused_count < PIECES; workspace->unused_count++)
        workspace->unused[workspace->unused_count] =
            workspace->pinned + workspace->unused_count * PIECE_BYTES;
    devices->workspace = workspace;
    // Later, their pinned memory would wait for the kernels of other streams.
    if (!status)
        status = gf_png_decoder_open(devices, 1, error);
    return status ? status : gf_png_encoder_open(devices, error);
}

void gf_cuda_workspace_free(gf_cuda_workspace *workspace) {
    if (!workspace)
        return;
    gf_caller_scope scope(workspace->devices->driver);
    scope.enter(workspace->devices, nullptr);
    cudaFreeHost(workspace->pinned);
    cudaFree(workspace->memory.data);
    if (workspace->stream)
        cudaStreamDestroy(workspace->stream);
    pthread_mutex_destroy(&workspace->lock);
    free(workspace);
}

gf_status gf_cuda_get_workspace(void *state, size_t size, void **memory, void **stream,
                                gf_error *error) {
    gf_cuda_devices *devices = static_cast<gf_cuda_devices *>(state);
    gf_caller_scope scope(devices->driver);
    gf_status status = scope.enter(devices, error);
    if (!status && !devices->workspace)
        status = workspace_open(devices, error);
    if (!status)
        status =
            gf_device_grow(&devices->workspace->memory, size, devices->workspace->stream, error);
    if (!status) // other streams use the memory, too
        status = gf_cuda_check(cudaStreamSynchronize(devices->workspace->stream), "device memory",
                               error);
    if (status)
        return status;
    *memory = devices->workspace->memory.data;
    *stream = devices->workspace->stream;
    return GF_OK;
}

uint64_t gf_cuda_free_memory(void *state) {
    const gf_cuda_devices *devices = static_cast<const gf_cuda_devices *>(state);
    gf_caller_scope scope(devices->driver);
    size_t free_bytes = 0, total = 0;
    if (scope.enter(devices, nullptr) || cudaMemGetInfo(&free_bytes, &total) != cudaSuccess)
        cudaGetLastError();
    return free_bytes;
}

// ---- copies -------------------------------------------------------------------------------------

// Take a piece; pageable memory if all pinned ones are in use.
static gf_status workspace_take_piece(gf_cuda_workspace *workspace, unsigned char **piece,
                                      gf_error *error) {
    *piece = nullptr;
    pthread_mutex_lock(&workspace->lock);
    if (workspace->unused_count > 0)
        *piece = workspace->unused[--workspace->unused_count];
    pthread_mutex_unlock(&workspace->lock);
    if (!*piece)
        *piece = static_cast<unsigned char *>(malloc(PIECE_BYTES));
    return *piece ? GF_OK : gf_fail_memory(error, "cuda", PIECE_BYTES, "a copy");
}

static void workspace_return_piece(gf_cuda_workspace *workspace, unsigned char *piece) {
    const uintptr_t at = reinterpret_cast<uintptr_t>(piece),
                    pinned = reinterpret_cast<uintptr_t>(workspace->pinned);
    if (at < pinned || at >= pinned + PIECES * PIECE_BYTES) {
        free(piece);
        return;
    }
    pthread_mutex_lock(&workspace->lock);
    workspace->unused[workspace->unused_count++] = piece;
    pthread_mutex_unlock(&workspace->lock);
}

gf_status gf_cuda_upload(void *state, void *to, const void *from, size_t bytes, gf_error *error) {
    const gf_cuda_devices *devices = static_cast<const gf_cuda_devices *>(state);
    gf_caller_scope scope(devices->driver);
    unsigned char *piece = nullptr;
    gf_status status = scope.enter(devices, error);
    if (!status)
        status = workspace_take_piece(devices->workspace, &piece, error);
    for (size_t at = 0; at < bytes && !status; at += PIECE_BYTES) {
        const size_t size = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        memcpy(piece, static_cast<const unsigned char *>(from) + at, size);
        status = gf_cuda_check(cudaMemcpyAsync(static_cast<unsigned char *>(to) + at, piece, size,
                                               cudaMemcpyHostToDevice, cudaStreamPerThread),
                               "upload", error);
        if (!status)
            status = gf_cuda_check(cudaStreamSynchronize(cudaStreamPerThread), "upload", error);
    }
    if (piece)
        workspace_return_piece(devices->workspace, piece);
    return status;
}

gf_status gf_cuda_download(void *state, const void *from, size_t bytes, gf_take_bytes *take,
                           void *context, gf_error *error) {
    const gf_cuda_devices *devices = static_cast<const gf_cuda_devices *>(state);
    gf_caller_scope scope(devices->driver);
    unsigned char *piece = nullptr;
    gf_status status = scope.enter(devices, error);
    if (!status)
        status = workspace_take_piece(devices->workspace, &piece, error);
    for (size_t at = 0; at < bytes && !status; at += PIECE_BYTES) {
        const size_t size = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        status = gf_cuda_check(cudaMemcpyAsync(piece, static_cast<const unsigned char *>(from) + at,
                                               size, cudaMemcpyDeviceToHost, cudaStreamPerThread),
                               "download", error);
        if (!status)
            status = gf_cuda_check(cudaStreamSynchronize(cudaStreamPerThread), "download", error);
        if (!status)
            status = take(context, piece, size, error);
    }
    if (piece)
        workspace_return_piece(devices->workspace, piece);
    return status;
}
