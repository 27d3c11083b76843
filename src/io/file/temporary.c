/* Table of existing temporary files, which a signal handler removes. */
#include "io/file/output.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* Signal handlers must not lock or allocate. Therefore the table has a fixed size, and a path is
 * read only when it is complete. Capacity: one output for each of the at most 1024 threads, and 64
 * more. */
enum { SLOTS = 1024 + 64 };
/* Poll every POLL_MS milliseconds, in total at most 10 s: a file server may not respond. */
enum { POLL_MS = 1, MAX_POLLS = 10000 };
enum { FILLING, CREATING, LIVE };

static struct slot {
    atomic_uintptr_t owner; /* thread that uses the slot; 0: unused, and stage is FILLING */
    atomic_int stage;
    char path[PATH_MAX];
} slots[SLOTS];

_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_POINTER_LOCK_FREE == 2,
               "signal handlers need lock-free atomics");

/* Thread whose signal handler terminates the process; 0: none. Set once. Other threads then stop
 * creating temporary files. Threads have the number pthread_self(), not the address of a
 * thread-local variable: its first use may allocate. */
static atomic_uintptr_t terminating_thread;

static bool temporary_is_process_ending(void) {
    uintptr_t terminating = atomic_load(&terminating_thread);
    return terminating != 0 && terminating != (uintptr_t)pthread_self();
}

void gf_temporary_abandon(void) {
    while (temporary_is_process_ending())
        (void)poll(NULL, 0, POLL_MS);
}

int gf_temporary_add(const char *path) {
    const size_t size = strlen(path) + 1;
    for (int i = 0; size <= PATH_MAX && i < SLOTS; i++) {
        uintptr_t none = 0;
        if (atomic_load(&slots[i].owner) != 0 ||
            !atomic_compare_exchange_strong(&slots[i].owner, &none, (uintptr_t)pthread_self()))
            continue;
        /* Test after claiming the slot: a handler that starts later finds the slot. */
        if (temporary_is_process_ending()) {
            atomic_store(&slots[i].owner, 0);
            gf_temporary_abandon();
        }
        memcpy(slots[i].path, path, size);
        atomic_store(&slots[i].stage, CREATING);
        return i;
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

static void temporary_remove_all(int *polls) {
    for (int i = 0; i < SLOTS; i++) {
        while (atomic_load(&slots[i].owner) != 0 && atomic_load(&slots[i].stage) != LIVE &&
               *polls < MAX_POLLS) {
            (void)poll(NULL, 0, POLL_MS);
            ++*polls;
        }
        /* The path is stable: no thread fills slots any longer. A failure cannot be reported. */
        if (atomic_load(&slots[i].stage) != FILLING)
            (void)unlink(slots[i].path);
    }
}

void gf_remove_temporaries(void) {
    int saved = errno, polls = 0;
    uintptr_t none = 0;
    atomic_compare_exchange_strong(&terminating_thread, &none, (uintptr_t)pthread_self());
    /* Mark the file that the interrupted thread was creating as created, since that thread does not
     * resume. The file may exist already. Release its slot if the path is incomplete. */
    for (int i = 0; i < SLOTS; i++) {
        int creating = CREATING;
        if (atomic_load(&slots[i].owner) == (uintptr_t)pthread_self() &&
            !atomic_compare_exchange_strong(&slots[i].stage, &creating, LIVE) &&
            creating == FILLING)
            atomic_store(&slots[i].owner, 0);
    }
    gf_temporary_abandon();
    temporary_remove_all(&polls);
    /* A thread may have renamed a file to a path whose slot was already processed. */
    temporary_remove_all(&polls);
    errno = saved;
}
