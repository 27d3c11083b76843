/* libtiff, loaded when the first TIFF file is opened: loading it with its codecs takes 1.2 ms, as
 * long as a run for a small image. */
#ifndef GF_TIFF_H
#define GF_TIFF_H

#include <tiffio.h>

#include "io/formats.h"

#define GF_TIFF_FUNCTIONS(X)                                                                       \
    X(TIFFClientOpen)                                                                              \
    X(TIFFClose)                                                                                   \
    X(TIFFGetField)                                                                                \
    X(TIFFSetField)

/* Functions of libtiff, declared as in its header. */
typedef struct gf_tiff_library {
#define GF_TIFF_MEMBER(name) __typeof__(name) *name;
    GF_TIFF_FUNCTIONS(GF_TIFF_MEMBER)
#undef GF_TIFF_MEMBER
} gf_tiff_library;

/* Load libtiff, once for the process. file is the name for the error message. */
gf_status gf_tiff_load(const gf_tiff_library **library, const char *file, gf_error *error);

#endif
