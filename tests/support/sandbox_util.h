/* Shared by the tests of the sandbox: memory shared by parent and child, and work functions. */
#ifndef SANDBOX_UTIL_H
#define SANDBOX_UTIL_H

#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "io/stb/sandbox.h"
#include "io_util.h"

/* Data shared by parent and child. */
static struct shared {
    volatile int reached;      /* the work function has started */
    volatile int survived;     /* the child survived a forbidden operation */
    volatile uint64_t counter; /* progress of the work function */
} * shared;
static gf_sandbox_memory memory; /* contains *shared */

/* Map the memory. The page after it is inaccessible, so that no other mapping follows by chance. */
static inline int map_shared(void **state) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    memory.bytes = 2 * page;
    memory.base = gf_sandbox_map(memory.bytes + page);
    shared = (struct shared *)(void *)memory.base;
    return make_directory(state) != 0 || shared == NULL ||
           mprotect(memory.base + memory.bytes, page, PROT_NONE) != 0;
}

static inline int unmap_shared(void **state) {
    gf_sandbox_unmap(memory.base, memory.bytes + (size_t)sysconf(_SC_PAGESIZE));
    return remove_directory(state);
}

/* ---- work functions -------------------------------------------------------------------------- */

static inline void succeeds(void *context) {
    *(int *)context += 1; /* a copy */
    shared->reached = 1;
    shared->counter = 42;
}

static inline void aborts(void *context) {
    shared->reached = 1;
    abort();
}

static inline void never_ends(void *context) {
    shared->reached = 1;
    for (;;)
        shared->counter++;
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Return true if a child remains, running or dead. */
static inline bool children_left(void) {
    return waitpid(-1, NULL, WNOHANG | __WALL) >= 0 || errno != ECHILD;
}

static inline gf_sandbox_end run(gf_sandbox_work *work, void *context, uint32_t seconds) {
    gf_sandbox_end end;
    memset((void *)shared, 0, sizeof *shared);
    assert_ok(gf_sandbox_run(work, context, &memory, seconds, "x", &end, &why));
    assert_int_equal(shared->reached, 1);
    assert_int_equal(shared->survived, 0);
    assert_false(children_left());
    return end;
}

#endif
