/* Errors as values: a function fills in the caller's gf_error and returns its status. */
#ifndef GF_ERROR_H
#define GF_ERROR_H

#include "gpufilter.h"

/* Return the argument. A call avoids the warning about an unused value of gf_fail. */
static inline gf_status gf_failed(gf_status status) {
    return status;
}

/* Call gf_set_error as an expression of value `status`, for `return gf_fail(...)`. A macro, so that
 * compilers and analyzers see that the value is not GF_OK. The first failure is the root cause:
 * callers never overwrite an error with a later one. */
#define gf_fail(error, status, ...)                                                                \
    ((void)gf_set_error(error, status, __VA_ARGS__), gf_failed(status))

/* Set the errno of a failure, and return GF_FAILED. */
static inline gf_status gf_fail_cause(gf_error *error, int cause) {
    if (error)
        error->cause = cause;
    return GF_FAILED;
}

/* Return the status of an earlier result, and copy it if it is an error. */
static inline gf_status gf_return_error(const gf_error *earlier, gf_error *error) {
    if (error && earlier->status)
        *error = *earlier;
    return earlier->status;
}

/* Fail with "NAME: out of memory for N bytes of WHAT". */
#define gf_fail_memory(error, name, bytes, what)                                                   \
    (gf_set_memory_error(error, name, bytes, what), gf_failed(GF_FAILED))
void gf_set_memory_error(gf_error *error, const char *name, uint64_t bytes, const char *what);

#endif
