/* Print the results. */
#define _GNU_SOURCE

#include "runner.h"

#include <stdio.h>

static void print_cases(void) {
    printf("%-28s %6s %8s\n", "command", "calls", "runs");
    for (size_t i = 0; i < fault_case_count; i++)
        if (is_wanted(&fault_cases[i]))
            printf("%-28s %6" PRIu64 " %8" PRIu64 "%s\n", fault_cases[i].name,
                   fault_references[i].clean.calls, atomic_load(&fault_totals->case_runs[i]),
                   fault_totals->failed_cases[i] ? "  FAIL" : "");
}

int print_summary(double seconds) {
    uint64_t faults = 0, sites = 0, found = 0;
    unsigned passed = 0, failed = 0, symbols = 0;
    for (int mode = FAULT_ONCE; mode <= FAULT_UNSUPPORTED; mode++)
        faults += fault_totals->by_mode[mode];
    const uint64_t kills = fault_totals->by_mode[FAULT_BEFORE] + fault_totals->by_mode[FAULT_AFTER];
    for (size_t i = 0; i < MAX_SITES; i++)
        sites += fault_totals->sites[i] != 0;
    for (unsigned i = 0; i < gf_fault_call_count; i++)
        symbols += fault_totals->symbol_injected[i] != 0;
    print_cases();
    printf("faults injected: %" PRIu64 " (", faults);
    for (int mode = FAULT_ONCE; mode <= FAULT_UNSUPPORTED; mode++)
        printf("%s%s %" PRIu64, mode > FAULT_ONCE ? ", " : "", fault_mode_names[mode],
               fault_totals->by_mode[mode]);
    printf(")\n  in %u kinds of calls at %" PRIu64 " call sites; %" PRIu64
           " survived with the same outputs, %" PRIu64 " failed correctly (%" PRIu64
           " with all outputs complete)\n",
           symbols, sites, fault_totals->survived, fault_totals->failed, fault_totals->completed);
    printf("kill points: %" PRIu64 " (before %" PRIu64 ", after %" PRIu64 "), run again: %" PRIu64
           ", temporary files left: %" PRIu64 "%s\n",
           kills, fault_totals->by_mode[FAULT_BEFORE], fault_totals->by_mode[FAULT_AFTER],
           fault_totals->again, fault_totals->leftovers,
           fault_options.nameless ? ", each of them complete" : "");
    for (int i = FINDING_CRASH; i < FINDINGS; i++) {
        printf("%s%s %" PRIu64, i > FINDING_CRASH ? ", " : "", finding_names[i],
               fault_totals->findings[i]);
        found += fault_totals->findings[i];
    }
    printf("\nnot reached, because the order of threads varied: %" PRIu64 "; %.1f s\n",
           fault_totals->missed, seconds);
    if (fault_options.verbose) {
        printf("messages without the cause: %" PRIu64 "\n", fault_totals->vague);
        for (unsigned i = 0; i < gf_fault_call_count; i++)
            if (fault_totals->symbol_vague[i] || fault_totals->symbol_completed[i])
                printf("  %s: vague %" PRIu64 ", completed %" PRIu64 "\n", gf_fault_calls[i].symbol,
                       fault_totals->symbol_vague[i], fault_totals->symbol_completed[i]);
    }
    for (size_t i = 0; i < fault_case_count; i++)
        if (is_wanted(&fault_cases[i])) {
            passed += !fault_totals->failed_cases[i] && fault_totals->case_runs[i];
            failed += fault_totals->failed_cases[i] != 0;
        }
    printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return failed || found || !passed;
}
