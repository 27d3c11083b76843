#include "engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/thread.h"

enum { GOLDEN, CPU, CUDA };

static const gf_backend *const backends[GF_BACKEND_COUNT] = {
    [GOLDEN] = &gf_backend_golden,
    [CPU] = &gf_backend_cpu,
    [CUDA] = GF_IF_CUDA(&gf_backend_cuda),
};

static const gf_backend *stand_in;

static const gf_backend *backend_at(int which) {
    return which == CUDA && stand_in ? stand_in : backends[which];
}

void gf_engine_stand_in(const gf_backend *backend) {
    stand_in = backend;
}

static const char *const names[] = {"auto", "golden", "cpu", "cuda", NULL};

const char *const *gf_backend_names(void) {
    return names;
}

bool gf_has_cuda(void) {
    return backend_at(CUDA) != NULL;
}

static bool is_simd(const char *name) {
    const char *const *known = gf_simd_names();
    while (*known && strcmp(*known, name) != 0)
        known++;
    return *known != NULL;
}

static gf_status start(gf_engine *engine, int which, gf_error *error) {
    if (engine->started[which])
        return GF_OK;
    if (!backend_at(which))
        return gf_fail(error, GF_NO_BACKEND,
                       "%s: this gpufilter was built without it; build it where nvcc is, or use "
                       "--backend auto",
                       names[1 + which]);
    const double before = gf_now();
    gf_status status = backend_at(which)->open(&engine->options, &engine->states[which], error);
    engine->start_seconds += gf_now() - before;
    engine->started[which] = !status;
    return status;
}

gf_status gf_engine_open(const gf_engine_options *options, gf_engine **out, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    gf_engine *engine = calloc(1, sizeof *engine);
    *out = NULL;
    if (!engine)
        return gf_fail_memory(error, "engine", sizeof *engine, "the engine");
    if (options)
        engine->options = *options;
    if (engine->options.unthreaded)
        engine->options.threads = 1;
    if (!engine->options.max_memory)
        engine->options.max_memory = GF_DEFAULT_MAX_MEMORY;
    const char *name = engine->options.backend ? engine->options.backend : "auto";
    int which = -1;
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0)
            which = i;
    gf_status status = GF_OK;
    if (which == 0 && engine->options.devices)
        which = 1 + CUDA;
    if (which < 0)
        status = gf_fail(error, GF_USAGE, "%s: no such backend", name);
    else if (engine->options.simd && !is_simd(engine->options.simd))
        status = gf_fail(error, GF_USAGE, "%s: no such SIMD level", engine->options.simd);
    else if (engine->options.devices && which != 1 + CUDA)
        status =
            gf_fail(error, GF_USAGE, "--device: the %s backend has none; use --backend cuda", name);
    else if (which > 0) {
        status = start(engine, which - 1, error);
        engine->named = backend_at(which - 1);
    }
    if (status) {
        gf_engine_close(engine);
        return status;
    }
    *out = engine;
    return GF_OK;
}

void gf_engine_close(gf_engine *engine) {
    if (!engine)
        return;
    for (int i = 0; i < GF_BACKEND_COUNT; i++)
        if (engine->started[i])
            backend_at(i)->close(engine->states[i]);
    gf_pool_close(engine->checkers);
    free(engine);
}

static gf_status use(gf_engine *engine, int which, const gf_backend **backend, void **state,
                     gf_error *error) {
    gf_status status = start(engine, which, error);
    if (status)
        return status;
    *backend = backend_at(which);
    *state = engine->states[which];
    return GF_OK;
}

uint32_t gf_engine_threads(const gf_engine *engine) {
    return engine->options.threads ? engine->options.threads : gf_cpu_count();
}

/* Devices that are named one by one; how many "all" are, only CUDA knows. */
static uint32_t count_devices(const char *list) {
    uint32_t count = 1;
    for (; list && *list; list++)
        count += *list == ',';
    return count;
}

gf_auto_machine gf_engine_machine(const gf_engine *engine) {
    return (gf_auto_machine){.threads = gf_engine_threads(engine),
                             .devices = count_devices(engine->options.devices),
                             .cuda_started = engine->started[CUDA]};
}

/* Is CUDA expected to finish first, its start-up included? */
static bool wants_cuda(const gf_engine *engine, const gf_workload *work, char *reason,
                       size_t size) {
    gf_auto_machine machine = gf_engine_machine(engine);
    gf_forecast forecast;
    machine.images = work->images;
    machine.rows = work->rows;
    gf_auto_expect(work->plan, &work->codec, &machine, &forecast);
    snprintf(reason, size, "%s", forecast.reason);
    return forecast.cuda || stand_in;
}

void gf_engine_give_reason(char *reason, size_t size, const gf_error *error) {
    static const char advice[] = "; use --backend";
    const char *end = strstr(error->message, advice);
    const size_t length = end ? (size_t)(end - error->message) : strlen(error->message);
    snprintf(reason, size, "%.*s", length < 130 ? (int)length : 130, error->message);
}

gf_status gf_engine_choose(gf_engine *engine, const gf_workload *work, const gf_backend **backend,
                           void **state, char *reason, size_t size, gf_error *error) {
    int which = CPU;
    reason[0] = 0;
    if (engine->lost && (!engine->named || engine->replaceable)) {
        gf_engine_give_reason(reason, size, &engine->loss);
    } else if (engine->lost) {
        if (error)
            *error = engine->loss;
        return engine->loss.status;
    } else if (engine->named) {
        for (int i = 0; i < GF_BACKEND_COUNT; i++)
            if (backend_at(i) == engine->named)
                which = i;
    } else if (gf_has_cuda() && wants_cuda(engine, work, reason, size)) {
        gf_error refused;
        if (start(engine, CUDA, &refused) == GF_OK)
            which = CUDA;
        else
            gf_engine_give_reason(reason, size, &refused);
    }
    return use(engine, which, backend, state, error);
}

bool gf_engine_fall_back(gf_engine *engine, const gf_backend **backend, void **state, char *reason,
                         size_t size, const gf_error *error) {
    if (*backend == backend_at(CUDA) && error->status == GF_NO_BACKEND && !engine->lost) {
        engine->lost = true;
        engine->loss = *error;
    }
    if ((engine->named && !engine->replaceable) || *backend == backends[CPU])
        return false;
    gf_engine_give_reason(reason, size, error);
    gf_error ignored;
    return use(engine, CPU, backend, state, &ignored) == GF_OK;
}

gf_status gf_engine_checkers(gf_engine *engine, gf_pool **pool, gf_error *error) {
    gf_status status = GF_OK;
    if (!engine->checkers)
        status = gf_pool_open(gf_engine_threads(engine), &engine->checkers, error);
    *pool = engine->checkers;
    return status;
}

/* ---- the cost model of auto, written out in docs/design-backends.md ---------------------------
 */

#define CUDA_START_SECONDS 0.3 /* driver, context and pinned buffers */
#define CUDA_IMAGE_SECONDS                                                                         \
    1e-4 /* of an image, to queue its work and to wait for the last of it                          \
          */
#define CUDA_BYTES_PER_SECOND 10e9 /* each way, both at once, on PCIe 3 x16 */
#define HELD_BYTES_PER_SECOND 4e9  /* of a thread: a first touch, a copy from memory into strips */

static double auto_larger(double a, double b) {
    return a > b ? a : b;
}

/* 0 counts as one. */
static double auto_share(double seconds, uint64_t workers) {
    return workers > 1 ? seconds / (double)workers : seconds;
}

/* Threads that share a codec's work are no more than all cores. 0 of either counts as one. */
static double auto_codec_share(double seconds, uint32_t workers, uint32_t files, uint32_t cores) {
    const uint64_t all = (uint64_t)(workers ? workers : 1) * (files ? files : 1);
    return auto_share(seconds, all < cores ? all : cores);
}

/* What the slower side of the codec takes if so many files are under way. */
static double auto_slower_side(double decode, double encode, const gf_codec_costs *codec,
                               uint32_t files, uint32_t cores) {
    return auto_larger(auto_codec_share(decode, codec->decode_threads, files, cores),
                       auto_codec_share(encode, codec->encode_threads, files, cores));
}

static void auto_say(gf_forecast *forecast, const char *of_what) {
    snprintf(forecast->reason, sizeof forecast->reason,
             "expected %.2f s on cpu, %.2f s on cuda with %.2f s start-up%s", forecast->cpu_seconds,
             forecast->cuda_seconds, forecast->start_seconds, of_what);
}

void gf_auto_expect(const gf_plan *plan, const gf_codec_costs *codec, const gf_auto_machine *on,
                    gf_forecast *forecast) {
    const double rows = (double)(on->rows ? on->rows : plan->in.height);
    const double samples = (double)gf_row_samples(&plan->in) * rows;
    const double decode = samples * codec->decode * 1e-9, encode = samples * codec->encode * 1e-9;
    const double compute = samples * plan->cost * 1e-9;
    const double up = samples * (double)gf_type_bytes(plan->in.type) * plan->inputs;
    const double down = samples * plan->download;
    const double touch = on->held ? (up + down) / HELD_BYTES_PER_SECOND : 0;
    const double transfer = auto_share(
        auto_larger(up, down) / (on->held ? HELD_BYTES_PER_SECOND : CUDA_BYTES_PER_SECOND),
        on->devices);
    /* The slowest stage, unless all together are too much for the cores. */
    const double cpu = auto_larger(auto_slower_side(decode, encode, codec, on->files, on->threads),
                                   auto_share(decode + encode + compute, on->threads));
    const double cuda = auto_larger(
        auto_larger(auto_slower_side(decode, encode, codec, on->device_files, on->threads),
                    auto_share(decode + encode + touch, on->threads)),
        transfer);
    forecast->start_seconds = on->cuda_started ? 0 : auto_share(CUDA_START_SECONDS, on->images);
    forecast->cpu_seconds = cpu;
    forecast->cuda_seconds = cuda + CUDA_IMAGE_SECONDS + forecast->start_seconds;
    forecast->cuda = forecast->cuda_seconds < forecast->cpu_seconds;
    auto_say(forecast, "");
}

void gf_auto_times(gf_forecast *forecast, uint64_t images) {
    forecast->start_seconds *= (double)images;
    forecast->cpu_seconds *= (double)images;
    forecast->cuda_seconds *= (double)images;
    auto_say(forecast, ", for all files");
}
