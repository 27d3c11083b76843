/* Wall time, medians of times, and the time that the stages of the pipeline are busy. */
#ifndef GF_CLOCK_H
#define GF_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "gpufilter.h"

/* Seconds since some fixed moment. */
static inline double gf_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define GF_MAX_LAPS 100u
#define GF_LEAST_LAPS 3u

typedef struct gf_laps {
    double seconds[GF_MAX_LAPS];
    uint32_t count;
    double spent;
} gf_laps;

static inline void gf_laps_add(gf_laps *laps, double seconds) {
    laps->seconds[laps->count++] = seconds;
    laps->spent += seconds;
}

/* Have they taken so many seconds? */
static inline bool gf_laps_enough(const gf_laps *laps, double budget) {
    return laps->count == GF_MAX_LAPS || (laps->count >= GF_LEAST_LAPS && laps->spent >= budget);
}

static inline int gf_laps_order(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts them. */
static inline double gf_laps_median(gf_laps *laps) {
    qsort(laps->seconds, laps->count, sizeof laps->seconds[0], gf_laps_order);
    return laps->count ? laps->seconds[laps->count / 2] : 0;
}

/* Adds what was done at another time: the seconds of both, by as many workers as the larger crew
 * has. */
void gf_busy_add(gf_busy *sum, gf_busy more);

#endif
