// What makes times of small images ones of the device and its memory: turns on so many images that
// none is met in the cache again, and a queue that is full before it begins.
#ifndef GF_SPEED_EVEN_CUH
#define GF_SPEED_EVEN_CUH

#include "speed.cuh"

#define GF_SPEED_ALIGN 512

// Small images share a piece of this size: gf_speed_copies has few pieces, and 64 small images
// would all be in the cache.
#define GF_SPEED_PIECE (UINT64_C(16) << 20)

static inline size_t gf_speed_padded(uint64_t bytes) {
    return static_cast<size_t>((bytes + GF_SPEED_ALIGN - 1) / GF_SPEED_ALIGN * GF_SPEED_ALIGN);
}

// Turns that together are several times the cache, for a turn of so many bytes.
static inline int gf_speed_turns(uint64_t bytes) {
    const uint64_t piece = bytes > GF_SPEED_PIECE ? bytes : GF_SPEED_PIECE;
    return gf_speed_copies(piece) * static_cast<int>(bytes ? piece / bytes : 1);
}

// What one thing to be timed may take to queue.
#define GF_SPEED_QUEUE_NANOSECONDS 20000u

static __global__ void gf_speed_wait(unsigned nanoseconds) {
    uint64_t start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < nanoseconds);
}

// Keeps the stream busy until so many things are queued after this.
static inline gf_status gf_speed_hold(unsigned things, cudaStream_t stream, gf_error *error) {
    gf_speed_wait<<<1, 1, 0, stream>>>(things * GF_SPEED_QUEUE_NANOSECONDS);
    return gf_cuda_check(cudaGetLastError(), "the kernels", error);
}

#endif
