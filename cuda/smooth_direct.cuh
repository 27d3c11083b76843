// Smoothing rows in registers, straight from and to memory: for pixels of which a whole number
// fills 16 bytes.
//
// Thread mapping: a run is 16 bytes. The runs of all rows are numbered one after the other, so that
// narrow rows keep all lanes busy; a warp takes RUNS * 32 of them in a turn, a lane every 32nd. It
// loads the HALO groups on either side of a run, too, which its neighbours load: the L1 cache
// serves them, from memory each sample is read once. It is written once.
#ifndef GF_SMOOTH_DIRECT_CUH
#define GF_SMOOTH_DIRECT_CUH

#include "smooth_walk.cuh"

template <typename Work, int RUNS>
__global__ void __launch_bounds__(GF_WALK_THREADS, Work::BLOCKS)
    smooth_direct(const __grid_constant__ gf_walk a,
                  const __grid_constant__ typename Work::Args args) {
    const int GROUPS = Work::GROUPS, HALO = Work::HALO;
    const int group = 4 * Work::C * sizeof(typename Work::Tin); // bytes, of input and output
    static_assert(GROUPS * group == 16 && sizeof(typename Work::Tin) == sizeof(typename Work::Tout),
                  "a run must be 16 bytes");
    __shared__ uint32_t queues[GF_WALK_WARPS][32];
    const unsigned lane = threadIdx.x % 32;
    uint32_t *queue = queues[threadIdx.x / 32];
    unsigned waiting = 0;

    const uint32_t step = gridDim.x * GF_WALK_THREADS * RUNS;
    for (uint32_t first = (blockIdx.x * GF_WALK_THREADS + threadIdx.x / 32 * 32) * RUNS;
         first < a.tiles; first += step) {
        uint32_t raw[RUNS][(GROUPS + 2 * HALO) * group / 4];
#pragma unroll
        for (int k = 0; k < RUNS; k++) {
            const uint32_t run = first + k * 32 + lane;
            const uint32_t y = __umulhi(run, a.magic) >> a.shift, x = run - y * a.runs;
            const unsigned char *from = a.in + static_cast<uint64_t>(y) * a.in_stride32 + x * 16;
            if (run < a.tiles)
                gf_load_words<16>(raw[k] + HALO * group / 4, from);
            if (run < a.tiles && x * 16 >= HALO * group)
                gf_load_words<HALO * group>(raw[k], from - HALO * group);
            if (run < a.tiles && x * 16 + 16 + HALO * group <= a.in_stride32)
                gf_load_words<HALO * group>(raw[k] + (HALO + GROUPS) * group / 4, from + 16);
        }
        unsigned unknown = 0;
#pragma unroll
        for (int k = 0; k < RUNS; k++) {
            uint32_t result[4];
            const uint32_t run = first + k * 32 + lane;
            const uint32_t y = __umulhi(run, a.magic) >> a.shift, x = run - y * a.runs;
            unsigned char *out = a.out + static_cast<uint64_t>(y) * a.out_stride32 + x * 16;
            unsigned bits = Work::run(a, args, raw[k], result);
            if (x - a.inner_first < a.inner_runs && run < a.tiles) {
                gf_store_words<16>(out, result);
            } else if (run < a.tiles) {
                bits = gf_left_over(a, static_cast<uint64_t>(x) * (4 * GROUPS), GROUPS, bits);
#pragma unroll
                for (int g = 0; g < GROUPS; g++)
                    if (!(bits >> g & 1) &&
                        static_cast<uint64_t>(x) * (4 * GROUPS) + 4 * g < a.width)
                        gf_store_words<group>(out + g * group, result + g * group / 4);
            } else {
                bits = 0;
            }
            unknown |= bits << k * GROUPS;
        }
        // Bits of all runs of the lane: run k's are GROUPS * k and on, and its number 32 * k more.
        while (__any_sync(0xffffffffu, unknown)) {
            const int bit = unknown ? __ffs(static_cast<int>(unknown)) - 1 : 0;
            gf_enqueue<Work>(a, first + bit / GROUPS * 32 + lane, unknown ? 1u << bit % GROUPS : 0,
                             queue, &waiting);
            unknown &= unknown - 1;
        }
    }
    gf_drain<Work>(a, queue, waiting);
}

// Queues the work on all rows of a walk; false if rows are too long to be counted.
template <typename Work, int RUNS>
static bool gf_direct_launch(gf_walk walk, uint64_t rows, const typename Work::Args &args,
                             cudaStream_t stream) {
    if (!gf_walk_fits<Work>(&walk))
        return false;
    walk.in_stride32 = static_cast<uint32_t>(walk.in_stride);
    walk.out_stride32 = static_cast<uint32_t>(walk.out_stride);
    walk.runs = walk.runs < 2 ? 2 : walk.runs; // the magic number of 1 does not fit
    // Of n below 2^31: n / runs = n * magic >> 32 + shift.
    while (UINT64_C(2) << walk.shift < walk.runs)
        walk.shift++;
    walk.magic = static_cast<uint32_t>((UINT64_C(1) << (32 + walk.shift)) / walk.runs + 1);
    const uint64_t wave = gf_walk_wave(smooth_direct<Work, RUNS>);
    const uint64_t most_rows =
        (UINT64_C(1) << 30) / (static_cast<uint64_t>(walk.runs) * Work::GROUPS);
    for (uint64_t y = 0; y < rows; y += most_rows) {
        const uint64_t some = rows - y < most_rows ? rows - y : most_rows;
        walk.rows = static_cast<uint32_t>(some);
        walk.tiles = static_cast<uint32_t>(some * walk.runs);
        const uint64_t blocks = gf_walk_blocks((walk.tiles + 32 * RUNS - 1) / (32 * RUNS), wave);
        smooth_direct<Work, RUNS>
            <<<static_cast<unsigned>(blocks), GF_WALK_THREADS, 0, stream>>>(walk, args);
        walk.in += some * walk.in_stride;
        walk.out += some * walk.out_stride;
    }
    return true;
}

#endif
