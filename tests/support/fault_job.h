/* Shared by the tests of failing and corrupting devices: one case of one filter on one image, run
 * by golden and by an engine, from memory, from files, or from a pipe. */
#ifndef FAULT_JOB_H
#define FAULT_JOB_H

#include "faulty_backend.h"
#include "io_util.h"
#include "job.h"
#include "pipe.h"

typedef enum fault_input { FROM_MEMORY, FROM_FILES, FROM_PIPE, FAULT_INPUTS } fault_input;

typedef struct fault_job {
    test_job one;
    char in_paths[2][1200], out_path[1200]; /* out_path: output or drawn image */
    char samples_path[1200];                /* empty: no samples are written to a file */
    test_outcome want;                      /* computed by golden */
    unsigned char *samples;
    size_t sample_bytes;
} fault_job;

typedef struct fault_outcome {
    gf_status status;
    gf_error error;
    gf_report report;
} fault_outcome;

/* Return the name of the parameter of this type that the case sets, or NULL. */
static inline const char *fault_param(const fault_job *job, gf_param_type type) {
    const gf_filter_info *info = &job->one.filter->info;
    for (size_t i = 0; i < info->param_count; i++)
        if (info->params[i].type == type &&
            gf_settings_text(job->one.settings, info->params[i].name))
            return info->params[i].name;
    return NULL;
}

/* Return a random format. PFM files of f32 samples have no alpha. */
static inline gf_format fault_format(test_random *random, bool files) {
    gf_format format = {.width = 1 + test_below(random, 40),
                        .height = 9 + test_below(random, 30),
                        .channels = 1 + (uint32_t)test_below(random, 4),
                        .type = (gf_type)test_below(random, 3)};
    if (files && format.type == GF_F32)
        format.channels = format.channels > 2 ? 3 : 1;
    format.alpha = format.channels % 2 == 0;
    return format;
}

/* Make a job. Return false if the case does not support the image. */
static inline bool fault_job_new(fault_job *job, const gf_filter *filter, const char *text,
                                 uint64_t seed, bool files, gf_engine *golden) {
    test_random random = test_seeded(seed);
    *job = (fault_job){.samples = NULL};
    if (!test_job_new(&job->one, filter, text, fault_format(&random, files), NULL))
        return false;
    for (int i = 0; i < 2; i++)
        test_fill(&job->one.in[i], files ? TEST_UNIFORM : (test_content)(seed % TEST_CONTENT_COUNT),
                  &random);
    job->want = test_run(&job->one, golden, 0);
    const char *extension = job->one.format.type == GF_F32 ? "pfm" : "png";
    const char *drawn = job->one.drawn.type == GF_F32 ? "pfm" : "png";
    for (int i = 0; i < 2; i++)
        snprintf(job->in_paths[i], sizeof job->in_paths[i], "%s/in%d.%s", test_directory, i,
                 extension);
    snprintf(job->out_path, sizeof job->out_path, "%s/out.%s", test_directory, drawn);
    const char *name = fault_param(job, GF_PARAM_SAMPLES);
    if (name)
        snprintf(job->samples_path, sizeof job->samples_path, "%s/samples.%s", test_directory,
                 seed % 2 ? "csv" : "npy");
    return true;
}

static inline void fault_job_free(fault_job *job) {
    test_job_free(&job->one);
    test_outcome_free(&job->want);
    free(job->samples);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Set the file names for the parameters that the case uses. */
static inline void fault_name_files(fault_job *job) {
    const char *samples = fault_param(job, GF_PARAM_SAMPLES);
    const char *image = fault_param(job, GF_PARAM_IMAGE);
    if (samples)
        assert_ok(gf_settings_set(job->one.settings, samples, job->samples_path, NULL));
    if (image)
        assert_ok(gf_settings_set(job->one.settings, image, job->out_path, NULL));
}

static inline void fault_put_inputs(fault_job *job, gf_engine *golden) {
    const char *const in[2] = {job->in_paths[0], job->in_paths[1]};
    const gf_file_options options = {.force = true};
    for (int i = 0; i < 2; i++)
        test_put(job->in_paths[i], &job->one.in[i]);
    fault_name_files(job);
    if (test_run_files(&(test_files){golden, job->one.filter, job->one.settings, in,
                                     job->one.filter->info.makes_image ? job->out_path : NULL,
                                     &options}))
        fail_msg("golden: %s", why.message);
    if (job->samples_path[0])
        job->samples = test_bytes(job->samples_path, &job->sample_bytes);
    unlink(job->samples_path);
    unlink(job->out_path);
}

/* ---- a run ----------------------------------------------------------------------------------- */

static inline void fault_check_files(const fault_job *job, const char *what) {
    if (job->one.drawn.width) {
        gf_format format;
        AUTO(free) void *pixels;
        if (gf_load_file(job->out_path, NULL, &format, &pixels, NULL, &why))
            fail_msg("%s: %s", what, why.message);
        assert_true(gf_format_equal(&format, &job->one.drawn));
        const test_image got = {.format = format,
                                .stride = gf_row_bytes(&format),
                                .rows = {pixels, gf_row_bytes(&format), 0, format.height}};
        if (!test_same(&job->want.image, &got, what))
            fail_msg("%s: the image differs", what);
        unlink(job->out_path);
    }
    if (job->samples_path[0]) {
        size_t size;
        AUTO(free) unsigned char *bytes = test_bytes(job->samples_path, &size);
        if (size != job->sample_bytes || memcmp(bytes, job->samples, size) != 0)
            fail_msg("%s: the samples differ", what);
        unlink(job->samples_path);
    }
}

/* Run the job. Check that its output equals golden's, or that a failed run leaves no output. */
static inline fault_outcome fault_run(fault_job *job, gf_engine *engine, fault_input input,
                                      const char *what) {
    fault_outcome done = {.status = GF_OK};
    AUTO(result) gf_result *result = NULL;
    why = (gf_error){0};
    if (input == FROM_MEMORY) {
        test_outcome got = {.result = NULL};
        if (job->one.drawn.width)
            got.image = test_image_new(job->one.drawn, 7);
        done.status = test_run_memory(&(test_memory){
            engine, job->one.filter, job->one.settings, &job->one.format, job->one.pixels,
            got.image.rows.data, got.image.stride, .result = &result, .report = &done.report});
        got.result = result;
        if (!done.status)
            test_check_outcome(&job->want, &got, what);
        test_image_free(&got.image);
    } else {
        const char *in[2] = {job->in_paths[0], job->in_paths[1]};
        const gf_file_options options = {.force = true};
        const int files_before = count_files(false);
        test_feeder *feeder = NULL;
        if (input == FROM_PIPE) {
            in[0] = in_directory("pipe");
            feeder = test_feed_file(in[0], job->in_paths[0], 0);
        }
        done.status =
            test_run_files(&(test_files){engine, job->one.filter, job->one.settings, in,
                                         job->one.filter->info.makes_image ? job->out_path : NULL,
                                         &options, .result = &result, .report = &done.report});
        if (feeder)
            test_feed_end(feeder);
        if (!done.status)
            fault_check_files(job, what);
        assert_int_equal(count_files(false), files_before);
    }
    done.error = why;
    if (!done.status)
        assert_string_equal(done.error.message, "");
    if (done.status) {
        assert_null(result);
        assert_int_equal(done.error.status, done.status);
        assert_true(done.error.message[0] != 0);
        assert_null(strchr(done.error.message, '\n'));
    }
    return done;
}

typedef struct fault_cases {
    bool files;
    void (*try)(fault_job *job, void *context);
    void *context;
    gf_engine *golden;
} fault_cases;

static inline bool fault_for_one(void *context, const gf_filter *filter, const char *text,
                                 uint64_t seed) {
    const fault_cases *all = context;
    fault_job job;
    if (!fault_job_new(&job, filter, text, seed, all->files, all->golden))
        return false;
    if (all->files)
        fault_put_inputs(&job, all->golden);
    all->try(&job, all->context);
    fault_job_free(&job);
    count_files(true);
    return true;
}

/* Try every case of every filter, each on the first image that the case supports. */
static inline void fault_for_all(bool files, void (*try)(fault_job *job, void *context),
                                 void *context) {
    fault_cases all = {files, try, context, test_engine(&(gf_engine_options){.backend = "golden"})};
    test_each_case(fault_for_one, &all, 0, false);
    gf_engine_close(all.golden);
}

#endif
