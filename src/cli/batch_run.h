/* A batch under way: what its parts share. */
#ifndef GF_CLI_BATCH_RUN_H
#define GF_CLI_BATCH_RUN_H

#include "journal.h"
#include "outputs.h"
#include "progress.h"

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

/* ---- which inputs are run (batch_choose.c) --------------------------------------------------- */

/* Fills in run->settings. What does not change a result (backend, threads, bands) is left out. */
gf_status gf_cli_batch_digest(gf_cli_batch_run *run, gf_error *error);
/* Fills in what is to be run. Tells what cannot be, and counts what need not. */
gf_status gf_cli_batch_choose(gf_cli_batch_run *run, gf_error *error);
/* Notes what became of the output of input i. */
void gf_cli_batch_note(gf_cli_batch_run *run, size_t i, gf_cli_made_kind kind);

/* ---- what is told (batch_tell.c) ------------------------------------------------------------- */

/* gf_batch_options.done */
bool gf_cli_batch_done(void *run, const gf_batch_done *done);
/* In the end. */
void gf_cli_batch_sum(const gf_cli_batch_run *run);

#endif
