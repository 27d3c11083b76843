/* Messages by MPI, of which nobody waits for one: neither who sends it nor who takes it, since the
 * other may be stopped, or slow, in the middle of that. */
#include <stdlib.h>
#include <string.h>

#include "ranks_mpi.h"

#define MOST_COMING ((size_t)64 << 20) /* bytes under way to here; others wait where they are */

/* One that was posted. */
typedef struct gf_going {
    struct gf_going *next;
    MPI_Request request;
    size_t size;
    char data[];
} gf_going;
static gf_going *going, **last_going = &going;
static size_t going_bytes;

/* One that is on its way to here. */
typedef struct gf_coming {
    struct gf_coming *next;
    MPI_Request request;
    uint32_t from;
    size_t size;
    char *data;
    int there;
} gf_coming;
static gf_coming *coming, **last_coming = &coming;
static size_t coming_bytes;

static void *need(void *memory) {
    if (!memory)
        gf_cli_ranks_abort("out of memory for a message between ranks");
    return memory;
}

/* ---- from here ------------------------------------------------------------------------------- */

void gf_cli_ranks_post(uint32_t to, const void *data, size_t size) {
    gf_going *one = need(malloc(sizeof *one + size));
    one->next = NULL;
    one->size = size;
    memcpy(one->data, data, size);
    MPI_Isend(one->data, (int)size, MPI_BYTE, (int)to, GF_CLI_TAG_MESSAGE, gf_cli_world,
              &one->request);
    *last_going = one;
    last_going = &one->next;
    going_bytes += size;
}

/* Frees what has left. */
static void see_off(void) {
    for (gf_going **at = &going; *at;) {
        gf_going *one = *at;
        int done;
        MPI_Test(&one->request, &done, MPI_STATUS_IGNORE);
        if (!done) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        if (!one->next)
            last_going = at;
        going_bytes -= one->size;
        free(one);
    }
}

size_t gf_cli_ranks_posted(void) {
    return going_bytes;
}

void gf_cli_ranks_post_end(void) {
    for (unsigned vain = 0; going; gf_cli_ranks_rest(&vain))
        see_off();
}

/* ---- to here --------------------------------------------------------------------------------- */

/* Lets one come that has been announced. */
static void let_come(void) {
    MPI_Message message;
    MPI_Status status;
    int announced, bytes;
    MPI_Improbe(MPI_ANY_SOURCE, GF_CLI_TAG_MESSAGE, gf_cli_world, &announced, &message, &status);
    if (!announced)
        return;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    gf_coming *one = need(calloc(1, sizeof *one));
    one->from = (uint32_t)status.MPI_SOURCE;
    one->size = (size_t)bytes;
    one->data = need(malloc((size_t)bytes + 1));
    MPI_Imrecv(one->data, bytes, MPI_BYTE, &message, &one->request);
    *last_coming = one;
    last_coming = &one->next;
    coming_bytes += one->size;
}

/* Is one before it from the same rank? */
static bool is_behind(const gf_coming *one) {
    const gf_coming *before = coming;
    while (before != one && before->from != one->from)
        before = before->next;
    return before != one;
}

void *gf_cli_ranks_poll(uint32_t *from, size_t *size) {
    see_off();
    if (coming_bytes < MOST_COMING)
        let_come();
    for (gf_coming **at = &coming; *at; at = &(*at)->next) {
        gf_coming *one = *at;
        if (!one->there)
            MPI_Test(&one->request, &one->there, MPI_STATUS_IGNORE);
        if (!one->there || is_behind(one))
            continue;
        char *data = one->data;
        *from = one->from;
        *size = one->size;
        *at = one->next;
        if (!one->next)
            last_coming = at;
        coming_bytes -= one->size;
        free(one);
        return data;
    }
    return NULL;
}
