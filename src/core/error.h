/* Errors are values: fill in the caller's gf_error and return its status. */
#ifndef GF_ERROR_H
#define GF_ERROR_H

#include "gpufilter.h"

/* Its argument; a call, so that a gf_fail whose value is not wanted is no warning. */
static inline gf_status gf_failed(gf_status status) {
    return status;
}

/* gf_set_error as an expression of value `status`, for `return gf_fail(...)`: a macro, so that
 * compilers and analysers see that what follows a failure is not GF_OK. The first failure is the
 * one that explains: callers never overwrite an error with a later one. */
#define gf_fail(error, status, ...)                                                                \
    ((void)gf_set_error(error, status, __VA_ARGS__), gf_failed(status))

/* "NAME: out of memory for N bytes of WHAT". */
#define gf_fail_memory(error, name, bytes, what)                                                   \
    (gf_set_memory_error(error, name, bytes, what), gf_failed(GF_FAILED))
void gf_set_memory_error(gf_error *error, const char *name, uint64_t bytes, const char *what);

#endif
