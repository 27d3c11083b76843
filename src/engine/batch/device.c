/* Batch on devices. Coder threads upload PNG files to the memory of an engine and write the
 * results; the engine decodes, filters and encodes them in groups. Coders decode other small images
 * into memory and encode the results. One driver thread per device computes waiting images of the
 * same format together, and runs large images from file to file. Additional drivers open more
 * engines on the device, so that one large image, or one group of PNG files, is read while another
 * is computed and a third is written. */
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/thread.h"
#include "engine/batch/batch.h"
#include "io/codecs.h"
#include "io/file/output.h"
#include "io/stream/memory.h"

#define MAX_IMAGES UINT64_C(4096)             /* maximum images in progress */
#define MAX_TOTAL_BYTES (UINT64_C(1) << 30)   /* maximum bytes of all images in memory */
#define MAX_GROUP_BYTES (UINT64_C(128) << 20) /* maximum bytes of images computed together */
/* Maximum engines per device. Reading, computing and writing use three. */
#define MAX_ENGINES 4u
/* Maximum engines per device for PNG files: while one waits for its files, others compute. */
#define MAX_PNG_ENGINES 8u
/* Deflate streams that a device decodes together, if as many follow: each stream is slow. */
#define GROUP_STREAMS 1024u
/* Maximum groups that a device decodes at once: the other half is encoded, written and read. And
 * the maximum of their streams, unless a group has more: they occupy the device. */
#define MAX_DECODING (MAX_PNG_ENGINES / 2)
#define MAX_DECODING_STREAMS 3072u
/* Device memory of all engines, as a share of the free memory; that of an encoder; and the maximum
 * for the images of an engine. */
#define MEMORY_SHARE 0.75
#define ENCODER_BYTES (UINT64_C(640) << 20)
#define MAX_ENGINE_BYTES (UINT64_C(4) << 30)

/* State of an image. An image taken from a queue enters the state that follows. */
typedef enum device_state {
    IMAGE_OPENING,
    IMAGE_OPENED,   /* queue: decoded or uploaded when memory is available */
    IMAGE_DECODING, /* first state in memory */
    IMAGE_UPLOADED, /* a PNG file in the memory of an engine */
    IMAGE_WAITING,  /* queue: waits for a device */
    IMAGE_COMPUTING,
    IMAGE_FINISHED, /* queue: to be encoded, or only reported after a failure */
    IMAGE_ENCODING, /* last state in memory */
    IMAGE_LARGE,    /* queue: runs from file to file */
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
    gf_chain chain; /* of the item */
    gf_task task;   /* open until the image is written; reads the file, then memory */
    bool is_png;    /* a device decodes the file */
    bool has_parts; /* is_png: the file is known to have several streams */
    gf_batch_png png;
    struct device_driver *driver; /* is_png: whose engine has memory for the image; NULL: none */
    void *out;                    /* output image, allocated when the input is decoded */
    uint64_t bytes;               /* size of input and output image in host memory; is_png: 0 */
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
    gf_engine *engine;
    /* PNG files. A group is filled by coders, computed, and written by coders. */
    const gf_backend *device; /* NULL: the engine does not run them */
    void *state, *stream;
    unsigned char *memory;
    uint64_t size, used; /* bytes of memory, and bytes reserved for the group */
    gf_format format;    /* of the group */
    device_image *group;
    size_t count;       /* images in the group */
    uint64_t streams;   /* deflate streams of the group */
    uint32_t uploading; /* images that have memory, and are not in the group yet */
    bool closed;        /* the group gets no more images */
    uint64_t held;      /* computed images that are not written yet */
} device_driver;

/* Thread that decodes and encodes. */
typedef struct device_coder {
    struct device_run *run;
    gf_engine *cpu;      /* runs whole items; NULL: the batch runs on devices only */
    gf_byte_buffer file; /* that is being uploaded */
    pthread_t thread;
} device_coder;

/* Work that a device is decoding. */
typedef struct device_load {
    uint32_t groups;
    uint64_t streams;
} device_load;

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
    uint32_t max_engines;        /* maximum for large images */
    uint32_t driver_count;
    bool no_more_engines;    /* open no additional engines */
    bool reads_png;          /* devices may decode PNG files */
    bool few_left;           /* devices decode no other files of one stream */
    uint32_t parts;          /* deflate streams of the last file that was read */
    uint32_t on_cpu;         /* items that run on the CPU */
    uint64_t waiting_bytes;  /* of a PNG file that found no memory of an engine; 0: none */
    uint64_t engine_bytes;   /* maximum device memory for the images of an engine */
    uint64_t wanted_bytes;   /* device memory for a group, or for all images that are left */
    gf_format wanted_format; /* of one of them */
    device_load decoding[GF_MAX_DEVICES];
    device_driver drivers[GF_MAX_DEVICES * MAX_PNG_ENGINES];
    device_coder coders[GF_BATCH_MAX_THREADS];
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
    free(image->png.places);
    free(image->out);
    image->png.places = NULL;
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

/* Set image->bytes. Return whether the image may be held in memory. Verified images run
 * individually, because a difference found in a group could not be attributed to a file. */
static bool device_set_bytes(const device_run *run, device_image *image) {
    const gf_file_batch *batch = run->batch;
    const gf_plan *plan = image->task.plan;
    image->bytes = image->is_png ? 0 : gf_batch_image_bytes(&plan->in, &plan->out);
    return image->is_png ||
           (!batch->options.engine.verify && !image->task.more_pages && !batch->with_cpu &&
            image->bytes <= GF_BATCH_SMALL && image->bytes <= run->max_bytes);
}

/* Open an image and choose how it is run: large images from file to file. An input that can be read
 * only once is not opened here. A failed image is reported only after all devices have started: if
 * one cannot start, the batch ends as if it had not begun. */
static void device_open(device_run *run, uint64_t item, bool reads_png) {
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
    image->read_once = !gf_stat_file(path).st_mode;
    if (!image->read_once) {
        gf_batch_outcome *outcome = &image->outcome;
        outcome->status =
            gf_batch_open_image(batch, item, &image->chain, &image->task, &outcome->error);
        image->task.made = &outcome->made;
        if (outcome->status) {
            next = IMAGE_FINISHED;
        } else {
            image->is_png = reads_png && gf_batch_png_is_candidate(batch, &image->task);
            if (device_set_bytes(run, image))
                next = IMAGE_OPENED;
        }
    }
    device_move(run, image, next);
}

static void device_decode(device_run *run, device_image *image) {
    gf_task *task = &image->task;
    const gf_format *out = &task->plan->out;
    gf_batch_outcome *outcome = &image->outcome;
    gf_report *report = &outcome->made.report;
    uint64_t memory = image->bytes;
    image->out = gf_aligned_alloc(1, device_pixel_bytes(out));
    if (!image->out) {
        device_move(run, image, IMAGE_LARGE); /* needs less memory */
        return;
    }
    outcome->status =
        gf_inputs_buffer(&task->inputs, &memory, &report->busy[GF_DECODING], &outcome->error);
    if (!outcome->status)
        outcome->status = gf_task_update_metadata(task, &outcome->error);
    device_move(run, image, outcome->status ? IMAGE_FINISHED : IMAGE_WAITING);
}

/* A gf_fill_sink for an image in host memory. */
static gf_status device_fill(void *context, gf_sink *sink, gf_error *error) {
    const device_image *image = context;
    const gf_format *out = &image->task.plan->out;
    return sink->ops->write(sink, image->out, gf_row_bytes(out), out->height, error);
}

/* Return the memory of an engine that an image held. */
static void device_release(device_run *run, device_image *image) {
    if (!image->driver)
        return;
    pthread_mutex_lock(&run->batch->lock);
    if (--image->driver->held == 0)
        pthread_cond_broadcast(&run->batch->changed);
    pthread_mutex_unlock(&run->batch->lock);
    image->driver = NULL;
}

/* Write the image, if there is one, and report the item. */
static void device_encode(device_run *run, device_image *image) {
    gf_batch_outcome *outcome = &image->outcome;
    if (image->task.inputs.sources[0])
        gf_task_report_input(&image->task);
    if (!outcome->status)
        outcome->status =
            gf_task_write(&image->task, image->driver ? gf_batch_png_fill : device_fill,
                          image->driver ? (void *)&image->png : (void *)image, &outcome->error);
    device_release(run, image);
    outcome->made.report.total_seconds = gf_now() - image->began;
    device_move(run, image, IMAGE_DONE);
    gf_batch_report(run->batch, image->item, outcome);
    free(image);
}

/* ---- uploading PNG files --------------------------------------------------------------------- */

/* Return the number of items that are not yet in memory. */
static uint64_t device_left(const device_run *run) {
    const uint64_t expected = gf_batch_expected(run->batch), begun = run->batch->begun;
    return (expected > begun ? expected - begun : 0) +
           device_count(run, IMAGE_OPENING, IMAGE_DECODING);
}

/* Return whether a device decodes no other files of one stream. It decodes a stream slowly, but
 * many at once: CPU threads would finish the files that are left before it finishes one. If they do
 * not run whole items, that is decided only once. */
static bool device_few_left(device_run *run) {
    const gf_file_batch *batch = run->batch;
    const double cost = gf_png_codec.decode_cost + gf_png_codec.encode_cost[GF_PNG_FAST];
    const uint64_t files = batch->with_cpu ? device_left(run) : gf_batch_expected(batch);
    if ((double)files * cost < GF_PNG_STREAM_COST * batch->threads && run->parts == 1 &&
        !gf_device_decodes_always())
        run->few_left = true;
    return run->few_left;
}

/* Return whether images may be added to the group of a driver. */
static bool device_is_open(const device_driver *driver) {
    return driver->device && !driver->closed && driver->held == 0;
}

/* Return whether there is a group to which images may be added. */
static bool device_has_group(const device_run *run) {
    for (uint32_t i = 0; i < run->driver_count; i++)
        if (device_is_open(&run->drivers[i]))
            return true;
    return false;
}

/* Find a driver with memory for an image. If all groups have another format or too little memory,
 * close one of them. Called with the lock held. */
static device_driver *device_find_driver(device_run *run, const gf_format *format, uint64_t bytes) {
    device_driver *empty = NULL, *other = NULL;
    bool news = false; /* for the drivers */
    for (uint32_t i = 0; i < run->driver_count; i++) {
        device_driver *driver = &run->drivers[i];
        if (!device_is_open(driver))
            continue;
        const bool same = gf_format_equal(&driver->format, format);
        if (driver->used == 0)
            empty = empty && empty->size >= driver->size ? empty : driver;
        else if (same && driver->used + bytes <= driver->size)
            return driver;
        else if (same)
            news = driver->closed = true; /* it is full */
        else
            other = driver;
    }
    const bool found = empty && empty->size >= bytes;
    if (!empty && other)
        news = other->closed = true;
    news = news || (!found && !run->waiting_bytes);
    run->waiting_bytes = found ? run->waiting_bytes : bytes;
    if (news)
        pthread_cond_broadcast(&run->batch->changed);
    return found ? empty : NULL;
}

/* Reserve memory of an engine for an image. Return false if the image must wait. If image->driver
 * stays NULL, the file is read to find out how to run it. Called with the lock held. */
static bool device_reserve(device_run *run, device_image *image) {
    const uint64_t bytes = gf_batch_png_bytes(&image->task);
    if (!run->reads_png || (run->starting_devices == 0 && bytes > run->engine_bytes) ||
        (!image->has_parts && device_few_left(run)))
        return true;
    /* A group, and the files that are being uploaded when it is closed. */
    const uint64_t most = GROUP_STREAMS / run->parts + run->batch->at_once;
    const uint64_t files = device_left(run) + 1;
    run->wanted_bytes = bytes * (files < most ? files : most);
    run->wanted_format = image->task.plan->in;
    device_driver *driver = device_find_driver(run, &image->task.plan->in, bytes);
    if (!driver)
        return false;
    image->driver = driver;
    image->png.memory = driver->memory + driver->used;
    image->png.device = driver->device;
    image->png.state = driver->state;
    driver->format = image->task.plan->in;
    driver->used += bytes;
    driver->uploading++;
    return true;
}

/* Run a PNG file in another way, or upload it when there is memory for it: if it has several
 * streams, and was not yet known to. valid: scan is that of the file. */
static void device_refuse(device_run *run, device_image *image, bool valid) {
    const bool several = valid && gf_png_scan_parts(&image->png.file.scan) > 1;
    pthread_mutex_lock(&run->batch->lock);
    if (image->driver)
        image->driver->uploading--;
    image->driver = NULL;
    device_enter(run, image, IMAGE_OPENING);
    image->is_png = several && !image->has_parts && run->reads_png &&
                    gf_batch_png_bytes(&image->task) <= run->engine_bytes;
    image->has_parts = image->is_png;
    const bool small = device_set_bytes(run, image);
    pthread_cond_broadcast(&run->batch->changed);
    pthread_mutex_unlock(&run->batch->lock);
    device_move(run, image, small ? IMAGE_OPENED : IMAGE_LARGE);
}

/* Read a PNG file, and upload it if there is memory for it. */
static void device_read(device_run *run, device_coder *coder, device_image *image) {
    gf_file_batch *batch = run->batch;
    gf_batch_outcome *outcome = &image->outcome;
    gf_batch_png *png = &image->png;
    device_driver *driver = image->driver;
    const double began = gf_now();
    bool intact = false;
    gf_buffer host = {NULL, 0};
    const bool has_host = driver && !png->device->memory->take_host(png->state, &host, NULL);
    unsigned char *file = gf_batch_png_read(&image->task, &host, &coder->file, &png->file.scan);
    pthread_mutex_lock(&batch->lock);
    run->parts = file ? gf_png_scan_parts(&png->file.scan) : 1;
    pthread_mutex_unlock(&batch->lock);
    if (file && has_host)
        outcome->status = gf_batch_png_upload(&image->task, file, &host, png, &intact, NULL);
    if (has_host)
        png->device->memory->return_host(png->state, &host);
    if (!file || !driver) {
        device_refuse(run, image, file != NULL);
        return;
    }
    gf_busy_add(&outcome->made.report.busy[GF_DECODING], (gf_busy){gf_now() - began, 1});
    const bool uploaded = !outcome->status && intact;
    outcome->status = GF_OK; /* otherwise it is run from file to file */
    if (!uploaded)
        device_drop(image);
    pthread_mutex_lock(&batch->lock);
    driver->uploading--;
    device_enter(run, image, uploaded ? IMAGE_UPLOADED : IMAGE_LARGE);
    if (uploaded) {
        image->next = driver->group;
        driver->group = image;
        driver->count++;
        driver->streams += gf_png_scan_parts(&png->file.scan);
        driver->closed = driver->closed || driver->streams >= GROUP_STREAMS;
    } else {
        image->driver = NULL;
    }
    pthread_cond_broadcast(&batch->changed);
    pthread_mutex_unlock(&batch->lock);
}

/* ---- coders ---------------------------------------------------------------------------------- */

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

/* Return whether coders should open items for devices, rather than run them on the CPU. */
static bool device_wants_more(const device_run *run) {
    return !run->batch->with_cpu || (!run->few_left && device_has_group(run));
}

/* Find an item that a coder's CPU engine should run from file to file: one that no device runs,
 * that waits for a device, or the next one. *image: NULL for the next one. While devices run, half
 * of the coders only read and write for them. Called with the lock held. */
static bool device_take_for_cpu(device_run *run, device_image **image, uint64_t *item) {
    gf_file_batch *batch = run->batch;
    device_queue *large = &run->queues[IMAGE_LARGE], *opened = &run->queues[IMAGE_OPENED];
    device_queue *queue = large->first ? large : opened->first ? opened : NULL;
    const bool devices_run = run->active_devices > 0 && run->starting_devices == 0;
    *image = NULL;
    if (devices_run && !run->few_left && run->on_cpu >= (batch->threads + 1) / 2)
        return false;
    if (!queue)
        return gf_batch_may_begin(batch) && gf_batch_begin(batch, item);
    *image = device_take(run, &queue->first);
    *item = (*image)->item;
    if ((*image)->state != IMAGE_RUNNING)
        device_enter(run, *image, IMAGE_RUNNING);
    return true;
}

/* Run an item on the CPU, from file to file. Called with the lock held. */
static void device_run_on_cpu(device_run *run, device_coder *coder, device_image *image,
                              uint64_t item) {
    gf_file_batch *batch = run->batch;
    run->on_cpu++;
    pthread_mutex_unlock(&batch->lock);
    if (image)
        device_drop(image);
    gf_batch_run_item(batch, coder->cpu, item, false);
    pthread_mutex_lock(&batch->lock);
    run->on_cpu--;
    if (image)
        device_enter(run, image, IMAGE_DONE);
    free(image);
    pthread_cond_broadcast(&batch->changed);
}

/* Return whether there is memory for the first open image. Called with the lock held. */
static bool device_has_memory(device_run *run) {
    device_image *image = run->queues[IMAGE_OPENED].first;
    return image && (image->is_png ? device_reserve(run, image)
                                   : run->bytes + image->bytes <= run->max_bytes);
}

/* Run one step for an image, if there is any. Encoding has priority because it frees memory, then
 * decoding or uploading of open images, then a new image for a device, then an item for the CPU.
 * Called with the lock held. */
static bool device_work_once(device_run *run, device_coder *coder) {
    gf_file_batch *batch = run->batch;
    device_queue *opened = &run->queues[IMAGE_OPENED], *finished = &run->queues[IMAGE_FINISHED];
    device_image *image = NULL;
    uint64_t item;
    if (finished->first && (run->starting_devices == 0 || batch->with_cpu)) {
        image = device_take(run, &finished->first);
        pthread_mutex_unlock(&batch->lock);
        device_encode(run, image);
    } else if (device_has_memory(run)) {
        image = device_take(run, &opened->first);
        pthread_mutex_unlock(&batch->lock);
        if (image->is_png)
            device_read(run, coder, image);
        else
            device_decode(run, image);
    } else if (!finished->first && !opened->first && device_may_begin(run) &&
               device_wants_more(run)) {
        const bool begun = gf_batch_begin(batch, &item), reads_png = run->reads_png;
        run->queues[IMAGE_OPENING].count += begun;
        pthread_mutex_unlock(&batch->lock);
        if (begun)
            device_open(run, item, reads_png);
    } else if (coder->cpu && device_take_for_cpu(run, &image, &item)) {
        device_run_on_cpu(run, coder, image, item);
        return true;
    } else {
        return false;
    }
    pthread_mutex_lock(&batch->lock);
    return true;
}

/* Decode and encode until the batch is finished. */
static void *device_work(void *argument) {
    device_coder *coder = argument;
    device_run *run = coder->run;
    gf_file_batch *batch = run->batch;
    pthread_mutex_lock(&batch->lock);
    while (!gf_batch_finished(batch))
        if (!device_work_once(run, coder) && !gf_batch_finished(batch))
            pthread_cond_wait(&batch->changed, &batch->lock);
    pthread_mutex_unlock(&batch->lock);
    return NULL;
}

/* ---- computing PNG files --------------------------------------------------------------------- */

/* Return whether the group of a driver should be computed: it is closed, or no images follow soon.
 * Called with the lock held. */
static bool device_group_is_ready(const device_driver *driver) {
    const device_run *run = driver->run;
    const bool more =
        gf_batch_may_begin(run->batch) || device_count(run, IMAGE_OPENING, IMAGE_DECODING) > 0;
    return driver->used && driver->held == 0 && driver->uploading == 0 &&
           (driver->closed || run->few_left || !more);
}

static device_load *device_decoding(const device_driver *driver) {
    device_run *run = driver->run;
    return &run->decoding[driver->number % run->devices->count];
}

/* Wait until the device has room for a group. If it decoded all groups at once, they would end at
 * the same time: streams hold the shared memory that the encoder needs, and the device would have
 * no work while files are written and read. Called with the lock held. */
static void device_begin_decoding(const device_driver *driver) {
    const device_run *run = driver->run;
    device_load *load = device_decoding(driver);
    while (load->groups == MAX_DECODING ||
           (load->groups && load->streams + driver->streams > MAX_DECODING_STREAMS))
        pthread_cond_wait(&run->batch->changed, &run->batch->lock);
    load->groups++;
    load->streams += driver->streams;
}

static void device_end_decoding(const device_driver *driver) {
    gf_file_batch *batch = driver->run->batch;
    device_load *load = device_decoding(driver);
    pthread_mutex_lock(&batch->lock);
    load->groups--;
    load->streams -= driver->streams;
    pthread_cond_broadcast(&batch->changed);
    pthread_mutex_unlock(&batch->lock);
}

static gf_status device_compute_png(device_driver *driver, device_image *group, size_t count,
                                    gf_error *error) {
    const gf_file_batch *batch = driver->run->batch;
    const gf_plan *plan = group->task.plan;
    gf_batch_png **list = calloc(count, sizeof(gf_batch_png *));
    gf_batch_outcome **outcomes = calloc(count, sizeof(gf_batch_outcome *));
    gf_status status = list && outcomes ? GF_OK : GF_FAILED;
    size_t i = 0;
    for (device_image *image = group; image && !status; image = image->next, i++) {
        list[i] = &image->png;
        outcomes[i] = &image->outcome;
    }
    if (!status)
        status = gf_batch_png_decode(batch, plan, count, list, outcomes, driver->stream, error);
    device_end_decoding(driver);
    if (!status)
        status = gf_batch_png_compute(batch, driver->engine, plan, count, list, outcomes,
                                      driver->stream, error);
    free(list);
    free(outcomes);
    return status;
}

/* Empty the group of a driver: images that are not done are run from file to file. Called with the
 * lock held. */
static void device_empty_group(device_driver *driver, bool done) {
    device_run *run = driver->run;
    for (device_image *image = driver->group, *next; image; image = next) {
        const bool finished = done && image->png.decoded;
        next = image->next;
        driver->held += finished;
        if (!finished) {
            device_drop(image);
            image->driver = NULL;
        }
        device_enter(run, image, finished ? IMAGE_FINISHED : IMAGE_LARGE);
    }
    driver->group = NULL;
    driver->count = 0;
    driver->used = driver->streams = 0;
    driver->closed = false;
    pthread_cond_broadcast(&run->batch->changed);
}

/* The engine of a driver runs no more PNG files. If it was the last one, they are run in other
 * ways. Called with the lock held. */
static void device_stop_png(device_driver *driver) {
    device_run *run = driver->run;
    bool left = false;
    driver->device = NULL;
    for (uint32_t i = 0; i < run->driver_count; i++)
        left = left || run->drivers[i].device;
    run->reads_png = run->reads_png && left;
    pthread_cond_broadcast(&run->batch->changed);
}

/* Compute the group of a driver. If it fails, or the device cannot decode a file, the files are run
 * from file to file, and each reports its own error. Called with the lock held. */
static void device_run_png(device_driver *driver) {
    gf_file_batch *batch = driver->run->batch;
    gf_engine *engine = driver->engine;
    gf_error error = {0};
    gf_status status = GF_OK;
    driver->closed = true;
    if (driver->group)
        device_begin_decoding(driver);
    pthread_mutex_unlock(&batch->lock);
    if (driver->group)
        status = device_compute_png(driver, driver->group, driver->count, &error);
    if (status == GF_NO_BACKEND) {
        engine->cuda_failed = true;
        engine->cuda_error = error;
        gf_batch_note_device_failure(batch, engine);
    }
    pthread_mutex_lock(&batch->lock);
    if (status == GF_NO_BACKEND)
        device_stop_png(driver);
    device_empty_group(driver, !status);
}

/* Return the memory that an engine should have. */
static uint64_t device_wanted(const device_run *run) {
    return run->wanted_bytes < run->engine_bytes ? run->wanted_bytes : run->engine_bytes;
}

/* Return whether an empty driver should allocate memory. Called with the lock held. */
static bool device_needs_memory(const device_driver *driver) {
    const device_run *run = driver->run;
    return device_is_open(driver) && driver->used == 0 && run->wanted_bytes &&
           (driver->size == 0 || driver->size < run->waiting_bytes ||
            (run->waiting_bytes && driver->size < device_wanted(run) / 2));
}

/* Allocate memory for the images of a driver. Called with the lock held. */
static void device_allocate(device_driver *driver) {
    device_run *run = driver->run;
    const uint64_t wanted = device_wanted(run);
    const gf_format format = run->wanted_format;
    void *memory = NULL;
    driver->closed = true; /* no group may begin */
    run->waiting_bytes = 0;
    pthread_mutex_unlock(&run->batch->lock);
    gf_status status = driver->device->memory->workspace(driver->state, (size_t)wanted, &memory,
                                                         &driver->stream, NULL);
    gf_batch_png png = {.memory = memory, .device = driver->device, .state = driver->state};
    if (!status && driver->size == 0)
        status =
            gf_batch_png_warm_up(run->batch, driver->engine, &format, &png, driver->stream, NULL);
    pthread_mutex_lock(&run->batch->lock);
    driver->closed = false;
    driver->memory = memory;
    driver->size = status ? 0 : wanted;
    if (status)
        device_stop_png(driver);
    pthread_cond_broadcast(&run->batch->changed);
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
static void device_share_report(gf_made *made, const gf_made *together, size_t count) {
    const gf_busy decoding = made->report.busy[GF_DECODING];
    gf_report *own = &made->report;
    *made = *together;
    for (int i = 0; i < GF_STAGE_COUNT; i++)
        own->busy[i].seconds /= (double)count;
    own->busy[GF_DECODING] = decoding;
    own->busy[GF_ENCODING] = (gf_busy){0};
    own->start_seconds /= (double)count;
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
        in[i] = gf_memory_source_pixels(image->task.inputs.sources[0]);
        out[i] = (gf_out_pixels){image->out, gf_row_bytes(&plan->out)};
    }
    gf_made made = {.results = {NULL}};
    gf_chain chain = batch->chain;
    chain.options = (gf_file_options){0};
    chain.count = count;
    chain.in[0] = in;
    chain.out = plan->out.width ? out : NULL;
    if (!status)
        status = gf_run_images(engine, &chain, &plan->in, &made, results, NULL);
    i = 0;
    for (device_image *image = group; image && !status; image = image->next, i++) {
        device_share_report(&image->outcome.made, &made, count);
        image->outcome.made.results[0] = results[i];
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

/* Return whether the driver's engine is an additional one, which runs large images and PNG files.
 */
static bool device_is_additional(const device_driver *driver) {
    return driver->number >= driver->run->devices->count;
}

/* Return whether another engine has work: there are more large images, waiting and running, than
 * engines, or PNG files wait. Called with the lock held. */
static bool device_needs_engine(const device_run *run) {
    if (run->starting_devices || run->no_more_engines)
        return false;
    return (!run->batch->with_cpu && run->engines < run->max_engines &&
            device_count(run, IMAGE_LARGE, IMAGE_RUNNING) > run->engines) ||
           (run->wanted_bytes && run->reads_png && !run->few_left && !device_has_group(run));
}

/* Wait until another engine has work, and this driver is the next to open one. Return false if the
 * batch ends first. */
static bool device_wait_to_open(const device_driver *driver) {
    device_run *run = driver->run;
    gf_file_batch *batch = run->batch;
    bool open = false;
    pthread_mutex_lock(&batch->lock);
    while (!open && !gf_batch_finished(batch)) {
        open = run->engines == driver->number && device_needs_engine(run);
        if (!open)
            pthread_cond_wait(&batch->changed, &batch->lock);
    }
    run->engines += open;
    pthread_cond_broadcast(&batch->changed); /* the next driver may open one */
    pthread_mutex_unlock(&batch->lock);
    return open;
}

/* Find out whether the engine of a driver runs PNG files, and how much memory it may use. */
static void device_find_functions(device_driver *driver) {
    device_run *run = driver->run;
    const gf_backend *device = NULL;
    const double share = MEMORY_SHARE * run->devices->count / run->driver_count;
    const bool found =
        !gf_engine_device(driver->engine, &device, &driver->state, NULL) && device->memory;
    uint64_t bytes =
        found ? (uint64_t)((double)device->memory->free_bytes(driver->state) * share) : 0;
    bytes = bytes > ENCODER_BYTES ? bytes - ENCODER_BYTES : 0;
    /* The rest is for the filtered rows of the input image. */
    bytes = run->batch->chain.filter->info.makes_image ? bytes / 3 * 2 : bytes / 2;
    pthread_mutex_lock(&run->batch->lock);
    if (!device_is_additional(driver)) {
        run->reads_png = run->reads_png && found;
        run->engine_bytes = run->engine_bytes < bytes ? run->engine_bytes : bytes;
    }
    driver->device = found && run->reads_png ? device : NULL;
    pthread_mutex_unlock(&run->batch->lock);
}

/* Open the driver's engine. If auto's device does not start, the cpu backend runs the batch. */
static gf_status device_open_engine(device_driver *driver, gf_error *error) {
    device_run *run = driver->run;
    gf_file_batch *batch = run->batch;
    const bool is_auto = gf_batch_is_auto(batch);
    const char *device = run->devices->names[driver->number % run->devices->count];
    gf_engine_options options = batch->options.engine;
    options.devices = device[0] ? device : NULL;
    options.threads = run->threads_per_engine;
    if (is_auto)
        options.backend = "cuda";
    gf_status status = gf_engine_open(&options, &driver->engine, error);
    if (status && is_auto && !device_is_additional(driver)) {
        pthread_mutex_lock(&batch->lock);
        run->no_more_engines = true;
        snprintf(batch->reason, sizeof batch->reason, "%.*s", (int)sizeof batch->reason - 1,
                 error->message);
        pthread_mutex_unlock(&batch->lock);
        if (batch->with_cpu)
            return status;
        options.backend = "cpu";
        options.devices = NULL;
        options.threads = batch->threads;
        status = gf_engine_open(&options, &driver->engine, error);
    }
    if (status)
        return status;
    driver->engine->may_fall_back = is_auto && !batch->with_cpu;
    device_find_functions(driver);
    return GF_OK;
}

/* Run images until the batch is finished or the device fails. Return the image that another engine
 * must run, if any. */
static device_image *device_serve(device_driver *driver) {
    device_run *run = driver->run;
    gf_file_batch *batch = run->batch;
    gf_engine *engine = driver->engine;
    const bool additional = device_is_additional(driver);
    device_image *deferred = NULL;
    pthread_mutex_lock(&batch->lock);
    while (!deferred && !gf_batch_finished(batch) && !gf_batch_device_failed(engine)) {
        const bool started = run->starting_devices == 0;
        if (started && device_group_is_ready(driver))
            device_run_png(driver);
        else if (started && device_needs_memory(driver))
            device_allocate(driver);
        else if (started && !additional && run->queues[IMAGE_WAITING].first)
            device_run_group(run, engine);
        else if (started && !batch->with_cpu && driver->number < run->max_engines &&
                 run->queues[IMAGE_LARGE].first)
            deferred = device_run_large(run, engine, additional);
        else
            pthread_cond_wait(&batch->changed, &batch->lock);
    }
    /* Coders use the memory of the engine. After an error they do not write what is held. */
    driver->device = NULL;
    while (driver->uploading || (driver->held && !batch->error.status))
        pthread_cond_wait(&batch->changed, &batch->lock);
    device_empty_group(driver, false);
    pthread_mutex_unlock(&batch->lock);
    return deferred;
}

/* End a driver before the batch: its engine did not open, or its device failed. If no device is
 * left, the batch ends, unless CPU threads run it. */
static void device_give_up(device_driver *driver, bool opened, const gf_error *error) {
    device_run *run = driver->run;
    gf_file_batch *batch = run->batch;
    const bool additional = device_is_additional(driver);
    pthread_mutex_lock(&batch->lock);
    run->engines--;
    run->no_more_engines = true;
    run->active_devices -= !additional;
    run->starting_devices -= batch->with_cpu && !additional && !opened;
    const bool last = !additional && run->active_devices == 0 && !gf_batch_finished(batch);
    if (last)
        run->reads_png = false;
    pthread_cond_broadcast(&batch->changed);
    pthread_mutex_unlock(&batch->lock);
    if (batch->with_cpu)
        return;
    if (!additional && !opened)
        gf_batch_abort(batch, error);
    else if (last)
        gf_batch_abort(batch, &driver->engine->cuda_error);
}

/* Drive an engine. Its device starts while the first images are decoded. If the engine fails,
 * others continue its work. */
static void *device_drive(void *argument) {
    device_driver *driver = argument;
    device_run *run = driver->run;
    gf_file_batch *batch = run->batch;
    device_image *deferred = NULL;
    gf_error error = {0};
    const bool additional = device_is_additional(driver);
    if (additional && !device_wait_to_open(driver))
        return NULL;
    const bool opened = device_open_engine(driver, &error) == GF_OK;
    if (opened && !additional) {
        pthread_mutex_lock(&batch->lock);
        run->starting_devices--;
        pthread_cond_broadcast(&batch->changed);
        pthread_mutex_unlock(&batch->lock);
    }
    if (opened)
        deferred = device_serve(driver);
    if (!opened || deferred || gf_batch_device_failed(driver->engine))
        device_give_up(driver, opened, &error);
    if (deferred) {
        gf_engine_close(
            driver->engine); /* first: frees memory for the engine that runs the image */
        driver->engine = NULL;
        device_move(run, deferred, IMAGE_LARGE);
    }
    return NULL;
}

/* ---- the whole batch ------------------------------------------------------------------------- */

/* Prepare the coders. */
static gf_status device_open_coders(device_run *run, uint32_t coders, gf_error *error) {
    gf_engine_options options = run->batch->options.engine;
    gf_status status = GF_OK;
    options.backend = "cpu";
    options.devices = NULL;
    options.threads = run->batch->threads_per_file;
    options.unthreaded = options.threads == 1;
    for (uint32_t i = 0; i < coders && !status; i++) {
        run->coders[i].run = run;
        if (run->batch->with_cpu)
            status = gf_engine_open(&options, &run->coders[i].cpu, error);
    }
    return status;
}

/* Start the threads. Every device needs a driver; additional drivers and coders are optional. The
 * calling thread is the first coder. */
static void device_run_threads(device_run *run, uint32_t coders) {
    gf_file_batch *batch = run->batch;
    gf_error error;
    uint32_t driving = 0, started = 1;
    int failed = 0;
    if (device_open_coders(run, coders, &error))
        gf_batch_abort(batch, &error);
    for (uint32_t i = 0; i < run->driver_count; i++)
        run->drivers[i] = (device_driver){.run = run, .number = i};
    for (device_driver *driver = run->drivers; driving < run->driver_count && !failed; driver++) {
        failed = gf_thread_start(&driver->thread, device_drive, driver);
        driving += !failed;
    }
    if (driving < run->devices->count) {
        (void)gf_fail(&error, GF_FAILED, "%s: cannot start a thread: %s",
                      batch->chain.filter->info.name, strerror(failed));
        gf_batch_abort(batch, &error);
    }
    while (started < coders &&
           gf_thread_start(&run->coders[started].thread, device_work, &run->coders[started]) == 0)
        started++;
    device_work(&run->coders[0]);
    for (uint32_t i = 1; i < started; i++)
        pthread_join(run->coders[i].thread, NULL);
    for (uint32_t i = 0; i < driving; i++)
        pthread_join(run->drivers[i].thread, NULL);
    for (uint32_t i = 0; i < driving; i++) /* coders no longer use their memory */
        gf_engine_close(run->drivers[i].engine);
    for (uint32_t i = 0; i < coders; i++) {
        gf_engine_close(run->coders[i].cpu);
        free(run->coders[i].file.data);
    }
}

void gf_batch_run_on_devices(gf_file_batch *batch, const gf_batch_devices *devices) {
    device_run *run = calloc(1, sizeof *run);
    if (!run) {
        gf_error error;
        (void)gf_fail_memory(&error, batch->chain.filter->info.name, sizeof *run, "a batch");
        gf_batch_abort(batch, &error);
        return;
    }
    run->batch = batch;
    run->devices = devices;
    run->parts = batch->parts ? batch->parts : 1;
    run->max_bytes = batch->options.engine.max_memory;
    run->starting_devices = run->active_devices = run->engines = devices->count;
    run->reads_png = gf_batch_is_auto(batch) || strcmp(batch->options.engine.backend, "cuda") == 0;
    run->engine_bytes = MAX_ENGINE_BYTES;
    for (int i = 0; i < IMAGE_STATES; i++)
        run->queues[i].last = &run->queues[i].first;
    if (run->max_bytes == 0 || run->max_bytes > MAX_TOTAL_BYTES)
        run->max_bytes = MAX_TOTAL_BYTES;
    const uint32_t engines = devices->count * gf_batch_engines(batch, devices->count);
    const uint64_t expected = gf_batch_expected(batch);
    const uint32_t at_once = expected < engines ? (uint32_t)expected : engines;
    run->max_engines = at_once > devices->count ? at_once : devices->count;
    run->driver_count = run->reads_png && run->max_engines == engines && engines > devices->count
                            ? devices->count * MAX_PNG_ENGINES
                            : run->max_engines;
    run->threads_per_engine = (batch->threads + at_once - 1) / at_once;
    /* In a shared batch, one thread may block in source.take while the others code. */
    const uint32_t coders = batch->at_once + (gf_batch_is_shared(batch) ? 1 : 0);
    device_run_threads(run, coders < GF_BATCH_MAX_THREADS ? coders : GF_BATCH_MAX_THREADS);
    for (int i = 0; i < IMAGE_STATES; i++)
        while (run->queues[i].first) {
            device_image *image = device_take(run, &run->queues[i].first);
            gf_made_free_results(&image->outcome.made);
            device_drop(image);
            free(image);
        }
    free(run);
}
