/* BMP, TGA and PSD of every kind, compared with images that are computed here. */
#include "io/stb/raster.h"
#include "small_files.h"
#include "testing.h"

enum { SIDE = 64 };

/* The expected image: samples of up to four channels. */
static uint16_t wanted[SIDE * SIDE][4];

/* Read the file, which is freed, and compare it. runs: the number of damaged ones. */
static void check_file(const char *what, small_file file, uint32_t width, uint32_t height,
                       uint32_t channels, uint64_t runs) {
    gf_raster raster;
    AUTO(free) unsigned char *pixels;
    const gf_raster_outcome outcome = small_read(&raster, file.data, file.size, 1, &pixels);
    if (outcome != GF_RASTER_READ)
        fail_msg("%s: outcome %d: %s", what, (int)outcome, raster.reason ? raster.reason : "");
    if (raster.format.width != width || raster.format.height != height ||
        raster.format.channels != channels || raster.damaged != runs)
        fail_msg("%s: %ux%u, %u channels, %u damaged runs", what, (unsigned)raster.format.width,
                 (unsigned)raster.format.height, raster.format.channels, (unsigned)raster.damaged);
    for (size_t i = 0; i < (size_t)width * height * channels; i++) {
        const unsigned got =
            raster.format.type == GF_U16 ? ((const uint16_t *)(const void *)pixels)[i] : pixels[i];
        if (got != wanted[i / channels][i % channels])
            fail_msg("%s: pixel %zu, channel %zu: %u, not %u", what, i / channels, i % channels,
                     got, wanted[i / channels][i % channels]);
    }
    free(file.data);
}

static void check_fails(const char *what, small_file file, gf_raster_outcome wanted_outcome,
                        const char *reason) {
    gf_raster raster;
    AUTO(free) unsigned char *pixels;
    const gf_raster_outcome outcome = small_read(&raster, file.data, file.size, 1, &pixels);
    if (outcome != wanted_outcome || (reason && !strstr(raster.reason, reason)))
        fail_msg("%s: outcome %d: %s", what, (int)outcome, raster.reason ? raster.reason : "");
    free(file.data);
}

/* Set the expected pixel to a colour of the palettes of small_files.h, or to black. */
static void want_index(uint32_t at, unsigned index, unsigned colors) {
    const uint16_t color[] = {(uint16_t)(index & 255), (uint16_t)(255 - index % 256),
                              (uint16_t)(7 * index & 255), 255},
                   black[] = {0, 0, 0, 255};
    memcpy(wanted[at], index < colors ? color : black, sizeof wanted[at]);
}

/* Set the expected samples of a pixel whose bits are divided as by the masks. */
static void want_fields(uint32_t at, uint32_t value, const uint32_t masks[4]) {
    for (int c = 0; c < 4; c++) {
        const uint32_t max = masks[c] ? masks[c] >> __builtin_ctz(masks[c]) : 1,
                       v = masks[c] ? value >> __builtin_ctz(masks[c]) & max : 0;
        wanted[at][c] = (uint16_t)(v * 255.0 / max + 0.5);
    }
}

/* ---- BMP ------------------------------------------------------------------------------------- */

/* Return the position in the image of pixel i of the file. */
static uint32_t bmp_place(const bmp_spec *spec, uint32_t i) {
    const uint32_t width = (uint32_t)spec->width, x = i % width, y = i / width;
    return (spec->height < 0 ? y : (uint32_t)spec->height - 1 - y) * width + x;
}

static void check_bmp(const bmp_spec *spec, const uint32_t masks[4], uint32_t channels,
                      test_random *random, uint32_t and, uint32_t or) {
    const uint32_t width = (uint32_t)spec->width, height = (uint32_t)abs(spec->height),
                   row = (width * spec->bits + 31) / 32 * 4;
    const unsigned entries = spec->colors;
    unsigned char rows[SIDE * SIDE * 4] = {0};
    small_file file = bmp_begin(spec);
    char what[96];
    snprintf(what, sizeof what, "BMP %ux%d, %u bits, header %u, compression %u, %u colours, gap %u",
             width, (int)spec->height, spec->bits, spec->header, spec->compression, spec->colors,
             spec->gap);
    for (uint32_t i = 0; i < width * height; i++) {
        uint32_t value = ((uint32_t)test_next(random) & and) | or ;
        unsigned char *to = rows + i / width * row;
        const uint32_t x = i % width;
        if (spec->bits <= 8) {
            value &= (1u << spec->bits) - 1;
            to[x * spec->bits / 8] |=
                (unsigned char)(value << (8 - spec->bits - x * spec->bits % 8));
            want_index(bmp_place(spec, i), value, entries);
        } else {
            for (unsigned k = 0; k < spec->bits / 8; k++)
                to[x * spec->bits / 8 + k] = (unsigned char)(value >> 8 * k);
            want_fields(bmp_place(spec, i), value, masks);
        }
    }
    small_put(&file, rows, (size_t)row * height);
    check_file(what, file, width, height, channels, 0);
}

static const uint32_t masks_555[] = {0x7c00, 0x3e0, 0x1f, 0},
                      masks_8888[] = {0xff0000, 0xff00, 0xff, 0xff000000};

TEST(reads_bmps) {
    static const unsigned headers[] = {12, 40, 52, 56, 64, 108, 124};
    static const unsigned depths[] = {1, 2, 4, 8, 16, 24, 32};
    test_random random = {3};
    for (int n = 0; n < 4000; n++) {
        bmp_spec spec = {.header = headers[n % 7],
                         .bits = depths[n / 7 % 7],
                         .width = 1 + (int32_t)test_below(&random, 40),
                         .height = 1 + (int32_t)test_below(&random, 9),
                         .gap = n % 3 ? 0 : (unsigned)test_below(&random, 5000)};
        const unsigned all = spec.bits <= 8 ? 1u << spec.bits : 256;
        /* Deep images may have a palette for display. */
        spec.colors = spec.bits > 8 && n % 2 ? 0 : 1 + (unsigned)test_below(&random, all);
        if (spec.header > 12 && n % 4 == 0)
            spec.height = -spec.height;
        if (spec.header == 12 && spec.bits <= 8)
            spec.colors = all; /* the header does not say how many */
        check_bmp(&spec, spec.bits == 16 ? masks_555 : masks_8888, 3, &random, 0xffffff, 0);
    }
}

TEST(reads_masks_of_bmps) {
    static const struct {
        unsigned bits;
        uint32_t masks[4];
    } cases[] = {
        {16, {0xf800, 0x7e0, 0x1f, 0}},
        {16, {0x7c00, 0x3e0, 0x1f, 0x8000}},
        {16, {0xf00, 0xf0, 0xf, 0xf000}},
        {16, {0x3, 0x1c, 0xe0, 0xff00}},
        {32, {0xff, 0xff00, 0xff0000, 0xff000000}},
        {32, {0xff000000, 0xff0000, 0xff00, 0}},
        {32, {0x1fc00000, 0, 0x3f, 0x100}},
    };
    static const unsigned headers[] = {40, 52, 56, 108, 124};
    test_random random = {4};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t h = 0; h < 5; h++)
            for (unsigned compression = 3; compression <= 6; compression += 3) {
                const bool alpha = cases[i].masks[3] && (headers[h] >= 56 || compression == 6);
                uint32_t masks[4];
                memcpy(masks, cases[i].masks, sizeof masks);
                if (!alpha)
                    masks[3] = 0;
                bmp_spec spec = {.width = 17,
                                 .height = 5,
                                 .bits = cases[i].bits,
                                 .compression = compression,
                                 .header = headers[h]};
                memcpy(spec.masks, cases[i].masks, sizeof masks);
                if (compression == 6 && headers[h] == 52)
                    continue; /* the fourth mask is not in the header */
                check_bmp(&spec, masks, alpha ? 4 : 3, &random, UINT32_MAX, 0);
                if (alpha) /* declared, though it is 0 or opaque everywhere */
                    check_bmp(&spec, masks, 4, &random, ~masks[3], 0);
                if (alpha)
                    check_bmp(&spec, masks, 4, &random, UINT32_MAX, masks[3]);
            }
}

/* A fourth byte that the header does not declare is alpha unless it is constant. */
TEST(finds_the_alpha_of_bmps) {
    const bmp_spec spec = {.width = 9, .height = 9, .bits = 32};
    test_random random = {5};
    check_bmp(&spec, masks_8888, 3, &random, 0xffffff, 0);
    check_bmp(&spec, masks_8888, 3, &random, 0xffffff, 0xff000000);
    check_bmp(&spec, masks_8888, 4, &random, 0x80ffffff, 0);
    check_bmp(&spec, masks_8888, 4, &random, 0xffffff, 0xfe000000);
}

/* Write random runs, literals and moves, and follow them. */
static void check_runs(unsigned bits, uint32_t width, uint32_t height, test_random *random) {
    const bmp_spec spec = {.width = (int32_t)width,
                           .height = (int32_t)height,
                           .bits = bits,
                           .compression = bits == 8 ? 1 : 2,
                           .colors = 1u << bits};
    const unsigned mask = (1u << bits) - 1;
    small_file file = bmp_begin(&spec);
    for (uint32_t i = 0; i < width * height; i++)
        want_index(i, 0, 256);
    for (uint32_t x = 0, y = 0; y < height;) {
        const uint32_t left = width - x;
        const unsigned choice = (unsigned)test_below(random, 10);
        if (choice == 0 || left == 0) {
            small_put(&file, "\0\0", 2);
            x = 0;
            y++;
        } else if (choice == 1) {
            const unsigned dx = (unsigned)test_below(random, left + 1),
                           dy = (unsigned)test_below(random, height - y);
            small_put(&file, "\0\2", 2);
            small_byte(&file, dx);
            small_byte(&file, dy);
            x += dx;
            y += dy;
        } else {
            const bool literal = choice < 6 && left >= 3;
            const uint32_t max = left < 255 ? left : 255;
            const unsigned count = literal ? 3 + (unsigned)test_below(random, max - 2)
                                           : 1 + (unsigned)test_below(random, max);
            unsigned char packed[256] = {0};
            const unsigned two = (unsigned)test_below(random, 256);
            for (unsigned i = 0; i < count; i++) {
                const unsigned index = literal     ? (unsigned)test_next(random) & mask
                                       : bits == 8 ? two
                                                   : two >> (i % 2 ? 0 : 4) & 15;
                packed[i * bits / 8] |= (unsigned char)(index << (bits == 4 && i % 2 == 0 ? 4 : 0));
                want_index(bmp_place(&spec, y * width + x + i), index, 256);
            }
            if (literal) {
                small_byte(&file, 0);
                small_byte(&file, count);
                small_put(&file, packed, (count * bits + 15) / 16 * 2);
            } else {
                small_byte(&file, count);
                small_byte(&file, two);
            }
            x += count;
        }
    }
    if (test_below(random, 2))
        small_put(&file, "\0\1", 2);
    check_file(bits == 8 ? "RLE8" : "RLE4", file, width, height, 3, 0);
}

TEST(reads_runs_of_bmps) {
    test_random random = {6};
    for (unsigned n = 0; n < 3000; n++)
        check_runs(n % 2 ? 4 : 8, 1 + (uint32_t)test_below(&random, SIDE),
                   1 + (uint32_t)test_below(&random, 12), &random);
}

/* Runs that end in the padding of the row are valid, those after it and surplus data are damage. */
TEST(notices_damaged_runs) {
    static const struct {
        const char *codes;
        size_t size;
        uint64_t damaged;
    } cases[] = {{"\5\1\0\0\5\1\0\1", 8, 0},     {"\x08\1\0\0\7\1\0\1", 8, 0},
                 {"\x09\1\0\0\5\1\0\1", 8, 1},   {"\5\1\0\0\xff\1\0\0\0\1", 10, 1},
                 {"\5\1\0\0\5\1", 6, 0},         {"\5\1\0\0\5\1\0\0\0\0", 10, 1},
                 {"\5\1\0\0\5\1\0\0\5\1", 10, 1}};
    const bmp_spec spec = {.width = 5, .height = 2, .bits = 8, .compression = 1, .colors = 2};
    for (uint32_t i = 0; i < 10; i++)
        want_index(i, 1, 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        small_file file = bmp_begin(&spec);
        small_put(&file, cases[i].codes, cases[i].size);
        check_file(cases[i].codes, file, 5, 2, 3, cases[i].damaged);
    }
    small_file file = bmp_begin(&spec);
    small_put(&file, "\5\1\0\0\4\1", 6);
    check_fails("missing pixel", file, GF_RASTER_TRUNCATED, NULL);
}

TEST(refuses_bmps_by_name) {
    check_fails("JPEG",
                bmp_begin(&(bmp_spec){.width = 1, .height = 1, .compression = 4, .bits = 24}),
                GF_RASTER_UNSUPPORTED, "compression");
    check_fails(
        "OS/2",
        bmp_begin(&(bmp_spec){.width = 1, .height = 1, .compression = 3, .bits = 16, .header = 64}),
        GF_RASTER_UNSUPPORTED, "compression");
    check_fails("10 bits",
                bmp_begin(&(bmp_spec){.width = 1,
                                      .height = 1,
                                      .compression = 3,
                                      .bits = 32,
                                      .masks = {0x3ff00000, 0xffc00, 0x3ff, 0},
                                      .header = 56}),
                GF_RASTER_UNSUPPORTED, "masks");
    for (unsigned bits = 0; bits <= 64; bits++)
        if (bits < 1 || bits > 32 || (bits != 1 && bits != 2 && bits != 4 && bits % 8 != 0))
            check_fails("depth", bmp_begin(&(bmp_spec){.width = 1, .height = 1, .bits = bits}),
                        GF_RASTER_UNSUPPORTED, "depth");
    check_fails("size", bmp_begin(&(bmp_spec){.width = -1, .height = 1, .bits = 24}),
                GF_RASTER_DAMAGED, "size");
    check_fails("palette", bmp_begin(&(bmp_spec){.width = 1, .height = 1, .bits = 8}),
                GF_RASTER_DAMAGED, "begin in its header");
}

/* ---- TGA ------------------------------------------------------------------------------------- */

/* Write a pixel of the file, and what is expected where the descriptor places it. */
static void tga_put(small_file *file, const tga_spec *spec, uint32_t i, uint32_t value) {
    static const uint32_t masks_1555[] = {0x7c00, 0x3e0, 0x1f, 0x8000};
    const bool right = (spec->descriptor & 0x10) != 0, top = (spec->descriptor & 0x20) != 0;
    const uint32_t x = i % spec->width, y = i / spec->width,
                   at = (top ? y : spec->height - 1 - y) * spec->width +
                        (right ? spec->width - 1 - x : x);
    const unsigned index = value & 255;
    if (file)
        small_little(file, value, (int)(spec->bits + 7) / 8);
    if (spec->type % 8 == 1) {
        const bool known = index >= spec->first && index < spec->first + spec->colors;
        want_index(at, known ? index - spec->first : 256, 256);
    } else if (spec->type % 8 == 3) {
        wanted[at][0] = value & 255;
        wanted[at][1] = value >> 8 & 255;
    } else {
        want_fields(at, value, spec->bits <= 16 ? masks_1555 : masks_8888);
    }
}

/* Write the image as packets of random sizes, which may continue in the next row. */
static void tga_put_packets(small_file *file, const tga_spec *spec, test_random *random) {
    const uint32_t pixels = spec->width * spec->height;
    for (uint32_t i = 0; i < pixels;) {
        const uint32_t left = pixels - i < 128 ? pixels - i : 128,
                       count = 1 + (uint32_t)test_below(random, left);
        const bool run = test_below(random, 2);
        uint32_t value = (uint32_t)test_next(random);
        small_byte(file, (run ? 128 : 0) | (count - 1));
        for (uint32_t k = 0; k < count; k++, i++) {
            if (!run)
                value = (uint32_t)test_next(random);
            tga_put(run && k ? NULL : file, spec, i, value);
        }
    }
}

TEST(reads_tgas) {
    static const struct {
        unsigned type, bits, color_bits, attributes;
        uint32_t channels;
    } kinds[] = {{1, 8, 24, 0, 3}, {1, 8, 32, 8, 4}, {2, 15, 0, 0, 3}, {2, 16, 0, 0, 3},
                 {2, 16, 0, 1, 4}, {2, 24, 0, 0, 3}, {2, 32, 0, 8, 4}, {2, 32, 0, 0, 4},
                 {3, 8, 0, 0, 1},  {3, 16, 0, 8, 2}};
    test_random random = {8};
    for (unsigned n = 0; n < 4000; n++) {
        const unsigned k = n % 10;
        tga_spec spec = {.type = kinds[k].type | (n / 10 % 2 ? 8 : 0),
                         .width = 5 + (unsigned)test_below(&random, SIDE - 5),
                         .height = 5 + (unsigned)test_below(&random, 20),
                         .bits = kinds[k].bits,
                         .color_bits = kinds[k].color_bits,
                         .descriptor = kinds[k].attributes | n / 20 % 4 << 4};
        if (spec.color_bits) {
            spec.first = n % 3 ? (unsigned)test_below(&random, 200) : 0;
            spec.colors = 1 + (unsigned)test_below(&random, 256 - spec.first);
        } else if (n / 80 % 2) {
            spec.colors = (unsigned)test_below(&random, 300); /* unused */
            spec.color_bits = 24;
        }
        small_file file = tga_begin(&spec);
        char what[96];
        snprintf(what, sizeof what, "TGA %ux%u, type %u, %u bits, descriptor %u, palette %u+%u",
                 spec.width, spec.height, spec.type, spec.bits, spec.descriptor, spec.first,
                 spec.colors);
        if (spec.type & 8)
            tga_put_packets(&file, &spec, &random);
        else
            for (uint32_t i = 0; i < spec.width * spec.height; i++)
                tga_put(&file, &spec, i, (uint32_t)test_next(&random));
        bool constant =
            kinds[k].channels == 4 && kinds[k].attributes != 8 && wanted[0][3] % 255 == 0;
        for (uint32_t i = 0; i < spec.width * spec.height; i++)
            constant = constant && wanted[i][3] == wanted[0][3];
        check_file(what, file, spec.width, spec.height, kinds[k].channels - constant, 0);
    }
}

/* The attribute bits declare alpha. Without them, a fourth byte is alpha unless it is constant. */
TEST(finds_the_alpha_of_tgas) {
    static const struct {
        uint32_t and, or ;
        unsigned attributes;
        uint32_t channels;
    } cases[] = {{0xffffff, 0, 0, 3},          {0xffffff, 0xff000000, 0, 3}, {0xffffff, 0, 8, 4},
                 {0xffffff, 0xff000000, 8, 4}, {0x1ffffff, 0, 0, 4},         {UINT32_MAX, 0, 8, 4}};
    test_random random = {9};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tga_spec spec = {
            .type = 2, .width = 9, .height = 9, .bits = 32, .descriptor = cases[i].attributes};
        small_file file = tga_begin(&spec);
        for (uint32_t k = 0; k < 81; k++)
            tga_put(&file, &spec, k, ((uint32_t)test_next(&random) & cases[i].and) | cases[i].or);
        check_file("alpha", file, 9, 9, cases[i].channels, 0);
    }
}

TEST(refuses_tgas_by_name) {
    const tga_spec rows = {.type = 2, .width = 2, .height = 2, .bits = 24, .descriptor = 0x40},
                   deep = {.type = 1,
                           .width = 2,
                           .height = 2,
                           .bits = 16,
                           .colors = 300,
                           .color_bits = 24},
                   none = {.type = 1, .width = 2, .height = 2, .bits = 8},
                   depth = {.type = 2, .width = 2, .height = 2, .bits = 20},
                   run = {.type = 11, .width = 2, .height = 2, .bits = 8};
    check_fails("interleaved", tga_begin(&rows), GF_RASTER_UNSUPPORTED, "interleaved");
    check_fails("indices", tga_begin(&deep), GF_RASTER_UNSUPPORTED, "16-bit indices");
    check_fails("no palette", tga_begin(&none), GF_RASTER_DAMAGED, "header");
    check_fails("depth", tga_begin(&depth), GF_RASTER_DAMAGED, "depth");
    small_file file = tga_begin(&run);
    small_put(&file, "\x84\7", 2);
    for (uint32_t i = 0; i < 4; i++)
        wanted[i][0] = 7;
    check_file("long run", file, 2, 2, 1, 1);
}

/* ---- PSD ------------------------------------------------------------------------------------- */

TEST(reads_psds) {
    test_random random = {10};
    for (unsigned n = 0; n < 1000; n++) {
        const unsigned colors = n % 2 ? 3 : 1, extra = n / 2 % 3;
        const psd_spec spec = {.width = 1 + (unsigned)test_below(&random, SIDE),
                               .height = 1 + (unsigned)test_below(&random, 9),
                               .channels = colors + extra,
                               .depth = n / 6 % 2 ? 16 : 8,
                               .mode = n % 2 ? 3 : 1,
                               .packed = n / 12 % 2,
                               .transparent = n / 24 % 2};
        const uint32_t pixels = spec.width * spec.height,
                       channels = colors + (extra && spec.transparent);
        unsigned char planes[5 * SIDE * SIDE * 2];
        char what[96];
        unsigned value = 0;
        for (uint32_t i = 0; i < spec.channels * pixels; i++) {
            if (test_below(&random, 3) == 0)
                value = (unsigned)test_below(&random, 1u << spec.depth);
            if (i / pixels < 4)
                wanted[i % pixels][i / pixels] = (uint16_t)value;
            if (spec.depth == 8) {
                planes[i] = (unsigned char)value;
            } else {
                planes[2 * i] = (unsigned char)(value >> 8);
                planes[2 * i + 1] = (unsigned char)value;
            }
        }
        snprintf(what, sizeof what, "PSD %ux%u, mode %u, %u channels, %u bits, packed %d, alpha %d",
                 spec.width, spec.height, spec.mode, spec.channels, spec.depth, spec.packed,
                 spec.transparent);
        check_file(what, psd_make(&spec, planes), spec.width, spec.height, channels, 0);
    }
}

/* Runs end at the end of their row; short rows are an error. */
TEST(reads_damaged_rows_of_psds) {
    static const struct {
        const char *row;
        unsigned size;
        uint64_t damaged; /* UINT64_MAX: an error */
    } cases[] = {{"\xfe\x11", 2, 0},
                 {"\xfd\x11", 2, 1},
                 {"\2\x11\x11\x11", 4, 0},
                 {"\3\x11\x11\x11\x22", 5, 1},
                 {"\xfe\x11\x80", 3, 0},
                 {"\xff\x11", 2, UINT64_MAX},
                 {"\2\x11\x11", 3, UINT64_MAX},
                 {"\xfe", 1, UINT64_MAX},
                 {"\xfe\x11\0\x22", 4, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const psd_spec spec = {.width = 3, .height = 1, .channels = 1, .depth = 8, .mode = 1};
        small_file file = psd_make(&spec, (const unsigned char *)"abc");
        file.size -= 4; /* the sizes of the rows follow the compression */
        small_byte(&file, 1);
        small_big(&file, cases[i].size, 2);
        small_put(&file, cases[i].row, cases[i].size);
        for (uint32_t k = 0; k < 3; k++)
            wanted[k][0] = 0x11;
        if (cases[i].damaged == UINT64_MAX)
            check_fails("row", file, GF_RASTER_DAMAGED, "a row of the PSD");
        else
            check_file("row", file, 3, 1, 1, cases[i].damaged);
    }
}

/* With 16 bits, a tagged block after the layers declares alpha. */
TEST(finds_the_alpha_of_deep_psds) {
    const psd_spec spec = {.width = 1, .height = 1, .channels = 4, .depth = 16, .mode = 3};
    static const char *const keys[] = {"Mt16", "Lr16"};
    for (int k = 0; k < 2; k++) {
        AUTO(free) small_file file = psd_make(&spec, (const unsigned char *)"\1\2\3\4\5\6\7\x08");
        small_file with = {0};
        small_put(&with, file.data, file.size - 4 - 2 - 8);
        small_big(&with, 4 + 4 + 2 * (12 + 4), 4);
        small_zeros(&with, 8); /* layers, masks */
        small_put(&with, "8BIMabcd\0\0\0\1....8BIM", 20);
        small_put(&with, keys[k], 4);
        small_put(&with, "\0\0\0\4....", 8);
        small_put(&with, file.data + file.size - 2 - 8, 10);
        for (int c = 0; c < 4; c++)
            wanted[0][c] = (uint16_t)(0x102 + 0x202 * c);
        check_file(keys[k], with, 1, 1, k == 0 ? 4 : 3, 0);
    }
}

TEST(refuses_psds_by_name) {
    const psd_spec cmyk = {.width = 1, .height = 1, .channels = 4, .depth = 8, .mode = 4},
                   deep = {.width = 1, .height = 1, .channels = 3, .depth = 32, .mode = 3},
                   few = {.width = 1, .height = 1, .channels = 2, .depth = 8, .mode = 3},
                   rgb = {.width = 1, .height = 1, .channels = 3, .depth = 8, .mode = 3};
    const unsigned char planes[16] = {0};
    check_fails("CMYK", psd_make(&cmyk, planes), GF_RASTER_UNSUPPORTED, "RGB or grey");
    check_fails("32 bits", psd_make(&deep, planes), GF_RASTER_UNSUPPORTED, "8 or 16 bits");
    check_fails("channels", psd_make(&few, planes), GF_RASTER_DAMAGED, "channels");
    small_file large = psd_make(&rgb, planes);
    large.data[5] = 2;
    check_fails("PSB", large, GF_RASTER_UNSUPPORTED, "PSD other than");
    small_file zip = psd_make(&rgb, planes);
    zip.data[zip.size - 4] = 2;
    check_fails("ZIP", zip, GF_RASTER_UNSUPPORTED, "ZIP");
}

/* ---- HDR ------------------------------------------------------------------------------------- */

static void put_written(void *context, void *data, int size) {
    small_put(context, data, (size_t)size);
}

/* Rows of 3 pixels are stored as they are, those of 20 as runs. */
TEST(reads_hdr_to_the_last_byte) {
    float samples[20 * 3 * 3];
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        samples[i] = (float)(i / 9 % 7 + 8);
    for (uint32_t width = 3; width <= 20; width += 17) {
        const gf_format format = {width, 3, 3, GF_F32, false};
        AUTO(free) small_file file = {0};
        unsigned char *pixels;
        gf_raster raster;
        assert_true(gf_stb_write(GF_RASTER_HDR, put_written, &file, &format, samples));
        assert_int_equal(small_read(&raster, file.data, file.size, 1, &pixels), GF_RASTER_READ);
        assert_memory_equal(pixels, samples, sizeof(float) * width * 9);
        free(pixels);
        for (size_t cut = GF_RASTER_MIN_BYTES; cut < file.size; cut++) {
            assert_int_not_equal(small_read(&raster, file.data, cut, 1, &pixels), GF_RASTER_READ);
            free(pixels);
        }
        for (size_t i = 0; i < file.size; i++)
            for (unsigned bit = 0; bit < 8; bit++) {
                file.data[i] ^= (unsigned char)(1u << bit);
                (void)small_read(&raster, file.data, file.size, 1, &pixels);
                file.data[i] ^= (unsigned char)(1u << bit);
                free(pixels);
            }
    }
}

int main(void) {
    return test_main(NULL);
}
