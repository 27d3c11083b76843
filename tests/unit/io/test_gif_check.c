/* gf_gif_check accepts exactly the files that stb_image decodes. */
#include "io/stb.h"
#include "io_util.h"
#include "testing.h"

enum { MAX = 1 << 15, ARENA = 1 << 20 };

static unsigned char gif[MAX], *arena_memory;
static size_t size;
static uint64_t fits, cut_off, damaged, bad_codes;

static void put(const void *data, size_t n) {
    assert_true(size + n <= MAX);
    memcpy(gif + size, data, n);
    size += n;
}

static bool decodes(void) {
    gf_arena arena;
    gf_stb_bytes bytes = {.data = gif, .size = size};
    int width, height, found;

    memset(arena_memory, 0, ARENA);
    gf_arena_init(&arena, arena_memory, ARENA);
    const bool got = gf_stb_load(&bytes, &arena, GF_U8, 4, &width, &height, &found) != NULL;
    gf_arena_end(&arena);
    assert_false(arena.exhausted);
    return got && !bytes.past_end;
}

static void compare(const char *what, uint64_t n) {
    const gf_stb_outcome state = gf_gif_check(gif, size);
    const bool agree = (state == GF_STB_DECODED) == decodes();

    fits += state == GF_STB_DECODED;
    cut_off += state == GF_STB_TRUNCATED;
    damaged += state == GF_STB_INVALID_HEADER;
    bad_codes += state == GF_STB_INVALID_CODES;
    if (!agree)
        fail_msg("%s %u: the check says %d, stb: %s", what, (unsigned)n, (int)state,
                 state == GF_STB_DECODED ? gf_stb_reason() : "an image");
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

/* Compare the results for valid codes. Some files contain one random code. */
static void agrees_with_stb_on_codes(void **state) {
    test_random random = {1};

    (void)state;
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
            memset(gif + size, 0xee, MAX - size);
            if (size >= 13) /* shorter files are rejected before the check */
                compare("cut off", n);
        }
    }
}

static void agrees_with_stb_on_random_bytes(void **state) {
    test_random random = {2};

    (void)state;
    for (uint64_t n = 0; n < 100000; n++) {
        put_head(1 + (unsigned)test_below(&random, 3));
        put(&(unsigned char){(unsigned char)test_below(&random, n % 20 == 0 ? 14 : 4)}, 1);
        const unsigned char bytes = (unsigned char)(1 + test_below(&random, n % 4 == 0 ? 40 : 6));
        put(&bytes, 1);
        for (unsigned i = 0; i < bytes; i++)
            put(&(unsigned char){(unsigned char)(i == 0 ? 4 : test_below(&random, 256))}, 1);
        put("\0;", 2);
        compare("bytes", n);
    }
    assert_true(fits > 10000 && bad_codes > 10000 && cut_off > 100 && damaged > 100);
}

/* Write more codes without a clear code than the table of stb holds. A literal size of 12 is the
 * largest that it accepts. */
static void agrees_with_stb_on_many_codes(void **state) {
    (void)state;
    for (unsigned literal = 10; literal <= 13; literal++)
        for (unsigned codes = 3900; codes < 8400; codes += literal == 12 ? 7 : 97) {
            writer w;
            put_head(1);
            begin_codes(&w, literal);
            put_code(&w, 1U << literal);
            for (unsigned i = 0; i < codes; i++)
                put_code(&w, i % 2);
            end_codes(&w);
            compare("many codes", codes);
        }
}

static int get_arena(void **state) {
    (void)state;
    arena_memory = calloc(1, ARENA);
    return arena_memory == NULL;
}

static int free_arena(void **state) {
    (void)state;
    free(arena_memory);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_stb_on_codes),
        cmocka_unit_test(agrees_with_stb_on_random_bytes),
        cmocka_unit_test(agrees_with_stb_on_many_codes),
    };

    return cmocka_run_group_tests(tests, get_arena, free_arena);
}
