#include "noise.h"

#include "random.h"

/* (int32_t) truncates towards zero, which would mirror the field at 0. */
static int32_t floor_int(double x) {
    int32_t i = (int32_t)x;
    return (double)i > x ? i - 1 : i;
}

static double fade(double t) {
    return t * t * (3.0 - 2.0 * t);
}

static double mix(double a, double b, double t) {
    return a + (b - a) * t;
}

double noise3(double x, double y, double z, uint32_t seed) {
    int32_t ix = floor_int(x), iy = floor_int(y), iz = floor_int(z);
    double tx = fade(x - ix), ty = fade(y - iy), tz = fade(z - iz);
    double layer[2];
    for (int32_t k = 0; k < 2; k++) {
        double near = mix(hash_unit(ix, iy, iz + k, seed), hash_unit(ix + 1, iy, iz + k, seed), tx);
        double far =
            mix(hash_unit(ix, iy + 1, iz + k, seed), hash_unit(ix + 1, iy + 1, iz + k, seed), tx);
        layer[k] = mix(near, far, ty);
    }
    return mix(layer[0], layer[1], tz);
}

double noise3_octaves(double x, double y, double z, int octaves, uint32_t seed) {
    double sum = 0, weight = 1, total = 0;
    for (int i = 0; i < octaves; i++) {
        sum += weight * noise3(x, y, z, seed + (uint32_t)i);
        total += weight;
        weight *= 0.5;
        x *= 2;
        y *= 2;
        z *= 2;
    }
    return sum / total;
}
