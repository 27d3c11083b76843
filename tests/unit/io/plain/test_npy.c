/* NumPy files: images and their headers. tests/system/numpy.sh compares written files with NumPy.
 */
#include "io_util.h"

#include "io/plain/rows.h"

/* Make a file from a version, the text of the header and the pixels. */
static size_t put_npy(const char *path, unsigned major, const char *text, size_t length,
                      const void *pixels, size_t size) {
    AUTO(free) unsigned char *file = test_alloc(12 + length + size);
    const size_t prefix = major == 1 ? 10 : 12;
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (unsigned char)major;
    file[7] = 0;
    for (size_t i = 8; i < prefix; i++)
        file[i] = (unsigned char)(length >> (8 * (i - 8)));
    memcpy(file + prefix, text, length);
    memcpy(file + prefix + length, pixels, size);
    put_bytes(path, file, prefix + length + size);
    return prefix + length + size;
}

static void assert_reads(unsigned major, const char *text, const void *pixels, size_t size,
                         const gf_format *format, const void *expected) {
    put_npy(in_directory("x.npy"), major, text, strlen(text), pixels, size);
    assert_loads(in_directory("x.npy"), NULL, 2, format, expected);
}

/* Six bytes follow the header. */
static void assert_fails(const char *text, size_t length, const char *part) {
    put_npy(in_directory("x.npy"), 1, text, length, "abcdef", 6);
    assert_load_fails(in_directory("x.npy"), NULL, part);
}

/* ---- reading --------------------------------------------------------------------------------- */

#define HEAD(dtype, shape)                                                                         \
    "{'descr': '" dtype "', 'fortran_order': False, 'shape': " shape ", }   \n"

TEST(reads_every_dtype) {
    const uint16_t deep[] = {0x0102, 0xfffe};
    const uint32_t floats[] = {0x7fc12345, 0x80000000}; /* a NaN keeps its payload */
    assert_reads(1, HEAD("|u1", "(2, 3)"), TEXT("abcdef"), &(gf_format){3, 2, 1, GF_U8, false},
                 "abcdef");
    assert_reads(1, HEAD("<u1", "(2, 3)"), TEXT("abcdef"), &(gf_format){3, 2, 1, GF_U8, false},
                 "abcdef");
    assert_reads(1, HEAD("<u2", "(1, 2)"), TEXT("\2\1\xfe\xff"),
                 &(gf_format){2, 1, 1, GF_U16, false}, deep);
    assert_reads(1, HEAD(">u2", "(2, 1)"), TEXT("\1\2\xff\xfe"),
                 &(gf_format){1, 2, 1, GF_U16, false}, deep);
    assert_reads(1, HEAD("<f4", "(1, 2)"), TEXT("\x45\x23\xc1\x7f\0\0\0\x80"),
                 &(gf_format){2, 1, 1, GF_F32, false}, floats);
    assert_reads(1, HEAD(">f4", "(1, 2)"), TEXT("\x7f\xc1\x23\x45\x80\0\0\0"),
                 &(gf_format){2, 1, 1, GF_F32, false}, floats);
}

TEST(reads_every_shape_and_version) {
    for (unsigned major = 1; major <= 3; major++) {
        assert_reads(major, HEAD("|u1", "(3, 2)"), TEXT("abcdef"),
                     &(gf_format){2, 3, 1, GF_U8, false}, "abcdef");
        assert_reads(major, HEAD("|u1", "(3, 2, 1)"), TEXT("abcdef"),
                     &(gf_format){2, 3, 1, GF_U8, false}, "abcdef");
        assert_reads(major, HEAD("|u1", "(3, 1, 2)"), TEXT("abcdef"),
                     &(gf_format){1, 3, 2, GF_U8, false}, "abcdef");
        assert_reads(major, HEAD("|u1", "(1, 2, 3)"), TEXT("abcdef"),
                     &(gf_format){2, 1, 3, GF_U8, false}, "abcdef");
        assert_reads(major, HEAD("|u1", "(1, 1, 4)"), TEXT("abcd and more"),
                     &(gf_format){1, 1, 4, GF_U8, false}, "abcd");
    }
}

/* Whitespace, quotes, order of keys and commas at the end as Python allows them. */
TEST(reads_other_spellings) {
    const gf_format format = {3, 2, 1, GF_U8, false};
    assert_reads(1, "{'descr':'|u1','fortran_order':False,'shape':(2,3)}", TEXT("abcdef"), &format,
                 "abcdef");
    assert_reads(1, "{\"shape\": (2, 3,), \"fortran_order\": False, \"descr\": \"|u1\"}",
                 TEXT("abcdef"), &format, "abcdef");
    assert_reads(1, " {\n'shape' :\t( 2 , 3 ) ,\n'descr': '|u1' , 'fortran_order' :  False }\n\n",
                 TEXT("abcdef"), &format, "abcdef");
}

/* Byte orders, names and numbers of Python 2 that numpy.load accepts. */
TEST(reads_other_dtypes) {
    static const char *const deep[] = {"=u2", "|u2", "u2", "H", "uint16", "ushort"};
    const uint16_t native[] = {0x0102, 0xfffe};
    char text[128];
    for (size_t i = 0; i < sizeof deep / sizeof *deep; i++) {
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (1L, 2), }",
                 deep[i]);
        assert_reads(1, text, native, sizeof native, &(gf_format){2, 1, 1, GF_U16, false}, native);
    }
    assert_reads(1, HEAD("<H", "(1, 2)"), TEXT("\2\1\xfe\xff"),
                 &(gf_format){2, 1, 1, GF_U16, false}, native);
    assert_reads(1, HEAD(">u1", "(2, 3)"), TEXT("abcdef"), &(gf_format){3, 2, 1, GF_U8, false},
                 "abcdef");
    assert_reads(1, HEAD("B", "(2, 3)"), TEXT("abcdef"), &(gf_format){3, 2, 1, GF_U8, false},
                 "abcdef");
}

TEST(rejects_other_arrays) {
    static const char *const dtypes[][2] = {
        {HEAD("|b1", "(2, 3)"), "(8-bit bool); read them with --as f32 or --as u16"},
        {HEAD("<i2", "(1, 3)"), "(16-bit signed, little-endian); read"},
        {HEAD("<i", "(1, 1)"), "(32-bit signed, little-endian); read"},
        {HEAD(">L", "(1, 1)"), "the file ends too early, in row 1 of 1"},
        {HEAD("<q", "(1, 1)"), "the file ends too early, in row 1 of 1"},
        {HEAD("float", "(1, 1)"), "the file ends too early, in row 1 of 1"},
        {HEAD("<c8", "(2, 3)"),
         "has dtype '<c8', which is not supported; save abs(array).astype(numpy.float32)"},
        {HEAD("|O", "(2, 3)"), "dtype '|O', which is not supported; save array.astype("},
        {HEAD("<M8[ns]", "(2, 3)"), "dtype '<M8[ns]', which"},
        {HEAD("", "(2, 3)"), "dtype '', which"},
        {HEAD("u", "(2, 3)"), "dtype 'u', which"},
        {HEAD("<", "(2, 3)"), "dtype '<', which"},
        {HEAD("<u99999999999999999999", "(2, 3)"), "dtype '<u99999999999999999999', which"},
        {HEAD("31 characters are accepted here", "(2, 3)"),
         "dtype '31 characters are accepted here'"},
        {"{'descr': [('x', '<u8'), ('value', '|u1')], ", "has a structured dtype; save a field"},
        {"{'descr': ('|u1', (2,)), ", "has a structured dtype; save a field"},
        {HEAD("|u1", "()"),
         "is 0-dimensional, images have 2 or more dimensions; save "
         "array.reshape(height, width)"},
        {HEAD("|u1", "(6,)"), "is 1-dimensional"},
        {HEAD("|u1", "(3, 1, 0)"), "empty"},
        {HEAD("|u1", "(0, 3, 5)"), "the array is empty; it needs one image"},
        {HEAD("|u1", "(4294967297, 1, 5)"), "the array is too large; save a part of it"},
        {HEAD("|u1", "(4294967296, 4294967296, 5, 5)"), "too large"},
        {HEAD("|u1", "(0, 3)"), "empty"},
        {HEAD("|u1", "(3, 0)"), "empty"},
        {HEAD("|u1", "(4294967296, 4294967296)"), "--max-pixels"},
        {HEAD("|u1", "(1, 18446744073709551616)"), "--max-pixels"},
        {HEAD("|u1", "(99999999999999999999999999999, 1)"), "--max-pixels"},
        {HEAD("|u1", "(2, 4)"), "the file ends too early, in row 2 of 2"},
        {HEAD("<f4", "(1, 2)"), "the file ends too early, in row 1 of 1"},
    };
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        assert_fails(dtypes[i][0], strlen(dtypes[i][0]), dtypes[i][1]);
}

static const char *const invalid_texts[] = {
    "",
    "x",
    "{",
    "{}",
    "{'descr'",
    "{'descr': ",
    "{'descr': '|u1",
    "{'descr': '|u1'",
    "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3",
    "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3)",
    "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), } x",
    "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }}",
    "{{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }",
    "{'descr': '|u1', 'fortran_order': False, }",
    "{'descr': '|u1', 'shape': (2, 3), }",
    "{'fortran_order': False, 'shape': (2, 3), }",
    "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), 'shape': (2, 3), }",
    "{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }",
    "{'descr': '|u1', 'fortran_order': False, 'fortran_order': False, 'shape': (2, 3), }",
    "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), 'other': 1, }",
    "{'descr': '|u1' 'fortran_order': False, 'shape': (2, 3), }",
    "{'descr': '|u1',, 'fortran_order': False, 'shape': (2, 3), }",
    "{, 'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }",
    "{'descr' '|u1', 'fortran_order': False, 'shape': (2, 3), }",
    "{'descr: '|u1', 'fortran_order': False, 'shape': (2, 3), }",
    "{'descr': \"|u1', 'fortran_order': False, 'shape': (2, 3), }",
    "{'descr': '\\x7cu1', 'fortran_order': False, 'shape': (2, 3), }",
    "{'descr': '|u1\n', 'fortran_order': False, 'shape': (2, 3), }",
    "{'descr': '|\xc3\xa9', 'fortran_order': False, 'shape': (2, 3), }",
    "{'descr': '|u10000000000000000000000000000000000000', 'fortran_order': False, }",
    "{'descr': '32 characters are not accepted..', 'fortran_order': False, 'shape': (2, 3), }",
    "{'descr': None, 'fortran_order': False, 'shape': (2, 3), }",
    "{'descr': '|u1', 'fortran_order': false, 'shape': (2, 3), }",
    "{'descr': '|u1', 'fortran_order': 0, 'shape': (2, 3), }",
    "{'descr': '|u1', 'fortran_order': Falsehood, 'shape': (2, 3), }",
    "{'descr': '|u1', 'fortran_order': False, 'shape': 6, }",
    "{'descr': '|u1', 'fortran_order': False, 'shape': (6), }",
    "{'descr': '|u1', 'fortran_order': False, 'shape': [2, 3], }",
    "{'descr': '|u1', 'fortran_order': False, 'shape': (2 3), }",
    "{'descr': '|u1', 'fortran_order': False, 'shape': (2, , 3), }",
    "{'descr': '|u1', 'fortran_order': False, 'shape': (, 3), }",
    "{'descr': '|u1', 'fortran_order': False, 'shape': (-2, 3), }",
    "{'descr': '|u1', 'fortran_order': False, 'shape': (+2, 3), }",
    "{'descr': '|u1', 'fortran_order': False, 'shape': (02, 3), }",
    "{'descr': '|u1', 'fortran_order': False, 'shape': (2.0, 3), }",
    "{'descr': '|u1', 'fortran_order': False, 'shape': (0x2, 3), }",
    "{'descr': '|u1', 'fortran_order': False, 'shape': (2LL, 3), }",
    "{'descr': '|u1', 'fortran_order': False, 'shape': ((2, 3)), }",
    "({'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), })",
    "{__import__('os').system('true'): 0}",
};

TEST(rejects_invalid_texts) {
    char deep[9000];
    for (size_t i = 0; i < sizeof invalid_texts / sizeof *invalid_texts; i++)
        assert_fails(invalid_texts[i], strlen(invalid_texts[i]),
                     "its NumPy header is invalid; save the array again");
    assert_fails(TEXT("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }\0"),
                 "is invalid");
    assert_fails(TEXT("{'descr': '|u1\0', 'fortran_order': False, 'shape': (2, 3), }"),
                 "is invalid");
    assert_fails(TEXT("{'descr': '|u1', \0'fortran_order': False, 'shape': (2, 3), }"),
                 "is invalid");
    static const char nested[] = "({['\" ";
    for (const char *c = nested; *c; c++) {
        memset(deep, *c, sizeof deep);
        assert_fails(deep, sizeof deep, "is invalid");
        memcpy(deep, "{'shape': ", 10);
        assert_fails(deep, sizeof deep, "is invalid");
    }
    memset(deep, '1', sizeof deep); /* one number of thousands of digits */
    memcpy(deep, "{'shape': (", 11);
    static const char end[] = ", 3), 'descr': '|u1', 'fortran_order': False}";
    memcpy(deep + sizeof deep - strlen(end), end, strlen(end));
    assert_fails(deep, sizeof deep, "--max-pixels");
}

TEST(rejects_invalid_starts) {
    static const char text[] = HEAD("|u1", "(2, 3)");
    char long_text[10001];
    const char *path = in_directory("x.npy");
    for (unsigned major = 1; major <= 3; major += 2) {
        const size_t size = put_npy(path, major, TEXT(text), "abcdef", 6);
        for (size_t cut = size; cut-- > 6;) {
            assert_int_equal(truncate(path, (off_t)cut), 0);
            assert_load_fails(path, NULL, "x.npy: the file ends too early");
        }
    }
    for (unsigned major = 0; major <= 255; major += major == 0 ? 4 : 251) {
        put_npy(path, major, TEXT(text), "abcdef", 6);
        assert_load_fails(path, NULL,
                          ".0 of the NumPy format is not supported, only 1.0, 2.0 and 3.0");
    }
    assert_bytes_fail("x.npy", TEXT("\x93NUMPY\1\1\1\0{"), NULL, "version 1.1 of the NumPy format");
    assert_bytes_fail("x.npy", TEXT("\x93NUMPY\2\0\xff\xff\xff\xff{'descr'"), NULL,
                      "its NumPy header has 4294967295 bytes, over the limit of 10000");
    assert_bytes_fail("x.npy", TEXT("\x93NUMPY\1\0\xff\xff{'descr'"), NULL,
                      "its NumPy header has 65535 bytes");
    assert_bytes_fail("x.npy", TEXT("\x93NUMPX\1\0\1\0{"), NULL,
                      "unsupported image format; supported: PNG, PBM, PGM, PPM, PAM, PFM, NPY");
    /* The longest text is accepted. */
    memset(long_text, ' ', sizeof long_text);
    memcpy(long_text, text, sizeof text - 1);
    put_npy(path, 2, long_text, 10000, "abcdef", 6);
    assert_loads(path, NULL, 2, &(gf_format){3, 2, 1, GF_U8, false}, "abcdef");
    put_npy(path, 2, long_text, 10001, "abcdef", 6);
    assert_load_fails(path, NULL, "has 10001 bytes, over the limit");
}

TEST(reports_the_format) {
    static const char *const cases[][2] = {{HEAD("|u1", "(1, 2)"), "8-bit"},
                                           {HEAD("<u2", "(1, 2)"), "16-bit, little-endian"},
                                           {HEAD(">f4", "(1, 2)"), "32-bit float, big-endian"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gf_file_info info;
        put_npy(in_directory("x.npy"), 1, cases[i][0], strlen(cases[i][0]), "abcdefgh", 8);
        assert_ok(gf_inspect_file(in_directory("x.npy"), NULL, &info, &why));
        assert_string_equal(info.kind, "npy");
        assert_string_equal(info.stored, cases[i][1]);
        assert_int_equal(info.format.width, 2);
    }
}

/* Any number of threads reads rows of either byte order, from any row on. */
TEST(reads_the_same_pixels_with_any_threads) {
    static const struct {
        const char *text;
        gf_format format;
        bool big;
    } cases[] = {{HEAD("|u1", "(900, 1001, 3)"), {1001, 900, 3, GF_U8, false}, false},
                 {HEAD("<u2", "(90000, 11)"), {11, 90000, 1, GF_U16, false}, false},
                 {HEAD(">u2", "(900, 1001, 2)"), {1001, 900, 2, GF_U16, false}, true},
                 {HEAD(">f4", "(900, 501, 4)"), {501, 900, 4, GF_F32, false}, true}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const gf_format *format = &cases[c].format;
        const size_t row = gf_row_bytes(format), bytes = row * format->height;
        const size_t size = gf_type_bytes(format->type);
        AUTO(free)
        unsigned char *pixels = random_pixels(format, (uint32_t)c), *stored = test_alloc(bytes);
        AUTO(free) unsigned char *one = test_alloc(row);
        for (size_t i = 0; i < bytes; i++)
            stored[i] =
                pixels[cases[c].big == gf_host_is_little() ? i / size * size + size - 1 - i % size
                                                           : i];
        put_npy(in_directory("x.npy"), 1, cases[c].text, strlen(cases[c].text), stored, bytes);
        for (uint32_t threads = 1; threads <= 16; threads += 5) {
            const gf_limits limits = {.threads = threads};
            gf_source *source = open_source(in_directory("x.npy"), &limits);
            assert_true(threads == 1 ? source->threads == 0 : source->threads > 1);
            source->ops->seek(source, 777);
            assert_ok(source->ops->read(source, one, row, 1, &why));
            assert_memory_equal(one, pixels + 777 * row, row);
            source->ops->close(source);
            assert_loads(in_directory("x.npy"), &limits, 400, format, pixels);
        }
    }
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Headers of numpy.save of NumPy 1.24 on little-endian machines. */
TEST(writes_exact_bytes) {
    const uint16_t deep[] = {0x0102, 0xfffe, 3};
    const float floats[] = {1.0f, -2.0f};
    const gf_file_options npy = {.write.format = "npy"};
    char file[200];
    const char *path = in_directory("x.npy");
    assert_ok(save_image(path, &(gf_format){2, 1, 1, GF_U8, false}, "ab", NULL, NULL, 1));
    sprintf(file, "%-127s\nab",
            "\x93NUMPY\1 v {'descr': '|u1', 'fortran_order': False, 'shape': (1, 2), }");
    file[7] = file[9] = 0;
    assert_bytes(path, file, 130);
    path = in_directory("x.NPY");
    assert_ok(save_image(path, &(gf_format){1, 1, 3, GF_U16, false}, deep, NULL, NULL, 1));
    sprintf(file, "%-127s\n\2\1\xfe\xff\3",
            "\x93NUMPY\1 v {'descr': '<u2', 'fortran_order': False, 'shape': (1, 1, 3), }");
    file[7] = file[9] = file[133] = 0;
    assert_bytes(path, file, 134);
    path = in_directory("x.data");
    assert_ok(save_image(path, &(gf_format){1, 1, 2, GF_F32, true}, floats, NULL, &npy, 1));
    sprintf(file, "%-127s\n",
            "\x93NUMPY\1 v {'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 2), }");
    file[7] = file[9] = 0;
    memcpy(file + 128, "\0\0\x80\x3f\0\0\0\xc0", 8);
    assert_bytes(path, file, 136);
}

/* The number of bytes does not depend on the first dimension, which sample sinks write last. */
TEST(writes_headers_of_fixed_sizes) {
    static const uint64_t shapes[][3] = {
        {0, 1, 1}, {UINT64_MAX, 1, 1}, {7, UINT64_MAX, 4}, {UINT64_MAX, UINT64_MAX, 4}};
    char descr[101], header[GF_NPY_HEADER_BYTES];
    memset(descr, 'x', 100);
    descr[100] = '\0';
    for (size_t i = 0; i < 4; i++) {
        for (size_t dimensions = 1; dimensions <= 3; dimensions++) {
            assert_int_equal(gf_npy_put_header(header, "'<u2'", shapes[i], dimensions), 128);
            assert_int_equal(header[8], 118);
            assert_int_equal(header[127], '\n');
        }
        assert_int_equal(gf_npy_put_header(header, descr, shapes[i], 1), 192);
        assert_int_equal((unsigned char)header[8], 182);
        assert_int_equal(header[191], '\n');
    }
    /* The same limit as in NumPy. */
    descr[45] = '\0';
    assert_int_equal(gf_npy_put_header(header, descr, shapes[0], 1), 192);
    descr[44] = '\0';
    assert_int_equal(gf_npy_put_header(header, descr, shapes[0], 1), 128);
}

TEST(reads_all_formats_that_it_writes) {
    for (uint32_t channels = 1; channels <= 4; channels++)
        for (int type = GF_U8; type <= GF_F32; type++)
            assert_round_trips("x.npy", (gf_format){0, 0, channels, (gf_type)type, false});
    assert_true(gf_sink_has_parts(in_directory("x.npy"), &(gf_file_options){0}));
}

int main(void) {
    return test_main_in_directory();
}
