// Minima and maxima of windows, along both axes in one kernel, percentile_extreme.
#include "cuda/percentile/device.cuh"

// ---- words --------------------------------------------------------------------------------------

// Convert a word of samples to one of keys.
template <typename T> GF_DEVICE uint32_t percentile_keys(uint32_t word) {
    if constexpr (sizeof(T) == 4)
        word = static_cast<uint32_t>(percentile_key_of(__uint_as_float(word)));
    return word;
}

// Convert it back.
template <typename T> GF_DEVICE uint32_t percentile_samples(uint32_t word) {
    if constexpr (sizeof(T) == 4)
        word = __float_as_uint(percentile_sample_of<T>(static_cast<int32_t>(word)));
    return word;
}

// Return the address `at` bytes after a uniform one.
GF_DEVICE uint32_t *percentile_at(uint32_t *base, uint32_t at) {
    return reinterpret_cast<uint32_t *>(reinterpret_cast<unsigned char *>(base) + at);
}

// The minima of words of keys. Bytes are the high bytes of 16-bit lanes, in two planes: the low
// ones only decide between equal ones.
template <typename T, bool MINIMUM> struct percentile_best {
    static constexpr int PLANES = sizeof(T) == 1 ? 2 : 1;
    static constexpr uint32_t NONE = (sizeof(T) == 4 ? 0x80000000u : 0) ^ (MINIMUM ? ~0u : 0);
    uint32_t plane[PLANES];

    __device__ __forceinline__ explicit percentile_best(uint32_t word = NONE) {
        plane[PLANES - 1] = word;
        if constexpr (PLANES == 2)
            plane[0] = word << 8;
    }
    __device__ __forceinline__ void add(const percentile_best &other) {
#pragma unroll
        for (int i = 0; i < PLANES; i++) {
            uint32_t &a = plane[i];
            const uint32_t b = other.plane[i];
            if constexpr (sizeof(T) == 4)
                a = (static_cast<int32_t>(a) < static_cast<int32_t>(b)) == MINIMUM ? a : b;
            else
                a = MINIMUM ? __vminu2(a, b) : __vmaxu2(a, b);
        }
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
    size_t shared;            // bytes
};

struct percentile_extreme_policy {
    static constexpr int THREADS = 768; // at most, with 80 registers
    static constexpr int ROWS = 8;      // per step
    static constexpr int RUN = 12;      // pixels of a thread; the stride is free of bank conflicts
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

// Compute minima along x of a run of pixels per thread: to `after` those from each pixel to the end
// of its group of N pixels and of a.after groups after it, to `before` those from the begin of
// a.before groups. Together, those at the ends of a window cover it. All threads must call it.
template <int N, typename Best>
GF_DEVICE void percentile_scan(const percentile_extreme_args &a, const uint32_t *from,
                               uint32_t *after, uint32_t *before, uint32_t *groups, int runs) {
    constexpr int RUN = percentile_extreme_policy::RUN;
    const int run = threadIdx.x;
    const bool active = run < runs;
    uint32_t x[RUN], y[RUN];
    Best best;
    if (active)
        gf_load_words<4 * RUN>(x, reinterpret_cast<const unsigned char *>(from + run * RUN));
    groups += run * (RUN / N);
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
    for (int j = 0; j < RUN; j++) {
        best = j % N == 0 ? join(j / N - a.before, a.before) : best;
        best.add(Best(x[j]));
        y[j] = best.word();
    }
#pragma unroll
    for (int j = 0; j < RUN; j += 4)
        *reinterpret_cast<uint4 *>(before + run * RUN + j) = gf_vector_of(y + j);
#pragma unroll
    for (int j = RUN - 1; j >= 0; j--) {
        best = j % N == N - 1 ? join(j / N + 1, a.after) : best;
        best.add(Best(x[j]));
        y[j] = best.word();
    }
#pragma unroll
    for (int j = 0; j < RUN; j += 4)
        *reinterpret_cast<uint4 *>(after + run * RUN + j) = gf_vector_of(y + j);
}

// Store a word of keys as samples, without those after the row. kept: mask of the bytes of alpha.
template <typename T>
GF_DEVICE void percentile_store(const percentile_extreme_args &a, uint32_t word, uint32_t kept,
                                int valid, unsigned char *to, int64_t row, int64_t at) {
    if (a.alpha) {
        const unsigned char *from =
            a.in.in + (a.first - a.in.first + row) * static_cast<int64_t>(a.in.stride);
        word = (word & ~kept) | (*reinterpret_cast<const uint32_t *>(from + at) & kept);
    }
    if (valid == 4)
        *reinterpret_cast<uint32_t *>(to) = word;
    else
#pragma unroll 1
        for (int i = 0; i < valid; i += sizeof(T), word = word >> 8 * sizeof(T) % 32)
            *reinterpret_cast<T *>(to + i) = static_cast<T>(word);
}

// Compute 4 minima along y for a radius of at most 3. h: rows. ring: 6 rows before them.
template <typename Best>
GF_DEVICE void percentile_few(uint32_t *ring, int radius, const uint32_t (&h)[4],
                              uint32_t (&y)[4]) {
    uint32_t x[10];
#pragma unroll
    for (int k = 0; k < 10; k++)
        x[k] = k < 6 ? ring[k] : h[k - 6];
    Best best[4] = {Best(h[0]), Best(h[1]), Best(h[2]), Best(h[3])};
#pragma unroll
    for (int d = 1; d <= 3; d++)
        if (d <= radius)
#pragma unroll
            for (int k = 0; k < 4; k++) {
                best[k].add(Best(x[k + 7 - 2 * d]));
                best[k].add(Best(x[k + 6 - 2 * d]));
            }
#pragma unroll
    for (int k = 0; k < 4; k++)
        y[k] = best[k].word();
#pragma unroll
    for (int k = 0; k < 6; k++)
        ring[k] = x[k + 4];
}

// Compute 4 minima along y. ring: of a window; from `slot`, the minima of the rows after each row
// of the last block of rows; before it, the rows of this block. best: of those.
template <typename Best>
GF_DEVICE void percentile_many(uint32_t *ring, int window, int *slot, Best *best,
                               const uint32_t (&h)[4], uint32_t (&y)[4]) {
    const auto join = [&](uint32_t *at, int begin, int end) {
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (k >= begin && k < end) {
                best->add(Best(h[k]));
                Best both(at[k]);
                both.add(*best);
                y[k] = both.word();
                at[k] = h[k];
            }
    };
    if (*slot + 4 < window) {
        join(ring + *slot, 0, 4);
        *slot += 4;
        return;
    }
    int done = 0;
#pragma unroll 1
    do {
        const int end = min(done + window - *slot, 4);
        join(ring + *slot - done, done, end);
        *slot += end - done;
        done = end;
        if (*slot == window) {
            *best = Best();
#pragma unroll 4
            for (*slot = window; *slot > 0;) {
                const uint32_t row = ring[--*slot];
                ring[*slot] = best->word();
                best->add(Best(row));
            }
            *best = Best();
        }
    } while (done < 4);
}

// Compute minima or maxima of windows.
// Grid: x: tiles of a.tile samples. y: runs of a.run rows. Block: one thread per 4 bytes of a.span
// samples. A step loads 8 rows ahead, and stores those before them in shared memory by planes of
// channels, in words of the same sample of some rows. The minima along x are transposed back, and
// those along y are computed by the threads of the columns: the minima of blocks of window rows,
// from each row to the end of its block, are kept in shared memory, and joined with those from the
// begin of the next block to each row.
template <typename T, bool MINIMUM>
__global__ void __launch_bounds__(percentile_extreme_policy::THREADS)
    percentile_extreme(const __grid_constant__ percentile_extreme_args a) {
    typedef percentile_best<T, MINIMUM> Best;
    constexpr int SIZE = sizeof(T), PER = 4 / SIZE, ROWS = percentile_extreme_policy::ROWS;
    extern __shared__ uint4 percentile_memory[];
    const int t = threadIdx.x, C = a.in.channels, plane = a.span / C, words = a.span / PER;
    const int window = 2 * a.radius[1] + 1, column = t - a.halo / PER, RX = a.radius[0],
              RY = a.radius[1];
    const int kept_rows = RY <= 3 ? 7 : window;
    uint32_t *loaded = reinterpret_cast<uint32_t *>(percentile_memory);
    uint32_t *after = loaded + words * ROWS, *before = after + words * ROWS;
    uint32_t *ring = before + words * ROWS + column * kept_rows;
    uint32_t *groups = before + words * ROWS + a.tile / PER * kept_rows + a.before;
    if (RX == 0)
        after = before = loaded;
    const int64_t left = static_cast<int64_t>(blockIdx.x) * a.tile - a.halo; // sample
    const int64_t samples = a.in.width * C, start = blockIdx.y * a.run;
    const int rows = static_cast<int>(min(a.run, a.rows - start)), all = rows + window - 1;
    const int64_t top = a.first + start - a.radius[1];
    // The column of the thread: byte, places of its samples in a plane, those with their values.
    const int64_t at = (left + t * PER) * SIZE;
    const int64_t inside = at >= 0 && at < a.in.row_bytes ? at : 0;
    const bool loads = t < words,
               computes = column >= 0 && column < a.tile / PER && at < a.in.row_bytes;
    const bool outside = left + a.halo < RX * C || left + a.halo + a.tile + RX * C > samples;
    const int valid = static_cast<int>(min(a.in.row_bytes - at, static_cast<int64_t>(4)));
    uint32_t own[PER], source[PER];
    uint32_t kept = 0;
#pragma unroll
    for (int i = 0; i < PER; i++) {
        const int n = t * PER + i;
        const int64_t s = left + n;
        own[i] = source[i] = 4 * (n % C * plane + n / C);
        if (s < 0 || s >= samples) {
            const int64_t c = (s + 4096 * C) % C;
            const int64_t x = gf_edge_index(a.in.edge.mode, (s - c) / C, a.in.width);
            const int64_t same = x * C + c - left;
            if (x < 0)
                source[i] = ~0u;
            else if (same >= 0 && same < a.span) // else not needed
                source[i] = static_cast<uint32_t>(4 * (same % C * plane + same / C));
        }
        asm volatile("" : "+r"(own[i])); // else it would be computed again
        if (a.alpha && n % C == C - 1)   // tiles begin with a pixel
            kept |= (SIZE == 4 ? ~0u : (1u << 8 * SIZE % 32) - 1) << 8 * SIZE * i;
    }
    uint32_t fill = gf_bits(static_cast<T>(a.in.edge.value)) * (SIZE == 1   ? 0x01010101u
                                                                : SIZE == 2 ? 0x00010001u
                                                                            : 1);
    uint32_t next[ROWS];
    // Steps whose rows are all in the image.
    const int plain_first = static_cast<int>(max(-top, int64_t{0}));
    const int plain_last =
        static_cast<int>(min(a.in.height - top, static_cast<int64_t>(all))) - ROWS;
    const unsigned char *from =
        a.in.in + (top - a.in.first) * static_cast<int64_t>(a.in.stride) + inside;
    const auto load = [&](int i) {
        if (!loads || i >= all)
            return;
        if (i >= plain_first && i <= plain_last) {
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
    };
    const auto put = [&]() {
#pragma unroll
        for (int r = 0; r < ROWS && loads; r += PER) {
            uint32_t w[PER];
#pragma unroll
            for (int i = 0; i < PER; i++)
                w[i] = percentile_keys<T>(next[r + i]);
            percentile_transpose<T>(w);
#pragma unroll
            for (int i = 0; i < PER; i++)
                *percentile_at(loaded + r / PER * a.span, own[i]) = w[i];
        }
    };
    gf_wait_for_stream();
    if (computes && RY > 3)
        ring[window - 1] = Best::NONE;
    unsigned char *to = a.out + (start - (window - 1)) * static_cast<int64_t>(a.out_stride) + at;
    Best best;
    int slot = 0;
#pragma unroll 1
    for (int i = -ROWS; i < all; i += ROWS) {
        load(i + ROWS); // not for a later iteration: the compiler waits for loads at its begin
        if (i >= 0) {
            __syncthreads();
            if (outside) {
#pragma unroll
                for (int k = 0; k < PER; k++)
                    if (loads && source[k] != own[k])
#pragma unroll
                        for (int r = 0; r < ROWS / PER; r++)
                            *percentile_at(loaded + r * a.span, own[k]) =
                                source[k] == ~0u ? percentile_keys<T>(fill)
                                                 : *percentile_at(loaded + r * a.span, source[k]);
                __syncthreads();
            }
            if (RX > 0) {
                const int runs = words * ROWS / percentile_extreme_policy::RUN;
                if (a.group == 12)
                    percentile_scan<12, Best>(a, loaded, after, before, groups, runs);
                else if (a.group == 6)
                    percentile_scan<6, Best>(a, loaded, after, before, groups, runs);
                else if (a.group == 4)
                    percentile_scan<4, Best>(a, loaded, after, before, groups, runs);
                else
                    percentile_scan<2, Best>(a, loaded, after, before, groups, runs);
                __syncthreads();
            }
        }
        const bool plain = valid == 4 && !a.alpha && i >= window - 1 && i + ROWS <= all;
#pragma unroll 1
        for (int j = 0; j < ROWS && i >= 0 && computes; j += 4) {
            uint32_t h[4], y[4];
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const int r = (j / PER + k / PER) * a.span;
                Best both(*percentile_at(after + r - RX, own[k % PER]));
                both.add(Best(*percentile_at(before + r + RX, own[k % PER])));
                h[k] = both.word();
                if (k % PER == PER - 1)
                    percentile_transpose<T>(h + k + 1 - PER);
            }
            if (RY <= 3)
                percentile_few<Best>(ring, RY, h, y);
            else
                percentile_many(ring, window, &slot, &best, h, y);
            if (plain) {
#pragma unroll
                for (int k = 0; k < 4; k++)
                    *reinterpret_cast<uint32_t *>(to + k * a.out_stride) =
                        percentile_samples<T>(y[k]);
            } else {
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    const int row = i + j + k - (window - 1);
                    if (static_cast<unsigned>(row) < static_cast<unsigned>(rows))
                        percentile_store<T>(a, percentile_samples<T>(y[k]), kept, valid,
                                            to + k * a.out_stride, start + row, at);
                }
            }
            to += 4 * a.out_stride;
        }
        if (RX == 0)
            __syncthreads();
        put();
    }
}

// ---- launch -------------------------------------------------------------------------------------

// Divide the image into tiles and runs, for the least estimated time. Returns false if windows are
// too large: most samples would be loaded for several tiles.
template <typename T> static bool percentile_extreme_divide(percentile_extreme_args *a) {
    typedef percentile_extreme_policy Policy;
    const int PER = 4 / sizeof(T), UNIT = 32 / sizeof(T); // samples of words, of memory sectors
    const int C = a->in.channels, reach = a->radius[0] * C, window = 2 * a->radius[0] + 1;
    const int64_t samples = a->in.width * C, sms = gf_sm_count();
    const int64_t limit = gf_attribute<cudaDevAttrMaxSharedMemoryPerBlockOptin>();
    const int64_t sm_limit = gf_attribute<cudaDevAttrMaxSharedMemoryPerMultiprocessor>();
    a->group = window >= 24 || window == 13  ? 12
               : window >= 12 || window == 7 ? 6
               : window >= 8 || window == 5  ? 4
                                             : 2;
    const int between = (window - 2 + a->group) / a->group - 1; // groups
    a->after = (between + 1) / 2;
    a->before = between / 2;
    a->halo = (reach + UNIT - 1) / UNIT * UNIT;
    double least = 0;
    percentile_extreme_args b = *a;
    for (b.tile = Policy::THREADS * PER; b.tile > 0; b.tile -= UNIT) {
        const int part = C * Policy::RUN;
        b.span = (a->halo + b.tile + reach + part - 1) / part * part;
        const int words = b.span / PER;
        b.shared = 4 * (static_cast<size_t>(words) * Policy::ROWS * 3 +
                        b.tile / PER * max(2 * b.radius[1] + 1, 7) +
                        (between > 0 ? words * Policy::ROWS / b.group + between : 0));
        const int64_t shared = static_cast<int64_t>(b.shared);
        if (words > Policy::THREADS || shared > limit || b.tile >= samples + UNIT)
            continue;
        if (least == 0 && b.span > 3 * b.tile && b.tile < samples)
            return false;
        const int64_t fit = min(sm_limit / (shared + 1024),
                                int64_t{Policy::THREADS / ((words + 31) / 32 * 32)}); // resident
        const int64_t tiles = (samples + b.tile - 1) / b.tile,
                      runs = max(fit * sms / tiles, int64_t{1});
        b.run = (a->rows + runs - 1) / runs;
        b.run = (b.run + Policy::ROWS - 1) / Policy::ROWS * Policy::ROWS;
        const int64_t blocks = tiles * ((a->rows + b.run - 1) / b.run),
                      waves = (blocks + fit * sms - 1) / (fit * sms);
        const double cost = static_cast<double>(waves) *
                            (static_cast<double>(fit) + 800.0 / words) *
                            (static_cast<double>(b.span) * (b.run + 2 * b.radius[1]) +
                             static_cast<double>(b.tile) * b.run);
        if (least > 0 && cost >= least)
            continue;
        least = cost;
        *a = b;
    }
    return least > 0;
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

// Return the bytes from row to row between passes.
static size_t percentile_extreme_stride(int64_t row_bytes) {
    return (static_cast<size_t>(row_bytes) + 63) & ~size_t(63);
}

template <typename T, bool MINIMUM>
static void percentile_launch_passes(const percentile_args &args, unsigned char *scratch,
                                     gf_queue *queue) {
    gf_allow_shared<percentile_extreme<T, MINIMUM>>(
        gf_attribute<cudaDevAttrMaxSharedMemoryPerBlockOptin>());
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
            b.out_stride = percentile_extreme_stride(b.in.row_bytes);
            b.out = scratch + pass % 2 * most;
            most = pass == 0 ? static_cast<size_t>(b.rows) * b.out_stride : most;
        }
        percentile_extreme_divide<T>(&b);
        gf_launch_kernel(percentile_extreme<T, MINIMUM>,
                         dim3(gf_blocks(static_cast<uint64_t>(b.in.width * b.in.channels), b.tile),
                              gf_blocks(b.rows, b.run)),
                         (b.span * sizeof(T) / 4 + 31) / 32 * 32, b.shared, queue, b);
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
            bytes = 2 * in_rows * percentile_extreme_stride(a.in.row_bytes);
    });
    return bytes;
}

void percentile_launch_extreme(const percentile_args &a, gf_type type, bool minimum,
                               unsigned char *scratch, gf_queue *queue) {
    gf_for_type(type, [&](auto sample) {
        typedef decltype(sample) T;
        minimum ? percentile_launch_passes<T, true>(a, scratch, queue)
                : percentile_launch_passes<T, false>(a, scratch, queue);
    });
}
