/* One image on its way: plan, source, backend, sink. */
#ifndef GF_TASK_H
#define GF_TASK_H

#include "engine/engine.h"
#include "engine/seen.h"
#include "engine/stream.h"
#include "io/io.h"
#include "io/sample_sink.h"

typedef struct gf_task {
    gf_engine *engine;
    uint32_t threads;      /* that may read it, and that may write it */
    const gf_ranks *ranks; /* who does it together; NULL: it is done alone */
    uint64_t first, end;   /* rows that are done here, as gf_stream_job has them */
    const gf_filter *filter;
    const char *name; /* of the image, for messages */
    gf_source *source;
    gf_sink *sink;           /* NULL: no image is made */
    gf_sample_sink *samples; /* NULL: no samples go into a file */
    bool keep_samples;       /* in the result */
    bool hold_samples;       /* until the last band, for the result or for their file */
    uint64_t memory;         /* of the engine's max_memory, what nothing has taken yet */
    uint64_t sinks_memory;   /* what the sink has taken of it */
    gf_plan *plan;
    void *data; /* of the filter's measure; opened by gf_task_stream if it is not */
    const gf_metadata *metadata; /* for the output; NULL for none */
    gf_report *report;
    gf_listener listener;
    double began;

    /* Of inputs that are files: how they were opened, and as what. */
    const char *const *paths; /* NULL: they are not */
    gf_limits limits;
    gf_seen seen[2];
    const gf_window *window; /* the piece of them that is read; NULL: all */

    bool verified;   /* golden has computed it, too */
    uint64_t digest; /* of the rows that the sink has taken, if it was verified */
} gf_task;

/* What was spent on starting the backend is this image's, if it is the first. */
gf_task gf_task_begin(gf_engine *engine, const gf_filter *filter, const char *name,
                      gf_report *report);
/* A profile that is lost changes how the picture looks: that must not pass for success. */
gf_status gf_task_check_metadata(const gf_task *task, gf_error *error);
/* The text of the filter's parameter of a type that names a file; NULL for none. */
const char *gf_task_file(const gf_task *task, const gf_settings *settings, gf_param_type type);
/* Puts the second image of a filter that reads two beside the first. The names are for messages. */
gf_status gf_task_add_second(gf_task *task, gf_source *second, const char *name,
                             const char *second_name, gf_error *error);
/* The task's source and plan: files, as many as the filter reads. */
gf_status gf_task_open_inputs(gf_task *task, const gf_settings *settings, const char *const *paths,
                              const gf_file_options *options, gf_error *error);
/* Its source alone: the files task->paths. */
gf_status gf_task_open_sources(gf_task *task, gf_error *error);
/* The source begins again: memory at its first row, files opened anew. GF_FAILED for what cannot be
 * read again, and for files that are not any more what they were when they were opened first. */
gf_status gf_task_read_again(gf_task *task, gf_error *error);
/* Is there a way to? */
bool gf_task_can_read_again(const gf_task *task);
/* Another source takes the place of the task's. */
void gf_task_exchange_source(gf_task *task, gf_source *source);
/* After that: its sink and its file of samples. */
gf_status gf_task_open_outputs(gf_task *task, const gf_settings *settings, const char *out_path,
                               const gf_file_options *options, gf_error *error);
/* The task's source: images in memory, as many as the filter reads. */
gf_status gf_task_open_memory(gf_task *task, const gf_format *format, const gf_pixels *in,
                              gf_error *error);
/* Takes back what the sink holds for speed; false if there is none, or that failed. */
bool gf_task_spare(gf_task *task, gf_error *error);
/* Opens the measure, unless it is open or there is none. Takes the result, and half of what then
 * remains for held samples, out of the task's memory: the ring has the rest. */
gf_status gf_task_open_measure(gf_task *task, gf_error *error);
/* The result of what was measured, if something was; plan and data are then its own. A result that
 * cannot be built any more is still the task's to free. */
gf_status gf_task_make_result(gf_task *task, gf_result **result, gf_error *error);
/* Chooses a backend and streams the image through it, into sink and measure. Under auto another one
 * goes on where it fails (failover.c). */
gf_status gf_task_stream(gf_task *task, gf_error *error);
/* After the sink has finished, of an image that was verified: does its file hold the rows that went
 * there? GF_FAILED if not. True of files that cannot be read back, too. (written.c) */
gf_status gf_task_check_written(const gf_task *task, gf_error *error);
void gf_task_end(gf_task *task);

/* ---- by several ranks (shared.c) ------------------------------------------------------------- */

/* Called by all: opens the inputs, and settles in task->ranks whether the image is shared. Where it
 * is not, only rank 0's are open. */
gf_status gf_task_open_shared(gf_task *task, const gf_settings *settings,
                              const char *const *in_paths, const char *out_path,
                              const gf_file_options *options, gf_error *error);
/* gf_task_stream by all of task->ranks; rank 0's measure has then everything. */
gf_status gf_task_stream_shared(gf_task *task, const gf_settings *settings, gf_error *error);
/* Rank 0's report gets what the others had to do with it. */
void gf_task_share_report(gf_task *task);

/* ---- a filter that measures first (before.c) ------------------------------------------------- */

/* Runs the filter before this one over the task's source, from which the plan learns, and makes the
 * source begin again: a file is read twice, as long as it is the one that was seen; what cannot be
 * read twice is held. */
gf_status gf_measure_file(gf_task *task, gf_error *error);
/* The same over a source in memory. */
gf_status gf_measure_memory(gf_task *task, gf_error *error);

#endif
