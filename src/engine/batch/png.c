/* PNG files that a device decodes, filters and encodes: reading, one group of images, writing. Only
 * file bytes cross the bus. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/filter.h"
#include "engine/batch/batch.h"
#include "io/file/input.h"
#include "io/png/png.h"
#include "io/stream/memory.h"

/* Files that are read at the same time take at most a quarter of the memory. */
#define MEMORY_SHARE 4u
/* Limit of a file and of its filtered rows: positions have 32 bits. */
#define MAX_BYTES (UINT64_C(1) << 30)
/* gf_png_scan_file accepts metadata chunks up to this size. */
#define MIN_MAX_CHUNK (UINT64_C(1) << 16)

/* Decoded images of one format that a device filters and encodes together. The arrays have `count`
 * entries. */
typedef struct png_group {
    size_t count;
    gf_buffer *encoded;
    gf_out_pixels *out;
    gf_pixels *in, *rows;
    uint64_t *largest;
    gf_result **results;
} png_group;

/* ---- device memory --------------------------------------------------------------------------- */

static uint64_t png_file_bytes(const gf_task *task) {
    return (uint64_t)task->inputs.stats[0].st_size;
}

/* Return the bytes of an image of aligned rows. */
static size_t png_image_bytes(const gf_format *format) {
    return (size_t)format->height * gf_align(gf_row_bytes(format));
}

/* Return the bytes for the input image, and afterwards the encoded output. */
static size_t png_in_bytes(const gf_plan *plan) {
    const size_t in = png_image_bytes(&plan->in);
    const size_t out = plan->out.width ? gf_png_bound(&plan->out) : 0;
    return gf_align(in > out ? in : out);
}

static size_t png_out_bytes(const gf_plan *plan) {
    return plan->out.width ? png_image_bytes(&plan->out) : 0;
}

uint64_t gf_batch_png_bytes(const gf_task *task) {
    return png_in_bytes(task->plan) + png_out_bytes(task->plan) +
           gf_align((size_t)png_file_bytes(task));
}

/* ---- reading --------------------------------------------------------------------------------- */

bool gf_batch_png_is_candidate(const gf_file_batch *batch, const gf_task *task) {
    const gf_plan *plan = task->plan;
    const gf_file_options *options = &task->chain->options;
    const uint64_t memory = batch->options.engine.max_memory;
    const uint64_t max = (memory ? memory : GF_DEFAULT_MAX_MEMORY) / MEMORY_SHARE / batch->at_once;
    const uint64_t filtered = (gf_row_bytes(&plan->in) + 1) * plan->in.height;
    return task->inputs.sources[0]->codec == &gf_png_codec && png_file_bytes(task) <= max &&
           !options->as && !options->channels && png_file_bytes(task) < MAX_BYTES &&
           filtered < MAX_BYTES && task->inputs.limits.max_chunk >= MIN_MAX_CHUNK &&
           !batch->options.engine.verify &&
           (!plan->out.width ||
            (task->stored.type == plan->out.type &&
             gf_sink_takes_encoded(task->chain->out_path, plan->out.type, options)));
}

unsigned char *gf_batch_png_read(const gf_task *task, const gf_buffer *host, gf_byte_buffer *buffer,
                                 gf_png_scan *scan) {
    const size_t size = (size_t)png_file_bytes(task);
    const bool fits = size <= host->size;
    gf_input input;
    size_t got = 0;
    if (!fits && size > buffer->size) {
        free(buffer->data);
        buffer->data = malloc(size + size / 4);
        buffer->size = buffer->data ? size + size / 4 : 0;
    }
    unsigned char *file = fits ? host->data : buffer->data;
    if (!file || gf_input_open(&input, task->inputs.paths[0], NULL))
        return NULL;
    const bool read =
        !gf_input_read(&input, file, size, &got, NULL) && gf_png_scan_file(file, got, scan);
    gf_input_close(&input);
    return read && gf_format_equal(&scan->format, &task->plan->in) ? file : NULL;
}

/* Close the file of the task, and add the metadata after its pixels to the task. Its rows are not
 * read: a device decodes them. */
static gf_status png_hold(gf_task *task, const unsigned char *file, const gf_png_scan *scan,
                          gf_error *error) {
    gf_source *held;
    const gf_format *in = &task->plan->in;
    gf_status status = gf_memory_source(in, file, gf_row_bytes(in), &held, error);
    if (status)
        return status;
    gf_inputs_replace(&task->inputs, held);
    held->bytes = scan->end;
    if (task->with_metadata)
        status = gf_png_scan_late(file, scan, held, task->inputs.name, error);
    return status ? status : gf_task_update_metadata(task, error);
}

gf_status gf_batch_png_upload(gf_task *task, unsigned char *file, const gf_buffer *host,
                              gf_batch_png *png, bool *intact, gf_error *error) {
    const gf_png_scan *scan = &png->file.scan;
    const uint32_t parts = gf_png_scan_parts(scan);
    unsigned char *data = png->memory + png_in_bytes(task->plan) + png_out_bytes(task->plan);
    size_t *places = calloc(2 * (size_t)parts, sizeof *places);
    gf_status status = places ? png_hold(task, file, scan, error)
                              : gf_fail_memory(error, task->inputs.name, parts, "the file");
    *intact = false;
    png->places = places;
    png->file.places = places;
    png->file.data = data;
    if (status || !gf_png_scan_copy(file, scan, file, places, places + parts))
        return status;
    *intact = true;
    return png->device->memory->upload(png->state, data, file, gf_png_scan_bytes(scan), host,
                                       error);
}

/* ---- a group --------------------------------------------------------------------------------- */

/* Add the time since *began, divided among the images, to a stage of each, and restart it. */
static void png_add_time(gf_batch_outcome *const *outcomes, size_t count, gf_stage stage,
                         double *began) {
    const double now = gf_now(), each = (now - *began) / (double)count;
    for (size_t i = 0; i < count; i++)
        gf_busy_add(&outcomes[i]->made.report.busy[stage], (gf_busy){each, 1});
    *began = now;
}

/* Decode all files. */
static gf_status png_decode(const gf_file_batch *batch, const gf_plan *plan, size_t count,
                            gf_batch_png *const *list, void *stream, gf_error *error) {
    const char *name = batch->chain.filter->info.name;
    gf_device_file *files = calloc(count, sizeof *files);
    gf_out_pixels *images = calloc(count, sizeof *images);
    bool *decoded = calloc(count, sizeof *decoded);
    gf_status status = files && images && decoded
                           ? GF_OK
                           : gf_fail_memory(error, name, count * sizeof *files, "a group");
    for (size_t i = 0; i < count && !status; i++) {
        files[i] = list[i]->file;
        images[i] = (gf_out_pixels){list[i]->memory, gf_align(gf_row_bytes(&plan->in))};
    }
    const gf_device_decoding call = {
        .count = count, .out = images, .stream = stream, .uploaded = files, .decoded = decoded};
    if (!status)
        status = list[0]->device->png->decode(list[0]->state, &call, error);
    for (size_t i = 0; i < count && !status; i++)
        list[i]->decoded = decoded[i];
    free(files);
    free(images);
    free(decoded);
    return status;
}

gf_status gf_batch_png_decode(const gf_file_batch *batch, const gf_plan *plan, size_t count,
                              gf_batch_png *const *list, gf_batch_outcome *const *outcomes,
                              void *stream, gf_error *error) {
    double began = gf_now();
    const gf_status status = png_decode(batch, plan, count, list, stream, error);
    png_add_time(outcomes, count, GF_DECODING, &began);
    return status;
}

static gf_status png_allocate(png_group *group, size_t count, const char *name, gf_error *error) {
    *group = (png_group){.encoded = calloc(count, sizeof *group->encoded),
                         .out = calloc(count, sizeof *group->out),
                         .in = calloc(count, sizeof *group->in),
                         .rows = calloc(count, sizeof *group->rows),
                         .largest = calloc(count, sizeof *group->largest),
                         .results = calloc(count, sizeof(gf_result *))};
    return group->encoded && group->out && group->in && group->rows && group->largest &&
                   group->results
               ? GF_OK
               : gf_fail_memory(error, name, count * sizeof *group, "a group");
}

static void png_free(png_group *group) {
    free(group->encoded);
    free(group->out);
    free(group->in);
    free(group->rows);
    free(group->largest);
    free(group->results);
}

/* Add the image in the memory of a file. */
static void png_add(png_group *group, unsigned char *memory, const gf_plan *plan) {
    const size_t in_bytes = png_in_bytes(plan), stride = gf_align(gf_row_bytes(&plan->out));
    const size_t k = group->count++;
    group->in[k] = (gf_pixels){memory, gf_align(gf_row_bytes(&plan->in))};
    group->encoded[k] = (gf_buffer){memory, in_bytes};
    group->out[k] = (gf_out_pixels){memory + in_bytes, stride};
    group->rows[k] = (gf_pixels){memory + in_bytes, stride};
}

static gf_status png_filter(const gf_file_batch *batch, gf_engine *engine, const gf_plan *plan,
                            const png_group *group, void *stream, gf_error *error) {
    gf_chain chain = batch->chain;
    chain.count = group->count;
    chain.in[0] = group->in;
    chain.out = plan->out.width ? group->out : NULL;
    return group->count ? gf_run_on_device(engine, &chain, &plan->in, stream,
                                           chain.filter->measure ? group->results : NULL, error)
                        : GF_OK;
}

static gf_status png_encode(const gf_engine *engine, const gf_batch_png *png, const gf_plan *plan,
                            const png_group *group, void *stream, gf_error *error) {
    const gf_device_encoding call = {&plan->out,     group->count,   group->rows,
                                     group->encoded, group->largest, gf_engine_threads(engine),
                                     stream};
    return group->count && plan->out.width ? png->device->png->encode(png->state, &call, error)
                                           : GF_OK;
}

static void png_report(const gf_backend *backend, const void *state, const gf_plan *plan,
                       gf_made *made) {
    gf_report *report = &made->report;
    snprintf(report->backend, sizeof report->backend, "%s", backend->name);
    backend->describe(state, report->device, sizeof report->device);
    gf_made_report_plan(made, plan);
    report->rows_per_strip = plan->in.height;
    report->strips = 1;
}

gf_status gf_batch_png_compute(const gf_file_batch *batch, gf_engine *engine, const gf_plan *plan,
                               size_t count, gf_batch_png *const *list,
                               gf_batch_outcome *const *outcomes, void *stream, gf_error *error) {
    double began = gf_now();
    png_group group;
    gf_status status = png_allocate(&group, count, batch->chain.filter->info.name, error);
    for (size_t i = 0; i < count && !status; i++)
        if (list[i]->decoded)
            png_add(&group, list[i]->memory, plan);
    if (!status)
        status = png_filter(batch, engine, plan, &group, stream, error);
    png_add_time(outcomes, count, GF_COMPUTING, &began);
    if (!status)
        status = png_encode(engine, list[0], plan, &group, stream, error);
    png_add_time(outcomes, count, GF_ENCODING, &began);
    for (size_t i = 0, k = 0; i < count && !status; i++) {
        png_report(engine->named, list[i]->state, plan, &outcomes[i]->made);
        if (!list[i]->decoded)
            continue;
        list[i]->encoded = group.encoded[k];
        list[i]->largest = group.largest[k];
        outcomes[i]->made.results[0] = group.results[k++];
    }
    png_free(&group);
    return status;
}

gf_status gf_batch_png_warm_up(const gf_file_batch *batch, gf_engine *engine,
                               const gf_format *format, gf_batch_png *png, void *stream,
                               gf_error *error) {
    const size_t places[2] = {0, 0};
    gf_batch_png *const list[] = {png};
    gf_plan *plan = NULL;
    png_group group;
    png->file = (gf_device_file){.scan = {.format = *format, .part_rows = format->height},
                                 .data = png->memory,
                                 .places = places};
    gf_status status = png_allocate(&group, 1, batch->chain.filter->info.name, error);
    if (!status)
        status = gf_chain_plan(&batch->chain, format, &plan, error);
    if (!status)
        status = png_decode(batch, plan, 1, list, stream, error); /* fails: the stream is empty */
    if (!status) {
        png_add(&group, png->memory, plan);
        status = png_filter(batch, engine, plan, &group, stream, error);
    }
    if (!status)
        status = png_encode(engine, png, plan, &group, stream, error);
    if (group.results)
        gf_result_free(group.results[0]);
    png_free(&group);
    gf_plan_free(plan);
    return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

static gf_status png_take(void *context, const void *data, size_t size, gf_error *error) {
    gf_sink *sink = context;
    return sink->write_encoded(sink, data, size, error);
}

gf_status gf_batch_png_fill(void *context, gf_sink *sink, gf_error *error) {
    enum { TAIL = 12 }; /* the IEND chunk: the sink writes it, as the head */
    const gf_batch_png *png = context;
    const gf_memory_functions *memory = png->device->memory;
    const gf_byte_taker taker = {png_take, sink};
    gf_buffer host;
    gf_status status = memory->take_host(png->state, &host, error);
    if (status)
        return status;
    sink->clipped = png->largest;
    status = memory->download(png->state, (const unsigned char *)png->encoded.data + GF_PNG_HEAD,
                              png->encoded.size - GF_PNG_HEAD - TAIL, &host, &taker, error);
    memory->return_host(png->state, &host);
    return status;
}
