/* A batch that several ranks share.
 *
 * On every rank another thread runs the batch, and the main thread, the only one that may, talks.
 * Rank 0 hands out items to whoever has need of them, itself included, and alone prints, counts and
 * keeps the record; it deals with its own items by the same messages. */
#ifndef GF_CLI_BATCH_RANKS_H
#define GF_CLI_BATCH_RANKS_H

#include <pthread.h>

#include "batch_run.h"
#include "ranks.h"

/* Rank 0's list of items becomes that of all, or its failure does; `status` is rank 0's so far. */
gf_status gf_cli_batch_send_list(gf_cli_batch_run *run, gf_status status, gf_error *error);
/* Runs them, told of on rank 0. options are those of one process, whose `done` is not called. On
 * rank 0 the first cause why some rank could run none; on others their own. */
gf_status gf_cli_batch_on_ranks(gf_cli_batch_run *run, const gf_batch_options *options,
                                gf_error *error);
/* The memory, which must be there: without it the job cannot go on. */
void *gf_cli_batch_need(void *memory);

/* ---- messages -------------------------------------------------------------------------------- */

typedef enum gf_cli_kind {
    /* To rank 0. */
    GF_CLI_ASK,   /* for items */
    GF_CLI_READY, /* an output is complete: may it appear? */
    GF_CLI_TEXT,  /* a piece of what standard output gets of an item, before it is over */
    GF_CLI_OVER,  /* an item is over */
    GF_CLI_ENDED, /* the batch is over on that rank: the last message to rank 0 */
    /* From it. */
    GF_CLI_ITEMS,  /* `count` items from `item` on */
    GF_CLI_NONE,   /* there are no more */
    GF_CLI_STOP,   /* begin no others, not even those that are there */
    GF_CLI_ANSWER, /* to GF_CLI_READY */
    GF_CLI_LEAVE   /* to GF_CLI_ENDED: the last message to that rank */
} gf_cli_kind;

/* What all begin with; most are no more than that. */
typedef struct gf_cli_head {
    gf_cli_kind kind;
    uint64_t item, count;
} gf_cli_head;

typedef struct gf_cli_ready {
    gf_cli_head head;
    uint64_t size; /* of the finished file */
    int64_t time;
} gf_cli_ready;

typedef struct gf_cli_item_over {
    gf_cli_head head;
    gf_status status;
    gf_error error;
    gf_report report;
    uint64_t header; /* bytes of the text that are the CSV's header */
} gf_cli_item_over;

/* ENDED and ANSWER */
typedef struct gf_cli_status {
    gf_cli_head head;
    gf_status status;
    gf_error error;
    char host[64];
} gf_cli_status;

/* A message on its way from one thread to another. */
typedef struct gf_cli_letter {
    struct gf_cli_letter *next;
    size_t size;
    char data[];
} gf_cli_letter;

/* What a message begins with, and all of one whose size must be that of its kind. */
void gf_cli_letter_head(const void *data, size_t size, gf_cli_head *head);
const void *gf_cli_letter_check(const void *data, size_t size, size_t wanted);
_Noreturn void gf_cli_batch_misunderstood(void);

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
/* Has rank 0 said good-bye? */
bool gf_cli_worker_is_over(const gf_cli_worker *worker);
/* Why it could run none, and frees. */
gf_status gf_cli_worker_end(gf_cli_worker *worker, gf_error *error);

#endif
