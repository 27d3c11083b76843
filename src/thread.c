#define _GNU_SOURCE /* pthread_sigmask */

#include "thread.h"

void gf_hold_signals(sigset_t *before) {
    /* A fault is the thread's own: blocked, it would end the process past every handler. */
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t outside;
    sigfillset(&outside);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&outside, faults[i]);
    pthread_sigmask(SIG_SETMASK, &outside, before);
}

int gf_thread_start(pthread_t *thread, void *(*run)(void *), void *argument) {
    sigset_t before;
    gf_hold_signals(&before);
    int failed = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}
