/* Writing PNG: strips of rows, filtered and coded by several threads. */
#ifndef GF_PNG_H
#define GF_PNG_H

#include "core/image.h"
#include "io/deflate.h"
#include "io/formats.h"
#include "io/png_filter.h"

/* What the user may choose, in the order of gf_compressions(). */
typedef enum gf_png_effort {
    GF_PNG_FAST,     /* one row filter a strip, Huffman codes, matches where they are plenty */
    GF_PNG_BALANCED, /* the better of that and of zlib, where that may pay */
    GF_PNG_SMALL,    /* the best of that and of zlib's slowest */
    GF_PNG_STORED    /* "none": rows as they are, in stored blocks */
} gf_png_effort;

/* Does this effort try zlib, and choose each strip's filter for it beforehand? */
static inline bool gf_png_asks_zlib(gf_png_effort effort) {
    return effort == GF_PNG_BALANCED || effort == GF_PNG_SMALL;
}

/* Estimated nanoseconds of one core for a sample. */
double gf_png_encode_cost(const char *compression);

enum {
    GF_PNG_IDAT_MAX = 1 << 30, /* bytes of one chunk; the format's limit is 2^31 - 1 */
    GF_PNG_IDAT_FRONT = 8,     /* bytes in front of a chunk's and behind, which are overwritten */
    GF_PNG_IDAT_BEHIND = 4
};

/* Writes `size` bytes at `data`, which lie in memory already, as chunks of at most `most` bytes. */
gf_status gf_png_idat_write_parts(gf_output *output, unsigned char *data, size_t size, size_t max,
                                  gf_error *error);

/* ---- rows ------------------------------------------------------------------------------------ */

/* How one image is cut into strips. */
typedef struct gf_png_strips {
    gf_png_effort effort;
    gf_isa isa;
    size_t row_bytes;  /* of a row's samples */
    size_t row_stride; /* of rows in memory: a multiple of 64, with GF_PNG_PAD bytes in front */
    size_t pixel;      /* bytes of a pixel */
    uint64_t rows;     /* of a strip, at most */
    uint64_t context;  /* rows above a strip that its matches may reach into, at most */
} gf_png_strips;

enum { GF_PNG_PAD = 64 };

void gf_png_strips_init(const gf_format *format, gf_png_effort effort, gf_isa isa,
                        gf_png_strips *strips);

/* How rows are filtered: all by one of PNG's filters, or each by whichever leaves the smallest
 * residuals, as libpng does. */
typedef unsigned gf_png_rule;
enum { GF_PNG_EACH = GF_PNG_FILTERS };

/* A strip, as it lies in memory: a row that is only looked at as the one above (zeros at the top of
 * the image), `context` rows before the strip (as many as strips->context, fewer only near the
 * top), and its own. */
typedef struct gf_png_strip {
    const unsigned char *rows; /* samples of the first of them, with GF_PNG_PAD zeros in front */
    uint64_t context, count;
    bool last;               /* of the image */
    gf_png_rule rule, above; /* of the strip, and of its context: set by gf_png_strip_choose */
    bool zlib;               /* is zlib worth trying? Likewise */
    unsigned char *out;      /* of gf_png_strip_bound bytes */
    size_t size;             /* of what was written there */
    uint32_t adler;          /* Adler-32 of the filtered bytes alone */
    uint64_t filtered;       /* how many these are */
} gf_png_strip;

/* Row r of the strip; those before it have negative numbers, and there is one above each. */
static inline const unsigned char *gf_png_row(const gf_png_strips *strips,
                                              const gf_png_strip *strip, int64_t r) {
    return strip->rows + (size_t)((int64_t)strip->context + 1 + r) * strips->row_stride;
}

/* Writes rows from to to - 1 by the rule, each behind its filter's number. `room` has a row. */
void gf_png_filter_rows(const gf_png_strips *strips, const gf_png_strip *strip, gf_png_rule rule,
                        int64_t from, int64_t to, unsigned char *const capacity[GF_PNG_FILTERS],
                        unsigned char *dst);

/* What a sixteenth of a strip tells of it. */
typedef struct gf_png_samples {
    uint64_t total;                /* bytes looked at */
    uint64_t cost[GF_PNG_FILTERS]; /* bytes, by the entropy of the residuals */
    uint64_t repeated;             /* of them, in words that are as some before or above */
} gf_png_samples;

/* `room` has as many bytes as the strip. */
void gf_png_take_samples(const gf_png_strips *strips, const gf_png_strip *strip,
                         unsigned char *capacity, gf_png_samples *samples);
/* The least, but those that are dearer to undo must be better by 2 %. */
gf_png_filter gf_png_best_filter(const gf_png_samples *samples);
/* Is it worth looking for matches? */
static inline bool gf_png_some_repeated(const gf_png_samples *samples) {
    return samples->repeated > samples->total / 4;
}

/* ---- strips -----------------------------------------------------------------------------------
 */

/* A strip of image rows as a piece of a PNG's zlib stream. Pieces depend on the strip's rows and a
 * few above it alone, so that any number of threads makes the same file. */

/* What one thread needs, for strips that outlive it; NULL if there is no memory. */
typedef struct gf_png_scratch gf_png_scratch;
gf_png_scratch *gf_png_scratch_new(const gf_png_strips *strips);
void gf_png_scratch_free(gf_png_scratch *scratch);
size_t gf_png_scratch_bytes(const gf_png_strips *strips);

/* Fills in strip->rule, in image order: where matches reach into the strip before, that must be
 * filtered as it was. `above` is the rule of the strip before. */
void gf_png_strip_choose(gf_png_scratch *scratch, gf_png_rule above, gf_png_strip *strip);

size_t gf_png_strip_bound(const gf_png_strips *strips);
/* False if zlib had no memory. */
bool gf_png_strip_code(gf_png_scratch *scratch, gf_png_strip *strip);

/* ---- the sink -------------------------------------------------------------------------------- */

/* gf_png_sink_open for a level of SIMD. Of setup->threads as many are used as half of max_memory is
 * enough for, beside what the first one needs. What that one needs is not counted, but for wide
 * rows: refused if it is over max_memory. */
gf_status gf_png_sink_open_for(gf_isa isa, const gf_sink_setup *setup, gf_sink **sink,
                               gf_error *error);

#endif
