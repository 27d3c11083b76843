/* What the parts of verify share: images from numbers, the comparison, the jobs and who does them.
 *
 * Job n of a filter is one of its cases on one image; both follow from the seed and n alone, so
 * that a run can be repeated with any number of threads. */
#ifndef GF_CLI_VERIFY_H
#define GF_CLI_VERIFY_H

#include <pthread.h>

#include "gpufilter.h"

/* ---- images ---------------------------------------------------------------------------------- */

/* xorshift64*: the same numbers everywhere. */
typedef struct gf_random {
    uint64_t state;
} gf_random;

/* A stream of its own for each seed, stream and number. */
gf_random gf_random_start(uint64_t seed, uint64_t stream, uint64_t number);
uint64_t gf_random_next(gf_random *random);
/* Uniform in [0, n). */
uint64_t gf_random_below(gf_random *random, uint64_t n);

/* So many rounds take a case through every type and number of channels. */
#define GF_VERIFY_ROUNDS 12

size_t gf_verify_sample_bytes(gf_type type);
/* The bits of sample i of rows without gaps. */
uint32_t gf_verify_sample(const gf_format *format, const void *pixels, uint64_t i);
gf_format gf_verify_format(gf_random *random, uint64_t round, bool small);
/* Rows without gaps: noise, extremes, waves, one value, or something like a photograph. */
void gf_verify_fill(const gf_format *format, void *pixels, gf_random *random);
/* That last one: flat areas with edges between them, slow shading, a little grain. */
void gf_verify_photo(const gf_format *format, void *pixels, gf_random *random);
/* An image to be measured against the first: mostly that one with a few samples changed. */
void gf_verify_second(const gf_format *format, const void *first, void *second, gf_random *random);

/* ---- comparing ------------------------------------------------------------------------------- */

#define GF_VERIFY_WHERE 256

/* How many samples differ in any bit; where tells about the first. */
uint64_t gf_verify_images(const gf_format *format, const void *want, const void *got,
                          char where[GF_VERIFY_WHERE]);
/* How many cells of the tables (and lines of text) differ. */
uint64_t gf_verify_results(const gf_result *want, const gf_result *got,
                           char where[GF_VERIFY_WHERE]);

/* ---- the work -------------------------------------------------------------------------------- */

#define GF_VERIFY_TARGETS 8
#define GF_VERIFY_LANES 4
#define GF_VERIFY_FINDINGS 4

/* What is compared with golden. */
typedef struct gf_verify_target {
    char name[32]; /* "cpu avx2" */
    const char *backend, *simd;
    /* Engines that are slow to start (cuda) are kept, each with its own height of bands, and taken
     * in turn. NULL: an engine is opened for every job. */
    struct gf_verify_lane {
        pthread_mutex_t lock;
        gf_engine *engine;
        uint64_t band_rows;
    } lanes[GF_VERIFY_LANES];
} gf_verify_target;

typedef struct gf_verify_tally {
    uint64_t images, samples, differences;
    double seconds;
} gf_verify_tally;

/* A difference or a failure. */
typedef struct gf_verify_finding {
    uint64_t job;
    char text[1024];
} gf_verify_finding;

/* One filter's way through its cases. */
typedef struct gf_verify_track {
    const gf_filter *filter;
    uint64_t case_count;
    uint64_t small;   /* jobs at the beginning are about small images: every case meets every
                       * format, however few samples are asked for */
    uint64_t next;    /* job */
    uint64_t planned; /* samples of the jobs so far, over all targets */
    uint64_t idle;    /* jobs in a row whose settings did not suit the image */
    bool *seen;       /* which cases ran */
    gf_verify_tally tallies[GF_VERIFY_TARGETS];
    gf_verify_finding findings[GF_VERIFY_FINDINGS]; /* those of the first jobs */
    size_t finding_count;
} gf_verify_track;

/* An image that is not generated. */
typedef struct gf_verify_file {
    const char *name;
    gf_format format;
    void *pixels;
} gf_verify_file;

typedef struct gf_verify {
    uint64_t seed;
    uint64_t goal;       /* samples to compare, at least */
    uint64_t max_memory; /* of an engine's job */
    const char *devices;
    uint32_t workers;
    bool progress; /* on standard error */

    gf_verify_target targets[GF_VERIFY_TARGETS];
    size_t target_count;
    gf_verify_track *tracks;
    size_t track_count;

    pthread_mutex_t lock; /* for all that follows, and the tracks */
    pthread_cond_t done;  /* a worker ended */
    uint32_t running;
    uint64_t jobs;              /* handed out */
    const gf_verify_file *file; /* that the jobs are about; NULL: generated images */
    size_t file_track, file_case;
    uint64_t samples, differences, failures;
    const char **unread; /* files that could not be */
    size_t unread_count;
    gf_error broken; /* why a worker could not start */
} gf_verify;

/* One case on one image. */
typedef struct gf_verify_job {
    uint64_t number; /* of all jobs */
    uint64_t image;  /* of the filter's jobs; not for files */
    gf_verify_track *track;
    const char *text; /* the case */
    const gf_verify_file *file;
    gf_settings *settings;
    gf_format in, out;
    gf_random random;
} gf_verify_job;

/* Takes the next job; false if there is none. Needs the lock. */
bool gf_verify_next(gf_verify *verify, gf_verify_job *job);
/* Keeps a line about a job, if it is one of the first of its filter. Needs the lock. */
void gf_verify_note(gf_verify_track *track, uint64_t job, const char *text);

/* Opens what can be compared here. missing gets the reason why there is no CUDA, if that is not an
 * error because nobody asked for it. */
gf_status gf_verify_open(gf_verify *verify, const char *backend, gf_error *missing,
                         gf_error *error);
void gf_verify_close(gf_verify *verify);

/* Does all jobs about generated images, or about one file. */
gf_status gf_verify_run(gf_verify *verify, const gf_verify_file *file, gf_error *error);

#endif
