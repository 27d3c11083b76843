/* gf_run_device without a device: golden replaces the kernels, on host memory. Checks what device.c
 * does: arguments, images per launch, results, and the jobs that an engine keeps. */
#include "device_images.h"
#include "fake_device.h"

/* Store the number of threads instead of a file. */
static gf_status fake_encode_png(void *state, const gf_device_encoding *call, gf_error *error) {
    for (uint64_t i = 0; i < call->count; i++) {
        assert_true(call->in[i].stride >= gf_row_bytes(call->format));
        call->out[i].size = call->threads;
    }
    return GF_OK;
}

/* Fail for files of one byte. */
static gf_status fake_decode_png(void *state, const gf_device_decoding *call, gf_error *error) {
    for (uint64_t i = 0; i < call->count; i++) {
        assert_true(call->out[i].stride >= gf_row_bytes(&call->formats[i]));
        assert_int_equal(call->errors[i].status, GF_OK);
        if (call->files[i].size == 1)
            (void)gf_set_error(&call->errors[i], GF_FAILED, "file %d", (int)i);
    }
    return GF_OK;
}

static const gf_png_functions fake_png = {fake_encode_png, fake_decode_png};
static const gf_backend fake_backend = {
    .name = "cuda", .open = fake_open, .close = fake_close, .jobs = &fake_jobs, .png = &fake_png};

static gf_engine *fake_engine(void) {
    return test_engine(&(gf_engine_options){.backend = "cuda"});
}

static int start(void **state) {
    gf_engine_stand_in(&fake_backend);
    open_jobs = opened_jobs = launches = 0;
    return 0;
}

static int stop(void **state) {
    gf_engine_stand_in(NULL);
    return open_jobs;
}

/* ---- tests ----------------------------------------------------------------------------------- */

enum { COUNT = 5, WIDTH = 9, HEIGHT = 7, BYTES = WIDTH * HEIGHT };
static const gf_format format = {WIDTH, HEIGHT, 1, GF_U8, false};

static void copy(void *to, const void *from, size_t size, void *stream) {
    memcpy(to, from, size);
}

static const image_memory default_memory = {test_alloc, free, copy};

/* Run images `gap` bytes apart, and check results and the number of launches. */
static void check_batch(const char *name, const char *text, size_t gap, int expected) {
    AUTO(images)
    image_set set = new_images((image_case){name, text, format, COUNT, .gap = gap});
    launches = 0;
    images_check(&set, 0, COUNT);
    assert_int_equal(launches, expected);
}

TEST(batches_take_few_launches) {
    check_batch("smooth", "", 0, 1);
    check_batch("smooth", "", 3, 1);
    check_batch("smooth", "axis=xy", 0, 1);
    check_batch("axis-sum", "", 0, 1);
    check_batch("axis-sum", "", 3, 1);
    check_batch("axis-sum", "axis=y", 0, COUNT);
    check_batch("dot", "", 0, 1);
    check_batch("dot", "", 16, 1);
    check_batch("resize", "exact=5x3", 0, 2); /* two stages */
    check_batch("resize", "exact=20x3", 3, 2);
    check_batch("resize", "exact=5x7", 3, 1); /* the stage along y would copy */
    check_batch("resize", "exact=9x30", 0, 1);
    check_batch("resize", "scale=1", 0, 1);
    fake_joins = true;
    check_batch("resize", "exact=5x3", 0, 1);  /* one node computes both stages */
    check_batch("resize", "exact=20x3", 3, 2); /* along y first */
    check_batch("resize", "exact=5x7", 3, 1);
    fake_joins = false;
    check_batch("hist", "bins=4 per-row", 5, 1);
    check_batch("hist", "bins=4 extract=1,3", 0, COUNT);
}

/* A step along x and one along y could be one node, unless the image between them is written. */
TEST(written_images_are_not_joined) {
    static unsigned char memory[BYTES], middle[2][7 * 5], to[2][9 * 5];
    AUTO(engine) gf_engine *engine = fake_engine();
    for (int i = 0; i < BYTES; i++)
        memory[i] = (unsigned char)(i * i);
    for (int writes = 0; writes < 2; writes++)
        for (int join = 0; join < 2; join++) {
            gf_pipeline *pipeline;
            gf_device_job *prepared;
            gf_job job = {.memory = GF_DEVICE, .format = format};
            const gf_out_pixels outs[] = {{middle[join], 5}, {to[join], 5}}, *out[2];
            const gf_device_images images = {1, &(gf_pixels){memory, WIDTH}, NULL, out};
            out[0] = &outs[!writes];
            out[1] = &outs[1];
            assert_ok(
                gf_pipeline_parse(writes ? "resize exact=5x7 ! write a ! resize exact=5x9 ! write b"
                                         : "resize exact=5x7 ! resize exact=5x9 ! write b",
                                  NULL, NULL, &pipeline, &why));
            job.steps = gf_pipeline_steps(pipeline, &job.step_count);
            fake_joins = join;
            launches = 0;
            assert_ok(gf_device_job_new(engine, &job, &prepared, &why));
            assert_ok(gf_device_job_run(prepared, &images, NULL, NULL, &why));
            assert_int_equal(launches, writes || !join ? 2 : 1);
            gf_device_job_free(prepared);
            gf_pipeline_free(pipeline);
            assert_memory_equal(to[join], to[0], sizeof to[0]);
            assert_memory_equal(middle[join], middle[0], sizeof middle[0]);
        }
    fake_joins = false;
}

TEST(waits_for_a_stream) {
    AUTO(engine)
    gf_engine *engine = fake_engine(), *cpu = test_engine(&(gf_engine_options){.backend = "cpu"});
    int waits = 0;
    assert_ok(gf_device_wait(engine, &waits, NULL));
    assert_int_equal(waits, 1);
    assert_int_equal(gf_device_wait(cpu, &waits, NULL), GF_USAGE);
    assert_int_equal(waits, 1);
}

static void run_row(gf_engine *engine, const gf_settings *settings, uint64_t width) {
    unsigned char in[12], out[12];
    memset(in, 7, sizeof in);
    assert_ok(test_run_device(&(test_memory){engine, gf_filter_find("smooth"), settings,
                                             &(gf_format){width, 1, 1, GF_U8, false},
                                             &(gf_pixels){in, width}, out, width}));
}

TEST(engines_keep_sixteen_jobs) {
    const gf_filter *filter = gf_filter_find("smooth");
    AUTO(settings)
    gf_settings *settings = test_settings(filter, ""), *other = test_settings(filter, "radius=1");
    gf_engine *engine = fake_engine();
    for (int round = 0; round < 3; round++)
        for (uint64_t width = 1; width <= 8; width++) {
            run_row(engine, settings, width);
            run_row(engine, other, width);
        }
    assert_int_equal(opened_jobs, 16); /* each later call finds its job */
    for (uint64_t width = 9; width <= 12; width++)
        run_row(engine, settings, width);
    assert_int_equal(open_jobs, 16);
    assert_int_equal(opened_jobs, 20);
    /* The jobs of widths 1 and 2 were the oldest ones; width 3 is kept. */
    run_row(engine, settings, 3);
    run_row(engine, settings, 2);
    assert_int_equal(opened_jobs, 21);
    gf_engine_close(engine);
    assert_int_equal(open_jobs, 0);
}

static void rejects(gf_engine *engine, gf_pixels in, gf_out_pixels out, const char *message) {
    const gf_filter *filter = gf_filter_find("smooth");
    AUTO(settings) gf_settings *settings = test_settings(filter, "");
    assert_int_equal(test_run_device(&(test_memory){engine, filter, settings, &format, &in,
                                                    out.data, out.stride}),
                     message ? GF_USAGE : GF_OK);
    if (message && !strstr(why.message, message))
        fail_msg("expected \"%s\", got \"%s\"", message, why.message);
}

/* The range of the data needs a first pass. The statistics in its message give the same range. */
TEST(rejects_first_passes) {
    static const unsigned char memory[BYTES] = {7, 200};
    const gf_filter *filter = gf_filter_find("hist");
    const gf_pixels in = {memory, WIDTH};
    AUTO(settings) gf_settings *data = test_settings(filter, "range=data");
    AUTO(settings) gf_settings *settings = test_settings(filter, "statistics");
    AUTO(engine) gf_engine *engine = fake_engine();
    AUTO(result) gf_result *result = NULL;
    assert_error(test_run_device(&(test_memory){engine, filter, data, &format, &in}), GF_USAGE,
                 "--statistics, and give them as --range LO,HI");
    assert_ok(
        test_run_device(&(test_memory){engine, filter, settings, &format, &in, .result = &result}));
    assert_non_null(strstr(gf_result_text(result), "min 0"));
    assert_non_null(strstr(gf_result_text(result), "max 200"));
}

/* Rows of different lengths: a mask has an alpha channel. */
static void checks_rows_of_both_lengths(gf_engine *engine) {
    static unsigned char memory[2 * 3 * BYTES];
    const gf_filter *filter = gf_filter_find("hist");
    const size_t stride = 3 * WIDTH;
    AUTO(settings) gf_settings *settings = test_settings(filter, "bins=8 extract=1 mask=-");
    for (size_t x = 0; x <= stride; x++) {
        unsigned char *at = memory + x;
        assert_int_equal(test_run_device(&(test_memory){engine, filter, settings, &format,
                                                        &(gf_pixels){memory, stride}, at, stride}),
                         x == WIDTH ? GF_OK : GF_USAGE);
        assert_int_equal(test_run_device(&(test_memory){engine, filter, settings, &format,
                                                        &(gf_pixels){at, stride}, memory, stride}),
                         x == 2 * WIDTH ? GF_OK : GF_USAGE);
    }
}

TEST(rejects_wrong_images) {
    static unsigned char memory[4 * BYTES], to[BYTES];
    AUTO(engine) gf_engine *engine = fake_engine();
    const gf_out_pixels out = {to, WIDTH};
    rejects(engine, (gf_pixels){NULL, WIDTH}, out, "the input is NULL");
    rejects(engine, (gf_pixels){memory, WIDTH}, (gf_out_pixels){NULL, WIDTH}, "the output is NULL");
    rejects(engine, (gf_pixels){memory, WIDTH - 1}, out, "smaller than a row");
    rejects(engine, (gf_pixels){memory, SIZE_MAX / 2}, out, "too large");
    /* Images side by side: the output begins `apart` bytes after the input. */
    for (int apart = 0; apart <= 2 * WIDTH; apart++) {
        const char *message = apart == WIDTH ? NULL : "overlaps";
        rejects(engine, (gf_pixels){memory, 2 * WIDTH}, (gf_out_pixels){memory + apart, 2 * WIDTH},
                message);
        rejects(engine, (gf_pixels){memory + apart, 2 * WIDTH}, (gf_out_pixels){memory, 2 * WIDTH},
                message);
    }
    rejects(engine, (gf_pixels){memory, WIDTH}, (gf_out_pixels){memory + BYTES, WIDTH}, NULL);
    rejects(engine, (gf_pixels){memory, WIDTH}, (gf_out_pixels){memory + BYTES - 1, WIDTH},
            "overlaps");
    rejects(engine, (gf_pixels){memory + BYTES, WIDTH}, (gf_out_pixels){memory, 2 * WIDTH},
            "overlaps");
    checks_rows_of_both_lengths(engine);
}

TEST(encodes_png) {
    AUTO(engine)
    gf_engine *engine = test_engine(&(gf_engine_options){.backend = "cuda", .threads = 3});
    const gf_format stored = {300, 200, 3, GF_U16, false}, real = {300, 200, 3, GF_F32, false};
    unsigned char memory[16];
    gf_pixels in[2] = {{memory, 1800}, {memory, 1801}};
    gf_buffer out[2] = {{NULL, 0}, {memory, sizeof memory}};
    assert_ok(gf_encode_png_device(engine, &stored, 2, in, out, NULL, &why));
    assert_true(out[0].size == 3 && out[1].size == 3);
    assert_ok(gf_encode_png_device(engine, &stored, 0, NULL, NULL, NULL, &why));
    assert_int_equal(gf_encode_png_device(engine, &real, 2, in, out, NULL, &why), GF_USAGE);
    assert_string_equal(why.message,
                        "encode_png: PNG cannot store f32 samples; convert them to "
                        "u8 or u16");
    assert_int_equal(gf_encode_png_device(engine, &stored, 2, NULL, out, NULL, &why), GF_USAGE);
    assert_int_equal(gf_encode_png_device(engine, &stored, 2, in, NULL, NULL, &why), GF_USAGE);
    in[1].stride = 1799;
    assert_int_equal(gf_encode_png_device(engine, &stored, 2, in, out, NULL, &why), GF_USAGE);
    in[1] = (gf_pixels){NULL, 1800};
    assert_int_equal(gf_encode_png_device(engine, &stored, 2, in, out, NULL, &why), GF_USAGE);
    assert_true(gf_png_bound(&stored) > 300 * 200 * 6);
    assert_int_equal(gf_png_bound(&real), 0);
}

TEST(decodes_png) {
    AUTO(engine) gf_engine *engine = test_engine(&(gf_engine_options){.backend = "cuda"});
    const gf_format list[] = {
        {30, 20, 3, GF_U16, false}, {7, 5, 1, GF_U8, false}, {7, 5, 1, GF_U8, false}};
    unsigned char memory[16];
    const gf_buffer files[] = {{memory, 2}, {memory, 1}, {memory, 1}};
    gf_out_pixels out[] = {{memory, 180}, {memory, 7}, {memory, 9}};
    gf_error errors[3];
    assert_ok(gf_decode_png_device(engine, 3, files, list, out, NULL, errors, &why));
    assert_true(errors[0].status == GF_OK && errors[1].status == GF_FAILED);
    assert_int_equal(gf_decode_png_device(engine, 3, files, list, out, NULL, NULL, &why),
                     GF_FAILED);
    assert_string_equal(why.message, "file 1");
    assert_ok(gf_decode_png_device(engine, 1, files, list, out, NULL, NULL, NULL));
    assert_ok(gf_decode_png_device(engine, 0, NULL, NULL, NULL, NULL, NULL, &why));
    assert_int_equal(gf_decode_png_device(engine, 1, NULL, list, out, NULL, NULL, &why), GF_USAGE);
    assert_int_equal(gf_decode_png_device(engine, 1, files, NULL, out, NULL, NULL, &why), GF_USAGE);
    assert_int_equal(gf_decode_png_device(engine, 1, files, list, NULL, NULL, NULL, &why),
                     GF_USAGE);
    out[0].stride = 179;
    assert_int_equal(gf_decode_png_device(engine, 1, files, list, out, NULL, NULL, &why), GF_USAGE);
}

int main(void) {
    return test_main(&(test_fixture){.before = start, .after = stop});
}
