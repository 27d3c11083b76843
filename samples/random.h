/* Random numbers that are the same on every machine. */
#ifndef SAMPLES_RANDOM_H
#define SAMPLES_RANDOM_H

#include <stdint.h>

/* PCG32 on one stream: small, and good enough that no pattern shows in a picture. */
typedef struct rng {
    uint64_t state;
} rng;

static inline uint32_t rng_next(rng *r) {
    uint64_t old = r->state;
    r->state = old * 6364136223846793005u + 1442695040888963407u;
    uint32_t word = (uint32_t)(((old >> 18) ^ old) >> 27);
    uint32_t turn = (uint32_t)(old >> 59);
    return word >> turn | word << ((32u - turn) & 31u);
}

/* Neighbouring seeds (rows, pixels) must not give neighbouring streams: the seed is mixed first. */
static inline rng rng_seed(uint64_t seed) {
    seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9u;
    seed = (seed ^ seed >> 27) * 0x94d049bb133111ebu;
    rng r = {seed ^ seed >> 31};
    rng_next(&r);
    return r;
}

/* Uniform in [0, 1): 24 bits, so that the value is exact in a float as well. */
static inline double rng_unit(rng *r) {
    return (double)(rng_next(r) >> 8) * (1.0 / 16777216.0);
}

/* About normal, mean 0 and deviation 1: the sum of the word's four bytes. The tails end at 3.5
 * deviations, which an eye does not miss, and no logarithm is needed. */
static inline double rng_normal(rng *r) {
    uint32_t w = rng_next(r);
    uint32_t sum = (w & 255u) + (w >> 8 & 255u) + (w >> 16 & 255u) + (w >> 24);
    return ((double)sum - 510.0) * (1.0 / 147.8);
}

/* A hash of a lattice point. */
static inline uint32_t hash_point(int32_t x, int32_t y, int32_t z, uint32_t seed) {
    uint32_t h = seed * 0x9e3779b1u ^ (uint32_t)x * 0x85ebca6bu ^ (uint32_t)y * 0xc2b2ae35u ^
                 (uint32_t)z * 0x27d4eb2fu;
    h = (h ^ h >> 16) * 0x7feb352du;
    h = (h ^ h >> 15) * 0x846ca68bu;
    return h ^ h >> 16;
}

static inline double hash_unit(int32_t x, int32_t y, int32_t z, uint32_t seed) {
    return (double)(hash_point(x, y, z, seed) >> 8) * (1.0 / 16777216.0);
}

#endif
