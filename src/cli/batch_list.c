/* One list of items for all ranks: rank 0 alone looks at files before any work, since others may
 * see them otherwise, or not yet. */
#include <stdlib.h>
#include <string.h>

#include "batch_ranks.h"

typedef struct gf_cli_list {
    gf_status status; /* of rank 0 */
    uint64_t items, bytes;
    gf_cli_screen screen;
} gf_cli_list;

/* Of each item whether it replaces, its input and, if there is one, its output. Writes them, unless
 * text is NULL; returns how many bytes they take. */
static size_t pack(const gf_cli_batch_run *run, char *text) {
    size_t used = 0;
    for (size_t i = 0; i < run->to_run; i++) {
        const gf_batch_item *item = &run->items[i];
        const char *names[] = {item->in, item->out};
        if (text)
            text[used] = item->replace;
        used++;
        for (size_t n = 0; n < 2 && names[n]; n++) {
            const size_t size = strlen(names[n]) + 1;
            if (text)
                memcpy(text + used, names[n], size);
            used += size;
        }
    }
    return used;
}

static void unpack(gf_cli_batch_run *run) {
    const char *at = run->list;
    for (size_t i = 0; i < run->to_run; i++) {
        gf_batch_item *item = &run->items[i];
        item->replace = *at++;
        item->in = at;
        at += strlen(at) + 1;
        if (!run->info->makes_image)
            continue;
        item->out = at;
        at += strlen(at) + 1;
    }
}

gf_status gf_cli_batch_send_list(gf_cli_batch_run *run, gf_status status, gf_error *error) {
    const gf_ranks *job = &gf_cli_this_rank()->job;
    gf_cli_list list = {.status = status};
    char *text = NULL;
    if (run->rank == 0 && !status) {
        list.items = run->to_run;
        list.bytes = pack(run, NULL);
        list.screen = gf_cli_screen_of(stdout);
        text = malloc((size_t)list.bytes + 1);
        if (text)
            pack(run, text);
        else
            list.status = gf_set_error(error, GF_FAILED, "%s: out of memory", run->info->name);
    }
    job->broadcast(job->context, &list, sizeof list);
    if (list.status) {
        free(text);
        return list.status;
    }
    run->screen = list.screen;
    if (run->rank > 0) {
        run->to_run = (size_t)list.items;
        run->items = gf_cli_batch_need(calloc((size_t)list.items + 1, sizeof *run->items));
        text = run->list = gf_cli_batch_need(malloc((size_t)list.bytes + 1));
    }
    job->broadcast(job->context, text, (size_t)list.bytes);
    if (run->rank > 0)
        unpack(run);
    else
        free(text);
    return GF_OK;
}
