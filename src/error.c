#include "error.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Is this byte one of a control character? Those from 0x80 to 0x9f, one of which begins escape
 * sequences, too, have two bytes in UTF-8; one alone is no UTF-8. */
static bool is_control(const char *text, size_t i) {
    const unsigned char *at = (const unsigned char *)text + i;
    const unsigned before = i > 0 ? at[-1] : 0;

    if (*at >= 0x80 && *at < 0xa0)
        return before < 0x80 || before == 0xc2;
    return *at < 0x20 || *at == 0x7f || (*at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0);
}

void gf_set_error(gf_error *error, gf_status status, const char *format, ...) {
    if (!error)
        return;
    error->status = status;
    /* A path may be longer than a message. What is wrong stands at the end: the middle gives way.
     */
    char text[3 * PATH_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const size_t length = strlen(text), room = sizeof error->message - 1, tail = room * 3 / 4;
    if (length <= room)
        memcpy(error->message, text, length + 1);
    else
        snprintf(error->message, sizeof error->message, "%.*s...%s", (int)(room - tail - 3), text,
                 text + length - tail);
    /* A file name may hold newlines and escape sequences; a message is one harmless line. */
    for (size_t i = 0; error->message[i]; i++)
        if (is_control(error->message, i))
            error->message[i] = '?';
}

void gf_set_memory_error(gf_error *error, const char *name, uint64_t bytes, const char *what) {
    gf_set_error(error, GF_FAILED, "%s: out of memory for %" PRIu64 " bytes of %s", name, bytes,
                 what);
}
