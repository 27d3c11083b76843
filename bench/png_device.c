/* Benchmark of gf_encode_png_device: images in device memory to files in device memory.
 *
 * usage: bench-png-device [-r ROUNDS] [-n IMAGES] FILE...      (defaults: 9 rounds, 1 image)
 *
 * Each FILE is read, copied to IMAGES places in device memory, and encoded from there. For each
 * file: wall time per call, samples per second, the size of the files as a share of the samples,
 * and the rate as a share of a device-to-device copy of the same samples. Medians over the rounds.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpufilter.h"

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

static void run(gf_engine *engine, const char *path, int images, int rounds) {
    static gf_pixels in[MAX_IMAGES];
    static gf_buffer out[MAX_IMAGES];
    static double encode[MAX_ROUNDS], copy[MAX_ROUNDS];
    gf_format format;
    void *pixels;
    gf_error error = {0};
    check(gf_load_file(path, NULL, &format, &pixels, &error), &error);
    const size_t row = (size_t)format.width * format.channels * (format.type == GF_U8 ? 1 : 2);
    const size_t bytes = row * (size_t)format.height, bound = gf_png_bound(&format);
    unsigned char *from, *to;
    must(cudaMalloc((void **)&from, (size_t)images * bytes), "cudaMalloc");
    must(cudaMalloc((void **)&to, (size_t)images * bound), "cudaMalloc");
    for (int i = 0; i < images; i++) {
        must(cudaMemcpy(from + (size_t)i * bytes, pixels, bytes, cudaMemcpyHostToDevice), "upload");
        in[i] = (gf_pixels){from + (size_t)i * bytes, row};
    }
    free(pixels);
    for (int round = -1; round < rounds; round++) { /* the first one allocates */
        for (int i = 0; i < images; i++)
            out[i] = (gf_buffer){to + (size_t)i * bound, bound};
        double begin = now();
        check(gf_encode_png_device(engine, &format, (uint64_t)images, in, out, NULL, &error),
              &error);
        if (round >= 0)
            encode[round] = now() - begin;
        begin = now();
        must(cudaMemcpyAsync(to, from, (size_t)images * bytes, cudaMemcpyDeviceToDevice, NULL),
             "copy");
        must(cudaStreamSynchronize(NULL), "copy");
        if (round >= 0)
            copy[round] = now() - begin;
    }
    const double seconds = median(encode, rounds), all = (double)images * (double)bytes;
    printf("%-24s %5d %10.3f ms %8.1f GB/s %8.3f of the samples %8.3f of a copy\n", path, images,
           seconds * 1e3, all / seconds * 1e-9, (double)out[0].size / (double)bytes,
           median(copy, rounds) / seconds);
    must(cudaFree(from), "cudaFree");
    must(cudaFree(to), "cudaFree");
}

int main(int argc, char **argv) {
    const gf_engine_options options = {.backend = "cuda"};
    gf_engine *engine;
    gf_error error = {0};
    int rounds = 9, images = 1, at = 1;
    for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
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
