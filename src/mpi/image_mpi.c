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
    const gf_job *job;
    uint32_t rank, count;
    image_found found;
    uint64_t rows;      /* that the job computes: those of its image, or of the input */
    gf_rows_file *file; /* output image, on rank 0; NULL: none */
} image_job;

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
    if (one->rows_per_strip > all->rows_per_strip)
        all->rows_per_strip = one->rows_per_strip;
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

/* Serialise a partial result. The caller frees the bytes. */
static void *image_pack(const gf_partial *partial, size_t *size) {
    *size = gf_partial_size(partial);
    void *bytes = gf_mpi_need(malloc(*size));
    gf_partial_write(partial, bytes);
    return bytes;
}

/* Return the first row of a rank, of `rows` rows. Rank 0 has rows even if there are few. */
static uint64_t image_first_row(const image_job *image, uint64_t rows, uint32_t rank) {
    const uint64_t count = image->count;
    return rows / count * rank + (rows % count * rank + count - 1) / count;
}

/* Run this rank's range of rows of a job. On rank 0, *partial is the merged result of all ranks. */
static gf_status image_run_range(image_job *image, const gf_job *job, const gf_partial *before,
                                 gf_partial **partial, gf_outcome *outcome, gf_error *error) {
    gf_report *report = &outcome->report;
    const uint64_t all = job == image->job ? image->rows : image->found.format.height;
    const gf_rows_range rows = {
        .first = image_first_row(image, all, image->rank),
        .end = image_first_row(image, all, image->rank + 1),
        .file = job == image->job && image->found.file[0] ? image->found.file : NULL,
        .before = before};
    gf_status status = gf_run_rows(image->engine, job, &rows, partial, outcome, error);
    report->processes = image->count;
    status = gf_mpi_agree(status, error);
    for (uint32_t r = 1; r < image->count && !status; r++) {
        if (image->rank == r) {
            size_t size;
            void *bytes = image_pack(*partial, &size);
            gf_mpi_move(GF_MPI_SEND, 0, &size, sizeof size);
            gf_mpi_move(GF_MPI_SEND, 0, bytes, size);
            gf_mpi_move(GF_MPI_SEND, 0, report, sizeof *report);
            free(bytes);
        } else if (image->rank == 0) {
            size_t size;
            gf_report one;
            gf_partial *part = NULL;
            gf_mpi_move(GF_MPI_RECEIVE, r, &size, sizeof size);
            void *bytes = gf_mpi_need(malloc(size));
            gf_mpi_move(GF_MPI_RECEIVE, r, bytes, size);
            gf_mpi_move(GF_MPI_RECEIVE, r, &one, sizeof one);
            if (one.strips) /* 0: the rank had no rows, with fewer rows than ranks */
                image_add_report(report, &one);
            status = gf_partial_read(job, bytes, size, &part, error);
            if (!status)
                status = gf_partial_merge(*partial, part, error);
            gf_partial_free(part);
            free(bytes);
        }
        status = gf_mpi_agree(status, error);
    }
    return status;
}

/* Measure the whole image first if the filter needs that. *before: merged, on all ranks. */
static gf_status image_run_before(image_job *image, gf_partial **before, gf_error *error) {
    gf_step_info info[GF_CLI_MAX_STEPS] = {{.effective = NULL}};
    gf_job what = *image->job;
    gf_outcome unread = {.steps = NULL};
    what.format = image->found.format;
    gf_status status = gf_job_inspect(&what, info, error);
    if (status)
        return status;
    gf_settings_free(info[0].effective);
    image->rows = info[0].out.width ? info[0].out.height : what.format.height;
    if (!info[0].measures_first)
        return GF_OK;
    const gf_step step = {.filter = info[0].measures_first};
    const gf_job job = {
        .steps = &step, .step_count = 1, .in_path = what.in_path, .options = what.options};
    status = image_run_range(image, &job, NULL, before, &unread, error);
    if (status)
        return status;
    size_t size;
    void *bytes = gf_mpi_share(image->rank == 0 ? image_pack(*before, &size) : NULL, &size);
    if (image->rank != 0) {
        gf_partial_free(*before);
        status = gf_partial_read(&job, bytes, size, before, error);
    }
    free(bytes);
    return gf_mpi_agree(status, error);
}

gf_status gf_mpi_run(gf_engine *engine, const gf_job *job, gf_outcome *outcome, gf_error *error) {
    const gf_cli_peers *peers = gf_mpi_peers();
    image_job image = {.engine = engine, .job = job, .rank = peers->rank, .count = peers->count};
    image_found *found = &image.found;
    gf_partial *before = NULL, *all = NULL;
    gf_status status = GF_OK;
    if (image.rank == 0 && image.count > 1) {
        /* Inspect the inputs and create the output file. */
        status = gf_rows_possible(engine, job, &found->format, &found->possible, error);
        found->possible = !status && found->possible && !(job->options && job->options->dry_run);
        if (found->possible)
            status = gf_rows_file_open(job, &found->format, &image.file, error);
        if (!status && image.file)
            (void)snprintf(found->file, sizeof found->file, "%s", gf_rows_file_name(image.file));
    }
    status = gf_mpi_agree(status, error);
    if (!status) {
        gf_mpi_move(GF_MPI_BROADCAST, 0, found, sizeof *found);
        if (found->possible)
            status = image_run_before(&image, &before, error);
        if (!status && found->possible)
            status = image_run_range(&image, job, before, &all, outcome, error);
        if (!status && image.rank == 0 && !found->possible)
            status = gf_run(engine, job, outcome, error);
        if (!status && image.rank == 0 && found->possible) {
            status = gf_finish_rows(engine, job, all, image.file, outcome, error);
            image.file = NULL;
        }
        status = gf_mpi_agree(status, error);
    }
    gf_partial_free(before);
    gf_partial_free(all);
    gf_rows_file_close(image.file);
    return status;
}
