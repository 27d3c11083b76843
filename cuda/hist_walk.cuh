// How threads walk over a band. A vector is 16 bytes of measured samples that lie side by side in a
// row (16, 8 or 4 of them); the last one of a row may have fewer. Where every channel is measured
// it is 16 bytes of the image, which is called dense. Otherwise it is made of 16 bytes a channel.
// Vectors are numbered through the band; block b has those from b * chunk on, so that blocks in
// order are the samples in image order.
#ifndef GF_HIST_WALK_CUH
#define GF_HIST_WALK_CUH

#include "hist_device.cuh"

struct HistWalk {
    const unsigned char *at;
    int32_t left;     // vectors from this one to the end of the chunk; not above 0: there or behind
    int32_t row;      // and to the end of its row, or HIST_FAR; 1: it is the last
    uint64_t j;       // its first sample's number in the image
    uint32_t channel; // and channel, where all are measured
};

GF_BOTH int32_t hist_near(uint64_t vectors) {
    return static_cast<int32_t>(vectors < HIST_FAR ? vectors : HIST_FAR);
}

// Counters of a channel that samples of u8 may belong to: none is NaN.
GF_BOTH uint32_t hist_used(const HistArgs &a) {
    return a.ranged ? a.counters : a.bins;
}

// From the vector of this thread on in the chunk of this block.
template <typename T, bool Dense>
static __device__ __forceinline__ HistWalk hist_walk(const HistArgs &a) {
    const uint64_t begin = blockIdx.x * a.chunk, i = begin + threadIdx.x;
    const uint64_t n = begin + a.chunk < a.end ? a.chunk : a.end - begin;
    const uint64_t y =
        a.end >> 32 ? i / a.vectors : static_cast<uint32_t>(i) / static_cast<uint32_t>(a.vectors);
    const uint64_t v = i - y * a.vectors;
    HistWalk walk = {};
    walk.at = a.in + y * a.in_stride + v * 16 * (Dense ? 1 : a.channels);
    walk.left = static_cast<int32_t>(n) - static_cast<int32_t>(threadIdx.x);
    walk.row = hist_near(a.vectors - v);
    walk.j = a.before + y * a.samples + v * hist_vector<T>::size;
    walk.channel = static_cast<uint32_t>(v * hist_vector<T>::size % a.measured);
    return walk;
}

// A vector a thread further. What of a walk a kernel does not use costs nothing.
template <int Threads = HIST_THREADS>
static __device__ __forceinline__ void hist_step(const HistArgs &a, HistWalk *walk) {
    walk->left -= Threads;
    walk->row -= a.step;
    walk->at += a.step_at;
    walk->j += a.step_j;
    walk->channel += a.step_c;
    walk->channel -= walk->channel >= a.measured ? a.measured : 0;
    if (walk->row <= 0) {
        walk->row += a.row_vectors;
        walk->at += a.wrap_at;
        walk->j += a.wrap_j;
        walk->channel += a.wrap_c;
        walk->channel -= walk->channel >= a.measured ? a.measured : 0;
    }
}

// The turns of the block: the same for all its threads.
template <int Threads = HIST_THREADS>
static __device__ __forceinline__ uint32_t hist_turns(const HistWalk &walk) {
    const int32_t n = walk.left + static_cast<int32_t>(threadIdx.x);
    return static_cast<uint32_t>(n + Threads - 1) / Threads;
}

// How many samples a vector has.
template <typename T>
static __device__ __forceinline__ uint32_t hist_valid(const HistArgs &a, const HistWalk &walk) {
    return walk.row == 1 ? a.last : hist_vector<T>::size;
}

template <typename T, bool Dense>
static __device__ __forceinline__ uint4 hist_load(const HistArgs &a, const HistWalk &walk) {
    const uint4 *from = reinterpret_cast<const uint4 *>(walk.at);
    if constexpr (Dense)
        return __ldg(from);
    const uint32_t n = walk.row == 1 ? a.last_words : a.channels;
    if (a.channels == 2)
        return hist_gather<T, 2>(a, from, n);
    if (a.channels == 3)
        return hist_gather<T, 3>(a, from, n);
    return hist_gather<T, 4>(a, from, n);
}

// ---- host ---------------------------------------------------------------------------------------

// A kernel may ask for more shared memory than it gets unasked.
template <typename K> static inline void hist_allow(K kernel, size_t shared) {
    if (shared > 32 * 1024) // it may have some of its own besides
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shared));
}

static inline uint64_t hist_device(cudaDeviceAttr what) {
    int device = 0, value = 1;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&value, what, device);
    return static_cast<uint64_t>(value);
}

static inline uint64_t hist_up(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

static inline bool hist_dense(const HistArgs &a) {
    return !a.luma && a.measured == a.channels;
}

// Sets how rows are cut into vectors of `size` samples of `bytes` each.
static inline void hist_set_walk(HistArgs *a, uint32_t size, uint32_t threads = HIST_THREADS) {
    const uint64_t row_bytes = a->width * a->channels * (16 / size);
    const uint64_t words = hist_dense(*a) ? 1 : a->channels;
    a->samples = a->width * a->measured;
    a->vectors = hist_up(a->samples, size);
    a->end = a->vectors * a->rows;
    a->row_vectors = hist_near(a->vectors);
    const uint64_t step_rows = threads / a->vectors, step = threads % a->vectors;
    a->step = static_cast<int32_t>(step);
    a->step_at = static_cast<int64_t>(step_rows * a->in_stride + step * words * 16);
    a->step_j = static_cast<int64_t>(step_rows * a->samples + step * size);
    a->step_c = static_cast<uint32_t>(step * size % a->measured);
    a->wrap_at = static_cast<int64_t>(a->in_stride - a->vectors * words * 16);
    a->wrap_j = static_cast<int64_t>(a->samples - a->vectors * size);
    a->wrap_c =
        static_cast<uint32_t>((a->measured - a->vectors * size % a->measured) % a->measured);
    a->last = static_cast<uint32_t>(a->samples - (a->vectors - 1) * size);
    a->last_words = static_cast<uint32_t>(hist_up(row_bytes - (a->vectors - 1) * words * 16, 16));
}

// Rows without padding are one long row.
static inline void hist_join_rows(HistArgs *a, uint32_t size, uint32_t threads = HIST_THREADS) {
    const uint64_t row_bytes = a->width * a->channels * (16 / size);
    if (row_bytes == a->in_stride) {
        a->width *= a->rows;
        a->in_stride *= a->rows;
        a->rows = 1;
    }
    hist_set_walk(a, size, threads);
}

// Gives each of at most `most` blocks a chunk of whole turns, at least `least` vectors; the number
// of blocks.
static inline unsigned hist_cut(HistArgs *a, uint64_t most, uint64_t least) {
    const uint64_t turns = hist_up(a->end, HIST_THREADS);
    uint64_t chunk = hist_up(turns, most) * HIST_THREADS;
    chunk = chunk > least ? chunk : hist_up(least, HIST_THREADS) * HIST_THREADS;
    a->chunk = chunk < HIST_CHUNK ? chunk : HIST_CHUNK;
    return static_cast<unsigned>(hist_up(a->end, a->chunk));
}

// More blocks than a band of so many samples is ever cut into by hist_cut_common.
static inline uint64_t hist_most_blocks(uint64_t samples) {
    return HIST_BLOCKS * hist_device(cudaDevAttrMultiProcessorCount) + samples / HIST_CHUNK + 1;
}

// The cut that counting and extracting have in common.
static inline unsigned hist_cut_common(HistArgs *a) {
    return hist_cut(a, a->blocks * hist_device(cudaDevAttrMultiProcessorCount), 1);
}

#endif
