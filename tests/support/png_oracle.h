/* The oracle for reading PNG: libpng alone, used as any application uses it. It shares no code with
 * the reader under test: not its callbacks, not what it makes of PLTE and tRNS, not its expansion.
 */
#ifndef PNG_ORACLE_H
#define PNG_ORACLE_H

#include "png_both.h"

/* Reads the first `size` bytes of a file. max_pixels and max_chunk of the limits hold as in the
 * reader, but for chunks that are too large: libpng warns of them. Metadata is what a walk along
 * the chunks finds to be carried; only of files that are accepted. */
outcome png_oracle(const png_bytes *file, size_t size, const gf_limits *given);

#endif
