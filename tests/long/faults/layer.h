/* What the program under test and the runner share: which call is to fail and how, and what became
 * of it. It lies in memory of both, so that it outlives a program that is killed. */
#ifndef FAULTS_LAYER_H
#define FAULTS_LAYER_H

#include <stdatomic.h>
#include <stdint.h>

/* Calls that fail for one reason, and so, from one on, together. */
typedef enum gf_fault_class {
    FAULT_MEMORY,
    FAULT_READ,  /* what files hold */
    FAULT_WRITE, /* the same, and making it last */
    FAULT_NAMES, /* finding, opening, renaming, looking at files */
    FAULT_PRINT, /* streams for people and programs */
    FAULT_THREAD,
    FAULT_SYSTEM, /* questions to the system that it may not answer, and libraries to be loaded */
    FAULT_CLEAN,  /* giving back; never from one on */
    FAULT_CUDA,
    FAULT_CLASSES
} gf_fault_class;

typedef enum gf_fault_mode {
    FAULT_NONE,        /* only counts */
    FAULT_ONCE,        /* the call fails */
    FAULT_ON,          /* it does, and all of its class from then on */
    FAULT_OTHERWISE,   /* it fails for another reason */
    FAULT_SHORT,       /* it reads or writes a part */
    FAULT_INTERRUPTED, /* EINTR */
    FAULT_UNSUPPORTED, /* this file system, or this Linux, never knew that call */
    FAULT_BEFORE,      /* SIGKILL before it */
    FAULT_AFTER,       /* SIGKILL after it */
    FAULT_MODES
} gf_fault_mode;

/* One of calls.def. */
typedef struct gf_fault_call {
    const char *symbol;
    gf_fault_class class;
    /* An errno, or cudaError_t, for each mode; 0: the call does not fail in that way. */
    int usual, other, unsupported;
    int interrupted; /* EINTR where the program has to go on */
    int partial;     /* may do a part */
} gf_fault_call;

extern const gf_fault_call gf_fault_calls[];
extern const unsigned gf_fault_call_count;

enum { FAULT_TRACE = 1 << 16 };

typedef struct gf_faults {
    gf_fault_mode mode;
    uint32_t classes; /* bit c: calls of class c count */
    uint64_t at;      /* 1 is the first call */
    uint32_t lacking; /* FAULT_UNSUPPORTED: the place of its symbol */
    int main_process; /* who is killed */
    _Atomic uint64_t calls;
    _Atomic uint64_t injected;
    _Atomic unsigned symbol; /* of the first that failed, behind a 1 */
    _Atomic int cause;       /* its errno */
    _Atomic uint64_t site;   /* where it was called, from the start of the program */
    _Atomic int reported;    /* 1: a line for people was among what failed, 2: standard output */
    struct gf_fault_trace {
        uint32_t symbol; /* its place in gf_fault_calls */
        uint32_t site;
    } trace[FAULT_TRACE]; /* calls in their order, while none fails */
} gf_faults;

#define FAULT_DESCRIPTOR "GF_FAULT_FD" /* environment: the number of the shared file */

#endif
