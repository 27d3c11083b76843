/* convert: descriptor, parameters, plan and the count of clipped samples. */
#include "convert/convert.h"

#include <stdlib.h>

#include "core/error.h"
#include "core/result.h"

enum { KEEP, DECODE, ENCODE, MULTIPLY = 1, DIVIDE }; /* indices of choices */
static const char *const depths[] = {"keep", "8", "16", "f32", NULL};
static const char *const lights[] = {"keep", "decode", "encode", NULL};
static const char *const alphas[] = {"keep", "multiply", "divide", NULL};

static const gf_param params[] = {
    GF_CHOICE_PARAM(CHOICE, "depth", 0, "TYPE", "sample type of the output", "keep", depths),
    GF_CHOICE_PARAM(CHOICE, "light", 0, "HOW",
                    "decode: sRGB integers to linear light of f32; encode: back", "keep", lights),
    GF_CHOICE_PARAM(CHOICE, "alpha", 0, "HOW",
                    "multiply: colours by alpha, which becomes data; divide: back", "keep", alphas),
};

static const char *const cases[] = {"",
                                    "depth=8",
                                    "depth=16",
                                    "depth=f32",
                                    "depth=f32 light=decode",
                                    "depth=f32 alpha=multiply",
                                    "depth=f32 light=decode alpha=multiply",
                                    "depth=8 light=encode",
                                    "depth=16 light=encode",
                                    "depth=8 alpha=divide",
                                    "depth=16 alpha=divide",
                                    "depth=f32 alpha=divide",
                                    "depth=8 light=encode alpha=divide",
                                    "depth=16 light=encode alpha=divide",
                                    NULL};

/* Approximate nanoseconds per sample on one core. */
#define COST 1.0
#define SLOW_COST 3.0 /* codes of light; alpha */

static gf_status plan_convert(const gf_settings *settings, gf_plan *head, gf_error *error) {
    gf_convert_plan *plan = (gf_convert_plan *)head;
    const size_t depth = gf_settings_choice(settings, "depth"),
                 light = gf_settings_choice(settings, "light"),
                 alpha = gf_settings_choice(settings, "alpha");
    const gf_format *in = &head->in;
    const gf_type types[] = {in->type, GF_U8, GF_U16, GF_F32};
    const bool from_f32 = in->type == GF_F32, to_f32 = types[depth] == GF_F32;
    head->out.type = types[depth];
    head->out.alpha = alpha == DIVIDE || (in->alpha && alpha != MULTIPLY);
    if ((light == DECODE && (from_f32 || !to_f32)) || (light == ENCODE && (!from_f32 || to_f32)) ||
        (alpha == MULTIPLY && (!in->alpha || !to_f32)) ||
        (alpha == DIVIDE && (in->alpha || !from_f32 || in->channels % 2)))
        return gf_fail(error, GF_USAGE,
                       "convert: depth=%s light=%s alpha=%s: not for %u channels of %s%s",
                       depths[depth], lights[light], alphas[alpha], in->channels,
                       gf_type_name(in->type), in->alpha ? " with alpha" : "");
    plan->how = gf_conversion_of(in, &head->out, light != KEEP);
    const gf_srgb *srgb = plan->how.srgb;
    if (srgb) { /* never written: the filter has no refine */
        head->constants = (void *)(light == DECODE ? srgb->linear : srgb->thresholds);
        head->constant_bytes = light == DECODE ? srgb->linear_bytes : srgb->code_bytes;
    }
    head->state_bytes = from_f32 && !to_f32 ? sizeof(uint64_t) : 0;
    head->result_bytes = sizeof(uint64_t);
    head->cost = light == ENCODE || alpha != KEEP ? SLOW_COST : COST;
    return gf_format_check(&head->out, "convert", error);
}

static gf_status convert_open(const gf_plan *plan, const gf_measure_options *keep, void **data,
                              gf_error *error) {
    *data = calloc(1, sizeof(uint64_t));
    return *data ? GF_OK : gf_fail_memory(error, keep->name, sizeof(uint64_t), "a counter");
}

static gf_status convert_take_state(const gf_plan *plan, void *data, const void *state,
                                    gf_error *error) {
    *(uint64_t *)data = plan->state_bytes ? *(const uint64_t *)state : 0;
    return GF_OK;
}

/* The only cell: the samples that were clipped. A conversion has no result of its own. */
static gf_value convert_cell(const gf_plan *plan, const void *data, size_t table, uint64_t row,
                             size_t column) {
    return gf_value_uint(*(const uint64_t *)data);
}

static const gf_measure measure = {
    .merge = gf_merge_sums,
    .open = convert_open,
    .finish = convert_take_state,
    .cell = convert_cell,
    .close = free,
};

const gf_filter gf_convert_filter = {
    .info =
        {
            .name = "convert",
            .summary = "convert sample type, linear light and premultiplied alpha",
            .details = "",
            .examples = "",
            GF_IMAGE_FILTER(params, cases),
        },
    .plan_bytes = sizeof(gf_convert_plan),
    .plan = plan_convert,
    .golden = gf_convert_golden,
    .cpu = {.run = GF_LEVELS(gf_convert_cpu)},
    .measure = &measure,
};
