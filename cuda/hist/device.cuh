// Helpers that the kernels of hist share: the plan, samples and their bins, iteration over vectors.
#ifndef GF_HIST_DEVICE_CUH
#define GF_HIST_DEVICE_CUH

#include "cuda/device.cuh"

#include "hist/hist.h"

#include <algorithm>

struct gf_hist_policy {
    static constexpr int THREADS = 512, WARPS = THREADS / 32;
    static constexpr int BLOCKS = 3;             // resident blocks per SM
    static constexpr int CHUNK = 1 << 27;        // vectors per block: 32 bits count its samples
    static constexpr int MAX_DISTANCE = 1 << 30; // larger than any chunk, in vectors

    // Turing SMs hold at most two blocks.
    static constexpr int resident(int blocks) {
        return gf_arch < 800 && blocks > 2 ? 2 : blocks;
    }
};

typedef gf_hist_policy Policy;

// A distance between two vectors.
struct gf_hist_move {
    int64_t at;       // bytes
    int64_t j;        // samples
    uint32_t channel; // channels, modulo the measured ones
};

struct gf_hist_args {
    // The strip.
    const unsigned char *in; // first row
    size_t in_stride;
    uint64_t width, rows;
    uint64_t before;  // measured samples of the image before this strip
    uint64_t samples; // measured samples per row
    uint32_t channels, first, measured;
    // The bins.
    uint32_t bins;
    uint32_t counters; // counters per channel
    uint32_t nodata;   // of integers; UINT32_MAX: none
    bool luma, ranged, extract_all, keys;
    double lo, hi, span;
    double scale;                        // bins / span; 0: do not use it
    float quick_scale, quick_lo, margin; // for binary32; margin: error bound; 1: use binary64
    uint32_t extracts, listed[GF_HIST_MAX_LISTED];
    // Iteration over the vectors of a strip.
    uint64_t vectors;     // vectors per row
    int32_t row_vectors;  // the same, at most MAX_DISTANCE
    uint64_t end;         // vectors in the strip
    uint64_t chunk;       // vectors per block
    uint64_t blocks;      // resident blocks per SM
    int32_t step_vectors; // step to a thread's next vector, modulo a row
    gf_hist_move step;    // the same
    gf_hist_move wrap;    // from the end of a row to the next
    uint32_t last;        // samples in the last vector of a row
    uint32_t last_words;  // and its 16-byte image words
};

// ---- samples ------------------------------------------------------------------------------------

template <typename T>
GF_DEVICE T gf_hist_sample(const gf_hist_args &a, const T *row, uint64_t x, uint32_t s) {
    const T *pixel = row + x * a.channels;
    if (!a.luma)
        return pixel[a.first + s];
    if constexpr (sizeof(T) == sizeof(float))
        return gf_luma_real(pixel[0], pixel[1], pixel[2]);
    else
        return static_cast<T>(gf_luma_integer(pixel[0], pixel[1], pixel[2]));
}

template <typename T> GF_DEVICE const T *gf_hist_row(const gf_hist_args &a, uint64_t y) {
    return reinterpret_cast<const T *>(a.in + y * a.in_stride);
}

template <typename T> struct gf_hist_vector { static constexpr int size = 16 / sizeof(T); };

// Return element i of the 16-byte words of some pixels.
template <typename T> GF_DEVICE T gf_hist_element(const uint4 *words, int i) {
    return gf_sample_at<T>(words[i / gf_hist_vector<T>::size], i % gf_hist_vector<T>::size);
}

// Return the luma of pixel p among C words of pixels.
template <typename T, int C> GF_DEVICE T gf_hist_luma(const uint4 *words, int p) {
    const T r = gf_hist_element<T>(words, C * p), g = gf_hist_element<T>(words, C * p + 1);
    const T b = gf_hist_element<T>(words, C >= 3 ? C * p + 2 : 0); // never called with C < 3
    if constexpr (sizeof(T) == sizeof(float))
        return gf_luma_real(r, g, b);
    else
        return static_cast<T>(gf_luma_integer(r, g, b));
}

// Return the measured channel of pixel p: blockIdx.z if each channel has blocks of its own.
template <typename T, int C>
GF_DEVICE T gf_hist_pick(const gf_hist_args &a, const uint4 *words, int p) {
    const uint32_t first = a.first + blockIdx.z;
    T x = gf_hist_element<T>(words, C * p);
#pragma unroll
    for (int c = 1; c < C; c++) {
        T other = gf_hist_element<T>(words, C * p + c);
        // The compiler would otherwise select by an indexed load from local memory.
        if constexpr (sizeof(T) == sizeof(float)) {
            asm("" : "+f"(other));
        } else {
            uint32_t bits = other;
            asm("" : "+r"(bits));
            other = static_cast<T>(bits);
        }
        x = first == static_cast<uint32_t>(c) ? other : x;
    }
    return x;
}

// Insert sample k into a zero-initialized vector.
template <typename T> GF_DEVICE void gf_hist_insert(uint32_t *words, int k, T x) {
    words[k * sizeof(T) / 4] |= gf_bits(x) << k * sizeof(T) % 4 * 8;
}

// Gather the measured samples of n words of pixels into one vector.
template <typename T, int C>
GF_DEVICE uint4 gf_hist_gather(const gf_hist_args &a, const uint4 *from, uint32_t n) {
    uint4 words[C];
#pragma unroll
    for (uint32_t i = 0; i < C; i++)
        words[i] = i < n ? __ldg(from + i) : make_uint4(0, 0, 0, 0);
    uint32_t out[4] = {};
    if (C >= 3 && a.luma) {
#pragma unroll
        for (int k = 0; k < gf_hist_vector<T>::size; k++)
            gf_hist_insert(out, k, gf_hist_luma<T, C>(words, k));
    } else {
#pragma unroll
        for (int k = 0; k < gf_hist_vector<T>::size; k++)
            gf_hist_insert(out, k, gf_hist_pick<T, C>(a, words, k));
    }
    return gf_vector_of(out);
}

// ---- bins ---------------------------------------------------------------------------------------

// Compute gf_hist_bin_ranged without its division, which takes longer than all other operations.
// The product below and the operations of the golden backend each round at most twice; they differ
// by less than a relative 2^-50. If the product is not that close to an integer, both have the same
// floor, and the sample is inside the range. Otherwise compute the golden formula.
static __device__ __noinline__ uint32_t gf_hist_bin_exact(double v, double lo, double hi,
                                                          double span, double scale,
                                                          uint32_t bins) {
    const double scaled = (v - lo) * scale;
    if (scale > 0 && scaled > 0 && scaled < bins) {
        const double magic = 6755399441055744.0; // 1.5 * 2^52: its last bit has the value 1
        const double shifted = __dadd_rd(scaled, magic), rest = scaled - (shifted - magic);
        if (rest > 0x1p-20 && rest < 1 - 0x1p-20)
            return static_cast<uint32_t>(__double2loint(shifted));
    }
    if (v < lo)
        return bins + GF_HIST_AT_BELOW;
    if (v > hi)
        return bins + GF_HIST_AT_ABOVE;
    if (!(v == v))
        return bins + GF_HIST_AT_NAN;
    const double exact = (v - lo) * static_cast<double>(bins) / span; // NaN if span is 0
    return exact < static_cast<double>(bins) ? static_cast<uint32_t>(exact) : bins - 1;
}

// Return the bin of a sample without --range.
template <typename T> GF_DEVICE uint32_t gf_hist_bin_plain(const gf_hist_args &a, T value) {
    if constexpr (sizeof(T) == sizeof(float)) {
        // The product, rounded down, is at least the floor of the exact product and at most the
        // exact product: both have the same floor.
        const uint32_t product = __float2uint_rz(__fmul_rd(value, static_cast<float>(a.bins)));
        const uint32_t bin = min(product, a.bins - 1);
        if (__float_as_uint(value) <= 0x3f800000) // 0..1, the most frequent
            return bin;
        const uint32_t number = value < 0   ? a.bins + GF_HIST_AT_BELOW
                                : value > 1 ? a.bins + GF_HIST_AT_ABOVE
                                            : bin; // -0
        return value == value ? number : a.bins + GF_HIST_AT_NAN;
    } else {
        return gf_hist_bin_integer(value, a.bins, sizeof(T) == 1 ? 255 : 65535);
    }
}

// Return the bin of a sample, or the index of its counter after the bins.
template <typename T> GF_DEVICE uint32_t gf_hist_bin(const gf_hist_args &a, T value) {
    if constexpr (sizeof(T) < sizeof(float))
        if (value == a.nodata)
            return a.bins + GF_HIST_AT_NAN;
    return a.ranged
               ? gf_hist_bin_exact(static_cast<double>(value), a.lo, a.hi, a.span, a.scale, a.bins)
               : gf_hist_bin_plain<T>(a, value);
}

// Compute the bins of a vector with --range, in binary32 where its precision suffices.
// v * scale and lo * scale each have a relative error of at most 2^-23, and the first is at most
// the sum of the second and their difference. The margin, computed by the host, is more than four
// times that error for every difference up to two bins outside the range. Values further outside
// are never computed as less than one bin outside.
template <typename T>
GF_DEVICE void gf_hist_bins_ranged(const gf_hist_args &a, const uint4 &v,
                                   uint32_t (&bins)[gf_hist_vector<T>::size]) {
    const float below = -1.5f, above = static_cast<float>(a.bins) + 1.5f, limit = 0.5f - a.margin;
    const float magic = 12582912.0f; // 1.5 * 2^23: its last bit has the value 1
    uint32_t ties = 0;
#pragma unroll
    for (int k = 0; k < gf_hist_vector<T>::size; k++) {
        const T x = gf_sample_at<T>(v, k);
        float scaled = __fmaf_rn(static_cast<float>(x), a.quick_scale, -a.quick_lo);
        scaled = scaled > below ? scaled : below;
        scaled = scaled < above ? scaled : above;
        const float shifted = __fadd_rd(scaled, magic), rest = scaled - (shifted - magic);
        const int bin = __float_as_int(shifted) - __float_as_int(magic);
        bins[k] = bin < 0                           ? a.bins + GF_HIST_AT_BELOW
                  : bin >= static_cast<int>(a.bins) ? a.bins + GF_HIST_AT_ABOVE
                                                    : static_cast<uint32_t>(bin);
        ties |= fabsf(rest - 0.5f) < limit && x == x ? 0 : 1u << k;
    }
    if (ties == 0)
        return;
#pragma unroll
    for (int k = 0; k < gf_hist_vector<T>::size; k++) {
        const T x = gf_sample_at<T>(v, k);
        if (ties >> k & 1)
            bins[k] = gf_hist_bin<T>(a, x);
    }
}

// Computation of bins: HIST_PLAIN: without --range and nodata. HIST_KEYS: for plans with keys.
enum gf_hist_by { HIST_PLAIN, HIST_RANGED, HIST_KEYS };

template <typename T, gf_hist_by BY = HIST_RANGED>
GF_DEVICE void gf_hist_bins(const gf_hist_args &a, const uint4 &v,
                            uint32_t (&bins)[gf_hist_vector<T>::size]) {
    constexpr int size = gf_hist_vector<T>::size, bits = sizeof(T) == 1 ? 8 : 16;
    constexpr uint32_t max = sizeof(T) == 1 ? 255 : 65535;
    if constexpr (BY == HIST_KEYS) {
        const uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int k = 0; k < size; k++)
            bins[k] = (words[k] & 0x7fffffffu) > 0x7f800000u ? a.bins : gf_hist_key(words[k]) >> 16;
    } else if (BY == HIST_RANGED && a.ranged) {
        gf_hist_bins_ranged<T>(a, v, bins);
    } else if (sizeof(T) < sizeof(float) && a.bins <= max) {
        // Compute v * bins / max without a division. Let m = max + 1 and p = v * bins + 1. The
        // floor of (p + p / m) / m is the floor of the quotient for every quotient up to max: p =
        // max * q + r + 1 = m * q + (r + 1 - q) with r < max, therefore p / m is q, or q - 1 if r +
        // 1 < q.
#pragma unroll
        for (int k = 0; k < size; k++) {
            const T x = gf_sample_at<T>(v, k);
            const uint32_t p = static_cast<uint32_t>(x) * a.bins + 1;
            bins[k] = min((p + (p >> bits)) >> bits, a.bins - 1);
        }
    } else {
#pragma unroll
        for (int k = 0; k < size; k++) {
            const T x = gf_sample_at<T>(v, k);
            bins[k] = gf_hist_bin_plain<T>(a, x);
        }
    }
    if constexpr (BY == HIST_RANGED && sizeof(T) < sizeof(float))
        if (a.nodata != UINT32_MAX) {
#pragma unroll
            for (int k = 0; k < size; k++)
                bins[k] = gf_sample_at<T>(v, k) == a.nodata ? a.bins + GF_HIST_AT_NAN : bins[k];
        }
}

// Return the index of the bin of a counter among the extracted bins; a.extracts or more: none.
GF_DEVICE uint32_t gf_hist_nth(const gf_hist_args &a, uint32_t counter) {
    const uint32_t bin = gf_hist_clamp(counter, a.bins, a.ranged);
    if (a.extract_all)
        return bin; // the counters after the bins start at a.extracts
    uint32_t i = 0;
    while (i < a.extracts && a.listed[i] != bin)
        i++;
    return i;
}

// ---- iteration ----------------------------------------------------------------------------------

// A vector is 16 bytes of consecutive measured samples of a row (16, 8 or 4 samples); the last
// vector of a row may have fewer. If all channels are measured ("dense"), a vector is 16 bytes of
// the image. Otherwise it is gathered from 16 bytes per channel. Vectors are numbered consecutively
// through the strip. Block b has the vectors from b * chunk: blocks are in image order.

struct gf_hist_walk {
    const unsigned char *at;
    int32_t left;     // vectors from this one to the end of the chunk; <= 0: past the end
    int32_t row;      // to the end of its row, at most Policy::MAX_DISTANCE; 1: last of the row
    uint64_t j;       // index of its first sample in the image
    uint32_t channel; // channel of its first sample, if all channels are measured
};

GF_BOTH int32_t gf_hist_clamp_distance(uint64_t vectors) {
    return static_cast<int32_t>(vectors < Policy::MAX_DISTANCE ? vectors : Policy::MAX_DISTANCE);
}

// Return the number of counters per channel that u8 samples may use: u8 has no NaN.
GF_BOTH uint32_t gf_hist_used(const gf_hist_args &a) {
    return a.ranged || a.nodata != UINT32_MAX ? a.counters : a.bins;
}

// Start at the first vector of this thread in the chunk of this block.
template <typename T, bool DENSE> GF_DEVICE gf_hist_walk gf_hist_start(const gf_hist_args &a) {
    const uint64_t begin = blockIdx.x * a.chunk, i = begin + threadIdx.x;
    const uint64_t n = begin + a.chunk < a.end ? a.chunk : a.end - begin;
    const uint64_t y =
        a.end >> 32 ? i / a.vectors : static_cast<uint32_t>(i) / static_cast<uint32_t>(a.vectors);
    const uint64_t v = i - y * a.vectors;
    gf_hist_walk walk = {};
    walk.at = a.in + y * a.in_stride + v * 16 * (DENSE ? 1 : a.channels);
    walk.left = static_cast<int32_t>(n) - static_cast<int32_t>(threadIdx.x);
    walk.row = gf_hist_clamp_distance(a.vectors - v);
    walk.j = a.before + y * a.samples + v * gf_hist_vector<T>::size;
    walk.channel = static_cast<uint32_t>(v * gf_hist_vector<T>::size % a.measured);
    return walk;
}

GF_DEVICE void gf_hist_move_by(const gf_hist_args &a, gf_hist_walk *walk,
                               const gf_hist_move &move) {
    walk->at += move.at;
    walk->j += move.j;
    walk->channel += move.channel;
    walk->channel -= walk->channel >= a.measured ? a.measured : 0;
}

// Advance by one vector per thread. The compiler removes the fields that a kernel does not use.
template <int THREADS = Policy::THREADS>
GF_DEVICE void gf_hist_step(const gf_hist_args &a, gf_hist_walk *walk) {
    walk->left -= THREADS;
    walk->row -= a.step_vectors;
    gf_hist_move_by(a, walk, a.step);
    if (walk->row <= 0) {
        walk->row += a.row_vectors;
        gf_hist_move_by(a, walk, a.wrap);
    }
}

// Return the number of iterations of the block, the same for all its threads.
template <int THREADS = Policy::THREADS>
GF_DEVICE uint32_t gf_hist_iterations(const gf_hist_walk &walk) {
    const int32_t n = walk.left + static_cast<int32_t>(threadIdx.x);
    return static_cast<uint32_t>(n + THREADS - 1) / THREADS;
}

template <typename T>
GF_DEVICE uint32_t gf_hist_valid(const gf_hist_args &a, const gf_hist_walk &walk) {
    return walk.row == 1 ? a.last : gf_hist_vector<T>::size;
}

template <typename T, bool DENSE>
GF_DEVICE uint4 gf_hist_load(const gf_hist_args &a, const gf_hist_walk &walk) {
    const uint4 *from = reinterpret_cast<const uint4 *>(walk.at);
    if constexpr (DENSE)
        return __ldg(from);
    const uint32_t n = walk.row == 1 ? a.last_words : a.channels;
    if (a.channels == 2)
        return gf_hist_gather<T, 2>(a, from, n);
    if (a.channels == 3)
        return gf_hist_gather<T, 3>(a, from, n);
    return gf_hist_gather<T, 4>(a, from, n);
}

// ---- host ---------------------------------------------------------------------------------------

static inline bool gf_hist_dense(const gf_hist_args &a) {
    return !a.luma && a.measured == a.channels;
}

// Choose by the layout of an image, for gf_dispatch: 1: dense; 2: dense, with several channels; 0:
// others. Only a dense iteration measures several channels.
static inline gf_number<0, 2> gf_hist_layout(const gf_hist_args &a) {
    return {!gf_hist_dense(a) ? 0u : a.measured > 1 ? 2u : 1u};
}

// Split rows into vectors of `size` samples.
static inline void gf_hist_set_walk(gf_hist_args *a, uint32_t size,
                                    uint32_t threads = Policy::THREADS) {
    const uint64_t row_bytes = a->width * a->channels * (16 / size);
    const uint64_t words = gf_hist_dense(*a) ? 1 : a->channels;
    a->samples = a->width * a->measured;
    a->vectors = gf_divide_up(a->samples, size);
    a->end = a->vectors * a->rows;
    a->row_vectors = gf_hist_clamp_distance(a->vectors);
    const uint64_t step_rows = threads / a->vectors, step = threads % a->vectors;
    a->step_vectors = static_cast<int32_t>(step);
    a->step = {static_cast<int64_t>(step_rows * a->in_stride + step * words * 16),
               static_cast<int64_t>(step_rows * a->samples + step * size),
               static_cast<uint32_t>(step * size % a->measured)};
    const uint64_t row = a->vectors * size; // samples, with those missing in the last vector
    a->wrap = {static_cast<int64_t>(a->in_stride - a->vectors * words * 16),
               static_cast<int64_t>(a->samples - row),
               static_cast<uint32_t>((a->measured - row % a->measured) % a->measured)};
    a->last = static_cast<uint32_t>(a->samples - (a->vectors - 1) * size);
    a->last_words =
        static_cast<uint32_t>(gf_divide_up(row_bytes - (a->vectors - 1) * words * 16, 16));
}

// Treat rows without padding as one long row.
static inline void gf_hist_join_rows(gf_hist_args *a, uint32_t size,
                                     uint32_t threads = Policy::THREADS) {
    const uint64_t row_bytes = a->width * a->channels * (16 / size);
    if (row_bytes == a->in_stride) {
        a->width *= a->rows;
        a->in_stride *= a->rows;
        a->rows = 1;
    }
    gf_hist_set_walk(a, size, threads);
}

// Assign each block a chunk of whole iterations and at least min vectors. Returns the number of
// blocks: at most max, unless chunks reach Policy::CHUNK.
static inline unsigned gf_hist_cut(gf_hist_args *a, uint64_t max, uint64_t min) {
    const uint64_t iterations = gf_divide_up(a->end, Policy::THREADS);
    const uint64_t chunk =
        std::max(gf_divide_up(iterations, max), gf_divide_up(min, Policy::THREADS));
    a->chunk = std::min<uint64_t>(chunk * Policy::THREADS, Policy::CHUNK);
    return static_cast<unsigned>(gf_divide_up(a->end, a->chunk));
}

// Compute the chunks that counting and extraction share.
static inline unsigned gf_hist_cut_common(gf_hist_args *a) {
    return gf_hist_cut(a, a->blocks * gf_sm_count(), 1);
}

// Queue the counting of an image, or of each row of a strip (count.cu). Returns whether counts, if
// not NULL, receives the number of samples of each extracted bin in the chunk of each block.
bool gf_hist_queue_count(const gf_hist_plan *plan, const gf_strip *strip, const gf_hist_args &a,
                         gf_u64 *state, uint32_t *counts, gf_queue *queue);

// Return the resident blocks per SM of the kernel that counts an image.
uint64_t gf_hist_blocks(const gf_hist_plan *plan);

// Queue the extraction of selected bins (extract.cu). counted: scratch holds their counts.
void gf_hist_queue_extract(const gf_hist_plan *plan, const gf_hist_args &a, bool counted,
                           void *scratch, gf_u64 *payload, gf_queue *queue);

// Scratch layout to sort n samples, as byte offsets. The keys are at offset 0.
struct gf_hist_sort_layout {
    size_t indices, sorted_keys, sorted_indices, sort, sort_bytes, bytes;
};

gf_hist_sort_layout gf_hist_sort_layout_of(uint64_t n, uint32_t extracts);

// Sort indices by key, stably (sort.cu). Keys are at most extracts.
void gf_hist_sort(void *memory, uint64_t n, uint32_t extracts, gf_queue *queue);

#endif
