/* The sRGB transfer function as tables, and images whose samples are encoded with it. */
#ifndef GF_SRGB_H
#define GF_SRGB_H

#include "io/metadata.h"

/* Return the linear light of each code value of u8 or u16, as docs/numerics.md defines it. The
 * tables are computed by the first call. */
const float *gf_srgb_linear(gf_type type);

/* Find the code value of linear light. */
typedef struct gf_srgb_codes {
    /* The least light of each code value, from 1 to the maximum; then infinity. */
    const float *thresholds;
    /* The code value of the least number in each bucket: binary32 numbers that differ only in their
     * last `shift` bits. A bucket has at most one threshold above its least number. */
    const uint16_t *starts;
    float low;      /* least number of the first bucket; 1 is in the last one */
    uint32_t shift; /* bits of a number after those that select its bucket */
    uint32_t base;  /* bits of the first bucket */
} gf_srgb_codes;

gf_srgb_codes gf_srgb_codes_of(gf_type type);

/* Check that the samples of an image are sRGB: its metadata says so, or says nothing about colour.
 * name: of the image, for messages. */
gf_status gf_srgb_check(const gf_metadata *metadata, const char *name, gf_error *error);

#endif
