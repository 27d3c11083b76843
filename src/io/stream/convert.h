/* Sources that change the rows of another source. They wrap it: the wrapper is used and closed in
 * its place. A part of an image and a turned one have no file format (gf_source.codec), from which
 * a device could decode them. */
#ifndef GF_CONVERT_H
#define GF_CONVERT_H

#include "io/limits.h"
#include "io/stream/stream.h"

/* ---- wrappers (convert.c) -------------------------------------------------------------------- */

/* Replace a source by one of the channels and the sample type that the limits select; wrap nothing
 * if these are its own. Required for a source with gf_source.samples. On failure the caller closes
 * *source, which is valid. */
gf_status gf_samples_source(gf_source **source, const gf_limits *limits, const char *name,
                            gf_error *error);

/* Return how the samples of a source are stored. */
gf_samples gf_samples_of(const gf_source *source);
/* Return whether a gf_type describes samples, and set it; if not, *type is f32. */
bool gf_samples_type(const gf_samples *samples, gf_type *type);

/* Turn the image of a source as an EXIF orientation from 2 to 8 says. Mirrored rows (2) are
 * streamed; other orientations hold the image, `what` in messages, in memory. On failure the source
 * is unchanged. */
gf_status gf_turn_source(gf_source **source, uint32_t orientation, const char *what,
                         uint64_t max_memory, const char *name, gf_error *error);

/* Turn the image as its own orientation says, and set that to 1; wrap nothing without one. */
gf_status gf_rotate_source(gf_source **source, uint64_t max_memory, const char *name,
                           gf_error *error);

/* Replace a source by a part of its image. The caller closes the source, also on failure. Rows
 * above the part are skipped if the source can seek, otherwise they are read. If the part does not
 * end with the last row, sources that cannot seek are not finished: nothing below the part is read.
 */
gf_status gf_crop_source(gf_source **source, const gf_crop *crop, uint64_t max_memory,
                         const char *name, gf_error *error);

typedef gf_status gf_open_page(const char *path, const gf_limits *limits, gf_source **source,
                               gf_error *error);

/* Replace the source of the first page of a file, opened with these limits, by one of all pages,
 * which must have one format: one below the other. open: opens another page. The path is borrowed
 * until close. On failure the source is unchanged. */
gf_status gf_pages_source(gf_source **source, gf_open_page *open, const char *path,
                          const gf_limits *limits, gf_error *error);

/* Count the samples of row y of each image that have the nodata value of an image, and replace them
 * as left_out->use says. */
void gf_leave_out(gf_left_out *left_out, const gf_format *format, unsigned char *const rows[],
                  uint64_t y);
/* Wrap the source of one image to do this in all rows. left_out is borrowed until close. On failure
 * the source is unchanged. */
gf_status gf_nodata_source(gf_source **source, gf_left_out *left_out, const char *name,
                           gf_error *error);

/* ---- sRGB (srgb.c) --------------------------------------------------------------------------- */

/* Check that the samples of an image are sRGB: its metadata says so, or says nothing about colour.
 * name: of the image, for messages. */
gf_status gf_srgb_check(const gf_metadata *metadata, const char *name, gf_error *error);

#endif
