/* What stb_image does not check in a JPEG before it writes to memory. */
#ifndef GF_JPEG_CHECK_H
#define GF_JPEG_CHECK_H

#include <stdbool.h>
#include <stddef.h>

/* Has every Huffman table that a decoder may come across at most 256 codes? Nothing else is
 * checked. */
bool gf_jpeg_tables_fit(const unsigned char *data, size_t size);

#endif
