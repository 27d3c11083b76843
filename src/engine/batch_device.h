/* The way of devices through a batch of files. */
#ifndef GF_BATCH_DEVICE_H
#define GF_BATCH_DEVICE_H

#include "engine/batch_plan.h"

/* Runs all items: the calling and other threads decode and encode, a thread for each device drives
 * an engine of files->options.engine.backend (of the cpu, if none is named and it cannot start),
 * and others drive more engines of the device while there are large images for them. */
void gf_files_run_on_devices(gf_files *files, const gf_files_devices *devices);

#endif
