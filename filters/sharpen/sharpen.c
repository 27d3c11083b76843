/* sharpen: descriptor, parameters and plan. */
#include "separable/separable.h"

static const gf_param params[] = {
    GF_NUMBER_PARAM(PAIR, "sigma", 's', "S[,SY]",
                    "standard deviation in pixels of the Gaussian, along x and y", "1", 0.2, 120),
    GF_NUMBER_PARAM(FLOAT, "amount", 'a', "A", "factor of the difference to the blurred image", "1",
                    0, 100),
    GF_NUMBER_PARAM(FLOAT, "threshold", 't', "T",
                    "smallest difference that is sharpened, in sample values", "0", 0, 65535),
    GF_EDGE_PARAM("mirror"),
};

static const char *const cases[] = {
    "",
    "sigma=0.5 amount=2.5",
    "sigma=2 threshold=3 edge=replicate",
    "sigma=3,0 amount=0.3 edge=reflect",
    "sigma=6 amount=100 threshold=0.01",
    "sigma=25 amount=0.7 edge=constant:1",
    "amount=0",
    NULL,
};

#define TRUNCATE 4 /* radius of the window in standard deviations, the default of gaussian */

static gf_status plan_sharpen(const gf_settings *settings, gf_plan *head, gf_error *error) {
    gf_separable_plan *plan = (gf_separable_plan *)head;
    plan->sharpen = true;
    plan->amount = gf_settings_float(settings, "amount");
    plan->threshold = gf_settings_float(settings, "threshold");
    return gf_separable_set(head, settings, TRUNCATE, error);
}

const gf_filter gf_sharpen_filter = {
    .info =
        {
            .name = "sharpen",
            .summary = "sharpen an image by an unsharp mask",
            .details =
                "Each sample v becomes v + A * (v - G), where G is the Gaussian blur of the image.\n"
                "G is not rounded. Samples with |v - G| < T stay unchanged.\n"
                "\n"
                "Alpha is copied unchanged. All backends produce the same bits.\n",
            .examples = "gpufilter sharpen in.png out.png\n"
                        "gpufilter sharpen --sigma 2 --amount 0.5 --threshold 3 in.png out.png\n",
            GF_IMAGE_FILTER(params, cases),
        },
    .plan_bytes = sizeof(gf_separable_plan),
    .plan = plan_sharpen,
    .mixes_pixels = true,
    .golden = gf_separable_golden,
    .cpu = {gf_separable_cpu_scratch, GF_LEVELS(gf_separable_cpu)},
};
