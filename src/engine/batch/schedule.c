/* Scheduler of a batch: the tables of transitions, and the choice of the next step of a worker. */
#include "engine/batch/schedule.h"

/* Maximum items in memory of devices or waiting for an engine. */
#define MAX_IMAGES UINT64_C(4096)
/* Deflate streams that a device decodes together, if as many follow: each stream is slow. */
#define GROUP_STREAMS 1024u
/* Maximum groups that a device decodes at once: the other half is encoded, written and read. And
 * the maximum of their streams, unless a group has more: they occupy the device. */
#define MAX_DECODING (GF_BATCH_MAX_PNG_ENGINES / 2)
#define MAX_DECODING_STREAMS 3072u
/* Maximum device memory for the images of an engine. */
#define MAX_ENGINE_BYTES (UINT64_C(4) << 30)

#define ANY_STATE 255
#define BY_ANY (GF_BY_CPU | GF_BY_CODER | GF_BY_DRIVER)
#define BY_RUNNER (GF_BY_CPU | GF_BY_DRIVER)
#define BY_HOST (GF_BY_CPU | GF_BY_CODER)

/* No item is lost: every state but the last is a queue, from which a worker takes it, or has a rule
 * for each result of its step. Every path ends: only RUNNING leads back, and its driver leaves. */
const gf_schedule_rule gf_item_rules[] = {
    {GF_ITEM_NEXT, GF_DO_START, GF_ITEM_NEW, BY_ANY},
    {GF_ITEM_NEXT, GF_DO_ASK, GF_ITEM_ASKING, BY_ANY},
    {GF_ITEM_ASKING, GF_IS_DONE, GF_ITEM_NEW, BY_ANY},
    {GF_ITEM_ASKING, GF_IS_REFUSED, GF_ITEM_NEXT, BY_ANY},
    {GF_ITEM_ASKING, GF_IS_LOST, GF_ITEM_NEXT, BY_ANY},
    {GF_ITEM_NEW, GF_DO_OPEN, GF_ITEM_OPENING, GF_BY_CODER},
    {GF_ITEM_NEW, GF_DO_RUN, GF_ITEM_RUNNING, BY_RUNNER},
    {GF_ITEM_OPENING, GF_IS_DONE, GF_ITEM_OPENED, GF_BY_CODER},
    {GF_ITEM_OPENING, GF_IS_REFUSED, GF_ITEM_SINGLE, GF_BY_CODER},
    {GF_ITEM_OPENED, GF_DO_UPLOAD, GF_ITEM_UPLOADING, GF_BY_CODER},
    {GF_ITEM_OPENED, GF_IS_REFUSED, GF_ITEM_SINGLE, GF_BY_CODER}, /* no engine decodes it */
    {GF_ITEM_OPENED, GF_DO_RUN, GF_ITEM_RUNNING, GF_BY_CPU},
    {GF_ITEM_UPLOADING, GF_IS_DONE, GF_ITEM_UPLOADED, GF_BY_CODER},
    {GF_ITEM_UPLOADING, GF_IS_REFUSED, GF_ITEM_SINGLE, GF_BY_CODER},
    {GF_ITEM_UPLOADED, GF_DO_DECODE, GF_ITEM_COMPUTING, GF_BY_DRIVER},
    {GF_ITEM_UPLOADED, GF_IS_REFUSED, GF_ITEM_SINGLE, GF_BY_DRIVER}, /* the driver leaves */
    {GF_ITEM_COMPUTING, GF_IS_DONE, GF_ITEM_COMPUTED, GF_BY_DRIVER},
    {GF_ITEM_COMPUTING, GF_IS_REFUSED, GF_ITEM_SINGLE, GF_BY_DRIVER},
    {GF_ITEM_COMPUTED, GF_DO_WRITE, GF_ITEM_WRITING, GF_BY_CODER},
    {GF_ITEM_WRITING, GF_IS_DONE, GF_ITEM_FINISHED, GF_BY_CODER},
    {GF_ITEM_SINGLE, GF_DO_RUN, GF_ITEM_RUNNING, BY_RUNNER},
    {GF_ITEM_RUNNING, GF_IS_DONE, GF_ITEM_FINISHED, BY_RUNNER},
    {GF_ITEM_RUNNING, GF_IS_LOST, GF_ITEM_SINGLE, GF_BY_DRIVER}, /* the driver leaves */
    {GF_ITEM_FINISHED, GF_DO_REPORT, GF_ITEM_REPORTING, BY_HOST},
    {GF_ITEM_REPORTING, GF_IS_DONE, GF_ITEM_REPORTED, BY_HOST},
    {GF_ITEM_REPORTING, GF_IS_REFUSED, GF_ITEM_REPORTED, BY_HOST},
    {0},
};

/* Memory is reserved for files in the states EMPTY and FILLING only. A driver returns there when
 * all of them are written or refused, and a driver that leaves does not return. */
const gf_schedule_rule gf_driver_rules[] = {
    {GF_DRIVER_CLOSED, GF_DO_OPEN_ENGINE, GF_DRIVER_OPENING, GF_BY_DRIVER},
    {GF_DRIVER_OPENING, GF_IS_DONE, GF_DRIVER_BARE, GF_BY_DRIVER},
    {GF_DRIVER_OPENING, GF_IS_REFUSED, GF_DRIVER_PLAIN, GF_BY_DRIVER},
    {GF_DRIVER_BARE, GF_DO_ALLOCATE, GF_DRIVER_ALLOCATING, GF_BY_DRIVER},
    {GF_DRIVER_EMPTY, GF_DO_ALLOCATE, GF_DRIVER_ALLOCATING, GF_BY_DRIVER},
    {GF_DRIVER_ALLOCATING, GF_IS_DONE, GF_DRIVER_EMPTY, GF_BY_DRIVER},
    {GF_DRIVER_ALLOCATING, GF_IS_REFUSED, GF_DRIVER_PLAIN, GF_BY_DRIVER},
    {GF_DRIVER_EMPTY, GF_DO_UPLOAD, GF_DRIVER_FILLING, GF_BY_CODER},
    {GF_DRIVER_FILLING, GF_DO_UPLOAD, GF_DRIVER_FILLING, GF_BY_CODER},
    {GF_DRIVER_FILLING, GF_IS_CLOSED, GF_DRIVER_FULL, GF_BY_CODER | GF_BY_DRIVER},
    {GF_DRIVER_FILLING, GF_IS_CLEAR, GF_DRIVER_EMPTY, GF_BY_CODER}, /* all files are refused */
    {GF_DRIVER_FULL, GF_IS_CLEAR, GF_DRIVER_EMPTY, GF_BY_CODER},
    {GF_DRIVER_FULL, GF_DO_DECODE, GF_DRIVER_DECODING, GF_BY_DRIVER},
    {GF_DRIVER_DECODING, GF_IS_DONE, GF_DRIVER_ENCODING, GF_BY_DRIVER},
    {GF_DRIVER_DECODING, GF_IS_REFUSED, GF_DRIVER_EMPTY, GF_BY_DRIVER},
    {GF_DRIVER_ENCODING, GF_IS_DONE, GF_DRIVER_WRITING, GF_BY_DRIVER},
    {GF_DRIVER_ENCODING, GF_IS_REFUSED, GF_DRIVER_EMPTY, GF_BY_DRIVER},
    {GF_DRIVER_WRITING, GF_IS_CLEAR, GF_DRIVER_EMPTY, GF_BY_CODER | GF_BY_DRIVER},
    {ANY_STATE, GF_IS_LOST, GF_DRIVER_LEAVING, GF_BY_DRIVER},
    {GF_DRIVER_LEAVING, GF_DO_CLOSE_ENGINE, GF_DRIVER_CLOSING, GF_BY_DRIVER},
    {GF_DRIVER_CLOSING, GF_IS_DONE, GF_DRIVER_GONE, GF_BY_DRIVER},
    {0},
};

/* ---- transitions ----------------------------------------------------------------------------- */

/* Change a state by a table. */
static unsigned schedule_next_state(gf_schedule *schedule, const gf_schedule_rule *rule,
                                    unsigned state, gf_event event, uint32_t kinds) {
    for (; rule->by; rule++)
        if ((rule->from == state || rule->from == ANY_STATE) && rule->event == event &&
            rule->by & kinds)
            return rule->to;
    schedule->broken = true;
    return state;
}

static bool schedule_is_queue(gf_item_state state) {
    return state == GF_ITEM_NEW || state == GF_ITEM_OPENED || state == GF_ITEM_COMPUTED ||
           state == GF_ITEM_SINGLE || state == GF_ITEM_FINISHED;
}

static gf_schedule_item *schedule_dequeue(gf_schedule_queue *queue) {
    gf_schedule_item *item = queue->first;
    queue->first = item->next;
    item->next = NULL;
    if (!queue->first)
        queue->last = &queue->first;
    return item;
}

/* Move an item to another state, at the end of its queue. Items to be reported in order are sorted.
 * An item that leaves a queue is its first one. */
static void schedule_move(gf_schedule *schedule, gf_schedule_item *item, gf_event event,
                          uint32_t kinds) {
    if (schedule_is_queue(item->state))
        schedule_dequeue(&schedule->queues[item->state]);
    schedule->counts[item->state] -= item->state != GF_ITEM_NEXT;
    item->state = (gf_item_state)schedule_next_state(schedule, schedule->item_rules, item->state,
                                                     event, kinds);
    schedule->counts[item->state] += item->state != GF_ITEM_NEXT;
    if (!schedule_is_queue(item->state))
        return;
    gf_schedule_queue *queue = &schedule->queues[item->state];
    gf_schedule_item **at = queue->last;
    if (schedule->window && item->state == GF_ITEM_FINISHED)
        for (at = &queue->first; *at && (*at)->number < item->number;)
            at = &(*at)->next;
    item->next = *at;
    *at = item;
    if (!item->next)
        queue->last = &item->next;
}

static void schedule_turn(gf_schedule *schedule, gf_schedule_driver *driver, gf_event event,
                          uint32_t kinds) {
    schedule->in_state[driver->state]--;
    driver->state = (gf_driver_state)schedule_next_state(schedule, schedule->driver_rules,
                                                         driver->state, event, kinds);
    schedule->in_state[driver->state]++;
    if (driver->state == GF_DRIVER_EMPTY)
        driver->used = 0;
}

/* Give a worker its next step. Return true. */
static bool schedule_assign(gf_schedule *schedule, gf_schedule_worker *worker, gf_event step,
                            gf_schedule_item *item) {
    worker->step = step;
    worker->item = item;
    if (schedule->wake)
        schedule->wake(schedule->context, (uint32_t)(worker - schedule->workers));
    return true;
}

static uint32_t schedule_kinds(const gf_schedule *schedule, const gf_schedule_worker *worker) {
    return worker < schedule->workers + schedule->coders ? schedule->coder_kinds : GF_BY_DRIVER;
}

/* Give a worker the first item of a queue, if there is one. */
static bool schedule_take(gf_schedule *schedule, gf_schedule_worker *worker, gf_item_state queue,
                          gf_event step) {
    gf_schedule_item *item = schedule->queues[queue].first;
    if (!item)
        return false;
    schedule_move(schedule, item, step, schedule_kinds(schedule, worker));
    return schedule_assign(schedule, worker, step, item);
}

/* ---- what is left ---------------------------------------------------------------------------- */

/* Return the number of items, or drivers, in a range of states. */
static uint64_t schedule_sum(const uint64_t *counts, unsigned first, unsigned last) {
    uint64_t sum = 0;
    for (unsigned state = first; state <= last; state++)
        sum += counts[state];
    return sum;
}

/* Return the number of engines that are open or being opened. */
static uint64_t schedule_engines(const gf_schedule *schedule) {
    return schedule_sum(schedule->in_state, GF_DRIVER_OPENING, GF_DRIVER_CLOSING);
}

static bool schedule_has_more(const gf_schedule *schedule) {
    return !schedule->stop && !schedule->aborted &&
           (schedule->shared || schedule->begun < schedule->count);
}

/* Return whether an item may be started now: the window of unreported items is not full, and a slow
 * report holds up the workers. */
static bool schedule_may_begin(const gf_schedule *schedule) {
    return schedule_has_more(schedule) && !schedule->counts[GF_ITEM_ASKING] &&
           (schedule->window ? schedule->begun < schedule->reported + schedule->window
                             : !schedule->counts[GF_ITEM_FINISHED]);
}

/* Return whether engines run PNG files, or may do so when they are open. */
static bool schedule_reads_png(const gf_schedule *schedule) {
    return schedule->may_read_png &&
           (schedule->starting ||
            schedule_sum(schedule->in_state, GF_DRIVER_BARE, GF_DRIVER_WRITING));
}

/* Return whether there is a group to which files may be added. */
static bool schedule_has_group(const gf_schedule *schedule) {
    return schedule->in_state[GF_DRIVER_BARE] || schedule->in_state[GF_DRIVER_EMPTY] ||
           schedule->in_state[GF_DRIVER_FILLING];
}

/* Return the number of items that are not yet in memory. */
static uint64_t schedule_left(const gf_schedule *schedule) {
    const uint64_t expected = schedule->expected, begun = schedule->begun;
    return (expected > begun ? expected - begun : 0) +
           schedule_sum(schedule->counts, GF_ITEM_NEW, GF_ITEM_UPLOADING);
}

/* Return whether coders may open a new item for devices, rather than leave it to CPU workers. In a
 * shared batch, start no more single items than there are engines: the kind of a file is known only
 * after the start, and another process may be free to run the item. */
static bool schedule_may_open(const gf_schedule *schedule) {
    const uint64_t *counts = schedule->counts;
    const uint64_t engines =
        schedule->no_more_engines ? schedule_engines(schedule) : schedule->engines;
    const uint64_t single = schedule_sum(schedule->counts, GF_ITEM_NEW, GF_ITEM_OPENED) +
                            schedule_sum(schedule->counts, GF_ITEM_SINGLE, GF_ITEM_RUNNING);
    return (counts[GF_ITEM_NEW] || schedule_may_begin(schedule)) && schedule_reads_png(schedule) &&
           (!schedule->with_cpu || (!schedule->few_left && schedule_has_group(schedule))) &&
           (counts[GF_ITEM_NEW] || !schedule->shared || single < engines) &&
           schedule_sum(schedule->counts, GF_ITEM_UPLOADING, GF_ITEM_SINGLE) < schedule->max_images;
}

/* ---- coders and CPU workers ------------------------------------------------------------------ */

/* Give a worker a new item, or the next one of the list. A shared list takes a step to ask. */
static bool schedule_take_new(gf_schedule *schedule, gf_schedule_worker *worker, gf_event step) {
    gf_schedule_item *item = worker->spare;
    const gf_event start = schedule->shared ? GF_DO_ASK : GF_DO_START;
    if (!schedule->queues[GF_ITEM_NEW].first) {
        if (!schedule_may_begin(schedule) || !item)
            return false;
        worker->spare = NULL;
        item->number = schedule->begun;
        schedule_move(schedule, item, start, schedule_kinds(schedule, worker));
        if (start == GF_DO_ASK)
            return schedule_assign(schedule, worker, start, item);
        schedule->begun++;
    }
    return schedule_take(schedule, worker, GF_ITEM_NEW, step);
}

/* Find a driver with memory for a file. If the format or memory of no group fits, close one. */
static gf_schedule_driver *schedule_find_driver(gf_schedule *schedule, const gf_format *format,
                                                uint64_t bytes) {
    gf_schedule_driver *empty = NULL, *other = NULL;
    for (uint32_t i = 0; i < schedule->driver_count; i++) {
        gf_schedule_driver *driver = &schedule->drivers[i];
        if (driver->state == GF_DRIVER_BARE || driver->state == GF_DRIVER_EMPTY)
            empty = empty && empty->size >= driver->size ? empty : driver;
        else if (driver->state != GF_DRIVER_FILLING)
            continue;
        else if (!gf_format_equal(&driver->format, format))
            other = driver;
        else if (driver->used + bytes <= driver->size)
            return driver;
        else
            schedule_turn(schedule, driver, GF_IS_CLOSED, GF_BY_CODER);
    }
    if (empty && empty->size >= bytes)
        return empty;
    if (!empty && other)
        schedule_turn(schedule, other, GF_IS_CLOSED, GF_BY_CODER);
    return NULL;
}

/* Reserve memory to upload an opened PNG file, or refuse it; GF_DO_NOTHING: it must wait. */
static gf_event schedule_place(gf_schedule *schedule, gf_schedule_item *item) {
    const uint64_t bytes = item->bytes;
    if (!schedule_reads_png(schedule) || (!schedule->starting && bytes > schedule->engine_bytes))
        return GF_IS_REFUSED;
    /* A group, and the files that are being uploaded when it is closed. */
    const uint64_t most = schedule->max_streams / schedule->parts + schedule->at_once;
    const uint64_t files = schedule_left(schedule);
    schedule->wanted_bytes = bytes * (files < most ? files : most);
    schedule->wanted_format = item->format;
    gf_schedule_driver *driver = schedule_find_driver(schedule, &item->format, bytes);
    if (!driver)
        return GF_DO_NOTHING;
    schedule_turn(schedule, driver, GF_DO_UPLOAD, GF_BY_CODER);
    item->driver = (uint32_t)(driver - schedule->drivers);
    item->offset = driver->used;
    driver->format = item->format;
    driver->used += bytes;
    driver->uploading++;
    return GF_DO_UPLOAD;
}

/* Return whether a CPU worker may take an item: always without devices. Otherwise half of the
 * threads only read and write for them. */
static bool schedule_cpu_may_run(const gf_schedule *schedule) {
    return schedule->coder_kinds & GF_BY_CPU &&
           (!schedule_engines(schedule) ||
            (schedule->with_cpu &&
             (schedule->starting || schedule->few_left ||
              schedule->counts[GF_ITEM_RUNNING] < (schedule->at_once + 1) / 2)));
}

/* Give a coder or CPU worker its next step, if it has one. Reports come first. Writing has priority
 * as it frees memory, then uploading, then a new file for a device, then an item for the CPU. */
static bool schedule_serve_coder(gf_schedule *schedule, gf_schedule_worker *worker) {
    const gf_schedule_item *finished = schedule->queues[GF_ITEM_FINISHED].first;
    gf_schedule_item **opened = &schedule->queues[GF_ITEM_OPENED].first;
    gf_event event;
    /* Find out whether devices decode no other files of one stream: a device decodes a stream
     * slowly, but many at once. CPU threads would finish the files that are left before it finishes
     * one. If they do not run whole items, that is decided by the number of all files. */
    const uint64_t files = schedule->with_cpu ? schedule_left(schedule) : schedule->expected;
    if (schedule->parts == 1 && (double)files < schedule->few)
        schedule->few_left = true;
    if (finished && !schedule->counts[GF_ITEM_REPORTING] &&
        (!schedule->window || schedule->aborted || finished->number == schedule->reported))
        return schedule_take(schedule, worker, GF_ITEM_FINISHED, GF_DO_REPORT);
    if (schedule->aborted)
        return false;
    if (schedule_take(schedule, worker, GF_ITEM_COMPUTED, GF_DO_WRITE))
        return true;
    while (*opened && !schedule->broken &&
           (event = schedule_place(schedule, *opened)) != GF_DO_NOTHING) {
        if (event == GF_DO_UPLOAD)
            return schedule_take(schedule, worker, GF_ITEM_OPENED, event);
        schedule_move(schedule, *opened, event, GF_BY_CODER);
    }
    if (!*opened && schedule_may_open(schedule) &&
        schedule_take_new(schedule, worker, GF_DO_OPEN)) {
        worker->item->max_bytes = schedule->starting ? UINT64_MAX : schedule->engine_bytes;
        worker->item->several_parts = schedule->few_left;
        return true;
    }
    return schedule_cpu_may_run(schedule) &&
           (schedule_take(schedule, worker, GF_ITEM_SINGLE, GF_DO_RUN) ||
            schedule_take(schedule, worker, GF_ITEM_OPENED, GF_DO_RUN) ||
            schedule_take_new(schedule, worker, GF_DO_RUN));
}

/* ---- drivers --------------------------------------------------------------------------------- */

/* Return whether PNG files wait, or more items than engines run on their own or wait to do so. */
static bool schedule_needs_engine(const gf_schedule *schedule) {
    const uint64_t engines = schedule_engines(schedule);
    const uint64_t *counts = schedule->counts;
    const bool reads_png = schedule_reads_png(schedule);
    const uint64_t single = counts[GF_ITEM_SINGLE] + counts[GF_ITEM_RUNNING] +
                            (!reads_png && schedule_may_begin(schedule));
    return !schedule->starting && !schedule->no_more_engines &&
           ((!schedule->with_cpu && engines < schedule->engines && single > engines) ||
            (schedule->wanted_bytes && reads_png && !schedule->few_left &&
             !schedule_has_group(schedule)));
}

/* Return whether an empty engine should have memory, or more: a file waits for it. */
static bool schedule_needs_memory(const gf_schedule *schedule, const gf_schedule_driver *driver) {
    const gf_schedule_item *opened = schedule->queues[GF_ITEM_OPENED].first;
    const uint64_t wanted = gf_min(schedule->wanted_bytes, schedule->engine_bytes);
    return (driver->state == GF_DRIVER_BARE && wanted) ||
           (driver->state == GF_DRIVER_EMPTY && opened && driver->size < wanted &&
            (driver->size < opened->bytes || driver->size < wanted / 2));
}

/* Return whether the device has room for a group. If it decoded all groups at once, they would end
 * at the same time: streams hold the shared memory that the encoder needs, and the device would
 * have no work while files are written and read. */
static bool schedule_may_decode(const gf_schedule *schedule, uint32_t number) {
    uint32_t groups = 0;
    uint64_t streams = schedule->drivers[number].streams;
    for (uint32_t i = number % schedule->devices; i < schedule->driver_count;
         i += schedule->devices)
        if (schedule->drivers[i].state == GF_DRIVER_DECODING) {
            groups++;
            streams += schedule->drivers[i].streams;
        }
    return groups == 0 || (groups < MAX_DECODING && streams <= MAX_DECODING_STREAMS);
}

/* Begin to compute a group, if it is complete (no files follow soon) and the device has room. */
static bool schedule_decode(gf_schedule *schedule, gf_schedule_worker *worker,
                            gf_schedule_driver *driver) {
    const bool more = schedule_may_open(schedule) ||
                      schedule_sum(schedule->counts, GF_ITEM_NEW, GF_ITEM_UPLOADING) > 0;
    if (driver->state == GF_DRIVER_FILLING && !driver->uploading && (schedule->few_left || !more))
        schedule_turn(schedule, driver, GF_IS_CLOSED, GF_BY_DRIVER);
    if (driver->state != GF_DRIVER_FULL || driver->uploading ||
        !schedule_may_decode(schedule, (uint32_t)(driver - schedule->drivers)))
        return false;
    for (gf_schedule_item *item = driver->group; item; item = item->next)
        schedule_move(schedule, item, GF_DO_DECODE, GF_BY_DRIVER);
    schedule_turn(schedule, driver, GF_DO_DECODE, GF_BY_DRIVER);
    return schedule_assign(schedule, worker, GF_DO_DECODE, NULL);
}

/* Give a driver its next step, if it has one. Devices compute nothing before all have started: if
 * one cannot start, the batch ends as if it had not begun. An engine that is left is closed before
 * others run its item: that frees memory for it. */
static bool schedule_serve_driver(gf_schedule *schedule, gf_schedule_worker *worker,
                                  gf_schedule_driver *driver) {
    const uint64_t unreported = schedule_sum(schedule->counts, GF_ITEM_RUNNING, GF_ITEM_REPORTING);
    const uint32_t number = (uint32_t)(driver - schedule->drivers);
    gf_event event = GF_DO_NOTHING;
    if (schedule->aborted)
        return false;
    if (driver->state == GF_DRIVER_ENCODING)
        return schedule_assign(schedule, worker, GF_DO_ENCODE, NULL);
    if (!schedule->starting && schedule_decode(schedule, worker, driver))
        return true;
    if (driver->state == GF_DRIVER_CLOSED) { /* additional engines are opened in turn */
        if (number < schedule->devices ||
            (number == schedule_engines(schedule) && schedule_needs_engine(schedule)))
            event = GF_DO_OPEN_ENGINE;
    } else if (driver->state == GF_DRIVER_LEAVING) {
        event = driver->uploading + driver->held ? GF_DO_NOTHING : GF_DO_CLOSE_ENGINE;
    } else if (!schedule->starting && schedule_needs_memory(schedule, driver)) {
        driver->wanted = gf_min(schedule->wanted_bytes, schedule->engine_bytes);
        driver->format = schedule->wanted_format;
        event = GF_DO_ALLOCATE;
    }
    if (event) {
        schedule_turn(schedule, driver, event, GF_BY_DRIVER);
        return schedule_assign(schedule, worker, event, NULL);
    }
    if (driver->state < GF_DRIVER_PLAIN || driver->state >= GF_DRIVER_LEAVING ||
        driver->state == GF_DRIVER_FULL || schedule->starting || schedule->with_cpu ||
        schedule->counts[GF_ITEM_RUNNING] >= schedule->engines ||
        schedule_sum(schedule->in_state, GF_DRIVER_LEAVING, GF_DRIVER_CLOSING))
        return false;
    /* Another process may be free to run an item of a shared list. */
    return schedule_take(schedule, worker, GF_ITEM_SINGLE, GF_DO_RUN) ||
           (!schedule_reads_png(schedule) &&
            (!schedule->shared || unreported < schedule->engines) &&
            schedule_take_new(schedule, worker, GF_DO_RUN));
}

/* ---- ends of steps --------------------------------------------------------------------------- */

/* An upload has ended. The files of an engine that is left run on their own. */
static void schedule_end_upload(gf_schedule *schedule, gf_schedule_item *item, gf_event result) {
    gf_schedule_driver *driver = &schedule->drivers[item->driver];
    const bool leaving = driver->state == GF_DRIVER_LEAVING;
    driver->uploading--;
    schedule_move(schedule, item, leaving ? GF_IS_REFUSED : result, GF_BY_CODER);
    if (item->state == GF_ITEM_UPLOADED) {
        item->next = driver->group;
        driver->group = item;
        driver->count++;
        driver->streams += item->parts;
        if (driver->state == GF_DRIVER_FILLING && driver->streams >= schedule->max_streams)
            schedule_turn(schedule, driver, GF_IS_CLOSED, GF_BY_CODER);
    } else if (!leaving && !driver->count && !driver->uploading) {
        schedule_turn(schedule, driver, GF_IS_CLEAR, GF_BY_CODER);
    }
}

static void schedule_end_item(gf_schedule *schedule, gf_schedule_item *item, gf_event step,
                              gf_event result, uint32_t kinds) {
    if (step == GF_DO_ASK && result == GF_IS_DONE && !schedule_has_more(schedule))
        result = GF_IS_REFUSED; /* the batch was stopped */
    if (step == GF_DO_UPLOAD)
        schedule_end_upload(schedule, item, result);
    else
        schedule_move(schedule, item, result, kinds);
    if (step == GF_DO_WRITE) {
        gf_schedule_driver *driver = &schedule->drivers[item->driver];
        if (--driver->held == 0 && driver->state == GF_DRIVER_WRITING)
            schedule_turn(schedule, driver, GF_IS_CLEAR, GF_BY_CODER);
    }
    schedule->begun += step == GF_DO_ASK && result == GF_IS_DONE;
    schedule->reported += step == GF_DO_REPORT;
    schedule->stop = schedule->stop || (step == GF_DO_ASK && result == GF_IS_LOST) ||
                     (step == GF_DO_REPORT && result == GF_IS_REFUSED) ||
                     (schedule->fail_fast && item->failed && item->state == GF_ITEM_FINISHED);
    schedule->parts = item->parts ? item->parts : schedule->parts;
}

/* A step of a driver has ended, without an item unless its engine is lost. If a requested device
 * does not start, or none is left, the batch ends, unless CPU workers run it. */
static void schedule_end_driver(gf_schedule *schedule, gf_schedule_driver *driver, gf_event step,
                                gf_event result) {
    const bool is_first = driver < schedule->drivers + schedule->devices;
    const uint64_t ended = schedule_sum(schedule->counts, GF_ITEM_FINISHED, GF_ITEM_REPORTING);
    schedule->starting -= step == GF_DO_OPEN_ENGINE && is_first;
    if (step == GF_DO_ALLOCATE)
        driver->size = result == GF_IS_DONE ? driver->wanted : 0;
    if (result == GF_IS_LOST || step == GF_DO_ENCODE || result == GF_IS_REFUSED) {
        /* Empty the group. Items that are not computed run on their own. */
        gf_schedule_item *item = driver->group, *next;
        driver->group = NULL;
        driver->count = 0;
        driver->streams = 0;
        for (; item; item = next) {
            const bool computed = result == GF_IS_DONE && item->computed;
            next = item->next;
            driver->held += computed;
            schedule_move(schedule, item, computed ? GF_IS_DONE : GF_IS_REFUSED, GF_BY_DRIVER);
        }
    }
    schedule_turn(schedule, driver, result, GF_BY_DRIVER);
    if (driver->state == GF_DRIVER_WRITING && !driver->held)
        schedule_turn(schedule, driver, GF_IS_CLEAR, GF_BY_DRIVER);
    if (result == GF_IS_LOST)
        schedule->no_more_engines = true;
    if (!(schedule->coder_kinds & GF_BY_CPU) &&
        ((step == GF_DO_OPEN_ENGINE && is_first && result == GF_IS_LOST) ||
         (driver->state == GF_DRIVER_GONE && !schedule_engines(schedule) &&
          (schedule_has_more(schedule) || schedule->counts[GF_ITEM_ASKING] ||
           schedule->begun > schedule->reported + ended))))
        schedule->aborted = true;
}

void gf_schedule_done(gf_schedule *schedule, uint32_t number, gf_event result) {
    gf_schedule_worker *worker = &schedule->workers[number];
    const gf_event step = worker->step;
    worker->step = GF_DO_NOTHING;
    if (worker->item)
        schedule_end_item(schedule, worker->item, step, result, schedule_kinds(schedule, worker));
    if (number < schedule->coders) {
        worker->idle = schedule->idle;
        schedule->idle = worker;
    } else if (!worker->item || (step == GF_DO_RUN && result == GF_IS_LOST)) {
        schedule_end_driver(schedule, &schedule->drivers[number - schedule->coders], step, result);
    }
    worker->item = NULL;
    gf_schedule_dispatch(schedule);
}

/* ---- the whole batch ------------------------------------------------------------------------- */

void gf_schedule_dispatch(gf_schedule *schedule) {
    /* Nothing is left to start or in progress. Aborted: only steps that change files still end. */
    const uint64_t *counts = schedule->counts;
    const uint64_t ends = schedule_sum(counts, GF_ITEM_RUNNING, GF_ITEM_REPORTING);
    const bool over = schedule->aborted ? counts[GF_ITEM_WRITING] + ends == 0
                                        : !schedule_has_more(schedule) && !counts[GF_ITEM_ASKING] &&
                                              schedule->begun == schedule->reported;
    bool more = true; /* a step of a driver may permit another one of a coder, and conversely */
    while (more) {
        more = false;
        /* All coders are alike: if one has no work, the others have none. */
        for (gf_schedule_worker *worker; (worker = schedule->idle);) {
            if (over)
                schedule_assign(schedule, worker, GF_DO_END, NULL);
            else if (!schedule_serve_coder(schedule, worker))
                break;
            schedule->idle = worker->idle;
            worker->idle = NULL;
        }
        for (uint32_t i = 0; i < schedule->driver_count; i++) {
            gf_schedule_worker *worker = &schedule->workers[schedule->coders + i];
            if (!worker->step && over)
                schedule_assign(schedule, worker, GF_DO_END, NULL);
            else if (!worker->step)
                more = schedule_serve_driver(schedule, worker, &schedule->drivers[i]) || more;
        }
    }
}

void gf_schedule_start(gf_schedule *schedule) {
    schedule->item_rules = schedule->item_rules ? schedule->item_rules : gf_item_rules;
    schedule->driver_rules = schedule->driver_rules ? schedule->driver_rules : gf_driver_rules;
    schedule->max_images = schedule->max_images ? schedule->max_images : MAX_IMAGES;
    schedule->max_streams = schedule->max_streams ? schedule->max_streams : GROUP_STREAMS;
    schedule->parts = schedule->parts ? schedule->parts : 1;
    schedule->engine_bytes = MAX_ENGINE_BYTES;
    schedule->starting = schedule->devices;
    schedule->in_state[GF_DRIVER_CLOSED] = schedule->driver_count;
    for (int i = 0; i < GF_ITEM_STATES; i++)
        schedule->queues[i].last = &schedule->queues[i].first;
    for (uint32_t i = schedule->coders; i > 0; i--) {
        schedule->workers[i - 1].idle = schedule->idle;
        schedule->idle = &schedule->workers[i - 1];
    }
    gf_schedule_dispatch(schedule);
}

gf_schedule_item *gf_schedule_remove(gf_schedule *schedule) {
    for (int i = 0; i < GF_ITEM_STATES; i++)
        if (schedule->queues[i].first)
            return schedule_dequeue(&schedule->queues[i]);
    for (uint32_t i = 0; i < schedule->driver_count; i++) {
        gf_schedule_item *item = schedule->drivers[i].group;
        schedule->drivers[i].group = item ? item->next : NULL;
        if (item)
            return item;
    }
    return NULL;
}
