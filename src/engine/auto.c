/* The cost model behind --backend auto, written out in docs/design.md.
 *
 * Decoding, computing and encoding overlap, so a job takes as long as its slowest part. The codec
 * is the same for both backends; CUDA adds its start-up once for the process. Therefore CUDA can
 * only pay where the CPU's computing is slower than the codec by more than that start-up. */
#include <stdio.h>

#include "engine/engine.h"
#include "engine/pool.h"

#define CUDA_START_SECONDS 0.3     /* driver, context and pinned buffers */
#define CUDA_BYTES_PER_SECOND 10e9 /* each way, both at once, on PCIe 3 x16 */

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

bool gf_auto_wants_cuda(const gf_plan *plan, double codec_cost, uint32_t threads, bool cuda_started,
                        char *reason, size_t size) {
    gf_forecast forecast;
    gf_auto_expect(plan, codec_cost, threads, cuda_started, &forecast);
    snprintf(reason, size, "%s", forecast.reason);
    return forecast.cuda;
}
