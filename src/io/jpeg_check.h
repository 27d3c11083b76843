/* What stb_image does not look at in a JPEG: tables that are too large for it, and metadata. */
#ifndef GF_JPEG_CHECK_H
#define GF_JPEG_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Has every Huffman table that a decoder may come across at most 256 codes? Nothing else is
 * checked. */
bool gf_jpeg_tables_fit(const unsigned char *data, size_t size);

/* The metadata before the pixels, as bits of gf_dropped. Damaged segments count as none. */
uint32_t gf_jpeg_metadata(const unsigned char *data, size_t size);

#endif
