/* Of a call that all make, the last to come does everybody's part while the others wait. Sending
 * waits until it is received, as MPI may. */
#include "rank_threads.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { NOTHING, BROADCAST, REDUCE, SCAN, SEND, RECEIVE, RETURNED } kind;

static const char *const names[] = {"nothing", "broadcast", "reduce",  "scan",
                                    "send",    "receive",   "returned"};

struct job;

typedef struct member {
    gf_ranks ranks;
    pthread_t thread;
    struct job *job;
    void (*run)(const gf_ranks *ranks, void *context);
    void *run_context;

    kind kind; /* what it waits in */
    void *data;
    const void *given; /* by SEND and SCAN */
    uint64_t *all;
    size_t size;
    gf_merge *merge;
    const void *merging;
    uint32_t from; /* RECEIVE */
} member;

typedef struct job {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t count;
    member *members;
} job;

/* ---- waiting --------------------------------------------------------------------------------- */

static void give_up(const job *all, const char *why) {
    fprintf(stderr, "run_as_ranks: %s:\n", why);
    for (uint32_t i = 0; i < all->count; i++)
        fprintf(stderr, "  rank %u: %s, size %zu\n", i, names[all->members[i].kind],
                all->members[i].size);
    abort();
}

/* Begins to wait in what the member says; the caller holds the lock. */
static void begin(const member *self) {
    const job *all = self->job;
    uint32_t waiting = 0;
    for (uint32_t i = 0; i < all->count; i++)
        waiting += all->members[i].kind != NOTHING;
    if (waiting == all->count)
        give_up(all, "all wait, and nothing will come");
}

static void await(member *self) {
    while (self->kind != NOTHING)
        pthread_cond_wait(&self->job->changed, &self->job->lock);
}

static void done(member *self) {
    self->kind = NOTHING;
    pthread_cond_broadcast(&self->job->changed);
}

/* ---- calls that all make --------------------------------------------------------------------- */

static void do_broadcast(const job *all) {
    for (uint32_t i = 1; i < all->count; i++)
        if (all->members[i].size)
            memcpy(all->members[i].data, all->members[0].data, all->members[0].size);
}

/* Not in the order of ranks. Others then hold nothing that anybody could use. */
static void do_reduce(const job *all) {
    const member *members = all->members;
    for (uint32_t n = all->count, half; n > 1; n = half) {
        half = (n + 1) / 2;
        for (uint32_t i = 0; i + half < n; i++) {
            const member *to = &members[i], *from = &members[i + half];
            if (to->size)
                to->merge(to->merging, to->data, from->data);
        }
    }
    for (uint32_t i = 1; i < all->count; i++)
        if (members[i].size)
            memset(members[i].data, 0xee, members[i].size);
}

static void do_scan(const job *all) {
    for (size_t k = 0; k < all->members[0].size; k++) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < all->count; i++) {
            ((uint64_t *)all->members[i].data)[k] = sum;
            sum += ((const uint64_t *)all->members[i].given)[k];
        }
        for (uint32_t i = 0; i < all->count; i++)
            all->members[i].all[k] = sum;
    }
}

/* The member's call stands in it, but for its kind. */
static void together(member *self, kind what) {
    job *all = self->job;
    uint32_t here = 0;
    self->kind = what;
    for (uint32_t i = 0; i < all->count; i++) {
        const member *other = &all->members[i];
        const kind has = other->kind;
        here += has == what;
        if ((has == BROADCAST || has == REDUCE || has == SCAN) &&
            (has != what || other->size != self->size || other->merge != self->merge))
            give_up(all, "ranks make different calls");
    }
    if (here < all->count) {
        begin(self);
        await(self);
        return;
    }
    if (what == BROADCAST)
        do_broadcast(all);
    else if (what == REDUCE)
        do_reduce(all);
    else
        do_scan(all);
    for (uint32_t i = 0; i < all->count; i++)
        done(&all->members[i]);
}

static void broadcast(void *context, void *data, size_t size) {
    member *self = context;
    pthread_mutex_lock(&self->job->lock);
    self->data = data;
    self->size = size;
    self->merge = NULL;
    together(self, BROADCAST);
    pthread_mutex_unlock(&self->job->lock);
}

static void reduce(void *context, void *data, size_t size, gf_merge *merge, const void *merging) {
    member *self = context;
    pthread_mutex_lock(&self->job->lock);
    self->data = data;
    self->size = size;
    self->merge = merge;
    self->merging = merging;
    together(self, REDUCE);
    pthread_mutex_unlock(&self->job->lock);
}

static void scan(void *context, const uint64_t *values, uint64_t *before, uint64_t *all,
                 size_t count) {
    member *self = context;
    pthread_mutex_lock(&self->job->lock);
    if (count && (values == before || values == all || before == all))
        give_up(self->job, "a scan's arrays are not apart");
    self->given = values;
    self->data = before;
    self->all = all;
    self->size = count;
    self->merge = NULL;
    together(self, SCAN);
    pthread_mutex_unlock(&self->job->lock);
}

/* ---- calls of two ---------------------------------------------------------------------------- */

static void pass(member *sender, member *receiver) {
    if (sender->size != receiver->size)
        give_up(sender->job, "what is received is not what was sent");
    if (sender->size)
        memcpy(receiver->data, sender->given, sender->size);
    done(sender);
    done(receiver);
}

static void send(void *context, const void *data, size_t size) {
    member *self = context, *first = self->job->members;
    pthread_mutex_lock(&self->job->lock);
    self->given = data;
    self->size = size;
    self->kind = SEND;
    if (first->kind == RECEIVE && first->from == self->ranks.rank)
        pass(self, first);
    else
        begin(self);
    await(self);
    pthread_mutex_unlock(&self->job->lock);
}

static void receive(void *context, uint32_t from, void *data, size_t size) {
    member *self = context, *sender = &self->job->members[from];
    pthread_mutex_lock(&self->job->lock);
    self->data = data;
    self->size = size;
    self->from = from;
    self->kind = RECEIVE;
    if (self->ranks.rank != 0 || from == 0 || from >= self->job->count)
        give_up(self->job, "only rank 0 receives, and from others");
    if (sender->kind == SEND)
        pass(sender, self);
    else
        begin(self);
    await(self);
    pthread_mutex_unlock(&self->job->lock);
}

/* ---- running --------------------------------------------------------------------------------- */

static void *run(void *context) {
    member *self = context;
    uint32_t returned = 0;
    self->run(&self->ranks, self->run_context);
    pthread_mutex_lock(&self->job->lock);
    self->kind = RETURNED;
    self->size = 0;
    for (uint32_t i = 0; i < self->job->count; i++)
        returned += self->job->members[i].kind == RETURNED;
    if (returned < self->job->count)
        begin(self);
    pthread_mutex_unlock(&self->job->lock);
    return NULL;
}

void run_as_ranks(uint32_t count, void (*rank)(const gf_ranks *ranks, void *context),
                  void *context) {
    job all = {.count = count, .members = calloc(count, sizeof *all.members)};
    pthread_mutex_init(&all.lock, NULL);
    pthread_cond_init(&all.changed, NULL);
    if (!all.members)
        abort();
    for (uint32_t i = 0; i < count; i++)
        all.members[i] = (member){.ranks = {.rank = i,
                                            .count = count,
                                            .context = &all.members[i],
                                            .broadcast = broadcast,
                                            .reduce = reduce,
                                            .scan = scan,
                                            .send = send,
                                            .receive = receive},
                                  .job = &all,
                                  .run = rank,
                                  .run_context = context};
    for (uint32_t i = 0; i < count; i++)
        if (pthread_create(&all.members[i].thread, NULL, run, &all.members[i]) != 0)
            abort();
    for (uint32_t i = 0; i < count; i++)
        pthread_join(all.members[i].thread, NULL);
    pthread_cond_destroy(&all.changed);
    pthread_mutex_destroy(&all.lock);
    free(all.members);
}
