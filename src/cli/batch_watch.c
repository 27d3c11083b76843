/* What of a batch is under way: images that take longer than a moment move its bar, too. */
#include <stdlib.h>

#include "batch_run.h"

static double bytes_of(const gf_cli_batch_run *run, uint64_t item) {
    return (double)run->inputs.list[run->which[item]].bytes;
}

static double pixels_of(const gf_format *in) {
    return (double)in->width * (double)in->height;
}

/* gf_file_options.progress: from several threads, of an item each. */
static void on_progress(void *context, const gf_progress *now) {
    gf_cli_batch_run *run = context;
    gf_cli_progress *progress = &run->progress;
    const float part = (float)now->done / (float)now->of;
    pthread_mutex_lock(&run->telling);
    const double more = (double)part - (double)run->parts[now->item];
    run->parts[now->item] = part;
    progress->under_way += more * bytes_of(run, now->item);
    progress->pixels_under_way += more * pixels_of(&now->in);
    gf_cli_progress_draw(progress);
    pthread_mutex_unlock(&run->telling);
}

void gf_cli_batch_watch(gf_cli_batch_run *run, gf_file_options *files) {
    if (run->progress.show == GF_CLI_SHOW_NOTHING || run->ranks > 1)
        return;
    /* Without memory for it the bar moves from file to file. */
    run->parts = calloc(run->to_run + 1, sizeof *run->parts);
    if (run->parts) {
        files->progress = on_progress;
        files->progress_context = run;
    }
}

void gf_cli_batch_watch_end(gf_cli_batch_run *run, uint64_t item, const gf_format *in) {
    gf_cli_progress *progress = &run->progress;
    const double part = run->parts ? (double)run->parts[item] : 0;
    progress->under_way -= part * bytes_of(run, item);
    progress->pixels_under_way -= part * pixels_of(in);
    progress->done += bytes_of(run, item);
}
