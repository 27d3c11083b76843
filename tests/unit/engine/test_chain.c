/* Jobs of several steps: their images and results equal those of the steps run one by one. */
#include <time.h>

#include "job.h"
#include "measuring.h"

enum { MAX_STEPS = 6 };

/* A step, and what it makes if it runs alone. */
typedef struct chain_step {
    const gf_filter *filter; /* NULL: a writer */
    gf_settings *settings;
    bool from_input;
    test_image second;    /* of a filter with two inputs */
    test_image want, got; /* of a writer */
    gf_result *result;    /* of a filter that measures */
    char text[96];
} chain_step;

/* The image after a step. */
typedef struct chain_image {
    test_image image;
    bool linear;  /* f32 of linear light, which a writer of integers stores as sRGB */
    gf_type type; /* that a writer stores */
} chain_image;

static gf_engine *golden;

static test_image copy(const test_image *image) {
    test_image made = test_image_new(image->format, 0);
    for (uint64_t y = 0; y < image->rows.rows; y++)
        memcpy(gf_row(&made.rows, y), gf_row(&image->rows, y), gf_row_bytes(&image->format));
    return made;
}

static gf_depth depth_of(gf_type type) {
    return type == GF_U8 ? GF_DEPTH_8 : type == GF_U16 ? GF_DEPTH_16 : GF_DEPTH_F32;
}

/* Run one step alone with golden. Return false if it does not support the image. */
static bool run_alone(const chain_step *step, const test_image *in, test_image *out,
                      gf_result **result) {
    const gf_filter_info *info = gf_filter_describe(step->filter);
    gf_step_info described[2];
    gf_write_options write = {.depth = GF_DEPTH_INPUT};
    const gf_pixels pixels = {in->rows.data, in->stride},
                    second = {step->second.rows.data, step->second.stride};
    gf_out_pixels made = {NULL, 0};
    gf_step steps[2] = {{.filter = step->filter, .settings = step->settings, .in = &second},
                        {.out = &made, .write = &write}};
    const gf_job job = {.steps = steps,
                        .step_count = info->makes_image ? 2 : 1,
                        .memory = GF_HOST,
                        .in = &pixels,
                        .format = in->format};
    gf_result *results[2] = {NULL};
    gf_outcome outcome = {.results = results};
    if (gf_job_inspect(&job, described, NULL))
        return false;
    gf_settings_free(described[0].effective);
    if (info->makes_image) {
        *out = test_image_new(described[0].out, 0);
        write.depth = depth_of(described[0].out.type);
        made = (gf_out_pixels){out->rows.data, out->stride};
    }
    if (gf_run(golden, &job, &outcome, NULL)) {
        if (info->makes_image)
            test_image_free(out);
        return false;
    }
    if (info->makes_image)
        gf_result_free(results[0]); /* of conversions */
    else
        *result = results[0];
    return true;
}

/* Convert an image. */
static test_image convert(const test_image *in, const char *text) {
    chain_step step = {.filter = gf_filter_find("convert")};
    test_image out;
    AUTO(settings) gf_settings *settings = step.settings = test_settings(step.filter, text);
    assert_true(run_alone(&step, in, &out, NULL));
    return out;
}

/* Return a filter with settings that support an image, and run it. */
static void filter_step(chain_step *step, chain_image *image, test_random *random) {
    for (;;) {
        const gf_filter *filter = gf_filter_at(test_below(random, test_filter_count()));
        const gf_filter_info *info = gf_filter_describe(filter);
        size_t cases = 0;
        test_image out = {.memory = NULL};
        while (info->cases[cases])
            cases++;
        const char *text = info->cases[test_below(random, cases)];
        /* Parameters that enable a drawing need an output. */
        if (strstr(text, "mask") || strstr(text, "diff") || strstr(text, "extract"))
            continue;
        step->filter = filter;
        step->settings = test_settings(filter, text);
        if (info->inputs == 2) {
            step->second = copy(&image->image);
            if (test_below(random, 2))
                test_disturb(&step->second, random);
        }
        if (run_alone(step, &image->image, &out, &step->result)) {
            snprintf(step->text, sizeof step->text, "%s %s", info->name, text);
            if (out.memory) {
                test_image_free(&image->image);
                image->image = out;
            }
            return;
        }
        gf_settings_free(step->settings);
        if (info->inputs == 2)
            test_image_free(&step->second);
        step->second = (test_image){.memory = NULL};
    }
}

/* Change the sample type, or to linear light. */
static void conversion_step(chain_step *step, chain_image *image, test_random *random) {
    static const char *const texts[] = {"depth=8", "depth=16", "depth=f32",
                                        "depth=f32 light=decode"};
    const size_t choice = test_below(random, 4);
    const gf_type type = choice < 2 ? (gf_type)choice : GF_F32;
    const bool linear = choice == 3, same = image->image.format.type == type;
    char text[64];
    step->filter = gf_filter_find("convert");
    step->settings = test_settings(step->filter, texts[choice]);
    snprintf(step->text, sizeof step->text, "%s", texts[choice]);
    if (!same) { /* from f32, `encode` is needed if it is linear light */
        snprintf(text, sizeof text, "%s%s", texts[choice], image->linear ? " light=encode" : "");
        test_image made = convert(&image->image, text);
        test_image_free(&image->image);
        image->image = made;
    }
    image->linear = type == GF_F32 && (image->linear || linear);
    if (!linear)
        image->type = type;
}

static void writer_step(chain_step *step, const chain_image *image) {
    char text[64];
    if (image->type == image->image.format.type) {
        step->want = copy(&image->image);
    } else {
        assert_true(image->linear && image->type != GF_F32);
        snprintf(text, sizeof text, "depth=%d light=encode", image->type == GF_U8 ? 8 : 16);
        step->want = convert(&image->image, text);
    }
    snprintf(step->text, sizeof step->text, "write");
}

/* Compare an image or a result with what the step alone has made. */
static void check_step(const chain_step *step, const gf_result *result, const char *what,
                       uint32_t i) {
    char name[700];
    snprintf(name, sizeof name, "%s: step %u", what, i + 1);
    if (!step->filter &&
        !(test_same(&step->want, &step->got, name) && test_margins_intact(&step->got)))
        fail_msg("%s differs", name);
    if (step->result && !test_same_result(step->result, result, name))
        fail_msg("%s differs", name);
}

/* Run a list of steps on a backend, and compare its images and results. device: in device memory,
 * which does not support --range data. */
static void check(gf_engine *engine, chain_step *list, uint32_t count, const test_image *in,
                  bool device, const char *what) {
    gf_step steps[MAX_STEPS + 1];
    gf_out_pixels out[MAX_STEPS + 1];
    gf_pixels second[MAX_STEPS + 1];
    void *memory[3][MAX_STEPS + 1] = {{NULL}};
    gf_result *results[MAX_STEPS + 1] = {NULL};
    gf_outcome outcome = {.results = results};
    gf_pixels pixels = {in->rows.data, in->stride};
    if (device) {
        const gf_out_pixels there = test_to_device(in, &memory[2][0]);
        pixels = (gf_pixels){there.data, there.stride};
    }
    for (uint32_t i = 0; i < count; i++) {
        chain_step *step = &list[i];
        if (!step->filter)
            step->got = test_image_new(step->want.format, 24);
        out[i] = (gf_out_pixels){step->got.rows.data, step->got.stride};
        second[i] = (gf_pixels){step->second.rows.data, step->second.stride};
        if (device && !step->filter)
            out[i] = test_to_device(&step->got, &memory[0][i]);
        if (device && step->second.memory) {
            const gf_out_pixels there = test_to_device(&step->second, &memory[1][i]);
            second[i] = (gf_pixels){there.data, there.stride};
        }
        steps[i] = (gf_step){.filter = step->filter,
                             .settings = step->settings,
                             .from = step->from_input ? GF_FROM_INPUT : 0,
                             .in = &second[i],
                             .out = step->filter ? NULL : &out[i]};
    }
    const gf_job job = {.steps = steps,
                        .step_count = count,
                        .memory = device ? GF_DEVICE : GF_HOST,
                        .in = &pixels,
                        .format = in->format};
    const gf_status status = gf_run(engine, &job, &outcome, &why);
    const bool unsupported = device && status == GF_USAGE && strstr(why.message, "--range data");
    if (status && !unsupported)
        fail_msg("%s: %s", what, why.message);
    for (uint32_t i = 0; i < count; i++) {
        if (memory[0][i])
            test_from_device(&list[i].got, memory[0][i], !status);
        if (memory[1][i])
            test_from_device(&list[i].second, memory[1][i], false);
        if (!status)
            check_step(&list[i], results[i], what, i);
        gf_result_free(results[i]);
        if (!list[i].filter)
            test_image_free(&list[i].got);
    }
    if (device)
        test_from_device(in, memory[2][0], false);
}

/* Engines of devices, which take long to open. */
static gf_engine *devices[3];

/* Return an engine with random options. *own: the caller closes it. *device: it takes images in
 * device memory. */
static gf_engine *engine_of(const char *backend, test_random *random, bool *own, bool *device) {
    const size_t k = test_below(random, 3);
    gf_engine_options options = {
        .backend = backend, .rows_per_strip = k == 1 ? 7 : 0, .verify = k == 2};
    *own = strcmp(backend, "cuda") != 0;
    *device = !*own && !options.verify;
    if (!*own)
        return devices[k] ? devices[k] : (devices[k] = test_engine(&options));
    options.threads = 1 + (uint32_t)test_below(random, 3);
    options.rows_per_strip = test_below(random, 3) ? test_below(random, 20) : 0;
    options.verify = test_below(random, 4) == 0;
    return test_engine(&options);
}

/* Run a random chain of up to six steps on random images, with all backends. Return the number of
 * steps. */
static uint32_t check_random(uint64_t seed) {
    test_random random = test_seeded(seed);
    chain_step list[MAX_STEPS + 1] = {{.filter = NULL}};
    const uint32_t count = 1 + (uint32_t)test_below(&random, MAX_STEPS);
    gf_format format = test_format(&random);
    format.width = 1 + test_below(&random, 70);
    format.height = 1 + test_below(&random, test_below(&random, 4) ? 40 : 300);
    AUTO(image) test_image in = test_image_new(format, test_below(&random, 40));
    test_fill(&in, (test_content)test_below(&random, TEST_CONTENT_COUNT), &random);
    chain_image image = {copy(&in), false, format.type};
    char what[600];
    uint32_t filters = 0, i = 0;
    bool read = true; /* the image was measured or written */
    for (; i < count; i++) {
        chain_step *step = &list[i];
        const uint64_t kind = test_below(&random, 8);
        if (read && i && test_below(&random, 4) == 0) {
            step->from_input = true;
            test_image_free(&image.image);
            image = (chain_image){copy(&in), false, format.type};
        }
        if (kind == 0)
            writer_step(step, &image);
        else if (kind == 1)
            conversion_step(step, &image, &random);
        else
            filter_step(step, &image, &random);
        filters += step->filter != NULL;
        read = !step->filter || !gf_filter_describe(step->filter)->makes_image;
    }
    if (!read || !filters) {
        if (!filters)
            filter_step(&list[i], &image, &random);
        else
            writer_step(&list[i], &image);
        read = !list[i].filter || !gf_filter_describe(list[i].filter)->makes_image;
        i++;
    }
    int used = snprintf(what, sizeof what, "seed %" PRIu64 ", %" PRIu64 "x%" PRIu64 "x%u %s:", seed,
                        format.width, format.height, format.channels, gf_type_name(format.type));
    for (uint32_t k = 0; k < i; k++)
        used += snprintf(what + used, sizeof what - (size_t)used, " ! %s%s",
                         list[k].from_input ? "input ! " : "", list[k].text);
    for (const char *const *backend = test_backends(); *backend && read; backend++) {
        bool own, device;
        gf_engine *engine = engine_of(*backend, &random, &own, &device);
        check(engine, list, i, &in, false, what);
        if (device)
            check(engine, list, i, &in, true, what);
        if (own)
            gf_engine_close(engine);
    }
    for (uint32_t k = 0; k < i; k++) {
        gf_settings_free(list[k].settings);
        gf_result_free(list[k].result);
        test_image_free(&list[k].second);
        test_image_free(&list[k].want);
    }
    test_image_free(&image.image);
    return i;
}

TEST(chains_equal_their_steps) {
    const uint64_t first = test_environment("GF_TEST_SEED", 1), rounds = test_rounds(600);
    uint64_t steps = 0;
    golden = test_engine(&(gf_engine_options){.backend = "golden"});
    for (uint64_t i = 0; i < rounds; i++)
        steps += check_random(first + i);
    gf_engine_close(golden);
    for (size_t k = 0; k < 3; k++)
        gf_engine_close(devices[k]);
    print_message("%" PRIu64 " chains, %" PRIu64 " steps\n", rounds, steps);
}

/* Erode, after a time that depends on the row: strips, and their parts, end in another order. */
static gf_status erode_late(const gf_plan *plan, const gf_strip *strip, gf_error *error) {
    const long tenths_of_ms = (long)(strip->out.y0 * 7919 % 5);
    nanosleep(&(struct timespec){.tv_nsec = tenths_of_ms * 100000}, NULL);
    return gf_filter_find("erode")->golden(plan, strip, error);
}

/* The rows of a strip that are copied when a ring turns are complete, and strips that a reader or
 * the consumer still needs stay. */
TEST(strips_may_end_in_any_order) {
    gf_filter late = *gf_filter_find("erode");
    late.golden = erode_late;
    late.cpu = (gf_filter_cpu){.run = {NULL}};
    AUTO(image) test_image in = test_image_new((gf_format){16, 200, 1, GF_U8, false}, 0);
    test_random random = test_seeded(1);
    test_fill(&in, TEST_UNIFORM, &random);
    golden = test_engine(&(gf_engine_options){.backend = "golden"});
    chain_step list[4] = {{.filter = gf_filter_find("erode")},
                          {.filter = NULL},
                          {.filter = gf_filter_find("median")},
                          {.filter = NULL}};
    assert_true(run_alone(&list[0], &in, &list[1].want, NULL));
    assert_true(run_alone(&list[2], &list[1].want, &list[3].want, NULL));
    /* Two nodes read the image of the first one, and the second of them is late. */
    chain_step twice[4] = {{.filter = gf_filter_find("median")},
                           {.filter = gf_filter_find("axis-sum")},
                           {.filter = gf_filter_find("erode")},
                           {.filter = NULL}};
    AUTO(image) test_image between = {.memory = NULL};
    assert_true(run_alone(&twice[0], &in, &between, NULL));
    assert_true(run_alone(&twice[2], &between, &twice[3].want, NULL));
    list[0].filter = twice[2].filter = &late;
    chain_step unwritten[3] = {list[0], list[2], list[3]};
    for (uint32_t rows = 1; rows < 16; rows++) {
        gf_engine *engine = test_engine(
            &(gf_engine_options){.backend = "cpu", .threads = 4, .rows_per_strip = rows});
        check(engine, list, 4, &in, false, "late strips");
        check(engine, unwritten, 3, &in, false, "late strips, not written");
        check(engine, twice, 4, &in, false, "late strips of a second reader");
        gf_engine_close(engine);
    }
    test_image_free(&list[1].want);
    test_image_free(&list[3].want);
    test_image_free(&twice[3].want);
    gf_engine_close(golden);
}

int main(void) {
    return test_main(&(test_fixture){.name = "chain"});
}
