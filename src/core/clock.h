/* Wall time, and busy times. */
#ifndef GF_CLOCK_H
#define GF_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "gpufilter_tools.h"

/* Return the CPU time of this thread in ns. */
static inline uint64_t gf_thread_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Add the busy time of another run: sum the seconds, keep the larger number of workers. */
static inline void gf_busy_add(gf_busy *sum, gf_busy more) {
    sum->seconds += more.seconds;
    if (more.workers > sum->workers)
        sum->workers = more.workers;
}

#endif
