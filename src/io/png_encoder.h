/* The IDAT chunks of a PNG, made by several threads. */
#ifndef GF_PNG_ENCODER_H
#define GF_PNG_ENCODER_H

#include "io/files.h"
#include "io/png_band.h"

typedef struct gf_png_encoder gf_png_encoder;

/* Uses at most so many threads (at least 1: the caller's alone), as far as half of max_memory goes
 * for what they need beside the first one's. What that one needs is not counted, but for wide rows:
 * refused if it is over max_memory. The output is borrowed until close. */
gf_status gf_png_encoder_open(const gf_format *format, gf_png_effort effort, gf_isa isa,
                              uint32_t threads, uint64_t max_memory, gf_output *output,
                              gf_png_encoder **encoder, gf_error *error);
/* Bytes that it takes of max_memory. */
uint64_t gf_png_encoder_memory(const gf_png_encoder *encoder);
/* Takes the next rows of native samples. After the last row of the image everything is written. */
gf_status gf_png_encoder_write(gf_png_encoder *encoder, const unsigned char *src, size_t stride,
                               uint64_t rows, gf_error *error);
/* Samples at the largest value, alpha aside, once everything is written. */
uint64_t gf_png_encoder_clipped(const gf_png_encoder *encoder);
/* Its threads; 0 if the caller does everything. */
uint32_t gf_png_encoder_threads(const gf_png_encoder *encoder);
/* Seconds that they and the caller worked, all together. */
double gf_png_encoder_busy(const gf_png_encoder *encoder);
/* Stops its threads. NULL is allowed. */
void gf_png_encoder_close(gf_png_encoder *encoder);

#endif
