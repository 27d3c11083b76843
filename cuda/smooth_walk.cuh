// What the kernels that smooth rows in registers share.
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

#define GF_WALK_THREADS 128
#define GF_WALK_WARPS (GF_WALK_THREADS / 32)
#define GF_WALK_TURNS 4 // that a warp takes at least, where there are enough
#define GF_WALK_WAVES 16

struct gf_walk {
    const unsigned char *in;
    unsigned char *out;
    size_t in_stride, out_stride; // bytes
    uint32_t in_stride32;         // the same
    uint64_t width;               // pixels
    uint32_t rows;
    uint32_t runs;                    // of a row, the last ones perhaps beyond its end
    uint32_t magic, shift;            // to divide by runs
    uint32_t lanes;                   // that share a row of a tile, a run each
    uint32_t rows_a_tile;             // 1, unless a tile holds whole rows
    uint32_t tiles_a_row;             // 1, unless a row needs more
    uint32_t tiles;                   // in all; where there are none, runs
    uint32_t step_rows, step_tiles;   // from a tile to the next one of a warp
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

// The mean around position p of a channel whose first sample row points at.
template <typename T, int C>
static __device__ float gf_mean_at(const gf_walk &a, const T *row, uint64_t p) {
    const uint64_t lo = p < a.radius ? 0 : p - a.radius;
    const uint64_t hi = a.width - 1 - p < a.radius ? a.width - 1 : p + a.radius;
    float sum = enhance(gf_load(row[lo * C]), a.constants.gain);
    for (uint64_t q = lo + 1; q <= hi; q++)
        sum = __fadd_rn(sum, enhance(gf_load(row[q * C]), a.constants.gain));
    return __fdiv_rn(sum, static_cast<float>(hi - lo + 1));
}

// A group of up to 4 pixels from p on, in row y. Few threads come here: kept out of line, it costs
// the others no registers.
template <typename Tin, typename Tout, int C>
static __device__ __noinline__ void gf_smooth_exactly(const gf_walk &a, uint32_t y, uint64_t p) {
    const Tin *row = reinterpret_cast<const Tin *>(a.in + y * a.in_stride);
    Tout *out = reinterpret_cast<Tout *>(a.out + y * a.out_stride);
    const uint64_t end = a.width - p < 4 ? a.width : p + 4;
    const bool smooths = a.constants.smooth;
    for (int c = 0; c < C; c++) {
        if ((C == 2 || C == 4) && c == C - 1) {
            for (uint64_t i = p; i < end; i++)
                out[i * C + c] = gf_carry<Tout, Tin>::run(row[i * C + c]);
            break;
        }
        float before = smooths && p > 0 ? gf_mean_at<Tin, C>(a, row + c, p - 1) : 0.0f;
        float here = gf_mean_at<Tin, C>(a, row + c, p);
        for (uint64_t i = p; i < end; i++) {
            const bool more = i + 1 < a.width;
            const float after =
                more && (smooths || i + 1 < end) ? gf_mean_at<Tin, C>(a, row + c, i + 1) : 0.0f;
            const float t =
                smooths ? smooth(before, here, after, {i > 0, more}, a.constants) : here;
            out[i * C + c] = gf_store<Tout>(t);
            before = here;
            here = after;
        }
    }
}

// ---- what is left over --------------------------------------------------------------------------

// Bits from n on of a run's groups.
static __device__ __forceinline__ unsigned gf_from(int64_t n) {
    return n >= 32 ? 0 : n <= 0 ? ~0u : ~0u << n;
}

// Which groups of a run near an end of its row are done by the definition.
static __device__ __forceinline__ unsigned gf_left_over(const gf_walk &a, uint64_t x, int groups,
                                                        unsigned unknown) {
    const int64_t begin = static_cast<int64_t>(x);
    unknown |= ~gf_from((static_cast<int64_t>(a.reach) - begin + 3) >> 2);
    unknown |= gf_from((static_cast<int64_t>(a.inner_end) - begin) >> 2);
    unknown &= ~gf_from((static_cast<int64_t>(a.width) - begin + 3) >> 2);
    return unknown & ((1u << groups) - 1);
}

// Groups of a warp that wait, by number: a row's after those of the rows before it.
template <int MOST> struct gf_queue {
    uint32_t waiting;
    uint32_t group[32 + MOST]; // most that a turn adds
};

// Does groups that wait, 32 at a time; all of them, or until fewer are left. All lanes call it.
template <typename Work>
static __device__ __noinline__ void gf_drain(const gf_walk &a, uint32_t *group, uint32_t *waiting,
                                             bool all) {
    const uint32_t lane = threadIdx.x % 32, a_row = a.runs * Work::GROUPS;
    uint32_t left = *waiting;
    while (left >= 32 || (all && left > 0)) {
        const uint32_t some = left < 32 ? left : 32;
        left -= some;
        if (lane < some) {
            const uint32_t y = group[left + lane] / a_row;
            Work::exactly(a, y, static_cast<uint64_t>(group[left + lane] - y * a_row) * 4);
        }
    }
    __syncwarp();
    if (lane == 0)
        *waiting = left;
    __syncwarp();
}

// Work, to both kernels, has Tin, Tout, C, GROUPS, HALO, RUNS (at once), BLOCKS (a processor),
// Args, and
//   static __device__ unsigned run(const gf_walk &, const Args &, const uint32_t *raw,
//                                  uint32_t *out)
// which makes of the words of HALO + GROUPS + HALO groups those of GROUPS groups, as if no end of
// the row were near, and returns a bit for each group that it does not know; and
//   static __device__ void exactly(const gf_walk &, uint32_t y, uint64_t p)
// which does the group of up to 4 pixels from p on, in row y, by the definition.
// Sets what both kernels ask of an image of so many rows' width; false if it is too wide for them.
template <typename Work> static bool gf_walk_fits(gf_walk *walk) {
    const size_t pixel = Work::C * sizeof(typename Work::Tout);
    const uint64_t most = UINT64_C(1) << 29;
    const uint64_t runs = (walk->width + 4 * Work::GROUPS - 1) / (4 * Work::GROUPS);
    if (runs * Work::GROUPS >= most || walk->in_stride > UINT32_MAX / 4)
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

// Blocks of a kernel that are at home on the device at once.
template <typename Kernel> static uint64_t gf_walk_wave(Kernel kernel) {
    int device = 0, processors = 1, resident = 1;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, GF_WALK_THREADS, 0);
    return static_cast<uint64_t>(processors) * (resident > 0 ? resident : 1);
}

// Blocks for so many turns of a warp: enough turns a warp to fill its queue, enough blocks that
// processors that are done first find another one.
static inline uint64_t gf_walk_blocks(uint64_t turns, uint64_t wave) {
    const uint64_t full = (turns + GF_WALK_WARPS - 1) / GF_WALK_WARPS;
    uint64_t waves = full / (wave * GF_WALK_TURNS);
    waves = waves < 1 ? 1 : waves > GF_WALK_WAVES ? GF_WALK_WAVES : waves;
    return full < wave * waves ? full : wave * waves;
}

#endif
