/* One case of one filter on random images: its runs, and loops over all cases of all filters. */
#ifndef JOB_H
#define JOB_H

#include "testing.h"

typedef struct test_job {
    const gf_filter *filter;
    const char *text; /* of the case */
    gf_settings *settings;
    gf_format format, drawn; /* drawn.width: 0 if the filter makes no image */
    test_image in[2];        /* the second is unused if the filter has one input */
    gf_pixels pixels[2];     /* of `in` */
} test_job;

/* Make a job with painted images. random: for padding between rows, or NULL for packed rows. Return
 * false if the case does not support the format. */
bool test_job_new(test_job *job, const gf_filter *filter, const char *text, gf_format format,
                  test_random *random);
void test_job_free(test_job *job);
/* Fill both images with random content. In half of the jobs they differ in at most 3 samples. */
void test_job_fill(test_job *job, test_random *random);

/* Return whether a case measures the range of the image first. Jobs in device memory reject it. */
static inline bool test_reads_twice(const char *text) {
    return strstr(text, "range=data") != NULL;
}

/* Image and result of a run. */
typedef struct test_outcome {
    test_image image; /* no memory if the filter makes no image */
    gf_result *result;
    gf_report report;
} test_outcome;

/* Run a job from memory. padding: of the output, as in test_image_new. An error fails the test. */
test_outcome test_run(const test_job *job, gf_engine *engine, size_t padding);
/* The same with all images in painted device memory, with random strides and alignments, by
 * gf_run_device on `stream`. Requires a device. */
test_outcome test_job_on_device(const test_job *job, gf_engine *engine, test_random *random,
                                void *stream);
/* Copy an image with its margins to device memory. *memory: the block. Return its rows there. */
gf_out_pixels test_to_device(const test_image *image, void **memory);
/* Copy a block back after all work of the device, if `back`, and free it. */
void test_from_device(const test_image *image, void *memory, bool back);
/* Fail the test if image or results differ from golden's, or if the run wrote outside its rows. */
void test_check_outcome(const test_outcome *golden, const test_outcome *other, const char *what);
void test_outcome_free(test_outcome *outcome);

/* Write filter, case, backend, seed, format and options of a run. */
void test_describe(char what[512], const test_job *job, uint64_t seed,
                   const gf_engine_options *options);

/* Run one case with this seed. Return false if the case does not support the seed's image. */
typedef bool test_case_run(void *context, const gf_filter *filter, const char *text, uint64_t seed);
/* Run every case of every filter: `rounds` times, and until one image was supported. Fail the test
 * if a case supports none of 100 images. limits: include the cases for tests only, and convert.
 * Return the number of supported images. */
uint64_t test_each_case(test_case_run *run, void *context, uint64_t rounds, bool limits);

#endif
