/* An engine: the backends that have been started, and the choice among them. */
#ifndef GF_ENGINE_H
#define GF_ENGINE_H

#include "engine/backend.h"

#define GF_BACKEND_COUNT 3

struct gf_engine {
    gf_engine_options options; /* its strings are the caller's */
    const gf_backend *named;   /* NULL for auto */
    void *states[GF_BACKEND_COUNT];
    bool started[GF_BACKEND_COUNT];
    double start_seconds; /* spent on starting since the last job's report took note */
};

/* The backend for one image, started. codec_cost is what reading and writing a sample take on the
 * slower side, in nanoseconds. reason (of size bytes) says why auto chose it. */
gf_status gf_engine_choose(gf_engine *engine, const gf_plan *plan, double codec_cost,
                           const gf_backend **backend, void **state, char *reason, size_t size,
                           gf_error *error);

/* Has CUDA been started already? */
bool gf_engine_has_cuda(const gf_engine *engine);

/* After *backend could not begin with `error`: may another do it? True under auto, with the CPU in
 * *backend and the error as the reason. */
bool gf_engine_fall_back(gf_engine *engine, const gf_backend **backend, void **state, char *reason,
                         size_t size, const gf_error *error);

/* The cost model of auto. Pure arithmetic on estimates; touches no device. */
void gf_auto_expect(const gf_plan *plan, double codec_cost, uint32_t threads, bool cuda_started,
                    gf_forecast *forecast);
/* The same for many files like this one; CUDA has not been started. */
void gf_auto_expect_batch(const gf_plan *plan, double decode_cost, double encode_cost,
                          uint64_t count, uint32_t threads, gf_forecast *forecast);
/* Is CUDA expected to finish first, its start-up included? */
bool gf_auto_wants_cuda(const gf_plan *plan, double codec_cost, uint32_t threads, bool cuda_started,
                        char *reason, size_t size);

#endif
