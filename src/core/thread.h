/* Threads of the library: the signals that they leave to others, the floating-point environment
 * that they compute in, and pools of them that share out numbered tasks. */
#ifndef GF_THREAD_H
#define GF_THREAD_H

#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "gpufilter.h"

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

/* ---- pools ----------------------------------------------------------------------------------- */

typedef struct gf_pool gf_pool;

/* Tasks 0..count-1 of one piece of work; the caller's to keep until gf_pool_wait has returned. */
typedef struct gf_work {
    /* thread: below the pool's number of threads, and no other task's at that time. */
    void (*run)(void *context, uint32_t task, uint32_t thread);
    void *context;
    uint32_t count;
    uint32_t next, done; /* the pool's */
    struct gf_work *link;
} gf_work;

/* A pool of at most so many threads, at least 1; none runs yet. */
gf_status gf_pool_open(uint32_t threads, gf_pool **pool, gf_error *error);
/* Waits for what was submitted. */
void gf_pool_close(gf_pool *pool);
/* Queues work; pieces are begun in the order they came, and overlap. Where the system has no thread
 * for it at all, the work is done when this returns. */
void gf_pool_submit(gf_pool *pool, gf_work *work);
/* Returns when every task of the work is done. */
void gf_pool_wait(gf_pool *pool, gf_work *work);
/* Does work in the calling thread as well, which is then one of the pool's: its last. Only when no
 * other work is under way; a pool that is submitted to runs nothing but single tasks this way. */
void gf_pool_run(gf_pool *pool, gf_work *work);
/* Seconds that tasks have taken since the pool was opened, of all threads together. */
double gf_pool_busy(gf_pool *pool);

/* Processors this process may run on. */
uint32_t gf_cpu_count(void);

#endif
