/* GIF: the codes of a frame decode as with stb_image, which is an independent decoder and is
 * compiled here; frames, their disposal, and codes that stb_image does not read. */
#include "io/stb/raster.h"
#include "small_files.h"
#include "testing.h"

/* Not restored below: this warning is reported at the end of the file. */
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wimplicit-fallthrough"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wpedantic"
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_STDIO
#define STBI_ONLY_GIF
#define STBI_ASSERT(condition) ((void)0)
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

enum { MAX = 1 << 15, SIDE = 16 };

static unsigned char gif[MAX];
static size_t size;
static uint64_t read_files, cut_off, damaged;

static void put(const void *data, size_t n) {
    assert_true(size + n <= MAX);
    memcpy(gif + size, data, n);
    size += n;
}

/* Compare with stb_image. It returns RGBA, and accepts frames whose pixels are missing. */
static void compare(const char *what, uint64_t n) {
    gf_raster raster;
    AUTO(free) unsigned char *pixels;
    int width, height, found;
    const gf_raster_outcome outcome = small_read(&raster, gif, size, 1, &pixels);
    unsigned char *wanted = stbi_load_from_memory(gif, (int)size, &width, &height, &found, 4);
    const uint32_t channels = raster.format.channels;
    read_files += outcome == GF_RASTER_READ;
    cut_off += outcome == GF_RASTER_TRUNCATED;
    damaged += outcome == GF_RASTER_DAMAGED;
    if (outcome == GF_RASTER_READ && wanted)
        for (size_t i = 0; i < (size_t)SIDE * SIDE; i++)
            if (memcmp(pixels + i * channels, wanted + 4 * i, channels) != 0)
                fail_msg("%s %u: pixel %zu differs", what, (unsigned)n, i);
    if (outcome == GF_RASTER_READ && !wanted &&
        strcmp(stbi_failure_reason(), "no clear code") != 0 &&
        strcmp(stbi_failure_reason(), "too many codes") != 0 && !raster.damaged)
        fail_msg("%s %u: stb: %s", what, (unsigned)n, stbi_failure_reason());
    if (outcome == GF_RASTER_DAMAGED && wanted && strstr(raster.reason, "missing") == NULL &&
        strstr(raster.reason, "code size") == NULL)
        fail_msg("%s %u: %s", what, (unsigned)n, raster.reason);
    stbi_image_free(wanted);
}

/* Start a file. Bits of tables: 1 the global colour table, 2 the frame's colour table. */
static void put_head(unsigned tables) {
    static const unsigned char table[24] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    size = 0;
    put("GIF89a\x10\0\x10\0", 10);
    put((const unsigned char[3]){(tables & 1) != 0 ? 0x82 : 2, 0, 0}, 3);
    put(table, (tables & 1) != 0 ? sizeof table : 0);
    put(",\0\0\0\0\x10\0\x10\0", 9);
    put(&(unsigned char){(tables & 2) != 0 ? 0x82 : 2}, 1);
    put(table, (tables & 2) != 0 ? sizeof table : 0);
}

/* Writer of codes, lowest bit first, in blocks of 255 bytes. The width of a code depends on the
 * number of codes before it. */
typedef struct writer {
    unsigned literal, width, next, bits, held;
    bool follows;
    unsigned char block[256];
} writer;

static void end_block(writer *w) {
    if (w->block[0] > 0)
        put(w->block, 1 + (size_t)w->block[0]);
    w->block[0] = 0;
}

static void put_byte(writer *w) {
    w->block[++w->block[0]] = (unsigned char)w->bits;
    w->bits >>= 8;
    w->held -= w->held < 8 ? w->held : 8;
    if (w->block[0] == 255)
        end_block(w);
}

static void put_code(writer *w, unsigned code) {
    const unsigned clear = 1U << w->literal;
    w->bits |= code << w->held;
    for (w->held += w->width; w->held >= 8;)
        put_byte(w);
    if (code == clear) {
        w->width = w->literal + 1;
        w->next = clear + 2;
        w->follows = false;
        return;
    }
    w->next += w->follows;
    w->follows = true;
    if (w->next == 1U << w->width && w->width < 12)
        w->width++;
}

static void begin_codes(writer *w, unsigned literal) {
    *w = (writer){.literal = literal, .width = literal + 1};
    put(&(unsigned char){(unsigned char)literal}, 1);
}

static void end_codes(writer *w) {
    if (w->held > 0)
        put_byte(w);
    end_block(w);
    put("\0;", 2);
}

/* Compare the results for valid codes. Some files contain one random code. Codes of many pixels
 * fill the frame. */
TEST(agrees_with_stb_on_codes) {
    test_random random = {1};
    for (uint64_t n = 0; n < 40000; n++) {
        writer w;
        const unsigned literal = (unsigned)test_below(&random, n % 8 == 0 ? 12 : 5),
                       clear = 1U << literal;
        const unsigned codes = (unsigned)test_below(&random, n % 16 == 0 ? 900 : 40);
        const unsigned wrong = (unsigned)test_below(&random, 2 * codes + 2);
        put_head((unsigned)test_below(&random, 50) != 0 ? 1 + (unsigned)test_below(&random, 3) : 0);
        begin_codes(&w, literal);
        if (wrong != 0)
            put_code(&w, clear);
        for (unsigned i = 1; i < codes; i++) {
            const unsigned limit = w.next > clear + 2 || w.follows ? w.next + w.follows : clear;
            unsigned code = (unsigned)test_below(&random, limit);
            if (n % 2 == 0 && w.follows && w.next > clear + 3)
                code = w.next - (unsigned)test_below(&random, 2);
            if (i == wrong)
                code = (unsigned)test_below(&random, 1U << w.width);
            if (code == clear + 1 && i != wrong)
                code = clear;
            put_code(&w, code);
        }
        if (n % 3 != 0)
            put_code(&w, clear + 1);
        end_codes(&w);
        compare("codes", n);
        if (n % 10 == 0) {
            size = (size_t)test_below(&random, size);
            if (size >= 19) /* shorter files are rejected before */
                compare("cut off", n);
        }
    }
}

TEST(agrees_with_stb_on_random_bytes) {
    test_random random = {2};
    for (uint64_t n = 0; n < 100000; n++) {
        put_head(1 + (unsigned)test_below(&random, 3));
        put(&(unsigned char){(unsigned char)test_below(&random, n % 20 == 0 ? 10 : 4)}, 1);
        const unsigned char bytes = (unsigned char)(1 + test_below(&random, n % 4 == 0 ? 40 : 6));
        put(&bytes, 1);
        for (unsigned i = 0; i < bytes; i++)
            put(&(unsigned char){(unsigned char)(i == 0 ? 4 : test_below(&random, 256))}, 1);
        put("\0;", 2);
        compare("bytes", n);
    }
    assert_true(read_files > 2000 && damaged > 10000 && cut_off > 100);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void check_pixel(const gf_raster *raster, const unsigned char *pixels, unsigned x,
                        unsigned y, unsigned index) {
    const unsigned char *pixel =
        pixels + ((size_t)y * raster->format.width + x) * raster->format.channels;
    const unsigned wanted[4] = {index, 255 - index, 7 * index & 255, 255};
    for (uint32_t c = 0; c < raster->format.channels; c++)
        if (pixel[c] != (index ? wanted[c] : 0))
            fail_msg("pixel %u, %u, channel %u: %u, not of colour %u", x, y, (unsigned)c, pixel[c],
                     index);
}

/* The table stays full without a clear code; the first clear code may be missing. */
TEST(reads_codes_without_clear_codes) {
    enum { WIDTH = 160, HEIGHT = 170 };
    static unsigned char indices[WIDTH * HEIGHT];
    test_random random = {5};
    for (size_t i = 0; i < sizeof indices; i++)
        indices[i] = (unsigned char)(1 + test_below(&random, 255));
    for (int how = 0; how < 8; how++) {
        const gif_frame frame = {.width = WIDTH,
                                 .height = HEIGHT,
                                 .indices = indices,
                                 .deferred = how & 1,
                                 .no_clear = how & 2,
                                 .interlaced = how & 4};
        AUTO(free) small_file file = gif_begin(WIDTH, HEIGHT, 8, 0);
        gf_raster raster;
        AUTO(free) unsigned char *pixels;
        gif_add(&file, 8, &frame);
        gif_end(&file);
        if (small_read(&raster, file.data, file.size, 1, &pixels) != GF_RASTER_READ)
            fail_msg("%d: %s", how, raster.reason);
        assert_int_equal(raster.damaged, 0);
        assert_int_equal(raster.format.channels, 3);
        for (unsigned i = 0; i < sizeof indices; i++)
            check_pixel(&raster, pixels, i % WIDTH, i / WIDTH, indices[i]);
    }
}

/* Pixels that no frame covers are transparent, whatever the index of the background is. A first
 * frame that exceeds the canvas enlarges it. */
TEST(places_the_first_frame) {
    static const unsigned char indices[6] = {1, 2, 3, 1, 2, 3};
    static const struct {
        unsigned x, y, width, height, canvas_width, canvas_height;
    } cases[] = {{0, 0, 3, 2, 3, 2}, {1, 0, 3, 2, 4, 2}, {0, 1, 3, 2, 3, 3}, {2, 1, 3, 2, 6, 7},
                 {0, 0, 3, 2, 2, 1}, {4, 5, 3, 2, 6, 7}, {9, 9, 3, 2, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (unsigned background = 0; background < 3; background++) {
            const unsigned x0 = cases[i].x, y0 = cases[i].y;
            const uint64_t right = x0 + 3, bottom = y0 + 2;
            small_file file =
                gif_begin(cases[i].canvas_width, cases[i].canvas_height, 2, background);
            gf_raster raster;
            AUTO(free) unsigned char *pixels;
            gif_add(&file, 2,
                    &(gif_frame){.x = x0, .y = y0, .width = 3, .height = 2, .indices = indices});
            gif_end(&file);
            assert_int_equal(small_read(&raster, file.data, file.size, 1, &pixels), GF_RASTER_READ);
            assert_int_equal(raster.format.width,
                             right > cases[i].canvas_width ? right : cases[i].canvas_width);
            assert_int_equal(raster.format.height,
                             bottom > cases[i].canvas_height ? bottom : cases[i].canvas_height);
            assert_int_equal(raster.format.channels,
                             raster.format.width * raster.format.height == 6 ? 3 : 4);
            for (unsigned y = 0; y < raster.format.height; y++)
                for (unsigned x = 0; x < raster.format.width; x++)
                    check_pixel(&raster, pixels, x, y,
                                x >= x0 && x < right && y >= y0 && y < bottom
                                    ? indices[(y - y0) * 3 + x - x0]
                                    : 0);
            free(file.data);
        }
}

/* Read every frame of files whose frames are drawn here, too, one after the other. */
TEST(composes_frames) {
    enum { FRAMES = 6 };
    test_random random = {7};
    for (int n = 0; n < 500; n++) {
        unsigned char canvas[SIDE * SIDE] = {0}, before[SIDE * SIDE], shown[FRAMES][SIDE * SIDE];
        AUTO(free) small_file file = gif_begin(SIDE, SIDE, 3, 1);
        for (int f = 0; f < FRAMES; f++) {
            unsigned char indices[SIDE * SIDE];
            /* Later frames may exceed the canvas. */
            gif_frame frame = {.x = (unsigned)test_below(&random, (unsigned)(SIDE + f)),
                               .y = (unsigned)test_below(&random, (unsigned)(SIDE + f)),
                               .width = (unsigned)test_below(&random, SIDE + 1),
                               .height = (unsigned)test_below(&random, SIDE + 1),
                               .indices = indices,
                               .transparent = true,
                               .interlaced = test_below(&random, 2),
                               .disposal = (unsigned)test_below(&random, 5)};
            if (f == 0)
                frame.x = frame.y = 0;
            memcpy(before, canvas, sizeof before);
            for (size_t i = 0; i < sizeof indices; i++)
                indices[i] = (unsigned char)test_below(&random, 8);
            for (unsigned i = 0; i < frame.width * frame.height; i++) {
                const unsigned x = frame.x + i % frame.width, y = frame.y + i / frame.width;
                if (x < SIDE && y < SIDE && indices[i])
                    canvas[y * SIDE + x] = indices[i];
            }
            memcpy(shown[f], canvas, sizeof canvas);
            if (frame.disposal == 3)
                memcpy(canvas, before, sizeof canvas);
            for (unsigned i = 0; i < frame.width * frame.height && frame.disposal == 2; i++) {
                const unsigned x = frame.x + i % frame.width, y = frame.y + i / frame.width;
                if (x < SIDE && y < SIDE)
                    canvas[y * SIDE + x] = 0;
            }
            gif_add(&file, 3, &frame);
        }
        gif_end(&file);
        for (uint32_t page = 1; page <= FRAMES + 1; page++) {
            gf_raster raster;
            AUTO(free) unsigned char *pixels;
            const gf_raster_outcome outcome =
                small_read(&raster, file.data, file.size, page, &pixels);
            assert_int_equal(outcome, page > FRAMES ? GF_RASTER_NO_PAGE : GF_RASTER_READ);
            assert_int_equal(raster.pages, FRAMES);
            for (unsigned i = 0; i < SIDE * SIDE && page <= FRAMES; i++)
                check_pixel(&raster, pixels, i % SIDE, i / SIDE, shown[page - 1][i]);
        }
    }
}

/* A frame with fewer pixels than its size fails; codes for more pixels are damage. */
TEST(counts_the_pixels_of_a_frame) {
    unsigned char indices[SIDE * SIDE];
    for (size_t i = 0; i < sizeof indices; i++)
        indices[i] = (unsigned char)(i / 5 % 4);
    for (size_t missing = 0; missing < 20; missing++) {
        AUTO(free) small_file file = gif_begin(SIDE, SIDE, 2, 0);
        gf_raster raster;
        unsigned char *pixels;
        const size_t head = file.size;
        gif_add(&file, 2,
                &(gif_frame){.width = SIDE, .height = SIDE, .indices = indices, .cut = missing});
        gif_end(&file);
        assert_int_equal(small_read(&raster, file.data, file.size, 1, &pixels),
                         missing ? GF_RASTER_DAMAGED : GF_RASTER_READ);
        free(pixels);
        file.data[head + 8 + 7]--; /* the height of the frame: 16 pixels fewer */
        assert_int_equal(small_read(&raster, file.data, file.size, 1, &pixels),
                         missing > SIDE ? GF_RASTER_DAMAGED : GF_RASTER_READ);
        assert_int_equal(raster.damaged > 0, missing < SIDE);
        free(pixels);
    }
}

int main(void) {
    return test_main(NULL);
}
