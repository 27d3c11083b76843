/* Worker threads that share out numbered tasks. They are started when there is work for them. */
#ifndef GF_POOL_H
#define GF_POOL_H

#include "gpufilter.h"

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
/* Only when no work is under way. */
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
