// What the kernels of hist share: the plan on the device, samples, vectors of them, and their bins.
#ifndef GF_HIST_DEVICE_CUH
#define GF_HIST_DEVICE_CUH

#include "device.cuh"

#include "hist/hist.h"
#include "hist/hist_bin.h"

#define HIST_THREADS 512
#define HIST_WARPS (HIST_THREADS / 32)
#define HIST_BLOCKS 3 // at home on a processor
// Turing has no room for more than two.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define HIST_FIT(blocks) ((blocks) < 2 ? (blocks) : 2)
#else
#define HIST_FIT(blocks) (blocks)
#endif

#define HIST_CHUNK (1 << 27) // vectors of a block at most: 32 bits count their samples
#define HIST_FAR (1 << 30)   // so many vectors further no chunk reaches

typedef unsigned long long hist_u64;

struct HistArgs {
    const unsigned char *in; // of the first row
    size_t in_stride;
    uint64_t width, rows;
    uint64_t before;  // measured samples of the image before this band
    uint64_t samples; // measured in a row
    uint32_t channels, first, measured, bins;
    uint32_t counters; // of a channel
    bool luma, ranged, extract_all;
    double lo, hi, span;
    double scale;                      // bins / span; 0 where it is no help
    float quick_scale, quick_lo, blur; // for binary32; blur is 1 where that is no help
    uint32_t extracts;
    uint32_t listed[GF_HIST_MAX_LISTED];
    // The walk.
    uint64_t vectors;    // of a row
    int32_t row_vectors; // the same, or HIST_FAR
    uint64_t end;        // of the band
    uint64_t chunk;      // of a block
    uint64_t blocks;     // at home on a processor
    int32_t step;        // a vector a thread further: so many vectors, modulo a row ..
    int64_t step_at;     // .. bytes ..
    int64_t step_j;      // .. samples ..
    uint32_t step_c;     // .. and channels, modulo all
    int64_t wrap_at;     // the same from behind a row to the beginning of the next
    int64_t wrap_j;
    uint32_t wrap_c;
    uint32_t last;       // samples in the last vector of a row
    uint32_t last_words; // and how many times 16 bytes of the image these are
};

// ---- samples ------------------------------------------------------------------------------------

// Measured sample s of pixel x.
template <typename T>
static __device__ __forceinline__ T hist_sample(const HistArgs &a, const T *row, uint64_t x,
                                                uint32_t s) {
    const T *pixel = row + x * a.channels;
    if (!a.luma)
        return pixel[a.first + s];
    if constexpr (sizeof(T) == sizeof(float))
        return gf_luma_real(pixel[0], pixel[1], pixel[2]);
    else
        return static_cast<T>(gf_luma_integer(pixel[0], pixel[1], pixel[2]));
}

template <typename T>
static __device__ __forceinline__ const T *hist_row(const HistArgs &a, uint64_t y) {
    return reinterpret_cast<const T *>(a.in + y * a.in_stride);
}

template <typename T> struct hist_vector { static constexpr int size = 16 / sizeof(T); };

static __device__ __forceinline__ uint32_t hist_word(const uint4 &v, int i) {
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

// Sample k of a vector; k is a constant after unrolling.
static __device__ __forceinline__ void hist_get(const uint4 &v, int k, uint8_t *x) {
    *x = static_cast<uint8_t>(hist_word(v, k / 4) >> (k % 4 * 8));
}

static __device__ __forceinline__ void hist_get(const uint4 &v, int k, uint16_t *x) {
    *x = static_cast<uint16_t>(hist_word(v, k / 2) >> (k % 2 * 16));
}

static __device__ __forceinline__ void hist_get(const uint4 &v, int k, float *x) {
    *x = __uint_as_float(hist_word(v, k));
}

// Element i of the 16-byte words of some pixels.
template <typename T> static __device__ __forceinline__ T hist_element(const uint4 *words, int i) {
    T x;
    hist_get(words[i / hist_vector<T>::size], i % hist_vector<T>::size, &x);
    return x;
}

// Keeps the compiler from making of a choice of two registers an indexed read of local memory.
static __device__ __forceinline__ void hist_keep(float *x) {
    asm("" : "+f"(*x));
}

template <typename T> static __device__ __forceinline__ void hist_keep(T *x) {
    uint32_t bits = *x;
    asm("" : "+r"(bits));
    *x = static_cast<T>(bits);
}

// The luma of pixel p among C words of pixels.
template <typename T, int C>
static __device__ __forceinline__ T hist_luma(const uint4 *words, int p) {
    const T r = hist_element<T>(words, C * p), g = hist_element<T>(words, C * p + 1);
    const T b = hist_element<T>(words, C >= 3 ? C * p + 2 : 0); // never called for less
    if constexpr (sizeof(T) == sizeof(float))
        return gf_luma_real(r, g, b);
    else
        return static_cast<T>(gf_luma_integer(r, g, b));
}

// Its measured channel. Where hist_count gives each channel blocks of its own, z.
template <typename T, int C>
static __device__ __forceinline__ T hist_pick(const HistArgs &a, const uint4 *words, int p) {
    const uint32_t first = a.first + blockIdx.z;
    T x = hist_element<T>(words, C * p);
#pragma unroll
    for (int c = 1; c < C; c++) {
        T other = hist_element<T>(words, C * p + c);
        hist_keep(&other);
        x = first == static_cast<uint32_t>(c) ? other : x;
    }
    return x;
}

// Puts sample k into a vector that was zero.
static __device__ __forceinline__ void hist_put(uint32_t *words, int k, uint8_t x) {
    words[k / 4] |= static_cast<uint32_t>(x) << (k % 4 * 8);
}

static __device__ __forceinline__ void hist_put(uint32_t *words, int k, uint16_t x) {
    words[k / 2] |= static_cast<uint32_t>(x) << (k % 2 * 16);
}

static __device__ __forceinline__ void hist_put(uint32_t *words, int k, float x) {
    words[k] = __float_as_uint(x);
}

// The vector of n words of pixels.
template <typename T, int C>
static __device__ __forceinline__ uint4 hist_gather(const HistArgs &a, const uint4 *from,
                                                    uint32_t n) {
    uint4 words[C];
#pragma unroll
    for (uint32_t i = 0; i < C; i++)
        words[i] = i < n ? __ldg(from + i) : make_uint4(0, 0, 0, 0);
    uint32_t out[4] = {};
    if (C >= 3 && a.luma) {
#pragma unroll
        for (int k = 0; k < hist_vector<T>::size; k++)
            hist_put(out, k, hist_luma<T, C>(words, k));
    } else {
#pragma unroll
        for (int k = 0; k < hist_vector<T>::size; k++)
            hist_put(out, k, hist_pick<T, C>(a, words, k));
    }
    return make_uint4(out[0], out[1], out[2], out[3]);
}

// ---- bins ---------------------------------------------------------------------------------------

// As gf_hist_bin_ranged, whose division takes longer than all the rest. The product below and the
// chain of the definition each round at most twice, so that they differ by less than 2^-50 of
// themselves; where the product is not that near to a whole number they have the same one below
// them, and the sample is inside the range. Otherwise, and where scale is no help, the definition
// decides.
static __device__ __noinline__ uint32_t hist_bin_careful(double v, double lo, double hi,
                                                         double span, double scale, uint32_t bins) {
    const double scaled = (v - lo) * scale;
    if (scale > 0 && scaled > 0 && scaled < bins) {
        const double magic = 6755399441055744.0; // 1.5 * 2^52: its last bit counts ones
        const double shifted = __dadd_rd(scaled, magic), rest = scaled - (shifted - magic);
        if (rest > 0x1p-20 && rest < 1 - 0x1p-20)
            return static_cast<uint32_t>(__double2loint(shifted));
    }
    return gf_hist_bin_ranged(v, lo, hi, span, bins);
}

// Without --range.
template <typename T>
static __device__ __forceinline__ uint32_t hist_bin_plain(const HistArgs &a, T value) {
    if constexpr (sizeof(T) == sizeof(float)) {
        // Rounded down, the product is between the whole number below the exact one and that, so
        // both have the same one below them. The conversion makes 0 of what is less.
        const uint32_t bin = __float2uint_rz(__fmul_rd(value, static_cast<float>(a.bins)));
        return value == value ? min(bin, a.bins - 1) : a.bins;
    } else {
        return gf_hist_bin_integer(value, a.bins, sizeof(T) == 1 ? 255 : 65535);
    }
}

// The bin of a sample, or the counter behind the bins that it belongs to.
template <typename T>
static __device__ __forceinline__ uint32_t hist_bin(const HistArgs &a, T value) {
    return a.ranged
               ? hist_bin_careful(static_cast<double>(value), a.lo, a.hi, a.span, a.scale, a.bins)
               : hist_bin_plain<T>(a, value);
}

// With --range, in binary32 where that is enough: v * scale and lo * scale each err by 2^-23 of
// themselves at most, and the first is no greater than the second and their difference together.
// blur, made by the host, is more than four times that for every difference up to two bins outside
// of the range; what is further outside is never computed to be less than one outside.
template <typename T>
static __device__ __forceinline__ void hist_bins_ranged(const HistArgs &a, const uint4 &v,
                                                        uint32_t (&bins)[hist_vector<T>::size]) {
    const float below = -1.5f, above = static_cast<float>(a.bins) + 1.5f, sure = 0.5f - a.blur;
    const float magic = 12582912.0f; // 1.5 * 2^23: its last bit counts ones
    uint32_t doubts = 0;
#pragma unroll
    for (int k = 0; k < hist_vector<T>::size; k++) {
        T x;
        hist_get(v, k, &x);
        float scaled = __fmaf_rn(static_cast<float>(x), a.quick_scale, -a.quick_lo);
        scaled = scaled > below ? scaled : below;
        scaled = scaled < above ? scaled : above;
        const float shifted = __fadd_rd(scaled, magic), rest = scaled - (shifted - magic);
        const int bin = __float_as_int(shifted) - __float_as_int(magic);
        bins[k] = bin < 0                           ? a.bins + GF_HIST_AT_BELOW
                  : bin >= static_cast<int>(a.bins) ? a.bins + GF_HIST_AT_ABOVE
                                                    : static_cast<uint32_t>(bin);
        doubts |= fabsf(rest - 0.5f) < sure && x == x ? 0 : 1u << k;
    }
    if (doubts == 0)
        return;
#pragma unroll
    for (int k = 0; k < hist_vector<T>::size; k++) {
        T x;
        hist_get(v, k, &x);
        if (doubts >> k & 1)
            bins[k] = hist_bin<T>(a, x);
    }
}

// The bins of a vector's samples. Without Ranged, plans with --range are not asked for.
template <typename T, bool Ranged = true>
static __device__ __forceinline__ void hist_bins(const HistArgs &a, const uint4 &v,
                                                 uint32_t (&bins)[hist_vector<T>::size]) {
    constexpr int size = hist_vector<T>::size, bits = sizeof(T) == 1 ? 8 : 16;
    constexpr uint32_t max = sizeof(T) == 1 ? 255 : 65535;
    if (Ranged && a.ranged) {
        hist_bins_ranged<T>(a, v, bins);
    } else if (sizeof(T) < sizeof(float) && a.bins <= max) {
        // v * bins / max without a division: with p = v * bins + 1, (p + p / (max + 1)) / (max + 1)
        // rounded down is the same for every quotient up to max: p = max * q + r + 1 with r < max
        // is (max + 1) * q + (r + 1 - q), and p / (max + 1) is q, or q - 1 where r + 1 < q.
#pragma unroll
        for (int k = 0; k < size; k++) {
            T x;
            hist_get(v, k, &x);
            const uint32_t p = static_cast<uint32_t>(x) * a.bins + 1;
            bins[k] = min((p + (p >> bits)) >> bits, a.bins - 1);
        }
    } else {
#pragma unroll
        for (int k = 0; k < size; k++) {
            T x;
            hist_get(v, k, &x);
            bins[k] = hist_bin_plain<T>(a, x);
        }
    }
}

// Which extracted bin it is; a.extracts or more if none.
static __device__ __forceinline__ uint32_t hist_rank(const HistArgs &a, uint32_t bin) {
    if (a.extract_all)
        return bin; // the counters behind the bins begin at a.extracts
    uint32_t i = 0;
    while (i < a.extracts && a.listed[i] != bin)
        i++;
    return i;
}

#endif
