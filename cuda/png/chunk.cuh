// PNG encoder on a device: what its kernels share: reductions, and the bytes of a chunk.
#ifndef GF_PNG_CHUNK_CUH
#define GF_PNG_CHUNK_CUH

#include "cuda/png/encode.cuh"

static constexpr uint32_t THREADS = 256;                      // of a block that processes a chunk
static constexpr uint32_t THREAD_BYTES = PNG_CHUNK / THREADS; // consecutive, per thread
static constexpr uint32_t THREAD_WORDS = THREAD_BYTES / 4;

static_assert(THREAD_BYTES == 64, "a thread describes its bytes by a 64-bit mask");

// Add up the values of all threads of a block. Each thread gets the sum.
GF_DEVICE uint64_t png_block_sum(uint64_t x) {
    __shared__ uint64_t sums[32];
    x = gf_reduce_group<32>(x, gf_plus());
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0;
    for (unsigned i = 0; i < blockDim.x / 32; i++)
        x += sums[i];
    return x;
}

// Combine the values of all threads before this one in order, or after it with BACK; or `none`.
template <bool BACK = false, typename T, typename Operation>
GF_DEVICE T png_scan(T x, T none, Operation operation) {
    __shared__ T totals[BACK ? THREADS / 32 : 32];
    const int lane = threadIdx.x % 32;
    const auto next = [](T from, int distance) {
        return BACK ? __shfl_down_sync(GF_WARP, from, distance)
                    : __shfl_up_sync(GF_WARP, from, distance);
    };
    const auto join = [&](T first, T second) {
        return BACK ? operation(second, first) : operation(first, second);
    };
    for (int distance = 1; distance < 32; distance *= 2) {
        const T other = next(x, distance);
        if (BACK ? lane + distance < 32 : lane >= distance)
            x = join(other, x);
    }
    __syncthreads();
    if (lane == (BACK ? 0 : 31))
        totals[threadIdx.x / 32] = x;
    __syncthreads();
    T outside = none;
    for (unsigned i = BACK ? threadIdx.x / 32 + 1 : 0; i < (BACK ? THREADS / 32 : threadIdx.x / 32);
         i++)
        outside = operation(outside, totals[i]);
    x = next(x, 1);
    return lane == (BACK ? 31 : 0) ? outside : join(outside, x);
}

// Position of a thread block: a chunk of a strip.
struct png_place {
    uint32_t strip, chunk; // chunk: in the strip
    uint32_t index;        // of the chunk in the window
    uint32_t block;        // index of its deflate block in the window
    uint32_t from;         // first byte, from the start of the strip
    uint32_t begin, end;   // the same for the block
    uint32_t size;         // bytes of the chunk; 0: the strip has fewer chunks
};

GF_DEVICE png_place png_locate(const png_window &w, uint32_t index, uint32_t filtered) {
    png_place p;
    p.index = index;
    p.strip = index / w.chunks;
    p.chunk = index % w.chunks;
    p.block = p.strip * w.blocks + p.chunk / PNG_BLOCK_CHUNKS;
    p.from = p.chunk * PNG_CHUNK;
    p.begin = p.chunk / PNG_BLOCK_CHUNKS * GF_DEFLATE_BLOCK;
    p.end = min(p.begin + GF_DEFLATE_BLOCK, filtered);
    p.size = p.from < filtered ? min(PNG_CHUNK, filtered - p.from) : 0;
    return p;
}

// Return the number of zeros below the lowest one; 64 for 0.
GF_DEVICE uint32_t png_trailing(uint64_t bits) {
    return bits ? static_cast<uint32_t>(__ffsll(bits)) - 1 : 64;
}

// Return the number of zeros above the highest one; 64 for 0.
GF_DEVICE uint32_t png_leading(uint64_t bits) {
    return static_cast<uint32_t>(__clzll(bits));
}

// The bytes of a thread in a chunk. Positions count from the start of the deflate block.
struct png_bytes {
    uint32_t word[THREAD_WORDS];
    const unsigned char *from; // where they were loaded from
    uint32_t size;             // number of bytes; 0 after the end
    uint32_t at;               // position of the first byte
    uint32_t before;           // position of the last byte before them without equal predecessor
    uint32_t after;            // of the first one after them, or the end of the block
    uint64_t equal;            // bit k: byte k equals its predecessor
    bool runs;                 // the chunk may contain bytes of runs; equal in all threads
};

// Find the last position before a chunk without equal predecessor, and the first one after it.
GF_DEVICE void png_find_edges(const png_window &w, const png_place &p, uint32_t *before,
                              uint32_t *after) {
    const uint32_t chunks = (p.end - p.begin + PNG_CHUNK - 1) / PNG_CHUNK;
    const uint32_t own = (p.from - p.begin) / PNG_CHUNK;
    const png_edges *edges = w.edges + (p.index - own);
    *before = 0; // the first byte of a block has no predecessor
    *after = p.end - p.begin;
    for (uint32_t k = own; k-- > 0;)
        if (edges[k].last < PNG_CHUNK) {
            *before = k * PNG_CHUNK + edges[k].last;
            break;
        }
    for (uint32_t k = own + 1; k < chunks; k++)
        if (edges[k].first < PNG_CHUNK) {
            *after = k * PNG_CHUNK + edges[k].first;
            break;
        }
}

GF_DEVICE png_bytes png_load_bytes(const png_window &w, const png_place &p) {
    png_bytes b;
    const uint32_t offset = threadIdx.x * THREAD_BYTES;
    const unsigned char *chunk = w.filtered + p.strip * w.filtered_stride + p.from;
    b.size = offset < p.size ? min(THREAD_BYTES, p.size - offset) : 0;
    b.at = p.from - p.begin + offset;
    b.from = chunk + offset;
    gf_load_words<THREAD_BYTES>(b.word, b.from);
    uint32_t last = __shfl_up_sync(GF_WARP, b.word[THREAD_WORDS - 1], 1);
    if (threadIdx.x % 32 == 0)
        last = b.at > 0 && b.size
                   ? static_cast<uint32_t>(chunk[static_cast<int64_t>(offset) - 1]) << 24
                   : 0;
    b.equal = 0;
#pragma unroll
    for (int i = 0; i < static_cast<int>(THREAD_WORDS); i++) {
        const uint32_t before = __byte_perm(i ? b.word[i - 1] : last, b.word[i], 0x6543);
        const uint32_t equal = __vcmpeq4(b.word[i], before) & 0x01010101u;
        b.equal |= static_cast<uint64_t>(equal * 0x10204080u >> 28) << 4 * i;
    }
    if (b.at == 0)
        b.equal &= ~uint64_t{1};
    if (b.size < 64)
        b.equal &= (uint64_t{1} << b.size) - 1;
    uint32_t before, after;
    png_find_edges(w, p, &before, &after);
    const uint32_t first = p.from - p.begin, run = GF_DEFLATE_RUN;
    const uint32_t prefix = png_trailing(~b.equal);
    const uint32_t suffix = b.size ? png_leading(~(b.equal << (64 - b.size))) : 0;
    uint64_t inner = b.equal & b.equal >> 1; // bit k: the run from byte k on has 2 bytes
    inner &= inner >> 2;
    inner &= inner >> 4;
    b.runs = (inner & inner >> 8 & inner >> 16) != 0;
    static_assert(GF_DEFLATE_RUN == 24, "24 bits are combined");
    // A run may cross the edge of a thread. At that of a warp, suspect half of the minimum.
    const uint32_t next = __shfl_down_sync(GF_WARP, prefix, 1), lane = threadIdx.x % 32;
    bool suspect = b.runs || (lane == 0 && prefix >= run / 2) ||
                   (lane == 31 ? suffix >= run / 2 : suffix + next >= run);
    suspect |= threadIdx.x == 0 && prefix && prefix + first - before > run;
    suspect |= suffix && offset + b.size == p.size && suffix + after - (first + p.size) >= run;
    b.before = b.after = 0; // not used without runs
    if (!__syncthreads_or(suspect))
        return b;
    const uint64_t edges = ~b.equal & (b.size < 64 ? (uint64_t{1} << b.size) - 1 : ~uint64_t{0});
    const uint32_t last_edge = edges ? b.at + 63 - png_leading(edges) : 0;
    const uint32_t first_edge = edges ? b.at + png_trailing(edges) : UINT32_MAX;
    b.before = max(before, png_scan(last_edge, 0u, gf_maximum()));
    b.after = min(after, png_scan<true>(first_edge, UINT32_MAX, gf_minimum()));
    if (prefix)
        b.runs |= (prefix < b.size ? b.at + prefix : b.after) - b.before > run;
    if (suffix && suffix < b.size)
        b.runs |= b.after - (b.at + b.size - suffix) >= run;
    return b;
}

// Call four(word) for each four bytes without runs, or literal(byte), and match(length) for the
// start of a match, for the bytes of a thread in their order.
template <typename Four, typename Literal, typename Match>
GF_DEVICE void png_each_symbol(const png_bytes &b, Four four, Literal literal, Match match) {
    if (!b.runs && b.size == THREAD_BYTES) {
#pragma unroll
        for (uint32_t i = 0; i < THREAD_WORDS; i++)
            four(b.word[i]);
        return;
    }
    uint32_t edge = b.before; // position without equal predecessor before the run
    for (uint32_t i = 0; i < b.size; i++) {
        const uint32_t byte = b.from[i];
        const uint64_t rest = b.equal >> i;
        if (!(rest & 1)) {
            edge = b.at + i;
            literal(byte);
            continue;
        }
        const uint32_t ahead = png_trailing(~rest);
        const uint32_t end = i + ahead < b.size ? b.at + i + ahead : b.after;
        const uint32_t run = end - edge - 1;
        const uint32_t length =
            !b.runs || run < GF_DEFLATE_RUN ? 1 : gf_run_match(b.at + i - edge - 1, run);
        if (length == 1)
            literal(byte);
        else if (length)
            match(length);
    }
}

#endif
