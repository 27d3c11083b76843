/* Sources and sinks of images in memory. */
#ifndef GF_MEMORY_H
#define GF_MEMORY_H

#include "io/stream/sink.h"
#include "io/stream/source.h"

/* Create a source for rows in memory. The rows are borrowed until close. */
gf_status gf_memory_source(const gf_format *format, const void *data, size_t stride,
                           gf_source **source, gf_error *error);
/* Transfer ownership of the rows to a memory source. Its close calls release(data). */
void gf_memory_source_own(gf_source *source, void *data, void (*release)(void *data));
/* Return true for a memory source. */
bool gf_memory_source_is(const gf_source *source);

/* Create a source for `count` images in memory that have one format, stacked vertically: image i is
 * images[i * step]. All memory is borrowed until close. */
gf_status gf_batch_source(const gf_format *format, uint64_t count, const gf_pixels *images,
                          size_t step, gf_source **source, gf_error *error);

/* Create a sink that writes to `count` images in memory that have one format, one after the other.
 * All memory is borrowed until close. */
gf_status gf_memory_sink(const gf_format *format, uint64_t count, const gf_out_pixels *images,
                         gf_sink **sink, gf_error *error);

#endif
