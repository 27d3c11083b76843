/* How an image is cut into bands: their height, the ring, which rows belong to which. */
#ifndef GF_GEOMETRY_H
#define GF_GEOMETRY_H

#include "engine/stream.h"

/* Band height and ring size: what the backend wishes, less where memory is short. */
gf_status gf_choose_geometry(const gf_stream_job *job, gf_job *out, gf_error *error);

uint64_t gf_count_bands(const gf_job *job);

/* Which rows band k computes and holds, in the slot's own buffers. */
void gf_place_band(const gf_job *job, uint64_t k, gf_slot *slot);

#endif
