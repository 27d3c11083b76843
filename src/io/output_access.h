/* Who may do what with an output that replaces a file. */
#ifndef GF_OUTPUT_ACCESS_H
#define GF_OUTPUT_ACCESS_H

#include "io/output.h"

/* Owner, group, mode and access control list of another file, as far as that is allowed. Returns 0,
 * or -1 with errno. */
int gf_output_keep_access(gf_output *output, const char *from, const struct stat *info);

#endif
