/* Estimates of what reading and writing takes, for the choice of a backend: nanoseconds a sample
 * of a photograph, on one core. */
#ifndef GF_COSTS_H
#define GF_COSTS_H

#include "gpufilter.h"

#define GF_PNG_DECODE_COST 3.0
#define GF_PNG_ENCODE_COST_FAST 10.0 /* zlib levels 0 to 2 */
#define GF_PNG_ENCODE_COST_SLOW 80.0
#define GF_STB_DECODE_COST 10.0 /* a JPEG, about */
#define GF_STB_ENCODE_COST 15.0
#define GF_PLAIN_COST 0.3 /* PNM, PAM, PFM: copying and swapping bytes, either way */

/* What a format of gf_output_formats() takes at the default settings; false for an unknown one. */
bool gf_codec_cost(const char *format, double *decode, double *encode);

#endif
