/* Looking at files before filtering them. */
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "io/io.h"
#include "io/limits.h"
#include "thread.h"

static gf_status open_source(const char *path, const gf_file_options *options, gf_source **source,
                             gf_error *error) {
    const gf_limits limits = gf_limits_of(options, 0);
    return gf_source_open(path, &limits, source, error);
}

/* Appends a name of 4 characters unless it is there already or there is no room. */
static void add_name(char *names, size_t size, const char *name) {
    const size_t used = strlen(names);
    if (used + 6 > size)
        return;
    for (const char *at = names; (at = strstr(at, name)); at++)
        if ((at == names || at[-1] == ' ') && (at[4] == ' ' || at[4] == 0))
            return;
    snprintf(names + used, size - used, "%s%s", used ? " " : "", name);
}

gf_status gf_inspect_file(const char *path, const gf_file_options *options, gf_file_info *info,
                          gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    gf_source *source;
    gf_status status = open_source(path, options, &source, error);
    if (status)
        return status;
    const gf_metadata *metadata = &source->metadata;
    *info = (gf_file_info){.format = source->format};
    snprintf(info->kind, sizeof info->kind, "%s", source->kind);
    if (metadata->damaged[0])
        snprintf(info->stored, sizeof info->stored, "%.64s, damaged %s chunk", source->stored,
                 metadata->damaged);
    else
        snprintf(info->stored, sizeof info->stored, "%s", source->stored);
    for (size_t i = 0; i < metadata->count; i++)
        add_name(info->metadata, sizeof info->metadata, metadata->chunks[i].name);
    source->ops->close(source);
    return GF_OK;
}

gf_status gf_load_file(const char *path, const gf_file_options *options, gf_format *format,
                       void **pixels, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    gf_source *source;
    *pixels = NULL;
    gf_status status = open_source(path, options, &source, error);
    if (status)
        return status;
    const gf_limits limits =
        gf_limits_resolve(&(gf_limits){.max_memory = options ? options->max_memory : 0});
    *format = source->format;
    status = gf_source_read_all(source, strcmp(path, "-") == 0 ? "standard input" : path,
                                "the image", limits.max_memory, pixels, error);
    source->ops->close(source);
    return status;
}
