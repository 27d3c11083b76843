/* Intact PNGs: the reader, libpng (png_oracle.h), and the samples that the file was made of. */
#include "png_oracle.h"

static void check_intact(const png_spec *spec, uint64_t band) {
    png_bytes file;
    outcome wanted = {0};

    png_make(spec, &file, &wanted.format, &wanted.pixels);
    outcome ours = load(&file, file.size, NULL, gf_png_source_open, band);
    outcome oracle = png_oracle(&file, file.size, NULL);
    if (ours.error.status != GF_OK || oracle.error.status != GF_OK || !same_image(&ours, &wanted) ||
        !same_image(&oracle, &wanted) || !same_metadata(&ours.metadata, &oracle.metadata))
        fail_msg("%ux%u color %d depth %d filter %d level %d strategy %d bits %d seed %u: %s%s",
                 spec->width, spec->height, spec->color, spec->depth, (int)spec->filter,
                 spec->level, spec->strategy, spec->window_bits, spec->seed, ours.error.message,
                 oracle.error.message);
    clear(&ours);
    clear(&oracle);
    free(wanted.pixels);
    free(file.data);
}

static void reads_what_libpng_reads(void **state) {
    uint32_t seed = 11;

    (void)state;
    for (size_t k = 0; k < KINDS; k++)
        for (int filter = PNG_ROWS_IN_TURN; filter <= PNG_ROWS_RANDOM; filter++)
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

/* Rows longer than every buffer, and buffers that end anywhere in a row. */
static void reads_rows_of_every_length(void **state) {
    static const uint32_t widths[] = {32766,  32767,  32768,  65535, 65536,
                                      131070, 131071, 131072, 200000};

    (void)state;
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_libpng_reads),
        cmocka_unit_test(reads_rows_of_every_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
