/* The runner: run whole commands with a fault or a kill at every call that may fail. */
#ifndef FAULTS_H
#define FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "layer.h"

/* ---- files in memory ------------------------------------------------------------------------- */

typedef struct gf_entry {
    char *path; /* relative to the directory */
    mode_t mode;
    size_t size;
    unsigned char *data; /* NULL for a directory */
} gf_entry;

/* The contents of a directory, by path. */
typedef struct gf_tree {
    gf_entry *list;
    size_t count;
} gf_tree;

void tree_add(gf_tree *tree, const char *path, mode_t mode, const void *data, size_t size);
const gf_entry *tree_find(const gf_tree *tree, const char *path);
/* Read a directory and its subdirectories. */
gf_tree tree_read(const char *directory);
/* Replace the contents of the directory by the tree. */
void tree_write(const gf_tree *tree, const char *directory);
void tree_remove(const char *directory);
void tree_free(gf_tree *tree);
bool entry_same(const gf_entry *a, const gf_entry *b);

/* Make all inputs of the commands. large: including those that keep a GPU busy. */
void make_inputs(gf_tree *inputs, bool large);

/* ---- commands -------------------------------------------------------------------------------- */

enum {
    CASE_BATCH = 1 << 0,            /* prints one line per failed file */
    CASE_MANY = 1 << 1,             /* the same, for a command that processes files in sequence */
    CASE_ANSWERS = 1 << 2,          /* `compare`: exit code 1 is an answer, 2 a failure */
    CASE_THREADS = 1 << 3,          /* the order of calls varies from run to run */
    CASE_PIPE_OUT = 1 << 4,         /* standard output is a pipe */
    CASE_LONG = 1 << 5,             /* skipped with --short */
    CASE_FEW = 1 << 6,              /* slow: a few calls, spread evenly, and one kind of fault */
    CASE_REPORTS_FAILURES = 1 << 7, /* failures are part of its report */
    CASE_QUERIES_SYSTEM = 1 << 8,   /* its output depends on the system */
    CASE_CUDA = 1 << 9,             /* needs a GPU; only calls of its runtime fail */
    CASE_SURVIVES = 1 << 10         /* succeeds after any failure: another backend does the work */
};

typedef struct gf_case {
    const char *name;
    const char *arguments; /* separated by blanks */
    const char *files;     /* "A B>C": these inputs; B gets the name C */
    unsigned flags;
    const char *in;    /* an input for standard input, through a pipe */
    const char *again; /* additional arguments of the next run after a kill */
} gf_case;

extern const gf_case fault_cases[];
extern const size_t fault_case_count;

/* ---- one run --------------------------------------------------------------------------------- */

typedef struct gf_outcome {
    int code;   /* -1: ended by `signal` */
    int signal; /* SIGALRM: the run exceeded the time limit and was killed */
    char *out, *err;
    size_t out_size, err_size;
    uint64_t calls, injected, site;
    int symbol; /* index of the first call that failed; -1: none */
    int cause, reported;
    gf_tree after;
} gf_outcome;

/* The program and a worker's directory. */
typedef struct gf_stage_set {
    const char *program;
    char directory[4096]; /* of this worker */
    gf_faults *faults;
    int faults_fd;
    const gf_tree *inputs;
} gf_stage_set;

typedef struct gf_reference {
    gf_tree before;
    gf_outcome clean;
    bool has_times; /* standard output contains times */
    struct gf_fault_trace *trace;
} gf_reference;

gf_tree case_files(const gf_case *what, const gf_tree *inputs);
/* Run the program in the worker's directory, whose contents stay. more: additional arguments, or
 * NULL. */
gf_outcome run_program(const gf_stage_set *set, const gf_case *what, const char *more,
                       gf_fault_mode mode, uint64_t at, uint32_t lacking);
void outcome_free(gf_outcome *outcome);

/* ---- judging --------------------------------------------------------------------------------- */

typedef enum gf_finding {
    FINDING_NONE,
    FINDING_CRASH,
    FINDING_HANG,
    FINDING_LEAK,       /* a leak or another finding of a sanitizer */
    FINDING_DAMAGED,    /* an existing file is missing or changed */
    FINDING_INCOMPLETE, /* an incomplete output */
    FINDING_WRONG,      /* exit code 0, but other results than a run without faults */
    FINDING_CODE,       /* an undocumented exit code */
    FINDING_MESSAGE,    /* not exactly one line with a name and a cause */
    FINDING_LEFTOVER,   /* an unexpected file is left */
    FINDING_RERUN,      /* the next run after a kill fails */
    FINDINGS
} gf_finding;

extern const char *const finding_names[FINDINGS];

typedef struct gf_verdict {
    gf_finding finding;
    char text[600];
    bool survived;   /* exit code 0 */
    bool completed;  /* it failed, and all outputs are complete */
    bool vague;      /* its message does not name the cause */
    size_t leftover; /* number of temporary files */
} gf_verdict;

gf_verdict judge_fault(const gf_case *what, const gf_reference *reference, gf_fault_mode mode,
                       const gf_outcome *outcome);
/* Judge a run that was killed. */
gf_verdict judge_kill(const gf_case *what, const gf_reference *reference,
                      const gf_outcome *outcome);
/* Judge the run after it. */
gf_verdict judge_rerun(const gf_case *what, const gf_reference *reference, const gf_outcome *killed,
                       const gf_outcome *outcome);
/* Return whether the case is a batch that --resume continues. */
bool is_resumed(const gf_case *what);
/* Judge a further run, which has nothing left to do. first: the run with a fault. */
gf_verdict judge_idle(const gf_reference *reference, const gf_outcome *first,
                      const gf_outcome *outcome);
bool all_new(const gf_reference *reference, const gf_outcome *outcome);
/* Return whether the texts differ in numbers only. */
bool same_words(const char *a, size_t a_size, const char *b, size_t b_size);

_Noreturn void fatal(const char *what);
void *need(void *memory);

#endif
