// Counting each row for itself, into its record.
#ifndef GF_HIST_ROWS_CUH
#define GF_HIST_ROWS_CUH

#include "hist_count.cuh"

struct HistRecords {
    unsigned char *data; // of the first row
    size_t stride;
    uint32_t pieces; // of a row, a team each; with several, or without counters in shared memory,
                     // the record was zero and is added to
    uint64_t piece;  // vectors of a piece
};

// A team, a warp or a block, counts a row or a piece of one; teams take these in turn. Shared
// memory: a team's counters, which a warp has once, a block in copies. Reads each sample once,
// writes each record once.
template <typename T, bool Dense, bool Many, uint32_t Team, bool Shared>
__global__ void __launch_bounds__(HIST_THREADS, HIST_BLOCKS)
    hist_count_rows(HistArgs a, HistCounters counters, HistRecords records) {
    extern __shared__ __align__(128) uint32_t hist_shared[];
    const uint32_t lane = threadIdx.x % Team, words = counters.count * counters.copies;
    uint32_t *mine = hist_shared + (Shared ? threadIdx.x / Team * words : 0);
    const uint32_t lane_copy = threadIdx.x & (counters.copies - 1);
    constexpr HistPlace place = Shared ? HIST_SHARED : HIST_GLOBAL;
    const auto meet = [] {
        if (Team == 32)
            __syncwarp();
        else
            __syncthreads();
    };
    const uint64_t teams = static_cast<uint64_t>(gridDim.x) * (HIST_THREADS / Team);
    for (uint64_t item = static_cast<uint64_t>(blockIdx.x) * (HIST_THREADS / Team) +
                         threadIdx.x / Team;
         item < a.rows * records.pieces; item += teams) {
        const uint64_t y = item / records.pieces, begin = item % records.pieces * records.piece;
        const uint64_t end = begin + records.piece < a.vectors ? begin + records.piece : a.vectors;
        hist_u64 *record = reinterpret_cast<hist_u64 *>(records.data + y * records.stride);
        if constexpr (Shared) {
            for (uint32_t i = lane; i < words; i += Team)
                mine[i] = 0;
            meet();
        }
        for (uint64_t at = begin + lane; at < end; at += Team) {
            HistWalk walk = {};
            walk.at = a.in + y * a.in_stride + at * 16 * (Dense ? 1 : a.channels);
            walk.row = hist_near(a.vectors - at);
            const uint4 v = hist_load<T, Dense>(a, walk);
            const uint32_t valid = hist_valid<T>(a, walk);
            const uint32_t channel =
                Many ? static_cast<uint32_t>(at % a.measured) * hist_vector<T>::size % a.measured
                     : 0;
            if (valid == hist_vector<T>::size)
                hist_count_vector<T, Many, place, true>(a, counters, lane_copy, v, valid, channel,
                                                        mine, record);
            else
                hist_count_vector<T, Many, place, false>(a, counters, lane_copy, v, valid, channel,
                                                         mine, record);
        }
        if constexpr (Shared) {
            meet();
            for (uint32_t i = lane; i < counters.count; i += Team) {
                uint32_t sum = 0;
                for (uint32_t k = 0; k < counters.copies; k++)
                    sum += mine[i * counters.copies + ((k + threadIdx.x) & (counters.copies - 1))];
                if (records.pieces == 1)
                    record[i] = sum;
                else if (sum)
                    atomicAdd(&record[i], static_cast<hist_u64>(sum));
            }
            meet();
        }
    }
}

#endif
