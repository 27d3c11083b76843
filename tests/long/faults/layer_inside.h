/* Declarations shared by the files of the layer. */
#ifndef FAULTS_LAYER_INSIDE_H
#define FAULTS_LAYER_INSIDE_H

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "layer.h"

/* Indices in gf_fault_calls. */
enum {
#define CALL(symbol, ...) CALL_##symbol,
#define CLOSING(symbol, ...) CALL_##symbol,
#define SPECIAL(symbol, ...) CALL_##symbol,
#include "calls.def"
#ifdef GF_WITH_CUDA
#include "calls_cuda.def"
#endif
#undef CALL
#undef CLOSING
#undef SPECIAL
    CALLS
};

typedef enum gf_fault_action {
    FAULT_CONTINUE,
    FAULT_FAIL, /* with `cause` */
    FAULT_PARTIAL,
    FAULT_DIE /* after the call */
} gf_fault_action;

typedef struct gf_fault_decision {
    gf_fault_action action;
    int cause;
} gf_fault_decision;

enum {
    FAULT_CAN_BE_PARTIAL = 1, /* more than one byte to read or write */
    FAULT_CAN_BE_UNSUPPORTED =
        2 /* an older kernel or another file system may not support the call */
};

#define SITE __builtin_return_address(0)

/* Count a call and return the action for it. */
gf_fault_decision gf_fault_decide(int symbol, int can, const void *site);
_Noreturn void gf_fault_die(void);
/* Record that a stream failed, by its descriptor. */
void gf_fault_report(int descriptor);

#endif
