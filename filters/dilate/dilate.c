/* dilate: descriptor and parameters. */
#include "percentile/percentile.h"

static const gf_param params[] = {
    GF_RADIUS_PARAM(GF_PERCENTILE_MAX_EXTREME),
    GF_EDGE_PARAM("replicate"),
};

static const char *const cases[] = {
    "",
    "radius=2 edge=mirror",
    "radius=1,3 edge=reflect",
    "radius=4,0",
    "radius=0,5 edge=constant:9",
    "radius=7",
    "radius=30,12 edge=constant:1",
    "radius=63 edge=reflect",
    "radius=511,90",
    NULL,
};

static gf_status plan_dilate(const gf_settings *settings, gf_plan *head, gf_error *error) {
    return gf_percentile_set(head, settings, 100, error);
}

const gf_filter gf_dilate_filter = {
    .info =
        {
            .name = "dilate",
            .summary = "replace each sample by the maximum of its neighbourhood",
            .details =
                "Each sample becomes the largest of the 2R+1 by 2RY+1 samples around it: bright\n"
                "objects grow by R pixels on each side, and small gaps close. A dilation and then\n"
                "an erosion (closing) fills small dark gaps.\n"
                "\n"
                "Alpha is copied unchanged. All backends produce the same bits.\n",
            .examples = "gpufilter dilate in.png larger.png\n"
                        "gpufilter dilate --radius 0,7 in.png out.png\n",
            GF_IMAGE_FILTER(params, cases),
        },
    .plan_bytes = sizeof(gf_percentile_plan),
    .plan = plan_dilate,
    .golden = gf_percentile_golden,
    .cpu = {gf_percentile_cpu_scratch, GF_LEVELS(gf_percentile_cpu)},
};
