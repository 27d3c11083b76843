/* Byte order of numbers and samples in files. */
#ifndef GF_BYTES_H
#define GF_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline bool gf_host_is_little(void) {
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
}

static inline uint32_t gf_little16(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static inline uint32_t gf_little32(const unsigned char *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return gf_host_is_little() ? v : __builtin_bswap32(v);
}

static inline uint64_t gf_little64(const unsigned char *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return gf_host_is_little() ? v : __builtin_bswap64(v);
}

static inline uint32_t gf_big32(const unsigned char *p) {
    return __builtin_bswap32(gf_little32(p));
}

static inline void gf_put_big32(unsigned char *p, uint32_t v) {
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(v >> (24 - 8 * i));
}

/* Copies 16-bit samples of the given byte order to native ones, or back. dst == src is allowed, any
 * other overlap is not; neither need be aligned. */
static inline void gf_copy_order16(void *dst, const void *src, uint64_t count, bool little) {
    typedef uint16_t lanes __attribute__((vector_size(16)));
    enum { BLOCK = 4 }; /* vectors that are on their way at a time */
    unsigned char *out = dst;
    const unsigned char *in = src;
    uint64_t i = 0;

    if (little == gf_host_is_little()) {
        memmove(dst, src, count * 2);
        return;
    }
    for (; i + BLOCK * sizeof(lanes) / 2 <= count; i += BLOCK * sizeof(lanes) / 2) {
        lanes v[BLOCK];
        memcpy(v, in + 2 * i, sizeof v);
        for (int k = 0; k < BLOCK; k++)
            v[k] = v[k] << 8 | v[k] >> 8;
        memcpy(out + 2 * i, v, sizeof v);
    }
    for (; i < count; i++) {
        uint16_t v;
        memcpy(&v, in + 2 * i, sizeof v);
        v = __builtin_bswap16(v);
        memcpy(out + 2 * i, &v, sizeof v);
    }
}

static inline void gf_copy_big16(void *dst, const void *src, uint64_t count) {
    gf_copy_order16(dst, src, count, false);
}

/* Copies 32-bit samples of the given byte order to native ones, or back, as bits: a float's NaN
 * payload survives. dst == src is allowed, any other overlap is not; neither need be aligned. */
static inline void gf_copy_order32(void *dst, const void *src, uint64_t count, bool little) {
    unsigned char *out = dst;
    const unsigned char *in = src;

    if (little == gf_host_is_little()) {
        memmove(dst, src, count * 4);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint32_t v;
        memcpy(&v, in + 4 * i, sizeof v);
        v = __builtin_bswap32(v);
        memcpy(out + 4 * i, &v, sizeof v);
    }
}

#endif
