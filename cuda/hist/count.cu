// hist on CUDA: counting. The counters are in shared memory.
//
//   kernel              used for                   counters
//   hist_count_bins     u16 and f32, whole images  one per bin, in up to 32 copies; divided among
//                                                  blocks if there are too many
//   hist_count_values   u8, whole images           one per value and lane: always conflict-free
//   hist_count_rows     counts per row             one per value or bin, or only the record itself;
//                                                  a team of 8 lanes, a warp or a block per row
#include "cuda/hist/device.cuh"
#include "cuda/vectors.cuh"

// ---- values of u8 -------------------------------------------------------------------------------

// The 256 values are counted; only the totals are mapped to bins. A sample costs a shift, a mask
// and an atomic addition in shared memory, for any bins.

// Layout of the counters. One and three channels: each value has 32 counters, one per lane,
// therefore access is conflict-free for every image. Two and four channels are processed in pairs:
// each value has 16 counters for each channel of a pair. While lanes 0 to 15 count one channel,
// lanes 16 to 31 count the other.
template <uint32_t TABLES> struct hist_table {
    static constexpr bool pairs = TABLES % 2 == 0;
    static constexpr uint32_t bytes = 256 * 32 * 4; // per channel or pair
    static constexpr uint32_t all = (pairs ? TABLES / 2 : TABLES) * bytes;
    static constexpr int blocks = all > 66 * 1024 ? 2 : Policy::BLOCKS; // resident blocks per SM
    static constexpr int batch = blocks == 2 ? 4 : 2; // vectors loaded before the first is used

    static __device__ __forceinline__ uint32_t first(uint32_t c) {
        return pairs ? c / 2 * (bytes / 4) + c % 2 * 16 : c * (bytes / 4);
    }
};

struct hist_loaded {
    uint4 v;
    uint32_t valid;   // samples; 0 after the end
    uint32_t channel; // of the first sample
};

template <typename T, bool DENSE, int THREADS, int BATCH>
GF_DEVICE void hist_load_batch(const gf_hist_args &a, gf_hist_walk *walk,
                               hist_loaded (&batch)[BATCH]) {
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
        batch[b].valid = 0;
        if (walk->left > 0) {
            batch[b].v = gf_hist_load<T, DENSE>(a, *walk);
            batch[b].valid = gf_hist_valid<T>(a, *walk);
        }
        batch[b].channel = walk->channel;
        gf_hist_step<THREADS>(a, walk);
    }
}

// Add to the number of samples of an extracted bin in this chunk: counts[nth * blocks + block].
GF_DEVICE void hist_add_selected(const gf_hist_args &a, uint32_t *selected, uint32_t bin,
                                 uint32_t sum) {
    const uint32_t nth = gf_hist_nth(a, bin);
    if (nth < a.extracts && nth < GF_HIST_MAX_LISTED)
        atomicAdd(&selected[nth], sum);
}

GF_DEVICE void hist_store_selected(const gf_hist_args &a, const uint32_t *selected,
                                   uint32_t *counts) {
    __syncthreads();
    if (counts && threadIdx.x < a.extracts && threadIdx.x < GF_HIST_MAX_LISTED)
        counts[threadIdx.x * gridDim.x + blockIdx.x] = selected[threadIdx.x];
}

// Arrays of a block in shared memory besides the counters. Pointers: a struct of the arrays
// themselves made the kernel for 3 channels 3 % slower on an H200.
struct hist_values_sums {
    uint32_t *sums, *selected;
    const uint32_t *bin_of;
};

// Count the values of a vector. column: of the lane's counters, in bytes. order: of bytes in pairs.
template <uint32_t TABLES>
GF_DEVICE void hist_count_bytes(const hist_loaded &vector, uint32_t column, uint32_t order,
                                uint32_t *counters) {
    typedef hist_table<TABLES> Table;
    const uint32_t c = TABLES == 3 ? vector.channel : 0; // otherwise always the first channel
    const uint32_t at[3] = {column + c * Table::bytes, column + (c == 2 ? 0 : c + 1) * Table::bytes,
                            column + (c == 0 ? 2 : c - 1) * Table::bytes};
#pragma unroll
    for (int k = 0; k < 16; k++) {
        uint32_t word = gf_word(vector.v, k / 4);
        if (Table::pairs)
            word = __byte_perm(word, 0, order);
        const int by = 7 - k % 4 * 8;
        const uint32_t row = (by < 0 ? word >> -by : word << by) & 255u << 7;
        uint32_t to = row | column;
        if (TABLES == 3)
            to = row | at[k % 3];
        else if (Table::pairs)
            to = (row | (k % 2 ? column ^ 64 : column)) + k % TABLES / 2 * Table::bytes;
        atomicAdd(reinterpret_cast<uint32_t *>(reinterpret_cast<char *>(counters) + to), 1u);
    }
}

// Add the counters to the state, and to the counts of extracted bins if counts is not NULL.
template <uint32_t TABLES>
GF_DEVICE void hist_store_values(const gf_hist_args &a, const hist_values_sums &block,
                                 const uint32_t *counters, gf_u64 *state, uint32_t *counts) {
    typedef hist_table<TABLES> Table;
    const auto add_to_state = [&](uint32_t c, uint32_t bin, uint32_t sum) {
        atomicAdd(&state[(blockIdx.z + c) * a.counters + bin], static_cast<gf_u64>(sum));
        if (counts)
            hist_add_selected(a, block.selected, bin, sum);
    };
    // Up to 256 counters are summed by bin before they are added to the state.
    const bool few = gf_hist_used(a) <= 256;
    for (uint32_t i = threadIdx.x; i < TABLES * 256; i += Policy::THREADS) {
        constexpr uint32_t columns = Table::pairs ? 16 : 32;
        const uint32_t c = i / 256, row = i % 256 * 32, bin = block.bin_of[i % 256];
        const uint32_t *from = counters + row + Table::first(c);
        uint32_t sum = 0;
        for (uint32_t k = 0; k < columns; k++) // each thread starts at another bank
            sum += from[(k + threadIdx.x) % columns];
        if (sum > 0 && few)
            atomicAdd(&block.sums[c * 256 + bin], sum);
        else if (sum > 0)
            add_to_state(c, bin, sum);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < TABLES * 256 && few; i += Policy::THREADS)
        if (block.sums[i] > 0)
            add_to_state(i / 256, i % 256, block.sums[i]);
    hist_store_selected(a, block.selected, counts);
}

// Count the values of u8.
// Grid: one block per chunk; z: channels, if each block counts only one. Block: 512 threads; a
// thread processes every 512th vector of the chunk. Tables: measured channels. Reads each byte
// once; without DENSE, whole pixels. Adds to the state; if counts is not NULL, also stores the
// number of samples of each extracted bin. Tail: the bytes missing at the end of a row are counted
// as zeros and subtracted at the end. Shared memory: a hist_table (32 to 96 KB), and 2 to 5 KB
// static. Registers: 40 with 3 resident blocks, 64 with 2 (sm_90).
template <uint32_t TABLES, bool DENSE>
__global__ void __launch_bounds__(Policy::THREADS, Policy::resident(hist_table<TABLES>::blocks))
    hist_count_values(gf_hist_args a, gf_u64 *state, uint32_t *counts) {
    constexpr int BATCH = hist_table<TABLES>::batch;
    extern __shared__ __align__(128) uint32_t hist_shared[];
    __shared__ uint32_t sums[TABLES * 256], selected[GF_HIST_MAX_LISTED], bin_of[256];
    gf_wait_for_stream();
    for (uint32_t i = threadIdx.x; i < hist_table<TABLES>::all / 16; i += Policy::THREADS)
        reinterpret_cast<uint4 *>(hist_shared)[i] = make_uint4(0, 0, 0, 0);
    if (threadIdx.x < GF_HIST_MAX_LISTED)
        selected[threadIdx.x] = 0;
    for (uint32_t i = threadIdx.x; i < TABLES * 256; i += Policy::THREADS)
        sums[i] = 0;
    if (threadIdx.x < 256)
        bin_of[threadIdx.x] = gf_hist_bin<uint8_t>(a, static_cast<uint8_t>(threadIdx.x));
    __syncthreads();

    uint32_t column; // in a register: otherwise the lane is masked for every sample
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(column));
    const uint32_t order = column < 16 ? 0x3210 : 0x2301; // upper lanes swap the bytes of a pair
    column *= 4;
    uint32_t padding[TABLES] = {};
    gf_hist_walk walk = gf_hist_start<uint8_t, DENSE>(a);
    while (walk.left > 0) {
        hist_loaded batch[BATCH];
        hist_load_batch<uint8_t, DENSE, Policy::THREADS>(a, &walk, batch);
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            if (batch[b].valid == 0)
                continue;
            if (batch[b].valid < 16) {
                batch[b].v = gf_first_bytes(batch[b].v, batch[b].valid);
#pragma unroll
                for (uint32_t c = 0; c < TABLES; c++) // a row starts with its first channel
                    padding[c] += (16 - batch[b].valid + TABLES - 1 - c) / TABLES;
            }
            hist_count_bytes<TABLES>(batch[b], column, order, hist_shared);
        }
    }
#pragma unroll
    for (uint32_t c = 0; c < TABLES; c++) // subtract from any counter of value 0
        if (padding[c])
            atomicSub(&hist_shared[hist_table<TABLES>::first(c)], padding[c]);
    __syncthreads();
    hist_store_values<TABLES>(a, {sums, selected, bin_of}, hist_shared, state, counts);
}

// ---- bins of u16 and f32 ------------------------------------------------------------------------

// Tuning constants of hist_count_bins and hist_count_rows.
struct hist_count_policy {
    static constexpr size_t SHARED_BUDGET = 66 * 1024; // that allows BLOCKS resident blocks
    static constexpr int LARGE_THREADS = 1024;
};

// Counters of a block, in shared memory, 32 bits each.
struct hist_counters {
    uint32_t count;  // counters of all channels, consecutively; one more counts all other samples
    uint32_t copies; // a power of two, at most 32; lane l adds to copy l % copies
    uint32_t parts;  // blocks with `count` counters each, if one block cannot hold all of them
    size_t bytes;    // of shared memory
    bool large;      // exceeds SHARED_BUDGET: one resident block with more threads
};

static inline void hist_set_copies(hist_counters *counters, uint32_t copies) {
    counters->copies = copies;
    counters->bytes = (static_cast<size_t>(counters->count) + 1) * copies * 4;
}

static inline hist_counters hist_counters_of(uint32_t count) {
    const size_t max = gf_attribute<cudaDevAttrMaxSharedMemoryPerBlockOptin>() - 1024;
    const size_t budget = hist_count_policy::SHARED_BUDGET, limit = std::min(budget, max);
    hist_counters counters = {count, 32, 1, 0, false};
    counters.parts = static_cast<uint32_t>(gf_divide_up(static_cast<size_t>(count) * 4 + 4, max));
    counters.count = static_cast<uint32_t>(gf_divide_up(count, counters.parts));
    hist_set_copies(&counters, 32);
    while (counters.copies > 1 && counters.bytes > limit)
        hist_set_copies(&counters, counters.copies / 2);
    counters.large = counters.bytes > limit;
    return counters;
}

// Return the sum of all copies of counter i. Each thread starts at another bank.
GF_DEVICE uint32_t hist_sum_copies(const hist_counters &counters, const uint32_t *shared,
                                   uint32_t i) {
    uint32_t sum = 0;
    for (uint32_t k = 0; k < counters.copies; k++)
        sum += shared[i * counters.copies + ((k + threadIdx.x) & (counters.copies - 1))];
    return sum;
}

// Compute the counter index of each sample of a vector.
template <typename T, bool MANY, gf_hist_by BY>
GF_DEVICE void hist_keys_of(const gf_hist_args &a, const hist_loaded &vector,
                            uint32_t (&keys)[gf_hist_vector<T>::size]) {
    gf_hist_bins<T, BY>(a, vector.v, keys);
    if (!MANY)
        return;
    uint32_t base = vector.channel * a.counters;
    const uint32_t all = a.measured * a.counters;
#pragma unroll
    for (int k = 0; k < gf_hist_vector<T>::size; k++) {
        keys[k] += base;
        base += a.counters;
        base = base == all ? 0 : base;
    }
}

// Add the samples of a vector to the counters from..from + count - 1. Other samples are added to
// the counter after them, which is faster than a branch. The hardware combines shared-memory
// increments of all lanes with the same address.
template <typename T, bool MANY, bool PARTS, gf_hist_by BY>
GF_DEVICE void hist_count_vector(const gf_hist_args &a, const hist_counters &counters,
                                 uint32_t from, uint32_t lane_copy, const hist_loaded &vector,
                                 uint32_t *shared) {
    constexpr int size = gf_hist_vector<T>::size;
    uint32_t keys[size];
    hist_keys_of<T, MANY, BY>(a, vector, keys);
    if (PARTS) {
#pragma unroll
        for (int k = 0; k < size; k++)
            keys[k] = min(keys[k] - from, counters.count);
    }
    if (vector.valid < size) {
#pragma unroll
        for (int k = 0; k < size; k++)
            keys[k] = static_cast<uint32_t>(k) < vector.valid ? keys[k] : counters.count;
    }
#pragma unroll
    for (int k = 0; k < size; k++)
        atomicAdd(&shared[keys[k] * counters.copies + lane_copy], 1u);
}

// Count the bins of u16 and f32, and for statistics their values.
// Grid: x: one block per chunk; y: parts of the bins, if there are too many for one block; z:
// channels. Block: 512 threads, or 1024 if LARGE; a thread processes every 512th (1024th) vector of
// the chunk. Reads each sample (without DENSE, its whole pixel) once per y and z. Blocks with the
// same x run at about the same time and share the reads through the cache. Adds to the state; if
// counts is not NULL, also stores the number of samples of each extracted bin. Shared memory:
// hist_counters::bytes. Registers: 32 to 64 (sm_90).
template <typename T, bool DENSE, bool MANY, bool LARGE, gf_hist_by BY>
__global__ void __launch_bounds__(LARGE ? hist_count_policy::LARGE_THREADS : Policy::THREADS,
                                  LARGE ? 1 : Policy::resident(Policy::BLOCKS))
    hist_count_bins(gf_hist_args a, hist_counters counters, gf_u64 *state, uint32_t *counts) {
    constexpr int threads = LARGE ? hist_count_policy::LARGE_THREADS : Policy::THREADS;
    constexpr int batch = !DENSE ? 1 : BY == HIST_RANGED ? 2 : 4;
    extern __shared__ __align__(128) uint32_t hist_shared[];
    __shared__ uint32_t selected[GF_HIST_MAX_LISTED];
    gf_wait_for_stream();
    for (uint32_t i = threadIdx.x; i < counters.bytes / 4; i += threads)
        hist_shared[i] = 0;
    if (threadIdx.x < GF_HIST_MAX_LISTED)
        selected[threadIdx.x] = 0;
    __syncthreads();

    const uint32_t lane_copy = threadIdx.x & (counters.copies - 1);
    const uint32_t from = LARGE ? blockIdx.y * counters.count : 0;
    gf_hist_walk walk = gf_hist_start<T, DENSE>(a);
    for (uint32_t iterations = (gf_hist_iterations<threads>(walk) + batch - 1) / batch;
         iterations > 0; iterations--) {
        hist_loaded vectors[batch];
        hist_load_batch<T, DENSE, threads>(a, &walk, vectors);
#pragma unroll
        for (int b = 0; b < batch; b++)
            hist_count_vector<T, MANY, LARGE, BY>(a, counters, from, lane_copy, vectors[b],
                                                  hist_shared);
    }

    __syncthreads();
    const uint32_t all = a.measured * a.counters;
    state += static_cast<uint64_t>(blockIdx.z) * a.counters;
    for (uint32_t i = threadIdx.x; i < counters.count && from + i < all; i += threads) {
        const uint32_t sum = hist_sum_copies(counters, hist_shared, i);
        if (sum == 0)
            continue;
        atomicAdd(&state[from + i], static_cast<gf_u64>(sum));
        const uint32_t bin = MANY ? i % a.counters : i;
        if (!LARGE && counts)
            hist_add_selected(a, selected, bin, sum);
    }
    if (!LARGE)
        hist_store_selected(a, selected, counts);
}

// ---- rows ---------------------------------------------------------------------------------------

struct hist_records {
    unsigned char *data; // of the first row
    size_t stride;
    gf_images<1> images; // rows: of all images in order
    uint32_t pieces; // per row, one per team. Several, and those without counters in shared memory,
                     // add to a zeroed record
    uint64_t piece;  // vectors per piece
    uint32_t extra;  // words after a team's counters, for the bins of its values
};

// Counting method of hist_count_rows.
enum hist_rows_method {
    HIST_VALUES, // u8 values in shared memory; mapped to bins at the end; at most 256 counters
    HIST_BINS,   // bins in shared memory
    HIST_GLOBAL  // bins in the record, in global memory
};

// Add the samples of a vector to the record. A run of equal samples is added at once.
template <typename T, bool MANY>
GF_DEVICE void hist_count_global(const gf_hist_args &a, const hist_loaded &vector, gf_u64 *record) {
    constexpr int size = gf_hist_vector<T>::size;
    uint32_t keys[size], run = 0;
    hist_keys_of<T, MANY, HIST_RANGED>(a, vector, keys);
#pragma unroll
    for (int k = 0; k < size; k++) {
        const uint32_t next = static_cast<uint32_t>(k) + 1;
        if (next > vector.valid)
            continue;
        run++;
        if (next == size || next == vector.valid || keys[k] != keys[next % size]) {
            atomicAdd(&record[keys[k]], static_cast<gf_u64>(run));
            run = 0;
        }
    }
}

struct hist_piece {
    const unsigned char *row;
    uint64_t begin, end; // vectors; equal if the team has no piece
    uint64_t most;       // vectors of the longest piece
};

// Count the vectors of a piece, one per lane of the team and iteration. All teams run the number of
// iterations of the longest piece.
template <typename T, bool DENSE, bool MANY, uint32_t TEAM, hist_rows_method BY>
GF_DEVICE void hist_count_piece(const gf_hist_args &a, const hist_counters &counters,
                                const hist_piece &piece, uint32_t *table, gf_u64 *record) {
    const uint32_t lane = threadIdx.x % TEAM, lane_copy = threadIdx.x & (counters.copies - 1);
    for (uint64_t offset = 0; offset < piece.most; offset += TEAM) {
        const uint64_t at = piece.begin + offset + lane;
        gf_hist_walk walk = {};
        walk.at = piece.row + at * 16 * (DENSE ? 1 : a.channels);
        walk.row = gf_hist_clamp_distance(a.vectors - at);
        hist_loaded vector = {};
        if (at < piece.end) {
            vector.v = gf_hist_load<T, DENSE>(a, walk);
            vector.valid = gf_hist_valid<T>(a, walk);
        }
        if (MANY)
            vector.channel =
                static_cast<uint32_t>(at % a.measured) * gf_hist_vector<T>::size % a.measured;
        if constexpr (BY == HIST_VALUES) { // counters 256 * channel + value
            uint32_t c = vector.channel * 256;
#pragma unroll
            for (int k = 0; k < 16; k++) {
                uint32_t key = c + (gf_word(vector.v, k / 4) >> k % 4 * 8 & 255);
                if (vector.valid < 16)
                    key = static_cast<uint32_t>(k) < vector.valid ? key : counters.count;
                atomicAdd(&table[key * counters.copies + lane_copy], 1u);
                if (MANY)
                    c = c + 256 == counters.count ? 0 : c + 256;
            }
        } else if constexpr (BY == HIST_BINS)
            hist_count_vector<T, MANY, false, HIST_RANGED>(a, counters, 0, lane_copy, vector,
                                                           table);
        else
            hist_count_global<T, MANY>(a, vector, record);
    }
}

template <uint32_t TEAM> GF_DEVICE void hist_sync_team() {
    if (TEAM <= 32)
        __syncwarp();
    else
        __syncthreads();
}

// Write the counters of a team to the record of its row; of a piece, add them. record: NULL: none.
template <uint32_t TEAM, hist_rows_method BY>
GF_DEVICE void hist_store_row(const gf_hist_args &a, const hist_counters &counters, uint32_t *table,
                              const uint8_t *bin_of, bool is_row, gf_u64 *record) {
    const uint32_t lane = threadIdx.x % TEAM, words = static_cast<uint32_t>(counters.bytes / 4);
    const uint32_t entries = record ? a.measured * a.counters : 0;
    if constexpr (BY == HIST_VALUES) {
        // Lanes process distant values, which are usually in different bins.
        const uint32_t stride = (counters.count + TEAM - 1) / TEAM;
        for (uint32_t k = 0; k < stride; k++) {
            const uint32_t i = lane * stride + (k + lane * stride / 32) % stride;
            const uint32_t sum = i < counters.count ? hist_sum_copies(counters, table, i) : 0;
            if (sum)
                atomicAdd(&table[words + i / 256 * a.counters + bin_of[i % 256]], sum);
        }
        hist_sync_team<TEAM>();
    }
    for (uint32_t i = lane; i < entries; i += TEAM) {
        const uint32_t sum =
            BY == HIST_VALUES ? table[words + i] : hist_sum_copies(counters, table, i);
        if (is_row)
            record[i] = sum;
        else if (sum)
            atomicAdd(&record[i], static_cast<gf_u64>(sum));
    }
}

// Count each row into its record.
// Grid: one team per row or piece of a row, limited to the resident blocks, which loop. Block: 512
// threads in teams of 8, 32 or 512. Reads each sample once, writes each record once; several pieces
// add to it by atomics. Shared memory: the counters of each team, in copies only if the team is a
// block. Registers: 40 to 64 (sm_90).
template <typename T, bool DENSE, bool MANY, uint32_t TEAM, hist_rows_method BY>
__global__ void __launch_bounds__(Policy::THREADS,
                                  BY == HIST_VALUES ? Policy::resident(Policy::BLOCKS) : 2)
    hist_count_rows(const gf_hist_args a, hist_counters counters,
                    const __grid_constant__ hist_records records) {
    extern __shared__ __align__(128) uint32_t hist_shared[];
    __shared__ uint8_t bin_of[256];
    constexpr uint32_t teams = Policy::THREADS / TEAM;
    const uint32_t lane = threadIdx.x % TEAM, team = threadIdx.x / TEAM;
    const uint32_t words = static_cast<uint32_t>(counters.bytes / 4);
    uint32_t *table = hist_shared + (BY == HIST_GLOBAL ? 0 : team * (words + records.extra));
    gf_wait_for_stream();
    if (BY == HIST_VALUES) {
        for (uint32_t v = threadIdx.x; v < 256; v += Policy::THREADS)
            bin_of[v] = static_cast<uint8_t>(gf_hist_bin<uint8_t>(a, static_cast<uint8_t>(v)));
        __syncthreads();
    }
    const uint64_t items = a.rows * records.pieces;
    for (uint64_t base = static_cast<uint64_t>(blockIdx.x) * teams; base < items;
         base += static_cast<uint64_t>(gridDim.x) * teams) {
        const bool active = base + team < items; // idle teams also iterate
        const uint64_t item = active ? base + team : 0;
        const uint64_t y = item / records.pieces, begin = item % records.pieces * records.piece;
        const uint64_t end = begin + records.piece < a.vectors ? begin + records.piece : a.vectors;
        gf_u64 *record = reinterpret_cast<gf_u64 *>(records.data + y * records.stride);
        if constexpr (BY != HIST_GLOBAL) {
            for (uint32_t i = lane; i < words + records.extra; i += TEAM)
                table[i] = 0;
            hist_sync_team<TEAM>();
        }
        const gf_image_row at = gf_find_row(records.images, y);
        const unsigned char *row = a.in + records.images.at[0][at.image] + at.y * a.in_stride;
        hist_count_piece<T, DENSE, MANY, TEAM, BY>(
            a, counters, {row, begin, active ? end : begin, records.piece}, table, record);
        if constexpr (BY == HIST_GLOBAL)
            continue;
        hist_sync_team<TEAM>();
        hist_store_row<TEAM, BY>(a, counters, table, bin_of, records.pieces == 1,
                                 active ? record : nullptr);
        hist_sync_team<TEAM>();
    }
}

template <typename T, uint32_t TEAM, hist_rows_method BY>
static void hist_rows_by(const gf_hist_args &a, const hist_counters &counters,
                         const hist_records &records, gf_queue *queue) {
    const uint64_t teams = Policy::THREADS / TEAM;
    const size_t shared =
        BY == HIST_GLOBAL ? 0 : (counters.bytes + records.extra * sizeof(uint32_t)) * teams;
    gf_hist_layout(a)([&](auto layout) {
        constexpr auto kernel = hist_count_rows<T, (layout > 0), (layout > 1), TEAM, BY>;
        gf_allow_shared<kernel>(shared);
        int resident = 1;
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, Policy::THREADS, shared);
        const uint64_t max = static_cast<uint64_t>(resident > 0 ? resident : 1) * gf_sm_count();
        gf_launch_kernel(kernel, gf_blocks(a.rows * records.pieces, teams, max), Policy::THREADS,
                         shared, queue, a, counters, records);
    });
}

template <typename T>
static void hist_rows(const gf_hist_plan *plan, const gf_strip *strip, gf_hist_args a,
                      gf_queue *queue) {
    const uint64_t min_block_vectors = 2048; // minimum per block
    const uint64_t max = Policy::BLOCKS * gf_sm_count();
    const gf_rows out = gf_strip_records(&plan->head, strip);
    const gf_images<1> images = gf_images_of<1>(&plan->head, strip);
    a.rows *= images.count;
    gf_hist_set_walk(&a, 16 / sizeof(T));
    const uint32_t entries = a.measured * a.counters;
    // Count by value if rows are long enough for the larger table.
    const bool values = sizeof(T) == 1 && gf_hist_used(a) <= 256 && a.vectors > 64;
    hist_counters counters = hist_counters_of(values ? a.measured * 256 : entries);
    hist_records records = {out.data, out.stride, images, 1, a.vectors, values ? entries : 0};
    const auto launch = [&](auto team) {
        if constexpr (sizeof(T) == 1)
            if (values)
                return hist_rows_by<T, team, HIST_VALUES>(a, counters, records, queue);
        hist_rows_by<T, team, HIST_BINS>(a, counters, records, queue);
    };
    // 8 lanes per short row; one warp per row if there are enough rows for all warps.
    const uint32_t words = counters.count + records.extra, capacity = 56 * 1024 / 4;
    const bool few = a.vectors <= 24 && words < capacity / (Policy::THREADS / 8);
    if (few || (words < capacity / Policy::WARPS && a.vectors <= Policy::CHUNK &&
                (a.vectors <= 64 || a.rows >= max * Policy::WARPS / 2))) {
        hist_set_copies(&counters, 1);
        if (few)
            hist_rows_by<T, 8, HIST_BINS>(a, counters, records, queue);
        else
            launch(std::integral_constant<uint32_t, 32>{});
        return;
    }
    if (a.rows < max && a.vectors > min_block_vectors)
        records.piece = gf_divide_up(a.vectors, gf_divide_up(max, a.rows));
    records.piece =
        std::clamp<uint64_t>(records.piece, std::min(a.vectors, min_block_vectors), Policy::CHUNK);
    records.pieces = static_cast<uint32_t>(gf_divide_up(a.vectors, records.piece));
    // Use far fewer counters than samples, and leave shared memory for another block.
    while (counters.copies > 1 && (counters.bytes > records.piece * 16 ||
                                   counters.bytes > hist_count_policy::SHARED_BUDGET / 2))
        hist_set_copies(&counters, counters.copies / 2);
    const bool global = counters.parts > 1;
    if (records.pieces > 1 || global)
        gf_clear_rows({records.data, records.stride, 0, a.rows}, plan->head.record / 8, queue);
    if (global)
        hist_rows_by<T, Policy::THREADS, HIST_GLOBAL>(a, counters, records, queue);
    else
        launch(std::integral_constant<uint32_t, Policy::THREADS>{});
}

// Test whether the tables of `channels` channels fit into the shared memory of a block.
static bool hist_tables_fit(uint32_t channels) {
    const size_t tables = channels == 3 ? hist_table<3>::all : hist_table<4>::all;
    return tables + 8 * 1024 <= gf_attribute<cudaDevAttrMaxSharedMemoryPerBlockOptin>();
}

template <uint32_t TABLES, bool DENSE>
static void hist_launch_values(gf_hist_args a, uint32_t channels, gf_u64 *state, uint32_t *counts,
                               gf_queue *queue) {
    gf_hist_join_rows(&a, 16);
    const dim3 grid(gf_hist_cut_common(&a), 1, channels);
    gf_allow_shared<hist_count_values<TABLES, DENSE>>(hist_table<TABLES>::all);
    gf_launch_kernel(hist_count_values<TABLES, DENSE>, grid, Policy::THREADS,
                     hist_table<TABLES>::all, queue, a, state, counts);
}

// Return the resident blocks per SM of the kernel that counts an image. The tables of three u8
// channels leave shared memory for two.
uint64_t gf_hist_blocks(const gf_hist_plan *plan) {
    const bool wide = plan->head.in.type == GF_U8 && plan->measured == 3 && !plan->per_row;
    return wide && hist_tables_fit(3) ? hist_table<3>::blocks : Policy::BLOCKS;
}

// Queue the kernel for u8. Returns whether it writes counts; with a channel per block it does not.
static bool hist_launch_count(gf_hist_args a, uint8_t, gf_u64 *state, uint32_t *counts,
                              gf_queue *queue) {
    const uint32_t measured = a.measured;
    if (measured >= 3 && !hist_tables_fit(measured)) {
        a.measured = 1;
        hist_launch_values<1, false>(a, measured, state, nullptr, queue);
        return false;
    }
    if (!gf_hist_dense(a))
        hist_launch_values<1, false>(a, 1, state, counts, queue);
    else
        gf_channels{measured}(
            [&](auto n) { hist_launch_values<n, true>(a, 1, state, counts, queue); });
    return true;
}

template <typename T, bool DENSE, bool MANY, bool LARGE, gf_hist_by BY>
static void hist_launch_bins(gf_hist_args a, const hist_counters &counters, uint32_t channels,
                             gf_u64 *state, uint32_t *counts, gf_queue *queue) {
    constexpr int threads = LARGE ? hist_count_policy::LARGE_THREADS : Policy::THREADS;
    gf_hist_join_rows(&a, 16 / sizeof(T), threads);
    dim3 grid(1, counters.parts, channels);
    if (LARGE) // limits the time for counters to that for samples
        grid.x = gf_hist_cut(&a, gf_divide_up(gf_sm_count(), counters.parts * channels),
                             counters.bytes / 64);
    else
        grid.x = gf_hist_cut_common(&a);
    constexpr auto kernel = hist_count_bins<T, DENSE, MANY, LARGE, BY>;
    gf_allow_shared<kernel>(counters.bytes);
    gf_launch_kernel(kernel, grid, threads, counters.bytes, queue, a, counters, state, counts);
}

template <typename T>
static bool hist_launch_count(gf_hist_args a, T, gf_u64 *state, uint32_t *counts, gf_queue *queue) {
    uint32_t channels = 1;
    hist_counters counters = hist_counters_of(a.measured * a.counters);
    if (counters.large && a.measured > 1) {
        channels = a.measured;
        a.measured = 1;
        counters = hist_counters_of(a.counters);
    }
    const bool common = !counters.large && channels == 1 && !a.keys;
    gf_dispatch(
        [&](auto layout, auto large, auto ranged) {
            constexpr bool DENSE = layout > 0, MANY = layout > 1;
            uint32_t *to = common ? counts : nullptr;
            if constexpr (large && sizeof(T) == sizeof(float))
                if (a.keys) // always too many for SHARED_BUDGET
                    return hist_launch_bins<T, DENSE, false, true, HIST_KEYS>(a, counters, channels,
                                                                              state, to, queue);
            hist_launch_bins<T, DENSE, MANY, large, ranged ? HIST_RANGED : HIST_PLAIN>(
                a, counters, channels, state, to, queue);
        },
        gf_hist_layout(a), gf_flag{counters.large}, gf_flag{a.ranged || a.nodata != UINT32_MAX});
    return common;
}

bool gf_hist_queue_count(const gf_hist_plan *plan, const gf_strip *strip, const gf_hist_args &a,
                         gf_u64 *state, uint32_t *counts, gf_queue *queue) {
    bool counted = false;
    gf_for_type(plan->head.in.type, [&](auto sample) {
        if (plan->per_row)
            hist_rows<decltype(sample)>(plan, strip, a, queue);
        else
            counted = hist_launch_count(a, sample, state, counts, queue);
    });
    return counted;
}
