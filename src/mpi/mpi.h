/* What the files that call MPI share. */
#ifndef GF_MPI_H
#define GF_MPI_H

#include <mpi.h>
#include <pthread.h>

#include "ranks.h"

/* Tags of messages to rank 0 and from it. */
enum { GF_MPI_TO_FIRST, GF_MPI_FROM_FIRST };

/* All ranks; a copy of MPI_COMM_WORLD, so that no other library's messages appear here. */
extern MPI_Comm gf_mpi_world;

/* Held during each call of MPI where several threads may make some. The functions below take it. */
extern pthread_mutex_t gf_mpi_calls;

/* Sleep before looking again for what MPI waits for: up to a millisecond, the longer the more tries
 * were in vain. *tries begins at 0. MPI's own waiting would keep a core busy that other ranks of
 * the machine, or this one's threads, need. */
void gf_mpi_rest(unsigned *tries);
/* Copy rank 0's bytes to all ranks. All ranks call it. */
void gf_mpi_broadcast(void *data, size_t size);
/* Likewise where only rank 0 knows how many there are. Returns them, allocated on all ranks. */
void *gf_mpi_share(void *data, size_t *size);
/* Send bytes to rank 0, and wait until they may be changed. */
void gf_mpi_send(void *data, size_t size);
/* Rank 0's main thread: receive bytes in the sizes in which they were sent. */
void gf_mpi_receive(uint32_t from, void *data, size_t size);
/* gf_cli_peers.agree */
gf_status gf_mpi_agree(gf_status status, gf_error *error);

/* "rank 3 on HOST" */
const char *gf_mpi_name(void);
/* Print why, and end the job on all ranks. From any thread. */
_Noreturn void gf_mpi_abort(const char *why);
/* Return memory for a message; NULL ends the job: other ranks wait for the message. */
void *gf_mpi_need(void *memory);

#endif
