/* Loops of order statistics for one SIMD level. They work on keys: integers of the size of the
 * samples, in their order. Loops may read GF_PERCENTILE_PAD bytes after the last key of a line. */
#ifndef GF_PERCENTILE_CPU_H
#define GF_PERCENTILE_CPU_H

#include "percentile/percentile.h"

#define GF_PERCENTILE_PAD 64

/* Maximum side of a tile of SELECT whose positions have 8 bits for each axis. */
#define GF_PERCENTILE_SIDE 256

/* An item to sort. */
typedef struct gf_percentile_item {
    uint32_t key; /* unsigned, in the order of the keys */
    uint32_t at;  /* y * GF_PERCENTILE_SIDE + x */
} gf_percentile_item;

/* Sums of the samples of a column: how many are in classes 0 to i of 16 groups, and, for each
 * class, in groups 0 to i. A column has at most 127 samples. */
typedef struct gf_percentile_column {
    uint8_t classes[16], groups[16][16];
} gf_percentile_column;

/* The samples of one channel of a tile, with those around it, in 256 groups. A group of u8 is a
 * value. Other samples are sorted and divided into groups of equal size; the positions of the
 * samples of a group then find the result in it. */
typedef struct gf_percentile_tile {
    uint32_t width, rows; /* of all samples; unless u8 at most GF_PERCENTILE_SIDE */
    uint32_t size;        /* of a group: a multiple of GF_PERCENTILE_PAD */
    uint32_t radius[2];
    uint32_t index; /* of the result in a window */
    void *keys;     /* row by row */
    void *results;  /* output: samples, row by row */
    void *sorted;   /* keys in ascending order */
    uint8_t *x, *y; /* of the sorted samples */
    uint8_t *group; /* row by row; u8: the keys */
    gf_percentile_column *columns;
    gf_percentile_item *items; /* for sorting: two per sample */
} gf_percentile_tile;

typedef struct gf_percentile_loops {
    void (*load)(void *keys, const void *samples, size_t n);
    void (*store)(void *samples, const void *keys, size_t n);
    /* Medians of K x K keys for two rows, K = 3, 5 or 7. Unless K is 3, first sort columns of the
     * K - 1 rows that both windows have; store them in lines, `stride` keys apart. */
    void (*columns)(uint32_t radius, void *columns, size_t stride, const void *const *rows,
                    size_t n);
    /* Compute the medians. lines: the columns, or these rows. more: the first row of the first
     * window, and the last one of the second. */
    void (*medians)(uint32_t radius, void *const *out, const void *const *lines,
                    const void *const *more, size_t step, size_t n);
    /* Store the minima (or maxima) of keys of two lines; `to` may be one of them. */
    void (*extremes)(bool minimum, void *to, const void *a, const void *b, size_t n);
    /* The same of each key and those that are `steps` keys after it. */
    void (*extremes_4)(bool minimum, void *to, const void *from, const size_t steps[3], size_t n);
    /* Copy every step-th key to consecutive ones, and back. */
    void (*pick)(void *to, const void *from, size_t step, size_t n);
    void (*place)(void *to, const void *from, size_t step, size_t n);
    void (*select)(const gf_percentile_tile *tile);
} gf_percentile_loops;

/* Compute part `index` of `parts` of a strip. loops: by type. */
void gf_percentile_compute(const gf_percentile_loops *loops, const gf_plan *head,
                           const gf_strip *strip, uint32_t index, uint32_t parts, void *scratch);

#endif
