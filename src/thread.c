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

/* ---- floating-point environment -------------------------------------------------------------- */

#ifdef __x86_64__

/* SSE computes by MXCSR; the C library converts decimals by the rounding mode of the x87 control
 * word. Both are read and written here: fegetenv and fesetenv take 0.3 us, ten times as long as
 * printing a number. They remain for traps, which a change of the control word could set off. */
enum { MXCSR_DEFAULT = 0x1f80, X87_DEFAULT = 0x37f, X87_MASKS = 0x3f };

static bool enter_quickly(gf_float_env *caller) {
    const unsigned short x87_default = X87_DEFAULT;
    __asm__ volatile("fnstcw %0" : "=m"(caller->x87));
    if ((caller->x87 & X87_MASKS) != X87_MASKS)
        return false;
    caller->mxcsr = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(MXCSR_DEFAULT);
    if (caller->x87 != X87_DEFAULT)
        __asm__ volatile("fldcw %0" : : "m"(x87_default));
    return true;
}

static void leave_quickly(const gf_float_env *caller) {
    __builtin_ia32_ldmxcsr(caller->mxcsr);
    if (caller->x87 != X87_DEFAULT)
        __asm__ volatile("fldcw %0" : : "m"(caller->x87));
}

#else

static bool enter_quickly(gf_float_env *caller) {
    (void)caller;
    return false;
}

static void leave_quickly(const gf_float_env *caller) {
    (void)caller;
}

#endif

gf_float_env gf_float_env_enter(void) {
    gf_float_env caller;
    caller.quick = enter_quickly(&caller);
    if (!caller.quick) {
        fegetenv(&caller.all);
        fesetenv(FE_DFL_ENV);
    }
    return caller;
}

void gf_float_env_leave(const gf_float_env *caller) {
    if (caller->quick)
        leave_quickly(caller);
    else
        fesetenv(&caller->all);
}
