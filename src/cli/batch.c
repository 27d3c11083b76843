#include "batch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "hash.h"
#include "journal.h"
#include "outputs.h"
#include "progress.h"
#include "report.h"

typedef struct gf_cli_batch_run {
    const gf_filter *filter;
    const gf_filter_info *info;
    const gf_cli_line *line;
    bool json, csv, quiet, verbose, fail_fast;
    gf_cli_inputs inputs;
    gf_cli_output *outputs;  /* NULL for a filter that measures */
    gf_batch_item *items;    /* what is to be run, */
    bool *ended;             /* told of */
    size_t *which, to_run;   /* and which inputs that is */
    gf_cli_journal *journal; /* NULL for a filter that measures */
    uint64_t settings;       /* digest of all that decides what is made of an input */
    uint64_t done, skipped;  /* what failed is counted in the progress */
    gf_cli_progress progress;
    gf_table columns; /* of the CSV */
    bool has_columns;
    int out_cause; /* why standard output failed, an errno */
} gf_cli_batch_run;

bool gf_cli_is_batch(const gf_filter_info *info, const gf_cli_line *line) {
    if (info->inputs != 1 || info->is_test)
        return false;
    if (info->makes_image)
        return gf_settings_given(line->common, "out-dir");
    return line->operand_count > 1 || gf_settings_given(line->common, "files-from") ||
           gf_settings_given(line->common, "recursive");
}

/* ---- before any work ------------------------------------------------------------------------- */

static gf_status check_one_file(const gf_cli_batch_run *run, gf_error *error) {
    const char *name = gf_settings_given(run->line->common, "plot") ? "plot" : NULL;
    for (size_t i = 0; i < run->info->param_count; i++) {
        const gf_param *param = &run->info->params[i];
        if ((param->type == GF_PARAM_IMAGE || param->type == GF_PARAM_SAMPLES) &&
            gf_settings_given(run->line->filter, param->name))
            name = param->name;
    }
    if (name)
        return gf_cli_fail(error, GF_USAGE,
                           "--%s: names one file, and there may be many inputs; run them one by "
                           "one",
                           name);
    return GF_OK;
}

static gf_status check_standard_input(const gf_cli_batch_run *run, gf_error *error) {
    const char *list = gf_settings_text(run->line->common, "files-from");
    size_t readers = list && strcmp(list, "-") == 0;
    for (size_t i = 0; i < run->line->operand_count; i++) {
        if (strcmp(run->line->operands[i], "-") != 0)
            continue;
        if (run->info->makes_image)
            return gf_cli_fail(error, GF_USAGE,
                               "--out-dir: standard input has no name to call an output by; run it "
                               "by itself");
        readers++;
    }
    if (readers > 1)
        return gf_cli_fail(error, GF_USAGE,
                           "%s: standard input can be read only once; name one of the files",
                           run->info->name);
    return GF_OK;
}

static gf_status check(const gf_cli_batch_run *run, gf_error *error) {
    const gf_settings *common = run->line->common;
    gf_status status = gf_cli_check_common(run->info, run->line, error);
    if (!status)
        status = check_one_file(run, error);
    if (!status)
        status = check_standard_input(run, error);
    if (status)
        return status;
    if (gf_settings_flag(common, "keep-going") && run->fail_fast)
        return gf_cli_fail(error, GF_USAGE, "--fail-fast: not together with --keep-going");
    if (gf_settings_flag(common, "null") && !gf_settings_given(common, "files-from"))
        return gf_cli_fail(error, GF_USAGE, "--null: is for --files-from");
    if (!run->line->operand_count && !gf_settings_given(common, "files-from"))
        return gf_cli_fail(error, GF_USAGE, "%s: no inputs are named; see 'gpufilter %s --help'",
                           run->info->name, run->info->name);
    /* Of none: that refuses settings that suit no image. */
    return gf_run_batch(run->filter, run->line->filter, NULL, 0, NULL, error);
}

/* What does not change a result (backend, threads, bands) is left out. */
static gf_status digest_settings(gf_cli_batch_run *run, gf_error *error) {
    static const char *const names[] = {"format", "compression"};
    const gf_settings *common = run->line->common;
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        return gf_cli_fail(error, GF_FAILED, "%s: out of memory", run->info->name);
    fprintf(file, "%s ", run->info->name);
    gf_cli_report_settings(file, run->info, run->line->filter);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = gf_settings_text(common, names[i]);
        fprintf(file, " %s=%s", names[i], value ? value : "");
    }
    fprintf(file, " strip=%d", gf_settings_flag(common, "strip"));
    if (fclose(file) != 0) {
        free(text);
        return gf_cli_fail(error, GF_FAILED, "%s: out of memory", run->info->name);
    }
    run->settings = gf_cli_hash_text(GF_CLI_HASH_START, text);
    free(text);
    return GF_OK;
}

static gf_status open_folder(gf_cli_batch_run *run, gf_error *error) {
    const gf_settings *common = run->line->common;
    const char *folder = gf_settings_text(common, "out-dir");
    gf_status status = gf_cli_make_folder(folder, error);
    if (!status)
        status = digest_settings(run, error);
    if (!status)
        status = gf_cli_journal_open(
            folder, gf_settings_flag(common, "resume") || gf_settings_flag(common, "force"),
            run->quiet, &run->journal, error);
    return status;
}

/* ---- which are run --------------------------------------------------------------------------- */

/* By its name, size and time: another file may get the same output in the next run. */
static uint64_t digest_input(const gf_cli_input *input) {
    const char *slash = strrchr(input->path, '/');
    uint64_t hash = gf_cli_hash_text(GF_CLI_HASH_START, slash ? slash + 1 : input->path);
    hash = gf_cli_hash(hash, &input->bytes, sizeof input->bytes);
    return gf_cli_hash(hash, &input->time, sizeof input->time);
}

/* The output was made of this input, as it is now, with these settings. An image that replaced
 * itself is as it should be: noted as done, or no longer what it was when it was begun. */
static bool is_finished(const gf_cli_batch_run *run, const gf_cli_input *input,
                        const gf_cli_output *output, const gf_cli_made *made) {
    const bool itself =
        input->there && input->device == output->device && input->inode == output->inode;
    const bool same = made->input == digest_input(input);
    if (made->settings != run->settings)
        return false;
    if (itself)
        return made->kind == GF_CLI_DONE || !same;
    return made->kind == GF_CLI_DONE && same && output->time >= input->time;
}

static void note(gf_cli_batch_run *run, size_t i, gf_cli_made_kind kind) {
    const gf_cli_output *output = &run->outputs[i];
    gf_cli_made made = {.kind = kind,
                        .settings = run->settings,
                        .input = digest_input(&run->inputs.list[i]),
                        .name = output->path + output->below};
    struct stat info;
    if (kind == GF_CLI_DONE) {
        if (stat(output->path, &info) != 0)
            return;
        made.size = (uint64_t)info.st_size;
        made.time = gf_cli_time(&info);
    }
    /* What it was before, it still is. */
    const gf_cli_made *before = gf_cli_journal_find(run->journal, made.name);
    if (kind == GF_CLI_FAILED && before)
        made = *before;
    gf_cli_journal_add(run->journal, &made);
}

typedef enum gf_fate { FATE_RUN, FATE_REPLACE, FATE_SKIP, FATE_FAIL } gf_fate;

static gf_fate decide(const gf_cli_batch_run *run, size_t i, gf_error *error) {
    const gf_settings *common = run->line->common;
    const gf_cli_output *output = &run->outputs[i];
    const bool force = gf_settings_flag(common, "force");
    if (!output->there)
        return FATE_RUN;
    if (!gf_settings_flag(common, "resume")) {
        if (force)
            return FATE_RUN;
        gf_cli_fail(error, GF_FAILED,
                    "%s: exists already; use --force to replace it, or --resume to skip what is "
                    "finished",
                    output->path);
        return FATE_FAIL;
    }
    const gf_cli_made *made = gf_cli_journal_find(run->journal, output->path + output->below);
    const bool ours =
        made &&
        (made->kind == GF_CLI_BEGUN ||
         (made->kind == GF_CLI_DONE && made->size == output->size && made->time == output->time));
    if (ours && is_finished(run, &run->inputs.list[i], output, made))
        return FATE_SKIP;
    if (ours || force)
        return FATE_REPLACE;
    gf_cli_fail(error, GF_FAILED,
                "%s: exists already, and is not as a run into this folder left it; use --force to "
                "replace it",
                output->path);
    return FATE_FAIL;
}

/* The folder of an output, unless it is that of the one before. */
static gf_fate make_folder(const gf_cli_output *output, const char **last, size_t *last_length,
                           gf_error *error) {
    const size_t length = (size_t)(strrchr(output->path, '/') - output->path);
    if (length < output->below ||
        (*last && *last_length == length && memcmp(*last, output->path, length) == 0))
        return FATE_RUN;
    char *folder = strndup(output->path, length);
    if (!folder) {
        gf_cli_fail(error, GF_FAILED, "%s: out of memory", output->path);
        return FATE_FAIL;
    }
    const gf_status status = gf_cli_make_folder(folder, error);
    free(folder);
    if (status)
        return FATE_FAIL;
    *last = output->path;
    *last_length = length;
    return FATE_RUN;
}

static gf_status choose(gf_cli_batch_run *run, gf_error *error) {
    const gf_cli_inputs *inputs = &run->inputs;
    const char *last = NULL;
    size_t last_length = 0;
    run->items = calloc(inputs->count + 1, sizeof *run->items);
    run->which = calloc(inputs->count + 1, sizeof *run->which);
    run->ended = calloc(inputs->count + 1, sizeof *run->ended);
    if (!run->items || !run->which || !run->ended)
        return gf_cli_fail(error, GF_FAILED, "%s: out of memory", run->info->name);
    for (size_t i = 0; i < inputs->count; i++) {
        gf_error one = {0};
        gf_fate fate = run->outputs ? decide(run, i, &one) : FATE_RUN;
        if (run->outputs && (fate == FATE_RUN || fate == FATE_REPLACE) &&
            make_folder(&run->outputs[i], &last, &last_length, &one) == FATE_FAIL)
            fate = FATE_FAIL;
        if (fate == FATE_FAIL) {
            gf_command_complain(&one);
            run->progress.failed++;
            if (run->fail_fast)
                break;
        } else if (fate == FATE_SKIP) {
            run->skipped++;
        } else {
            run->items[run->to_run] =
                (gf_batch_item){.in = inputs->list[i].path,
                                .out = run->outputs ? run->outputs[i].path : NULL,
                                .replace = fate == FATE_REPLACE};
            run->which[run->to_run++] = i;
            run->progress.total_bytes += inputs->list[i].bytes;
            if (run->outputs)
                note(run, i, GF_CLI_BEGUN);
        }
    }
    if (run->outputs)
        gf_cli_journal_flush(run->journal);
    return GF_OK;
}

/* ---- what is told of each -------------------------------------------------------------------- */

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

/* gf_batch_options.done */
static bool on_done(void *context, const gf_batch_done *done) {
    gf_cli_batch_run *run = context;
    gf_cli_progress *progress = &run->progress;
    const size_t i = run->which[done->item];
    gf_error error = {0};
    gf_status status = done->status;
    errno = 0;
    if (status)
        error = *done->error;
    if (run->outputs)
        note(run, i, status ? GF_CLI_FAILED : GF_CLI_DONE);
    run->ended[done->item] = true;
    if (!status)
        status = tell(run, i, done, &error);
    progress->ended++;
    progress->bytes += run->inputs.list[i].bytes;
    if (status) {
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

/* ---- all ------------------------------------------------------------------------------------- */

static void tell_sum(const gf_cli_batch_run *run) {
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

static gf_status compute(gf_cli_batch_run *run, gf_error *error) {
    const gf_settings *common = run->line->common;
    gf_cli_progress *progress = &run->progress;
    const gf_batch_options options = {.engine = gf_cli_engine_options(common),
                                      .files = gf_cli_file_options(common),
                                      .in_order = !run->info->makes_image,
                                      .done = on_done,
                                      .context = run};
    progress->total = run->inputs.count + run->inputs.failed;
    progress->ended = run->skipped + progress->failed;
    gf_cli_progress_begin(progress, !run->quiet && !gf_settings_flag(common, "no-progress"));
    gf_status status = GF_OK;
    if (!(run->fail_fast && progress->failed))
        status =
            gf_run_batch(run->filter, run->line->filter, run->items, run->to_run, &options, error);
    gf_cli_progress_hide();
    if (status)
        return status;
    if (!run->out_cause && fflush(stdout) != 0)
        run->out_cause = errno;
    if (run->out_cause)
        return gf_cli_fail(error, GF_FAILED, "standard output: %s", strerror(run->out_cause));
    tell_sum(run);
    return progress->failed ? GF_FAILED : GF_OK;
}

gf_status gf_cli_batch(const gf_filter *filter, const gf_cli_line *line, gf_error *error) {
    const gf_settings *common = line->common;
    gf_cli_batch_run run = {.filter = filter,
                            .info = gf_filter_describe(filter),
                            .line = line,
                            .json = gf_settings_flag(common, "json"),
                            .csv = gf_settings_flag(common, "csv"),
                            .quiet = gf_settings_flag(common, "quiet"),
                            .verbose = gf_settings_flag(common, "verbose"),
                            .fail_fast = gf_settings_flag(common, "fail-fast")};
    const char *folder = gf_settings_text(common, "out-dir");
    gf_status status = check(&run, error);
    if (!status)
        status = gf_cli_gather(line, folder, &run.inputs, error);
    run.progress.failed = run.inputs.failed;
    if (!status && folder)
        status = gf_cli_outputs_name(line, &run.inputs, &run.outputs, error);
    if (!status && folder)
        status = open_folder(&run, error);
    if (!status)
        status = choose(&run, error);
    if (!status)
        status = compute(&run, error);
    gf_cli_journal_close(run.journal);
    gf_cli_outputs_free(run.outputs, run.inputs.count);
    gf_cli_inputs_free(&run.inputs);
    free(run.items);
    free(run.which);
    free(run.ended);
    return status;
}
