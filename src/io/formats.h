/* The kinds of files behind gf_source_open and gf_sink_open. */
#ifndef GF_FORMATS_H
#define GF_FORMATS_H

#include "io/input.h"
#include "io/io.h"
#include "io/output.h"

/* Opens a source over an input whose head is filled and nothing else read. The source copies *input
 * and closes it with itself; on failure it stays the caller's to close. limits are resolved. */
typedef gf_status gf_open_source(const gf_input *input, const gf_limits *limits, gf_source **source,
                                 gf_error *error);

gf_open_source gf_png_source_open;
gf_open_source gf_pnm_source_open; /* P1 to P7, PF and Pf */
gf_open_source gf_raw_source_open; /* what limits->raw says */
gf_open_source gf_stb_source_open; /* JPEG, BMP, TGA, PSD, GIF, HDR */

typedef enum gf_sink_kind {
    GF_SINK_PNG,
    GF_SINK_PNM,
    GF_SINK_PAM,
    GF_SINK_PFM,
    GF_SINK_RAW,
    GF_SINK_JPG,
    GF_SINK_BMP,
    GF_SINK_TGA,
    GF_SINK_HDR
} gf_sink_kind;

typedef struct gf_sink_setup {
    gf_sink_kind kind;
    gf_output *output;
    const gf_format *format;
    const gf_metadata *metadata; /* never NULL */
    const char *compression;     /* of gf_file_options */
    uint64_t max_memory;
    uint32_t threads; /* that may encode; at least 1 */
    uint64_t first;   /* of the rows that are written here */
    bool header;      /* and does it write what comes before them? */
} gf_sink_setup;

/* Opens a sink for a format that the kind of file holds. setup->output is the sink's, and closed if
 * there is none. */
typedef gf_status gf_open_sink(const gf_sink_setup *setup, gf_sink **sink, gf_error *error);

gf_open_sink gf_png_sink_open;
gf_open_sink gf_plain_sink_open; /* PGM, PPM, PAM, PFM, raw */
gf_open_sink gf_stb_sink_open;   /* JPEG, BMP, TGA, HDR */

/* ---- costs ----------------------------------------------------------------------------------- */

/* Estimates for the choice of a backend: nanoseconds of one core for a sample of a photograph. */
#define GF_PNG_DECODE_COST 3.0
#define GF_PNG_ENCODE_COST_NONE 0.6
#define GF_PNG_ENCODE_COST_FAST 2.0
#define GF_PNG_ENCODE_COST_SLOW 50.0 /* what asks zlib, about */
#define GF_STB_DECODE_COST 10.0      /* a JPEG, about */
#define GF_STB_ENCODE_COST 15.0
#define GF_PLAIN_COST 0.3 /* PNM, PAM, PFM, raw: copying and swapping bytes, either way */

/* Threads that read a plain file at a time, at most: as many as saturate a bus to a GPU. */
#define GF_PLAIN_DECODE_THREADS 16u

#endif
