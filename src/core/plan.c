/* Creation of plans from settings. */
#include "core/filter.h"

#include <assert.h>
#include <stdlib.h>

#include "core/error.h"

const gf_filter_info *gf_filter_describe(const gf_filter *filter) {
    return &filter->info;
}

/* Return whether a row map keeps its promises: see gf_plan. */
static bool plan_map_is_valid(const gf_plan *plan) {
    const uint64_t rows = gf_plan_rows(plan);
    if (!plan->rows)
        return rows == plan->in.height;
    for (uint64_t y = 0, first = 0, end = 0; y < rows; first = plan->rows[y].first, y++) {
        const gf_range *range = &plan->rows[y];
        if (range->first < first || range->end < end || range->end <= range->first)
            return false;
        end = range->end;
    }
    return plan->out.width && plan->rows[rows - 1].end <= plan->in.height;
}

/* Create the plan that `as` begins: with its filter, input, stage and source. */
static gf_status plan_create(const gf_plan *as, const gf_settings *settings, gf_plan **out,
                             gf_error *error) {
    const gf_filter *filter = as->filter;
    assert(gf_settings_fit(settings, filter->info.params));
    gf_plan *plan = calloc(1, filter->plan_bytes);
    if (!plan)
        return gf_fail_memory(error, filter->info.name, filter->plan_bytes, "a plan");
    *plan = *as;
    plan->inputs = filter->info.inputs;
    plan->golden_only = !filter->cpu.run[GF_ISA_PORTABLE];
    if (filter->info.makes_image)
        plan->out = plan->in;
    const gf_status status = filter->plan(settings, plan, error);
    if (status) {
        gf_plan_free(plan);
        return status;
    }
    assert(plan_map_is_valid(plan));
    *out = plan;
    return GF_OK;
}

gf_status gf_plan_new_scaled(const gf_filter *filter, const gf_settings *settings,
                             const gf_format *format, const gf_scaled *scaled, gf_plan **plan,
                             gf_error *error) {
    const gf_plan as = {.filter = filter, .in = *format, .source = *format, .scaled = *scaled};
    return plan_create(&as, settings, plan, error);
}

gf_status gf_plan_new(const gf_filter *filter, const gf_settings *settings, const gf_format *format,
                      gf_plan **plan, gf_error *error) {
    return gf_plan_new_scaled(filter, settings, format, &(gf_scaled){0}, plan, error);
}

gf_status gf_plan_next(const gf_plan *before, const gf_settings *settings, gf_plan **plan,
                       gf_error *error) {
    gf_plan as = {.filter = before->filter, .in = before->out, .stage = before->stage + 1};
    as.source = before->source;
    as.scaled = before->scaled;
    return plan_create(&as, settings, plan, error);
}

void gf_plan_free(gf_plan *plan) {
    if (!plan)
        return;
    gf_plan_free(plan->measure_first);
    free(plan->owned);
    free(plan);
}

gf_status gf_plan_measure_first(gf_plan *plan, const gf_filter *filter, const char *text,
                                gf_error *error) {
    const gf_filter_info *info = &filter->info;
    gf_settings *settings = gf_settings_new(info->params, info->param_count);
    gf_status status = settings ? gf_settings_apply_case(settings, text, error)
                                : gf_fail_memory(error, info->name, info->param_count, "settings");
    if (!status)
        status = gf_plan_new(filter, settings, &plan->in, &plan->measure_first, error);
    gf_settings_free(settings);
    return status;
}

void gf_plan_set_nodata(gf_plan *plan, gf_nodata nodata) {
    for (; plan; plan = plan->measure_first)
        plan->nodata = nodata;
}

gf_range gf_map_needs(const gf_plan *plan, gf_range out) {
    const uint64_t height = plan->in.height;
    if (out.first == out.end)
        return (gf_range){0, 0};
    if (plan->rows)
        return (gf_range){plan->rows[out.first].first, plan->rows[out.end - 1].end};
    return (gf_range){out.first < plan->before ? 0 : out.first - plan->before,
                      height - out.end < plan->after ? height : out.end + plan->after};
}

uint64_t gf_map_ready(const gf_plan *plan, uint64_t end) {
    uint64_t low = 0, high = gf_plan_rows(plan);
    if (!plan->rows)
        return end < plan->after ? 0 : end - plan->after;
    if (end >= plan->in.height)
        return high + (end - plan->in.height);
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (plan->rows[middle].end <= end)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t gf_map_due(const gf_plan *plan, uint64_t end) {
    const uint64_t rows = gf_plan_rows(plan);
    if (end == 0)
        return 0;
    if (!plan->rows)
        return end + plan->after;
    return end <= rows ? plan->rows[end - 1].end : plan->in.height + (end - rows);
}
