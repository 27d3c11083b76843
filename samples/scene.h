/* The room that scene.png shows: what a ray meets, and where the light is. */
#ifndef SAMPLES_SCENE_H
#define SAMPLES_SCENE_H

#include "vec.h"

#include <stdbool.h>

typedef enum finish {
    MATTE,
    COATED, /* matte under a clear varnish */
    METAL,
    GLASS,
    LAMP, /* colour is what it sends out */
} finish;

typedef struct hit {
    double distance;
    vec3 point;
    vec3 normal; /* towards where the ray came from */
    bool inside; /* the ray leaves the object */
    finish finish;
    vec3 colour;
    double rough; /* of the reflection: 0 is a mirror */
} hit;

/* The nearest thing along a ray of unit direction, false if it leaves the room. */
bool scene_hit(vec3 from, vec3 along, hit *h);

/* Does anything stand between two points? The lamp does not. */
bool scene_blocked(vec3 from, vec3 to);

/* The lamp: a level rectangle that shines down. */
vec3 scene_lamp_point(double u, double v);
double scene_lamp_area(void);
vec3 scene_lamp_light(void);

/* Light from outside, where the room is open. */
vec3 scene_sky(vec3 along);

#endif
