// Order statistics of any window.
//
// The samples of the columns of a tile are counted in 4 levels of 4 classes each. The window slides
// down: a column loses a sample and gets one. The counters of a window are sums over groups of
// columns, and over the columns at their ends. The search reads the 4 counters of a class per
// level; its cost depends on the radius and not on the samples. u8: the classes are values. u16 and
// f32: the samples of a tile are sorted and divided into 256 groups of equal size, and the result
// is found in its group by the positions of the samples.
#include <cub/block/block_radix_sort.cuh>

#include "cuda/percentile/device.cuh"

// Tiles of the output.
struct percentile_tiles {
    int columns, rows; // of a tile
    uint32_t across;   // number of tiles along x
};

// The tile of a block: one channel.
struct percentile_tile {
    int64_t left, top;
    int columns, rows, channel;
};

GF_DEVICE percentile_tile percentile_tile_of(const percentile_args &a,
                                             const percentile_tiles &tiles) {
    const uint32_t tile = blockIdx.x / a.in.channels;
    const int64_t left = static_cast<int64_t>(tile % tiles.across) * tiles.columns;
    const int64_t row = static_cast<int64_t>(tile / tiles.across) * tiles.rows;
    return {left, a.first + row,
            static_cast<int>(min(static_cast<int64_t>(tiles.columns), a.in.width - left)),
            static_cast<int>(min(static_cast<int64_t>(tiles.rows), a.rows - row)),
            static_cast<int>(blockIdx.x % a.in.channels)};
}

// Copy the tile if it is alpha.
template <typename T>
GF_DEVICE bool percentile_copies(const percentile_args &a, const percentile_tile &tile) {
    const int64_t C = a.in.channels, c = tile.channel;
    if (!a.alpha || c != C - 1)
        return false;
    for (int64_t y = tile.top; y < tile.top + tile.rows; y++)
        for (int64_t x = tile.left + threadIdx.x; x < tile.left + tile.columns; x += blockDim.x)
            percentile_out<T>(a, y)[x * C + c] =
                reinterpret_cast<const T *>(gf_window_row(a.in, y))[x * C + c];
    return true;
}

// Return the position in its row of the sample in column t of a tile with its halo; -1: the
// constant. Columns after the last window are not used.
GF_DEVICE int64_t percentile_position(const percentile_args &a, const percentile_tile &tile,
                                      int t) {
    const int64_t x = tile.left - a.radius[0] + min(t, tile.columns - 1 + 2 * a.radius[0]);
    const int64_t at = gf_edge_index(a.in.edge.mode, x, a.in.width);
    return at < 0 ? -1 : at * a.in.channels + tile.channel;
}

// ---- counters -----------------------------------------------------------------------------------

// In shared memory, a word has the 4 counters of a class. Word w of thread t is at w * STRIDE + t,
// that of group g of GROUP columns at w * STRIDE + COLUMNS + g. Thread t has column t % GROUPS *
// GROUP + t / GROUPS: a warp accesses consecutive columns, groups and windows without conflicts.
// GROUP * (2 RY + 1) is at most 255.
template <int COLUMNS, int GROUP> struct percentile_counts {
    static constexpr int GROUPS = COLUMNS / GROUP, STRIDE = COLUMNS + GROUPS;
    static constexpr int LEVELS = 4, WORDS = 85 * STRIDE;
    static_assert(GROUPS % 32 == 0, "t / GROUPS is equal in a warp");
    uint32_t here; // address of word 0 of thread t % GROUPS
    // Offsets from there, equal in a warp: the column of the thread, and its window: columns that
    // are to be added (sign 1) or subtracted, the groups in their order, in up to 3 parts.
    uint32_t own, single[GROUP - 1], one, two, many;
    int count, sign; // groups
    bool small;      // all sums fit in bytes
    // Words of the groups from `one` and `two`. Those that are not used remain 0: no instruction
    // sets them.
    uint32_t few[3] = {};

    // Return the offset of the first word of a level.
    static __device__ __forceinline__ constexpr uint32_t base(int level) {
        return ((1 << 2 * level) - 1) / 3 * STRIDE * 4;
    }

    static __device__ __forceinline__ uint32_t load(uint32_t address) {
        uint32_t x;
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(address) : "memory");
        return x;
    }

    static __device__ __forceinline__ void add(uint32_t address, uint32_t n) {
        asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(address), "r"(n) : "memory");
    }

    // Start with samples that are all 0. Return the column of thread t. All threads of a warp must
    // call it.
    __device__ __forceinline__ int open(const percentile_args &a, uint32_t *shared, int t) {
        const int height = 2 * a.radius[1] + 1;
        here = static_cast<uint32_t>(__cvta_generic_to_shared(shared + t % GROUPS));
        asm volatile("" : "+r"(here)); // else the compiler would compute it again and again
        set_window(2 * a.radius[0] + 1, t / GROUPS);
        small = (2 * a.radius[0] + 1) * height <= 255 && count < 4;
        for (int w = 0; w < WORDS / STRIDE; w++) {
            const int n = w == 0 || w == 1 || w == 5 || w == 21 ? height : 0;
            shared[w * STRIDE + t] = n;
            shared[w * STRIDE + COLUMNS + t % GROUPS] = n * GROUP;
        }
        return t % GROUPS * GROUP + t / GROUPS;
    }

    // Set the offsets of windows of this width, from column c of a group. After a shuffle, the
    // compiler knows that they are equal in a warp: the addition of a uniform register is free.
    __device__ __forceinline__ void set_window(int width, int c) {
        sign = width % GROUP == GROUP - 1 ? 1 : -1;
        count = width / GROUP + (sign < 0);
        const int first = sign > 0 && c > 0; // group
        own = __shfl_sync(GF_WARP, 4 * GROUPS * c, 0);
        one = __shfl_sync(GF_WARP, 4 * (COLUMNS + first), 0);
        two = one + count % 2 * 4;
        many = two + (count & 2) * 4;
        // The columns before the groups or before the window, then those at the other end
        const int begin = min(c, first * GROUP), before = max(c, first * GROUP) - begin;
        const int end = min(c + width, (first + count) * GROUP);
#pragma unroll
        for (int i = 0; i < GROUP - 1; i++) {
            const int at = i < before ? begin + i : end + i - before;
            single[i] = __shfl_sync(GF_WARP, 4 * (at % GROUP * GROUPS + at / GROUP), 0);
        }
    }

    // Count a sample that enters the column of the thread, and no longer the one that leaves it.
    __device__ __forceinline__ void slide(uint32_t entering, uint32_t leaving) const {
        const auto change = [&](uint32_t value, int level, uint32_t n) {
            const uint32_t at = here + value * (4 * STRIDE);
            add(at + own + base(level), n);
            add(at + (4 * COLUMNS + base(level)), n);
        };
#pragma unroll
        for (int level = 0; level < LEVELS; level++) {
            const uint32_t x = entering >> (6 - 2 * level), y = leaving >> (6 - 2 * level);
            const uint32_t more = __funnelshift_l(0, 1, 8 * x);
            const uint32_t less = __funnelshift_l(0, ~0u, 8 * y);
            if (level == 0) {
                change(0, level, more + less);
            } else {
                change(x >> 2, level, more);
                change(y >> 2, level, less);
            }
        }
    }

    // Sum the words of the class at an address: all counters, and the even ones if not SMALL.
    template <bool SMALL>
    __device__ __forceinline__ void sum(uint32_t at, uint32_t *all, uint32_t *even) {
        *all = *even = 0;
        const auto include = [&](uint32_t x) {
            *all += x;
            *even += SMALL ? 0 : x & 0x00ff00ffu;
        };
        uint32_t w[4]; // all loads precede the sums
#pragma unroll
        for (int i = 0; i < GROUP - 1; i++)
            w[i] = load(at + single[i]);
        if (count & 1)
            few[0] = load(at + one);
        if (count & 2)
            few[1] = load(at + two), few[2] = load(at + two + 4);
#pragma unroll
        for (int i = 0; i < GROUP - 1; i++)
            include(w[i]);
        *all *= sign, *even *= sign;
#pragma unroll
        for (int i = 0; i < 3; i++)
            include(few[i]);
        uint32_t next = at + many;
#pragma unroll 1
        for (int i = count; !SMALL && i > 3; i -= 4, next += 16) {
#pragma unroll
            for (int k = 0; k < 4; k++)
                w[k] = load(next + 4 * k);
#pragma unroll
            for (int k = 0; k < 4; k++)
                include(w[k]);
        }
    }

    // Return the value of the sample at an index of the sorted window, and subtract from the index
    // the number of lower values.
    template <bool SMALL> __device__ __forceinline__ uint32_t find_of(uint32_t *index) {
        uint32_t value = 0, rest = ~*index; // the sum of rest and a greater number is negative
#pragma unroll
        for (int level = 0; level < LEVELS; level++) {
            uint32_t all, even;
            sum<SMALL>(here + value * (4 * STRIDE) + base(level), &all, &even);
            uint32_t e[3]; // negative if the sum of the first counters is at most the index
            if (SMALL) {
                e[0] = __dp4a(all, 0x000001u, rest);
                e[1] = __dp4a(all, 0x000101u, rest);
                e[2] = __dp4a(all, 0x010101u, rest);
            } else {
                e[0] = rest + (even & 0xffff);
                e[1] = e[0] + __byte_perm(all - even, 0, 0x4421);
                e[2] = e[1] + (even >> 16);
            }
            value = 4 * value + (e[0] >> 31) + (e[1] >> 31) + (e[2] >> 31);
            rest = max(max(rest, e[0]), max(e[1], e[2]));
        }
        *index = ~rest;
        return value;
    }

    __device__ __forceinline__ uint32_t find(uint32_t *index) {
        return small ? find_of<true>(index) : find_of<false>(index);
    }
};

// ---- u8 -----------------------------------------------------------------------------------------

// The column of a tile and its halo whose samples a thread loads, and whose results it stores, ROWS
// rows at a time.
template <int COLUMNS> struct percentile_column {
    static constexpr int ROWS = 8;
    // In shared memory: the rows that enter the windows, those that leave them, and one more, as
    // the samples of the next step are read ahead. The results replace the entering samples.
    struct Shared {
        const unsigned char *source[2 * ROWS];
        bool outside[2 * ROWS];
        uint8_t samples[2 * ROWS + 1][COLUMNS];
    };
    const percentile_args &a;
    const percentile_tile tile;
    Shared &s;
    int t, height, steps;   // the thread; rows of a window, of the tile
    int64_t at;             // position in an input row; -1: the constant
    unsigned char *to;      // the next result
    uint8_t next[2 * ROWS]; // loaded samples

    __device__ __forceinline__ void open() {
        t = threadIdx.x, height = 2 * a.radius[1] + 1, steps = tile.rows + height - 1;
        asm volatile("" : "+r"(steps)); // else the compiler would compute it again and again
        at = percentile_position(a, tile, t);
        to = percentile_out<unsigned char>(a, tile.top) + (tile.left + t) * a.in.channels +
             tile.channel;
    }

    // Locate the rows of the next steps, from this one.
    __device__ __forceinline__ void locate(int step) {
        if (t >= 2 * ROWS)
            return;
        const int row = max(min(step + t % ROWS, steps - 1) - t / ROWS * height, 0);
        const unsigned char *from = gf_window_row(a.in, tile.top - a.radius[1] + row);
        s.source[t] = from ? from : a.in.in;
        s.outside[t] = !from;
    }

    // Start to load the samples of these rows.
    __device__ __forceinline__ void load() {
#pragma unroll
        for (int k = 0; k < 2 * ROWS; k++)
            next[k] = s.source[k][max(at, static_cast<int64_t>(0))];
        if (a.in.edge.mode == GF_EDGE_CONSTANT)
#pragma unroll
            for (int k = 0; k < 2 * ROWS; k++)
                next[k] = s.outside[k] || at < 0 ? static_cast<uint8_t>(a.in.edge.value) : next[k];
    }

    // Store the results of the steps before this one.
    __device__ __forceinline__ void store(int step) {
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            const int last = step + k - ROWS;
            if (last >= height - 1 && last < steps && t < tile.columns) {
                *to = s.samples[k][t];
                to += a.out_stride;
            }
        }
    }

    // Pass on the loaded samples. Before the first window is complete, zeros leave it.
    __device__ __forceinline__ void share(int step) {
#pragma unroll
        for (int k = 0; k < 2 * ROWS; k++)
            s.samples[k][t] = k >= ROWS && step + k - ROWS < height ? 0 : next[k];
    }

    // Compute the rows of the steps from this one. c: the column that the thread counts.
    template <typename Counts>
    __device__ __forceinline__ void compute(Counts &counts, int step, int c) {
        uint8_t *row = &s.samples[0][c];
        uint32_t entering = row[0], leaving = row[ROWS * COLUMNS];
#pragma unroll 1
        for (int k = 0; k < min(ROWS, steps - step); k++, row += COLUMNS) {
            counts.slide(entering, leaving);
            entering = row[COLUMNS], leaving = row[(ROWS + 1) * COLUMNS];
            asm volatile("" : "+r"(entering), "+r"(leaving)); // else they would be 16-bit integers
            __syncthreads();
            uint32_t index = a.index;
            if (c < tile.columns && step + k >= height - 1)
                *row = static_cast<uint8_t>(counts.find(&index));
            __syncthreads();
        }
    }
};

// Grid: tiles, channels first. Block: a thread per column of the tile and its halo. Shared memory:
// 111 KB for 256 columns, so that two blocks are resident; 70 registers.
template <int COLUMNS, int GROUP>
__global__ void __launch_bounds__(COLUMNS, 512 / COLUMNS)
    percentile_bytes(const __grid_constant__ percentile_args a,
                     const __grid_constant__ percentile_tiles tiles) {
    typedef percentile_column<COLUMNS> Column;
    if (gf_arch < 800) // never launched: too little shared memory
        return;
    extern __shared__ uint32_t percentile_words[];
    __shared__ typename Column::Shared shared;
    Column column = {a, percentile_tile_of(a, tiles), shared};
    percentile_counts<COLUMNS, GROUP> counts;
    column.open();
    const int c = counts.open(a, percentile_words, threadIdx.x);
    gf_wait_for_stream();
    if (percentile_copies<uint8_t>(a, column.tile))
        return;
    column.locate(0);
    __syncthreads();
    column.load();
    __syncthreads();
#pragma unroll 1
    for (int step = 0;; step += Column::ROWS) {
        column.store(step);
        if (step >= column.steps)
            return;
        column.share(step);
        column.locate(step + Column::ROWS);
        __syncthreads();
        column.load();
        column.compute(counts, step, c);
    }
}

// ---- u16 and f32 --------------------------------------------------------------------------------

// A tile of SAMPLES samples with its halo. PARTS parts of its rows are computed at the same time.
template <typename Sample, int TILE_COLUMNS, int GROUP, int TILE_PARTS, int ITEMS>
struct percentile_sorted {
    typedef Sample T;
    static constexpr int COLUMNS = TILE_COLUMNS, PARTS = TILE_PARTS, THREADS = 1024;
    static constexpr int SAMPLES = THREADS * ITEMS, ROWS = SAMPLES / COLUMNS;
    static constexpr int SIZE = SAMPLES / 256, STRIDE = SIZE + 2; // of a group; without conflicts
    typedef cub::BlockRadixSort<uint32_t, THREADS, ITEMS> Sort;
    typedef percentile_counts<COLUMNS, GROUP> Counts;
    struct Groups {
        uint32_t counts[PARTS][Counts::WORDS];
        uint16_t positions[256][STRIDE]; // y * 256 + x of the samples in ascending order
        uint8_t group[ROWS * COLUMNS];   // of the samples
    };
    union {
        typename Sort::TempStorage sort;
        Groups groups;
    };
    const unsigned char *row[256];
    int64_t column[256];

    __device__ __forceinline__ void locate(const percentile_args &a, const percentile_tile &tile) {
        const int t = threadIdx.x, last = tile.rows - 1 + 2 * a.radius[1];
        if (t < 256) {
            column[t] = percentile_position(a, tile, t);
            row[t] = gf_window_row(a.in, tile.top - a.radius[1] + min(t, last));
        }
    }

    // Return the sample at a position.
    __device__ __forceinline__ T load(const percentile_args &a, uint32_t position) const {
        const T *from = reinterpret_cast<const T *>(row[position >> 8]);
        const int64_t at = column[position & 255];
        return from && at >= 0 ? from[at] : static_cast<T>(a.in.edge.value);
    }

    // Sort the positions of all samples. An item has 16 bits of a key, and a position.
    __device__ __forceinline__ void sort_items(const percentile_args &a, uint32_t (&items)[ITEMS]) {
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const int n = threadIdx.x + i * THREADS;
            items[i] = n < ROWS * COLUMNS ? n / COLUMNS << 8 | n % COLUMNS : 0xffff; // no window
        }
#pragma unroll 1
        for (int shift = 0; shift < 8 * static_cast<int>(sizeof(T)); shift += 16) {
#pragma unroll
            for (int i = 0; i < ITEMS; i++) {
                const uint32_t position = items[i] & 0xffff;
                const uint32_t key = percentile_key_of(load(a, position));
                items[i] = (key ^ (sizeof(T) == 4 ? 1u << 31 : 0)) >> shift << 16 | position;
            }
            Sort(sort).Sort(items, 16, 32);
            __syncthreads();
        }
    }

    // Divide the sorted samples into groups.
    __device__ __forceinline__ void set_groups(const uint32_t (&items)[ITEMS]) {
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const uint32_t rank = threadIdx.x * ITEMS + i;
            const uint32_t x = items[i] & 255, y = items[i] >> 8 & 255;
            groups.positions[rank / SIZE][rank % SIZE] = y << 8 | x;
            if (x < COLUMNS)
                groups.group[y * COLUMNS + x] = rank / SIZE;
        }
    }

    // Return the position of sample `index` of those of a group that are in the window at (x, y).
    __device__ __forceinline__ uint32_t find(const percentile_args &a, uint32_t group,
                                             uint32_t index, int x, int y) const {
        const uint32_t width = 2 * a.radius[0], height = 2 * a.radius[1]; // without the first ones
        const uint16_t *position = groups.positions[group];
        uint32_t inside; // bits: whether positions are in the window
        for (;; position += 8) {
            inside = 0;
#pragma unroll
            for (int k = 0; k < 8; k += 2) {
                const uint32_t two = *reinterpret_cast<const uint32_t *>(position + k);
#pragma unroll
                for (int i = 0; i < 2; i++)
                    if ((two >> 16 * i & 255) - x <= width &&
                        (two >> (16 * i + 8) & 255) - y <= height)
                        inside |= 1u << (k + i);
            }
            if (index < __popc(inside))
                break;
            index -= __popc(inside);
        }
        for (; index > 0; index--)
            inside &= inside - 1;
        return position[__ffs(inside) - 1];
    }
};

// Grid: tiles, channels first. Block: 1024 threads. All sort; one thread per column and part
// counts. The tile takes most of the shared memory of an SM; 64 registers.
template <typename Shared>
__global__ void __launch_bounds__(Shared::THREADS, 1)
    percentile_ranks(const __grid_constant__ percentile_args a,
                     const __grid_constant__ percentile_tiles tiles) {
    typedef typename Shared::T T;
    constexpr int COLUMNS = Shared::COLUMNS, PARTS = Shared::PARTS;
    if (gf_arch < 800) // never launched
        return;
    extern __shared__ uint32_t percentile_words[];
    Shared &s = *reinterpret_cast<Shared *>(percentile_words);
    const percentile_tile tile = percentile_tile_of(a, tiles);
    gf_wait_for_stream();
    if (percentile_copies<T>(a, tile))
        return;
    s.locate(a, tile);
    __syncthreads();
    uint32_t items[Shared::SAMPLES / Shared::THREADS];
    s.sort_items(a, items);
    s.set_groups(items);
    const int part = threadIdx.x / COLUMNS, rows = (tile.rows + PARTS - 1) / PARTS;
    const int first = part * rows, height = 2 * a.radius[1] + 1;
    typename Shared::Counts counts;
    int c = COLUMNS;
    if (part < PARTS)
        c = counts.open(a, s.groups.counts[part], threadIdx.x % COLUMNS);
    __syncthreads();
    const uint8_t *group = s.groups.group + first * COLUMNS + c;
#pragma unroll 1
    for (int step = 0; step < rows + height - 1; step++, group += COLUMNS) {
        const int y = first + step - (height - 1);
        const bool active = part < PARTS && y < tile.rows;
        if (active)
            counts.slide(*group, step < height ? 0 : group[-height * COLUMNS]);
        __syncthreads();
        if (active && c < tile.columns && step >= height - 1) {
            uint32_t index = a.index;
            const uint32_t found = counts.find(&index);
            const T result = s.load(a, s.find(a, found, index, c, y));
            percentile_out<T>(a, tile.top + y)[(tile.left + c) * a.in.channels + tile.channel] =
                percentile_sample_of<T>(percentile_key_of(result));
        }
        __syncthreads();
    }
}

// ---- without enough shared memory ---------------------------------------------------------------

// Compute a result per thread: the bits of its key, from the highest one.
// Grid: groups of 256 samples of a row, strided. y: rows, strided.
template <typename T>
__global__ void __launch_bounds__(256)
    percentile_search(const __grid_constant__ percentile_args a) {
    typedef typename percentile_key<T>::Type Key;
    constexpr uint32_t SIGN = sizeof(T) == 4 ? 1u << 31 : 0;
    const int64_t i = blockIdx.x * int64_t(256) + threadIdx.x, C = a.in.channels;
    gf_wait_for_stream();
    if (i >= a.in.width * C)
        return;
    for (int64_t y = a.first + blockIdx.y; y < a.first + a.rows; y += gridDim.y) {
        uint32_t result = 0; // unsigned, in the order of the keys
#pragma unroll 1
        for (uint32_t bit = 1u << (8 * sizeof(T) - 1); bit != 0; bit >>= 1) {
            const Key limit = static_cast<Key>((result | bit) ^ SIGN);
            uint32_t below = 0;
            for (int dy = -a.radius[1]; dy <= a.radius[1]; dy++)
                for (int dx = -a.radius[0]; dx <= a.radius[0]; dx++)
                    below += percentile_key_of(gf_window_sample<T>(
                                 a.in, gf_window_row(a.in, y + dy), i + dx * C)) < limit;
            if (below <= a.index)
                result |= bit;
        }
        percentile_out<T>(a, y)[i] = a.alpha && i % C == C - 1
                                         ? reinterpret_cast<const T *>(gf_window_row(a.in, y))[i]
                                         : percentile_sample_of<T>(static_cast<Key>(result ^ SIGN));
    }
}

// ---- launch -------------------------------------------------------------------------------------

// Launch a kernel on tiles of at most these columns and rows. Return false if the device has not
// enough shared memory.
template <auto KERNEL>
static bool percentile_launch_tiles(const percentile_args &a, int columns, int64_t rows,
                                    unsigned threads, size_t shared, gf_queue *queue) {
    if (!gf_allow_shared<KERNEL>(shared))
        return false;
    percentile_tiles tiles;
    tiles.across = static_cast<uint32_t>(gf_divide_up(a.in.width, columns));
    tiles.columns = static_cast<int>(gf_divide_up(a.in.width, tiles.across));
    const uint64_t down = gf_divide_up(a.rows, rows);
    tiles.rows = static_cast<int>(gf_divide_up(a.rows, down));
    gf_launch_kernel(KERNEL, dim3(static_cast<unsigned>(tiles.across * down * a.in.channels)),
                     threads, shared, queue, a, tiles);
    return true;
}

template <int COLUMNS, int GROUP>
static bool percentile_launch_bytes(const percentile_args &a, gf_queue *queue) {
    constexpr size_t shared = sizeof(uint32_t) * percentile_counts<COLUMNS, GROUP>::WORDS;
    const int columns = COLUMNS - 2 * a.radius[0];
    // Choose the height of tiles: the first window takes the time of some rows, and the blocks of
    // the last wave may leave SMs idle.
    const uint64_t slots = gf_sm_count() * (512 / COLUMNS > 1 ? 512 / COLUMNS : 1);
    const uint64_t blocks = gf_divide_up(a.in.width, columns) * a.in.channels;
    uint64_t best = UINT64_MAX, rows = 1;
    for (uint64_t n = 1; n <= 64; n++) {
        const uint64_t height = gf_divide_up(a.rows, n);
        const uint64_t cost = gf_divide_up(blocks * n, slots) * (height + a.radius[1] + 8);
        if (cost < best)
            best = cost, rows = height;
    }
    return percentile_launch_tiles<percentile_bytes<COLUMNS, GROUP>>(a, columns, rows, COLUMNS,
                                                                     shared, queue);
}

template <typename Shared>
static bool percentile_launch_ranks(const percentile_args &a, gf_queue *queue) {
    return percentile_launch_tiles<percentile_ranks<Shared>>(
        a, Shared::COLUMNS - 2 * a.radius[0], Shared::ROWS - 2 * a.radius[1], Shared::THREADS,
        sizeof(Shared), queue);
}

template <typename T> static void percentile_launch_any(const percentile_args &a, gf_queue *queue) {
    bool launched;
    if constexpr (sizeof(T) == 1)
        launched = a.radius[1] > 31   ? percentile_launch_bytes<384, 2>(a, queue)
                   : a.radius[0] > 15 ? percentile_launch_bytes<512, 4>(a, queue)
                                      : percentile_launch_bytes<256, 4>(a, queue);
    else
        launched = max(a.radius[0], a.radius[1]) > 31
                       ? percentile_launch_ranks<percentile_sorted<T, 192, 2, 1, 32>>(a, queue)
                       : percentile_launch_ranks<percentile_sorted<T, 128, 4, 3, 16>>(a, queue);
    if (!launched)
        gf_launch_kernel(percentile_search<T>,
                         dim3(gf_blocks(static_cast<uint64_t>(a.in.width) * a.in.channels, 256),
                              gf_blocks(a.rows, 1, 65535)),
                         256, 0, queue, a);
}

void percentile_launch_select(const percentile_args &a, gf_type type, gf_queue *queue) {
    gf_for_type(type, [&](auto sample) { percentile_launch_any<decltype(sample)>(a, queue); });
}
