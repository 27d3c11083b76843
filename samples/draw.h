/* The sample pictures: each draws itself into a file and is false on failure, having said why. */
#ifndef SAMPLES_DRAW_H
#define SAMPLES_DRAW_H

#include <stdbool.h>
#include <stdint.h>

bool draw_scene(const char *path);    /* RGB u8: a path-traced still life, noisy */
bool draw_page(const char *path);     /* grey u8: a scanned page of text */
bool draw_gradient(const char *path); /* grey u16: an unevenly lit background */
bool draw_cutout(const char *path);   /* RGBA u8: an object on nothing */
bool draw_ramp(const char *path);     /* grey f32: a sawtooth on a slope, as a PFM */

typedef struct photo_size {
    uint32_t width, height;
    int channels; /* 1 or 3 */
} photo_size;

/* A landscape that compresses like a photograph does, at any size: rows are made and written one
 * by one. */
bool draw_photo(const char *path, photo_size size, uint32_t seed);

#endif
