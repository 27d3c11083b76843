/* Changes to PNGs that leave their check sums right: nearly all others are refused for those. */
#ifndef FUZZ_PNG_MEND_H
#define FUZZ_PNG_MEND_H

#include <stddef.h>
#include <stdint.h>

/* As LLVMFuzzerCustomMutator. */
size_t png_mutate(uint8_t *data, size_t size, size_t most, unsigned seed);

#endif
