/* median: descriptor and parameters. */
#include "percentile/percentile.h"

static const gf_param params[] = {
    GF_RADIUS_PARAM(GF_PERCENTILE_MAX_RADIUS),
    GF_EDGE_PARAM("replicate"),
};

static const char *const cases[] = {
    "",
    "radius=2",
    "radius=3 edge=mirror",
    "edge=constant:9",
    "radius=2 edge=reflect",
    "radius=3 edge=constant:1",
    "radius=4",
    "radius=2,1 edge=reflect",
    "radius=0,3",
    "radius=7",
    "radius=13,6 edge=constant:100",
    "radius=25 edge=mirror",
    "radius=63",
    NULL,
};

static gf_status plan_median(const gf_settings *settings, gf_plan *head, gf_error *error) {
    return gf_percentile_set(head, settings, 50, error);
}

const gf_filter gf_median_filter = {
    .info =
        {
            .name = "median",
            .summary = "remove noise by the median of a neighbourhood",
            .details =
                "Each sample becomes the median of the 2R+1 by 2RY+1 samples around it. Single\n"
                "bright and dark pixels vanish, and edges stay sharp.\n"
                "\n"
                "Alpha is copied unchanged. All backends produce the same bits.\n",
            .examples = "gpufilter median in.png out.png\n"
                        "gpufilter median --radius 3 in.png out.png\n",
            GF_IMAGE_FILTER(params, cases),
        },
    .plan_bytes = sizeof(gf_percentile_plan),
    .plan = plan_median,
    .golden = gf_percentile_golden,
    .cpu = {gf_percentile_cpu_scratch, GF_LEVELS(gf_percentile_cpu)},
};
