/* Wall time for reports. */
#ifndef GF_CLOCK_H
#define GF_CLOCK_H

#include <time.h>

/* Seconds since some fixed moment. */
static inline double gf_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
