/* Geometry of images, views on their rows, and digests of rows. */
#ifndef GF_IMAGE_H
#define GF_IMAGE_H

#include "gpufilter.h"

/* A view on rows [y0, y0 + rows) of an image; data points at row y0. */
typedef struct gf_rows {
    unsigned char *data;
    size_t stride; /* bytes from one row to the next */
    uint64_t y0;
    uint64_t rows;
} gf_rows;

#define GF_MAX_CHANNELS 4u

static inline size_t gf_type_bytes(gf_type type) {
    return type == GF_U8 ? 1 : type == GF_U16 ? 2 : 4;
}

/* "u8", "u16", "f32". */
const char *gf_type_name(gf_type type);

/* Does the last channel hold alpha? */
static inline bool gf_has_alpha(uint32_t channels) {
    return channels == 2 || channels == 4;
}

/* "grey" or "r", "g", "b", and "a". */
const char *gf_channel_name(uint32_t channels, uint32_t channel);

/* Channels that are measured: all, or all but alpha, which is the last. */
static inline uint32_t gf_measured_channels(uint32_t channels, bool with_alpha) {
    return channels - (gf_has_alpha(channels) && !with_alpha ? 1 : 0);
}

/* Samples (not bytes) of one row. */
static inline uint64_t gf_row_samples(const gf_format *format) {
    return format->width * format->channels;
}

/* Bytes of one row. Only for formats that gf_format_check accepted. */
static inline size_t gf_row_bytes(const gf_format *format) {
    return (size_t)(gf_row_samples(format) * gf_type_bytes(format->type));
}

/* Row y (absolute) of a view that holds it. */
static inline unsigned char *gf_row(const gf_rows *rows, uint64_t y) {
    return rows->data + (size_t)(y - rows->y0) * rows->stride;
}

static inline bool gf_format_equal(const gf_format *a, const gf_format *b) {
    return a->width == b->width && a->height == b->height && a->channels == b->channels &&
           a->type == b->type;
}

/* Where part `part` of `parts` of n things begins; part n of n is their end. No part has more than
 * n / parts, rounded up. */
static inline uint64_t gf_share(uint64_t n, uint32_t part, uint32_t parts) {
    const uint64_t whole = n / parts, rest = n % parts;
    return whole * part + (part < rest ? part : rest);
}

/* Alpha of n pixels from src to dst, both at the same pixel of an image; nothing without alpha. */
void gf_restore_alpha(const gf_format *format, const unsigned char *src, unsigned char *dst,
                      uint64_t n);

/* Refuses empty sizes, unknown types or channels, and images whose bytes do not fit in a size_t
 * with room to spare; after it plain arithmetic on the format cannot overflow. name goes into the
 * message. */
gf_status gf_format_check(const gf_format *format, const char *name, gf_error *error);

/* Takes so many bytes of each row into a digest, 0 at first. How rows are cut into calls does not
 * matter. */
uint64_t gf_digest_rows(uint64_t digest, const gf_rows *rows, size_t bytes);

#endif
