/* Common functions of sources and sinks. */
#include "io/stream/source.h"

#include <stdlib.h>

#include "core/error.h"
#include "io/file/output.h"
#include "io/limits.h"
#include "io/stream/sink.h"

void *gf_source_new(size_t size, const gf_source_ops *ops, const char *name, gf_error *error) {
    gf_source *source = calloc(1, size);
    if (!source) {
        gf_fail_memory(error, name, size, "a source");
        return NULL;
    }
    source->ops = ops;
    return source;
}

gf_status gf_source_read_all(gf_source *source, const char *name, const char *what,
                             uint64_t max_memory, void **pixels, gf_error *error) {
    const gf_format *format = &source->format;
    const size_t row = gf_row_bytes(format);
    void *rows = gf_alloc_limited(format->height * row, max_memory, name, what, error);
    if (!rows)
        return GF_FAILED;
    gf_status status = source->ops->read(source, rows, row, format->height, error);
    if (!status)
        status = source->ops->finish(source, error);
    if (status)
        free(rows);
    else
        *pixels = rows;
    return status;
}

void *gf_sink_new(size_t size, const gf_sink_ops *ops, struct gf_output *output, gf_error *error) {
    gf_sink *sink = calloc(1, size);
    if (!sink) {
        gf_fail_memory(error, output ? gf_output_name(output) : "memory", size, "a sink");
        gf_output_close(output);
        return NULL;
    }
    sink->ops = ops;
    sink->output = output;
    return sink;
}
