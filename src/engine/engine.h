/* An engine: the backends that have been started, and the choice among them. */
#ifndef GF_ENGINE_H
#define GF_ENGINE_H

#include "core/thread.h"
#include "engine/backend.h"
#include "io/io.h"

#define GF_BACKEND_COUNT 3

struct gf_engine {
    gf_engine_options options; /* its strings are the caller's */
    const gf_backend *named;   /* NULL for auto */
    void *states[GF_BACKEND_COUNT];
    bool started[GF_BACKEND_COUNT];
    double start_seconds; /* spent on starting since the last job's report took note */
    bool replaceable;     /* CUDA was named by those who would have the cpu backend as well, ... */
    bool leaves;          /* ... but not for an image that CUDA cannot begin */
    bool lost;            /* CUDA failed, and is not used any more, ... */
    gf_error loss;        /* ... because of this */
    gf_pool *checkers;    /* for golden, which verifies; NULL until they are wanted */
};

/* For tests without a device: from now on this stands in CUDA's place, and "auto" expects it to
 * finish first; NULL: nothing does any more. Not while an engine is open. */
void gf_engine_stand_in(const gf_backend *backend);

/* Threads that decode, compute and encode. */
uint32_t gf_engine_threads(const gf_engine *engine);

/* What an engine is to do with an image. */
typedef struct gf_workload {
    const gf_plan *plan;
    gf_codec_costs codec; /* reading and writing it; all zero for nothing */
    uint64_t rows;        /* of it that are done here; 0: all */
    uint64_t images;      /* like this one that are to come, itself among them; 0 counts as one */
} gf_workload;

/* Chooses the backend for it, and starts it. reason (of size bytes) says why auto chose it. */
gf_status gf_engine_choose(gf_engine *engine, const gf_workload *work, const gf_backend **backend,
                           void **state, char *reason, size_t size, gf_error *error);

/* After *backend failed with `error`, GF_NO_BACKEND if it cannot be used any more: may another do
 * it? True under auto, with the CPU in *backend and what failed as the reason. */
bool gf_engine_fall_back(gf_engine *engine, const gf_backend **backend, void **state, char *reason,
                         size_t size, const gf_error *error);

/* A backend's failure as the reason to do without it: less its advice. */
void gf_engine_give_reason(char *reason, size_t size, const gf_error *error);

/* The threads for golden, started. */
gf_status gf_engine_checkers(gf_engine *engine, gf_pool **pool, gf_error *error);

/* What auto knows of where the work is done. */
typedef struct gf_auto_machine {
    uint32_t threads; /* at least 1 */
    uint32_t devices; /* that would share an image; 0 counts as one */
    uint64_t images;  /* that share the start-up; 0 counts as one */
    uint64_t rows;    /* of the image that are done here; 0: all */
    bool cuda_started;
    /* Of files, how many are decoded and encoded at a time, each by the threads of its codec; 0
     * counts as one. */
    uint32_t files;        /* on the CPU */
    uint32_t device_files; /* on all devices */
    bool held;             /* for devices, they are held in memory before and after */
} gf_auto_machine;

gf_auto_machine gf_engine_machine(const gf_engine *engine);

/* What auto expects. */
typedef struct gf_forecast {
    bool cuda; /* expected to finish first: if it can then be started, it gets the image */
    double cpu_seconds, cuda_seconds; /* the whole image */
    double start_seconds;             /* of cuda_seconds, to start the device */
    char reason[192];                 /* as in gf_report */
} gf_forecast;

/* The cost model of auto. Pure arithmetic on estimates; touches no device. */
void gf_auto_expect(const gf_plan *plan, const gf_codec_costs *codec, const gf_auto_machine *on,
                    gf_forecast *forecast);
/* A forecast of one image becomes that of so many. */
void gf_auto_times(gf_forecast *forecast, uint64_t images);

#endif
