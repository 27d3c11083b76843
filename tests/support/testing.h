/* Images for tests: random content, painted margins, and a comparison that says where it failed. */
#ifndef TESTING_H
#define TESTING_H

#include "core/filter.h"

/* xorshift64*: the same numbers everywhere. */
typedef struct test_random {
    uint64_t state;
} test_random;

uint64_t test_next(test_random *random);
/* Uniform in [0, n). */
uint64_t test_below(test_random *random, uint64_t n);
/* From the environment, or the default: so that a failure can be run again, or the test run longer.
 */
uint64_t test_environment(const char *name, uint64_t fallback);

/* Return "check", "test" or "long": the tier that tests/run runs; by default "test". */
const char *test_tier(void);
/* Return how many random rounds to run: $GF_TEST_ROUNDS, or count, a sixth of it in the tier check,
 * eight times as many in the tier long. */
uint64_t test_rounds(uint64_t count);

/* An image whose rows lie in painted memory: before, after and between them. */
typedef struct test_image {
    gf_format format;
    size_t stride;
    unsigned char *memory;
    size_t size;
    gf_rows rows; /* all of them */
} test_image;

/* padding: painted bytes between rows, kept at whole samples. Fails the test if out of memory. */
test_image test_image_new(gf_format format, size_t padding);
void test_image_free(test_image *image);
#define TEST_PAINT 0xa5
#define TEST_MARGIN 256
/* Are bytes [from, to) as they were painted? */
bool test_painted(const unsigned char *from, const unsigned char *to);
/* Are all margins as they were painted? */
bool test_margins_intact(const test_image *image);

typedef enum test_content {
    TEST_UNIFORM,  /* every value alike */
    TEST_EXTREMES, /* 0, 1, max - 1, max; f32: NaN, infinities, -0, subnormals, huge and ordinary */
    TEST_FLAT,     /* one value everywhere */
    TEST_SMOOTH,   /* a slow wave: sums near rounding boundaries, as in photographs */
    TEST_CONTENT_COUNT
} test_content;
void test_fill(const test_image *image, test_content content, test_random *random);
/* Into a file, in the format that its name says; one that is there is replaced. */
void test_put(const char *path, const test_image *image);
/* Changes a few samples, perhaps none. */
void test_disturb(const test_image *image, test_random *random);

/* Compares to the bit; on a difference prints `what` and the first (x, y, channel) with both
 * values, leaves a difference picture in $TMPDIR, and returns false. */
bool test_same(const test_image *golden, const test_image *other, const char *what);

/* Compares tables, text and verdict to the bit; on a difference prints `what` and the first cell.
 */
bool test_same_result(const gf_result *golden, const gf_result *other, const char *what);

/* Sizes around every vector, warp, tile and strip edge. */
uint64_t test_width(test_random *random);
uint64_t test_height(test_random *random);
gf_format test_format(test_random *random);

/* Case i of a filter: first its own, then what only tests need, at the limits of the fast ways;
 * NULL after the last one. */
const char *test_case(const gf_filter *filter, size_t i);

/* Settings of a filter's case; fails the test if it does not parse. */
gf_settings *test_settings(const gf_filter *filter, const char *text);

/* Is there a CUDA device to test on? Says why once if not; fails under GF_REQUIRE_CUDA. */
bool test_has_cuda(void);

/* End the test here, and say why it cannot be run. */
#define test_skip(why) (print_message("SKIP 1: %s\n", why), skip())
/* Skip the test where there is no CUDA device. */
void test_needs_gpu(void);

#endif
