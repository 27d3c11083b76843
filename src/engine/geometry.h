/* How an image is cut into bands: their height, the ring, which rows belong to which. */
#ifndef GF_GEOMETRY_H
#define GF_GEOMETRY_H

#include "engine/stream.h"

/* Band height and ring size: what the backend wishes, less where memory is short. */
gf_status gf_choose_geometry(const gf_stream_job *job, gf_job *out, gf_error *error);

/* After a backend had no memory for them: fewer bands at a time, and lower ones. False if they
 * cannot be any less. */
bool gf_shrink_geometry(const gf_stream_job *job, gf_job *geometry);

uint64_t gf_count_bands(const gf_job *job);

/* Which rows band k computes and holds, without saying where they lie. */
void gf_cut_band(const gf_job *job, uint64_t k, gf_slot *slot);
/* The same, with the rows in the slot's buffers: those that it shares with band k-1 lie where that
 * one has them, except that the ring begins again when k is a multiple of the slots (and does not
 * hold the whole image). */
void gf_place_band(const gf_job *job, uint64_t k, gf_slot *slot);
/* How many bands must be done with before the rows of band k may be put into the ring. */
uint64_t gf_bands_before(const gf_job *job, uint64_t k);

#endif
