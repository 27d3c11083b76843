/* One image from its inputs to its outputs: open files and remaining memory. */
#ifndef GF_TASK_H
#define GF_TASK_H

#include "engine/pipeline/pipeline.h"
#include "gpufilter_tools.h"
#include "io/stream/sample_sink.h"

/* State of one image in progress. */
typedef struct gf_task {
    gf_engine *engine;
    uint32_t threads; /* number of threads for the decoder, and for the encoder */
    uint32_t page;    /* with GF_ALL_PAGES, the page to read; 0: the first */
    const gf_filter *filter;
    gf_page_place *place; /* where the page is found; NULL: from the first page */
    gf_inputs inputs;
    gf_plan *plan;
    gf_format stored;        /* of the image file, whose type may differ from plan->out; width 0:
                              * there is no image file */
    bool more_pages;         /* with GF_ALL_PAGES, other pages follow */
    bool reduced;            /* the file stores fewer bits per sample than the input */
    gf_sink *sink;           /* NULL: no image is produced */
    gf_sample_sink *samples; /* NULL: no sample file */
    bool with_metadata;      /* copy the input's metadata to the output */
    gf_metadata stripped;    /* without items: what the output receives otherwise */
    bool keep_samples;       /* keep samples in the result */
    bool buffer_samples;     /* buffer samples until the last strip */
    uint64_t memory;         /* unallocated part of the engine's max_memory, in bytes */
    uint64_t sink_memory;    /* memory reserved for the sink, in bytes */
    void *data;              /* open data of the filter's measure; NULL if it has none */
    uint64_t item;           /* index in the batch */
    gf_watch watch;
    uint64_t images; /* number of similar images to expect, this one included; 0 counts as one */
    uint64_t digest; /* digest of the rows written to the sink, if verified */
    gf_report *report;
    double began;
} gf_task;

/* Create a task; finish it with gf_task_end. Its time includes a backend start that has not been
 * reported yet. */
gf_task gf_task_begin(gf_engine *engine, const gf_filter *filter, gf_report *report);
/* Close and free everything that is open, and zero the task. A zero task is allowed. */
void gf_task_end(gf_task *task);

/* Return the value of the filter's parameter of a type that names a file; NULL if not set. */
const char *gf_filter_file(const gf_filter *filter, const gf_settings *settings,
                           gf_param_type type);
/* Open the input files of the filter and create the plan. Without an engine, only the filter and
 * threads of the task must be set. */
gf_status gf_task_open_files(gf_task *task, const gf_settings *settings, const char *const *paths,
                             const gf_file_options *options, gf_error *error);
/* Open the input images of the filter in memory and create the plan. */
gf_status gf_task_open_memory(gf_task *task, const gf_settings *settings, const gf_format *format,
                              const gf_pixels *in, gf_error *error);
/* Return the metadata to write to the output. */
const gf_metadata *gf_task_metadata(const gf_task *task);
/* Convert the rows of the open sink, if the type of the file differs from that of the plan. */
gf_status gf_task_convert_sink(gf_task *task, gf_error *error);
/* Report what is known about the input: its bytes, pages and remarks. */
void gf_task_report_input(const gf_task *task);
/* Add the format of the image file to the report, and its type, if it was reduced. */
void gf_task_report_stored(const gf_task *task);
/* Add the statistics of another image or page. Formats, backend and sizes are not changed. */
void gf_report_add(gf_report *sum, const gf_report *more);
/* Adapt the metadata to the output, and fail if an item is damaged. The loss of a colour profile,
 * for example, changes the appearance of the picture. Call again when more has been read. */
gf_status gf_task_update_metadata(const gf_task *task, gf_error *error);
/* Run the filter that measures the image first, if there is one, refine the plan with its data, and
 * restart the inputs. Buffer an input that cannot be read twice. */
gf_status gf_task_refine(gf_task *task, gf_error *error);
/* Open the measure, if there is one. Reserve task memory for the result, and half of the remainder
 * for buffered samples; the strips have the rest. */
gf_status gf_task_open_measure(gf_task *task, gf_error *error);
/* Return the pass over the image of a task, or over another plan of it, into a delivery whose plan,
 * measure, data and sink are set. */
gf_pass gf_task_pass(gf_task *task, const gf_filter *filter, gf_delivery *delivery);
/* Stream the image into sink and measure. */
gf_status gf_task_stream(gf_task *task, gf_error *error);
/* Create the result of the measure, if there is one. It takes ownership of plan and data. */
gf_status gf_task_make_result(gf_task *task, gf_result **result, gf_error *error);

/* Write all rows, or the encoded image, to a sink. */
typedef gf_status gf_fill_sink(void *context, gf_sink *sink, gf_error *error);
/* Write an image that is already computed, if the plan produces one, then call options->ready and
 * rename the output. Take ownership of *result; return it on success. */
gf_status gf_task_write(gf_task *task, const gf_settings *settings, const char *out_path,
                        gf_fill_sink *fill, void *context, const gf_file_options *options,
                        gf_result **result, gf_error *error);

/* Reject an output in memory that shares bytes with an input; both are checked. */
gf_status gf_check_overlap(const char *name, const gf_plan *plan, const gf_pixels *in,
                           const gf_out_pixels *out, gf_error *error);
/* Reject paths that do not match the filter's inputs and outputs. */
gf_status gf_check_paths(const gf_filter *filter, const char *const *in_paths, const char *out_path,
                         gf_error *error);
/* Run gf_run_file for an item of a batch. */
gf_status gf_run_file_of(gf_engine *engine, const gf_filter *filter, const gf_settings *settings,
                         const char *const *in_paths, const char *out_path, uint64_t item,
                         const gf_file_options *options, gf_result **result, gf_report *report,
                         gf_error *error);
/* Run gf_run_memory for one of `images` expected images. */
gf_status gf_run_memory_of(gf_engine *engine, const gf_filter *filter, const gf_settings *settings,
                           const gf_format *format, const gf_pixels *in, gf_out_pixels out,
                           uint64_t images, gf_result **result, gf_report *report, gf_error *error);

/* ---- ranges of rows (partial.c) -------------------------------------------------------------- */

/* Return the format of the image that a partial result belongs to. */
const gf_format *gf_partial_format(const gf_partial *partial);
/* Pass the contents of a partial result to an open measure of the same plan, as a stream does. It
 * must cover all rows of the image. */
gf_status gf_partial_deliver(const gf_partial *partial, const gf_plan *plan, void *data,
                             gf_error *error);

#endif
