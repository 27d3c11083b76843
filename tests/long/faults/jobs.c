/* List the jobs: each call of each command, in each mode. */
#define _GNU_SOURCE

#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { FEW = 12 }; /* number of calls for a slow command */

bool is_wanted(const gf_case *what) {
    if (fault_options.only)
        return strcmp(fault_options.only, what->name) == 0;
    return !(what->flags & CASE_CUDA) == !fault_options.cuda &&
           !(fault_options.brief && what->flags & CASE_LONG) &&
           (GF_CAIRO || !strstr(what->arguments, "--plot"));
}

/* Run twice without a fault; differences are times. */
void make_reference(const gf_stage_set *set, size_t which) {
    const gf_case *what = &fault_cases[which];
    gf_reference *reference = &fault_references[which];
    reference->before = case_files(what, &fault_inputs);
    tree_write(&reference->before, set->directory);
    reference->clean = run_program(set, what, NULL, FAULT_NONE, 0, 0);
    const size_t traced =
        reference->clean.calls < FAULT_TRACE ? (size_t)reference->clean.calls : FAULT_TRACE;
    reference->trace = need(calloc(traced + 1, sizeof *reference->trace));
    memcpy(reference->trace, set->faults->trace, traced * sizeof *reference->trace);
    tree_write(&reference->before, set->directory);
    gf_outcome second = run_program(set, what, NULL, FAULT_NONE, 0, 0);
    const gf_outcome *clean = &reference->clean;
    reference->has_times =
        clean->out_size != second.out_size || memcmp(clean->out, second.out, clean->out_size) != 0;
    const bool same = clean->code == second.code &&
                      same_words(clean->out, clean->out_size, second.out, second.out_size) &&
                      all_new(reference, &second);
    if (what->flags & CASE_CUDA && clean->calls == 0)
        printf("FAIL %s: it made no CUDA call\n", what->name);
    if (!same || clean->code < 0 || clean->code > (what->flags & CASE_ANSWERS ? 1 : 0) ||
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
    case FAULT_REPEATED:
        return call->class != FAULT_CLEAN && !(what->flags & CASE_FEW);
    case FAULT_OTHER_CAUSE:
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

static void add_jobs(size_t which, bool kills, size_t *count, size_t *capacity, gf_cut **grown) {
    const gf_case *what = &fault_cases[which];
    const gf_reference *reference = &fault_references[which];
    const uint64_t step = what->flags & CASE_FEW ? reference->clean.calls / FEW + 1 : 1;
    for (uint64_t n = 1; n <= reference->clean.calls && n <= FAULT_TRACE; n += step)
        for (int mode = FAULT_ONCE; mode < FAULT_MODES; mode++) {
            const bool kill = mode == FAULT_BEFORE || mode == FAULT_AFTER;
            if (kill != kills || !can(what, reference, n, mode) ||
                (fault_options.mode >= 0 && mode != fault_options.mode) ||
                (fault_options.at && n != fault_options.at))
                continue;
            if (*count == *capacity) {
                *capacity = *capacity ? 2 * *capacity : 1 << 14;
                *grown = need(realloc(*grown, *capacity * sizeof **grown));
            }
            (*grown)[(*count)++] = (gf_cut){(uint32_t)which, (uint32_t)mode, n};
        }
}

static uint64_t site_key(const gf_cut *job) {
    return (uint64_t)fault_references[job->which].trace[job->at - 1].site << 4 | job->mode;
}

static void add_job(gf_cut *job) {
    fault_jobs[fault_job_count++] = *job;
    job->mode = FAULT_NONE;
}

/* Choose all jobs of a kind, or `max` of them: first each call site in each mode, then others
 * evenly. */
void choose_jobs(bool kills, uint64_t max) {
    gf_cut *all = NULL;
    size_t count = 0, capacity = 0;
    for (size_t i = 0; i < fault_case_count; i++)
        if (is_wanted(&fault_cases[i]))
            add_jobs(i, kills, &count, &capacity, &all);
    const size_t end = fault_job_count + (max < count ? max : count);
    _Atomic uint64_t *keys = shared(MAX_SITES * sizeof *keys);
    fault_jobs = need(realloc(fault_jobs, (end + 1) * sizeof *fault_jobs));
    for (size_t k = 0; k < count && fault_job_count < end; k++) {
        gf_cut *job = &all[(k + fault_options.seed * 7919) % count];
        if (add_key(keys, site_key(job)))
            add_job(job);
    }
    /* The step visits all of them if it is coprime to count. */
    for (size_t k = 0, at = 0; k < count && fault_job_count < end; k++) {
        at = (at + 1000003) % count;
        if (all[at].mode != FAULT_NONE)
            add_job(&all[at]);
    }
    for (size_t k = 0; k < count && fault_job_count < end; k++)
        if (all[k].mode != FAULT_NONE)
            add_job(&all[k]);
    munmap((void *)keys, MAX_SITES * sizeof *keys);
    free(all);
}
