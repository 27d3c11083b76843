/* How fast image files are written and read here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "error.h"
#include "io/io.h"
#include "io/limits.h"
#include "io/temporaries.h"
#include "laps.h"
#include "thread.h"

#define PIECE_BYTES ((size_t)1 << 20) /* rows at a time, about: as in the stream's bands */

typedef struct gf_codec_run {
    const gf_format *format;
    const gf_pixels *image;
    gf_file_options options;
    char path[4096];
    unsigned char *piece; /* of so many rows */
    uint64_t rows;
    gf_laps encode, decode;
} gf_codec_run;

static const unsigned char *row_of(const gf_codec_run *run, uint64_t y) {
    return (const unsigned char *)run->image->data + y * run->image->stride;
}

static uint64_t rows_from(const gf_codec_run *run, uint64_t y) {
    const uint64_t rest = run->format->height - y;
    return rest < run->rows ? rest : run->rows;
}

static gf_status encode(gf_codec_run *run, gf_error *error) {
    const double began = gf_now();
    gf_sink *sink;
    run->options.force = run->encode.count > 0; /* a file that is there then is this call's own */
    gf_status status =
        gf_sink_open(run->path, run->format, NULL, &run->options, gf_cores(), &sink, error);
    if (status)
        return status;
    for (uint64_t y = 0; y < run->format->height && !status; y += run->rows)
        status =
            sink->ops->write(sink, row_of(run, y), run->image->stride, rows_from(run, y), error);
    if (!status)
        status = sink->ops->finish(sink, NULL, error);
    if (!status)
        status = sink->ops->place(sink, error);
    sink->ops->close(sink);
    gf_laps_add(&run->encode, gf_now() - began);
    return status;
}

static bool same_rows(const gf_codec_run *run, uint64_t y) {
    const size_t row = gf_row_bytes(run->format);
    for (uint64_t i = 0; i < rows_from(run, y); i++)
        if (memcmp(run->piece + i * row, row_of(run, y + i), row) != 0)
            return false;
    return true;
}

/* Compares the pixels, too, outside of the time that counts. */
static gf_status decode(gf_codec_run *run, gf_error *error) {
    double spent = -gf_now();
    bool same = true;
    gf_source *source;
    const gf_raw raw = {.format = *run->format};
    const gf_limits limits = {.raw = strcasecmp(run->options.format, "raw") == 0 ? &raw : NULL};
    gf_status status = gf_source_open(run->path, &limits, &source, error);
    if (status)
        return status;
    if (!gf_format_equal(&source->format, run->format))
        status = gf_fail(error, GF_FAILED, "%s: gave back another image", run->path);
    for (uint64_t y = 0; y < run->format->height && !status; y += run->rows) {
        status = source->ops->read(source, run->piece, gf_row_bytes(run->format), rows_from(run, y),
                                   error);
        const double read = gf_now();
        same = same && !status && same_rows(run, y);
        spent -= gf_now() - read;
    }
    if (!status)
        status = source->ops->finish(source, error);
    if (!status && !same)
        status = gf_fail(error, GF_FAILED, "%s: gave back other pixels", run->path);
    source->ops->close(source);
    gf_laps_add(&run->decode, spent + gf_now());
    return status;
}

static gf_status time_file(gf_codec_run *run, double seconds, gf_codec_speed *speed,
                           gf_error *error) {
    struct stat info;
    gf_status status = GF_OK;
    while (!status && !gf_laps_enough(&run->encode, seconds))
        status = encode(run, error);
    while (!status && !gf_laps_enough(&run->decode, seconds))
        status = decode(run, error);
    if (!status && stat(run->path, &info) != 0)
        status = gf_fail(error, GF_FAILED, "%s: is gone", run->path);
    if (!status)
        *speed = (gf_codec_speed){.encode_seconds = gf_laps_median(&run->encode),
                                  .decode_seconds = gf_laps_median(&run->decode),
                                  .file_bytes = (uint64_t)info.st_size};
    return status;
}

gf_status gf_time_codec(const gf_format *format, const gf_pixels *image,
                        const gf_file_options *options, double seconds, gf_codec_speed *speed,
                        gf_error *error) {
    GF_FLOAT_ENV_SCOPE();
    gf_status status = gf_format_check(format, "memory", error);
    if (!status && (!image || !image->data || image->stride < gf_row_bytes(format)))
        status = gf_fail(error, GF_USAGE, "memory: no image, or its stride is too short");
    if (status)
        return status;
    const char *folder = getenv("TMPDIR");
    const size_t row = gf_row_bytes(format);
    gf_codec_run *run = calloc(1, sizeof *run);
    if (!run)
        return gf_fail_memory(error, "memory", sizeof *run, "what is timed");
    run->format = format;
    run->image = image;
    if (options)
        run->options = *options;
    if (!run->options.format)
        run->options.format = "png";
    snprintf(run->path, sizeof run->path, "%s/gpufilter-%ld-%p.%s",
             folder && *folder ? folder : "/tmp", (long)getpid(), (void *)run, run->options.format);
    run->rows = row < PIECE_BYTES ? PIECE_BYTES / row : 1;
    run->piece = malloc((size_t)run->rows * row);
    const int slot = gf_temporary_add(run->path);
    if (slot >= 0)
        gf_temporary_made(slot);
    if (!run->piece)
        status = gf_fail_memory(error, "memory", run->rows * row, "some rows");
    else if (slot < 0)
        status = gf_fail(error, GF_FAILED, "%s: too many outputs are open at once", run->path);
    else
        status = time_file(run, seconds, speed, error);
    if (run->encode.count > 0)
        (void)unlink(run->path);
    gf_temporary_drop(slot);
    free(run->piece);
    free(run);
    return status;
}
