/* Ranks by MPI: starting and ending, waiting, messages, and agreeing on failures. */
#define _GNU_SOURCE /* sched_getaffinity */

#include "mpi.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

MPI_Comm gf_mpi_world;
pthread_mutex_t gf_mpi_calls = PTHREAD_MUTEX_INITIALIZER;

static gf_cli_peers mpi_peers;

static size_t mpi_piece(size_t size) {
    return size < GF_MPI_MAX_PIECE ? size : GF_MPI_MAX_PIECE;
}

/* ---- waiting --------------------------------------------------------------------------------- */

void gf_mpi_rest(unsigned *tries) {
    enum { YIELDS = 4, DOUBLINGS = 6, SHORTEST = 20000, LONGEST = 1000000 }; /* nanoseconds */
    struct timespec pause = {0, LONGEST};
    if (++*tries <= YIELDS) {
        sched_yield();
        return;
    }
    if (*tries - YIELDS < DOUBLINGS)
        pause.tv_nsec = SHORTEST << (*tries - YIELDS);
    nanosleep(&pause, NULL);
}

void gf_mpi_finish(MPI_Request *request) {
    int done = 0;
    for (unsigned tries = 0;; gf_mpi_rest(&tries)) {
        pthread_mutex_lock(&gf_mpi_calls);
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        pthread_mutex_unlock(&gf_mpi_calls);
        if (done)
            return;
    }
}

_Noreturn void gf_mpi_abort(const char *why) {
    char host[64] = "";
    gf_remove_temporaries();
    (void)gethostname(host, sizeof host - 1);
    fprintf(stderr, "gpufilter: rank %u on %s: %s\n", mpi_peers.rank, host, why);
    MPI_Abort(gf_mpi_world, GF_FAILED);
    _exit(GF_FAILED);
}

/* ---- messages -------------------------------------------------------------------------------- */

void gf_mpi_broadcast(void *data, size_t size) {
    char *at = data;
    for (size_t n; size; at += n, size -= n) {
        MPI_Request request;
        n = mpi_piece(size);
        MPI_Ibcast(at, (int)n, MPI_BYTE, 0, gf_mpi_world, &request);
        gf_mpi_finish(&request);
    }
}

void gf_mpi_send(uint32_t to, int tag, const void *data, size_t size) {
    const char *at = data;
    for (size_t n; size; at += n, size -= n) {
        MPI_Request request;
        n = mpi_piece(size);
        pthread_mutex_lock(&gf_mpi_calls);
        MPI_Isend(at, (int)n, MPI_BYTE, (int)to, tag, gf_mpi_world, &request);
        pthread_mutex_unlock(&gf_mpi_calls);
        gf_mpi_finish(&request);
    }
}

void gf_mpi_receive(uint32_t from, int tag, void *data, size_t size) {
    char *at = data;
    for (size_t n; size; at += n, size -= n) {
        MPI_Request request;
        n = mpi_piece(size);
        MPI_Irecv(at, (int)n, MPI_BYTE, (int)from, tag, gf_mpi_world, &request);
        gf_mpi_finish(&request);
    }
}

/* ---- agreeing on failures -------------------------------------------------------------------- */

typedef struct mpi_outcome {
    gf_status status;
    gf_error error;
} mpi_outcome;

gf_status gf_mpi_follow(gf_status status, gf_error *error) {
    mpi_outcome outcome = {.status = status};
    if (status)
        outcome.error = *error;
    gf_mpi_broadcast(&outcome, sizeof outcome);
    if (outcome.status)
        *error = outcome.error;
    return outcome.status;
}

gf_status gf_mpi_agree(gf_status status, gf_error *error) {
    mpi_outcome own = {.status = status};
    mpi_outcome *all = calloc(mpi_peers.count, sizeof *all);
    MPI_Request request;
    if (!all)
        gf_mpi_abort("out of memory");
    if (status)
        own.error = *error;
    MPI_Igather(&own, (int)sizeof own, MPI_BYTE, all, (int)sizeof own, MPI_BYTE, 0, gf_mpi_world,
                &request);
    gf_mpi_finish(&request);
    for (uint32_t r = mpi_peers.count; r-- > 0 && mpi_peers.rank == 0;)
        if (all[r].status)
            own = all[r];
    free(all);
    if (own.status)
        *error = own.error;
    return gf_mpi_follow(own.status, error);
}

/* ---- starting and ending --------------------------------------------------------------------- */

/* Joining takes a tenth of a second and more, so a process that no launcher started does not. */
static bool mpi_is_launched(void) {
    static const char *const signs[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE",
                                        NULL};
    const char *const *sign = signs;
    while (*sign && !getenv(*sign))
        sign++;
    return *sign != NULL;
}

/* Launchers bind each rank to cores of its own, or leave all cores to all: then they are shared. */
static uint32_t mpi_share_cores(MPI_Comm host, uint32_t locals) {
    cpu_set_t own;
    uint32_t same = 0;
    CPU_ZERO(&own);
    if (sched_getaffinity(0, sizeof own, &own) != 0)
        return 0;
    cpu_set_t *all = calloc(locals, sizeof *all);
    if (!all)
        return 0;
    MPI_Allgather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, host);
    for (uint32_t i = 0; i < locals; i++)
        same += CPU_EQUAL(&own, &all[i]) != 0;
    free(all);
    const uint32_t cores = gf_cores();
    return same && cores > same ? cores / same : 1;
}

static int mpi_end(int code) {
    MPI_Request request;
    int worst = code;
    MPI_Iallreduce(&code, &worst, 1, MPI_INT, MPI_MAX, gf_mpi_world, &request);
    gf_mpi_finish(&request);
    MPI_Finalize();
    return worst;
}

static void mpi_start(void) {
    int provided, rank, count, local, locals;
    MPI_Comm host;
    /* Threads of a batch call MPI, one at a time. */
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_dup(MPI_COMM_WORLD, &gf_mpi_world);
    MPI_Comm_rank(gf_mpi_world, &rank);
    MPI_Comm_size(gf_mpi_world, &count);
    MPI_Comm_split_type(gf_mpi_world, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &local);
    MPI_Comm_size(host, &locals);
    mpi_peers = (gf_cli_peers){.rank = (uint32_t)rank,
                               .count = (uint32_t)count,
                               .threads = mpi_share_cores(host, (uint32_t)locals),
                               .agree = gf_mpi_agree,
                               .run_image = gf_mpi_run_image,
                               .run_batch = gf_mpi_run_batch,
                               .end = mpi_end};
    gf_set_turn((uint32_t)local, (uint32_t)locals);
    MPI_Comm_free(&host);
    if (provided < MPI_THREAD_SERIALIZED)
        gf_mpi_abort(
            "this MPI allows calls from one thread only; a thread level of "
            "MPI_THREAD_SERIALIZED is needed");
}

const gf_cli_peers *gf_mpi_peers(void) {
    static bool looked;
    if (!looked && mpi_is_launched())
        mpi_start();
    looked = true;
    return mpi_peers.count ? &mpi_peers : NULL;
}
