/* The file that an output is until it is complete. */
#ifndef GF_OUTPUT_CREATE_H
#define GF_OUTPUT_CREATE_H

#include "io/output.h"

/* Creates a file for output->target, in its folder: without a name if the system can do that. */
gf_status gf_output_create(gf_output *output, mode_t mode, gf_error *error);
/* A file without a name, open to read and write, in the folder of a path; -1 where there is no such
 * thing. flags: more of open's. */
int gf_output_open_nameless(const char *beside, int flags, mode_t mode);

#endif
