/* Error messages: formatting, truncation, removal of unprintable bytes, and similar names. */
#include "core/error.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gpufilter_tools.h"

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
    error->step = 0;
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

/* ---- similar names --------------------------------------------------------------------------- */

#define MAX_GUESSES 3
#define MAX_NAME 31 /* length of the longest name */

static size_t guess_min(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Return the number of letters inserted, deleted, replaced, or swapped with the next one. */
static size_t guess_distance(const char *a, size_t n, const char *b, size_t m) {
    size_t d[MAX_NAME + 1][MAX_NAME + 1]; /* of the first i and j letters */
    for (size_t i = 0; i <= n; i++)
        for (size_t j = 0; j <= m; j++) {
            d[i][j] = i + j;
            if (i > 0 && j > 0)
                d[i][j] = guess_min(guess_min(d[i - 1][j], d[i][j - 1]) + 1,
                                    d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = guess_min(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[n][m];
}

void gf_guess_names(const char *word, size_t length, const char *const *names, size_t count,
                    const char *prefix, char text[256]) {
    const char *found[MAX_GUESSES];
    /* Accept about one wrong letter in four; above that, names are unrelated. */
    size_t found_count = 0, distance = (length + 1) / 4, used = 0;
    for (size_t i = 0; i < count && length > 0 && length <= MAX_NAME; i++) {
        /* A prefix matches like the full name. */
        const size_t size = strlen(names[i]);
        const size_t from = size > MAX_NAME ? SIZE_MAX
                            : length >= 2 && strncmp(word, names[i], length) == 0
                                ? 0
                                : guess_distance(word, length, names[i], size);
        if (from < distance)
            found_count = 0;
        if (from > distance || found_count == MAX_GUESSES)
            continue;
        distance = from;
        found[found_count++] = names[i];
    }
    text[0] = 0;
    for (size_t i = 0; i < found_count && used < 256; i++)
        used += (size_t)snprintf(text + used, 256 - used, "%s%s%s%s",
                                 i == 0                ? "; did you mean "
                                 : i + 1 < found_count ? ", "
                                                       : " or ",
                                 prefix, found[i], i + 1 < found_count ? "" : "?");
}
