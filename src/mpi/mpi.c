/* MPI ranks: initialization, polling, messages, and collective status. */
#define _GNU_SOURCE /* sched_getaffinity */

#include "mpi.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

MPI_Comm gf_mpi_world;
pthread_mutex_t gf_mpi_calls = PTHREAD_MUTEX_INITIALIZER;

static gf_cli_peers mpi_peers;

void gf_mpi_rest(unsigned *tries) {
    enum { YIELDS = 4, DOUBLINGS = 5, SHORTEST = 30000 }; /* nanoseconds */
    if (++*tries <= YIELDS) {
        sched_yield();
        return;
    }
    const unsigned doublings = *tries - YIELDS < DOUBLINGS ? *tries - YIELDS : DOUBLINGS;
    nanosleep(&(struct timespec){.tv_nsec = SHORTEST << doublings}, NULL);
}

static void mpi_finish(MPI_Request *request) {
    int done = 0;
    for (unsigned tries = 0;; gf_mpi_rest(&tries)) {
        pthread_mutex_lock(&gf_mpi_calls);
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        pthread_mutex_unlock(&gf_mpi_calls);
        if (done)
            return;
    }
}

const char *gf_mpi_name(void) {
    static char name[96];
    char host[64] = "unknown host";
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(name, sizeof name, "rank %u on %s", mpi_peers.rank, host);
    return name;
}

/* Print the reason and abort all ranks. Callable from any thread. */
_Noreturn static void mpi_abort(const char *reason) {
    gf_remove_temporaries();
    fprintf(stderr, "gpufilter: %s: %s\n", gf_mpi_name(), reason);
    MPI_Abort(gf_mpi_world, GF_FAILED);
    _exit(GF_FAILED);
}

void *gf_mpi_need(void *memory) {
    if (!memory)
        mpi_abort("out of memory for messages between ranks");
    return memory;
}

/* MPI counts are int, so split messages into pieces of at most 1 GiB. */
void gf_mpi_move(gf_mpi_transfer transfer, uint32_t rank, void *data, size_t size) {
    const size_t max = (size_t)1 << 30;
    const int peer = (int)rank;
    char *at = data;
    for (size_t n; size; at += n, size -= n) {
        MPI_Request request;
        n = size < max ? size : max;
        pthread_mutex_lock(&gf_mpi_calls);
        if (transfer == GF_MPI_BROADCAST)
            MPI_Ibcast(at, (int)n, MPI_BYTE, peer, gf_mpi_world, &request);
        else if (transfer == GF_MPI_SEND)
            MPI_Isend(at, (int)n, MPI_BYTE, peer, GF_MPI_TO_ROOT, gf_mpi_world, &request);
        else
            MPI_Irecv(at, (int)n, MPI_BYTE, peer, GF_MPI_TO_ROOT, gf_mpi_world, &request);
        pthread_mutex_unlock(&gf_mpi_calls);
        mpi_finish(&request);
    }
}

void *gf_mpi_share(void *data, size_t *size) {
    gf_mpi_move(GF_MPI_BROADCAST, 0, size, sizeof *size);
    if (mpi_peers.rank != 0)
        data = gf_mpi_need(malloc(*size));
    gf_mpi_move(GF_MPI_BROADCAST, 0, data, *size);
    return data;
}

gf_status gf_mpi_agree(gf_status status, gf_error *error) {
    const uint32_t failed = status ? mpi_peers.rank : mpi_peers.count;
    uint32_t lowest;
    MPI_Request request;
    MPI_Iallreduce(&failed, &lowest, 1, MPI_UINT32_T, MPI_MIN, gf_mpi_world, &request);
    mpi_finish(&request);
    if (lowest == mpi_peers.count)
        return GF_OK;
    error->status = status;
    gf_mpi_move(GF_MPI_BROADCAST, lowest, error, sizeof *error);
    return error->status;
}

int gf_mpi_end(int code) {
    MPI_Request request;
    int max = code;
    MPI_Iallreduce(&code, &max, 1, MPI_INT, MPI_MAX, gf_mpi_world, &request);
    mpi_finish(&request);
    MPI_Finalize();
    return max;
}

static void mpi_start(void) {
    int provided, rank, count, local, locals;
    MPI_Comm host;
    /* Several threads of a batch call MPI, one at a time. */
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_dup(MPI_COMM_WORLD, &gf_mpi_world);
    MPI_Comm_rank(gf_mpi_world, &rank);
    MPI_Comm_size(gf_mpi_world, &count);
    MPI_Comm_split_type(gf_mpi_world, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &local);
    MPI_Comm_size(host, &locals);
    /* Launchers bind each rank of this host to its own cores, or leave all cores to all ranks,
     * which then share them evenly. */
    cpu_set_t own;
    uint32_t same = 0, threads = 0;
    CPU_ZERO(&own);
    cpu_set_t *all = calloc((size_t)locals, sizeof *all);
    if (all && sched_getaffinity(0, sizeof own, &own) == 0) {
        MPI_Allgather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, host);
        for (int i = 0; i < locals; i++)
            same += CPU_EQUAL(&own, &all[i]) != 0;
        threads = same && gf_cores() > same ? gf_cores() / same : 1;
    }
    free(all);
    mpi_peers = (gf_cli_peers){
        .rank = (uint32_t)rank, .count = (uint32_t)count, .threads = threads, .launched = true};
    gf_set_local_process((uint32_t)local, (uint32_t)locals);
    MPI_Comm_free(&host);
    if (provided < MPI_THREAD_SERIALIZED)
        mpi_abort(
            "this MPI library supports calls from one thread only; "
            "MPI_THREAD_SERIALIZED is required");
}

const gf_cli_peers *gf_mpi_peers(void) {
    static bool started;
    /* Processes without a launcher skip MPI_Init, which takes 0.1 s and more. */
    if (!started && (getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMIX_RANK") || getenv("PMI_RANK") ||
                     getenv("PMI_SIZE")))
        mpi_start();
    started = true;
    return mpi_peers.count ? &mpi_peers : NULL;
}
