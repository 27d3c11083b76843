/* Bytes that wait until it is known where they belong: in memory, or, if they are many, in a file
 * without a name beside the output that they are for. Nothing of it is left, whatever ends the
 * process. */
#ifndef GF_SPOOL_H
#define GF_SPOOL_H

#include "io/files.h"

/* What it holds in memory. */
#define GF_SPOOL_BYTES ((size_t)4 << 20)

typedef struct gf_spool gf_spool;

/* The output has a temporary file, and lives longer; failures are told in its name. */
gf_status gf_spool_open(const gf_output *output, gf_spool **spool, gf_error *error);
gf_status gf_spool_add(gf_spool *spool, const void *data, size_t size, gf_error *error);
/* After the last was added: the next piece from the beginning on, of up to GF_SPOOL_BYTES, good
 * until the next call. A size of 0: there are no more. */
gf_status gf_spool_next(gf_spool *spool, const unsigned char **data, size_t *size, gf_error *error);
void gf_spool_close(gf_spool *spool);

#endif
