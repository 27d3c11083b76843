/* State shared by the program under test and the runner: the call to fail, the mode, and the
 * result. It is in shared memory, so that it remains after the program is killed. */
#ifndef FAULTS_LAYER_H
#define FAULTS_LAYER_H

#include <stdatomic.h>
#include <stdint.h>

/* Calls that fail for the same reason and can therefore fail together. */
typedef enum gf_fault_class {
    FAULT_MEMORY,
    FAULT_READ,  /* reading the contents of files */
    FAULT_WRITE, /* writing the contents of files, and syncing */
    FAULT_NAMES, /* looking up, opening and renaming files; attributes */
    FAULT_PRINT, /* standard output and standard error */
    FAULT_THREAD,
    FAULT_SYSTEM, /* queries that the system may not answer, and loading of libraries */
    FAULT_CLEAN,  /* cleanup; not used with FAULT_REPEATED */
    FAULT_CUDA,
    FAULT_CLASSES
} gf_fault_class;

typedef enum gf_fault_mode {
    FAULT_NONE,        /* count only */
    FAULT_ONCE,        /* the selected call fails */
    FAULT_REPEATED,    /* the call and all later ones of its class fail */
    FAULT_OTHER_CAUSE, /* the call fails with another errno */
    FAULT_SHORT,       /* the call reads or writes a part */
    FAULT_INTERRUPTED, /* EINTR */
    FAULT_UNSUPPORTED, /* the call fails each time, as on a file system or kernel without it */
    FAULT_BEFORE,      /* SIGKILL before the call */
    FAULT_AFTER,       /* SIGKILL after the call */
    FAULT_MODES
} gf_fault_mode;

/* An entry of calls.def. */
typedef struct gf_fault_call {
    const char *symbol;
    gf_fault_class class;
    /* errno or cudaError_t for each mode; 0: the call does not fail in this mode */
    int usual, other, unsupported;
    int interrupted; /* EINTR if the program must retry */
    int partial;     /* 1 if the call may transfer a part */
} gf_fault_call;

extern const gf_fault_call gf_fault_calls[];
extern const unsigned gf_fault_call_count;

enum { FAULT_TRACE = 1 << 16 };

typedef struct gf_faults {
    gf_fault_mode mode;
    uint32_t classes; /* bit c: count calls of class c */
    uint64_t at;      /* number of the call to fail, from 1 */
    uint32_t lacking; /* FAULT_UNSUPPORTED: index of its symbol */
    int main_process; /* process that is killed */
    _Atomic uint64_t calls;
    _Atomic uint64_t injected;
    _Atomic unsigned symbol; /* 1 + index of the first call that failed */
    _Atomic int cause;       /* errno of the first call that failed */
    _Atomic uint64_t site;   /* its call site, relative to the start of the program */
    _Atomic int reported;    /* bit mask of failed streams; 1: standard error, 2: standard output */
    struct gf_fault_trace {
        uint32_t symbol; /* index in gf_fault_calls */
        uint32_t site;
    } trace[FAULT_TRACE]; /* calls in order, in mode FAULT_NONE */
} gf_faults;

#define FAULT_DESCRIPTOR "GF_FAULT_FD" /* environment variable: descriptor of the shared memory */

#endif
