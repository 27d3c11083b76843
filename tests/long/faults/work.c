/* Run the jobs: one run each, with its verdict and counts. */
#define _GNU_SOURCE

#include "runner.h"

#include <stdio.h>

enum { MAX_REPORTS = 60 };

/* Return whether the key is new. */
bool add_key(_Atomic uint64_t *keys, uint64_t key) {
    for (size_t i = key * 2654435761u % MAX_SITES;; i = (i + 1) % MAX_SITES) {
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

static uint64_t call_number(const gf_cut *job) {
    return job->mode == FAULT_UNSUPPORTED ? fault_references[job->which].trace[job->at - 1].symbol
                                          : job->at;
}

static void report(const gf_cut *job, const gf_outcome *outcome, const gf_verdict *verdict) {
    const gf_case *what = &fault_cases[job->which];
    atomic_fetch_add(&fault_totals->findings[verdict->finding], 1);
    atomic_store(&fault_totals->failed_cases[job->which], 1);
    /* One report per call site is enough. */
    if (!add_key(fault_totals->reported_sites, outcome->site << 4 | (uint64_t)verdict->finding) ||
        atomic_fetch_add(&fault_totals->reported, 1) >= MAX_REPORTS)
        return;
    printf("FAIL %s: GF_FAULT=%s:%" PRIu64 " gpufilter %s\n  %s at +0x%" PRIx64 ": %s: %s\n",
           what->name, fault_mode_names[job->mode], call_number(job), what->arguments,
           symbol_name(outcome->symbol), outcome->site, finding_names[verdict->finding],
           verdict->text);
    fflush(stdout);
}

static gf_outcome rerun(const gf_stage_set *set, const gf_case *what) {
    atomic_fetch_add(&fault_totals->again, 1);
    return run_program(set, what, what->again, FAULT_NONE, 0, 0);
}

/* A batch must continue after any failure, and process nothing twice. */
static void do_rerun(const gf_stage_set *set, const gf_cut *job, const gf_outcome *outcome) {
    const gf_case *what = &fault_cases[job->which];
    const gf_reference *reference = &fault_references[job->which];
    gf_outcome again = rerun(set, what);
    gf_verdict then = judge_rerun(what, reference, outcome, &again);
    if (!then.finding && is_resumed(what)) {
        gf_outcome third = rerun(set, what);
        then = judge_idle(reference, outcome, &third);
        outcome_free(&third);
    }
    if (then.finding)
        report(job, outcome, &then);
    outcome_free(&again);
}

static void do_kill(const gf_stage_set *set, const gf_cut *job, const gf_outcome *outcome) {
    const gf_case *what = &fault_cases[job->which];
    const gf_reference *reference = &fault_references[job->which];
    const gf_verdict verdict = judge_kill(what, reference, outcome);
    atomic_fetch_add(&fault_totals->leftovers, verdict.leftover);
    if (verdict.finding)
        report(job, outcome, &verdict);
    /* After an image replaced itself, the original input no longer exists. */
    if (!(what->flags & CASE_BATCH) && all_new(reference, outcome))
        return;
    do_rerun(set, job, outcome);
}

static void do_fault(const gf_stage_set *set, const gf_cut *job, const gf_outcome *outcome) {
    const gf_case *what = &fault_cases[job->which];
    const gf_verdict verdict =
        judge_fault(what, &fault_references[job->which], (gf_fault_mode)job->mode, outcome);
    atomic_fetch_add(verdict.survived ? &fault_totals->survived : &fault_totals->failed, 1);
    atomic_fetch_add(&fault_totals->completed, verdict.completed);
    atomic_fetch_add(&fault_totals->vague, verdict.vague);
    atomic_fetch_add(&fault_totals->unremoved, verdict.leftover);
    if (outcome->symbol >= 0) {
        fault_totals->symbol_vague[outcome->symbol] += verdict.vague;
        fault_totals->symbol_completed[outcome->symbol] += verdict.completed;
    }
    if (fault_options.verbose && (verdict.vague || verdict.completed))
        printf("%s %s: GF_FAULT=%s:%" PRIu64 " gpufilter %s\n  %s at +0x%" PRIx64 ": %s",
               verdict.vague ? "vague" : "completed", what->name, fault_mode_names[job->mode],
               call_number(job), what->arguments, symbol_name(outcome->symbol), outcome->site,
               outcome->err);
    if (verdict.finding)
        report(job, outcome, &verdict);
    if (is_resumed(what))
        do_rerun(set, job, outcome);
}

static void do_job(const gf_stage_set *set, const gf_cut *job) {
    const gf_case *what = &fault_cases[job->which];
    tree_write(&fault_references[job->which].before, set->directory);
    gf_outcome outcome = run_program(set, what, NULL, (gf_fault_mode)job->mode, job->at,
                                     fault_references[job->which].trace[job->at - 1].symbol);
    const bool kill = job->mode == FAULT_BEFORE || job->mode == FAULT_AFTER;
    if (!outcome.injected && !outcome.signal) {
        atomic_fetch_add(&fault_totals->missed, 1);
    } else {
        atomic_fetch_add(&fault_totals->runs, 1);
        atomic_fetch_add(&fault_totals->by_mode[job->mode], 1);
        atomic_fetch_add(&fault_totals->case_runs[job->which], 1);
        if (outcome.symbol >= 0)
            atomic_fetch_add(&fault_totals->symbol_injected[outcome.symbol], 1);
        if (outcome.site)
            add_key(fault_totals->sites, outcome.site);
        if (kill)
            do_kill(set, job, &outcome);
        else
            do_fault(set, job, &outcome);
    }
    if (fault_options.at)
        printf("exit code %d, signal %d, %" PRIu64 " calls, %" PRIu64
               " failed, first %s at +0x%" PRIx64 "\n%s%s",
               outcome.code, outcome.signal, outcome.calls, outcome.injected,
               symbol_name(outcome.symbol), outcome.site, outcome.out, outcome.err);
    outcome_free(&outcome);
}

void work(const gf_stage_set *set) {
    for (uint64_t i; (i = atomic_fetch_add(&fault_totals->next, 1)) < fault_job_count;)
        do_job(set, &fault_jobs[i]);
}
