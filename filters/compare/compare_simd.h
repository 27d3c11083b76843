/* The loops of compare, compiled once a SIMD level. */
#ifndef GF_COMPARE_SIMD_H
#define GF_COMPARE_SIMD_H

#include <stddef.h>
#include <stdint.h>

/* Samples that one call of count may be given: few enough to count in 32 bits. */
#define GF_COMPARE_PIECE 4096

/* Each by gf_type. */
typedef struct gf_compare_simd {
    /* How many of n samples differ; *largest becomes their largest difference, as in a record, if
     * that is more than it was. */
    uint32_t (*count[3])(const void *a, const void *b, size_t n, uint64_t *largest);
    /* Draws n pixels. */
    void (*draw[3])(const void *a, const void *b, size_t n, uint32_t channels, uint8_t *rgb);
} gf_compare_simd;

extern const gf_compare_simd gf_compare_simd_portable;
extern const gf_compare_simd gf_compare_simd_avx2;
extern const gf_compare_simd gf_compare_simd_avx512;

#endif
