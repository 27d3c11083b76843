/* Byte order of integers and samples in files. */
#ifndef GF_BYTES_H
#define GF_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/machine.h"

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

static inline uint32_t gf_big16(const unsigned char *p) {
    return (uint32_t)p[0] << 8 | p[1];
}

static inline uint32_t gf_big32(const unsigned char *p) {
    return __builtin_bswap32(gf_little32(p));
}

static inline void gf_put_little16(unsigned char *p, uint32_t v) {
    p[0] = (unsigned char)v;
    p[1] = (unsigned char)(v >> 8);
}

static inline void gf_put_little32(unsigned char *p, uint32_t v) {
    v = gf_host_is_little() ? v : __builtin_bswap32(v);
    memcpy(p, &v, sizeof v);
}

static inline void gf_put_big32(unsigned char *p, uint32_t v) {
    gf_put_little32(p, __builtin_bswap32(v));
}

static inline void gf_put_little64(unsigned char *p, uint64_t v) {
    v = gf_host_is_little() ? v : __builtin_bswap64(v);
    memcpy(p, &v, sizeof v);
}

/* Convert samples of 1, 2, 4 or 8 bytes from the given byte order to native order, or back. The
 * payload of a NaN is preserved. dst == src is allowed; any other overlap is not. No alignment is
 * required. */
static inline void gf_copy_order(void *dst, const void *src, uint64_t count, size_t bytes,
                                 bool little) {
    typedef uint16_t lanes __attribute__((vector_size(16)));
    enum { UNROLL = 4, STEP = UNROLL * sizeof(lanes) / 2 }; /* vectors and samples per iteration */
    unsigned char *out = (unsigned char *)dst;
    const unsigned char *in = (const unsigned char *)src;
    uint64_t i = 0;
    if (bytes == 1 || little == gf_host_is_little()) {
        if (dst != src)
            memcpy(dst, src, (size_t)(count * bytes));
    } else if (bytes == 2) {
        for (; i + STEP <= count; i += STEP) {
            lanes v[UNROLL];
            memcpy(v, in + 2 * i, sizeof v);
            for (int k = 0; k < UNROLL; k++)
                v[k] = v[k] << 8 | v[k] >> 8;
            memcpy(out + 2 * i, v, sizeof v);
        }
        for (; i < count; i++)
            gf_put_little16(out + 2 * i, gf_big16(in + 2 * i));
    } else if (bytes == 4) {
        for (; i < count; i++)
            gf_put_little32(out + 4 * i, gf_big32(in + 4 * i));
    } else {
        for (; i < count; i++)
            gf_put_little64(out + 8 * i, __builtin_bswap64(gf_little64(in + 8 * i)));
    }
}

#endif
