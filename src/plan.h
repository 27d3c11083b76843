/* Plans: a filter's parameters resolved for one image format. */
#ifndef GF_PLAN_H
#define GF_PLAN_H

#include "filter.h"

/* Callers make mistakes: a filter that was not found, another filter's settings. */
gf_status gf_check_use(const gf_filter *filter, const gf_settings *settings, gf_error *error);

/* A plan for images of this format, checked; free() it. */
gf_status gf_plan_new(const gf_filter *filter, const gf_settings *settings, const gf_format *format,
                      gf_plan **plan, gf_error *error);

#endif
