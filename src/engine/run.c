/* Running one image: plan, source, backend, sink, in that order. */
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "engine/engine.h"
#include "engine/stream.h"
#include "error.h"

static gf_status make_plan(const gf_filter *filter, const gf_settings *settings,
                           const gf_format *format, gf_plan **out, gf_error *error) {
    gf_plan *plan = calloc(1, filter->plan_bytes);
    if (!plan)
        return gf_fail_memory(error, filter->info.name, filter->plan_bytes, "a plan");
    plan->in = plan->out = *format;
    gf_status status = filter->plan(settings, plan, error);
    if (status) {
        free(plan);
        return status;
    }
    *out = plan;
    return GF_OK;
}

/* Chooses a backend and streams. The plan's image is that of the source. */
static gf_status stream_through(gf_engine *engine, const char *name, const gf_filter *filter,
                                const gf_plan *plan, gf_source *source, gf_sink *sink,
                                gf_report *report, gf_error *error) {
    gf_stream_job job = {.name = name,
                         .filter = filter,
                         .plan = plan,
                         .band_rows = engine->options.band_rows,
                         .max_memory = engine->options.max_memory};
    double codec = source->cost > sink->cost ? source->cost : sink->cost;
    gf_status status = gf_engine_choose(engine, plan, codec, &job.backend, &job.state,
                                        report->reason, sizeof report->reason, error);
    if (status)
        return status;
    report->in = plan->in;
    report->out = plan->out;
    snprintf(report->backend, sizeof report->backend, "%s", job.backend->name);
    job.backend->describe(job.state, report->device, sizeof report->device);
    return gf_stream_run(&job, source, sink, report, error);
}

gf_status gf_run_file(gf_engine *engine, const gf_filter *filter, const gf_settings *settings,
                      const char *in_path, const char *out_path, const gf_file_options *options,
                      gf_report *report, gf_error *error) {
    const gf_file_options defaults = {0};
    gf_report unread;
    if (!options)
        options = &defaults;
    if (!report)
        report = &unread;
    *report = (gf_report){0};
    const gf_limits limits = {
        .max_pixels = options->max_pixels ? options->max_pixels : GF_DEFAULT_MAX_PIXELS,
        .max_memory = options->max_memory ? options->max_memory : GF_DEFAULT_MAX_MEMORY,
        .max_chunk = options->max_chunk ? options->max_chunk : GF_DEFAULT_MAX_CHUNK,
    };
    const double start = gf_now();
    gf_source *source = NULL;
    gf_sink *sink = NULL;
    gf_plan *plan = NULL;
    gf_status status = gf_source_open(in_path, &limits, &source, error);
    if (status)
        goto done;
    status = make_plan(filter, settings, &source->format, &plan, error);
    if (status)
        goto done;
    const gf_metadata *metadata = options->strip ? NULL : &source->metadata;
    status = gf_sink_open(out_path, &plan->out, metadata, options, &sink, error);
    if (status)
        goto done;
    status = stream_through(engine, in_path, filter, plan, source, sink, report, error);
    if (status)
        goto done;
    status = sink->ops->finish(sink, metadata, error);
    report->total_seconds = gf_now() - start;
done:
    if (sink)
        sink->ops->close(sink);
    if (source)
        source->ops->close(source);
    free(plan);
    return status;
}

gf_status gf_run_memory(gf_engine *engine, const gf_filter *filter, const gf_settings *settings,
                        const gf_format *format, const void *in, size_t in_stride, void *out,
                        size_t out_stride, gf_report *report, gf_error *error) {
    gf_report unread;
    if (!report)
        report = &unread;
    *report = (gf_report){0};
    const double start = gf_now();
    gf_source *source = NULL;
    gf_sink *sink = NULL;
    gf_plan *plan = NULL;
    gf_status status = gf_memory_source(format, in, in_stride, &source, error);
    if (status)
        goto done;
    status = make_plan(filter, settings, format, &plan, error);
    if (status)
        goto done;
    status = gf_memory_sink(&plan->out, out, out_stride, &sink, error);
    if (status)
        goto done;
    status = stream_through(engine, "memory", filter, plan, source, sink, report, error);
    if (status)
        goto done;
    status = sink->ops->finish(sink, NULL, error);
    report->total_seconds = gf_now() - start;
done:
    if (sink)
        sink->ops->close(sink);
    if (source)
        source->ops->close(source);
    free(plan);
    return status;
}
