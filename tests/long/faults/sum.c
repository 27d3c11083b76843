/* What came of it all. */
#define _GNU_SOURCE

#include "runner.h"

#include <stdio.h>

static void print_cases(void) {
    printf("%-28s %6s %8s\n", "command", "calls", "runs");
    for (size_t i = 0; i < fault_case_count; i++)
        if (is_wanted(&fault_cases[i]))
            printf("%-28s %6" PRIu64 " %8" PRIu64 "%s\n", fault_cases[i].name,
                   fault_references[i].clean.calls, atomic_load(&fault_sums->case_runs[i]),
                   fault_sums->bad[i] ? "  FAIL" : "");
}

int print_sum(double seconds) {
    uint64_t faults = 0, sites = 0, found = 0;
    unsigned passed = 0, failed = 0, symbols = 0;
    for (int mode = FAULT_ONCE; mode <= FAULT_UNSUPPORTED; mode++)
        faults += fault_sums->by_mode[mode];
    const uint64_t kills = fault_sums->by_mode[FAULT_BEFORE] + fault_sums->by_mode[FAULT_AFTER];
    for (size_t i = 0; i < MAX_SITES; i++)
        sites += fault_sums->sites[i] != 0;
    for (unsigned i = 0; i < gf_fault_call_count; i++)
        symbols += fault_sums->symbol_injected[i] != 0;
    print_cases();
    printf("faults injected: %" PRIu64 " (", faults);
    for (int mode = FAULT_ONCE; mode <= FAULT_UNSUPPORTED; mode++)
        printf("%s%s %" PRIu64, mode > FAULT_ONCE ? ", " : "", fault_mode_names[mode],
               fault_sums->by_mode[mode]);
    printf(")\n  in %u kinds of calls at %" PRIu64 " places of the program; %" PRIu64
           " survived with the same outputs, %" PRIu64 " failed as they should (%" PRIu64
           " with all outputs complete)\n",
           symbols, sites, fault_sums->survived, fault_sums->failed, fault_sums->completed);
    printf("kill points: %" PRIu64 " (before %" PRIu64 ", after %" PRIu64 "), run again: %" PRIu64
           ", temporary files left: %" PRIu64 "%s\n",
           kills, fault_sums->by_mode[FAULT_BEFORE], fault_sums->by_mode[FAULT_AFTER],
           fault_sums->again, fault_sums->leftovers,
           fault_options.nameless ? ", each of them complete" : "");
    for (int i = FINDING_CRASH; i < FINDINGS; i++) {
        printf("%s%s %" PRIu64, i > FINDING_CRASH ? ", " : "", finding_names[i],
               fault_sums->findings[i]);
        found += fault_sums->findings[i];
    }
    printf("\nnot met, since threads came in another order: %" PRIu64 "; %.1f s\n",
           fault_sums->missed, seconds);
    if (fault_options.verbose) {
        printf("lines without the cause: %" PRIu64 "\n", fault_sums->vague);
        for (unsigned i = 0; i < gf_fault_call_count; i++)
            if (fault_sums->symbol_vague[i] || fault_sums->symbol_completed[i])
                printf("  %s: vague %" PRIu64 ", completed %" PRIu64 "\n", gf_fault_calls[i].symbol,
                       fault_sums->symbol_vague[i], fault_sums->symbol_completed[i]);
    }
    for (size_t i = 0; i < fault_case_count; i++)
        if (is_wanted(&fault_cases[i])) {
            passed += !fault_sums->bad[i] && fault_sums->case_runs[i];
            failed += fault_sums->bad[i] != 0;
        }
    printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return failed || found || !passed;
}
