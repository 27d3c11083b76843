/* A band of image rows as a piece of a PNG's zlib stream. Pieces depend on the band's rows and a
 * few above it alone, so that any number of threads makes the same file. */
#ifndef GF_PNG_BAND_H
#define GF_PNG_BAND_H

#include "io/png_rows.h"

/* What one thread needs; NULL if there is no memory. */
typedef struct gf_png_scratch gf_png_scratch;
gf_png_scratch *gf_png_scratch_new(const gf_png_bands *bands);
void gf_png_scratch_free(gf_png_scratch *scratch);
size_t gf_png_scratch_bytes(const gf_png_bands *bands);

/* Fills in band->rule, in image order: where matches reach into the band before, that must be
 * filtered as it was. `above` is the rule of the band before. */
void gf_png_band_choose(const gf_png_bands *bands, gf_png_scratch *scratch, gf_png_rule above,
                        gf_png_band *band);

size_t gf_png_band_bound(const gf_png_bands *bands);
/* False if zlib had no memory. */
bool gf_png_band_code(const gf_png_bands *bands, gf_png_scratch *scratch, gf_png_band *band);

#endif
