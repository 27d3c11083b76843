/* A band from the middle of an image, computed by a backend's own functions in painted memory. */
#ifndef BAND_H
#define BAND_H

#include "testing.h"

typedef struct test_band {
    const gf_filter *filter;
    const char *text; /* its case */
    uint64_t seed;
    gf_settings *settings;
    gf_plan *plan;
    unsigned char *in, *want, *got; /* memory, margins included */
    size_t in_size, out_size;
    gf_rows all;               /* all rows of the input */
    gf_rows from;              /* of it: the band and exactly its halo */
    gf_rows out;               /* the rows to compute, in got */
    unsigned char *state;      /* before this band; painted margins, states begin after them */
    unsigned char *want_state; /* after it */
    size_t state_size;
    unsigned char *want_payload;
    size_t payload_bytes; /* at most, of the band */
} test_band;

/* False if the case does not suit the format: then nothing is there. whole: all rows. row_align:
 * image rows begin on multiples of that many bytes; 0: wherever they end up. Records alone begin on
 * multiples of 8. */
bool test_band_new(test_band *band, const gf_filter *filter, const char *text, uint64_t seed,
                   gf_format format, bool whole, size_t row_align);
/* Fails the test if rows, state or payloads differ from golden's, or if anything but the band's
 * rows was written. state: margins included. payloads: `pieces` of them, in order, a stride apart.
 */
void test_band_check(const test_band *band, const char *who, const unsigned char *state,
                     const unsigned char *payloads, uint32_t pieces, size_t stride);
/* Paints got again, so that another implementation can be checked. */
void test_band_repaint(test_band *band);
void test_band_free(test_band *band);

#endif
