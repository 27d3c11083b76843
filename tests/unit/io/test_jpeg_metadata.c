/* JPEG metadata: detection, and the report of metadata that the output does not contain. */
#include "io/stb.h"
#include "io_util.h"
#include "testing.h"

#include "engine/batch.h"

enum { MAX = 1 << 12 };

static unsigned char jpeg[MAX];
static size_t size;

static void put(const void *data, size_t n) {
    assert_true(size + n <= MAX);
    memcpy(jpeg + size, data, n);
    size += n;
}

static void begin(void) {
    size = 0;
    put("\xff\xd8", 2);
}

static void put_segment(unsigned marker, const void *data, size_t n) {
    put((const unsigned char[4]){0xff, (unsigned char)marker, (unsigned char)((n + 2) >> 8),
                                 (unsigned char)(n + 2)},
        4);
    put(data, n);
}

/* Make EXIF data in either byte order, with another entry before the orientation. */
enum { EXIF_BYTES = 40 };

static void make_exif(unsigned char *exif, bool big, unsigned orientation) {
    static const unsigned char little_endian[EXIF_BYTES] =
        "Exif\0\0II*\0\x08\0\0\0\2\0"
        "\x0f\1\2\0\1\0\0\0A\0\0\0"
        "\x12\1\3\0\1\0\0";
    static const unsigned char big_endian[EXIF_BYTES] =
        "Exif\0\0MM\0*\0\0\0\x08\0\2"
        "\1\x0f\0\2\0\0\0\1A\0\0\0"
        "\1\x12\0\3\0\0\0\1";
    memcpy(exif, big ? big_endian : little_endian, EXIF_BYTES);
    exif[36 + big] = (unsigned char)orientation;
}

/* Search a copy of exactly this size, so that ASan detects reads past its end. */
static uint32_t look(size_t bytes) {
    unsigned char *copy = malloc(bytes ? bytes : 1);
    assert_non_null(copy);
    memcpy(copy, jpeg, bytes);
    const uint32_t found = gf_jpeg_metadata(copy, bytes);
    free(copy);
    return found;
}

/* ---- detection ------------------------------------------------------------------------------- */

static void finds_profiles(void **state) {
    (void)state;
    begin();
    assert_int_equal(look(size), 0);
    put_segment(0xe0, "JFIF\0\1\1\0\0\1\0\1\0\0", 14);
    put_segment(0xe2, "MPF\0not a profile", 17);
    put_segment(0xfe, "ICC_PROFILE\0a comment", 21);
    assert_int_equal(look(size), 0);
    put_segment(0xe2, "ICC_PROFILE\0\1\1data", 18);
    assert_int_equal(look(size), GF_DROPPED_ICC);
}

static void finds_exif(void **state) {
    unsigned char exif[EXIF_BYTES];

    (void)state;
    for (int big = 0; big <= 1; big++)
        for (unsigned orientation = 0; orientation <= 9; orientation++) {
            begin();
            make_exif(exif, big, orientation);
            put_segment(0xe1, exif, EXIF_BYTES);
            assert_int_equal(look(size), orientation % 9 > 1
                                             ? GF_DROPPED_EXIF | GF_DROPPED_ORIENTATION
                                             : GF_DROPPED_EXIF);
        }
    begin();
    put_segment(0xe1, "http://ns.adobe.com/xap/1.0/\0<x/>", 33);
    assert_int_equal(look(size), 0);
    put_segment(0xe1, "Exif\0\0no TIFF", 13);
    assert_int_equal(look(size), GF_DROPPED_EXIF);
}

static void ignores_segments_after_the_pixels(void **state) {
    (void)state;
    begin();
    put_segment(0xda, "\1\1\0\0\x3f\0", 6);
    put_segment(0xe2, "ICC_PROFILE\0\1\1data", 18);
    assert_int_equal(look(size), 0);
    begin();
    put("\xff\xd9", 2);
    put_segment(0xe2, "ICC_PROFILE\0\1\1data", 18);
    assert_int_equal(look(size), 0);
}

/* Damage may hide metadata. It must not cause reads out of bounds or an endless loop. */
static void survives_damage(void **state) {
    unsigned char exif[EXIF_BYTES], whole[256];
    uint32_t seed = 7;
    uint64_t seen[8] = {0};

    (void)state;
    begin();
    make_exif(exif, true, 6);
    put_segment(0xe1, exif, EXIF_BYTES);
    put_segment(0xe2, "ICC_PROFILE\0\1\1data", 18);
    put_segment(0xda, "\1\1\0\0\x3f\0", 6);
    const size_t all = size;
    memcpy(whole, jpeg, all);
    assert_int_equal(look(all), 7);
    for (size_t cut = 0; cut < all; cut++)
        seen[look(cut) & 7]++;
    for (int i = 0; i < 20000; i++) {
        memcpy(jpeg, whole, all);
        for (uint32_t n = next_random(&seed) % 4; n-- > 0;)
            jpeg[2 + next_random(&seed) % (all - 2)] = (unsigned char)next_random(&seed);
        seen[look(all - next_random(&seed) % 20) & 7]++;
    }
    assert_true(seen[0] && seen[1] && seen[2] && seen[3] && seen[6] && seen[7]);
}

/* ---- reports --------------------------------------------------------------------------------- */

/* Write a JPEG file. With metadata, insert segments after the first marker. */
static void make_file(const char *name, bool metadata) {
    const gf_format format = {8, 8, 3, GF_U8};
    unsigned char pixels[8 * 8 * 3] = {1, 2, 3}, exif[EXIF_BYTES];
    gf_error error;
    size_t bytes;

    assert_int_equal(save_image(in_directory(name), &format, pixels, NULL,
                                &(gf_file_options){.force = true}, 8, &error),
                     GF_OK);
    unsigned char *plain = get_bytes(in_directory(name), &bytes);
    begin();
    make_exif(exif, false, 3);
    if (metadata) {
        put_segment(0xe1, exif, EXIF_BYTES);
        put_segment(0xe2, "ICC_PROFILE\0\1\1data", 18);
    }
    put(plain + 2, bytes - 2);
    free(plain);
    put_bytes(in_directory(name), jpeg, size);
}

static const struct {
    const char *in;
    bool strip;
    uint32_t dropped;
} cases[] = {{"all.jpg", false, 7}, {"all.jpg", true, 0}, {"plain.jpg", false, 0}};

static void reports_dropped_metadata(void **state) {
    gf_settings *smooth = test_settings(gf_filter_find("smooth"), "");
    gf_settings *hist = test_settings(gf_filter_find("hist"), "");
    gf_engine *engine = NULL;
    gf_report report;

    (void)state;
    make_file("all.jpg", true);
    make_file("plain.jpg", false);
    assert_int_equal(gf_engine_open(NULL, &engine, NULL), GF_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const gf_file_options options = {.force = true, .strip = cases[i].strip};
        char in[1200], out[1200];
        snprintf(in, sizeof in, "%s", in_directory(cases[i].in));
        snprintf(out, sizeof out, "%s", in_directory("out.png"));
        const char *const ins[] = {in};
        assert_int_equal(gf_run_file(engine, gf_filter_find("smooth"), smooth, ins, out, &options,
                                     NULL, &report, NULL),
                         GF_OK);
        assert_int_equal(report.dropped, cases[i].dropped);
        /* A filter without an image output reports no dropped metadata. */
        gf_result *result = NULL;
        assert_int_equal(gf_run_file(engine, gf_filter_find("hist"), hist, ins, NULL, &options,
                                     &result, &report, NULL),
                         GF_OK);
        gf_result_free(result);
        assert_int_equal(report.dropped, 0);
    }
    gf_engine_close(engine);
    gf_settings_free(smooth);
    gf_settings_free(hist);
}

static bool keep_report(void *reports, const gf_batch_done *done) {
    assert_int_equal(done->status, GF_OK);
    ((gf_report *)reports)[done->item] = *done->report;
    return true;
}

/* Check batches on threads, and on devices, which process small images together. The cpu backend is
 * used as the device. */
static void batches_report_each_image(void **state) {
    enum { ITEMS = 5 };
    char ins[2][1200], outs[ITEMS][1200];
    gf_batch_item items[ITEMS];
    gf_settings *settings = test_settings(gf_filter_find("smooth"), "");

    (void)state;
    for (int i = 0; i < 2; i++)
        snprintf(ins[i], sizeof ins[i], "%s", in_directory(i ? "all.jpg" : "plain.jpg"));
    make_file("all.jpg", true);
    make_file("plain.jpg", false);
    for (int i = 0; i < ITEMS; i++) {
        char name[32];
        snprintf(name, sizeof name, "out%d.png", i);
        snprintf(outs[i], sizeof outs[i], "%s", in_directory(name));
        items[i] = (gf_batch_item){.in = ins[i % 2], .out = outs[i]};
    }
    for (uint32_t devices = 0; devices < 3; devices++)
        for (int strip = 0; strip <= 1; strip++) {
            const gf_batch_devices on = {.count = devices};
            gf_report reports[ITEMS];
            memset(reports, 0, sizeof reports);
            const gf_batch_options options = {.engine = {.backend = "cpu", .threads = 2},
                                              .files = {.force = true, .strip = strip},
                                              .done = keep_report,
                                              .context = reports};
            assert_int_equal(gf_run_batch_on(devices ? &on : NULL, gf_filter_find("smooth"),
                                             settings, items, ITEMS, &options, NULL, NULL),
                             GF_OK);
            for (int i = 0; i < ITEMS; i++)
                assert_int_equal(reports[i].dropped, i % 2 && !strip ? 7 : 0);
        }
    gf_settings_free(settings);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_profiles),
        cmocka_unit_test(finds_exif),
        cmocka_unit_test(ignores_segments_after_the_pixels),
        cmocka_unit_test(survives_damage),
        cmocka_unit_test(reports_dropped_metadata),
        cmocka_unit_test(batches_report_each_image),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
