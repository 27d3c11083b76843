/* The devices' part of a batch: each is driven by a thread, which runs small images of one format
 * that wait together, and large ones from file to file. So that one large image is read while
 * another is computed and a third is written, other threads drive more engines of the device. */
#include "engine/batch_drive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"

#define GROUP_BYTES (UINT64_C(128) << 20) /* of images that go through a device together */

static bool any_backend(const gf_device_files *all) {
    const char *name = all->files->options.engine.backend;
    return !name || strcmp(name, "auto") == 0;
}

/* Did the device fail, which only another one may replace? */
static bool is_lost(const gf_engine *engine) {
    return engine->lost && !engine->replaceable;
}

/* Before anybody can tell of what it left. */
static void note_loss(gf_device_files *all, const gf_engine *engine) {
    if (engine->lost)
        gf_files_note_loss(all->files, &engine->loss);
}

/* From file to file. An engine whose device fails, or a further one that finds no room beside the
 * others, returns the image: for one of these, if it can be read again. */
static gf_held *run_alone(gf_device_files *all, gf_engine *engine, bool further, gf_held *held) {
    gf_leave leave = further ? GF_LEAVE_UNBEGUN : GF_LEAVE_LOST;
    gf_held_shed(all, held);
    if (held->once)
        leave = GF_LEAVE_NOTHING;
    engine->leaves = leave == GF_LEAVE_UNBEGUN;
    const bool left =
        gf_held_may_tell(all) && !gf_files_run_one(all->files, engine, held->item, leave);
    if (left || is_lost(engine))
        note_loss(all, engine);
    if (left)
        return held;
    gf_held_release(all, held);
    return NULL;
}

/* The first of those that wait; called and left under the lock. Returns it if another engine is to
 * do it. */
static gf_held *run_large(gf_device_files *all, gf_engine *engine, bool further) {
    pthread_mutex_t *lock = &all->files->lock;
    gf_held *held = gf_held_take_out(&all->large, &all->large.first);
    all->at_large++;
    pthread_mutex_unlock(lock);
    held = run_alone(all, engine, further, held);
    pthread_mutex_lock(lock);
    all->at_large--;
    if (all->files->options.take)
        pthread_cond_broadcast(&all->files->moved); /* another may be taken */
    return held;
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
    own.in_bytes = held->report.in_bytes;
    own.dropped = held->report.dropped;
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

/* If together they fail, each is run by itself, and tells its own reason. What a failed device
 * leaves is put back. */
static void run_group(gf_device_files *all, gf_engine *engine, gf_held *group, size_t count) {
    const gf_status status = run_together(all->files, engine, group, count);
    if (status && is_lost(engine)) {
        note_loss(all, engine);
        pthread_mutex_lock(&all->files->lock);
        gf_held_put_back(&all->waiting, group);
        pthread_mutex_unlock(&all->files->lock);
        return;
    }
    for (gf_held *held = group, *next; held; held = next) {
        next = held->next;
        held->next = NULL;
        if (!status) {
            gf_held_hand_on(all, &all->finished, held);
            continue;
        }
        gf_held *left = run_alone(all, engine, false, held);
        if (left)
            gf_held_hand_on(all, &all->large, left);
    }
}

/* Until all is over, or the device is. */
static void serve(gf_device_files *all, gf_engine *engine) {
    gf_files *files = all->files;
    pthread_mutex_lock(&files->lock);
    while (!gf_files_over(files) && !is_lost(engine)) {
        if (all->waiting.first) {
            size_t count;
            gf_held *group = take_group(all, &count);
            pthread_mutex_unlock(&files->lock);
            run_group(all, engine, group, count);
            pthread_mutex_lock(&files->lock);
        } else if (all->large.first) {
            gf_held *left = run_large(all, engine, false);
            if (left)
                gf_held_put_back(&all->large, left);
        } else {
            pthread_cond_wait(&files->moved, &files->lock);
        }
    }
    pthread_cond_broadcast(&files->moved);
    pthread_mutex_unlock(&files->lock);
}

/* Of every engine of the thread's device. */
static gf_engine_options device_options(const gf_device_thread *thread) {
    gf_engine_options options = thread->all->files->options.engine;
    options.devices = thread->device[0] ? thread->device : NULL;
    options.threads = thread->all->each;
    if (any_backend(thread->all))
        options.backend = "cuda";
    return options;
}

/* The device failed: others do what is left, unless it was the last. */
static void lose_device(gf_device_files *all, const gf_error *loss) {
    gf_files *files = all->files;
    pthread_mutex_lock(&files->lock);
    const bool last = --all->driven == 0 && !gf_files_over(files);
    all->engines--;
    all->enough = true;
    pthread_cond_broadcast(&files->moved);
    pthread_mutex_unlock(&files->lock);
    if (last)
        gf_files_give_up(files, loss->status, loss);
}

void *gf_drive_device(void *argument) {
    const gf_device_thread *thread = argument;
    gf_device_files *all = thread->all;
    gf_files *files = all->files;
    gf_engine_options options = device_options(thread);
    gf_engine *engine = NULL;
    bool instead = false;
    gf_error error = {0};
    gf_status status = gf_engine_open(&options, &engine, &error);
    if (status && any_backend(all)) {
        pthread_mutex_lock(&files->telling); /* reports quote the reason */
        snprintf(files->reason, sizeof files->reason, "%.*s", (int)sizeof files->reason - 1,
                 error.message);
        pthread_mutex_unlock(&files->telling);
        options.backend = "cpu";
        options.devices = NULL;
        options.threads = files->threads;
        instead = true;
        status = gf_engine_open(&options, &engine, &error);
    }
    if (status) {
        gf_files_give_up(files, status, &error);
    } else {
        pthread_mutex_lock(&files->lock);
        all->starting--;
        all->enough = all->enough || instead;
        pthread_cond_broadcast(&files->moved);
        pthread_cond_broadcast(&all->lacking);
        pthread_mutex_unlock(&files->lock);
        engine->replaceable = any_backend(all);
        serve(all, engine);
        if (is_lost(engine))
            lose_device(all, &engine->loss);
    }
    gf_engine_close(engine);
    return NULL;
}

void *gf_drive_further(void *argument) {
    const gf_device_thread *thread = argument;
    gf_device_files *all = thread->all;
    gf_files *files = all->files;
    const gf_engine_options options = device_options(thread);
    gf_engine *engine = NULL;
    pthread_mutex_lock(&files->lock);
    while (!gf_files_over(files) && !gf_held_lacks_engines(all))
        pthread_cond_wait(&all->lacking, &files->lock);
    const bool wanted = !gf_files_over(files);
    all->engines += wanted;
    pthread_mutex_unlock(&files->lock);
    const bool opened = wanted && gf_engine_open(&options, &engine, NULL) == GF_OK;
    if (opened)
        engine->replaceable = any_backend(all);
    gf_held *left = NULL;
    pthread_mutex_lock(&files->lock);
    while (opened && !left && !is_lost(engine) && !gf_files_over(files)) {
        if (all->large.first)
            left = run_large(all, engine, true);
        else
            pthread_cond_wait(&files->moved, &files->lock);
    }
    if (wanted && (!opened || left || is_lost(engine))) {
        all->engines--;
        all->enough = true;
    }
    pthread_mutex_unlock(&files->lock);
    gf_engine_close(engine); /* first: there is room for another then */
    if (left)
        gf_held_hand_on(all, &all->large, left);
    return NULL;
}
