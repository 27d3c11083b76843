/* Images in device memory beyond the equality of test_equality.c: batches, graphs, threads, queued
 * measurements, kinds of memory, and wrong arguments. */
#include "job.h"

#ifdef GF_WITH_CUDA
#include <pthread.h>
#include <stdatomic.h>

#include "cuda_util.h"

static void test_auto_job(gf_device_job **job) {
    gf_device_job_free(*job);
}

/* Images of one format in host memory, without gaps, and what golden makes of each. */
typedef struct image_list {
    test_job job;
    uint64_t count;
    uint32_t inputs;
    size_t in_bytes, out_bytes; /* of all inputs, and of the output */
    unsigned char *in, *want, *got;
    gf_result **results;
} image_list;

static image_list new_list(const char *filter, const char *text, gf_format format, uint64_t count) {
    image_list list = {.count = count};
    test_random random = test_seeded(format.width + count);
    AUTO(engine) gf_engine *golden = test_engine(&(gf_engine_options){.backend = "golden"});
    assert_true(test_job_new(&list.job, gf_filter_find(filter), text, format, NULL));
    list.inputs = list.job.filter->info.inputs;
    const size_t one = gf_row_bytes(&format) * format.height;
    list.in_bytes = list.inputs * one;
    list.out_bytes = list.job.drawn.width ? gf_row_bytes(&list.job.drawn) * format.height : 0;
    list.in = malloc(count * list.in_bytes);
    list.want = malloc(count * list.out_bytes + 1);
    list.got = malloc(count * list.out_bytes + 1);
    list.results = calloc(count, sizeof *list.results);
    assert_true(list.in && list.want && list.got && list.results);
    for (uint64_t i = 0; i < count; i++) {
        test_job_fill(&list.job, &random);
        for (uint32_t k = 0; k < list.inputs; k++)
            memcpy(list.in + i * list.in_bytes + k * one, list.job.in[k].rows.data, one);
        test_outcome outcome = test_run(&list.job, golden, 0);
        if (list.out_bytes)
            memcpy(list.want + i * list.out_bytes, outcome.image.rows.data, list.out_bytes);
        list.results[i] = outcome.result;
        outcome.result = NULL;
        test_outcome_free(&outcome);
    }
    return list;
}

static void test_auto_list(image_list *list) {
    for (uint64_t i = 0; i < list->count; i++)
        gf_result_free(list->results[i]);
    free(list->results);
    free(list->in);
    free(list->want);
    free(list->got);
    test_job_free(&list->job);
}

static gf_device_job *new_job(gf_engine *engine, const image_list *list) {
    gf_device_job *job;
    assert_ok(
        test_device_job(engine, list->job.filter, list->job.settings, &list->job.format, &job));
    return job;
}

static void run_pairs(gf_device_job *job, uint32_t inputs, uint64_t count, const gf_pixels *in,
                      const gf_out_pixels *out, void *stream, gf_device_results **results) {
    assert_ok(test_device_job_run(job, inputs, count, in, out, stream, results));
}

static void run_job(gf_device_job *job, uint64_t count, const gf_pixels *in,
                    const gf_out_pixels *out, void *stream, gf_device_results **results) {
    run_pairs(job, 1, count, in, out, stream, results);
}

/* ---- batches --------------------------------------------------------------------------------- */

/* Run a list in one call. gap: bytes between images; 0: they share a launch if rows are
 * independent. */
static void check_batch(const char *filter, const char *text, gf_format format, size_t gap) {
    enum { COUNT = 70 }; /* more than one launch takes */
    AUTO(list) image_list list = new_list(filter, text, format, COUNT);
    AUTO(engine) gf_engine *engine = cuda_engine();
    gf_pixels in[2 * COUNT];
    gf_out_pixels out[COUNT];
    gf_result *results[COUNT];
    AUTO(free) unsigned char *got = test_alloc(list.out_bytes + gap + 1);
    const size_t in_step = list.in_bytes + gap, out_step = list.out_bytes + gap;
    const size_t one = list.in_bytes / list.inputs;
    AUTO(device)
    unsigned char *from = device_alloc(COUNT * in_step), *to = device_alloc(COUNT * out_step + 1);
    must(cudaMemset(to, TEST_PAINT, COUNT * out_step + 1));
    for (uint64_t i = 0; i < COUNT; i++) {
        for (uint32_t k = 0; k < list.inputs; k++)
            in[i * list.inputs + k] =
                (gf_pixels){from + i * in_step + k * one, gf_row_bytes(&format)};
        out[i] = (gf_out_pixels){to + i * out_step, gf_row_bytes(&list.job.drawn)};
        must(cudaMemcpy(from + i * in_step, list.in + i * list.in_bytes, list.in_bytes,
                        cudaMemcpyHostToDevice));
    }
    if (test_run_device_list(&(test_list){engine, list.job.filter, list.job.settings, &format,
                                          COUNT, in, list.out_bytes ? out : NULL,
                                          .result = list.job.filter->measure ? results : NULL}))
        fail_msg("%s '%s': %s", filter, text, why.message);
    must(cudaDeviceSynchronize());
    for (uint64_t i = 0; i < COUNT; i++) {
        must(cudaMemcpy(got, out[i].data, out_step, cudaMemcpyDeviceToHost));
        if (memcmp(got, list.want + i * list.out_bytes, list.out_bytes) != 0)
            fail_msg("%s '%s': image %" PRIu64 " differs", filter, text, i);
        if (list.out_bytes && !test_painted(got + list.out_bytes, got + out_step))
            fail_msg("%s '%s': wrote after image %" PRIu64, filter, text, i);
        if (!list.job.filter->measure)
            continue;
        if (!test_same_result(list.results[i], results[i], filter))
            fail_msg("%s '%s': result %" PRIu64 " differs", filter, text, i);
        gf_result_free(results[i]);
    }
}

TEST(batches_equal_single_images) {
    test_needs_gpu();
    static const char *const cases[][2] = {{"smooth", ""},
                                           {"smooth", "radius=8 weight=0.3333"},
                                           {"smooth", "radius=20"},
                                           {"smooth", "axis=xy"},
                                           {"smooth", "axis=y radius=9"},
                                           {"normalize", ""},
                                           {"axis-sum", ""},
                                           {"axis-sum", "axis=y"},
                                           {"dot", ""},
                                           {"compare", ""},
                                           {"compare", "diff=-"},
                                           {"hist", "bins=16 extract=3"},
                                           {"hist", "bins=16 per-row"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t gap = 0; gap < 33; gap += 16) {
            check_batch(cases[i][0], cases[i][1], (gf_format){208, 37, 3, GF_U8, false}, gap);
            check_batch(cases[i][0], cases[i][1], (gf_format){67, 20, 1, GF_U16, false}, gap);
            check_batch(cases[i][0], cases[i][1], (gf_format){80, 7, 1, GF_U8, false}, gap);
            check_batch(cases[i][0], cases[i][1], (gf_format){64, 5, 4, GF_F32, true}, gap);
            check_batch(cases[i][0], cases[i][1], (gf_format){1000, 9, 3, GF_F32, false}, gap);
        }
}

/* Images that are apart share launches, at most GF_STRIP_IMAGES each, if rows are independent. */
TEST(lists_take_few_launches) {
    test_needs_gpu();
    enum { COUNT = GF_STRIP_IMAGES + 1 };
    static const char *const cases[] = {"", "radius=8 weight=0.3333", "radius=20", "axis=y"};
    static const size_t expected[] = {2, 2, 2, COUNT};
    const gf_format format = {1024, 3, 1, GF_U8, false};
    const size_t step = 3 * 1024 + 16;
    AUTO(engine) gf_engine *engine = cuda_engine();
    AUTO(device) unsigned char *from = device_alloc(COUNT * step), *to = device_alloc(COUNT * step);
    gf_pixels in[COUNT];
    gf_out_pixels out[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        in[i] = (gf_pixels){from + i * step, 1024};
        out[i] = (gf_out_pixels){to + i * step, 1024};
    }
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        AUTO(list) image_list list = new_list("smooth", cases[c], format, 1);
        AUTO(job) gf_device_job *job = new_job(engine, &list);
        AUTO(stream) cudaStream_t stream = new_stream();
        cudaGraph_t graph;
        size_t nodes = 0;
        must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        run_job(job, COUNT, in, out, stream, NULL);
        must(cudaStreamEndCapture(stream, &graph));
        must(cudaGraphGetNodes(graph, NULL, &nodes));
        assert_int_equal(nodes, expected[c]);
        must(cudaGraphDestroy(graph));
    }
}

/* The mean of f32 depends on the order of rows: 1e20 + 1 - 1e20 + 3 is 3, or 0 from the end. */
TEST(means_are_summed_in_order) {
    test_needs_gpu();
    static const float rows[] = {1e20f, 1, -1e20f, 3};
    enum { HEIGHT = 900 };
    AUTO(list)
    image_list list = new_list("normalize", "", (gf_format){1, HEIGHT, 1, GF_F32, false}, 1);
    AUTO(engine) gf_engine *golden = test_engine(&(gf_engine_options){.backend = "golden"});
    AUTO(engine) gf_engine *engine = cuda_engine();
    float in[HEIGHT], want[HEIGHT], got[HEIGHT];
    for (size_t y = 0; y < HEIGHT; y++)
        in[y] = rows[y % 4];
    AUTO(device) float *from = device_alloc(sizeof in), *to = device_alloc(sizeof got);
    const gf_pixels host = {in, sizeof in[0]}, device = {from, sizeof in[0]};
    must(cudaMemcpy(from, in, sizeof in, cudaMemcpyHostToDevice));
    assert_ok(test_run_memory(&(test_memory){golden, list.job.filter, list.job.settings,
                                             &list.job.format, &host, want, sizeof want[0]}));
    assert_ok(test_run_device(&(test_memory){engine, list.job.filter, list.job.settings,
                                             &list.job.format, &device, to, sizeof got[0]}));
    must(cudaMemcpy(got, to, sizeof got, cudaMemcpyDeviceToHost));
    assert_memory_equal(got, want, sizeof got);
}

/* ---- streams --------------------------------------------------------------------------------- */

/* A captured run, replayed on other pixels at the same address, equals direct runs. */
static void check_graph(const char *filter, const char *text, gf_format format) {
    AUTO(list) image_list list = new_list(filter, text, format, 3);
    AUTO(engine) gf_engine *engine = cuda_engine();
    AUTO(device)
    unsigned char *from = device_alloc(list.in_bytes), *to = device_alloc(list.out_bytes);
    AUTO(stream) cudaStream_t stream = new_stream();
    AUTO(job) gf_device_job *job = new_job(engine, &list);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    const gf_pixels in = {from, gf_row_bytes(&format)};
    const gf_out_pixels out = {to, gf_row_bytes(&format)};
    if (gf_row_bytes(&format) % 16) { /* staged rows need memory: not during a capture */
        must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        assert_error(test_device_job_run(job, 1, 1, &in, &out, stream, NULL), GF_USAGE,
                     "captured; run the job on it once before");
        must(cudaStreamEndCapture(stream, &graph));
        must(cudaGraphDestroy(graph));
        run_job(job, 1, &in, &out, stream, NULL);
    }
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    run_job(job, 1, &in, &out, stream, NULL);
    must(cudaStreamEndCapture(stream, &graph));
    must(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    for (uint64_t i = 0; i < list.count; i++) {
        must(cudaMemcpyAsync(from, list.in + i * list.in_bytes, list.in_bytes,
                             cudaMemcpyHostToDevice, stream));
        must(cudaMemsetAsync(to, TEST_PAINT, list.out_bytes, stream));
        must(cudaGraphLaunch(exec, stream));
        must(cudaGraphLaunch(exec, stream));
        must(cudaMemcpyAsync(list.got, to, list.out_bytes, cudaMemcpyDeviceToHost, stream));
        must(cudaStreamSynchronize(stream));
        if (memcmp(list.got, list.want + i * list.out_bytes, list.out_bytes) != 0)
            fail_msg("%s '%s': replay %" PRIu64 " differs", filter, text, i);
    }
    must(cudaGraphExecDestroy(exec));
    must(cudaGraphDestroy(graph));
}

TEST(graphs_replay_the_same_bits) {
    test_needs_gpu();
    check_graph("smooth", "", (gf_format){640, 200, 3, GF_U8, false});
    check_graph("smooth", "", (gf_format){641, 200, 1, GF_U8, false});
    check_graph("smooth", "axis=xy", (gf_format){640, 100, 3, GF_U8, false});
    check_graph("smooth", "axis=xy radius=20", (gf_format){333, 100, 1, GF_U16, false});
    check_graph("normalize", "", (gf_format){512, 300, 3, GF_F32, false});
}

/* Run a job again and again on one of several images, at one of several places: aligned or not,
 * with packed rows or not. Other runs, of two images, are between. */
static void check_places(const char *filter, const char *text, gf_format format) {
    enum { COUNT = 3, PLACES = 4, RUNS = 40 };
    static const size_t shifts[PLACES] = {0, 0, 0, 4}, gaps[PLACES] = {0, 0, 16, 12};
    AUTO(list) image_list list = new_list(filter, text, format, COUNT);
    AUTO(engine) gf_engine *engine = cuda_engine();
    AUTO(stream) cudaStream_t stream = new_stream();
    AUTO(job) gf_device_job *job = new_job(engine, &list);
    test_random random = test_seeded(format.width);
    const size_t row = gf_row_bytes(&format), out_row = gf_row_bytes(&list.job.drawn);
    const uint64_t height = format.height * list.inputs;
    unsigned char *from[PLACES][2], *to[PLACES];
    for (size_t p = 0; p < PLACES; p++) {
        for (size_t k = 0; k < 2; k++)
            from[p][k] = device_alloc(height * (row + gaps[p]) + shifts[p]);
        to[p] = device_alloc(2 * format.height * (out_row + gaps[p]) + shifts[p] + 1);
    }
    for (int run = 0; run < RUNS; run++) {
        const size_t p = (size_t)test_below(&random, PLACES);
        const uint64_t images = 1 + test_below(&random, 4) / 3;
        gf_pixels in[4];
        gf_out_pixels out[2];
        size_t which[2];
        gf_result *results[2];
        gf_device_results *queued = NULL;
        const size_t stride = row + gaps[p], out_stride = out_row + gaps[p];
        for (size_t i = 0; i < images; i++) {
            unsigned char *at = from[p][(i + (size_t)run / 3) % 2] + shifts[p];
            which[i] = (size_t)test_below(&random, COUNT);
            must(cudaMemcpy2DAsync(at, stride, list.in + which[i] * list.in_bytes, row, row, height,
                                   cudaMemcpyHostToDevice, stream));
            for (uint32_t k = 0; k < list.inputs; k++)
                in[i * list.inputs + k] = (gf_pixels){at + k * format.height * stride, stride};
            out[i] =
                (gf_out_pixels){to[p] + shifts[p] + i * format.height * out_stride, out_stride};
        }
        run_pairs(job, list.job.filter->info.inputs, images, in, list.out_bytes ? out : NULL,
                  stream, list.job.filter->measure ? &queued : NULL);
        if (queued)
            assert_ok(gf_device_results_wait(queued, results, &why));
        for (size_t i = 0; i < images; i++) {
            if (list.out_bytes)
                must(cudaMemcpy2DAsync(list.got, out_row, out[i].data, out_stride, out_row,
                                       format.height, cudaMemcpyDeviceToHost, stream));
            must(cudaStreamSynchronize(stream));
            if (memcmp(list.got, list.want + which[i] * list.out_bytes, list.out_bytes) != 0)
                fail_msg("%s '%s': run %d differs at place %zu", filter, text, run, p);
            if (queued) {
                if (!test_same_result(list.results[which[i]], results[i], filter))
                    fail_msg("%s '%s': result of run %d differs at place %zu", filter, text, run,
                             p);
                gf_result_free(results[i]);
            }
        }
    }
    for (size_t p = 0; p < PLACES; p++) {
        must(cudaFree(from[p][0]));
        must(cudaFree(from[p][1]));
        must(cudaFree(to[p]));
    }
}

TEST(runs_of_a_job_may_differ) {
    test_needs_gpu();
    static const char *const cases[][2] = {{"smooth", ""},
                                           {"smooth", "axis=xy"},
                                           {"smooth", "axis=xy radius=9"},
                                           {"normalize", ""},
                                           {"axis-sum", ""},
                                           {"dot", ""},
                                           {"compare", "diff=-"},
                                           {"hist", "bins=9 extract=3"},
                                           {"hist", "bins=200 extract=all"},
                                           {"hist", "bins=9 per-row"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_places(cases[i][0], cases[i][1], (gf_format){800, 60, 1, GF_U8, false});
        check_places(cases[i][0], cases[i][1], (gf_format){4096, 9, 3, GF_U16, false});
        check_places(cases[i][0], cases[i][1], (gf_format){300, 20, 4, GF_F32, true});
    }
}

/* Runs of one job on several streams do not disturb each other. */
TEST(streams_do_not_share_memory) {
    test_needs_gpu();
    const gf_format format = {1999, 700, 1, GF_U8, false}; /* staged */
    enum { STREAMS = 4 };
    AUTO(list) image_list list = new_list("smooth", "axis=xy radius=5", format, STREAMS);
    AUTO(engine) gf_engine *engine = cuda_engine();
    gf_device_job *job = new_job(engine, &list);
    AUTO(device) unsigned char *from = device_alloc(STREAMS * list.in_bytes);
    AUTO(device) unsigned char *to = device_alloc(STREAMS * list.out_bytes);
    cudaStream_t streams[STREAMS] = {NULL, cudaStreamPerThread};
    must(cudaMemcpy(from, list.in, STREAMS * list.in_bytes, cudaMemcpyHostToDevice));
    for (int i = 2; i < STREAMS; i++)
        streams[i] = new_stream();
    for (int i = 0; i < 5 * STREAMS; i++) {
        const size_t k = (size_t)i % STREAMS;
        const gf_pixels in = {from + k * list.in_bytes, gf_row_bytes(&format)};
        const gf_out_pixels out = {to + k * list.out_bytes, gf_row_bytes(&format)};
        run_job(job, 1, &in, &out, streams[k], NULL);
    }
    for (int i = 0; i < STREAMS; i++)
        assert_ok(gf_device_wait(engine, streams[i], NULL));
    must(cudaMemcpy(list.got, to, STREAMS * list.out_bytes, cudaMemcpyDeviceToHost));
    assert_memory_equal(list.got, list.want, STREAMS * list.out_bytes);
    gf_device_job_free(job);
    for (int i = 2; i < STREAMS; i++)
        must(cudaStreamDestroy(streams[i]));
}

/* Compare the outcome of a run with golden's. */
static bool thread_check(const image_list *list, uint64_t k, const void *to, unsigned char *got,
                         gf_device_results *results, cudaStream_t stream) {
    AUTO(result) gf_result *result = NULL;
    if (!results)
        return !cudaMemcpyAsync(got, to, list->out_bytes, cudaMemcpyDeviceToHost, stream) &&
               !cudaStreamSynchronize(stream) &&
               memcmp(got, list->want + k * list->out_bytes, list->out_bytes) == 0;
    return !gf_device_results_wait(results, &result, NULL) &&
           test_same_result(list->results[k], result, "a thread");
}

/* Threads with their own engines and streams. */
static void *run_thread(void *argument) {
    const image_list *list = argument;
    gf_device_results *results = NULL;
    AUTO(engine) gf_engine *engine = NULL;
    gf_device_job *job = NULL;
    void *failed = argument;
    cudaStream_t stream = NULL;
    void *from = NULL, *to = NULL;
    AUTO(free) unsigned char *got = malloc(list->out_bytes + 1);
    if (got && !gf_engine_open(&(gf_engine_options){.backend = "cuda"}, &engine, NULL) &&
        !test_device_job(engine, list->job.filter, list->job.settings, &list->job.format, &job) &&
        !cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) &&
        !cudaMalloc(&from, list->in_bytes) && !cudaMalloc(&to, list->out_bytes + 1)) {
        const gf_pixels in = {from, gf_row_bytes(&list->job.format)};
        const gf_out_pixels out = {to, gf_row_bytes(&list->job.format)};
        failed = NULL;
        for (uint64_t i = 0; i < 60 * list->count && !failed; i++) {
            const uint64_t k = i % list->count;
            if (cudaMemcpyAsync(from, list->in + k * list->in_bytes, list->in_bytes,
                                cudaMemcpyHostToDevice, stream) ||
                test_device_job_run(job, 1, 1, &in, &out, stream, &results) ||
                !thread_check(list, k, to, got, results, stream))
                failed = argument;
        }
    }
    gf_device_job_free(job);
    cudaFree(from);
    cudaFree(to);
    if (stream)
        cudaStreamDestroy(stream);
    return failed;
}

TEST(threads_have_their_own_engines) {
    test_needs_gpu();
    /* The two histograms launch one kernel with different sizes of shared memory. */
    image_list lists[] = {new_list("smooth", "axis=xy", (gf_format){800, 300, 3, GF_U8, false}, 3),
                          new_list("hist", "bins=320", (gf_format){400, 30, 1, GF_U16, false}, 3),
                          new_list("hist", "bins=700", (gf_format){400, 30, 1, GF_U16, false}, 3)};
    pthread_t threads[6];
    for (int i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_thread, &lists[i % 3]), 0);
    for (int i = 0; i < 6; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    for (int i = 0; i < 3; i++)
        test_auto_list(&lists[i]);
}

/* A thread that uses CUDA at the same time as a job. */
typedef struct beside {
    const image_list *list;
    atomic_bool done;
    int failures;
} beside;

/* cudaDeviceSynchronize fails while any stream is captured. */
static void *synchronize_beside(void *argument) {
    beside *with = argument;
    while (!with->done)
        with->failures += cudaDeviceSynchronize() != cudaSuccess;
    return NULL;
}

/* A measurement in host memory has a state on the device. */
static void *run_memory_beside(void *argument) {
    beside *with = argument;
    const image_list *list = with->list;
    const gf_pixels in = {list->in, gf_row_bytes(&list->job.format)};
    AUTO(engine) gf_engine *engine = NULL;
    with->failures +=
        gf_engine_open(&(gf_engine_options){.backend = "cuda"}, &engine, NULL) != GF_OK;
    while (engine && !with->done) {
        AUTO(result) gf_result *result = NULL;
        with->failures +=
            test_run_memory(&(test_memory){engine, list->job.filter, list->job.settings,
                                           &list->job.format, &in, .result = &result}) ||
            !test_same_result(list->results[0], result, "beside");
    }
    return NULL;
}

/* A capture in the global mode forbids calls that allocate or wait in all threads, and fails if one
 * makes such a call. */
static void *capture_beside(void *argument) {
    beside *with = argument;
    cudaStream_t stream = NULL;
    cudaGraph_t graph;
    void *memory = NULL;
    with->failures += cudaMalloc(&memory, 16) != cudaSuccess;
    with->failures += cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess;
    while (!with->done) {
        const bool began = !cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
        bool queued = began;
        for (int i = 0; i < 200 && queued; i++) /* takes some time */
            queued = !cudaMemsetAsync(memory, 0, 16, stream);
        if (began && cudaStreamEndCapture(stream, &graph) == cudaSuccess && queued)
            cudaGraphDestroy(graph);
        else
            with->failures++;
    }
    cudaStreamDestroy(stream);
    cudaFree(memory);
    return NULL;
}

/* Open, run and free jobs. Each one creates its graphs. */
static int run_new_jobs(const image_list *list, const void *from, void *to, cudaStream_t stream) {
    AUTO(engine) gf_engine *engine = cuda_engine();
    int failures = 0;
    for (int i = 0; i < 100; i++) {
        const gf_pixels in = {from, gf_row_bytes(&list->job.format)};
        const gf_out_pixels out = {to, gf_row_bytes(&list->job.format)};
        gf_device_job *job = NULL;
        failures += test_device_job(engine, list->job.filter, list->job.settings, &list->job.format,
                                    &job) != GF_OK;
        for (int run = 0; job && run < 2; run++) {
            gf_device_results *queued = NULL;
            AUTO(result) gf_result *result = NULL;
            failures += test_device_job_run(job, 1, 1, &in, &out, stream, &queued) != GF_OK;
            failures += queued && gf_device_results_wait(queued, &result, NULL) != GF_OK;
        }
        gf_device_job_free(job);
    }
    return failures;
}

TEST(jobs_do_not_disturb_other_threads) {
    test_needs_gpu();
    static const struct {
        void *(*run)(void *);
        const char *name;
    } cases[] = {{synchronize_beside, "cudaDeviceSynchronize"},
                 {run_memory_beside, "gf_run_memory"},
                 {capture_beside, "a capture"}};
    image_list lists[] = {
        new_list("hist", "bins=8 extract=3", (gf_format){300, 40, 1, GF_U8, false}, 1),
        new_list("smooth", "axis=xy", (gf_format){300, 40, 1, GF_U8, false}, 1)};
    AUTO(device)
    void *from = device_alloc(lists[0].in_bytes), *to = device_alloc(lists[1].out_bytes);
    AUTO(stream) cudaStream_t stream = new_stream();
    int all_failures = 0;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        beside with = {.list = &lists[0]};
        pthread_t thread;
        int failures = 0;
        assert_int_equal(pthread_create(&thread, NULL, cases[c].run, &with), 0);
        for (size_t i = 0; i < 2; i++)
            failures += run_new_jobs(&lists[i], from, to, stream);
        with.done = true;
        assert_int_equal(pthread_join(thread, NULL), 0);
        if (failures + with.failures > 0)
            print_error("%s: %d failures, of jobs beside it: %d\n", cases[c].name, with.failures,
                        failures);
        all_failures += failures + with.failures;
    }
    assert_int_equal(all_failures, 0);
    for (size_t i = 0; i < 2; i++)
        test_auto_list(&lists[i]);
}

/* A job and a stream for another thread. */
typedef struct handed_job {
    gf_device_job *job;
    gf_pixels in;
    gf_out_pixels out;
    cudaStream_t stream;
    gf_error error;
} handed_job;

static void *run_handed_job(void *argument) {
    handed_job *with = argument;
    const gf_status status =
        test_device_job_run(with->job, 1, 1, &with->in, &with->out, with->stream, NULL);
    with->error = why;
    return status ? with : NULL;
}

/* A new thread has no context. */
TEST(jobs_run_in_new_threads) {
    test_needs_gpu();
    AUTO(list)
    image_list list = new_list("smooth", "", (gf_format){320, 64, 1, GF_U8, false}, 1);
    AUTO(engine) gf_engine *engine = cuda_engine();
    AUTO(device) void *from = device_alloc(list.in_bytes), *to = device_alloc(list.out_bytes);
    AUTO(stream) cudaStream_t stream = new_stream();
    AUTO(job) gf_device_job *job = new_job(engine, &list);
    handed_job with = {job, {from, 320}, {to, 320}, stream};
    must(cudaMemcpy(from, list.in, list.in_bytes, cudaMemcpyHostToDevice));
    pthread_t thread;
    void *failed;
    assert_int_equal(pthread_create(&thread, NULL, run_handed_job, &with), 0);
    assert_int_equal(pthread_join(thread, &failed), 0);
    if (failed)
        fail_msg("%s", with.error.message);
    assert_ok(gf_device_wait(engine, stream, NULL));
    must(cudaMemcpy(list.got, to, list.out_bytes, cudaMemcpyDeviceToHost));
    assert_memory_equal(list.got, list.want, list.out_bytes);
}

/* An error that the caller has not read is neither reported nor cleared. */
TEST(errors_of_the_caller_remain) {
    test_needs_gpu();
    static const char *const filters[] = {"smooth", "normalize", "axis-sum", "hist"};
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        AUTO(list)
        image_list list = new_list(filters[i], "", (gf_format){320, 64, 1, GF_U8, false}, 1);
        AUTO(engine) gf_engine *engine = cuda_engine();
        AUTO(device) void *from = device_alloc(list.in_bytes), *to = device_alloc(list.in_bytes);
        AUTO(job) gf_device_job *job = new_job(engine, &list);
        const gf_pixels in = {from, 320};
        const gf_out_pixels out = {to, 320};
        for (int run = 0; run < 2; run++) {
            assert_int_equal(cudaSetDevice(1000), cudaErrorInvalidDevice);
            run_job(job, 1, &in, &out, NULL, NULL);
            assert_int_equal(cudaGetLastError(), cudaErrorInvalidDevice);
        }
    }
}

/* Measurements are queued before any is awaited, awaited in another order, or not at all. */
TEST(measurements_can_be_queued) {
    test_needs_gpu();
    static const char *const cases[][2] = {{"hist", "bins=8 extract=3"}, {"axis-sum", "axis=y"}};
    const gf_format format = {1000, 400, 3, GF_U8, false};
    enum { COUNT = 6 };
    for (size_t c = 0; c < 2; c++) {
        AUTO(list) image_list list = new_list(cases[c][0], cases[c][1], format, COUNT);
        AUTO(engine) gf_engine *engine = cuda_engine();
        AUTO(device) unsigned char *from = device_alloc(COUNT * list.in_bytes);
        AUTO(job) gf_device_job *job = new_job(engine, &list);
        gf_device_results *queued[COUNT];
        must(cudaMemcpy(from, list.in, COUNT * list.in_bytes, cudaMemcpyHostToDevice));
        for (int round = 0; round < 2; round++) { /* the second takes the memory of the first */
            for (size_t i = 0; i < COUNT; i++) {
                const gf_pixels in = {from + i * list.in_bytes, gf_row_bytes(&format)};
                run_job(job, 1, &in, NULL, NULL, &queued[i]);
            }
            for (size_t i = COUNT; i-- > 1;) {
                AUTO(result) gf_result *result;
                assert_ok(gf_device_results_wait(queued[i], &result, &why));
                if (!test_same_result(list.results[i], result, cases[c][0]))
                    fail_msg("%s: result %zu differs", cases[c][0], i);
            }
            gf_device_results_free(queued[0]);
        }
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void run_in(gf_engine *engine, image_list *list, void *from, void *to, const char *kind) {
    const gf_format *format = &list->job.format;
    const gf_pixels in = {from, gf_row_bytes(format)};
    must(cudaMemcpy(from, list->in, list->in_bytes, cudaMemcpyDefault));
    must(cudaDeviceSynchronize());
    if (test_run_device(&(test_memory){engine, list->job.filter, list->job.settings, format, &in,
                                       to, gf_row_bytes(format)}))
        fail_msg("%s: %s", kind, why.message);
    must(cudaDeviceSynchronize());
    must(cudaMemcpy(list->got, to, list->out_bytes, cudaMemcpyDefault));
    if (memcmp(list->got, list->want, list->out_bytes) != 0)
        fail_msg("%s: the image differs", kind);
}

TEST(kinds_of_memory) {
    test_needs_gpu();
    AUTO(list)
    image_list list = new_list("smooth", "", (gf_format){4096, 64, 3, GF_U8, false}, 1);
    AUTO(engine) gf_engine *engine = cuda_engine();
    void *from, *to;
    must(cudaMallocManaged(&from, list.in_bytes, cudaMemAttachGlobal));
    must(cudaMallocManaged(&to, list.out_bytes, cudaMemAttachGlobal));
    run_in(engine, &list, from, to, "managed memory");
    must(cudaFree(from));
    must(cudaFree(to));
    must(cudaMallocAsync(&from, list.in_bytes, NULL));
    must(cudaMallocAsync(&to, list.out_bytes, NULL));
    run_in(engine, &list, from, to, "cudaMallocAsync");
    must(cudaFreeAsync(from, NULL));
    must(cudaFreeAsync(to, NULL));
    /* The left half of an image, written into its right half. */
    const size_t row = gf_row_bytes(&list.job.format), stride = 2 * row;
    AUTO(device) unsigned char *both = device_alloc(64 * stride);
    const gf_pixels in = {both, stride};
    must(cudaMemcpy2D(both, stride, list.in, row, row, 64, cudaMemcpyHostToDevice));
    assert_ok(test_run_device(&(test_memory){engine, list.job.filter, list.job.settings,
                                             &list.job.format, &in, both + row, stride}));
    must(cudaMemcpy2D(list.got, row, both + row, stride, row, 64, cudaMemcpyDeviceToHost));
    assert_memory_equal(list.got, list.want, list.out_bytes);
    must(cudaMemcpy2D(list.got, row, both, stride, row, 64, cudaMemcpyDeviceToHost));
    assert_memory_equal(list.got, list.in, list.in_bytes);
}

/* ---- wrong arguments ------------------------------------------------------------------------- */

typedef struct misuse {
    gf_engine *engine;
    const gf_filter *filter;
    gf_settings *settings;
    gf_format format;
    gf_pixels in; /* without error */
    gf_out_pixels out;
} misuse;

/* Run an image alone, and as the second one of a batch. */
static void refuses(const misuse *with, gf_pixels in, gf_out_pixels out, void *stream,
                    const char *message) {
    const gf_pixels from[] = {with->in, in};
    const gf_out_pixels to[] = {with->out, out};
    for (uint64_t first = 0; first < 2; first++) {
        assert_int_equal(test_run_device_list(
                             &(test_list){with->engine, with->filter, with->settings, &with->format,
                                          2 - first, from + first, to + first, .stream = stream}),
                         GF_USAGE);
        if (!strstr(why.message, message))
            fail_msg("expected \"%s\", got \"%s\"", message, why.message);
    }
}

TEST(wrong_arguments_are_errors) {
    test_needs_gpu();
    misuse with = {.engine = cuda_engine(),
                   .filter = gf_filter_find("smooth"),
                   .format = {500, 40, 1, GF_U8, false}};
    with.settings = test_settings(with.filter, "");
    AUTO(device) unsigned char *to = device_alloc(500 * 40), *from = device_alloc(1000 * 40);
    unsigned char *host = test_alloc(500 * 40), *pinned;
    must(cudaMallocHost((void **)&pinned, 500 * 40));
    const gf_pixels in = {from, 500};
    const gf_out_pixels out = {to, 500};
    with.in = in;
    with.out = out;
    refuses(&with, (gf_pixels){NULL, 500}, out, NULL, "the input is NULL");
    refuses(&with, in, (gf_out_pixels){NULL, 500}, NULL, "the output is NULL");
    refuses(&with, (gf_pixels){host, 500}, out, NULL, "the input is in host memory");
    refuses(&with, (gf_pixels){pinned, 500}, out, NULL, "the input is in host memory");
    refuses(&with, in, (gf_out_pixels){host, 500}, NULL, "the output is in host memory");
    refuses(&with, (gf_pixels){from, 499}, out, NULL, "smaller than a row of 500 bytes");
    refuses(&with, in, (gf_out_pixels){to, 0}, NULL, "smaller than a row of 500 bytes");
    refuses(&with, (gf_pixels){from, SIZE_MAX / 8}, out, NULL, "too large");
    refuses(&with, (gf_pixels){from, 1 << 20}, out, NULL, "its memory ends");
    refuses(&with, in, (gf_out_pixels){to + 1, 500}, NULL, "its memory ends");
    refuses(&with, in, (gf_out_pixels){from, 500}, NULL, "overlaps");
    refuses(&with, in, (gf_out_pixels){from + 19999, 500}, NULL, "overlaps");
    refuses(&with, (gf_pixels){from, 1000}, (gf_out_pixels){from + 499, 1000}, NULL, "overlaps");
    refuses(&with, (gf_pixels){from + 499, 1000}, (gf_out_pixels){from, 1000}, NULL, "overlaps");
    assert_ok(test_run_device(&(test_memory){with.engine, with.filter, with.settings, &with.format,
                                             &(gf_pixels){from, 1000}, from + 500, 1000}));
    int devices = 0;
    must(cudaGetDeviceCount(&devices));
    if (devices > 1) {
        int current = -1;
        must(cudaSetDevice(1));
        void *other = device_alloc(500 * 40);
        cudaStream_t stream = new_stream();
        refuses(&with, (gf_pixels){other, 500}, out, NULL, "is in memory of device 1");
        refuses(&with, in, out, stream, "the stream belongs to another device");
        must(cudaGetDevice(&current));
        assert_int_equal(current, 1); /* the caller's device is current again */
        must(cudaStreamDestroy(stream));
        must(cudaFree(other));
        must(cudaSetDevice(0));
    } else {
        print_message("SKIP 1: memory of another device: one device\n");
    }
    gf_settings_free(with.settings);
    with.filter = gf_filter_find("hist");
    with.settings = test_settings(with.filter, "");
    cudaStream_t stream = new_stream();
    cudaGraph_t graph;
    test_run_device(&(test_memory){with.engine, with.filter, with.settings, &with.format, &in,
                                   .stream = stream});
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    refuses(&with, in, (gf_out_pixels){NULL, 0}, stream, "cannot measure while");
    must(cudaStreamEndCapture(stream, &graph));
    must(cudaGraphDestroy(graph));
    must(cudaStreamDestroy(stream));
    gf_engine_close(with.engine);
    with.engine = test_engine(&(gf_engine_options){.backend = "cpu"});
    refuses(&with, in, out, NULL, "the cpu backend cannot access device memory");
    gf_engine_close(with.engine);
    with.engine = test_engine(&(gf_engine_options){.backend = "cuda", .verify = true});
    refuses(&with, in, out, NULL, "cannot be verified");
    gf_engine_close(with.engine);
    gf_settings_free(with.settings);
    must(cudaFreeHost(pinned));
    free(host);
}

/* An engine keeps 16 jobs; more combinations still work. */
TEST(engines_keep_jobs) {
    test_needs_gpu();
    AUTO(list)
    image_list list = new_list("smooth", "axis=xy", (gf_format){320, 64, 1, GF_F32, false}, 1);
    AUTO(engine) gf_engine *engine = cuda_engine();
    AUTO(device) void *from = device_alloc(list.in_bytes), *to = device_alloc(list.out_bytes);
    for (uint64_t height = 1; height <= 40; height++) {
        const gf_format format = {320, height, 1, GF_F32, false};
        assert_ok(test_run_device(&(test_memory){engine, list.job.filter, list.job.settings,
                                                 &format, &(gf_pixels){from, 1280}, to, 1280}));
        run_in(engine, &list, from, to, "a kept job");
    }
}

#endif

/* Without CUDA or a device, the calls fail with a reason. */
TEST(absent_devices_are_errors) {
    if (test_has_cuda())
        test_skip("there is a device");
    const gf_format format = {8, 8, 1, GF_U8, false};
    const gf_filter *filter = gf_filter_find("smooth");
    AUTO(settings) gf_settings *settings = test_settings(filter, "");
    AUTO(engine) gf_engine *engine = test_engine(&(gf_engine_options){.backend = "auto"});
    gf_device_job *job = (gf_device_job *)&job;
    assert_int_equal(test_device_job(engine, filter, settings, &format, &job), GF_NO_BACKEND);
    assert_null(job);
    assert_non_null(strstr(why.message, "cuda:"));
    assert_int_equal(test_run_device(&(test_memory){engine, filter, settings, &format,
                                                    &(gf_pixels){settings, 8}, settings, 8}),
                     GF_NO_BACKEND);
}

int main(void) {
    return test_main(NULL);
}
