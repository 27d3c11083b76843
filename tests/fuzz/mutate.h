/* Random changes to inputs, for our own driver. */
#ifndef FUZZ_MUTATE_H
#define FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* xorshift64*; the state is not 0. */
static inline uint64_t fuzz_random(uint64_t *x) {
    *x ^= *x >> 12;
    *x ^= *x << 25;
    *x ^= *x >> 27;
    return *x * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}

/* What LLVMFuzzerMutate draws from, and splices in. */
void fuzz_mutate_seed(uint64_t seed);
void fuzz_mutate_other(const uint8_t *data, size_t size);

#endif
