// Image contents, generated on the device, and comparisons that are too large for the host.
#include "cuda_bench.cuh"

#include "hist/hist.h"

#include <string.h>

const char *bench_content_name(BenchContent content) {
    static const char *const names[] = {"photo", "uniform",  "flat 100", "flat 125", "1 %",
                                        "100 %", "document", "1 in 50",  "differ"};
    return names[content];
}

static __device__ __forceinline__ uint32_t mix(uint32_t x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

// Return an integer from 0 to 255 as a float.
static __device__ float level(BenchContent content, uint32_t x, uint32_t y, uint32_t c,
                              uint32_t random) {
    const uint32_t byte = random & 255;
    switch (content) {
    case BENCH_PHOTO: {
        const float wave = 50.0f * sinf(static_cast<float>(x) * 0.011f + static_cast<float>(c)) +
                           40.0f * sinf(static_cast<float>(x) * 0.0037f) +
                           20.0f * sinf(static_cast<float>(y) * 0.15f);
        const float noise = static_cast<float>((byte & 15) + (byte >> 4)) - 15.0f;
        const float value = rintf(128.0f + wave + 0.5f * noise);
        return value < 0.0f ? 0.0f : value > 255.0f ? 255.0f : value;
    }
    case BENCH_FLAT_100:
        return 100.0f;
    case BENCH_FLAT_125:
        return 125.0f;
    case BENCH_RARE: { // bin 3 of 8 is 96 to 127
        const uint32_t other = byte % 224;
        return random >> 8 < (1u << 24) / 100 ? 100.0f
                                              : static_cast<float>(other < 96 ? other : other + 32);
    }
    case BENCH_FULL:
        return static_cast<float>(96 + (byte & 31));
    case BENCH_DOCUMENT:
        return y % 16 == 5 ? static_cast<float>(byte) : x / 997 % 3 == 1 ? 205.0f : 235.0f;
    default:
        return static_cast<float>(byte);
    }
}

static __device__ bool uniform(BenchContent content) {
    return content == BENCH_UNIFORM || content == BENCH_SOME_DIFFER || content == BENCH_ALL_DIFFER;
}

template <typename T>
static __device__ T sample(BenchContent content, uint32_t x, uint32_t y, uint32_t c,
                           uint32_t random) {
    if (uniform(content) && sizeof(T) > 1)
        return sizeof(T) == 2 ? static_cast<T>(random & 65535)
                              : static_cast<T>(static_cast<float>(random >> 8) * 0x1p-24f);
    const float v = level(content, x, y, c, random);
    // u16 and f32: add bits below the resolution of u8.
    const float rest = content == BENCH_PHOTO ? static_cast<float>(random >> 24) : 0.0f;
    return sizeof(T) == 1   ? static_cast<T>(v)
           : sizeof(T) == 2 ? static_cast<T>(v * 256.0f + rest)
                            : static_cast<T>(v / 256.0f + rest * 0x1p-16f);
}

// Return a value that differs from `value`.
template <typename T> static __device__ T other(T value, uint32_t random) {
    if (sizeof(T) == 4)
        return static_cast<T>(value < 0.5f ? value + 0.25f : value - 0.25f);
    const uint32_t max = sizeof(T) == 1 ? 255 : 65535;
    return static_cast<T>(static_cast<uint32_t>(value) + 1 + random % max);
}

// Fill the rows. one_in: change one of this many samples at random; 0: none.
template <typename T>
static __global__ void fill(unsigned char *in, size_t stride, uint64_t rows, uint64_t samples,
                            uint32_t channels, BenchContent content, uint32_t seed,
                            uint32_t one_in) {
    for (uint64_t y = blockIdx.x; y < rows; y += gridDim.x) {
        const uint32_t row = static_cast<uint32_t>(y % BENCH_PERIOD);
        T *to = reinterpret_cast<T *>(in + y * stride);
        for (uint64_t i = threadIdx.x; i < samples; i += blockDim.x) {
            const uint32_t at = static_cast<uint32_t>(i);
            const uint32_t random = mix(mix(at + seed) ^ (row * 0x9e3779b9u));
            const T value = sample<T>(content, at / channels, row, at % channels, random);
            const uint32_t pick = mix(random + 1 + at);
            to[i] = one_in && (pick >> 16) % one_in == 0 ? other(value, pick & 0xffff) : value;
        }
    }
}

void bench_fill(const BenchCase *bench) {
    const BenchContent content = bench->row->content;
    const bool compared = strcmp(bench->row->filter, "compare") == 0;
    for (uint32_t i = 0; i < bench->plan->inputs; i++) {
        const uint32_t seed = compared ? 0 : i * 77777u;
        const uint32_t one_in = i == 0                         ? 0
                                : content == BENCH_ALL_DIFFER  ? 1
                                : content == BENCH_SOME_DIFFER ? 50
                                                               : 0;
        unsigned char *in = bench->in + (bench->input(i) - bench->in);
        gf_for_type(bench->row->type, [&](auto sample) {
            fill<decltype(sample)><<<132 * 16, 256>>>(
                in, bench->in_stride, bench->rows, gf_row_samples(&bench->format()),
                bench->format().channels, content, seed, one_in);
        });
    }
}

BenchMemory bench_packed(const BenchCase *bench, uint32_t input) {
    const size_t row = gf_row_bytes(&bench->format());
    BenchMemory memory = bench_memory(row * bench->rows);
    if (memory)
        cudaMemcpy2D(memory.get(), row, bench->input(input), bench->in_stride, row, bench->rows,
                     cudaMemcpyDeviceToDevice);
    return memory;
}

// ---- repetition ---------------------------------------------------------------------------------

static __global__ void rows_repeat(const unsigned char *out, size_t stride, uint64_t rows,
                                   size_t bytes, unsigned *different) {
    for (uint64_t y = blockIdx.x; y < rows; y += gridDim.x)
        for (size_t i = threadIdx.x; i < bytes; i += blockDim.x)
            if (out[y * stride + i] != out[y % BENCH_PERIOD * stride + i])
                *different = 1;
}

template <typename T>
static __global__ void payload_repeats(const uint64_t *positions, const T *values, uint64_t count,
                                       uint64_t total, uint64_t step, unsigned *different) {
    const uint64_t threads = static_cast<uint64_t>(gridDim.x) * blockDim.x;
    for (uint64_t i = count + static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
         i < total; i += threads)
        if (positions[i] != positions[i - count] + step || values[i] != values[i - count])
            *different = 1;
}

static bool same(const BenchMemory &different) {
    return bench_download<unsigned>(different.get(), 1)[0] == 0 &&
           cudaGetLastError() == cudaSuccess;
}

bool bench_rows_repeat(const BenchCase *bench) {
    BenchMemory different = bench_memory(sizeof(unsigned));
    const gf_plan *plan = bench->plan;
    unsigned *found = reinterpret_cast<unsigned *>(different.get());
    if (plan->out.width)
        rows_repeat<<<132 * 16, 256>>>(bench->out, bench->out_stride, bench->rows,
                                       gf_row_bytes(&plan->out), found);
    rows_repeat<<<132 * 16, 256>>>(bench->out + bench->rows * bench->out_stride, plan->record,
                                   bench->rows, plan->record, found);
    return same(different);
}

bool bench_payload_repeats(const BenchCase *bench, const uint64_t *positions, const void *values,
                           uint64_t count) {
    BenchMemory different = bench_memory(sizeof(unsigned));
    const uint32_t measured = reinterpret_cast<const gf_hist_plan *>(bench->plan)->measured;
    gf_for_type(bench->row->type, [&](auto sample) {
        payload_repeats<<<132 * 16, 256>>>(positions, static_cast<const decltype(sample) *>(values),
                                           count, count * bench->repeats(),
                                           BENCH_PERIOD * bench->row->width * measured,
                                           reinterpret_cast<unsigned *>(different.get()));
    });
    return same(different);
}
