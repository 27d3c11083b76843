/* A batch that several ranks share.
 *
 * Rank 0 gives out items by their index, and alone reports. Its main thread exchanges messages
 * while a second thread runs its own part of the batch; on the other ranks the threads of the batch
 * call MPI themselves, one at a time. Rank 0 never waits for a message to leave or to arrive: a
 * rank that is stopped, or slow, keeps the items it has, and the others do the rest.
 *
 * Items go out in their order, a share at a time: an eighth of what the rank would get if the rest
 * were divided evenly now, by cost, but at least one item and at most MAX_SHARE. So messages are
 * few in the beginning, and in the end no rank holds what the others wait for. Where items are
 * reported in order, results that come early wait on rank 0, so fewer items are given out ahead.
 * The oldest unreported item is always assigned, so the wait ends. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi.h"

#define SHARES 8u              /* in what is a rank's own part */
#define MAX_SHARE 256u         /* items */
#define MAX_SHARE_IN_ORDER 8u  /* items: what is given out comes, however much is held already */
#define MAX_AHEAD 4096u        /* items given out beyond the oldest unreported one, and */
#define MAX_HELD (64u << 20)   /* bytes of text that wait, if reports are in order */
#define ASK_EARLY 4u           /* items of a share from which the next is asked for early */
#define MAX_TRIES 64u          /* about 60 ms in which a thread waits for an item */
#define MAX_TEXT (1024u << 20) /* bytes of text of an item: MPI counts in int */

/* A message to rank 0. */
typedef struct batch_message {
    enum { BATCH_ASK, BATCH_FINISHED, BATCH_ENDED } kind; /* an item, or all on this rank */
    uint32_t rank;
    uint64_t item;
    gf_status status;
    gf_error error;
    gf_report report;
    char host[64];         /* of BATCH_ENDED */
    uint64_t size, header; /* of gf_cli_text */
    char text[];
} batch_message;

/* A message from rank 0. BATCH_ITEMS: `count` items from `first` on; no items: none are left.
 * BATCH_STOP: begin no others, not even those of the last share. BATCH_LEAVE answers BATCH_ENDED,
 * and is the last message to a rank. */
typedef struct batch_order {
    enum { BATCH_ITEMS, BATCH_STOP, BATCH_LEAVE, BATCH_ORDERS } kind;
    uint64_t first, count;
} batch_order;

static void *batch_need(void *memory) {
    if (!memory)
        gf_mpi_abort("out of memory for a batch on several ranks");
    return memory;
}

static batch_message *batch_new_message(int kind, gf_status status, const gf_error *error,
                                        size_t size) {
    batch_message *message = batch_need(calloc(1, sizeof *message + size));
    message->kind = kind;
    message->rank = gf_mpi_peers()->rank;
    message->status = status;
    message->size = size;
    if (status)
        message->error = *error;
    return message;
}

static batch_message *batch_new_finished(const gf_cli_shared_batch *batch,
                                         const gf_batch_done *done) {
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
    batch_message *message = batch_new_message(BATCH_FINISHED, status, &error, text.size);
    message->item = done->item;
    message->report = *done->report;
    message->header = text.header;
    if (text.size)
        memcpy(message->text, text.text, text.size);
    free(text.text);
    return message;
}

static batch_message *batch_new_ended(gf_status status, const gf_error *error) {
    batch_message *message = batch_new_message(BATCH_ENDED, status, error, 0);
    if (gethostname(message->host, sizeof message->host - 1) != 0)
        snprintf(message->host, sizeof message->host, "a host without a name");
    return message;
}

/* Run this rank's part. */
static gf_status batch_run_part(const gf_cli_shared_batch *batch,
                                gf_take (*take)(void *context, uint64_t *item),
                                bool (*done)(void *context, const gf_batch_done *done),
                                void *context, gf_error *error) {
    const uint32_t ranks = gf_mpi_peers()->count;
    const gf_work_source source = {take, context, (batch->count + ranks - 1) / ranks};
    gf_batch_options options = *batch->options;
    options.done = done;
    options.context = context;
    return gf_run_shared_batch(batch->filter, batch->settings, batch->items, batch->count, &options,
                               &source, error);
}

/* ---- rank 0: giving out items ---------------------------------------------------------------- */

typedef struct batch_member {
    bool asks, stopped, ended;
    batch_message *message; /* that comes now; NULL: none */
    MPI_Request incoming, outgoing[BATCH_ORDERS];
    batch_order orders[BATCH_ORDERS]; /* the last of each kind */
} batch_member;

typedef struct batch_leader {
    const gf_cli_shared_batch *batch;
    uint32_t ranks;
    pthread_t thread;     /* runs rank 0's own part */
    pthread_mutex_t lock; /* of all below */
    batch_member *members;
    uint32_t ended;
    bool stop;
    uint64_t next;         /* the first item that no rank has */
    uint64_t cost;         /* of the items from there on */
    bool has_own;          /* standard input, which rank 0 alone has, waits for it: */
    uint64_t own;          /* that item */
    batch_message **early; /* by item: finished, and not yet reported */
    uint64_t reported;     /* in order: how many */
    size_t held;           /* bytes of text on rank 0 or on the way */
    gf_status status;      /* why a rank could run none */
    gf_error error;
} batch_leader;

static uint64_t leader_cost(const batch_leader *leader, uint64_t item) {
    return leader->batch->cost(leader->batch->context, item) + 1;
}

static bool leader_is_own(const batch_leader *leader, uint64_t item) {
    return strcmp(leader->batch->items[item].in, "-") == 0;
}

static bool leader_may_give(const batch_leader *leader) {
    return !leader->batch->in_order ||
           (leader->next - leader->reported < MAX_AHEAD && leader->held < MAX_HELD);
}

static uint64_t leader_give_next(batch_leader *leader) {
    leader->cost -= leader_cost(leader, leader->next);
    return leader->next++;
}

static void leader_send(batch_leader *leader, uint32_t to, batch_order order) {
    batch_member *member = &leader->members[to];
    /* An earlier one of this kind has left: it was answered. */
    gf_mpi_finish(&member->outgoing[order.kind]);
    member->orders[order.kind] = order;
    MPI_Isend(&member->orders[order.kind], sizeof order, MPI_BYTE, (int)to, GF_MPI_TAG_MESSAGE,
              gf_mpi_world, &member->outgoing[order.kind]);
}

/* Give a share to a rank; one without items if there are no more. */
static void leader_give_share(batch_leader *leader, uint32_t to) {
    const gf_cli_shared_batch *batch = leader->batch;
    const uint64_t fair = leader->cost / SHARES / leader->ranks, before = leader->cost;
    const uint64_t most = batch->in_order ? MAX_SHARE_IN_ORDER : MAX_SHARE;
    batch_order order = {.kind = BATCH_ITEMS, .first = leader->next};
    while (leader->next < batch->count && order.count < most &&
           (!order.count || (!leader_is_own(leader, leader->next) &&
                             before - leader->cost + leader_cost(leader, leader->next) <= fair))) {
        leader_give_next(leader);
        order.count++;
    }
    leader_send(leader, to, order);
}

/* Answer the ranks that ask, or stop all. */
static void leader_give(batch_leader *leader) {
    for (uint32_t i = 1; i < leader->ranks; i++) {
        batch_member *member = &leader->members[i];
        if (leader->stop && !member->stopped && !member->ended) {
            member->stopped = true;
            leader_send(leader, i, (batch_order){.kind = BATCH_STOP});
        }
        if (leader->stop || !member->asks || member->ended)
            continue;
        if (leader->next < leader->batch->count && leader_is_own(leader, leader->next)) {
            leader->has_own = true;
            leader->own = leader_give_next(leader);
        }
        if (leader->next == leader->batch->count || leader_may_give(leader)) {
            member->asks = false;
            leader_give_share(leader, i);
        }
    }
}

/* ---- rank 0: taking messages ----------------------------------------------------------------- */

static void leader_report(batch_leader *leader, batch_message *message) {
    const gf_cli_shared_batch *batch = leader->batch;
    const gf_cli_finished finished = {
        .item = message->item,
        .rank = message->rank,
        .status = message->status,
        .error = &message->error,
        .report = &message->report,
        .text = {.text = message->text, .size = message->size, .header = message->header}};
    if (!batch->report(batch->context, &finished))
        leader->stop = true;
    leader->held -= message->size;
    free(message);
}

/* Report a finished item, or keep it until those before it are reported. */
static void leader_add(batch_leader *leader, batch_message *message) {
    const uint64_t item = message->item;
    if (item >= leader->next || leader->early[item] ||
        (leader->batch->in_order && item < leader->reported))
        gf_mpi_abort("a rank reported an item that it was not given");
    if (!leader->batch->in_order) {
        leader_report(leader, message);
        return;
    }
    leader->early[item] = message;
    if (message->status && leader->batch->options->fail_fast) /* even before it is reported */
        leader->stop = true;
    while (leader->reported < leader->next && leader->early[leader->reported])
        leader_report(leader, leader->early[leader->reported++]);
}

static void leader_end_rank(batch_leader *leader, batch_message *message) {
    leader->members[message->rank].ended = true;
    leader->ended++;
    leader->stop = leader->stop || message->status;
    if (message->status && !leader->status)
        leader->status = gf_set_error(&leader->error, message->status, "rank %u on %s: %s",
                                      message->rank, message->host, message->error.message);
    free(message);
}

/* Take the next message of a rank, if it has come. */
static bool leader_hear(batch_leader *leader, uint32_t from) {
    batch_member *member = &leader->members[from];
    int came = member->message != NULL, bytes;
    if (!came && !member->ended) {
        MPI_Message matched;
        MPI_Status status;
        MPI_Improbe((int)from, GF_MPI_TAG_MESSAGE, gf_mpi_world, &came, &matched, &status);
        if (came) {
            MPI_Get_count(&status, MPI_BYTE, &bytes);
            if (bytes < (int)sizeof *member->message)
                gf_mpi_abort("ranks do not understand each other; start the same gpufilter on all");
            member->message = batch_need(malloc((size_t)bytes));
            MPI_Imrecv(member->message, bytes, MPI_BYTE, &matched, &member->incoming);
        }
    }
    if (came)
        MPI_Test(&member->incoming, &came, MPI_STATUS_IGNORE);
    if (!came)
        return false;
    batch_message *message = member->message;
    member->message = NULL;
    if (message->kind == BATCH_ASK) {
        member->asks = true;
        free(message);
    } else if (message->kind == BATCH_FINISHED) {
        leader->held += message->size;
        leader_add(leader, message);
    } else {
        leader_end_rank(leader, message);
        leader_send(leader, from, (batch_order){.kind = BATCH_LEAVE});
    }
    return true;
}

/* ---- rank 0: its own part, and all ----------------------------------------------------------- */

/* gf_batch_options.take */
static gf_take leader_take(void *context, uint64_t *item) {
    batch_leader *leader = context;
    gf_take took = GF_TAKEN;
    pthread_mutex_lock(&leader->lock);
    if (leader->has_own && !leader->stop) {
        leader->has_own = false;
        *item = leader->own;
    } else if (leader->stop || leader->next == leader->batch->count) {
        took = GF_TAKE_NONE;
    } else if (leader_may_give(leader)) {
        *item = leader_give_next(leader);
    } else {
        took = GF_TAKE_LATER;
    }
    pthread_mutex_unlock(&leader->lock);
    for (unsigned tries = 0; took == GF_TAKE_LATER && tries < MAX_TRIES / 4;)
        gf_mpi_rest(&tries);
    return took;
}

/* gf_batch_options.done */
static bool leader_done(void *context, const gf_batch_done *done) {
    batch_leader *leader = context;
    batch_message *message = batch_new_finished(leader->batch, done);
    pthread_mutex_lock(&leader->lock);
    leader->held += message->size;
    leader_add(leader, message);
    const bool more = !leader->stop;
    pthread_mutex_unlock(&leader->lock);
    return more;
}

static void *leader_run(void *argument) {
    batch_leader *leader = argument;
    gf_error error;
    const gf_status status =
        batch_run_part(leader->batch, leader_take, leader_done, leader, &error);
    pthread_mutex_lock(&leader->lock);
    leader_end_rank(leader, batch_new_ended(status, &error));
    pthread_mutex_unlock(&leader->lock);
    return NULL;
}

/* Start a thread for rank 0's part. Signals are the main thread's, but for the thread's own faults.
 */
static bool leader_start(batch_leader *leader) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t blocked, before;
    gf_error error;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    const int cause = pthread_create(&leader->thread, NULL, leader_run, leader);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!cause)
        return true;
    gf_set_error(&error, GF_FAILED, "%s: cannot start a thread: %s",
                 gf_filter_describe(leader->batch->filter)->name, strerror(cause));
    leader_end_rank(leader, batch_new_ended(GF_FAILED, &error));
    return false;
}

/* Exchange messages until all ranks have ended. */
static void leader_serve(batch_leader *leader) {
    bool over = false;
    for (unsigned tries = 0; !over;) {
        bool heard = false;
        pthread_mutex_lock(&leader->lock);
        for (uint32_t i = 1; i < leader->ranks; i++)
            heard = leader_hear(leader, i) || heard;
        leader_give(leader);
        over = leader->ended == leader->ranks;
        pthread_mutex_unlock(&leader->lock);
        leader->batch->tick(leader->batch->context);
        if (heard)
            tries = 0;
        else
            gf_mpi_rest(&tries);
    }
}

static gf_status batch_lead(const gf_cli_shared_batch *batch, gf_error *error) {
    batch_leader leader = {.batch = batch, .ranks = gf_mpi_peers()->count};
    leader.members = batch_need(calloc(leader.ranks, sizeof *leader.members));
    leader.early = batch_need(calloc(batch->count, sizeof(batch_message *)));
    for (uint64_t i = 0; i < batch->count; i++)
        leader.cost += leader_cost(&leader, i);
    for (uint32_t i = 1; i < leader.ranks; i++)
        for (int kind = 0; kind < BATCH_ORDERS; kind++)
            leader.members[i].outgoing[kind] = MPI_REQUEST_NULL;
    pthread_mutex_init(&leader.lock, NULL);
    const bool started = leader_start(&leader);
    leader_serve(&leader);
    if (started)
        pthread_join(leader.thread, NULL);
    /* After a stop some items in between were never begun. */
    for (uint64_t i = leader.reported; i < leader.next; i++)
        if (leader.early[i])
            leader_report(&leader, leader.early[i]);
    for (uint32_t i = 1; i < leader.ranks; i++)
        for (int kind = 0; kind < BATCH_ORDERS; kind++)
            gf_mpi_finish(&leader.members[i].outgoing[kind]);
    if (leader.status)
        *error = leader.error;
    pthread_mutex_destroy(&leader.lock);
    free(leader.early);
    free(leader.members);
    return leader.status;
}

/* ---- the other ranks ------------------------------------------------------------------------- */

/* All but the batch under gf_mpi_calls. */
typedef struct batch_worker {
    const gf_cli_shared_batch *batch;
    MPI_Request request;
    batch_order order;        /* the one that comes next */
    batch_order share, spare; /* items to begin: the rest of a share, and the share after it */
    uint64_t size;            /* of the share that came last */
    bool asked, none, stopped, left;
} batch_worker;

static void worker_listen(batch_worker *worker) {
    MPI_Irecv(&worker->order, sizeof worker->order, MPI_BYTE, 0, GF_MPI_TAG_MESSAGE, gf_mpi_world,
              &worker->request);
}

/* Take what has come from rank 0. */
static void worker_hear(batch_worker *worker) {
    int came = 0;
    for (; !worker->left; came = 0) {
        MPI_Test(&worker->request, &came, MPI_STATUS_IGNORE);
        if (!came)
            return;
        const batch_order *order = &worker->order;
        if (order->kind == BATCH_ITEMS) {
            worker->spare = *order;
            worker->size = order->count;
            worker->asked = false;
            worker->none = !order->count;
        }
        worker->stopped = worker->stopped || order->kind == BATCH_STOP;
        worker->left = order->kind == BATCH_LEAVE;
        if (!worker->left)
            worker_listen(worker);
    }
}

/* Take an item, if there is one. */
static gf_take worker_take_now(batch_worker *worker, uint64_t *item) {
    batch_order *share = &worker->share;
    if (!share->count) {
        *share = worker->spare;
        worker->spare.count = 0;
    }
    if (worker->stopped || (worker->none && !share->count))
        return GF_TAKE_NONE;
    if (!share->count)
        return GF_TAKE_LATER;
    *item = share->first++;
    share->count--;
    return GF_TAKEN;
}

/* Is the next share to be asked for? Where items come one at a time, none is asked for before a
 * thread is free for it: it might be what the others wait for in the end. */
static bool worker_lacks(const batch_worker *worker, gf_take took) {
    if (worker->asked || worker->none || worker->stopped || worker->spare.count)
        return false;
    return took == GF_TAKE_LATER ||
           (worker->size >= ASK_EARLY && worker->share.count < worker->size / 2);
}

static void worker_send(batch_message *message) {
    gf_mpi_send(0, GF_MPI_TAG_MESSAGE, message, sizeof *message + message->size);
    free(message);
}

/* gf_batch_options.take */
static gf_take worker_take(void *context, uint64_t *item) {
    batch_worker *worker = context;
    gf_take took = GF_TAKE_LATER;
    for (unsigned tries = 0; took == GF_TAKE_LATER && tries < MAX_TRIES;) {
        pthread_mutex_lock(&gf_mpi_calls);
        worker_hear(worker);
        took = worker_take_now(worker, item);
        const bool ask = worker_lacks(worker, took);
        worker->asked = worker->asked || ask;
        pthread_mutex_unlock(&gf_mpi_calls);
        if (ask)
            worker_send(batch_new_message(BATCH_ASK, GF_OK, NULL, 0));
        if (took == GF_TAKE_LATER)
            gf_mpi_rest(&tries);
    }
    return took;
}

/* gf_batch_options.done. Waiting until rank 0 takes the text bounds what is held here. */
static bool worker_done(void *context, const gf_batch_done *done) {
    batch_worker *worker = context;
    worker_send(batch_new_finished(worker->batch, done));
    pthread_mutex_lock(&gf_mpi_calls);
    worker_hear(worker);
    const bool more = !worker->stopped;
    pthread_mutex_unlock(&gf_mpi_calls);
    return more;
}

static gf_status batch_follow(const gf_cli_shared_batch *batch, gf_error *error) {
    batch_worker worker = {.batch = batch};
    worker_listen(&worker);
    const gf_status status = batch_run_part(batch, worker_take, worker_done, &worker, error);
    worker_send(batch_new_ended(status, error));
    for (unsigned tries = 0; !worker.left; gf_mpi_rest(&tries)) {
        pthread_mutex_lock(&gf_mpi_calls);
        worker_hear(&worker);
        pthread_mutex_unlock(&gf_mpi_calls);
    }
    return status;
}

/* ---- the list of items ----------------------------------------------------------------------- */

/* Write of each item whether it replaces a file, its input, and its output or "". NULL if there is
 * no memory. */
static char *list_pack(const gf_cli_shared_batch *batch, size_t *bytes) {
    char *names = NULL;
    FILE *file = open_memstream(&names, bytes);
    if (!file)
        return NULL;
    for (uint64_t i = 0; i < batch->count; i++) {
        const gf_batch_item *item = &batch->items[i];
        const char *out = item->out ? item->out : "";
        putc(item->replace ? 1 : 0, file);
        fwrite(item->in, 1, strlen(item->in) + 1, file);
        fwrite(out, 1, strlen(out) + 1, file);
    }
    const bool good = !ferror(file);
    if (fclose(file) == 0 && good)
        return names;
    free(names);
    return NULL;
}

static gf_batch_item *list_unpack(const char *names, uint64_t count) {
    gf_batch_item *items = batch_need(calloc((size_t)count, sizeof *items));
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
    gf_batch_item *items = NULL;
    char *names = NULL;
    struct {
        gf_status status;
        uint64_t count;
        size_t bytes;
    } list = {.status = status, .count = batch->count};
    if (first && !status && !(names = list_pack(batch, &list.bytes)))
        list.status = gf_set_error(error, GF_FAILED, "%s: out of memory",
                                   gf_filter_describe(batch->filter)->name);
    gf_mpi_broadcast(&list, sizeof list);
    if (!list.status && list.count) {
        if (!first)
            names = batch_need(malloc(list.bytes));
        gf_mpi_broadcast(names, list.bytes);
        gf_mpi_broadcast(batch->setup, batch->setup_size);
        if (!first)
            all.items = items = list_unpack(names, list.count);
        all.count = list.count;
        list.status = first ? batch_lead(&all, error) : batch_follow(&all, error);
    }
    free(items);
    free(names);
    return list.status;
}
