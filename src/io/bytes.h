/* Byte order of samples in files. */
#ifndef GF_BYTES_H
#define GF_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline bool gf_host_is_little(void) {
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
}

/* Copies big-endian 16-bit samples to native ones, or back. dst == src is allowed; neither need be
 * aligned. */
static inline void gf_copy_big16(void *dst, const void *src, uint64_t count) {
    unsigned char *out = dst;
    const unsigned char *in = src;

    for (uint64_t i = 0; i < count; i++) {
        uint16_t v;
        memcpy(&v, in + 2 * i, sizeof v);
        v = gf_host_is_little() ? __builtin_bswap16(v) : v;
        memcpy(out + 2 * i, &v, sizeof v);
    }
}

/* Copies 32-bit samples of the given byte order to native ones, or back, as bits: a float's NaN
 * payload survives. dst == src is allowed; neither need be aligned. */
static inline void gf_copy_order32(void *dst, const void *src, uint64_t count, bool little) {
    unsigned char *out = dst;
    const unsigned char *in = src;
    bool swap = little != gf_host_is_little();

    for (uint64_t i = 0; i < count; i++) {
        uint32_t v;
        memcpy(&v, in + 4 * i, sizeof v);
        v = swap ? __builtin_bswap32(v) : v;
        memcpy(out + 4 * i, &v, sizeof v);
    }
}

#endif
