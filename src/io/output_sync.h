/* An output on its way to the disk. */
#ifndef GF_OUTPUT_SYNC_H
#define GF_OUTPUT_SYNC_H

#include "io/output.h"

/* Waits until what was written is on the disk. Returns 0 or an errno. */
int gf_output_sync_file(gf_output *output);
/* The same if it is to be there before the output has its name. */
gf_status gf_output_sync_if_due(gf_output *output, gf_error *error);
/* After it has: waits until that is on the disk, if it is to be. */
gf_status gf_output_sync_folder(const gf_output *output, gf_error *error);

#endif
