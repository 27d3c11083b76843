/* Shared by the tests of outputs: replaced system calls; functions that open and commit outputs. */
#ifndef OUTPUT_UTIL_H
#define OUTPUT_UTIL_H

#include "output_calls.h"

#include "io_util.h"
#include "pipe.h"

#include "io/file/output.h"

/* ---- outputs by name ------------------------------------------------------------------------- */

static bool named; /* no unnamed files */

static inline int begin(void **state) {
    calls_reset();
    calls_setup.named = named;
    return 0;
}

static inline int end(void **state) {
    calls_reset();
    return empty_directory(state);
}

/* Run the tests of a program with unnamed files, then with temporary names. */
static inline int test_main_of_outputs(void) {
    test_fixture fixture = {make_directory, remove_directory, begin, end, "unnamed files"};
    const int failed = test_main(&fixture);
    named = true;
    fixture.name = "temporary names";
    return failed + test_main(&fixture);
}

static inline gf_output *open_as(const char *name, bool force, gf_sync sync) {
    gf_output *output;
    const gf_file_options options = {.force = force, .sync = sync};
    assert_ok(gf_output_open(in_directory(name), &options, false, &output, &why));
    return output;
}

/* Return a complete output that contains its own name. */
static inline gf_output *complete(const char *name, bool force) {
    gf_output *output = open_as(name, force, GF_SYNC_NEVER);
    assert_ok(gf_output_write(output, name, strlen(name), &why));
    assert_ok(gf_output_prepare(output, &why));
    return output;
}

static inline void close_all(gf_output **outputs, size_t count) {
    for (size_t i = 0; i < count; i++)
        gf_output_close(outputs[i]);
}

static inline void put_old(const char *name) {
    put_bytes(in_directory(name), "old", 3);
}

static inline ino_t inode_of(const char *name) {
    struct stat info;
    assert_int_equal(lstat(in_directory(name), &info), 0);
    return info.st_ino;
}

/* ---- outputs by path ------------------------------------------------------------------------- */

static inline gf_output *open_output(const char *path, bool force) {
    gf_output *output;
    assert_ok(gf_output_open(path, &(gf_file_options){.force = force}, false, &output, &why));
    return output;
}

static inline void put_output(gf_output *output, const char *text) {
    assert_ok(gf_output_write(output, text, strlen(text), &why));
}

static inline void commit(gf_output *output) {
    assert_ok(gf_output_prepare(output, &why));
    assert_ok(gf_output_commit(output, &why));
    gf_output_close(output);
}

static inline void assert_no_output(const char *path, bool force, gf_status status,
                                    const char *part) {
    gf_output *output;
    assert_int_equal(gf_output_open(path, &(gf_file_options){.force = force}, false, &output, &why),
                     status);
    assert_null(output);
    assert_message(&why, part);
}

#endif
