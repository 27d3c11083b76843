/* A strip from the middle of an image, computed by the functions of a backend in painted memory. */
#ifndef STRIP_H
#define STRIP_H

#include "testing.h"

typedef struct test_strip {
    const gf_filter *filter;
    const char *text; /* its case */
    uint64_t seed;
    gf_settings *settings;
    gf_plan *plan;
    unsigned char *in, *want, *got; /* memory, including margins */
    size_t in_size, out_size;
    gf_rows all[2];            /* all rows of the inputs */
    gf_rows from[2];           /* rows of the inputs: exactly those that the strip needs */
    gf_rows out;               /* rows to compute, in `got` */
    unsigned char *records;    /* of these rows, in `got` */
    unsigned char *state;      /* before the strip, between painted margins */
    unsigned char *want_state; /* after the strip */
    size_t state_size;
    unsigned char *want_payload;
    size_t payload_bytes; /* maximum for the strip */
} test_strip;

/* Make a strip. Return false, with no memory allocated, if the case does not support the format.
 * whole: all rows. row_align: alignment of image rows in bytes; 0: none. Rows that contain only
 * records are aligned to 8 bytes. */
bool test_strip_new(test_strip *strip, const gf_filter *filter, const char *text, uint64_t seed,
                    gf_format format, bool whole, size_t row_align);
/* Fail the test if rows, state or payloads differ from golden's, or if bytes outside of the strip's
 * rows were written. state: including margins. payloads: `pieces` payloads in order, `stride` bytes
 * apart. */
void test_strip_check(const test_strip *strip, const char *backend, const unsigned char *state,
                      const unsigned char *payloads, uint32_t pieces, size_t stride);
/* Repaint `got`, so that another implementation can be checked. */
void test_strip_repaint(test_strip *strip);
void test_strip_free(test_strip *strip);

/* The same for the CUDA function of a filter on a random image, run alone on painted device memory.
 * whole: all rows. row_align: as above; the engine uses 64. Return false if the case does not
 * support the format. Requires a device. */
bool test_strip_on_device(const gf_filter *filter, const char *text, uint64_t seed,
                          gf_format format, bool whole, size_t row_align);

#endif
