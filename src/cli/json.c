/* JSON, to a stream. */
#include "json.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Bytes of the UTF-8 character that begins here, control characters included; 0 if none does. */
static size_t character(const unsigned char *s) {
    const size_t size = gf_printable((const char *)s);
    if (size)
        return size;
    if (*s < 0x20 || *s == 0x7f)
        return 1;
    return *s == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0 ? 2 : 0;
}

void gf_json_text(FILE *file, const char *text) {
    putc('"', file);
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        const size_t size = character(s);
        if (!size)
            fputs("\\ufffd", file);
        else if (*s == '"' || *s == '\\')
            fprintf(file, "\\%c", *s);
        else if (!gf_printable((const char *)s))
            fprintf(file, "\\u%04x", s[size - 1]);
        else
            fwrite(s, 1, size, file);
        s += size ? size : 1;
    }
    putc('"', file);
}

static bool is_utf8(const char *text) {
    const unsigned char *s = (const unsigned char *)text;
    size_t size = 1;
    for (; *s && size; s += size)
        size = character(s);
    return size != 0;
}

/* The bytes of a name, percent-encoded (RFC 3986) but for those of paths in ASCII. */
static void print_encoded(FILE *file, const char *name) {
    putc('"', file);
    for (const unsigned char *s = (const unsigned char *)name; *s; s++)
        if (*s < 0x80 && (isalnum(*s) || strchr("-._~/", *s)))
            putc(*s, file);
        else
            fprintf(file, "%%%02X", *s);
    putc('"', file);
}

void gf_json_name(FILE *file, const char *key, const char *name) {
    fprintf(file, "\"%s\": ", key);
    gf_json_text(file, name);
    if (is_utf8(name))
        return;
    fprintf(file, ", \"%s_encoded\": ", key);
    print_encoded(file, name);
}

void gf_json_names(FILE *file, const char *key, const char *const *names, size_t count) {
    bool exact = true;
    fprintf(file, "\"%s\": [", key);
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ", " : "", file);
        gf_json_text(file, names[i]);
        exact = exact && is_utf8(names[i]);
    }
    putc(']', file);
    if (exact)
        return;
    fprintf(file, ", \"%s_encoded\": [", key);
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ", " : "", file);
        print_encoded(file, names[i]);
    }
    putc(']', file);
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
