/* Two images as one source: layout of their rows, rejected pairs and errors. */
#include "io_util.h"

#include "core/error.h"

enum { WIDTH = 5, HEIGHT = 7 };

/* Source that fails on request and counts the calls. */
typedef struct fake_source {
    gf_source base;
    bool fail_read, fail_finish;
    int reads, finishes, closes;
} fake_source;

static gf_status fake_read(gf_source *base, void *dst, size_t stride, uint64_t rows,
                           gf_error *error) {
    fake_source *fake = (fake_source *)base;

    fake->reads++;
    if (fake->fail_read)
        return gf_fail(error, GF_FAILED, "fake: cannot read");
    for (uint64_t i = 0; i < rows; i++)
        memset((unsigned char *)dst + i * stride, 7, gf_row_bytes(&base->format));
    return GF_OK;
}

static gf_status fake_finish(gf_source *base, gf_error *error) {
    fake_source *fake = (fake_source *)base;
    fake->finishes++;
    return fake->fail_finish ? gf_fail(error, GF_FAILED, "fake: cannot finish") : GF_OK;
}

static void fake_close(gf_source *base) {
    ((fake_source *)base)->closes++;
}

static fake_source new_fake(gf_format format) {
    static const gf_source_ops ops = {
        .read = fake_read, .finish = fake_finish, .close = fake_close};
    fake_source fake = {.base = {.ops = &ops, .format = format, .cost = 1.5}};
    fake.base.metadata = (gf_metadata){0};
    return fake;
}

static gf_source *new_memory(const gf_format *format, const void *pixels) {
    gf_source *source = NULL;
    gf_error error = {0};
    assert_int_equal(gf_memory_source(format, pixels, gf_row_bytes(format), &source, &error),
                     GF_OK);
    return source;
}

static gf_source *new_pair(gf_source *a, gf_source *b) {
    gf_source *pair = NULL;
    gf_error error = {0};
    assert_int_equal(gf_pair_source(a, b, "a.png", "b.png", &pair, &error), GF_OK);
    return pair;
}

TEST(interleaves_the_rows) {
    static const gf_type types[] = {GF_U8, GF_U16, GF_F32};
    for (uint32_t channels = 1; channels <= 4; channels++) {
        for (size_t t = 0; t < 3; t++) {
            const gf_format format = {WIDTH, HEIGHT, channels, types[t], channels % 2 == 0};
            const size_t row = gf_row_bytes(&format), half = row + MARGIN, stride = 2 * half;
            unsigned char *a = random_pixels(&format, 1), *b = random_pixels(&format, 2);
            gf_source *pair = new_pair(new_memory(&format, a), new_memory(&format, b));
            unsigned char *rows = malloc(stride * HEIGHT);
            gf_error error = {0};
            assert_non_null(rows);
            assert_true(gf_format_equal(&pair->format, &format));
            memset(rows, PAINT, stride * HEIGHT);
            /* Read 7 rows as 1 + 4 + 2. */
            assert_int_equal(pair->ops->read(pair, rows, stride, 1, &error), GF_OK);
            assert_int_equal(pair->ops->read(pair, rows + stride, stride, 4, &error), GF_OK);
            assert_int_equal(pair->ops->read(pair, rows + 5 * stride, stride, 2, &error), GF_OK);
            assert_int_equal(pair->ops->finish(pair, &error), GF_OK);
            pair->ops->close(pair);
            for (size_t y = 0; y < HEIGHT; y++) {
                assert_memory_equal(rows + y * stride, a + y * row, row);
                assert_memory_equal(rows + y * stride + half, b + y * row, row);
                for (size_t i = row; i < half; i++) {
                    assert_int_equal(rows[y * stride + i], PAINT);
                    assert_int_equal(rows[y * stride + half + i], PAINT);
                }
            }
            free(rows);
            free(a);
            free(b);
        }
    }
}

static void assert_differ(gf_format a_format, gf_format b_format, const char *message) {
    fake_source a = new_fake(a_format), b = new_fake(b_format);
    gf_source *pair = &a.base;
    gf_error error = {0};
    assert_int_equal(gf_pair_source(&a.base, &b.base, "a.png", "b.png", &pair, &error), GF_FAILED);
    assert_null(pair);
    assert_int_equal(error.status, GF_FAILED);
    assert_string_equal(error.message, message);
    /* The caller still owns the sources. */
    assert_int_equal(a.closes + b.closes, 0);
}

TEST(rejects_different_formats) {
    const gf_format format = {768, 512, 3, GF_U8, false};
    assert_differ(format, (gf_format){767, 512, 3, GF_U8, false},
                  "b.png: is 767x512 RGB u8, but a.png is 768x512 RGB u8; "
                  "both must have the same size, channels and type");
    assert_differ(format, (gf_format){768, 513, 3, GF_U8, false},
                  "b.png: is 768x513 RGB u8, but a.png is 768x512 RGB u8; "
                  "both must have the same size, channels and type");
    assert_differ(format, (gf_format){768, 512, 4, GF_U8, true},
                  "b.png: is 768x512 RGBA u8, but a.png is 768x512 RGB u8; "
                  "both must have the same size, channels and type");
    assert_differ((gf_format){1, 1, 1, GF_U16, false}, (gf_format){1, 1, 2, GF_F32, true},
                  "b.png: is 1x1 grey+alpha f32, but a.png is 1x1 grey u16; "
                  "both must have the same size, channels and type");
}

TEST(calls_both_sources) {
    const gf_format format = {WIDTH, HEIGHT, 1, GF_U8, false};
    fake_source a = new_fake(format), b = new_fake(format);
    gf_source *pair = new_pair(&a.base, &b.base);
    unsigned char rows[2 * WIDTH * HEIGHT];
    gf_error error = {0};
    assert_true(pair->cost == 3.0);
    assert_int_equal(pair->ops->read(pair, rows, 2 * WIDTH, HEIGHT, &error), GF_OK);
    assert_int_equal(pair->ops->finish(pair, &error), GF_OK);
    pair->ops->close(pair);
    assert_int_equal(a.reads, 1);
    assert_int_equal(b.reads, 1);
    assert_int_equal(a.finishes, 1);
    assert_int_equal(b.finishes, 1);
    assert_int_equal(a.closes, 1);
    assert_int_equal(b.closes, 1);
}

/* An error of either source is an error of the pair. After it, the other source is not called. */
TEST(returns_the_errors_of_both) {
    const gf_format format = {WIDTH, HEIGHT, 1, GF_U8, false};
    for (int half = 0; half < 2; half++) {
        fake_source fakes[2] = {new_fake(format), new_fake(format)};
        gf_source *pair = new_pair(&fakes[0].base, &fakes[1].base);
        unsigned char rows[2 * WIDTH * HEIGHT];
        gf_error error = {0};
        fakes[half].fail_read = fakes[half].fail_finish = true;
        assert_int_equal(pair->ops->read(pair, rows, 2 * WIDTH, HEIGHT, &error), GF_FAILED);
        assert_string_equal(error.message, "fake: cannot read");
        assert_int_equal(fakes[1].reads, half);
        error = (gf_error){0};
        assert_int_equal(pair->ops->finish(pair, &error), GF_FAILED);
        assert_string_equal(error.message, "fake: cannot finish");
        assert_int_equal(fakes[1].finishes, half);
        pair->ops->close(pair);
        assert_int_equal(fakes[0].closes, 1);
        assert_int_equal(fakes[1].closes, 1);
    }
}

int main(void) {
    return test_main(NULL);
}
