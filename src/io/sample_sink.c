/* Writes extracted samples to a CSV, JSON or NumPy file. */
#define _GNU_SOURCE /* mempcpy */

#include "io/sample_sink.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "core/error.h"
#include "io/bytes.h"
#include "io/file/output.h"
#include "io/plain/rows.h"

enum {
    CHUNK_BYTES = 1 << 16,
    SAMPLE_CAPACITY = 256 /* max bytes of a sample, a header or the end of JSON */
};

/* gf_sample_sink_open has their names, which are also the extensions. */
typedef enum sample_kind { SAMPLES_CSV, SAMPLES_NPY, SAMPLES_JSON, SAMPLE_KINDS } sample_kind;

struct gf_sample_sink {
    sample_kind kind;
    gf_sample_layout layout;
    gf_output *output;
    uint64_t count;      /* samples written */
    uint64_t expected;   /* number of samples announced by gf_sample_sink_count; UINT64_MAX: none */
    bool rewrite_header; /* seekable .npy file: write the header again with the final count */
    size_t used;
    char chunk[CHUNK_BYTES + SAMPLE_CAPACITY];
};

/* ---- CSV and JSON, one line per sample; NumPy: packed little-endian records ------------------ */

static void sample_put_header(gf_sample_sink *sink, uint64_t count) {
    const gf_sample_layout *layout = &sink->layout;
    char *to = sink->chunk, descr[100];
    if (sink->kind == SAMPLES_NPY) {
        snprintf(descr, sizeof descr,
                 "[%s('x', '<u8'), ('y', '<u8'), ('channel', '|u1'), ('value', %s)]",
                 layout->with_bin ? "('bin', '<u4'), " : "", gf_npy_dtype(layout->type));
        to += gf_npy_put_header(to, descr, &count, 1);
    } else if (sink->kind == SAMPLES_JSON) {
        to = stpcpy(to, "{\"schema\":\"gpufilter-samples\",\"schema_version\":1,\"fields\":[");
        to = stpcpy(to, layout->with_bin ? "\"bin\"," : "");
        to = stpcpy(to, "\"x\",\"y\",\"channel\",\"value\"],\"samples\":[");
    } else {
        to = stpcpy(stpcpy(to, layout->with_bin ? "bin," : ""), "x,y,channel,value\n");
    }
    sink->used = (size_t)(to - sink->chunk);
}

/* Larger integers may not be exact as a double, which most JSON readers use. */
#define EXACT_IN_JSON (UINT64_C(1) << 53)

static char *sample_put_uint(char *to, uint64_t x, bool json) {
    char digits[20];
    size_t at = sizeof digits;
    if (json && x > EXACT_IN_JSON)
        return stpcpy(sample_put_uint(stpcpy(to, "\""), x, false), "\"");
    do {
        digits[--at] = (char)('0' + x % 10);
        x /= 10;
    } while (x != 0);
    return mempcpy(to, digits + at, sizeof digits - at);
}

/* JSON has no infinities and NaNs; write them as strings. Write -0 as "-0.0", since many readers
 * parse "-0" as an integer and drop the sign. */
static char *sample_put_value(char *to, gf_type type, const void *value, bool json) {
    uint16_t integer = *(const uint8_t *)value;
    float x;
    if (type == GF_U16)
        memcpy(&integer, value, sizeof integer);
    if (type != GF_F32)
        return sample_put_uint(to, integer, json);
    memcpy(&x, value, sizeof x);
    if (json && x == 0 && signbit(x))
        return stpcpy(to, "-0.0");
    const gf_value number = {.type = GF_VALUE_FLOAT, .real = (double)x};
    const char *quote = json && !isfinite(x) ? "\"" : "";
    to = stpcpy(to, quote);
    gf_value_format(&number, to, 40);
    return stpcpy(to + strlen(to), quote);
}

/* Put numbers of `bytes` bytes in little-endian order. Return the end. */
static char *sample_put_little(char *to, const void *numbers, uint64_t count, size_t bytes) {
    gf_copy_order(to, numbers, count, bytes, true);
    return to + count * bytes;
}

/* Put a sample at the end of the chunk. value: of layout->type, unaligned. */
static void sample_put(gf_sample_sink *sink, uint32_t bin, uint64_t position, const void *value) {
    const gf_sample_layout *layout = &sink->layout;
    const bool json = sink->kind == SAMPLES_JSON;
    const uint64_t pixel = position / layout->channels, channel = position % layout->channels;
    const uint64_t place[] = {pixel % layout->width, pixel / layout->width};
    char *to = sink->chunk + sink->used;
    if (sink->kind == SAMPLES_NPY) {
        if (layout->with_bin)
            to = sample_put_little(to, &bin, 1, sizeof bin);
        to = sample_put_little(to, place, 2, sizeof *place);
        *to++ = (char)layout->indices[channel];
        to = sample_put_little(to, value, 1, gf_type_bytes(layout->type));
    } else {
        if (json)
            to = stpcpy(to, sink->count != 0 ? ",\n[" : "\n[");
        if (layout->with_bin)
            to = stpcpy(sample_put_uint(to, bin, json), ",");
        to = stpcpy(sample_put_uint(to, place[0], json), ",");
        to = stpcpy(sample_put_uint(to, place[1], json), json ? ",\"" : ",");
        to = stpcpy(stpcpy(to, layout->names[channel]), json ? "\"," : ",");
        to = sample_put_value(to, layout->type, value, json);
        *to++ = json ? ']' : '\n';
    }
    sink->count++;
    sink->used = (size_t)(to - sink->chunk);
}

/* ---- opening --------------------------------------------------------------------------------- */

gf_status gf_sample_sink_open(const char *path, const gf_file_options *options,
                              const gf_sample_layout *layout, gf_sample_sink **sink,
                              gf_error *error) {
    static const char *const names[SAMPLE_KINDS] = {
        [SAMPLES_CSV] = "csv", [SAMPLES_NPY] = "npy", [SAMPLES_JSON] = "json"};
    const bool standard = strcmp(path, "-") == 0;
    const char *format = options->sample_format;
    const char *name = format ? format : standard ? "csv" : gf_path_extension(path);
    gf_file_options own = *options;
    sample_kind kind = SAMPLES_CSV;
    struct stat info;
    gf_output *output;
    gf_status status;
    *sink = NULL;
    while (kind < SAMPLE_KINDS && strcasecmp(name, names[kind]) != 0)
        kind++;
    if (kind == SAMPLE_KINDS) {
        if (format)
            return gf_fail(error, GF_USAGE, "%s: unknown sample format '%s'; use csv, npy or json",
                           standard ? "standard output" : path, format);
        if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
            return gf_fail(error, GF_FAILED, "%s: is a directory; name a file in it", path);
        return gf_fail(error, GF_USAGE,
                       "%s: unknown sample format; use the extension .csv, .npy or .json", path);
    }
    /* CSV and JSON may be printed to a terminal. */
    own.force |= standard && kind != SAMPLES_NPY;
    if ((status = gf_output_open(path, &own, false, &output, error)))
        return status;
    gf_sample_sink *new = calloc(1, sizeof *new);
    if (!new) {
        status = gf_fail_memory(error, gf_output_name(output), sizeof *new, "a sink");
        gf_output_close(output);
        return status;
    }
    new->kind = kind;
    new->layout = *layout;
    new->output = output;
    new->expected = UINT64_MAX;
    new->rewrite_header = gf_output_seekable(output) && kind == SAMPLES_NPY;
    if (!gf_sample_sink_wants_count(new))
        sample_put_header(new, 0);
    *sink = new;
    return GF_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

bool gf_sample_sink_wants_count(const gf_sample_sink *sink) {
    return sink->kind == SAMPLES_NPY && !sink->rewrite_header;
}

gf_status gf_sample_sink_count(gf_sample_sink *sink, uint64_t count, gf_error *error) {
    if (sink->expected != UINT64_MAX || sink->count != 0)
        return gf_fail(error, GF_FAILED,
                       "%s: the number of samples must be set once, before the first sample",
                       gf_output_name(sink->output));
    sink->expected = count;
    if (gf_sample_sink_wants_count(sink))
        sample_put_header(sink, count);
    return GF_OK;
}

/* Check that the count is known if the header needs it. */
static gf_status sample_check_expected(const gf_sample_sink *sink, gf_error *error) {
    if (!gf_sample_sink_wants_count(sink) || sink->expected != UINT64_MAX)
        return GF_OK;
    return gf_fail(error, GF_FAILED,
                   "%s: an .npy file written to a pipe needs the number of samples first",
                   gf_output_name(sink->output));
}

static gf_status sample_flush(gf_sample_sink *sink, gf_error *error) {
    const size_t size = sink->used;
    sink->used = 0;
    return gf_output_write(sink->output, sink->chunk, size, error);
}

gf_status gf_sample_sink_write(gf_sample_sink *sink, uint32_t bin, const uint64_t *positions,
                               const void *values, uint64_t count, gf_error *error) {
    const size_t size = gf_type_bytes(sink->layout.type);
    gf_status status = sample_check_expected(sink, error);
    for (uint64_t i = 0; i < count && !status; i++) {
        if (sink->used > CHUNK_BYTES - SAMPLE_CAPACITY)
            status = sample_flush(sink, error);
        sample_put(sink, bin, positions[i], (const unsigned char *)values + i * size);
    }
    return status;
}

gf_status gf_sample_sink_finish(gf_sample_sink *sink, gf_error *error) {
    gf_status status = sample_check_expected(sink, error);
    if (status)
        return status;
    if (sink->expected != UINT64_MAX && sink->count != sink->expected)
        return gf_fail(error, GF_FAILED, "%s: expected %" PRIu64 " samples, got %" PRIu64,
                       gf_output_name(sink->output), sink->expected, sink->count);
    if (sink->kind == SAMPLES_JSON) {
        const char *end = stpcpy(sink->chunk + sink->used, sink->count != 0 ? "\n]}\n" : "]}\n");
        sink->used = (size_t)(end - sink->chunk);
    }
    status = sample_flush(sink, error);
    if (!status && sink->rewrite_header) {
        sample_put_header(sink, sink->count);
        status = gf_output_seek(sink->output, 0, error);
        if (!status)
            status = sample_flush(sink, error);
    }
    return status ? status : gf_output_prepare(sink->output, error);
}

gf_output *gf_sample_sink_output(const gf_sample_sink *sink) {
    return sink->output;
}

void gf_sample_sink_close(gf_sample_sink *sink) {
    if (!sink)
        return;
    gf_output_close(sink->output);
    free(sink);
}
