/* Shared by the tests of the PNG encoder: images, and an encoder for any SIMD level. */
#ifndef PNG_ENCODER_UTIL_H
#define PNG_ENCODER_UTIL_H

#include "io/png/png.h"
#include "testing.h"

/* ---- images ---------------------------------------------------------------------------------- */

enum { CONTENTS = 6, TWO_PARTS = 6 };

/* Draw an image. Contents 0 to 5: noise; a gradient with noise; flat; blocks; repeating lines;
 * stripes of all these. TWO_PARTS: rows that start with noise of four values and continue with a
 * gradient. */
static inline unsigned char *draw(const gf_format *format, int content, uint64_t seed) {
    const size_t samples = (size_t)(gf_row_samples(format) * format->height);
    const size_t row = (size_t)gf_row_samples(format);
    unsigned char *pixels = test_alloc(samples * gf_type_bytes(format->type));
    test_random random = {seed * 2 + 1};
    for (size_t i = 0; i < samples; i++) {
        const size_t x = i % row, y = i / row;
        const size_t kind = content == 5 ? (y / 9 + x / 500) % 5 : (size_t)content;
        const uint64_t noise = test_next(&random);
        const uint64_t v =
            kind == 0   ? noise
            : kind == 1 ? x * 40 + y * 70 + (noise & 1023)
            : kind == 2 ? 40000
            : kind == TWO_PARTS
                ? (x < row / 3 ? (const unsigned[]){0, 256, 1280, 19712}[noise & 3] : x * 10)
            : kind == 3 ? (x / 50 ^ y / 20) * 7919
                        : (x * x % 97 * 600) & (y % 6 < 4 ? 0xffff : 0);
        if (format->type == GF_U8) {
            pixels[i] = (unsigned char)(v >> 8);
        } else {
            const uint16_t v16 = (uint16_t)v;
            memcpy(pixels + 2 * i, &v16, 2);
        }
    }
    return pixels;
}

static const gf_file_options replacing = {.force = true};

/* Open an encoder. It takes ownership of the output, also if it fails. */
static inline gf_status open_encoder(const gf_format *format, const char *compression, gf_isa isa,
                                     uint32_t threads, uint64_t max_memory, gf_output *output,
                                     gf_sink **sink) {
    gf_metadata none = (gf_metadata){0};
    const gf_sink_setup setup = {.output = output,
                                 .format = format,
                                 .metadata = &none,
                                 .compression = compression,
                                 .max_memory = max_memory,
                                 .threads = threads};
    *sink = NULL;
    const gf_status status = gf_png_sink_open_for(isa, &setup, sink, &why);
    if (status && *sink) {
        (*sink)->ops->close(*sink);
        *sink = NULL;
    }
    return status;
}

#endif
