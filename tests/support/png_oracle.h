/* Oracle for reading PNG: libpng alone, used as in any application. It shares no code with the
 * reader under test: no callbacks, no handling of PLTE and tRNS, no expansion of samples. */
#ifndef PNG_ORACLE_H
#define PNG_ORACLE_H

#include "png_both.h"

/* Read the first `size` bytes of a file. max_pixels and max_chunk apply as in the reader, except
 * that libpng only warns of chunks that are too large. If the file is accepted, the metadata is
 * collected in a walk along the chunks. */
outcome png_oracle(const png_bytes *file, size_t size, const gf_limits *given);

#endif
