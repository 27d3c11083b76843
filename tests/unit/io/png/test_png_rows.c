/* Probes of a PNG strip before its compression, and the choice of row filters. */

#include "io/png/png.h"
#include "testing.h"

typedef struct picture {
    gf_png_strips strips;
    gf_png_strip strip;
    unsigned char *memory, *scratch;
} picture;

/* Make a strip of grey rows. In one of `every` rows, `margin` bytes of one value precede noise; the
 * other rows have one value. */
static picture draw(uint64_t width, size_t margin, uint64_t every, test_random *random) {
    const gf_format format = {width, 100000, 1, GF_U8, false};
    picture p;
    gf_png_strips_init(&format, GF_PNG_FAST, GF_ISA_PORTABLE, &p.strips);
    const size_t stride = p.strips.row_stride;
    p.memory = calloc(p.strips.rows + 2, stride);
    p.scratch = malloc(p.strips.rows * p.strips.row_bytes);
    assert_true(p.memory && p.scratch);
    p.strip = (gf_png_strip){.rows = p.memory + GF_PNG_PAD, .count = p.strips.rows};
    for (uint64_t y = 1; y <= p.strip.count; y++)
        for (size_t x = 0; x < width; x++)
            p.memory[GF_PNG_PAD + y * stride + x] =
                (unsigned char)(x < margin || y % every ? 99 : test_next(random));
    return p;
}

static void close_picture(picture *p) {
    free(p->memory);
    free(p->scratch);
}

/* Check that a margin counts with its share of the row, for any width. */
TEST(probes_cover_all_columns) {
    test_random random = {83};
    for (size_t pieces = 2; pieces <= 36; pieces++) {
        picture p = draw(1024 * pieces, 1024, 1, &random);
        gf_png_probe probe;
        gf_png_probe_strip(&p.strips, &p.strip, p.scratch, &probe);
        close_picture(&p);
        const uint64_t share = probe.total / pieces;
        assert_in_range(probe.total, p.strips.rows * 64 * pieces - 1024,
                        p.strips.rows * 64 * pieces + 1024);
        assert_in_range(probe.flat + probe.repeated, share < 1200 ? 0 : share - 1200, share + 1200);
        for (unsigned f = 0; f < GF_PNG_FILTERS; f++)
            assert_in_range(probe.cost[f], (probe.total - share - 1200) / 8 * 7, probe.total);
    }
}

TEST(probes_cover_all_rows) {
    test_random random = {84};
    for (size_t pieces = 1; pieces <= 8; pieces++)
        for (uint64_t every = 2; every <= 16; every *= 2) {
            picture p = draw(1024 * pieces, 0, every, &random);
            gf_png_probe probe;
            gf_png_probe_strip(&p.strips, &p.strip, p.scratch, &probe);
            close_picture(&p);
            const uint64_t flat = probe.total - probe.total / every;
            assert_in_range(probe.flat + probe.repeated, flat - flat / 3, flat + flat / 3);
        }
}

/* If two filters have equal cost, the first is chosen because it is undone faster. */
TEST(equal_costs_choose_the_first_filter) {
    const gf_format format = {700, 40, 3, GF_U8, false};
    gf_png_strips strips;
    gf_png_strips_init(&format, GF_PNG_SMALL, GF_ISA_PORTABLE, &strips);
    AUTO(free) unsigned char *memory = calloc(format.height + 2, strips.row_stride);
    AUTO(free) unsigned char *filtered = malloc((strips.row_bytes + 1) * (size_t)format.height);
    gf_png_scratch *scratch = gf_png_scratch_new(&strips);
    assert_true(memory && filtered && scratch);
    for (size_t y = 20; y < 40; y++)
        memset(memory + GF_PNG_PAD + (y + 1) * strips.row_stride, 9, strips.row_bytes);
    const gf_png_strip strip = {.rows = memory + GF_PNG_PAD, .count = format.height};
    gf_png_filter_rows(scratch, &strip, GF_PNG_ADAPTIVE, 0, (int64_t)format.height, filtered);
    for (size_t y = 0; y < 40; y++) {
        const unsigned wanted = y < 20 ? GF_PNG_NONE : y == 20 ? GF_PNG_SUB : GF_PNG_UP;
        assert_int_equal(filtered[y * (strips.row_bytes + 1)], wanted);
    }
    gf_png_scratch_free(scratch);
}

int main(void) {
    return test_main(NULL);
}
