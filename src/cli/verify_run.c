/* Doing the jobs: golden once, then every backend against it, on as many threads as wished. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commands.h"
#include "report.h"
#include "verify.h"

/* ---- one job --------------------------------------------------------------------------------- */

/* The images of a job. */
typedef struct gf_verify_buffers {
    gf_pixels in[2];
    void *first, *second; /* generated; NULL: a file's, or none */
    void *want, *got;     /* NULL: this filter draws none */
    size_t out_stride, out_bytes;
} gf_verify_buffers;

static size_t row_bytes(const gf_format *format) {
    return (size_t)(format->width * format->channels) * gf_verify_sample_bytes(format->type);
}

static bool make_images(gf_verify_job *job, gf_verify_buffers *buffers) {
    const size_t stride = row_bytes(&job->in), bytes = stride * (size_t)job->in.height;
    const bool two = gf_filter_describe(job->track->filter)->inputs == 2;
    const void *first = job->file ? job->file->pixels : NULL;
    *buffers = (gf_verify_buffers){.out_stride = row_bytes(&job->out)};
    if (!first) {
        first = buffers->first = malloc(bytes); /* NOLINT: an image has at least one sample */
        if (!first)
            return false;
        gf_verify_fill(&job->in, buffers->first, &job->random);
    }
    if (two) {
        buffers->second = malloc(bytes); /* NOLINT */
        if (!buffers->second)
            return false;
        gf_verify_second(&job->in, first, buffers->second, &job->random);
    }
    buffers->in[0] = (gf_pixels){first, stride};
    buffers->in[1] = (gf_pixels){buffers->second, stride};
    if (job->out.width) {
        buffers->out_bytes = buffers->out_stride * (size_t)job->out.height;
        buffers->want = malloc(buffers->out_bytes); /* NOLINT */
        buffers->got = malloc(buffers->out_bytes);  /* NOLINT */
    }
    return !job->out.width || (buffers->want && buffers->got);
}

static void free_images(gf_verify_buffers *buffers) {
    free(buffers->first);
    free(buffers->second);
    free(buffers->want);
    free(buffers->got);
}

/* "smooth 'radius=3' on cpu avx2: image 7 of seed 1, 33x17 RGB f32: " and what happened. */
static void tell(gf_verify *verify, const gf_verify_job *job, const char *who, const char *how,
                 const char *what, bool failure) {
    char format[64], image[320], text[1024];
    gf_cli_format_text(&job->in, format, sizeof format);
    if (job->file)
        snprintf(image, sizeof image, "%.300s", job->file->name);
    else
        snprintf(image, sizeof image, "image %" PRIu64 " of seed %" PRIu64, job->image,
                 verify->seed);
    snprintf(text, sizeof text, "%s '%s' on %s%s: %s, %s: %s",
             gf_filter_describe(job->track->filter)->name, job->text, who, how, image, format,
             what);
    pthread_mutex_lock(&verify->lock);
    verify->failures += failure;
    gf_verify_note(job->track, job->number, text);
    pthread_mutex_unlock(&verify->lock);
}

static gf_status run(gf_engine *engine, const gf_verify_job *job, const gf_verify_buffers *buffers,
                     void *out, gf_result **result, gf_report *report, gf_error *error) {
    if (out)
        memset(out, 0xa5, buffers->out_bytes); /* what is not written is not right by chance */
    return gf_run_memory(engine, job->track->filter, job->settings, &job->in, buffers->in, out,
                         buffers->out_stride, result, report, error);
}

/* The job on a target: cpu engines of all kinds of threads and bands, or one of the lanes. */
static gf_status run_target(gf_verify *verify, gf_verify_job *job, gf_verify_target *target,
                            const gf_verify_buffers *buffers, gf_result **result, gf_report *report,
                            char *how, size_t size, gf_error *error) {
    if (target->lanes[0].engine) {
        struct gf_verify_lane *lane = &target->lanes[job->number % GF_VERIFY_LANES];
        if (lane->band_rows && job->in.height / lane->band_rows > 64)
            lane -= GF_VERIFY_LANES / 2; /* too many small bands */
        pthread_mutex_lock(&lane->lock);
        const gf_status status =
            run(lane->engine, job, buffers, buffers->got, result, report, error);
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
    gf_status status = gf_engine_open(&options, &engine, error);
    if (!status)
        status = run(engine, job, buffers, buffers->got, result, report, error);
    gf_engine_close(engine);
    snprintf(how, size, " (threads %" PRIu32 ", band rows %" PRIu64 ")", options.threads,
             options.band_rows);
    return status;
}

static void compare(gf_verify *verify, gf_verify_job *job, size_t t,
                    const gf_verify_buffers *buffers, const gf_result *want) {
    gf_verify_target *target = &verify->targets[t];
    char where[GF_VERIFY_WHERE] = "", how[64] = "", what[GF_VERIFY_WHERE + 64];
    gf_report report = {0};
    gf_result *got = NULL;
    gf_error error = {0};
    if (run_target(verify, job, target, buffers, &got, &report, how, sizeof how, &error)) {
        tell(verify, job, target->name, how, error.message, true);
        return;
    }
    if (strcmp(report.backend, target->backend) != 0)
        tell(verify, job, target->name, how, "another backend ran", true);
    uint64_t differences = gf_verify_results(want, got, where);
    if (buffers->got)
        differences += gf_verify_images(&job->out, buffers->want, buffers->got, where);
    gf_result_free(got);
    const uint64_t samples = job->in.width * job->in.height * job->in.channels;
    gf_verify_tally *tally = &job->track->tallies[t];
    pthread_mutex_lock(&verify->lock);
    tally->images++;
    tally->samples += samples;
    tally->differences += differences;
    tally->seconds += report.total_seconds - report.start_seconds;
    verify->samples += samples;
    verify->differences += differences;
    pthread_mutex_unlock(&verify->lock);
    snprintf(what, sizeof what, "%s (%" PRIu64 " differ)", where, differences);
    if (differences)
        tell(verify, job, target->name, how, what, false);
}

static void do_job(gf_verify *verify, gf_engine *golden, gf_verify_job *job) {
    gf_verify_buffers buffers;
    gf_result *want = NULL;
    gf_report report;
    gf_error error = {0};
    if (!make_images(job, &buffers))
        tell(verify, job, "every backend", "", "out of memory for the images", true);
    else if (run(golden, job, &buffers, buffers.want, &want, &report, &error))
        tell(verify, job, "golden", "", error.message, true);
    else
        for (size_t t = 0; t < verify->target_count; t++)
            compare(verify, job, t, &buffers, want);
    gf_result_free(want);
    free_images(&buffers);
    gf_settings_free(job->settings);
}

/* ---- many jobs ------------------------------------------------------------------------------- */

static void *work(void *argument) {
    gf_verify *verify = argument;
    gf_engine *golden = NULL;
    gf_verify_job job;
    gf_error error = {0};
    const gf_engine_options options = {.backend = "golden", .max_memory = verify->max_memory};
    const gf_status status = gf_engine_open(&options, &golden, &error);
    pthread_mutex_lock(&verify->lock);
    if (status)
        verify->broken = error;
    while (golden && gf_verify_next(verify, &job)) {
        pthread_mutex_unlock(&verify->lock);
        do_job(verify, golden, &job);
        pthread_mutex_lock(&verify->lock);
    }
    verify->running--;
    pthread_cond_signal(&verify->done);
    pthread_mutex_unlock(&verify->lock);
    gf_engine_close(golden);
    return NULL;
}

/* Waits for the workers, and tells how far they are. Needs the lock. */
static void wait_for_all(gf_verify *verify) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    while (verify->running) {
        until.tv_sec++;
        while (verify->running && pthread_cond_timedwait(&verify->done, &verify->lock, &until) == 0)
            continue;
        if (verify->progress)
            fprintf(stderr, "\rverify: %.0f of %.0f million samples, %" PRIu64 " differences ",
                    (double)verify->samples * 1e-6, (double)verify->goal * 1e-6,
                    verify->differences);
    }
    if (verify->progress)
        fprintf(stderr, "\r\033[K");
}

/* Several copies of a large file's image are held by each worker. */
static uint32_t count_workers(const gf_verify *verify, const gf_verify_file *file) {
    if (!file)
        return verify->workers;
    const uint64_t bytes = 16 * row_bytes(&file->format) * file->format.height;
    const uint64_t fit = verify->max_memory / bytes;
    return fit < 1 ? 1 : fit < verify->workers ? (uint32_t)fit : verify->workers;
}

gf_status gf_verify_run(gf_verify *verify, const gf_verify_file *file, gf_error *error) {
    const uint32_t wanted = count_workers(verify, file);
    pthread_t *threads = calloc(wanted, sizeof *threads);
    if (!threads)
        return gf_set_error(error, GF_FAILED, "verify: out of memory");
    verify->file = file;
    verify->file_track = verify->file_case = 0;
    uint32_t started = 0;
    int failed = 0;
    pthread_mutex_lock(&verify->lock);
    while (started < wanted && !failed) {
        failed = pthread_create(&threads[started], NULL, work, verify);
        started += !failed;
        verify->running += !failed;
    }
    wait_for_all(verify);
    pthread_mutex_unlock(&verify->lock);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    verify->file = NULL;
    if (failed && !started)
        return gf_set_error(error, GF_FAILED, "verify: cannot start a thread: %s",
                            strerror(failed));
    if (verify->broken.status)
        *error = verify->broken;
    return verify->broken.status;
}
