/* Fast CPU implementation of convolve. A tile of columns keeps the rows of its window in the cache,
 * as binary32, and continued past the edges. Each row is converted once per tile. convolve.h proves
 * that binary32 and binary64 are exact for integers. */
#include "convolve/convolve.h"
#include "core/vec.h"
#include "samples.h"

#define BLOCK (4 * VEC_FLOATS) /* samples per iteration */
_Static_assert(BLOCK <= GF_CONVOLVE_MARGIN, "a row has space for one more block");

typedef double vec_f64 __attribute__((vector_size(4 * VEC_FLOATS)));
typedef double vec_f64_unaligned
    __attribute__((vector_size(4 * VEC_FLOATS), aligned(8), may_alias));
typedef float vec_half __attribute__((vector_size(2 * VEC_FLOATS), aligned(4), may_alias));

typedef struct convolve_tile {
    const gf_convolve_plan *plan;
    const gf_rows *in;
    uint64_t x;    /* first pixel */
    size_t pixels; /* without those of the window on both sides */
    /* Ring of the rows of a window, as float, or for DOUBLE as double; after it, one row as float.
     */
    unsigned char *rows;
    size_t row_bytes;
    const void *at[GF_CONVOLVE_TAPS]; /* of each tap: its sample for the first pixel */
    float weights[GF_CONVOLVE_TAPS];  /* of REAL and SINGLE */
    /* SINGLE: scale = odd * 2^e = odd / factor; inverse = fl(1 / odd), with the sign in factor. */
    float odd, inverse, factor;
} convolve_tile;

/* Store pixels [x, end) of a row, outside the image. row: NULL outside the image, too. */
static void convolve_load_edge(const gf_convolve_plan *plan, const unsigned char *row, int64_t x,
                               int64_t end, float *to) {
    const gf_format *format = &plan->head.in;
    for (; x < end; x++) {
        const int64_t at = row ? gf_edge_index(plan->edge.mode, x, (int64_t)format->width) : -1;
        const size_t sample = (size_t)at * format->channels;
        for (size_t c = 0; c < format->channels; c++)
            *to++ = at < 0 ? plan->edge.value : gf_get_sample(format->type, row, sample + c);
    }
}

/* Store the pixels that a tile reads of row y, which may be outside the image. */
static void convolve_load_row(const convolve_tile *tile, int64_t y, float *to) {
    const gf_convolve_plan *plan = tile->plan;
    const gf_format *format = &plan->head.in;
    const size_t channels = format->channels;
    const int64_t begin = (int64_t)tile->x - plan->width / 2,
                  end = begin + (int64_t)tile->pixels + plan->width - 1,
                  left = begin > 0 ? begin : 0,
                  right = (int64_t)gf_min((uint64_t)end, format->width),
                  from = gf_edge_index(plan->edge.mode, y, (int64_t)format->height);
    float *const last = to + (size_t)(right - begin) * channels;
    if (from < 0) {
        convolve_load_edge(plan, NULL, begin, end, to);
    } else {
        const unsigned char *row = gf_row(tile->in, (uint64_t)from);
        convolve_load_edge(plan, row, begin, left, to);
        GF_BY_TYPE(format->type, vec_convert, to + (size_t)(left - begin) * channels,
                   row + (size_t)left * channels * gf_type_bytes(format->type),
                   (size_t)(right - left) * channels, 1);
        convolve_load_edge(plan, row, right, end, last);
    }
    memset(last + (size_t)(end - right) * channels, 0, BLOCK * sizeof *to);
}

/* Compute the sums of a block in binary32. */
GF_INLINE void convolve_sum(const gf_convolve_form form, const convolve_tile *tile, size_t i,
                            vec s[4]) {
    const gf_convolve_plan *plan = tile->plan;
    /* fma(k, v, -0) is fl(k * v), also if that is a zero. */
    const float start = form == GF_CONVOLVE_SINGLE ? (float)(plan->offset * plan->scale)
                        : plan->count              ? -0.0f
                                                   : 0;
    for (int b = 0; b < 4; b++)
        s[b] = vec_set(start);
    for (uint32_t t = 0; t < plan->count; t++) {
        const vec k = vec_set(tile->weights[t]);
        const float *v = (const float *)tile->at[t] + i;
        for (int b = 0; b < 4; b++, v += VEC_FLOATS)
            s[b] = form == GF_CONVOLVE_REAL ? vec_fma(k, vec_load(v), s[b])
                                            : vec_multiply_add(k, vec_load(v), s[b]);
    }
}

/* Compute the quotients of a block of exact sums in binary64, rounded to integers. */
GF_INLINE void convolve_double(const convolve_tile *tile, size_t i, vec s[4]) {
    const gf_convolve_plan *plan = tile->plan;
    const vec_f64 zero = {0}, start = zero + plan->offset * plan->scale, scale = zero + plan->scale,
                  round = zero + 0x1.8p52; /* leaves no bits below 1 */
    float results[BLOCK];
    for (size_t b = 0; b < BLOCK; b += 2 * VEC_FLOATS) {
        vec_f64 sum[4] = {start, start, start, start};
        for (uint32_t t = 0; t < plan->count; t++) {
            const vec_f64 k = zero + plan->taps[t].weight;
            const vec_f64_unaligned *v = (const void *)((const double *)tile->at[t] + i + b);
            for (int h = 0; h < 4; h++)
                sum[h] += k * (vec_f64)v[h];
        }
        for (size_t h = 0; h < 4; h++)
            *(vec_half *)(results + b + h * VEC_FLOATS / 2) =
                __builtin_convertvector(sum[h] / scale + round - round, vec_half);
    }
    for (int b = 0; b < 4; b++)
        s[b] = vec_load(results + b * VEC_FLOATS);
}

GF_INLINE void convolve_row(const gf_type type, const gf_convolve_form form,
                            const convolve_tile *tile, unsigned char *out) {
    const gf_convolve_plan *plan = tile->plan;
    const size_t n = tile->pixels * plan->head.in.channels, bytes = gf_type_bytes(type);
    float rest[BLOCK] = {0}; /* the last block of the row */
    for (size_t i = 0; i < n; i += BLOCK) {
        vec s[4];
        if (form == GF_CONVOLVE_DOUBLE)
            convolve_double(tile, i, s);
        else
            convolve_sum(form, tile, i, s);
        for (int b = 0; b < 4; b++) {
            if (form == GF_CONVOLVE_SINGLE)
                s[b] =
                    (tile->odd > 1 ? vec_over_odd(s[b], vec_set(tile->odd), vec_set(tile->inverse))
                                   : s[b]) *
                    vec_set(tile->factor);
            if (form == GF_CONVOLVE_REAL && plan->scale != 1)
                s[b] /= vec_set((float)plan->scale);
            if (form == GF_CONVOLVE_REAL && plan->offset != 0)
                s[b] += vec_set((float)plan->offset);
        }
        const bool whole = n - i >= BLOCK;
        void *to = whole ? (void *)(out + i * bytes) : rest;
        for (int b = 0; b < 4; b++)
            vec_store_samples(type, to, (size_t)b * VEC_FLOATS, s[b]);
        if (!whole)
            memcpy(out + i * bytes, rest, (n - i) * bytes);
    }
}

static void convolve_row_by_form(const convolve_tile *tile, unsigned char *out) {
    const gf_type type = tile->plan->head.in.type;
    const gf_convolve_form form = tile->plan->form;
    if (form == GF_CONVOLVE_REAL)
        GF_BY_TYPE(type, convolve_row, GF_CONVOLVE_REAL, tile, out);
    else if (type == GF_U8 && form == GF_CONVOLVE_SINGLE)
        convolve_row(GF_U8, GF_CONVOLVE_SINGLE, tile, out);
    else if (type == GF_U8)
        convolve_row(GF_U8, GF_CONVOLVE_DOUBLE, tile, out);
    else if (form == GF_CONVOLVE_SINGLE)
        convolve_row(GF_U16, GF_CONVOLVE_SINGLE, tile, out);
    else
        convolve_row(GF_U16, GF_CONVOLVE_DOUBLE, tile, out);
}

static void convolve_put_row(const convolve_tile *tile, int64_t y, size_t slot) {
    unsigned char *row = tile->rows + slot * tile->row_bytes;
    if (tile->plan->form != GF_CONVOLVE_DOUBLE) {
        convolve_load_row(tile, y, (float *)(void *)row);
        return;
    }
    float *single = (void *)(tile->rows + tile->plan->height * tile->row_bytes);
    convolve_load_row(tile, y, single);
    for (size_t i = 0; i < GF_CONVOLVE_ROW; i++)
        ((double *)(void *)row)[i] = (double)single[i];
}

/* Compute rows [y, end) of a tile. Row r of the image, which may be outside it, is in the ring at
 * (r - first) modulo the height of the kernel. */
static void convolve_rows(convolve_tile *tile, const gf_rows *out, uint64_t y, uint64_t end) {
    const gf_convolve_plan *plan = tile->plan;
    const gf_format *format = &plan->head.in;
    const size_t pixel = format->channels * gf_type_bytes(format->type);
    const int64_t first = (int64_t)y - plan->height / 2;
    const uint32_t height = plan->height;
    for (int64_t next = first; y < end; y++) {
        for (; next < (int64_t)y - height / 2 + height; next++)
            convolve_put_row(tile, next, (uint64_t)(next - first) % height);
        for (uint32_t t = 0; t < plan->count; t++) {
            const uint64_t row = (uint64_t)((int64_t)y + plan->taps[t].y - first) % height;
            const size_t column = (size_t)(plan->taps[t].x + (int64_t)plan->width / 2);
            tile->at[t] = tile->rows + row * tile->row_bytes +
                          column * format->channels * tile->row_bytes / GF_CONVOLVE_ROW;
        }
        unsigned char *to = gf_row(out, y) + tile->x * pixel;
        convolve_row_by_form(tile, to);
        gf_restore_alpha(format, gf_row(tile->in, y) + tile->x * pixel, to, tile->pixels);
    }
}

void GF_SIMD_NAME(gf_convolve_cpu)(const gf_plan *head, const gf_strip *strip, uint32_t part,
                                   uint32_t parts, void *scratch) {
    const gf_convolve_plan *plan = (const gf_convolve_plan *)head;
    const uint64_t width = head->in.width, step = GF_CONVOLVE_TILE / head->in.channels,
                   y0 = strip->out.y0, y = y0 + gf_share(strip->out.rows, part, parts),
                   end = y0 + gf_share(strip->out.rows, part + 1, parts);
    if (plan->form == GF_CONVOLVE_WIDE) {
        gf_strip piece = *strip;
        piece.out = gf_rows_part(&strip->out, y, end - y);
        (void)gf_convolve_golden(head, &piece, NULL); /* cannot fail */
        return;
    }
    convolve_tile tile = {.plan = plan,
                          .in = &strip->in[0],
                          .rows = scratch,
                          .row_bytes = gf_convolve_row_bytes(plan)};
    for (uint32_t t = 0; t < plan->count; t++)
        tile.weights[t] = (float)plan->taps[t].weight;
    if (plan->form == GF_CONVOLVE_SINGLE) {
        tile.odd = fabsf((float)plan->scale);
        tile.factor = plan->scale < 0 ? -1 : 1;
        while (fmodf(tile.odd, 2) == 0) {
            tile.odd /= 2;
            tile.factor /= 2;
        }
        tile.inverse = 1 / tile.odd;
    }
    for (; tile.x < width; tile.x += step) {
        tile.pixels = (size_t)gf_min(step, width - tile.x);
        convolve_rows(&tile, &strip->out, y, end);
    }
}
