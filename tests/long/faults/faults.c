/* Run whole commands with a fault or a kill at every call that may fail:
 *
 *   faults BUILD/gpufilter-faults [OPTION]...
 *     --faults N, --kills N   number of runs, spread evenly; default: all
 *     --short                 skip the long cases
 *     --seed N                selects the runs; default: 1
 *     --only NAME             one case; with --mode M --at N: one run of it, with its result
 *     --cuda                  the cases with a GPU, with faults of the CUDA runtime
 *     --jobs N                parallel runs; default: one per core
 *     --verbose               show messages without the cause, and failures with complete
 *     outputs */
#define _GNU_SOURCE

#include "runner.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const char *const fault_mode_names[FAULT_MODES] = {
    "count", "once", "on", "other", "short", "interrupted", "unsupported", "before", "after"};

gf_options fault_options = {.faults = UINT64_MAX, .kills = UINT64_MAX, .seed = 1, .mode = -1};
gf_reference *fault_references;
gf_tree fault_inputs;
gf_totals *fault_totals;
gf_cut *fault_jobs;
size_t fault_job_count;

static char root[2048]; /* parent of the workers' directories */

static void clean_up(void) {
    tree_remove(root);
    rmdir(root);
}

void *shared(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fatal("mmap");
    return memory;
}

static void stage_open(gf_stage_set *set, unsigned worker) {
    *set = (gf_stage_set){.program = fault_options.program, .inputs = &fault_inputs};
    snprintf(set->directory, sizeof set->directory, "%s/%u", root, worker);
    if (mkdir(set->directory, 0755) != 0)
        fatal(set->directory);
    set->faults_fd = memfd_create("faults", MFD_CLOEXEC);
    if (set->faults_fd < 0 || ftruncate(set->faults_fd, sizeof(gf_faults)) != 0)
        fatal("memfd");
    set->faults =
        mmap(NULL, sizeof(gf_faults), PROT_READ | PROT_WRITE, MAP_SHARED, set->faults_fd, 0);
    if (set->faults == MAP_FAILED)
        fatal("mmap");
}

static void stage_close(gf_stage_set *set) {
    tree_remove(set->directory);
    rmdir(set->directory);
    munmap(set->faults, sizeof(gf_faults));
    close(set->faults_fd);
}

static uint64_t number(const char *text) {
    return strtoull(text ? text : "0", NULL, 10);
}

static void parse(int argc, char **argv) {
    fault_options.program = argc > 1 ? realpath(argv[1], NULL) : NULL;
    fault_options.workers = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 2; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--short") == 0)
            fault_options.brief = true;
        else if (strcmp(argv[i], "--cuda") == 0)
            fault_options.cuda = true;
        else if (strcmp(argv[i], "--verbose") == 0)
            fault_options.verbose = true;
        else if (strcmp(argv[i], "--faults") == 0)
            fault_options.faults = number(argv[++i]);
        else if (strcmp(argv[i], "--kills") == 0)
            fault_options.kills = number(argv[++i]);
        else if (strcmp(argv[i], "--seed") == 0)
            fault_options.seed = number(argv[++i]);
        else if (strcmp(argv[i], "--jobs") == 0)
            fault_options.workers = number(argv[++i]);
        else if (strcmp(argv[i], "--at") == 0)
            fault_options.at = number(argv[++i]);
        else if (strcmp(argv[i], "--only") == 0)
            fault_options.only = argv[++i];
        else if (strcmp(argv[i], "--mode") == 0) {
            for (int mode = 0; mode < FAULT_MODES; mode++)
                if (strcmp(fault_mode_names[mode], value) == 0)
                    fault_options.mode = mode;
            i++;
        } else
            fault_options.program = NULL;
    }
    if (!fault_options.program) {
        fprintf(stderr, "usage: faults PROGRAM [OPTION]..., see tests/long/faults/faults.c\n");
        exit(2);
    }
}

/* Add an input in a format that the program itself writes. */
static void add_written(const gf_stage_set *set, const char *name, const char *arguments) {
    const gf_case what = {.name = name, .arguments = arguments, .files = "rgb.ppm rgb.pfm"};
    gf_tree files = case_files(&what, &fault_inputs);
    tree_write(&files, set->directory);
    gf_outcome outcome = run_program(set, &what, NULL, FAULT_NONE, 0, 0);
    const gf_entry *made = tree_find(&outcome.after, name);
    if (!made) {
        fprintf(stderr, "%s: %s\n", name, outcome.err);
        exit(2);
    }
    tree_add(&fault_inputs, name, made->mode, made->data, made->size);
    outcome_free(&outcome);
    tree_free(&files);
}

static void prepare(void) {
    gf_stage_set set;
    make_inputs(&fault_inputs, fault_options.cuda);
    stage_open(&set, 0);
    add_written(&set, "rgb.jpg", "smooth rgb.ppm rgb.jpg");
    add_written(&set, "rgb.bmp", "smooth rgb.ppm rgb.bmp");
    add_written(&set, "rgb.tga", "smooth rgb.ppm rgb.tga");
    add_written(&set, "rgb.hdr", "smooth rgb.pfm rgb.hdr");
    add_written(&set, "rgb.npy", "smooth rgb.pfm rgb.npy");
    fault_references = need(calloc(fault_case_count, sizeof *fault_references));
    for (size_t i = 0; i < fault_case_count; i++)
        if (is_wanted(&fault_cases[i]))
            make_reference(&set, i);
    stage_close(&set);
    choose_jobs(false, fault_options.faults);
    choose_jobs(true, fault_options.kills);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char **argv) {
    const char *memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("TMPDIR");
    const double began = now();
    sigset_t ended;
    parse(argc, argv);
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ended, NULL);
    /* Findings of the sanitizers have an exit code of their own. */
    setenv("ASAN_OPTIONS", "exitcode=99:detect_leaks=1:allocator_may_return_null=1", 0);
    setenv("UBSAN_OPTIONS", "exitcode=99:print_stacktrace=1", 0);
    setenv("TSAN_OPTIONS", "exitcode=99", 0);
    setenv("LC_ALL", "C", 1);
    unsetenv("GF_FAULT");
    snprintf(root, sizeof root, "%s/gpufilter-faults-XXXXXX", memory ? memory : "/tmp");
    if (!mkdtemp(root))
        fatal(root);
    atexit(clean_up);
    const int nameless = open(root, O_TMPFILE | O_RDWR, 0600);
    fault_options.nameless = nameless >= 0;
    if (nameless >= 0)
        close(nameless);
    fault_totals = shared(sizeof *fault_totals);
    prepare();
    fflush(stdout);
    for (unsigned i = 0; i < fault_options.workers; i++) {
        const pid_t child = fork();
        if (child < 0)
            fatal("fork");
        if (child == 0) {
            gf_stage_set set;
            stage_open(&set, i + 1);
            work(&set);
            stage_close(&set);
            fflush(stdout);
            _exit(0);
        }
    }
    int status, broken = 0;
    while (waitpid(-1, &status, 0) > 0)
        broken += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    if (broken) {
        printf("FAIL the runner itself\n");
        return 2;
    }
    return print_summary(now() - began);
}
