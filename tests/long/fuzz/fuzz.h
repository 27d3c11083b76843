/* Declarations shared by the fuzzing harnesses. A harness is one function,
 * LLVMFuzzerTestOneInput, called by libFuzzer and by replay.c. It accepts any bytes and aborts
 * if a check fails. */
#ifndef FUZZ_H
#define FUZZ_H

#include "png_both.h"

/* The interface of libFuzzer. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Change data in place, up to `max` bytes, and return its new size. A harness defines this for a
 * format whose checksums would otherwise reject nearly every input. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
/* Apply libFuzzer's own mutations; NULL in a build without libFuzzer. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max) __attribute__((weak));

/* Abort with a message unless the condition holds. */
#define FUZZ_CHECK(condition, ...)                                                                 \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fuzz_fail(__VA_ARGS__);                                                                \
    } while (0)
_Noreturn void fuzz_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Check that an error has a valid status and one line that is not empty. */
void fuzz_check_error(gf_status status, const gf_error *error);

/* ---- reading the input ------------------------------------------------------------------- */

/* The rest of the input. */
typedef struct fuzz_bytes {
    const uint8_t *data;
    size_t size;
} fuzz_bytes;

/* Read the next byte; 0 at the end. */
static inline uint8_t fuzz_byte(fuzz_bytes *bytes) {
    if (bytes->size == 0)
        return 0;
    bytes->size--;
    return *bytes->data++;
}

/* Read two bytes and return them modulo n; n <= 65536. */
static inline uint32_t fuzz_below(fuzz_bytes *bytes, uint32_t n) {
    const uint32_t low = fuzz_byte(bytes);
    return (low | (uint32_t)fuzz_byte(bytes) << 8) % n;
}

/* Copy the rest of the input and append a 0; the caller frees it. */
char *fuzz_text(const fuzz_bytes *bytes);

/* ---- files ----------------------------------------------------------------------------------- */

/* Small, so that every execution is short. */
static const gf_limits fuzz_limits = {
    .max_pixels = 20000, .max_memory = 1 << 20, .max_chunk = 1 << 12, .no_sandbox = true};

/* Return the path of a file in this process's directory. The directory is in memory if possible,
 * and is removed at exit. The result is valid until the fourth call after this one. */
const char *fuzz_path(const char *name);
/* Read the bytes as an image, from a regular file or from a pipe. */
outcome fuzz_load_file(const void *data, size_t size, const gf_limits *given, gf_open_source *open,
                       uint64_t strip);
outcome fuzz_load_pipe(const void *data, size_t size, const gf_limits *given, gf_open_source *open,
                       uint64_t strip);
/* Check that both outcomes are the same error or the same image. */
void fuzz_check_same(const outcome *a, const outcome *b, const char *what);

#endif
