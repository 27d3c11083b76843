/* A device in host memory: golden replaces the kernels. For tests without a GPU. */
#ifndef FAKE_DEVICE_H
#define FAKE_DEVICE_H

#include <stdatomic.h>

#include "engine/engine.h"
#include "testing.h"

static bool fake_joins; /* join stages; golden computes them one after the other */
/* Plans that have joined others and are not open yet, and those. */
static _Thread_local const gf_plan *fake_joined[8][2];
static _Thread_local unsigned fake_join_count;

typedef struct fake_job {
    const gf_plan *plan, *before; /* before: computed first; NULL: none */
    void *memory;                 /* of fake_workspace */
} fake_job;

static atomic_int open_jobs, opened_jobs, launches;

static inline bool fake_join_plans(void *state, const gf_plan *before, gf_plan *plan) {
    if (!fake_joins)
        return false;
    fake_joined[fake_join_count % 8][0] = plan;
    fake_joined[fake_join_count++ % 8][1] = before;
    plan->in = before->in;
    return true;
}

/* Compute the node before that of a joined plan. strip: receives its image. */
static inline gf_status fake_run_before(const fake_job *job, gf_strip *strip, gf_error *error) {
    gf_rows out = {.stride = gf_align(gf_row_bytes(&job->before->out)),
                   .rows = job->before->out.height};
    gf_strip before = {.in = {strip->in[0]}, .constants = job->before->constants};
    out.data = test_alloc(out.stride * out.rows);
    before.out = strip->in[0] = out;
    return job->before->filter->golden(job->before, &before, error);
}

static inline gf_status fake_open_job(void *state, const gf_plan *plan, void **out,
                                      gf_error *error) {
    fake_job *job = test_alloc(sizeof *job);
    *job = (fake_job){.plan = plan};
    for (unsigned i = 0; i < 8; i++)
        if (fake_joined[i][0] == plan) {
            job->before = fake_joined[i][1];
            fake_joined[i][0] = NULL;
        }
    *out = job;
    open_jobs++;
    opened_jobs++;
    return GF_OK;
}

static inline gf_status fake_run(void *state, const gf_job_images *images, gf_cuda_stream stream,
                                 gf_device_part **part, gf_error *error) {
    const fake_job *job = state;
    const gf_plan *plan = job->plan;
    const uint64_t height = plan->in.height, rows = images->rows;
    launches++;
    if (gf_plan_measures(plan)) {
        const uint64_t all = images->count * rows;
        const size_t payload = plan->has_payload ? plan->filter->payload->bytes(plan, rows) : 0;
        *part = test_zeros(sizeof **part);
        if (plan->record)
            (*part)->records = (gf_rows){calloc(all, plan->record), plan->record, 0, all};
        (*part)->state = calloc(1, (size_t)plan->state_bytes + 1);
        (*part)->payload = payload ? calloc(1, payload) : NULL;
    }
    for (uint64_t i = 0; i < images->count; i++)
        for (uint64_t y = 0; y < rows; y += height) { /* images without a gap */
            const gf_pixels *from = images->in + i * plan->inputs;
            const uint64_t out_rows = gf_plan_rows(plan), out_y = y / height * out_rows;
            gf_strip strip = {.out = {.rows = out_rows}, .constants = plan->constants};
            for (uint32_t k = 0; k < plan->inputs; k++)
                strip.in[k] = (gf_rows){(unsigned char *)from[k].data + y * from[k].stride,
                                        from[k].stride, 0, height};
            if (plan->out.width)
                strip.out =
                    (gf_rows){(unsigned char *)images->out[i].data + out_y * images->out[i].stride,
                              images->out[i].stride, 0, out_rows};
            if (plan->record)
                strip.records = (*part)->records.data + (i * rows + y) * plan->record;
            if (part && *part) {
                strip.state = (*part)->state;
                strip.payload = (*part)->payload;
            }
            if (job->before && fake_run_before(job, &strip, error))
                return GF_FAILED;
            if (plan->filter->golden(plan, &strip, error))
                return GF_FAILED;
            if (job->before)
                free(strip.in[0].data);
        }
    return GF_OK;
}

static inline gf_status fake_workspace(void *state, gf_cuda_stream stream, size_t size,
                                       unsigned char **memory, gf_error *error) {
    fake_job *job = state;
    free(job->memory);
    *memory = job->memory = test_alloc(size);
    return GF_OK;
}

static inline gf_status fake_fetch(void *job, gf_device_part *part, gf_error *error) {
    return GF_OK;
}

static inline gf_status fake_wait(void *job, gf_device_part *part, gf_error *error) {
    return GF_OK;
}

static inline void fake_release(void *job, gf_device_part *part) {
    free(part->records.data);
    free(part->state);
    free(part->payload);
    free(part);
}

static inline void fake_close_job(void *job) {
    open_jobs--;
    free(((fake_job *)job)->memory);
    free(job);
}

static inline gf_status fake_wait_stream(void *state, gf_cuda_stream stream, gf_error *error) {
    (*(int *)stream)++;
    return GF_OK;
}

static const gf_job_functions fake_jobs = {.join = fake_join_plans,
                                           .open = fake_open_job,
                                           .run = fake_run,
                                           .workspace = fake_workspace,
                                           .fetch = fake_fetch,
                                           .wait = fake_wait,
                                           .release = fake_release,
                                           .close = fake_close_job,
                                           .wait_stream = fake_wait_stream};

static inline uint64_t fake_free_bytes(void *state) {
    return UINT64_C(1) << 34;
}

static atomic_int taken_host;

static inline gf_status fake_take_host(void *state, gf_buffer *host, gf_error *error) {
    enum { PIECE = 1000 }; /* small: most files need several */
    *host = (gf_buffer){malloc(PIECE), PIECE};
    assert_non_null(host->data);
    taken_host++;
    return GF_OK;
}

static inline void fake_return_host(void *state, const gf_buffer *host) {
    free(host->data);
    taken_host--;
}

static inline gf_status fake_upload(void *state, void *to, const void *from, size_t bytes,
                                    const gf_buffer *host, gf_error *error) {
    memcpy(to, from, bytes);
    return GF_OK;
}

static inline gf_status fake_download(void *state, const void *from, size_t bytes,
                                      const gf_buffer *host, gf_sink *sink, gf_error *error) {
    gf_status status = GF_OK;
    for (size_t at = 0; at < bytes && !status; at += host->size) {
        const size_t size = bytes - at < host->size ? bytes - at : host->size;
        memcpy(host->data, (const unsigned char *)from + at, size);
        status = gf_output_write(sink->output, host->data, size, error);
    }
    return status;
}

static inline gf_status fake_open(const gf_engine_options *options, void **state, gf_error *error) {
    *state = NULL;
    return GF_OK;
}

static inline void fake_close(void *state) {}

#endif
