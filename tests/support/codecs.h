/* Formats of image files, for tests that choose the format themselves. */
#ifndef TEST_CODECS_H
#define TEST_CODECS_H

#include "io/codec.h"

#define GF_CODEC(name) extern const gf_codec gf_##name##_codec;
#include "io/codecs.def"
#undef GF_CODEC

/* Open raw rows, or any plain file by its first byte: PNM, farbfeld or NPY. */
static inline gf_status plain_source_open(const gf_input *input, const gf_limits *limits,
                                          gf_source **source, gf_error *error) {
    const gf_codec *codec = limits->raw             ? &gf_raw_codec
                            : input->head[0] == 'P' ? &gf_pgm_codec
                            : input->head[0] == 'f' ? &gf_farbfeld_codec
                                                    : &gf_npy_codec;
    return codec->open_source(input, limits, source, error);
}

#endif
