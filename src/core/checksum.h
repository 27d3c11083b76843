/* Checksums by libdeflate. */
#ifndef GF_CHECKSUM_H
#define GF_CHECKSUM_H

#include <libdeflate.h>
#include <stddef.h>
#include <stdint.h>

static inline uint32_t gf_crc32(uint32_t crc, const void *data, size_t size) {
    return libdeflate_crc32(crc, data, size);
}

static inline uint32_t gf_adler32(uint32_t adler, const void *data, size_t size) {
    return libdeflate_adler32(adler, data, size);
}

#endif
