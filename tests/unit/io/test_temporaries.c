/* Signal handlers of several threads, in the middle of what these are doing. Each test is a process
 * of its own: a thread that comes second never goes on. */
#define _GNU_SOURCE

#include "io_util.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

#include "io/output.h"
#include "testing.h"

enum { PATIENCE = 10000 };                                /* rests of a millisecond */
enum { WAITED = 1, CAME_BACK = 2, STAYED = 4, FULL = 8 }; /* what may go wrong */

/* What is to happen instead of waiting, and how often this thread has waited. */
static void (*instead)(void);
static _Thread_local int rests;

/* Takes the place of the system's. */
int poll(struct pollfd *fds, nfds_t count, int milliseconds) {
    (void)fds, (void)count;
    rests++;
    if (instead != NULL)
        instead();
    else
        (void)nanosleep(&(struct timespec){.tv_nsec = milliseconds * 50000L}, NULL);
    return 0;
}

static void after(long microseconds) {
    (void)nanosleep(&(struct timespec){.tv_nsec = microseconds * 1000}, NULL);
}

/* What `run` returns in a process of its own. */
static int in_process(int (*run)(uint64_t), uint64_t argument) {
    int status = 0;
    const pid_t child = fork();

    if (child == 0)
        _exit(run(argument));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* ---- a thread that takes long ---------------------------------------------------------------- */

static void *add(void *path) {
    return (void *)(intptr_t)gf_temporary_add(path);
}

/* The slot of a path that another thread is about to create. */
static int add_elsewhere(const char *name) {
    pthread_t thread;
    void *slot;

    if (pthread_create(&thread, NULL, add, (void *)in_folder(name)) != 0 ||
        pthread_join(thread, &slot) != 0)
        _exit(FULL);
    return (int)(intptr_t)slot;
}

static void no_time(void) {}

static int remove_beside_slow(uint64_t unused) {
    (void)unused;
    for (int i = 0; i < 3; i++)
        (void)add_elsewhere("never");
    instead = no_time;
    gf_remove_temporaries();
    return rests == PATIENCE ? 0 : WAITED;
}

static void shares_one_patience(void **state) {
    (void)state;
    assert_int_equal(in_process(remove_beside_slow, 0), 0);
}

static int slow;

static void rename_meanwhile(void) {
    (void)rename(in_folder("last"), in_folder("first"));
    gf_temporary_made(slow);
}

static int remove_beside_renaming(uint64_t unused) {
    (void)unused;
    gf_temporary_made(gf_temporary_add(in_folder("first")));
    slow = add_elsewhere("slow");
    gf_temporary_made(gf_temporary_add(in_folder("last")));
    put_bytes(in_folder("last"), "", 0);
    instead = rename_meanwhile;
    gf_remove_temporaries();
    return rests == 1 ? 0 : WAITED;
}

static void removes_what_was_renamed(void **state) {
    (void)state;
    assert_int_equal(in_process(remove_beside_renaming, 0), 0);
    assert_int_equal(count_files(true), 0);
}

/* ---- a second thread's signal ---------------------------------------------------------------- */

static atomic_int ready, came_back;
static pthread_t second;

static void on_second(int number) {
    (void)number;
    gf_remove_temporaries();
    atomic_store(&came_back, 1);
}

static void *is_interrupted(void *unused) {
    const int slot = gf_temporary_add(in_folder("half"));

    put_bytes(in_folder("half"), "", 0);
    atomic_store(&ready, 1);
    while (!atomic_load(&came_back))
        after(100);
    gf_temporary_made(slot);
    return unused;
}

static void signal_second(void) {
    if (rests == 1)
        (void)pthread_kill(second, SIGUSR1);
    after(100);
}

static int remove_beside_interrupted(uint64_t unused) {
    struct sigaction action = {.sa_handler = on_second};

    (void)unused;
    (void)sigaction(SIGUSR1, &action, NULL);
    if (pthread_create(&second, NULL, is_interrupted, NULL) != 0)
        return FULL;
    while (!atomic_load(&ready))
        after(100);
    instead = signal_second;
    gf_remove_temporaries();
    const int waited = rests < PATIENCE ? 0 : WAITED;
    after(20000);
    return waited | (atomic_load(&came_back) ? CAME_BACK : 0) |
           (access(in_folder("half"), F_OK) == 0 ? STAYED : 0);
}

static void holds_a_second_thread(void **state) {
    (void)state;
    assert_int_equal(in_process(remove_beside_interrupted, 0), 0);
}

/* ---- a signal at any moment ------------------------------------------------------------------ */

static void on_first(int number) {
    (void)number;
    gf_remove_temporaries();
    const int waited = rests < PATIENCE ? 0 : WAITED;
    after(500); /* for whoever would go on */
    _exit(waited);
}

/* Only notes that there would be files: then it is nearly always in the middle of that. */
static bool only_noted;

static void note_all(const char *path) {
    for (;;) {
        const int slot = gf_temporary_add(path);
        gf_temporary_made(slot);
        gf_temporary_drop(slot);
    }
}

/* Makes files without end, and keeps some. */
static void create_all(char who) {
    char path[2048] = "noted";

    if (only_noted)
        note_all(path);

    for (int i = 0;; i++) {
        snprintf(path, sizeof path, "%s/%c%d", test_folder, who, i);
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

static void *create_beside(void *unused) {
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

    only_noted = microseconds % 2 != 0;
    (void)sigaction(SIGUSR1, &action, NULL);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    (void)pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    if (pthread_create(&threads[0], NULL, create_beside, NULL) != 0 ||
        pthread_create(&threads[1], NULL, send_later, &when) != 0 ||
        pthread_detach(threads[1]) != 0)
        return FULL;
    (void)pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
    create_all('a');
    return 0;
}

static void leaves_none_whenever(void **state) {
    test_random random = {test_environment("GF_TEST_SEED", 1)};

    (void)state;
    for (int i = 0; i < 150; i++) {
        assert_int_equal(in_process(create_until_signalled, 100 + test_below(&random, 2000)), 0);
        assert_int_equal(count_files(true), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(shares_one_patience, empty_folder),
        cmocka_unit_test_teardown(removes_what_was_renamed, empty_folder),
        cmocka_unit_test_teardown(holds_a_second_thread, empty_folder),
        cmocka_unit_test_teardown(leaves_none_whenever, empty_folder),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
