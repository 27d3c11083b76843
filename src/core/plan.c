/* Creation of plans from settings. */
#include "core/filter.h"

#include <stdlib.h>

#include "core/error.h"
#include "core/settings.h"

const gf_filter_info *gf_filter_describe(const gf_filter *filter) {
    return &filter->info;
}

gf_status gf_check_use(const gf_filter *filter, const gf_settings *settings, gf_error *error) {
    if (!filter)
        return gf_fail(error, GF_USAGE, "the filter is NULL");
    if (!settings)
        return gf_fail(error, GF_USAGE, "%s: the settings are NULL", filter->info.name);
    if (!gf_settings_fit(settings, filter->info.params))
        return gf_fail(error, GF_USAGE, "%s: the settings belong to another table of parameters",
                       filter->info.name);
    return GF_OK;
}

gf_status gf_plan_new(const gf_filter *filter, const gf_settings *settings, const gf_format *format,
                      gf_plan **out, gf_error *error) {
    gf_status status = gf_check_use(filter, settings, error);
    if (status)
        return status;
    gf_plan *plan = calloc(1, filter->plan_bytes);
    if (!plan)
        return gf_fail_memory(error, filter->info.name, filter->plan_bytes, "a plan");
    plan->in = *format;
    plan->inputs = filter->info.inputs;
    plan->golden_only = !filter->cpu.run[GF_ISA_PORTABLE];
    if (filter->info.makes_image)
        plan->out = *format;
    status = filter->plan(settings, plan, error);
    if (status) {
        free(plan);
        return status;
    }
    *out = plan;
    return GF_OK;
}

gf_status gf_plan_before(const gf_plan *plan, gf_plan **out, gf_error *error) {
    const gf_filter *filter = plan->before;
    *out = NULL;
    if (!filter)
        return GF_OK;
    const gf_filter_info *info = &filter->info;
    gf_settings *settings = gf_settings_new(info->params, info->param_count);
    gf_status status = settings ? gf_settings_apply_case(settings, plan->before_case, error)
                                : gf_fail_memory(error, info->name, info->param_count, "settings");
    if (!status)
        status = gf_plan_new(filter, settings, &plan->in, out, error);
    if (!status)
        (*out)->nodata = plan->nodata;
    gf_settings_free(settings);
    return status;
}
