/* Intact PNG files: comparison of the reader, libpng (png_both.h) and the original samples. */
#include "png_both.h"

static void check_intact(const png_spec *spec, uint64_t strip) {
    AUTO(free) png_bytes file;
    outcome wanted = {0};
    png_make(spec, &file, &wanted.format, &wanted.pixels);
    outcome ours = load(&file, file.size, NULL, gf_png_codec.open_source, strip);
    outcome oracle = png_oracle(&file, file.size, NULL);
    if (ours.error.status != GF_OK || oracle.error.status != GF_OK || !same_image(&ours, &wanted) ||
        !same_image(&oracle, &wanted) || !same_metadata(&ours.metadata, &oracle.metadata))
        fail_msg(
            "%ux%u color %d depth %d filter %d level %d strategy %d bits %d seed %u flush %d "
            "after %zu chunks %zu: %s%s",
            spec->width, spec->height, spec->color, spec->depth, (int)spec->filter, spec->level,
            spec->strategy, spec->window_bits, spec->seed, spec->flush, spec->flush_bytes,
            spec->idat_bytes, ours.error.message, oracle.error.message);
    clear(&ours);
    clear(&oracle);
    free(wanted.pixels);
}

TEST(equals_libpng) {
    uint32_t seed = 11;
    for (size_t k = 0; k < KINDS; k++)
        for (int filter = PNG_ROWS_CYCLE; filter <= PNG_ROWS_RANDOM; filter++)
            check_intact(&(png_spec){.width = 61 + next_random(&seed) % 20,
                                     .height = 40,
                                     .color = kinds[k][0],
                                     .depth = kinds[k][1],
                                     .filter = (png_rows)filter,
                                     .seed = next_random(&seed)},
                         1 + next_random(&seed) % 12);
    for (int i = 0; i < 400; i++) {
        const png_spec spec = random_spec(&seed, i % 20 == 0 ? 500 : 60);
        check_intact(&spec, 1 + next_random(&seed) % 40);
    }
}

/* Rows longer than every buffer, and buffers that end at any byte of a row. */
TEST(reads_rows_of_every_length) {
    static const uint32_t widths[] = {32766,  32767,  32768,  65535, 65536,
                                      131070, 131071, 131072, 200000};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (int depth = 8; depth <= 16; depth += 8) {
            check_intact(&(png_spec){.width = widths[i], .height = 5, .depth = depth, .level = 1},
                         2);
            check_intact(&(png_spec){.width = widths[i],
                                     .height = 4,
                                     .color = 2,
                                     .depth = depth,
                                     .level = -1,
                                     .idat_bytes = 70000,
                                     .filter = PNG_ROWS_RANDOM},
                         3);
        }
    check_intact(&(png_spec){.width = 3, .height = 100000, .color = 2, .depth = 8}, 777);
}

/* Streams with every type of block, small and large, that end at any bit and at any byte of a
 * buffer. The reader passes streams with many small blocks to zlib, with full and partial
 * windows. */
TEST(reads_blocks_of_every_size) {
    static const int flushes[] = {Z_PARTIAL_FLUSH, Z_SYNC_FLUSH, Z_FULL_FLUSH, Z_BLOCK};
    static const size_t steps[] = {1, 7, 60, 300, 1100, 1300, 5000, 40000, 300000};
    static const int levels[] = {-1, 1, 6};
    static const size_t chunks[] = {0, 3, 1000, 70000};
    uint32_t seed = 3;
    for (uint32_t step = 1; step <= 60; step++)
        check_intact(&(png_spec){.width = 90,
                                 .height = 60,
                                 .color = 2,
                                 .depth = 8,
                                 .seed = step,
                                 .level = 1,
                                 .strategy = step % 3 == 0 ? Z_FIXED : 0,
                                 .flush = flushes[step % 4],
                                 .flush_bytes = step},
                     7);
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++)
        for (uint32_t l = 0; l < sizeof levels / sizeof *levels; l++)
            check_intact(&(png_spec){.width = steps[s] < 60 ? 90 : 700,
                                     .height = (steps[s] < 5000 ? 160 : 450) + l,
                                     .color = 2,
                                     .depth = 8,
                                     .seed = next_random(&seed),
                                     .idat_bytes = chunks[next_random(&seed) % 4],
                                     .level = levels[l],
                                     .strategy = next_random(&seed) % 2 == 0 ? Z_FIXED : 0,
                                     .flush = flushes[next_random(&seed) % 4],
                                     .flush_bytes = steps[s]},
                         1 + next_random(&seed) % 40);
}

int main(void) {
    return test_main(NULL);
}
