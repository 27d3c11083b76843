/* Creation of plans from settings, and the public functions that need only a plan. */
#include "core/filter.h"

#include <stdlib.h>

#include "core/error.h"
#include "core/settings.h"
#include "core/thread.h"

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

/* Create a plan, copy its head and free it. */
static gf_status plan_new_head(const gf_filter *filter, const gf_settings *settings,
                               const gf_format *in, gf_plan *head, gf_error *error) {
    gf_plan *plan;
    gf_status status = gf_format_check(in, "memory", error);
    if (!status)
        status = gf_plan_new(filter, settings, in, &plan, error);
    if (status)
        return status;
    *head = *plan;
    free(plan);
    return GF_OK;
}

gf_status gf_filter_output(const gf_filter *filter, const gf_settings *settings,
                           const gf_format *in, gf_format *out, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    gf_plan head;
    gf_status status = plan_new_head(filter, settings, in, &head, error);
    if (!status)
        *out = head.out;
    return status;
}

const gf_filter *gf_filter_before(const gf_filter *filter, const gf_settings *settings,
                                  const gf_format *in) {
    GF_FLOAT_ENV_SCOPE();
    gf_plan head;
    return plan_new_head(filter, settings, in, &head, NULL) ? NULL : head.before;
}

gf_status gf_settings_effective(const gf_filter *filter, const gf_settings *settings,
                                const gf_format *in, gf_settings **effective, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    gf_plan *plan = NULL;
    *effective = NULL;
    gf_status status = gf_format_check(in, "memory", error);
    if (!status)
        status = gf_plan_new(filter, settings, in, &plan, error);
    if (status)
        return status;
    gf_settings *copy = gf_settings_copy(settings);
    status = copy ? GF_OK
                  : gf_fail(error, GF_FAILED, "%s: out of memory for settings", filter->info.name);
    if (!status && filter->effective)
        status = filter->effective(plan, copy, error);
    free(plan);
    if (status)
        gf_settings_free(copy);
    else
        *effective = copy;
    return status;
}

gf_status gf_filter_result_bytes(const gf_filter *filter, const gf_settings *settings,
                                 const gf_format *in, uint64_t *bytes, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    gf_plan head;
    gf_status status = plan_new_head(filter, settings, in, &head, error);
    if (!status)
        *bytes = head.result_bytes;
    return status;
}
