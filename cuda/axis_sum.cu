// axis-sum on the GPU: a block a row, or a thread a column.
#include "reduce.cuh"

#include "axis_sum/axis_sum.h"

namespace {

struct Args {
    const unsigned char *in;
    size_t in_stride;
    unsigned char *records; // of the first row
    size_t out_stride;
    void *state;
    uint64_t width, rows;
    uint32_t channels, measured;
};

// Rows. One block of 256 a row, in turn: thread t takes pixels t, t+256, ..., which are the lanes
// of the contract. Reads each sample once, writes a record a row.
template <typename T> __global__ void __launch_bounds__(GF_ROW_THREADS) sum_rows(Args a) {
    typedef typename gf_sum_type<T>::type Sum;
    __shared__ gf_reduce_shared shared;
    for (uint64_t y = blockIdx.x; y < a.rows; y += gridDim.x) {
        const T *row = reinterpret_cast<const T *>(a.in + y * a.in_stride);
        unsigned long long *record =
            reinterpret_cast<unsigned long long *>(a.records + y * a.out_stride);
        for (uint32_t c = 0; c < a.measured; c++) {
            Sum sum = 0;
            for (uint64_t x = threadIdx.x; x < a.width; x += GF_ROW_THREADS)
                sum += static_cast<Sum>(row[x * a.channels + c]);
            const Sum total = gf_block_total(sum, &shared);
            if (threadIdx.x == 0)
                record[c] = gf_result_bits(total);
        }
    }
}

__device__ __forceinline__ void add(unsigned long long *state, unsigned long long sum) {
    atomicAdd(state, sum);
}

__device__ __forceinline__ void add(double *state, double sum) {
    *state = __longlong_as_double(static_cast<long long>(gf_result_bits(sum)));
}

// Columns. A thread a sample of a row, down rows [blockIdx.y * rows_a_block, ...): neighbouring
// threads read neighbouring samples. Integer sums are added to the state; f32 sums go on from it,
// in one block down all rows, because their order counts.
template <typename T>
__global__ void __launch_bounds__(GF_ROW_THREADS) sum_columns(Args a, uint64_t rows_a_block) {
    typedef typename gf_sum_type<T>::type Sum;
    const uint64_t i = static_cast<uint64_t>(blockIdx.x) * GF_ROW_THREADS + threadIdx.x;
    if (i >= a.width * a.channels)
        return;
    Sum *state = static_cast<Sum *>(a.state) + i;
    Sum sum = sizeof(T) == sizeof(float) ? *state : static_cast<Sum>(0);
    const uint64_t begin = blockIdx.y * rows_a_block;
    const uint64_t end = begin + rows_a_block < a.rows ? begin + rows_a_block : a.rows;
    for (uint64_t y = begin; y < end; y++)
        sum += static_cast<Sum>(reinterpret_cast<const T *>(a.in + y * a.in_stride)[i]);
    add(state, sum);
}

#define ROWS_A_BLOCK 64

template <typename T> void run(const gf_axis_sum_plan *plan, const Args &a, cudaStream_t stream) {
    if (!plan->columns) {
        sum_rows<T><<<gf_grid(a.rows, 1), GF_ROW_THREADS, 0, stream>>>(a);
        return;
    }
    const uint64_t samples = a.width * a.channels;
    const bool ordered = plan->head.ordered;
    uint64_t rows = ordered ? a.rows : ROWS_A_BLOCK;
    while ((a.rows + rows - 1) / rows > 65535) // what a grid may be high
        rows *= 2;
    const dim3 grid(static_cast<unsigned>((samples + GF_ROW_THREADS - 1) / GF_ROW_THREADS),
                    static_cast<unsigned>((a.rows + rows - 1) / rows));
    sum_columns<T><<<grid, GF_ROW_THREADS, 0, stream>>>(a, rows);
}

gf_status launch(const gf_plan *head, const gf_band *band, void *scratch, void *stream_handle,
                 gf_error *error) {
    (void)scratch;
    const gf_axis_sum_plan *plan = reinterpret_cast<const gf_axis_sum_plan *>(head);
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_handle);
    Args a = {};
    a.in = gf_row(&band->in, band->out.y0);
    a.in_stride = band->in.stride;
    a.records = band->out.data + gf_record_offset(head);
    a.out_stride = band->out.stride;
    a.state = band->state;
    a.width = head->in.width;
    a.rows = band->out.rows;
    a.channels = head->in.channels;
    a.measured = plan->measured;
    gf_for_type(head->in.type, [&](auto sample) { run<decltype(sample)>(plan, a, stream); });
    return gf_cuda_check(cudaGetLastError(), "axis-sum", error);
}

} // namespace

extern "C" const gf_filter_cuda gf_axis_sum_cuda = {nullptr, launch};
