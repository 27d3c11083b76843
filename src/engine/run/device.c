/* Images in device memory: checks, jobs kept by an engine, results. The backend queues the work. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "engine/run/task.h"

/* The most memory for images between the nodes of a job: longer lists are divided. */
#define EDGES_BYTES (UINT64_C(256) << 20)

struct gf_device_job {
    gf_engine *engine;
    gf_chain chain; /* owns its settings */
    gf_graph *graph;
    const gf_job_functions *jobs; /* of the backend */
    void *job[GF_MAX_NODES];      /* the same, for each node; NULL: another one computes it */
    /* Memory for images between nodes, by edge: its position in that of one image. The images of
     * `written` edges are in memory of the caller. */
    size_t at[GF_MAX_EDGES], bytes;
};

/* Images of one launch of a node. */
typedef struct gf_device_group {
    gf_device_part *part;
    uint32_t node;
    uint64_t first, images;
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

/* Place the images between nodes. Those that are not needed at the same time share memory. */
static void device_place_edges(gf_device_job *job) {
    const gf_nodes *nodes = &job->graph->nodes;
    size_t size[GF_MAX_EDGES] = {0};                         /* of each place */
    uint32_t place[GF_MAX_EDGES], until[GF_MAX_EDGES] = {0}; /* last node that uses a place */
    for (uint32_t e = 1; e <= nodes->count; e++) {
        const gf_format *format = &nodes->node[e - 1].plan->out;
        place[e] = 0;
        if (!format->width || !job->job[e - 1] || nodes->written >> e & 1)
            continue;
        while (until[place[e]] >= e) /* in use by node e - 1 or later ones */
            place[e]++;
        for (uint32_t i = e; i < nodes->count; i++)
            if (nodes->node[i].from == e)
                until[place[e]] = i + 1;
        size[place[e]] =
            gf_max(size[place[e]], gf_align(gf_row_bytes(format)) * (size_t)format->height);
    }
    for (uint32_t p = 0; p < GF_MAX_EDGES; p++) {
        for (uint32_t e = 1; e <= nodes->count; e++)
            if (place[e] == p)
                job->at[e] = job->bytes;
        job->bytes += size[p];
    }
}

/* Let nodes compute the ones before them, if the backend can and nothing else reads their images.
 * Returns a bit for each node that another one computes. */
static uint64_t device_join(gf_device_job *job, void *state) {
    const gf_nodes *nodes = &job->graph->nodes;
    uint64_t joined = 0;
    for (uint32_t i = 1; i < nodes->count && job->jobs->join; i++) {
        const uint32_t edge = nodes->node[i].from;
        gf_plan *plan = job->graph->plan[i];
        const gf_plan *before = edge ? job->graph->plan[edge - 1] : NULL;
        uint64_t readers = nodes->written >> edge & 1;
        for (uint32_t k = 0; k < nodes->count; k++)
            readers += nodes->node[k].from == edge;
        if (before && readers == 1 && plan->filter == before->filter && gf_map_one_to_one(before) &&
            job->jobs->join(state, before, plan)) {
            job->graph->node[i].from = nodes->node[edge - 1].from;
            joined |= UINT64_C(1) << (edge - 1);
        }
    }
    return joined;
}

/* Create a job: copy the settings of the chain, create the nodes, and open their jobs of the
 * backend. Takes ownership of the chain. */
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
    assert(status || job->graph);
    for (uint32_t i = 0; !status && i < job->graph->nodes.count; i++) {
        gf_plan *plan = job->graph->plan[i];
        if (plan->filter->info.makes_image)
            plan->state_bytes = 0; /* conversions: a run that only makes images does not wait */
        if (plan->measure_first && plan->filter->measure)
            status =
                gf_fail(error, GF_USAGE,
                        "%s: --range data needs a first pass; in device memory, measure min and "
                        "max with --statistics, and give them as --range LO,HI",
                        plan->filter->info.name);
    }
    if (!status && !(status = gf_engine_device(engine, &on, error))) {
        job->jobs = on.backend->jobs;
        const uint64_t joined = device_join(job, on.state);
        for (uint32_t i = 0; !status && i < job->graph->nodes.count; i++)
            if (!(joined >> i & 1))
                status = job->jobs->open(on.state, job->graph->plan[i], &job->job[i], error);
        device_place_edges(job);
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
    for (uint32_t i = 0; i < GF_MAX_NODES; i++)
        if (job->job[i])
            job->jobs->close(job->job[i]);
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

/* Queue a node for a list of images. first: index of the first one. results: to append the
 * measurements of each launch to; NULL: dropped. */
static gf_status device_queue_node(const gf_device_job *job, uint32_t node, uint64_t first,
                                   uint64_t count, const gf_pixels *in, const gf_out_pixels *out,
                                   void *stream, gf_device_results *results, gf_error *error) {
    const gf_plan *plan = job->graph->plan[node];
    const bool independent = gf_rows_independent(plan);
    const uint32_t inputs = plan->inputs;
    gf_status status = GF_OK;
    for (uint64_t i = 0, images; i < count && !status; i += images) {
        const gf_pixels *from = in + i * inputs;
        const gf_out_pixels *to = out ? out + i : NULL;
        gf_job_images group = {1, plan->in.height, from, to};
        gf_device_part *part = NULL;
        images = 1;
        while (independent && i + images < count &&
               device_follows(plan, from + (images - 1) * inputs, to ? to + images - 1 : NULL))
            images++;
        if (images > 1)
            group.rows *= images;
        else if (independent || !gf_plan_measures(plan))
            group.count = images = count - i;
        status = job->jobs->run(job->job[node], &group, stream, &part, error);
        if (!status && part && results)
            results->groups[results->group_count++] =
                (gf_device_group){part, node, first + i, images};
    }
    return status;
}

/* Lists of images of a node: its inputs in order, and its output. */
typedef struct device_lists {
    gf_pixels *in;
    gf_out_pixels *out;
} device_lists;

/* Return image i of an edge. memory: of the images from `first` on. */
static gf_out_pixels device_image(const gf_device_job *job, const gf_device_images *images,
                                  uint32_t edge, uint64_t i, unsigned char *memory) {
    const gf_graph *graph = job->graph;
    for (uint32_t w = 0; w < graph->writers; w++)
        if (graph->writer[w].edge == edge) {
            assert(images->out[w]);
            return images->out[w][i];
        }
    return (gf_out_pixels){memory ? memory + job->at[edge] : NULL,
                           gf_align(gf_row_bytes(&graph->plan[edge - 1]->out))};
}

/* Return how many images a list has at most. */
static uint64_t device_list_length(const gf_device_job *job, uint64_t count) {
    return job->bytes ? gf_max(EDGES_BYTES / job->bytes, 1) : gf_max(count, 1);
}

/* Queue all nodes for the images [first, first + count). */
static gf_status device_queue(const gf_device_job *job, const gf_device_images *images,
                              uint64_t first, uint64_t count, const device_lists *lists,
                              void *stream, gf_device_results *results, gf_error *error) {
    const gf_nodes *nodes = &job->graph->nodes;
    unsigned char *memory = NULL;
    uint32_t second = 0;
    gf_status status = GF_OK;
    /* Growing stops the device: take the memory of the longest list at once. */
    const bool many = job->chain.many || images->count > 1;
    const uint64_t room = many ? device_list_length(job, count) : 1;
    if (job->bytes)
        status = job->jobs->workspace(job->job[nodes->count - 1], stream, (size_t)room * job->bytes,
                                      &memory, error);
    for (uint32_t n = 0; n < nodes->count && !status; n++) {
        const uint32_t from = nodes->node[n].from, inputs = nodes->node[n].plan->inputs;
        const bool draws = nodes->node[n].plan->out.width;
        for (uint64_t i = 0; i < count; i++) {
            unsigned char *own = memory ? memory + i * job->bytes : NULL;
            const gf_out_pixels made =
                from ? device_image(job, images, from, first + i, own) : (gf_out_pixels){NULL, 0};
            lists->in[i * inputs] =
                from ? (gf_pixels){made.data, made.stride} : images->in[first + i];
            if (inputs == 2)
                lists->in[i * inputs + 1] = images->second[second][first + i];
            if (draws)
                lists->out[i] = device_image(job, images, n + 1, first + i, own);
        }
        second += inputs - 1;
        if (job->job[n])
            status = device_queue_node(job, n, first, count, lists->in, draws ? lists->out : NULL,
                                       stream, results, error);
    }
    return status;
}

/* Check the images of a run. */
static gf_status device_check(const gf_device_job *job, const gf_device_images *images, uint64_t i,
                              gf_error *error) {
    const gf_graph *graph = job->graph;
    const gf_format *formats[GF_MAX_INPUTS];
    gf_pixels in[GF_MAX_INPUTS];
    const char *name = gf_chain_name(&job->chain);
    gf_status status = GF_OK;
    gf_graph_inputs(graph, formats);
    for (uint32_t k = 0; k < job->chain.inputs && !status; k++) {
        in[k] = k ? images->second[k - 1][i] : images->in[i];
        status = gf_pixels_check(name, k ? "second input" : "input", formats[k], in[k], error);
    }
    for (uint32_t w = 0; w < graph->writers && !status; w++) {
        const gf_out_pixels *out = &images->out[w][i];
        const gf_writer *writer = &graph->writer[w];
        status = gf_pixels_check(name, "output", &writer->stored,
                                 (gf_pixels){out->data, out->stride}, error);
        if (!status)
            status = gf_check_overlap(graph, name, in, writer, out, error);
    }
    return status;
}

/* Check that all lists are there, and their images. */
static gf_status device_check_lists(const gf_device_job *job, const gf_device_images *images,
                                    gf_error *error) {
    const gf_graph *graph = job->graph;
    const char *name = gf_chain_name(&job->chain);
    gf_status status = GF_OK;
    if (images->count == 0)
        return GF_OK;
    if (!images->in)
        return gf_fail(error, GF_USAGE, "%s: the list of input images is NULL", name);
    for (uint32_t k = 1; k < job->chain.inputs; k++)
        if (!images->second || !images->second[k - 1])
            return gf_fail(error, GF_USAGE, "%s: the list of second images is NULL", name);
    for (uint32_t w = 0; w < graph->writers; w++)
        if (!images->out || !images->out[w])
            return gf_fail(error, GF_USAGE, "%s: produces an image; give an output",
                           gf_writer_name(&job->chain, &graph->writer[w]));
    for (uint64_t i = 0; i < images->count && !status; i++)
        status = device_check(job, images, i, error);
    return status;
}

gf_status gf_device_job_run(gf_device_job *job, const gf_device_images *images, void *stream,
                            gf_device_results **out_results, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    const char *name = gf_chain_name(&job->chain);
    const uint64_t count = images->count, at_once = gf_min(count, device_list_length(job, count));
    gf_device_results *results = NULL;
    device_lists lists = {NULL, NULL};
    if (out_results)
        *out_results = NULL;
    gf_status status = device_check_lists(job, images, error);
    if (!status && job->chain.measures) {
        const size_t bytes =
            sizeof *results + (size_t)count * job->chain.filters * sizeof results->groups[0];
        results = malloc(bytes);
        if (results)
            *results = (gf_device_results){.job = job, .count = count};
        else
            status = gf_fail_memory(error, name, bytes, "the results");
    }
    const size_t bytes = (size_t)at_once * (2 * sizeof *lists.in + sizeof *lists.out);
    if (!status && !(lists.in = malloc(bytes + 1)))
        status = gf_fail_memory(error, name, bytes, "the list of images");
    lists.out = (gf_out_pixels *)(lists.in + 2 * at_once);
    for (uint64_t i = 0; i < count && !status; i += at_once)
        status = device_queue(job, images, i, gf_min(count - i, at_once), &lists, stream, results,
                              error);
    free(lists.in);
    if (status || !out_results)
        gf_device_results_free(results);
    else
        *out_results = results;
    return status;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Make the results of an image. next: the group of each node with the image before. */
static gf_status device_make_results(const gf_device_results *all, uint64_t image,
                                     size_t next[GF_MAX_NODES], gf_result **results,
                                     gf_error *error) {
    const gf_device_job *job = all->job;
    gf_device_part parts[GF_MAX_NODES] = {{.state = NULL}};
    gf_task task = {.chain = &job->chain,
                    .inputs = {.name = "device memory"},
                    .memory = job->engine->options.max_memory,
                    .keep_samples = true};
    for (uint32_t n = 0; n < job->graph->nodes.count; n++) {
        const gf_plan *plan = job->graph->plan[n];
        if (!gf_plan_measures(plan))
            continue;
        const gf_device_group *group = &all->groups[next[n]];
        while (group->node != n || group->first + group->images <= image)
            group = &all->groups[++next[n]];
        parts[n] = *group->part;
        parts[n].records.rows = gf_plan_rows(plan);
        if (parts[n].records.data)
            parts[n].records.data +=
                (image - group->first) * gf_plan_rows(plan) * parts[n].records.stride;
    }
    return gf_task_deliver(&task, &job->graph->plan[0]->in, parts, results + image, all->count,
                           error);
}

gf_status gf_device_results_wait(gf_device_results *results, gf_result **list, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    const gf_device_job *job = results->job;
    const uint64_t count = results->count, all = count * job->chain.steps;
    size_t next[GF_MAX_NODES] = {0};
    gf_status status = GF_OK;
    memset(list, 0, (size_t)all * sizeof(gf_result *));
    for (size_t g = 0; g < results->group_count && !status; g++)
        status =
            job->jobs->fetch(job->job[results->groups[g].node], results->groups[g].part, error);
    for (size_t g = 0; g < results->group_count && !status; g++)
        status = job->jobs->wait(job->job[results->groups[g].node], results->groups[g].part, error);
    for (uint64_t i = 0; i < count && !status; i++)
        status = device_make_results(results, i, next, list, error);
    for (uint64_t i = 0; i < all && status; i++) {
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
        results->job->jobs->release(results->job->job[results->groups[i].node],
                                    results->groups[i].part);
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

gf_status gf_run_on_device(gf_engine *engine, const gf_chain *chain, const gf_format *format,
                           void *stream, gf_result **results, gf_error *error) {
    const gf_out_pixels *out[GF_MAX_STEPS];
    const gf_device_images images = {
        .count = chain->count, .in = chain->in[0], .second = &chain->in[1], .out = out};
    gf_device_job **jobs = engine->jobs, *found = NULL;
    gf_device_results *queued = NULL;
    size_t at = 0;
    for (; at < engine->job_count && !found; at++)
        if (gf_format_equal(&jobs[at]->graph->plan[0]->in, format) &&
            device_same(&jobs[at]->chain, chain))
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
    found->chain.many = found->chain.many || chain->many;
    for (uint32_t w = 0; w < found->graph->writers; w++)
        out[w] = chain->step[found->graph->writer[w].step].out;
    const gf_status status =
        gf_device_job_run(found, &images, stream, results ? &queued : NULL, error);
    return queued ? gf_device_results_wait(queued, results, error) : status;
}
