/* One rank's part of a batch: its threads take items from a stock, and what they have to say waits
 * for the main thread. */
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "batch_ranks.h"

#define STOCK 1024u             /* more than is ever handed out ahead */
#define PIECE ((size_t)1 << 20) /* bytes of text in a message */
#define PATIENCE 50000000L      /* nanoseconds that a thread waits for an item */
#define WORTH_ASKING 4u         /* items at a time, from which on more are asked for early */
#define FAULTS SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS

/* A thread that waits for rank 0's answer. */
typedef struct gf_cli_waiter {
    struct gf_cli_waiter *next;
    uint64_t item;
    bool answered;
    gf_cli_status answer;
} gf_cli_waiter;

struct gf_cli_worker {
    const gf_cli_batch_run *run;
    gf_batch_options options;
    pthread_t thread;
    bool started, left;
    gf_status status;
    gf_error error;

    pthread_mutex_t lock;  /* of what is below */
    pthread_cond_t moved;  /* for the threads of the batch */
    pthread_cond_t spoken; /* for the main thread: there may be something for rank 0 */
    uint64_t stock[STOCK], first, count;
    uint64_t share; /* how many came the last time */
    bool hungry;    /* a thread waits for an item */
    bool asked, none, stopped, ended;
    gf_cli_letter *letters, **last;
    gf_cli_waiter *waiting;
};

/* ---- letters --------------------------------------------------------------------------------- */

static gf_cli_letter *new_letter(size_t size) {
    gf_cli_letter *letter = gf_cli_batch_need(malloc(sizeof *letter + size));
    letter->next = NULL;
    letter->size = size;
    return letter;
}

static void put_letter(gf_cli_worker *worker, gf_cli_letter *letter) {
    pthread_mutex_lock(&worker->lock);
    *worker->last = letter;
    worker->last = &letter->next;
    pthread_cond_signal(&worker->spoken);
    pthread_mutex_unlock(&worker->lock);
}

static void post(gf_cli_worker *worker, const void *data, size_t size) {
    gf_cli_letter *letter = new_letter(size);
    memcpy(letter->data, data, size);
    put_letter(worker, letter);
}

static void post_text(gf_cli_worker *worker, uint64_t item, const char *text, size_t size) {
    const gf_cli_head head = {.kind = GF_CLI_TEXT, .item = item};
    for (size_t at = 0, n; at < size; at += n) {
        n = size - at < PIECE ? size - at : PIECE;
        gf_cli_letter *letter = new_letter(sizeof head + n);
        memcpy(letter->data, &head, sizeof head);
        memcpy(letter->data + sizeof head, text + at, n);
        put_letter(worker, letter);
    }
}

/* ---- callbacks of the batch, in its threads -------------------------------------------------- */

/* So many nanoseconds from now, by a clock that nobody sets. */
static struct timespec from_now(long nanoseconds) {
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += nanoseconds;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    return end;
}

static gf_take take(void *context, uint64_t *item) {
    gf_cli_worker *worker = context;
    gf_take took = GF_TAKE_LATER;
    const struct timespec end = from_now(PATIENCE);
    pthread_mutex_lock(&worker->lock);
    int late = 0;
    while (!worker->count && !worker->none && !worker->stopped && !late) {
        worker->hungry = true;
        pthread_cond_signal(&worker->spoken);
        late = pthread_cond_timedwait(&worker->moved, &worker->lock, &end);
    }
    worker->hungry = false;
    if (worker->stopped || (worker->none && !worker->count)) {
        took = GF_TAKE_NONE;
    } else if (worker->count) {
        *item = worker->stock[worker->first++ % STOCK];
        worker->count--;
        took = GF_TAKEN;
    }
    pthread_mutex_unlock(&worker->lock);
    return took;
}

static gf_status ready(void *context, const gf_ready *one, gf_error *error) {
    gf_cli_worker *worker = context;
    gf_cli_ready message = {.head = {.kind = GF_CLI_READY, .item = one->item}};
    gf_cli_waiter waiter = {.item = one->item};
    if (!one->file)
        return GF_OK;
    const gf_status status =
        gf_cli_batch_see(worker->run, one, &message.size, &message.time, error);
    if (status)
        return status;
    pthread_mutex_lock(&worker->lock);
    waiter.next = worker->waiting;
    worker->waiting = &waiter;
    pthread_mutex_unlock(&worker->lock);
    post(worker, &message, sizeof message);
    pthread_mutex_lock(&worker->lock);
    while (!waiter.answered)
        pthread_cond_wait(&worker->moved, &worker->lock);
    pthread_mutex_unlock(&worker->lock);
    if (waiter.answer.status)
        *error = waiter.answer.error;
    return waiter.answer.status;
}

static bool done(void *context, const gf_batch_done *one) {
    gf_cli_worker *worker = context;
    gf_cli_item_over over = {.head = {.kind = GF_CLI_OVER, .item = one->item},
                             .status = one->status,
                             .report = *one->report};
    char *text;
    size_t size, header;
    if (one->error)
        over.error = *one->error;
    const gf_status status =
        gf_cli_batch_render(worker->run, one, &text, &size, &header, &over.error);
    if (status)
        over.status = status;
    over.header = header;
    post_text(worker, one->item, text, size);
    free(text);
    post(worker, &over, sizeof over);
    pthread_mutex_lock(&worker->lock);
    const bool more = !worker->stopped;
    pthread_mutex_unlock(&worker->lock);
    return more;
}

/* ---- the batch, in its first thread ---------------------------------------------------------- */

static void end(gf_cli_worker *worker) {
    gf_cli_status ended = {.head = {.kind = GF_CLI_ENDED}, .status = worker->status};
    if (ended.status)
        ended.error = worker->error;
    if (gethostname(ended.host, sizeof ended.host - 1) != 0)
        snprintf(ended.host, sizeof ended.host, "a host without a name");
    pthread_mutex_lock(&worker->lock);
    worker->ended = true;
    pthread_mutex_unlock(&worker->lock);
    post(worker, &ended, sizeof ended);
}

static void *run_batch(void *argument) {
    gf_cli_worker *worker = argument;
    const gf_cli_batch_run *run = worker->run;
    worker->status = gf_run_batch(run->filter, run->line->filter, run->items, run->to_run,
                                  &worker->options, &worker->error);
    end(worker);
    return NULL;
}

/* Signals are the main thread's, but for the thread's own faults. Returns an errno. */
static int start(gf_cli_worker *worker) {
    static const int faults[] = {FAULTS};
    sigset_t outside, before;
    sigfillset(&outside);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&outside, faults[i]);
    pthread_sigmask(SIG_SETMASK, &outside, &before);
    const int failed = pthread_create(&worker->thread, NULL, run_batch, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

gf_cli_worker *gf_cli_worker_new(const gf_cli_batch_run *run, const gf_batch_options *options) {
    gf_cli_worker *worker = gf_cli_batch_need(calloc(1, sizeof *worker));
    worker->run = run;
    worker->options = *options;
    worker->options.take = take;
    worker->options.done = done;
    worker->options.context = worker;
    worker->options.expected = (run->to_run + run->ranks - 1) / run->ranks;
    if (options->files.ready && run->rank > 0) {
        worker->options.files.ready = ready;
        worker->options.files.ready_context = worker;
    }
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->moved, &steady);
    pthread_cond_init(&worker->spoken, &steady);
    pthread_condattr_destroy(&steady);
    worker->last = &worker->letters;
    const int failed = start(worker);
    worker->started = !failed;
    if (failed) {
        worker->status = gf_set_error(&worker->error, GF_FAILED, "%s: cannot start a thread: %s",
                                      run->info->name, strerror(failed));
        end(worker);
    }
    return worker;
}

/* ---- the main thread ------------------------------------------------------------------------- */

static void add_stock(gf_cli_worker *worker, const gf_cli_head *head) {
    if (head->count > STOCK - worker->count)
        gf_cli_ranks_abort("more items came than were asked for");
    for (uint64_t i = 0; i < head->count; i++)
        worker->stock[(worker->first + worker->count++) % STOCK] = head->item + i;
    worker->share = head->count;
    worker->asked = false;
}

static void answer(gf_cli_worker *worker, const gf_cli_status *message) {
    gf_cli_waiter **at = &worker->waiting;
    while (*at && (*at)->item != message->head.item)
        at = &(*at)->next;
    if (!*at)
        return;
    (*at)->answer = *message;
    (*at)->answered = true;
    *at = (*at)->next;
}

void gf_cli_worker_hear(gf_cli_worker *worker, const void *data, size_t size) {
    gf_cli_head head;
    gf_cli_letter_head(data, size, &head);
    (void)gf_cli_letter_check(data, size,
                              head.kind == GF_CLI_ANSWER ? sizeof(gf_cli_status) : sizeof head);
    pthread_mutex_lock(&worker->lock);
    if (head.kind == GF_CLI_ITEMS)
        add_stock(worker, &head);
    else if (head.kind == GF_CLI_ANSWER)
        answer(worker, data);
    worker->none = worker->none || head.kind == GF_CLI_NONE;
    worker->stopped = worker->stopped || head.kind == GF_CLI_STOP;
    worker->left = worker->left || head.kind == GF_CLI_LEAVE;
    pthread_cond_broadcast(&worker->moved);
    pthread_mutex_unlock(&worker->lock);
}

/* Where items come one at a time, none is asked for before a thread is free for it: it might be
 * what others wait for in the end. */
static bool lacks_items(const gf_cli_worker *worker) {
    if (worker->asked || worker->none || worker->stopped || worker->ended)
        return false;
    return worker->count ? worker->share >= WORTH_ASKING && worker->count < worker->share / 2
                         : worker->hungry;
}

gf_cli_letter *gf_cli_worker_letter(gf_cli_worker *worker) {
    pthread_mutex_lock(&worker->lock);
    gf_cli_letter *letter = worker->letters;
    const bool ask = !letter && lacks_items(worker);
    if (letter)
        worker->letters = letter->next;
    if (!worker->letters)
        worker->last = &worker->letters;
    worker->asked = worker->asked || ask;
    pthread_mutex_unlock(&worker->lock);
    if (ask) {
        const gf_cli_head head = {.kind = GF_CLI_ASK};
        letter = new_letter(sizeof head);
        memcpy(letter->data, &head, sizeof head);
    }
    return letter;
}

void gf_cli_worker_await(gf_cli_worker *worker, bool listening, long nanoseconds) {
    const struct timespec end = from_now(nanoseconds);
    if (!nanoseconds) {
        sched_yield();
        return;
    }
    pthread_mutex_lock(&worker->lock);
    if (!listening || (!worker->letters && !lacks_items(worker)))
        pthread_cond_timedwait(&worker->spoken, &worker->lock, &end);
    pthread_mutex_unlock(&worker->lock);
}

bool gf_cli_worker_is_over(const gf_cli_worker *worker) {
    return worker->left;
}

gf_status gf_cli_worker_end(gf_cli_worker *worker, gf_error *error) {
    if (worker->started)
        pthread_join(worker->thread, NULL);
    const gf_status status = worker->status;
    if (status)
        *error = worker->error;
    pthread_cond_destroy(&worker->moved);
    pthread_cond_destroy(&worker->spoken);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
    return status;
}
