/* Write the seeds of the fuzzing corpus: make_seeds DIRECTORY creates one directory per harness. */
#include <stdio.h>
#include <sys/stat.h>
#include <zlib.h>

#include "io/stb/raster.h"
#include "jpeg_file.h"
#include "png_both.h"
#include "small_files.h"
#include "tiff_file.h"

static const char *root;
static int count;

static void seed_put(const char *harness, const void *data, size_t size) {
    char path[2048];
    (void)snprintf(path, sizeof path, "%s/%s", root, harness);
    if (mkdir(path, 0777) != 0 && access(path, W_OK) != 0) {
        perror(path);
        exit(1);
    }
    (void)snprintf(path, sizeof path, "%s/%s/%04d", root, harness, count++);
    put_bytes(path, data, size);
}

#define PUT(harness, literal) seed_put(harness, literal, sizeof(literal) - 1)

/* ---- PNG ------------------------------------------------------------------------------------- */

static void seed_png(const png_spec *spec) {
    AUTO(free) png_bytes file;
    png_make(spec, &file, NULL, NULL);
    seed_put("fuzz_png", file.data, file.size);
}

static void seed_pngs(void) {
    static const png_extra extras[] = {
        {"gAMA", 0, "\0\0\xb1\x8f", 4, false},
        {"cHRM", 0, "\0\0z&\0\0\x80\x84\0\0\xfa\0\0\0\x80\xe8\0\0u0\0\0\xea`\0\0:\x98\0\0\x17p", 32,
         false},
        {"sRGB", 0, "\0", 1, false},
        {"pHYs", 1, "\0\0\x0b\x13\0\0\x0b\x13\1", 9, false},
        {"tIME", 1, "\x07\xea\1\1\0\0\0", 7, false},
        {"tEXt", 1, "Title\0a title", 13, false},
        {"eXIf", 1, "MM\0*\0\0\0\x08\0\0", 10, false},
        {"cICP", 0, "\x09\x10\0\1", 4, false},
        {"sBIT", 0, "\5\5\5", 3, false},
        {"bKGD", 1, "\0\1\0\1\0\1", 6, false},
        {"abCd", 2, "whatever", 8, false},
        {"iTXt", 2, "Title\0\0\0en\0Title\0a title", 22, false},
        {"tEXt", 2, "Author\0damaged", 14, true},
    };
    uint32_t seed = 5;
    for (size_t kind = 0; kind < KINDS; kind++)
        for (int interlaced = 0; interlaced < 2; interlaced++)
            for (int transparent = 0; transparent < (kinds[kind][0] < 4 ? 2 : 1); transparent++)
                for (int filter = 0; filter <= PNG_ROWS_RANDOM; filter++)
                    seed_png(&(png_spec){.width = 7 + (uint32_t)filter,
                                         .height = 6,
                                         .color = kinds[kind][0],
                                         .depth = kinds[kind][1],
                                         .interlaced = interlaced != 0,
                                         .transparent = transparent != 0,
                                         .filter = (png_rows)filter,
                                         .seed = (uint32_t)filter});
    for (size_t i = 0; i < sizeof extras / sizeof *extras; i++)
        seed_png(&(png_spec){.width = 5,
                             .height = 4,
                             .color = i % 2 != 0 ? 3 : 2,
                             .depth = 8,
                             .palette_count = 17,
                             .extras = &extras[i],
                             .extra_count = i % 4 == 0 ? sizeof extras / sizeof *extras - i : 1});
    for (int i = 0; i < 60; i++) {
        const png_spec spec = random_spec(&seed, 40);
        seed_png(&spec);
    }
}

/* Write a stream for fuzz_inflate after its header: rows of 11 bytes, up to 20 of them, in
 * chunks of `piece` bytes. */
static void seed_stream(int level, int strategy, unsigned piece) {
    unsigned char data[4096] = {10, 0, 19, (unsigned char)piece, (unsigned char)(piece >> 8)};
    unsigned char raw[20 * 11];
    z_stream stream = {
        .next_in = raw, .avail_in = sizeof raw, .next_out = data + 5, .avail_out = sizeof data - 5};
    for (size_t i = 0; i < sizeof raw; i++)
        raw[i] = (unsigned char)(i % 11 == 0 ? i / 11 % 5 : i * i % 7);
    if (deflateInit2(&stream, level, Z_DEFLATED, 15, 8, strategy) != Z_OK ||
        deflate(&stream, Z_FINISH) != Z_STREAM_END)
        abort();
    seed_put("fuzz_inflate", data, 5 + stream.total_out);
    (void)deflateEnd(&stream);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void seed_text(const char *harness, const char *text) {
    seed_put(harness, text, strlen(text));
}

static void seed_rows(void) {
    seed_text("fuzz_pnm", "P2\n# a comment\n3 2\n255\n0 1 2\n253 254 255\n");
    seed_text("fuzz_pnm", "P3 1 2 65535 1 2 3 65535 0 9\n");
    PUT("fuzz_pnm", "P5\n3 2\n255\nabcdef");
    PUT("fuzz_pnm", "P5 2 2 65535\n\0\1\2\3\4\5\6\7");
    PUT("fuzz_pnm", "P6\n1 2\n255\nabcdef");
    PUT("fuzz_pnm", "P6\r1 1\r65535\r\n12345");
    PUT("fuzz_pnm", "P5\r2 1\r255\r\nx");
    PUT("fuzz_pnm",
        "P7\nWIDTH 2\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n"
        "abcdefgh");
    PUT("fuzz_pnm", "P7\n# c\nWIDTH 1\nHEIGHT 2\nDEPTH 2\nMAXVAL 65535\nENDHDR\nabcdefgh");
    PUT("fuzz_pnm", "P7\nMAXVAL 255\nDEPTH 1\nHEIGHT 2\nWIDTH 2\nTUPLTYPE GRAYSCALE\nENDHDR\nabcd");
    PUT("fuzz_pnm", "Pf\n2 2\n-1.0\n\0\0\x80?\0\0\0\0\0\0\xc0\x7f\1\0\0\0");
    PUT("fuzz_pnm", "PF\n1 2\n1\n?\x80\0\0@\0\0\0@@\0\0\x80\0\0\0\x7f\x80\0\0\x7f\xc0\0\1");
    PUT("fuzz_pnm", "P4\n11 2\n\xff\x20\0\1");
    seed_text("fuzz_pnm", "P1\n3 2\n# a comment\n010\n1 0 1\n");
    PUT("fuzz_pnm", "P5\n3 2\n15\n\0\1\2\x0f\x10\7");
    seed_text("fuzz_pnm", "P2 2 1 1000 1000 7");
    PUT("fuzz_pnm",
        "P7\nWIDTH 2\nHEIGHT 1\nDEPTH 1\nMAXVAL 1\nTUPLTYPE BLACKANDWHITE\nENDHDR\n\0\1");
    PUT("fuzz_pnm", "P7\nWIDTH 1\nHEIGHT 1\nDEPTH 3\nMAXVAL 1023\nENDHDR\n\0\1\3\xff\4\0");
    PUT("fuzz_pnm", "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }   \nabcdef");
    PUT("fuzz_pnm", "{'shape':(1,2,2),'descr':'>u2','fortran_order':False}\n\1\2\3\4\5\6\7\x08");
    PUT("fuzz_pnm",
        "{\"descr\": \"<f4\", \"shape\": (1, 1, 4), \"fortran_order\": False}\n"
        "\0\0\x80?\0\0\0\0\0\0\xc0\x7f\1\0\0\0");
    PUT("fuzz_pnm", "{'descr': '<i8', 'fortran_order': True, 'shape': (3,), }\n0123456789");
    PUT("fuzz_pnm", "{'descr': [('x', '<u8'), ('value', '|u1')], 'fortran_order': False}\n0123");
    PUT("fuzz_pnm",
        "\x93NUMPY\1\0\x3f\0{'descr': '|u1', 'fortran_order': False, 'shape': (3, 1, 2), }\n"
        "abcdef");
    PUT("fuzz_pnm",
        "\x93NUMPY\2\0\x3c\0\0\0{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1), }\n"
        "abcd");
    PUT("fuzz_raw", "3x2:u8\nabcdef");
    PUT("fuzz_raw", "2x1x3:u16be+4\nhead123456abcdef");
    PUT("fuzz_raw", "1x1x4:f32be\n0123456789abcdef");
    PUT("fuzz_raw", "2x2:u16le+1\n?12345678");
    PUT("fuzz_raw", "4x1x2:f32+0\n0123456789abcdef0123456789abcdef");
}

static void seed_tiffs(void) {
    char path[2048];
    (void)snprintf(path, sizeof path, "%s/x.tif", root);
    for (uint64_t i = 0; i < 100; i++) {
        test_random random = test_seeded(i);
        tiff_spec specs[2] = {tiff_random(&random, 30), tiff_random(&random, 10)};
        size_t size;
        if (!tiff_write(path, specs, 1 + i % 2, &random))
            abort();
        AUTO(free) unsigned char *data = test_bytes(path, &size);
        seed_put("fuzz_tiff", data, size);
    }
    (void)unlink(path);
}

/* ---- formats that stb decodes ------------------------------------------------------------ */

/* Files that stb writes, and handmade files of kinds that it only decodes: PSD, GIF,
 * TGA with palettes and runs, BMP with few bits per pixel. */

typedef struct growing {
    unsigned char bytes[1 << 16];
    size_t size;
} growing;

static void growing_put(growing *to, const void *bytes, size_t size) {
    assert_true(to->size + size <= sizeof to->bytes);
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
}

static void growing_on_write(void *context, void *data, int size) {
    growing_put(context, data, (size_t)size);
}

static void seed_written(gf_raster_kind kind, int width, int height, int channels) {
    static growing file;
    float floats[64 * 64 * 4];
    unsigned char bytes[64 * 64 * 4];
    file.size = 0;
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)(i * i / 9 + i % 3 * 40);
        floats[i] = (float)bytes[i] * 0.25f;
    }
    const gf_format format = {.width = (uint64_t)width,
                              .height = (uint64_t)height,
                              .channels = (uint32_t)channels,
                              .type = kind == GF_RASTER_HDR ? GF_F32 : GF_U8};
    if (!gf_stb_write(kind, growing_on_write, &file, &format,
                      kind == GF_RASTER_HDR ? (const void *)floats : bytes))
        abort();
    seed_put("fuzz_stb", file.bytes, file.size);
}

/* Codes of nine bits: a clear code before each one keeps them from growing. */
static void seed_gif(int interlaced, int transparent) {
    enum { WIDTH = 5, HEIGHT = 9, CLEAR = 256, END = 257 };
    growing file = {.size = 0};
    unsigned char block[255] = {0};
    size_t bit = 0;

    growing_put(&file, transparent ? "GIF89a" : "GIF87a", 6);
    growing_put(&file, (const unsigned char[]){WIDTH, 0, HEIGHT, 0, 0xf7, 0, 0}, 7);
    for (int i = 0; i < 256; i++)
        growing_put(&file, (const unsigned char[]){(unsigned char)i, (unsigned char)(3 * i), 7}, 3);
    if (transparent)
        growing_put(&file, (const unsigned char[]){0x21, 0xf9, 4, 1, 0, 0, 3, 0}, 8);
    growing_put(
        &file,
        (const unsigned char[]){',', 0, 0, 0, 0, WIDTH, 0, HEIGHT, 0, interlaced ? 0x40 : 0, 8},
        11);
    for (int i = 0; i <= 2 * WIDTH * HEIGHT; i++) {
        const unsigned code = i == 2 * WIDTH * HEIGHT ? END : i % 2 == 0 ? CLEAR : (unsigned)i % 7;
        for (int b = 0; b < 9; b++, bit++)
            block[bit / 8] |= (unsigned char)((code >> b & 1) << bit % 8);
    }
    const unsigned char size = (unsigned char)((bit + 7) / 8);
    growing_put(&file, &size, 1);
    growing_put(&file, block, size);
    growing_put(&file, "\0;", 2);
    seed_put("fuzz_stb", file.bytes, file.size);
}

static void seed_psds(void) {
    PUT("fuzz_stb",
        "8BPS\0\1\0\0\0\0\0\0\0\3\0\0\0\2\0\0\0\2\0\x08\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
        "abcdefghijkl");
    PUT("fuzz_stb",
        "8BPS\0\1\0\0\0\0\0\0\0\3\0\0\0\1\0\0\0\2\0\x10\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
        "abcdefghijkl");
    /* Packed: rows of a run and of literals, after the sizes of all rows. */
    PUT("fuzz_stb",
        "8BPS\0\1\0\0\0\0\0\0\0\3\0\0\0\1\0\0\0\4\0\x08\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\1"
        "\0\2\0\2\0\5\xfdx\xfdy\3abcd");
}

/* ---- JPEG ------------------------------------------------------------------------------------ */

/* One grey block: its DC coefficient, empty AC scans, then one more bit of the DC coefficient. */
static void seed_progressive_jpeg(void) {
    growing file = {.size = 0};
    unsigned char table[69] = {0xff, 0xdb, 0, 67, 0};
    growing_put(&file, "\xff\xd8", 2);
    memset(table + 5, 1, 64); /* all quantizers are 1 */
    growing_put(&file, table, sizeof table);
    growing_put(&file, "\xff\xc2\0\x0b\x08\0\x08\0\x08\1\1\x11\0", 13);
    /* Codes of one bit: differences of 0 bits, ends of blocks. */
    growing_put(&file, "\xff\xc4\0\x14\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);
    growing_put(&file, "\xff\xc4\0\x14\x10\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);
    growing_put(&file, "\xff\xda\0\x08\1\1\0\0\0\1\x7f", 11);
    growing_put(&file, "\xff\xda\0\x08\1\1\0\1\x3f\1\x7f", 11);
    growing_put(&file, "\xff\xda\0\x08\1\1\0\0\0\x10\xff\0", 12);
    growing_put(&file, "\xff\xda\0\x08\1\1\0\1\x3f\x10\x7f", 11);
    growing_put(&file, "\xff\xd9", 2);
    seed_put("fuzz_jpeg", file.bytes, file.size);
}

static void put_markers(j_compress_ptr jpeg) {
    static const char exif[] = "Exif\0\0II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0";
    jpeg_write_marker(jpeg, JPEG_APP0 + 1, (const JOCTET *)exif, sizeof exif - 1);
    jpeg_write_icc_profile(jpeg, (const JOCTET *)exif, sizeof exif);
    jpeg_write_marker(jpeg, JPEG_COM, (const JOCTET *)"text", 4);
}

/* Files of libjpeg, with metadata. */
static void seed_jpegs(void) {
    for (int i = 0; i < 16; i++) {
        const jpeg_shape shape = {.width = 40,
                                  .height = 21,
                                  .components = i & 1 ? 3 : 1,
                                  .sampling = i & 1 ? 2 : 1,
                                  .progressive = i & 2,
                                  .restart = i & 8 ? 2 : 0};
        const jpeg_file file = make_jpeg(&shape, 1, i & 4 ? put_markers : NULL);
        seed_put("fuzz_jpeg", file.data, file.size);
        free(file.data);
    }
    seed_progressive_jpeg();
}

static void seed_tgas_and_bmps(void) {
    /* A palette of two colours with runs; and true colours, packed, top row first. */
    PUT("fuzz_stb",
        "\0\1\x09\0\0\2\0\x18\0\0\0\0\4\0\2\0\x08\0"
        "abcdef"
        "\x83\1\3\0\1\0\1");
    PUT("fuzz_stb",
        "\0\1\1\0\0\2\0\x18\0\0\0\0\2\0\2\0\x08\x20"
        "abcdef"
        "\0\1\1\0");
    PUT("fuzz_stb",
        "\0\0\x0a\0\0\0\0\0\0\0\0\0\3\0\2\0\x18\x20"
        "\x82"
        "abc"
        "\2"
        "defghijkl");
    PUT("fuzz_stb",
        "\0\0\2\0\0\0\0\0\0\0\0\0\2\0\2\0\x10\0"
        "abcdefgh");
    PUT("fuzz_stb",
        "\0\0\3\0\0\0\0\0\0\0\0\0\2\0\2\0\x08\0"
        "abcd");
    /* 1, 4, 8 and 16 bits per pixel; the old header. */
    PUT("fuzz_stb",
        "BM\x42\0\0\0\0\0\0\0\x3e\0\0\0\x28\0\0\0\x0a\0\0\0\1\0\0\0\1\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0"
        "\0\0\0\0\2\0\0\0\0\0\0\0"
        "abc\0def\0"
        "\x55\x80\0\0");
    PUT("fuzz_stb",
        "BM\x42\0\0\0\0\0\0\0\x3e\0\0\0\x28\0\0\0\3\0\0\0\1\0\0\0\1\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0"
        "\0\0\0\0\2\0\0\0\0\0\0\0"
        "abc\0def\0"
        "\1\0\0\0");
    PUT("fuzz_stb",
        "BM\x42\0\0\0\0\0\0\0\x3e\0\0\0\x28\0\0\0\3\0\0\0\xff\xff\xff\xff\1\0\x08\0\0\0\0\0\0\0\0\0"
        "\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"
        "abc\0def\0"
        "\1\0\1\0");
    PUT("fuzz_stb",
        "BM\x42\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\2\0\0\0\1\0\0\0\1\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0"
        "\0\0\0\0\0\0\0\0\0\0\0\0"
        "abcd");
    PUT("fuzz_stb",
        "BM\x22\0\0\0\0\0\0\0\x1a\0\0\0\x0c\0\0\0\2\0\1\0\1\0\x18\0"
        "abcdef\0\0");
}

/* Kinds that need runs, masks, several frames or a palette that does not begin at 0. */
static void seed_rasters(void) {
    static const unsigned char indices[] = {1, 2, 3, 1, 0, 2};
    const bmp_spec runs = {.width = 5, .height = 2, .bits = 8, .compression = 1, .colors = 2},
                   packed = {.width = 5, .height = 2, .bits = 4, .compression = 2, .colors = 16},
                   masks = {.width = 2,
                            .height = -1,
                            .bits = 16,
                            .compression = 6,
                            .gap = 8,
                            .masks = {0xf00, 0xf0, 0xf, 0xf000}};
    const tga_spec palette = {.type = 9,
                              .width = 4,
                              .height = 1,
                              .bits = 8,
                              .descriptor = 0x30,
                              .first = 3,
                              .colors = 2,
                              .color_bits = 32};
    small_file files[] = {bmp_begin(&runs),
                          bmp_begin(&packed),
                          bmp_begin(&masks),
                          tga_begin(&palette),
                          gif_begin(3, 2, 2, 1),
                          psd_make(&(psd_spec){.width = 3,
                                               .height = 2,
                                               .channels = 5,
                                               .depth = 16,
                                               .mode = 3,
                                               .packed = true,
                                               .transparent = true},
                                   (const unsigned char *)"aaaaaabbbbbbccccccddddddeeeeeeffffff"
                                                          "gggggghhhhhhiiiiiijjjjjj")};
    small_put(&files[0], "\3\1\0\2\1\0\1\0\0\0\0\3\1\0\1\0\2\1\0\1", 20);
    small_put(&files[1], "\5\x12\0\0\0\5\x12\x34\x50\0\0\1", 12);
    small_put(&files[2], "abcd", 4);
    small_put(&files[3], "\x81\3\1\4\5", 5);
    for (unsigned i = 0; i < 4; i++)
        gif_add(&files[4], 2,
                &(gif_frame){.x = i,
                             .width = 3,
                             .height = 2,
                             .indices = indices,
                             .disposal = i,
                             .transparent = true,
                             .interlaced = i & 1,
                             .no_clear = i & 2});
    gif_end(&files[4]);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        seed_put("fuzz_stb", files[i].data, files[i].size);
        free(files[i].data);
    }
}

static void seed_stb(void) {
    static const int sizes[][2] = {{1, 1}, {9, 5}, {17, 20}, {40, 3}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int channels = 1; channels <= 4; channels++) {
            seed_written(GF_RASTER_TGA, sizes[i][0], sizes[i][1], channels);
            if (channels != 2)
                seed_written(GF_RASTER_BMP, sizes[i][0], sizes[i][1], channels);
            if (channels == 1 || channels == 3)
                seed_written(GF_RASTER_HDR, sizes[i][0], sizes[i][1], channels);
        }
    for (int i = 0; i < 4; i++)
        seed_gif(i & 1, i & 2);
    seed_psds();
    seed_tgas_and_bmps();
    seed_rasters();
}

/* ---- command lines --------------------------------------------------------------------------- */

/* Write a command line, and `tail` after the empty argument that ends it. */
static void seed_line(const char *harness, const char *words, const void *tail, size_t size) {
    char line[4096];
    size_t length = strlen(words);
    memcpy(line, words, length);
    for (size_t i = 0; i < length; i++)
        line[i] = line[i] == ' ' ? '\0' : line[i];
    line[length++] = '\0';
    if (tail != NULL) {
        line[length++] = '\0';
        memcpy(line + length, tail, size);
        length += size;
    }
    seed_put(harness, line, length);
}

static void seed_lines(void) {
    static const char *const lines[] = {
        "smooth a.x out.png",
        "smooth --keep-brightness --axis xy --radius 3 a.x out.png -v",
        "smooth -k --stages enhance,blur --gain=1.5 --weight 0.25 --tile 256 a.x -",
        "smooth - out.pam --format pam --force",
        "smooth a.x b.png c.ppm --out-dir o --name {stem}-{index:3}{ext} --threads 2",
        "smooth --out-dir o --files-from a.x --resume --json",
        "smooth --out-dir . --force b.png c.ppm --fail-fast --shard=1/2",
        "smooth --raw 3x2:u8 a.x out.raw --rows-per-strip 1 --max-memory 1M",
        "smooth --compression small --strip --simd portable --backend golden b.png out.png",
        "hist a.x --bins 8 --extract 3",
        "hist b.png --channel all --plot h.svg --per-row --csv",
        "hist b.png -n 8 -x 3 --out v.npy --mask m.png --range 0,255 --json",
        "axis-sum b.png --axis y --json --max-pixels 1K",
        "axis-sum c.ppm --csv --plot p.png --log-scale",
        "dot b.png b.png --json",
        "compare b.png c.ppm --diff d.png",
        "compare b.png a.x --csv",
        "normalize c.ppm out.ppm --verbose --max-chunk 1M",
        "info a.x b.png c.ppm --json",
        "devices --json",
        "help hist",
        "smooth --help",
        "-- --version",
    };
    AUTO(free) png_bytes file;
    const png_spec spec = {.width = 6, .height = 5, .color = 6, .depth = 8};
    png_make(&spec, &file, NULL, NULL);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        seed_line("fuzz_options", lines[i], NULL, 0);
        seed_line("fuzz_cli", lines[i], file.data, file.size);
        seed_line("fuzz_cli", lines[i], "P5\n2 3\n255\nabcdef", 17);
    }
    seed_line("fuzz_cli", lines[5], "a.x\nb.png\nc.ppm\nno.png\n", 23);
    seed_line("fuzz_cli", lines[7], "abcdef", 6);
}

/* ---- pixels ---------------------------------------------------------------------------------- */

static void seed_pixels(void) {
    unsigned char data[600];
    uint32_t seed = 9;
    for (unsigned i = 0; i < 64; i++) {
        const size_t size = 20 + i * 9;
        for (size_t k = 0; k < size; k++)
            data[k] = (unsigned char)(i % 3 == 0   ? next_random(&seed)
                                      : i % 3 == 1 ? k * i / 4
                                                   : (k / 30 % 2) * 200);
        data[0] = (unsigned char)next_random(&seed);
        data[1] = (unsigned char)next_random(&seed);
        data[2] = (unsigned char)(i * 4 + (i >> 4));
        data[3] = (unsigned char)(1 + i);
        seed_put("fuzz_deflate", data, size);
        seed_put("fuzz_encoder", data, size);
        data[1] = (unsigned char)i;
        seed_put("fuzz_stream", data, size);
    }
    PUT("fuzz_stream", "\3\0\x27\0\x20\0\x10\0radius=3 axis=y\0abcdefgh");
    PUT("fuzz_stream", "\x0a\1\7\0\x20\0\x10\0bins=7 extract=2\0abcdefgh");
}

/* ---- EXIF data ------------------------------------------------------------------------------- */

/* In either byte order, as in BigTIFF, and with all directories. */
static void seed_exif(void) {
    PUT("fuzz_exif",
        "II*\0\x08\0\0\0\4\0"
        "\x0f\1\2\0\3\0\0\0gf\0\0"
        "\x12\1\3\0\1\0\0\0\6\0\0\0"
        "\x69\x87\4\0\1\0\0\0\x3e\0\0\0"
        "\x25\x88\4\0\1\0\0\0\x50\0\0\0\0\0\0\0"
        "\2\0\0\x90\7\0\4\0\0\0"
        "0232\x86\x92\7\0\x09\0\0\0\x08\0\0\0\0\0\0\0"
        "\1\0\0\0\1\0\4\0\0\0\2\3\0\0\0\0\0\0");
    PUT("fuzz_exif",
        "MM\0*\0\0\0\x08\0\3"
        "\1\x12\0\3\0\0\0\1\0\6\0\0"
        "\1\x1a\0\5\0\0\0\1\0\0\0\4"
        "\x87\xaf\0\3\0\0\0\4\0\0\0\4\0\0\0\0\x08");
    PUT("fuzz_exif",
        "II+\0\x08\0\0\0\x10\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"
        "\x73\x87\7\0\x09\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0"
        "\x69\x87\x10\0\1\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10");
}

int main(int argc, char **argv) {
    if (argc != 2 || (mkdir(argv[1], 0777) != 0 && access(argv[1], W_OK) != 0)) {
        fprintf(stderr, "usage: make_seeds DIRECTORY\n");
        return 2;
    }
    root = argv[1];
    seed_pngs();
    for (int level = 0; level <= 9; level += 3)
        for (int strategy = Z_DEFAULT_STRATEGY; strategy <= Z_FIXED; strategy++)
            seed_stream(level, strategy, level == 3 ? 1 : 2000);
    seed_rows();
    seed_tiffs();
    seed_stb();
    seed_jpegs();
    seed_lines();
    PUT("fuzz_list", "\0a.png\nb.png\n\n-\nc d.png");
    PUT("fuzz_list", "\1a.png\0b\nc.png\0-\0");
    seed_pixels();
    seed_exif();
    printf("%d seeds in %s\n", count, root);
    return 0;
}
