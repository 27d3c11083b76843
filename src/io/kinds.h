/* The kinds of files behind gf_source_open and gf_sink_open. */
#ifndef GF_KINDS_H
#define GF_KINDS_H

#include "io/files.h"
#include "io/io.h"

/* Opens a source over an input whose head is filled and nothing else read. The source copies *input
 * and closes it with itself; on failure it stays the caller's to close. limits are resolved. */
typedef gf_status gf_open_source(const gf_input *input, const gf_limits *limits, gf_source **source,
                                 gf_error *error);

gf_open_source gf_png_source_open;
gf_open_source gf_pnm_source_open; /* P1 to P7, PF and Pf */
gf_open_source gf_raw_source_open; /* what limits->raw says */
gf_open_source gf_stb_source_open; /* JPEG, BMP, TGA, PSD, GIF, HDR */

typedef struct gf_sink_setup {
    gf_output *output;
    const gf_format *format;
    const gf_metadata *metadata; /* never NULL */
    const char *compression;     /* of gf_file_options */
    uint64_t max_memory;
    uint32_t threads; /* that may encode; at least 1 */
    uint64_t first;   /* of the rows that this rank writes */
    bool header;      /* and does it write what comes before them? */
} gf_sink_setup;

/* Can this kind of file hold the image as it is? The message says which kind can. */
typedef gf_status gf_check_sink(const gf_format *format, const char *name, gf_error *error);
/* Opens a sink for a format that was checked. The sink owns setup->output; on failure it stays the
 * caller's to close. */
typedef gf_status gf_open_sink(const gf_sink_setup *setup, gf_sink **sink, gf_error *error);

gf_check_sink gf_png_sink_check, gf_pgm_sink_check, gf_ppm_sink_check, gf_pnm_sink_check,
    gf_pam_sink_check, gf_pfm_sink_check, gf_jpg_sink_check, gf_bmp_sink_check, gf_tga_sink_check,
    gf_hdr_sink_check, gf_raw_sink_check;
gf_open_sink gf_png_sink_open, gf_pnm_sink_open, gf_pam_sink_open, gf_pfm_sink_open,
    gf_jpg_sink_open, gf_bmp_sink_open, gf_tga_sink_open, gf_hdr_sink_open, gf_raw_sink_open;

#endif
