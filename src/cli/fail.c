/* What is told to people may hold names of files, and those may hold anything. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

static bool is_control(char c) {
    return (unsigned char)c < 0x20 || c == 0x7f;
}

gf_status gf_cli_fail(gf_error *error, gf_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    error->status = status;
    /* A path may be longer than a message. What is wrong stands at the end: the middle gives way.
     */
    char text[3 * PATH_MAX];
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const size_t length = strlen(text), room = sizeof error->message - 1, tail = room * 3 / 4;
    if (length <= room)
        memcpy(error->message, text, length + 1);
    else
        snprintf(error->message, sizeof error->message, "%.*s...%s", (int)(room - tail - 3), text,
                 text + length - tail);
    for (char *c = error->message; *c; c++)
        if (is_control(*c))
            *c = '?';
    return status;
}

void gf_cli_print_name(FILE *file, const char *name, const char *standard) {
    for (const char *c = strcmp(name, "-") == 0 ? standard : name; *c; c++)
        putc(is_control(*c) ? '?' : *c, file);
}
