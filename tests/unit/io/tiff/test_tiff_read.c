/* Reading TIFF: every kind that libtiff writes gives the samples that libtiff reads, for any number
 * of threads, heights of strips and pages; other kinds are refused by name. */
#include "io_util.h"
#include "pipe.h"
#include "tiff_file.h"

#include <zlib.h>

/* ---- pixels ---------------------------------------------------------------------------------- */

static const char *describe(const tiff_spec *spec, uint64_t seed) {
    static char text[300];
    snprintf(
        text, sizeof text,
        "seed %u: %ux%u samples %u bits %u photometric %u codec %u predictor %u%s%s%s%s tile %ux%u "
        "strip %u%s",
        (unsigned)seed, spec->width, spec->height, spec->samples, spec->bits, spec->photometric,
        spec->compression, spec->predictor, spec->planar ? " planar" : "", spec->big ? " big" : "",
        spec->big_endian ? " MM" : " II", spec->reversed ? " reversed" : "", spec->tile_width,
        spec->tile_height, spec->rows_per_strip, spec->sparse ? " sparse" : "");
    return text;
}

/* An image, and the file and limits that give it. */
typedef struct reading {
    const char *path, *what, *how; /* what and how: in the message of a failure */
    const gf_limits *limits;
    gf_format format;
    const unsigned char *expected;
} reading;

static gf_source *open_reading(const reading *r) {
    gf_source *source;
    if (gf_source_open(r->path, r->limits, &source, &why) != GF_OK)
        fail_msg("%s: %s", r->what, why.message);
    return source;
}

/* Read rows to painted memory. The paint between them must survive. */
static void check_rows(const reading *r, gf_source *source, unsigned char *to, size_t stride,
                       uint64_t y, uint64_t rows) {
    const size_t row = gf_row_bytes(&r->format);
    if (source->ops->read(source, to, stride, rows, &why) != GF_OK)
        fail_msg("%s: %s", r->what, why.message);
    for (uint64_t end = y + rows; y < end; y++, to += stride) {
        if (memcmp(to, r->expected + y * row, row) != 0)
            fail_msg("%s: row %u differs %s", r->what, (unsigned)y, r->how);
        for (size_t x = row; x < stride; x++)
            assert_int_equal(to[x], PAINT);
    }
}

/* Read rows of both halves, the second one first, as MPI ranks do. */
static void check_seek(const reading *r) {
    const uint64_t limits[] = {0, r->format.height / 2, r->format.height};
    const size_t row = gf_row_bytes(&r->format);
    AUTO(free) unsigned char *pixels = test_alloc(row * r->format.height);
    AUTO(source) gf_source *source = open_reading(r);
    for (int half = 1; half >= 0; half--) {
        source->ops->seek(source, limits[half]);
        if (limits[half + 1] > limits[half])
            check_rows(r, source, pixels, row, limits[half], limits[half + 1] - limits[half]);
    }
    assert_ok(source->ops->finish(source, &why));
}

/* Read strips to announced memory with gaps. Memory is used again after its strip has been read.
 * Some readings end early. */
static void check_announced(const reading *r, test_random *random) {
    const size_t row = gf_row_bytes(&r->format), stride = row + 7 * (size_t)test_below(random, 3);
    const uint64_t slots = 1 + test_below(random, GF_SOURCE_AHEAD), height = r->format.height;
    unsigned char *memory[GF_SOURCE_AHEAD] = {NULL};
    AUTO(source) gf_source *source = open_reading(r);
    if (!source->ops->announce)
        return;
    const bool together = source->rows_together && test_below(random, 4);
    const uint64_t unit = together ? source->rows_together : 1 + test_below(random, height);
    const uint64_t strip = unit * (1 + test_below(random, 3));
    const uint64_t first = test_below(random, height) / unit * unit;
    const uint64_t strips = (height - first - 1) / strip + 1;
    const uint64_t end = test_below(random, 4) ? strips : test_below(random, strips);
    source->ops->seek(source, first);
    for (uint64_t k = 0, announced = 0; k < end; k++) {
        for (; announced < strips && announced < k + slots; announced++) {
            const uint64_t left = height - first - announced * strip;
            unsigned char **slot = &memory[announced % slots];
            free(*slot);
            *slot = test_alloc(stride * strip);
            memset(*slot, PAINT, stride * strip);
            assert_ok(
                source->ops->announce(source, *slot, stride, left < strip ? left : strip, &why));
        }
        const uint64_t y = first + k * strip;
        check_rows(r, source, memory[k % slots], stride, y,
                   height - y < strip ? height - y : strip);
    }
    if (end != strips)
        source->ops->cancel(source);
    for (uint64_t i = 0; i < slots; i++)
        free(memory[i]);
    if (end == strips) { /* again, without that memory */
        AUTO(free) unsigned char *last = test_alloc(row);
        source->ops->seek(source, height - 1);
        check_rows(r, source, last, row, height - 1, 1);
        assert_ok(source->ops->finish(source, &why));
    }
}

/* Compare a file with what libtiff reads: whole, by ranges, announced, and from a pipe. */
static void check_file(const char *path, test_random *random, const char *what) {
    static const size_t segments[] = {0, 1, 700, 5000};
    reading r = {path, what};
    AUTO(free) unsigned char *expected = tiff_reference(path, 0, &r.format);
    r.expected = expected;
    if (!expected)
        fail_msg("%s: libtiff cannot read it", what);
    for (uint32_t threads = 1; threads <= 4; threads += 1 + (uint32_t)test_below(random, 2)) {
        const gf_limits limits = {.threads = threads,
                                  .segment = segments[test_below(random, 4)],
                                  .page = 1,
                                  .no_sandbox = true};
        r.limits = &limits;
        assert_image(path, &limits, 1 + test_below(random, r.format.height), &r.format, expected,
                     what);
        r.how = "after a seek";
        check_seek(&r);
        r.how = "in announced memory";
        check_announced(&r, random);
    }
    if (test_below(random, 8) == 0) {
        const gf_limits limits = {.threads = 2, .page = 1, .no_sandbox = true};
        test_feeder *feeder = test_feed_file(in_directory("fifo"), path, 0);
        assert_image(in_directory("fifo"), &limits, 3, &r.format, expected, what);
        test_feed_end(feeder);
    }
}

TEST(reads_every_kind) {
    const uint64_t seed = test_environment("GF_TEST_SEED", 5000), rounds = test_rounds(600);
    for (uint64_t i = 0; i < rounds; i++) {
        test_random random = test_seeded(seed + i);
        const tiff_spec spec = tiff_random(&random, i % 10 == 0 ? 300 : 70);
        const char *path = in_directory("x.tif");
        const char *what = describe(&spec, seed + i);
        if (!tiff_write(path, &spec, 1, &random))
            fail_msg("%s: libtiff cannot write it", what);
        check_file(path, &random, what);
    }
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* Check the width and the description of a page; width 0: the message about a missing page. */
static void check_page(const char *path, uint32_t page, uint32_t width, const char *text) {
    const gf_file_options options = {.page = page};
    gf_file_info info;
    if (!width) {
        assert_inspection_fails(path, &options, text);
        return;
    }
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
        check_page(path, 4, 0, "has no page 4; choose one from 1 to 3 with --page");
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
    check_page(in_directory("x.tif"), PAGES, 0,
               "has no page 100; choose one from 1 to 1 with --page");
}

/* Write a file of 60 samples, and of one directory per character of `list`: a page, or an image of
 * reduced size (r). At the end, '<' links the last one to the first. They describe an image of 6
 * rows of 5 samples at an offset. Their description has space for more directories, so that only
 * the search for cycles ends a list with a cycle. */
static void put_directories(const char *path, const char *list, uint32_t offset,
                            const char *description) {
    enum { FIRST = 68, ENTRIES = 9, BYTES = 2 + 12 * ENTRIES + 4, TEXT_BYTES = 1000 };
    const size_t count = strcspn(list, "<"), size = FIRST + count * BYTES + TEXT_BYTES;
    AUTO(free) unsigned char *data = test_zeros(size);
    unsigned char *at = data + FIRST;
    memcpy(data, "II*\0\x44\0\0", 8);
    strcpy((char *)data + size - TEXT_BYTES, description);
    for (size_t i = 0; i < count; i++) {
        const tiff_entry entries[ENTRIES] = {
            {TIFFTAG_SUBFILETYPE, TIFF_LONG, 1, list[i] == 'r'},
            {TIFFTAG_IMAGEWIDTH, TIFF_LONG, 1, 5},
            {TIFFTAG_IMAGELENGTH, TIFF_LONG, 1, 6},
            {TIFFTAG_BITSPERSAMPLE, TIFF_LONG, 1, 8},
            {TIFFTAG_PHOTOMETRIC, TIFF_LONG, 1, 1},
            {TIFFTAG_IMAGEDESCRIPTION, TIFF_ASCII, TEXT_BYTES, (uint32_t)(size - TEXT_BYTES)},
            {TIFFTAG_STRIPOFFSETS, TIFF_LONG, 1, offset},
            {TIFFTAG_ROWSPERSTRIP, TIFF_LONG, 1, 6},
            {TIFFTAG_STRIPBYTECOUNTS, TIFF_LONG, 1, 30}};
        const size_t next = i + 1 < count ? FIRST + (i + 1) * BYTES : list[count] ? FIRST : 0;
        at = tiff_put_entries(at, entries, ENTRIES, (uint32_t)next);
    }
    put_bytes(path, data, size);
}

/* Images of reduced size, however many, hide no page; a list with a cycle ends; images of a stack
 * lie within the file. */
TEST(lists_pages) {
    enum { PAGES = 2000 };
    static char many[6 * PAGES + 1];
    static const char stack[] = "ImageJ=1\nimages=2\n";
    const char *path = in_directory("x.tif");
    for (size_t i = 0; i < PAGES; i++)
        memcpy(many + 6 * i, "prrrrr", 6);
    put_directories(path, many, 8, "");
    check_page(path, PAGES, 5, "8-bit grey, strips, uncompressed, page 2000 of 2000");
    put_directories(path, "ppp<", 8, "");
    check_page(path, 0, 5, "8-bit grey, strips, uncompressed, page 1 of 3");
    put_directories(path, "p", 8, stack);
    check_page(path, 2, 5, "8-bit grey, strips, uncompressed, page 2 of 2");
    put_directories(path, "p", 5000, stack);
    check_page(path, 2, 0, "has no page 2; choose one from 1 to 1 with --page");
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

/* PNG defines alpha as unassociated: the kind would change silently. Ranks read ranges of rows,
 * unless the output would need the kind. */
TEST(keeps_associated_alpha) {
    const char *in = in_directory("x.tif"), *const outputs[] = {NULL, in_directory("y.pam")};
    AUTO(engine)
    gf_engine *engine = test_engine(&(gf_engine_options){.backend = "cpu", .threads = 1});
    for (uint16_t kind = 0; kind < 4; kind++) {
        tiff_spec spec = tiff_small_grey(9, 0);
        const bool associated = kind % 2 == 0;
        spec.samples = kind / 2 ? 4 : 2;
        spec.photometric = kind / 2 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK;
        spec.extra = associated ? EXTRASAMPLE_ASSOCALPHA : EXTRASAMPLE_UNASSALPHA;
        tiff_put(in, &spec);
        for (int i = 0; i < 2; i++) {
            const gf_filter *filter = gf_filter_find(i ? "smooth" : "hist");
            AUTO(settings) gf_settings *settings = test_settings(filter, "");
            const test_files files = {engine, filter, settings, &in, outputs[i]};
            gf_format format;
            bool possible;
            assert_ok(test_rows_possible(&files, &format, &possible));
            assert_int_equal(possible, i == 0 || !associated);
        }
        const gf_filter *filter = gf_filter_find("smooth");
        AUTO(settings) gf_settings *settings = test_settings(filter, "");
        for (int strip = 0; strip < 2 && associated; strip++) {
            const gf_file_options options = {.force = true, .write.strip = strip != 0};
            gf_report report;
            test_files files = {engine,   filter,           settings, &in, in_directory("y.png"),
                                &options, .report = &report};
            assert_error(test_run_files(&files), GF_FAILED,
                         "PNG does not support the associated (premultiplied) alpha");
            files.out = in_directory("y.raw");
            assert_ok(test_run_files(&files));
            assert_int_equal(report.pages, 1);
        }
    }
}

/* ---- refused and damaged files --------------------------------------------------------------- */

/* The message contains a remedy. */
TEST(refuses_other_kinds) {
    enum { UINT = 1, INT, FLOAT, COMPLEX = SAMPLEFORMAT_COMPLEXIEEEFP }; /* of samples */
    static const struct {
        const char *message;
        uint16_t photometric, samples, bits, format;
        bool planar_jpeg;
    } kinds[] = {
        {"CMYK", PHOTOMETRIC_SEPARATED, 4, 8, UINT, false},
        {"CIE L*a*b*", PHOTOMETRIC_CIELAB, 3, 8, UINT, false},
        {"ICC L*a*b*", PHOTOMETRIC_ICCLAB, 3, 8, UINT, false},
        {"a transparency mask", PHOTOMETRIC_MASK, 1, 1, UINT, false},
        {"YCbCr colours that are planar or without JPEG", PHOTOMETRIC_YCBCR, 3, 8, UINT, false},
        {"with tiff2rgba -n", PHOTOMETRIC_YCBCR, 3, 8, UINT, true},
        {"photometric interpretation 34892", 34892, 3, 8, UINT, false},
        {"(8-bit signed grey, strips, LZW); read them with --as f32 or --as u16, which "
         "keep",
         PHOTOMETRIC_MINISBLACK, 1, 8, INT, false},
        {"(64-bit float grey, strips, LZW); read", PHOTOMETRIC_MINISBLACK, 1, 64, FLOAT, false},
        {"floating-point 8-bit samples", PHOTOMETRIC_MINISBLACK, 1, 8, FLOAT, false},
        {"24-bit samples", PHOTOMETRIC_MINISBLACK, 1, 24, UINT, false},
        {"4-bit samples", PHOTOMETRIC_RGB, 3, 4, UINT, false},
        {"complex samples", PHOTOMETRIC_MINISBLACK, 1, 64, COMPLEX, false},
        {"samples of this type in which 0 is white", 0, 1, 8, INT, false},
        {"samples of this type in which 0 is white", 0, 1, 32, FLOAT, false},
        {"has 5 channels; choose up to 4, such as --channels 1,2,3", PHOTOMETRIC_RGB, 5, 8, UINT,
         false},
        {"has 3 channels; choose", PHOTOMETRIC_MINISBLACK, 3, 8, UINT, false},
        {"palette and extra samples", PHOTOMETRIC_PALETTE, 2, 8, UINT, false}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        tiff_spec spec = tiff_small_grey(9, 0);
        spec.photometric = kinds[i].photometric;
        spec.samples = kinds[i].samples;
        spec.bits = kinds[i].bits;
        spec.format = kinds[i].format;
        spec.planar = kinds[i].planar_jpeg;
        spec.compression = spec.planar ? COMPRESSION_JPEG : COMPRESSION_LZW;
        spec.rows_per_strip = 8;
        tiff_put(in_directory("x.tif"), &spec);
        assert_open_fails(in_directory("x.tif"), NULL, kinds[i].message);
        assert_message(&why, "; ");
    }
}

/* The sizes of tiles of 2^31 - 16 columns or rows would overflow. */
TEST(refuses_values_of_tags) {
    const char *path = in_directory("x.tif");
    tiff_spec spec = tiff_small_grey(1000, 0);
    tiff_put(path, &spec);
    tiff_patch(path, TIFFTAG_COMPRESSION, 4660);
    assert_open_fails(path, NULL,
                      "unknown compression (4660) is not supported by the installed libtiff");
    spec.tile_width = spec.tile_height = 64;
    tiff_put(path, &spec);
    tiff_patch(path, TIFFTAG_TILEWIDTH, INT32_MAX - 15);
    assert_open_fails(path, NULL, "tiles far larger than the image");
    tiff_patch(path, TIFFTAG_TILELENGTH, INT32_MAX - 15);
    assert_open_fails(path, NULL, "wrong sizes of strips or tiles");
    tiff_patch(path, TIFFTAG_TILEWIDTH, 64);
    assert_open_fails(path, NULL, "tiles far larger than the image");
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

enum { TIFFTAG_PRIVATE = 65000 };

/* Write a file with a tag. size: of the value of a private tag. */
static void put_tag(const tiff_spec *spec, uint32_t tag, uint32_t size, const void *value) {
    static const TIFFFieldInfo field = {
        TIFFTAG_PRIVATE, TIFF_VARIABLE2, TIFF_VARIABLE2, TIFF_BYTE, FIELD_CUSTOM, 1, 1, "Private"};
    test_random random = test_seeded(1);
    TIFF *tiff = tiff_create(in_directory("x.tif"), spec);
    assert_int_equal(TIFFMergeFieldInfo(tiff, &field, 1), 0);
    assert_true(tag == TIFFTAG_PRIVATE      ? TIFFSetField(tiff, tag, size, value)
                : tag == TIFFTAG_PAGENUMBER ? TIFFSetField(tiff, tag, 0, 1)
                                            : TIFFSetField(tiff, tag, value));
    assert_true(tiff_write_directory(tiff, spec, &random));
    TIFFClose(tiff);
}

/* Tags that are not copied are reported, unless they describe how pixels are stored. */
TEST(reports_dropped_tags) {
    static const float white[] = {0.3127f, 0.329f}, primaries[6] = {0.64f, 0.33f, 0.3f};
    static const struct {
        uint32_t tag, dropped;
        const void *value;
    } tags[] = {{TIFFTAG_PAGENUMBER, 0, NULL},
                {TIFFTAG_PAGENAME, 0, "first"},
                {TIFFTAG_WHITEPOINT, GF_DROPPED_COLOUR, white},
                {TIFFTAG_PRIMARYCHROMATICITIES, GF_DROPPED_COLOUR, primaries},
                {TIFFTAG_TARGETPRINTER, GF_DROPPED_OTHER, "printer"},
                {TIFFTAG_PRIVATE, GF_DROPPED_OTHER, "ten bytes"}};
    tiff_spec specs[5]; /* strips, plain rows, a palette, tiles, JPEG */
    for (size_t i = 0; i < 5; i++)
        specs[i] = tiff_small_grey(30, 0);
    specs[1].compression = COMPRESSION_NONE;
    specs[2].photometric = PHOTOMETRIC_PALETTE;
    specs[3].tile_width = specs[3].tile_height = 16;
    specs[4] = specs[3];
    specs[4].compression = COMPRESSION_JPEG;
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < sizeof tags / sizeof *tags; k++) {
            put_tag(&specs[i], tags[k].tag, 10, tags[k].value);
            AUTO(source) gf_source *source = open_source(in_directory("x.tif"), NULL);
            assert_int_equal(source->dropped, tags[k].dropped);
        }
}

/* Each thread has a handle of libtiff, which holds the values of all tags. */
TEST(limits_memory_for_tags) {
    enum { TAG_BYTES = 1 << 20 };
    tiff_spec spec = tiff_small_grey(1000, 0);
    gf_limits limits = {.max_memory = 8 * 4 * TAG_BYTES, .threads = 8, .segment = 1};
    spec.height = 1000;
    spec.tile_width = spec.tile_height = 64;
    AUTO(free) unsigned char *value = test_zeros(TAG_BYTES);
    put_tag(&spec, TIFFTAG_PRIVATE, 1, value);
    gf_source *source = open_source(in_directory("x.tif"), &limits);
    assert_int_equal(source->threads, 8);
    source->ops->close(source);
    put_tag(&spec, TIFFTAG_PRIVATE, TAG_BYTES, value);
    source = open_source(in_directory("x.tif"), &limits);
    assert_int_equal(source->threads, 3);
    assert_true(source->memory >= 2 * TAG_BYTES);
    source->ops->close(source);
    limits.max_chunk = TAG_BYTES - 1;
    assert_open_fails(in_directory("x.tif"), &limits,
                      "tag 65000 has 1048576 values of 1 bytes; raise the limit with "
                      "--max-chunk");
}

/* Read a file completely; return the status of the first failure. Tasks are short. */
static gf_status read_all(const char *path, uint32_t threads, gf_error *error) {
    const gf_limits limits = {.threads = threads, .segment = 50000};
    AUTO(free) unsigned char *pixels;
    gf_format format;
    return load_image(path, &limits, 2, &format, &pixels, NULL, error);
}

/* The message names the first damaged rows, for any number of threads, also if two damaged strips
 * are decoded together. */
TEST(reports_damaged_rows) {
    enum { MIDDLE, ENDS, OFFSET };
    static const struct {
        uint16_t compression, photometric;
        uint32_t tile_width, unit; /* unit: the first one of two */
        int damage; /* MIDDLE: bytes; ENDS: the checksum and the header of the next; OFFSET: far */
    } files[] = {{COMPRESSION_ADOBE_DEFLATE, PHOTOMETRIC_MINISWHITE, 0, 5, MIDDLE},
                 {COMPRESSION_ADOBE_DEFLATE, PHOTOMETRIC_MINISWHITE, 64, 5 * 5 + 2, MIDDLE},
                 {COMPRESSION_NONE, PHOTOMETRIC_MINISWHITE, 0, 5, OFFSET},
                 {COMPRESSION_NONE, PHOTOMETRIC_MINISWHITE, 64, 5 * 5 + 2, OFFSET},
                 {COMPRESSION_ADOBE_DEFLATE, PHOTOMETRIC_MINISBLACK, 0, 4, ENDS},
                 {COMPRESSION_ADOBE_DEFLATE, PHOTOMETRIC_MINISBLACK, 0, 5, ENDS}};
    const char *path = in_directory("x.tif");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        tiff_spec spec = tiff_small_grey(300, 0);
        gf_error errors[3] = {{0}};
        uint64_t size, next_size;
        size_t file_size;
        spec.height = 200;
        spec.photometric = files[i].photometric;
        spec.compression = files[i].compression;
        spec.rows_per_strip = spec.tile_height = 16;
        spec.tile_width = files[i].tile_width;
        tiff_put(path, &spec);
        AUTO(free) unsigned char *data = test_bytes(path, &file_size);
        unsigned char *unit = tiff_unit(path, data, files[i].unit, &size);
        unsigned char *next = tiff_unit(path, data, files[i].unit + 1, &next_size);
        if (files[i].damage == MIDDLE) {
            memset(unit + 20, 0xff, 40);
            memset(next + 20, 0xff, 40);
        } else if (files[i].damage == ENDS) {
            unit[size - 1] ^= 1;
            *next ^= 1;
        } else { /* in a table of 16-bit or 32-bit offsets */
            unsigned char *entry =
                tiff_entry_of(data, spec.tile_width ? TIFFTAG_TILEOFFSETS : TIFFTAG_STRIPOFFSETS);
            const size_t bytes = gf_little16(entry + 2) == TIFF_SHORT ? 2 : 4;
            memset(data + gf_little32(entry + 8) + bytes * files[i].unit, 0xff, 2 * bytes);
        }
        put_bytes(path, data, file_size);
        const unsigned row = files[i].unit / (spec.tile_width ? 5 : 1) * 16;
        char message[80];
        snprintf(message, sizeof message, "x.tif: rows %u to %u are damaged (%s", row + 1, row + 16,
                 files[i].damage == ENDS ? "wrong checksum" : "");
        for (uint32_t t = 0; t < 3; t++) {
            assert_int_equal(read_all(path, t + 1, &errors[t]), GF_FAILED);
            assert_message(&errors[t], message);
            assert_string_equal(errors[t].message, errors[0].message);
        }
    }
}

/* Uncompressed strips may be anywhere in the file. */
TEST(reads_strips_in_any_order) {
    enum { WIDTH = 20, ROWS = 2, STRIPS = 4 };
    for (uint32_t first = 0; first < STRIPS; first++) {
        unsigned char pixels[STRIPS][WIDTH * ROWS];
        tiff_spec spec = tiff_small_grey(WIDTH, 0);
        spec.height = ROWS * STRIPS;
        spec.compression = COMPRESSION_NONE;
        TIFF *tiff = tiff_begin(in_directory("x.tif"), &spec);
        for (uint32_t i = 0; i < STRIPS; i++) {
            const uint32_t strip = (first + 3 * i) % STRIPS; /* from first downwards, cyclically */
            memset(pixels[strip], (int)(strip + 1), sizeof *pixels);
            assert_true(TIFFWriteEncodedStrip(tiff, strip, pixels[strip], sizeof *pixels) > 0);
        }
        TIFFClose(tiff);
        for (uint32_t threads = 1; threads < 4; threads++)
            assert_loads(in_directory("x.tif"), &(gf_limits){.threads = threads}, 3,
                         &(gf_format){WIDTH, ROWS * STRIPS, 1, GF_U8, false}, pixels);
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
        uint64_t bytes;
        if (spec.compression != COMPRESSION_ADOBE_DEFLATE)
            continue;
        spec.reversed = i % 2;
        tiff_put(path, &spec);
        AUTO(free) unsigned char *expected = tiff_reference(path, 0, &format);
        assert_non_null(expected);
        AUTO(free) unsigned char *data = test_bytes(path, &size);
        unsigned char *unit = tiff_unit(path, data, (uint32_t)test_below(&random, 1000), &bytes);
        for (int k = 0; k < 20 && bytes != 0; k++) {
            const uint64_t bit = test_below(&random, 8 * bytes);
            unit[bit / 8] ^= (unsigned char)(1u << bit % 8);
            put_bytes(path, data, size);
            unit[bit / 8] ^= (unsigned char)(1u << bit % 8);
            const gf_status status =
                load_image(path, &(gf_limits){.threads = 2}, 3, &found, &pixels, NULL, &why);
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
    spec.compression = COMPRESSION_ADOBE_DEFLATE;
    spec.rows_per_strip = 8;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (unsigned char)(i / 20);
    assert_int_equal(compress(packed, &size, pixels, 20 * rows), Z_OK);
    packed[size - 1] ^= damaged;
    TIFF *tiff = tiff_begin(path, &spec);
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
