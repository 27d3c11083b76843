/* Ranks: the processes of a job started by an MPI launcher (mpirun, srun). Only src/mpi calls MPI;
 * it implements the functions declared here. */
#ifndef GF_CLI_RANKS_H
#define GF_CLI_RANKS_H

#include "cli.h"

/* A batch shared by all ranks. Rank 0 broadcasts its list of items and prints all reports. */
typedef struct gf_cli_shared_batch {
    const gf_job *job;
    const gf_batch_options *options; /* of one process; `done` is not called */
    const gf_batch_item *items;      /* valid on rank 0 */
    uint64_t count;
    void *setup; /* broadcast from rank 0 before the first item starts */
    size_t setup_size;
    const gf_cli_input *inputs; /* rank 0: of the items; their sizes are the costs */
    gf_cli_progress *progress;  /* rank 0: drawn every few milliseconds while the batch runs */
    void *context;              /* argument of the functions below */
    /* Any rank: write the report of an item, allocated; NULL after a failure. A CSV report includes
     * its header. Return done->status, or GF_FAILED. Set *error after a failure. */
    gf_status (*render)(void *context, const gf_batch_item *item, const gf_batch_done *done,
                        char **text, gf_error *error);
    /* Main thread of rank 0: print and count an item that a rank ran. The outcome may lack results.
     * Return false to start no more items. */
    bool (*report)(void *context, const gf_batch_done *done, uint32_t rank, const char *text);
} gf_cli_shared_batch;

/* The ranks of a job. */
typedef struct gf_cli_peers {
    uint32_t rank, count; /* rank 0 prints */
    uint32_t threads;     /* this rank's share of the cores; 0: all cores of the process */
    bool launched;        /* started by an MPI launcher */
} gf_cli_peers;

/* These functions are NULL in a program built without MPI. All ranks make the same calls, from
 * their main threads. */

/* Return the ranks; NULL: no launcher started this process. The first call starts MPI. */
extern const gf_cli_peers *gf_mpi_peers(void) __attribute__((weak));
/* Return the status and error of the lowest failed rank; GF_OK if no rank failed. */
extern gf_status gf_mpi_agree(gf_status status, gf_error *error) __attribute__((weak));
/* Wait for all ranks and finalize MPI. Return the maximum of their exit codes. */
extern int gf_mpi_end(int code) __attribute__((weak));

/* Run gf_run on all ranks, with the same job of files except for options->progress. Only rank 0
 * fills in the outcome, and calls options->ready. */
extern gf_status gf_mpi_run(gf_engine *engine, const gf_job *job, gf_outcome *outcome,
                            gf_error *error) __attribute__((weak));

/* Run a batch on several ranks. status: the status of rank 0 so far; if it failed, all ranks
 * return. Return the failure of the lowest rank that could not run its part. */
extern gf_status gf_mpi_run_batch(const gf_cli_shared_batch *batch, gf_status status,
                                  gf_error *error) __attribute__((weak));

/* Return the ranks; without a launcher, one rank. (text.c) */
const gf_cli_peers *gf_cli_ranks(void);

static inline gf_status gf_cli_agree(gf_status status, gf_error *error) {
    return gf_cli_ranks()->launched ? gf_mpi_agree(status, error) : status;
}

/* Return whether this is rank 0, which prints. */
static inline bool gf_cli_ranks_root(void) {
    return gf_cli_ranks()->rank == 0;
}

#endif
