/* Images for tests: random content, painted margins, and a comparison that says where it failed. */
#ifndef TESTING_H
#define TESTING_H

#include "filter.h"

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
/* Are all margins as they were painted? */
bool test_margins_intact(const test_image *image);

typedef enum test_content {
    TEST_UNIFORM,  /* every value alike */
    TEST_EXTREMES, /* 0, 1, max - 1, max; f32: NaN, infinities, -0, subnormals, huge and ordinary */
    TEST_SMOOTH,   /* a slow wave: sums near rounding boundaries, as in photographs */
    TEST_CONTENT_COUNT
} test_content;
void test_fill(const test_image *image, test_content content, test_random *random);

/* Compares to the bit; on a difference prints `what` and the first (x, y, channel) with both
 * values, leaves a difference picture in $TMPDIR, and returns false. */
bool test_same(const test_image *golden, const test_image *other, const char *what);

/* Sizes around every vector, warp, tile and band edge. */
uint64_t test_width(test_random *random);
uint64_t test_height(test_random *random);
gf_format test_format(test_random *random);

/* Settings of a filter's case; fails the test if it does not parse. */
gf_settings *test_settings(const gf_filter *filter, const char *text);

/* A band from the middle of an image, to be computed by a backend's own function in painted memory.
 */
typedef struct test_band {
    const gf_filter *filter;
    const char *text; /* its case */
    uint64_t seed;
    gf_settings *settings;
    gf_plan *plan;
    test_image in, want, got; /* want is golden's; got is painted */
    gf_rows from;             /* of in: the band and exactly its halo */
    gf_rows out;              /* of got: the rows to compute */
} test_band;

/* whole: all rows. row_align: rows begin on multiples of that many bytes; 0: wherever they end up.
 */
test_band test_band_new(const gf_filter *filter, const char *text, uint64_t seed, gf_format format,
                        bool whole, size_t row_align);
/* Fails the test if the band differs from golden, or if anything but the band was written. */
void test_band_check(const test_band *band, const char *who);
/* Paints got again, so that another implementation can be checked. */
void test_band_repaint(test_band *band);
void test_band_free(test_band *band);

/* Is there a CUDA device to test on? Says so once if not; fails under GF_REQUIRE_CUDA. */
bool test_has_cuda(void);

#endif
