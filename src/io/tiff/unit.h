/* Units of TIFF files (strips and tiles): decoding, and placement of the samples in rows. */
#ifndef GF_TIFF_UNIT_H
#define GF_TIFF_UNIT_H

#include "io/flate/inflate.h"
#include "io/tiff/layout.h"

/* A unit to decode, or some of its rows if it is not compressed. */
typedef struct gf_tiff_job {
    uint64_t offset, bytes; /* in the file */
    uint32_t number;        /* of the unit in the file */
    uint32_t plane;         /* channel of its samples; 0 if there is one plane */
    uint64_t first, rows;   /* rows of the image */
    uint64_t skipped;       /* rows of the unit before them */
    uint64_t width;         /* pixels per row that belong to the image */
    unsigned char *to;      /* place of the first pixel */
    size_t stride;          /* bytes from row to row of the image in memory */
} gf_tiff_job;

/* Buffers for one unit. A thread has two of them. */
typedef struct gf_tiff_buffers {
    unsigned char *raw;
    uint64_t raw_bytes; /* allocated, without padding */
    uint64_t raw_size;  /* bytes of the unit */
    unsigned char *decoded;
    gf_inflate *inflate; /* NULL: not needed yet */
} gf_tiff_buffers;

/* State of one thread. */
typedef struct gf_tiff_worker {
    gf_tiff_file *file;
    const gf_tiff_layout *layout;
    const gf_format *format;
    gf_tiff_handle handle;
    gf_tiff_buffers buffers[2];
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
/* Decode `count` units, 1 or, if they are inflated, 2. Report the first one that fails. */
gf_status gf_tiff_units_decode(gf_tiff_worker *worker, const gf_tiff_job *jobs, uint32_t count,
                               gf_error *error);

/* Return whether more than half of the rows of a fax are damaged. A strip may have one row. */
static inline bool gf_tiff_is_lost(uint64_t damaged, uint64_t rows) {
    return damaged > 1 && damaged > rows / 2;
}

#endif
