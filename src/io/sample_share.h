/* What one of several ranks has of a file of samples: bytes of its own rows. Where they belong
 * follows from how many the others have. */
#ifndef GF_SAMPLE_SHARE_H
#define GF_SAMPLE_SHARE_H

#include "io/files.h"

typedef struct gf_sample_share gf_sample_share;

/* Of a shared output, for bins 0 .. bins - 1. */
gf_status gf_sample_share_open(gf_output *output, uint32_t bins, gf_sample_share **share,
                               gf_error *error);
/* More samples of a bin, as bytes; bins may not come in descending order. */
gf_status gf_sample_share_add(gf_sample_share *share, uint32_t bin, const void *bytes, size_t size,
                              gf_error *error);

/* The file as a whole. */
typedef struct gf_sample_place {
    uint64_t begin;   /* the first sample's, behind the head */
    uint64_t end;     /* behind the last one */
    uint64_t samples; /* of all ranks */
} gf_sample_place;

/* To be called by all: this rank has given so many samples. All of them begin at place->begin; the
 * first one does without its first `glue` bytes. Fills in the rest. */
void gf_sample_share_meet(gf_sample_share *share, const gf_ranks *ranks, uint64_t samples,
                          size_t glue, gf_sample_place *place);
/* After that: writes them to the file. */
gf_status gf_sample_share_write(gf_sample_share *share, gf_error *error);
void gf_sample_share_close(gf_sample_share *share);

#endif
