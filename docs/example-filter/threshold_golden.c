/* threshold as its help says it: written to be believed. */
#include <string.h>

#include "threshold/threshold.h"

/* Sample i of a row as a number. */
static float get(gf_type type, const unsigned char *row, uint64_t i) {
    uint16_t u16;
    float f32;
    switch (type) {
    case GF_U8:
        return row[i];
    case GF_U16:
        memcpy(&u16, row + 2 * i, 2);
        return u16;
    default:
        memcpy(&f32, row + 4 * i, 4);
        return f32;
    }
}

static void put(gf_type type, unsigned char *row, uint64_t i, float x) {
    uint16_t u16 = 0;
    switch (type) {
    case GF_U8:
        row[i] = (unsigned char)x;
        break;
    case GF_U16:
        u16 = (uint16_t)x;
        memcpy(row + 2 * i, &u16, 2);
        break;
    default:
        memcpy(row + 4 * i, &x, 4);
        break;
    }
}

gf_status gf_threshold_golden(const gf_plan *head, const gf_band *band, gf_error *error) {
    (void)error;
    const gf_threshold_plan *plan = (const gf_threshold_plan *)head;
    const gf_format *format = &head->in;
    const size_t bytes = gf_type_bytes(format->type);
    for (uint64_t y = band->out.y0; y < band->out.y0 + band->out.rows; y++) {
        const unsigned char *in = gf_row(&band->in, y);
        unsigned char *out = gf_row(&band->out, y);
        for (uint64_t i = 0; i < gf_row_samples(format); i++) {
            const uint64_t channel = i % format->channels;
            if (gf_has_alpha(format->channels) && channel == format->channels - 1)
                memcpy(out + i * bytes, in + i * bytes, bytes);
            else
                put(format->type, out, i,
                    get(format->type, in, i) >= plan->limit ? plan->largest : 0);
        }
    }
    return GF_OK;
}
