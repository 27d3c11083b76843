/* Images in device memory: checks, jobs kept by an engine, results. The backend queues the work. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "engine/run/task.h"

struct gf_device_job {
    gf_engine *engine;
    gf_chain chain; /* owns its settings */
    gf_graph *graph;
    gf_plan *plan;                /* of its node */
    const gf_job_functions *jobs; /* of the backend */
    void *job;                    /* the same */
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

/* Copy the settings of a chain, which then refers to nothing of the caller. */
static gf_status device_copy_settings(gf_chain *chain, gf_error *error) {
    gf_status status = GF_OK;
    for (uint32_t i = 0; i < chain->steps; i++) {
        gf_chain_step *step = &chain->step[i];
        if (step->filter && !step->own)
            step->settings = step->own = gf_settings_copy(step->settings);
        if (step->filter && !step->own)
            status = gf_fail(error, GF_FAILED, "%s: out of memory for settings",
                             step->filter->info.name);
        /* texts of the caller's settings, or of the job: only whether there are samples matters */
        step->samples_path = step->samples_path ? "" : NULL;
        step->out_path = NULL;
    }
    memset(chain->in_paths, 0, sizeof chain->in_paths);
    return status;
}

/* Create a job: copy the settings of the chain, create the plan, and open the job of the backend.
 * Takes ownership of the chain. */
static gf_status device_new(gf_engine *engine, gf_chain *own, const gf_format *format,
                            gf_device_job **out, gf_error *error) {
    const char *name = gf_chain_name(own);
    gf_device_job *job = calloc(1, sizeof *job);
    gf_started on;
    *out = NULL;
    if (!job) {
        gf_chain_close(own);
        return gf_fail_memory(error, name, sizeof *job, "a job");
    }
    job->engine = engine;
    job->chain = *own;
    gf_chain *chain = &job->chain;
    gf_status status = device_copy_settings(chain, error);
    if (!status)
        status = gf_graph_new(chain, format, &job->graph, error);
    if (!status && !(job->plan = gf_graph_only(job->graph)))
        status =
            gf_fail(error, GF_USAGE,
                    "%s: a job in device memory has one filter; run one job for each step", name);
    assert(status || job->plan);
    if (!status && job->plan->measure_first && job->plan->filter->measure)
        status = gf_fail(error, GF_USAGE,
                         "%s: --range data needs a first pass; in device memory, "
                         "measure min and max with --statistics, and give them as --range LO,HI",
                         name);
    if (!status && !(status = gf_engine_device(engine, &on, error))) {
        job->jobs = on.backend->jobs;
        status = job->jobs->open(on.state, job->plan->filter, job->plan, &job->job, error);
    }
    if (status)
        gf_device_job_free(job);
    else
        *out = job;
    return status;
}

gf_status gf_device_job_new(gf_engine *engine, const gf_job *job, gf_device_job **out,
                            gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    gf_chain chain;
    *out = NULL;
    gf_status status = gf_chain_open(job, &chain, error);
    if (!status && !(status = gf_format_check(&job->format, "device memory", error)))
        return device_new(engine, &chain, &job->format, out, error);
    gf_chain_close(&chain);
    return status;
}

void gf_device_job_free(gf_device_job *job) {
    if (!job)
        return;
    if (job->job)
        job->jobs->close(job->job);
    gf_graph_free(job->graph);
    gf_chain_close(&job->chain);
    free(job);
}

/* Return whether the next image of a list begins where the first one ends. */
static bool device_follows(const gf_plan *plan, const gf_pixels *in, const gf_out_pixels *out) {
    const uint64_t height = plan->in.height;
    bool follows =
        !out || (out[1].stride == out[0].stride &&
                 (uintptr_t)out[1].data == (uintptr_t)out[0].data + height * out[0].stride);
    for (uint32_t i = 0; i < plan->inputs; i++) {
        const gf_pixels *next = in + plan->inputs + i;
        follows = follows && next->stride == in[i].stride &&
                  (uintptr_t)next->data == (uintptr_t)in[i].data + height * in[i].stride;
    }
    return follows;
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Check and queue images. results: to append the measurements of each launch to; NULL: dropped. */
static gf_status device_queue(gf_device_job *job, uint64_t count, const gf_pixels *in,
                              const gf_out_pixels *out, void *stream, gf_device_results *results,
                              gf_error *error) {
    const char *name = gf_chain_name(&job->chain);
    const gf_plan *plan = job->plan;
    const bool independent = gf_rows_independent(plan);
    const uint32_t inputs = plan->inputs;
    gf_status status = GF_OK;
    for (uint64_t i = 0; i < count && !status; i++) {
        const gf_pixels *image = in + i * inputs;
        for (uint32_t k = 0; k < inputs && !status; k++)
            status =
                gf_pixels_check(name, k ? "second input" : "input", &plan->in, image[k], error);
        if (out && !status &&
            !(status = gf_pixels_check(name, "output", &plan->out,
                                       (gf_pixels){out[i].data, out[i].stride}, error)))
            status =
                gf_check_overlap(job->graph, name, image, &job->graph->writer[0], &out[i], error);
    }
    for (uint64_t i = 0, images; i < count && !status; i += images) {
        const gf_pixels *first = in + i * inputs;
        const gf_out_pixels *to = out ? out + i : NULL;
        gf_job_images group = {1, plan->in.height, first, to};
        gf_device_part *part = NULL;
        images = 1;
        while (independent && i + images < count &&
               device_follows(plan, first + (images - 1) * inputs, to ? to + images - 1 : NULL))
            images++;
        if (images > 1)
            group.rows *= images;
        else if (independent || !job->plan->filter->measure)
            group.count = images = count - i;
        status = job->jobs->run(job->job, &group, stream, &part, error);
        if (!status && results)
            results->groups[results->group_count++] = (gf_device_group){part, images};
    }
    return status;
}

/* Check the lists, and arrange two inputs as pairs. *pairs: allocated; NULL with one input. */
static gf_status device_check_lists(const gf_device_job *job, const gf_device_images *images,
                                    gf_pixels **pairs, gf_error *error) {
    const char *name = gf_chain_name(&job->chain);
    const bool two = job->plan->inputs == 2;
    if (images->count == 0)
        return GF_OK;
    if (!images->in)
        return gf_fail(error, GF_USAGE, "%s: the list of input images is NULL", name);
    if (two && (!images->second || !images->second[0]))
        return gf_fail(error, GF_USAGE, "%s: the list of second images is NULL", name);
    if (job->plan->out.width && (!images->out || !images->out[0]))
        return gf_fail(error, GF_USAGE, "%s: produces an image; give an output", name);
    const size_t bytes = 2 * (size_t)images->count * sizeof **pairs;
    if (two && !(*pairs = malloc(bytes)))
        return gf_fail_memory(error, name, bytes, "the list of images");
    for (uint64_t i = 0; two && i < images->count; i++) {
        (*pairs)[2 * i] = images->in[i];
        (*pairs)[2 * i + 1] = images->second[0][i];
    }
    return GF_OK;
}

gf_status gf_device_job_run(gf_device_job *job, const gf_device_images *images, void *stream,
                            gf_device_results **out_results, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    gf_device_results *results = NULL;
    gf_pixels *pairs = NULL;
    if (out_results)
        *out_results = NULL;
    gf_status status = device_check_lists(job, images, &pairs, error);
    if (!status && job->plan->filter->measure) {
        const size_t bytes = sizeof *results + (size_t)images->count * sizeof results->groups[0];
        results = malloc(bytes);
        if (results)
            *results = (gf_device_results){.job = job, .count = images->count};
        else
            status = gf_fail_memory(error, gf_chain_name(&job->chain), bytes, "the results");
    }
    if (!status)
        status = device_queue(job, images->count, pairs ? pairs : images->in,
                              job->plan->out.width && images->count ? images->out[0] : NULL, stream,
                              results, error);
    free(pairs);
    if (status || !out_results)
        gf_device_results_free(results);
    else
        *out_results = results;
    return status;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Pass the measurements of an image of a part to a measure, and make its result. */
static gf_status device_make_result(const gf_device_job *job, const gf_device_part *part,
                                    uint64_t image, gf_result **result, gf_error *error) {
    const gf_measure *measure = job->plan->filter->measure;
    const uint64_t height = job->plan->in.height;
    const size_t record = part->records.stride;
    gf_task task = {.chain = &job->chain,
                    .inputs = {.name = "device memory"},
                    .memory = job->engine->options.max_memory,
                    .keep_samples = true};
    gf_result *results[GF_MAX_STEPS] = {NULL};
    gf_status status = gf_graph_new(&job->chain, &job->plan->in, &task.graph, error);
    const gf_plan *plan = status ? NULL : task.graph->plan[0];
    if (!status && !(status = gf_task_open_measures(&task, error)) && part->records.data) {
        const gf_rows rows = {part->records.data + image * height * record, record, 0, height};
        status = measure->rows(plan, task.data[0], &rows, error);
    }
    if (!status && part->payload)
        status = measure->payload(plan, task.data[0], part->payload, error);
    if (!status && !(status = measure->finish(plan, task.data[0], part->state, error)))
        status = gf_task_make_results(&task, results, error);
    *result = results[gf_chain_first(&job->chain)];
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
    gf_started on;
    const gf_status status = gf_engine_device(engine, &on, error);
    return status ? status : on.backend->jobs->wait_stream(on.state, stream, error);
}

/* ---- PNG ------------------------------------------------------------------------------------- */

gf_status gf_encode_png_device(gf_engine *engine, const gf_format *format, uint64_t count,
                               const gf_pixels *in, gf_buffer *out, void *stream, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    const char *name = "encode_png";
    const gf_device_encoding call = {format, count, in, out, NULL, gf_engine_threads(engine),
                                     stream};
    gf_started on;
    gf_status status = gf_format_check(format, "device memory", error);
    if (status)
        return status;
    if (format->type == GF_F32)
        return gf_fail(error, GF_USAGE,
                       "%s: PNG cannot store f32 samples; convert them to u8 or u16", name);
    if (format->channels % 2 == 0 && !gf_has_alpha(format))
        return gf_fail(error, GF_USAGE,
                       "%s: PNG stores channel %u only as alpha, and here it is data; encode 1 or "
                       "3 channels, or declare it with --alpha last",
                       name, format->channels);
    if (count && (!in || !out))
        return gf_fail(error, GF_USAGE, "%s: the list of %s is NULL", name,
                       in ? "outputs" : "images");
    for (uint64_t i = 0; i < count && !status; i++)
        status = gf_pixels_check(name, "image", format, in[i], error);
    if (!status)
        status = gf_engine_device(engine, &on, error);
    return status || count == 0 ? status : on.backend->png->encode(on.state, &call, error);
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

bool gf_device_decodes_always;

gf_status gf_decode_png_device(gf_engine *engine, uint64_t count, const gf_buffer *files,
                               const gf_format *formats, const gf_out_pixels *out, void *stream,
                               gf_error *errors, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    const char *name = "decode_png";
    const char *missing = !files ? "files" : !formats ? "formats" : !out ? "images" : NULL;
    gf_started on;
    gf_status status = GF_OK;
    if (count && missing)
        return gf_fail(error, GF_USAGE, "%s: the list of %s is NULL", name, missing);
    for (uint64_t i = 0; i < count && !status; i++) {
        const gf_pixels image = {out[i].data, out[i].stride};
        status = gf_format_check(&formats[i], "device memory", error);
        if (!status && !files[i].data)
            status = gf_fail(error, GF_USAGE, "%s: the file is NULL", name);
        if (!status)
            status = gf_pixels_check(name, "image", &formats[i], image, error);
    }
    if (!status)
        status = gf_engine_device(engine, &on, error);
    if (status || count == 0)
        return status;
    gf_error *own = errors ? errors : calloc((size_t)count, sizeof *own);
    if (!own)
        return gf_fail_memory(error, name, count * sizeof *own, "the errors");
    for (uint64_t i = 0; i < count; i++)
        own[i].status = GF_OK;
    const gf_device_decoding call = {.count = count,
                                     .out = out,
                                     .stream = stream,
                                     .files = files,
                                     .formats = formats,
                                     .errors = own,
                                     .threads = gf_engine_threads(engine),
                                     .always = gf_device_decodes_always};
    status = on.backend->png->decode(on.state, &call, error);
    for (uint64_t i = 0; i < count && !status && !errors; i++)
        status = gf_return_error(&own[i], error);
    if (!errors)
        free(own);
    return status;
}

/* Return whether two chains have the same steps. */
static bool device_same(const gf_chain *a, const gf_chain *b) {
    bool same = a->steps == b->steps;
    for (uint32_t i = 0; i < a->steps && same; i++) {
        const gf_chain_step *p = &a->step[i], *q = &b->step[i];
        same = p->filter == q->filter && p->from_input == q->from_input &&
               p->write.depth == q->write.depth &&
               (!p->filter || gf_settings_same(p->settings, q->settings));
    }
    return same;
}

/* Return the list of images of the first writer of a chain; NULL: none. */
static const gf_out_pixels *device_out(const gf_chain *chain) {
    for (uint32_t i = 0; i < chain->steps; i++)
        if (chain->step[i].out)
            return chain->step[i].out;
    return NULL;
}

gf_status gf_run_on_device(gf_engine *engine, const gf_chain *chain, const gf_format *format,
                           void *stream, gf_result **results, gf_error *error) {
    const gf_out_pixels *out = device_out(chain);
    const gf_device_images images = {
        .count = chain->count, .in = chain->in[0], .second = &chain->in[1], .out = &out};
    gf_device_job **jobs = engine->jobs, *found = NULL;
    gf_device_results *queued = NULL;
    size_t at = 0;
    for (; at < engine->job_count && !found; at++)
        if (gf_format_equal(&jobs[at]->plan->in, format) && device_same(&jobs[at]->chain, chain))
            found = jobs[at];
    if (!found) {
        gf_chain kept = *chain;
        for (uint32_t i = 0; i < kept.steps; i++)
            kept.step[i].own = NULL; /* the job copies the settings */
        const gf_status status = device_new(engine, &kept, format, &found, error);
        if (status)
            return status;
        engine->free_job = gf_device_job_free;
        if (engine->job_count == GF_KEPT_JOBS)
            gf_device_job_free(jobs[--engine->job_count]);
        at = ++engine->job_count;
    }
    while (--at > 0) /* move it to the front */
        jobs[at] = jobs[at - 1];
    jobs[0] = found;
    const gf_status status =
        gf_device_job_run(found, &images, stream, results ? &queued : NULL, error);
    return queued ? gf_device_results_wait(queued, results, error) : status;
}
