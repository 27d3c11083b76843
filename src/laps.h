/* How long something takes that is done again and again: the median counts. */
#ifndef GF_LAPS_H
#define GF_LAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

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

#endif
