/* The CPU's benchmark: what its files share. */
#ifndef BENCH_CPU_H
#define BENCH_CPU_H

#include <stdio.h>

#include "core/filter.h"
#include "core/thread.h"

/* What the samples of an image look like. */
typedef enum bench_content {
    BENCH_PHOTO, /* slow waves with some noise on them */
    BENCH_NOISE, /* every value alike */
    BENCH_FLAT   /* one value */
} bench_content;

typedef struct bench_case {
    const char *filter, *text; /* the filter, and a case of it */
    uint32_t channels;
    gf_type type;
    bench_content content;
    bool same;        /* the second image is the first one again */
    const char *peer; /* what cpu_peer.py calls the same work; NULL: it has none */
} bench_case;

/* How many threads there are figures for: 1, 2, and as many as there are cores. */
#define BENCH_MAX_TEAMS 3

typedef struct bench_options {
    uint64_t width, height;
    uint32_t rounds;
    uint32_t teams, threads[BENCH_MAX_TEAMS];
    bool best; /* the least of the rounds instead of their median */
    gf_isa isa;
} bench_options;

/* Milliseconds, medians of the rounds, for each number of threads; negative where nothing was
 * measured. */
typedef struct bench_times {
    double copy[BENCH_MAX_TEAMS];  /* memcpy of the input's bytes */
    double read[BENCH_MAX_TEAMS];  /* a sum of its 64-bit words */
    double strip[BENCH_MAX_TEAMS]; /* the filter on the whole image as one strip */
    double run[BENCH_MAX_TEAMS];   /* through the engine: gf_run_memory */
    double peer;                   /* one thread */
    double gain;                   /* the median of peer/strip, round by round */
} bench_times;

/* A process that has OpenCV. */
typedef struct bench_peer bench_peer;

/* NULL where there is none; why, on stderr. */
bench_peer *bench_peer_open(const char *script);
const char *bench_peer_version(const bench_peer *peer);
/* Gives it image `index`, 0 or 1. */
bool bench_peer_image(bench_peer *peer, int index, const gf_format *format, const gf_rows *rows);
/* Milliseconds that the work takes it once, or negative. */
double bench_peer_time(bench_peer *peer, const char *work);
void bench_peer_close(bench_peer *peer);

/* Fills an image of a strip's rows. */
void bench_fill(const gf_format *format, const gf_rows *rows, bench_content content, uint64_t seed);

/* Compares the cpu backend with golden on a small image; says what differs. */
bool bench_check(const bench_case *c, const bench_options *options);
/* Times a case: rounds of everything in turn. False on failure, having said why. */
bool bench_time(const bench_case *c, const bench_options *options, bench_peer *peer,
                bench_times *times);

#endif
