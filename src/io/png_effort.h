/* How hard a PNG's encoder is to try: what the user calls it, and what it costs. */
#ifndef GF_PNG_EFFORT_H
#define GF_PNG_EFFORT_H

#include "gpufilter.h"

/* What the user may choose: 0 to 9 are zlib's levels. */
typedef enum gf_png_effort {
    GF_PNG_LEVEL_0,
    GF_PNG_LEVEL_9 = 9,
    GF_PNG_FAST,     /* one row filter a band, Huffman codes, matches where they are plenty */
    GF_PNG_BALANCED, /* the better of that and of zlib, where that may pay */
    GF_PNG_SMALL     /* the best of that and of zlib's slowest */
} gf_png_effort;

/* False for a name that gf_compressions() does not have. NULL: fast. */
bool gf_png_effort_of(const char *name, gf_png_effort *effort);

/* Estimated nanoseconds of one core for a sample. */
double gf_png_encode_cost(const char *compression);

#endif
