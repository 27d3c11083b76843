/* Many files on devices: threads decode small images into memory, a thread for each device runs
 * those of one format that wait together, and the threads encode what comes back. */
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "engine/batch_files.h"
#include "engine/task.h"
#include "engine/thread.h"
#include "error.h"
#include "io/metadata.h"

#define HELD_BYTES (UINT64_C(1) << 30)    /* of all images held for the devices */
#define HELD_IMAGES UINT64_C(4096)        /* and how many, however small */
#define GROUP_BYTES (UINT64_C(128) << 20) /* of images that go through a device together */

/* An image on its way. */
typedef struct gf_held {
    struct gf_held *next;
    uint64_t item;
    gf_task task; /* its source, until it is decoded */
    gf_format in_format, out_format;
    void *in, *out;
    uint64_t bytes; /* of both */
    gf_metadata metadata;
    gf_result *result;
    gf_report report;
} gf_held;

typedef struct gf_queue {
    gf_held *first, **last;
} gf_queue;

typedef struct gf_device_files {
    gf_files *files;
    gf_queue opened;   /* to be decoded, as soon as there is room */
    gf_queue waiting;  /* for a device */
    gf_queue large;    /* for a device, from file to file */
    gf_queue finished; /* to be encoded */
    uint64_t held, held_bytes, most_bytes;
    uint32_t starting; /* devices that have not started */
} gf_device_files;

/* One of the threads. */
typedef struct gf_device_thread {
    gf_device_files *all;
    const char *device; /* NULL: it decodes and encodes */
    pthread_t thread;
} gf_device_thread;

/* ---- queues: all under the lock -------------------------------------------------------------- */

static void put(gf_queue *queue, gf_held *held) {
    held->next = NULL;
    *queue->last = held;
    queue->last = &held->next;
}

static gf_held *take_out(gf_queue *queue, gf_held **at) {
    gf_held *held = *at;
    *at = held->next;
    if (!*at)
        queue->last = at;
    held->next = NULL;
    return held;
}

/* ---- an image -------------------------------------------------------------------------------- */

static void hand_on(gf_device_files *all, gf_queue *queue, gf_held *held) {
    pthread_mutex_lock(&all->files->lock);
    put(queue, held);
    pthread_cond_broadcast(&all->files->moved);
    pthread_mutex_unlock(&all->files->lock);
}

static void let_go_of_pixels(gf_device_files *all, gf_held *held) {
    free(held->in);
    free(held->out);
    held->in = held->out = NULL;
    pthread_mutex_lock(&all->files->lock);
    all->held_bytes -= held->bytes;
    all->held -= held->bytes > 0;
    pthread_mutex_unlock(&all->files->lock);
    held->bytes = 0;
}

static void release(gf_device_files *all, gf_held *held) {
    gf_task_end(&held->task);
    let_go_of_pixels(all, held);
    gf_metadata_clear(&held->metadata);
    gf_result_free(held->result);
    free(held);
}

/* Before all devices have started nothing is told: one that cannot ends the batch, as if it had not
 * begun. */
static bool has_started(gf_device_files *all) {
    gf_files *files = all->files;
    pthread_mutex_lock(&files->lock);
    while (all->starting && !files->status)
        pthread_cond_wait(&files->moved, &files->lock);
    const bool started = !files->status;
    pthread_mutex_unlock(&files->lock);
    return started;
}

/* It is over. */
static void tell(gf_device_files *all, gf_held *held, gf_status status, const gf_error *error) {
    gf_result *result = held->result;
    held->result = NULL;
    held->report.total_seconds = gf_now() - held->task.began;
    gf_report report = held->report;
    const uint64_t item = held->item;
    release(all, held);
    if (has_started(all))
        gf_files_tell(all->files, item, status, error, &report, result);
    else
        gf_result_free(result);
}

/* From file to file, once this device has time. */
static void make_large(gf_device_files *all, gf_held *held) {
    gf_task_end(&held->task);
    held->task = (gf_task){0};
    let_go_of_pixels(all, held);
    hand_on(all, &all->large, held);
}

static void run_large(gf_device_files *all, gf_engine *engine, gf_held *held) {
    const uint64_t item = held->item;
    release(all, held);
    if (has_started(all))
        gf_files_run_one(all->files, engine, item);
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
        if (has_started(all))
            gf_files_tell(files, item, status, &error, &report, NULL);
        return;
    }
    held->item = item;
    gf_metadata_init(&held->metadata);
    held->task = (gf_task){.filter = files->filter, .name = what->in, .began = gf_now()};
    if (!gf_see(what->in).regular) {
        make_large(all, held);
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
    hand_on(all, &all->opened, held);
}

/* Bytes of the image before and after. */
static uint64_t image_bytes(const gf_format *format) {
    return format->width ? format->height * gf_row_bytes(format) : 0;
}

static uint64_t room_for(const gf_held *held) {
    return image_bytes(&held->in_format) + image_bytes(&held->out_format);
}

static bool is_small(const gf_device_files *all, const gf_held *held) {
    const uint64_t bytes = room_for(held);
    return bytes <= GF_FILES_SMALL && bytes <= all->most_bytes;
}

/* Its bytes are counted already. */
static void decode(gf_device_files *all, gf_held *held) {
    gf_task *task = &held->task;
    const gf_format *format = &held->in_format;
    gf_error error = {0};
    held->in = malloc((size_t)image_bytes(format));
    if (held->out_format.width)
        held->out = malloc((size_t)image_bytes(&held->out_format));
    if (!held->in || (held->out_format.width && !held->out)) {
        make_large(all, held); /* that takes less memory */
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
    held->report.decode_seconds = gf_now() - start;
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
    hand_on(all, &all->waiting, held);
}

static gf_status write_image(const gf_held *held, const char *path, const gf_file_options *options,
                             gf_error *error) {
    const gf_format *format = &held->out_format;
    gf_sink *sink;
    gf_status status = gf_sink_open(path, format, &held->metadata, options, &sink, error);
    if (status)
        return status;
    status = sink->ops->write(sink, held->out, gf_row_bytes(format), format->height, error);
    if (!status)
        status = sink->ops->finish(sink, &held->metadata, error);
    if (!status && options->ready)
        status = options->ready(options->ready_context, NULL, error);
    if (!status)
        status = sink->ops->place(sink, error);
    sink->ops->close(sink);
    return status;
}

static void encode(gf_device_files *all, gf_held *held) {
    const gf_file_options options = gf_files_options(all->files, held->item);
    gf_error error = {0};
    gf_status status = GF_OK;
    const double start = gf_now();
    if (held->out_format.width)
        status = write_image(held, all->files->items[held->item].out, &options, &error);
    else if (options.ready)
        status = options.ready(options.ready_context, held->result, &error);
    held->report.encode_seconds = gf_now() - start;
    tell(all, held, status, &error);
}

/* What is done goes first, it makes room; then what is open. */
static bool work_once(gf_device_files *all) {
    gf_files *files = all->files;
    gf_held *held = all->opened.first;
    if (all->finished.first) {
        held = take_out(&all->finished, &all->finished.first);
        pthread_mutex_unlock(&files->lock);
        encode(all, held);
    } else if (held && !is_small(all, held)) {
        take_out(&all->opened, &all->opened.first);
        pthread_mutex_unlock(&files->lock);
        make_large(all, held);
    } else if (held && (all->held == 0 || (all->held < HELD_IMAGES &&
                                           all->held_bytes + room_for(held) <= all->most_bytes))) {
        take_out(&all->opened, &all->opened.first);
        held->bytes = room_for(held);
        all->held_bytes += held->bytes;
        all->held++;
        pthread_mutex_unlock(&files->lock);
        decode(all, held);
    } else if (!held && gf_files_may_begin(files)) {
        const uint64_t item = gf_files_begin(files);
        pthread_mutex_unlock(&files->lock);
        open_image(all, item);
    } else {
        return false;
    }
    pthread_mutex_lock(&files->lock);
    return true;
}

static void *code_images(void *argument) {
    gf_device_files *all = ((gf_device_thread *)argument)->all;
    gf_files *files = all->files;
    pthread_mutex_lock(&files->lock);
    while (!gf_files_over(files))
        if (!work_once(all))
            pthread_cond_wait(&files->moved, &files->lock);
    pthread_cond_broadcast(&files->moved);
    pthread_mutex_unlock(&files->lock);
    return NULL;
}

/* ---- on a device ----------------------------------------------------------------------------- */

/* The first that waits and those like it, as a list; under the lock. */
static gf_held *take_group(gf_device_files *all, size_t *count) {
    gf_held *first = take_out(&all->waiting, &all->waiting.first), **last = &first->next;
    uint64_t bytes = first->bytes;
    *count = 1;
    for (gf_held **at = &all->waiting.first; *at;) {
        if (!gf_format_equal(&(*at)->in_format, &first->in_format) ||
            bytes + (*at)->bytes > GROUP_BYTES) {
            at = &(*at)->next;
            continue;
        }
        bytes += (*at)->bytes;
        *last = take_out(&all->waiting, at);
        last = &(*last)->next;
        ++*count;
    }
    return first;
}

/* What each image had of the time that all took. */
static void share_report(gf_held *held, const gf_report *report, size_t count) {
    gf_report own = *report;
    own.decode_seconds = held->report.decode_seconds;
    own.compute_seconds /= (double)count;
    own.encode_seconds = 0;
    own.start_seconds /= (double)count;
    held->report = own;
}

static gf_status run_together(gf_files *files, gf_engine *engine, gf_held *group, size_t count) {
    gf_pixels *in = calloc(count, sizeof *in);
    gf_out_pixels *out = calloc(count, sizeof *out);
    gf_result **results = calloc(count, sizeof *results);
    gf_status status = in && out && results ? GF_OK : GF_FAILED;
    size_t i = 0;
    for (gf_held *held = group; held && !status; held = held->next, i++) {
        in[i] = (gf_pixels){held->in, gf_row_bytes(&held->in_format)};
        if (held->out)
            out[i] = (gf_out_pixels){held->out, gf_row_bytes(&held->out_format)};
    }
    gf_report report;
    if (!status)
        status = gf_run_memory_batch(engine, files->filter, files->settings, &group->in_format,
                                     count, in, group->out ? out : NULL, results, &report, NULL);
    i = 0;
    for (gf_held *held = group; held && !status; held = held->next, i++) {
        held->result = results[i];
        share_report(held, &report, count);
    }
    free(in);
    free(out);
    free(results);
    return status;
}

/* If together they fail, each is run by itself, and tells its own reason. */
static void run_group(gf_device_files *all, gf_engine *engine, gf_held *group, size_t count) {
    const gf_status status = run_together(all->files, engine, group, count);
    for (gf_held *held = group, *next; held; held = next) {
        next = held->next;
        if (status)
            run_large(all, engine, held);
        else
            hand_on(all, &all->finished, held);
    }
}

static void serve(gf_device_files *all, gf_engine *engine) {
    gf_files *files = all->files;
    pthread_mutex_lock(&files->lock);
    while (!gf_files_over(files)) {
        if (all->waiting.first) {
            size_t count;
            gf_held *group = take_group(all, &count);
            pthread_mutex_unlock(&files->lock);
            run_group(all, engine, group, count);
        } else if (all->large.first) {
            gf_held *held = take_out(&all->large, &all->large.first);
            pthread_mutex_unlock(&files->lock);
            run_large(all, engine, held);
        } else {
            pthread_cond_wait(&files->moved, &files->lock);
            continue;
        }
        pthread_mutex_lock(&files->lock);
    }
    pthread_cond_broadcast(&files->moved);
    pthread_mutex_unlock(&files->lock);
}

/* A device is started while the first images are decoded. */
static void *drive_device(void *argument) {
    const gf_device_thread *thread = argument;
    gf_files *files = thread->all->files;
    gf_engine_options options = files->options.engine;
    const bool any = !options.backend || strcmp(options.backend, "auto") == 0;
    options.devices = thread->device[0] ? thread->device : NULL;
    if (any)
        options.backend = "cuda";
    gf_engine *engine = NULL;
    gf_error error = {0};
    gf_status status = gf_engine_open(&options, &engine, &error);
    if (status && any) {
        pthread_mutex_lock(&files->telling); /* reports quote the reason */
        memcpy(files->reason, error.message, sizeof files->reason - 1);
        pthread_mutex_unlock(&files->telling);
        options.backend = "cpu";
        options.devices = NULL;
        status = gf_engine_open(&options, &engine, &error);
    }
    if (status) {
        gf_files_give_up(files, status, &error);
    } else {
        pthread_mutex_lock(&files->lock);
        thread->all->starting--;
        pthread_cond_broadcast(&files->moved);
        pthread_mutex_unlock(&files->lock);
        serve(thread->all, engine);
    }
    gf_engine_close(engine);
    return NULL;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void drop_all(gf_device_files *all) {
    gf_queue *queues[] = {&all->opened, &all->waiting, &all->large, &all->finished};
    for (size_t i = 0; i < sizeof queues / sizeof queues[0]; i++)
        while (queues[i]->first)
            release(all, take_out(queues[i], &queues[i]->first));
}

void gf_files_run_on_devices(gf_files *files, const gf_files_devices *devices) {
    gf_device_files all = {
        .files = files, .most_bytes = files->options.engine.max_memory, .starting = devices->count};
    gf_queue *queues[] = {&all.opened, &all.waiting, &all.large, &all.finished};
    for (size_t i = 0; i < sizeof queues / sizeof queues[0]; i++)
        queues[i]->last = &queues[i]->first;
    if (all.most_bytes == 0 || all.most_bytes > HELD_BYTES)
        all.most_bytes = HELD_BYTES;
    const uint32_t coders = files->count < files->threads ? (uint32_t)files->count : files->threads;
    gf_error error = {0};
    gf_device_thread *threads = calloc(devices->count + coders, sizeof *threads);
    if (!threads) {
        gf_files_give_up(
            files, gf_fail_memory(&error, files->filter->info.name, sizeof *threads, "threads"),
            &error);
        return;
    }
    uint32_t started = 0;
    for (; started < devices->count + coders - 1; started++) {
        gf_device_thread *thread = &threads[started];
        const bool drives = started < devices->count;
        thread->all = &all;
        thread->device = drives ? devices->names[started] : NULL;
        const int failed =
            gf_thread_start(&thread->thread, drives ? drive_device : code_images, thread);
        if (failed && drives)
            gf_files_give_up(files,
                             gf_fail(&error, GF_FAILED, "%s: cannot start a thread: %s",
                                     files->filter->info.name, strerror(failed)),
                             &error);
        if (failed)
            break;
    }
    code_images(&(gf_device_thread){.all = &all}); /* the calling thread does its share */
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i].thread, NULL);
    drop_all(&all);
    free(threads);
}
