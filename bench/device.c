/* Benchmark of gf_device_job_run: images in device memory, 200 calls queued on one stream.
 *
 * usage: bench-device [ROUNDS [FILTER]]      (default: 9; all filters, and chains)
 *
 * Calls and copies write to two places in turns: a call whose arguments have changed takes longer.
 * For each row: time per call on the device, as a share of the time of a device-to-device copy of
 * the same bytes in the same round (a share of 1 is as fast as the copy), the host time of one
 * call, and that of the call that queues the copy. All are medians over the rounds. A graph of 20
 * calls is replayed 10 times, and its image is compared with that of a direct call. The last column
 * is the time of a kernel that reads the input once, also in a graph, as a share of that of a call.
 * Then chains of three filters, compared with three calls. */
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpufilter_tools.h"
#include "read.h"

enum { CALLS = 200, GRAPH_CALLS = 20, IMAGES = 64, MAX_ROUNDS = 101 };

typedef struct bench_row {
    const char *filter, *text;
    gf_format format;
    uint64_t images; /* per call */
    size_t gap;      /* bytes between rows */
    size_t apart;    /* bytes between images */
} bench_row;

#define MP24 6000, 4000
#define MP2 1920, 1080
static const bench_row rows[] = {
    {"smooth", "", {MP24, 3, GF_U8, false}, 1, 0, 0},
    {"smooth", "", {MP24, 1, GF_U8, false}, 1, 0, 0},
    {"smooth", "", {MP24, 3, GF_U16, false}, 1, 0, 0},
    {"smooth", "", {MP24, 3, GF_F32, false}, 1, 0, 0},
    {"smooth", "axis=y", {MP24, 3, GF_U8, false}, 1, 0, 0},
    {"smooth", "axis=xy", {MP24, 3, GF_U8, false}, 1, 0, 0},
    {"smooth", "axis=xy", {MP24, 1, GF_U8, false}, 1, 0, 0},
    {"smooth", "axis=xy", {MP24, 3, GF_U16, false}, 1, 0, 0},
    {"smooth", "axis=xy", {MP24, 3, GF_F32, false}, 1, 0, 0},
    {"gaussian", "", {MP24, 3, GF_U8, false}, 1, 0, 0},
    {"gaussian", "", {MP24, 3, GF_F32, false}, 1, 0, 0},
    {"smooth", "", {MP2, 3, GF_U8, false}, 1, 0, 0},
    {"smooth", "", {MP2, 3, GF_U8, false}, IMAGES, 0, 0},
    {"smooth", "", {MP2, 3, GF_U8, false}, IMAGES, 0, 4096},
    {"smooth", "", {MP2, 3, GF_F32, false}, IMAGES, 0, 0},
    {"smooth", "", {6001, 4000, 3, GF_U8, false}, 1, 0, 0},
    {"smooth", "", {MP24, 3, GF_U8, false}, 1, 240, 0},
    {"normalize", "", {MP24, 3, GF_U8, false}, 1, 0, 0},
    {"normalize", "", {MP24, 3, GF_F32, false}, 1, 0, 0},
    {"axis-sum", "", {MP24, 3, GF_U8, false}, 1, 0, 0},
    {"hist", "bins=256", {MP24, 3, GF_U8, false}, 1, 0, 0},
    {"resize", "scale=0.5", {MP24, 3, GF_U8, false}, 1, 0, 0},
    {"resize", "scale=0.25", {MP24, 3, GF_U8, false}, 1, 0, 0},
    {"resize", "width=256", {MP24, 3, GF_U8, false}, 1, 0, 0},
    {"resize", "scale=0.25 kernel=lanczos3", {MP24, 3, GF_U8, false}, 1, 0, 0},
    {"resize", "width=256 kernel=lanczos3", {MP24, 3, GF_U8, false}, 1, 0, 0},
    {"resize", "exact=224x224", {MP2, 3, GF_U8, false}, IMAGES, 0, 0},
    {"resize", "exact=224x224", {MP2, 3, GF_U8, false}, IMAGES, 0, 4096},
    {"resize", "scale=0.25", {MP24, 3, GF_U16, false}, 1, 0, 0},
    {"resize", "scale=0.25", {MP24, 3, GF_F32, false}, 1, 0, 0},
    {"resize", "scale=2", {MP2, 3, GF_U8, false}, 1, 0, 0},
};

static void must(cudaError_t result, const char *what) {
    if (result == cudaSuccess)
        return;
    fprintf(stderr, "bench-device: %s: %s\n", what, cudaGetErrorString(result));
    exit(1);
}

static void check(gf_status status, const gf_error *error) {
    if (!status)
        return;
    fprintf(stderr, "bench-device: %s\n", error->message);
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, ascending);
    return values[count / 2];
}

/* Memory and job of one row of the table. */
typedef struct bench {
    const bench_row *work;
    gf_device_job *job;
    bool measures;
    size_t row, stride, step, bytes; /* step: from image to image; bytes: of all rows of a call */
    size_t out_size;                 /* of all output images */
    uint32_t *unread;                /* written by the kernel that reads */
    unsigned char *from, *to[2];
    gf_pixels in[IMAGES];
    gf_out_pixels out[2][IMAGES];
    cudaStream_t stream;
    cudaEvent_t begin, end;
} bench;

static void start(bench *b, gf_engine *engine, const bench_row *work) {
    const gf_filter *filter = gf_filter_find(work->filter);
    const gf_filter_info *info = gf_filter_describe(filter);
    gf_settings *settings = gf_settings_new(info->params, info->param_count);
    gf_error error = {0};
    const size_t sample = work->format.type == GF_U8 ? 1 : work->format.type == GF_U16 ? 2 : 4;
    *b = (bench){.work = work, .measures = !info->makes_image};
    b->row = (size_t)work->format.width * work->format.channels * sample;
    b->stride = b->row + work->gap;
    b->step = (size_t)work->format.height * b->stride + work->apart;
    b->bytes = (size_t)(work->images * work->format.height) * b->row;
    check(gf_settings_apply_case(settings, work->text, &error), &error);
    const gf_step steps[2] = {{.filter = filter, .settings = settings}, {.filter = NULL}};
    const gf_job job = {.steps = steps,
                        .step_count = info->makes_image ? 2 : 1,
                        .memory = GF_DEVICE,
                        .format = work->format};
    gf_step_info described[2] = {{.effective = NULL}};
    check(gf_device_job_new(engine, &job, &b->job, &error), &error);
    check(gf_job_inspect(&job, described, &error), &error);
    gf_settings_free(described[0].effective);
    gf_settings_free(settings);
    const gf_format *made = &described[0].out;
    const size_t out_stride = (size_t)made->width * made->channels * sample + work->gap;
    const size_t out_step = (size_t)made->height * out_stride + work->apart;
    const size_t size = work->images * b->step;
    b->out_size = work->images * out_step;
    must(cudaMalloc((void **)&b->unread, sizeof *b->unread), "cudaMalloc");
    must(cudaMalloc((void **)&b->from, size), "cudaMalloc");
    for (int i = 0; i < 2; i++) { /* copies of the input, too */
        const size_t larger = b->out_size > size ? b->out_size : size;
        must(cudaMalloc((void **)&b->to[i], larger), "cudaMalloc");
        must(cudaMemset(b->to[i], 0, larger), "cudaMemset");
    }
    must(cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking), "cudaStreamCreate");
    must(cudaEventCreate(&b->begin), "cudaEventCreate");
    must(cudaEventCreate(&b->end), "cudaEventCreate");
    /* A slow wave with noise, as in a photograph; f32: from 0 to 1. */
    unsigned char *host = malloc(size);
    if (!host)
        exit(1);
    uint32_t noise = 1;
    for (size_t i = 0; i < size / sample; i++) {
        noise = noise * 1664525 + 1013904223;
        const uint32_t value = (uint32_t)(i / 97 % 200) + (noise >> 28);
        const float real = (float)value / 255;
        const uint16_t wide = (uint16_t)(value * 257);
        if (sample == 1)
            host[i] = (unsigned char)value;
        else
            memcpy(host + i * sample, sample == 2 ? (const void *)&wide : (const void *)&real,
                   sample);
    }
    must(cudaMemcpy(b->from, host, size, cudaMemcpyHostToDevice), "upload");
    free(host);
    for (uint64_t i = 0; i < work->images; i++) {
        b->in[i] = (gf_pixels){b->from + i * b->step, b->stride};
        for (int k = 0; k < 2; k++)
            b->out[k][i] = (gf_out_pixels){b->to[k] + i * out_step, out_stride};
    }
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

static void finish(bench *b) {
    gf_device_job_free(b->job);
    cudaFree(b->from);
    cudaFree(b->to[0]);
    cudaFree(b->to[1]);
    cudaFree(b->unread);
    cudaStreamDestroy(b->stream);
    cudaEventDestroy(b->begin);
    cudaEventDestroy(b->end);
}

/* Queue call i. */
static gf_device_results *call(bench *b, int i) {
    gf_error error = {0};
    gf_device_results *results = NULL;
    const gf_out_pixels *out = b->out[i % 2];
    const gf_device_images images = {.count = b->work->images, .in = b->in, .out = &out};
    check(gf_device_job_run(b->job, &images, b->stream, &results, &error), &error);
    return results;
}

static double elapsed(const bench *b) {
    float ms = 0;
    must(cudaEventSynchronize(b->end), "cudaEventSynchronize");
    must(cudaEventElapsedTime(&ms, b->begin, b->end), "cudaEventElapsedTime");
    return (double)ms * 1e-3;
}

/* Return the seconds of one copy, of `calls` queued ones, and store its seconds on the host. */
static double time_copy(bench *b, int calls, double *host) {
    must(cudaEventRecord(b->begin, b->stream), "cudaEventRecord");
    const double began = now();
    for (int i = 0; i < calls; i++)
        must(cudaMemcpyAsync(b->to[i % 2], b->from, b->bytes, cudaMemcpyDeviceToDevice, b->stream),
             "copy");
    *host = (now() - began) / calls;
    must(cudaEventRecord(b->end, b->stream), "cudaEventRecord");
    return elapsed(b) / calls;
}

/* Return the seconds of one call on the device, and store its seconds on the host. */
static double time_calls(bench *b, int calls, double *host) {
    static gf_device_results *queued[CALLS];
    must(cudaEventRecord(b->begin, b->stream), "cudaEventRecord");
    const double began = now();
    for (int i = 0; i < calls; i++)
        queued[i] = call(b, i);
    *host = (now() - began) / calls;
    must(cudaEventRecord(b->end, b->stream), "cudaEventRecord");
    const double seconds = elapsed(b) / calls;
    for (int i = 0; i < calls; i++)
        gf_device_results_free(queued[i]);
    return seconds;
}

/* Queue a call, or only read its input. */
static void queue(bench *b, int i, bool reads) {
    if (reads)
        must(bench_queue_read(b->from, b->bytes / 16 * 16, b->unread, b->stream), "read");
    else
        call(b, i);
}

/* Return the seconds of one call in a graph, and leave what its first replay has made. */
static double time_replay(bench *b, bool reads, unsigned char *replayed) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    must(cudaStreamBeginCapture(b->stream, cudaStreamCaptureModeGlobal), "capture");
    for (int i = 0; i < GRAPH_CALLS; i++)
        queue(b, i, reads);
    must(cudaStreamEndCapture(b->stream, &graph), "capture");
    must(cudaGraphInstantiateWithFlags(&exec, graph, 0), "cudaGraphInstantiate");
    must(cudaGraphLaunch(exec, b->stream), "cudaGraphLaunch");
    if (replayed)
        must(cudaMemcpyAsync(replayed, b->to[0], b->out_size, cudaMemcpyDeviceToHost, b->stream),
             "download");
    must(cudaEventRecord(b->begin, b->stream), "cudaEventRecord");
    for (int i = 0; i < 10; i++)
        must(cudaGraphLaunch(exec, b->stream), "cudaGraphLaunch");
    must(cudaEventRecord(b->end, b->stream), "cudaEventRecord");
    const double seconds = elapsed(b) / (10 * GRAPH_CALLS);
    must(cudaGraphExecDestroy(exec), "cudaGraphExecDestroy");
    must(cudaGraphDestroy(graph), "cudaGraphDestroy");
    return seconds;
}

/* Return the seconds of one call in a replayed graph, or 0 for a measurement. */
static double time_graph(bench *b) {
    const size_t size = b->out_size;
    if (b->measures)
        return 0;
    unsigned char *direct = malloc(size), *replayed = malloc(size);
    if (!direct || !replayed)
        exit(1);
    must(cudaMemsetAsync(b->to[0], 0, size, b->stream), "cudaMemset");
    call(b, 0);
    must(cudaMemcpyAsync(direct, b->to[0], size, cudaMemcpyDeviceToHost, b->stream), "download");
    must(cudaMemsetAsync(b->to[0], 0, size, b->stream), "cudaMemset");
    const double seconds = time_replay(b, false, replayed);
    if (memcmp(direct, replayed, size) != 0) {
        fprintf(stderr, "bench-device: the graph has other bits\n");
        exit(1);
    }
    free(direct);
    free(replayed);
    return seconds;
}

static void measure(gf_engine *engine, const bench_row *work, int rounds) {
    static const char *const types[] = {"u8", "u16", "f32"};
    double device[MAX_ROUNDS], share[MAX_ROUNDS], host[MAX_ROUNDS], copy_host[MAX_ROUNDS];
    double replay[MAX_ROUNDS], read[MAX_ROUNDS];
    const int calls = work->images > 1 ? CALLS / 10 : CALLS;
    bench b;
    char label[96];
    start(&b, engine, work);
    time_copy(&b, calls, host);
    time_calls(&b, calls, host);
    for (int i = 0; i < rounds; i++) {
        const double copy = time_copy(&b, calls, &copy_host[i]);
        device[i] = time_calls(&b, calls, &host[i]);
        replay[i] = time_graph(&b);
        share[i] = copy / device[i];
        read[i] = time_replay(&b, true, NULL) / (b.measures ? device[i] : replay[i]);
    }
    snprintf(label, sizeof label, "%s %s%s", work->filter, work->text,
             work->apart ? " (images apart)" : "");
    printf("%-30s %2lu x %lux%lux%u %-4s %7.3f %9.1f %8.1f %8.1f", label,
           (unsigned long)work->images, (unsigned long)work->format.width,
           (unsigned long)work->format.height, work->format.channels, types[work->format.type],
           median(share, rounds), median(device, rounds) * 1e6, median(host, rounds) * 1e6,
           median(copy_host, rounds) * 1e6);
    if (b.measures)
        printf("        -");
    else
        printf(" %8.1f", median(replay, rounds) * 1e6);
    printf(" %7.3f\n", median(read, rounds));
    fflush(stdout);
    finish(&b);
}

/* ---- chains ---------------------------------------------------------------------------------- */

/* Chains of three filters that make images. */
static const char *const chains[] = {"median radius=1 ! gaussian sigma=1 ! sharpen",
                                     "smooth axis=y ! gaussian sigma=1 ! normalize"};
enum { CHAIN = 3 };

static gf_device_job *chain_job(gf_engine *engine, const gf_step *steps, uint32_t count,
                                const gf_format *format) {
    gf_step list[CHAIN + 1] = {{.filter = NULL}};
    gf_device_job *job;
    gf_error error = {0};
    memcpy(list, steps, count * sizeof *steps);
    const gf_job what = {
        .steps = list, .step_count = count + 1, .memory = GF_DEVICE, .format = *format};
    check(gf_device_job_new(engine, &what, &job, &error), &error);
    return job;
}

/* Return the seconds of running `count` jobs, each on the output of the one before. */
static double time_jobs(bench *b, gf_device_job *const *jobs, int count, unsigned char *between) {
    unsigned char *const memory[CHAIN + 1] = {b->from, between, between + b->bytes, NULL};
    gf_error error = {0};
    must(cudaEventRecord(b->begin, b->stream), "cudaEventRecord");
    for (int i = 0; i < CALLS; i++)
        for (int k = 0; k < count; k++) {
            const gf_pixels in = {k ? memory[k] : b->from, b->stride};
            const gf_out_pixels made = {k + 1 < count ? memory[k + 1] : b->to[i % 2], b->stride};
            const gf_out_pixels *out = &made;
            const gf_device_images images = {.count = 1, .in = &in, .out = &out};
            check(gf_device_job_run(jobs[k], &images, b->stream, NULL, &error), &error);
        }
    must(cudaEventRecord(b->end, b->stream), "cudaEventRecord");
    return elapsed(b) / CALLS;
}

/* Compare a chain with the calls of its filters, in turns. */
static void measure_chain(gf_engine *engine, const char *text, int rounds) {
    const bench_row work = {"smooth", "", {MP24, 3, GF_U8, false}, 1, 0, 0};
    double chain[MAX_ROUNDS], single[MAX_ROUNDS], ratio[MAX_ROUNDS];
    gf_device_job *all, *each[CHAIN];
    unsigned char *between;
    gf_pipeline *pipeline;
    gf_error error = {0};
    uint32_t count;
    bench b;
    check(gf_pipeline_parse(text, NULL, NULL, &pipeline, &error), &error);
    const gf_step *steps = gf_pipeline_steps(pipeline, &count);
    start(&b, engine, &work);
    must(cudaMalloc((void **)&between, 2 * b.bytes), "cudaMalloc");
    all = chain_job(engine, steps, CHAIN, &work.format);
    for (int k = 0; k < CHAIN; k++)
        each[k] = chain_job(engine, steps + k, 1, &work.format);
    for (int i = -1; i < rounds; i++) {
        const double s = time_jobs(&b, each, CHAIN, between), c = time_jobs(&b, &all, 1, between);
        if (i < 0)
            continue; /* to warm up */
        single[i] = s;
        chain[i] = c;
        ratio[i] = c / s;
    }
    printf("%-50s 24 MP RGB u8: %.1f us, three calls %.1f us, ratio %.3f\n", text,
           median(chain, rounds) * 1e6, median(single, rounds) * 1e6, median(ratio, rounds));
    for (int k = 0; k < CHAIN; k++)
        gf_device_job_free(each[k]);
    gf_device_job_free(all);
    cudaFree(between);
    finish(&b);
    gf_pipeline_free(pipeline);
}

int main(int argc, char **argv) {
    const int asked = argc > 1 ? atoi(argv[1]) : 9;
    const int rounds = asked < 1 ? 1 : asked > MAX_ROUNDS ? MAX_ROUNDS : asked;
    gf_engine *engine;
    gf_error error = {0};
    check(gf_engine_open(&(gf_engine_options){.backend = "cuda"}, &engine, &error), &error);
    printf("%-30s %-24s %7s %9s %8s %8s %8s %7s\n", "call", "images", "share", "us", "host us",
           "copy's", "graph us", "read");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (argc < 3 || strcmp(argv[2], rows[i].filter) == 0)
            measure(engine, &rows[i], rounds);
    for (size_t i = 0; i < sizeof chains / sizeof chains[0] && argc < 3; i++)
        measure_chain(engine, chains[i], rounds);
    gf_engine_close(engine);
    return 0;
}
