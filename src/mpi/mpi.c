/* Ranks by MPI: starting and ending, waiting, and the calls of gf_ranks. */
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
    fprintf(stderr, "gpufilter: rank %u on %s: %s\n", mpi_peers.job.rank, host, why);
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

/* ---- gf_ranks: the main thread's calls for one image ------------------------------------------
 */

static void mpi_broadcast(void *context, void *data, size_t size) {
    (void)context;
    gf_mpi_broadcast(data, size);
}

/* MPI passes nothing but the data to an operation: one reduction runs at a time. */
static struct {
    gf_merge *merge;
    const void *context;
    size_t size;
} mpi_merging;

static void mpi_merge(void *from, void *to, int *count, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *count; i++)
        mpi_merging.merge(mpi_merging.context, (char *)to + (size_t)i * mpi_merging.size,
                          (const char *)from + (size_t)i * mpi_merging.size);
}

/* One element of `size` bytes: MPI never cuts an element in two, and aligns its copies for the
 * numbers in it. */
static MPI_Datatype mpi_make_type(size_t size) {
    enum { BLOCK = 1 << 20, NUMBER = sizeof(uint64_t) };
    MPI_Datatype block, type;
    MPI_Type_contiguous(BLOCK / NUMBER, MPI_UINT64_T, &block);
    const int lengths[3] = {(int)(size / BLOCK), (int)(size % BLOCK / NUMBER),
                            (int)(size % NUMBER)};
    const MPI_Aint places[3] = {0, (MPI_Aint)(size - size % BLOCK),
                                (MPI_Aint)(size - size % NUMBER)};
    const MPI_Datatype types[3] = {block, MPI_UINT64_T, MPI_BYTE};
    MPI_Type_create_struct(3, lengths, places, types, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&block);
    return type;
}

static void mpi_reduce(void *context, void *data, size_t size, gf_merge *how, const void *with) {
    (void)context;
    if (!size)
        return;
    const bool first = mpi_peers.job.rank == 0;
    MPI_Datatype type = mpi_make_type(size);
    MPI_Request request;
    MPI_Op operation;
    mpi_merging.merge = how;
    mpi_merging.context = with;
    mpi_merging.size = size;
    MPI_Op_create(mpi_merge, 1, &operation);
    MPI_Ireduce(first ? MPI_IN_PLACE : data, first ? data : NULL, 1, type, operation, 0,
                gf_mpi_world, &request);
    gf_mpi_finish(&request);
    MPI_Op_free(&operation);
    MPI_Type_free(&type);
}

static void mpi_scan(void *context, const uint64_t *values, uint64_t *before, uint64_t *all,
                     size_t count) {
    (void)context;
    const size_t most = GF_MPI_MAX_PIECE / sizeof *values;
    for (size_t at = 0, n; at < count; at += n) {
        MPI_Request requests[2];
        n = count - at < most ? count - at : most;
        MPI_Iexscan(values + at, before + at, (int)n, MPI_UINT64_T, MPI_SUM, gf_mpi_world,
                    &requests[0]);
        MPI_Iallreduce(values + at, all + at, (int)n, MPI_UINT64_T, MPI_SUM, gf_mpi_world,
                       &requests[1]);
        gf_mpi_finish(&requests[0]);
        gf_mpi_finish(&requests[1]);
    }
    if (mpi_peers.job.rank == 0) /* MPI leaves it undefined there */
        memset(before, 0, count * sizeof *before);
}

static void mpi_send(void *context, const void *data, size_t size) {
    (void)context;
    gf_mpi_send(0, GF_MPI_TAG_STREAM, data, size);
}

static void mpi_receive(void *context, uint32_t from, void *data, size_t size) {
    (void)context;
    char *at = data;
    for (size_t n; size; at += n, size -= n) {
        MPI_Request request;
        n = mpi_piece(size);
        MPI_Irecv(at, (int)n, MPI_BYTE, (int)from, GF_MPI_TAG_STREAM, gf_mpi_world, &request);
        gf_mpi_finish(&request);
    }
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
    mpi_peers = (gf_cli_peers){.job = {.rank = (uint32_t)rank,
                                       .count = (uint32_t)count,
                                       .broadcast = mpi_broadcast,
                                       .reduce = mpi_reduce,
                                       .scan = mpi_scan,
                                       .send = mpi_send,
                                       .receive = mpi_receive},
                               .local = (uint32_t)local,
                               .locals = (uint32_t)locals,
                               .threads = mpi_share_cores(host, (uint32_t)locals),
                               .run_batch = gf_mpi_run_batch,
                               .end = mpi_end};
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
    return mpi_peers.job.count ? &mpi_peers : NULL;
}
