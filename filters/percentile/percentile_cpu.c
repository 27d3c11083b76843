/* Fast CPU implementation of order statistics: divides a strip into parts and tiles, and continues
 * rows and columns beyond the edges of the image. A part owns columns of the image, so that parts
 * share no halo rows. It computes them in tiles whose rows fit in the cache. */
#include "percentile/percentile_cpu.h"

#include <string.h>

#include "samples.h"

#define MIN_CUT 256u /* samples: parts of narrower strips are rows */
/* Bytes of the lines of a tile, in L2. */
#define NETWORK_BYTES 262144u
#define EXTREME_BYTES 131072u
#define CHUNK_BYTES 512u /* of a loop, between which rows are prefetched */
#define TILE_MIN 256u    /* samples of a row of a tile */
#define TILE_MAX 20480u
/* Side of a tile of SELECT with the samples around it, unless these would be most of it: 16384
 * samples make groups of 64, which are tested at once. */
#define SELECT_SIDE 128u
/* u8: columns of a tile. 140 KB of sums fit in L2. */
#define SELECT_COLUMNS 512u

/* Scratch memory: lines, then the tile of SELECT. */
typedef struct gf_percentile_layout {
    size_t tile;  /* pixels of a row of a tile, without its halo */
    size_t line;  /* bytes */
    size_t lines; /* rows of the window, or of a tile of SELECT, and those for a method */
} gf_percentile_layout;

/* A row of a tile that is prefetched. */
typedef struct percentile_ahead {
    const unsigned char *next, *end; /* what is left of it */
} percentile_ahead;

/* A part of a strip, and its current tile. */
typedef struct gf_percentile_part {
    const gf_percentile_plan *plan;
    const gf_percentile_loops *loops;
    const gf_rows *in, *out;
    gf_percentile_layout layout;
    size_t key; /* bytes of a key, and of a sample */
    unsigned char *scratch;
    uint64_t x, pixels;        /* tile */
    size_t n;                  /* samples of a row of the tile */
    bool direct;               /* windows of the tile are inside the rows, and keys are samples */
    percentile_ahead ahead[4]; /* rows of the image to prefetch */
    uint32_t expected;         /* number of these rows */
} gf_percentile_part;

static size_t percentile_align(size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

/* Return the maximum width (axis 0) or height of a tile of SELECT, with its halo. */
static uint64_t select_side(const gf_percentile_plan *plan, int axis) {
    const uint64_t halo = 2 * plan->radius[axis];
    const bool bytes = plan->head.in.type == GF_U8;
    if (bytes && axis == 0)
        return SELECT_COLUMNS + halo;
    return bytes ? GF_PERCENTILE_SIDE : gf_min(gf_max(SELECT_SIDE, 3 * halo), GF_PERCENTILE_SIDE);
}

static gf_percentile_layout percentile_layout(const gf_percentile_plan *plan) {
    const gf_format *format = &plan->head.in;
    const size_t channels = format->channels, key = gf_type_bytes(format->type);
    const size_t window = 2 * (size_t)plan->radius[1] + 1, halo = 2 * (size_t)plan->radius[0];
    gf_percentile_layout layout;
    if (plan->form == GF_PERCENTILE_SELECT) {
        layout.lines = select_side(plan, 1);
        layout.tile = select_side(plan, 0) - halo;
    } else {
        layout.lines = window + 3;
        size_t samples = EXTREME_BYTES / (layout.lines * key);
        if (plan->form == GF_PERCENTILE_NETWORK) {
            layout.lines = 2 * window + 1; /* ring, one row, columns */
            samples = NETWORK_BYTES / (layout.lines * key);
        }
        samples = samples < TILE_MIN ? TILE_MIN : samples > TILE_MAX ? TILE_MAX : samples;
        layout.tile = samples / channels;
    }
    layout.line = percentile_align((layout.tile + halo) * channels * key + GF_PERCENTILE_PAD);
    return layout;
}

/* Give a tile of SELECT its memory from `at` on. Return the end. */
static unsigned char *select_place(const gf_percentile_plan *plan, gf_percentile_tile *tile,
                                   unsigned char *at) {
    const size_t width = select_side(plan, 0), all = percentile_align(width * select_side(plan, 1));
    const size_t key = gf_type_bytes(plan->head.in.type), pad = 2 * GF_PERCENTILE_PAD;
    tile->group = at;
    tile->keys = at;
    tile->results = at + all * key;
    at += 2 * all * key;
    tile->columns = (void *)at;
    at += percentile_align(width * sizeof *tile->columns);
    if (key == 1)
        return at;
    tile->items = (void *)at;
    tile->sorted = at + 2 * all * sizeof *tile->items;
    tile->group = (unsigned char *)tile->sorted + all * key;
    tile->x = tile->group + all;
    tile->y = tile->x + all + pad;
    return tile->y + all + pad;
}

size_t gf_percentile_cpu_scratch(const gf_plan *head) {
    static unsigned char start[1];
    const gf_percentile_plan *plan = (const gf_percentile_plan *)head;
    const gf_percentile_layout layout = percentile_layout(plan);
    gf_percentile_tile tile;
    size_t bytes = layout.lines * layout.line;
    if (plan->form == GF_PERCENTILE_SELECT)
        bytes += (size_t)(select_place(plan, &tile, start) - start);
    return bytes;
}

static unsigned char *percentile_line(const gf_percentile_part *part, uint64_t i) {
    return part->scratch + i * part->layout.line;
}

static unsigned char *percentile_out(const gf_percentile_part *part, uint64_t y) {
    return gf_row(part->out, y) + (size_t)part->x * part->plan->head.in.channels * part->key;
}

static void percentile_restore_alpha(const gf_percentile_part *part, uint64_t y) {
    const gf_format *format = &part->plan->head.in;
    gf_restore_alpha(format, gf_row(part->in, y) + (size_t)part->x * format->channels * part->key,
                     percentile_out(part, y), part->pixels);
}

/* Store the keys of columns [x, end) of a row, outside the image. row: NULL outside it, too. */
static unsigned char *percentile_load_edge(const gf_percentile_part *part, const unsigned char *row,
                                           int64_t x, int64_t end, unsigned char *to) {
    const gf_percentile_plan *plan = part->plan;
    const gf_format *format = &plan->head.in;
    const size_t pixel = format->channels * part->key;
    for (; x < end; x++, to += pixel) {
        const int64_t at = row ? gf_edge_index(plan->edge.mode, x, (int64_t)format->width) : -1;
        float values[GF_MAX_CHANNELS];
        for (size_t c = 0; at < 0 && c < format->channels; c++)
            gf_put_sample(format->type, values, c, plan->edge.value);
        part->loops->load(to, at < 0 ? (const void *)values : row + (size_t)at * pixel,
                          format->channels);
    }
    return to;
}

/* Store the keys that a tile reads of row y, which may be outside the image, in a line. */
static void percentile_load(const gf_percentile_part *part, int64_t y, unsigned char *to) {
    const gf_percentile_plan *plan = part->plan;
    const gf_format *format = &plan->head.in;
    const size_t pixel = format->channels * part->key;
    const int64_t begin = (int64_t)part->x - plan->radius[0];
    const int64_t end = (int64_t)(part->x + part->pixels) + plan->radius[0];
    const int64_t from = gf_edge_index(plan->edge.mode, y, (int64_t)format->height);
    if (from < 0) {
        percentile_load_edge(part, NULL, begin, end, to);
        return;
    }
    const int64_t left = begin > 0 ? begin : 0;
    const int64_t right = (int64_t)gf_min((uint64_t)end, format->width);
    const unsigned char *row = gf_row(part->in, (uint64_t)from);
    to = percentile_load_edge(part, row, begin, left, to);
    part->loops->load(to, row + (size_t)left * pixel, (size_t)(right - left) * format->channels);
    percentile_load_edge(part, row, right, end, to + (size_t)(right - left) * pixel);
}

/* Plan to prefetch `count` rows of the image to read, and as many to write. */
static void percentile_expect(gf_percentile_part *part, uint64_t in, uint64_t out, uint32_t count) {
    const size_t bytes = part->n * part->key;
    part->expected = 0;
    for (uint32_t i = 0; i < 2 * count; i++) {
        const gf_rows *rows = i % 2 ? part->out : part->in;
        const uint64_t y = (i % 2 ? out : in) + i / 2;
        if (y < rows->y0 || y - rows->y0 >= rows->rows)
            continue;
        const unsigned char *row =
            gf_row(rows, y) + (size_t)part->x * part->plan->head.in.channels * part->key;
        part->ahead[part->expected++] = (percentile_ahead){row, row + bytes};
    }
}

/* Prefetch up to n cache lines of each expected row. Between the computations of chunks, this costs
 * less than in one go: a core waits for at most some tens of lines. */
static void percentile_prefetch(gf_percentile_part *part, uint32_t n) {
    for (uint32_t i = 0; i < part->expected; i++) {
        const unsigned char *next = part->ahead[i].next, *end = part->ahead[i].end;
        if ((size_t)(end - next) > n * 64)
            end = next + n * 64;
        part->ahead[i].next = end;
#pragma GCC unroll 8
        for (; next < end; next += 64)
            __builtin_prefetch(next);
    }
}

static void percentile_extremes(gf_percentile_part *part, unsigned char *to, const unsigned char *a,
                                const unsigned char *b, size_t n) {
    const bool minimum = part->plan->form == GF_PERCENTILE_MINIMUM;
    const size_t chunk = CHUNK_BYTES / part->key;
    for (size_t i = 0; i < n; i += chunk) {
        const size_t at = i * part->key;
        percentile_prefetch(part, 2);
        part->loops->extremes(minimum, to + at, a + at, b + at, gf_min(chunk, n - i));
    }
}

/* ---- tiles: rows [s, e) of the output -------------------------------------------------------- */

/* Return row y, from the first key of a tile's first window: in the image, if samples are keys and
 * windows are inside its rows. Otherwise return `line`, which has it or is to be loaded. */
static const unsigned char *percentile_source(const gf_percentile_part *part, int64_t y,
                                              const unsigned char *line) {
    const gf_format *format = &part->plan->head.in;
    const int64_t at = gf_edge_index(part->plan->edge.mode, y, (int64_t)format->height);
    if (!part->direct || at < 0)
        return line;
    return gf_row(part->in, (uint64_t)at) +
           (size_t)(part->x - part->plan->radius[0]) * format->channels * part->key;
}

/* Compute medians of rows y and y + 1; `count` 1: only of row y. rows: those of both windows. */
static void network_pair(gf_percentile_part *part, const void *const *rows, uint64_t y,
                         uint32_t count) {
    const gf_percentile_loops *loops = part->loops;
    const uint32_t r = part->plan->radius[0], window = 2 * r + 1;
    const size_t step = part->plan->head.in.channels, chunk = CHUNK_BYTES / part->key;
    const size_t all = part->n + 2 * r * step, stride = part->layout.line / part->key;
    unsigned char *columns = percentile_line(part, window + 2);
    const void *lines[2 * GF_PERCENTILE_MAX_NETWORK] = {NULL}, *more[2] = {rows[0], rows[window]};
    for (uint32_t j = 0; j < window - 1; j++)
        lines[j] = r == 1 ? rows[j + 1] : columns + j * part->layout.line;
    for (size_t i = 0; i < all && r > 1; i += chunk) {
        const void *from[2 * GF_PERCENTILE_MAX_NETWORK] = {NULL};
        for (uint32_t j = 0; j < window - 1; j++)
            from[j] = (const unsigned char *)rows[j + 1] + i * part->key;
        percentile_prefetch(part, CHUNK_BYTES / 128);
        loops->columns(r, columns + i * part->key, stride, from, gf_min(chunk, all - i));
    }
    for (size_t i = 0; i < part->n; i += chunk) {
        unsigned char *second = percentile_line(part, window + 1);
        void *out[2] = {percentile_out(part, y) + i * part->key, second};
        if (count > 1)
            out[1] = percentile_out(part, y + 1) + i * part->key;
        percentile_prefetch(part, r == 1 ? CHUNK_BYTES / 64 : CHUNK_BYTES / 128);
        loops->medians(r, out, lines, more, step, gf_min(chunk, part->n - i));
        for (uint32_t j = 0; j < window - 1; j++)
            lines[j] = (const unsigned char *)lines[j] + CHUNK_BYTES;
        for (int j = 0; j < 2; j++)
            more[j] = (const unsigned char *)more[j] + CHUNK_BYTES;
    }
}

/* Networks: a ring of the rows of two windows, a line for the second row of the last pair, and
 * lines for the columns. */
static void percentile_run_network(gf_percentile_part *part, uint64_t s, uint64_t e) {
    const uint32_t r = part->plan->radius[0], ring = 2 * r + 2;
    const int64_t first = (int64_t)s - r;
    uint64_t loaded = 0;
    if (part->direct && part->plan->edge.mode == GF_EDGE_CONSTANT)
        for (uint32_t i = 0; i < ring; i++)
            percentile_load(part, -1, percentile_line(part, i));
    for (uint64_t y = s; y < e; y += 2) {
        const void *rows[2 * GF_PERCENTILE_MAX_NETWORK + 2] = {NULL};
        const uint32_t count = (uint32_t)gf_min(2, e - y), used = ring - 2 + count;
        for (; loaded < y - s + used && !part->direct; loaded++)
            percentile_load(part, first + (int64_t)loaded,
                            percentile_line(part, loaded % ring)); /* NOLINT: not 0 */
        for (uint32_t i = 0; i < ring; i++) {
            const uint64_t row = y - s + (i < used ? i : 0);
            rows[i] =
                percentile_source(part, first + (int64_t)row, percentile_line(part, row % ring));
        }
        percentile_expect(part, y + r + 2, y + 2, 2);
        network_pair(part, rows, y, count);
        for (uint32_t i = 0; i < count; i++)
            percentile_restore_alpha(part, y + i);
    }
}

/* Store the minima along x of row y in a line: those of windows of 1, 4, 16, ... pixels, and at
 * last of four that cover the window. */
static void percentile_along(gf_percentile_part *part, int64_t y, unsigned char *to) {
    const gf_percentile_plan *plan = part->plan;
    const bool minimum = plan->form == GF_PERCENTILE_MINIMUM;
    const size_t window = 2 * (size_t)plan->radius[0] + 1, channels = plan->head.in.channels;
    const size_t chunk = CHUNK_BYTES / part->key, all = part->n + (window - 1) * channels;
    unsigned char *lines[2] = {percentile_line(part, part->layout.lines - 2),
                               percentile_line(part, part->layout.lines - 1)};
    const unsigned char *from = percentile_source(part, y, lines[0]);
    if (from == lines[0])
        percentile_load(part, y, lines[0]);
    for (size_t size = 1, turn = 1;; size *= 4, turn = 1 - turn) {
        const bool last = 4 * size >= window;
        const size_t next = last ? window : 4 * size, n = all - (next - 1) * channels;
        unsigned char *out = last ? to : lines[turn];
        size_t steps[3];
        for (size_t k = 0; k < 3; k++)
            steps[k] = gf_min((k + 1) * size, next - size) * channels;
        for (size_t i = 0; i < n; i += chunk) {
            percentile_prefetch(part, 2);
            part->loops->extremes_4(minimum, out + i * part->key, from + i * part->key, steps,
                                    gf_min(chunk, n - i));
        }
        if (last)
            return;
        from = out;
    }
}

/* Minima, after van Herk (1992): blocks of as many output rows as a window has. The window of an
 * output is a suffix of the rows of the window of the first output, and a prefix of those after
 * them. A ring holds the suffixes, and in their place the next rows. */
static void percentile_run_extreme(gf_percentile_part *part, uint64_t s, uint64_t e) {
    const gf_percentile_plan *plan = part->plan;
    const uint32_t r = plan->radius[1], window = 2 * r + 1;
    const int64_t top = (int64_t)s - r;
    unsigned char *prefix = percentile_line(part, window);
    for (uint32_t i = 0; i < window; i++)
        percentile_along(part, top + i, percentile_line(part, i));
    for (uint64_t block = s; block < e; block += window) {
        for (uint32_t i = window - 1; i > 0; i--)
            percentile_extremes(part, percentile_line(part, i - 1), percentile_line(part, i - 1),
                                percentile_line(part, i), part->n);
        for (uint32_t i = 0; i < window && block + i < e; i++) {
            unsigned char *suffix = percentile_line(part, i);
            unsigned char *out = percentile_out(part, block + i);
            percentile_expect(part, block + i + r + 2, block + i + 1, 1);
            unsigned char *best = plan->head.in.type == GF_F32 ? suffix : out;
            if (i > 0)
                percentile_extremes(part, best, suffix, prefix, part->n);
            if (i == 0 || best == suffix)
                part->loops->store(out, suffix, part->n);
            percentile_restore_alpha(part, block + i);
            if (block + i + 1 == e)
                break;
            percentile_along(part, (int64_t)(block + i) + r + 1, suffix);
            if (i == 0)
                memcpy(prefix, suffix, part->n * part->key);
            else
                percentile_extremes(part, prefix, prefix, suffix, part->n);
        }
    }
}

static void percentile_run_select(const gf_percentile_part *part, uint64_t s, uint64_t e) {
    const gf_percentile_plan *plan = part->plan;
    const size_t channels = plan->head.in.channels, key = part->key;
    const uint32_t halo[2] = {2 * plan->radius[0], 2 * plan->radius[1]};
    gf_percentile_tile tile = {.radius = {plan->radius[0], plan->radius[1]},
                               .index = plan->index,
                               .width = (uint32_t)part->pixels + halo[0]};
    select_place(plan, &tile, percentile_line(part, part->layout.lines));
    for (uint32_t rows = 0; s < e; s += rows) {
        rows = (uint32_t)gf_min(e - s, select_side(plan, 1) - halo[1]);
        tile.rows = rows + halo[1];
        tile.size = (uint32_t)percentile_align((tile.width * tile.rows + 255) / 256);
        for (uint32_t i = 0; i < tile.rows; i++)
            percentile_load(part, (int64_t)s - plan->radius[1] + i, percentile_line(part, i));
        for (size_t c = 0; c < gf_measured_channels(&plan->head.in); c++) {
            unsigned char *keys = tile.keys;
            const unsigned char *results = tile.results;
            for (uint32_t i = 0; i < tile.rows; i++)
                part->loops->pick(keys + i * tile.width * key, percentile_line(part, i) + c * key,
                                  channels, tile.width);
            part->loops->select(&tile);
            for (uint32_t i = 0; i < rows; i++)
                part->loops->place(percentile_out(part, s + i) + c * key,
                                   results + i * part->pixels * key, channels, part->pixels);
        }
        for (uint32_t i = 0; i < rows; i++)
            percentile_restore_alpha(part, s + i);
    }
}

void gf_percentile_compute(const gf_percentile_loops *loops, const gf_plan *head,
                           const gf_strip *strip, uint32_t index, uint32_t parts, void *scratch) {
    const gf_percentile_plan *plan = (const gf_percentile_plan *)head;
    const gf_format *format = &head->in;
    gf_percentile_part part = {.plan = plan,
                               .loops = &loops[format->type],
                               .in = &strip->in[0],
                               .out = &strip->out,
                               .layout = percentile_layout(plan),
                               .key = gf_type_bytes(format->type),
                               .scratch = scratch};
    uint64_t s = strip->out.y0, e = s + strip->out.rows, end = format->width, tile;
    if (gf_row_samples(format) < (uint64_t)parts * MIN_CUT) {
        e = s + gf_share(strip->out.rows, index + 1, parts);
        s += gf_share(strip->out.rows, index, parts);
    } else {
        end = gf_share(format->width, index + 1, parts);
        part.x = gf_share(format->width, index, parts);
    }
    tile = part.layout.tile;
    const uint64_t r = plan->radius[0], width = format->width;
    const bool cuts = plan->form != GF_PERCENTILE_SELECT && format->type != GF_F32 && width > 4 * r;
    for (; s < e && part.x < end; part.x += part.pixels) {
        /* Tiles at the edges of the image are as wide as the radius. */
        const uint64_t stop = !cuts ? end : part.x < r ? r : part.x < width - r ? width - r : end;
        part.pixels = gf_min(tile, gf_min(stop, end) - part.x);
        part.n = (size_t)part.pixels * format->channels;
        part.direct = cuts && part.x >= r && part.x + part.pixels <= width - r;
        if (plan->form == GF_PERCENTILE_NETWORK)
            percentile_run_network(&part, s, e);
        else if (plan->form == GF_PERCENTILE_SELECT)
            percentile_run_select(&part, s, e);
        else
            percentile_run_extreme(&part, s, e);
    }
}
