/* BMP, TGA, PSD, GIF and HDR files in memory. */
#ifndef GF_RASTER_H
#define GF_RASTER_H

#include <string.h>

#include "io/codec.h"
#include "io/stb/sandbox.h"

/* They allocate nothing and make no system calls: they run in the sandbox, on untrusted bytes. */

/* Result of reading. */
typedef enum gf_raster_outcome {
    GF_RASTER_NONE, /* no result was stored */
    GF_RASTER_READ,
    GF_RASTER_TRUNCATED,   /* the file ends too early */
    GF_RASTER_DAMAGED,     /* the reason is stored */
    GF_RASTER_UNSUPPORTED, /* a valid file of the kind that the reason names */
    GF_RASTER_NO_PAGE,     /* the file has fewer pages */
    GF_RASTER_OVER_LIMIT,  /* the format is valid, but exceeds the limits */
    GF_RASTER_OVER_MEMORY  /* the shared memory is too small */
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

static inline bool gf_raster_fail(gf_raster *raster, gf_raster_outcome result, const char *reason) {
    raster->outcome = result;
    raster->reason = reason;
    return false;
}

typedef enum gf_raster_kind {
    GF_RASTER_BMP,
    GF_RASTER_PSD,
    GF_RASTER_GIF,
    GF_RASTER_HDR,
    GF_RASTER_TGA
} gf_raster_kind;

/* Size of the smallest header. The functions below read that many bytes without a check. */
enum { GF_RASTER_MIN_BYTES = 19 };

/* Return the format of a file. One without the signature of another format is a TGA. */
static inline gf_raster_kind gf_raster_find(const unsigned char *data) {
    return memcmp(data, "BM", 2) == 0     ? GF_RASTER_BMP
           : memcmp(data, "8BPS", 4) == 0 ? GF_RASTER_PSD
           : memcmp(data, "GIF8", 4) == 0 ? GF_RASTER_GIF
           : memcmp(data, "#?", 2) == 0   ? GF_RASTER_HDR
                                          : GF_RASTER_TGA;
}

/* Read the header; data may be only the beginning of the file. Return false on failure. */
bool gf_raster_head(gf_raster *raster);
/* Then decode the image to zeroed pixels without gaps. The format may lose its last channel. */
bool gf_raster_read(gf_raster *raster, unsigned char *pixels);

bool gf_gif_head(gf_raster *raster);
bool gf_gif_read(gf_raster *raster, unsigned char *pixels);
/* Return the offset of the first block. */
size_t gf_gif_first_block(const unsigned char *data);
/* Return the offset after a sequence of sub-blocks. Each begins with its size; one of size 0 ends
 * the sequence. Return 0 if the file ends before. */
size_t gf_gif_skip_blocks(const unsigned char *data, size_t size, size_t at);
bool gf_hdr_head(gf_raster *raster);
bool gf_hdr_read(gf_raster *raster, unsigned char *pixels);

/* Open a source of any of these formats. */
gf_open_source gf_stb_source_open;

/* Result of the sandbox. The caller must not trust it. Integers only, so any byte pattern is a
 * valid object. */
typedef struct gf_raster_result {
    uint32_t outcome; /* a gf_raster_outcome */
    uint32_t channels;
    uint32_t type; /* a gf_type */
    uint64_t width, height;
    char reason[64]; /* DAMAGED, UNSUPPORTED */
    /* As in gf_raster. */
    uint64_t damaged;
    uint32_t unread, pages, bits, indexed, packed;
} gf_raster_result;

/* A file that is being opened. */
typedef struct gf_raster_file {
    const char *name;
    const gf_limits *limits;
    unsigned char *data;
    size_t size;
    uint64_t file_bytes;      /* of the whole file; more than size if data is only its beginning */
    gf_sandbox_memory shared; /* a gf_raster_result, and the pixels at GF_RASTER_PIXELS_AT */
    bool header_only;         /* read only the header; READ: it is within the limits */
    gf_metadata metadata;
    uint32_t dropped; /* as in gf_source */
} gf_raster_file;

enum { GF_RASTER_PIXELS_AT = 4096 };

/* Decode a file inside the sandbox: a gf_sandbox_work of a gf_raster_file. */
void gf_raster_decode(void *context);

/* Append the metadata of a file, at most one item of each kind, and set bits of gf_dropped for
 * kinds that are not read. The data may have any content. Return GF_FAILED if out of memory. */
gf_status gf_raster_metadata(gf_raster_file *file, gf_error *error);

typedef void gf_stb_write_func(void *context, void *data, int size);

/* Encode an image whose rows have no gaps as BMP, TGA or HDR. The encoded bytes are passed to
 * `write`. */
bool gf_stb_write(gf_raster_kind kind, gf_stb_write_func *write, void *context,
                  const gf_format *format, const void *pixels);

#endif
