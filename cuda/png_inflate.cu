// Deflate decoder for many streams at once (RFC 1951): one warp per stream.
#include "png_decode.cuh"

#define LITERAL_BITS 10 // index of the table of literals and lengths
#define DISTANCE_BITS 9
#define MAX_BITS 15
#define RING 4096u               // bytes of output in shared memory
#define SEGMENT 512u             // bytes that a warp stores at once: 16 per lane
#define RING_REACH (RING - 258u) // greatest distance of a match in the ring
#define ADLER_BASE 65521u

static_assert(RING_REACH - 258 >= SEGMENT, "the source of a farther match is in global memory");

// Entry of the table of literals and lengths. 0: an invalid code, or one of more bits.
#define ENTRY_LITERALS(e) ((e) >> 25 & 3) // 1: bits 0 to 7; 2: also bits 8 to 15
#define ENTRY_LITERAL (1u << 25)
#define ENTRY_PAIR (2u << 25)
#define ENTRY_LENGTH (1u << 27) // bits 0 to 8: base, 9 to 11: number of extra bits
#define ENTRY_END (1u << 28)
#define ENTRY_BITS(e) ((e) >> 16 & 15)  // of the first symbol
#define ENTRY_TOTAL(e) ((e) >> 20 & 31) // of both literals

// A code: the symbols sorted by codeword, and the number of codewords of each length.
template <int SYMBOLS> struct inflate_code {
    uint16_t symbol[SYMBOLS];
    uint32_t count[MAX_BITS + 1];
};

struct inflate_memory {
    uint32_t literal[1 << LITERAL_BITS];
    uint16_t distance[1 << DISTANCE_BITS]; // symbol, and its bits from bit 8 on; also for lengths
    inflate_code<288> literals;
    inflate_code<32> distances;
    uint32_t next[MAX_BITS + 1]; // while a table is filled
    uint8_t lengths[288 + 32];
    alignas(16) unsigned char ring[RING];
};

// Input. All lanes have the same values.
struct inflate_bits {
    const uint32_t *data;
    uint32_t words;  // of data; zeros follow
    uint32_t loaded; // words in `bits` and `ahead`
    uint32_t ahead;  // the next word
    uint64_t bits;
    uint32_t count; // valid bits

    __device__ __forceinline__ uint32_t load() {
        const uint32_t word = loaded < words ? data[loaded] : 0;
        loaded++;
        return word;
    }
    // Start at a byte.
    __device__ __forceinline__ void start(uint32_t byte) {
        loaded = byte / 4;
        bits = static_cast<uint64_t>(load()) >> byte % 4 * 8;
        count = 32 - byte % 4 * 8;
        ahead = load();
        refill();
    }
    // Have more than 32 bits. Returns false after the end of the input.
    __device__ __forceinline__ bool refill() {
        if (count > 32)
            return true;
        bits |= static_cast<uint64_t>(ahead) << count;
        count += 32;
        ahead = load();
        return loaded <= words + 4;
    }
    __device__ __forceinline__ void drop(uint32_t n) {
        bits >>= n;
        count -= n;
    }
    // Return n <= 16 bits after a refill.
    __device__ __forceinline__ uint32_t take(uint32_t n) {
        const uint32_t value = static_cast<uint32_t>(bits) & ((1u << n) - 1);
        drop(n);
        return value;
    }
    // Return the number of bits taken.
    __device__ __forceinline__ uint64_t taken() const {
        return uint64_t{32} * (loaded - 1) - count;
    }
};

// Output. The last RING bytes are in shared memory; whole segments are stored in global memory.
struct inflate_output {
    unsigned char *out;
    uint32_t limit; // size of the output
    uint32_t at;
    uint32_t base; // position of the segment modulo ADLER_BASE
    uint64_t sum, moment;
    // A match whose bytes are still being loaded from global memory: a byte per lane.
    uint32_t pending; // its length; 0: none
    uint32_t pending_at;
    unsigned char pending_byte;
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
        const uint32_t rank = static_cast<uint32_t>(__popc(same & ((1u << lane) - 1)));
        if (length)
            code->symbol[m->next[length] + rank] = static_cast<uint16_t>(s);
        __syncwarp();
        if (length && rank == 0)
            m->next[length] += static_cast<uint32_t>(__popc(same));
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

GF_DEVICE uint32_t inflate_entry(uint32_t symbol, uint32_t length) {
    const uint32_t size = length << 16 | length << 20;
    if (symbol < 256)
        return symbol | size | ENTRY_LITERAL;
    if (symbol == 256)
        return size | ENTRY_END;
    if (symbol < 265)
        return (symbol - 254) | size | ENTRY_LENGTH;
    if (symbol < 285) {
        const uint32_t extra = (symbol - 261) / 4;
        return (((4 + (symbol - 265) % 4) << extra) + 3) | extra << 9 | size | ENTRY_LENGTH;
    }
    return symbol == 285 ? 258 | size | ENTRY_LENGTH : 0;
}

// Make the tables from m->lengths.
GF_DEVICE bool inflate_make_tables(inflate_memory *m, uint32_t literals, uint32_t distances,
                                   bool fixed) {
    if (!inflate_sort(m, &m->literals, m->lengths, literals, false) ||
        !inflate_sort(m, &m->distances, m->lengths + literals, distances, !fixed))
        return false;
    for (uint32_t i = threadIdx.x; i < 1u << LITERAL_BITS; i += 32)
        m->literal[i] = 0;
    for (uint32_t i = threadIdx.x; i < 1u << DISTANCE_BITS; i += 32)
        m->distance[i] = 0;
    __syncwarp();
    inflate_fill(m->literals, LITERAL_BITS, [&](uint32_t i, uint32_t symbol, uint32_t length) {
        m->literal[i] = inflate_entry(symbol, length);
    });
    inflate_fill(m->distances, DISTANCE_BITS, [&](uint32_t i, uint32_t symbol, uint32_t length) {
        m->distance[i] = static_cast<uint16_t>(symbol | length << 8);
    });
    // Join two literals if both codewords are in the index. The first symbol stays readable.
    for (uint32_t i = threadIdx.x; i < 1u << LITERAL_BITS; i += 32) {
        const uint32_t e = m->literal[i];
        const uint32_t second = m->literal[i >> ENTRY_BITS(e)];
        const uint32_t total = ENTRY_BITS(e) + ENTRY_BITS(second);
        if (ENTRY_LITERALS(e) && ENTRY_LITERALS(second) && total <= LITERAL_BITS)
            m->literal[i] =
                (e & 0xff) | (second & 0xff) << 8 | ENTRY_BITS(e) << 16 | total << 20 | ENTRY_PAIR;
    }
    __syncwarp();
    return true;
}

// Decode a symbol bit by bit. Returns UINT32_MAX for an invalid code.
template <int SYMBOLS>
GF_DEVICE uint32_t inflate_slow(inflate_bits *in, const inflate_code<SYMBOLS> &code) {
    uint32_t value = 0, first = 0, index = 0;
    for (uint32_t length = 1; length <= MAX_BITS; length++) {
        value |= static_cast<uint32_t>(in->bits >> (length - 1)) & 1;
        const uint32_t count = code.count[length];
        if (value - first < count) {
            in->drop(length);
            return code.symbol[index + value - first];
        }
        index += count;
        first = (first + count) << 1;
        value <<= 1;
    }
    return UINT32_MAX;
}

// Read the header of a dynamic block and make its tables.
GF_DEVICE bool inflate_read_header(inflate_memory *m, inflate_bits *in) {
    const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    in->refill();
    const uint32_t literals = in->take(5) + 257, distances = in->take(5) + 1;
    const uint32_t sent = in->take(4) + 4, all = literals + distances;
    if (literals > 286 || distances > 30)
        return false;
    __syncwarp();
    if (threadIdx.x < 19)
        m->lengths[threadIdx.x] = 0;
    __syncwarp();
    for (uint32_t i = 0; i < sent; i++) {
        in->refill();
        m->lengths[order[i]] = static_cast<uint8_t>(in->take(3));
    }
    __syncwarp();
    if (!inflate_sort(m, &m->distances, m->lengths, 19, false))
        return false;
    inflate_fill(m->distances, 7, [&](uint32_t i, uint32_t symbol, uint32_t length) {
        m->distance[i] = static_cast<uint16_t>(symbol | length << 8);
    });
    for (uint32_t i = 0, previous = 0; i < all;) {
        if (!in->refill())
            return false;
        const uint32_t e = m->distance[in->bits & 127], symbol = e & 255;
        in->drop(e >> 8);
        uint32_t run = 1, value = symbol;
        if (symbol == 16) {
            if (i == 0)
                return false;
            run = 3 + in->take(2);
            value = previous;
        } else if (symbol >= 17) {
            run = symbol == 17 ? 3 + in->take(3) : 11 + in->take(7);
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

// Add the bytes of a lane in a segment to the Adler-32 sums.
GF_DEVICE void inflate_add_sums(inflate_output *out, const uint4 &v) {
    const uint32_t word[4] = {v.x, v.y, v.z, v.w};
    uint32_t sum = 0, moment = 0;
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t part = __dp4a(word[i], 0x01010101u, 0u);
        sum += part;
        moment = __dp4a(word[i], 0x03020100u, moment + 4 * i * part);
    }
    out->sum += sum;
    out->moment += static_cast<uint64_t>(out->base + 16 * threadIdx.x) * sum + moment;
}

// Write the pending match to the ring.
GF_DEVICE void inflate_settle(inflate_memory *m, inflate_output *out) {
    if (threadIdx.x < out->pending)
        m->ring[(out->pending_at + threadIdx.x) % RING] = out->pending_byte;
    out->pending = 0;
    __syncwarp();
}

// Store the segment before `end`, a multiple of SEGMENT.
GF_DEVICE bool inflate_flush(inflate_memory *m, inflate_output *out, uint32_t end) {
    if (end > out->limit)
        return false;
    inflate_settle(m, out);
    const uint32_t at = end - SEGMENT + 16 * threadIdx.x;
    const uint4 v = *reinterpret_cast<const uint4 *>(m->ring + at % RING);
    *reinterpret_cast<uint4 *>(out->out + at) = v;
    inflate_add_sums(out, v);
    out->base += SEGMENT;
    out->base -= out->base >= ADLER_BASE ? ADLER_BASE : 0;
    return true;
}

// Store the bytes after the last whole segment.
GF_DEVICE void inflate_flush_rest(inflate_memory *m, inflate_output *out) {
    inflate_settle(m, out);
    for (uint32_t i = out->at / SEGMENT * SEGMENT + threadIdx.x; i < out->at; i += 32) {
        const uint32_t byte = m->ring[i % RING];
        out->out[i] = static_cast<unsigned char>(byte);
        out->sum += byte;
        out->moment += static_cast<uint64_t>(out->base + i % SEGMENT) * byte;
    }
}

// Advance by `step` < SEGMENT bytes that were written to the ring.
GF_DEVICE bool inflate_advance(inflate_memory *m, inflate_output *out, uint32_t step) {
    out->at += step;
    return out->at % SEGMENT >= step || inflate_flush(m, out, out->at / SEGMENT * SEGMENT);
}

// Append a match. The bytes of a far and short one are awaited only when they are needed: the load
// takes as long as several symbols.
GF_DEVICE bool inflate_copy(inflate_memory *m, inflate_output *out, uint32_t length,
                            uint32_t distance) {
    if (distance > out->at)
        return false;
    const uint32_t from = out->at - distance;
    inflate_settle(m, out); // also orders the bytes that other lanes have written
    if (distance > RING_REACH && length <= 32) {
        if (threadIdx.x < length)
            out->pending_byte = out->out[from + threadIdx.x];
        out->pending = length;
        out->pending_at = out->at;
        return inflate_advance(m, out, length);
    }
    for (uint32_t k = threadIdx.x; k < length; k += 32) {
        const uint32_t q = from + (distance < length ? k % distance : k);
        const unsigned char byte = distance <= RING_REACH ? m->ring[q % RING] : out->out[q];
        m->ring[(out->at + k) % RING] = byte;
    }
    return inflate_advance(m, out, length);
}

// ---- blocks -------------------------------------------------------------------------------------

// Copy a stored block.
GF_DEVICE bool inflate_stored(inflate_memory *m, inflate_bits *in, inflate_output *out,
                              uint32_t bytes) {
    in->drop(in->count % 8);
    in->refill();
    const uint32_t size = in->take(16), complement = in->take(16);
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
    in->start(static_cast<uint32_t>(at) + size);
    return true;
}

// Decode up to three entries of literals, without a branch for each: `first` and two more. Only the
// bytes before the new out->at count; the bytes after it are overwritten.
GF_DEVICE bool inflate_literals(inflate_memory *m, inflate_bits *in, inflate_output *out,
                                uint32_t first) {
    static_assert(3 * LITERAL_BITS <= 32, "three entries are decoded between two refills");
    const uint32_t mask = (1u << LITERAL_BITS) - 1, at = out->at;
    const uint32_t bits = static_cast<uint32_t>(in->bits >> ENTRY_TOTAL(first));
    const uint32_t second = m->literal[bits & mask];
    const uint32_t third = m->literal[bits >> ENTRY_TOTAL(second) & mask];
    const bool two = ENTRY_LITERALS(second) != 0, three = two && ENTRY_LITERALS(third) != 0;
    const uint32_t second_at = at + ENTRY_LITERALS(first);
    const uint32_t third_at = second_at + (two ? ENTRY_LITERALS(second) : 0);
    if (threadIdx.x == 0) { // one lane: the order of the writes matters
        m->ring[at % RING] = static_cast<unsigned char>(first);
        m->ring[(at + 1) % RING] = static_cast<unsigned char>(first >> 8);
        m->ring[second_at % RING] = static_cast<unsigned char>(second);
        m->ring[(second_at + 1) % RING] = static_cast<unsigned char>(second >> 8);
        m->ring[third_at % RING] = static_cast<unsigned char>(third);
        m->ring[(third_at + 1) % RING] = static_cast<unsigned char>(third >> 8);
    }
    in->drop(ENTRY_TOTAL(first) + (two ? ENTRY_TOTAL(second) : 0) +
             (three ? ENTRY_TOTAL(third) : 0));
    return inflate_advance(m, out, third_at - at + (three ? ENTRY_LITERALS(third) : 0));
}

// Decode the symbols of a block.
GF_DEVICE bool inflate_symbols(inflate_memory *m, inflate_bits *in, inflate_output *out) {
    for (;;) {
        if (!in->refill())
            return false;
        uint32_t e = m->literal[in->bits & ((1u << LITERAL_BITS) - 1)];
        if (ENTRY_LITERALS(e)) {
            if (!inflate_literals(m, in, out, e))
                return false;
            continue;
        }
        if (e) {
            in->drop(ENTRY_BITS(e));
        } else {
            const uint32_t symbol = inflate_slow(in, m->literals);
            if (symbol > 285)
                return false;
            e = inflate_entry(symbol, 0);
            if (ENTRY_LITERALS(e)) {
                m->ring[out->at % RING] = static_cast<unsigned char>(e);
                if (!inflate_advance(m, out, 1))
                    return false;
                continue;
            }
        }
        if (e & ENTRY_END)
            return true;
        // At most 15 bits of a code have been taken from more than 32: 5 extra bits are left.
        const uint32_t length = (e & 511) + in->take(e >> 9 & 7);
        if (!in->refill())
            return false;
        const uint32_t d = m->distance[in->bits & ((1u << DISTANCE_BITS) - 1)];
        uint32_t symbol = d & 255;
        if (d)
            in->drop(d >> 8);
        else
            symbol = inflate_slow(in, m->distances);
        if (symbol > 29)
            return false;
        const uint32_t extra = symbol < 4 ? 0 : symbol / 2 - 1;
        const uint32_t base = symbol < 4 ? symbol : (2 + symbol % 2) << extra;
        if (!inflate_copy(m, out, length, base + in->take(extra) + 1))
            return false;
    }
}

// Decode all blocks of a stream. Returns whether it is valid, with output of the expected size.
GF_DEVICE bool inflate_blocks(inflate_memory *m, const png_stream &s, inflate_bits *in,
                              inflate_output *out) {
    for (bool final = false; !final;) {
        if (!s.last && out->at == s.out_bytes && in->taken() == uint64_t{8} * s.bytes)
            return true;
        if (!in->refill())
            return false;
        final = in->take(1);
        const uint32_t type = in->take(2);
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
// Grid: streams. Block: one warp. All lanes decode the same symbols; they share the work of filling
// tables, of copying matches and of storing segments of the output. Shared memory: 10 KiB.
__global__ void __launch_bounds__(32) png_inflate(const png_stream *streams, png_stream_end *ends) {
    __shared__ inflate_memory m;
    gf_wait_for_stream();
    const png_stream s = streams[blockIdx.x];
    inflate_bits in = {};
    in.data = s.data;
    in.words = (s.bytes + 3) / 4;
    in.start(s.skip);
    inflate_output out = {};
    out.out = s.out;
    out.limit = s.out_bytes;
    bool valid = inflate_blocks(&m, s, &in, &out) && out.at <= s.out_bytes;
    uint32_t adler = 0;
    if (valid && s.last) {
        in.drop(in.count % 8);
        in.refill();
        for (int i = 0; i < 4; i++)
            adler = adler << 8 | in.take(8);
        valid = in.taken() == uint64_t{8} * s.bytes; // nothing follows
    }
    if (valid)
        inflate_flush_rest(&m, &out);
    png_stream_end end;
    end.sum = gf_reduce_group<32>(out.sum, gf_plus());
    end.moment = gf_reduce_group<32>(out.moment, gf_plus());
    end.adler = adler;
    end.failed = valid ? 0 : 1;
    if (threadIdx.x == 0)
        ends[blockIdx.x] = end;
}

void png_queue_inflate(const png_stream *streams, png_stream_end *ends, uint32_t count,
                       cudaStream_t stream) {
    gf_launch_kernel(png_inflate, count, 32, 0, stream, streams, ends);
}
