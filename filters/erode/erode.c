/* erode: descriptor and parameters. */
#include "percentile/percentile.h"

static const gf_param params[] = {
    GF_RADIUS_PARAM(GF_PERCENTILE_MAX_EXTREME),
    GF_EDGE_PARAM("replicate"),
};

static const char *const cases[] = {
    "",
    "radius=2 edge=mirror",
    "radius=3,1 edge=reflect",
    "radius=0,4",
    "radius=5,0 edge=constant:9",
    "radius=7",
    "radius=12,30 edge=constant:1",
    "radius=64",
    "radius=200,511",
    NULL,
};

static gf_status plan_erode(const gf_settings *settings, gf_plan *head, gf_error *error) {
    return gf_percentile_set(head, settings, 0, error);
}

const gf_filter gf_erode_filter = {
    .info =
        {
            .name = "erode",
            .summary = "replace each sample by the minimum of its neighbourhood",
            .details =
                "Each sample becomes the smallest of the 2R+1 by 2RY+1 samples around it: bright\n"
                "objects shrink by R pixels on each side, and small ones vanish. An erosion and\n"
                "then a dilation (opening) removes small bright objects.\n"
                "\n"
                "Alpha is copied unchanged. All backends produce the same bits.\n",
            .examples = "gpufilter erode in.png smaller.png\n"
                        "gpufilter erode --radius 7,0 in.png out.png\n",
            GF_IMAGE_FILTER(params, cases),
        },
    .plan_bytes = sizeof(gf_percentile_plan),
    .plan = plan_erode,
    .golden = gf_percentile_golden,
    .cpu = {gf_percentile_cpu_scratch, GF_LEVELS(gf_percentile_cpu)},
};
