/* box: descriptor, parameters and plan. */
#include "separable/separable.h"

static const gf_param params[] = {
    GF_RADIUS_PARAM(GF_SEPARABLE_MAX_RADIUS),
    GF_EDGE_PARAM("mirror"),
};

static const char *const cases[] = {
    "",
    "radius=2 edge=replicate",
    "radius=3,1 edge=reflect",
    "radius=0,4",
    "radius=5,0 edge=constant:9",
    "radius=7",
    "radius=12,30 edge=constant:1",
    "radius=64 edge=reflect",
    "radius=200,511",
    NULL,
};

static gf_status plan_box(const gf_settings *settings, gf_plan *head, gf_error *error) {
    return gf_separable_set(head, settings, 0, error);
}

const gf_filter gf_box_filter = {
    .info =
        {
            .name = "box",
            .summary = "blur an image by the mean of a rectangle",
            .details =
                "Each sample becomes the mean of the 2R+1 by 2RY+1 samples around it. The mean of\n"
                "integer samples is their exact sum, divided and rounded once.\n"
                "\n"
                "Alpha is copied unchanged. All backends produce the same bits.\n",
            .examples = "gpufilter box --radius 2 in.png out.png\n"
                        "gpufilter box --radius 40,0 in.png horizontal.png\n",
            GF_IMAGE_FILTER(params, cases),
        },
    .plan_bytes = sizeof(gf_separable_plan),
    .plan = plan_box,
    .mixes_pixels = true,
    .golden = gf_separable_golden,
    .cpu = {gf_separable_cpu_scratch, GF_LEVELS(gf_separable_cpu)},
};
