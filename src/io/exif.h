/* EXIF data: a TIFF structure (header, directories, values) without pixels. All functions accept
 * any bytes. */
#ifndef GF_EXIF_H
#define GF_EXIF_H

#include "io/metadata.h"

/* Return whether the data begins with the header of a TIFF structure. */
bool gf_exif_is(const unsigned char *exif, size_t size);
/* Return the orientation in the first directory, 1 to 8; 0 if there is none. */
uint32_t gf_exif_orientation(const unsigned char *exif, size_t size);
/* Set the orientation in the first directory. Return false, without a change, if it has none. */
bool gf_exif_set_orientation(unsigned char *exif, size_t size, uint32_t orientation);
/* Return the resolution in the first directory. Return false if it is missing or not positive. */
bool gf_exif_resolution(const unsigned char *exif, size_t size, gf_resolution *resolution);

#endif
