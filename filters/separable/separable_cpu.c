/* Fast CPU implementation of the separable engine: divides a strip into parts and tiles, and
 * continues rows and columns beyond the edges of the image.
 *
 * A part owns columns of the image, so that parts share no halo rows. It computes them in tiles
 * whose rows fit in the cache: a ring holds the x results of the rows of one window, and every row
 * of the strip has one x pass per tile. Box adds up columns first, in one row of sums. */
#include "separable/separable_cpu.h"

#include <assert.h>
#include <string.h>

#include "samples.h"

/* Bytes of the ring of a tile, unless that is less than TILE_MIN samples. Half as many bytes take
 * 1.2 times as long at sigma 5: the halos of a row have more samples than its tile. */
#define RING_BYTES 524288u
#define TILE_MIN 256u
#define TILE_MAX 8192u
/* Box has no ring. Tiles of 8192 samples take 1.15 times as long. */
#define TILE_SUMS 24576u
#define MIN_CUT 256u /* samples: parts of narrower strips are rows */

_Static_assert(GF_SEPARABLE_PAD % 16 == 0, "rows of the scratch memory start at a cache line");

/* Sizes of the scratch memory: LINES lines, then the rows of the ring. */
typedef struct gf_separable_layout {
    size_t tile; /* pixels */
    size_t line; /* bytes of a line: a row with halos */
    size_t row;  /* bytes of a row of the ring */
    size_t rows; /* of the ring, and one for rows outside the image */
} gf_separable_layout;

enum { LINES = 3 };

/* A part of a strip, and its current tile. */
typedef struct gf_separable_part {
    const gf_separable_plan *plan;
    const gf_separable_simd *simd;
    const gf_rows *in, *out;
    gf_separable_layout layout;
    uint32_t radius[2];
    gf_separable_word word;
    gf_separable_mean mean;
    gf_separable_pairs pairs;
    size_t value, sample;        /* bytes of a value and of a sample */
    unsigned char *lines, *ring; /* scratch memory */
    uint64_t outside;            /* value beyond a constant edge, in the first `value` bytes */
    uint64_t x, pixels;          /* tile */
    uint64_t left, right;        /* columns inside the image that it needs */
    size_t n;                    /* samples of a row of the tile */
} gf_separable_part;

/* ---- tables of a plan ------------------------------------------------------------------------ */

/* Find a multiplication that divides all sums by the count: (s + half) * multiplier >> k is exact
 * if the error of the multiplier times the largest s + half is below 2^k. */
static bool separable_mean_init(gf_separable_mean *mean, uint64_t count, uint64_t max) {
    *mean = (gf_separable_mean){.half = (uint32_t)(count / 2), .inverse = 1 / (double)count};
    for (uint32_t k = 16; k < 32; k++) {
        const uint64_t power = UINT64_C(1) << k, multiplier = (power + count - 1) / count;
        mean->multiplier = (uint32_t)multiplier;
        mean->shift = k - 16;
        if (multiplier < 65536 && (multiplier * count - power) * (max * count + count / 2) < power)
            return true;
    }
    return false;
}

/* u16 sums are used up to this many samples along x, because they are added one by one. */
#define DIRECT_RADIUS 7

static gf_separable_word separable_word(const gf_separable_plan *plan, gf_separable_mean *mean) {
    const uint64_t max = plan->head.in.type == GF_U8 ? 255 : 65535, count = plan->count;
    const bool divides = separable_mean_init(mean, count, max);
    if (max == 255 && max * count + count / 2 < 65536 && divides &&
        plan->radius[0] <= DIRECT_RADIUS)
        return GF_SEPARABLE_W16;
    return max * count <= INT32_MAX ? GF_SEPARABLE_W32 : GF_SEPARABLE_W64;
}

static uint32_t separable_pair(uint32_t first, uint32_t second) {
    return first | second << 16;
}

/* Return the tap of row `row` of those from y - r on; 0 after the last one. */
static uint32_t separable_tap(const uint32_t *t, uint32_t r, int64_t row) {
    const uint64_t distance = (uint64_t)(row < r ? r - row : row - r);
    return distance <= r ? t[distance] : 0;
}

/* Make the pairs of taps. t[0] <= 2^16 is split into tap 0 and up to two taps of INT16_MAX. */
static void separable_pairs_init(gf_separable_pairs *pairs, const gf_separable_plan *plan) {
    const uint32_t *taps = plan->head.constants, max = INT16_MAX;
    *pairs = (gf_separable_pairs){.radius = {plan->radius[0], plan->radius[1]}};
    uint32_t *r = pairs->radius, t[GF_SEPARABLE_NARROW + 2] = {0};
    while (r[0] > 0 && taps[r[0]] == 0)
        r[0]--;
    memcpy(t, taps, (r[0] + 1) * sizeof *t);
    t[0] /= 2;
    if (r[0] == 0)
        t[0] = t[1] = t[0] / 2;
    for (uint32_t k = 0; k <= r[0]; k += 2)
        pairs->x[k / 2] = separable_pair(t[k], t[k + 1]);
    taps += plan->radius[0] + 1;
    while (r[1] > 0 && taps[r[1]] == 0)
        r[1]--;
    memcpy(t, taps, (r[1] + 1) * sizeof *t);
    const uint32_t rest = t[0] > max ? t[0] - max : 0, again = rest < max ? rest : max;
    t[0] -= rest;
    pairs->y_pairs = r[1] + (rest ? 3 : 1);
    for (int64_t j = 0; j <= r[1]; j++)
        for (int odd = 0; odd < 2; odd++)
            pairs->y[odd][j] = separable_pair(separable_tap(t, r[1], 2 * j - odd),
                                              separable_tap(t, r[1], 2 * j + 1 - odd));
    /* The center is row r of the first output, and row r + 1 of the second. */
    for (uint32_t odd = 0; odd < 2; odd++) {
        const uint32_t row = r[1] + odd, j = r[1] + 1 + odd;
        pairs->y[odd][j] = again << row % 2 * 16;
        if (r[1] == 0) /* both additional pairs are that of the center */
            pairs->y[odd][2 - odd] = (rest - again) << row % 2 * 16;
    }
}

static size_t separable_align(size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

static size_t separable_value_bytes(const gf_separable_plan *plan) {
    gf_separable_mean mean;
    if (plan->form == GF_SEPARABLE_SUMS)
        return (size_t)2 << separable_word(plan, &mean);
    return plan->form == GF_SEPARABLE_FIXED    ? sizeof(uint16_t)
           : plan->form == GF_SEPARABLE_SINGLE ? sizeof(float)
                                               : sizeof(double);
}

static gf_separable_layout separable_layout(const gf_separable_plan *plan) {
    const size_t channels = plan->head.in.channels, value = separable_value_bytes(plan);
    const size_t rows = 2 * (size_t)plan->radius[1] + GF_SEPARABLE_GROUP + 1;
    gf_separable_layout layout = {.rows = plan->form == GF_SEPARABLE_SUMS ? 0 : rows};
    size_t samples = RING_BYTES / (rows * value);
    samples = samples < TILE_MIN ? TILE_MIN : samples > TILE_MAX ? TILE_MAX : samples;
    if (plan->form == GF_SEPARABLE_SUMS)
        samples = TILE_SUMS;
    layout.tile = samples / channels;
    const size_t halos = 2 * plan->radius[0] * channels + channels;
    layout.line =
        separable_align((samples + halos + GF_SEPARABLE_PAD) * value + GF_SEPARABLE_PAD * 8);
    layout.row = separable_align((samples + GF_SEPARABLE_PAD) * value);
    return layout;
}

size_t gf_separable_cpu_scratch(const gf_plan *head) {
    const gf_separable_layout layout = separable_layout((const gf_separable_plan *)head);
    return LINES * layout.line + layout.rows * layout.row;
}

/* ---- rows and edges -------------------------------------------------------------------------- */

static size_t separable_pixel(const gf_separable_part *part) {
    return part->plan->head.in.channels * part->value;
}

/* Return line i: values of columns x - radius to x + pixels + radius of the tile. */
static unsigned char *separable_line(const gf_separable_part *part, int i) {
    return part->lines + (size_t)i * part->layout.line;
}

/* Return the value of the first column inside the image. */
static unsigned char *separable_inside(const gf_separable_part *part, int i) {
    const size_t skipped = (size_t)(part->left + part->radius[0] - part->x);
    return separable_line(part, i) + skipped * separable_pixel(part);
}

/* Set columns [first, end) of a line, outside the image. They continue columns that the line has:
 * a column at most r from an output continues one that is at most r from it. */
static void separable_fill(const gf_separable_part *part, int i, int64_t first, int64_t end) {
    const size_t pixel = separable_pixel(part);
    const int64_t begin = (int64_t)part->x - part->radius[0];
    unsigned char *line = separable_line(part, i);
    for (int64_t x = first; x < end; x++) {
        unsigned char *to = line + (size_t)(x - begin) * pixel;
        const int64_t at =
            gf_edge_index(part->plan->edge.mode, x, (int64_t)part->plan->head.in.width);
        if (at >= 0)
            memcpy(to, line + (size_t)(at - begin) * pixel, pixel);
        for (size_t c = 0; at < 0 && c < pixel; c += part->value)
            memcpy(to + c, &part->outside, part->value);
    }
}

static void separable_fill_edges(const gf_separable_part *part, int i) {
    const int64_t r = part->radius[0];
    separable_fill(part, i, (int64_t)part->x - r, (int64_t)part->left);
    separable_fill(part, i, (int64_t)part->right, (int64_t)(part->x + part->pixels) + r);
}

/* Return the row of the image whose values row y has; -1: the constant. */
static int64_t separable_row_index(const gf_separable_part *part, int64_t y) {
    return gf_edge_index(part->plan->edge.mode, y, (int64_t)part->plan->head.in.height);
}

static const unsigned char *separable_samples(const gf_separable_part *part, const gf_rows *rows,
                                              uint64_t y, uint64_t x) {
    return gf_row(rows, y) + (size_t)x * part->plan->head.in.channels * part->sample;
}

/* Convert columns [first, end) of row `at` of the image to values in a line. */
static void separable_convert(const gf_separable_part *part, int i, uint64_t at, uint64_t first,
                              uint64_t end) {
    const unsigned char *from = separable_samples(part, part->in, at, first);
    const size_t n = (size_t)(end - first) * part->plan->head.in.channels;
    unsigned char *to = separable_inside(part, i) + (first - part->left) * separable_pixel(part);
    if (part->plan->form == GF_SEPARABLE_FIXED)
        part->simd->widen((uint16_t *)(void *)to, from, n);
    else
        part->simd->real[part->plan->form == GF_SEPARABLE_DOUBLE].load(part->plan->head.in.type, to,
                                                                       from, n);
}

/* Load row y, which may be outside the image, into a line. */
static void separable_load(const gf_separable_part *part, int i, int64_t y) {
    const int64_t at = separable_row_index(part, y);
    if (at < 0) { /* all columns continue the constant */
        const size_t pixels = (size_t)part->pixels + 2 * (size_t)part->radius[0];
        for (size_t k = 0; k < pixels * part->plan->head.in.channels; k++)
            memcpy(separable_line(part, i) + k * part->value, &part->outside, part->value);
        return;
    }
    separable_convert(part, i, (uint64_t)at, part->left, part->right);
    separable_fill_edges(part, i);
}

/* Compute the x results of row `at` of the image. Windows of f32 that are inside the row are read
 * from it; converting all samples would take a sixth of the time of small radii. The loops load
 * and store whole blocks: later results replace those after the end of earlier ones. */
static void separable_along(const gf_separable_part *part, const gf_separable_loops *real,
                            unsigned char *to, uint64_t at) {
    const gf_separable_plan *plan = part->plan;
    const gf_format *format = &plan->head.in;
    const uint64_t step = format->channels, r = part->radius[0], size = part->value;
    const uint64_t begin = (r - gf_min(r, part->x)) * step, x = part->x * step;
    const uint64_t after = r * step + GF_SEPARABLE_PAD, row = format->width * step;
    const uint64_t end = row < x + after ? 0 : gf_min(part->n, row - x - after);
    unsigned char *line = separable_line(part, 0);
    if (format->type != GF_F32 || end <= begin) {
        separable_load(part, 0, (int64_t)at);
        real->along(to, line, plan, part->n);
        return;
    }
    if (begin > 0) {
        separable_convert(part, 0, at, part->left, gf_min(part->right, 2 * r));
        separable_fill(part, 0, (int64_t)part->x - (int64_t)r, (int64_t)part->left);
        real->along(to, line, plan, begin);
    }
    real->along(to + begin * size,
                separable_samples(part, part->in, at, 0) + (x + begin - r * step) * size, plan,
                end - begin);
    if (end < part->n) {
        separable_convert(part, 0, at, (x + end) / step - r, part->right);
        separable_fill(part, 0, (int64_t)part->right, (int64_t)(part->x + part->pixels + r));
        real->along(to + end * size, line + end * size, plan, part->n - end);
    }
}

static unsigned char *separable_out(const gf_separable_part *part, uint64_t y) {
    return gf_row(part->out, y) + (size_t)part->x * part->plan->head.in.channels * part->sample;
}

static void separable_restore_alpha(const gf_separable_part *part, uint64_t y) {
    gf_restore_alpha(&part->plan->head.in, separable_samples(part, part->in, y, part->x),
                     separable_out(part, y), part->pixels);
}

static unsigned char *separable_ring_row(const gf_separable_part *part, uint64_t i) {
    return part->ring + (size_t)i * part->layout.row;
}

/* Return the group of rows that starts at y and does not extend beyond row e. */
static gf_separable_group separable_group(const gf_separable_part *part, uint64_t y, uint64_t e,
                                          const void *const *window) {
    const unsigned char *in = separable_samples(part, part->in, y, part->x);
    const size_t ahead = part->radius[1] + GF_SEPARABLE_GROUP;
    return (gf_separable_group){.out = separable_out(part, y),
                                .in = in,
                                .next = in + ahead * part->in->stride,
                                .out_stride = part->out->stride,
                                .in_stride = part->in->stride,
                                .rows = (uint32_t)gf_min(e - y, GF_SEPARABLE_GROUP),
                                .n = part->n,
                                .window = window};
}

/* ---- tiles: rows [s, e) of the output -------------------------------------------------------- */

/* Fixed point: the ring holds pairs of rows, from row s - r on, those outside the image included.
 */
static void separable_run_fixed(const gf_separable_part *part, uint64_t s, uint64_t e) {
    const uint64_t r = part->pairs.radius[1], more = GF_SEPARABLE_GROUP / 2, ring = r + more;
    const int64_t first = (int64_t)s - (int64_t)r, last = (int64_t)(e - 1 + r);
    const uint16_t *a = (const uint16_t *)(const void *)separable_line(part, 0);
    const uint16_t *b = (const uint16_t *)(const void *)separable_line(part, 1);
    const void *window[GF_SEPARABLE_NARROW + GF_SEPARABLE_GROUP];
    uint64_t loaded = 0;
    for (uint64_t y = s; y < e; y += GF_SEPARABLE_GROUP) {
        const gf_separable_group group = separable_group(part, y, e, window);
        const uint64_t i = (y - s) / 2;
        for (; loaded < i + r + (group.rows + 1) / 2; loaded++) {
            const int64_t row = first + 2 * (int64_t)loaded;
            separable_load(part, 0, row);
            separable_load(part, 1, row < last ? row + 1 : last);
            int16_t *to = (int16_t *)(void *)separable_ring_row(part, 2 * (loaded % ring));
            part->simd->fixed_along(to, a, b, part->n, part->plan->head.in.channels, &part->pairs);
        }
        for (uint64_t j = 0; j < ring; j++)
            window[j] = separable_ring_row(part, 2 * ((i + j) % ring));
        part->simd->fixed_across(&group, &part->pairs);
        for (uint32_t j = 0; j < group.rows; j++)
            separable_restore_alpha(part, y + j);
    }
}

/* Floating point: the ring holds the rows of a window that are inside the image; the last row is
 * that outside. */
static void separable_run_real(const gf_separable_part *part, uint64_t s, uint64_t e) {
    const gf_separable_plan *plan = part->plan;
    const gf_separable_loops *real = &part->simd->real[plan->form == GF_SEPARABLE_DOUBLE];
    const uint64_t height = plan->head.in.height;
    const uint32_t r = part->radius[1], ring = 2 * r + GF_SEPARABLE_GROUP;
    const void *window[2 * GF_SEPARABLE_MAX_RADIUS + GF_SEPARABLE_GROUP];
    assert(ring > 0 && ring <= sizeof window / sizeof window[0]);
    if (plan->edge.mode == GF_EDGE_CONSTANT && (s < r || height - e < r)) {
        separable_load(part, 0, -1);
        real->along(separable_ring_row(part, ring), separable_line(part, 0), plan, part->n);
    }
    uint64_t loaded = s < r ? 0 : s - r;
    for (uint64_t y = s; y < e; y += GF_SEPARABLE_GROUP) {
        const gf_separable_group group = separable_group(part, y, e, window);
        for (; loaded < gf_min(y + group.rows + r, height); loaded++)
            separable_along(part, real, separable_ring_row(part, loaded % ring), loaded);
        for (uint64_t k = 0; k < ring; k++) {
            /* The last rows of an incomplete group are not used. */
            const uint64_t down = gf_min(k, 2 * r + group.rows - 1);
            const int64_t at = separable_row_index(part, (int64_t)(y + down) - r);
            window[k] = separable_ring_row(part, at < 0 ? ring : (uint64_t)at % ring);
        }
        real->across(plan, &group);
        for (uint32_t j = 0; j < group.rows; j++)
            separable_restore_alpha(part, y + j);
    }
}

/* Exact sums: line 0 holds the sums of columns, line 1 is scratch memory, and line 2 is a row of
 * samples outside the image. */
static void separable_run_sums(const gf_separable_part *part, uint64_t s, uint64_t e) {
    const gf_format *format = &part->plan->head.in;
    const size_t n = (size_t)(part->right - part->left) * format->channels;
    const int64_t r = part->radius[1];
    const gf_separable_sums *loops = &part->simd->sums[part->word];
    unsigned char *columns = separable_inside(part, 0), *outside = separable_line(part, 2);
    for (size_t k = 0; k < n && part->plan->edge.mode == GF_EDGE_CONSTANT; k++)
        gf_put_sample(format->type, outside, k, part->plan->edge.value);
    memset(columns, 0, n * part->value);
    const unsigned char *rows[2]; /* to add, and to subtract */
    for (int64_t y = (int64_t)s - r, first = y; y < (int64_t)e + r; y++) {
        for (int i = 0; i < 2; i++) {
            const int64_t at = separable_row_index(part, i ? y - 2 * r - 1 : y);
            rows[i] = i && y - 2 * r - 1 < first ? NULL
                      : at < 0                   ? outside
                               : separable_samples(part, part->in, (uint64_t)at, part->left);
        }
        const uint64_t row = y - first < 2 * r ? s : (uint64_t)(y - r);
        unsigned char *out = separable_out(part, row);
        loops->slide(&(gf_separable_slide){columns, rows[0], rows[1], out}, format->type, n);
        if (y - first < 2 * r)
            continue;
        separable_fill_edges(part, 0);
        const gf_separable_line line = {out,
                                        format->type,
                                        part->radius[0],
                                        format->channels,
                                        &part->mean,
                                        rows[0] + part->in->stride};
        loops->across(&line, separable_line(part, 0), separable_line(part, 1), part->n);
        separable_restore_alpha(part, row);
    }
}

/* ---- one part of a strip --------------------------------------------------------------------- */

/* Set the value beyond a constant edge: for SUMS, that of a column of samples. */
static void separable_set_outside(gf_separable_part *part) {
    const gf_separable_plan *plan = part->plan;
    const float value = plan->edge.value;
    const double wide = (double)value;
    if (plan->edge.mode != GF_EDGE_CONSTANT)
        return;
    if (plan->form == GF_SEPARABLE_SINGLE)
        memcpy(&part->outside, &value, sizeof value);
    else if (plan->form == GF_SEPARABLE_DOUBLE)
        memcpy(&part->outside, &wide, sizeof wide);
    else
        part->outside =
            (uint64_t)value * (plan->form == GF_SEPARABLE_SUMS ? 2 * plan->radius[1] + 1 : 1)
            << (gf_host_is_little() ? 0 : 64 - 8 * part->value);
}

void gf_separable_compute(const gf_separable_simd *simd, const gf_plan *head, const gf_strip *strip,
                          uint32_t index, uint32_t parts, void *scratch) {
    const gf_separable_plan *plan = (const gf_separable_plan *)head;
    const gf_format *format = &head->in;
    gf_separable_part part = {.plan = plan,
                              .simd = simd,
                              .in = &strip->in[0],
                              .out = &strip->out,
                              .layout = separable_layout(plan),
                              .radius = {plan->radius[0], plan->radius[1]},
                              .value = separable_value_bytes(plan),
                              .sample = gf_type_bytes(format->type),
                              .lines = scratch};
    part.ring = part.lines + LINES * part.layout.line;
    if (plan->form == GF_SEPARABLE_SUMS)
        part.word = separable_word(plan, &part.mean);
    if (plan->form == GF_SEPARABLE_FIXED) {
        /* The lanes after the last sample; memcheck does not separate the lanes of a product. */
        memset(part.lines, 0, LINES * part.layout.line);
        separable_pairs_init(&part.pairs, plan);
        memcpy(part.radius, part.pairs.radius, sizeof part.radius);
    }
    separable_set_outside(&part);
    uint64_t s = strip->out.y0, e = s + strip->out.rows, x = 0, end = format->width;
    if (gf_row_samples(format) < (uint64_t)parts * MIN_CUT) {
        e = s + gf_share(strip->out.rows, index + 1, parts);
        s += gf_share(strip->out.rows, index, parts);
    } else {
        end = gf_share(format->width, index + 1, parts);
        x = gf_share(format->width, index, parts);
    }
    const uint64_t r = part.radius[0];
    for (part.x = x; s < e && part.x < end; part.x += part.pixels) {
        part.pixels = gf_min(part.layout.tile, end - part.x);
        part.n = (size_t)part.pixels * format->channels;
        part.left = part.x < r ? 0 : part.x - r;
        part.right = gf_min(format->width, part.x + part.pixels + r);
        if (plan->form == GF_SEPARABLE_FIXED)
            separable_run_fixed(&part, s, e);
        else if (plan->form == GF_SEPARABLE_SUMS)
            separable_run_sums(&part, s, e);
        else
            separable_run_real(&part, s, e);
    }
}
