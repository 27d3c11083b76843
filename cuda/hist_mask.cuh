// The picture of the pixels in extracted bins.
#ifndef GF_HIST_MASK_CUH
#define GF_HIST_MASK_CUH

#include "hist_device.cuh"

struct HistMask {
    unsigned char *out; // of the first row
    size_t out_stride;
    uint32_t out_channels;
};

// A thread a pixel. Reads and writes each pixel once.
template <typename T>
__global__ void __launch_bounds__(HIST_THREADS) draw_mask(HistArgs a, HistMask mask) {
    const uint64_t pixels = a.width * a.rows;
    const uint64_t step = static_cast<uint64_t>(gridDim.x) * HIST_THREADS;
    for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * HIST_THREADS + threadIdx.x; i < pixels;
         i += step) {
        const uint64_t y = i / a.width, x = i % a.width;
        const T *row = hist_row<T>(a, y);
        bool selected = false;
        for (uint32_t s = 0; s < a.measured && !selected; s++)
            selected = hist_rank(a, hist_bin<T>(a, hist_sample<T>(a, row, x, s))) < a.extracts;
        T *to = reinterpret_cast<T *>(mask.out + y * mask.out_stride) + x * mask.out_channels;
        for (uint32_t c = 0; c < mask.out_channels; c++) {
            T value = 0;
            if (selected && c < a.channels)
                value = row[x * a.channels + c];
            else if (selected)
                value = static_cast<T>(sizeof(T) == 1 ? 255 : 65535); // alpha that is new
            to[c] = value;
        }
    }
}

#endif
