/* Internal interface of the CPU benchmark. */
#ifndef BENCH_CPU_H
#define BENCH_CPU_H

#include <stdio.h>

#include "core/filter.h"
#include "core/thread.h"

/* Contents of an image. */
typedef enum bench_content {
    BENCH_PHOTO, /* slow waves with some noise */
    BENCH_NOISE, /* uniformly distributed values */
    BENCH_FLAT   /* one value */
} bench_content;

typedef struct bench_case {
    const char *filter, *text; /* name of the filter; settings, as in gf_filter_info.cases */
    uint32_t channels;
    gf_type type;
    bench_content content;
    bool same;        /* the second image equals the first */
    const char *peer; /* name of the same operation in cpu_peer.py; NULL: none */
} bench_case;

/* Max number of thread counts: 1, 2 and the number of cores. */
#define BENCH_MAX_THREAD_COUNTS 3

typedef struct bench_options {
    uint64_t width, height;
    uint32_t rounds;
    uint32_t thread_counts, threads[BENCH_MAX_THREAD_COUNTS];
    bool best; /* report the minimum of the rounds instead of the median */
    gf_isa isa;
} bench_options;

/* Milliseconds per thread count: the median, or with --statistic best the minimum, of the rounds.
 * Negative: not measured. */
typedef struct bench_times {
    double copy[BENCH_MAX_THREAD_COUNTS];  /* memcpy of the input */
    double read[BENCH_MAX_THREAD_COUNTS];  /* sum of the 64-bit words of the input */
    double strip[BENCH_MAX_THREAD_COUNTS]; /* the filter on the whole image as one strip */
    double run[BENCH_MAX_THREAD_COUNTS];   /* gf_run_memory */
    double peer;                           /* on one thread */
    double gain;                           /* median of the ratios peer/strip of the rounds */
} bench_times;

/* A process with OpenCV. */
typedef struct bench_peer bench_peer;

/* Start the process. Returns NULL and prints the reason to standard error if OpenCV is missing. */
bench_peer *bench_peer_open(const char *script);
const char *bench_peer_version(const bench_peer *peer);
/* Send image `index`, 0 or 1. */
bool bench_peer_image(bench_peer *peer, int index, const gf_format *format, const gf_rows *rows);
/* Run an operation once and return its milliseconds, or a negative number on failure. */
double bench_peer_time(bench_peer *peer, const char *work);
void bench_peer_close(bench_peer *peer);

/* Fill the rows of an image. */
void bench_fill(const gf_format *format, const gf_rows *rows, bench_content content, uint64_t seed);

/* Compare the cpu backend with golden on a small image. Prints the failing case to standard
 * error. */
bool bench_check(const bench_case *c, const bench_options *options);
/* Time a case. Each round runs everything once. Returns false after printing the error. */
bool bench_time(const bench_case *c, const bench_options *options, bench_peer *peer,
                bench_times *times);

#endif
