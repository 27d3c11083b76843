/* What is told of a batch: of each input when it is over, and in the end. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "batch_run.h"
#include "commands.h"
#include "report.h"

/* Of an item of the list. */
static gf_cli_run run_of(const gf_cli_batch_run *run, uint64_t item, const gf_report *report,
                         const gf_result *result, uint32_t rank) {
    const gf_batch_item *what = &run->items[item];
    return (gf_cli_run){.info = run->info,
                        .settings = run->line->filter,
                        .inputs = &what->in,
                        .output = what->out,
                        .report = report,
                        .result = result,
                        .screen = run->ranks > 1 ? &run->screen : NULL,
                        .rank = rank,
                        .ranks = run->ranks};
}

/* ---- on standard output ---------------------------------------------------------------------- */

static bool has_text(const gf_cli_batch_run *run, const gf_result *result) {
    return run->json || run->csv || (result && !run->quiet);
}

/* The CSV without its header. */
static gf_status print(const gf_cli_batch_run *run, const gf_cli_run *one, FILE *file,
                       gf_error *error) {
    if (run->json)
        return gf_cli_report_json(file, one, error);
    if (run->csv)
        gf_cli_report_csv(file, one->result, one->inputs[0],
                          one->screen ? one->screen->terminal : gf_cli_screen_of(file).terminal);
    else
        gf_cli_report_text(file, one);
    return GF_OK;
}

gf_status gf_cli_batch_render(const gf_cli_batch_run *run, const gf_batch_done *done, char **text,
                              size_t *size, size_t *header, gf_error *error) {
    const gf_cli_run one = run_of(run, done->item, done->report, done->result, run->rank);
    *text = NULL;
    *size = *header = 0;
    if (done->status || !has_text(run, done->result))
        return GF_OK;
    FILE *file = open_memstream(text, size);
    if (file && run->csv)
        gf_cli_report_csv_header(file, done->result, one.inputs[0]);
    if (file && fflush(file) == 0)
        *header = *size;
    const bool good = file && !print(run, &one, file, error) && !ferror(file);
    if (file && fclose(file) == 0 && good)
        return GF_OK;
    free(*text);
    *text = NULL;
    return gf_set_error(error, GF_FAILED, "%s: out of memory for its report", one.inputs[0]);
}

/* The first header is for all. */
static gf_status tell_header(gf_cli_batch_run *run, const char *path, const char *header,
                             size_t size, gf_error *error) {
    if (run->header && (strlen(run->header) != size || memcmp(run->header, header, size) != 0))
        return gf_set_error(error, GF_FAILED,
                            "%s: its channels are not those of the files before, and a CSV table "
                            "has one header; measure it by itself, or use --json",
                            path);
    if (run->header)
        return GF_OK;
    run->header = strndup(header, size);
    if (!run->header)
        return gf_set_error(error, GF_FAILED, "%s: out of memory", path);
    fputs(run->header, stdout);
    return GF_OK;
}

static gf_status tell_csv_header(gf_cli_batch_run *run, const gf_cli_over *over,
                                 const gf_cli_run *one, gf_error *error) {
    const char *path = one->inputs[0];
    if (over->text)
        return tell_header(run, path, over->text, over->header, error);
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (file)
        gf_cli_report_csv_header(file, over->result, path);
    const bool whole = file && !ferror(file);
    const gf_status status = file && fclose(file) == 0 && whole
                                 ? tell_header(run, path, text, size, error)
                                 : gf_set_error(error, GF_FAILED, "%s: out of memory", path);
    free(text);
    return status;
}

static gf_status tell(gf_cli_batch_run *run, const gf_cli_over *over, gf_error *error) {
    const gf_cli_run one = run_of(run, over->item, over->report, over->result, over->rank);
    const bool text = over->text || has_text(run, over->result);
    gf_status status = GF_OK;
    if (text || run->verbose)
        gf_cli_progress_hide();
    if (run->csv)
        status = tell_csv_header(run, over, &one, error);
    else if (text && !run->json)
        fputs(run->done ? "\n" : "", stdout);
    if (status)
        return status;
    if (over->text)
        fwrite(over->text + over->header, 1, over->size - over->header, stdout);
    else if (text)
        status = print(run, &one, stdout, error);
    if (!status && run->verbose) {
        fflush(stdout);
        gf_cli_report_run(&one, true);
    }
    return status;
}

/* ---- and besides ----------------------------------------------------------------------------- */

/* The record cannot be written: that keeps no output from being made. */
static void tell_trouble(const gf_cli_batch_run *run) {
    gf_error error;
    if (!run->outputs || !gf_cli_journal_trouble(run->journal, &error) || run->quiet)
        return;
    gf_cli_progress_hide();
    gf_cli_complain(&error);
}

/* Does a message name this file? It has the name as messages print it; of a long one the beginning
 * is compared, which no message leaves out. */
static bool names(const gf_error *error, const char *path) {
    gf_error name;
    size_t length = strnlen(path, 200);
    while (length && (path[length] & 0xc0) == 0x80) /* within a character */
        length--;
    gf_set_error(&name, GF_FAILED, "%.*s", (int)length, path);
    return strstr(error->message, name.message) != NULL;
}

/* Name the input where no file failed, but memory or a backend. */
static void name_file(const gf_cli_batch_run *run, const gf_cli_over *over, gf_error *error) {
    const gf_batch_item *item = &run->items[over->item];
    *error = *over->error;
    if (!names(error, item->in) && !(item->out && names(error, item->out)))
        gf_set_error(error, error->status, "%s: %s", item->in, over->error->message);
}

/* For the sum: who did each, as long as that is always the same. */
static void count_work(gf_cli_batch_run *run, const char *in, const gf_report *report) {
    char who[sizeof run->who];
    snprintf(who, sizeof who, "%s (%s)", report->backend, report->device);
    if (run->done == 0)
        memcpy(run->who, who, sizeof run->who);
    else if (strcmp(run->who, who) != 0)
        run->who[0] = 0;
    run->in_bytes += report->in_bytes;
    run->out_bytes += report->out_bytes;
    gf_cli_brightness_add(&run->brightness, report);
    if (report->dropped) {
        run->dropping++;
        run->last_dropping = in;
        run->dropped |= report->dropped;
    }
}

/* Does an errno that output i failed with keep all others from being written, too? */
static bool stops_all(const gf_cli_batch_run *run, size_t i, int cause) {
    if (cause == ENOSPC || cause == EDQUOT || cause == EROFS)
        return true;
    /* Folders in --out-dir may allow what that one does not. */
    return cause && run->outputs && run->outputs[i].folder < run->outputs[i].below &&
           access(run->line->options.out_dir, W_OK | X_OK) != 0;
}

void gf_cli_batch_complain(gf_cli_batch_run *run, size_t i, int cause, gf_error *error) {
    const bool stop = stops_all(run, i, cause);
    if (stop && run->stopped)
        return;
    if (stop && !run->dry_run)
        gf_set_error(error, error->status, "%s; no others are begun, --resume continues",
                     error->message);
    run->stopped = run->stopped || stop;
    gf_cli_progress_hide();
    gf_cli_complain(error);
}

static bool tell_over(gf_cli_batch_run *run, const gf_cli_over *over) {
    gf_cli_progress *progress = &run->progress;
    const size_t i = run->which[over->item];
    gf_error error = {0};
    gf_status status = over->status;
    errno = 0;
    if (status)
        name_file(run, over, &error);
    const bool elsewhere = status && run->outputs && gf_cli_batch_is_made_elsewhere(run, i);
    if (!status)
        status = tell(run, over, &error);
    if (over->report->device_failed) {
        const gf_cli_run one = run_of(run, over->item, over->report, NULL, over->rank);
        gf_cli_progress_hide();
        gf_cli_report_failure(&one);
    }
    tell_trouble(run);
    progress->ended++;
    gf_cli_batch_watch_end(run, over->item, &over->report->in);
    if (elsewhere) {
        run->skipped++;
    } else if (status) {
        gf_cli_batch_complain(run, i, over->status ? over->error->cause : 0, &error);
        gf_cli_event_failed(progress, run->items[over->item].in, error.message);
        progress->failed++;
    } else {
        count_work(run, run->items[over->item].in, over->report);
        run->done++;
        progress->pixels += (double)over->report->in.width * (double)over->report->in.height;
    }
    if (!run->out_cause && ferror(stdout))
        run->out_cause = errno ? errno : EIO;
    gf_cli_progress_draw(progress);
    return !run->out_cause && !run->stopped && !(run->fail_fast && progress->failed);
}

bool gf_cli_batch_tell(gf_cli_batch_run *run, const gf_cli_over *over) {
    pthread_mutex_lock(&run->telling);
    const bool go_on = tell_over(run, over);
    pthread_mutex_unlock(&run->telling);
    return go_on;
}

bool gf_cli_batch_done(void *run, const gf_batch_done *done) {
    return gf_cli_batch_tell(run, &(gf_cli_over){.item = done->item,
                                                 .status = done->status,
                                                 .error = done->error,
                                                 .report = done->report,
                                                 .result = done->result});
}

void gf_cli_batch_sum(const gf_cli_batch_run *run) {
    const gf_cli_progress *progress = &run->progress;
    const double seconds = gf_cli_now() - progress->began;
    const double rate = progress->pixels * 1e-6 / seconds;
    const uint64_t all = run->inputs.count + run->inputs.failed;
    char skipped[160];
    const uint64_t rest = all - run->done - progress->failed - run->skipped;
    gf_cli_event_end(progress, run->done, progress->failed, run->skipped + run->inputs.skipped);
    if (run->quiet)
        return;
    fflush(stdout);
    fprintf(stderr, "%" PRIu64 " done, %" PRIu64 " failed, %" PRIu64 " skipped", run->done,
            progress->failed, run->skipped + run->inputs.skipped);
    if (rest)
        fprintf(stderr, ", %" PRIu64 " not begun", rest);
    fprintf(stderr, " in %.1f s, %.*f MP/s", seconds, rate < 9.95 ? 1 : 0, rate);
    if (run->done)
        /* The threads told of are one image's: of many, as many are under way at once. */
        fprintf(stderr, "%s %s", run->done > 1 && run->who[0] ? ", each by" : " by",
                run->who[0] ? run->who : "several backends or devices");
    if (run->ranks > 1)
        fprintf(stderr, " on %" PRIu32 " ranks", run->ranks);
    if (run->done)
        gf_cli_report_bytes(run->in_bytes, run->out_bytes);
    putc('\n', stderr);
    gf_cli_skipped_text(&run->inputs, skipped, sizeof skipped);
    if (*skipped)
        fprintf(stderr, "  %s\n", skipped);
    gf_cli_report_brightness(&run->brightness);
    gf_cli_report_dropped(run->last_dropping, run->dropping, run->dropped);
}
