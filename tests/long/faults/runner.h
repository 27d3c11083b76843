/* Declarations shared by the parts of the runner: options, jobs, totals. */
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
    bool nameless; /* the file system supports O_TMPFILE: outputs have no name until they are
                      complete */
} gf_options;

typedef struct gf_cut {
    uint32_t which; /* index of the case */
    uint32_t mode;
    uint64_t at;
} gf_cut;

/* Totals of all workers, in shared memory. */
typedef struct gf_totals {
    _Atomic uint64_t next, reported;
    _Atomic uint64_t runs, by_mode[FAULT_MODES], survived, failed, completed, vague, missed;
    _Atomic uint64_t leftovers, unremoved, again, findings[FINDINGS];
    _Atomic uint64_t sites[MAX_SITES], reported_sites[MAX_SITES];
    _Atomic unsigned char failed_cases[MAX_CASES]; /* by case */
    _Atomic uint64_t case_runs[MAX_CASES];
    _Atomic uint64_t symbol_vague[256], symbol_completed[256], symbol_injected[256];
} gf_totals;

extern const char *const fault_mode_names[FAULT_MODES];
extern gf_options fault_options;
extern gf_reference *fault_references; /* by case; only wanted cases */
extern gf_tree fault_inputs;
extern gf_totals *fault_totals;
extern gf_cut *fault_jobs;
extern size_t fault_job_count;

/* Return whether the options select the case. */
bool is_wanted(const gf_case *what);
/* Make the reference of a case: run it twice without a fault; differences are times. Exit if
 * that fails. */
void make_reference(const gf_stage_set *set, size_t which);
/* Add jobs: faults or kills; all of them, or `max`. */
void choose_jobs(bool kills, uint64_t max);
/* Run jobs in a separate directory until none is left. */
void work(const gf_stage_set *set);
/* Return the exit code. */
int print_summary(double seconds);

/* Allocate memory that all workers share. */
void *shared(size_t size);
/* Add a key to MAX_SITES keys; return whether it is new. */
bool add_key(_Atomic uint64_t *keys, uint64_t key);

#endif
