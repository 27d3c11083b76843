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
/* Transfer bytes, and return when the buffer may be reused: broadcast from a rank, called by all
 * ranks; send to rank 0; on the main thread of rank 0, receive from a rank, in the same sizes as
 * sent. */
typedef enum gf_mpi_transfer { GF_MPI_BROADCAST, GF_MPI_SEND, GF_MPI_RECEIVE } gf_mpi_transfer;
void gf_mpi_move(gf_mpi_transfer transfer, uint32_t rank, void *data, size_t size);
/* Broadcast bytes whose size rank 0 knows. Return them, allocated on all ranks. */
void *gf_mpi_share(void *data, size_t *size);

/* Return "rank 3 on HOST". */
const char *gf_mpi_name(void);
/* Return memory. NULL: out of memory; abort all ranks, which otherwise wait for a message. */
void *gf_mpi_need(void *memory);

#endif
