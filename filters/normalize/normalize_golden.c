/* normalize as docs/numerics.md says it. */
#include <math.h>
#include <string.h>

#include "normalize/normalize.h"

static float clamp(float x, float max) {
    return x > 0 ? x < max ? x : max : 0;
}

static void normalize_sample(const gf_normalize_plan *plan, const unsigned char *in,
                             unsigned char *out, uint64_t i, uint32_t c) {
    const float m = plan->mean[c];
    float f;
    uint16_t u16;
    switch (plan->head.in.type) {
    case GF_U8:
        out[i] = (unsigned char)rintf(clamp((float)in[i] / m * plan->half, 255));
        break;
    case GF_U16:
        memcpy(&u16, in + i * 2, 2);
        u16 = (uint16_t)rintf(clamp((float)u16 / m * plan->half, 65535));
        memcpy(out + i * 2, &u16, 2);
        break;
    default:
        memcpy(&f, in + i * 4, 4);
        f = f / m;
        if (f != f)
            memcpy(&f, &(uint32_t){0x7fc00000}, 4);
        memcpy(out + i * 4, &f, 4);
        break;
    }
}

gf_status gf_normalize_golden(const gf_plan *head, const gf_band *band, gf_error *error) {
    (void)error;
    const gf_normalize_plan *plan = (const gf_normalize_plan *)head;
    const gf_format *format = &head->in;
    const size_t bytes = gf_type_bytes(format->type);
    for (uint64_t y = band->out.y0; y < band->out.y0 + band->out.rows; y++) {
        const unsigned char *in = gf_row(&band->in, y);
        unsigned char *out = gf_row(&band->out, y);
        for (uint64_t x = 0; x < format->width; x++)
            for (uint32_t c = 0; c < format->channels; c++) {
                const uint64_t i = x * format->channels + c;
                if (gf_has_alpha(format->channels) && c == format->channels - 1)
                    memcpy(out + i * bytes, in + i * bytes, bytes);
                else
                    normalize_sample(plan, in, out, i, c);
            }
    }
    return GF_OK;
}
