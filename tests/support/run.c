#include "run.h"

#include "testing.h"

#include <stdlib.h>
#include <string.h>

#include "engine/batch/batch.h"

gf_job test_job_of(const gf_filter *filter, const gf_settings *settings, gf_step *steps) {
    steps[0] = (gf_step){.filter = filter, .settings = settings};
    steps[1] = (gf_step){.filter = NULL};
    return (gf_job){.steps = steps,
                    .step_count = filter && gf_filter_describe(filter)->makes_image ? 2 : 1};
}

/* Run a job whose steps are set, and return what its caller asked for. */
static gf_status run(gf_engine *engine, const gf_job *job, gf_result **results, gf_report *report,
                     gf_step_report *output) {
    const uint64_t count = job->count ? job->count : 1;
    gf_step_report steps[2];
    gf_result **all = results ? calloc(2 * count, sizeof *all) : NULL; /* NOLINT: pointers */
    gf_outcome outcome = {.steps = steps, .results = all};
    const gf_status status = gf_run(engine, job, &outcome, &why);
    for (uint64_t i = 0; results && i < count; i++)
        results[i] = all[i];
    free(all);
    if (report)
        *report = outcome.report;
    if (output) {
        *output = steps[job->step_count - 1];
        output->brightness = steps[0].brightness;
        memcpy(output->advice, steps[0].advice, sizeof output->advice);
    }
    return status;
}

static gf_job job_of_files(const test_files *what, gf_step *steps) {
    gf_job job = test_job_of(what->filter, what->settings, steps);
    job.in_path = what->in ? what->in[0] : NULL;
    job.options = what->options;
    if (what->filter && gf_filter_describe(what->filter)->inputs > 1)
        steps[0].in_path = what->in ? what->in[1] : NULL;
    steps[job.step_count - 1].out_path = what->out;
    return job;
}

gf_status test_run_files(const test_files *what) {
    gf_step steps[2];
    const gf_job job = job_of_files(what, steps);
    return run(what->engine, &job, what->result, what->report, what->output);
}

/* Run a list in host or device memory. */
static gf_status run_list(const test_list *what, gf_memory memory) {
    const uint32_t inputs = what->filter ? gf_filter_describe(what->filter)->inputs : 1;
    gf_pixels *in[2] = {NULL, NULL};
    gf_step steps[2];
    gf_job job = test_job_of(what->filter, what->settings, steps);
    for (uint32_t k = 0; what->in && k < inputs; k++) {
        in[k] = calloc(what->count + 1, sizeof *in[k]);
        for (uint64_t i = 0; i < what->count; i++)
            in[k][i] = what->in[i * inputs + k];
    }
    job.memory = memory;
    job.format = what->format ? *what->format : (gf_format){0};
    job.count = what->count;
    job.in = in[0];
    job.stream = what->stream;
    steps[0].in = in[1];
    steps[job.step_count - 1].out = what->out;
    const gf_status status = run(what->engine, &job, what->result, what->report, what->output);
    free(in[0]);
    free(in[1]);
    return status;
}

static gf_status run_image(const test_memory *what, gf_memory memory) {
    const gf_out_pixels out = {what->out, what->out_stride};
    const test_list list = {.engine = what->engine,
                            .filter = what->filter,
                            .settings = what->settings,
                            .format = what->format,
                            .count = 1,
                            .in = what->in,
                            .out = what->out || what->out_stride ? &out : NULL,
                            .result = what->result,
                            .report = what->report,
                            .output = what->output,
                            .stream = what->stream};
    return run_list(&list, memory);
}

gf_status test_run_memory(const test_memory *what) {
    return run_image(what, GF_HOST);
}

gf_status test_run_device(const test_memory *what) {
    return run_image(what, GF_DEVICE);
}

gf_status test_run_list(const test_list *what) {
    return run_list(what, GF_HOST);
}

gf_status test_run_device_list(const test_list *what) {
    return run_list(what, GF_DEVICE);
}

gf_status test_device_job(gf_engine *engine, const gf_filter *filter, const gf_settings *settings,
                          const gf_format *format, gf_device_job **prepared) {
    gf_step steps[2];
    gf_job job = test_job_of(filter, settings, steps);
    job.memory = GF_DEVICE;
    job.format = *format;
    return gf_device_job_new(engine, &job, prepared, &why);
}

gf_status test_device_job_run(gf_device_job *job, uint32_t inputs, uint64_t count,
                              const gf_pixels *in, const gf_out_pixels *out, void *stream,
                              gf_device_results **results) {
    gf_pixels *lists[2] = {calloc(count + 1, sizeof *in), calloc(count + 1, sizeof *in)};
    for (uint64_t i = 0; in && i < count; i++)
        for (uint32_t k = 0; k < inputs; k++)
            lists[k][i] = in[i * inputs + k];
    const gf_pixels *second = inputs > 1 ? lists[1] : NULL;
    const gf_device_images images = {count, in ? lists[0] : NULL, &second, &out};
    const gf_status status = gf_device_job_run(job, &images, stream, results, &why);
    free(lists[0]);
    free(lists[1]);
    return status;
}

gf_status test_rows_possible(const test_files *what, gf_format *format, bool *possible) {
    gf_step steps[2];
    const gf_job job = job_of_files(what, steps);
    return gf_rows_possible(what->engine, &job, format, possible, &why);
}

/* ---- batches --------------------------------------------------------------------------------- */

/* Run gf_run_batch_on, or gf_run_batch. */
static gf_status run_batch(const test_batch *what, bool on) {
    gf_step steps[2];
    gf_job job = test_job_of(what->filter, what->settings, steps);
    gf_batch_options options = {.source = what->source};
    gf_batch_item *items = calloc(what->count + 1, sizeof *items);
    const char **outs = calloc(what->count + 1, sizeof *outs); /* NOLINT: pointers */
    for (uint64_t i = 0; what->items && i < what->count; i++) {
        outs[i] = what->items[i].out;
        items[i] =
            (gf_batch_item){what->items[i].in, outs[i] ? &outs[i] : NULL, what->items[i].replace};
    }
    if (what->options) {
        options.engine = what->options->engine;
        options.in_order = what->options->in_order;
        options.fail_fast = what->options->fail_fast;
        options.done = what->options->done;
        options.context = what->options->context;
        job.options = &what->options->files;
    }
    const gf_batch_item *list = what->items ? items : NULL;
    const gf_status status =
        on ? gf_run_batch_on(what->devices, &job, list, what->count, &options, &why)
           : gf_run_batch(&job, list, what->count, &options, &why);
    free(items);
    free(outs);
    return status;
}

gf_status test_run_batch_on(const test_batch *what) {
    return run_batch(what, true);
}

gf_status test_run_batch(const gf_filter *filter, const gf_settings *settings,
                         const test_item *items, uint64_t count,
                         const test_batch_options *options) {
    return run_batch(&(test_batch){.filter = filter,
                                   .settings = settings,
                                   .items = items,
                                   .count = count,
                                   .options = options},
                     false);
}

/* ---- properties of a filter ------------------------------------------------------------------ */

static gf_status inspect(const gf_filter *filter, const gf_settings *settings, const gf_format *in,
                         gf_step_info info[2]) {
    gf_step steps[2];
    gf_job job = test_job_of(filter, settings, steps);
    job.format = *in;
    info[0] = (gf_step_info){.effective = NULL};
    return gf_job_inspect(&job, info, &why);
}

gf_status test_filter_output(const gf_filter *filter, const gf_settings *settings,
                             const gf_format *in, gf_format *out) {
    gf_step_info info[2];
    const gf_status status = inspect(filter, settings, in, info);
    if (!status) {
        gf_settings_free(info[0].effective);
        *out = info[0].out;
    }
    return status;
}

gf_status test_effective(const gf_filter *filter, const gf_settings *settings, const gf_format *in,
                         gf_settings **effective) {
    gf_step_info info[2];
    const gf_status status = inspect(filter, settings, in, info);
    *effective = status ? NULL : info[0].effective;
    return status;
}

gf_status test_result_bytes(const gf_filter *filter, const gf_settings *settings,
                            const gf_format *in, uint64_t *bytes) {
    gf_step_info info[2];
    const gf_status status = inspect(filter, settings, in, info);
    if (!status) {
        gf_settings_free(info[0].effective);
        *bytes = info[0].result_bytes;
    }
    return status;
}

const gf_filter *test_filter_before(const gf_filter *filter, const gf_settings *settings,
                                    const gf_format *in) {
    gf_step_info info[2];
    if (inspect(filter, settings, in, info))
        return NULL;
    gf_settings_free(info[0].effective);
    return info[0].measures_first;
}

size_t test_filter_count(void) {
    size_t count = 0;
    while (gf_filter_at(count))
        count++;
    return count;
}
