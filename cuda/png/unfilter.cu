// Reconstruction of filtered PNG rows.
//
// A byte depends on the pixel to its left, on the row above, and for Paeth on both. Warps process
// groups of 32 rows, a lane per row; lane k is k pixels behind the first one. It receives the row
// above from its neighbour by a shuffle. The first lane receives it from the group above: from the
// warp before through shared memory, from another thread block through the image. Groups are
// numbered in the order of their start: each waits only for running ones.
#include "cuda/png/decode.cuh"

// Tuning constants of png_unfilter_rows. A block is part of a row.
static constexpr int WARPS = 4;
static constexpr int PUBLISH = 2; // blocks after which a group reports to another thread block
static constexpr int BLOCK = 48;  // bytes that a lane loads at once: whole pixels, whole vectors
static constexpr int WORDS = BLOCK / 4;
static constexpr int RING = 16; // blocks on their way from a warp to the next one

typedef uint32_t unfilter_block[WORDS];

// A block of a row before it is shifted into place: words from an address that is a multiple of 16.
struct unfilter_raw {
    uint32_t word[WORDS + 4];
};

// Load the block at byte `at` of a row, and the other bytes of its vectors of 16 that overlap the
// row. Few and wide accesses: each lane has its own cache line. readable: bytes from the start of
// the row on. ABOVE: a row of the image, which this launch has written.
template <bool ABOVE>
GF_DEVICE unfilter_raw unfilter_load_block(const unsigned char *row, int32_t at, uint32_t row_bytes,
                                           int64_t readable) {
    unfilter_raw raw = {};
    const uintptr_t address = reinterpret_cast<uintptr_t>(row) + static_cast<intptr_t>(at);
    const uint4 *vectors = reinterpret_cast<const uint4 *>(address & ~uintptr_t{15});
    const int32_t first = at - static_cast<int32_t>(address & 15);
    const int32_t end = static_cast<int32_t>(row_bytes);
#pragma unroll
    for (int i = 0; i < WORDS + 4; i += 4) {
        const int32_t from = first + 4 * i;
        if (from <= -16 || from >= end)
            continue;
        uint32_t *word = raw.word + i;
        if (from + int64_t{16} <= readable) {
            gf_unpack(ABOVE ? __ldcg(vectors + i / 4) : vectors[i / 4], word);
            continue;
        }
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (from + 4 * k > -4 && from + 4 * k < end)
                word[k] = __ldcg(reinterpret_cast<const uint32_t *>(vectors) + i + k);
    }
    return raw;
}

// If `condition`, replace each word by that which is STEP words after it; STEP < 0: before it.
template <int STEP> GF_DEVICE void unfilter_move(uint32_t (&word)[WORDS + 4], bool condition) {
#pragma unroll
    for (int k = 0; k < WORDS + 4; k++) {
        const int i = STEP > 0 ? k : WORDS + 3 - k;
        if (i + STEP >= 0 && i + STEP < WORDS + 4)
            word[i] = condition ? word[i + STEP] : word[i];
    }
}

// Return the bytes of a block that begins with byte `shift` of raw.
GF_DEVICE void unfilter_shift(unfilter_block &block, const unfilter_raw &raw, uint32_t shift) {
    unfilter_raw w = raw;
    unfilter_move<2>(w.word, shift & 8);
    unfilter_move<1>(w.word, shift & 4);
#pragma unroll
    for (int i = 0; i < WORDS; i++)
        block[i] = __funnelshift_r(w.word[i], w.word[i + 1], 8 * (shift & 3));
}

GF_DEVICE void unfilter_swap(unfilter_block &block) {
#pragma unroll
    for (int i = 0; i < WORDS; i++)
        block[i] = __byte_perm(block[i], 0, 0x2301);
}

// Store the block at byte `at` of a row; leave the last address % 16 bytes to the next call: carry.
GF_DEVICE void unfilter_store_block(unsigned char *row, int32_t at, uint32_t row_bytes,
                                    const unfilter_block &block, uint32_t (&carry)[4]) {
    const uint32_t shift =
        static_cast<uint32_t>(reinterpret_cast<uintptr_t>(row) + static_cast<uintptr_t>(at)) & 15;
    const int32_t first = at - static_cast<int32_t>(shift);
    const int32_t end = static_cast<int32_t>(row_bytes);
    uint32_t word[WORDS + 4]; // those to store from the fifth on
#pragma unroll
    for (int i = 0; i < WORDS + 4; i++)
        word[i] = i < 4 ? carry[i] : block[i - 4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        carry[i] = block[WORDS - 4 + i];
#pragma unroll
    for (int i = WORDS + 3; i > 0; i--)
        word[i] = __funnelshift_l(word[i - 1], word[i], 8 * (shift & 3));
    unfilter_move<-2>(word, shift & 8);
    unfilter_move<-1>(word, shift & 4);
    if (first >= 0 && first + BLOCK <= end) {
#pragma unroll
        for (int i = 0; i < WORDS; i += 4)
            *reinterpret_cast<uint4 *>(row + first + 4 * i) = gf_vector_of(word + i + 4);
        return;
    }
#pragma unroll
    for (int k = 0; k < BLOCK; k++)
        if (first + k >= 0 && first + k < end)
            row[first + k] = static_cast<unsigned char>(word[k / 4 + 4] >> 8 * (k % 4));
}

// Return the four bytes of a block from byte k on, a constant after unrolling. Zeros follow it.
GF_DEVICE uint32_t unfilter_bytes(const unfilter_block &block, int k) {
    return k % 4 == 0 ? block[k / 4]
                      : __funnelshift_r(block[k / 4], k / 4 + 1 < WORDS ? block[k / 4 + 1] : 0,
                                        8 * (k % 4));
}

// The row of a lane. Bytes are held in pairs: those with even numbers of a word, and those with odd
// ones. The neighbours that its filter does not use are zero.
template <int BPP> struct unfilter_row {
    static constexpr int WORDS_OF_PIXEL = BPP > 4 ? 2 : 1,
                         PAIRS = BPP == 1 ? 1 : 2 * WORDS_OF_PIXEL;
    uint32_t mask_left, mask_up, mask_upper_left; // GF_PNG_PAIR: the filter uses this neighbour
    bool average;
    bool any_average; // in the group
    uint32_t left[PAIRS], upper_left[PAIRS];
    uint32_t pixel[WORDS_OF_PIXEL]; // the last one
};

template <int BPP> GF_DEVICE void unfilter_start(unfilter_row<BPP> *row, uint32_t filter) {
    *row = {};
    const bool average = filter == GF_PNG_AVERAGE, paeth = filter == GF_PNG_PAETH;
    row->mask_left = filter == GF_PNG_SUB || average || paeth ? GF_PNG_PAIR : 0;
    row->mask_up = filter == GF_PNG_UP || average || paeth ? GF_PNG_PAIR : 0;
    row->mask_upper_left = paeth ? GF_PNG_PAIR : 0;
    row->average = average;
    row->any_average = __any_sync(GF_WARP, average);
}

// Reconstruct pixels [FIRST, END) of a block. above: the row above of the first lane.
template <int BPP, int FIRST, int END>
GF_DEVICE void unfilter_pixels(unfilter_row<BPP> *row, const unfilter_block &filtered,
                               const unfilter_block &above, unfilter_block &result) {
    constexpr int PARTS = unfilter_row<BPP>::WORDS_OF_PIXEL, PAIRS = unfilter_row<BPP>::PAIRS;
#pragma unroll
    for (int x = FIRST; x < END; x++) {
        uint32_t ups[PARTS];
#pragma unroll
        for (int i = 0; i < PARTS; i++) {
            ups[i] = __shfl_up_sync(GF_WARP, row->pixel[i], 1); // from the pixel before
            ups[i] = threadIdx.x % 32 ? ups[i] : unfilter_bytes(above, x * BPP + 4 * i);
            row->pixel[i] = 0;
        }
#pragma unroll
        for (int p = 0; p < PAIRS; p++) {
            const int first = 4 * (p / 2) + p % 2; // byte of the pixel; the other one is first + 2
            const uint32_t bytes = unfilter_bytes(filtered, x * BPP + 4 * (p / 2)) >> 8 * (p % 2);
            const uint32_t left = row->left[p], up = ups[p / 2] >> 8 * (p % 2) & row->mask_up;
            // Without its other neighbours, this is the predictor of Sub, Up and None, too.
            uint32_t predicted = gf_png_paeth_pair(left, up, row->upper_left[p]);
            if (row->any_average)
                predicted = row->average ? (left + up) >> 1 & GF_PNG_PAIR : predicted;
            const uint32_t value = ((bytes & GF_PNG_PAIR) + predicted) &
                                   (first + 2 < BPP ? GF_PNG_PAIR : uint32_t{255});
            row->upper_left[p] = up & row->mask_upper_left;
            row->left[p] = value & row->mask_left;
            row->pixel[p / 2] += value << 8 * (p % 2);
        }
#pragma unroll
        for (int i = 0; i < PARTS; i++) {
            const int at = x * BPP + 4 * i, shift = 8 * (at % 4);
            result[at / 4] |= row->pixel[i] << shift;
            if (at % 4 + BPP - 4 * i > 4 && shift)
                result[at / 4 + 1] |= row->pixel[i] >> (32 - shift);
        }
    }
}

// Read or write a counter in global or shared memory. A lane that has read it may read all data
// that was written before. A fence would also wait for the loads of the next block.
template <bool GLOBAL> GF_DEVICE uint32_t unfilter_acquire(const uint32_t *counter) {
    uint32_t value;
    if (GLOBAL)
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                     : "=r"(value)
                     : "l"(__cvta_generic_to_global(counter))
                     : "memory");
    else
        asm volatile("ld.acquire.cta.shared.u32 %0, [%1];"
                     : "=r"(value)
                     : "l"(__cvta_generic_to_shared(counter))
                     : "memory");
    return value;
}

template <bool GLOBAL> GF_DEVICE void unfilter_release(uint32_t *counter, uint32_t value) {
    if (GLOBAL)
        asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(counter)),
                     "r"(value)
                     : "memory");
    else
        asm volatile("st.release.cta.shared.u32 [%0], %1;" ::"l"(__cvta_generic_to_shared(counter)),
                     "r"(value)
                     : "memory");
}

// Groups of a thread block, which are consecutive: the last row of each, for the next warp.
struct unfilter_shared {
    uint32_t ring[WARPS][RING * WORDS]; // block b of the last lane at b % RING
    uint32_t done[WARPS];               // blocks that the warp has finished
};

GF_DEVICE void unfilter_wait(const uint32_t *done, uint32_t blocks) {
    while (unfilter_acquire<false>(done) < blocks)
        __nanosleep(20);
}

// Read block b of the row above from the warp before. Its last lane is LAG bytes behind its first
// one, and reaches the end of the block up to LATER blocks later. blocks: of a row.
template <int BPP>
GF_DEVICE void unfilter_from_warp(unfilter_block &block, const unfilter_shared &shared,
                                  uint32_t before, uint32_t b, uint32_t blocks) {
    constexpr uint32_t LAG = 31 * BPP, LATER = (LAG + BLOCK - 1) / BLOCK;
    unfilter_wait(&shared.done[before], min(b + LATER + 1, blocks));
    uint32_t word[WORDS + 1];
    const uint32_t first = (b * WORDS + LAG / 4) % (RING * WORDS);
#pragma unroll
    for (uint32_t i = 0; i <= WORDS; i++) {
        const uint32_t at = first + i;
        word[i] = shared.ring[before][at < RING * WORDS ? at : at - RING * WORDS];
    }
#pragma unroll
    for (int i = 0; i < WORDS; i++)
        block[i] = __funnelshift_r(word[i], word[i + 1], 8 * (LAG % 4));
}

// Pass block b of the last lane to the next warp, if it is read, and count it.
GF_DEVICE void unfilter_to_warp(unfilter_shared *shared, uint32_t warp, uint32_t b, bool read,
                                const unfilter_block &block) {
    if (read && b >= RING) // the next warp no longer reads the block before
        unfilter_wait(&shared->done[warp + 1], b + 1 - RING);
    if (threadIdx.x % 32 == 31) {
        if (read) {
#pragma unroll
            for (int i = 0; i < WORDS; i++)
                shared->ring[warp][b % RING * WORDS + i] = block[i];
        }
        unfilter_release<false>(&shared->done[warp], b + 1);
    }
}

// The row of a lane, and where it comes from and goes to.
struct unfilter_lane {
    const unsigned char *from; // after the filter type
    unsigned char *to;
    uint32_t filter;
    int32_t lag; // bytes behind the first lane
    bool exists;
    bool from_warp, waits;   // the row above comes from the warp before, or from the image
    bool to_warp, to_memory; // the next warp reads the last row, or another thread block
};

GF_DEVICE unfilter_lane unfilter_find(const png_rows &image, uint32_t group, int bpp) {
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, y = group * PNG_GROUP + lane;
    const bool is_read = (group + 1) * PNG_GROUP < image.height; // by the next group
    unfilter_lane l;
    l.exists = y < image.height;
    const uint32_t number = l.exists ? y : image.height - 1;
    l.from = image.filtered + number / image.part_rows * image.part_stride +
             number % image.part_rows * (static_cast<size_t>(image.row_bytes) + 1);
    l.filter = *l.from++;
    l.to = image.out + number * image.stride;
    l.lag = static_cast<int32_t>(lane) * bpp;
    l.from_warp = group > 0 && warp > 0;
    l.waits = lane == 0 && group > 0 && warp == 0;
    l.to_warp = is_read && warp < WARPS - 1;
    l.to_memory = is_read && warp == WARPS - 1;
    return l;
}

// Wait for the block at byte `at` of the row above, and load it. known: complete bytes of that row.
GF_DEVICE unfilter_raw unfilter_receive(const png_rows &image, const unsigned char *above,
                                        int32_t at, const uint32_t *progress, uint32_t *known) {
    const uint32_t needed = min(static_cast<uint32_t>(at + BLOCK), image.row_bytes);
    while (*known < needed) {
        *known = unfilter_acquire<true>(progress);
        if (*known < needed)
            __nanosleep(64);
    }
    return unfilter_load_block<true>(above, at, image.row_bytes,
                                     static_cast<int64_t>(image.stride + image.row_bytes));
}

// Shift a block into place, with zeros before the first pixel of the row. at: first byte.
GF_DEVICE void unfilter_place(unfilter_block &block, const unfilter_raw &raw, uint32_t shift,
                              int32_t at, bool starts) {
    unfilter_shift(block, raw, shift);
    if (!starts)
        return;
#pragma unroll
    for (int i = 0; i < WORDS; i++)
        if (at + 4 * i < 0)
            block[i] = at + 4 * i > -4 ? block[i] & ~0u << -8 * (at + 4 * i) : 0;
}

// Release all waiters of a group with an invalid filter type.
GF_DEVICE void unfilter_fail(const png_rows &image, unfilter_shared *shared, uint32_t *progress,
                             uint32_t *failed) {
    if (threadIdx.x % 32 != 0)
        return;
    *failed = 1;
    unfilter_release<true>(progress, image.row_bytes);
    unfilter_release<false>(&shared->done[threadIdx.x / 32], UINT32_MAX);
}

// Return the distance of an address from a multiple of 16.
GF_DEVICE uint32_t unfilter_misaligned(const unsigned char *p) {
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(p)) & 15;
}

// Unfilter the rows of a group. progress: bytes of its last row that other thread blocks may read;
// before it those of the group above.
template <int BPP>
GF_DEVICE void unfilter_group(const png_rows &image, uint32_t group, unfilter_shared *shared,
                              uint32_t *progress, uint32_t *failed) {
    constexpr int PIXELS = BLOCK / BPP, LAG = 31 * BPP; // of the last lane
    const uint32_t warp = threadIdx.x / 32, row_bytes = image.row_bytes;
    const unfilter_lane l = unfilter_find(image, group, BPP);
    if (__any_sync(GF_WARP, l.filter >= GF_PNG_FILTERS)) {
        unfilter_fail(image, shared, progress, failed);
        return;
    }
    const unsigned char *above = l.to - image.stride; // used by the first lane
    // A lane stores up to 15 bytes of a block with the next one.
    const uint32_t blocks = (row_bytes + LAG + 15 + BLOCK - 1) / BLOCK;
    unfilter_row<BPP> row;
    unfilter_start(&row, l.filter);
    unfilter_raw next = unfilter_load_block<false>(l.from, -l.lag, row_bytes, INT64_MAX);
    unfilter_raw next_above = {};
    uint32_t known = 0, carry[4] = {};
    if (l.waits)
        next_above = unfilter_receive(image, above, 0, progress - 1, &known);
    __syncwarp(); // here and below: otherwise a lane stays apart from the others
    for (uint32_t b = 0; b < blocks; b++) {
        const int32_t first_at = static_cast<int32_t>(b * BLOCK), at = first_at - l.lag; // bytes
        uint32_t filtered[WORDS], up[WORDS], result[WORDS] = {};
        unfilter_place(filtered, next, unfilter_misaligned(l.from - l.lag), at, first_at < LAG);
        if (l.from_warp) {
            unfilter_from_warp<BPP>(up, *shared, warp - 1, b, blocks);
        } else {
            unfilter_shift(up, next_above, unfilter_misaligned(above));
            if (image.swap)
                unfilter_swap(up);
        }
        next = unfilter_load_block<false>(l.from, at + BLOCK, row_bytes, INT64_MAX);
        unfilter_pixels<BPP, 0, PIXELS / 2>(&row, filtered, up, result);
        if (l.waits && first_at + BLOCK < static_cast<int32_t>(row_bytes))
            next_above = unfilter_receive(image, above, first_at + BLOCK, progress - 1, &known);
        __syncwarp();
        unfilter_pixels<BPP, PIXELS / 2, PIXELS>(&row, filtered, up, result);
        unfilter_to_warp(shared, warp, b, l.to_warp, result);
        __syncwarp();
        if (image.swap)
            unfilter_swap(result);
        if (l.exists)
            unfilter_store_block(l.to, at, row_bytes, result, carry);
        if (l.to_memory && b % PUBLISH == PUBLISH - 1) {
            const int32_t stored =
                at + BLOCK - static_cast<int32_t>(unfilter_misaligned(l.to - l.lag));
            if (threadIdx.x % 32 == 31 && stored > 0)
                unfilter_release<true>(progress, min(static_cast<uint32_t>(stored), row_bytes));
        }
        __syncwarp();
    }
    if (l.to_memory && threadIdx.x % 32 == 31)
        unfilter_release<true>(progress, row_bytes);
}

// Unfilter the rows of images.
// Grid: a warp per group. Block: WARPS warps. Each block takes the next groups, in the order of
// images and of their groups. Reads filtered bytes once; writes samples once, and reads the last
// row of every fourth group. Shared memory: 3 KiB. Registers: 122 (sm_90), 4 resident blocks.
__global__ void __launch_bounds__(32 * WARPS)
    png_unfilter_rows(const png_rows *images, uint32_t count, uint32_t groups, uint32_t *progress,
                      uint32_t *failed) {
    __shared__ uint32_t ticket;
    __shared__ unfilter_shared shared;
    const uint32_t warp = threadIdx.x / 32;
    gf_wait_for_stream();
    if (threadIdx.x == 0)
        ticket = atomicAdd(progress + groups, WARPS);
    if (threadIdx.x < WARPS)
        shared.done[threadIdx.x] = 0;
    __syncthreads();
    const uint32_t number = ticket + warp;
    if (number >= groups)
        return;
    uint32_t low = 0, high = count; // the image is the last one with first_group <= number
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        if (images[middle].first_group <= number)
            low = middle;
        else
            high = middle;
    }
    const png_rows image = images[low];
    const uint32_t group = number - image.first_group;
    if (image.bpp == 1)
        unfilter_group<1>(image, group, &shared, progress + number, failed + low);
    else if (image.bpp == 2)
        unfilter_group<2>(image, group, &shared, progress + number, failed + low);
    else if (image.bpp == 3)
        unfilter_group<3>(image, group, &shared, progress + number, failed + low);
    else if (image.bpp == 4)
        unfilter_group<4>(image, group, &shared, progress + number, failed + low);
    else if (image.bpp == 6)
        unfilter_group<6>(image, group, &shared, progress + number, failed + low);
    else
        unfilter_group<8>(image, group, &shared, progress + number, failed + low);
}

void png_queue_unfilter(const png_rows *images, uint32_t count, uint32_t groups, uint32_t *progress,
                        uint32_t *failed, gf_queue *queue) {
    const unsigned blocks = static_cast<unsigned>(gf_divide_up(groups, WARPS));
    gf_launch_kernel(png_unfilter_rows, blocks, 32 * WARPS, 0, queue, images, count, groups,
                     progress, failed);
}
