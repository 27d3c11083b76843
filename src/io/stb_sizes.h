/* How large files and memory are of what stb decodes, from a file's first bytes: as many as the
 * least header at least. */
#ifndef GF_STB_SIZES_H
#define GF_STB_SIZES_H

#include "image.h"
#include "io/stb.h"

/* Not so is a TGA, whose first byte may be any: the second is 0 or 1. */
bool gf_stb_is_jpeg(const unsigned char *data);
bool gf_stb_is_hdr(const unsigned char *data);

/* A file with so many pixels has at least so many bytes. What has fewer is cut short, and need not
 * be decoded to know it. 0 where nothing can be said. */
uint64_t gf_stb_least_bytes(const gf_stb_bytes *bytes, const gf_format *format);

/* Bytes that decoding takes at its height, the result included, the file not. */
uint64_t gf_stb_peak_bytes(const unsigned char *data, const gf_format *format);

#endif
