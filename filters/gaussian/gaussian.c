/* gaussian: descriptor, parameters and plan. */
#include "separable/separable.h"

static const gf_param params[] = {
    GF_NUMBER_PARAM(PAIR, "sigma", 's', "S[,SY]",
                    "standard deviation in pixels, along x and y; 0 leaves an axis alone", "1", 0.2,
                    120),
    GF_NUMBER_PARAM(FLOAT, "truncate", 0, "T",
                    "radius of the window in standard deviations, at most 511 pixels", "4", 0.1,
                    100),
    GF_EDGE_PARAM("mirror"),
};

static const char *const cases[] = {
    "",
    "sigma=0.2",
    "sigma=0.6 edge=reflect",
    "sigma=0.8,3 edge=replicate",
    "sigma=2 edge=constant:7",
    "sigma=2,0",
    "sigma=0,3.7 edge=constant:0",
    "sigma=5",
    "sigma=1.3 truncate=0.3",
    "sigma=4 truncate=5 edge=replicate",
    "sigma=5.2,1 edge=reflect",
    "sigma=1,12 edge=constant:1",
    "sigma=30",
    "sigma=120 edge=reflect",
    NULL,
};

static gf_status plan_gaussian(const gf_settings *settings, gf_plan *head, gf_error *error) {
    const double truncate = (double)gf_settings_float(settings, "truncate");
    return gf_separable_set(head, settings, truncate, error);
}

const gf_filter gf_gaussian_filter = {
    .info =
        {
            .name = "gaussian",
            .summary = "blur an image by a Gaussian",
            .details =
                "Each sample becomes a weighted mean of its neighbours. Weights fall with the\n"
                "distance: exp(-d^2 / (2 S^2)). The window ends at floor(T * S + 0.5) pixels.\n"
                "\n"
                "Integer samples are rounded once, after both axes, and are within 0.6 of the\n"
                "real result. A flat integer image stays flat.\n"
                "\n"
                "With the same --sigma, scipy.ndimage.gaussian_filter and OpenCV compute the same\n"
                "filter; their results differ in rounding, and OpenCV's window ends earlier.\n"
                "\n"
                "Alpha is copied unchanged. All backends produce the same bits.\n",
            .examples = "gpufilter gaussian --sigma 2 in.png out.png\n"
                        "gpufilter gaussian --sigma 5,0 in.png horizontal.png\n"
                        "gpufilter gaussian -s 1.5 -e replicate *.png --out-dir blurred\n",
            GF_IMAGE_FILTER(params, cases),
        },
    .plan_bytes = sizeof(gf_separable_plan),
    .plan = plan_gaussian,
    .mixes_pixels = true,
    .golden = gf_separable_golden,
    .cpu = {gf_separable_cpu_scratch, GF_LEVELS(gf_separable_cpu)},
};
