// smooth of u8 rows by integers, for weights that cuda/smooth/mma.cu rejects, or a radius of 4
// to 8.
//
//   kernel                             used for
//   smooth_staged (cuda/smooth/staged.cuh)  3 channels, and strides that differ
//   smooth_direct                      1, 2 or 4 channels: 16 bytes are a whole number of pixels
//
// 4 pixels of a channel are a word of 4 bytes. With HALO words before and after it, each weighted
// sum of the plan's integer form takes 2 * HALO + 1 dp4a instructions (each adds 4 products of
// bytes).
//
//   BY_TAPS   Sums start at the bits of 2^23: they are floats without a conversion. One saturating
//             fma scales a sum to a fraction of 255, another rounds it; the remainder identifies
//             near-ties. About 9 operations per sample.
//   BY_SUMS   For weights of means, not of samples. About 12 operations per sample.
#include "cuda/smooth/staged.cuh"

// ---- work ---------------------------------------------------------------------------------------

// 2^23: a float in 2^23..2^24 has an integer in its low bits.
#define GF_WHOLE 8388608.0f
#define GF_WHOLE_BITS 0x4b000000u

// Sums per group: its 4 pixels and, for means, the pixels before and after it.
#define GF_PHASES 6

enum gf_integer_method { GF_BY_TAPS, GF_BY_SUMS };

struct gf_integer_args {
    uint32_t tap[GF_PHASES][7]; // [1 + pixel][word]
    float scale, offset;        // BY_TAPS: fraction of 255 = scale * (2^23 + T) + offset
    float near, next;           // BY_SUMS: fraction of 255
    float tie_limit;            // further than this from an integer: near-tie
};

static inline gf_integer_args gf_integer_args_of(const gf_smooth_integer *by, int halo) {
    gf_integer_args args = {};
    const int reach = static_cast<int>(by->form == GF_SMOOTH_SUMS ? by->radius : by->reach);
    for (int phase = 0; phase < GF_PHASES; phase++)
        for (int k = -reach; k <= reach; k++) {
            const int byte = 4 * halo + phase - 1 + k; // from the first word on
            const uint32_t tap = by->form == GF_SMOOTH_SUMS ? 1 : by->tap[k + reach];
            if (byte >= 0 && byte < 4 * (2 * halo + 1)) // otherwise the phase is unused
                args.tap[phase][byte / 4] |= tap << 8 * (byte % 4);
        }
    args.scale = by->scale / 255;
    args.offset = -GF_WHOLE * args.scale; // exact
    args.near = by->near / 255;
    args.next = by->next / 255;
    args.tie_limit = 0.5f - by->tie_margin;
    return args;
}

// Work on one run. HALO: in words, of 4 pixels of a channel.
template <int CHANNELS, int WORDS, gf_integer_method METHOD> struct gf_integer_work {
    typedef uint8_t Tin;
    typedef uint8_t Tout;
    typedef gf_integer_args Args;
    static const int C = CHANNELS, HALO = WORDS, filtered = GF_COLOURS(C);
    static const int RADIUS = -1, AROUND = 4 * HALO;
    static const int GROUPS = C == 2 ? 2 : C == 4 ? 1 : 4; // groups per run: 16 or 48 bytes
    static const int TILES_PER_WARP = C == 3 ? 8 : 4;
    static const int RUNS = C == 4 || HALO == 3 ? 1 : C == 1 && HALO == 1 ? 4 : 2; // at a time
    static const int WARPS = C == 3 || (C == 4 && HALO > 1) ? 24 : 32;             // warps per SM

    // Return the weighted sum at pixel -1 to 4 of the group whose words start at `word`.
    GF_DEVICE uint32_t sum(const Args &args, const uint32_t *word, int pixel) {
        uint32_t sum = GF_WHOLE_BITS;
#pragma unroll
        for (int k = 0; k < 2 * HALO + 1; k++)
            sum = __dp4a(word[k], args.tap[1 + pixel][k], sum);
        return sum;
    }

    // Round a fraction of 255. The result is in the lowest byte.
    GF_DEVICE uint32_t round(const Args &args, float share, bool *tie) {
        const float whole = __fmaf_rn(share, 255.0f, GF_WHOLE);
        const float rest = __fmaf_rn(share, 255.0f, -__fsub_rn(whole, GF_WHOLE));
        *tie |= fabsf(rest) > args.tie_limit;
        return __float_as_uint(whole);
    }

    // Compute one channel of the groups: results in the lowest bytes, 4 words per group.
    GF_DEVICE void channel(const Args &args, const uint32_t *word, uint32_t (*value)[4],
                           bool *tie) {
        float mean[4 * GROUPS + 2]; // as a sum, from the pixel before the run
        if (METHOD == GF_BY_SUMS) {
#pragma unroll
            for (int i = 0; i < 4 * GROUPS + 2; i++) {
                const int g = i == 0 ? 0 : i == 4 * GROUPS + 1 ? GROUPS - 1 : (i - 1) / 4;
                mean[i] = __fsub_rn(__uint_as_float(sum(args, word + g, i - 1 - 4 * g)), GF_WHOLE);
            }
        }
#pragma unroll
        for (int i = 0; i < 4 * GROUPS; i++) {
            float share;
            if (METHOD == GF_BY_SUMS)
                share = __saturatef(__fmaf_rn(
                    mean[i + 2], args.next, __fmul_rn(__fadd_rn(mean[i], mean[i + 1]), args.near)));
            else
                share = __saturatef(__fmaf_rn(__uint_as_float(sum(args, word + i / 4, i % 4)),
                                              args.scale, args.offset));
            value[i / 4][i % 4] = round(args, share, &tie[i / 4]);
        }
    }

    GF_DEVICE unsigned run(const gf_walk &, const Args &args, const uint32_t *raw, uint32_t *out) {
        uint32_t value[filtered][GROUPS][4];
        bool tie[filtered][GROUPS] = {};
#pragma unroll
        for (int c = 0; c < filtered; c++) {
            uint32_t word[GROUPS + 2 * HALO];
#pragma unroll
            for (int g = 0; g < GROUPS + 2 * HALO; g++)
                word[g] = gf_channel_word<C>(raw + g * C, c);
            channel(args, word, value[c], tie[c]);
        }
        unsigned pending = 0;
#pragma unroll
        for (int g = 0; g < GROUPS; g++) {
#pragma unroll
            for (int c = 0; c < filtered; c++)
                pending |= tie[c][g] ? 1u << (g * filtered + c) : 0;
            const uint32_t *in = raw + (g + HALO) * C;
            uint32_t *to = out + g * C;
            const uint32_t *v = value[0][g];
            if (C == 1) {
                to[0] = gf_pack(v[0], v[1], v[2], v[3]);
            } else if (C == 2) {
#pragma unroll
                for (int k = 0; k < 2; k++) {
                    const uint32_t grey = __byte_perm(v[2 * k], v[2 * k + 1], 0x0400);
                    to[k] = (grey & 0x00ff00ffu) | (in[k] & 0xff00ff00u);
                }
            } else {
                const uint32_t *w = value[C < 3 ? 0 : 1][g], *x = value[C < 3 ? 0 : 2][g];
                if (C == 3) {
                    to[0] = gf_pack(v[0], w[0], x[0], v[1]);
                    to[1] = gf_pack(w[1], x[1], v[2], w[2]);
                    to[2] = gf_pack(x[2], v[3], w[3], x[3]);
                } else {
#pragma unroll
                    for (int k = 0; k < 4; k++) {
                        const uint32_t rg = __byte_perm(v[k], w[k], 0x0040);
                        const uint32_t ba = __byte_perm(x[k], in[k], 0x0070);
                        to[k] = __byte_perm(rg, ba, 0x5410);
                    }
                }
            }
        }
        return pending;
    }
};

// ---- runs from global memory --------------------------------------------------------------------

#define GF_DIRECT_THREADS 64 // small: a finished block is replaced at once
#define GF_DIRECT_WARPS (GF_DIRECT_THREADS / 32)
#define GF_DIRECT_RUNS 4 // runs per lane and iteration

// Smooth rows by integers, directly from global memory.
// Grid: about TILES_PER_WARP iterations per warp, at least one wave if there are enough runs.
// Block: 64 threads. A run is 16 bytes. The runs of all rows are numbered consecutively, therefore
// narrow rows also keep all lanes busy. A warp processes 4 * 32 runs per iteration, a lane every
// 32nd. A lane also loads the HALO groups on each side of its run, which adjacent lanes load, too:
// these loads hit the L1 cache, and each sample is read from memory once. It is written once.
// Shared memory: 2.3 to 4.3 KB per block. Registers: 64 or 80 (sm_90), as Work::WARPS allows.
template <typename Work>
__global__ void __launch_bounds__(GF_DIRECT_THREADS, Work::WARPS / GF_DIRECT_WARPS)
    smooth_direct(const __grid_constant__ gf_walk a,
                  const __grid_constant__ typename Work::Args args) {
    const int GROUPS = Work::GROUPS, HALO = Work::HALO, RUNS = Work::RUNS;
    const int BITS = GROUPS * Work::filtered;                   // per run
    const int group = 4 * Work::C * sizeof(typename Work::Tin); // bytes, of input and output
    static_assert(GROUPS * group == 16 && sizeof(typename Work::Tin) == sizeof(typename Work::Tout),
                  "a run must be 16 bytes");
    __shared__ gf_smooth_pending<32 * GF_DIRECT_RUNS * BITS> queues[GF_DIRECT_WARPS];
    const uint32_t lane = threadIdx.x % 32;
    uint32_t *queued = &queues[threadIdx.x / 32].queued;
    uint32_t *queue = queues[threadIdx.x / 32].group;
    if (lane == 0)
        *queued = 0;
    __syncwarp();

    gf_wait_for_stream();
    const uint32_t step = gf_tile_step() * (32 * GF_DIRECT_RUNS);
    for (uint32_t first = gf_first_tile() * (32 * GF_DIRECT_RUNS); first < a.tiles; first += step) {
        unsigned pending = 0;
#pragma unroll 1
        for (int done = 0; done < GF_DIRECT_RUNS; done += RUNS) {
            uint32_t raw[RUNS][(GROUPS + 2 * HALO) * group / 4], begin[RUNS], run_in_row[RUNS];
#pragma unroll
            for (int k = 0; k < RUNS; k++) {
                // Lanes without a run recompute the last one.
                const uint32_t unclamped = first + (done + k) * 32 + lane;
                const uint32_t run = unclamped < a.tiles ? unclamped : a.tiles - 1;
                const uint32_t y = gf_divide(run, a.by);
                run_in_row[k] = run - y * a.runs;
                begin[k] = y * a.in_stride32 + run_in_row[k] * 16;
                const unsigned char *from = gf_walk_in(a) + begin[k];
                gf_load_words<16>(raw[k] + HALO * group / 4, from);
                if (run_in_row[k] * 16 >= HALO * group)
                    gf_load_words<HALO * group>(raw[k], from - HALO * group);
                if (run_in_row[k] < a.next_runs)
                    gf_load_words<HALO * group>(raw[k] + (HALO + GROUPS) * group / 4, from + 16);
            }
#pragma unroll
            for (int k = 0; k < RUNS; k++) {
                uint32_t result[4];
                unsigned bits = Work::run(a, args, raw[k], result);
                if (run_in_row[k] < a.out_units)
                    *reinterpret_cast<uint4 *>(gf_walk_out(a) + begin[k]) = gf_vector_of(result);
                if (run_in_row[k] - a.inner_first >= a.inner_runs)
                    bits = gf_pending_groups<Work>(a, run_in_row[k], bits);
                pending |= bits << (done + k) * BITS;
            }
        }
        for (; pending; pending &= pending - 1) {
            const uint32_t bit = __ffs(static_cast<int>(pending)) - 1;
            const uint32_t unclamped = first + bit / BITS * 32 + lane;
            const uint32_t run = unclamped < a.tiles ? unclamped : a.tiles - 1;
            queue[atomicAdd(queued, 1)] = run * BITS + bit % BITS;
        }
        __syncwarp();
        const uint32_t count = *queued;
        __syncwarp(); // before a lane adds to it again
        if (count >= 32)
            gf_drain<Work>(a, queue, queued, false);
    }
    gf_drain<Work>(a, queue, queued, true);
}

// Queue the kernel for all rows. Returns false if rows are too long for its counters, or the
// strides of the two images differ.
template <typename Work>
static bool gf_direct_launch(gf_walk walk, uint64_t rows, const typename Work::Args &args,
                             gf_queue *queue) {
    if (!gf_walk_fits<Work>(&walk) || walk.in_stride != walk.out_stride)
        return false;
    walk.runs = walk.runs < 2 ? 2 : walk.runs; // the magic number of 1 does not fit
    walk.by = gf_divider_of(walk.runs);
    // Runs with a whole halo after them in the memory of the row.
    const size_t halo = Work::HALO * 16 / Work::GROUPS;
    walk.next_runs = walk.in_stride < 16 + halo
                         ? 0
                         : static_cast<uint32_t>((walk.in_stride - 16 - halo) / 16 + 1);
    const uint64_t wave = gf_resident_blocks<smooth_direct<Work>>(GF_DIRECT_THREADS);
    // Offsets and queue entries have 32 bits: limit the bytes of a launch. A row has fewer groups
    // than bytes.
    const uint64_t runs = static_cast<uint64_t>(walk.runs) * 16;
    const uint64_t per_row = runs > walk.in_stride ? runs : walk.in_stride;
    gf_walk_rows(walk, rows, (UINT64_C(1) << 31) / per_row, [&](gf_walk &part) {
        part.tiles = part.rows * part.runs;
        const unsigned blocks = gf_walk_blocks<Work>(gf_divide_up(part.tiles, 32 * GF_DIRECT_RUNS),
                                                     wave, GF_DIRECT_WARPS);
        gf_launch_kernel(smooth_direct<Work>, dim3(blocks, part.images.count), GF_DIRECT_THREADS, 0,
                         queue, part, args);
    });
    return true;
}

// ---- launch -------------------------------------------------------------------------------------

template <int C, int WORDS, gf_integer_method METHOD>
static bool gf_integer_launch(const gf_smooth_plan *plan, const gf_strip *strip, gf_queue *queue) {
    typedef gf_integer_work<C, WORDS, METHOD> Work;
    const gf_walk walk = gf_walk_of(plan, strip);
    const gf_integer_args args = gf_integer_args_of(&plan->integer, WORDS);
    if constexpr (C != 3)
        if (gf_direct_launch<Work>(walk, strip->out.rows, args, queue))
            return true;
    return gf_staged_launch<Work>(walk, strip->out.rows, args, queue);
}

bool gf_smooth_integer_rows(const gf_smooth_plan *plan, const gf_strip *strip, gf_queue *queue) {
    const gf_smooth_integer_form form = plan->integer.form;
    const uint32_t reach = plan->integer.reach, channels = plan->head.in.channels;
    // Small weights cause many near-ties, which are computed twice: the stages alone are faster.
    if (form == GF_SMOOTH_CHAIN_ONLY || plan->tile != 0 ||
        (form == GF_SMOOTH_TAPS && plan->radius <= 3))
        return false;
    // 9 pixels of 2 bytes extend past the next run, and only one run after the current one is
    // loaded.
    if (channels == 2 && reach > 8)
        return false;
    bool done = false;
    gf_for_channels(channels, [&](auto n) {
        gf_for_number<1, 3>(
            reach <= 4   ? 1
            : reach <= 8 ? 2
                         : 3,
            [&](auto words) {
                const int C = decltype(n)::value, WORDS = decltype(words)::value;
                done = form == GF_SMOOTH_SUMS
                           ? gf_integer_launch<C, WORDS, GF_BY_SUMS>(plan, strip, queue)
                           : gf_integer_launch<C, WORDS, GF_BY_TAPS>(plan, strip, queue);
            });
    });
    return done;
}
