#include "strip.h"

#ifdef GF_WITH_CUDA
#include <cuda_runtime_api.h>

static void must(cudaError_t result) {
    if (result != cudaSuccess)
        fail_msg("%s", cudaGetErrorString(result));
}

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
    unsigned char *in = to_device(strip.in, strip.in_size);
    unsigned char *out = to_device(strip.got, strip.out_size);
    unsigned char *accumulated = strip.state ? to_device(strip.state, strip.state_size) : NULL;
    unsigned char *payload = calloc(1, strip.payload_bytes + TEST_MARGIN);
    assert_non_null(payload);
    memset(payload + strip.payload_bytes, TEST_PAINT, TEST_MARGIN);
    unsigned char *extracted = to_device(payload, strip.payload_bytes + TEST_MARGIN);
    gf_strip piece = {strip.from, strip.out, accumulated ? accumulated + TEST_MARGIN : NULL,
                      extracted};
    piece.in.data = in + (strip.from.data - strip.in);
    piece.out.data = out + (strip.out.data - strip.got);
    void *scratch = NULL;
    const size_t scratch_bytes =
        filter->cuda->scratch_bytes ? filter->cuda->scratch_bytes(strip.plan, strip.from.rows) : 0;
    must(cudaMalloc(&scratch, scratch_bytes + 1));
    gf_error error = {0};
    if (filter->cuda->launch(strip.plan, &piece, scratch, NULL, &error))
        fail_msg("%s", error.message);
    must(cudaDeviceSynchronize());
    must(cudaMemcpy(strip.got, out, strip.out_size, cudaMemcpyDeviceToHost));
    must(cudaMemcpy(payload, extracted, strip.payload_bytes + TEST_MARGIN, cudaMemcpyDeviceToHost));
    unsigned char *state = malloc(strip.state_size + 1);
    assert_non_null(state);
    if (accumulated)
        must(cudaMemcpy(state, accumulated, strip.state_size, cudaMemcpyDeviceToHost));
    must(cudaFree(in));
    must(cudaFree(out));
    must(cudaFree(accumulated));
    must(cudaFree(extracted));
    must(cudaFree(scratch));
    assert_true(
        test_painted(payload + strip.payload_bytes, payload + strip.payload_bytes + TEST_MARGIN));
    test_strip_check(&strip, "cuda", state, payload, 1, 0);
    free(state);
    free(payload);
    test_strip_free(&strip);
    return true;
}

#else

bool test_strip_on_device(const gf_filter *filter, const char *text, uint64_t seed,
                          gf_format format, bool whole, size_t row_align) {
    (void)filter, (void)text, (void)seed, (void)format, (void)whole, (void)row_align;
    fail_msg("%s", "built without CUDA");
    return false;
}

#endif
