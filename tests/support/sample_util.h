/* Shared by the tests of files of extracted samples: layouts, and samples to write. */
#ifndef SAMPLE_UTIL_H
#define SAMPLE_UTIL_H

#include "io_util.h"

#include "io/file/output.h"
#include "io/sample_sink.h"

static const gf_sample_layout grey8 = {.type = GF_U8, .width = 3, .channels = 1, .names = {"grey"}};
static const gf_sample_layout rgb16 = {.type = GF_U16,
                                       .width = 4,
                                       .channels = 3,
                                       .names = {"r", "g", "b"},
                                       .indices = {0, 1, 2},
                                       .with_bin = true};
static const char *const kinds[] = {"csv", "json", "npy"};

static inline gf_sample_sink *open_sink(const char *path, const char *format,
                                        const gf_sample_layout *layout) {
    gf_sample_sink *sink;
    assert_ok(gf_sample_sink_open(path, &(gf_file_options){.sample_format = format}, layout, &sink,
                                  &why));
    return sink;
}

static inline void put(gf_sample_sink *sink, uint32_t bin, const uint64_t *positions,
                       const void *values, uint64_t count) {

    assert_ok(gf_sample_sink_write(sink, bin, positions, values, count, &why));
}

static inline void finish(gf_sample_sink *sink) {
    assert_ok(gf_sample_sink_finish(sink, &why));
    assert_ok(gf_output_commit(gf_sample_sink_output(sink), &why));
    gf_sample_sink_close(sink);
}

/* Write the samples of the pixels 0, 2, 3 and 7, with three pixels per row. */
static inline gf_status write_grey8(gf_sample_sink *sink, gf_error *error) {
    return gf_sample_sink_write(sink, 0, (const uint64_t[]){0, 2, 3, 7}, "\x00\x09\x0a\xff", 4,
                                error);
}

static inline void put_grey8(gf_sample_sink *sink) {
    assert_ok(write_grey8(sink, &why));
}

enum { MANY = 50000 };

/* Bin, position and value of sample i of many: the bins increase, the positions are scattered. */
static inline uint32_t many_bin(uint32_t i) {
    return i / 1000;
}

static inline uint64_t many_position(uint32_t i) {
    return UINT64_C(123456789) * i;
}

static inline uint16_t many_value(uint32_t i) {
    return (uint16_t)(i * 40503u);
}

/* Write many samples of rgb16 in calls of random sizes. */
static inline gf_status write_many(gf_sample_sink *sink, gf_error *error) {
    uint64_t positions[1000];
    uint16_t values[1000];
    uint32_t seed = 3;
    gf_status status = GF_OK;
    for (uint32_t i = 0, n; i < MANY && status == GF_OK; i += n) {
        const uint32_t rest = 1000 - i % 1000;
        n = 1 + next_random(&seed) % 400;
        n = n < rest ? n : rest;
        for (uint32_t k = 0; k < n; k++) {
            positions[k] = many_position(i + k);
            values[k] = many_value(i + k);
        }
        status = gf_sample_sink_write(sink, many_bin(i), positions, values, n, error);
    }
    return status;
}

static inline void put_many(gf_sample_sink *sink) {
    assert_ok(write_many(sink, &why));
}

#endif
