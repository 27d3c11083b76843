/* The other processes of a job that an MPI launcher (mpirun, srun) started. Only src/mpi knows MPI:
 * it fills in the table below. */
#ifndef GF_CLI_RANKS_H
#define GF_CLI_RANKS_H

#include "gpufilter_tools.h"

/* What standard output gets of a finished item: size bytes; of a CSV table with its header. text is
 * allocated, or NULL. */
typedef struct gf_cli_text {
    char *text;
    size_t size;
} gf_cli_text;

/* A finished item of a batch. error is set if status is not GF_OK. */
typedef struct gf_cli_finished {
    uint64_t item;
    uint32_t rank;
    gf_status status;
    const gf_error *error;
    const gf_report *report;
    gf_cli_text text;
} gf_cli_finished;

/* A batch that all ranks share. Rank 0 has the list of items, which the others receive, and reports
 * what was done. */
typedef struct gf_cli_shared_batch {
    const gf_filter *filter;
    const gf_settings *settings;
    const gf_batch_options *options; /* for one process; its `done` is not called */
    const gf_batch_item *items;      /* of rank 0 */
    uint64_t count;
    void *setup; /* rank 0's bytes, copied to all before any item is begun */
    size_t setup_size;
    void *context; /* for the functions */
    /* Rank 0: the cost of an item, such as its bytes. */
    uint64_t (*cost)(void *context, uint64_t item);
    /* Any rank: make the text of an item that this rank has done. Returns done->status, or
     * GF_FAILED if there is no memory; *error then has the reason. */
    gf_status (*render)(void *context, const gf_batch_item *item, const gf_batch_done *done,
                        gf_cli_text *text, gf_error *error);
    /* Rank 0's main thread: print and count an item. False: begin no others. */
    bool (*report)(void *context, const gf_cli_finished *finished);
    /* Rank 0's main thread: called every few milliseconds while the batch runs. */
    void (*tick)(void *context);
} gf_cli_shared_batch;

/* A job's ranks: all of them make the same calls of the functions here, from their main threads. */
typedef struct gf_cli_peers {
    uint32_t rank, count; /* rank 0 prints */
    uint32_t threads;     /* this rank's share of the cores; 0: all that it may use */
    bool launched;        /* by an MPI launcher */
    /* Return the failure of the lowest rank that has one, with its error. */
    gf_status (*agree)(gf_status status, gf_error *error);
    /* Wait for all ranks and leave MPI. Returns the largest of their exit codes. */
    int (*end)(int code);
} gf_cli_peers;

/* A program without src/mpi lacks these functions. */

/* Returns the table of this process, or NULL if no launcher started it; the first call joins the
 * others. */
extern const gf_cli_peers *gf_mpi_peers(void) __attribute__((weak));

/* gf_run_file by all ranks, with the same arguments but for options->progress. Result, report and
 * options->ready are rank 0's. */
extern gf_status gf_mpi_run_file(gf_engine *engine, const gf_filter *filter,
                                 const gf_settings *settings, const char *const *in_paths,
                                 const char *out_path, const gf_file_options *options,
                                 gf_result **result, gf_report *report, gf_error *error)
    __attribute__((weak));

/* Run a batch on several ranks. status is rank 0's so far: a failure ends all ranks. Returns the
 * failure of the lowest rank that could run none. */
extern gf_status gf_mpi_run_batch(const gf_cli_shared_batch *batch, gf_status status,
                                  gf_error *error) __attribute__((weak));

/* Returns the table of this process; without other ranks, that of rank 0 of one. The first call is
 * the main thread's. (text.c) */
const gf_cli_peers *gf_cli_ranks(void);

/* Is this the rank that prints? */
static inline bool gf_cli_ranks_first(void) {
    return gf_cli_ranks()->rank == 0;
}

#endif
