/* Readers of BMP, TGA, PSD and GIF files in memory. They allocate nothing and make no system calls:
 * they run in the sandbox, on untrusted bytes. */
#ifndef GF_RASTER_H
#define GF_RASTER_H

#include "core/image.h"

/* Result of reading. */
typedef enum gf_raster_outcome {
    GF_RASTER_NONE, /* no result was stored */
    GF_RASTER_READ,
    GF_RASTER_TRUNCATED,   /* the file ends too early */
    GF_RASTER_DAMAGED,     /* the reason is stored */
    GF_RASTER_UNSUPPORTED, /* a valid file of the kind that the reason names */
    GF_RASTER_NO_PAGE,     /* the file has fewer pages */
    GF_RASTER_OVER_LIMIT,  /* the format is valid, but exceeds the limits */
    GF_RASTER_OVER_MEMORY  /* the arena is too small */
} gf_raster_outcome;

/* A last channel that the header does not declare as alpha has no information, and is dropped, if
 * all its samples are opaque, or (zero) if all are 0. */
typedef enum gf_raster_alpha {
    GF_RASTER_DECLARED,
    GF_RASTER_OPAQUE,
    GF_RASTER_ZERO
} gf_raster_alpha;

typedef struct gf_raster {
    const unsigned char *data;
    size_t size;
    uint32_t page;             /* to read, from 1; GIF only */
    gf_raster_outcome outcome; /* after a failure */
    const char *reason;        /* DAMAGED, UNSUPPORTED */
    /* Set by gf_raster_head. */
    gf_format format;
    uint64_t min_bytes; /* a smaller file is truncated */
    uint32_t unread;    /* PSD: channels that are not read */
    gf_raster_alpha alpha;
    /* Set by gf_raster_read. */
    uint64_t damaged; /* runs that extend past their row or frame, where they end */
    uint32_t pages;   /* GIF: frames of the file; otherwise 0 */
    /* For the readers: how the pixels are stored, and where each channel is in their bits. */
    size_t at;
    uint32_t bits;
    bool packed, indexed, top_down, right_to_left;
    uint32_t shift[GF_MAX_CHANNELS], max[GF_MAX_CHANNELS];
    unsigned char palette[256][GF_MAX_CHANNELS]; /* missing entries are black */
} gf_raster;

/* Files whose runs may leave out pixels can have up to this many without any bytes for them. */
enum { GF_RASTER_FREE_PIXELS = 1 << 22 };

/* Set the outcome and its reason, and return false. */
static inline bool gf_raster_fail(gf_raster *raster, gf_raster_outcome result, const char *reason) {
    raster->outcome = result;
    raster->reason = reason;
    return false;
}

/* Read the header; data may be only the beginning of the file, of at least 19 bytes. A file without
 * the signature of another format is a TGA. Return false on failure. */
bool gf_raster_head(gf_raster *raster);
/* Then decode the image to zeroed pixels without gaps. The format may lose its last channel. */
bool gf_raster_read(gf_raster *raster, unsigned char *pixels);

bool gf_gif_head(gf_raster *raster);
bool gf_gif_read(gf_raster *raster, unsigned char *pixels);

#endif
