/* What is told of a batch: of each input when it is over, and in the end. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "batch_run.h"
#include "commands.h"
#include "report.h"

static bool same_columns(const gf_table *a, const gf_table *b) {
    bool same = a->column_count == b->column_count;
    for (size_t i = 0; same && i < a->column_count; i++)
        same = strcmp(a->columns[i].name, b->columns[i].name) == 0;
    return same;
}

static gf_status tell_csv(gf_cli_batch_run *run, const char *path, const gf_result *result,
                          gf_error *error) {
    const gf_table *table = gf_result_table(result, 0);
    if (run->has_columns && !same_columns(&run->columns, table))
        return gf_cli_fail(error, GF_FAILED,
                           "%s: its channels are not those of the files before, and a CSV table "
                           "has one header; measure it by itself, or use --json",
                           path);
    gf_cli_report_csv(stdout, result, path, !run->has_columns);
    if (!run->has_columns) {
        /* Names of columns are constants: they outlive the result. */
        run->columns = *table;
        run->has_columns = true;
    }
    return GF_OK;
}

static gf_status tell(gf_cli_batch_run *run, size_t i, const gf_batch_done *done, gf_error *error) {
    const char *path = run->inputs.list[i].path;
    const gf_cli_run one = {.info = run->info,
                            .settings = run->line->filter,
                            .inputs = &path,
                            .output = run->outputs ? run->outputs[i].path : NULL,
                            .report = done->report,
                            .result = done->result};
    gf_status status = GF_OK;
    if (run->json || run->csv || done->result || run->verbose)
        gf_cli_progress_hide();
    if (run->json) {
        gf_cli_report_json(stdout, &one);
    } else if (run->csv) {
        status = tell_csv(run, path, done->result, error);
    } else if (done->result && !run->quiet) {
        fputs(run->done ? "\n" : "", stdout);
        gf_cli_report_text(stdout, &one);
    }
    if (run->verbose && !status) {
        fflush(stdout);
        gf_cli_report_run(&one, true);
    }
    return status;
}

/* The record cannot be written: that keeps no output from being made. */
static void tell_trouble(const gf_cli_batch_run *run) {
    gf_error error;
    if (!run->outputs || !gf_cli_journal_trouble(run->journal, &error) || run->quiet)
        return;
    gf_cli_progress_hide();
    gf_command_complain(&error);
}

/* gf_batch_options.done */
bool gf_cli_batch_done(void *context, const gf_batch_done *done) {
    gf_cli_batch_run *run = context;
    gf_cli_progress *progress = &run->progress;
    const size_t i = run->which[done->item];
    gf_error error = {0};
    gf_status status = done->status;
    errno = 0;
    if (status)
        error = *done->error;
    const bool elsewhere = status && run->outputs && gf_cli_batch_is_made_elsewhere(run, i);
    if (!status)
        status = tell(run, i, done, &error);
    tell_trouble(run);
    progress->ended++;
    progress->bytes += run->inputs.list[i].bytes;
    if (elsewhere) {
        run->skipped++;
    } else if (status) {
        gf_cli_progress_hide();
        gf_command_complain(&error);
        progress->failed++;
    } else {
        run->done++;
        progress->pixels += (double)done->report->in.width * (double)done->report->in.height;
    }
    if (!run->out_cause && ferror(stdout))
        run->out_cause = errno ? errno : EIO;
    gf_cli_progress_draw(progress);
    return !run->out_cause && !(run->fail_fast && progress->failed);
}

void gf_cli_batch_sum(const gf_cli_batch_run *run) {
    const gf_cli_progress *progress = &run->progress;
    const double seconds = gf_cli_now() - progress->began;
    const double rate = progress->pixels * 1e-6 / seconds;
    const uint64_t all = run->inputs.count + run->inputs.failed;
    const uint64_t rest = all - run->done - progress->failed - run->skipped;
    if (run->quiet)
        return;
    fflush(stdout);
    fprintf(stderr, "%" PRIu64 " done, %" PRIu64 " failed, %" PRIu64 " skipped", run->done,
            progress->failed, run->skipped);
    if (rest)
        fprintf(stderr, ", %" PRIu64 " not begun", rest);
    fprintf(stderr, " in %.1f s, %.*f MP/s\n", seconds, rate < 9.95 ? 1 : 0, rate);
}
