/* Headers of the netpbm formats and of PFM. */
#ifndef GF_PNM_H
#define GF_PNM_H

#include "io/files.h"
#include "io/io.h"

typedef struct gf_pnm_header {
    gf_format format;
    const char *kind; /* "pgm", "ppm", "pam" or "pfm" */
    bool plain;       /* samples are decimal text */
    bool little;      /* PFM: byte order of the samples */
    double pfm_scale; /* PFM: magnitude of the scale, over 0; 1 elsewhere */
} gf_pnm_header;

/* Reads a header; the input then stands at the first sample. Sizes are checked against the limits,
 * the format with gf_format_check. */
gf_status gf_pnm_read_header(gf_input *input, const gf_limits *limits, gf_pnm_header *header,
                             gf_error *error);

/* Reads the next decimal number, past white space and comments, and the one character after it.
 * GF_FAILED if there is none or it is over max; what names it in the message. */
gf_status gf_pnm_read_number(gf_input *input, uint64_t max, const char *what, uint64_t *number,
                             gf_error *error);

#endif
