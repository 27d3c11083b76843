/* Errors are values: fill in the caller's gf_error and return its status. */
#ifndef GF_ERROR_H
#define GF_ERROR_H

#include "gpufilter.h"

/* Sets the message and returns status, so that callers can write `return gf_fail(...)`. The first
 * failure is the one that explains: callers never overwrite an error with a later one. Control
 * characters (from file names) are replaced, the message stays one line. error may be NULL. */
gf_status gf_fail(gf_error *error, gf_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "NAME: out of memory for N bytes of WHAT". */
gf_status gf_fail_memory(gf_error *error, const char *name, uint64_t bytes, const char *what);

#endif
