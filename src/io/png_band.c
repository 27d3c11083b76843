#define ZLIB_CONST /* what it reads it does not write */

#include "io/png_band.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    TRIED_BYTES = 3 << 14,
    ZLIB_MOST = 1 << 30, /* zlib counts in 32 bits */
    LEVEL_OF_EACH = 3    /* from this level on each row has its own filter, as in libpng */
};

/* ---- scratch --------------------------------------------------------------------------------- */

enum { WAYS = 2 };

struct gf_png_scratch {
    unsigned char *filtered[WAYS]; /* rows behind their filter bytes, with the context's in front */
    unsigned char *row[GF_PNG_FILTERS];
    gf_deflate_plan *plan[2];
    gf_deflate_seen *seen;
    unsigned char *other; /* a second way to write the band */
    z_stream zlib;
    bool zlib_open;
};

static size_t filtered_bytes(const gf_png_bands *bands) {
    return (bands->row_bytes + 1) * (size_t)(bands->rows + bands->context);
}

size_t gf_png_band_bound(const gf_png_bands *bands) {
    const size_t n = (bands->row_bytes + 1) * (size_t)bands->rows;
    const size_t zlib = deflateBound(Z_NULL, (uLong)n) + 16;
    const size_t ours = n + (n / GF_DEFLATE_BLOCK + 1) * gf_deflate_bound(0) + n / 4096 + 64;
    return bands->effort != GF_PNG_FAST && zlib > ours ? zlib : ours;
}

/* What an effort does not need is not allocated: rows may be very long. */
typedef struct gf_png_needs {
    size_t filtered[WAYS], row, other, zlib; /* bytes; 0 for none */
} gf_png_needs;

static gf_png_needs find_needs(const gf_png_bands *bands) {
    gf_png_needs needs = {.filtered = {filtered_bytes(bands)}};
    if (bands->effort == GF_PNG_FAST) {
        needs.filtered[1] = bands->row_bytes + 1 <= GF_DEFLATE_BLOCK ? filtered_bytes(bands) : 0;
        return needs;
    }
    needs.row = bands->row_bytes + 1;
    needs.other = bands->effort > GF_PNG_LEVEL_9 ? gf_png_band_bound(bands) : 0;
    needs.zlib = 1 << 19;
    return needs;
}

size_t gf_png_scratch_bytes(const gf_png_bands *bands) {
    const gf_png_needs needs = find_needs(bands);
    return sizeof(gf_png_scratch) + needs.filtered[0] + needs.filtered[1] +
           GF_PNG_FILTERS * needs.row + needs.other + needs.zlib + 2 * sizeof(gf_deflate_plan) +
           sizeof(gf_deflate_seen);
}

void gf_png_scratch_free(gf_png_scratch *scratch) {
    if (!scratch)
        return;
    for (int i = 0; i < WAYS; i++)
        free(scratch->filtered[i]);
    for (int i = 0; i < 2; i++)
        free(scratch->plan[i]);
    for (int f = 0; f < GF_PNG_FILTERS; f++)
        free(scratch->row[f]);
    free(scratch->seen);
    free(scratch->other);
    if (scratch->zlib_open)
        deflateEnd(&scratch->zlib);
    free(scratch);
}

static bool allocate(const gf_png_bands *bands, gf_png_scratch *scratch) {
    const gf_png_needs needs = find_needs(bands);
    for (int i = 0; i < WAYS; i++)
        if (needs.filtered[i] && !(scratch->filtered[i] = malloc(needs.filtered[i])))
            return false;
    for (int i = 0; i < 2; i++)
        if (!(scratch->plan[i] = malloc(sizeof *scratch->plan[i])))
            return false;
    for (int f = 0; f < GF_PNG_FILTERS; f++)
        if (needs.row && !(scratch->row[f] = malloc(needs.row)))
            return false;
    scratch->seen = malloc(sizeof *scratch->seen);
    if (!scratch->seen || (needs.other && !(scratch->other = malloc(needs.other))))
        return false;
    if (needs.zlib) {
        const int level = bands->effort <= GF_PNG_LEVEL_9 ? (int)bands->effort
                          : bands->effort == GF_PNG_SMALL ? 9
                                                          : 6;
        scratch->zlib_open = deflateInit2(&scratch->zlib, level, Z_DEFLATED, -15, 9,
                                          level < 3 ? Z_DEFAULT_STRATEGY : Z_FILTERED) == Z_OK;
        return scratch->zlib_open;
    }
    return true;
}

gf_png_scratch *gf_png_scratch_new(const gf_png_bands *bands) {
    gf_png_scratch *scratch = calloc(1, sizeof *scratch);
    if (scratch && !allocate(bands, scratch)) {
        gf_png_scratch_free(scratch);
        scratch = NULL;
    }
    return scratch;
}

/* ---- by our own coder ------------------------------------------------------------------------ */

/* A way to code a block: what is left by which filter, searched for runs or for matches. */
typedef struct gf_png_way {
    const unsigned char *filtered; /* of the whole band */
    bool matches, known;           /* known: that they pay */
} gf_png_way;

static void plan_part(const gf_png_bands *bands, gf_png_scratch *scratch, const gf_png_way *way,
                      size_t at, size_t n, gf_deflate_plan *plan) {
    if (way->matches)
        gf_deflate_plan_matches(way->filtered + at, n, bands->pixel, bands->row_bytes + 1,
                                scratch->seen, plan);
    else
        gf_deflate_plan_runs(gf_deflate_simd_of(bands->isa), way->filtered + at, n, plan);
}

/* Would matches save a quarter of what runs take? Tried on a sixteenth of the block, in pieces. */
static bool matches_pay(const gf_png_bands *bands, gf_png_scratch *scratch,
                        const gf_deflate_plan *runs, const gf_png_way *way, size_t at, size_t n) {
    enum { PIECES = 4, SHARE = 64 };
    gf_deflate_plan *plan = scratch->plan[1];
    uint64_t bits = 0;
    /* Little is left where much is repeated, which matches are quick to go through. */
    if (runs->bits * 3 < n)
        return true;
    for (size_t k = 0; k < PIECES; k++) {
        plan_part(bands, scratch, way, at + (2 * k + 1) * n / (2 * PIECES), n / SHARE, plan);
        bits += plan->bits - plan->codes.head_bits;
    }
    return bits * (SHARE / PIECES) * 4 < (runs->bits - runs->codes.head_bits) * 3;
}

/* Plans a block in each way: the shortest plan, and in *chosen the way that it is of. The first is
 * of runs. Where what they leave takes few bits it is noise, which matches cost more than they
 * save, or a pattern: a quick coder finds out which. */
static const gf_deflate_plan *plan_block(const gf_png_bands *bands, gf_png_scratch *scratch,
                                         const gf_png_way *ways, unsigned count, size_t at,
                                         size_t n, const gf_png_way **chosen) {
    gf_deflate_plan *best = scratch->plan[0], *next = scratch->plan[1];
    *chosen = ways;
    plan_part(bands, scratch, ways, at, n, best);
    if (bands->effort == GF_PNG_FAST && count > 1 && !ways[1].known &&
        best->bits * 2 < best->literals * 7 &&
        !matches_pay(bands, scratch, best, &ways[count - 1], at, n))
        return best;
    for (unsigned i = 1; i < count; i++) {
        plan_part(bands, scratch, &ways[i], at, n, next);
        if (next->bits < best->bits) {
            gf_deflate_plan *swap = best;
            best = next;
            next = swap;
            *chosen = &ways[i];
        }
    }
    return best;
}

/* A filter goes with whole rows: of a band with several blocks all ways must be of one. */
static void code_ourselves(const gf_png_bands *bands, gf_png_scratch *scratch,
                           const gf_png_way *ways, unsigned count, gf_png_band *band) {
    const gf_deflate_simd *simd = gf_deflate_simd_of(bands->isa);
    const size_t n = (size_t)band->filtered;
    gf_bit_writer out = {.at = band->out};
    band->adler = 1;
    for (size_t at = 0; at < n; at += GF_DEFLATE_BLOCK) {
        const size_t part = n - at < GF_DEFLATE_BLOCK ? n - at : GF_DEFLATE_BLOCK;
        const gf_png_way *way;
        const gf_deflate_plan *plan = plan_block(bands, scratch, ways, count, at, part, &way);
        const unsigned char *src = way->filtered + at;
        gf_deflate_write(simd, plan, src, part, band->last && at + part == n, &out);
        band->adler = isal_adler32(band->adler, src, part);
    }
    if (band->last)
        gf_align_bits(&out);
    else
        gf_deflate_sync(&out);
    band->size = (size_t)(out.at - band->out);
}

static void filter_band(const gf_png_bands *bands, gf_png_scratch *scratch, const gf_png_band *band,
                        gf_png_rule rule, unsigned char *dst) {
    gf_png_filter_rows(bands, band, rule, 0, (int64_t)band->count, scratch->row, dst);
}

static void code_fast(const gf_png_bands *bands, gf_png_scratch *scratch, gf_png_band *band) {
    gf_png_way ways[] = {{.filtered = scratch->filtered[0]},
                         {.filtered = scratch->filtered[0], .matches = true},
                         {.filtered = scratch->filtered[1], .matches = true}};
    unsigned count = 1;
    gf_png_samples samples;
    gf_png_take_samples(bands, band, scratch->filtered[0], &samples);
    filter_band(bands, scratch, band, gf_png_best_filter(&samples), scratch->filtered[0]);
    ways[1].known = gf_deflate_recurs(gf_deflate_simd_of(bands->isa), scratch->filtered[0],
                                      (size_t)band->filtered);
    if (gf_png_some_repeated(&samples)) {
        count = 2;
        if (band->filtered <= GF_DEFLATE_BLOCK) {
            filter_band(bands, scratch, band, GF_PNG_NONE, scratch->filtered[1]);
            count = 3;
        }
    } else if (ways[1].known) {
        count = 2;
    }
    code_ourselves(bands, scratch, ways, count, band);
}

/* ---- by zlib --------------------------------------------------------------------------------- */

/* Codes filtered rows that lie behind those of the context. Returns bytes written, 0 if zlib
 * fails. */
static size_t code_by_zlib(gf_png_scratch *scratch, const gf_png_band *band, size_t context,
                           const unsigned char *filtered, unsigned char *out, size_t room) {
    z_stream *zlib = &scratch->zlib;
    size_t left = (size_t)band->filtered, space = room;
    const size_t dictionary = context < GF_DEFLATE_WINDOW ? context : GF_DEFLATE_WINDOW;
    const unsigned char *src = filtered + context;
    if (deflateReset(zlib) != Z_OK)
        return 0;
    if (dictionary && deflateSetDictionary(zlib, src - dictionary, (uInt)dictionary) != Z_OK)
        return 0;
    zlib->next_in = src;
    zlib->next_out = out;
    const int end = band->last ? Z_FINISH : Z_SYNC_FLUSH;
    int result;
    do {
        const uInt in = left < ZLIB_MOST ? (uInt)left : ZLIB_MOST;
        const uInt to = space < ZLIB_MOST ? (uInt)space : ZLIB_MOST;
        zlib->avail_in = in;
        zlib->avail_out = to;
        result = deflate(zlib, in == left ? end : Z_NO_FLUSH);
        left -= in - zlib->avail_in;
        space -= to - zlib->avail_out;
    } while (result == Z_OK && (left || (band->last || !zlib->avail_out)) && space);
    const bool complete =
        band->last ? result == Z_STREAM_END : result == Z_OK && !left && zlib->avail_out;
    return complete ? room - space : 0;
}

/* Filters the context and the band as was chosen for them; returns the bytes of the context. */
static size_t filter_chosen(const gf_png_bands *bands, gf_png_scratch *scratch,
                            const gf_png_band *band) {
    const size_t context = (size_t)band->context * (bands->row_bytes + 1);
    gf_png_filter_rows(bands, band, band->above, -(int64_t)band->context, 0, scratch->row,
                       scratch->filtered[0]);
    filter_band(bands, scratch, band, band->rule, scratch->filtered[0] + context);
    return context;
}

static bool code_level(const gf_png_bands *bands, gf_png_scratch *scratch, gf_png_band *band) {
    const size_t context = filter_chosen(bands, scratch, band);
    band->size = code_by_zlib(scratch, band, context, scratch->filtered[0], band->out,
                              gf_png_band_bound(bands));
    band->adler = isal_adler32(1, scratch->filtered[0] + context, band->filtered);
    return band->size != 0;
}

/* Whatever is shortest: that differs from picture to picture. zlib, which takes most of the time,
 * is left out where little is repeated, unless the smallest file is wanted. */
static bool code_well(const gf_png_bands *bands, gf_png_scratch *scratch, gf_png_band *band) {
    const size_t context = filter_chosen(bands, scratch, band);
    const unsigned char *filtered = scratch->filtered[0];
    const gf_png_way ways[] = {{.filtered = filtered + context},
                               {.filtered = filtered + context, .matches = true}};
    code_ourselves(bands, scratch, ways, 2, band);
    if (!band->zlib)
        return true;
    const size_t size =
        code_by_zlib(scratch, band, context, filtered, scratch->other, gf_png_band_bound(bands));
    if (size != 0 && size < band->size) {
        memcpy(band->out, scratch->other, size);
        band->size = size;
    }
    return size != 0;
}

/* ---- choosing -------------------------------------------------------------------------------- */

/* What some rows from the middle of a band take, filtered by a rule. */
typedef struct gf_png_trial {
    size_t ours, zlibs; /* bytes; SIZE_MAX where zlib was not tried */
} gf_png_trial;

static gf_png_trial try_rule(const gf_png_bands *bands, gf_png_scratch *scratch,
                             const gf_png_band *band, gf_png_rule rule, bool zlib) {
    const size_t row = bands->row_bytes + 1;
    uint64_t rows = TRIED_BYTES / row;
    rows = rows < 2 ? 2 : rows;
    rows = rows < band->count ? rows : band->count;
    const int64_t from = (int64_t)((band->count - rows) / 2);
    unsigned char *filtered = scratch->filtered[0];
    gf_png_filter_rows(bands, band, rule, from, from + (int64_t)rows, scratch->row, filtered);
    const size_t all = (size_t)rows * row, n = all < GF_DEFLATE_BLOCK ? all : GF_DEFLATE_BLOCK;
    const gf_png_way ways[] = {{.filtered = filtered}, {.filtered = filtered, .matches = true}},
                     *way;
    gf_png_trial trial = {.ours =
                              (size_t)(plan_block(bands, scratch, ways, 2, 0, n, &way)->bits / 8),
                          .zlibs = SIZE_MAX};
    if (!zlib && !gf_deflate_recurs(gf_deflate_simd_of(bands->isa), filtered, n))
        return trial;
    const gf_png_band part = {.filtered = n, .last = true};
    const size_t size =
        code_by_zlib(scratch, &part, 0, filtered, scratch->other, gf_png_band_bound(bands));
    if (size)
        trial.zlibs = size;
    return trial;
}

void gf_png_band_choose(const gf_png_bands *bands, gf_png_scratch *scratch, gf_png_rule above,
                        gf_png_band *band) {
    band->above = above;
    if (bands->effort <= GF_PNG_LEVEL_9) {
        band->rule = (int)bands->effort >= LEVEL_OF_EACH ? GF_PNG_EACH
                     : bands->effort > GF_PNG_LEVEL_0    ? GF_PNG_SUB
                                                         : GF_PNG_NONE;
        band->above = band->rule;
        return;
    }
    gf_png_samples samples;
    gf_png_take_samples(bands, band, scratch->filtered[0], &samples);
    /* zlib takes most of the time. In noise it finds nothing that we do not. */
    const bool repeated = gf_png_some_repeated(&samples);
    const bool tried = repeated || bands->effort == GF_PNG_SMALL;
    const gf_png_rule rules[] = {gf_png_best_filter(&samples), GF_PNG_EACH, GF_PNG_NONE};
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const gf_png_trial trial = try_rule(bands, scratch, band, rules[i], tried);
        const size_t size = trial.ours < trial.zlibs ? trial.ours : trial.zlibs;
        if (size < least) {
            least = size;
            band->rule = rules[i];
            band->zlib = repeated || trial.zlibs <= trial.ours + trial.ours / 64;
        }
    }
}

bool gf_png_band_code(const gf_png_bands *bands, gf_png_scratch *scratch, gf_png_band *band) {
    band->filtered = band->count * (bands->row_bytes + 1);
    if (bands->effort <= GF_PNG_LEVEL_9)
        return code_level(bands, scratch, band);
    if (bands->effort != GF_PNG_FAST)
        return code_well(bands, scratch, band);
    code_fast(bands, scratch, band);
    return true;
}
