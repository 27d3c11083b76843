/* Rank 0's part of a batch: who gets which items, and what is told of them, in which order.
 *
 * Items are handed out in their order, a share at a time to whoever asks: an eighth of what would
 * be his if what remains were shared out evenly now, by the bytes of the inputs, but at least one
 * item and at most MOST_SHARE. So messages are few in the beginning, and in the end, when a rank
 * might hold what the others wait for, items go out one by one. Where order counts a share is also
 * no more than what may wait to be told, by the largest text so far, has room for. */
#include <stdlib.h>
#include <string.h>

#include "batch_ranks.h"

#define SHARES 8u       /* of what is a rank's own */
#define MOST_SHARE 256u /* items */
#define MOST_AHEAD                                                                                 \
    4096u /* items handed out beyond the first that is not told, where order counts, */
#define MOST_HELD ((size_t)64 << 20) /* and bytes of text that waits to be told */
#define MOST_UNKNOWN 4u              /* items of a share while no text is known */

/* What is known of an item before it can be told. */
typedef struct gf_cli_early {
    bool over;
    uint32_t from;
    char *text;
    size_t size;
    gf_cli_item_over how;
} gf_cli_early;

struct gf_cli_leader {
    gf_cli_batch_run *run;
    void (*send)(void *context, uint32_t to, const void *data, size_t size);
    void *context;
    struct gf_cli_member {
        bool asks, stopped, ended;
    } * members;
    uint32_t ended;
    bool stop, in_order;
    uint64_t next;      /* the first item that nobody has */
    uint64_t left;      /* what those from there on weigh */
    gf_cli_early **all; /* by item */
    uint64_t told;      /* in order: how many */
    size_t held;        /* bytes of text, */
    size_t largest;     /* and of that of one item; 0: none is known */
    gf_status status;
    gf_error error;
};

/* An image takes time by its bytes, and none takes no time. */
static uint64_t weight(const gf_cli_batch_run *run, uint64_t item) {
    return run->inputs.list[run->which[item]].bytes + 1;
}

gf_cli_leader *gf_cli_leader_new(gf_cli_batch_run *run,
                                 void (*send)(void *context, uint32_t to, const void *data,
                                              size_t size),
                                 void *context) {
    gf_cli_leader *leader = gf_cli_batch_need(calloc(1, sizeof *leader));
    leader->members = gf_cli_batch_need(calloc(run->ranks, sizeof *leader->members));
    leader->all = gf_cli_batch_need(calloc(run->to_run, sizeof(gf_cli_early *)));
    leader->run = run;
    leader->send = send;
    leader->context = context;
    leader->in_order = !run->info->makes_image;
    for (uint64_t i = 0; i < run->to_run; i++)
        leader->left += weight(run, i);
    return leader;
}

/* ---- handing out ----------------------------------------------------------------------------- */

static void send_head(gf_cli_leader *leader, uint32_t to, gf_cli_head head) {
    leader->send(leader->context, to, &head, sizeof head);
}

/* Only this process has the standard input. */
static bool is_own(const gf_cli_leader *leader, uint64_t item) {
    return strcmp(leader->run->items[item].in, "-") == 0;
}

/* The first item that is not told is handed out already, so somebody will come and tell. */
static bool may_hand_out(const gf_cli_leader *leader) {
    return !leader->in_order ||
           (leader->next - leader->told < MOST_AHEAD && leader->held < MOST_HELD);
}

static void give(gf_cli_leader *leader, uint32_t to, uint64_t count) {
    send_head(leader, to,
              (gf_cli_head){.kind = GF_CLI_ITEMS, .item = leader->next, .count = count});
    for (uint64_t i = 0; i < count; i++)
        leader->left -= weight(leader->run, leader->next++);
}

static uint64_t most_items(const gf_cli_leader *leader) {
    if (!leader->in_order)
        return MOST_SHARE;
    if (!leader->largest)
        return MOST_UNKNOWN;
    const uint64_t most = MOST_HELD / leader->largest / leader->run->ranks;
    return most < MOST_SHARE ? most : MOST_SHARE;
}

static void give_share(gf_cli_leader *leader, uint32_t to) {
    const gf_cli_batch_run *run = leader->run;
    const uint64_t most = leader->left / SHARES / run->ranks, items = most_items(leader);
    uint64_t count = 0, sum = 0;
    do
        sum += weight(run, leader->next + count++);
    while (count < items && leader->next + count < run->to_run &&
           !is_own(leader, leader->next + count) &&
           sum + weight(run, leader->next + count) <= most);
    leader->members[to].asks = false;
    give(leader, to, count);
}

static void stop_all(gf_cli_leader *leader) {
    for (uint32_t i = 0; i < leader->run->ranks; i++) {
        struct gf_cli_member *member = &leader->members[i];
        if (!member->stopped && !member->ended)
            send_head(leader, i, (gf_cli_head){.kind = GF_CLI_STOP});
        member->stopped = true;
    }
}

void gf_cli_leader_hand_out(gf_cli_leader *leader) {
    const gf_cli_batch_run *run = leader->run;
    if (leader->stop) {
        stop_all(leader);
        return;
    }
    for (uint32_t i = 0; i < run->ranks; i++) {
        struct gf_cli_member *member = &leader->members[i];
        if (!member->asks || member->ended)
            continue;
        while (leader->next < run->to_run && is_own(leader, leader->next) &&
               !leader->members[0].ended)
            give(leader, 0, 1);
        if (leader->next == run->to_run) {
            member->asks = false;
            send_head(leader, i, (gf_cli_head){.kind = GF_CLI_NONE});
        } else if (may_hand_out(leader)) {
            give_share(leader, i);
        }
    }
}

/* ---- telling --------------------------------------------------------------------------------- */

static void tell(gf_cli_leader *leader, uint64_t item) {
    gf_cli_early *early = leader->all[item];
    const gf_cli_item_over *how = &early->how;
    leader->all[item] = NULL;
    leader->held -= early->size;
    leader->run->begun = true;
    if (!gf_cli_batch_tell(leader->run, &(gf_cli_over){.item = item,
                                                       .status = how->status,
                                                       .error = &how->error,
                                                       .report = &how->report,
                                                       .text = early->text,
                                                       .size = early->size,
                                                       .header = (size_t)how->header,
                                                       .rank = early->from}))
        leader->stop = true;
    free(early->text);
    free(early);
}

static gf_cli_early *early_of(gf_cli_leader *leader, uint32_t from, uint64_t item) {
    if (item >= leader->next || (leader->in_order && item < leader->told))
        gf_cli_ranks_abort("a rank told of an item that it was not given");
    gf_cli_early **early = &leader->all[item];
    if (!*early)
        *early = gf_cli_batch_need(calloc(1, sizeof **early));
    (*early)->from = from;
    return *early;
}

static void add_text(gf_cli_leader *leader, uint32_t from, const char *data, size_t size) {
    gf_cli_head head;
    gf_cli_letter_head(data, size, &head);
    gf_cli_early *early = early_of(leader, from, head.item);
    const size_t more = size - sizeof head;
    early->text = gf_cli_batch_need(realloc(early->text, early->size + more));
    memcpy(early->text + early->size, data + sizeof head, more);
    early->size += more;
    leader->held += more;
}

static void add_over(gf_cli_leader *leader, uint32_t from, const gf_cli_item_over *over) {
    const uint64_t item = over->head.item;
    gf_cli_early *early = early_of(leader, from, item);
    early->how = *over;
    early->over = true;
    if (!over->status && early->size + 1 > leader->largest)
        leader->largest = early->size + 1;
    if (!leader->in_order) {
        tell(leader, item);
        return;
    }
    /* Even before it is told. */
    if (over->status && leader->run->fail_fast)
        leader->stop = true;
    while (leader->told < leader->next && leader->all[leader->told] &&
           leader->all[leader->told]->over)
        tell(leader, leader->told++);
}

/* ---- listening ------------------------------------------------------------------------------- */

static void answer(gf_cli_leader *leader, uint32_t to, const gf_cli_ready *ready) {
    gf_cli_status message = {.head = {.kind = GF_CLI_ANSWER, .item = ready->head.item}};
    message.status =
        gf_cli_batch_note(leader->run, ready->head.item, ready->size, ready->time, &message.error);
    leader->send(leader->context, to, &message, sizeof message);
}

static void end_member(gf_cli_leader *leader, uint32_t from, const gf_cli_status *message) {
    leader->members[from].ended = true;
    leader->ended++;
    send_head(leader, from, (gf_cli_head){.kind = GF_CLI_LEAVE});
    if (!message->status)
        return;
    leader->stop = true;
    if (!leader->status)
        leader->status = gf_set_error(&leader->error, message->status, "rank %u on %s: %s", from,
                                      message->host, message->error.message);
}

void gf_cli_leader_hear(gf_cli_leader *leader, uint32_t from, const void *data, size_t size) {
    gf_cli_head head;
    gf_cli_letter_head(data, size, &head);
    if (head.kind == GF_CLI_ASK)
        leader->members[from].asks = true;
    else if (head.kind == GF_CLI_TEXT)
        add_text(leader, from, data, size);
    else if (head.kind == GF_CLI_READY)
        answer(leader, from, gf_cli_letter_check(data, size, sizeof(gf_cli_ready)));
    else if (head.kind == GF_CLI_OVER)
        add_over(leader, from, gf_cli_letter_check(data, size, sizeof(gf_cli_item_over)));
    else if (head.kind == GF_CLI_ENDED)
        end_member(leader, from, gf_cli_letter_check(data, size, sizeof(gf_cli_status)));
    else
        gf_cli_batch_misunderstood();
}

bool gf_cli_leader_is_over(const gf_cli_leader *leader) {
    return leader->ended == leader->run->ranks;
}

gf_status gf_cli_leader_end(gf_cli_leader *leader, gf_error *error) {
    const gf_status status = leader->status;
    /* After a stop some in between were never begun. */
    for (uint64_t i = leader->told; i < leader->next; i++) {
        gf_cli_early *early = leader->all[i];
        if (early && early->over) {
            tell(leader, i);
        } else if (early) {
            free(early->text);
            free(early);
        }
    }
    if (status)
        *error = leader->error;
    free(leader->all);
    free(leader->members);
    free(leader);
    return status;
}
