/* Batches of PNG files on a device, with and without CPU threads that run items of the same list. A
 * device in host memory decodes, filters and encodes. Every file and every report must be that of a
 * single run. */
#include "batch_util.h"
#include "fake_device.h"

#include "io/png/png.h"
#include "io/strip/row_filter.h"

#include <zlib.h>

/* ---- the device ------------------------------------------------------------------------------ */

#define ENGINES 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { void *state, *memory; } workspaces[ENGINES];
static atomic_int decoded, encoded, groups;
static atomic_int works; /* groups until the device fails; negative: never */
static bool rejects;     /* the device decodes no file */

/* Groups and images that are decoded, and the most so far. The first groups wait for others. */
static struct { int groups, images, most_groups, most_images, wait_for; } decoding;

static void free_workspaces(void) {
    for (int i = 0; i < ENGINES; i++)
        free(workspaces[i].memory);
    memset(workspaces, 0, sizeof workspaces);
}

static gf_status png_workspace(void *state, size_t size, void **memory, void **stream,
                               gf_error *error) {
    static int unused;
    int i = 0;
    pthread_mutex_lock(&lock);
    while (workspaces[i].state && workspaces[i].state != state)
        i++;
    workspaces[i].state = state;
    free(workspaces[i].memory);
    *memory = workspaces[i].memory = calloc(1, size);
    pthread_mutex_unlock(&lock);
    *stream = &unused;
    assert_non_null(*memory);
    return GF_OK;
}

/* Decode the parts of a file with zlib, and undo the filters with the scalar reference. */
static bool png_decode_one(const gf_device_file *file, const gf_out_pixels *out) {
    const gf_png_scan *scan = &file->scan;
    const gf_format *format = &scan->format;
    const size_t row = gf_row_bytes(format), bpp = format->channels * gf_type_bytes(format->type);
    const uint32_t parts = gf_png_scan_parts(scan);
    AUTO(free)
    unsigned char *filtered = test_alloc((row + 1) * format->height), *above = test_zeros(row);
    z_stream stream = {.next_out = filtered, .avail_out = (uInt)((row + 1) * format->height)};
    int result = inflateInit(&stream);
    for (uint32_t k = 0; k < parts && (result == Z_OK || result == Z_BUF_ERROR); k++) {
        stream.next_in = (unsigned char *)file->data + file->places[k];
        stream.avail_in = (uInt)file->places[parts + k];
        result = inflate(&stream, Z_SYNC_FLUSH);
    }
    bool valid = !rejects && result == Z_STREAM_END && stream.avail_out == 0;
    inflateEnd(&stream);
    for (uint64_t y = 0; y < format->height && valid; y++) {
        const unsigned char *from = filtered + y * (row + 1);
        unsigned char *to = (unsigned char *)out->data + y * out->stride;
        valid = *from < GF_PNG_FILTERS;
        gf_png_unfilter_golden(to, from + 1, above, 0, row, (uint32_t)bpp, *from);
        memcpy(above, to, row);
    }
    for (uint64_t y = 0; y < format->height && valid && format->type == GF_U16; y++) {
        unsigned char *to = (unsigned char *)out->data + y * out->stride;
        gf_png_simd_of(GF_ISA_PORTABLE)->swap16(to, to, row / 2);
    }
    return valid;
}

/* Count groups and images that are decoded. Return the most groups so far. */
static int count_decoding(int more_groups, int more_images) {
    pthread_mutex_lock(&lock);
    decoding.groups += more_groups;
    decoding.images += more_images;
    if (decoding.groups > decoding.most_groups)
        decoding.most_groups = decoding.groups;
    if (decoding.images > decoding.most_images)
        decoding.most_images = decoding.images;
    const int most = decoding.most_groups;
    pthread_mutex_unlock(&lock);
    return most;
}

/* Wait until enough groups are decoded at once, and then for one too many. */
static void wait_for_groups(void) {
    enum { MAX_MS = 10000, LATER_MS = 300 };
    const struct timespec one_ms = {.tv_nsec = 1000000};
    for (int ms = 0; count_decoding(0, 0) < decoding.wait_for && ms < MAX_MS; ms++)
        nanosleep(&one_ms, NULL);
    for (int ms = 0; count_decoding(0, 0) <= decoding.wait_for && ms < LATER_MS; ms++)
        nanosleep(&one_ms, NULL);
}

static gf_status png_decode(void *state, const gf_device_decoding *call, gf_error *error) {
    if (call->uploaded[0].scan.bytes == 0) { /* warm-up */
        call->decoded[0] = false;
        return GF_OK;
    }
    groups++;
    if (works == 0)
        return gf_set_error(error, GF_NO_BACKEND, "cuda: the device failed; use --backend cpu");
    works -= works > 0;
    const bool is_first = count_decoding(0, 0) < decoding.wait_for;
    count_decoding(1, (int)call->count);
    if (is_first)
        wait_for_groups();
    for (uint64_t i = 0; i < call->count; i++) {
        call->decoded[i] = png_decode_one(&call->uploaded[i], &call->out[i]);
        decoded += call->decoded[i];
    }
    count_decoding(-1, -(int)call->count);
    return GF_OK;
}

static gf_status png_encode(void *state, const gf_device_encoding *call, gf_error *error) {
    const gf_format *format = call->format;
    for (uint64_t i = 0; i < call->count; i++) {
        const gf_pixels *in = &call->in[i];
        gf_buffer *out = &call->out[i];
        char path[1300];
        size_t size;
        snprintf(path, sizeof path, "%s/device%p.png", test_directory, state);
        assert_ok(gf_save_file(path, format, in, NULL, error));
        AUTO(free) unsigned char *file = test_bytes(path, &size);
        unlink(path);
        assert_true(size <= out->size);
        memcpy(out->data, file, size);
        out->size = size;
        call->largest[i] = 0;
        for (uint64_t y = 0; y < format->height; y++)
            call->largest[i] +=
                gf_png_simd_of(GF_ISA_PORTABLE)
                    ->count_largest(format, (const unsigned char *)in->data + y * in->stride);
        encoded++;
    }
    return GF_OK;
}

static const gf_png_functions png_device = {png_encode, png_decode};
static const gf_memory_functions png_memory = {.workspace = png_workspace,
                                               .free_bytes = fake_free_bytes,
                                               .take_host = fake_take_host,
                                               .return_host = fake_return_host,
                                               .upload = fake_upload,
                                               .download = fake_download};

static gf_backend backend; /* cpu, with the device */

static int start(void **state) {
    backend = gf_backend_cpu;
    backend.name = "cuda";
    backend.jobs = &fake_jobs;
    backend.memory = &png_memory;
    backend.png = &png_device;
    gf_engine_stand_in(&backend);
    gf_device_decodes_always = true;
    return make_inputs(state);
}

static int stop(void **state) {
    gf_engine_stand_in(NULL);
    gf_device_decodes_always = false;
    assert_int_equal(taken_host, 0);
    free_workspaces();
    return remove_directory(state) || open_jobs;
}

/* ---- tests ----------------------------------------------------------------------------------- */

typedef struct batch_case {
    const char *filter, *settings, *backend;
    uint32_t threads;
    bool in_order;
    int works;
    bool rejects;
} batch_case;

static gf_file_options files; /* conversions of all cases */

static gf_status run_case(const batch_case *c) {
    const gf_filter *filter = gf_filter_find(c->filter);
    const bool image = gf_filter_describe(filter)->makes_image;
    AUTO(settings) gf_settings *settings = test_settings(filter, c->settings);
    listener all = {.in_order = c->in_order};
    test_item items[ITEMS];
    gf_file_options force = files;
    const test_batch_options options = {.engine = {.backend = c->backend, .threads = c->threads},
                                        .files = files,
                                        .in_order = c->in_order,
                                        .done = on_done,
                                        .context = &all};
    force.force = true;
    run_each(filter, settings, &force, ITEMS);
    make_items(items, image);
    decoded = encoded = groups = 0;
    works = c->works;
    rejects = c->rejects;
    const gf_status status = test_run_batch(filter, settings, items, ITEMS, &options);
    assert_int_equal(taken_host, 0);
    free_workspaces();
    return status;
}

static void check_case(const batch_case *c) {
    char what[200];
    snprintf(what, sizeof what, "%s '%s' on %s, %u threads", c->filter, c->settings, c->backend,
             c->threads);
    if (run_case(c))
        fail_msg("%s: %s", what, why.message);
    check_outcomes(what);
    for (int i = 0; i < ITEMS; i++)
        if (!want[i].status && access(want_paths[i], F_OK) == 0)
            check_file(i, what);
}

enum { CHAIN_STEPS = 8 };
static gf_step_report chain_steps[ITEMS][CHAIN_STEPS]; /* of single runs */

static bool check_chain_report(void *context, const gf_batch_done *done) {
    const uint32_t *steps = context;
    for (uint32_t i = 0; i < *steps && !done->status; i++) {
        const gf_step_report *a = &done->outcome->steps[i], *b = &chain_steps[done->item][i];
        assert_int_equal(a->out_bytes, b->out_bytes);
        assert_int_equal(a->clipped, b->clipped);
        assert_int_equal(a->counted, b->counted);
        assert_true(gf_format_equal(&a->out, &b->out));
    }
    return true;
}

/* Run a chain of up to two writers on all items. The files and reports are those of gf_run on the
 * CPU. */
static void check_chain(const char *text, const char *device, int *intact) {
    enum { WRITERS = 2 };
    static char wants[WRITERS][ITEMS][1300], paths[WRITERS][ITEMS][1300];
    gf_pipeline *pipeline;
    gf_step steps[CHAIN_STEPS];
    gf_batch_item items[ITEMS];
    const char *outs[ITEMS][WRITERS];
    gf_job job = {.memory = GF_FILES, .options = &(gf_file_options){.force = true}};
    uint32_t writer[WRITERS], writers = 0;
    int made = 0;
    *intact = 0;
    assert_ok(gf_pipeline_parse(text, NULL, NULL, &pipeline, &why));
    const gf_step *parsed = gf_pipeline_steps(pipeline, &job.step_count);
    memcpy(steps, parsed, job.step_count * sizeof *steps);
    for (uint32_t i = 0; i < job.step_count; i++)
        if (!steps[i].filter)
            writer[writers++] = i;
    job.steps = steps;
    AUTO(engine) gf_engine *engine = test_engine(&(gf_engine_options){.backend = "cpu"});
    for (int i = 0; i < ITEMS; i++) {
        for (uint32_t w = 0; w < writers; w++) {
            snprintf(wants[w][i], sizeof wants[w][i], "%.1200s%.*s", want_paths[i], w ? 4 : 0,
                     ".png");
            snprintf(paths[w][i], sizeof paths[w][i], "%.1200s%.*s", out_paths[i], w ? 4 : 0,
                     ".png");
            unlink(wants[w][i]);
            unlink(paths[w][i]);
            steps[writer[w]].out_path = wants[w][i];
            outs[i][w] = paths[w][i];
        }
        job.in_path = in_paths[i];
        want[i].status = gf_run(engine, &job, &(gf_outcome){.steps = chain_steps[i]}, NULL);
        made += !want[i].status;
        *intact += !want[i].status && i % 32 != 8 && i % 16 != 7 && i % 16 != 11;
        items[i] = (gf_batch_item){.in = in_paths[i], .out = outs[i]};
    }
    for (uint32_t w = 0; w < writers; w++)
        steps[writer[w]].out_path = NULL;
    job.in_path = NULL;
    decoded = 0;
    works = -1;
    rejects = false;
    const gf_batch_options options = {.engine = {.backend = device, .threads = 3},
                                      .done = check_chain_report,
                                      .context = &job.step_count};
    assert_ok(gf_run_batch(&job, items, ITEMS, &options, &why));
    for (uint32_t w = 0; w < writers; w++)
        for (int i = 0; i < ITEMS; i++)
            if (!want[i].status)
                check_files(wants[w][i], paths[w][i], text);
    assert_true(made > 40);
    gf_pipeline_free(pipeline);
    free_workspaces();
}

static const struct {
    const char *text;
    bool on_device; /* the device decodes all intact files */
} chains[] = {
    {"median ! gaussian sigma=1 ! write x ! hist bins=4", true},
    {"linear ! gaussian ! sharpen ! write x", true},
    {"smooth ! write x ! input ! axis-sum", true},
    {"resize width=30 ! write x ! input ! resize scale=2.2 kernel=lanczos3 ! write y", true},
    {"write x depth=16 ! resize exact=40x9 ! sharpen ! write y ! hist bins=4", true},
    {"smooth ! write x compression=small", false}, /* the encoder of the device is fast */
    {"resize fit=20x20 ! write x ! write y compression=none", false},
    {"resize width=30 ! resize scale=0.5 ! resize width=9 ! gaussian ! write x", true},
};
enum { CHAINS = sizeof chains / sizeof *chains };

TEST(devices_run_chains) {
    for (size_t t = 0; t < CHAINS; t++) {
        int intact;
        for (int join = 0; join < 2; join++) {
            fake_joins = join;
            check_chain(chains[t].text, "cuda", &intact);
            assert_int_equal(decoded, chains[t].on_device ? intact : 0);
        }
    }
    fake_joins = false;
}

/* With "cuda", the device decodes all files without an error, except interlaced ones (n % 32 is 8),
 * those with a damaged chunk (n % 16 is 7) and TIFFs (n % 16 is 11). */
TEST(devices_match_single_runs) {
    static const batch_case cases[] = {
        {"smooth", "", "cuda", 1, false, -1, false},
        {"smooth", "", "cuda", 5, true, -1, false},
        {"smooth", "axis=xy", "cuda", 3, false, -1, false},
        {"hist", "bins=5", "cuda", 4, true, -1, false},
        {"axis-sum", "", "cuda", 2, true, -1, false},
        {"resize", "fit=40x30", "cuda", 3, false, -1, false},
        {"resize", "scale=2.3 kernel=lanczos3", "cuda", 4, true, -1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const bool image =
            strcmp(cases[i].filter, "hist") != 0 && strcmp(cases[i].filter, "axis-sum") != 0;
        int intact = 0;
        check_case(&cases[i]);
        for (int k = 0; k < ITEMS; k++)
            intact += !want[k].status && k % 32 != 8 && k % 16 != 7 && k % 16 != 11;
        if (decoded != intact)
            fail_msg("case %zu: %d decoded, %d intact", i, decoded, intact);
        assert_true(image ? encoded >= intact : encoded == 0); /* warm-ups, too */
    }
}

/* Each format is a group. */
TEST(decodes_few_groups_at_once) {
    static const batch_case formats = {"smooth", "", "cuda", 4, false, -1, false};
    decoding.most_groups = 0;
    decoding.wait_for = 4;
    check_case(&formats);
    decoding.wait_for = 0;
    assert_int_equal(decoding.most_groups, 4);
}

/* Groups are larger than a third of the limit. */
TEST(decodes_few_streams_at_once) {
    enum { FILES = 4500, LIMIT = 3072, GROUPS = 2 };
    static test_item items[FILES];
    const test_batch_options options = {.engine = {.backend = "cuda", .threads = 4}};
    const gf_filter *filter = gf_filter_find("hist");
    AUTO(settings) gf_settings *settings = test_settings(filter, "");
    for (int i = 0; i < FILES; i++)
        items[i].in = in_paths[0];
    works = -1;
    rejects = false;
    decoding.most_groups = decoding.most_images = decoded = 0;
    decoding.wait_for = GROUPS;
    assert_ok(test_run_batch(filter, settings, items, FILES, &options));
    decoding.wait_for = 0;
    assert_int_equal(decoded, FILES);
    assert_in_range(decoding.most_images, LIMIT / 3 * GROUPS, LIMIT);
    free_workspaces();
}

/* Under auto, each item is run once, by the device or by a CPU thread. */
TEST(cpu_threads_share_the_list) {
    static const batch_case cases[] = {{"smooth", "", "auto", 1, false, -1, false},
                                       {"smooth", "", "auto", 4, false, -1, false},
                                       {"hist", "bins=3", "auto", 3, true, -1, false}};
    const uint64_t rounds = test_rounds(10);
    for (uint64_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            int on_device = 0;
            check_case(&cases[i]);
            for (int k = 0; k < ITEMS; k++)
                on_device += strcmp(got[k].report.backend, "cuda") == 0;
            assert_true(on_device <= decoded);
        }
}

/* Devices decode and encode only what is not converted. Others share the memory of images. */
TEST(converts_images) {
    static const gf_crop part = {1, 2, 18, 15}; /* of the smallest image, too */
    static const struct {
        batch_case run;
        gf_file_options files;
    } cases[] = {
        {{"smooth", "", "cuda", 3, false, -1, false}, {.write.depth = GF_DEPTH_8}},
        {{"smooth", "", "cuda", 3, false, -1, false}, {.write.depth = GF_DEPTH_16}},
        {{"smooth", "", "cuda", 3, false, -1, false}, {.crop = &part}},
        {{"hist", "bins=5", "cuda", 3, true, -1, false}, {.crop = &part}},
        {{"smooth", "", "cuda", 2, false, -1, false}, {.linear = true}},
        {{"smooth", "", "auto", 3, false, -1, false}, {.linear = true, .write.depth = GF_DEPTH_16}},
        {{"smooth", "", "auto", 3, false, -1, false}, {.crop = &part, .write.depth = GF_DEPTH_8}},
        {{"smooth", "", "cuda", 3, false, -1, false}, {.autorotate = true}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int intact = 0;
        files = cases[i].files;
        check_case(&cases[i].run);
        for (int k = 0; k < ITEMS; k++) {
            intact += !want[k].status && k % 32 != 8 && k % 16 != 7 && k % 16 != 11 && !files.crop;
            if (!want[k].status && files.write.depth)
                assert_int_equal(want[k].output.out.type + 1, files.write.depth);
        }
        /* Under auto, CPU threads take a part of the list. */
        if (strcmp(cases[i].run.backend, "auto") == 0 ? decoded > intact : decoded != intact)
            fail_msg("case %zu: %d decoded, %d intact", i, decoded, intact);
    }
    files = (gf_file_options){0};
}

/* Files of our encoder have several streams. */
TEST(uploads_several_streams) {
    enum { FILES = 6, WIDTH = 500, HEIGHT = 601 };
    static const gf_format format = {WIDTH, HEIGHT, 3, GF_U8, false};
    static const batch_case cases[] = {{"smooth", "", "cuda", 4, false, -1, false},
                                       {"smooth", "", "auto", 4, false, -1, false}};
    AUTO(free) unsigned char *pixels = test_alloc(WIDTH * HEIGHT * 3);
    test_random random = {7};
    for (int i = 0; i < FILES; i++) {
        for (size_t k = 0; k < (size_t)WIDTH * HEIGHT * 3; k++)
            pixels[k] = (unsigned char)(k / 7 + test_below(&random, 20));
        assert_ok(gf_save_file(in_paths[i], &format, &(gf_pixels){pixels, WIDTH * 3},
                               &(gf_file_options){.force = true}, NULL));
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_case(&cases[i]);
    for (int i = 0; i < FILES; i++) {
        unlink(in_paths[i]);
        put_input(i, in_paths[i]);
    }
}

/* Files that the device cannot decode run from file to file. */
TEST(runs_rejected_files) {
    static const batch_case cases[] = {{"smooth", "", "cuda", 3, false, -1, true},
                                       {"smooth", "", "auto", 3, false, -1, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_case(&cases[i]);
        assert_int_equal(decoded, 0);
    }
}

/* Under auto, CPU threads run the batch after the device has failed. */
TEST(survives_the_device) {
    for (int works_for = 0; works_for < 2; works_for++) {
        const batch_case lost = {"smooth", "", "auto", 3, false, works_for, false};
        const batch_case alone = {"smooth", "", "cuda", 3, false, works_for, false};
        check_case(&lost);
        /* `groups` is that of this run: under auto, the CPU may have taken all files. */
        const gf_status status = run_case(&alone);
        assert_int_equal(status, groups > works_for ? GF_NO_BACKEND : GF_OK);
    }
}

/* The same with a GPU, if there is one. */
TEST(gpus_match_single_runs) {
    static const batch_case cases[] = {
        {"smooth", "", "cuda", 1, false, -1, false},
        {"smooth", "", "cuda", 5, true, -1, false},
        {"smooth", "axis=xy", "auto", 3, false, -1, false},
        {"normalize", "", "cuda", 2, false, -1, false},
        {"normalize", "", "auto", 2, false, -1, false},
        {"hist", "bins=5", "cuda", 4, true, -1, false},
        {"axis-sum", "", "cuda", 2, true, -1, false},
        {"resize", "width=256", "cuda", 4, false, -1, false},
        {"resize", "exact=1x40 kernel=lanczos3", "cuda", 2, false, -1, false},
        {"resize", "scale=7.3", "auto", 3, false, -1, false},
    };
    gf_engine_stand_in(NULL);
    const bool present = gf_has_cuda() && test_has_cuda();
    if (present)
        uploads_several_streams(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0] && present; i++) {
        check_case(&cases[i]);
        for (int k = 0; k < ITEMS && strcmp(cases[i].backend, "cuda") == 0; k++)
            if (!want[k].status)
                assert_string_equal(got[k].report.backend, "cuda");
    }
    for (size_t t = 0; t < CHAINS && present; t++) {
        int intact;
        check_chain(chains[t].text, "cuda", &intact);
    }
    gf_engine_stand_in(&backend);
    if (!present)
        test_skip("no GPU");
}

int main(void) {
    return test_main(&(test_fixture){start, stop});
}
