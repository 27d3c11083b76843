// Minima and maxima of windows, along both axes in one kernel, percentile_extreme.
#include "cuda/percentile/device.cuh"

// ---- words --------------------------------------------------------------------------------------

// Return the address `at` bytes after a uniform one.
GF_DEVICE uint32_t *percentile_at(uint32_t *base, uint32_t at) {
    return reinterpret_cast<uint32_t *>(reinterpret_cast<unsigned char *>(base) + at);
}

// The minima of words of keys. Bytes are the high bytes of 16-bit lanes, in two planes: the low
// ones only decide between equal ones.
template <typename T> struct percentile_best {
    static constexpr int PLANES = sizeof(T) == 1 ? 2 : 1;
    static constexpr uint32_t NONE = sizeof(T) == 4 ? INT32_MAX : ~0u;
    uint32_t plane[PLANES];

    __device__ __forceinline__ explicit percentile_best(uint32_t word = NONE) {
        plane[PLANES - 1] = word;
        if constexpr (PLANES == 2)
            plane[0] = word << 8;
    }
    __device__ __forceinline__ void add(const percentile_best &other) {
#pragma unroll
        for (int i = 0; i < PLANES; i++)
            plane[i] = percentile_min<T>(plane[i], other.plane[i]);
    }
    __device__ __forceinline__ uint32_t word() const {
        return PLANES == 1 ? plane[0] : __byte_perm(plane[0], plane[PLANES - 1], 0x7351);
    }
};

// ---- kernel -------------------------------------------------------------------------------------

struct percentile_extreme_args : percentile_args {
    int64_t run; // rows of the output that a block computes
    // Samples that a block computes along x, those that it loads before them, and all of them.
    int tile, halo, span;
    int group, before, after; // see percentile_scan
    // Words of shared memory: those of a row; from a sample to the minima at the begin and at the
    // end of its window; those before the rings and the groups.
    int words, begin, end, rings, groups;
    size_t shared; // bytes
};

struct percentile_extreme_policy {
    static constexpr int THREADS = 768; // at most, with 80 registers
    static constexpr int ROWS = 8;      // per step
    static constexpr int RUN = 12;      // pixels of a thread; the stride is free of bank conflicts
    // Estimated latency of a step of an SM: that of the barriers and loads, in words that the
    // resident blocks would compute in the same time.
    static constexpr double LATENCY = 800;
};

// Transpose words of 4 / sizeof(T) samples.
template <typename T> GF_DEVICE void percentile_transpose(uint32_t *w) {
    const auto zip = [](uint32_t &a, uint32_t &b, uint32_t low, uint32_t high) {
        const uint32_t first = __byte_perm(a, b, low);
        b = __byte_perm(a, b, high);
        a = first;
    };
    if constexpr (sizeof(T) == 1) {
        zip(w[0], w[1], 0x5140, 0x7362);
        zip(w[2], w[3], 0x5140, 0x7362);
        zip(w[0], w[2], 0x5410, 0x7632);
        zip(w[1], w[3], 0x5410, 0x7632);
        const uint32_t middle = w[1];
        w[1] = w[2];
        w[2] = middle;
    } else if constexpr (sizeof(T) == 2) {
        zip(w[0], w[1], 0x5410, 0x7632);
    }
}

// Compute minima along x of a run of pixels per thread, of the rows in shared memory. First those
// from the begin of a.before groups of N pixels before the group of each pixel to the pixel, then
// those from the pixel to the end of a.after groups after its group. Together, those at the ends of
// a window cover it. All threads must call it.
template <int N, typename Best>
GF_DEVICE void percentile_scan(const percentile_extreme_args &a, uint32_t *rows) {
    constexpr int RUN = percentile_extreme_policy::RUN;
    const int at = threadIdx.x * RUN, size = a.words * percentile_extreme_policy::ROWS;
    const bool active = at < size;
    uint32_t *from = rows + at, *groups = rows + a.groups + at / N;
    uint32_t x[RUN], y[RUN];
    Best best;
    if (active)
        gf_load_words<4 * RUN>(x, reinterpret_cast<const unsigned char *>(from));
    if (N > 2 && a.before + a.after > 0) {
#pragma unroll
        for (int j = 0; j < RUN && active; j++) {
            best = j % N == 0 ? Best() : best;
            best.add(Best(x[j]));
            if (j % N == N - 1)
                groups[j / N] = best.word();
        }
        __syncthreads();
    }
    const auto join = [&](int first, int count) {
        Best result;
#pragma unroll 4
        for (int i = 0; i < count && N > 2; i++) // none if N is 2
            result.add(Best(groups[first + i]));
        return result;
    };
    if (!active)
        return;
#pragma unroll
    for (int back = 0; back < 2; back++) {
#pragma unroll
        for (int i = 0; i < RUN; i++) {
            const int j = back ? RUN - 1 - i : i;
            if (i % N == 0)
                best = back ? join(j / N + 1, a.after) : join(j / N - a.before, a.before);
            best.add(Best(x[j]));
            y[j] = best.word();
        }
#pragma unroll
        for (int j = 0; j < RUN; j += 4)
            *reinterpret_cast<uint4 *>(from + (2 - back) * size + j) = gf_vector_of(y + j);
    }
}

// A block, and the column of a thread: the word of PER samples that it loads of each row, and whose
// minima it computes.
template <typename T> struct percentile_block {
    typedef percentile_best<T> Best;
    static constexpr int SIZE = sizeof(T), PER = 4 / SIZE, ROWS = percentile_extreme_policy::ROWS;
    const percentile_extreme_args &a;
    uint32_t *shared;
    // Rows of a window, those that the block computes, and those that it loads.
    const int window = 2 * a.radius[1] + 1;
    const int64_t start = blockIdx.y * a.run, top = a.first + start - a.radius[1];
    const int rows = static_cast<int>(min(a.run, a.rows - start)), all = rows + window - 1;
    // Samples of a row: those of the radius, and the first one of the tile.
    const int C = a.in.channels, reach = a.radius[0] * C, column = threadIdx.x - a.halo / PER;
    const int64_t samples = a.in.width * C, tile = static_cast<int64_t>(blockIdx.x) * a.tile;
    const bool outside = tile < reach || tile + a.tile + reach > samples;
    // Bytes of a row: the column; those that are loaded instead of a column outside the image;
    // those of the column that are in the image. Whether the thread has a column to load, to
    // compute.
    const int64_t at = (tile + column * PER) * SIZE;
    const int64_t inside = at >= 0 && at < a.in.row_bytes ? at : 0;
    const int valid = static_cast<int>(min(a.in.row_bytes - at, static_cast<int64_t>(4)));
    const bool loads = threadIdx.x < static_cast<unsigned>(a.words);
    const bool computes = column >= 0 && column < a.tile / PER && valid > 0;
    const uint32_t fill =
        gf_bits(static_cast<T>(a.in.edge.value)) * (~0u / (~0u >> (32 - 8 * SIZE)));
    const unsigned char *from =
        a.in.in + (top - a.in.first) * static_cast<int64_t>(a.in.stride) + inside;
    unsigned char *to = a.out + (start - (window - 1)) * static_cast<int64_t>(a.out_stride) + at;
    // Places of the samples in shared memory, and of those with their values; ~0: the constant.
    uint32_t own[PER], source[PER];
    uint32_t kept = 0;   // mask of the bytes of alpha
    uint32_t next[ROWS]; // loaded
    // Minima along y. ring: RY <= 3: the last 6 rows. Else of a window: from `slot`, the minima of
    // the rows after each row of the last block of rows; before it, the rows of this block. best:
    // the minima of those.
    uint32_t *ring = shared + a.rings + column * max(window, 7);
    int slot = 0;
    Best best = Best();

    // Find the samples of the column in shared memory. If there is alpha, tiles begin with pixels.
    __device__ __forceinline__ void open() {
        const auto place = [&](int n) { return 4u * (n % C * (a.span / C) + n / C); };
        const int64_t left = tile - a.halo;
#pragma unroll
        for (int i = 0; i < PER; i++) {
            const int n = threadIdx.x * PER + i;
            const int64_t s = left + n;
            own[i] = source[i] = place(n);
            if (s < 0 || s >= samples) {
                const int64_t c = (s + 4096 * C) % C;
                const int64_t x = gf_edge_index(a.in.edge.mode, (s - c) / C, a.in.width);
                const int64_t same = x * C + c - left;
                if (x < 0)
                    source[i] = ~0u;
                else if (same >= 0 && same < a.span) // else not needed
                    source[i] = place(static_cast<int>(same));
            }
            asm volatile("" : "+r"(own[i])); // else it would be computed again
            if (a.alpha && n % C == C - 1)
                kept |= ~0u >> (32 - 8 * SIZE) << 8 * SIZE * i;
        }
        if (computes)
            ring[window - 1] = Best::NONE; // no row is before the first block of rows
    }

    // Load the rows of the step that begins with row i.
    __device__ __forceinline__ void load(int i) {
        if (!loads || i >= all)
            return;
        const int64_t y = top + i;
        if (y >= 0 && y + ROWS <= a.in.height && i + ROWS <= all) {
#pragma unroll
            for (int j = 0; j < ROWS; j++)
                next[j] = *reinterpret_cast<const uint32_t *>(from + j * a.in.stride);
        } else {
#pragma unroll
            for (int j = 0; j < ROWS; j++) {
                const unsigned char *row = gf_window_row(a.in, top + min(i + j, all - 1));
                next[j] = row ? *reinterpret_cast<const uint32_t *>(row + inside) : fill;
            }
        }
        from += ROWS * a.in.stride;
    }

    // Store the loaded rows in shared memory.
    __device__ __forceinline__ void put() {
#pragma unroll
        for (int r = 0; r < ROWS && loads; r += PER) {
            uint32_t w[PER];
#pragma unroll
            for (int i = 0; i < PER; i++)
                w[i] = percentile_key_word<T>(a, next[r + i]);
            percentile_transpose<T>(w);
#pragma unroll
            for (int i = 0; i < PER; i++)
                *percentile_at(shared + r / PER * a.span, own[i]) = w[i];
        }
    }

    // Set the samples outside the image, in rows that are in shared memory.
    __device__ __forceinline__ void extend() {
#pragma unroll
        for (int k = 0; k < PER; k++)
            if (loads && source[k] != own[k])
#pragma unroll
                for (int r = 0; r < ROWS / PER; r++)
                    *percentile_at(shared + r * a.span, own[k]) =
                        source[k] == ~0u ? percentile_key_word<T>(a, fill)
                                         : *percentile_at(shared + r * a.span, source[k]);
    }

    // Compute the minima along x of all rows.
    __device__ __forceinline__ void scan() {
        if (a.group == 12)
            percentile_scan<12, Best>(a, shared);
        else if (a.group == 6)
            percentile_scan<6, Best>(a, shared);
        else if (a.group == 4)
            percentile_scan<4, Best>(a, shared);
        else
            percentile_scan<2, Best>(a, shared);
    }

    // Compute the minima along x of the column in 4 rows, from `row` bytes after the first one.
    __device__ __forceinline__ void join(uint32_t row, uint32_t (&h)[4]) const {
#pragma unroll
        for (int k = 0; k < 4; k++) {
            uint32_t word = own[k % PER] + row + k / PER * 4 * a.span;
            asm("" : "+r"(word)); // else it would be added to both addresses
            Best both(*percentile_at(shared + a.begin, word));
            both.add(Best(*percentile_at(shared + a.end, word)));
            h[k] = both.word();
            if (k % PER == PER - 1)
                percentile_transpose<T>(h + k + 1 - PER);
        }
    }

    // Compute 4 minima along y for a radius of at most 3.
    __device__ __forceinline__ void few(const uint32_t (&h)[4], uint32_t (&y)[4]) {
        uint32_t x[10];
#pragma unroll
        for (int k = 0; k < 10; k++)
            x[k] = k < 6 ? ring[k] : h[k - 6];
        Best m[4] = {Best(h[0]), Best(h[1]), Best(h[2]), Best(h[3])};
#pragma unroll
        for (int d = 1; d <= 3; d++)
            if (d <= a.radius[1])
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    m[k].add(Best(x[k + 7 - 2 * d]));
                    m[k].add(Best(x[k + 6 - 2 * d]));
                }
#pragma unroll
        for (int k = 0; k < 4; k++)
            y[k] = m[k].word();
#pragma unroll
        for (int k = 0; k < 6; k++)
            ring[k] = x[k + 4];
    }

    // Add rows [begin, end) of h to the ring, from the slot of row 0.
    __device__ __forceinline__ void add(uint32_t *to_ring, int begin, int end,
                                        const uint32_t (&h)[4], uint32_t (&y)[4]) {
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (k >= begin && k < end) {
                best.add(Best(h[k]));
                Best both(to_ring[k]);
                both.add(best);
                y[k] = both.word();
                to_ring[k] = h[k];
            }
    }

    // Compute 4 minima along y.
    __device__ __forceinline__ void many(const uint32_t (&h)[4], uint32_t (&y)[4]) {
        if (slot + 4 < window) {
            add(ring + slot, 0, 4, h, y);
            slot += 4;
            return;
        }
        int done = 0;
#pragma unroll 1
        do {
            const int end = min(done + window - slot, 4);
            add(ring + slot - done, done, end, h, y);
            slot += end - done;
            done = end;
            if (slot < window)
                continue;
            best = Best();
#pragma unroll 4
            for (slot = window; slot > 0;) {
                const uint32_t row = ring[--slot];
                ring[slot] = best.word();
                best.add(Best(row));
            }
            best = Best();
        } while (done < 4);
    }

    // Store a word of row y, if it is one of the output, without the bytes after the row.
    __device__ __forceinline__ void store_edge(uint32_t word, unsigned char *out, int y) const {
        if (static_cast<unsigned>(y) >= static_cast<unsigned>(rows))
            return;
        if (a.alpha) {
            const unsigned char *in =
                a.in.in + (a.first - a.in.first + start + y) * static_cast<int64_t>(a.in.stride);
            word = (word & ~kept) | (*reinterpret_cast<const uint32_t *>(in + at) & kept);
        }
        if (valid == 4)
            *reinterpret_cast<uint32_t *>(out) = word;
        else
#pragma unroll 1
            for (int i = 0; i < valid; i += SIZE, word = word >> 8 * SIZE % 32)
                *reinterpret_cast<T *>(out + i) = static_cast<T>(word);
    }

    // Compute and store the minima along y of the step that begins with row i.
    __device__ __forceinline__ void compute(int i) {
        uint32_t at_row = 0;
        int plain = valid == 4 && !a.alpha && i >= window - 1 && i + ROWS <= all;
        asm volatile("" : "+r"(plain)); // else it would be computed again
#pragma unroll 1
        for (int j = 0; j < ROWS && computes; j += 4) {
            uint32_t h[4], y[4];
            join(at_row, h);
            at_row += 4 / PER * 4 * a.span;
            if (a.radius[1] <= 3)
                few(h, y);
            else
                many(h, y);
            if (plain) {
#pragma unroll
                for (int k = 0; k < 4; k++)
                    *reinterpret_cast<uint32_t *>(to + k * a.out_stride) =
                        percentile_sample_word<T>(a, y[k]);
            } else {
#pragma unroll
                for (int k = 0; k < 4; k++)
                    store_edge(percentile_sample_word<T>(a, y[k]), to + k * a.out_stride,
                               i + j + k - (window - 1));
            }
            to += 4 * a.out_stride;
        }
    }
};

// Compute minima or maxima of windows.
// Grid: x: tiles of a.tile samples. y: runs of a.run rows. Block: one thread per 4 bytes of a.span
// samples. A step loads 8 rows ahead, and stores those before them in shared memory by planes of
// channels, in words of the same sample of some rows. The minima along x are transposed back, and
// those along y are computed by the threads of the columns: the minima of blocks of window rows,
// from each row to the end of its block, are kept in shared memory, and joined with those from the
// begin of the next block to each row.
template <typename T>
__global__ void __launch_bounds__(percentile_extreme_policy::THREADS)
    percentile_extreme(const __grid_constant__ percentile_extreme_args a) {
    constexpr int ROWS = percentile_extreme_policy::ROWS;
    extern __shared__ uint4 percentile_memory[];
    percentile_block<T> b{a, reinterpret_cast<uint32_t *>(percentile_memory)};
    b.open();
    gf_wait_for_stream();
#pragma unroll 1
    for (int i = -ROWS; i < b.all; i += ROWS) {
        b.load(i + ROWS); // not for a later iteration: the compiler waits for loads at its begin
        if (i >= 0) {
            __syncthreads();
            if (b.outside) {
                b.extend();
                __syncthreads();
            }
            if (a.radius[0] > 0) {
                b.scan();
                __syncthreads();
            }
            b.compute(i);
            if (a.radius[0] == 0) // b.compute reads what b.put writes
                __syncthreads();
        }
        b.put();
    }
}

// ---- launch -------------------------------------------------------------------------------------

// Lay out the shared memory of tiles of b->tile samples.
template <typename T> static void percentile_extreme_lay_out(percentile_extreme_args *b) {
    typedef percentile_extreme_policy Policy;
    const int PER = 4 / sizeof(T), part = b->in.channels * Policy::RUN;
    b->span = (b->halo + b->tile + b->radius[0] * b->in.channels + part - 1) / part * part;
    b->words = b->span / PER;
    const int size = b->words * Policy::ROWS, scans = b->radius[0] > 0;
    b->begin = scans * (size - b->radius[0]);
    b->end = scans * (2 * size + b->radius[0]);
    b->rings = 3 * size;
    b->groups = b->rings + b->tile / PER * max(2 * b->radius[1] + 1, 7) + b->before;
    b->shared =
        4 * static_cast<size_t>(b->groups + (b->after > 0 ? size / b->group + b->after : 0));
}

// Divide the image into tiles and runs, for the least estimated time. Returns false if windows are
// too large: most samples are loaded for several tiles.
template <typename T> static bool percentile_extreme_divide(percentile_extreme_args *a) {
    typedef percentile_extreme_policy Policy;
    const int UNIT = 32 / sizeof(T), window = 2 * a->radius[0] + 1; // samples of a memory sector
    const int64_t samples = a->in.width * a->in.channels;
    const size_t limit = gf_attribute<cudaDevAttrMaxSharedMemoryPerBlockOptin>();
    const size_t sm_limit = gf_attribute<cudaDevAttrMaxSharedMemoryPerMultiprocessor>();
    // The largest groups such that every window contains a whole one, or parts of two.
    for (int n : {2, 4, 6, 12})
        if (n == 2 || window >= 2 * n || window == n + 1)
            a->group = n;
    const int between = (window - 2 + a->group) / a->group - 1; // groups
    a->after = (between + 1) / 2;
    a->before = between / 2;
    a->halo = (a->radius[0] * a->in.channels + UNIT - 1) / UNIT * UNIT;
    bool narrow = false;
    double least = 0;
    percentile_extreme_args b = *a;
    for (b.tile = Policy::THREADS * 4 / sizeof(T); b.tile > 0; b.tile -= UNIT) {
        percentile_extreme_lay_out<T>(&b);
        if (b.words > Policy::THREADS || b.shared > limit || b.tile >= samples + UNIT)
            continue;
        if (least == 0)
            narrow = b.span > 3 * b.tile && b.tile < samples;
        const uint64_t most = Policy::THREADS / ((b.words + 31) / 32 * 32), one = 1;
        const uint64_t fit = max(min(sm_limit / (b.shared + 1024), most), one); // blocks of an SM
        const uint64_t resident = fit * gf_sm_count(), tiles = gf_divide_up(samples, b.tile);
        b.run = gf_divide_up(a->rows, max(resident / tiles, one));
        b.run = gf_divide_up(b.run, Policy::ROWS) * Policy::ROWS;
        const uint64_t waves = gf_divide_up(tiles * gf_divide_up(a->rows, b.run), resident);
        const int64_t work = b.span * (b.run + 2 * b.radius[1]) + b.tile * b.run;
        const double cost = waves * (fit + Policy::LATENCY / b.words) * work;
        if (least == 0 || cost < least) {
            least = cost;
            *a = b;
        }
    }
    return least > 0 && !narrow;
}

// Return the number of passes: minima of minima are those of a larger window, with all edges.
template <typename T> static int percentile_extreme_passes(const percentile_args &a) {
    percentile_extreme_args b = {};
    int n = 0;
    do {
        n++;
        static_cast<percentile_args &>(b) = a;
        b.rows = 1; // does not matter
        for (int &radius : b.radius)
            radius = (radius + n - 1) / n;
    } while (!percentile_extreme_divide<T>(&b) && n < GF_PERCENTILE_MAX_EXTREME);
    return n;
}

template <typename T>
static void percentile_launch_passes(const percentile_args &args, unsigned char *scratch,
                                     gf_queue *queue) {
    const int n = percentile_extreme_passes<T>(args);
    percentile_extreme_args b = {};
    static_cast<percentile_args &>(b) = args;
    size_t most = 0; // bytes of the result of a pass
    for (int pass = 0, rest = args.radius[1]; pass < n; pass++) {
        for (int i = 0; i < 2; i++)
            b.radius[i] = args.radius[i] * (pass + 1) / n - args.radius[i] * pass / n;
        rest -= b.radius[1];
        b.first = max(args.first - rest, int64_t{0});
        b.rows = min(args.first + args.rows + rest, b.in.height) - b.first;
        b.out = args.out;
        b.out_stride = args.out_stride;
        if (pass + 1 < n) {
            b.out_stride = gf_align(static_cast<size_t>(b.in.row_bytes));
            b.out = scratch + pass % 2 * most;
            most = pass == 0 ? static_cast<size_t>(b.rows) * b.out_stride : most;
        }
        percentile_extreme_divide<T>(&b);
        gf_allow_shared<percentile_extreme<T>>(b.shared);
        gf_launch_kernel(percentile_extreme<T>,
                         dim3(gf_blocks(static_cast<uint64_t>(b.in.width * b.in.channels), b.tile),
                              gf_blocks(b.rows, b.run)),
                         (b.words + 31) / 32 * 32, b.shared, queue, b);
        b.in.in = b.out;
        b.in.stride = b.out_stride;
        b.in.first = b.first;
    }
}

size_t percentile_extreme_bytes(const percentile_args &a, gf_type type, uint64_t in_rows) {
    size_t bytes = 0;
    gf_for_type(type, [&](auto sample) {
        typedef decltype(sample) T;
        if (percentile_extreme_passes<T>(a) > 1)
            bytes = 2 * in_rows * gf_align(static_cast<size_t>(a.in.row_bytes));
    });
    return bytes;
}

void percentile_launch_extreme(const percentile_args &a, gf_type type, unsigned char *scratch,
                               gf_queue *queue) {
    gf_for_type(
        type, [&](auto sample) { percentile_launch_passes<decltype(sample)>(a, scratch, queue); });
}
