/* Headers of NumPy files (.npy): magic, version, length of a text, and the text, which describes an
 * array as a Python dictionary. */
#ifndef GF_NPY_H
#define GF_NPY_H

#include "core/image.h"

/* Capacity for the headers that gf_npy_put_header writes. */
enum { GF_NPY_HEADER_BYTES = 192 };

/* Return the Python literal of the dtype of samples in native byte order, such as "'<u2'". */
const char *gf_npy_dtype(gf_type type);
/* Write the header of numpy.save, version 1.0, for an array in C order. descr: Python literal of
 * the dtype, at most 100 bytes. Return the size, a multiple of 64 bytes. It does not depend on
 * shape[0]. */
size_t gf_npy_put_header(char to[GF_NPY_HEADER_BYTES], const char *descr, const uint64_t *shape,
                         size_t dimensions);

#endif
