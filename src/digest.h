/* A digest of rows, to tell whether they are still the same: CRC-64. */
#ifndef GF_DIGEST_H
#define GF_DIGEST_H

#include "image.h"

/* Takes so many bytes of each row into a digest, 0 at first. How rows are cut into calls does not
 * matter. */
uint64_t gf_digest_rows(uint64_t digest, const gf_rows *rows, size_t bytes);

#endif
