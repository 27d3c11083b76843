/* Information about files, devices and the processor, without running a filter. */
#include "io_util.h"
#include "png_util.h"

static gf_file_info inspect(const char *name) {
    gf_file_info info;
    memset(&info, 0xa5, sizeof info);
    assert_ok(gf_inspect_file(in_directory(name), NULL, &info, &why));
    return info;
}

static void assert_format(const gf_format *format, uint64_t width, uint64_t height,
                          uint32_t channels, gf_type type) {
    assert_int_equal(format->width, width);
    assert_int_equal(format->height, height);
    assert_int_equal(format->channels, channels);
    assert_int_equal(format->type, type);
}

static void put_png(const char *name, const png_spec *spec) {
    AUTO(free) png_bytes file;
    png_make(spec, &file, NULL, NULL);
    put_bytes(in_directory(name), file.data, file.size);
}

/* ---- PNG ------------------------------------------------------------------------------------- */

TEST(reports_how_a_png_stores_pixels) {
    static const struct {
        png_spec spec;
        const char *stored;
        uint32_t channels;
        gf_type type;
    } cases[] = {
        {{.width = 5, .height = 3, .color = 0, .depth = 1}, "1-bit grey", 1, GF_U8},
        {{.width = 5, .height = 3, .color = 0, .depth = 16}, "16-bit grey", 1, GF_U16},
        {{.width = 5, .height = 3, .color = 2, .depth = 8, .interlaced = true},
         "8-bit RGB, interlaced",
         3,
         GF_U8},
        {{.width = 5, .height = 3, .color = 2, .depth = 16, .transparent = true},
         "16-bit RGB with a transparent colour",
         4,
         GF_U16},
        {{.width = 5, .height = 3, .color = 3, .depth = 4}, "4-bit palette", 3, GF_U8},
        {{.width = 5, .height = 3, .color = 3, .depth = 8, .transparent = true, .interlaced = true},
         "8-bit palette with alpha, interlaced",
         4,
         GF_U8},
        {{.width = 5, .height = 3, .color = 4, .depth = 8}, "8-bit grey and alpha", 2, GF_U8},
        {{.width = 5, .height = 3, .color = 6, .depth = 16}, "16-bit RGB and alpha", 4, GF_U16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_png("x.png", &cases[i].spec);
        const gf_file_info info = inspect("x.png");
        assert_string_equal(info.kind, "png");
        assert_string_equal(info.stored, cases[i].stored);
        assert_string_equal(info.metadata, "");
        assert_format(&info.format, 5, 3, cases[i].channels, cases[i].type);
    }
}

TEST(lists_metadata_before_the_pixels_once) {
    const png_extra extras[] = {{"gAMA", 0, "\x00\x00\xb1\x8f", 4, false},
                                {"tEXt", 0, "Title\0one", 9, false},
                                {"tEXt", 1, "Title\0two", 9, false},
                                {"eXIf", 1, "MM\0*\0\0\0\x08\0\0", 10, false},
                                {"tIME", 2, "\x07\xe8\1\2\3\4\5", 7, false}};
    put_png("x.png", &(png_spec){.width = 5,
                                 .height = 3,
                                 .color = 2,
                                 .depth = 8,
                                 .extras = extras,
                                 .extra_count = sizeof extras / sizeof *extras});
    assert_string_equal(inspect("x.png").metadata, "gAMA tEXt eXIf");
}

/* Metadata chunks with more names than the buffer holds: complete names are kept. */
TEST(keeps_metadata_names_whole) {
    enum { COUNT = 100 };
    png_extra extras[COUNT];
    char names[COUNT][5];
    char expected[256] = "";
    for (int i = 0; i < COUNT; i++) {
        const char name[5] = {'a', (char)('A' + i / 10), 'S', (char)('a' + i % 10), 0};
        memcpy(names[i], name, sizeof name);
        extras[i] = (png_extra){names[i], 0, "", 0, false};
        if (strlen(expected) + 6 <= sizeof expected)
            strcat(strcat(expected, i ? " " : ""), name);
    }
    put_png("x.png", &(png_spec){.width = 1,
                                 .height = 1,
                                 .color = 0,
                                 .depth = 8,
                                 .extras = extras,
                                 .extra_count = COUNT});
    assert_string_equal(inspect("x.png").metadata, expected);
}

TEST(reports_a_damaged_chunk) {
    const png_extra extra = {"iCCP", 0, "bad checksum", 12, true};
    put_png(
        "x.png",
        &(png_spec){
            .width = 5, .height = 3, .color = 0, .depth = 8, .extras = &extra, .extra_count = 1});
    assert_string_equal(inspect("x.png").stored, "8-bit grey, damaged iCCP chunk");
}

/* Only the bytes before the pixels of a PNG are read. */
TEST(reads_only_the_beginning) {
    AUTO(free) png_bytes file;
    gf_format format;
    void *pixels;
    png_make(&(png_spec){.width = 300, .height = 200, .color = 2, .depth = 8}, &file, NULL, NULL);
    put_bytes(in_directory("x.png"), file.data, file.size / 2);
    assert_int_equal(inspect("x.png").format.width, 300);
    assert_error(gf_load_file(in_directory("x.png"), NULL, &format, &pixels, NULL, &why), GF_FAILED,
                 "ends too early");
    assert_null(pixels);
}

/* ---- other formats --------------------------------------------------------------------------- */

TEST(identifies_netpbm_files) {
    static const struct {
        const char *bytes, *kind, *stored;
        uint32_t channels;
        gf_type type;
    } cases[] = {
        {"P2 2 1 255 7 8 ", "pgm", "8-bit text", 1, GF_U8},
        {"P3 2 1 65535 1 2 3 4 5 6 ", "ppm", "16-bit text", 3, GF_U16},
        {"P1 2 1 01", "pbm", "1-bit text", 1, GF_U8},
        {"P4 2 1 a", "pbm", "1-bit binary", 1, GF_U8},
        {"P2 2 1 15 7 8 ", "pgm", "8-bit text, maxval 15", 1, GF_U8},
        {"P5 2 1 1023\n\1\1\1\1", "pgm", "16-bit binary, maxval 1023", 1, GF_U16},
        {"P5 2 1 255\nab", "pgm", "8-bit binary", 1, GF_U8},
        {"P6 2 1 65535\nabcdefghijkl", "ppm", "16-bit binary", 3, GF_U16},
        {"P7\nWIDTH 2\nHEIGHT 1\nDEPTH 2\nMAXVAL 255\nENDHDR\nabcd", "pam", "8-bit binary", 2,
         GF_U8},
        {"Pf 2 1 -1.0\nabcdefgh", "pfm", "32-bit float, little-endian, scale 1", 1, GF_F32},
        {"PF 2 1 2.5\nabcdefghabcdefghabcdefgh", "pfm", "32-bit float, big-endian, scale 2.5", 3,
         GF_F32},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_bytes(in_directory("x"), cases[i].bytes, strlen(cases[i].bytes));
        const gf_file_info info = inspect("x");
        assert_string_equal(info.kind, cases[i].kind);
        assert_string_equal(info.stored, cases[i].stored);
        assert_format(&info.format, 2, 1, cases[i].channels, cases[i].type);
    }
}

TEST(identifies_formats_of_stb) {
    static const struct {
        const char *name, *kind, *stored;
        uint32_t channels;
        gf_type type;
    } cases[] = {
        {"x.jpeg", "jpg", "8-bit YCbCr, chroma 1/1x1/1, lossy", 3, GF_U8},
        {"x.bmp", "bmp", "24 bits per pixel", 3, GF_U8},
        {"y.bmp", "bmp", "32 bits per pixel", 4, GF_U8},
        {"x.tga", "tga", "24 bits per pixel, run-length coded", 3, GF_U8},
        {"x.hdr", "hdr", "8-bit RGB with shared exponent", 3, GF_F32},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const gf_format format = {9, 4, cases[i].channels, cases[i].type,
                                  cases[i].channels % 2 == 0};
        AUTO(free) unsigned char *pixels = test_zeros(gf_row_bytes(&format) * format.height);
        pixels[3] = 1; /* a BMP with alpha 0 everywhere has no alpha channel */
        if (save_image(in_directory(cases[i].name), &format, pixels, NULL, NULL, 1) != GF_OK)
            fail_msg("%s", why.message);
        const gf_file_info info = inspect(cases[i].name);
        assert_string_equal(info.kind, cases[i].kind);
        assert_string_equal(info.stored, cases[i].stored);
        assert_format(&info.format, 9, 4, cases[i].channels, cases[i].type);
    }
}

/* ---- loading, and unreadable files ----------------------------------------------------------- */

TEST(loads_images) {
    const gf_format formats[] = {
        {7, 5, 3, GF_U8, false}, {3, 9, 4, GF_U16, true}, {6, 2, 1, GF_F32, false}};
    static const char *const names[] = {"x.png", "x.pam", "x.pfm"};
    for (uint32_t i = 0; i < 3; i++) {
        const gf_format *format = &formats[i];
        AUTO(free) unsigned char *expected = random_pixels(format, i);
        gf_format got;
        AUTO(free) void *pixels;
        const gf_file_options options = {.force = true};
        assert_ok(save_image(in_directory(names[i]), format, expected, NULL, &options, 2));
        assert_ok(gf_load_file(in_directory(names[i]), NULL, &got, &pixels, NULL, &why));
        assert_format(&got, format->width, format->height, format->channels, format->type);
        assert_memory_equal(pixels, expected, gf_row_bytes(format) * format->height);
    }
}

TEST(rejects_unreadable_files) {
    gf_file_info info;
    assert_error(gf_inspect_file(in_directory("absent.png"), NULL, &info, &why), GF_FAILED,
                 "absent.png");
    put_bytes(in_directory("text.png"), "this is text, and more than 16 bytes", 36);
    assert_error(gf_inspect_file(in_directory("text.png"), NULL, &info, &why), GF_FAILED,
                 "unsupported image format");
}

TEST(enforces_the_limits) {
    const gf_file_options few_pixels = {.max_pixels = 14}, enough_pixels = {.max_pixels = 15};
    const gf_file_options low = {.max_memory = 44}, enough = {.max_memory = 45};
    gf_file_info info;
    gf_format format;
    void *pixels;
    put_bytes(in_directory("x.ppm"), "P6 5 3 255\n", 11);
    FILE *file = fopen(in_directory("x.ppm"), "ab");
    assert_non_null(file);
    for (int i = 0; i < 45; i++)
        fputc(i, file);
    assert_int_equal(fclose(file), 0);

    const char *path = in_directory("x.ppm");
    assert_ok(gf_inspect_file(path, &enough_pixels, &info, &why));
    assert_error(gf_inspect_file(path, &few_pixels, &info, &why), GF_FAILED, "--max-pixels");
    assert_ok(gf_load_file(path, &enough, &format, &pixels, NULL, &why));
    assert_int_equal(((unsigned char *)pixels)[44], 44);
    free(pixels);
    assert_error(gf_load_file(path, &low, &format, &pixels, NULL, &why), GF_FAILED, "--max-memory");
    assert_null(pixels);
}

/* ---- devices and processor ------------------------------------------------------------------- */

TEST(reports_the_processor) {
    char text[64], short_text[4];
    unsigned cores = 0;
    char level[16] = "";
    bool listed = false;
    gf_processor(text, sizeof text);
    if (sscanf(text, "%u core, %15s", &cores, level) != 2)
        assert_int_equal(sscanf(text, "%u cores, %15s", &cores, level), 2);
    assert_true(cores > 0);
    for (const char *const *name = gf_names(GF_NAMES_SIMD) + 1; *name; name++)
        listed |= strcmp(*name, level) == 0;
    assert_true(listed);
    gf_processor(short_text, sizeof short_text);
    assert_memory_equal(short_text, text, 3);
    assert_int_equal(short_text[3], 0);
}

/* Check that a device is reported as usable exactly if an engine can be opened on it. */
TEST(reports_devices) {
    gf_device devices[16];
    size_t count = 99, again = 99;
    bool any = false;
    gf_engine *engine = NULL;
    gf_error refused = {0};
    const gf_engine_options options = {.backend = "cuda", .devices = "all"};
    const gf_status status = gf_devices(devices, 16, &count, &why);
    assert_int_equal(gf_devices(NULL, 0, &again, &refused), status);
    assert_int_equal(again, count);
    if (status != GF_OK) {
        assert_int_equal(status, GF_NO_BACKEND);
        assert_int_equal(count, 0);
        assert_message(&why, "cuda: ");
        assert_int_equal(gf_engine_open(&options, &engine, &why), GF_NO_BACKEND);
        return;
    }
    assert_true(gf_has_cuda());
    assert_true(count > 0);
    for (size_t i = 0; i < count && i < 16; i++) {
        char index[16];
        gf_engine_options one = {.backend = "cuda", .devices = index};
        snprintf(index, sizeof index, "%u", devices[i].index);
        assert_int_equal(devices[i].index, i);
        assert_int_not_equal(devices[i].name[0], 0);
        assert_int_not_equal(devices[i].bus[0], 0);
        assert_true(devices[i].multiprocessors > 0);
        assert_true(devices[i].free_bytes <= devices[i].memory_bytes);
        assert_int_equal(gf_engine_open(&one, &engine, &why) == GF_OK, devices[i].usable);
        if (devices[i].usable) {
            assert_true(devices[i].capability >= 75);
            assert_true(devices[i].free_bytes > 0);
            gf_engine_close(engine);
        }
        any |= devices[i].usable;
    }
    print_message("%zu devices, %s usable\n", count, any ? "some" : "none");
}

int main(void) {
    return test_main_in_directory();
}
