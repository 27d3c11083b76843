/* Error messages: formatting, truncation and removal of unprintable bytes. */
#include "core/error.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

size_t gf_printable(const char *text) {
    static const struct {
        size_t size;
        unsigned char mask, lead;
        uint32_t first; /* smallest code of this size; smaller codes are overlong */
    } forms[] = {{1, 0x80, 0x00, 0},
                 {2, 0xe0, 0xc0, 0x80},
                 {3, 0xf0, 0xe0, 0x800},
                 {4, 0xf8, 0xf0, 0x10000}};
    const unsigned char *bytes = (const unsigned char *)text;
    size_t f = 0;
    while (f < sizeof forms / sizeof forms[0] && (bytes[0] & forms[f].mask) != forms[f].lead)
        f++;
    if (f == sizeof forms / sizeof forms[0])
        return 0;
    uint32_t code = bytes[0] & (unsigned char)~forms[f].mask;
    for (size_t i = 1; i < forms[f].size; i++) {
        if ((bytes[i] & 0xc0) != 0x80) /* also true for the terminating 0 */
            return 0;
        code = code << 6 | (bytes[i] & 0x3f);
    }
    const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return code < forms[f].first || control || surrogate || code > 0x10ffff ? 0 : forms[f].size;
}

gf_status gf_set_error(gf_error *error, gf_status status, const char *format, ...) {
    if (!error)
        return status;
    error->status = status;
    error->cause = 0;
    /* A path may be longer than a message. The cause is at the end, so the middle is omitted. */
    char text[3 * PATH_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const size_t length = strlen(text), capacity = sizeof error->message - 1,
                 tail = capacity * 3 / 4;
    if (length <= capacity)
        memcpy(error->message, text, length + 1);
    else
        snprintf(error->message, sizeof error->message, "%.*s...%s", (int)(capacity - tail - 3),
                 text, text + length - tail);
    /* Replace unprintable bytes: a file name may hold newlines and escape sequences. */
    size_t size;
    for (char *at = error->message; *at; at += size ? size : 1)
        if (!(size = gf_printable(at)))
            *at = '?';
    return status;
}

void gf_set_memory_error(gf_error *error, const char *name, uint64_t bytes, const char *what) {
    (void)gf_set_error(error, GF_FAILED, "%s: out of memory for %" PRIu64 " bytes of %s", name,
                       bytes, what);
}
