/* Loops of the separable engine for one SIMD level, and the tables that they read.
 *
 * Counts are in samples of all channels. Loops write whole vectors to scratch memory: each of its
 * rows has GF_SEPARABLE_PAD more values. Rows of the image are accessed exactly. */
#ifndef GF_SEPARABLE_CPU_H
#define GF_SEPARABLE_CPU_H

#include "separable/separable.h"

#define GF_SEPARABLE_PAD 64

/* Taps of FIXED as pairs of signed 16-bit integers, first | second << 16. pmaddwd multiplies two
 * pairs and adds the products. Sums wrap modulo 2^32: only the result needs all bits. */
typedef struct gf_separable_pairs {
    uint32_t radius[2]; /* without outer taps that are 0 */
    /* x: taps t[0] / 2, t[1], ..., t[r] of the sums v[-k] + v[k]. An odd number is completed by the
     * last sum again, with tap 0, or with half the tap if r is 0. */
    uint32_t x[GF_SEPARABLE_NARROW / 2 + 1];
    /* y: taps of the outputs y and y + 1 for rows 2j and 2j + 1 of those from y - r to y + r + 1.
     * If t[0] does not fit, two more pairs have the rest of it: r / 2 and (r + 1) / 2 again. */
    uint32_t y[2][GF_SEPARABLE_NARROW + 3];
    uint32_t y_pairs; /* r + 1 or r + 3 */
} gf_separable_pairs;

/* Start of a sum along x: 2^7 rounds I. The pass along y reads I + 2^7 - 2^15: 2^15 makes it
 * signed, and adds -2^31 to the sum along y; 2^7 adds 2^23, which rounds the result. */
#define GF_SEPARABLE_X_BIAS (128 + (128 - (1 << 15)) * 256)

/* Division by the odd count of a window. */
typedef struct gf_separable_mean {
    uint32_t half;              /* count / 2 */
    double inverse;             /* 1 / count */
    uint32_t multiplier, shift; /* for sums below 2^16: (s + half) * multiplier >> (16 + shift) */
} gf_separable_mean;

/* Type of the sums of a SUMS plan. */
typedef enum gf_separable_word {
    GF_SEPARABLE_W16, /* u8, and few samples along x */
    GF_SEPARABLE_W32,
    GF_SEPARABLE_W64,
    GF_SEPARABLE_WORDS
} gf_separable_word;

/* One step of sums of columns: add a row of samples, and subtract another one (NULL: none). */
typedef struct gf_separable_slide {
    void *columns;
    const void *add, *subtract;
    const void *next; /* row to prefetch for writing */
} gf_separable_slide;

/* Samples from sums of columns. */
typedef struct gf_separable_line {
    void *out;
    gf_type type;
    uint32_t radius, channels;
    const gf_separable_mean *mean;
    const unsigned char *next; /* row to prefetch for reading */
} gf_separable_line;

/* Output rows that are computed together: a block of columns of their windows stays in L1, which
 * takes 0.75 times the time of single rows. */
#define GF_SEPARABLE_GROUP 4

typedef struct gf_separable_group {
    unsigned char *out;
    const unsigned char *in;   /* samples at the centers of the windows */
    const unsigned char *next; /* the first sample that the next group loads; perhaps outside */
    size_t out_stride, in_stride;
    uint32_t rows; /* 1 to GF_SEPARABLE_GROUP */
    size_t n;      /* samples of a row */
    /* Rows of x results, for GF_SEPARABLE_GROUP outputs: the window of output row i starts at
     * window[i]. FIXED: pairs of rows, and the window of row i starts at window[i / 2]. */
    const void *const *window;
} gf_separable_group;

/* Loops of SINGLE or DOUBLE. */
typedef struct gf_separable_loops {
    /* Convert samples to values. */
    void (*load)(gf_type type, void *to, const void *from, size_t n);
    /* Compute the sums along x. from: the first value of the first window. */
    void (*along)(void *to, const void *from, const gf_separable_plan *plan, size_t n);
    /* Compute the sums along y, and store the results. */
    void (*across)(const gf_separable_plan *plan, const gf_separable_group *group);
} gf_separable_loops;

/* Loops of SUMS. */
typedef struct gf_separable_sums {
    void (*slide)(const gf_separable_slide *slide, gf_type type, size_t n);
    /* Compute n samples from sums of columns. sums: scratch memory. */
    void (*across)(const gf_separable_line *line, const void *columns, void *sums, size_t n);
} gf_separable_sums;

typedef struct gf_separable_simd {
    gf_separable_loops real[2]; /* SINGLE, DOUBLE */
    /* Convert samples to values of FIXED. */
    void (*widen)(uint16_t *to, const uint8_t *from, size_t n);
    /* Compute the x pass of two rows. a, b: their first values; pixels are `step` values apart. The
     * layout of `to` is private to the level. */
    void (*fixed_along)(int16_t *to, const uint16_t *a, const uint16_t *b, size_t n, size_t step,
                        const gf_separable_pairs *taps);
    /* Compute output rows. */
    void (*fixed_across)(const gf_separable_group *group, const gf_separable_pairs *taps);
    gf_separable_sums sums[GF_SEPARABLE_WORDS];
} gf_separable_simd;

/* Compute part `index` of `parts` of a strip. */
void gf_separable_compute(const gf_separable_simd *simd, const gf_plan *head, const gf_strip *strip,
                          uint32_t index, uint32_t parts, void *scratch);

#endif
