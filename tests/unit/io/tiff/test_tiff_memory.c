/* TIFF when memory runs out, within libtiff too: each allocation of a file fails in turn. Reading
 * and writing then fail, or give the same image; libtiff does not crash. */
#define _GNU_SOURCE /* RTLD_NEXT */

#include <dlfcn.h>

#include "io/stb/sandbox.h"
#include "io_util.h"
#include "tiff_file.h"

/* ---- failing allocations --------------------------------------------------------------------- */

static uint64_t allocations, fails_at; /* fails_at: number of an allocation, from 1; 0: none */

#if !GF_SANITIZED /* sanitizers replace these functions */

static bool allocation_fails(void) {
    return fails_at && ++allocations == fails_at;
}

/* Find the function that this program replaces. */
static void find_next(const char *name, void *function) {
    void *next = dlsym(RTLD_NEXT, name);
    memcpy(function, &next, sizeof next);
}

/* Visible to libtiff, which calls these functions instead of those of libc. */
#define EXPORTED __attribute__((visibility("default")))

EXPORTED void *malloc(size_t size) {
    static void *(*next)(size_t);
    if (!next)
        find_next("malloc", &next);
    return allocation_fails() ? NULL : next(size);
}

EXPORTED void *calloc(size_t count, size_t size) {
    static void *(*next)(size_t, size_t);
    if (!next)
        find_next("calloc", &next);
    return allocation_fails() ? NULL : next(count, size);
}

EXPORTED void *realloc(void *memory, size_t size) {
    static void *(*next)(void *, size_t);
    if (!next)
        find_next("realloc", &next);
    return allocation_fails() ? NULL : next(memory, size);
}

#endif

/* Let allocation `number` from now on fail. */
static void start_failing(uint64_t number) {
    allocations = 0;
    fails_at = number;
}

/* Return whether the allocation has failed; none fails from now on. */
static bool stop_failing(void) {
    const bool failed = allocations >= fails_at;
    fails_at = 0;
    return failed;
}

/* ---- reading --------------------------------------------------------------------------------- */

enum { BYTES = 1 << 16 };

/* Outcome of reading, which must not depend on memory; notes about metadata may. */
typedef struct contents {
    gf_format format;
    uint32_t pages;
    unsigned char pixels[BYTES];
} contents;

static gf_status read_contents(const char *path, contents *found) {
    const gf_limits limits = {.threads = 1};
    gf_source *source;
    memset(found, 0, sizeof *found);
    gf_status status = gf_source_open(path, &limits, &source, &why);
    if (status)
        return status;
    found->format = source->format;
    found->pages = source->pages;
    assert_true(gf_row_bytes(&source->format) * source->format.height <= BYTES);
    status = source->ops->read(source, found->pixels, gf_row_bytes(&source->format),
                               source->format.height, &why);
    if (!status)
        status = source->ops->finish(source, &why);
    source->ops->close(source);
    return status;
}

/* Read a file with every single allocation failing. */
static void check_reading(const char *path, const char *name) {
    static contents expected, found;
    if (read_contents(path, &expected))
        fail_msg("%s: %s", name, why.message);
    for (uint64_t n = 1, failed = 1; failed; n++) {
        why.message[0] = '\0';
        start_failing(n);
        const gf_status status = read_contents(path, &found);
        failed = stop_failing();
        if (status)
            assert_true(failed && why.message[0]);
        else if (!gf_format_equal(&found.format, &expected.format) ||
                 found.pages != expected.pages || memcmp(found.pixels, expected.pixels, BYTES) != 0)
            fail_msg("%s: without allocation %u it is another image", name, (unsigned)n);
    }
}

/* Write a file with texts, which libtiff stores in a list that grows. */
static void write_file(const char *path, const tiff_spec *spec, const char *description) {
    test_random random = {7};
    TIFF *tiff = tiff_create(path, spec);
    TIFFSetField(tiff, TIFFTAG_IMAGEDESCRIPTION, description);
    TIFFSetField(tiff, TIFFTAG_SOFTWARE, "a program");
    TIFFSetField(tiff, TIFFTAG_DATETIME, "2026:01:02 03:04:05");
    assert_true(tiff_write_directory(tiff, spec, &random));
    TIFFClose(tiff);
}

TEST(reads_or_fails) {
    if (GF_SANITIZED)
        skip();
    static const struct {
        const char *name;
        uint16_t samples, photometric, compression, predictor, extra;
    } kinds[] = {
        {"predictor", 1, PHOTOMETRIC_MINISBLACK, COMPRESSION_LZW, 2, TIFF_NO_EXTRA},
        {"alpha", 4, PHOTOMETRIC_RGB, COMPRESSION_ADOBE_DEFLATE, 1, EXTRASAMPLE_UNASSALPHA},
        {"palette", 1, PHOTOMETRIC_PALETTE, COMPRESSION_PACKBITS, 1, TIFF_NO_EXTRA},
        {"jpeg", 3, PHOTOMETRIC_YCBCR, COMPRESSION_JPEG, 1, TIFF_NO_EXTRA},
        {"zstd", 1, PHOTOMETRIC_MINISBLACK, COMPRESSION_ZSTD, 2, TIFF_NO_EXTRA},
        {"fax of group 4", 1, PHOTOMETRIC_MINISWHITE, COMPRESSION_CCITTFAX4, 1, TIFF_NO_EXTRA},
        {"fax of group 3", 1, PHOTOMETRIC_MINISWHITE, COMPRESSION_CCITTFAX3, 1, TIFF_NO_EXTRA},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        tiff_spec spec = tiff_small_grey(20, 0);
        spec.samples = kinds[i].samples;
        spec.photometric = kinds[i].photometric;
        spec.compression = kinds[i].compression;
        spec.predictor = kinds[i].predictor;
        spec.extra = kinds[i].extra;
        spec.colors = TIFF_COLORS_257;
        spec.bits = spec.photometric == PHOTOMETRIC_MINISWHITE ? 1 : 8;
        spec.rows_per_strip = spec.compression == COMPRESSION_JPEG ? 16 : 2;
        write_file(in_directory("x.tif"), &spec, "a description");
        check_reading(in_directory("x.tif"), kinds[i].name);
    }
}

/* Only the description says that the file contains more than one image. */
TEST(counts_the_images_of_a_stack_or_fails) {
    if (GF_SANITIZED)
        skip();
    tiff_spec spec = tiff_small_grey(20, 0);
    const char *path = in_directory("x.tif");
    contents found;
    spec.compression = COMPRESSION_NONE;
    write_file(path, &spec, "ImageJ=1\nimages=3\n");
    assert_int_equal(truncate(path, 4096), 0);
    assert_ok(read_contents(path, &found));
    assert_int_equal(found.pages, 3);
    check_reading(path, "stack");
}

/* ---- writing --------------------------------------------------------------------------------- */

static gf_status write_image(const char *path, const gf_format *format, const unsigned char *pixels,
                             const gf_file_options *options) {
    const gf_metadata metadata = {0};
    gf_sink *sink;
    gf_status status = gf_sink_open(path, format, &metadata, options, 1, &sink, &why);
    if (status)
        return status;
    status = sink->ops->write(sink, pixels, gf_row_bytes(format), format->height, &why);
    if (!status)
        status = sink->ops->finish(sink, &metadata, &why);
    if (!status)
        status = gf_output_commit(sink->output, &why);
    sink->ops->close(sink);
    return status;
}

TEST(writes_or_fails) {
    if (GF_SANITIZED)
        skip();
    const gf_format format = {20, 30, 3, GF_U8, false};
    AUTO(free) unsigned char *pixels = random_pixels(&format, 1);
    for (size_t i = 0; gf_names(GF_NAMES_TIFF_COMPRESSION)[i]; i++) {
        const gf_file_options options = {
            .force = true, .write.tiff_compression = gf_names(GF_NAMES_TIFF_COMPRESSION)[i]};
        for (uint64_t n = 1, failed = 1; failed; n++) {
            static contents found;
            put_bytes(in_directory("x.tif"), "old", 3);
            start_failing(n);
            const gf_status status = write_image(in_directory("x.tif"), &format, pixels, &options);
            failed = stop_failing();
            assert_int_equal(count_files(false), 1);
            if (status) {
                assert_true(failed && why.message[0]);
                assert_bytes(in_directory("x.tif"), "old", 3);
            } else {
                assert_ok(read_contents(in_directory("x.tif"), &found));
                assert_memory_equal(found.pixels, pixels, gf_row_bytes(&format) * format.height);
            }
        }
    }
}

int main(void) {
    return test_main_in_directory();
}
