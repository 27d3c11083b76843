/* A fixed set of worker threads that share out numbered tasks. */
#ifndef GF_POOL_H
#define GF_POOL_H

#include "gpufilter.h"

typedef struct gf_pool gf_pool;

/* Tasks 0..count-1 of one piece of work; the caller's to keep until gf_pool_wait has returned. */
typedef struct gf_work {
    void (*run)(void *context, uint32_t task, uint32_t thread);
    void *context;
    uint32_t count;
    uint32_t next, done; /* the pool's */
    struct gf_work *link;
} gf_work;

/* Without threads (0) work is done where it is submitted, as thread 0. */
gf_status gf_pool_open(uint32_t threads, gf_pool **pool, gf_error *error);
/* Only when no work is under way. */
void gf_pool_close(gf_pool *pool);
/* Queues work; pieces are begun in the order they came, and overlap. */
void gf_pool_submit(gf_pool *pool, gf_work *work);
/* Returns when every task of the work is done. */
void gf_pool_wait(gf_pool *pool, gf_work *work);

/* Processors this process may run on. */
uint32_t gf_cpu_count(void);

#endif
