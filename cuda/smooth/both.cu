// smooth along both axes of u8, in one pass over the image: window_tile by the plan's integer form
// for both axes; near-ties, and samples near the edges of the image, whose windows are clipped, by
// the stages.
#include "cuda/smooth/both.cuh"
#include "cuda/window/tile.cuh"

struct both_args : gf_tile_args {
    float scale, offset[2]; // see gf_both_round; SMALL: the offsets also subtract 2^23 * scale
    gf_smooth_constants constants;
};

static constexpr int both_bytes = gf_tile_policy::BYTES;

// Return sample `byte` of a row of a tile in shared memory, or the result at its place.
GF_DEVICE uint8_t *both_in(gf_tile_shared *shared, int row, int byte) {
    return reinterpret_cast<uint8_t *>(shared->in[row] + 1) + byte;
}

GF_DEVICE uint8_t *both_out(gf_tile_shared *shared, int row, int byte) {
    return reinterpret_cast<uint8_t *>(shared->out[row]) + byte;
}

// Compute near-ties, each in a group of lanes: a lane computes the sum along x of a row.
template <int RADIUS> GF_DEVICE void both_ties(const both_args &a, gf_tile_shared *shared) {
    constexpr int ROWS = 2 * RADIUS + 3, LANES = ROWS <= 8 ? 8 : 16;
    const int group = threadIdx.x / LANES, k = threadIdx.x % LANES, count = shared->ties;
    // Without the smooth stage, the first and the last row have no effect.
    const int row = min(max(a.radius[1] + k - RADIUS - 1, 0), 2 * a.radius[1]);
    uint32_t *sums = shared->found[group];
#pragma unroll 1
    for (int n = group; n - group < count; n += 32 / LANES) {
        const int at = shared->list[n < count ? n : 0], y = at / both_bytes, byte = at % both_bytes;
        const uint8_t *from = both_in(shared, y + row, byte);
        float sum[1], result[1];
        gf_smooth_exact<uint8_t, RADIUS, true>(
            a.constants, 0, 0, sum, [&](int d) { return gf_load(from[d * a.in.channels]); });
        sums[k] = __float_as_uint(sum[0]);
        __syncwarp();
        gf_smooth_exact<uint8_t, RADIUS, true>(a.constants, 0, 0, result, [&](int d) {
            return __uint_as_float(sums[d + RADIUS + 1]);
        });
        if (k == 0 && n < count)
            *both_out(shared, y, byte) = gf_store<uint8_t>(result[0]);
        __syncwarp();
    }
}

// Compute rows [y, stop) x bytes [byte, end) of a tile by the stages. A lane walks down a column,
// or a part of one.
template <int RADIUS>
GF_DEVICE void both_exact(const both_args &a, const gf_tile &tile, gf_tile_shared *shared, int y,
                          int stop, int byte, int end) {
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
                const uint8_t *from = both_in(shared, r + a.radius[1], i);
                float sum[1];
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
            *both_out(shared, r - AROUND, i) = gf_store<uint8_t>(result);
        }
    }
}

// SMALL: sums are below 2^23. With 2^23 in the accumulators, they are the bits of 2^23 + T.
template <int RADIUS, bool SMALL> struct both_filter {
    typedef both_args Args;
    static constexpr bool WIDE = false, TIES = true;
    static constexpr uint32_t START = SMALL ? 0x4b000000 : 0;

    static __device__ __forceinline__ uint32_t word(const Args &a, const uint32_t (&s)[4],
                                                    uint32_t *ties) {
        const auto sum = [&](int i) {
            return SMALL ? __uint_as_float(s[i]) : static_cast<float>(s[i]);
        };
        return gf_both_round(sum, a.scale, a.offset, ties);
    }

    static __device__ __forceinline__ void finish(const Args &a, const gf_tile &tile,
                                                  gf_tile_shared *shared) {
        const int64_t reach = a.radius[1], side = reach * a.in.channels, rest = tile.rows;
        const int bytes = static_cast<int>(min(a.in.row_bytes - tile.left, int64_t(both_bytes)));
        // If most samples are near-ties, as in flat areas of some values, all are computed again.
        const bool all = shared->ties > gf_tile_policy::MAX_TIES;
        if (!all)
            both_ties<RADIUS>(a, shared);
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
        for (int part = 0; part < 4; part++) // above, below, before, after
            both_exact<RADIUS>(a, tile, shared,
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
static bool both_set(const gf_smooth_plan *plan, both_args *a, gf_bytes_window *window,
                     bool *small) {
    const gf_smooth_integer *integer = &plan->integer;
    const uint32_t reach = integer->reach, limit = (1 << 23) / 255;
    if (plan->head.in.type != GF_U8 || !(integer->xy_scale > 0))
        return false;
    uint32_t most = 0, sum = 0; // of the taps
    for (uint32_t k = 0; k <= 2 * reach; k++) {
        most = integer->tap[k] > most ? integer->tap[k] : most;
        sum += integer->tap[k];
    }
    uint32_t all = sum * sum;
    a->scale = integer->xy_scale;
    for (int axis = 0; axis < 2; axis++) {
        uint32_t times = 1;
        for (; 2 * times * most < 256 && 2 * all <= limit && (axis == 1 || 2 * times * sum <= 256);
             times *= 2, all *= 2)
            a->scale /= 2;
        window->radius[axis] = static_cast<int>(reach);
        for (uint32_t k = 0; k <= 2 * reach; k++)
            window->taps[axis][GF_BYTES_RADIUS - reach + k] =
                static_cast<uint16_t>(times * integer->tap[k]);
    }
    *small = all <= limit;
    const double start = *small ? static_cast<double>(a->scale) * (1 << 23) : 0;
    const double error = static_cast<double>(integer->xy_tie_margin) + 0x1p-16;
    a->offset[0] = nextafterf(static_cast<float>(-start - error), -INFINITY);
    a->offset[1] = nextafterf(static_cast<float>(-start + error), INFINITY);
    a->constants = gf_smooth_constants_of(plan);
    return a->offset[1] - a->offset[0] < 0x1p-9f; // near-ties are rare
}

bool gf_smooth_both(const gf_smooth_job &job) {
    const gf_smooth_plan *plan = job.plan;
    both_args a = {};
    gf_bytes_window window = {};
    bool small, done = false;
    if (plan->axis != GF_SMOOTH_XY || plan->tile > 0 || plan->radius > 3 ||
        !both_set(plan, &a, &window, &small))
        return false;
    gf_dispatch(
        [&](auto radius, auto few) {
            done = gf_tile_launch<both_filter<radius, few>>(&a, window, &plan->head, &job.strip,
                                                            {GF_EDGE_REPLICATE, 0}, job.queue);
        },
        gf_number<0, 3>{plan->radius}, gf_flag{small});
    return done;
}
