/* The main thread of each rank while a batch is under way: between the threads here and the other
 * ranks. */
#include "batch_ranks.h"

#include <stdlib.h>
#include <string.h>

#define MOST_POSTED ((size_t)64 << 10) /* bytes on their way, before more follow */

/* ---- rank 0 ---------------------------------------------------------------------------------- */

static void send(void *worker, uint32_t to, const void *data, size_t size) {
    if (to == 0)
        gf_cli_worker_hear(worker, data, size);
    else
        gf_cli_ranks_post(to, data, size);
}

static gf_status lead(gf_cli_batch_run *run, const gf_batch_options *options, gf_error *error) {
    gf_cli_worker *worker = gf_cli_worker_new(run, options);
    gf_cli_leader *leader = gf_cli_leader_new(run, send, worker);
    for (unsigned vain = 0; !gf_cli_leader_is_over(leader);) {
        gf_cli_letter *letter = gf_cli_worker_letter(worker);
        uint32_t from;
        size_t size;
        void *data = gf_cli_ranks_poll(&from, &size);
        if (letter)
            gf_cli_leader_hear(leader, 0, letter->data, letter->size);
        if (data)
            gf_cli_leader_hear(leader, from, data, size);
        gf_cli_leader_hand_out(leader);
        gf_cli_progress_draw(&run->progress);
        if (letter || data)
            vain = 0;
        else
            gf_cli_worker_await(worker, true, gf_cli_ranks_pause(&vain));
        free(letter);
        free(data);
    }
    (void)gf_cli_worker_end(worker, error); /* the leader knows, too, and of which rank it is */
    return gf_cli_leader_end(leader, error);
}

/* ---- the others ------------------------------------------------------------------------------ */

static gf_status follow(gf_cli_batch_run *run, const gf_batch_options *options, gf_error *error) {
    gf_cli_worker *worker = gf_cli_worker_new(run, options);
    for (unsigned vain = 0; !gf_cli_worker_is_over(worker);) {
        const bool room = gf_cli_ranks_posted() < MOST_POSTED;
        gf_cli_letter *letter = room ? gf_cli_worker_letter(worker) : NULL;
        uint32_t from;
        size_t size;
        if (letter)
            gf_cli_ranks_post(0, letter->data, letter->size);
        void *data = gf_cli_ranks_poll(&from, &size);
        if (data)
            gf_cli_worker_hear(worker, data, size);
        if (letter || data)
            vain = 0;
        else
            gf_cli_worker_await(worker, room, gf_cli_ranks_pause(&vain));
        free(letter);
        free(data);
    }
    return gf_cli_worker_end(worker, error);
}

gf_status gf_cli_batch_on_ranks(gf_cli_batch_run *run, const gf_batch_options *options,
                                gf_error *error) {
    if (run->to_run == 0)
        return GF_OK;
    return run->rank == 0 ? lead(run, options, error) : follow(run, options, error);
}
