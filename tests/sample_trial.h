/* What the tests of samples by several ranks share: samples, and ranks that write each its own. */
#ifndef SAMPLE_TRIAL_H
#define SAMPLE_TRIAL_H

#include "sample_util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "agree.h"
#include "rank_threads.h"
#include "testing.h"

enum { MOST_RANKS = 5, LARGEST_PIECE = 300 };

/* ---- the system's open ----------------------------------------------------------------------- */

static atomic_bool lacks_nameless; /* files: as many file systems do */
static atomic_int nameless, refused;

/* Takes the place of the system's. */
int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    if ((flags & O_TMPFILE) == O_TMPFILE) {
        if (atomic_load(&lacks_nameless)) {
            atomic_fetch_add(&refused, 1);
            errno = EOPNOTSUPP;
            return -1;
        }
        atomic_fetch_add(&nameless, 1);
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* A bin for each position, or NONE, and a value. */
#define NONE UINT32_MAX

typedef struct samples {
    gf_sample_layout layout;
    uint64_t height;
    uint32_t *bins;
    unsigned char *values;
} samples;

static inline uint64_t row_positions(const samples *all) {
    return all->layout.width * all->layout.channels;
}

/* One in `sparse` positions is a sample, of bin k * step. */
static inline samples make_samples(gf_type type, uint64_t width, uint32_t channels, uint64_t height,
                                   uint32_t bins, uint32_t step, uint64_t sparse,
                                   test_random *random) {
    samples all = {.layout = {.type = type,
                              .width = width,
                              .channels = channels,
                              .names = {"r", "g", "b"},
                              .indices = {0, 1, 2},
                              .with_bin = bins > 1,
                              .bins = (bins - 1) * step + 1},
                   .height = height};
    const uint64_t count = height * row_positions(&all);
    const size_t bytes = gf_type_bytes(type);
    all.bins = malloc(count * sizeof *all.bins + 1);
    all.values = malloc(count * bytes + 1);
    assert_non_null(all.bins);
    assert_non_null(all.values);
    for (uint64_t i = 0; i < count; i++) {
        const bool taken = sparse != 0 && test_below(random, sparse) == 0;
        const uint64_t bits = test_next(random);
        all.bins[i] = taken ? (uint32_t)test_below(random, bins) * step : NONE;
        memcpy(all.values + i * bytes, &bits, bytes);
    }
    /* The bin of a file of one bin may be any. */
    if (bins == 1)
        for (uint64_t i = 0; i < count; i++)
            all.bins[i] = all.bins[i] == NONE ? NONE : 7;
    return all;
}

static inline void free_samples(samples *all) {
    free(all->bins);
    free(all->values);
}

/* Those of rows [from, to), bin by bin, in calls of odd sizes. */
static inline gf_status feed(gf_sample_sink *sink, const samples *all, uint64_t from, uint64_t to,
                             gf_error *error) {
    const uint64_t row = row_positions(all), step = all->layout.bins > 300 ? 257 : 1;
    const size_t bytes = gf_type_bytes(all->layout.type);
    uint64_t positions[LARGEST_PIECE], most = 1;
    unsigned char values[LARGEST_PIECE * sizeof(float)];
    gf_status status = GF_OK;
    for (uint64_t bin = 0; bin < all->layout.bins && status == GF_OK; bin += step) {
        const uint32_t wanted = all->layout.with_bin ? (uint32_t)bin : 7;
        uint64_t count = 0;
        for (uint64_t i = from * row; i < to * row && status == GF_OK; i++) {
            if (all->bins[i] != wanted)
                continue;
            positions[count] = i;
            memcpy(values + count * bytes, all->values + i * bytes, bytes);
            if (++count == most) {
                status = gf_sample_sink_write(sink, wanted, positions, values, count, error);
                count = 0;
                most = 1 + (most * 7 + i) % LARGEST_PIECE;
            }
        }
        if (status == GF_OK)
            status = gf_sample_sink_write(sink, wanted, positions, values, count, error);
    }
    return status;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

typedef struct trial {
    const samples *all;
    const char *path, *format;
    bool force;
    uint64_t cuts[MOST_RANKS + 1]; /* rank i has rows cuts[i] .. cuts[i + 1] - 1 */
    uint32_t breaks;               /* this rank fails after some samples; NONE: no one */
    bool stops;                    /* none of them finishes */
    gf_status status[MOST_RANKS];
    gf_error error[MOST_RANKS];
    bool wants_count[MOST_RANKS];
    int files; /* in the folder when all samples have been given */
} trial;

static inline void run_rank(const gf_ranks *ranks, void *context) {
    trial *shared = context;
    const uint32_t rank = ranks->rank;
    const samples *all = shared->all;
    gf_error *error = &shared->error[rank];
    gf_sample_sink *sink = NULL;
    gf_status status = gf_sample_sink_open(shared->path, shared->format, shared->force,
                                           &all->layout, ranks, &sink, error);
    if (status == GF_OK) {
        shared->wants_count[rank] = gf_sample_sink_wants_count(sink);
        status = feed(sink, all, shared->cuts[rank], shared->cuts[rank + 1], error);
        if (status == GF_OK && shared->breaks == rank)
            status = gf_sample_sink_write(sink, UINT32_MAX, (uint64_t[]){0}, "\0\0\0\0", 1, error);
        status = gf_ranks_agree(ranks, status, error);
        if (rank == 0)
            shared->files = count_files(false);
        (void)gf_ranks_agree(ranks, GF_OK, NULL);
    }
    if (status == GF_OK && !shared->stops)
        status = gf_sample_sink_finish(sink, error);
    if (status == GF_OK && !shared->stops)
        status = gf_output_place(gf_sample_sink_output(sink), error);
    gf_sample_sink_close(sink);
    shared->status[rank] = status;
}

static inline void write_alone(const samples *all, const char *path, const char *format) {
    gf_error error = {0};
    gf_sample_sink *sink = open_sink(path, format, &all->layout);
    if (feed(sink, all, 0, all->height, &error) != GF_OK)
        fail_msg("%s", error.message);
    finish(sink);
}

static inline void assert_same_files(const char *a, const char *b) {
    size_t size;
    unsigned char *want = get_bytes(a, &size);
    assert_bytes(b, want, size);
    free(want);
}

#endif
