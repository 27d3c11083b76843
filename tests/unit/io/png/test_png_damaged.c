/* PNG files that are truncated, damaged or over a limit: each is rejected with the reason. */
#include "png_file.h"

/* ---- damage ---------------------------------------------------------------------------------- */

static gf_status load_bytes(const void *data, size_t size, const gf_limits *limits) {
    gf_format format;
    AUTO(free) unsigned char *pixels;
    put_bytes(path(), data, size);
    return load_image(path(), limits, 4, &format, &pixels, NULL, &why);
}

TEST(reports_truncation_everywhere) {
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        AUTO(free) png_bytes file;
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
        for (size_t size = 0; size < file.size; size++)
            assert_error(load_bytes(file.data, size, NULL), GF_FAILED,
                         size == 0  ? "x.png: the file is empty"
                         : size < 8 ? "x.png: unsupported image format"
                                    : "x.png: the PNG ends too early");
    }
}

TEST(reports_flipped_bytes) {
    const png_spec spec = {
        .width = 9, .height = 9, .color = 0, .depth = 2, .transparent = true, .idat_bytes = 30};
    AUTO(free) png_bytes file;
    int failures = 0;
    png_make(&spec, &file, NULL, NULL);
    for (size_t i = 8; i < file.size; i++) {
        file.data[i] ^= 0x15;
        if (load_bytes(file.data, file.size, NULL) != GF_OK) {
            assert_message(&why, "x.png: ");
            failures++;
        }
        file.data[i] ^= 0x15;
    }
    /* A checksum covers every byte, and no chunk here may be dropped. Exception: with another name,
     * tRNS is a damaged unknown chunk. */
    assert_true(failures >= (int)file.size - 8 - 4);
}

static size_t find(const png_bytes *file, const char *name) {
    for (size_t i = 0; i + 4 <= file->size; i++)
        if (memcmp(file->data + i, name, 4) == 0)
            return i;
    fail_msg("no %s", name);
    return 0;
}

TEST(reports_the_damaged_chunk) {
    const png_spec spec = {.width = 9, .height = 9, .color = 0, .depth = 8, .transparent = true};
    AUTO(free) png_bytes file;
    png_make(&spec, &file, NULL, NULL);
    size_t idat = find(&file, "IDAT");
    size_t trns = find(&file, "tRNS");
    file.data[idat + 20] ^= 1;
    assert_error(load_bytes(file.data, file.size, NULL), GF_FAILED,
                 "x.png: the PNG is damaged (IDAT: ");
    file.data[idat + 20] ^= 1;
    file.data[trns + 4] ^= 1;
    assert_error(load_bytes(file.data, file.size, NULL), GF_FAILED,
                 "x.png: the PNG is damaged (tRNS: CRC error)");
    assert_error(load_bytes("Hello, world\n", 13, NULL), GF_FAILED,
                 "x.png: unsupported image format");
}

/* Damaged metadata in any position is an error, unless --strip drops the metadata. */
TEST(damaged_metadata_is_reported) {
    static const struct {
        png_extra extra;
        bool carried;
    } cases[] = {
        {{"iCCP", 0, "x\0\0profile", 10, true}, true},
        {{"tEXt", 2, "late\0text", 9, true}, true},
        {{"gAMA", 0, "\0\0\xb1\x8f", 4, false}, true}, /* not damaged: no failure */
        {{"bKGD", 1, "\0\0", 2, true}, false},         /* describes the old pixels: never copied */
    };
    const gf_filter *filter = gf_filter_find("smooth");
    const gf_filter_info *info = gf_filter_describe(filter);
    AUTO(settings) gf_settings *settings = gf_settings_new(info->params, info->param_count);
    AUTO(engine) gf_engine *engine = NULL;
    assert_ok(gf_engine_open(NULL, &engine, NULL));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const png_spec spec = {
            .width = 5, .height = 5, .depth = 8, .extras = &cases[i].extra, .extra_count = 1};
        bool fails = cases[i].carried && cases[i].extra.wrong_checksum;
        gf_file_options options = {.force = true};
        AUTO(free) png_bytes file;
        png_make(&spec, &file, NULL, NULL);
        put_bytes(in_directory("x.png"), file.data, file.size);
        const char *const in = in_directory("x.png");
        gf_status status = test_run_files(
            &(test_files){engine, filter, settings, &in, in_directory("y.png"), &options});
        assert_int_equal(status, fails ? GF_FAILED : GF_OK);
        if (fails) {
            assert_message(&why, cases[i].extra.name);
            assert_message(&why, "--strip");
            assert_int_equal(count_files(false), 1); /* no output, no temporary file */
        }
        options.write.strip = true;
        status = test_run_files(
            &(test_files){engine, filter, settings, &in, in_directory("y.png"), &options});
        assert_int_equal(status, GF_OK);
        unlink(in_directory("y.png"));
    }
}

TEST(rejects_unknown_critical_chunks) {
    const png_extra extra = {"ABCD", 1, "x", 1, false};
    const png_spec spec = {.width = 2, .height = 2, .depth = 8, .extras = &extra, .extra_count = 1};
    AUTO(free) png_bytes file;
    png_make(&spec, &file, NULL, NULL);
    assert_error(load_bytes(file.data, file.size, NULL), GF_FAILED, "ABCD");
}

/* The format requires IHDR as the first chunk. */
TEST(rejects_chunks_before_the_header) {
    static const char *const names[] = {"gAMA", "tEXt", "tRNS", "bKGD", "cICP", "abCd", "xyZw"};
    const png_spec spec = {.width = 2, .height = 2, .depth = 8};
    png_bytes file;
    png_make(&spec, &file, NULL, NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int damaged = 0; damaged < 2; damaged++) {
            png_bytes made = {0};
            char wanted[64];
            png_put_signature(&made);
            png_put_chunk(&made, names[i], "\0\0\1\1", 4, damaged != 0);
            made.data = realloc(made.data, made.size + file.size);
            assert_non_null(made.data);
            memcpy(made.data + made.size, file.data + 8, file.size - 8);
            assert_int_equal(load_bytes(made.data, made.size + file.size - 8, NULL), GF_FAILED);
            snprintf(wanted, sizeof wanted, "x.png: the PNG is damaged (%s: missing IHDR); ",
                     names[i]);
            assert_message(&why, wanted);
            free(made.data);
        }
    free(file.data);
}

/* ---- limits ---------------------------------------------------------------------------------- */

TEST(limit_errors_name_the_option) {
    char text[2000];
    const png_extra extra = {"tEXt", 1, text, sizeof text, false};
    png_spec spec = {.width = 30,
                     .height = 20,
                     .depth = 8,
                     .interlaced = true,
                     .extras = &extra,
                     .extra_count = 1};
    png_bytes file;
    memset(text, 'a', sizeof text);
    png_make(&spec, &file, NULL, NULL);
    assert_ok(load_bytes(file.data, file.size, NULL));
    assert_ok(load_bytes(file.data, file.size, &(gf_limits){.max_pixels = 600}));
    assert_error(load_bytes(file.data, file.size, &(gf_limits){.max_pixels = 599}), GF_FAILED,
                 "x.png: 30x20 pixels are over the limit of 599; raise it with --max-pixels");
    assert_ok(load_bytes(file.data, file.size, &(gf_limits){.max_chunk = 2000}));
    assert_error(load_bytes(file.data, file.size, &(gf_limits){.max_chunk = 1999}), GF_FAILED,
                 "tEXt chunk is over the limit of 1999 bytes; raise it with --max-chunk");
    assert_error(load_bytes(file.data, file.size, &(gf_limits){.max_memory = 1000}), GF_FAILED,
                 "metadata are over the limit of 1000; raise it with --max-memory");
    free(file.data);

    spec.extra_count = 0;
    png_make(&spec, &file, NULL, NULL);
    assert_ok(load_bytes(file.data, file.size, &(gf_limits){.max_memory = 600}));
    assert_error(load_bytes(file.data, file.size, &(gf_limits){.max_memory = 599}), GF_FAILED,
                 "an interlaced image are over the limit of 599");
    assert_error(load_bytes(file.data, file.size, &(gf_limits){.max_memory = 59}), GF_FAILED,
                 "two rows");
    free(file.data);
}

int main(void) {
    return test_main_in_directory();
}
