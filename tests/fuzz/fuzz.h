/* What the fuzzing harnesses share. Each has one function, LLVMFuzzerTestOneInput, which libFuzzer
 * and our own driver (drive.c) both call: it takes any bytes, and aborts if what is promised does
 * not hold. */
#ifndef FUZZ_H
#define FUZZ_H

#include "../png_both.h"

/* libFuzzer's names. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Changes data in place, up to `most` bytes, and returns its new size. A harness may have one of
 * its own for formats whose check sums would otherwise refuse nearly everything. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
/* Changes bytes that mean nothing to it; either driver has it. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/* Words that inputs of a harness are made of: our driver puts them in. NULL-terminated; a harness
 * need not have any. */
extern const char *const fuzz_words[] __attribute__((weak));
extern const bool fuzz_words_apart __attribute__((weak)); /* with the NUL byte that ends them */

/* Aborts with a line that says why, unless it holds. */
#define FUZZ_CHECK(condition, ...)                                                                 \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fuzz_fail(__VA_ARGS__);                                                                \
    } while (0)
_Noreturn void fuzz_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What an error must be like: a status that says so, and one line that is not empty. */
void fuzz_check_error(gf_status status, const gf_error *error);

/* What is new in an execution, for our driver, which knows nothing of coverage: it goes on from
 * inputs whose sum of what was seen is a new one. */
extern uint64_t fuzz_seen;
void fuzz_see(const char *words); /* of them, the small letters and blanks */

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
                       uint64_t band);
outcome fuzz_load_pipe(const void *data, size_t size, const gf_limits *given, gf_open_source *open,
                       uint64_t band);
/* Both refuse, or both give one image. */
void fuzz_check_same(const outcome *a, const outcome *b, const char *what);

#endif
