/* Generated hostile PBM, PGM, PPM, PAM, PFM and NPY files, and files of stb's formats: each must be
 * rejected with one line or be read, in limited time. */
#include "hostile.h"

#include "io/stb/raster.h"
#include "small_files.h"

static hostile totals;
static gf_open_source *open_as;
static const gf_limits small = {.max_pixels = 100000, .max_memory = 1 << 22};

static void try_file(const png_bytes *file, const char *what, size_t where, hostile *to) {
    const double start = cpu_seconds();
    outcome got = load(file, file->size, &small, open_as, 2);
    if (got.error.status != GF_OK)
        assert_message(&got.error, "x.png: ");
    hostile_count(to, got.error.status == GF_OK, start, what, where);
    clear(&got);
}

static void try_variants(const png_bytes *file, const char *what) {
    every_cut(file, try_file, what, &totals);
    every_flip(file, hostile_all() ? 1 : 3, NULL, try_file, what, &totals);
    every_byte(file, try_file, what, &totals);
}

#define FILE_OF(literal)                                                                           \
    { (unsigned char *)(uintptr_t)(literal), sizeof(literal) - 1 }

TEST(rows) {
    static const png_bytes files[] = {
        FILE_OF("P2\n# comment\n3 2\n255\n0 1 2\n253 254 255\n"),
        FILE_OF("P3 1 2 65535 1 2 3 65535 0 9\n"),
        FILE_OF("P1\n3 2\n010\n1 0 1\n"),
        FILE_OF("P4\n11 2\n\xff\x20\0\1"),
        FILE_OF("P5\n3 2\n255\nabcdef"),
        FILE_OF("P5 2 2 1023\n\0\1\2\3\3\xff\1\0"),
        FILE_OF("P5 2 2 65535\n\0\1\2\3\4\5\6\7"),
        FILE_OF("P6\r1 1\r65535\r123456"),
        FILE_OF("P7\nWIDTH 2\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\nabcdefgh"),
        FILE_OF("Pf\n2 2\n-1.0\n\0\0\x80?\0\0\0\0\0\0\xc0\x7f\1\0\0\0"),
        FILE_OF("PF\n1 1\n1e3\n?\x80\0\0@\0\0\0@@\0\0"),
        FILE_OF(
            "\x93NUMPY\1\0\x3f\0{'descr': '|u1', 'fortran_order': False, 'shape': (3, 1, 2), }\n"
            "abcdef"),
        FILE_OF(
            "\x93NUMPY\2\0\x36\0\0\0{\"shape\":(2,2),\"descr\":\">f4\",\"fortran_order\":False}  \n"
            "0123456789abcdef"),
        FILE_OF("farbfeld\0\0\0\2\0\0\0\1"
                "0123456789abcdef"),
    };
    open_as = plain_source_open;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        try_variants(&files[i], "rows");
    hostile_print(&totals);
}

/* Invalid numbers in every field of every header. */
TEST(numbers) {
    static const char *const numbers[] = {"0",
                                          "-1",
                                          "00000000000000000000000000000000000000000000000002",
                                          "2147483648",
                                          "4294967296",
                                          "4294967297",
                                          "9223372036854775808",
                                          "18446744073709551615",
                                          "18446744073709551616",
                                          "99999999999999999999999999999999999999999999",
                                          "1e3",
                                          "0x10",
                                          "nan",
                                          "inf",
                                          "",
                                          "1.",
                                          "+3"};
    static const char *const headers[] = {
        "P2\n%s 2\n255\n1 2 3 4",
        "P4\n%s 1\n1234",
        "P5\n2 %s\n255\n1234",
        "P6\n1 1\n%s\n123456",
        "P3 1 1 255 1 %s 3",
        "P7\nWIDTH %s\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nENDHDR\n1234",
        "P7\nWIDTH 1\nHEIGHT %s\nDEPTH 1\nMAXVAL 255\nENDHDR\n1234",
        "P7\nWIDTH 1\nHEIGHT 1\nDEPTH %s\nMAXVAL 255\nENDHDR\n1234",
        "P7\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL %s\nENDHDR\n1234",
        "Pf\n%s 1\n1\n1234",
        "PF\n1 %s\n-1\n123456789012",
        "Pf\n1 1\n%s\n1234"};
    open_as = plain_source_open;
    for (size_t h = 0; h < sizeof headers / sizeof *headers; h++)
        for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
            const char *hole = strstr(headers[h], "%s");
            AUTO(free) png_bytes file = {malloc(300), 0};
            assert_non_null(file.data);
            file.size =
                (size_t)snprintf((char *)file.data, 300, "%.*s%s%s", (int)(hole - headers[h]),
                                 headers[h], numbers[n], hole + 2);
            try_file(&file, headers[h], n, &totals);
        }
    hostile_print(&totals);
}

/* Headers, comments, lines, numbers and blanks without an end. */
TEST(headers_without_end) {
    static const char *const starts[] = {"P5\n#", "P5\n# c\n#",    "P7\n#",           "P7\nWIDTH 1",
                                         "P7\n",  "P7\nTUPLTYPE ", "P2\n1 1\n255\n#", "PF\n1 1\n",
                                         "Pf 1 ", "P3 ",           "P1 9 9 "};
    static const char fillers[] = {'x', '1', ' ', '\n', '#', '\0', '\r'};
    const size_t size = hostile_all() ? 16 << 20 : 1 << 20;
    open_as = plain_source_open;
    AUTO(free) png_bytes file = {malloc(size), size};
    assert_non_null(file.data);
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        for (size_t f = 0; f < sizeof fillers; f++) {
            memset(file.data, fillers[f], size);
            memcpy(file.data, starts[i], strlen(starts[i]));
            try_file(&file, starts[i], f, &totals);
        }
    hostile_print(&totals);
}

/* ---- formats that stb decodes ------------------------------------------------------------ */

static void on_write(void *context, void *data, int size) {
    png_bytes *file = context;
    file->data = realloc(file->data, file->size + (size_t)size);
    assert_non_null(file->data);
    memcpy(file->data + file->size, data, (size_t)size);
    file->size += (size_t)size;
}

TEST(written_by_stb) {
    unsigned char pixels[5 * 4 * 3];
    float floats[5 * 4 * 3];
    open_as = gf_stb_source_open;
    for (size_t i = 0; i < sizeof pixels; i++) {
        pixels[i] = (unsigned char)(i * i);
        floats[i] = (float)pixels[i];
    }
    static const gf_raster_kind written[] = {GF_RASTER_BMP, GF_RASTER_TGA, GF_RASTER_HDR};
    for (size_t k = 0; k < sizeof written / sizeof *written; k++) {
        AUTO(free) png_bytes file = {0};
        const bool hdr = written[k] == GF_RASTER_HDR;
        const gf_format format = {5, 4, 3, hdr ? GF_F32 : GF_U8, false};
        assert_true(gf_stb_write(written[k], on_write, &file, &format,
                                 hdr ? (const void *)floats : pixels));
        every_cut(&file, try_file, "cut", &totals);
        every_flip(&file, hostile_all() ? 1 : 7, NULL, try_file, "bit", &totals);
        if (hostile_all())
            every_byte(&file, try_file, "byte", &totals);
    }
    hostile_print(&totals);
}

TEST(written_by_hand) {
    static const png_bytes files[] = {
        FILE_OF("8BPS\0\1\0\0\0\0\0\0\0\3\0\0\0\2\0\0\0\2\0\x08\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                "abcdefghijkl"),
        FILE_OF("8BPS\0\1\0\0\0\0\0\0\0\3\0\0\0\1\0\0\0\4\0\x08\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\1"
                "\0\2\0\2\0\5\xfdx\xfdy\3abcd"),
        FILE_OF("GIF89a\2\0\2\0\xf0\0\0abcdef!\xf9\4\1\0\0\1\0,\0\0\0\0\2\0\2\0\0\2\2\x4c\1\0;"),
        FILE_OF("\0\1\x09\0\0\2\0\x18\0\0\0\0\4\0\2\0\x08\0"
                "abcdef"
                "\x83\1\3\0\1\0\1"),
        FILE_OF("\0\0\x0a\0\0\0\0\0\0\0\0\0\3\0\2\0\x18\x20\x82"
                "abc\2defghijkl"),
        FILE_OF("BM\x42\0\0\0\0\0\0\0\x3e\0\0\0\x28\0\0\0\3\0\0\0\1\0\0\0\1\0\4\0\0\0\0\0\0\0\0\0\0"
                "\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"
                "abc\0def\0\1\0\0\0"),
    };
    open_as = gf_stb_source_open;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        try_variants(&files[i], "by hand");
    hostile_print(&totals);
}

/* Runs, masks, palettes and frames, as small_files.h makes them. */
TEST(generated_rasters) {
    static const unsigned char indices[] = {1, 2, 3, 1, 0, 2};
    small_file files[] = {
        bmp_begin(&(bmp_spec){.width = 5, .height = 2, .bits = 4, .compression = 2, .colors = 3}),
        bmp_begin(&(bmp_spec){
            .width = 2, .height = -1, .bits = 16, .compression = 3, .header = 56, .gap = 3}),
        tga_begin(&(tga_spec){.type = 9,
                              .width = 4,
                              .height = 1,
                              .bits = 8,
                              .descriptor = 0x30,
                              .first = 3,
                              .colors = 2,
                              .color_bits = 32}),
        gif_begin(3, 2, 2, 1),
        psd_make(&(psd_spec){.width = 3,
                             .height = 1,
                             .channels = 2,
                             .depth = 16,
                             .mode = 1,
                             .packed = true,
                             .transparent = true},
                 (const unsigned char *)"aaaaaabbccdd")};
    open_as = gf_stb_source_open;
    small_put(&files[0], "\5\x12\0\0\0\3\x12\x34\0\2\1\0\1\1\0\1", 16);
    small_put(&files[1], "abcd", 4);
    small_put(&files[2], "\x81\3\1\4\5", 5);
    for (unsigned i = 0; i < 3; i++)
        gif_add(
            &files[3], 2,
            &(gif_frame){.x = i, .width = 3, .height = 2, .indices = indices, .disposal = i + 1});
    gif_end(&files[3]);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        try_variants(&(png_bytes){files[i].data, files[i].size}, "generated");
        free(files[i].data);
    }
    hostile_print(&totals);
}

int main(void) {
    return test_main(NULL);
}
