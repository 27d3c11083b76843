/* Draws the sample pictures. There is no input, and the pictures are the same on every machine:
 * the generators use their own random numbers and no function of libm but sqrt, which IEEE 754
 * rounds exactly (sin or exp differ from one libc to the next). Build without contraction of
 * floating-point expressions (-ffp-contract=off). */
#include "draw.h"

#include "picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    bool (*draw)(const char *path);
} samples[] = {
    {"scene.png", draw_scene},   {"page.png", draw_page}, {"gradient16.png", draw_gradient},
    {"cutout.png", draw_cutout}, {"ramp.pfm", draw_ramp}, {"card.png", draw_card},
    {"detail.png", draw_detail},
};

static int usage(void) {
    fputs(
        "usage: draw OUTDIR                                         the samples\n"
        "       draw [--grey] [--16] --photo WIDTH HEIGHT SEED OUT  (.png; of 8 bits .ppm, .pgm)\n"
        "       draw --scene WIDTH HEIGHT PATHS OUT\n"
        "       draw --poster WIDTH HEIGHT OUT\n"
        "       draw --text SCALE OUT\n",
        stderr);
    return 1;
}

static bool draw_all(const char *folder) {
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        size_t bytes = strlen(folder) + 1 + strlen(samples[i].name) + 1;
        char *path = malloc(bytes);
        if (!path)
            return picture_complain(folder, "out of memory");
        snprintf(path, bytes, "%s/%s", folder, samples[i].name);
        bool ok = samples[i].draw(path);
        free(path);
        if (!ok)
            return false;
    }
    return true;
}

/* Digits only: strtoul would take signs and spaces as well. */
static bool parse(const char *text, uint32_t lowest, uint32_t highest, uint32_t *value) {
    uint64_t n = 0;
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9' || n > highest)
            return picture_complain(text, "not a number in range");
        n = n * 10 + (uint64_t)(*c - '0');
    }
    if (!*text || n < lowest || n > highest)
        return picture_complain(text, "not a number in range");
    *value = (uint32_t)n;
    return true;
}

static bool parse_size(char **words, uint32_t *width, uint32_t *height) {
    const uint32_t limit = 1000000; /* libpng's */
    return parse(words[0], 1, limit, width) && parse(words[1], 1, limit, height);
}

static bool photo(char **words, bool grey, bool deep) {
    photo_size size = {0, 0, grey ? 1 : 3, deep ? 16 : 8};
    uint32_t seed = 0;
    return parse_size(words, &size.width, &size.height) && parse(words[2], 0, UINT32_MAX, &seed) &&
           draw_photo(words[3], size, seed);
}

static bool scene(char **words) {
    scene_size size = {0, 0, 0};
    return parse_size(words, &size.width, &size.height) &&
           parse(words[2], 1, 100000, &size.samples) && draw_large_scene(words[3], size);
}

static bool poster(char **words) {
    uint32_t width = 0, height = 0;
    return parse_size(words, &width, &height) && draw_poster(words[2], width, height);
}

static bool text(char **words) {
    uint32_t scale = 0;
    return parse(words[0], 1, 100, &scale) && draw_text(words[1], (int)scale);
}

int main(int argc, char **argv) {
    int at = 1;
    bool grey = at < argc && strcmp(argv[at], "--grey") == 0;
    at += grey;
    bool deep = at < argc && strcmp(argv[at], "--16") == 0;
    at += deep;
    const char *what = at < argc ? argv[at] : "";
    char **words = argv + at + 1;
    int count = argc - at - 1;
    if (strcmp(what, "--photo") == 0 && count == 4)
        return photo(words, grey, deep) ? 0 : 1;
    if (grey || deep)
        return usage();
    if (strcmp(what, "--scene") == 0 && count == 4)
        return scene(words) ? 0 : 1;
    if (strcmp(what, "--poster") == 0 && count == 3)
        return poster(words) ? 0 : 1;
    if (strcmp(what, "--text") == 0 && count == 2)
        return text(words) ? 0 : 1;
    if (!*what || what[0] == '-' || count != 0)
        return usage();
    return draw_all(what) ? 0 : 1;
}
