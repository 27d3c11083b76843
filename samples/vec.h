/* Vectors of three. */
#ifndef SAMPLES_VEC_H
#define SAMPLES_VEC_H

#include <math.h>

typedef struct vec3 {
    double x, y, z;
} vec3;

static inline vec3 vec(double x, double y, double z) {
    return (vec3){x, y, z};
}

static inline vec3 vec_add(vec3 a, vec3 b) {
    return vec(a.x + b.x, a.y + b.y, a.z + b.z);
}

static inline vec3 vec_sub(vec3 a, vec3 b) {
    return vec(a.x - b.x, a.y - b.y, a.z - b.z);
}

static inline vec3 vec_scale(vec3 a, double s) {
    return vec(a.x * s, a.y * s, a.z * s);
}

static inline vec3 vec_mul(vec3 a, vec3 b) {
    return vec(a.x * b.x, a.y * b.y, a.z * b.z);
}

static inline vec3 vec_mix(vec3 a, vec3 b, double t) {
    return vec_add(a, vec_scale(vec_sub(b, a), t));
}

static inline double vec_dot(vec3 a, vec3 b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static inline vec3 vec_cross(vec3 a, vec3 b) {
    return vec(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}

static inline double vec_length(vec3 a) {
    return sqrt(vec_dot(a, a));
}

static inline vec3 vec_unit(vec3 a) {
    return vec_scale(a, 1.0 / vec_length(a));
}

#endif
