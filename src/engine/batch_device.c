/* A batch on devices. Threads decode small images into memory and encode what comes back. Each
 * device is driven by a thread, which runs the images of one format that wait together, and large
 * ones from file to file. So that one large image is read while another is computed and a third is
 * written, other threads drive more engines of the device. */
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/thread.h"
#include "engine/batch.h"
#include "io/io.h"
#include "io/output.h"

#define HELD_IMAGES UINT64_C(4096)        /* under way at once, however small they are */
#define HELD_BYTES (UINT64_C(1) << 30)    /* of all images in memory */
#define GROUP_BYTES (UINT64_C(128) << 20) /* of images that go through a device together */
#define MAX_ENGINES 4u /* of a device: reading, computing and writing are three */

/* Where an image is on its way. What is taken out of a queue gets the state that follows. */
typedef enum held_state {
    HELD_OPENING,
    HELD_OPENED,   /* queue: to be decoded, as soon as there is memory for it */
    HELD_DECODING, /* from here on it is in memory, ... */
    HELD_WAITING,  /* queue: for a device */
    HELD_COMPUTING,
    HELD_FINISHED, /* queue: to be encoded, or only reported if it failed */
    HELD_ENCODING, /* ... until here */
    HELD_LARGE,    /* queue: for a device, from file to file */
    HELD_RUNNING,
    HELD_GONE,
    HELD_STATES
} held_state;

typedef struct held_image {
    struct held_image *next; /* in its queue or group */
    uint64_t item;
    held_state state;
    bool once; /* it cannot be read again */
    double began;
    gf_task task;   /* until it is written; its source is the file, then what was decoded */
    void *out;      /* the image that is made, once it is decoded */
    uint64_t bytes; /* of both images */
    gf_batch_outcome extension;
} held_image;

typedef struct held_queue {
    held_image *first, **last; /* of a state that is a queue */
    uint64_t count;            /* of the images in this state */
} held_queue;

/* A thread that drives an engine. */
typedef struct held_driver {
    struct held_batch *all;
    uint32_t number; /* the first engine of each device, then further ones in turn */
    pthread_t thread;
} held_driver;

/* Everything that changes is under the batch's lock. */
typedef struct held_batch {
    gf_file_batch *batch;
    const gf_batch_devices *devices;
    held_queue queues[HELD_STATES];
    uint64_t bytes, max_bytes; /* of images in memory */
    uint32_t starting;         /* devices that have not started */
    uint32_t driven;           /* devices that are there, or starting */
    uint32_t each;             /* threads of an engine, for its reader and its writer */
    uint32_t engines;          /* open, or being opened */
    uint32_t max_engines;      /* as many have a driver */
    bool enough;               /* open no further engines */
    held_driver drivers[GF_MAX_DEVICES * MAX_ENGINES];
} held_batch;

uint32_t gf_batch_engines(const gf_file_batch *batch, uint32_t devices) {
    const uint32_t max = batch->threads / devices;
    return max < 1 ? 1 : max > MAX_ENGINES ? MAX_ENGINES : max;
}

static uint64_t held_pixel_bytes(const gf_format *format) {
    return format->height * gf_row_bytes(format);
}

uint64_t gf_batch_image_bytes(const gf_format *in, const gf_format *out) {
    return held_pixel_bytes(in) + held_pixel_bytes(out);
}

/* ---- an image on its way --------------------------------------------------------------------- */

static bool held_is_queue(held_state state) {
    return state == HELD_OPENED || state == HELD_WAITING || state == HELD_FINISHED ||
           state == HELD_LARGE;
}

static bool held_in_memory(held_state state) {
    return state >= HELD_DECODING && state <= HELD_ENCODING;
}

/* How many images are in these states. */
static uint64_t held_count(const held_batch *all, held_state first, held_state last) {
    uint64_t count = 0;
    for (held_state i = first; i <= last; i++)
        count += all->queues[i].count;
    return count;
}

/* Moves an image to another state, to the end of its queue. Under the lock. */
static void held_enter(held_batch *all, held_image *held, held_state state) {
    held_queue *queue = &all->queues[state];
    if (held_in_memory(held->state))
        all->bytes -= held->bytes;
    if (held_in_memory(state))
        all->bytes += held->bytes;
    all->queues[held->state].count--;
    queue->count++;
    held->state = state;
    held->next = NULL;
    if (held_is_queue(state)) {
        *queue->last = held;
        queue->last = &held->next;
    }
    /* Of a shared list another item may be taken when an image is no longer what it was. */
    if (held_is_queue(state) || gf_batch_is_shared(all->batch))
        pthread_cond_broadcast(&all->batch->moved);
}

/* Takes an image out of its queue; *at points to it there. Under the lock. */
static held_image *held_take(held_batch *all, held_image **at) {
    held_image *held = *at;
    held_queue *queue = &all->queues[held->state];
    *at = held->next;
    if (!*at)
        queue->last = at;
    held_enter(all, held, held->state + 1);
    return held;
}

/* Frees what only an image in memory needs. */
static void held_drop(held_image *held) {
    gf_task_end(&held->task);
    free(held->out);
    held->out = NULL;
}

/* Moves an image to another state: if it does not stay in memory, others may have that. */
static void held_move(held_batch *all, held_image *held, held_state state) {
    if (state == HELD_LARGE || state == HELD_GONE || held->extension.status)
        held_drop(held);
    pthread_mutex_lock(&all->batch->lock);
    held_enter(all, held, state);
    pthread_mutex_unlock(&all->batch->lock);
}

/* ---- decoding and encoding ------------------------------------------------------------------- */

/* Opens an image and finds out whether it is large: then a device runs it from file to file. What
 * cannot be read twice is not looked at here. What is verified goes alone: which file was wrong
 * could not be told of many together. One that fails is reported when all devices have started: one
 * that cannot ends the batch as if it had not begun. */
static void held_open(held_batch *all, uint64_t item) {
    gf_file_batch *batch = all->batch;
    const char *path = batch->items[item].in;
    gf_error error;
    held_image *held = calloc(1, sizeof *held);
    if (!held) {
        (void)gf_fail_memory(&error, path, sizeof *held, "an image");
        gf_batch_give_up(batch, &error);
        return;
    }
    held_state next = HELD_LARGE;
    held->item = item;
    held->began = gf_now();
    held->once = !gf_see(path).regular;
    if (!held->once) {
        gf_batch_outcome *extension = &held->extension;
        extension->status = gf_batch_open_image(batch, item, &held->task, &extension->error);
        held->task.report = &extension->report;
        if (extension->status) {
            next = HELD_FINISHED;
        } else {
            held->bytes = gf_batch_image_bytes(&held->task.plan->in, &held->task.plan->out);
            if (!batch->options.engine.verify && held->bytes <= GF_BATCH_SMALL &&
                held->bytes <= all->max_bytes)
                next = HELD_OPENED;
        }
    }
    held_move(all, held, next);
}

static void held_decode(held_batch *all, held_image *held) {
    gf_task *task = &held->task;
    const gf_format *out = &task->plan->out;
    gf_batch_outcome *extension = &held->extension;
    gf_report *report = &extension->report;
    uint64_t memory = held->bytes;
    held->out = gf_aligned_alloc(1, held_pixel_bytes(out));
    if (!held->out) {
        held_move(all, held, HELD_LARGE); /* that takes less memory */
        return;
    }
    extension->status =
        gf_inputs_hold(&task->inputs, &memory, &report->busy[GF_DECODING], &extension->error);
    if (!extension->status)
        extension->status = gf_task_check_metadata(task, &extension->error);
    report->in_bytes = task->inputs.source->bytes;
    if (out->width && !all->batch->options.files.strip)
        report->dropped = task->inputs.source->dropped;
    held_move(all, held, extension->status ? HELD_FINISHED : HELD_WAITING);
}

/* Writes the image, if there is one, and reports. */
static void held_encode(held_batch *all, held_image *held) {
    const gf_file_batch *batch = all->batch;
    const gf_file_options options = gf_batch_file_options(batch, held->item);
    gf_batch_outcome *extension = &held->extension;
    if (!extension->status)
        extension->status =
            gf_task_write(&held->task, batch->settings, batch->items[held->item].out, held->out,
                          &options, &extension->result, &extension->error);
    extension->report.total_seconds = gf_now() - held->began;
    held_move(all, held, HELD_GONE);
    gf_batch_report(all->batch, held->item, extension);
    free(held);
}

/* Of a shared list no more large images are begun than there may be engines: only when it is begun
 * an image shows what it is, and another process may be free for it. */
static bool held_may_begin(const held_batch *all) {
    const uint64_t memory = held_count(all, HELD_DECODING, HELD_LARGE);
    const uint64_t large =
        held_count(all, HELD_OPENING, HELD_OPENED) + held_count(all, HELD_LARGE, HELD_RUNNING);
    const uint32_t engines = all->enough ? all->engines : all->max_engines;
    return gf_batch_may_begin(all->batch) && memory < HELD_IMAGES &&
           (!gf_batch_is_shared(all->batch) || large < engines);
}

/* Does one step for an image, if there is one to be done. Encoding goes first, it makes room; then
 * decoding what is open; another image is begun when there is neither. Called and left under the
 * lock. */
static bool held_work_once(held_batch *all) {
    gf_file_batch *batch = all->batch;
    held_queue *opened = &all->queues[HELD_OPENED], *finished = &all->queues[HELD_FINISHED];
    if (finished->first && all->starting == 0) {
        held_image *held = held_take(all, &finished->first);
        pthread_mutex_unlock(&batch->lock);
        held_encode(all, held);
    } else if (opened->first && all->bytes + opened->first->bytes <= all->max_bytes) {
        held_image *held = held_take(all, &opened->first);
        pthread_mutex_unlock(&batch->lock);
        held_decode(all, held);
    } else if (!finished->first && !opened->first && held_may_begin(all)) {
        uint64_t item;
        const bool begun = gf_batch_begin(batch, &item);
        all->queues[HELD_OPENING].count += begun;
        pthread_mutex_unlock(&batch->lock);
        if (begun)
            held_open(all, item);
    } else {
        return false;
    }
    pthread_mutex_lock(&batch->lock);
    return true;
}

/* Decodes and encodes until all is over. */
static void *held_work(void *argument) {
    held_batch *all = argument;
    gf_file_batch *batch = all->batch;
    pthread_mutex_lock(&batch->lock);
    while (!gf_batch_finished(batch))
        if (!held_work_once(all))
            pthread_cond_wait(&batch->moved, &batch->lock);
    pthread_mutex_unlock(&batch->lock);
    return NULL;
}

/* ---- computing: small images together -------------------------------------------------------- */

/* The first image that waits and those like it, as a list. Under the lock. */
static held_image *held_take_group(held_batch *all, size_t *count) {
    held_queue *waiting = &all->queues[HELD_WAITING];
    held_image *first = held_take(all, &waiting->first), **last = &first->next;
    uint64_t bytes = first->bytes;
    *count = 1;
    for (held_image **at = &waiting->first; *at;) {
        if (!gf_format_equal(&(*at)->task.plan->in, &first->task.plan->in) ||
            bytes + (*at)->bytes > GROUP_BYTES) {
            at = &(*at)->next;
            continue;
        }
        bytes += (*at)->bytes;
        *last = held_take(all, at);
        last = &(*last)->next;
        ++*count;
    }
    return first;
}

/* What each image had of the time that all took. */
static void held_share_report(gf_report *report, const gf_report *together, size_t count) {
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

static gf_status held_compute(const gf_file_batch *batch, gf_engine *engine, held_image *group,
                              size_t count) {
    const gf_plan *plan = group->task.plan;
    gf_pixels *in = calloc(count, sizeof *in);
    gf_out_pixels *out = calloc(count, sizeof *out);
    gf_result **results =
        calloc(count, sizeof *results); /* NOLINT(bugprone-sizeof-expression): pointers */
    gf_status status = in && out && results ? GF_OK : GF_FAILED;
    size_t i = 0;
    for (held_image *held = group; held && !status; held = held->next, i++) {
        in[i] = gf_memory_source_pixels(held->task.inputs.source);
        out[i] = (gf_out_pixels){held->out, gf_row_bytes(&plan->out)};
    }
    gf_report report;
    if (!status)
        status = gf_run_memory_batch(engine, batch->filter, batch->settings, &plan->in, count, in,
                                     plan->out.width ? out : NULL, results, &report, NULL);
    i = 0;
    for (held_image *held = group; held && !status; held = held->next, i++) {
        held->extension.result = results[i];
        held_share_report(&held->extension.report, &report, count);
    }
    free(in);
    free(out);
    free(results);
    return status;
}

/* Computes the images that wait together. Those that fail together go from file to file, and each
 * tells its own reason; those that a failed device leaves wait for another. Called and left under
 * the lock. */
static void held_run_group(held_batch *all, gf_engine *engine) {
    gf_file_batch *batch = all->batch;
    size_t count;
    held_image *group = held_take_group(all, &count);
    pthread_mutex_unlock(&batch->lock);
    const gf_status status = held_compute(batch, engine, group, count);
    const bool lost = status && gf_batch_is_lost(engine);
    if (lost)
        gf_batch_note_loss(batch, engine);
    pthread_mutex_lock(&batch->lock);
    for (held_image *held = group, *next; held; held = next) {
        next = held->next;
        if (status && !lost)
            held_drop(held);
        held_enter(all, held, lost ? HELD_WAITING : status ? HELD_LARGE : HELD_FINISHED);
    }
}

/* ---- computing: large images from file to file ----------------------------------------------- */

/* Runs the first one that waits. Returns it if the engine leaves it to another: it does if its
 * device fails, or if it is a further one that finds no room beside the others. Called and left
 * under the lock. */
static held_image *held_run_large(held_batch *all, gf_engine *engine, bool further) {
    gf_file_batch *batch = all->batch;
    held_image *held = held_take(all, &all->queues[HELD_LARGE].first);
    pthread_mutex_unlock(&batch->lock);
    engine->leaves = further && !held->once;
    const bool done = gf_batch_run_item(batch, engine, held->item, !held->once);
    if (engine->lost && (!done || gf_batch_is_lost(engine)))
        gf_batch_note_loss(batch, engine);
    if (done) {
        held_move(all, held, HELD_GONE);
        free(held);
    }
    pthread_mutex_lock(&batch->lock);
    return done ? NULL : held;
}

/* ---- driving --------------------------------------------------------------------------------- */

/* Does the driver have an engine beyond the first of its device? Those run large images only. */
static bool held_is_further(const held_driver *driver) {
    return driver->number >= driver->all->devices->count;
}

/* Waits until there are more large images, waiting and under way, than engines, and it is this
 * driver's turn to open another. False if that never comes. */
static bool held_wait_for_turn(const held_driver *driver) {
    held_batch *all = driver->all;
    gf_file_batch *batch = all->batch;
    bool turn = false;
    pthread_mutex_lock(&batch->lock);
    while (!turn && !gf_batch_finished(batch)) {
        turn = all->starting == 0 && !all->enough && all->engines == driver->number &&
               held_count(all, HELD_LARGE, HELD_RUNNING) > all->engines;
        if (!turn)
            pthread_cond_wait(&batch->moved, &batch->lock);
    }
    all->engines += turn;
    pthread_cond_broadcast(&batch->moved); /* it may be the next one's turn */
    pthread_mutex_unlock(&batch->lock);
    return turn;
}

/* Opens the driver's engine. Where auto's device does not start, the cpu backend does the batch. */
static gf_status held_open_engine(const held_driver *driver, gf_engine **engine, gf_error *error) {
    held_batch *all = driver->all;
    gf_file_batch *batch = all->batch;
    const bool is_auto = gf_batch_is_auto(batch);
    const char *device = all->devices->names[driver->number % all->devices->count];
    gf_engine_options options = batch->options.engine;
    options.devices = device[0] ? device : NULL;
    options.threads = all->each;
    if (is_auto)
        options.backend = "cuda";
    gf_status status = gf_engine_open(&options, engine, error);
    if (status && is_auto && !held_is_further(driver)) {
        pthread_mutex_lock(&batch->lock);
        all->enough = true;
        snprintf(batch->reason, sizeof batch->reason, "%.*s", (int)sizeof batch->reason - 1,
                 error->message);
        pthread_mutex_unlock(&batch->lock);
        options.backend = "cpu";
        options.devices = NULL;
        options.threads = batch->threads;
        status = gf_engine_open(&options, engine, error);
    }
    if (!status)
        (*engine)->replaceable = is_auto;
    return status;
}

/* Runs images until all is over, or the device is. Returns the one that is left to another engine,
 * if any. */
static held_image *held_serve(held_batch *all, gf_engine *engine, bool further) {
    gf_file_batch *batch = all->batch;
    held_image *left = NULL;
    pthread_mutex_lock(&batch->lock);
    while (!left && !gf_batch_finished(batch) && !gf_batch_is_lost(engine)) {
        const bool started = all->starting == 0;
        if (started && !further && all->queues[HELD_WAITING].first)
            held_run_group(all, engine);
        else if (started && all->queues[HELD_LARGE].first)
            left = held_run_large(all, engine, further);
        else
            pthread_cond_wait(&batch->moved, &batch->lock);
    }
    pthread_mutex_unlock(&batch->lock);
    return left;
}

/* Drives an engine, of a device that starts while the first images are decoded. If it ends before
 * the batch, others do what is left; without any device the batch ends. */
static void *held_drive(void *argument) {
    const held_driver *driver = argument;
    held_batch *all = driver->all;
    gf_file_batch *batch = all->batch;
    gf_engine *engine = NULL;
    held_image *left = NULL;
    gf_error error = {0};
    const bool further = held_is_further(driver);
    if (further && !held_wait_for_turn(driver))
        return NULL;
    const bool opened = held_open_engine(driver, &engine, &error) == GF_OK;
    if (opened && !further) {
        pthread_mutex_lock(&batch->lock);
        all->starting--;
        pthread_cond_broadcast(&batch->moved);
        pthread_mutex_unlock(&batch->lock);
    }
    if (opened)
        left = held_serve(all, engine, further);
    if (!opened || left || gf_batch_is_lost(engine)) {
        pthread_mutex_lock(&batch->lock);
        all->engines--;
        all->enough = true;
        all->driven -= !further;
        const bool last = !further && all->driven == 0 && !gf_batch_finished(batch);
        pthread_mutex_unlock(&batch->lock);
        if (!further && !opened)
            gf_batch_give_up(batch, &error);
        else if (last)
            gf_batch_give_up(batch, &engine->loss);
    }
    gf_engine_close(engine); /* first: there is room for another then */
    if (left)
        held_move(all, left, HELD_LARGE);
    return NULL;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Each device has a driver, which must start; of those of further engines, and of the threads that
 * decode and encode, there may be fewer. */
static void held_run_threads(held_batch *all, uint32_t coders) {
    gf_file_batch *batch = all->batch;
    pthread_t coding[GF_BATCH_MAX_THREADS];
    gf_error error;
    uint32_t driving = 0, started = 0;
    int failed = 0;
    for (held_driver *driver = all->drivers; driving < all->max_engines && !failed; driver++) {
        *driver = (held_driver){.all = all, .number = driving};
        failed = gf_thread_start(&driver->thread, held_drive, driver);
        driving += !failed;
    }
    all->max_engines = driving;
    if (driving < all->devices->count) {
        (void)gf_fail(&error, GF_FAILED, "%s: cannot start a thread: %s", batch->filter->info.name,
                      strerror(failed));
        gf_batch_give_up(batch, &error);
    }
    while (started < coders && gf_thread_start(&coding[started], held_work, all) == 0)
        started++;
    held_work(all); /* the calling thread does its share */
    for (uint32_t i = 0; i < started; i++)
        pthread_join(coding[i], NULL);
    for (uint32_t i = 0; i < driving; i++)
        pthread_join(all->drivers[i].thread, NULL);
}

void gf_batch_run_on_devices(gf_file_batch *batch, const gf_batch_devices *devices) {
    held_batch all = {.batch = batch,
                      .devices = devices,
                      .max_bytes = batch->options.engine.max_memory,
                      .starting = devices->count,
                      .driven = devices->count,
                      .engines = devices->count};
    for (int i = 0; i < HELD_STATES; i++)
        all.queues[i].last = &all.queues[i].first;
    if (all.max_bytes == 0 || all.max_bytes > HELD_BYTES)
        all.max_bytes = HELD_BYTES;
    const uint32_t engines = devices->count * gf_batch_engines(batch, devices->count);
    const uint64_t expected = gf_batch_expected(batch);
    const uint32_t at_once = expected < engines ? (uint32_t)expected : engines;
    all.max_engines = at_once > devices->count ? at_once : devices->count;
    all.each = (batch->threads + at_once - 1) / at_once;
    /* Of a shared list one may wait for an item while the others code. */
    held_run_threads(&all, batch->at_once - (gf_batch_is_shared(batch) ? 0 : 1));
    for (int i = 0; i < HELD_STATES; i++)
        while (all.queues[i].first) {
            held_image *held = held_take(&all, &all.queues[i].first);
            gf_result_free(held->extension.result);
            held_drop(held);
            free(held);
        }
}
