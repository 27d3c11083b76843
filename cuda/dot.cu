// dot on the GPU: a block a row.
#include "reduce.cuh"

#include "dot/dot.h"

namespace {

struct Args {
    const unsigned char *a, *b;
    size_t in_stride;
    unsigned char *records; // of the first row
    size_t out_stride;
    uint64_t width, rows;
    uint32_t channels, measured;
};

// What a thread adds up for one channel of a row.
template <typename T> struct Sums {
    static const int count = GF_DOT_SSD;
    unsigned long long sum[count] = {};

    __device__ __forceinline__ void add(T x, T y) {
        const uint32_t p = x, q = y; // a product of u16 fits in 32 bits
        sum[GF_DOT_AB] += p * q;
        sum[GF_DOT_AA] += p * p;
        sum[GF_DOT_BB] += q * q;
    }
};

// The intrinsics round each operation on its own: no compiler setting can contract two of them.
template <> struct Sums<float> {
    static const int count = GF_DOT_SUMS;
    double sum[count] = {};

    __device__ __forceinline__ void add(float x, float y) {
        const double p = x, q = y, d = __dsub_rn(p, q);
        sum[GF_DOT_AB] = __dadd_rn(sum[GF_DOT_AB], __dmul_rn(p, q));
        sum[GF_DOT_AA] = __dadd_rn(sum[GF_DOT_AA], __dmul_rn(p, p));
        sum[GF_DOT_BB] = __dadd_rn(sum[GF_DOT_BB], __dmul_rn(q, q));
        sum[GF_DOT_SSD] = __dadd_rn(sum[GF_DOT_SSD], __dmul_rn(d, d));
    }
};

// One block of 256 a row, in turn: thread t takes pixels t, t+256, ..., which are the lanes of the
// contract. Reads each sample of both images once (its other channels come from the cache), writes
// a record a row.
template <typename T> __global__ void __launch_bounds__(GF_ROW_THREADS) dot_rows(Args args) {
    __shared__ gf_reduce_shared shared;
    for (uint64_t y = blockIdx.x; y < args.rows; y += gridDim.x) {
        const T *a = reinterpret_cast<const T *>(args.a + y * args.in_stride);
        const T *b = reinterpret_cast<const T *>(args.b + y * args.in_stride);
        unsigned long long *record =
            reinterpret_cast<unsigned long long *>(args.records + y * args.out_stride);
        for (uint32_t c = 0; c < args.measured; c++) {
            Sums<T> sums;
            for (uint64_t x = threadIdx.x; x < args.width; x += GF_ROW_THREADS)
                sums.add(a[x * args.channels + c], b[x * args.channels + c]);
#pragma unroll
            for (int i = 0; i < Sums<T>::count; i++) {
                const auto total = gf_block_total(sums.sum[i], &shared);
                if (threadIdx.x == 0)
                    record[c * Sums<T>::count + i] = gf_result_bits(total);
            }
        }
    }
}

gf_status launch(const gf_plan *head, const gf_band *band, void *scratch, void *stream_handle,
                 gf_error *error) {
    (void)scratch;
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_handle);
    const gf_rows a = gf_band_input(band, head->inputs, 0),
                  b = gf_band_input(band, head->inputs, 1);
    Args args = {};
    args.a = gf_row(&a, band->out.y0);
    args.b = gf_row(&b, band->out.y0);
    args.in_stride = band->in.stride;
    args.records = band->out.data + gf_record_offset(head);
    args.out_stride = band->out.stride;
    args.width = head->in.width;
    args.rows = band->out.rows;
    args.channels = head->in.channels;
    args.measured = reinterpret_cast<const gf_dot_plan *>(head)->measured;
    const unsigned blocks = gf_grid(args.rows, 1);
    gf_for_type(head->in.type, [&](auto sample) {
        dot_rows<decltype(sample)><<<blocks, GF_ROW_THREADS, 0, stream>>>(args);
    });
    return gf_cuda_check(cudaGetLastError(), "dot", error);
}

} // namespace

extern "C" const gf_filter_cuda gf_dot_cuda = {nullptr, launch};
