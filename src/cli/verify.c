/* gpufilter verify: every filter on every backend of this machine against golden.
 *
 * Job n of a filter is one of its cases on one image; both follow from the seed and n alone, so
 * that a run can be repeated with any number of threads. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "progress.h"
#include "report.h"

#define MAX_TARGETS 8
#define LANES 4
#define MAX_FINDINGS 4

/* Every worker holds two results at a time: of what would take more than this, an image gets only
 * so many rows. */
#define MAX_RESULT (UINT64_C(64) << 20)

/* An engine that is kept, because it is slow to start (cuda). */
typedef struct gf_verify_lane {
    pthread_mutex_t lock;
    gf_engine *engine;
    uint64_t band_rows;
} gf_verify_lane;

/* What is compared with golden. */
typedef struct gf_verify_target {
    char name[32]; /* "cpu avx2" */
    const char *backend, *simd;
    gf_verify_lane lanes[LANES]; /* taken in turn; no engine: one is opened for every job */
} gf_verify_target;

typedef struct gf_tally {
    uint64_t images, samples, differences;
    double seconds;
} gf_tally;

/* A difference or a failure. */
typedef struct gf_finding {
    uint64_t job;
    gf_error error; /* for its message */
} gf_finding;

/* One filter's way through its cases. */
typedef struct gf_verify_track {
    const gf_filter *filter;
    const gf_filter_info *info;
    uint64_t case_count;
    uint64_t small;   /* jobs at the beginning are about small images: every case meets every
                       * format, however few samples are asked for */
    uint64_t next;    /* job */
    uint64_t planned; /* samples of the jobs so far, over all targets */
    uint64_t idle;    /* jobs in a row whose settings did not suit the image */
    bool *seen;       /* which cases ran */
    gf_tally tallies[MAX_TARGETS];
    gf_finding findings[MAX_FINDINGS]; /* those of the first jobs */
    size_t finding_count;
} gf_verify_track;

/* An image that is not generated. */
typedef struct gf_given {
    const char *name;
    gf_format format;
    void *pixels;
} gf_given;

typedef struct gf_verify {
    uint64_t seed;
    uint64_t goal;       /* samples to compare, at least */
    uint64_t max_memory; /* of an engine's job */
    const char *devices;
    uint32_t workers;
    bool json, progress; /* progress: on standard error */
    gf_error no_cuda;    /* why CUDA was not compared, which was not asked for by name */

    gf_verify_target targets[MAX_TARGETS];
    size_t target_count;
    gf_verify_track *tracks;
    size_t track_count;

    pthread_mutex_t lock; /* for all that follows, and the tracks */
    double shown;         /* when the progress was printed last */
    uint64_t jobs;        /* handed out */
    const gf_given *file; /* that the jobs are about; NULL: generated images */
    size_t file_track, file_case;
    uint64_t failures;
    const char **unread; /* files that could not be */
    size_t unread_count;
    gf_error broken; /* why a worker could not start */
} gf_verify;

/* One case on one image. */
typedef struct gf_verify_job {
    uint64_t number; /* of all jobs */
    uint64_t image;  /* of the filter's jobs; not for files */
    gf_verify_track *track;
    size_t which; /* case */
    gf_settings *settings;
    gf_format in, out;
    gf_random random;
    gf_pixels inputs[2];
    void *generated[2]; /* what of the inputs is not the file's */
    void *want, *got;   /* NULL: this filter draws none */
} gf_verify_job;

/* ---- findings -------------------------------------------------------------------------------- */

/* Keep the error of a job, if it is one of the first of its filter. Needs the lock. */
static void note_finding(gf_verify_track *track, uint64_t job, const gf_error *error) {
    gf_finding *findings = track->findings;
    size_t at = track->finding_count;
    while (at > 0 && findings[at - 1].job > job)
        at--;
    if (at == MAX_FINDINGS)
        return;
    if (track->finding_count < MAX_FINDINGS)
        track->finding_count++;
    memmove(&findings[at + 1], &findings[at], (track->finding_count - at - 1) * sizeof findings[0]);
    findings[at] = (gf_finding){job, *error};
}

/* Note "smooth 'radius=3' on cpu avx2: image 7 of seed 1, 33x17 RGB f32: " and what happened. */
static void note_job(gf_verify *verify, const gf_verify_job *job, const char *target,
                     const char *how, const char *what, bool failure) {
    const gf_filter_info *info = job->track->info;
    char format[64], image[320];
    gf_error finding;
    gf_cli_format_text(&job->in, format, sizeof format);
    if (verify->file)
        snprintf(image, sizeof image, "%.300s", verify->file->name);
    else
        snprintf(image, sizeof image, "image %" PRIu64 " of seed %" PRIu64, job->image,
                 verify->seed);
    gf_set_error(&finding, GF_FAILED, "%s '%s' on %s%s: %s, %s: %s", info->name,
                 info->cases[job->which], target, how, image, format, what);
    pthread_mutex_lock(&verify->lock);
    verify->failures += failure;
    note_finding(job->track, job->number, &finding);
    pthread_mutex_unlock(&verify->lock);
}

/* ---- which job comes next -------------------------------------------------------------------- */

/* The filter that has got the fewest samples of those that have not got enough. */
static gf_verify_track *choose_track(gf_verify *verify) {
    const uint64_t share = verify->goal / verify->track_count + 1;
    gf_verify_track *chosen = NULL;
    for (size_t i = 0; i < verify->track_count; i++) {
        gf_verify_track *track = &verify->tracks[i];
        const bool enough =
            track->next >= track->small && (track->planned >= share || track->idle >= track->small);
        if (!enough && (!chosen || track->planned < chosen->planned))
            chosen = track;
    }
    return chosen;
}

static bool choose_generated(gf_verify *verify, gf_verify_job *job) {
    gf_verify_track *track = choose_track(verify);
    if (!track)
        return false;
    const uint64_t image = track->next++;
    *job = (gf_verify_job){
        .image = image,
        .track = track,
        .which = image % track->case_count,
        .random = gf_random_start(verify->seed, (uint64_t)(track - verify->tracks), image)};
    job->in = gf_verify_format(&job->random, image / track->case_count, image < track->small);
    return true;
}

/* All cases of all filters, in their order. */
static bool choose_for_file(gf_verify *verify, gf_verify_job *job) {
    if (verify->file_track == verify->track_count)
        return false;
    const size_t track = verify->file_track, which = verify->file_case++;
    *job = (gf_verify_job){.track = &verify->tracks[track],
                           .which = which,
                           .in = verify->file->format,
                           .random = gf_random_start(verify->seed, track, which)};
    if (verify->file_case == verify->tracks[track].case_count) {
        verify->file_track++;
        verify->file_case = 0;
    }
    return true;
}

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

/* Take the next job; false if there is none. Needs the lock. */
static bool next_job(gf_verify *verify, gf_verify_job *job) {
    while ((verify->file ? choose_for_file : choose_generated)(verify, job)) {
        gf_verify_track *track = job->track;
        gf_error error = {0};
        job->number = verify->jobs++;
        const gf_status status = prepare_job(job, &error);
        track->idle = status == GF_USAGE ? track->idle + 1 : 0;
        if (status && status != GF_USAGE) {
            verify->failures++;
            note_finding(track, job->number, &error);
        }
        if (status)
            continue;
        track->seen[job->which] = true;
        if (!verify->file)
            track->planned +=
                job->in.width * job->in.height * job->in.channels * verify->target_count;
        return true;
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
    const void *first = verify->file ? verify->file->pixels : job->generated[0];
    if (!verify->file)
        gf_verify_fill(&job->in, job->generated[0], &job->random);
    if (job->generated[1])
        gf_verify_second(&job->in, first, job->generated[1], &job->random);
    job->inputs[0] = (gf_pixels){first, stride};
    job->inputs[1] = (gf_pixels){job->generated[1], stride};
    if (!out_bytes)
        return true;
    job->want = malloc(out_bytes);
    job->got = malloc(out_bytes);
    return job->want && job->got;
}

static gf_status run_job(gf_engine *engine, const gf_verify_job *job, void *out, gf_result **result,
                         gf_report *report, gf_error *error) {
    const size_t stride = gf_cli_row_bytes(&job->out);
    if (out)
        memset(out, 0xa5, stride * job->out.height); /* unwritten is not right by chance */
    return gf_run_memory(engine, job->track->filter, job->settings, &job->in, job->inputs, out,
                         stride, result, report, error);
}

/* Run the job on a target: by an engine with any number of threads and height of bands, or on one
 * of the lanes. */
static gf_status run_target(gf_verify *verify, gf_verify_job *job, gf_verify_target *target,
                            gf_result **result, gf_report *report, char *how, size_t size,
                            gf_error *error) {
    gf_status status;
    if (target->lanes[0].engine) {
        gf_verify_lane *lane = &target->lanes[job->number % LANES];
        if (lane->band_rows && job->in.height / lane->band_rows > 64)
            lane -= LANES / 2; /* too many small bands */
        pthread_mutex_lock(&lane->lock);
        status = run_job(lane->engine, job, job->got, result, report, error);
        pthread_mutex_unlock(&lane->lock);
        snprintf(how, size, " (band rows %" PRIu64 ")", lane->band_rows);
        return status;
    }
    const uint64_t least = job->in.height / 64 + 1;
    gf_engine_options options = {.backend = target->backend,
                                 .simd = target->simd,
                                 .threads = (uint32_t)(1 + gf_random_below(&job->random, 3)),
                                 .max_memory = verify->max_memory};
    if (gf_random_below(&job->random, 2))
        options.band_rows = least + gf_random_below(&job->random, job->in.height - least + 1);
    gf_engine *engine = NULL;
    status = gf_engine_open(&options, &engine, error);
    if (!status)
        status = run_job(engine, job, job->got, result, report, error);
    gf_engine_close(engine);
    snprintf(how, size, " (threads %" PRIu32 ", band rows %" PRIu64 ")", options.threads,
             options.band_rows);
    return status;
}

static void compare_target(gf_verify *verify, gf_verify_job *job, size_t t, const gf_result *want) {
    gf_verify_target *target = &verify->targets[t];
    char where[GF_VERIFY_WHERE] = "", how[64] = "", what[GF_VERIFY_WHERE + 64];
    gf_report report = {0};
    gf_result *got = NULL;
    gf_error error = {0};
    if (run_target(verify, job, target, &got, &report, how, sizeof how, &error)) {
        note_job(verify, job, target->name, how, error.message, true);
        return;
    }
    if (strcmp(report.backend, target->backend) != 0)
        note_job(verify, job, target->name, how, "another backend ran", true);
    uint64_t differences = gf_verify_results(want, got, where);
    if (job->got)
        differences += gf_verify_images(&job->out, job->want, job->got, where);
    gf_result_free(got);
    gf_tally *tally = &job->track->tallies[t];
    pthread_mutex_lock(&verify->lock);
    tally->images++;
    tally->samples += job->in.width * job->in.height * job->in.channels;
    tally->differences += differences;
    tally->seconds += report.total_seconds - report.start_seconds;
    pthread_mutex_unlock(&verify->lock);
    snprintf(what, sizeof what, "%s (%" PRIu64 " differ)", where, differences);
    if (differences)
        note_job(verify, job, target->name, how, what, false);
}

/* Golden once, then every target against it. */
static void do_job(gf_verify *verify, gf_engine *golden, gf_verify_job *job) {
    gf_result *want = NULL;
    gf_report report;
    gf_error error = {0};
    if (!make_images(verify, job))
        note_job(verify, job, "every backend", "", "out of memory for the images", true);
    else if (run_job(golden, job, job->want, &want, &report, &error))
        note_job(verify, job, "golden", "", error.message, true);
    else
        for (size_t t = 0; t < verify->target_count; t++)
            compare_target(verify, job, t, want);
    gf_result_free(want);
    free(job->generated[0]);
    free(job->generated[1]);
    free(job->want);
    free(job->got);
    gf_settings_free(job->settings);
}

/* ---- all jobs -------------------------------------------------------------------------------- */

/* The sum of all tallies. Needs the lock, unless no worker runs. */
static gf_tally sum_tallies(const gf_verify *verify) {
    gf_tally sum = {0};
    for (size_t i = 0; i < verify->track_count; i++)
        for (size_t t = 0; t < verify->target_count; t++) {
            sum.samples += verify->tracks[i].tallies[t].samples;
            sum.differences += verify->tracks[i].tallies[t].differences;
        }
    return sum;
}

/* Once a second. Needs the lock. */
static void show_progress(gf_verify *verify) {
    const double now = gf_cli_now();
    if (!verify->progress || now - verify->shown < 1)
        return;
    const gf_tally sum = sum_tallies(verify);
    fprintf(stderr, "\rverify: %.0f of %.0f million samples, %" PRIu64 " differences ",
            (double)sum.samples * 1e-6, (double)verify->goal * 1e-6, sum.differences);
    verify->shown = now;
}

static void *verify_work(void *argument) {
    gf_verify *verify = argument;
    gf_engine *golden = NULL;
    gf_verify_job job;
    gf_error error = {0};
    const gf_engine_options options = {.backend = "golden", .max_memory = verify->max_memory};
    const gf_status status = gf_engine_open(&options, &golden, &error);
    pthread_mutex_lock(&verify->lock);
    if (status)
        verify->broken = error;
    while (golden && next_job(verify, &job)) {
        pthread_mutex_unlock(&verify->lock);
        do_job(verify, golden, &job);
        pthread_mutex_lock(&verify->lock);
        show_progress(verify);
    }
    pthread_mutex_unlock(&verify->lock);
    gf_engine_close(golden);
    return NULL;
}

/* Do all jobs about generated images, or about one file. */
static gf_status do_jobs(gf_verify *verify, const gf_given *file, gf_error *error) {
    uint32_t wanted = verify->workers, started = 0;
    if (file) {
        /* Each worker holds several copies of the image. */
        const uint64_t bytes = 16 * gf_cli_row_bytes(&file->format) * file->format.height;
        const uint64_t fit = verify->max_memory / bytes;
        wanted = fit < 1 ? 1 : fit < wanted ? (uint32_t)fit : wanted;
    }
    pthread_t *threads = calloc(wanted, sizeof *threads);
    if (!threads)
        return gf_set_error(error, GF_FAILED, "verify: out of memory");
    verify->file = file;
    verify->file_track = verify->file_case = 0;
    verify->shown = gf_cli_now();
    int failed = 0;
    while (started < wanted && !failed) {
        failed = pthread_create(&threads[started], NULL, verify_work, verify);
        started += !failed;
    }
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    if (verify->progress)
        fprintf(stderr, "\r\033[K");
    if (!started)
        return gf_set_error(error, GF_FAILED, "verify: cannot start a thread: %s",
                            strerror(failed));
    if (verify->broken.status)
        *error = verify->broken;
    return verify->broken.status;
}

/* A file that cannot be read does not stop the others: it is reported, now and in the end. */
static gf_status do_file(gf_verify *verify, const char *path, const gf_file_options *options,
                         gf_error *error) {
    gf_error refused;
    gf_given file = {.name = strcmp(path, "-") == 0 ? "standard input" : path};
    if (gf_load_file(path, options, &file.format, &file.pixels, &refused)) {
        gf_cli_complain(&refused);
        verify->unread[verify->unread_count++] = path;
        return GF_OK;
    }
    const gf_status status = do_jobs(verify, &file, error);
    free(file.pixels);
    return status;
}

/* ---- targets --------------------------------------------------------------------------------- */

static gf_verify_target *verify_add_target(gf_verify *verify, const char *backend,
                                           const char *simd) {
    gf_verify_target *target = &verify->targets[verify->target_count++];
    target->backend = backend;
    target->simd = simd;
    snprintf(target->name, sizeof target->name, "%s%s%s", backend, simd ? " " : "",
             simd ? simd : "");
    return target;
}

/* Each level of vector instructions that this processor has. */
static gf_status verify_add_cpu(gf_verify *verify, gf_error *error) {
    for (const char *const *simd = gf_simd_names() + 1; *simd; simd++) {
        const gf_engine_options options = {.backend = "cpu", .simd = *simd, .threads = 1};
        gf_engine *engine = NULL;
        const gf_status status = gf_engine_open(&options, &engine, error);
        gf_engine_close(engine);
        if (status == GF_OK && verify->target_count + 1 < MAX_TARGETS)
            verify_add_target(verify, "cpu", *simd);
        else if (status != GF_NO_BACKEND)
            return status;
    }
    return GF_OK;
}

static gf_status verify_add_cuda(gf_verify *verify, gf_error *error) {
    /* 0: chosen from the row size. Images too high for the second half go to the first. */
    static const uint64_t band_rows[LANES] = {0, 0, 16, 256};
    gf_engine *engines[LANES] = {0};
    gf_status status = GF_OK;
    for (int i = 0; i < LANES && !status; i++) {
        const gf_engine_options options = {.backend = "cuda",
                                           .devices = verify->devices,
                                           .max_memory = verify->max_memory,
                                           .band_rows = band_rows[i]};
        status = gf_engine_open(&options, &engines[i], error);
    }
    gf_verify_target *target = status ? NULL : verify_add_target(verify, "cuda", NULL);
    for (int i = 0; i < LANES; i++)
        if (target) {
            target->lanes[i] = (gf_verify_lane){.engine = engines[i], .band_rows = band_rows[i]};
            pthread_mutex_init(&target->lanes[i].lock, NULL);
        } else {
            gf_engine_close(engines[i]);
        }
    return status;
}

static gf_status verify_add_targets(gf_verify *verify, const char *backend, gf_error *error) {
    const bool cpu = strcmp(backend, "cuda") != 0, cuda = strcmp(backend, "cpu") != 0;
    gf_status status = GF_OK;
    if (verify->devices && !cuda)
        return gf_set_error(error, GF_USAGE, "--device: is for --backend cuda or all");
    if (cpu)
        status = verify_add_cpu(verify, error);
    if (!status && cuda)
        status = verify_add_cuda(verify, error);
    if (status != GF_NO_BACKEND || !cpu || verify->devices)
        return status;
    verify->no_cuda = *error;
    return GF_OK;
}

static gf_status open_tracks(gf_verify *verify, gf_error *error) {
    verify->tracks = calloc(gf_filter_count(), sizeof *verify->tracks);
    if (!verify->tracks)
        return gf_set_error(error, GF_FAILED, "verify: out of memory");
    while (verify->track_count < gf_filter_count()) {
        gf_verify_track *track = &verify->tracks[verify->track_count];
        track->filter = gf_filter_at(verify->track_count++);
        track->info = gf_filter_describe(track->filter);
        while (track->info->cases[track->case_count])
            track->case_count++;
        if (track->case_count == 0)
            return gf_set_error(error, GF_FAILED, "verify: %s has no cases", track->info->name);
        /* Where there are few cases, they are gone through more often. */
        track->small = (1 + 20 / track->case_count) * GF_VERIFY_ROUNDS * track->case_count;
        track->seen = calloc(track->case_count, sizeof *track->seen);
        if (!track->seen)
            return gf_set_error(error, GF_FAILED, "verify: out of memory");
    }
    return GF_OK;
}

static void verify_close(gf_verify *verify) {
    for (size_t t = 0; t < verify->target_count; t++)
        for (int i = 0; i < LANES && verify->targets[t].lanes[i].engine; i++) {
            gf_engine_close(verify->targets[t].lanes[i].engine);
            pthread_mutex_destroy(&verify->targets[t].lanes[i].lock);
        }
    for (size_t i = 0; i < verify->track_count; i++)
        free(verify->tracks[i].seen);
    free(verify->tracks);
    free(verify->unread);
    pthread_mutex_destroy(&verify->lock);
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
            gf_set_error(&error, GF_FAILED, "%s on %s: no image was compared",
                         gf_filter_describe(track->filter)->name, verify->targets[t].name);
            verify->failures++;
            note_finding(track, UINT64_MAX, &error);
        }
}

static void verify_print_row(const gf_verify *verify, const gf_verify_track *track, size_t t) {
    const gf_tally *tally = &track->tallies[t];
    const char *filter = track->info->name, *backend = verify->targets[t].name;
    uint64_t cases = 0;
    for (uint64_t i = 0; i < track->case_count; i++)
        cases += track->seen[i];
    if (!verify->json) {
        printf("%-10s %-14s %6" PRIu64 " %8" PRIu64 " %15" PRIu64 " %12" PRIu64 " %9.2f\n", filter,
               backend, cases, tally->images, tally->samples, tally->differences, tally->seconds);
        return;
    }
    printf("{\"filter\": \"%s\"", filter);
    gf_json_string(stdout, "backend", backend);
    gf_json_count(stdout, "cases", cases);
    gf_json_count(stdout, "images", tally->images);
    gf_json_count(stdout, "samples", tally->samples);
    gf_json_count(stdout, "differences", tally->differences);
    printf(", \"seconds\": %.6f}", tally->seconds);
}

static void verify_print_rows(const gf_verify *verify, const char *gap) {
    for (size_t i = 0; i < verify->track_count; i++)
        for (size_t t = 0; t < verify->target_count; t++) {
            printf("%s", i || t ? gap : "");
            verify_print_row(verify, &verify->tracks[i], t);
        }
}

static void print_text(const gf_verify *verify) {
    const gf_tally sum = sum_tallies(verify);
    printf("%-10s %-14s %6s %8s %15s %12s %9s\n", "filter", "backend", "cases", "images", "samples",
           "differences", "seconds");
    verify_print_rows(verify, "");
    if (verify->no_cuda.status)
        printf("not verified: %.*s\n", (int)strcspn(verify->no_cuda.message, ";"),
               verify->no_cuda.message);
    for (size_t i = 0; i < verify->track_count; i++)
        for (size_t f = 0; f < verify->tracks[i].finding_count; f++)
            printf("%s\n", verify->tracks[i].findings[f].error.message);
    if (verify->failures)
        printf("verify: %" PRIu64 " run%s failed\n", verify->failures,
               verify->failures == 1 ? "" : "s");
    printf("verify: %" PRIu64 " samples compared, %" PRIu64 " differences", sum.samples,
           sum.differences);
    if (verify->unread_count)
        printf(", %zu file%s not read", verify->unread_count, verify->unread_count == 1 ? "" : "s");
    putchar('\n');
}

static void verify_print_json(const gf_verify *verify) {
    const gf_tally sum = sum_tallies(verify);
    const char *gap = "";
    printf("{\"schema\": \"gpufilter-verify\", \"version\": 1");
    gf_json_count(stdout, "seed", verify->seed);
    printf(", \"table\": [");
    verify_print_rows(verify, ", ");
    putchar(']');
    gf_json_string(stdout, "not_verified", verify->no_cuda.status ? verify->no_cuda.message : NULL);
    printf(", ");
    gf_json_names(stdout, "unread", verify->unread, verify->unread_count);
    printf(", \"findings\": [");
    for (size_t i = 0; i < verify->track_count; i++)
        for (size_t f = 0; f < verify->tracks[i].finding_count; f++) {
            printf("%s", gap);
            gf_json_text(stdout, verify->tracks[i].findings[f].error.message);
            gap = ", ";
        }
    putchar(']');
    gf_json_count(stdout, "failed_runs", verify->failures);
    gf_json_count(stdout, "samples", sum.samples);
    gf_json_count(stdout, "differences", sum.differences);
    printf("}\n");
}

/* ---- the command ----------------------------------------------------------------------------- */

static gf_status run_verify(const gf_cli_line *line, gf_error *error) {
    const gf_cli_options *options = &line->options;
    gf_verify *verify = calloc(1, sizeof *verify);
    if (!verify)
        return gf_set_error(error, GF_FAILED, "verify: out of memory");
    *verify = (gf_verify){.seed = (uint64_t)gf_settings_int(line->filter, "seed"),
                          .goal = gf_settings_size(line->filter, "samples"),
                          .max_memory = options->files.max_memory,
                          .devices = options->engine.devices,
                          .workers = options->threads ? options->threads : gf_cores(),
                          .json = options->json,
                          .progress = isatty(STDERR_FILENO) != 0,
                          .unread = calloc(line->operand_count + 1, sizeof *verify->unread)};
    pthread_mutex_init(&verify->lock, NULL);
    gf_status status = verify_add_targets(verify, gf_settings_text(line->filter, "backend"), error);
    if (!status)
        status = open_tracks(verify, error);
    for (size_t i = 0; i < line->operand_count && !status; i++)
        status = do_file(verify, line->operands[i], &options->files, error);
    if (!status)
        status = do_jobs(verify, NULL, error);
    if (!status) {
        check_all_ran(verify);
        (verify->json ? verify_print_json : print_text)(verify);
        error->message[0] = 0; /* it is printed, or was that there is no CUDA */
        if (verify->failures || verify->unread_count || sum_tallies(verify).differences)
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
    .most = SIZE_MAX,
    .run = run_verify,
};
