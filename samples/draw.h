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

/* Small ones, for the pictures of the documentation. */
bool draw_card(const char *path);   /* grey u8: a test card */
bool draw_detail(const char *path); /* RGB u8: a part of the scene, noisier */

/* What follows is for measuring speed: files of many megapixels, quickly encoded. Rows are made and
 * written one by one, unless said otherwise. */

typedef struct photo_size {
    uint32_t width, height;
    int channels; /* 1 or 3 */
    int bits;     /* 8, or 16 with noise in the low ones */
} photo_size;

/* A landscape that compresses like a photograph does. */
bool draw_photo(const char *path, photo_size size, uint32_t seed);

typedef struct scene_size {
    uint32_t width, height;
    uint32_t samples; /* paths a pixel: the fewer the noisier */
} scene_size;

/* RGB u8: the still life; a path takes about a microsecond. */
bool draw_large_scene(const char *path, scene_size size);

/* Grey u8: the page as printed, without what a scanner adds; 850 x 1100 pixels times scale, all in
 * memory as floats. */
bool draw_text(const char *path, int scale);

/* RGB u8: flat shapes with smooth edges before an even gradient. */
bool draw_poster(const char *path, uint32_t width, uint32_t height);

#endif
