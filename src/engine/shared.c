/* One image by several ranks.
 *
 * Each takes a share of the rows: it reads them, with the halo of its share, from where they are in
 * the file, and writes them to where they belong. What is measured is merged exactly into rank 0's:
 * states by a reduction, records in the order of the rows, payloads by the filter's own join. Where
 * a state must pass through the image in order, the ranks share the columns instead: each of them
 * is a signal of its own, and its rows are all in one place. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "engine/task.h"
#include "error.h"
#include "io/files.h"
#include "io/limits.h"
#include "plan.h"

#define PIECE_BYTES ((size_t)4 << 20) /* of records on their way to rank 0 */

/* ---- may it be shared? ----------------------------------------------------------------------- */

static bool is_golden(const gf_engine *engine) {
    return engine->named == &gf_backend_golden; /* takes images whole */
}

/* Each process has a standard input of its own. */
static bool has_names(const gf_task *task, const char *const *in_paths) {
    for (uint32_t i = 0; i < task->filter->info.inputs; i++)
        if (strcmp(in_paths[i], "-") == 0)
            return false;
    return true;
}

static bool can_share(const gf_task *task, const gf_settings *settings, const char *const *in_paths,
                      const char *out_path, const gf_file_options *options) {
    const char *samples = gf_task_file(task, settings, GF_PARAM_SAMPLES);
    if (!task->filter->info.makes_image)
        out_path = gf_task_file(task, settings, GF_PARAM_IMAGE);
    return task->source->ops->seek && has_names(task, in_paths) && !is_golden(task->engine) &&
           (!task->plan->out.width || gf_sink_sharable(out_path, options)) &&
           (!samples || gf_output_sharable(samples));
}

/* What all must find in their inputs. */
typedef struct gf_found {
    bool share;
    gf_format format;
    struct {
        uint64_t bytes;
        int64_t seconds, nanoseconds;
    } files[2];
} gf_found;

/* Numbers of devices and inodes are not the same on all machines. */
static void look(const gf_task *task, const char *const *in_paths, gf_found *found) {
    for (uint32_t i = 0; i < task->filter->info.inputs; i++) {
        const gf_seen seen = gf_see(in_paths[i]);
        if (!seen.regular)
            continue;
        found->files[i].bytes = (uint64_t)seen.info.st_size;
        found->files[i].seconds = seen.info.st_mtim.tv_sec;
        found->files[i].nanoseconds = seen.info.st_mtim.tv_nsec;
    }
}

static bool finds(const gf_task *task, const char *const *in_paths, const gf_found *first) {
    gf_found found = {0};
    look(task, in_paths, &found);
    for (size_t i = 0; i < 2; i++)
        if (found.files[i].bytes != first->files[i].bytes ||
            found.files[i].seconds != first->files[i].seconds ||
            found.files[i].nanoseconds != first->files[i].nanoseconds)
            return false;
    return task->source->ops->seek && gf_format_equal(&task->source->format, &first->format);
}

gf_status gf_task_open_shared(gf_task *task, const gf_settings *settings,
                              const char *const *in_paths, const char *out_path,
                              const gf_file_options *options, gf_error *error) {
    const gf_ranks *ranks = options->ranks;
    gf_found first = {0};
    gf_status status = GF_OK;
    if (ranks->rank == 0) {
        look(task, in_paths, &first); /* before: whoever replaces one later is found out */
        status = gf_task_open_inputs(task, settings, in_paths, options, error);
    }
    if (ranks->rank == 0 && !status) {
        first.share = can_share(task, settings, in_paths, out_path, options);
        first.format = task->source->format;
    }
    status = gf_follow_first(ranks, status, error);
    if (status)
        return status;
    ranks->broadcast(ranks->context, &first, sizeof first);
    if (!first.share)
        return GF_OK;
    task->ranks = ranks;
    if (ranks->rank != 0)
        status = gf_task_open_inputs(task, settings, in_paths, options, error);
    if (!status && ranks->rank != 0 && !finds(task, in_paths, &first))
        status = gf_fail(error, GF_FAILED,
                         "%s: rank %u finds another file there than rank 0: it was changed, or the "
                         "machines do not share the file system",
                         task->name, ranks->rank);
    return gf_ranks_agree(ranks, status, error);
}

/* ---- one rank's share ------------------------------------------------------------------------ */

/* What one rank does, and what it has measured. */
typedef struct gf_own {
    const gf_measure *measure; /* the filter's; NULL if it has none */
    void *data;                /* of it, open: rank 0's, and of each that takes payloads */
    bool is_first;
    gf_plan *plan;          /* of what is streamed; the task's, or of a strip of columns */
    uint64_t first, end;    /* rows that are computed */
    gf_window window;       /* what is read */
    unsigned char *records; /* of rows that rank 0 has not taken, close together */
    uint64_t recorded;      /* bytes there */
    unsigned char *state;   /* what the stream has left */
} gf_own;

/* Stand in for the filter's own functions while the share is streamed. */
static gf_status take_rows(const gf_plan *plan, void *data, const gf_rows *out, gf_error *error) {
    gf_own *own = data;
    if (own->is_first)
        return own->measure->rows(plan, own->data, out, error);
    for (uint64_t y = out->y0; y < out->y0 + out->rows; y++) {
        memcpy(own->records + own->recorded, gf_record(plan, out, y), plan->record);
        own->recorded += plan->record;
    }
    return GF_OK;
}

static gf_status take_payload(const gf_plan *plan, void *data, const void *payload,
                              gf_error *error) {
    const gf_own *own = data;
    return own->measure->payload(plan, own->data, payload, error);
}

static gf_status take_state(const gf_plan *plan, void *data, const void *state, gf_error *error) {
    (void)error;
    memcpy(((gf_own *)data)->state, state, (size_t)plan->state_bytes);
    return GF_OK;
}

/* The columns of this rank as an image of their own. */
static gf_status plan_strip(gf_task *task, const gf_settings *settings, gf_own *own,
                            gf_error *error) {
    const gf_ranks *ranks = task->ranks;
    gf_format strip = task->plan->in;
    assert(!task->plan->out.width && !task->plan->record && !task->plan->has_payload);
    own->window.x = gf_share(strip.width, ranks->rank, ranks->count);
    own->window.width = gf_share(strip.width, ranks->rank + 1, ranks->count) - own->window.x;
    own->end = own->window.width ? strip.height : 0;
    strip.width = own->window.width ? own->window.width : 1;
    return gf_plan_new(task->filter, settings, &strip, &own->plan, error);
}

static void take_share_of_rows(const gf_task *task, gf_own *own) {
    const gf_plan *plan = task->plan;
    const gf_ranks *ranks = task->ranks;
    uint64_t held;
    own->plan = task->plan;
    own->first = gf_share(plan->in.height, ranks->rank, ranks->count);
    own->end = gf_share(plan->in.height, ranks->rank + 1, ranks->count);
    own->window.width = plan->in.width;
    if (own->end > own->first)
        own->window.y = gf_held_rows(plan, own->first, own->end, &held);
}

/* Room for what is measured; the result's is rank 0's alone. */
static gf_status open_measure(gf_task *task, gf_own *own, gf_error *error) {
    const gf_plan *plan = own->plan;
    const uint64_t records = own->is_first ? 0 : (own->end - own->first) * plan->record;
    /* Behind rank 0's strip there is room for the others'. */
    const uint64_t state = own->is_first ? task->plan->state_bytes : plan->state_bytes;
    const uint64_t bytes = records + state;
    gf_status status = GF_OK;
    if (own->is_first || plan->has_payload) {
        status = gf_task_open_measure(task, error);
        own->data = task->data;
    }
    if (!status)
        status = gf_check_memory(bytes, task->memory, task->name, "what is measured", error);
    if (status)
        return status;
    task->memory -= bytes;
    own->records = malloc((size_t)records + 1);
    own->state = calloc(1, (size_t)state + 1);
    return own->records && own->state
               ? GF_OK
               : gf_fail_memory(error, task->name, bytes, "what is measured");
}

static gf_status open_own(gf_task *task, const gf_settings *settings, gf_own *own,
                          gf_error *error) {
    gf_status status = GF_OK;
    own->measure = task->filter->measure;
    own->is_first = task->ranks->rank == 0;
    if (task->plan->ordered)
        status = plan_strip(task, settings, own, error);
    else
        take_share_of_rows(task, own);
    return !status && own->measure ? open_measure(task, own, error) : status;
}

static void close_own(const gf_task *task, gf_own *own) {
    if (own->plan != task->plan)
        free(own->plan);
    free(own->records);
    free(own->state);
}

static gf_status stream_own(gf_task *task, gf_own *own, gf_error *error) {
    const gf_format in = task->plan->in;
    gf_filter stand_in = *task->filter;
    gf_measure measure;
    gf_task share = *task;
    if (own->measure) {
        measure = *own->measure;
        measure.rows = take_rows;
        measure.payload = take_payload;
        measure.finish = take_state;
        stand_in.measure = &measure;
        share.data = own;
    }
    share.filter = &stand_in;
    share.plan = own->plan;
    share.first = own->first;
    share.end = own->end;
    task->source->ops->seek(task->source, &own->window);
    share.window = &own->window;
    task->engine->rows = own->end - own->first;
    const gf_status status = gf_task_stream(&share, error);
    task->engine->rows = 0;
    task->source = share.source; /* it may have been read again */
    task->metadata = share.metadata;
    task->report->in = in;
    return status;
}

/* ---- what all have measured ------------------------------------------------------------------ */

typedef struct gf_merging {
    const gf_measure *measure;
    const gf_plan *plan;
} gf_merging;

static void merge_state(const void *context, void *state, const void *other) {
    const gf_merging *merging = context;
    merging->measure->merge(merging->plan, state, other);
}

/* Rank 0 gets the strips side by side; its own is the first. */
static void join_strips(const gf_task *task, const gf_own *own) {
    const gf_ranks *ranks = task->ranks;
    const uint64_t width = task->plan->in.width;
    const size_t column = (size_t)(task->plan->state_bytes / width);
    assert(task->plan->state_bytes % width == 0);
    if (!own->is_first)
        ranks->send(ranks->context, own->state, (size_t)own->window.width * column);
    for (uint32_t r = 1; own->is_first && r < ranks->count; r++) {
        const uint64_t x = gf_share(width, r, ranks->count);
        ranks->receive(ranks->context, r, own->state + x * column,
                       (size_t)(gf_share(width, r + 1, ranks->count) - x) * column);
    }
}

static void send_records(const gf_task *task, const gf_own *own, size_t most) {
    const gf_ranks *ranks = task->ranks;
    for (uint64_t at = 0, n; at < own->recorded; at += n) {
        n = own->recorded - at < most ? own->recorded - at : most;
        ranks->send(ranks->context, own->records + at, (size_t)n);
    }
}

/* Takes the rows of the other ranks, in their order. All is received, whatever becomes of it. */
static gf_status receive_records(const gf_task *task, gf_own *own, unsigned char *buffer,
                                 uint64_t most, gf_error *error) {
    const gf_ranks *ranks = task->ranks;
    const gf_plan *plan = task->plan;
    const size_t before = gf_record_offset(plan);
    gf_status status = GF_OK;
    for (uint32_t r = 1; r < ranks->count; r++) {
        const uint64_t end = gf_share(plan->in.height, r + 1, ranks->count);
        for (uint64_t y = gf_share(plan->in.height, r, ranks->count), n; y < end; y += n) {
            n = end - y < most ? end - y : most;
            ranks->receive(ranks->context, r, buffer + before, (size_t)n * plan->record);
            const gf_rows rows = {buffer, plan->record, y, n};
            if (!status)
                status = own->measure->rows(plan, own->data, &rows, error);
        }
    }
    return status;
}

static gf_status join_records(const gf_task *task, gf_own *own, gf_error *error) {
    const gf_plan *plan = task->plan;
    const uint64_t most = PIECE_BYTES / plan->record + 1;
    const size_t bytes = gf_record_offset(plan) + (size_t)most * plan->record;
    unsigned char *buffer = NULL;
    gf_status status = GF_OK;
    if (own->is_first && !(buffer = malloc(bytes)))
        status = gf_fail_memory(error, task->name, bytes, "what others measured");
    status = gf_follow_first(task->ranks, status, error);
    if (!status && own->is_first)
        status = receive_records(task, own, buffer, most, error);
    else if (!status)
        send_records(task, own, (size_t)most * plan->record);
    free(buffer);
    return status;
}

static gf_status merge_all(const gf_task *task, gf_own *own, gf_error *error) {
    const gf_plan *plan = task->plan;
    const gf_ranks *ranks = task->ranks;
    gf_status status = GF_OK;
    if (plan->ordered) {
        join_strips(task, own);
    } else if (plan->state_bytes) {
        const gf_merging merging = {own->measure, plan};
        ranks->reduce(ranks->context, own->state, (size_t)plan->state_bytes, merge_state, &merging);
    }
    if (!status && plan->record)
        status = join_records(task, own, error);
    status = gf_ranks_agree(ranks, status, error);
    if (!status && plan->has_payload)
        status = own->measure->join(plan, own->data, ranks, error);
    if (!status && own->data)
        status = own->measure->finish(plan, own->data, own->state, error);
    return gf_ranks_agree(ranks, status, error);
}

gf_status gf_task_stream_shared(gf_task *task, const gf_settings *settings, gf_error *error) {
    gf_own own = {0};
    gf_status status = open_own(task, settings, &own, error);
    status = gf_ranks_agree(task->ranks, status, error);
    if (!status && own.end > own.first)
        status = stream_own(task, &own, error);
    status = gf_ranks_agree(task->ranks, status, error);
    if (!status && own.measure)
        status = merge_all(task, &own, error);
    close_own(task, &own);
    return status;
}
