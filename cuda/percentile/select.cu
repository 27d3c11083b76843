// Order statistics of any window.
//
// The samples of the columns of a tile are counted in 4 levels of 4 classes each. The window slides
// down: a column loses a sample and gets one. The counters of a window are the sums of those of
// its columns, most of which are counted in groups. The search reads the 4 counters of a class per
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
GF_DEVICE int64_t percentile_column(const percentile_args &a, const percentile_tile &tile, int t) {
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
    uint32_t own, group; // addresses of the thread
    // Addresses of the window of the thread: the groups, and columns that are to be added
    // (sign 1) or subtracted.
    uint32_t one, two, many, single[GROUP - 1];
    int count, sign; // groups
    bool small;      // all sums fit in bytes

    static __device__ __forceinline__ constexpr uint32_t base(int level) {
        return ((1 << 2 * level) - 1) / 3 * STRIDE * 4;
    }

    static __device__ __forceinline__ uint32_t load(uint32_t address) {
        uint32_t x;
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(address) : "memory");
        return x;
    }

    // Start with samples that are all 0. Return the column of thread t.
    __device__ __forceinline__ int open(const percentile_args &a, uint32_t *shared, int t) {
        const int width = 2 * a.radius[0] + 1, c = t % GROUPS * GROUP + t / GROUPS;
        const uint32_t start = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
        sign = width % GROUP == GROUP - 1 ? 1 : -1;
        count = width / GROUP + (sign < 0);
        const int g = (c + (sign > 0) * (GROUP - 1)) / GROUP;
        const int begin = min(c, g * GROUP), middle = max(c, g * GROUP);
        const int end = min(c + width, (g + count) * GROUP);
        small = width * (2 * a.radius[1] + 1) <= 255 && count < 4;
        own = start + 4 * t;
        group = start + 4 * (COLUMNS + t % GROUPS);
        one = start + 4 * (COLUMNS + g);
        two = one + count % 2 * 4;
        many = two + (count & 2) * 4;
        // Else the compiler would compute these addresses again and again.
        asm volatile("" : "+r"(own), "+r"(group), "+r"(one), "+r"(two), "+r"(many));
#pragma unroll
        for (int i = 0; i < GROUP - 1; i++) {
            const int at = begin + i < middle ? begin + i : end + i - (middle - begin);
            single[i] = start + 4 * (at % GROUP * GROUPS + at / GROUP);
            asm volatile("" : "+r"(single[i]));
        }
        for (int w = 0; w < WORDS / STRIDE; w++) {
            const int n = w == 0 || w == 1 || w == 5 || w == 21 ? 2 * a.radius[1] + 1 : 0;
            shared[w * STRIDE + t] = n;
            shared[w * STRIDE + COLUMNS + t % GROUPS] = n * GROUP;
        }
        return c;
    }

    __device__ __forceinline__ void change(uint32_t offset, uint32_t n) const {
        asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(own + offset), "r"(n) : "memory");
        asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(group + offset), "r"(n) : "memory");
    }

    // Count a sample that enters the column of the thread, and no longer the one that leaves it.
    __device__ __forceinline__ void slide(uint32_t entering, uint32_t leaving) const {
#pragma unroll
        for (int level = 0; level < LEVELS; level++) {
            const uint32_t x = entering >> (6 - 2 * level), y = leaving >> (6 - 2 * level);
            const uint32_t more = __funnelshift_l(0, 1, 8 * x),
                           less = __funnelshift_l(0, ~0u, 8 * y);
            if (level == 0) {
                change(0, more + less);
            } else {
                change((x >> 2) * (STRIDE * 4) + base(level), more);
                change((y >> 2) * (STRIDE * 4) + base(level), less);
            }
        }
    }

    // Return the value of the sample at an index of the sorted window, and subtract from the index
    // the number of lower values.
    template <bool SMALL> __device__ __forceinline__ uint32_t find_of(uint32_t *index) const {
        constexpr uint32_t EVEN = 0x00ff00ffu;
        uint32_t value = 0, rest = ~*index; // the sum of rest and a greater number is negative
#pragma unroll
        for (int level = 0; level < LEVELS; level++) {
            const uint32_t at = value * (STRIDE * 4) + base(level);
            uint32_t w[GROUP - 1], u[4] = {}, all = 0, even = 0; // counters; the even ones
            const auto sum = [&](uint32_t x) {
                all += x;
                even += SMALL ? 0 : x & EVEN;
            };
#pragma unroll
            for (int i = 0; i < GROUP - 1; i++)
                w[i] = load(single[i] + at);
            if (count & 1)
                u[0] = load(one + at);
            if (count & 2)
                u[1] = load(two + at), u[2] = load(two + at + 4);
#pragma unroll
            for (int i = 0; i < GROUP - 1; i++)
                sum(w[i]);
            all *= sign, even *= sign;
#pragma unroll
            for (int i = 0; i < 3; i++)
                sum(u[i]);
            uint32_t next = many + at;
#pragma unroll 1
            for (int i = count; !SMALL && i > 3; i -= 4, next += 16) {
#pragma unroll
                for (int k = 0; k < 4; k++)
                    u[k] = load(next + 4 * k);
#pragma unroll
                for (int k = 0; k < 4; k++)
                    sum(u[k]);
            }
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

    __device__ __forceinline__ uint32_t find(uint32_t *index) const {
        return small ? find_of<true>(index) : find_of<false>(index);
    }
};

// ---- u8 -----------------------------------------------------------------------------------------

// Grid: tiles, channels first. Block: a thread per column of the tile and its halo. Shared memory:
// 112 KB for 256 columns, so that two blocks are resident; 72 registers.
template <int COLUMNS, int GROUP>
__global__ void __launch_bounds__(COLUMNS, 512 / COLUMNS)
    percentile_bytes(const __grid_constant__ percentile_args a,
                     const __grid_constant__ percentile_tiles tiles) {
    constexpr int CHUNK = 8; // rows that are loaded and stored at once
    if (gf_arch < 800)       // never launched: too little shared memory
        return;
    extern __shared__ uint32_t percentile_words[];
    __shared__ const unsigned char *source[2 * CHUNK];
    __shared__ bool outside[2 * CHUNK];
    // One row more: the samples of the next step are read ahead.
    __shared__ uint8_t rows[2 * CHUNK + 1][COLUMNS], results[CHUNK][COLUMNS];
    const percentile_tile tile = percentile_tile_of(a, tiles);
    const int t = threadIdx.x, height = 2 * a.radius[1] + 1;
    int steps = tile.rows + height - 1;
    asm volatile("" : "+r"(steps)); // else the compiler would compute it again and again
    const int64_t at = percentile_column(a, tile, t);
    unsigned char *to =
        percentile_out<unsigned char>(a, tile.top) + (tile.left + t) * a.in.channels + tile.channel;
    percentile_counts<COLUMNS, GROUP> counts;
    const int c = counts.open(a, percentile_words, t);
    gf_wait_for_stream();
    if (percentile_copies<uint8_t>(a, tile))
        return;
    uint8_t next[2 * CHUNK]; // samples of the rows that enter and leave the window
    const auto locate = [&](int step) {
        if (t >= 2 * CHUNK)
            return;
        const int row = max(min(step + t % CHUNK, steps - 1) - t / CHUNK * height, 0);
        const unsigned char *from = gf_window_row(a.in, tile.top - a.radius[1] + row);
        source[t] = from ? from : a.in.in;
        outside[t] = !from;
    };
    const auto load = [&]() {
#pragma unroll
        for (int k = 0; k < 2 * CHUNK; k++)
            next[k] = source[k][max(at, static_cast<int64_t>(0))];
        if (a.in.edge.mode == GF_EDGE_CONSTANT)
#pragma unroll
            for (int k = 0; k < 2 * CHUNK; k++)
                next[k] = outside[k] || at < 0 ? static_cast<uint8_t>(a.in.edge.value) : next[k];
    };
    locate(0);
    __syncthreads();
    load();
    __syncthreads();
#pragma unroll 1
    for (int step = 0;; step += CHUNK) {
#pragma unroll
        for (int k = 0; k < CHUNK; k++) {
            const int last = step + k - CHUNK;
            if (last >= height - 1 && last < steps && t < tile.columns) {
                *to = results[k][t];
                to += a.out_stride;
            }
        }
        if (step >= steps)
            return;
#pragma unroll
        for (int k = 0; k < 2 * CHUNK; k++)
            rows[k][t] = k >= CHUNK && step + k - CHUNK < height ? 0 : next[k];
        locate(step + CHUNK);
        __syncthreads();
        load();
        uint32_t entering = rows[0][c], leaving = rows[CHUNK][c];
#pragma unroll 1
        for (int k = 0; k < min(CHUNK, steps - step); k++) {
            counts.slide(entering, leaving);
            entering = rows[k + 1][c], leaving = rows[CHUNK + k + 1][c];
            __syncthreads();
            uint32_t index = a.index;
            if (c < tile.columns && step + k >= height - 1)
                results[k][c] = static_cast<uint8_t>(counts.find(&index));
            __syncthreads();
        }
    }
}

// ---- u16 and f32 --------------------------------------------------------------------------------

// A tile of SAMPLES samples with its halo. PARTS parts of its rows are computed at the same time.
template <int COLUMNS, int GROUP, int PARTS, int ITEMS> struct percentile_sorted {
    static constexpr int THREADS = 1024, SAMPLES = THREADS * ITEMS, ROWS = SAMPLES / COLUMNS;
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
};

// Grid: tiles, channels first. Block: 1024 threads. All sort; one thread per column and part
// counts.
template <typename T, int COLUMNS, int GROUP, int PARTS, int ITEMS>
__global__ void __launch_bounds__(1024, 1)
    percentile_ranks(const __grid_constant__ percentile_args a,
                     const __grid_constant__ percentile_tiles tiles) {
    typedef percentile_sorted<COLUMNS, GROUP, PARTS, ITEMS> Shared;
    constexpr int ALL = Shared::ROWS * COLUMNS;
    if (gf_arch < 800) // never launched
        return;
    extern __shared__ uint32_t percentile_words[];
    Shared &s = *reinterpret_cast<Shared *>(percentile_words);
    const percentile_tile tile = percentile_tile_of(a, tiles);
    const int t = threadIdx.x, height = 2 * a.radius[1] + 1;
    gf_wait_for_stream();
    if (percentile_copies<T>(a, tile))
        return;
    if (t < 256) {
        s.column[t] = percentile_column(a, tile, t);
        s.row[t] = gf_window_row(a.in, tile.top - a.radius[1] + min(t, tile.rows + height - 2));
    }
    __syncthreads();
    const auto sample = [&](uint32_t position) {
        const T *row = reinterpret_cast<const T *>(s.row[position >> 8]);
        const int64_t at = s.column[position & 255];
        return row && at >= 0 ? row[at] : static_cast<T>(a.in.edge.value);
    };
    uint32_t items[ITEMS]; // 16 bits of a key, and a position
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int n = t + i * Shared::THREADS;
        items[i] = n < ALL ? n / COLUMNS << 8 | n % COLUMNS : 0xffff; // in no window
    }
#pragma unroll 1
    for (int shift = 0; shift < 8 * static_cast<int>(sizeof(T)); shift += 16) {
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const uint32_t position = items[i] & 0xffff, key = percentile_key_of(sample(position));
            items[i] = (key ^ (sizeof(T) == 4 ? 1u << 31 : 0)) >> shift << 16 | position;
        }
        typename Shared::Sort(s.sort).Sort(items, 16, 32);
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const uint32_t rank = t * ITEMS + i, x = items[i] & 255, y = items[i] >> 8 & 255;
        s.groups.positions[rank / Shared::SIZE][rank % Shared::SIZE] = y << 8 | x;
        if (x < COLUMNS)
            s.groups.group[y * COLUMNS + x] = rank / Shared::SIZE;
    }
    const int part = t / COLUMNS, rows = (tile.rows + PARTS - 1) / PARTS, first = part * rows;
    const uint32_t width = 2 * a.radius[0];
    percentile_counts<COLUMNS, GROUP> counts;
    int c = COLUMNS;
    if (part < PARTS)
        c = counts.open(a, s.groups.counts[part], t % COLUMNS);
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
            uint32_t index = a.index, inside;
            const uint16_t *position = s.groups.positions[counts.find(&index)];
            for (;; position += 8) {
                inside = 0; // bits: whether positions are in the window
#pragma unroll
                for (int k = 0; k < 8; k += 2) {
                    const uint32_t two = *reinterpret_cast<const uint32_t *>(position + k);
#pragma unroll
                    for (int i = 0; i < 2; i++)
                        if ((two >> 16 * i & 255) - c <= width &&
                            (two >> (16 * i + 8) & 255) - y < static_cast<uint32_t>(height))
                            inside |= 1u << (k + i);
                }
                if (index < __popc(inside))
                    break;
                index -= __popc(inside);
            }
            for (; index > 0; index--)
                inside &= inside - 1;
            const T result = sample(position[__ffs(inside) - 1]);
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
    // Choose the height of tiles: the first window costs as much as some rows, and the blocks of
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

template <typename T, int COLUMNS, int GROUP, int PARTS, int ITEMS>
static bool percentile_launch_ranks(const percentile_args &a, gf_queue *queue) {
    typedef percentile_sorted<COLUMNS, GROUP, PARTS, ITEMS> Shared;
    return percentile_launch_tiles<percentile_ranks<T, COLUMNS, GROUP, PARTS, ITEMS>>(
        a, COLUMNS - 2 * a.radius[0], Shared::ROWS - 2 * a.radius[1], Shared::THREADS,
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
                       ? percentile_launch_ranks<T, 192, 2, 1, 32>(a, queue)
                       : percentile_launch_ranks<T, 128, 4, 3, 16>(a, queue);
    if (!launched)
        gf_launch_kernel(percentile_search<T>,
                         dim3(gf_blocks(static_cast<uint64_t>(a.in.width) * a.in.channels, 256),
                              gf_blocks(a.rows, 1, 65535)),
                         256, 0, queue, a);
}

void percentile_launch_select(const percentile_args &a, gf_type type, gf_queue *queue) {
    gf_for_type(type, [&](auto sample) { percentile_launch_any<decltype(sample)>(a, queue); });
}
