/* Allocate the memory of a device, so that other processes find little: hold_memory DEVICE KEEP.
 * KEEP: MiB that remain free; 0: allocate all memory. Prints "held" after the allocation,
 * and exits at the end of standard input. Exit code 3: no device. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#define MEGABYTE ((size_t)1 << 20)

int main(int argc, char **argv) {
    size_t available = 0, all = 0, held = 0;
    if (argc != 3)
        return 2;
    const size_t keep = (size_t)strtoull(argv[2], NULL, 10) * MEGABYTE;
    if (cudaSetDevice(atoi(argv[1])) != cudaSuccess ||
        cudaMemGetInfo(&available, &all) != cudaSuccess) {
        fprintf(stderr, "hold_memory: no device\n");
        return 3;
    }
    /* The driver cannot allocate all free memory in one block. */
    for (size_t piece = (size_t)1 << 34; piece >= MEGABYTE / 4; piece /= 2)
        while (cudaMemGetInfo(&available, &all) == cudaSuccess && available >= keep + piece) {
            void *memory;
            if (cudaMalloc(&memory, piece) != cudaSuccess)
                break;
            held += piece;
        }
    if (keep == 0)
        for (void *memory; cudaMalloc(&memory, MEGABYTE / 4) == cudaSuccess;)
            held += MEGABYTE / 4;
    printf("held %zu of %zu MB\n", held / MEGABYTE, all / MEGABYTE);
    fflush(stdout);
    while (getchar() != EOF)
        continue;
    return 0;
}
