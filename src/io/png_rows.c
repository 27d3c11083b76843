#include "io/png_rows.h"

#include <string.h>

/* About so many bytes a band: few enough for a core's cache and for many cores to share a small
 * image, enough that a code's description (about 100 bytes) does not count. Where the smaller file
 * is worth more time, a band is an eighth of the image, within limits. */
enum { BAND_BYTES = 1 << 18, MOST_BAND_BYTES = 1 << 21, PARTS = 8 };

void gf_png_bands_init(const gf_format *format, gf_png_effort effort, gf_isa isa,
                       gf_png_bands *bands) {
    const size_t row = gf_row_bytes(format), filtered = row + 1;
    uint64_t bytes = BAND_BYTES;
    if (effort != GF_PNG_FAST)
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
    if (effort != GF_PNG_FAST)
        bands->context = (GF_DEFLATE_WINDOW + filtered - 1) / filtered;
}

/* ---- filtering ------------------------------------------------------------------------------- */

static unsigned best_of_row(const gf_png_bands *bands, const unsigned char *row,
                            unsigned char *const room[GF_PNG_FILTERS]) {
    const gf_png_filter_simd *simd = gf_png_filter_simd_of(bands->isa);
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
    const gf_png_filter_simd *simd = gf_png_filter_simd_of(bands->isa);
    for (int64_t r = from; r < to; r++, dst += bands->row_bytes + 1) {
        const unsigned char *row = gf_png_row(bands, band, r);
        const unsigned filter = rule == GF_PNG_EACH ? best_of_row(bands, row, room) : rule;
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
static uint64_t log2_256(uint32_t x) {
    const unsigned whole = 31u - (unsigned)__builtin_clz(x);
    const uint64_t part = whole > 8 ? (x >> (whole - 8)) & 255 : (x << (8 - whole)) & 255;
    /* log2(1 + t) is t + 0.34 t (1 - t), about. */
    return 256 * whole + part + (part * (256 - part) * 87 >> 16);
}

/* Bytes that n residuals so distributed need, at best. */
static uint64_t entropy(const uint32_t counts[256], uint64_t n) {
    uint64_t bits = n * log2_256((uint32_t)n);
    for (int b = 0; b < 256; b++)
        if (counts[b])
            bits -= counts[b] * log2_256(counts[b]);
    return bits / (8 * 256);
}

/* A sixteenth of the band, in pieces from all over it. */
enum { PIECE = 1024, APART = 16, WORDS_APART = 20 /* no power of 2: patterns */ };

/* Samples of piece k and how many they are, 0 behind the last. Steps that fall on the same columns
 * again begin one further on, and steps over rows are not even: neither a margin nor a pattern
 * counts for more than it is of the picture. */
static size_t piece_at(const gf_png_bands *bands, const gf_png_band *band, uint64_t k,
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
static uint64_t count_repeats(const unsigned char *row, const unsigned char *above, size_t n,
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
static size_t sample_filter(const gf_png_bands *bands, const gf_png_band *band, unsigned filter,
                            unsigned char *dst) {
    const gf_png_filter_simd *simd = gf_png_filter_simd_of(bands->isa);
    const unsigned char *row;
    size_t total = 0, n;
    for (uint64_t k = 0; (n = piece_at(bands, band, k, &row)); k++, total += n)
        simd->filter((gf_png_filter)filter, dst + total, row, row - bands->row_stride, n,
                     bands->pixel);
    return total;
}

static uint64_t sample_repeats(const gf_png_bands *bands, const gf_png_band *band) {
    const unsigned char *row;
    uint64_t repeated = 0;
    size_t n;
    for (uint64_t k = 0; (n = piece_at(bands, band, k, &row)); k++)
        repeated += count_repeats(row, row - bands->row_stride, n, bands->pixel);
    return repeated;
}

void gf_png_take_samples(const gf_png_bands *bands, const gf_png_band *band, unsigned char *room,
                         gf_png_samples *samples) {
    const gf_deflate_simd *simd = gf_deflate_simd_of(bands->isa);
    for (unsigned f = 0; f < GF_PNG_FILTERS; f++) {
        gf_byte_counts counts = {{{0}}};
        uint32_t sums[256];
        samples->total = sample_filter(bands, band, f, room);
        simd->count(room, (size_t)samples->total, &counts);
        gf_sum_byte_counts(&counts, sums);
        samples->cost[f] = entropy(sums, samples->total);
    }
    /* Of rows too short for a word nothing is known. */
    samples->repeated = bands->row_bytes < 4 ? samples->total : sample_repeats(bands, band);
}

gf_png_filter gf_png_best_filter(const gf_png_samples *samples) {
    unsigned best = GF_PNG_NONE;
    for (unsigned f = 1; f < GF_PNG_FILTERS; f++)
        if (samples->cost[f] + samples->cost[f] / 50 < samples->cost[best])
            best = f;
    return (gf_png_filter)best;
}
