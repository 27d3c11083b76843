/* Table of file formats behind gf_source_open and gf_sink_open, and their costs. */
#ifndef GF_FORMATS_H
#define GF_FORMATS_H

#include "io/file/input.h"
#include "io/file/output.h"
#include "io/io.h"

/* Open a source. Only the head of the input has been read. The source copies *input and closes it
 * in its close; on failure the caller still owns it. limits are resolved. */
typedef gf_status gf_open_source(const gf_input *input, const gf_limits *limits, gf_source **source,
                                 gf_error *error);

gf_open_source gf_png_source_open;
gf_open_source gf_plain_source_open; /* P1 to P7, PF, Pf, NPY; raw if limits->raw is set */
gf_open_source gf_jpeg_source_open;
gf_open_source gf_stb_source_open; /* BMP, TGA, PSD, GIF, HDR */
gf_open_source gf_tiff_source_open;

/* Open a source for the rows of a regular file whose header has been read elsewhere; as
 * gf_open_source. The rows are stored from top to bottom. */
struct gf_row_order; /* bytes.h, which CUDA code does not include */
gf_status gf_rows_source_open(const gf_input *input, const struct gf_row_order *order,
                              const gf_limits *limits, gf_source **source, gf_error *error);

typedef enum gf_sink_kind {
    GF_SINK_PNG,
    GF_SINK_PNM,
    GF_SINK_PAM,
    GF_SINK_PFM,
    GF_SINK_NPY,
    GF_SINK_RAW,
    GF_SINK_TIFF,
    GF_SINK_JPEG,
    GF_SINK_BMP,
    GF_SINK_TGA,
    GF_SINK_HDR
} gf_sink_kind;

typedef struct gf_sink_setup {
    gf_sink_kind kind;
    gf_output *output;
    const gf_format *format;
    const gf_metadata *metadata;                /* never NULL */
    const char *compression, *tiff_compression; /* as in gf_file_options */
    uint32_t quality;                           /* of JPEG: 1 to 100 */
    uint64_t max_memory;
    uint64_t classic_max; /* max bytes of a TIFF that is not a BigTIFF; 0: as usual; for tests */
    uint32_t threads;     /* maximum number of encoding threads; at least 1 */
    uint64_t first;       /* first row that this process writes */
    bool header;          /* this process writes the file header */
    gf_sink *before; /* sink of the previous page of the file, closed by the caller; NULL: none */
} gf_sink_setup;

/* Open a sink for an image that the file format can store. The sink takes ownership of
 * setup->output and closes it on failure. */
typedef gf_status gf_open_sink(const gf_sink_setup *setup, gf_sink **sink, gf_error *error);

gf_open_sink gf_png_sink_open;
gf_open_sink gf_plain_sink_open; /* PGM, PPM, PAM, PFM, NPY, raw */
gf_open_sink gf_jpeg_sink_open;
gf_open_sink gf_tiff_sink_open;
gf_open_sink gf_stb_sink_open; /* BMP, TGA, HDR */

/* Return the lists of gf_names. */
const char *const *gf_output_formats(void);
const char *const *gf_compressions(void);
const char *const *gf_tiff_compressions(void);

/* Return the estimated time to encode, in ns per sample on one core. */
double gf_tiff_encode_cost(const char *compression);

/* ---- PNG files in memory --------------------------------------------------------------------- */

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
/* Return the number of parts. */
static inline uint32_t gf_png_scan_parts(const gf_png_scan *scan) {
    return scan->part_rows < scan->format.height ? scan->chunks : 1;
}

/* Open a file in memory. name: for messages. */
gf_status gf_png_memory_source(const void *file, size_t size, const char *name, gf_source **source,
                               gf_error *error);
/* Count files that a device has left to the CPU, in this process. For tests: results do not show
 * who has decoded a file. */
void gf_png_count_left(uint64_t files);
uint64_t gf_png_left(void);

/* ---- costs ----------------------------------------------------------------------------------- */

/* Estimates from which the backend is chosen, in ns per sample of a photograph on one core. */
#define GF_PNG_DECODE_COST 3.0
#define GF_PNG_ENCODE_COST_NONE 0.6
#define GF_PNG_ENCODE_COST_FAST 2.0
#define GF_PNG_ENCODE_COST_SLOW 50.0 /* with zlib; approximate */
#define GF_JPEG_DECODE_COST 1.2
#define GF_JPEG_ENCODE_COST 2.0
#define GF_STB_DECODE_COST 10.0 /* approximate */
#define GF_TIFF_DECODE_COST 2.0 /* Deflate: 1.8, LZW: 2.5, JPEG: 1.3 */
#define GF_TIFF_ENCODE_COST 2.0 /* Deflate */
#define GF_TIFF_ENCODE_COST_LZW 10.0
#define GF_TIFF_ENCODE_COST_ZSTD 7.0
#define GF_STB_ENCODE_COST 15.0
#define GF_PLAIN_COST 0.3 /* PNM, PAM, PFM, NPY, raw: copy and byte swap, in either direction */

/* Decoding on a device, in ns per byte of filtered rows: of one deflate stream while others are
 * decoded, and of all together (H100, docs/performance.md). */
#define GF_PNG_STREAM_COST 28.0
#define GF_PNG_DEVICE_COST 0.06

#endif
