/* Threads of a batch of files. They perform steps of the scheduler, without the lock. */
#include "engine/batch/batch.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

#define MIN_AHEAD 64u /* minimum number of items in progress beyond an unreported one */
/* Device memory of all engines, as a share of the free memory; and that of an encoder and of the
 * images between the nodes of a job. */
#define MEMORY_SHARE 0.75
#define ENCODER_BYTES (UINT64_C(896) << 20)

typedef struct batch_run batch_run;

/* A thread. The fields belong to it, or during the steps of its group to coders. */
typedef struct batch_worker {
    batch_run *run;
    uint32_t number; /* in the schedule */
    pthread_t thread;
    pthread_cond_t wake;
    gf_engine *engine; /* of a CPU worker or driver; NULL: none */
    gf_buffer file;    /* of a coder: that is being uploaded */
    /* Driver: memory for PNG files, and why its engine failed. */
    gf_started on;
    void *stream;
    unsigned char *memory;
    gf_error error;
} batch_worker;

struct batch_run {
    const gf_file_batch *batch;
    const gf_batch_devices *devices;
    uint32_t threads_per_engine; /* of a driver, for its reader and its writer */
    pthread_mutex_t lock;        /* protects the fields below */
    gf_schedule schedule;
    gf_schedule_item *unused;     /* images that are reported, or not yet used */
    gf_error error;               /* why the batch ended early, if its status is not GF_OK */
    bool device_failed;           /* marks all later reports */
    char reason[GF_REASON_BYTES]; /* reason of auto, or failure of a device */
    gf_schedule_worker scheduled[GF_BATCH_MAX_WORKERS];
    gf_schedule_driver drivers[GF_BATCH_MAX_DRIVERS];
    batch_worker workers[GF_BATCH_MAX_WORKERS];
};

/* ---- the batch and its items ----------------------------------------------------------------- */

bool gf_batch_is_auto(const gf_file_batch *batch) {
    const char *name = batch->options.engine.backend;
    return !name || strcmp(name, "auto") == 0;
}

uint64_t gf_batch_expected(const gf_file_batch *batch) {
    const uint64_t expected = batch->source.take ? batch->source.expected : 0;
    return expected && expected < batch->count ? expected : batch->count;
}

uint32_t gf_batch_engines(const gf_file_batch *batch, uint32_t devices) {
    const uint32_t max = batch->threads / devices;
    return max ? (uint32_t)gf_min(max, GF_BATCH_MAX_ENGINES) : 1;
}

gf_chain gf_batch_chain(const gf_file_batch *batch, uint64_t item) {
    const gf_batch_item *files = &batch->items[item];
    gf_chain chain = batch->chain;
    chain.item = item;
    chain.in_paths[0] = files->in;
    for (uint32_t i = 0, writer = 0; i < chain.steps; i++)
        if (!chain.step[i].filter)
            chain.step[i].out_path = files->out ? files->out[writer++] : NULL;
    chain.options.force = chain.options.force || files->replace;
    return chain;
}

gf_status gf_batch_open_image(const gf_file_batch *batch, uint64_t item, gf_chain *chain,
                              gf_task *task, gf_error *error) {
    *chain = gf_batch_chain(batch, item);
    *task = (gf_task){.chain = chain, .threads = batch->threads_per_file};
    return gf_task_open_files(task, error);
}

/* End the batch early. The first error is kept. Called with the lock held. */
static void workers_abort(batch_run *run, const gf_error *error) {
    if (!run->error.status)
        run->error = *error;
    run->schedule.aborted = true;
    gf_schedule_dispatch(&run->schedule);
}

static void workers_note_failure(batch_worker *worker) {
    batch_run *run = worker->run;
    worker->error = worker->engine->cuda_error;
    pthread_mutex_lock(&run->lock);
    if (!run->device_failed)
        gf_engine_format_reason(run->reason, &worker->error);
    run->device_failed = true;
    pthread_mutex_unlock(&run->lock);
}

/* ---- steps with an item ---------------------------------------------------------------------- */

/* Free what an item holds until it is written. */
static void image_drop(gf_batch_image *image) {
    gf_task_end(&image->task);
    free(image->places);
    image->places = NULL;
}

/* Empty a reported or abandoned item, for another one. Called with the lock held. */
static void image_return(batch_run *run, gf_batch_image *image) {
    image_drop(image);
    gf_made_free_results(&image->made);
    *image = (gf_batch_image){.base.next = run->unused};
    run->unused = &image->base;
}

static gf_event worker_ask(batch_worker *worker, gf_batch_image *image) {
    const gf_file_batch *batch = worker->run->batch;
    uint64_t item = 0;
    const gf_take took = batch->source.take(batch->source.context, &item);
    if (took != GF_TAKEN)
        return took == GF_TAKE_NONE ? GF_IS_LOST : GF_IS_REFUSED;
    image->base.number = item;
    if (item < batch->count)
        return GF_IS_DONE;
    gf_error error;
    (void)gf_fail(&error, GF_USAGE, "%s: item %" PRIu64 " is out of range; the batch has %" PRIu64,
                  gf_chain_name(&batch->chain), item, batch->count);
    pthread_mutex_lock(&worker->run->lock);
    workers_abort(worker->run, &error);
    pthread_mutex_unlock(&worker->run->lock);
    return GF_IS_REFUSED;
}

/* Read a PNG file to host memory or to the buffer of the coder. Return where it is, or NULL. */
static unsigned char *worker_read(batch_worker *worker, gf_batch_image *image,
                                  const gf_buffer *host) {
    unsigned char *file = gf_batch_png_read(&image->task, host, &worker->file, &image->file.scan);
    image->base.parts = file ? gf_png_scan_parts(&image->file.scan) : 1;
    return file;
}

/* Open an image for a device. An input that can be read only once is not opened here. */
static gf_event worker_open(batch_worker *worker, gf_batch_image *image) {
    const gf_file_batch *batch = worker->run->batch;
    gf_schedule_item *item = &image->base;
    image->began = gf_now();
    if (gf_stat_file(batch->items[item->number].in).st_mode &&
        !gf_batch_open_image(batch, item->number, &image->chain, &image->task, NULL) &&
        gf_batch_png_is_candidate(batch, &image->task) &&
        gf_batch_png_bytes(&image->task) <= item->max_bytes &&
        (!item->several_parts ||
         (worker_read(worker, image, &(gf_buffer){NULL, 0}) && item->parts > 1))) {
        image->task.made = &image->made;
        item->format = image->task.inputs.format;
        item->bytes = gf_batch_png_bytes(&image->task);
        return GF_IS_DONE;
    }
    image_drop(image);
    return GF_IS_REFUSED;
}

/* Upload a PNG file. A damaged one is run on its own. */
static gf_event worker_upload(batch_worker *worker, gf_batch_image *image) {
    const batch_run *run = worker->run;
    const batch_worker *driver = &run->workers[run->schedule.coders + image->base.driver];
    const double began = gf_now();
    gf_buffer host = {NULL, 0};
    image->memory = driver->memory + image->base.offset;
    image->on = driver->on;
    const bool has_host = !image->on.backend->memory->take_host(image->on.state, &host, NULL);
    unsigned char *file = worker_read(worker, image, &host);
    const bool uploaded = file && has_host && !gf_batch_png_upload(image, file, &host);
    if (has_host)
        image->on.backend->memory->return_host(image->on.state, &host);
    gf_busy_add(&image->made.report.busy[GF_DECODING], (gf_busy){gf_now() - began, 1});
    if (!uploaded)
        image_drop(image);
    return uploaded ? GF_IS_DONE : GF_IS_REFUSED;
}

static gf_event worker_write(batch_worker *worker, gf_batch_image *image) {
    (void)worker;
    gf_task_report_input(&image->task);
    image->status = gf_batch_png_write(image, &image->error);
    image->made.report.total_seconds = gf_now() - image->began;
    image->base.failed = image->status;
    image_drop(image);
    return GF_IS_DONE;
}

/* Run an item from file to file. The engine is lost, and the files are unchanged, if its device has
 * failed, or if an additional engine has no memory for the item. */
static gf_event worker_run(batch_worker *worker, gf_batch_image *image) {
    const gf_file_batch *batch = worker->run->batch;
    const gf_chain chain = gf_batch_chain(batch, image->base.number);
    const gf_report *report = &image->made.report;
    const bool again = gf_stat_file(batch->items[image->base.number].in).st_mode;
    gf_engine *engine = worker->engine;
    if (engine->cuda_error.status) /* while it ran another item, which has ended */
        return GF_IS_LOST;
    image_drop(image);
    engine->may_defer =
        again && worker->number >= worker->run->schedule.coders + worker->run->devices->count;
    image->status = gf_run_files(engine, &chain, &image->made, &image->error);
    image->base.failed = image->status;
    if (engine->cuda_error.status)
        workers_note_failure(worker);
    /* a backend was chosen, but received no strip */
    const bool deferred =
        image->status && engine->may_defer && report->backend[0] && report->strips == 0;
    if (deferred && !engine->cuda_error.status)
        worker->error = image->error;
    return deferred || (again && engine->cuda_error.status && image->status == GF_NO_BACKEND)
               ? GF_IS_LOST
               : GF_IS_DONE;
}

/* Report a finished item. It is refused if the caller wants no more items to start. */
static gf_event worker_report(batch_worker *worker, gf_batch_image *image) {
    batch_run *run = worker->run;
    const gf_batch_options *options = &run->batch->options;
    gf_report *report = &image->made.report;
    pthread_mutex_lock(&run->lock);
    if (!report->reason[0] || (run->device_failed && !report->device_failed))
        memcpy(report->reason, run->reason, sizeof report->reason);
    report->device_failed = report->device_failed || run->device_failed;
    pthread_mutex_unlock(&run->lock);
    if (image->status)
        gf_made_free_results(&image->made);
    const gf_outcome made = gf_made_outcome(&image->made);
    const gf_batch_done done = {.item = image->base.number,
                                .status = image->status,
                                .error = image->status ? &image->error : NULL,
                                .outcome = &made};
    return !options->done || options->done(options->context, &done) ? GF_IS_DONE : GF_IS_REFUSED;
}

/* ---- steps of drivers ------------------------------------------------------------------------ */

/* Open the engine of a driver. It is refused if it does not run PNG files. */
static gf_event worker_open_engine(batch_worker *worker, gf_batch_image *image) {
    batch_run *run = worker->run;
    const gf_file_batch *batch = run->batch;
    const uint32_t driver = worker->number - run->schedule.coders;
    const bool is_auto = gf_batch_is_auto(batch), is_first = driver < run->devices->count;
    const char *device = run->devices->names[driver % run->devices->count];
    gf_engine_options options = batch->options.engine;
    options.devices = device[0] ? device : NULL;
    options.threads = run->threads_per_engine;
    (void)image;
    if (is_auto)
        options.backend = "cuda";
    if (gf_engine_open(&options, &worker->engine, &worker->error)) {
        pthread_mutex_lock(&run->lock);
        if (is_auto && is_first)
            snprintf(run->reason, sizeof run->reason, "%.*s", (int)sizeof run->reason - 1,
                     worker->error.message);
        pthread_mutex_unlock(&run->lock);
        return GF_IS_LOST;
    }
    worker->engine->may_fall_back = is_auto;
    if (!run->schedule.may_read_png || gf_engine_device(worker->engine, &worker->on, NULL) ||
        !worker->on.backend->memory)
        return GF_IS_REFUSED;
    const double share = MEMORY_SHARE * run->devices->count / run->schedule.driver_count;
    const double free_bytes =
        (double)worker->on.backend->memory->free_bytes(worker->on.state) * share;
    uint64_t bytes = free_bytes > (double)ENCODER_BYTES ? (uint64_t)free_bytes - ENCODER_BYTES : 0;
    /* For PNG files; the rest is for the filtered rows of the input image. */
    bytes = batch->chain.makes_image ? bytes / 3 * 2 : bytes / 2;
    pthread_mutex_lock(&run->lock);
    if (is_first)
        run->schedule.engine_bytes = gf_min(bytes, run->schedule.engine_bytes);
    pthread_mutex_unlock(&run->lock);
    return GF_IS_DONE;
}

static const gf_schedule_driver *worker_driver(const batch_worker *worker) {
    return &worker->run->drivers[worker->number - worker->run->schedule.coders];
}

static gf_event worker_allocate(batch_worker *worker, gf_batch_image *image) {
    const gf_schedule_driver *driver = worker_driver(worker);
    void *memory = NULL;
    gf_status status = worker->on.backend->memory->workspace(
        worker->on.state, (size_t)driver->wanted, &memory, &worker->stream, NULL);
    gf_batch_image first = {.memory = memory, .on = worker->on};
    (void)image;
    if (!status && driver->size == 0)
        status = gf_batch_png_warm_up(worker->run->batch, worker->engine, &driver->format, &first,
                                      worker->stream);
    worker->memory = memory;
    return status ? GF_IS_REFUSED : GF_IS_DONE;
}

/* Decode, or filter and encode, a group. After a failure, each file runs and fails on its own. */
static gf_event worker_compute(batch_worker *worker, gf_batch_image *image) {
    const gf_file_batch *batch = worker->run->batch;
    const gf_schedule_driver *driver = worker_driver(worker);
    gf_batch_image *group = (gf_batch_image *)driver->group;
    gf_error error = {0};
    (void)image;
    const gf_status status =
        driver->state == GF_DRIVER_DECODING
            ? gf_batch_png_decode(batch, driver->count, group, worker->stream, &error)
            : gf_batch_png_compute(batch, worker->engine, driver->count, group, worker->stream,
                                   &error);
    if (status != GF_NO_BACKEND)
        return status ? GF_IS_REFUSED : GF_IS_DONE;
    worker->engine->cuda_error = error;
    workers_note_failure(worker);
    return GF_IS_LOST;
}

static gf_event worker_close_engine(batch_worker *worker, gf_batch_image *image) {
    (void)image;
    gf_engine_close(worker->engine);
    worker->engine = NULL;
    return GF_IS_DONE;
}

/* ---- threads --------------------------------------------------------------------------------- */

/* Perform a step. Return a result for gf_schedule_done. */
static gf_event (*const steps[])(batch_worker *, gf_batch_image *) = {
    [GF_DO_ASK] = worker_ask,
    [GF_DO_OPEN] = worker_open,
    [GF_DO_UPLOAD] = worker_upload,
    [GF_DO_WRITE] = worker_write,
    [GF_DO_RUN] = worker_run,
    [GF_DO_REPORT] = worker_report,
    [GF_DO_OPEN_ENGINE] = worker_open_engine,
    [GF_DO_ALLOCATE] = worker_allocate,
    [GF_DO_DECODE] = worker_compute,
    [GF_DO_ENCODE] = worker_compute,
    [GF_DO_CLOSE_ENGINE] = worker_close_engine,
};

/* Allocate an image, or end the batch. Called with the lock held. */
static void images_add(batch_run *run) {
    gf_batch_image *image = calloc(1, sizeof *image);
    gf_error error;
    if (image) {
        image_return(run, image);
        return;
    }
    (void)gf_fail_memory(&error, gf_chain_name(&run->batch->chain), sizeof *image, "an image");
    workers_abort(run, &error);
}

/* Let a worker have an item that it may start. Called with the lock held. */
static void worker_prepare(batch_worker *worker) {
    batch_run *run = worker->run;
    gf_schedule_item **spare = &run->schedule.workers[worker->number].spare;
    if (!*spare && !run->unused)
        images_add(run);
    if (!*spare && (*spare = run->unused)) {
        run->unused = (*spare)->next;
        (*spare)->next = NULL;
    }
}

static void worker_wake(void *context, uint32_t worker) {
    pthread_cond_signal(&((batch_run *)context)->workers[worker].wake);
}

/* Perform steps until the batch is over. */
static void *worker_work(void *argument) {
    batch_worker *worker = argument;
    batch_run *run = worker->run;
    const gf_schedule_worker *own = &run->schedule.workers[worker->number];
    pthread_mutex_lock(&run->lock);
    while (own->step != GF_DO_END) {
        if (own->step == GF_DO_NOTHING) {
            pthread_cond_wait(&worker->wake, &run->lock);
            continue;
        }
        gf_batch_image *image = (gf_batch_image *)own->item;
        const gf_event step = own->step;
        pthread_mutex_unlock(&run->lock);
        const gf_event result = steps[step](worker, image);
        pthread_mutex_lock(&run->lock);
        worker_prepare(worker);
        gf_schedule_done(&run->schedule, worker->number, result);
        assert(!run->schedule.broken);
        if (run->schedule.aborted && !run->error.status)
            run->error = worker->error;
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the next step has another image */
        if (image && (image->base.state == GF_ITEM_NEXT || image->base.state == GF_ITEM_REPORTED))
            image_return(run, image);
    }
    pthread_mutex_unlock(&run->lock);
    return NULL;
}

/* Start threads of workers, up to `count`. Return the number of those that run. */
static uint32_t workers_start(batch_run *run, uint32_t first, uint32_t count, int *failed) {
    uint32_t started = 0;
    *failed = 0;
    for (; started < count && !*failed; started += !*failed) {
        batch_worker *worker = &run->workers[first + started];
        worker->run = run;
        worker->number = first + started;
        pthread_cond_init(&worker->wake, NULL);
        if (first + started) /* the calling thread is the first worker */
            *failed = gf_thread_start(&worker->thread, worker_work, worker);
    }
    return started;
}

/* Start the threads and run the schedule. Each device needs a driver; others are optional. */
static void workers_run(batch_run *run, uint32_t coders, uint32_t drivers) {
    gf_schedule *schedule = &run->schedule;
    gf_engine_options options = run->batch->options.engine; /* of the engines of CPU workers */
    gf_error error = {0};
    int failed;
    options.threads = run->batch->threads_per_file;
    options.unthreaded = options.threads == 1;
    if (run->devices->count) {
        options.backend = "cpu";
        options.devices = NULL;
    }
    for (uint32_t i = 0; schedule->coder_kinds & GF_BY_CPU && i < coders && !error.status; i++)
        (void)gf_engine_open(&options, &run->workers[i].engine, &error);
    pthread_mutex_lock(&run->lock);
    schedule->coders = workers_start(run, 0, coders, &failed);
    schedule->driver_count = workers_start(run, schedule->coders, drivers, &failed);
    const uint32_t workers = schedule->coders + schedule->driver_count;
    if (schedule->driver_count < run->devices->count)
        (void)gf_fail(&error, GF_FAILED, "%s: cannot start a thread: %s",
                      gf_chain_name(&run->batch->chain), strerror(failed));
    /* Two for each worker: one that it processes, and one that it may start. */
    for (uint32_t i = 0; i < workers; i++) {
        images_add(run);
        worker_prepare(&run->workers[i]);
        images_add(run);
    }
    if (error.status)
        workers_abort(run, &error);
    gf_schedule_start(schedule);
    pthread_mutex_unlock(&run->lock);
    worker_work(&run->workers[0]);
    for (uint32_t i = 1; i < workers; i++)
        pthread_join(run->workers[i].thread, NULL);
    for (uint32_t i = 0; i < GF_BATCH_MAX_WORKERS; i++) { /* coders no longer use their memory */
        gf_engine_close(run->workers[i].engine);
        free(run->workers[i].file.data);
        free(schedule->workers[i].spare);
        if (run->workers[i].run)
            pthread_cond_destroy(&run->workers[i].wake);
    }
    for (gf_schedule_item *item; (item = gf_schedule_remove(schedule));)
        image_return(run, (gf_batch_image *)item);
    for (gf_schedule_item *item; (item = run->unused);) {
        run->unused = item->next;
        free(item);
    }
}

/* Prepare a schedule. Return the number of drivers. */
static uint32_t workers_plan(batch_run *run) {
    const gf_file_batch *batch = run->batch;
    gf_schedule *schedule = &run->schedule;
    const bool is_auto = gf_batch_is_auto(batch);
    const uint32_t devices = run->devices->count;
    const uint64_t ahead = 4 * (uint64_t)batch->threads, expected = gf_batch_expected(batch);
    schedule->count = batch->count;
    schedule->expected = expected;
    schedule->shared = batch->source.take;
    schedule->window = batch->options.in_order ? ahead < MIN_AHEAD ? MIN_AHEAD : ahead : 0;
    schedule->fail_fast = batch->options.fail_fast;
    schedule->coder_kinds =
        (devices ? GF_BY_CODER : 0) | (!devices || is_auto || batch->with_cpu ? GF_BY_CPU : 0);
    schedule->with_cpu = batch->with_cpu;
    schedule->at_once = batch->at_once;
    schedule->parts = batch->parts;
    schedule->workers = run->scheduled;
    schedule->drivers = run->drivers;
    schedule->wake = worker_wake;
    schedule->context = run;
    if (!devices)
        return 0;
    schedule->devices = devices;
    schedule->may_read_png = is_auto || strcmp(batch->options.engine.backend, "cuda") == 0;
    schedule->few = gf_device_decodes_always
                        ? 0
                        : GF_PNG_STREAM_COST * batch->threads /
                              (gf_png_codec.decode_cost + gf_png_codec.encode_cost[GF_PNG_FAST]);
    const uint32_t engines = devices * gf_batch_engines(batch, devices);
    const uint32_t at_once = expected < engines ? (uint32_t)expected : engines;
    run->threads_per_engine = (batch->threads + at_once - 1) / at_once;
    schedule->engines = at_once > devices ? at_once : devices;
    return schedule->may_read_png && schedule->engines == engines && engines > devices
               ? devices * GF_BATCH_MAX_PNG_ENGINES
               : schedule->engines;
}

gf_status gf_batch_run(const gf_file_batch *batch, const gf_batch_devices *devices,
                       gf_error *error) {
    batch_run *run = calloc(1, sizeof *run);
    if (!run)
        return gf_fail_memory(error, gf_chain_name(&batch->chain), sizeof *run, "a batch");
    run->batch = batch;
    run->devices = devices;
    memcpy(run->reason, batch->reason, sizeof run->reason);
    pthread_mutex_init(&run->lock, NULL);
    const uint32_t drivers = workers_plan(run);
    /* In a shared batch on devices, one thread may block in source.take while the others code. */
    const uint32_t coders = batch->at_once + (devices->count && batch->source.take ? 1 : 0);
    workers_run(run, (uint32_t)gf_min(coders, GF_MAX_THREADS), drivers);
    pthread_mutex_destroy(&run->lock);
    gf_status status = run->error.status;
    /* Items without a device are not processed. A shared batch cannot count them. */
    if (status && run->device_failed && !batch->source.take)
        status = gf_fail(error, status,
                         "%.400s; %" PRIu64 " of %" PRIu64
                         " files were not processed, and no device is left",
                         run->error.message, batch->count - run->schedule.reported, batch->count);
    else if (status && error)
        *error = run->error;
    free(run);
    return status;
}
