/* Checksums by ISA-L. Its functions leave the upper halves of vector registers in use. Each switch
 * between SSE code and code with VEX encoding, such as fmaf of the C library, then takes 100 ns on
 * Sapphire Rapids: the golden gaussian of a PNG was 35 times slower than that of a PPM. */
#ifndef GF_CHECKSUM_H
#define GF_CHECKSUM_H

#include <isa-l/crc.h>
#include <isa-l/crc64.h>
#include <isa-l/igzip_lib.h>
#include <stddef.h>
#include <stdint.h>

static inline uint64_t gf_checksum_done(uint64_t sum) {
#ifdef GF_X86_64
    if (__builtin_cpu_supports("avx"))
        __asm__ volatile("vzeroupper");
#endif
    return sum;
}

static inline uint32_t gf_crc32(uint32_t crc, const void *data, size_t size) {
    return (uint32_t)gf_checksum_done(crc32_gzip_refl(crc, data, size));
}

static inline uint32_t gf_adler32(uint32_t adler, const void *data, size_t size) {
    return (uint32_t)gf_checksum_done(isal_adler32(adler, data, size));
}

static inline uint64_t gf_crc64(uint64_t crc, const void *data, size_t size) {
    return gf_checksum_done(crc64_ecma_refl(crc, data, size));
}

#endif
