/* The threads' part of a batch on devices: small images are decoded into memory, and encoded when
 * they come back. */
#include "engine/batch_code.h"

#include <stdlib.h>

#include "clock.h"
#include "engine/backend.h"
#include "engine/batch_plan.h"
#include "error.h"
#include "io/files.h"
#include "io/metadata.h"

#define HELD_IMAGES UINT64_C(4096) /* at once, however small they are */

/* It is over. */
static void tell(gf_device_files *all, gf_held *held, gf_status status, const gf_error *error) {
    gf_result *result = held->result;
    held->result = NULL;
    held->report.total_seconds = gf_now() - held->task.began;
    gf_report report = held->report;
    const uint64_t item = held->item;
    gf_held_release(all, held);
    if (gf_held_may_tell(all))
        gf_files_tell(all->files, item, status, error, &report, result);
    else
        gf_result_free(result);
}

/* ---- decoding and encoding ------------------------------------------------------------------- */

/* What cannot be read twice is not looked at here. */
static void open_image(gf_device_files *all, uint64_t item) {
    gf_files *files = all->files;
    const gf_batch_item *what = &files->items[item];
    gf_error error = {0};
    gf_held *held = calloc(1, sizeof *held);
    if (!held) {
        gf_report report = {0};
        const gf_status status = gf_fail_memory(&error, what->in, sizeof *held, "an image");
        pthread_mutex_lock(&files->lock);
        all->fresh--;
        pthread_mutex_unlock(&files->lock);
        if (gf_held_may_tell(all))
            gf_files_tell(files, item, status, &error, &report, NULL);
        return;
    }
    held->item = item;
    held->fresh = true;
    gf_metadata_init(&held->metadata);
    held->task = (gf_task){
        .filter = files->filter, .threads = files->each, .name = what->in, .began = gf_now()};
    held->once = !gf_see(what->in).regular;
    if (held->once) {
        gf_held_make_large(all, held);
        return;
    }
    const gf_file_options options = gf_files_options(files, item);
    const gf_status status =
        gf_task_open_inputs(&held->task, files->settings, &what->in, &options, &error);
    if (status) {
        tell(all, held, status, &error);
        return;
    }
    held->in_format = held->task.plan->in;
    held->out_format = held->task.plan->out;
    gf_held_hand_on(all, &all->opened, held);
}

static uint64_t room_for(const gf_held *held) {
    return gf_files_bytes(&held->in_format, &held->out_format);
}

/* What is verified goes alone: which file was wrong could not be told of many together. */
static bool is_small(const gf_device_files *all, const gf_held *held) {
    const uint64_t bytes = room_for(held);
    return !all->files->options.engine.verify && bytes <= GF_FILES_SMALL &&
           bytes <= all->most_bytes;
}

static size_t image_bytes(const gf_format *format) {
    return (size_t)format->height * gf_row_bytes(format);
}

/* Its bytes are counted already. */
static void decode(gf_device_files *all, gf_held *held) {
    gf_task *task = &held->task;
    const gf_format *format = &held->in_format;
    gf_error error = {0};
    held->in = gf_aligned_alloc(1, image_bytes(format));
    if (held->out_format.width)
        held->out = gf_aligned_alloc(1, image_bytes(&held->out_format));
    if (!held->in || (held->out_format.width && !held->out)) {
        gf_held_make_large(all, held); /* that takes less memory */
        return;
    }
    const double start = gf_now();
    gf_source *source = task->source;
    gf_status status =
        source->ops->read(source, held->in, gf_row_bytes(format), format->height, &error);
    if (!status)
        status = source->ops->finish(source, &error);
    if (!status)
        status = gf_task_check_metadata(task, &error);
    held->report.busy[GF_DECODING] = gf_source_busy(source, gf_now() - start);
    held->report.in_bytes = source->bytes;
    held->report.dropped =
        all->files->options.files.strip || !held->out_format.width ? 0 : source->dropped;
    if (status) {
        tell(all, held, status, &error);
        return;
    }
    if (task->metadata) {
        held->metadata = source->metadata;
        gf_metadata_init(&source->metadata);
    }
    const double began = task->began;
    gf_task_end(task);
    *task = (gf_task){.began = began};
    gf_held_hand_on(all, &all->waiting, held);
}

static gf_status write_image(const gf_files *files, gf_held *held, const gf_file_options *options,
                             gf_error *error) {
    const gf_format *format = &held->out_format;
    const char *path = files->items[held->item].out;
    const double start = gf_now();
    gf_sink *sink;
    gf_status status =
        gf_sink_open(path, format, &held->metadata, options, files->each, &sink, error);
    if (status)
        return status;
    status = sink->ops->write(sink, held->out, gf_row_bytes(format), format->height, error);
    if (!status)
        status = sink->ops->finish(sink, &held->metadata, error);
    held->report.busy[GF_ENCODING] = gf_sink_busy(sink, gf_now() - start);
    if (!status)
        held->report.out_bytes = gf_output_bytes(sink->output);
    held->report.counts_clipped = sink->counts_clipped;
    held->report.clipped = sink->clipped;
    if (!status && options->ready) {
        const gf_ready ready = {
            .item = held->item, .file = gf_output_reach(sink->output), .report = &held->report};
        status = options->ready(options->ready_context, &ready, error);
    }
    if (!status)
        status = sink->ops->place(sink, error);
    sink->ops->close(sink);
    return status;
}

static void encode(gf_device_files *all, gf_held *held) {
    const gf_file_options options = gf_files_options(all->files, held->item);
    gf_error error = {0};
    gf_status status = GF_OK;
    if (held->out_format.width)
        status = write_image(all->files, held, &options, &error);
    else if (options.ready)
        status = options.ready(
            options.ready_context,
            &(gf_ready){.item = held->item, .result = held->result, .report = &held->report},
            &error);
    tell(all, held, status, &error);
}

/* Of items that others could take, no more large ones than there may be engines: it shows what an
 * image is only when it is begun. Who asks for one may have to wait, and keeps no others from
 * asking later. */
static bool may_begin(const gf_device_files *all) {
    const uint32_t most = all->enough ? all->engines : all->most_engines;
    return gf_files_may_begin(all->files) &&
           (!all->files->options.take ||
            (!all->asking && all->fresh + all->large.count + all->at_large < most));
}

/* Begins an image, if there is one; called under the lock, and left without it. */
static void begin(gf_device_files *all) {
    gf_files *files = all->files;
    uint64_t item;
    all->asking = true;
    all->fresh++;
    const bool begun = gf_files_begin(files, &item);
    all->asking = false;
    all->fresh -= !begun;
    if (files->options.take)
        pthread_cond_broadcast(&files->moved);
    pthread_mutex_unlock(&files->lock);
    if (begun)
        open_image(all, item);
}

/* What is done goes first, it makes room; then what is open. Nothing appears before it may be told.
 */
static bool work_once(gf_device_files *all) {
    gf_files *files = all->files;
    gf_held *held = all->opened.first;
    if (all->finished.first && all->starting == 0) {
        held = gf_held_take_out(&all->finished, &all->finished.first);
        pthread_mutex_unlock(&files->lock);
        encode(all, held);
    } else if (held && !is_small(all, held)) {
        gf_held_take_out(&all->opened, &all->opened.first);
        pthread_mutex_unlock(&files->lock);
        gf_held_make_large(all, held);
    } else if (held && (all->held == 0 || (all->held < HELD_IMAGES &&
                                           all->held_bytes + room_for(held) <= all->most_bytes))) {
        gf_held_take_out(&all->opened, &all->opened.first);
        gf_held_take_room(all, held, room_for(held));
        if (files->options.take)
            pthread_cond_broadcast(&files->moved);
        pthread_mutex_unlock(&files->lock);
        decode(all, held);
    } else if (!held && may_begin(all)) {
        begin(all);
    } else {
        return false;
    }
    pthread_mutex_lock(&files->lock);
    return true;
}

void gf_code_images(gf_device_files *all) {
    gf_files *files = all->files;
    pthread_mutex_lock(&files->lock);
    while (!gf_files_over(files))
        if (!work_once(all))
            pthread_cond_wait(&files->moved, &files->lock);
    pthread_cond_broadcast(&files->moved);
    pthread_mutex_unlock(&files->lock);
}
