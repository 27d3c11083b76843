/* Statistics from a sixteenth of a strip, and the decisions made from them. CPU and GPU use the
 * same functions, in integers, and therefore write the same files. */
#ifndef GF_PNG_PROBE_H
#define GF_PNG_PROBE_H

#include "io/flate/code.h"
#include "io/strip/row_filter.h"

/* The probed bytes are in pieces spread over the strip. */
enum {
    GF_PNG_PIECE = 1024,      /* maximum bytes per piece */
    GF_PNG_PROBE_SHARE = 16,  /* bytes per probed byte */
    GF_PNG_PROBE_STRIDE = 20, /* bytes between compared words: not a power of 2, unlike the period
                                 of many patterns */
    GF_PNG_PROBE_LEFT = 8     /* pixels to the left with which a word is compared */
};

typedef struct gf_png_piece {
    uint64_t y; /* row of the strip */
    size_t at;  /* first byte in the row */
    size_t size;
} gf_png_piece;

/* Find piece k. Positions move by one piece whenever they would repeat the same columns, and row
 * steps are uneven. Margins and patterns are therefore weighted by their area. The pieces of a
 * strip of `count` rows are those before the first one with y >= count. */
GF_BOTH gf_png_piece gf_png_piece_at(size_t row_bytes, uint64_t k) {
    const size_t max = GF_PNG_PIECE, share = GF_PNG_PROBE_SHARE;
    const uint64_t pieces = (row_bytes + max - 1) / max;
    const uint64_t step = pieces < share ? share / pieces : 1;
    const uint64_t shared = pieces % share ? pieces & (~pieces + 1) : share;
    gf_png_piece piece;
    piece.y = k * share / pieces + k % step;
    piece.at = (size_t)((k * share + k * shared / pieces) % pieces) * max;
    piece.size = row_bytes - piece.at < max ? row_bytes - piece.at : max;
    return piece;
}

/* Return 256 * log2(x), x > 0: an approximation, equal on all platforms. */
GF_BOTH uint64_t gf_png_log2(uint32_t x) {
    const unsigned whole = gf_log2_floor(x);
    const uint64_t part = whole > 8 ? (x >> (whole - 8)) & 255 : (x << (8 - whole)) & 255;
    /* log2(1 + t) is approximately t + 0.34 t (1 - t). */
    return 256 * whole + part + (part * (256 - part) * 87 >> 16);
}

/* Return the share of n equal residuals in the entropy. n may be 0. */
GF_BOTH uint64_t gf_png_entropy_term(uint32_t n) {
    return n ? n * gf_png_log2(n) : 0;
}

/* Return the entropy of n residuals in bytes, from the sum of the terms of all values. */
GF_BOTH uint64_t gf_png_entropy(uint64_t n, uint64_t sum) {
    return (gf_png_entropy_term((uint32_t)n) - sum) / (8 * 256);
}

typedef struct gf_png_probe {
    uint64_t total;                /* bytes examined */
    uint64_t cost[GF_PNG_FILTERS]; /* entropy of the residuals, in bytes */
    uint64_t flat;     /* bytes of words equal to the one above and the one to the left */
    uint64_t repeated; /* bytes of other words equal to one above or to the left */
} gf_png_probe;

/* Return the cheapest filter type. Later types are slower to undo: they must cost 2 % less. */
GF_BOTH gf_png_filter gf_png_best_filter(const gf_png_probe *probe) {
    unsigned best = GF_PNG_NONE;
    for (unsigned f = 1; f < GF_PNG_FILTERS; f++)
        if (probe->cost[f] + probe->cost[f] / 50 < probe->cost[best])
            best = f;
    return (gf_png_filter)best;
}

/* Return whether matches may pay: flat areas or patterns. */
GF_BOTH bool gf_png_has_repeats(const gf_png_probe *probe) {
    return probe->flat + probe->repeated > probe->total / 4;
}

/* Return whether almost everything outside of flat areas repeats, as in dithering. */
GF_BOTH bool gf_png_has_patterns(const gf_png_probe *probe) {
    return probe->repeated * 8 > (probe->total - probe->flat) * 7 &&
           probe->repeated > probe->total / 16;
}

/* Return whether matches would not pay in a block of n bytes that takes `bits` bits with runs. Its
 * literals take under 3.5 bits each: it is noise, for which matches cost more than they save, or a
 * pattern. Or it takes under 1/16 bit per byte: it is almost flat. */
GF_BOTH bool gf_block_is_cheap(uint64_t bits, uint64_t literals, uint64_t n) {
    return bits * 2 < literals * 7 || bits * 16 < n;
}

#endif
