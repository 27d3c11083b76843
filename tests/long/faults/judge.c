/* Judge the result of a fault or a kill. */
#define _GNU_SOURCE

#include "runner.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const finding_names[FINDINGS] = {"none",    "crash",      "hang",  "leak",
                                             "damaged", "incomplete", "wrong", "code",
                                             "message", "leftover",   "rerun"};

__attribute__((format(printf, 3, 4))) static void find(gf_verdict *verdict, gf_finding finding,
                                                       const char *format, ...) {
    va_list args;
    if (verdict->finding)
        return;
    verdict->finding = finding;
    va_start(args, format);
    vsnprintf(verdict->text, sizeof verdict->text, format, args);
    va_end(args);
}

/* ---- messages ------------------------------------------------------------------------------ */

bool same_words(const char *a, size_t a_size, const char *b, size_t b_size) {
    const char *a_end = a + a_size, *b_end = b + b_size;
    while (a < a_end && b < b_end)
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            while (a < a_end && (isdigit((unsigned char)*a) || strchr(".e-+", *a)))
                a++;
            while (b < b_end && (isdigit((unsigned char)*b) || strchr(".e-+", *b)))
                b++;
        } else if (*a++ != *b++) {
            return false;
        }
    return a == a_end && b == b_end;
}

static bool same_out(const gf_reference *reference, const gf_outcome *outcome) {
    const gf_outcome *clean = &reference->clean;
    if (reference->has_times)
        return same_words(clean->out, clean->out_size, outcome->out, outcome->out_size);
    return clean->out_size == outcome->out_size &&
           memcmp(clean->out, outcome->out, clean->out_size) == 0;
}

static bool contains(const char *text, size_t length, const char *part) {
    return *part && memmem(text, length, part, strlen(part)) != NULL;
}

/* Return whether a message may start with this: a file or an option of the command, or a part of
 * the program. */
static bool is_subject(const gf_case *what, const gf_reference *reference, const char *text,
                       size_t length) {
    static const char *const known[] = {
        "standard output", "standard input", "cpu", "golden", "cuda",     "axis-sum", "engine",
        "strips",          "inputs",         "--",  "step ",  "pipeline", "median"};
    char *copy = need(strdup(what->arguments)), *rest = copy;
    bool expected = false;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        expected = expected || contains(text, length, known[i]);
    for (char *one; (one = strsep(&rest, " ")) != NULL;)
        expected = expected || (strlen(one) == length && memcmp(one, text, length) == 0) ||
                   (strlen(one) > 1 && contains(text, length, one));
    for (size_t i = 0; i < reference->before.count; i++)
        expected = expected || contains(text, length, reference->before.list[i].path);
    for (size_t i = 0; i < reference->clean.after.count; i++)
        expected = expected || contains(text, length, reference->clean.after.list[i].path);
    free(copy);
    return expected;
}

/* Return whether the line is "gpufilter: SUBJECT: CAUSE". */
static bool is_error_line(const gf_case *what, const gf_reference *reference, const char *line) {
    static const char start[] = "gpufilter: ";
    if (strncmp(line, start, strlen(start)) != 0)
        return false;
    const char *subject = line + strlen(start), *cause = strstr(subject, ": ");
    return cause && strlen(cause) > 8 &&
           is_subject(what, reference, subject, (size_t)(cause - subject));
}

static bool reports_cause(const gf_outcome *outcome, const char *line) {
    if (outcome->cause == ENOMEM && strstr(line, "memory"))
        return true;
    return strstr(line, strerror(outcome->cause)) != NULL;
}

static bool is_transfer(const gf_outcome *outcome) {
    const gf_fault_class class =
        outcome->symbol < 0 ? FAULT_CLASSES : gf_fault_calls[outcome->symbol].class;
    return class == FAULT_READ || class == FAULT_WRITE;
}

typedef struct gf_lines {
    unsigned errors, others, repeated, summary_failed, not_started;
    bool summary, cause;
    bool out;  /* a line about standard output */
    bool once; /* one line for all images in progress */
} gf_lines;

/* Return whether the run without faults prints this line, too: a note. */
static bool is_note(const gf_reference *reference, const char *line) {
    const size_t length = strlen(line);
    const char *at = reference->clean.err;
    while ((at = strstr(at, line)) != NULL &&
           !((at == reference->clean.err || at[-1] == '\n') && at[length] == '\n'))
        at++;
    return at != NULL;
}

static gf_lines count_lines(const gf_case *what, const gf_reference *reference,
                            const gf_outcome *outcome) {
    gf_lines lines = {0};
    char *copy = need(strdup(outcome->err)), *rest = copy, *seen[64];
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        unsigned long done, failed, skipped;
        if (!*line)
            continue;
        if (sscanf(line, "%lu done, %lu failed, %lu skipped", &done, &failed, &skipped) == 3) {
            lines.summary = true;
            lines.summary_failed = (unsigned)failed;
            const char *rest_of = strstr(line, " skipped, ");
            lines.not_started = rest_of ? (unsigned)atoi(rest_of + 10) : 0;
            continue;
        }
        if ((lines.summary && strncmp(line, "  brightness x", 14) == 0) || is_note(reference, line))
            continue;
        if (!is_error_line(what, reference, line)) {
            lines.others++;
            continue;
        }
        for (unsigned i = 0; i < lines.errors && i < 64; i++)
            lines.repeated += strcmp(seen[i], line) == 0;
        if (lines.errors < 64)
            seen[lines.errors] = line;
        lines.errors++;
        lines.cause = lines.cause || reports_cause(outcome, line);
        lines.out = lines.out || strstr(line, "standard output: ");
        lines.once = lines.once || strstr(line, "; no more files are started");
    }
    free(copy);
    return lines;
}

/* missing: number of missing outputs. */
static void judge_lines(gf_verdict *verdict, const gf_case *what, const gf_reference *reference,
                        const gf_outcome *outcome, size_t missing) {
    const gf_lines lines = count_lines(what, reference, outcome);
    const bool many = what->flags & (CASE_BATCH | CASE_MANY);
    const unsigned each = strstr(what->arguments, "--pipeline") ? 2 : 1; /* outputs per image */
    if (outcome->reported & 1)                                           /* standard error failed */
        return;
    if (lines.others || lines.repeated)
        find(verdict, FINDING_MESSAGE, "unexpected lines: %.200s", outcome->err);
    else if (verdict->survived && lines.errors)
        find(verdict, FINDING_MESSAGE, "prints an error, with exit code %d: %.200s", outcome->code,
             outcome->err);
    else if (!verdict->survived && !lines.errors && !(what->flags & CASE_REPORTS_FAILURES))
        find(verdict, FINDING_MESSAGE, "exit code %d without a message: %.200s", outcome->code,
             outcome->err);
    else if (!verdict->survived && !many && lines.errors > 1)
        find(verdict, FINDING_MESSAGE, "%u lines: %.200s", lines.errors, outcome->err);
    else if ((what->flags & CASE_BATCH) && lines.summary &&
             (lines.once ? lines.summary_failed + lines.out < lines.errors
                         : lines.summary_failed + lines.out != lines.errors))
        find(verdict, FINDING_MESSAGE, "%u messages, but %u failures in the summary: %.200s",
             lines.errors, lines.summary_failed, outcome->err);
    /* A directory that cannot be read may contain many inputs. */
    else if ((what->flags & CASE_BATCH) && !strstr(what->arguments, " -R ") && lines.summary &&
             each * (lines.summary_failed + lines.not_started) < missing)
        find(verdict, FINDING_MESSAGE, "%zu outputs are missing, but %u are reported: %.200s",
             missing, lines.summary_failed + lines.not_started, outcome->err);
    verdict->vague = !verdict->survived && !lines.cause;
    /* After one failed read or write, the message must name its cause: other words could mean a
     * damaged file. */
    if (verdict->vague && is_transfer(outcome) && outcome->injected == 1 &&
        !(what->flags & CASE_REPORTS_FAILURES))
        find(verdict, FINDING_MESSAGE, "the cause is not '%s': %.200s", strerror(outcome->cause),
             outcome->err);
}

/* ---- files --------------------------------------------------------------------------------- */

static bool is_temporary(const char *path) {
    return strstr(path, ".gpufilter-");
}

/* Return whether a cleanup call failed, so that the program could not remove the file. */
static bool removing_failed(const gf_outcome *outcome) {
    return outcome->symbol >= 0 && gf_fault_calls[outcome->symbol].class == FAULT_CLEAN;
}

/* If the group or the ACL cannot be copied to the new file, its group gets no permissions. */
static bool is_equivalent(const gf_outcome *outcome, const gf_entry *now,
                          const gf_entry *expected) {
    const char *failed = outcome->symbol < 0 ? "" : gf_fault_calls[outcome->symbol].symbol;
    gf_entry same = *now;
    if (strcmp(failed, "fchown") == 0 || strstr(failed, "xattr"))
        same.mode |= expected->mode & 070;
    return entry_same(&same, expected);
}

/* Existing files must be unchanged or equal those of a run without faults; other files must
 * equal those of such a run. Count the new and the old outputs. */
static void judge_files(gf_verdict *verdict, const gf_reference *reference,
                        const gf_outcome *outcome, size_t *fresh, size_t *stale) {
    const gf_tree *after = &outcome->after;
    const gf_tree *before = &reference->before, *clean = &reference->clean.after;
    for (size_t i = 0; i < before->count; i++)
        if (!tree_find(after, before->list[i].path))
            find(verdict, FINDING_DAMAGED, "%s is missing", before->list[i].path);
    for (size_t i = 0; i < after->count; i++) {
        const gf_entry *now = &after->list[i], *old = tree_find(before, now->path),
                       *expected = tree_find(clean, now->path);
        if (is_temporary(now->path))
            verdict->leftover++;
        else if (!old && !expected)
            find(verdict, FINDING_LEFTOVER, "%s is left", now->path);
        else if (!(old && entry_same(now, old)) &&
                 !(expected && is_equivalent(outcome, now, expected)))
            find(verdict, old ? FINDING_DAMAGED : FINDING_INCOMPLETE,
                 "%s is %zu bytes of mode %o, not %zu of %o", now->path, now->size, now->mode,
                 expected ? expected->size : 0, expected ? expected->mode : 0u);
    }
    *fresh = *stale = 0;
    for (size_t i = 0; i < clean->count; i++) {
        const gf_entry *expected = &clean->list[i], *old = tree_find(before, expected->path),
                       *now = tree_find(after, expected->path);
        if (!expected->data || (old && entry_same(old, expected)))
            continue;
        if (now && is_equivalent(outcome, now, expected))
            ++*fresh;
        else
            ++*stale;
    }
}

bool all_new(const gf_reference *reference, const gf_outcome *outcome) {
    gf_verdict ignored = {0};
    size_t fresh, stale;
    judge_files(&ignored, reference, outcome, &fresh, &stale);
    return !stale;
}

/* ---- files that are left ------------------------------------------------------------------- */

static bool contains_data(const gf_tree *tree, const gf_entry *file) {
    for (size_t i = 0; i < tree->count; i++)
        if (tree->list[i].data && tree->list[i].size == file->size &&
            memcmp(tree->list[i].data, file->data, file->size) == 0)
            return true;
    return false;
}

/* A file that replaces another has a temporary name between two calls. A file with such a name
 * must contain all of the new or of the old file. */
static void judge_leftovers(gf_verdict *verdict, const gf_reference *reference,
                            const gf_outcome *outcome) {
    for (size_t i = 0; i < outcome->after.count; i++) {
        const gf_entry *file = &outcome->after.list[i];
        if (is_temporary(file->path) && !contains_data(&reference->before, file) &&
            !contains_data(&reference->clean.after, file))
            find(verdict, FINDING_LEFTOVER, "%s is left, with %zu unknown bytes", file->path,
                 file->size);
    }
}

/* ---- faults ---------------------------------------------------------------------------------- */

static bool is_code(const gf_case *what, int code) {
    if (what->flags & CASE_ANSWERS)
        return code == 2 || code == 3;
    return code == 1 || code == 3;
}

static bool must_survive(const gf_case *what, gf_fault_mode mode, const gf_outcome *outcome) {
    return mode == FAULT_SHORT || mode == FAULT_INTERRUPTED ||
           (mode == FAULT_UNSUPPORTED && outcome->symbol >= 0) || (what->flags & CASE_SURVIVES);
}

gf_verdict judge_fault(const gf_case *what, const gf_reference *reference, gf_fault_mode mode,
                       const gf_outcome *outcome) {
    gf_verdict verdict = {0};
    size_t fresh, stale;
    if (outcome->signal == SIGALRM) {
        find(&verdict, FINDING_HANG, "time limit exceeded");
        return verdict;
    }
    if (outcome->signal) {
        find(&verdict, FINDING_CRASH, "signal %d: %.200s", outcome->signal, outcome->err);
        return verdict;
    }
    if (strstr(outcome->err, "Sanitizer") || strstr(outcome->err, "runtime error:") ||
        outcome->code == 99)
        find(&verdict, FINDING_LEAK, "%.500s", outcome->err);
    judge_files(&verdict, reference, outcome, &fresh, &stale);
    /* A file that was replaced and cannot be restored stays, and the message names it. */
    if (strstr(outcome->err, "; the file that it replaced is now ") != NULL)
        judge_leftovers(&verdict, reference, outcome);
    else if (verdict.leftover && !removing_failed(outcome))
        find(&verdict, FINDING_LEFTOVER, "%zu temporary files are left", verdict.leftover);
    verdict.survived = outcome->code == reference->clean.code && !is_code(what, outcome->code);
    if (verdict.survived && stale)
        find(&verdict, FINDING_WRONG, "exit code %d, but %zu outputs are missing", outcome->code,
             stale);
    const bool no_answer = (what->flags & CASE_QUERIES_SYSTEM) && outcome->symbol >= 0 &&
                           gf_fault_calls[outcome->symbol].class == FAULT_SYSTEM;
    if (verdict.survived && !same_out(reference, outcome) && !(outcome->reported & 1) && !no_answer)
        find(&verdict, FINDING_WRONG, "exit code %d, but other text on standard output: %.150s",
             outcome->code, outcome->out);
    if (!verdict.survived && !is_code(what, outcome->code))
        find(&verdict, FINDING_CODE, "exit code %d: %.200s", outcome->code, outcome->err);
    if (!verdict.survived && must_survive(what, mode, outcome))
        find(&verdict, FINDING_CODE, "did not continue: exit code %d: %.200s", outcome->code,
             outcome->err);
    verdict.completed = !verdict.survived && fresh;
    /* If all renames fail from then on, outputs cannot be removed again; the message says so. */
    const bool reported = strstr(outcome->err, "was already written") != NULL;
    if (!verdict.survived && fresh && stale && !reported && !(what->flags & CASE_BATCH))
        find(&verdict, FINDING_INCOMPLETE, "only some outputs exist");
    if (!(what->flags & CASE_CUDA) || !verdict.survived)
        judge_lines(&verdict, what, reference, outcome, stale);
    return verdict;
}

/* ---- kills ----------------------------------------------------------------------------------- */

gf_verdict judge_kill(const gf_case *what, const gf_reference *reference,
                      const gf_outcome *outcome) {
    gf_verdict verdict = {0};
    size_t fresh, stale;
    if (outcome->signal == SIGALRM)
        find(&verdict, FINDING_HANG, "time limit exceeded");
    else if (outcome->signal != SIGKILL)
        find(&verdict, FINDING_CRASH, "exit code %d, signal %d", outcome->code, outcome->signal);
    judge_files(&verdict, reference, outcome, &fresh, &stale);
    if (fault_options.nameless)
        judge_leftovers(&verdict, reference, outcome);
    return verdict;
}

/* Without --force, an existing output is rejected: it must be complete, which was checked
 * before. */
gf_verdict judge_rerun(const gf_case *what, const gf_reference *reference, const gf_outcome *killed,
                       const gf_outcome *outcome) {
    gf_verdict verdict = {0};
    size_t fresh, stale;
    judge_files(&verdict, reference, outcome, &fresh, &stale);
    verdict.leftover = 0;
    const bool succeeded = outcome->code == reference->clean.code;
    const bool rejected = outcome->code == 1 && strstr(outcome->err, "use --force to replace it") &&
                          all_new(reference, killed);
    if (!succeeded && !rejected)
        find(&verdict, FINDING_RERUN, "the next run: exit code %d, signal %d: %.200s",
             outcome->code, outcome->signal, outcome->err);
    if (stale)
        find(&verdict, FINDING_RERUN, "%zu outputs are missing after the next run", stale);
    return verdict;
}

bool is_resumed(const gf_case *what) {
    return strstr(what->arguments, "--resume") || (what->again && strstr(what->again, "--resume"));
}

gf_verdict judge_idle(const gf_reference *reference, const gf_outcome *first,
                      const gf_outcome *outcome) {
    static const char nothing[] = "0 done, 0 failed, ";
    gf_verdict verdict = {0};
    if (outcome->code != reference->clean.code ||
        strncmp(outcome->err, nothing, strlen(nothing)) != 0)
        find(&verdict, FINDING_RERUN, "finished outputs are made again: %.200s (%.200s)",
             outcome->err, first->err);
    return verdict;
}
