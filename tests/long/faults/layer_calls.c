/* The calls of calls.def that need nothing special. */
#define _GNU_SOURCE

#include "layer_inside.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#define SPECIAL(...)
#define CALL(symbol, class, usual, other, lacking, interrupted, partial, type, parameters,         \
             arguments, failure)                                                                   \
    type __real_##symbol parameters;                                                               \
    type __wrap_##symbol parameters;                                                               \
    type __wrap_##symbol parameters {                                                              \
        const gf_fault_meeting met = gf_fault_meet(CALL_##symbol, FAULT_CAN_LACK, SITE);           \
        if (met.act == FAULT_FAIL) {                                                               \
            const int cause = errno = met.cause;                                                   \
            (void)cause;                                                                           \
            return failure;                                                                        \
        }                                                                                          \
        type result = __real_##symbol arguments;                                                   \
        if (met.act == FAULT_DIE)                                                                  \
            gf_fault_die();                                                                        \
        return result;                                                                             \
    }
#define CLOSING(symbol, class, usual, other, lacking, interrupted, partial, type, parameters,      \
                arguments, failure)                                                                \
    type __real_##symbol parameters;                                                               \
    type __wrap_##symbol parameters;                                                               \
    type __wrap_##symbol parameters {                                                              \
        const gf_fault_meeting met = gf_fault_meet(CALL_##symbol, FAULT_CAN_LACK, SITE);           \
        type result = __real_##symbol arguments;                                                   \
        if (met.act == FAULT_DIE)                                                                  \
            gf_fault_die();                                                                        \
        if (met.act == FAULT_FAIL) {                                                               \
            errno = met.cause;                                                                     \
            return failure;                                                                        \
        }                                                                                          \
        return result;                                                                             \
    }
#include "calls.def"
