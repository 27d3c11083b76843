/* Extracted samples, one after another, into a file of any kind. */

#include "io/sample_sink.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "agree.h"
#include "error.h"
#include "io/files.h"
#include "io/path.h"
#include "io/sample_kind.h"
#include "io/sample_share.h"

enum { CHUNK_BYTES = 1 << 16 };

struct gf_sample_sink {
    const gf_sample_kind *kind;
    gf_sample_layout layout;
    gf_output *output;
    const gf_ranks *ranks;
    gf_sample_share *share; /* where samples go while others write the file, too; or NULL */
    uint64_t count;         /* of samples taken */
    uint64_t told;          /* how many there will be */
    bool is_told;
    bool head_last; /* the head is written in the end, when the count is known */
    uint64_t at;    /* head_last: where in the file the chunk goes */
    size_t used;
    char chunk[CHUNK_BYTES];
};

/* ---- opening --------------------------------------------------------------------------------- */

static const gf_sample_kind *find_kind(const char *name) {
    static const gf_sample_kind *const kinds[] = {&gf_sample_csv, &gf_sample_npy, &gf_sample_json,
                                                  NULL};
    const gf_sample_kind *const *kind = kinds;

    while (*kind != NULL && strcasecmp(name, (*kind)->name) != 0)
        kind++;
    return *kind;
}

static gf_status choose_kind(const char *path, const char *format, const gf_sample_kind **kind,
                             gf_error *error) {
    const bool standard = strcmp(path, "-") == 0;
    struct stat info;

    *kind = find_kind(format != NULL ? format : standard ? "csv" : gf_path_ending(path));
    if (*kind != NULL)
        return GF_OK;
    if (format != NULL)
        return gf_fail(error, GF_USAGE, "%s: samples are not written as '%s'; use csv, npy or json",
                       standard ? "standard output" : path, format);
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return gf_fail(error, GF_FAILED, "%s: is a folder; name a file in it", path);
    return gf_fail(error, GF_USAGE,
                   "%s: cannot tell the format of samples from this name; use the ending .csv, "
                   ".npy or .json",
                   path);
}

/* On failure *sink is NULL and the output closed. */
static gf_status make_sink(const gf_sample_kind *kind, const gf_sample_layout *layout,
                           gf_output *output, gf_sample_sink **sink, gf_error *error) {
    gf_sample_sink *new = calloc(1, sizeof *new);

    *sink = new;
    if (new == NULL) {
        const gf_status status =
            gf_fail_memory(error, gf_output_name(output), sizeof *new, "a sink");
        gf_output_close(output);
        return status;
    }
    new->kind = kind;
    new->layout = *layout;
    new->output = output;
    return GF_OK;
}

static gf_status open_shared(const char *path, bool force, const gf_sample_kind *kind,
                             const gf_sample_layout *layout, const gf_ranks *ranks,
                             gf_sample_sink **sink, gf_error *error) {
    gf_output *output;
    gf_status status = gf_output_open_shared(path, force, ranks, &output, error);

    if (status != GF_OK)
        return status;
    status = make_sink(kind, layout, output, sink, error);
    if (status == GF_OK) {
        (*sink)->ranks = ranks;
        status = gf_sample_share_open(output, layout->with_bin ? layout->bins : 1, &(*sink)->share,
                                      error);
    }
    status = gf_ranks_agree(ranks, status, error);
    if (status != GF_OK) {
        gf_sample_sink_close(*sink);
        *sink = NULL;
    }
    return status;
}

static gf_status open_alone(const char *path, bool force, const gf_sample_kind *kind,
                            const gf_sample_layout *layout, gf_sample_sink **sink,
                            gf_error *error) {
    /* Text may go to a terminal. */
    const bool on_terminal = strcmp(path, "-") == 0 && !kind->counted;
    gf_output *output;
    gf_status status = gf_output_open(path, force || on_terminal, &output, error);

    if (status == GF_OK)
        status = make_sink(kind, layout, output, sink, error);
    if (status != GF_OK)
        return status;
    gf_sample_sink *new = *sink;
    char *end = kind->head(new->chunk, layout, 0);
    new->head_last = gf_output_seekable(output) && kind->counted;
    if (new->head_last)
        new->at = (uint64_t)(end - new->chunk);
    else if (!kind->counted)
        new->used = (size_t)(end - new->chunk);
    return GF_OK;
}

gf_status gf_sample_sink_open(const char *path, const char *format, bool force,
                              const gf_sample_layout *layout, const gf_ranks *ranks,
                              gf_sample_sink **sink, gf_error *error) {
    const gf_sample_kind *kind;
    gf_status status = choose_kind(path, format, &kind, error);

    *sink = NULL;
    if (status == GF_OK && !gf_alone(ranks) && !gf_output_sharable(path))
        status = gf_fail(error, GF_USAGE,
                         "%s: several ranks write samples into a regular file only; name one",
                         strcmp(path, "-") == 0 ? "standard output" : path);
    status = gf_ranks_agree(ranks, status, error);
    if (status != GF_OK)
        return status;
    return gf_alone(ranks) ? open_alone(path, force, kind, layout, sink, error)
                           : open_shared(path, force, kind, layout, ranks, sink, error);
}

/* ---- writing --------------------------------------------------------------------------------- */

bool gf_sample_sink_wants_count(const gf_sample_sink *sink) {
    return sink->kind->counted && !sink->head_last && sink->share == NULL;
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
static gf_status check_told(const gf_sample_sink *sink, gf_error *error) {
    if (!gf_sample_sink_wants_count(sink) || sink->is_told)
        return GF_OK;
    return gf_fail(error, GF_FAILED,
                   "%s: an .npy file into a pipe begins with the number of samples",
                   gf_output_name(sink->output));
}

/* Of a shared file all of the chunk is of one bin. */
static gf_status flush(gf_sample_sink *sink, uint32_t bin, gf_error *error) {
    const size_t size = sink->used;
    const uint64_t at = sink->at;

    sink->used = 0;
    if (sink->share != NULL)
        return gf_sample_share_add(sink->share, sink->layout.with_bin ? bin : 0, sink->chunk, size,
                                   error);
    if (!sink->head_last)
        return gf_output_write(sink->output, sink->chunk, size, error);
    sink->at += size;
    return gf_output_write_at(sink->output, sink->chunk, size, at, error);
}

gf_status gf_sample_sink_write(gf_sample_sink *sink, uint32_t bin, const uint64_t *positions,
                               const void *values, uint64_t count, gf_error *error) {
    const gf_sample_layout *layout = &sink->layout;
    const size_t size = gf_type_bytes(layout->type);
    gf_sample sample = {.bin = bin, .value = values};
    gf_status status = check_told(sink, error);

    for (uint64_t i = 0; i < count && status == GF_OK; i++) {
        const uint64_t pixel = positions[i] / layout->channels;
        /* Others may come before all of this rank's. */
        sample.index = sink->count++ + (sink->share != NULL);
        sample.x = pixel % layout->width;
        sample.y = pixel / layout->width;
        sample.channel = (uint32_t)(positions[i] % layout->channels);
        sample.value = (const unsigned char *)values + i * size;
        if (sink->used > CHUNK_BYTES - GF_SAMPLE_ROOM)
            status = flush(sink, bin, error);
        char *end = sink->kind->sample(sink->chunk + sink->used, layout, &sample);
        sink->used = (size_t)(end - sink->chunk);
    }
    if (status == GF_OK && sink->share != NULL)
        status = flush(sink, bin, error);
    return status;
}

/* All of the file stands but for its head and its tail, which are rank 0's. */
static gf_status write_ends(gf_sample_sink *sink, const gf_sample_place *place, gf_error *error) {
    const gf_sample_kind *kind = sink->kind;
    char *end = kind->head(sink->chunk, &sink->layout, place->samples);
    gf_status status =
        gf_output_write_at(sink->output, sink->chunk, (size_t)(end - sink->chunk), 0, error);

    end = kind->tail(sink->chunk, place->samples);
    if (status == GF_OK)
        status = gf_output_write_at(sink->output, sink->chunk, (size_t)(end - sink->chunk),
                                    place->end, error);
    return status;
}

static gf_status finish_shared(gf_sample_sink *sink, gf_error *error) {
    gf_sample_place place = {0};
    char *head_end = sink->kind->head(sink->chunk, &sink->layout, 0);

    place.begin = (uint64_t)(head_end - sink->chunk);
    gf_sample_share_meet(sink->share, sink->ranks, sink->count, sink->kind->glue, &place);
    gf_status status = gf_sample_share_write(sink->share, error);
    if (status == GF_OK && gf_is_first(sink->ranks))
        status = write_ends(sink, &place, error);
    if (status == GF_OK)
        status = gf_output_prepare(sink->output, error);
    return gf_ranks_agree(sink->ranks, status, error);
}

gf_status gf_sample_sink_finish(gf_sample_sink *sink, gf_error *error) {
    if (sink->share != NULL)
        return finish_shared(sink, error);
    gf_status status = check_told(sink, error);
    if (status != GF_OK)
        return status;
    if (sink->is_told && sink->count != sink->told)
        return gf_fail(error, GF_FAILED,
                       "%s: %" PRIu64 " samples were told of and %" PRIu64 " came",
                       gf_output_name(sink->output), sink->told, sink->count);
    status = flush(sink, 0, error);
    /* Samples went to places in the file; what is written in order still begins at its start. */
    char *end = sink->head_last ? sink->kind->head(sink->chunk, &sink->layout, sink->count)
                                : sink->kind->tail(sink->chunk, sink->count);
    if (status == GF_OK)
        status = gf_output_write(sink->output, sink->chunk, (size_t)(end - sink->chunk), error);
    return status == GF_OK ? gf_output_prepare(sink->output, error) : status;
}

gf_output *gf_sample_sink_output(const gf_sample_sink *sink) {
    return sink->output;
}

void gf_sample_sink_close(gf_sample_sink *sink) {
    if (sink == NULL)
        return;
    gf_sample_share_close(sink->share);
    gf_output_close(sink->output);
    free(sink);
}
