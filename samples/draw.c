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
    {"cutout.png", draw_cutout}, {"ramp.pfm", draw_ramp},
};

static int usage(void) {
    fputs("usage: draw OUTDIR | draw [--grey] --photo WIDTH HEIGHT SEED OUT.png|OUT.ppm|OUT.pgm\n",
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

int main(int argc, char **argv) {
    int at = 1;
    bool grey = at < argc && strcmp(argv[at], "--grey") == 0;
    at += grey;
    if (at < argc && strcmp(argv[at], "--photo") == 0) {
        photo_size size = {0, 0, grey ? 1 : 3};
        uint32_t seed = 0;
        if (argc - at != 5)
            return usage();
        bool ok = parse(argv[at + 1], 1, 1000000, &size.width) && /* libpng's limits */
                  parse(argv[at + 2], 1, 1000000, &size.height) &&
                  parse(argv[at + 3], 0, UINT32_MAX, &seed) && draw_photo(argv[at + 4], size, seed);
        return ok ? 0 : 1;
    }
    if (grey || argc != 2 || argv[1][0] == '-')
        return usage();
    return draw_all(argv[1]) ? 0 : 1;
}
