/* Chains: the steps of a job, resolved and checked, and what their run reports. */
#include <string.h>

#include "core/error.h"
#include "engine/run/task.h"

/* Return the text of the filter's parameter of a type that names a file; NULL if not set. */
static const char *chain_file(const gf_chain *chain, gf_param_type type) {
    const gf_filter_info *info = &chain->filter->info;
    for (size_t i = 0; i < info->param_count; i++)
        if (info->params[i].type == type)
            return gf_settings_text(chain->settings, info->params[i].name);
    return NULL;
}

gf_status gf_chain_open(const gf_job *job, gf_chain *chain, gf_error *error) {
    const gf_filter *filter = job && job->steps && job->step_count ? job->steps[0].filter : NULL;
    *chain = (gf_chain){.count = 1};
    if (!filter)
        return gf_fail(error, GF_USAGE, "the filter is NULL");
    /* Reject lists of steps that this version does not run. */
    const gf_filter_info *info = &filter->info;
    const char *name = info->name;
    const uint32_t needed = info->makes_image ? 2 : 1;
    for (uint32_t i = 0; i < job->step_count; i++)
        if (job->steps[i].from)
            return gf_fail(error, GF_USAGE, "%s: a step reads the image after the step before it",
                           name);
    if (job->step_count < needed)
        return gf_fail(error, GF_USAGE, "%s: produces an image; add a writer as the next step",
                       name);
    if (job->step_count > needed)
        return gf_fail(error, GF_USAGE,
                       "%s: %u steps; a job has one filter, and a writer if it produces an image",
                       name, job->step_count);
    if (needed == 2 && job->steps[1].filter)
        return gf_fail(error, GF_USAGE, "%s: a writer must follow, and here %s does", name,
                       job->steps[1].filter->info.name);
    const gf_step *step = &job->steps[0], *output = &job->steps[needed - 1];
    *chain = (gf_chain){.filter = filter,
                        .settings = step->settings,
                        .steps = needed,
                        .output = needed - 1,
                        .in_paths = {job->in_path, step->in_path},
                        .in = {job->in, step->in},
                        .out_path = output->out_path,
                        .out = output->out,
                        .count = job->count ? job->count : 1};
    if (job->options && job->memory == GF_FILES)
        chain->options = *job->options;
    if (output->write)
        chain->options.write = *output->write;
    if (!chain->settings)
        chain->settings = chain->own = gf_settings_new(info->params, info->param_count);
    if (!chain->settings)
        return gf_fail_memory(error, name, info->param_count, "settings");
    if (!info->makes_image)
        chain->out_path = chain_file(chain, GF_PARAM_IMAGE);
    chain->samples_path = chain_file(chain, GF_PARAM_SAMPLES);
    return gf_settings_fit(chain->settings, info->params)
               ? GF_OK
               : gf_fail(error, GF_USAGE, "%s: the settings belong to another table of parameters",
                         name);
}

gf_status gf_chain_check_paths(const gf_chain *chain, const char *output, gf_error *error) {
    const gf_filter_info *info = &chain->filter->info;
    if (!info->makes_image && output)
        return gf_fail(error, GF_USAGE, "%s: produces no image; remove the output path %s",
                       info->name, output);
    for (uint32_t i = 0; i < info->inputs; i++)
        if (!chain->in_paths[i])
            return gf_fail(error, GF_USAGE, "%s: needs %u input paths, and one is NULL", info->name,
                           info->inputs);
    if (info->makes_image && !chain->out_path)
        return gf_fail(error, GF_USAGE, "%s: produces an image; give an output path", info->name);
    if (info->inputs == 2 && strcmp(chain->in_paths[0], "-") == 0 &&
        strcmp(chain->in_paths[1], "-") == 0)
        return gf_fail(error, GF_USAGE,
                       "%s: standard input can be read only once; name one of the files",
                       info->name);
    return GF_OK;
}

gf_status gf_chain_open_files(const gf_job *job, gf_chain *chain, gf_error *error) {
    gf_status status = gf_chain_open(job, chain, error);
    if (!status)
        status = gf_check_options(NULL, &chain->options, error);
    return status ? status : gf_chain_check_paths(chain, job->steps[0].out_path, error);
}

void gf_chain_close(gf_chain *chain) {
    gf_settings_free(chain->own);
    chain->own = NULL;
}

gf_status gf_chain_plan(const gf_chain *chain, const gf_format *in, gf_plan **plan,
                        gf_error *error) {
    return gf_plan_new(chain->filter, chain->settings, in, plan, error);
}

gf_status gf_job_inspect(const gf_job *job, gf_step_info *info, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    gf_chain chain;
    gf_plan *plan = NULL;
    gf_status status = gf_chain_open(job, &chain, error);
    if (!status && !(status = gf_format_check(&job->format, "memory", error)))
        status = gf_chain_plan(&chain, &job->format, &plan, error);
    if (!status) {
        *info = (gf_step_info){.in = plan->in,
                               .out = plan->out,
                               .effective = gf_settings_copy(chain.settings),
                               .before = plan->before,
                               .after = plan->after,
                               .result_bytes = plan->result_bytes,
                               .measures_first =
                                   plan->measure_first ? plan->measure_first->filter : NULL};
        if (chain.output)
            info[1] = (gf_step_info){.in = plan->out, .out = plan->out};
        if (!info->effective)
            status = gf_fail(error, GF_FAILED, "%s: out of memory for settings",
                             chain.filter->info.name);
    }
    if (!status && chain.filter->effective)
        status = chain.filter->effective(plan, info->effective, error);
    if (status && plan) {
        gf_settings_free(info->effective);
        info->effective = NULL;
    }
    gf_plan_free(plan);
    gf_chain_close(&chain);
    return status;
}

void gf_made_report_plan(gf_made *made, const gf_plan *plan) {
    gf_step_report *step = &made->steps[0];
    made->report.in = plan->in;
    made->report.pixels = plan->in.width * plan->in.height;
    step->in = plan->in;
    step->out = plan->out;
    step->brightness = plan->brightness;
    if (plan->advice)
        snprintf(step->advice, sizeof step->advice, "%s", plan->advice);
    made->steps[1].in = made->steps[1].out = plan->out;
}

void gf_made_add(gf_made *sum_of, const gf_made *more_of) {
    gf_report *sum = &sum_of->report;
    const gf_report *more = &more_of->report;
    if (more->device_failed && !sum->device_failed)
        memcpy(sum->reason, more->reason, sizeof sum->reason);
    sum->device_failed = sum->device_failed || more->device_failed;
    sum->verified = sum->verified && more->verified;
    sum->pixels += more->pixels;
    gf_remarks_add(&sum->remarks, &more->remarks);
    sum->strips += more->strips;
    for (int i = 0; i < GF_STAGE_COUNT; i++)
        gf_busy_add(&sum->busy[i], more->busy[i]);
    sum->start_seconds += more->start_seconds;
    sum->total_seconds += more->total_seconds;
    for (int i = 0; i < GF_MAX_STEPS; i++) {
        gf_step_report *step = &sum_of->steps[i];
        step->counted += more_of->steps[i].counted;
        step->clipped += more_of->steps[i].clipped;
        step->dropped |= more_of->steps[i].dropped;
    }
}

void gf_made_free_results(gf_made *made) {
    for (int i = 0; i < GF_MAX_STEPS; i++)
        gf_result_free(made->results[i]);
    memset(made->results, 0, sizeof made->results);
}

void gf_made_return(gf_made *made, const gf_chain *chain, gf_outcome *outcome) {
    outcome->report = made->report;
    for (uint32_t i = 0; i < chain->steps; i++) {
        made->steps[i].file = NULL;
        if (outcome->steps)
            outcome->steps[i] = made->steps[i];
        if (outcome->results && made->results[i]) {
            outcome->results[i * chain->count] = made->results[i];
            made->results[i] = NULL;
        }
    }
    gf_made_free_results(made);
}
