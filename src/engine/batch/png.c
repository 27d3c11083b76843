/* PNG files that a device decodes, filters and encodes: only file bytes cross the bus. */
#include "engine/batch/batch.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/error.h"
#include "io/file/input.h"
#include "io/stream/stream.h"

/* Files that are read at the same time take at most a quarter of the memory. */
#define MEMORY_SHARE 4u
/* Limit of a file and of its filtered rows: positions have 32 bits. */
#define MAX_BYTES (UINT64_C(1) << 30)
/* gf_png_scan_file accepts metadata chunks up to this size. */
#define MIN_MAX_CHUNK (UINT64_C(1) << 16)

static uint64_t png_file_bytes(const gf_task *task) {
    return (uint64_t)task->inputs.stats[0].st_size;
}

/* Return the bytes of an image of aligned rows. */
static size_t png_image_bytes(const gf_format *format) {
    return (size_t)format->height * gf_align(gf_row_bytes(format));
}

static const gf_format *png_in(const gf_task *task) {
    return &task->graph->plan[0]->in;
}

/* Return the bytes for the input image, and afterwards the encoded outputs. */
static size_t png_in_bytes(const gf_task *task) {
    size_t out = 0;
    for (uint32_t w = 0; w < task->graph->writers; w++)
        out += gf_align(gf_png_bound(&task->graph->writer[w].stored));
    return gf_max(gf_align(png_image_bytes(png_in(task))), out);
}

static size_t png_out_bytes(const gf_task *task) {
    size_t out = 0;
    for (uint32_t w = 0; w < task->graph->writers; w++)
        out += png_image_bytes(&task->graph->writer[w].stored);
    return out;
}

uint64_t gf_batch_png_bytes(const gf_task *task) {
    return png_in_bytes(task) + png_out_bytes(task) + gf_align((size_t)png_file_bytes(task));
}

bool gf_batch_png_is_candidate(const gf_file_batch *batch, const gf_task *task) {
    const gf_file_options *options = &task->chain->options;
    const uint64_t memory = batch->options.engine.max_memory;
    const uint64_t max = (memory ? memory : GF_DEFAULT_MAX_MEMORY) / MEMORY_SHARE / batch->at_once;
    const gf_format *in = &task->inputs.format;
    const uint64_t filtered = (gf_row_bytes(in) + 1) * in->height;
    const gf_graph *graph = task->graph;
    bool fits = task->inputs.sources[0]->codec == &gf_png_codec && png_file_bytes(task) <= max &&
                !options->as && !options->channels && png_file_bytes(task) < MAX_BYTES &&
                filtered < MAX_BYTES && task->inputs.limits.max_chunk >= MIN_MAX_CHUNK &&
                !batch->options.engine.verify;
    for (uint32_t i = 0; i < graph->nodes.count; i++)
        fits = fits && !graph->counts[i]; /* devices do not count */
    for (uint32_t w = 0; w < graph->writers; w++) {
        const gf_chain_step *step = &task->chain->step[graph->writer[w].step];
        const gf_file_options own = {.write = step->write};
        fits = fits && gf_sink_takes_encoded(step->out_path, graph->writer[w].stored.type, &own);
    }
    return fits;
}

unsigned char *gf_batch_png_read(const gf_task *task, const gf_buffer *host, gf_buffer *buffer,
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
    return read && gf_format_equal(&scan->format, &task->inputs.format) ? file : NULL;
}

gf_status gf_batch_png_upload(gf_batch_image *image, unsigned char *file, const gf_buffer *host) {
    gf_task *task = &image->task;
    const gf_format *in = &task->inputs.format;
    const gf_png_scan *scan = &image->file.scan;
    const uint32_t parts = gf_png_scan_parts(scan);
    unsigned char *data = image->memory + png_in_bytes(task) + png_out_bytes(task);
    size_t *places = calloc(2 * (size_t)parts, sizeof *places);
    gf_source *held;
    image->places = places;
    image->file.places = places;
    image->file.data = data;
    if (!places || gf_memory_source(in, file, gf_row_bytes(in), &held, NULL))
        return GF_FAILED;
    /* Close the file, whose rows are not read here, and add the metadata after its pixels. */
    gf_inputs_replace(&task->inputs, held);
    held->bytes = scan->end;
    if ((task->with_metadata && gf_png_scan_late(file, scan, held, task->inputs.name, NULL)) ||
        gf_task_update_metadata(task, NULL) ||
        !gf_png_scan_copy(file, scan, file, places, places + parts))
        return GF_FAILED;
    return image->on.backend->memory->upload(image->on.state, data, file, gf_png_scan_bytes(scan),
                                             host, NULL);
}

static gf_batch_image *png_next(const gf_batch_image *image) {
    return (gf_batch_image *)image->base.next;
}

/* Add the time since *began, divided among the images, to a stage of each, and restart it. */
static void png_add_time(gf_batch_image *image, size_t count, gf_stage stage, double *began) {
    const double now = gf_now(), each = (now - *began) / (double)count;
    for (; image; image = png_next(image))
        gf_busy_add(&image->made.report.busy[stage], (gf_busy){each, 1});
    *began = now;
}

gf_status gf_batch_png_decode(const gf_file_batch *batch, size_t count, gf_batch_image *group,
                              void *stream, gf_error *error) {
    double began = gf_now();
    /* The arrays are in one block. */
    const size_t each = sizeof(gf_device_file) + sizeof(gf_out_pixels) + sizeof(bool);
    gf_device_file *files = calloc(count, each);
    if (!files)
        return gf_fail_memory(error, gf_chain_name(&batch->chain), count * each, "a group");
    gf_out_pixels *images = (gf_out_pixels *)(files + count);
    bool *decoded = (bool *)(images + count);
    size_t i = 0;
    for (gf_batch_image *image = group; image; image = png_next(image), i++) {
        files[i] = image->file;
        images[i] = (gf_out_pixels){image->memory, gf_align(gf_row_bytes(png_in(&group->task)))};
    }
    const gf_device_decoding call = {
        .count = count, .out = images, .stream = stream, .uploaded = files, .decoded = decoded};
    const gf_status status = group->on.backend->png->decode(group->on.state, &call, error);
    i = 0;
    for (gf_batch_image *image = group; image && !status; image = png_next(image))
        image->base.computed = decoded[i++];
    free(files);
    png_add_time(group, count, GF_DECODING, &began);
    return status;
}

gf_status gf_batch_png_compute(const gf_file_batch *batch, gf_engine *engine, size_t count,
                               gf_batch_image *first, void *stream, gf_error *error) {
    const gf_graph *graph = first->task.graph;
    const gf_format *in_format = png_in(&first->task);
    const uint32_t steps = batch->chain.steps, writers = graph->writers;
    double began = gf_now();
    /* The arrays are in one block; those of a writer follow those of the one before. */
    const size_t each = writers * (sizeof(gf_buffer) + sizeof(gf_out_pixels) + sizeof(gf_pixels) +
                                   sizeof(uint64_t)) +
                        sizeof(gf_pixels) + steps * sizeof(gf_result *);
    gf_buffer *encoded = calloc(count, each);
    if (!encoded)
        return gf_fail_memory(error, gf_chain_name(&batch->chain), count * each, "a group");
    gf_out_pixels *out = (gf_out_pixels *)(encoded + writers * count);
    gf_pixels *in = (gf_pixels *)(out + writers * count), *rows = in + count;
    uint64_t *largest = (uint64_t *)(rows + writers * count);
    gf_result **results = (gf_result **)(largest + writers * count);
    gf_status status = GF_OK;
    gf_chain chain = batch->chain;
    size_t k = 0;
    for (const gf_batch_image *image = first; image; image = png_next(image)) {
        unsigned char *file = image->memory, *made = file + png_in_bytes(&first->task);
        if (!image->base.computed)
            continue;
        in[k] = (gf_pixels){image->memory, gf_align(gf_row_bytes(in_format))};
        for (size_t w = 0, i = k; w < writers; w++, i += count) {
            const gf_format *stored = &graph->writer[w].stored;
            encoded[i] = (gf_buffer){file, gf_png_bound(stored)};
            rows[i] = (gf_pixels){made, gf_align(gf_row_bytes(stored))};
            out[i] = (gf_out_pixels){made, rows[i].stride};
            file += gf_align(encoded[i].size);
            made += png_image_bytes(stored);
        }
        k++;
    }
    chain.count = k;
    chain.many = true;
    chain.in[0] = in;
    for (uint32_t w = 0; w < writers; w++)
        chain.step[graph->writer[w].step].out = out + w * count;
    if (k)
        status = gf_run_on_device(engine, &chain, in_format, stream,
                                  chain.measures ? results : NULL, error);
    png_add_time(first, count, GF_COMPUTING, &began);
    for (size_t w = 0, at = 0; w < writers && k && !status; w++, at += count) {
        const gf_device_encoding call = {
            &graph->writer[w].stored,  k,     rows + at, encoded + at, largest + at,
            gf_engine_threads(engine), stream};
        status = first->on.backend->png->encode(first->on.state, &call, error);
    }
    png_add_time(first, count, GF_ENCODING, &began);
    const size_t computed = k;
    k = 0;
    for (gf_batch_image *image = first; image && !status; image = png_next(image))
        if (image->base.computed) {
            gf_report *report = &image->made.report;
            snprintf(report->backend, sizeof report->backend, "%s", engine->named->name);
            engine->named->describe(image->on.state, report->device, sizeof report->device);
            gf_made_report_graph(&image->made, &batch->chain, graph);
            report->rows_per_strip = in_format->height;
            report->strips = 1;
            for (uint32_t w = 0; w < writers; w++) {
                image->encoded[w] = encoded[w * count + k];
                image->largest[w] = largest[w * count + k];
            }
            for (uint32_t i = 0; i < steps; i++)
                image->made.results[i] = results[i * computed + k];
            k++;
        }
    free(encoded);
    return status;
}

gf_status gf_batch_png_warm_up(const gf_file_batch *batch, gf_engine *engine,
                               const gf_format *format, gf_batch_image *image, void *stream) {
    const size_t places[2] = {0, 0};
    gf_status status = gf_graph_new(&batch->chain, format, &image->task.graph, NULL);
    image->file = (gf_device_file){.scan = {.format = *format, .part_rows = format->height},
                                   .data = image->memory,
                                   .places = places};
    if (!status) /* fails to decode: the stream is empty */
        status = gf_batch_png_decode(batch, 1, image, stream, NULL);
    image->base.computed = true;
    if (!status)
        status = gf_batch_png_compute(batch, engine, 1, image, stream, NULL);
    gf_made_free_results(&image->made);
    gf_graph_free(image->task.graph);
    return status;
}

gf_status gf_batch_png_write(gf_batch_image *image, gf_error *error) {
    enum { TAIL = 12 }; /* the IEND chunk: the sink writes it, as the head */
    const gf_memory_functions *memory = image->on.backend->memory;
    const double began = gf_now();
    gf_task *task = &image->task;
    gf_buffer host;
    gf_status status = gf_task_open_outputs(task, error);
    for (uint32_t w = 0; w < task->graph->writers && !status; w++) {
        const gf_buffer *encoded = &image->encoded[w];
        gf_sink *sink = task->writer[w].sink;
        if ((status = memory->take_host(image->on.state, &host, error)))
            break;
        sink->clipped = image->largest[w];
        status = memory->download(image->on.state, (unsigned char *)encoded->data + GF_PNG_HEAD,
                                  encoded->size - GF_PNG_HEAD - TAIL, &host, sink, error);
        memory->return_host(image->on.state, &host);
    }
    gf_busy_add(&image->made.report.busy[GF_ENCODING], (gf_busy){gf_now() - began, 1});
    if (!status)
        status = gf_task_finish_sinks(task, error);
    if (!status)
        return gf_task_publish(task, error);
    gf_made_free_results(&image->made);
    return status;
}
