#include "batch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "batch_ranks.h"

bool gf_cli_is_batch(const gf_filter_info *info, const gf_cli_line *line) {
    if (info->inputs != 1 || info->is_test)
        return false;
    if (info->makes_image)
        return line->options.out_dir;
    return line->operand_count > 1 || line->options.files_from || line->options.recursive ||
           line->options.shard;
}

/* ---- before any work ------------------------------------------------------------------------- */

static gf_status check_one_file(const gf_cli_batch_run *run, gf_error *error) {
    const char *name = run->line->options.plot ? "plot" : NULL;
    for (size_t i = 0; i < run->info->param_count; i++) {
        const gf_param *param = &run->info->params[i];
        if ((param->type == GF_PARAM_IMAGE || param->type == GF_PARAM_SAMPLES) &&
            gf_settings_given(run->line->filter, param->name))
            name = param->name;
    }
    if (name)
        return gf_set_error(error, GF_USAGE,
                            "--%s: names one file, and there may be many inputs; run them one by "
                            "one",
                            name);
    return GF_OK;
}

static gf_status check_standard_input(const gf_cli_batch_run *run, gf_error *error) {
    const char *list = run->line->options.files_from;
    size_t readers = list && strcmp(list, "-") == 0;
    for (size_t i = 0; i < run->line->operand_count; i++) {
        if (strcmp(run->line->operands[i], "-") != 0)
            continue;
        if (run->info->makes_image)
            return gf_set_error(
                error, GF_USAGE,
                "--out-dir: standard input has no name to call an output by; run it "
                "by itself");
        readers++;
    }
    if (readers > 1)
        return gf_set_error(error, GF_USAGE,
                            "%s: standard input can be read only once; name one of the files",
                            run->info->name);
    return GF_OK;
}

static gf_status check(gf_cli_batch_run *run, gf_error *error) {
    gf_status status = gf_cli_shard_parse(run->line->options.shard, &run->shard, error);
    if (!status)
        status = check_one_file(run, error);
    if (!status)
        status = check_standard_input(run, error);
    if (status)
        return status;
    const char *folder = run->line->options.out_dir;
    if (folder && !folder[0])
        return gf_set_error(error, GF_USAGE, "--out-dir '': must be a folder; . is this one");
    /* Of none: that refuses settings that suit no image. */
    return gf_run_batch(run->filter, run->line->filter, NULL, 0, NULL, error);
}

static gf_status open_folder(gf_cli_batch_run *run, gf_error *error) {
    const char *folder = run->line->options.out_dir;
    const bool sync = run->line->options.files.sync == GF_SYNC_ALWAYS;
    run->folders.sync = sync;
    gf_status status = GF_OK;
    if (!run->dry_run)
        status = gf_cli_folders_make(&run->folders, folder, error);
    if (!status)
        status = gf_cli_batch_digest(run, error);
    if (!status)
        status = gf_cli_journal_open(folder, run->shard.number, run->shard.of, sync, &run->journal,
                                     error);
    if (!status && run->line->options.resume && (!run->dry_run || access(folder, F_OK) == 0))
        status = gf_cli_journal_read(run->journal, error);
    return status;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* A batch puts each output in place when it is complete, before all reports are printed. */
static gf_status fail_report(const gf_cli_batch_run *run, gf_error *error) {
    const char *cause = strerror(run->out_cause);
    if (!run->outputs)
        return gf_set_error(error, GF_FAILED, "standard output: %s", cause);
    return gf_set_error(error, GF_FAILED, "standard output: %s; %" PRIu64 " output%s in place",
                        cause, run->done, run->done == 1 ? " is" : "s are");
}

static gf_status compute(gf_cli_batch_run *run, gf_error *error) {
    const gf_cli_options *given = &run->line->options;
    gf_cli_progress *progress = &run->progress;
    gf_batch_options options = {.engine = given->engine,
                                .files = given->files,
                                .in_order = !run->info->makes_image && run->ranks == 1,
                                .done = gf_cli_batch_done,
                                .context = run};
    if (run->info->makes_image) {
        /* What may be replaced is said of each. */
        options.files.force = false;
        options.files.ready = gf_cli_batch_ready;
        options.files.ready_context = run;
    } else {
        options.fail_fast = run->fail_fast; /* an output may be another run's success */
    }
    progress->total = run->inputs.count + run->inputs.failed;
    progress->ended = run->skipped + progress->failed;
    if (!run->quiet && run->rank == 0)
        progress->go_on = run->outputs ? "; --resume continues" : "";
    gf_cli_progress_begin(progress,
                          gf_cli_progress_choose(given->progress, given->quiet, run->ranks > 1));
    if (run->rank == 0)
        gf_cli_event_begin(progress, run->info->name);
    gf_cli_batch_watch(run, &options.files);
    gf_status status = GF_OK;
    if (run->ranks > 1)
        status = gf_cli_batch_on_ranks(run, &options, error);
    else
        status =
            gf_run_batch(run->filter, run->line->filter, run->items, run->to_run, &options, error);
    gf_cli_progress_end();
    if (run->rank > 0)
        return status;
    if (run->done) /* the last device failed on the way, or one rank could run none */
        run->begun = true;
    if (status && run->begun)
        gf_cli_batch_sum(run);
    if (status)
        return status;
    run->begun = true;
    if (!run->out_cause && fflush(stdout) != 0)
        run->out_cause = errno;
    if (run->out_cause)
        return fail_report(run, error);
    gf_cli_batch_sum(run);
    return progress->failed ? GF_FAILED : GF_OK;
}

/* All that looks at files before any work. */
static gf_status prepare(gf_cli_batch_run *run, gf_error *error) {
    const char *folder = run->line->options.out_dir;
    gf_status status = check(run, error);
    if (!status)
        status = gf_cli_gather(run->info->name, run->line, folder, &run->inputs, error);
    run->progress.failed = run->inputs.failed;
    if (!status && folder)
        status = gf_cli_outputs_name(run->line, &run->inputs, &run->outputs, error);
    if (!status)
        gf_cli_shard_take(&run->shard, &run->inputs, run->outputs);
    if (!status && folder)
        status = open_folder(run, error);
    if (!status)
        status = gf_cli_batch_choose(run, error);
    if ((run->fail_fast && run->progress.failed) || run->stopped)
        run->to_run = 0;
    return status;
}

/* List the outputs that would be written. */
static gf_status list(const gf_cli_batch_run *run) {
    for (size_t i = 0; i < run->to_run && run->outputs; i++)
        gf_cli_list_output(run->items[i].out);
    if (!run->quiet)
        fprintf(stderr, "dry run: %zu to do, %" PRIu64 " failed, %" PRIu64 " skipped\n",
                run->to_run, run->progress.failed, run->skipped + run->inputs.skipped);
    return run->progress.failed ? GF_FAILED : GF_OK;
}

gf_status gf_cli_batch(const gf_filter *filter, const gf_cli_line *line, gf_error *error) {
    const gf_cli_options *options = &line->options;
    gf_cli_batch_run run = {.filter = filter,
                            .info = gf_filter_describe(filter),
                            .line = line,
                            .json = options->json,
                            .csv = options->csv,
                            .quiet = options->quiet,
                            .verbose = options->verbose,
                            .fail_fast = options->fail_fast,
                            .dry_run = options->files.dry_run};
    const gf_ranks *job = &gf_cli_this_rank()->job;
    run.rank = job->rank;
    run.ranks = job->count;
    pthread_mutex_init(&run.telling, NULL);
    gf_status status = run.rank == 0 ? prepare(&run, error) : GF_OK;
    if (run.dry_run) {
        status = run.rank == 0 && !status ? list(&run) : status;
    } else {
        if (run.ranks > 1)
            status = gf_cli_batch_send_list(&run, status, error);
        if (!status)
            status = compute(&run, error);
    }
    gf_cli_journal_close(run.journal);
    /* Other shards have seen these folders, and count on them. */
    if (!run.begun && !run.shard.of)
        gf_cli_folders_remove(&run.folders);
    gf_cli_folders_free(&run.folders);
    gf_cli_outputs_free(run.outputs, run.inputs.count);
    gf_cli_inputs_free(&run.inputs);
    free(run.items);
    free(run.which);
    free(run.header);
    free(run.list);
    free(run.parts);
    pthread_mutex_destroy(&run.telling);
    return status;
}
