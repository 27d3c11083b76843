#include "io_util.h"
#include "png_util.h"

static const char *path(void) {
    return in_folder("x.png");
}

/* ---- reading --------------------------------------------------------------------------------- */

static void check_read(const png_spec *spec) {
    png_bytes file;
    gf_format wanted, got = {0};
    unsigned char *expected, *pixels;
    gf_error error = {0};

    png_make(spec, &file, &wanted, &expected);
    put_bytes(path(), file.data, file.size);
    if (load_image(path(), NULL, 3, &got, &pixels, NULL, &error) != GF_OK)
        fail_msg("%ux%u color %d depth %d: %s", spec->width, spec->height, spec->color, spec->depth,
                 error.message);
    assert_int_equal(got.width, wanted.width);
    assert_int_equal(got.height, wanted.height);
    assert_int_equal(got.channels, wanted.channels);
    assert_int_equal(got.type, wanted.type);
    if (memcmp(pixels, expected, gf_row_bytes(&got) * got.height) != 0)
        fail_msg("%ux%u color %d depth %d interlaced %d tRNS %d: wrong pixels", spec->width,
                 spec->height, spec->color, spec->depth, spec->interlaced, spec->transparent);
    free(file.data);
    free(expected);
    free(pixels);
}

static void reads_every_kind(void **state) {
    static const int kinds[][2] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
                                   {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
    static const uint32_t sizes[][2] = {{1, 1}, {1, 7}, {7, 1}, {5, 3}, {33, 17}};
    uint32_t seed = 0;

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
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
    }
}

static void reads_indices_past_the_palette_as_black(void **state) {
    (void)state;
    for (int flags = 0; flags < 4; flags++) {
        for (int depth = 1; depth <= 8; depth *= 2)
            check_read(&(png_spec){.width = 40,
                                   .height = 9,
                                   .color = 3,
                                   .depth = depth,
                                   .palette_count = 1,
                                   .interlaced = (flags & 1) != 0,
                                   .transparent = (flags & 2) != 0});
    }
}

/* ---- writing --------------------------------------------------------------------------------- */

static void writes_what_it_reads(void **state) {
    static const uint64_t sizes[][2] = {{1, 1}, {1, 9}, {9, 1}, {37, 11}, {700, 120}};

    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (uint32_t channels = 1; channels <= 4; channels++) {
            for (int type = GF_U8; type <= GF_U16; type++) {
                const gf_format format = {sizes[s][0], sizes[s][1], channels, (gf_type)type};
                unsigned char *pixels = random_pixels(&format, channels);
                assert_round_trip(path(), &format, pixels);
                free(pixels);
            }
        }
    }
}

static void writes_every_level(void **state) {
    const gf_format format = {50, 40, 3, GF_U8};
    unsigned char *pixels = calloc(1, gf_row_bytes(&format) * format.height);
    (void)state;
    for (const char *const *name = gf_compressions(); *name; name++) {
        const gf_file_options options = {.force = true, .compression = *name};
        gf_error error = {0};
        gf_format got;
        unsigned char *back;
        size_t size;
        assert_int_equal(save_image(path(), &format, pixels, NULL, &options, 7, &error), GF_OK);
        assert_int_equal(load_image(path(), NULL, 7, &got, &back, NULL, &error), GF_OK);
        assert_memory_equal(back, pixels, gf_row_bytes(&format) * format.height);
        free(get_bytes(path(), &size));
        assert_true(strcmp(*name, "0") == 0 ? size > 6000 : size < 200);
        free(back);
    }
    free(pixels);
}

static void refuses_floats(void **state) {
    (void)state;
    assert_refused("y.png", &(gf_format){3, 3, 1, GF_F32}, ".pfm");
    assert_refused("y.png", &(gf_format){UINT64_C(1) << 31, 1, 1, GF_U8}, "2147483647");
}

/* ---- metadata -------------------------------------------------------------------------------- */

static const png_extra carried[] = {
    {"gAMA", 0, "\x00\x00\xb1\x8f", 4, false},
    {"iCCP", 0, "not a profile\0\0but bytes", 25, false},
    {"cICP", 0, "\x09\x10\x00\x01", 4, false},
    {"tEXt", 0, "Title\0before", 12, false},
    {"pHYs", 1, "\0\0\x0b\x13\0\0\x0b\x13\1", 9, false},
    {"eXIf", 1, "MM\0*\0\0\0\x08\0\0", 10, false},
    {"zTXt", 1, "Comment\0\0not deflated", 21, false},
    {"teSt", 1, "", 0, false},
    {"tEXt", 2, "Title\0after", 11, false},
    {"iTXt", 2, "Key\0\0\0de\0\0Wert", 14, false},
    {"tIME", 2, "\x07\xe8\1\2\3\4\5", 7, false},
    {"gpUf", 2, "\0\1\2\3", 4, false},
};
static const png_extra dropped[] = {
    {"bKGD", 1, "\0\1\0\1\0\1", 6, false}, {"sBIT", 0, "\5\5\5", 3, false},
    {"hIST", 1, "\0\1", 2, false},         {"teST", 1, "unsafe", 6, false},
    {"pHYs", 1, "damaged!!", 9, true},     {"sPLT", 1, "n\0\x08", 3, false},
};
enum { CARRIED = sizeof carried / sizeof *carried, DROPPED = sizeof dropped / sizeof *dropped };

/* Where the chunk number n of the carried ones must be found, and its bytes. */
static void assert_chunk(const gf_chunk *chunk, size_t n, bool has_palette) {
    int place = carried[n].place;

    if (place == 1 && !has_palette)
        place = 0;
    assert_string_equal(chunk->name, carried[n].name);
    assert_int_equal(chunk->place, place);
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

/* The chunk names of a PNG, one after another. */
static void chunk_names(const char *name, char *names, size_t room) {
    size_t size;
    unsigned char *data = get_bytes(name, &size);

    *names = '\0';
    for (size_t at = 8; at + 12 <= size;) {
        size_t length = (size_t)data[at] << 24 | (size_t)data[at + 1] << 16 |
                        (size_t)data[at + 2] << 8 | data[at + 3];
        assert_true(strlen(names) + 6 < room);
        strncat(names, (const char *)data + at + 4, 4);
        strcat(names, " ");
        at += length + 12;
    }
    free(data);
}

static void carries_metadata(void **state) {
    static const int colors[] = {2, 3, 6};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        png_bytes file;
        gf_format format;
        unsigned char *pixels, *again;
        gf_metadata metadata;
        gf_error error = {0};
        char names[512];
        const gf_file_options options = {.force = true};

        make_with_extras(colors[i], &file);
        put_bytes(path(), file.data, file.size);
        assert_int_equal(load_image(path(), NULL, 1, &format, &pixels, &metadata, &error), GF_OK);
        assert_int_equal(metadata.count, CARRIED);
        for (size_t n = 0; n < CARRIED; n++)
            assert_chunk(&metadata.chunks[n], n, colors[i] == 3);

        const char *copy = in_folder("copy.png");
        assert_int_equal(save_image(copy, &format, pixels, &metadata, &options, 2, &error), GF_OK);
        chunk_names(copy, names, sizeof names);
        assert_string_equal(names,
                            "IHDR gAMA iCCP cICP tEXt pHYs eXIf zTXt teSt IDAT tEXt iTXt "
                            "tIME gpUf IEND ");
        gf_metadata_clear(&metadata);
        assert_int_equal(load_image(copy, NULL, 1, &format, &again, &metadata, &error), GF_OK);
        assert_int_equal(metadata.count, CARRIED);
        for (size_t n = 0; n < CARRIED; n++)
            assert_chunk(&metadata.chunks[n], n, false);
        assert_memory_equal(pixels, again, gf_row_bytes(&format) * format.height);

        assert_int_equal(save_image(copy, &format, pixels, NULL, &options, 2, &error), GF_OK);
        chunk_names(copy, names, sizeof names);
        assert_string_equal(names, "IHDR IDAT IEND ");
        gf_metadata_clear(&metadata);
        free(file.data);
        free(pixels);
        free(again);
    }
}

/* ---- damage ---------------------------------------------------------------------------------- */

static gf_status load_bytes(const void *data, size_t size, const gf_limits *limits,
                            gf_error *error) {
    gf_format format;
    unsigned char *pixels;

    put_bytes(path(), data, size);
    gf_status status = load_image(path(), limits, 4, &format, &pixels, NULL, error);
    free(pixels);
    return status;
}

static void reports_truncation_everywhere(void **state) {
    png_bytes file;

    (void)state;
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        const png_spec spec = {.width = 19,
                               .height = 23,
                               .color = 3,
                               .depth = 4,
                               .transparent = true,
                               .interlaced = interlaced,
                               .idat_bytes = 50,
                               .extras = carried,
                               .extra_count = CARRIED};
        png_make(&spec, &file, NULL, NULL);
        for (size_t size = 0; size < file.size; size++) {
            gf_error error = {0};
            assert_int_equal(load_bytes(file.data, size, NULL, &error), GF_FAILED);
            assert_message(&error, size == 0  ? "x.png: the file is empty"
                                   : size < 8 ? "x.png: not an image"
                                              : "x.png: the PNG ends too early");
        }
        free(file.data);
    }
}

static void reports_or_survives_every_flipped_byte(void **state) {
    const png_spec spec = {
        .width = 9, .height = 9, .color = 0, .depth = 2, .transparent = true, .idat_bytes = 30};
    png_bytes file;
    int failures = 0;

    (void)state;
    png_make(&spec, &file, NULL, NULL);
    for (size_t i = 8; i < file.size; i++) {
        gf_error error = {0};
        file.data[i] ^= 0x15;
        if (load_bytes(file.data, file.size, NULL, &error) != GF_OK) {
            assert_message(&error, "x.png: ");
            failures++;
        }
        file.data[i] ^= 0x15;
    }
    /* Every byte is under a checksum, and no chunk here may be dropped, except that another name
     * for tRNS makes it a damaged unknown chunk. */
    assert_true(failures >= (int)file.size - 8 - 4);
    free(file.data);
}

static size_t find(const png_bytes *file, const char *name) {
    for (size_t i = 0; i + 4 <= file->size; i++) {
        if (memcmp(file->data + i, name, 4) == 0)
            return i;
    }
    fail_msg("no %s", name);
    return 0;
}

static void names_what_is_damaged(void **state) {
    const png_spec spec = {.width = 9, .height = 9, .color = 0, .depth = 8, .transparent = true};
    png_bytes file;
    gf_error error = {0};

    (void)state;
    png_make(&spec, &file, NULL, NULL);
    size_t idat = find(&file, "IDAT");
    size_t trns = find(&file, "tRNS");
    file.data[idat + 20] ^= 1;
    assert_int_equal(load_bytes(file.data, file.size, NULL, &error), GF_FAILED);
    assert_message(&error, "x.png: the PNG is damaged (IDAT: ");
    file.data[idat + 20] ^= 1;
    file.data[trns + 4] ^= 1;
    assert_int_equal(load_bytes(file.data, file.size, NULL, &error), GF_FAILED);
    assert_message(&error, "x.png: the PNG is damaged (tRNS: CRC error)");
    free(file.data);
    assert_int_equal(load_bytes("Hello, world\n", 13, NULL, &error), GF_FAILED);
    assert_message(&error, "x.png: not an image that gpufilter reads");
}

/* Metadata that is damaged must not be lost in silence: the whole command fails, wherever the chunk
 * stands, unless metadata is not wanted. */
static void damaged_metadata_is_told(void **state) {
    static const struct {
        png_extra extra;
        bool carried;
    } cases[] = {
        {{"iCCP", 0, "x\0\0profile", 10, true}, true},
        {{"tEXt", 2, "late\0text", 9, true}, true},
        {{"gAMA", 0, "\0\0\xb1\x8f", 4, false}, true}, /* not damaged: no failure */
        {{"bKGD", 1, "\0\0", 2, true}, false}, /* about the old pixels: not carried anyway */
    };
    const gf_filter *filter = gf_filter_find("smooth");
    const gf_filter_info *info = gf_filter_describe(filter);
    gf_settings *settings = gf_settings_new(info->params, info->param_count);
    gf_engine *engine = NULL;

    (void)state;
    assert_int_equal(gf_engine_open(NULL, &engine, NULL), GF_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const png_spec spec = {
            .width = 5, .height = 5, .depth = 8, .extras = &cases[i].extra, .extra_count = 1};
        bool fails = cases[i].carried && cases[i].extra.bad_checksum;
        gf_file_options options = {.force = true};
        png_bytes file;
        gf_error error = {0};

        png_make(&spec, &file, NULL, NULL);
        put_bytes(in_folder("x.png"), file.data, file.size);
        free(file.data);
        const char *const in = in_folder("x.png");
        gf_status status = gf_run_file(engine, filter, settings, &in, in_folder("y.png"), &options,
                                       NULL, NULL, &error);
        assert_int_equal(status, fails ? GF_FAILED : GF_OK);
        if (fails) {
            assert_message(&error, cases[i].extra.name);
            assert_message(&error, "--strip");
            assert_int_equal(count_files(false), 1); /* no output, no litter */
        }
        options.strip = true;
        status = gf_run_file(engine, filter, settings, &in, in_folder("y.png"), &options, NULL,
                             NULL, &error);
        assert_int_equal(status, GF_OK);
        unlink(in_folder("y.png"));
    }
    gf_engine_close(engine);
    gf_settings_free(settings);
}

static void refuses_unknown_critical_chunks(void **state) {
    const png_extra extra = {"ABCD", 1, "x", 1, false};
    const png_spec spec = {.width = 2, .height = 2, .depth = 8, .extras = &extra, .extra_count = 1};
    png_bytes file;
    gf_error error = {0};

    (void)state;
    png_make(&spec, &file, NULL, NULL);
    assert_int_equal(load_bytes(file.data, file.size, NULL, &error), GF_FAILED);
    assert_message(&error, "ABCD");
    free(file.data);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void limits_name_their_option(void **state) {
    char text[2000];
    const png_extra extra = {"tEXt", 1, text, sizeof text, false};
    png_spec spec = {.width = 30,
                     .height = 20,
                     .depth = 8,
                     .interlaced = true,
                     .extras = &extra,
                     .extra_count = 1};
    png_bytes file;
    gf_error error = {0};

    (void)state;
    memset(text, 'a', sizeof text);
    png_make(&spec, &file, NULL, NULL);
    assert_int_equal(load_bytes(file.data, file.size, NULL, &error), GF_OK);
    assert_int_equal(load_bytes(file.data, file.size, &(gf_limits){.max_pixels = 600}, &error),
                     GF_OK);
    assert_int_equal(load_bytes(file.data, file.size, &(gf_limits){.max_pixels = 599}, &error),
                     GF_FAILED);
    assert_message(&error,
                   "x.png: 30x20 pixels are over the limit of 599; raise it with --max-pixels");
    assert_int_equal(load_bytes(file.data, file.size, &(gf_limits){.max_chunk = 2000}, &error),
                     GF_OK);
    assert_int_equal(load_bytes(file.data, file.size, &(gf_limits){.max_chunk = 1999}, &error),
                     GF_FAILED);
    assert_message(&error, "tEXt chunk is over the limit of 1999 bytes; raise it with --max-chunk");
    assert_int_equal(load_bytes(file.data, file.size, &(gf_limits){.max_memory = 1000}, &error),
                     GF_FAILED);
    assert_message(&error, "metadata are over the limit of 1000; raise it with --max-memory");
    free(file.data);

    spec.extra_count = 0;
    png_make(&spec, &file, NULL, NULL);
    assert_int_equal(load_bytes(file.data, file.size, &(gf_limits){.max_memory = 600}, &error),
                     GF_OK);
    assert_int_equal(load_bytes(file.data, file.size, &(gf_limits){.max_memory = 599}, &error),
                     GF_FAILED);
    assert_message(&error, "an interlaced image are over the limit of 599");
    assert_int_equal(load_bytes(file.data, file.size, &(gf_limits){.max_memory = 59}, &error),
                     GF_FAILED);
    assert_message(&error, "two rows");
    free(file.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(reads_every_kind, empty_folder),
        cmocka_unit_test_teardown(reads_indices_past_the_palette_as_black, empty_folder),
        cmocka_unit_test_teardown(writes_what_it_reads, empty_folder),
        cmocka_unit_test_teardown(writes_every_level, empty_folder),
        cmocka_unit_test_teardown(refuses_floats, empty_folder),
        cmocka_unit_test_teardown(carries_metadata, empty_folder),
        cmocka_unit_test_teardown(reports_truncation_everywhere, empty_folder),
        cmocka_unit_test_teardown(reports_or_survives_every_flipped_byte, empty_folder),
        cmocka_unit_test_teardown(names_what_is_damaged, empty_folder),
        cmocka_unit_test_teardown(damaged_metadata_is_told, empty_folder),
        cmocka_unit_test_teardown(refuses_unknown_critical_chunks, empty_folder),
        cmocka_unit_test_teardown(limits_name_their_option, empty_folder),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
