// resize of u8 along x, then y, on tensor cores: a plan of the form FIXED along y that has joined
// the one along x before it.
//
// Sums are products of byte matrices. A tap is the sum of three signed bytes, times 1, 2^8 and
// 2^16: three products are added modulo 2^32, therefore the total is exact. The image between the
// axes stays in shared memory, in the order in which the products along y read it.
#include "cuda/resize/device.cuh"

#include <cuda_pipeline.h>
#include <stdlib.h>

#include <algorithm>

// Tuning constants.
struct bytes_policy {
    static constexpr int THREADS = 256, WARPS = THREADS / 32;
    static constexpr int BLOCKS = 2;           // resident per SM
    static constexpr int PIECE = 288;          // bytes of a row in a stage, at most
    static constexpr size_t TABLES = 64 << 20; // bytes, at most
    static constexpr uint32_t SHARE = 64;      // groups along y of a team, at most
    static constexpr int START = 2; // blocks of rows that take as long as the start of a team
};

// A step of a product is 32 samples long. Along x, it computes OUT_X pixels of ROWS rows; along y,
// OUT_Y rows of OUT_X pixels.
static constexpr int bytes_step = 32, bytes_out_x = 8, bytes_out_y = 16, bytes_rows = 16;
static constexpr int bytes_taps_x = 3 * 256, bytes_taps_y = 3 * 512; // bytes of a step

// Bytes of a row that neighbouring lanes copy at once, and how many times a lane does, at most.
static constexpr int bytes_line = 64, bytes_lines = (bytes_policy::PIECE + 126) / bytes_line;

// The input of a group of outputs: pixels [first, end) of a row, or blocks of ROWS rows.
struct bytes_reach {
    uint32_t first, end;
};

// Bytes of the reaches of a team along y.
static constexpr int bytes_list = bytes_policy::SHARE * sizeof(bytes_reach);

// Tables of a joined plan: the reaches along x, those along y, and their taps, steps[i] steps for
// each. Offsets are in bytes.
struct bytes_tables {
    uint32_t groups[2], steps[2];
    size_t taps[2], bytes;
};

static bytes_tables bytes_tables_of(const gf_resize_plan *plan) {
    bytes_tables tables = {};
    tables.groups[0] = (plan->head.out.width + bytes_out_x - 1) / bytes_out_x;
    tables.groups[1] =
        static_cast<uint32_t>((plan->head.out.height + bytes_out_y - 1) / bytes_out_y);
    tables.steps[0] = (plan->joined[0] + bytes_step - 1) / bytes_step;
    tables.steps[1] = (plan->joined[1] + bytes_step / bytes_rows - 1) / (bytes_step / bytes_rows);
    const size_t reaches = sizeof(bytes_reach) * (tables.groups[0] + size_t{tables.groups[1]});
    tables.taps[0] = (reaches + 15) / 16 * 16;
    tables.taps[1] = tables.taps[0] + size_t{tables.groups[0]} * tables.steps[0] * bytes_taps_x;
    tables.bytes = tables.taps[1] + size_t{tables.groups[1]} * tables.steps[1] * bytes_taps_y;
    return tables;
}

struct bytes_args {
    const unsigned char *in;
    unsigned char *out;
    size_t in_stride, out_stride;
    uint32_t in_rows, out_rows;
    uint32_t width; // of an output row
    const unsigned char *tables, *taps[2];
    uint32_t groups[2], steps[2];
    int warps;      // of a team, which computes some rows of a group along x
    uint32_t share; // groups along y of a team
    uint32_t teams;
    int piece; // steps of a stage
    int lines; // of the rows of a stage in memory, at most
    int pitch; // bytes of a row in a stage: an odd number of 32 bytes
    int ring;  // blocks of rows between the axes, a power of two
    gf_images<2> images;
};

// ---- products -----------------------------------------------------------------------------------

typedef int32_t bytes_sums[3][4]; // of 16 x 8 outputs, by byte of the taps

// Add a * b to sums. TAPS_FIRST: a are signed, b unsigned; otherwise the opposite.
template <bool TAPS_FIRST>
GF_DEVICE void bytes_multiply(int32_t (&sums)[4], const uint32_t *a, const uint32_t *b) {
#if __CUDA_ARCH__ >= 800
#define MULTIPLY(types)                                                                            \
    asm("mma.sync.aligned.m16n8k32.row.col.s32." types                                             \
        ".s32 "                                                                                    \
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"                        \
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])                               \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
    if (TAPS_FIRST)
        MULTIPLY("s8.u8");
    else
        MULTIPLY("u8.s8");
#undef MULTIPLY
#else
    __trap(); // never launched
#endif
}

// Return the result of sum i, before it is clamped.
GF_DEVICE uint32_t bytes_result(const bytes_sums &sums, int i) {
    const uint32_t low = sums[0][i], middle = sums[1][i], high = sums[2][i];
    const int32_t sum = static_cast<int32_t>(low + (middle << 8) + (high << 16));
    // The high word is (sum + 2^21) >> 22, with one instruction.
    const int64_t wide = static_cast<int64_t>(sum) * 1024 + (INT64_C(1) << 31);
    return static_cast<uint32_t>(static_cast<uint64_t>(wide) >> 32);
}

// Transpose an 8 x 8 matrix of pairs of bytes.
GF_DEVICE uint32_t bytes_transpose(uint32_t v) {
#if __CUDA_ARCH__ >= 800
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;\n" : "+r"(v));
#endif
    return v;
}

// ---- rows ---------------------------------------------------------------------------------------

// The copies of a warp: a piece of the rows of a block. Four lanes copy the bytes of a row that are
// in the same 64 aligned bytes; instead of bytes outside the piece, they copy its first or last
// ones again. A row has the same alignment to 32 bytes in a stage as in memory: copies would read
// other sectors twice.
struct bytes_loader {
    int pixels;           // of a row of the group
    uint32_t block, step; // of the next piece
    // The row lane / 4 of the piece, in memory and in a stage. Offsets in it: the lane's first
    // unit, the same inside the row, and the last unit of the row.
    const unsigned char *from;
    int to, at, first, last;
};

// Set the copies of the next piece.
template <int C> GF_DEVICE void bytes_aim(const bytes_args &a, bytes_loader *w) {
    const int lane = threadIdx.x % 32;
    const int bytes =
        min(w->pixels - static_cast<int>(w->step) * bytes_step, a.piece * bytes_step) * C;
    const int low = static_cast<int>(reinterpret_cast<uintptr_t>(w->from)) & (bytes_line - 1);
    w->to = lane / 4 * a.pitch + low % 32;
    w->at = lane % 4 * 16 - low;
    w->last = (low % 16 + bytes - 1) / 16 * 16 - low % 16;
    w->first = min(max(w->at, -(low % 16)), w->last);
}

// Start to copy the next piece, if it is before block `last`. steps: of a block.
template <int C>
GF_DEVICE void bytes_load(const bytes_args &a, bytes_loader *w, int steps, uint32_t last,
                          uint32_t stage) {
    if (w->block < last) {
        const uint32_t left = a.in_rows - w->block * bytes_rows;
        const auto load = [&](auto whole) {
            const auto copy = [&](int unit) {
#pragma unroll
                for (int i = 0; i < 2; i++)
                    gf_copy_async(stage + w->to + 8 * i * a.pitch + unit,
                                  w->from + 8 * i * a.in_stride + unit,
                                  decltype(whole)::value || threadIdx.x % 32 / 4 + 8 * i < left);
            };
            copy(w->first);
#pragma unroll
            for (int k = 1; k < bytes_lines; k++)
                if (k < a.lines)
                    copy(min(w->at + k * bytes_line, w->last));
        };
        if (left >= bytes_rows)
            load(std::true_type());
        else
            load(std::false_type());
        w->step += a.piece;
        w->from += a.piece * bytes_step * C;
        if (static_cast<int>(w->step) >= steps) {
            w->from += static_cast<uint32_t>(a.warps * bytes_rows) * a.in_stride -
                       w->step * (bytes_step * C);
            w->step = 0;
            w->block += a.warps;
        }
        if (steps > a.piece)
            bytes_aim<C>(a, w);
    }
    __pipeline_commit();
}

// Wait for the warps of a team.
GF_DEVICE void bytes_wait(const bytes_args &a, int team) {
    if (a.warps == 1)
        __syncwarp();
    else
        asm volatile("bar.sync %0, %1;\n" ::"r"(team + 1), "r"(a.warps * 32) : "memory");
}

// A step along x: taps, and 8 adjacent pixels of two rows. Taps are in the same order.
template <int C> struct bytes_across { uint32_t taps[3][2], rows[2][2 * C]; };

// Read a step. from: the lane's first pixel in row lane / 4.
template <int C>
GF_DEVICE void bytes_read(const bytes_args &a, const unsigned char *from, const unsigned char *taps,
                          bytes_across<C> *to) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 2; i++)
        gf_load_words<8 * C>(to->rows[i], from + 8 * i * a.pitch);
    gf_load_words<16>(to->taps[0], taps + lane * 16);
    gf_load_words<8>(to->taps[2], taps + 512 + lane * 8);
}

template <int C>
GF_DEVICE void bytes_add_across(const bytes_across<C> &step, bytes_sums (&sums)[C]) {
#pragma unroll
    for (int c = 0; c < C; c++) {
        const uint32_t x[4] = {
            gf_channel_word<C>(step.rows[0], c), gf_channel_word<C>(step.rows[1], c),
            gf_channel_word<C>(step.rows[0] + C, c), gf_channel_word<C>(step.rows[1] + C, c)};
#pragma unroll
        for (int plane = 0; plane < 3; plane++)
            bytes_multiply<false>(sums[c][plane], x, step.taps[plane]);
    }
}

// Add the products of a step along y. even, odd: blocks of rows.
template <int K>
GF_DEVICE void bytes_add_down(const uint32_t *even, const uint32_t *odd, const unsigned char *taps,
                              bytes_sums (&sums)[K]) {
    uint32_t w[3][4];
#pragma unroll
    for (int plane = 0; plane < 3; plane++)
        gf_load_words<16>(w[plane], taps + plane * 512);
#pragma unroll
    for (int c = 0; c < K; c++) {
        const uint32_t x[2] = {even[c * 32], odd[c * 32]};
#pragma unroll
        for (int plane = 0; plane < 3; plane++)
            bytes_multiply<true>(sums[c][plane], w[plane], x);
    }
}

// Compute a group along y of K channels, and store it. ring: of the lane and the first channel.
template <int C, int K>
GF_DEVICE void bytes_down(const bytes_args &a, uint32_t group, bytes_reach reach,
                          const uint32_t *ring, unsigned char *out, int pixels) {
    const int lane = threadIdx.x % 32;
    const unsigned char *taps =
        a.taps[1] + static_cast<size_t>(group) * a.steps[1] * bytes_taps_y + lane * 16;
    const auto at = [&](uint32_t b) { return ring + (b & (a.ring - 1)) * C * 32; };
    bytes_sums sums[K] = {};
#pragma unroll 1
    for (uint32_t b = reach.first; b < reach.end; b += 2, taps += bytes_taps_y)
        bytes_add_down<K>(at(b), at(b + 1), taps, sums);
    // A lane has two pixels of two rows.
    const int left = pixels - lane % 4 * 2;
    const uint32_t y = group * bytes_out_y + lane / 4;
    unsigned char *to = out + uint64_t{y} * a.out_stride + lane % 4 * 2 * C;
    const bool whole = K == C && group * bytes_out_y + bytes_out_y <= a.out_rows &&
                       pixels == bytes_out_x &&
                       (reinterpret_cast<uintptr_t>(out) | a.out_stride) % 2 == 0;
#pragma unroll
    for (int i = 0; i < 2; i++, to += 8 * a.out_stride) {
        uint16_t pairs[K]; // of results, in the order of memory
#pragma unroll
        for (int k = 0; k < K; k++) {
            const uint32_t bits[2] = {bytes_result(sums[2 * k % K], 2 * i + 2 * k / K),
                                      bytes_result(sums[(2 * k + 1) % K], 2 * i + (2 * k + 1) / K)};
            uint32_t pair;
            asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;\n"
                : "=r"(pair)
                : "r"(bits[1]), "r"(bits[0]));
            pairs[k] = static_cast<uint16_t>(pair);
        }
        if (whole) {
#pragma unroll
            for (int k = 0; k < K; k++)
                reinterpret_cast<uint16_t *>(to)[k] = pairs[k];
        } else if (y + 8 * i < a.out_rows) {
#pragma unroll
            for (int k = 0; k < 2 * K; k++)
                if (k / K < left)
                    to[k / K * C + k % K] = static_cast<unsigned char>(pairs[k / 2] >> k % 2 * 8);
        }
    }
}

// Compute both axes.
// Grid: x: teams; z: images. Block: 256 threads. A team of 1 to 8 warps computes `share` groups of
// OUT_Y rows, 8 pixels wide. Its warps take turns in blocks of input rows: they copy the next piece
// of theirs, and compute the sums along x of the piece before. When the blocks that a group along y
// reads are in the ring, it is computed. Shared memory: up to 113 KB.
template <int C>
__global__ void __launch_bounds__(bytes_policy::THREADS, bytes_policy::BLOCKS)
    bytes_both(const __grid_constant__ bytes_args a) {
    extern __shared__ __align__(128) unsigned char bytes_memory[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int team = warp / a.warps, member = warp % a.warps;
    const uint32_t own = blockIdx.x * (bytes_policy::WARPS / a.warps) + team;
    if (own >= a.teams)
        return;
    const uint32_t column = own % a.groups[0], first = own / a.groups[0] * a.share;
    const uint32_t end = min(first + a.share, a.groups[1]);
    const bytes_reach *reaches = reinterpret_cast<const bytes_reach *>(a.tables);
    const bytes_reach across = reaches[column];
    const int stage = bytes_rows * a.pitch, ring_words = a.ring * C * 32;
    const int steps = (static_cast<int>(across.end - across.first) + bytes_step - 1) / bytes_step;
    unsigned char *stages = bytes_memory + warp * 2 * stage;
    unsigned char *taps = bytes_memory + bytes_policy::WARPS * 2 * stage +
                          team * (a.steps[0] * bytes_taps_x + 4 * ring_words + bytes_list);
    uint32_t *ring = reinterpret_cast<uint32_t *>(taps + a.steps[0] * bytes_taps_x) + lane;
    bytes_reach *down = reinterpret_cast<bytes_reach *>(ring + ring_words - lane);
    // Tables are older than the kernel before this one.
    for (uint32_t i = member * 32 + lane; i < end - first; i += a.warps * 32)
        down[i] = reaches[a.groups[0] + first + i];
    const uint4 *from = reinterpret_cast<const uint4 *>(a.taps[0] + static_cast<size_t>(column) *
                                                                        a.steps[0] * bytes_taps_x);
    for (int i = member * 32 + lane; i < steps * bytes_taps_x / 16; i += a.warps * 32)
        reinterpret_cast<uint4 *>(taps)[i] = from[i];
    uint32_t block = reaches[a.groups[0] + first].first + member; // the next one to compute
    const uint32_t last = reaches[a.groups[0] + end - 1].end;
    bytes_loader loader = {};
    loader.from = a.in + a.images.at[0][blockIdx.z] + static_cast<size_t>(across.first) * C +
                  (static_cast<uint64_t>(block) * bytes_rows + lane / 4) * a.in_stride;
    loader.pixels = static_cast<int>(across.end - across.first);
    loader.block = block;
    unsigned char *out =
        a.out + a.images.at[1][blockIdx.z] + static_cast<size_t>(column) * bytes_out_x * C;
    const int pixels = static_cast<int>(min(a.width - column * bytes_out_x, bytes_out_x));
    bytes_wait(a, team);
    gf_wait_for_stream();
    gf_let_next_start();
    bytes_aim<C>(a, &loader);
    const int start = loader.to + lane % 4 * 8 * C; // the lane's first pixel in a stage
    const uint32_t places = gf_shared_address(stages);
    int odd = 0; // stage
    bytes_load<C>(a, &loader, steps, last, places);
    for (uint32_t group = first; group < end; group++) {
        const bytes_reach reach = down[group - first];
#pragma unroll 1
        for (; block < reach.end; block += a.warps) {
            bytes_sums sums[C] = {};
            for (int step = 0; step < steps;) {
                __pipeline_wait_prior(0);
                __syncwarp();
                bytes_across<C> read;
                const unsigned char *x = stages + odd * stage + start;
                const unsigned char *w = taps + step * bytes_taps_x;
                bytes_read<C>(a, x, w, &read);
                odd ^= 1;
                bytes_load<C>(a, &loader, steps, last, places + odd * stage);
                bytes_add_across<C>(read, sums);
                const int piece = min(steps, step + a.piece);
#pragma unroll 1
                for (step++; step < piece; step++) {
                    x += bytes_step * C;
                    w += bytes_taps_x;
                    bytes_read<C>(a, x, w, &read);
                    bytes_add_across<C>(read, sums);
                }
            }
            uint32_t *to = ring + (block & (a.ring - 1)) * C * 32;
#pragma unroll
            for (int c = 0; c < C; c++) {
                // Rows g and g + 8 of a column are adjacent; then four rows are.
                const uint32_t bits[4] = {bytes_result(sums[c], 0), bytes_result(sums[c], 2),
                                          bytes_result(sums[c], 1), bytes_result(sums[c], 3)};
                uint32_t word;
                gf_pack_samples<uint8_t, 4, true>(bits, &word);
                to[c * 32] = bytes_transpose(word);
            }
        }
        bytes_wait(a, team);
        if (a.warps == 1)
            bytes_down<C, C>(a, group, reach, ring, out, pixels);
        else
#pragma unroll 1
            for (int c = member; c < C; c += a.warps)
                bytes_down<C, 1>(a, group, reach, ring + c * 32, out + c, pixels);
        bytes_wait(a, team);
    }
}

// ---- plans --------------------------------------------------------------------------------------

// Store the three bytes of a tap, `plane` bytes apart; the third one at `third`.
static void bytes_store_tap(unsigned char *to, size_t plane, unsigned char *third, int32_t tap) {
    const int8_t low = static_cast<int8_t>(tap);
    const int8_t middle = static_cast<int8_t>((tap - low) >> 8);
    to[0] = static_cast<unsigned char>(low);
    to[plane] = static_cast<unsigned char>(middle);
    *third = static_cast<unsigned char>((((tap - low) >> 8) - middle) >> 8);
}

static const gf_resize_span *bytes_spans(const gf_plan *plan) {
    return static_cast<const gf_resize_span *>(plan->constants);
}

// Return what a group reads.
static bytes_reach bytes_reach_of(const gf_resize_plan *plan, uint64_t group) {
    const uint64_t n = plan->down ? bytes_out_y : bytes_out_x, unit = plan->down ? bytes_rows : 1;
    const uint64_t align = plan->down ? 1 : 8; // pixels of a lane
    const gf_resize_span *spans = bytes_spans(&plan->head), first = spans[group * n],
                         last = spans[std::min((group + 1) * n, plan->spans) - 1];
    return {static_cast<uint32_t>(first.first / unit / align * align),
            static_cast<uint32_t>(gf_divide_up(last.first + last.count, unit))};
}

// Return the largest reach.
static uint32_t bytes_most(const gf_resize_plan *plan, uint32_t groups) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < groups; i++) {
        const bytes_reach reach = bytes_reach_of(plan, i);
        most = std::max(most, reach.end - reach.first);
    }
    return most;
}

// Store the taps of a plan: those of a group are `bytes` bytes. A lane of bytes_across has the taps
// of an output; one of bytes_add_down those of two, for the rows of bytes_transpose.
static void bytes_store_taps(const gf_resize_plan *plan, unsigned char *memory, size_t bytes) {
    const gf_resize_span *spans = bytes_spans(&plan->head);
    const int32_t *taps = static_cast<const int32_t *>(gf_resize_taps(plan, spans));
    const uint64_t n = plan->down ? bytes_out_y : bytes_out_x;
    for (uint64_t i = 0; i < plan->spans; i++) {
        const uint64_t first =
            uint64_t{bytes_reach_of(plan, i / n).first} * (plan->down ? bytes_rows : 1);
        unsigned char *group = memory + i / n * bytes;
        for (uint64_t k = 0; k < spans[i].count; k++) {
            const int32_t tap = taps[spans[i].taps + k];
            const uint64_t at = spans[i].first + k - first;
            const unsigned in = at % bytes_step, out = i % 8 * 4; // out: first lane
            if (plan->down) {
                const unsigned row = in % bytes_rows;
                unsigned char *to = group + at / bytes_step * bytes_taps_y +
                                    (out + row % 8 / 2) * 16 + in / bytes_rows * 8 +
                                    i % bytes_out_y / 8 * 4 + row % 2 * 2 + row / 8;
                bytes_store_tap(to, 512, to + 1024, tap);
            } else {
                unsigned char *step = group + at / bytes_step * bytes_taps_x;
                const unsigned lane = out + in / 8, byte = in % 8;
                bytes_store_tap(step + lane * 16 + byte, 8, step + 512 + lane * 8 + byte, tap);
            }
        }
    }
}

// Return the shared memory of a block.
static int bytes_shared(const bytes_args &a, uint32_t channels) {
    typedef bytes_policy Policy;
    return Policy::WARPS * 2 * bytes_rows * a.pitch +
           Policy::WARPS / a.warps *
               (static_cast<int>(a.steps[0] * bytes_taps_x + a.ring * channels * 128) + bytes_list);
}

// Choose the teams. most: pixels of a group. Returns false if their memory does not fit.
static bool bytes_set_teams(bytes_args *a, uint32_t channels, uint32_t most) {
    typedef bytes_policy Policy;
    const int row = Policy::PIECE / static_cast<int>(bytes_step * channels); // steps
    const int steps = static_cast<int>(a->steps[0]), pieces = (steps + row - 1) / row;
    a->piece = (steps + pieces - 1) / pieces;
    a->pitch = (a->piece * static_cast<int>(channels) + 1 | 1) * 32;
    const int bytes =
        static_cast<int>(channels) * std::min(static_cast<int>(most), a->piece * bytes_step);
    a->lines = (bytes + 2 * bytes_line - 2) / bytes_line;
    for (a->ring = 2; a->ring < 2 * static_cast<int>(a->steps[1]);)
        a->ring *= 2;
    // In blocks of rows: the input of a group along y, what it shares with the next one, its sums.
    const double height = static_cast<double>(a->in_rows) / bytes_rows / a->groups[1];
    const double shared = a->ring - height, down = static_cast<double>(a->steps[1]) / steps;
    double least = 0;
    bytes_args best = {};
    for (a->warps = 1; a->warps <= Policy::WARPS; a->warps *= 2) {
        const int bytes = bytes_shared(*a, channels);
        const uint32_t fit = gf_attribute<cudaDevAttrMaxSharedMemoryPerMultiprocessor>() /
                             static_cast<uint32_t>(bytes + 1024);
        const uint64_t resident = gf_sm_count() * std::min<uint64_t>(fit, Policy::BLOCKS) *
                                  static_cast<uint64_t>(Policy::WARPS / a->warps);
        for (a->share = 1; fit && a->share <= std::min(a->groups[1], bytes_policy::SHARE);
             a->share++) {
            const uint64_t teams = a->groups[0] * gf_divide_up(a->groups[1], a->share);
            const uint64_t waves = gf_divide_up(teams * a->images.count, resident);
            const double time =
                static_cast<double>(waves) *
                ((a->share * height + shared) / a->warps +
                 a->share * down / std::min<int>(a->warps, channels) + Policy::START);
            if (teams < UINT32_MAX / 2 && (best.share == 0 || time < least)) {
                least = time;
                best = *a;
                best.teams = static_cast<uint32_t>(teams);
            }
        }
    }
    *a = best;
    return best.share > 0;
}

static bytes_args bytes_args_of(const gf_resize_plan *plan) {
    const bytes_tables tables = bytes_tables_of(plan);
    bytes_args a = {};
    a.in_rows = static_cast<uint32_t>(plan->head.in.height);
    a.out_rows = static_cast<uint32_t>(plan->head.out.height);
    a.width = static_cast<uint32_t>(plan->head.out.width);
    for (int i = 0; i < 2; i++) {
        a.groups[i] = tables.groups[i];
        a.steps[i] = tables.steps[i];
    }
    a.images.count = 1;
    return a;
}

bool gf_resize_join(const gf_plan *before, gf_plan *head) {
    const gf_resize_plan *x = reinterpret_cast<const gf_resize_plan *>(before);
    gf_resize_plan *y = reinterpret_cast<gf_resize_plan *>(head), joined = *y;
    const gf_format *in = &before->in, *out = &head->out;
    if (x->form != GF_RESIZE_FIXED || y->form != GF_RESIZE_FIXED || !y->down ||
        in->width > INT32_MAX / 4 || in->height > INT32_MAX || out->height > INT32_MAX ||
        gf_code_version(reinterpret_cast<const void *>(bytes_both<1>)) < 80)
        return false;
    joined.head.in = *in;
    bytes_tables tables = bytes_tables_of(&joined);
    joined.joined[0] = bytes_most(x, tables.groups[0]);
    joined.joined[1] = bytes_most(y, tables.groups[1]);
    tables = bytes_tables_of(&joined);
    bytes_args a = bytes_args_of(&joined);
    const size_t rows = static_cast<size_t>(out->height) * sizeof(gf_range);
    if (tables.bytes > bytes_policy::TABLES || !bytes_set_teams(&a, in->channels, joined.joined[0]))
        return false;
    unsigned char *memory = static_cast<unsigned char *>(calloc(1, tables.bytes + rows));
    if (!memory)
        return false;
    bytes_reach *reaches = reinterpret_cast<bytes_reach *>(memory);
    for (uint32_t i = 0; i < tables.groups[0]; i++)
        *reaches++ = bytes_reach_of(x, i);
    for (uint32_t i = 0; i < tables.groups[1]; i++)
        *reaches++ = bytes_reach_of(y, i);
    bytes_store_taps(x, memory + tables.taps[0], size_t{tables.steps[0]} * bytes_taps_x);
    bytes_store_taps(y, memory + tables.taps[1], size_t{tables.steps[1]} * bytes_taps_y);
    joined.head.rows =
        reinterpret_cast<gf_range *>(memcpy(memory + tables.bytes, head->rows, rows));
    free(head->owned);
    joined.head.constants = joined.head.owned = memory;
    joined.head.constant_bytes = tables.bytes;
    *y = joined;
    return true;
}

void gf_resize_launch_both(const gf_strip *strip, const gf_resize_plan *plan, gf_queue *queue) {
    const uint32_t channels = plan->head.in.channels;
    const bytes_tables tables = bytes_tables_of(plan);
    bytes_args a = bytes_args_of(plan);
    a.images = gf_images_of<2>(&plan->head, strip);
    bytes_set_teams(&a, channels, plan->joined[0]);
    a.in = strip->in[0].data;
    a.out = strip->out.data;
    a.in_stride = strip->in[0].stride;
    a.out_stride = strip->out.stride;
    a.tables = static_cast<const unsigned char *>(strip->constants);
    for (int i = 0; i < 2; i++)
        a.taps[i] = a.tables + tables.taps[i];
    const unsigned per_block = static_cast<unsigned>(bytes_policy::WARPS / a.warps);
    const dim3 grid((a.teams + per_block - 1) / per_block, 1, a.images.count);
    const size_t shared = static_cast<size_t>(bytes_shared(a, channels));
    gf_channels{channels}([&](auto n) {
        gf_allow_shared<bytes_both<n>>(shared);
        gf_launch_kernel(bytes_both<n>, grid, bytes_policy::THREADS, shared, queue, a);
    });
}
