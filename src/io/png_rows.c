#include "io/png_rows.h"

#include <string.h>

/* About so many bytes a band: few enough for a core's cache and for many cores to share a small
 * image, enough that a code's description (about 100 bytes) does not count. Where the smaller file
 * is worth more time, a band is an eighth of the image, within limits. */
enum { BAND_BYTES = 1 << 18, MOST_BAND_BYTES = 1 << 21, PARTS = 8 };

const char *const *gf_compressions(void) {
    static const char *const names[] = {"fast", "balanced", "small", "0", "1", "2", "3",
                                        "4",    "5",        "6",     "7", "8", "9", NULL};
    return names;
}

bool gf_png_effort_of(const char *name, gf_png_effort *effort) {
    *effort = GF_PNG_FAST;
    if (!name)
        return true;
    for (int i = 0; gf_compressions()[i]; i++)
        if (strcmp(name, gf_compressions()[i]) == 0) {
            *effort = (gf_png_effort)(i < 3 ? GF_PNG_FAST + i : i - 3);
            return true;
        }
    return false;
}

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
enum { PIECE = 1024, APART = 16 };

static uint64_t count_repeats(const unsigned char *row, const unsigned char *above, size_t n,
                              size_t pixel) {
    uint64_t repeated = 0;
    for (size_t i = 0; i + 4 <= n; i += 16) {
        uint32_t here, left, up;
        memcpy(&here, row + i, 4);
        memcpy(&left, row + i - pixel, 4);
        memcpy(&up, above + i, 4);
        repeated += here == left || here == up ? 16 : 0;
    }
    return repeated;
}

/* Gathers the pieces' residuals of one filter at dst; returns how many. */
static size_t sample_filter(const gf_png_bands *bands, const gf_png_band *band, unsigned filter,
                            unsigned char *dst) {
    const gf_png_filter_simd *simd = gf_png_filter_simd_of(bands->isa);
    const size_t pieces = (bands->row_bytes + PIECE - 1) / PIECE;
    size_t total = 0;
    for (uint64_t p = 0, end = band->count * pieces; p < end; p += APART) {
        const size_t at = (size_t)(p % pieces) * PIECE;
        const size_t n = bands->row_bytes - at < PIECE ? bands->row_bytes - at : PIECE;
        const unsigned char *row = gf_png_row(bands, band, (int64_t)(p / pieces)) + at;
        simd->filter((gf_png_filter)filter, dst + total, row, row - bands->row_stride, n,
                     bands->pixel);
        total += n;
    }
    return total;
}

static uint64_t sample_repeats(const gf_png_bands *bands, const gf_png_band *band) {
    const size_t pieces = (bands->row_bytes + PIECE - 1) / PIECE;
    uint64_t repeated = 0;
    for (uint64_t p = 0, end = band->count * pieces; p < end; p += APART) {
        const size_t at = (size_t)(p % pieces) * PIECE;
        const size_t n = bands->row_bytes - at < PIECE ? bands->row_bytes - at : PIECE;
        const unsigned char *row = gf_png_row(bands, band, (int64_t)(p / pieces)) + at;
        repeated += count_repeats(row, row - bands->row_stride, n, bands->pixel);
    }
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
    samples->repeated = sample_repeats(bands, band);
}

gf_png_filter gf_png_best_filter(const gf_png_samples *samples) {
    unsigned best = GF_PNG_NONE;
    for (unsigned f = 1; f < GF_PNG_FILTERS; f++)
        if (samples->cost[f] + samples->cost[f] / 50 < samples->cost[best])
            best = f;
    return (gf_png_filter)best;
}
