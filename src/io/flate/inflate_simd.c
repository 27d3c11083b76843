/* Deflate decoding loops, compiled once per SIMD level. They are limited by the latency from one
 * table entry to the next and by mispredicted branches: an entry holds up to three literals or two
 * and a match length, and the next entry is loaded before a match is copied. Two streams decoded
 * alternately hide the latency of each other. */
#include <string.h>

#include "core/vec.h"
#include "io/bytes.h"
#include "io/flate/inflate.h"

/* ---- tables ---------------------------------------------------------------------------------- */

/* No branches or aliases: compilers vectorise it with gathers. max: 2 or 3 symbols per entry. */
GF_INLINE void inflate_pack_up_to(uint32_t max, const uint32_t *restrict single,
                                  uint32_t *restrict packed, uint32_t table_bits) {
    for (uint32_t i = 0; i < 1u << table_bits; i++) {
        const uint32_t a = single[i], bits_a = a & GF_ENTRY_BITS;
        const uint32_t b = single[i >> bits_a], bits_b = bits_a + (b & GF_ENTRY_BITS);
        const uint32_t c = single[i >> (bits_b & 31)], bits_c = bits_b + (c & GF_ENTRY_BITS);
        const uint32_t match_b = (b & GF_ENTRY_MATCH) != 0, match_c = (c & GF_ENTRY_MATCH) != 0;
        const uint32_t literal_ab = (a & b & GF_ENTRY_LITERAL) != 0;
        const uint32_t literal_match = ((a & GF_ENTRY_LITERAL) != 0) & match_b;
        const uint32_t two = (literal_ab | literal_match) & (bits_b <= table_bits);
        const uint32_t three =
            literal_ab & ((c & (GF_ENTRY_LITERAL | GF_ENTRY_MATCH)) != 0) & (bits_c <= table_bits);
        /* Literals move up by one byte per literal before them; a length stays in byte 3. */
        const uint32_t add_b =
            match_b ? (b & 0xff000000) | GF_ENTRY_MATCH : (b & 0xff00) << 8 | GF_ENTRY_LITERAL;
        const uint32_t add_c =
            match_c ? (c & 0xff000000) | GF_ENTRY_MATCH : (c & 0xff00) << 16 | GF_ENTRY_LITERAL;
        const uint32_t pair = (a & 0xff00) + GF_ENTRY_LITERAL + add_b;
        packed[i] = max == 3 && three ? pair + add_c + bits_c : two ? pair + bits_b : a;
    }
}

static void inflate_pack(gf_inflate *inflate) {
    const uint32_t other = GF_ENTRY_LITERALS | GF_ENTRY_MATCH | GF_ENTRY_SUBTABLE | GF_ENTRY_STOP;
    const uint32_t table_bits = GF_INFLATE_LITERAL_BITS, size = 1u << table_bits;
    const uint32_t *literals = inflate->literals;
    uint32_t expanded[1 << GF_INFLATE_LITERAL_BITS], *packed = inflate->packed_literals;
    uint32_t min = table_bits; /* of the bits of an entry */
    /* Replace each length whose extra bits are part of its index by an entry with the length. */
    for (uint32_t i = 0; i < size; i++) {
        const uint32_t entry = literals[i], bits = entry & GF_ENTRY_BITS;
        const uint32_t codeword = entry >> 8 & 15;
        const uint32_t extra = (i & ((1u << bits) - 1)) >> codeword;
        const uint32_t match = ((entry >> 16) + extra - 3) << 24 | GF_ENTRY_MATCH | bits;
        const uint32_t is_length = ((entry & other) == 0) & (bits <= table_bits);
        expanded[i] = is_length ? match : entry;
        min = bits < min ? bits : min;
    }
    if (3 * min <= table_bits)
        inflate_pack_up_to(3, expanded, packed, table_bits);
    else
        inflate_pack_up_to(2, expanded, packed, table_bits);
    memcpy(packed + size, literals + size, (inflate->literal_entries - size) * sizeof *packed);
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* A stream whose block is being decoded. Each step starts with 56 bits and an entry. It consumes 10
 * bits for the entry and 28 for a distance: the next entry can be loaded before the refill. Other
 * lengths are followed by a refill. */
typedef struct decode_stream {
    const uint32_t *literals, *distances;
    const unsigned char *in, *in_end;
    unsigned char *out;
    uintptr_t out_end, history; /* addresses */
    uint64_t bits;
    uint32_t count, entry;
    gf_inflate_result result;
} decode_stream;

/* Refill to at least 56 bits. Bits above `count` are part of the next byte and are loaded again. */
GF_INLINE void decode_refill(decode_stream *s) {
    s->bits |= gf_little64(s->in) << s->count;
    s->in += (63 - s->count) >> 3;
    s->count |= 56;
}

GF_INLINE void decode_consume(decode_stream *s, uint32_t entry) {
    s->bits >>= entry & GF_ENTRY_BITS;
    s->count -= entry & GF_ENTRY_BITS;
}

GF_INLINE uint32_t decode_next(const decode_stream *s) {
    return s->literals[s->bits & ((1 << GF_INFLATE_LITERAL_BITS) - 1)];
}

/* Write the literals of an entry, and undefined elements after them. Return the new position. */
GF_INLINE unsigned char *decode_put(unsigned char *out, uint32_t entry, bool wide) {
    const uint32_t v = entry >> 8;
    if (wide) {
        const uint64_t elements =
            (v & 0xff) | (uint64_t)(v & 0xff00) << 8 | (uint64_t)(v >> 16) << 32;
        gf_put_little64(out, elements);
    } else {
        gf_put_little32(out, v);
    }
    return out + ((entry >> 5 & 3) << wide);
}

/* Return base + extra bits of an entry whose bits begin at `bits`. */
GF_INLINE size_t decode_value(uint32_t entry, uint64_t bits) {
    const uint64_t mask = ((uint64_t)1 << (entry & GF_ENTRY_BITS)) - 1;
    return (entry >> 16) + (size_t)((bits & mask) >> (entry >> 8 & 15));
}

GF_INLINE uint32_t decode_subtable(const uint32_t *table, uint32_t entry, uint64_t bits) {
    return table[(entry >> 16) + (bits & ((1u << (entry >> 8 & 15)) - 1))];
}

/* Copy up to out_end, and up to 15 bytes after it. */
GF_INLINE void decode_copy(unsigned char *out, unsigned char *out_end, size_t back) {
    const unsigned char *from = out - back;
    if (__builtin_expect(back >= 16, 1)) {
        do {
            memcpy(out, from, 16);
            out += 16;
            from += 16;
        } while (__builtin_expect(out < out_end, 0));
        return;
    }
    /* The output repeats with period `back`: double the distance until 8 bytes do not overlap. */
    for (; back < 8; out += back, back *= 2)
        memmove(out, from, 8);
    for (; out < out_end; out += 8, from += 8)
        memcpy(out, from, 8);
}

GF_INLINE decode_stream decode_load(const gf_inflate *inflate, const uint32_t *literals,
                                    const gf_inflate_out *to, bool wide) {
    decode_stream s = {.literals = literals,
                       .distances = inflate->distances,
                       .in = inflate->in,
                       .in_end = inflate->in_end - GF_INFLATE_LOOKAHEAD,
                       .out = to->next,
                       .out_end = (uintptr_t)to->end - ((size_t)GF_INFLATE_RESERVE << wide),
                       .history = (uintptr_t)to->history,
                       .bits = inflate->bits,
                       .count = inflate->count,
                       .result = GF_INFLATE_NEEDS_INPUT};
    decode_refill(&s);
    s.entry = decode_next(&s);
    return s;
}

GF_INLINE gf_inflate_result decode_store(const decode_stream *s, gf_inflate *inflate,
                                         gf_inflate_out *to) {
    inflate->in = s->in;
    inflate->bits = s->bits;
    inflate->count = s->count;
    to->next = s->out;
    return s->result;
}

/* Decode an entry and load the next one. Return false at the end of the block or the output. */
GF_INLINE bool decode_step(decode_stream *s, bool wide) {
    const uint64_t distance_mask = (1 << GF_INFLATE_DISTANCE_BITS) - 1;
    const uint64_t before = s->bits;
    uint32_t entry = s->entry;
    size_t length;
    if ((uintptr_t)s->out > s->out_end) {
        s->result = GF_INFLATE_NEEDS_OUTPUT;
        return false;
    }
    s->out = decode_put(s->out, entry, wide);
    decode_consume(s, entry);
    if (entry & GF_ENTRY_MATCH) {
        length = (entry >> 24) + 3;
    } else if (entry & GF_ENTRY_LITERALS) {
        s->entry = decode_next(s);
        decode_refill(s);
        return true;
    } else {
        uint64_t codeword = before;
        if (entry & GF_ENTRY_SUBTABLE) {
            codeword = s->bits;
            entry = decode_subtable(s->literals, entry, s->bits);
            s->out = decode_put(s->out, entry, wide);
            decode_consume(s, entry);
            if (entry & GF_ENTRY_LITERALS) {
                decode_refill(s);
                s->entry = decode_next(s);
                return true;
            }
        }
        if (entry & GF_ENTRY_STOP) {
            s->result = entry >> 16 ? GF_INFLATE_INVALID_CODE : GF_INFLATE_VALID;
            return false;
        }
        length = decode_value(entry, codeword);
        decode_refill(s);
    }
    uint32_t distance = s->distances[s->bits & distance_mask];
    if (distance & (GF_ENTRY_SUBTABLE | GF_ENTRY_STOP)) {
        if (distance & GF_ENTRY_SUBTABLE) {
            decode_consume(s, distance);
            distance = decode_subtable(s->distances, distance, s->bits);
        }
        if (distance & GF_ENTRY_STOP) {
            s->result = GF_INFLATE_INVALID_CODE;
            return false;
        }
    }
    const size_t back = decode_value(distance, s->bits) << wide;
    decode_consume(s, distance);
    if ((uintptr_t)s->out - back < s->history) {
        s->result = GF_INFLATE_INVALID_DISTANCE;
        return false;
    }
    unsigned char *const match_end = s->out + (length << wide);
    s->entry = decode_next(s);
    decode_refill(s);
    decode_copy(s->out, match_end, back);
    s->out = match_end;
    return true;
}

GF_INLINE gf_inflate_result decode(gf_inflate *inflate, const uint32_t *literals,
                                   gf_inflate_out *to, bool wide) {
    decode_stream s = decode_load(inflate, literals, to, wide);
    while (s.in < s.in_end && decode_step(&s, wide)) {
    }
    return decode_store(&s, inflate, to);
}

static gf_inflate_result decode_wide(gf_inflate *inflate, const uint32_t *literals,
                                     gf_inflate_out *out) {
    return decode(inflate, literals, out, true);
}

static gf_inflate_result decode_bytes(gf_inflate *inflate, const uint32_t *literals,
                                      gf_inflate_out *out) {
    return decode(inflate, literals, out, false);
}

/* Return the number of steps that neither input nor output limits. */
GF_INLINE size_t decode_free_steps(const decode_stream *s) {
    enum { STEP_IN = 8, STEP_OUT = 3 + 258 }; /* maximum bytes of a step */
    const uintptr_t at = (uintptr_t)s->out;
    if (s->in >= s->in_end || at > s->out_end)
        return 0;
    const size_t in = (size_t)(s->in_end - s->in) / STEP_IN, out = (s->out_end - at) / STEP_OUT;
    return in < out ? in : out;
}

/* Decode `steps` entries of each stream alternately. Return false if one of them stops. Limits that
 * are known not to be reached are replaced by constants: the compiler then omits the checks, which
 * take 10 % of the time. */
GF_INLINE bool decode_pair_steps(decode_stream *a, decode_stream *b, size_t steps, bool within,
                                 bool full_window) {
    const decode_stream before[2] = {*a, *b};
    if (within)
        a->out_end = b->out_end = UINTPTR_MAX;
    if (full_window)
        a->history = b->history = 0;
    while (steps != 0 && decode_step(a, false) && decode_step(b, false))
        steps--;
    a->out_end = before[0].out_end;
    b->out_end = before[1].out_end;
    a->history = before[0].history;
    b->history = before[1].history;
    return steps == 0;
}

static void decode_pair(gf_inflate *const inflate[2], gf_inflate_out *const out[2],
                        gf_inflate_result results[2]) {
    enum { FEW_STEPS = 8 };
    decode_stream a = decode_load(inflate[0], inflate[0]->packed_literals, out[0], false);
    decode_stream b = decode_load(inflate[1], inflate[1]->packed_literals, out[1], false);
    bool running = true;
    while (running && a.in < a.in_end && b.in < b.in_end) {
        const size_t free_a = decode_free_steps(&a), free_b = decode_free_steps(&b);
        const size_t steps = free_a < free_b ? free_a : free_b;
        const bool full_window = (uintptr_t)a.out - a.history >= GF_DEFLATE_WINDOW &&
                                 (uintptr_t)b.out - b.history >= GF_DEFLATE_WINDOW;
        if (steps < FEW_STEPS)
            running = decode_pair_steps(&a, &b, 1, false, false);
        else if (full_window)
            running = decode_pair_steps(&a, &b, steps, true, true);
        else
            running = decode_pair_steps(&a, &b, steps, true, false);
    }
    results[0] = decode_store(&a, inflate[0], out[0]);
    results[1] = decode_store(&b, inflate[1], out[1]);
}

/* ---- placeholders ---------------------------------------------------------------------------- */

static void inflate_resolve(unsigned char *to, const unsigned char *elements, size_t count,
                            const unsigned char *table) {
    enum { GROUP = 32 };
    typedef uint16_t group_elements __attribute__((vector_size(2 * GROUP)));
    typedef uint8_t group_bytes __attribute__((vector_size(GROUP)));
    size_t i = 0;
    for (; i + GROUP <= count; i += GROUP) {
        uint64_t all = 0;
        for (size_t k = 0; k < GROUP; k += 4)
            all |= gf_little64(elements + 2 * (i + k));
        if (gf_host_is_little() && (all & UINT64_C(0xff00ff00ff00ff00)) == 0) {
            group_elements group;
            memcpy(&group, elements + 2 * i, sizeof group);
            const group_bytes bytes = __builtin_convertvector(group, group_bytes);
            memcpy(to + i, &bytes, sizeof bytes);
        } else {
            for (size_t k = i; k < i + GROUP; k += 8) {
                uint64_t eight = 0;
                for (size_t b = 0; b < 8; b++)
                    eight |= (uint64_t)table[gf_little16(elements + 2 * (k + b))] << 8 * b;
                gf_put_little64(to + k, eight);
            }
        }
    }
    for (; i < count; i++)
        to[i] = table[gf_little16(elements + 2 * i)];
}

const gf_inflate_simd GF_SIMD_NAME(gf_inflate_simd) = {inflate_pack, decode_bytes, decode_wide,
                                                       decode_pair, inflate_resolve};
