/* Command verify: comparison of every filter on every backend of this machine with golden.
 *
 * A job is one case of a filter on one image. Both depend only on the seed and the job number, so a
 * run is reproducible with any number of threads. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "report.h"

#define MAX_TARGETS 8
#define MAX_CASES 256 /* per filter */
#define MAX_WORKERS 1024
#define MAX_FINDINGS 64
#define MAX_FILTER_FINDINGS 4
#define INSTANCES 6        /* per target */
#define SMALL_SAMPLES 5700 /* average of the small images, for the progress */

/* Maximum bytes of a result. Every thread holds two. Larger images get fewer rows. */
#define MAX_RESULT (UINT64_C(64) << 20)

/* An engine, which runs one job at a time. Engines are kept because starting cuda is slow. */
typedef struct gf_verify_instance {
    pthread_mutex_t lock;
    gf_engine *engine;
    uint32_t threads;
    uint64_t rows_per_strip; /* 0, automatic, in the first half of the instances */
} gf_verify_instance;

/* A backend that is compared with golden. */
typedef struct gf_verify_target {
    char name[32]; /* "cpu avx2" */
    const char *backend;
    gf_verify_instance instances[INSTANCES];
} gf_verify_target;

typedef struct gf_tally {
    uint64_t images, samples, differences;
    double seconds;
} gf_tally;

/* One filter and the results of its jobs. */
typedef struct gf_verify_filter {
    const gf_filter *filter;
    const gf_filter_info *info;
    uint64_t case_count;
    uint64_t small; /* number of initial jobs with small images: every case runs with every format,
                     * even for a small --samples */
    uint64_t next;  /* number of the next job */
    uint64_t tried; /* samples of the generated images so far, including rejected images */
    uint64_t ran;   /* number of cases in seen */
    bool seen[MAX_CASES];
    gf_tally tallies[MAX_TARGETS];
    size_t finding_count;
} gf_verify_filter;

typedef struct gf_verify {
    const gf_cli_options *options;
    uint64_t seed;
    uint64_t goal;    /* minimum number of samples to compare */
    gf_error no_cuda; /* why CUDA, not requested explicitly, was skipped; status 0: not skipped */
    gf_verify_target targets[MAX_TARGETS];
    size_t target_count;
    const char **unread; /* files that could not be read: moved to the front of the operands */
    size_t unread_count;
    const char *file; /* input of the jobs; NULL: generated images */
    gf_format format; /* of the file */
    void *pixels;     /* of the file, in packed rows */

    pthread_mutex_t lock; /* protects the members below */
    gf_cli_progress progress;
    uint64_t planned; /* samples of the jobs with generated images, summed over the targets */
    uint64_t samples, differences, failures; /* of all jobs so far */
    gf_error findings[MAX_FINDINGS];         /* messages of differences and failures */
    size_t finding_count;
    size_t filter_count;
    gf_verify_filter filters[];
} gf_verify;

/* One case on one image. */
typedef struct gf_verify_job {
    uint64_t image; /* job number within the filter */
    gf_verify_filter *entry;
    size_t case_index; /* index of the case */
    gf_random random;
    gf_run_input input;
    void *generated[2]; /* generated inputs; NULL for the file */
    gf_run_output want, got;
    gf_error refusal; /* by golden: other backends must refuse the image, too, with this message */
    char config[64];  /* configuration of the last run: " (threads 2, rows per strip 0)" */
} gf_verify_job;

/* ---- findings -------------------------------------------------------------------------------- */

/* Count a finding, and keep the first messages of each filter. Threads call it with the lock. */
static void note_finding(gf_verify *verify, gf_verify_filter *entry, const gf_error *error,
                         bool failure) {
    verify->failures += failure;
    verify->progress.failed++;
    if (entry->finding_count++ < MAX_FILTER_FINDINGS && verify->finding_count < MAX_FINDINGS)
        verify->findings[verify->finding_count++] = *error;
}

/* Note a finding of a job: "smooth 'radius=3' on cpu avx2: image 7 of seed 1, 33x17 RGB f32: ". */
static void note_job(gf_verify *verify, const gf_verify_job *job, const char *target,
                     const char *what, bool failure) {
    const gf_filter_info *info = job->entry->info;
    char format[64], image[320];
    gf_error finding;
    gf_format_text(&job->input.in, format, sizeof format);
    if (verify->file)
        snprintf(image, sizeof image, "%.300s", verify->file);
    else
        snprintf(image, sizeof image, "image %" PRIu64 " of seed %" PRIu64, job->image,
                 verify->seed);
    gf_set_error(&finding, GF_FAILED, "%s '%s' on %s%s: %s, %s: %s", info->name,
                 info->cases[job->case_index], target, job->config, image, format, what);
    pthread_mutex_lock(&verify->lock);
    note_finding(verify, job->entry, &finding, failure);
    pthread_mutex_unlock(&verify->lock);
}

/* ---- selection of jobs ----------------------------------------------------------------------- */

/* Create the settings and the output format. GF_USAGE: the case does not support the image. */
static gf_status prepare_job(gf_verify_job *job, gf_error *error) {
    const gf_filter_info *info = job->entry->info;
    gf_run_input *input = &job->input;
    gf_step_info step = {.result_bytes = 0};
    input->settings = gf_settings_new(info->params, info->param_count);
    if (!input->settings)
        return gf_set_error(error, GF_FAILED, "%s: out of memory", info->name);
    gf_status status = gf_settings_apply_case(input->settings, info->cases[job->case_index], error);
    if (status == GF_USAGE)
        status = GF_FAILED; /* the case is invalid for every image */
    if (!status)
        status = gf_cli_inspect(input->filter, input->settings, &input->in, &step, error);
    if (!status && step.result_bytes > MAX_RESULT) {
        const double fit = (double)MAX_RESULT / (double)step.result_bytes;
        gf_settings_free(step.effective);
        input->in.height = 1 + (uint64_t)((double)input->in.height * fit);
        status = gf_cli_inspect(input->filter, input->settings, &input->in, &step, error);
    }
    input->drawn = step.out;
    gf_settings_free(step.effective);
    if (status)
        gf_settings_free(input->settings);
    return status;
}

/* Take the next job, of the unfinished filter with the fewest samples. Return false if there is
 * none. A file runs each case once. The caller holds the lock. */
static bool next_job(gf_verify *verify, gf_verify_job *job) {
    for (;;) {
        gf_verify_filter *chosen = NULL;
        for (size_t i = 0; i < verify->filter_count; i++) {
            gf_verify_filter *entry = &verify->filters[i];
            const bool enough =
                verify->file ? entry->next >= entry->case_count
                             : entry->next >= entry->small && verify->planned >= verify->goal;
            if (entry->case_count && !enough && (!chosen || entry->tried < chosen->tried))
                chosen = entry;
        }
        if (!chosen)
            return false;
        const uint64_t image = chosen->next++, round = image / chosen->case_count;
        gf_error error;
        *job = (gf_verify_job){
            .image = image,
            .entry = chosen,
            .case_index = image % chosen->case_count,
            .random = gf_random_start(verify->seed, (uint64_t)(chosen - verify->filters), image),
            .input.filter = chosen->filter};
        gf_format *in = &job->input.in;
        *in = verify->file ? verify->format
                           : gf_verify_format(&job->random, round, image < chosen->small);
        const gf_status status = prepare_job(job, &error);
        const uint64_t samples = verify->file ? 0 : in->width * in->height * in->channels;
        chosen->tried += samples;
        if (!status) {
            chosen->ran += !chosen->seen[job->case_index];
            chosen->seen[job->case_index] = true;
            verify->planned += samples * verify->target_count;
            return true;
        }
        if (status != GF_USAGE)
            note_finding(verify, chosen, &error, true);
    }
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* Generate the inputs and allocate the outputs of a job. Return false if out of memory. */
static bool make_images(const gf_verify *verify, gf_verify_job *job) {
    gf_run_input *input = &job->input;
    const size_t stride = gf_row_bytes(&input->in), bytes = stride * (size_t)input->in.height;
    const size_t out_bytes = gf_row_bytes(&input->drawn) * (size_t)input->drawn.height;
    for (uint32_t i = verify->file ? 1 : 0; i < job->entry->info->inputs; i++) {
        job->generated[i] = malloc(bytes); /* NOLINT: an image has at least one sample */
        if (!job->generated[i])
            return false;
    }
    const void *first = verify->file ? verify->pixels : job->generated[0];
    if (!verify->file)
        gf_verify_fill(&input->in, job->generated[0], &job->random);
    if (job->generated[1])
        gf_verify_second(&input->in, first, job->generated[1], &job->random);
    input->images[0] = (gf_pixels){first, stride};
    input->images[1] = (gf_pixels){job->generated[1], stride};
    if (!out_bytes)
        return true;
    job->want.image = calloc(1, out_bytes);
    job->got.image = malloc(out_bytes);
    return job->want.image && job->got.image;
}

/* Run the job on a random engine of a target and compare its output with golden. */
static void compare_target(gf_verify *verify, gf_verify_job *job, size_t t) {
    const gf_run_input *input = &job->input;
    gf_verify_target *target = &verify->targets[t];
    gf_verify_instance *instance = &target->instances[gf_random_below(&job->random, INSTANCES)];
    char what[sizeof((gf_differences *)0)->first + 64];
    gf_report report = {0};
    gf_error error = {0};
    if (instance->rows_per_strip && input->in.height / instance->rows_per_strip > 64)
        instance -= INSTANCES / 2; /* more than 64 strips are slow: use the automatic height */
    snprintf(job->config, sizeof job->config, " (threads %" PRIu32 ", rows per strip %" PRIu64 ")",
             instance->threads, instance->rows_per_strip);
    if (job->got.image) /* makes unwritten samples differ */
        memset(job->got.image, 0xa5, gf_row_bytes(&input->drawn) * (size_t)input->drawn.height);
    pthread_mutex_lock(&instance->lock);
    const gf_status status =
        gf_run_output_make(instance->engine, input, &job->got, &report, &error);
    pthread_mutex_unlock(&instance->lock);
    if (strcmp(error.message, job->refusal.message) != 0)
        note_job(verify, job, status ? target->name : "golden",
                 status ? error.message : job->refusal.message, true);
    if (status || job->refusal.status)
        return; /* there are no samples to compare */
    if (strcmp(report.backend, target->backend) != 0)
        note_job(verify, job, target->name, "another backend ran", true);
    const gf_differences found = gf_run_output_compare(&input->drawn, &job->want, &job->got);
    const uint64_t pixels = input->in.width * input->in.height;
    const uint64_t samples = pixels * input->in.channels;
    gf_tally *tally = &job->entry->tallies[t];
    pthread_mutex_lock(&verify->lock);
    tally->images++;
    tally->samples += samples;
    tally->differences += found.count;
    tally->seconds += report.total_seconds - report.start_seconds;
    verify->samples += samples;
    verify->differences += found.count;
    verify->progress.done = (double)verify->samples;
    verify->progress.pixels += (double)pixels;
    pthread_mutex_unlock(&verify->lock);
    snprintf(what, sizeof what, "%s (%" PRIu64 " differ)", found.first, found.count);
    if (found.count)
        note_job(verify, job, target->name, what, false);
}

/* Run a job on golden once, then on every target. */
static void do_job(gf_verify *verify, gf_verify_job *job) {
    const gf_engine_options options = {.backend = "golden",
                                       .max_memory = verify->options->engine.max_memory};
    gf_engine *golden = NULL;
    gf_report report;
    gf_error error = {0};
    if (!make_images(verify, job))
        note_job(verify, job, "every backend", "out of memory for the images", true);
    else if (gf_engine_open(&options, &golden, &error))
        note_job(verify, job, "golden", error.message, true);
    else {
        (void)gf_run_output_make(golden, &job->input, &job->want, &report, &job->refusal);
        for (size_t t = 0; t < verify->target_count; t++)
            compare_target(verify, job, t);
    }
    gf_engine_close(golden);
    gf_run_output_free(&job->want);
    gf_run_output_free(&job->got);
    free(job->generated[0]);
    free(job->generated[1]);
    gf_settings_free(job->input.settings);
}

/* ---- all jobs -------------------------------------------------------------------------------- */

static void *verify_work(void *argument) {
    gf_verify *verify = argument;
    gf_verify_job job;
    pthread_mutex_lock(&verify->lock);
    while (next_job(verify, &job)) {
        pthread_mutex_unlock(&verify->lock);
        do_job(verify, &job);
        pthread_mutex_lock(&verify->lock);
        gf_cli_progress_draw(&verify->progress);
    }
    pthread_mutex_unlock(&verify->lock);
    return NULL;
}

/* Run all jobs of a file, or of generated images (path NULL), in one thread per core. If the file
 * is unreadable, print its error now, and its name at the end. */
static void do_jobs(gf_verify *verify, const char *path) {
    pthread_t threads[MAX_WORKERS];
    const gf_cli_options *options = verify->options;
    uint64_t wanted = options->threads ? options->threads : gf_cores(), started = 0;
    if (path) {
        gf_error refused;
        gf_report report = {0};
        if (gf_load_file(path, &options->files, &verify->format, &verify->pixels, &report,
                         &refused)) {
            gf_cli_print_error(&refused);
            verify->unread[verify->unread_count++] = path;
            return;
        }
        gf_cli_report_damage(path, &report.remarks);
        verify->file = strcmp(path, "-") == 0 ? "standard input" : path;
        /* Memory limit: each thread holds several copies of the image. */
        const uint64_t bytes = 16 * gf_row_bytes(&verify->format) * verify->format.height;
        const uint64_t fit = options->engine.max_memory / bytes;
        wanted = fit < wanted ? fit : wanted;
    }
    for (size_t i = 0; i < verify->filter_count; i++)
        verify->filters[i].next = 0;
    while (started < MAX_WORKERS && started + 1 < wanted &&
           pthread_create(&threads[started], NULL, verify_work, verify) == 0)
        started++;
    verify_work(verify);
    while (started > 0)
        pthread_join(threads[--started], NULL);
    gf_cli_bar_hide();
    free(verify->pixels);
    verify->pixels = NULL;
    verify->file = NULL;
}

/* ---- targets --------------------------------------------------------------------------------- */

/* Add a target and start its engines. The strip heights depend on the seed. */
static gf_status verify_add_target(gf_verify *verify, const char *backend, const char *simd,
                                   gf_error *error) {
    static const uint64_t max_rows[INSTANCES] = {0, 0, 0, 8, 64, 512};
    gf_random random = gf_random_start(verify->seed, UINT64_MAX, verify->target_count);
    gf_verify_target *target = &verify->targets[verify->target_count];
    gf_status status = GF_OK;
    target->backend = backend;
    snprintf(target->name, sizeof target->name, "%s%s%s", backend, simd ? " " : "",
             simd ? simd : "");
    for (uint32_t i = 0; i < INSTANCES && !status; i++) {
        gf_verify_instance *instance = &target->instances[i];
        instance->threads = 1 + i % 3;
        instance->rows_per_strip = max_rows[i] ? 1 + gf_random_below(&random, max_rows[i]) : 0;
        pthread_mutex_init(&instance->lock, NULL);
        const gf_engine_options options = {.backend = backend,
                                           .simd = simd,
                                           .devices = simd ? NULL : verify->options->engine.devices,
                                           .threads = instance->threads,
                                           .rows_per_strip = instance->rows_per_strip,
                                           .max_memory = verify->options->engine.max_memory};
        status = gf_engine_open(&options, &instance->engine, error);
    }
    verify->target_count += !status;
    return status;
}

/* Add a target for each SIMD level of this processor, and one for the CUDA devices. */
static gf_status verify_add_targets(gf_verify *verify, const char *backend, gf_error *error) {
    const bool cpu = strcmp(backend, "cuda") != 0, cuda = strcmp(backend, "cpu") != 0;
    const char *devices = verify->options->engine.devices;
    const char *const *simd = gf_names(GF_NAMES_SIMD) + 1;
    gf_status status = GF_OK;
    if (devices && !cuda)
        return gf_set_error(error, GF_USAGE, "--device: requires --backend cuda or all");
    for (; cpu && *simd && !status && verify->target_count + 1 < MAX_TARGETS; simd++) {
        status = verify_add_target(verify, "cpu", *simd, error);
        status = status == GF_NO_BACKEND ? GF_OK : status;
    }
    if (!status && cuda)
        status = verify_add_target(verify, "cuda", NULL, error);
    if (status != GF_NO_BACKEND || !cpu || devices)
        return status;
    verify->no_cuda = *error;
    return GF_OK;
}

/* ---- the report ------------------------------------------------------------------------------ */

static void verify_print_rows(const gf_verify *verify, bool json) {
    for (size_t row = 0; row < verify->filter_count * verify->target_count; row++) {
        const gf_verify_filter *entry = &verify->filters[row / verify->target_count];
        const gf_tally *tally = &entry->tallies[row % verify->target_count];
        const char *backend = verify->targets[row % verify->target_count].name;
        if (!json) {
            printf("%-10s %-14s %6" PRIu64 " %8" PRIu64 " %15" PRIu64 " %12" PRIu64 " %9.2f\n",
                   entry->info->name, backend, entry->ran, tally->images, tally->samples,
                   tally->differences, tally->seconds);
            continue;
        }
        printf("%s{\"filter\": \"%s\"", row ? ", " : "", entry->info->name);
        gf_json_string(stdout, "backend", backend);
        gf_json_count(stdout, "cases", entry->ran);
        gf_json_count(stdout, "images", tally->images);
        gf_json_count(stdout, "samples", tally->samples);
        gf_json_count(stdout, "differences", tally->differences);
        printf(", \"seconds\": %.6f}", tally->seconds);
    }
}

static void print_text(const gf_verify *verify) {
    printf("%-10s %-14s %6s %8s %15s %12s %9s\n", "filter", "backend", "cases", "images", "samples",
           "differences", "seconds");
    verify_print_rows(verify, false);
    if (verify->no_cuda.status)
        printf("skipped: %.*s\n", (int)strcspn(verify->no_cuda.message, ";"),
               verify->no_cuda.message);
    for (size_t i = 0; i < verify->finding_count; i++)
        printf("%s\n", verify->findings[i].message);
    if (verify->failures)
        printf("verify: %" PRIu64 " run%s failed\n", verify->failures,
               verify->failures == 1 ? "" : "s");
    printf("verify: %" PRIu64 " samples compared, %" PRIu64 " differences", verify->samples,
           verify->differences);
    if (verify->unread_count)
        printf(", %zu unreadable file%s", verify->unread_count,
               verify->unread_count == 1 ? "" : "s");
    putchar('\n');
}

static void verify_print_json(const gf_verify *verify) {
    printf("{\"schema\": \"gpufilter-verify\", \"schema_version\": 2");
    gf_json_count(stdout, "seed", verify->seed);
    printf(", \"results\": [");
    verify_print_rows(verify, true);
    putchar(']');
    gf_json_string(stdout, "cuda_error", verify->no_cuda.status ? verify->no_cuda.message : NULL);
    gf_json_names(stdout, "unreadable", verify->unread, verify->unread_count);
    printf(", \"findings\": [");
    for (size_t i = 0; i < verify->finding_count; i++) {
        printf("%s", i ? ", " : "");
        gf_json_text(stdout, verify->findings[i].message);
    }
    putchar(']');
    gf_json_count(stdout, "failed_runs", verify->failures);
    gf_json_count(stdout, "samples", verify->samples);
    gf_json_count(stdout, "differences", verify->differences);
    printf("}\n");
}

/* ---- the command ----------------------------------------------------------------------------- */

static gf_status run_verify(const gf_cli_line *line, gf_error *error) {
    size_t count = 0;
    while (gf_filter_at(count))
        count++;
    gf_verify *verify = calloc(1, sizeof *verify + count * sizeof verify->filters[0]);
    if (!verify)
        return gf_set_error(error, GF_FAILED, "verify: out of memory");
    verify->options = &line->options;
    verify->seed = (uint64_t)gf_settings_int(line->filter, "seed");
    verify->goal = gf_settings_size(line->filter, "samples");
    verify->unread = line->operands;
    verify->filter_count = count;
    pthread_mutex_init(&verify->lock, NULL);
    gf_status status = verify_add_targets(verify, gf_settings_text(line->filter, "backend"), error);
    for (size_t i = 0; i < count; i++) {
        gf_verify_filter *entry = &verify->filters[i];
        entry->filter = gf_filter_at(i);
        entry->info = gf_filter_describe(entry->filter);
        while (entry->case_count < MAX_CASES && entry->info->cases[entry->case_count])
            entry->case_count++;
        /* Filters with fewer than 20 cases run 20 more jobs per round. */
        entry->small = GF_VERIFY_ROUNDS * (entry->case_count + (entry->case_count < 20 ? 20 : 0));
        verify->progress.work +=
            SMALL_SAMPLES * (double)entry->small * (double)verify->target_count;
    }
    if (verify->progress.work < (double)verify->goal)
        verify->progress.work = (double)verify->goal;
    if (!status) {
        gf_cli_progress_begin(&verify->progress, "verify", "auto", false, false);
        for (size_t i = 0; i < line->operand_count; i++)
            do_jobs(verify, line->operands[i]);
        do_jobs(verify, NULL);
        /* Note a failure for each filter and target without a compared image. */
        for (size_t i = 0; i < count * verify->target_count; i++) {
            gf_verify_filter *entry = &verify->filters[i / verify->target_count];
            const size_t t = i % verify->target_count;
            gf_error none;
            gf_set_error(&none, GF_FAILED, "%s on %s: no image was compared", entry->info->name,
                         verify->targets[t].name);
            if (!entry->tallies[t].images)
                note_finding(verify, entry, &none, true);
        }
        (line->options.json ? verify_print_json : print_text)(verify);
        error->message[0] = 0; /* already printed */
        if (verify->failures || verify->unread_count || verify->differences)
            status = GF_FAILED;
    }
    for (size_t t = 0; t < MAX_TARGETS; t++)
        for (int i = 0; i < INSTANCES; i++)
            gf_engine_close(verify->targets[t].instances[i].engine);
    free(verify);
    return status;
}

static const char *const backends[] = {"all", "cpu", "cuda", NULL};

static const gf_param params[] = {
    GF_NUMBER_PARAM(SIZE, "samples", 'n', "N", "minimum number of samples to compare", "64M", 1,
                    1e18),
    GF_NUMBER_PARAM(INT, "seed", 's', "N", "seed of the generated images", "1", 0, 999999999999),
    GF_CHOICE_PARAM(CHOICE, "backend", 'b', "NAME", "backends to compare with golden", "all",
                    backends),
    GF_FLAG_PARAM("json", 0, "print JSON; one line"),
};

const gf_command gf_verify_command = {
    .info = {.name = "verify",
             .summary = "compare all backends of this machine with golden",
             .operands = "[FILE]...",
             .details =
                 "Runs every filter with its test cases on each backend of this machine, and on\n"
                 "each SIMD level of the cpu backend. Compares all outputs bit by bit with\n"
                 "golden, for generated images of all sample types, channel counts and sizes,\n"
                 "from noise and NaN to synthetic photographs, and for the given files. Small\n"
                 "images first run every case with every sample type and channel count, so\n"
                 "--samples is a lower bound. Samples are distributed evenly over the filters.\n"
                 "The same --seed generates the same images. The exit status is 1 if any bit\n"
                 "differs.\n",
             .examples = "gpufilter verify\n"
                         "gpufilter verify --samples 10G\n"
                         "gpufilter verify --backend cuda --seed 2 scan.png\n",
             .params = params,
             .param_count = sizeof params / sizeof params[0]},
    .shared =
        "device threads raw max-memory max-pixels max-chunk max-seconds no-sandbox strict "
        "color help version",
    .run = run_verify,
};
