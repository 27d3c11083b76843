/* The name that an output has until it is complete, where it needs one. */
#ifndef GF_OUTPUT_TEMPORARY_H
#define GF_OUTPUT_TEMPORARY_H

#include "io/output.h"

/* How often another name is tried where a file has the first one already. */
enum { GF_TEMPORARY_ATTEMPTS = 16 };

/* Check whether a file can have such a name, and be renamed and removed. Returns 0 or an errno:
 * ENAMETOOLONG for its path, EPERM where the folder is append-only. */
int gf_output_check_temporary(const gf_output *output);
/* Notes a name before a file has it, so that no signal falls between the two; gf_temporary_made
 * comes after. Returns 0 or an errno: that of gf_output_check_temporary, ENOMEM, or EMFILE for a
 * full table of temporaries. */
int gf_output_begin_temporary(gf_output *output);
/* No file has the name, or not any more. */
void gf_output_end_temporary(gf_output *output);
/* Creates a file of such a name for output->target. */
gf_status gf_output_create_temporary(gf_output *output, mode_t mode, gf_error *error);

#endif
