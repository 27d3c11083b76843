// median, percentile, erode and dilate on CUDA.
//
//   kernel             used for
//   percentile_along   minima and maxima, along x: into memory
//   percentile_across  minima and maxima, along y
//   percentile_window  all other plans: a network for medians of up to 7 x 7 pixels, or a search
#include "cuda/window/load.cuh"

#include "percentile/networks.h"
#include "percentile/percentile.h"

struct percentile_args {
    gf_window_source in;
    unsigned char *out;
    size_t out_stride; // bytes
    int64_t first;     // number of the first output row
    int64_t rows;      // of the output
    int radius[2];
    uint32_t index; // of the result in a window
    bool alpha;
    unsigned char
        *between; // minima along x: for the input rows, and one for those outside the image
    size_t between_stride;
    int64_t between_rows; // with that one
};

// ---- keys ---------------------------------------------------------------------------------------

// Integers in the order of the samples.
template <typename T> struct percentile_key {
    typedef std::conditional_t<sizeof(T) == 4, int32_t, T> Type;
};

template <typename T> GF_DEVICE typename percentile_key<T>::Type percentile_key_of(T x) {
    if constexpr (sizeof(T) < 4)
        return x;
    else
        return gf_percentile_order(x == x ? __float_as_int(x) : 0x7fc00000);
}

template <typename T> GF_DEVICE T percentile_sample_of(typename percentile_key<T>::Type key) {
    if constexpr (sizeof(T) < 4)
        return key;
    else
        return __int_as_float(gf_percentile_order(key));
}

template <typename T> GF_DEVICE T *percentile_out(const percentile_args &a, int64_t y) {
    return reinterpret_cast<T *>(a.out + (y - a.first) * static_cast<int64_t>(a.out_stride));
}

// ---- minima and maxima --------------------------------------------------------------------------

struct percentile_extreme_policy {
    static constexpr int THREADS = 256;
    static constexpr int SAMPLES = 1024; // that a block computes along x
    static constexpr int N = 8;          // rows that a thread computes along y
};

template <bool MINIMUM, typename Key> GF_DEVICE Key percentile_better(Key a, Key b) {
    return (a < b) == MINIMUM ? a : b;
}

// Compute the minima along x of the input rows, and of a row outside the image.
// Grid: x: groups of SAMPLES samples. y: rows, strided. Block: 256 threads; minima of 1, 2, 4, ...
// pixels in shared memory, at most 41 KB, and at last of two that cover the window.
template <typename T, bool MINIMUM>
__global__ void __launch_bounds__(percentile_extreme_policy::THREADS)
    percentile_along(const __grid_constant__ percentile_args a) {
    typedef typename percentile_key<T>::Type Key;
    constexpr int THREADS = percentile_extreme_policy::THREADS;
    constexpr int SAMPLES = percentile_extreme_policy::SAMPLES;
    extern __shared__ int32_t percentile_shared[];
    const int C = a.in.channels, window = 2 * a.radius[0] + 1, all = SAMPLES + (window - 1) * C;
    const int64_t first = static_cast<int64_t>(blockIdx.x) * SAMPLES, samples = a.in.width * C;
    Key *from = reinterpret_cast<Key *>(percentile_shared), *to = from + all;
    gf_wait_for_stream();
    for (int64_t y = blockIdx.y; y < a.between_rows; y += gridDim.y) {
        const unsigned char *row =
            y + 1 == a.between_rows ? nullptr : gf_window_row(a.in, a.in.first + y);
        __syncthreads(); // before the keys are overwritten
        for (int i = threadIdx.x; i < all; i += THREADS) {
            // Samples after the last window of the row are not used.
            const int64_t at = min(first + i, samples + (window - 1) * C - 1);
            from[i] = percentile_key_of(gf_window_sample<T>(a.in, row, at - window / 2 * C));
        }
        int size = 1;
        for (int n = all; 2 * size < window; size *= 2) {
            n -= size * C;
            __syncthreads();
            for (int i = threadIdx.x; i < n; i += THREADS)
                to[i] = percentile_better<MINIMUM>(from[i], from[i + size * C]);
            Key *const other = from;
            from = to;
            to = other;
        }
        __syncthreads();
        Key *result =
            reinterpret_cast<Key *>(a.between + y * static_cast<int64_t>(a.between_stride));
        for (int i = threadIdx.x; i < SAMPLES && first + i < samples; i += THREADS)
            result[first + i] = percentile_better<MINIMUM>(from[i], from[i + (window - size) * C]);
    }
}

// Compute the minima along y of those along x.
// Grid: x: groups of 32 samples. y: groups of 64 rows, strided. Block: 256 threads; a thread has N
// rows of a sample, and shares the rows that all their windows have. Reads from the caches.
template <typename T, bool MINIMUM>
__global__ void __launch_bounds__(percentile_extreme_policy::THREADS)
    percentile_across(const __grid_constant__ percentile_args a) {
    typedef typename percentile_key<T>::Type Key;
    constexpr int N = percentile_extreme_policy::N;
    constexpr int STEP = percentile_extreme_policy::THREADS / 32 * N;
    const int64_t i = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x % 32;
    const int radius = a.radius[1], C = a.in.channels;
    gf_wait_for_stream();
    if (i >= a.in.width * C)
        return;
    for (int64_t row = static_cast<int64_t>(blockIdx.y) * STEP + threadIdx.x / 32 * N; row < a.rows;
         row += static_cast<int64_t>(gridDim.y) * STEP) {
        const int64_t y = a.first + row;
        const auto get = [&](int64_t d) {
            // Rows after the strip are not used, and may be missing.
            const int64_t last = a.first + a.rows - 1 + radius;
            int64_t at = gf_edge_index(a.in.edge.mode, y + d < last ? y + d : last, a.in.height);
            at = at < 0 ? a.between_rows - 1 : at - a.in.first;
            return reinterpret_cast<const Key *>(a.between +
                                                 at * static_cast<int64_t>(a.between_stride))[i];
        };
        Key best[N];
        if (2 * radius + 1 < N) {
#pragma unroll
            for (int j = 0; j < N; j++) {
                best[j] = get(j);
                for (int d = 1; d <= radius; d++)
                    best[j] = percentile_better<MINIMUM>(
                        best[j], percentile_better<MINIMUM>(get(j - d), get(j + d)));
            }
        } else {
            Key core = get(N - 1 - radius);
            for (int d = N - radius; d <= radius; d++)
                core = percentile_better<MINIMUM>(core, get(d));
            best[N - 1] = core;
#pragma unroll
            for (int j = N - 2; j >= 0; j--)
                best[j] = percentile_better<MINIMUM>(best[j + 1], get(j - radius));
            Key below = core;
#pragma unroll
            for (int j = 1; j < N; j++) {
                below = percentile_better<MINIMUM>(below, get(j + radius));
                best[j] = percentile_better<MINIMUM>(best[j], below);
            }
        }
        const bool copied = a.alpha && i % C == C - 1;
#pragma unroll
        for (int j = 0; j < N && row + j < a.rows; j++)
            percentile_out<T>(a, y + j)[i] =
                copied ? reinterpret_cast<const T *>(gf_window_row(a.in, y + j))[i]
                       : percentile_sample_of<T>(best[j]);
    }
}

static size_t percentile_between_stride(const gf_plan *plan) {
    return (gf_row_bytes(&plan->in) + 63) & ~size_t(63);
}

template <typename T, bool MINIMUM>
static void percentile_launch_extreme(const percentile_args &a, gf_queue *queue) {
    typedef percentile_extreme_policy Policy;
    const uint64_t samples = static_cast<uint64_t>(a.in.width) * a.in.channels;
    const size_t halo = 2 * static_cast<size_t>(a.radius[0]) * a.in.channels;
    gf_launch_kernel(percentile_along<T, MINIMUM>,
                     dim3(gf_blocks(samples, Policy::SAMPLES), gf_blocks(a.between_rows, 1, 65535)),
                     Policy::THREADS, 2 * (Policy::SAMPLES + halo) * sizeof(T), queue, a);
    gf_launch_kernel(
        percentile_across<T, MINIMUM>,
        dim3(gf_blocks(samples, 32), gf_blocks(a.rows, Policy::THREADS / 32 * Policy::N, 65535)),
        Policy::THREADS, 0, queue, a);
}

// ---- other order statistics ---------------------------------------------------------------------

struct percentile_window_policy {
    static constexpr int THREADS = 256, PIXELS = 32, ROWS = THREADS / PIXELS; // of a tile
};

// Return the median of K x K keys of a tile, by a network.
template <int K, typename Key> GF_DEVICE Key percentile_network(const Key *window, int stride) {
    constexpr uint8_t orders[3][8] = {{GF_CORE_ORDER_3}, {GF_CORE_ORDER_5}, {GF_CORE_ORDER_7}};
    Key v[K * K], core[K + 1];
    int first; // wire of a column
    const auto order = [](Key &a, Key &b) {
        const Key low = a < b ? a : b;
        b = a < b ? b : a;
        a = low;
    };
    const auto least = [](Key &a, Key b) { a = a < b ? a : b; };
    const auto greatest = [](Key a, Key &b) { b = a < b ? b : a; };
#define CE(p, q) order(v[first + (p)], v[first + (q)]);
#define LO(p, q) least(v[p], v[q]);
#define HI(p, q) greatest(v[p], v[q]);
#pragma unroll
    for (first = 0; first < K * (K - 1); first += K - 1) { // sorted columns
#pragma unroll
        for (int j = 0; j < K - 1; j++)
            v[first + j] = window[j * stride + first / (K - 1)];
        if constexpr (K == 3) {
            GF_SORT_2(CE)
        } else if constexpr (K == 5) {
            GF_SORT_4(CE)
        } else {
            GF_SORT_6(CE)
        }
    }
    first = 0;
    if constexpr (K == 3) {
        GF_CORE_3(CE, LO, HI)
    } else if constexpr (K == 5) {
        GF_CORE_5(CE, LO, HI)
    } else {
        GF_CORE_7(CE, LO, HI)
    }
#pragma unroll
    for (int j = 0; j < K + 1; j++)
        core[j] = v[orders[K / 2 - 1][j]];
#pragma unroll
    for (int c = 0; c < K; c++)
        v[c] = window[(K - 1) * stride + c];
    if constexpr (K == 3) {
        GF_SORT_3(CE)
    } else if constexpr (K == 5) {
        GF_SORT_5(CE)
    } else {
        GF_SORT_7(CE)
    }
#pragma unroll
    for (int c = 0; c < K; c++)
        v[K + 1 + c] = v[c];
#pragma unroll
    for (int j = 0; j < K + 1; j++)
        v[j] = core[j];
    if constexpr (K == 3) {
        GF_MEDIAN_3(CE, LO, HI)
    } else if constexpr (K == 5) {
        GF_MEDIAN_5(CE, LO, HI)
    } else {
        GF_MEDIAN_7(CE, LO, HI)
    }
    return v[K]; // its wire
#undef CE
#undef LO
#undef HI
}

// Return the key at an index of the sorted window: its bits, from the highest one.
template <typename Key, typename Get>
GF_DEVICE Key percentile_search(const percentile_args &a, Get get) {
    const int width = 2 * a.radius[0] + 1, height = 2 * a.radius[1] + 1;
    constexpr uint32_t SIGN = sizeof(Key) == 4 ? 0x80000000u : 0;
    uint32_t result = 0; // unsigned, in the order of the keys
#pragma unroll 1
    for (uint32_t bit = 1u << (8 * sizeof(Key) - 1); bit != 0; bit >>= 1) {
        const Key limit = static_cast<Key>((result | bit) ^ SIGN);
        uint32_t below = 0;
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++)
                below += get(x, y) < limit;
        if (below <= a.index)
            result |= bit;
    }
    return static_cast<Key>(result ^ SIGN);
}

// Compute order statistics of one channel. K: side of the window of a network; 0: any window; -1:
// any window, without shared memory.
// Grid: x: groups of 32 pixels. y: groups of 8 rows, strided. z: channels. Block: 256 threads, one
// per pixel. Shared memory: the keys of a tile and of the pixels around it, at most 85 KB.
template <typename T, int K>
__global__ void __launch_bounds__(percentile_window_policy::THREADS)
    percentile_window(const __grid_constant__ percentile_args a) {
    typedef percentile_window_policy Policy;
    typedef typename percentile_key<T>::Type Key;
    extern __shared__ int32_t percentile_shared[];
    Key *const keys = reinterpret_cast<Key *>(percentile_shared);
    const int C = a.in.channels, c = blockIdx.z, x = threadIdx.x % Policy::PIXELS;
    const int y = threadIdx.x / Policy::PIXELS, stride = Policy::PIXELS + 2 * a.radius[0];
    const int height = Policy::ROWS + 2 * a.radius[1];
    const int64_t left = static_cast<int64_t>(blockIdx.x) * Policy::PIXELS;
    const int64_t last = a.first + a.rows - 1; // output row
    const bool copied = a.alpha && c == C - 1;
    gf_wait_for_stream();
    for (int64_t top = a.first + static_cast<int64_t>(blockIdx.y) * Policy::ROWS; top <= last;
         top += static_cast<int64_t>(gridDim.y) * Policy::ROWS) {
        const bool inside = left + x < a.in.width && top + y <= last;
        __syncthreads(); // before the keys are overwritten
        for (int i = threadIdx.x; K >= 0 && i < stride * height && !copied; i += Policy::THREADS) {
            // Rows and columns after the last window are not used.
            const int64_t row = min(top - a.radius[1] + i / stride, last + a.radius[1]);
            const int64_t column =
                min(left - a.radius[0] + i % stride, a.in.width - 1 + a.radius[0]);
            keys[i] = percentile_key_of(
                gf_window_sample<T>(a.in, gf_window_row(a.in, row), column * C + c));
        }
        __syncthreads();
        if (!inside)
            continue;
        const int64_t at = (left + x) * C + c;
        const Key *window = keys + y * stride + x;
        T result;
        if (copied)
            result = reinterpret_cast<const T *>(gf_window_row(a.in, top + y))[at];
        else if constexpr (K > 0)
            result = percentile_sample_of<T>(percentile_network<K>(window, stride));
        else
            result = percentile_sample_of<T>(percentile_search<Key>(a, [&](int dx, int dy) {
                if constexpr (K == 0) {
                    return window[dy * stride + dx];
                } else {
                    const int64_t column = left + x + dx - a.radius[0];
                    const int64_t row = top + y + dy - a.radius[1];
                    return percentile_key_of(
                        gf_window_sample<T>(a.in, gf_window_row(a.in, row), column * C + c));
                }
            }));
        percentile_out<T>(a, top + y)[at] = result;
    }
}

template <typename T, int K>
static void percentile_launch_window(const percentile_args &a, gf_queue *queue) {
    typedef percentile_window_policy Policy;
    constexpr size_t halo = 2 * GF_PERCENTILE_MAX_RADIUS;
    constexpr size_t most = (Policy::PIXELS + halo) * (Policy::ROWS + halo) * sizeof(T);
    const size_t shared = K < 0 ? 0
                                : (Policy::PIXELS + 2 * static_cast<size_t>(a.radius[0])) *
                                      (Policy::ROWS + 2 * static_cast<size_t>(a.radius[1])) *
                                      sizeof(T);
    if constexpr (K == 0)
        if (!gf_allow_shared<percentile_window<T, K>>(most)) // sm_75 has 64 KB
            return percentile_launch_window<T, -1>(a, queue);
    gf_launch_kernel(percentile_window<T, K>,
                     dim3(gf_blocks(a.in.width, Policy::PIXELS),
                          gf_blocks(a.rows, Policy::ROWS, 65535), a.in.channels),
                     Policy::THREADS, shared, queue, a);
}

// ---- launch -------------------------------------------------------------------------------------

static size_t percentile_scratch_bytes(const gf_plan *head, uint64_t in_rows) {
    const gf_percentile_plan *plan = reinterpret_cast<const gf_percentile_plan *>(head);
    return plan->form <= GF_PERCENTILE_MAXIMUM ? (in_rows + 1) * percentile_between_stride(head)
                                               : 0;
}

static void percentile_launch(const gf_plan *head, const gf_strip *strip, void *scratch,
                              gf_queue *queue) {
    const gf_percentile_plan *plan = reinterpret_cast<const gf_percentile_plan *>(head);
    percentile_args a = {};
    a.in = gf_window_source_of(head, strip, plan->edge);
    a.out = strip->out.data;
    a.out_stride = strip->out.stride;
    a.first = static_cast<int64_t>(strip->out.y0);
    a.rows = static_cast<int64_t>(strip->out.rows);
    a.radius[0] = static_cast<int>(plan->radius[0]);
    a.radius[1] = static_cast<int>(plan->radius[1]);
    a.index = plan->index;
    a.alpha = gf_has_alpha(&head->in);
    a.between = static_cast<unsigned char *>(scratch);
    a.between_stride = percentile_between_stride(head);
    a.between_rows = static_cast<int64_t>(strip->in[0].rows + 1);
    gf_for_type(head->in.type, [&](auto sample) {
        typedef decltype(sample) T;
        if (plan->form == GF_PERCENTILE_MINIMUM)
            percentile_launch_extreme<T, true>(a, queue);
        else if (plan->form == GF_PERCENTILE_MAXIMUM)
            percentile_launch_extreme<T, false>(a, queue);
        else if (plan->form == GF_PERCENTILE_SELECT)
            percentile_launch_window<T, 0>(a, queue);
        else if (plan->radius[0] == 1)
            percentile_launch_window<T, 3>(a, queue);
        else if (plan->radius[0] == 2)
            percentile_launch_window<T, 5>(a, queue);
        else
            percentile_launch_window<T, 7>(a, queue);
    });
}

#define PERCENTILE_KERNELS                                                                         \
    { percentile_scratch_bytes, percentile_launch, nullptr, false }

extern "C" const gf_filter_cuda gf_median_cuda = PERCENTILE_KERNELS;
extern "C" const gf_filter_cuda gf_percentile_cuda = PERCENTILE_KERNELS;
extern "C" const gf_filter_cuda gf_erode_cuda = PERCENTILE_KERNELS;
extern "C" const gf_filter_cuda gf_dilate_cuda = PERCENTILE_KERNELS;
