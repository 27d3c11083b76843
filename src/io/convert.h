/* Sources and sinks that convert the rows of another source or sink. They wrap it: the wrapper is
 * used and closed in its place. A wrapped source has no file format (gf_source.kind). */
#ifndef GF_CONVERT_H
#define GF_CONVERT_H

#include "io/io.h"

/* Return the sample type that a depth selects; `type` for GF_DEPTH_INPUT. */
gf_type gf_depth_type(gf_depth depth, gf_type type);

/* Turn the image of a source as its EXIF orientation says, and set that to 1; wrap nothing without
 * an orientation. Mirrored rows are streamed; other orientations hold the image in memory. On
 * failure the source is unchanged. */
gf_status gf_rotate_source(gf_source **source, uint64_t max_memory, const char *name,
                           gf_error *error);

/* Replace a source by a part of its image. The caller closes the source, also on failure. Rows
 * above the part are skipped if the source can seek, otherwise they are read. If the part does not
 * end with the last row, sources that cannot seek are not finished: nothing below the part is read.
 */
gf_status gf_crop_source(gf_source **source, const gf_crop *crop, uint64_t max_memory,
                         const char *name, gf_error *error);

/* Convert the samples of a source to a larger type, or wrap nothing if it has this type. linear:
 * integers become linear light; they are sRGB. On failure the source is unchanged. */
gf_status gf_convert_source(gf_source **source, gf_type type, bool linear, const char *name,
                            gf_error *error);

/* Convert the samples of contiguous rows in memory to a smaller type, in place. */
void gf_convert_pixels(gf_format *format, void *pixels, gf_type type);

/* Convert rows of this format to the type of the image that a sink writes, or wrap nothing if it is
 * the same. linear: f32 is linear light, integers become sRGB. On failure the sink is unchanged. */
gf_status gf_convert_sink(gf_sink **sink, const gf_format *format, const gf_format *stored,
                          bool linear, gf_error *error);

#endif
