/* Threads of this process as the ranks of one job. */
#ifndef RANK_THREADS_H
#define RANK_THREADS_H

#include "gpufilter.h"

/* Calls `rank` once in each of `count` threads, with ranks that reach each other, and returns when
 * all have returned. The process aborts with a message where ranks make different calls, and where
 * all that have not returned wait in vain. cmocka's checks may not be used in `rank`: they jump to
 * another thread's stack. */
void run_as_ranks(uint32_t count, void (*rank)(const gf_ranks *ranks, void *context),
                  void *context);

#endif
