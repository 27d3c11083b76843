/* A batch of files from its beginning to its end: by devices, or by the threads of the CPU. */
#include "engine/batch_run.h"

#include <inttypes.h>

#include "engine/batch_device.h"
#include "engine/batch_plan.h"
#include "engine/batch_threads.h"
#include "error.h"
#include "thread.h"

/* No device is left. Of items that others take from, too, this process knows not how many. */
static void tell_what_is_left(const gf_files *files, gf_error *error) {
    const uint64_t left = files->count - files->over;
    if (!files->options.take)
        gf_fail(error, files->status,
                "%.400s; %" PRIu64 " of %" PRIu64 " files were not done, and no device is left",
                files->error.message, left, files->count);
}

gf_status gf_run_batch_on(const gf_files_devices *devices, const gf_filter *filter,
                          const gf_settings *settings, const gf_batch_item *items, uint64_t count,
                          const gf_batch_options *options, gf_error *error) {
    const gf_batch_options defaults = {0};
    gf_files files = {.filter = filter,
                      .settings = settings,
                      .items = items,
                      .count = count,
                      .options = options ? *options : defaults};
    gf_files_devices planned = {0};
    gf_status status = gf_files_check(&files, error);
    if (status || count == 0)
        return status;
    if (!devices) {
        status = gf_files_choose(&files, &planned, error);
        devices = planned.count ? &planned : NULL;
    }
    if (status)
        return status;
    status = gf_files_init(&files, error);
    if (!status && devices)
        gf_files_run_on_devices(&files, devices);
    else if (!status)
        status = gf_files_run_on_threads(&files, error);
    gf_files_clear(&files);
    if (!status && files.status) {
        status = files.status;
        if (error)
            *error = files.error;
        if (files.device_failed)
            tell_what_is_left(&files, error);
    }
    return status;
}

gf_status gf_run_batch(const gf_filter *filter, const gf_settings *settings,
                       const gf_batch_item *items, uint64_t count, const gf_batch_options *options,
                       gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    return gf_run_batch_on(NULL, filter, settings, items, count, options, error);
}
