/* A batch shared by several ranks.
 *
 * Each rank has a worker, which runs items of the batch. The threads of a worker exchange messages
 * with the leader, one thread at a time. The leader is the main thread of rank 0: it assigns items
 * by index and prints all reports. The worker of rank 0 runs in a second thread. The leader never
 * blocks in a send or a receive. If a rank is stopped or slow, it keeps its items, and other ranks
 * run the rest.
 *
 * Items are assigned in order, in shares. A share is an eighth of the rank's even part of the
 * remaining cost, but at least one item and at most MAX_SHARE items. This keeps messages few at the
 * start, and ranks end at about the same time. If reports are in order, rank 0 buffers early
 * results, so shares are smaller and are assigned less far ahead. The oldest unreported item is
 * always assigned, so this terminates. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi.h"

#define SHARES 8u              /* per even part of the remaining cost */
#define MAX_SHARE 256u         /* items */
#define MAX_SHARE_IN_ORDER 8u  /* items; their reports are buffered even above MAX_HELD */
#define MAX_AHEAD 4096u        /* in order: items assigned beyond the oldest unreported one */
#define MAX_HELD (64u << 20)   /* in order: bytes of buffered reports that stop assignment */
#define MAX_TRIES 64u          /* polls for an item, about 60 ms */
#define MAX_TEXT (1000u << 20) /* bytes of a report: a message has at most 1 GiB */

/* A message to the leader. */
typedef struct batch_message {
    enum { BATCH_REQUEST, BATCH_FINISHED, BATCH_ENDED } kind; /* item finished; worker ended */
    uint32_t rank;                                            /* set by the leader */
    uint64_t item;
    gf_status status;
    gf_error error;
    gf_report report;
    gf_step_report steps[GF_CLI_MAX_STEPS];
    uint64_t size; /* length of text */
    char text[];   /* ends with a NUL byte; absent for other kinds */
} batch_message;

/* A message to a worker: run `count` items from `first` on. count 0: start no more items, not even
 * those of the previous share. This is the last message to a worker. */
typedef struct batch_share {
    uint64_t first, count;
} batch_share;

/* ---- the worker ------------------------------------------------------------------------------ */

/* gf_mpi_calls protects all members except batch. */
typedef struct batch_worker {
    const gf_cli_shared_batch *batch;
    batch_share share; /* items not yet started */
    bool requested;    /* a share was requested */
    bool last;         /* the last message was received */
    gf_status status;  /* of the worker, after it has ended */
    gf_error error;
} batch_worker;

/* Receive the messages of the leader that have arrived. */
static void worker_receive(batch_worker *worker) {
    int arrived = 1;
    while (!worker->last) {
        MPI_Iprobe(0, GF_MPI_FROM_ROOT, gf_mpi_world, &arrived, MPI_STATUS_IGNORE);
        if (!arrived)
            return;
        MPI_Recv(&worker->share, sizeof worker->share, MPI_BYTE, 0, GF_MPI_FROM_ROOT, gf_mpi_world,
                 MPI_STATUS_IGNORE);
        worker->requested = false;
        worker->last = !worker->share.count;
    }
}

/* Implement gf_work_source.take. */
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
            ask = !worker->requested;
            worker->requested = true;
        }
        pthread_mutex_unlock(&gf_mpi_calls);
        if (ask)
            gf_mpi_move(GF_MPI_SEND, 0, &(batch_message){.kind = BATCH_REQUEST},
                        sizeof(batch_message));
        if (took == GF_TAKE_LATER)
            gf_mpi_rest(&tries);
    }
    return took;
}

/* Implement gf_batch_options.done. Waiting until the report is sent bounds the memory. */
static bool worker_done(void *context, const gf_batch_done *done) {
    const gf_cli_shared_batch *batch = ((batch_worker *)context)->batch;
    const gf_batch_item *item = &batch->items[done->item];
    gf_error error;
    char *text;
    gf_status status = batch->render(batch->context, item, done, &text, &error);
    size_t size = text ? strlen(text) : 0;
    if (size > MAX_TEXT) {
        status = gf_set_error(&error, GF_FAILED,
                              "%s: report of %zu bytes exceeds the maximum message size", item->in,
                              size);
        size = 0;
    }
    batch_message *message = gf_mpi_need(malloc(sizeof *message + size + 1));
    *message = (batch_message){.kind = BATCH_FINISHED,
                               .item = done->item,
                               .status = status,
                               .report = done->outcome->report,
                               .size = size};
    memcpy(message->steps, done->outcome->steps, batch->job->step_count * sizeof *message->steps);
    if (status)
        message->error = error;
    if (size)
        memcpy(message->text, text, size);
    message->text[size] = 0;
    gf_mpi_move(GF_MPI_SEND, 0, message, sizeof *message + size + 1);
    free(text);
    free(message);
    return true; /* only the leader stops a batch */
}

static void *worker_run(void *argument) {
    batch_worker *worker = argument;
    const gf_cli_shared_batch *batch = worker->batch;
    const uint32_t ranks = gf_mpi_peers()->count;
    const gf_work_source source = {worker_take, worker, (batch->count + ranks - 1) / ranks};
    gf_batch_options options = *batch->options;
    options.source = &source;
    options.in_order = false; /* the leader orders the reports */
    options.done = worker_done;
    options.context = worker;
    worker->status = gf_run_batch(batch->job, batch->items, batch->count, &options, &worker->error);
    gf_mpi_move(GF_MPI_SEND, 0, &(batch_message){.kind = BATCH_ENDED, .status = worker->status},
                sizeof(batch_message));
    for (unsigned tries = 0; !worker->last; gf_mpi_rest(&tries)) {
        pthread_mutex_lock(&gf_mpi_calls);
        worker_receive(worker);
        pthread_mutex_unlock(&gf_mpi_calls);
    }
    return NULL;
}

/* ---- the leader ------------------------------------------------------------------------------ */

typedef struct batch_member {
    bool requests;          /* wants a share */
    bool closed;            /* the last message was sent */
    batch_message *message; /* being received; NULL: none */
    MPI_Request incoming;
} batch_member;

typedef struct batch_leader {
    const gf_cli_shared_batch *batch;
    uint32_t ranks;
    batch_member *members;
    uint32_t ended; /* number of workers that have ended */
    bool stop;
    uint64_t next;         /* first unassigned item */
    uint64_t cost;         /* of the unassigned items */
    batch_message **early; /* per item: finished, but not yet reported */
    uint64_t reported;     /* in order: number of reported items */
    size_t held;           /* bytes of buffered reports */
} batch_leader;

/* Return whether an item is standard input, which only rank 0 can read. */
static bool leader_is_own(const batch_leader *leader, uint64_t item) {
    return strcmp(leader->batch->items[item].in, "-") == 0;
}

/* Send a share. Use a buffered send, which does not wait for the receiver. */
static void leader_send(batch_leader *leader, uint32_t to, batch_share share) {
    pthread_mutex_lock(&gf_mpi_calls);
    MPI_Bsend(&share, sizeof share, MPI_BYTE, (int)to, GF_MPI_FROM_ROOT, gf_mpi_world);
    pthread_mutex_unlock(&gf_mpi_calls);
    leader->members[to].requests = false;
    leader->members[to].closed = !share.count;
}

/* Return the next share. It is empty if all items are assigned. */
static batch_share leader_cut_share(batch_leader *leader) {
    const gf_cli_shared_batch *batch = leader->batch;
    const uint64_t fair = leader->cost / SHARES / leader->ranks;
    const uint64_t max = batch->options->in_order ? MAX_SHARE_IN_ORDER : MAX_SHARE;
    uint64_t taken = 0;
    batch_share share = {leader->next, 0};
    for (; leader->next < batch->count && share.count < max; leader->next++) {
        if (leader_is_own(leader, leader->next)) { /* assigned at the start */
            if (share.count)
                break;
            share.first++;
            continue;
        }
        const uint64_t cost = batch->inputs[leader->next].bytes + 1;
        if (share.count && taken + cost > fair)
            break;
        taken += cost;
        share.count++;
    }
    leader->cost -= taken;
    return share;
}

static void leader_report(batch_leader *leader, batch_message *message) {
    const gf_cli_shared_batch *batch = leader->batch;
    const gf_outcome outcome = {message->report, message->steps, NULL};
    const gf_batch_done done = {message->item, message->status, &message->error, &outcome};
    if (!batch->report(batch->context, &done, message->rank, message->text))
        leader->stop = true;
    leader->held -= message->size;
    free(message);
}

/* Report a finished item. In order: buffer it until all previous items are reported. */
static void leader_add(batch_leader *leader, batch_message *message) {
    const gf_cli_shared_batch *batch = leader->batch;
    leader->held += message->size;
    if (!batch->options->in_order) {
        leader_report(leader, message);
        return;
    }
    leader->early[message->item] = message;
    if (message->status && batch->options->fail_fast) /* stop before it is reported */
        leader->stop = true;
    for (; leader->reported < batch->count && leader->early[leader->reported]; leader->reported++) {
        leader_report(leader, leader->early[leader->reported]);
        leader->early[leader->reported] = NULL;
    }
}

/* Receive and process the next message of a rank. Return false if none has arrived. */
static bool leader_take(batch_leader *leader, uint32_t from) {
    batch_member *member = &leader->members[from];
    batch_message *message = NULL;
    int arrived = 0;
    pthread_mutex_lock(&gf_mpi_calls);
    if (!member->message) {
        MPI_Message matched;
        MPI_Status status;
        int bytes;
        MPI_Improbe((int)from, GF_MPI_TO_ROOT, gf_mpi_world, &arrived, &matched, &status);
        if (arrived) {
            MPI_Get_count(&status, MPI_BYTE, &bytes);
            member->message = gf_mpi_need(malloc((size_t)bytes));
            MPI_Imrecv(member->message, bytes, MPI_BYTE, &matched, &member->incoming);
        }
    }
    if (member->message)
        MPI_Test(&member->incoming, &arrived, MPI_STATUS_IGNORE);
    if (arrived) {
        message = member->message;
        member->message = NULL;
    }
    pthread_mutex_unlock(&gf_mpi_calls);
    if (!message)
        return false;
    message->rank = from;
    if (message->kind == BATCH_FINISHED) {
        leader_add(leader, message);
        return true;
    }
    if (message->kind == BATCH_REQUEST) {
        member->requests = true;
    } else {
        leader->ended++;
        leader->stop = leader->stop || message->status;
        if (!member->closed)
            leader_send(leader, from, (batch_share){0, 0});
    }
    free(message);
    return true;
}

/* Exchange messages until all workers have ended. */
static void leader_serve(batch_leader *leader) {
    const gf_cli_shared_batch *batch = leader->batch;
    for (unsigned tries = 0; leader->ended < leader->ranks;) {
        bool received = false;
        for (uint32_t i = 0; i < leader->ranks; i++)
            received = leader_take(leader, i) || received;
        /* Send shares to the ranks that request one, or stop all ranks. */
        for (uint32_t i = 0; i < leader->ranks; i++) {
            const batch_member *member = &leader->members[i];
            const bool may_assign =
                !batch->options->in_order || leader->next == batch->count ||
                (leader->next < leader->reported + MAX_AHEAD && leader->held < MAX_HELD);
            if (!member->closed && leader->stop)
                leader_send(leader, i, (batch_share){0, 0});
            else if (!member->closed && member->requests && may_assign)
                leader_send(leader, i, leader_cut_share(leader));
        }
        gf_cli_progress_draw(batch->progress);
        if (received)
            tries = 0;
        else
            gf_mpi_rest(&tries);
    }
    /* After a stop, report the items that finished behind items that never started. */
    for (uint64_t i = leader->reported; i < batch->count; i++)
        if (leader->early[i])
            leader_report(leader, leader->early[i]);
}

/* Run the leader, and the worker of rank 0 in a second thread. */
static void batch_lead(batch_worker *worker) {
    const gf_cli_shared_batch *batch = worker->batch;
    batch_leader leader = {.batch = batch, .ranks = gf_mpi_peers()->count};
    /* Two messages per rank can be pending: a share and the last message. Reserve twice that. */
    int buffer_bytes = (int)(leader.ranks * 4 * (sizeof(batch_share) + MPI_BSEND_OVERHEAD));
    void *buffer = gf_mpi_need(malloc((size_t)buffer_bytes));
    pthread_t thread;
    leader.members = gf_mpi_need(calloc(leader.ranks, sizeof *leader.members));
    leader.early = gf_mpi_need(calloc(batch->count, sizeof(batch_message *)));
    for (uint64_t i = 0; i < batch->count; i++)
        if (leader_is_own(&leader, i)) /* rank 0 runs it first */
            worker->share = (batch_share){i, 1};
        else
            leader.cost += batch->inputs[i].bytes + 1;
    MPI_Buffer_attach(buffer, buffer_bytes);
    const int cause = pthread_create(&thread, NULL, worker_run, worker);
    if (cause) {
        const gf_step *step = batch->job->steps;
        while (!step->filter)
            step++;
        worker->status = gf_set_error(&worker->error, GF_FAILED, "%s: cannot start a thread: %s",
                                      gf_filter_describe(step->filter)->name, strerror(cause));
        leader.stop = leader.members[0].closed = true;
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

/* Broadcast the items of rank 0. A network file system may show others an older state of files. */
gf_status gf_mpi_run_batch(const gf_cli_shared_batch *batch, gf_status status, gf_error *error) {
    const bool first = gf_mpi_peers()->rank == 0;
    gf_cli_shared_batch all = *batch;
    char *names = NULL;
    size_t bytes, writers = 0;
    for (uint32_t i = 0; i < batch->job->step_count; i++)
        writers += !batch->job->steps[i].filter;
    status = gf_mpi_agree(status, error);
    gf_mpi_move(GF_MPI_BROADCAST, 0, &all.count, sizeof all.count);
    if (status || !all.count)
        return status;
    if (first) {
        /* Serialise each item: a byte for `replace`, the input name, and the output names. */
        FILE *file = gf_mpi_need(open_memstream(&names, &bytes));
        for (const gf_batch_item *item = batch->items; item < batch->items + all.count; item++) {
            fprintf(file, "%c%s%c", item->replace ? 1 : 0, item->in, 0);
            for (size_t j = 0; j < writers; j++)
                fprintf(file, "%s%c", item->out[j], 0);
        }
        const bool written = !ferror(file);
        gf_mpi_need(fclose(file) == 0 && written ? names : NULL);
    }
    names = gf_mpi_share(names, &bytes);
    gf_mpi_move(GF_MPI_BROADCAST, 0, batch->setup, batch->setup_size);
    const char **outputs = gf_mpi_need(malloc((size_t)all.count * (writers + 1) * sizeof *outputs));
    gf_batch_item *items = gf_mpi_need(calloc((size_t)all.count, sizeof *items));
    const char *at = names;
    for (uint64_t i = 0; i < all.count; i++) {
        items[i].replace = *at++;
        items[i].in = at;
        at += strlen(at) + 1;
        items[i].out = writers ? &outputs[i * writers] : NULL;
        for (size_t j = 0; j < writers; j++) {
            outputs[i * writers + j] = at;
            at += strlen(at) + 1;
        }
    }
    all.items = items;
    batch_worker worker = {.batch = &all};
    if (first)
        batch_lead(&worker);
    else
        worker_run(&worker);
    if (worker.status)
        gf_set_error(error, worker.status, "%s: %s", gf_mpi_name(), worker.error.message);
    free(items);
    free(outputs);
    free(names);
    return gf_mpi_agree(worker.status, error);
}
