/* What the parts of the runner share: the options, the jobs, the sums. */
#ifndef FAULTS_RUNNER_H
#define FAULTS_RUNNER_H

#include <inttypes.h>

#include "faults.h"

enum { MAX_SITES = 1 << 14, MAX_CASES = 512 };

typedef struct gf_options {
    const char *program, *only;
    uint64_t faults, kills, seed, at, workers;
    int mode;
    bool brief, cuda, verbose;
    bool nameless; /* files without a name can be made here: outputs have none until complete */
} gf_options;

typedef struct gf_job {
    uint32_t which; /* case */
    uint32_t mode;
    uint64_t at;
} gf_job;

/* Of all workers, in memory that they share. */
typedef struct gf_sums {
    _Atomic uint64_t next, reported;
    _Atomic uint64_t runs, by_mode[FAULT_MODES], survived, failed, completed, vague, missed;
    _Atomic uint64_t leftovers, unremoved, again, findings[FINDINGS];
    _Atomic uint64_t sites[MAX_SITES], reported_sites[MAX_SITES];
    _Atomic unsigned char bad[MAX_CASES]; /* cases */
    _Atomic uint64_t case_runs[MAX_CASES];
    _Atomic uint64_t symbol_vague[256], symbol_completed[256], symbol_injected[256];
} gf_sums;

extern const char *const fault_mode_names[FAULT_MODES];
extern gf_options fault_options;
extern gf_reference *fault_references; /* of each case that is wanted */
extern gf_tree fault_inputs;
extern gf_sums *fault_sums;
extern gf_job *fault_jobs;
extern size_t fault_job_count;

/* Is the case one of those that are run? */
bool is_wanted(const gf_case *what);
/* Runs it without a fault, twice: what differs then are times. Ends the program if that fails. */
void refer(const gf_stage_set *set, size_t which);
/* Adds jobs: faults, or kills; all of them, or `most`. */
void choose(bool kills, uint64_t max);
/* Runs jobs until none is left, in a folder of its own. */
void work(const gf_stage_set *set);
/* Returns the exit code. */
int print_sum(double seconds);

/* Memory that the workers have together. */
void *shared(size_t size);
/* Is it new among MAX_SITES keys? */
bool add_key(_Atomic uint64_t *keys, uint64_t key);

#endif
