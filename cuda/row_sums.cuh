// Exact sums along the rows of integer images: of samples (one image) or of products (two).
#ifndef GF_ROW_SUMS_CUH
#define GF_ROW_SUMS_CUH

#include "reduce.cuh"

struct gf_row_sums {
    const unsigned char *in[2]; // the first row of each image
    size_t in_stride;
    unsigned char *records; // of the first row
    size_t out_stride;
    uint64_t width, rows, row_bytes;
    uint32_t measured;
    gf_shares shares;
};

static inline gf_row_sums gf_row_sums_of(const gf_plan *plan, const gf_band *band,
                                         uint32_t measured) {
    gf_row_sums a = {};
    for (uint32_t i = 0; i < plan->inputs; i++) {
        const gf_rows rows = gf_band_input(band, plan->inputs, i);
        a.in[i] = gf_row(&rows, band->out.y0);
    }
    a.in_stride = band->in.stride;
    a.records = band->out.data + gf_record_offset(plan);
    a.out_stride = band->out.stride;
    a.width = plan->in.width;
    a.rows = band->out.rows;
    a.row_bytes = gf_row_bytes(&plan->in);
    a.measured = measured;
    a.shares = gf_share_rows(a.rows, a.row_bytes, plan->inputs);
    return a;
}

static __device__ __forceinline__ unsigned long long *gf_record_at(const gf_row_sums &a,
                                                                   uint64_t y) {
    return reinterpret_cast<unsigned long long *>(a.records + y * a.out_stride);
}

// ---- the channels of a vector -------------------------------------------------------------------

// A vector of u8 taken apart: words that hold samples of one channel only, or zeros. Of three
// channels a vector may begin with any; channel 0 is the one that it begins with.
template <int CHANNELS> struct gf_planes;

template <> struct gf_planes<1> {
    static const int words = 4;
    uint32_t w[1][4];

    __device__ __forceinline__ gf_planes(uint4 v) {
        w[0][0] = v.x, w[0][1] = v.y, w[0][2] = v.z, w[0][3] = v.w;
    }
};

template <> struct gf_planes<2> {
    static const int words = 2;
    uint32_t w[2][2];

    __device__ __forceinline__ gf_planes(uint4 v) {
        w[0][0] = __byte_perm(v.x, v.y, 0x6420);
        w[0][1] = __byte_perm(v.z, v.w, 0x6420);
        w[1][0] = __byte_perm(v.x, v.y, 0x7531);
        w[1][1] = __byte_perm(v.z, v.w, 0x7531);
    }
};

template <> struct gf_planes<3> {
    static const int words = 2;
    uint32_t w[3][2];

    // Bytes 0 3 6 9 and 12 15; 1 4 7 10 and 13; 2 5 8 11 and 14.
    __device__ __forceinline__ gf_planes(uint4 v) {
        w[0][0] = __byte_perm(__byte_perm(v.x, v.y, 0x0630), v.z, 0x5210);
        w[0][1] = __byte_perm(v.w, 0, 0x4430);
        w[1][0] = __byte_perm(__byte_perm(v.x, v.y, 0x0741), v.z, 0x6210);
        w[1][1] = __byte_perm(v.w, 0, 0x4441);
        w[2][0] = __byte_perm(__byte_perm(v.x, v.y, 0x0052), v.z, 0x7410);
        w[2][1] = __byte_perm(v.w, 0, 0x4442);
    }
};

template <> struct gf_planes<4> {
    static const int words = 1;
    uint32_t w[4][1];

    __device__ __forceinline__ gf_planes(uint4 v) {
        const uint32_t low[2] = {__byte_perm(v.x, v.y, 0x5140), __byte_perm(v.z, v.w, 0x5140)};
        const uint32_t high[2] = {__byte_perm(v.x, v.y, 0x7362), __byte_perm(v.z, v.w, 0x7362)};
        w[0][0] = __byte_perm(low[0], low[1], 0x5410);
        w[1][0] = __byte_perm(low[0], low[1], 0x7632);
        w[2][0] = __byte_perm(high[0], high[1], 0x5410);
        w[3][0] = __byte_perm(high[0], high[1], 0x7632);
    }
};

// Sample i of a vector of u16.
static __device__ __forceinline__ uint32_t gf_u16_at(const uint4 &v, int i) {
    const uint32_t w = i < 2 ? v.x : i < 4 ? v.y : i < 6 ? v.z : v.w;
    return i % 2 ? w >> 16 : w & 0xffffu;
}

// ---- what is summed -----------------------------------------------------------------------------

// Sums of channel c of a vector go to sum[..][(c + shift) % CHANNELS].
template <typename T, int CHANNELS> struct gf_sample_sums;

template <int CHANNELS> struct gf_sample_sums<uint8_t, CHANNELS> {
    typedef uint8_t Sample;
    typedef uint32_t Sum; // of a thread: GF_MOST_PIECE says how much it must hold
    static const int images = 1, sums = 1, channels = CHANNELS;

    static __device__ __forceinline__ void add(Sum (&sum)[1][CHANNELS], int shift,
                                               const uint4 (&q)[1]) {
        const gf_planes<CHANNELS> p(q[0]);
#pragma unroll
        for (int c = 0; c < CHANNELS; c++)
#pragma unroll
            for (int k = 0; k < p.words; k++)
                sum[0][(c + shift) % CHANNELS] =
                    __dp4a(p.w[c][k], 0x01010101u, sum[0][(c + shift) % CHANNELS]);
    }
};

template <int CHANNELS> struct gf_sample_sums<uint16_t, CHANNELS> {
    typedef uint16_t Sample;
    typedef uint32_t Sum;
    static const int images = 1, sums = 1, channels = CHANNELS;

    static __device__ __forceinline__ void add(Sum (&sum)[1][CHANNELS], int shift,
                                               const uint4 (&q)[1]) {
#pragma unroll
        for (int i = 0; i < 8; i++)
            sum[0][(i + shift) % CHANNELS] += gf_u16_at(q[0], i);
    }
};

// The order of dot's records: a.b, a.a, b.b.
template <typename T, int CHANNELS> struct gf_product_sums;

template <int CHANNELS> struct gf_product_sums<uint8_t, CHANNELS> {
    typedef uint8_t Sample;
    typedef uint32_t Sum;
    static const int images = 2, sums = 3, channels = CHANNELS;

    static __device__ __forceinline__ void add(Sum (&sum)[3][CHANNELS], int shift,
                                               const uint4 (&q)[2]) {
        const gf_planes<CHANNELS> a(q[0]), b(q[1]);
#pragma unroll
        for (int i = 0; i < CHANNELS; i++) {
            const int c = (i + shift) % CHANNELS;
#pragma unroll
            for (int k = 0; k < a.words; k++) {
                sum[0][c] = __dp4a(a.w[i][k], b.w[i][k], sum[0][c]);
                sum[1][c] = __dp4a(a.w[i][k], a.w[i][k], sum[1][c]);
                sum[2][c] = __dp4a(b.w[i][k], b.w[i][k], sum[2][c]);
            }
        }
    }
};

template <int CHANNELS> struct gf_product_sums<uint16_t, CHANNELS> {
    typedef uint16_t Sample;
    typedef unsigned long long Sum; // one product of u16 may fill 32 bits
    static const int images = 2, sums = 3, channels = CHANNELS;

    static __device__ __forceinline__ void add(Sum (&sum)[3][CHANNELS], int shift,
                                               const uint4 (&q)[2]) {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const int c = (i + shift) % CHANNELS;
            const uint32_t x = gf_u16_at(q[0], i), y = gf_u16_at(q[1], i);
            sum[0][c] += static_cast<Sum>(x) * y;
            sum[1][c] += static_cast<Sum>(x) * x;
            sum[2][c] += static_cast<Sum>(y) * y;
        }
    }
};

// ---- the kernel ---------------------------------------------------------------------------------

// GROUP threads walk along a row, or a block along a piece of one. Reads each sample once, 16 bytes
// a load; writes a record a row. A row's pieces add to its record, which is zero before. Shared
// memory: a sum of each kind and channel from each of 8 warps.
template <typename Kind, int GROUP>
__global__ void __launch_bounds__(GF_BLOCK) gf_sum_integer_rows(gf_row_sums a) {
    const int channels = Kind::channels, values = Kind::sums * channels;
    const int vector_samples = 16 / sizeof(typename Kind::Sample);
    // Of three channels a multiple of three, so that a thread's vectors begin with channels that
    // are known when this is compiled. Sums of 64 bits leave fewer registers.
    const int unroll = channels != 3 ? 4 : sizeof(typename Kind::Sum) == 8 ? 3 : 6;
    __shared__ unsigned long long parts[GF_BLOCK / 32][values];
    const uint32_t lane = threadIdx.x % GROUP, groups = GF_BLOCK / GROUP;
    // The same number of turns for all threads of a block: they meet when they reduce.
    for (uint64_t first = static_cast<uint64_t>(blockIdx.x) * groups; first < a.shares.units;
         first += static_cast<uint64_t>(gridDim.x) * groups) {
        const gf_unit unit =
            gf_unit_at<GROUP == GF_BLOCK>(a.shares, a.row_bytes, first + threadIdx.x / GROUP);
        const unsigned char *row[Kind::images];
#pragma unroll
        for (int i = 0; i < Kind::images; i++)
            row[i] = a.in[i] + unit.y * a.in_stride + unit.begin;
        typename Kind::Sum sum[Kind::sums][channels] = {};
        gf_walk<Kind::images, GROUP, unroll>(
            row, unit.bytes, lane, [&](int u, uint64_t, uint32_t, const uint4(&q)[Kind::images]) {
                Kind::add(sum, u * GROUP * vector_samples % channels, q);
            });
        // Which of its sums is a channel's depends on what the thread's vectors begin with.
        const uint32_t phase = lane * vector_samples % channels;
        unsigned long long *record = gf_record_at(a, unit.y);
#pragma unroll
        for (int c = 0; c < channels; c++)
#pragma unroll
            for (int s = 0; s < Kind::sums; s++) {
                const int value = c * Kind::sums + s;
                typename Kind::Sum x = sum[s][c];
                if (channels == 3)
                    x = phase == 0   ? x
                        : phase == 1 ? sum[s][(c + channels - 1) % channels]
                                     : sum[s][(c + channels - 2) % channels];
                if (GROUP < GF_BLOCK) { // 24 KiB at most: the total fits, too
                    x = gf_reduce_group<GROUP>(x, gf_plus());
                    if (unit.bytes && lane == 0 && c < static_cast<int>(a.measured))
                        record[value] = x;
                } else {
                    const unsigned long long total =
                        gf_reduce_group<32>(static_cast<unsigned long long>(x), gf_plus());
                    if (threadIdx.x % 32 == 0)
                        parts[threadIdx.x / 32][value] = total;
                }
            }
        if (GROUP < GF_BLOCK)
            continue;
        __syncthreads();
        if (threadIdx.x < a.measured * Kind::sums) {
            unsigned long long total = 0;
            for (int warp = 0; warp < GF_BLOCK / 32; warp++)
                total += parts[warp][threadIdx.x];
            if (a.shares.pieces == 1)
                record[threadIdx.x] = total;
            else
                atomicAdd(&record[threadIdx.x], total);
        }
        __syncthreads();
    }
}

template <typename Kind>
static inline cudaError_t gf_launch_integer_rows(const gf_row_sums &a, cudaStream_t stream) {
    if (a.shares.pieces > 1) {
        const cudaError_t result = cudaMemset2DAsync(
            a.records, a.out_stride, 0, a.measured * Kind::sums * sizeof(uint64_t), a.rows, stream);
        if (result != cudaSuccess)
            return result;
    }
    gf_for_group(a.shares.group, [&](auto group) {
        gf_sum_integer_rows<Kind, decltype(group)::value>
            <<<gf_share_grid(&a.shares), GF_BLOCK, 0, stream>>>(a);
    });
    return cudaGetLastError();
}

#endif
