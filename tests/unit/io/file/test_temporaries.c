/* Signal handlers of several threads while the threads create temporary files. Each test runs in a
 * child process, because a second thread never returns from the handler. */
#define _GNU_SOURCE

#include "io_util.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

#include "io/file/output.h"
#include "testing.h"

enum { MAX_POLLS = 10000 };                              /* maximum number of polls of 1 ms */
enum { WAITED = 1, RETURNED = 2, STAYED = 4, FULL = 8 }; /* failures, as bits of an exit code */

/* Function called instead of waiting, and number of polls of this thread. */
static void (*instead)(void);
static _Thread_local int polls;

/* Replace the function of the C library. */
int poll(struct pollfd *fds, nfds_t count, int milliseconds) {
    polls++;
    if (instead != NULL)
        instead();
    else
        (void)nanosleep(&(struct timespec){.tv_nsec = milliseconds * 50000L}, NULL);
    return 0;
}

static void after(long microseconds) {
    (void)nanosleep(&(struct timespec){.tv_nsec = microseconds * 1000}, NULL);
}

/* Run a function in a child process and return its result. */
static int in_process(int (*run)(uint64_t), uint64_t argument) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0)
        _exit(run(argument));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* ---- slow threads ---------------------------------------------------------------------------- */

static void *add(void *path) {
    return (void *)(intptr_t)gf_temporary_add(path);
}

/* Add a path in another thread, as if it were about to create the file. Return the slot. */
static int add_elsewhere(const char *name) {
    pthread_t thread;
    void *slot;
    if (pthread_create(&thread, NULL, add, (void *)in_directory(name)) != 0 ||
        pthread_join(thread, &slot) != 0)
        _exit(FULL);
    return (int)(intptr_t)slot;
}

static void no_time(void) {}

static int remove_during_slow_creation(uint64_t unused) {
    for (int i = 0; i < 3; i++)
        (void)add_elsewhere("never");
    instead = no_time;
    gf_remove_temporaries();
    return polls == MAX_POLLS ? 0 : WAITED;
}

TEST(shares_one_timeout) {
    assert_int_equal(in_process(remove_during_slow_creation, 0), 0);
}

static int slow;

static void rename_while_waiting(void) {
    (void)rename(in_directory("last"), in_directory("first"));
    gf_temporary_made(slow);
}

static int remove_during_rename(uint64_t unused) {
    gf_temporary_made(gf_temporary_add(in_directory("first")));
    slow = add_elsewhere("slow");
    gf_temporary_made(gf_temporary_add(in_directory("last")));
    put_bytes(in_directory("last"), "", 0);
    instead = rename_while_waiting;
    gf_remove_temporaries();
    return polls == 1 ? 0 : WAITED;
}

TEST(removes_renamed_files) {
    assert_int_equal(in_process(remove_during_rename, 0), 0);
    assert_int_equal(count_files(true), 0);
}

/* ---- signals in two threads ------------------------------------------------------------------ */

static atomic_int ready, returned;
static pthread_t second;

static void on_second(int number) {
    gf_remove_temporaries();
    atomic_store(&returned, 1);
}

static void *is_interrupted(void *unused) {
    const int slot = gf_temporary_add(in_directory("half"));
    put_bytes(in_directory("half"), "", 0);
    atomic_store(&ready, 1);
    while (!atomic_load(&returned))
        after(100);
    gf_temporary_made(slot);
    return unused;
}

static void signal_second(void) {
    if (polls == 1)
        (void)pthread_kill(second, SIGUSR1);
    after(100);
}

static int remove_during_interrupt(uint64_t unused) {
    struct sigaction action = {.sa_handler = on_second};
    (void)sigaction(SIGUSR1, &action, NULL);
    if (pthread_create(&second, NULL, is_interrupted, NULL) != 0)
        return FULL;
    while (!atomic_load(&ready))
        after(100);
    instead = signal_second;
    gf_remove_temporaries();
    const int waited = polls < MAX_POLLS ? 0 : WAITED;
    after(20000);
    return waited | (atomic_load(&returned) ? RETURNED : 0) |
           (access(in_directory("half"), F_OK) == 0 ? STAYED : 0);
}

TEST(blocks_a_second_thread) {
    assert_int_equal(in_process(remove_during_interrupt, 0), 0);
}

/* ---- signals at random times ----------------------------------------------------------------- */

static void on_first(int number) {
    gf_remove_temporaries();
    const int waited = polls < MAX_POLLS ? 0 : WAITED;
    after(500); /* time for other threads, if they still run */
    _exit(waited);
}

/* Only add and drop paths, so that nearly every signal interrupts these calls. */
static bool only_adds;

static void add_and_drop(const char *path) {
    for (;;) {
        const int slot = gf_temporary_add(path);
        gf_temporary_made(slot);
        gf_temporary_drop(slot);
    }
}

/* Create files endlessly, and keep one in 16. */
static void create_all(char prefix) {
    char path[2048] = "noted";
    if (only_adds)
        add_and_drop(path);

    for (int i = 0;; i++) {
        snprintf(path, sizeof path, "%s/%c%d", test_directory, prefix, i);
        const int slot = gf_temporary_add(path);
        if (slot < 0)
            _exit(FULL);
        const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        gf_temporary_made(slot);
        (void)close(file);
        if (i % 16 != 0) {
            (void)unlink(path);
            gf_temporary_drop(slot);
        }
    }
}

static void *create_in_thread(void *unused) {
    create_all('b');
    return unused;
}

static void *send_later(void *when) {
    const struct timespec *time = when;
    (void)nanosleep(time, NULL);
    (void)kill(getpid(), SIGUSR1);
    return NULL;
}

static int create_until_signalled(uint64_t microseconds) {
    struct sigaction action = {.sa_handler = on_first};
    struct timespec when = {.tv_nsec = (long)microseconds * 1000};
    sigset_t usr1;
    pthread_t threads[2];
    only_adds = microseconds % 2 != 0;
    (void)sigaction(SIGUSR1, &action, NULL);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    (void)pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    if (pthread_create(&threads[0], NULL, create_in_thread, NULL) != 0 ||
        pthread_create(&threads[1], NULL, send_later, &when) != 0 ||
        pthread_detach(threads[1]) != 0)
        return FULL;
    (void)pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
    create_all('a');
    return 0;
}

TEST(leaves_no_files_at_any_time) {
    test_random random = {test_environment("GF_TEST_SEED", 1)};
    for (int i = 0; i < 150; i++) {
        assert_int_equal(in_process(create_until_signalled, 100 + test_below(&random, 2000)), 0);
        assert_int_equal(count_files(true), 0);
    }
}

int main(void) {
    return test_main_in_directory();
}
