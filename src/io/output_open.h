/* Opening an output; files.h has its everyday entrance. */
#ifndef GF_OUTPUT_OPEN_H
#define GF_OUTPUT_OPEN_H

#include "io/output.h"

/* gf_output_open of a file that others can open, by its temporary name. */
gf_status gf_output_open_named(const char *path, bool force, gf_output **output, gf_error *error);

#endif
