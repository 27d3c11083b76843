// Counting u8: the 256 values are counted, and only in the end it is asked in which bins they are,
// so that a sample costs a shift, a mask and an addition in shared memory, whatever the bins.
#ifndef GF_HIST_VALUES_CUH
#define GF_HIST_VALUES_CUH

#include "hist_walk.cuh"

// Where counters are. Of one channel, and of three, each value has one for each lane, side by side:
// no two lanes of a warp share a bank, whatever the picture. Two and four channels are taken in
// pairs: a value has 16 counters for each channel of a pair, and while lanes 0 to 15 count one
// channel lanes 16 to 31 count the other.
template <uint32_t Tables> struct HistTable {
    static constexpr bool pairs = Tables % 2 == 0;
    static constexpr uint32_t bytes = 256 * 32 * 4; // of a channel or a pair
    static constexpr uint32_t all = (pairs ? Tables / 2 : Tables) * bytes;
    static constexpr int blocks = all > 66 * 1024 ? 2 : HIST_BLOCKS; // at home on a processor
    static constexpr int batch = blocks == 2 ? 4 : 2; // vectors that are loaded before the first
                                                      // is looked at
};

// counts[rank * blocks + block]: the samples of an extracted bin in a block's chunk.
static __device__ __forceinline__ void hist_add_selected(const HistArgs &a, uint32_t *selected,
                                                         uint32_t bin, uint32_t sum) {
    const uint32_t rank = hist_rank(a, bin);
    if (rank < a.extracts && rank < GF_HIST_MAX_LISTED)
        atomicAdd(&selected[rank], sum);
}

static __device__ __forceinline__ void hist_store_selected(const HistArgs &a,
                                                           const uint32_t *selected,
                                                           uint32_t *counts) {
    __syncthreads();
    if (counts && threadIdx.x < a.extracts && threadIdx.x < GF_HIST_MAX_LISTED)
        counts[threadIdx.x * gridDim.x + blockIdx.x] = selected[threadIdx.x];
}

// Makes the samples behind the first `valid` ones 0.
static __device__ __forceinline__ uint4 hist_cut_off(uint4 v, uint32_t valid) {
    const auto keep = [&](uint32_t word, int before) {
        const int left = static_cast<int>(valid) - before;
        return left >= 4 ? word : left <= 0 ? 0 : word & ((1u << left * 8) - 1);
    };
    return make_uint4(keep(v.x, 0), keep(v.y, 4), keep(v.z, 8), keep(v.w, 12));
}

// A thread takes every HIST_THREADSth vector of its block's chunk; Tables is how many channels are
// measured. What a vector lacks at the end of a row is counted as zeros and taken off in the end.
// Reads each byte once, without Dense whole pixels; shared memory: a HistTable. Adds to the state,
// and where counts is given writes how many samples of the extracted bins the chunk has.
template <uint32_t Tables, bool Dense>
__global__ void __launch_bounds__(HIST_THREADS, HIST_FIT(HistTable<Tables>::blocks))
    hist_count_values(HistArgs a, hist_u64 *state, uint32_t *counts) {
    typedef HistTable<Tables> Table;
    constexpr int batch = Table::batch;
    extern __shared__ __align__(128) uint32_t hist_shared[];
    __shared__ uint32_t sums[Tables * 256], selected[GF_HIST_MAX_LISTED];
    __shared__ uint32_t bin_of[256];
    for (uint32_t i = threadIdx.x; i < Table::all / 16; i += HIST_THREADS)
        reinterpret_cast<uint4 *>(hist_shared)[i] = make_uint4(0, 0, 0, 0);
    if (threadIdx.x < GF_HIST_MAX_LISTED)
        selected[threadIdx.x] = 0;
    for (uint32_t i = threadIdx.x; i < Tables * 256; i += HIST_THREADS)
        sums[i] = 0;
    if (threadIdx.x < 256)
        bin_of[threadIdx.x] = hist_bin<uint8_t>(a, static_cast<uint8_t>(threadIdx.x));
    __syncthreads();

    uint32_t column; // the lane as a register of its own: else it is masked for every sample anew
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(column));
    const uint32_t order = column < 16 ? 0x3210 : 0x2301; // of bytes: a pair's other one first
    column *= 4;
    uint32_t lacking[Tables] = {};
    HistWalk walk = hist_walk<uint8_t, Dense>(a);
    while (walk.left > 0) {
        uint4 v[batch];
        uint32_t valid[batch], channel[batch];
#pragma unroll
        for (int b = 0; b < batch; b++) {
            valid[b] = 0;
            if (walk.left > 0) {
                v[b] = hist_load<uint8_t, Dense>(a, walk);
                valid[b] = hist_valid<uint8_t>(a, walk);
            }
            channel[b] = walk.channel;
            hist_step(a, &walk);
        }
#pragma unroll
        for (int b = 0; b < batch; b++) {
            if (valid[b] == 0)
                continue;
            if (valid[b] < 16) {
                v[b] = hist_cut_off(v[b], valid[b]);
#pragma unroll
                for (uint32_t c = 0; c < Tables; c++) // behind a row comes its first channel
                    lacking[c] += (16 - valid[b] + Tables - 1 - c) / Tables;
            }
            const uint32_t c = Tables == 3 ? channel[b] : 0; // of others it is always the first
            const uint32_t at[3] = {column + c * Table::bytes,
                                    column + (c == 2 ? 0 : c + 1) * Table::bytes,
                                    column + (c == 0 ? 2 : c - 1) * Table::bytes};
#pragma unroll
            for (int k = 0; k < 16; k++) {
                uint32_t word = hist_word(v[b], k / 4);
                if (Table::pairs)
                    word = __byte_perm(word, 0, order);
                const int by = 7 - k % 4 * 8;
                const uint32_t row = (by < 0 ? word >> -by : word << by) & 255u << 7;
                uint32_t to = row | column;
                if (Tables == 3)
                    to = row | at[k % 3];
                else if (Table::pairs)
                    to = (row | (k % 2 ? column ^ 64 : column)) + k % Tables / 2 * Table::bytes;
                atomicAdd(reinterpret_cast<uint32_t *>(reinterpret_cast<char *>(hist_shared) + to),
                          1u);
            }
        }
    }
#pragma unroll
    for (uint32_t c = 0; c < Tables; c++) // any counter of value 0 will do
        if (lacking[c])
            atomicSub(&hist_shared[Table::pairs ? c / 2 * (Table::bytes / 4) + c % 2 * 16
                                                : c * (Table::bytes / 4)],
                      lacking[c]);

    __syncthreads();
    const auto finish = [&](uint32_t c, uint32_t bin, uint32_t sum) {
        atomicAdd(&state[(blockIdx.z + c) * a.counters + bin], static_cast<hist_u64>(sum));
        if (counts)
            hist_add_selected(a, selected, bin, sum);
    };
    // Up to 256 counters are added up before they go to the state.
    const bool few = hist_used(a) <= 256;
    for (uint32_t i = threadIdx.x; i < Tables * 256; i += HIST_THREADS) {
        constexpr uint32_t columns = Table::pairs ? 16 : 32;
        const uint32_t c = i / 256, row = i % 256 * 32, bin = bin_of[i % 256];
        const uint32_t *from = hist_shared + row + (Table::pairs ? c / 2 : c) * (Table::bytes / 4) +
                               (Table::pairs ? c % 2 * 16 : 0);
        uint32_t sum = 0;
        for (uint32_t k = 0; k < columns; k++) // each thread from another bank on
            sum += from[(k + threadIdx.x) % columns];
        if (sum > 0 && few)
            atomicAdd(&sums[c * 256 + bin], sum);
        else if (sum > 0)
            finish(c, bin, sum);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < Tables * 256 && few; i += HIST_THREADS)
        if (sums[i] > 0)
            finish(i / 256, i % 256, sums[i]);
    hist_store_selected(a, selected, counts);
}

#endif
