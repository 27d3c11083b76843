/* Headers of NumPy files (.npy): magic, version, length of a text, and the text, which describes an
 * array as a Python dictionary. */
#ifndef GF_NPY_H
#define GF_NPY_H

#include "io/bytes.h"
#include "io/file/input.h"
#include "io/io.h"

/* Capacity for the headers that gf_npy_put_header writes. */
enum { GF_NPY_HEADER_BYTES = 192 };

/* Return the Python literal of the dtype of samples in native byte order, such as "'<u2'". */
const char *gf_npy_dtype(gf_type type);
/* Write the header of numpy.save, version 1.0, for an array in C order. descr: Python literal of
 * the dtype, at most 100 bytes. Return the size, a multiple of 64 bytes. It does not depend on
 * shape[0]. */
size_t gf_npy_put_header(char to[GF_NPY_HEADER_BYTES], const char *descr, const uint64_t *shape,
                         size_t dimensions);
/* An image in an array. */
typedef struct gf_npy {
    gf_row_order order; /* type u8: the rows of the file, in samples instead of bytes */
    gf_samples samples;
    uint64_t images; /* in the array */
    uint64_t end;    /* offset of the end of the array */
} gf_npy;

/* Read the header of an array of versions 1.0 to 3.0, with its magic, and set *npy for one of its
 * images, from 1; if there are fewer, only `images` and `end` are valid. The caller checks the
 * size of the image. */
gf_status gf_npy_read_header(gf_input *input, const gf_limits *limits, uint64_t page, gf_npy *npy,
                             gf_error *error);

#endif
