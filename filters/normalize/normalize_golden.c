/* Golden implementation of normalize: docs/numerics.md defines it. */
#include "normalize/normalize.h"
#include "samples.h"

gf_status gf_normalize_golden(const gf_plan *head, const gf_strip *strip, gf_error *error) {
    const gf_normalize_plan *plan = (const gf_normalize_plan *)head;
    const gf_format *format = &head->in;
    const float *mean = strip->constants;
    const uint32_t measured = gf_measured_channels(format);
    for (uint64_t y = strip->out.y0; y < strip->out.y0 + strip->out.rows; y++) {
        const unsigned char *in = gf_row(&strip->in[0], y);
        unsigned char *out = gf_row(&strip->out, y);
        for (uint64_t x = 0; x < format->width; x++)
            for (uint32_t c = 0; c < measured; c++) {
                const uint64_t i = x * format->channels + c;
                const float share = gf_get_sample(format->type, in, i) / mean[c];
                gf_put_sample(format->type, out, i, share * plan->half); /* f32: half is 1 */
            }
        gf_restore_alpha(format, in, out, format->width);
    }
    return GF_OK;
}
