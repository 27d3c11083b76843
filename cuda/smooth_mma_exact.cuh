// Samples of a tile by the definition: one by one, where the arithmetic by tensor cores is in doubt
// and near the ends of rows; or all of them, where most are in doubt.
#ifndef GF_SMOOTH_MMA_EXACT_CUH
#define GF_SMOOTH_MMA_EXACT_CUH

#include "smooth_chain.cuh"
#include "smooth_mma_tile.cuh"

// The sample whose byte `in` points to, with so many pixels of its row on either side as far as
// they matter. Samples are >= 0: the first may be added to 0. The corrected quotient is the
// division (tests/test_smooth_integer.c).
template <int C, int RADIUS>
static __device__ __forceinline__ uint8_t gf_mma_sample(const gf_walk &a, const unsigned char *in,
                                                        int left, int right) {
    const int radius = RADIUS > 0 ? RADIUS : static_cast<int>(a.radius);
    const int reach = static_cast<int>(a.reach); // what is further away may not be in the tile
    left = left < reach ? left : reach;
    right = right < reach ? right : reach;
    float sum[3] = {};
#pragma unroll
    for (int d = -radius - 1; d <= radius + 1; d++) {
        const float x =
            d >= -left && d <= right ? enhance(gf_load(in[d * C]), a.constants.gain) : 0.0f;
        if (d <= radius - 1)
            sum[0] = __fadd_rn(sum[0], x);
        if (d >= -radius && d <= radius)
            sum[1] = __fadd_rn(sum[1], x);
        if (d >= -radius + 1)
            sum[2] = __fadd_rn(sum[2], x);
    }
#pragma unroll
    for (int j = 0; j < 3; j++) {
        const int lo = j - 1 - radius < -left ? -left : j - 1 - radius;
        const int hi = j - 1 + radius < right ? j - 1 + radius : right;
        const int n = hi < lo ? 1 : hi - lo + 1; // nothing is there past the row's ends
        const float inverse = a.inverse[n], quotient = __fmul_rn(sum[j], inverse);
        sum[j] = __fmaf_rn(__fmaf_rn(-static_cast<float>(n), quotient, sum[j]), inverse, quotient);
    }
    float t = sum[1];
    if (a.constants.smooth)
        t = smooth(sum[0], t, sum[2], {left > 0, right > 0}, a.constants);
    return gf_store<uint8_t>(t);
}

// The same, where no end of the row is near.
template <int C, int RADIUS>
static __device__ __forceinline__ uint8_t gf_mma_sample_inside(const gf_walk &a,
                                                               const unsigned char *in) {
    float x[2 * RADIUS + 3], mean[3], most = 0.0f;
#pragma unroll
    for (int i = 0; i < 2 * RADIUS + 3; i++)
        x[i] = enhance(gf_load(in[(i - RADIUS - 1) * C]), a.constants.gain);
#pragma unroll
    for (int j = 0; j < 3; j++) {
        float sum = x[j];
#pragma unroll
        for (int k = 1; k < 2 * RADIUS + 1; k++)
            sum = __fadd_rn(sum, x[j + k]);
        mean[j] = gf_divided<uint8_t, 2 * RADIUS + 1>(sum, &most);
    }
    float t = mean[1];
    if (a.constants.smooth)
        t = smooth(mean[0], t, mean[2], {true, true}, a.constants);
    return gf_store<uint8_t>(t);
}

// Sample `at` of a tile, or just behind it, where less than 16 bytes of a row are left; none if
// negative. All lanes call it.
template <typename Work>
static __device__ __forceinline__ void gf_mma_settle_one(const gf_walk &a, const gf_mma_args &args,
                                                         const gf_mma_tile &tile, int at,
                                                         gf_mma_shared<Work> *shared) {
    const int C = Work::C, RADIUS = Work::RADIUS, radius = static_cast<int>(a.radius);
    const unsigned char *in = reinterpret_cast<const unsigned char *>(shared->in + shared->BEFORE);
    uint32_t pos = tile.begin + at;
    if (tile.rows > 0)
        pos -= (__umulhi(pos, a.magic) >> a.shift) * static_cast<uint32_t>(a.in_stride);
    const uint32_t x = pos / C, after = static_cast<uint32_t>(a.width) - 1 - x;
    const int left = x < 64 ? x : 64, right = after < 64 ? after : 64;
    const bool does = at >= 0 && pos < args.row_bytes; // not between rows
    const bool inside = !does || (left > radius && right > radius);
    const bool easy = RADIUS > 0 && __all_sync(~0u, inside);
    if (!does)
        return;
    in += at;
    uint8_t result = *in;
    if (C % 2 == 1 || pos % C != C - 1) { // an alpha is carried
        if (easy)
            result = gf_mma_sample_inside<C, RADIUS>(a, in);
        else
            result = gf_mma_sample<C, RADIUS>(a, in, left, right);
    }
    if (at < tile.bytes)
        reinterpret_cast<unsigned char *>(shared->out)[at] = result;
    else
        tile.out[at] = result;
}

// All samples of a tile as if no end of a row were near, by the chain: a lane 16 or 24 bytes at a
// time, as many pixels as there are whole in them.
template <typename Work>
static __device__ __forceinline__ void gf_mma_all(const gf_walk &a, int bytes,
                                                  gf_mma_shared<Work> *shared) {
    const int C = Work::C, RADIUS = Work::RADIUS, AROUND = (RADIUS + 1) * C;
    const int WORDS = C == 3 ? 6 : 4, BESIDE = (AROUND + 3) / 4;
    const gf_chain_args args = {a.constants.gain, -8388608.0f * a.constants.gain};
    const uint32_t *in = reinterpret_cast<const uint32_t *>(shared->in + shared->BEFORE);
    uint32_t *out = reinterpret_cast<uint32_t *>(shared->out);
#pragma unroll 1
    for (int first = threadIdx.x * WORDS; first * 4 < bytes; first += 32 * WORDS) {
        uint32_t words[WORDS + 2 * BESIDE], result[WORDS];
#pragma unroll
        for (int i = 0; i < WORDS + 2 * BESIDE; i++)
            words[i] = in[first - BESIDE + i];
        gf_chain<uint8_t, uint8_t, C, RADIUS, WORDS * 4 / C, BESIDE * 4 - AROUND>(a.constants, args,
                                                                                  words, result);
#pragma unroll
        for (int i = 0; i < WORDS; i++)
            out[first + i] = result[i];
    }
}

#endif
