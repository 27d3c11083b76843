/* A batch of files, run. */
#ifndef GF_BATCH_RUN_H
#define GF_BATCH_RUN_H

#include "engine/batch_plan.h"

/* gf_run_batch, but on devices with this backend, whatever auto or the backend's kind say: for
 * tests without a device. NULL: no difference. */
gf_status gf_run_batch_on(const gf_files_devices *devices, const gf_filter *filter,
                          const gf_settings *settings, const gf_batch_item *items, uint64_t count,
                          const gf_batch_options *options, gf_error *error);

#endif
