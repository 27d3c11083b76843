/* Chains: the steps of a job, resolved and checked, their nodes, and what their run reports. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "engine/run/task.h"

/* ---- steps ----------------------------------------------------------------------------------- */

const char *gf_step_name(const gf_step *step) {
    if (!step->filter)
        return "write";
    if (step->filter != gf_filter_convert())
        return step->filter->info.name;
    return step->settings && gf_settings_choice(step->settings, "light") ? "linear" : "depth";
}

static const char *chain_name(const gf_chain_step *step) {
    return gf_step_name(&(gf_step){.filter = step->filter, .settings = step->settings});
}

gf_status gf_chain_fail_step(const gf_chain *chain, uint32_t step, gf_status status,
                             gf_error *error) {
    char message[sizeof error->message];
    if (!status || !error || chain->filters < 2)
        return status;
    const char *name = chain_name(&chain->step[step]);
    const size_t length = strlen(name);
    const bool named = strncmp(error->message, name, length) == 0 && error->message[length] == ':';
    memcpy(message, error->message, sizeof message);
    (void)snprintf(error->message, sizeof error->message, "step %u, %s: %.900s", step + 1, name,
                   message + (named ? length + 2 : 0));
    error->step = step + 1;
    return status;
}

const char *gf_chain_name(const gf_chain *chain) {
    return chain->step[chain->first].filter->info.name;
}

/* Return the text of the filter's parameter of a type that names a file; NULL if not set. */
static const char *chain_file(const gf_chain_step *step, gf_param_type type) {
    const gf_filter_info *info = &step->filter->info;
    for (size_t i = 0; i < info->param_count; i++)
        if (info->params[i].type == type)
            return gf_settings_text(step->settings, info->params[i].name);
    return NULL;
}

const char *gf_writer_name(const gf_chain *chain, const gf_writer *writer) {
    uint32_t step = writer->step;
    while (step && !chain->step[step].filter)
        step--;
    return chain_name(&chain->step[step]);
}

/* Resolve a step: its settings and outputs. */
static gf_status chain_set_step(const gf_job *job, uint32_t index, gf_chain *chain,
                                gf_error *error) {
    const gf_step *step = &job->steps[index];
    const gf_filter *filter = step->filter;
    gf_chain_step *own = &chain->step[index];
    *own = (gf_chain_step){.filter = filter,
                           .settings = step->settings,
                           .from_input = step->from == GF_FROM_INPUT,
                           .out_path = step->out_path,
                           .out = step->out,
                           .write = step->write ? *step->write : chain->options.write};
    chain->steps++;
    if (step->from && !own->from_input)
        return gf_fail(error, GF_USAGE,
                       "%s: a step reads the image after the step before it, or the input",
                       chain_name(own));
    if (!filter)
        return GF_OK;
    const gf_filter_info *info = &filter->info;
    chain->makes_image = chain->makes_image || info->makes_image;
    chain->measures = chain->measures || !info->makes_image;
    chain->refines = chain->refines || filter->refine;
    chain->mixes_pixels = chain->mixes_pixels || filter->mixes_pixels;
    if (info->inputs == 2) {
        chain->in_paths[chain->inputs] = step->in_path;
        chain->in[chain->inputs++] = step->in;
    }
    if (!own->settings)
        own->settings = own->own = gf_settings_new(info->params, info->param_count);
    if (!own->settings)
        return gf_fail_memory(error, info->name, info->param_count, "settings");
    if (!gf_settings_fit(own->settings, info->params))
        return gf_fail(error, GF_USAGE, "%s: the settings belong to another table of parameters",
                       info->name);
    own->samples_path = chain_file(own, GF_PARAM_SAMPLES);
    if (info->makes_image || job->memory != GF_FILES)
        return GF_OK;
    if (own->out_path)
        return gf_fail(error, GF_USAGE, "%s: produces no image; remove the output path %s",
                       info->name, own->out_path);
    own->out_path = chain_file(own, GF_PARAM_IMAGE);
    return GF_OK;
}

/* Reject a filter whose image no step reads. */
static gf_status chain_check_read(const gf_chain *chain, gf_error *error) {
    for (uint32_t i = 0; i < chain->steps; i++) {
        const gf_filter *filter = chain->step[i].filter;
        if (filter && filter->info.makes_image &&
            (i + 1 == chain->steps || chain->step[i + 1].from_input)) {
            (void)gf_fail(error, GF_USAGE, "%s: produces an image; add a writer as the next step",
                          filter->info.name);
            return gf_chain_fail_step(chain, i, GF_USAGE, error);
        }
    }
    return GF_OK;
}

gf_status gf_chain_open(const gf_job *job, gf_chain *chain, gf_error *error) {
    const bool files = job && job->memory == GF_FILES;
    gf_status status = GF_OK;
    *chain = (gf_chain){.count = 1, .inputs = 1};
    if (!job || !job->steps || !job->step_count)
        return gf_fail(error, GF_USAGE, "the filter is NULL");
    if (job->step_count > GF_MAX_STEPS)
        return gf_fail(error, GF_USAGE, "%u steps; a job has at most %u", job->step_count,
                       GF_MAX_STEPS);
    chain->count = job->count ? job->count : 1;
    chain->in_paths[0] = job->in_path;
    chain->in[0] = job->in;
    if (job->options && files)
        chain->options = *job->options;
    for (uint32_t i = job->step_count; i-- > 0;)
        if (job->steps[i].filter) {
            chain->first = i;
            chain->filters++;
        }
    if (!chain->filters)
        return gf_fail(error, GF_USAGE, "the filter is NULL");
    for (uint32_t i = 0; i < job->step_count && !status; i++)
        status = gf_chain_fail_step(chain, i, chain_set_step(job, i, chain, error), error);
    return status ? status : chain_check_read(chain, error);
}

/* Check the path of an input. *standard: standard input is one before it. */
static gf_status chain_check_input(const gf_chain *chain, const char *path, const char *name,
                                   bool *standard, gf_error *error) {
    const bool again = *standard;
    if (!path)
        return gf_fail(error, GF_USAGE, "%s: needs %u input paths, and one is NULL", name,
                       chain->inputs);
    if (strcmp(path, "-") != 0)
        return GF_OK;
    *standard = true;
    return again ? gf_fail(error, GF_USAGE,
                           "%s: standard input can be read only once; name one of the files", name)
                 : GF_OK;
}

gf_status gf_chain_check_paths(const gf_chain *chain, gf_error *error) {
    const char *name = gf_chain_name(chain);
    bool standard = false;
    uint32_t input = 0;
    gf_status status = chain_check_input(chain, chain->in_paths[input++], name, &standard, error);
    for (uint32_t i = 0; i < chain->steps && !status; i++) {
        const gf_chain_step *step = &chain->step[i];
        if (!step->filter && !step->out_path)
            return gf_fail(error, GF_USAGE, "%s: produces an image; give an output path", name);
        if (step->filter && step->filter->info.inputs == 2)
            status = gf_chain_fail_step(chain, i,
                                        chain_check_input(chain, chain->in_paths[input++],
                                                          chain_name(step), &standard, error),
                                        error);
    }
    return status;
}

/* Reject options that suit no step. */
static gf_status chain_check_options(const gf_chain *chain, gf_error *error) {
    const gf_file_options *options = &chain->options;
    const char *name = gf_chain_name(chain);
    const bool all_pages = options->page == GF_ALL_PAGES;
    if (all_pages && chain->inputs != 1)
        return gf_fail(error, GF_USAGE,
                       "--page all: %s has two inputs; choose a page with --page N", name);
    if (all_pages && chain->measures && (chain->makes_image || chain->steps > chain->filters))
        return gf_fail(error, GF_USAGE,
                       "--page all: the pages of a pipeline that changes or writes the image are "
                       "not measured; choose one with --page N");
    if (options->linear && !chain->makes_image)
        return gf_fail(error, GF_USAGE, "--linear: %s does not produce an image", name);
    if (options->premultiply == GF_PREMULTIPLY_ON && !chain->mixes_pixels)
        return gf_fail(error, GF_USAGE, "--premultiply: %s does not mix the colours of pixels",
                       name);
    return gf_check_options(NULL, options, error);
}

gf_status gf_chain_open_files(const gf_job *job, gf_chain *chain, gf_error *error) {
    gf_status status = gf_chain_open(job, chain, error);
    if (!status)
        status = chain_check_options(chain, error);
    for (uint32_t i = 0; i < chain->steps && !status; i++)
        if (job->steps[i].write) {
            const gf_file_options own = {.write = *job->steps[i].write};
            status = gf_chain_fail_step(chain, i, gf_check_options(NULL, &own, error), error);
        }
    return status ? status : gf_chain_check_paths(chain, error);
}

void gf_chain_close(gf_chain *chain) {
    for (uint32_t i = 0; i < chain->steps; i++) {
        gf_settings_free(chain->step[i].own);
        chain->step[i].own = NULL;
    }
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* The image after a step. */
typedef struct graph_image {
    uint32_t edge;
    gf_format format;
    gf_scaled scaled;
    gf_type type;       /* in which writers store it, unless they have another */
    bool linear;        /* f32 of linear light; writers of integers store sRGB */
    bool premultiplied; /* f32 colours are multiplied by alpha, which is data */
} graph_image;

/* Add the nodes of a filter that reads an edge: one per stage, without those that copy. The filter
 * has at least one. */
static gf_status graph_add(gf_graph *graph, uint32_t step, const gf_filter *filter,
                           const gf_settings *settings, const graph_image *image, gf_error *error) {
    const uint32_t first = graph->nodes.count;
    uint32_t stage = 0;
    gf_plan *plan = NULL;
    do {
        gf_plan *before = plan;
        if (graph->nodes.count == GF_MAX_NODES)
            return gf_fail(error, GF_USAGE, "%s: too many steps and conversions; run two jobs",
                           filter->info.name);
        const gf_status status = before ? gf_plan_next(before, settings, &plan, error)
                                        : gf_plan_new_scaled(filter, settings, &image->format,
                                                             &image->scaled, &plan, error);
        if (status)
            return status;
        if (before && before->copies)
            gf_plan_free(graph->plan[--graph->nodes.count]);
        const uint32_t i = graph->nodes.count++;
        graph->plan[i] = plan;
        graph->node[i] = (gf_node){.plan = plan, .from = i > first ? i : image->edge};
        graph->step[i] = step;
    } while (++stage < gf_filter_stages(filter));
    if (graph->nodes.count > first + 1 && plan->copies)
        gf_plan_free(graph->plan[--graph->nodes.count]);
    return GF_OK;
}

/* Convert an image to another type, light or alpha; `keep` converts nothing, and copies it. */
static gf_status graph_convert(gf_graph *graph, uint32_t step, graph_image *image, gf_type type,
                               bool linear, bool premultiplied, gf_error *error) {
    static const char *const depths[] = {[GF_U8] = "8", [GF_U16] = "16", [GF_F32] = "f32"};
    const bool to_f32 = type == GF_F32, from_f32 = image->format.type == GF_F32;
    const char *light = linear && to_f32 && !from_f32          ? "decode"
                        : image->linear && from_f32 && !to_f32 ? "encode"
                                                               : "keep";
    const char *alpha = premultiplied && !image->premultiplied   ? "multiply"
                        : image->premultiplied && !premultiplied ? "divide"
                                                                 : "keep";
    char text[64];
    snprintf(text, sizeof text, "depth=%s light=%s alpha=%s", depths[type], light, alpha);
    const gf_filter *filter = gf_filter_convert();
    gf_settings *settings = gf_settings_new(filter->info.params, filter->info.param_count);
    gf_status status = settings ? gf_settings_apply_case(settings, text, error)
                                : gf_fail_memory(error, "convert", sizeof text, "settings");
    if (!status)
        status = graph_add(graph, step, filter, settings, image, error);
    gf_settings_free(settings);
    if (status)
        return status;
    const uint32_t i = graph->nodes.count - 1;
    graph->counts[i] = image->type == GF_F32 && !to_f32;
    graph->linear = graph->linear || *light != 'k';
    image->edge = i + 1;
    image->format = graph->plan[i]->out;
    image->linear = linear && to_f32;
    image->premultiplied = premultiplied;
    return GF_OK;
}

/* Write an image: convert it to the type that is stored, and mark its edge. bare: without the
 * metadata of the input. */
static gf_status graph_write(gf_graph *graph, uint32_t step, graph_image image, gf_depth depth,
                             bool bare, gf_error *error) {
    const gf_type type = gf_depth_type(depth, image.type);
    gf_writer *writer = &graph->writer[graph->writers++];
    gf_status status = GF_OK;
    *writer = (gf_writer){.step = step, .bare = bare, .reduced = image.format.type};
    /* Each writer has an edge of its own, made by a node. */
    if (type != image.format.type || image.premultiplied || image.edge == 0 ||
        graph->nodes.written >> image.edge & 1)
        status = graph_convert(graph, step, &image, type, image.linear, false, error);
    writer->edge = image.edge;
    writer->stored = image.format;
    graph->nodes.written |= UINT64_C(1) << image.edge;
    return status;
}

/* Add the node of a step that converts. Linear light becomes sRGB with integers, also if the step
 * only says their depth; f32 is linear light already. Colours that a step has multiplied by alpha
 * stay so. */
static gf_status graph_add_conversion(const gf_chain_step *step, uint32_t i, graph_image *image,
                                      gf_graph *graph, gf_error *error) {
    enum { KEEP, DECODE, DIVIDE = 2 }; /* indices of choices of the filter */
    const gf_depth depths[] = {GF_DEPTH_INPUT, GF_DEPTH_8, GF_DEPTH_16, GF_DEPTH_F32};
    const size_t light = gf_settings_choice(step->settings, "light");
    const size_t alpha = gf_settings_choice(step->settings, "alpha");
    const gf_type type =
        gf_depth_type(depths[gf_settings_choice(step->settings, "depth")], image->format.type);
    const bool decodes = light == DECODE, linear = image->linear || decodes;
    gf_status status;
    graph->in[i] = image->format;
    if ((image->linear && light == KEEP) || (decodes && image->format.type == GF_F32)) {
        status = graph_convert(graph, i, image, type, linear, image->premultiplied, error);
    } else if (!(status = graph_add(graph, i, step->filter, step->settings, image, error))) {
        graph->counts[graph->nodes.count - 1] = image->type == GF_F32 && type != GF_F32;
        graph->linear = graph->linear || light != KEEP;
        image->edge = graph->nodes.count;
        image->format = graph->plan[image->edge - 1]->out;
        image->linear = decodes;
        image->premultiplied = image->premultiplied && alpha != DIVIDE;
    }
    if (status)
        return status;
    if (!decodes)
        image->type = image->format.type;
    graph->node_of[i] = graph->nodes.count - 1;
    graph->out[i] = image->format;
    return GF_OK;
}

/* Add the nodes of a step. *image: that which it receives, then that which it passes on. */
static gf_status graph_add_step(const gf_chain *chain, uint32_t i, graph_image *image,
                                gf_graph *graph, gf_error *error) {
    const gf_chain_step *step = &chain->step[i];
    gf_status status = GF_OK;
    graph->in[i] = image->format;
    if (!step->filter) {
        status = graph_write(graph, i, *image, step->write.depth, false, error);
        graph->out[i] = graph->writer[graph->writers - 1].stored;
        return status;
    }
    if (step->filter->plan == gf_filter_convert()->plan) /* tests have copies of the filter */
        return graph_add_conversion(step, i, image, graph, error);
    const bool weighs = step->filter->premultiplies && gf_has_alpha(&image->format) &&
                        chain->options.premultiply == GF_PREMULTIPLY_AUTO;
    const gf_type type = image->format.type;
    if (weighs)
        status = graph_convert(graph, i, image, GF_F32, image->linear, true, error);
    if (status || (status = graph_add(graph, i, step->filter, step->settings, image, error)))
        return status;
    const uint32_t node = graph->nodes.count - 1;
    graph_image made = *image;
    made.edge = node + 1;
    made.scaled.eighths = 0;
    made.format = graph->out[i] = graph->plan[node]->out;
    graph->node_of[i] = node;
    if (step->filter->info.makes_image) {
        *image = made;
        if (weighs)
            status = graph_convert(graph, i, image, type, image->linear, false, error);
        graph->out[i] = image->format;
    } else if (made.format.width) {
        made.linear = made.premultiplied = false;
        made.type = made.format.type;
        status =
            graph_write(graph, i, made, step->write.depth, step->filter->info.inputs == 2, error);
    }
    return status;
}

/* Convert the input as the options of the job say. */
static gf_status graph_convert_input(const gf_chain *chain, graph_image *image, gf_graph *graph,
                                     gf_error *error) {
    const gf_file_options *options = &chain->options;
    const bool premultiplied =
        options->premultiply == GF_PREMULTIPLY_ON && gf_has_alpha(&image->format);
    const bool linear = options->linear && image->format.type != GF_F32;
    const gf_type wanted = gf_depth_type(chain->makes_image ? options->write.depth : GF_DEPTH_INPUT,
                                         image->format.type);
    const gf_type type = linear || premultiplied       ? GF_F32
                         : wanted > image->format.type ? wanted
                                                       : image->format.type;
    image->linear = options->linear && image->format.type == GF_F32; /* it is linear already */
    if (type == image->format.type && !premultiplied)
        return GF_OK;
    if (!linear && !premultiplied)
        image->type = type;
    return graph_convert(graph, 0, image, type, linear || image->linear, premultiplied, error);
}

gf_status gf_graph_new(const gf_chain *chain, const gf_format *in, gf_graph **out,
                       gf_error *error) {
    graph_image image = {.format = *in, .scaled = chain->scaled, .type = in->type};
    gf_graph *graph = *out = calloc(1, sizeof *graph);
    if (!graph)
        return gf_fail_memory(error, gf_chain_name(chain), sizeof *graph, "nodes");
    graph->nodes.node = graph->node;
    gf_status status = graph_convert_input(chain, &image, graph, error);
    const graph_image first = image;
    for (uint32_t i = 0; i < chain->steps && !status; i++) {
        if (chain->step[i].from_input)
            image = first;
        status =
            gf_chain_fail_step(chain, i, graph_add_step(chain, i, &image, graph, error), error);
    }
    return status;
}

void gf_graph_free(gf_graph *graph) {
    if (!graph)
        return;
    for (uint32_t i = 0; i < graph->nodes.count; i++)
        gf_plan_free(graph->plan[i]);
    free(graph);
}

/* ---- description and reports ----------------------------------------------------------------- */

/* Describe a step. The caller frees info->effective, also after a failure. */
static gf_status chain_inspect(const gf_chain *chain, const gf_graph *graph, uint32_t i,
                               gf_step_info *info, gf_error *error) {
    const gf_chain_step *step = &chain->step[i];
    *info = (gf_step_info){.in = graph->in[i], .out = graph->out[i]};
    if (!step->filter)
        return GF_OK;
    const gf_plan *plan = gf_graph_plan(graph, i);
    info->effective = gf_settings_copy(step->settings);
    info->before = plan->before;
    info->after = plan->after;
    info->result_bytes = plan->result_bytes;
    info->measures_first = plan->measure_first ? plan->measure_first->filter : NULL;
    if (!info->effective)
        return gf_fail(error, GF_FAILED, "%s: out of memory for settings", chain_name(step));
    return step->filter->effective && step->filter != gf_filter_convert()
               ? step->filter->effective(plan, info->effective, error)
               : GF_OK;
}

gf_status gf_job_inspect(const gf_job *job, gf_step_info *info, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    gf_chain chain;
    gf_graph *graph = NULL;
    uint32_t described = 0;
    gf_status status = gf_chain_open(job, &chain, error);
    if (!status && !(status = gf_format_check(&job->format, "memory", error)))
        status = gf_graph_new(&chain, &job->format, &graph, error);
    for (; described < chain.steps && !status; described++)
        status = gf_chain_fail_step(
            &chain, described, chain_inspect(&chain, graph, described, &info[described], error),
            error);
    for (uint32_t i = 0; status && i < described; i++) {
        gf_settings_free(info[i].effective);
        info[i].effective = NULL;
    }
    gf_graph_free(graph);
    gf_chain_close(&chain);
    return status;
}

void gf_made_report_graph(gf_made *made, const gf_chain *chain, const gf_graph *graph) {
    made->report.in = graph->in[0];
    made->report.pixels = graph->in[0].width * graph->in[0].height;
    for (uint32_t i = 0; i < chain->steps; i++) {
        gf_step_report *step = &made->steps[i];
        step->in = graph->in[i];
        step->out = graph->out[i];
        if (!chain->step[i].filter)
            continue;
        const gf_plan *plan = gf_graph_plan(graph, i);
        step->brightness = plan->brightness;
        if (plan->advice)
            snprintf(step->advice, sizeof step->advice, "%s", plan->advice);
    }
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
        step->seconds += more_of->steps[i].seconds;
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
