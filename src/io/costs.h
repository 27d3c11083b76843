/* Estimates of what reading and writing takes, for the choice of a backend: nanoseconds of one core
 * for a sample of a photograph, and how many threads share them. */
#ifndef GF_COSTS_H
#define GF_COSTS_H

#include "gpufilter.h"

#define GF_PNG_DECODE_COST 3.0
#define GF_PNG_ENCODE_COST_FAST 2.0
#define GF_PNG_ENCODE_COST_SLOW 50.0 /* zlib's levels and what asks zlib, about */
#define GF_STB_DECODE_COST 10.0      /* a JPEG, about */
#define GF_STB_ENCODE_COST 15.0
#define GF_PLAIN_COST 0.3 /* PNM, PAM, PFM, raw: copying and swapping bytes, either way */

/* Threads that share the work, of those there are. */
#define GF_PNG_DECODE_THREADS 1u
#define GF_PNG_ENCODE_THREADS UINT32_MAX
#define GF_PLAIN_DECODE_THREADS 16u /* as many as saturate a bus to a GPU */
#define GF_PLAIN_ENCODE_THREADS 1u  /* but in memory */

typedef struct gf_codec_costs {
    double decode, encode; /* of all threads together */
    uint32_t decode_threads, encode_threads;
} gf_codec_costs;

/* What a format of gf_output_formats() takes with this compression (of gf_file_options) where so
 * many threads are; false for an unknown format. */
bool gf_format_costs(const char *format, const char *compression, uint32_t threads,
                     gf_codec_costs *costs);

#endif
