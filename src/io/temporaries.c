#include "io/temporaries.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "gpufilter.h"

/* A signal handler may not lock or allocate: the table is fixed, and a slot is read only while it
 * is LIVE, which is set after its path was written. */
enum { SLOTS = 64 };
enum { FREE, FILLING, LIVE };

static struct slot {
    atomic_int state;
    char path[PATH_MAX];
} slots[SLOTS];

_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "signal handlers need lock-free atomics");

int gf_temporary_add(const char *path) {
    size_t size = strlen(path) + 1;

    if (size > PATH_MAX)
        return -1;
    for (int i = 0; i < SLOTS; i++) {
        int expected = FREE;
        if (atomic_compare_exchange_strong(&slots[i].state, &expected, FILLING)) {
            memcpy(slots[i].path, path, size);
            atomic_store(&slots[i].state, LIVE);
            return i;
        }
    }
    return -1;
}

void gf_temporary_drop(int slot) {
    if (slot >= 0)
        atomic_store(&slots[slot].state, FREE);
}

void gf_remove_temporaries(void) {
    int saved = errno;

    for (int i = 0; i < SLOTS; i++) {
        if (atomic_load(&slots[i].state) == LIVE) {
            /* Nobody could be told of a failure here. */
            (void)unlink(slots[i].path);
        }
    }
    errno = saved;
}
