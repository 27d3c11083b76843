/* Headers of NumPy files (.npy): magic, version, length of a text, and the text, which describes an
 * array as a Python dictionary. */
#ifndef GF_NPY_H
#define GF_NPY_H

#include "io/bytes.h"
#include "io/input.h"

/* Capacity for the headers that gf_npy_put_header writes. */
enum { GF_NPY_HEADER_BYTES = 192 };

/* Return the dtype of samples in native byte order, such as "<u2". */
const char *gf_npy_dtype(gf_type type);
/* Write the header of numpy.save, version 1.0, for an array in C order. descr: Python literal of
 * the dtype, at most 100 bytes. Return the size, a multiple of 64 bytes. It does not depend on
 * shape[0]. */
size_t gf_npy_put_header(char to[GF_NPY_HEADER_BYTES], const char *descr, const uint64_t *shape,
                         size_t dimensions);
/* Read the header of an image of versions 1.0 to 3.0, with its magic, and set *order. The caller
 * checks the size of the image. */
gf_status gf_npy_read_header(gf_input *input, gf_row_order *order, gf_error *error);

#endif
