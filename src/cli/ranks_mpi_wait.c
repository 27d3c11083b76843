/* Waiting for MPI, and giving up.
 *
 * Whoever waits sleeps in between: MPI's own waiting keeps a core busy, which other ranks of the
 * machine, or this one's threads, have a use for. */
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "ranks_mpi.h"

MPI_Comm gf_cli_world;

long gf_cli_ranks_pause(unsigned *vain) {
    enum { YIELDS = 4, SHORTEST = 20000, LONGEST = 1000000 };
    if (++*vain <= YIELDS)
        return 0;
    const unsigned more = *vain - YIELDS;
    const long pause = more < 6 ? SHORTEST << more : LONGEST;
    return pause < LONGEST ? pause : LONGEST;
}

void gf_cli_ranks_rest(unsigned *vain) {
    const struct timespec time = {0, gf_cli_ranks_pause(vain)};
    if (time.tv_nsec)
        nanosleep(&time, NULL);
    else
        sched_yield();
}

void gf_cli_ranks_finish(MPI_Request *request) {
    int done = 0;
    for (unsigned vain = 0; !done;) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (!done)
            gf_cli_ranks_rest(&vain);
    }
}

_Noreturn void gf_cli_ranks_abort(const char *why) {
    char host[64] = "";
    int rank = 0;
    gf_remove_temporaries();
    MPI_Comm_rank(gf_cli_world, &rank);
    (void)gethostname(host, sizeof host - 1);
    fprintf(stderr, "gpufilter: rank %d on %s: %s\n", rank, host, why);
    MPI_Abort(gf_cli_world, GF_FAILED);
    _exit(GF_FAILED);
}
