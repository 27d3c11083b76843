/* A filter command on many files: which are run, and what is reported. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "outputs.h"
#include "progress.h"
#include "ranks.h"
#include "report.h"

/* One part of the inputs: number, number + of, number + 2 * of, ..., counted from 1. All zero: all
 * of them. */
typedef struct batch_shard {
    uint32_t number, of;
} batch_shard;

typedef struct batch_run {
    const gf_filter *filter;
    const gf_filter_info *info;
    const gf_cli_line *line;
    const gf_cli_options *options; /* of the line */
    const gf_cli_peers *peers;
    batch_shard shard;
    gf_cli_inputs inputs;   /* all, also of other shards */
    gf_cli_output *outputs; /* of each input; NULL for a filter that measures */
    uint64_t files;         /* inputs of the shard, and names that gave none */
    gf_batch_item *items;   /* what is to be run: `count` items, */
    size_t *which, count;   /* and which inputs they are */
    gf_cli_folders folders; /* that were made */
    gf_cli_screen screen;   /* for reports */

    pthread_mutex_t lock; /* of all below, and of what is printed while images run */
    bool begun;           /* an item was reported, or nothing stood against all of them */
    bool stopped;         /* no output can be written */
    int out_cause;        /* why standard output failed, an errno */
    char *header;         /* of the CSV table; NULL: not yet printed */
    gf_cli_progress progress;
    float *parts; /* of each item, how much is done while it is under way; NULL: not counted */
    uint64_t done, skipped; /* failures are counted in the progress */
    uint64_t in_bytes, out_bytes;
    gf_cli_brightness brightness;
    uint64_t dropping; /* images whose outputs lack metadata, the last of them, and which */
    const char *last_dropping;
    uint32_t dropped;
    char who[256]; /* backend and device of each image; "" if not always the same */
} batch_run;

bool gf_cli_is_batch(const gf_filter_info *info, const gf_cli_line *line) {
    const gf_cli_options *options = &line->options;
    if (info->inputs != 1 || info->is_test)
        return false;
    if (info->makes_image)
        return options->out_dir;
    return line->operand_count > 1 || options->files_from || options->recursive || options->shard;
}

/* ---- before any work ------------------------------------------------------------------------- */

static gf_status batch_parse_shard(const char *text, batch_shard *shard, gf_error *error) {
    enum { MAX_SHARDS = 1000000 };
    if (!text)
        return GF_OK;
    if (!text[strspn(text, "0123456789/")]) { /* strtoull takes signs and blanks, too */
        char *end;
        const unsigned long long number = strtoull(text, &end, 10);
        const unsigned long long count = *end == '/' ? strtoull(end + 1, &end, 10) : 0;
        *shard = (batch_shard){(uint32_t)number, (uint32_t)count};
        if (!*end && number >= 1 && number <= count && count <= MAX_SHARDS)
            return GF_OK;
    }
    return gf_set_error(error, GF_USAGE,
                        "--shard '%s': must be K/N, the K-th of N parts, with 1 <= K <= N <= %d, "
                        "such as 1/4",
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

static gf_status batch_check(batch_run *run, gf_error *error) {
    const char *folder = run->options->out_dir;
    gf_status status = batch_parse_shard(run->options->shard, &run->shard, error);
    if (!status && run->options->plot)
        status = gf_set_error(error, GF_USAGE,
                              "--plot: names one file, and there may be many inputs; run them one "
                              "by one");
    if (!status)
        status = batch_check_standard_input(run, error);
    if (!status && folder && !folder[0])
        status = gf_set_error(error, GF_USAGE, "--out-dir '': must be a folder; . is this one");
    /* Of none: that refuses settings that suit no image, or no batch. */
    return status ? status : gf_run_batch(run->filter, run->line->filter, NULL, 0, NULL, error);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Does an errno that output i failed with keep all others from being written, too? */
static bool batch_stops_all(const batch_run *run, size_t i, int cause) {
    if (cause == ENOSPC || cause == EDQUOT || cause == EROFS)
        return true;
    /* Folders in --out-dir may allow what that one does not. */
    const gf_cli_input *input = &run->inputs.list[i];
    return cause && run->outputs && !strchr(input->path + input->below, '/') &&
           access(run->options->out_dir, W_OK | X_OK) != 0;
}

/* Print the failure of input i. A cause that stops all outputs, such as a full disk, is printed
 * once, however many images are under way. */
static void batch_complain(batch_run *run, size_t i, gf_error *error) {
    const bool stop = batch_stops_all(run, i, error->cause);
    if (stop && run->stopped)
        return;
    if (stop && !run->options->files.dry_run)
        gf_set_error(error, error->status, "%s; no others are begun, --resume continues",
                     error->message);
    run->stopped = run->stopped || stop;
    gf_cli_progress_hide();
    gf_cli_complain(error);
}

/* ---- which inputs are run -------------------------------------------------------------------- */

/* For a dry run: find what is in the way of an output, but for a file that is there. */
static gf_status batch_check_item(const char *in, const gf_cli_output *output, gf_error *error) {
    struct stat info;
    if (access(in, R_OK) != 0)
        return gf_set_error(error, GF_FAILED, "%s: cannot open: %s", in, strerror(errno));
    if (stat(output->path, &info) == 0)
        return S_ISDIR(info.st_mode)
                   ? gf_set_error(error, GF_FAILED, "%s: is a folder", output->path)
                   : GF_OK;
    return lstat(output->path, &info) == 0
               ? gf_set_error(error, GF_FAILED, "%s: is a symbolic link to nothing", output->path)
               : GF_OK;
}

/* Fill in the item of an input. *skip: its output is finished. */
static gf_status batch_choose_one(batch_run *run, size_t i, gf_batch_item *item, bool *skip,
                                  gf_error *error) {
    const gf_cli_options *options = run->options;
    const gf_cli_input *input = &run->inputs.list[i];
    *item = (gf_batch_item){.in = input->path};
    *skip = false;
    if (!run->outputs)
        return GF_OK;
    const gf_cli_output *output = &run->outputs[i];
    item->out = output->path;
    if (options->files.dry_run && batch_check_item(input->path, output, error))
        return GF_FAILED;
    *skip = options->resume && gf_cli_is_finished(&output->look, input);
    if (*skip)
        return GF_OK;
    /* As for a single image: --force also replaces what appears while the batch runs. */
    item->replace = options->files.force || (options->resume && output->look.there);
    if (output->look.there && !item->replace)
        return gf_set_error(error, GF_FAILED,
                            "%s: exists already; use --force to replace it, or --resume to skip "
                            "what is finished",
                            output->path);
    const char *slash = strrchr(output->path, '/');
    return gf_cli_folders_make(&run->folders, output->path, (size_t)(slash - output->path), error);
}

/* Fill in the items. Print what cannot be run, and count what need not. */
static gf_status batch_choose(batch_run *run, gf_error *error) {
    const gf_cli_inputs *inputs = &run->inputs;
    const size_t step = run->shard.of ? run->shard.of : 1;
    size_t i = run->shard.of ? run->shard.number - 1 : 0;
    run->files = inputs->failed + (inputs->count + step - 1 - i) / step;
    run->items = calloc(inputs->count + 1, sizeof *run->items);
    run->which = calloc(inputs->count + 1, sizeof *run->which);
    if (!run->items || !run->which)
        return gf_set_error(error, GF_FAILED, "%s: out of memory", run->info->name);
    for (; i < inputs->count; i += step) {
        gf_error one = {0};
        bool skip;
        if (batch_choose_one(run, i, &run->items[run->count], &skip, &one)) {
            batch_complain(run, i, &one);
            run->progress.failed++;
            if (run->options->fail_fast || run->stopped) {
                run->count = 0;
                break;
            }
        } else if (skip) {
            run->skipped++;
        } else {
            run->which[run->count++] = i;
            run->progress.of += (double)inputs->list[i].bytes;
        }
    }
    return GF_OK;
}

/* All that looks at files before any work. */
static gf_status batch_prepare(batch_run *run, gf_error *error) {
    const char *folder = run->options->out_dir;
    gf_status status = batch_check(run, error);
    if (!status)
        status = gf_cli_gather(run->info->name, run->line, &run->inputs, error);
    run->progress.failed = run->inputs.failed;
    if (!status && folder)
        status = gf_cli_outputs_name(run->line, &run->inputs, &run->outputs, error);
    run->folders.sync = run->options->files.sync == GF_SYNC_ALWAYS;
    run->folders.dry_run = run->options->files.dry_run;
    if (!status && folder && !run->folders.dry_run)
        status = gf_cli_folders_make(&run->folders, folder, strlen(folder), error);
    return status ? status : batch_choose(run, error);
}

/* ---- progress -------------------------------------------------------------------------------- */

/* gf_cli_shared_batch.cost */
static uint64_t batch_cost(void *context, uint64_t item) {
    const batch_run *run = context;
    return run->inputs.list[run->which[item]].bytes;
}

static double batch_pixels(const gf_format *in) {
    return (double)in->width * (double)in->height;
}

/* gf_file_options.progress: images that take longer than a moment move the bar, too. From several
 * threads, of an item each. */
static void batch_on_progress(void *context, const gf_progress *now) {
    batch_run *run = context;
    const float part = (float)now->done / (float)now->total;
    pthread_mutex_lock(&run->lock);
    const double more = (double)part - (double)run->parts[now->item];
    run->parts[now->item] = part;
    run->progress.under_way += more * (double)batch_cost(run, now->item);
    run->progress.pixels_under_way += more * batch_pixels(&now->in);
    gf_cli_progress_draw(&run->progress);
    pthread_mutex_unlock(&run->lock);
}

/* Count all of an item, in place of the part that was done of it. */
static void batch_end_progress(batch_run *run, uint64_t item, const gf_format *in) {
    gf_cli_progress *progress = &run->progress;
    const double part = run->parts ? (double)run->parts[item] : 0;
    const double bytes = (double)batch_cost(run, item);
    progress->under_way -= part * bytes;
    progress->pixels_under_way -= part * batch_pixels(in);
    progress->done += bytes;
    progress->ended++;
}

/* ---- reports --------------------------------------------------------------------------------- */

static gf_cli_run batch_describe(const batch_run *run, const gf_batch_item *item, uint32_t rank,
                                 const gf_report *report, const gf_result *result) {
    return (gf_cli_run){.info = run->info,
                        .settings = run->line->filter,
                        .inputs = &item->in,
                        .output = item->out,
                        .report = report,
                        .result = result,
                        .screen = &run->screen,
                        .rank = rank,
                        .ranks = run->peers->count};
}

/* Write a report into memory. */
static gf_status batch_write_report(const batch_run *run, const gf_cli_run *one, gf_cli_text *text,
                                    gf_error *error) {
    gf_status status = GF_OK;
    FILE *file = open_memstream(&text->text, &text->size);
    if (!file)
        return GF_FAILED;
    if (run->options->json)
        status = gf_cli_report_json(file, one, error);
    else if (run->options->csv)
        gf_cli_report_csv(file, one->result, one->inputs[0], run->screen.terminal);
    else
        gf_cli_report_text(file, one);
    const bool whole = !ferror(file);
    return fclose(file) == 0 && whole ? status : GF_FAILED;
}

/* gf_cli_shared_batch.render */
static gf_status batch_render(void *context, const gf_batch_item *item, const gf_batch_done *done,
                              gf_cli_text *text, gf_error *error) {
    const batch_run *run = context;
    const gf_cli_options *options = run->options;
    const gf_cli_run one = batch_describe(run, item, run->peers->rank, done->report, done->result);
    *text = (gf_cli_text){0};
    if (done->status)
        *error = *done->error;
    if (done->status || !(options->json || options->csv || (done->result && !options->quiet)))
        return done->status;
    if (!batch_write_report(run, &one, text, error))
        return GF_OK;
    free(text->text);
    *text = (gf_cli_text){0};
    return gf_set_error(error, GF_FAILED, "%s: out of memory for its report", item->in);
}

/* Print the first header for all. */
static gf_status batch_print_header(batch_run *run, const char *path, const char *text,
                                    size_t length, gf_error *error) {
    if (!run->header) {
        run->header = strndup(text, length);
        if (!run->header)
            return gf_set_error(error, GF_FAILED, "%s: out of memory", path);
        fputs(run->header, stdout);
    } else if (strlen(run->header) != length || memcmp(run->header, text, length) != 0) {
        return gf_set_error(error, GF_FAILED,
                            "%s: its channels are not those of the files before, and a CSV table "
                            "has one header; measure it by itself, or use --json",
                            path);
    }
    return GF_OK;
}

static gf_status batch_print(batch_run *run, const gf_cli_finished *finished, gf_error *error) {
    const gf_batch_item *item = &run->items[finished->item];
    const gf_cli_text *text = &finished->text;
    const gf_cli_options *options = run->options;
    if (text->size || options->verbose)
        gf_cli_progress_hide();
    const char *end = text->size && options->csv ? memchr(text->text, '\n', text->size) : NULL;
    const size_t header = end ? (size_t)(end + 1 - text->text) : 0;
    if (end && batch_print_header(run, item->in, text->text, header, error))
        return GF_FAILED;
    if (text->size && !options->csv && !options->json && run->done)
        putchar('\n');
    if (text->size)
        fwrite(text->text + header, 1, text->size - header, stdout);
    if (options->verbose) {
        const gf_cli_run one = batch_describe(run, item, finished->rank, finished->report, NULL);
        fflush(stdout);
        gf_cli_report_run(&one, true);
    }
    return GF_OK;
}

/* Does a message name this file? It has the name as messages print it; of a long one the beginning
 * is compared, which no message leaves out. */
static bool batch_names(const gf_error *error, const char *path) {
    gf_error name;
    gf_set_error(&name, GF_FAILED, "%s", path);
    name.message[200] = 0;
    return strstr(error->message, name.message) != NULL;
}

/* Name the input where no file failed, but memory or a backend. */
static void batch_name_file(const gf_batch_item *item, const gf_error *why, gf_error *error) {
    *error = *why;
    if (batch_names(error, item->in) || (item->out && batch_names(error, item->out)))
        return;
    gf_set_error(error, error->status, "%s: %s", item->in, why->message);
    error->cause = why->cause;
}

/* Add to the summary. */
static void batch_count(batch_run *run, const char *in, const gf_report *report) {
    char who[sizeof run->who];
    snprintf(who, sizeof who, "%s (%s)", report->backend, report->device);
    if (run->done == 0)
        memcpy(run->who, who, sizeof run->who);
    else if (strcmp(run->who, who) != 0)
        run->who[0] = 0;
    run->done++;
    run->progress.pixels += batch_pixels(&report->in);
    run->in_bytes += report->in_bytes;
    run->out_bytes += report->out_bytes;
    gf_cli_brightness_add(&run->brightness, report);
    if (report->dropped) {
        run->dropping++;
        run->last_dropping = in;
        run->dropped |= report->dropped;
    }
}

/* With --resume: has another run finished the output since this one began? */
static bool batch_is_made_elsewhere(const batch_run *run, size_t i) {
    if (!run->outputs || !run->options->resume)
        return false;
    const gf_cli_look now = gf_cli_look_at(run->outputs[i].path);
    return gf_cli_is_finished(&now, &run->inputs.list[i]);
}

/* gf_cli_shared_batch.report */
static bool batch_report(void *context, const gf_cli_finished *finished) {
    batch_run *run = context;
    gf_cli_progress *progress = &run->progress;
    const gf_batch_item *item = &run->items[finished->item];
    const size_t i = run->which[finished->item];
    const gf_report *report = finished->report;
    gf_error error = {0};
    pthread_mutex_lock(&run->lock);
    run->begun = true;
    errno = 0;
    if (finished->status)
        batch_name_file(item, finished->error, &error);
    const bool elsewhere = finished->status && batch_is_made_elsewhere(run, i);
    const gf_status status =
        finished->status ? finished->status : batch_print(run, finished, &error);
    if (report->device_failed) {
        const gf_cli_run one = batch_describe(run, item, finished->rank, report, NULL);
        gf_cli_progress_hide();
        gf_cli_report_failure(&one);
    }
    batch_end_progress(run, finished->item, &report->in);
    if (elsewhere) {
        run->skipped++;
    } else if (status) {
        batch_complain(run, i, &error);
        gf_cli_event_failed(progress, item->in, error.message);
        progress->failed++;
    } else {
        batch_count(run, item->in, report);
    }
    if (!run->out_cause && ferror(stdout))
        run->out_cause = errno ? errno : EIO;
    gf_cli_progress_draw(progress);
    const bool more =
        !run->out_cause && !run->stopped && !(run->options->fail_fast && progress->failed);
    pthread_mutex_unlock(&run->lock);
    return more;
}

/* gf_batch_options.done */
static bool batch_done(void *context, const gf_batch_done *done) {
    const batch_run *run = context;
    gf_error error;
    gf_cli_finished finished = {.item = done->item, .error = &error, .report = done->report};
    finished.status = batch_render(context, &run->items[done->item], done, &finished.text, &error);
    const bool more = batch_report(context, &finished);
    free(finished.text.text);
    return more;
}

/* Print the summary on standard error. */
static void batch_summarise(const batch_run *run) {
    const gf_cli_progress *progress = &run->progress;
    const double seconds = gf_cli_now() - progress->began;
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
        fprintf(stderr, ", %" PRIu64 " not begun", rest);
    fprintf(stderr, " in %.1f s, %.*f MP/s", seconds, rate < 9.95 ? 1 : 0, rate);
    if (run->done)
        /* The device names one image's threads: as many images are under way at once. */
        fprintf(stderr, "%s %s", run->done > 1 && run->who[0] ? ", each by" : " by",
                run->who[0] ? run->who : "several backends or devices");
    if (run->peers->count > 1)
        fprintf(stderr, " on %" PRIu32 " ranks", run->peers->count);
    if (run->done)
        gf_cli_report_bytes(run->in_bytes, run->out_bytes);
    putc('\n', stderr);
    gf_cli_skipped_text(&run->inputs, text, sizeof text);
    if (*text)
        fprintf(stderr, "  %s\n", text);
    gf_cli_report_brightness(&run->brightness);
    gf_cli_report_dropped(run->last_dropping, run->dropping, run->dropped);
}

/* ---- running --------------------------------------------------------------------------------- */

/* gf_cli_shared_batch.tick */
static void batch_tick(void *context) {
    batch_run *run = context;
    pthread_mutex_lock(&run->lock);
    gf_cli_progress_draw(&run->progress);
    pthread_mutex_unlock(&run->lock);
}

/* Run the items, on all ranks. status: that of rank 0 so far. */
static gf_status batch_run_items(batch_run *run, gf_status status, gf_error *error) {
    gf_batch_options options = {.engine = run->options->engine,
                                .files = run->options->files,
                                .done = batch_done,
                                .context = run};
    if (run->info->makes_image) {
        options.files.force = false; /* each item says what it may replace */
    } else {
        options.in_order = true;
        options.fail_fast = run->options->fail_fast; /* an output may be another run's success */
    }
    if (run->peers->count > 1) {
        const gf_cli_shared_batch shared = {.filter = run->filter,
                                            .settings = run->line->filter,
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
    /* Without memory for it, the bar moves from file to file. */
    if (run->progress.show != GF_CLI_SHOW_NOTHING &&
        (run->parts = calloc(run->count + 1, sizeof *run->parts))) {
        options.files.progress = batch_on_progress;
        options.files.progress_context = run;
    }
    return gf_run_batch(run->filter, run->line->filter, run->items, run->count, &options, error);
}

/* Each output is in place when it is complete, before all reports are printed. */
static gf_status batch_fail_output(const batch_run *run, gf_error *error) {
    const char *cause = strerror(run->out_cause);
    if (!run->outputs)
        return gf_set_error(error, GF_FAILED, "standard output: %s", cause);
    return gf_set_error(error, GF_FAILED, "standard output: %s; %" PRIu64 " output%s in place",
                        cause, run->done, run->done == 1 ? " is" : "s are");
}

/* Run the items, and report. Not on other ranks than the first. */
static gf_status batch_compute(batch_run *run, gf_error *error) {
    gf_cli_progress *progress = &run->progress;
    progress->total = run->files;
    progress->ended = run->skipped + progress->failed;
    if (!run->options->quiet)
        progress->go_on = run->outputs ? "; --resume continues" : "";
    gf_cli_progress_begin(
        progress,
        gf_cli_progress_choose(run->options->progress, run->options->quiet, run->peers->count > 1));
    gf_cli_event_begin(progress, run->info->name);
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
    if (run->out_cause)
        return batch_fail_output(run, error);
    batch_summarise(run);
    return progress->failed ? GF_FAILED : GF_OK;
}

/* List the outputs that would be written. */
static gf_status batch_list(const batch_run *run) {
    for (size_t i = 0; i < run->count && run->outputs; i++)
        gf_cli_list_output(run->items[i].out);
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
                     .peers = peers,
                     .screen = gf_cli_screen_of(stdout)};
    const bool first = peers->rank == 0, dry_run = line->options.files.dry_run;
    pthread_mutex_init(&run.lock, NULL);
    gf_status status = first ? batch_prepare(&run, error) : GF_OK;
    if (first && !status)
        status = dry_run ? batch_list(&run) : batch_compute(&run, error);
    else if (!dry_run && peers->count > 1)
        status = batch_run_items(&run, status, error);
    /* Other shards have seen these folders, and count on them. */
    gf_cli_folders_close(&run.folders, !run.begun && !run.shard.of);
    gf_cli_outputs_free(run.outputs, run.inputs.count);
    gf_cli_inputs_free(&run.inputs);
    free(run.items);
    free(run.which);
    free(run.header);
    free(run.parts);
    pthread_mutex_destroy(&run.lock);
    return status;
}
