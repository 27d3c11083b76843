// compare on CUDA: one record of differences per row, and optionally an image that shows them.
//
//   kernel                  used for
//   compare_start_records   rows in pieces: initialize the records that the pieces update
//   compare_rows            every image: compare rows, write records
//   compare_end_records     rows in pieces: look up the first differing values
//   compare_draw_rows       the output image, if requested; reads the rows again, from the cache
#include "cuda/vectors.cuh"

#include "compare/compare.h"
#include "samples.h"

// images: two lists of inputs, and the output.
struct compare_args : gf_row_args<2, 3> {
    unsigned char *out; // image row of the first row
    size_t out_stride;
    uint64_t limit;                // of gf_compare_plan
    uint32_t above_add, above_low; // integers: see compare_launch
};

GF_DEVICE gf_compare_record compare_equal() {
    return {0, UINT64_MAX, 0, 0, 0};
}

// Return the distance of two samples with different bits, as stored in a record.
template <typename T> GF_DEVICE gf_u64 compare_distance(T x, T y) {
    if constexpr (sizeof(T) < sizeof(float)) {
        return x > y ? x - y : y - x;
    } else {
        if (x != x || y != y)
            return x != x && y != y ? 0 : 0x7ff0000000000000ull;
        return static_cast<gf_u64>(
            __double_as_longlong(fabs(__dsub_rn(static_cast<double>(x), static_cast<double>(y)))));
    }
}

// ---- records ------------------------------------------------------------------------------------

// The highest bit of each integer sample of a word.
template <typename T>
static constexpr uint32_t compare_top_bits = sizeof(T) == 1 ? 0x80808080u : 0x80008000u;

// Differences that one thread found. differing: the samples that count (gf_compare_plan).
template <typename T> struct compare_counts {
    uint32_t differing = 0;
    // f32: the maximum distance. u8, u16: the maximum per sample of a word.
    typename std::conditional<sizeof(T) == 4, gf_u64, uint32_t>::type largest = 0;

    // Compare one word of each image.
    __device__ __forceinline__ void add(const compare_args &args, uint32_t x, uint32_t y) {
        if constexpr (sizeof(T) < sizeof(float)) {
            const uint32_t distance = sizeof(T) == 1 ? __vabsdiffu4(x, y) : __vabsdiffu2(x, y);
            const uint32_t top = compare_top_bits<T>, sum = (distance & ~top) + args.above_add;
            differing += __popc(((sum & distance) | (args.above_low & (sum | distance))) & top);
            largest = sizeof(T) == 1 ? __vmaxu4(largest, distance) : __vmaxu2(largest, distance);
        } else {
            const gf_u64 distance = compare_distance(__uint_as_float(x), __uint_as_float(y));
            differing += x != y && distance >= args.limit;
            largest = x != y && distance > largest ? distance : largest;
        }
    }

    __device__ __forceinline__ gf_u64 max() const {
        if constexpr (sizeof(T) == 4) {
            return largest;
        } else {
            const int bits = 8 * sizeof(T);
            uint32_t max = 0;
            for (int i = 0; i < 32; i += bits)
                max = gf_maximum()(max, largest >> i & ((1u << bits) - 1));
            return max;
        }
    }
};

template <typename T> GF_DEVICE uint32_t compare_bits_at(const unsigned char *p) {
    return gf_bits(*reinterpret_cast<const T *>(p));
}

// Return the index of the first sample that counts in two vectors with such a sample.
template <typename T>
GF_DEVICE uint32_t compare_first(const compare_args &args, const unsigned char *a,
                                 const unsigned char *b) {
    const T *const x = reinterpret_cast<const T *>(a), *const y = reinterpret_cast<const T *>(b);
    uint32_t i = 0;
    while (gf_bits(x[i]) == gf_bits(y[i]) || compare_distance(x[i], y[i]) < args.limit)
        i++;
    return i;
}

// Reduce the values of a group of threads to its first one. All threads of a block must call it.
template <int GROUP, typename Operation>
GF_DEVICE gf_u64 compare_combine(gf_u64 x, Operation operation) {
    if (GROUP < GF_BLOCK)
        return gf_reduce_group<GROUP>(x, operation);
    __shared__ gf_u64 warps[GF_BLOCK / 32];
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

// Compare rows of two images.
// Grid: one group of GROUP threads per unit, up to 2^30 blocks; blocks then loop. Block: 256
// threads. A unit is a row, or with GROUP = 256 a piece of a row. Reads each sample once, 16 bytes
// per load, four loads per image in flight. Equal vectors need no further work. A row without
// differences needs no reduction. Pieces update an initialized record by atomics;
// compare_end_records then stores the values. Shared memory: at most 192 B. Registers: 64 to 73
// (sm_90), 3 or 4 resident blocks.
template <typename T, int GROUP>
__global__ void __launch_bounds__(GF_BLOCK)
    compare_rows(const __grid_constant__ compare_args args) {
    const uint32_t lane = threadIdx.x % GROUP, groups = GF_BLOCK / GROUP;
    gf_wait_for_stream();
    for (uint64_t at = static_cast<uint64_t>(blockIdx.x) * groups; at < args.partition.units;
         at += static_cast<uint64_t>(gridDim.x) * groups) {
        const gf_unit unit =
            gf_unit_at<GROUP == GF_BLOCK>(args.partition, args.row_bytes, at + threadIdx.x / GROUP);
        const unsigned char *row[2];
        gf_row_inputs(args, unit.y, unit.begin, row);
        compare_counts<T> counts;
        gf_u64 first = UINT64_MAX; // index of a vector in the unit
        gf_visit_vectors<2, GROUP, 4>(
            row, unit.bytes, lane, [&](int, uint64_t v, uint32_t, const uint4(&q)[2]) {
                const uint4 x = q[0], y = q[1];
                if (((x.x ^ y.x) | (x.y ^ y.y) | (x.z ^ y.z) | (x.w ^ y.w)) == 0)
                    return;
                const uint32_t before = counts.differing;
                counts.add(args, x.x, y.x);
                counts.add(args, x.y, y.y);
                counts.add(args, x.z, y.z);
                counts.add(args, x.w, y.w);
                if (counts.differing != before)
                    first = v < first ? v : first;
            });
        const bool writes = lane == 0 && unit.bytes;
        gf_compare_record *record = gf_record_at<gf_compare_record>(args, unit.y);
        const bool found_any = counts.differing != 0 || counts.largest != 0;
        const bool any =
            GROUP < GF_BLOCK ? __any_sync(GF_WARP, found_any) : __syncthreads_or(found_any);
        if (!any) {
            if (writes && args.partition.pieces == 1)
                *record = compare_equal();
            continue;
        }
        gf_compare_record found = compare_equal();
        found.differing = compare_combine<GROUP>(counts.differing, gf_plus());
        found.largest = compare_combine<GROUP>(counts.max(), gf_maximum());
        first = compare_combine<GROUP>(first, gf_minimum());
        if (!writes)
            continue;
        if (found.differing) {
            const unsigned char *a = row[0] + 16 * first, *b = row[1] + 16 * first;
            const uint32_t i = compare_first<T>(args, a, b);
            found.first = (unit.begin + 16 * first) / sizeof(T) + i;
            found.a = compare_bits_at<T>(a + i * sizeof(T));
            found.b = compare_bits_at<T>(b + i * sizeof(T));
        }
        if (args.partition.pieces == 1) {
            *record = found;
        } else {
            atomicAdd(reinterpret_cast<gf_u64 *>(&record->differing), gf_u64{found.differing});
            atomicMin(reinterpret_cast<gf_u64 *>(&record->first), gf_u64{found.first});
            atomicMax(reinterpret_cast<gf_u64 *>(&record->largest), gf_u64{found.largest});
        }
    }
}

// Initialize the records of rows in pieces. One thread per row; 10 registers (sm_90).
__global__ void __launch_bounds__(GF_BLOCK)
    compare_start_records(const __grid_constant__ compare_args args) {
    gf_wait_for_stream();
    const uint64_t y = static_cast<uint64_t>(blockIdx.x) * GF_BLOCK + threadIdx.x;
    if (y < args.rows)
        *gf_record_at<gf_compare_record>(args, y) = compare_equal();
}

// Look up the first differing values of rows in pieces. One thread per row; 16 registers (sm_90).
template <typename T>
__global__ void __launch_bounds__(GF_BLOCK)
    compare_end_records(const __grid_constant__ compare_args args) {
    gf_wait_for_stream();
    const uint64_t y = static_cast<uint64_t>(blockIdx.x) * GF_BLOCK + threadIdx.x;
    if (y >= args.rows || gf_record_at<gf_compare_record>(args, y)->differing == 0)
        return;
    gf_compare_record *record = gf_record_at<gf_compare_record>(args, y);
    const unsigned char *first[2];
    gf_row_inputs(args, y, record->first * sizeof(T), first);
    record->a = compare_bits_at<T>(first[0]);
    record->b = compare_bits_at<T>(first[1]);
}

// ---- picture ------------------------------------------------------------------------------------

// Four pixels of an image. The first n are valid, the others are zero.
template <typename T, int CHANNELS> struct compare_pixels {
    static const int samples = 4 * CHANNELS, words = CHANNELS * sizeof(T);
    uint32_t w[words];

    __device__ __forceinline__ void load(const unsigned char *p, int n) {
        if (n < 4) {
#pragma unroll
            for (int i = 0; i < words; i++)
                w[i] = 0;
#pragma unroll
            for (int i = 0; i < samples; i++)
                if (i < n * CHANNELS)
                    w[i * sizeof(T) / 4] |= gf_bits(reinterpret_cast<const T *>(p)[i])
                                            << 8 * (i * sizeof(T) % 4);
            return;
        }
        gf_load_words<4 * words>(w, p);
    }

    __device__ __forceinline__ T at(int i) const {
        const uint32_t bits = w[i * sizeof(T) / 4] >> 8 * (i * sizeof(T) % 4);
        if constexpr (sizeof(T) == sizeof(float))
            return __uint_as_float(bits);
        else
            return static_cast<T>(bits);
    }
};

// Return the output pixel: red, green and blue, red in the lowest byte.
template <typename T, int CHANNELS>
GF_DEVICE uint32_t compare_draw_pixel(const compare_pixels<T, CHANNELS> &a,
                                      const compare_pixels<T, CHANNELS> &b, int pixel) {
    T p[CHANNELS];
    bool differs = false;
    gf_u64 max = 0;
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) {
        const T q = b.at(pixel * CHANNELS + c);
        p[c] = a.at(pixel * CHANNELS + c);
        if (gf_bits(p[c]) != gf_bits(q)) {
            const gf_u64 distance = compare_distance(p[c], q);
            max = distance > max ? distance : max;
            differs = true;
        }
    }
    // A distance, scaled to the range 0..669; or a quarter of the grey value of the pixel (its only
    // color channel or its luma), scaled to 255.
    if constexpr (sizeof(T) < sizeof(float)) {
        if (differs)
            return gf_compare_colour(96 + static_cast<uint32_t>(max) * 669 /
                                              (sizeof(T) == 1 ? 255 : 65535));
        const uint32_t grey =
            CHANNELS < 3 ? p[0] : gf_luma_integer(p[0], p[1], p[CHANNELS / 3 * 2]);
        return (grey >> (sizeof(T) == 1 ? 2 : 10)) * 0x010101u;
    } else {
        const double d = __longlong_as_double(static_cast<long long>(max));
        if (differs)
            return gf_compare_colour(96 +
                                     static_cast<uint32_t>(__dmul_rn(d < 1.0 ? d : 1.0, 669.0)));
        float grey = CHANNELS < 3 ? p[0] : gf_luma_real(p[0], p[1], p[CHANNELS / 3 * 2]);
        grey = grey > 0.0f ? grey : 0.0f; // also for NaN
        grey = grey < 1.0f ? grey : 1.0f;
        return (static_cast<uint32_t>(__fmul_rn(grey, 255.0f)) >> 2) * 0x010101u;
    }
}

static constexpr int compare_segment = 128; // pixels of a row that a warp draws at a time

// Draw the output image.
// Grid: one warp per UNROLL segments of a row, up to 2^30 blocks; blocks then loop. Block: 256
// threads. A segment has 128 pixels, four per thread. The loads of UNROLL segments are in flight
// together. A full segment of 384 bytes is transposed in shared memory (3 KB per block) and written
// 16 bytes at a time; a partial segment is written byte by byte. Reads each sample once, from the
// cache: compare_rows has just read it; writes 3 bytes per pixel. Registers: 32 to 62 (sm_90).
template <typename T, int CHANNELS, int UNROLL>
__global__ void __launch_bounds__(GF_BLOCK)
    compare_draw_rows(const __grid_constant__ compare_args d) {
    __shared__ uint4 staged[GF_BLOCK / 32][compare_segment * 3 / 16];
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    uint32_t *stage = reinterpret_cast<uint32_t *>(staged[warp]);
    const uint64_t segments = (d.width + UNROLL * compare_segment - 1) / (UNROLL * compare_segment);
    gf_wait_for_stream();
    for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * (GF_BLOCK / 32) + warp;
         i < segments * d.rows; i += static_cast<uint64_t>(gridDim.x) * (GF_BLOCK / 32)) {
        const uint64_t y = i / segments, begin = i % segments * (UNROLL * compare_segment);
        const unsigned char *from[2];
        gf_row_inputs(d, y, 0, from);
        compare_pixels<T, CHANNELS> a[UNROLL], b[UNROLL];
        int n[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; k++) {
            const uint64_t x = begin + k * compare_segment + 4 * lane;
            const size_t at = x * CHANNELS * sizeof(T);
            n[k] = x + 4 <= d.width ? 4 : x < d.width ? static_cast<int>(d.width - x) : 0;
            a[k].load(from[0] + at, n[k]);
            b[k].load(from[1] + at, n[k]);
        }
        const gf_image_row row = gf_find_row(d.images, y);
        unsigned char *const to = d.out + d.images.at[2][row.image] + row.y * d.out_stride;
#pragma unroll
        for (int k = 0; k < UNROLL; k++) {
            const uint64_t left = begin + k * compare_segment;
            uint32_t rgb[4];
#pragma unroll
            for (int pixel = 0; pixel < 4; pixel++)
                rgb[pixel] = compare_draw_pixel(a[k], b[k], pixel);
            unsigned char *out = to + 3 * left;
            if (left + compare_segment <= d.width) {
                stage[3 * lane] = rgb[0] | rgb[1] << 24;
                stage[3 * lane + 1] = rgb[1] >> 8 | rgb[2] << 16;
                stage[3 * lane + 2] = rgb[2] >> 16 | rgb[3] << 8;
                __syncwarp();
                if (lane < compare_segment * 3 / 16)
                    __stcs(reinterpret_cast<uint4 *>(out) + lane, staged[warp][lane]);
                __syncwarp();
                continue;
            }
#pragma unroll
            for (int byte = 0; byte < 12; byte++)
                if (byte < 3 * n[k])
                    out[12 * lane + byte] =
                        static_cast<unsigned char>(rgb[byte / 3] >> 8 * (byte % 3));
        }
    }
}

static void compare_launch(const gf_plan *plan, const gf_strip *strip, void *, gf_queue *queue) {
    compare_args args = {};
    gf_set_row_args(&args, plan, strip);
    args.out = strip->out.data;
    args.out_stride = strip->out.stride;
    args.limit = reinterpret_cast<const gf_compare_plan *>(plan)->limit;
    const bool split = args.partition.pieces > 1;
    const unsigned blocks = gf_blocks(args.rows, GF_BLOCK);
    gf_for_type(plan->in.type, [&](auto sample) {
        typedef decltype(sample) Sample;
        // The upper bit of a distance, `high`, is split off: `low` exceeds r if low + half - 1 - r
        // carries. The distance exceeds r if high or the carry is set, and half + r if both are.
        const uint32_t half = sizeof(Sample) == 1 ? 0x80 : 0x8000;
        const uint32_t tolerance = static_cast<uint32_t>(args.limit - 1);
        args.above_add = (half - 1 - tolerance % half) * (compare_top_bits<Sample> / half);
        args.above_low = tolerance < half ? UINT32_MAX : 0;
        if (split)
            gf_launch_kernel(compare_start_records, blocks, GF_BLOCK, 0, queue, args);
        gf_for_group(args.partition.group, [&](auto group) {
            gf_launch_kernel(compare_rows<Sample, decltype(group)::value>,
                             gf_partition_grid(args.partition), GF_BLOCK, 0, queue, args);
        });
        if (split)
            gf_launch_kernel(compare_end_records<Sample>, blocks, GF_BLOCK, 0, queue, args);
        if (plan->out.width == 0)
            return;
        gf_channels{plan->in.channels}([&](auto n) {
            const int channels = decltype(n)::value, bytes = channels * sizeof(Sample);
            const int unroll = bytes <= 4 ? 4 : bytes <= 8 ? 2 : 1;
            const uint64_t segments = gf_divide_up(args.width, unroll * compare_segment);
            gf_launch_kernel(compare_draw_rows<Sample, channels, unroll>,
                             gf_blocks(segments * args.rows, GF_BLOCK / 32), GF_BLOCK, 0, queue,
                             args);
        });
    });
}

extern "C" const gf_filter_cuda gf_compare_cuda = {nullptr, compare_launch, nullptr, true};
