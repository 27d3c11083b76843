/* Threads: signal masks, busy times, the floating-point environment, and pools that run tasks. */
#ifndef GF_THREAD_H
#define GF_THREAD_H

#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

#include "gpufilter_tools.h"

/* Block asynchronous signals in this thread. *before: the mask to restore by pthread_sigmask. */
void gf_block_signals(sigset_t *before);

/* Start a thread with asynchronous signals blocked, because a handler of the program must not run
 * while this library holds locks. The thread inherits the floating-point environment of its
 * creator: the default one in every public function that starts threads. Return 0 or an errno. */
int gf_thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

/* Return the CPU time of this thread in ns. */
static inline uint64_t gf_thread_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Add the busy time of another run: sum the seconds, keep the larger number of workers. */
static inline void gf_busy_add(gf_busy *sum, gf_busy more) {
    sum->seconds += more.seconds;
    if (more.workers > sum->workers)
        sum->workers = more.workers;
}

/* Saved floating-point environment of a caller, exception flags included. */
typedef struct gf_float_env {
    bool quick;         /* saved in x87 and mxcsr; otherwise in `all` */
    unsigned short x87; /* x87 control word */
    unsigned int mxcsr; /* control and status of SSE */
    fenv_t all;
} gf_float_env;

/* Set the default environment (round to nearest, subnormals, no traps). Return the caller's. */
gf_float_env gf_float_env_enter(void);
/* Restore the caller's environment. */
void gf_float_env_leave(const gf_float_env *caller);

/* Compute in the default environment until the enclosing block exits by any path. The first
 * declaration in every public function that computes, parses or prints numbers: their bits must
 * depend neither on the caller's environment nor on -ffast-math in the program that links it. */
#define GF_FLOAT_ENV_SCOPE()                                                                       \
    __attribute__((cleanup(gf_float_env_leave), unused)) const gf_float_env float_env_of_caller =  \
        gf_float_env_enter()

typedef struct gf_pool gf_pool;

/* Tasks 0..count-1 of one work item. It must stay valid until gf_pool_wait returns, or `ended` is
 * called. */
typedef struct gf_work {
    /* Run one task. thread is below the pool's threads; concurrent tasks have different values. */
    void (*run)(void *context, uint32_t task, uint32_t thread);
    void *context;
    uint32_t count;
    /* Called after the last task, in its thread, when the pool has finished with the work. NULL:
     * the caller waits. */
    void (*ended)(void *context);
    bool first;          /* queue it before the others */
    uint32_t next, done; /* used by the pool */
    struct gf_work *link;
} gf_work;

/* Create a pool of up to `threads` threads, at least 1. Threads start on demand. */
gf_status gf_pool_open(uint32_t threads, gf_pool **pool, gf_error *error);
/* Finish all submitted work, then end the threads. NULL is allowed. */
void gf_pool_close(gf_pool *pool);
/* Queue work. Items start in order and may overlap. If no thread can be started, run it at once. */
void gf_pool_submit(gf_pool *pool, gf_work *work);
/* Wait until all tasks of the work are done. */
void gf_pool_wait(gf_pool *pool, gf_work *work);
/* Run work and use the calling thread as the pool's last thread. No other work may be in progress.
 * A pool that also receives gf_pool_submit may run only single tasks this way. */
void gf_pool_run(gf_pool *pool, gf_work *work);
/* Return the seconds that tasks have taken since the pool was created, summed over all threads. */
double gf_pool_busy(gf_pool *pool);

#endif
