/* Decoding of PNG files to device memory: verdicts, messages and pixels are those of the CPU. */
#include "job.h"

#include <zlib.h>

#include "engine/engine.h"
#include "io/png/png.h"

#include "png_util.h"

#ifdef GF_WITH_CUDA
#include "cuda_util.h"

/* ---- files ----------------------------------------------------------------------------------- */

static uint32_t get_big32(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void put_big32(unsigned char *p, uint32_t v) {
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(v >> (24 - 8 * i));
}

/* Return a file of our encoder. */
static png_bytes own_file(gf_format format, test_random *random) {
    png_bytes file;
    AUTO(image) test_image image = test_image_new(format, 0);
    test_fill(&image, (test_content)test_below(random, TEST_CONTENT_COUNT), random);
    file.data = test_png(&image, &file.size);
    return file;
}

/* Return a file of another encoder: any kind, or mostly a kind that the device decodes. */
static png_bytes foreign_file(test_random *random) {
    static const int colors[] = {0, 2, 4, 6, 3}, depths[] = {8, 16, 1, 2, 4};
    const bool plain = test_below(random, 8) != 0;
    png_bytes file;
    png_spec spec = {.width = (uint32_t)test_width(random),
                     .height = (uint32_t)test_height(random),
                     .color = colors[test_below(random, plain ? 4 : 5)],
                     .seed = (uint32_t)test_next(random),
                     .filter = (png_rows)test_below(random, PNG_ROWS_RANDOM + 1),
                     .level = (int)test_below(random, 11) - 1,
                     .strategy = (int)test_below(random, 5),
                     .idat_bytes = test_below(random, 3) ? 0 : 1 + test_below(random, 3000),
                     .interlaced = !plain && test_below(random, 2),
                     .transparent = !plain && test_below(random, 2)};
    if (test_below(random, 8) == 0) {
        spec.flush = (int)(1 + test_below(random, 3));
        spec.flush_bytes = 1 + test_below(random, 500);
    }
    if (test_below(random, 16) == 0)
        spec.window_bits = (int)(9 + test_below(random, 6));
    do
        spec.depth = depths[test_below(random, plain ? 2 : 5)];
    while ((spec.depth < 8 && spec.color != 0 && spec.color != 3) ||
           (spec.depth == 16 && spec.color == 3));
    png_make(&spec, &file, NULL, NULL);
    return file;
}

/* Store the Adler-32 that belongs to the output of a damaged stream, if it has an end. */
static void repair_adler(unsigned char *stream, size_t size) {
    enum { PART = 1 << 16 };
    AUTO(free) unsigned char *part = test_alloc(PART);
    z_stream zlib = {.next_in = stream + 2, .avail_in = (uInt)size - 2};
    uLong adler = 1;
    int result = Z_OK;
    assert_int_equal(inflateInit2(&zlib, -15), Z_OK);
    while (result == Z_OK) {
        zlib.next_out = part;
        zlib.avail_out = PART;
        result = inflate(&zlib, Z_NO_FLUSH);
        adler = adler32(adler, part, PART - zlib.avail_out);
    }
    if (result == Z_STREAM_END && zlib.avail_in >= 4)
        put_big32(zlib.next_in, (uint32_t)adler);
    inflateEnd(&zlib);
}

/* Change some bytes of the stream of a file, and repair its checksums. */
static void damage(png_bytes *file, test_random *random) {
    AUTO(free) unsigned char *stream = test_alloc(file->size);
    size_t size = 0, used = 0;
    for (size_t at = 8; at + 12 <= file->size; at += 12 + get_big32(file->data + at))
        if (memcmp(file->data + at + 4, "IDAT", 4) == 0) {
            memcpy(stream + size, file->data + at + 8, get_big32(file->data + at));
            size += get_big32(file->data + at);
        }
    for (uint64_t k = test_below(random, 4) + 1; k > 0 && size > 6; k--) {
        /* Half of the changes are in the first block header. */
        const size_t range = test_below(random, 2) ? size - 2 : size < 100 ? size - 2 : 98;
        unsigned char *byte = stream + 2 + test_below(random, range);
        if (test_below(random, 2))
            *byte ^= (unsigned char)(1u << test_below(random, 8));
        else
            *byte = (unsigned char)test_next(random);
    }
    if (size > 6 && test_below(random, 8))
        repair_adler(stream, size);
    for (size_t at = 8; at + 12 <= file->size; at += 12 + get_big32(file->data + at)) {
        const size_t length = get_big32(file->data + at);
        if (memcmp(file->data + at + 4, "IDAT", 4) == 0) {
            memcpy(file->data + at + 8, stream + used, length);
            used += length;
            put_big32(file->data + at + 8 + length,
                      (uint32_t)crc32(0, file->data + at + 4, (uInt)length + 4));
        }
    }
}

/* ---- comparison ------------------------------------------------------------------------------ */

typedef struct counts {
    uint64_t files, accepted;
} counts;

/* Read a file as the CPU does. Return NULL with the error for a file that fails. */
static void *cpu_pixels(const png_bytes *file, gf_error *error) {
    gf_source *source;
    void *pixels = NULL;
    error->status = gf_png_memory_source(file->data, file->size, "PNG", &source, error);
    if (error->status)
        return NULL;
    error->status = gf_source_read_all(source, "PNG", "the image", UINT64_MAX, 0, &pixels, error);
    source->ops->close(source);
    return error->status ? NULL : pixels;
}

/* A file of a call, and its place in the memory of all images. */
typedef struct placed_file {
    size_t first, at, end; /* margin, image, end of the margin after it */
} placed_file;

/* Compare the result for a file with that of the CPU. got: the memory of all images. */
static void check_file(const gf_buffer *file, const gf_format *format, size_t stride,
                       const placed_file *place, const gf_error *error, const unsigned char *got,
                       uint64_t seed, counts *total) {
    const png_bytes bytes = {file->data, file->size};
    const size_t row = gf_row_bytes(format);
    gf_error want = {0};
    AUTO(free) unsigned char *pixels = cpu_pixels(&bytes, &want);
    if (error->status != want.status || (want.status && strcmp(error->message, want.message) != 0))
        fail_msg("seed %llu: status %d (%s) instead of %d (%s)", (unsigned long long)seed,
                 (int)error->status, error->message, (int)want.status, want.message);
    for (uint64_t y = 0; y < format->height; y++) {
        const unsigned char *at = got + place->at + y * stride;
        if (pixels && memcmp(at, pixels + y * row, row) != 0)
            fail_msg("seed %llu: row %llu of %llu x %llu x %u differs", (unsigned long long)seed,
                     (unsigned long long)y, (unsigned long long)format->width,
                     (unsigned long long)format->height, format->channels);
        assert_true(
            test_painted(at + row, y + 1 < format->height ? at + stride : got + place->end));
    }
    assert_true(test_painted(got + place->first, got + place->at));
    total->files++;
    total->accepted += !want.status;
}

/* Return whether the device must decode a file: the CPU would hide its errors. */
static bool is_for_device(const gf_buffer *file) {
    gf_png_scan scan;
    return gf_png_scan_file(file->data, file->size, &scan);
}

/* Decode files on the device and on the CPU, and free them. Files without a header are left out.
 * valid: all files are, and the device decodes all that it can. */
static void check_files(gf_engine *engine, png_bytes *list, size_t count, bool valid, uint64_t seed,
                        test_random *random, counts *total) {
    enum { MAX = 512, MARGIN = 64 };
    static gf_buffer files[MAX];
    static gf_format formats[MAX];
    static gf_out_pixels out[MAX];
    static gf_error errors[MAX];
    static placed_file places[MAX];
    size_t used = 0, size = 0;
    uint64_t left = gf_png_count_left(0);
    assert_true(count <= MAX);
    for (size_t i = 0; i < count; i++) {
        if (gf_png_format(list[i].data, list[i].size, &formats[used], NULL)) {
            free(list[i].data);
            continue;
        }
        const size_t row = gf_row_bytes(&formats[used]);
        const size_t stride = row + (test_below(random, 2) ? test_below(random, 40) : 0);
        const size_t at = size + MARGIN + (test_below(random, 2) ? test_below(random, 4) : 0);
        places[used] = (placed_file){size, at, at + stride * formats[used].height + MARGIN};
        size = gf_align(places[used].end);
        out[used].stride = stride;
        files[used++] = (gf_buffer){list[i].data, list[i].size};
    }
    AUTO(device) unsigned char *memory = device_alloc(size + 1);
    must(cudaMemset(memory, TEST_PAINT, size + 1));
    must(cudaDeviceSynchronize());
    for (size_t i = 0; i < used; i++)
        out[i].data = memory + places[i].at;
    if (gf_decode_png_device(engine, used, files, formats, out, NULL, errors, &why))
        fail_msg("seed %llu: %s", (unsigned long long)seed, why.message);
    for (size_t i = 0; i < used; i++)
        left += !is_for_device(&files[i]);
    if (valid && gf_png_count_left(0) != left)
        fail_msg("seed %llu: the device has left %llu of %zu files to the CPU, too",
                 (unsigned long long)seed, (unsigned long long)(gf_png_count_left(0) - left), used);
    AUTO(free) unsigned char *got = test_alloc(size + 1);
    must(cudaMemcpy(got, memory, size, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < used; i++) {
        check_file(&files[i], &formats[i], out[i].stride, &places[i], &errors[i], got, seed, total);
        free((void *)(uintptr_t)files[i].data);
    }
}

TEST(decodes_all_kinds) {
    gf_device_decodes_always = true;
    test_needs_gpu();
    AUTO(engine) gf_engine *engine = cuda_engine();
    const uint64_t seed = test_environment("GF_TEST_SEED", 4711), rounds = test_rounds(80);
    counts total = {0, 0};
    for (uint64_t round = 0; round < rounds; round++) {
        test_random random = test_seeded(seed + round);
        png_bytes files[8];
        for (size_t i = 0; i < 8; i++) {
            gf_format format = test_format(&random);
            format.type = format.type == GF_F32 ? GF_U16 : format.type;
            format.alpha = format.channels % 2 == 0;
            if (test_below(&random, 3) == 0)
                format = (gf_format){1 + test_below(&random, 2000), 1 + test_below(&random, 300),
                                     format.channels, format.type, format.channels % 2 == 0};
            files[i] = test_below(&random, 3) ? foreign_file(&random) : own_file(format, &random);
        }
        check_files(engine, files, 8, true, seed + round, &random, &total);
    }
    assert_int_equal(total.accepted, total.files);
}

/* Each file is damaged in several ways. */
TEST(judges_damaged_files_as_the_cpu) {
    gf_device_decodes_always = true;
    test_needs_gpu();
    enum { FILES = 512, WAYS = 8 };
    AUTO(engine) gf_engine *engine = cuda_engine();
    const uint64_t seed = test_environment("GF_TEST_SEED", 815), rounds = test_rounds(10);
    counts total = {0, 0};
    for (uint64_t round = 0; round < rounds; round++) {
        test_random random = test_seeded(seed + round);
        png_bytes files[FILES];
        for (size_t i = 0; i < FILES; i += WAYS) {
            const gf_format format = {1 + test_below(&random, 300), 1 + test_below(&random, 30), 3,
                                      GF_U8, false};
            const png_bytes whole =
                test_below(&random, 4) ? foreign_file(&random) : own_file(format, &random);
            for (size_t k = 0; k < WAYS; k++) {
                png_bytes *file = &files[i + k];
                *file = (png_bytes){malloc(whole.size), whole.size};
                assert_non_null(file->data);
                memcpy(file->data, whole.data, whole.size);
                damage(file, &random);
                if (test_below(&random, 30) == 0)
                    file->size -= test_below(&random, file->size);
            }
            free(whole.data);
        }
        check_files(engine, files, FILES, false, seed + round, &random, &total);
    }
    print_message("%llu of %llu damaged files are valid\n", (unsigned long long)total.accepted,
                  (unsigned long long)total.files);
    assert_true(total.accepted > total.files / 100 && total.accepted < total.files);
}

/* Few files are decoded by the CPU, with the same result. */
TEST(few_files_are_left_to_the_cpu) {
    test_needs_gpu();
    AUTO(engine) gf_engine *engine = cuda_engine();
    counts total = {0, 0};
    for (uint64_t seed = 0; seed < 10; seed++) {
        test_random random = test_seeded(seed);
        png_bytes files[3];
        for (size_t i = 0; i < 3; i++) {
            files[i] = foreign_file(&random);
            if (i == 1)
                damage(&files[i], &random);
        }
        check_files(engine, files, 3, false, seed, &random, &total);
    }
}

/* Images and streams larger than the segments, rings and groups of the kernels. */
TEST(decodes_large_files) {
    gf_device_decodes_always = true;
    test_needs_gpu();
    static const gf_format formats[] = {{1500, 1000, 3, GF_U8, false},
                                        {30001, 7, 4, GF_U16, true},
                                        {5, 20001, 1, GF_U8, false},
                                        {300000, 3, 1, GF_U8, false}};
    AUTO(engine) gf_engine *engine = cuda_engine();
    test_random random = test_seeded(3);
    counts total = {0, 0};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        png_bytes files[4];
        for (size_t k = 0; k < 3; k++) {
            const png_spec spec = {.width = (uint32_t)formats[i].width,
                                   .height = (uint32_t)formats[i].height,
                                   .color = formats[i].channels == 1   ? 0
                                            : formats[i].channels == 3 ? 2
                                                                       : 6,
                                   .depth = formats[i].type == GF_U8 ? 8 : 16,
                                   .filter = k == 0 ? PNG_ROWS_PAETH : PNG_ROWS_CYCLE,
                                   .level = k == 1 ? -1 : 6};
            png_make(&spec, &files[k], NULL, NULL);
        }
        files[3] = own_file(formats[i], &random);
        check_files(engine, files, 4, true, i, &random, &total);
    }
    assert_int_equal(total.accepted, total.files);
}

TEST(rejects_wrong_arguments) {
    test_needs_gpu();
    AUTO(engine) gf_engine *engine = cuda_engine();
    test_random random = test_seeded(1);
    gf_format format = {300, 200, 3, GF_U8, false};
    AUTO(free) png_bytes file = own_file(format, &random);
    AUTO(device) unsigned char *image = device_alloc(900 * 200);
    gf_buffer files[] = {{file.data, file.size}, {file.data, file.size / 2}};
    gf_format formats[] = {format, format};
    gf_out_pixels out[] = {{image, 900}, {image, 900}};
    assert_ok(gf_decode_png_device(engine, 1, files, formats, out, NULL, NULL, &why));
    assert_ok(gf_decode_png_device(engine, 0, NULL, NULL, NULL, NULL, NULL, &why));
    assert_int_equal(gf_decode_png_device(engine, 2, files, formats, out, NULL, NULL, &why),
                     GF_FAILED);
    assert_string_equal(why.message, "PNG: the PNG ends too early; get a complete copy");
    out[0].stride = 899;
    assert_int_equal(gf_decode_png_device(engine, 1, files, formats, out, NULL, NULL, &why),
                     GF_USAGE);
    out[0].stride = 901;
    assert_error(gf_decode_png_device(engine, 1, files, formats, out, NULL, NULL, &why), GF_USAGE,
                 "its memory ends after 180000 bytes");
    out[0] = (gf_out_pixels){&format, 900};
    assert_int_equal(gf_decode_png_device(engine, 1, files, formats, out, NULL, NULL, &why),
                     GF_USAGE);
    out[0] = (gf_out_pixels){image, 900};
    formats[0].height = 100;
    assert_error(gf_decode_png_device(engine, 1, files, formats, out, NULL, NULL, &why), GF_USAGE,
                 "gf_png_format");
    files[0].data = NULL;
    assert_int_equal(gf_decode_png_device(engine, 1, files, formats, out, NULL, NULL, &why),
                     GF_USAGE);
}
#endif

/* Only some tests let the device decode files that the CPU would decode faster. */
static int use_fastest(void **state) {
    gf_device_decodes_always = false;
    return 0;
}

/* Without CUDA or a device, the call fails with a reason. */
TEST(absent_devices_are_errors) {
    if (test_has_cuda())
        test_skip("there is a device");
    const gf_format format = {8, 8, 1, GF_U8, false};
    unsigned char image[64] = {0};
    AUTO(engine) gf_engine *engine = test_engine(&(gf_engine_options){.backend = "auto"});
    assert_int_equal(gf_decode_png_device(engine, 1, &(gf_buffer){image, sizeof image}, &format,
                                          &(gf_out_pixels){image, 8}, NULL, NULL, &why),
                     GF_NO_BACKEND);
}

int main(void) {
    return test_main(&(test_fixture){.before = use_fastest});
}
