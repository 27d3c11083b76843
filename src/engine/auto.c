/* The cost model behind --backend auto, written out in docs/design-backends.md. */
#include <stdio.h>

#include "engine/engine.h"

#define CUDA_START_SECONDS 0.3 /* driver, context and pinned buffers */
#define CUDA_IMAGE_SECONDS                                                                         \
    1e-4 /* of an image, to queue its work and to wait for the last of it                          \
          */
#define CUDA_BYTES_PER_SECOND 10e9 /* each way, both at once, on PCIe 3 x16 */
#define HELD_BYTES_PER_SECOND 4e9  /* of a thread: a first touch, a copy from memory into bands */

static double larger(double a, double b) {
    return a > b ? a : b;
}

/* 0 counts as one. */
static double share(double seconds, uint64_t workers) {
    return workers > 1 ? seconds / (double)workers : seconds;
}

/* Threads that share a codec's work are no more than all cores. 0 of either counts as one. */
static double codec_share(double seconds, uint32_t workers, uint32_t files, uint32_t cores) {
    const uint64_t all = (uint64_t)(workers ? workers : 1) * (files ? files : 1);
    return share(seconds, all < cores ? all : cores);
}

/* What the slower side of the codec takes if so many files are under way. */
static double slower_side(double decode, double encode, const gf_codec_costs *codec, uint32_t files,
                          uint32_t cores) {
    return larger(codec_share(decode, codec->decode_threads, files, cores),
                  codec_share(encode, codec->encode_threads, files, cores));
}

static void say(gf_forecast *forecast, const char *of_what) {
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
    const double transfer = share(
        larger(up, down) / (on->held ? HELD_BYTES_PER_SECOND : CUDA_BYTES_PER_SECOND), on->devices);
    /* The slowest stage, unless all together are too much for the cores. */
    const double cpu = larger(slower_side(decode, encode, codec, on->files, on->threads),
                              share(decode + encode + compute, on->threads));
    const double cuda =
        larger(larger(slower_side(decode, encode, codec, on->device_files, on->threads),
                      share(decode + encode + touch, on->threads)),
               transfer);
    forecast->start_seconds = on->cuda_started ? 0 : share(CUDA_START_SECONDS, on->images);
    forecast->cpu_seconds = cpu;
    forecast->cuda_seconds = cuda + CUDA_IMAGE_SECONDS + forecast->start_seconds;
    forecast->cuda = forecast->cuda_seconds < forecast->cpu_seconds;
    say(forecast, "");
}

void gf_auto_times(gf_forecast *forecast, uint64_t images) {
    forecast->start_seconds *= (double)images;
    forecast->cpu_seconds *= (double)images;
    forecast->cuda_seconds *= (double)images;
    say(forecast, ", for all files");
}
