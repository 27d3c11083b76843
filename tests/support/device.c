/* Strips and jobs on a CUDA device. */
#include "job.h"
#include "strip.h"

#ifdef GF_WITH_CUDA
#include "cuda_util.h"

static void *to_device(const void *data, size_t size) {
    void *memory = NULL;
    must(cudaMalloc(&memory, size));
    must(cudaMemcpy(memory, data, size, cudaMemcpyHostToDevice));
    return memory;
}

bool test_strip_on_device(const gf_filter *filter, const char *text, uint64_t seed,
                          gf_format format, bool whole, size_t row_align) {
    test_strip strip;
    if (!test_strip_new(&strip, filter, text, seed, format, whole, row_align))
        return false;
    AUTO(device) unsigned char *in = to_device(strip.in, strip.in_size);
    AUTO(device) unsigned char *out = to_device(strip.got, strip.out_size);
    AUTO(device)
    unsigned char *accumulated = strip.state ? to_device(strip.state, strip.state_size) : NULL;
    AUTO(free) unsigned char *payload = test_zeros(strip.payload_bytes + TEST_MARGIN);
    memset(payload + strip.payload_bytes, TEST_PAINT, TEST_MARGIN);
    AUTO(device) unsigned char *extracted = to_device(payload, strip.payload_bytes + TEST_MARGIN);
    const gf_plan *plan = strip.plan;
    AUTO(device)
    void *constants = plan->constants ? to_device(plan->constants, plan->constant_bytes) : NULL;
    gf_strip piece = {.out = strip.out,
                      .records = out + (strip.records - strip.got),
                      .state = accumulated ? accumulated + TEST_MARGIN : NULL,
                      .payload = extracted,
                      .constants = constants};
    for (uint32_t i = 0; i < plan->inputs; i++) {
        piece.in[i] = strip.from[i];
        piece.in[i].data = in + (strip.from[i].data - strip.in);
    }
    piece.out.data = out + (strip.out.data - strip.got);
    const size_t scratch_bytes =
        gf_filter_kernels(filter)->scratch_bytes
            ? gf_filter_kernels(filter)->scratch_bytes(strip.plan, strip.from[0].rows)
            : 0;
    AUTO(device) void *scratch = device_alloc(scratch_bytes + 1); /* cleared, as the backend does */
    gf_queue queue = {.error = &why, .name = filter->info.name};
    gf_filter_kernels(filter)->launch(strip.plan, &piece, scratch, &queue);
    if (queue.status)
        fail_msg("%s", why.message);
    must(cudaDeviceSynchronize());
    must(cudaMemcpy(strip.got, out, strip.out_size, cudaMemcpyDeviceToHost));
    must(cudaMemcpy(payload, extracted, strip.payload_bytes + TEST_MARGIN, cudaMemcpyDeviceToHost));
    AUTO(free) unsigned char *state = test_alloc(strip.state_size + 1);
    if (accumulated)
        must(cudaMemcpy(state, accumulated, strip.state_size, cudaMemcpyDeviceToHost));
    assert_true(
        test_painted(payload + strip.payload_bytes, payload + strip.payload_bytes + TEST_MARGIN));
    test_strip_check(&strip, "cuda", state, payload, 1, 0);
    test_strip_free(&strip);
    return true;
}

/* Copy of an image in device memory, margins included, at any alignment of its samples. */
typedef struct device_image {
    unsigned char *memory;
    void *rows;
} device_image;

static device_image to_device_image(const test_image *image, size_t shift) {
    device_image copy;
    must(cudaMalloc((void **)&copy.memory, image->size + shift));
    must(cudaMemset(copy.memory, TEST_PAINT, shift ? shift : 1));
    must(cudaMemcpy(copy.memory + shift, image->memory, image->size, cudaMemcpyHostToDevice));
    copy.rows = copy.memory + shift + (image->rows.data - image->memory);
    return copy;
}

gf_out_pixels test_to_device(const test_image *image, void **memory) {
    const device_image made = to_device_image(image, 0);
    must(cudaDeviceSynchronize());
    *memory = made.memory;
    return (gf_out_pixels){made.rows, image->stride};
}

void test_from_device(const test_image *image, void *memory, bool back) {
    must(cudaDeviceSynchronize());
    if (back)
        must(cudaMemcpy(image->memory, memory, image->size, cudaMemcpyDeviceToHost));
    must(cudaFree(memory));
}

/* Return padding after rows: for half of the images, such that the stride is a multiple of 16. */
static size_t random_padding(const gf_format *format, test_random *random) {
    if (test_below(random, 2))
        return (size_t)test_below(random, 40);
    return (16 - gf_row_bytes(format) % 16) % 16 + 16 * (size_t)test_below(random, 3);
}

static size_t random_shift(const gf_format *format, test_random *random) {
    return test_below(random, 2) ? 0 : gf_type_bytes(format->type) * (size_t)test_below(random, 9);
}

test_outcome test_job_on_device(const test_job *job, gf_engine *engine, test_random *random,
                                void *stream) {
    const uint32_t inputs = job->filter->info.inputs;
    test_outcome outcome = {.result = NULL};
    test_image from[2];
    device_image in[2], out = {0};
    gf_pixels pixels[2];
    size_t out_shift = 0;
    for (uint32_t i = 0; i < inputs; i++) {
        from[i] = test_image_new(job->format, random_padding(&job->format, random));
        for (uint64_t y = 0; y < job->format.height; y++)
            memcpy(gf_row(&from[i].rows, y), gf_row(&job->in[i].rows, y),
                   gf_row_bytes(&job->format));
        in[i] = to_device_image(&from[i], random_shift(&job->format, random));
        pixels[i] = (gf_pixels){in[i].rows, from[i].stride};
        test_image_free(&from[i]);
    }
    if (job->drawn.width) {
        outcome.image = test_image_new(job->drawn, random_padding(&job->drawn, random));
        out_shift = random_shift(&job->drawn, random);
        out = to_device_image(&outcome.image, out_shift);
    }
    must(cudaDeviceSynchronize()); /* the stream may not wait for the copies */
    if (test_run_device(&(test_memory){engine, job->filter, job->settings, &job->format, pixels,
                                       out.rows, outcome.image.stride,
                                       .result = job->filter->measure ? &outcome.result : NULL,
                                       .stream = stream}))
        fail_msg("%s '%s': %s", job->filter->info.name, job->text, why.message);
    must(cudaStreamSynchronize(stream));
    if (out.memory)
        must(cudaMemcpy(outcome.image.memory, out.memory + out_shift, outcome.image.size,
                        cudaMemcpyDeviceToHost));
    for (uint32_t i = 0; i < inputs; i++)
        must(cudaFree(in[i].memory));
    must(cudaFree(out.memory));
    return outcome;
}

#else

gf_out_pixels test_to_device(const test_image *image, void **memory) {
    fail_msg("%s", "built without CUDA");
    return (gf_out_pixels){NULL, 0};
}

void test_from_device(const test_image *image, void *memory, bool back) {}

test_outcome test_job_on_device(const test_job *job, gf_engine *engine, test_random *random,
                                void *stream) {
    fail_msg("%s", "built without CUDA");
    return (test_outcome){0};
}

bool test_strip_on_device(const gf_filter *filter, const char *text, uint64_t seed,
                          gf_format format, bool whole, size_t row_align) {
    fail_msg("%s", "built without CUDA");
    return false;
}

#endif
