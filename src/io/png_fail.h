/* What is said of PNGs that cannot be read, whoever finds out: libpng or we. */
#ifndef GF_PNG_FAIL_H
#define GF_PNG_FAIL_H

#include "error.h"

#define gf_png_fail_damaged(error, name, what)                                                     \
    gf_fail(error, GF_FAILED, "%s: the PNG is damaged (%s); get an intact copy", name, what)

#define gf_png_fail_short(error, name)                                                             \
    gf_fail(error, GF_FAILED, "%s: the PNG ends too early; get a complete copy", name)

#endif
