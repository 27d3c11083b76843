/* threshold: its parameter, its plan, and its definition, which the cpu backend runs, too. */
#include "threshold/threshold.h"

#include "samples.h"

static const gf_param params[] = {
    {.name = "level",
     .letter = 'l',
     .type = GF_PARAM_FLOAT,
     .metavar = "L",
     .help = "the least sample that stays, as a share of the largest value",
     .fallback = "0.5",
     .min = 0,
     .max = 1},
};

/* Every test, digest and benchmark goes through these. */
static const char *const cases[] = {"", "level=0", "level=0.25", "level=1", NULL};

static gf_status plan_threshold(const gf_settings *settings, gf_plan *head, gf_error *error) {
    (void)error;
    gf_threshold_plan *plan = (gf_threshold_plan *)head;
    plan->limit = gf_settings_float(settings, "level") * (float)gf_type_max(head->in.type);
    head->cost = 2.0; /* nanoseconds a sample takes one core, about: for auto */
    return GF_OK;
}

/* Every backend must give these bits. */
static gf_status golden_threshold(const gf_plan *head, const gf_strip *strip, gf_error *error) {
    (void)error;
    const gf_threshold_plan *plan = (const gf_threshold_plan *)head;
    const gf_format *format = &head->in;
    for (uint64_t y = strip->out.y0; y < strip->out.y0 + strip->out.rows; y++) {
        const unsigned char *in = gf_row(&strip->in, y);
        unsigned char *out = gf_row(&strip->out, y);
        for (uint64_t i = 0; i < gf_row_samples(format); i++) {
            const bool stays = gf_get_sample(format->type, in, i) >= plan->limit;
            gf_put_sample(format->type, out, i, stays ? (float)gf_type_max(format->type) : 0);
        }
        gf_restore_alpha(format, in, out, format->width);
    }
    return GF_OK;
}

const gf_filter gf_threshold_filter = {
    .info =
        {
            .name = "threshold",
            .summary = "make samples below a level 0, and the others the largest value",
            .operands = "IN OUT",
            .details =
                "A sample that is at least the level becomes the largest value of its type (1\n"
                "for f32), any other one 0, and so does NaN. Alpha is carried through untouched.\n"
                "Every backend gives the same bits.\n",
            .examples = "gpufilter threshold in.png out.png\n"
                        "gpufilter threshold --level 0.25 in.png out.png\n",
            .params = params,
            .param_count = sizeof params / sizeof params[0],
            .inputs = 1,
            .makes_image = true,
            .cases = cases,
        },
    .plan_bytes = sizeof(gf_threshold_plan),
    .plan = plan_threshold,
    .golden = golden_threshold,
    .cuda = GF_IF_CUDA(&gf_threshold_cuda),
};
