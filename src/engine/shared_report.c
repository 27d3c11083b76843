/* One report of what several ranks did. */
#include <stdio.h>
#include <string.h>

#include "engine/task.h"
#include "stage.h"

/* Adds a text to those that are there, unless it is one of them. As many as there is room for. */
static void add_text(char *texts, size_t size, const char *separator, const char *text) {
    const size_t used = strlen(texts);
    if (!strstr(texts, text))
        (void)snprintf(texts + used, size - used, "%s%s", used ? separator : "", text);
}

static void add(gf_report *all, const gf_report *one) {
    if (!one->bands) /* there were fewer rows than ranks */
        return;
    add_text(all->backend, sizeof all->backend, "+", one->backend);
    add_text(all->device, sizeof all->device, "; ", one->device);
    if (!all->reason[0] || (one->device_failed && !all->device_failed))
        memcpy(all->reason, one->reason, sizeof all->reason);
    all->device_failed = all->device_failed || one->device_failed;
    all->verified = all->verified && one->verified;
    all->bands += one->bands;
    all->band_rows = one->band_rows > all->band_rows ? one->band_rows : all->band_rows;
    for (int i = 0; i < GF_STAGE_COUNT; i++) {
        all->busy[i].seconds += one->busy[i].seconds;
        all->busy[i].workers += one->busy[i].workers;
    }
    if (one->start_seconds > all->start_seconds)
        all->start_seconds = one->start_seconds;
}

void gf_task_share_report(gf_task *task) {
    const gf_ranks *ranks = task->ranks;
    gf_report *own = task->report;
    if (ranks->rank != 0) {
        ranks->send(ranks->context, own, sizeof *own);
        return;
    }
    gf_report all = {.in = own->in,
                     .out = own->out,
                     .in_bytes = own->in_bytes,
                     .brightness = own->brightness,
                     .ranks = ranks->count,
                     .verified = true,
                     .total_seconds = own->total_seconds};
    memcpy(all.advice, own->advice, sizeof all.advice);
    add(&all, own);
    for (uint32_t r = 1; r < ranks->count; r++) {
        gf_report one;
        ranks->receive(ranks->context, r, &one, sizeof one);
        add(&all, &one);
    }
    *own = all;
}
