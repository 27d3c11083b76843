/* libtiff, loaded when the first TIFF file is opened: loading it with its codecs takes 1.2 ms, as
 * long as a run for a small image. */
#ifndef GF_TIFF_H
#define GF_TIFF_H

#include <tiffio.h>

#include "io/formats.h"

#define GF_TIFF_FUNCTIONS(X)                                                                       \
    X(TIFFClientOpen)                                                                              \
    X(TIFFClientOpenExt)                                                                           \
    X(TIFFClose)                                                                                   \
    X(TIFFFindCODEC)                                                                               \
    X(TIFFGetField)                                                                                \
    X(TIFFGetFieldDefaulted)                                                                       \
    X(TIFFGetStrileByteCountWithErr)                                                               \
    X(TIFFGetStrileOffsetWithErr)                                                                  \
    X(TIFFIsBigEndian)                                                                             \
    X(TIFFIsCODECConfigured)                                                                       \
    X(TIFFIsTiled)                                                                                 \
    X(TIFFNumberOfStrips)                                                                          \
    X(TIFFNumberOfTiles)                                                                           \
    X(TIFFOpenOptionsAlloc)                                                                        \
    X(TIFFOpenOptionsFree)                                                                         \
    X(TIFFOpenOptionsSetErrorHandlerExtR)                                                          \
    X(TIFFOpenOptionsSetMaxSingleMemAlloc)                                                         \
    X(TIFFOpenOptionsSetWarningHandlerExtR)                                                        \
    X(TIFFReadFromUserBuffer)                                                                      \
    X(TIFFReverseBits)                                                                             \
    X(TIFFScanlineSize64)                                                                          \
    X(TIFFSetField)                                                                                \
    X(TIFFSetSubDirectory)                                                                         \
    X(TIFFTileRowSize64)                                                                           \
    X(TIFFWriteEncodedStrip)

/* Functions of libtiff, declared as in its header. */
typedef struct gf_tiff_library {
#define GF_TIFF_MEMBER(name) __typeof__(name) *name;
    GF_TIFF_FUNCTIONS(GF_TIFF_MEMBER)
#undef GF_TIFF_MEMBER
} gf_tiff_library;

/* Open a TIFF sink. classic_max: maximum bytes of a file that is not a BigTIFF; for tests. */
gf_status gf_tiff_sink_open_for(uint64_t classic_max, const gf_sink_setup *setup, gf_sink **sink,
                                gf_error *error);
/* Return the estimated time to encode, in ns per sample on one core. */
double gf_tiff_encode_cost(const char *compression);

/* Load libtiff, once for the process. file is the name for the error message. */
gf_status gf_tiff_load(const gf_tiff_library **library, const char *file, gf_error *error);

#endif
