/* Encoding of one strip of a PNG or TIFF: statistics, choice of filters, filtering, and
 * compression. */
#define ZLIB_CONST /* const next_in */

#include "io/strip/strip.h"
#include "core/checksum.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* The efforts with zlib use strips of an eighth of the image, within limits: larger strips compress
 * better and take longer. */
enum { MAX_STRIP_BYTES = 1 << 21, PARTS = 8 };

static void strips_init(const gf_format *format, size_t filtered, uint64_t rows, gf_isa isa,
                        gf_png_strips *strips) {
    const size_t row = gf_row_bytes(format);
    *strips = (gf_png_strips){.isa = isa,
                              .filtered_bytes = filtered,
                              .row_bytes = row,
                              .row_stride = (row + 2 * (size_t)GF_PNG_PAD - 1) & ~(size_t)63,
                              .bpp = format->channels * gf_type_bytes(format->type),
                              .sample = gf_type_bytes(format->type),
                              .rows = gf_min(rows ? rows : 1, format->height)};
}

void gf_png_strips_init(const gf_format *format, gf_png_effort effort, gf_isa isa,
                        gf_png_strips *strips) {
    const size_t filtered = gf_row_bytes(format) + 1;
    uint64_t bytes = GF_PNG_STRIP_BYTES;
    if (gf_png_tries_zlib(effort))
        while (bytes < MAX_STRIP_BYTES && bytes * PARTS < filtered * format->height)
            bytes *= 2;
    strips_init(format, filtered, bytes / filtered, isa, strips);
    strips->effort = effort;
    if (gf_png_tries_zlib(effort))
        strips->context = (GF_DEFLATE_WINDOW + filtered - 1) / filtered;
}

void gf_tiff_strips_init(const gf_format *format, gf_isa isa, gf_png_strips *strips) {
    /* A row of few bytes takes GF_PNG_PAD bytes and more in memory. */
    const size_t row = gf_row_bytes(format), counted = row < GF_PNG_PAD / 4 ? GF_PNG_PAD / 4 : row;
    strips_init(format, row, GF_PNG_STRIP_BYTES / counted, isa, strips);
    strips->predictor = format->type == GF_F32 ? GF_PREDICT_FLOAT : GF_PREDICT_DIFFERENCE;
}

/* ---- statistics ------------------------------------------------------------------------------ */

/* Set *row to the samples of piece k and return their bytes; 0 after the last piece. */
static size_t strip_piece(const gf_png_strips *strips, const gf_png_strip *strip, uint64_t k,
                          const unsigned char **row) {
    const gf_png_piece piece = gf_png_piece_at(strips->row_bytes, k);
    if (piece.y >= strip->count)
        return 0;
    *row = gf_png_row(strips, strip, (int64_t)piece.y) + piece.at;
    return piece.size;
}

/* Count the bytes of words equal to the word above or to one up to 8 pixels to the left, as in flat
 * areas, which runs encode, and in patterns (dithering, checkerboards behind transparency). */
static void strip_probe_repeats(const gf_png_strips *strips, const gf_png_strip *strip,
                                gf_png_probe *probe) {
    const unsigned char *row;
    size_t n;
    probe->flat = probe->repeated = probe->total = 0;
    for (uint64_t k = 0; (n = strip_piece(strips, strip, k, &row)); k++, probe->total += n) {
        for (size_t i = 0; i + 4 <= n; i += GF_PNG_PROBE_STRIDE) {
            uint32_t here, up, left;
            memcpy(&here, row + i, 4);
            memcpy(&up, row + i - strips->row_stride, 4);
            memcpy(&left, row + i - strips->bpp, 4);
            const bool flat = here == up && here == left;
            bool same = here == up || here == left;
            for (size_t p = 2; p <= GF_PNG_PROBE_LEFT; p++) {
                memcpy(&left, row + i - p * strips->bpp, 4);
                same |= here == left;
            }
            probe->flat += flat ? GF_PNG_PROBE_STRIDE : 0;
            probe->repeated += same && !flat ? GF_PNG_PROBE_STRIDE : 0;
        }
    }
    /* Rows shorter than a word cannot be compared: assume repeats. */
    if (strips->row_bytes < 4)
        probe->repeated = probe->total;
}

void gf_png_probe_strip(const gf_png_strips *strips, const gf_png_strip *strip,
                        unsigned char *buffer, gf_png_probe *probe) {
    const gf_deflate_simd *deflate = gf_deflate_simd_of(strips->isa);
    const gf_png_simd *simd = gf_png_simd_of(strips->isa);
    strip_probe_repeats(strips, strip, probe);
    for (unsigned f = 0; f < GF_PNG_FILTERS; f++) {
        gf_byte_counts counts = {{{0}}};
        uint32_t sums[256];
        uint64_t terms = 0;
        unsigned char *to = buffer;
        const unsigned char *row;
        size_t n;
        for (uint64_t k = 0; (n = strip_piece(strips, strip, k, &row)); k++, to += n)
            simd->filter((gf_png_filter)f, to, row, row - strips->row_stride, n, strips->bpp);
        deflate->count(buffer, (size_t)probe->total, &counts);
        gf_sum_byte_counts(&counts, sums);
        for (int b = 0; b < 256; b++)
            terms += gf_png_entropy_term(sums[b]);
        probe->cost[f] = gf_png_entropy(probe->total, terms);
    }
}

/* ---- scratch --------------------------------------------------------------------------------- */

enum {
    TRIAL_BYTES = 3 << 14,
    ZLIB_BYTES = 1 << 19, /* approximate memory use of zlib */
    ZLIB_MAX = 1 << 30    /* zlib counts in 32 bits */
};

/* Buffers: rows with filter type bytes, context first, filtered and without a filter; a row of each
 * filter type; the strip as compressed by zlib. */
enum { FILTERED, UNFILTERED, ROWS, ZLIB_OUT = ROWS + GF_PNG_FILTERS, BUFFERS };

struct gf_png_scratch {
    const gf_png_strips *strips;
    const gf_deflate_simd *simd;
    unsigned char *buffer[BUFFERS];
    z_stream zlib;
    gf_deflate_plan plan[2]; /* large; this and the following are not cleared */
    gf_deflate_hash hash;
};

size_t gf_png_strip_bound(const gf_png_strips *strips) {
    const size_t n = strips->filtered_bytes * (size_t)strips->rows;
    const size_t zlib = deflateBound(Z_NULL, (uLong)n) + 16;
    const size_t builtin = n + (n / GF_DEFLATE_BLOCK + 1) * gf_deflate_bound(0) + n / 4096 + 64;
    return gf_png_tries_zlib(strips->effort) && zlib > builtin ? zlib : builtin;
}

/* Return the size of a buffer; 0 if the effort does not use it: rows may be very long. */
static size_t strip_buffer_bytes(const gf_png_strips *strips, int buffer) {
    const size_t filtered = strips->filtered_bytes * (size_t)(strips->rows + strips->context);
    const bool short_png = strips->effort == GF_PNG_FAST && strips->predictor == GF_PREDICT_PNG &&
                           strips->filtered_bytes <= GF_DEFLATE_BLOCK;
    if (buffer == FILTERED || buffer == UNFILTERED)
        return buffer == FILTERED || short_png ? filtered : 0;
    if (!gf_png_tries_zlib(strips->effort))
        return 0;
    return buffer == ZLIB_OUT ? gf_png_strip_bound(strips) : strips->filtered_bytes;
}

size_t gf_png_scratch_bytes(const gf_png_strips *strips) {
    size_t bytes = sizeof(gf_png_scratch) + (gf_png_tries_zlib(strips->effort) ? ZLIB_BYTES : 0);
    for (int i = 0; i < BUFFERS; i++)
        bytes += strip_buffer_bytes(strips, i);
    return bytes;
}

void gf_png_scratch_free(gf_png_scratch *scratch) {
    if (!scratch)
        return;
    for (int i = 0; i < BUFFERS; i++)
        free(scratch->buffer[i]);
    (void)deflateEnd(&scratch->zlib); /* also one that is zeroed */
    free(scratch);
}

gf_png_scratch *gf_png_scratch_new(const gf_png_strips *strips) {
    gf_png_scratch *scratch = malloc(sizeof *scratch);
    if (!scratch)
        return NULL;
    memset(scratch, 0, offsetof(gf_png_scratch, plan));
    scratch->strips = strips;
    scratch->simd = gf_deflate_simd_of(strips->isa);
    bool complete = !gf_png_tries_zlib(strips->effort) ||
                    deflateInit2(&scratch->zlib, strips->effort == GF_PNG_SMALL ? 9 : 6, Z_DEFLATED,
                                 -15, 9, Z_FILTERED) == Z_OK;
    for (int i = 0; i < BUFFERS && complete; i++) {
        const size_t bytes = strip_buffer_bytes(strips, i);
        scratch->buffer[i] = bytes ? malloc(bytes) : NULL;
        complete = !bytes || scratch->buffer[i];
    }
    if (complete)
        return scratch;
    gf_png_scratch_free(scratch);
    return NULL;
}

/* ---- filtering ------------------------------------------------------------------------------- */

void gf_png_filter_rows(gf_png_scratch *scratch, const gf_png_strip *strip, gf_png_rule rule,
                        int64_t from, int64_t to, unsigned char *dst) {
    const gf_png_strips *strips = scratch->strips;
    const gf_png_simd *simd = gf_png_simd_of(strips->isa);
    const size_t n = strips->row_bytes;
    for (int64_t r = from; r < to; r++, dst += strips->filtered_bytes) {
        const unsigned char *row = gf_png_row(strips, strip, r), *above = row - strips->row_stride;
        uint64_t min = UINT64_MAX;
        unsigned filter = rule;
        for (unsigned f = 0; f < GF_PNG_FILTERS && rule == GF_PNG_ADAPTIVE; f++) {
            unsigned char *residuals = scratch->buffer[ROWS + f];
            simd->filter((gf_png_filter)f, residuals, row, above, n, strips->bpp);
            const uint64_t sum = simd->magnitude(residuals, n);
            filter = sum < min ? f : filter;
            min = sum < min ? sum : min;
        }
        dst[0] = (unsigned char)filter;
        if (rule == GF_PNG_ADAPTIVE)
            memcpy(dst + 1, scratch->buffer[ROWS + filter], n);
        else
            simd->filter((gf_png_filter)filter, dst + 1, row, above, n, strips->bpp);
    }
}

unsigned char *gf_png_strip_predict(gf_png_scratch *scratch, gf_png_strip *strip) {
    const gf_png_strips *strips = scratch->strips;
    const gf_png_simd *simd = gf_png_simd_of(strips->isa);
    const size_t samples = strips->row_bytes / strips->sample,
                 channels = strips->bpp / strips->sample;
    unsigned char *dst = scratch->buffer[FILTERED];
    for (uint64_t r = 0; r < strip->count; r++, dst += strips->filtered_bytes) {
        const unsigned char *row = gf_png_row(strips, strip, (int64_t)r);
        if (strips->predictor == GF_PREDICT_FLOAT)
            simd->difference_float(dst, row, samples, channels);
        else if (strips->sample == 2)
            simd->difference16(dst, row, samples, channels);
        else
            simd->filter(GF_PNG_SUB, dst, row, row, strips->row_bytes, strips->bpp);
    }
    strip->filtered = strip->count * strips->filtered_bytes;
    return scratch->buffer[FILTERED];
}

/* ---- built-in encoder ------------------------------------------------------------------------ */

/* A variant of encoding a block: filtered rows, planned with runs or with matches. */
typedef struct strip_variant {
    const unsigned char *filtered; /* filtered rows of the whole strip */
    bool matches;                  /* planned with matches */
    bool matches_pay;              /* matches are known to save bits */
    bool pattern;                  /* matches may save bits even if literals are cheap */
} strip_variant;

static void strip_plan_part(gf_png_scratch *scratch, const strip_variant *variant, size_t at,
                            size_t n, gf_deflate_plan *plan) {
    if (variant->matches)
        gf_deflate_plan_matches(variant->filtered + at, n, scratch->strips->bpp,
                                scratch->strips->filtered_bytes, &scratch->hash, plan);
    else
        gf_deflate_plan_runs(scratch->simd, variant->filtered + at, n, plan);
}

/* Return true if matches would save a quarter of the bits of runs, by a sixteenth of the block. */
static bool strip_matches_pay(gf_png_scratch *scratch, const gf_deflate_plan *runs,
                              const strip_variant *variant, size_t at, size_t n) {
    enum { PIECES = 4, SHARE = 64 };
    gf_deflate_plan *plan = &scratch->plan[1];
    uint64_t bits = 0;
    /* Few bits remain if much is repeated; the match search is fast there. */
    if (runs->bits * 3 < n)
        return true;
    for (size_t k = 0; k < PIECES; k++) {
        strip_plan_part(scratch, variant, at + (2 * k + 1) * n / (2 * PIECES), n / SHARE, plan);
        bits += plan->bits - plan->codes.header_bits;
    }
    return bits * (SHARE / PIECES) * 4 < (runs->bits - runs->codes.header_bits) * 3;
}

/* Plan a block with each variant. Return the shortest plan and its variant in *chosen. Variant 0
 * uses runs. If its literals are cheap, strip_matches_pay decides whether the others are tried. */
static const gf_deflate_plan *strip_plan_block(gf_png_scratch *scratch,
                                               const strip_variant *variants, unsigned count,
                                               size_t at, size_t n, const strip_variant **chosen) {
    gf_deflate_plan *plans = scratch->plan;
    unsigned best = 0;
    *chosen = variants;
    strip_plan_part(scratch, variants, at, n, plans);
    if (scratch->strips->effort == GF_PNG_FAST && count > 1 && !variants[1].matches_pay &&
        gf_block_is_cheap(plans->bits, plans->literals, n) &&
        !(variants[1].pattern && strip_matches_pay(scratch, plans, &variants[count - 1], at, n)))
        return plans;
    for (unsigned i = 1; i < count; i++) {
        strip_plan_part(scratch, &variants[i], at, n, &plans[!best]);
        if (plans[!best].bits < plans[best].bits) {
            best = !best;
            *chosen = &variants[i];
        }
    }
    return &plans[best];
}

/* Encode a strip with the built-in encoder. Blocks do not end at row ends: in a strip of several
 * blocks, all variants must use the same filtered rows. */
static void strip_encode_builtin(gf_png_scratch *scratch, const strip_variant *variants,
                                 unsigned count, gf_png_strip *strip) {
    const size_t n = (size_t)strip->filtered;
    gf_bit_writer out = {.at = strip->out};
    strip->adler = 1;
    for (size_t at = 0; at < n; at += GF_DEFLATE_BLOCK) {
        const size_t part = n - at < GF_DEFLATE_BLOCK ? n - at : GF_DEFLATE_BLOCK;
        const strip_variant *variant;
        const gf_deflate_plan *plan =
            strip_plan_block(scratch, variants, count, at, part, &variant);
        const unsigned char *src = variant->filtered + at;
        gf_deflate_write(scratch->simd, plan, src, part, strip->last && at + part == n, &out);
        strip->adler = gf_adler32(strip->adler, src, part);
    }
    if (strip->last)
        gf_align_bits(&out);
    else
        gf_deflate_sync(&out);
    strip->size = (size_t)(out.at - strip->out);
}

/* The filter is chosen for the strip; the predictor of a TIFF is the same for all strips. */
static void strip_encode_fast(gf_png_scratch *scratch, gf_png_strip *strip) {
    const gf_png_strips *strips = scratch->strips;
    const bool png = strips->predictor == GF_PREDICT_PNG;
    const int64_t rows = (int64_t)strip->count;
    unsigned char *filtered = scratch->buffer[FILTERED], *unfiltered = scratch->buffer[UNFILTERED];
    gf_png_probe probe;
    if (png) {
        gf_png_probe_strip(strips, strip, filtered, &probe);
        gf_png_filter_rows(scratch, strip, gf_png_best_filter(&probe), 0, rows, filtered);
    } else {
        strip_probe_repeats(strips, strip, &probe);
        gf_png_strip_predict(scratch, strip);
    }
    const bool pay = gf_deflate_has_repeats(scratch->simd, filtered, (size_t)strip->filtered);
    unsigned count = gf_png_has_repeats(&probe) || pay ? 2 : 1;
    if (png && gf_png_has_repeats(&probe) && strip->filtered <= GF_DEFLATE_BLOCK) {
        gf_png_filter_rows(scratch, strip, GF_PNG_NONE, 0, rows, unfiltered);
        count = 3;
    }
    const strip_variant variants[] = {{.filtered = filtered},
                                      {.filtered = filtered,
                                       .matches = true,
                                       .matches_pay = pay,
                                       .pattern = gf_png_has_patterns(&probe)},
                                      {.filtered = unfiltered, .matches = true}};
    strip_encode_builtin(scratch, variants, count, strip);
}

/* ---- zlib ------------------------------------------------------------------------------------ */

/* Compress the filtered rows after `context` bytes. Return their size; 0 if zlib fails. */
static size_t strip_encode_zlib(gf_png_scratch *scratch, const gf_png_strip *strip,
                                size_t context) {
    const size_t capacity = gf_png_strip_bound(scratch->strips);
    z_stream *zlib = &scratch->zlib;
    size_t left = (size_t)strip->filtered, space = capacity;
    const size_t dictionary = context < GF_DEFLATE_WINDOW ? context : GF_DEFLATE_WINDOW;
    const unsigned char *src = scratch->buffer[FILTERED] + context;
    if (deflateReset(zlib) != Z_OK ||
        (dictionary && deflateSetDictionary(zlib, src - dictionary, (uInt)dictionary) != Z_OK))
        return 0;
    zlib->next_in = src;
    zlib->next_out = scratch->buffer[ZLIB_OUT];
    const int end = strip->last ? Z_FINISH : Z_SYNC_FLUSH;
    int result;
    do {
        const uInt in = left < ZLIB_MAX ? (uInt)left : ZLIB_MAX;
        const uInt to = space < ZLIB_MAX ? (uInt)space : ZLIB_MAX;
        zlib->avail_in = in;
        zlib->avail_out = to;
        result = deflate(zlib, in == left ? end : Z_NO_FLUSH);
        left -= in - zlib->avail_in;
        space -= to - zlib->avail_out;
    } while (result == Z_OK && (left || (strip->last || !zlib->avail_out)) && space);
    const bool complete =
        strip->last ? result == Z_STREAM_END : result == Z_OK && !left && zlib->avail_out;
    return complete ? capacity - space : 0;
}

/* Encode with the built-in encoder and with zlib, and keep the shorter result: which one wins
 * depends on the image. zlib takes most of the time and is skipped if strip->zlib is not set. */
static bool strip_encode_smallest(gf_png_scratch *scratch, gf_png_strip *strip) {
    const size_t context = (size_t)strip->context * scratch->strips->filtered_bytes;
    unsigned char *filtered = scratch->buffer[FILTERED];
    gf_png_filter_rows(scratch, strip, strip->context_rule, -(int64_t)strip->context, 0, filtered);
    gf_png_filter_rows(scratch, strip, strip->rule, 0, (int64_t)strip->count, filtered + context);
    const strip_variant variants[] = {{.filtered = filtered + context},
                                      {.filtered = filtered + context, .matches = true}};
    strip_encode_builtin(scratch, variants, 2, strip);
    if (!strip->zlib)
        return true;
    const size_t size = strip_encode_zlib(scratch, strip, context);
    if (size != 0 && size < strip->size) {
        memcpy(strip->out, scratch->buffer[ZLIB_OUT], size);
        strip->size = size;
    }
    return size != 0;
}

/* ---- choice of filters ----------------------------------------------------------------------- */

void gf_png_strip_choose(gf_png_scratch *scratch, gf_png_rule context_rule, gf_png_strip *strip) {
    const size_t row = scratch->strips->filtered_bytes;
    unsigned char *filtered = scratch->buffer[FILTERED];
    gf_png_probe probe;
    strip->context_rule = context_rule;
    gf_png_probe_strip(scratch->strips, strip, filtered, &probe);
    /* zlib takes most of the time. In noise it finds no more matches than the built-in encoder. */
    const bool repeated = gf_png_has_repeats(&probe);
    const bool try_zlib = repeated || scratch->strips->effort == GF_PNG_SMALL;
    const gf_png_rule rules[] = {gf_png_best_filter(&probe), GF_PNG_ADAPTIVE, GF_PNG_NONE};
    /* Encode some rows from the middle of the strip, filtered by each rule. */
    uint64_t rows = TRIAL_BYTES / row;
    rows = rows < 2 ? 2 : rows;
    rows = rows < strip->count ? rows : strip->count;
    const int64_t from = (int64_t)((strip->count - rows) / 2), to = from + (int64_t)rows;
    const size_t all = (size_t)rows * row, n = all < GF_DEFLATE_BLOCK ? all : GF_DEFLATE_BLOCK;
    const strip_variant variants[] = {{.filtered = filtered},
                                      {.filtered = filtered, .matches = true}},
                        *variant;
    const gf_png_strip part = {.filtered = n, .last = true};
    size_t min = SIZE_MAX;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        gf_png_filter_rows(scratch, strip, rules[i], from, to, filtered);
        const uint64_t bits = strip_plan_block(scratch, variants, 2, 0, n, &variant)->bits;
        const size_t builtin = (size_t)(bits / 8);
        size_t zlib = 0; /* it is not tried, or fails */
        if (try_zlib || gf_deflate_has_repeats(scratch->simd, filtered, n))
            zlib = strip_encode_zlib(scratch, &part, 0);
        const size_t size = zlib && zlib < builtin ? zlib : builtin;
        if (size < min) {
            min = size;
            strip->rule = rules[i];
            strip->zlib = repeated || (zlib && zlib <= builtin + builtin / 64);
        }
    }
}

bool gf_png_strip_encode(gf_png_scratch *scratch, gf_png_strip *strip) {
    unsigned char *filtered = scratch->buffer[FILTERED];
    strip->filtered = strip->count * scratch->strips->filtered_bytes;
    if (gf_png_tries_zlib(scratch->strips->effort))
        return strip_encode_smallest(scratch, strip);
    if (scratch->strips->effort == GF_PNG_STORED) {
        gf_bit_writer out = {.at = strip->out};
        gf_png_filter_rows(scratch, strip, GF_PNG_NONE, 0, (int64_t)strip->count, filtered);
        gf_deflate_write_stored(filtered, (size_t)strip->filtered, strip->last, &out);
        strip->adler = gf_adler32(1, filtered, strip->filtered);
        strip->size = (size_t)(out.at - strip->out);
    } else {
        strip_encode_fast(scratch, strip);
    }
    return true;
}
