// Kernels of order statistics: arguments, keys and launches.
#ifndef GF_PERCENTILE_CUH
#define GF_PERCENTILE_CUH

#include "cuda/window/load.cuh"

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
    uint32_t sign, offset, back; // key: sample * sign + offset; sample: key * sign + back
    uint32_t one, minus_one;     // 1 and -1, as factors that the compiler does not know
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

// Convert a word of samples to one of keys, whose minima are results, and back. Those of f32 begin
// with -inf: NaN are the greatest ones, whatever their sign.
template <typename T> GF_DEVICE uint32_t percentile_key_word(const percentile_args &a, uint32_t x) {
    if constexpr (sizeof(T) == 4)
        x = static_cast<uint32_t>(gf_percentile_order(static_cast<int32_t>(x)));
    return x * a.sign + a.offset;
}

template <typename T>
GF_DEVICE uint32_t percentile_sample_word(const percentile_args &a, uint32_t key) {
    key = key * a.sign + a.back;
    if constexpr (sizeof(T) == 4) {
        const float x = __int_as_float(gf_percentile_order(static_cast<int32_t>(key)));
        key = x == x ? __float_as_uint(x) : 0x7fc00000;
    }
    return key;
}

template <typename T> GF_DEVICE uint32_t percentile_min(uint32_t a, uint32_t b) {
    if constexpr (sizeof(T) == 4)
        return min(static_cast<int32_t>(a), static_cast<int32_t>(b));
    else
        return __vminu2(a, b);
}

// One instruction.
template <typename T> GF_DEVICE uint32_t percentile_min(uint32_t a, uint32_t b, uint32_t c) {
    return percentile_min<T>(percentile_min<T>(a, b), c);
}

template <typename T> GF_DEVICE T *percentile_out(const percentile_args &a, int64_t y) {
    return reinterpret_cast<T *>(a.out + (y - a.first) * static_cast<int64_t>(a.out_stride));
}

// ---- launches -----------------------------------------------------------------------------------

// network.cu: medians of 3 x 3, 5 x 5 and 7 x 7 pixels. Returns false if the device has too little
// shared memory.
bool percentile_launch_network(const percentile_args &a, gf_type type, gf_queue *queue);

// network.cu: medians of 3 x 3 pixels, or minima of square windows of a radius of at most
// GF_PERCENTILE_MAX_NETWORK. Returns false if the device has too little shared memory.
bool percentile_launch_march(const percentile_args &a, gf_type type, bool median, gf_queue *queue);

// select.cu: any window.
void percentile_launch_select(const percentile_args &a, gf_type type, gf_queue *queue);

// extreme.cu: minima or maxima, and the bytes of scratch memory for them.
void percentile_launch_extreme(const percentile_args &a, gf_type type, unsigned char *scratch,
                               gf_queue *queue);
size_t percentile_extreme_bytes(const percentile_args &a, gf_type type, uint64_t in_rows);

#endif
