/* What threshold is: its descriptor, its parameter and its plan. */
#include "threshold/threshold.h"

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

#define COST 0.3 /* nanoseconds a sample takes one core, about: for auto */

static gf_status plan_threshold(const gf_settings *settings, gf_plan *head, gf_error *error) {
    (void)error;
    gf_threshold_plan *plan = (gf_threshold_plan *)head;
    plan->largest = head->in.type == GF_U8 ? 255.0f : head->in.type == GF_U16 ? 65535.0f : 1.0f;
    plan->limit = gf_settings_float(settings, "level") * plan->largest;
    head->cost = COST;
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
    .golden = gf_threshold_golden,
    .cpu = {gf_threshold_cpu_scratch, gf_threshold_cpu},
    .cuda = GF_IF_CUDA(&gf_threshold_cuda),
};
