/* The sandbox with the signals, children, threads and death of its parent process. */
#define _GNU_SOURCE /* usleep */

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "io/stb/sandbox.h"

#include "sandbox_util.h"

/* ---- work functions -------------------------------------------------------------------------- */

static void computes_for_a_while(void *context) {
    shared->reached = 1;
    for (volatile uint64_t i = 0; i < UINT64_C(300000000); i++)
        shared->counter = i;
}

/* ---- signals, children and threads ----------------------------------------------------------- */

static volatile sig_atomic_t handled;

static void on_signal(int number) {
    handled++;
}

static void reap_all(int number) {
    handled++;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
}

/* The handling of SIGCHLD in the program has no effect, and its handler is not called. */
TEST(ignores_sigchld_handlers) {
    void (*const handlers[])(int) = {SIG_IGN, SIG_DFL, on_signal, reap_all};
    int context = 0;
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++) {
        const struct sigaction action = {.sa_handler = handlers[i]};
        struct sigaction before;
        handled = 0;
        assert_int_equal(sigaction(SIGCHLD, &action, &before), 0);
        assert_int_equal(run(succeeds, &context, 60), GF_SANDBOX_DONE);
        assert_int_equal(run(aborts, &context, 60), GF_SANDBOX_STOPPED);
        assert_int_equal(handled, 0);
        assert_int_equal(sigaction(SIGCHLD, &before, NULL), 0);
    }
}

/* A handler that interrupts system calls runs in the parent only. It would end the child. */
TEST(waits_during_signals) {
    const struct sigaction action = {.sa_handler = on_signal};
    const struct itimerval often = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};
    struct sigaction before;
    handled = 0;
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    assert_int_equal(run(computes_for_a_while, NULL, 60), GF_SANDBOX_DONE);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    assert_in_range(handled, 5, 100000);
}

static void signal_the_group(int number) {
    (void)kill(0, SIGUSR1);
}

/* Signal the process group, as a terminal does. */
TEST(ignores_signals_to_the_group) {
    int status;
    const pid_t group = fork();
    if (group == 0) {
        const struct sigaction often = {.sa_handler = signal_the_group};
        const struct sigaction received = {.sa_handler = on_signal};
        const struct itimerval time = {{0, 5000}, {0, 5000}};
        gf_sandbox_end end;
        handled = 0;
        if (setpgid(0, 0) != 0 || sigaction(SIGALRM, &often, NULL) != 0 ||
            sigaction(SIGUSR1, &received, NULL) != 0 || setitimer(ITIMER_REAL, &time, NULL) != 0 ||
            gf_sandbox_run(computes_for_a_while, NULL, &memory, 60, "x", &end, NULL) != GF_OK)
            _exit(10);
        _exit(end != GF_SANDBOX_DONE ? 11 : handled < 5 ? 12 : 0);
    }
    assert_int_equal(waitpid(group, &status, 0), group);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* A killed parent leaves no child. */
TEST(dies_with_its_parent) {
    gf_sandbox_end end;
    int status;
    memset((void *)shared, 0, sizeof *shared);
    /* Orphans become children of this process. */
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    const pid_t parent = fork();
    if (parent == 0) {
        (void)gf_sandbox_run(never_ends, NULL, &memory, 30, "x", &end, NULL);
        _exit(0);
    }
    while (shared->counter < 1000)
        usleep(1000);
    assert_int_equal(kill(parent, SIGKILL), 0);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    pid_t orphan = 0;
    for (int i = 0; i < 1000 && orphan == 0; i++) {
        orphan = waitpid(-1, &status, WNOHANG | __WALL);
        usleep(10000);
    }
    assert_in_range(orphan, 1, INT_MAX);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0);
}

enum { THREADS = 4, ROUNDS = 20 };
static atomic_bool over;

static void *keep_allocating(void *context) {
    while (!over) {
        for (size_t size = 16; size < 1 << 13; size *= 2)
            free(memset(malloc(size), 1, size));
        usleep(100);
    }
    return NULL;
}

static void *run_many(void *context) {
    gf_sandbox_end end = GF_SANDBOX_TIME;
    volatile int *done = context;
    for (int i = 0; i < ROUNDS; i++) {
        const bool fails = i % 4 == 3;
        pid_t self = getpid();
        gf_sandbox_work *work = fails ? aborts : succeeds;
        if (gf_sandbox_run(work, &self, &memory, 60, "x", &end, NULL) == GF_OK &&
            end == (fails ? GF_SANDBOX_STOPPED : GF_SANDBOX_DONE))
            ++*done;
    }
    return NULL;
}

TEST(runs_in_many_threads) {
    pthread_t threads[2 * THREADS];
    int done[THREADS] = {0};
    over = false;
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, &done[i]), 0);
        assert_int_equal(pthread_create(&threads[THREADS + i], NULL, keep_allocating, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    over = true;
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[THREADS + i], NULL), 0);
        assert_int_equal(done[i], ROUNDS);
    }
    assert_false(children_left());
}

int main(void) {
    return test_main(&(test_fixture){map_shared, unmap_shared});
}
