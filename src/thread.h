/* Threads of the library. */
#ifndef GF_THREAD_H
#define GF_THREAD_H

#include <pthread.h>

/* Starts a thread that leaves signals from outside to the program's own threads: a handler must not
 * run where this library holds locks. Returns 0 or an errno. */
int gf_thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

#endif
