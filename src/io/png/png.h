/* PNG: files, their chunks, and files in memory. */
#ifndef GF_PNG_H
#define GF_PNG_H

#include "io/codec.h"
#include "io/strip/strip.h"

enum {
    GF_PNG_HEAD = 8 + 12 + 13, /* bytes of the signature and the IHDR chunk */
    GF_PNG_IDAT_MAX = 1 << 30, /* bytes per chunk; the format allows 2^31 - 1 */
    GF_PNG_IDAT_HEAD = 8,      /* bytes overwritten before and after the data of a chunk */
    GF_PNG_IDAT_TAIL = 4
};

/* Write the signature and the IHDR chunk of an image of type u8 or u16. */
void gf_png_head(const gf_format *format, unsigned char head[GF_PNG_HEAD]);

/* Write `size` bytes at `data` as IDAT chunks of at most max bytes, without copying them. */
gf_status gf_png_idat_write_parts(gf_output *output, unsigned char *data, size_t size, size_t max,
                                  gf_error *error);

extern const gf_codec gf_png_codec;
gf_open_source gf_png_source_open;
/* Open a PNG sink for one SIMD level. */
gf_status gf_png_sink_open_for(gf_isa isa, const gf_sink_setup *setup, gf_sink **sink,
                               gf_error *error);

/* A file of samples that are stored as they are used: 8 or 16 bits, without a palette, a
 * transparent colour or interlacing, in one run of IDAT chunks. */
typedef struct gf_png_scan {
    gf_format format;
    size_t idat;        /* offset of the first IDAT chunk */
    size_t after;       /* offset of the first chunk after the IDAT chunks */
    size_t end;         /* bytes up to the end of the IEND chunk */
    uint32_t chunks;    /* number of IDAT chunks */
    uint64_t bytes;     /* of their data */
    uint64_t part_rows; /* rows per IDAT chunk of a file of our encoder, whose strips do not refer
                           to each other; otherwise the height */
} gf_png_scan;

/* Scan the chunks of a file, without the data of IDAT chunks. Return false for all other files:
 * damaged ones, and those that only gf_png_decode reads. */
bool gf_png_scan_file(const unsigned char *file, size_t size, gf_png_scan *scan);

/* Return the bytes that gf_png_scan_copy writes. */
size_t gf_png_scan_bytes(const gf_png_scan *scan);
/* Copy the data of the IDAT chunks of a file that gf_png_scan_file accepted. `to` may be the file.
 * If the file has parts, each one starts at a multiple of 4 bytes and offsets[k] and sizes[k] are
 * set for it; otherwise only offsets[0] and sizes[0]. Return false if a CRC is wrong. */
bool gf_png_scan_copy(const unsigned char *file, const gf_png_scan *scan, unsigned char *to,
                      size_t *offsets, size_t *sizes);
/* Append the metadata chunks after the pixels to those of a source. name: for messages. */
gf_status gf_png_scan_late(const unsigned char *file, const gf_png_scan *scan, gf_source *source,
                           const char *name, gf_error *error);
static inline uint32_t gf_png_scan_parts(const gf_png_scan *scan) {
    return scan->part_rows < scan->format.height ? scan->chunks : 1;
}

/* Open a file in memory. name: for messages. */
gf_status gf_png_memory_source(const void *file, size_t size, const char *name, gf_source **source,
                               gf_error *error);
/* Count files that a device has left to the CPU, in this process. Return the number of all. For
 * tests: results do not show who has decoded a file. */
uint64_t gf_png_count_left(uint64_t files);

/* Decoding on a device, in ns per byte of filtered rows: of one deflate stream while others are
 * decoded, and of all together (H100, docs/performance.md). */
#define GF_PNG_STREAM_COST 28.0
#define GF_PNG_DEVICE_COST 0.06

#endif
