#include "job.h"

#include "convert/convert.h"

bool test_job_new(test_job *job, const gf_filter *filter, const char *text, gf_format format,
                  test_random *random) {
    *job = (test_job){
        .filter = filter, .text = text, .settings = test_settings(filter, text), .format = format};
    if (test_filter_output(filter, job->settings, &format, &job->drawn)) {
        gf_settings_free(job->settings);
        return false;
    }
    for (int i = 0; i < 2; i++) {
        job->in[i] = test_image_new(format, random ? (size_t)test_below(random, 40) : 0);
        job->pixels[i] = (gf_pixels){job->in[i].rows.data, job->in[i].stride};
    }
    return true;
}

void test_job_free(test_job *job) {
    test_image_free(&job->in[0]);
    test_image_free(&job->in[1]);
    gf_settings_free(job->settings);
}

void test_job_fill(test_job *job, test_random *random) {
    test_fill(&job->in[0], (test_content)test_below(random, TEST_CONTENT_COUNT), random);
    if (test_below(random, 2)) {
        for (uint64_t y = 0; y < job->format.height; y++)
            memcpy(gf_row(&job->in[1].rows, y), gf_row(&job->in[0].rows, y),
                   gf_row_bytes(&job->format));
        test_disturb(&job->in[1], random);
    } else {
        test_fill(&job->in[1], (test_content)test_below(random, TEST_CONTENT_COUNT), random);
    }
    /* An image without a finite sample has no range. */
    for (uint32_t c = 0; c < job->format.channels && test_reads_twice(job->text); c++)
        if (job->format.type == GF_F32)
            memcpy(gf_row(&job->in[0].rows, 0) + c * sizeof(float), &(float){0.25f}, sizeof(float));
}

test_outcome test_run(const test_job *job, gf_engine *engine, size_t padding) {
    test_outcome outcome = {.result = NULL};
    if (job->drawn.width)
        outcome.image = test_image_new(job->drawn, padding);
    if (test_run_memory(&(test_memory){engine, job->filter, job->settings, &job->format,
                                       job->pixels, outcome.image.rows.data, outcome.image.stride,
                                       .result = &outcome.result, .report = &outcome.report}))
        fail_msg("%s '%s': %s", job->filter->info.name, job->text, why.message);
    return outcome;
}

void test_check_outcome(const test_outcome *golden, const test_outcome *other, const char *what) {
    if ((golden->image.memory && !test_same(&golden->image, &other->image, what)) ||
        !test_same_result(golden->result, other->result, what))
        fail_msg("%s differs from golden", what);
    if (golden->image.memory && !test_margins_intact(&other->image))
        fail_msg("%s: wrote outside its rows", what);
}

void test_outcome_free(test_outcome *outcome) {
    test_image_free(&outcome->image);
    gf_result_free(outcome->result);
}

void test_describe(char what[512], const test_job *job, uint64_t seed,
                   const gf_engine_options *options) {
    const gf_format *format = &job->format;
    snprintf(what, 512,
             "%s '%s' on %s: seed %" PRIu64 ", %" PRIu64 "x%" PRIu64
             "x%u %s, threads %u, simd %s, rows per strip %" PRIu64,
             job->filter->info.name, job->text, options->backend, seed, format->width,
             format->height, format->channels, gf_type_name(format->type), options->threads,
             options->simd ? options->simd : "default", options->rows_per_strip);
}

uint64_t test_each_case(test_case_run *run, void *context, uint64_t rounds, bool limits) {
    const uint64_t seed = test_environment("GF_TEST_SEED", 1);
    uint64_t total = 0;
    for (size_t f = 0; f < test_filter_count() + limits; f++) {
        const gf_filter *filter = f < test_filter_count() ? gf_filter_at(f) : &gf_convert_filter;
        const char *text;
        for (size_t c = 0; (text = limits ? test_case(filter, c) : filter->info.cases[c]); c++) {
            uint64_t supported = 0;
            for (uint64_t round = 0; round < rounds || (supported == 0 && round < 100); round++)
                supported += run(context, filter, text, seed + round * 1000 + c);
            if (supported == 0)
                fail_msg("%s '%s' supports no image", filter->info.name, text);
            total += supported;
        }
    }
    return total;
}
