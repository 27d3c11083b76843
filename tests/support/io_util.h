/* Shared by the tests of src/io: a directory for files; functions for bytes and images in files. */
#ifndef IO_UTIL_H
#define IO_UTIL_H

#include <dirent.h>
#include <unistd.h>

#include "gpufilter_tools.h"
#include "io/codecs.h"
#include "io/file/output.h"
#include "io/stream/convert.h"
#include "io/stream/stream.h"
#include "testing.h"

enum { MARGIN = 13, PAINT = 0xa5 };

/* A literal and its size, inner zero bytes included. */
#define TEXT(literal) (literal), sizeof(literal) - 1

static char test_directory[1024];

static inline int make_directory(void **state) {
    const char *base = getenv("TMPDIR");
    snprintf(test_directory, sizeof test_directory, "%s/gpufilter-test-XXXXXX",
             base != NULL && *base != '\0' ? base : "/tmp");
    return mkdtemp(test_directory) == NULL;
}

/* Return the path of a file in the directory: one pointer for one name, until 63 other names have
 * been used. */
static inline __attribute__((format(printf, 1, 2))) const char *test_path(const char *name, ...) {
    static char paths[64][2048], path[2048];
    static size_t next;
    const int length = snprintf(path, sizeof path, "%s/", test_directory);
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(path + length, sizeof path - (size_t)length, name, arguments);
    va_end(arguments);
    for (size_t i = 0; i < 64; i++)
        if (!strcmp(paths[i], path))
            return paths[i];
    return strcpy(paths[next++ % 64], path);
}

static inline const char *in_directory(const char *name) {
    return test_path("%s", name);
}

/* Count the files in the directory. remove: also delete them. */
static inline int count_files(bool remove) {
    DIR *directory = opendir(test_directory);
    struct dirent *entry;
    int count = 0;
    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        count++;
        if (remove)
            unlink(in_directory(entry->d_name));
    }
    closedir(directory);
    return count;
}

static inline int empty_directory(void **state) {
    count_files(true);
    return 0;
}

static inline int remove_directory(void **state) {
    count_files(true);
    return rmdir(test_directory);
}

/* Run the tests of a program in a directory that is empty at the start of each. */
static inline int test_main_in_directory(void) {
    return test_main(&(test_fixture){make_directory, remove_directory, .after = empty_directory});
}

static inline void put_bytes(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static inline void assert_bytes(const char *path, const void *expected, size_t size) {
    size_t got;
    AUTO(free) unsigned char *data = test_bytes(path, &got);
    assert_int_equal(got, size);
    assert_memory_equal(data, expected, size);
}

/* Return a pseudo-random number of 24 bits. */
static inline uint32_t next_random(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Read a whole image and close its source. Strips of `strip` rows are read into a buffer with
 * painted margins, which must survive; *pixels receives packed rows. *metadata, unless NULL,
 * receives the metadata, which the caller clears. */
static inline gf_status load_source(gf_source *source, uint64_t strip, unsigned char **pixels,
                                    gf_metadata *metadata, gf_error *error) {
    const gf_format *format = &source->format;
    size_t row = gf_row_bytes(format);
    size_t stride = row + MARGIN;
    AUTO(free) unsigned char *buffer = test_alloc(stride * format->height);
    gf_status status = GF_OK;
    *pixels = test_alloc(row * format->height);
    memset(buffer, PAINT, stride * format->height);
    for (uint64_t y = 0; y < format->height && status == GF_OK; y += strip) {
        uint64_t rows = format->height - y < strip ? format->height - y : strip;
        status = source->ops->read(source, buffer + y * stride, stride, rows, error);
    }
    if (status == GF_OK)
        status = source->ops->finish(source, error);
    if (status == GF_OK) {
        for (uint64_t y = 0; y < format->height; y++) {
            memcpy(*pixels + y * row, buffer + y * stride, row);
            for (size_t i = row; i < stride; i++)
                assert_int_equal(buffer[y * stride + i], PAINT);
        }
        if (metadata != NULL) {
            *metadata = source->metadata;
            source->metadata = (gf_metadata){0};
        }
    } else {
        free(*pixels);
        *pixels = NULL;
    }
    source->ops->close(source);
    return status;
}

/* Read a whole image from a file, like load_source. */
static inline gf_status load_image(const char *path, const gf_limits *limits, uint64_t strip,
                                   gf_format *format, unsigned char **pixels, gf_metadata *metadata,
                                   gf_error *error) {
    gf_source *source;
    gf_status status = gf_source_open(path, limits, &source, error);
    *pixels = NULL;
    *format = (gf_format){0};
    if (status != GF_OK) {
        assert_null(source);
        return status;
    }
    *format = source->format;
    return load_source(source, strip, pixels, metadata, error);
}

/* Check the format and the pixels of a file that is read in strips of `strip` rows. what: starts
 * the message of a failure. */
static inline void assert_image(const char *path, const gf_limits *limits, uint64_t strip,
                                const gf_format *format, const void *pixels, const char *what) {
    const size_t row = gf_row_bytes(format);
    gf_format got;
    AUTO(free) unsigned char *back;
    if (load_image(path, limits, strip, &got, &back, NULL, &why) != GF_OK)
        fail_msg("%s: %s", what, why.message);
    if (!gf_format_equal(&got, format))
        fail_msg("%s: %ux%u, %u channels, type %d", what, (unsigned)got.width, (unsigned)got.height,
                 got.channels, (int)got.type);
    for (uint64_t y = 0; y < format->height; y++)
        if (memcmp(back + y * row, (const unsigned char *)pixels + y * row, row) != 0)
            fail_msg("%s: row %u differs", what, (unsigned)y);
}

/* The same; the path starts the message. */
static inline void assert_loads(const char *path, const gf_limits *limits, uint64_t strip,
                                const gf_format *format, const void *pixels) {
    assert_image(path, limits, strip, format, pixels, path);
}

/* Write a file into the directory and check the image in it. */
static inline void assert_bytes_load(const char *name, const void *data, size_t size,
                                     const gf_format *format, const void *pixels) {
    put_bytes(in_directory(name), data, size);
    assert_loads(in_directory(name), NULL, 2, format, pixels);
}

/* Open a file, or fail the test. */
static inline gf_source *open_source(const char *path, const gf_limits *limits) {
    gf_source *source;
    assert_ok(gf_source_open(path, limits, &source, &why));
    return source;
}

static inline void test_auto_source(gf_source **source) {
    (*source)->ops->close(*source);
}

/* Check that inspecting a page of a file fails with this message. */
static inline void assert_inspection_fails(const char *path, const gf_file_options *options,
                                           const char *part) {
    gf_file_info info;
    assert_error(gf_inspect_file(path, options, &info, &why), GF_FAILED, part);
}

/* Check that a message names a file and contains `part`. */
static inline void assert_names(const gf_error *error, const char *path, const char *part) {
    const char *slash = strrchr(path, '/');
    assert_message(error, strcmp(path, "-") ? slash ? slash + 1 : path : "standard input");
    assert_message(error, part);
}

/* Check that opening a file fails with a message that names it and contains `part`. */
static inline void assert_open_fails(const char *path, const gf_limits *limits, const char *part) {
    gf_source *source;
    assert_int_equal(gf_source_open(path, limits, &source, &why), GF_FAILED);
    assert_null(source);
    assert_names(&why, path, part);
}

/* The same for opening it or reading its pixels. */
static inline void assert_load_fails(const char *path, const gf_limits *limits, const char *part) {
    gf_format format;
    unsigned char *pixels;
    assert_int_equal(load_image(path, limits, 3, &format, &pixels, NULL, &why), GF_FAILED);
    assert_names(&why, path, part);
}

/* Write a file into the directory and check that reading it fails. */
static inline void assert_bytes_fail(const char *name, const void *data, size_t size,
                                     const gf_limits *limits, const char *part) {
    put_bytes(in_directory(name), data, size);
    assert_load_fails(in_directory(name), limits, part);
}

/* Write packed rows in strips from a buffer with margins. */
static inline gf_status save_image(const char *path, const gf_format *format, const void *pixels,
                                   const gf_metadata *metadata, const gf_file_options *options,
                                   uint64_t strip) {
    gf_sink *sink;
    gf_status status = gf_sink_open(path, format, metadata, options, 2, &sink, &why);
    if (status != GF_OK) {
        assert_null(sink);
        return status;
    }
    size_t row = gf_row_bytes(format);
    size_t stride = row + MARGIN;
    AUTO(free) unsigned char *buffer = test_alloc(stride * format->height);
    memset(buffer, PAINT, stride * format->height);
    for (uint64_t y = 0; y < format->height; y++)
        memcpy(buffer + y * stride, (const unsigned char *)pixels + y * row, row);
    for (uint64_t y = 0; y < format->height && status == GF_OK; y += strip) {
        uint64_t rows = format->height - y < strip ? format->height - y : strip;
        status = sink->ops->write(sink, buffer + y * stride, stride, rows, &why);
    }
    if (status == GF_OK)
        status = sink->ops->finish(sink, metadata, &why);
    if (status == GF_OK)
        status = gf_output_commit(sink->output, &why);
    sink->ops->close(sink);
    return status;
}

/* Save and load an image, and compare the pixels. */
static inline void assert_round_trip(const char *path, const gf_format *format,
                                     const void *pixels) {
    const gf_file_options options = {.force = true};
    assert_ok(save_image(path, format, pixels, NULL, &options, 3));
    assert_loads(path, NULL, 2, format, pixels);
}

/* Return random bytes as pixels. */
static inline unsigned char *random_pixels(const gf_format *format, uint32_t seed) {
    size_t bytes = gf_row_bytes(format) * format->height;
    unsigned char *pixels = test_alloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        pixels[i] = (unsigned char)next_random(&seed);
    return pixels;
}

/* Save and load random images of this format and several sizes; the largest one takes threads. */
static inline void assert_round_trips(const char *name, gf_format format) {
    static const uint64_t sizes[][2] = {{1, 1},   {1, 9},    {9, 1},      {13, 1},   {33, 17},
                                        {31, 22}, {300, 40}, {1500, 500}, {20000, 8}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        format.width = sizes[s][0];
        format.height = sizes[s][1];
        AUTO(free) unsigned char *pixels = random_pixels(&format, (uint32_t)s);
        assert_round_trip(in_directory(name), &format, pixels);
    }
}

/* Save an image and check the bytes of the file. */
static inline void assert_writes(const char *name, const gf_format *format, const void *pixels,
                                 const void *file, size_t size) {
    assert_ok(save_image(in_directory(name), format, pixels, NULL, NULL, 1));
    assert_bytes(in_directory(name), file, size);
}

/* Check that writing is rejected with this message and leaves no file. */
static inline void assert_rejected(const char *name, const gf_format *format, const char *part) {
    gf_sink *sink;
    int before = count_files(false);
    assert_int_equal(gf_sink_open(in_directory(name), format, NULL, NULL, 1, &sink, &why),
                     GF_FAILED);
    assert_null(sink);
    assert_message(&why, part);
    assert_message(&why, name);
    assert_int_equal(count_files(false), before);
}

#endif
