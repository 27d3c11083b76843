/* Image formats, views of rows, and digests of rows. */
#ifndef GF_IMAGE_H
#define GF_IMAGE_H

#include <float.h>

#include "gpufilter_tools.h"

#if !defined(__cplusplus) && FLT_EVAL_METHOD != 0
#error "float must be computed in binary32: see CFLAGS_ALL in Makefile"
#endif

/* An image that its decoder has scaled. */
typedef struct gf_scaled {
    uint64_t width, height; /* in the file, upright */
    uint32_t eighths;       /* scale in 1/8; sizes are rounded up. 0: not scaled */
} gf_scaled;

/* View of rows [y0, y0 + rows) of an image. data points to row y0. */
typedef struct gf_rows {
    unsigned char *data;
    size_t stride; /* bytes from one row to the next */
    uint64_t y0;
    uint64_t rows;
} gf_rows;

#define GF_MAX_CHANNELS 4u

/* Value of the samples that a file declares to be missing. */
typedef struct gf_nodata {
    bool declared;
    float value; /* may be a NaN */
} gf_nodata;

/* Treatment of these samples by a filter of files. */
typedef enum gf_nodata_use {
    GF_NODATA_KEPT, /* treat them as others */
    GF_NODATA_ZERO, /* leave them out of sums: if one of two inputs has it, both are read as 0 */
    GF_NODATA_APART /* count them apart: f32 are read as NaN, and integers have gf_plan.nodata */
} gf_nodata_use;

/* Samples that are left out, counted by the thread that reads rows. */
typedef struct gf_left_out {
    gf_nodata_use use;
    uint32_t images;          /* 1 or 2 */
    gf_nodata nodata[2];      /* of each image */
    uint64_t first, end;      /* rows in which samples are counted */
    uint64_t all[4];          /* of each channel */
    uint64_t *rows, *columns; /* of each channel of each row and column; NULL: not counted */
    uint8_t *missing;         /* of each sample of a row: 1 if it has the value of an image */
} gf_left_out;

static inline bool gf_has_alpha(const gf_format *format) {
    return format->alpha;
}

/* Return "grey" or "r", "g", "b", "a" for alpha, and "data" for another channel after these. */
const char *gf_channel_name(const gf_format *format, uint32_t channel);

/* Return the number of filtered and measured channels: all but alpha, the last one. */
static inline uint32_t gf_measured_channels(const gf_format *format) {
    return format->channels - format->alpha;
}

/* Return row y, numbered from the top of the image, of a view that contains it. */
static inline unsigned char *gf_row(const gf_rows *rows, uint64_t y) {
    return rows->data + (size_t)(y - rows->y0) * rows->stride;
}

#define GF_ROW_ALIGN 64u

/* Round bytes up to a multiple of GF_ROW_ALIGN. */
static inline size_t gf_align(size_t bytes) {
    return (bytes + GF_ROW_ALIGN - 1) & ~(size_t)(GF_ROW_ALIGN - 1);
}

/* Return rows [first, first + count) of a view that contains them. */
static inline gf_rows gf_rows_part(const gf_rows *rows, uint64_t first, uint64_t count) {
    return (gf_rows){gf_row(rows, first), rows->stride, first, count};
}

/* Return the sample type that a depth selects; `type` for GF_DEPTH_INPUT. */
gf_type gf_depth_type(gf_depth depth, gf_type type);

static inline bool gf_format_equal(const gf_format *a, const gf_format *b) {
    return a->width == b->width && a->height == b->height && a->channels == b->channels &&
           a->type == b->type && a->alpha == b->alpha;
}

static inline uint64_t gf_min(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static inline uint64_t gf_max(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* Return the start of part `part` when n items are divided into `parts` parts; part == parts gives
 * the end, n. Parts differ by at most one item. */
static inline uint64_t gf_share(uint64_t n, uint32_t part, uint32_t parts) {
    const uint64_t whole = n / parts, rest = n % parts;
    return whole * part + (part < rest ? part : rest);
}

/* Return the number of samples of an image. */
static inline double gf_image_samples(const gf_format *format) {
    return (double)gf_row_samples(format) * (double)format->height;
}

/* Copy the alpha of n pixels from src to dst. Do nothing for formats without alpha. */
void gf_restore_alpha(const gf_format *format, const unsigned char *src, unsigned char *dst,
                      uint64_t n);

/* Reject empty sizes, unknown types or channel counts, and images larger than 2^60 bytes or
 * SIZE_MAX / 4. Arithmetic on an accepted format cannot overflow. name is for the message. */
gf_status gf_format_check(const gf_format *format, const char *name, gf_error *error);

/* Return GF_USAGE if data is NULL, the stride is smaller than a row, or the rows are larger than
 * the address space. what: the image, for the message. */
gf_status gf_pixels_check(const char *name, const char *what, const gf_format *format,
                          gf_pixels pixels, gf_error *error);

/* Return whether two checked images share a byte. Images with one stride may be side by side. */
bool gf_pixels_overlap(const gf_format *a_format, gf_pixels a, const gf_format *b_format,
                       gf_pixels b);

/* Continue a digest, initially 0, with the first `bytes` bytes of each row. The result does not
 * depend on how the rows are divided among calls. */
uint64_t gf_digest_rows(uint64_t digest, const gf_rows *rows, size_t bytes);

#endif
