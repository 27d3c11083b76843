/* The CALL and CLOSING entries of calls.def. */
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
        const gf_fault_decision decision =                                                         \
            gf_fault_decide(CALL_##symbol, FAULT_CAN_BE_UNSUPPORTED, SITE);                        \
        if (decision.action == FAULT_FAIL) {                                                       \
            const int cause = errno = decision.cause;                                              \
            (void)cause;                                                                           \
            return failure;                                                                        \
        }                                                                                          \
        type result = __real_##symbol arguments;                                                   \
        if (decision.action == FAULT_DIE)                                                          \
            gf_fault_die();                                                                        \
        return result;                                                                             \
    }
#define CLOSING(symbol, class, usual, other, lacking, interrupted, partial, type, parameters,      \
                arguments, failure)                                                                \
    type __real_##symbol parameters;                                                               \
    type __wrap_##symbol parameters;                                                               \
    type __wrap_##symbol parameters {                                                              \
        const gf_fault_decision decision =                                                         \
            gf_fault_decide(CALL_##symbol, FAULT_CAN_BE_UNSUPPORTED, SITE);                        \
        type result = __real_##symbol arguments;                                                   \
        if (decision.action == FAULT_DIE)                                                          \
            gf_fault_die();                                                                        \
        if (decision.action == FAULT_FAIL) {                                                       \
            errno = decision.cause;                                                                \
            return failure;                                                                        \
        }                                                                                          \
        return result;                                                                             \
    }
#include "calls.def"
