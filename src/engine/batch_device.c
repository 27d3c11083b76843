/* All threads of a batch on devices: those that drive engines, and those that code for them. */
#include "engine/batch_device.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/batch_code.h"
#include "engine/batch_drive.h"
#include "error.h"
#include "thread.h"

#define HELD_BYTES (UINT64_C(1) << 30) /* of all images held for the devices */

static void *code_images(void *argument) {
    gf_code_images(((const gf_device_thread *)argument)->all);
    return NULL;
}

static void drop_all(gf_device_files *all) {
    gf_queue *queues[] = {&all->opened, &all->waiting, &all->large, &all->finished};
    for (size_t i = 0; i < sizeof queues / sizeof queues[0]; i++)
        while (queues[i]->first)
            gf_held_release(all, gf_held_take_out(queues[i], &queues[i]->first));
}

/* Starts `count` threads; returns how many could be, and in *failed why no more. */
static uint32_t start_threads(gf_device_thread *threads, uint32_t count, void *(*run)(void *),
                              int *failed) {
    uint32_t started = 0;
    *failed = 0;
    while (started < count && !*failed) {
        *failed = gf_thread_start(&threads[started].thread, run, &threads[started]);
        started += *failed == 0;
    }
    return started;
}

static void join_threads(gf_device_thread *threads, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        pthread_join(threads[i].thread, NULL);
}

/* Each device has a driver, which must start; of the others, which come behind them, there may be
 * fewer. */
static void run_threads(gf_device_files *all, const gf_files_devices *devices, uint32_t further,
                        uint32_t coders, gf_device_thread *threads) {
    gf_files *files = all->files;
    const uint32_t drivers = devices->count;
    gf_device_thread *coding = threads + drivers, *more = coding + coders;
    gf_error error = {0};
    int failed, ignored;
    assert(drivers > 0);
    for (uint32_t i = 0; i < drivers + coders + further; i++)
        threads[i].all = all;
    for (uint32_t i = 0; i < drivers; i++)
        threads[i].device = devices->names[i];
    for (uint32_t i = 0; i < further; i++)
        more[i].device = devices->names[i % drivers];
    const uint32_t driving = start_threads(threads, drivers, gf_drive_device, &failed);
    if (failed)
        gf_files_give_up(files,
                         gf_fail(&error, GF_FAILED, "%s: cannot start a thread: %s",
                                 files->filter->info.name, strerror(failed)),
                         &error);
    coders = start_threads(coding, coders, code_images, &ignored);
    further = start_threads(more, further, gf_drive_further, &ignored);
    gf_code_images(all); /* the calling thread does its share, until all is over */
    pthread_mutex_lock(&files->lock);
    pthread_cond_broadcast(&all->lacking);
    pthread_mutex_unlock(&files->lock);
    join_threads(threads, driving);
    join_threads(coding, coders);
    join_threads(more, further);
}

void gf_files_run_on_devices(gf_files *files, const gf_files_devices *devices) {
    gf_device_files all = {.files = files,
                           .most_bytes = files->options.engine.max_memory,
                           .starting = devices->count,
                           .driven = devices->count,
                           .engines = devices->count};
    gf_queue *queues[] = {&all.opened, &all.waiting, &all.large, &all.finished};
    for (size_t i = 0; i < sizeof queues / sizeof queues[0]; i++)
        queues[i]->last = &queues[i]->first;
    if (all.most_bytes == 0 || all.most_bytes > HELD_BYTES)
        all.most_bytes = HELD_BYTES;
    /* One may wait for an item while the others code. */
    const uint32_t coders = files->at_once - (files->options.take ? 0 : 1);
    const uint32_t engines = devices->count * gf_files_engines(files, devices->count);
    const uint64_t expected = gf_files_expected(files);
    const uint32_t at_once = expected < engines ? (uint32_t)expected : engines;
    const uint32_t further = at_once > devices->count ? at_once - devices->count : 0;
    all.most_engines = devices->count + further;
    all.each = (files->threads + at_once - 1) / at_once;
    const size_t count = (size_t)devices->count + further + coders;
    gf_device_thread *threads = calloc(count, sizeof *threads);
    if (!threads) {
        gf_error error = {0};
        gf_files_give_up(
            files,
            gf_fail_memory(&error, files->filter->info.name, count * sizeof *threads, "threads"),
            &error);
        return;
    }
    pthread_cond_init(&all.lacking, NULL);
    run_threads(&all, devices, further, coders, threads);
    pthread_cond_destroy(&all.lacking);
    drop_all(&all);
    free(threads);
}
