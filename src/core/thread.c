/* Signal masks, floating-point environment and thread pools. */
#define _GNU_SOURCE /* pthread_sigmask */

#include "core/thread.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "core/error.h"

void gf_block_signals(sigset_t *before) {
    /* Do not block synchronous faults: a blocked fault kills the process without a handler. */
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t outside;
    sigfillset(&outside);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&outside, faults[i]);
    pthread_sigmask(SIG_SETMASK, &outside, before);
}

int gf_thread_start(pthread_t *thread, void *(*run)(void *), void *argument) {
    sigset_t before;
    gf_block_signals(&before);
    int failed = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

enum { MXCSR_DEFAULT = 0x1f80, X87_DEFAULT = 0x37f, X87_MASKS = 0x3f };

gf_float_env gf_float_env_enter(void) {
    gf_float_env caller = {.quick = false};
#ifdef __x86_64__
    /* SSE arithmetic uses MXCSR. The C library converts decimals with the rounding mode of the x87
     * control word. Both are read and written directly: fegetenv and fesetenv take 0.3 us, ten
     * times as long as printing a number. They are still used when traps are unmasked, because
     * changing the control word could then raise a trap. */
    const unsigned short x87_default = X87_DEFAULT;
    __asm__ volatile("fnstcw %0" : "=m"(caller.x87));
    if ((caller.x87 & X87_MASKS) == X87_MASKS) {
        caller.quick = true;
        caller.mxcsr = __builtin_ia32_stmxcsr();
        __builtin_ia32_ldmxcsr(MXCSR_DEFAULT);
        if (caller.x87 != X87_DEFAULT)
            __asm__ volatile("fldcw %0" : : "m"(x87_default));
        return caller;
    }
#endif
    fegetenv(&caller.all);
    fesetenv(FE_DFL_ENV);
    return caller;
}

void gf_float_env_leave(const gf_float_env *caller) {
#ifdef __x86_64__
    if (caller->quick) {
        __builtin_ia32_ldmxcsr(caller->mxcsr);
        if (caller->x87 != X87_DEFAULT)
            __asm__ volatile("fldcw %0" : : "m"(caller->x87));
        return;
    }
#endif
    fesetenv(&caller->all);
}

struct gf_pool {
    pthread_mutex_t lock;
    pthread_cond_t queued, finished;
    gf_work *first, *last; /* queue of works with unstarted tasks; last: only if there is a first */
    uint64_t pending;      /* unstarted tasks */
    uint32_t idle;         /* threads that wait for tasks */
    uint32_t running;      /* threads started */
    uint32_t threads;      /* maximum number of threads */
    bool closing;
    double busy;
    struct gf_worker {
        gf_pool *pool;
        uint32_t index;
        pthread_t thread;
    } workers[];
};

/* Run the next task of the first work in the queue, without the lock. Called with the lock held. */
static void pool_run_task(gf_pool *pool, uint32_t thread) {
    gf_work *work = pool->first;
    const uint32_t task = work->next++;
    pool->pending--;
    if (work->next == work->count)
        pool->first = work->link;
    pthread_mutex_unlock(&pool->lock);
    const double began = gf_now();
    work->run(work->context, task, thread);
    const double spent = gf_now() - began;
    pthread_mutex_lock(&pool->lock);
    pool->busy += spent;
    if (++work->done < work->count)
        return;
    if (!work->ended) {
        pthread_cond_broadcast(&pool->finished);
        return;
    }
    pthread_mutex_unlock(&pool->lock);
    work->ended(work->context);
    pthread_mutex_lock(&pool->lock);
}

static void *pool_worker_loop(void *argument) {
    struct gf_worker *worker = argument;
    gf_pool *pool = worker->pool;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        pool->idle++;
        while (!pool->first && !pool->closing)
            pthread_cond_wait(&pool->queued, &pool->lock);
        pool->idle--;
        if (!pool->first)
            break;
        pool_run_task(pool, worker->index);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

gf_status gf_pool_open(uint32_t threads, gf_pool **out, gf_error *error) {
    gf_pool *pool = calloc(1, sizeof *pool + threads * sizeof pool->workers[0]);
    if (!pool)
        return gf_fail_memory(error, "cpu", threads * sizeof pool->workers[0], "threads");
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->queued, NULL);
    pthread_cond_init(&pool->finished, NULL);
    pool->threads = threads;
    *out = pool;
    return GF_OK;
}

void gf_pool_close(gf_pool *pool) {
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_cond_broadcast(&pool->queued);
    pthread_mutex_unlock(&pool->lock);
    for (uint32_t i = 0; i < pool->running; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->finished);
    pthread_cond_destroy(&pool->queued);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/* Queue work, with the lock held. own: the tasks that the caller runs, as the last thread. */
static void pool_enqueue(gf_pool *pool, gf_work *work, uint32_t own) {
    const uint32_t others = work->count - own;
    work->next = work->done = 0;
    work->link = work->first ? pool->first : NULL;
    if (work->first || !pool->first) {
        if (!pool->first)
            pool->last = work;
        pool->first = work;
    } else {
        pool->last->link = work;
        pool->last = work;
    }
    pool->pending += work->count;
    /* Start a thread per pending task that no idle thread can run. A failed start is no error. */
    for (uint64_t waiting = pool->idle + own;
         waiting < pool->pending && pool->running < pool->threads - own; waiting++) {
        struct gf_worker *worker = &pool->workers[pool->running];
        *worker = (struct gf_worker){.pool = pool, .index = pool->running};
        if (gf_thread_start(&worker->thread, pool_worker_loop, worker) != 0)
            break;
        pool->running++;
    }
    /* Wake at most one thread per task: superfluous wake-ups contend for the lock. */
    if (others >= pool->idle)
        pthread_cond_broadcast(&pool->queued);
    else
        for (uint32_t i = 0; i < others; i++)
            pthread_cond_signal(&pool->queued);
}

void gf_pool_submit(gf_pool *pool, gf_work *work) {
    if (work->count == 0)
        return;
    pthread_mutex_lock(&pool->lock);
    pool_enqueue(pool, work, 0);
    while (!pool->running && pool->first)
        pool_run_task(pool, 0);
    pthread_mutex_unlock(&pool->lock);
}

void gf_pool_wait(gf_pool *pool, gf_work *work) {
    pthread_mutex_lock(&pool->lock);
    while (work->done < work->count)
        pthread_cond_wait(&pool->finished, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

void gf_pool_run(gf_pool *pool, gf_work *work) {
    if (work->count == 0)
        return;
    pthread_mutex_lock(&pool->lock);
    assert(!pool->first && (work->count == 1 || pool->running < pool->threads));
    pool_enqueue(pool, work, 1);
    while (pool->first)
        pool_run_task(pool, pool->threads - 1);
    while (work->done < work->count)
        pthread_cond_wait(&pool->finished, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

double gf_pool_busy(gf_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    const double busy = pool->busy;
    pthread_mutex_unlock(&pool->lock);
    return busy;
}
