#include "digest.h"

#include <isa-l/crc64.h>

uint64_t gf_digest_rows(uint64_t digest, const gf_rows *rows, size_t bytes) {
    for (uint64_t y = rows->y0; y < rows->y0 + rows->rows; y++)
        digest = crc64_ecma_refl(digest, gf_row(rows, y), bytes);
    return digest;
}
