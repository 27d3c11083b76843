/* Pictures written row by row, so that their size is bounded by the disk and not by memory. */
#ifndef SAMPLES_PICTURE_H
#define SAMPLES_PICTURE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct picture picture;

typedef enum picture_effort {
    PICTURE_SMALL, /* slowest and smallest: for files that are kept */
    PICTURE_FAST,  /* Sub filter and zlib level 1: for files of many megapixels */
} picture_effort;

/* Opens a file for writing: a PNG if the name ends in .png, a raw PPM or PGM if it ends in .ppm or
 * .pgm. channels is 1, 3 or 4, bits 8 or 16 (PNG only). NULL on failure; like every failure here it
 * has then said why on stderr, in one line. */
picture *picture_open(const char *path, uint32_t width, uint32_t height, int channels, int bits,
                      picture_effort effort);

/* One row, top to bottom; 16-bit samples are big-endian. */
bool picture_row(picture *p, const uint8_t *row);

/* Ends the file and frees p, which may have failed before; false unless every byte was written. */
bool picture_close(picture *p);

/* Complains about path on stderr, with errno's text if `what` is NULL. Always false. */
bool picture_complain(const char *path, const char *what);

/* A linear light in [0, 1] to a sample in [0, 255]. The curve is a square root: near to sRGB's,
 * and exact everywhere, which pow is not. */
uint8_t picture_encode(double light);

#endif
