/* A real device that fails in the middle of an image, due to a kernel with an invalid store. All
 * later CUDA calls of the process fail, therefore each failure runs in a process of its own. */
#include "fault_job.h"

#include <sys/wait.h>

#ifdef GF_WITH_CUDA
#include <cuda_runtime_api.h>
#include <dlfcn.h>

/* Store to address 8. */
static const char poison_ptx[] =
    ".version 6.4\n.target sm_75\n.address_size 64\n"
    ".visible .entry poison() {\n"
    ".reg .b64 %a;\n.reg .b32 %v;\n"
    "mov.b64 %a, 8;\nmov.b32 %v, 1;\n"
    "st.global.b32 [%a], %v;\nret;\n}\n";

typedef int load_module(void **module, const void *image);
typedef int get_function(void **function, void *module, const char *name);
typedef int launch_kernel(void *function, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, unsigned, void *stream, void **arguments, void **extra);

static void find(void *library, const char *name, void *function, size_t size) {
    void *symbol = dlsym(library, name);
    assert_non_null(symbol);
    memcpy(function, &symbol, size); /* ISO C has no cast from object to function pointers */
}

static void poison(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *module, *function;
    load_module *load;
    get_function *get;
    launch_kernel *launch;
    assert_non_null(library);
    find(library, "cuModuleLoadData", &load, sizeof load);
    find(library, "cuModuleGetFunction", &get, sizeof get);
    find(library, "cuLaunchKernel", &launch, sizeof launch);
    assert_int_equal(cudaSetDevice(0), cudaSuccess);
    assert_int_equal(cudaFree(NULL), cudaSuccess);
    assert_int_equal(load(&module, poison_ptx), 0);
    assert_int_equal(get(&function, module, "poison"), 0);
    assert_int_equal(launch(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 0);
}

/* Poison the device when half of the image is done. */
static bool poison_at_half(void *context, const gf_progress *progress) {
    bool *poisoned = context;
    if (*poisoned || progress->done < progress->total / 2)
        return true;
    *poisoned = true;
    poison();
    return true;
}

static const gf_format poisoned_format = {900, 700, 3, GF_U8, false};

/* Return the status of one image. *again: status of the next image in the same engine. */
static gf_status run_poisoned(const char *name, const char *text, bool replaceable,
                              gf_report *report, gf_status *again) {
    const gf_filter *filter = gf_filter_find(name);
    const gf_engine_options options = {.backend = "cuda", .rows_per_strip = 20};
    bool poisoned = false;
    const gf_file_options files = {
        .force = true, .progress = poison_at_half, .progress_context = &poisoned};
    AUTO(settings) gf_settings *settings = test_settings(filter, text);
    const char *in = in_directory("in.ppm");
    const char *out = filter->info.makes_image ? in_directory("out.ppm") : NULL;
    AUTO(engine) gf_engine *engine;
    assert_ok(gf_engine_open(&options, &engine, NULL));
    engine->may_fall_back = replaceable; /* as under auto, which might select the cpu backend */
    const gf_status status =
        test_run_files(&(test_files){engine, filter, settings, &in, out, &files, .report = report});
    assert_true(poisoned);
    gf_report unread;
    *again = test_run_files(&(test_files){engine, filter, settings, &in,
                                          out ? in_directory("again.ppm") : NULL, &files,
                                          .report = &unread});
    return status;
}

static void image_continues(void) {
    gf_report report;
    gf_status again;
    assert_ok(run_poisoned("smooth", "axis=xy", true, &report, &again));
    print_message("%s\n", report.reason);
    assert_true(report.device_failed);
    assert_non_null(strstr(report.backend, "cpu"));
    assert_int_equal(again, GF_OK);
    AUTO(engine) gf_engine *golden;
    AUTO(settings) gf_settings *settings = test_settings(gf_filter_find("smooth"), "axis=xy");
    assert_int_equal(gf_engine_open(&(gf_engine_options){.backend = "golden"}, &golden, NULL), 0);
    const char *in =
        in_directory("in.ppm"); /* valid for few calls: in_directory reuses 4 buffers */
    assert_ok(test_run_files(
        &(test_files){golden, gf_filter_find("smooth"), settings, &in, in_directory("want.ppm")}));
    size_t sizes[3];
    AUTO(free) unsigned char *want = test_bytes(in_directory("want.ppm"), &sizes[0]);
    AUTO(free) unsigned char *got = test_bytes(in_directory("out.ppm"), &sizes[1]);
    AUTO(free) unsigned char *next = test_bytes(in_directory("again.ppm"), &sizes[2]);
    assert_true(sizes[0] == sizes[1] && sizes[0] == sizes[2]);
    assert_memory_equal(want, got, sizes[0]);
    assert_memory_equal(want, next, sizes[0]);
}

static void measured_is_measured_again(void) {
    gf_report report;
    gf_status again;
    assert_ok(run_poisoned("hist", "bins=7", true, &report, &again));
    assert_true(report.device_failed);
    assert_int_equal(again, GF_OK);
}

static void named_device_fails(void) {
    gf_report report;
    gf_status again;
    assert_error(run_poisoned("smooth", "", false, &report, &again), GF_NO_BACKEND, "cuda: ");
    assert_int_equal(access(in_directory("out.ppm"), F_OK), -1);
    assert_int_equal(again, GF_NO_BACKEND);
    gf_engine *engine;
    assert_int_equal(gf_engine_open(&(gf_engine_options){.backend = "cuda"}, &engine, &why),
                     GF_NO_BACKEND);
}

/* CUDA must not start in this process: a process with CUDA cannot fork. Test in a child process. */
static bool has_device(void) {
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        gf_engine *engine;
        _exit(gf_engine_open(&(gf_engine_options){.backend = "cuda"}, &engine, NULL) != GF_OK);
    }
    int ended = 0;
    assert_int_equal(waitpid(child, &ended, 0), child);
    return WIFEXITED(ended) && WEXITSTATUS(ended) == 0;
}

static void (*body)(void);

static void run_body(void **state) {
    body();
}

/* Run in a child process with a time limit. */
static bool run_apart(void (*what)(void)) {
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct CMUnitTest tests[] = {cmocka_unit_test(run_body)};
        body = what;
        alarm(120);
        _exit(cmocka_run_group_tests(tests, NULL, NULL) != 0);
    }
    int ended = 0;
    assert_int_equal(waitpid(child, &ended, 0), child);
    return WIFEXITED(ended) && WEXITSTATUS(ended) == 0;
}

static void try_apart(void (*what)(void)) {
    if (!has_device()) {
        assert_int_equal(test_environment("GF_REQUIRE_CUDA", 0), 0);
        test_skip("no GPU");
    }
    test_random random = {5};
    test_image image = test_image_new(poisoned_format, 0);
    test_fill(&image, TEST_UNIFORM, &random);
    test_put(in_directory("in.ppm"), &image);
    test_image_free(&image);
    assert_true(run_apart(what));
    count_files(true);
}
#else
static void try_apart(void (*what)(void)) {
    test_needs_gpu();
}

static void image_continues(void) {}
static void measured_is_measured_again(void) {}
static void named_device_fails(void) {}
#endif

TEST(recovers_the_image) {
    try_apart(image_continues);
}

TEST(repeats_the_measurement) {
    try_apart(measured_is_measured_again);
}

TEST(named_device_fails_the_run) {
    try_apart(named_device_fails);
}

int main(void) {
    return test_main_in_directory();
}
