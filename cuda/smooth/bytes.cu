// smooth of u8 along y and along both axes, in one pass over the image: window_tile by the plan's
// integer form; near-ties, and samples near the edges of the image, whose windows are clipped, by
// the stages.
#include "cuda/smooth/both.cuh"
#include "cuda/window/tile.cuh"

struct bytes_args : gf_tile_args {
    // See bytes_round. SHIFTED: the offsets subtract 2^23 * scale, too, and lose fraction bits.
    float scale, offset[2];
    gf_smooth_constants constants;
};

static constexpr int tile_bytes = gf_tile_policy::BYTES;

// Return the result at byte `byte` of a row of a tile.
template <bool SIDES>
GF_DEVICE uint8_t *bytes_out(gf_tile_shared<SIDES> *shared, int row, int byte) {
    return reinterpret_cast<uint8_t *>(shared->out[row]) + byte;
}

// Compute near-ties of both axes, each in a group of lanes: a lane computes a sum along x.
template <int RADIUS>
GF_DEVICE void bytes_ties(const bytes_args &a, gf_tile_shared<true> *shared, int count) {
    constexpr int ROWS = 2 * RADIUS + 3, LANES = ROWS <= 8 ? 8 : 16;
    const int group = threadIdx.x / LANES, k = threadIdx.x % LANES;
    // Without the smooth stage, the first and the last row have no effect, here and below.
    const int row = min(max(a.radius[1] + k - RADIUS - 1, 0), 2 * a.radius[1]);
    uint32_t *sums = shared->found[group];
#pragma unroll 1
    for (int n = group; n - group < count; n += 32 / LANES) {
        const int at = shared->list[n < count ? n : 0], y = at / tile_bytes, byte = at % tile_bytes;
        const uint8_t *from = shared->sample(y + row, byte);
        float sum[1], result[1];
        gf_smooth_exact<uint8_t, RADIUS, true>(
            a.constants, 0, 0, sum, [&](int d) { return gf_load(from[d * a.in.channels]); });
        sums[k] = __float_as_uint(sum[0]);
        __syncwarp();
        gf_smooth_exact<uint8_t, RADIUS, true>(a.constants, 0, 0, result, [&](int d) {
            return __uint_as_float(sums[d + RADIUS + 1]);
        });
        if (k == 0 && n < count)
            *bytes_out(shared, y, byte) = gf_store<uint8_t>(result[0]);
        __syncwarp();
    }
}

// Compute near-ties along y.
template <int RADIUS>
GF_DEVICE void bytes_ties(const bytes_args &a, gf_tile_shared<false> *shared, int count) {
#pragma unroll 1
    for (int n = threadIdx.x; n < count; n += 32) {
        const int at = shared->list[n], y = at / tile_bytes, byte = at % tile_bytes;
        const int reach = a.radius[1];
        float result[1];
        gf_smooth_exact<uint8_t, RADIUS, true>(a.constants, 0, 0, result, [&](int d) {
            return gf_load(*shared->sample(y + min(max(reach + d, 0), 2 * reach), byte));
        });
        *bytes_out(shared, y, byte) = gf_store<uint8_t>(result[0]);
    }
}

// Compute rows [y, stop) x bytes [byte, end) of a tile by the stages. A lane walks down a column,
// or a part of one.
template <int RADIUS, bool ALONG_X>
GF_DEVICE void bytes_exact(const bytes_args &a, const gf_tile &tile,
                           gf_tile_shared<ALONG_X> *shared, int y, int stop, int byte, int end) {
    constexpr int N = 2 * RADIUS + 1, AROUND = RADIUS + 1;
    const gf_smooth_constants &k = a.constants;
    const int columns = end - byte, parts = columns < 32 ? 32 / max(columns, 1) : 1;
    const int rows = (stop - y + parts - 1) / parts;
#pragma unroll 1
    for (int n = threadIdx.x; rows > 0 && n < columns * parts; n += 32) {
        const int part = n / columns, i = byte + n - part * columns;
        const int first = y + part * rows, last = min(first + rows, stop);
        const int64_t x = (tile.left + i) / a.in.channels;
        const int before = gf_smooth_near(x), after = gf_smooth_near(a.in.width - 1 - x);
        const gf_both_line<uint8_t, RADIUS, 1> along_x(k, x, a.in.width);
        float value[N], mean[3] = {}; // the last sums along x; their last means
#pragma unroll
        for (int j = 0; j < N; j++)
            value[j] = -0.0f; // changes no sum
#pragma unroll 1
        for (int r = first - AROUND; r < last + AROUND; r++) {
            const int64_t at = tile.y + r, center = at - RADIUS;
#pragma unroll
            for (int j = 0; j + 1 < N; j++)
                value[j] = value[j + 1];
            value[N - 1] = -0.0f;
            if (at >= 0 && at < a.in.height && r + a.radius[1] >= 0) {
                const uint8_t *from = shared->sample(r + a.radius[1], i);
                float sum[1] = {gf_load(*from)};
                if (ALONG_X)
                    along_x.chain(k, sum, [&](int d) {
                        return d < -before || d > after
                                   ? -0.0f
                                   : gf_smooth_enhance(gf_load(from[d * a.in.channels]), k.gain);
                    });
                value[N - 1] = gf_smooth_enhance(sum[0], k.gain);
            }
            float sum = value[0];
#pragma unroll
            for (int j = 1; j < N; j++)
                sum = __fadd_rn(sum, value[j]);
            const int above = min(gf_smooth_near(center), RADIUS);
            const int below = min(gf_smooth_near(a.in.height - 1 - center), RADIUS);
            const int count = max(above + below + 1, 1);
            mean[0] = mean[1], mean[1] = mean[2];
            mean[2] = gf_both_divided<uint8_t>(sum, static_cast<float>(count), k.inverse[count]);
            if (r - AROUND < first)
                continue;
            const float result = k.smooth ? gf_smooth_mid(mean[0], mean[1], mean[2], center > 1,
                                                          center < a.in.height, k)
                                          : mean[1];
            *bytes_out(shared, r - AROUND, i) = gf_store<uint8_t>(result);
        }
    }
}

// Round 4 sums of the integer form in two ways, T * scale plus and minus more than the error of the
// form. Where both give the same integer, it is the result; the others are near-ties. Returns the
// results. Moves ties by one bit to the left, and adds 1 to the bytes of near-ties.
template <typename Sum>
GF_DEVICE uint32_t bytes_round(Sum sum, float scale, const float (&offset)[2], uint32_t *ties) {
    uint32_t to[2];
#pragma unroll
    for (int k = 0; k < 2; k++) {
        uint32_t bits[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            bits[i] = gf_smooth_bits<uint8_t>(__fmaf_rn(sum(i), scale, offset[k]));
        gf_pack_samples<uint8_t, 4, true>(bits, &to[k]);
    }
    *ties = *ties * 2 + (to[1] - to[0]); // the difference of two bytes is 0 or 1
    return to[0];
}

// ALONG_X: both axes, otherwise y. SHIFTED: see bytes_args. Sums T of y, and these, are below 2^23:
// with 2^23 in the accumulators, they are the bits of 2^23 + T.
template <int RADIUS, bool ALONG_X_, bool SHIFTED> struct bytes_filter {
    typedef bytes_args Args;
    typedef gf_tile_shared<ALONG_X_> Shared;
    static constexpr bool WIDE = false, TIES = true, ALONG_X = ALONG_X_;
    static constexpr uint32_t START = SHIFTED || !ALONG_X ? 0x4b000000 : 0;

    static __device__ __forceinline__ uint32_t word(const Args &a, const uint32_t (&s)[4],
                                                    uint32_t *ties) {
        const auto sum = [&](int i) {
            if constexpr (ALONG_X && !SHIFTED)
                return static_cast<float>(s[i]);
            const float value = __uint_as_float(s[i]);
            return SHIFTED ? value : __fadd_rn(value, -8388608.0f);
        };
        return bytes_round(sum, a.scale, a.offset, ties);
    }

    static __device__ __forceinline__ void finish(const Args &a, const gf_tile &tile,
                                                  Shared *shared, int ties) {
        const int64_t reach = a.radius[1], rest = tile.rows;
        const int64_t side = ALONG_X ? reach * a.in.channels : 0;
        const int bytes = static_cast<int>(min(a.in.row_bytes - tile.left, int64_t(tile_bytes)));
        // If most samples are near-ties, as in flat areas of some values, all are computed again.
        const bool all = ties > gf_tile_policy::MAX_TIES;
        if (!all)
            bytes_ties<RADIUS>(a, shared, ties);
        if (!all && tile.y >= reach && tile.y + rest <= a.in.height - reach && tile.left >= side &&
            tile.left + bytes <= a.in.row_bytes - side)
            return;
        __syncwarp();
        const auto near = [](int64_t n, int64_t from, int64_t to) {
            return static_cast<int>(n < from ? from : n < to ? n : to);
        };
        const int top = all ? tile.rows : near(reach - tile.y, 0, rest);
        const int bottom = near(a.in.height - reach - tile.y, top, rest);
        const int left = near(side - tile.left, 0, bytes);
        const int right = near(a.in.row_bytes - side - tile.left, left, bytes);
#pragma unroll 1
        for (int part = 0; part < (ALONG_X ? 4 : 2); part++) // above, below, before, after
            bytes_exact<RADIUS, ALONG_X>(a, tile, shared,
                                         part == 0   ? 0
                                         : part == 1 ? bottom
                                                     : top,
                                         part == 0   ? top
                                         : part == 1 ? tile.rows
                                                     : bottom,
                                         part == 3 ? right : 0, part == 2 ? left : bytes);
    }
};

// Set the taps and the scale. A value is rounded once, to a multiple of 2^-16 if it is below 256:
// its error is less than the margin for ties plus 2^-16. Taps are multiplied by powers of two as
// far as they fit: then offsets have more fraction bits. Sums along x stay below 2^16. Returns
// false if there is no such form.
static bool bytes_set(const gf_smooth_plan *plan, bytes_args *a, gf_bytes_window *window,
                      bool *shifted) {
    const gf_smooth_integer *integer = &plan->integer;
    const uint32_t reach = integer->reach, limit = (1 << 23) / 255;
    const bool both = plan->axis == GF_SMOOTH_XY;
    uint32_t most = 0, sum = 0; // of the taps
    for (uint32_t k = 0; k <= 2 * reach; k++) {
        most = integer->tap[k] > most ? integer->tap[k] : most;
        sum += integer->tap[k];
    }
    uint32_t all = both ? sum * sum : sum;
    a->scale = both ? integer->xy_scale : integer->scale;
    for (int axis = both ? 0 : 1; axis < 2; axis++) {
        uint32_t times = 1;
        for (; 2 * times * most < 256 && 2 * all <= limit && (axis == 1 || 2 * times * sum <= 256);
             times *= 2, all *= 2)
            a->scale /= 2;
        window->radius[axis] = static_cast<int>(reach);
        for (uint32_t k = 0; k <= 2 * reach; k++)
            window->taps[axis][GF_BYTES_RADIUS - reach + k] =
                static_cast<uint16_t>(times * integer->tap[k]);
    }
    *shifted = both && all <= limit;
    const double start = *shifted ? static_cast<double>(a->scale) * (1 << 23) : 0;
    const double margin = static_cast<double>(both ? integer->xy_tie_margin : integer->tie_margin);
    const double error = margin + 0x1p-16;
    a->offset[0] = nextafterf(static_cast<float>(-start - error), -INFINITY);
    a->offset[1] = nextafterf(static_cast<float>(-start + error), INFINITY);
    a->constants = gf_smooth_constants_of(plan);
    return a->offset[1] - a->offset[0] < 0x1p-9f; // near-ties are rare
}

bool gf_smooth_bytes(const gf_smooth_job &job) {
    const gf_smooth_plan *plan = job.plan;
    const gf_smooth_integer *integer = &plan->integer;
    const bool both = plan->axis == GF_SMOOTH_XY;
    bytes_args a = {};
    gf_bytes_window window = {};
    bool shifted, done = false;
    if (plan->head.in.type != GF_U8 || plan->axis == GF_SMOOTH_X || !gf_chain_fits(plan, false) ||
        integer->form != GF_SMOOTH_TAPS || (both && !(integer->xy_scale > 0)) ||
        !bytes_set(plan, &a, &window, &shifted))
        return false;
    gf_dispatch(
        [&](auto radius, auto along_x, auto shift) {
            if constexpr (along_x || !shift)
                done = gf_tile_launch<bytes_filter<radius, along_x, shift>>(
                    &a, window, &plan->head, &job.strip, {GF_EDGE_REPLICATE, 0}, job.queue);
        },
        gf_number<0, 3>{plan->radius}, gf_flag{both}, gf_flag{shifted});
    return done;
}
