/* gpufilter verify: every filter on every backend of this machine against golden.
 *
 * A job is one case of a filter on one image; both follow from the seed and the job's number alone,
 * so that a run can be repeated with any number of threads. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "progress.h"
#include "report.h"

#define MAX_TARGETS 8
#define MAX_CASES 256 /* of a filter */
#define MAX_WORKERS 1024
#define MAX_FINDINGS 64
#define MAX_FILTER_FINDINGS 4
#define LANES 6 /* of a target */

/* Every worker holds two results at a time: of what would take more than this, an image gets only
 * so many rows. */
#define MAX_RESULT (UINT64_C(64) << 20)

/* An engine, which does one job at a time. Starting one may be slow (cuda). */
typedef struct gf_verify_worker {
    pthread_mutex_t lock;
    gf_engine *engine;
    uint32_t threads;
    uint64_t rows_per_strip; /* 0 in the first half: chosen from the row size */
} gf_verify_worker;

/* What is compared with golden. */
typedef struct gf_verify_target {
    char name[32]; /* "cpu avx2" */
    const char *backend;
    gf_verify_worker lanes[LANES];
} gf_verify_target;

typedef struct gf_tally {
    uint64_t images, samples, differences;
    double seconds;
} gf_tally;

/* One filter, and what came of its jobs. */
typedef struct gf_verify_track {
    const gf_filter *filter;
    const gf_filter_info *info;
    uint64_t case_count;
    uint64_t small; /* jobs at the beginning are about small images: every case meets every format,
                     * however few samples are asked for */
    uint64_t next;  /* job */
    uint64_t tried; /* samples of the generated images so far, suitable or not */
    uint64_t ran;   /* cases, those that are seen */
    bool seen[MAX_CASES];
    gf_tally tallies[MAX_TARGETS];
    size_t finding_count;
} gf_verify_track;

typedef struct gf_verify {
    const gf_cli_options *options;
    uint64_t seed;
    uint64_t goal;    /* samples to compare, at least */
    gf_error no_cuda; /* why CUDA was not compared, which was not asked for by name */
    gf_verify_target targets[MAX_TARGETS];
    size_t target_count;
    const char **unread; /* files that could not be read */
    size_t unread_count;
    const char *file; /* that the jobs are about; NULL: generated images */
    gf_format format; /* of the file, */
    void *pixels;     /* rows without gaps */

    pthread_mutex_t lock; /* for all that follows */
    gf_cli_progress progress;
    uint64_t planned; /* samples of the jobs about generated images, over all targets */
    uint64_t samples, differences, failures; /* of all jobs so far */
    gf_error findings[MAX_FINDINGS];         /* the messages of differences and failures */
    size_t finding_count;
    size_t track_count;
    gf_verify_track tracks[];
} gf_verify;

/* One case on one image. */
typedef struct gf_verify_job {
    uint64_t image; /* number among the filter's jobs */
    gf_verify_track *track;
    size_t which; /* case */
    gf_settings *settings;
    gf_format in, out;
    gf_random random;
    gf_pixels inputs[2];
    void *generated[2]; /* what of the inputs is not the file's */
    gf_made want, got;
    char how[64]; /* the last target ran: " (threads 2, rows per strip 0)" */
} gf_verify_job;

/* ---- findings -------------------------------------------------------------------------------- */

/* Keep a message, if it is one of the first of its filter. Needs the lock, unless no worker runs.
 */
static void note_finding(gf_verify *verify, gf_verify_track *track, const gf_error *error,
                         bool failure) {
    verify->failures += failure;
    verify->progress.failed++;
    if (track->finding_count++ < MAX_FILTER_FINDINGS && verify->finding_count < MAX_FINDINGS)
        verify->findings[verify->finding_count++] = *error;
}

/* Note "smooth 'radius=3' on cpu avx2: image 7 of seed 1, 33x17 RGB f32: " and what happened. */
static void note_job(gf_verify *verify, const gf_verify_job *job, const char *target,
                     const char *what, bool failure) {
    const gf_filter_info *info = job->track->info;
    char format[64], image[320];
    gf_error finding;
    gf_cli_format_text(&job->in, format, sizeof format);
    if (verify->file)
        snprintf(image, sizeof image, "%.300s", verify->file);
    else
        snprintf(image, sizeof image, "image %" PRIu64 " of seed %" PRIu64, job->image,
                 verify->seed);
    gf_set_error(&finding, GF_FAILED, "%s '%s' on %s%s: %s, %s: %s", info->name,
                 info->cases[job->which], target, job->how, image, format, what);
    pthread_mutex_lock(&verify->lock);
    note_finding(verify, job->track, &finding, failure);
    pthread_mutex_unlock(&verify->lock);
}

/* ---- which job comes next -------------------------------------------------------------------- */

/* Make the settings of the job's case, and find what they make of its image. GF_USAGE: they do not
 * suit it. */
static gf_status prepare_job(gf_verify_job *job, gf_error *error) {
    const gf_filter *filter = job->track->filter;
    const gf_filter_info *info = job->track->info;
    uint64_t bytes;
    job->settings = gf_settings_new(info->params, info->param_count);
    if (!job->settings)
        return gf_set_error(error, GF_FAILED, "%s: out of memory", info->name);
    gf_status status = gf_settings_apply_case(job->settings, info->cases[job->which], error);
    if (status == GF_USAGE)
        status = GF_FAILED; /* a case that is wrong for every image */
    if (!status)
        status = gf_filter_result_bytes(filter, job->settings, &job->in, &bytes, error);
    if (!status && bytes > MAX_RESULT)
        job->in.height = 1 + (uint64_t)((double)job->in.height * MAX_RESULT / (double)bytes);
    if (!status)
        status = gf_filter_output(filter, job->settings, &job->in, &job->out, error);
    if (status)
        gf_settings_free(job->settings);
    return status;
}

/* The filter that was tried on the fewest samples, of those that lack some. A file meets each case
 * once. */
static gf_verify_track *choose_track(gf_verify *verify) {
    gf_verify_track *chosen = NULL;
    for (size_t i = 0; i < verify->track_count; i++) {
        gf_verify_track *track = &verify->tracks[i];
        const bool enough = verify->file
                                ? track->next >= track->case_count
                                : track->next >= track->small && verify->planned >= verify->goal;
        if (track->case_count && !enough && (!chosen || track->tried < chosen->tried))
            chosen = track;
    }
    return chosen;
}

/* Take the next job; false if there is none. Needs the lock. */
static bool next_job(gf_verify *verify, gf_verify_job *job) {
    gf_verify_track *track;
    while ((track = choose_track(verify))) {
        const uint64_t image = track->next++, round = image / track->case_count;
        gf_error error;
        *job = (gf_verify_job){
            .image = image,
            .track = track,
            .which = image % track->case_count,
            .random = gf_random_start(verify->seed, (uint64_t)(track - verify->tracks), image)};
        job->in = verify->file ? verify->format
                               : gf_verify_format(&job->random, round, image < track->small);
        const gf_status status = prepare_job(job, &error);
        const uint64_t samples = job->in.width * job->in.height * job->in.channels;
        track->tried += verify->file ? 0 : samples;
        if (!status) {
            track->ran += !track->seen[job->which];
            track->seen[job->which] = true;
            verify->planned += verify->file ? 0 : samples * verify->target_count;
            return true;
        }
        if (status != GF_USAGE)
            note_finding(verify, track, &error, true);
    }
    return false;
}

/* ---- doing a job ----------------------------------------------------------------------------- */

static bool make_images(const gf_verify *verify, gf_verify_job *job) {
    const size_t stride = gf_cli_row_bytes(&job->in), bytes = stride * (size_t)job->in.height;
    const size_t out_bytes = gf_cli_row_bytes(&job->out) * (size_t)job->out.height;
    for (uint32_t i = verify->file ? 1 : 0; i < job->track->info->inputs; i++) {
        job->generated[i] = malloc(bytes); /* NOLINT: an image has at least one sample */
        if (!job->generated[i])
            return false;
    }
    const void *first = verify->file ? verify->pixels : job->generated[0];
    if (!verify->file)
        gf_verify_fill(&job->in, job->generated[0], &job->random);
    if (job->generated[1])
        gf_verify_second(&job->in, first, job->generated[1], &job->random);
    job->inputs[0] = (gf_pixels){first, stride};
    job->inputs[1] = (gf_pixels){job->generated[1], stride};
    if (!out_bytes)
        return true;
    job->want.image = malloc(out_bytes);
    job->got.image = malloc(out_bytes);
    return job->want.image && job->got.image;
}

static gf_status run_job(gf_engine *engine, const gf_verify_job *job, gf_made *made,
                         gf_report *report, gf_error *error) {
    const size_t stride = gf_cli_row_bytes(&job->out);
    if (made->image)
        memset(made->image, 0xa5, stride * job->out.height); /* unwritten is not right by chance */
    return gf_run_memory(engine, job->track->filter, job->settings, &job->in, job->inputs,
                         made->image, stride, &made->result, report, error);
}

/* Run the job on one of a target's engines. */
static gf_status run_target(gf_verify_job *job, gf_verify_target *target, gf_report *report,
                            gf_error *error) {
    gf_verify_worker *lane = &target->lanes[gf_random_below(&job->random, LANES)];
    if (lane->rows_per_strip && job->in.height / lane->rows_per_strip > 64)
        lane -= LANES / 2; /* too many small strips */
    snprintf(job->how, sizeof job->how, " (threads %" PRIu32 ", rows per strip %" PRIu64 ")",
             lane->threads, lane->rows_per_strip);
    pthread_mutex_lock(&lane->lock);
    const gf_status status = run_job(lane->engine, job, &job->got, report, error);
    pthread_mutex_unlock(&lane->lock);
    return status;
}

static void compare_target(gf_verify *verify, gf_verify_job *job, size_t t) {
    gf_verify_target *target = &verify->targets[t];
    char what[sizeof((gf_found *)0)->where + 64];
    gf_report report = {0};
    gf_error error = {0};
    if (run_target(job, target, &report, &error)) {
        note_job(verify, job, target->name, error.message, true);
        return;
    }
    if (strcmp(report.backend, target->backend) != 0)
        note_job(verify, job, target->name, "another backend ran", true);
    const gf_found found = gf_made_compare(&job->out, &job->want, &job->got);
    gf_result_free(job->got.result);
    job->got.result = NULL;
    const uint64_t pixels = job->in.width * job->in.height;
    gf_tally *tally = &job->track->tallies[t];
    pthread_mutex_lock(&verify->lock);
    tally->images++;
    tally->samples += pixels * job->in.channels;
    tally->differences += found.count;
    tally->seconds += report.total_seconds - report.start_seconds;
    verify->samples += pixels * job->in.channels;
    verify->differences += found.count;
    verify->progress.done = (double)verify->samples;
    verify->progress.pixels += (double)pixels;
    pthread_mutex_unlock(&verify->lock);
    snprintf(what, sizeof what, "%s (%" PRIu64 " differ)", found.where, found.count);
    if (found.count)
        note_job(verify, job, target->name, what, false);
}

/* Golden once, then every target against it. */
static void do_job(gf_verify *verify, gf_verify_job *job) {
    const gf_engine_options options = {.backend = "golden",
                                       .max_memory = verify->options->engine.max_memory};
    gf_engine *golden = NULL;
    gf_report report;
    gf_error error = {0};
    if (!make_images(verify, job))
        note_job(verify, job, "every backend", "out of memory for the images", true);
    else if (gf_engine_open(&options, &golden, &error) ||
             run_job(golden, job, &job->want, &report, &error))
        note_job(verify, job, "golden", error.message, true);
    else
        for (size_t t = 0; t < verify->target_count; t++)
            compare_target(verify, job, t);
    gf_engine_close(golden);
    gf_made_free(&job->want);
    gf_made_free(&job->got);
    free(job->generated[0]);
    free(job->generated[1]);
    gf_settings_free(job->settings);
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

/* Do all jobs about generated images or a file, in this thread and in as many others as there are
 * cores. */
static void do_jobs(gf_verify *verify) {
    pthread_t threads[MAX_WORKERS];
    const gf_cli_options *options = verify->options;
    uint64_t wanted = options->threads ? options->threads : gf_cores(), started = 0;
    if (verify->file) {
        /* Each worker holds several copies of the image. */
        const uint64_t bytes = 16 * gf_cli_row_bytes(&verify->format) * verify->format.height;
        const uint64_t fit = options->engine.max_memory / bytes;
        wanted = fit < wanted ? fit : wanted;
    }
    for (size_t i = 0; i < verify->track_count; i++)
        verify->tracks[i].next = 0;
    while (started < MAX_WORKERS && started + 1 < wanted &&
           pthread_create(&threads[started], NULL, verify_work, verify) == 0)
        started++;
    verify_work(verify);
    while (started > 0)
        pthread_join(threads[--started], NULL);
    gf_cli_progress_hide();
}

/* A file that cannot be read does not stop the others: it is reported, now and in the end. */
static void do_file(gf_verify *verify, const char *path) {
    gf_error refused;
    if (gf_load_file(path, &verify->options->files, &verify->format, &verify->pixels, &refused)) {
        gf_cli_complain(&refused);
        verify->unread[verify->unread_count++] = path;
        return;
    }
    verify->file = strcmp(path, "-") == 0 ? "standard input" : path;
    do_jobs(verify);
    free(verify->pixels);
    verify->file = NULL;
}

/* ---- targets --------------------------------------------------------------------------------- */

/* Start the engines of a target. Other seeds have strips of other heights. */
static gf_status verify_add_target(gf_verify *verify, const char *backend, const char *simd,
                                   gf_error *error) {
    static const uint64_t max_rows[LANES] = {0, 0, 0, 8, 64, 512};
    gf_random random = gf_random_start(verify->seed, UINT64_MAX, verify->target_count);
    gf_verify_target *target = &verify->targets[verify->target_count];
    gf_status status = GF_OK;
    target->backend = backend;
    snprintf(target->name, sizeof target->name, "%s%s%s", backend, simd ? " " : "",
             simd ? simd : "");
    for (uint32_t i = 0; i < LANES && !status; i++) {
        gf_verify_worker *lane = &target->lanes[i];
        lane->threads = 1 + i % 3;
        lane->rows_per_strip = max_rows[i] ? 1 + gf_random_below(&random, max_rows[i]) : 0;
        pthread_mutex_init(&lane->lock, NULL);
        const gf_engine_options options = {.backend = backend,
                                           .simd = simd,
                                           .devices = simd ? NULL : verify->options->engine.devices,
                                           .threads = lane->threads,
                                           .rows_per_strip = lane->rows_per_strip,
                                           .max_memory = verify->options->engine.max_memory};
        status = gf_engine_open(&options, &lane->engine, error);
    }
    verify->target_count += !status;
    return status;
}

/* Each level of vector instructions that this processor has, and its devices. */
static gf_status verify_add_targets(gf_verify *verify, const char *backend, gf_error *error) {
    const bool cpu = strcmp(backend, "cuda") != 0, cuda = strcmp(backend, "cpu") != 0;
    const char *devices = verify->options->engine.devices, *const *simd = gf_simd_names() + 1;
    gf_status status = GF_OK;
    if (devices && !cuda)
        return gf_set_error(error, GF_USAGE, "--device: is for --backend cuda or all");
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

static void verify_close(gf_verify *verify) {
    for (size_t t = 0; t < MAX_TARGETS; t++)
        for (int i = 0; i < LANES; i++)
            gf_engine_close(verify->targets[t].lanes[i].engine);
    free(verify->unread);
    free(verify);
}

/* ---- the report ------------------------------------------------------------------------------ */

/* A filter of which nothing could be compared was not verified. */
static void check_all_ran(gf_verify *verify) {
    for (size_t i = 0; i < verify->track_count; i++)
        for (size_t t = 0; t < verify->target_count; t++) {
            gf_verify_track *track = &verify->tracks[i];
            gf_error error;
            if (track->tallies[t].images)
                continue;
            gf_set_error(&error, GF_FAILED, "%s on %s: no image was compared", track->info->name,
                         verify->targets[t].name);
            note_finding(verify, track, &error, true);
        }
}

static void verify_print_row(const gf_verify *verify, const gf_verify_track *track, size_t t,
                             bool json) {
    const gf_tally *tally = &track->tallies[t];
    const char *filter = track->info->name, *backend = verify->targets[t].name;
    if (!json) {
        printf("%-10s %-14s %6" PRIu64 " %8" PRIu64 " %15" PRIu64 " %12" PRIu64 " %9.2f\n", filter,
               backend, track->ran, tally->images, tally->samples, tally->differences,
               tally->seconds);
        return;
    }
    printf("{\"filter\": \"%s\"", filter);
    gf_json_string(stdout, "backend", backend);
    gf_json_count(stdout, "cases", track->ran);
    gf_json_count(stdout, "images", tally->images);
    gf_json_count(stdout, "samples", tally->samples);
    gf_json_count(stdout, "differences", tally->differences);
    printf(", \"seconds\": %.6f}", tally->seconds);
}

static void verify_print_rows(const gf_verify *verify, bool json) {
    for (size_t i = 0; i < verify->track_count; i++)
        for (size_t t = 0; t < verify->target_count; t++) {
            printf("%s", json && (i || t) ? ", " : "");
            verify_print_row(verify, &verify->tracks[i], t, json);
        }
}

static void print_text(const gf_verify *verify) {
    printf("%-10s %-14s %6s %8s %15s %12s %9s\n", "filter", "backend", "cases", "images", "samples",
           "differences", "seconds");
    verify_print_rows(verify, false);
    if (verify->no_cuda.status)
        printf("not verified: %.*s\n", (int)strcspn(verify->no_cuda.message, ";"),
               verify->no_cuda.message);
    for (size_t i = 0; i < verify->finding_count; i++)
        printf("%s\n", verify->findings[i].message);
    if (verify->failures)
        printf("verify: %" PRIu64 " run%s failed\n", verify->failures,
               verify->failures == 1 ? "" : "s");
    printf("verify: %" PRIu64 " samples compared, %" PRIu64 " differences", verify->samples,
           verify->differences);
    if (verify->unread_count)
        printf(", %zu file%s not read", verify->unread_count, verify->unread_count == 1 ? "" : "s");
    putchar('\n');
}

static void verify_print_json(const gf_verify *verify) {
    printf("{\"schema\": \"gpufilter-verify\", \"version\": 1");
    gf_json_count(stdout, "seed", verify->seed);
    printf(", \"table\": [");
    verify_print_rows(verify, true);
    putchar(']');
    gf_json_string(stdout, "not_verified", verify->no_cuda.status ? verify->no_cuda.message : NULL);
    printf(", ");
    gf_json_names(stdout, "unread", verify->unread, verify->unread_count);
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

static gf_verify *verify_new(const gf_cli_line *line) {
    const size_t count = gf_filter_count();
    gf_verify *verify = calloc(1, sizeof *verify + count * sizeof verify->tracks[0]);
    const char **unread = calloc(line->operand_count + 1, sizeof *unread);
    if (!verify || !unread) {
        free(verify);
        free(unread);
        return NULL;
    }
    verify->options = &line->options;
    verify->seed = (uint64_t)gf_settings_int(line->filter, "seed");
    verify->goal = gf_settings_size(line->filter, "samples");
    verify->unread = unread;
    verify->track_count = count;
    pthread_mutex_init(&verify->lock, NULL);
    for (size_t i = 0; i < count; i++) {
        gf_verify_track *track = &verify->tracks[i];
        track->filter = gf_filter_at(i);
        track->info = gf_filter_describe(track->filter);
        while (track->case_count < MAX_CASES && track->info->cases[track->case_count])
            track->case_count++;
        /* Where there are few cases, they are gone through more often. */
        track->small = GF_VERIFY_ROUNDS * (track->case_count + (track->case_count < 20 ? 20 : 0));
    }
    return verify;
}

static gf_status run_verify(const gf_cli_line *line, gf_error *error) {
    gf_verify *verify = verify_new(line);
    if (!verify)
        return gf_set_error(error, GF_FAILED, "verify: out of memory");
    gf_status status = verify_add_targets(verify, gf_settings_text(line->filter, "backend"), error);
    if (!status) {
        verify->progress.of = (double)verify->goal;
        gf_cli_progress_begin(&verify->progress, gf_cli_progress_choose("auto", false, false));
        for (size_t i = 0; i < line->operand_count; i++)
            do_file(verify, line->operands[i]);
        do_jobs(verify);
        check_all_ran(verify);
        (line->options.json ? verify_print_json : print_text)(verify);
        error->message[0] = 0; /* it is printed, or was that there is no CUDA */
        if (verify->failures || verify->unread_count || verify->differences)
            status = GF_FAILED;
    }
    verify_close(verify);
    return status;
}

static const char *const backends[] = {"all", "cpu", "cuda", NULL};

static const gf_param params[] = {
    GF_CLI_SIZE("samples", 'n', "N", "samples to compare, at least, evenly over the filters", "64M",
                1, 1e18),
    GF_CLI_INT("seed", 's', "N", "which images are made; the same seed makes the same ones", "1", 0,
               999999999999),
    GF_CLI_CHOICE("backend", 'b', "NAME", "what is compared with golden", "all", backends),
    GF_CLI_FLAG("json", 0, "print one line of JSON"),
};

static const char *const shared[] = {"device",     "threads",   "raw",         "max-memory",
                                     "max-pixels", "max-chunk", "max-seconds", "no-sandbox",
                                     "color",      "help",      "version",     NULL};

const gf_command gf_verify_command = {
    .info = {.name = "verify",
             .summary = "compare every backend with golden, here, on this machine",
             .operands = "[FILE]...",
             .details =
                 "Runs every filter with every set of options worth testing on each backend of\n"
                 "this machine (cpu once for each level of vector instructions) and compares\n"
                 "all that comes out with golden, to the bit: on generated images of all types,\n"
                 "channels and sizes, with contents from noise and NaN to something like a\n"
                 "photograph, and on the files given. Small images make sure first that every\n"
                 "case has met every type and number of channels, so --samples is the least.\n"
                 "The exit code is 1 if anything differs.\n",
             .examples = "gpufilter verify\n"
                         "gpufilter verify --samples 10G\n"
                         "gpufilter verify --backend cuda --seed 2 scan.png\n",
             .params = params,
             .param_count = sizeof params / sizeof params[0]},
    .shared = shared,
    .run = run_verify,
};
