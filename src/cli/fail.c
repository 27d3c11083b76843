/* What is told to people may hold names of files, and those may hold anything. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "colour.h"

/* Those from 0x80 to 0x9f have two bytes in UTF-8; one alone is no UTF-8. */
bool gf_cli_is_control(const char *text, size_t i) {
    const unsigned char *at = (const unsigned char *)text + i;
    const unsigned before = i > 0 ? at[-1] : 0;

    if (*at >= 0x80 && *at < 0xa0)
        return before < 0x80 || before == 0xc2;
    return *at < 0x20 || *at == 0x7f || (*at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0);
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
    for (size_t i = 0; error->message[i]; i++)
        if (gf_cli_is_control(error->message, i))
            error->message[i] = '?';
    return status;
}

void gf_cli_complain(const gf_error *error) {
    const bool colour = gf_cli_colour_on(stderr);
    fflush(stdout);
    fprintf(stderr, "%sgpufilter:%s %s\n", gf_cli_paint_text(colour, GF_PAINT_BAD),
            gf_cli_paint_text(colour, GF_PAINT_OFF), error->message);
}

void gf_cli_print_name(FILE *file, const char *name, const char *standard) {
    const char *text = strcmp(name, "-") == 0 ? standard : name;
    for (size_t i = 0; text[i]; i++)
        putc(gf_cli_is_control(text, i) ? '?' : text[i], file);
}
