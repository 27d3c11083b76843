/* Errors of waiting for a child: no result is read before the child has ended. */
#define _GNU_SOURCE /* syscall */

#include <sys/resource.h>
#include <sys/syscall.h>

#include "sandbox_util.h"

enum { LAST = 30000000 };

static void computes_for_a_while(void *context) {
    shared->reached = 1;
    for (volatile uint64_t i = 0; i <= LAST; i++)
        shared->counter = i;
}

/* Number of failures of wait4, and their errno. ECHILD: the child is reaped first. */
static struct { int times, cause; } wait_fails;

/* Replace the function of the C library. */
pid_t wait4(pid_t child, int *status, int options, struct rusage *usage) {
    if (wait_fails.times == 0 || wait_fails.cause == ECHILD) {
        const long got = syscall(SYS_wait4, child, status, options, usage);
        if (wait_fails.times == 0)
            return (pid_t)got;
    }
    wait_fails.times--;
    errno = wait_fails.cause;
    return -1;
}

/* Check that the image fails and that no child still writes to the memory. */
TEST(kills_a_child_if_waiting_fails) {
    static const int causes[] = {EIO, EINVAL, EPERM, ENOSYS};
    static const int times[] = {1, 1000};
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        for (size_t k = 0; k < sizeof times / sizeof *times; k++) {
            gf_sandbox_end end = GF_SANDBOX_DONE;
            char message[200];
            wait_fails.times = times[k];
            wait_fails.cause = causes[i];
            (void)snprintf(message, sizeof message,
                           "x: cannot wait for the child process that decodes it: %s; run again",
                           strerror(causes[i]));
            const gf_status status = gf_sandbox_run(never_ends, NULL, &memory, 2, "x", &end, &why);
            wait_fails.times = 0;
            assert_int_equal(status, GF_FAILED);
            assert_string_equal(why.message, message);
            assert_false(children_left());
        }
}

/* Check the result after many interrupted waits, and after other code has reaped the child. */
TEST(returns_the_result_after_failed_waits) {
    int context = 0;
    wait_fails.times = 1000;
    wait_fails.cause = EINTR;
    assert_int_equal(run(computes_for_a_while, &context, 60), GF_SANDBOX_DONE);
    assert_int_equal(wait_fails.times, 0);
    assert_int_equal(shared->counter, LAST);
    wait_fails.times = 1;
    wait_fails.cause = ECHILD;
    assert_int_equal(run(computes_for_a_while, &context, 60), GF_SANDBOX_DONE);
    assert_int_equal(shared->counter, LAST);
}

int main(void) {
    return test_main(&(test_fixture){map_shared, unmap_shared});
}
