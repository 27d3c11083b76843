/* One PNG file in memory, read by the reader under test, and by libpng as an oracle. */
#ifndef PNG_BOTH_H
#define PNG_BOTH_H

#include <zlib.h>

#include "codecs.h"
#include "io/codecs.h"
#include "io_util.h"
#include "png_util.h"

typedef struct outcome {
    gf_error error;
    gf_format format;
    unsigned char *pixels;
    gf_metadata metadata;
} outcome;

/* Fill the head of an input, read the image, and close the input. */
static inline outcome load_input(gf_input *input, const gf_limits *given, gf_open_source *open,
                                 uint64_t strip) {
    outcome got = {0};
    gf_source *source;
    const gf_limits limits = gf_limits_resolve(given);
    got.metadata = (gf_metadata){0};
    assert_non_null(input->name);
    assert_non_null(input->file);
    input->head_size = fread(input->head, 1, GF_PEEK, input->file);
    if (open(input, &limits, &source, &got.error) != GF_OK) {
        gf_input_close(input);
        return got;
    }
    got.format = source->format;
    if (load_source(source, strip, &got.pixels, &got.metadata, &why))
        got.error = why;
    return got;
}

/* Read the first `size` bytes of a file. It is in memory because the tests read many files. */
static inline outcome load(const png_bytes *file, size_t size, const gf_limits *given,
                           gf_open_source *open, uint64_t strip) {
    gf_input input = {.name = strdup("x.png"), .file = fmemopen(file->data, size, "rb")};
    return load_input(&input, given, open, strip);
}

static inline uint32_t get32(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void clear(outcome *got) {
    free(got->pixels);
    gf_metadata_clear(&got->metadata);
}

static inline bool same_metadata(const gf_metadata *a, const gf_metadata *b) {
    bool same = a->count == b->count && strcmp(a->damaged, b->damaged) == 0;
    for (size_t i = 0; same && i < a->count; i++)
        same = strcmp(a->chunks[i].name, b->chunks[i].name) == 0 &&
               a->chunks[i].late == b->chunks[i].late && a->chunks[i].size == b->chunks[i].size &&
               memcmp(a->chunks[i].data, b->chunks[i].data, a->chunks[i].size) == 0;
    return same;
}

static inline bool same_image(const outcome *a, const outcome *b) {
    return gf_format_equal(&a->format, &b->format) &&
           memcmp(a->pixels, b->pixels, gf_row_bytes(&a->format) * a->format.height) == 0;
}

static const int kinds[][2] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
                               {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Return a random specification of any colour type, depth and compression. */
static inline png_spec random_spec(uint32_t *seed, uint32_t max) {
    static const int strategies[] = {Z_DEFAULT_STRATEGY, Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE,
                                     Z_FIXED};
    const int *kind = kinds[next_random(seed) % KINDS];
    png_spec spec = {.color = kind[0], .depth = kind[1]};
    /* One statement per field: initializers have no order of evaluation. */
    spec.width = 1 + next_random(seed) % max;
    spec.height = 1 + next_random(seed) % max;
    spec.transparent = kind[0] < 4 && next_random(seed) % 3 == 0;
    spec.interlaced = next_random(seed) % 8 == 0;
    spec.filter = (png_rows)(next_random(seed) % (PNG_ROWS_RANDOM + 1));
    spec.level = (int)(next_random(seed) % 11) - 1;
    spec.strategy = strategies[next_random(seed) % 5];
    spec.seed = next_random(seed);
    if (next_random(seed) % 3 == 0)
        spec.window_bits = 9 + (int)(next_random(seed) % 7);
    if (next_random(seed) % 2 == 0) {
        const size_t chunk = next_random(seed) % 2 == 0 ? 3 : 9000;
        spec.idat_bytes = 1 + next_random(seed) % chunk;
        spec.idat_random = next_random(seed) % 2 == 0;
    }
    return spec;
}

/* Read the first `size` bytes of a file with the oracle: libpng alone, used as in any application.
 * It shares no code with the reader under test: no callbacks, no handling of PLTE and tRNS, no
 * expansion of samples. max_pixels and max_chunk apply as in the reader, except that libpng only
 * warns of chunks that are too large. If the file is accepted, the metadata is collected in a walk
 * along the chunks. */
outcome png_oracle(const png_bytes *file, size_t size, const gf_limits *given);

#endif
