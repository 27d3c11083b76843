/* Shared declarations of the files that call MPI. */
#ifndef GF_MPI_H
#define GF_MPI_H

#include <mpi.h>
#include <pthread.h>

#include "ranks.h"

/* Tags of messages to and from rank 0. */
enum { GF_MPI_TO_ROOT, GF_MPI_FROM_ROOT };

/* All ranks: a duplicate of MPI_COMM_WORLD, which excludes the messages of other libraries. */
extern MPI_Comm gf_mpi_world;

/* Held during each MPI call while several threads may call MPI. The functions below lock it. */
extern pthread_mutex_t gf_mpi_calls;

/* Sleep between two polls, for up to a millisecond, longer with each try. The caller sets *tries to
 * 0 before the first poll. Blocking MPI calls would keep a core busy, which other ranks of the
 * machine and the threads of this rank need. */
void gf_mpi_rest(unsigned *tries);
/* Broadcast bytes from rank 0. All ranks call it. */
void gf_mpi_broadcast(void *data, size_t size);
/* Broadcast bytes whose size rank 0 knows. Return them, allocated on all ranks. */
void *gf_mpi_share(void *data, size_t *size);
/* Send bytes to rank 0. Return when the buffer may be reused. */
void gf_mpi_send(void *data, size_t size);
/* Main thread of rank 0: receive bytes, in the same sizes as they were sent. */
void gf_mpi_receive(uint32_t from, void *data, size_t size);
/* Return the status and error of the lowest failed rank (gf_cli_peers.agree). */
gf_status gf_mpi_agree(gf_status status, gf_error *error);

/* Return "rank 3 on HOST". */
const char *gf_mpi_name(void);
/* Return memory. NULL: out of memory; abort all ranks, which otherwise wait for a message. */
void *gf_mpi_need(void *memory);

#endif
