/* What the files of the layer share. */
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
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "layer.h"

/* Places in gf_fault_calls. */
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

typedef enum gf_fault_act {
    FAULT_GO,
    FAULT_FAIL, /* with `cause` */
    FAULT_PART,
    FAULT_DIE /* when it is done */
} gf_fault_act;

typedef struct gf_fault_meeting {
    gf_fault_act act;
    int cause;
} gf_fault_meeting;

enum {
    FAULT_CAN_PART = 1, /* there is more than one byte to read or write */
    FAULT_CAN_LACK = 2  /* it is a call that an older system, or a simpler one, lacks */
};

#define SITE __builtin_return_address(0)

/* Counts a call, and says what becomes of it. */
gf_fault_meeting gf_fault_meet(int symbol, int can, const void *site);
_Noreturn void gf_fault_die(void);
/* A stream failed: which, by its descriptor. */
void gf_fault_report(int descriptor);

#endif
