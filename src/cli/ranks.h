/* The processes that an MPI launcher (mpirun, srun) started to do one job together. Only the main
 * thread calls these. */
#ifndef GF_CLI_RANKS_H
#define GF_CLI_RANKS_H

#include "gpufilter.h"

typedef struct gf_cli_rank {
    gf_ranks job;           /* count is 1 where nobody else was started */
    uint32_t local, locals; /* which one it is on its machine, and of how many */
    uint32_t threads;       /* its share of the cores; 0: all that it may use */
    bool launched;          /* what looks like its terminal may be the launcher's way to a file */
} gf_cli_rank;

/* Was MPI built in? */
extern const bool gf_cli_has_ranks;

/* Joins the others, if a launcher started this process. */
void gf_cli_ranks_start(void);
const gf_cli_rank *gf_cli_this_rank(void);
/* Is this the one that talks? */
bool gf_cli_ranks_first(void);
/* Waits for all. Returns the largest of their exit codes. */
int gf_cli_ranks_end(int code);

/* Ends all of them, for a reason that is this one's. From any thread. */
_Noreturn void gf_cli_ranks_abort(const char *why);

/* ---- messages, apart from the calls of gf_ranks ---------------------------------------------- */

/* Sends a copy of the data. Does not wait: it goes on its way while this rank polls, so that who is
 * slow to take it holds up nobody else. */
void gf_cli_ranks_post(uint32_t to, const void *data, size_t size);
/* Bytes that were posted, and are not known to have left. */
size_t gf_cli_ranks_posted(void);
/* A message to this rank, from whom, and its size; NULL if there is none now. For the caller to
 * free. Those from one rank come in the order in which it posted them. */
void *gf_cli_ranks_poll(uint32_t *from, size_t *size);
/* How many nanoseconds to wait before looking again: the more, the more often that has been in
 * vain. *vain begins at 0. */
long gf_cli_ranks_pause(unsigned *vain);

#endif
