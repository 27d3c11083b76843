/* The runner: whole commands, with a fault or a kill at every call that may fail. */
#ifndef FAULTS_H
#define FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "layer.h"

/* ---- files in memory ------------------------------------------------------------------------- */

typedef struct gf_entry {
    char *path; /* from the folder */
    mode_t mode;
    size_t size;
    unsigned char *data; /* NULL: a folder */
} gf_entry;

/* What a folder holds, by path. */
typedef struct gf_tree {
    gf_entry *list;
    size_t count;
} gf_tree;

void tree_add(gf_tree *tree, const char *path, mode_t mode, const void *data, size_t size);
const gf_entry *tree_find(const gf_tree *tree, const char *path);
/* Of a folder, and of those in it. */
gf_tree tree_read(const char *folder);
/* Makes the folder hold this and nothing else. */
void tree_write(const gf_tree *tree, const char *folder);
void tree_remove(const char *folder);
void tree_free(gf_tree *tree);
bool entry_same(const gf_entry *a, const gf_entry *b);

/* Everything that commands read. large: what it takes to keep a GPU busy, too. */
void make_inputs(gf_tree *inputs, bool large);

/* ---- commands -------------------------------------------------------------------------------- */

enum {
    CASE_BATCH = 1 << 0,    /* a line for each file that fails */
    CASE_MANY = 1 << 1,     /* the same, of a command that does one file after the other */
    CASE_TEST = 1 << 2,     /* `compare`: 1 is an answer, 2 a failure */
    CASE_THREADS = 1 << 3,  /* which call is the N-th is for chance to say */
    CASE_PIPE_OUT = 1 << 4, /* standard output is a pipe */
    CASE_LONG = 1 << 5,     /* not in the short form */
    CASE_FEW = 1 << 6,      /* slow: a few calls, spread evenly, and one kind of fault */
    CASE_TELLS = 1 << 7,    /* what failed stands in its report */
    CASE_ASKS = 1 << 8,     /* it reports what the system answers */
    CASE_CUDA = 1 << 9,     /* on a GPU alone, with faults of its runtime alone */
    CASE_SURVIVES = 1 << 10 /* whatever fails, others do the work */
};

typedef struct gf_case {
    const char *name;
    const char *arguments; /* parted by blanks */
    const char *files;     /* "A B>C": these inputs, under these names */
    unsigned flags;
    const char *in;    /* an input that comes through a pipe */
    const char *again; /* what a run after a kill needs in addition */
} gf_case;

extern const gf_case fault_cases[];
extern const size_t fault_case_count;

/* ---- one run --------------------------------------------------------------------------------- */

typedef struct gf_outcome {
    int code;   /* -1: ended by `signal` */
    int signal; /* SIGALRM: it hung, and was killed */
    char *out, *err;
    size_t out_size, err_size;
    uint64_t calls, injected, site;
    int symbol; /* of the first that failed; -1: none */
    int cause, reported;
    gf_tree after;
} gf_outcome;

/* What the program and where. */
typedef struct gf_stage_set {
    const char *program;
    char folder[4096]; /* of this worker */
    gf_faults *faults;
    int faults_fd;
    const gf_tree *inputs;
} gf_stage_set;

typedef struct gf_reference {
    gf_tree before;
    gf_outcome clean;
    bool loose; /* what it prints holds times */
    struct gf_fault_trace *trace;
} gf_reference;

gf_tree case_files(const gf_case *what, const gf_tree *inputs);
/* Runs in the worker's folder as it is. more: further arguments, or NULL. */
gf_outcome run_program(const gf_stage_set *set, const gf_case *what, const char *more,
                       gf_fault_mode mode, uint64_t at, uint32_t lacking);
void outcome_free(gf_outcome *outcome);

/* ---- judging --------------------------------------------------------------------------------- */

typedef enum gf_finding {
    FINDING_NONE,
    FINDING_CRASH,
    FINDING_HANG,
    FINDING_LEAK,    /* or another of the sanitizers' */
    FINDING_LOST,    /* what was there before is not as it was */
    FINDING_TORN,    /* an output that is not whole */
    FINDING_WRONG,   /* exit code 0, and not what a good run gives */
    FINDING_CODE,    /* an exit code that is not documented */
    FINDING_MESSAGE, /* not one line with a name and a cause */
    FINDING_LEFT,    /* a file that nobody asked for */
    FINDING_RERUN,   /* it does not do what it should after a kill */
    FINDINGS
} gf_finding;

extern const char *const finding_names[FINDINGS];

typedef struct gf_verdict {
    gf_finding finding;
    char text[600];
    bool survived;   /* exit code 0 */
    bool completed;  /* it failed, and all outputs are there */
    bool vague;      /* its line does not tell what failed */
    size_t leftover; /* temporary files */
} gf_verdict;

gf_verdict judge_fault(const gf_case *what, const gf_reference *reference, gf_fault_mode mode,
                       const gf_outcome *outcome);
/* Of a run that was killed. */
gf_verdict judge_kill(const gf_case *what, const gf_reference *reference,
                      const gf_outcome *outcome);
/* Of the run after it. */
gf_verdict judge_again(const gf_case *what, const gf_reference *reference, const gf_outcome *killed,
                       const gf_outcome *outcome);
/* Is it a batch that goes on with --resume? */
bool is_resumed(const gf_case *what);
/* Of one more run, when nothing is left to do. first: the one with a fault. */
gf_verdict judge_idle(const gf_reference *reference, const gf_outcome *first,
                      const gf_outcome *outcome);
bool all_new(const gf_reference *reference, const gf_outcome *outcome);
/* Are they the same but for numbers? */
bool same_words(const char *a, size_t a_size, const char *b, size_t b_size);

_Noreturn void give_up(const char *what);
void *need(void *memory);

#endif
