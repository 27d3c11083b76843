/* Threads of the library: the signals that they leave to others, and the floating-point environment
 * that they compute in. */
#ifndef GF_THREAD_H
#define GF_THREAD_H

#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* Signals from outside wait, as far as this thread goes, until pthread_sigmask sets what was there
 * before. */
void gf_hold_signals(sigset_t *before);

/* Start a thread that leaves signals from outside to the program's own threads: a handler must not
 * run where this library holds locks. It inherits the floating-point environment of its creator,
 * which is the default one in every public function that starts threads. Return 0 or an errno. */
int gf_thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

/* The floating-point environment of a caller, exception flags included. */
typedef struct gf_float_env {
    bool quick;         /* saved as the two words below; otherwise as a whole */
    unsigned short x87; /* x87 control word */
    unsigned int mxcsr; /* control and flags of SSE */
    fenv_t all;
} gf_float_env;

/* Set the default environment (round to nearest, subnormal numbers, no traps) for this thread.
 * Return the caller's. */
gf_float_env gf_float_env_enter(void);
/* Restore the caller's environment. */
void gf_float_env_leave(const gf_float_env *caller);

/* Compute in the default environment until the enclosing block ends, by whichever way. The first
 * declaration in every public function that computes, parses or prints numbers: their bits must not
 * depend on what the caller has set, nor on -ffast-math in the program that links the library. */
#define GF_FLOAT_ENV_SCOPE()                                                                       \
    __attribute__((cleanup(gf_float_env_leave), unused)) const gf_float_env float_env_of_caller =  \
        gf_float_env_enter()

#endif
