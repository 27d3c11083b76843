/* Linear light: tables, conversion of rows with alpha, and the metadata of images that are sRGB.
 * tests/system/numpy/filters/conversion.py compares every entry of the tables. */
#include <math.h>

#include "core/convert.h"
#include "io/stream/convert.h"
#include "io_util.h"

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Values computed with 40 digits. */
TEST(has_known_values) {
    static const struct {
        gf_type type;
        unsigned code;
        uint32_t bits;
    } cases[] = {
        {GF_U8, 0, 0},
        {GF_U8, 1, 0x399f22b4},      /* 0.00030352698354 */
        {GF_U8, 10, 0x3b46eb61},     /* 0.00303526983548, the last of the linear segment */
        {GF_U8, 11, 0x3b5b518e},     /* 0.00334653576389 */
        {GF_U8, 128, 0x3e5d0a89},    /* 0.21586050011389 */
        {GF_U8, 254, 0x3f7db8de},    /* 0.99110209711382 */
        {GF_U8, 255, 0x3f800000},    /* 1 */
        {GF_U16, 1, 0x359e8430},     /* 0.00000118103884 */
        {GF_U16, 40000, 0x3ea95b3a}, /* 0.33077411892532 */
        {GF_U16, 65535, 0x3f800000}, /* 1 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(bits_of(gf_srgb_of(cases[i].type)->linear[cases[i].code]), cases[i].bits);
}

TEST(is_monotonic) {
    for (gf_type type = GF_U8; type <= GF_U16; type++) {
        const unsigned max = type == GF_U8 ? 255 : 65535;
        const float *linear = gf_srgb_of(type)->linear;
        const gf_srgb codes = *gf_srgb_of(type);
        for (unsigned k = 1; k <= max; k++) {
            assert_true(linear[k - 1] < codes.thresholds[k]);
            assert_true(codes.thresholds[k] <= linear[k]);
        }
        assert_true(isinf(codes.thresholds[max + 1]));
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Every code value, in every channel, becomes linear light and then itself; alpha is scaled. */
TEST(returns_to_the_same_codes) {
    for (gf_type type = GF_U8; type <= GF_U16; type++)
        for (uint32_t channels = 1; channels <= 4; channels++) {
            const unsigned max = type == GF_U8 ? 255 : 65535;
            const gf_format format = {max + 1, 1, channels, type, channels % 2 == 0};
            const size_t row = gf_row_bytes(&format);
            const uint64_t n = gf_row_samples(&format);
            AUTO(free) unsigned char *codes = test_alloc(row), *back = test_alloc(row);
            AUTO(free) float *light = test_alloc(n * sizeof *light);
            gf_format light_format = format;
            light_format.type = GF_F32;
            const gf_conversion decode = gf_conversion_of(&format, &light_format, true);
            const gf_conversion encode = gf_conversion_of(&light_format, &format, true);
            for (unsigned i = 0; i < row / gf_type_bytes(type); i++) {
                const uint16_t code = (uint16_t)((i / channels + 19 * (i % channels)) % (max + 1));
                codes[type == GF_U8 ? i : 0] = (unsigned char)code;
                if (type == GF_U16)
                    memcpy(codes + 2 * (size_t)i, &code, 2);
            }
            gf_convert_samples(&decode, light, codes, n);
            for (unsigned i = 0; i < (max + 1) * channels; i++) {
                uint16_t code = codes[type == GF_U8 ? i : 0];
                if (type == GF_U16)
                    memcpy(&code, codes + 2 * (size_t)i, 2);
                const bool alpha = channels % 2 == 0 && i % channels == channels - 1;
                assert_true(light[i] ==
                            (alpha ? (float)code / (float)max : gf_srgb_of(type)->linear[code]));
            }
            gf_convert_samples(&encode, back, light, n);
            assert_memory_equal(back, codes, row);
        }
}

/* ---- metadata -------------------------------------------------------------------------------- */

enum { PROFILE_BYTES = 300, TAG = 200 };

static void put_big32(unsigned char *at, size_t value) {
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> (24 - 8 * i));
}

/* Fill in a profile whose second tag is its description, of type "desc" or "mluc". The text of the
 * latter is in its second record. Return its size. */
static size_t make_profile(unsigned char profile[PROFILE_BYTES], const char *type,
                           const char *text) {
    unsigned char *tag = profile + TAG;
    const size_t length = strlen(text);
    size_t size = 12 + length + 1;
    memset(profile, 0, PROFILE_BYTES);
    memcpy(profile + 36, "acsp", 4);
    put_big32(profile + 128, 2);
    memcpy(profile + 132, "cprt", 4);
    memcpy(profile + 144, "desc", 4);
    memcpy(tag, type, 4);
    if (strcmp(type, "desc") == 0) {
        put_big32(tag + 8, length + 1);
        memcpy(tag + 12, text, length + 1);
    } else {
        put_big32(tag + 8, 2);
        put_big32(tag + 12, 12);
        memcpy(tag + 16, "deDE", 4);
        memcpy(tag + 28, "enUS", 4);
        put_big32(tag + 32, 2 * length);
        put_big32(tag + 36, 40);
        for (size_t i = 0; i < length; i++)
            tag[41 + 2 * i] = (unsigned char)text[i];
        size = 40 + 2 * length;
    }
    put_big32(profile + 148, TAG);
    put_big32(profile + 152, size);
    return TAG + size;
}

/* Check an image with one item, or with a second one. */
static gf_status check_items(const char *name, const void *data, size_t size, const char *second) {
    AUTO(metadata) gf_metadata metadata = (gf_metadata){0};
    gf_metadata_add(&metadata, name, false, data, size);
    if (second)
        gf_metadata_add(&metadata, second, false, "", 1);
    return gf_srgb_check(&metadata, "x.png", &why);
}

TEST(reads_descriptions_of_profiles) {
    static const struct {
        const char *text;
        bool is_srgb;
    } cases[] = {{"sRGB", true},
                 {"sRGB IEC61966-2.1", true},
                 {"c2 sRGB", true},
                 {"sRGB", true},
                 {"srgb", false},
                 {"sRG", false},
                 {"Adobe RGB (1998)", false},
                 {"Display P3", false},
                 {"", false},
                 {"Linear sRGB", false},
                 {"sRGB linear", false}};
    static const char *const types[] = {"desc", "mluc"};
    unsigned char profile[PROFILE_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t t = 0; t < 2; t++) {
            const size_t size = make_profile(profile, types[t], cases[i].text);
            const gf_status status = check_items(GF_ITEM_ICC, profile, size, NULL);
            assert_int_equal(status == GF_OK, cases[i].is_srgb);
            if (status)
                assert_string_equal(why.message,
                                    "x.png: its ICC profile is not sRGB; convert it to sRGB first "
                                    "or remove --linear");
        }
    make_profile(profile, "text", "sRGB");
    assert_int_equal(check_items(GF_ITEM_ICC, profile, PROFILE_BYTES, NULL), GF_FAILED);
}

/* The curve decides, not the description alone. */
static const struct {
    const char *curve;
    size_t size;
    bool is_srgb;
} curves[] = {
    {"curv\0\0\0\0\0\0\0\0", 12, false},                         /* linear */
    {"curv\0\0\0\0\0\0\0\1\1\0", 14, false},                     /* power 1 */
    {"curv\0\0\0\0\0\0\0\1\1\xcd", 14, false},                   /* power 1.8 */
    {"curv\0\0\0\0\0\0\0\1\2\x33", 14, true},                    /* power 2.2 */
    {"curv\0\0\0\0\0\0\0\2\0\0\xff\xff", 16, false},             /* linear table */
    {"curv\0\0\0\0\0\0\0\3\0\0\x36\xcb\xff\xff", 18, true},      /* sRGB */
    {"curv\0\0\0\0\0\0\0\3\0\0\x2f\x27\xff\xff", 18, false},     /* L* */
    {"curv\0\0\0\0\0\0\0\4\0\0\x17\0\x67\0\xff\xff", 20, false}, /* 0.246 */
    {"curv\0\0\0\0\0\0\0\4\0\0\x17\0\x56\0\xff\xff", 20, true},  /* 0.213 */
    {"curv\0\0\0\0\0\0\0\4\0\0\x17\0\x56\0", 18, false},         /* damaged */
    {"para\0\0\0\0\0\0\0\0"
     "\000\001\000\000",
     16, false}, /* power 1 */
    {"para\0\0\0\0\0\0\0\0"
     "\000\002\063\063",
     16, true}, /* power 2.2 */
    {"para\0\0\0\0\0\1\0\0"
     "\000\002\146\146\000\000\362\247\000\000\015\131",
     24, true}, /* sRGB without its linear segment */
    {"para\0\0\0\0\0\1\0\0"
     "\000\002\070\344\000\000\350\360\000\000\027\020",
     24, false}, /* Rec. 709 */
    {"para\0\0\0\0\0\2\0\0"
     "\000\002\146\146\000\000\362\247\000\000\015\131\000\000\000\000",
     28, true}, /* sRGB */
    {"para\0\0\0\0\0\2\0\0"
     "\000\002\146\146\000\000\362\247\000\000\015\131\000\000\014\315",
     28, false}, /* lighter */
    {"para\0\0\0\0\0\3\0\0"
     "\000\002\146\146\000\000\362\247\000\000\015\131\000\000\023\320\000\000\012\133",
     32, true}, /* sRGB */
    {"para\0\0\0\0\0\3\0\0"
     "\000\002\070\344\000\000\350\360\000\000\027\020\000\000\070\344\000\000\024\274",
     32, false}, /* Rec. 709 */
    {"para\0\0\0\0\0\3\0\0"
     "\000\002\146\146\000\000\362\247\000\000\015\131\000\000\023\320\000\000\231\232",
     32, false}, /* linear up to 0.6 */
    {"para\0\0\0\0\0\4\0\0"
     "\000\002\146\146\000\000\362\247\000\000\015\131\000\000\023\320\000\000\012\133"
     "\000\000\000\000\000\000\000\000",
     40, true}, /* sRGB */
    {"para\0\0\0\0\0\4\0\0"
     "\000\002\146\146\000\000\362\247\000\000\015\131\000\000\023\320\000\000\012\133"
     "\377\377\363\063\000\000\000\000",
     40, false}, /* darker */
    {"para\0\0\0\0\0\4\0\0"
     "\000\002\146\146\000\000\362\247\000\000\015\131\000\000\023\320\000\000\012\133"
     "\000\000\000\000\000\000\000\000",
     39, false}, /* damaged */
    {"para\0\0\0\0\0\5\0\0"
     "\000\002\146\146\000\000\362\247\000\000\015\131\000\000\023\320\000\000\012\133"
     "\000\000\000\000\000\000\000\000",
     40, false},                         /* unknown */
    {"sf32\0\0\0\0\0\0\0\0", 12, false}, /* another type */
    {"curv", 4, false},                  /* damaged */
};

TEST(reads_curves_of_profiles) {
    static const char *const tags[] = {"rTRC", "kTRC"};
    enum { CURVE = PROFILE_BYTES - 40 };
    unsigned char profile[PROFILE_BYTES];
    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++)
        for (size_t t = 0; t < 2; t++) {
            (void)make_profile(profile, "desc", "sRGB-elle-V2-g10.icc");
            memcpy(profile + 132, tags[t], 4); /* instead of the copyright */
            put_big32(profile + 136, CURVE);
            put_big32(profile + 140, curves[i].size);
            memcpy(profile + CURVE, curves[i].curve, curves[i].size);
            const gf_status status =
                check_items(GF_ITEM_ICC, profile, CURVE + curves[i].size, NULL);
            if ((status == GF_OK) != curves[i].is_srgb)
                fail_msg("curve %zu", i);
        }
}

/* Damaged profiles are not sRGB; sanitizers check that no byte outside is read. */
TEST(survives_damaged_profiles) {
    unsigned char profile[PROFILE_BYTES];
    for (size_t t = 0; t < 2; t++) {
        const size_t size = make_profile(profile, t ? "mluc" : "desc", "sRGB");
        for (size_t cut = 0; cut < size; cut++) {
            AUTO(free) unsigned char *part = test_alloc(cut ? cut : 1);
            memcpy(part, profile, cut);
            assert_int_equal(check_items(GF_ITEM_ICC, part, cut, NULL), GF_FAILED);
        }
        for (size_t at = 128; at < size; at++)
            for (int k = 0; k < 8; k++) {
                AUTO(free) unsigned char *copy = test_alloc(size);
                memcpy(copy, profile, size);
                copy[at] = (unsigned char)(copy[at] ^ 1u << k);
                if (at % 4 == 0) /* the highest byte of a number */
                    memset(copy + at, 0xff, size - at < 4 ? size - at : 4);
                (void)check_items(GF_ITEM_ICC, copy, size, NULL);
            }
    }
}

TEST(reads_chunks_about_colour) {
    static const struct {
        const char *name, *data;
        size_t size;
        const char *second, *what;
    } cases[] = {
        {"tEXt", "a\0b", 3, NULL, NULL},
        {"sRGB", "\0", 1, NULL, NULL},
        {"cHRM", "", 0, NULL, NULL},
        {"gAMA", "\0\0\xb1\x8f", 4, NULL, NULL}, /* 45455 */
        {"gAMA", "\0\0\xb1\x8a", 4, NULL, NULL}, /* 45450 */
        {"gAMA", "\0\0\xb1\x94", 4, NULL, NULL}, /* 45460 */
        {"gAMA", "\0\0\xb1\x89", 4, NULL, "gamma"},
        {"gAMA", "\0\0\xb1\x95", 4, NULL, "gamma"},
        {"gAMA", "\0\1\x86\xa0", 4, NULL, "gamma"}, /* 1 */
        {"gAMA", "\0\1\x86\xa0", 4, "sRGB", NULL},  /* sRGB has precedence */
        {"gAMA", "\0\0\xb1", 3, NULL, "gamma"},
        {"cICP", "\1\15\0\1", 4, NULL, NULL},
        {"cICP", "\11\20\0\1", 4, "sRGB", "cICP chunk"}, /* BT.2100 PQ */
        {"cICP", "\1\15\0", 3, NULL, "cICP chunk"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const gf_status status =
            check_items(cases[i].name, cases[i].data, cases[i].size, cases[i].second);
        assert_int_equal(status, cases[i].what ? GF_FAILED : GF_OK);
        if (status)
            assert_message(&why, cases[i].what);
    }
}

int main(void) {
    return test_main(NULL);
}
