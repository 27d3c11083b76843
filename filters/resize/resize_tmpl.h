/* Sums along x and y, for one type of samples, and of sums and taps. */

#define SUM GF_T(sum)
#define SAMPLE GF_T(sample)

/* Add rows that are `stride` bytes apart, times taps, to n sums. n is a constant at every call.
 * begun: the sums have values. */
GF_INLINE void GF_T(resize_add_rows)(SUM *sums, const bool begun, const void *from, size_t stride,
                                     const SUM *taps, uint64_t count, const size_t n) {
    const size_t bytes = sizeof(GF_T(vec_sum)), step = bytes / sizeof(SUM);
    GF_T(vec_sum) s[MAX_LANES];
    for (size_t j = 0; j < n / step; j++)
        if (begun)
            memcpy(&s[j], sums + j * step, bytes);
        else
            s[j] = -(GF_T(vec_sum)){0}; /* -0 is neutral, +0 is not */
    for (uint64_t k = 0; k < count; k++) {
        const unsigned char *row = (const unsigned char *)from + k * stride;
        for (size_t j = 0; j < n / step; j++)
            s[j] = GF_T(resize_add)(s[j], taps[k], (const SAMPLE *)(const void *)row + j * step);
    }
    for (size_t j = 0; j < n / step; j++)
        memcpy(sums + j * step, &s[j], bytes);
}

GF_INLINE void GF_T(resize_put)(SAMPLE *restrict to, const SUM *restrict sums, const size_t n) {
    for (size_t j = 0; j < n; j++)
        to[j] = (SAMPLE)GF_T(resize_round)(sums[j]);
}

/* ---- along y --------------------------------------------------------------------------------- */

static void GF_T(resize_down)(const resize_work *work) {
    const uint64_t end = work->part.end;
    SUM sums[MAX_LANES];
    for (uint64_t y = work->out->y0; y < work->out->y0 + work->out->rows; y++)
        for (uint64_t i = work->part.first; i < end; i += gf_min(MAX_LANES, end - i)) {
            const gf_resize_span *span = &work->spans[y];
            const size_t at =
                gf_min(i, end - MAX_LANES) * sizeof(SAMPLE); /* the last ones overlap */
            GF_T(resize_add_rows)
            (sums, false, gf_row(work->in, span->first) + at, work->in->stride,
             (const SUM *)work->taps + span->taps, span->count, MAX_LANES);
            GF_T(resize_put)((SAMPLE *)(void *)(gf_row(work->out, y) + at), sums, MAX_LANES);
        }
}

/* ---- along x --------------------------------------------------------------------------------- */

/* Interleave the quarters of LANES rows of LANES samples. */
GF_INLINE void GF_T(resize_interleave)(SAMPLE *restrict to, const SAMPLE *restrict from) {
    const size_t quarter = LANES * LANES / 4;
    for (size_t i = 0; i < quarter; i++)
        for (size_t q = 0; q < 4; q++)
            to[4 * i + q] = from[q * quarter + i];
}

/* Transpose LANES rows of LANES samples. */
GF_INLINE void GF_T(resize_transpose)(SAMPLE *to, const SAMPLE *from) {
    SAMPLE buffer[LANES * LANES];
    GF_T(resize_interleave)(buffer, from);
    GF_T(resize_interleave)(to, buffer);
}

/* Return samples [first, end) of `rows` rows, and of zeros up to LANES, transposed. have: those in
 * scratch memory. */
GF_INLINE const SAMPLE *GF_T(resize_load)(const resize_work *work, uint64_t y, const uint64_t rows,
                                          uint64_t first, uint64_t end, gf_range *have) {
    const uint64_t all = gf_row_samples(&work->plan->head.in);
    SAMPLE *in = work->scratch, tile[LANES * LANES];
    if (first >= have->first && end <= have->end)
        return in + (first - have->first) * LANES;
    *have = (gf_range){first, gf_min(first + MAX_SAMPLES, all)};
    memset(tile + LANES * rows, 0, (LANES - rows) * LANES * sizeof *in);
    for (uint64_t i = first; i < have->end; i += LANES) {
        for (uint64_t r = 0; r < rows; r++) {
            const unsigned char *row = gf_row(work->in, y + r) + i * sizeof *in;
            __builtin_prefetch(row + 256); /* 16 rows are many for the hardware */
            resize_copy(tile + LANES * r, row, all - i, sizeof *in);
        }
        GF_T(resize_transpose)(in + (i - first) * LANES, tile);
    }
    return in;
}

/* Store samples [first, end) of rows that are transposed. */
GF_INLINE void GF_T(resize_store)(const resize_work *work, uint64_t y, const uint64_t rows,
                                  uint64_t first, uint64_t end, const SAMPLE *from) {
    SAMPLE tile[LANES * LANES];
    for (uint64_t i = first; i < end; i += LANES) {
        GF_T(resize_transpose)(tile, from + (i - first) * LANES);
        for (uint64_t r = 0; r < rows; r++)
            resize_copy(gf_row(work->out, y + r) + i * sizeof *from, tile + LANES * r, end - i,
                        sizeof *from);
    }
}

/* Compute `rows` rows, up to LANES. The samples of a column, of all channels, are lanes. */
GF_INLINE void GF_T(resize_rows)(const resize_work *work, uint64_t y, const uint64_t rows) {
    const size_t channels = work->plan->head.in.channels, lanes = channels * LANES;
    SAMPLE *done = (SAMPLE *)work->scratch + (MAX_SAMPLES + LANES) * LANES;
    SUM sums[MAX_LANES];
    gf_range have = {0, 0};
    for (uint64_t x = 0; x < work->plan->spans; x++) {
        const gf_resize_span *span = &work->spans[x];
        const uint64_t column = x % LANES;
        for (uint64_t k = 0, n; k < span->count; k += n) {
            n = gf_min(span->count - k, MAX_SAMPLES / GF_MAX_CHANNELS);
            const SUM *taps = (const SUM *)work->taps + span->taps + k;
            const uint64_t first = (span->first + k) * channels;
            const SAMPLE *from =
                GF_T(resize_load)(work, y, rows, first, first + n * channels, &have);
            const size_t stride = lanes * sizeof *from;
            if (lanes == 3 * (size_t)LANES) /* RGB: taps are loaded once */
                GF_T(resize_add_rows)(sums, k > 0, from, stride, taps, n, 3 * LANES);
            else
                for (size_t l = 0; l < lanes; l += LANES)
                    GF_T(resize_add_rows)(sums + l, k > 0, from + l, stride, taps, n, LANES);
        }
        for (size_t l = 0; l < lanes; l += LANES)
            GF_T(resize_put)(done + column * lanes + l, sums + l, LANES);
        if (column == LANES - 1 || x + 1 == work->plan->spans)
            GF_T(resize_store)(work, y, rows, (x - column) * channels, (x + 1) * channels, done);
    }
}

static void GF_T(resize_along)(const resize_work *work) {
    uint64_t y = work->part.first;
    for (; work->part.end - y >= LANES; y += LANES)
        GF_T(resize_rows)(work, y, LANES); /* a constant */
    if (y < work->part.end)
        GF_T(resize_rows)(work, y, work->part.end - y);
}

#undef SUM
#undef SAMPLE
#undef TYPE
