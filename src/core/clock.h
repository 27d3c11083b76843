/* Wall time, and the time that the stages of the pipeline are busy. */
#ifndef GF_CLOCK_H
#define GF_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "gpufilter.h"

/* Seconds since some fixed moment. */
static inline double gf_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Adds what was done at another time: the seconds of both, by as many workers as the larger crew
 * has. */
void gf_busy_add(gf_busy *sum, gf_busy more);

#endif
