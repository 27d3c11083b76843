/* One image by all ranks: each runs a range of its rows, rank 0 merges what they yield. Where
 * ranges cannot be run, rank 0 does the image alone. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi.h"

/* What rank 0 has found out about the image, for all. */
typedef struct image_found {
    bool possible; /* ranges can be run */
    bool drawn;    /* an image is made */
    gf_format format;
    char file[4096]; /* the temporary name of the image that is made */
} image_found;

typedef struct image_job {
    const gf_cli_shared_image *image;
    uint32_t rank, count;
    gf_engine *engine;
    image_found found;
    gf_rows_file *file; /* rank 0's; NULL if no image is made */
} image_job;

static gf_status image_fail_memory(const image_job *job, size_t bytes, gf_error *error) {
    return gf_set_error(error, GF_FAILED, "%s: out of memory for %zu bytes of partial results",
                        job->image->in_paths[0], bytes);
}

/* ---- partial results as messages ------------------------------------------------------------- */

/* Serialises; *bytes is for the caller to free. */
static gf_status image_pack(const image_job *job, const gf_partial *partial, void **bytes,
                            uint64_t *size, gf_error *error) {
    *size = gf_partial_size(partial);
    *bytes = malloc((size_t)*size);
    if (!*bytes)
        return image_fail_memory(job, (size_t)*size, error);
    gf_partial_write(partial, *bytes);
    return GF_OK;
}

/* Receives what the next rank yields, and appends it. */
static gf_status image_take_part(const gf_filter *filter, const gf_settings *settings,
                                 uint32_t from, gf_partial *all, gf_error *error) {
    uint64_t size;
    gf_partial *part = NULL;
    gf_mpi_receive(from, GF_MPI_TAG_STREAM, &size, sizeof size);
    void *bytes = malloc((size_t)size);
    if (!bytes) /* the message cannot be left where it is */
        gf_mpi_abort("out of memory for partial results");
    gf_mpi_receive(from, GF_MPI_TAG_STREAM, bytes, (size_t)size);
    gf_status status =
        all ? gf_partial_read(filter, settings, bytes, (size_t)size, &part, error) : GF_OK;
    if (!status && all)
        status = gf_partial_merge(all, part, error);
    gf_partial_free(part);
    free(bytes);
    return status;
}

/* Gathers: rank 0's becomes that of all rows, the others' are freed. */
static gf_status image_gather(const image_job *job, const gf_filter *filter,
                              const gf_settings *settings, gf_partial **partial, gf_error *error) {
    gf_status status = GF_OK;
    if (job->rank != 0) {
        void *bytes = NULL;
        uint64_t size;
        status = image_pack(job, *partial, &bytes, &size, error);
        if (status)
            gf_mpi_abort("out of memory for partial results");
        gf_mpi_send(0, GF_MPI_TAG_STREAM, &size, sizeof size);
        gf_mpi_send(0, GF_MPI_TAG_STREAM, bytes, (size_t)size);
        free(bytes);
        gf_partial_free(*partial);
        *partial = NULL;
    }
    for (uint32_t r = 1; r < job->count && job->rank == 0; r++) {
        gf_error own;
        const gf_status failed =
            image_take_part(filter, settings, r, status ? NULL : *partial, &own);
        if (failed && !status) {
            status = failed;
            *error = own;
        }
    }
    return gf_mpi_follow(status, error);
}

/* Gives rank 0's partial result to all. */
static gf_status image_share(const image_job *job, const gf_filter *filter,
                             const gf_settings *settings, gf_partial **partial, gf_error *error) {
    void *bytes = NULL;
    uint64_t size = 0;
    gf_status status = job->rank == 0 ? image_pack(job, *partial, &bytes, &size, error) : GF_OK;
    status = gf_mpi_follow(status, error);
    if (status)
        return status;
    gf_mpi_broadcast(&size, sizeof size);
    if (job->rank != 0 && !(bytes = malloc((size_t)size)))
        status = image_fail_memory(job, (size_t)size, error);
    status = gf_mpi_agree(status, error);
    if (!status) {
        gf_mpi_broadcast(bytes, (size_t)size);
        if (job->rank != 0)
            status = gf_partial_read(filter, settings, bytes, (size_t)size, partial, error);
    }
    free(bytes);
    return gf_mpi_agree(status, error);
}

/* ---- reports --------------------------------------------------------------------------------- */

/* Adds a text to those that are there, unless it is one of them, as far as there is room. */
static void image_add_text(char *texts, size_t size, const char *separator, const char *text) {
    const size_t used = strlen(texts);
    if (!strstr(texts, text))
        (void)snprintf(texts + used, size - used, "%s%s", used ? separator : "", text);
}

static void image_add_report(gf_report *all, const gf_report *one) {
    if (!one->bands) /* there were fewer rows than ranks */
        return;
    image_add_text(all->backend, sizeof all->backend, "+", one->backend);
    image_add_text(all->device, sizeof all->device, "; ", one->device);
    if (!all->reason[0] || (one->device_failed && !all->device_failed))
        memcpy(all->reason, one->reason, sizeof all->reason);
    all->device_failed = all->device_failed || one->device_failed;
    all->verified = all->verified && one->verified;
    all->bands += one->bands;
    all->band_rows = one->band_rows > all->band_rows ? one->band_rows : all->band_rows;
    for (int i = 0; i < GF_STAGE_COUNT; i++) {
        all->busy[i].seconds += one->busy[i].seconds;
        all->busy[i].workers += one->busy[i].workers;
    }
    if (one->start_seconds > all->start_seconds)
        all->start_seconds = one->start_seconds;
}

/* Makes one report on rank 0 of what all ranks did. */
static void image_gather_reports(const image_job *job, gf_report *report) {
    gf_report all = *report;
    all.backend[0] = all.device[0] = all.reason[0] = 0;
    all.device_failed = false;
    all.verified = true;
    all.bands = all.band_rows = 0;
    all.start_seconds = 0;
    all.processes = job->count;
    memset(all.busy, 0, sizeof all.busy);
    if (job->rank != 0) {
        gf_mpi_send(0, GF_MPI_TAG_STREAM, report, sizeof *report);
        return;
    }
    image_add_report(&all, report);
    for (uint32_t r = 1; r < job->count; r++) {
        gf_report one;
        gf_mpi_receive(r, GF_MPI_TAG_STREAM, &one, sizeof one);
        image_add_report(&all, &one);
    }
    *report = all;
}

/* ---- one image ------------------------------------------------------------------------------- */

/* Rank 0 looks at the inputs, and creates the file of the image. */
static gf_status image_prepare(image_job *job, gf_error *error) {
    const gf_cli_shared_image *image = job->image;
    const gf_filter_info *info = gf_filter_describe(image->filter);
    const gf_file_options *options = image->options;
    image_found *found = &job->found;
    const char *path = image->out_path;
    gf_format drawn;
    gf_status status =
        gf_rows_possible(job->engine, image->filter, image->settings, image->in_paths, path,
                         options, &found->format, &found->possible, error);
    if (status || !found->possible || options->dry_run) {
        found->possible = found->possible && !options->dry_run;
        return status;
    }
    status = gf_filter_output(image->filter, image->settings, &found->format, &drawn, error);
    if (status || !drawn.width)
        return status;
    for (size_t i = 0; !path && i < info->param_count; i++)
        if (info->params[i].type == GF_PARAM_IMAGE)
            path = gf_settings_text(image->settings, info->params[i].name);
    status = gf_rows_file_open(path, &drawn, options, &job->file, error);
    if (status)
        return status;
    const char *name = gf_rows_file_name(job->file);
    found->drawn = true;
    found->possible = strlen(name) < sizeof found->file;
    if (found->possible)
        memcpy(found->file, name, strlen(name) + 1);
    return GF_OK;
}

/* Runs this rank's range of a filter, and gathers: *partial is rank 0's. */
static gf_status image_run_range(image_job *job, const gf_filter *filter,
                                 const gf_settings *settings, const gf_partial *before, bool draws,
                                 gf_partial **partial, gf_report *report, gf_error *error) {
    const gf_cli_shared_image *image = job->image;
    const uint64_t height = job->found.format.height, whole = height / job->count;
    const uint64_t rest = height % job->count, rank = job->rank;
    const char *out = image->out_path ? image->out_path : job->found.file;
    const gf_rows_job rows = {.in_paths = image->in_paths,
                              .out_path = draws ? out : NULL,
                              .out_file = draws ? job->found.file : NULL,
                              .first = whole * rank + (rank < rest ? rank : rest),
                              .end = whole * (rank + 1) + (rank + 1 < rest ? rank + 1 : rest),
                              .before = before};
    gf_status status =
        gf_run_rows(job->engine, filter, settings, &rows, image->options, partial, report, error);
    status = gf_mpi_agree(status, error);
    return status ? status : image_gather(job, filter, settings, partial, error);
}

/* Runs the filter that measures the whole image first; all ranks get what it yields. */
static gf_status image_run_before(image_job *job, gf_partial **before, gf_error *error) {
    const gf_filter *filter = gf_filter_before(job->image->filter);
    gf_report unread;
    if (!filter)
        return GF_OK;
    const gf_filter_info *info = gf_filter_describe(filter);
    gf_settings *settings = gf_settings_new(info->params, info->param_count);
    gf_status status = gf_mpi_agree(settings ? GF_OK : image_fail_memory(job, 0, error), error);
    if (!status)
        status = image_run_range(job, filter, settings, NULL, false, before, &unread, error);
    if (!status)
        status = image_share(job, filter, settings, before, error);
    gf_settings_free(settings);
    return status;
}

static gf_status image_run_ranges(image_job *job, gf_result **result, gf_report *report,
                                  gf_error *error) {
    const gf_cli_shared_image *image = job->image;
    gf_partial *before = NULL, *all = NULL;
    gf_status status = image_run_before(job, &before, error);
    if (!status)
        status = image_run_range(job, image->filter, image->settings, before, job->found.drawn,
                                 &all, report, error);
    if (!status)
        image_gather_reports(job, report);
    if (!status && job->rank == 0)
        status = gf_finish_rows(job->engine, image->filter, image->settings, all, job->file,
                                image->options, result, report, error);
    gf_partial_free(before);
    gf_partial_free(all);
    return status;
}

gf_status gf_mpi_run_image(const gf_cli_shared_image *image, gf_result **result, gf_report *report,
                           gf_error *error) {
    const gf_cli_peers *peers = gf_mpi_peers();
    image_job job = {.image = image, .rank = peers->rank, .count = peers->count};
    *result = NULL;
    *report = (gf_report){0};
    gf_status status = gf_mpi_agree(gf_engine_open(image->engine, &job.engine, error), error);
    if (!status) {
        status = job.rank == 0 ? image_prepare(&job, error) : GF_OK;
        status = gf_mpi_follow(status, error);
    }
    if (!status) {
        gf_mpi_broadcast(&job.found, sizeof job.found);
        if (job.found.possible && job.count > 1)
            status = image_run_ranges(&job, result, report, error);
        else if (job.rank == 0)
            status = gf_run_file(job.engine, image->filter, image->settings, image->in_paths,
                                 image->out_path, image->options, result, report, error);
        status = gf_mpi_follow(status, error);
    }
    gf_rows_file_close(job.file);
    gf_engine_close(job.engine);
    return status;
}
