// smooth of columns by the stages in registers: radius 0 to 3, any type. One kernel,
// smooth_columns.
//
// All samples of a row are independent columns. A thread owns a few adjacent ones and walks down a
// chunk of rows. It keeps the enhanced samples of the window and the last two means in registers,
// so that each row is loaded, enhanced and averaged once. The sum of a window is added anew for
// each row, from top to bottom, because a running sum would round differently.
#include "cuda/smooth/device.cuh"

#include <algorithm>

// Tuning constants of smooth_columns. Those of column_work are the others.
struct column_policy {
    static constexpr int THREADS = 128;
    static constexpr int WAVES = 2; // of blocks, at least, if chunks have more than MIN_ROWS rows
    static constexpr int MIN_ROWS = 8;
    static constexpr int EDGES = 2; // values of blockIdx.y for the rows near the top and the bottom
};

struct column_args {
    const unsigned char *in; // row 0 is the first output row, here and in all row numbers below
    unsigned char *out;
    size_t in_stride, out_stride;      // bytes
    uint64_t samples;                  // per row
    int64_t rows;                      // output rows
    int64_t top, bottom;               // first and last row of the image
    int64_t loaded_first, loaded_last; // rows in memory
    int64_t inner_begin, inner_end;    // output rows without an edge in their windows
    uint32_t length;                   // rows per chunk
    gf_smooth_constants constants;
    gf_chain_args chain;
};

// Parameters of a kernel. STEP: the last of every STEP samples is alpha; 0: none.
template <typename In, typename Out, int STEP, int MEAN> struct column_work {
    typedef In Tin;
    typedef Out Tout;
    static const int RADIUS = MEAN, TAPS = 2 * MEAN + 1;
    static const int SAMPLES = sizeof(In) == 4 ? 4 : 8; // per thread
    static const int IN_BYTES = SAMPLES * sizeof(In), OUT_BYTES = SAMPLES * sizeof(Out);
    // Rows that are loaded ahead. The loop is unrolled by as many rows, and the window rotates.
    static const int AHEAD = RADIUS == 0 ? 4 : RADIUS == 1 ? 6 : TAPS;
    // Resident blocks per SM, which limit the registers, but not so far that any would spill.
    static const int BLOCKS = sizeof(In) == 4   ? (RADIUS < 3 ? 7 : 5)
                              : sizeof(In) == 2 ? (RADIUS < 2 ? 5 : 4)
                              : RADIUS == 2     ? (gf_arch >= 900 ? 5 : 4) // 5 spill before sm_90
                                                : (RADIUS < 2 ? 6 : 4);
    static_assert(AHEAD % TAPS == 0, "the window must rotate completely");
    static_assert((SAMPLES & (STEP > 0 ? STEP - 1 : 0)) == 0,
                  "a thread must own whole pixels with alpha");

    GF_DEVICE constexpr bool is_alpha(int s) {
        return STEP > 0 && (s & (STEP - 1)) == STEP - 1;
    }
};

// ---- samples ------------------------------------------------------------------------------------

// Return sample s of words: enhanced, or unchanged if it is alpha.
template <typename Work>
GF_DEVICE float column_sample(const column_args &a, const uint32_t *words, int s) {
    typedef typename Work::Tin Tin;
    if (!Work::is_alpha(s))
        return gf_enhanced<Tin>(words, s, a.chain);
    if constexpr (sizeof(Tin) == 4)
        return __uint_as_float(words[s]); // a product could change the bits of a NaN
    return gf_enhanced<Tin>(words, s, {1.0f, -8388608.0f});
}

// Store the results of a thread. valid: samples before the end of the row.
template <typename Work> GF_DEVICE void column_store(unsigned char *to, int valid, const float *t) {
    typedef typename Work::Tout Tout;
    const int SAMPLES = Work::SAMPLES, WORDS = Work::OUT_BYTES / 4;
    uint32_t words[WORDS];
    if constexpr (sizeof(Tout) == 1) {
#pragma unroll
        for (int w = 0; w < WORDS; w++) // round, clamp, NaN to 0; the first in the lowest byte
            asm("{\n"
                ".reg .s32 a, b, c, d;\n"
                ".reg .b32 high;\n"
                "cvt.rni.s32.f32 a, %1;\n"
                "cvt.rni.s32.f32 b, %2;\n"
                "cvt.rni.s32.f32 c, %3;\n"
                "cvt.rni.s32.f32 d, %4;\n"
                "cvt.pack.sat.u8.s32.b32 high, d, c, 0;\n"
                "cvt.pack.sat.u8.s32.b32 %0, b, a, high;\n"
                "}\n"
                : "=r"(words[w])
                : "f"(t[4 * w]), "f"(t[4 * w + 1]), "f"(t[4 * w + 2]), "f"(t[4 * w + 3]));
    } else {
        uint32_t bits[SAMPLES];
#pragma unroll
        for (int s = 0; s < SAMPLES; s++) // the bits of f32 alpha are stored unchanged
            bits[s] = sizeof(Tout) == 4 && Work::is_alpha(s) ? __float_as_uint(t[s])
                                                             : gf_smooth_bits<Tout>(t[s]);
        gf_pack_samples<Tout, SAMPLES>(bits, words);
    }
    if (valid == SAMPLES) {
        gf_store_words<Work::OUT_BYTES>(to, words);
        return;
    }
    typedef typename std::conditional<sizeof(Tout) == 4, uint32_t, Tout>::type Bits;
#pragma unroll 1
    for (int s = 0; s < valid; s++) {
        reinterpret_cast<Bits *>(to)[s] = static_cast<Bits>(words[0]);
#pragma unroll
        for (int w = 0; w < WORDS; w++) { // move the next sample to the start
            const uint32_t next = w + 1 < WORDS ? words[w + 1] : 0;
            words[w] =
                sizeof(Tout) == 4 ? next : __funnelshift_r(words[w], next, 8 * sizeof(Tout) % 32);
        }
    }
}

// ---- rows near the top and the bottom -----------------------------------------------------------

// Compute output rows [begin, end) whose windows may contain an edge. Rows outside the image count
// as -0: adding -0 changes no sum, whatever its sign.
template <typename Work>
GF_DEVICE void column_compute_edge(const column_args &a, uint64_t first, int valid, int64_t begin,
                                   int64_t end) {
    const int SAMPLES = Work::SAMPLES, RADIUS = Work::RADIUS, TAPS = Work::TAPS;
    const unsigned char *in = a.in + first * sizeof(typename Work::Tin);
    unsigned char *out = a.out + first * sizeof(typename Work::Tout);
    if (begin >= end)
        return;
    float window[TAPS][SAMPLES], prev[SAMPLES], mid[SAMPLES];
#pragma unroll
    for (int s = 0; s < SAMPLES; s++) {
        prev[s] = mid[s] = 0.0f;
#pragma unroll
        for (int k = 0; k < TAPS; k++)
            window[k][s] = -0.0f;
    }
    // The loads below wait for each other. Start to move the rows to the L2 cache.
#pragma unroll 1
    for (int64_t y = begin - RADIUS - 1; y <= end + RADIUS; y++)
        if (y >= a.loaded_first && y <= a.loaded_last)
            asm volatile(
                "prefetch.global.L2 [%0];" ::"l"(in + y * static_cast<int64_t>(a.in_stride)));
#pragma unroll 1
    for (int64_t y = begin - RADIUS - 1; y <= end + RADIUS; y++) {
        const bool loaded = y >= a.loaded_first && y <= a.loaded_last;
        uint32_t words[Work::IN_BYTES / 4] = {};
        if (loaded)
            gf_load_words<Work::IN_BYTES>(words, in + y * static_cast<int64_t>(a.in_stride));
        // Row y completes the window of row y - RADIUS, and the results of the row before that.
        const int64_t center = y - RADIUS, done = center - 1;
        const int64_t lo = center - RADIUS < a.top ? a.top : center - RADIUS;
        const int64_t hi = center + RADIUS > a.bottom ? a.bottom : center + RADIUS;
        const float taps = static_cast<float>(hi < lo ? 1 : static_cast<int>(hi - lo) + 1);
        const gf_smooth_end ends = {done > a.top, done < a.bottom};
        float t[SAMPLES];
#pragma unroll
        for (int s = 0; s < SAMPLES; s++) {
            t[s] = window[RADIUS][s]; // alpha of row `done`
#pragma unroll
            for (int k = 0; k + 1 < TAPS; k++)
                window[k][s] = window[k + 1][s];
            window[TAPS - 1][s] = loaded ? column_sample<Work>(a, words, s) : -0.0f;
            if (Work::is_alpha(s))
                continue;
            float sum = window[0][s];
#pragma unroll
            for (int k = 1; k < TAPS; k++)
                sum = __fadd_rn(sum, window[k][s]);
            const float next = __fdiv_rn(sum, taps);
            t[s] = a.constants.smooth ? gf_smooth_mid(prev[s], mid[s], next, ends, a.constants)
                                      : mid[s];
            prev[s] = mid[s];
            mid[s] = next;
        }
        if (done >= begin)
            column_store<Work>(out + done * static_cast<int64_t>(a.out_stride), valid, t);
    }
}

// ---- inner rows ---------------------------------------------------------------------------------

// Return the mean of a window whose oldest row is `oldest`, correctly rounded. All indices are
// constant. An infinite f32 sum, for which gf_smooth_divided fails, is its own quotient.
template <typename Work>
GF_DEVICE float column_mean(const float (&window)[Work::TAPS][Work::SAMPLES], int oldest, int s) {
    float sum = window[oldest % Work::TAPS][s];
#pragma unroll
    for (int k = 1; k < Work::TAPS; k++)
        sum = __fadd_rn(sum, window[(oldest + k) % Work::TAPS][s]);
    if (Work::TAPS == 1)
        return sum;
    float max = 0.0f;
    const float quotient = gf_smooth_divided<typename Work::Tin, Work::TAPS>(sum, &max);
    if constexpr (sizeof(typename Work::Tin) == 4)
        return fabsf(sum) == __uint_as_float(0x7f800000u) ? sum : quotient;
    return quotient;
}

// Rows of a thread that walks down: those loaded ahead, the window, and the last two means.
template <typename Work> struct column_state {
    const unsigned char *from; // next row to load
    int left;                  // rows to load after those in raw
    uint32_t raw[Work::AHEAD][Work::IN_BYTES / 4] = {};
    float window[Work::TAPS][Work::SAMPLES], prev[Work::SAMPLES], mid[Work::SAMPLES];
};

// Load the window of the row above a chunk of `rows` rows, the row that completes that of its first
// row, and AHEAD more, and compute their means.
template <typename Work>
GF_DEVICE void column_start(const column_args &a, int rows, column_state<Work> *state) {
    const int TAPS = Work::TAPS, AHEAD = Work::AHEAD;
    uint32_t warm[TAPS + 1][Work::IN_BYTES / 4] = {};
    state->left = a.constants.smooth ? rows : rows - 1;
#pragma unroll
    for (int i = 0; i < TAPS + 1; i++) {
        if (i > 0 || a.constants.smooth)
            gf_load_words<Work::IN_BYTES>(warm[i], state->from);
        state->from += a.in_stride;
    }
#pragma unroll
    for (int i = 0; i < AHEAD; i++) {
        if (i < state->left)
            gf_load_words<Work::IN_BYTES>(state->raw[i], state->from);
        state->from += a.in_stride;
    }
    state->left -= AHEAD;
#pragma unroll
    for (int s = 0; s < Work::SAMPLES; s++) {
#pragma unroll
        for (int i = 0; i < TAPS; i++)
            state->window[i][s] = column_sample<Work>(a, warm[i], s);
        if (!Work::is_alpha(s))
            state->prev[s] = column_mean<Work>(state->window, 0, s);
        state->window[0][s] = column_sample<Work>(a, warm[TAPS], s);
        if (!Work::is_alpha(s))
            state->mid[s] = column_mean<Work>(state->window, 1, s);
    }
}

// Compute the results t of the next row, and replace row `oldest` of the window. It is constant.
template <typename Work>
GF_DEVICE void column_next(const column_args &a, column_state<Work> *state, int oldest, float *t) {
    const int SAMPLES = Work::SAMPLES, TAPS = Work::TAPS, i = oldest - 1;
    const gf_smooth_constants &k = a.constants;
    float next[SAMPLES];
#pragma unroll
    for (int s = 0; s < SAMPLES; s++) {
        t[s] = Work::is_alpha(s) ? state->window[(oldest + Work::RADIUS) % TAPS][s] : state->mid[s];
        state->window[oldest % TAPS][s] = column_sample<Work>(a, state->raw[i], s);
    }
    if (i < state->left)
        gf_load_words<Work::IN_BYTES>(state->raw[i], state->from);
    state->from += a.in_stride;
#pragma unroll
    for (int s = 0; s < SAMPLES; s++)
        if (!Work::is_alpha(s))
            next[s] = column_mean<Work>(state->window, oldest + 1, s);
    if (k.smooth) {
#pragma unroll
        for (int s = 0; s < SAMPLES; s++)
            if (!Work::is_alpha(s)) {
                t[s] = __fmul_rn(__fadd_rn(t[s], state->prev[s]), k.weight);
                t[s] = __fmul_rn(__fadd_rn(t[s], next[s]), k.weight);
            }
    }
    if (k.inner_factor != 1.0f) {
#pragma unroll
        for (int s = 0; s < SAMPLES; s++)
            if (!Work::is_alpha(s))
                t[s] = __fmul_rn(t[s], k.inner_factor);
    }
#pragma unroll
    for (int s = 0; s < SAMPLES; s++)
        if (!Work::is_alpha(s)) {
            state->prev[s] = state->mid[s];
            state->mid[s] = next[s];
        }
}

// Compute `rows` output rows from row `begin`, with no edge in any window.
// Without the smooth stage, the first row above the chunk's windows and the first one below them
// may be missing. They are not loaded, and only means that no result needs contain them.
template <typename Work>
GF_DEVICE void column_compute_inner(const column_args &a, uint64_t first, int valid, int64_t begin,
                                    int rows) {
    const int AHEAD = Work::AHEAD;
    column_state<Work> state;
    state.from = a.in + first * sizeof(typename Work::Tin) +
                 (begin - Work::RADIUS - 1) * static_cast<int64_t>(a.in_stride);
    unsigned char *to =
        a.out + first * sizeof(typename Work::Tout) + begin * static_cast<int64_t>(a.out_stride);
    column_start(a, rows, &state);
#pragma unroll 1
    for (int done = 0; done < rows; done += AHEAD) {
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            if (done + i >= rows)
                return;
            float t[Work::SAMPLES];
            column_next(a, &state, i + 1, t);
            column_store<Work>(to, valid, t);
            to += a.out_stride;
        }
        state.left -= AHEAD;
    }
}

// Smooth columns by the stages.
// Grid: x: groups of 128 * SAMPLES columns. y: 0 and 1 are the rows near the top and the bottom of
// the image, the others are chunks of the rows between, from the last chunk to the first: the rows
// that the x pass wrote last may still be in the L2 cache. Chunks have as many rows as allow two
// waves of blocks, but at least 8. Block: 128 threads.
// A thread computes SAMPLES columns of a chunk, 4 of f32 or 8 of u8 and u16, with 16-byte or 8-byte
// loads and one store per row: all accesses are coalesced. AHEAD rows are in flight, 4 to 7.
// Reads each sample 1 + 2 * (RADIUS + 1) / length times, writes it once, in 17 to 20 instructions
// (radius 2). Tail: the last thread of a row loads whole, up to the end of a 16-byte unit, and
// stores only the samples of the row, one by one. Columns after the end are discarded.
// Registers (sm_90): f32 46 to 89, u8 55 to 127, u16 69 to 127; 4 to 7 resident blocks.
template <typename Work>
__global__ void __launch_bounds__(column_policy::THREADS, Work::BLOCKS)
    smooth_columns(const __grid_constant__ column_args a) {
    const uint64_t first =
        (static_cast<uint64_t>(blockIdx.x) * column_policy::THREADS + threadIdx.x) * Work::SAMPLES;
    if (first >= a.samples)
        return;
    const uint64_t rest = a.samples - first;
    const int valid = rest < Work::SAMPLES ? static_cast<int>(rest) : Work::SAMPLES;
    gf_wait_for_stream();
    if (blockIdx.y < column_policy::EDGES) {
        const bool top = blockIdx.y == 0;
        column_compute_edge<Work>(a, first, valid, top ? 0 : a.inner_end,
                                  top ? a.inner_begin : a.rows);
        return;
    }
    const int64_t begin =
        a.inner_begin + static_cast<int64_t>(gridDim.y - 1 - blockIdx.y) * a.length;
    const int64_t left = a.inner_end - begin;
    column_compute_inner<Work>(a, first, valid, begin,
                               static_cast<int>(left < a.length ? left : a.length));
}

// Queue the kernel for a strip. Returns false if the image is too large for its counters.
template <typename Work> static bool column_launch(column_args a, gf_queue *queue) {
    typedef column_policy Policy;
    const uint64_t inner = static_cast<uint64_t>(a.inner_end - a.inner_begin);
    const uint64_t across = gf_divide_up(a.samples, Policy::THREADS * Work::SAMPLES);
    const uint64_t max_chunks = 65535 - Policy::EDGES; // limit of gridDim.y
    const uint64_t wave = gf_resident_blocks<smooth_columns<Work>>(Policy::THREADS);
    uint64_t chunks =
        std::min(gf_divide_up(Policy::WAVES * wave, across), inner / Policy::MIN_ROWS);
    chunks = std::clamp(chunks, uint64_t{1}, max_chunks);
    const uint64_t length = gf_divide_up(inner, chunks);
    if (across > INT32_MAX || length > INT32_MAX / 2)
        return false;
    a.length = static_cast<uint32_t>(length);
    chunks = length == 0 ? 0 : gf_divide_up(inner, length);
    const dim3 grid(static_cast<unsigned>(across), static_cast<unsigned>(Policy::EDGES + chunks));
    gf_launch_kernel(smooth_columns<Work>, grid, Policy::THREADS, 0, queue, a);
    return true;
}

bool gf_smooth_columns(const gf_smooth_job &job) {
    const gf_smooth_plan *plan = job.plan;
    const gf_format *format = &plan->head.in;
    const gf_rows *in = &job.strip.in[0], *out = &job.strip.out;
    const auto aligned = [](const gf_rows *rows) { // whether rows start at a multiple of 16 bytes
        return (reinterpret_cast<uintptr_t>(rows->data) | rows->stride) % 16 == 0;
    };
    if (!gf_chain_fits(plan, job.wide || format->type == GF_F32) || !aligned(in) || !aligned(out))
        return false;
    const uint64_t y0 = out->y0, end = y0 + out->rows;
    column_args a = {};
    a.in = gf_row(in, y0);
    a.out = out->data;
    a.in_stride = in->stride;
    a.out_stride = out->stride;
    a.samples = gf_row_samples(format);
    a.rows = static_cast<int64_t>(out->rows);
    a.top = -static_cast<int64_t>(y0);
    a.bottom = static_cast<int64_t>(std::max(format->height, end) - 1 - y0);
    a.loaded_first = static_cast<int64_t>(in->y0) - static_cast<int64_t>(y0);
    a.loaded_last = a.loaded_first + static_cast<int64_t>(in->rows) - 1;
    const int64_t reach = static_cast<int64_t>(plan->radius) + (plan->smooth ? 1 : 0);
    a.inner_begin = std::clamp(reach + a.top, int64_t{0}, a.rows); // rows without an edge
    a.inner_end = std::clamp(a.bottom - reach + 1, a.inner_begin, a.rows);
    a.constants = gf_smooth_constants_of(plan);
    a.chain = gf_chain_args_of(plan->gain);
    bool done = false;
    gf_dispatch(
        [&](auto sample, auto wide, auto half, auto radius) {
            typedef decltype(sample) Tout;
            typedef std::conditional_t<wide, float, Tout> Tin;
            done = column_launch<column_work<Tin, Tout, 2 * half, radius>>(a, job.queue);
        },
        gf_type_of{format->type}, gf_flag{job.wide},
        gf_number<0, 2>{gf_has_alpha(format) ? format->channels / 2 : 0},
        gf_number<0, 3>{plan->radius});
    return done;
}
