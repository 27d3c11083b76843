/* Timing of one filter: on the whole image as one strip in memory, and through the engine, with a
 * copy and a read of the same bytes for comparison. Each round runs all of them, so that
 * interference affects all alike. The statistic is taken over the rounds. */
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "core/filter.h"
#include "core/thread.h"
#include "cpu.h"

/* A filter with one or two input images and the memory for all outputs. */
typedef struct bench_work {
    const gf_filter *filter;
    gf_plan *plan;
    gf_strip strip;
    gf_isa isa;
    uint32_t parts;
    unsigned char *scratch, *states, *payloads; /* one per part, at the strides below */
    size_t scratch_stride, state_stride, payload_stride;
    unsigned char *copy; /* destination of memcpy */
    size_t bytes;        /* of the input */
    uint64_t sum;        /* of the words read; prevents the compiler from removing the reads */
} bench_work;

/* ---- limits: copy and read ------------------------------------------------------------------- */

/* Sum the 64-bit words of a buffer, in native vectors: compilers split larger ones badly. */
#define READ_SUM(NAME, WORDS)                                                                      \
    static uint64_t NAME(const unsigned char *p, size_t n) {                                       \
        typedef uint64_t words __attribute__((vector_size(8 * (WORDS)), aligned(8), may_alias));   \
        words a = {0}, b = {0}, c = {0}, d = {0};                                                  \
        size_t i = 0;                                                                              \
        for (; n - i >= 4 * sizeof a; i += 4 * sizeof a) {                                         \
            const words *w = (const words *)(const void *)(p + i);                                 \
            a += w[0];                                                                             \
            b += w[1];                                                                             \
            c += w[2];                                                                             \
            d += w[3];                                                                             \
        }                                                                                          \
        a += b + c + d;                                                                            \
        uint64_t sum = 0;                                                                          \
        for (int k = 0; k < (WORDS); k++)                                                          \
            sum += a[k];                                                                           \
        return sum;                                                                                \
    }

#ifdef GF_X86_64
__attribute__((target("avx512f"))) READ_SUM(read_sum_avx512, 8) __attribute__((target("avx2")))
READ_SUM(read_sum_avx2, 4)
#endif
    READ_SUM(read_sum_portable, 2)

    /* Use the fastest level of the processor, independent of the level of the filters. */
    static uint64_t read_sum(const unsigned char *p, size_t n) {
#ifdef GF_X86_64
    if (gf_isa_available(GF_ISA_AVX512))
        return read_sum_avx512(p, n);
    if (gf_isa_available(GF_ISA_AVX2))
        return read_sum_avx2(p, n);
#endif
    return read_sum_portable(p, n);
}

static void copy_part(void *context, uint32_t part, uint32_t thread) {
    const bench_work *work = context;
    (void)thread;
    const size_t from = gf_share(work->bytes, part, work->parts);
    memcpy(work->copy + from, work->strip.in[0].data + from,
           gf_share(work->bytes, part + 1, work->parts) - from);
}

static void read_part(void *context, uint32_t part, uint32_t thread) {
    bench_work *work = context;
    (void)thread;
    const size_t from = gf_share(work->bytes, part, work->parts);
    const uint64_t sum = read_sum(work->strip.in[0].data + from,
                                  gf_share(work->bytes, part + 1, work->parts) - from);
    __atomic_fetch_add(&work->sum, sum, __ATOMIC_RELAXED);
}

static void strip_part(void *context, uint32_t part, uint32_t thread) {
    const bench_work *work = context;
    (void)thread;
    const bool one = (work->plan->ordered || work->plan->disjoint) && !work->plan->golden_only;
    gf_strip strip = work->strip;
    strip.state = work->states + (one ? 0 : part) * work->state_stride;
    strip.payload = work->payloads + part * work->payload_stride;
    gf_compute_part(work->plan, &strip, part, work->parts,
                    work->scratch + part * work->scratch_stride, work->isa, NULL);
}

static double time_parts(bench_work *work, gf_pool *pool, uint32_t threads,
                         void (*run)(void *, uint32_t, uint32_t)) {
    gf_work parts = {.run = run, .context = work, .count = threads};
    work->parts = threads;
    const double start = gf_now();
    if (threads == 1) {
        run(work, 0, 0);
    } else {
        gf_pool_submit(pool, &parts);
        gf_pool_wait(pool, &parts);
    }
    return (gf_now() - start) * 1e3;
}

/* ---- a case ---------------------------------------------------------------------------------- */

/* Run the filter that must come first, and pass its result to the plan, as the engine does. */
static bool learn(bench_work *work) {
    const gf_plan *plan = work->plan->measure_first;
    if (!plan)
        return true;
    const gf_measure *measure = plan->filter->measure;
    void *data = NULL, *scratch = NULL;
    gf_error error = {0};
    bool done = !measure->open(plan, &(gf_measure_options){.name = "bench"}, &data, &error);
    if (done) {
        gf_strip strip = {.in = {work->strip.in[0]}, .out = work->strip.out, .records = work->copy};
        const gf_rows records = gf_strip_records(plan, &strip);
        strip.state = calloc(1, (size_t)plan->state_bytes + 1);
        scratch = gf_aligned_alloc(1, gf_cpu_scratch_bytes(plan));
        gf_compute_part(plan, &strip, 0, 1, scratch, work->isa, &error);
        if (plan->record)
            measure->rows(plan, data, &records, &error);
        measure->finish(plan, data, strip.state, &error);
        done = !work->filter->refine(work->plan, data, &error);
        measure->close(data);
        free(strip.state);
    }
    free(scratch);
    return done;
}

static bool alloc(bench_work *work, const bench_options *options, uint32_t max) {
    const gf_plan *plan = work->plan;
    const uint64_t rows = options->height;
    const size_t stride = gf_align(gf_row_bytes(&plan->in)), image = stride * (size_t)rows;
    const size_t out_stride = plan->out.width ? gf_align(gf_row_bytes(&plan->out)) : 0;
    work->bytes = image * plan->inputs;
    unsigned char *in = gf_aligned_alloc(1, work->bytes); /* all images: they are copied at once */
    for (uint32_t i = 0; in && i < plan->inputs; i++)
        work->strip.in[i] = (gf_rows){in + i * image, stride, 0, rows};
    work->strip.out = (gf_rows){gf_aligned_alloc((size_t)rows, out_stride), out_stride, 0, rows};
    work->strip.records = gf_aligned_alloc(1, (size_t)rows * plan->record);
    work->strip.constants = plan->constants;
    work->copy = gf_aligned_alloc((size_t)rows, plan->inputs * (stride > 64 ? stride : 64));
    work->scratch_stride = gf_align(gf_cpu_scratch_bytes(plan));
    work->scratch = gf_aligned_alloc(max, work->scratch_stride);
    work->state_stride = gf_align((size_t)plan->state_bytes);
    work->states = gf_aligned_alloc(max, work->state_stride);
    if (plan->has_payload)
        work->payload_stride = gf_align(work->filter->payload->bytes(plan, rows));
    work->payloads = gf_aligned_alloc(max, work->payload_stride);
    if (!in || !work->strip.out.data || !work->strip.records || !work->copy || !work->scratch ||
        !work->states || !work->payloads)
        return false;
    memset(work->states, 0, max * work->state_stride);
    memset(work->strip.out.data, 0, (size_t)rows * out_stride);
    memset(work->strip.records, 0, (size_t)rows * plan->record);
    memset(work->copy, 0, work->bytes);
    return true;
}

static int compare_doubles(const void *a, const void *b) {
    const double p = *(const double *)a, q = *(const double *)b;
    return (p > q) - (p < q);
}

static double statistic(double *values, uint32_t n, bool best) {
    qsort(values, n, sizeof *values, compare_doubles);
    if (best)
        return values[0];
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

#define MAX_ROUNDS 101
enum { COPY, READ, STRIP, RUN, KINDS };

typedef struct bench_samples {
    double times[KINDS][BENCH_MAX_THREAD_COUNTS][MAX_ROUNDS];
    double peer[MAX_ROUNDS], gain[MAX_ROUNDS];
} bench_samples;

static bool time_run(gf_engine *engine, const bench_work *work, const gf_settings *settings,
                     const gf_pixels *in, double *ms) {
    const gf_out_pixels out = {work->strip.out.data, work->strip.out.stride};
    gf_result *results[2] = {NULL};
    gf_outcome outcome = {.results = results};
    const gf_step steps[2] = {
        {.filter = work->filter, .settings = settings, .in = in + 1, .out = &out}, {.out = &out}};
    const gf_job job = {.steps = steps,
                        .step_count = work->filter->info.makes_image ? 2 : 1,
                        .memory = GF_HOST,
                        .in = in,
                        .format = work->plan->in};
    gf_error error = {0};
    const double start = gf_now();
    const gf_status status = gf_run(engine, &job, &outcome, &error);
    *ms = (gf_now() - start) * 1e3;
    gf_result_free(results[0]);
    if (status)
        fprintf(stderr, "bench-cpu: %s\n", error.message);
    return !status;
}

/* Run round r. Round 0 runs twice: the first is a warm-up. */
static bool run_round(const bench_case *c, const bench_options *options, bench_work *work,
                      const gf_settings *settings, gf_pool **pools, gf_engine **engines,
                      bench_peer *peer, bench_samples *samples, uint32_t r) {
    static void (*const parts[])(void *, uint32_t, uint32_t) = {copy_part, read_part, strip_part};
    gf_pixels in[2];
    for (uint32_t i = 0; i < work->plan->inputs; i++)
        in[i] = (gf_pixels){work->strip.in[i].data, work->strip.in[i].stride};
    for (uint32_t t = 0; t < options->thread_counts; t++) {
        for (int kind = COPY; kind < RUN; kind++)
            samples->times[kind][t][r] =
                time_parts(work, pools[t], options->threads[t], parts[kind]);
        if (!time_run(engines[t], work, settings, in, &samples->times[RUN][t][r]))
            return false;
    }
    samples->peer[r] = peer && c->peer ? bench_peer_time(peer, c->peer) : -1;
    samples->gain[r] = samples->peer[r] / samples->times[STRIP][0][r];
    return true;
}

static bool run_rounds(const bench_case *c, const bench_options *options, bench_work *work,
                       const gf_settings *settings, bench_peer *peer, bench_times *times) {
    gf_pool *pools[BENCH_MAX_THREAD_COUNTS] = {NULL};
    gf_engine *engines[BENCH_MAX_THREAD_COUNTS] = {NULL};
    bench_samples *samples = calloc(1, sizeof *samples);
    bool ok = samples != NULL;
    for (uint32_t t = 0; ok && t < options->thread_counts; t++) {
        const gf_engine_options engine_options = {.backend = "cpu",
                                                  .threads = options->threads[t],
                                                  .simd =
                                                      gf_names(GF_NAMES_SIMD)[1 + options->isa]};
        ok = !gf_pool_open(options->threads[t], &pools[t], NULL) &&
             !gf_engine_open(&engine_options, &engines[t], NULL);
    }
    for (uint32_t i = 0; ok && i < work->plan->inputs; i++) {
        if (peer && c->peer)
            ok = bench_peer_image(peer, (int)i, &work->plan->in, &work->strip.in[i]);
    }
    if (ok)
        ok = run_round(c, options, work, settings, pools, engines, peer, samples, 0);
    for (uint32_t r = 0; ok && r < options->rounds; r++)
        ok = run_round(c, options, work, settings, pools, engines, peer, samples, r);
    if (ok) {
        double *const to[] = {times->copy, times->read, times->strip, times->run};
        for (int kind = 0; kind < KINDS; kind++)
            for (uint32_t t = 0; t < options->thread_counts; t++)
                to[kind][t] = statistic(samples->times[kind][t], options->rounds, options->best);
        times->peer = statistic(samples->peer, options->rounds, options->best);
        times->gain = statistic(samples->gain, options->rounds, false);
    }
    for (uint32_t t = 0; t < options->thread_counts; t++) {
        gf_pool_close(pools[t]);
        gf_engine_close(engines[t]);
    }
    free(samples);
    return ok;
}

bool bench_time(const bench_case *c, const bench_options *options, bench_peer *peer,
                bench_times *times) {
    const gf_format format = {options->width, options->height, c->channels, c->type,
                              c->channels % 2 == 0};
    uint32_t max = 1;
    for (uint32_t t = 0; t < options->thread_counts; t++)
        max = options->threads[t] > max ? options->threads[t] : max;
    bench_work work = {.filter = gf_filter_find(c->filter), .isa = options->isa};
    gf_settings *settings =
        gf_settings_new(work.filter->info.params, work.filter->info.param_count);
    gf_error error = {0};
    bool ok = !gf_settings_apply_case(settings, c->text, &error) &&
              !gf_plan_new(work.filter, settings, &format, &work.plan, &error);
    if (ok && !alloc(&work, options, max)) {
        fprintf(stderr, "bench-cpu: out of memory\n");
        ok = false;
    }
    if (ok) {
        for (uint32_t i = 0; i < work.plan->inputs; i++)
            bench_fill(&format, &work.strip.in[i], c->content, c->same ? 0 : i);
        ok = learn(&work) && run_rounds(c, options, &work, settings, peer, times);
    }
    if (error.status)
        fprintf(stderr, "bench-cpu: %s %s: %s\n", c->filter, c->text, error.message);
    free(work.strip.in[0].data);
    free(work.strip.out.data);
    free(work.strip.records);
    free(work.copy);
    free(work.scratch);
    free(work.states);
    free(work.payloads);
    gf_plan_free(work.plan);
    gf_settings_free(settings);
    return ok;
}
