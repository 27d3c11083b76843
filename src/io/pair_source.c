/* Two images read side by side, as one source whose rows hold a row of each. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "error.h"
#include "io/io.h"

typedef struct pair_source {
    gf_source base;
    gf_source *halves[2];
    double seconds[2]; /* in their reads */
} pair_source;

/* The first image's row begins a stride, the second's its middle. */
static gf_status pair_read(gf_source *base, void *dst, size_t stride, uint64_t rows,
                           gf_error *error) {
    pair_source *pair = (pair_source *)base;
    gf_status status = GF_OK;

    for (size_t i = 0; i < 2 && status == GF_OK; i++) {
        const double began = gf_now();
        status = pair->halves[i]->ops->read(
            pair->halves[i], (unsigned char *)dst + i * (stride / 2), stride, rows, error);
        pair->seconds[i] += gf_now() - began;
    }
    return status;
}

static gf_status pair_finish(gf_source *base, gf_error *error) {
    pair_source *pair = (pair_source *)base;
    gf_status status = GF_OK;

    for (size_t i = 0; i < 2 && status == GF_OK; i++)
        status = pair->halves[i]->ops->finish(pair->halves[i], error);
    for (size_t i = 0; i < 2; i++) {
        base->busy_seconds +=
            pair->halves[i]->threads ? pair->halves[i]->busy_seconds : pair->seconds[i];
        base->bytes += pair->halves[i]->bytes;
    }
    return status;
}

static void pair_close(gf_source *base) {
    pair_source *pair = (pair_source *)base;

    for (size_t i = 0; i < 2; i++)
        pair->halves[i]->ops->close(pair->halves[i]);
    gf_metadata_clear(&base->metadata);
    free(pair);
}

static void pair_seek(gf_source *base, const gf_window *window) {
    pair_source *pair = (pair_source *)base;

    for (size_t i = 0; i < 2; i++)
        pair->halves[i]->ops->seek(pair->halves[i], window);
}

static void describe(const gf_format *format, char *text, size_t size) {
    static const char *const names[] = {"", "grey", "grey+alpha", "RGB", "RGBA"};

    (void)snprintf(text, size, "%" PRIu64 "x%" PRIu64 " %s %s", format->width, format->height,
                   names[format->channels], gf_type_name(format->type));
}

gf_status gf_pair_source(gf_source *a, gf_source *b, const char *a_name, const char *b_name,
                         gf_source **source, gf_error *error) {
    static const gf_source_ops in_order = {pair_read, pair_finish, pair_close, NULL};
    static const gf_source_ops in_any_order = {pair_read, pair_finish, pair_close, pair_seek};

    *source = NULL;
    if (!gf_format_equal(&a->format, &b->format)) {
        char is[96], want[96];
        describe(&b->format, is, sizeof is);
        describe(&a->format, want, sizeof want);
        return gf_fail(error, GF_FAILED, "%s: is %s, and %s is %s; give two images of one kind",
                       b_name, is, a_name, want);
    }
    pair_source *pair = calloc(1, sizeof *pair);
    if (pair == NULL)
        return gf_fail_memory(error, a_name, sizeof *pair, "a source");
    pair->base.ops = a->ops->seek != NULL && b->ops->seek != NULL ? &in_any_order : &in_order;
    pair->base.format = a->format;
    pair->base.cost = a->cost + b->cost;
    pair->base.threads = a->threads < b->threads ? a->threads : b->threads;
    gf_metadata_init(&pair->base.metadata);
    pair->halves[0] = a;
    pair->halves[1] = b;
    *source = &pair->base;
    return GF_OK;
}
