// What the kernels that smooth rows share, each as far as it needs it: the walk, groups of pixels
// by the definition, and, for smooth_direct.cuh and smooth_staged.cuh, the queue:
//
// A lane takes a run of GROUPS groups of 4 neighbouring pixels at a time. Groups whose window
// reaches over an end of the row, and those of which the fast arithmetic says that it does not
// know, wait in a queue of the warp's until 32 of them have gathered; then each lane does one of
// them straight from the definition. So every width is exact, and rare work costs little.
//
// Rows begin on 64-byte boundaries; strides are multiples of 64.
#ifndef GF_SMOOTH_WALK_CUH
#define GF_SMOOTH_WALK_CUH

#include <string.h>

#include "device.cuh"
#include "smooth_stages.cuh"

#include "smooth/smooth.h"

struct gf_walk {
    const unsigned char *in;
    unsigned char *out;
    size_t in_stride, out_stride; // bytes
    uint32_t in_stride32;         // the same
    uint64_t width;               // pixels
    uint32_t rows;
    uint32_t runs;                    // of a row, the last ones perhaps beyond its end
    uint32_t magic, shift;            // to divide by runs, tiles_a_row or the stride
    uint32_t lanes;                   // that share a row of a tile, a run each
    uint32_t rows_a_tile;             // of each the same part; 0: a tile is a part of one row
    uint32_t tiles_a_row;             // 1, unless a row needs more
    uint32_t tiles;                   // in all; where there are none, runs
    uint64_t inner_end;               // pixels from here on are done by the definition
    uint32_t next_runs;               // runs with a halo behind them
    uint32_t inner_first, inner_runs; // so many runs from that one on are far from the row's ends
    uint32_t in_units, out_units;     // 16 bytes each: of a stride of the input, and those that an
                                      // output row fills
    uint32_t radius, reach;           // samples on each side: of the mean, and of the whole chain
    float inverse[2 * GF_SMOOTH_INTEGER_REACH]; // [n]: 1 / n
    gf_smooth_constants constants;
};

// How rows are cut into tiles is left to the launch.
static inline gf_walk gf_walk_of(const gf_smooth_plan *plan, const gf_rows *in,
                                 const gf_rows *out) {
    gf_walk walk = {};
    walk.in = gf_row(in, out->y0);
    walk.out = out->data;
    walk.in_stride = in->stride;
    walk.out_stride = out->stride;
    walk.width = plan->head.in.width;
    walk.radius = plan->radius;
    walk.reach = plan->radius + (plan->smooth ? 1 : 0);
    for (int n = 1; n < 2 * GF_SMOOTH_INTEGER_REACH; n++)
        walk.inverse[n] = 1.0f / static_cast<float>(n);
    walk.constants = {plan->gain, plan->weight, plan->inner_factor, plan->end_factor, plan->smooth};
    return walk;
}

// ---- samples ------------------------------------------------------------------------------------

// The largest vector of words that a block of so many bytes can be moved in.
template <int BYTES> struct gf_vector {
    typedef typename gf_vector<BYTES % 16 == 0 ? 16 : BYTES % 8 == 0 ? 8 : 4>::type type;
};

template <> struct gf_vector<16> { typedef uint4 type; };

template <> struct gf_vector<8> { typedef uint2 type; };

template <> struct gf_vector<4> { typedef uint32_t type; };

template <int BYTES>
static __device__ __forceinline__ void gf_load_words(uint32_t *words, const unsigned char *from) {
    typedef typename gf_vector<BYTES>::type Vector;
#pragma unroll
    for (int i = 0; i < BYTES; i += static_cast<int>(sizeof(Vector))) {
        const Vector v = *reinterpret_cast<const Vector *>(from + i);
        memcpy(words + i / 4, &v, sizeof v);
    }
}

template <int BYTES>
static __device__ __forceinline__ void gf_store_words(unsigned char *to, const uint32_t *words) {
    typedef typename gf_vector<BYTES>::type Vector;
#pragma unroll
    for (int i = 0; i < BYTES; i += static_cast<int>(sizeof(Vector))) {
        Vector v;
        memcpy(&v, words + i / 4, sizeof v);
        *reinterpret_cast<Vector *>(to + i) = v;
    }
}

// ---- by the definition --------------------------------------------------------------------------

// Channel c of a group of up to 4 pixels from p on, in row y: what the window holds is loaded at
// once, and added up as far as it is there. Few threads come here: kept out of line, it costs the
// others no registers.
template <typename Tin, typename Tout, int C, int RADIUS>
static __device__ __noinline__ void gf_smooth_exactly(const gf_walk &a, uint32_t y, uint64_t p,
                                                      int c) {
    const int around = RADIUS + 1;
    // Pixels of the row before p, and from p on, as far as they matter.
    const int left = p < 64 ? static_cast<int>(p) : 64;
    const int right = a.width - p < 64 ? static_cast<int>(a.width - p) : 64;
    const Tin *in = reinterpret_cast<const Tin *>(a.in + y * a.in_stride) + p * C;
    Tout *out = reinterpret_cast<Tout *>(a.out + y * a.out_stride) + p * C;
    float loaded[4 + 2 * around];
#pragma unroll
    for (int i = 0; i < 4 + 2 * around; i++) {
        const int d = i - around;
        loaded[i] = 0.0f;
        if (d >= -left && d < right)
            loaded[i] = enhance(gf_load(in[d * C + c]), a.constants.gain);
    }
    float mean[6];
#pragma unroll
    for (int j = 0; j < 6; j++) {
        float sum = 0.0f;
        int n = 0;
#pragma unroll
        for (int k = -RADIUS; k <= RADIUS; k++) {
            const int d = j - 1 + k;
            if (d >= -left && d < right) {
                // The first is taken as it is: 0 + -0 would not be -0.
                sum = n == 0 ? loaded[around + d] : __fadd_rn(sum, loaded[around + d]);
                n++;
            }
        }
        mean[j] = __fdiv_rn(sum, static_cast<float>(n > 0 ? n : 1));
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float t = mean[i + 1];
        if (a.constants.smooth)
            t = smooth(mean[i], t, mean[i + 2], {i > -left, i + 1 < right}, a.constants);
        if (i < right)
            out[i * C + c] = gf_store<Tout>(t);
    }
    // The first channel's lane carries the alpha.
    if ((C == 2 || C == 4) && c == 0)
        for (int i = 0; i < 4 && i < right; i++)
            out[i * C + C - 1] = gf_carry<Tout, Tin>::run(in[i * C + C - 1]);
}

// ---- what is left over --------------------------------------------------------------------------

// Bits from n on of a run's groups.
static __device__ __forceinline__ unsigned gf_from(int64_t n) {
    return n >= 32 ? 0 : n <= 0 ? ~0u : ~0u << n;
}

// A bit for each filtered channel of the groups that have one.
template <typename Work> static __device__ __forceinline__ unsigned gf_channels(unsigned groups) {
    unsigned bits = 0;
#pragma unroll
    for (int g = 0; g < Work::GROUPS; g++)
        bits |= groups >> g & 1 ? ((1u << Work::filtered) - 1) << g * Work::filtered : 0;
    return bits;
}

// What is unknown of a run near an end of its row: groups there are done by the definition, and
// what lies beyond the row is not.
template <typename Work>
static __device__ __forceinline__ unsigned gf_left_over(const gf_walk &a, uint32_t run,
                                                        unsigned unknown) {
    const int64_t begin = static_cast<int64_t>(run) * (4 * Work::GROUPS);
    const unsigned there = ~gf_from((static_cast<int64_t>(a.width) - begin + 3) >> 2);
    const unsigned rims = ~gf_from((static_cast<int64_t>(a.reach) - begin + 3) >> 2) |
                          gf_from((static_cast<int64_t>(a.inner_end) - begin) >> 2);
    return (unknown | gf_channels<Work>(rims)) & gf_channels<Work>(there);
}

// Channels of groups that wait, by number: a row's after those of the rows before it, a group's
// side by side.
template <int MOST> struct gf_queue {
    uint32_t waiting;
    uint32_t group[32 + MOST]; // most that a turn adds
};

template <typename Work>
static __device__ __forceinline__ void gf_do_group(const gf_walk &a, uint32_t number) {
    const uint32_t a_row = a.runs * Work::GROUPS, group = number / Work::filtered;
    const uint32_t y = group / a_row;
    Work::exactly(a, y, static_cast<uint64_t>(group - y * a_row) * 4,
                  static_cast<int>(number % Work::filtered));
}

// Does groups that wait, 32 at a time; all of them, or until fewer are left. All lanes call it.
template <typename Work>
static __device__ __noinline__ void gf_drain(const gf_walk &a, uint32_t *group, uint32_t *waiting,
                                             bool all) {
    const uint32_t lane = threadIdx.x % 32;
    uint32_t left = *waiting;
    while (left >= 32 || (all && left > 0)) {
        const uint32_t some = left < 32 ? left : 32;
        left -= some;
        if (lane < some)
            gf_do_group<Work>(a, group[left + lane]);
    }
    __syncwarp();
    if (lane == 0)
        *waiting = left;
    __syncwarp();
}

// The number of a warp among those of all blocks, and how many these are: a warp takes every so
// many turns.
static __device__ __forceinline__ uint32_t gf_first_turn() {
    return (blockIdx.x * blockDim.x + threadIdx.x) / 32;
}

static __device__ __forceinline__ uint32_t gf_turn_step() {
    return gridDim.x * (blockDim.x / 32);
}

// Work, to the kernels with a queue, has Tin, Tout, C, filtered (channels), GROUPS, HALO, TURNS (of
// a warp, about), WARPS (a processor), Args, for smooth_direct.cuh RUNS (at once), and
//   static __device__ unsigned run(const gf_walk &, const Args &, const uint32_t *raw,
//                                  uint32_t *out)
// which makes of the words of HALO + GROUPS + HALO groups those of GROUPS groups, as if no end of
// the row were near, and returns a bit for each channel of a group that it does not know; and
//   static __device__ void exactly(const gf_walk &, uint32_t y, uint64_t p, int c)
// which does channel c of the group of up to 4 pixels from p on, in row y, by the definition.

// Sets what kernels ask of an image of so many rows' width; false if it is too wide for them.
template <typename Work> static bool gf_walk_fits(gf_walk *walk) {
    const size_t pixel = Work::C * sizeof(typename Work::Tout);
    const uint64_t most = UINT64_C(1) << 29;
    const uint64_t runs = (walk->width + 4 * Work::GROUPS - 1) / (4 * Work::GROUPS);
    if (runs * Work::GROUPS * Work::filtered >= most || walk->in_stride > UINT32_MAX / 4)
        return false;
    walk->in_units = static_cast<uint32_t>(walk->in_stride / 16);
    walk->out_units = static_cast<uint32_t>(walk->width * pixel / 16);
    const uint64_t inner = walk->width < walk->reach ? 0 : walk->width - walk->reach;
    const uint64_t whole = static_cast<uint64_t>(walk->out_units) * 16 / pixel;
    walk->inner_end = inner < whole ? inner : whole;
    const uint64_t first = (walk->reach + 4 * Work::GROUPS - 1) / (4 * Work::GROUPS);
    const uint64_t end = walk->inner_end / (4 * Work::GROUPS);
    walk->inner_first = static_cast<uint32_t>(first);
    walk->inner_runs = end > first ? static_cast<uint32_t>(end - first) : 0;
    walk->runs = static_cast<uint32_t>(runs);
    return true;
}

// Of n below 2^31: n / divisor = n * magic >> 32 + shift. Not for 1, whose number does not fit.
static inline void gf_walk_divide_by(gf_walk *walk, uint64_t divisor) {
    walk->shift = 0;
    while (UINT64_C(2) << walk->shift < divisor)
        walk->shift++;
    walk->magic = static_cast<uint32_t>(
        (UINT64_C(1) << (32 + walk->shift)) / (divisor > 1 ? divisor : 2) + 1);
}

// Blocks of a kernel that are at home on the device at once.
template <typename Kernel> static uint64_t gf_walk_wave(Kernel kernel, int threads) {
    int device = 0, processors = 1, resident = 1;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads, 0);
    return static_cast<uint64_t>(processors) * (resident > 0 ? resident : 1);
}

// Blocks for so many turns. Blocks that end make room for others on whichever processor is ahead:
// so a warp takes few turns, but enough of them to fill its queue.
template <typename Work> static unsigned gf_walk_blocks(uint64_t turns, uint64_t wave, int warps) {
    const uint64_t full = (turns + warps - 1) / warps;
    const uint64_t enough = full / Work::TURNS;
    return static_cast<unsigned>(enough > wave ? enough : full < wave ? full : wave);
}

#endif
