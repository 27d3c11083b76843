/* Building gf_metadata. */
#ifndef GF_METADATA_H
#define GF_METADATA_H

#include "io/io.h"

/* Appends a copy of a chunk; name is 4 characters. GF_FAILED if out of memory, the metadata is then
 * unchanged; file is the name for the message. */
gf_status gf_metadata_append(gf_metadata *metadata, const char *name, gf_chunk_place place,
                             const void *data, size_t size, const char *file, gf_error *error);

#endif
