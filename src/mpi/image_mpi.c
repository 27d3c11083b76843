/* One image on all ranks: each rank runs a range of rows, and rank 0 merges the partial results. If
 * ranges are not possible, rank 0 runs the whole image. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi.h"

/* Properties of the image, broadcast by rank 0. */
typedef struct image_found {
    bool possible; /* ranges of rows can be run */
    gf_format format;
    char file[PATH_MAX]; /* temporary name of the output image; "": none */
} image_found;

typedef struct image_job {
    gf_engine *engine;
    const gf_filter *filter;
    const gf_settings *settings;
    const char *const *in_paths;
    const char *out_path; /* output image; NULL: none */
    const gf_file_options *options;
    uint32_t rank, count;
    image_found found;
    gf_rows_file *file; /* output image, on rank 0; NULL: none */
} image_job;

/* ---- reports --------------------------------------------------------------------------------- */

/* Append a text unless `texts` contains it. Truncate at size. */
static void image_add_text(char *texts, size_t size, const char *separator, const char *text) {
    const size_t used = strlen(texts);
    if (!strstr(texts, text))
        (void)snprintf(texts + used, size - used, "%s%s", used ? separator : "", text);
}

static void image_add_report(gf_report *all, const gf_report *one) {
    image_add_text(all->backend, sizeof all->backend, "+", one->backend);
    image_add_text(all->device, sizeof all->device, "; ", one->device);
    if (one->device_failed && !all->device_failed)
        memcpy(all->reason, one->reason, sizeof all->reason);
    all->device_failed = all->device_failed || one->device_failed;
    all->verified = all->verified && one->verified;
    all->strips += one->strips;
    all->rows_per_strip =
        one->rows_per_strip > all->rows_per_strip ? one->rows_per_strip : all->rows_per_strip;
    for (int i = 0; i < GF_STAGE_COUNT; i++) {
        all->busy[i].seconds += one->busy[i].seconds;
        all->busy[i].workers += one->busy[i].workers;
    }
    if (one->start_seconds > all->start_seconds)
        all->start_seconds = one->start_seconds;
    image_add_text(all->remarks.damage, sizeof all->remarks.damage, "; ", one->remarks.damage);
    image_add_text(all->remarks.notes, sizeof all->remarks.notes, "\n", one->remarks.notes);
    all->remarks.outside += one->remarks.outside;
    all->remarks.nodata += one->remarks.nodata;
}

/* ---- partial results as messages ------------------------------------------------------------- */

/* Serialise a partial result. The caller frees the bytes. */
static void *image_pack(const gf_partial *partial, size_t *size) {
    *size = gf_partial_size(partial);
    void *bytes = gf_mpi_need(malloc(*size));
    gf_partial_write(partial, bytes);
    return bytes;
}

/* Send partial result and report to rank 0. */
static void image_send(const gf_partial *partial, gf_report *report) {
    size_t size;
    void *bytes = image_pack(partial, &size);
    gf_mpi_send(&size, sizeof size);
    gf_mpi_send(bytes, size);
    gf_mpi_send(report, sizeof *report);
    free(bytes);
}

/* Receive partial result and report of the next rank, and merge them into *all and *report. */
static gf_status image_receive(const gf_filter *filter, const gf_settings *settings, uint32_t from,
                               gf_partial *all, gf_report *report, gf_error *error) {
    size_t size;
    gf_report one;
    gf_partial *part = NULL;
    gf_mpi_receive(from, &size, sizeof size);
    void *bytes = gf_mpi_need(malloc(size));
    gf_mpi_receive(from, bytes, size);
    gf_mpi_receive(from, &one, sizeof one);
    if (one.strips) /* 0: the rank had no rows, with fewer rows than ranks */
        image_add_report(report, &one);
    gf_status status = gf_partial_read(filter, settings, bytes, size, &part, error);
    if (!status)
        status = gf_partial_merge(all, part, error);
    gf_partial_free(part);
    free(bytes);
    return status;
}

/* Replace the partial result of all ranks by that of rank 0. */
static gf_status image_share(const image_job *job, const gf_filter *filter,
                             const gf_settings *settings, gf_partial **partial, gf_error *error) {
    size_t size;
    gf_status status = GF_OK;
    void *bytes = gf_mpi_share(job->rank == 0 ? image_pack(*partial, &size) : NULL, &size);
    if (job->rank != 0) {
        gf_partial_free(*partial);
        status = gf_partial_read(filter, settings, bytes, size, partial, error);
    }
    free(bytes);
    return gf_mpi_agree(status, error);
}

/* ---- one image ------------------------------------------------------------------------------- */

/* Rank 0: inspect the inputs and create the output file. */
static gf_status image_prepare(image_job *job, gf_error *error) {
    image_found *found = &job->found;
    gf_format drawn;
    gf_status status =
        gf_rows_possible(job->engine, job->filter, job->settings, job->in_paths, job->out_path,
                         job->options, &found->format, &found->possible, error);
    found->possible = !status && found->possible && !job->options->dry_run;
    if (!found->possible)
        return status;
    status = gf_filter_output(job->filter, job->settings, &found->format, &drawn, error);
    if (status || !drawn.width)
        return status;
    status = gf_rows_file_open(job->out_path, &drawn, job->options, &job->file, error);
    if (!status)
        (void)snprintf(found->file, sizeof found->file, "%s", gf_rows_file_name(job->file));
    return status;
}

/* Return the first row of a rank. Rank 0 always has rows, even with fewer rows than ranks. */
static uint64_t image_first_row(const image_job *job, uint32_t rank) {
    const uint64_t height = job->found.format.height, count = job->count;
    return height / count * rank + (height % count * rank + count - 1) / count;
}

/* Run this rank's range of rows. On rank 0, *partial becomes the merged result of all ranges. */
static gf_status image_run_range(image_job *job, const gf_filter *filter,
                                 const gf_settings *settings, const gf_partial *before,
                                 gf_partial **partial, gf_report *report, gf_error *error) {
    const bool draws = filter == job->filter && job->found.file[0];
    const gf_rows_job rows = {.in_paths = job->in_paths,
                              .out_path = draws ? job->out_path : NULL,
                              .out_file = draws ? job->found.file : NULL,
                              .first = image_first_row(job, job->rank),
                              .end = image_first_row(job, job->rank + 1),
                              .before = before};
    gf_status status =
        gf_run_rows(job->engine, filter, settings, &rows, job->options, partial, report, error);
    report->processes = job->count;
    status = gf_mpi_agree(status, error);
    for (uint32_t r = 1; r < job->count && !status; r++) {
        if (job->rank == r)
            image_send(*partial, report);
        else if (job->rank == 0)
            status = image_receive(filter, settings, r, *partial, report, error);
        status = gf_mpi_agree(status, error);
    }
    return status;
}

/* Run gf_filter_before on the whole image. Return its merged partial result on all ranks. */
static gf_status image_run_before(image_job *job, gf_partial **before, gf_error *error) {
    const gf_filter *filter = gf_filter_before(job->filter, job->settings, &job->found.format);
    gf_report unread;
    if (!filter)
        return GF_OK;
    const gf_filter_info *info = gf_filter_describe(filter);
    gf_settings *settings = gf_mpi_need(gf_settings_new(info->params, info->param_count));
    gf_status status = image_run_range(job, filter, settings, NULL, before, &unread, error);
    if (!status)
        status = image_share(job, filter, settings, before, error);
    gf_settings_free(settings);
    return status;
}

static gf_status image_run_ranges(image_job *job, gf_result **result, gf_report *report,
                                  gf_error *error) {
    gf_partial *before = NULL, *all = NULL;
    gf_status status = image_run_before(job, &before, error);
    if (!status)
        status = image_run_range(job, job->filter, job->settings, before, &all, report, error);
    if (!status && job->rank == 0) {
        status = gf_finish_rows(job->engine, job->filter, job->settings, all, job->file,
                                job->options, result, report, error);
        job->file = NULL;
    }
    gf_partial_free(before);
    gf_partial_free(all);
    return status;
}

gf_status gf_mpi_run_file(gf_engine *engine, const gf_filter *filter, const gf_settings *settings,
                          const char *const *in_paths, const char *out_path,
                          const gf_file_options *options, gf_result **result, gf_report *report,
                          gf_error *error) {
    const gf_cli_peers *peers = gf_mpi_peers();
    const gf_filter_info *info = gf_filter_describe(filter);
    image_job job = {.engine = engine,
                     .filter = filter,
                     .settings = settings,
                     .in_paths = in_paths,
                     .out_path = out_path,
                     .options = options,
                     .rank = peers->rank,
                     .count = peers->count};
    gf_status status = GF_OK;
    *result = NULL;
    *report = (gf_report){0};
    for (size_t i = 0; !job.out_path && i < info->param_count; i++)
        if (info->params[i].type == GF_PARAM_IMAGE)
            job.out_path = gf_settings_text(settings, info->params[i].name);
    if (job.rank == 0 && job.count > 1)
        status = image_prepare(&job, error);
    status = gf_mpi_agree(status, error);
    if (!status) {
        gf_mpi_broadcast(&job.found, sizeof job.found);
        if (job.found.possible)
            status = image_run_ranges(&job, result, report, error);
        else if (job.rank == 0)
            status = gf_run_file(engine, filter, settings, in_paths, out_path, options, result,
                                 report, error);
        status = gf_mpi_agree(status, error);
    }
    gf_rows_file_close(job.file);
    return status;
}
