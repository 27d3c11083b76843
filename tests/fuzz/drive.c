/* Our own driver for the harnesses: any compiler, no coverage. It runs what it is given, and then
 * what a seeded mutator makes of it, as often or as long as is said:
 *
 *     HARNESS [-runs=N] [-max_total_time=SECONDS] [-seed=N] [FILE|FOLDER]...
 *
 * An input that crashes, or takes more than a second of processor time, is left in the folder
 * $FUZZ_CRASHES (the present one, if that is not set), and the exit code is not 0. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>

#include "fuzz.h"
#include "mutate.h"

#pragma weak LLVMFuzzerCustomMutator
extern void __sanitizer_set_death_callback(void (*call)(void)) __attribute__((weak));

enum { MOST = 4096, POOL = 1 << 12, SEEN = 1 << 20, TICKS = 4, STILL_TICKS = 60 };

static const char *harness;
static char crashes[800] = "."; /* the folder for them; a harness may change the present one */

/* ---- what is under way, and what becomes of it ----------------------------------------------- */

static const uint8_t *volatile now;
static volatile size_t now_size;
static volatile uint64_t executions;
static int tell = 2; /* a harness may take standard error for itself */

static void put_text(const char *text) {
    (void)!write(tell, text, strlen(text));
}

static void put_number(uint64_t number) {
    char digits[21], *at = digits + 20;

    *at = '\0';
    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    put_text(at);
}

/* Only what a signal handler may call. */
static void leave_input(void) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    char path[1024], *at = path;

    if (now == NULL)
        return;
    for (size_t i = 0; i < now_size; i++)
        hash = (hash ^ now[i]) * UINT64_C(0x100000001b3);
    at = stpcpy(at, crashes);
    at = stpcpy(at, "/crash-");
    at = stpcpy(at, harness);
    *at++ = '-';
    for (int i = 60; i >= 0; i -= 4)
        *at++ = "0123456789abcdef"[hash >> i & 15];
    *at = '\0';
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    (void)!write(file, (const void *)now, now_size);
    (void)close(file);
    put_text(harness);
    put_text(": execution ");
    put_number(executions);
    put_text(", the input is in ");
    put_text(path);
    put_text("\n");
    now = NULL;
}

static void on_crash(int number) {
    leave_input();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

/* The same execution at several ticks in turn does not end. */
static void on_tick(int number) {
    static volatile uint64_t last[2];
    static volatile int ticks[2];
    const int still = number == SIGALRM;

    if (last[still] != executions || now == NULL) {
        last[still] = executions;
        ticks[still] = 0;
    } else if (++ticks[still] > (still ? STILL_TICKS : TICKS)) {
        put_text(harness);
        put_text(still ? ": does nothing, and does not end\n" : ": takes more than a second\n");
        leave_input();
        _exit(124);
    }
}

static void find_crashes(void) {
    const char *folder = getenv("FUZZ_CRASHES");
    char *path = realpath(folder != NULL ? folder : ".", NULL);

    if (path != NULL && strlen(path) < sizeof crashes)
        memcpy(crashes, path, strlen(path) + 1);
    free(path);
}

static void watch(void) {
    static const int fatal[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTERM, SIGINT};
    struct sigaction crash = {.sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND};
    struct sigaction tick = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    const struct itimerval processor = {{0, 250000}, {0, 250000}}, wall = {{1, 0}, {1, 0}};

    tell = fcntl(2, F_DUPFD_CLOEXEC, 3);
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        if (__sanitizer_set_death_callback == NULL || fatal[i] == SIGABRT)
            (void)sigaction(fatal[i], &crash, NULL);
    if (__sanitizer_set_death_callback != NULL)
        __sanitizer_set_death_callback(leave_input);
    (void)sigaction(SIGPROF, &tick, NULL);
    (void)sigaction(SIGALRM, &tick, NULL);
    (void)setitimer(ITIMER_PROF, &processor, NULL);
    (void)setitimer(ITIMER_REAL, &wall, NULL);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static struct input {
    uint8_t *data;
    size_t size;
} pool[POOL];
static size_t pooled, given;
static uint8_t *seen;

static void execute(const uint8_t *data, size_t size) {
    /* A copy of its very size, so that sanitizers see who reads past it. */
    uint8_t *copy = malloc(size);

    if (copy == NULL && size != 0)
        abort();
    if (size != 0)
        memcpy(copy, data, size);
    fuzz_seen = 0;
    executions++;
    now_size = size;
    now = copy;
    (void)LLVMFuzzerTestOneInput(copy, size);
    now = NULL;
    free(copy);
}

/* Is what the last execution saw new? */
static bool is_new(void) {
    const uint64_t hash = fuzz_seen * UINT64_C(0x9e3779b97f4a7c15) >> 40;
    const bool is = !seen[hash % SEEN];

    seen[hash % SEEN] = 1;
    return is;
}

static void keep(const uint8_t *data, size_t size, uint64_t *random) {
    uint8_t *copy = malloc(size + 1);
    size_t at = pooled;

    if (copy == NULL)
        abort();
    memcpy(copy, data, size);
    if (pooled < POOL) {
        pooled++;
    } else {
        at = given < POOL ? given + fuzz_random(random) % (POOL - given) : 0;
        free(pool[at].data);
    }
    pool[at] = (struct input){copy, size};
}

static void read_input(const char *path, uint64_t *random) {
    struct stat info;
    DIR *folder = opendir(path);

    if (folder != NULL) {
        char below[4096];
        struct dirent *entry;
        while ((entry = readdir(folder)) != NULL) {
            if (entry->d_name[0] == '.')
                continue;
            (void)snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
            read_input(below, random);
        }
        (void)closedir(folder);
        return;
    }
    FILE *file = fopen(path, "rb");
    if (file == NULL || fstat(fileno(file), &info) != 0) {
        fprintf(stderr, "%s: cannot read %s\n", harness, path);
        exit(2);
    }
    uint8_t *data = malloc((size_t)info.st_size + 1);
    if (data == NULL || fread(data, 1, (size_t)info.st_size, file) != (size_t)info.st_size)
        abort();
    (void)fclose(file);
    execute(data, (size_t)info.st_size);
    (void)is_new();
    if (info.st_size <= MOST)
        keep(data, (size_t)info.st_size, random);
    free(data);
}

static size_t mutate(uint8_t *data, size_t size, uint64_t *random) {
    const uint64_t most = UINT64_C(1) << fuzz_random(random) % 4;

    for (uint64_t n = 1 + fuzz_random(random) % most; n > 0; n--) {
        if (LLVMFuzzerCustomMutator != NULL)
            size = LLVMFuzzerCustomMutator(data, size, MOST, (unsigned)fuzz_random(random));
        else
            size = LLVMFuzzerMutate(data, size, MOST);
    }
    return size;
}

/* ---- all ------------------------------------------------------------------------------------- */

static double seconds_since(const struct timespec *start) {
    struct timespec end;

    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - start->tv_sec) + (double)(end.tv_nsec - start->tv_nsec) * 1e-9;
}

int main(int argc, char **argv) {
    uint64_t runs = 0, seed = 1;
    double seconds = 0;
    struct timespec start;
    struct rusage usage;
    static uint8_t data[MOST];

    harness = strrchr(argv[0], '/') != NULL ? strrchr(argv[0], '/') + 1 : argv[0];
    (void)setenv("CMOCKA_TEST_ABORT", "1", 1);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    seen = calloc(1, SEEN);
    if (seen == NULL)
        abort();
    find_crashes();
    watch();
    (void)clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 1; i < argc; i++)
        if (sscanf(argv[i], "-seed=%" SCNu64, &seed) == 1)
            fuzz_mutate_seed(seed);
    uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    for (int i = 1; i < argc; i++)
        if (sscanf(argv[i], "-runs=%" SCNu64, &runs) != 1 &&
            sscanf(argv[i], "-max_total_time=%lf", &seconds) != 1 && argv[i][0] != '-')
            read_input(argv[i], &random);
    if (pooled == 0)
        keep((const uint8_t *)"", 0, &random);
    given = pooled;
    const uint64_t from_files = executions;
    while ((runs != 0 || seconds > 0) && (runs == 0 || executions < runs + from_files) &&
           (seconds <= 0 || (executions & 15) != 0 || seconds_since(&start) < seconds)) {
        /* What was found is further from being accepted than what was given. */
        const size_t among = fuzz_random(&random) % 4 == 0 ? pooled : given;
        const struct input *item = &pool[fuzz_random(&random) % among];
        const struct input *other = &pool[fuzz_random(&random) % pooled];
        memcpy(data, item->data, item->size);
        fuzz_mutate_other(other->data, other->size);
        const size_t size = mutate(data, item->size, &random);
        execute(data, size);
        if (is_new())
            keep(data, size, &random);
    }
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("%s: executions %" PRIu64 " (%" PRIu64
           " from files), %.0f a second, memory %ld MiB, "
           "seed %" PRIu64 "\n",
           harness, executions, from_files, (double)executions / seconds_since(&start),
           usage.ru_maxrss / 1024, seed);
    for (size_t i = 0; i < pooled; i++)
        free(pool[i].data);
    free(seen);
    return 0;
}
