/* A PNG writer for tests: any legal file, and some illegal ones, without libpng. */
#ifndef PNG_UTIL_H
#define PNG_UTIL_H

#include "core/image.h"

typedef struct png_bytes {
    unsigned char *data;
    size_t size;
} png_bytes;

/* A chunk beside the needed ones. place: 0 after IHDR, 1 after PLTE (or where it would be), 2 after
 * IDAT. */
typedef struct png_extra {
    const char *name;
    int place;
    const void *data;
    size_t size;
    bool bad_checksum;
} png_extra;

typedef enum png_rows {
    PNG_ROWS_IN_TURN, /* one filter after the other */
    PNG_ROWS_NONE,    /* all alike */
    PNG_ROWS_SUB,
    PNG_ROWS_UP,
    PNG_ROWS_AVERAGE,
    PNG_ROWS_PAETH,
    PNG_ROWS_RANDOM
} png_rows;

typedef struct png_spec {
    uint32_t width, height;
    int color; /* PNG's colour type: 0, 2, 3, 4 or 6 */
    int depth;
    bool interlaced;
    bool transparent;   /* with a tRNS chunk; grey and RGB: the key is the first pixel */
    int palette_count;  /* color 3: entries of PLTE; indices may be past them. 0: 2^depth */
    uint32_t seed;      /* of the pixels */
    size_t idat_bytes;  /* the most in one IDAT chunk; 0: all in one */
    bool idat_random;   /* chunks of 0 to idat_bytes */
    png_rows filter;    /* of the rows */
    int level;          /* zlib's; 0 is its default, -1 stores */
    int strategy;       /* zlib's */
    int window_bits;    /* zlib's; 0 is 15 */
    int flush;          /* zlib's: after flush_bytes of data; 0: only at the end */
    size_t flush_bytes; /* at least 1 if it flushes */
    const png_extra *extras;
    size_t extra_count;
} png_spec;

/* Appends the bytes that every PNG begins with. */
void png_put_signature(png_bytes *file);

/* Appends a chunk with its checksum. */
void png_put_chunk(png_bytes *file, const char *name, const void *data, size_t size,
                   bool bad_checksum);

/* Makes the file and, if format is not NULL, the image that a reader must get from it, rows packed.
 * Everything is the caller's to free. Aborts if out of memory. */
void png_make(const png_spec *spec, png_bytes *file, gf_format *format, unsigned char **expected);

#endif
