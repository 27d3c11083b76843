/* The calls that run a filter. Tests make them here only: a change of the interface changes one
 * file, and arguments at the end that a test does not need are left out. */
#ifndef RUN_H
#define RUN_H

#include "gpufilter_tools.h"

/* Arguments of gf_run_file. */
typedef struct test_files {
    gf_engine *engine;
    const gf_filter *filter;
    const gf_settings *settings;
    const char *const *in; /* one path for each input of the filter */
    const char *out;
    const gf_file_options *options;
    gf_result **result;
    gf_report *report;
} test_files;
gf_status test_run_files(const test_files *run, gf_error *error);

/* Arguments of gf_run_memory, and of gf_run_device, which ignores the report. */
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
    void *stream; /* CUDA stream */
} test_memory;
gf_status test_run_memory(const test_memory *run, gf_error *error);
gf_status test_run_device(const test_memory *run, gf_error *error);

/* Arguments of gf_run_memory_batch, and of gf_run_device_batch, which ignores the report. */
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
    void *stream; /* CUDA stream */
} test_list;
gf_status test_run_list(const test_list *run, gf_error *error);
gf_status test_run_device_list(const test_list *run, gf_error *error);

/* Run gf_run_batch. */
gf_status test_run_batch(const gf_filter *filter, const gf_settings *settings,
                         const gf_batch_item *items, uint64_t count,
                         const gf_batch_options *options, gf_error *error);

/* Arguments of gf_run_batch_on. */
typedef struct test_batch {
    const struct gf_batch_devices *devices; /* simulated devices; NULL: none */
    const gf_filter *filter;
    const gf_settings *settings;
    const gf_batch_item *items;
    uint64_t count;
    const gf_batch_options *options;
    const gf_work_source *source;
} test_batch;
gf_status test_run_batch_on(const test_batch *run, gf_error *error);

#endif
