/* Extraction on the CPU. The samples of one bin are those from one value to another: they are taken
 * in one pass, into the far end of the payload, because how many positions come before the values
 * is known only in the end. Samples of several bins are counted first, and then placed. */
#include "hist/hist_extract.h"

#include <math.h>
#include <string.h>

#include "hist/hist_count.h"

void gf_hist_ranks(const gf_hist_plan *plan, uint8_t *ranks) {
    memset(ranks, GF_HIST_NO_RANK, plan->counters);
    if (plan->extract_all)
        memset(ranks, 0, plan->bins);
    for (uint32_t i = 0; i < plan->extracts && !plan->extract_all; i++)
        ranks[plan->listed[i]] = (uint8_t)i;
}

/* From the bin's edge to the value below the next one; false where the bin holds no value. */
static bool choose_range(gf_hist_extractor *extractor) {
    const gf_hist_plan *plan = extractor->plan;
    const uint32_t bin = plan->listed[0];
    uint8_t *u8 = extractor->range.u8;
    uint16_t *u16 = extractor->range.u16;
    float *f32 = extractor->range.f32;
    const bool u8s = plan->head.in.type == GF_U8, u16s = plan->head.in.type == GF_U16;
    void *lo = f32, *hi = f32 + 1;
    if (plan->head.in.type != GF_F32) {
        lo = u8s ? (void *)u8 : (void *)u16;
        hi = u8s ? (void *)(u8 + 1) : (void *)(u16 + 1);
    }
    if (!gf_hist_edge(plan, extractor->simd, bin, lo))
        return false;
    const bool last = !gf_hist_edge(plan, extractor->simd, bin + 1, hi);
    if (u8s) {
        const bool any = last || u8[1] > u8[0];
        u8[1] = (uint8_t)(last ? 255 : u8[1] - 1);
        return any;
    }
    if (u16s) {
        const bool any = last || u16[1] > u16[0];
        u16[1] = (uint16_t)(last ? 65535 : u16[1] - 1);
        return any;
    }
    f32[1] = last ? INFINITY : nextafterf(f32[1], -INFINITY);
    return true; /* a range that ends before it begins takes nothing */
}

gf_hist_extractor gf_hist_extractor_new(const gf_hist_plan *plan, const gf_hist_simd *simd,
                                        const uint8_t *ranks, void *payload, uint64_t most) {
    gf_hist_extractor extractor = {.plan = plan, .simd = simd, .ranks = ranks, .offsets = payload};
    extractor.positions = extractor.offsets + plan->extracts + 1;
    memset(payload, 0, gf_hist_head_bytes(plan));
    if (gf_hist_extracts_at_once(plan)) {
        extractor.values = (unsigned char *)(extractor.positions + most);
        extractor.none = !choose_range(&extractor);
    }
    return extractor;
}

void gf_hist_extractor_take(gf_hist_extractor *extractor, const gf_hist_piece *piece) {
    const gf_type type = extractor->plan->head.in.type;
    if (!extractor->none)
        extractor->taken += extractor->simd->select[type](
            piece->values, piece->samples, &extractor->range, piece->position,
            extractor->positions + extractor->taken,
            extractor->values + extractor->taken * gf_type_bytes(type));
}

/* ---- several bins ---------------------------------------------------------------------------- */

/* offsets[i] counts bin i - 1, and afterwards is where bin i goes on. */
void gf_hist_extractor_count(gf_hist_extractor *extractor, const uint64_t *counts) {
    const gf_hist_plan *plan = extractor->plan;
    for (uint32_t s = 0; s < plan->measured; s++, counts += plan->counters)
        for (uint32_t i = 0; i < plan->extracts; i++)
            extractor->offsets[i + 1] += counts[plan->extract_all ? i : plan->listed[i]];
}

void gf_hist_extractor_counted(gf_hist_extractor *extractor) {
    const gf_hist_plan *plan = extractor->plan;
    for (uint32_t i = 0; i < plan->extracts; i++)
        extractor->offsets[i + 1] += extractor->offsets[i];
    extractor->values =
        (unsigned char *)(extractor->positions + extractor->offsets[plan->extracts]);
}

/* Which samples are extracted, without a branch to guess; returns how many. */
static size_t find(const uint8_t *ranks, const gf_hist_piece *piece, uint32_t *found) {
    size_t n = 0;
    for (uint32_t i = 0; i < piece->samples; i++) {
        found[n] = i;
        n += ranks[piece->bins[i]] != GF_HIST_NO_RANK;
    }
    return n;
}

#define PLACE(NAME, TYPE)                                                                          \
    static void NAME(const gf_hist_extractor *extractor, const gf_hist_piece *piece,               \
                     const uint32_t *found, size_t n) {                                            \
        const bool all = extractor->plan->extract_all;                                             \
        const uint8_t *ranks = extractor->ranks;                                                   \
        const TYPE *from = piece->values;                                                          \
        TYPE *to = (TYPE *)(void *)extractor->values;                                              \
        uint64_t *offsets = extractor->offsets, *positions = extractor->positions;                 \
        for (size_t k = 0; k < n; k++) {                                                           \
            const uint32_t i = found[k], bin = piece->bins[i];                                     \
            const uint64_t place = offsets[all ? bin : ranks[bin]]++;                              \
            positions[place] = piece->position + i;                                                \
            to[place] = from[i];                                                                   \
        }                                                                                          \
    }

/* NOLINTBEGIN(clang-analyzer-core.uninitialized.Assign): find() has written n of them */
PLACE(place_u8, uint8_t)
PLACE(place_u16, uint16_t)
PLACE(place_u32, uint32_t)
/* NOLINTEND(clang-analyzer-core.uninitialized.Assign) */

void gf_hist_extractor_place(gf_hist_extractor *extractor, const gf_hist_piece *piece) {
    uint32_t found[GF_HIST_PIECE_BINS];
    const size_t n = find(extractor->ranks, piece, found);
    switch (extractor->plan->head.in.type) {
    case GF_U8:
        place_u8(extractor, piece, found, n);
        break;
    case GF_U16:
        place_u16(extractor, piece, found, n);
        break;
    default:
        place_u32(extractor, piece, found, n); /* bits are bits */
        break;
    }
}

void gf_hist_extractor_end(gf_hist_extractor *extractor) {
    const gf_hist_plan *plan = extractor->plan;
    uint64_t *offsets = extractor->offsets;
    if (gf_hist_extracts_at_once(plan)) {
        offsets[1] = extractor->taken;
        memmove(extractor->positions + extractor->taken, extractor->values,
                extractor->taken * gf_type_bytes(plan->head.in.type));
        return;
    }
    /* Every bin has moved on to where the next one begins. */
    memmove(offsets + 1, offsets, gf_hist_head_bytes(plan) - sizeof *offsets);
    offsets[0] = 0;
}

/* ---- mask ------------------------------------------------------------------------------------ */

/* Is any of a pixel's samples in an extracted bin? 1 or 0 for each pixel. */
static void find_pixels(const uint8_t *ranks, const gf_hist_piece *piece, uint32_t measured,
                        uint8_t *drawn) {
    const uint32_t *bins = piece->bins;
    for (size_t i = 0; i < piece->samples; i += measured) {
        uint32_t any = 0;
        for (uint32_t s = 0; s < measured; s++)
            any |= ranks[bins[i + s]] != GF_HIST_NO_RANK;
        *drawn++ = (uint8_t)any;
    }
}

/* All of a pixel or nothing, again without a branch; alpha, if it is new, is all ones or nothing.
 */
#define DRAW(NAME, TYPE)                                                                           \
    static inline __attribute__((always_inline)) void NAME##_n(                                    \
        const TYPE *from, TYPE *to, const uint8_t *drawn, size_t n, uint32_t in, uint32_t out) {   \
        for (size_t i = 0; i < n; i++, from += in, to += out) {                                    \
            const TYPE bits = (TYPE)(0 - (TYPE)drawn[i]);                                          \
            for (uint32_t c = 0; c < out; c++)                                                     \
                to[c] = c < in ? from[c] & bits : bits;                                            \
        }                                                                                          \
    }                                                                                              \
    static void NAME(const TYPE *from, TYPE *to, const uint8_t *drawn, size_t n, uint32_t in,      \
                     uint32_t out) {                                                               \
        if (in == 3 && out == 4)                                                                   \
            NAME##_n(from, to, drawn, n, 3, 4);                                                    \
        else if (in == 4)                                                                          \
            NAME##_n(from, to, drawn, n, 4, 4);                                                    \
        else if (in == 1 && out == 2)                                                              \
            NAME##_n(from, to, drawn, n, 1, 2);                                                    \
        else                                                                                       \
            NAME##_n(from, to, drawn, n, in, out);                                                 \
    }

DRAW(draw_u8, uint8_t)
DRAW(draw_u16, uint16_t)
DRAW(draw_u32, uint32_t)

void gf_hist_mask(const gf_hist_plan *plan, const uint8_t *ranks, const gf_hist_piece *piece,
                  const void *from, void *to) {
    const uint32_t in = plan->head.in.channels, out = plan->head.out.channels;
    const size_t n = piece->samples / plan->measured;
    uint8_t drawn[GF_HIST_PIECE_BINS];
    find_pixels(ranks, piece, plan->measured, drawn);
    switch (plan->head.in.type) {
    case GF_U8:
        draw_u8(from, to, drawn, n, in, out);
        break;
    case GF_U16:
        draw_u16(from, to, drawn, n, in, out);
        break;
    default:
        draw_u32(from, to, drawn, n, in, out); /* bits are bits */
        break;
    }
}
