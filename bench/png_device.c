/* Benchmark of PNG in device memory.
 *
 * usage: bench-png-device [-d] [-r ROUNDS] [-n IMAGES] FILE...      (defaults: 9 rounds, 1 image)
 *
 * A FILE that is a PNG is decoded IMAGES times, from host memory to images in device memory. Any
 * other image is copied to IMAGES places in device memory, and encoded from there to files in
 * device memory. -d: decode on the device even if the CPU is expected to be faster. For each file:
 * wall time per call, samples per second, the size of the files as a share of the samples, and the
 * rate as a share of a device-to-device copy of the same samples. Medians over the rounds. */
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/engine.h"

enum { MAX_ROUNDS = 1001, MAX_IMAGES = 4096 };

static void must(cudaError_t result, const char *what) {
    if (result == cudaSuccess)
        return;
    fprintf(stderr, "bench-png-device: %s: %s\n", what, cudaGetErrorString(result));
    exit(1);
}

static void check(gf_status status, const gf_error *error) {
    if (!status)
        return;
    fprintf(stderr, "bench-png-device: %s\n", error->message);
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static size_t image_bytes(const gf_format *format) {
    const size_t sample = format->type == GF_U8 ? 1 : format->type == GF_U16 ? 2 : 4;
    return (size_t)(format->width * format->height) * format->channels * sample;
}

/* Return the bytes of a file. */
static unsigned char *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    unsigned char *bytes = NULL;
    if (file && fseek(file, 0, SEEK_END) == 0 && (*size = (size_t)ftell(file)) > 0 &&
        (bytes = malloc(*size)) && fseek(file, 0, SEEK_SET) == 0 &&
        fread(bytes, 1, *size, file) == *size && fclose(file) == 0)
        return bytes;
    fprintf(stderr, "bench-png-device: %s: cannot read\n", path);
    exit(1);
}

/* Images of one format in device memory, and as files. */
typedef struct bench {
    gf_engine *engine;
    int images;
    gf_format format;
    unsigned char *pixels;
    gf_pixels in[MAX_IMAGES];
    gf_out_pixels out[MAX_IMAGES];
    gf_format formats[MAX_IMAGES];
    gf_buffer files[MAX_IMAGES];
    unsigned char *memory; /* for files; NULL: they are in host memory */
} bench;

static void run_once(bench *b) {
    const size_t bound = gf_png_bound(&b->format);
    gf_error error = {0};
    for (int i = 0; i < b->images && b->memory; i++)
        b->files[i] = (gf_buffer){b->memory + (size_t)i * bound, bound};
    check(b->memory ? gf_encode_png_device(b->engine, &b->format, (uint64_t)b->images, b->in,
                                           b->files, NULL, &error)
                    : gf_decode_png_device(b->engine, (uint64_t)b->images, b->files, b->formats,
                                           b->out, NULL, NULL, &error),
          &error);
}

static void run(gf_engine *engine, const char *path, int images, int rounds) {
    static bench b;
    static double seconds[MAX_ROUNDS], copy[MAX_ROUNDS];
    gf_error error = {0};
    void *pixels;
    size_t size;
    unsigned char *file = read_file(path, &size), *to;
    const bool is_png = size > 4 && memcmp(file, "\x89PNG", 4) == 0;
    b.engine = engine;
    b.images = images;
    check(gf_load_file(path, NULL, &b.format, &pixels, NULL, &error), &error);
    const size_t bytes = image_bytes(&b.format), row = bytes / (size_t)b.format.height;
    must(cudaMalloc((void **)&b.pixels, (size_t)images * bytes), "cudaMalloc");
    must(cudaMalloc((void **)&to, (size_t)images * gf_png_bound(&b.format)), "cudaMalloc");
    b.memory = is_png ? NULL : to;
    for (int i = 0; i < images; i++) {
        unsigned char *image = b.pixels + (size_t)i * bytes;
        must(cudaMemcpy(image, pixels, bytes, cudaMemcpyHostToDevice), "upload");
        b.in[i] = (gf_pixels){image, row};
        b.out[i] = (gf_out_pixels){image, row};
        b.formats[i] = b.format;
        b.files[i] = (gf_buffer){file, size};
    }
    free(pixels);
    for (int round = -1; round < rounds; round++) { /* the first one allocates */
        double begin = now();
        run_once(&b);
        if (round >= 0)
            seconds[round] = now() - begin;
        begin = now();
        must(cudaMemcpyAsync(to, b.pixels, (size_t)images * bytes, cudaMemcpyDeviceToDevice, NULL),
             "copy");
        must(cudaStreamSynchronize(NULL), "copy");
        if (round >= 0)
            copy[round] = now() - begin;
    }
    const double middle = median(seconds, rounds), all = (double)images * (double)bytes;
    printf("%s %-24s %5d %10.3f ms %8.1f GB/s %8.3f of the samples %8.3f of a copy\n",
           is_png ? "decode" : "encode", path, images, middle * 1e3, all / middle * 1e-9,
           (double)b.files[0].size / (double)bytes, median(copy, rounds) / middle);
    must(cudaFree(b.pixels), "cudaFree");
    must(cudaFree(to), "cudaFree");
    free(file);
}

int main(int argc, char **argv) {
    const gf_engine_options options = {.backend = "cuda"};
    gf_engine *engine;
    gf_error error = {0};
    int rounds = 9, images = 1, at = 1;
    for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
        if (argv[at][1] == 'd') {
            gf_device_decodes_always = true;
            at--;
            continue;
        }
        int *number = argv[at][1] == 'r' ? &rounds : &images;
        const int max = number == &rounds ? MAX_ROUNDS : MAX_IMAGES;
        *number = atoi(argv[at + 1]);
        if (*number < 1 || *number > max) {
            fprintf(stderr, "bench-png-device: %s: 1 to %d\n", argv[at], max);
            return 2;
        }
    }
    check(gf_engine_open(&options, &engine, &error), &error);
    for (; at < argc; at++)
        run(engine, argv[at], images, rounds);
    gf_engine_close(engine);
    return 0;
}
