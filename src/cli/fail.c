#include <stdarg.h>
#include <stdio.h>

#include "cli.h"

gf_status gf_cli_fail(gf_error *error, gf_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    error->status = status;
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    for (char *c = error->message; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    return status;
}
