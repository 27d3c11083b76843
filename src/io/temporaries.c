#include "io/temporaries.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "gpufilter.h"

/* A signal handler may not lock or allocate: the table is fixed, and a path is read only while it
 * is complete. There is room for an output of each of the most threads that can be asked for. */
enum { SLOTS = 1024 + 64 };
enum { FREE, FILLING, CREATING, LIVE };

static struct slot {
    atomic_int state;
    atomic_uintptr_t owner; /* the thread that fills or creates */
    char path[PATH_MAX];
} slots[SLOTS];

_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_POINTER_LOCK_FREE == 2,
               "signal handlers need lock-free atomics");

/* The thread whose handler is about to end the process; no other creates files any more. */
static atomic_uintptr_t ending;

static uintptr_t this_thread(void) {
    static _Thread_local char mark; /* its address is one a thread */

    return (uintptr_t)&mark;
}

static void rest(void) {
    (void)poll(NULL, 0, 1);
}

static bool is_ending(void) {
    uintptr_t other = atomic_load(&ending);

    return other != 0 && other != this_thread();
}

void gf_temporary_give_way(void) {
    while (is_ending())
        rest();
}

int gf_temporary_add(const char *path) {
    size_t size = strlen(path) + 1;

    if (size > PATH_MAX)
        return -1;
    for (int i = 0; i < SLOTS; i++) {
        int expected = FREE;
        if (atomic_load(&slots[i].state) == FREE &&
            atomic_compare_exchange_strong(&slots[i].state, &expected, FILLING)) {
            atomic_store(&slots[i].owner, this_thread());
            /* What is created now would stay behind. */
            if (is_ending()) {
                atomic_store(&slots[i].state, FREE);
                gf_temporary_give_way();
            }
            memcpy(slots[i].path, path, size);
            atomic_store(&slots[i].state, CREATING);
            return i;
        }
    }
    return -1;
}

void gf_temporary_made(int slot) {
    atomic_store(&slots[slot].state, LIVE);
}

void gf_temporary_drop(int slot) {
    if (slot >= 0)
        atomic_store(&slots[slot].state, FREE);
}

/* Waits for another thread that is about to create this file, though not for ever: a file server
 * may be gone. */
static int settled(struct slot *slot) {
    int state = atomic_load(&slot->state);

    for (int i = 0; i < 10000 && (state == FILLING || state == CREATING) &&
                    atomic_load(&slot->owner) != this_thread();
         i++) {
        rest();
        state = atomic_load(&slot->state);
    }
    return state;
}

void gf_remove_temporaries(void) {
    int saved = errno;

    atomic_store(&ending, this_thread());
    for (int i = 0; i < SLOTS; i++) {
        int state = settled(&slots[i]);
        if (state == CREATING || state == LIVE) {
            /* Nobody could be told of a failure here. */
            (void)unlink(slots[i].path);
        }
    }
    errno = saved;
}
