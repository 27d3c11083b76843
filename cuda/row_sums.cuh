// Sums along rows, of samples (one image, axis-sum) or of products (two, dot).
//
//   kernel                used for                               threads
//   gf_sum_integer_rows   u8, u16: exact, in any order           4 or 16 a row, or a block a piece
//   gf_sum_few_lanes      f32, rows of at most 256 pixels        up to 32 a row
//   gf_sum_short_lanes    f32, one channel, up to 2048 pixels    a warp a row
//   gf_sum_lanes          f32, everything else                   64 a channel, a block a row
//
// Sums of f32 are made in binary64 and in the order of filters/samples.h, so each kernel only deals
// out the lanes of that order in another way.
#ifndef GF_ROW_SUMS_CUH
#define GF_ROW_SUMS_CUH

#include "samples.h"
#include "vectors.cuh"

struct gf_row_sums {
    const unsigned char *in[2]; // the first row of each image
    size_t in_stride;
    unsigned char *records; // of the first row
    size_t out_stride;
    uint64_t width, rows, row_bytes;
    uint32_t measured;
    gf_shares shares;
};

static inline gf_row_sums gf_row_sums_of(const gf_plan *plan, const gf_strip *strip,
                                         uint32_t measured) {
    gf_row_sums a = {};
    for (uint32_t i = 0; i < plan->inputs; i++) {
        const gf_rows rows = gf_strip_input(strip, plan->inputs, i);
        a.in[i] = gf_row(&rows, strip->out.y0);
    }
    a.in_stride = strip->in.stride;
    a.records = strip->out.data + gf_record_offset(plan);
    a.out_stride = strip->out.stride;
    a.width = plan->in.width;
    a.rows = strip->out.rows;
    a.row_bytes = gf_row_bytes(&plan->in);
    a.measured = measured;
    a.shares = gf_share_rows(a.rows, a.row_bytes, plan->inputs);
    return a;
}

GF_DEVICE unsigned long long *gf_record_at(const gf_row_sums &a, uint64_t y) {
    return reinterpret_cast<unsigned long long *>(a.records + y * a.out_stride);
}

// ---- the channels of a vector -------------------------------------------------------------------

// A vector of u8 taken apart: words that hold samples of one channel only, or zeros. Of three
// channels a vector may begin with any; channel 0 is the one that it begins with.
template <int CHANNELS> struct gf_planes {
    static const int words = CHANNELS == 1 ? 4 : CHANNELS == 4 ? 1 : 2;
    uint32_t w[CHANNELS][words];

    __device__ __forceinline__ gf_planes(const uint4 &v) {
        if constexpr (CHANNELS == 4) {
            const uint32_t low[2] = {__byte_perm(v.x, v.y, 0x5140), __byte_perm(v.z, v.w, 0x5140)};
            const uint32_t high[2] = {__byte_perm(v.x, v.y, 0x7362), __byte_perm(v.z, v.w, 0x7362)};
#pragma unroll
            for (int c = 0; c < 4; c++)
                w[c][0] = __byte_perm(c < 2 ? low[0] : high[0], c < 2 ? low[1] : high[1],
                                      c % 2 ? 0x7632 : 0x5410);
        } else {
            const uint32_t from[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int c = 0; c < CHANNELS; c++)
#pragma unroll
                for (int k = 0; k < words; k++)
                    w[c][k] = CHANNELS == 3 && k == 1 // 12 to 15: the first channel has two
                                  ? __byte_perm(v.w, 0, c == 0 ? 0x4430 : 0x4440 + c)
                                  : gf_channel_word<CHANNELS>(from + k * CHANNELS, c);
        }
    }
};

// ---- u8 and u16 ---------------------------------------------------------------------------------

// Adds vectors to the sums of a thread: samples, or the products a.b, a.a, b.b in the order of
// dot's records. Channel c of a vector goes to sum[..][(c + shift) % CHANNELS].
template <typename T, int CHANNELS, int IMAGES> struct gf_integer_sums {
    // One product of u16 may fill 32 bits. Of the others GF_MAX_PIECE bounds the number.
    typedef
        typename std::conditional<IMAGES == 2 && sizeof(T) == 2, unsigned long long, uint32_t>::type
            Sum;
    static const int sums = IMAGES == 1 ? 1 : 3;

    GF_DEVICE void add(Sum (&sum)[sums][CHANNELS], int shift, const uint4 (&q)[IMAGES]) {
        if constexpr (sizeof(T) == 1) {
            const gf_planes<CHANNELS> a(q[0]), b(q[IMAGES - 1]);
#pragma unroll
            for (int i = 0; i < CHANNELS; i++) {
                const int c = (i + shift) % CHANNELS;
#pragma unroll
                for (int k = 0; k < a.words; k++) {
                    const uint32_t by = IMAGES == 1 ? 0x01010101u : b.w[i][k];
                    sum[0][c] = __dp4a(a.w[i][k], by, sum[0][c]);
                    if constexpr (IMAGES == 2) {
                        sum[1][c] = __dp4a(a.w[i][k], a.w[i][k], sum[1][c]);
                        sum[2][c] = __dp4a(b.w[i][k], b.w[i][k], sum[2][c]);
                    }
                }
            }
        } else {
#pragma unroll
            for (int i = 0; i < 8; i++) {
                const int c = (i + shift) % CHANNELS;
                const Sum x = gf_sample_at<T>(q[0], i);
                if constexpr (IMAGES == 1) {
                    sum[0][c] += x;
                } else {
                    const Sum y = gf_sample_at<T>(q[1], i);
                    sum[0][c] += x * y;
                    sum[1][c] += x * x;
                    sum[2][c] += y * y;
                }
            }
        }
    }
};

// GROUP threads walk along a row, or a block along a piece of one. Reads each sample once, 16 bytes
// a load; writes a record a row. A row's pieces add to its record, which is zero before. Shared
// memory: a sum of each kind and channel from each of 8 warps. Registers: 32 to 80 (sm_90).
template <typename T, int CHANNELS, int IMAGES, int GROUP>
__global__ void __launch_bounds__(GF_BLOCK) gf_sum_integer_rows(gf_row_sums a) {
    typedef gf_integer_sums<T, CHANNELS, IMAGES> Sums;
    typedef typename Sums::Sum Sum;
    const int values = Sums::sums * CHANNELS, vector_samples = 16 / sizeof(T);
    // Of three channels a multiple of three: it is then known at compile time with which channels a
    // thread's vectors begin. Sums of 64 bits leave fewer registers.
    const int unroll = CHANNELS != 3 ? 4 : sizeof(Sum) == 8 ? 3 : 6;
    __shared__ unsigned long long parts[GF_BLOCK / 32][values];
    const uint32_t lane = threadIdx.x % GROUP, groups = GF_BLOCK / GROUP;
    // The same number of iterations for all threads of a block: they synchronise to reduce.
    for (uint64_t first = static_cast<uint64_t>(blockIdx.x) * groups; first < a.shares.units;
         first += static_cast<uint64_t>(gridDim.x) * groups) {
        const gf_unit unit =
            gf_unit_at<GROUP == GF_BLOCK>(a.shares, a.row_bytes, first + threadIdx.x / GROUP);
        const unsigned char *row[IMAGES];
#pragma unroll
        for (int i = 0; i < IMAGES; i++)
            row[i] = a.in[i] + unit.y * a.in_stride + unit.begin;
        Sum sum[Sums::sums][CHANNELS] = {};
        gf_walk<IMAGES, GROUP, unroll>(row, unit.bytes, lane,
                                       [&](int u, uint64_t, uint32_t, const uint4(&q)[IMAGES]) {
                                           Sums::add(sum, u * GROUP * vector_samples % CHANNELS, q);
                                       });
        // Which of its sums is a channel's depends on the thread's first vector.
        const uint32_t phase = lane * vector_samples % CHANNELS;
        unsigned long long *record = gf_record_at(a, unit.y);
#pragma unroll
        for (int c = 0; c < CHANNELS; c++)
#pragma unroll
            for (int s = 0; s < Sums::sums; s++) {
                const int value = c * Sums::sums + s;
                Sum x = sum[s][c];
                if (CHANNELS == 3)
                    x = phase == 0   ? x
                        : phase == 1 ? sum[s][(c + CHANNELS - 1) % CHANNELS]
                                     : sum[s][(c + CHANNELS - 2) % CHANNELS];
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
        if (threadIdx.x < a.measured * Sums::sums) {
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

template <typename T, int CHANNELS, int IMAGES>
static inline cudaError_t gf_launch_integer_rows(const gf_row_sums &a, cudaStream_t stream) {
    const size_t record = a.measured * gf_integer_sums<T, CHANNELS, IMAGES>::sums * 8;
    if (a.shares.pieces > 1) {
        const cudaError_t result =
            cudaMemset2DAsync(a.records, a.out_stride, 0, record, a.rows, stream);
        if (result != cudaSuccess)
            return result;
    }
    gf_for_group(a.shares.group, [&](auto group) {
        gf_sum_integer_rows<T, CHANNELS, IMAGES, decltype(group)::value>
            <<<gf_share_grid(a.shares), GF_BLOCK, 0, stream>>>(a);
    });
    return cudaGetLastError();
}

// ---- f32 ----------------------------------------------------------------------------------------

// Sums of a channel, one image's or two's; in the order of dot's records.
#define GF_SUMS_OF(IMAGES) ((IMAGES) == 1 ? 1 : 4)

// Each operation is rounded on its own. A product of two f32 is exact in binary64, so that it makes
// no difference whether it is rounded before it is added.
GF_DEVICE void gf_add(double (&sum)[1], const float (&x)[1]) {
    sum[0] = __dadd_rn(sum[0], static_cast<double>(x[0]));
}

GF_DEVICE void gf_add(double (&sum)[4], const float (&x)[2]) {
    const double p = x[0], q = x[1], d = __dsub_rn(p, q);
    sum[0] = __fma_rn(p, q, sum[0]);
    sum[1] = __fma_rn(p, p, sum[1]);
    sum[2] = __fma_rn(q, q, sum[2]);
    sum[3] = __dadd_rn(sum[3], __dmul_rn(d, d));
}

// What a record holds: NaN is canonical.
GF_DEVICE unsigned long long gf_result_bits(double x) {
    return x == x ? static_cast<unsigned long long>(__double_as_longlong(x))
                  : 0x7ff8000000000000ull;
}

// The samples of vectors, added to the sums of the lanes that a thread keeps.
template <int IMAGES, int SUMS>
GF_DEVICE void gf_add_vectors(double (&sum)[4][SUMS], const uint4 (&q)[IMAGES]) {
#pragma unroll
    for (int j = 0; j < 4; j++) {
        float x[IMAGES];
#pragma unroll
        for (int i = 0; i < IMAGES; i++)
            x[i] = gf_sample_at<float>(q[i], j);
        gf_add(sum[j], x);
    }
}

// A block of 64 threads a channel walks along a row: its vectors side by side hold 256 pixels, so
// that a thread keeps the lanes that the four samples of its first vector belong to. Reads each
// sample once, 16 bytes a load, DEEP of them under way; writes a record a row. Behind a row's end
// zeros are added, which changes no sum: none is ever -0. Shared memory: the lanes of each sum and
// channel, 4 samples' to a thread, those of a thread apart so that reading neighbouring lanes meets
// few of the same banks.
template <int CHANNELS, int IMAGES, int DEEP>
__global__ void __launch_bounds__(64 * CHANNELS) gf_sum_lanes(gf_row_sums a) {
    const int threads = 64 * CHANNELS, sums = GF_SUMS_OF(IMAGES), apart = threads + 4;
    __shared__ double lanes[sums][4 * apart];
    for (uint64_t y = blockIdx.x; y < a.rows; y += gridDim.x) {
        const unsigned char *row[IMAGES];
#pragma unroll
        for (int i = 0; i < IMAGES; i++)
            row[i] = a.in[i] + y * a.in_stride;
        double sum[4][sums] = {};
        gf_walk<IMAGES, threads, DEEP / IMAGES>(
            row, a.row_bytes, threadIdx.x,
            [&](int, uint64_t, uint32_t, const uint4(&q)[IMAGES]) { gf_add_vectors(sum, q); });
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int s = 0; s < sums; s++)
                lanes[s][j * apart + threadIdx.x] = sum[j][s];
        __syncthreads();
        // A warp reduces a tree at a time.
        for (uint32_t value = threadIdx.x / 32; value < a.measured * sums; value += threads / 32) {
            const uint32_t c = value / sums;
            double x[8];
#pragma unroll
            for (uint32_t i = 0; i < 8; i++) {
                const uint32_t e = (threadIdx.x % 32 + 32 * i) * CHANNELS + c;
                x[i] = lanes[value % sums][e % 4 * apart + e / 4];
            }
#pragma unroll
            for (int stride = 4; stride > 0; stride /= 2)
#pragma unroll
                for (int i = 0; i < stride; i++)
                    x[i] = __dadd_rn(x[i], x[i + stride]);
            const double total = gf_reduce_group<32>(x[0], gf_plus());
            if (threadIdx.x % 32 == 0)
                gf_record_at(a, y)[value] = gf_result_bits(total);
        }
        __syncthreads();
    }
}

// The sum of the 128 lanes of a warp, of which thread t has 4t to 4t + 3, in the order of the tree.
// A step hands half of what a thread has to the one that adds it up.
GF_DEVICE double gf_warp_tree(const double (&x)[4]) {
    const uint32_t all = 0xffffffffu;
    const bool high = threadIdx.x & 16, odd = threadIdx.x & 8;
    double keep[2];
#pragma unroll
    for (int j = 0; j < 2; j++)
        keep[j] = __dadd_rn(high ? x[j + 2] : x[j],
                            __shfl_xor_sync(all, high ? x[j] : x[j + 2], 16)); // stride 64
    double sum =
        __dadd_rn(odd ? keep[1] : keep[0], __shfl_xor_sync(all, odd ? keep[0] : keep[1], 8)); // 32
#pragma unroll
    for (int distance = 4; distance > 0; distance /= 2) // 16, 8, 4
        sum = __dadd_rn(sum, __shfl_xor_sync(all, sum, distance));
    sum = __dadd_rn(sum, __shfl_xor_sync(all, sum, 16)); // 2
    return __dadd_rn(sum, __shfl_xor_sync(all, sum, 8)); // 1
}

// The same for one channel by a warp a row, for rows so short that a block would spend its time in
// the tree: thread t keeps lanes 4t to 4t + 3 and 128 + 4t to 131 + 4t.
template <int IMAGES>
__global__ void __launch_bounds__(GF_BLOCK) gf_sum_short_lanes(gf_row_sums a) {
    const int sums = GF_SUMS_OF(IMAGES);
    const uint32_t lane = threadIdx.x % 32;
    for (uint64_t y = static_cast<uint64_t>(blockIdx.x) * (GF_BLOCK / 32) + threadIdx.x / 32;
         y < a.rows; y += static_cast<uint64_t>(gridDim.x) * (GF_BLOCK / 32)) {
        const unsigned char *row[IMAGES];
#pragma unroll
        for (int i = 0; i < IMAGES; i++)
            row[i] = a.in[i] + y * a.in_stride;
        double sum[2][4][sums] = {};
        gf_walk<IMAGES, 32, 4>(row, a.row_bytes, lane,
                               [&](int u, uint64_t, uint32_t, const uint4(&q)[IMAGES]) {
                                   gf_add_vectors(sum[u % 2], q);
                               });
#pragma unroll
        for (int s = 0; s < sums; s++) {
            double x[4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                x[j] = __dadd_rn(sum[0][j][s], sum[1][j][s]); // stride 128
            const double total = gf_warp_tree(x);
            if (lane == 0)
                gf_record_at(a, y)[s] = gf_result_bits(total);
        }
    }
}

#define GF_FEW 8 // lanes of a thread

// Rows of at most 256 pixels, so that no lane has more than one: 2^log_group threads a row, each
// with up to eight lanes that far apart. What a lane without a pixel would add to the tree is +0,
// which changes nothing.
template <int IMAGES>
__global__ void __launch_bounds__(GF_BLOCK)
    gf_sum_few_lanes(gf_row_sums a, uint32_t channels, uint32_t log_group) {
    const int sums = GF_SUMS_OF(IMAGES);
    const uint32_t group = 1u << log_group, rows_a_block = GF_BLOCK >> log_group;
    const uint32_t lane = threadIdx.x & (group - 1);
    for (uint64_t first = static_cast<uint64_t>(blockIdx.x) * rows_a_block; first < a.rows;
         first += static_cast<uint64_t>(gridDim.x) * rows_a_block) {
        const uint64_t y = first + (threadIdx.x >> log_group);
        const uint32_t width = y < a.rows ? static_cast<uint32_t>(a.width) : 0;
        for (uint32_t c = 0; c < a.measured; c++) {
            float x[GF_FEW][IMAGES] = {};
#pragma unroll
            for (uint32_t i = 0; i < GF_FEW; i++)
#pragma unroll
                for (int k = 0; k < IMAGES; k++)
                    if (lane + (i << log_group) < width)
                        x[i][k] = reinterpret_cast<const float *>(
                            a.in[k] + y * a.in_stride)[(lane + (i << log_group)) * channels + c];
            double sum[GF_FEW][sums] = {};
#pragma unroll
            for (int i = 0; i < GF_FEW; i++)
                gf_add(sum[i], x[i]);
#pragma unroll
            for (int s = 0; s < sums; s++) {
#pragma unroll
                for (int stride = GF_FEW / 2; stride > 0; stride /= 2)
#pragma unroll
                    for (int i = 0; i < stride; i++)
                        sum[i][s] = __dadd_rn(sum[i][s], sum[i + stride][s]);
                double total = sum[0][s];
                for (uint32_t distance = group / 2; distance > 0; distance /= 2)
                    total = __dadd_rn(total, __shfl_xor_sync(GF_WARP, total, distance));
                if (lane == 0 && width)
                    gf_record_at(a, y)[c * sums + s] = gf_result_bits(total);
            }
        }
    }
}

#define GF_SHORT_ROW 2048 // pixels

template <int IMAGES>
static inline void gf_launch_lanes(const gf_row_sums &a, uint32_t channels, cudaStream_t stream) {
    if (a.width <= GF_LANES) {
        uint32_t log_group = 0;
        while ((static_cast<uint64_t>(GF_FEW) << log_group) < a.width)
            log_group++;
        const unsigned blocks = gf_blocks(a.rows, GF_BLOCK >> log_group);
        gf_sum_few_lanes<IMAGES><<<blocks, GF_BLOCK, 0, stream>>>(a, channels, log_group);
        return;
    }
    if (channels == 1 && a.width <= GF_SHORT_ROW) {
        const unsigned blocks = gf_blocks(a.rows, GF_BLOCK / 32);
        gf_sum_short_lanes<IMAGES><<<blocks, GF_BLOCK, 0, stream>>>(a);
        return;
    }
    // Where rows are few, each must have more loads under way.
    const bool few = a.rows < 4 * gf_processors();
    gf_for_channels(channels, [&](auto n) {
        const int count = decltype(n)::value, many = count == 1 || IMAGES * count == 4 ? 8 : 4;
        const unsigned blocks = gf_blocks(a.rows, 1);
        if (few)
            gf_sum_lanes<count, IMAGES, count == 1 ? 32 : 16><<<blocks, 64 * count, 0, stream>>>(a);
        else
            gf_sum_lanes<count, IMAGES, many><<<blocks, 64 * count, 0, stream>>>(a);
    });
}

// ---- launch -------------------------------------------------------------------------------------

// The sums of a strip's rows, into their records.
template <int IMAGES>
static inline cudaError_t gf_launch_rows(const gf_plan *plan, const gf_strip *strip,
                                         uint32_t measured, cudaStream_t stream) {
    const gf_row_sums a = gf_row_sums_of(plan, strip, measured);
    const uint32_t channels = plan->in.channels;
    cudaError_t result = cudaSuccess;
    gf_for_type(plan->in.type, [&](auto sample) {
        typedef decltype(sample) Sample;
        if constexpr (std::is_same<Sample, float>::value)
            gf_launch_lanes<IMAGES>(a, channels, stream);
        else
            gf_for_channels(channels, [&](auto n) {
                result = gf_launch_integer_rows<Sample, decltype(n)::value, IMAGES>(a, stream);
            });
    });
    return result == cudaSuccess ? cudaGetLastError() : result;
}

#endif
