/* Images for tests: random content, painted margins, and comparisons that print a difference. */
#ifndef TESTING_H
#define TESTING_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/filter.h"
#include "run.h"

/* Define a test and add it to the program's list. */
#define TEST(name)                                                                                 \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void add_##name(void) {                                    \
        test_add(#name, name, __LINE__);                                                           \
    }                                                                                              \
    static void name(void **state)
void test_add(const char *name, CMUnitTestFunction run, int line);

/* Functions that run around tests; NULL: none. They return 0, or fail. */
typedef struct test_fixture {
    CMFixtureFunction start, stop;   /* before the first test and after the last one */
    CMFixtureFunction before, after; /* of each test */
    const char *name;                /* of the list in the output; NULL: "tests" */
} test_fixture;
/* Run the tests in the order of their lines. Return the exit code of the program. */
int test_main(const test_fixture *fixture);

/* The error of the last call in this thread. assert_ok and assert_error clear it before theirs. */
extern _Thread_local gf_error why;
/* Check that a call succeeded. If not, print `why`. */
#define assert_ok(call) (why = (gf_error){0}, test_check_ok(call, __FILE__, __LINE__))
void test_check_ok(gf_status status, const char *file, int line);
/* Check that a call returned this status, and stored a message in `why` that contains `part`. */
#define assert_error(call, code, part)                                                             \
    (why = (gf_error){0}, assert_int_equal(call, code), assert_message(&why, part))
/* Check that an error has a message of one line, and that the line contains `part`. */
void assert_message(const gf_error *error, const char *part);

/* Allocate memory with malloc; test_zeros: filled with zeros. Fail the test if memory runs out. */
void *test_alloc(size_t size);
void *test_zeros(size_t size);

/* Free a local variable at the end of its block: AUTO(free) char *text = ...;. free: a pointer, or
 * a struct whose first member is the only pointer to free. A failed assertion leaves it. */
#define AUTO(kind) __attribute__((cleanup(test_auto_##kind)))
static inline void test_auto_free(void *variable) {
    void *memory;
    memcpy(&memory, variable, sizeof memory);
    free(memory);
}

static inline void test_auto_settings(gf_settings **settings) {
    gf_settings_free(*settings);
}

static inline void test_auto_engine(gf_engine **engine) {
    gf_engine_close(*engine);
}

static inline void test_auto_result(gf_result **result) {
    gf_result_free(*result);
}
#define test_auto_metadata gf_metadata_clear
#define test_auto_image test_image_free

/* Return the bytes of a file, allocated with malloc and followed by a zero byte. */
unsigned char *test_bytes(const char *path, size_t *size);

/* Random numbers by xorshift64*, equal on all machines. */
typedef struct test_random {
    uint64_t state;
} test_random;

/* Seed random numbers such that neighbouring seeds have unrelated sequences. */
test_random test_seeded(uint64_t seed);
uint64_t test_next(test_random *random);
/* Return a uniform number in [0, n). */
uint64_t test_below(test_random *random, uint64_t n);
/* Return a number from the environment, or the fallback. Used to repeat a failure or run longer. */
uint64_t test_environment(const char *name, uint64_t fallback);

/* Return the tier that tests/run runs: "check", "test" or "long"; default: "test". */
const char *test_tier(void);
/* Return the number of random rounds: $GF_TEST_ROUNDS, or `count` divided by 6 in the tier check,
 * by 2 in the tier test, and multiplied by 8 in the tier long. */
uint64_t test_rounds(uint64_t count);
/* Return the step through a sweep: `check` in the tier check, `test` in the tier test, 1 in the
 * tier long. */
uint64_t test_stride(uint64_t check, uint64_t test);

/* Image with painted memory before, after and between its rows. */
typedef struct test_image {
    gf_format format;
    size_t stride;
    unsigned char *memory;
    size_t size;
    gf_rows rows; /* all rows */
} test_image;

/* Make an image. padding: painted bytes between rows, rounded down to whole samples. Fail the test
 * if memory runs out. */
test_image test_image_new(gf_format format, size_t padding);
void test_image_free(test_image *image);
#define TEST_PAINT 0xa5
#define TEST_MARGIN 256
/* Return true if the bytes [from, to) are still paint. */
bool test_painted(const unsigned char *from, const unsigned char *to);
/* Return true if all margins are still paint. */
bool test_margins_intact(const test_image *image);

typedef enum test_content {
    TEST_UNIFORM,  /* uniformly distributed */
    TEST_EXTREMES, /* 0, 1, max - 1, max; f32: NaN, infinities, -0, subnormals, huge and ordinary */
    TEST_FLAT,     /* one value */
    TEST_SMOOTH,   /* a slow wave: sums near rounding boundaries, as in photographs */
    TEST_CONTENT_COUNT
} test_content;
void test_fill(const test_image *image, test_content content, test_random *random);
/* Write an image to a file in the format of its extension. Replace an existing file. */
void test_put(const char *path, const test_image *image);
/* Return the PNG that gf_save_file writes for an image. The caller frees it. */
unsigned char *test_png(const test_image *image, size_t *size);
/* Change 0 to 3 samples. */
void test_disturb(const test_image *image, test_random *random);

/* Compare bit by bit. On a difference, print `what` and the first (x, y, channel) with both values,
 * write a difference image to $TMPDIR, and return false. */
bool test_same(const test_image *golden, const test_image *other, const char *what);

/* Compare tables, text and verdict bit by bit. On a difference, print `what` and the first cell
 * that differs, and return false. */
bool test_same_result(const gf_result *golden, const gf_result *other, const char *what);

/* Return sizes around the edges of vectors, warps, tiles and strips. */
uint64_t test_width(test_random *random);
uint64_t test_height(test_random *random);
gf_format test_format(test_random *random);

/* Return case i of a filter: first its own cases, then cases for tests only, at the limits of the
 * fast implementations; NULL after the last one. */
const char *test_case(const gf_filter *filter, size_t i);

/* Return the settings of a filter's case. A case that does not parse fails the test. */
gf_settings *test_settings(const gf_filter *filter, const char *text);

/* Open an engine; an error fails the test. */
gf_engine *test_engine(const gf_engine_options *options);

/* Return true if there is a CUDA device. If not, print the reason once, or fail the test if
 * GF_REQUIRE_CUDA is set. */
bool test_has_cuda(void);

/* Skip the rest of the test and print the reason. */
#define test_skip(why) (print_message("SKIP 1: %s\n", why), skip())
/* Skip the test if there is no CUDA device. */
void test_needs_gpu(void);

#endif
