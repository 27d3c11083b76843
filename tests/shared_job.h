/* One image by several ranks, here threads: a job as all of them get it, and what became of it. */
#ifndef SHARED_JOB_H
#define SHARED_JOB_H

#include "io_util.h"
#include "rank_threads.h"
#include "testing.h"

enum { MOST_RANKS = 5 };

/* A job as all ranks get it, and what became of it. */
typedef struct shared_job {
    const gf_filter *filter;
    const gf_settings *settings;
    const char *in[2];
    const char *out;
    gf_file_options options;
    gf_engine_options engines[MOST_RANKS];
    gf_status status[MOST_RANKS];
    gf_error errors[MOST_RANKS];
    gf_result *result; /* rank 0's */
    gf_report report;
    bool others_have_results;
    void (*meanwhile)(void); /* happens once rank 0 has its inputs open, and no other has */
} shared_job;

/* Ranks whose second broadcast waits for what happens: the first one is about the engines. */
typedef struct delayed {
    const gf_ranks *ranks;
    void (*happens)(void);
    int broadcasts;
} delayed;

static inline void late_broadcast(void *context, void *data, size_t size) {
    delayed *late = context;

    if (++late->broadcasts == 2 && late->ranks->rank == 0)
        late->happens();
    late->ranks->broadcast(late->ranks->context, data, size);
}

static inline void late_reduce(void *context, void *data, size_t size, gf_merge *merge,
                               const void *merging) {
    const gf_ranks *ranks = ((delayed *)context)->ranks;
    ranks->reduce(ranks->context, data, size, merge, merging);
}

static inline void run_rank(const gf_ranks *ranks, void *context) {
    shared_job *job = context;
    const uint32_t rank = ranks ? ranks->rank : 0;
    gf_error *error = &job->errors[rank];
    gf_file_options options = job->options;
    gf_engine *engine = NULL;
    gf_result *result = NULL;
    gf_report report;
    delayed late = {.ranks = ranks, .happens = job->meanwhile};
    gf_ranks own;

    if (job->meanwhile) {
        own = *ranks; /* others of its calls are not reached */
        own.context = &late;
        own.broadcast = late_broadcast;
        own.reduce = late_reduce;
        ranks = &own;
    }
    options.ranks = ranks;
    gf_status status = gf_engine_open(&job->engines[rank], &engine, error);
    status = gf_ranks_agree(ranks, status, error);
    if (!status)
        status = gf_run_file(engine, job->filter, job->settings, job->in, job->out, &options,
                             &result, &report, error);
    gf_engine_close(engine);
    job->status[rank] = status;
    if (rank == 0) {
        job->result = result;
        job->report = report;
    } else if (result) {
        gf_result_free(result);
        __atomic_store_n(&job->others_have_results, true, __ATOMIC_RELAXED);
    }
}

/* count 0: without ranks. All must end alike. */
static inline gf_status run_job(shared_job *job, uint32_t count) {
    if (count == 0)
        run_rank(NULL, job);
    else
        run_as_ranks(count, run_rank, job);
    for (uint32_t r = 1; r < count; r++) {
        assert_int_equal(job->status[r], job->status[0]);
        assert_string_equal(job->errors[r].message, job->errors[0].message);
    }
    assert_false(job->others_have_results);
    return job->status[0];
}

static inline void assert_same_file(const char *a, const char *b, const char *what) {
    size_t size_a, size_b;
    unsigned char *bytes_a = get_bytes(a, &size_a), *bytes_b = get_bytes(b, &size_b);

    if (size_a != size_b || memcmp(bytes_a, bytes_b, size_a) != 0)
        fail_msg("%s: %s differs", what, b);
    free(bytes_a);
    free(bytes_b);
}

static inline bool exists(const char *path) {
    return access(path, F_OK) == 0;
}

static inline void put_grey(const char *name, uint64_t height) {
    const gf_format format = {.width = 50, .height = height, .channels = 1, .type = GF_U8};
    test_random random = {height};
    test_image image = test_image_new(format, 0);

    test_fill(&image, TEST_UNIFORM, &random);
    test_put(in_folder(name), &image);
    test_image_free(&image);
}

static inline shared_job smooth_job(const char *in, const char *out) {
    shared_job job = {.filter = gf_filter_find("smooth"),
                      .settings = test_settings(gf_filter_find("smooth"), "axis=y radius=9"),
                      .in = {in_folder(in)},
                      .out = in_folder(out)};
    for (int r = 0; r < MOST_RANKS; r++)
        job.engines[r] = (gf_engine_options){.backend = "cpu", .threads = 1};
    return job;
}

static inline void free_job(shared_job *job) {
    gf_settings_free((gf_settings *)job->settings);
}

#endif
