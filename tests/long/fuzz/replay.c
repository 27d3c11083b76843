/* Run a fuzzing harness on inputs, without libFuzzer: HARNESS FILE|DIRECTORY...
 *
 * If an input crashes the harness or takes longer than LIMIT_SECONDS, print its name to standard
 * error. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>

#include "fuzz.h"

extern void __sanitizer_set_death_callback(void (*call)(void)) __attribute__((weak));

enum { LIMIT_SECONDS = 10 }; /* sanitizers are slow, and the machine may be busy */

static int report = 2; /* a copy of standard error, which a harness may redirect */
static const char *volatile running;
static unsigned inputs;

/* Async-signal-safe. */
static void replay_name_input(void) {
    if (running == NULL)
        return;
    (void)!write(report, "failed: ", 8);
    (void)!write(report, running, strlen(running));
    (void)!write(report, "\n", 1);
    running = NULL;
}

static void replay_on_signal(int number) {
    replay_name_input();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static int replay_file(const char *path, const struct stat *info, int kind, struct FTW *walk) {
    if (kind != FTW_F)
        return kind == FTW_D ? 0 : -1;
    size_t size;
    uint8_t *data = test_bytes(path, &size);
    /* Drop the byte that get_bytes adds, so that sanitizers detect a read past the end. */
    if (size != 0)
        data = realloc(data, size);
    running = path;
    (void)alarm(LIMIT_SECONDS);
    (void)LLVMFuzzerTestOneInput(data, size);
    running = NULL;
    inputs++;
    free(data);
    return 0;
}

int main(int argc, char **argv) {
    static const int fatal[] = {SIGABRT, SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    report = fcntl(2, F_DUPFD_CLOEXEC, 3);
    (void)setenv("CMOCKA_TEST_ABORT", "1", 1);
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        if (__sanitizer_set_death_callback == NULL || i < 2)
            (void)signal(fatal[i], replay_on_signal);
    if (__sanitizer_set_death_callback != NULL)
        __sanitizer_set_death_callback(replay_name_input);
    for (int i = 1; i < argc; i++)
        if (nftw(argv[i], replay_file, 8, FTW_PHYS) != 0) {
            fprintf(stderr, "cannot read %s\n", argv[i]);
            return 2;
        }
    printf("%u inputs\n", inputs);
    return 0;
}
