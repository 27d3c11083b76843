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
    uint32_t extra;  // words behind a team's counters, for the bins that its values are in
};

// What is counted, and where.
enum HistRowsBy {
    HIST_VALUES, // the values of u8, in shared memory; up to 256 counters, looked up at last
    HIST_BINS,   // bins, in shared memory
    HIST_GLOBAL  // bins, in the record itself
};

// Adds the samples of a vector to the record: equal neighbours at once.
template <typename T, bool Many>
static __device__ __forceinline__ void hist_count_global(const HistArgs &a, const uint4 &v,
                                                         uint32_t valid, uint32_t channel,
                                                         hist_u64 *record) {
    constexpr int size = hist_vector<T>::size;
    uint32_t keys[size], run = 0;
    hist_keys_of<T, Many, true>(a, v, channel, keys);
#pragma unroll
    for (int k = 0; k < size; k++) {
        const uint32_t next = static_cast<uint32_t>(k) + 1;
        if (next > valid)
            continue;
        run++;
        if (next == size || next == valid || keys[k] != keys[next % size]) {
            atomicAdd(&record[keys[k]], static_cast<hist_u64>(run));
            run = 0;
        }
    }
}

// The vectors of a piece, a lane of the team each, in as many turns as the longest piece takes.
// With values, counter 256 * channel + value.
template <typename T, bool Dense, bool Many, uint32_t Team, HistRowsBy By>
static __device__ __forceinline__ void hist_count_piece(const HistArgs &a,
                                                        const HistCounters &counters,
                                                        const unsigned char *row, uint64_t begin,
                                                        uint64_t end, uint64_t piece,
                                                        uint32_t *mine, hist_u64 *record) {
    const uint32_t lane = threadIdx.x % Team, lane_copy = threadIdx.x & (counters.copies - 1);
    for (uint64_t turn = 0; turn < piece; turn += Team) {
        const uint64_t at = begin + turn + lane;
        HistWalk walk = {};
        walk.at = row + at * 16 * (Dense ? 1 : a.channels);
        walk.row = hist_near(a.vectors - at);
        uint4 v = make_uint4(0, 0, 0, 0);
        uint32_t valid = 0;
        if (at < end) {
            v = hist_load<T, Dense>(a, walk);
            valid = hist_valid<T>(a, walk);
        }
        const uint32_t channel =
            Many ? static_cast<uint32_t>(at % a.measured) * hist_vector<T>::size % a.measured : 0;
        if constexpr (By == HIST_VALUES) {
            uint32_t c = channel * 256;
#pragma unroll
            for (int k = 0; k < 16; k++) {
                uint32_t key = c + (hist_word(v, k / 4) >> k % 4 * 8 & 255);
                if (valid < 16)
                    key = static_cast<uint32_t>(k) < valid ? key : counters.count;
                atomicAdd(&mine[key * counters.copies + lane_copy], 1u);
                if (Many)
                    c = c + 256 == counters.count ? 0 : c + 256;
            }
        } else if constexpr (By == HIST_BINS) {
            hist_count_vector<T, Many, false, true>(a, counters, 0, lane_copy, v, valid, channel,
                                                    mine);
        } else {
            hist_count_global<T, Many>(a, v, valid, channel, record);
        }
    }
}

// A team of 8 lanes, a warp or a block counts a row or a piece of one; teams take these in turn.
// Shared memory: a team's counters, which only a block has in copies. Reads each sample once,
// writes each record once.
template <typename T, bool Dense, bool Many, uint32_t Team, HistRowsBy By>
__global__ void __launch_bounds__(HIST_THREADS, By == HIST_VALUES ? HIST_FIT(HIST_BLOCKS) : 2)
    hist_count_rows(HistArgs a, HistCounters counters, HistRecords records) {
    extern __shared__ __align__(128) uint32_t hist_shared[];
    __shared__ uint8_t bin_of[256];
    constexpr uint32_t teams = HIST_THREADS / Team;
    const uint32_t lane = threadIdx.x % Team, team = threadIdx.x / Team;
    const uint32_t words = static_cast<uint32_t>(counters.bytes / 4);
    const uint32_t entries = a.measured * a.counters;
    uint32_t *mine = hist_shared + (By == HIST_GLOBAL ? 0 : team * (words + records.extra));
    const auto meet = [] {
        if (Team <= 32)
            __syncwarp();
        else
            __syncthreads();
    };
    // Counter i, in all copies.
    const auto sum_of = [&](uint32_t i) {
        uint32_t sum = 0;
        for (uint32_t k = 0; k < counters.copies; k++)
            sum += mine[i * counters.copies + ((k + threadIdx.x) & (counters.copies - 1))];
        return sum;
    };
    if (By == HIST_VALUES) {
        for (uint32_t v = threadIdx.x; v < 256; v += HIST_THREADS)
            bin_of[v] = static_cast<uint8_t>(hist_bin<uint8_t>(a, static_cast<uint8_t>(v)));
        __syncthreads();
    }
    const uint64_t items = a.rows * records.pieces;
    for (uint64_t base = static_cast<uint64_t>(blockIdx.x) * teams; base < items;
         base += static_cast<uint64_t>(gridDim.x) * teams) {
        const bool real = base + team < items; // all lanes of a warp go along
        const uint64_t item = real ? base + team : 0;
        const uint64_t y = item / records.pieces, begin = item % records.pieces * records.piece;
        uint64_t end = begin + records.piece < a.vectors ? begin + records.piece : a.vectors;
        end = real ? end : begin;
        hist_u64 *record = reinterpret_cast<hist_u64 *>(records.data + y * records.stride);
        if constexpr (By != HIST_GLOBAL) {
            for (uint32_t i = lane; i < words + records.extra; i += Team)
                mine[i] = 0;
            meet();
        }
        hist_count_piece<T, Dense, Many, Team, By>(a, counters, a.in + y * a.in_stride, begin, end,
                                                   records.piece, mine, record);
        if constexpr (By == HIST_GLOBAL)
            continue;
        meet();
        const uint32_t *sums = mine + words;
        if constexpr (By == HIST_VALUES) {
            // Lanes take values that are far apart: these are in other bins, mostly.
            const uint32_t apart = (counters.count + Team - 1) / Team;
            for (uint32_t k = 0; k < apart; k++) {
                const uint32_t i = lane * apart + (k + lane * apart / 32) % apart;
                const uint32_t sum = i < counters.count ? sum_of(i) : 0;
                if (sum)
                    atomicAdd(&mine[words + i / 256 * a.counters + bin_of[i % 256]], sum);
            }
            meet();
        }
        for (uint32_t i = lane; i < entries && real; i += Team) {
            const uint32_t sum = By == HIST_VALUES ? sums[i] : sum_of(i);
            if (records.pieces == 1)
                record[i] = sum;
            else if (sum)
                atomicAdd(&record[i], static_cast<hist_u64>(sum));
        }
        meet();
    }
}

// ---- host ---------------------------------------------------------------------------------------

template <typename T, uint32_t Team, HistRowsBy By>
static void hist_rows_by(const HistArgs &a, const HistCounters &counters,
                         const HistRecords &records, cudaStream_t stream) {
    const uint64_t teams = HIST_THREADS / Team;
    const auto launch = [&](auto kernel) {
        const size_t shared =
            By == HIST_GLOBAL ? 0 : (counters.bytes + records.extra * sizeof(uint32_t)) * teams;
        hist_allow(kernel, shared);
        int home = 1;
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&home, kernel, HIST_THREADS, shared);
        const uint64_t most = static_cast<uint64_t>(home > 0 ? home : 1) *
                              hist_device(cudaDevAttrMultiProcessorCount);
        const uint64_t blocks = hist_up(a.rows * records.pieces, teams);
        kernel<<<static_cast<unsigned>(blocks < most ? blocks : most), HIST_THREADS, shared,
                 stream>>>(a, counters, records);
    };
    if (!hist_dense(a))
        launch(hist_count_rows<T, false, false, Team, By>);
    else if (a.measured > 1)
        launch(hist_count_rows<T, true, true, Team, By>);
    else
        launch(hist_count_rows<T, true, false, Team, By>);
}

template <typename T, uint32_t Team>
static void hist_rows_in(const HistArgs &a, bool values, const HistCounters &counters,
                         const HistRecords &records, cudaStream_t stream) {
    if constexpr (sizeof(T) == 1)
        if (values) {
            hist_rows_by<T, Team, HIST_VALUES>(a, counters, records, stream);
            return;
        }
    hist_rows_by<T, Team, HIST_BINS>(a, counters, records, stream);
}

template <typename T>
static gf_status hist_rows(const gf_hist_plan *plan, const gf_band *band, HistArgs a,
                           cudaStream_t stream, gf_error *error) {
    const uint64_t whole = 2048; // vectors that are worth a block
    const uint64_t most = HIST_BLOCKS * hist_device(cudaDevAttrMultiProcessorCount);
    hist_set_walk(&a, 16 / sizeof(T));
    const uint32_t entries = a.measured * a.counters;
    // Rows that are long enough for a table of values.
    const bool values = sizeof(T) == 1 && hist_used(a) <= 256 && a.vectors > 64;
    HistCounters counters = hist_counters(values ? a.measured * 256 : entries);
    HistRecords records = {band->out.data + gf_record_offset(&plan->head), band->out.stride, 1,
                           a.vectors, values ? entries : 0};
    // A few lanes a short row; a warp a row, where there are warps enough for it.
    const uint32_t words = counters.count + records.extra, room = 56 * 1024 / 4;
    const bool few = a.vectors <= 24 && words < room / (HIST_THREADS / 8);
    if (few || (words < room / HIST_WARPS && a.vectors <= HIST_CHUNK &&
                (a.vectors <= 64 || a.rows >= most * HIST_WARPS / 2))) {
        hist_set_copies(&counters, 1);
        if (few)
            hist_rows_by<T, 8, HIST_BINS>(a, counters, records, stream);
        else
            hist_rows_in<T, 32>(a, values, counters, records, stream);
        return GF_OK;
    }
    if (a.rows < most && a.vectors > whole)
        records.piece = hist_up(a.vectors, hist_up(most, a.rows));
    if (records.piece < whole)
        records.piece = a.vectors < whole ? a.vectors : whole;
    if (records.piece > HIST_CHUNK)
        records.piece = HIST_CHUNK;
    records.pieces = static_cast<uint32_t>(hist_up(a.vectors, records.piece));
    // Fewer copies than there are samples to count, by far, and room for the rest.
    while (counters.copies > 1 &&
           (counters.bytes > records.piece * 16 || counters.bytes > HIST_COMFORTABLE / 2))
        hist_set_copies(&counters, counters.copies / 2);
    const bool global = counters.parts > 1;
    if (records.pieces > 1 || global) {
        const gf_status status = gf_cuda_check(
            cudaMemset2DAsync(records.data, records.stride, 0, plan->head.record, a.rows, stream),
            "cudaMemset2DAsync", error);
        if (status)
            return status;
    }
    if (global)
        hist_rows_by<T, HIST_THREADS, HIST_GLOBAL>(a, counters, records, stream);
    else
        hist_rows_in<T, HIST_THREADS>(a, values, counters, records, stream);
    return GF_OK;
}

#endif
