/* Batches of files: what tests use in addition to the public calls. */
#ifndef GF_BATCH_H
#define GF_BATCH_H

#include "engine/batch/files.h"
#include "io/png/png.h"

/* Return auto's estimate for all items, assuming that they resemble this one. */
gf_forecast gf_batch_expect(const gf_file_batch *batch, const gf_plan *plan,
                            const gf_codec_costs *codec);
/* Run gf_run_batch on the given devices, regardless of auto and of the backend's type, for tests
 * without a device. devices NULL: no difference. */
gf_status gf_run_batch_on(const gf_batch_devices *devices, const gf_job *job,
                          const gf_batch_item *items, uint64_t count,
                          const gf_batch_options *options, gf_error *error);

#endif
