/* Wall time, and busy times of the pipeline's stages. */
#ifndef GF_CLOCK_H
#define GF_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "gpufilter.h"

/* Return a monotonic time in seconds. */
static inline double gf_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Add the busy time of another run: sum the seconds, keep the larger number of workers. */
void gf_busy_add(gf_busy *sum, gf_busy more);

#endif
