/* hist: descriptor, parameters and plan. */
#include "hist/hist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

static const char *const channel_names[] = {"r", "g", "b", "a", "luma", "all", NULL};
enum { RED, GREEN, BLUE, ALPHA, LUMA, ALL };
static const char *const range_names[] = {"data", NULL};

static const gf_param params[] = {
    GF_NUMBER_PARAM(INT, "bins", 'n', "N", "number of bins of equal width", "256", 1,
                    GF_HIST_MAX_BINS),
    GF_CHOICE_PARAM(
        RANGE, "range", 0, "LO,HI",
        "value range of the bins; samples outside are counted separately; data: minimum and "
        "maximum of the finite samples; default: 0 to the largest value of the type, 1 for f32",
        NULL, range_names),
    GF_CHOICE_PARAM(
        CHOICE, "channel", 'C', "NAME",
        "channel to count; all includes alpha; default: the grey channel, or the luma of a "
        "colour image",
        NULL, channel_names),
    GF_FLAG_PARAM("per-row", 0, "also report the counts of each row"),
    GF_FLAG_PARAM(
        "statistics", 0,
        "also report min, max, mean, standard deviation, median and percentiles, as the first "
        "table; default: only where each bin holds one integer value, and as a further table"),
    GF_TEXT_PARAM(TEXT, "extract", 'x', "BINS", "bins to extract: 3, up to 64 as in 3,5,9, or all",
                  NULL),
    GF_TEXT_PARAM(SAMPLES, "out", 'o', "FILE",
                  "write the extracted samples to a .csv, .npy or .json file", NULL),
    GF_TEXT_PARAM(
        IMAGE, "mask", 'm', "FILE",
        "draw the pixels of the extracted bins; all others are transparent, or 0 in f32 images",
        NULL),
};

static const char *const cases[] = {
    "",
    "bins=1",
    "bins=8",
    "bins=8 extract=3 out=-",
    "bins=8 extract=0,7 out=- mask=-",
    "bins=5 extract=all out=- channel=all",
    "bins=7 channel=r extract=2 mask=-",
    "bins=3 channel=all extract=1 out=-",
    "bins=16 channel=a",
    "bins=255",
    "bins=1000 channel=all",
    "bins=4096 extract=0,1,2,3,100,2047,2048,4094,4095 out=-",
    "bins=20000",
    "bins=65536 channel=luma",
    "bins=65536 extract=all out=-",
    "bins=12 range=0.25,0.75",
    "bins=10 range=-3,200.5 extract=0,9 out=-",
    "bins=300 range=100,30000 channel=all mask=- extract=5",
    "bins=2 range=-1e-44,1e-44 extract=1 out=-",
    "bins=6 per-row",
    "bins=6 per-row channel=all mask=- extract=1,2 out=-",
    "bins=3100 per-row channel=all",
    "bins=9 range=data",
    "bins=4 range=data channel=all extract=0,3 out=-",
    "bins=8 statistics",
    "bins=7 statistics channel=all range=-3,200.5",
    "bins=5 statistics channel=all per-row extract=1,2 out=- mask=-",
    "bins=6 statistics per-row",
    "bins=4 statistics channel=a extract=3 out=-",
    NULL,
};

/* Approximate nanoseconds per sample on one core: counting, and the extra cost of extracting from
 * one bin or from several. */
#define COST_COUNT 0.4
#define COST_EXTRACT 0.4
#define COST_EXTRACT_SEVERAL 1.5
/* Extra cost of statistics, for u16 and f32. */
#define COST_VALUES 0.6
#define COST_ROW_SUMS 1.0

/* ---- extracted bins -------------------------------------------------------------------------- */

static gf_status parse_extract(gf_hist_plan *plan, const char *text, gf_error *error) {
    if (strcmp(text, "all") == 0) {
        plan->extract_all = true;
        plan->extracts = plan->bins;
        return GF_OK;
    }
    for (const char *item = text;; item++) {
        char *end;
        const unsigned long long bin = strtoull(item, &end, 10);
        if (*item < '0' || *item > '9' || plan->extracts == GF_HIST_MAX_LISTED ||
            bin >= plan->bins || (*end != 0 && *end != ',') ||
            (plan->extracts > 0 && bin <= plan->listed[plan->extracts - 1]))
            return gf_fail(error, GF_USAGE,
                           "--extract '%s': expected bins from 0 to %u in ascending order, at most "
                           "%d, such as 3 or 3,5; or all",
                           text, plan->bins - 1, GF_HIST_MAX_LISTED);
        plan->listed[plan->extracts++] = (uint32_t)bin;
        item = end;
        if (*item == 0)
            return GF_OK;
    }
}

/* ---- measured channels ----------------------------------------------------------------------- */

static gf_status choose_channels(gf_hist_plan *plan, const gf_settings *settings, gf_error *error) {
    const uint32_t channels = plan->head.in.channels;
    const char *name = gf_settings_text(settings, "channel");
    const size_t choice = name ? gf_settings_choice(settings, "channel") : LUMA;
    const bool colour = channels >= 3;
    plan->measured = 1;
    if (plan->ranged && !(plan->lo < plan->hi)) {
        char first[48];
        (void)snprintf(first, sizeof first, "bins=1 statistics channel=%s", channel_names[choice]);
        const gf_status status = gf_plan_measure_first(&plan->head, &gf_hist_filter, first, error);
        if (status)
            return status;
    }
    if (choice == ALL)
        plan->measured = channels;
    else if (choice == LUMA)
        plan->luma = colour; /* the luma of a grey image is the grey channel */
    else if (choice == ALPHA && gf_has_alpha(&plan->head.in))
        plan->first = channels - 1;
    else if (choice == ALPHA)
        return gf_fail(error, GF_USAGE, "--channel a: the image has no alpha channel");
    else if (!colour)
        return gf_fail(error, GF_USAGE,
                       "--channel %s: the image is grey; omit --channel to count the grey channel",
                       name);
    else
        plan->first = (uint32_t)choice;
    return GF_OK;
}

/* Choose what the statistics are computed from. */
static void choose_statistics(gf_hist_plan *plan, const gf_settings *settings) {
    const gf_type type = plan->head.in.type;
    const bool counted = type != GF_F32 && !plan->ranged && plan->bins == gf_type_max(type) + 1;
    plan->requested = gf_settings_flag(settings, "statistics");
    plan->alone =
        plan->requested && plan->brief && !plan->ranged && !plan->per_row && !plan->extracts;
    plan->statistics = plan->requested || counted;
    if (!plan->requested || counted)
        return;
    plan->values = (type == GF_F32 ? GF_HIST_KEYS : gf_type_max(type) + 1) + 1;
    plan->row_sums = type == GF_F32;
    plan->folded = type != GF_F32 && !plan->per_row && plan->extracts == 0;
}

static gf_status plan_hist(const gf_settings *settings, gf_plan *head, gf_error *error) {
    gf_hist_plan *plan = (gf_hist_plan *)head;
    plan->bins = (uint32_t)gf_settings_int(settings, "bins");
    plan->brief = !gf_settings_given(settings, "bins");
    plan->ranged = gf_settings_text(settings, "range") != NULL;
    gf_settings_range(settings, "range", &plan->lo, &plan->hi);
    plan->clamps = !plan->ranged && head->in.type == GF_F32;
    plan->outside = plan->ranged || plan->clamps;
    if (!plan->ranged)
        plan->hi = gf_type_max(head->in.type);
    plan->counters = plan->bins + (plan->outside ? 3 : 1);
    plan->per_row = gf_settings_flag(settings, "per-row");
    const char *extract = gf_settings_text(settings, "extract");
    gf_status status = choose_channels(plan, settings, error);
    if (!status && extract)
        status = parse_extract(plan, extract, error);
    if (status)
        return status;
    plan->mask = gf_settings_text(settings, "mask") != NULL;
    if (!extract && (plan->mask || gf_settings_text(settings, "out")))
        return gf_fail(error, GF_USAGE, "--%s: no bins to extract; name them with --extract",
                       plan->mask ? "mask" : "out");
    if (plan->mask) {
        head->out = head->in;
        /* Where no alpha can be added, all other pixels become 0: float file formats have none. */
        if (head->in.type != GF_F32 && head->in.channels % 2 != 0) {
            head->out.channels++;
            head->out.alpha = true;
        }
    }
    choose_statistics(plan, settings);
    const uint64_t bytes = gf_hist_counters(plan) * sizeof(uint64_t);
    const uint64_t value_bytes = (uint64_t)plan->measured * plan->values * sizeof(uint64_t);
    if (plan->per_row)
        head->record = (uint32_t)bytes;
    if (plan->row_sums)
        head->record += plan->measured * (uint32_t)sizeof(gf_hist_row_sums);
    head->state_bytes = gf_hist_state_counters(plan) * sizeof(uint64_t) + value_bytes;
    head->has_payload = plan->extracts > 0;
    uint64_t rows_bytes = 0;
    if (plan->per_row && __builtin_mul_overflow(bytes, head->in.height, &rows_bytes))
        rows_bytes = UINT64_MAX - bytes - value_bytes; /* exceeds any limit */
    head->result_bytes = bytes + value_bytes + rows_bytes;
    head->download = (double)plan->extracts / plan->bins * plan->measured / head->in.channels *
                     (double)gf_hist_sample_bytes(plan, 1);
    head->cost = COST_COUNT;
    if (extract)
        head->cost += plan->extracts > 1 ? COST_EXTRACT_SEVERAL : COST_EXTRACT;
    head->cost += (plan->values > 256 + 1 ? COST_VALUES : 0) + (plan->row_sums ? COST_ROW_SUMS : 0);
    return GF_OK;
}

static gf_status hist_effective(const gf_plan *head, gf_settings *settings, gf_error *error) {
    const gf_hist_plan *plan = (const gf_hist_plan *)head;
    gf_status status = GF_OK;
    if (!gf_settings_text(settings, "channel"))
        status = gf_settings_set(settings, "channel", channel_names[LUMA], error);
    char text[16];
    (void)snprintf(text, sizeof text, "0,%.0f", plan->hi);
    if (!status && !plan->ranged)
        status = gf_settings_set(settings, "range", text, error);
    return status;
}

const gf_filter gf_hist_filter = {
    .info =
        {
            .name = "hist",
            .summary = "count samples in bins and extract the samples of chosen bins",
            .operands = "IN",
            .details =
                "Counts the samples of an image in N bins of equal width. --extract K extracts\n"
                "the samples of bin K and their positions in image order. Several bins, or all,\n"
                "are extracted bin by bin. --out writes these samples to a file, --mask draws\n"
                "their pixels, and the terminal shows the first ones. NaN and, with --range,\n"
                "samples outside are counted separately, in no bin; without it, f32 samples\n"
                "outside of 0..1 are also in the end bins. Bin edges are sample values, as in\n"
                "--range. --statistics describes each channel, exactly for integers; percentiles\n"
                "of f32 have 8 significant bits. All backends produce the same bits.\n",
            .examples = "gpufilter hist in.png --bins 8 --extract 3\n"
                        "gpufilter hist --statistics --csv *.png >statistics.csv\n"
                        "gpufilter hist --bins 8 --extract 3 --out v.npy --mask mask.png in.png\n"
                        "gpufilter hist --channel all --plot hist.svg in.png\n"
                        "gpufilter hist --range 0.5,2 --bins 100 --csv depth.pfm >counts.csv\n",
            .params = params,
            .param_count = sizeof params / sizeof params[0],
            .inputs = 1,
            .has_chart = true,
            .cases = cases,
        },
    .plan_bytes = sizeof(gf_hist_plan),
    .nodata = GF_NODATA_APART,
    .plan = plan_hist,
    .effective = hist_effective,
    .refine = gf_hist_refine,
    .golden = gf_hist_golden,
    .cpu = {gf_hist_cpu_scratch, GF_LEVELS(gf_hist_cpu)},
    .measure = &gf_hist_measure,
    .payload = &gf_hist_payload,
};
