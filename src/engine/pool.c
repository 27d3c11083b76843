#define _GNU_SOURCE /* sched_getaffinity */

#include "engine/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/thread.h"
#include "error.h"

struct gf_pool {
    pthread_mutex_t lock;
    pthread_cond_t queued, finished;
    gf_work *first, *last; /* with tasks not yet begun */
    bool closing;
    uint32_t threads;
    struct gf_worker {
        gf_pool *pool;
        uint32_t index;
        pthread_t thread;
    } workers[];
};

static void *work_loop(void *argument) {
    struct gf_worker *worker = argument;
    gf_pool *pool = worker->pool;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->first && !pool->closing)
            pthread_cond_wait(&pool->queued, &pool->lock);
        gf_work *work = pool->first;
        if (!work)
            break;
        uint32_t task = work->next++;
        if (work->next == work->count) {
            pool->first = work->link;
            if (!pool->first)
                pool->last = NULL;
        }
        pthread_mutex_unlock(&pool->lock);
        work->run(work->context, task, worker->index);
        pthread_mutex_lock(&pool->lock);
        if (++work->done == work->count)
            pthread_cond_broadcast(&pool->finished);
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
    int failed = 0;
    for (uint32_t i = 0; i < threads && !failed; i++) {
        pool->workers[i].pool = pool;
        pool->workers[i].index = i;
        failed = gf_thread_start(&pool->workers[i].thread, work_loop, &pool->workers[i]);
        pool->threads += !failed;
    }
    if (failed) {
        gf_pool_close(pool);
        return gf_fail(error, GF_FAILED, "cpu: cannot start %u threads: %s; use fewer --threads",
                       threads, strerror(failed));
    }
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
    for (uint32_t i = 0; i < pool->threads; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->finished);
    pthread_cond_destroy(&pool->queued);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

void gf_pool_submit(gf_pool *pool, gf_work *work) {
    work->next = work->done = 0;
    work->link = NULL;
    if (work->count == 0)
        return;
    if (pool->threads == 0) {
        for (; work->done < work->count; work->done++)
            work->run(work->context, work->done, 0);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    if (pool->last)
        pool->last->link = work;
    else
        pool->first = work;
    pool->last = work;
    if (work->count == 1)
        pthread_cond_signal(&pool->queued);
    else
        pthread_cond_broadcast(&pool->queued);
    pthread_mutex_unlock(&pool->lock);
}

void gf_pool_wait(gf_pool *pool, gf_work *work) {
    pthread_mutex_lock(&pool->lock);
    while (work->done < work->count)
        pthread_cond_wait(&pool->finished, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

uint32_t gf_cpu_count(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (uint32_t)CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : 1;
}
