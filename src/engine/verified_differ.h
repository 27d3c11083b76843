/* Where what a backend made is not what golden made. */
#ifndef GF_VERIFIED_DIFFER_H
#define GF_VERIFIED_DIFFER_H

#include "filter.h"

#define GF_DIFFER_TEXT 256

/* What became of one part of a band. */
typedef struct gf_verified_part {
    gf_status status; /* of golden */
    gf_error error;
    char where[GF_DIFFER_TEXT]; /* the first difference; empty for none */
} gf_verified_part;

/* The first difference in golden's rows: the image and the records. Leaves where as it is if there
 * is none. */
void gf_rows_differ(const gf_plan *plan, const gf_rows *golden, const gf_rows *got,
                    char where[GF_DIFFER_TEXT]);
/* The same of states; false for none. */
bool gf_state_differs(const gf_plan *plan, const void *golden, const void *got,
                      char where[GF_DIFFER_TEXT]);

#endif
