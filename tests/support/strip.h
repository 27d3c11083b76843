/* A strip from the middle of an image, computed by a backend's own functions in painted memory. */
#ifndef STRIP_H
#define STRIP_H

#include "testing.h"

typedef struct test_strip {
    const gf_filter *filter;
    const char *text; /* its case */
    uint64_t seed;
    gf_settings *settings;
    gf_plan *plan;
    unsigned char *in, *want, *got; /* memory, margins included */
    size_t in_size, out_size;
    gf_rows all;               /* all rows of the input */
    gf_rows from;              /* of it: the strip and exactly its halo */
    gf_rows out;               /* the rows to compute, in got */
    unsigned char *state;      /* before this strip; painted margins, states begin after them */
    unsigned char *want_state; /* after it */
    size_t state_size;
    unsigned char *want_payload;
    size_t payload_bytes; /* at most, of the strip */
} test_strip;

/* False if the case does not suit the format: then nothing is there. whole: all rows. row_align:
 * image rows begin on multiples of that many bytes; 0: wherever they end up. Records alone begin on
 * multiples of 8. */
bool test_strip_new(test_strip *strip, const gf_filter *filter, const char *text, uint64_t seed,
                    gf_format format, bool whole, size_t row_align);
/* Fails the test if rows, state or payloads differ from golden's, or if anything but the strip's
 * rows was written. state: margins included. payloads: `pieces` of them, in order, a stride apart.
 */
void test_strip_check(const test_strip *strip, const char *who, const unsigned char *state,
                      const unsigned char *payloads, uint32_t pieces, size_t stride);
/* Paints got again, so that another implementation can be checked. */
void test_strip_repaint(test_strip *strip);
void test_strip_free(test_strip *strip);

#endif
