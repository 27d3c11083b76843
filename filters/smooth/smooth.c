/* smooth: descriptor, parameters and plan. */
#include "smooth/smooth.h"

#include "core/error.h"

static const char *const stage_names[] = {"enhance", "blur", "smooth", NULL};
static const char *const axis_names[] = {"x", "y", "xy", NULL};

static const gf_param params[] = {
    GF_NUMBER_PARAM(FLOAT, "gain", 'g', "G",
                    "enhance: gain of every sample; default: 1.1, or 1 with --keep-brightness",
                    NULL, 0, 100),
    GF_NUMBER_PARAM(INT, "radius", 'r', "R", "blur: neighbours averaged on each side", "2", 0,
                    GF_SMOOTH_MAX_RADIUS),
    GF_NUMBER_PARAM(FLOAT, "weight", 'w', "W", "smooth: weight applied after adding each neighbour",
                    "0.6", 0, 100),
    GF_CHOICE_PARAM(LIST, "stages", 0, "LIST", "stages to run, comma-separated, in this order",
                    "enhance,blur,smooth", stage_names),
    GF_CHOICE_PARAM(CHOICE, "axis", 'a', "AXIS",
                    "axis to filter along; x: rows, y: columns, xy: rows, then columns", "x",
                    axis_names),
    GF_NUMBER_PARAM(INT, "tile", 't', "N", "filter tiles of N samples separately; 0: no tiles", "0",
                    0, 2147483647),
    GF_FLAG_PARAM("keep-brightness", 'k', "undo the gain; flat areas keep their value"),
};

static const char *const cases[] = {
    "",
    "radius=0",
    "radius=1",
    "radius=3 gain=0.7 weight=0.25",
    "radius=4",
    "radius=8 weight=0.3333",
    "radius=64",
    "radius=127 keep-brightness",
    "gain=0",
    "gain=100 weight=100",
    "weight=0",
    "stages=enhance gain=1.7",
    "stages=blur",
    "stages=smooth weight=0.4",
    "stages=enhance,blur",
    "stages=enhance,smooth",
    "stages=blur,smooth radius=5",
    "keep-brightness",
    "keep-brightness gain=1.3 weight=0.9",
    "tile=256",
    "tile=1",
    "tile=2 keep-brightness",
    "tile=7 radius=3",
    "tile=33 radius=20",
    "axis=y",
    "axis=y radius=1 keep-brightness",
    "axis=y radius=9",
    "axis=y radius=64",
    "axis=y tile=16",
    "axis=y stages=smooth",
    "axis=xy",
    "axis=xy radius=7 keep-brightness",
    "axis=xy tile=24 radius=5",
    "axis=xy stages=blur radius=30",
    NULL,
};

/* Nanoseconds per sample on one core of a 2023 server: COST_BYTE per byte of the sample and pass,
 * COST_TAP_* per tap. For xy they include the halo rows. Used only for choosing a backend. */
#define COST_BYTE 0.1
#define COST_TAP_INTEGER 0.015
#define COST_TAP_X 0.03
#define COST_TAP_Y 0.04
#define COST_TAP_XY 0.2
#define COST_XY_INTEGER 0.35

#define DEFAULT_GAIN 1.1f

/* With a smaller weight, weighted samples lose digits as subnormals and the factors overflow. */
#define MIN_WEIGHT_KEPT 1e-30

static double smooth_cost(const gf_smooth_plan *plan) {
    const double taps = 2.0 * plan->radius + 1;
    const double pass = COST_BYTE * (double)gf_type_bytes(plan->head.in.type);
    if (plan->axis == GF_SMOOTH_XY && plan->integer.xy_scale > 0 && plan->integer.reach <= 3)
        return COST_XY_INTEGER;
    if (plan->axis == GF_SMOOTH_XY)
        return 2 * pass + COST_TAP_XY * taps;
    if (plan->integer.form != GF_SMOOTH_CHAIN_ONLY)
        return pass + COST_TAP_INTEGER * taps;
    return pass + (plan->axis == GF_SMOOTH_X ? COST_TAP_X : COST_TAP_Y) * taps;
}

/* Return the factor of one pass inside a flat area. length: samples of the signals of the pass. */
static double smooth_brightness(const gf_smooth_plan *plan, uint64_t length) {
    const uint64_t tile = plan->tile && plan->tile < length ? plan->tile : length;
    const double w = plan->weight;
    if (!plan->smooth || plan->keep_brightness || tile == 1)
        return plan->gain;
    return plan->gain * (tile == 2 ? 2 * w : w + 2 * w * w);
}

static gf_status plan_smooth(const gf_settings *settings, gf_plan *head, gf_error *error) {
    gf_smooth_plan *plan = (gf_smooth_plan *)head;
    const uint64_t stages = gf_settings_list(settings, "stages");
    plan->axis = (gf_smooth_axis)gf_settings_choice(settings, "axis");
    const bool enhance = stages & 1, blur = stages & 2;
    plan->smooth = stages & 4;
    plan->tile = (uint64_t)gf_settings_int(settings, "tile");
    plan->radius = blur ? (uint32_t)gf_settings_int(settings, "radius") : 0;
    /* Each sample on its own: rows are independent. */
    if (plan->axis == GF_SMOOTH_Y && plan->radius == 0 && !plan->smooth)
        plan->axis = GF_SMOOTH_X;
    plan->weight = gf_settings_float(settings, "weight");
    const bool keep = gf_settings_flag(settings, "keep-brightness");
    plan->keep_brightness = keep && plan->smooth;
    const bool given = gf_settings_given(settings, "gain");
    plan->gain = !enhance ? 1
                 : given  ? gf_settings_float(settings, "gain")
                 : keep   ? 1
                          : DEFAULT_GAIN;
    plan->inner_factor = plan->end_factor = 1;
    if (plan->keep_brightness) {
        if (!(plan->weight >= MIN_WEIGHT_KEPT))
            return gf_fail(
                error, GF_USAGE,
                "--keep-brightness: cannot undo a --weight below %g; use a larger weight",
                MIN_WEIGHT_KEPT);
        double w = plan->weight;
        plan->inner_factor = (float)(1 / (w + 2 * w * w));
        plan->end_factor = (float)(1 / (2 * w));
    }
    /* The factor of a flat area, and the advice against clipping. */
    head->brightness = plan->axis == GF_SMOOTH_Y ? 1 : smooth_brightness(plan, head->in.width);
    if (plan->axis != GF_SMOOTH_X)
        head->brightness *= smooth_brightness(plan, head->in.height);
    head->advice = keep                      ? "a lower --gain avoids it"
                   : given && plan->gain > 1 ? "--keep-brightness and --gain 1 avoid it"
                                             : "--keep-brightness avoids it";
    plan->integer = gf_smooth_integer_of(plan);
    head->golden_bytes =
        (head->in.width * head->in.height + 2 * (head->in.width + head->in.height)) * sizeof(float);
    /* With both passes, rows are not independent, even if no stage reads other rows. */
    head->before = head->after =
        plan->axis == GF_SMOOTH_X ? 0 : gf_max(plan->radius + plan->smooth, 1);
    head->cost = smooth_cost(plan);
    return GF_OK;
}

static gf_status smooth_effective(const gf_plan *plan, gf_settings *settings, gf_error *error) {
    char text[40];
    const double number = (double)((const gf_smooth_plan *)plan)->gain;
    const gf_value gain = {.type = GF_VALUE_FLOAT, .real = number};
    gf_value_format(&gain, text, sizeof text);
    return gf_settings_set(settings, "gain", text, error);
}

const gf_filter gf_smooth_filter = {
    .info =
        {
            .name = "smooth",
            .summary = "enhance, blur and smooth an image along its rows or columns",
            .details =
                "Runs three binary32 stages on every row (--axis x), rounding each operation:\n"
                "  enhance  P[i] = G * I[i]\n"
                "  blur     B[i] = mean of P[i-R] to P[i+R]\n"
                "  smooth   F[i] = W * (W * (B[i] + B[i-1]) + B[i+1])\n"
                "Only samples of the row count as neighbours: there is no padding.\n"
                "\n"
                "By default, flat areas become G * (W + 2 W^2) = 1.452 times as bright, and\n"
                "bright areas clip. --keep-brightness undoes this gain.\n"
                "\n"
                "The chain is not symmetric: the weights of I[i-3] to I[i+3] in F[i] are 0.055\n"
                "0.109 0.2 0.2 0.2 0.145 0.091 (times 1.452). Each pass therefore shifts the\n"
                "image by (1 - W) / (1 + 2 W) = 0.18 pixels to the left, or up with --axis y.\n"
                "W = 1 causes no shift.\n"
                "\n"
                "Alpha is copied unchanged. All backends produce the same bits.\n",
            .examples = "gpufilter smooth --keep-brightness in.png out.png\n"
                        "gpufilter smooth --keep-brightness --axis xy --radius 4 in.png out.png\n"
                        "gpufilter smooth --stages blur --format ppm - - <in.png >out.ppm\n"
                        "gpufilter smooth -k *.png --out-dir out --name '{stem}-smooth{ext}'\n"
                        "gpufilter smooth -k --recursive photos --out-dir out --resume\n",
            GF_IMAGE_FILTER(params, cases),
        },
    .plan_bytes = sizeof(gf_smooth_plan),
    .plan = plan_smooth,
    .effective = smooth_effective,
    .mixes_pixels = true,
    .golden = gf_smooth_golden,
    .cpu = {gf_smooth_cpu_scratch, GF_LEVELS(gf_smooth_cpu)},
};
