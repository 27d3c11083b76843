#include "run.h"

#include "engine/batch/batch.h"

gf_status test_run_files(const test_files *run, gf_error *error) {
    return gf_run_file(run->engine, run->filter, run->settings, run->in, run->out, run->options,
                       run->result, run->report, error);
}

gf_status test_run_memory(const test_memory *run, gf_error *error) {
    return gf_run_memory(run->engine, run->filter, run->settings, run->format, run->in, run->out,
                         run->out_stride, run->result, run->report, error);
}

gf_status test_run_device(const test_memory *run, gf_error *error) {
    return gf_run_device(run->engine, run->filter, run->settings, run->format, run->in, run->out,
                         run->out_stride, run->stream, run->result, error);
}

gf_status test_run_list(const test_list *run, gf_error *error) {
    return gf_run_memory_batch(run->engine, run->filter, run->settings, run->format, run->count,
                               run->in, run->out, run->result, run->report, error);
}

gf_status test_run_device_list(const test_list *run, gf_error *error) {
    return gf_run_device_batch(run->engine, run->filter, run->settings, run->format, run->count,
                               run->in, run->out, run->stream, run->result, error);
}

gf_status test_run_batch(const gf_filter *filter, const gf_settings *settings,
                         const gf_batch_item *items, uint64_t count,
                         const gf_batch_options *options, gf_error *error) {
    return gf_run_batch(filter, settings, items, count, options, error);
}

gf_status test_run_batch_on(const test_batch *run, gf_error *error) {
    return gf_run_batch_on(run->devices, run->filter, run->settings, run->items, run->count,
                           run->options, run->source, error);
}
