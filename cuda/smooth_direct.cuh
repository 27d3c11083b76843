// Smoothing rows in registers, straight from and to memory: for pixels of which a whole number
// fills 16 bytes.
//
// Thread mapping: a run is 16 bytes. The runs of all rows are numbered one after the other, so that
// narrow rows keep all lanes busy; a warp takes 4 * 32 of them in a turn, a lane every 32nd. It
// loads the HALO groups on either side of a run, too, which its neighbours load: the L1 cache
// serves them, from memory each sample is read once. It is written once.
#ifndef GF_SMOOTH_DIRECT_CUH
#define GF_SMOOTH_DIRECT_CUH

#include "smooth_walk.cuh"

#define GF_DIRECT_THREADS 256
#define GF_DIRECT_WARPS (GF_DIRECT_THREADS / 32)
#define GF_DIRECT_RUNS 4 // that a lane takes in a turn

template <typename Work>
__global__ void __launch_bounds__(GF_DIRECT_THREADS, Work::WARPS / GF_DIRECT_WARPS)
    smooth_direct(const __grid_constant__ gf_walk a,
                  const __grid_constant__ typename Work::Args args) {
    const int GROUPS = Work::GROUPS, HALO = Work::HALO, RUNS = Work::RUNS;
    const int BITS = GROUPS * Work::filtered;                   // of a run
    const int group = 4 * Work::C * sizeof(typename Work::Tin); // bytes, of input and output
    static_assert(GROUPS * group == 16 && sizeof(typename Work::Tin) == sizeof(typename Work::Tout),
                  "a run must be 16 bytes");
    __shared__ gf_queue<32 * GF_DIRECT_RUNS * BITS> queues[GF_DIRECT_WARPS];
    const uint32_t lane = threadIdx.x % 32;
    uint32_t *waiting = &queues[threadIdx.x / 32].waiting;
    uint32_t *queue = queues[threadIdx.x / 32].group;
    if (lane == 0)
        *waiting = 0;
    __syncwarp();

    const uint32_t step = gf_turn_step() * (32 * GF_DIRECT_RUNS);
    for (uint32_t first = gf_first_turn() * (32 * GF_DIRECT_RUNS); first < a.tiles; first += step) {
        unsigned unknown = 0;
#pragma unroll 1
        for (int done = 0; done < GF_DIRECT_RUNS; done += RUNS) {
            uint32_t raw[RUNS][(GROUPS + 2 * HALO) * group / 4], begin[RUNS], place[RUNS];
#pragma unroll
            for (int k = 0; k < RUNS; k++) {
                // Lanes without a run do the last one again.
                const uint32_t mine = first + (done + k) * 32 + lane;
                const uint32_t run = mine < a.tiles ? mine : a.tiles - 1;
                const uint32_t y = __umulhi(run, a.magic) >> a.shift;
                place[k] = run - y * a.runs;
                begin[k] = y * a.in_stride32 + place[k] * 16;
                const unsigned char *from = a.in + begin[k];
                gf_load_words<16>(raw[k] + HALO * group / 4, from);
                if (place[k] * 16 >= HALO * group)
                    gf_load_words<HALO * group>(raw[k], from - HALO * group);
                if (place[k] < a.next_runs)
                    gf_load_words<HALO * group>(raw[k] + (HALO + GROUPS) * group / 4, from + 16);
            }
#pragma unroll
            for (int k = 0; k < RUNS; k++) {
                uint32_t result[4];
                unsigned bits = Work::run(a, args, raw[k], result);
                if (place[k] < a.out_units)
                    gf_store_words<16>(a.out + begin[k], result);
                if (place[k] - a.inner_first >= a.inner_runs)
                    bits = gf_left_over<Work>(a, place[k], bits);
                unknown |= bits << (done + k) * BITS;
            }
        }
        for (; unknown; unknown &= unknown - 1) {
            const uint32_t bit = __ffs(static_cast<int>(unknown)) - 1;
            const uint32_t mine = first + bit / BITS * 32 + lane;
            const uint32_t run = mine < a.tiles ? mine : a.tiles - 1;
            queue[atomicAdd(waiting, 1)] = run * BITS + bit % BITS;
        }
        __syncwarp();
        const uint32_t now = *waiting;
        __syncwarp(); // before anyone adds to it again
        if (now >= 32)
            gf_drain<Work>(a, queue, waiting, false);
    }
    gf_drain<Work>(a, queue, waiting, true);
}

// Queues the work on all rows of a walk; false if rows are too long to be counted, or those of the
// two images are not equally far apart.
template <typename Work>
static bool gf_direct_launch(gf_walk walk, uint64_t rows, const typename Work::Args &args,
                             cudaStream_t stream) {
    if (!gf_walk_fits<Work>(&walk) || walk.in_stride != walk.out_stride)
        return false;
    const uint64_t limit = UINT64_C(1) << 31; // of bytes in a launch, and so of what can wait
    walk.in_stride32 = static_cast<uint32_t>(walk.in_stride);
    walk.runs = walk.runs < 2 ? 2 : walk.runs; // the magic number of 1 does not fit
    gf_walk_divide_by(&walk, walk.runs);
    // Runs behind which there is a whole halo in the row's own memory.
    const size_t halo = Work::HALO * 16 / Work::GROUPS;
    walk.next_runs = walk.in_stride < 16 + halo
                         ? 0
                         : static_cast<uint32_t>((walk.in_stride - 16 - halo) / 16 + 1);
    const uint64_t wave = gf_walk_wave(smooth_direct<Work>, GF_DIRECT_THREADS);
    const uint64_t a_row = static_cast<uint64_t>(walk.runs) * 16; // its groups are fewer
    const uint64_t most_rows = limit / (a_row > walk.in_stride ? a_row : walk.in_stride);
    for (uint64_t y = 0; y < rows; y += most_rows) {
        const uint64_t some = rows - y < most_rows ? rows - y : most_rows;
        walk.tiles = static_cast<uint32_t>(some * walk.runs);
        const unsigned blocks = gf_walk_blocks<Work>(
            (walk.tiles + 32 * GF_DIRECT_RUNS - 1) / (32 * GF_DIRECT_RUNS), wave, GF_DIRECT_WARPS);
        smooth_direct<Work><<<blocks, GF_DIRECT_THREADS, 0, stream>>>(walk, args);
        walk.in += some * walk.in_stride;
        walk.out += some * walk.out_stride;
    }
    return true;
}

#endif
