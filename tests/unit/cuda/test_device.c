/* Images in device memory beyond the equality of test_equality.c: batches, graphs, threads, queued
 * measurements, kinds of memory, and wrong arguments. */
#include "job.h"

#ifdef GF_WITH_CUDA
#include <pthread.h>
#include <stdatomic.h>

#include "cuda_util.h"
#include "device_images.h"

static void release(void *data) {
    must(cudaFree(data));
}

static void copy(void *to, const void *from, size_t size, void *stream) {
    must(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream));
    must(cudaStreamSynchronize(stream));
}

static const image_memory default_memory = {device_alloc, release, copy};

/* Capture a run of all images. */
static cudaGraph_t capture(image_set *set) {
    cudaGraph_t graph;
    must(cudaStreamBeginCapture(set->is.stream, cudaStreamCaptureModeGlobal));
    assert_ok(images_run(set, 0, set->is.positions));
    must(cudaStreamEndCapture(set->is.stream, &graph));
    return graph;
}

static const char *const cases[][2] = {{"smooth", ""},
                                       {"smooth", "radius=8 weight=0.3333"},
                                       {"smooth", "radius=20"},
                                       {"smooth", "axis=xy"},
                                       {"smooth", "axis=xy radius=9"},
                                       {"smooth", "axis=y radius=9"},
                                       {"smooth", "axis=y stages=enhance"},
                                       {"smooth", "axis=xy stages=enhance"},
                                       {"normalize", ""},
                                       {"axis-sum", ""},
                                       {"axis-sum", "axis=y"},
                                       {"dot", ""},
                                       {"compare", ""},
                                       {"compare", "diff=-"},
                                       {"hist", "bins=16 extract=3"},
                                       {"hist", "bins=9 extract=3"},
                                       {"hist", "bins=200 extract=all"},
                                       {"hist", "bins=16 per-row"},
                                       {"hist", "bins=9 per-row"},
                                       {"resize", "scale=0.3"},
                                       {"resize", "exact=224x7 kernel=lanczos3"},
                                       {"resize", "height=1 kernel=box"},
                                       {"resize", "scale=1.7"}};
enum { CASES = sizeof cases / sizeof cases[0] };

/* ---- batches --------------------------------------------------------------------------------- */

/* Images that follow each other share a launch if rows are independent. */
TEST(batches_equal_single_images) {
    test_needs_gpu();
    enum { COUNT = 70 }; /* more than one launch takes */
    static const gf_format formats[] = {{208, 37, 3, GF_U8, false},
                                        {67, 20, 1, GF_U16, false},
                                        {80, 7, 1, GF_U8, false},
                                        {64, 5, 4, GF_F32, true},
                                        {1000, 9, 3, GF_F32, false}};
    for (size_t i = 0; i < 3 * CASES * 5; i++) {
        AUTO(images)
        image_set set = new_images((image_case){cases[i / 15][0], cases[i / 15][1], formats[i % 5],
                                                COUNT, .gap = i / 5 % 3 * 16});
        images_check(&set, 0, set.is.positions);
    }
}

/* Images that are apart share launches, at most GF_STRIP_IMAGES each, if rows are independent. */
TEST(lists_take_few_launches) {
    test_needs_gpu();
    enum { COUNT = GF_STRIP_IMAGES + 1 };
    static const struct {
        const char *filter, *text;
        size_t expected;
    } lists[] = {{"smooth", "", 2},
                 {"smooth", "radius=8 weight=0.3333", 2},
                 {"smooth", "radius=20", 2},
                 {"smooth", "axis=y", COUNT},
                 {"resize", "exact=512x3", 2},
                 {"resize", "exact=1024x2", 2},
                 {"resize", "exact=512x2", 2}}; /* both stages in one kernel (sm_80) */
    for (size_t c = 0; c < sizeof lists / sizeof lists[0]; c++) {
        AUTO(stream) cudaStream_t stream = new_stream();
        const gf_format format = {1024, 3, 1, GF_U8, false};
        AUTO(images)
        image_set set = new_images((image_case){lists[c].filter, lists[c].text, format, 1, COUNT,
                                                .gap = 16, .open = true, .stream = stream});
        size_t nodes = 0;
        assert_ok(images_run(&set, 0, COUNT)); /* allocates */
        cudaGraph_t graph = capture(&set);
        must(cudaGraphGetNodes(graph, NULL, &nodes));
        assert_int_equal(nodes, lists[c].expected);
        must(cudaGraphDestroy(graph));
    }
}

/* The mean of f32 depends on the order of rows: 1e20 + 1 - 1e20 + 3 is 3, or 0 from the end. */
TEST(means_are_summed_in_order) {
    test_needs_gpu();
    static const float rows[] = {1e20f, 1, -1e20f, 3};
    AUTO(images)
    image_set set = new_images((image_case){"normalize", "", {1, 900, 1, GF_F32, false}, 1});
    for (uint64_t y = 0; y < 900; y++)
        memcpy(gf_row(&set.jobs->in[0].rows, y), &rows[y % 4], sizeof rows[0]);
    images_golden(&set, 0);
    images_expect(&set, 0, 0);
    images_put(&set);
    images_check(&set, 0, set.is.positions);
}

/* ---- streams --------------------------------------------------------------------------------- */

/* A captured run, replayed on other pixels at the same address, equals direct runs. */
TEST(graphs_replay_the_same_bits) {
    test_needs_gpu();
    static const image_case graphs[] = {
        {"smooth", "", {640, 200, 3, GF_U8, false}, 3, 1, .open = true},
        {"smooth", "", {641, 200, 1, GF_U8, false}, 3, 1, .open = true},
        {"smooth", "axis=xy", {640, 100, 3, GF_U8, false}, 3, 1, .open = true},
        {"smooth", "axis=xy radius=20", {333, 100, 1, GF_U16, false}, 3, 1, .open = true},
        {"normalize", "", {512, 300, 3, GF_F32, false}, 3, 1, .open = true},
        {"resize", "exact=320x77", {640, 200, 3, GF_F32, false}, 3, 1, .open = true}};
    for (size_t c = 0; c < sizeof graphs / sizeof graphs[0]; c++) {
        AUTO(stream) cudaStream_t stream = new_stream();
        AUTO(images) image_set set = new_images(graphs[c]);
        set.is.stream = stream;
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        /* Staged rows and images between stages need memory: not during a capture. */
        if (set.in.row % 16 || set.jobs->filter->stages) {
            must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
            assert_error(images_run(&set, 0, 1), GF_USAGE,
                         "captured; run the job on it once before");
            must(cudaStreamEndCapture(stream, &graph));
            must(cudaGraphDestroy(graph));
            assert_ok(images_run(&set, 0, 1));
        }
        graph = capture(&set);
        must(cudaGraphInstantiateWithFlags(&exec, graph, 0));
        for (uint64_t i = 0; i < set.is.count; i++) {
            images_expect(&set, 0, i);
            images_put(&set);
            must(cudaGraphLaunch(exec, stream));
            must(cudaGraphLaunch(exec, stream));
            assert_true(images_same(&set, 0, 1));
        }
        must(cudaGraphExecDestroy(exec));
        must(cudaGraphDestroy(graph));
    }
}

/* Run a job again and again on one of several images, at one of several places: aligned or not,
 * with packed rows or not. Other runs, of two images, are between. */
TEST(runs_of_a_job_may_differ) {
    test_needs_gpu();
    static const gf_format formats[] = {
        {800, 60, 1, GF_U8, false}, {4096, 9, 3, GF_U16, false}, {300, 20, 4, GF_F32, true}};
    enum { COUNT = 3, PLACES = 4, RUNS = 40 };
    static const size_t shifts[PLACES] = {0, 0, 0, 4}, paddings[PLACES] = {0, 0, 16, 12};
    for (size_t c = 0; c < 3 * CASES; c++) {
        AUTO(stream) cudaStream_t stream = new_stream();
        test_random random = test_seeded(formats[c % 3].width);
        image_set places[PLACES];
        for (size_t p = 0; p < PLACES; p++) {
            places[p] =
                new_images((image_case){cases[c / 3][0], cases[c / 3][1], formats[c % 3], COUNT, 3,
                                        shifts[p], paddings[p], 512, p % 2, p == 0, stream});
            places[p].job = places[0].job;
        }
        for (uint64_t run = 0; run < RUNS; run++) {
            image_set *place = &places[test_below(&random, PLACES)];
            const uint64_t images = 1 + test_below(&random, 4) / 3, first = run / 3 % 2;
            for (uint64_t i = first; i < first + images; i++)
                images_expect(place, i, test_below(&random, COUNT));
            images_put(place);
            images_check(place, first, images);
        }
        for (size_t p = PLACES; p-- > 0;) {
            places[p].job = p ? NULL : places[p].job;
            test_auto_images(&places[p]);
        }
    }
}

/* Runs of one job on several streams do not disturb each other. */
TEST(streams_do_not_share_memory) {
    test_needs_gpu();
    enum { STREAMS = 4 };
    AUTO(stream) cudaStream_t stream = new_stream(), other = new_stream();
    const cudaStream_t streams[STREAMS] = {NULL, cudaStreamPerThread, stream, other};
    AUTO(images) /* staged */
    image_set set = new_images((image_case){
        "smooth", "axis=xy radius=5", {1999, 700, 1, GF_U8, false}, STREAMS, .open = true});
    for (uint64_t i = 0; i < 5 * STREAMS; i++) {
        set.is.stream = streams[i % STREAMS];
        assert_ok(images_run(&set, i % STREAMS, 1));
    }
    for (int i = 0; i < STREAMS; i++)
        assert_ok(gf_device_wait(set.engine, streams[i], NULL));
    set.is.stream = NULL;
    assert_true(images_same(&set, 0, STREAMS));
}

/* Run all images with an engine and a stream of this thread. */
static void *run_thread(void *argument) {
    image_set *set = argument;
    AUTO(engine) gf_engine *engine = NULL;
    cudaStream_t stream = NULL;
    bool good = !gf_engine_open(&(gf_engine_options){.backend = "cuda"}, &engine, NULL) &&
                !images_job(set, engine) &&
                !cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    set->is.stream = stream;
    for (uint64_t i = 0; i < 60 * set->is.count && good; i++) {
        images_expect(set, 0, i % set->is.count);
        images_put(set);
        good = !images_run(set, 0, 1) && images_same(set, 0, 1);
    }
    gf_device_job_free(set->job);
    set->job = NULL;
    if (stream)
        cudaStreamDestroy(stream);
    return good ? NULL : argument;
}

TEST(threads_have_their_own_engines) {
    test_needs_gpu();
    /* The two histograms launch one kernel with different sizes of shared memory. */
    static const image_case images[] = {{"smooth", "axis=xy", {800, 300, 3, GF_U8, false}, 3, 1},
                                        {"hist", "bins=320", {400, 30, 1, GF_U16, false}, 3, 1},
                                        {"hist", "bins=700", {400, 30, 1, GF_U16, false}, 3, 1}};
    image_set sets[6];
    pthread_t threads[6];
    int failures = 0;
    for (int i = 0; i < 6; i++)
        sets[i] = new_images(images[i % 3]);
    for (int i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_thread, &sets[i]), 0);
    for (int i = 0; i < 6; i++) {
        void *failed;
        failures += pthread_join(threads[i], &failed) != 0 || failed;
        test_auto_images(&sets[i]);
    }
    assert_int_equal(failures, 0);
}

/* A thread that uses CUDA at the same time as a job. */
typedef struct beside {
    const image_set *set;
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
    const test_job *job = with->set->jobs;
    AUTO(engine) gf_engine *engine = NULL;
    with->failures +=
        gf_engine_open(&(gf_engine_options){.backend = "cuda"}, &engine, NULL) != GF_OK;
    while (engine && !with->done) {
        AUTO(result) gf_result *result = NULL;
        with->failures +=
            test_run_memory(&(test_memory){engine, job->filter, job->settings, &job->format,
                                           job->pixels, .result = &result}) ||
            !test_same_result(with->set->golden->result, result, "beside");
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
static int run_new_jobs(image_set *set) {
    AUTO(engine) gf_engine *engine = cuda_engine();
    int failures = 0;
    for (int i = 0; i < 100; i++) {
        failures += images_job(set, engine) != GF_OK;
        for (int run = 0; set->job && run < 2; run++) {
            AUTO(result) gf_result *result = NULL;
            failures += images_run(set, 0, 1) != GF_OK;
            failures += set->queued[0] && gf_device_results_wait(set->queued[0], &result, NULL);
        }
        gf_device_job_free(set->job);
        set->job = NULL;
    }
    return failures;
}

TEST(jobs_do_not_disturb_other_threads) {
    test_needs_gpu();
    static const struct {
        void *(*run)(void *);
        const char *name;
    } uses[] = {{synchronize_beside, "cudaDeviceSynchronize"},
                {run_memory_beside, "gf_run_memory"},
                {capture_beside, "a capture"}};
    AUTO(stream) cudaStream_t stream = new_stream();
    image_case is = {"hist", "bins=8 extract=3", {300, 40, 1, GF_U8, false}, 1, .stream = stream};
    AUTO(images) image_set hist = new_images(is);
    is.filter = "smooth";
    is.text = "axis=xy";
    AUTO(images) image_set smooth = new_images(is);
    for (size_t c = 0; c < sizeof uses / sizeof uses[0]; c++) {
        beside with = {.set = &hist};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, uses[c].run, &with), 0);
        const int failures = run_new_jobs(&hist) + run_new_jobs(&smooth);
        with.done = true;
        assert_int_equal(pthread_join(thread, NULL), 0);
        if (failures + with.failures > 0)
            fail_msg("%s: %d failures, of jobs beside it: %d", uses[c].name, with.failures,
                     failures);
    }
}

static void *run_handed_job(void *set) {
    const gf_status status = images_run(set, 0, 1);
    if (status)
        print_error("%s\n", why.message);
    return status ? set : NULL;
}

/* A new thread has no context. */
TEST(jobs_run_in_new_threads) {
    test_needs_gpu();
    AUTO(stream) cudaStream_t stream = new_stream();
    AUTO(images)
    image_set set = new_images(
        (image_case){"smooth", "", {320, 64, 1, GF_U8, false}, 1, .open = true, .stream = stream});
    pthread_t thread;
    void *failed;
    assert_int_equal(pthread_create(&thread, NULL, run_handed_job, &set), 0);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    assert_ok(gf_device_wait(set.engine, stream, NULL));
    set.is.stream = NULL;
    assert_true(images_same(&set, 0, 1));
}

/* An error that the caller has not read is neither reported nor cleared. Results are dropped. */
TEST(errors_of_the_caller_remain) {
    test_needs_gpu();
    static const char *const filters[] = {"smooth", "normalize", "axis-sum", "hist"};
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        AUTO(images)
        image_set set =
            new_images((image_case){filters[i], "", {320, 64, 1, GF_U8, false}, 1, .open = true});
        for (int run = 0; run < 2; run++) {
            assert_int_equal(cudaSetDevice(1000), cudaErrorInvalidDevice);
            assert_ok(test_device_job_run(set.job, 1, 1, set.from, set.to, NULL, NULL));
            assert_int_equal(cudaGetLastError(), cudaErrorInvalidDevice);
        }
    }
}

/* Measurements are queued before any is awaited, awaited in another order, or not at all. */
TEST(measurements_can_be_queued) {
    test_needs_gpu();
    static const char *const measures[][2] = {{"hist", "bins=8 extract=3"}, {"axis-sum", "axis=y"}};
    enum { COUNT = 6 };
    for (size_t c = 0; c < 2; c++) {
        AUTO(images)
        image_set set = new_images((image_case){
            measures[c][0], measures[c][1], {1000, 400, 3, GF_U8, false}, COUNT, .open = true});
        for (int round = 0; round < 2; round++) { /* the second takes the memory of the first */
            for (uint64_t i = 0; i < COUNT; i++)
                assert_ok(images_run(&set, i, 1));
            for (uint64_t i = COUNT; i-- > 1;)
                assert_true(images_same(&set, i, 1));
            gf_device_results_free(set.queued[0]);
        }
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void *managed_alloc(size_t size) {
    void *data;
    must(cudaMallocManaged(&data, size, cudaMemAttachGlobal));
    return data;
}

static void *pool_alloc(size_t size) {
    void *data;
    must(cudaMallocAsync(&data, size, NULL));
    return data;
}

static void pool_release(void *data) {
    must(cudaFreeAsync(data, NULL));
}

TEST(kinds_of_memory) {
    test_needs_gpu();
    static const image_memory kinds[] = {{managed_alloc, release, copy},
                                         {pool_alloc, pool_release, copy}};
    image_case is = {"smooth", "", {4096, 64, 3, GF_U8, false}, 1};
    for (size_t k = 0; k < 2; k++) {
        is.memory = &kinds[k];
        AUTO(images) image_set set = new_images(is);
        images_check(&set, 0, set.is.positions);
    }
    /* The left half of an image, written into its right half. */
    const size_t row = 3 * 4096;
    is.memory = NULL;
    is.padding = row;
    AUTO(images) image_set set = new_images(is);
    set.to[0].data = set.in.data + row;
    assert_ok(images_run(&set, 0, 1));
    for (uint64_t y = 0; y < 64; y++)
        memcpy(set.in.want + y * set.in.stride + row, gf_row(&set.golden->image.rows, y), row);
    assert_true(block_same(&set, &set.in) && block_same(&set, &set.out));
}

/* ---- wrong arguments ------------------------------------------------------------------------- */

/* Run an image alone, and as the second one of a batch after an image without error. */
static void refuses(gf_engine *engine, const image_set *good, gf_pixels in, gf_out_pixels out,
                    void *stream, const char *message) {
    const test_job *job = good->jobs;
    const gf_pixels from[] = {good->from[0], in};
    const gf_out_pixels to[] = {good->to[0], out};
    for (uint64_t first = 0; first < 2; first++)
        assert_error(test_run_device_list(&(test_list){engine, job->filter, job->settings,
                                                       &job->format, 2 - first, from + first,
                                                       to + first, .stream = stream}),
                     GF_USAGE, message);
}

TEST(wrong_arguments_are_errors) {
    test_needs_gpu();
    const gf_format format = {500, 40, 1, GF_U8, false};
    AUTO(images)
    image_set smooth = new_images((image_case){"smooth", "", format, 1}),
              hist = new_images((image_case){"hist", "", format, 1});
    AUTO(engine)
    gf_engine *engine = cuda_engine(), *cpu = test_engine(&(gf_engine_options){.backend = "cpu"}),
              *verify = test_engine(&(gf_engine_options){.backend = "cuda", .verify = true});
    AUTO(device) unsigned char *to = device_alloc(500 * 40), *from = device_alloc(1000 * 40);
    AUTO(free) unsigned char *host = test_alloc(500 * 40);
    unsigned char *pinned;
    must(cudaMallocHost((void **)&pinned, 500 * 40));
    const gf_pixels in = {from, 500};
    const gf_out_pixels out = {to, 500};
    refuses(engine, &smooth, (gf_pixels){NULL, 500}, out, NULL, "the input is NULL");
    refuses(engine, &smooth, in, (gf_out_pixels){NULL, 500}, NULL, "the output is NULL");
    refuses(engine, &smooth, (gf_pixels){host, 500}, out, NULL, "the input is in host memory");
    refuses(engine, &smooth, (gf_pixels){pinned, 500}, out, NULL, "the input is in host memory");
    refuses(engine, &smooth, in, (gf_out_pixels){host, 500}, NULL, "the output is in host memory");
    refuses(engine, &smooth, (gf_pixels){from, 499}, out, NULL, "smaller than a row of 500 bytes");
    refuses(engine, &smooth, in, (gf_out_pixels){to, 0}, NULL, "smaller than a row of 500 bytes");
    refuses(engine, &smooth, (gf_pixels){from, SIZE_MAX / 8}, out, NULL, "too large");
    /* 7 bytes too long: a longer input may overlap the output. */
    refuses(engine, &smooth, (gf_pixels){from, 1013}, out, NULL, "its memory ends");
    refuses(engine, &smooth, in, (gf_out_pixels){to + 1, 500}, NULL, "its memory ends");
    refuses(engine, &smooth, in, (gf_out_pixels){from, 500}, NULL, "overlaps");
    refuses(engine, &smooth, in, (gf_out_pixels){from + 19999, 500}, NULL, "overlaps");
    refuses(engine, &smooth, (gf_pixels){from, 1000}, (gf_out_pixels){from + 499, 1000}, NULL,
            "overlaps");
    refuses(engine, &smooth, (gf_pixels){from + 499, 1000}, (gf_out_pixels){from, 1000}, NULL,
            "overlaps");
    assert_ok(test_run_device(&(test_memory){engine, smooth.jobs->filter, smooth.jobs->settings,
                                             &format, &(gf_pixels){from, 1000}, from + 500, 1000}));
    int devices = 0;
    must(cudaGetDeviceCount(&devices));
    if (devices > 1) {
        int current = -1;
        must(cudaSetDevice(1));
        void *other = device_alloc(500 * 40);
        cudaStream_t stream = new_stream();
        refuses(engine, &smooth, (gf_pixels){other, 500}, out, NULL, "is in memory of device 1");
        refuses(engine, &smooth, in, out, stream, "the stream belongs to another device");
        must(cudaGetDevice(&current));
        assert_int_equal(current, 1); /* the caller's device is current again */
        must(cudaStreamDestroy(stream));
        must(cudaFree(other));
        must(cudaSetDevice(0));
    } else {
        print_message("SKIP 1: memory of another device: one device\n");
    }
    cudaStream_t stream = new_stream();
    cudaGraph_t graph;
    test_run_device(&(test_memory){engine, hist.jobs->filter, hist.jobs->settings, &format, &in,
                                   .stream = stream});
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    refuses(engine, &hist, in, (gf_out_pixels){NULL, 0}, stream, "cannot measure while");
    must(cudaStreamEndCapture(stream, &graph));
    must(cudaGraphDestroy(graph));
    must(cudaStreamDestroy(stream));
    refuses(cpu, &smooth, in, out, NULL, "the cpu backend cannot access device memory");
    refuses(verify, &smooth, in, out, NULL, "cannot be verified");
    must(cudaFreeHost(pinned));
}

/* An engine keeps 16 jobs; more combinations still work. */
TEST(engines_keep_jobs) {
    test_needs_gpu();
    AUTO(images)
    image_set set = new_images((image_case){"smooth", "axis=xy", {320, 64, 1, GF_F32, false}, 1});
    set.engine = cuda_engine();
    for (uint64_t height = 1; height <= 40; height++) {
        const gf_format format = {320, height, 1, GF_F32, false};
        assert_ok(test_run_device(&(test_memory){set.engine, set.jobs->filter, set.jobs->settings,
                                                 &format, set.from, set.to[0].data, 1280}));
        images_check(&set, 0, set.is.positions);
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
