/* One image from its inputs to its outputs: open files and remaining memory. */
#ifndef GF_TASK_H
#define GF_TASK_H

#include "engine/pipeline/pipeline.h"
#include "io/sample_sink.h"

/* ---- chains (chain.c) ------------------------------------------------------------------------ */

enum { GF_MAX_STEPS = GF_MAX_INPUTS - 1 };

/* A step of a valid job. */
typedef struct gf_chain_step {
    const gf_filter *filter; /* NULL: a writer */
    const gf_settings *settings;
    gf_settings *own;         /* the default settings; NULL: the job has some */
    bool from_input;          /* reads the first image, not that after the step before */
    const char *out_path;     /* image of a writer, or drawing; NULL: none */
    const char *samples_path; /* extracted samples; NULL: none. In memory, all are kept */
    const gf_out_pixels *out; /* list of images written; NULL: none */
    gf_write_options write;   /* of a writer or drawing */
} gf_chain_step;

typedef struct gf_chain {
    gf_chain_step step[GF_MAX_STEPS];
    uint32_t steps, filters; /* all steps; those with a filter */
    uint32_t first;          /* first step with a filter: that of a job of one */
    /* Whether a filter makes an image, measures, measures first, or mixes the colours of pixels. */
    bool makes_image, measures, refines, mixes_pixels;
    uint32_t inputs; /* the image, and the second inputs of steps, in their order */
    const char *in_paths[GF_MAX_INPUTS]; /* files only */
    const gf_pixels *in[GF_MAX_INPUTS];  /* lists; memory only */
    uint64_t count;                      /* images in memory, at least 1 */
    bool many;                           /* lists of images follow, also after a single one */
    gf_file_options options;
    gf_scaled scaled; /* the image, by its decoder */
    uint64_t item;    /* index in a batch */
} gf_chain;

/* Resolve the steps of a job, which must outlive the chain. Close it, also after a failure. */
gf_status gf_chain_open(const gf_job *job, gf_chain *chain, gf_error *error);
/* Resolve the steps of a job, and check its inputs and outputs in files. */
gf_status gf_chain_open_files(const gf_job *job, gf_chain *chain, gf_error *error);
void gf_chain_close(gf_chain *chain);
gf_status gf_chain_check_paths(const gf_chain *chain, gf_error *error);
/* Return the name of the first filter, for messages. */
const char *gf_chain_name(const gf_chain *chain);
/* In a job of several filters, name the step in the message of its error. */
gf_status gf_chain_fail_step(const gf_chain *chain, uint32_t step, gf_status status,
                             gf_error *error);

/* An image that is written. */
typedef struct gf_writer {
    uint32_t step, edge;
    bool bare;        /* drawn from two images: it has no metadata */
    gf_format stored; /* of the image file */
    gf_type reduced;  /* sample type before the conversion for this writer */
} gf_writer;

/* The nodes of a chain for images of one format: those of its filters, and conversions of samples
 * between them, before them and before writers. */
typedef struct gf_graph {
    gf_nodes nodes;
    gf_node node[GF_MAX_NODES];
    gf_plan *plan[GF_MAX_NODES];    /* those of the nodes */
    uint32_t step[GF_MAX_NODES];    /* that the node belongs to */
    bool counts[GF_MAX_NODES];      /* conversions whose clipped samples are reported */
    uint32_t node_of[GF_MAX_STEPS]; /* last node of the filter of each step */
    gf_format in[GF_MAX_STEPS], out[GF_MAX_STEPS]; /* of each step; out.width 0: no image */
    gf_writer writer[GF_MAX_STEPS];
    uint32_t writers;
    bool linear; /* sRGB is converted to linear light */
} gf_graph;

gf_status gf_graph_new(const gf_chain *chain, const gf_format *in, gf_graph **graph,
                       gf_error *error);
void gf_graph_free(gf_graph *graph);
/* Store the formats of all inputs. */
void gf_graph_inputs(const gf_graph *graph, const gf_format *formats[GF_MAX_INPUTS]);
/* Return the name of the step whose image a writer writes, for messages. */
const char *gf_writer_name(const gf_chain *chain, const gf_writer *writer);
/* Return the plan of the filter of a step. */
static inline gf_plan *gf_graph_plan(const gf_graph *graph, uint32_t step) {
    return graph->plan[graph->node_of[step]];
}

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
/* Report the images of all steps: formats, pixels and brightness. */
void gf_made_report_graph(gf_made *made, const gf_chain *chain, const gf_graph *graph);
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
    gf_graph *graph;
    bool more_pages;                       /* with GF_ALL_PAGES, other pages follow */
    gf_written writer[GF_MAX_STEPS];       /* of each writer of the graph */
    gf_delivered node[GF_MAX_NODES];       /* open measures of the nodes; data NULL: none */
    gf_sample_sink *samples[GF_MAX_STEPS]; /* of each step; NULL: no sample file */
    bool buffer_samples[GF_MAX_STEPS];     /* buffer samples until the last strip, for their file */
    bool with_metadata;                    /* copy the input's metadata to the outputs */
    gf_metadata stripped;                  /* without items: what the output receives otherwise */
    bool keep_samples;                     /* keep samples in the result */
    uint64_t outside; /* f32 samples outside 0..1 that were converted to integers */
    uint64_t memory;  /* unallocated part of the engine's max_memory, in bytes */
    gf_watch watch;
    uint64_t images; /* number of similar images to expect, this one included; 0 counts as one */
    gf_made *made;   /* NULL: not reported */
    double began;
} gf_task;

/* Create a task; end it with gf_task_end. Its time includes an unreported start of a backend. */
gf_task gf_task_begin(gf_engine *engine, const gf_chain *chain, gf_made *made);
/* Close and free everything that is open, and zero the task. A zero task is allowed. */
void gf_task_end(gf_task *task);

/* Open the inputs and create the plan. Without an engine, set only the chain and the threads. */
gf_status gf_task_open_files(gf_task *task, gf_error *error);
/* Report what is known about the input: its bytes, pages and remarks. */
void gf_task_report_input(const gf_task *task);
/* Report the formats of the image files, and whether one has fewer bits per sample than the input.
 */
void gf_task_report_stored(const gf_task *task);
/* Adapt the metadata to the output, and fail if an item is damaged. The loss of a colour profile,
 * for example, changes the appearance of the picture. Call again when more has been read. */
gf_status gf_task_update_metadata(const gf_task *task, gf_error *error);
/* Run the filters that measure an image first, one pass for each such image, refine the plans with
 * their data, and restart the inputs. Buffer an input that cannot be read twice. */
gf_status gf_task_refine(gf_task *task, gf_error *error);
/* Open all measures. Reserve task memory for each result, and half of the remainder for buffered
 * samples; the strips have the rest. */
gf_status gf_task_open_measures(gf_task *task, gf_error *error);
/* Count the samples that nodes that convert have clipped. */
void gf_task_count_outside(gf_task *task);
/* Return what delivers the outputs of the nodes of the task: to its measures and writers. */
gf_delivery gf_task_delivery(gf_task *task);
/* Return the pass over an image into a delivery. */
gf_pass gf_task_pass(gf_task *task, gf_delivery *delivery);
/* Complete the sample files and the results, one per step, if there are any. */
gf_status gf_task_make_results(gf_task *task, gf_result **results, gf_error *error);

/* Make the results of an image in memory, result k of them at results[k * stride], from its
 * measurements by each node, without rows for none. The caller has set chain, name and memory of
 * the task, which is ended. */
gf_status gf_task_deliver(gf_task *task, const gf_format *format,
                          const gf_device_part parts[GF_MAX_NODES], gf_result **results,
                          uint64_t stride, gf_error *error);
/* Run an open task of an image in memory. Results: those of its report. */
gf_status gf_task_run(gf_task *task, gf_error *error);

/* Open the sinks and the sample files, or only the sample files, if there are any. */
gf_status gf_task_open_outputs(gf_task *task, gf_error *error);
gf_status gf_task_open_samples(gf_task *task, gf_error *error);
/* Finish the sinks, or their page, and report what they have counted and omitted. */
gf_status gf_task_finish_sinks(gf_task *task, gf_error *error);
/* Call options->ready, which may add an output, then rename all. Free the results on failure. */
gf_status gf_task_publish(gf_task *task, gf_error *error);

/* Reject an output of a writer in memory that shares bytes with an input; in: all inputs. */
gf_status gf_check_overlap(const gf_graph *graph, const char *name, const gf_pixels *in,
                           const gf_writer *writer, const gf_out_pixels *out, gf_error *error);
/* Run a chain from file to file. *made: cleared first; the caller frees the results. */
gf_status gf_run_files(gf_engine *engine, const gf_chain *chain, gf_made *made, gf_error *error);
/* Run all images of a chain in device memory. results: as in gf_outcome, or NULL. */
gf_status gf_run_on_device(gf_engine *engine, const gf_chain *chain, const gf_format *format,
                           void *stream, gf_result **results, gf_error *error);

#endif
