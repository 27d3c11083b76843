/* Counting how long the parts of the pipeline are busy. */
#ifndef GF_STAGE_H
#define GF_STAGE_H

#include "gpufilter.h"

/* Adds what was done at another time: the seconds of both, by as many workers as the larger crew
 * has. */
void gf_busy_add(gf_busy *sum, gf_busy more);

#endif
