#include "io/read_back.h"

#include <stdlib.h>

#include "digest.h"
#include "error.h"
#include "io/files.h"

#define PIECE_BYTES ((size_t)1 << 20)

static gf_status digest_source(gf_source *source, const char *name, uint64_t *digest,
                               gf_error *error) {
    const size_t row = gf_row_bytes(&source->format);
    const uint64_t height = source->format.height, most = PIECE_BYTES / row + 1;
    gf_rows rows = {.stride = row, .rows = most < height ? most : height};
    rows.data = malloc((size_t)rows.rows * row); /* NOLINT: an image has at least one sample */
    if (!rows.data)
        return gf_fail_memory(error, name, rows.rows * row, "rows that are read back");
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
    const char *path = gf_output_reach(sink->output);
    if (!path || !sink->exact)
        return GF_OK;
    const char *name = gf_output_name(sink->output);
    const gf_raw raw = {.format = *format};
    gf_limits own = *limits;
    own.raw = sink->headless ? &raw : NULL;
    gf_source *source = NULL;
    gf_error cause = {0};
    uint64_t found = ~digest;
    gf_status status = gf_source_open(path, &own, &source, &cause);
    if (!status && gf_format_equal(&source->format, format))
        status = digest_source(source, name, &found, &cause);
    if (source)
        source->ops->close(source);
    if (status)
        return gf_fail(error, GF_FAILED, "%s: what was written cannot be read back: %s", name,
                       cause.message);
    if (found != digest)
        return gf_fail(error, GF_FAILED,
                       "%s: what was written is not what was computed; do not trust this disk or "
                       "this memory",
                       name);
    return GF_OK;
}
