// Kernels of the PNG encoder that write the files.
//
// | kernel           | blocks      | what it writes                                  |
// |------------------|-------------|-------------------------------------------------|
// | png_lay_out      | one         | the place of each strip in the output           |
// | png_pack_chunks  | one a chunk | the bits of the deflate data                    |
// | png_frame_strips | one a strip | IDAT chunks with their CRC-32, Adler-32, head   |
// |                  |             | and end of the file                             |
#include "cuda/png/chunk.cuh"

// ---- layout -------------------------------------------------------------------------------------

// Bytes of the parts of a file.
static constexpr uint32_t IDAT_HEAD = 8, ZLIB_HEAD = 2, ADLER_BYTES = 4, CRC_BYTES = 4;
static constexpr uint32_t IEND_BYTES = 12;

// Return the first bit of byte `at` of a block in stored form, from the start of the block, whose
// first bit is `start`. The header before a part precedes its first byte.
GF_DEVICE uint64_t png_stored_bit(uint64_t start, uint32_t at) {
    if (at == 0)
        return 0;
    const uint64_t first = (start + 3 + 7) / 8 * 8 - start + 32;
    return first + 8 * uint64_t{at} + 8 * GF_DEFLATE_STORED_HEADER * ((at - 1) / GF_DEFLATE_STORED);
}

// Return whether strips are missing that the CPU encodes: the host then queues the kernels again.
GF_DEVICE bool png_must_wait(const png_window &w) {
    return !w.complete && *w.any_matches;
}

// Place the blocks in each strip and the strips in the output, one after another, and clear the
// words that two chunks share.
// Grid: one block of 1024 threads, one per strip. Registers: 32 (sm_90).
__global__ void __launch_bounds__(PNG_MAX_STRIPS) png_lay_out(const png_window w) {
    gf_wait_for_stream();
    if (png_must_wait(w))
        return;
    const uint32_t k = threadIdx.x;
    uint64_t size = 0;
    png_strip s = {};
    if (k < w.strips) {
        s = w.strip[k];
        png_strip_state *state = w.state + k;
        if (state->matches != PNG_MATCHES) {
            uint64_t bit = 0;
            for (uint32_t b = 0; b * uint64_t{GF_DEFLATE_BLOCK} < s.filtered; b++) {
                png_block *block = w.block + k * w.blocks + b;
                const uint32_t bytes =
                    min(s.filtered - b * GF_DEFLATE_BLOCK, static_cast<uint32_t>(GF_DEFLATE_BLOCK));
                block->start = bit;
                bit += block->stored ? png_stored_bit(bit, bytes) : block->bits;
            }
            state->size = static_cast<uint32_t>(s.last ? (bit + 7) / 8 : (bit + 3 + 7) / 8 + 4);
        }
        size = state->size + IDAT_HEAD + CRC_BYTES + (s.first ? w.head_bytes + ZLIB_HEAD : 0) +
               (s.last ? ADLER_BYTES + IEND_BYTES : 0);
        const uint64_t after = s.after % ADLER_BASE;
        gf_u64 *adler = reinterpret_cast<gf_u64 *>(w.adler[s.image]);
        atomicAdd(&adler[0], state->sum % ADLER_BASE);
        // Adler-32 starts with 1, which adds the number of bytes to the second sum.
        atomicAdd(&adler[1],
                  (state->weighted + state->sum % ADLER_BASE * after + s.filtered) % ADLER_BASE);
    }
    const uint64_t before = png_scan(size, uint64_t{0}, gf_plus());
    uint32_t *words = reinterpret_cast<uint32_t *>(w.out);
    if (k < w.strips) {
        png_strip_state *state = w.state + k;
        state->at = before;
        state->data = state->at + IDAT_HEAD + (s.first ? w.head_bytes + ZLIB_HEAD : 0);
        words[(state->data + state->size - 1) / 4] = 0;
    }
    __syncthreads();
    for (uint32_t i = k; i < w.strips * w.chunks; i += PNG_MAX_STRIPS) {
        const uint32_t strip = i / w.chunks, chunk = i % w.chunks;
        const png_strip_state *state = w.state + strip;
        if (chunk * uint64_t{PNG_CHUNK} >= w.strip[strip].filtered || state->matches == PNG_MATCHES)
            continue;
        const png_block *block = w.block + strip * w.blocks + chunk / PNG_BLOCK_CHUNKS;
        if (block->stored)
            w.chunk_bits[i] = static_cast<uint32_t>(
                png_stored_bit(block->start, chunk % PNG_BLOCK_CHUNKS * PNG_CHUNK));
        words[(8 * state->data + block->start + w.chunk_bits[i]) / 32] = 0;
    }
}

// ---- packing ------------------------------------------------------------------------------------

// 14 bits per byte, a block header of at most 336 items, and the end of a block and a strip.
static constexpr uint32_t PACKED_WORDS = (PNG_CHUNK * GF_DEFLATE_MAX_BITS + 336 * 17 + 256) / 32;

struct png_bit_counter {
    uint32_t bits;
    __device__ __forceinline__ void put(uint32_t, uint32_t count) {
        bits += count;
    }
    __device__ __forceinline__ void put_four(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
        bits += (a + b + c + d) >> 16; // at most 4 * 14 in bits 16 to 21; see below
    }
};

// Appends bits to zeroed words in shared memory. Threads may share the first and the last word.
struct png_bit_packer {
    uint32_t *word;
    uint64_t bits;
    uint32_t used; // below 32
    bool shared;   // the current word is the first one
    __device__ __forceinline__ png_bit_packer(uint32_t *words, uint32_t at)
        : word(words + at / 32), bits(0), used(at % 32), shared(true) {}
    __device__ __forceinline__ void store() {
        if (shared)
            atomicOr(word, static_cast<uint32_t>(bits));
        else
            *word = static_cast<uint32_t>(bits);
        shared = false;
        word++;
        bits >>= 32;
        used -= 32;
    }
    // Append count <= 32 bits.
    __device__ __forceinline__ void put(uint32_t value, uint32_t count) {
        bits |= static_cast<uint64_t>(value) << used;
        used += count;
        if (used >= 32)
            store();
    }
    // Append four codewords.
    __device__ __forceinline__ void put_four(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
        put((a & 0xffff) | (b & 0xffff) << (a >> 16), (a >> 16) + (b >> 16));
        put((c & 0xffff) | (d & 0xffff) << (c >> 16), (c >> 16) + (d >> 16));
    }
    __device__ __forceinline__ void flush() {
        if (used)
            atomicOr(word, static_cast<uint32_t>(bits));
    }
};

// Put the bytes of a thread in the form of a dynamic block.
template <typename Bits>
GF_DEVICE void png_put_symbols(const png_bytes &b, const gf_deflate_codeword *codes,
                               gf_deflate_codeword distance, Bits *bits) {
    png_each_symbol(
        b,
        [&](uint32_t word) {
            bits->put_four(codes[word & 255], codes[word >> 8 & 255], codes[word >> 16 & 255],
                           codes[word >> 24]);
        },
        [&](uint32_t byte) { bits->put(codes[byte] & 0xffff, codes[byte] >> 16); },
        [&](uint32_t length) {
            const gf_deflate_split split = gf_split_length(length);
            const gf_deflate_codeword code = codes[split.symbol];
            bits->put(code & 0xffff, code >> 16);
            bits->put(split.extra, split.extra_bits);
            bits->put(distance & 0xffff, distance >> 16);
        });
}

// Put the bytes of a thread in stored form. first: the first bit of the block in the strip.
template <typename Bits>
GF_DEVICE void png_put_stored(const png_bytes &b, const png_place &p, bool last, uint64_t first,
                              Bits *bits) {
    const uint32_t size = p.end - p.begin;
    for (uint32_t i = 0; i < b.size; i++) {
        const uint32_t at = b.at + i;
        if (at % GF_DEFLATE_STORED == 0) {
            const uint32_t part = min(size - at, static_cast<uint32_t>(GF_DEFLATE_STORED));
            const uint64_t start = at ? 0 : first; // parts after the first one start at a byte
            bits->put(last && at + part == size ? 1 : 0,
                      static_cast<uint32_t>((start + 3 + 7) / 8 * 8 - start));
            bits->put(part | (~part & 0xffff) << 16, 32);
        }
        bits->put(b.from[i], 8);
    }
}

// Put the header of a block. All threads take part. Return its size.
GF_DEVICE uint32_t png_put_header(const gf_deflate_codes *codes, bool last, uint32_t *words,
                                  uint32_t at) {
    const uint32_t items = gf_header_items(codes);
    uint32_t item[2] = {0, 0}, bits[2] = {0, 0};
    for (uint32_t k = 0; k < 2; k++)
        if (2 * threadIdx.x + k < items)
            item[k] = gf_header_item(codes, 2 * threadIdx.x + k, last, &bits[k]);
    const uint32_t before = png_scan(bits[0] + bits[1], 0u, gf_plus());
    png_bit_packer packer(words, at + before);
    packer.put(item[0], bits[0]);
    packer.put(item[1], bits[1]);
    packer.flush();
    return static_cast<uint32_t>(codes->header_bits);
}

// Copy the share of a chunk in a strip that the CPU encoded.
GF_DEVICE void png_copy_external(const png_window &w, const png_place &p, uint32_t filtered) {
    const png_strip_state state = w.state[p.strip];
    const uint32_t chunks = (filtered + PNG_CHUNK - 1) / PNG_CHUNK;
    const uint32_t share = (state.size + chunks - 1) / chunks, from = p.chunk * share;
    for (uint32_t i = from + threadIdx.x; i < from + share && i < state.size; i += THREADS)
        w.out[state.data + i] = w.external[state.external + i];
}

// Store bits [start, end) of the output. Chunks may share their first and their last word.
GF_DEVICE void png_store_packed(unsigned char *to, const uint32_t *packed, uint64_t start,
                                uint64_t end) {
    uint32_t *out = reinterpret_cast<uint32_t *>(to) + start / 32;
    const uint32_t words = static_cast<uint32_t>((end - 1) / 32 - start / 32) + 1;
    for (uint32_t i = threadIdx.x; i < words; i += THREADS) {
        if ((i == 0 && start % 32) || (i + 1 == words && end % 32))
            atomicOr(out + i, packed[i]);
        else
            out[i] = packed[i];
    }
}

// Write the bits of a chunk.
// Grid: chunks. Block: 256 threads with 64 consecutive bytes each. Shared memory: 30 KiB: the bits,
// and the codes. Reads the filtered bytes once; writes words. The first and the last word may be
// shared with another chunk. Registers: 63 (sm_90), 4 resident blocks.
__global__ void __launch_bounds__(THREADS) png_pack_chunks(const png_window w) {
    __shared__ uint32_t packed[PACKED_WORDS];
    __shared__ gf_deflate_codeword codes[GF_DEFLATE_LITERALS];
    gf_wait_for_stream();
    if (png_must_wait(w))
        return;
    const png_strip s = w.strip[blockIdx.x / w.chunks];
    const png_place p = png_locate(w, blockIdx.x, s.filtered);
    if (p.size == 0)
        return;
    if (w.state[p.strip].matches == PNG_MATCHES) {
        png_copy_external(w, p, s.filtered);
        return;
    }
    const png_block block = w.block[p.block];
    const gf_deflate_codes *all = w.codes + p.block;
    const uint64_t data = 8 * w.state[p.strip].data;
    const uint64_t start = data + block.start + w.chunk_bits[p.index];
    const bool last_of_block = p.from + p.size == p.end, last_of_strip = p.end == s.filtered;
    const bool final = s.last && last_of_strip;
    for (uint32_t i = threadIdx.x; i < PACKED_WORDS; i += THREADS)
        packed[i] = 0;
    for (uint32_t i = threadIdx.x; i < GF_DEFLATE_LITERALS; i += THREADS)
        codes[i] = all->literal[i];
    const png_bytes b = png_load_bytes(w, p); // contains a barrier
    uint32_t at = start % 32;
    if (p.from == p.begin && !block.stored)
        at += png_put_header(all, final, packed, at);
    const gf_deflate_codeword distance = all->distance[0];
    png_bit_counter counter = {0};
    if (block.stored)
        png_put_stored(b, p, final, block.start, &counter);
    else
        png_put_symbols(b, codes, distance, &counter);
    at += png_scan(counter.bits, 0u, gf_plus());
    png_bit_packer packer(packed, at);
    if (block.stored)
        png_put_stored(b, p, final, block.start, &packer);
    else
        png_put_symbols(b, codes, distance, &packer);
    if (last_of_block && b.size && threadIdx.x * THREAD_BYTES + b.size == p.size) {
        if (!block.stored)
            packer.put(codes[GF_DEFLATE_END] & 0xffff, codes[GF_DEFLATE_END] >> 16);
        if (last_of_strip && !s.last) { // an empty stored block ends on a byte boundary
            packer.put(0, 3);
            packer.put(0, (32 - packer.used) % 8);
            packer.put(0xffff0000u, 32);
        }
    }
    packer.flush();
    __syncthreads();
    const uint64_t end = last_of_block && last_of_strip ? data + 8 * uint64_t{w.state[p.strip].size}
                         : last_of_block                ? data + w.block[p.block + 1].start
                                         : data + block.start + w.chunk_bits[p.index + 1];
    png_store_packed(w.out, packed, start, end);
}

// ---- frames -------------------------------------------------------------------------------------

static constexpr uint32_t CRC_THREADS = 1024;           // one per entry of the table
static constexpr uint32_t WORD_POWER = 2;               // of a word in png_powers
static constexpr uint32_t BLOCK_POWER = 12;             // of CRC_THREADS words
static constexpr uint32_t CRC_POLYNOMIAL = 0xedb88320u; // reflected: bit 31 is x^0

// Return a * b modulo the polynomial of CRC-32.
static constexpr __host__ __device__ __forceinline__ uint32_t png_crc_multiply(uint32_t a,
                                                                               uint32_t b) {
    uint32_t product = 0;
    for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
        if (a & bit)
            product ^= b;
        b = b & 1 ? b >> 1 ^ CRC_POLYNOMIAL : b >> 1;
    }
    return product;
}

// Powers x^(8 * 2^k) modulo the polynomial.
struct png_crc_powers {
    uint32_t power[32];
};

static constexpr png_crc_powers png_make_powers() {
    png_crc_powers powers = {};
    powers.power[0] = 1u << 23; // x^8
    for (int k = 1; k < 32; k++)
        powers.power[k] = png_crc_multiply(powers.power[k - 1], powers.power[k - 1]);
    return powers;
}

static __constant__ png_crc_powers png_powers = png_make_powers();

// Return the CRC-32 of at least 8 bytes. Each thread processes every CRC_THREADS-th
// word; `table`, indexed by the bytes of a CRC, moves the CRC over CRC_THREADS words. Zeros before
// the first byte do not change a CRC that starts at zero. Only the first thread gets the result.
GF_DEVICE uint32_t png_crc(const unsigned char *bytes, uint32_t size, uint32_t (*table)[256]) {
    __shared__ uint32_t crcs[CRC_THREADS];
    const uint32_t skip = reinterpret_cast<uintptr_t>(bytes) % 4;
    const uint32_t *words = reinterpret_cast<const uint32_t *>(bytes - skip);
    const uint32_t whole = (size + skip) / 4;
    // The last thread has the last word.
    const uint32_t rounds = (whole + CRC_THREADS - 1) / CRC_THREADS;
    const int64_t first = static_cast<int64_t>(whole) - rounds * int64_t{CRC_THREADS} + threadIdx.x;
    uint32_t crc = 0;
#pragma unroll 4
    for (uint32_t k = 0; k < rounds; k++) {
        const int64_t i = first + k * int64_t{CRC_THREADS};
        uint32_t word = i < 0 ? 0 : words[i];
        if (i == 0) // the initial value, all ones, inverts the first four bytes
            word = ~word >> 8 * skip << 8 * skip;
        if (i == 1 && skip)
            word ^= 0xffffffffu >> (32 - 8 * skip);
        crc = word ^ table[0][crc & 255] ^ table[1][crc >> 8 & 255] ^ table[2][crc >> 16 & 255] ^
              table[3][crc >> 24];
    }
    crcs[threadIdx.x] = crc;
    __syncthreads();
    for (uint32_t count = CRC_THREADS / 2, level = WORD_POWER; count; count /= 2, level++) {
        uint32_t joined = 0;
        if (threadIdx.x < count)
            joined = png_crc_multiply(crcs[2 * threadIdx.x], png_powers.power[level]) ^
                     crcs[2 * threadIdx.x + 1];
        __syncthreads();
        if (threadIdx.x < count)
            crcs[threadIdx.x] = joined;
        __syncthreads();
    }
    crc = png_crc_multiply(crcs[0], png_powers.power[WORD_POWER]);
    for (uint32_t i = 4 * whole; i < size + skip; i++) { // bytes after the last whole word
        crc ^= bytes[i - skip];
        for (int k = 0; k < 8; k++)
            crc = crc & 1 ? crc >> 1 ^ CRC_POLYNOMIAL : crc >> 1;
    }
    return ~crc;
}

GF_DEVICE void png_put_big32(unsigned char *to, uint32_t v) {
    for (int i = 0; i < 4; i++)
        to[i] = static_cast<unsigned char>(v >> (24 - 8 * i));
}

// Write what surrounds the deflate data of a strip.
// Grid: strips. Block: 1024 threads. Shared memory: 8 KiB. Reads the output once. Registers: 47
// (sm_90), one resident block.
__global__ void __launch_bounds__(CRC_THREADS) png_frame_strips(const png_window w) {
    __shared__ uint32_t table[4][256];
    gf_wait_for_stream();
    if (png_must_wait(w))
        return;
    const png_strip s = w.strip[blockIdx.x];
    const png_strip_state state = w.state[blockIdx.x];
    unsigned char *to = w.out + state.at;
    for (uint32_t i = threadIdx.x; i < 4 * 256; i += CRC_THREADS)
        table[i / 256][i % 256] =
            png_crc_multiply(i % 256 << i / 256 * 8, png_powers.power[BLOCK_POWER]);
    if (s.first) {
        for (uint32_t i = threadIdx.x; i < w.head_bytes; i += CRC_THREADS)
            to[i] = w.head[i];
        to += w.head_bytes;
    }
    const uint32_t size = state.size + (s.first ? ZLIB_HEAD : 0) + (s.last ? ADLER_BYTES : 0);
    unsigned char *end = to + IDAT_HEAD + size;
    if (threadIdx.x == 0) {
        const unsigned char name[] = {'I', 'D', 'A', 'T', 0x78, 0x01};
        png_put_big32(to, size);
        for (int i = 0; i < (s.first ? 6 : 4); i++)
            to[4 + i] = name[i];
        if (s.last) {
            const uint64_t sum = w.adler[s.image][0], weighted = w.adler[s.image][1];
            png_put_big32(end - ADLER_BYTES, static_cast<uint32_t>((weighted % ADLER_BASE) << 16 |
                                                                   (1 + sum) % ADLER_BASE));
        }
    }
    __syncthreads();
    const uint32_t crc = png_crc(to + 4, 4 + size, table);
    if (threadIdx.x != 0)
        return;
    png_put_big32(end, crc);
    if (s.last) {
        const unsigned char iend[IEND_BYTES] = {0,   0,   0,    0,    'I',  'E',
                                                'N', 'D', 0xae, 0x42, 0x60, 0x82};
        for (int i = 0; i < IEND_BYTES; i++)
            end[CRC_BYTES + i] = iend[i];
    }
}

void png_queue_write(const png_window &w, gf_queue *queue) {
    gf_launch_kernel(png_lay_out, 1, PNG_MAX_STRIPS, 0, queue, w);
    gf_launch_kernel(png_pack_chunks, w.strips * w.chunks, THREADS, 0, queue, w);
    gf_launch_kernel(png_frame_strips, w.strips, CRC_THREADS, 0, queue, w);
}
