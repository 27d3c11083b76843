/* What stb writes, and by hand what it only reads: PSD, GIF, a progressive JPEG, TGAs with palettes
 * and runs, BMPs of few bits. */
#include "seeds.h"

#include "../io_util.h"
#include "io/stb.h"

typedef struct growing {
    unsigned char bytes[1 << 16];
    size_t size;
} growing;

static void put(growing *to, const void *bytes, size_t size) {
    assert_true(to->size + size <= sizeof to->bytes);
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
}

static void on_write(void *context, void *data, int size) {
    put(context, data, (size_t)size);
}

static void put_written(gf_stb_kind kind, int width, int height, int channels) {
    static growing file;
    unsigned char scratch[4 * 64];
    float floats[64 * 64 * 4];
    unsigned char bytes[64 * 64 * 4];

    file.size = 0;
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)(i * i / 9 + i % 3 * 40);
        floats[i] = (float)bytes[i] * 0.25f;
    }
    if (!gf_stb_write(kind, on_write, &file, width, height, channels,
                      kind == GF_STB_HDR ? (const void *)floats : bytes, scratch))
        abort();
    seed_put("fuzz_stb", file.bytes, file.size);
}

/* Codes of nine bits: a clear code in front of each, so that they never grow. */
static void put_gif(int interlaced, int transparent) {
    enum { WIDTH = 5, HEIGHT = 9, CLEAR = 256, END = 257 };
    growing file = {.size = 0};
    unsigned char block[255] = {0};
    size_t bit = 0;

    put(&file, transparent ? "GIF89a" : "GIF87a", 6);
    put(&file, (const unsigned char[]){WIDTH, 0, HEIGHT, 0, 0xf7, 0, 0}, 7);
    for (int i = 0; i < 256; i++)
        put(&file, (const unsigned char[]){(unsigned char)i, (unsigned char)(3 * i), 7}, 3);
    if (transparent)
        put(&file, (const unsigned char[]){0x21, 0xf9, 4, 1, 0, 0, 3, 0}, 8);
    put(&file,
        (const unsigned char[]){',', 0, 0, 0, 0, WIDTH, 0, HEIGHT, 0, interlaced ? 0x40 : 0, 8},
        11);
    for (int i = 0; i <= 2 * WIDTH * HEIGHT; i++) {
        const unsigned code = i == 2 * WIDTH * HEIGHT ? END : i % 2 == 0 ? CLEAR : (unsigned)i % 7;
        for (int b = 0; b < 9; b++, bit++)
            block[bit / 8] |= (unsigned char)((code >> b & 1) << bit % 8);
    }
    const unsigned char size = (unsigned char)((bit + 7) / 8);
    put(&file, &size, 1);
    put(&file, block, size);
    put(&file, "\0;", 2);
    seed_put("fuzz_stb", file.bytes, file.size);
}

#define PUT(literal) seed_put("fuzz_stb", literal, sizeof(literal) - 1)

static void put_psds(void) {
    PUT("8BPS\0\1\0\0\0\0\0\0\0\3\0\0\0\2\0\0\0\2\0\x08\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
        "abcdefghijkl");
    PUT("8BPS\0\1\0\0\0\0\0\0\0\3\0\0\0\1\0\0\0\2\0\x10\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
        "abcdefghijkl");
    /* Packed: rows of a run and of literals, behind the sizes of all rows. */
    PUT("8BPS\0\1\0\0\0\0\0\0\0\3\0\0\0\1\0\0\0\4\0\x08\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\1"
        "\0\2\0\2\0\5\xfdx\xfdy\3abcd");
}

/* One block of grey: its mean, then nothing else, then a bit more of the mean. */
static void put_progressive_jpeg(void) {
    growing file = {.size = 0};
    unsigned char table[69] = {0xff, 0xdb, 0, 67, 0};

    put(&file, "\xff\xd8", 2);
    memset(table + 5, 1, 64); /* quantised by nothing */
    put(&file, table, sizeof table);
    put(&file, "\xff\xc2\0\x0b\x08\0\x08\0\x08\1\1\x11\0", 13);
    /* Codes of one bit: differences of no bits, ends of blocks. */
    put(&file, "\xff\xc4\0\x14\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);
    put(&file, "\xff\xc4\0\x14\x10\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);
    put(&file, "\xff\xda\0\x08\1\1\0\0\0\1\x7f", 11);
    put(&file, "\xff\xda\0\x08\1\1\0\1\x3f\1\x7f", 11);
    put(&file, "\xff\xda\0\x08\1\1\0\0\0\x10\xff\0", 12);
    put(&file, "\xff\xda\0\x08\1\1\0\1\x3f\x10\x7f", 11);
    put(&file, "\xff\xd9", 2);
    seed_put("fuzz_stb", file.bytes, file.size);
}

static void put_tgas_and_bmps(void) {
    /* A palette of two, runs of it; and true colours, packed, from the top. */
    PUT("\0\1\x09\0\0\2\0\x18\0\0\0\0\4\0\2\0\x08\0"
        "abcdef"
        "\x83\1\3\0\1\0\1");
    PUT("\0\1\1\0\0\2\0\x18\0\0\0\0\2\0\2\0\x08\x20"
        "abcdef"
        "\0\1\1\0");
    PUT("\0\0\x0a\0\0\0\0\0\0\0\0\0\3\0\2\0\x18\x20"
        "\x82"
        "abc"
        "\2"
        "defghijkl");
    PUT("\0\0\2\0\0\0\0\0\0\0\0\0\2\0\2\0\x10\0"
        "abcdefgh");
    PUT("\0\0\3\0\0\0\0\0\0\0\0\0\2\0\2\0\x08\0"
        "abcd");
    /* 1, 4, 8 and 16 bits a pixel; the old header. */
    PUT("BM\x42\0\0\0\0\0\0\0\x3e\0\0\0\x28\0\0\0\x0a\0\0\0\1\0\0\0\1\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0"
        "\0\0\0\0\2\0\0\0\0\0\0\0"
        "abc\0def\0"
        "\x55\x80\0\0");
    PUT("BM\x42\0\0\0\0\0\0\0\x3e\0\0\0\x28\0\0\0\3\0\0\0\1\0\0\0\1\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0"
        "\0\0\0\0\2\0\0\0\0\0\0\0"
        "abc\0def\0"
        "\1\0\0\0");
    PUT("BM\x42\0\0\0\0\0\0\0\x3e\0\0\0\x28\0\0\0\3\0\0\0\xff\xff\xff\xff\1\0\x08\0\0\0\0\0\0\0\0\0"
        "\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"
        "abc\0def\0"
        "\1\0\1\0");
    PUT("BM\x42\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\2\0\0\0\1\0\0\0\1\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0"
        "\0\0\0\0\0\0\0\0\0\0\0\0"
        "abcd");
    PUT("BM\x22\0\0\0\0\0\0\0\x1a\0\0\0\x0c\0\0\0\2\0\1\0\1\0\x18\0"
        "abcdef\0\0");
}

void put_stb_seeds(void) {
    static const int sizes[][2] = {{1, 1}, {9, 5}, {17, 20}, {40, 3}};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int channels = 1; channels <= 4; channels++) {
            put_written(GF_STB_TGA, sizes[i][0], sizes[i][1], channels);
            if (channels != 2)
                put_written(GF_STB_BMP, sizes[i][0], sizes[i][1], channels);
            if (channels == 1 || channels == 3) {
                put_written(GF_STB_JPG, sizes[i][0], sizes[i][1], channels);
                put_written(GF_STB_HDR, sizes[i][0], sizes[i][1], channels);
            }
        }
    }
    for (int i = 0; i < 4; i++)
        put_gif(i & 1, i & 2);
    put_psds();
    put_progressive_jpeg();
    put_tgas_and_bmps();
}
