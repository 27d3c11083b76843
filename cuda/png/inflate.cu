// Deflate decoder for many streams at once (RFC 1951): one warp per stream.
#include "cuda/png/decode.cuh"

// Tuning constants of png_inflate.
static constexpr uint32_t LITERAL_BITS = 10; // index of the table of literals and lengths
static constexpr uint32_t DISTANCE_BITS = 9;
static constexpr uint32_t MAX_BITS = 15;
static constexpr uint32_t RING = 4096;   // bytes of output in shared memory
static constexpr uint32_t SEGMENT = 512; // bytes that a warp stores at once: 16 per lane
static constexpr uint32_t CHUNK = 32;    // words of input that a warp loads at once

// A step writes up to 31 + 258 bytes, 32 at once, and up to SEGMENT - 1 before it are not stored.
static_assert(RING >= SEGMENT + 2 * 32 + 258, "a source that is not in the ring has been stored");

// Entry of the table of literals and lengths. 0: an invalid code, or one of more bits.
#define ENTRY_LITERALS(e) ((e) >> 25 & 3) // 1: bits 0 to 7; 2: also bits 8 to 15
#define ENTRY_LITERAL (1u << 25)
#define ENTRY_PAIR (2u << 25)
#define ENTRY_LENGTH (1u << 27) // bits 0 to 8: base
#define ENTRY_END (1u << 28)
#define ENTRY_EXTRA(e) ((e) >> 9 & 7)   // of a length: number of extra bits
#define ENTRY_BITS(e) ((e) >> 16 & 15)  // of the first codeword
#define ENTRY_TOTAL(e) ((e) >> 20 & 31) // of both literals, or of the codeword and its extra bits

// Entry of the table of distances. Bits 0 to 14: base. 0 and ENTRY_TOTAL: as above.
#define DISTANCE_EXTRA(d) ((d) >> 16 & 15) // number of extra bits

// A code: the symbols sorted by codeword, and the number of codewords of each length.
template <int SYMBOLS> struct inflate_code {
    uint16_t symbol[SYMBOLS];
    uint32_t count[MAX_BITS + 1];
};

struct inflate_memory {
    // Entries of literals and lengths, then of distances.
    uint32_t tables[(1 << LITERAL_BITS) + (1 << DISTANCE_BITS)];
    inflate_code<288> literals;
    inflate_code<32> distances;
    uint32_t next[MAX_BITS + 1]; // while a table is filled
    uint8_t lengths[288 + 32];
    uint32_t input[2 * CHUNK + 3]; // two chunks, and the first words again
    alignas(16) unsigned char ring[RING];
};

// Input. Two chunks are in shared memory. All lanes have the same values, except for `ahead`.
struct inflate_bits {
    const uint32_t *data;
    uint32_t words; // of data; zeros follow
    uint32_t chunk; // the first one in shared memory
    uint32_t at;    // the next bit, modulo 2^32
    uint32_t ahead; // the lane's word of the chunk after the two

    __device__ __forceinline__ uint32_t load(uint32_t number) const {
        const uint32_t word = number * CHUNK + threadIdx.x;
        return word < words ? data[word] : 0;
    }
    __device__ __forceinline__ void store(inflate_memory *m, uint32_t number, uint32_t word) {
        m->input[number % 2 * CHUNK + threadIdx.x] = word;
        if (number % 2 == 0 && threadIdx.x < 3)
            m->input[2 * CHUNK + threadIdx.x] = word;
    }
    // Start at a byte.
    __device__ __forceinline__ void start(inflate_memory *m, uint32_t byte) {
        chunk = byte / (4 * CHUNK);
        at = byte * 8;
        __syncwarp();
        store(m, chunk, load(chunk));
        store(m, chunk + 1, load(chunk + 1));
        ahead = load(chunk + 2);
        __syncwarp();
    }
    // Return the bits taken from the first chunk.
    __device__ __forceinline__ uint32_t taken_here() const {
        return at - chunk * 32 * CHUNK;
    }
    // Have a chunk of bits. Returns false after the end of the input.
    __device__ __forceinline__ bool refill(inflate_memory *m) {
        if (taken_here() < 32 * CHUNK)
            return true;
        __syncwarp();
        store(m, chunk, ahead); // chunk + 2 takes its place
        chunk++;
        ahead = load(chunk + 2);
        __syncwarp();
        return chunk * CHUNK <= words;
    }
    // Return the 64 bits from a bit after `at` on.
    __device__ __forceinline__ uint64_t peek(const inflate_memory *m, uint32_t after = 0) const {
        const uint32_t first = at + after;
        const uint32_t *word = m->input + first / 32 % (2 * CHUNK);
        const uint32_t low = __funnelshift_r(word[0], word[1], first);
        return low | static_cast<uint64_t>(__funnelshift_r(word[1], word[2], first)) << 32;
    }
    // Return n <= 16 bits after a refill.
    __device__ __forceinline__ uint32_t take(const inflate_memory *m, uint32_t n) {
        const uint32_t value = static_cast<uint32_t>(peek(m)) & ((1u << n) - 1);
        at += n;
        return value;
    }
    // Skip the bits up to the next byte.
    __device__ __forceinline__ void align() {
        at = (at + 7) / 8 * 8;
    }
    // Return the number of bits taken.
    __device__ __forceinline__ uint64_t taken() const {
        return uint64_t{32 * CHUNK} * chunk + taken_here();
    }
};

// Output. The last RING bytes are in shared memory; whole segments are stored in global memory.
struct inflate_output {
    unsigned char *out;
    uint32_t limit; // size of the output
    uint32_t at;
    uint32_t base; // position of the segment modulo ADLER_BASE
    uint64_t sum, moment;
    bool invalid; // a lane has found a distance before the first byte
    // The lane's byte of a match, while it is being loaded from global memory.
    bool pending;
    uint32_t pending_to; // its place in the ring
    uint32_t pending_byte;
};

// ---- tables -------------------------------------------------------------------------------------

// Count the lengths of a code and sort its symbols. Returns false unless the code is complete, or
// may_be_single and it has one codeword of one bit, or none.
template <int SYMBOLS>
GF_DEVICE bool inflate_sort(inflate_memory *m, inflate_code<SYMBOLS> *code, const uint8_t *lengths,
                            uint32_t symbols, bool may_be_single) {
    const uint32_t lane = threadIdx.x;
    if (lane <= MAX_BITS)
        code->count[lane] = 0;
    __syncwarp();
    for (uint32_t s = lane; s < symbols; s += 32)
        atomicAdd(&code->count[lengths[s]], 1);
    __syncwarp();
    int left = 1;
    uint32_t used = 0, index = 0;
    for (int n = 1; n <= MAX_BITS; n++) {
        if (lane == 0)
            m->next[n] = index;
        index += code->count[n];
        used += code->count[n];
        left = 2 * left - static_cast<int>(code->count[n]);
        if (left < 0)
            return false;
    }
    if (left > 0 && !(may_be_single && (used == 0 || (used == 1 && code->count[1] == 1))))
        return false;
    __syncwarp();
    for (uint32_t first = 0; first < symbols; first += 32) {
        const uint32_t s = first + lane, length = s < symbols ? lengths[s] : 0;
        const uint32_t same = __match_any_sync(GF_WARP, length);
        const uint32_t rank = __popc(same & ((1u << lane) - 1));
        if (length)
            code->symbol[m->next[length] + rank] = static_cast<uint16_t>(s);
        __syncwarp();
        if (length && rank == 0)
            m->next[length] += __popc(same);
        __syncwarp();
    }
    return true;
}

// Call put(index, symbol, length) for each table index of each codeword of at most `bits` bits.
template <int SYMBOLS, typename Put>
GF_DEVICE void inflate_fill(const inflate_code<SYMBOLS> &code, uint32_t bits, Put put) {
    uint32_t first = 0, index = 0; // codeword and index of the first symbol of a length
    for (uint32_t length = 1; length <= bits; length++) {
        const uint32_t count = code.count[length];
        // Lanes share the indices of all symbols of this length.
        const uint32_t copies = bits - length;
        for (uint32_t k = threadIdx.x; k < count << copies; k += 32) {
            const uint32_t i = k >> copies, copy = k & ((1u << copies) - 1);
            const uint32_t reversed = __brev(first + i) >> (32 - length);
            put(reversed | copy << length, code.symbol[index + i], length);
        }
        index += count;
        first = (first + count) << 1;
    }
    __syncwarp();
}

// Return the entry of a symbol of `length` bits; 0 if the symbol is invalid.
GF_DEVICE uint32_t inflate_literal_entry(uint32_t symbol, uint32_t length) {
    const uint32_t size = length << 16 | length << 20;
    if (symbol < 256)
        return symbol | size | ENTRY_LITERAL;
    if (symbol == 256)
        return size | ENTRY_END;
    if (symbol < 265)
        return (symbol - 254) | size | ENTRY_LENGTH;
    if (symbol < 285) {
        const uint32_t extra = (symbol - 261) / 4;
        return ((((4 + (symbol - 265) % 4) << extra) + 3) | extra << 9 | size | ENTRY_LENGTH) +
               (extra << 20);
    }
    return symbol == 285 ? 258 | size | ENTRY_LENGTH : 0;
}

GF_DEVICE uint32_t inflate_distance_entry(uint32_t symbol, uint32_t length) {
    const uint32_t extra = symbol < 4 ? 0 : symbol / 2 - 1;
    const uint32_t base = symbol < 4 ? symbol : (2 + symbol % 2) << extra;
    return symbol > 29 ? 0 : (base + 1) | extra << 16 | (length + extra) << 20;
}

// Make the tables from m->lengths.
GF_DEVICE bool inflate_make_tables(inflate_memory *m, uint32_t literals, uint32_t distances,
                                   bool fixed) {
    if (!inflate_sort(m, &m->literals, m->lengths, literals, false) ||
        !inflate_sort(m, &m->distances, m->lengths + literals, distances, !fixed))
        return false;
    uint32_t *literal = m->tables, *distance = m->tables + (1 << LITERAL_BITS);
    for (uint32_t i = threadIdx.x; i < sizeof m->tables / 4; i += 32)
        m->tables[i] = 0;
    __syncwarp();
    inflate_fill(m->literals, LITERAL_BITS, [&](uint32_t i, uint32_t symbol, uint32_t length) {
        literal[i] = inflate_literal_entry(symbol, length);
    });
    inflate_fill(m->distances, DISTANCE_BITS, [&](uint32_t i, uint32_t symbol, uint32_t length) {
        distance[i] = inflate_distance_entry(symbol, length);
    });
    // Join two literals if both codewords are in the index. The first symbol stays readable.
    for (uint32_t i = threadIdx.x; i < 1u << LITERAL_BITS; i += 32) {
        const uint32_t e = literal[i], second = literal[i >> ENTRY_BITS(e)];
        const uint32_t total = ENTRY_BITS(e) + ENTRY_BITS(second);
        if (ENTRY_LITERALS(e) && ENTRY_LITERALS(second) && total <= LITERAL_BITS)
            literal[i] =
                (e & 0xff) | (second & 0xff) << 8 | ENTRY_BITS(e) << 16 | total << 20 | ENTRY_PAIR;
    }
    __syncwarp();
    return true;
}

// Return the entry of a codeword, bit by bit. Returns 0 for an invalid one.
template <int SYMBOLS, typename Entry>
GF_DEVICE uint32_t inflate_slow(const inflate_code<SYMBOLS> &code, uint64_t bits, Entry entry) {
    uint32_t value = 0, first = 0, index = 0;
    for (uint32_t length = 1; length <= MAX_BITS; length++) {
        value |= static_cast<uint32_t>(bits >> (length - 1)) & 1;
        const uint32_t count = code.count[length];
        if (value - first < count)
            return entry(code.symbol[index + value - first], length);
        index += count;
        first = (first + count) << 1;
        value <<= 1;
    }
    return 0;
}

// Read the header of a dynamic block and make its tables.
GF_DEVICE bool inflate_read_header(inflate_memory *m, inflate_bits *in) {
    const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    const uint32_t literals = in->take(m, 5) + 257, distances = in->take(m, 5) + 1;
    const uint32_t sent = in->take(m, 4) + 4, all = literals + distances;
    if (literals > 286 || distances > 30)
        return false;
    __syncwarp();
    if (threadIdx.x < 19)
        m->lengths[threadIdx.x] = 0;
    __syncwarp();
    if (threadIdx.x < sent)
        m->lengths[order[threadIdx.x]] = static_cast<uint8_t>(in->peek(m, 3 * threadIdx.x) & 7);
    in->at += 3 * sent;
    __syncwarp();
    if (!inflate_sort(m, &m->distances, m->lengths, 19, false))
        return false;
    inflate_fill(m->distances, 7, [&](uint32_t i, uint32_t symbol, uint32_t length) {
        m->tables[i] = symbol | length << 8;
    });
    for (uint32_t i = 0, previous = 0; i < all;) {
        if (!in->refill(m))
            return false;
        const uint32_t e = m->tables[in->peek(m) & 127], symbol = e & 255;
        in->at += e >> 8;
        uint32_t run = 1, value = symbol;
        if (symbol == 16) {
            if (i == 0)
                return false;
            run = 3 + in->take(m, 2);
            value = previous;
        } else if (symbol >= 17) {
            run = symbol == 17 ? 3 + in->take(m, 3) : 11 + in->take(m, 7);
            value = 0;
        }
        if (i + run > all)
            return false;
        previous = value;
        __syncwarp();
        for (uint32_t k = threadIdx.x; k < run; k += 32)
            m->lengths[i + k] = static_cast<uint8_t>(value);
        i += run;
    }
    __syncwarp();
    return m->lengths[256] != 0 && inflate_make_tables(m, literals, distances, false);
}

GF_DEVICE bool inflate_make_fixed(inflate_memory *m) {
    __syncwarp();
    for (uint32_t s = threadIdx.x; s < 288 + 32; s += 32)
        m->lengths[s] = s < 144 ? 8 : s < 256 ? 9 : s < 280 ? 7 : s < 288 ? 8 : 5;
    __syncwarp();
    return inflate_make_tables(m, 288, 32, true);
}

// ---- output -------------------------------------------------------------------------------------

// Write pending bytes to the ring.
GF_DEVICE void inflate_settle(inflate_memory *m, inflate_output *out) {
    if (out->pending)
        m->ring[out->pending_to] = static_cast<unsigned char>(out->pending_byte);
    out->pending = false;
    __syncwarp();
}

// Advance by `step` < SEGMENT bytes that were written to the ring. Store a segment that they
// complete, and add it to the Adler-32 sums.
GF_DEVICE bool inflate_advance(inflate_memory *m, inflate_output *out, uint32_t step) {
    out->at += step;
    if (out->at % SEGMENT >= step)
        return true;
    const uint32_t end = out->at / SEGMENT * SEGMENT;
    if (end > out->limit || __any_sync(GF_WARP, out->invalid))
        return false;
    inflate_settle(m, out);
    const uint32_t at = end - SEGMENT + 16 * threadIdx.x;
    const uint4 v = *reinterpret_cast<const uint4 *>(m->ring + at % RING);
    *reinterpret_cast<uint4 *>(out->out + at) = v;
    uint32_t sum = 0, moment = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint32_t part = __dp4a(gf_word(v, i), 0x01010101u, 0u);
        sum += part;
        moment = __dp4a(gf_word(v, i), 0x03020100u, moment + 4 * i * part);
    }
    out->sum += sum;
    out->moment += static_cast<uint64_t>(out->base + 16 * threadIdx.x) * sum + moment;
    out->base += SEGMENT;
    out->base -= out->base >= ADLER_BASE ? ADLER_BASE : 0;
    return true;
}

// A byte of output: byte k of a token with a value.
struct inflate_byte {
    uint32_t token;
    bool match;
    uint32_t k;
};

// Write bytes [first, first + 32) of tokens to the ring, a lane per byte. bytes: of all tokens.
//
// The source of a match may be a byte of this call: its source is used instead, until this is a
// literal or a byte before `first`. Bytes in global memory are awaited only when they are needed:
// the load takes as long as the next tokens.
GF_DEVICE void inflate_write(inflate_memory *m, inflate_output *out, const inflate_byte &own,
                             uint32_t first, uint32_t bytes) {
    const int32_t i = static_cast<int32_t>(first + threadIdx.x);
    const bool exists = first + threadIdx.x < bytes;
    uint32_t byte = own.token >> 8 * (own.k & 3);
    // The position of the source, its own for a literal; negative: before all tokens.
    int32_t source = own.match && exists ? i - static_cast<int32_t>(own.token & 0xffff) : i;
    const int32_t begin = static_cast<int32_t>(first);
    if (__any_sync(GF_WARP, source >= begin && source != i)) {
        for (int round = 0; round < 5; round++) {
            const int32_t next = __shfl_sync(GF_WARP, source, source & 31);
            source = source >= begin ? next : source;
        }
        const uint32_t literal = __shfl_sync(GF_WARP, byte, source & 31);
        byte = source >= begin ? literal : byte;
    }
    // No branch: one costs more than the loads and stores that it may save.
    const int32_t from = static_cast<int32_t>(out->at) + source;
    const uint32_t to = (out->at + first + threadIdx.x) % RING;
    const bool far = source < begin + 32 - static_cast<int32_t>(RING) && from >= 0;
    out->invalid |= from < 0;
    inflate_settle(m, out); // also orders the bytes that other lanes have written
    const uint32_t near = m->ring[static_cast<uint32_t>(from) % RING];
    byte = source < begin ? near : byte;
    if (far)
        out->pending_byte = out->out[from];
    if (exists && !far)
        m->ring[to] = static_cast<unsigned char>(byte);
    out->pending = far;
    out->pending_to = to;
}

// Write the bytes after the first 32 of tokens to the ring: they belong to the last token. token,
// match, start: its value, its kind and the position of its first byte, in lane 31.
GF_DEVICE void inflate_write_rest(inflate_memory *m, inflate_output *out, uint32_t token,
                                  bool match, uint32_t start, uint32_t bytes) {
    token = __shfl_sync(GF_WARP, token, 31);
    match = __shfl_sync(GF_WARP, match, 31);
    start = __shfl_sync(GF_WARP, start, 31);
    for (uint32_t first = 32; first < bytes; first += 32)
        inflate_write(m, out, {token, match, first + threadIdx.x - start}, first, bytes);
}

// ---- blocks -------------------------------------------------------------------------------------

// Copy a stored block.
GF_DEVICE bool inflate_stored(inflate_memory *m, inflate_bits *in, inflate_output *out,
                              uint32_t bytes) {
    in->align();
    const uint32_t size = in->take(m, 16), complement = in->take(m, 16);
    const uint64_t at = in->taken() / 8;
    if (size != (complement ^ 0xffff) || at + size > bytes)
        return false;
    const unsigned char *from = reinterpret_cast<const unsigned char *>(in->data) + at;
    for (uint32_t i = 0, part; i < size; i += part) {
        part = min(size - i, 256u);
        for (uint32_t k = threadIdx.x; k < part; k += 32)
            m->ring[(out->at + k) % RING] = from[i + k];
        if (!inflate_advance(m, out, part))
            return false;
    }
    in->start(m, static_cast<uint32_t>(at) + size);
    return true;
}

// The next symbols of the input: up to four literals, or a match.
struct inflate_token {
    uint32_t bits;  // 0: not in the tables, or the end of the block
    uint32_t bytes; // of output
    uint32_t value; // the literals; or the distance, and from bit 16 on the length
    bool match;
};

GF_DEVICE inflate_token inflate_match(uint64_t bits, uint32_t e, uint32_t d) {
    const uint32_t length =
        (e & 511) + (static_cast<uint32_t>(bits) >> ENTRY_BITS(e) & ((1u << ENTRY_EXTRA(e)) - 1));
    const uint32_t rest = static_cast<uint32_t>(bits >> ENTRY_TOTAL(e));
    const uint32_t more = DISTANCE_EXTRA(d);
    const uint32_t distance = (d & 0x7fff) + (rest >> (ENTRY_TOTAL(d) - more) & ((1u << more) - 1));
    return {ENTRY_TOTAL(e) + ENTRY_TOTAL(d), length, distance | length << 16, true};
}

// Decode a token by the tables. Both kinds are decoded, without a branch.
GF_DEVICE inflate_token inflate_decode_token(const inflate_memory *m, uint64_t bits) {
    constexpr uint32_t literals = 1u << LITERAL_BITS, distances = 1u << DISTANCE_BITS;
    const uint32_t first = m->tables[bits & (literals - 1)];
    const uint32_t rest = __funnelshift_r(static_cast<uint32_t>(bits),
                                          static_cast<uint32_t>(bits >> 32), ENTRY_TOTAL(first));
    const bool match = first & ENTRY_LENGTH;
    const uint32_t mask = match ? distances - 1 : literals - 1, base = match ? literals : 0;
    const uint32_t second = m->tables[(rest & mask) | base];
    const uint32_t used = match || ENTRY_LITERALS(second) ? second : 0;
    const bool known = match ? second != 0 : ENTRY_LITERALS(first) != 0;
    const uint32_t bytes = ENTRY_LITERALS(first);
    inflate_token t = inflate_match(bits, first, second);
    t.bits = known ? ENTRY_TOTAL(first) + ENTRY_TOTAL(used) : 0;
    t.bytes = match ? t.bytes : bytes + ENTRY_LITERALS(used);
    t.value = match ? t.value : (first & 0xffff) | used << 8 * bytes;
    t.match = match;
    return t;
}

// Decode a literal or match whose codewords may have any length, or the end of the block: *end.
GF_DEVICE bool inflate_rare(inflate_memory *m, inflate_bits *in, inflate_output *out, bool *end) {
    const uint64_t bits = in->peek(m);
    const uint32_t e = inflate_slow(m->literals, bits, inflate_literal_entry);
    inflate_token t = {ENTRY_TOTAL(e), 1, e & 0xff, false};
    *end = e & ENTRY_END;
    if (e & ENTRY_LENGTH) {
        const uint32_t d =
            inflate_slow(m->distances, bits >> ENTRY_TOTAL(e), inflate_distance_entry);
        t = inflate_match(bits, e, d);
        t.bits = d ? t.bits : 0;
    }
    in->at += t.bits;
    if (!t.bits)
        return false;
    if (*end)
        return true;
    inflate_write(m, out, {t.value, t.match, threadIdx.x}, 0, t.bytes);
    inflate_write_rest(m, out, t.value, t.match, 0, t.bytes);
    return inflate_advance(m, out, t.bytes);
}

// Decode the symbols of a block. Each lane decodes a token at its bit of the next 32: most of these
// bits are not the start of one. The chain of those that are is then followed from lane to lane.
GF_DEVICE bool inflate_symbols(inflate_memory *m, inflate_bits *in, inflate_output *out) {
    // The chain: in bits 0 to 7 the bit of a token, from bit 8 on its position in the output.
    constexpr uint32_t end_bits = 0xe0, end_bytes = 32 << 8, rare = 1u << 31;
    for (;;) {
        if (in->taken_here() >= 32 * CHUNK && !in->refill(m))
            return false;
        const inflate_token t = inflate_decode_token(m, in->peek(m, threadIdx.x));
        const uint32_t matches = __ballot_sync(GF_WARP, t.match);
        const uint32_t size = t.bits ? t.bits | t.bytes << 8 : rare;
        uint32_t chain = 0, owner = 0; // owner: of output byte `lane`
        do {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const bool goes_on = !(chain & end_bits) && chain < end_bytes;
                const uint32_t next = __shfl_sync(GF_WARP, size, static_cast<int>(chain));
                owner = goes_on && chain < (threadIdx.x + 1) << 8 ? chain : owner;
                chain += goes_on ? next : 0;
            }
        } while (!(chain & end_bits) && chain < end_bytes);
        const uint32_t token = __shfl_sync(GF_WARP, t.value, static_cast<int>(owner));
        const bool match = matches >> owner % 32 & 1;
        const uint32_t start = owner >> 8, bytes = (chain & ~rare) >> 8;
        inflate_write(m, out, {token, match, threadIdx.x - start}, 0, bytes);
        in->at += chain & 0xff;
        if ((bytes > 32) | (out->at % SEGMENT + bytes >= SEGMENT) | (chain >= rare)) {
            inflate_write_rest(m, out, token, match, start, bytes);
            if (!inflate_advance(m, out, bytes))
                return false;
            bool end = false;
            if (chain & rare && !inflate_rare(m, in, out, &end))
                return false;
            if (end)
                return true;
        } else {
            out->at += bytes;
        }
    }
}

// Decode all blocks of a stream. Returns whether it is valid, with output of the expected size.
GF_DEVICE bool inflate_blocks(inflate_memory *m, const png_stream &s, inflate_bits *in,
                              inflate_output *out) {
    for (bool final = false; !final;) {
        if (!s.last && out->at == s.out_bytes && in->taken() == uint64_t{8} * s.bytes)
            return true;
        if (!in->refill(m))
            return false;
        final = in->take(m, 1);
        const uint32_t type = in->take(m, 2);
        if (type == 0
                ? !inflate_stored(m, in, out, s.bytes)
                : type == 3 || !(type == 1 ? inflate_make_fixed(m) : inflate_read_header(m, in)) ||
                      !inflate_symbols(m, in, out))
            return false;
        if (in->taken() > uint64_t{8} * s.bytes)
            return false;
    }
    return s.last && out->at == s.out_bytes;
}

// Inflate streams.
// Grid: streams. Block: one warp. Reads the input once; writes the output once and reads sources of
// matches before the ring. Shared memory: 12 KiB. Registers: 69 (sm_90), 19 resident blocks.
__global__ void __launch_bounds__(32) png_inflate(const png_stream *streams, png_stream_end *ends) {
    __shared__ inflate_memory m;
    gf_wait_for_stream();
    const png_stream s = streams[blockIdx.x];
    inflate_bits in = {};
    in.data = s.data;
    in.words = (s.bytes + 3) / 4;
    in.start(&m, s.skip);
    inflate_output out = {};
    out.out = s.out;
    out.limit = s.out_bytes;
    bool valid = inflate_blocks(&m, s, &in, &out) && !__any_sync(GF_WARP, out.invalid);
    uint32_t adler = 0;
    if (valid && s.last) {
        in.align();
        for (int i = 0; i < 4; i++)
            adler = adler << 8 | in.take(&m, 8);
        valid = in.taken() == uint64_t{8} * s.bytes; // nothing follows
    }
    if (valid) { // store the bytes after the last whole segment
        inflate_settle(&m, &out);
        for (uint32_t i = out.at / SEGMENT * SEGMENT + threadIdx.x; i < out.at; i += 32) {
            const uint32_t byte = m.ring[i % RING];
            out.out[i] = static_cast<unsigned char>(byte);
            out.sum += byte;
            out.moment += static_cast<uint64_t>(out.base + i % SEGMENT) * byte;
        }
    }
    png_stream_end end;
    end.sum = gf_reduce_group<32>(out.sum, gf_plus());
    end.moment = gf_reduce_group<32>(out.moment, gf_plus());
    end.adler = adler;
    end.failed = valid ? 0 : 1;
    if (threadIdx.x == 0)
        ends[blockIdx.x] = end;
}

void png_queue_inflate(const png_stream *streams, png_stream_end *ends, uint32_t count,
                       gf_queue *queue) {
    gf_launch_kernel(png_inflate, count, 32, 0, queue, streams, ends);
}
