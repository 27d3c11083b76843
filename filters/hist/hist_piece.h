/* Pieces of the image, as hist's CPU implementation takes them. */
#ifndef GF_HIST_PIECE_H
#define GF_HIST_PIECE_H

#include <stddef.h>
#include <stdint.h>

/* Rows are taken in pieces that stay in the cache: this much of what is measured, and as many
 * samples where their bins are needed. */
#define GF_HIST_PIECE_BYTES (24u << 10)
#define GF_HIST_PIECE_BINS 4096u

/* Some measured samples. */
typedef struct gf_hist_piece {
    const void *values;
    const uint32_t *bins; /* NULL if nobody needs them */
    size_t samples;
    uint64_t position; /* of the first one in the image */
    /* What will be read next, for whoever has time to ask for it: so many bytes a sample of this
     * piece. It may lie beyond the image, where asking does no harm. NULL: the processor itself
     * sees what comes. */
    const unsigned char *ahead;
    size_t ahead_bytes;
} gf_hist_piece;

#endif
