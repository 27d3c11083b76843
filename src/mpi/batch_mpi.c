/* A batch that several ranks share.
 *
 * Each rank has a worker, which runs its part of the batch; the threads of that part exchange
 * messages with the leader, one at a time. The leader is rank 0's main thread: it hands out items
 * by their index, and alone reports. Rank 0's worker runs beside it, in a second thread, and is a
 * worker like the others. The leader never waits for a message to leave or to arrive: a rank that
 * is stopped, or slow, keeps the items it has, and the others do the rest.
 *
 * Items go out in their order, a share at a time: an eighth of what the rank would get if the rest
 * were divided evenly now, by cost, but at least one item and at most MAX_SHARE. So messages are
 * few in the beginning, and in the end no rank holds what the others wait for. Where items are
 * reported in order, results that come early wait on rank 0, so fewer items are given out ahead.
 * The oldest unreported item is always assigned, so the wait ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi.h"

#define SHARES 8u              /* in what is a rank's own part */
#define MAX_SHARE 256u         /* items */
#define MAX_SHARE_IN_ORDER 8u  /* items: what is given out comes, however much is held already */
#define MAX_AHEAD 4096u        /* items given out beyond the oldest unreported one, and */
#define MAX_HELD (64u << 20)   /* bytes of text that wait, if reports are in order */
#define MAX_TRIES 64u          /* about 60 ms in which a thread waits for an item */
#define MAX_TEXT (1024u << 20) /* bytes of text of an item: MPI counts in int */

/* A message to the leader. */
typedef struct batch_message {
    enum { BATCH_ASK, BATCH_FINISHED, BATCH_ENDED } kind; /* an item, or all on this rank */
    uint32_t rank;
    uint64_t item;
    gf_status status;
    gf_error error;
    gf_report report;
    uint64_t size; /* of gf_cli_text */
    char text[];
} batch_message;

/* A message to a worker: `count` items from `first` on. No items: begin no others, not even those
 * of the last share; this is the last message to a worker. */
typedef struct batch_share {
    uint64_t first, count;
} batch_share;

/* ---- the worker ------------------------------------------------------------------------------ */

/* All but the batch under gf_mpi_calls. */
typedef struct batch_worker {
    const gf_cli_shared_batch *batch;
    batch_share share; /* items to begin */
    bool asked, last;  /* for a share; the last message has come */
    gf_status status;  /* of the part, when it has ended */
    gf_error error;
} batch_worker;

static void worker_send(batch_message *message) {
    message->rank = gf_mpi_peers()->rank;
    gf_mpi_send(message, sizeof *message + message->size);
}

/* Take what has come from the leader. */
static void worker_receive(batch_worker *worker) {
    int came = 1;
    while (!worker->last) {
        MPI_Iprobe(0, GF_MPI_FROM_FIRST, gf_mpi_world, &came, MPI_STATUS_IGNORE);
        if (!came)
            return;
        MPI_Recv(&worker->share, sizeof worker->share, MPI_BYTE, 0, GF_MPI_FROM_FIRST, gf_mpi_world,
                 MPI_STATUS_IGNORE);
        worker->asked = false;
        worker->last = !worker->share.count;
    }
}

/* gf_work_source.take */
static gf_take worker_take(void *context, uint64_t *item) {
    batch_worker *worker = context;
    gf_take took = GF_TAKE_LATER;
    for (unsigned tries = 0; took == GF_TAKE_LATER && tries < MAX_TRIES;) {
        bool ask = false;
        pthread_mutex_lock(&gf_mpi_calls);
        worker_receive(worker);
        if (worker->last) {
            took = GF_TAKE_NONE;
        } else if (worker->share.count) {
            took = GF_TAKEN;
            *item = worker->share.first++;
            worker->share.count--;
        } else {
            ask = !worker->asked;
            worker->asked = true;
        }
        pthread_mutex_unlock(&gf_mpi_calls);
        if (ask)
            worker_send(&(batch_message){.kind = BATCH_ASK});
        if (took == GF_TAKE_LATER)
            gf_mpi_rest(&tries);
    }
    return took;
}

/* gf_batch_options.done. Waiting until rank 0 takes the text bounds what is held here. */
static bool worker_done(void *context, const gf_batch_done *done) {
    const gf_cli_shared_batch *batch = ((batch_worker *)context)->batch;
    const gf_batch_item *item = &batch->items[done->item];
    gf_cli_text text;
    gf_error error;
    gf_status status = batch->render(batch->context, item, done, &text, &error);
    if (text.size > MAX_TEXT) {
        status =
            gf_set_error(&error, GF_FAILED,
                         "%s: its report of %zu bytes is too large for a message between ranks",
                         item->in, text.size);
        text.size = 0;
    }
    batch_message *message = gf_mpi_need(malloc(sizeof *message + text.size));
    *message = (batch_message){.kind = BATCH_FINISHED,
                               .item = done->item,
                               .status = status,
                               .report = *done->report,
                               .size = text.size};
    if (status)
        message->error = error;
    if (text.size)
        memcpy(message->text, text.text, text.size);
    worker_send(message);
    free(text.text);
    free(message);
    return true; /* the leader stops a batch by its last message */
}

/* Run this rank's part. */
static void *worker_run(void *argument) {
    batch_worker *worker = argument;
    const gf_cli_shared_batch *batch = worker->batch;
    const uint32_t ranks = gf_mpi_peers()->count;
    const gf_work_source source = {worker_take, worker, (batch->count + ranks - 1) / ranks};
    gf_batch_options options = *batch->options;
    options.in_order = false; /* the leader sees to that */
    options.done = worker_done;
    options.context = worker;
    worker->status = gf_run_shared_batch(batch->filter, batch->settings, batch->items, batch->count,
                                         &options, &source, &worker->error);
    worker_send(&(batch_message){.kind = BATCH_ENDED, .status = worker->status});
    for (unsigned tries = 0; !worker->last; gf_mpi_rest(&tries)) {
        pthread_mutex_lock(&gf_mpi_calls);
        worker_receive(worker);
        pthread_mutex_unlock(&gf_mpi_calls);
    }
    return NULL;
}

/* ---- the leader ------------------------------------------------------------------------------ */

typedef struct batch_member {
    bool asks, left;        /* for a share; the last message was sent */
    batch_message *message; /* that comes now; NULL: none */
    MPI_Request incoming;
} batch_member;

typedef struct batch_leader {
    const gf_cli_shared_batch *batch;
    uint32_t ranks;
    batch_member *members;
    uint32_t ended;
    bool stop;
    uint64_t next;         /* the first item that no rank has */
    uint64_t cost;         /* of the items from there on */
    batch_message **early; /* by item: finished, and not yet reported */
    uint64_t reported;     /* in order: how many */
    size_t held;           /* bytes of text that wait */
} batch_leader;

static bool leader_is_own(const batch_leader *leader, uint64_t item) {
    return strcmp(leader->batch->items[item].in, "-") == 0;
}

/* Buffered: sending does not wait for the receiver. */
static void leader_send(batch_leader *leader, uint32_t to, batch_share share) {
    pthread_mutex_lock(&gf_mpi_calls);
    MPI_Bsend(&share, sizeof share, MPI_BYTE, (int)to, GF_MPI_FROM_FIRST, gf_mpi_world);
    pthread_mutex_unlock(&gf_mpi_calls);
    leader->members[to].asks = false;
    leader->members[to].left = !share.count;
}

/* Cut the next share; one without items if there are no more. */
static batch_share leader_cut_share(batch_leader *leader) {
    const gf_cli_shared_batch *batch = leader->batch;
    const uint64_t fair = leader->cost / SHARES / leader->ranks;
    const uint64_t max = batch->options->in_order ? MAX_SHARE_IN_ORDER : MAX_SHARE;
    uint64_t taken = 0;
    batch_share share = {leader->next, 0};
    for (; leader->next < batch->count && share.count < max; leader->next++) {
        if (leader_is_own(leader, leader->next)) { /* given already */
            if (share.count)
                break;
            share.first++;
            continue;
        }
        const uint64_t cost = batch->cost(batch->context, leader->next) + 1;
        if (share.count && taken + cost > fair)
            break;
        taken += cost;
        share.count++;
    }
    leader->cost -= taken;
    return share;
}

/* Answer the ranks that ask, or stop all. */
static void leader_answer(batch_leader *leader) {
    const gf_cli_shared_batch *batch = leader->batch;
    const bool may_give = !batch->options->in_order ||
                          (leader->next < leader->reported + MAX_AHEAD && leader->held < MAX_HELD);
    for (uint32_t i = 0; i < leader->ranks; i++) {
        batch_member *member = &leader->members[i];
        if (member->left)
            continue;
        if (leader->stop) {
            leader_send(leader, i, (batch_share){0, 0});
        } else if (member->asks && (may_give || leader->next == batch->count)) {
            leader_send(leader, i, leader_cut_share(leader));
        }
    }
}

static void leader_report(batch_leader *leader, batch_message *message) {
    const gf_cli_shared_batch *batch = leader->batch;
    const gf_cli_finished finished = {.item = message->item,
                                      .rank = message->rank,
                                      .status = message->status,
                                      .error = &message->error,
                                      .report = &message->report,
                                      .text = {message->text, message->size}};
    if (!batch->report(batch->context, &finished))
        leader->stop = true;
    leader->held -= message->size;
    free(message);
}

/* Report a finished item, or keep it until those before it are reported. */
static void leader_add(batch_leader *leader, batch_message *message) {
    const gf_cli_shared_batch *batch = leader->batch;
    leader->held += message->size;
    if (!batch->options->in_order) {
        leader_report(leader, message);
        return;
    }
    leader->early[message->item] = message;
    if (message->status && batch->options->fail_fast) /* even before it is reported */
        leader->stop = true;
    for (; leader->reported < batch->count && leader->early[leader->reported]; leader->reported++) {
        leader_report(leader, leader->early[leader->reported]);
        leader->early[leader->reported] = NULL;
    }
}

/* Return the next message of a rank, if it has come whole. */
static batch_message *leader_receive(batch_leader *leader, uint32_t from) {
    batch_member *member = &leader->members[from];
    batch_message *message = NULL;
    int came = 0;
    pthread_mutex_lock(&gf_mpi_calls);
    if (!member->message) {
        MPI_Message matched;
        MPI_Status status;
        int bytes;
        MPI_Improbe((int)from, GF_MPI_TO_FIRST, gf_mpi_world, &came, &matched, &status);
        if (came) {
            MPI_Get_count(&status, MPI_BYTE, &bytes);
            member->message = gf_mpi_need(malloc((size_t)bytes));
            MPI_Imrecv(member->message, bytes, MPI_BYTE, &matched, &member->incoming);
        }
    }
    if (member->message)
        MPI_Test(&member->incoming, &came, MPI_STATUS_IGNORE);
    if (came) {
        message = member->message;
        member->message = NULL;
    }
    pthread_mutex_unlock(&gf_mpi_calls);
    return message;
}

/* Take the next message of a rank, if it has come. */
static bool leader_take(batch_leader *leader, uint32_t from) {
    batch_message *message = leader_receive(leader, from);
    if (!message)
        return false;
    if (message->kind == BATCH_FINISHED) {
        leader_add(leader, message);
        return true;
    }
    if (message->kind == BATCH_ASK) {
        leader->members[from].asks = true;
    } else {
        leader->ended++;
        leader->stop = leader->stop || message->status;
        if (!leader->members[from].left)
            leader_send(leader, from, (batch_share){0, 0});
    }
    free(message);
    return true;
}

/* Exchange messages until all workers have ended. */
static void leader_serve(batch_leader *leader) {
    for (unsigned tries = 0; leader->ended < leader->ranks;) {
        bool received = false;
        for (uint32_t i = 0; i < leader->ranks; i++)
            received = leader_take(leader, i) || received;
        leader_answer(leader);
        leader->batch->tick(leader->batch->context);
        if (received)
            tries = 0;
        else
            gf_mpi_rest(&tries);
    }
    /* After a stop some items in between were never begun. */
    for (uint64_t i = leader->reported; i < leader->batch->count; i++)
        if (leader->early[i])
            leader_report(leader, leader->early[i]);
}

/* Lead, and run rank 0's worker beside. */
static void batch_lead(batch_worker *worker) {
    const gf_cli_shared_batch *batch = worker->batch;
    batch_leader leader = {.batch = batch, .ranks = gf_mpi_peers()->count};
    /* Twice what can be on the way to a rank: a share and the last message. */
    int buffer_bytes = (int)(leader.ranks * 4 * (sizeof(batch_share) + MPI_BSEND_OVERHEAD));
    void *buffer = gf_mpi_need(malloc((size_t)buffer_bytes));
    pthread_t thread;
    leader.members = gf_mpi_need(calloc(leader.ranks, sizeof *leader.members));
    leader.early = gf_mpi_need(calloc(batch->count, sizeof(batch_message *)));
    for (uint64_t i = 0; i < batch->count; i++)
        if (leader_is_own(&leader, i)) /* rank 0 begins with it */
            worker->share = (batch_share){i, 1};
        else
            leader.cost += batch->cost(batch->context, i) + 1;
    MPI_Buffer_attach(buffer, buffer_bytes);
    const int cause = pthread_create(&thread, NULL, worker_run, worker);
    if (cause) {
        worker->status = gf_set_error(&worker->error, GF_FAILED, "%s: cannot start a thread: %s",
                                      gf_filter_describe(batch->filter)->name, strerror(cause));
        leader.stop = leader.members[0].left = true;
        leader.ended = 1;
    }
    leader_serve(&leader);
    if (!cause)
        pthread_join(thread, NULL);
    MPI_Buffer_detach(&buffer, &buffer_bytes);
    free(buffer);
    free(leader.early);
    free(leader.members);
}

/* ---- the list of items ----------------------------------------------------------------------- */

/* Write of each item whether it replaces a file, its input, and its output or "". */
static char *list_pack(const gf_cli_shared_batch *batch, size_t *bytes) {
    char *names = NULL;
    FILE *file = gf_mpi_need(open_memstream(&names, bytes));
    for (uint64_t i = 0; i < batch->count; i++) {
        const gf_batch_item *item = &batch->items[i];
        fprintf(file, "%c%s%c%s%c", item->replace ? 1 : 0, item->in, 0, item->out ? item->out : "",
                0);
    }
    const bool good = !ferror(file);
    return gf_mpi_need(fclose(file) == 0 && good ? names : NULL);
}

static gf_batch_item *list_unpack(const char *names, uint64_t count) {
    gf_batch_item *items = gf_mpi_need(calloc((size_t)count, sizeof *items));
    for (uint64_t i = 0; i < count; i++) {
        items[i].replace = *names++;
        items[i].in = names;
        names += strlen(names) + 1;
        items[i].out = *names ? names : NULL;
        names += strlen(names) + 1;
    }
    return items;
}

/* Rank 0 alone has looked at files: other ranks may see them differently, or not yet. */
gf_status gf_mpi_run_batch(const gf_cli_shared_batch *batch, gf_status status, gf_error *error) {
    const bool first = gf_mpi_peers()->rank == 0;
    gf_cli_shared_batch all = *batch;
    size_t bytes;
    status = gf_mpi_agree(status, error);
    gf_mpi_broadcast(&all.count, sizeof all.count);
    if (status || !all.count)
        return status;
    char *names = gf_mpi_share(first ? list_pack(batch, &bytes) : NULL, &bytes);
    gf_mpi_broadcast(batch->setup, batch->setup_size);
    gf_batch_item *items = list_unpack(names, all.count);
    all.items = items;
    batch_worker worker = {.batch = &all};
    if (first)
        batch_lead(&worker);
    else
        worker_run(&worker);
    if (worker.status)
        gf_set_error(error, worker.status, "%s: %s", gf_mpi_name(), worker.error.message);
    free(items);
    free(names);
    return gf_mpi_agree(worker.status, error);
}
