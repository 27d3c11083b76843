/* What is settled about a batch of files before any of them is begun. */
#ifndef GF_BATCH_PLAN_H
#define GF_BATCH_PLAN_H

#include "engine/batch_files.h"

/* Refuses what no item could make good: a filter of two images, settings that contradict each other
 * whatever the image. Fills in files->threads. */
gf_status gf_files_check(gf_files *files, gf_error *error);
/* Which devices run them; none: the threads of the CPU do. Settles the backend of
 * files->options.engine, and the reason of auto. */
gf_status gf_files_choose(gf_files *files, gf_files_devices *devices, gf_error *error);

#endif
