/* Bytes of files of extracted samples, compared with bytes made by hand and by independent code. */
#define _POSIX_C_SOURCE 200809L

#include "sample_util.h"
#include "testing.h"

#include <math.h>

#include "io/bytes.h"

static const gf_sample_layout luma32 = {
    .type = GF_F32, .width = 2, .channels = 1, .names = {"luma"}, .indices = {GF_SAMPLE_LUMA}};
/* Only blue and alpha: the file contains the index of the channel in the pixel. */
static const gf_sample_layout blue_alpha8 = {
    .type = GF_U8, .width = 3, .channels = 2, .names = {"b", "a"}, .indices = {2, 3}};

/* ---- bytes, by hand -------------------------------------------------------------------------- */

/* Bin 5: red of (0, 0), blue of (3, 0). Bin 65535: green of (1, 1) at (1 * 4 + 1) * 3 + 1 = 16. The
 * values are not aligned. */
static void put_rgb16(gf_sample_sink *sink) {
    const uint16_t low[] = {0, 1234}, high = 65535;
    unsigned char values[5];
    memcpy(values + 1, low, sizeof low);
    put(sink, 5, (const uint64_t[]){0, 11}, values + 1, 2);
    put(sink, 7, NULL, NULL, 0);
    memcpy(values + 1, &high, sizeof high);
    put(sink, 65535, (const uint64_t[]){16}, values + 1, 1);
}

static void put_luma32(gf_sample_sink *sink) {
    const float values[] = {0.1f, -0.0f, INFINITY, -INFINITY, 16777216.0f, 1e-45f, -2.5e20f};
    put(sink, 0, (const uint64_t[]){0, 1, 2, 3, 4, 5, 1000001}, values, 7);
}

/* 3 pixels per row, 2 channels: position 7 is alpha of (0, 1). */
static void put_blue_alpha8(gf_sample_sink *sink) {
    put(sink, 0, (const uint64_t[]){2, 7}, "\x01\x02", 2);
}

static const struct example {
    const char *name;
    const gf_sample_layout *layout;
    void (*put)(gf_sample_sink *sink);
    uint64_t count;
    const char *csv, *json;
    const char *npy_text;
    const char *npy_records; /* little-endian */
    size_t npy_size;
} examples[] = {
    {
        .name = "grey8",
        .layout = &grey8,
        .put = put_grey8,
        .count = 4,
        .csv = "x,y,channel,value\n"
               "0,0,grey,0\n"
               "2,0,grey,9\n"
               "0,1,grey,10\n"
               "1,2,grey,255\n",
        .json = "{\"schema\":\"gpufilter-samples\",\"schema_version\":1,"
                "\"fields\":[\"x\",\"y\",\"channel\",\"value\"],\"samples\":[\n"
                "[0,0,\"grey\",0],\n"
                "[2,0,\"grey\",9],\n"
                "[0,1,\"grey\",10],\n"
                "[1,2,\"grey\",255]\n"
                "]}\n",
        .npy_text = "{'descr': [('x', '<u8'), ('y', '<u8'), ('channel', '|u1'), ('value', '|u1')], "
                    "'fortran_order': False, 'shape': (4,), }",
        .npy_records = "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x00"
                       "\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x09"
                       "\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\x0a"
                       "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\0\xff",
        .npy_size = 18,
    },
    {
        .name = "rgb16",
        .layout = &rgb16,
        .put = put_rgb16,
        .count = 3,
        .csv = "bin,x,y,channel,value\n"
               "5,0,0,r,0\n"
               "5,3,0,b,1234\n"
               "65535,1,1,g,65535\n",
        .json = "{\"schema\":\"gpufilter-samples\",\"schema_version\":1,"
                "\"fields\":[\"bin\",\"x\",\"y\",\"channel\",\"value\"],\"samples\":[\n"
                "[5,0,0,\"r\",0],\n"
                "[5,3,0,\"b\",1234],\n"
                "[65535,1,1,\"g\",65535]\n"
                "]}\n",
        .npy_text = "{'descr': [('bin', '<u4'), ('x', '<u8'), ('y', '<u8'), ('channel', '|u1'), "
                    "('value', '<u2')], 'fortran_order': False, 'shape': (3,), }",
        .npy_records = "\5\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                       "\5\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2\xd2\x04"
                       "\xff\xff\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1\xff\xff",
        .npy_size = 23,
    },
    {
        .name = "luma32",
        .layout = &luma32,
        .put = put_luma32,
        .count = 7,
        .csv = "x,y,channel,value\n"
               "0,0,luma,0.1\n"
               "1,0,luma,-0\n"
               "0,1,luma,inf\n"
               "1,1,luma,-inf\n"
               "0,2,luma,16777216\n"
               "1,2,luma,1e-45\n"
               "1,500000,luma,-2.5e+20\n",
        .json = "{\"schema\":\"gpufilter-samples\",\"schema_version\":1,"
                "\"fields\":[\"x\",\"y\",\"channel\",\"value\"],\"samples\":[\n"
                "[0,0,\"luma\",0.1],\n"
                "[1,0,\"luma\",-0.0],\n"
                "[0,1,\"luma\",\"inf\"],\n"
                "[1,1,\"luma\",\"-inf\"],\n"
                "[0,2,\"luma\",16777216],\n"
                "[1,2,\"luma\",1e-45],\n"
                "[1,500000,\"luma\",-2.5e+20]\n"
                "]}\n",
        .npy_text = "{'descr': [('x', '<u8'), ('y', '<u8'), ('channel', '|u1'), ('value', '<f4')], "
                    "'fortran_order': False, 'shape': (7,), }",
        .npy_records = "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\xcd\xcc\xcc\x3d"
                       "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\x00\x00\x00\x80"
                       "\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\xff\x00\x00\x80\x7f"
                       "\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\xff\x00\x00\x80\xff"
                       "\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\xff\x00\x00\x80\x4b"
                       "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\xff\x01\x00\x00\x00"
                       "\1\0\0\0\0\0\0\0\x20\xa1\x07\0\0\0\0\0\xff\x27\xd7\x58\xe1",
        .npy_size = 21,
    },
    {
        .name = "blue_alpha8",
        .layout = &blue_alpha8,
        .put = put_blue_alpha8,
        .count = 2,
        .csv = "x,y,channel,value\n"
               "1,0,b,1\n"
               "0,1,a,2\n",
        .json = "{\"schema\":\"gpufilter-samples\",\"schema_version\":1,"
                "\"fields\":[\"x\",\"y\",\"channel\",\"value\"],\"samples\":[\n"
                "[1,0,\"b\",1],\n"
                "[0,1,\"a\",2]\n"
                "]}\n",
        .npy_text = "{'descr': [('x', '<u8'), ('y', '<u8'), ('channel', '|u1'), ('value', '|u1')], "
                    "'fortran_order': False, 'shape': (2,), }",
        .npy_records = "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2\x01"
                       "\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\3\x02",
        .npy_size = 18,
    },
};

/* Return the expected file of an example, allocated with malloc. */
static char *expect(const struct example *example, const char *kind, size_t *size) {
    const size_t records = example->count * example->npy_size;
    char *all = test_zeros(1024);
    if (strcmp(kind, "npy") != 0) {
        strcpy(all, strcmp(kind, "csv") == 0 ? example->csv : example->json);
        *size = strlen(all);
        return all;
    }
    /* 0xb6 = 182: with the ten bytes before it, the text ends at 192 = 3 * 64. */
    memset(all, ' ', 191);
    memcpy(all, "\x93NUMPY\x01\x00\xb6\x00", 10);
    memcpy(all + 10, example->npy_text, strlen(example->npy_text));
    all[191] = '\n';
    memcpy(all + 192, example->npy_records, records);
    *size = 192 + records;
    return all;
}

TEST(writes_the_expected_bytes) {
    for (size_t e = 0; e < sizeof examples / sizeof *examples; e++)
        for (size_t k = 0; k < 3; k++) {
            size_t size;
            const char *path = test_path("%s.%s", examples[e].name, kinds[k]);
            gf_sample_sink *sink = open_sink(path, NULL, examples[e].layout);
            assert_false(gf_sample_sink_wants_count(sink));
            examples[e].put(sink);
            assert_int_equal(access(path, F_OK), -1);
            finish(sink);
            AUTO(free) char *want = expect(&examples[e], kinds[k], &size);
            assert_bytes(path, want, size);
        }
}

TEST(writes_no_samples) {
    for (size_t k = 0; k < 3; k++)
        finish(open_sink(in_directory(kinds[k]), kinds[k], &rgb16));
    assert_bytes(in_directory("csv"), "bin,x,y,channel,value\n", 22);
    static const char json[] =
        "{\"schema\":\"gpufilter-samples\",\"schema_version\":1,"
        "\"fields\":[\"bin\",\"x\",\"y\",\"channel\",\"value\"],\"samples\":[]}\n";
    assert_bytes(in_directory("json"), json, sizeof json - 1);
    size_t size;
    AUTO(free) unsigned char *npy = test_bytes(in_directory("npy"), &size);
    assert_int_equal(size, 192);
    assert_non_null(strstr((char *)npy + 10, "'shape': (0,), }"));
    assert_int_equal(npy[191], '\n');
}

/* Positions have 64 bits. JSON numbers are exact up to 53 bits. */
TEST(writes_large_positions) {
    const gf_sample_layout layout = {
        .type = GF_U8, .width = UINT64_C(1) << 60, .channels = 2, .names = {"grey", "a"}};
    const uint64_t two53 = UINT64_C(1) << 53;
    const uint64_t positions[] = {2 * two53, 2 * two53 + 3, UINT64_MAX};
    static const char csv[] =
        "x,y,channel,value\n"
        "9007199254740992,0,grey,1\n"
        "9007199254740993,0,a,2\n"
        "1152921504606846975,7,a,3\n";
    static const char json[] =
        "{\"schema\":\"gpufilter-samples\",\"schema_version\":1,"
        "\"fields\":[\"x\",\"y\",\"channel\",\"value\"],\"samples\":[\n"
        "[9007199254740992,0,\"grey\",1],\n"
        "[\"9007199254740993\",0,\"a\",2],\n"
        "[\"1152921504606846975\",7,\"a\",3]\n"
        "]}\n";
    gf_sample_sink *sink = open_sink(in_directory("a.csv"), NULL, &layout);
    put(sink, 0, positions, "\1\2\3", 3);
    finish(sink);
    assert_bytes(in_directory("a.csv"), csv, sizeof csv - 1);
    sink = open_sink(in_directory("a.json"), NULL, &layout);
    put(sink, 0, positions, "\1\2\3", 3);
    finish(sink);
    assert_bytes(in_directory("a.json"), json, sizeof json - 1);
}

/* ---- independent code ------------------------------------------------------------------------ */

static void put_little(FILE *file, uint64_t number, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        fputc((int)(number >> 8 * i & 255), file);
}

/* Return the expected file of put_many. */
static char *expect_many(const char *kind, size_t *size) {
    char *all = NULL;
    FILE *file = open_memstream(&all, size);
    const bool json = strcmp(kind, "json") == 0, npy = strcmp(kind, "npy") == 0;
    assert_non_null(file);
    if (npy) {
        fwrite("\x93NUMPY\x01\x00\xb6\x00", 10, 1, file);
        fprintf(file, "%-181s\n",
                "{'descr': [('bin', '<u4'), ('x', '<u8'), ('y', '<u8'), ('channel', '|u1'), "
                "('value', '<u2')], 'fortran_order': False, 'shape': (50000,), }");
    } else if (json)
        fputs(
            "{\"schema\":\"gpufilter-samples\",\"schema_version\":1,\"fields\":[\"bin\",\"x\",\"y\","
            "\"channel\",\"value\"],\"samples\":[\n",
            file);
    else
        fputs("bin,x,y,channel,value\n", file);
    for (uint32_t i = 0; i < MANY; i++) {
        const uint32_t bin = many_bin(i), channel = (uint32_t)(many_position(i) % 3);
        const uint64_t x = many_position(i) / 3 % 4, y = many_position(i) / 12;
        const uint16_t value = many_value(i);
        if (npy) {
            put_little(file, bin, 4);
            put_little(file, x, 8);
            put_little(file, y, 8);
            put_little(file, channel, 1);
            put_little(file, value, 2);
        } else {
            fprintf(file,
                    json ? "[%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",\"%c\",%u]%s\n"
                         : "%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%c,%u%s\n",
                    bin, x, y, "rgb"[channel], value, json && i + 1 < MANY ? "," : "");
        }
    }
    if (json)
        fputs("]}\n", file);
    assert_int_equal(fclose(file), 0);
    return all;
}

TEST(writes_many_in_several_calls) {
    for (size_t k = 0; k < 3; k++) {
        size_t size;
        gf_sample_sink *sink = open_sink(in_directory("many"), kinds[k], &rgb16);
        put_many(sink);
        finish(sink);
        AUTO(free) char *want = expect_many(kinds[k], &size);
        assert_bytes(in_directory("many"), want, size);
        empty_directory(NULL);
    }
}

/* Load the first two examples with NumPy, if it is installed. */
TEST(numpy_loads_the_files) {
    static const char *const pythons[] = {"python3", "/usr/bin/python3"};
    const char *python = NULL;
    char command[6000];
    for (size_t i = 0; i < 2 && !python; i++) {
        snprintf(command, sizeof command, "%s -c 'import numpy' 2>/dev/null", pythons[i]);
        if (system(command) == 0)
            python = pythons[i];
    }
    if (!python)
        test_skip("NumPy is not installed");
    for (size_t e = 0; e < 2; e++) {
        gf_sample_sink *sink =
            open_sink(in_directory(e == 0 ? "0.npy" : "1.npy"), NULL, examples[e].layout);
        examples[e].put(sink);
        finish(sink);
    }
    snprintf(command, sizeof command,
             "%s -c '\n"
             "import numpy as np\n"
             "a, b = np.load(\"%s\"), np.load(\"%s\")\n"
             "assert a.dtype.names == (\"x\", \"y\", \"channel\", \"value\")\n"
             "assert a.tolist() == [(0,0,0,0), (2,0,0,9), (0,1,0,10), (1,2,0,255)]\n"
             "assert b.dtype.names == (\"bin\", \"x\", \"y\", \"channel\", \"value\")\n"
             "assert b.tolist() == [(5,0,0,0,0), (5,3,0,2,1234), (65535,1,1,1,65535)]\n"
             "assert b[\"value\"].dtype == np.uint16'",
             python, in_directory("0.npy"), in_directory("1.npy"));
    assert_int_equal(system(command), 0);
}

int main(void) {
    return test_main_in_directory();
}
