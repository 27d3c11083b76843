/* Threads of the library, and the signals that they leave to others. */
#ifndef GF_THREAD_H
#define GF_THREAD_H

#include <pthread.h>
#include <signal.h>

/* Signals from outside wait, as far as this thread goes, until pthread_sigmask sets what was there
 * before. */
void gf_hold_signals(sigset_t *before);

/* Starts a thread that leaves signals from outside to the program's own threads: a handler must not
 * run where this library holds locks. Returns 0 or an errno. */
int gf_thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

#endif
