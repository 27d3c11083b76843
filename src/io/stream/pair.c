/* Two sources of one format as one, for filters of two images. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "io/stream/convert.h"

typedef struct pair_source {
    gf_source base;
    gf_source_ops ops;
    gf_source *halves[2];
    double seconds[2]; /* spent in read */
} pair_source;

/* The row of the first image starts at the stride, that of the second at its middle. */
static gf_status pair_read(gf_source *base, void *dst, size_t stride, uint64_t rows,
                           gf_error *error) {
    pair_source *pair = (pair_source *)base;
    gf_status status = GF_OK;
    for (size_t i = 0; i < 2 && !status; i++) {
        const double start = gf_now();
        status = pair->halves[i]->ops->read(
            pair->halves[i], (unsigned char *)dst + i * (stride / 2), stride, rows, error);
        pair->seconds[i] += gf_now() - start;
    }
    return status;
}

/* Add remarks about one image, with the position of that image. */
static void pair_add_remarks(gf_remarks *to, const char *which, const gf_remarks *from) {
    const size_t used = strlen(to->damage);
    if (from->damage[0])
        (void)snprintf(to->damage + used, sizeof to->damage - used, "%s%s image: %s",
                       used ? "; " : "", which, from->damage);
    for (const char *line = from->notes; *line; line += *line == '\n') {
        const int length = (int)strcspn(line, "\n");
        gf_note(to, "%s image: %.*s", which, length, line);
        line += length;
    }
}

static gf_status pair_finish(gf_source *base, gf_error *error) {
    static const char *const which[] = {"first", "second"};
    pair_source *pair = (pair_source *)base;
    gf_status status = GF_OK;
    for (size_t i = 0; i < 2 && !status; i++)
        status = pair->halves[i]->ops->finish(pair->halves[i], error);
    for (size_t i = 0; i < 2; i++) {
        base->busy_seconds += gf_source_busy(pair->halves[i], pair->seconds[i]).seconds;
        base->bytes += pair->halves[i]->bytes;
        pair_add_remarks(&base->metadata.remarks, which[i], &pair->halves[i]->metadata.remarks);
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

static void pair_seek(gf_source *base, uint64_t y) {
    pair_source *pair = (pair_source *)base;
    for (size_t i = 0; i < 2; i++)
        pair->halves[i]->ops->seek(pair->halves[i], y);
}

static void pair_shrink(gf_source *base) {
    pair_source *pair = (pair_source *)base;
    for (size_t i = 0; i < 2; i++)
        if (pair->halves[i]->ops->shrink)
            pair->halves[i]->ops->shrink(pair->halves[i]);
    base->threads = 0;
    base->memory = 0;
}

gf_status gf_pair_source(gf_source *a, gf_source *b, const char *a_name, const char *b_name,
                         gf_source **source, gf_error *error) {
    *source = NULL;
    gf_format format = a->format; /* alpha is declared by either image */
    format.alpha = b->format.alpha;
    if (!gf_format_equal(&format, &b->format)) {
        char is[96], want[96];
        gf_format_text(&b->format, is, sizeof is);
        gf_format_text(&a->format, want, sizeof want);
        return gf_fail(error, GF_FAILED,
                       "%s: is %s, but %s is %s; both must have the same size, channels and type",
                       b_name, is, a_name, want);
    }
    pair_source *pair = gf_source_new(sizeof *pair, NULL, a_name, error);
    if (!pair)
        return GF_FAILED;
    pair->ops = (gf_source_ops){.read = pair_read,
                                .finish = pair_finish,
                                .close = pair_close,
                                .seek = a->ops->seek && b->ops->seek ? pair_seek : NULL,
                                .shrink = pair_shrink};
    pair->base.ops = &pair->ops;
    format.alpha = a->format.alpha || b->format.alpha;
    pair->base.format = format;
    pair->base.cost = a->cost + b->cost;
    pair->base.memory = a->memory + b->memory;
    pair->base.threads = a->threads < b->threads ? a->threads : b->threads;
    pair->base.held = a->held || b->held;
    pair->base.pages = a->pages > b->pages ? a->pages : b->pages;
    pair->halves[0] = a;
    pair->halves[1] = b;
    *source = &pair->base;
    return GF_OK;
}
