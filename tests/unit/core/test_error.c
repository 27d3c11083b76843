/* Error messages: one printable line for any bytes in the names. */
#include "testing.h"

#include "core/error.h"

/* ---- characters ------------------------------------------------------------------------------ */

/* Encode a code point as RFC 3629 defines. Return the number of bytes. */
static size_t encode(uint32_t code, unsigned char bytes[4]) {
    if (code < 0x80) {
        bytes[0] = (unsigned char)code;
        return 1;
    }
    if (code < 0x800) {
        bytes[0] = (unsigned char)(0xc0 | code >> 6);
        bytes[1] = (unsigned char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        bytes[0] = (unsigned char)(0xe0 | code >> 12);
        bytes[1] = (unsigned char)(0x80 | (code >> 6 & 0x3f));
        bytes[2] = (unsigned char)(0x80 | (code & 0x3f));
        return 3;
    }
    bytes[0] = (unsigned char)(0xf0 | code >> 18);
    bytes[1] = (unsigned char)(0x80 | (code >> 12 & 0x3f));
    bytes[2] = (unsigned char)(0x80 | (code >> 6 & 0x3f));
    bytes[3] = (unsigned char)(0x80 | (code & 0x3f));
    return 4;
}

static size_t expected(uint32_t code) {
    unsigned char bytes[4];
    const bool control = code < 0x20 || (code >= 0x7f && code <= 0x9f);
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return control || surrogate || code > 0x10ffff ? 0 : encode(code, bytes);
}

TEST(every_character) {
    for (uint32_t code = 0; code <= 0x1fffff; code++) {
        char text[6] = "";
        const size_t size = encode(code, (unsigned char *)text);
        text[size] = 'x';
        if (gf_printable(text) != expected(code))
            fail_msg("U+%04X: %zu", code, gf_printable(text));
    }
}

/* Only encodings of code points have a size. Overlong forms, lone and missing bytes have none. */
TEST(every_three_bytes) {
    for (uint32_t n = 0; n < 1u << 24; n++) {
        const unsigned char text[4] = {(unsigned char)(n >> 16), (unsigned char)(n >> 8),
                                       (unsigned char)n, 0};
        const uint32_t codes[3] = {text[0], (text[0] & 0x1fu) << 6 | (text[1] & 0x3f),
                                   (text[0] & 0xfu) << 12 | (text[1] & 0x3fu) << 6 |
                                       (text[2] & 0x3f)};
        size_t want = 0;
        for (size_t size = 1; size <= 3; size++) {
            unsigned char bytes[4];
            if (encode(codes[size - 1], bytes) == size && memcmp(bytes, text, size) == 0)
                want = expected(codes[size - 1]);
        }
        if (gf_printable((const char *)text) != want)
            fail_msg("%02x %02x %02x: %zu, expected %zu", text[0], text[1], text[2],
                     gf_printable((const char *)text), want);
    }
}

TEST(no_fifth_byte_is_read) {
    for (unsigned lead = 0x80; lead < 0x100; lead++)
        for (size_t size = 1; size <= 4; size++) {
            char *text =
                malloc(size + 1); /* separate allocation: sanitizers detect reads past its end */
            assert_non_null(text);
            memset(text, 0xbf, size);
            text[0] = (char)lead;
            text[size] = 0;
            assert_true(gf_printable(text) <= size);
            free(text);
        }
}

/* ---- messages -------------------------------------------------------------------------------- */

TEST(replaces_unprintable_bytes) {
    static const struct {
        const char *name, *shown;
    } names[] = {
        {"a\xff\x9b"
         "2Jb.png",
         "a??2Jb.png"},
        {"a\xe0\x9b"
         "2Jb.png",
         "a??2Jb.png"},
        {"\xc2\x9b"
         "2J",
         "??2J"},
        {"\xc0\x9b \xe0\x82\x9b \xf0\x80\x82\x9b", "?? ??? ????"},
        {"\x1b[31m\n\r\t\x7f", "?[31m????"},
        {"\xc3\xa9\x9b\x9b\xe7\x94\xbb\xf0\x9f\x98\x80", "\xc3\xa9??\xe7\x94\xbb\xf0\x9f\x98\x80"},
        {"\xed\xa0\x80\xf4\x90\x80\x80", "???????"},
        {"\xe7\x94", "??"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(gf_set_error(&why, GF_USAGE, "%s: no", names[i].name), GF_USAGE);
        assert_int_equal(why.status, GF_USAGE);
        assert_memory_equal(why.message, names[i].shown, strlen(names[i].shown));
        assert_string_equal(why.message + strlen(names[i].shown), ": no");
    }
    assert_int_equal(gf_set_error(NULL, GF_FAILED, "no error object"), GF_FAILED);
}

/* Long names are cut in the middle; no partial character remains. */
TEST(long_names_are_cut_between_characters) {
    char name[4096];
    for (size_t shift = 0; shift < 4; shift++)
        for (size_t length = 900; length < 1300; length += 7) {
            memset(name, 'x', shift);
            for (size_t i = 0; i < length / 3; i++)
                memcpy(name + shift + 3 * i, "\xe7\x94\xbb", 3);
            name[shift + length / 3 * 3] = 0;
            gf_set_error(&why, GF_FAILED, "%s: damaged", name);
            assert_true(strlen(why.message) < sizeof why.message);
            assert_non_null(strstr(why.message, ": damaged"));
            for (const char *at = why.message; *at; at += gf_printable(at))
                assert_true(gf_printable(at) > 0);
        }
}

int main(void) {
    return test_main(NULL);
}
