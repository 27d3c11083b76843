/* From a file without a name to one that has one. Both return 0 or an errno. */
#ifndef GF_OUTPUT_LINK_H
#define GF_OUTPUT_LINK_H

#include "io/output.h"

/* That of its target, if nothing has it, or, where the system refuses that, a temporary one. */
int gf_output_give_name(gf_output *output);
/* A temporary one. ENAMETOOLONG also for a full table of temporaries. */
int gf_output_give_temporary(gf_output *output);

#endif
