/* Timing a backend: a filter on rows that lie where the backend computes, and copies. */
#ifndef GF_TRIAL_H
#define GF_TRIAL_H

#include "core/clock.h"
#include "engine/backend.h"

/* Passes of a filter over one image. */
typedef struct gf_trial {
    gf_job job;     /* bands as the stream would cut them */
    gf_rows in;     /* all rows, in host memory, a job.in_stride apart */
    gf_rows out;    /* gets the rows of the last pass: image rows and records */
    void *state;    /* gets the state after the last pass, merged into one; NULL without states */
    void *data;     /* of the measure, open: takes the payloads of the first pass */
    double budget;  /* seconds for the passes that are timed, about; the first one is not */
    gf_laps passes; /* their times */
} gf_trial;

/* A trial by a backend that computes in the host's memory: the bands go through submit and wait
 * where they lie. */
gf_status gf_trial_on_host(const gf_backend *backend, void *state, gf_trial *trial,
                           gf_error *error);

/* Times copies in the host's memory by a function. */
gf_status gf_time_host_copy(void (*copy)(void *state, void *to, const void *from, uint64_t bytes),
                            void *state, uint64_t bytes, double budget, gf_memory_speed *speed,
                            gf_error *error);

#endif
