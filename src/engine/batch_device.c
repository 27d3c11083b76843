/* Batch on devices. Coder threads decode small images into memory and encode the results. One
 * driver thread per device computes waiting images of the same format together, and runs large
 * images from file to file. Additional drivers open more engines on the device, so that one large
 * image is read while another is computed and a third is written. */
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/thread.h"
#include "engine/batch.h"
#include "io/io.h"
#include "io/output.h"

#define MAX_IMAGES UINT64_C(4096)             /* maximum images in progress */
#define MAX_TOTAL_BYTES (UINT64_C(1) << 30)   /* maximum bytes of all images in memory */
#define MAX_GROUP_BYTES (UINT64_C(128) << 20) /* maximum bytes of images computed together */
/* Maximum engines per device. Reading, computing and writing use three. */
#define MAX_ENGINES 4u

/* State of an image. An image taken from a queue enters the state that follows. */
typedef enum device_state {
    IMAGE_OPENING,
    IMAGE_OPENED,   /* queue: decoded when memory is available */
    IMAGE_DECODING, /* first state in memory */
    IMAGE_WAITING,  /* queue: waits for a device */
    IMAGE_COMPUTING,
    IMAGE_FINISHED, /* queue: to be encoded, or only reported after a failure */
    IMAGE_ENCODING, /* last state in memory */
    IMAGE_LARGE,    /* queue: waits for a device, from file to file */
    IMAGE_RUNNING,
    IMAGE_DONE,
    IMAGE_STATES
} device_state;

typedef struct device_image {
    struct device_image *next; /* in its queue or group */
    uint64_t item;
    device_state state;
    bool read_once; /* the input cannot be read again */
    double began;
    gf_task task;   /* open until the image is written; reads the file, then memory */
    void *out;      /* output image, allocated when the input is decoded */
    uint64_t bytes; /* size of input and output image */
    gf_batch_outcome outcome;
} device_image;

typedef struct device_queue {
    device_image *first, **last; /* used by states that are queues */
    uint64_t count;              /* number of images in this state */
} device_queue;

/* Thread that drives an engine. */
typedef struct device_driver {
    struct device_run *run;
    uint32_t number; /* the first engines of all devices, then additional ones in turn */
    pthread_t thread;
} device_driver;

/* State of the batch. All variable fields are protected by the batch's lock. */
typedef struct device_run {
    gf_file_batch *batch;
    const gf_batch_devices *devices;
    device_queue queues[IMAGE_STATES];
    uint64_t bytes, max_bytes;   /* bytes of images in memory, and their limit */
    uint32_t starting_devices;   /* devices that have not started */
    uint32_t active_devices;     /* devices that run or start */
    uint32_t threads_per_engine; /* threads per engine, for its reader and its writer */
    uint32_t engines;            /* engines open or being opened */
    uint32_t max_engines;        /* number of drivers */
    bool no_more_engines;        /* open no additional engines */
    device_driver drivers[GF_MAX_DEVICES * MAX_ENGINES];
} device_run;

uint32_t gf_batch_engines(const gf_file_batch *batch, uint32_t devices) {
    const uint32_t max = batch->threads / devices;
    return max < 1 ? 1 : max > MAX_ENGINES ? MAX_ENGINES : max;
}

static uint64_t device_pixel_bytes(const gf_format *format) {
    return format->height * gf_row_bytes(format);
}

uint64_t gf_batch_image_bytes(const gf_format *in, const gf_format *out) {
    return device_pixel_bytes(in) + device_pixel_bytes(out);
}

/* ---- states of an image ---------------------------------------------------------------------- */

static bool device_state_is_queue(device_state state) {
    return state == IMAGE_OPENED || state == IMAGE_WAITING || state == IMAGE_FINISHED ||
           state == IMAGE_LARGE;
}

static bool device_state_in_memory(device_state state) {
    return state >= IMAGE_DECODING && state <= IMAGE_ENCODING;
}

/* Return the number of images in a range of states. */
static uint64_t device_count(const device_run *run, device_state first, device_state last) {
    uint64_t count = 0;
    for (device_state i = first; i <= last; i++)
        count += run->queues[i].count;
    return count;
}

/* Move an image to the end of another state's queue. Called with the lock held. */
static void device_enter(device_run *run, device_image *image, device_state state) {
    device_queue *queue = &run->queues[state];
    if (device_state_in_memory(image->state))
        run->bytes -= image->bytes;
    if (device_state_in_memory(state))
        run->bytes += image->bytes;
    run->queues[image->state].count--;
    queue->count++;
    image->state = state;
    image->next = NULL;
    if (device_state_is_queue(state)) {
        *queue->last = image;
        queue->last = &image->next;
    }
    /* In a shared batch, any change of state may allow another item to be taken. */
    if (device_state_is_queue(state) || gf_batch_is_shared(run->batch))
        pthread_cond_broadcast(&run->batch->changed);
}

/* Take an image out of its queue; *at points to it. Called with the lock held. */
static device_image *device_take(device_run *run, device_image **at) {
    device_image *image = *at;
    device_queue *queue = &run->queues[image->state];
    *at = image->next;
    if (!*at)
        queue->last = at;
    device_enter(run, image, image->state + 1);
    return image;
}

/* Free the data that only an image in memory needs. */
static void device_drop(device_image *image) {
    gf_task_end(&image->task);
    free(image->out);
    image->out = NULL;
}

/* Move an image to another state. Free its memory if it leaves memory. */
static void device_move(device_run *run, device_image *image, device_state state) {
    if (state == IMAGE_LARGE || state == IMAGE_DONE || image->outcome.status)
        device_drop(image);
    pthread_mutex_lock(&run->batch->lock);
    device_enter(run, image, state);
    pthread_mutex_unlock(&run->batch->lock);
}

/* ---- decoding and encoding ------------------------------------------------------------------- */

/* Open an image and check whether it is large; a device runs large images from file to file. An
 * input that can be read only once is not opened here. Verified images run individually, because a
 * difference found in a group could not be attributed to a file. A failed image is reported only
 * after all devices have started: if one cannot start, the batch ends as if it had not begun. */
static void device_open(device_run *run, uint64_t item) {
    gf_file_batch *batch = run->batch;
    const char *path = batch->items[item].in;
    gf_error error;
    device_image *image = calloc(1, sizeof *image);
    if (!image) {
        (void)gf_fail_memory(&error, path, sizeof *image, "an image");
        gf_batch_abort(batch, &error);
        return;
    }
    device_state next = IMAGE_LARGE;
    image->item = item;
    image->began = gf_now();
    image->read_once = !gf_stat_file(path).regular;
    if (!image->read_once) {
        gf_batch_outcome *outcome = &image->outcome;
        outcome->status = gf_batch_open_image(batch, item, &image->task, &outcome->error);
        image->task.report = &outcome->report;
        if (outcome->status) {
            next = IMAGE_FINISHED;
        } else {
            image->bytes = gf_batch_image_bytes(&image->task.plan->in, &image->task.plan->out);
            if (!batch->options.engine.verify && image->bytes <= GF_BATCH_SMALL &&
                image->bytes <= run->max_bytes)
                next = IMAGE_OPENED;
        }
    }
    device_move(run, image, next);
}

static void device_decode(device_run *run, device_image *image) {
    gf_task *task = &image->task;
    const gf_format *out = &task->plan->out;
    gf_batch_outcome *outcome = &image->outcome;
    gf_report *report = &outcome->report;
    uint64_t memory = image->bytes;
    image->out = gf_aligned_alloc(1, device_pixel_bytes(out));
    if (!image->out) {
        device_move(run, image, IMAGE_LARGE); /* needs less memory */
        return;
    }
    outcome->status =
        gf_inputs_buffer(&task->inputs, &memory, &report->busy[GF_DECODING], &outcome->error);
    if (!outcome->status)
        outcome->status = gf_task_check_metadata(task, &outcome->error);
    report->in_bytes = task->inputs.source->bytes;
    if (out->width && !run->batch->options.files.strip)
        report->dropped = task->inputs.source->dropped;
    device_move(run, image, outcome->status ? IMAGE_FINISHED : IMAGE_WAITING);
}

/* Write the image, if there is one, and report the item. */
static void device_encode(device_run *run, device_image *image) {
    const gf_file_batch *batch = run->batch;
    const gf_file_options options = gf_batch_file_options(batch, image->item);
    gf_batch_outcome *outcome = &image->outcome;
    if (!outcome->status)
        outcome->status =
            gf_task_write(&image->task, batch->settings, batch->items[image->item].out, image->out,
                          &options, &outcome->result, &outcome->error);
    outcome->report.total_seconds = gf_now() - image->began;
    device_move(run, image, IMAGE_DONE);
    gf_batch_report(run->batch, image->item, outcome);
    free(image);
}

/* Return whether another item may be started. In a shared batch, start no more large images than
 * there are engines: the size is known only after the start, and another process may be free to run
 * the item. */
static bool device_may_begin(const device_run *run) {
    const uint64_t memory = device_count(run, IMAGE_DECODING, IMAGE_LARGE);
    const uint64_t large = device_count(run, IMAGE_OPENING, IMAGE_OPENED) +
                           device_count(run, IMAGE_LARGE, IMAGE_RUNNING);
    const uint32_t engines = run->no_more_engines ? run->engines : run->max_engines;
    return gf_batch_may_begin(run->batch) && memory < MAX_IMAGES &&
           (!gf_batch_is_shared(run->batch) || large < engines);
}

/* Run one step for an image, if there is any. Encoding has priority because it frees memory, then
 * decoding of open images, then a new image. Called with the lock held. */
static bool device_work_once(device_run *run) {
    gf_file_batch *batch = run->batch;
    device_queue *opened = &run->queues[IMAGE_OPENED], *finished = &run->queues[IMAGE_FINISHED];
    if (finished->first && run->starting_devices == 0) {
        device_image *image = device_take(run, &finished->first);
        pthread_mutex_unlock(&batch->lock);
        device_encode(run, image);
    } else if (opened->first && run->bytes + opened->first->bytes <= run->max_bytes) {
        device_image *image = device_take(run, &opened->first);
        pthread_mutex_unlock(&batch->lock);
        device_decode(run, image);
    } else if (!finished->first && !opened->first && device_may_begin(run)) {
        uint64_t item;
        const bool begun = gf_batch_begin(batch, &item);
        run->queues[IMAGE_OPENING].count += begun;
        pthread_mutex_unlock(&batch->lock);
        if (begun)
            device_open(run, item);
    } else {
        return false;
    }
    pthread_mutex_lock(&batch->lock);
    return true;
}

/* Decode and encode until the batch is finished. */
static void *device_work(void *argument) {
    device_run *run = argument;
    gf_file_batch *batch = run->batch;
    pthread_mutex_lock(&batch->lock);
    while (!gf_batch_finished(batch))
        if (!device_work_once(run))
            pthread_cond_wait(&batch->changed, &batch->lock);
    pthread_mutex_unlock(&batch->lock);
    return NULL;
}

/* ---- computing small images together --------------------------------------------------------- */

/* List the first waiting image and those of the same format. Called with the lock held. */
static device_image *device_take_group(device_run *run, size_t *count) {
    device_queue *waiting = &run->queues[IMAGE_WAITING];
    device_image *first = device_take(run, &waiting->first), **last = &first->next;
    uint64_t bytes = first->bytes;
    *count = 1;
    for (device_image **at = &waiting->first; *at;) {
        if (!gf_format_equal(&(*at)->task.plan->in, &first->task.plan->in) ||
            bytes + (*at)->bytes > MAX_GROUP_BYTES) {
            at = &(*at)->next;
            continue;
        }
        bytes += (*at)->bytes;
        *last = device_take(run, at);
        last = &(*last)->next;
        ++*count;
    }
    return first;
}

/* Divide the report of a group among its images. */
static void device_share_report(gf_report *report, const gf_report *together, size_t count) {
    gf_report own = *together;
    for (int i = 0; i < GF_STAGE_COUNT; i++)
        own.busy[i].seconds /= (double)count;
    own.busy[GF_DECODING] = report->busy[GF_DECODING];
    own.busy[GF_ENCODING] = (gf_busy){0};
    own.in_bytes = report->in_bytes;
    own.dropped = report->dropped;
    own.start_seconds /= (double)count;
    *report = own;
}

static gf_status device_compute(const gf_file_batch *batch, gf_engine *engine, device_image *group,
                                size_t count) {
    const gf_plan *plan = group->task.plan;
    gf_pixels *in = calloc(count, sizeof *in);
    gf_out_pixels *out = calloc(count, sizeof *out);
    gf_result **results =
        calloc(count, sizeof *results); /* NOLINT(bugprone-sizeof-expression): pointers */
    gf_status status = in && out && results ? GF_OK : GF_FAILED;
    size_t i = 0;
    for (device_image *image = group; image && !status; image = image->next, i++) {
        in[i] = gf_memory_source_pixels(image->task.inputs.source);
        out[i] = (gf_out_pixels){image->out, gf_row_bytes(&plan->out)};
    }
    gf_report report;
    if (!status)
        status = gf_run_memory_batch(engine, batch->filter, batch->settings, &plan->in, count, in,
                                     plan->out.width ? out : NULL, results, &report, NULL);
    i = 0;
    for (device_image *image = group; image && !status; image = image->next, i++) {
        image->outcome.result = results[i];
        device_share_report(&image->outcome.report, &report, count);
    }
    free(in);
    free(out);
    free(results);
    return status;
}

/* Compute the images that wait together. If the group fails, its images run from file to file, and
 * each reports its own error. If the device fails, they wait for another device. Called with the
 * lock held. */
static void device_run_group(device_run *run, gf_engine *engine) {
    gf_file_batch *batch = run->batch;
    size_t count;
    device_image *group = device_take_group(run, &count);
    pthread_mutex_unlock(&batch->lock);
    const gf_status status = device_compute(batch, engine, group, count);
    const bool device_failed = status && gf_batch_device_failed(engine);
    if (device_failed)
        gf_batch_note_device_failure(batch, engine);
    pthread_mutex_lock(&batch->lock);
    for (device_image *image = group, *next; image; image = next) {
        next = image->next;
        if (status && !device_failed)
            device_drop(image);
        device_enter(run, image,
                     device_failed ? IMAGE_WAITING
                     : status      ? IMAGE_LARGE
                                   : IMAGE_FINISHED);
    }
}

/* ---- computing large images from file to file ------------------------------------------------ */

/* Run the first waiting image. Return it if another engine must run it: the device has failed, or
 * this is an additional engine and the device has no memory left for it. Called with the lock
 * held. */
static device_image *device_run_large(device_run *run, gf_engine *engine, bool additional) {
    gf_file_batch *batch = run->batch;
    device_image *image = device_take(run, &run->queues[IMAGE_LARGE].first);
    pthread_mutex_unlock(&batch->lock);
    engine->may_defer = additional && !image->read_once;
    const bool done = gf_batch_run_item(batch, engine, image->item, !image->read_once);
    if (engine->cuda_failed && (!done || gf_batch_device_failed(engine)))
        gf_batch_note_device_failure(batch, engine);
    if (done) {
        device_move(run, image, IMAGE_DONE);
        free(image);
    }
    pthread_mutex_lock(&batch->lock);
    return done ? NULL : image;
}

/* ---- drivers --------------------------------------------------------------------------------- */

/* Return whether the driver's engine is an additional one, which runs large images only. */
static bool device_is_additional(const device_driver *driver) {
    return driver->number >= driver->run->devices->count;
}

/* Wait until there are more large images, waiting and running, than engines, and this driver is the
 * next to open one. Return false if the batch ends first. */
static bool device_wait_to_open(const device_driver *driver) {
    device_run *run = driver->run;
    gf_file_batch *batch = run->batch;
    bool open = false;
    pthread_mutex_lock(&batch->lock);
    while (!open && !gf_batch_finished(batch)) {
        open = run->starting_devices == 0 && !run->no_more_engines &&
               run->engines == driver->number &&
               device_count(run, IMAGE_LARGE, IMAGE_RUNNING) > run->engines;
        if (!open)
            pthread_cond_wait(&batch->changed, &batch->lock);
    }
    run->engines += open;
    pthread_cond_broadcast(&batch->changed); /* the next driver may open one */
    pthread_mutex_unlock(&batch->lock);
    return open;
}

/* Open the driver's engine. If auto's device does not start, the cpu backend runs the batch. */
static gf_status device_open_engine(const device_driver *driver, gf_engine **engine,
                                    gf_error *error) {
    device_run *run = driver->run;
    gf_file_batch *batch = run->batch;
    const bool is_auto = gf_batch_is_auto(batch);
    const char *device = run->devices->names[driver->number % run->devices->count];
    gf_engine_options options = batch->options.engine;
    options.devices = device[0] ? device : NULL;
    options.threads = run->threads_per_engine;
    if (is_auto)
        options.backend = "cuda";
    gf_status status = gf_engine_open(&options, engine, error);
    if (status && is_auto && !device_is_additional(driver)) {
        pthread_mutex_lock(&batch->lock);
        run->no_more_engines = true;
        snprintf(batch->reason, sizeof batch->reason, "%.*s", (int)sizeof batch->reason - 1,
                 error->message);
        pthread_mutex_unlock(&batch->lock);
        options.backend = "cpu";
        options.devices = NULL;
        options.threads = batch->threads;
        status = gf_engine_open(&options, engine, error);
    }
    if (!status)
        (*engine)->may_fall_back = is_auto;
    return status;
}

/* Run images until the batch is finished or the device fails. Return the image that another engine
 * must run, if any. */
static device_image *device_serve(device_run *run, gf_engine *engine, bool additional) {
    gf_file_batch *batch = run->batch;
    device_image *deferred = NULL;
    pthread_mutex_lock(&batch->lock);
    while (!deferred && !gf_batch_finished(batch) && !gf_batch_device_failed(engine)) {
        const bool started = run->starting_devices == 0;
        if (started && !additional && run->queues[IMAGE_WAITING].first)
            device_run_group(run, engine);
        else if (started && run->queues[IMAGE_LARGE].first)
            deferred = device_run_large(run, engine, additional);
        else
            pthread_cond_wait(&batch->changed, &batch->lock);
    }
    pthread_mutex_unlock(&batch->lock);
    return deferred;
}

/* Drive an engine. Its device starts while the first images are decoded. If the engine fails,
 * others continue its work; if no device is left, the batch ends. */
static void *device_drive(void *argument) {
    const device_driver *driver = argument;
    device_run *run = driver->run;
    gf_file_batch *batch = run->batch;
    gf_engine *engine = NULL;
    device_image *deferred = NULL;
    gf_error error = {0};
    const bool additional = device_is_additional(driver);
    if (additional && !device_wait_to_open(driver))
        return NULL;
    const bool opened = device_open_engine(driver, &engine, &error) == GF_OK;
    if (opened && !additional) {
        pthread_mutex_lock(&batch->lock);
        run->starting_devices--;
        pthread_cond_broadcast(&batch->changed);
        pthread_mutex_unlock(&batch->lock);
    }
    if (opened)
        deferred = device_serve(run, engine, additional);
    if (!opened || deferred || gf_batch_device_failed(engine)) {
        pthread_mutex_lock(&batch->lock);
        run->engines--;
        run->no_more_engines = true;
        run->active_devices -= !additional;
        const bool last = !additional && run->active_devices == 0 && !gf_batch_finished(batch);
        pthread_mutex_unlock(&batch->lock);
        if (!additional && !opened)
            gf_batch_abort(batch, &error);
        else if (last)
            gf_batch_abort(batch, &engine->cuda_error);
    }
    gf_engine_close(engine); /* close first: this frees memory for the engine that runs the image */
    if (deferred)
        device_move(run, deferred, IMAGE_LARGE);
    return NULL;
}

/* ---- the whole batch ------------------------------------------------------------------------- */

/* Start the threads. Every device needs a driver; additional drivers and coders are optional. */
static void device_run_threads(device_run *run, uint32_t coders) {
    gf_file_batch *batch = run->batch;
    pthread_t coding[GF_BATCH_MAX_THREADS];
    gf_error error;
    uint32_t driving = 0, started = 0;
    int failed = 0;
    for (device_driver *driver = run->drivers; driving < run->max_engines && !failed; driver++) {
        *driver = (device_driver){.run = run, .number = driving};
        failed = gf_thread_start(&driver->thread, device_drive, driver);
        driving += !failed;
    }
    run->max_engines = driving;
    if (driving < run->devices->count) {
        (void)gf_fail(&error, GF_FAILED, "%s: cannot start a thread: %s", batch->filter->info.name,
                      strerror(failed));
        gf_batch_abort(batch, &error);
    }
    while (started < coders && gf_thread_start(&coding[started], device_work, run) == 0)
        started++;
    device_work(run); /* the calling thread is a coder, too */
    for (uint32_t i = 0; i < started; i++)
        pthread_join(coding[i], NULL);
    for (uint32_t i = 0; i < driving; i++)
        pthread_join(run->drivers[i].thread, NULL);
}

void gf_batch_run_on_devices(gf_file_batch *batch, const gf_batch_devices *devices) {
    device_run run = {.batch = batch,
                      .devices = devices,
                      .max_bytes = batch->options.engine.max_memory,
                      .starting_devices = devices->count,
                      .active_devices = devices->count,
                      .engines = devices->count};
    for (int i = 0; i < IMAGE_STATES; i++)
        run.queues[i].last = &run.queues[i].first;
    if (run.max_bytes == 0 || run.max_bytes > MAX_TOTAL_BYTES)
        run.max_bytes = MAX_TOTAL_BYTES;
    const uint32_t engines = devices->count * gf_batch_engines(batch, devices->count);
    const uint64_t expected = gf_batch_expected(batch);
    const uint32_t at_once = expected < engines ? (uint32_t)expected : engines;
    run.max_engines = at_once > devices->count ? at_once : devices->count;
    run.threads_per_engine = (batch->threads + at_once - 1) / at_once;
    /* In a shared batch, one thread may block in source.take while the others code. */
    device_run_threads(&run, batch->at_once - (gf_batch_is_shared(batch) ? 0 : 1));
    for (int i = 0; i < IMAGE_STATES; i++)
        while (run.queues[i].first) {
            device_image *image = device_take(&run, &run.queues[i].first);
            gf_result_free(image->outcome.result);
            device_drop(image);
            free(image);
        }
}
