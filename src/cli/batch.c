/* Filter command on many files: selection of the files to run, progress, reports and summary. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ranks.h"
#include "report.h"

enum { MAX_SHARDS = 1000000, MAX_ENGINES = 8 /* listed in the summary */ };

typedef struct batch_run {
    const gf_cli_work *work;
    const gf_cli_options *options; /* of the line */
    uint64_t shard, shards;        /* inputs shard, shard + shards, ..., counted from 1 */
    gf_cli_inputs inputs;          /* of all shards */
    uint64_t files;                /* inputs of the shard, plus names that could not be read */
    gf_batch_item *items;          /* `count` items to run, of the first inputs */
    size_t count;
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
    struct batch_engine {
        char name[256]; /* backend and devices */
        uint64_t images;
    } engines[MAX_ENGINES];
} batch_run;

/* ---- checks before the run ------------------------------------------------------------------- */

/* Return the job. The items have the paths of its writers. */
static gf_job batch_job(const batch_run *run, gf_step steps[GF_CLI_MAX_STEPS]) {
    gf_job job = gf_cli_job_of_work(run->work);
    memcpy(steps, run->work->steps, sizeof run->work->steps);
    for (uint32_t i = 0; i < job.step_count; i++)
        steps[i].out_path = NULL;
    job.steps = steps;
    return job;
}

static gf_status batch_check(batch_run *run, gf_error *error) {
    const gf_cli_options *options = run->options;
    const char *shard = options->shard;
    const bool digits = shard && !shard[strspn(shard, "0123456789/")]; /* no sign, no blank */
    char *end = NULL;
    size_t standard = 0; /* operands that are standard input */
    if (digits) {
        run->shard = strtoull(shard, &end, 10);
        run->shards = *end == '/' ? strtoull(end + 1, &end, 10) : 0;
    }
    if (shard &&
        (!digits || *end || !run->shard || run->shard > run->shards || run->shards > MAX_SHARDS))
        return gf_set_error(
            error, GF_USAGE,
            "--shard '%s': must be K/N with 1 <= K <= N <= %d, such as 1/4 for the first "
            "of four shards",
            shard, MAX_SHARDS);
    if (options->plot)
        return gf_set_error(
            error, GF_USAGE,
            "--plot: not supported for several inputs; run the filter once per input");
    for (size_t i = 0; i < run->work->line->operand_count; i++)
        standard += strcmp(run->work->line->operands[i], "-") == 0;
    if (standard && run->work->writers)
        return gf_set_error(error, GF_USAGE,
                            "--out-dir: standard input has no file name for its output; filter it "
                            "in a separate run");
    if (standard + (options->files_from && strcmp(options->files_from, "-") == 0) > 1)
        return gf_set_error(error, GF_USAGE,
                            "%s: standard input can be read only once; name one of the files",
                            run->work->info->name);
    if (options->out_dir && !options->out_dir[0])
        return gf_set_error(error, GF_USAGE,
                            "--out-dir '': must not be empty; . is the current directory");
    /* Run no items: this rejects settings that are invalid for all images or for batches. */
    gf_step steps[GF_CLI_MAX_STEPS];
    const gf_job job = batch_job(run, steps);
    return gf_run_batch(&job, NULL, 0, NULL, error);
}

/* Return the first output of an input that exists; the last one if none does. */
static const char *batch_existing(const batch_run *run, const gf_cli_input *input) {
    size_t i = 0;
    while (i + 1 < run->work->writers && access(input->out[i], F_OK) != 0)
        i++;
    return input->out[i];
}

/* Count and print the error of an input, with --json also its record. Print a cause that affects
 * all outputs, such as a full disk, once. Before the run, count existing outputs. */
static void batch_fail_item(batch_run *run, const gf_cli_input *input, gf_error *error) {
    const int cause = error->cause;
    run->progress.failed++;
    if (run->options->json)
        gf_cli_report_json_failure(stdout, run->work->info, input->path,
                                   input->out ? input->out[run->work->writers - 1] : NULL, error);
    if (cause == EEXIST && !run->begun) {
        run->first_existing = run->existing++ ? run->first_existing : batch_existing(run, input);
        return;
    }
    /* Subdirectories of --out-dir may be writable when --out-dir is not. */
    const bool stop = cause == ENOSPC || cause == EDQUOT || cause == EROFS ||
                      (cause && input->out && !strchr(input->path + input->relative, '/') &&
                       access(run->options->out_dir, W_OK | X_OK) != 0);
    if (stop && run->stopped)
        return;
    if (stop && !run->options->files.dry_run)
        gf_set_error(error, error->status, "%s; no more files are started, --resume continues",
                     error->message);
    run->stopped = run->stopped || stop;
    gf_cli_print_error(error);
}

/* ---- selection of items ---------------------------------------------------------------------- */

/* Fill in the item of an input. *skip: --resume finds its output finished. */
static gf_status batch_choose_one(batch_run *run, const gf_cli_input *input, gf_batch_item *item,
                                  bool *skip, gf_error *error) {
    const gf_cli_options *options = run->options;
    struct stat info;
    *item = (gf_batch_item){.in = input->path};
    *skip = false;
    if (!input->out)
        return GF_OK;
    item->out = (const char *const *)input->out;
    if (options->files.dry_run && access(input->path, R_OK) != 0)
        return gf_set_error(error, GF_FAILED, "%s: cannot open: %s", input->path, strerror(errno));
    /* Report what a run would find. */
    for (size_t i = 0; options->files.dry_run && i < run->work->writers; i++) {
        const bool exists = stat(item->out[i], &info) == 0;
        if (exists ? S_ISDIR(info.st_mode) : lstat(item->out[i], &info) == 0)
            return gf_set_error(error, GF_FAILED, "%s: is a %s", item->out[i],
                                exists ? "directory" : "dangling symbolic link");
    }
    *skip = options->resume && gf_cli_is_finished(&run->inputs, input);
    if (*skip)
        return GF_OK;
    /* As for a single image, --force also replaces files created while the batch runs. */
    item->replace = options->files.force || (options->resume && input->existing);
    if (input->existing && !item->replace) {
        gf_set_error(error, GF_FAILED, "%s: already exists", batch_existing(run, input));
        error->cause = EEXIST;
        return GF_FAILED;
    }
    const char *path = item->out[0]; /* the others are in the same directory */
    return gf_cli_directories_make(&run->directories, path, (size_t)(strrchr(path, '/') - path),
                                   error);
}

/* Rank 0: fill in the items. Print errors of inputs that cannot run, and count skipped ones. */
static gf_status batch_prepare(batch_run *run, gf_error *error) {
    const gf_cli_options *options = run->options;
    gf_cli_inputs *inputs = &run->inputs;
    gf_status status = batch_check(run, error);
    if (!status)
        status = gf_cli_gather(run->work->info->name, run->work->line, inputs, error);
    run->progress.failed = inputs->failed;
    if (!status && options->out_dir)
        status = gf_cli_outputs_name(inputs, run->work, error);
    if (!status && options->out_dir && !options->files.dry_run)
        status = gf_cli_directories_make(&run->directories, options->out_dir,
                                         strlen(options->out_dir), error);
    if (status)
        return status;
    size_t i = run->shard - 1;
    run->files = inputs->failed + (inputs->count + run->shards - 1 - i) / run->shards;
    run->items = calloc(inputs->count + 1, sizeof *run->items);
    if (!run->items)
        return gf_set_error(error, GF_FAILED, "%s: out of memory", run->work->info->name);
    for (; i < inputs->count; i += run->shards) {
        gf_error one = {0};
        bool skip;
        /* Move the input to the position of its item. */
        gf_cli_input *input = &inputs->list[run->count], other = *input;
        *input = inputs->list[i];
        inputs->list[i] = other;
        if (batch_choose_one(run, input, &run->items[run->count], &skip, &one)) {
            batch_fail_item(run, input, &one);
            if (options->fail_fast || run->stopped) {
                run->count = 0;
                break;
            }
        } else if (skip) {
            run->skipped++;
        } else {
            run->count++;
            run->progress.work += (double)input->bytes;
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

/* ---- progress -------------------------------------------------------------------------------- */

/* Implement gf_file_options.progress. Several threads call it, each for its own item. */
static bool batch_on_progress(void *context, const gf_progress *now) {
    batch_run *run = context;
    const float part = (float)now->done / (float)now->total;
    pthread_mutex_lock(&run->lock);
    const double more = (double)part - (double)run->parts[now->item];
    run->parts[now->item] = part;
    run->progress.running += more * (double)run->inputs.list[now->item].bytes;
    run->progress.pixels_running += more * (double)now->in.width * (double)now->in.height;
    gf_cli_progress_draw(&run->progress);
    pthread_mutex_unlock(&run->lock);
    return true;
}

/* ---- reports --------------------------------------------------------------------------------- */

static gf_cli_run batch_describe(const batch_run *run, const gf_batch_item *item, uint32_t rank,
                                 const gf_outcome *made) {
    return (gf_cli_run){.work = run->work,
                        .inputs = &item->in,
                        .outputs = item->out,
                        .page =
                            run->options->files.page == GF_ALL_PAGES && !item->out ? "all" : NULL,
                        .outcome = made,
                        .screen = &run->screen,
                        .batch = true,
                        .rank = rank,
                        .ranks = gf_cli_ranks()->count};
}

/* Implement gf_cli_shared_batch.render. */
static gf_status batch_render(void *context, const gf_batch_item *item, const gf_batch_done *done,
                              char **text, gf_error *error) {
    const batch_run *run = context;
    const gf_cli_run one = batch_describe(run, item, gf_cli_ranks()->rank, done->outcome);
    size_t size;
    *text = NULL;
    if (done->status) {
        *error = *done->error;
        return done->status;
    }
    FILE *file = open_memstream(text, &size);
    const bool whole = file && !gf_cli_report(file, &one, run->options, error) && !ferror(file);
    if (file && fclose(file) == 0 && whole)
        return GF_OK;
    free(*text);
    *text = NULL;
    return gf_set_error(error, GF_FAILED, "%s: out of memory for its report", item->in);
}

/* Print the report of an item. The header of a CSV table is printed once; others must equal it. */
static gf_status batch_print(batch_run *run, const gf_cli_run *one, const char *text,
                             gf_error *error) {
    const gf_cli_options *options = run->options;
    const size_t size = text ? strlen(text) : 0;
    if (size || options->verbose)
        gf_cli_bar_hide();
    const char *end = size && options->csv ? memchr(text, '\n', size) : NULL;
    const size_t header = end ? (size_t)(end + 1 - text) : 0;
    if (header && run->header &&
        (strlen(run->header) != header || memcmp(run->header, text, header) != 0))
        return gf_set_error(error, GF_FAILED,
                            "%s: its columns differ from those of the first file, and a CSV table "
                            "has one header; run it separately, or use --json",
                            one->inputs[0]);
    if (header && !run->header) {
        run->header = strndup(text, header);
        if (!run->header)
            return gf_set_error(error, GF_FAILED, "%s: out of memory", one->inputs[0]);
        fputs(run->header, stdout);
    }
    if (size && !options->csv && !options->json && run->done)
        putchar('\n');
    if (size)
        fwrite(text + header, 1, size - header, stdout);
    if (options->verbose) {
        fflush(stdout);
        gf_cli_report_run(one, true);
    }
    return GF_OK;
}

/* Prefix an error that names neither file, as of memory and backends, with the input name. Compare
 * names as messages print them. Messages shorten long names in the middle, so compare the first 200
 * bytes. */
static void batch_name_file(const gf_batch_item *item, const gf_error *reason, gf_error *error) {
    const char *const names[] = {item->in, item->out ? item->out[0] : item->in};
    *error = *reason;
    for (size_t i = 0; i < 2; i++) {
        gf_error name;
        gf_set_error(&name, GF_FAILED, "%s", names[i]);
        name.message[200] = 0;
        if (strstr(error->message, name.message))
            return;
    }
    gf_set_error(error, error->status, "%s: %s", item->in, reason->message);
    error->cause = reason->cause;
}

static void batch_count(batch_run *run, const gf_cli_run *one) {
    const gf_report *report = &one->outcome->report;
    struct batch_engine *engine = run->engines, *last = engine + MAX_ENGINES - 1;
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
    run->out_bytes += gf_cli_outputs_of(one).out_bytes;
    gf_cli_summary_add(&run->summary, one->inputs[0], one, !run->options->page);
}

/* Implement gf_cli_shared_batch.report. */
static bool batch_report(void *context, const gf_batch_done *done, uint32_t rank,
                         const char *text) {
    batch_run *run = context;
    gf_cli_progress *progress = &run->progress;
    const gf_batch_item *item = &run->items[done->item];
    const gf_cli_input *input = &run->inputs.list[done->item];
    const gf_report *report = &done->outcome->report;
    const gf_cli_run one = batch_describe(run, item, rank, done->outcome);
    gf_status status = done->status;
    gf_error error = {0};
    pthread_mutex_lock(&run->lock);
    run->begun = true;
    errno = 0;
    if (status)
        batch_name_file(item, done->error, &error);
    /* With --resume, another process may have finished the output since this run started. */
    const bool finished_elsewhere =
        status && run->options->resume && gf_cli_is_finished(&run->inputs, input);
    if (!status)
        status = batch_print(run, &one, text, &error);
    gf_cli_report_failure(item->in, report);
    /* Replace the completed fraction of the item by the whole item. */
    const double part = run->parts ? (double)run->parts[done->item] : 0;
    const double bytes = (double)input->bytes;
    progress->running -= part * bytes;
    progress->pixels_running -= part * (double)report->in.width * (double)report->in.height;
    progress->done += bytes;
    progress->ended++;
    if (finished_elsewhere) {
        run->skipped++;
    } else if (status) {
        batch_fail_item(run, input, &error);
        gf_cli_event_failed(progress, item->in, error.message);
    } else {
        gf_cli_report_damage(item->in, &report->remarks);
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
    gf_batch_done rendered = *done;
    gf_error error;
    char *text;
    rendered.status = batch_render(context, &run->items[done->item], done, &text, &error);
    rendered.error = &error;
    const bool more = batch_report(context, &rendered, 0, text);
    free(text);
    return more;
}

static void batch_summarise(const batch_run *run) {
    const gf_cli_progress *progress = &run->progress;
    const struct batch_engine *engines = run->engines;
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
    /* The backends and devices that ran the images, with their shares if there are several. "each":
     * the device text has the threads of one image, and several images run at once. */
    const bool several = engines[1].images;
    if (run->done)
        fputs(run->done > 1 && !several ? ", each by" : " by", stderr);
    for (int i = 0; run->done && i < MAX_ENGINES && engines[i].images; i++) {
        fprintf(stderr, "%s %s", i ? "," : "", engines[i].name);
        if (several)
            fprintf(stderr, ": %" PRIu64, engines[i].images);
    }
    if (gf_cli_ranks()->count > 1)
        fprintf(stderr, " on %" PRIu32 " ranks", gf_cli_ranks()->count);
    if (run->done)
        gf_cli_report_bytes(run->in_bytes, run->out_bytes);
    putc('\n', stderr);
    gf_cli_skipped_text(&run->inputs, text, sizeof text);
    if (*text)
        fprintf(stderr, "  %s\n", text);
    gf_cli_report_brightness(&run->summary, NULL);
    gf_cli_report_notes(&run->summary);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Run the items on all ranks. status: the status of rank 0 so far. */
static gf_status batch_run_items(batch_run *run, gf_status status, gf_error *error) {
    gf_batch_options options = {.engine = run->options->engine, .done = batch_done, .context = run};
    gf_file_options files = run->options->files;
    gf_step steps[GF_CLI_MAX_STEPS];
    gf_job job = batch_job(run, steps);
    job.options = &files;
    if (run->work->writers) {
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
                                            .inputs = run->inputs.list,
                                            .progress = &run->progress,
                                            .render = batch_render,
                                            .report = batch_report};
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
        progress->remedy = run->work->writers ? "; --resume continues" : "";
    gf_cli_progress_begin(progress, run->work->info->name, run->options->progress,
                          run->options->quiet, gf_cli_ranks()->count > 1);
    gf_status status = batch_run_items(run, GF_OK, error);
    gf_cli_progress_end();
    run->begun = run->begun || !status;
    if (!status && !run->out_cause && fflush(stdout) != 0)
        run->out_cause = errno;
    if (!status && run->out_cause) {
        char complete[64] = ""; /* outputs that are already committed remain */
        if (run->work->writers)
            snprintf(complete, sizeof complete, "; %" PRIu64 " output%s complete", run->done,
                     run->done == 1 ? " is" : "s are");
        return gf_set_error(error, GF_FAILED, "standard output: cannot write: %s%s",
                            strerror(run->out_cause), complete);
    }
    if (run->begun)
        batch_summarise(run);
    return !status && progress->failed ? GF_FAILED : status;
}

gf_status gf_cli_batch(const gf_cli_work *work, gf_error *error) {
    const gf_cli_peers *peers = gf_cli_ranks();
    const gf_cli_line *line = work->line;
    batch_run run = {.work = work,
                     .options = &line->options,
                     .shard = 1,
                     .shards = 1,
                     .directories = {.files = &line->options.files},
                     .lock = PTHREAD_MUTEX_INITIALIZER,
                     .screen = gf_cli_screen_of(stdout)};
    const bool first = peers->rank == 0, dry_run = line->options.files.dry_run;
    gf_status status = first ? batch_prepare(&run, error) : GF_OK;
    if (first && !status && dry_run) {
        for (size_t i = 0; i < run.count * work->writers; i++) {
            const char *const *out = run.items[i / work->writers].out;
            if (out)
                gf_cli_list_output(out[i % work->writers]);
        }
        if (!line->options.quiet)
            fprintf(stderr, "dry run: %zu to do, %" PRIu64 " failed, %" PRIu64 " skipped\n",
                    run.count, run.progress.failed, run.skipped + run.inputs.skipped);
        status = run.progress.failed ? GF_FAILED : GF_OK;
    } else if (first && !status) {
        status = batch_compute(&run, error);
    } else if (!dry_run && peers->count > 1) {
        status = batch_run_items(&run, status, error);
    }
    /* Other shards may use the created directories, so keep them. */
    gf_cli_directories_close(&run.directories, !run.begun && !line->options.shard);
    gf_cli_inputs_free(&run.inputs);
    free(run.items);
    free(run.header);
    free(run.parts);
    return status;
}
