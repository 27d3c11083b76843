/* What the files that speak MPI share. */
#ifndef GF_CLI_RANKS_MPI_H
#define GF_CLI_RANKS_MPI_H

#include <mpi.h>

#include "ranks.h"

enum { GF_CLI_TAG_STREAM, GF_CLI_TAG_MESSAGE };

/* All ranks; a copy, so that nothing else speaks there. */
extern MPI_Comm gf_cli_world;

/* Sleeps as gf_cli_ranks_pause says. */
void gf_cli_ranks_rest(unsigned *vain);
/* Waits until it is complete. */
void gf_cli_ranks_finish(MPI_Request *request);
/* Waits until all that was posted has left. */
void gf_cli_ranks_post_end(void);

#endif
