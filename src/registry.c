/* Parts of the program: filters, their kernels, file formats and the backends. The only file that
 * knows all of them; it defines the tables that lower layers declare. */
#include <string.h>

#include "backend/backend.h"
#include "core/filter.h"
#include "io/codec.h"

#ifdef GF_WITH_CUDA
#define IF_CUDA(pointer) (pointer)
#else
#define IF_CUDA(pointer) NULL
#endif

/* ---- filters, one line each in filters/registry.def ------------------------------------------ */

#define GF_FILTER(name)                                                                            \
    extern const gf_filter gf_##name##_filter;                                                     \
    extern const gf_filter_cuda gf_##name##_cuda;
#include "registry.def"
GF_FILTER(convert)
#undef GF_FILTER

static const struct {
    const gf_filter *filter;
    const gf_filter_cuda *kernels;
} filters[] = {
#define GF_FILTER(name) {&gf_##name##_filter, IF_CUDA(&gf_##name##_cuda)},
#include "registry.def"
    GF_FILTER(convert)
#undef GF_FILTER
};

/* The last one is for chains only: it is found by its name, but not listed. */
enum { FILTERS = sizeof filters / sizeof *filters, LISTED = FILTERS - 1 };

const gf_filter *gf_filter_at(size_t index) {
    return index < LISTED ? filters[index].filter : NULL;
}

const gf_filter *gf_filter_convert(void) {
    return &gf_convert_filter;
}

const gf_filter *gf_filter_find(const char *name) {
    for (size_t i = 0; i < FILTERS; i++)
        if (strcmp(filters[i].filter->info.name, name) == 0)
            return filters[i].filter;
    return NULL;
}

const gf_filter_cuda *gf_filter_kernels(const gf_filter *filter) {
    for (size_t i = 0; i < FILTERS; i++)
        if (filters[i].filter == filter)
            return filters[i].kernels;
    return NULL;
}

/* ---- file formats, one line each in src/io/codecs.def, in the order of the help -------------- */

#define GF_CODEC(name) extern const gf_codec gf_##name##_codec;
#include "io/codecs.def"
#undef GF_CODEC

const gf_codec *gf_codec_at(size_t index) {
    static const gf_codec *const codecs[] = {
#define GF_CODEC(name) &gf_##name##_codec,
#include "io/codecs.def"
#undef GF_CODEC
    };
    return index < sizeof codecs / sizeof codecs[0] ? codecs[index] : NULL;
}

/* ---- backends -------------------------------------------------------------------------------- */

const gf_backend *gf_backend_at(int index) {
    static const gf_backend *const backends[GF_BACKEND_COUNT] = {
        [GF_GOLDEN] = &gf_backend_golden,
        [GF_CPU] = &gf_backend_cpu,
        [GF_CUDA] = IF_CUDA(&gf_backend_cuda),
    };
    return backends[index];
}
