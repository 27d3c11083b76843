/* The cost model behind --backend auto, written out in docs/design.md.
 *
 * Decoding, computing and encoding overlap, so a job takes as long as its slowest part. The codec
 * is the same for both backends; CUDA adds its start-up once for the process. Therefore CUDA can
 * only pay where the CPU's computing is slower than the codec by more than that start-up. */
#include <stdio.h>

#include "engine/batch_files.h"
#include "engine/engine.h"
#include "engine/pool.h"

#define CUDA_START_SECONDS 0.3     /* driver, context and pinned buffers */
#define CUDA_BYTES_PER_SECOND 10e9 /* each way, both at once, on PCIe 3 x16 */
#define COPIED_BYTES_PER_SECOND                                                                    \
    4e9 /* from memory into bands, by one thread, and its first touch                              \
         */

void gf_auto_expect(const gf_plan *plan, double codec_cost, uint32_t threads, bool cuda_started,
                    gf_forecast *forecast) {
    if (!threads)
        threads = gf_cpu_count();
    double samples = (double)gf_row_samples(&plan->in) * (double)plan->in.height;
    double codec = samples * codec_cost * 1e-9;
    double cpu = samples * plan->cost * 1e-9 / threads;
    double bytes = samples * (double)gf_type_bytes(plan->in.type) * plan->inputs;
    double back = samples * plan->download;
    double cuda = (bytes > back ? bytes : back) / CUDA_BYTES_PER_SECOND;
    forecast->start_seconds = cuda_started ? 0 : CUDA_START_SECONDS;
    forecast->cpu_seconds = cpu > codec ? cpu : codec;
    forecast->cuda_seconds = (cuda > codec ? cuda : codec) + forecast->start_seconds;
    forecast->cuda = forecast->cuda_seconds < forecast->cpu_seconds;
    snprintf(forecast->reason, sizeof forecast->reason,
             "expected %.2f s on cpu, %.2f s on cuda with %.2f s start-up", forecast->cpu_seconds,
             forecast->cuda_seconds, forecast->start_seconds);
}

/* Each thread of the CPU has an image of its own. On a device small images cost copies: into bands
 * and out again by one thread, to memory and back by those that decode. Large ones are decoded and
 * encoded one at a time. */
void gf_auto_expect_batch(const gf_plan *plan, double decode_cost, double encode_cost,
                          uint64_t count, uint32_t threads, gf_forecast *forecast) {
    const double samples = (double)gf_row_samples(&plan->in) * (double)plan->in.height;
    const double all = samples * (double)count;
    const double in_bytes = samples * (double)gf_type_bytes(plan->in.type);
    const double bytes = in_bytes * (plan->out.width ? 2 : 1);
    const double codec = decode_cost + encode_cost;
    const double slower = decode_cost > encode_cost ? decode_cost : encode_cost;
    const uint32_t share = count < threads ? (uint32_t)count : threads;
    const double copied = (double)count * in_bytes / COPIED_BYTES_PER_SECOND;
    double cuda = bytes <= (double)GF_FILES_SMALL ? (all * codec * 1e-9 + 2 * copied) / share
                                                  : all * slower * 1e-9;
    cuda = cuda > copied ? cuda : copied;
    forecast->start_seconds = CUDA_START_SECONDS;
    forecast->cpu_seconds = all * (codec / share + plan->cost / threads) * 1e-9;
    forecast->cuda_seconds = cuda + CUDA_START_SECONDS;
    forecast->cuda = forecast->cuda_seconds < forecast->cpu_seconds;
    snprintf(forecast->reason, sizeof forecast->reason,
             "expected %.2f s on cpu, %.2f s on cuda with %.2f s start-up, for all files",
             forecast->cpu_seconds, forecast->cuda_seconds, forecast->start_seconds);
}

bool gf_auto_wants_cuda(const gf_plan *plan, double codec_cost, uint32_t threads, bool cuda_started,
                        char *reason, size_t size) {
    gf_forecast forecast;
    gf_auto_expect(plan, codec_cost, threads, cuda_started, &forecast);
    snprintf(reason, size, "%s", forecast.reason);
    return forecast.cuda;
}
