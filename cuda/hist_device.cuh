// What the kernels of hist share: the plan on the device, samples and their bins.
#ifndef GF_HIST_DEVICE_CUH
#define GF_HIST_DEVICE_CUH

#include "device.cuh"

#include "hist/hist.h"
#include "hist/hist_bin.h"

#define HIST_THREADS 256

struct HistArgs {
    const unsigned char *in; // of the first row
    size_t in_stride;
    uint64_t width, rows, y0; // y0: of the first row, in the image
    uint32_t channels, first, measured, bins;
    bool luma, ranged, extract_all;
    double lo, span;
    uint32_t extracts;
    uint32_t listed[GF_HIST_MAX_LISTED];
};

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

// Its bin; a.bins for NaN.
template <typename T>
static __device__ __forceinline__ uint32_t hist_bin(const HistArgs &a, T value) {
    if (a.ranged)
        return gf_hist_bin_real((static_cast<double>(value) - a.lo) / a.span, a.bins);
    if constexpr (sizeof(T) == sizeof(float))
        return gf_hist_bin_real(static_cast<double>(value), a.bins);
    else
        return gf_hist_bin_integer(value, a.bins, sizeof(T) == 1 ? 255 : 65535);
}

// Which extracted bin it is; a.extracts if none.
static __device__ __forceinline__ uint32_t hist_rank(const HistArgs &a, uint32_t bin) {
    if (a.extract_all)
        return bin; // and NaN's bin is a.bins, which is a.extracts
    uint32_t i = 0;
    while (i < a.extracts && a.listed[i] != bin)
        i++;
    return i;
}

template <typename T>
static __device__ __forceinline__ const T *hist_row(const HistArgs &a, uint64_t y) {
    return reinterpret_cast<const T *>(a.in + y * a.in_stride);
}

#endif
