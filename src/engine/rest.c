#include "engine/rest.h"

#include <stdlib.h>
#include <string.h>

#include "engine/geometry.h"
#include "io/metadata.h"

typedef struct rest_source {
    gf_source base;
    gf_source *further;
    bool ended; /* it was finished before */
    uint32_t inputs;
    gf_rows held;
    uint64_t given; /* of them */
} rest_source;

static gf_status rest_read(gf_source *base, void *dst, size_t stride, uint64_t rows,
                           gf_error *error) {
    rest_source *rest = (rest_source *)base;
    unsigned char *out = dst;
    const size_t row_bytes = gf_row_bytes(&base->format);
    for (; rows > 0 && rest->given < rest->held.rows; rows--, rest->given++, out += stride)
        for (uint32_t i = 0; i < rest->inputs; i++)
            memcpy(out + i * (stride / rest->inputs),
                   gf_row(&rest->held, rest->held.y0 + rest->given) +
                       i * (rest->held.stride / rest->inputs),
                   row_bytes);
    return rows > 0 ? rest->further->ops->read(rest->further, out, stride, rows, error) : GF_OK;
}

static gf_status rest_finish(gf_source *base, gf_error *error) {
    rest_source *rest = (rest_source *)base;
    const gf_status status = rest->ended ? GF_OK : rest->further->ops->finish(rest->further, error);
    base->threads = rest->further->threads;
    base->busy_seconds = rest->further->busy_seconds;
    return status;
}

static void rest_close(gf_source *base) {
    rest_source *rest = (rest_source *)base;
    free(rest->held.data);
    free(rest);
}

/* The rows of band k that are not held yet. */
static void copy_band(const gf_left *left, uint64_t k, gf_rows *held) {
    const gf_slot *slot = &left->slots[k % left->geometry->slots];
    gf_slot band = {.ring = slot->ring, .out_buffer = slot->out_buffer};
    gf_place_band(left->geometry, k, &band);
    const uint64_t end = band.in.y0 + band.in.rows;
    for (uint64_t y = held->y0 + held->rows; y < end; y++, held->rows++)
        memcpy(gf_row(held, y), gf_row(&band.in, y), held->stride);
}

/* All rows from the first that the first of these bands holds to the last of the last one. */
static gf_rows rows_of(const gf_left *left) {
    gf_slot first = {.ring = NULL}, last = first;
    gf_cut_band(left->geometry, left->released, &first);
    gf_cut_band(left->geometry, left->filled - 1, &last);
    return (gf_rows){.stride = left->geometry->in_stride,
                     .y0 = first.in.y0,
                     .rows = last.in.y0 + last.in.rows - first.in.y0};
}

gf_source *gf_rest_source(const gf_left *left, uint64_t *bytes) {
    static const gf_source_ops ops = {rest_read, rest_finish, rest_close, NULL};
    *bytes = 0;
    if (left->filled <= left->released)
        return NULL;
    gf_rows held = rows_of(left);
    const size_t size = (size_t)held.rows * held.stride;
    rest_source *rest = calloc(1, sizeof *rest);
    held.data = malloc(size); /* NOLINT: a band has at least one row */
    if (!rest || !held.data) {
        free(held.data);
        free(rest);
        return NULL;
    }
    held.rows = 0;
    for (uint64_t k = left->released; k < left->filled; k++)
        copy_band(left, k, &held);
    /* The source may be an image of which the plan takes a strip. */
    *rest = (rest_source){.base = {.ops = &ops, .format = left->geometry->plan->in},
                          .further = left->source,
                          .ended = left->ended,
                          .inputs = left->geometry->plan->inputs,
                          .held = held};
    gf_metadata_init(&rest->base.metadata);
    *bytes = size;
    return &rest->base;
}
