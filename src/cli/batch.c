/* Filter command on many files: selection of the files to run, progress, reports and summary. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inputs.h"
#include "progress.h"
#include "ranks.h"
#include "report.h"

/* Backend and devices that ran images. */
typedef struct batch_engine {
    char name[256];
    uint64_t images;
} batch_engine;

enum { MAX_ENGINES = 8 }; /* listed in the summary */

typedef struct batch_run {
    const gf_filter *filter;
    const gf_filter_info *info;
    const gf_cli_line *line;
    const gf_cli_options *options;  /* of the line */
    uint64_t shard, shards;         /* inputs shard, shard + shards, ..., counted from 1 */
    gf_cli_inputs inputs;           /* of all shards */
    gf_cli_output *outputs;         /* one per input; NULL for a filter that measures */
    uint64_t files;                 /* inputs of the shard, plus names that could not be read */
    gf_batch_item *items;           /* `count` items to run */
    size_t *input_index, count;     /* index of the input of each item */
    gf_cli_directories directories; /* created for the outputs */
    gf_cli_screen screen;           /* for reports */

    pthread_mutex_t lock; /* protects the members below, and printing while images run */
    uint64_t existing;    /* outputs that exist without --force, and the first of them */
    const char *first_existing;
    bool begun;    /* an item was reported, or the whole batch succeeded */
    bool stopped;  /* a cause that affects all outputs, such as a full disk */
    int out_cause; /* errno of a failed write to standard output */
    char *header;  /* of the CSV table; NULL: not yet printed */
    gf_cli_progress progress;
    float *parts;           /* completed fraction of each running item; NULL: not tracked */
    uint64_t done, skipped; /* progress.failed counts the failures */
    uint64_t in_bytes, out_bytes;
    gf_cli_summary summary;
    batch_engine engines[MAX_ENGINES];
} batch_run;

/* ---- checks before the run ------------------------------------------------------------------- */

static gf_status batch_parse_shard(batch_run *run, gf_error *error) {
    enum { MAX_SHARDS = 1000000 };
    const char *text = run->options->shard;
    if (!text)
        return GF_OK;
    if (!text[strspn(text, "0123456789/")]) { /* strtoull also accepts signs and blanks */
        char *end;
        run->shard = strtoull(text, &end, 10);
        run->shards = *end == '/' ? strtoull(end + 1, &end, 10) : 0;
        if (!*end && run->shard >= 1 && run->shard <= run->shards && run->shards <= MAX_SHARDS)
            return GF_OK;
    }
    return gf_set_error(
        error, GF_USAGE,
        "--shard '%s': must be K/N with 1 <= K <= N <= %d, such as 1/4 for the first "
        "of four shards",
        text, MAX_SHARDS);
}

static gf_status batch_check_standard_input(const batch_run *run, gf_error *error) {
    const char *list = run->options->files_from;
    size_t readers = list && strcmp(list, "-") == 0;
    for (size_t i = 0; i < run->line->operand_count; i++) {
        if (strcmp(run->line->operands[i], "-") != 0)
            continue;
        if (run->info->makes_image)
            return gf_set_error(
                error, GF_USAGE,
                "--out-dir: standard input has no file name for its output; filter it "
                "in a separate run");
        readers++;
    }
    if (readers > 1)
        return gf_set_error(error, GF_USAGE,
                            "%s: standard input can be read only once; name one of the files",
                            run->info->name);
    return GF_OK;
}

static gf_status batch_check(batch_run *run, gf_error *error) {
    const char *directory = run->options->out_dir;
    gf_status status = batch_parse_shard(run, error);
    if (!status && run->options->plot)
        status = gf_set_error(error, GF_USAGE,
                              "--plot: not supported for several inputs; run the filter once per "
                              "input");
    if (!status)
        status = batch_check_standard_input(run, error);
    if (!status && directory && !directory[0])
        status = gf_set_error(error, GF_USAGE,
                              "--out-dir '': must not be empty; . is the current directory");
    if (status)
        return status;
    /* Run no items: this rejects settings that are invalid for all images or for batches. */
    gf_step steps[GF_CLI_MAX_STEPS];
    const gf_job job = gf_cli_job_of(run->filter, run->line->filter, steps);
    return gf_run_batch(&job, NULL, 0, NULL, error);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Return whether the errno of output i also makes all other outputs fail. */
static bool batch_stops_all(const batch_run *run, size_t i, int cause) {
    if (cause == ENOSPC || cause == EDQUOT || cause == EROFS)
        return true;
    /* Subdirectories of --out-dir may be writable when --out-dir is not. */
    const gf_cli_input *input = &run->inputs.list[i];
    return cause && run->outputs && !strchr(input->path + input->relative, '/') &&
           access(run->options->out_dir, W_OK | X_OK) != 0;
}

/* Count and print the error of input i, with --json also its record. Print a cause that affects all
 * outputs, such as a full disk, once. Before the run, count existing outputs. */
static void batch_fail_item(batch_run *run, size_t i, gf_error *error) {
    const char *output = run->outputs ? run->outputs[i].path : NULL;
    run->progress.failed++;
    if (run->options->json)
        gf_cli_report_json_failure(stdout, run->info, run->inputs.list[i].path, output, error);
    if (error->cause == EEXIST && !run->begun) {
        run->first_existing = run->existing++ ? run->first_existing : output;
        return;
    }
    const bool stop = batch_stops_all(run, i, error->cause);
    if (stop && run->stopped)
        return;
    if (stop && !run->options->files.dry_run)
        gf_set_error(error, error->status, "%s; no more files are started, --resume continues",
                     error->message);
    run->stopped = run->stopped || stop;
    gf_cli_print_error(error);
}

/* ---- selection of items ---------------------------------------------------------------------- */

/* Dry run: check for errors of an output, except for an existing file. */
static gf_status batch_check_item(const char *in, const gf_cli_output *output, gf_error *error) {
    struct stat info;
    if (access(in, R_OK) != 0)
        return gf_set_error(error, GF_FAILED, "%s: cannot open: %s", in, strerror(errno));
    if (stat(output->path, &info) == 0)
        return S_ISDIR(info.st_mode)
                   ? gf_set_error(error, GF_FAILED, "%s: is a directory", output->path)
                   : GF_OK;
    return lstat(output->path, &info) == 0
               ? gf_set_error(error, GF_FAILED, "%s: is a dangling symbolic link", output->path)
               : GF_OK;
}

/* Fill in the item of an input. *skip: --resume finds its output finished. */
static gf_status batch_choose_one(batch_run *run, size_t i, gf_batch_item *item, bool *skip,
                                  gf_error *error) {
    const gf_cli_options *options = run->options;
    const gf_cli_input *input = &run->inputs.list[i];
    *item = (gf_batch_item){.in = input->path};
    *skip = false;
    if (!run->outputs)
        return GF_OK;
    const gf_cli_output *output = &run->outputs[i];
    item->out = (const char *const *)&output->path;
    if (options->files.dry_run && batch_check_item(input->path, output, error))
        return GF_FAILED;
    *skip = options->resume && gf_cli_is_finished(&output->state, input);
    if (*skip)
        return GF_OK;
    /* As for a single image, --force also replaces files created while the batch runs. */
    item->replace = options->files.force || (options->resume && output->state.exists);
    if (output->state.exists && !item->replace) {
        gf_set_error(error, GF_FAILED, "%s: already exists", output->path);
        error->cause = EEXIST;
        return GF_FAILED;
    }
    const char *slash = strrchr(output->path, '/');
    return gf_cli_directories_make(&run->directories, output->path, (size_t)(slash - output->path),
                                   error);
}

/* Fill in the items. Print errors of inputs that cannot run, and count skipped ones. */
static gf_status batch_choose(batch_run *run, gf_error *error) {
    const gf_cli_inputs *inputs = &run->inputs;
    size_t i = run->shard - 1;
    run->files = inputs->failed + (inputs->count + run->shards - 1 - i) / run->shards;
    run->items = calloc(inputs->count + 1, sizeof *run->items);
    run->input_index = calloc(inputs->count + 1, sizeof *run->input_index);
    if (!run->items || !run->input_index)
        return gf_set_error(error, GF_FAILED, "%s: out of memory", run->info->name);
    for (; i < inputs->count; i += run->shards) {
        gf_error one = {0};
        bool skip;
        if (batch_choose_one(run, i, &run->items[run->count], &skip, &one)) {
            batch_fail_item(run, i, &one);
            if (run->options->fail_fast || run->stopped) {
                run->count = 0;
                break;
            }
        } else if (skip) {
            run->skipped++;
        } else {
            run->input_index[run->count++] = i;
            run->progress.work += (double)inputs->list[i].bytes;
        }
    }
    if (!run->existing)
        return GF_OK;
    gf_set_error(error, GF_FAILED,
                 "%s: already exists (1 of %" PRIu64
                 " existing outputs); use --force to replace "
                 "them, or --resume to skip finished outputs",
                 run->first_existing, run->existing);
    if (run->existing == run->files)
        return GF_FAILED;
    gf_cli_print_error(error);
    *error = (gf_error){0};
    return GF_OK;
}

/* Collect inputs, name outputs, and select items. Rank 0 only. */
static gf_status batch_prepare(batch_run *run, gf_error *error) {
    const char *directory = run->options->out_dir;
    gf_status status = batch_check(run, error);
    if (!status)
        status = gf_cli_gather(run->info->name, run->line, &run->inputs, error);
    run->progress.failed = run->inputs.failed;
    if (!status && directory)
        status = gf_cli_outputs_name(run->line, &run->inputs, &run->outputs, error);
    run->directories.sync = run->options->files.sync == GF_SYNC_ALWAYS;
    run->directories.dry_run = run->options->files.dry_run;
    if (!status && directory && !run->directories.dry_run)
        status = gf_cli_directories_make(&run->directories, directory, strlen(directory), error);
    return status ? status : batch_choose(run, error);
}

/* ---- progress -------------------------------------------------------------------------------- */

/* Implement gf_cli_shared_batch.cost: the file size. */
static uint64_t batch_cost(void *context, uint64_t item) {
    const batch_run *run = context;
    return run->inputs.list[run->input_index[item]].bytes;
}

static double batch_pixels(const gf_format *in) {
    return (double)in->width * (double)in->height;
}

/* Implement gf_file_options.progress. Several threads call it, each for its own item. */
static bool batch_on_progress(void *context, const gf_progress *now) {
    batch_run *run = context;
    const float part = (float)now->done / (float)now->total;
    pthread_mutex_lock(&run->lock);
    const double more = (double)part - (double)run->parts[now->item];
    run->parts[now->item] = part;
    run->progress.running += more * (double)batch_cost(run, now->item);
    run->progress.pixels_running += more * batch_pixels(&now->in);
    gf_cli_progress_draw(&run->progress);
    pthread_mutex_unlock(&run->lock);
    return true;
}

/* Replace the completed fraction of an item by the whole item. */
static void batch_end_progress(batch_run *run, uint64_t item, const gf_format *in) {
    gf_cli_progress *progress = &run->progress;
    const double part = run->parts ? (double)run->parts[item] : 0;
    const double bytes = (double)batch_cost(run, item);
    progress->running -= part * bytes;
    progress->pixels_running -= part * batch_pixels(in);
    progress->done += bytes;
    progress->ended++;
}

/* ---- reports --------------------------------------------------------------------------------- */

static gf_cli_run batch_describe(const batch_run *run, const gf_batch_item *item, uint32_t rank,
                                 const gf_outcome *made) {
    const gf_result *result = made->results ? made->results[0] : NULL;
    return (gf_cli_run){.info = run->info,
                        .settings = run->line->filter,
                        .inputs = &item->in,
                        .page = run->options->files.page == GF_ALL_PAGES && result ? "all" : NULL,
                        .output = item->out ? item->out[0] : NULL,
                        .report = &made->report,
                        .steps = made->steps,
                        .result = result,
                        .screen = &run->screen,
                        .batch = true,
                        .rank = rank,
                        .ranks = gf_cli_ranks()->count};
}

/* Implement gf_cli_shared_batch.render. */
static gf_status batch_render(void *context, const gf_batch_item *item, const gf_batch_done *done,
                              gf_cli_text *text, gf_error *error) {
    const batch_run *run = context;
    const gf_cli_run one = batch_describe(run, item, gf_cli_ranks()->rank, done->outcome);
    *text = (gf_cli_text){0};
    if (done->status) {
        *error = *done->error;
        return done->status;
    }
    FILE *file = open_memstream(&text->text, &text->size);
    const bool whole = file && !gf_cli_report(file, &one, run->options, error) && !ferror(file);
    if (file && fclose(file) == 0 && whole)
        return GF_OK;
    free(text->text);
    *text = (gf_cli_text){0};
    return gf_set_error(error, GF_FAILED, "%s: out of memory for its report", item->in);
}

/* Print the header of the CSV table once. Fail if the header of a later image differs. */
static gf_status batch_print_header(batch_run *run, const char *path, const char *text,
                                    size_t length, gf_error *error) {
    if (!run->header) {
        run->header = strndup(text, length);
        if (!run->header)
            return gf_set_error(error, GF_FAILED, "%s: out of memory", path);
        fputs(run->header, stdout);
    } else if (strlen(run->header) != length || memcmp(run->header, text, length) != 0) {
        return gf_set_error(error, GF_FAILED,
                            "%s: its columns differ from those of the first file, and a CSV table "
                            "has one header; run it separately, or use --json",
                            path);
    }
    return GF_OK;
}

static gf_status batch_print(batch_run *run, const gf_cli_finished *finished, gf_error *error) {
    const gf_batch_item *item = &run->items[finished->item];
    const gf_cli_text *text = &finished->text;
    const gf_cli_options *options = run->options;
    if (text->size || options->verbose)
        gf_cli_bar_hide();
    const char *end = text->size && options->csv ? memchr(text->text, '\n', text->size) : NULL;
    const size_t header = end ? (size_t)(end + 1 - text->text) : 0;
    if (end && batch_print_header(run, item->in, text->text, header, error))
        return GF_FAILED;
    if (text->size && !options->csv && !options->json && run->done)
        putchar('\n');
    if (text->size)
        fwrite(text->text + header, 1, text->size - header, stdout);
    if (options->verbose) {
        const gf_cli_run one = batch_describe(run, item, finished->rank, &finished->made);
        fflush(stdout);
        gf_cli_report_run(&one, true);
    }
    return GF_OK;
}

/* Return whether a message contains this file name. Compare the name as messages print it. Messages
 * shorten long names in the middle, so compare the first 200 bytes. */
static bool batch_names(const gf_error *error, const char *path) {
    gf_error name;
    gf_set_error(&name, GF_FAILED, "%s", path);
    name.message[200] = 0;
    return strstr(error->message, name.message) != NULL;
}

/* Prefix an error that names neither file, as of memory and backends, with the input name. */
static void batch_name_file(const gf_batch_item *item, const gf_error *reason, gf_error *error) {
    *error = *reason;
    if (batch_names(error, item->in) || (item->out && batch_names(error, item->out[0])))
        return;
    gf_set_error(error, error->status, "%s: %s", item->in, reason->message);
    error->cause = reason->cause;
}

static void batch_count(batch_run *run, const gf_cli_run *one) {
    const gf_report *report = one->report;
    batch_engine *engine = run->engines, *last = engine + MAX_ENGINES - 1;
    char name[sizeof engine->name];
    snprintf(name, sizeof name, "%s (%s)", report->backend, report->device);
    while (engine < last && engine->images && strcmp(engine->name, name) != 0)
        engine++;
    if (strcmp(engine->name, name) != 0)
        snprintf(engine->name, sizeof name, "%s", engine->images ? "others" : name);
    engine->images++;
    run->done++;
    run->progress.pixels += (double)report->pixels;
    run->in_bytes += report->in_bytes;
    run->out_bytes += gf_cli_outputs_of(one->steps).out_bytes;
    gf_cli_summary_add(&run->summary, one->inputs[0], one, !run->options->page);
}

/* Return whether, with --resume, another process has finished the output since this run started. */
static bool batch_is_made_elsewhere(const batch_run *run, size_t i) {
    if (!run->outputs || !run->options->resume)
        return false;
    const gf_cli_state now = gf_cli_file_state(run->outputs[i].path);
    return gf_cli_is_finished(&now, &run->inputs.list[i]);
}

/* Implement gf_cli_shared_batch.report. */
static bool batch_report(void *context, const gf_cli_finished *finished) {
    batch_run *run = context;
    gf_cli_progress *progress = &run->progress;
    const gf_batch_item *item = &run->items[finished->item];
    const size_t i = run->input_index[finished->item];
    const gf_report *report = &finished->made.report;
    gf_error error = {0};
    pthread_mutex_lock(&run->lock);
    run->begun = true;
    errno = 0;
    if (finished->status)
        batch_name_file(item, finished->error, &error);
    const bool elsewhere = finished->status && batch_is_made_elsewhere(run, i);
    const gf_status status =
        finished->status ? finished->status : batch_print(run, finished, &error);
    gf_cli_report_failure(item->in, report);
    batch_end_progress(run, finished->item, &report->in);
    if (elsewhere) {
        run->skipped++;
    } else if (status) {
        batch_fail_item(run, i, &error);
        gf_cli_event_failed(progress, item->in, error.message);
    } else {
        gf_cli_report_damage(item->in, &report->remarks);
        const gf_cli_run one = batch_describe(run, item, finished->rank, &finished->made);
        batch_count(run, &one);
    }
    if (!run->out_cause && ferror(stdout))
        run->out_cause = errno ? errno : EIO;
    gf_cli_progress_draw(progress);
    const bool more =
        !run->out_cause && !run->stopped && !(run->options->fail_fast && progress->failed);
    pthread_mutex_unlock(&run->lock);
    return more;
}

/* Implement gf_batch_options.done. */
static bool batch_done(void *context, const gf_batch_done *done) {
    const batch_run *run = context;
    gf_error error;
    gf_cli_finished finished = {.item = done->item,
                                .error = &error,
                                .made = {done->outcome->report, done->outcome->steps, NULL}};
    finished.status = batch_render(context, &run->items[done->item], done, &finished.text, &error);
    const bool more = batch_report(context, &finished);
    free(finished.text.text);
    return more;
}

/* Print which backends and devices ran the images, with their shares if there are several. "each":
 * the device text has the threads of one image, and several images run at once. */
static void batch_print_engines(const batch_run *run) {
    const batch_engine *engines = run->engines;
    if (!run->done)
        return;
    fputs(run->done > 1 && !engines[1].images ? ", each by" : " by", stderr);
    for (int i = 0; i < MAX_ENGINES && engines[i].images; i++) {
        fprintf(stderr, "%s %s", i ? "," : "", engines[i].name);
        if (engines[1].images)
            fprintf(stderr, ": %" PRIu64, engines[i].images);
    }
}

static void batch_summarise(const batch_run *run) {
    const gf_cli_progress *progress = &run->progress;
    const double seconds = gf_now() - progress->began;
    const double rate = progress->pixels * 1e-6 / seconds;
    const uint64_t skipped = run->skipped + run->inputs.skipped;
    const uint64_t rest = run->files - run->done - progress->failed - run->skipped;
    char text[160];
    gf_cli_event_end(progress, run->done, progress->failed, skipped);
    if (run->options->quiet)
        return;
    fflush(stdout);
    fprintf(stderr, "%" PRIu64 " done, %" PRIu64 " failed, %" PRIu64 " skipped", run->done,
            progress->failed, skipped);
    if (rest)
        fprintf(stderr, ", %" PRIu64 " not started", rest);
    fprintf(stderr, " in %.1f s, %.*f MP/s", seconds, rate < 9.95 ? 1 : 0, rate);
    batch_print_engines(run);
    if (gf_cli_ranks()->count > 1)
        fprintf(stderr, " on %" PRIu32 " ranks", gf_cli_ranks()->count);
    if (run->done)
        gf_cli_report_bytes(run->in_bytes, run->out_bytes);
    putc('\n', stderr);
    gf_cli_skipped_text(&run->inputs, text, sizeof text);
    if (*text)
        fprintf(stderr, "  %s\n", text);
    gf_cli_report_brightness(&run->summary, NULL);
    gf_cli_report_losses(&run->summary);
    gf_cli_report_notes(&run->summary);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Implement gf_cli_shared_batch.tick. */
static void batch_tick(void *context) {
    batch_run *run = context;
    pthread_mutex_lock(&run->lock);
    gf_cli_progress_draw(&run->progress);
    pthread_mutex_unlock(&run->lock);
}

/* Run the items on all ranks. status: the status of rank 0 so far. */
static gf_status batch_run_items(batch_run *run, gf_status status, gf_error *error) {
    gf_batch_options options = {.engine = run->options->engine, .done = batch_done, .context = run};
    gf_file_options files = run->options->files;
    gf_step steps[GF_CLI_MAX_STEPS];
    gf_job job = gf_cli_job_of(run->filter, run->line->filter, steps);
    job.options = &files;
    if (run->info->makes_image) {
        files.force = false; /* gf_batch_item.replace decides per item */
    } else {
        options.in_order = true;
        /* Not for outputs: a failed one may have been finished by another process. */
        options.fail_fast = run->options->fail_fast;
    }
    if (gf_cli_ranks()->count > 1) {
        const gf_cli_shared_batch shared = {.job = &job,
                                            .options = &options,
                                            .items = run->items,
                                            .count = run->count,
                                            .setup = &run->screen,
                                            .setup_size = sizeof run->screen,
                                            .context = run,
                                            .cost = batch_cost,
                                            .render = batch_render,
                                            .report = batch_report,
                                            .tick = batch_tick};
        return gf_mpi_run_batch(&shared, status, error);
    }
    /* Without this memory, the bar advances per file. */
    if (run->progress.show != GF_CLI_SHOW_NOTHING &&
        (run->parts = calloc(run->count + 1, sizeof *run->parts))) {
        files.progress = batch_on_progress;
        files.progress_context = run;
    }
    return gf_run_batch(&job, run->items, run->count, &options, error);
}

/* Run the items and print the summary. Rank 0 only. */
static gf_status batch_compute(batch_run *run, gf_error *error) {
    gf_cli_progress *progress = &run->progress;
    progress->total = run->files;
    progress->ended = run->skipped + progress->failed;
    if (!run->options->quiet)
        progress->remedy = run->outputs ? "; --resume continues" : "";
    gf_cli_progress_begin(progress, run->info->name, run->options->progress, run->options->quiet,
                          gf_cli_ranks()->count > 1);
    const gf_status status = batch_run_items(run, GF_OK, error);
    gf_cli_progress_end();
    run->begun = run->begun || !status;
    if (status) {
        if (run->begun)
            batch_summarise(run);
        return status;
    }
    if (!run->out_cause && fflush(stdout) != 0)
        run->out_cause = errno;
    if (run->out_cause && !run->outputs)
        return gf_set_error(error, GF_FAILED, "standard output: cannot write: %s",
                            strerror(run->out_cause));
    if (run->out_cause) /* outputs that are already committed remain */
        return gf_set_error(error, GF_FAILED,
                            "standard output: cannot write: %s; %" PRIu64 " output%s complete",
                            strerror(run->out_cause), run->done, run->done == 1 ? " is" : "s are");
    batch_summarise(run);
    return progress->failed ? GF_FAILED : GF_OK;
}

static gf_status batch_list(const batch_run *run) {
    for (size_t i = 0; i < run->count && run->outputs; i++)
        gf_cli_list_output(run->items[i].out[0]);
    if (!run->options->quiet)
        fprintf(stderr, "dry run: %zu to do, %" PRIu64 " failed, %" PRIu64 " skipped\n", run->count,
                run->progress.failed, run->skipped + run->inputs.skipped);
    return run->progress.failed ? GF_FAILED : GF_OK;
}

gf_status gf_cli_batch(const gf_filter *filter, const gf_cli_line *line, gf_error *error) {
    const gf_cli_peers *peers = gf_cli_ranks();
    batch_run run = {.filter = filter,
                     .info = gf_filter_describe(filter),
                     .line = line,
                     .options = &line->options,
                     .shard = 1,
                     .shards = 1,
                     .screen = gf_cli_screen_of(stdout)};
    const bool first = peers->rank == 0, dry_run = line->options.files.dry_run;
    pthread_mutex_init(&run.lock, NULL);
    gf_status status = first ? batch_prepare(&run, error) : GF_OK;
    if (first && !status)
        status = dry_run ? batch_list(&run) : batch_compute(&run, error);
    else if (!dry_run && peers->count > 1)
        status = batch_run_items(&run, status, error);
    /* Other shards may use the created directories, so keep them. */
    gf_cli_directories_close(&run.directories, !run.begun && !line->options.shard);
    gf_cli_outputs_free(run.outputs, run.inputs.count);
    gf_cli_inputs_free(&run.inputs);
    free(run.items);
    free(run.input_index);
    free(run.header);
    free(run.parts);
    pthread_mutex_destroy(&run.lock);
    return status;
}
