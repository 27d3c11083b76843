/* The devices' part of a batch: each is driven by a thread, which runs small images of one format
 * that wait together, and large ones from file to file. */
#include <stdlib.h>
#include <string.h>

#include "engine/batch_held.h"
#include "engine/thread.h"
#include "error.h"

#define HELD_BYTES (UINT64_C(1) << 30)    /* of all images held for the devices */
#define GROUP_BYTES (UINT64_C(128) << 20) /* of images that go through a device together */

/* One of the threads. */
typedef struct gf_device_thread {
    gf_device_files *all;
    const char *device; /* NULL: it decodes and encodes */
    pthread_t thread;
} gf_device_thread;

static void run_large(gf_device_files *all, gf_engine *engine, gf_held *held) {
    const uint64_t item = held->item;
    gf_held_release(all, held);
    if (gf_held_may_tell(all))
        gf_files_run_one(all->files, engine, item);
}

/* ---- on a device ----------------------------------------------------------------------------- */

/* The first that waits and those like it, as a list; under the lock. */
static gf_held *take_group(gf_device_files *all, size_t *count) {
    gf_held *first = gf_held_take_out(&all->waiting, &all->waiting.first), **last = &first->next;
    uint64_t bytes = first->bytes;
    *count = 1;
    for (gf_held **at = &all->waiting.first; *at;) {
        if (!gf_format_equal(&(*at)->in_format, &first->in_format) ||
            bytes + (*at)->bytes > GROUP_BYTES) {
            at = &(*at)->next;
            continue;
        }
        bytes += (*at)->bytes;
        *last = gf_held_take_out(&all->waiting, at);
        last = &(*last)->next;
        ++*count;
    }
    return first;
}

/* What each image had of the time that all took. */
static void share_report(gf_held *held, const gf_report *report, size_t count) {
    gf_report own = *report;
    for (int i = 0; i < GF_STAGE_COUNT; i++)
        own.busy[i].seconds /= (double)count;
    own.busy[GF_DECODING] = held->report.busy[GF_DECODING];
    own.busy[GF_ENCODING] = (gf_busy){0};
    own.start_seconds /= (double)count;
    held->report = own;
}

static gf_status run_together(gf_files *files, gf_engine *engine, gf_held *group, size_t count) {
    gf_pixels *in = calloc(count, sizeof *in);
    gf_out_pixels *out = calloc(count, sizeof *out);
    gf_result **results =
        calloc(count, sizeof *results); /* NOLINT(bugprone-sizeof-expression): pointers */
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
            gf_held_hand_on(all, &all->finished, held);
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
            gf_held *held = gf_held_take_out(&all->large, &all->large.first);
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

static void *code_images(void *argument) {
    gf_held_code_images(((const gf_device_thread *)argument)->all);
    return NULL;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void drop_all(gf_device_files *all) {
    gf_queue *queues[] = {&all->opened, &all->waiting, &all->large, &all->finished};
    for (size_t i = 0; i < sizeof queues / sizeof queues[0]; i++)
        while (queues[i]->first)
            gf_held_release(all, gf_held_take_out(queues[i], &queues[i]->first));
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
    gf_held_code_images(&all); /* the calling thread does its share */
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i].thread, NULL);
    drop_all(&all);
    free(threads);
}
