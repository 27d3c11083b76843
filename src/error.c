#include "error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void gf_set_error(gf_error *error, gf_status status, const char *format, ...) {
    if (!error)
        return;
    error->status = status;
    va_list args;
    va_start(args, format);
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    /* A file name may hold newlines and escape sequences; a message is one harmless line. */
    for (char *c = error->message; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
}

void gf_set_memory_error(gf_error *error, const char *name, uint64_t bytes, const char *what) {
    gf_set_error(error, GF_FAILED, "%s: out of memory for %" PRIu64 " bytes of %s", name, bytes,
                 what);
}
