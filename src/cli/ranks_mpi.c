/* Ranks by MPI: starting, ending, and the calls of gf_ranks. */
#define _GNU_SOURCE /* sched_getaffinity */

#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "ranks_mpi.h"

#define MOST_AT_ONCE ((size_t)1 << 30) /* MPI counts in int */

static gf_cli_rank this_rank = {.job = {.count = 1}, .locals = 1};
static bool started;

static size_t piece(size_t size) {
    return size < MOST_AT_ONCE ? size : MOST_AT_ONCE;
}

/* ---- gf_ranks -------------------------------------------------------------------------------- */

static void broadcast(void *context, void *data, size_t size) {
    (void)context;
    char *at = data;
    for (size_t n; size; at += n, size -= n) {
        MPI_Request request;
        n = piece(size);
        MPI_Ibcast(at, (int)n, MPI_BYTE, 0, gf_cli_world, &request);
        gf_cli_ranks_finish(&request);
    }
}

/* MPI hands nothing to an operation but the data: one reduction runs at a time. */
static struct {
    gf_merge *merge;
    const void *context;
    size_t size;
} merging;

static void merge(void *from, void *to, int *count, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *count; i++)
        merging.merge(merging.context, (char *)to + (size_t)i * merging.size,
                      (const char *)from + (size_t)i * merging.size);
}

/* One element of so many bytes: MPI never cuts one in two, and where it keeps one of its own, puts
 * it where such numbers may be. */
static MPI_Datatype make_type(size_t size) {
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

static void reduce(void *context, void *data, size_t size, gf_merge *how, const void *with) {
    (void)context;
    if (!size)
        return;
    const bool first = this_rank.job.rank == 0;
    MPI_Datatype type = make_type(size);
    MPI_Request request;
    MPI_Op operation;
    merging.merge = how;
    merging.context = with;
    merging.size = size;
    MPI_Op_create(merge, 1, &operation);
    MPI_Ireduce(first ? MPI_IN_PLACE : data, first ? data : NULL, 1, type, operation, 0,
                gf_cli_world, &request);
    gf_cli_ranks_finish(&request);
    MPI_Op_free(&operation);
    MPI_Type_free(&type);
}

static void scan(void *context, const uint64_t *values, uint64_t *before, uint64_t *all,
                 size_t count) {
    (void)context;
    const size_t most = MOST_AT_ONCE / sizeof *values;
    for (size_t at = 0, n; at < count; at += n) {
        MPI_Request requests[2];
        n = count - at < most ? count - at : most;
        MPI_Iexscan(values + at, before + at, (int)n, MPI_UINT64_T, MPI_SUM, gf_cli_world,
                    &requests[0]);
        MPI_Iallreduce(values + at, all + at, (int)n, MPI_UINT64_T, MPI_SUM, gf_cli_world,
                       &requests[1]);
        gf_cli_ranks_finish(&requests[0]);
        gf_cli_ranks_finish(&requests[1]);
    }
    if (this_rank.job.rank == 0) /* MPI does not say what it has there */
        memset(before, 0, count * sizeof *before);
}

static void send(void *context, const void *data, size_t size) {
    (void)context;
    const char *at = data;
    for (size_t n; size; at += n, size -= n) {
        MPI_Request request;
        n = piece(size);
        MPI_Isend(at, (int)n, MPI_BYTE, 0, GF_CLI_TAG_STREAM, gf_cli_world, &request);
        gf_cli_ranks_finish(&request);
    }
}

static void receive(void *context, uint32_t from, void *data, size_t size) {
    (void)context;
    char *at = data;
    for (size_t n; size; at += n, size -= n) {
        MPI_Request request;
        n = piece(size);
        MPI_Irecv(at, (int)n, MPI_BYTE, (int)from, GF_CLI_TAG_STREAM, gf_cli_world, &request);
        gf_cli_ranks_finish(&request);
    }
}

/* ---- starting and ending --------------------------------------------------------------------- */

/* Joining costs a tenth of a second and more: not for those who were started by hand. */
static bool is_launched(void) {
    static const char *const signs[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE",
                                        NULL};
    const char *const *sign = signs;
    while (*sign && !getenv(*sign))
        sign++;
    return *sign != NULL;
}

/* Launchers bind each rank to cores of its own, or leave all cores to all: then they are shared. */
static uint32_t share_cores(MPI_Comm host) {
    cpu_set_t own;
    uint32_t same = 0;
    CPU_ZERO(&own);
    if (sched_getaffinity(0, sizeof own, &own) != 0)
        return 0;
    cpu_set_t *all = calloc(this_rank.locals, sizeof *all);
    if (!all)
        return 0;
    MPI_Allgather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, host);
    for (uint32_t i = 0; i < this_rank.locals; i++)
        same += CPU_EQUAL(&own, &all[i]) != 0;
    free(all);
    const uint32_t cores = gf_cores();
    return same && cores > same ? cores / same : 1;
}

const bool gf_cli_has_ranks = true;

void gf_cli_ranks_start(void) {
    int provided, rank, count, local, locals;
    MPI_Comm host;
    if (!is_launched())
        return;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    started = true;
    MPI_Comm_dup(MPI_COMM_WORLD, &gf_cli_world);
    MPI_Comm_rank(gf_cli_world, &rank);
    MPI_Comm_size(gf_cli_world, &count);
    MPI_Comm_split_type(gf_cli_world, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &local);
    MPI_Comm_size(host, &locals);
    this_rank = (gf_cli_rank){.job = {.rank = (uint32_t)rank,
                                      .count = (uint32_t)count,
                                      .broadcast = broadcast,
                                      .reduce = reduce,
                                      .scan = scan,
                                      .send = send,
                                      .receive = receive},
                              .local = (uint32_t)local,
                              .locals = (uint32_t)locals,
                              .launched = true};
    this_rank.threads = share_cores(host);
    MPI_Comm_free(&host);
}

const gf_cli_rank *gf_cli_this_rank(void) {
    return &this_rank;
}

bool gf_cli_ranks_first(void) {
    return this_rank.job.rank == 0;
}

int gf_cli_ranks_end(int code) {
    MPI_Request request;
    int worst = code;
    if (!started)
        return code;
    gf_cli_ranks_post_end();
    MPI_Iallreduce(&code, &worst, 1, MPI_INT, MPI_MAX, gf_cli_world, &request);
    gf_cli_ranks_finish(&request);
    MPI_Finalize();
    return worst;
}
