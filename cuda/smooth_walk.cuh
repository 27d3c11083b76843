// How warps go over the rows of an image to smooth them in registers.
//
// Thread mapping: a lane takes GROUPS groups of 4 neighbouring pixels, a warp 32 lanes side by
// side, and then the next free 32; rows follow each other without a gap, so that narrow rows keep
// all lanes busy. A lane loads its own groups and HALO groups on either side, which its neighbours
// load too: the L1 cache serves them, from memory each sample is read once. It writes its own.
//
// Groups whose window reaches over an end of the row, and those of which the fast arithmetic says
// that it does not know, wait in a queue of the warp's until 32 of them have gathered; then each
// lane does one of them straight from the definition. So every width is exact, and rare work costs
// little.
//
// Rows begin on 64-byte boundaries; strides are multiples of 64.
#ifndef GF_SMOOTH_WALK_CUH
#define GF_SMOOTH_WALK_CUH

#include <string.h>

#include "device.cuh"
#include "smooth_stages.cuh"

#include "smooth/smooth.h"

#define GF_WALK_THREADS 256
#define GF_WALK_WARPS (GF_WALK_THREADS / 32)

struct gf_walk {
    const unsigned char *in;
    unsigned char *out;
    size_t in_stride, out_stride; // bytes
    uint64_t width;               // pixels
    uint32_t runs;                // a row; a run is what a lane takes in one turn
    uint32_t total;               // runs of all rows, below 2^31 / GROUPS
    uint32_t magic, shift;        // to divide by runs
    uint32_t radius, reach;       // samples on each side: of the mean, and of the whole chain
    gf_smooth_constants constants;
};

// total and what depends on it is left to the launch.
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

// ---- the walk -----------------------------------------------------------------------------------

// What the lanes of a block share: the queues, and room to turn what lanes hold into what lies
// side by side in memory, where a lane's part is more than one vector.
template <typename Work> struct gf_walk_shared {
    static const int out_bytes = 4 * Work::C * Work::GROUPS * sizeof(typename Work::Tout);
    static const bool staged = out_bytes > 16 && out_bytes % 16 == 0;
    uint32_t queue[GF_WALK_WARPS][32 + 32 * Work::GROUPS];
    uint4 stage[GF_WALK_WARPS][staged ? 2 * out_bytes : 1];
};

// Where 16-byte unit u of a warp's stage lies: neither the lanes' own units nor neighbouring ones
// meet in a bank.
template <int UNITS> static __device__ __forceinline__ int gf_stage_slot(int u) {
    return UNITS == 2 ? u ^ (u >> 3 & 1) : UNITS == 4 ? u ^ (u >> 3 & 3) : u;
}

// Writes what the lanes of a warp hold, which lies side by side from `to` on.
template <int BYTES>
static __device__ __forceinline__ void gf_store_warp(unsigned char *to, const uint32_t *words,
                                                     uint4 *stage) {
    const int units = BYTES / 16, lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < units; k++)
        stage[gf_stage_slot<units>(lane * units + k)] =
            make_uint4(words[4 * k], words[4 * k + 1], words[4 * k + 2], words[4 * k + 3]);
    __syncwarp();
#pragma unroll
    for (int k = 0; k < units; k++)
        reinterpret_cast<uint4 *>(to)[k * 32 + lane] = stage[gf_stage_slot<units>(k * 32 + lane)];
    __syncwarp();
}

// Work has Tin, Tout, C, GROUPS, HALO, BLOCKS (a processor), Args, and
//   static __device__ unsigned run(const gf_walk &, const Args &, const uint32_t *raw, uint32_t
//   *out)
// which makes of the words of HALO + GROUPS + HALO groups those of GROUPS groups, as if no end of
// the row were near, and returns a bit for each group that it does not know.
template <typename Work>
__global__ void __launch_bounds__(GF_WALK_THREADS, Work::BLOCKS)
    smooth_walk(const __grid_constant__ gf_walk a,
                const __grid_constant__ typename Work::Args args) {
    typedef typename Work::Tin Tin;
    typedef typename Work::Tout Tout;
    const int C = Work::C, GROUPS = Work::GROUPS, HALO = Work::HALO, PIXELS = 4 * GROUPS;
    const int in_group = 4 * C * sizeof(Tin), out_group = 4 * C * sizeof(Tout);
    __shared__ gf_walk_shared<Work> shared;
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t *queue = shared.queue[warp];
    unsigned waiting = 0;

    const uint32_t step = gridDim.x * GF_WALK_THREADS;
    for (uint32_t first = blockIdx.x * GF_WALK_THREADS + warp * 32; first < a.total;
         first += step) {
        const bool mine = first + lane < a.total;
        const uint32_t run = mine ? first + lane : 0;
        const uint32_t y = __umulhi(run, a.magic) >> a.shift;
        const uint64_t x = static_cast<uint64_t>(run - y * a.runs) * PIXELS;
        const unsigned char *in = a.in + y * a.in_stride;
        unsigned char *out = a.out + y * a.out_stride + x * (out_group / 4);
        // Near an end of the row?
        const bool rim = !mine || x < 4 * HALO || x + PIXELS + 4 * HALO > a.width;
        const bool any_rim = __any_sync(0xffffffffu, rim);

        uint32_t raw[(GROUPS + 2 * HALO) * in_group / 4];
        if (!any_rim) {
            const unsigned char *from = in + x * (in_group / 4);
            gf_load_words<GROUPS * in_group>(raw + HALO * in_group / 4, from);
            gf_load_words<HALO * in_group>(raw, from - HALO * in_group);
            gf_load_words<HALO * in_group>(raw + (HALO + GROUPS) * in_group / 4,
                                           from + GROUPS * in_group);
        } else {
            // What lies outside the row is not used; it must only be memory that is there.
            const int64_t last = static_cast<int64_t>(a.in_stride) - in_group;
#pragma unroll
            for (int g = 0; g < GROUPS + 2 * HALO; g++) {
                int64_t at = static_cast<int64_t>(x) * (in_group / 4) + (g - HALO) * in_group;
                at = at < 0 ? 0 : at < last ? at : last;
                gf_load_words<in_group>(raw + g * in_group / 4, in + at);
            }
        }

        uint32_t result[GROUPS * out_group / 4];
        unsigned unknown = Work::run(a, args, raw, result);

        if (!any_rim) {
            if constexpr (gf_walk_shared<Work>::staged) {
                // With no end of a row near, the lanes follow each other in one row.
                gf_store_warp<GROUPS * out_group>(out - lane * (GROUPS * out_group), result,
                                                  shared.stage[warp]);
            } else {
                gf_store_words<GROUPS * out_group>(out, result);
            }
        } else if (mine) {
            // A group that is not stored here is done exactly.
#pragma unroll
            for (int g = 0; g < GROUPS; g++) {
                const uint64_t p = x + 4 * g;
                if (p >= a.width)
                    unknown &= ~(1u << g);
                else if (p < a.reach || a.width - p < 4 + a.reach)
                    unknown |= 1u << g;
                else
                    gf_store_words<out_group>(out + g * out_group, result + g * out_group / 4);
            }
        } else {
            unknown = 0;
        }

        if (__any_sync(0xffffffffu, unknown)) {
#pragma unroll
            for (int g = 0; g < GROUPS; g++) {
                const bool waits = unknown >> g & 1;
                const unsigned all = __ballot_sync(0xffffffffu, waits);
                if (waits)
                    queue[waiting + __popc(all & ((1u << lane) - 1))] = run * GROUPS + g;
                waiting += __popc(all);
            }
            __syncwarp();
        }
        while (waiting >= 32) {
            waiting -= 32;
            const uint32_t group = queue[waiting + lane];
            const uint32_t row = __umulhi(group / GROUPS, a.magic) >> a.shift;
            gf_smooth_exactly<Tin, Tout, C>(
                a, row, static_cast<uint64_t>(group - row * a.runs * GROUPS) * 4);
            __syncwarp();
        }
    }
    if (lane < waiting) {
        const uint32_t group = queue[lane];
        const uint32_t row = __umulhi(group / GROUPS, a.magic) >> a.shift;
        gf_smooth_exactly<Tin, Tout, C>(a, row,
                                        static_cast<uint64_t>(group - row * a.runs * GROUPS) * 4);
    }
}

// Queues the work on all rows of a walk; false if a row has more runs than can be counted.
template <typename Work>
static bool gf_walk_launch(gf_walk walk, uint64_t rows, const typename Work::Args &args,
                           cudaStream_t stream) {
    const uint64_t limit = (UINT64_C(1) << 31) / Work::GROUPS;
    uint64_t runs = (walk.width + 4 * Work::GROUPS - 1) / (4 * Work::GROUPS);
    if (runs >= limit)
        return false;
    runs = runs < 2 ? 2 : runs; // the magic number of 1 does not fit; runs past the end are idle
    walk.runs = static_cast<uint32_t>(runs);
    // Of n below 2^31: n / runs = n * magic >> 32 + shift.
    while (UINT64_C(2) << walk.shift < runs)
        walk.shift++;
    walk.magic = static_cast<uint32_t>((UINT64_C(1) << (32 + walk.shift)) / runs + 1);
    const uint64_t most = (limit - 1) / runs; // rows of one launch
    for (uint64_t y = 0; y < rows; y += most) {
        const uint64_t some = rows - y < most ? rows - y : most;
        walk.total = static_cast<uint32_t>(some * runs);
        smooth_walk<Work>
            <<<gf_grid(walk.total, GF_WALK_THREADS), GF_WALK_THREADS, 0, stream>>>(walk, args);
        walk.in += some * walk.in_stride;
        walk.out += some * walk.out_stride;
    }
    return true;
}

#endif
