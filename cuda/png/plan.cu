// Kernels of the PNG encoder that choose filters, filter, and make codes.
//
// | kernel            | blocks      | what it computes                                            |
// |-------------------|-------------|-------------------------------------------------------------|
// | png_probe_strips  | one a strip | filter type, and whether samples repeat                     |
// | png_filter_chunks | one a chunk | filtered bytes, and where runs may cross the edges          |
// | png_count_chunks  | one a chunk | symbols of literals and runs, and Adler-32 sums;            |
// |                   | one a strip | whether filtered bytes repeat                               |
// | png_make_codes    | one a block | Huffman codes, header, and the first bit of each chunk      |
// | png_count_largest | one a strip | samples with the maximum value, if requested                |
#include "cuda/png/chunk.cuh"

// ---- samples and residuals ----------------------------------------------------------------------

// Return byte c of row r of a strip as in the file. Zero before the row and above the image.
GF_DEVICE uint32_t png_byte(const png_window &w, const png_strip &s, int64_t r, int64_t c) {
    if (c < 0 || (s.first && r < 0))
        return 0;
    return s.rows[r * static_cast<int64_t>(s.stride) + (w.swap ? c ^ 1 : c)];
}

// Return bytes c..c+3 of row r of a strip as in the file, the first one lowest. Bytes outside of
// the image are zero; c + 4 <= row_bytes.
GF_DEVICE uint32_t png_word(const png_window &w, const png_strip &s, int64_t r, int64_t c) {
    if (w.swap || c < 0 || c + 8 > static_cast<int64_t>(w.row_bytes) || (s.first && r < 0)) {
        uint32_t word = 0;
#pragma unroll
        for (int k = 0; k < 4; k++)
            word |= png_byte(w, s, r, c + k) << 8 * k;
        return word;
    }
    const uintptr_t at =
        reinterpret_cast<uintptr_t>(s.rows) + r * static_cast<int64_t>(s.stride) + c;
    const uint32_t *words = reinterpret_cast<const uint32_t *>(at & ~uintptr_t{3});
    return __funnelshift_r(words[0], words[1], at % 4 * 8);
}

// Filter four bytes.
GF_DEVICE uint32_t png_filter_word(uint32_t filter, uint32_t x, uint32_t left, uint32_t up,
                                   uint32_t upper_left) {
    uint32_t predicted = 0;
    if (filter == GF_PNG_SUB) {
        predicted = left;
    } else if (filter == GF_PNG_UP) {
        predicted = up;
    } else if (filter == GF_PNG_AVERAGE) {
        predicted = (left & up) + (((left ^ up) & 0xfefefefeu) >> 1);
    } else if (filter == GF_PNG_PAETH) {
#pragma unroll
        for (int k = 0; k < 32; k += 8)
            predicted |= static_cast<uint32_t>(
                             gf_png_paeth(left >> k & 255, up >> k & 255, upper_left >> k & 255))
                         << k;
    }
    return __vsub4(x, predicted);
}

// Return byte `at` of the filtered strip.
GF_DEVICE uint32_t png_filtered_byte(const png_window &w, const png_strip &s, uint32_t filter,
                                     uint32_t at) {
    const uint32_t r = s.count == 1 ? 0 : gf_divide(at, w.by_row);
    const int64_t c = static_cast<int64_t>(at) - r * static_cast<int64_t>(w.row_bytes + 1) - 1;
    if (c < 0)
        return filter;
    const int64_t y = r, left = c - w.bpp;
    return png_filter_word(filter, png_byte(w, s, y, c), png_byte(w, s, y, left),
                           png_byte(w, s, y - 1, c), png_byte(w, s, y - 1, left)) &
           255;
}

static constexpr int UNIT_WORDS = 4; // words per unit of png_filtered_unit

// Load the words of UNIT_WORDS * 4 bytes at any address. One more word may be read.
GF_DEVICE void png_load_unit(uint32_t (&unit)[UNIT_WORDS], const unsigned char *from) {
    const uintptr_t at = reinterpret_cast<uintptr_t>(from);
    const uint32_t *words = reinterpret_cast<const uint32_t *>(at & ~uintptr_t{3});
    uint32_t low = words[0];
#pragma unroll
    for (int i = 0; i < UNIT_WORDS; i++) {
        const uint32_t high = words[i + 1];
        unit[i] = __funnelshift_r(low, high, at % 4 * 8);
        low = high;
    }
}

// Compute the bytes of the filtered strip from `at` on. Bytes past its end are zero.
GF_DEVICE void png_filtered_unit(const png_window &w, const png_strip &s, uint32_t filter,
                                 uint32_t at, uint32_t (&unit)[UNIT_WORDS]) {
    const uint32_t r = s.count == 1 ? 0 : gf_divide(at, w.by_row);
    const int64_t c = static_cast<int64_t>(at) - r * static_cast<int64_t>(w.row_bytes + 1) - 1;
    const int64_t end = c + 4 * UNIT_WORDS + 4; // of what may be read
    if (!w.swap && c >= w.bpp && end <= static_cast<int64_t>(w.row_bytes) && !(s.first && r == 0)) {
        const unsigned char *row = s.rows + r * s.stride + c, *above = row - s.stride;
        uint32_t x[UNIT_WORDS], left[UNIT_WORDS] = {}, up[UNIT_WORDS] = {},
                                upper_left[UNIT_WORDS] = {};
        png_load_unit(x, row);
        if (filter != GF_PNG_NONE && filter != GF_PNG_UP)
            png_load_unit(left, row - w.bpp);
        if (filter >= GF_PNG_UP)
            png_load_unit(up, above);
        if (filter == GF_PNG_PAETH)
            png_load_unit(upper_left, above - w.bpp);
#pragma unroll
        for (int i = 0; i < UNIT_WORDS; i++)
            unit[i] = png_filter_word(filter, x[i], left[i], up[i], upper_left[i]);
        return;
    }
#pragma unroll
    for (uint32_t i = 0; i < UNIT_WORDS; i++) {
        unit[i] = 0;
        for (uint32_t k = 0; k < 4 && at + 4 * i + k < s.filtered; k++)
            unit[i] |= png_filtered_byte(w, s, filter, at + 4 * i + k) << 8 * k;
    }
}

// ---- choice of the filter -----------------------------------------------------------------------

// Tuning constants of png_probe_strips.
static constexpr uint32_t PROBE_THREADS = 512;
static constexpr uint32_t PROBE_COPIES = 4; // of each histogram, for conflicts between lanes

// Return the number of pieces of a strip. Each thread gets it.
GF_DEVICE uint32_t png_piece_count(const png_window &w, uint32_t count) {
    __shared__ uint32_t min;
    const uint32_t pieces = static_cast<uint32_t>((w.row_bytes + GF_PNG_PIECE - 1) / GF_PNG_PIECE);
    const uint32_t bound = static_cast<uint32_t>(
        (static_cast<uint64_t>(count) * pieces + GF_PNG_PROBE_SHARE - 1) / GF_PNG_PROBE_SHARE);
    if (threadIdx.x == 0)
        min = bound; // a piece from here on is below the strip
    __syncthreads();
    for (uint32_t k = threadIdx.x; k < bound; k += PROBE_THREADS)
        if (gf_png_piece_at(w.row_bytes, k).y >= count)
            atomicMin(&min, k);
    __syncthreads();
    return min;
}

// Add the word at byte c of row y to the flat ones if it equals the one above and the one to the
// left, or to the repeated ones if it equals one of those, or one further left.
GF_DEVICE void png_count_repeat(const png_window &w, const png_strip &s, int64_t y, int64_t c,
                                uint64_t *flat, uint64_t *repeated) {
    const uint32_t here = png_word(w, s, y, c);
    const bool up = here == png_word(w, s, y - 1, c), left = here == png_word(w, s, y, c - w.bpp);
    bool same = up || left;
    for (uint32_t k = 2; k <= GF_PNG_PROBE_LEFT && !same; k++)
        same = here == png_word(w, s, y, c - k * w.bpp);
    *flat += up && left ? GF_PNG_PROBE_STRIDE : 0;
    *repeated += same && !(up && left) ? GF_PNG_PROBE_STRIDE : 0;
}

// Count the residuals of a word, or of the last bytes of a piece. counts: a histogram per filter.
GF_DEVICE void png_count_residuals(const png_window &w, const png_strip &s, int64_t y, int64_t c,
                                   uint32_t bytes, uint32_t (*counts)[256][PROBE_COPIES]) {
    const int64_t left = c - w.bpp;
    uint32_t word[4] = {0, 0, 0, 0}; // the bytes and their neighbours
    if (bytes == 4) {
        word[0] = png_word(w, s, y, c);
        word[1] = png_word(w, s, y, left);
        word[2] = png_word(w, s, y - 1, c);
        word[3] = png_word(w, s, y - 1, left);
    }
    for (uint32_t k = 0; k < bytes && bytes < 4; k++) {
        word[0] |= png_byte(w, s, y, c + k) << 8 * k;
        word[1] |= png_byte(w, s, y, left + k) << 8 * k;
        word[2] |= png_byte(w, s, y - 1, c + k) << 8 * k;
        word[3] |= png_byte(w, s, y - 1, left + k) << 8 * k;
    }
#pragma unroll
    for (uint32_t f = 0; f < GF_PNG_FILTERS; f++) {
        const uint32_t residuals = png_filter_word(f, word[0], word[1], word[2], word[3]);
#pragma unroll
        for (uint32_t k = 0; k < 4; k++)
            if (k < bytes)
                atomicAdd(&counts[f][residuals >> 8 * k & 255][threadIdx.x % PROBE_COPIES], 1);
    }
}

// Choose the filter of a strip from its probe.
// Grid: strips. Block: 512 threads; a warp examines a piece. Shared memory: 20 KiB of histograms.
// Registers: 52 (sm_90), 2 resident blocks.
__global__ void __launch_bounds__(PROBE_THREADS) png_probe_strips(const png_window w) {
    __shared__ uint32_t counts[GF_PNG_FILTERS][256][PROBE_COPIES];
    gf_wait_for_stream();
    const png_strip s = w.strip[blockIdx.x];
    for (uint32_t i = threadIdx.x; i < GF_PNG_FILTERS * 256 * PROBE_COPIES; i += PROBE_THREADS)
        counts[0][0][i] = 0;
    const uint32_t pieces = png_piece_count(w, s.count);
    uint64_t total = 0, flat = 0, repeated = 0;
    for (uint32_t k = threadIdx.x / 32; k < pieces; k += PROBE_THREADS / 32) {
        const gf_png_piece piece = gf_png_piece_at(w.row_bytes, k);
        const int64_t y = static_cast<int64_t>(piece.y);
        for (uint32_t i = threadIdx.x % 32 * 4; i < piece.size; i += 32 * 4) {
            const uint32_t bytes = min(static_cast<uint32_t>(piece.size) - i, 4u);
            png_count_residuals(w, s, y, static_cast<int64_t>(piece.at + i), bytes, counts);
            total += bytes;
        }
        for (uint32_t i = threadIdx.x % 32 * GF_PNG_PROBE_STRIDE; i + 4 <= piece.size;
             i += 32 * GF_PNG_PROBE_STRIDE)
            png_count_repeat(w, s, y, static_cast<int64_t>(piece.at + i), &flat, &repeated);
    }
    gf_png_probe probe;
    probe.total = png_block_sum(total);
    probe.flat = png_block_sum(flat);
    probe.repeated = png_block_sum(repeated);
    if (w.row_bytes < 4) { // a word cannot be compared: assume repeats
        probe.flat = 0;
        probe.repeated = probe.total;
    }
    for (uint32_t f = 0; f < GF_PNG_FILTERS; f++) {
        uint32_t count = 0;
        for (uint32_t k = 0; k < PROBE_COPIES && threadIdx.x < 256; k++)
            count += counts[f][threadIdx.x][k];
        probe.cost[f] = gf_png_entropy(probe.total, png_block_sum(gf_png_entropy_term(count)));
    }
    if (threadIdx.x != 0)
        return;
    png_strip_state state = {};
    state.filter = gf_png_best_filter(&probe);
    if (gf_png_has_repeats(&probe))
        state.matches = gf_png_has_patterns(&probe) ? PNG_MATCHES : PNG_MATCHES_UNLESS_CHEAP;
    w.state[blockIdx.x] = state;
    if (state.matches == PNG_MATCHES)
        *w.any_matches = 1;
}

// Find the first byte (STEP 1) or the last one (STEP -1) of a chunk that differs from its
// predecessor; PNG_CHUNK: none. before: the byte before the chunk; 256: none. Called by a warp.
template <int STEP>
GF_DEVICE uint32_t png_find_edge(const unsigned char *bytes, uint32_t size, uint32_t before) {
    for (uint32_t base = 0; base < size; base += 32) {
        const uint32_t i = base + threadIdx.x % 32, at = STEP > 0 ? i : size - 1 - i;
        const bool differs =
            i < size && (at == 0 ? before != bytes[0] : bytes[at] != bytes[at - 1]);
        const uint32_t found = __ballot_sync(GF_WARP, differs);
        if (found) {
            const uint32_t k = base + static_cast<uint32_t>(__ffs(found)) - 1;
            return STEP > 0 ? k : size - 1 - k;
        }
    }
    return PNG_CHUNK;
}

// Filter a chunk, and find its edges.
// Grid: chunks. Block: 256 threads; each one filters units of 16 bytes, 4 KiB apart. Reads each
// sample up to four times, mostly from the L1 cache; writes the filtered bytes once. Shared memory:
// 16 KiB. Registers: 31 (sm_90), 8 resident blocks.
__global__ void __launch_bounds__(THREADS) png_filter_chunks(const png_window w) {
    __shared__ uint4 units[PNG_CHUNK / 16];
    gf_wait_for_stream();
    const png_strip s = w.strip[blockIdx.x / w.chunks];
    const png_place p = png_locate(w, blockIdx.x, s.filtered);
    if (p.size == 0)
        return;
    const uint32_t filter = w.state[p.strip].filter;
    uint4 *to = reinterpret_cast<uint4 *>(w.filtered + p.strip * w.filtered_stride + p.from);
    for (uint32_t i = threadIdx.x; 16 * i < p.size; i += THREADS) {
        uint32_t unit[UNIT_WORDS];
        png_filtered_unit(w, s, filter, p.from + 16 * i, unit);
        to[i] = units[i] = make_uint4(unit[0], unit[1], unit[2], unit[3]);
    }
    __syncthreads();
    if (threadIdx.x >= 64)
        return;
    const unsigned char *bytes = reinterpret_cast<const unsigned char *>(units);
    const uint32_t before = p.from == p.begin ? 256 : png_filtered_byte(w, s, filter, p.from - 1);
    const uint32_t edge = threadIdx.x < 32 ? png_find_edge<1>(bytes, p.size, before)
                                           : png_find_edge<-1>(bytes, p.size, before);
    if (threadIdx.x == 0)
        w.edges[p.index].first = edge;
    if (threadIdx.x == 32)
        w.edges[p.index].last = edge;
}

// ---- repeats ------------------------------------------------------------------------------------

// Return four bytes at any position.
GF_DEVICE uint32_t png_load_word(const unsigned char *src, size_t at) {
    const uint32_t *words = reinterpret_cast<const uint32_t *>(src + (at & ~size_t{3}));
    return at % 4 ? __funnelshift_r(words[0], words[1], at % 4 * 8) : words[0];
}

// Find out whether the filtered bytes of a strip repeat: whether a pattern is also found in the
// window before it. Reads up to four windows of 32 KiB. A thread compares the first word of the
// pattern at four positions per iteration.
GF_DEVICE void png_find_repeats(const png_window &w, uint32_t strip) {
    const png_strip s = w.strip[strip];
    const unsigned char *src = w.filtered + strip * w.filtered_stride;
    if (s.filtered < GF_REPEAT_MIN_BYTES || w.state[strip].matches == PNG_MATCHES)
        return;
    // Lane k examines position k.
    const uint32_t lane = threadIdx.x % 32;
    const size_t own = lane < GF_REPEAT_POSITIONS ? gf_repeat_position(lane, s.filtered) : 0;
    uint32_t varied =
        __ballot_sync(GF_WARP, lane < GF_REPEAT_POSITIONS && gf_repeat_is_varied(src + own));
    for (uint32_t probed = 0; varied && probed < GF_REPEAT_PATTERNS; probed++) {
        const size_t at = __shfl_sync(GF_WARP, own, __ffs(varied) - 1);
        varied &= varied - 1;
        const size_t from = at < GF_DEFLATE_WINDOW ? 0 : at - GF_DEFLATE_WINDOW;
        const unsigned char *window = src + (from & ~size_t{3});
        const uint32_t *words = reinterpret_cast<const uint32_t *>(window);
        const uint32_t begin = from % 4, end = static_cast<uint32_t>(at - from) + begin;
        const uint32_t first = png_load_word(src, at);
        bool found = false;
#pragma unroll 4
        for (uint32_t i = threadIdx.x; 4 * i < end; i += THREADS) {
            const uint32_t low = words[i], high = words[i + 1];
            const uint32_t same[4] = {low, __funnelshift_r(low, high, 8),
                                      __funnelshift_r(low, high, 16),
                                      __funnelshift_r(low, high, 24)};
            if (same[0] != first && same[1] != first && same[2] != first && same[3] != first)
                continue;
#pragma unroll
            for (uint32_t k = 0; k < 4; k++) {
                const uint32_t to = 4 * i + k;
                bool equal = same[k] == first && to >= begin && to < end;
                for (uint32_t j = 4; j < GF_DEFLATE_PATTERN && equal; j += 4)
                    equal = png_load_word(window, to + j) == png_load_word(src, at + j);
                found |= equal;
            }
        }
        if (!__syncthreads_or(found))
            continue;
        if (threadIdx.x == 0)
            *w.any_matches = w.state[strip].matches = PNG_MATCHES;
        return;
    }
}

// ---- counting -----------------------------------------------------------------------------------

// Counters per byte value: lanes that count the same value rarely conflict.
static constexpr uint32_t COPIES = 8;

// Count the symbols of a chunk, and add its bytes to the Adler-32 sums of the strip. The first
// blocks search for repeats: they take longer, and both only read the filtered bytes. Grid: strips,
// and chunks. Block: 256 threads with 64 consecutive bytes each. Shared memory: 8 KiB of counters.
// Reads filtered bytes once; writes 574 per chunk. Registers: 48 (sm_90), 5 resident blocks.
__global__ void __launch_bounds__(THREADS) png_count_chunks(const png_window w) {
    __shared__ uint32_t literals[256][COPIES], matches[PNG_COUNTS - 256];
    gf_wait_for_stream();
    if (blockIdx.x < w.strips) {
        png_find_repeats(w, blockIdx.x);
        return;
    }
    const uint32_t index = blockIdx.x - w.strips;
    const png_strip s = w.strip[index / w.chunks];
    const png_place p = png_locate(w, index, s.filtered);
    if (p.size == 0)
        return;
    for (uint32_t i = threadIdx.x; i < 256 * COPIES; i += THREADS)
        literals[0][i] = 0;
    if (threadIdx.x < PNG_COUNTS - 256)
        matches[threadIdx.x] = 0;
    const png_bytes b = png_load_bytes(w, p); // contains a barrier
    uint32_t *own = &literals[0][threadIdx.x % COPIES];
    png_each_symbol(
        b,
        [&](uint32_t word) {
#pragma unroll
            for (uint32_t k = 0; k < 32; k += 8)
                atomicAdd(&own[(word >> k & 255) * COPIES], 1);
        },
        [&](uint32_t byte) { atomicAdd(&own[byte * COPIES], 1); },
        [&](uint32_t length) {
            atomicAdd(&matches[gf_split_length(length).symbol - 256], 1);
            atomicAdd(&matches[GF_DEFLATE_LITERALS - 256], 1);
        });
    uint32_t sum = 0, moments = 0; // of the bytes, and of byte i times i
#pragma unroll
    for (uint32_t i = 0; i < THREAD_WORDS; i++) {
        const uint32_t left = b.size > 4 * i ? b.size - 4 * i : 0;
        const uint32_t word = left >= 4 ? b.word[i] : b.word[i] & ((1u << 8 * left) - 1);
        const uint32_t part = __dp4a(word, 0x01010101u, 0u);
        sum += part;
        moments += __dp4a(word, 0x03020100u, 4 * i * part);
    }
    const uint64_t to_end = (s.filtered - p.from - threadIdx.x * THREAD_BYTES) % ADLER_BASE;
    const uint64_t all = png_block_sum(sum);
    const uint64_t weighted =
        png_block_sum(b.size ? to_end * sum + ADLER_BASE * uint64_t{64} - moments % ADLER_BASE : 0);
    uint16_t *counts = w.counts + static_cast<size_t>(p.index) * PNG_COUNTS;
    uint32_t count = 0;
    for (uint32_t k = 0; k < COPIES; k++)
        count += literals[threadIdx.x][(k + threadIdx.x) % COPIES];
    counts[threadIdx.x] = static_cast<uint16_t>(count);
    if (threadIdx.x < PNG_COUNTS - 256)
        counts[256 + threadIdx.x] = static_cast<uint16_t>(matches[threadIdx.x]);
    if (threadIdx.x != 0)
        return;
    png_strip_state *state = w.state + p.strip;
    atomicAdd(reinterpret_cast<gf_u64 *>(&state->sum), all % ADLER_BASE);
    atomicAdd(reinterpret_cast<gf_u64 *>(&state->weighted), weighted % ADLER_BASE);
}

// ---- codes --------------------------------------------------------------------------------------

static constexpr unsigned CODE_THREADS = 320; // one per code length of both codes

struct png_code_memory {
    uint32_t literal[GF_DEFLATE_LITERALS], distance[GF_DEFLATE_DISTANCES];
    uint32_t length[GF_DEFLATE_LENGTHS];
    gf_code_memory memory;
    gf_deflate_codes codes;
};

// Make the code of gf_code_assign. One thread joins the leaves; all threads do the rest.
GF_DEVICE void png_make_code(png_code_memory *m, const uint32_t *frequency, unsigned count,
                             unsigned max_bits, gf_deflate_codeword *codewords) {
    gf_code_memory *memory = &m->memory;
    unsigned used = 0;
    for (unsigned base = 0; base < count; base += CODE_THREADS) {
        const unsigned i = base + threadIdx.x;
        const uint32_t own = i < count ? frequency[i] : 0;
        if (own) {
            unsigned rank = 0;
            for (unsigned k = 0; k < count; k++)
                rank += frequency[k] && (frequency[k] < own || (frequency[k] == own && k < i));
            memory->leaves[rank].frequency = own;
            memory->leaves[rank].symbol = i;
        }
        if (i < count)
            memory->bits[i] = 0;
        used += static_cast<unsigned>(__syncthreads_count(own != 0));
    }
    if (threadIdx.x < 16)
        memory->at_depth[threadIdx.x] = 0;
    if (threadIdx.x == 0)
        gf_code_join_leaves(memory, gf_code_complete(memory, used));
    used = max(used, 2u);
    __syncthreads();
    for (unsigned i = threadIdx.x; i < used; i += CODE_THREADS) {
        unsigned depth = 1;
        for (unsigned node = memory->parent[i]; node != used - 2; depth++)
            node = memory->parent[used + node];
        atomicAdd(&memory->at_depth[min(depth, max_bits)], 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        gf_code_limit_depths(memory->at_depth, max_bits);
        for (unsigned d = 1, code = 0; d <= max_bits; d++) {
            memory->next_code[d] = code;
            code = (code + memory->at_depth[d]) << 1;
        }
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < used; i += CODE_THREADS) {
        unsigned bits = 1; // the most frequent leaves, at the end of the list, have the fewest
        for (unsigned more = memory->at_depth[1]; more < used - i; more += memory->at_depth[bits])
            bits++;
        memory->bits[memory->leaves[i].symbol] = static_cast<uint8_t>(bits);
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < count; i += CODE_THREADS) {
        const unsigned bits = memory->bits[i];
        unsigned code = memory->next_code[bits];
        for (unsigned k = 0; k < i; k++)
            code += memory->bits[k] == bits;
        codewords[i] = bits ? gf_code_reverse(code, bits) | bits << 16 : 0;
    }
    __syncthreads();
}

// Make the code of the code lengths, and find the size of the header.
GF_DEVICE void png_make_header(png_code_memory *m) {
    if (threadIdx.x < GF_DEFLATE_LENGTHS)
        m->length[threadIdx.x] = 0;
    if (threadIdx.x == 0)
        gf_header_cut_codes(&m->codes);
    __syncthreads();
    // Run-length encode the lengths of both codes: by the thread of the first one of a run.
    gf_deflate_codes *codes = &m->codes;
    const unsigned count = codes->literals + codes->distances, first = threadIdx.x;
    unsigned run = 0, length = 0;
    if (first < count) {
        length = gf_header_length(codes, first);
        if (first == 0 || gf_header_length(codes, first - 1) != length)
            for (run = 1; first + run < count && gf_header_length(codes, first + run) == length;)
                run++;
    }
    const unsigned at = png_scan(gf_header_put_run(nullptr, 0, length, run), 0u, gf_plus());
    const unsigned end = gf_header_put_run(codes, at, length, run);
    if (first == CODE_THREADS - 1)
        codes->length_symbols = end;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < m->codes.length_symbols; i += CODE_THREADS)
        atomicAdd(&m->length[m->codes.length_symbol[i].symbol], 1);
    __syncthreads();
    png_make_code(m, m->length, GF_DEFLATE_LENGTHS, GF_DEFLATE_LENGTH_BITS,
                  m->codes.length_codeword);
    if (threadIdx.x == 0)
        gf_header_cut_lengths(&m->codes);
    __syncthreads();
    uint32_t header = 0;
    for (unsigned i = threadIdx.x, bits; i < gf_header_items(&m->codes); i += CODE_THREADS) {
        (void)gf_header_item(&m->codes, i, false, &bits);
        header += bits;
    }
    const uint64_t header_bits = png_block_sum(header);
    if (threadIdx.x == 0)
        m->codes.header_bits = header_bits;
    __syncthreads();
}

// Find the bits of each chunk. A warp adds up those of a chunk.
GF_DEVICE void png_size_chunks(const gf_deflate_codes &codes, const uint16_t *counts,
                               uint32_t chunks, uint32_t *chunk_bits) {
    for (uint32_t c = threadIdx.x / 32; c < chunks; c += CODE_THREADS / 32) {
        const uint16_t *own = counts + c * PNG_COUNTS;
        uint32_t bits = 0;
        for (unsigned i = threadIdx.x % 32; i < GF_DEFLATE_LITERALS; i += 32)
            bits += own[i] * (gf_deflate_bits(codes.literal[i]) + gf_literal_extra_bits(i));
        bits = gf_reduce_group<32>(bits, gf_plus());
        if (threadIdx.x % 32 == 0)
            chunk_bits[c] = bits + own[GF_DEFLATE_LITERALS] * gf_deflate_bits(codes.distance[0]);
    }
}

// Make the codes of a block, and find the first bit of each chunk.
// Grid: blocks of the window. Block: 320 threads; for half of the time, one joins the leaves.
// Shared memory: 10 KiB. Registers: 32 (sm_90), 6 resident blocks.
__global__ void __launch_bounds__(CODE_THREADS) png_make_codes(const png_window w) {
    __shared__ png_code_memory m;
    gf_wait_for_stream();
    const uint32_t strip = blockIdx.x / w.blocks, begin = blockIdx.x % w.blocks * GF_DEFLATE_BLOCK;
    const png_strip s = w.strip[strip];
    if (begin >= s.filtered)
        return;
    const uint32_t size = min(s.filtered - begin, static_cast<uint32_t>(GF_DEFLATE_BLOCK));
    const uint32_t chunks = (size + PNG_CHUNK - 1) / PNG_CHUNK;
    const size_t chunk = static_cast<size_t>(strip) * w.chunks + begin / PNG_CHUNK;
    const uint16_t *counts = w.counts + chunk * PNG_COUNTS;
    uint32_t *chunk_bits = w.chunk_bits + chunk;
    // Add up the symbols of the chunks. All matches have distance 1.
    for (unsigned i = threadIdx.x; i < GF_DEFLATE_LITERALS; i += CODE_THREADS) {
        m.literal[i] = i == GF_DEFLATE_END ? 1 : 0;
        for (uint32_t c = 0; c < chunks; c++)
            m.literal[i] += counts[c * PNG_COUNTS + i];
    }
    if (threadIdx.x < GF_DEFLATE_DISTANCES)
        m.distance[threadIdx.x] = 0;
    __syncthreads();
    for (uint32_t c = 0; c < chunks && threadIdx.x == 0; c++)
        m.distance[0] += counts[c * PNG_COUNTS + GF_DEFLATE_LITERALS];
    __syncthreads();
    png_make_code(&m, m.literal, GF_DEFLATE_LITERALS, GF_DEFLATE_MAX_BITS, m.codes.literal);
    png_make_code(&m, m.distance, GF_DEFLATE_DISTANCES, GF_DEFLATE_MAX_BITS, m.codes.distance);
    png_make_header(&m);
    png_size_chunks(m.codes, counts, chunks, chunk_bits);
    const uint64_t literals = png_block_sum(threadIdx.x < 256 ? m.literal[threadIdx.x] : 0);
    const uint32_t *from = reinterpret_cast<const uint32_t *>(&m.codes);
    uint32_t *to = reinterpret_cast<uint32_t *>(w.codes + blockIdx.x);
    for (unsigned i = threadIdx.x; i < sizeof m.codes / 4; i += CODE_THREADS)
        to[i] = from[i];
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    uint64_t at = m.codes.header_bits;
    for (uint32_t c = 0; c < chunks; c++) {
        const uint32_t bits = chunk_bits[c];
        chunk_bits[c] = c == 0 ? 0 : static_cast<uint32_t>(at);
        at += bits;
    }
    png_block block = {};
    block.bits = at + gf_deflate_bits(m.codes.literal[GF_DEFLATE_END]);
    block.stored = block.bits >= gf_stored_bits(size);
    w.block[blockIdx.x] = block;
    png_strip_state *state = w.state + strip;
    if (state->matches == PNG_MATCHES_UNLESS_CHEAP &&
        !gf_block_is_cheap(block.bits, literals, size))
        *w.any_matches = state->matches = PNG_MATCHES;
}

// Count the samples of a strip that have the maximum value, alpha excluded.
// Grid: strips. Block: 256 threads; a warp reads a row by bytes, once. Registers: 29 (sm_90).
__global__ void __launch_bounds__(THREADS)
    png_count_largest(const png_window w, uint32_t channels) {
    gf_wait_for_stream();
    const png_strip s = w.strip[blockIdx.x];
    const size_t bytes = w.swap ? 2 : 1, samples = w.row_bytes / bytes;
    const size_t mask = channels % 2 ? 0 : channels - 1; // the last of an even number is alpha
    uint64_t count = 0;
    for (uint32_t y = threadIdx.x / 32; y < s.count; y += THREADS / 32) {
        const unsigned char *row = s.rows + y * s.stride;
        for (size_t i = threadIdx.x % 32; i < samples; i += 32)
            count += row[bytes * i] == 255 && row[bytes * i + bytes - 1] == 255 &&
                     !(mask && (i & mask) == mask);
    }
    count = png_block_sum(count);
    if (threadIdx.x == 0)
        w.state[blockIdx.x].largest = static_cast<uint32_t>(count);
}

void png_queue_plan(const png_window &w, uint32_t channels, gf_queue *queue) {
    gf_launch_kernel(png_probe_strips, w.strips, PROBE_THREADS, 0, queue, w);
    gf_launch_kernel(png_filter_chunks, w.strips * w.chunks, THREADS, 0, queue, w);
    gf_launch_kernel(png_count_chunks, w.strips + w.strips * w.chunks, THREADS, 0, queue, w);
    gf_launch_kernel(png_make_codes, w.strips * w.blocks, CODE_THREADS, 0, queue, w);
    if (channels)
        gf_launch_kernel(png_count_largest, w.strips, THREADS, 0, queue, w, channels);
}
