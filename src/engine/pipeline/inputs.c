/* Inputs of an image: opening, reading again, and buffering. */
#include "engine/pipeline/pipeline.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "io/stream/convert.h"

/* Return whether all inputs that are read are in memory, and can be read again there. */
static bool inputs_in_memory(const gf_inputs *inputs) {
    return !inputs->paths ||
           (gf_inputs_reading(inputs) == 1 && gf_memory_source_is(inputs->sources[0]));
}

/* ---- opening --------------------------------------------------------------------------------- */

struct stat gf_stat_file(const char *path) {
    struct stat info;
    const bool regular = strcmp(path, "-") != 0 && stat(path, &info) == 0 && S_ISREG(info.st_mode);
    return regular ? info : (struct stat){0};
}

static gf_status inputs_fail_changed(const gf_inputs *inputs, gf_error *error) {
    return gf_fail(error, GF_FAILED, "%s: changed while it was read; run again", inputs->name);
}

/* Count the samples with the nodata value of an input, in each reading, and leave them out. */
static gf_status inputs_add_nodata(gf_inputs *inputs, const gf_nodata nodata[2], gf_error *error) {
    const gf_format *format = &inputs->format;
    const uint64_t samples = gf_row_samples(format), rows = format->height * format->channels;
    const gf_nodata_use use = inputs->nodata;
    if (!nodata[0].declared && !nodata[1].declared)
        return GF_OK;
    const uint64_t counts = use == GF_NODATA_ZERO ? rows + samples : 0;
    const uint64_t bytes = sizeof(gf_left_out) + counts * sizeof(uint64_t) + samples;
    gf_left_out *left_out = inputs->left_out;
    if (!left_out)
        left_out = gf_alloc_limited(bytes, inputs->limits.max_memory, inputs->name,
                                    "the counts of nodata", error);
    if (!left_out)
        return GF_FAILED;
    uint64_t *counters = (uint64_t *)(left_out + 1);
    memset(counters, 0, counts * sizeof *counters);
    *left_out = (gf_left_out){.use = use,
                              .images = inputs->pair ? 2 : 1,
                              .nodata = {nodata[0], nodata[1]},
                              .first = inputs->left_out ? left_out->first : 0,
                              .end = inputs->left_out ? left_out->end : UINT64_MAX,
                              .rows = counts ? counters : NULL,
                              .columns = counts ? counters + rows : NULL,
                              .missing = (uint8_t *)(counters + counts)};
    inputs->left_out = left_out;
    return inputs->pair ? GF_OK
                        : gf_nodata_source(&inputs->sources[0], left_out, inputs->name, error);
}

/* Open the file of an input. */
static gf_status inputs_open_source(gf_inputs *inputs, uint32_t i, gf_error *error) {
    gf_limits limits = inputs->limits;
    inputs->seconds[i] = 0;
    if (i)
        limits.eighths = NULL;
    return gf_source_open(inputs->paths[i], &limits, &inputs->sources[i], error);
}

gf_status gf_inputs_check_second(const gf_inputs *inputs, uint32_t i, const gf_format *format,
                                 gf_error *error) {
    const gf_format *own = &inputs->sources[i]->format;
    gf_format wanted = *format;
    char is[96], should[96];
    wanted.alpha = own->alpha; /* either image declares alpha */
    if (gf_format_equal(&wanted, own))
        return GF_OK;
    gf_format_text(own, is, sizeof is);
    gf_format_text(inputs->pair ? &inputs->sources[0]->format : format, should, sizeof should);
    return gf_fail(error, GF_FAILED,
                   "%s: is %s, but %s is %s; both must have the same size, channels and type",
                   inputs->paths[i], is,
                   inputs->pair ? inputs->paths[0] : "the image of the step that reads it", should);
}

/* Open the files of inputs->paths that are being read. */
static gf_status inputs_open_sources(gf_inputs *inputs, gf_error *error) {
    const gf_format before = inputs->format;
    gf_source **sources = inputs->sources;
    gf_status status = inputs_open_source(inputs, 0, error);
    if (status)
        return status;
    assert(sources[0]);
    const gf_format *format = &sources[0]->format;
    if (inputs->left_out && (format->width != before.width || format->height != before.height ||
                             format->channels != before.channels))
        return inputs_fail_changed(inputs, error);
    inputs->format = *format;
    if (!inputs->pair)
        status = inputs_add_nodata(inputs, (gf_nodata[2]){sources[0]->nodata}, error);
    for (uint32_t i = 1; i < gf_inputs_reading(inputs) && !status; i++)
        status = inputs_open_source(inputs, i, error);
    if (status || !inputs->pair)
        return status;
    inputs->format.alpha = inputs->format.alpha || sources[1]->format.alpha;
    return inputs_add_nodata(inputs, (gf_nodata[]){sources[0]->nodata, sources[1]->nodata}, error);
}

gf_status gf_inputs_open_files(gf_inputs *inputs, uint32_t count, const char *const *paths,
                               const gf_limits *limits, gf_error *error) {
    inputs->name = strcmp(paths[0], "-") == 0 ? "standard input" : paths[0];
    inputs->count = count;
    inputs->paths = paths;
    inputs->limits = *limits;
    for (uint32_t i = 0; i < count; i++)
        inputs->stats[i] = gf_stat_file(paths[i]);
    return inputs_open_sources(inputs, error);
}

gf_status gf_inputs_open_memory(gf_inputs *inputs, uint32_t count, const gf_format *const *formats,
                                uint64_t times, const gf_pixels *const *in, gf_error *error) {
    gf_status status = GF_OK;
    *inputs = (gf_inputs){.name = "memory", .count = count, .format = *formats[0]};
    inputs->format.height *= times;
    for (uint32_t i = 0; i < count && !status; i++)
        status = gf_batch_source(formats[i], times, in[i], &inputs->sources[i], error);
    return status;
}

/* ---- reading --------------------------------------------------------------------------------- */

bool gf_inputs_in_memory(const gf_inputs *inputs, gf_rows rows[GF_MAX_INPUTS]) {
    bool all = !inputs->left_out;
    for (uint32_t i = 0; i < inputs->count && all; i++)
        all = gf_memory_source_rows(inputs->sources[i], &rows[i]);
    return all;
}

gf_status gf_inputs_read(gf_inputs *inputs, const gf_rows *to, gf_error *error) {
    gf_status status = GF_OK;
    for (uint32_t i = 0; i < gf_inputs_reading(inputs) && !status; i++) {
        gf_source *source = inputs->sources[i];
        const double start = gf_now();
        if (to[i].rows)
            status = source->ops->read(source, to[i].data, to[i].stride, to[i].rows, error);
        inputs->seconds[i] += gf_now() - start;
    }
    if (!inputs->pair || !inputs->left_out || status)
        return status;
    const double start = gf_now();
    for (uint64_t y = to[0].y0; y < to[0].y0 + to[0].rows; y++) {
        unsigned char *const pair[] = {gf_row(&to[0], y), gf_row(&to[1], y)};
        gf_leave_out(inputs->left_out, &inputs->format, pair, y);
    }
    inputs->seconds[1] += gf_now() - start;
    return GF_OK;
}

gf_status gf_inputs_announce(gf_inputs *inputs, const gf_rows *to, gf_error *error) {
    gf_status status = GF_OK;
    for (uint32_t i = 0; i < gf_inputs_reading(inputs) && !status; i++) {
        gf_source *source = inputs->sources[i];
        if (source->ops->announce && to[i].rows)
            status = source->ops->announce(source, to[i].data, to[i].stride, to[i].rows, error);
    }
    return status;
}

void gf_inputs_cancel(gf_inputs *inputs) {
    for (uint32_t i = 0; i < gf_inputs_reading(inputs); i++)
        if (inputs->sources[i]->ops->cancel)
            inputs->sources[i]->ops->cancel(inputs->sources[i]);
}

gf_status gf_inputs_finish(gf_inputs *inputs, gf_error *error) {
    gf_status status = GF_OK;
    for (uint32_t i = 0; i < gf_inputs_reading(inputs) && !status; i++) {
        const double start = gf_now();
        status = inputs->sources[i]->ops->finish(inputs->sources[i], error);
        inputs->seconds[i] += gf_now() - start;
    }
    return status;
}

uint64_t gf_inputs_memory(const gf_inputs *inputs) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < inputs->count; i++)
        bytes += inputs->sources[i]->memory;
    return bytes;
}

void gf_inputs_remarks(const gf_inputs *inputs, gf_remarks *remarks) {
    static const char *const which[] = {"first", "second"};
    *remarks = (gf_remarks){0};
    if (!inputs->pair)
        *remarks = inputs->sources[0]->metadata.remarks;
    for (uint32_t i = 0; inputs->pair && i < 2 && inputs->sources[i]; i++) {
        const gf_remarks *one = &inputs->sources[i]->metadata.remarks;
        const size_t used = strlen(remarks->damage);
        if (one->damage[0])
            (void)snprintf(remarks->damage + used, sizeof remarks->damage - used, "%s%s image: %s",
                           used ? "; " : "", which[i], one->damage);
        for (const char *line = one->notes; *line; line += *line == '\n') {
            const int length = (int)strcspn(line, "\n");
            gf_note(remarks, "%s image: %.*s", which[i], length, line);
            line += length;
        }
    }
    for (uint32_t c = 0; c < GF_MAX_CHANNELS && inputs->pair && inputs->left_out; c++)
        remarks->nodata += inputs->left_out->all[c];
}

/* ---- reading again --------------------------------------------------------------------------- */

gf_status gf_inputs_check_same(const gf_inputs *inputs, const gf_inputs *before, gf_error *error) {
    bool same = true;
    for (uint32_t i = 0; i < gf_inputs_reading(before); i++) {
        const struct stat *a = &before->stats[i], b = gf_stat_file(inputs->paths[i]);
        same = same && b.st_mode && a->st_dev == b.st_dev && a->st_ino == b.st_ino &&
               a->st_size == b.st_size && a->st_mtim.tv_sec == b.st_mtim.tv_sec &&
               a->st_mtim.tv_nsec == b.st_mtim.tv_nsec;
    }
    return same ? GF_OK : inputs_fail_changed(inputs, error);
}

void gf_inputs_seek(gf_inputs *inputs, uint64_t first) {
    inputs->first = first;
    for (uint32_t i = 0; i < gf_inputs_reading(inputs); i++)
        inputs->sources[i]->ops->seek(inputs->sources[i], first);
}

bool gf_inputs_can_restart(const gf_inputs *inputs) {
    bool regular = true;
    for (uint32_t i = 0; i < gf_inputs_reading(inputs); i++)
        regular = regular && inputs->stats[i].st_mode;
    return regular || inputs_in_memory(inputs);
}

static void inputs_close_sources(gf_source *const *sources, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (sources[i])
            sources[i]->ops->close(sources[i]);
}

gf_status gf_inputs_restart(gf_inputs *inputs, gf_error *error) {
    const uint32_t count = gf_inputs_reading(inputs);
    if (inputs_in_memory(inputs)) {
        memset(inputs->seconds, 0, sizeof inputs->seconds);
        gf_inputs_seek(inputs, inputs->first);
        return GF_OK;
    }
    gf_source *before[GF_MAX_INPUTS] = {NULL};
    const gf_format format = inputs->format;
    for (uint32_t i = 0; i < count; i++) {
        before[i] = inputs->sources[i];
        inputs->sources[i] = NULL;
    }
    gf_status status = inputs_open_sources(inputs, error);
    if (!status && !(status = gf_inputs_check_same(inputs, inputs, error)) &&
        !gf_format_equal(&inputs->format, &format))
        status = inputs_fail_changed(inputs, error);
    for (uint32_t i = 1; i < count && !status; i++)
        if (!gf_format_equal(&inputs->sources[i]->format, &before[i]->format))
            status = inputs_fail_changed(inputs, error);
    inputs_close_sources(status ? inputs->sources : before, count);
    for (uint32_t i = 0; i < count && status; i++) /* the first ones can still be reported */
        inputs->sources[i] = before[i];
    if (!status && inputs->first)
        gf_inputs_seek(inputs, inputs->first);
    return status;
}

void gf_inputs_shrink(gf_inputs *inputs) {
    for (uint32_t i = 0; i < inputs->count; i++)
        if (inputs->sources[i]->memory != 0)
            inputs->sources[i]->ops->shrink(inputs->sources[i]);
    inputs->limits.threads = 1; /* if the inputs are opened again */
}

void gf_inputs_replace(gf_inputs *inputs, gf_source *replacement) {
    gf_source *source = inputs->sources[0];
    replacement->metadata = source->metadata;
    replacement->bytes = source->bytes;
    replacement->dropped = source->dropped;
    replacement->pages = source->pages;
    source->metadata = (gf_metadata){0};
    source->ops->close(source);
    inputs->sources[0] = replacement;
}

gf_status gf_inputs_buffer(gf_inputs *inputs, uint64_t *memory, gf_busy *busy, gf_error *error) {
    gf_source *source = inputs->sources[0], *buffered;
    const gf_format *format = &source->format;
    const size_t row = gf_row_bytes(format);
    const double began = gf_now();
    void *pixels;
    if (source->memory > *memory / 2)
        gf_inputs_shrink(inputs);
    const gf_status status =
        gf_source_read_all(source, inputs->name, "an image from a pipe that is read twice", *memory,
                           0, &pixels, error);
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
    inputs_close_sources(inputs->sources, inputs->count);
    free(inputs->left_out);
    *inputs = (gf_inputs){.count = 0};
}
