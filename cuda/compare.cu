// compare on the GPU: records of rows; the drawing is a kernel of its own.
#include "compare_draw.cuh"
#include "reduce.cuh"

namespace {

struct Args {
    const unsigned char *a, *b;
    size_t in_stride;
    unsigned char *records; // of the first row
    size_t out_stride;
    uint64_t rows, row_bytes;
    gf_shares shares;
};

__device__ __forceinline__ gf_compare_record *record_at(const Args &args, uint64_t y) {
    return reinterpret_cast<gf_compare_record *>(args.records + y * args.out_stride);
}

__device__ __forceinline__ gf_compare_record nothing() {
    return {0, UINT64_MAX, 0, 0, 0};
}

// ---- what differs -------------------------------------------------------------------------------

// What a thread counts. take: two words that differ.
template <typename T> struct Counts;

template <> struct Counts<uint8_t> {
    uint32_t differing = 0, largest = 0; // of each byte of the words

    __device__ __forceinline__ void take(uint32_t x, uint32_t y) {
        differing += __popc(__vcmpne4(x, y)) / 8;
        largest = __vmaxu4(largest, __vabsdiffu4(x, y));
    }

    __device__ __forceinline__ unsigned long long most() const {
        uint32_t most = 0;
        for (int i = 0; i < 32; i += 8)
            most = gf_largest()(most, largest >> i & 0xffu);
        return most;
    }
};

template <> struct Counts<uint16_t> {
    uint32_t differing = 0, largest = 0;

    __device__ __forceinline__ void take(uint32_t x, uint32_t y) {
        differing += __popc(__vcmpne2(x, y)) / 16;
        largest = __vmaxu2(largest, __vabsdiffu2(x, y));
    }

    __device__ __forceinline__ unsigned long long most() const {
        return gf_largest()(largest & 0xffffu, largest >> 16);
    }
};

template <> struct Counts<float> {
    uint32_t differing = 0;
    unsigned long long largest = 0;

    __device__ __forceinline__ void take(uint32_t x, uint32_t y) {
        const unsigned long long distance =
            gf_sample<float>::distance(__uint_as_float(x), __uint_as_float(y));
        differing += x != y;
        largest = x != y && distance > largest ? distance : largest;
    }

    __device__ __forceinline__ unsigned long long most() const {
        return largest;
    }
};

template <typename T> __device__ __forceinline__ uint32_t bits_at(const unsigned char *p) {
    return gf_sample<T>::bits(*reinterpret_cast<const T *>(p));
}

// The first sample of a vector that differs; the vectors do.
template <typename T>
__device__ __forceinline__ uint32_t first_in(const unsigned char *a, const unsigned char *b) {
    uint32_t i = 0;
    while (bits_at<T>(a + i * sizeof(T)) == bits_at<T>(b + i * sizeof(T)))
        i++;
    return i;
}

// ---- the kernels --------------------------------------------------------------------------------

// The combined value of the threads of a group: in its first thread, or in all. All threads of a
// block must come.
template <int GROUP, typename Operation>
__device__ __forceinline__ unsigned long long combine(unsigned long long x, Operation operation) {
    if (GROUP < GF_BLOCK)
        return gf_reduce_group<GROUP>(x, operation);
    __shared__ unsigned long long warps[GF_BLOCK / 32];
    x = gf_reduce_group<32>(x, operation);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = x;
    __syncthreads();
    x = warps[0];
    for (int i = 1; i < GF_BLOCK / 32; i++)
        x = operation(x, warps[i]);
    __syncthreads();
    return x;
}

// GROUP threads walk along a row of both images, or a block along a piece of it. Reads each sample
// once, 16 bytes a load, four of each image under way. Where vectors are the same that is all;
// where none differs the record is written at once. Pieces add to a record of no differences, and a
// kernel after this one looks up the values.
template <typename T, int GROUP>
__global__ void __launch_bounds__(GF_BLOCK) compare_rows(Args args) {
    const uint32_t lane = threadIdx.x % GROUP, groups = GF_BLOCK / GROUP;
    for (uint64_t at = static_cast<uint64_t>(blockIdx.x) * groups; at < args.shares.units;
         at += static_cast<uint64_t>(gridDim.x) * groups) {
        const gf_unit unit =
            gf_unit_at<GROUP == GF_BLOCK>(args.shares, args.row_bytes, at + threadIdx.x / GROUP);
        const unsigned char *const row[2] = {args.a + unit.y * args.in_stride + unit.begin,
                                             args.b + unit.y * args.in_stride + unit.begin};
        Counts<T> counts;
        unsigned long long first = UINT64_MAX; // vector of the unit
        gf_walk<2, GROUP, 4>(row, unit.bytes, lane,
                             [&](int, uint64_t v, uint32_t, const uint4(&q)[2]) {
                                 const uint4 x = q[0], y = q[1];
                                 if (((x.x ^ y.x) | (x.y ^ y.y) | (x.z ^ y.z) | (x.w ^ y.w)) == 0)
                                     return;
                                 first = v < first ? v : first;
                                 counts.take(x.x, y.x);
                                 counts.take(x.y, y.y);
                                 counts.take(x.z, y.z);
                                 counts.take(x.w, y.w);
                             });
        const bool writes = lane == 0 && unit.bytes;
        gf_compare_record *record = record_at(args, unit.y);
        const bool any = GROUP < GF_BLOCK ? __any_sync(0xffffffffu, counts.differing != 0)
                                          : __syncthreads_or(counts.differing != 0);
        if (!any) {
            if (writes && args.shares.pieces == 1)
                *record = nothing();
            continue;
        }
        gf_compare_record found = nothing();
        found.differing = combine<GROUP>(counts.differing, gf_plus());
        found.largest = combine<GROUP>(counts.most(), gf_largest());
        first = combine<GROUP>(first, gf_least());
        if (!writes)
            continue;
        if (found.differing) {
            const unsigned char *a = row[0] + 16 * first, *b = row[1] + 16 * first;
            const uint32_t i = first_in<T>(a, b);
            found.first = (unit.begin + 16 * first) / sizeof(T) + i;
            found.a = bits_at<T>(a + i * sizeof(T));
            found.b = bits_at<T>(b + i * sizeof(T));
        }
        if (args.shares.pieces == 1) {
            *record = found;
        } else {
            typedef unsigned long long Word;
            atomicAdd(reinterpret_cast<Word *>(&record->differing), Word{found.differing});
            atomicMin(reinterpret_cast<Word *>(&record->first), Word{found.first});
            atomicMax(reinterpret_cast<Word *>(&record->largest), Word{found.largest});
        }
    }
}

// Before and after pieces; a thread a row.
__global__ void __launch_bounds__(GF_BLOCK) start_records(Args args) {
    const uint64_t y = static_cast<uint64_t>(blockIdx.x) * GF_BLOCK + threadIdx.x;
    if (y < args.rows)
        *record_at(args, y) = nothing();
}

template <typename T> __global__ void __launch_bounds__(GF_BLOCK) end_records(Args args) {
    const uint64_t y = static_cast<uint64_t>(blockIdx.x) * GF_BLOCK + threadIdx.x;
    if (y >= args.rows || record_at(args, y)->differing == 0)
        return;
    gf_compare_record *record = record_at(args, y);
    const uint64_t at = y * args.in_stride + record->first * sizeof(T);
    record->a = bits_at<T>(args.a + at);
    record->b = bits_at<T>(args.b + at);
}

template <typename T> void run(const Args &args, cudaStream_t stream) {
    // Rows are cut only where they are few, or each so wide that few fit.
    const unsigned blocks = static_cast<unsigned>((args.rows + GF_BLOCK - 1) / GF_BLOCK);
    if (args.shares.pieces > 1)
        start_records<<<blocks, GF_BLOCK, 0, stream>>>(args);
    gf_for_group(args.shares.group, [&](auto group) {
        compare_rows<T, decltype(group)::value>
            <<<gf_share_grid(&args.shares), GF_BLOCK, 0, stream>>>(args);
    });
    if (args.shares.pieces > 1)
        end_records<T><<<blocks, GF_BLOCK, 0, stream>>>(args);
}

gf_status launch(const gf_plan *plan, const gf_band *band, void *scratch, void *stream_handle,
                 gf_error *error) {
    (void)scratch;
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_handle);
    const gf_rows a = gf_band_input(band, plan->inputs, 0),
                  b = gf_band_input(band, plan->inputs, 1);
    Args args = {};
    args.a = gf_row(&a, band->out.y0);
    args.b = gf_row(&b, band->out.y0);
    args.in_stride = band->in.stride;
    args.records = band->out.data + gf_record_offset(plan);
    args.out_stride = band->out.stride;
    args.rows = band->out.rows;
    args.row_bytes = gf_row_bytes(&plan->in);
    args.shares = gf_share_rows(args.rows, args.row_bytes, 2);
    gf_for_type(plan->in.type, [&](auto sample) { run<decltype(sample)>(args, stream); });
    if (plan->out.width != 0) {
        gf_drawing drawing = {};
        drawing.a = args.a;
        drawing.b = args.b;
        drawing.in_stride = args.in_stride;
        drawing.out = band->out.data;
        drawing.out_stride = args.out_stride;
        drawing.width = plan->in.width;
        drawing.rows = args.rows;
        gf_draw(drawing, plan->in.type, plan->in.channels, stream);
    }
    return gf_cuda_check(cudaGetLastError(), "compare", error);
}

} // namespace

extern "C" const gf_filter_cuda gf_compare_cuda = {nullptr, launch};
