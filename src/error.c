#include "error.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
    for (char *c = error->message; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
}

void gf_set_memory_error(gf_error *error, const char *name, uint64_t bytes, const char *what) {
    gf_set_error(error, GF_FAILED, "%s: out of memory for %" PRIu64 " bytes of %s", name, bytes,
                 what);
}
