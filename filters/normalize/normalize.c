/* normalize: descriptor, plan, and the means learned from axis-sum. */
#include "normalize/normalize.h"

#include "axis_sum/axis_sum.h"
#include "samples.h"

static const char *const cases[] = {"", NULL};

#define COST 0.6 /* approximate nanoseconds per sample on one core */

static gf_status plan_normalize(const gf_settings *settings, gf_plan *head, gf_error *error) {
    gf_normalize_plan *plan = (gf_normalize_plan *)head;
    plan->half = head->in.type == GF_F32 ? 1 : (float)gf_type_max(head->in.type) / 2;
    head->cost = COST;
    head->constants = plan->mean;
    head->constant_bytes = sizeof plan->mean;
    return gf_plan_measure_first(head, &gf_axis_sum_filter, "", error);
}

static gf_status refine(gf_plan *head, const void *sums, gf_error *error) {
    gf_normalize_plan *plan = (gf_normalize_plan *)head;
    const double count = (double)head->in.width * (double)head->in.height;
    for (uint32_t c = 0; c < gf_measured_channels(&head->in); c++) {
        const float mean = (float)(gf_axis_sum_total(sums, c) / count);
        plan->mean[c] = mean <= 0 ? 1 : mean;
    }
    return GF_OK;
}

const gf_filter gf_normalize_filter = {
    .info =
        {
            .name = "normalize",
            .summary = "divide every sample by the mean of its channel",
            .operands = "IN OUT",
            .details =
                "Computes the mean of each channel, exactly or in a fixed order, and divides\n"
                "every sample by it. The mean becomes half of the largest value in integer\n"
                "images and 1 in f32 images. Alpha is copied unchanged. A file is read twice;\n"
                "input from a pipe is kept in memory. All backends produce the same bits.\n",
            .examples = "gpufilter normalize in.png out.png\n"
                        "gpufilter normalize exposure.pfm flat.pfm\n",
            .inputs = 1,
            .makes_image = true,
            .cases = cases,
        },
    .plan_bytes = sizeof(gf_normalize_plan),
    .plan = plan_normalize,
    .refine = refine,
    .golden = gf_normalize_golden,
    .cpu = {.run = GF_LEVELS(gf_normalize_cpu)},
};
