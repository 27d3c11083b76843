/* Parsing of --raw: the shape of rows without a header. */
#include "io_util.h"

TEST(parses_shapes) {
    static const struct {
        const char *text;
        gf_raw raw;
    } valid[] = {
        {"4x3:u8", {{4, 3, 1, GF_U8, false}, 0, false}},
        {"4x3:u16", {{4, 3, 1, GF_U16, false}, 0, false}},
        {"4x3:u16le", {{4, 3, 1, GF_U16, false}, 0, false}},
        {"4x3:u16be", {{4, 3, 1, GF_U16, false}, 0, true}},
        {"4x3:f32", {{4, 3, 1, GF_F32, false}, 0, false}},
        {"4x3:f32le", {{4, 3, 1, GF_F32, false}, 0, false}},
        {"4x3:f32be", {{4, 3, 1, GF_F32, false}, 0, true}},
        {"4x3x1:u8", {{4, 3, 1, GF_U8, false}, 0, false}},
        {"40x31x4:u16be+512", {{40, 31, 4, GF_U16, false}, 512, true}},
        {"1x1x2:u8+0", {{1, 1, 2, GF_U8, false}, 0, false}},
        {"007x08x03:u8+09", {{7, 8, 3, GF_U8, false}, 9, false}},
        {"1000000x1000000:f32+4294967296",
         {{1000000, 1000000, 1, GF_F32, false}, 4294967296, false}},
        {"1x1:u8+9223372036854775807", {{1, 1, 1, GF_U8, false}, INT64_MAX, false}},
        {"1152921504606846976x1:u8", {{UINT64_C(1) << 60, 1, 1, GF_U8, false}, 0, false}},
    };
    for (size_t i = 0; i < sizeof valid / sizeof *valid; i++) {
        gf_raw raw = {{9, 9, 9, GF_F32, 9 % 2 == 0}, 9, true};
        assert_ok(gf_raw_parse(valid[i].text, &raw, &why));
        assert_true(gf_format_equal(&raw.format, &valid[i].raw.format));
        assert_int_equal(raw.offset, valid[i].raw.offset);
        assert_int_equal(raw.big_endian, valid[i].raw.big_endian);
    }
}

static const char *const invalid_shapes[] = {
    "",
    "4",
    "4x3",
    "4x3:",
    "x3:u8",
    "4x:u8",
    ":u8",
    "4x3u8",
    "4,3:u8",
    "4X3:u8",
    "4x3:U8",
    "4x3:u8le",
    "4x3:u8be",
    "4x3:u32",
    "4x3:f64",
    "4x3:u16xe",
    "4x3:u1",
    "4x3:u16bee",
    "0x3:u8",
    "4x0:u8",
    "4x3x0:u8",
    "4x3x5:u8",
    "4x3x:u8",
    "4x3x1x1:u8",
    "-4x3:u8",
    "+4x3:u8",
    " 4x3:u8",
    "4 x3:u8",
    "4x 3:u8",
    "4x+3:u8",
    "4x-3:u8",
    "4x3: u8",
    "4x3:u8 ",
    "4x3:u8+",
    "4x3:u8+-1",
    "4x3:u8++1",
    "4x3:u8+ 1",
    "4x3:u8+1 ",
    "4x3:u8+1x",
    "4x3:u8-1",
    "4x3:u8+1+1",
    "4x3:u8+0x10",
    "4x3:+1",
    "0x4x3:u8",
    "4.0x3:u8",
    "4x3:u8,",
    "4x3:u8+1K",
    "4x3\n:u8",
    "1e3x3:u8",
    "\xd9\xa4x3:u8",
    "18446744073709551616x1:u8",
    "18446744073709551620x3:u8",
    "1x1:u8+18446744073709551616",
    "1x1:u8+9223372036854775808",
    "4294967296x4294967296:u8",
    "1152921504606846976x1:u16",
    "1152921504606846977x1:u8",
    "1x1x4294967297:u8",
};

TEST(rejects_other_text) {
    for (size_t i = 0; i < sizeof invalid_shapes / sizeof *invalid_shapes; i++) {
        gf_raw raw = {{9, 8, 7, GF_F32, 7 % 2 == 0}, 6, true};
        if (gf_raw_parse(invalid_shapes[i], &raw, &why) != GF_USAGE)
            fail_msg("'%s' was accepted", invalid_shapes[i]);
        assert_message(&why, "': must be WIDTHxHEIGHT[xCHANNELS]:TYPE[+OFFSET], such as ");
        assert_true(raw.format.width == 9 && raw.format.height == 8 && raw.format.channels == 7);
        assert_true(raw.format.type == GF_F32 && raw.offset == 6 && raw.big_endian);
        assert_int_equal(gf_raw_parse(invalid_shapes[i], &raw, NULL), GF_USAGE);
    }
}

int main(void) {
    return test_main_in_directory();
}
