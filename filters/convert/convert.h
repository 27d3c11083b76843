/* convert: sample type, linear light and premultiplied alpha, as a node of a chain of filters. The
 * registry does not list it. docs/numerics.md defines it: depth, linear light, premultiplied alpha.
 * The state is a uint64_t, the number of f32 samples outside 0..1 that are stored as integers. */
#ifndef GF_CONVERT_FILTER_H
#define GF_CONVERT_FILTER_H

#include "core/convert.h"
#include "core/filter.h"

typedef struct gf_convert_plan {
    gf_plan head; /* constants: the tables of sRGB for this direction */
    gf_conversion how;
} gf_convert_plan;

extern const gf_filter gf_convert_filter;

GF_DECLARE_BACKENDS(gf_convert);

#endif
