/* PNG writer for tests, without libpng: any valid file, and some invalid files. */
#ifndef PNG_UTIL_H
#define PNG_UTIL_H

#include "core/image.h"

typedef struct png_bytes {
    unsigned char *data;
    size_t size;
} png_bytes;

/* Additional chunk. position: 0 after IHDR, 1 after PLTE (or its position), 2 after IDAT. */
typedef struct png_extra {
    const char *name;
    int position;
    const void *data;
    size_t size;
    bool wrong_checksum;
} png_extra;

typedef enum png_rows {
    PNG_ROWS_CYCLE, /* one filter after the other */
    PNG_ROWS_NONE,  /* the same filter in all rows */
    PNG_ROWS_SUB,
    PNG_ROWS_UP,
    PNG_ROWS_AVERAGE,
    PNG_ROWS_PAETH,
    PNG_ROWS_RANDOM
} png_rows;

typedef struct png_spec {
    uint32_t width, height;
    int color; /* colour type of PNG: 0, 2, 3, 4 or 6 */
    int depth;
    bool interlaced;
    bool transparent;   /* with a tRNS chunk; grey and RGB: the colour of the first pixel */
    int palette_count;  /* colour type 3: entries of PLTE, which indices may exceed; 0: 2^depth */
    uint32_t seed;      /* of the pixels */
    size_t idat_bytes;  /* maximum size of an IDAT chunk; 0: one chunk */
    bool idat_random;   /* chunks of random sizes from 0 to idat_bytes */
    png_rows filter;    /* of the rows */
    int level;          /* zlib level; 0: default, -1: stored */
    int strategy;       /* zlib strategy */
    int window_bits;    /* zlib window bits; 0: 15 */
    int flush;          /* zlib flush after every flush_bytes of data; 0: only at the end */
    size_t flush_bytes; /* at least 1 with a flush */
    const png_extra *extras;
    size_t extra_count;
} png_spec;

/* Append the signature of PNG. */
void png_put_signature(png_bytes *file);

/* Append a chunk with its checksum. */
void png_put_chunk(png_bytes *file, const char *name, const void *data, size_t size,
                   bool wrong_checksum);

/* Make a file and, if format is not NULL, the image that a reader must return, with packed rows.
 * The caller frees both. Abort if memory is exhausted. */
void png_make(const png_spec *spec, png_bytes *file, gf_format *format, unsigned char **expected);

#endif
