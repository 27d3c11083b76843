/* What the tests with hostile files share: every way to cut or to flip a file, and what each file
 * must do: be refused in one line, or be read, and in less than a second either way. The short form
 * takes some of the files; GF_HOSTILE in the environment takes all (make hostile). */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <time.h>

#include "png_broken.h"
#include "testing.h"

typedef struct hostile {
    uint64_t files, accepted;
    double slowest; /* seconds of processor time for one */
} hostile;

/* One of them; what and where are for messages. */
typedef void hostile_try(const png_bytes *file, const char *what, size_t where, hostile *sum);

static inline bool hostile_all(void) {
    return getenv("GF_HOSTILE") != NULL || strcmp(test_tier(), "long") == 0;
}

static inline double processor_seconds(void) {
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now), 0);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline void hostile_count(hostile *sum, bool accepted, double start, const char *what,
                                 size_t where) {
    const double seconds = processor_seconds() - start;
    sum->files++;
    sum->accepted += accepted;
    sum->slowest = seconds > sum->slowest ? seconds : sum->slowest;
    if (seconds > 1)
        fail_msg("%s at %zu: took %.1f s", what, where, seconds);
}

static inline void hostile_print(const hostile *sum) {
    print_message("hostile files %lu: accepted %lu, refused %lu, the slowest %.0f ms\n",
                  (unsigned long)sum->files, (unsigned long)sum->accepted,
                  (unsigned long)(sum->files - sum->accepted), sum->slowest * 1e3);
}

/* The file ends after every byte. */
static inline void every_cut(const png_bytes *file, hostile_try *try, const char *what,
                             hostile *sum) {
    for (size_t size = 1; size < file->size; size++) {
        /* A copy, whose end sanitizers know. */
        png_bytes cut = {malloc(size), size};
        assert_non_null(cut.data);
        memcpy(cut.data, file->data, size);
        try(&cut, what, size, sum);
        free(cut.data);
    }
}

/* Every bit of it, or every step-th, is the other one. mend: puts check sums right; NULL: nobody
 * does. */
static inline void every_flip(const png_bytes *file, size_t step, void (*fix)(png_bytes *file),
                              hostile_try *try, const char *what, hostile *sum) {
    for (size_t bit = 0; bit < 8 * file->size; bit += step) {
        png_bytes flipped = copy_of(file);
        flipped.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        try(&flipped, what, bit, sum);
        if (fix != NULL) {
            fix(&flipped);
            try(&flipped, what, bit, sum);
        }
        free(flipped.data);
    }
}

/* Every byte is 0, 255, or one that stands out in headers. */
static inline void every_byte(const png_bytes *file, hostile_try *try, const char *what,
                              hostile *sum) {
    static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff, '9', '\n', ' ', '#'};
    for (size_t at = 0; at < file->size; at++)
        for (size_t v = 0; v < sizeof values; v++) {
            png_bytes changed = copy_of(file);
            changed.data[at] = values[v];
            try(&changed, what, at, sum);
            free(changed.data);
        }
}

#endif
