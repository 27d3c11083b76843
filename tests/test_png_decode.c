/* The fast way of reading PNG against libpng's rows: the same images, the same refusals. */
#include <zlib.h>

#include "io/limits.h"
#include "io/png_source.h"
#include "io_util.h"
#include "png_util.h"

static const int kinds[][2] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
                               {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct outcome {
    gf_error error;
    gf_format format;
    unsigned char *pixels;
    gf_metadata metadata;
} outcome;

/* Small, so that damaged headers cannot make the test hold huge images. */
static uint64_t max_pixels = 1 << 20;

/* Not through a file: these are many. */
static outcome load(const png_bytes *file, size_t size, gf_open_source *open, uint64_t band) {
    outcome got = {0};
    gf_input input = {.name = strdup("x.png"), .file = fmemopen(file->data, size, "rb")};
    gf_source *source;
    const gf_limits limits = gf_limits_resolve(&(gf_limits){.max_pixels = max_pixels});

    gf_metadata_init(&got.metadata);
    assert_non_null(input.name);
    assert_non_null(input.file);
    input.head_size = fread(input.head, 1, GF_PEEK, input.file);
    if (open(&input, &limits, &source, &got.error) != GF_OK) {
        gf_input_close(&input);
        return got;
    }
    got.format = source->format;
    (void)load_source(source, band, &got.pixels, &got.metadata, &got.error);
    return got;
}

static void clear(outcome *got) {
    free(got->pixels);
    gf_metadata_clear(&got->metadata);
}

static bool same_metadata(const gf_metadata *a, const gf_metadata *b) {
    bool same = a->count == b->count && strcmp(a->damaged, b->damaged) == 0;
    for (size_t i = 0; same && i < a->count; i++)
        same = strcmp(a->chunks[i].name, b->chunks[i].name) == 0 &&
               a->chunks[i].place == b->chunks[i].place && a->chunks[i].size == b->chunks[i].size &&
               memcmp(a->chunks[i].data, b->chunks[i].data, a->chunks[i].size) == 0;
    return same;
}

static bool same_image(const outcome *a, const outcome *b) {
    return memcmp(&a->format, &b->format, sizeof a->format) == 0 &&
           memcmp(a->pixels, b->pixels, gf_row_bytes(&a->format) * a->format.height) == 0;
}

/* ---- intact files ---------------------------------------------------------------------------- */

static void check_intact(const png_spec *spec, uint64_t band) {
    png_bytes file;
    outcome wanted = {0};

    png_make(spec, &file, &wanted.format, &wanted.pixels);
    outcome fast = load(&file, file.size, gf_png_source_open, band);
    outcome oracle = load(&file, file.size, gf_png_source_open_libpng, 1);
    if (fast.error.status != GF_OK || oracle.error.status != GF_OK || !same_image(&fast, &wanted) ||
        !same_image(&oracle, &wanted) || !same_metadata(&fast.metadata, &oracle.metadata))
        fail_msg("%ux%u color %d depth %d filter %d level %d strategy %d bits %d seed %u: %s%s",
                 spec->width, spec->height, spec->color, spec->depth, (int)spec->filter,
                 spec->level, spec->strategy, spec->window_bits, spec->seed, fast.error.message,
                 oracle.error.message);
    clear(&fast);
    clear(&oracle);
    free(wanted.pixels);
    free(file.data);
}

/* Of any kind, packed in any way. */
static png_spec random_spec(uint32_t *seed, uint32_t most) {
    static const int strategies[] = {Z_DEFAULT_STRATEGY, Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE,
                                     Z_FIXED};
    const int *kind = kinds[next_random(seed) % KINDS];
    png_spec spec = {.width = 1 + next_random(seed) % most,
                     .height = 1 + next_random(seed) % most,
                     .color = kind[0],
                     .depth = kind[1],
                     .transparent = kind[0] < 4 && next_random(seed) % 3 == 0,
                     .interlaced = next_random(seed) % 8 == 0,
                     .filter = (png_rows)(next_random(seed) % (PNG_ROWS_RANDOM + 1)),
                     .level = (int)(next_random(seed) % 11) - 1,
                     .strategy = strategies[next_random(seed) % 5],
                     .seed = next_random(seed)};
    if (next_random(seed) % 3 == 0)
        spec.window_bits = 9 + (int)(next_random(seed) % 7);
    if (next_random(seed) % 2 == 0) {
        spec.idat_bytes = 1 + next_random(seed) % (next_random(seed) % 2 == 0 ? 3 : 9000);
        spec.idat_random = next_random(seed) % 2 == 0;
    }
    return spec;
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

/* ---- damage ---------------------------------------------------------------------------------- */

static uint32_t get32(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void repair_checksums(png_bytes *file) {
    for (size_t at = 8; at + 12 <= file->size;) {
        size_t size = get32(file->data + at);
        if (size > file->size - at - 12)
            return;
        uint32_t sum = (uint32_t)crc32(0, file->data + at + 4, (uInt)size + 4);
        for (int i = 0; i < 4; i++)
            file->data[at + 8 + size + (size_t)i] = (unsigned char)(sum >> (24 - 8 * i));
        at += size + 12;
    }
}

/* Is the zlib stream of the file right to its end, in zlib's eyes? */
static bool stream_is_right(const png_bytes *file) {
    z_stream stream = {0};
    unsigned char out[4096];
    int status = Z_OK;

    assert_int_equal(inflateInit(&stream), Z_OK);
    for (size_t at = 8; at + 12 <= file->size && status == Z_OK;) {
        size_t size = get32(file->data + at);
        if (size > file->size - at - 12)
            break;
        stream.next_in = file->data + at + 8;
        stream.avail_in = memcmp(file->data + at + 4, "IDAT", 4) == 0 ? (uInt)size : 0;
        while (stream.avail_in != 0 && status == Z_OK) {
            stream.next_out = out;
            stream.avail_out = sizeof out;
            status = inflate(&stream, Z_NO_FLUSH);
        }
        at += size + 12;
    }
    (void)inflateEnd(&stream);
    return status == Z_STREAM_END;
}

typedef struct tally {
    int files, accepted, unused_codes, damaged_ends;
} tally;

/* Both refuse or both accept and give the same image, but for the two exceptions of
 * io/png_inflate.h. intact is the image before the damage. */
static void check_same(const png_bytes *file, const outcome *intact, const char *what, size_t where,
                       tally *count) {
    outcome fast = load(file, file->size, gf_png_source_open, 1 + where % 5);
    outcome oracle = load(file, file->size, gf_png_source_open_libpng, 1);
    const bool fast_ok = fast.error.status == GF_OK, oracle_ok = oracle.error.status == GF_OK;

    count->files++;
    count->accepted += oracle_ok;
    if (!fast_ok)
        assert_message(&fast.error, "x.png: ");
    if (fast_ok && oracle_ok) {
        if (!same_image(&fast, &oracle) || !same_metadata(&fast.metadata, &oracle.metadata))
            fail_msg("%s at %zu: another image", what, where);
    } else if (fast_ok) {
        count->unused_codes++;
        if (!(strstr(oracle.error.message, "set)") != NULL && same_image(&fast, intact)))
            fail_msg("%s at %zu: accepted; libpng: %s", what, where, oracle.error.message);
    } else if (oracle_ok) {
        count->damaged_ends++;
        if (stream_is_right(file))
            fail_msg("%s at %zu: refused: %s", what, where, fast.error.message);
    }
    clear(&fast);
    clear(&oracle);
}

static png_bytes copy_of(const png_bytes *file) {
    png_bytes copy = {malloc(file->size + 1), file->size};
    assert_non_null(copy.data);
    memcpy(copy.data, file->data, file->size);
    return copy;
}

static outcome make(const png_spec *spec, png_bytes *file) {
    outcome intact = {0};
    png_make(spec, file, &intact.format, &intact.pixels);
    return intact;
}

static void truncated_files_are_refused_alike(void **state) {
    static const png_extra late = {"tEXt", 2, "Title\0after", 11, false};
    uint32_t seed = 4;

    (void)state;
    for (int i = 0; i < 12; i++) {
        png_spec spec = random_spec(&seed, 20);
        png_bytes file;
        spec.window_bits = 0;
        spec.interlaced = false;
        spec.extras = &late;
        spec.extra_count = 1;
        png_make(&spec, &file, NULL, NULL);
        for (size_t size = 8; size < file.size; size++) {
            outcome fast = load(&file, size, gf_png_source_open, 3);
            assert_message(&fast.error, "x.png: the PNG ends too early; get a complete copy");
            clear(&fast);
        }
        free(file.data);
    }
}

static void check_flips(const png_spec *spec, int step, tally *count) {
    png_bytes file;
    outcome intact = make(spec, &file);

    for (size_t bit = 64; bit < 8 * file.size; bit += (size_t)step) {
        png_bytes broken = copy_of(&file);
        broken.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        check_same(&broken, &intact, "bit", bit, count);
        repair_checksums(&broken);
        check_same(&broken, &intact, "bit, checksum right,", bit, count);
        free(broken.data);
    }
    clear(&intact);
    free(file.data);
}

/* Every bit of small files; more files, and bits further apart, with GF_PNG_FLIPS in the
 * environment. */
static void flipped_bits_are_met_alike(void **state) {
    const char *more = getenv("GF_PNG_FLIPS");
    tally count = {0};
    uint32_t seed = 21;

    (void)state;
    max_pixels = 5000;
    check_flips(&(png_spec){.width = 9, .height = 9, .color = 2, .depth = 8}, 1, &count);
    check_flips(&(png_spec){.width = 8, .height = 7, .depth = 16, .idat_bytes = 1}, 3, &count);
    check_flips(&(png_spec){.width = 30, .height = 9, .color = 3, .depth = 4, .idat_bytes = 50}, 1,
                &count);
    check_flips(&(png_spec){.width = 11, .height = 9, .color = 6, .depth = 8, .strategy = Z_FIXED},
                1, &count);
    check_flips(&(png_spec){.width = 11, .height = 3, .color = 4, .depth = 8, .level = -1}, 1,
                &count);
    for (int i = 0; i < (more != NULL ? atoi(more) : 4); i++) {
        const png_spec spec = random_spec(&seed, 40);
        check_flips(&spec, 7, &count);
    }
    print_message("%d files, %d accepted; codes with unused words %d, damaged ends %d\n",
                  count.files, count.accepted, count.unused_codes, count.damaged_ends);
    assert_true(count.accepted > 0 && count.accepted < count.files);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_libpng_reads),
        cmocka_unit_test(reads_rows_of_every_length),
        cmocka_unit_test(truncated_files_are_refused_alike),
        cmocka_unit_test(flipped_bits_are_met_alike),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
