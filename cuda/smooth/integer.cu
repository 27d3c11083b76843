// smooth of u8 rows by integers, for weights that cuda/smooth/mma.cu rejects, or a radius of 4
// to 8. Kernels: smooth_direct, if 16 bytes are a whole number of pixels (1, 2 or 4 channels) and
// the strides are equal; smooth_staged (cuda/smooth/staged.cuh).
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
static constexpr float integer_whole = 8388608.0f;
static constexpr uint32_t integer_whole_bits = 0x4b000000u;

// Sums per group: its 4 pixels and, for means, the pixels before and after it.
static constexpr int integer_phases = 6;

enum integer_method { BY_TAPS, BY_SUMS };

struct integer_args {
    uint32_t tap[integer_phases][7]; // [1 + pixel][word]
    float scale, offset;             // BY_TAPS: fraction of 255 = scale * (2^23 + T) + offset
    float near, next;                // BY_SUMS: fraction of 255
    float tie_limit;                 // further than this from an integer: near-tie
};

static inline integer_args integer_args_of(const gf_smooth_integer *by, int halo) {
    integer_args args = {};
    const int reach = static_cast<int>(by->form == GF_SMOOTH_SUMS ? by->radius : by->reach);
    for (int phase = 0; phase < integer_phases; phase++)
        for (int k = -reach; k <= reach; k++) {
            const int byte = 4 * halo + phase - 1 + k; // from the first word on
            const uint32_t tap = by->form == GF_SMOOTH_SUMS ? 1 : by->tap[k + reach];
            if (byte >= 0 && byte < 4 * (2 * halo + 1)) // otherwise the phase is unused
                args.tap[phase][byte / 4] |= tap << 8 * (byte % 4);
        }
    args.scale = by->scale / 255;
    args.offset = -integer_whole * args.scale; // exact
    args.near = by->near / 255;
    args.next = by->next / 255;
    args.tie_limit = 0.5f - by->tie_margin;
    return args;
}

// Work on one run. HALO: in words, of 4 pixels of a channel.
template <int CHANNELS, int WORDS, integer_method METHOD> struct integer_work {
    typedef uint8_t Tin;
    typedef uint8_t Tout;
    typedef integer_args Args;
    static const int C = CHANNELS, HALO = WORDS, filtered = GF_COLOURS(C);
    static const int RADIUS = -1, AROUND = 4 * HALO;
    static const int GROUPS = C == 2 ? 2 : C == 4 ? 1 : 4; // groups per run: 16 or 48 bytes
    static const int TILES_PER_WARP = C == 3 ? 8 : 4;
    static const int RUNS = C == 4 || HALO == 3 ? 1 : C == 1 && HALO == 1 ? 4 : 2; // at a time
    static const int WARPS = C == 3 || (C == 4 && HALO > 1) ? 24 : 32;             // warps per SM

    // Return the weighted sum at pixel -1 to 4 of the group whose words start at `word`.
    GF_DEVICE uint32_t sum(const Args &args, const uint32_t *word, int pixel) {
        uint32_t sum = integer_whole_bits;
#pragma unroll
        for (int k = 0; k < 2 * HALO + 1; k++)
            sum = __dp4a(word[k], args.tap[1 + pixel][k], sum);
        return sum;
    }

    // Compute one channel of the groups: results in the lowest bytes, 4 words per group.
    GF_DEVICE void channel(const Args &args, const uint32_t *word, uint32_t (*value)[4],
                           bool *tie) {
        float mean[4 * GROUPS + 2]; // as a sum, from the pixel before the run
        if (METHOD == BY_SUMS) {
#pragma unroll
            for (int i = 0; i < 4 * GROUPS + 2; i++) {
                const int g = i == 0 ? 0 : i == 4 * GROUPS + 1 ? GROUPS - 1 : (i - 1) / 4;
                mean[i] =
                    __fsub_rn(__uint_as_float(sum(args, word + g, i - 1 - 4 * g)), integer_whole);
            }
        }
#pragma unroll
        for (int i = 0; i < 4 * GROUPS; i++) {
            float share;
            if (METHOD == BY_SUMS)
                share = __saturatef(__fmaf_rn(
                    mean[i + 2], args.next, __fmul_rn(__fadd_rn(mean[i], mean[i + 1]), args.near)));
            else
                share = __saturatef(__fmaf_rn(__uint_as_float(sum(args, word + i / 4, i % 4)),
                                              args.scale, args.offset));
            const float whole = __fmaf_rn(share, 255.0f, integer_whole); // rounded
            const float rest = __fmaf_rn(share, 255.0f, -__fsub_rn(whole, integer_whole));
            tie[i / 4] |= fabsf(rest) > args.tie_limit;
            value[i / 4][i % 4] = __float_as_uint(whole);
        }
    }

    // Pack the results of all channels of group g, and the alpha of its 4 pixels in `in`.
    GF_DEVICE void pack(const uint32_t (&value)[filtered][GROUPS][4], int g, const uint32_t *in,
                        uint32_t *to) {
        const uint32_t *v = value[0][g], *w = value[C < 3 ? 0 : 1][g], *x = value[C < 3 ? 0 : 2][g];
        if (C == 1)
            to[0] = gf_pack(v[0], v[1], v[2], v[3]);
        if (C == 2) {
#pragma unroll
            for (int k = 0; k < 2; k++) {
                const uint32_t grey = __byte_perm(v[2 * k], v[2 * k + 1], 0x0400);
                to[k] = (grey & 0x00ff00ffu) | (in[k] & 0xff00ff00u);
            }
        }
        if (C == 3) {
            to[0] = gf_pack(v[0], w[0], x[0], v[1]);
            to[1] = gf_pack(w[1], x[1], v[2], w[2]);
            to[2] = gf_pack(x[2], v[3], w[3], x[3]);
        }
        if (C == 4) {
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const uint32_t rg = __byte_perm(v[k], w[k], 0x0040);
                const uint32_t ba = __byte_perm(x[k], in[k], 0x0070);
                to[k] = __byte_perm(rg, ba, 0x5410);
            }
        }
    }

    GF_DEVICE unsigned compute(const gf_smooth_rows &, const Args &args, const uint32_t *raw,
                               uint32_t *out) {
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
            pack(value, g, raw + (g + HALO) * C, out + g * C);
        }
        return pending;
    }
};

// ---- runs from global memory --------------------------------------------------------------------

// Tuning constants of smooth_direct. Those of Work are the others.
struct direct_policy {
    static constexpr int THREADS = 64; // small: a finished block is replaced at once
    static constexpr int WARPS = THREADS / 32;
    static constexpr int RUNS = 4;         // runs per lane and iteration
    static constexpr int STEP = 32 * RUNS; // runs per warp and iteration
};

// A tile is one run. The runs of all rows are numbered consecutively.
struct direct_args : gf_smooth_runs {
    uint32_t stride;    // in_stride in 32 bits, and that of the output
    uint32_t all;       // runs in all rows
    uint32_t next_runs; // runs with a halo after them
    gf_divider by;      // divides by runs
};

// A run of a lane: its number, its index in its row, and the offset of its first byte.
struct direct_run {
    uint32_t number, in_row, begin;
};

// Return the run of a lane; the last one for lanes without a run, which recompute it.
GF_DEVICE direct_run direct_find(const direct_args &a, uint32_t number) {
    const uint32_t run = number < a.all ? number : a.all - 1, y = gf_divide(run, a.by);
    const uint32_t in_row = run - y * a.runs;
    return {run, in_row, y * a.stride + in_row * 16};
}

// Smooth rows by integers, directly from global memory.
// Grid: about TILES_PER_WARP iterations per warp, at least one wave if there are enough runs.
// Block: 64 threads. A run is 16 bytes. The runs of all rows are numbered consecutively, therefore
// narrow rows also keep all lanes busy. A warp processes 4 * 32 runs per iteration, a lane every
// 32nd. A lane also loads the HALO groups on each side of its run, which adjacent lanes load, too:
// these loads hit the L1 cache, and each sample is read from memory once. It is written once.
// Shared memory: 2.3 to 4.3 KB per block. Registers: 64 or 80 (sm_90), as Work::WARPS allows.
template <typename Work>
__global__ void __launch_bounds__(direct_policy::THREADS, Work::WARPS / direct_policy::WARPS)
    smooth_direct(const __grid_constant__ direct_args a,
                  const __grid_constant__ typename Work::Args args) {
    typedef direct_policy Policy;
    const int RUNS = Work::RUNS, BITS = Work::GROUPS * Work::filtered;             // bits per run
    constexpr int halo = Work::HALO * 16 / Work::GROUPS, WORDS = 4 + 2 * halo / 4; // halo: bytes
    static_assert(Work::GROUPS * 4 * Work::C == 16, "a run must be 16 bytes");
    __shared__ gf_smooth_pending<Policy::STEP * BITS> queues[Policy::WARPS];
    const uint32_t lane = threadIdx.x % 32;
    uint32_t *queued = &queues[threadIdx.x / 32].queued;
    uint32_t *queue = queues[threadIdx.x / 32].group;
    if (lane == 0)
        *queued = 0;
    __syncwarp();

    gf_wait_for_stream();
    const uint32_t step = gf_tile_step() * Policy::STEP;
    for (uint32_t first = gf_first_tile() * Policy::STEP; first < a.all; first += step) {
        unsigned pending = 0;
#pragma unroll 1
        for (int done = 0; done < Policy::RUNS; done += RUNS) {
            uint32_t raw[RUNS][WORDS];
            direct_run run[RUNS];
#pragma unroll
            for (int k = 0; k < RUNS; k++) {
                run[k] = direct_find(a, first + (done + k) * 32 + lane);
                const unsigned char *from = gf_smooth_in(a, 0) + run[k].begin;
                gf_load_words<16>(raw[k] + halo / 4, from);
                if (run[k].in_row * 16 >= halo)
                    gf_load_words<halo>(raw[k], from - halo);
                if (run[k].in_row < a.next_runs)
                    gf_load_words<halo>(raw[k] + halo / 4 + 4, from + 16);
            }
#pragma unroll
            for (int k = 0; k < RUNS; k++) {
                uint32_t result[4];
                unsigned bits = Work::compute(a, args, raw[k], result);
                if (run[k].in_row < a.out_units)
                    *reinterpret_cast<uint4 *>(gf_smooth_out(a, 0) + run[k].begin) =
                        gf_vector_of(result);
                if (run[k].in_row - a.inner_first >= a.inner_runs)
                    bits = gf_pending_groups<Work>(a, run[k].in_row, bits);
                pending |= bits << (done + k) * BITS;
            }
        }
        for (; pending; pending &= pending - 1) {
            const uint32_t bit = __ffs(pending) - 1;
            const uint32_t number = direct_find(a, first + bit / BITS * 32 + lane).number;
            queue[atomicAdd(queued, 1)] = number * BITS + bit % BITS;
        }
        gf_smooth_drain_full<Work>(a, queue, queued);
    }
    gf_smooth_drain<Work>(a, queue, queued, true);
}

// Queue the kernel for all rows. Returns false if rows are too long, or the two strides differ.
template <typename Work>
static bool direct_launch(const gf_smooth_job &job, const integer_args &args) {
    typedef direct_policy Policy;
    direct_args a = {};
    gf_smooth_set_rows(&a, job);
    if (!gf_smooth_set_runs<Work>(&a) || a.in_stride != a.out_stride)
        return false;
    a.stride = static_cast<uint32_t>(a.in_stride);
    a.runs = a.runs < 2 ? 2 : a.runs; // the magic number of 1 does not fit
    a.by = gf_divider_of(a.runs);
    // Runs with a whole halo after them in the memory of the row.
    const uint32_t halo = Work::HALO * 16 / Work::GROUPS;
    a.next_runs = a.stride < 16 + halo ? 0 : (a.stride - 16 - halo) / 16 + 1;
    const uint64_t wave = gf_resident_blocks<smooth_direct<Work>>(Policy::THREADS);
    // Offsets and queue entries have 32 bits. A row has fewer groups than bytes.
    const uint64_t runs = static_cast<uint64_t>(a.runs) * 16;
    const uint64_t max = (UINT64_C(1) << 31) / (runs > a.stride ? runs : a.stride);
    gf_smooth_parts(a, job.strip.out.rows, max, [&](direct_args &part) {
        part.all = part.rows * part.runs;
        const unsigned blocks =
            gf_smooth_blocks<Work>(gf_divide_up(part.all, Policy::STEP), wave, Policy::WARPS);
        gf_launch_kernel(smooth_direct<Work>, dim3(blocks, part.images.count), Policy::THREADS, 0,
                         job.queue, part, args);
    });
    return true;
}

bool gf_smooth_integer_rows(const gf_smooth_job &job) {
    const gf_smooth_integer_form form = job.plan->integer.form;
    const uint32_t reach = job.plan->integer.reach, channels = job.plan->head.in.channels;
    // Small weights cause many near-ties, which are computed twice: the stages alone are faster.
    if (!gf_smooth_rows_fit(job.plan) || job.wide || form == GF_SMOOTH_CHAIN_ONLY ||
        (form == GF_SMOOTH_TAPS && job.plan->radius <= 3))
        return false;
    // 9 pixels of 2 bytes extend past the next run, the only other one that is loaded.
    if (channels == 2 && reach > 8)
        return false;
    bool done = false;
    gf_dispatch(
        [&](auto c, auto words, auto sums) {
            typedef integer_work<c, words, sums ? BY_SUMS : BY_TAPS> Work;
            const integer_args args = integer_args_of(&job.plan->integer, words);
            if constexpr (c != 3)
                done = direct_launch<Work>(job, args);
            done = done || gf_staged_launch<Work>(job, args);
        },
        gf_channels{channels}, gf_number<1, 3>{reach > 8 ? 3u : 1u + (reach > 4)},
        gf_flag{form == GF_SMOOTH_SUMS});
    return done;
}
