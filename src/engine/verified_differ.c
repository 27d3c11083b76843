#include "engine/verified_differ.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Index of the first item that differs; some does. */
static uint64_t first_of(const void *a, const void *b, size_t item) {
    const unsigned char *p = a, *q = b;
    uint64_t i = 0;
    while (memcmp(p + i * item, q + i * item, item) == 0)
        i++;
    return i;
}

/* A sample as people read it; of f32 its bits, too, since many values look alike. */
static void sample_text(gf_type type, const unsigned char *row, uint64_t i, char text[64]) {
    uint16_t u16;
    float f32;
    uint32_t bits;
    char number[40];
    switch (type) {
    case GF_U8:
        snprintf(text, 64, "%u", row[i]);
        break;
    case GF_U16:
        memcpy(&u16, row + i * sizeof u16, sizeof u16);
        snprintf(text, 64, "%u", u16);
        break;
    default:
        memcpy(&f32, row + i * sizeof f32, sizeof f32);
        memcpy(&bits, row + i * sizeof bits, sizeof bits);
        gf_value_format(&(gf_value){.type = GF_VALUE_FLOAT, .real = (double)f32}, number,
                        sizeof number);
        snprintf(text, 64, "%s (0x%08" PRIx32 ")", number, bits);
    }
}

static void tell_sample(const gf_format *format, uint64_t y, const unsigned char *golden,
                        const unsigned char *got, char where[GF_DIFFER_TEXT]) {
    const uint64_t i = first_of(golden, got, gf_type_bytes(format->type));
    char is[64], should[64];
    sample_text(format->type, got, i, is);
    sample_text(format->type, golden, i, should);
    snprintf(where, GF_DIFFER_TEXT,
             "x %" PRIu64 ", y %" PRIu64 ", channel %" PRIu64 " is %s and should be %s",
             i / format->channels, y, i % format->channels, is, should);
}

static void tell_word(const char *of, const void *golden, const void *got,
                      char where[GF_DIFFER_TEXT]) {
    const uint64_t i = first_of(golden, got, sizeof(uint64_t));
    uint64_t is, should;
    memcpy(&is, (const unsigned char *)got + i * sizeof is, sizeof is);
    memcpy(&should, (const unsigned char *)golden + i * sizeof should, sizeof should);
    snprintf(where, GF_DIFFER_TEXT,
             "number %" PRIu64 " of what was measured of %s is 0x%" PRIx64
             " and should be 0x%" PRIx64,
             i, of, is, should);
}

void gf_rows_differ(const gf_plan *plan, const gf_rows *golden, const gf_rows *got,
                    char where[GF_DIFFER_TEXT]) {
    const size_t row_bytes = plan->out.width ? gf_row_bytes(&plan->out) : 0;
    for (uint64_t y = golden->y0; y < golden->y0 + golden->rows; y++) {
        const unsigned char *p = gf_row(golden, y), *q = gf_row(got, y);
        if (row_bytes && memcmp(p, q, row_bytes) != 0) {
            tell_sample(&plan->out, y, p, q, where);
            return;
        }
        const void *a = gf_record(plan, golden, y), *b = gf_record(plan, got, y);
        if (plan->record && memcmp(a, b, plan->record) != 0) {
            char of[40];
            snprintf(of, sizeof of, "row %" PRIu64, y);
            tell_word(of, a, b, where);
            return;
        }
    }
}

bool gf_state_differs(const gf_plan *plan, const void *golden, const void *got,
                      char where[GF_DIFFER_TEXT]) {
    if (memcmp(golden, got, (size_t)plan->state_bytes) == 0)
        return false;
    tell_word("the image", golden, got, where);
    return true;
}
