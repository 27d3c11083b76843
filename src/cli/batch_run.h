/* A batch under way: what its parts share. */
#ifndef GF_CLI_BATCH_RUN_H
#define GF_CLI_BATCH_RUN_H

#include <pthread.h>

#include "folders.h"
#include "journal.h"
#include "outputs.h"
#include "progress.h"
#include "report.h"
#include "shard.h"

typedef struct gf_cli_batch_run {
    const gf_filter *filter;
    const gf_filter_info *info;
    const gf_cli_line *line;
    bool json, csv, quiet, verbose, fail_fast, dry_run;
    bool begun; /* nothing stood against all of them */
    gf_cli_shard shard;
    gf_cli_inputs inputs;    /* those of the shard, once all have been gathered and checked */
    gf_cli_output *outputs;  /* NULL for a filter that measures */
    gf_batch_item *items;    /* what is to be run, */
    size_t *which, to_run;   /* and which inputs that is */
    gf_cli_folders folders;  /* that were made */
    gf_cli_journal *journal; /* NULL for a filter that measures */
    uint64_t settings;       /* digest of all that decides what is made of an input */
    uint64_t in_bytes, out_bytes;
    gf_cli_brightness brightness;
    uint64_t dropping; /* images whose outputs lack metadata, the last of them, and which */
    const char *last_dropping;
    uint32_t dropped;
    char who[256];           /* did each: backend and device; "" if not always the same */
    uint64_t done, skipped;  /* what failed is counted in the progress */
    pthread_mutex_t telling; /* for the progress, and all that is printed while images run */
    gf_cli_progress progress;
    float
        *parts; /* of each item, how much of it is done while it is under way; NULL: not watched */
    char *header;  /* of the CSV; NULL: there is none yet */
    int out_cause; /* why standard output failed, an errno */
    bool stopped;  /* no output can be written */

    uint32_t rank, ranks; /* of several processes, which one this is */
    gf_cli_screen screen; /* of rank 0 */
    char *list;           /* on the others: the names in items */
} gf_cli_batch_run;

/* ---- which outputs are ours (batch_made.c) --------------------------------------------------- */

/* Fills in run->settings. What does not change a result (backend, threads, bands) is left out. */
gf_status gf_cli_batch_digest(gf_cli_batch_run *run, gf_error *error);
/* What is there under the name of output i: did a run into this folder make it? */
bool gf_cli_batch_is_ours(const gf_cli_batch_run *run, size_t i, const gf_cli_look *look);
/* And of this input, as it was when it was gathered, with these settings? */
bool gf_cli_batch_is_finished(const gf_cli_batch_run *run, size_t i, const gf_cli_look *look);
/* --resume, when output i could not be made: has another run finished it since this one began? */
bool gf_cli_batch_is_made_elsewhere(const gf_cli_batch_run *run, size_t i);
/* Notes the output of an item in the record, by the size and time of its finished file. GF_FAILED
 * where what it would replace is no longer what was decided about. */
gf_status gf_cli_batch_note(const gf_cli_batch_run *run, uint64_t item, uint64_t size, int64_t time,
                            gf_error *error);
/* Those of a file that is ready. */
gf_status gf_cli_batch_see(const gf_cli_batch_run *run, const gf_ready *ready, uint64_t *size,
                           int64_t *time, gf_error *error);
/* gf_file_options.ready: both. */
gf_status gf_cli_batch_ready(void *run, const gf_ready *ready, gf_error *error);

/* ---- which inputs are run (batch_choose.c) --------------------------------------------------- */

/* Fills in what is to be run. Tells what cannot be, and counts what need not. */
gf_status gf_cli_batch_choose(gf_cli_batch_run *run, gf_error *error);

/* ---- what is under way (batch_watch.c) ------------------------------------------------------- */

/* Has the progress moved by images that are not over, too. */
void gf_cli_batch_watch(gf_cli_batch_run *run, gf_file_options *files);
/* An item is over. Needs the lock. */
void gf_cli_batch_watch_end(gf_cli_batch_run *run, uint64_t item, const gf_format *in);

/* ---- what is told (batch_tell.c) ------------------------------------------------------------- */

/* What became of an item, and what standard output gets of it: a result, or text that was made of
 * it elsewhere. */
typedef struct gf_cli_over {
    uint64_t item;
    gf_status status;
    const gf_error *error;
    const gf_report *report;
    const gf_result *result;
    const char *text;
    size_t size, header; /* of the text, and of the CSV's header with which it begins */
    uint32_t rank;
} gf_cli_over;

/* Print the failure of item i; cause: that of gf_error. A cause that stops all outputs, such as a
 * full disk, is printed once, however many images are under way, and sets run->stopped. */
void gf_cli_batch_complain(gf_cli_batch_run *run, size_t i, int cause, gf_error *error);
/* Tells and counts it. False: begin no others. */
bool gf_cli_batch_tell(gf_cli_batch_run *run, const gf_cli_over *over);
/* gf_batch_options.done */
bool gf_cli_batch_done(void *run, const gf_batch_done *done);
/* That text, for a screen as in run->screen, or NULL if there is nothing to say; to be freed.
 * GF_FAILED if there is no memory for it. */
gf_status gf_cli_batch_render(const gf_cli_batch_run *run, const gf_batch_done *done, char **text,
                              size_t *size, size_t *header, gf_error *error);
/* In the end. */
void gf_cli_batch_sum(const gf_cli_batch_run *run);

#endif
