/* Loops for one sample type. They are written for auto-vectorization: minima and maxima of integers
 * are instructions of all vectors. */

static void GF_T(load)(void *keys, const void *samples, size_t n) {
    const GF_T(key) *restrict from = samples;
    GF_T(key) *restrict to = keys;
    for (size_t i = 0; i < n; i++)
        to[i] = GF_T(key_of)(from[i]);
}

static void GF_T(store)(void *samples, const void *keys, size_t n) {
    const GF_T(key) *restrict from = keys;
    GF_T(key) *restrict to = samples;
    for (size_t i = 0; i < n; i++)
        to[i] = GF_T(sample_of)(from[i]);
}

GF_INLINE GF_T(key) GF_T(least)(GF_T(key) a, GF_T(key) b) {
    return a < b ? a : b;
}

GF_INLINE GF_T(key) GF_T(greatest)(GF_T(key) a, GF_T(key) b) {
    return a < b ? b : a;
}

/* Return the maximum of keys whose minimum is `low`. With AVX-512, sums run on two ports, minima
 * and maxima on one of them: medians take 0.8 times as long. */
GF_INLINE GF_T(key) GF_T(other)(GF_T(key) a, GF_T(key) b, GF_T(key) low) {
    return VEC_FLOATS == 16 ? (GF_T(key))((uint32_t)a + (uint32_t)b - (uint32_t)low)
                            : GF_T(greatest)(a, b);
}

#define CE(a, b) low = GF_T(least)(v[a], v[b]), v[b] = GF_T(other)(v[a], v[b], low), v[a] = low;
#define LO(a, b) v[a] = GF_T(least)(v[a], v[b]);
#define HI(a, b) v[b] = GF_T(greatest)(v[a], v[b]);

/* Sort columns of K - 1 keys. */
GF_INLINE void GF_T(columns_of)(const size_t K, GF_T(key) *restrict to, size_t stride,
                                const void *const *rows, size_t n) {
    const GF_T(key) * in[6];
    memcpy(in, rows, (K - 1) * sizeof *rows);
#pragma GCC ivdep
    for (size_t i = 0; i < n; i++) {
        GF_T(key) v[6] = {0}, low;
#pragma GCC unroll 6
        for (size_t j = 0; j < K - 1; j++)
            v[j] = in[j][i];
        if (K == 5) {
            GF_SORT_4(CE)
        } else {
            GF_SORT_6(CE)
        }
#pragma GCC unroll 6
        for (size_t j = 0; j < K - 1; j++)
            to[j * stride + i] = v[j];
    }
}

/* Compute medians of K x K keys for two rows, which share columns of K - 1 keys. lines: the sorted
 * columns; of 3 x 3 keys the rows, which are sorted here: this takes 0.8 times as long. */
GF_INLINE void GF_T(medians_of)(const size_t K, void *const *out, const void *const *lines,
                                const void *const *more, size_t step, size_t n) {
    static const uint8_t order[3][8] = {{GF_CORE_ORDER_3}, {GF_CORE_ORDER_5}, {GF_CORE_ORDER_7}};
    const GF_T(key) * in[6], *restrict first = more[0], *restrict last = more[1];
    GF_T(key) *restrict above = out[0], *restrict below = out[1];
    memcpy(in, lines, (K - 1) * sizeof *lines);
#pragma GCC ivdep
    for (size_t i = 0; i < n; i++) {
        GF_T(key) v[42] = {0}, core[8], low;
#pragma GCC unroll 7
        for (size_t c = 0; c < K; c++)
#pragma GCC unroll 6
            for (size_t j = 0; j < K - 1; j++)
                v[c * (K - 1) + j] = in[j][c * step + i];
        if (K == 3) {
            CE(0, 1) CE(2, 3) CE(4, 5) GF_CORE_3(CE, LO, HI)
        } else if (K == 5) {
            GF_CORE_5(CE, LO, HI)
        } else {
            GF_CORE_7(CE, LO, HI)
        }
#pragma GCC unroll 8
        for (size_t j = 0; j < K + 1; j++)
            core[j] = v[order[(K - 3) / 2][j]];
#pragma GCC unroll 2
        for (int row = 0; row < 2; row++) {
#pragma GCC unroll 7
            for (size_t c = 0; c < K; c++)
                v[c] = (row ? last : first)[c * step + i];
            if (K == 3) {
                GF_SORT_3(CE)
            } else if (K == 5) {
                GF_SORT_5(CE)
            } else {
                GF_SORT_7(CE)
            }
#pragma GCC unroll 7
            for (size_t c = 0; c < K; c++)
                v[K + 1 + c] = v[c];
#pragma GCC unroll 8
            for (size_t j = 0; j < K + 1; j++)
                v[j] = core[j];
            if (K == 3) {
                GF_MEDIAN_3(CE, LO, HI)
            } else if (K == 5) {
                GF_MEDIAN_5(CE, LO, HI)
            } else {
                GF_MEDIAN_7(CE, LO, HI)
            }
            (row ? below : above)[i] = GF_T(sample_of)(v[K]);
        }
    }
}

static void GF_T(columns)(uint32_t radius, void *columns, size_t stride, const void *const *rows,
                          size_t n) {
    if (radius == 2)
        GF_T(columns_of)(5, columns, stride, rows, n);
    else
        GF_T(columns_of)(7, columns, stride, rows, n);
}

static void GF_T(medians)(uint32_t radius, void *const *out, const void *const *lines,
                          const void *const *more, size_t step, size_t n) {
    if (radius == 1)
        GF_T(medians_of)(3, out, lines, more, step, n);
    else if (radius == 2)
        GF_T(medians_of)(5, out, lines, more, step, n);
    else
        GF_T(medians_of)(7, out, lines, more, step, n);
}

static void GF_T(extremes)(bool minimum, void *to, const void *a, const void *b, size_t n) {
    const GF_T(key) *x = a, *y = b;
    GF_T(key) *out = to;
    if (minimum)
#pragma GCC ivdep
        for (size_t i = 0; i < n; i++)
            out[i] = GF_T(least)(x[i], y[i]);
    else
#pragma GCC ivdep
        for (size_t i = 0; i < n; i++)
            out[i] = GF_T(greatest)(x[i], y[i]);
}

static void GF_T(extremes_4)(bool minimum, void *to, const void *from, const size_t steps[3],
                             size_t n) {
    const GF_T(key) *restrict a = from, *restrict b = a + steps[0], *restrict c = a + steps[1];
    const GF_T(key) *restrict d = a + steps[2];
    GF_T(key) *restrict out = to;
    if (minimum)
        for (size_t i = 0; i < n; i++)
            out[i] = GF_T(least)(GF_T(least)(a[i], b[i]), GF_T(least)(c[i], d[i]));
    else
        for (size_t i = 0; i < n; i++)
            out[i] = GF_T(greatest)(GF_T(greatest)(a[i], b[i]), GF_T(greatest)(c[i], d[i]));
}

/* Copy every step-th key. */
static void GF_T(pick)(void *to, const void *from, size_t step, size_t n) {
    GF_T(key) *restrict keys = to;
    const GF_T(key) *restrict all = from;
    for (size_t k = 0; k < n; k++)
        keys[k] = all[k * step];
}

static void GF_T(place)(void *to, const void *from, size_t step, size_t n) {
    GF_T(key) *restrict all = to;
    const GF_T(key) *restrict keys = from;
    for (size_t i = 0; i < n; i++)
        all[i * step] = keys[i];
}

/* Sort the keys of a tile by bytes, from the lowest one, and store the positions in this order. */
static void GF_T(select_sort)(const gf_percentile_tile *tile) {
    const uint32_t n = tile->width * tile->rows;
    const GF_T(key) *keys = tile->keys;
    GF_T(key) *sorted = tile->sorted;
    gf_percentile_item *from = tile->items, *to = from + n;
    for (uint32_t y = 0, i = 0; y < tile->rows; y++)
        for (uint32_t x = 0; x < tile->width; x++, i++)
            from[i] = (gf_percentile_item){GF_T(key_unsigned)(keys[i]), y * GF_PERCENTILE_SIDE + x};
    for (uint32_t shift = 0; shift < 8 * sizeof *keys; shift += 8) {
        select_pass(to, from, n, shift);
        gf_percentile_item *const items = from;
        from = to;
        to = items;
    }
    for (uint32_t group = 0, i = 0; i < n; group++)
        for (const uint32_t end = i + tile->size < n ? i + tile->size : n; i < end; i++) {
            const uint32_t x = from[i].at % GF_PERCENTILE_SIDE, y = from[i].at / GF_PERCENTILE_SIDE;
            sorted[i] = (GF_T(key))GF_T(key_signed)(from[i].key);
            tile->group[y * tile->width + x] = (uint8_t)group;
            tile->x[i] = (uint8_t)x;
            tile->y[i] = (uint8_t)y;
        }
    /* The last group is tested whole: positions after its samples follow all results. */
    memset(tile->x + n, 0, GF_PERCENTILE_PAD);
    memset(tile->y + n, 0, GF_PERCENTILE_PAD);
}

/* Compute the results of a tile. Columns are counted from row to row, and windows from column to
 * column. */
static void GF_T(select)(const gf_percentile_tile *tile) {
    GF_T(key) *out = tile->results;
    const uint32_t width = 2 * tile->radius[0] + 1, height = 2 * tile->radius[1] + 1;
    if (sizeof *out > 1)
        GF_T(select_sort)(tile);
    memset(tile->columns, 0, tile->width * sizeof *tile->columns);
    for (uint32_t y = 0; y < tile->rows; y++) {
        select_slide(tile, y, height);
        if (y + 1 < height)
            continue;
        select_window window = {0, y + 1 - height, width - 1, height - 1};
        select_sums sums = {.classes = {0}};
        for (uint32_t x = 0; x < width - 1; x++)
            select_add(&sums.classes, tile->columns[x].classes, 1);
        for (; window.left + width <= tile->width; window.left++) {
            uint32_t n;
            select_add(&sums.classes, tile->columns[window.left + width - 1].classes, 1);
            const uint32_t group = select_group(tile, &sums, window.left, width, &n);
            if (sizeof *out > 1)
                *out++ = GF_T(sample_of)(
                    ((const GF_T(key) *)tile->sorted)[select_rank(tile, group, n, &window)]);
            else
                *out++ = (GF_T(key))group;
            select_add(&sums.classes, tile->columns[window.left].classes, -1);
        }
    }
}

#undef CE
#undef LO
#undef HI
#undef TYPE
