// Reconstruction of filtered PNG rows.
//
// A byte depends on the pixel to its left, on the row above, and for Paeth on both. Warps process
// groups of 32 rows, a lane per row; lane k is k units of 12 or 16 bytes behind the first one. It
// receives the row above from its neighbour by a shuffle, and the first lane from the group above
// through global memory. Groups are numbered in the order of their start: each waits only for a
// running one.
#include "png_decode.cuh"

#define THREADS 128
#define PUBLISH 4 // units after which a group reports its progress

// Bytes of a unit: whole pixels, whole words.
template <int BPP> struct unfilter_unit {
    static constexpr int bytes = BPP == 3 || BPP == 6 ? 12 : 16;
    static constexpr int words = bytes / 4;
};

// Load a unit from any address. Bytes from `size` on are undefined. SHARED: another warp of this
// launch has written them.
template <bool SHARED, int WORDS>
GF_DEVICE void unfilter_load(uint32_t (&unit)[WORDS], const unsigned char *from, uint32_t size) {
    if (size >= 4 * WORDS + 4) {
        const uintptr_t at = reinterpret_cast<uintptr_t>(from);
        const uint32_t *words = reinterpret_cast<const uint32_t *>(at & ~uintptr_t{3});
        uint32_t low = SHARED ? __ldcg(words) : words[0];
#pragma unroll
        for (int i = 0; i < WORDS; i++) {
            const uint32_t high = SHARED ? __ldcg(words + i + 1) : words[i + 1];
            unit[i] = __funnelshift_r(low, high, at % 4 * 8);
            low = high;
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
        unit[i] = 0;
#pragma unroll
        for (uint32_t k = 0; k < 4; k++)
            if (4 * i + k < size)
                unit[i] |=
                    static_cast<uint32_t>(SHARED ? __ldcg(from + 4 * i + k) : from[4 * i + k])
                    << 8 * k;
    }
}

template <int WORDS>
GF_DEVICE void unfilter_store(unsigned char *to, const uint32_t (&unit)[WORDS], uint32_t size) {
    if (size >= 4 * WORDS && reinterpret_cast<uintptr_t>(to) % 4 == 0) {
#pragma unroll
        for (int i = 0; i < WORDS; i++)
            reinterpret_cast<uint32_t *>(to)[i] = unit[i];
        return;
    }
#pragma unroll
    for (int i = 0; i < WORDS; i++)
#pragma unroll
        for (uint32_t k = 0; k < 4; k++)
            if (4 * i + k < size)
                to[4 * i + k] = static_cast<unsigned char>(unit[i] >> 8 * k);
}

template <int WORDS> GF_DEVICE void unfilter_swap(uint32_t (&unit)[WORDS]) {
#pragma unroll
    for (int i = 0; i < WORDS; i++)
        unit[i] = __byte_perm(unit[i], 0, 0x2301);
}

// Return byte k of a unit, or for k < 0 of the unit before it. k is constant after unrolling.
template <int WORDS>
GF_DEVICE int unfilter_byte(const uint32_t (&unit)[WORDS], const uint32_t (&before)[WORDS], int k) {
    const uint32_t word = k < 0 ? before[(k + 4 * WORDS) / 4] : unit[k / 4];
    return static_cast<int>(word >> (k + 4 * WORDS) % 4 * 8 & 255);
}

// Reconstruct a unit in place.
template <int BPP, int WORDS>
GF_DEVICE void unfilter_compute(uint32_t filter, uint32_t (&unit)[WORDS],
                                const uint32_t (&before)[WORDS], const uint32_t (&up)[WORDS],
                                const uint32_t (&up_before)[WORDS], bool paeth) {
    const int use_left = filter == GF_PNG_SUB || filter == GF_PNG_AVERAGE ? 255 : 0;
    const int use_up = filter == GF_PNG_UP || filter == GF_PNG_AVERAGE ? 255 : 0;
    const int shift = filter == GF_PNG_AVERAGE ? 1 : 0;
#pragma unroll
    for (int k = 0; k < 4 * WORDS; k++) {
        const int left = unfilter_byte(unit, before, k - BPP);
        const int above = unfilter_byte(up, up_before, k);
        int predicted = ((left & use_left) + (above & use_up)) >> shift;
        if (paeth && filter == GF_PNG_PAETH)
            predicted = gf_png_paeth(left, above, unfilter_byte(up, up_before, k - BPP));
        const uint32_t byte = (unit[k / 4] >> k % 4 * 8) + static_cast<uint32_t>(predicted);
        unit[k / 4] = (unit[k / 4] & ~(255u << k % 4 * 8)) | (byte & 255) << k % 4 * 8;
    }
}

// Wait until a group has published `units` units. known: what it had published at the last call.
GF_DEVICE void unfilter_wait(const uint32_t *progress, uint32_t units, uint32_t *known) {
    while (*known < units)
        *known = *reinterpret_cast<const volatile uint32_t *>(progress);
    __threadfence();
}

// Unfilter the rows of a group.
template <int BPP>
GF_DEVICE void unfilter_group(const png_rows &image, uint32_t group, uint32_t *progress,
                              uint32_t *failed) {
    constexpr int WORDS = unfilter_unit<BPP>::words;
    constexpr uint32_t UNIT = unfilter_unit<BPP>::bytes;
    const uint32_t lane = threadIdx.x % 32, y = group * PNG_GROUP + lane;
    const bool exists = y < image.height;
    const uint32_t units = (image.row_bytes + UNIT - 1) / UNIT;
    const uint32_t row = exists ? y : image.height - 1;
    const unsigned char *from = image.filtered + row / image.part_rows * image.part_stride +
                                row % image.part_rows * (static_cast<size_t>(image.row_bytes) + 1);
    const uint32_t filter = *from++;
    unsigned char *to = image.out + row * image.stride;
    if (__any_sync(GF_WARP, filter >= GF_PNG_FILTERS)) {
        if (lane == 0) { // other groups must not wait
            *failed = 1;
            __threadfence();
            *reinterpret_cast<volatile uint32_t *>(progress) = units;
        }
        return;
    }
    const bool paeth = __any_sync(GF_WARP, filter == GF_PNG_PAETH);
    uint32_t unit[WORDS] = {}, up[WORDS] = {}, next[WORDS] = {}, known = 0;
    if (lane == 0)
        unfilter_load<false>(next, from, image.row_bytes);
    for (uint32_t step = 0; step < units + 31; step++) {
        const uint32_t c = step - lane, at = c * UNIT; // c wraps around before the first unit
        uint32_t before[WORDS], up_before[WORDS];
#pragma unroll
        for (int i = 0; i < WORDS; i++) {
            before[i] = c == 0 || c > units ? 0 : unit[i];
            up_before[i] = c == 0 || c > units ? 0 : up[i];
            up[i] = __shfl_up_sync(GF_WARP, unit[i], 1); // from the step before
            unit[i] = next[i];
        }
        const uint32_t next_at = (c + 1) * UNIT;
        if (c + 1 < units) // also for the first unit, one step ahead
            unfilter_load<false>(next, from + next_at, image.row_bytes - next_at);
        if (lane == 0 && c < units) {
#pragma unroll
            for (int i = 0; i < WORDS; i++)
                up[i] = 0;
            if (group > 0) {
                unfilter_wait(progress - 1, c + 1, &known);
                unfilter_load<true>(up, to - image.stride + at, image.row_bytes - at);
                if (image.swap)
                    unfilter_swap(up);
            }
        }
        if (c < units) {
            unfilter_compute<BPP>(filter, unit, before, up, up_before, paeth);
            if (exists) {
                uint32_t stored[WORDS];
#pragma unroll
                for (int i = 0; i < WORDS; i++)
                    stored[i] = unit[i];
                if (image.swap)
                    unfilter_swap(stored);
                unfilter_store(to + at, stored, image.row_bytes - at);
            }
            if (lane == 31 && (c % PUBLISH == PUBLISH - 1 || c + 1 == units)) {
                __threadfence();
                *reinterpret_cast<volatile uint32_t *>(progress) = c + 1;
            }
        }
    }
}

// Unfilter the rows of images.
// Grid: a warp per group. Block: 128 threads. Each warp takes the next group, in the order of
// images and of their groups.
__global__ void __launch_bounds__(THREADS)
    png_unfilter(const png_rows *images, uint32_t count, uint32_t groups, uint32_t *progress,
                 uint32_t *failed) {
    gf_wait_for_stream();
    uint32_t ticket = 0;
    if (threadIdx.x % 32 == 0)
        ticket = atomicAdd(progress + groups, 1);
    ticket = __shfl_sync(GF_WARP, ticket, 0);
    if (ticket >= groups)
        return;
    uint32_t low = 0, high = count; // the image is the last one with first_group <= ticket
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        if (images[middle].first_group <= ticket)
            low = middle;
        else
            high = middle;
    }
    const png_rows image = images[low];
    const uint32_t group = ticket - image.first_group;
    uint32_t *own = progress + ticket;
    if (image.bpp == 1)
        unfilter_group<1>(image, group, own, failed + low);
    else if (image.bpp == 2)
        unfilter_group<2>(image, group, own, failed + low);
    else if (image.bpp == 3)
        unfilter_group<3>(image, group, own, failed + low);
    else if (image.bpp == 4)
        unfilter_group<4>(image, group, own, failed + low);
    else if (image.bpp == 6)
        unfilter_group<6>(image, group, own, failed + low);
    else
        unfilter_group<8>(image, group, own, failed + low);
}

void png_queue_unfilter(const png_rows *images, uint32_t count, uint32_t groups, uint32_t *progress,
                        uint32_t *failed, cudaStream_t stream) {
    const unsigned blocks = static_cast<unsigned>(gf_divide_up(groups, THREADS / 32));
    gf_launch_kernel(png_unfilter, blocks, THREADS, 0, stream, images, count, groups, progress,
                     failed);
}
