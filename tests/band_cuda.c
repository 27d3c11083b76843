#include "band_cuda.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "band.h"

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

bool test_band_on_device(const gf_filter *filter, const char *text, uint64_t seed, gf_format format,
                         bool whole, size_t row_align) {
    test_band band;
    if (!test_band_new(&band, filter, text, seed, format, whole, row_align))
        return false;
    unsigned char *in = to_device(band.in, band.in_size);
    unsigned char *out = to_device(band.got, band.out_size);
    unsigned char *accumulated = band.state ? to_device(band.state, band.state_size) : NULL;
    unsigned char *payload = calloc(1, band.payload_bytes + TEST_MARGIN);
    assert_non_null(payload);
    memset(payload + band.payload_bytes, TEST_PAINT, TEST_MARGIN);
    unsigned char *extracted = to_device(payload, band.payload_bytes + TEST_MARGIN);
    gf_band piece = {band.from, band.out, accumulated ? accumulated + TEST_MARGIN : NULL,
                     extracted};
    piece.in.data = in + (band.from.data - band.in);
    piece.out.data = out + (band.out.data - band.got);
    void *scratch = NULL;
    const size_t scratch_bytes =
        filter->cuda->scratch_bytes ? filter->cuda->scratch_bytes(band.plan, band.from.rows) : 0;
    must(cudaMalloc(&scratch, scratch_bytes + 1));
    gf_error error = {0};
    if (filter->cuda->launch(band.plan, &piece, scratch, NULL, &error))
        fail_msg("%s", error.message);
    must(cudaDeviceSynchronize());
    must(cudaMemcpy(band.got, out, band.out_size, cudaMemcpyDeviceToHost));
    must(cudaMemcpy(payload, extracted, band.payload_bytes + TEST_MARGIN, cudaMemcpyDeviceToHost));
    unsigned char *state = malloc(band.state_size + 1);
    assert_non_null(state);
    if (accumulated)
        must(cudaMemcpy(state, accumulated, band.state_size, cudaMemcpyDeviceToHost));
    must(cudaFree(in));
    must(cudaFree(out));
    must(cudaFree(accumulated));
    must(cudaFree(extracted));
    must(cudaFree(scratch));
    assert_true(
        test_painted(payload + band.payload_bytes, payload + band.payload_bytes + TEST_MARGIN));
    test_band_check(&band, "cuda", state, payload, 1, 0);
    free(state);
    free(payload);
    test_band_free(&band);
    return true;
}

#else

bool test_band_on_device(const gf_filter *filter, const char *text, uint64_t seed, gf_format format,
                         bool whole, size_t row_align) {
    (void)filter, (void)text, (void)seed, (void)format, (void)whole, (void)row_align;
    fail_msg("%s", "built without CUDA");
    return false;
}

#endif
