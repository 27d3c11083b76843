/* What a file without a header holds, as text. */
#include <stdint.h>
#include <string.h>

#include "error.h"
#include "image.h"

/* Digits, past which *text then points. Not strtoull(): it takes signs, spaces and what the locale
 * adds. */
static bool read_number(const char **text, uint64_t *number) {
    const char *at = *text;
    uint64_t value = 0;

    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return false;
    if (at == *text)
        return false;
    *text = at;
    *number = value;
    return true;
}

static bool skip(const char **text, char c) {
    if (**text != c)
        return false;
    ++*text;
    return true;
}

static bool read_type(const char **text, gf_raw *raw) {
    static const struct {
        const char *name;
        gf_type type;
        bool big;
    } types[] = {{"u8", GF_U8, false},    {"u16", GF_U16, false}, {"u16le", GF_U16, false},
                 {"u16be", GF_U16, true}, {"f32", GF_F32, false}, {"f32le", GF_F32, false},
                 {"f32be", GF_F32, true}};
    const size_t length = strcspn(*text, "+");

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strlen(types[i].name) != length || memcmp(*text, types[i].name, length) != 0)
            continue;
        raw->format.type = types[i].type;
        raw->big = types[i].big;
        *text += length;
        return true;
    }
    return false;
}

static bool read_all(const char *text, gf_raw *raw) {
    uint64_t channels = 1;

    if (!read_number(&text, &raw->format.width) || !skip(&text, 'x') ||
        !read_number(&text, &raw->format.height))
        return false;
    if (skip(&text, 'x') && !read_number(&text, &channels))
        return false;
    if (channels > GF_MAX_CHANNELS || !skip(&text, ':') || !read_type(&text, raw))
        return false;
    raw->format.channels = (uint32_t)channels;
    if (skip(&text, '+') && !read_number(&text, &raw->offset))
        return false;
    return *text == '\0' && raw->offset <= INT64_MAX &&
           gf_format_check(&raw->format, "", NULL) == GF_OK;
}

gf_status gf_raw_parse(const char *text, gf_raw *raw, gf_error *error) {
    gf_raw parsed = {0};

    if (!read_all(text, &parsed))
        return gf_fail(error, GF_USAGE,
                       "--raw '%s': must be WIDTHxHEIGHT[xCHANNELS]:TYPE[+OFFSET], such as "
                       "4096x3072:u16be+512; TYPE is u8, u16, u16le, u16be, f32, f32le or f32be, "
                       "CHANNELS 1 to 4",
                       text);
    *raw = parsed;
    return GF_OK;
}
