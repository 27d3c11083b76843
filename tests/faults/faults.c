/* Runs whole commands with a fault, or a kill, at every call that may fail:
 *
 *   faults BUILD/gpufilter-faults [OPTION]...
 *     --faults N, --kills N   about so many, spread evenly (all)
 *     --short                 leave out the long cases
 *     --seed N                which of them
 *     --only NAME             one case;  --mode M, --at N: one run of it, and what came of it
 *     --cuda                  the cases with a GPU, with faults of the CUDA runtime
 *     --jobs N                at a time (a processor each)
 *     --verbose               what was told vaguely, and what failed with all done */
#define _GNU_SOURCE

#include "faults.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Hidden temporary files that killed runs may leave, in all. */
#define MOST_LEFTOVERS SIZE_MAX
enum { MOST_SITES = 1 << 14, MOST_TOLD = 60, FEW = 12 };

static const char *const mode_names[FAULT_MODES] = {
    "count", "once", "on", "other", "short", "interrupted", "unsupported", "before", "after"};

typedef struct gf_options {
    const char *program, *only;
    uint64_t faults, kills, seed, at, workers;
    int mode;
    bool brief, cuda, verbose;
} gf_options;

typedef struct gf_job {
    uint32_t which; /* case */
    uint32_t mode;
    uint64_t at;
} gf_job;

/* Of all workers, in memory that they share. */
typedef struct gf_sums {
    _Atomic uint64_t next, told;
    _Atomic uint64_t runs, by_mode[FAULT_MODES], survived, failed, completed, vague, missed;
    _Atomic uint64_t leftovers, unremoved, again, findings[FINDINGS];
    _Atomic uint64_t sites[MOST_SITES], told_sites[MOST_SITES];
    _Atomic unsigned char bad[512]; /* cases */
    _Atomic uint64_t case_runs[512];
    _Atomic uint64_t symbol_vague[256], symbol_completed[256], symbol_injected[256];
} gf_sums;

static gf_options options = {.faults = UINT64_MAX, .kills = UINT64_MAX, .seed = 1, .mode = -1};
static gf_reference *references;
static gf_tree inputs;
static gf_sums *sums;
static gf_job *jobs;
static size_t job_count;

static char root[2048]; /* of all folders */

static void clean_up(void) {
    tree_remove(root);
    rmdir(root);
}

static void *shared(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        give_up("mmap");
    return memory;
}

/* ---- workers --------------------------------------------------------------------------------- */

static void stage_open(gf_stage_set *set, unsigned worker) {
    *set = (gf_stage_set){.program = options.program, .inputs = &inputs};
    snprintf(set->folder, sizeof set->folder, "%s/%u", root, worker);
    if (mkdir(set->folder, 0755) != 0)
        give_up(set->folder);
    set->faults_fd = memfd_create("faults", MFD_CLOEXEC);
    if (set->faults_fd < 0 || ftruncate(set->faults_fd, sizeof(gf_faults)) != 0)
        give_up("memfd");
    set->faults =
        mmap(NULL, sizeof(gf_faults), PROT_READ | PROT_WRITE, MAP_SHARED, set->faults_fd, 0);
    if (set->faults == MAP_FAILED)
        give_up("mmap");
}

static void stage_close(gf_stage_set *set) {
    tree_remove(set->folder);
    rmdir(set->folder);
    munmap(set->faults, sizeof(gf_faults));
    close(set->faults_fd);
}

/* Is it a new one? */
static bool add_key(_Atomic uint64_t *keys, uint64_t key) {
    for (size_t i = key * 2654435761u % MOST_SITES;; i = (i + 1) % MOST_SITES) {
        uint64_t none = 0;
        if (atomic_compare_exchange_strong(&keys[i], &none, key))
            return true;
        if (none == key)
            return false;
    }
}

static const char *symbol_name(int symbol) {
    return symbol >= 0 && symbol < (int)gf_fault_call_count ? gf_fault_calls[symbol].symbol : "?";
}

static uint64_t by_hand(const gf_job *job) {
    return job->mode == FAULT_UNSUPPORTED ? references[job->which].trace[job->at - 1].symbol
                                          : job->at;
}

static void tell(const gf_job *job, const gf_outcome *outcome, const gf_verdict *verdict) {
    const gf_case *what = &fault_cases[job->which];
    atomic_fetch_add(&sums->findings[verdict->finding], 1);
    atomic_store(&sums->bad[job->which], 1);
    /* One of each place is enough to read. */
    if (!add_key(sums->told_sites, outcome->site << 4 | (uint64_t)verdict->finding) ||
        atomic_fetch_add(&sums->told, 1) >= MOST_TOLD)
        return;
    printf("FAIL %s: GF_FAULT=%s:%" PRIu64 " gpufilter %s\n  %s at +0x%" PRIx64 ": %s: %s\n",
           what->name, mode_names[job->mode], by_hand(job), what->arguments,
           symbol_name(outcome->symbol), outcome->site, finding_names[verdict->finding],
           verdict->text);
    fflush(stdout);
}

static void do_kill(const gf_stage_set *set, const gf_job *job, const gf_outcome *outcome) {
    const gf_case *what = &fault_cases[job->which];
    const gf_reference *reference = &references[job->which];
    const gf_verdict verdict = judge_kill(what, reference, outcome);
    atomic_fetch_add(&sums->leftovers, verdict.leftover);
    if (verdict.finding)
        tell(job, outcome, &verdict);
    /* An image that replaced itself has no input any more. */
    if (!(what->flags & CASE_BATCH) && all_new(reference, outcome))
        return;
    gf_outcome again = run_program(set, what, what->again, FAULT_NONE, 0, 0);
    const gf_verdict then = judge_again(what, reference, outcome, &again);
    atomic_fetch_add(&sums->again, 1);
    if (then.finding)
        tell(job, outcome, &then);
    outcome_free(&again);
}

static void do_fault(const gf_job *job, const gf_outcome *outcome) {
    const gf_case *what = &fault_cases[job->which];
    const gf_verdict verdict =
        judge_fault(what, &references[job->which], (gf_fault_mode)job->mode, outcome);
    atomic_fetch_add(verdict.survived ? &sums->survived : &sums->failed, 1);
    atomic_fetch_add(&sums->completed, verdict.completed);
    atomic_fetch_add(&sums->vague, verdict.vague);
    atomic_fetch_add(&sums->unremoved, verdict.leftover);
    if (outcome->symbol >= 0) {
        sums->symbol_vague[outcome->symbol] += verdict.vague;
        sums->symbol_completed[outcome->symbol] += verdict.completed;
    }
    if (options.verbose && (verdict.vague || verdict.completed))
        printf("%s %s: GF_FAULT=%s:%" PRIu64 " gpufilter %s\n  %s at +0x%" PRIx64 ": %s",
               verdict.vague ? "vague" : "completed", what->name, mode_names[job->mode],
               by_hand(job), what->arguments, symbol_name(outcome->symbol), outcome->site,
               outcome->err);
    if (verdict.finding)
        tell(job, outcome, &verdict);
}

static void do_job(const gf_stage_set *set, const gf_job *job) {
    const gf_case *what = &fault_cases[job->which];
    tree_write(&references[job->which].before, set->folder);
    gf_outcome outcome = run_program(set, what, NULL, (gf_fault_mode)job->mode, job->at,
                                     references[job->which].trace[job->at - 1].symbol);
    const bool kill = job->mode == FAULT_BEFORE || job->mode == FAULT_AFTER;
    if (!outcome.injected && !outcome.signal) {
        atomic_fetch_add(&sums->missed, 1);
    } else {
        atomic_fetch_add(&sums->runs, 1);
        atomic_fetch_add(&sums->by_mode[job->mode], 1);
        atomic_fetch_add(&sums->case_runs[job->which], 1);
        if (outcome.symbol >= 0)
            atomic_fetch_add(&sums->symbol_injected[outcome.symbol], 1);
        if (outcome.site)
            add_key(sums->sites, outcome.site);
        if (kill)
            do_kill(set, job, &outcome);
        else
            do_fault(job, &outcome);
    }
    if (options.at)
        printf("exit code %d, signal %d, %" PRIu64 " calls, %" PRIu64
               " failed, first %s at +0x%" PRIx64 "\n%s%s",
               outcome.code, outcome.signal, outcome.calls, outcome.injected,
               symbol_name(outcome.symbol), outcome.site, outcome.out, outcome.err);
    outcome_free(&outcome);
}

static void work(unsigned worker) {
    gf_stage_set set;
    stage_open(&set, worker);
    for (uint64_t i; (i = atomic_fetch_add(&sums->next, 1)) < job_count;)
        do_job(&set, &jobs[i]);
    stage_close(&set);
}

/* ---- what there is to do --------------------------------------------------------------------- */

static bool is_wanted(const gf_case *what) {
    if (options.only)
        return strcmp(options.only, what->name) == 0;
    return !(what->flags & CASE_CUDA) == !options.cuda &&
           !(options.brief && what->flags & CASE_LONG);
}

/* Runs without a fault, twice: what differs then are times. */
static void refer(const gf_stage_set *set, size_t which) {
    const gf_case *what = &fault_cases[which];
    gf_reference *reference = &references[which];
    reference->before = case_files(what, &inputs);
    tree_write(&reference->before, set->folder);
    reference->clean = run_program(set, what, NULL, FAULT_NONE, 0, 0);
    const size_t traced =
        reference->clean.calls < FAULT_TRACE ? (size_t)reference->clean.calls : FAULT_TRACE;
    reference->trace = need(calloc(traced + 1, sizeof *reference->trace));
    memcpy(reference->trace, set->faults->trace, traced * sizeof *reference->trace);
    tree_write(&reference->before, set->folder);
    gf_outcome second = run_program(set, what, NULL, FAULT_NONE, 0, 0);
    const gf_outcome *clean = &reference->clean;
    reference->loose =
        clean->out_size != second.out_size || memcmp(clean->out, second.out, clean->out_size) != 0;
    const bool same = clean->code == second.code &&
                      same_words(clean->out, clean->out_size, second.out, second.out_size) &&
                      all_new(reference, &second);
    if (what->flags & CASE_CUDA && clean->calls == 0)
        printf("FAIL %s: it made no call of CUDA's\n", what->name);
    if (!same || clean->code < 0 || clean->code > (what->flags & CASE_TEST ? 1 : 0) ||
        clean->calls == 0) {
        printf("FAIL %s: without a fault: exit codes %d and %d, %s\n", what->name, clean->code,
               second.code, clean->err);
        exit(1);
    }
    outcome_free(&second);
}

static bool is_first(const gf_reference *reference, uint64_t n) {
    for (uint64_t i = 1; i < n; i++)
        if (reference->trace[i - 1].symbol == reference->trace[n - 1].symbol)
            return false;
    return true;
}

static bool can(const gf_case *what, const gf_reference *reference, uint64_t n, int mode) {
    const gf_fault_call *call = &gf_fault_calls[reference->trace[n - 1].symbol];
    switch (mode) {
    case FAULT_ONCE:
        return true;
    case FAULT_ON:
        return call->class != FAULT_CLEAN && !(what->flags & CASE_FEW);
    case FAULT_OTHERWISE:
        return call->other && !(what->flags & CASE_FEW);
    case FAULT_SHORT:
        return call->partial;
    case FAULT_INTERRUPTED:
        return call->interrupted;
    case FAULT_UNSUPPORTED:
        return call->unsupported && is_first(reference, n);
    default:
        return !(what->flags & (CASE_FEW | CASE_CUDA));
    }
}

static void add_jobs(size_t which, bool kills, size_t *count, size_t *room, gf_job **grown) {
    const gf_case *what = &fault_cases[which];
    const gf_reference *reference = &references[which];
    const uint64_t step = what->flags & CASE_FEW ? reference->clean.calls / FEW + 1 : 1;
    for (uint64_t n = 1; n <= reference->clean.calls && n <= FAULT_TRACE; n += step)
        for (int mode = FAULT_ONCE; mode < FAULT_MODES; mode++) {
            const bool kill = mode == FAULT_BEFORE || mode == FAULT_AFTER;
            if (kill != kills || !can(what, reference, n, mode) ||
                (options.mode >= 0 && mode != options.mode) || (options.at && n != options.at))
                continue;
            if (*count == *room) {
                *room = *room ? 2 * *room : 1 << 14;
                *grown = need(realloc(*grown, *room * sizeof **grown));
            }
            (*grown)[(*count)++] = (gf_job){(uint32_t)which, (uint32_t)mode, n};
        }
}

static uint64_t place_of(const gf_job *job) {
    return (uint64_t)references[job->which].trace[job->at - 1].site << 4 | job->mode;
}

static void take(gf_job *job) {
    jobs[job_count++] = *job;
    job->mode = FAULT_NONE;
}

/* All of a kind, or `most` of them: each place of the program in each way, then others evenly. */
static void choose(bool kills, uint64_t most) {
    gf_job *all = NULL;
    size_t count = 0, room = 0;
    for (size_t i = 0; i < fault_case_count; i++)
        if (is_wanted(&fault_cases[i]))
            add_jobs(i, kills, &count, &room, &all);
    const size_t end = job_count + (most < count ? most : count);
    _Atomic uint64_t *places = shared(MOST_SITES * sizeof *places);
    jobs = need(realloc(jobs, (end + 1) * sizeof *jobs));
    for (size_t k = 0; k < count && job_count < end; k++) {
        gf_job *job = &all[(k + options.seed * 7919) % count];
        if (add_key(places, place_of(job)))
            take(job);
    }
    /* A step that meets all of them. */
    for (size_t k = 0, at = 0; k < count && job_count < end; k++) {
        at = (at + 1000003) % count;
        if (all[at].mode != FAULT_NONE)
            take(&all[at]);
    }
    for (size_t k = 0; k < count && job_count < end; k++)
        if (all[k].mode != FAULT_NONE)
            take(&all[k]);
    munmap((void *)places, MOST_SITES * sizeof *places);
    free(all);
}

/* ---- the sum --------------------------------------------------------------------------------- */

static void print_cases(void) {
    printf("%-28s %6s %8s\n", "command", "calls", "runs");
    for (size_t i = 0; i < fault_case_count; i++)
        if (is_wanted(&fault_cases[i]))
            printf("%-28s %6" PRIu64 " %8" PRIu64 "%s\n", fault_cases[i].name,
                   references[i].clean.calls, atomic_load(&sums->case_runs[i]),
                   sums->bad[i] ? "  FAIL" : "");
}

static int print_sum(double seconds) {
    uint64_t faults = 0, sites = 0, found = 0;
    unsigned passed = 0, failed = 0, symbols = 0;
    for (int mode = FAULT_ONCE; mode <= FAULT_UNSUPPORTED; mode++)
        faults += sums->by_mode[mode];
    const uint64_t kills = sums->by_mode[FAULT_BEFORE] + sums->by_mode[FAULT_AFTER];
    for (size_t i = 0; i < MOST_SITES; i++)
        sites += sums->sites[i] != 0;
    for (unsigned i = 0; i < gf_fault_call_count; i++)
        symbols += sums->symbol_injected[i] != 0;
    print_cases();
    printf("faults injected: %" PRIu64 " (", faults);
    for (int mode = FAULT_ONCE; mode <= FAULT_UNSUPPORTED; mode++)
        printf("%s%s %" PRIu64, mode > FAULT_ONCE ? ", " : "", mode_names[mode],
               sums->by_mode[mode]);
    printf(")\n  in %u kinds of calls at %" PRIu64 " places of the program; %" PRIu64
           " survived with the same outputs, %" PRIu64 " failed as they should (%" PRIu64
           " with all outputs complete)\n",
           symbols, sites, sums->survived, sums->failed, sums->completed);
    printf("kill points: %" PRIu64 " (before %" PRIu64 ", after %" PRIu64 "), run again: %" PRIu64
           ", temporary files left: %" PRIu64 "\n",
           kills, sums->by_mode[FAULT_BEFORE], sums->by_mode[FAULT_AFTER], sums->again,
           sums->leftovers);
    for (int i = FINDING_CRASH; i < FINDINGS; i++) {
        printf("%s%s %" PRIu64, i > FINDING_CRASH ? ", " : "", finding_names[i], sums->findings[i]);
        found += sums->findings[i];
    }
    printf("\nnot met, since threads came in another order: %" PRIu64 "; %.1f s\n", sums->missed,
           seconds);
    if (options.verbose) {
        printf("lines without the cause: %" PRIu64 "\n", sums->vague);
        for (unsigned i = 0; i < gf_fault_call_count; i++)
            if (sums->symbol_vague[i] || sums->symbol_completed[i])
                printf("  %s: vague %" PRIu64 ", completed %" PRIu64 "\n", gf_fault_calls[i].symbol,
                       sums->symbol_vague[i], sums->symbol_completed[i]);
    }
    const bool too_many = sums->leftovers > MOST_LEFTOVERS;
    if (too_many)
        printf("FAIL killed runs left %" PRIu64 " temporary files\n", sums->leftovers);
    for (size_t i = 0; i < fault_case_count; i++)
        if (is_wanted(&fault_cases[i])) {
            passed += !sums->bad[i] && sums->case_runs[i];
            failed += sums->bad[i] != 0;
        }
    printf("%u passed, %u failed, 0 skipped\n", passed, failed + too_many);
    return failed || too_many || found || !passed;
}

/* ---- all ------------------------------------------------------------------------------------- */

static uint64_t number(const char *text) {
    return strtoull(text ? text : "0", NULL, 10);
}

static void parse(int argc, char **argv) {
    options.program = argc > 1 ? realpath(argv[1], NULL) : NULL;
    options.workers = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 2; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--short") == 0)
            options.brief = true;
        else if (strcmp(argv[i], "--cuda") == 0)
            options.cuda = true;
        else if (strcmp(argv[i], "--verbose") == 0)
            options.verbose = true;
        else if (strcmp(argv[i], "--faults") == 0)
            options.faults = number(argv[++i]);
        else if (strcmp(argv[i], "--kills") == 0)
            options.kills = number(argv[++i]);
        else if (strcmp(argv[i], "--seed") == 0)
            options.seed = number(argv[++i]);
        else if (strcmp(argv[i], "--jobs") == 0)
            options.workers = number(argv[++i]);
        else if (strcmp(argv[i], "--at") == 0)
            options.at = number(argv[++i]);
        else if (strcmp(argv[i], "--only") == 0)
            options.only = argv[++i];
        else if (strcmp(argv[i], "--mode") == 0) {
            for (int mode = 0; mode < FAULT_MODES; mode++)
                if (strcmp(mode_names[mode], value) == 0)
                    options.mode = mode;
            i++;
        } else
            options.program = NULL;
    }
    if (!options.program) {
        fprintf(stderr, "usage: faults PROGRAM [OPTION]..., see tests/faults/faults.c\n");
        exit(2);
    }
}

/* Formats that the program itself writes. */
static void add_written(const gf_stage_set *set, const char *name, const char *arguments) {
    const gf_case what = {.name = name, .arguments = arguments, .files = "rgb.ppm rgb.pfm"};
    gf_tree files = case_files(&what, &inputs);
    tree_write(&files, set->folder);
    gf_outcome outcome = run_program(set, &what, NULL, FAULT_NONE, 0, 0);
    const gf_entry *made = tree_find(&outcome.after, name);
    if (!made) {
        fprintf(stderr, "%s: %s\n", name, outcome.err);
        exit(2);
    }
    tree_add(&inputs, name, made->mode, made->data, made->size);
    outcome_free(&outcome);
    tree_free(&files);
}

static void prepare(void) {
    gf_stage_set set;
    make_inputs(&inputs, options.cuda);
    stage_open(&set, 0);
    add_written(&set, "rgb.jpg", "smooth rgb.ppm rgb.jpg");
    add_written(&set, "rgb.bmp", "smooth rgb.ppm rgb.bmp");
    add_written(&set, "rgb.tga", "smooth rgb.ppm rgb.tga");
    add_written(&set, "rgb.hdr", "smooth rgb.pfm rgb.hdr");
    references = need(calloc(fault_case_count, sizeof *references));
    for (size_t i = 0; i < fault_case_count; i++)
        if (is_wanted(&fault_cases[i]))
            refer(&set, i);
    stage_close(&set);
    choose(false, options.faults);
    choose(true, options.kills);
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
    /* The sanitizers' findings have an exit code that is nobody else's. */
    setenv("ASAN_OPTIONS", "exitcode=99:detect_leaks=1:allocator_may_return_null=1", 0);
    setenv("UBSAN_OPTIONS", "exitcode=99:print_stacktrace=1", 0);
    setenv("TSAN_OPTIONS", "exitcode=99", 0);
    setenv("LC_ALL", "C", 1);
    unsetenv("GF_FAULT");
    snprintf(root, sizeof root, "%s/gpufilter-faults-XXXXXX", memory ? memory : "/tmp");
    if (!mkdtemp(root))
        give_up(root);
    atexit(clean_up);
    sums = shared(sizeof *sums);
    prepare();
    fflush(stdout);
    for (unsigned i = 0; i < options.workers; i++) {
        const pid_t child = fork();
        if (child < 0)
            give_up("fork");
        if (child == 0) {
            work(i + 1);
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
    return print_sum(now() - began);
}
