/* JSON, to a stream. */
#include "json.h"

#include <inttypes.h>
#include <math.h>

/* Bytes of the UTF-8 character that begins here; 0 if none does. */
static size_t character(const unsigned char *s) {
    static const struct {
        size_t size;
        uint32_t least; /* anything below has a shorter form */
        unsigned char mask, lead;
    } forms[] = {{1, 0, 0x80, 0x00},
                 {2, 0x80, 0xe0, 0xc0},
                 {3, 0x800, 0xf0, 0xe0},
                 {4, 0x10000, 0xf8, 0xf0}};
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
        if ((s[0] & forms[f].mask) != forms[f].lead)
            continue;
        uint32_t code = s[0] & (unsigned char)~forms[f].mask;
        for (size_t i = 1; i < forms[f].size; i++) {
            if ((s[i] & 0xc0) != 0x80) /* the final 0 included */
                return 0;
            code = code << 6 | (s[i] & 0x3f);
        }
        bool surrogate = code >= 0xd800 && code <= 0xdfff;
        return code < forms[f].least || surrogate || code > 0x10ffff ? 0 : forms[f].size;
    }
    return 0;
}

void gf_json_text(FILE *file, const char *text) {
    putc('"', file);
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t size = character(s);
        if (!size) {
            fputs("\\ufffd", file);
            size = 1;
        } else if (*s == '"' || *s == '\\') {
            fprintf(file, "\\%c", *s);
        } else if (*s < 0x20 || *s == 0x7f) {
            fprintf(file, "\\u%04x", *s);
        } else if (*s == 0xc2 && s[1] < 0xa0) { /* control characters, too */
            fprintf(file, "\\u%04x", s[1]);
        } else {
            fwrite(s, 1, size, file);
        }
        s += size;
    }
    putc('"', file);
}

void gf_json_value(FILE *file, const gf_value *value) {
    if (value->type == GF_VALUE_TEXT) {
        gf_json_text(file, value->text);
        return;
    }
    if (value->type == GF_VALUE_NONE) {
        fputs("null", file);
        return;
    }
    char text[40];
    gf_value_format(value, text, sizeof text);
    bool exact = value->type == GF_VALUE_UINT ? value->high == 0 && value->low <= UINT64_C(1) << 53
                                              : isfinite(value->real);
    /* Readers take what has neither point nor exponent for an integer, and those have no -0. */
    const bool minus_zero = value->type != GF_VALUE_UINT && value->real == 0 && text[0] == '-';
    fprintf(file, exact ? "%s%s" : "\"%s%s\"", text, minus_zero ? ".0" : "");
}

void gf_json_format(FILE *file, const gf_format *format) {
    static const char *const types[] = {"u8", "u16", "f32"};
    fprintf(file,
            "{\"width\": %" PRIu64 ", \"height\": %" PRIu64 ", \"channels\": %" PRIu32
            ", \"type\": \"%s\"}",
            format->width, format->height, format->channels, types[format->type]);
}
