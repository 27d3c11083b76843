/* What the files that speak MPI share. */
#ifndef GF_MPI_H
#define GF_MPI_H

#include <mpi.h>
#include <pthread.h>

#include "ranks.h"

enum { GF_MPI_TAG_STREAM, GF_MPI_TAG_MESSAGE };

/* MPI counts bytes in int: longer messages are cut into pieces of this size. */
#define GF_MPI_MAX_PIECE ((size_t)1 << 30)

/* All ranks; a copy of MPI_COMM_WORLD, so that no other library's messages appear here. */
extern MPI_Comm gf_mpi_world;

/* Held during each call of MPI where several threads may make some. The functions below take it. */
extern pthread_mutex_t gf_mpi_calls;

/* Sleep before looking again for what MPI waits for: up to a millisecond, the longer the more tries
 * were in vain. *tries begins at 0. MPI's own waiting would keep a core busy that other ranks of
 * the machine, or this one's threads, need. */
void gf_mpi_rest(unsigned *tries);
/* Wait until a request is complete. */
void gf_mpi_finish(MPI_Request *request);
void gf_mpi_broadcast(void *data, size_t size);
/* Send bytes and wait until they may be changed. */
void gf_mpi_send(uint32_t to, int tag, const void *data, size_t size);
/* Receive bytes in the sizes in which they were sent. Main thread only. */
void gf_mpi_receive(uint32_t from, int tag, void *data, size_t size);
/* Return rank 0's status and error. All ranks call it. */
gf_status gf_mpi_follow(gf_status status, gf_error *error);
/* gf_cli_peers.agree */
gf_status gf_mpi_agree(gf_status status, gf_error *error);

/* Print why, and end the job on all ranks. From any thread. */
_Noreturn void gf_mpi_abort(const char *why);

/* gf_cli_peers.run_image (image_mpi.c) */
gf_status gf_mpi_run_image(const gf_cli_shared_image *image, gf_result **result, gf_report *report,
                           gf_error *error);
/* gf_cli_peers.run_batch (batch_mpi.c) */
gf_status gf_mpi_run_batch(const gf_cli_shared_batch *batch, gf_status status, gf_error *error);

#endif
