// The values of a bin are an interval, because a greater sample never has a lesser bin: the host
// finds it, and kernels that look for one bin compute none.
#ifndef GF_HIST_WINDOW_CUH
#define GF_HIST_WINDOW_CUH

#include "hist_device.cuh"

#include <string.h>

// lo <= v <= hi. For u8 what hist_hits compares four bytes with.
template <typename T> struct HistWindow { T lo, hi; };

template <> struct HistWindow<uint8_t> { uint32_t add_lo, low_lo, add_above, low_above; };

// Bit k is set if sample k is in the interval.
template <typename T>
static __device__ __forceinline__ uint32_t hist_hits(const HistWindow<T> &window, const uint4 &v) {
    uint32_t hits = 0;
#pragma unroll
    for (int k = 0; k < hist_vector<T>::size; k++) {
        T x;
        hist_get(v, k, &x);
        if (x >= window.lo && x <= window.hi)
            hits |= 1u << k;
    }
    return hits;
}

// Bytes that are not less than a bound have their last bit set. Adding 128 less the bound's low 7
// bits to a byte's low 7 carries into that bit if these are not less; of that, the byte's own last
// bit and whether the bound is below 128, the majority is the answer.
static __device__ __forceinline__ uint32_t hist_reach(uint32_t word, uint32_t add, uint32_t low) {
    const uint32_t sum = (word & 0x7f7f7f7fu) + add;
    return (sum & word) | (sum & low) | (word & low);
}

template <>
__device__ __forceinline__ uint32_t hist_hits<uint8_t>(const HistWindow<uint8_t> &window,
                                                       const uint4 &v) {
    uint32_t hits = 0;
#pragma unroll
    for (int i = 3; i >= 0; i--) {
        const uint32_t word = hist_word(v, i);
        const uint32_t in = hist_reach(word, window.add_lo, window.low_lo) &
                            ~hist_reach(word, window.add_above, window.low_above) & 0x80808080u;
        // The product has the bytes' last bits side by side in its first four.
        hits = __funnelshift_l(in * 0x00204081u, hits, 4);
    }
    return hits;
}

// ---- host ---------------------------------------------------------------------------------------

// Samples in ascending order: the n-th of a type.
static inline uint32_t hist_ordered_count(uint8_t) {
    return 256;
}

static inline uint32_t hist_ordered_count(uint16_t) {
    return 65536;
}

static inline uint32_t hist_ordered_count(float) {
    return 2 * 0x7f800000u + 2; // from one infinity to the other, with two zeros
}

static inline void hist_ordered(uint32_t n, uint8_t *x) {
    *x = static_cast<uint8_t>(n);
}

static inline void hist_ordered(uint32_t n, uint16_t *x) {
    *x = static_cast<uint16_t>(n);
}

static inline void hist_ordered(uint32_t n, float *x) {
    const uint32_t bits = n <= 0x7f800000u ? 0xff800000u - n : n - 0x7f800001u;
    memcpy(x, &bits, sizeof bits);
}

// The place of a sample among the bins, as the host computes it; with --range 0 is below the first
// bin, which is 1, and a.bins + 1 above the last.
template <typename T> static inline uint32_t hist_class_of(const HistArgs &a, T value) {
    if (a.ranged) {
        const double v = static_cast<double>(value);
        return v < a.lo   ? 0
               : v > a.hi ? a.bins + 1
                          : 1 + gf_hist_bin_real((v - a.lo) / a.span, a.bins);
    }
    if (sizeof(T) == sizeof(float))
        return gf_hist_bin_real(static_cast<double>(value), a.bins);
    return gf_hist_bin_integer(static_cast<uint32_t>(value), a.bins, sizeof(T) == 1 ? 255 : 65535);
}

// The first sample whose bin is at least `bin`, as the n-th; the number of all if there is none.
template <typename T> static inline uint32_t hist_first_of(const HistArgs &a, uint32_t bin) {
    uint32_t from = 0, to = hist_ordered_count(T{});
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        T x;
        hist_ordered(middle, &x);
        if (hist_class_of<T>(a, x) >= bin + a.ranged)
            to = middle;
        else
            from = middle + 1;
    }
    return from;
}

static inline void hist_bound(uint32_t bound, uint32_t *add, uint32_t *low) {
    const uint32_t rest = bound < 256 ? 128 - bound % 128 : 0; // no byte reaches 256
    *add = rest * 0x01010101u;
    *low = bound < 128 ? 0xffffffffu : 0;
}

static inline void hist_set_window(uint32_t from, uint32_t to, HistWindow<uint8_t> *window) {
    hist_bound(from, &window->add_lo, &window->low_lo);
    hist_bound(to, &window->add_above, &window->low_above);
}

template <typename T>
static inline void hist_set_window(uint32_t from, uint32_t to, HistWindow<T> *window) {
    // Of no samples: neither 1 nor anything is at least 1 and at most 0.
    window->lo = 1;
    window->hi = 0;
    if (from < to) {
        hist_ordered(from, &window->lo);
        hist_ordered(to - 1, &window->hi);
    }
}

template <typename T> static inline HistWindow<T> hist_window(const HistArgs &a, uint32_t bin) {
    HistWindow<T> window;
    hist_set_window(hist_first_of<T>(a, bin), hist_first_of<T>(a, bin + 1), &window);
    return window;
}

#endif
