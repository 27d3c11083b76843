/* The calls that run a filter. Tests make them here only: a change of the interface changes one
 * file, and arguments at the end that a test does not need are left out. Errors are in `why`. */
#ifndef RUN_H
#define RUN_H

#include "gpufilter_tools.h"

/* A job of one filter on files. */
typedef struct test_files {
    gf_engine *engine;
    const gf_filter *filter;
    const gf_settings *settings;
    const char *const *in; /* one path for each input of the filter */
    const char *out;
    const gf_file_options *options;
    gf_result **result;
    gf_report *report;
    gf_step_report *output; /* of the last step, with the brightness of the first one */
} test_files;
gf_status test_run_files(const test_files *run);

/* A job of one filter on an image in memory. A device ignores the reports. */
typedef struct test_memory {
    gf_engine *engine;
    const gf_filter *filter;
    const gf_settings *settings;
    const gf_format *format;
    const gf_pixels *in; /* one for each input of the filter */
    void *out;
    size_t out_stride;
    gf_result **result;
    gf_report *report;
    gf_step_report *output; /* as in test_files */
    void *stream;           /* CUDA stream */
} test_memory;
gf_status test_run_memory(const test_memory *run);
gf_status test_run_device(const test_memory *run);

/* A job of one filter on images in memory. A device ignores the report. */
typedef struct test_list {
    gf_engine *engine;
    const gf_filter *filter;
    const gf_settings *settings;
    const gf_format *format;
    uint64_t count;
    const gf_pixels *in; /* one for each input of each image */
    const gf_out_pixels *out;
    gf_result **result; /* one for each image */
    gf_report *report;
    void *stream;           /* CUDA stream */
    gf_step_report *output; /* as in test_files */
} test_list;
gf_status test_run_list(const test_list *run);
gf_status test_run_device_list(const test_list *run);

/* Return the job of a filter, with a writer if it produces an image. steps: two. */
gf_job test_job_of(const gf_filter *filter, const gf_settings *settings, gf_step *steps);

/* A file of a batch. */
typedef struct test_item {
    const char *in, *out;
    bool replace;
} test_item;

/* Options of a batch, and of its files. */
typedef struct test_batch_options {
    gf_engine_options engine;
    gf_file_options files;
    bool in_order, fail_fast;
    bool (*done)(void *context, const gf_batch_done *done);
    void *context;
} test_batch_options;

/* Run gf_run_batch for one filter. */
gf_status test_run_batch(const gf_filter *filter, const gf_settings *settings,
                         const test_item *items, uint64_t count, const test_batch_options *options);

/* Arguments of gf_run_batch_on. */
typedef struct test_batch {
    const struct gf_batch_devices *devices; /* simulated devices; NULL: none */
    const gf_filter *filter;
    const gf_settings *settings;
    const test_item *items;
    uint64_t count;
    const test_batch_options *options;
    const gf_work_source *source;
} test_batch;
gf_status test_run_batch_on(const test_batch *run);

/* ---- jobs in device memory ------------------------------------------------------------------- */

gf_status test_device_job(gf_engine *engine, const gf_filter *filter, const gf_settings *settings,
                          const gf_format *format, gf_device_job **job);
/* in: one for each input of each image. */
gf_status test_device_job_run(gf_device_job *job, uint32_t inputs, uint64_t count,
                              const gf_pixels *in, const gf_out_pixels *out, void *stream,
                              gf_device_results **results);

/* ---- ranges of rows -------------------------------------------------------------------------- */

gf_status test_rows_possible(const test_files *what, gf_format *format, bool *possible);

/* ---- properties of a filter (gf_job_inspect) ------------------------------------------------- */

gf_status test_filter_output(const gf_filter *filter, const gf_settings *settings,
                             const gf_format *in, gf_format *out);
gf_status test_effective(const gf_filter *filter, const gf_settings *settings, const gf_format *in,
                         gf_settings **effective);
gf_status test_result_bytes(const gf_filter *filter, const gf_settings *settings,
                            const gf_format *in, uint64_t *bytes);
const gf_filter *test_filter_before(const gf_filter *filter, const gf_settings *settings,
                                    const gf_format *in);
size_t test_filter_count(void);

#endif
