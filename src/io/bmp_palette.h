/* BMPs with a palette, as stb can be trusted to read them. */
#ifndef GF_BMP_PALETTE_H
#define GF_BMP_PALETTE_H

#include "error.h"

/* Of a BMP with a palette, *file becomes one with the same pixels, whose palette has all of 256
 * colours; those that were not there are black. All else is left as it is. *file was allocated by
 * malloc, and stays the caller's to free. */
gf_status gf_bmp_fill_palette(unsigned char **file, size_t *size, const char *name,
                              gf_error *error);

#endif
