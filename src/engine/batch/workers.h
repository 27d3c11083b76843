/* Threads of a batch of files, and the steps that they perform. */
#ifndef GF_BATCH_WORKERS_H
#define GF_BATCH_WORKERS_H

#include "engine/batch/files.h"

/* Run the items of a checked batch on devices, or without them on CPU threads. Return why some
 * could not be run. */
gf_status gf_batch_run(const gf_file_batch *batch, const gf_batch_devices *devices,
                       gf_error *error);

#endif
