/* Partial results. A partial result records what the stream passes to its consumer for a range of
 * rows: the merged state, and the records and payloads in image order. The partial results of all
 * rows, passed to the filter's measure, produce the result of the whole image. */
#include "engine/run/task.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "io/file/output.h"

/* Identity and sizes of a partial result; the first bytes of its serialized form. */
typedef struct gf_partial_head {
    char filter[16];
    gf_format in;
    uint64_t settings; /* digest of the values of all parameters */
    uint64_t files;    /* digest of the sizes and times of the input files */
    uint64_t first, end;
    uint64_t state_bytes, log_bytes;
    uint64_t check; /* serialized form only: digest of the following bytes */
} gf_partial_head;

/* Header of a log entry: the records of a strip, or one payload; `bytes` bytes follow. */
typedef struct gf_partial_entry {
    uint64_t rows; /* 0: a payload */
    uint64_t bytes;
} gf_partial_entry;

struct gf_partial {
    gf_plan *plan;
    gf_partial_head head;
    unsigned char *data; /* the state, then the log; both are multiples of 8 bytes */
    uint64_t capacity;   /* allocated size of the data */
    uint64_t max_log;    /* maximum size of the log while a range runs */
};

/* ---- creation -------------------------------------------------------------------------------- */

/* Continue a digest, initially 0. */
static uint64_t partial_digest(uint64_t digest, const void *data, size_t bytes) {
    const gf_rows rows = {.data = (unsigned char *)data, .rows = 1};
    return gf_digest_rows(digest, &rows, bytes);
}

/* Return the plan of the filter of a task. */
static gf_plan *partial_plan(const gf_task *task) {
    return gf_graph_plan(task->graph, task->chain->first);
}

/* Digest the texts of all parameters, which determine the computation. */
static uint64_t partial_digest_settings(const gf_chain *chain) {
    const gf_filter_info *info = &chain->step[chain->first].filter->info;
    uint64_t digest = 0;
    for (size_t i = 0; i < info->param_count; i++) {
        const char *text =
            gf_settings_text(chain->step[chain->first].settings, info->params[i].name);
        digest = partial_digest(digest, text ? text : "", text ? strlen(text) + 1 : 1);
    }
    return digest;
}

/* Digest the file properties that are equal on all machines: not device and inode. */
static uint64_t partial_digest_files(const gf_inputs *inputs) {
    uint64_t digest = 0;
    for (uint32_t i = 0; i < inputs->count; i++) {
        const struct stat *info = &inputs->stats[i];
        const int64_t what[] = {info->st_size, info->st_mtim.tv_sec, info->st_mtim.tv_nsec};
        digest = partial_digest(digest, what, sizeof what);
    }
    return digest;
}

static gf_status partial_fail_files(const char *name, gf_error *error) {
    return gf_fail(error, GF_FAILED,
                   "%s: changed while it was read, or the machines do not share its file system",
                   name);
}

void gf_partial_free(gf_partial *partial) {
    if (!partial)
        return;
    gf_plan_free(partial->plan);
    free(partial->data);
    free(partial);
}

/* Append bytes to the log. Return where they are to be written; NULL if out of memory. */
static unsigned char *partial_extend(gf_partial *partial, uint64_t bytes, gf_error *error) {
    const uint64_t used = partial->head.state_bytes + partial->head.log_bytes;
    const uint64_t capacity = used + bytes + (used + bytes) / 2 + 1;
    if (used + bytes > partial->capacity || !partial->data) {
        unsigned char *data = realloc(partial->data, (size_t)capacity);
        if (!data) {
            gf_set_memory_error(error, partial->plan->filter->info.name, capacity,
                                "the measurement");
            return NULL;
        }
        partial->data = data;
        partial->capacity = capacity;
    }
    partial->head.log_bytes += bytes;
    return partial->data + used;
}

/* Create a partial result. *out: the caller frees it, also after a failure. */
static gf_status partial_new(const gf_chain *chain, const gf_format *format, gf_partial **out,
                             gf_error *error) {
    const char *name = gf_chain_name(chain);
    gf_partial *partial = *out = calloc(1, sizeof *partial);
    if (!partial)
        return gf_fail_memory(error, name, sizeof *partial, "a partial result");
    const gf_status status =
        gf_plan_new(chain->step[chain->first].filter, chain->step[chain->first].settings, format,
                    &partial->plan, error);
    if (status)
        return status;
    gf_partial_head *head = &partial->head;
    snprintf(head->filter, sizeof head->filter, "%s", name);
    head->in = *format;
    head->settings = partial_digest_settings(chain);
    head->state_bytes = partial->plan->state_bytes;
    assert(head->state_bytes % 8 == 0);
    if (!partial_extend(partial, 0, error))
        return GF_FAILED;
    memset(partial->data, 0, (size_t)head->state_bytes);
    return GF_OK;
}

/* ---- the measure: appends records and payloads to the log ------------------------------------ */

/* Begin an entry. Return where its bytes are to be written. */
static unsigned char *partial_add_entry(gf_partial *partial, gf_partial_entry entry,
                                        gf_error *error) {
    const uint64_t bytes = sizeof entry + entry.bytes;
    if (gf_check_memory(partial->head.log_bytes + bytes, partial->max_log,
                        partial->plan->filter->info.name, "the partial result", error))
        return NULL;
    unsigned char *at = partial_extend(partial, bytes, error);
    return at ? (unsigned char *)memcpy(at, &entry, sizeof entry) + sizeof entry : NULL;
}

static gf_status partial_rows(const gf_plan *plan, void *data, const gf_rows *rows,
                              gf_error *error) {
    const gf_partial_entry entry = {rows->rows, rows->rows * plan->record};
    unsigned char *at = partial_add_entry(data, entry, error);
    for (uint64_t y = 0; y < rows->rows && at; y++)
        memcpy(at + y * plan->record, gf_row(rows, rows->y0 + y), plan->record);
    return at ? GF_OK : GF_FAILED;
}

/* Append a payload, padded to a multiple of 8 bytes to keep the log aligned. */
static gf_status partial_payload(const gf_plan *plan, void *data, const void *payload,
                                 gf_error *error) {
    const size_t used = plan->filter->payload->used(plan, payload);
    const gf_partial_entry entry = {0, (used + 7) & ~UINT64_C(7)};
    unsigned char *at = partial_add_entry(data, entry, error);
    if (!at)
        return GF_FAILED;
    memcpy(at, payload, used);
    memset(at + used, 0, (size_t)entry.bytes - used);
    return GF_OK;
}

static gf_status partial_finish(const gf_plan *plan, void *data, const void *state,
                                gf_error *error) {
    const gf_partial *partial = data;
    (void)plan, (void)error;
    memcpy(partial->data, state, (size_t)partial->head.state_bytes);
    return GF_OK;
}

gf_status gf_rows_file_open(const gf_job *job, const gf_format *format, gf_rows_file **file,
                            gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    gf_chain chain;
    gf_graph *graph = NULL;
    *file = NULL;
    gf_status status = gf_chain_open_files(job, &chain, error);
    if (!status)
        status = gf_graph_new(&chain, format, &graph, error);
    if (!status && graph->writers)
        status = gf_sink_open_part(chain.step[graph->writer[0].step].out_path, NULL,
                                   &graph->writer[0].stored, 0, &chain.options, 1, file, error);
    gf_graph_free(graph);
    gf_chain_close(&chain);
    return status;
}

const char *gf_rows_file_name(const gf_rows_file *file) {
    return gf_output_pending_path(file->output);
}

void gf_rows_file_close(gf_rows_file *file) {
    if (file)
        file->ops->close(file);
}

/* ---- running a range ------------------------------------------------------------------------- */

/* Pass a partial result, of all rows, to an open measure of the same plan, as a stream does. */
static gf_status partial_deliver(const gf_partial *partial, const gf_plan *plan, void *data,
                                 gf_error *error) {
    const gf_partial_head *head = &partial->head;
    const gf_measure *measure = partial->plan->filter->measure;
    unsigned char *log = partial->data + head->state_bytes;
    uint64_t y = 0;
    gf_status status = GF_OK;
    if (head->first != 0 || head->end != gf_plan_rows(plan))
        return gf_fail(
            error, GF_USAGE,
            "%s: rows %" PRIu64 " to %" PRIu64 " are incomplete; the image has %" PRIu64 " rows",
            partial->plan->filter->info.name, head->first, head->end, gf_plan_rows(plan));
    for (uint64_t at = 0; at < head->log_bytes && !status;) {
        gf_partial_entry entry;
        memcpy(&entry, log + at, sizeof entry);
        const gf_rows records = {log + at + sizeof entry, plan->record, y, entry.rows};
        status = entry.rows ? measure->rows(plan, data, &records, error)
                            : measure->payload(plan, data, records.data, error);
        y += entry.rows;
        at += sizeof entry + entry.bytes;
    }
    return status ? status : measure->finish(plan, data, partial->data, error);
}

/* Refine the plan with the measurement of the whole image by the preceding filter. */
static gf_status partial_refine(gf_task *task, const gf_partial *before, gf_error *error) {
    const gf_measure_options keep = {.name = task->inputs.name};
    void *data = NULL;
    gf_plan *plan = partial_plan(task);
    if (!plan->measure_first)
        return GF_OK;
    const gf_filter *filter = plan->measure_first->filter;
    if (!before || before->plan->filter != filter || !gf_format_equal(&before->head.in, &plan->in))
        return gf_fail(error, GF_USAGE, "%s: needs the partial result of %s for the whole image",
                       gf_chain_name(task->chain), filter->info.name);
    if (before->head.files != partial_digest_files(&task->inputs))
        return partial_fail_files(task->inputs.name, error);
    gf_status status = filter->measure->open(before->plan, &keep, &data, error);
    if (status)
        return status;
    if (!(status = partial_deliver(before, before->plan, data, error)))
        status = plan->filter->refine(plan, data, error);
    filter->measure->close(data);
    return status;
}

/* Reject images and ranges that cannot be processed in ranges of rows. */
static gf_status partial_check(const gf_task *task, const gf_rows_range *range, gf_error *error) {
    const gf_inputs *inputs = &task->inputs;
    const gf_plan *plan = partial_plan(task), *first = plan->measure_first;
    const gf_file_options *options = &task->chain->options;
    const char *subject = "", *why = NULL;
    bool held = false, seeks = gf_inputs_can_restart(inputs);
    for (uint32_t i = 0; i < inputs->count; i++) {
        const gf_source *source = inputs->sources[i];
        held = held || source->held;
        seeks = seeks && source->ops->seek && !gf_memory_source_is(source);
    }
    if (task->chain->filters > 1 || task->chain->steps > 2) {
        why = "ranges of rows are those of a job of one filter; run the image as a whole";
    } else if (task->graph->linear ||
               (options->premultiply == GF_PREMULTIPLY_ON && gf_has_alpha(&inputs->format))) {
        why = "ranges of rows do not support --linear and --premultiply; run the image as a whole";
    } else if (first && plan->in.type != inputs->format.type) {
        subject = first->filter->info.name;
        why = " measures the samples of the file, not those of --depth; run the image as a whole";
    } else if (first && plan->filter->measure) {
        why = "--range data reads the image twice; run it as a whole, or give --range LO,HI";
    } else if (inputs->left_out && plan->filter->nodata == GF_NODATA_ZERO) {
        why =
            "the means of ranges of rows do not leave out samples with the nodata value; run the "
            "image as a whole, or with --nodata none";
    } else if (task->more_pages) {
        why = "ranges of rows are those of one page; choose it, or run the file as a whole";
    } else if (plan->ordered) {
        why = "the sums depend on the order of rows; run the image as a whole";
    } else if (held) {
        why = "an image that is turned is held in memory; run it as a whole";
    } else if (!seeks) {
        why = "rows cannot be read at random in this format; use PNM, PAM, PFM, NPY or TIFF";
    }
    if (why)
        return gf_fail(error, GF_USAGE, "%s: %s%s", inputs->name, subject, why);
    if (range->first > range->end || range->end > gf_plan_rows(plan))
        return gf_fail(error, GF_USAGE, "%s: invalid range of rows; the image has %" PRIu64 " rows",
                       inputs->name, gf_plan_rows(plan));
    return GF_OK;
}

gf_status gf_rows_possible(const gf_engine *engine, const gf_job *job, gf_format *format,
                           bool *possible, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    gf_chain chain;
    gf_task task = {.chain = &chain, .threads = 1};
    bool regular = true; /* opening a pipe would consume its data */
    *possible = false;
    gf_status status = gf_chain_open_files(job, &chain, error);
    for (uint32_t i = 0; !status && i < chain.inputs; i++)
        regular = regular && gf_stat_file(chain.in_paths[i]).st_mode;
    if (!status && regular)
        status = gf_task_open_files(&task, error);
    if (!status && regular) {
        const gf_rows_range none = {.first = 0};
        *format = task.inputs.format;
        *possible = engine->named != &gf_backend_golden && /* golden needs whole images */
                    partial_check(&task, &none, NULL) == GF_OK;
        if (*possible && task.graph->writers)
            *possible = gf_sink_has_parts(chain.step[task.graph->writer[0].step].out_path,
                                          &chain.options) &&
                        !task.inputs.sources[0]->metadata.associated_alpha;
    }
    gf_task_end(&task);
    gf_chain_close(&chain);
    return status;
}

static gf_status partial_stream(gf_task *task, gf_range rows, gf_partial *partial,
                                gf_error *error) {
    static const gf_measure measure = {
        .rows = partial_rows, .payload = partial_payload, .finish = partial_finish};
    const uint32_t node = task->graph->node_of[task->chain->first], edge = node + 1;
    const gf_nodes *nodes = &task->graph->nodes;
    gf_status status = gf_task_open_measures(task, error); /* those of conversions are used */
    if (status)
        return status;
    gf_delivery delivery = gf_task_delivery(task);
    if (task->graph->plan[node]->filter->measure)
        delivery.node[node] = (gf_delivered){.measure = &measure, .data = partial};
    gf_pass pass = gf_task_pass(task, &delivery);
    const gf_plan *plan = task->graph->plan[node];
    gf_range needs = rows;
    for (uint32_t i = edge; i-- > 0;) /* each node reads the one before */
        needs = gf_map_needs(nodes->node[i].plan, needs);
    pass.job.source = (gf_range){gf_cut_position(nodes, edge, rows.first),
                                 gf_cut_position(nodes, edge, rows.end)};
    needs.first = gf_min(needs.first, pass.job.source.first); /* rows that no output row needs */
    pass.memory -= task->memory / 2;
    partial->max_log = task->memory / 2;
    task->watch.first = needs.first;
    task->watch.rows = needs.end - needs.first;
    task->watch.passes = 1;
    gf_inputs_seek(&task->inputs, needs.first);
    if (task->inputs.left_out) { /* rows that neighbours read, too, are counted once */
        task->inputs.left_out->first = gf_min(pass.job.source.first, plan->in.height);
        task->inputs.left_out->end = gf_min(pass.job.source.end, plan->in.height);
    }
    status = gf_pass_run(&pass, error);
    gf_sink *sink = task->writer[0].sink;
    if (!status && sink)
        status = sink->ops->finish(sink, NULL, error);
    if (!status)
        gf_task_count_outside(task);
    gf_made_report_graph(task->made, task->chain, task->graph);
    gf_task_report_stored(task);
    gf_task_report_input(task);
    task->made->report.total_seconds = gf_now() - task->began;
    return status;
}

gf_status gf_run_rows(gf_engine *engine, const gf_job *job, const gf_rows_range *range,
                      gf_partial **out, gf_outcome *outcome, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    gf_partial *partial = NULL;
    gf_chain chain;
    gf_made made;
    gf_status status = gf_chain_open_files(job, &chain, error);
    gf_task task = gf_task_begin(engine, &chain, &made);
    if (!status && !(status = gf_task_open_files(&task, error)) &&
        !(status = partial_check(&task, range, error)) &&
        !(status = partial_refine(&task, range->before, error)) &&
        !(status = partial_new(&chain, &partial_plan(&task)->in, &partial, error))) {
        partial->head.first = range->first;
        partial->head.end = range->end;
        partial->head.files = partial_digest_files(&task.inputs);
    }
    gf_range rows = {range->first, range->end};
    if (!status)
        rows = gf_cut_together(&task.graph->nodes, task.graph->node_of[chain.first] + 1, rows);
    const bool has_rows = !status && rows.end > rows.first;
    if (has_rows && range->file && task.graph->writers)
        status = gf_sink_open_part(chain.step[task.graph->writer[0].step].out_path, range->file,
                                   &task.graph->writer[0].stored, rows.first, &chain.options,
                                   task.threads, &task.writer[0].sink, error);
    if (!status && has_rows)
        status = partial_stream(&task, rows, partial, error);
    gf_task_end(&task);
    if (outcome)
        gf_made_return(&made, &chain, outcome);
    gf_chain_close(&chain);
    if (status)
        gf_partial_free(partial);
    *out = status ? NULL : partial;
    return status;
}

/* ---- merging and serialization --------------------------------------------------------------- */

gf_status gf_partial_merge(gf_partial *partial, const gf_partial *next, gf_error *error) {
    const gf_partial_head *a = &partial->head, *b = &next->head;
    const char *name = partial->plan->filter->info.name;
    if (partial->plan->filter != next->plan->filter || a->settings != b->settings ||
        !gf_format_equal(&a->in, &b->in) || a->end != b->first)
        return gf_fail(error, GF_USAGE,
                       "%s: a partial result belongs to another job, or its rows do not follow",
                       name);
    if (a->files != b->files)
        return partial_fail_files(name, error);
    unsigned char *log = partial_extend(partial, b->log_bytes, error);
    if (!log)
        return GF_FAILED;
    memcpy(log, next->data + b->state_bytes, (size_t)b->log_bytes);
    if (a->state_bytes)
        partial->plan->filter->measure->merge(partial->plan, partial->data, next->data);
    partial->head.end = b->end;
    return GF_OK;
}

size_t gf_partial_size(const gf_partial *partial) {
    return sizeof partial->head + (size_t)(partial->head.state_bytes + partial->head.log_bytes);
}

void gf_partial_write(const gf_partial *partial, void *bytes) {
    gf_partial_head head = partial->head;
    unsigned char *data = (unsigned char *)bytes + sizeof head;
    const size_t size = (size_t)(head.state_bytes + head.log_bytes);
    memcpy(data, partial->data, size);
    head.check = partial_digest(0, data, size);
    memcpy(bytes, &head, sizeof head);
}

gf_status gf_partial_read(const gf_job *job, const void *bytes, size_t size, gf_partial **out,
                          gf_error *error) {
    gf_partial_head head = {.check = 0};
    gf_partial *partial = NULL;
    gf_chain chain;
    gf_status status = gf_chain_open(job, &chain, error);
    const char *name = status ? NULL : gf_chain_name(&chain);
    const unsigned char *data = (const unsigned char *)bytes + sizeof head;
    if (!status && size < sizeof head)
        status = gf_fail(error, GF_FAILED, "%s: the partial result is truncated", name);
    if (!status) {
        memcpy(&head, bytes, sizeof head);
        size -= sizeof head;
        if (strncmp(head.filter, name, sizeof head.filter) != 0 ||
            head.settings != partial_digest_settings(&chain))
            status =
                gf_fail(error, GF_USAGE, "%s: the partial result belongs to another job", name);
    }
    if (!status && !(status = gf_format_check(&head.in, "a partial result", error)))
        status = partial_new(&chain, &head.in, &partial, error);
    if (!status &&
        (head.state_bytes != partial->head.state_bytes || head.log_bytes > size ||
         size != head.state_bytes + head.log_bytes || head.check != partial_digest(0, data, size)))
        status = gf_fail(error, GF_FAILED, "%s: the partial result is damaged", name);
    if (!status && !partial_extend(partial, head.log_bytes, error))
        status = GF_FAILED;
    if (!status) {
        memcpy(partial->data, data, size);
        partial->head = head;
    }
    gf_chain_close(&chain);
    if (status)
        gf_partial_free(partial);
    *out = status ? NULL : partial;
    return status;
}

gf_status gf_finish_rows(gf_engine *engine, const gf_job *job, const gf_partial *partial,
                         gf_rows_file *file, gf_outcome *outcome, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    const double began = gf_now();
    gf_chain chain;
    gf_made made;
    gf_status status = gf_chain_open_files(job, &chain, error);
    gf_task task = gf_task_begin(engine, &chain, &made);
    made.report = outcome->report;
    for (uint32_t i = 0; outcome->steps && i < chain.steps; i++)
        made.steps[i] = outcome->steps[i];
    task.writer[0].sink = file;
    task.inputs.name = status ? NULL : gf_chain_name(&chain);
    if (!status && !(status = gf_graph_new(&chain, &partial->head.in, &task.graph, error)) &&
        !(status = gf_task_open_samples(&task, error)))
        status = gf_task_open_measures(&task, error);
    const uint32_t node = status ? 0 : task.graph->node_of[chain.first];
    if (!status && task.graph->plan[node]->filter->measure)
        status = partial_deliver(partial, task.graph->plan[node], task.node[node].data, error);
    if (!status && file)
        status = gf_task_finish_sinks(&task, error);
    if (!status)
        status = gf_task_make_results(&task, made.results, error);
    made.report.total_seconds += gf_now() - began;
    if (!status)
        status = gf_task_publish(&task, error);
    gf_task_end(&task);
    gf_made_return(&made, &chain, outcome);
    gf_chain_close(&chain);
    return status;
}
