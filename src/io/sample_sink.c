/* Extracted samples, one after another, into a CSV, JSON or NumPy file. */
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
#include "io/output.h"

/* A sample on its way into a file. */
struct sample {
    uint64_t index; /* among all samples of the file */
    uint32_t bin;
    uint64_t x, y;
    uint32_t channel;  /* among those measured */
    const void *value; /* of layout->type, unaligned */
};

/* What any of these functions writes at most. */
enum { SAMPLE_ROOM = 256 };

typedef struct sample_kind {
    const char *name; /* and ending of files */
    bool counted;     /* binary, with a head that tells the number of samples; its size is fixed */
    /* Each writes to `to` and returns where it ended. */
    char *(*head)(char *to, const gf_sample_layout *layout, uint64_t count);
    char *(*sample)(char *to, const gf_sample_layout *layout, const struct sample *sample);
    char *(*tail)(char *to, uint64_t count);
} sample_kind;

/* ---- NumPy: an array of records, packed and in the byte order of this machine ---------------- */

/* Format 1.0: the magic, the version, the length of the text (little-endian), the text. All of it
 * is a multiple of 64 bytes; this many hold the longest text, with a count of 20 digits. */
enum { HEAD_BYTES = 192, TEXT = 10, TEXT_BYTES = HEAD_BYTES - TEXT };

static char *npy_head(char *to, const gf_sample_layout *layout, uint64_t count) {
    static const char start[TEXT] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)TEXT_BYTES, 0};
    static const char *const values[] = {"|u1", "<u2", "<f4", "|u1", ">u2", ">f4"};
    const bool little = gf_host_is_little();
    const char order = little ? '<' : '>';
    char bin[32] = "";
    _Static_assert(TEXT_BYTES < 256, "the length has one byte that is not 0");
    if (layout->with_bin)
        snprintf(bin, sizeof bin, "('bin', '%cu4'), ", order);
    memcpy(to, start, TEXT);
    int length = snprintf(to + TEXT, TEXT_BYTES,
                          "{'descr': [%s('x', '%cu8'), ('y', '%cu8'), ('channel', '|u1'), "
                          "('value', '%s')], 'fortran_order': False, 'shape': (%" PRIu64 ",), }",
                          bin, order, order, values[layout->type + (little ? 0 : 3)], count);
    memset(to + TEXT + length, ' ', (size_t)(TEXT_BYTES - length));
    to[HEAD_BYTES - 1] = '\n';
    return to + HEAD_BYTES;
}

static char *npy_put(char *to, const void *field, size_t size) {
    memcpy(to, field, size);
    return to + size;
}

static char *npy_sample(char *to, const gf_sample_layout *layout, const struct sample *sample) {
    if (layout->with_bin)
        to = npy_put(to, &sample->bin, sizeof sample->bin);
    to = npy_put(to, &sample->x, sizeof sample->x);
    to = npy_put(to, &sample->y, sizeof sample->y);
    *to++ = (char)layout->indices[sample->channel];
    return npy_put(to, sample->value, gf_type_bytes(layout->type));
}

static char *sample_no_tail(char *to, uint64_t count) {
    (void)count;
    return to;
}

static const sample_kind sample_npy = {"npy", true, npy_head, npy_sample, sample_no_tail};

/* ---- text: a line each, in CSV and in JSON --------------------------------------------------- */

/* Above it not every integer is a double, which is what most readers of JSON have. */
#define EXACT_IN_JSON (UINT64_C(1) << 53)

static char *sample_put_uint(char *to, uint64_t x) {
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + x % 10);
        x /= 10;
    } while (x != 0);
    memcpy(to, digits + at, sizeof digits - at);
    return to + sizeof digits - at;
}

/* JSON has no infinities, and -0 is an integer to many readers: one without a sign. */
static char *sample_put_value(char *to, gf_type type, const void *value, bool json) {
    uint16_t integer;
    float x;
    if (type == GF_U8)
        return sample_put_uint(to, *(const uint8_t *)value);
    if (type == GF_U16) {
        memcpy(&integer, value, sizeof integer);
        return sample_put_uint(to, integer);
    }
    memcpy(&x, value, sizeof x);
    if (json && x == 0 && signbit(x))
        return stpcpy(to, "-0.0");
    const gf_value number = {.type = GF_VALUE_FLOAT, .real = (double)x};
    const bool quote = json && !isfinite(x);
    if (quote)
        *to++ = '"';
    gf_value_format(&number, to, 40);
    to += strlen(to);
    if (quote)
        *to++ = '"';
    return to;
}

/* ---- CSV ------------------------------------------------------------------------------------- */

static char *csv_head(char *to, const gf_sample_layout *layout, uint64_t count) {
    (void)count;
    return stpcpy(stpcpy(to, layout->with_bin ? "bin," : ""), "x,y,channel,value\n");
}

static char *csv_sample(char *to, const gf_sample_layout *layout, const struct sample *sample) {
    if (layout->with_bin) {
        to = sample_put_uint(to, sample->bin);
        *to++ = ',';
    }
    to = sample_put_uint(to, sample->x);
    *to++ = ',';
    to = sample_put_uint(to, sample->y);
    *to++ = ',';
    to = stpcpy(to, layout->names[sample->channel]);
    *to++ = ',';
    to = sample_put_value(to, layout->type, sample->value, false);
    *to++ = '\n';
    return to;
}

static const sample_kind sample_csv = {"csv", false, csv_head, csv_sample, sample_no_tail};

/* ---- JSON ------------------------------------------------------------------------------------ */

static char *json_head(char *to, const gf_sample_layout *layout, uint64_t count) {
    (void)count;
    to = stpcpy(to, "{\"schema\":\"gpufilter-samples\",\"version\":1,\"fields\":[");
    to = stpcpy(to, layout->with_bin ? "\"bin\"," : "");
    return stpcpy(to, "\"x\",\"y\",\"channel\",\"value\"],\"samples\":[");
}

static char *json_uint(char *to, uint64_t x) {
    bool quote = x > EXACT_IN_JSON;
    if (quote)
        *to++ = '"';
    to = sample_put_uint(to, x);
    if (quote)
        *to++ = '"';
    *to++ = ',';
    return to;
}

static char *json_sample(char *to, const gf_sample_layout *layout, const struct sample *sample) {
    to = stpcpy(to, sample->index != 0 ? ",\n[" : "\n[");
    if (layout->with_bin)
        to = json_uint(to, sample->bin);
    to = json_uint(to, sample->x);
    to = json_uint(to, sample->y);
    *to++ = '"';
    to = stpcpy(to, layout->names[sample->channel]);
    to = stpcpy(to, "\",");
    to = sample_put_value(to, layout->type, sample->value, true);
    *to++ = ']';
    return to;
}

static char *json_tail(char *to, uint64_t count) {
    return stpcpy(to, count != 0 ? "\n]}\n" : "]}\n");
}

static const sample_kind sample_json = {"json", false, json_head, json_sample, json_tail};

/* ---- the sink -------------------------------------------------------------------------------- */

enum { CHUNK_BYTES = 1 << 16 };

struct gf_sample_sink {
    const sample_kind *kind;
    gf_sample_layout layout;
    gf_output *output;
    uint64_t count; /* of samples taken */
    uint64_t told;  /* how many there will be */
    bool is_told;
    bool head_last; /* the head is written in the end, when the count is known */
    uint64_t at;    /* head_last: where in the file the chunk goes */
    size_t used;
    char chunk[CHUNK_BYTES];
};

/* ---- opening --------------------------------------------------------------------------------- */

static const sample_kind *sample_find_kind(const char *name) {
    static const sample_kind *const kinds[] = {&sample_csv, &sample_npy, &sample_json, NULL};
    const sample_kind *const *kind = kinds;
    while (*kind && strcasecmp(name, (*kind)->name) != 0)
        kind++;
    return *kind;
}

static gf_status sample_choose_kind(const char *path, const char *format, const sample_kind **kind,
                                    gf_error *error) {
    const bool standard = strcmp(path, "-") == 0;
    struct stat info;
    *kind = sample_find_kind(format ? format : standard ? "csv" : gf_path_ending(path));
    if (*kind)
        return GF_OK;
    if (format)
        return gf_fail(error, GF_USAGE, "%s: samples are not written as '%s'; use csv, npy or json",
                       standard ? "standard output" : path, format);
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return gf_fail(error, GF_FAILED, "%s: is a folder; name a file in it", path);
    return gf_fail(error, GF_USAGE,
                   "%s: cannot tell the format of samples from this name; use the ending .csv, "
                   ".npy or .json",
                   path);
}

gf_status gf_sample_sink_open(const char *path, const char *format, bool force,
                              const gf_sample_layout *layout, gf_sample_sink **sink,
                              gf_error *error) {
    const bool standard = strcmp(path, "-") == 0;
    const sample_kind *kind;
    gf_output *output;
    gf_status status = sample_choose_kind(path, format, &kind, error);
    *sink = NULL;
    /* Text may go to a terminal. */
    if (status ||
        (status = gf_output_open(path, force || (standard && !kind->counted), &output, error)))
        return status;
    gf_sample_sink *new = calloc(1, sizeof *new);
    if (!new) {
        gf_fail_memory(error, gf_output_name(output), sizeof *new, "a sink");
        gf_output_close(output);
        return GF_FAILED;
    }
    new->kind = kind;
    new->layout = *layout;
    new->output = output;
    const size_t head = (size_t)(kind->head(new->chunk, layout, 0) - new->chunk);
    new->head_last = gf_output_seekable(output) && kind->counted;
    if (new->head_last)
        new->at = head;
    else if (!kind->counted)
        new->used = head;
    *sink = new;
    return GF_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

bool gf_sample_sink_wants_count(const gf_sample_sink *sink) {
    return sink->kind->counted && !sink->head_last;
}

gf_status gf_sample_sink_count(gf_sample_sink *sink, uint64_t count, gf_error *error) {
    if (sink->is_told || sink->count != 0)
        return gf_fail(error, GF_FAILED, "%s: the number of samples comes once, before them",
                       gf_output_name(sink->output));
    sink->told = count;
    sink->is_told = true;
    if (gf_sample_sink_wants_count(sink))
        sink->used = (size_t)(sink->kind->head(sink->chunk, &sink->layout, count) - sink->chunk);
    return GF_OK;
}

/* Is there a head, if it must stand before the samples? */
static gf_status sample_check_told(const gf_sample_sink *sink, gf_error *error) {
    if (!gf_sample_sink_wants_count(sink) || sink->is_told)
        return GF_OK;
    return gf_fail(error, GF_FAILED,
                   "%s: an .npy file into a pipe begins with the number of samples",
                   gf_output_name(sink->output));
}

static gf_status sample_flush(gf_sample_sink *sink, gf_error *error) {
    const size_t size = sink->used;
    const uint64_t at = sink->at;
    sink->used = 0;
    if (!sink->head_last)
        return gf_output_write(sink->output, sink->chunk, size, error);
    sink->at += size;
    return gf_output_write_at(sink->output, sink->chunk, size, at, error);
}

gf_status gf_sample_sink_write(gf_sample_sink *sink, uint32_t bin, const uint64_t *positions,
                               const void *values, uint64_t count, gf_error *error) {
    const gf_sample_layout *layout = &sink->layout;
    const size_t size = gf_type_bytes(layout->type);
    struct sample sample = {.bin = bin, .value = values};
    gf_status status = sample_check_told(sink, error);
    for (uint64_t i = 0; i < count && !status; i++) {
        const uint64_t pixel = positions[i] / layout->channels;
        sample.index = sink->count++;
        sample.x = pixel % layout->width;
        sample.y = pixel / layout->width;
        sample.channel = (uint32_t)(positions[i] % layout->channels);
        sample.value = (const unsigned char *)values + i * size;
        if (sink->used > CHUNK_BYTES - SAMPLE_ROOM)
            status = sample_flush(sink, error);
        char *end = sink->kind->sample(sink->chunk + sink->used, layout, &sample);
        sink->used = (size_t)(end - sink->chunk);
    }
    return status;
}

gf_status gf_sample_sink_finish(gf_sample_sink *sink, gf_error *error) {
    gf_status status = sample_check_told(sink, error);
    if (status)
        return status;
    if (sink->is_told && sink->count != sink->told)
        return gf_fail(error, GF_FAILED,
                       "%s: %" PRIu64 " samples were told of and %" PRIu64 " came",
                       gf_output_name(sink->output), sink->told, sink->count);
    status = sample_flush(sink, error);
    /* Samples went to places in the file; what is written in order still begins at its start. */
    char *end = sink->head_last ? sink->kind->head(sink->chunk, &sink->layout, sink->count)
                                : sink->kind->tail(sink->chunk, sink->count);
    if (!status)
        status = gf_output_write(sink->output, sink->chunk, (size_t)(end - sink->chunk), error);
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
