/* threshold: parameter table, plan and golden function. Without a CPU function of its own, the
 * filter runs the golden function on the cpu backend too. */
#include "threshold/threshold.h"

#include "samples.h"

static const gf_param params[] = {
    {.name = "level",
     .letter = 'l',
     .type = GF_PARAM_FLOAT,
     .metavar = "L",
     .help = "level as a fraction of the maximum sample value",
     .fallback = "0.5",
     .min = 0,
     .max = 1},
};

/* Settings that the tests, digests and benchmarks run. */
static const char *const cases[] = {"", "level=0", "level=0.25", "level=1", NULL};

static gf_status plan_threshold(const gf_settings *settings, gf_plan *head, gf_error *error) {
    gf_threshold_plan *plan = (gf_threshold_plan *)head;
    plan->limit = gf_settings_float(settings, "level") * (float)gf_type_max(head->in.type);
    head->cost = 2.0; /* estimated nanoseconds per sample on one core, for auto */
    return GF_OK;
}

/* Compute one strip. All backends must produce the same bits. */
static gf_status golden_threshold(const gf_plan *head, const gf_strip *strip, gf_error *error) {
    const gf_threshold_plan *plan = (const gf_threshold_plan *)head;
    const gf_format *format = &head->in;
    for (uint64_t y = strip->out.y0; y < strip->out.y0 + strip->out.rows; y++) {
        const unsigned char *in = gf_row(&strip->in[0], y);
        unsigned char *out = gf_row(&strip->out, y);
        for (uint64_t i = 0; i < gf_row_samples(format); i++) {
            const bool reached = gf_get_sample(format->type, in, i) >= plan->limit;
            gf_put_sample(format->type, out, i, reached ? (float)gf_type_max(format->type) : 0);
        }
        gf_restore_alpha(format, in, out, format->width);
    }
    return GF_OK;
}

const gf_filter gf_threshold_filter = {
    .info =
        {
            .name = "threshold",
            .summary = "set samples below a level to 0, and all others to the maximum",
            .details =
                "Samples at or above the level become the maximum of their type (1 for f32).\n"
                "All other samples, including NaN, become 0. Alpha is copied unchanged.\n"
                "All backends produce the same bits.\n",
            .examples = "gpufilter threshold in.png out.png\n"
                        "gpufilter threshold --level 0.25 in.png out.png\n",
            GF_IMAGE_FILTER(params, cases),
        },
    .plan_bytes = sizeof(gf_threshold_plan),
    .plan = plan_threshold,
    .golden = golden_threshold,
};
