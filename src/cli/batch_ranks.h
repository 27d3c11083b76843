/* A batch that several ranks share.
 *
 * On every rank another thread runs the batch, and the main thread, the only one that may, talks.
 * Rank 0 hands out items to whoever has need of them, itself included, and alone prints, counts and
 * keeps the record; it deals with its own items by the same messages. */
#ifndef GF_CLI_BATCH_RANKS_H
#define GF_CLI_BATCH_RANKS_H

#include <pthread.h>

#include "batch_letter.h"
#include "batch_run.h"
#include "ranks.h"

/* Rank 0's list of items becomes that of all, or its failure does; `status` is rank 0's so far. */
gf_status gf_cli_batch_send_list(gf_cli_batch_run *run, gf_status status, gf_error *error);
/* Runs them, told of on rank 0. options are those of one process, whose `done` is not called. On
 * rank 0 the first cause why some rank could run none; on others their own. */
gf_status gf_cli_batch_on_ranks(gf_cli_batch_run *run, const gf_batch_options *options,
                                gf_error *error);

/* ---- handing out (batch_leader.c) ------------------------------------------------------------ */

typedef struct gf_cli_leader gf_cli_leader;

/* send: a message from rank 0 to any, itself included. */
gf_cli_leader *gf_cli_leader_new(gf_cli_batch_run *run,
                                 void (*send)(void *context, uint32_t to, const void *data,
                                              size_t size),
                                 void *context);
/* Takes a message. */
void gf_cli_leader_hear(gf_cli_leader *leader, uint32_t from, const void *data, size_t size);
/* Hands out what may be to those who asked. */
void gf_cli_leader_hand_out(gf_cli_leader *leader);
/* Have all ranks ended? */
bool gf_cli_leader_is_over(const gf_cli_leader *leader);
/* Tells what is left to tell. Why a rank could run none, and frees. */
gf_status gf_cli_leader_end(gf_cli_leader *leader, gf_error *error);

/* ---- one rank's part (batch_worker.c) -------------------------------------------------------- */

typedef struct gf_cli_worker gf_cli_worker;

/* Begins to run the batch, in a thread. */
gf_cli_worker *gf_cli_worker_new(const gf_cli_batch_run *run, const gf_batch_options *options);
/* Takes a message from rank 0. */
void gf_cli_worker_hear(gf_cli_worker *worker, const void *data, size_t size);
/* The next message for rank 0, to be freed; NULL if there is none now. */
gf_cli_letter *gf_cli_worker_letter(gf_cli_worker *worker);
/* Waits so many nanoseconds, or, if somebody will take it, until there may be one. */
void gf_cli_worker_await(gf_cli_worker *worker, bool listening, long nanoseconds);
/* Has rank 0 said good-bye? */
bool gf_cli_worker_is_over(const gf_cli_worker *worker);
/* Why it could run none, and frees. */
gf_status gf_cli_worker_end(gf_cli_worker *worker, gf_error *error);

#endif
