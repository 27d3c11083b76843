// Memory of devices, and of the host for copies to and from them. It grows, and is kept from image
// to image, because to allocate it is slow.
#ifndef GF_MEMORY_CUH
#define GF_MEMORY_CUH

#include "cuda/queue.cuh"

enum gf_memory_kind {
    // By cudaMalloc, which takes a tenth of the time of cudaMallocAsync. cudaFree waits for all
    // kernels: for memory that seldom grows.
    GF_MEMORY_DEVICE,
    // The same, cleared: kernels read the padding of rows, and rows are copied back with it. It
    // must
    // not expose memory of another process.
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
// Grow host memory, which is filled by the queue piece by piece, by a quarter more than necessary.
// The first `used` bytes are kept.
void gf_memory_extend(gf_storage *memory, size_t size, size_t used, gf_queue *queue);
void gf_memory_free(gf_storage *memory);

#endif
