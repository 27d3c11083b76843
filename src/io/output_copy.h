/* A file without a name that the system gives none. */
#ifndef GF_OUTPUT_COPY_H
#define GF_OUTPUT_COPY_H

#include "io/output.h"

/* Its bytes go to another one, that has a temporary name. Returns 0 or an errno, `cause` if there
 * is none. */
int gf_output_copy_to_temporary(gf_output *output, int cause);

#endif
