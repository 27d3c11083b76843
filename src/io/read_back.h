/* Is what was written what was computed? */
#ifndef GF_READ_BACK_H
#define GF_READ_BACK_H

#include "io/io.h"

/* Reads the file of a sink that has finished, before it has its name, and compares the digest of
 * its rows (digest.h) with that of those which the sink took. GF_FAILED where they differ. What has
 * no file that gives the rows back (pipes, memory, lossy formats) passes. */
gf_status gf_read_back(const gf_sink *sink, const gf_format *format, const gf_limits *limits,
                       uint64_t digest, gf_error *error);

#endif
