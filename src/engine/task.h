/* One image from its inputs to its outputs: what is open, and the memory that is left for it. */
#ifndef GF_TASK_H
#define GF_TASK_H

#include "engine/pipeline.h"
#include "gpufilter_tools.h"
#include "io/sample_sink.h"

typedef struct gf_task {
    gf_engine *engine;
    uint32_t threads; /* that may read it, and that may write it */
    const gf_filter *filter;
    gf_inputs inputs;
    gf_plan *plan;
    gf_sink *sink;           /* NULL: no image is made */
    gf_sample_sink *samples; /* NULL: no samples go into a file */
    bool with_metadata;      /* the output gets that of the input */
    bool keep_samples;       /* in the result */
    bool hold_samples;       /* until the last strip, for the result or for their file */
    uint64_t memory;         /* of the engine's max_memory, what nothing has taken yet */
    uint64_t sink_memory;    /* what the sink has taken of it */
    void *data;              /* of the filter's measure, open; NULL if it has none */
    uint64_t item;           /* of a batch: its index */
    gf_watch watch;
    uint64_t images; /* like this one that are to come; 0 counts as one */
    uint64_t digest; /* of the rows that the sink has taken, if they were verified */
    gf_report *report;
    double began;
} gf_task;

/* Begins a task, to be ended. What was spent on starting the backend is this image's, if it is the
 * first. */
gf_task gf_task_begin(gf_engine *engine, const gf_filter *filter, gf_report *report);
/* Closes and frees all that is open; nothing of a task that is all zero, as it then is. */
void gf_task_end(gf_task *task);

/* Returns the text of the filter's parameter of a type that names a file; NULL for none. */
const char *gf_filter_file(const gf_filter *filter, const gf_settings *settings,
                           gf_param_type type);
/* Opens files, as many as the filter reads, and plans. Without an engine it needs only filter and
 * threads of the task. */
gf_status gf_task_open_files(gf_task *task, const gf_settings *settings, const char *const *paths,
                             const gf_file_options *options, gf_error *error);
/* Opens images in memory, as many as the filter reads, and plans. */
gf_status gf_task_open_memory(gf_task *task, const gf_settings *settings, const gf_format *format,
                              const gf_pixels *in, gf_error *error);
/* Returns what the output gets beside the pixels; NULL for nothing. */
const gf_metadata *gf_task_metadata(const gf_task *task);
/* Fails if a profile is lost: that changes how the picture looks, and must not pass for success. */
gf_status gf_task_check_metadata(const gf_task *task, gf_error *error);
/* Runs the filter that measures the image before this one, if there is one, lets the plan learn
 * from it, and makes the inputs begin again. What cannot be read twice is held. */
gf_status gf_task_learn(gf_task *task, gf_error *error);
/* Opens the measure, if there is one. Takes the result, and half of what then remains for held
 * samples, out of the task's memory: the strips have the rest. */
gf_status gf_task_open_measure(gf_task *task, gf_error *error);
/* Streams the image into sink and measure. */
gf_status gf_task_stream(gf_task *task, gf_error *error);
/* Makes the result of what was measured, if something was; plan and data are then its own. */
gf_status gf_task_make_result(gf_task *task, gf_result **result, gf_error *error);

/* Writes an image that was computed already, rows without gaps, if the plan makes one; then lets
 * the caller see it, and puts it in place. Takes *result, and gives it back on success. */
gf_status gf_task_write(gf_task *task, const gf_settings *settings, const char *out_path,
                        const void *pixels, const gf_file_options *options, gf_result **result,
                        gf_error *error);

/* Refuses paths that are not those of the filter's images. */
gf_status gf_check_paths(const gf_filter *filter, const char *const *in_paths, const char *out_path,
                         gf_error *error);
/* gf_run_file of an item of a batch. */
gf_status gf_run_file_of(gf_engine *engine, const gf_filter *filter, const gf_settings *settings,
                         const char *const *in_paths, const char *out_path, uint64_t item,
                         const gf_file_options *options, gf_result **result, gf_report *report,
                         gf_error *error);
/* gf_run_memory, of one of so many images that are to come. */
gf_status gf_run_memory_of(gf_engine *engine, const gf_filter *filter, const gf_settings *settings,
                           const gf_format *format, const gf_pixels *in, gf_out_pixels out,
                           uint64_t images, gf_result **result, gf_report *report, gf_error *error);

/* ---- ranges of rows (partial.c) -------------------------------------------------------------- */

/* The format of the image that it is of. */
const gf_format *gf_partial_format(const gf_partial *partial);
/* Hands what was measured to a measure of the same plan, which is open, as a stream would. All rows
 * of the image must be there. */
gf_status gf_partial_deliver(const gf_partial *partial, const gf_plan *plan, void *data,
                             gf_error *error);

#endif
