/* Memory of the caller that a source with threads of its own fills ahead (gf_source_ops.announce).
 *
 * The thread that reads rows announces and releases memory. Others may look up the memory of rows
 * that have not been returned: from `released` on, under a lock that the source also holds while it
 * announces and releases, or from an announcement found so, without it. */
#ifndef GF_ANNOUNCED_H
#define GF_ANNOUNCED_H

#include <stdatomic.h>

#include "io/stream/stream.h"

/* Memory of rows. */
typedef struct gf_announced {
    uint64_t first, end; /* rows */
    unsigned char *to;   /* the first row */
    size_t stride;
} gf_announced;

/* Announcements to a source, numbered from 0; zeroed at first. */
typedef struct gf_announcements {
    gf_announced ring[GF_SOURCE_AHEAD];
    _Atomic uint64_t count; /* also of those whose rows have been returned */
    uint64_t released;      /* these */
} gf_announcements;

/* Add memory for the rows after those announced before. y: the row to return next. */
void gf_announced_add(gf_announcements *all, uint64_t y, unsigned char *to, size_t stride,
                      uint64_t rows);
/* Release the memory of the rows before y, which have been returned. */
void gf_announced_release(gf_announcements *all, uint64_t y);
/* Return the first announcement from i on that ends after row y, or the number of all. */
uint64_t gf_announced_find(const gf_announcements *all, uint64_t i, uint64_t y);
/* Return the last announcement, or NULL. */
const gf_announced *gf_announced_last(const gf_announcements *all);
/* Return the memory of row y and the rows after it, in announcements from i on. Return no rows if
 * there is none. */
gf_announced gf_announced_rows(const gf_announcements *all, uint64_t i, uint64_t y);
/* Copy rows of `bytes` bytes to dst, unless they have been decoded there. */
void gf_announced_copy(unsigned char *dst, size_t stride, const unsigned char *from,
                       size_t from_stride, size_t bytes, uint64_t rows);

#endif
