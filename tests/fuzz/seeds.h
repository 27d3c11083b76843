/* Seeds of the fuzzing corpus, and where they go. */
#ifndef FUZZ_SEEDS_H
#define FUZZ_SEEDS_H

#include <stddef.h>

/* A file for a harness. */
void seed_put(const char *harness, const void *data, size_t size);

/* JPEG, BMP, TGA, PSD, GIF and HDR. */
void put_stb_seeds(void);

#endif
