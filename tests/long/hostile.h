/* Functions shared by the tests with hostile files: truncate or change a file in many variants.
 * Each file must be rejected with one line or be read, in less than a second. By default, tests
 * use some of the files; with GF_HOSTILE in the environment they use all (make hostile). */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <time.h>

#include "png_broken.h"
#include "testing.h"

typedef struct hostile {
    uint64_t files, accepted;
    double slowest; /* CPU seconds of the slowest file */
} hostile;

/* Test one file; what and where are for messages. */
typedef void hostile_try(const png_bytes *file, const char *what, size_t where, hostile *totals);

static inline bool hostile_all(void) {
    return getenv("GF_HOSTILE") != NULL || strcmp(test_tier(), "long") == 0;
}

static inline double cpu_seconds(void) {
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now), 0);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline void hostile_count(hostile *totals, bool accepted, double start, const char *what,
                                 size_t where) {
    const double seconds = cpu_seconds() - start;
    totals->files++;
    totals->accepted += accepted;
    totals->slowest = seconds > totals->slowest ? seconds : totals->slowest;
    if (seconds > 1)
        fail_msg("%s at %zu: took %.1f s", what, where, seconds);
}

static inline void hostile_print(const hostile *totals) {
    print_message("hostile files %lu: accepted %lu, rejected %lu, maximum %.0f ms\n",
                  (unsigned long)totals->files, (unsigned long)totals->accepted,
                  (unsigned long)(totals->files - totals->accepted), totals->slowest * 1e3);
}

/* Truncate the file after each byte. */
static inline void every_cut(const png_bytes *file, hostile_try *try, const char *what,
                             hostile *totals) {
    for (size_t size = 1; size < file->size; size++) {
        /* A copy of exact size, so that sanitizers detect reads past the end. */
        AUTO(free) png_bytes cut = {malloc(size), size};
        assert_non_null(cut.data);
        memcpy(cut.data, file->data, size);
        try(&cut, what, size, totals);
    }
}

/* Flip each bit, or each step-th bit. fix: repairs checksums; NULL: keep them invalid. */
static inline void every_flip(const png_bytes *file, size_t step, void (*fix)(png_bytes *file),
                              hostile_try *try, const char *what, hostile *totals) {
    for (size_t bit = 0; bit < 8 * file->size; bit += step) {
        AUTO(free) png_bytes flipped = copy_of(file);
        flipped.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        try(&flipped, what, bit, totals);
        if (fix != NULL) {
            fix(&flipped);
            try(&flipped, what, bit, totals);
        }
    }
}

/* Set each byte to 0, 255, and other values with a meaning in headers. */
static inline void every_byte(const png_bytes *file, hostile_try *try, const char *what,
                              hostile *totals) {
    static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff, '9', '\n', ' ', '#'};
    for (size_t at = 0; at < file->size; at++)
        for (size_t v = 0; v < sizeof values; v++) {
            AUTO(free) png_bytes changed = copy_of(file);
            changed.data[at] = values[v];
            try(&changed, what, at, totals);
        }
}

#endif
