/* Images in device memory: checks of arguments, jobs kept by an engine, results. The backend queues
 * the work (backend/device.h). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/thread.h"
#include "engine/run/task.h"
#include "io/png/png.h"

struct gf_device_job {
    gf_engine *engine;
    gf_chain chain; /* owns its settings */
    gf_plan *plan;
    const gf_job_functions *jobs; /* of the backend */
    void *job;                    /* the same */
    size_t in_row, out_row;       /* bytes per row; out_row 0: no image */
    bool independent;             /* rows are independent */
};

/* Images of one launch. */
typedef struct gf_device_group {
    gf_device_part *part;
    uint64_t images;
} gf_device_group;

struct gf_device_results {
    gf_device_job *job;
    uint64_t count; /* images */
    size_t group_count;
    gf_device_group groups[];
};

/* ---- jobs ------------------------------------------------------------------------------------ */

/* Copy the settings of the chain, create the plans, and open the job of the backend. */
static gf_status device_open_job(gf_device_job *job, const gf_format *format, gf_error *error) {
    gf_chain *chain = &job->chain;
    const char *name = chain->filter->info.name;
    const gf_backend *backend;
    void *state;
    if (!chain->own)
        chain->settings = chain->own = gf_settings_copy(chain->settings);
    /* texts of the caller's settings, or of the job: only whether there are samples matters */
    chain->samples_path = chain->samples_path ? "" : NULL;
    chain->in_paths[0] = chain->in_paths[1] = chain->out_path = NULL;
    gf_status status =
        chain->own ? GF_OK : gf_fail(error, GF_FAILED, "%s: out of memory for settings", name);
    if (!status)
        status = gf_chain_plan(chain, format, &job->plan, error);
    assert(status || job->plan);
    if (!status && job->plan->measure_first && chain->filter->measure)
        status = gf_fail(error, GF_USAGE,
                         "%s: --range data needs a first pass; in device memory, "
                         "measure min and max with --statistics, and give them as --range LO,HI",
                         name);
    if (!status)
        status = gf_engine_device(job->engine, &backend, &state, error);
    if (status)
        return status;
    job->jobs = backend->jobs;
    return job->jobs->open(state, chain->filter, job->plan, &job->job, error);
}

/* Create a job. Takes ownership of the chain. */
static gf_status device_new(gf_engine *engine, gf_chain *chain, const gf_format *format,
                            gf_device_job **out, gf_error *error) {
    gf_device_job *job = calloc(1, sizeof *job);
    *out = NULL;
    if (!job) {
        gf_chain_close(chain);
        return gf_fail_memory(error, chain->filter->info.name, sizeof *job, "a job");
    }
    job->engine = engine;
    job->chain = *chain;
    const gf_status status = device_open_job(job, format, error);
    if (status) {
        gf_device_job_free(job);
        return status;
    }
    job->in_row = gf_row_bytes(format);
    job->out_row = job->plan->out.width ? gf_row_bytes(&job->plan->out) : 0;
    job->independent = gf_rows_independent(job->plan);
    *out = job;
    return GF_OK;
}

gf_status gf_device_job_new(gf_engine *engine, const gf_job *job, gf_device_job **out,
                            gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    gf_chain chain;
    *out = NULL;
    gf_status status = gf_chain_open(job, &chain, error);
    if (!status)
        status = gf_format_check(&job->format, "device memory", error);
    if (!status)
        return device_new(engine, &chain, &job->format, out, error);
    gf_chain_close(&chain);
    return status;
}

void gf_device_job_free(gf_device_job *job) {
    if (!job)
        return;
    if (job->job)
        job->jobs->close(job->job);
    gf_plan_free(job->plan);
    gf_chain_close(&job->chain);
    free(job);
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* Check the memory of one image. in: its inputs. */
static gf_status device_check(const gf_device_job *job, const gf_pixels *in,
                              const gf_out_pixels *out, gf_error *error) {
    const char *name = job->chain.filter->info.name;
    const gf_plan *plan = job->plan;
    gf_status status = GF_OK;
    for (uint32_t i = 0; i < plan->inputs && !status; i++)
        status = gf_pixels_check(name, i ? "second input" : "input", &plan->in, in[i], error);
    if (status || !job->out_row)
        return status;
    status =
        gf_pixels_check(name, "output", &plan->out, (gf_pixels){out->data, out->stride}, error);
    return status ? status : gf_check_overlap(plan, name, in, out, error);
}

/* Return whether image `next` of a list begins where the one before it ends. */
static bool device_follows(const gf_device_job *job, const gf_pixels *in,
                           const gf_out_pixels *out) {
    const uint32_t inputs = job->plan->inputs;
    const uint64_t height = job->plan->in.height;
    for (uint32_t i = 0; i < inputs; i++) {
        const gf_pixels *next = in + inputs + i;
        if (next->stride != in[i].stride ||
            (uintptr_t)next->data != (uintptr_t)in[i].data + height * in[i].stride)
            return false;
    }
    return !job->out_row ||
           (out[1].stride == out[0].stride &&
            (uintptr_t)out[1].data == (uintptr_t)out[0].data + height * out[0].stride);
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Queue all images, and append the measurements of each launch to *results, unless it is NULL. */
static gf_status device_queue(gf_device_job *job, uint64_t count, const gf_pixels *in,
                              const gf_out_pixels *out, void *stream, gf_device_results *results,
                              gf_error *error) {
    const uint32_t inputs = job->plan->inputs;
    gf_status status = GF_OK;
    for (uint64_t i = 0; i < count && !status; i++)
        status = device_check(job, in + i * inputs, job->out_row ? out + i : NULL, error);
    for (uint64_t i = 0, images; i < count && !status; i += images) {
        const gf_out_pixels *to = job->out_row ? out + i : NULL;
        gf_job_images group = {1, job->plan->in.height, in + i * inputs, to};
        gf_device_part *part = NULL;
        for (images = 1; job->independent && i + images < count; images++)
            if (!device_follows(job, in + (i + images - 1) * inputs,
                                job->out_row ? to + images - 1 : NULL))
                break;
        if (images > 1)
            group.rows *= images;
        else if (job->independent || !job->chain.filter->measure)
            group.count = images = count - i;
        status = job->jobs->run(job->job, &group, stream, &part, error);
        if (!status && results)
            results->groups[results->group_count++] = (gf_device_group){part, images};
    }
    return status;
}

/* Arrange the lists of two inputs as pairs. *pairs: allocated; NULL with one input. */
static gf_status device_pair_inputs(const gf_device_job *job, const gf_device_images *images,
                                    gf_pixels **pairs, gf_error *error) {
    *pairs = NULL;
    if (job->plan->inputs == 1)
        return GF_OK;
    *pairs = malloc((size_t)(2 * images->count + 1) * sizeof **pairs);
    if (!*pairs)
        return gf_fail_memory(error, job->chain.filter->info.name,
                              2 * images->count * sizeof **pairs, "the list of images");
    for (uint64_t i = 0; i < images->count; i++) {
        (*pairs)[2 * i] = images->in[i];
        (*pairs)[2 * i + 1] = images->second[0][i];
    }
    return GF_OK;
}

static gf_status device_check_lists(const gf_device_job *job, const gf_device_images *images,
                                    gf_error *error) {
    const char *name = job->chain.filter->info.name;
    if (images->count && !images->in)
        return gf_fail(error, GF_USAGE, "%s: the list of input images is NULL", name);
    if (images->count && job->plan->inputs == 2 && (!images->second || !images->second[0]))
        return gf_fail(error, GF_USAGE, "%s: the list of second images is NULL", name);
    if (images->count && job->out_row && (!images->out || !images->out[0]))
        return gf_fail(error, GF_USAGE, "%s: produces an image; give an output", name);
    return GF_OK;
}

gf_status gf_device_job_run(gf_device_job *job, const gf_device_images *images, void *stream,
                            gf_device_results **out_results, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    gf_device_results *results = NULL;
    gf_pixels *pairs = NULL;
    if (out_results)
        *out_results = NULL;
    gf_status status = device_check_lists(job, images, error);
    if (!status)
        status = device_pair_inputs(job, images, &pairs, error);
    if (!status && job->chain.filter->measure) {
        const size_t bytes = sizeof *results + (size_t)images->count * sizeof results->groups[0];
        results = malloc(bytes);
        if (results)
            *results = (gf_device_results){.job = job, .count = images->count};
        else
            status = gf_fail_memory(error, job->chain.filter->info.name, bytes, "the results");
    }
    if (!status)
        status = device_queue(job, images->count, pairs ? pairs : images->in,
                              job->out_row && images->count ? images->out[0] : NULL, stream,
                              results, error);
    free(pairs);
    if (status || !out_results)
        gf_device_results_free(results);
    else
        *out_results = results;
    return status;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Pass the measurements of image `image` of a part to the measure of its task. */
static gf_status device_deliver(const gf_device_part *part, uint64_t image, gf_task *task,
                                gf_error *error) {
    const gf_measure *measure = task->chain->filter->measure;
    const gf_plan *plan = task->plan;
    gf_status status = GF_OK;
    if (part->records.data) {
        const uint64_t height = plan->in.height;
        const gf_rows rows = {part->records.data + image * height * part->records.stride,
                              part->records.stride, 0, height};
        status = measure->rows(plan, task->data, &rows, error);
    }
    if (!status && part->payload)
        status = measure->payload(plan, task->data, part->payload, error);
    return status ? status : measure->finish(plan, task->data, part->state, error);
}

static gf_status device_make_result(const gf_device_job *job, const gf_device_part *part,
                                    uint64_t image, gf_result **result, gf_error *error) {
    const bool samples = job->chain.samples_path != NULL;
    gf_task task = {.chain = &job->chain,
                    .inputs = {.name = "device memory"},
                    .memory = job->engine->options.max_memory,
                    .keep_samples = samples,
                    .buffer_samples = samples};
    gf_status status = gf_chain_plan(&job->chain, &job->plan->in, &task.plan, error);
    if (!status)
        status = gf_task_open_measure(&task, error);
    if (!status)
        status = device_deliver(part, image, &task, error);
    if (!status)
        status = gf_task_make_result(&task, result, error);
    gf_task_end(&task);
    return status;
}

gf_status gf_device_results_wait(gf_device_results *results, gf_result **list, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    const gf_device_job *job = results->job;
    gf_status status = GF_OK;
    uint64_t made = 0;
    memset(list, 0, (size_t)results->count * sizeof(gf_result *));
    for (size_t g = 0; g < results->group_count && !status; g++)
        status = job->jobs->fetch(job->job, results->groups[g].part, error);
    for (size_t g = 0; g < results->group_count && !status; g++) {
        const gf_device_group *group = &results->groups[g];
        status = job->jobs->wait(job->job, group->part, error);
        for (uint64_t i = 0; i < group->images && !status; i++)
            status = device_make_result(job, group->part, i, &list[made++], error);
    }
    for (uint64_t i = 0; i < made && status; i++) {
        gf_result_free(list[i]);
        list[i] = NULL;
    }
    gf_device_results_free(results);
    return status;
}

void gf_device_results_free(gf_device_results *results) {
    if (!results)
        return;
    for (size_t i = 0; i < results->group_count; i++)
        results->job->jobs->release(results->job->job, results->groups[i].part);
    free(results);
}

gf_status gf_device_wait(gf_engine *engine, void *stream, gf_error *error) {
    const gf_backend *backend;
    void *state;
    const gf_status status = gf_engine_device(engine, &backend, &state, error);
    return status ? status : backend->jobs->wait_stream(state, stream, error);
}

/* ---- PNG ------------------------------------------------------------------------------------- */

static gf_status device_check_png(const gf_format *format, uint64_t count, const gf_pixels *in,
                                  const gf_buffer *out, gf_error *error) {
    const char *name = "encode_png";
    gf_status status = gf_format_check(format, "device memory", error);
    if (!status && format->type == GF_F32)
        status = gf_fail(error, GF_USAGE,
                         "%s: PNG cannot store f32 samples; convert them to u8 or u16", name);
    if (!status && format->channels % 2 == 0 && !gf_has_alpha(format))
        status = gf_fail(error, GF_USAGE,
                         "%s: PNG stores channel %u only as alpha; set gf_format.alpha, or encode "
                         "1 or 3 channels",
                         name, format->channels);
    if (!status && count && (!in || !out))
        status =
            gf_fail(error, GF_USAGE, "%s: the list of %s is NULL", name, in ? "outputs" : "images");
    for (uint64_t i = 0; i < count && !status; i++)
        status = gf_pixels_check(name, "image", format, in[i], error);
    return status;
}

gf_status gf_encode_png_device(gf_engine *engine, const gf_format *format, uint64_t count,
                               const gf_pixels *in, gf_buffer *out, void *stream, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    const gf_device_encoding call = {format, count, in, out, NULL, gf_engine_threads(engine),
                                     stream};
    const gf_backend *backend;
    void *state;
    gf_status status = device_check_png(format, count, in, out, error);
    if (!status)
        status = gf_engine_device(engine, &backend, &state, error);
    return status || count == 0 ? status : backend->png->encode(state, &call, error);
}

gf_status gf_png_format(const void *file, size_t size, gf_format *format, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    gf_source *source;
    const gf_status status = gf_png_memory_source(file, size, "PNG", &source, error);
    if (status)
        return status;
    *format = source->format;
    source->ops->close(source);
    return GF_OK;
}

static bool device_decodes_always;

void gf_device_decode_always(bool always) {
    device_decodes_always = always;
}

bool gf_device_decodes_always(void) {
    return device_decodes_always;
}

static gf_status device_check_files(uint64_t count, const gf_buffer *files,
                                    const gf_format *formats, const gf_out_pixels *out,
                                    gf_error *error) {
    const char *name = "decode_png";
    gf_status status = GF_OK;
    if (!files || !formats || !out)
        return gf_fail(error, GF_USAGE, "%s: the list of %s is NULL", name,
                       !files     ? "files"
                       : !formats ? "formats"
                                  : "images");
    for (uint64_t i = 0; i < count && !status; i++) {
        status = gf_format_check(&formats[i], "device memory", error);
        if (!status && !files[i].data)
            status = gf_fail(error, GF_USAGE, "%s: the file is NULL", name);
        if (!status)
            status = gf_pixels_check(name, "image", &formats[i],
                                     (gf_pixels){out[i].data, out[i].stride}, error);
    }
    return status;
}

gf_status gf_decode_png_device(gf_engine *engine, uint64_t count, const gf_buffer *files,
                               const gf_format *formats, const gf_out_pixels *out, void *stream,
                               gf_error *errors, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    const gf_backend *backend;
    void *state;
    gf_status status = count ? device_check_files(count, files, formats, out, error) : GF_OK;
    if (!status)
        status = gf_engine_device(engine, &backend, &state, error);
    if (status || count == 0)
        return status;
    gf_error *own = errors ? errors : calloc((size_t)count, sizeof *own);
    if (!own)
        return gf_fail_memory(error, "decode_png", count * sizeof *own, "the errors");
    for (uint64_t i = 0; i < count; i++)
        own[i].status = GF_OK;
    const gf_device_decoding call = {.count = count,
                                     .out = out,
                                     .stream = stream,
                                     .files = files,
                                     .formats = formats,
                                     .errors = own,
                                     .threads = gf_engine_threads(engine),
                                     .always = device_decodes_always};
    status = backend->png->decode(state, &call, error);
    for (uint64_t i = 0; i < count && !status && !errors; i++)
        if (own[i].status) {
            status = own[i].status;
            if (error)
                *error = own[i];
        }
    if (!errors)
        free(own);
    return status;
}

/* ---- jobs of an engine ----------------------------------------------------------------------- */

#define GF_KEPT_JOBS 16

/* Jobs of gf_run_device, the most recently used first. */
typedef struct gf_device_jobs {
    size_t count;
    gf_device_job *list[GF_KEPT_JOBS];
} gf_device_jobs;

static void device_free_jobs(gf_device_jobs *jobs) {
    for (size_t i = 0; i < jobs->count; i++)
        gf_device_job_free(jobs->list[i]);
    free(jobs);
}

/* Find or create the job of a chain, and move it to the front. */
static gf_status device_find_job(gf_engine *engine, const gf_chain *chain, const gf_format *format,
                                 gf_device_job **out, gf_error *error) {
    if (!engine->jobs && !(engine->jobs = calloc(1, sizeof *engine->jobs)))
        return gf_fail_memory(error, chain->filter->info.name, sizeof *engine->jobs, "a job");
    engine->free_jobs = device_free_jobs;
    gf_device_jobs *jobs = engine->jobs;
    gf_device_job *found = NULL;
    size_t at = 0;
    for (; at < jobs->count && !found; at++)
        if (jobs->list[at]->chain.filter == chain->filter &&
            gf_format_equal(&jobs->list[at]->plan->in, format) &&
            gf_settings_same(jobs->list[at]->chain.settings, chain->settings))
            found = jobs->list[at];
    if (!found) {
        gf_chain kept = *chain;
        kept.own = NULL; /* the job copies the settings */
        const gf_status status = device_new(engine, &kept, format, &found, error);
        if (status)
            return status;
        if (jobs->count == GF_KEPT_JOBS)
            gf_device_job_free(jobs->list[--jobs->count]);
        at = ++jobs->count;
    }
    while (--at > 0)
        jobs->list[at] = jobs->list[at - 1];
    *out = jobs->list[0] = found;
    return GF_OK;
}

gf_status gf_run_on_device(gf_engine *engine, const gf_chain *chain, const gf_format *format,
                           void *stream, gf_result **results, gf_error *error) {
    gf_device_job *prepared;
    gf_device_results *queued = NULL;
    const gf_device_images images = {
        .count = chain->count, .in = chain->in[0], .second = &chain->in[1], .out = &chain->out};
    gf_status status = device_find_job(engine, chain, format, &prepared, error);
    if (!status)
        status = gf_device_job_run(prepared, &images, stream, results ? &queued : NULL, error);
    return queued ? gf_device_results_wait(queued, results, error) : status;
}
