/* Whole files: inspect, load, save, and compare with what was written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/convert.h"
#include "core/error.h"
#include "core/image.h"
#include "core/thread.h"
#include "io/codec.h"
#include "io/codecs.h"
#include "io/file/output.h"

/* Append a name unless it is present or does not fit. */
static void inspect_add_name(char *names, size_t size, const char *name) {
    const size_t used = strlen(names), length = strlen(name);
    if (used + length + 2 > size)
        return;
    for (const char *at = names; (at = strstr(at, name)); at++)
        if ((at == names || at[-1] == ' ') && (at[length] == ' ' || at[length] == 0))
            return;
    snprintf(names + used, size - used, "%s%s", used ? " " : "", name);
}

gf_status gf_inspect_file(const char *path, const gf_file_options *options, gf_file_info *info,
                          gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    gf_limits limits = gf_limits_of(options, 0);
    gf_source *source;
    limits.autorotate = false;
    limits.crop = NULL;
    gf_status status = gf_check_options(NULL, options, error);
    if (!status)
        status = gf_source_open(path, &limits, &source, error);
    if (status)
        return status;
    const gf_metadata *metadata = &source->metadata;
    *info = (gf_file_info){.format = source->format};
    snprintf(info->kind, sizeof info->kind, "%s", source->codec->extensions[0]);
    const bool damaged = metadata->damaged[0] != '\0';
    snprintf(info->stored, sizeof info->stored, "%.*s%s%s%s", damaged ? 64 : 95, source->stored,
             damaged ? ", damaged " : "", metadata->damaged, damaged ? " chunk" : "");
    for (size_t i = 0; i < metadata->count; i++)
        inspect_add_name(info->metadata, sizeof info->metadata,
                         gf_metadata_label(&metadata->chunks[i]));
    info->orientation = gf_metadata_orientation(metadata);
    gf_resolution r;
    if (gf_metadata_resolution(metadata, &r) && r.unit != GF_PER_NONE) {
        const double per_inch = r.unit == GF_PER_CM ? 2.54 : 1;
        info->resolution_x = r.x * per_inch;
        info->resolution_y = r.y * per_inch;
    }
    source->ops->close(source);
    return GF_OK;
}

gf_status gf_load_file(const char *path, const gf_file_options *options, gf_format *format,
                       void **pixels, gf_report *report, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    const gf_limits limits = gf_limits_of(options, 0);
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    gf_source *source;
    *pixels = NULL;
    gf_status status = gf_check_options(NULL, options, error);
    if (!status)
        status = gf_source_open(path, &limits, &source, error);
    if (status)
        return status;
    *format = source->format;
    format->type = gf_depth_type(options ? options->write.depth : GF_DEPTH_INPUT, format->type);
    status = gf_format_check(format, name, error);
    /* Samples that grow are converted where they are: no second block is needed. */
    const size_t row = gf_row_bytes(&source->format), row_after = gf_row_bytes(format);
    if (!status)
        status = gf_source_read_all(source, name, "the image", limits.max_memory, row_after, pixels,
                                    error);
    if (!status && format->type != source->format.type) {
        const gf_conversion how = gf_conversion_of(&source->format, format, false);
        const uint64_t height = format->height, shift = row_after > row ? row_after - row : 0;
        source->metadata.remarks.outside =
            gf_convert_samples(&how, *pixels, (unsigned char *)*pixels + height * shift,
                               gf_row_samples(format) * height);
    }
    if (report)
        *report = (gf_report){.in = *format,
                              .in_bytes = source->bytes,
                              .pages = source->pages,
                              .remarks = source->metadata.remarks};
    source->ops->close(source);
    return status;
}

enum { SAVE_BYTES = 1 << 18 }; /* converted rows, at least one, written while in the cache */

/* Write the rows of an image as samples of another type. */
static gf_status save_pixels(gf_sink *sink, const gf_format *format, const gf_pixels *pixels,
                             const gf_format *stored, gf_error *error) {
    const gf_conversion how = gf_conversion_of(format, stored, false);
    const uint64_t height = format->height, samples = gf_row_samples(format);
    const size_t row = gf_row_bytes(stored);
    const uint64_t max = gf_min(height, SAVE_BYTES / row + 1);
    const unsigned char *from = pixels->data;
    unsigned char *buffer = malloc((size_t)max * row); /* NOLINT: an image has a sample */
    if (!buffer)
        return gf_fail_memory(error, gf_output_name(sink->output), max * row, "converted rows");
    gf_status status = GF_OK;
    for (uint64_t y = 0, n; y < height && !status; y += n) {
        n = gf_min(height - y, max);
        for (uint64_t i = 0; i < n; i++, from += pixels->stride)
            gf_convert_samples(&how, buffer + i * row, from, samples);
        status = sink->ops->write(sink, buffer, row, n, error);
    }
    free(buffer);
    return status;
}

gf_status gf_save_file(const char *path, const gf_format *format, const gf_pixels *pixels,
                       const gf_file_options *options, gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    const gf_file_options defaults = {0};
    gf_sink *sink;
    options = options ? options : &defaults;
    if (!path || !format || !pixels || !pixels->data)
        return gf_fail(error, GF_USAGE, "gf_save_file: an argument is NULL");
    gf_format stored = *format;
    gf_status status;
    if ((status = gf_check_options(NULL, options, error)) ||
        (status = gf_format_check(format, "memory", error)) ||
        (status = gf_pixels_check("memory", "image", format, *pixels, error)))
        return status;
    stored.type = gf_depth_type(options->write.depth, format->type);
    if ((status = gf_sink_open(path, &stored, NULL, options, gf_cores(), &sink, error)))
        return status;
    if (stored.type == format->type)
        status = sink->ops->write(sink, pixels->data, pixels->stride, format->height, error);
    else
        status = save_pixels(sink, format, pixels, &stored, error);
    if (!status && !(status = sink->ops->finish(sink, NULL, error)))
        status = gf_output_commit(sink->output, error);
    sink->ops->close(sink);
    return status;
}

#define READ_BACK_BYTES ((size_t)1 << 20)

static gf_status read_back_digest(gf_source *source, const char *name, uint64_t *digest,
                                  gf_error *error) {
    const size_t row = gf_row_bytes(&source->format);
    const uint64_t height = source->format.height, max = READ_BACK_BYTES / row + 1;
    gf_rows rows = {.stride = row, .rows = max < height ? max : height};
    rows.data = malloc((size_t)rows.rows * row); /* NOLINT: an image has at least one sample */
    if (!rows.data)
        return gf_fail_memory(error, name, rows.rows * row, "rows to read back");
    gf_status status = GF_OK;
    *digest = 0;
    for (uint64_t y = 0; y < height && !status; y += rows.rows) {
        rows.rows = height - y < rows.rows ? height - y : rows.rows;
        status = source->ops->read(source, rows.data, row, rows.rows, error);
        if (!status)
            *digest = gf_digest_rows(*digest, &rows, row);
    }
    if (!status)
        status = source->ops->finish(source, error);
    free(rows.data);
    return status;
}

gf_status gf_read_back(const gf_sink *sink, const gf_format *format, const gf_limits *limits,
                       uint64_t digest, gf_error *error) {
    const char *path = gf_output_pending_path(sink->output);
    if (!path || !(sink->codec->exact || sink->codec->plain))
        return GF_OK;
    const char *name = gf_output_name(sink->output);
    const gf_raw raw = {.format = *format};
    gf_limits own = *limits;
    own.raw = sink->codec->headerless ? &raw : NULL;
    own.autorotate = false;
    own.crop = NULL;
    own.alpha = gf_has_alpha(format) ? GF_ALPHA_LAST : GF_ALPHA_NONE;
    gf_source *source = NULL;
    gf_error cause = {0};
    uint64_t found = ~digest;
    gf_status status = gf_source_open(path, &own, &source, &cause);
    if (!status && gf_format_equal(&source->format, format))
        status = read_back_digest(source, name, &found, &cause);
    if (source)
        source->ops->close(source);
    if (status)
        return gf_fail(error, GF_FAILED, "%s: cannot read back the written file: %s", name,
                       cause.message);
    if (found != digest)
        return gf_fail(error, GF_FAILED,
                       "%s: the rows read back differ from the computed rows; check the disk and "
                       "the memory of this machine",
                       name);
    return GF_OK;
}
