/* Jobs: the run of a chain on files, on host memory or on device memory. */
#include <string.h>

#include "core/error.h"
#include "core/image.h"
#include "core/thread.h"
#include "engine/run/task.h"

static void job_clear(const gf_job *job, gf_outcome *outcome) {
    const uint64_t count = job && job->count ? job->count : 1, steps = job ? job->step_count : 0;
    outcome->report = (gf_report){0};
    if (outcome->steps)
        memset(outcome->steps, 0, (size_t)steps * sizeof *outcome->steps);
    if (outcome->results)
        memset(outcome->results, 0, (size_t)(steps * count) * sizeof *outcome->results);
}

static gf_status job_run_memory(gf_engine *engine, const gf_job *job, const gf_chain *chain,
                                gf_made *made, gf_result **results, gf_error *error) {
    gf_status status = gf_format_check(&job->format, "memory", error);
    for (uint32_t i = 0; i < chain->filter->info.inputs && !status; i++)
        if (!chain->in[i])
            status = gf_fail(error, GF_USAGE, "%s: needs %u input images, and one is NULL",
                             chain->filter->info.name, chain->filter->info.inputs);
    if (status)
        return status;
    return job->memory == GF_DEVICE
               ? gf_run_on_device(engine, chain, &job->format, job->stream, results, error)
               : gf_run_images(engine, chain, &job->format, made, results, error);
}

gf_status gf_run(gf_engine *engine, const gf_job *job, gf_outcome *outcome, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    gf_outcome unread = {.results = NULL};
    gf_chain chain = {0};
    gf_made made = {.results = {NULL}};
    if (!outcome)
        outcome = &unread;
    job_clear(job, outcome);
    const bool files = !job || job->memory == GF_FILES;
    gf_status status = (files ? gf_chain_open_files : gf_chain_open)(job, &chain, error);
    if (!status)
        status = files ? gf_run_files(engine, &chain, &made, error)
                       : job_run_memory(engine, job, &chain, &made, outcome->results, error);
    gf_made_return(&made, &chain, outcome);
    gf_chain_close(&chain);
    return status;
}
