/* libtiff, its handles, how TIFF files store samples, and the decoder of strips and tiles. */
#ifndef GF_TIFF_LAYOUT_H
#define GF_TIFF_LAYOUT_H

#include <setjmp.h>
#include <tiffio.h>

#include "io/codec.h"
#include "io/flate/inflate.h"
#include "io/tiff/directory.h"

extern const gf_codec gf_tiff_codec;
gf_open_source gf_tiff_source_open;

/* libtiff is loaded when the first TIFF file is opened: loading it with its codecs takes 1.2 ms, as
 * long as a run for a small image. The functions are declared as in its header. */
typedef struct gf_tiff_library {
#define GF_TIFF(name) __typeof__(name) *name;
#include "io/tiff/libtiff.def"
#undef GF_TIFF
} gf_tiff_library;

extern gf_tiff_library gf_libtiff;
/* Load libtiff, once for the process. file is the name for the error message. */
gf_status gf_tiff_load(const char *file, gf_error *error);

/* The input, shared by all handles of libtiff. */
typedef struct gf_tiff_file {
    gf_input input;
    unsigned char *data; /* bytes of an input that is not a regular file; else NULL */
    uint64_t size;
    uint64_t capacity;  /* of data */
    uint64_t directory; /* offset of the directory of the page */
    gf_tiff_tags tags;  /* of the page */
    uint64_t max_memory;
} gf_tiff_file;

/* A handle of libtiff. */
typedef struct gf_tiff_handle {
    gf_tiff_file *file;
    TIFF *tiff; /* NULL: not open */
    uint64_t offset;
    char message[160]; /* the first error or warning since it was cleared; before, the last one */
    /* Rows of a unit, from 0, that messages about CCITT data name: their number, the first and last
     * one. Rows from end_row on are not those of the data; 0: it was not cleared yet. */
    uint64_t rows, first_row, last_row, end_row;
    gf_error cause;      /* failure of a read */
    bool without_memory; /* an allocation has failed since it was cleared */
    bool torn;           /* by a failed allocation: libtiff would crash when it closes it */
    bool reading;        /* a directory: libtiff leaves it to ... */
    jmp_buf left;        /* ... here when the handle is torn */
} gf_tiff_handle;

/* How samples are stored. A *unit* is a strip or a tile. */
typedef struct gf_tiff_layout {
    uint16_t bits, compression, predictor, photometric, extra;
    uint16_t samples; /* per pixel */
    uint32_t step;    /* samples of a pixel in a unit */
    uint16_t planes;  /* 1: samples of a pixel are consecutive; otherwise one plane per sample */
    bool tiled;
    char kind;      /* of samples, as in gf_samples */
    uint32_t bytes; /* of a sample in memory */
    bool scaled;    /* samples of 9 to 15 bits are scaled to u16 */
    bool several;   /* there are more extra samples than one */
    bool raw;       /* rows of the source are gf_samples */
    bool inverted;  /* 0 is white */
    bool palette;
    bool little;   /* byte order */
    bool reversed; /* the first bit of a byte is its lowest */
    bool fax;      /* CCITT compression */
    bool inflates; /* two units are decoded at a time, without libtiff: Deflate in its usual form */
    bool direct;   /* units are decoded to their place, where rows may not have padding */
    bool associated; /* the alpha channel is associated (premultiplied) */
    uint64_t unit_width, unit_rows;
    uint64_t across, down;        /* units per row and column of units, in one plane */
    uint64_t unit_row_bytes;      /* decoded */
    unsigned char colors[256][6]; /* RGB of a palette, u8 or u16 */
    /* Chosen by the reader: */
    uint64_t piece_rows;   /* rows decoded at a time; fewer than unit_rows if not compressed */
    uint64_t pieces;       /* per unit */
    uint64_t group_pieces; /* pieces per group, vertically */
} gf_tiff_layout;

/* Return ceil(a / b). */
static inline uint64_t gf_ceil_div(uint64_t a, uint64_t b) {
    return a / b + (a % b != 0);
}

/* Read exactly `size` bytes at an offset. context: the gf_tiff_file. */
gf_status gf_tiff_read_at(void *context, void *data, size_t size, uint64_t offset, gf_error *error);
/* Open a handle to read the file, or to write file->data. mode: as for TIFFOpen. On failure the
 * reason is in the handle. */
gf_status gf_tiff_handle_start(gf_tiff_file *file, const char *mode, gf_tiff_handle *handle);
/* Open a handle for file->directory. The offsets of strips are read when they are needed. */
gf_status gf_tiff_handle_open(gf_tiff_file *file, gf_tiff_handle *handle, gf_error *error);
/* Close a handle; one that is not open is allowed. */
void gf_tiff_handle_close(gf_tiff_handle *handle);
/* Forget errors that libtiff has recovered from. */
void gf_tiff_handle_clear(gf_tiff_handle *handle);
/* Fail with the error of a read, or else with that of libtiff. */
gf_status gf_tiff_handle_fail(const gf_tiff_handle *handle, gf_error *error);
/* Read the tags and determine the format that filters receive. Refuse unsupported kinds by name,
 * and images over the limit of pixels. */
gf_status gf_tiff_layout_read(const gf_tiff_handle *handle, const gf_limits *limits,
                              gf_tiff_layout *layout, gf_format *format, gf_error *error);
/* Describe how the file stores the pixels. */
void gf_tiff_layout_describe(const gf_tiff_layout *layout, uint64_t page, uint64_t pages,
                             char *text, size_t size);

/* ---- units: strips and tiles ----------------------------------------------------------------- */

/* A unit to decode, or some of its rows if it is not compressed, and its buffers. */
typedef struct gf_tiff_unit {
    struct gf_tiff_worker *worker;
    uint64_t offset, bytes; /* in the file */
    uint32_t number;        /* in the file */
    uint32_t plane;         /* channel of its samples; 0 if there is one plane */
    uint64_t first, rows;   /* rows of the image */
    uint64_t skipped;       /* rows of the unit before them */
    uint64_t width;         /* pixels per row that belong to the image */
    unsigned char *to;      /* place of the first pixel */
    size_t stride;          /* bytes from row to row of the image in memory */
    unsigned char *raw, *decoded;
    uint64_t raw_bytes;  /* allocated, without padding */
    uint64_t raw_size;   /* read */
    gf_inflate *inflate; /* NULL: not needed */
} gf_tiff_unit;

/* State of one thread. */
typedef struct gf_tiff_worker {
    gf_tiff_file *file;
    const gf_tiff_layout *layout;
    const gf_format *format;
    gf_tiff_handle handle;
    gf_tiff_unit units[2];
    const struct gf_png_simd *simd;
    unsigned char *row; /* samples of a row of a unit, before they are placed */
    uint64_t damaged;   /* sum of damaged rows of CCITT data that was decoded */
} gf_tiff_worker;

/* Return the memory of a worker: raw and decoded units. layout->piece_rows must be set. */
uint64_t gf_tiff_worker_bytes(const gf_tiff_layout *layout);
/* Allocate. The arguments are borrowed until close. Return false if out of memory. */
bool gf_tiff_worker_open(gf_tiff_worker *worker, gf_tiff_file *file, const gf_tiff_layout *layout,
                         const gf_format *format);
/* Close a worker; one that is zeroed, or could not be opened, is allowed. */
void gf_tiff_worker_close(gf_tiff_worker *worker);
/* Decode the first `count` units, 1 or, if they are inflated, 2. Report the first one that fails.
 */
gf_status gf_tiff_units_decode(gf_tiff_worker *worker, uint32_t count, gf_error *error);

/* Return whether more than half of the rows of a fax are damaged. A strip may have one row. */
static inline bool gf_tiff_is_lost(uint64_t damaged, uint64_t rows) {
    return damaged > 1 && damaged > rows / 2;
}

#endif
