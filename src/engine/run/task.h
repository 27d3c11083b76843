/* One image from its inputs to its outputs: open files and remaining memory. */
#ifndef GF_TASK_H
#define GF_TASK_H

#include "engine/pipeline/pipeline.h"
#include "io/sample_sink.h"

/* ---- chains (chain.c) ------------------------------------------------------------------------ */

enum { GF_MAX_STEPS = 2 };

/* The steps of a valid job: one filter, and a writer if it produces an image. */
typedef struct gf_chain {
    const gf_filter *filter;
    const gf_settings *settings;
    gf_settings *own; /* the default settings; NULL: the job has some */
    uint32_t steps;
    uint32_t output;          /* step that reports the image written */
    const char *in_paths[2];  /* inputs of the filter; files only */
    const char *out_path;     /* image of the writer, or drawing; NULL: none */
    const char *samples_path; /* extracted samples; NULL: none. In memory, all are kept */
    const gf_pixels *in[2];   /* lists of the inputs of the filter; memory only */
    const gf_out_pixels *out; /* list of images written; NULL: none */
    uint64_t count;           /* images in memory, at least 1 */
    gf_file_options options;  /* `write`: of the writer */
    uint64_t item;            /* index in a batch */
} gf_chain;

/* Resolve the steps of a job, which must outlive the chain. Close it, also after a failure. */
gf_status gf_chain_open(const gf_job *job, gf_chain *chain, gf_error *error);
/* Resolve the steps of a job, and check its inputs and outputs in files. */
gf_status gf_chain_open_files(const gf_job *job, gf_chain *chain, gf_error *error);
void gf_chain_close(gf_chain *chain);
/* output: the path of the image that the caller gave; NULL: none. */
gf_status gf_chain_check_paths(const gf_chain *chain, const char *output, gf_error *error);
gf_status gf_chain_plan(const gf_chain *chain, const gf_format *in, gf_plan **plan,
                        gf_error *error);

/* Report and results of the run of one image. */
typedef struct gf_made {
    gf_report report;
    gf_step_report steps[GF_MAX_STEPS];
    gf_result *results[GF_MAX_STEPS];
} gf_made;

/* Return it as the argument of a callback. */
static inline gf_outcome gf_made_outcome(gf_made *made) {
    return (gf_outcome){made->report, made->steps, made->results};
}
/* Add the statistics of another image or page. Formats, backend and sizes are not changed. */
void gf_made_add(gf_made *sum, const gf_made *more);
/* Report the image of a plan: formats, pixels and brightness. */
void gf_made_report_plan(gf_made *made, const gf_plan *plan);
/* Move it to the outcome of the caller. */
void gf_made_return(gf_made *made, const gf_chain *chain, gf_outcome *outcome);
/* Free the results, and clear their pointers. */
void gf_made_free_results(gf_made *made);

/* ---- tasks (run.c) --------------------------------------------------------------------------- */

/* State of one image in progress. */
typedef struct gf_task {
    gf_engine *engine;
    const gf_chain *chain;
    uint32_t threads;     /* number of threads for the decoder, and for the encoder */
    uint32_t page;        /* with GF_ALL_PAGES, the page to read; 0: the first */
    gf_page_place *place; /* where the page is found; NULL: from the first page */
    gf_inputs inputs;
    gf_plan *plan;
    gf_format stored; /* of the image file; width 0: none. Its type may differ from plan->out */
    bool more_pages;  /* with GF_ALL_PAGES, other pages follow */
    gf_sink *sink;    /* NULL: no image is produced */
    gf_sample_sink *samples; /* NULL: no sample file */
    bool with_metadata;      /* copy the input's metadata to the output */
    gf_metadata stripped;    /* without items: what the output receives otherwise */
    bool keep_samples;       /* keep samples in the result */
    bool buffer_samples;     /* buffer samples until the last strip, for their file */
    uint64_t memory;         /* unallocated part of the engine's max_memory, in bytes */
    uint64_t sink_memory;    /* memory reserved for the sink, in bytes */
    void *data;              /* open data of the filter's measure; NULL if it has none */
    gf_watch watch;
    uint64_t images; /* number of similar images to expect, this one included; 0 counts as one */
    uint64_t digest; /* digest of the rows written to the sink, if verified */
    gf_made *made;   /* NULL: not reported */
    double began;
} gf_task;

/* Create a task; end it with gf_task_end. Its time includes an unreported start of a backend. */
gf_task gf_task_begin(gf_engine *engine, const gf_chain *chain, gf_made *made);
/* Close and free everything that is open, and zero the task. A zero task is allowed. */
void gf_task_end(gf_task *task);

/* Open the inputs and create the plan. Without an engine, set only the chain and the threads. */
gf_status gf_task_open_files(gf_task *task, gf_error *error);
/* Convert the rows of the open sink, if the type of the file differs from that of the plan. */
gf_status gf_task_convert_sink(gf_task *task, gf_error *error);
/* Report what is known about the input: its bytes, pages and remarks. */
void gf_task_report_input(const gf_task *task);
/* Report the format of the image file, and whether it has fewer bits per sample than the input. */
void gf_task_report_stored(const gf_task *task);
/* Adapt the metadata to the output, and fail if an item is damaged. The loss of a colour profile,
 * for example, changes the appearance of the picture. Call again when more has been read. */
gf_status gf_task_update_metadata(const gf_task *task, gf_error *error);
/* Run the filter that measures the image first, if there is one, refine the plan with its data, and
 * restart the inputs. Buffer an input that cannot be read twice. */
gf_status gf_task_refine(gf_task *task, gf_error *error);
/* Open the measure, if there is one. Reserve task memory for the result, and half of the remainder
 * for buffered samples; the strips have the rest. */
gf_status gf_task_open_measure(gf_task *task, gf_error *error);
/* Return the pass over an image into a delivery whose plan, measure, data and sink are set. */
gf_pass gf_task_pass(gf_task *task, gf_delivery *delivery);
/* Complete the sample file and the result, if there are any. The result takes plan and data. */
gf_status gf_task_make_result(gf_task *task, gf_result **result, gf_error *error);

/* Open the sink and the sample file, or only the sample file, if there are any. */
gf_status gf_task_open_outputs(gf_task *task, gf_error *error);
gf_status gf_task_open_samples(gf_task *task, gf_error *error);
/* Finish the sink, or its page, and report what it has counted and omitted. */
gf_status gf_task_finish_sink(gf_task *task, gf_error *error);
/* Call options->ready, which may add an output, then rename all. Free the results on failure. */
gf_status gf_task_publish(gf_task *task, gf_error *error);

/* Reject an output in memory that shares bytes with an input; both are checked. */
gf_status gf_check_overlap(const gf_plan *plan, const char *name, const gf_pixels *in,
                           const gf_out_pixels *out, gf_error *error);
/* Run a chain from file to file. *made: cleared first; the caller frees the results. */
gf_status gf_run_files(gf_engine *engine, const gf_chain *chain, gf_made *made, gf_error *error);
/* Run image `image` of a chain in memory. */
gf_status gf_run_image(gf_engine *engine, const gf_chain *chain, const gf_format *format,
                       uint64_t image, gf_made *made, gf_error *error);
/* Run all images of a chain in device memory. results: one per image, or NULL. */
gf_status gf_run_on_device(gf_engine *engine, const gf_chain *chain, const gf_format *format,
                           void *stream, gf_result **results, gf_error *error);

#endif
