/* Bands of rows on their way into a PNG: what is worth knowing about them beforehand, their
 * filters, and how they are coded. */
#define ZLIB_CONST /* what it reads it does not write */

#include "io/png.h"

#include <isa-l/igzip_lib.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* About so many bytes a band: few enough for a core's cache and for many cores to share a small
 * image, enough that a code's description (about 100 bytes) does not count. Where the smaller file
 * is worth more time, a band is an eighth of the image, within limits. */
enum { BAND_BYTES = 1 << 18, MOST_BAND_BYTES = 1 << 21, PARTS = 8 };

void gf_png_bands_init(const gf_format *format, gf_png_effort effort, gf_isa isa,
                       gf_png_bands *bands) {
    const size_t row = gf_row_bytes(format), filtered = row + 1;
    uint64_t bytes = BAND_BYTES;
    if (gf_png_asks_zlib(effort))
        while (bytes < MOST_BAND_BYTES && bytes * PARTS < filtered * format->height)
            bytes *= 2;
    const uint64_t rows = bytes / filtered;
    *bands = (gf_png_bands){.effort = effort,
                            .isa = isa,
                            .row_bytes = row,
                            .row_stride = (row + 2 * (size_t)GF_PNG_PAD - 1) & ~(size_t)63,
                            .pixel = format->channels * gf_type_bytes(format->type),
                            .rows = rows ? rows : 1,
                            .context = 0};
    if (bands->rows > format->height)
        bands->rows = format->height;
    if (gf_png_asks_zlib(effort))
        bands->context = (GF_DEFLATE_WINDOW + filtered - 1) / filtered;
}

/* ---- filtering ------------------------------------------------------------------------------- */

static unsigned band_best_of_row(const gf_png_bands *bands, const unsigned char *row,
                                 unsigned char *const room[GF_PNG_FILTERS]) {
    const gf_png_simd *simd = gf_png_simd_of(bands->isa);
    unsigned best = GF_PNG_NONE;
    uint64_t least = UINT64_MAX;
    for (unsigned f = 0; f < GF_PNG_FILTERS; f++) {
        simd->filter((gf_png_filter)f, room[f], row, row - bands->row_stride, bands->row_bytes,
                     bands->pixel);
        const uint64_t sum = simd->magnitude(room[f], bands->row_bytes);
        if (sum < least) {
            least = sum;
            best = f;
        }
    }
    return best;
}

void gf_png_filter_rows(const gf_png_bands *bands, const gf_png_band *band, gf_png_rule rule,
                        int64_t from, int64_t to, unsigned char *const room[GF_PNG_FILTERS],
                        unsigned char *dst) {
    const gf_png_simd *simd = gf_png_simd_of(bands->isa);
    for (int64_t r = from; r < to; r++, dst += bands->row_bytes + 1) {
        const unsigned char *row = gf_png_row(bands, band, r);
        const unsigned filter = rule == GF_PNG_EACH ? band_best_of_row(bands, row, room) : rule;
        dst[0] = (unsigned char)filter;
        if (rule == GF_PNG_EACH)
            memcpy(dst + 1, room[filter], bands->row_bytes);
        else
            simd->filter((gf_png_filter)filter, dst + 1, row, row - bands->row_stride,
                         bands->row_bytes, bands->pixel);
    }
}

/* ---- samples --------------------------------------------------------------------------------- */

/* 256 * log2(x), x > 0: near enough, and the same everywhere. */
static uint64_t band_log2(uint32_t x) {
    const unsigned whole = 31u - (unsigned)__builtin_clz(x);
    const uint64_t part = whole > 8 ? (x >> (whole - 8)) & 255 : (x << (8 - whole)) & 255;
    /* log2(1 + t) is t + 0.34 t (1 - t), about. */
    return 256 * whole + part + (part * (256 - part) * 87 >> 16);
}

/* Bytes that n residuals so distributed need, at best. */
static uint64_t band_entropy(const uint32_t counts[256], uint64_t n) {
    uint64_t bits = n * band_log2((uint32_t)n);
    for (int b = 0; b < 256; b++)
        if (counts[b])
            bits -= counts[b] * band_log2(counts[b]);
    return bits / (8 * 256);
}

/* A sixteenth of the band, in pieces from all over it. */
enum { PIECE = 1024, APART = 16, WORDS_APART = 20 /* no power of 2: patterns */ };

/* Samples of piece k and how many they are, 0 behind the last. Steps that fall on the same columns
 * again begin one further on, and steps over rows are not even: neither a margin nor a pattern
 * counts for more than it is of the picture. */
static size_t band_piece(const gf_png_bands *bands, const gf_png_band *band, uint64_t k,
                         const unsigned char **row) {
    const uint64_t pieces = (bands->row_bytes + PIECE - 1) / PIECE;
    const uint64_t step = pieces < APART ? APART / pieces : 1, y = k * APART / pieces + k % step;
    const uint64_t shared = pieces % APART ? pieces & -pieces : APART;
    const size_t at = (size_t)((k * APART + k * shared / pieces) % pieces) * PIECE;
    if (y >= band->count)
        return 0;
    *row = gf_png_row(bands, band, (int64_t)y) + at;
    return bands->row_bytes - at < PIECE ? bands->row_bytes - at : PIECE;
}

/* Counts words that are as the one above, or as one up to 8 pixels to the left: as in flat areas,
 * and in patterns such as dithering or the squares behind what is transparent. */
static uint64_t band_count_repeats(const unsigned char *row, const unsigned char *above, size_t n,
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
static size_t band_sample_filter(const gf_png_bands *bands, const gf_png_band *band,
                                 unsigned filter, unsigned char *dst) {
    const gf_png_simd *simd = gf_png_simd_of(bands->isa);
    const unsigned char *row;
    size_t total = 0, n;
    for (uint64_t k = 0; (n = band_piece(bands, band, k, &row)); k++, total += n)
        simd->filter((gf_png_filter)filter, dst + total, row, row - bands->row_stride, n,
                     bands->pixel);
    return total;
}

static uint64_t band_sample_repeats(const gf_png_bands *bands, const gf_png_band *band) {
    const unsigned char *row;
    uint64_t repeated = 0;
    size_t n;
    for (uint64_t k = 0; (n = band_piece(bands, band, k, &row)); k++)
        repeated += band_count_repeats(row, row - bands->row_stride, n, bands->pixel);
    return repeated;
}

void gf_png_take_samples(const gf_png_bands *bands, const gf_png_band *band, unsigned char *room,
                         gf_png_samples *samples) {
    const gf_deflate_simd *simd = gf_deflate_simd_of(bands->isa);
    for (unsigned f = 0; f < GF_PNG_FILTERS; f++) {
        gf_byte_counts counts = {{{0}}};
        uint32_t sums[256];
        samples->total = band_sample_filter(bands, band, f, room);
        simd->count(room, (size_t)samples->total, &counts);
        gf_sum_byte_counts(&counts, sums);
        samples->cost[f] = band_entropy(sums, samples->total);
    }
    /* Of rows too short for a word nothing is known. */
    samples->repeated = bands->row_bytes < 4 ? samples->total : band_sample_repeats(bands, band);
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
    ZLIB_MOST = 1 << 30   /* zlib counts in 32 bits */
};

struct gf_png_scratch {
    const gf_png_bands *bands;
    const gf_deflate_simd *simd;
    unsigned char *filtered[WAYS]; /* rows behind their filter bytes, with the context's in front */
    unsigned char *row[GF_PNG_FILTERS];
    unsigned char *other; /* a second way to write the band */
    z_stream zlib;
    bool zlib_open;
    gf_deflate_plan plan[2]; /* from here on large, and not cleared */
    gf_deflate_seen seen;
};

size_t gf_png_band_bound(const gf_png_bands *bands) {
    const size_t n = (bands->row_bytes + 1) * (size_t)bands->rows;
    const size_t zlib = deflateBound(Z_NULL, (uLong)n) + 16;
    const size_t ours = n + (n / GF_DEFLATE_BLOCK + 1) * gf_deflate_bound(0) + n / 4096 + 64;
    return gf_png_asks_zlib(bands->effort) && zlib > ours ? zlib : ours;
}

/* What an effort does not need is not allocated: rows may be very long. */
typedef struct band_needs {
    size_t filtered[WAYS], row, other; /* bytes; 0 for none */
} band_needs;

static band_needs band_find_needs(const gf_png_bands *bands) {
    band_needs needs = {{(bands->row_bytes + 1) * (size_t)(bands->rows + bands->context)}, 0, 0};
    if (gf_png_asks_zlib(bands->effort)) {
        needs.row = bands->row_bytes + 1;
        needs.other = gf_png_band_bound(bands);
    } else if (bands->effort == GF_PNG_FAST && bands->row_bytes + 1 <= GF_DEFLATE_BLOCK) {
        needs.filtered[1] = needs.filtered[0];
    }
    return needs;
}

size_t gf_png_scratch_bytes(const gf_png_bands *bands) {
    const band_needs needs = band_find_needs(bands);
    return sizeof(gf_png_scratch) + needs.filtered[0] + needs.filtered[1] +
           GF_PNG_FILTERS * needs.row + needs.other +
           (gf_png_asks_zlib(bands->effort) ? ZLIB_BYTES : 0);
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

static bool band_allocate(gf_png_scratch *scratch) {
    const gf_png_bands *bands = scratch->bands;
    const band_needs needs = band_find_needs(bands);
    for (int i = 0; i < WAYS; i++)
        if (needs.filtered[i] && !(scratch->filtered[i] = malloc(needs.filtered[i])))
            return false;
    for (int f = 0; f < GF_PNG_FILTERS; f++)
        if (needs.row && !(scratch->row[f] = malloc(needs.row)))
            return false;
    if (!gf_png_asks_zlib(bands->effort))
        return true;
    scratch->other = malloc(needs.other);
    scratch->zlib_open =
        scratch->other && deflateInit2(&scratch->zlib, bands->effort == GF_PNG_SMALL ? 9 : 6,
                                       Z_DEFLATED, -15, 9, Z_FILTERED) == Z_OK;
    return scratch->zlib_open;
}

gf_png_scratch *gf_png_scratch_new(const gf_png_bands *bands) {
    gf_png_scratch *scratch = malloc(sizeof *scratch);
    if (!scratch)
        return NULL;
    memset(scratch, 0, offsetof(gf_png_scratch, plan));
    scratch->bands = bands;
    scratch->simd = gf_deflate_simd_of(bands->isa);
    if (band_allocate(scratch))
        return scratch;
    gf_png_scratch_free(scratch);
    return NULL;
}

/* ---- by our own coder ------------------------------------------------------------------------ */

/* A way to code a block: what is left by which filter, searched for runs or for matches. */
typedef struct band_way {
    const unsigned char *filtered; /* of the whole band */
    bool matches, known;           /* known: that they pay */
} band_way;

static void band_plan_part(gf_png_scratch *scratch, const band_way *way, size_t at, size_t n,
                           gf_deflate_plan *plan) {
    if (way->matches)
        gf_deflate_plan_matches(way->filtered + at, n, scratch->bands->pixel,
                                scratch->bands->row_bytes + 1, &scratch->seen, plan);
    else
        gf_deflate_plan_runs(scratch->simd, way->filtered + at, n, plan);
}

/* Would matches save a quarter of what runs take? Tried on a sixteenth of the block, in pieces. */
static bool band_matches_pay(gf_png_scratch *scratch, const gf_deflate_plan *runs,
                             const band_way *way, size_t at, size_t n) {
    enum { PIECES = 4, SHARE = 64 };
    gf_deflate_plan *plan = &scratch->plan[1];
    uint64_t bits = 0;
    /* Little is left where much is repeated, which matches are quick to go through. */
    if (runs->bits * 3 < n)
        return true;
    for (size_t k = 0; k < PIECES; k++) {
        band_plan_part(scratch, way, at + (2 * k + 1) * n / (2 * PIECES), n / SHARE, plan);
        bits += plan->bits - plan->codes.head_bits;
    }
    return bits * (SHARE / PIECES) * 4 < (runs->bits - runs->codes.head_bits) * 3;
}

/* Plans a block in each way: the shortest plan, and in *chosen the way that it is of. The first is
 * of runs. Where what they leave takes few bits it is noise, which matches cost more than they
 * save, or a pattern: a quick coder finds out which. */
static const gf_deflate_plan *band_plan_block(gf_png_scratch *scratch, const band_way *ways,
                                              unsigned count, size_t at, size_t n,
                                              const band_way **chosen) {
    gf_deflate_plan *best = &scratch->plan[0], *next = &scratch->plan[1];
    *chosen = ways;
    band_plan_part(scratch, ways, at, n, best);
    if (scratch->bands->effort == GF_PNG_FAST && count > 1 && !ways[1].known &&
        best->bits * 2 < best->literals * 7 &&
        !band_matches_pay(scratch, best, &ways[count - 1], at, n))
        return best;
    for (unsigned i = 1; i < count; i++) {
        band_plan_part(scratch, &ways[i], at, n, next);
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
static void band_code_ourselves(gf_png_scratch *scratch, const band_way *ways, unsigned count,
                                gf_png_band *band) {
    const size_t n = (size_t)band->filtered;
    gf_bit_writer out = {.at = band->out};
    band->adler = 1;
    for (size_t at = 0; at < n; at += GF_DEFLATE_BLOCK) {
        const size_t part = n - at < GF_DEFLATE_BLOCK ? n - at : GF_DEFLATE_BLOCK;
        const band_way *way;
        const gf_deflate_plan *plan = band_plan_block(scratch, ways, count, at, part, &way);
        const unsigned char *src = way->filtered + at;
        gf_deflate_write(scratch->simd, plan, src, part, band->last && at + part == n, &out);
        band->adler = isal_adler32(band->adler, src, part);
    }
    if (band->last)
        gf_align_bits(&out);
    else
        gf_deflate_sync(&out);
    band->size = (size_t)(out.at - band->out);
}

static void band_filter(gf_png_scratch *scratch, const gf_png_band *band, gf_png_rule rule,
                        unsigned char *dst) {
    gf_png_filter_rows(scratch->bands, band, rule, 0, (int64_t)band->count, scratch->row, dst);
}

static void band_code_stored(gf_png_scratch *scratch, gf_png_band *band) {
    gf_bit_writer out = {.at = band->out};
    band_filter(scratch, band, GF_PNG_NONE, scratch->filtered[0]);
    gf_deflate_write_stored(scratch->filtered[0], (size_t)band->filtered, band->last, &out);
    band->adler = isal_adler32(1, scratch->filtered[0], band->filtered);
    band->size = (size_t)(out.at - band->out);
}

static void band_code_fast(gf_png_scratch *scratch, gf_png_band *band) {
    band_way ways[] = {{.filtered = scratch->filtered[0]},
                       {.filtered = scratch->filtered[0], .matches = true},
                       {.filtered = scratch->filtered[1], .matches = true}};
    unsigned count = 1;
    gf_png_samples samples;
    gf_png_take_samples(scratch->bands, band, scratch->filtered[0], &samples);
    band_filter(scratch, band, gf_png_best_filter(&samples), scratch->filtered[0]);
    ways[1].known = gf_deflate_recurs(scratch->simd, scratch->filtered[0], (size_t)band->filtered);
    if (gf_png_some_repeated(&samples)) {
        count = 2;
        if (band->filtered <= GF_DEFLATE_BLOCK) {
            band_filter(scratch, band, GF_PNG_NONE, scratch->filtered[1]);
            count = 3;
        }
    } else if (ways[1].known) {
        count = 2;
    }
    band_code_ourselves(scratch, ways, count, band);
}

/* ---- by zlib --------------------------------------------------------------------------------- */

/* Codes filtered rows that lie behind those of the context. Returns bytes written, 0 if zlib
 * fails. */
static size_t band_code_by_zlib(gf_png_scratch *scratch, const gf_png_band *band, size_t context,
                                const unsigned char *filtered, unsigned char *out) {
    const size_t room = gf_png_band_bound(scratch->bands);
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
static size_t band_filter_chosen(gf_png_scratch *scratch, const gf_png_band *band) {
    const size_t context = (size_t)band->context * (scratch->bands->row_bytes + 1);
    gf_png_filter_rows(scratch->bands, band, band->above, -(int64_t)band->context, 0, scratch->row,
                       scratch->filtered[0]);
    band_filter(scratch, band, band->rule, scratch->filtered[0] + context);
    return context;
}

/* Whatever is shortest: that differs from picture to picture. zlib, which takes most of the time,
 * is left out where little is repeated, unless the smallest file is wanted. */
static bool band_code_well(gf_png_scratch *scratch, gf_png_band *band) {
    const size_t context = band_filter_chosen(scratch, band);
    const unsigned char *filtered = scratch->filtered[0];
    const band_way ways[] = {{.filtered = filtered + context},
                             {.filtered = filtered + context, .matches = true}};
    band_code_ourselves(scratch, ways, 2, band);
    if (!band->zlib)
        return true;
    const size_t size = band_code_by_zlib(scratch, band, context, filtered, scratch->other);
    if (size != 0 && size < band->size) {
        memcpy(band->out, scratch->other, size);
        band->size = size;
    }
    return size != 0;
}

/* ---- choosing -------------------------------------------------------------------------------- */

/* What some rows from the middle of a band take, filtered by a rule. */
typedef struct band_trial {
    size_t ours, zlibs; /* bytes; SIZE_MAX where zlib was not tried */
} band_trial;

static band_trial band_try_rule(gf_png_scratch *scratch, const gf_png_band *band, gf_png_rule rule,
                                bool zlib) {
    const size_t row = scratch->bands->row_bytes + 1;
    uint64_t rows = TRIED_BYTES / row;
    rows = rows < 2 ? 2 : rows;
    rows = rows < band->count ? rows : band->count;
    const int64_t from = (int64_t)((band->count - rows) / 2);
    unsigned char *filtered = scratch->filtered[0];
    gf_png_filter_rows(scratch->bands, band, rule, from, from + (int64_t)rows, scratch->row,
                       filtered);
    const size_t all = (size_t)rows * row, n = all < GF_DEFLATE_BLOCK ? all : GF_DEFLATE_BLOCK;
    const band_way ways[] = {{.filtered = filtered}, {.filtered = filtered, .matches = true}}, *way;
    band_trial trial = {.ours = (size_t)(band_plan_block(scratch, ways, 2, 0, n, &way)->bits / 8),
                        .zlibs = SIZE_MAX};
    if (!zlib && !gf_deflate_recurs(scratch->simd, filtered, n))
        return trial;
    const gf_png_band part = {.filtered = n, .last = true};
    const size_t size = band_code_by_zlib(scratch, &part, 0, filtered, scratch->other);
    if (size)
        trial.zlibs = size;
    return trial;
}

void gf_png_band_choose(gf_png_scratch *scratch, gf_png_rule above, gf_png_band *band) {
    band->above = above;
    gf_png_samples samples;
    gf_png_take_samples(scratch->bands, band, scratch->filtered[0], &samples);
    /* zlib takes most of the time. In noise it finds nothing that we do not. */
    const bool repeated = gf_png_some_repeated(&samples);
    const bool tried = repeated || scratch->bands->effort == GF_PNG_SMALL;
    const gf_png_rule rules[] = {gf_png_best_filter(&samples), GF_PNG_EACH, GF_PNG_NONE};
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const band_trial trial = band_try_rule(scratch, band, rules[i], tried);
        const size_t size = trial.ours < trial.zlibs ? trial.ours : trial.zlibs;
        if (size < least) {
            least = size;
            band->rule = rules[i];
            band->zlib = repeated || trial.zlibs <= trial.ours + trial.ours / 64;
        }
    }
}

bool gf_png_band_code(gf_png_scratch *scratch, gf_png_band *band) {
    band->filtered = band->count * (scratch->bands->row_bytes + 1);
    if (gf_png_asks_zlib(scratch->bands->effort))
        return band_code_well(scratch, band);
    (scratch->bands->effort == GF_PNG_STORED ? band_code_stored : band_code_fast)(scratch, band);
    return true;
}
