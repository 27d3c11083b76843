// Counting kernels of hist. The counters are in shared memory.
//
//   kernel              used for                   counters
//   hist_count          u16 and f32, whole images  one per bin, in up to 32 copies; divided among
//                                                  blocks if there are too many
//   hist_count_values   u8, whole images           one per value and lane: always conflict-free
//   hist_count_rows     counts per row             one per value or bin, or only the record itself;
//                                                  a team of 8 lanes, a warp or a block per row
#ifndef GF_HIST_COUNT_CUH
#define GF_HIST_COUNT_CUH

#include "cuda/hist/device.cuh"

// ---- values of u8 -------------------------------------------------------------------------------

// The 256 values are counted; only the totals are mapped to bins. A sample costs a shift, a mask
// and an atomic addition in shared memory, for any bins.

// Layout of the counters. One and three channels: each value has 32 counters, one per lane,
// therefore access is conflict-free for every image. Two and four channels are processed in pairs:
// each value has 16 counters for each channel of a pair. While lanes 0 to 15 count one channel,
// lanes 16 to 31 count the other.
template <uint32_t Tables> struct HistTable {
    static constexpr bool pairs = Tables % 2 == 0;
    static constexpr uint32_t bytes = 256 * 32 * 4; // per channel or pair
    static constexpr uint32_t all = (pairs ? Tables / 2 : Tables) * bytes;
    static constexpr int blocks = all > 66 * 1024 ? 2 : HIST_BLOCKS; // resident blocks per SM
    static constexpr int batch = blocks == 2 ? 4 : 2; // vectors loaded before the first is used

    // Return the index of a channel's first counter.
    static __device__ __forceinline__ uint32_t first(uint32_t c) {
        return pairs ? c / 2 * (bytes / 4) + c % 2 * 16 : c * (bytes / 4);
    }
};

// Load the next vectors of a thread. valid: samples of each vector; 0 after the chunk. channel:
// channel of its first sample.
template <typename T, bool Dense, int Threads, int Batch>
GF_DEVICE void hist_load_batch(const HistArgs &a, HistWalk *walk, uint4 (&v)[Batch],
                               uint32_t (&valid)[Batch], uint32_t (&channel)[Batch]) {
#pragma unroll
    for (int b = 0; b < Batch; b++) {
        valid[b] = 0;
        if (walk->left > 0) {
            v[b] = hist_load<T, Dense>(a, *walk);
            valid[b] = hist_valid<T>(a, *walk);
        }
        channel[b] = walk->channel;
        hist_step<Threads>(a, walk);
    }
}

// Add to the number of samples of an extracted bin in this block's chunk. It is stored as
// counts[nth * blocks + block].
GF_DEVICE void hist_add_selected(const HistArgs &a, uint32_t *selected, uint32_t bin,
                                 uint32_t sum) {
    const uint32_t nth = hist_nth(a, bin);
    if (nth < a.extracts && nth < GF_HIST_MAX_LISTED)
        atomicAdd(&selected[nth], sum);
}

GF_DEVICE void hist_store_selected(const HistArgs &a, const uint32_t *selected, uint32_t *counts) {
    __syncthreads();
    if (counts && threadIdx.x < a.extracts && threadIdx.x < GF_HIST_MAX_LISTED)
        counts[threadIdx.x * gridDim.x + blockIdx.x] = selected[threadIdx.x];
}

// Set the samples after the first `valid` ones to 0.
GF_DEVICE uint4 hist_mask_tail(uint4 v, uint32_t valid) {
    const auto keep = [&](uint32_t word, int before) {
        const int left = static_cast<int>(valid) - before;
        return left >= 4 ? word : left <= 0 ? 0 : word & ((1u << left * 8) - 1);
    };
    return make_uint4(keep(v.x, 0), keep(v.y, 4), keep(v.z, 8), keep(v.w, 12));
}

// Count the values of u8.
// Grid: one block per chunk; z: channels, if each block counts only one. Block: 512 threads; a
// thread processes every 512th vector of the chunk. Tables: measured channels. Reads each byte
// once; without Dense, whole pixels. Adds to the state; if counts is not NULL, also stores the
// number of samples of each extracted bin. Tail: the bytes missing at the end of a row are counted
// as zeros and subtracted at the end. Shared memory: a HistTable (32 to 96 KB), and 2 to 5 KB
// static. Registers: 40 with 3 resident blocks, 64 with 2 (sm_90).
template <uint32_t Tables, bool Dense>
__global__ void __launch_bounds__(HIST_THREADS, HIST_RESIDENT(HistTable<Tables>::blocks))
    hist_count_values(HistArgs a, hist_u64 *state, uint32_t *counts) {
    typedef HistTable<Tables> Table;
    constexpr int batch = Table::batch;
    extern __shared__ __align__(128) uint32_t hist_shared[];
    __shared__ uint32_t sums[Tables * 256], selected[GF_HIST_MAX_LISTED];
    __shared__ uint32_t bin_of[256];
    gf_wait_for_stream();
    for (uint32_t i = threadIdx.x; i < Table::all / 16; i += HIST_THREADS)
        reinterpret_cast<uint4 *>(hist_shared)[i] = make_uint4(0, 0, 0, 0);
    if (threadIdx.x < GF_HIST_MAX_LISTED)
        selected[threadIdx.x] = 0;
    for (uint32_t i = threadIdx.x; i < Tables * 256; i += HIST_THREADS)
        sums[i] = 0;
    if (threadIdx.x < 256)
        bin_of[threadIdx.x] = hist_bin<uint8_t>(a, static_cast<uint8_t>(threadIdx.x));
    __syncthreads();

    uint32_t column; // in a register: otherwise the lane is masked for every sample
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(column));
    const uint32_t order = column < 16 ? 0x3210 : 0x2301; // upper lanes swap the bytes of a pair
    column *= 4;
    uint32_t padding[Tables] = {};
    HistWalk walk = hist_walk<uint8_t, Dense>(a);
    while (walk.left > 0) {
        uint4 v[batch];
        uint32_t valid[batch], channel[batch];
        hist_load_batch<uint8_t, Dense, HIST_THREADS>(a, &walk, v, valid, channel);
#pragma unroll
        for (int b = 0; b < batch; b++) {
            if (valid[b] == 0)
                continue;
            if (valid[b] < 16) {
                v[b] = hist_mask_tail(v[b], valid[b]);
#pragma unroll
                for (uint32_t c = 0; c < Tables; c++) // a row starts with its first channel
                    padding[c] += (16 - valid[b] + Tables - 1 - c) / Tables;
            }
            const uint32_t c = Tables == 3 ? channel[b] : 0; // otherwise always the first channel
            const uint32_t at[3] = {column + c * Table::bytes,
                                    column + (c == 2 ? 0 : c + 1) * Table::bytes,
                                    column + (c == 0 ? 2 : c - 1) * Table::bytes};
#pragma unroll
            for (int k = 0; k < 16; k++) {
                uint32_t word = gf_word(v[b], k / 4);
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
    for (uint32_t c = 0; c < Tables; c++) // subtract from any counter of value 0
        if (padding[c])
            atomicSub(&hist_shared[Table::first(c)], padding[c]);

    __syncthreads();
    const auto add_to_state = [&](uint32_t c, uint32_t bin, uint32_t sum) {
        atomicAdd(&state[(blockIdx.z + c) * a.counters + bin], static_cast<hist_u64>(sum));
        if (counts)
            hist_add_selected(a, selected, bin, sum);
    };
    // Up to 256 counters are summed by bin before they are added to the state.
    const bool few = hist_used(a) <= 256;
    for (uint32_t i = threadIdx.x; i < Tables * 256; i += HIST_THREADS) {
        constexpr uint32_t columns = Table::pairs ? 16 : 32;
        const uint32_t c = i / 256, row = i % 256 * 32, bin = bin_of[i % 256];
        const uint32_t *from = hist_shared + row + Table::first(c);
        uint32_t sum = 0;
        for (uint32_t k = 0; k < columns; k++) // each thread starts at another bank
            sum += from[(k + threadIdx.x) % columns];
        if (sum > 0 && few)
            atomicAdd(&sums[c * 256 + bin], sum);
        else if (sum > 0)
            add_to_state(c, bin, sum);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < Tables * 256 && few; i += HIST_THREADS)
        if (sums[i] > 0)
            add_to_state(i / 256, i % 256, sums[i]);
    hist_store_selected(a, selected, counts);
}

// ---- bins of u16 and f32 ------------------------------------------------------------------------

#define HIST_SHARED_BUDGET (66 * 1024) // shared memory that allows HIST_BLOCKS resident blocks
#define HIST_LARGE_THREADS 1024

// Counters of a block, in shared memory, 32 bits each.
struct HistCounters {
    uint32_t count;  // counters of all channels, consecutively; one more counts all other samples
    uint32_t copies; // a power of two, at most 32; lane l adds to copy l % copies
    uint32_t parts;  // blocks with `count` counters each, if one block cannot hold all of them
    size_t bytes;    // of shared memory
    bool large;      // exceeds HIST_SHARED_BUDGET: one resident block with more threads
};

static inline void hist_set_copies(HistCounters *counters, uint32_t copies) {
    counters->copies = copies;
    counters->bytes = (static_cast<size_t>(counters->count) + 1) * copies * 4;
}

static inline HistCounters hist_counters(uint32_t count) {
    const size_t max = gf_attribute<cudaDevAttrMaxSharedMemoryPerBlockOptin>() - 1024;
    const size_t limit = HIST_SHARED_BUDGET < max ? HIST_SHARED_BUDGET : max;
    HistCounters counters = {count, 32, 1, 0, false};
    counters.parts = static_cast<uint32_t>(gf_divide_up(static_cast<size_t>(count) * 4 + 4, max));
    counters.count = static_cast<uint32_t>(gf_divide_up(count, counters.parts));
    hist_set_copies(&counters, 32);
    while (counters.copies > 1 && counters.bytes > limit)
        hist_set_copies(&counters, counters.copies / 2);
    counters.large = counters.bytes > limit;
    return counters;
}

// Return the sum of all copies of counter i. Each thread starts at another bank.
GF_DEVICE uint32_t hist_sum_copies(const HistCounters &counters, const uint32_t *shared,
                                   uint32_t i) {
    uint32_t sum = 0;
    for (uint32_t k = 0; k < counters.copies; k++)
        sum += shared[i * counters.copies + ((k + threadIdx.x) & (counters.copies - 1))];
    return sum;
}

// Compute the counter index of each sample of a vector.
template <typename T, bool Many, HistBy By>
GF_DEVICE void hist_keys_of(const HistArgs &a, const uint4 &v, uint32_t channel,
                            uint32_t (&keys)[hist_vector<T>::size]) {
    hist_bins<T, By>(a, v, keys);
    if (!Many)
        return;
    uint32_t base = channel * a.counters;
    const uint32_t all = a.measured * a.counters;
#pragma unroll
    for (int k = 0; k < hist_vector<T>::size; k++) {
        keys[k] += base;
        base += a.counters;
        base = base == all ? 0 : base;
    }
}

// Add the samples of a vector to the counters from..from + count - 1. Other samples are added to
// the counter after them, which is faster than a branch. The hardware combines shared-memory
// increments of all lanes with the same address.
template <typename T, bool Many, bool Parts, HistBy By>
GF_DEVICE void hist_count_vector(const HistArgs &a, const HistCounters &counters, uint32_t from,
                                 uint32_t lane_copy, const uint4 &v, uint32_t valid,
                                 uint32_t channel, uint32_t *shared) {
    constexpr int size = hist_vector<T>::size;
    uint32_t keys[size];
    hist_keys_of<T, Many, By>(a, v, channel, keys);
    if (Parts) {
#pragma unroll
        for (int k = 0; k < size; k++)
            keys[k] = min(keys[k] - from, counters.count);
    }
    if (valid < size) {
#pragma unroll
        for (int k = 0; k < size; k++)
            keys[k] = static_cast<uint32_t>(k) < valid ? keys[k] : counters.count;
    }
#pragma unroll
    for (int k = 0; k < size; k++)
        atomicAdd(&shared[keys[k] * counters.copies + lane_copy], 1u);
}

// Count the bins of u16 and f32, and for statistics their values.
// Grid: x: one block per chunk; y: parts of the bins, if there are too many for one block; z:
// channels. Block: 512 threads, or 1024 if Large; a thread processes every 512th (1024th) vector of
// the chunk. Reads each sample (without Dense, its whole pixel) once per y and z. Blocks with the
// same x run at about the same time and share the reads through the cache. Adds to the state; if
// counts is not NULL, also stores the number of samples of each extracted bin. Shared memory:
// HistCounters::bytes. Registers: 32 to 64 (sm_90).
template <typename T, bool Dense, bool Many, bool Large, HistBy By>
__global__ void __launch_bounds__(Large ? HIST_LARGE_THREADS : HIST_THREADS,
                                  Large ? 1 : HIST_RESIDENT(HIST_BLOCKS))
    hist_count(HistArgs a, HistCounters counters, hist_u64 *state, uint32_t *counts) {
    constexpr int threads = Large ? HIST_LARGE_THREADS : HIST_THREADS;
    constexpr int batch = !Dense ? 1 : By == HIST_RANGED ? 2 : 4;
    extern __shared__ __align__(128) uint32_t hist_shared[];
    __shared__ uint32_t selected[GF_HIST_MAX_LISTED];
    gf_wait_for_stream();
    for (uint32_t i = threadIdx.x; i < counters.bytes / 4; i += threads)
        hist_shared[i] = 0;
    if (threadIdx.x < GF_HIST_MAX_LISTED)
        selected[threadIdx.x] = 0;
    __syncthreads();

    const uint32_t lane_copy = threadIdx.x & (counters.copies - 1);
    const uint32_t from = Large ? blockIdx.y * counters.count : 0;
    HistWalk walk = hist_walk<T, Dense>(a);
    for (uint32_t iterations = (hist_iterations<threads>(walk) + batch - 1) / batch; iterations > 0;
         iterations--) {
        uint4 v[batch];
        uint32_t valid[batch], channel[batch];
        hist_load_batch<T, Dense, threads>(a, &walk, v, valid, channel);
#pragma unroll
        for (int b = 0; b < batch; b++)
            hist_count_vector<T, Many, Large, By>(a, counters, from, lane_copy, v[b], valid[b],
                                                  channel[b], hist_shared);
    }

    __syncthreads();
    const uint32_t all = a.measured * a.counters;
    state += static_cast<uint64_t>(blockIdx.z) * a.counters;
    for (uint32_t i = threadIdx.x; i < counters.count && from + i < all; i += threads) {
        const uint32_t sum = hist_sum_copies(counters, hist_shared, i);
        if (sum == 0)
            continue;
        atomicAdd(&state[from + i], static_cast<hist_u64>(sum));
        const uint32_t bin = Many ? i % a.counters : i;
        if (!Large && counts)
            hist_add_selected(a, selected, bin, sum);
    }
    if (!Large)
        hist_store_selected(a, selected, counts);
}

// ---- rows ---------------------------------------------------------------------------------------

struct HistRecords {
    unsigned char *data; // of the first row
    size_t stride;
    gf_images<1> images; // rows: of all images in order
    uint32_t pieces; // per row, one per team. Several, and those without counters in shared memory,
                     // add to a zeroed record
    uint64_t piece;  // vectors per piece
    uint32_t extra;  // words after a team's counters, for the bins of its values
};

// Counting method of hist_count_rows.
enum HistRowsBy {
    HIST_VALUES, // u8 values in shared memory; mapped to bins at the end; at most 256 counters
    HIST_BINS,   // bins in shared memory
    HIST_GLOBAL  // bins in the record, in global memory
};

// Add the samples of a vector to the record. A run of equal samples is added at once.
template <typename T, bool Many>
GF_DEVICE void hist_count_global(const HistArgs &a, const uint4 &v, uint32_t valid,
                                 uint32_t channel, hist_u64 *record) {
    constexpr int size = hist_vector<T>::size;
    uint32_t keys[size], run = 0;
    hist_keys_of<T, Many, HIST_RANGED>(a, v, channel, keys);
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

// Count the vectors of a piece, one per lane of the team and iteration. All teams run the number of
// iterations of the longest piece. HIST_VALUES: counter 256 * channel + value.
template <typename T, bool Dense, bool Many, uint32_t Team, HistRowsBy By>
GF_DEVICE void hist_count_piece(const HistArgs &a, const HistCounters &counters,
                                const unsigned char *row, uint64_t begin, uint64_t end,
                                uint64_t piece, uint32_t *table, hist_u64 *record) {
    const uint32_t lane = threadIdx.x % Team, lane_copy = threadIdx.x & (counters.copies - 1);
    for (uint64_t offset = 0; offset < piece; offset += Team) {
        const uint64_t at = begin + offset + lane;
        HistWalk walk = {};
        walk.at = row + at * 16 * (Dense ? 1 : a.channels);
        walk.row = hist_clamp_distance(a.vectors - at);
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
                uint32_t key = c + (gf_word(v, k / 4) >> k % 4 * 8 & 255);
                if (valid < 16)
                    key = static_cast<uint32_t>(k) < valid ? key : counters.count;
                atomicAdd(&table[key * counters.copies + lane_copy], 1u);
                if (Many)
                    c = c + 256 == counters.count ? 0 : c + 256;
            }
        } else if constexpr (By == HIST_BINS) {
            hist_count_vector<T, Many, false, HIST_RANGED>(a, counters, 0, lane_copy, v, valid,
                                                           channel, table);
        } else {
            hist_count_global<T, Many>(a, v, valid, channel, record);
        }
    }
}

// Count each row into its record.
// Grid: one team per row or piece of a row, limited to the resident blocks, which loop. Block: 512
// threads in teams of 8, 32 or 512. Reads each sample once, writes each record once; several pieces
// add to it by atomics. Shared memory: the counters of each team, in copies only if the team is a
// block. Registers: 39 to 64 (sm_90).
template <typename T, bool Dense, bool Many, uint32_t Team, HistRowsBy By>
__global__ void __launch_bounds__(HIST_THREADS, By == HIST_VALUES ? HIST_RESIDENT(HIST_BLOCKS) : 2)
    hist_count_rows(const HistArgs a, HistCounters counters,
                    const __grid_constant__ HistRecords records) {
    extern __shared__ __align__(128) uint32_t hist_shared[];
    __shared__ uint8_t bin_of[256];
    constexpr uint32_t teams = HIST_THREADS / Team;
    const uint32_t lane = threadIdx.x % Team, team = threadIdx.x / Team;
    const uint32_t words = static_cast<uint32_t>(counters.bytes / 4);
    const uint32_t entries = a.measured * a.counters;
    uint32_t *table = hist_shared + (By == HIST_GLOBAL ? 0 : team * (words + records.extra));
    const auto sync = [] {
        if (Team <= 32)
            __syncwarp();
        else
            __syncthreads();
    };
    gf_wait_for_stream();
    if (By == HIST_VALUES) {
        for (uint32_t v = threadIdx.x; v < 256; v += HIST_THREADS)
            bin_of[v] = static_cast<uint8_t>(hist_bin<uint8_t>(a, static_cast<uint8_t>(v)));
        __syncthreads();
    }
    const uint64_t items = a.rows * records.pieces;
    for (uint64_t base = static_cast<uint64_t>(blockIdx.x) * teams; base < items;
         base += static_cast<uint64_t>(gridDim.x) * teams) {
        const bool active = base + team < items; // idle teams also iterate
        const uint64_t item = active ? base + team : 0;
        const uint64_t y = item / records.pieces, begin = item % records.pieces * records.piece;
        uint64_t end = begin + records.piece < a.vectors ? begin + records.piece : a.vectors;
        end = active ? end : begin;
        hist_u64 *record = reinterpret_cast<hist_u64 *>(records.data + y * records.stride);
        if constexpr (By != HIST_GLOBAL) {
            for (uint32_t i = lane; i < words + records.extra; i += Team)
                table[i] = 0;
            sync();
        }
        const gf_image_row at = gf_find_row(records.images, y);
        const unsigned char *row = a.in + records.images.at[0][at.image] + at.y * a.in_stride;
        hist_count_piece<T, Dense, Many, Team, By>(a, counters, row, begin, end, records.piece,
                                                   table, record);
        if constexpr (By == HIST_GLOBAL)
            continue;
        sync();
        const uint32_t *sums = table + words;
        if constexpr (By == HIST_VALUES) {
            // Lanes process distant values, which are usually in different bins.
            const uint32_t stride = (counters.count + Team - 1) / Team;
            for (uint32_t k = 0; k < stride; k++) {
                const uint32_t i = lane * stride + (k + lane * stride / 32) % stride;
                const uint32_t sum = i < counters.count ? hist_sum_copies(counters, table, i) : 0;
                if (sum)
                    atomicAdd(&table[words + i / 256 * a.counters + bin_of[i % 256]], sum);
            }
            sync();
        }
        for (uint32_t i = lane; i < entries && active; i += Team) {
            const uint32_t sum = By == HIST_VALUES ? sums[i] : hist_sum_copies(counters, table, i);
            if (records.pieces == 1)
                record[i] = sum;
            else if (sum)
                atomicAdd(&record[i], static_cast<hist_u64>(sum));
        }
        sync();
    }
}

template <typename T, uint32_t Team, HistRowsBy By>
static void hist_rows_by(const HistArgs &a, const HistCounters &counters,
                         const HistRecords &records, gf_queue *queue) {
    const uint64_t teams = HIST_THREADS / Team;
    hist_for_layout(a, [&](auto dense, auto many) {
        constexpr auto kernel =
            hist_count_rows<T, decltype(dense)::value, decltype(many)::value, Team, By>;
        const size_t shared =
            By == HIST_GLOBAL ? 0 : (counters.bytes + records.extra * sizeof(uint32_t)) * teams;
        hist_set_max_shared<kernel>();
        int resident = 1;
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, HIST_THREADS, shared);
        const uint64_t max = static_cast<uint64_t>(resident > 0 ? resident : 1) * gf_sm_count();
        gf_launch_kernel(kernel, gf_blocks(a.rows * records.pieces, teams, max), HIST_THREADS,
                         shared, queue, a, counters, records);
    });
}

template <typename T, uint32_t Team>
static void hist_rows_in(const HistArgs &a, bool values, const HistCounters &counters,
                         const HistRecords &records, gf_queue *queue) {
    if constexpr (sizeof(T) == 1)
        if (values) {
            hist_rows_by<T, Team, HIST_VALUES>(a, counters, records, queue);
            return;
        }
    hist_rows_by<T, Team, HIST_BINS>(a, counters, records, queue);
}

template <typename T>
static void hist_rows(const gf_hist_plan *plan, const gf_strip *strip, HistArgs a,
                      gf_queue *queue) {
    const uint64_t min_block_vectors = 2048; // minimum per block
    const uint64_t max = HIST_BLOCKS * gf_sm_count();
    const gf_rows out = gf_strip_records(&plan->head, strip);
    const gf_images<1> images = gf_images_of<1>(&plan->head, strip);
    a.rows *= images.count;
    hist_set_walk(&a, 16 / sizeof(T));
    const uint32_t entries = a.measured * a.counters;
    // Count by value if rows are long enough for the larger table.
    const bool values = sizeof(T) == 1 && hist_used(a) <= 256 && a.vectors > 64;
    HistCounters counters = hist_counters(values ? a.measured * 256 : entries);
    HistRecords records = {out.data, out.stride, images, 1, a.vectors, values ? entries : 0};
    // 8 lanes per short row; one warp per row if there are enough rows for all warps.
    const uint32_t words = counters.count + records.extra, capacity = 56 * 1024 / 4;
    const bool few = a.vectors <= 24 && words < capacity / (HIST_THREADS / 8);
    if (few || (words < capacity / HIST_WARPS && a.vectors <= HIST_CHUNK &&
                (a.vectors <= 64 || a.rows >= max * HIST_WARPS / 2))) {
        hist_set_copies(&counters, 1);
        if (few)
            hist_rows_by<T, 8, HIST_BINS>(a, counters, records, queue);
        else
            hist_rows_in<T, 32>(a, values, counters, records, queue);
        return;
    }
    if (a.rows < max && a.vectors > min_block_vectors)
        records.piece = gf_divide_up(a.vectors, gf_divide_up(max, a.rows));
    if (records.piece < min_block_vectors)
        records.piece = a.vectors < min_block_vectors ? a.vectors : min_block_vectors;
    if (records.piece > HIST_CHUNK)
        records.piece = HIST_CHUNK;
    records.pieces = static_cast<uint32_t>(gf_divide_up(a.vectors, records.piece));
    // Use far fewer counters than samples, and leave shared memory for another block.
    while (counters.copies > 1 &&
           (counters.bytes > records.piece * 16 || counters.bytes > HIST_SHARED_BUDGET / 2))
        hist_set_copies(&counters, counters.copies / 2);
    const bool global = counters.parts > 1;
    if (records.pieces > 1 || global)
        gf_clear_rows({records.data, records.stride, 0, a.rows}, plan->head.record / 8, queue);
    if (global)
        hist_rows_by<T, HIST_THREADS, HIST_GLOBAL>(a, counters, records, queue);
    else
        hist_rows_in<T, HIST_THREADS>(a, values, counters, records, queue);
}

#endif
