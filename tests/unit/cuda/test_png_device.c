/* PNG in device memory: files have the bytes that the CPU writes. */
#include "job.h"
#include "png_both.h"

#ifdef GF_WITH_CUDA
#include "cuda_util.h"

/* ---- images ---------------------------------------------------------------------------------- */

typedef enum content {
    NOISE = TEST_UNIFORM,
    EXTREMES = TEST_EXTREMES,
    FLAT = TEST_FLAT,
    WAVE = TEST_SMOOTH,
    PHOTOGRAPH = TEST_CONTENT_COUNT, /* a slow wave with noise of a random amplitude */
    RUNS,                            /* constant bytes between random ones */
    TILES,                           /* a random pattern, again and again */
    MARGINS,                         /* a photograph between flat areas */
    STEPS, /* small steps, rarely large: codewords of the maximum length */
    CONTENT_COUNT
} content;

static uint64_t run_length(test_random *random) {
    switch (test_below(random, 4)) {
    case 0:
        return 1 + test_below(random, 30);
    case 1:
        return 200 + test_below(random, 400);
    case 2:
        return 258 * (1 + test_below(random, 4)) + test_below(random, 6);
    default:
        return test_below(random, 40000);
    }
}

static void fill(const test_image *image, content kind, test_random *random) {
    const gf_format *format = &image->format;
    const size_t row = gf_row_bytes(format);
    const uint64_t amplitude = UINT64_C(1) << test_below(random, 8);
    const uint64_t period = 1 + test_below(random, 300), slope = 1 + test_below(random, 4);
    uint64_t left = 0;
    unsigned char value = 0, tile[300];
    for (size_t i = 0; i < sizeof tile; i++)
        tile[i] = (unsigned char)test_next(random);
    if (kind < PHOTOGRAPH) {
        test_fill(image, (test_content)kind, random);
        return;
    }
    for (uint64_t y = 0; y < format->height; y++) {
        unsigned char *to = gf_row(&image->rows, y);
        for (size_t i = 0; i < row; i++) {
            const bool margin = kind == MARGINS && (i < row / 3 || y % 64 < 8);
            if (kind == RUNS && left-- == 0) {
                left = run_length(random);
                value = (unsigned char)(test_below(random, 3) ? test_next(random) : 0);
            }
            if (kind == STEPS)
                value += (unsigned char)__builtin_ctzll(test_next(random) | UINT64_C(1) << 40);
            to[i] = kind == RUNS || kind == STEPS ? value
                    : kind == TILES               ? tile[(i + y * row) % period]
                    : margin
                        ? 200
                        : (unsigned char)((i + y) * slope / 16 + test_below(random, amplitude));
        }
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

typedef enum output { ON_DEVICE, ON_HOST, OF_ENGINE, OUTPUT_COUNT } output;

/* Check that libpng reads the image from a file. */
static void check_reading(const png_bytes *file, const test_image *image) {
    const size_t row = gf_row_bytes(&image->format);
    outcome read = png_oracle(file, file->size, NULL);
    assert_int_equal(read.error.status, GF_OK);
    assert_true(gf_format_equal(&read.format, &image->format));
    for (uint64_t y = 0; y < image->format.height; y++)
        assert_memory_equal(read.pixels + y * row, image->rows.data + y * image->stride, row);
    clear(&read);
}

/* Encode images of one format and compare their files with the CPU's. where: receives the files. */
static void check_images(gf_engine *engine, gf_format format, uint64_t count,
                         const content *contents, output where, test_random *random) {
    enum { MAX = 8, AROUND = 100 };
    test_image images[MAX];
    gf_pixels in[MAX];
    gf_buffer out[MAX];
    unsigned char *from[MAX], *to[MAX];
    const size_t bound = gf_png_bound(&format), padding = (size_t)test_below(random, 2) * 37;
    const size_t shift = (size_t)test_below(random, 2) * gf_type_bytes(format.type);
    assert_true(count <= MAX && bound);
    AUTO(free) unsigned char *got = test_alloc(bound + 2 * AROUND);
    for (uint64_t i = 0; i < count; i++) {
        images[i] = test_image_new(format, padding);
        fill(&images[i], contents[i], random);
        from[i] = device_alloc(images[i].size + shift);
        must(cudaMemcpy(from[i] + shift, images[i].memory, images[i].size, cudaMemcpyHostToDevice));
        in[i] = (gf_pixels){from[i] + shift + (images[i].rows.data - images[i].memory),
                            images[i].stride};
        memset(got, TEST_PAINT, bound + 2 * AROUND);
        to[i] = (where == ON_DEVICE ? device_alloc : test_alloc)(bound + 2 * AROUND);
        must(cudaMemcpy(to[i], got, bound + 2 * AROUND, cudaMemcpyDefault));
        out[i] = (gf_buffer){where == OF_ENGINE ? NULL : to[i] + AROUND, bound};
    }
    must(cudaDeviceSynchronize());
    assert_ok(gf_encode_png_device(engine, &format, count, in, out, NULL, &why));
    for (uint64_t i = 0; i < count; i++) {
        size_t size;
        AUTO(free) unsigned char *want = test_png(&images[i], &size);
        if (where == OF_ENGINE && out[i].size <= bound)
            memcpy(to[i] + AROUND, out[i].data, out[i].size);
        must(cudaMemcpy(got, to[i], bound + 2 * AROUND, cudaMemcpyDefault));
        size_t k = 0;
        while (k < size && k < out[i].size && got[AROUND + k] == want[k])
            k++;
        if (k < size || out[i].size != size)
            fail_msg(
                "%llu x %llu x %u %s, image %llu of %llu, content %d: %zu bytes instead of "
                "%zu, the first difference at %zu",
                (unsigned long long)format.width, (unsigned long long)format.height,
                format.channels, gf_type_name(format.type), (unsigned long long)i,
                (unsigned long long)count, (int)contents[i], out[i].size, size, k);
        assert_true(test_painted(got, got + AROUND));
        assert_true(test_painted(got + AROUND + size, got + bound + 2 * AROUND));
        check_reading(&(png_bytes){want, size}, &images[i]);
        test_image_free(&images[i]);
        must(cudaFree(from[i]));
        if (where != ON_DEVICE)
            free(to[i]);
        else
            must(cudaFree(to[i]));
    }
}

static void check_one(gf_engine *engine, gf_format format, content kind, output where,
                      test_random *random) {
    check_images(engine, format, 1, &kind, where, random);
}

/* ---- equality -------------------------------------------------------------------------------- */

TEST(writes_the_bytes_of_the_cpu) {
    test_needs_gpu();
    AUTO(engine) gf_engine *engine = cuda_engine();
    const uint64_t seed = test_environment("GF_TEST_SEED", 2025), rounds = test_rounds(300);
    for (uint64_t round = 0; round < rounds; round++) {
        test_random random = test_seeded(seed + round);
        content contents[8];
        gf_format format = test_format(&random);
        const uint64_t count = test_below(&random, 4) ? 1 : 1 + test_below(&random, 8);
        if (format.type == GF_F32)
            format.type = GF_U8;
        format.alpha = format.channels % 2 == 0;
        if (test_below(&random, 3) == 0) { /* several strips */
            format.width = 1 + test_below(&random, 3000);
            format.height = 1 + test_below(&random, 400);
        }
        for (size_t i = 0; i < 8; i++)
            contents[i] = (content)test_below(&random, CONTENT_COUNT);
        check_images(engine, format, count, contents, (output)test_below(&random, OUTPUT_COUNT),
                     &random);
    }
}

/* Sizes at the edges of chunks (16 KiB), blocks and strips (256 KiB of filtered bytes), pieces of
 * the probe (1 KiB) and windows (1024 strips). */
TEST(covers_all_edges) {
    test_needs_gpu();
    static const gf_format formats[] = {
        {1, 1, 1, GF_U8, false},      {1, 1, 4, GF_U16, true},       {1, 131072, 1, GF_U8, false},
        {1, 300001, 1, GF_U8, false}, {16383, 1, 1, GF_U8, false},   {16384, 1, 1, GF_U8, false},
        {16382, 3, 1, GF_U8, false},  {262143, 2, 1, GF_U8, false},  {262142, 1, 1, GF_U8, false},
        {262144, 3, 1, GF_U8, false}, {262145, 2, 1, GF_U8, false},  {131072, 2, 2, GF_U8, true},
        {400000, 3, 3, GF_U8, false}, {70001, 3, 4, GF_U16, true},   {1023, 257, 1, GF_U8, false},
        {1024, 256, 1, GF_U8, false}, {1025, 255, 1, GF_U8, false},  {511, 513, 1, GF_U16, false},
        {341, 300, 3, GF_U8, false},  {4000, 3000, 3, GF_U8, false}, {170000, 1040, 2, GF_U8, true},
        {2, 65536, 3, GF_U8, false},  {3, 87382, 4, GF_U16, true},
    };
    AUTO(engine) gf_engine *engine = cuda_engine();
    test_random random = test_seeded(7);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        for (int kind = 0; kind < CONTENT_COUNT; kind++)
            if (formats[i].width * formats[i].height < 10000000 || kind == PHOTOGRAPH)
                check_one(engine, formats[i], (content)kind, (output)(kind % OUTPUT_COUNT),
                          &random);
    /* Two images in three windows: the memory for files grows between them. */
    const content contents[] = {PHOTOGRAPH, MARGINS};
    check_images(engine, (gf_format){170000, 1040, 2, GF_U8, true}, 2, contents, OF_ENGINE,
                 &random);
}

/* ---- errors ---------------------------------------------------------------------------------- */

TEST(rejects_wrong_arguments) {
    test_needs_gpu();
    AUTO(engine) gf_engine *engine = cuda_engine();
    const gf_format format = {300, 200, 3, GF_U8, false}, real = {300, 200, 3, GF_F32, false};
    AUTO(device) unsigned char *image = device_alloc(900 * 200);
    unsigned char file[1000];
    must(cudaMemset(image, 1, 900 * 200));
    gf_pixels in = {image, 900};
    gf_buffer out = {file, sizeof file};
    assert_int_equal(gf_png_bound(&real), 0);
    assert_error(gf_encode_png_device(engine, &real, 1, &in, &out, NULL, &why), GF_USAGE, "f32");
    in.stride = 899;
    assert_int_equal(gf_encode_png_device(engine, &format, 1, &in, &out, NULL, &why), GF_USAGE);
    in.stride = 901;
    assert_error(gf_encode_png_device(engine, &format, 1, &in, &out, NULL, &why), GF_USAGE,
                 "its memory ends after 180000 bytes");
    in = (gf_pixels){file, 900};
    assert_error(gf_encode_png_device(engine, &format, 1, &in, &out, NULL, &why), GF_USAGE,
                 "host memory");
    in = (gf_pixels){NULL, 900};
    assert_int_equal(gf_encode_png_device(engine, &format, 1, &in, &out, NULL, &why), GF_USAGE);
    in = (gf_pixels){image, 900};
    assert_int_equal(gf_encode_png_device(engine, &format, 1, &in, NULL, NULL, &why), GF_USAGE);
    assert_ok(gf_encode_png_device(engine, &format, 0, NULL, NULL, NULL, &why));
    out = (gf_buffer){file, 100};
    assert_error(gf_encode_png_device(engine, &format, 1, &in, &out, NULL, &why), GF_USAGE,
                 "gf_png_bound");
    out = (gf_buffer){file, sizeof file};
    assert_ok(gf_encode_png_device(engine, &format, 1, &in, &out, NULL, &why));
    assert_memory_equal(file, "\x89PNG", 4);
    AUTO(stream) cudaStream_t stream = new_stream();
    cudaGraph_t graph;
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    assert_error(gf_encode_png_device(engine, &format, 1, &in, &out, stream, &why), GF_USAGE,
                 "captured");
    must(cudaStreamEndCapture(stream, &graph));
    must(cudaGraphDestroy(graph));
}

#endif

/* Without CUDA or a device, the call fails with a reason. */
TEST(absent_devices_are_errors) {
    if (test_has_cuda())
        test_skip("there is a device");
    const gf_format format = {8, 8, 1, GF_U8, false};
    unsigned char image[64] = {0}, file[64];
    AUTO(engine) gf_engine *engine = test_engine(&(gf_engine_options){.backend = "auto"});
    assert_error(gf_encode_png_device(engine, &format, 1, &(gf_pixels){image, 8},
                                      &(gf_buffer){file, sizeof file}, NULL, &why),
                 GF_NO_BACKEND, "cuda:");
}

int main(void) {
    return test_main(NULL);
}
