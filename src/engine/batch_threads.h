/* The way of the CPU through a batch of files. */
#ifndef GF_BATCH_THREADS_H
#define GF_BATCH_THREADS_H

#include "engine/batch_files.h"

/* Runs all items: the calling thread and files->at_once - 1 others, each with an engine of its own,
 * take one after the other. Fails if an engine cannot be opened; nothing was begun then. */
gf_status gf_files_run_on_threads(gf_files *files, gf_error *error);

#endif
