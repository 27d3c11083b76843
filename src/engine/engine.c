/* Engines: start of backends, choice and fallback, and the cost model of auto. */
#include "engine/engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

static const gf_backend *stand_in;

static const gf_backend *engine_backend_at(int index) {
    return index == GF_CUDA && stand_in ? stand_in : gf_backend_at(index);
}

void gf_engine_stand_in(const gf_backend *backend) {
    stand_in = backend;
}

static const char *const names[] = {"auto", "golden", "cpu", "cuda", NULL};

const char *const *gf_names(gf_name_list list) {
    static const char *const stages[] = {
        [GF_DECODING] = "decoding",   [GF_UPLOADING] = "uploading",
        [GF_COMPUTING] = "computing", [GF_DOWNLOADING] = "downloading",
        [GF_ENCODING] = "encoding",   NULL,
    };
    return list == GF_NAMES_BACKEND            ? names
           : list == GF_NAMES_SIMD             ? gf_simd_names
           : list == GF_NAMES_STAGE            ? stages
           : list == GF_NAMES_FORMAT           ? gf_output_formats()
           : list == GF_NAMES_COMPRESSION      ? gf_compressions()
           : list == GF_NAMES_TIFF_COMPRESSION ? gf_tiff_compressions()
                                               : &names[sizeof names / sizeof *names - 1];
}

gf_status gf_devices(gf_device *devices, size_t capacity, size_t *count, gf_error *error) {
    const gf_backend *cuda = gf_backend_at(GF_CUDA);
    *count = 0;
    return cuda ? cuda->devices(devices, capacity, count, error)
                : gf_fail(error, GF_NO_BACKEND, "cuda: not built in; rebuild gpufilter with nvcc");
}

bool gf_has_cuda(void) {
    return engine_backend_at(GF_CUDA) != NULL;
}

/* Start a backend, unless it has been started. */
static gf_status engine_start(gf_engine *engine, int index, gf_started *on, gf_error *error) {
    const gf_backend *backend = engine_backend_at(index);
    gf_started *started = &engine->started[index];
    if (!backend)
        return gf_fail(error, GF_NO_BACKEND,
                       "%s: not built in; rebuild gpufilter with nvcc, or use --backend auto",
                       names[1 + index]);
    if (!started->backend) {
        const double before = gf_now();
        const gf_status status = backend->open(&engine->options, &started->state, error);
        engine->start_seconds += gf_now() - before;
        if (status)
            return status;
        started->backend = backend;
    }
    *on = *started;
    return GF_OK;
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
        engine->options.max_memory = gf_default_memory();
    const char *name = engine->options.backend ? engine->options.backend : "auto";
    const char *simd = engine->options.simd ? engine->options.simd : "auto";
    int index = (int)gf_choice_index(names, name, strlen(name));
    gf_status status = gf_check_options(&engine->options, NULL, error);
    if (index == 0 && engine->options.devices)
        index = 1 + GF_CUDA;
    if (!status && !names[index])
        status = gf_fail(error, GF_USAGE, "%s: no such backend", name);
    else if (!status && !gf_simd_names[gf_choice_index(gf_simd_names, simd, strlen(simd))])
        status = gf_fail(error, GF_USAGE, "%s: no such SIMD level", simd);
    else if (!status && engine->options.devices && index != 1 + GF_CUDA)
        status = gf_fail(error, GF_USAGE,
                         "--device: not supported by the %s backend; use --backend cuda", name);
    else if (!status && index > 0) {
        gf_started on = {NULL, NULL};
        status = engine_start(engine, index - 1, &on, error);
        engine->named = on.backend;
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
    while (engine->job_count)
        engine->free_job(engine->jobs[--engine->job_count]);
    for (int i = 0; i < GF_BACKEND_COUNT; i++)
        if (engine->started[i].backend)
            engine->started[i].backend->close(engine->started[i].state);
    if (engine->verify)
        gf_backend_verify.close(engine->verify);
    free(engine);
}

uint32_t gf_engine_threads(const gf_engine *engine) {
    return engine->options.threads ? engine->options.threads : gf_cores();
}

gf_auto_machine gf_engine_machine(const gf_engine *engine) {
    uint32_t devices = 1; /* "all" counts as one: only the CUDA driver has the actual number */
    for (const char *list = engine->options.devices; list && *list; list++)
        devices += *list == ',';
    return (gf_auto_machine){.threads = gf_engine_threads(engine),
                             .devices = devices,
                             .cuda_started = engine->started[GF_CUDA].backend};
}

void gf_engine_format_reason(char reason[GF_REASON_BYTES], const gf_error *error) {
    const char *end = strstr(error->message, "; use --backend");
    const size_t length = end ? (size_t)(end - error->message) : strlen(error->message);
    snprintf(reason, GF_REASON_BYTES, "%.*s", (int)gf_min(length, 130), error->message);
}

gf_status gf_engine_choose(gf_engine *engine, const gf_workload *work, gf_started *on,
                           char reason[GF_REASON_BYTES], gf_error *error) {
    const bool is_auto = !engine->named || engine->may_fall_back;
    int index = GF_CPU;
    reason[0] = 0;
    if (engine->cuda_error.status && !is_auto)
        return gf_return_error(&engine->cuda_error, error);
    if (engine->cuda_error.status) {
        gf_engine_format_reason(reason, &engine->cuda_error);
    } else if (engine->named) {
        for (index = 0; engine_backend_at(index) != engine->named;)
            index++;
    } else if (gf_has_cuda()) {
        const gf_auto_machine machine = gf_engine_machine(engine);
        const gf_forecast forecast = gf_auto_expect(work, &machine);
        gf_error start_error;
        memcpy(reason, forecast.reason, sizeof forecast.reason);
        if (forecast.cuda || stand_in) {
            if (!engine_start(engine, GF_CUDA, on, &start_error))
                return GF_OK;
            gf_engine_format_reason(reason, &start_error);
        }
    }
    return engine_start(engine, index, on, error);
}

void gf_engine_note_failure(gf_engine *engine, const gf_backend *backend, const gf_error *error) {
    if (backend == engine_backend_at(GF_CUDA) && error->status == GF_NO_BACKEND &&
        !engine->cuda_error.status)
        engine->cuda_error = *error;
}

bool gf_engine_fall_back(gf_engine *engine, gf_started *on, char reason[GF_REASON_BYTES],
                         const gf_error *error) {
    gf_error unread;
    gf_engine_note_failure(engine, on->backend, error);
    if ((engine->named && !engine->may_fall_back) || on->backend == gf_backend_at(GF_CPU))
        return false;
    gf_engine_format_reason(reason, error);
    return !engine_start(engine, GF_CPU, on, &unread);
}

gf_status gf_engine_device(gf_engine *engine, gf_started *on, gf_error *error) {
    if (engine->named && !engine->named->jobs)
        return gf_fail(error, GF_USAGE,
                       "the %s backend cannot access device memory; open the engine with backend "
                       "cuda or auto",
                       engine->named->name);
    if (engine->options.verify)
        return gf_fail(error, GF_USAGE,
                       "images in device memory cannot be verified; copy them to host memory");
    const gf_status status = engine_start(engine, GF_CUDA, on, error);
    if (status || on->backend->jobs)
        return status;
    return gf_fail(error, GF_USAGE, "the %s backend cannot access device memory",
                   on->backend->name);
}

/* ---- the cost model of auto, documented in docs/design-backends.md --------------------------- */

#define CUDA_START_SECONDS 0.3     /* driver, context and pinned buffers */
#define CUDA_IMAGE_SECONDS 1e-4    /* per image: queue its work and wait for the last strip */
#define CUDA_BYTES_PER_SECOND 10e9 /* per direction, both at once, on PCIe 3 x16 */

/* Divide a time by a number of workers; 0 counts as one. */
static double auto_share(double seconds, uint64_t workers) {
    return workers > 1 ? seconds / (double)workers : seconds;
}

/* Return the time of the slower side of a codec, decoding or encoding, divided among its threads
 * and the files processed at once, limited to the number of cores. 0 of each counts as one. */
static double auto_slower_side(double decode, double encode, const gf_codec_costs *codec,
                               uint32_t files, uint32_t cores) {
    const uint64_t at_once = files ? files : 1;
    const uint64_t decoders = at_once * (codec->decode_threads ? codec->decode_threads : 1);
    const uint64_t encoders = at_once * (codec->encode_threads ? codec->encode_threads : 1);
    return fmax(auto_share(decode, gf_min(decoders, cores)),
                auto_share(encode, gf_min(encoders, cores)));
}

static void auto_set_reason(gf_forecast *forecast, const char *suffix) {
    snprintf(forecast->reason, sizeof forecast->reason,
             "expected %.2f s on cpu, %.2f s on cuda with %.2f s start-up%s", forecast->cpu_seconds,
             forecast->cuda_seconds, forecast->start_seconds, suffix);
}

gf_forecast gf_auto_expect(const gf_workload *work, const gf_auto_machine *machine) {
    const gf_nodes *nodes = work->nodes;
    const gf_format *in = &nodes->node[0].plan->in;
    const gf_codec_costs *codec = &work->codec;
    const uint64_t rows = work->rows ? work->rows : in->height;
    const double samples = (double)gf_row_samples(in) * (double)rows;
    const double decode = samples * codec->decode * 1e-9, encode = samples * codec->encode * 1e-9;
    const double share = (double)rows / (double)in->height;
    double compute = 0, up = samples * (double)gf_type_bytes(in->type), down = 0;
    for (uint32_t i = 0; i < nodes->count; i++) {
        const gf_plan *plan = nodes->node[i].plan;
        const double own = gf_image_samples(&plan->in) * share;
        compute += own * plan->cost * 1e-9;
        up += own * (double)gf_type_bytes(plan->in.type) * (plan->inputs - 1);
        down += own * plan->download;
        if (nodes->written >> (i + 1) & 1)
            down += share * (double)gf_row_bytes(&plan->out) * (double)plan->out.height;
    }
    const double transfer = auto_share(fmax(up, down) / CUDA_BYTES_PER_SECOND, machine->devices);
    const double start = machine->cuda_started ? 0 : auto_share(CUDA_START_SECONDS, work->images);
    /* The slowest stage determines the time, unless the sum of all stages exceeds the cores. */
    const double cpu =
        fmax(auto_slower_side(decode, encode, codec, machine->files, machine->threads),
             auto_share(decode + encode + compute, machine->threads));
    const double codecs =
        fmax(auto_slower_side(decode, encode, codec, machine->device_files, machine->threads),
             auto_share(decode + encode, machine->threads));
    const double cuda = fmax(codecs, transfer) + CUDA_IMAGE_SECONDS + start;
    gf_forecast forecast = {
        .cuda = cuda < cpu, .cpu_seconds = cpu, .cuda_seconds = cuda, .start_seconds = start};
    auto_set_reason(&forecast, "");
    return forecast;
}

void gf_auto_scale(gf_forecast *forecast, uint64_t images) {
    forecast->start_seconds *= (double)images;
    forecast->cpu_seconds *= (double)images;
    forecast->cuda_seconds *= (double)images;
    auto_set_reason(forecast, ", for all files");
}

bool gf_auto_expect_shared(uint64_t images, double bytes, uint32_t parts, gf_forecast *forecast) {
    const double all = (double)images * bytes * 1e-9;
    const double stream = bytes / parts * GF_PNG_STREAM_COST * 1e-9;
    const double device =
        fmax(all * GF_PNG_DEVICE_COST, all * GF_PNG_STREAM_COST / ((double)images * parts));
    const double start = CUDA_START_SECONDS + stream, cpu = forecast->cpu_seconds;
    /* The device begins after `start` seconds; then both work until all is done. */
    const double shared = (1 + start / device) / (1 / cpu + 1 / device);
    if (shared >= cpu || shared >= forecast->cuda_seconds)
        return false;
    forecast->cuda = true;
    forecast->cuda_seconds = shared;
    snprintf(
        forecast->reason, sizeof forecast->reason,
        "expected %.2f s on cpu, %.2f s on cpu and cuda together with %.2f s start-up, for all "
        "files",
        cpu, shared, CUDA_START_SECONDS);
    return true;
}
