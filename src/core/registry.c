/* Built-in filters, one line each in filters/registry.def. */
#include <string.h>

#include "core/error.h"
#include "core/filter.h"

#define GF_FILTER(name) extern const gf_filter gf_##name##_filter;
#include "registry.def"
#undef GF_FILTER

static const gf_filter *const filters[] = {
#define GF_FILTER(name) &gf_##name##_filter,
#include "registry.def"
#undef GF_FILTER
};

size_t gf_filter_count(void) {
    return sizeof filters / sizeof filters[0];
}

const gf_filter *gf_filter_at(size_t index) {
    return index < gf_filter_count() ? filters[index] : NULL;
}

const gf_filter *gf_filter_find(const char *name) {
    for (size_t i = 0; i < gf_filter_count(); i++)
        if (strcmp(filters[i]->info.name, name) == 0)
            return filters[i];
    return NULL;
}

const gf_filter_info *gf_filter_describe(const gf_filter *filter) {
    return &filter->info;
}
