/* EXIF data: a TIFF structure (header, directories, values) without pixels. Any bytes are accepted;
 * values are changed in place. */
#ifndef GF_EXIF_H
#define GF_EXIF_H

#include "io/meta/ifd.h"
#include "io/meta/metadata.h"

/* Open EXIF data, which is borrowed. Return false unless it begins with the header of a classic
 * TIFF. */
bool gf_exif_open(gf_ifd *ifd, const gf_chunk *exif);
/* Return the orientation in the first directory, 1 to 8; 0 if there is none. */
uint32_t gf_exif_orientation(const gf_chunk *exif);
/* Set the orientation in the first directory. Return false, without a change, if it has none. */
bool gf_exif_set_orientation(const gf_chunk *exif, uint32_t orientation);
/* Return the resolution in a directory. Return false if there is none. */
bool gf_exif_resolution(gf_ifd *ifd, uint64_t directory, gf_resolution *resolution);
/* Swap the resolutions in the first directory. */
void gf_exif_swap_resolution(const gf_chunk *exif);
/* Return the kind and the offset of image i of an MPO, from its index. Return false after the last
 * image. */
bool gf_exif_image(const gf_chunk *index, uint32_t i, uint32_t *kind, uint32_t *offset);
/* Adapt EXIF data, or the tags of GDAL, as gf_metadata_update. same: the image has the sizes, type
 * and pages of the input. Return the new size. */
size_t gf_exif_update(const gf_chunk *exif, const gf_format *image, bool same, bool whole,
                      uint32_t *dropped);
/* Remove the parts of a text whose names begin with one of the names, a list that ends with NULL,
 * and clear as many bytes at the end. Return their number. */
size_t gf_text_cut(char *text, const char *const *names);

#endif
