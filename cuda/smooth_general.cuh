// smooth for any radius, tile and axis: the published form of the pipeline, generalised.
//
// As on the CPU, rows and columns are the same work: a signal has positions, `lanes` samples each,
// and position p + 1 lies lanes floats after position p in shared memory. For rows a position is a
// pixel and the lanes are its channels; for columns a position is a row and the lanes are
// neighbouring samples of it.
//
// One block works through pieces of `length` positions x `lanes`. Its first half produces: loads
// and enhances the next piece into one of two buffers. Its second half consumes: blurs the current
// piece into a third. Barrier; all threads smooth and store; barrier.
//
// Shared memory: (2 * (length + 2*radius + 2) + length + 2) * lanes floats.
// Global memory: reads each sample (1 + 2*(radius+1)/length) times, writes it once. Windows are cut
// at the tile's ends, so any width, height and tile is exact; the last piece is just shorter.
#ifndef GF_SMOOTH_GENERAL_CUH
#define GF_SMOOTH_GENERAL_CUH

#include "device.cuh"
#include "smooth_stages.cuh"

#define GF_GENERAL_THREADS 256

struct gf_general_args {
    const unsigned char *in; // position in_first, lane 0 of across 0
    unsigned char *out;      // position first likewise
    uint64_t in_first;
    size_t in_across, out_across;     // bytes from one across to the next
    size_t in_position, out_position; // bytes from one position to the next
    uint64_t signal;                  // positions of a whole signal
    uint64_t first, last;             // output positions [first, last)
    uint64_t across;                  // how many signals, or strips of lanes
    uint64_t last_lanes;              // lanes of the last across; all others have `lanes`
    uint64_t tile;                    // 0: none
    int lanes, length, radius;
    int channels; // with alpha last for 2 and 4
    gf_smooth_constants constants;
};

struct gf_piece {
    uint64_t across;
    uint64_t begin, end;           // outputs
    uint64_t load_begin, load_end; // enhanced positions
    int lanes;
};

static __device__ __forceinline__ gf_piece piece_of(const gf_general_args &a, uint64_t index) {
    const uint64_t pieces = (a.last - a.first + a.length - 1) / a.length;
    gf_piece piece;
    piece.across = index / pieces;
    piece.begin = a.first + (index % pieces) * a.length;
    piece.end = a.last - piece.begin < a.length ? a.last : piece.begin + a.length;
    const uint64_t reach = a.radius + 1;
    piece.load_begin = piece.begin < reach ? 0 : piece.begin - reach;
    piece.load_end = a.signal - piece.end < reach ? a.signal : piece.end + reach;
    // Columns come in bands: what the smooth stage would read but does not need may not be there.
    if (!a.constants.smooth) {
        piece.load_begin = piece.begin < a.radius ? 0 : piece.begin - a.radius;
        piece.load_end = a.signal - piece.end < a.radius ? a.signal : piece.end + a.radius;
    }
    piece.lanes = piece.across + 1 == a.across ? static_cast<int>(a.last_lanes) : a.lanes;
    return piece;
}

static __device__ __forceinline__ void tile_of(const gf_general_args &a, uint64_t p,
                                               uint64_t *begin, uint64_t *end) {
    *begin = a.tile ? p - p % a.tile : 0;
    *end = a.tile && a.tile < a.signal - *begin ? *begin + a.tile : a.signal;
}

template <typename Tin>
static __device__ void produce(const gf_general_args &a, const gf_piece &piece, float *loaded,
                               int thread, int threads) {
    const int count = static_cast<int>(piece.load_end - piece.load_begin) * piece.lanes;
    const unsigned char *base =
        a.in + piece.across * a.in_across + (piece.load_begin - a.in_first) * a.in_position;
    for (int i = thread; i < count; i += threads) {
        const int position = i / piece.lanes, lane = i - position * piece.lanes;
        const Tin *p = reinterpret_cast<const Tin *>(base + position * a.in_position) + lane;
        loaded[i] = enhance(gf_load(*p), a.constants.gain);
    }
}

// blurred holds positions [begin - 1, end + 1), of which those outside the signal or not needed
// stay unwritten.
static __device__ void consume(const gf_general_args &a, const gf_piece &piece, const float *loaded,
                               float *blurred, int thread, int threads) {
    const int side = a.constants.smooth ? 1 : 0;
    const uint64_t from = piece.begin < side ? 0 : piece.begin - side;
    const uint64_t to = a.signal - piece.end < side ? a.signal : piece.end + side;
    const int count = static_cast<int>(to - from) * piece.lanes;
    for (int i = thread; i < count; i += threads) {
        const int position = i / piece.lanes, lane = i - position * piece.lanes;
        const uint64_t p = from + position;
        uint64_t tile_begin, tile_end;
        tile_of(a, p, &tile_begin, &tile_end);
        uint64_t lo = p - tile_begin < a.radius ? tile_begin : p - a.radius;
        uint64_t hi = tile_end - 1 - p < a.radius ? tile_end - 1 : p + a.radius;
        // At the rim of what was loaded lie positions of a neighbouring tile, which nobody asks
        // for.
        lo = lo < piece.load_begin ? piece.load_begin : lo;
        hi = hi < piece.load_end ? hi : piece.load_end - 1;
        const int at = static_cast<int>(lo - piece.load_begin) * piece.lanes + lane;
        const int slot = static_cast<int>(p + 1 - piece.begin) * piece.lanes + lane;
        blurred[slot] = blur(loaded + at, piece.lanes, static_cast<int>(hi - lo) + 1);
    }
}

template <typename Tin, typename Tout>
static __device__ void finish(const gf_general_args &a, const gf_piece &piece, const float *blurred,
                              int thread, int threads) {
    const int count = static_cast<int>(piece.end - piece.begin) * piece.lanes;
    const bool has_alpha = a.channels == 2 || a.channels == 4;
    for (int i = thread; i < count; i += threads) {
        const int position = i / piece.lanes, lane = i - position * piece.lanes;
        const uint64_t p = piece.begin + position;
        Tout *q = reinterpret_cast<Tout *>(a.out + piece.across * a.out_across +
                                           (p - a.first) * a.out_position) +
                  lane;
        // In rows lanes are channels; in columns strips begin at a multiple of 4 samples.
        if (has_alpha && (lane & (a.channels - 1)) == a.channels - 1) {
            const Tin *source = reinterpret_cast<const Tin *>(a.in + piece.across * a.in_across +
                                                              (p - a.in_first) * a.in_position) +
                                lane;
            *q = gf_carry<Tout, Tin>::run(*source);
            continue;
        }
        uint64_t tile_begin, tile_end;
        tile_of(a, p, &tile_begin, &tile_end);
        const gf_smooth_end end = {p > tile_begin, p + 1 < tile_end};
        const float *mid = blurred + (position + 1) * piece.lanes + lane;
        float t = *mid;
        if (a.constants.smooth)
            t = smooth(end.has_prev ? mid[-piece.lanes] : 0.0f, t,
                       end.has_next ? mid[piece.lanes] : 0.0f, end, a.constants);
        *q = gf_store<Tout>(t);
    }
}

template <typename Tin, typename Tout>
__global__ void __launch_bounds__(GF_GENERAL_THREADS) smooth_general(const gf_general_args a) {
    extern __shared__ float shared[];
    const int loaded_floats = (a.length + 2 * a.radius + 2) * a.lanes;
    float *const loaded[2] = {shared, shared + loaded_floats};
    float *const blurred = shared + 2 * loaded_floats;
    const int half = GF_GENERAL_THREADS / 2;
    const bool producer = threadIdx.x < half;
    const int thread = producer ? threadIdx.x : threadIdx.x - half;

    const uint64_t pieces = (a.last - a.first + a.length - 1) / a.length * a.across;
    uint64_t index = blockIdx.x;
    if (index >= pieces)
        return;
    gf_piece piece = piece_of(a, index);
    if (producer)
        produce<Tin>(a, piece, loaded[0], thread, half);
    __syncthreads();
    for (int turn = 0;; turn ^= 1) {
        const uint64_t next = index + gridDim.x;
        const bool more = next < pieces;
        const gf_piece next_piece = more ? piece_of(a, next) : piece;
        if (producer) {
            if (more)
                produce<Tin>(a, next_piece, loaded[turn ^ 1], thread, half);
        } else {
            consume(a, piece, loaded[turn], blurred, thread, half);
        }
        __syncthreads();
        finish<Tin, Tout>(a, piece, blurred, threadIdx.x, GF_GENERAL_THREADS);
        if (!more)
            break;
        __syncthreads();
        piece = next_piece;
        index = next;
    }
}

#endif
