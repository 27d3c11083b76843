/* Smooth random fields. */
#ifndef SAMPLES_NOISE_H
#define SAMPLES_NOISE_H

#include <stdint.h>

/* 0 below a, 1 above b, an S between them. */
static inline double smooth_step(double a, double b, double x) {
    double t = (x - a) / (b - a);
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return t * t * (3.0 - 2.0 * t);
}

/* Value noise in [0, 1): random values on the unit lattice, smoothly joined. */
double noise3(double x, double y, double z, uint32_t seed);

/* The mean of `octaves` noises, each at twice the frequency and half the weight of the last. */
double noise3_octaves(double x, double y, double z, int octaves, uint32_t seed);

#endif
