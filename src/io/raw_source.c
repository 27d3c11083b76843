/* Raw rows in: no header, but what the user says. */

#include <inttypes.h>
#include <stdio.h>

#include "error.h"
#include "io/limits.h"
#include "io/row_source.h"

/* A wrong shape would give wrong pixels: it is told where it can be. */
static gf_status check_raw_size(const gf_row_source *source, gf_error *error) {
    if (!gf_row_source_knows_size(source) || source->input.size == gf_row_source_end(source))
        return GF_OK;
    return gf_fail(error, GF_FAILED,
                   "%s: holds %" PRIu64 " bytes, and --raw says %" PRIu64 "; give its real shape",
                   source->input.name, source->input.size, gf_row_source_end(source));
}

static gf_status skip_to_rows(gf_row_source *source, gf_error *error) {
    unsigned char skipped[4096];

    while (source->input.offset < source->order.start) {
        const uint64_t rest = source->order.start - source->input.offset;
        const size_t want = rest < sizeof skipped ? (size_t)rest : sizeof skipped;
        size_t got;
        const gf_status status = gf_input_read(&source->input, skipped, want, &got, error);
        if (status != GF_OK)
            return status;
        if (got < want)
            return gf_row_source_fail_short(source, 0, error);
    }
    return GF_OK;
}

static void describe_raw(const gf_raw *raw, gf_source *base) {
    static const char *const types[] = {"8-bit", "16-bit", "32-bit float"};
    char offset[40] = "";

    (void)snprintf(base->kind, sizeof base->kind, "raw");
    if (raw->offset != 0)
        (void)snprintf(offset, sizeof offset, ", from byte %" PRIu64, raw->offset);
    (void)snprintf(base->stored, sizeof base->stored, "%s raw%s%s", types[raw->format.type],
                   raw->format.type == GF_U8 ? ""
                   : raw->big                ? ", big-endian"
                                             : ", little-endian",
                   offset);
}

static gf_status open_rows(gf_row_source *source, const gf_limits *limits, gf_error *error) {
    const gf_raw *raw = limits->raw;
    const char *name = source->input.name;

    source->raw = true;
    gf_status status = gf_check_pixels(raw->format.width, raw->format.height, limits, name, error);
    if (status == GF_OK)
        status = gf_format_check(&raw->format, name, error);
    if (status != GF_OK)
        return status;
    source->base.format = raw->format;
    source->order =
        (gf_row_order){.format = raw->format, .start = raw->offset, .little = !raw->big};
    if (raw->offset > INT64_MAX || gf_row_source_end(source) > INT64_MAX)
        return gf_fail(error, GF_FAILED,
                       "%s: no file is as long as --raw says; give its real shape", name);
    describe_raw(raw, &source->base);
    status = check_raw_size(source, error);
    if (status == GF_OK)
        status = gf_row_source_open_reader(source, limits->threads, error);
    return status == GF_OK && source->reader == NULL ? skip_to_rows(source, error) : status;
}

gf_status gf_raw_source_open(const gf_input *input, const gf_limits *limits, gf_source **opened,
                             gf_error *error) {
    return gf_row_source_open(open_rows, input, limits, opened, error);
}
