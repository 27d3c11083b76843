/* PNG files of every colour type and depth, read and written, and their metadata. */
#include <png.h>

#include "io/codecs.h"
#include "io/png/png.h"
#include "png_file.h"

/* ---- reading --------------------------------------------------------------------------------- */

static void check_read(const png_spec *spec) {
    AUTO(free) png_bytes file;
    gf_format wanted, got = {0};
    AUTO(free) unsigned char *expected, *pixels;
    png_make(spec, &file, &wanted, &expected);
    put_bytes(path(), file.data, file.size);
    if (load_image(path(), NULL, 3, &got, &pixels, NULL, &why) != GF_OK)
        fail_msg("%ux%u color %d depth %d: %s", spec->width, spec->height, spec->color, spec->depth,
                 why.message);
    assert_int_equal(got.width, wanted.width);
    assert_int_equal(got.height, wanted.height);
    assert_int_equal(got.channels, wanted.channels);
    assert_int_equal(got.type, wanted.type);
    if (memcmp(pixels, expected, gf_row_bytes(&got) * got.height) != 0)
        fail_msg("%ux%u color %d depth %d interlaced %d tRNS %d: wrong pixels", spec->width,
                 spec->height, spec->color, spec->depth, spec->interlaced, spec->transparent);
}

TEST(reads_all_types_and_depths) {
    static const int kinds[][2] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
                                   {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
    static const uint32_t sizes[][2] = {{1, 1}, {1, 7}, {7, 1}, {5, 3}, {33, 17}};
    uint32_t seed = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int flags = 0; flags < 4; flags++) {
                bool transparent = (flags & 2) != 0;
                if (transparent && kinds[k][0] >= 4)
                    continue;
                check_read(&(png_spec){.width = sizes[s][0],
                                       .height = sizes[s][1],
                                       .color = kinds[k][0],
                                       .depth = kinds[k][1],
                                       .interlaced = (flags & 1) != 0,
                                       .transparent = transparent,
                                       .idat_bytes = s == 4 ? 20 : 0,
                                       .seed = seed++});
            }
}

TEST(reads_indices_past_the_palette_as_black) {
    for (int flags = 0; flags < 4; flags++)
        for (int depth = 1; depth <= 8; depth *= 2)
            check_read(&(png_spec){.width = 40,
                                   .height = 9,
                                   .color = 3,
                                   .depth = depth,
                                   .palette_count = 1,
                                   .interlaced = (flags & 1) != 0,
                                   .transparent = (flags & 2) != 0});
}

/* An intact tRNS chunk in the wrong position, or after another tRNS chunk. libpng drops it. */
TEST(drops_misplaced_transparent_colours) {
    static const png_extra key = {"tRNS", 0, "\0\1\0\2\0\3", 6, false};
    static const png_extra colors = {"PLTE", 1, "\1\2\3", 3, false};
    static const struct {
        int color;
        png_extra extras[2];
        uint32_t channels;
    } cases[] = {
        {2, {{"gAMA", 0, "\0\0\1\1", 4, false}, key}, 4},   /* RGB needs no PLTE */
        {2, {key, colors}, PNG_LIBPNG_VER < 10647 ? 3 : 4}, /* newer ones drop the PLTE instead */
        {2, {colors, {"tRNS", 1, "\0\1\0\2\0\3", 6, false}}, 4},
        {2, {key, {"tRNS", 1, "\0\4\0\5\0\6", 6, false}}, 4},
        {2, {{"tRNS", 2, "\0\1\0\2\0\3", 6, false}, colors}, 3},
        {3, {{"tRNS", 0, "\0", 1, false}, {"tEXt", 0, "a\0b", 3, false}}, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const png_spec spec = {.width = 3,
                               .height = 2,
                               .color = cases[i].color,
                               .depth = 8,
                               .extras = cases[i].extras,
                               .extra_count = 2};
        AUTO(free) png_bytes file;
        gf_format format;
        AUTO(free) unsigned char *pixels;
        png_make(&spec, &file, NULL, NULL);
        put_bytes(path(), file.data, file.size);
        if (load_image(path(), NULL, 1, &format, &pixels, NULL, &why) != GF_OK)
            fail_msg("case %zu: %s", i, why.message);
        assert_int_equal(format.channels, cases[i].channels);
    }
}

/* ---- writing --------------------------------------------------------------------------------- */

TEST(writes_all_formats) {
    static const uint64_t sizes[][2] = {{1, 1}, {1, 9}, {9, 1}, {37, 11}, {700, 120}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (uint32_t channels = 1; channels <= 4; channels++)
            for (int type = GF_U8; type <= GF_U16; type++) {
                const gf_format format = {sizes[s][0], sizes[s][1], channels, (gf_type)type,
                                          channels % 2 == 0};
                AUTO(free) unsigned char *pixels = random_pixels(&format, channels);
                assert_round_trip(path(), &format, pixels);
            }
}

TEST(writes_every_level) {
    const gf_format format = {50, 40, 3, GF_U8, false};
    AUTO(free) unsigned char *pixels = calloc(1, gf_row_bytes(&format) * format.height);
    for (const char *const *name = gf_names(GF_NAMES_COMPRESSION); *name; name++) {
        const gf_file_options options = {.force = true, .write.compression = *name};
        gf_format got;
        AUTO(free) unsigned char *back;
        size_t size;
        assert_ok(save_image(path(), &format, pixels, NULL, &options, 7));
        assert_ok(load_image(path(), NULL, 7, &got, &back, NULL, &why));
        assert_memory_equal(back, pixels, gf_row_bytes(&format) * format.height);
        free(test_bytes(path(), &size));
        assert_true(strcmp(*name, "none") == 0 ? size > 6000 : size < 200);
    }
}

TEST(rejects_floats_and_oversized_images) {
    assert_rejected("y.png", &(gf_format){3, 3, 1, GF_F32, false}, ".tif");
    assert_rejected("y.png", &(gf_format){UINT64_C(1) << 31, 1, 1, GF_U8, false}, "2147483647");
}

/* ---- metadata -------------------------------------------------------------------------------- */

/* Check chunk n of the carried chunks. */
static void assert_chunk(const gf_chunk *chunk, size_t n) {
    assert_string_equal(chunk->name, carried[n].name);
    assert_int_equal(chunk->late, carried[n].position == 2);
    assert_int_equal(chunk->size, carried[n].size);
    assert_memory_equal(chunk->data, carried[n].data, carried[n].size);
}

static void make_with_extras(int color, png_bytes *file) {
    png_extra extras[CARRIED + DROPPED];
    const png_spec spec = {.width = 6,
                           .height = 5,
                           .color = color,
                           .depth = 8,
                           .extras = extras,
                           .extra_count = CARRIED + DROPPED};
    memcpy(extras, carried, sizeof carried);
    memcpy(extras + CARRIED, dropped, sizeof dropped);
    png_make(&spec, file, NULL, NULL);
}

/* List the names of all chunks of a PNG, separated by spaces. */
static void chunk_names(const char *name, char *names, size_t capacity) {
    size_t size;
    AUTO(free) unsigned char *data = test_bytes(name, &size);
    *names = '\0';
    for (size_t at = 8; at + 12 <= size;) {
        size_t length = (size_t)data[at] << 24 | (size_t)data[at + 1] << 16 |
                        (size_t)data[at + 2] << 8 | data[at + 3];
        assert_true(strlen(names) + 6 < capacity);
        strncat(names, (const char *)data + at + 4, 4);
        strcat(names, " ");
        at += length + 12;
    }
}

TEST(carries_metadata) {
    static const int colors[] = {2, 3, 6};
    for (size_t i = 0; i < 3; i++) {
        AUTO(free) png_bytes file;
        gf_format format;
        AUTO(free) unsigned char *pixels, *again;
        gf_metadata metadata;
        char names[512];
        const gf_file_options options = {.force = true};
        make_with_extras(colors[i], &file);
        put_bytes(path(), file.data, file.size);
        assert_ok(load_image(path(), NULL, 1, &format, &pixels, &metadata, &why));
        assert_int_equal(metadata.count, CARRIED);
        for (size_t n = 0; n < CARRIED; n++)
            assert_chunk(&metadata.chunks[n], n);

        const char *copy = in_directory("copy.png");
        assert_ok(save_image(copy, &format, pixels, &metadata, &options, 2));
        chunk_names(copy, names, sizeof names);
        assert_string_equal(names,
                            "IHDR gAMA iCCP cICP tEXt pHYs eXIf zTXt teSt IDAT tEXt iTXt "
                            "tIME gpUf IEND ");
        gf_metadata_clear(&metadata);
        assert_ok(load_image(copy, NULL, 1, &format, &again, &metadata, &why));
        assert_int_equal(metadata.count, CARRIED);
        for (size_t n = 0; n < CARRIED; n++)
            assert_chunk(&metadata.chunks[n], n);
        assert_memory_equal(pixels, again, gf_row_bytes(&format) * format.height);

        assert_ok(save_image(copy, &format, pixels, NULL, &options, 2));
        chunk_names(copy, names, sizeof names);
        assert_string_equal(names, "IHDR IDAT IEND ");
        gf_metadata_clear(&metadata);
    }
}

/* The scanner of files for a device finds the same chunks after the pixels as the reader, and
 * reports the same loss. */
TEST(scans_late_metadata) {
    static const png_extra extras[] = {{"tEXt", 2, "key\0text", 8, false},
                                       {"sBIT", 2, "\5\5\5", 3, false},
                                       {"gAMA", 2, "\0\0\xb1\x8f", 4, false}};
    const png_spec spec = {
        .width = 9, .height = 5, .color = 2, .depth = 8, .extras = extras, .extra_count = 3};
    AUTO(free) png_bytes file;
    gf_png_scan scan;
    gf_source *read, *scanned;
    AUTO(free) void *pixels;
    png_make(&spec, &file, NULL, NULL);
    put_bytes(path(), file.data, file.size);
    read = open_source(path(), NULL);
    assert_int_equal(read->dropped, 0);
    assert_ok(gf_source_read_all(read, "x", "x", 1 << 20, 0, &pixels, NULL));
    assert_true(gf_png_scan_file(file.data, file.size, &scan));
    assert_ok(
        gf_memory_source(&scan.format, file.data, gf_row_bytes(&scan.format), &scanned, NULL));
    assert_ok(gf_png_scan_late(file.data, &scan, scanned, "x", NULL));
    assert_int_equal(read->dropped, GF_DROPPED_OTHER | GF_DROPPED_COLOUR);
    assert_int_equal(scanned->dropped, read->dropped);
    assert_int_equal(scanned->metadata.count, 1);
    assert_int_equal(read->metadata.count, 1);
    assert_string_equal(scanned->metadata.chunks[0].name, read->metadata.chunks[0].name);
    read->ops->close(read);
    scanned->ops->close(scanned);
}

int main(void) {
    return test_main_in_directory();
}
