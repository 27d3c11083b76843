/* Strips of rows, filtered and compressed: the encoder of PNG, and of TIFF with Deflate. */
#ifndef GF_STRIP_H
#define GF_STRIP_H

#include "core/image.h"
#include "io/flate/deflate.h"
#include "io/strip/probe.h"

/* Compression efforts, in the order of gf_compressions(). */
typedef enum gf_png_effort {
    GF_PNG_FAST,     /* one filter type per strip, Huffman codes, matches where they are frequent */
    GF_PNG_BALANCED, /* the smaller of the built-in encoder and zlib level 6, where zlib may win */
    GF_PNG_SMALL,    /* as balanced, with zlib level 9 */
    GF_PNG_STORED    /* "none": unfiltered rows in stored blocks */
} gf_png_effort;

/* Return true if the effort includes zlib. Filters are then chosen before a strip is encoded. */
static inline bool gf_png_tries_zlib(gf_png_effort effort) {
    return effort == GF_PNG_BALANCED || effort == GF_PNG_SMALL;
}

/* Prediction of samples. */
typedef enum gf_predictor {
    GF_PREDICT_PNG, /* each row starts with the type of its filter */
    /* TIFF: strips are independent streams. */
    GF_PREDICT_DIFFERENCE, /* difference from the sample of the same channel to the left */
    GF_PREDICT_FLOAT       /* the same for each byte of f32 samples, which are grouped by weight:
                              first the highest bytes of all samples of the row */
} gf_predictor;

/* Division of an image into strips. */
typedef struct gf_png_strips {
    gf_png_effort effort;
    gf_isa isa;
    gf_predictor predictor;
    size_t filtered_bytes; /* bytes per filtered row */
    size_t row_bytes;      /* bytes of samples per row */
    size_t row_stride;     /* from row to row in memory: a multiple of 64, with GF_PNG_PAD bytes
                              before each row */
    size_t bpp;            /* bytes per pixel */
    size_t sample;         /* bytes per sample */
    uint64_t rows;         /* maximum rows per strip */
    uint64_t context;      /* maximum rows above a strip that its matches may reference */
} gf_png_strips;

enum { GF_PNG_PAD = 64 };

void gf_png_strips_init(const gf_format *format, gf_png_effort effort, gf_isa isa,
                        gf_png_strips *strips);
/* As gf_png_strips_init, for the strips of a TIFF. Their rows have samples in native order. */
void gf_tiff_strips_init(const gf_format *format, gf_isa isa, gf_png_strips *strips);

/* Filter types of rows: one type for all rows, or GF_PNG_ADAPTIVE: per row, the type with the
 * smallest sum of absolute residuals, as in libpng. */
typedef unsigned gf_png_rule;
enum { GF_PNG_ADAPTIVE = GF_PNG_FILTERS };

/* A strip in memory: one row above, used only for prediction (zeros at the top of the image), then
 * `context` rows (strips->context, fewer near the top), then the rows of the strip. */
typedef struct gf_png_strip {
    const unsigned char *rows; /* samples of the first of these rows, after GF_PNG_PAD zeros */
    uint64_t context, count;
    bool last;                /* last strip of the image */
    gf_png_rule rule;         /* set by gf_png_strip_choose */
    gf_png_rule context_rule; /* rule of the context; set by gf_png_strip_choose */
    bool zlib;                /* zlib is tried; set by gf_png_strip_choose */
    unsigned char *out;       /* gf_png_strip_bound bytes */
    size_t size;              /* bytes written to out */
    uint32_t adler;           /* Adler-32 of the filtered bytes of this strip */
    uint64_t filtered;        /* number of filtered bytes */
} gf_png_strip;

/* Return row r of the strip. Context rows have negative numbers; each has a row above it. */
static inline const unsigned char *gf_png_row(const gf_png_strips *strips,
                                              const gf_png_strip *strip, int64_t r) {
    return strip->rows + (size_t)((int64_t)strip->context + 1 + r) * strips->row_stride;
}

/* Compute the statistics of a strip. buffer holds as many bytes as the strip. */
void gf_png_probe_strip(const gf_png_strips *strips, const gf_png_strip *strip,
                        unsigned char *buffer, gf_png_probe *probe);

/* Each strip becomes a piece of the zlib stream. A piece depends only on the rows of its strip and
 * a few rows above: the file is the same for any number of threads. */

/* Buffers of one thread. strips must outlive them. Return NULL if out of memory. */
typedef struct gf_png_scratch gf_png_scratch;
gf_png_scratch *gf_png_scratch_new(const gf_png_strips *strips);
void gf_png_scratch_free(gf_png_scratch *scratch);
size_t gf_png_scratch_bytes(const gf_png_strips *strips);

/* Filter rows from..to - 1, each after its filter type byte. */
void gf_png_filter_rows(gf_png_scratch *scratch, const gf_png_strip *strip, gf_png_rule rule,
                        int64_t from, int64_t to, unsigned char *dst);

/* Choose strip->rule, in image order. The context, which matches may reference, is filtered again
 * with context_rule, the rule of the previous strip. */
void gf_png_strip_choose(gf_png_scratch *scratch, gf_png_rule context_rule, gf_png_strip *strip);

/* Return the maximum number of bytes that gf_png_strip_encode writes. */
size_t gf_png_strip_bound(const gf_png_strips *strips);
/* Predict the rows of a strip of a TIFF. Return strip->filtered bytes, valid until the next call.
 */
unsigned char *gf_png_strip_predict(gf_png_scratch *scratch, gf_png_strip *strip);
/* Encode a strip. Return false if zlib is out of memory. */
bool gf_png_strip_encode(gf_png_scratch *scratch, gf_png_strip *strip);

#endif
