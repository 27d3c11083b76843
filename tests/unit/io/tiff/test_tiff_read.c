/* Reading TIFF: every kind that libtiff writes gives the samples that libtiff reads, for any number
 * of threads, heights of strips and pages; other kinds are refused by name. */
#define _GNU_SOURCE /* truncate */

#include "io/bytes.h"
#include "io_util.h"
#include "pipe.h"
#include "tiff_file.h"

#include <zlib.h>

/* ---- pixels ---------------------------------------------------------------------------------- */

static const char *describe(const tiff_spec *spec) {
    static char text[256];
    snprintf(text, sizeof text,
             "%ux%u samples %u bits %u photometric %u codec %u predictor %u%s%s%s%s tile %ux%u "
             "strip %u%s",
             spec->width, spec->height, spec->samples, spec->bits, spec->photometric,
             spec->compression, spec->predictor, spec->planar ? " planar" : "",
             spec->big ? " big" : "", spec->big_endian ? " MM" : " II",
             spec->reversed ? " reversed" : "", spec->tile_width, spec->tile_height,
             spec->rows_per_strip, spec->sparse ? " sparse" : "");
    return text;
}

static void check_pixels(const char *path, const gf_limits *limits, uint64_t strip,
                         const gf_format *format, const unsigned char *expected, const char *what) {
    AUTO(free) unsigned char *pixels;
    gf_format found;
    if (load_image(path, limits, strip, &found, &pixels, NULL, &why) != GF_OK)
        fail_msg("%s: %s", what, why.message);
    if (!gf_format_equal(&found, format))
        fail_msg("%s: %ux%u, %u channels, type %d", what, (unsigned)found.width,
                 (unsigned)found.height, found.channels, (int)found.type);
    const size_t row = gf_row_bytes(format);
    for (uint64_t y = 0; y < format->height; y++)
        if (memcmp(pixels + y * row, expected + y * row, row) != 0)
            fail_msg("%s: row %u differs", what, (unsigned)y);
}

/* Read rows of both halves, the second one first, as MPI ranks do. */
static void check_seek(const char *path, const gf_limits *limits, const gf_format *format,
                       const unsigned char *expected, const char *what) {
    const size_t row = gf_row_bytes(format);
    gf_source *source;
    AUTO(free) unsigned char *pixels = test_alloc(row * format->height);
    if (gf_source_open(path, limits, &source, &why) != GF_OK)
        fail_msg("%s: %s", what, why.message);
    for (int half = 1; half >= 0; half--) {
        const uint64_t first = half ? format->height / 2 : 0;
        const uint64_t end = half ? format->height : format->height / 2;
        source->ops->seek(source, first);
        if (end > first &&
            source->ops->read(source, pixels + first * row, row, end - first, &why) != GF_OK)
            fail_msg("%s: %s", what, why.message);
    }
    assert_ok(source->ops->finish(source, &why));
    source->ops->close(source);
    if (memcmp(pixels, expected, row * format->height) != 0)
        fail_msg("%s: different after a seek", what);
}

/* Read strips to announced memory with gaps, which must survive. Memory is used again after its
 * strip has been read. Some readings end early. */
static void check_announced(const char *path, const gf_limits *limits, test_random *random,
                            const gf_format *format, const unsigned char *expected,
                            const char *what) {
    const size_t row = gf_row_bytes(format), stride = row + 7 * (size_t)test_below(random, 3);
    const uint64_t slots = 1 + test_below(random, GF_SOURCE_AHEAD), height = format->height;
    unsigned char *memory[GF_SOURCE_AHEAD] = {NULL};
    AUTO(source) gf_source *source;
    if (gf_source_open(path, limits, &source, &why) != GF_OK)
        fail_msg("%s: %s", what, why.message);
    if (source->ops->announce) {
        const bool together = source->rows_together && test_below(random, 4);
        const uint64_t unit = together ? source->rows_together : 1 + test_below(random, height);
        const uint64_t strip = unit * (1 + test_below(random, 3));
        const uint64_t first = test_below(random, height) / unit * unit;
        const uint64_t strips = (height - first - 1) / strip + 1;
        const uint64_t end = test_below(random, 4) ? strips : test_below(random, strips);
        source->ops->seek(source, first);
        for (uint64_t k = 0, announced = 0; k < end; k++) {
            for (; announced < strips && announced < k + slots; announced++) {
                const uint64_t y = first + announced * strip;
                unsigned char **slot = &memory[announced % slots];
                free(*slot);
                *slot = test_alloc(stride * strip);
                memset(*slot, PAINT, stride * strip);
                assert_ok(source->ops->announce(source, *slot, stride,
                                                height - y < strip ? height - y : strip, &why));
            }
            const uint64_t y = first + k * strip, rows = height - y < strip ? height - y : strip;
            unsigned char *to = memory[k % slots];
            if (source->ops->read(source, to, stride, rows, &why) != GF_OK)
                fail_msg("%s: %s", what, why.message);
            for (uint64_t i = 0; i < rows; i++) {
                if (memcmp(to + i * stride, expected + (y + i) * row, row) != 0)
                    fail_msg("%s: row %u differs in announced memory", what, (unsigned)(y + i));
                for (size_t x = row; x < stride; x++)
                    assert_int_equal(to[i * stride + x], PAINT);
            }
        }
        if (end != strips)
            source->ops->cancel(source);
        for (uint64_t i = 0; i < slots; i++)
            free(memory[i]);
        if (end == strips) { /* again, without that memory */
            AUTO(free) unsigned char *last = test_alloc(row);
            source->ops->seek(source, height - 1);
            assert_ok(source->ops->read(source, last, row, 1, &why));
            assert_memory_equal(last, expected + (height - 1) * row, row);
            assert_ok(source->ops->finish(source, &why));
        }
    }
}

/* Read a file from a pipe. */
static void check_pipe(const char *path, const gf_limits *limits, const gf_format *format,
                       const unsigned char *expected, const char *what) {
    test_feeder *feeder = test_feed_file(in_directory("fifo"), path, 0);
    check_pixels(in_directory("fifo"), limits, 3, format, expected, what);
    test_feed_end(feeder);
}

static void check_file(const char *path, uint32_t page, test_random *random, const char *what) {
    static const size_t segments[] = {0, 1, 700, 5000};
    gf_format format;
    AUTO(free) unsigned char *expected = tiff_reference(path, page, &format);
    if (!expected)
        fail_msg("%s: libtiff cannot read it", what);
    for (uint32_t threads = 1; threads <= 4; threads += 1 + (uint32_t)test_below(random, 2)) {
        const gf_limits limits = {.threads = threads,
                                  .segment = segments[test_below(random, 4)],
                                  .page = page + 1,
                                  .no_sandbox = true};
        check_pixels(path, &limits, 1 + test_below(random, format.height), &format, expected, what);
        check_seek(path, &limits, &format, expected, what);
        check_announced(path, &limits, random, &format, expected, what);
    }
    if (test_below(random, 8) == 0)
        check_pipe(path, &(gf_limits){.threads = 2, .page = page + 1, .no_sandbox = true}, &format,
                   expected, what);
}

TEST(reads_every_kind) {
    const uint64_t seed = test_environment("GF_TEST_SEED", 1), rounds = test_rounds(600);
    for (uint64_t i = 0; i < rounds; i++) {
        test_random random = test_seeded(seed + i);
        const tiff_spec spec = tiff_random(&random, i % 10 == 0 ? 300 : 70);
        const char *path = in_directory("x.tif");
        char what[300];
        snprintf(what, sizeof what, "seed %u: %s", (unsigned)(seed + i), describe(&spec));
        if (!tiff_write(path, &spec, 1, &random))
            fail_msg("%s: libtiff cannot write it", what);
        check_file(path, 0, &random, what);
    }
}

/* ---- pages ----------------------------------------------------------------------------------- */

static void check_page(const char *path, uint32_t page, uint32_t width, const char *text) {
    const gf_file_options options = {.page = page};
    gf_file_info info;
    assert_ok(gf_inspect_file(path, &options, &info, &why));
    assert_int_equal(info.format.width, width);
    assert_string_equal(info.kind, "tif");
    assert_string_equal(info.stored, text);
}

TEST(reads_pages) {
    const char *path = in_directory("x.tif");
    for (int big = 0; big < 4; big++) {
        test_random random = test_seeded(1);
        tiff_spec pages[] = {tiff_small_grey(10, FILETYPE_REDUCEDIMAGE), tiff_small_grey(11, 0),
                             tiff_small_grey(12, FILETYPE_MASK), tiff_small_grey(13, FILETYPE_PAGE),
                             tiff_small_grey(14, 0)};
        pages[0].big = big & 1;
        pages[0].big_endian = big & 2;
        assert_true(tiff_write(path, pages, 5, &random));
        check_page(path, 0, 11, "8-bit grey, strips, LZW, page 1 of 3");
        check_page(path, 1, 11, "8-bit grey, strips, LZW, page 1 of 3");
        check_page(path, 2, 13, "8-bit grey, strips, LZW, page 2 of 3");
        check_page(path, 3, 14, "8-bit grey, strips, LZW, page 3 of 3");
        assert_inspection_fails(path, &(gf_file_options){.page = 4},
                                "has no page 4; choose one from 1 to 3 with --page");
        /* Only thumbnails: they are pages. */
        assert_true(tiff_write(path, pages, 1, &random));
        check_page(path, 1, 10, "8-bit grey, strips, LZW");
    }
}

TEST(other_formats_have_no_pages) {
    const gf_raw raw = {.format = {12, 1, 1, GF_U8, false}};
    gf_file_info info;
    put_bytes(in_directory("x.pgm"), "P5 1 1 255 a", 12);
    assert_ok(gf_inspect_file(in_directory("x.pgm"), &(gf_file_options){.page = 1}, &info, &why));
    assert_inspection_fails(in_directory("x.pgm"), &(gf_file_options){.page = 2},
                            "has no page 2; choose one from 1 to 1 with --page");
    assert_inspection_fails(in_directory("x.pgm"), &(gf_file_options){.page = 2, .raw = &raw},
                            "has no pages; omit --page");
}

/* Directories that overlap end the list: a file of 0.9 MB would contain 8192 of 65535 entries. */
TEST(ends_overlapping_pages) {
    enum { FIRST = 16, PAGES = 100, ENTRY = 12, ENTRIES = 65535, SIZE = FIRST + 800000 };
    AUTO(free) unsigned char *data = test_zeros(SIZE);
    memcpy(data, "MM\0*\0\0\0\x10", 8);
    for (uint32_t i = 0; i < PAGES; i++) {
        unsigned char *directory = data + FIRST + (size_t)ENTRY * i;
        memset(directory, 0xff, 2);
        gf_put_big32(directory + 2 + (size_t)ENTRY * ENTRIES, FIRST + ENTRY * (i + 1));
    }
    put_bytes(in_directory("x.tif"), data, SIZE);
    assert_inspection_fails(in_directory("x.tif"), &(gf_file_options){.page = PAGES},
                            "has no page 100; choose one from 1 to 1 with --page");
}

/* A list of pages with a cycle ends. */
TEST(ends_cyclic_pages) {
    const char *path = in_directory("x.tif");
    test_random random = test_seeded(1);
    const tiff_spec pages[] = {tiff_small_grey(10, 0), tiff_small_grey(11, 0),
                               tiff_small_grey(12, 0)};
    size_t size;
    assert_true(tiff_write(path, pages, 3, &random));
    AUTO(free) unsigned char *data = test_bytes(path, &size);
    /* The last directory is the end of the file: its link to the next one is its last 4 bytes,
     * before values that do not fit into entries; find them from the first directory. */
    uint32_t at, next, count;
    memcpy(&at, data + 4, 4);
    const uint32_t first = at;
    for (;;) {
        count = data[at] + 256u * data[at + 1];
        memcpy(&next, data + at + 2 + 12 * (size_t)count, 4);
        if (!next)
            break;
        at = next;
    }
    memcpy(data + at + 2 + 12 * (size_t)count, &first, 4);
    put_bytes(path, data, size);
    check_page(path, 0, 10, "8-bit grey, strips, LZW, page 1 of 3");
}

/* Write a file of 60 samples, and of one directory per character of `list`: a page, or an image of
 * reduced size (r). They describe an image of 6 rows of 5 samples at an offset, and have a
 * description of up to 23 characters. */
static void put_directories(const char *path, const char *list, uint32_t offset,
                            const char *description) {
    enum {
        SAMPLES = 60,
        FIRST = 8 + SAMPLES,
        ENTRIES = 9,
        BYTES = 2 + 12 * ENTRIES + 4,
        TEXT = 24
    };
    const size_t count = strlen(list), size = FIRST + count * BYTES + TEXT;
    AUTO(free) unsigned char *data = test_zeros(size);
    memcpy(data, "II*\0\x44\0\0", 8);
    strcpy((char *)data + size - TEXT, description);
    for (size_t i = 0; i < count; i++) {
        const uint32_t entries[ENTRIES][4] = {{254, 4, 1, list[i] == 'r'},
                                              {256, 4, 1, 5},
                                              {257, 4, 1, 6},
                                              {258, 4, 1, 8},
                                              {262, 4, 1, 1},
                                              {270, 2, TEXT, (uint32_t)(size - TEXT)},
                                              {273, 4, 1, offset},
                                              {278, 4, 1, 6},
                                              {279, 4, 1, 30}};
        unsigned char *at = data + FIRST + i * BYTES;
        gf_put_little16(at, ENTRIES);
        for (size_t k = 0; k < ENTRIES; k++) {
            gf_put_little32(at + 2 + 12 * k, entries[k][0] | entries[k][1] << 16);
            gf_put_little32(at + 6 + 12 * k, entries[k][2]);
            gf_put_little32(at + 10 + 12 * k, entries[k][3]);
        }
        if (i + 1 < count)
            gf_put_little32(at + BYTES - 4, (uint32_t)(FIRST + (i + 1) * BYTES));
    }
    put_bytes(path, data, size);
}

/* Images of reduced size, however many, hide no page. */
TEST(finds_pages_among_many_others) {
    enum { PAGES = 2000 };
    static char list[6 * PAGES + 1];
    for (size_t i = 0; i < PAGES; i++)
        memcpy(list + 6 * i, "prrrrr", 6);
    put_directories(in_directory("x.tif"), list, 8, "");
    check_page(in_directory("x.tif"), PAGES, 5,
               "8-bit grey, strips, uncompressed, page 2000 of 2000");
}

/* Images of a stack lie within the file. */
TEST(stacks_end_with_the_file) {
    put_directories(in_directory("x.tif"), "p", 8, "ImageJ=1\nimages=2\n");
    check_page(in_directory("x.tif"), 2, 5, "8-bit grey, strips, uncompressed, page 2 of 2");
    put_directories(in_directory("x.tif"), "p", 1000, "ImageJ=1\nimages=2\n");
    assert_inspection_fails(in_directory("x.tif"), &(gf_file_options){.page = 2},
                            "has no page 2; choose one from 1 to 1 with --page");
}

/* ---- descriptions and alpha ------------------------------------------------------------------ */

TEST(describes_files) {
    tiff_spec spec = {.width = 40,
                      .height = 30,
                      .samples = 4,
                      .bits = 16,
                      .format = SAMPLEFORMAT_UINT,
                      .photometric = PHOTOMETRIC_RGB,
                      .compression = COMPRESSION_ADOBE_DEFLATE,
                      .predictor = 2,
                      .planar = true,
                      .tile_width = 16,
                      .tile_height = 32};
    static const char *const kinds[] = {"data", "associated alpha", "alpha"};
    const char *path = in_directory("x.tif");
    for (uint16_t extra = 0; extra < 3; extra++) {
        char text[128];
        snprintf(text, sizeof text, "16-bit RGB and %s, tiles 16x32, Deflate, predictor 2, planar",
                 kinds[extra]);
        spec.extra = extra;
        tiff_put(path, &spec);
        check_page(path, 0, 40, text);
        AUTO(source) gf_source *source = open_source(path, NULL);
        assert_int_equal(source->pages, 1);
        assert_int_equal(source->metadata.associated_alpha, extra == EXTRASAMPLE_ASSOCALPHA);
        assert_int_equal(source->format.alpha, extra != 0);
    }
    spec.planar = false;
    spec.tile_width = 0;
    spec.rows_per_strip = 7;
    spec.predictor = 1;
    spec.compression = COMPRESSION_NONE;
    tiff_put(path, &spec);
    check_page(path, 0, 40, "16-bit RGB and alpha, strips, uncompressed");
}

/* PNG defines alpha as unassociated: the kind would change silently. */
TEST(keeps_associated_alpha) {
    tiff_spec spec = tiff_small_grey(9, 0);
    const char *in = in_directory("x.tif");
    AUTO(engine)
    gf_engine *engine = test_engine(&(gf_engine_options){.backend = "cpu", .threads = 1});
    const gf_filter *filter = gf_filter_find("smooth");
    AUTO(settings) gf_settings *settings = test_settings(filter, "");
    spec.samples = 4;
    spec.photometric = PHOTOMETRIC_RGB;
    spec.extra = EXTRASAMPLE_ASSOCALPHA;
    tiff_put(in, &spec);
    for (int strip = 0; strip < 2; strip++) {
        const gf_file_options options = {.force = true, .write.strip = strip != 0};
        gf_report report;
        assert_error(
            test_run_files(&(test_files){engine, filter, settings, &in, in_directory("y.png"),
                                         &options, .report = &report}),
            GF_FAILED, "PNG does not support the associated (premultiplied) alpha");
        assert_ok(test_run_files(&(test_files){engine, filter, settings, &in, in_directory("y.raw"),
                                               &options, .report = &report}));
        assert_int_equal(report.pages, 1);
    }
}

/* Ranks read ranges of rows, unless the output would need the kind of the alpha channel. */
TEST(reads_ranges) {
    const char *in = in_directory("x.tif");
    AUTO(engine)
    gf_engine *engine = test_engine(&(gf_engine_options){.backend = "cpu", .threads = 1});
    for (uint16_t extra = EXTRASAMPLE_ASSOCALPHA; extra <= EXTRASAMPLE_UNASSALPHA; extra++) {
        static const char *const filters[] = {"hist", "smooth"};
        tiff_spec spec = tiff_small_grey(9, 0);
        spec.samples = 2;
        spec.extra = extra;
        tiff_put(in, &spec);
        for (int i = 0; i < 2; i++) {
            const gf_filter *filter = gf_filter_find(filters[i]);
            AUTO(settings) gf_settings *settings = test_settings(filter, "");
            gf_format format;
            bool possible;
            assert_ok(test_rows_possible(
                &(test_files){engine, filter, settings, &in, i ? in_directory("y.pam") : NULL},
                &format, &possible));
            assert_int_equal(possible, i == 0 || extra != EXTRASAMPLE_ASSOCALPHA);
        }
    }
}

/* ---- refused and damaged files --------------------------------------------------------------- */

static void refuse(const tiff_spec *spec, const char *message) {
    const char *path = in_directory("x.tif");
    tiff_put(path, spec);
    assert_open_fails(path, NULL, message);
    assert_message(&why, "; ");
}

TEST(refuses_other_kinds) {
    const tiff_spec grey = tiff_small_grey(9, 0);
    tiff_spec spec;
#define REFUSE(message, ...)                                                                       \
    spec = grey;                                                                                   \
    __VA_ARGS__;                                                                                   \
    refuse(&spec, message)
    REFUSE("CMYK", spec.photometric = PHOTOMETRIC_SEPARATED, spec.samples = 4);
    REFUSE("CIE L*a*b*", spec.photometric = PHOTOMETRIC_CIELAB, spec.samples = 3);
    REFUSE("ICC L*a*b*", spec.photometric = PHOTOMETRIC_ICCLAB, spec.samples = 3);
    REFUSE("a transparency mask", spec.photometric = PHOTOMETRIC_MASK, spec.bits = 1);
    REFUSE("YCbCr colours that are planar or without JPEG", spec.photometric = PHOTOMETRIC_YCBCR,
           spec.samples = 3, spec.rows_per_strip = 4);
    REFUSE("with tiff2rgba -n", spec.photometric = PHOTOMETRIC_YCBCR, spec.samples = 3,
           spec.compression = COMPRESSION_JPEG, spec.planar = true, spec.rows_per_strip = 8);
    REFUSE("photometric interpretation 34892", spec.photometric = 34892, spec.samples = 3);
    REFUSE("(8-bit signed grey, strips, LZW); read them with --as f32 or --as u16, which keep",
           spec.format = SAMPLEFORMAT_INT);
    REFUSE("(64-bit float grey, strips, LZW); read", spec.format = SAMPLEFORMAT_IEEEFP,
           spec.bits = 64);
    REFUSE("floating-point 8-bit samples", spec.format = SAMPLEFORMAT_IEEEFP);
    REFUSE("24-bit samples", spec.bits = 24);
    REFUSE("4-bit samples", spec.bits = 4, spec.samples = 3, spec.photometric = PHOTOMETRIC_RGB);
    REFUSE("complex samples", spec.format = SAMPLEFORMAT_COMPLEXIEEEFP, spec.bits = 64);
    REFUSE("samples of this type in which 0 is white", spec.format = SAMPLEFORMAT_INT,
           spec.photometric = PHOTOMETRIC_MINISWHITE);
    REFUSE("samples of this type in which 0 is white", spec.format = SAMPLEFORMAT_IEEEFP,
           spec.bits = 32, spec.photometric = PHOTOMETRIC_MINISWHITE);
    REFUSE("has 5 channels; choose up to 4, such as --channels 1,2,3", spec.samples = 5,
           spec.photometric = PHOTOMETRIC_RGB);
    REFUSE("has 3 channels; choose", spec.samples = 3);
    REFUSE("palette and extra samples", spec.samples = 2, spec.photometric = PHOTOMETRIC_PALETTE);
#undef REFUSE
}

TEST(refuses_unknown_compression) {
    const char *path = in_directory("x.tif");
    const tiff_spec spec = tiff_small_grey(9, 0);
    size_t size;
    tiff_put(path, &spec);
    AUTO(free) unsigned char *data = test_bytes(path, &size);
    for (size_t i = 0; i + 12 <= size; i++)
        if (memcmp(data + i, "\3\1\3\0\1\0\0\0\5\0", 10) == 0)
            memcpy(data + i + 8, "\x34\x12", 2);
    put_bytes(path, data, size);
    assert_open_fails(path, NULL,
                      "unknown compression (4660) is not supported by the installed libtiff");
}

TEST(applies_limits) {
    const char *path = in_directory("x.tif");
    tiff_spec spec = tiff_small_grey(9, 0);
    tiff_put(path, &spec);
    assert_open_fails(path, &(gf_limits){.max_pixels = 44},
                      "9x5 pixels are over the limit of 44; raise it with --max-pixels");
    gf_source *source = open_source(path, &(gf_limits){.max_pixels = 45});
    source->ops->close(source);
    spec.width = 4096;
    spec.height = 600;
    spec.tile_width = spec.tile_height = 512;
    tiff_put(path, &spec);
    assert_open_fails(path, &(gf_limits){.max_memory = 2 << 20},
                      "bytes for a row of tiles are over the limit of 2097152; raise it with "
                      "--max-memory");
    source = open_source(path, &(gf_limits){.max_memory = 8 << 20, .threads = 4});
    assert_true(source->memory <= 1 << 20);
    source->ops->close(source);
}

/* Write a file with a value of a private tag. */
static void write_private(const tiff_spec *spec, uint32_t size) {
    static const TIFFFieldInfo field = {
        65000, TIFF_VARIABLE2, TIFF_VARIABLE2, TIFF_BYTE, FIELD_CUSTOM, 1, 1, "Private"};
    test_random random = test_seeded(1);
    AUTO(free) unsigned char *value = test_zeros(size);
    TIFF *tiff = TIFFOpen(in_directory("x.tif"), "w");
    assert_non_null(tiff);
    assert_int_equal(TIFFMergeFieldInfo(tiff, &field, 1), 0);
    assert_true(TIFFSetField(tiff, field.field_tag, size, value));
    assert_true(tiff_write_directory(tiff, spec, &random));
    TIFFClose(tiff);
}

static void assert_dropped(const tiff_spec *spec, uint32_t tag, const void *value,
                           uint32_t dropped) {
    test_random random = test_seeded(1);
    TIFF *tiff = TIFFOpen(in_directory("x.tif"), "w");
    assert_non_null(tiff);
    assert_true(tag == TIFFTAG_PAGENUMBER ? TIFFSetField(tiff, tag, 0, 1)
                                          : TIFFSetField(tiff, tag, value));
    assert_true(tiff_write_directory(tiff, spec, &random));
    TIFFClose(tiff);
    AUTO(source) gf_source *source = open_source(in_directory("x.tif"), NULL);
    assert_int_equal(source->dropped, dropped);
}

/* Tags that are not copied are reported, unless they describe how pixels are stored. */
TEST(reports_dropped_tags) {
    static const float white[] = {0.3127f, 0.329f}, primaries[6] = {0.64f, 0.33f, 0.3f};
    tiff_spec specs[5]; /* strips, plain rows, a palette, tiles, JPEG */
    for (size_t i = 0; i < 5; i++)
        specs[i] = tiff_small_grey(30, 0);
    specs[1].compression = COMPRESSION_NONE;
    specs[2].photometric = PHOTOMETRIC_PALETTE;
    specs[3].tile_width = specs[3].tile_height = 16;
    specs[4] = specs[3];
    specs[4].compression = COMPRESSION_JPEG;
    for (size_t i = 0; i < 5; i++) {
        assert_dropped(&specs[i], TIFFTAG_PAGENUMBER, NULL, 0);
        assert_dropped(&specs[i], TIFFTAG_PAGENAME, "first", 0);
        assert_dropped(&specs[i], TIFFTAG_WHITEPOINT, white, GF_DROPPED_COLOUR);
        assert_dropped(&specs[i], TIFFTAG_PRIMARYCHROMATICITIES, primaries, GF_DROPPED_COLOUR);
        assert_dropped(&specs[i], TIFFTAG_TARGETPRINTER, "printer", GF_DROPPED_OTHER);
        write_private(&specs[i], 10);
        AUTO(source) gf_source *source = open_source(in_directory("x.tif"), NULL);
        assert_int_equal(source->dropped, GF_DROPPED_OTHER);
    }
}

/* Each thread has a handle of libtiff, which holds the values of all tags. */
TEST(limits_memory_for_tags) {
    enum { TAG_BYTES = 1 << 20 };
    tiff_spec spec = tiff_small_grey(1000, 0);
    gf_limits limits = {.max_memory = 8 * 4 * TAG_BYTES, .threads = 8, .segment = 1};
    spec.height = 1000;
    spec.tile_width = spec.tile_height = 64;
    write_private(&spec, 1);
    gf_source *source = open_source(in_directory("x.tif"), &limits);
    assert_int_equal(source->threads, 8);
    source->ops->close(source);
    write_private(&spec, TAG_BYTES);
    source = open_source(in_directory("x.tif"), &limits);
    assert_int_equal(source->threads, 3);
    assert_true(source->memory >= 2 * TAG_BYTES);
    source->ops->close(source);
    limits.max_chunk = TAG_BYTES - 1;
    assert_open_fails(in_directory("x.tif"), &limits,
                      "tag 65000 has 1048576 values of 1 bytes; raise the limit with "
                      "--max-chunk");
}

/* Tiles of 2^31 - 16 rows or columns: sizes would overflow. */
TEST(refuses_huge_tiles) {
    for (int i = 0; i < 3; i++) {
        tiff_spec spec = tiff_small_grey(1000, 0);
        size_t size;
        spec.tile_width = spec.tile_height = 64;
        spec.big_endian = false;
        tiff_put(in_directory("x.tif"), &spec);
        AUTO(free) unsigned char *data = test_bytes(in_directory("x.tif"), &size);
        for (size_t k = 0; k + 12 <= size; k++)
            if ((i != 1 && memcmp(data + k, "\x42\1\3\0\1\0\0\0\x40\0", 10) == 0) ||
                (i != 0 && memcmp(data + k, "\x43\1\3\0\1\0\0\0\x40\0", 10) == 0))
                memcpy(data + k + 2, "\4\0\1\0\0\0\xf0\xff\xff\x7f", 10);
        put_bytes(in_directory("x.tif"), data, size);
        assert_open_fails(in_directory("x.tif"), NULL,
                          i == 2 ? "wrong sizes of strips or tiles"
                                 : "tiles far larger than the image");
    }
}

/* Read a file completely; return the status of the first failure. Tasks are short. */
static gf_status read_all(const char *path, uint32_t threads, gf_error *error) {
    const gf_limits limits = {.threads = threads, .segment = 50000};
    AUTO(free) unsigned char *pixels;
    gf_format format;
    return load_image(path, &limits, 2, &format, &pixels, NULL, error);
}

/* The message names the first damaged rows, for any number of threads. */
TEST(reports_damaged_rows) {
    static const uint16_t codecs[] = {COMPRESSION_ADOBE_DEFLATE, COMPRESSION_NONE};
    const char *path = in_directory("x.tif");
    for (size_t i = 0; i < 2; i++)
        for (int tiled = 0; tiled < 2; tiled++) {
            tiff_spec spec = tiff_small_grey(300, 0);
            gf_error errors[3] = {{0}};
            spec.height = 200;
            spec.photometric = PHOTOMETRIC_MINISWHITE;
            spec.compression = codecs[i];
            spec.rows_per_strip = spec.tile_height = 16;
            spec.tile_width = tiled ? 64 : 0;
            tiff_put(path, &spec);
            TIFF *tiff = TIFFOpen(path, "r");
            assert_non_null(tiff);
            const uint32_t unit = tiled ? 5 * 5 + 2 : 5; /* rows 81 to 96 */
            const uint64_t offset = TIFFGetStrileOffset(tiff, unit);
            const uint64_t next = TIFFGetStrileOffset(tiff, unit + 1);
            TIFFClose(tiff);
            size_t size;
            unsigned char *data = test_bytes(path, &size);
            if (codecs[i] == COMPRESSION_NONE) {
                /* Cut the file after the data: the directory, which follows it, moves before. */
                free(data);
                tiff = TIFFOpen(path, "r+");
                const uint64_t far = (uint64_t)1 << 31;
                assert_non_null(tiff);
                uint64_t *offsets = NULL;
                assert_true(TIFFGetField(tiff, tiled ? TIFFTAG_TILEOFFSETS : TIFFTAG_STRIPOFFSETS,
                                         &offsets));
                offsets[unit] = offsets[unit + 1] = far;
                assert_true(TIFFRewriteDirectory(tiff));
                TIFFClose(tiff);
            } else {
                memset(data + offset + 20, 0xff, 40);
                memset(data + next + 20, 0xff, 40);
                put_bytes(path, data, size);
                free(data);
            }
            for (uint32_t t = 0; t < 3; t++) {
                assert_int_equal(read_all(path, t + 1, &errors[t]), GF_FAILED);
                assert_message(&errors[t], "x.tif: rows 81 to 96 are damaged (");
                assert_string_equal(errors[t].message, errors[0].message);
            }
        }
}

/* Uncompressed strips may be anywhere in the file. */
TEST(reads_strips_in_any_order) {
    enum { WIDTH = 20, ROWS = 2, STRIPS = 4 };
    const char *path = in_directory("x.tif");
    for (uint32_t first = 0; first < STRIPS; first++) {
        tiff_spec spec = tiff_small_grey(WIDTH, 0);
        test_random random = test_seeded(1);
        gf_format format;
        spec.height = ROWS * STRIPS;
        spec.compression = COMPRESSION_NONE;
        TIFF *tiff = TIFFOpen(path, "w");
        assert_non_null(tiff);
        tiff_set_tags(tiff, &spec, &random);
        for (uint32_t i = 0; i < STRIPS; i++) {
            const uint32_t strip = (first + 3 * i) % STRIPS; /* from first downwards, cyclically */
            unsigned char rows[WIDTH * ROWS];
            memset(rows, (int)(strip + 1), sizeof rows);
            assert_int_equal(TIFFWriteEncodedStrip(tiff, strip, rows, sizeof rows), sizeof rows);
        }
        TIFFClose(tiff);
        AUTO(free) unsigned char *expected = tiff_reference(path, 0, &format);
        assert_non_null(expected);
        assert_int_equal(expected[WIDTH * ROWS * (STRIPS - 1)], STRIPS);
        for (uint32_t threads = 1; threads < 4; threads++)
            check_pixels(path, &(gf_limits){.threads = threads}, 3, &format, expected, "order");
    }
}

/* The first one of two damaged strips is reported, also if they are decoded together. */
TEST(reports_the_first_of_two_strips) {
    const char *path = in_directory("x.tif");
    for (uint32_t first = 4; first < 6; first++) {
        tiff_spec spec = tiff_small_grey(300, 0);
        size_t size;
        spec.height = 200;
        spec.rows_per_strip = 16;
        spec.compression = COMPRESSION_ADOBE_DEFLATE;
        tiff_put(path, &spec);
        AUTO(free) unsigned char *data = test_bytes(path, &size);
        TIFF *tiff = TIFFOpen(path, "r");
        assert_non_null(tiff);
        /* The checksum of one strip, and the header of the next one. */
        data[TIFFGetStrileOffset(tiff, first) + TIFFGetStrileByteCount(tiff, first) - 1] ^= 1;
        data[TIFFGetStrileOffset(tiff, first + 1)] ^= 1;
        TIFFClose(tiff);
        put_bytes(path, data, size);
        for (uint32_t threads = 1; threads < 4; threads++) {
            char rows[80];
            snprintf(rows, sizeof rows, "rows %u to %u are damaged (wrong checksum",
                     (unsigned)(16 * first + 1), (unsigned)(16 * first + 16));
            assert_error(read_all(path, threads, &why), GF_FAILED, rows);
        }
    }
}

/* Deflate data has a checksum: one wrong bit is found, or it does not matter. */
TEST(finds_every_wrong_bit_of_deflate_data) {
    const uint64_t rounds = test_rounds(150);
    uint64_t refused = 0, unharmed = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        test_random random = test_seeded(i);
        tiff_spec spec = tiff_random(&random, 70);
        const char *path = in_directory("x.tif");
        gf_format format, found;
        unsigned char *pixels = NULL;
        size_t size;
        if (spec.compression != COMPRESSION_ADOBE_DEFLATE)
            continue;
        tiff_put(path, &spec);
        AUTO(free) unsigned char *expected = tiff_reference(path, 0, &format);
        assert_non_null(expected);
        TIFF *tiff = TIFFOpen(path, "r");
        const uint32_t units =
            TIFFIsTiled(tiff) ? TIFFNumberOfTiles(tiff) : TIFFNumberOfStrips(tiff);
        const uint32_t unit = (uint32_t)test_below(&random, units);
        const uint64_t offset = TIFFGetStrileOffset(tiff, unit);
        const uint64_t bytes = TIFFGetStrileByteCount(tiff, unit);
        TIFFClose(tiff);
        for (int k = 0; k < 20 && bytes != 0; k++) {
            AUTO(free) unsigned char *data = test_bytes(path, &size);
            const uint64_t bit = test_below(&random, 8 * bytes);
            data[offset + bit / 8] ^= (unsigned char)(1u << bit % 8);
            put_bytes(in_directory("damaged.tif"), data, size);
            const gf_status status =
                load_image(in_directory("damaged.tif"), &(gf_limits){.threads = 2}, 3, &found,
                           &pixels, NULL, &why);
            if (!status && memcmp(pixels, expected, gf_row_bytes(&format) * format.height) != 0)
                fail_msg("round %u, bit %u: different pixels", (unsigned)i, (unsigned)bit);
            if (status)
                assert_message(&why, "are damaged (");
            status ? refused++ : unharmed++;
            free(pixels);
            pixels = NULL;
        }
    }
    print_message("%u refused, %u unharmed\n", (unsigned)refused, (unsigned)unharmed);
    assert_true(refused > unharmed);
}

/* Write a strip of `rows` rows of 20 bytes as that of an image of 5 rows. */
static void write_long_strip(const char *path, uint32_t rows, bool damaged) {
    static unsigned char pixels[20 * 4000], packed[20000];
    uLongf size = sizeof packed;
    tiff_spec spec = tiff_small_grey(20, 0);
    test_random random = test_seeded(1);
    spec.compression = COMPRESSION_ADOBE_DEFLATE;
    spec.rows_per_strip = 8;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (unsigned char)(i / 20);
    assert_int_equal(compress(packed, &size, pixels, 20 * rows), Z_OK);
    packed[size - 1] ^= damaged;
    TIFF *tiff = TIFFOpen(path, "w");
    assert_non_null(tiff);
    tiff_set_tags(tiff, &spec, &random);
    assert_int_equal(TIFFWriteRawStrip(tiff, 0, packed, (tmsize_t)size), size);
    TIFFClose(tiff);
}

/* The last strip may have as many rows as the others. */
TEST(reads_strips_with_more_rows) {
    const char *path = in_directory("x.tif");
    for (uint32_t rows = 5; rows <= 8; rows++) {
        write_long_strip(path, rows, false);
        if (read_all(path, 1, &why) != GF_OK)
            fail_msg("%u rows: %s", (unsigned)rows, why.message);
        write_long_strip(path, rows, true);
        assert_error(read_all(path, 1, &why), GF_FAILED,
                     "rows 1 to 5 are damaged (wrong checksum of the Deflate data)");
    }
    write_long_strip(path, 4, false);
    assert_error(read_all(path, 1, &why), GF_FAILED, "rows 1 to 5 are damaged (too few bytes)");
    write_long_strip(path, 4000, false);
    assert_error(read_all(path, 1, &why), GF_FAILED,
                 "rows 1 to 5 are damaged (the Deflate data is too long)");
}

/* A file that ends anywhere is refused, or its missing data is found when it is read. */
TEST(refuses_truncated_files) {
    const char *path = in_directory("x.tif");
    for (int compressed = 0; compressed < 2; compressed++) {
        tiff_spec spec = tiff_small_grey(20, 0);
        size_t size;
        spec.compression = compressed ? COMPRESSION_LZW : COMPRESSION_NONE;
        tiff_put(path, &spec);
        AUTO(free) unsigned char *data = test_bytes(path, &size);
        for (size_t cut = 0; cut < size; cut++) {
            put_bytes(path, data, cut);
            const gf_status status = read_all(path, 2, &why);
            /* The last bytes may be padding of the directory. */
            if (status == GF_OK && cut + 16 < size)
                fail_msg("accepted %u of %u bytes", (unsigned)cut, (unsigned)size);
            if (status != GF_OK)
                assert_message(&why, "x.tif: ");
        }
    }
}

int main(void) {
    return test_main_in_directory();
}
