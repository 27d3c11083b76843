/* Strips of rows on their way into a PNG: what is worth knowing about them beforehand, their
 * filters, and how they are coded. */
#define ZLIB_CONST /* what it reads it does not write */

#include "io/png.h"

#include <isa-l/igzip_lib.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* About so many bytes a strip: few enough for a core's cache and for many cores to share a small
 * image, enough that a code's description (about 100 bytes) does not count. Where the smaller file
 * is worth more time, a strip is an eighth of the image, within limits. */
enum { STRIP_BYTES = 1 << 18, MAX_STRIP_BYTES = 1 << 21, PARTS = 8 };

void gf_png_strips_init(const gf_format *format, gf_png_effort effort, gf_isa isa,
                        gf_png_strips *strips) {
    const size_t row = gf_row_bytes(format), filtered = row + 1;
    uint64_t bytes = STRIP_BYTES;
    if (gf_png_asks_zlib(effort))
        while (bytes < MAX_STRIP_BYTES && bytes * PARTS < filtered * format->height)
            bytes *= 2;
    const uint64_t rows = bytes / filtered;
    *strips = (gf_png_strips){.effort = effort,
                              .isa = isa,
                              .row_bytes = row,
                              .row_stride = (row + 2 * (size_t)GF_PNG_PAD - 1) & ~(size_t)63,
                              .pixel = format->channels * gf_type_bytes(format->type),
                              .rows = rows ? rows : 1,
                              .context = 0};
    if (strips->rows > format->height)
        strips->rows = format->height;
    if (gf_png_asks_zlib(effort))
        strips->context = (GF_DEFLATE_WINDOW + filtered - 1) / filtered;
}

/* ---- filtering ------------------------------------------------------------------------------- */

static unsigned strip_best_of_row(const gf_png_strips *strips, const unsigned char *row,
                                  unsigned char *const capacity[GF_PNG_FILTERS]) {
    const gf_png_simd *simd = gf_png_simd_of(strips->isa);
    unsigned best = GF_PNG_NONE;
    uint64_t min = UINT64_MAX;
    for (unsigned f = 0; f < GF_PNG_FILTERS; f++) {
        simd->filter((gf_png_filter)f, capacity[f], row, row - strips->row_stride,
                     strips->row_bytes, strips->pixel);
        const uint64_t sum = simd->magnitude(capacity[f], strips->row_bytes);
        if (sum < min) {
            min = sum;
            best = f;
        }
    }
    return best;
}

void gf_png_filter_rows(const gf_png_strips *strips, const gf_png_strip *strip, gf_png_rule rule,
                        int64_t from, int64_t to, unsigned char *const capacity[GF_PNG_FILTERS],
                        unsigned char *dst) {
    const gf_png_simd *simd = gf_png_simd_of(strips->isa);
    for (int64_t r = from; r < to; r++, dst += strips->row_bytes + 1) {
        const unsigned char *row = gf_png_row(strips, strip, r);
        const unsigned filter =
            rule == GF_PNG_EACH ? strip_best_of_row(strips, row, capacity) : rule;
        dst[0] = (unsigned char)filter;
        if (rule == GF_PNG_EACH)
            memcpy(dst + 1, capacity[filter], strips->row_bytes);
        else
            simd->filter((gf_png_filter)filter, dst + 1, row, row - strips->row_stride,
                         strips->row_bytes, strips->pixel);
    }
}

/* ---- samples --------------------------------------------------------------------------------- */

/* 256 * log2(x), x > 0: near enough, and the same everywhere. */
static uint64_t strip_log2(uint32_t x) {
    const unsigned whole = 31u - (unsigned)__builtin_clz(x);
    const uint64_t part = whole > 8 ? (x >> (whole - 8)) & 255 : (x << (8 - whole)) & 255;
    /* log2(1 + t) is t + 0.34 t (1 - t), about. */
    return 256 * whole + part + (part * (256 - part) * 87 >> 16);
}

/* Bytes that n residuals so distributed need, at best. */
static uint64_t strip_entropy(const uint32_t counts[256], uint64_t n) {
    uint64_t bits = n * strip_log2((uint32_t)n);
    for (int b = 0; b < 256; b++)
        if (counts[b])
            bits -= counts[b] * strip_log2(counts[b]);
    return bits / (8 * 256);
}

/* A sixteenth of the strip, in pieces from all over it. */
enum { PIECE = 1024, APART = 16, WORDS_APART = 20 /* no power of 2: patterns */ };

/* Samples of piece k and how many they are, 0 behind the last. Steps that fall on the same columns
 * again begin one further on, and steps over rows are not even: neither a margin nor a pattern
 * counts for more than it is of the picture. */
static size_t strip_piece(const gf_png_strips *strips, const gf_png_strip *strip, uint64_t k,
                          const unsigned char **row) {
    const uint64_t pieces = (strips->row_bytes + PIECE - 1) / PIECE;
    const uint64_t step = pieces < APART ? APART / pieces : 1, y = k * APART / pieces + k % step;
    const uint64_t shared = pieces % APART ? pieces & -pieces : APART;
    const size_t at = (size_t)((k * APART + k * shared / pieces) % pieces) * PIECE;
    if (y >= strip->count)
        return 0;
    *row = gf_png_row(strips, strip, (int64_t)y) + at;
    return strips->row_bytes - at < PIECE ? strips->row_bytes - at : PIECE;
}

/* Counts words that are as the one above, or as one up to 8 pixels to the left: as in flat areas,
 * and in patterns such as dithering or the squares behind what is transparent. */
static uint64_t strip_count_repeats(const unsigned char *row, const unsigned char *above, size_t n,
                                    size_t pixel) {
    uint64_t repeated = 0;
    for (size_t i = 0; i + 4 <= n; i += WORDS_APART) {
        uint32_t here, other;
        memcpy(&here, row + i, 4);
        memcpy(&other, above + i, 4);
        bool same = here == other;
        for (size_t left = pixel; left <= 8 * pixel; left += pixel) {
            memcpy(&other, row + i - left, 4);
            same |= here == other;
        }
        repeated += same ? WORDS_APART : 0;
    }
    return repeated;
}

/* Gathers the pieces' residuals of one filter at dst; returns how many. */
static size_t strip_sample_filter(const gf_png_strips *strips, const gf_png_strip *strip,
                                  unsigned filter, unsigned char *dst) {
    const gf_png_simd *simd = gf_png_simd_of(strips->isa);
    const unsigned char *row;
    size_t total = 0, n;
    for (uint64_t k = 0; (n = strip_piece(strips, strip, k, &row)); k++, total += n)
        simd->filter((gf_png_filter)filter, dst + total, row, row - strips->row_stride, n,
                     strips->pixel);
    return total;
}

static uint64_t strip_sample_repeats(const gf_png_strips *strips, const gf_png_strip *strip) {
    const unsigned char *row;
    uint64_t repeated = 0;
    size_t n;
    for (uint64_t k = 0; (n = strip_piece(strips, strip, k, &row)); k++)
        repeated += strip_count_repeats(row, row - strips->row_stride, n, strips->pixel);
    return repeated;
}

void gf_png_take_samples(const gf_png_strips *strips, const gf_png_strip *strip,
                         unsigned char *capacity, gf_png_samples *samples) {
    const gf_deflate_simd *simd = gf_deflate_simd_of(strips->isa);
    for (unsigned f = 0; f < GF_PNG_FILTERS; f++) {
        gf_byte_counts counts = {{{0}}};
        uint32_t sums[256];
        samples->total = strip_sample_filter(strips, strip, f, capacity);
        simd->count(capacity, (size_t)samples->total, &counts);
        gf_sum_byte_counts(&counts, sums);
        samples->cost[f] = strip_entropy(sums, samples->total);
    }
    /* Of rows too short for a word nothing is known. */
    samples->repeated =
        strips->row_bytes < 4 ? samples->total : strip_sample_repeats(strips, strip);
}

gf_png_filter gf_png_best_filter(const gf_png_samples *samples) {
    unsigned best = GF_PNG_NONE;
    for (unsigned f = 1; f < GF_PNG_FILTERS; f++)
        if (samples->cost[f] + samples->cost[f] / 50 < samples->cost[best])
            best = f;
    return (gf_png_filter)best;
}

/* ---- scratch --------------------------------------------------------------------------------- */

enum {
    WAYS = 2,
    TRIED_BYTES = 3 << 14,
    ZLIB_BYTES = 1 << 19, /* that zlib allocates, about */
    ZLIB_MAX = 1 << 30    /* zlib counts in 32 bits */
};

struct gf_png_scratch {
    const gf_png_strips *strips;
    const gf_deflate_simd *simd;
    unsigned char *filtered[WAYS]; /* rows behind their filter bytes, with the context's in front */
    unsigned char *row[GF_PNG_FILTERS];
    unsigned char *other; /* a second way to write the strip */
    z_stream zlib;
    bool zlib_open;
    gf_deflate_plan plan[2]; /* from here on large, and not cleared */
    gf_deflate_seen seen;
};

size_t gf_png_strip_bound(const gf_png_strips *strips) {
    const size_t n = (strips->row_bytes + 1) * (size_t)strips->rows;
    const size_t zlib = deflateBound(Z_NULL, (uLong)n) + 16;
    const size_t ours = n + (n / GF_DEFLATE_BLOCK + 1) * gf_deflate_bound(0) + n / 4096 + 64;
    return gf_png_asks_zlib(strips->effort) && zlib > ours ? zlib : ours;
}

/* What an effort does not need is not allocated: rows may be very long. */
typedef struct strip_needs {
    size_t filtered[WAYS], row, other; /* bytes; 0 for none */
} strip_needs;

static strip_needs strip_find_needs(const gf_png_strips *strips) {
    strip_needs needs = {
        {(strips->row_bytes + 1) * (size_t)(strips->rows + strips->context)}, 0, 0};
    if (gf_png_asks_zlib(strips->effort)) {
        needs.row = strips->row_bytes + 1;
        needs.other = gf_png_strip_bound(strips);
    } else if (strips->effort == GF_PNG_FAST && strips->row_bytes + 1 <= GF_DEFLATE_BLOCK) {
        needs.filtered[1] = needs.filtered[0];
    }
    return needs;
}

size_t gf_png_scratch_bytes(const gf_png_strips *strips) {
    const strip_needs needs = strip_find_needs(strips);
    return sizeof(gf_png_scratch) + needs.filtered[0] + needs.filtered[1] +
           GF_PNG_FILTERS * needs.row + needs.other +
           (gf_png_asks_zlib(strips->effort) ? ZLIB_BYTES : 0);
}

void gf_png_scratch_free(gf_png_scratch *scratch) {
    if (!scratch)
        return;
    for (int i = 0; i < WAYS; i++)
        free(scratch->filtered[i]);
    for (int f = 0; f < GF_PNG_FILTERS; f++)
        free(scratch->row[f]);
    free(scratch->other);
    if (scratch->zlib_open)
        deflateEnd(&scratch->zlib);
    free(scratch);
}

static bool strip_allocate(gf_png_scratch *scratch) {
    const gf_png_strips *strips = scratch->strips;
    const strip_needs needs = strip_find_needs(strips);
    for (int i = 0; i < WAYS; i++)
        if (needs.filtered[i] && !(scratch->filtered[i] = malloc(needs.filtered[i])))
            return false;
    for (int f = 0; f < GF_PNG_FILTERS; f++)
        if (needs.row && !(scratch->row[f] = malloc(needs.row)))
            return false;
    if (!gf_png_asks_zlib(strips->effort))
        return true;
    scratch->other = malloc(needs.other);
    scratch->zlib_open =
        scratch->other && deflateInit2(&scratch->zlib, strips->effort == GF_PNG_SMALL ? 9 : 6,
                                       Z_DEFLATED, -15, 9, Z_FILTERED) == Z_OK;
    return scratch->zlib_open;
}

gf_png_scratch *gf_png_scratch_new(const gf_png_strips *strips) {
    gf_png_scratch *scratch = malloc(sizeof *scratch);
    if (!scratch)
        return NULL;
    memset(scratch, 0, offsetof(gf_png_scratch, plan));
    scratch->strips = strips;
    scratch->simd = gf_deflate_simd_of(strips->isa);
    if (strip_allocate(scratch))
        return scratch;
    gf_png_scratch_free(scratch);
    return NULL;
}

/* ---- by our own coder ------------------------------------------------------------------------ */

/* A way to code a block: what is left by which filter, searched for runs or for matches. */
typedef struct strip_way {
    const unsigned char *filtered; /* of the whole strip */
    bool matches, known;           /* known: that they pay */
} strip_way;

static void strip_plan_part(gf_png_scratch *scratch, const strip_way *way, size_t at, size_t n,
                            gf_deflate_plan *plan) {
    if (way->matches)
        gf_deflate_plan_matches(way->filtered + at, n, scratch->strips->pixel,
                                scratch->strips->row_bytes + 1, &scratch->seen, plan);
    else
        gf_deflate_plan_runs(scratch->simd, way->filtered + at, n, plan);
}

/* Would matches save a quarter of what runs take? Tried on a sixteenth of the block, in pieces. */
static bool strip_matches_pay(gf_png_scratch *scratch, const gf_deflate_plan *runs,
                              const strip_way *way, size_t at, size_t n) {
    enum { PIECES = 4, SHARE = 64 };
    gf_deflate_plan *plan = &scratch->plan[1];
    uint64_t bits = 0;
    /* Little is left where much is repeated, which matches are quick to go through. */
    if (runs->bits * 3 < n)
        return true;
    for (size_t k = 0; k < PIECES; k++) {
        strip_plan_part(scratch, way, at + (2 * k + 1) * n / (2 * PIECES), n / SHARE, plan);
        bits += plan->bits - plan->codes.head_bits;
    }
    return bits * (SHARE / PIECES) * 4 < (runs->bits - runs->codes.head_bits) * 3;
}

/* Plans a block in each way: the shortest plan, and in *chosen the way that it is of. The first is
 * of runs. Where what they leave takes few bits it is noise, which matches cost more than they
 * save, or a pattern: a quick coder finds out which. */
static const gf_deflate_plan *strip_plan_block(gf_png_scratch *scratch, const strip_way *ways,
                                               unsigned count, size_t at, size_t n,
                                               const strip_way **chosen) {
    gf_deflate_plan *best = &scratch->plan[0], *next = &scratch->plan[1];
    *chosen = ways;
    strip_plan_part(scratch, ways, at, n, best);
    if (scratch->strips->effort == GF_PNG_FAST && count > 1 && !ways[1].known &&
        best->bits * 2 < best->literals * 7 &&
        !strip_matches_pay(scratch, best, &ways[count - 1], at, n))
        return best;
    for (unsigned i = 1; i < count; i++) {
        strip_plan_part(scratch, &ways[i], at, n, next);
        if (next->bits < best->bits) {
            gf_deflate_plan *swap = best;
            best = next;
            next = swap;
            *chosen = &ways[i];
        }
    }
    return best;
}

/* A filter goes with whole rows: of a strip with several blocks all ways must be of one. */
static void strip_code_ourselves(gf_png_scratch *scratch, const strip_way *ways, unsigned count,
                                 gf_png_strip *strip) {
    const size_t n = (size_t)strip->filtered;
    gf_bit_writer out = {.at = strip->out};
    strip->adler = 1;
    for (size_t at = 0; at < n; at += GF_DEFLATE_BLOCK) {
        const size_t part = n - at < GF_DEFLATE_BLOCK ? n - at : GF_DEFLATE_BLOCK;
        const strip_way *way;
        const gf_deflate_plan *plan = strip_plan_block(scratch, ways, count, at, part, &way);
        const unsigned char *src = way->filtered + at;
        gf_deflate_write(scratch->simd, plan, src, part, strip->last && at + part == n, &out);
        strip->adler = isal_adler32(strip->adler, src, part);
    }
    if (strip->last)
        gf_align_bits(&out);
    else
        gf_deflate_sync(&out);
    strip->size = (size_t)(out.at - strip->out);
}

static void strip_filter(gf_png_scratch *scratch, const gf_png_strip *strip, gf_png_rule rule,
                         unsigned char *dst) {
    gf_png_filter_rows(scratch->strips, strip, rule, 0, (int64_t)strip->count, scratch->row, dst);
}

static void strip_code_stored(gf_png_scratch *scratch, gf_png_strip *strip) {
    gf_bit_writer out = {.at = strip->out};
    strip_filter(scratch, strip, GF_PNG_NONE, scratch->filtered[0]);
    gf_deflate_write_stored(scratch->filtered[0], (size_t)strip->filtered, strip->last, &out);
    strip->adler = isal_adler32(1, scratch->filtered[0], strip->filtered);
    strip->size = (size_t)(out.at - strip->out);
}

static void strip_code_fast(gf_png_scratch *scratch, gf_png_strip *strip) {
    strip_way ways[] = {{.filtered = scratch->filtered[0]},
                        {.filtered = scratch->filtered[0], .matches = true},
                        {.filtered = scratch->filtered[1], .matches = true}};
    unsigned count = 1;
    gf_png_samples samples;
    gf_png_take_samples(scratch->strips, strip, scratch->filtered[0], &samples);
    strip_filter(scratch, strip, gf_png_best_filter(&samples), scratch->filtered[0]);
    ways[1].known = gf_deflate_recurs(scratch->simd, scratch->filtered[0], (size_t)strip->filtered);
    if (gf_png_some_repeated(&samples)) {
        count = 2;
        if (strip->filtered <= GF_DEFLATE_BLOCK) {
            strip_filter(scratch, strip, GF_PNG_NONE, scratch->filtered[1]);
            count = 3;
        }
    } else if (ways[1].known) {
        count = 2;
    }
    strip_code_ourselves(scratch, ways, count, strip);
}

/* ---- by zlib --------------------------------------------------------------------------------- */

/* Codes filtered rows that lie behind those of the context. Returns bytes written, 0 if zlib
 * fails. */
static size_t strip_code_by_zlib(gf_png_scratch *scratch, const gf_png_strip *strip, size_t context,
                                 const unsigned char *filtered, unsigned char *out) {
    const size_t capacity = gf_png_strip_bound(scratch->strips);
    z_stream *zlib = &scratch->zlib;
    size_t left = (size_t)strip->filtered, space = capacity;
    const size_t dictionary = context < GF_DEFLATE_WINDOW ? context : GF_DEFLATE_WINDOW;
    const unsigned char *src = filtered + context;
    if (deflateReset(zlib) != Z_OK)
        return 0;
    if (dictionary && deflateSetDictionary(zlib, src - dictionary, (uInt)dictionary) != Z_OK)
        return 0;
    zlib->next_in = src;
    zlib->next_out = out;
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

/* Filters the context and the strip as was chosen for them; returns the bytes of the context. */
static size_t strip_filter_chosen(gf_png_scratch *scratch, const gf_png_strip *strip) {
    const size_t context = (size_t)strip->context * (scratch->strips->row_bytes + 1);
    gf_png_filter_rows(scratch->strips, strip, strip->above, -(int64_t)strip->context, 0,
                       scratch->row, scratch->filtered[0]);
    strip_filter(scratch, strip, strip->rule, scratch->filtered[0] + context);
    return context;
}

/* Whatever is shortest: that differs from picture to picture. zlib, which takes most of the time,
 * is left out where little is repeated, unless the smallest file is wanted. */
static bool strip_code_well(gf_png_scratch *scratch, gf_png_strip *strip) {
    const size_t context = strip_filter_chosen(scratch, strip);
    const unsigned char *filtered = scratch->filtered[0];
    const strip_way ways[] = {{.filtered = filtered + context},
                              {.filtered = filtered + context, .matches = true}};
    strip_code_ourselves(scratch, ways, 2, strip);
    if (!strip->zlib)
        return true;
    const size_t size = strip_code_by_zlib(scratch, strip, context, filtered, scratch->other);
    if (size != 0 && size < strip->size) {
        memcpy(strip->out, scratch->other, size);
        strip->size = size;
    }
    return size != 0;
}

/* ---- choosing -------------------------------------------------------------------------------- */

/* What some rows from the middle of a strip take, filtered by a rule. */
typedef struct strip_trial {
    size_t ours, zlibs; /* bytes; SIZE_MAX where zlib was not tried */
} strip_trial;

static strip_trial strip_try_rule(gf_png_scratch *scratch, const gf_png_strip *strip,
                                  gf_png_rule rule, bool zlib) {
    const size_t row = scratch->strips->row_bytes + 1;
    uint64_t rows = TRIED_BYTES / row;
    rows = rows < 2 ? 2 : rows;
    rows = rows < strip->count ? rows : strip->count;
    const int64_t from = (int64_t)((strip->count - rows) / 2);
    unsigned char *filtered = scratch->filtered[0];
    gf_png_filter_rows(scratch->strips, strip, rule, from, from + (int64_t)rows, scratch->row,
                       filtered);
    const size_t all = (size_t)rows * row, n = all < GF_DEFLATE_BLOCK ? all : GF_DEFLATE_BLOCK;
    const strip_way ways[] = {{.filtered = filtered}, {.filtered = filtered, .matches = true}},
                    *way;
    strip_trial trial = {.ours = (size_t)(strip_plan_block(scratch, ways, 2, 0, n, &way)->bits / 8),
                         .zlibs = SIZE_MAX};
    if (!zlib && !gf_deflate_recurs(scratch->simd, filtered, n))
        return trial;
    const gf_png_strip part = {.filtered = n, .last = true};
    const size_t size = strip_code_by_zlib(scratch, &part, 0, filtered, scratch->other);
    if (size)
        trial.zlibs = size;
    return trial;
}

void gf_png_strip_choose(gf_png_scratch *scratch, gf_png_rule above, gf_png_strip *strip) {
    strip->above = above;
    gf_png_samples samples;
    gf_png_take_samples(scratch->strips, strip, scratch->filtered[0], &samples);
    /* zlib takes most of the time. In noise it finds nothing that we do not. */
    const bool repeated = gf_png_some_repeated(&samples);
    const bool tried = repeated || scratch->strips->effort == GF_PNG_SMALL;
    const gf_png_rule rules[] = {gf_png_best_filter(&samples), GF_PNG_EACH, GF_PNG_NONE};
    size_t min = SIZE_MAX;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const strip_trial trial = strip_try_rule(scratch, strip, rules[i], tried);
        const size_t size = trial.ours < trial.zlibs ? trial.ours : trial.zlibs;
        if (size < min) {
            min = size;
            strip->rule = rules[i];
            strip->zlib = repeated || trial.zlibs <= trial.ours + trial.ours / 64;
        }
    }
}

bool gf_png_strip_code(gf_png_scratch *scratch, gf_png_strip *strip) {
    strip->filtered = strip->count * (scratch->strips->row_bytes + 1);
    if (gf_png_asks_zlib(scratch->strips->effort))
        return strip_code_well(scratch, strip);
    (scratch->strips->effort == GF_PNG_STORED ? strip_code_stored : strip_code_fast)(scratch,
                                                                                     strip);
    return true;
}
