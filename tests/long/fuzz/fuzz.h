/* What the fuzzing harnesses share. Each harness is one function, LLVMFuzzerTestOneInput, which
 * libFuzzer and replay.c both call. It accepts any bytes and aborts if a promise is broken. */
#ifndef FUZZ_H
#define FUZZ_H

#include "png_both.h"

/* libFuzzer's interface. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Change data in place, up to `most` bytes, and return its new size. A harness may define one for a
 * format whose check sums would otherwise refuse nearly every input. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
/* libFuzzer's own mutations; NULL in a build without it. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max) __attribute__((weak));

/* Aborts with a line that says why, unless it holds. */
#define FUZZ_CHECK(condition, ...)                                                                 \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fuzz_fail(__VA_ARGS__);                                                                \
    } while (0)
_Noreturn void fuzz_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What an error must be like: a status that says so, and one line that is not empty. */
void fuzz_check_error(gf_status status, const gf_error *error);

/* ---- what an input asks for ------------------------------------------------------------------ */

/* The bytes of an input that were not taken yet. */
typedef struct fuzz_bytes {
    const uint8_t *data;
    size_t size;
} fuzz_bytes;

/* The next byte; 0 where there is none. */
static inline uint8_t fuzz_byte(fuzz_bytes *bytes) {
    if (bytes->size == 0)
        return 0;
    bytes->size--;
    return *bytes->data++;
}

/* Of the next two bytes a number below n <= 65536. */
static inline uint32_t fuzz_below(fuzz_bytes *bytes, uint32_t n) {
    const uint32_t low = fuzz_byte(bytes);
    return (low | (uint32_t)fuzz_byte(bytes) << 8) % n;
}

/* A copy of what is left, with a 0 behind it; the caller's to free. */
char *fuzz_text(const fuzz_bytes *bytes);

/* ---- files ----------------------------------------------------------------------------------- */

/* Small, so that an execution takes little time whatever the input says. */
static const gf_limits fuzz_limits = {
    .max_pixels = 20000, .max_memory = 1 << 20, .max_chunk = 1 << 12, .no_sandbox = true};

/* Path of a file in this process's own folder, which lies in memory where that can be, and is
 * removed at the end; four calls share the memory in turn. */
const char *fuzz_path(const char *name);
/* Reads the bytes as an image in a regular file, and as one that comes through a pipe. */
outcome fuzz_load_file(const void *data, size_t size, const gf_limits *given, gf_open_source *open,
                       uint64_t strip);
outcome fuzz_load_pipe(const void *data, size_t size, const gf_limits *given, gf_open_source *open,
                       uint64_t strip);
/* Both refuse, or both give one image. */
void fuzz_check_same(const outcome *a, const outcome *b, const char *what);

#endif
