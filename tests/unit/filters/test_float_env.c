/* Results do not depend on the floating-point environment of the caller. The library restores that
 * environment, including the exception flags. The environments are those that a host program may
 * set: a rounding mode, flush-to-zero (set by -ffast-math at program start), or traps. */
#define _GNU_SOURCE /* feenableexcept */

#include "io_util.h"
#include "testing.h"

#include <fenv.h>

typedef struct host {
    const char *name;
    int rounding;
    bool flush; /* subnormal results and operands become zero */
    bool traps; /* exceptions other than inexact end the program */
} host;

static const host hosts[] = {
    {"default", FE_TONEAREST, false, false},      {"upward", FE_UPWARD, false, false},
    {"downward", FE_DOWNWARD, false, false},      {"toward zero", FE_TOWARDZERO, false, false},
    {"flush to zero", FE_TONEAREST, true, false}, {"upward, flush to zero", FE_UPWARD, true, false},
    {"traps", FE_TONEAREST, false, true},         {"no flag raised", FE_TONEAREST, false, false},
};
enum { HOSTS = sizeof hosts / sizeof *hosts };

/* Flush-to-zero and denormals-are-zero bits of the control register, on x86-64 only. */
#ifdef __x86_64__
#define FLUSH_BITS 0x8040u
static unsigned control(void) {
    return __builtin_ia32_stmxcsr();
}
static void set_control(unsigned bits) {
    __builtin_ia32_ldmxcsr(bits);
}
#else
#define FLUSH_BITS 0u
static unsigned control(void) {
    return 0;
}
static void set_control(unsigned bits) {}
#endif

static unsigned entered;
static int rounding, raised, trapped;

static void enter(const host *h) {
    fesetenv(FE_DFL_ENV);
    fesetround(h->rounding);
    set_control(control() | (h->flush ? FLUSH_BITS : 0));
    feraiseexcept(FE_INEXACT); /* a flag of the caller: neither cleared nor combined with others */
    if (h->traps)
        feenableexcept(FE_ALL_EXCEPT & ~FE_INEXACT);
    entered = control();
    rounding = fegetround();
    raised = fetestexcept(FE_ALL_EXCEPT);
    trapped = fegetexcept();
}

/* Check that a call restored the environment. */
static void leave(const host *h, const char *what) {
    const unsigned left = control();
    const int rounds = fegetround(), flags = fetestexcept(FE_ALL_EXCEPT), traps = fegetexcept();
    fesetenv(FE_DFL_ENV);
    if (left != entered || rounds != rounding || flags != raised || traps != trapped)
        fail_msg("%s, %s: control 0x%x rounding %d flags %d traps %d, expected 0x%x %d %d %d",
                 h->name, what, left, rounds, flags, traps, entered, rounding, raised, trapped);
}

static gf_engine *open_engine(const char *backend, uint32_t threads) {
    const gf_engine_options options = {.backend = backend, .threads = threads, .rows_per_strip = 5};
    return test_engine(&options);
}

/* ---- images in memory ------------------------------------------------------------------------ */

typedef struct job {
    const gf_filter *filter;
    gf_settings *settings;
    test_image in[2], want, got; /* want and got: no memory if the filter makes no image */
    gf_result *result;           /* in the default environment */
    char what[256];
} job;

static const gf_pixels *pixels_of(const job *j, gf_pixels pixels[2]) {
    for (int i = 0; i < 2; i++)
        pixels[i] = (gf_pixels){j->in[i].rows.data, j->in[i].stride};
    return pixels;
}

static bool make_job(const gf_filter *filter, const char *text, gf_type type, uint32_t channels,
                     test_content content, job *j) {
    const gf_format format = {61, 23, channels, type, channels % 2 == 0};
    test_random random = {7};
    gf_format drawn;
    *j = (job){.filter = filter, .settings = test_settings(filter, text)};
    if (test_filter_output(filter, j->settings, &format, &drawn)) {
        gf_settings_free(j->settings);
        return false;
    }
    for (int i = 0; i < 2; i++) {
        j->in[i] = test_image_new(format, 0);
        test_fill(&j->in[i], content, &random);
    }
    if (drawn.width) {
        j->want = test_image_new(drawn, 0);
        j->got = test_image_new(drawn, 0);
    }
    snprintf(j->what, sizeof j->what, "%s '%s' on %s", filter->info.name, text, gf_type_name(type));
    return true;
}

static void run_memory(job *j, gf_engine *engine, const host *h, test_image *out,
                       gf_result **result) {
    gf_pixels pixels[2];
    pixels_of(j, pixels);
    enter(h);
    const gf_status status =
        test_run_memory(&(test_memory){engine, j->filter, j->settings, &j->in[0].format, pixels,
                                       out->rows.data, out->stride, .result = result});
    leave(h, j->what);
    if (status)
        fail_msg("%s: %s", j->what, why.message);
}

/* Reading a cell computes its value: read some cells in the host's environment. */
static void compare_results(const host *h, job *j, gf_result *got) {
    if (!test_same_result(j->result, got, j->what))
        fail_msg("%s, %s: the result differs", h->name, j->what);
    for (size_t t = 0; got && t < gf_result_table_count(got); t++) {
        const gf_table *table = gf_result_table(got, t);
        for (uint64_t cell = 0; cell < table->column_count * table->row_count && cell < 40;
             cell++) {
            const uint64_t row = cell / table->column_count, column = cell % table->column_count;
            const gf_value want = gf_result_cell(j->result, t, row, column);
            enter(h);
            const gf_value value = gf_result_cell(got, t, row, column);
            leave(h, "gf_result_cell");
            if (memcmp(&value.real, &want.real, sizeof want.real) != 0)
                fail_msg("%s, %s: %s differs", h->name, j->what, table->columns[column].name);
        }
    }
    gf_result_free(got);
}

static void free_job(job *j) {
    test_image_free(&j->in[0]);
    test_image_free(&j->in[1]);
    test_image_free(&j->want);
    test_image_free(&j->got);
    gf_result_free(j->result);
    gf_settings_free(j->settings);
}

/* Run every engine under the hosts first, first + step, ... */
static void check_memory(job *j, gf_engine *const *engines, size_t count, size_t first,
                         size_t step) {
    run_memory(j, engines[0], &hosts[0], &j->want, &j->result);
    for (size_t e = 0; e < count; e++)
        for (size_t i = first; i < HOSTS; i += step) {
            gf_result *got = NULL;
            run_memory(j, engines[e], &hosts[i], &j->got, &got);
            if (j->want.memory && !test_same(&j->want, &j->got, j->what))
                fail_msg("%s, engine %zu: the image differs", hosts[i].name, e);
            compare_results(&hosts[i], j, got);
        }
}

/* Run a batch with the same image twice. */
static void check_memory_batch(job *j, gf_engine *engine, const host *h) {
    gf_pixels pixels[4];
    gf_result *results[2] = {NULL, NULL};
    test_image second = {0};
    if (j->want.memory)
        second = test_image_new(j->want.format, 0);
    pixels_of(j, pixels);
    if (j->filter->info.inputs == 1)
        pixels[1] = pixels[0];
    pixels_of(j, pixels + 2);
    const gf_out_pixels out[2] = {{j->got.rows.data, j->got.stride},
                                  {second.rows.data, second.stride}};
    enter(h);
    const gf_status status =
        test_run_list(&(test_list){engine, j->filter, j->settings, &j->in[0].format, 2, pixels,
                                   j->want.memory ? out : NULL, .result = results});
    leave(h, j->what);
    if (status)
        fail_msg("%s: %s", j->what, why.message);
    if (j->want.memory &&
        (!test_same(&j->want, &j->got, j->what) || !test_same(&j->want, &second, j->what)))
        fail_msg("%s, batch: the image differs", h->name);
    for (int i = 0; i < 2; i++)
        compare_results(h, j, results[i]);
    test_image_free(&second);
}

/* Every case of every filter and type; the first cases under each host. Half of the f32 images
 * contain subnormals, infinities and NaN. Pool threads start on first use, under any host. */
TEST(images_in_memory) {
    enter(&hosts[5]);
    gf_engine *const engines[] = {open_engine("golden", 1), open_engine("cpu", 1),
                                  open_engine("cpu", 3)};
    leave(&hosts[5], "gf_engine_open");
    const uint64_t step = test_stride(3, 1);
    for (size_t f = 0; gf_filter_at(f); f++)
        for (size_t c = 0; gf_filter_at(f)->info.cases[c]; c++)
            for (int type = (int)(c % step); type <= GF_F32; type += (int)step) {
                const size_t one = 1 + c % (HOSTS - 1);
                job j;
                if (!make_job(gf_filter_at(f), gf_filter_at(f)->info.cases[c], (gf_type)type,
                              type == GF_U16 ? 1 : 3, c % 2 ? TEST_UNIFORM : TEST_EXTREMES, &j))
                    continue;
                check_memory(&j, engines, 3, c < 3 ? 1 : one, c < 3 ? 1 : HOSTS);
                check_memory_batch(&j, engines[2], &hosts[one]);
                free_job(&j);
            }
    for (int i = 0; i < 3; i++)
        gf_engine_close(engines[i]);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Write rows, samples as text, and a batch of files. Return the joined bytes of all outputs. */
static unsigned char *run_files(const host *h, const char *backend, size_t *size) {
    static const char *const outs[] = {"out.pfm", "samples.csv", "batch0.pfm", "batch1.png"};
    const gf_filter *smooth = gf_filter_find("smooth"), *hist = gf_filter_find("hist");
    const gf_file_options options = {.force = true};
    unsigned char *all = NULL;
    const char *in = in_directory("in.pfm");
    const test_item items[2] = {{.in = in, .out = in_directory(outs[2])},
                                {.in = in_directory("in.png"), .out = in_directory(outs[3])}};
    const test_batch_options batch = {.engine = {.backend = backend, .threads = 2},
                                      .files = options};
    gf_engine *engine = open_engine(backend, 2);
    gf_settings *settings = test_settings(smooth, "radius=3 axis=xy"),
                *counting = test_settings(hist, "bins=7 extract=2 range=-0.3,1.7");
    assert_ok(gf_settings_set(counting, "out", in_directory(outs[1]), NULL));
    enter(h);
    gf_status status = test_run_files(
        &(test_files){engine, smooth, settings, &in, in_directory(outs[0]), &options});
    if (!status)
        status = test_run_files(&(test_files){engine, hist, counting, &in, NULL, &options});
    if (!status)
        status = test_run_batch(smooth, settings, items, 2, &batch);
    leave(h, "files");
    if (status)
        fail_msg("%s", why.message);
    gf_engine_close(engine);
    gf_settings_free(settings);
    gf_settings_free(counting);
    *size = 0;
    for (int i = 0; i < 4; i++) {
        size_t more;
        AUTO(free) unsigned char *data = test_bytes(in_directory(outs[i]), &more);
        all = realloc(all, *size + more);
        assert_non_null(all);
        memcpy(all + *size, data, more);
        *size += more;
    }
    return all;
}

TEST(images_in_files) {
    static const char *const backends[] = {"golden", "cpu"};
    test_random random = {11};
    test_image floats = test_image_new((gf_format){200, 90, 1, GF_F32, false}, 0),
               bytes = test_image_new((gf_format){300, 200, 3, GF_U8, false}, 0);
    size_t size, other;
    test_fill(&floats, TEST_EXTREMES, &random);
    test_fill(&bytes, TEST_SMOOTH, &random);
    test_put(in_directory("in.pfm"), &floats);
    test_put(in_directory("in.png"), &bytes);
    AUTO(free) unsigned char *want = run_files(&hosts[0], "golden", &size);
    for (size_t i = 1; i < HOSTS; i++)
        for (int b = 0; b < 2; b++) {
            AUTO(free) unsigned char *got = run_files(&hosts[i], backends[b], &other);
            if (size != other || memcmp(want, got, size) != 0)
                fail_msg("%s, %s: the file differs", hosts[i].name, backends[b]);
        }
    test_image_free(&floats);
    test_image_free(&bytes);
}

/* A format whose decoder uses floating point: samples are mantissas with a shared exponent. */
TEST(loaded_images) {
    static const char head[] = "#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 7\n";
    const gf_file_options options = {.no_sandbox = getenv("GF_TEST_NO_SANDBOX")};
    unsigned char file[sizeof head - 1 + 28];
    void *want = NULL, *got;
    gf_format format;
    memcpy(file, head, sizeof head - 1);
    for (size_t i = 0; i < 28; i++)
        file[sizeof head - 1 + i] = (unsigned char)(i % 4 < 3 ? 37 * i + 1 : 1 + 40 * (i / 4));
    put_bytes(in_directory("in.hdr"), file, sizeof file);
    for (size_t i = 0; i < HOSTS; i++) {
        const char *path = in_directory("in.hdr");
        enter(&hosts[i]);
        const gf_status status = gf_load_file(path, &options, &format, &got, NULL, NULL);
        leave(&hosts[i], "gf_load_file");
        assert_int_equal(status, GF_OK);
        if (i == 0)
            want = got;
        else {
            assert_memory_equal(got, want, 7 * 3 * sizeof(float));
            free(got);
        }
    }
    free(want);
}

/* ---- numbers as text ------------------------------------------------------------------------- */

TEST(numbers_as_text) {
    static const struct {
        gf_value value;
        const char *text;
    } numbers[] = {{{.type = GF_VALUE_DOUBLE, .real = 0.1}, "0.1"},
                   {{.type = GF_VALUE_DOUBLE, .real = 5e-324}, "5e-324"},
                   {{.type = GF_VALUE_DOUBLE, .real = 1.0 / 3}, "0.3333333333333333"},
                   {{.type = GF_VALUE_FLOAT, .real = (double)0x1.111112p-4f}, "0.06666667"},
                   {{.type = GF_VALUE_FLOAT, .real = 0x1p-149}, "1e-45"}};
    const gf_filter *smooth = gf_filter_find("smooth"), *hist = gf_filter_find("hist");
    for (size_t i = 0; i < HOSTS; i++) {
        char text[sizeof numbers / sizeof *numbers][40];
        double lo, hi;
        enter(&hosts[i]);
        AUTO(settings)
        gf_settings *settings = gf_settings_new(smooth->info.params, smooth->info.param_count);
        AUTO(settings)
        gf_settings *counting = gf_settings_new(hist->info.params, hist->info.param_count);
        for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
            gf_value_format(&numbers[n].value, text[n], sizeof text[n]);
        const gf_status status = gf_settings_set(settings, "gain", "1.1", NULL),
                        ranged = gf_settings_set(counting, "range", "-1e-320,0.1", NULL);
        leave(&hosts[i], "numbers");
        assert_int_equal(status, GF_OK);
        assert_int_equal(ranged, GF_OK);
        for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
            assert_string_equal(text[n], numbers[n].text);
        const float gain = gf_settings_float(settings, "gain"), should = 1.1f;
        assert_memory_equal(&gain, &should, sizeof gain);
        assert_true(gf_settings_range(counting, "range", &lo, &hi));
        assert_true(lo == -1e-320 && hi == 0.1);
    }
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static bool count_default(void *count, const gf_batch_done *done) {
    *(int *)count += fegetround() == FE_TONEAREST && (control() & FLUSH_BITS) == 0 && !done->status;
    return true;
}

/* A batch calls its callbacks in the default environment, on every thread. */
TEST(callbacks_of_a_batch) {
    const gf_filter *smooth = gf_filter_find("smooth");
    AUTO(image) test_image image = test_image_new((gf_format){40, 30, 1, GF_U8, false}, 0);
    test_random random = {5};
    const char *in = in_directory("small.pgm");
    test_item items[6];
    test_fill(&image, TEST_UNIFORM, &random);
    test_put(in, &image);
    for (int i = 0; i < 6; i++)
        items[i] = (test_item){.in = in, .out = test_path("small%d.pgm", i)};
    for (size_t i = 0; i < HOSTS; i++) {
        int count = 0;
        const test_batch_options options = {.engine = {.threads = 2},
                                            .files = {.force = true},
                                            .done = count_default,
                                            .context = &count};
        AUTO(settings) gf_settings *settings = test_settings(smooth, "");
        enter(&hosts[i]);
        const gf_status status = test_run_batch(smooth, settings, items, 6, &options);
        leave(&hosts[i], "gf_run_batch");
        assert_int_equal(status, GF_OK);
        assert_int_equal(count, 6);
    }
}

/* ---- other calls ----------------------------------------------------------------------------- */

/* Plans, settings, sizes and file headers: these calls also restore the environment. */
TEST(other_calls) {
    static const char head[] = "Pf\n1 1\n-0.3\n";
    const gf_filter *smooth = gf_filter_find("smooth");
    const gf_format format = {64, 40, 3, GF_U8, false};
    unsigned char file[sizeof head + 3] = {0};
    memcpy(file, head, sizeof head - 1);
    put_bytes(in_directory("one.pfm"), file, sizeof file);
    for (size_t i = 0; i < HOSTS; i++) {
        const char *path = in_directory("one.pfm");
        AUTO(settings) gf_settings *settings = test_settings(smooth, "weight=0.7 keep-brightness");
        AUTO(settings) gf_settings *effective;
        gf_file_info info;
        gf_format drawn;
        uint64_t bytes;

#define QUIET(call)                                                                                \
    do {                                                                                           \
        enter(&hosts[i]);                                                                          \
        const gf_status status = (call);                                                           \
        leave(&hosts[i], #call);                                                                   \
        assert_int_equal(status, GF_OK);                                                           \
    } while (0)
        QUIET(test_filter_output(smooth, settings, &format, &drawn));
        QUIET(test_effective(smooth, settings, &format, &effective));
        QUIET(test_result_bytes(smooth, settings, &format, &bytes));
        QUIET(gf_inspect_file(path, NULL, &info, NULL));
#undef QUIET
    }
}

int main(void) {
    return test_main_in_directory();
}
