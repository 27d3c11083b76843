/* What ranks that share a batch say to each other. */
#ifndef GF_CLI_BATCH_LETTER_H
#define GF_CLI_BATCH_LETTER_H

#include "gpufilter.h"

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
/* The memory, which must be there: otherwise the job ends. */
void *gf_cli_batch_need(void *memory);

#endif
