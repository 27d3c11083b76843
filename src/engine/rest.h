/* The input of a stream that its backend left. */
#ifndef GF_REST_H
#define GF_REST_H

#include "engine/backend.h"
#include "io/io.h"

/* What a stream was in the middle of. */
typedef struct gf_left {
    const gf_job *geometry;
    const gf_slot *slots;
    uint64_t released, filled; /* bands that are done with, and that were read */
    gf_source *source;
    bool ended; /* it was finished */
} gf_left;

/* A source of what the bands from `released` on read: first the rows of those that were filled,
 * copied from the ring, of which *bytes are held, then those that the stream's source has not given
 * yet. That one must live as long. NULL if there are none in the ring, or no memory for them. */
gf_source *gf_rest_source(const gf_left *left, uint64_t *bytes);

#endif
