/* The temporary files that exist right now, so that a signal handler can remove them. */
#include "io/output.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* A signal handler may not lock or allocate: the table is fixed, and a path is read only while it
 * is complete. There is room for an output of each of the most threads that can be asked for. */
enum { SLOTS = 1024 + 64 };
/* Not for ever: a file server may be gone. In milliseconds, and for all slots together. */
enum { REST = 1, MAX_RESTS = 10000 };
enum { FILLING, CREATING, LIVE };

static struct slot {
    atomic_uintptr_t owner; /* the thread that took it; 0: nobody, and then it is FILLING */
    atomic_int stage;
    char path[PATH_MAX];
} slots[SLOTS];

_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_POINTER_LOCK_FREE == 2,
               "signal handlers need lock-free atomics");

/* The thread whose handler is about to end the process; no other creates files any more. It never
 * changes again. */
static atomic_uintptr_t extension;

/* Not the address of a thread's variable: the first use of that may allocate. */
static uintptr_t temporary_this_thread(void) {
    return (uintptr_t)pthread_self();
}

static bool temporary_is_extension(void) {
    uintptr_t other = atomic_load(&extension);
    return other != 0 && other != temporary_this_thread();
}

void gf_temporary_abandon(void) {
    while (temporary_is_extension())
        (void)poll(NULL, 0, REST);
}

int gf_temporary_add(const char *path) {
    size_t size = strlen(path) + 1;
    if (size > PATH_MAX)
        return -1;
    for (int i = 0; i < SLOTS; i++) {
        uintptr_t nobody = 0;
        if (atomic_load(&slots[i].owner) == 0 &&
            atomic_compare_exchange_strong(&slots[i].owner, &nobody, temporary_this_thread())) {
            /* Asked once the slot is taken: the handler that is not seen here sees the slot. */
            if (temporary_is_extension()) {
                atomic_store(&slots[i].owner, 0);
                gf_temporary_abandon();
            }
            memcpy(slots[i].path, path, size);
            atomic_store(&slots[i].stage, CREATING);
            return i;
        }
    }
    return -1;
}

void gf_temporary_made(int slot) {
    atomic_store(&slots[slot].stage, LIVE);
}

void gf_temporary_drop(int slot) {
    if (slot >= 0) {
        atomic_store(&slots[slot].stage, FILLING);
        atomic_store(&slots[slot].owner, 0);
    }
}

/* What this thread was about to create when the signal came, it does not go on with: nobody is to
 * wait for that. The file may be there already. */
static void temporary_let_go(void) {
    for (int i = 0; i < SLOTS; i++) {
        int creating = CREATING;
        if (atomic_load(&slots[i].owner) == temporary_this_thread() &&
            !atomic_compare_exchange_strong(&slots[i].stage, &creating, LIVE) &&
            creating == FILLING)
            atomic_store(&slots[i].owner, 0);
    }
}

static void temporary_remove_all(int *rests) {
    for (int i = 0; i < SLOTS; i++) {
        while (atomic_load(&slots[i].owner) != 0 && atomic_load(&slots[i].stage) != LIVE &&
               *rests < MAX_RESTS) {
            (void)poll(NULL, 0, REST);
            ++*rests;
        }
        /* Nobody fills a slot any more, so that the path stays. Nobody could be told of a failure.
         */
        if (atomic_load(&slots[i].stage) != FILLING)
            (void)unlink(slots[i].path);
    }
}

void gf_remove_temporaries(void) {
    int saved = errno, rests = 0;
    uintptr_t nobody = 0;
    atomic_compare_exchange_strong(&extension, &nobody, temporary_this_thread());
    temporary_let_go();
    gf_temporary_abandon();
    temporary_remove_all(&rests);
    /* One may have been renamed to another that had been looked at already. */
    temporary_remove_all(&rests);
    errno = saved;
}
