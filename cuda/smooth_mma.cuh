// smooth of u8 rows by tensor cores: what the plan's integer form says, 256 samples of a warp with
// as few as 2 matrix products.
//
// A line is 128 bytes of a row, its channels as they lie: 8 chunks of 16. With SIDE bytes before
// and after it, a chunk is a row of a matrix of bytes; the taps, shifted by a byte from column to
// column and C bytes apart, are the other matrix; their product holds the weighted sums. Its
// fragments make a lane read and write the word of its own number:
//
//   A  lane 4g + t has the words t of each 16 bytes of chunk g; and so of a second line, whose
//      chunks are the rows 8 to 15
//   D  lane 4g + t gets two neighbouring columns of chunk g, twice: the sums of its word t
//
// Sums saturate where samples become white, because they begin that far below 2^31 - 1. They are
// multiplied and rounded in the plan's fixed point (gf_smooth_fixed): the highest byte is the
// result, and the next one is 0 where the rounding is in doubt: there, only the definition decides.
#ifndef GF_SMOOTH_MMA_CUH
#define GF_SMOOTH_MMA_CUH

#include "device.cuh"

#include "smooth/smooth.h"

#define GF_MMA_LINE 128
#define GF_MMA_MOST_SIDE 48
#define GF_MMA_TAP_WORDS (GF_MMA_MOST_SIDE / 2 + 8)

struct gf_mma_args {
    uint32_t taps[GF_MMA_TAP_WORDS]; // byte SIDE + 16 + d: of an input d bytes after the output
    uint32_t start;                  // of every sum; saturates at `most` more
    uint32_t factor, half;           // of a sum
    uint32_t row_bytes;
    uint32_t tile_bytes, last;     // of a tile that is a part of a row, and of its last tile
    uint32_t left, right;          // before and from here on, a row has only rim
    uint32_t row_magic, row_shift; // to divide by the tiles of a row
    uint32_t rim_magic, rim_shift; // to divide by the samples of a row's rims
};

// Fills in what does not depend on the image; false if there is no such form.
static inline bool gf_mma_args_of(const gf_smooth_integer *by, int channels, int side,
                                  gf_mma_args *args) {
    gf_smooth_fixed fixed;
    if (!gf_smooth_fixed_of(by, &fixed))
        return false;
    args->start = 0x7fffffffu - fixed.most;
    args->factor = fixed.factor;
    args->half = fixed.half - args->start * args->factor; // whole numbers modulo 2^32
    const int reach = static_cast<int>(by->reach);
    for (int k = -reach; k <= reach; k++) {
        const int byte = side + 16 + k * channels;
        args->taps[byte / 4] |= static_cast<uint32_t>(by->tap[k + reach]) << 8 * (byte % 4);
    }
    return true;
}

// ---- products -----------------------------------------------------------------------------------

// to = from + bytes * taps, of 32 or 16 bytes a row, saturating.
static __device__ __forceinline__ void gf_mma(uint32_t *to, const uint32_t *from, uint32_t a0,
                                              uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                                              uint32_t b1) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.u8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};\n"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(from[0]), "r"(from[1]),
          "r"(from[2]), "r"(from[3]));
#else
    __trap(); // never launched
#endif
}

static __device__ __forceinline__ void gf_mma(uint32_t *to, const uint32_t *from, uint32_t a0,
                                              uint32_t a1, uint32_t b0) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.satfinite.s32.u8.u8.s32 "
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};\n"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
        : "r"(a0), "r"(a1), "r"(b0), "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3]));
#else
    __trap();
#endif
}

// Of samples of C channels whose windows reach at most SIDE bytes to either side; of means with
// that RADIUS, or, if it is 0, any.
template <int CHANNELS, int BYTES, int MEAN> struct gf_mma_work {
    static const int C = CHANNELS, SIDE = BYTES, RADIUS = MEAN;
    static const int PARTS = SIDE / 8 + 1; // of 16 bytes, a chunk's row
    static const int OWN = SIDE / 16; // the part that holds a lane's own word, if SIDE % 16 == 0
    static const int AT_ONCE = PARTS <= 3 ? 4 : 2; // lines
    static const uint32_t FILTERED = C == 2 ? 0x00800080u : C == 4 ? 0x00808080u : 0x80808080u;
    static_assert(SIDE % 16 == 0 || (SIDE == 8 && C % 2 == 1), "alpha is taken from OWN");
    static_assert(SIDE <= GF_MMA_MOST_SIDE, "all taps fit in the arguments");

    uint32_t taps[2][PARTS]; // of the first and the last two bytes of a word
    uint32_t start[4];

    // Byte k of part p lies so far after the first of the chunk.
    static __device__ __forceinline__ int offset(int part) {
        return 16 * part - SIDE;
    }

    // Of the taps' matrix a lane has 4 rows from 4 * (lane % 4) on of column lane / 4, which is the
    // sum at byte 4 * (column / 2) + column % 2 of a chunk, or that plus 2. four: shared memory.
    __device__ __forceinline__ void set_up(const gf_mma_args &args, int *four) {
        const int lane = threadIdx.x % 32, odd = lane / 4 % 2;
        static_assert(GF_MMA_TAP_WORDS == 32, "a word a lane");
        const uint32_t mine = args.taps[lane];
#pragma unroll
        for (int p = 0; p < PARTS; p++) {
            const int at = (SIDE + 16 + offset(p)) / 4 + lane % 4 - lane / 8;
            const uint32_t before = __shfl_sync(~0u, mine, at - 1);
            const uint32_t here = __shfl_sync(~0u, mine, at);
            taps[0][p] = odd ? __funnelshift_r(before, here, 24) : here;
            taps[1][p] = __funnelshift_r(before, here, odd ? 8 : 16);
        }
        // Four registers side by side, as the products take them. Of a value that it knows to be
        // one, the compiler would make copies for each product.
        if (lane < 4)
            four[lane] = static_cast<int>(args.start);
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 4; i++)
            start[i] = static_cast<const volatile int *>(four)[i];
    }

    // The words of a lane in two lines, x and y, become its results; a bit (the highest of a byte)
    // for each sample in doubt.
    __device__ __forceinline__ void lines(const gf_mma_args &args, const uint32_t *x,
                                          const uint32_t *y, uint32_t *result,
                                          uint32_t *doubt) const {
        uint32_t pair[2][2]; // [line][first or second two bytes]: fractions, then results
#pragma unroll
        for (int s = 0; s < 2; s++) {
            uint32_t sum[4];
#pragma unroll
            for (int p = 0; p + 1 < PARTS; p += 2)
                gf_mma(sum, p == 0 ? start : sum, x[p], y[p], x[p + 1], y[p + 1], taps[s][p],
                       taps[s][p + 1]);
            if (PARTS % 2)
                gf_mma(sum, sum, x[PARTS - 1], y[PARTS - 1], taps[s][PARTS - 1]);
#pragma unroll
            for (int i = 0; i < 4; i++)
                sum[i] = sum[i] * args.factor + args.half;
            pair[0][s] = __byte_perm(sum[0], sum[1], 0x7362);
            pair[1][s] = __byte_perm(sum[2], sum[3], 0x7362);
        }
#pragma unroll
        for (int l = 0; l < 2; l++) {
            const uint32_t own = (l ? y : x)[OWN];
            const uint32_t fraction = __byte_perm(pair[l][0], pair[l][1], 0x5410);
            result[l] = __byte_perm(pair[l][0], pair[l][1], 0x7632);
            if (C == 2)
                result[l] = (result[l] & 0x00ff00ffu) | (own & 0xff00ff00u);
            if (C == 4)
                result[l] = (result[l] & 0x00ffffffu) | (own & 0xff000000u);
            // Of bytes that are 0 (and of a 1 above one: that costs time only).
            doubt[l] = (fraction - 0x01010101u) & ~fraction & FILTERED;
        }
    }
};

#endif
