/* Inputs of an image: opening, reading again, and buffering. */
#include "engine/pipeline/pipeline.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "io/codecs.h"
#include "io/stream/convert.h"
#include "io/stream/memory.h"

/* ---- opening --------------------------------------------------------------------------------- */

struct stat gf_stat_file(const char *path) {
    struct stat info;
    const bool regular = strcmp(path, "-") != 0 && stat(path, &info) == 0 && S_ISREG(info.st_mode);
    return regular ? info : (struct stat){0};
}

/* Combine the current source with a second one. The names are for messages. */
static gf_status inputs_add(gf_inputs *inputs, gf_source *second, const char *name,
                            const char *second_name, gf_error *error) {
    gf_source *pair;
    const gf_status status =
        gf_pair_source(inputs->source, second, name, second_name, &pair, error);
    if (status)
        second->ops->close(second);
    else
        inputs->source = pair;
    return status;
}

/* Count the samples with the nodata value of an input, and leave them out. */
static gf_status inputs_add_nodata(gf_inputs *inputs, const gf_nodata nodata[2], gf_error *error) {
    const gf_format *format = &inputs->source->format;
    const uint64_t rows = format->height * format->channels, columns = gf_row_samples(format);
    const gf_nodata_use use = inputs->type.nodata;
    free(inputs->left_out); /* of an earlier pass */
    inputs->left_out = NULL;
    if (!nodata[0].declared && !nodata[1].declared)
        return GF_OK;
    const uint64_t counts = use == GF_NODATA_ZERO ? rows + columns : 0;
    gf_left_out *left_out =
        gf_alloc_limited(sizeof *left_out + counts * sizeof *left_out->rows,
                         inputs->limits.max_memory, inputs->name, "the counts of nodata", error);
    if (!left_out)
        return GF_FAILED;
    *left_out = (gf_left_out){.use = use,
                              .images = inputs->count,
                              .nodata = {nodata[0], nodata[1]},
                              .end = UINT64_MAX,
                              .rows = counts ? (uint64_t *)(left_out + 1) : NULL,
                              .columns = counts ? (uint64_t *)(left_out + 1) + rows : NULL};
    inputs->left_out = left_out;
    return gf_nodata_source(&inputs->source, left_out, inputs->name, error);
}

/* Open the files of inputs->paths. */
static gf_status inputs_open_sources(gf_inputs *inputs, gf_error *error) {
    const char *const *paths = inputs->paths;
    gf_source *second;
    gf_status status = gf_source_open(paths[0], &inputs->limits, &inputs->source, error);
    if (status)
        return status;
    assert(inputs->source);
    inputs->file_type = inputs->source->format.type;
    gf_nodata nodata[2] = {inputs->source->nodata};
    if (inputs->count == 1)
        status = inputs_add_nodata(inputs, nodata, error);
    const bool linear = inputs->type.linear;
    inputs->premultiplied = inputs->type.premultiply && gf_has_alpha(&inputs->source->format);
    const gf_type type = gf_depth_type(
        linear || inputs->premultiplied ? GF_DEPTH_F32 : inputs->type.depth, inputs->file_type);
    if (inputs->premultiplied && inputs->source->metadata.associated_alpha)
        return gf_fail(error, GF_FAILED,
                       "%s: --premultiply: its samples are premultiplied already; --alpha none "
                       "filters alpha with them",
                       inputs->name);
    if (!status && type >= inputs->file_type)
        status = gf_convert_source(&inputs->source, type, linear, inputs->premultiplied,
                                   inputs->name, error);
    if (status || inputs->count == 1)
        return status;
    status = gf_source_open(paths[1], &inputs->limits, &second, error);
    if (status)
        return status;
    nodata[1] = second->nodata;
    status = inputs_add(inputs, second, paths[0], paths[1], error);
    return status ? status : inputs_add_nodata(inputs, nodata, error);
}

gf_status gf_inputs_open_files(gf_inputs *inputs, uint32_t count, const char *const *paths,
                               const gf_limits *limits, gf_input_type type, gf_error *error) {
    *inputs = (gf_inputs){.name = strcmp(paths[0], "-") == 0 ? "standard input" : paths[0],
                          .count = count,
                          .paths = paths,
                          .limits = *limits,
                          .type = type};
    for (uint32_t i = 0; i < count; i++)
        inputs->stats[i] = gf_stat_file(paths[i]);
    return inputs_open_sources(inputs, error);
}

gf_status gf_inputs_open_memory(gf_inputs *inputs, uint32_t count, const gf_format *format,
                                uint64_t times, const gf_pixels *const *in, gf_error *error) {
    gf_source *second;
    *inputs = (gf_inputs){.name = "memory", .count = count};
    gf_status status = gf_batch_source(format, times, in[0], 1, &inputs->source, error);
    if (status || count == 1)
        return status;
    status = gf_batch_source(format, times, in[1], 1, &second, error);
    return status ? status : inputs_add(inputs, second, "memory", "memory", error);
}

/* ---- reading again --------------------------------------------------------------------------- */

static gf_status inputs_fail_changed(const gf_inputs *inputs, gf_error *error) {
    return gf_fail(error, GF_FAILED, "%s: changed while it was read; run again", inputs->name);
}

gf_status gf_inputs_check_same(const gf_inputs *inputs, const gf_inputs *before, gf_error *error) {
    bool same = true;
    for (uint32_t i = 0; i < before->count; i++) {
        const struct stat *a = &before->stats[i], b = gf_stat_file(inputs->paths[i]);
        same = same && b.st_mode && a->st_dev == b.st_dev && a->st_ino == b.st_ino &&
               a->st_size == b.st_size && a->st_mtim.tv_sec == b.st_mtim.tv_sec &&
               a->st_mtim.tv_nsec == b.st_mtim.tv_nsec;
    }
    return same ? GF_OK : inputs_fail_changed(inputs, error);
}

void gf_inputs_seek(gf_inputs *inputs, uint64_t first) {
    inputs->first = first;
    inputs->source->ops->seek(inputs->source, first);
}

static bool inputs_in_memory(const gf_inputs *inputs) {
    return !inputs->paths || gf_memory_source_is(inputs->source);
}

bool gf_inputs_can_restart(const gf_inputs *inputs) {
    bool regular = true;
    for (uint32_t i = 0; i < inputs->count; i++)
        regular = regular && inputs->stats[i].st_mode;
    return regular || inputs_in_memory(inputs);
}

gf_status gf_inputs_restart(gf_inputs *inputs, gf_error *error) {
    if (inputs_in_memory(inputs)) {
        gf_inputs_seek(inputs, inputs->first);
        return GF_OK;
    }
    gf_source *before = inputs->source;
    inputs->source = NULL;
    gf_status status = inputs_open_sources(inputs, error);
    if (!inputs->source) {
        inputs->source = before;
        return status;
    }
    const gf_format format = before->format;
    before->ops->close(before);
    if (!status)
        status = gf_inputs_check_same(inputs, inputs, error);
    if (!status && !gf_format_equal(&inputs->source->format, &format))
        status = inputs_fail_changed(inputs, error);
    if (status)
        return status;
    if (inputs->first)
        gf_inputs_seek(inputs, inputs->first);
    return GF_OK;
}

void gf_inputs_shrink(gf_inputs *inputs) {
    gf_source *source = inputs->source;
    if (source->memory != 0)
        source->ops->shrink(source);
    inputs->limits.threads = 1; /* if the inputs are opened again */
}

void gf_inputs_replace(gf_inputs *inputs, gf_source *replacement) {
    gf_source *source = inputs->source;
    replacement->metadata = source->metadata;
    replacement->bytes = source->bytes;
    replacement->dropped = source->dropped;
    replacement->pages = source->pages;
    source->metadata = (gf_metadata){0};
    source->ops->close(source);
    inputs->source = replacement;
}

gf_status gf_inputs_buffer(gf_inputs *inputs, uint64_t *memory, gf_busy *busy, gf_error *error) {
    gf_source *source = inputs->source, *buffered;
    const gf_format *format = &source->format;
    const size_t row = gf_row_bytes(format);
    const double began = gf_now();
    void *pixels;
    if (source->memory > *memory / 2)
        gf_inputs_shrink(inputs);
    const gf_status status = gf_source_read_all(
        source, inputs->name, "an image from a pipe that is read twice", *memory, &pixels, error);
    gf_busy_add(busy, gf_source_busy(source, gf_now() - began));
    if (status)
        return status;
    if (gf_memory_source(format, pixels, row, &buffered, NULL)) {
        free(pixels);
        return gf_fail(error, GF_FAILED, "%s: out of memory for a source", inputs->name);
    }
    gf_memory_source_own(buffered, pixels, free);
    *memory -= format->height * row;
    gf_inputs_replace(inputs, buffered);
    return GF_OK;
}

void gf_inputs_close(gf_inputs *inputs) {
    if (inputs->source)
        inputs->source->ops->close(inputs->source);
    free(inputs->left_out);
    *inputs = (gf_inputs){.count = 0};
}
